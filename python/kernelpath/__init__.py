"""Exact kernel machines, trained and tuned in one call, each answer with a proof of its own optimality."""

from importlib.metadata import version

from kernelpath.estimators import KernelSVC

__all__ = ["KernelSVC"]
__version__ = version("kernelpath")
