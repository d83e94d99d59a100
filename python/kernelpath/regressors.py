"""Regressors: quantiles, ε-insensitive support vector regression, and squared, Huber and expectile losses."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import mean_pinball_loss

from kernelpath import _core
from kernelpath._folds import Folds
from kernelpath._machines import Machines, Parts, Task
from kernelpath._scoring import OutOfFoldRegressor, Scorer, as_taken, make_scorer, weighted
from kernelpath._settings import Loss, Settings, choice, level, levels
from kernelpath._shared import Parameters, estimator
from kernelpath._targets import RegressorBase, TargetsBase, auto_or_number, encoded
from kernelpath._tuning import HeldOut
from kernelpath._weights import Weights

if TYPE_CHECKING:
    from typing import Unpack

# What "auto" stands for, in units of the spread of the targets. The usual δ is 1.35 times the spread of the residuals,
# and that is 0.7 for a model that explains half of the variance.
AUTO_EPSILON = 0.1
AUTO_DELTA = 1.0


@estimator(splitter="KFold", score="the negative mean pinball loss")
class KernelQuantile(RegressorBase):
    """Kernel quantile regression of one or several levels τ, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ max(τ rᵢ, (τ − 1) rᵢ)  +  ½ βᵀKβ,     r = y − f,     f = Kβ + b,

    on one kernel matrix K shared by all levels, all folds, all C's and the refit. A duality gap, computed apart from
    the solver, bounds how far each model is from its optimum.

    With a float τ the attributes have the shapes below. With a sequence, those of the models gain a leading axis for
    the levels: `C_` has shape (n_taus,), `scores_` (n_taus, n_folds, n_Cs), `dual_coef_` (n_taus, n_SV),
    `oof_decision_` (n_taus, n_samples); `support_` are the rows with β ≠ 0 at any level, and `cv_results_` is a list.

    The spread of y is 1.4826 times the median absolute deviation from the median, which is the standard deviation of
    normal targets. An integer `Cs` is a grid from 1e-3 to 1e3 times it, so that the unit of y changes nothing: of c·y
    the predictions are c times those of y.

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

    # Whether predictions are put into the order of the levels; set by `fit`.
    _is_sorted: bool = False

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
        if not self._parts.has_axis:
            return quantiles[:, 0]
        if self._is_sorted:
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
        extra = as_taken(scorer, extra)
        return float(np.mean([scorer(OutOfFoldRegressor(q), X, y, **extra) for q in quantiles]))

    def _checked_training(self, X: Any, y: Any, reset: bool = True) -> Any:
        shape: Any = np.shape(y) if isinstance(y, list | tuple) else getattr(y, "shape", ())
        if len(shape) == 2 and shape[1] > 1:
            raise ValueError(
                f"KernelQuantile takes one column of targets, and y has {shape[1]}: attributes such as C_ have an axis "
                "for the levels tau, and have none for targets. Fit a model for each column, as by "
                "MultiOutputRegressor(KernelQuantile(...)) of scikit-learn"
            )
        return super()._checked_training(X, y, reset)

    def _check_parameters(self) -> None:
        if self.noncrossing is not None:
            choice("noncrossing", self.noncrossing, ("sort",))

    def _make_machines(self, y: npt.NDArray[Any], weight: Weights | None, settings: Settings) -> Machines:
        is_one = isinstance(self.tau, Real)
        self.tau_ = [level("tau", self.tau)] if is_one else levels("tau", self.tau)
        targets = encoded(y)
        factor = _core.spread(targets, weight) if settings.grid_is_default else 1.0
        names = () if is_one else tuple(f"tau={tau:g}" for tau in self.tau_)
        return Machines([Task("quantile", tau, targets, weight, c_factor=factor) for tau in self.tau_], Parts(names))

    def _scored_by(self, scorer: Scorer, X: Any, y: Any, weight: Weights | None, folds: Folds) -> HeldOut:
        return replace(super()._scored_by(scorer, X, y, weight, folds), targets=[y] * len(self.tau_))

    def _keep_model(self, fit: _core.Fit, X: Any, y: Any, rows: Any) -> None:
        super()._keep_model(fit, X, y, rows)
        if self._parts.has_axis and self.noncrossing is not None:
            self._is_sorted = True
        self.n_crossings_ = 0
        if len(self.tau_) > 1:
            columns = self.support_ if rows is None else np.searchsorted(rows, self.support_)
            ascending = self._expansion(X, columns)[:, np.argsort(self.tau_)]
            self.n_crossings_ = int(np.sum((np.diff(ascending, axis=1) < 0.0).any(axis=1)))


