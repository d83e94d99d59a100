"""scikit-learn scorers, applied to out-of-fold decision values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer

Scorer = Callable[[Any, Any, Any], float]


class OutOfFold(ClassifierMixin, BaseEstimator):
    """Stands in for the model of one fold: it answers with the decision values of the held-out rows."""

    def __init__(self, decision: npt.NDArray[np.float64], classes: npt.NDArray[Any]) -> None:
        self.decision = decision
        self.classes_ = classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Decision values of the held-out rows, which must be passed as they are."""
        if len(X) != len(self.decision):
            raise ValueError(
                f"a scorer must predict the {len(self.decision)} held-out rows it is given, not {len(X)} others"
            )
        return self.decision

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predicted labels of the held-out rows."""
        return predicted_labels(self.decision_function(X), self.classes_)


def predicted_labels(decision: npt.NDArray[np.float64], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The second class where the decision value is > 0."""
    return classes[(decision > 0.0).astype(np.intp)]


def make_scorer(scoring: Any) -> Scorer | None:
    """Scorer for `scoring`; None stands for the score of the loss itself (accuracy), computed in Rust."""
    if scoring is None or callable(scoring):
        return scoring
    if isinstance(scoring, str):
        return get_scorer(scoring)
    raise TypeError(f"scoring must be None, the name of a scorer or a callable, got {scoring!r}")


def score_folds(
    scorer: Scorer,
    held_out: Iterable[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]],
    X: Any,
    y: Any,
    stand_in: Callable[[npt.NDArray[np.float64]], Any],
) -> npt.NDArray[np.float64]:
    """Scores (n_folds, n_Cs) from the (test rows, decision values) of each fold; NaN where not run."""
    return np.array(
        [
            [_score(scorer, stand_in, column, X_test, y_test) for column in decision.T]
            for rows, decision in held_out
            for X_test, y_test in [(X[rows], y[rows])]
        ]
    )


def _score(scorer: Scorer, stand_in: Callable[[Any], Any], decision: Any, X: Any, y: Any) -> float:
    if np.isnan(decision).any():
        return np.nan
    try:
        return float(scorer(stand_in(decision), X, y))
    except AttributeError as error:
        if "predict_proba" not in str(error):
            raise
        raise ValueError(
            f"{scorer!r} needs predict_proba, which is not available yet; "
            "use a scorer of labels or decision values, such as 'balanced_accuracy' or 'roc_auc'"
        ) from error
