"""Classifiers: support vector machine, logistic regression, distance-weighted discrimination."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from kernelpath import _core
from kernelpath._base import _KernelPathBase
from kernelpath._calibration import CalibratedMixin
from kernelpath._folds import spread
from kernelpath._machines import Classes, Machines, Parts, Task
from kernelpath._scoring import OutOfFoldClassifier, OutOfFoldProbabilities, ScoredMixin, predicted_labels
from kernelpath._settings import Loss, Settings, choice
from kernelpath._shared import ClassifierParameters, Parameters, estimator, spell_out_signature
from kernelpath._tuning import Maps
from kernelpath._weights import Weights, class_factors

if TYPE_CHECKING:
    from typing import Unpack


class _KernelClassifier(ScoredMixin, ClassifierMixin, _KernelPathBase):
    """Labels to targets ±1 and back: one machine for two classes, several for more."""

    _arrangements: ClassVar[tuple[str, ...]] = ("ovo", "ovr")

    # What the machines have to do with the classes; set by `fit`.
    _arrangement: _core.Arrangement

    def __init__(
        self,
        *,
        class_weight: Any = None,
        multi_class: str = "ovo",
        tune: str = "joint",
        **shared: Unpack[Parameters],
    ) -> None:
        super().__init__(**shared)
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.tune = tune

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Decision values f(x) = Σᵢ βᵢ k(xᵢ, x) + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
            Then the largest is the prediction: with ``multi_class="ovr"`` the value of the class's machine, with
            "multinomial" that of the class; with "ovo" the votes for the class, and a fraction below ⅓ from the
            machines' values that decides between equal votes.
        """
        values = self._decision_values(X)
        return self._arrangement.decision(values)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels: ``classes_[1]`` where the decision value is > 0; of more than two classes, that of the largest.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return predicted_labels(self.decision_function(X), self.classes_)

    def _losses(self) -> Loss:
        """The loss of a machine."""
        raise NotImplementedError

    def _make_machines(self, y: npt.NDArray[Any], weight: Weights | None, settings: Settings) -> Machines:
        check_classification_targets(y)
        loss = self._losses()
        multi_class = self._checked_multi_class()
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} separates at least 2 classes, but y has 1 class: {self.classes_.tolist()}"
            )
        index = index.astype(np.int64)
        of_rows = _core.RowClasses(index, len(self.classes_), weight, class_factors(self.class_weight, self.classes_))
        self._arrangement = _core.Arrangement(multi_class, len(self.classes_))
        self.machines_ = self._labels_set_apart()
        self._check_scoring()
        if multi_class == "multinomial" and len(self.classes_) > 2:
            loss = multi_class, 0.0
        tasks = []
        for m in range(self._arrangement.n_machines):
            targets, rows = self._arrangement.targets(m, index)
            own = weight if weight is None or rows is None else weight[rows]
            tasks.append(Task(*loss, targets, own, rows, of_rows))
        names = tuple(
            f"{positive!r} against {'the rest' if negative is None else repr(negative)}"
            for positive, negative in self.machines_
        )
        parts = Parts(names, is_joint=bool(names) and self.tune == "joint")
        return Machines(tasks, parts, classes=Classes(self._arrangement, of_rows, self._probability()))

    def _labels_set_apart(self) -> list[tuple[Any, Any]]:
        """The labels that each of several machines sets apart: (positive, negative), or (positive, None)."""
        labels = self.classes_.tolist()
        pairs = self._arrangement.pairs
        return [(labels[first], None if second is None else labels[second]) for first, second in pairs]

    def _check_scoring(self) -> None:
        if self.machines_ and self.tune == "each" and self.scoring is not None and self.cv is not None:
            raise ValueError("tune='each' scores each machine by itself, which scoring cannot; use tune='joint'")

    def _checked_multi_class(self) -> str:
        if self.multi_class == "multinomial" and "multinomial" not in self._arrangements:
            raise ValueError(
                f"multi_class='multinomial' is the logistic loss of several classes, which {type(self).__name__} does "
                "not have; use KernelLogistic(multi_class='multinomial'), or multi_class='ovo' or 'ovr'"
            )
        choice("tune", self.tune, ("joint", "each"))
        return choice("multi_class", self.multi_class, self._arrangements)

    def _stand_in(self, values: npt.NDArray[np.float64], maps: Callable[[], Maps]) -> OutOfFoldClassifier:
        columns = values.reshape(len(values), -1)
        decision = self._arrangement.decision(columns)
        if self._probability() is None:
            return OutOfFoldClassifier(decision, self.classes_)
        return OutOfFoldProbabilities(decision, self.classes_, lambda: self._arrangement.probabilities(columns, maps()))

    def _probability(self) -> str | None:
        """What makes probabilities of the machines' values: "native", the name of a calibration, or None."""
        return None

    def _keep_model(self, fit: _core.Fit, X: Any, y: Any, rows: Any) -> None:
        super()._keep_model(fit, X, y, rows)
        support = self.support_ if rows is None else np.searchsorted(rows, self.support_)
        self.n_support_ = np.array([np.sum(y[support] == label) for label in self.classes_], dtype=np.int32)

    def _keep_oof(self, fit: _core.Fit, rows: Any, n_rows: int) -> None:
        if len(self.classes_) == 2:
            super()._keep_oof(fit, rows, n_rows)
        else:
            self.oof_decision_ = spread(self._arrangement.decision(fit.held_out), rows, n_rows)


