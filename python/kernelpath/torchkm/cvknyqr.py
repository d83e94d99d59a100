"""The import path that TorchKM has for :class:`~kernelpath.torchkm.low_level.cvknyqr`."""

from kernelpath.torchkm.low_level import cvknyqr

__all__ = ["cvknyqr"]
