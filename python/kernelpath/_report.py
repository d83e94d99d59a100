"""A page that explains a fitted estimator."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_consistent_length, column_or_1d

from kernelpath import _core
from kernelpath._columns import named
from kernelpath._files import ModelFilesMixin, file_of
from kernelpath._pipelines import with_scaling
from kernelpath._settings import n_threads
from kernelpath._weights import checked_weights


class ReportMixin:
    """A report, for estimators that predict."""

    n_jobs: Any
    device: str
    _checked_rows: Callable[[Any], Any]

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        sample_weight: Any = None,
    ) -> None:
        """Write one HTML file that explains the fitted model: what was fitted, scores, certificates, time.

        With rows and what is true of them, it also has a confusion matrix and how often probabilities come true, or
        residuals, or the coverage of quantiles. If they are the rows of the fit, each is judged by the models that did
        not see it, and the proof of the model is recomputed as :meth:`verify` does; all other proofs on the page are
        as the fit recorded them. The file loads nothing from anywhere, and it is written whole or not at all.

        Parameters
        ----------
        path : str or path-like
            The file, by custom with the ending ``.html``.
        X : array-like or sparse matrix of shape (n_samples, n_features), optional
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), optional
            What is true of them.
        title : str, optional
            The heading; the name of the estimator unless given.
        sample_weight : array-like of shape (n_samples,), optional
            The weights of the fit, if X and y are its rows and it had weights: they are part of what is proved.
        """
        saved = file_of(self)
        if (X is None) != (y is None):
            given, missing = ("X", "y") if y is None else ("y", "X")
            raise ValueError(f"the report got {given} without {missing}: pass both, or neither")
        options: dict[str, Any] = {"title": title, "device": self.device, "n_threads": n_threads(self.n_jobs)}
        if X is None:
            _core.write_report(saved, path, **options)
            return
        rows = self._checked_rows(X)
        check_consistent_length(X, y)
        weight = checked_weights(sample_weight, len(y))
        try:
            _core.write_report(saved, path, x=rows, weight=weight, **_truth(self, y), **options)
        except ValueError as error:
            raise named(error, self, X) from None


def report(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    sample_weight: Any = None,
) -> None:
    """Write one HTML file that explains a fitted model, which may be a pipeline that scales columns.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of this library, or a fitted pipeline that scales columns and ends in one, as of
        :func:`save`.
    path, X, y, title, sample_weight : object
        As of :meth:`KernelSVC.report`; the rows X are those that the pipeline takes.

    Examples
    --------
    >>> import kernelpath, os, tempfile
    >>> from kernelpath.datasets import make_mixture
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = make_mixture(100, 5, random_state=0)
    >>> model = make_pipeline(StandardScaler(), kernelpath.KernelSVC(Cs=10)).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kernelpath.report(model, os.path.join(folder, "report.html"), X, y)
    """
    explained = with_scaling(model, ModelFilesMixin)
    if not isinstance(explained, ReportMixin):
        file_of(explained)  # says what is needed
        raise TypeError(f"a report explains an estimator that predicts, not a {type(model).__name__}")
    explained.report(path, X, y, title=title, sample_weight=sample_weight)


def _truth(model: Any, y: Any) -> dict[str, Any]:
    """What is true of the rows, as Rust reads it."""
    if is_classifier(model):
        return {"labels": column_or_1d(y).tolist()}
    numbers = np.asarray(y, dtype=np.float64)
    return {"numbers": numbers.reshape(len(numbers), -1)}
