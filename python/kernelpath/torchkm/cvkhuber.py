"""The import path that TorchKM has for :class:`~kernelpath.torchkm.low_level.cvkhuber`."""

from kernelpath.torchkm.low_level import cvkhuber

__all__ = ["cvkhuber"]
