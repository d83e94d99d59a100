"""Pictures of a fit, used as scikit-learn's displays are: calibration, scores, support vectors and certificates.

They need matplotlib (``pip install kernelpath[plot]``), which is imported when a picture is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from kernelpath._base import _KernelPathBase
from kernelpath._results import NOT_RUN, mean_and_std
from kernelpath._settings import _integer, choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["CVCurveDisplay", "CalibrationBins", "CalibrationDisplay", "GapDisplay", "SupportPathDisplay"]

Array = npt.NDArray[np.float64]

HISTOGRAM_BASE, HISTOGRAM_HEIGHT = -0.25, 0.2  # below the points, in units of probability
NARROWEST_BAR = 1e-3  # tied probabilities make bins of no width
MOST_NAMED_FOLDS = 12
SMALLEST_GAP = 1e-16  # a gap of 0 has no logarithm


@dataclass(frozen=True)
class CalibrationBins:
    """Predicted and observed frequencies in bins of the predicted probability; empty bins are left out.

    Attributes
    ----------
    low, high : ndarray of shape (n_filled_bins,)
        Ends of each bin: low ≤ p < high, the last with its upper end.
    predicted, observed : ndarray of shape (n_filled_bins,)
        Mean probability, and share of positive rows.
    count : ndarray of shape (n_filled_bins,)
        Rows in the bin.
    ece : float
        Expected calibration error, Σ (weight of the bin / weight of all) · abs(predicted − observed).
    brier : float
        Mean of (p − y)², y being 0 or 1.
    """

    low: Array
    high: Array
    predicted: Array
    observed: Array
    count: npt.NDArray[np.int64]
    ece: float
    brier: float

    @classmethod
    def of(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        sample_weight: Any = None,
    ) -> CalibrationBins:
        """Sort the rows into bins of equal width ("uniform") or of equally many rows ("quantile")."""
        _integer("n_bins", n_bins, at_least=1)
        p = _probabilities(y_prob)
        y = _is_positive(y_true, pos_label)
        w = np.ones(len(p)) if sample_weight is None else column_or_1d(sample_weight, dtype=np.float64)
        check_consistent_length(y, p, w)
        if not (np.isfinite(w).all() and w.min() >= 0.0 and w.sum() > 0.0):
            raise ValueError("sample_weight must hold finite numbers >= 0, not all 0")

        edges = np.linspace(0.0, 1.0, n_bins + 1)
        if choice("strategy", strategy, ("uniform", "quantile")) == "quantile":
            ends = np.quantile(p, edges)
            edges = np.r_[ends[0], np.unique(ends[1:-1]), ends[-1]]
        place = np.searchsorted(edges[1:-1], p, side="right")
        weight, sum_p, sum_y = (np.bincount(place, v, len(edges) - 1) for v in (w, w * p, w * y))
        filled = weight > 0.0
        predicted, observed = sum_p[filled] / weight[filled], sum_y[filled] / weight[filled]
        return cls(
            low=edges[:-1][filled],
            high=edges[1:][filled],
            predicted=predicted,
            observed=observed,
            count=np.bincount(place, minlength=len(edges) - 1)[filled],
            ece=float(np.average(np.abs(predicted - observed), weights=weight[filled])),
            brier=float(np.average((p - y) ** 2, weights=w)),
        )


class _Display:
    """Axes to draw on: those given, or those of a new figure."""

    ax_: Axes
    figure_: Figure | SubFigure

    def _start(self, ax: Axes | None) -> Axes:
        self.ax_ = new_axes() if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_


class CalibrationDisplay(_Display):
    """How often predicted probabilities come true.

    Points on the diagonal are probabilities that mean what they say. The bars below are the histogram of the
    probabilities: a point far off the diagonal matters little where they are low.

    Parameters
    ----------
    bins : CalibrationBins
        The points.
    name : str, optional
        What the legend calls the probabilities.
    pos_label : object, optional
        The class they belong to, for the axis labels.
    annotate_counts : bool, default=False
        Write the number of rows above each bar.

    Attributes
    ----------
    bins : CalibrationBins
        The points.
    ece, brier : float
        Expected calibration error, and mean squared error of the probabilities.
    ax_, figure_ : Axes, Figure
        Where it was drawn.

    Examples
    --------
    >>> from kernelpath.display import CalibrationBins
    >>> bins = CalibrationBins.of([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], n_bins=2)
    >>> bins.predicted, bins.observed, bins.ece
    (array([0.25, 0.75]), array([0., 1.]), 0.25)
    """

    def __init__(
        self,
        bins: CalibrationBins,
        *,
        name: str | None = None,
        pos_label: Any = None,
        annotate_counts: bool = False,
    ) -> None:
        self.bins = bins
        self.name = name
        self.pos_label = pos_label
        self.annotate_counts = annotate_counts

    @property
    def ece(self) -> float:
        """Expected calibration error."""
        return self.bins.ece

    @property
    def brier(self) -> float:
        """Mean of (p − y)²."""
        return self.bins.brier

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        pos_label: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> CalibrationDisplay:
        """Draw the probabilities that a fitted classifier predicts for `X`.

        Parameters
        ----------
        estimator : classifier
            Fitted, with `predict_proba`; a pipeline or any classifier of scikit-learn will do.
        X, y : array-like of shape (n_samples, n_features), (n_samples,)
            Rows that the estimator was not trained on, and their labels.
        pos_label : object, optional
            The class whose probability is drawn; the second of two by default.
        name : str, optional
            What the legend calls the probabilities; the name of the class by default.
        **options
            As of :meth:`from_predictions`.

        Returns
        -------
        CalibrationDisplay
        """
        check_is_fitted(estimator)
        kind = type(estimator).__name__
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(f"{kind} has no predict_proba; fit it with probability=True, or use KernelLogistic")
        classes = list(estimator.classes_)
        if pos_label is None:
            if len(classes) != 2:
                raise ValueError(f"{kind} has {len(classes)} classes; pass pos_label, one of {classes}")
            pos_label = classes[1]
        if pos_label not in classes:
            raise ValueError(f"pos_label={pos_label!r} is no class of {kind}; its classes: {classes}")
        y_prob = estimator.predict_proba(X)[:, classes.index(pos_label)]
        return cls.from_predictions(y, y_prob, pos_label=pos_label, name=name or kind, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        n_bins: int = 10,
        strategy: str = "uniform",
        pos_label: Any = None,
        sample_weight: Any = None,
        name: str | None = None,
        annotate_counts: bool = False,
        ax: Axes | None = None,
        **line: Any,
    ) -> CalibrationDisplay:
        """Draw probabilities against what came true.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_prob : array-like of shape (n_samples,)
            Probabilities of `pos_label`.
        n_bins : int, default=10
            Bins of the probability.
        strategy : {"uniform", "quantile"}, default="uniform"
            Bins of equal width, or of equally many rows.
        pos_label : object, optional
            The class the probabilities belong to; the greater of two labels by default.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in all means.
        name : str, optional
            What the legend calls the probabilities.
        annotate_counts : bool, default=False
            Write the number of rows above each bar.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        CalibrationDisplay
        """
        bins = CalibrationBins.of(
            y_true, y_prob, n_bins=n_bins, strategy=strategy, pos_label=pos_label, sample_weight=sample_weight
        )
        return cls(bins, name=name, pos_label=pos_label, annotate_counts=annotate_counts).plot(ax, **line)

    def plot(self, ax: Axes | None = None, **line: Any) -> CalibrationDisplay:
        """Draw on `ax`, or on a new figure; `line` goes to ``Axes.plot``."""
        ax, bins = self._start(ax), self.bins
        if "equal" not in ax.get_legend_handles_labels()[1]:  # several displays may share the axes
            ax.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1.0, label="equal")
        figures = f"ECE {self.ece:.3f}, Brier {self.brier:.3f}"
        style: dict[str, Any] = {"marker": "o", "label": "\n".join(filter(None, [self.name, figures]))} | line
        (points,) = ax.plot(bins.predicted, bins.observed, **style)

        widths = bins.high - bins.low
        density = bins.count / np.maximum(widths, NARROWEST_BAR)
        heights = HISTOGRAM_HEIGHT * density / density.max()
        bars = ax.bar(
            bins.low, heights, widths, HISTOGRAM_BASE,
            align="edge", color=points.get_color(), alpha=0.25, edgecolor="white",
        )  # fmt: skip
        if self.annotate_counts:
            ax.bar_label(bars, [f"{count}" for count in bins.count], padding=1, color="dimgrey", size="small")
        of_label = "" if self.pos_label is None else f" of {self.pos_label}"
        ax.set(
            xlabel=f"mean predicted probability{of_label}",
            ylabel=f"observed share{of_label}",
            xlim=(-0.02, 1.02),
            ylim=(HISTOGRAM_BASE, 1.02),
            yticks=np.linspace(0.0, 1.0, 6),
        )
        ax.legend(loc="upper left")
        return self


class Line(NamedTuple):
    """One line of a picture over C."""

    label: str | None
    values: Array
    error: Array | None = None  # half the height of the band around it
    C: float | None = None  # the chosen C, where this line has it


class _PathDisplay(_Display):
    """Lines over C."""

    def __init__(self, Cs: Array, lines: list[Line], *, ylabel: str) -> None:
        self.Cs = Cs
        self.lines = lines
        self.ylabel = ylabel

    def _draw(self, ax: Axes | None, style: dict[str, Any]) -> None:
        ax = self._start(ax)
        order = np.argsort(self.Cs, kind="stable")
        Cs = self.Cs[order]
        for label, values, error, C in self.lines:
            chosen = None if C is None else f"C = {C:.3g}"
            named = ", ".join(filter(None, [label, chosen]))
            (drawn,) = ax.plot(Cs, values[order], **{"marker": ".", "label": named} | style)
            colour = drawn.get_color()
            if error is not None:
                low, high = (values - error)[order], (values + error)[order]
                ax.fill_between(Cs, low, high, color=colour, alpha=0.2, linewidth=0.0)
            if C is not None:
                ax.axvline(C, color=colour, linestyle="--", linewidth=1.0)
                ax.plot(C, values[np.flatnonzero(self.Cs == C)[:1]], marker="o", markersize=8, color=colour)
        ax.set(xlabel="C", xscale="log", ylabel=self.ylabel)
        ax.legend()


class CVCurveDisplay(_PathDisplay):
    """The mean score of the folds against C.

    A band shows one standard error of the mean to either side, and a dashed line the chosen C. An estimator with
    several losses, as ``KernelQuantile(tau=[0.1, 0.9])``, has a line for each; one that tunes several bandwidths has
    a line for each, with the band around the chosen one.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        Values of C, in any order.
    lines : list of Line
        Mean scores, their standard errors and the chosen C; NaN where not run.
    ylabel : str
        What the score is.

    Attributes
    ----------
    Cs, lines, ylabel
        As given.
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    """

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, index: int | None = None, ax: Axes | None = None, **line: Any
    ) -> CVCurveDisplay:
        """Draw the scores of a fitted estimator.

        Parameters
        ----------
        estimator : kernelpath estimator
            Fitted with cross-validation; or a pipeline that ends in one.
        index : int, optional
            Which of several losses to draw; all by default.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        CVCurveDisplay
        """
        model = _fitted(estimator)
        lines = []
        for heading, scores, C in _each_loss(model, index, model.scores_, model.C_):
            if len(scores) == 0:
                raise ValueError(f"{type(model).__name__} has no scores: it was fitted with cv=None")
            mean, std = mean_and_std(scores, ddof=1)
            lines += _one_a_gamma(model, heading, mean, std / np.sqrt(len(scores)), C)
        named = model.scoring if isinstance(model.scoring, str) else None
        return cls(model.Cs_, lines, ylabel=named or _default_score(model)).plot(ax, **line)

    def plot(self, ax: Axes | None = None, **line: Any) -> CVCurveDisplay:
        """Draw on `ax`, or on a new figure; `line` goes to ``Axes.plot``."""
        self._draw(ax, line)
        return self


class SupportPathDisplay(_PathDisplay):
    """The number of support vectors of the refit against C; the chosen C is marked.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        Values of C, in any order.
    lines : list of Line
        Numbers of support vectors and the chosen C; NaN where not run.
    ylabel : str
        What is counted.

    Attributes
    ----------
    Cs, lines, ylabel
        As given.
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    """

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, index: int | None = None, ax: Axes | None = None, **line: Any
    ) -> SupportPathDisplay:
        """Draw the support vectors of a fitted estimator.

        Parameters
        ----------
        estimator : kernelpath estimator
            Fitted; or a pipeline that ends in one.
        index : int, optional
            Which of several losses to draw; all by default.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        SupportPathDisplay
        """
        model = _fitted(estimator)
        lines = []
        for heading, counts, status, C in _each_loss(model, index, model.n_support_path_, model.status_, model.C_):
            values = np.where(status[-1] == NOT_RUN, np.nan, counts)
            lines += _one_a_gamma(model, heading, values, None, C)
        # Several classes have no values over the path, but one line a row at the chosen C.
        n_rows = model.oof_path_.shape[-2] if hasattr(model, "oof_path_") else len(model.oof_decision_)
        ylabel = f"support vectors of {n_rows} rows"
        return cls(model.Cs_, lines, ylabel=ylabel).plot(ax, **line)

    def plot(self, ax: Axes | None = None, **line: Any) -> SupportPathDisplay:
        """Draw on `ax`, or on a new figure; `line` goes to ``Axes.plot``."""
        self._draw(ax, line)
        self.ax_.set_ylim(bottom=0.0)
        return self


class GapDisplay(_Display):
    """The certificates of all models: log₁₀ of the relative duality gap, for each fold and the refit, and each C.

    Blue gaps are within the tolerance, red ones are not; models that were not run, or have no gap because the kernel is
    indefinite, are grey.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,)
        Values of C, in any order.
    gaps : ndarray of shape (n_folds + 1, n_Cs)
        Relative duality gaps, the refit last; inf where not run, NaN where the kernel is indefinite.
    tol : float
        The tolerance they had to reach.
    title : str, optional
        Put above the picture.

    Attributes
    ----------
    Cs, gaps, tol, title
        As given.
    log10_gaps : masked array of shape (n_folds + 1, n_Cs)
        What is drawn, in the order of `Cs`.
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    """

    def __init__(self, Cs: Array, gaps: Array, *, tol: float, title: str | None = None) -> None:
        self.Cs = Cs
        self.gaps = gaps
        self.tol = tol
        self.title = title
        self.log10_gaps = np.ma.masked_invalid(gaps)
        self.log10_gaps = np.ma.log10(np.ma.maximum(self.log10_gaps, SMALLEST_GAP))

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, index: int | None = None, ax: Axes | None = None, **mesh: Any
    ) -> GapDisplay:
        """Draw the gaps of a fitted estimator.

        Parameters
        ----------
        estimator : kernelpath estimator
            Fitted; or a pipeline that ends in one.
        index : int, optional
            Which of several losses to draw; needed if there are several.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **mesh
            Passed to ``Axes.pcolormesh``.

        Returns
        -------
        GapDisplay
        """
        model = _fitted(estimator)
        losses = _each_loss(model, index, model.gaps_)
        if len(losses) > 1:
            raise ValueError(
                f"{type(model).__name__} has {len(losses)} losses, and a picture has the gaps of one: "
                f"pass index, 0 to {len(losses) - 1}"
            )
        ((heading, gaps),) = losses
        if gaps.ndim == 3:
            gaps = gaps[:, _chosen_gamma(model)]
        return cls(model.Cs_, gaps, tol=model.tol, title=heading).plot(ax, **mesh)

    def plot(self, ax: Axes | None = None, **mesh: Any) -> GapDisplay:
        """Draw on `ax`, or on a new figure; `mesh` goes to ``Axes.pcolormesh``."""
        ax = self._start(ax)
        from matplotlib.colors import TwoSlopeNorm

        order = np.argsort(self.Cs, kind="stable")
        edges, rows, names = _gap_rows(len(self.gaps) - 1)
        limit = float(np.log10(self.tol))
        known = self.log10_gaps.compressed()
        low, high = (float(known.min()), float(known.max())) if known.size else (limit, limit)
        norm = TwoSlopeNorm(limit, vmin=min(low, limit - 1.0), vmax=max(high, limit + 1.0))
        style: dict[str, Any] = {"cmap": "RdBu_r", "norm": norm} | mesh
        drawn = ax.pcolormesh(
            _cell_edges(self.Cs[order]),
            edges,
            self.log10_gaps[:, order],
            **style,
        )
        ax.set_facecolor("lightgrey")
        bar = self.figure_.colorbar(drawn, ax=ax)
        bar.set_label("log₁₀ relative duality gap")
        bar.ax.axhline(limit, color="black", linewidth=1.0)
        within = int(np.sum(self.gaps <= self.tol))
        unproved = int(np.isnan(self.gaps).sum())
        proved = f"{within} of {self.gaps.size} gaps are within tol = {self.tol:g}"
        if unproved:
            proved = f"the kernel is indefinite: {unproved} of {self.gaps.size} models have no certificate"
        ax.axhline(edges[-2], color="white", linewidth=2.0)
        ax.set(xlabel="C", xscale="log", title="\n".join(filter(None, [self.title, proved])))
        ax.set_yticks(rows, names)
        ax.invert_yaxis()
        return self


def new_axes(figsize: tuple[float, float] | None = None) -> Axes:
    """The axes of a new figure, of that size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("kernelpath.display draws with matplotlib: pip install kernelpath[plot]") from error
    return plt.subplots(figsize=figsize, layout="constrained")[1]


