"""Regressors: quantiles, ε-insensitive support vector regression, and squared, Huber and expectile losses."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import KFold

from kernelpath._base import _KernelPathBase
from kernelpath._scoring import OutOfFoldRegressor, ScoredMixin, make_scorer, weighted
from kernelpath._settings import Loss, choice, level, levels, number
from kernelpath._shared import Parameters, estimator
from kernelpath._tuning import Tuned

if TYPE_CHECKING:
    from typing import Unpack


class _KernelRegressor(ScoredMixin, RegressorMixin, _KernelPathBase):
    """Targets are numbers, and predictions are the values f."""

    _splitter = KFold

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Predicted targets f(x) = Σᵢ βᵢ k(xᵢ, x) + b.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._decision_values(X)[:, 0]

    @property
    def coef_(self) -> npt.NDArray[np.float64]:
        """With the linear kernel, the coefficients of the features: f = coef_ · x + intercept_."""
        coef = super().coef_
        return coef if self._has_loss_axis else coef[0]

    def _encode(self, y: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        if y.dtype.kind not in "biufO":
            raise ValueError(f"y must hold numbers, got dtype {y.dtype}, such as {y[0]!r}; encode or convert it first")
        try:
            targets = np.ascontiguousarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"y must hold numbers, but {_first_non_number(y)}; encode or convert it first") from None
        bad = np.flatnonzero(~np.isfinite(targets))
        if bad.size:
            raise ValueError(f"y must hold finite numbers, got {targets[bad[0]]} in row {bad[0]}")
        return targets

    def _stand_in(self, values: npt.NDArray[np.float64], calibration: Any) -> OutOfFoldRegressor:
        return OutOfFoldRegressor(values)


@estimator(splitter="KFold", score="the negative mean pinball loss")
class KernelQuantile(_KernelRegressor):
    """Kernel quantile regression of one or several levels τ, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ max(τ rᵢ, (τ − 1) rᵢ)  +  ½ βᵀKβ,     r = y − f,     f = Kβ + b,

    on one kernel matrix K shared by all levels, all folds, all C's and the refit. A duality gap, computed apart from
    the solver, bounds how far each model is from its optimum.

    With a float τ the attributes have the shapes below. With a sequence, those of the models gain a leading axis for
    the levels: `C_` has shape (n_taus,), `scores_` (n_taus, n_folds, n_Cs), `dual_coef_` (n_taus, n_SV),
    `oof_decision_` (n_taus, n_samples); `support_` are the rows with β ≠ 0 at any level, and `cv_results_` is a list.

    Parameters
    ----------
    tau : float or sequence of float, default=0.5
        Levels in (0, 1), in any order, no two equal. Each level chooses its own C by its own scores.
    noncrossing : {"sort"} or None, default=None
        Levels are fitted apart, so that where data is scarce a higher quantile may fall below a lower one. "sort" puts
        the predictions of each row into the order of the levels, which never raises the mean pinball loss.
    {parameters}

    Attributes
    ----------
    {attributes}
    tau_ : list of float
        The levels.
    n_crossings_ : int
        Training rows at which the fitted quantiles cross: with the levels in ascending order, the value of at least
        one is below that of the one before it. Counted before any sorting.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelpath import KernelQuantile
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (200, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(200)
    >>> model = KernelQuantile(tau=[0.1, 0.5, 0.9], Cs=10, noncrossing="sort", random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (200, 3)
    """

    def __init__(self, *, tau: Any = 0.5, noncrossing: str | None = None, **shared: Unpack[Parameters]) -> None:
        super().__init__(**shared)
        self.tau = tau
        self.noncrossing = noncrossing

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # the score is at most 0, and no R²
        return tags

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Predicted quantiles.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_taus) for a sequence of levels
            Column k is the quantile of level ``tau[k]``.
        """
        quantiles = self._decision_values(X)
        if not self._has_loss_axis:
            return quantiles[:, 0]
        if self.noncrossing is not None:
            quantiles[:, np.argsort(self.tau_)] = np.sort(quantiles, axis=1)
        return quantiles

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean over the levels of the score by `scoring`; if that is None, of the negative mean pinball loss.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows, or K(X, X_train) of shape (n_samples, n_train) when ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
        """
        scorer, extra = make_scorer(self.scoring), weighted(y, sample_weight)
        quantiles = self.predict(X).reshape(-1, len(self.tau_)).T
        if scorer is None:
            losses = [mean_pinball_loss(y, q, alpha=tau, **extra) for tau, q in zip(self.tau_, quantiles, strict=True)]
            return -float(np.mean(losses))
        return float(np.mean([scorer(OutOfFoldRegressor(q), X, y, **extra) for q in quantiles]))

    def _losses(self) -> Loss | list[Loss]:
        if self.noncrossing is not None:
            choice("noncrossing", self.noncrossing, ("sort",))
        if isinstance(self.tau, Real):
            self.tau_ = [level("tau", self.tau)]
            return "quantile", self.tau_[0]
        self.tau_ = levels("tau", self.tau)
        return [("quantile", tau) for tau in self.tau_]

    def _heading(self, k: int) -> str:
        return f"tau={self.tau_[k]:g}" if self._has_loss_axis else ""

    def _keep_model(self, tuned: list[Tuned], X: Any, y: Any, rows: Any, n_rows: int) -> None:
        super()._keep_model(tuned, X, y, rows, n_rows)
        self.n_crossings_ = 0
        if len(self.tau_) > 1:
            columns = self.support_ if rows is None else np.searchsorted(rows, self.support_)
            ascending = self._expansion(X, columns)[:, np.argsort(self.tau_)]
            self.n_crossings_ = int(np.sum((np.diff(ascending, axis=1) < 0.0).any(axis=1)))


@estimator(splitter="KFold", score="the negative mean absolute error")
class KernelSVR(_KernelRegressor):
    """Kernel support vector regression, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ max(0, abs(yᵢ − fᵢ) − ε)  +  ½ βᵀKβ,     f = Kβ + b,

    on one kernel matrix K shared by all folds, all C's and the refit. A duality gap, computed apart from the solver,
    bounds how far each model is from its optimum.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half the width ε of the tube around f in which a row costs nothing, in the unit of y.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from kernelpath import KernelSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (200, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(200)
    >>> bool(KernelSVR(Cs=10, random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(self, *, epsilon: float = 0.1, **shared: Unpack[Parameters]) -> None:
        super().__init__(**shared)
        self.epsilon = epsilon

    def _losses(self) -> Loss:
        return "epsilon_insensitive", number("epsilon", self.epsilon, at_least=0.0)


@estimator(splitter="KFold", score="the negative mean loss")
class KernelRegressor(_KernelRegressor):
    """Kernel regression with the squared, Huber or expectile loss, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ L(yᵢ − fᵢ)  +  ½ βᵀKβ,     f = Kβ + b,

    on one kernel matrix K shared by all folds, all C's and the refit. With the squared loss this is kernel ridge
    regression with an intercept, its α = 1 / (2C). A duality gap, computed apart from the solver, bounds how far each
    model is from its optimum.

    Parameters
    ----------
    loss : {"squared", "huber", "expectile"}, default="squared"
        L(r) = r²; "huber" is r²/2 up to abs(r) = δ and δ (abs(r) − δ/2) beyond, so that outliers pull less;
        "expectile" is τ r² for r > 0 and (1 − τ) r² else.
    delta : float, default=1.0
        Where the Huber loss turns linear, in the unit of y.
    tau : float, default=0.5
        Level of the expectile, in (0, 1); 0.5 is the mean.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from kernelpath import KernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, (200, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(200)
    >>> bool(KernelRegressor(Cs=10, random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    def __init__(
        self, *, loss: str = "squared", delta: float = 1.0, tau: float = 0.5, **shared: Unpack[Parameters]
    ) -> None:
        super().__init__(**shared)
        self.loss = loss
        self.delta = delta
        self.tau = tau

    def _losses(self) -> Loss:
        constants = {
            "squared": 0.0,
            "huber": number("delta", self.delta, above=0.0),
            "expectile": level("tau", self.tau),
        }
        loss = choice("loss", self.loss, tuple(constants))
        return loss, constants[loss]


def _first_non_number(y: npt.NDArray[Any]) -> str:
    for row, value in enumerate(y):
        try:
            float(value)
        except (TypeError, ValueError):
            return f"row {row} is {value!r}"
    return "some of it is not"
