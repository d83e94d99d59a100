"""scikit-learn scorers, applied to out-of-fold values."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _num_samples

from kernelpath._columns import check_container

Scorer = Callable[..., float]


class ScoredMixin:
    """`score` by the parameter `scoring`."""

    scoring: Any

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score of the predictions: by `scoring`; if that is None, a classifier's accuracy or a regressor's R².

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
        if scorer is None:
            return super().score(X, y, sample_weight)  # type: ignore[misc]
        model = copy.copy(self)
        model.scoring = None  # for a scorer that asks for `score`
        return float(scorer(model, X, y, **as_taken(scorer, extra)))


class OutOfFold(BaseEstimator):
    """Stands in for the model of one fold: it answers with the values f of the held-out rows."""

    scorers_that_fit: str

    def __init__(self, values: npt.NDArray[np.float64]) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _values(self, X: Any) -> npt.NDArray[np.float64]:
        """The values of the held-out rows, which must be passed as they are."""
        n_rows = _num_samples(X)
        if n_rows != len(self.values):
            raise ValueError(
                f"a scorer must predict the {len(self.values)} held-out rows it is given, not {n_rows} others"
            )
        return self.values


class OutOfFoldRegressor(RegressorMixin, OutOfFold):
    """Predicts the values themselves."""

    scorers_that_fit = "a scorer of predicted numbers, such as 'r2' or 'neg_mean_absolute_error'"

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Predicted targets of the held-out rows."""
        return self._values(X)


class OutOfFoldClassifier(ClassifierMixin, OutOfFold):
    """Predicts labels from decision values: one a row for two classes, else one a class."""

    scorers_that_fit = (
        "probability=True, KernelLogistic, or a scorer of labels or decision values, such as 'balanced_accuracy' or "
        "'roc_auc'"
    )

    def __init__(self, values: npt.NDArray[np.float64], classes: npt.NDArray[Any]) -> None:
        super().__init__(values)
        self.classes_ = classes

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Decision values of the held-out rows."""
        return self._values(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predicted labels of the held-out rows."""
        return predicted_labels(self._values(X), self.classes_)


class OutOfFoldProbabilities(OutOfFoldClassifier):
    """Predicts probabilities, too, which are computed when they are asked for."""

    def __init__(
        self,
        values: npt.NDArray[np.float64],
        classes: npt.NDArray[Any],
        proba: Callable[[], npt.NDArray[np.float64]],
    ) -> None:
        super().__init__(values, classes)
        self.proba = proba

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probabilities of the classes for the held-out rows."""
        self._values(X)
        return self.proba()


def predicted_labels(decision: npt.NDArray[np.float64], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The second class where the decision value is > 0; of several classes, that of the largest."""
    if decision.ndim == 2:
        return classes[decision.argmax(axis=1)]
    return classes[(decision > 0.0).astype(np.intp)]


def make_scorer(scoring: Any) -> Scorer | None:
    """Scorer for `scoring`; None stands for the score of the loss itself, computed in Rust."""
    if scoring is None:
        return None
    if callable(scoring):
        _check_is_no_metric(scoring)
        return scoring
    if isinstance(scoring, str):
        return get_scorer(scoring)
    raise TypeError(f"scoring must be None, the name of a scorer or a callable, got {scoring!r}")


def _check_is_no_metric(scoring: Callable[..., Any]) -> None:
    """Refuse a metric of scikit-learn, ``metric(y_true, y_pred)``, which is no scorer."""
    module = getattr(scoring, "__module__", None) or ""
    if module.startswith("sklearn.metrics.") and not module.startswith("sklearn.metrics._scorer"):
        name = getattr(scoring, "__name__", repr(scoring))
        raise ValueError(
            f"scoring={name} compares labels or targets with predictions, and a scorer is called as "
            f"scorer(estimator, X, y): pass scoring=make_scorer({name}), with make_scorer from sklearn.metrics, or the "
            "name of a scorer"
        )


def takes_weights(scorer: Scorer) -> bool:
    """Whether a scorer is given the weights of the rows, as in ``GridSearchCV``.

    It is if its metric, or the function itself, has the parameter ``sample_weight``, and metadata routing was not told
    otherwise. Of one that does not take them, a warning says so.
    """
    if hasattr(scorer, "get_metadata_routing"):
        requests = getattr(get_routing_for_object(scorer), "score", None)
        requested = getattr(requests, "requests", {}).get("sample_weight")
        if isinstance(requested, bool):
            return requested
    function = getattr(scorer, "_score_func", scorer)
    try:
        takes = "sample_weight" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some functions written in C have no signature
        takes = False
    if not takes:
        warnings.warn(
            f"scoring={scorer!r} does not take sample_weight, so that scores count every row once, though the fit "
            "weighs rows",
            UserWarning,
            stacklevel=2,
        )
    return takes


def as_taken(scorer: Scorer, weights: dict[str, Any]) -> dict[str, Any]:
    """The weights, if there are any and the scorer takes them."""
    return weights if weights and takes_weights(scorer) else {}


def weighted(y: Any, sample_weight: Any) -> dict[str, Any]:
    """Weights as a scorer takes them: none are no argument, since not every scorer takes it."""
    check_container("y", y)
    check_container("sample_weight", sample_weight)
    return {} if sample_weight is None else {"sample_weight": sample_weight}


def score_folds(
    scorer: Scorer,
    held_out: Iterable[tuple[npt.NDArray[np.int64], Iterable[npt.NDArray[np.float64]]]],
    X: Any,
    y: Any,
    weight: npt.NDArray[np.float64] | None,
    stand_in: Callable[[npt.NDArray[np.float64], int], Any],
) -> npt.NDArray[np.float64]:
    """Scores (n_folds, n_Cs) from the (test rows, values at each C) of each fold; NaN where not run.

    `stand_in` makes the model of a fold from its values and the position of C.
    Scorers get the weights of the rows, if there are any and they take them.
    """
    weighs = weight is not None and takes_weights(scorer)
    return np.array(
        [
            [
                np.nan if np.isnan(column).any() else _score(scorer, stand_in(column, k), X_test, y_test, extra)
                for k, column in enumerate(values)
            ]
            for rows, values in held_out
            for X_test, y_test in [(X[rows], y[rows])]
            for extra in [{"sample_weight": weight[rows]} if weighs else {}]  # type: ignore[index]
        ]
    )


def _score(scorer: Scorer, model: Any, X: Any, y: Any, extra: dict[str, Any]) -> float:
    try:
        return float(scorer(model, X, y, **extra))
    except AttributeError as error:
        if "predict_proba" not in str(error):
            raise
        raise ValueError(
            f"{scorer!r} needs predict_proba, which the model of a fold does not have; use {model.scorers_that_fit}"
        ) from error