def _probabilities(y_prob: Any) -> Array:
    p = np.asarray(column_or_1d(y_prob), dtype=np.float64)
    bad = np.flatnonzero(~((p >= 0.0) & (p <= 1.0)))
    if bad.size:
        raise ValueError(f"y_prob must hold probabilities in [0, 1], got {p[bad[0]]} in row {bad[0]}")
    return p


def _is_positive(y_true: Any, pos_label: Any) -> npt.NDArray[np.bool_]:
    y = column_or_1d(y_true)
    if pos_label is None:
        labels = np.unique(y)
        if len(labels) != 2:
            raise ValueError(f"y_true has {len(labels)} different labels, not 2: pass pos_label")
        pos_label = labels[1]
    return np.asarray(y == pos_label)


def _fitted(estimator: Any) -> Any:
    """The fitted estimator itself, also where it ends a pipeline or is held by a wrapper as ``estimator_``."""
    check_is_fitted(estimator)
    if hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    model = getattr(estimator, "estimator_", estimator)
    if not isinstance(model, _KernelPathBase):
        raise TypeError(f"only estimators of kernelpath have a path to draw, got {type(estimator).__name__}")
    return model


def _each_loss(model: Any, index: int | None, *attributes: Any) -> list[tuple[Any, ...]]:
    """What sets a loss apart (None for the only one), and its part of the attributes; of all losses, or of one."""
    losses = [
        (model._heading(k).replace("tau=", "τ = ") or None, *own) for k, own in enumerate(model._by_loss(*attributes))
    ]
    if index is None:
        return losses
    if not 0 <= index < len(losses):
        raise ValueError(f"index must be 0 to {len(losses) - 1}, got {index!r}: one for each loss")
    return [losses[index]]