@estimator(splitter="KFold", score="the negative mean absolute error")
class KernelSVR(TargetsBase):
    """Kernel support vector regression, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ max(0, abs(yᵢ − fᵢ) − ε)  +  ½ βᵀKβ,     f = Kβ + b,

    on one kernel matrix K shared by all folds, all C's and the refit. A duality gap, computed apart from the solver,
    bounds how far each model is from its optimum.

    The spread of y is 1.4826 times the median absolute deviation from the median, which is the standard deviation of
    normal targets. An integer `Cs` is a grid from 1e-3 to 1e3 times it, so that the unit of y changes nothing: of c·y
    the predictions are c times those of y.

    Several targets are the columns of y, all on one kernel matrix. Attributes of the models then have a leading axis
    for the targets: `Cs_` has shape (n_targets, n_Cs), `C_` (n_targets,), `gaps_` (n_targets, n_folds + 1, n_Cs),
    `dual_coef_` (n_targets, n_SV), `oof_decision_` (n_targets, n_samples); with ``tune="each"`` `scores_`,
    `best_index_` and `best_score_`, too, and `cv_results_` is a list. With ``tune="joint"`` `cv_results_` has the C's
    of the first target.

    Parameters
    ----------
    epsilon : float or "auto", default="auto"
        Half the width ε of the tube around f in which a row costs nothing, in the unit of y. "auto" is 0.1 times the
        spread of y.
    tune : {"joint", "each"}, default="joint"
        Several targets: one place in the grid for all, by the mean of their scores, each in units of the target's
        spread; or for each target its own C, by its own scores, as in separate fits (γ is one for all).
    {parameters}

    Attributes
    ----------
    {attributes}
    epsilon_ : float or ndarray of shape (n_targets,)
        The ε used.

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

    def __init__(self, *, epsilon: Any = "auto", tune: str = "joint", **shared: Unpack[Parameters]) -> None:
        super().__init__(**shared)
        self.epsilon = epsilon
        self.tune = tune

    _score_growth = 1

    def _loss_of(self, unit: float) -> Loss:
        return "epsilon_insensitive", auto_or_number("epsilon", self.epsilon, AUTO_EPSILON, unit, at_least=0.0)

    def _grid_factor(self, unit: float, settings: Settings) -> float:
        return unit if settings.grid_is_default else 1.0

    def _keep_constants(self, constants: Any) -> None:
        self.epsilon_ = constants


@estimator(splitter="KFold", score="the negative mean loss")
class KernelRegressor(TargetsBase):
    """Kernel regression with the squared, Huber or expectile loss, trained and tuned in one call.

    For each C of a path and each fold it solves, exactly,

        minimise over β, b:   C · Σᵢ L(yᵢ − fᵢ)  +  ½ βᵀKβ,     f = Kβ + b,

    on one kernel matrix K shared by all folds, all C's and the refit. With the squared loss this is kernel ridge
    regression with an intercept, its α = 1 / (2C). A duality gap, computed apart from the solver, bounds how far each
    model is from its optimum. Predictions for c·y are c times those for y.

    Several targets are the columns of y, all on one kernel matrix. Attributes of the models then have a leading axis
    for the targets: `Cs_` has shape (n_targets, n_Cs), `C_` (n_targets,), `gaps_` (n_targets, n_folds + 1, n_Cs),
    `dual_coef_` (n_targets, n_SV), `oof_decision_` (n_targets, n_samples); with ``tune="each"`` `scores_`,
    `best_index_` and `best_score_`, too, and `cv_results_` is a list. With ``tune="joint"`` `cv_results_` has the C's
    of the first target.

    Parameters
    ----------
    loss : {"squared", "huber", "expectile"}, default="squared"
        L(r) = r²; "huber" is r²/2 up to abs(r) = δ and δ (abs(r) − δ/2) beyond, so that outliers pull less;
        "expectile" is τ r² for r > 0 and (1 − τ) r² else.
    delta : float or "auto", default="auto"
        Where the Huber loss turns linear, in the unit of y. "auto" is the spread of y.
    tau : float, default=0.5
        Level of the expectile, in (0, 1); 0.5 is the mean.
    tune : {"joint", "each"}, default="joint"
        Several targets: one place in the grid for all, by the mean of their scores, each in units of the target's
        spread; or for each target its own C, by its own scores, as in separate fits (γ is one for all).
    {parameters}

    Attributes
    ----------
    {attributes}
    delta_ : float, ndarray of shape (n_targets,) or None
        The δ used; None but for the Huber loss.

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
        self,
        *,
        loss: str = "squared",
        delta: Any = "auto",
        tau: float = 0.5,
        tune: str = "joint",
        **shared: Unpack[Parameters],
    ) -> None:
        super().__init__(**shared)
        self.loss = loss
        self.delta = delta
        self.tau = tau
        self.tune = tune

    _score_growth = 2

    def _loss_of(self, unit: float) -> Loss:
        constants = {
            "squared": 0.0,
            "huber": auto_or_number("delta", self.delta, AUTO_DELTA, unit, above=0.0),
            "expectile": level("tau", self.tau),
        }
        loss = choice("loss", self.loss, tuple(constants))
        return loss, constants[loss]

    def _keep_constants(self, constants: Any) -> None:
        self.delta_ = constants if self.loss == "huber" else None
