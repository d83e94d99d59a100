"""Exact kernel machines, trained and tuned in one call, each answer with a proof of its own optimality."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kernelpath._core import __version__ as __version__

if TYPE_CHECKING:
    from kernelpath._faces import (
        GridEdgeWarning,
        IndefiniteKernelWarning,
        KernelDWD,
        KernelLogistic,
        KernelQuantile,
        KernelRegressor,
        KernelSVC,
        KernelSVR,
        NystromFeatures,
        devices,
        from_libsvm,
        load,
        report,
        save,
        show_versions,
        to_libsvm,
        to_onnx,
    )

__all__ = [
    "GridEdgeWarning",
    "IndefiniteKernelWarning",
    "KernelDWD",
    "KernelLogistic",
    "KernelQuantile",
    "KernelRegressor",
    "KernelSVC",
    "KernelSVR",
    "NystromFeatures",
    "devices",
    "from_libsvm",
    "load",
    "report",
    "save",
    "show_versions",
    "to_libsvm",
    "to_onnx",
]

_MODULES = ("classifiers", "datasets", "display", "nystrom", "regressors", "torchkm")


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for: the command starts without scikit-learn and SciPy."""
    if name in _MODULES:
        return import_module(f"kernelpath.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("kernelpath._faces"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
