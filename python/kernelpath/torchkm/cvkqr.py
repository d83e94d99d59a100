"""The import path that TorchKM has for :class:`~kernelpath.torchkm.low_level.cvkqr`."""

from kernelpath.torchkm.low_level import cvkqr

__all__ = ["cvkqr"]
