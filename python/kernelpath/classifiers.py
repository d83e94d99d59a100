"""Classifiers of two classes: support vector machine, logistic regression, distance-weighted discrimination."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from kernelpath._base import _KernelPathBase
from kernelpath._scoring import (
    OutOfFoldClassifier,
    OutOfFoldLogistic,
    log_probabilities,
    predicted_labels,
    probabilities,
)
from kernelpath._settings import Loss, choice
from kernelpath._shared import Parameters, estimator
from kernelpath._tuning import Tuned

if TYPE_CHECKING:
    from typing import Unpack


class _KernelClassifier(ClassifierMixin, _KernelPathBase):
    """Labels as −1 and +1, and back."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Decision values f(x) = Σᵢ βᵢ k(xᵢ, x) + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._decision_values(X)[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels: ``classes_[1]`` where the decision value is > 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return predicted_labels(self.decision_function(X), self.classes_)

    def _encode(self, y: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        check_classification_targets(y)
        name = type(self).__name__
        classes, index = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(f"{name} separates 2 classes, but y has 1 class: {classes.tolist()}")
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y has "
                f"{len(classes)} classes, {_shown(classes)}. Wrap the estimator for now: "
                f"sklearn.multiclass.OneVsRestClassifier({name}(...))"
            )
        self.classes_ = classes
        return np.where(index == 1, 1.0, -1.0)

    def _stand_in(self, values: npt.NDArray[np.float64]) -> OutOfFoldClassifier:
        return OutOfFoldClassifier(values, self.classes_)

    def _keep_model(self, tuned: list[Tuned], kernel: dict[str, Any], X: Any, targets: npt.NDArray[np.float64]) -> None:
        super()._keep_model(tuned, kernel, X, targets)
        labels = targets[self.support_]
        self.n_support_ = np.array([np.sum(labels < 0.0), np.sum(labels > 0.0)], dtype=np.int32)


@estimator(splitter="StratifiedKFold", score="accuracy")
class KernelSVC(_KernelClassifier):
    """Kernel support vector classifier, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ L(yᵢ, fᵢ)  +  ½ βᵀKβ,     f = Kβ + b,

    with the hinge loss L = max(0, 1 − yf) or its square, on one kernel matrix K shared by all folds, all C's and the
    refit. A duality gap, computed apart from the solver, bounds how far each model is from its optimum.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}, default="hinge"
        max(0, 1 − yf), whose models have few support vectors, or its square.
    {parameters}

    Attributes
    ----------
    {attributes}
    n_support_ : ndarray of shape (2,)
        Support vectors of each class.
    classes_ : ndarray of shape (2,)
        Labels; a decision value > 0 means ``classes_[1]``.

    Examples
    --------
    >>> from kernelpath import KernelSVC
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(200, 5, random_state=0)
    >>> clf = KernelSVC(random_state=0).fit(X, y)
    >>> bool(clf.gaps_.max() <= 1e-6)
    True
    """

    def __init__(self, *, loss: str = "hinge", **shared: Unpack[Parameters]) -> None:
        super().__init__(**shared)
        self.loss = loss

    def _losses(self) -> Loss:
        return choice("loss", self.loss, ("hinge", "squared_hinge")), 0.0


@estimator(splitter="StratifiedKFold", score="accuracy")
class KernelLogistic(_KernelClassifier):
    """Kernel logistic regression, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ log(1 + exp(−yᵢ fᵢ))  +  ½ βᵀKβ,     f = Kβ + b,

    on one kernel matrix K shared by all folds, all C's and the refit. The decision value f is the logarithm of the
    odds P(y = +1) / P(y = −1), so that probabilities need no calibration. A duality gap, computed apart from the
    solver, bounds how far each model is from its optimum.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    n_support_ : ndarray of shape (2,)
        Support vectors of each class: with this loss, every row.
    classes_ : ndarray of shape (2,)
        Labels; a decision value > 0 means ``classes_[1]``.

    Examples
    --------
    >>> from kernelpath import KernelLogistic
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(200, 5, random_state=0)
    >>> clf = KernelLogistic(Cs=10, scoring="neg_log_loss", random_state=0).fit(X, y)
    >>> clf.predict_proba(X).shape
    (200, 2)
    """

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probability of each class, 1 / (1 + exp(∓f)).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of `classes_`.
        """
        return probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Logarithm of the probability of each class, finite also where the probability rounds to 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of `classes_`.
        """
        return log_probabilities(self.decision_function(X))

    def _losses(self) -> Loss:
        return "logistic", 0.0

    def _stand_in(self, values: npt.NDArray[np.float64]) -> OutOfFoldLogistic:
        return OutOfFoldLogistic(values, self.classes_)


@estimator(splitter="StratifiedKFold", score="accuracy")
class KernelDWD(_KernelClassifier):
    """Kernel distance-weighted discrimination, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ V(yᵢ fᵢ)  +  ½ βᵀKβ,     f = Kβ + b,     V(u) = 1 − u for u ≤ ½, else 1 / (4u),

    on one kernel matrix K shared by all folds, all C's and the refit. Unlike the hinge loss, V lets every row bear on
    the boundary, the near ones most, which helps where features outnumber rows. A duality gap, computed apart from
    the solver, bounds how far each model is from its optimum.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    n_support_ : ndarray of shape (2,)
        Support vectors of each class: with this loss, every row.
    classes_ : ndarray of shape (2,)
        Labels; a decision value > 0 means ``classes_[1]``.

    Examples
    --------
    >>> from kernelpath import KernelDWD
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(200, 5, random_state=0)
    >>> clf = KernelDWD(Cs=10, random_state=0).fit(X, y)
    >>> bool(clf.gaps_.max() <= 1e-6)
    True
    """

    def _losses(self) -> Loss:
        return "dwd", 0.0


def _shown(classes: npt.NDArray[Any], most: int = 10) -> str:
    return repr(classes[:most].tolist())[:-1] + (", ...]" if len(classes) > most else "]")
