"""The import path that TorchKM has for :class:`~kernelpath.torchkm.low_level.cvknysdwd`."""

from kernelpath.torchkm.low_level import cvknysdwd

__all__ = ["cvknysdwd"]
