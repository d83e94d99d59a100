"""TorchKM's names and parameters on the estimators of kernelpath: its users change one import.

``from kernelpath.torchkm import TorchKMSVC`` stands for ``from torchkm import TorchKMSVC`` (4.3), and so do the
modules `estimators`, `functions` and `exceptions`, and one for each low-level class, as in
``from kernelpath.torchkm.cvksvm import cvksvm``. Inputs may be torch tensors on the CPU; outputs are numpy arrays.
"""

from kernelpath.torchkm.estimators import TorchKMDWD, TorchKMKQR, TorchKMLogit, TorchKMSVC
from kernelpath.torchkm.exceptions import ConvergenceWarning
from kernelpath.torchkm.functions import data_gen, kernelMult, rbf_kernel, sigest, standardize

__all__ = [
    "ConvergenceWarning",
    "TorchKMDWD",
    "TorchKMKQR",
    "TorchKMLogit",
    "TorchKMSVC",
    "data_gen",
    "kernelMult",
    "rbf_kernel",
    "sigest",
    "standardize",
]
