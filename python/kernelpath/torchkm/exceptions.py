"""The warning of models that did not reach their tolerance, where TorchKM has it."""

from sklearn.exceptions import ConvergenceWarning

__all__ = ["ConvergenceWarning"]
