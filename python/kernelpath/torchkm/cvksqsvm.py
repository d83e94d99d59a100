"""The import path that TorchKM has for :class:`~kernelpath.torchkm.low_level.cvksqsvm`."""

from kernelpath.torchkm.low_level import cvksqsvm

__all__ = ["cvksqsvm"]
