"""Pictures of a fit, used as scikit-learn's displays are: calibration, scores, support vectors and certificates.

They need matplotlib (``pip install kernelpath[plot]``), which is imported when a picture is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from kernelpath._base import _KernelPathBase
from kernelpath._results import NOT_RUN, FoldScores
from kernelpath._settings import _integer, _require_integer, choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.transforms import Bbox

__all__ = [
    "CVCurveDisplay",
    "CalibrationBins",
    "CalibrationDisplay",
    "GapDisplay",
    "SupportPathDisplay",
    "SurfaceDisplay",
]

Array = npt.NDArray[np.float64]

HISTOGRAM_BASE, HISTOGRAM_HEIGHT = -0.25, 0.2  # below the points, in units of probability
NARROWEST_BAR = 1e-3  # tied probabilities make bins of no width
MOST_NAMED_ROWS = 12  # of a heat map
MOST_NAMED_LINES = 10  # as many as matplotlib has colours; a longer legend would leave no room for the axes
MOST_LEGEND_COLUMNS = 4
LEGEND_GAP = 4.0  # points between the axis label and the legend
DIAGONAL, BAND = "perfectly calibrated", "± 1 standard error"
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

    def _is_new(self, label: str) -> bool:
        """Whether the axes do not have that label yet: several displays may share them."""
        return label not in self.ax_.get_legend_handles_labels()[1]

    def _legend(self) -> None:
        """A legend below the axes, where it covers no point, in as many columns as fit the width."""
        from matplotlib.transforms import ScaledTranslation

        ax, figure = self.ax_, self.figure_
        entries = len(ax.get_legend_handles_labels()[1])
        if entries == 0:
            return
        axes, labels = ax.get_window_extent(), ax.xaxis.get_tightbbox()
        drop = 0.0 if labels is None else max(axes.y0 - labels.y0, 0.0)
        move = ScaledTranslation(0.0, -drop / figure.dpi - LEGEND_GAP / 72.0, figure.dpi_scale_trans)
        has_layout = figure.get_layout_engine() is not None
        # A layout engine widens the axes that it has not seen yet.
        widest = min(1.15 * axes.width, 0.9 * figure.bbox.width) if has_layout else axes.width
        for columns in range(min(entries, MOST_LEGEND_COLUMNS), 0, -1):
            legend = ax.legend(
                loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=ax.transAxes + move,
                borderaxespad=0.0, ncols=columns,
            )  # fmt: skip
            size = legend.get_window_extent()
            if size.width <= widest:
                break
        if not has_layout:
            ax.set_axes_locator(_AboveLegend(ax, (axes.y0 - size.y0) / figure.dpi))


@dataclass(frozen=True)
class _AboveLegend:
    """Places axes in their part of a figure without a layout engine so that all below them has room in it, too."""

    ax: Axes
    room: float  # inches

    def __call__(self, ax: Any, renderer: Any) -> Bbox:
        place = ax.get_position(original=True)
        place.y0 += min(self.room * ax.figure.dpi / ax.figure.bbox.height, 0.8 * place.height)
        return place

    def get_subplotspec(self) -> Any:
        """The part of the figure, which a later ``tight_layout`` asks for."""
        return self.ax.get_subplotspec()


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
        if not hasattr(estimator, "classes_"):
            raise ValueError(f"{kind} is no classifier, and only classifiers have probabilities to draw")
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
        if self._is_new(DIAGONAL):
            ax.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1.0, label=DIAGONAL)
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
        of_label = "" if self.pos_label is None else _plain(f" of {self.pos_label}")
        ax.set(
            xlabel=f"mean predicted probability{of_label}",
            ylabel=f"observed share{of_label}",
            xlim=(-0.02, 1.02),
            ylim=(HISTOGRAM_BASE, 1.02),
            yticks=np.linspace(0.0, 1.0, 6),
        )
        self._legend()
        return self


class Line(NamedTuple):
    """One line of a picture over C."""

    label: str | None
    values: Array
    error: Array | None = None  # half the height of the band around it
    C: float | None = None  # the chosen C, where this line has it


class _PathDisplay(_Display):
    """Lines over C.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,) or (n_lines, n_Cs)
        Values of C, in any order: of all lines, or of each.
    lines : list of Line
        What is drawn.
    ylabel, xlabel : str
        Names of the axes.
    """

    def __init__(self, Cs: Array, lines: list[Line], *, ylabel: str, xlabel: str = "C") -> None:
        self.Cs = Cs
        self.lines = lines
        self.ylabel = ylabel
        self.xlabel = xlabel

    def _draw(self, ax: Axes | None, style: dict[str, Any]) -> None:
        ax = self._start(ax)
        grids = np.broadcast_to(self.Cs, (len(self.lines), self.Cs.shape[-1]))
        styles = [{"marker": "."} | own | style for own in self._own_styles()]
        bands, chosen = [], []
        for Cs, line, own_style in zip(grids, self.lines, styles, strict=True):
            order = np.argsort(Cs, kind="stable")
            (drawn,) = ax.plot(Cs[order], line.values[order], **own_style)
            if line.error is not None and np.isfinite(line.error).any() and not self._has_many_lines():
                low, high = (line.values - line.error)[order], (line.values + line.error)[order]
                bands.append(ax.fill_between(Cs[order], low, high, color=drawn.get_color(), alpha=0.2, linewidth=0.0))
            if line.C is not None:
                chosen.append((line.C, line.values[np.flatnonzero(Cs == line.C)[0]], drawn.get_color()))
        for C in dict.fromkeys(C for C, _, _ in chosen):
            colours = [colour for other, _, colour in chosen if other == C]
            colour = colours[0] if len(colours) == 1 else "grey"
            label = f"C = {C:.3g}" if self._shared_C() else None
            ax.axvline(C, color=colour, linestyle="--", linewidth=1.0, label=label)
        for C, value, colour in chosen:
            ax.plot(C, value, marker="o", markersize=8, color=colour)
        if bands and self._is_new(BAND):
            # A grey patch stands for the bands of several colours.
            only = bands[0] if len(bands) == 1 else ax.fill_between([], [], color="grey", alpha=0.3, linewidth=0.0)
            only.set_label(BAND)
        ax.set(xlabel=self.xlabel, xscale="log", ylabel=self.ylabel)
        self._legend()

    def _has_many_lines(self) -> bool:
        """Whether there are more lines than a legend can name and a reader can tell apart."""
        return len(self.lines) > MOST_NAMED_LINES

    def _shared_C(self) -> bool:
        """Whether all lines that have a chosen C have the same one."""
        return len({line.C for line in self.lines if line.C is not None}) == 1

    def _own_styles(self) -> Iterable[dict[str, Any]]:
        """Label and colour of each line; of too many for a legend, the first and the last are named."""
        for k, line in enumerate(self.lines):
            own_C = None if line.C is None or self._shared_C() else f"C = {line.C:.3g}"
            label = ", ".join(filter(None, [line.label, own_C]))
            if not self._has_many_lines():
                yield {"label": label}
                continue
            from matplotlib import colormaps

            is_named = k in (0, len(self.lines) - 1)
            colour = colormaps["viridis"](k / (len(self.lines) - 1))
            yield {"label": label if is_named else "", "color": colour, "linewidth": 1.0}


class CVCurveDisplay(_PathDisplay):
    """The mean score of the folds against C.

    A band shows one standard error of the mean to either side, and a dashed line the chosen C. Levels τ, targets, and
    machines of several classes with ``tune="each"`` have a line each, at the chosen γ. A single one of them has a line
    for each γ, with the band around the chosen one. More than ten lines have no bands.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,) or (n_lines, n_Cs)
        Values of C, in any order: of all lines, or of each.
    lines : list of Line
        Mean scores, their standard errors and the chosen C; NaN where not run.
    ylabel : str
        What the score is.
    xlabel : str, default="C"
        What the lines go over.

    Attributes
    ----------
    Cs, lines, ylabel, xlabel
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
            Which of several levels, targets or machines to draw; all by default.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        CVCurveDisplay
        """
        fit = _Fit.of(estimator, index, scored=True)
        mean, error = fit.scores()
        return cls(*fit.lines(mean, error), ylabel=fit.score_name(), xlabel=fit.xlabel()).plot(ax, **line)

    def plot(self, ax: Axes | None = None, **line: Any) -> CVCurveDisplay:
        """Draw on `ax`, or on a new figure; `line` goes to ``Axes.plot``."""
        self._draw(ax, line)
        return self


class SupportPathDisplay(_PathDisplay):
    """The number of support vectors of the refit against C; the chosen C is marked.

    Levels τ, targets and the machines of several classes have a line each, at the chosen γ. A single one of them has a
    line for each γ. With ``low_rank=True`` the landmarks take the place of the support vectors.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,) or (n_lines, n_Cs)
        Values of C, in any order: of all lines, or of each.
    lines : list of Line
        Numbers of support vectors and the chosen C; NaN where not run.
    ylabel : str
        What is counted.
    xlabel : str, default="C"
        What the lines go over.

    Attributes
    ----------
    Cs, lines, ylabel, xlabel
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
            Which of several levels, targets or machines to draw; all by default.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        SupportPathDisplay
        """
        fit = _Fit.of(estimator, index)
        counts = np.where(fit.array("status_")[:, -1] == NOT_RUN, np.nan, fit.array("n_support_path_"))
        low_rank = hasattr(fit.model, "landmarks_")
        ylabel = "landmarks with β ≠ 0" if low_rank else f"support vectors of {fit.n_rows()} rows"
        return cls(*fit.lines(counts), ylabel=ylabel, xlabel=fit.xlabel()).plot(ax, **line)

    def plot(self, ax: Axes | None = None, **line: Any) -> SupportPathDisplay:
        """Draw on `ax`, or on a new figure; `line` goes to ``Axes.plot``."""
        self._draw(ax, line)
        self.ax_.set_ylim(bottom=0.0)
        return self


class _HeatMapDisplay(_Display):
    """A coloured cell for each C, and something else."""

    Cs: Array

    def _columns(self) -> tuple[npt.NDArray[np.intp], Array]:
        """Which C's are drawn, in ascending order, and where: C's of several lines stand at their place in these."""
        if self.Cs.ndim == 2:
            n_Cs = self.Cs.shape[1]
            return np.arange(n_Cs), np.arange(1.0, n_Cs + 1.0)
        # Equal values of C have equal models.
        Cs, first = np.unique(self.Cs, return_index=True)
        return first, Cs

    def _mesh(self, ax: Axes, y_edges: Array, values: Array, style: dict[str, Any], label: str) -> Colorbar:
        """Draw the cells, NaN and masked ones in grey, with a colour bar."""
        columns, at = self._columns()
        is_log = self.Cs.ndim == 1
        x_edges = _cell_edges(at) if is_log else np.r_[at - 0.5, at[-1] + 0.5]
        drawn = ax.pcolormesh(x_edges, y_edges, np.ma.masked_invalid(values[:, columns]), **style)
        ax.set_facecolor("lightgrey")
        ax.set(xlabel="C" if is_log else "place of C in its line of Cs_", xscale="log" if is_log else "linear")
        bar = self.figure_.colorbar(drawn, ax=ax)
        bar.set_label(label)
        return bar


class SurfaceDisplay(_HeatMapDisplay):
    """The mean score of the folds over C and γ; a ring marks the chosen place.

    Of several levels τ, targets, or machines with ``tune="each"`` the colour is the mean of their scores, and the C of
    each has a ring. Models that were not run are grey.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,) or (n_parts, n_Cs)
        Values of C, in any order: of all parts, or of each level, target or machine.
    gammas : ndarray of shape (n_gammas,) or None
        Values of γ, in any order; None if the kernel has none.
    scores : ndarray of shape (n_gammas, n_Cs)
        Mean scores; NaN where not run.
    chosen : list of tuple of int
        Places (γ, C) of the chosen models in `scores`.
    score_name : str
        What the score is, for the colour bar.
    title : str, optional
        Put above the picture.

    Attributes
    ----------
    Cs, gammas, scores, chosen, score_name, title
        As given.
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    """

    def __init__(
        self,
        Cs: Array,
        gammas: Array | None,
        scores: Array,
        *,
        chosen: list[tuple[int, int]],
        score_name: str,
        title: str | None = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.scores = scores
        self.chosen = chosen
        self.score_name = score_name
        self.title = title

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, index: int | None = None, ax: Axes | None = None, **mesh: Any
    ) -> SurfaceDisplay:
        """Draw the scores of a fitted estimator.

        Parameters
        ----------
        estimator : kernelpath estimator
            Fitted with cross-validation; or a pipeline that ends in one.
        index : int, optional
            Which of several levels, targets or machines to draw; the mean of all by default.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **mesh
            Passed to ``Axes.pcolormesh``.

        Returns
        -------
        SurfaceDisplay
        """
        fit = _Fit.of(estimator, index, scored=True)
        mean, _ = fit.scores()
        gamma = fit.model.gamma_
        at_gamma = "" if gamma is None else f", γ = {gamma:.3g}"
        if len(fit.parts) == 1:
            (heading,), (C,) = fit.names(), fit.C()
            title = "\n".join(filter(None, [heading, f"chosen: C = {C:.3g}{at_gamma}"]))
        else:
            title = f"mean of {len(fit.parts)} scores\nchosen: a C for each{at_gamma}"
        return cls(
            _same_for_all(fit.Cs()),
            None if gamma is None else fit.model.gammas_,
            mean.mean(axis=0),
            chosen=[(fit.chosen_gamma(), c) for c in fit.best()],
            score_name=fit.score_name(),
            title=title,
        ).plot(ax, **mesh)

    def plot(self, ax: Axes | None = None, **mesh: Any) -> SurfaceDisplay:
        """Draw on `ax`, or on a new figure; `mesh` goes to ``Axes.pcolormesh``."""
        ax = self._start(ax)
        gammas = np.ones(1) if self.gammas is None else self.gammas
        order = np.argsort(gammas)
        self._mesh(ax, _cell_edges(gammas[order]), self.scores[order], mesh, self.score_name)
        for gamma, c in self.chosen:
            x = self.Cs[c] if self.Cs.ndim == 1 else c + 1.0
            ring: dict[str, Any] = {"marker": "o", "markersize": 8, "markerfacecolor": "none", "linestyle": "none"}
            ax.plot(x, gammas[gamma], **ring, markeredgecolor="black", markeredgewidth=3.5)
            ax.plot(x, gammas[gamma], **ring, markeredgecolor="white", markeredgewidth=1.5)
        ax.set(yscale="log", title=self.title)
        if self.gammas is None:
            ax.set_yticks([], minor=True)
            ax.set_yticks([])
            return self
        ax.set_ylabel("γ")
        steps = np.diff(np.log(gammas[order]))
        if len(gammas) == 1 or steps.min() > steps.sum() / MOST_NAMED_ROWS:  # else their names would overlap
            ax.set_yticks([], minor=True)
            ax.set_yticks(gammas, [f"{gamma:.3g}" for gamma in gammas])
        return self


class GapDisplay(_HeatMapDisplay):
    """The certificates of all models: log₁₀ of the relative duality gap, for each fold and the refit, and each C.

    Blue gaps are within the tolerance, red ones are not; models that were not run, or have no gap because the kernel is
    indefinite, are grey. Of several levels τ, targets or machines of several classes a cell has the worst gap; of
    several γ the chosen one is drawn.

    Parameters
    ----------
    Cs : ndarray of shape (n_Cs,) or (n_parts, n_Cs)
        Values of C, in any order: of all parts, or of each level, target or machine.
    gaps : ndarray of shape (n_folds + 1, n_Cs) or (n_parts, n_folds + 1, n_Cs)
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
        worst = gaps if gaps.ndim == 2 else gaps.max(axis=0)
        self.log10_gaps = np.ma.log10(np.ma.maximum(np.ma.masked_invalid(worst), SMALLEST_GAP))

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
            Which of several levels, targets or machines to draw; the worst gap of all by default.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **mesh
            Passed to ``Axes.pcolormesh``.

        Returns
        -------
        GapDisplay
        """
        fit = _Fit.of(estimator, index)
        gaps = fit.array("gaps_")[..., fit.chosen_gamma(), :]
        heading = f"worst of {len(gaps)} models" if len(gaps) > 1 else fit.names()[0]
        at_gamma = f"γ = {fit.model.gamma_:.3g}" if len(fit.model.gammas_) > 1 else None
        title = ", ".join(filter(None, [heading, at_gamma])) or None
        gaps = gaps[0] if len(gaps) == 1 else gaps
        return cls(_same_for_all(fit.Cs()), gaps, tol=fit.model.tol, title=title).plot(ax, **mesh)

    def plot(self, ax: Axes | None = None, **mesh: Any) -> GapDisplay:
        """Draw on `ax`, or on a new figure; `mesh` goes to ``Axes.pcolormesh``."""
        ax = self._start(ax)
        from matplotlib.colors import TwoSlopeNorm

        edges, rows, names = _gap_rows(len(self.log10_gaps) - 1)
        limit = float(np.log10(self.tol))
        known = self.log10_gaps.compressed()
        low, high = (float(known.min()), float(known.max())) if known.size else (limit, limit)
        norm = TwoSlopeNorm(limit, vmin=min(low, limit - 1.0), vmax=max(high, limit + 1.0))
        style: dict[str, Any] = {"cmap": "RdBu_r", "norm": norm} | mesh
        bar = self._mesh(ax, edges, self.log10_gaps, style, "log₁₀ relative duality gap")
        bar.ax.axhline(limit, color="black", linewidth=1.0)
        within = int(np.sum(self.gaps <= self.tol))
        unproved = int(np.isnan(self.gaps).sum())
        proved = f"{within} of {self.gaps.size} gaps are within tol = {self.tol:g}"
        if unproved:
            proved = f"the kernel is indefinite: {unproved} of {self.gaps.size} models have no certificate"
        ax.axhline(edges[-2], color="white", linewidth=2.0)
        ax.set_title("\n".join(filter(None, [self.title, proved])))
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


@dataclass(frozen=True)
class _Fit:
    """What a picture reads of a fit, in one shape for every kind of fit: (n_parts, ..., n_gammas, n_Cs).

    The parts are levels τ, targets or machines of several classes; else there is one. Machines tuned together have one
    part if their scores are read, and one a machine if anything else is.
    """

    model: Any
    parts: list[int]
    has_axis: bool

    @classmethod
    def of(cls, estimator: Any, index: int | None, *, scored: bool = False) -> _Fit:
        """The parts of a fitted estimator, or the one at `index`."""
        model = _fitted(estimator)
        has_axis = model._parts.has_axis and not (scored and model._parts.is_joint)
        fit = cls(model, list(range(len(model.gaps_) if has_axis else 1)), has_axis)
        if index is None:
            return fit
        _require_integer("index", index)
        if index not in fit.parts:
            last, names = fit.parts[-1], fit.names()
            which = f"0 is {names[0]}, {last} is {names[last]}" if last else "there is one model for each C"
            raise ValueError(f"index must be 0 to {last}, got {index!r}: {which}")
        return cls(model, [int(index)], has_axis)

    def names(self) -> list[str | None]:
        """What sets each part apart; None for the only one."""
        if not self.has_axis:
            return [None]
        return [_plain(self.model._parts.names[k].replace("tau=", "τ = ")) or None for k in self.parts]

    def Cs(self) -> Array:
        """Values of C, shape (n_parts, n_Cs)."""
        return self._each(self.model.Cs_, ndim=1)

    def C(self) -> list[float]:
        """The chosen C of each part."""
        return self._each(self.model.C_, ndim=0).tolist()

    def best(self) -> list[int]:
        """Its place in the values of C."""
        return (self._each(self.model.best_index_, ndim=0) % self.model._n_Cs).tolist()

    def chosen_gamma(self) -> int:
        """Place of the chosen γ, which all parts share."""
        gammas = self.model.gammas_
        return 0 if len(gammas) == 1 else int(np.flatnonzero(gammas == self.model.gamma_)[0])

    def array(self, name: str) -> npt.NDArray[Any]:
        """An attribute with a value for each γ and C, shape (n_parts, ..., n_gammas, n_Cs)."""
        array = getattr(self.model, name)
        array = array[self.parts] if self.has_axis else array[None]
        return array if len(self.model.gammas_) > 1 else np.expand_dims(array, -2)

    def scores(self) -> tuple[Array, Array]:
        """Mean score of the folds and its standard error, shape (n_parts, n_gammas, n_Cs)."""
        scores = self.array("scores_")
        if scores.shape[1] == 0:
            kind = type(self.model).__name__
            raise ValueError(f"{kind} has no scores: it was fitted with cv=None; fit it with folds, such as cv=5")
        means, errors = [], []
        for part in scores:
            counted = FoldScores.counted(part.reshape(len(part), -1), self.model._fold_weights)
            means.append(counted.mean())
            errors.append(counted.error())
        shape = (len(scores), *scores.shape[2:])
        return np.reshape(means, shape), np.reshape(errors, shape)

    def score_name(self) -> str:
        """What `scores_` are."""
        scoring = self.model.scoring
        if scoring is None:
            return str(self.model._score_name)
        return scoring if isinstance(scoring, str) else "score"

    def n_rows(self) -> int:
        """Rows that the refit was trained on, from λ = 1 / (2 n C)."""
        return round(0.5 / (self.model.lambdas_.flat[0] * self.model.Cs_.flat[0]))

    def lines(self, values: Array, errors: Array | None = None) -> tuple[Array, list[Line]]:
        """Values of C and lines over them: one a part at the chosen γ; of a single part, one a γ."""
        chosen, gammas = self.chosen_gamma(), self.model.gammas_
        drawn = range(len(gammas)) if len(self.parts) == 1 else [chosen]
        lines = []
        for p, (name, C) in enumerate(zip(self.names(), self.C(), strict=True)):
            for g in drawn:
                of_gamma = f"γ = {gammas[g]:.3g}" if len(drawn) > 1 else None
                label = ", ".join(filter(None, [name, of_gamma])) or None
                error = errors[p, g] if errors is not None and g == chosen else None
                lines.append(Line(label, values[p, g], error, C if g == chosen else None))
        return _same_for_all(self.Cs()), lines

    def xlabel(self) -> str:
        """C, and the γ at which several parts are drawn."""
        at_gamma = len(self.parts) > 1 and len(self.model.gammas_) > 1
        return f"C, at γ = {self.model.gamma_:.3g}" if at_gamma else "C"

    def _each(self, attribute: Any, ndim: int) -> npt.NDArray[Any]:
        """An attribute with that number of axes, of each part, also where all parts share it."""
        array = np.asarray(attribute)
        if array.ndim > ndim:
            return array[self.parts]
        return np.broadcast_to(array, (len(self.parts), *array.shape))


def _fitted(estimator: Any) -> Any:
    """The fitted estimator itself, also where it ends a pipeline or is held by a wrapper as ``estimator_``."""
    check_is_fitted(estimator)
    if hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    model = getattr(estimator, "estimator_", estimator)
    if not isinstance(model, _KernelPathBase):
        raise TypeError(f"only estimators of kernelpath have a path to draw, got {type(estimator).__name__}")
    return model


def _same_for_all(Cs: Array) -> Array:
    """The first line, if all are the same."""
    return Cs[0] if (Cs == Cs[0]).all() else Cs


def _plain(text: str) -> str:
    """Text that matplotlib does not read as a formula."""
    return text.replace("$", r"\$")


def _cell_edges(values: Array) -> Array:
    """Ends of the cells around ascending values, halfway between them on a logarithmic axis."""
    logs = np.log(values)
    steps = np.diff(logs) if len(values) > 1 else np.array([1.0])
    middles = logs[:-1] + np.diff(logs) / 2.0
    return np.exp(np.r_[logs[0] - steps[0] / 2.0, middles, logs[-1] + steps[-1] / 2.0])


def _gap_rows(n_folds: int) -> tuple[Array, list[float], list[str]]:
    """Edges of the rows of a heat map, and where and how they are named: of many folds the first and the last."""
    refit_height = max(1.0, n_folds / 8.0)  # a line among 1000 folds would not be seen
    edges = np.r_[np.arange(n_folds + 1.0), n_folds + refit_height]
    named = list(range(n_folds)) if n_folds <= MOST_NAMED_ROWS else [0, n_folds - 1]
    places = [*(k + 0.5 for k in named), n_folds + refit_height / 2.0]
    return edges, places, [*(f"fold {k}" for k in named), "refit"]
