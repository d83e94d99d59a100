"""The import path that TorchKM has for :class:`~kernelpath.torchkm.low_level.cvkdwd`."""

from kernelpath.torchkm.low_level import cvkdwd

__all__ = ["cvkdwd"]
