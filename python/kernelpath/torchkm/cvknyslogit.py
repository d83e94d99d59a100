"""The import path that TorchKM has for :class:`~kernelpath.torchkm.low_level.cvknyslogit`."""

from kernelpath.torchkm.low_level import cvknyslogit

__all__ = ["cvknyslogit"]