def _one_a_gamma(model: Any, heading: str | None, values: Array, error: Array | None, C: float) -> list[Line]:
    """One line for each bandwidth, if `values` has an axis for them; the band and the chosen C belong to one."""
    if values.ndim == 1:
        return [Line(heading, values, error, C)]
    chosen = _chosen_gamma(model)
    lines = []
    for k, gamma in enumerate(model.gammas_):
        label = ", ".join(filter(None, [heading, f"γ = {gamma:.3g}"]))
        band = error[k] if error is not None and k == chosen else None
        lines.append(Line(label, values[k], band, C if k == chosen else None))
    return lines


def _chosen_gamma(model: Any) -> int:
    return int(np.argmin(np.abs(np.asarray(model.gammas_) - model.gamma_)))


def _default_score(model: Any) -> str:
    return "score" if model.scoring is not None else model._score_name


def _cell_edges(Cs: Array) -> Array:
    """Ends of the cells around ascending values of C, halfway between them on a logarithmic axis."""
    logs = np.log(Cs)
    steps = np.diff(logs) if len(Cs) > 1 else np.array([1.0])
    middles = logs[:-1] + np.diff(logs) / 2.0
    return np.exp(np.r_[logs[0] - steps[0] / 2.0, middles, logs[-1] + steps[-1] / 2.0])


def _gap_rows(n_folds: int) -> tuple[Array, list[float], list[str]]:
    """Edges of the rows of a heat map, and where and how they are named: of many folds the first and the last."""
    refit_height = max(1.0, n_folds / 8.0)  # a line among 1000 folds would not be seen
    edges = np.r_[np.arange(n_folds + 1.0), n_folds + refit_height]
    named = list(range(n_folds)) if n_folds <= MOST_NAMED_FOLDS else [0, n_folds - 1]
    places = [*(k + 0.5 for k in named), n_folds + refit_height / 2.0]
    return edges, places, [*(f"fold {k}" for k in named), "refit"]
