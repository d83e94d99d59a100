"""The import path that TorchKM has for :class:`~kernelpath.torchkm.low_level.cvklogit`."""

from kernelpath.torchkm.low_level import cvklogit

__all__ = ["cvklogit"]
