"""The import path that TorchKM has for :class:`~kernelpath.torchkm.low_level.cvknyssvm`."""

from kernelpath.torchkm.low_level import cvknyssvm

__all__ = ["cvknyssvm"]