spell_out_signature(_KernelClassifier)


@estimator(splitter="StratifiedKFold", score="accuracy")
class KernelSVC(CalibratedMixin, _KernelClassifier):
    """Kernel support vector classifier, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ L(yᵢ, fᵢ)  +  ½ βᵀKβ,     f = Kβ + b,

    with the hinge loss L = max(0, 1 − yf) or its square, on one kernel matrix K shared by all folds, all C's and the
    refit. A duality gap, computed apart from the solver, bounds how far each model is from its optimum.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}, default="hinge"
        max(0, 1 − yf), whose models have few support vectors, or its square.
    probability : bool or {"sigmoid", "isotonic", "temperature"}, default=False
        How decision values become probabilities, True meaning "sigmoid"; False leaves out `predict_proba`. The map is
        fitted on `oof_decision_`, after the choice of C, so that no model is fitted again; it needs `cv`. `predict`
        goes by the sign of f, and so may differ from P > ½: never with "temperature"; with "sigmoid" where f lies
        between 0 and −intercept/slope of `calibration_`; with "isotonic" where f lies between 0 and where the map
        crosses ½. Of more than two classes it goes by `decision_function`, and may differ where that is close.
    {parameters}

    Attributes
    ----------
    {attributes}
    calibration_ : Calibrator or list of Calibrator
        The map from f to P(``classes_[1]``), with its `slope`, `intercept` or `points`; for more than two classes one
        a machine; with `probability` only.
    oof_proba_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the out-of-fold values, NaN for rows never held out; with `probability` only.
    calibration_seconds_ : float
        Time that `probability` took.

    Examples
    --------
    >>> from kernelpath import KernelSVC
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(200, 5, random_state=0)
    >>> clf = KernelSVC(random_state=0).fit(X, y)
    >>> bool(clf.gaps_.max() <= 1e-6)
    True
    """

    def __init__(
        self, *, loss: str = "hinge", probability: Any = False, **shared: Unpack[ClassifierParameters]
    ) -> None:
        super().__init__(**shared)
        self.loss = loss
        self.probability = probability

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

    More than two classes are machines of two, or with ``multi_class="multinomial"`` one problem,

        minimise over B, b:   C · Σᵢ (log Σ_c exp(f_ic) − f_iyᵢ)  +  ½ Σ_c B_cᵀKB_c,     f = KB + 1bᵀ,

    with a column of B for each class and Σb = 0; the probability of class c is exp(f_c) / Σ exp(f). Two classes are the
    binary problem in either case. It has no "loo", and "newton" is its solver. `gaps_` and `objective_` are those of
    the one problem, and `dual_coef_` and `intercept_` have a line for each class.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    oof_proba_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the out-of-fold values; NaN for rows never held out.

    Examples
    --------
    >>> from kernelpath import KernelLogistic
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(200, 5, random_state=0)
    >>> clf = KernelLogistic(Cs=10, scoring="neg_log_loss", random_state=0).fit(X, y)
    >>> clf.predict_proba(X).shape
    (200, 2)
    """

    _arrangements: ClassVar[tuple[str, ...]] = ("ovo", "ovr", "multinomial")

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probability of each class: 1 / (1 + exp(∓f)).

        Those of more than two classes are exp f_c / Σ exp f ("multinomial"), or the normalised ones of their machines
        ("ovr"), or fit those of all pairs best ("ovo").

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        values = self._decision_values(X)
        return self._arrangement.probabilities(values, [])

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Logarithm of the probability of each class, finite also where the probability rounds to 0.

        (With "ovo" and "ovr" and more than two classes it is −inf there.)

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        values = self._decision_values(X)
        return self._arrangement.log_probabilities(values, [])

    def _losses(self) -> Loss:
        return "logistic", 0.0

    def _probability(self) -> str | None:
        return "native"

    def _checked_multi_class(self) -> str:
        multi_class = super()._checked_multi_class()
        if multi_class == "multinomial":
            self._check_multinomial()
        return multi_class

    def _check_multinomial(self) -> None:
        if self.tune == "each":
            raise ValueError(
                "tune='each' gives each machine its own C, and multi_class='multinomial' is one machine; use "
                "tune='joint', or multi_class='ovo' or 'ovr'"
            )
        if isinstance(self.cv, str) and self.cv == "loo":
            raise ValueError(
                "cv='loo' is not available with multi_class='multinomial'; use folds, such as cv=5, or "
                "multi_class='ovo' or 'ovr', which have exact leave-one-out"
            )
        if self.solver not in ("auto", "newton"):
            raise ValueError(
                f"solver={self.solver!r} does not fit multi_class='multinomial'; what fits: 'auto', 'newton'"
            )

    def _keep_probabilities(self, fit: _core.Fit, rows: Any, n_rows: int) -> None:
        assert fit.probabilities is not None  # they are native
        self.oof_proba_ = spread(fit.probabilities, rows, n_rows)


@estimator(splitter="StratifiedKFold", score="accuracy")
class KernelDWD(CalibratedMixin, _KernelClassifier):
    """Kernel distance-weighted discrimination, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ V(yᵢ fᵢ)  +  ½ βᵀKβ,     f = Kβ + b,     V(u) = 1 − u for u ≤ ½, else 1 / (4u),

    on one kernel matrix K shared by all folds, all C's and the refit. Unlike the hinge loss, V lets every row bear on
    the boundary, the near ones most, which helps where features outnumber rows. A duality gap, computed apart from
    the solver, bounds how far each model is from its optimum.

    Parameters
    ----------
    probability : bool or {"sigmoid", "isotonic", "temperature"}, default=False
        How decision values become probabilities, True meaning "sigmoid"; False leaves out `predict_proba`. The map is
        fitted on `oof_decision_`, after the choice of C, so that no model is fitted again; it needs `cv`. `predict`
        goes by the sign of f, and so may differ from P > ½: never with "temperature"; with "sigmoid" where f lies
        between 0 and −intercept/slope of `calibration_`; with "isotonic" where f lies between 0 and where the map
        crosses ½. Of more than two classes it goes by `decision_function`, and may differ where that is close.
    {parameters}

    Attributes
    ----------
    {attributes}
    calibration_ : Calibrator or list of Calibrator
        The map from f to P(``classes_[1]``), with its `slope`, `intercept` or `points`; for more than two classes one
        a machine; with `probability` only.
    oof_proba_ : ndarray of shape (n_samples, n_classes)
        Probabilities of the out-of-fold values, NaN for rows never held out; with `probability` only.
    calibration_seconds_ : float
        Time that `probability` took.

    Examples
    --------
    >>> from kernelpath import KernelDWD
    >>> from kernelpath.datasets import make_mixture
    >>> X, y = make_mixture(200, 5, random_state=0)
    >>> clf = KernelDWD(Cs=10, random_state=0).fit(X, y)
    >>> bool(clf.gaps_.max() <= 1e-6)
    True
    """

    def __init__(self, *, probability: Any = False, **shared: Unpack[ClassifierParameters]) -> None:
        super().__init__(**shared)
        self.probability = probability

    def _losses(self) -> Loss:
        return "dwd", 0.0
