"""Everything that the package offers. It takes NumPy, SciPy and scikit-learn, which the command does without."""

from kernelpath._devices import devices, show_versions
from kernelpath._edge import GridEdgeWarning
from kernelpath._files import from_libsvm, load, save, to_libsvm, to_onnx
from kernelpath._indefinite import IndefiniteKernelWarning
from kernelpath._report import report
from kernelpath.classifiers import KernelDWD, KernelLogistic, KernelSVC
from kernelpath.nystrom import NystromFeatures
from kernelpath.regressors import KernelQuantile, KernelRegressor, KernelSVR

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
