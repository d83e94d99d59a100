"""The import path that TorchKM has for :class:`~kernelpath.torchkm.low_level.cvksvm`."""

from kernelpath.torchkm.low_level import cvksvm

__all__ = ["cvksvm"]
