"""Pictures: their numbers against hand computations, their labels and axes, what they refuse, and that they show."""

import doctest
import subprocess
import sys
from functools import cache

import matplotlib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kernelpath.display
from kernelpath import IndefiniteKernelWarning, KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR
from kernelpath.datasets import make_mixture
from kernelpath.display import (
    CalibrationBins,
    CalibrationDisplay,
    CVCurveDisplay,
    GapDisplay,
    Line,
    SupportPathDisplay,
    SurfaceDisplay,
)

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Cs = [10.0, 0.01, 1.0, 0.1]  # out of order on purpose
SCORE_DISPLAYS = [CVCurveDisplay, SurfaceDisplay]
PATH_DISPLAYS = [*SCORE_DISPLAYS, SupportPathDisplay, GapDisplay]


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_mixture(120, 3, random_state=0)


@pytest.fixture(scope="module")
def svc(data):
    return KernelSVC(Cs=Cs, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def logistic(data):
    return KernelLogistic(Cs=Cs, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def quantiles(data):
    X, y = data
    return KernelQuantile(tau=[0.2, 0.7], Cs=Cs, cv=3, random_state=0).fit(X, X[:, 0] + y)


@pytest.fixture(scope="module")
def leave_one_out(data):
    return KernelSVC(Cs=Cs, cv="loo", random_state=0).fit(data[0][:40], data[1][:40])


def pixels(display):
    display.figure_.canvas.draw()
    return np.asarray(display.figure_.canvas.buffer_rgba())


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def assert_nothing_is_covered(display):
    """Legends cover no point, bar or label of any axes of the figure, nor each other, and nothing is cut off."""
    figure = display.figure_
    figure.draw_without_rendering()
    legends = [ax.get_legend().get_window_extent() for ax in figure.axes if ax.get_legend()]
    for ax in figure.axes:
        points = [line.get_transform().transform(line.get_xydata()) for line in ax.lines]
        points += [ax.transData.transform(band.get_paths()[0].vertices) for band in ax.collections if band.get_paths()]
        boxes = [bar.get_window_extent() for bar in ax.patches]
        boxes += [ax.xaxis.get_tightbbox(), ax.yaxis.get_tightbbox(), ax.title.get_window_extent()]
        for box in legends:
            assert not box.padded(4).count_contains(np.concatenate([*points, np.empty((0, 2))]))
            assert not box.count_overlaps([other for other in boxes if other is not None])
        np.testing.assert_array_less(figure.bbox.min - 1, ax.get_tightbbox().min, "cut off")
        np.testing.assert_array_less(ax.get_tightbbox().max, figure.bbox.max + 1, "cut off")
    for k, box in enumerate(legends):
        assert not box.count_overlaps(legends[:k])


# Every display of every kind of fit


def rows():
    return np.random.default_rng(0).standard_normal((60, 2))


def two_classes():
    X = rows()
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.3


def three_classes():
    X = rows()
    labels = np.array(["$x$", "_y", "z"])  # a formula to matplotlib, and a label it would hide
    return X, labels[np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2, [-0.3, 0.6])]


def numbers():
    X = rows()
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]


def folds_by_class():
    """Folds that hold rows of one or two classes, so that some hold none of some machine."""
    parts = np.array_split(np.argsort(three_classes()[1], kind="stable"), 4)
    return [(np.setdiff1d(np.arange(60), part[::2]), part[::2]) for part in parts]


FAST = {"Cs": Cs, "cv": 3, "random_state": 0}
LOO, ONE_C, NO_FOLDS = FAST | {"cv": "loo"}, FAST | {"Cs": 1.0}, {"Cs": 1.0, "cv": None}
EACH, GRID = {"tune": "each"}, {"gamma": [0.5, 0.05]}
LEVELS, LOW_RANK = {"tau": [0.2, 0.7]}, {"low_rank": True, "n_landmarks": 10}
SIGMOID = {"kernel": "sigmoid", "coef0": -1.0}
FITS = {
    "two classes": (KernelSVC(**FAST), two_classes),
    "ovo": (KernelSVC(**FAST), three_classes),
    "ovo, each": (KernelSVC(**FAST, **EACH), three_classes),
    "ovo, each, folds without rows": (KernelSVC(**FAST | {"cv": folds_by_class()}, **EACH), three_classes),
    "ovr": (KernelLogistic(**FAST, multi_class="ovr"), three_classes),
    "ovr, each": (KernelLogistic(**FAST, **EACH, multi_class="ovr"), three_classes),
    "multinomial": (KernelLogistic(**FAST, multi_class="multinomial"), three_classes),
    "quantile": (KernelQuantile(**FAST), numbers),
    "quantiles": (KernelQuantile(**FAST, **LEVELS), numbers),
    "one level in a list": (KernelQuantile(tau=[0.3], **FAST), numbers),
    "many quantiles": (KernelQuantile(tau=np.linspace(0.1, 0.9, 12), **FAST), numbers),
    "svr": (KernelSVR(**FAST), numbers),
    "huber": (KernelRegressor(loss="huber", **FAST), numbers),
    "gammas": (KernelSVC(**FAST, **GRID), two_classes),
    "gammas, ovo": (KernelSVC(**FAST, **GRID), three_classes),
    "gammas, ovo, each": (KernelSVC(**FAST, **GRID, **EACH), three_classes),
    "gammas, multinomial": (KernelLogistic(**FAST, **GRID, multi_class="multinomial"), three_classes),
    "gammas, quantiles": (KernelQuantile(**FAST, **GRID, **LEVELS), numbers),
    "gammas, loo": (KernelSVC(**LOO, **GRID), two_classes),
    "gammas, one C": (KernelSVC(**ONE_C, **GRID), two_classes),
    "loo": (KernelSVC(**LOO), two_classes),
    "loo, ovo, each": (KernelSVC(**LOO, **EACH), three_classes),
    "loo, one score": (KernelSVC(**LOO, scoring="roc_auc"), two_classes),
    "lambdas": (KernelSVC(lambdas=[1e-3, 1e-2, 1e-1], cv=3, random_state=0), two_classes),
    "one C": (KernelSVC(**ONE_C), two_classes),
    "equal Cs": (KernelSVC(**FAST | {"Cs": [1.0, 1.0]}), two_classes),
    "no folds": (KernelSVC(**NO_FOLDS), two_classes),
    "no folds, ovo": (KernelSVC(**NO_FOLDS), three_classes),
    "no folds, quantiles": (KernelQuantile(**NO_FOLDS, **LEVELS), numbers),
    "indefinite": (KernelSVC(**FAST, **SIGMOID, gamma=1.0), two_classes),
    "indefinite, gammas, ovo": (KernelSVC(**FAST, **SIGMOID, gamma=[1.0, 2.0]), three_classes),
    "no gamma": (KernelSVC(**FAST, kernel="linear"), two_classes),
    "low rank": (KernelSVC(**FAST, **LOW_RANK), two_classes),
    "low rank, gammas, quantiles": (KernelQuantile(**FAST, **GRID, **LEVELS, **LOW_RANK), numbers),
    "cut short": (KernelSVC(**FAST), two_classes),
    "cut short, ovo": (KernelSVC(**FAST), three_classes),
    "cut short, gammas, quantiles": (KernelQuantile(**FAST, **GRID, **LEVELS), numbers),
}


@cache
def fitted(name):
    model, data = FITS[name]
    if "indefinite" in name:
        with pytest.warns(IndefiniteKernelWarning):
            return clone(model).fit(*data())
    model = clone(model).fit(*data())
    return without_one_C(model) if "cut short" in name else model


def without_one_C(model):
    """As after `time_budget`: a C that was not chosen has not been run."""
    never = np.flatnonzero(~np.isin(model.Cs_, model.C_))[0] == np.arange(len(model.Cs_))
    for name, value in {"scores_": np.nan, "gaps_": np.inf, "status_": "not_run", "n_support_path_": 0}.items():
        setattr(model, name, np.where(never, value, getattr(model, name)))
    return model


def n_parts(kind, model):
    """Levels or machines; those tuned together have one score."""
    if kind in SCORE_DISPLAYS:
        return np.size(model.C_)
    return len(model.gaps_) if model._parts.has_axis else 1


def at_gamma(model, array):
    """Of an array over γ and C, the line of the chosen γ."""
    return array if len(model.gammas_) == 1 else array[..., np.argmax(model.gammas_ == model.gamma_), :]


def check_lines(display, model, expected):
    """`expected`: values at the chosen γ, over C, of one part after the other."""
    n, order = n_parts(type(display), model), np.argsort(model.Cs_, kind="stable")
    expected = np.reshape(expected, (n, len(model.Cs_)))
    assert len(display.lines) == (n if n > 1 else len(model.gammas_))
    marked = [line for line in display.lines if line.C is not None]
    assert [line.C for line in marked] == np.broadcast_to(model.C_, n).tolist()
    np.testing.assert_allclose([line.values for line in marked], expected)
    drawn = [line for line in display.ax_.lines if line.get_marker() == "."]
    for line, on_axes in zip(display.lines, drawn, strict=True):
        np.testing.assert_array_equal(on_axes.get_xydata(), np.column_stack([model.Cs_, line.values])[order])
    assert any("C = " in text for text in legend(display))
    assert (display.xlabel == "C") == (n == 1 or len(model.gammas_) == 1)


def mean_scores(model):
    """Over the folds that scored any model, at the chosen γ."""
    scores = at_gamma(model, model.scores_)
    run = ~np.isnan(scores).all(axis=-1, keepdims=True)
    return np.where(run, scores, 0.0).sum(axis=-2) / run.sum(axis=-2)


def check_curve(display, model, name):
    check_lines(display, model, mean_scores(model))
    has_error = name not in ("loo, one score", "many quantiles")
    assert (legend(display).count("± 1 standard error"), len(display.ax_.collections) > 0) == (has_error, has_error)
    assert display.ax_.get_ylabel() == (model.scoring or model._score_name)


def check_surface(display, model, name):
    assert display.scores.shape == (len(model.gammas_), len(model.Cs_))
    mean = mean_scores(model).reshape(-1, len(model.Cs_)).mean(axis=0)
    np.testing.assert_allclose(display.scores[display.chosen[0][0]], mean)
    assert [g * len(model.Cs_) + c for g, c in display.chosen] == np.ravel(model.best_index_).tolist()
    rings = {tuple(line.get_xydata()[0]) for line in display.ax_.lines}
    gamma = 1.0 if model.gamma_ is None else model.gamma_
    assert rings == {(C, gamma) for C in np.ravel(model.C_)}
    assert (f"γ = {gamma:.3g}" in display.ax_.get_title()) == (model.gamma_ is not None)
    assert display.figure_.axes[1].get_ylabel() == (model.scoring or model._score_name)
    assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("log", "log")


def check_support(display, model, name):
    status = at_gamma(model, model.status_)[..., -1, :]
    check_lines(display, model, np.where(status == "not_run", np.nan, at_gamma(model, model.n_support_path_)))
    assert display.ax_.get_ylabel() == ("landmarks with β ≠ 0" if "low rank" in name else "support vectors of 60 rows")
    assert display.ax_.get_ylim()[0] == 0


def check_gaps(display, model, name):
    gaps = at_gamma(model, model.gaps_)
    np.testing.assert_array_equal(display.gaps.ravel(), gaps.ravel())
    worst = gaps.reshape(-1, *gaps.shape[-2:]).max(axis=0)
    np.testing.assert_array_equal(np.ma.getmaskarray(display.log10_gaps), ~np.isfinite(worst))
    *above, proved = display.ax_.get_title().split("\n")
    words = "models have no certificate" if "indefinite" in name else "gaps are within tol = 1e-06"
    n = np.isnan(gaps).sum() if "indefinite" in name else np.isfinite(gaps).sum()
    assert proved.endswith(f"{n} of {gaps.size} {words}")
    n = n_parts(GapDisplay, model)
    heading = f"worst of {n} models" if n > 1 else "τ = 0.3" if model._parts.has_axis else ""
    bandwidth = f"γ = {model.gamma_:.3g}" if len(model.gammas_) > 1 else ""
    assert above == list(filter(None, [", ".join(filter(None, [heading, bandwidth]))]))


CHECKS = {
    CVCurveDisplay: check_curve,
    SurfaceDisplay: check_surface,
    SupportPathDisplay: check_support,
    GapDisplay: check_gaps,
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("kind", PATH_DISPLAYS)
def test_every_display_draws_every_fit(kind, name):
    model = fitted(name)
    if kind in SCORE_DISPLAYS and "no folds" in name:
        with pytest.raises(ValueError, match="has no scores: it was fitted with cv=None; fit it with folds, such as"):
            kind.from_estimator(model)
        return
    display = kind.from_estimator(model)
    CHECKS[kind](display, model, name)
    assert_nothing_is_covered(display)
    n = n_parts(kind, model)
    if n > 1:
        kind.from_estimator(model, index=n - 1)
    with pytest.raises(ValueError, match=f"index must be 0 to {n - 1}, got {n}: "):
        kind.from_estimator(model, index=n)


# Calibration


def test_bins_by_hand():
    y = [0, 1, 0, 1, 1, 1]
    p = [0.1, 0.2, 0.3, 0.25, 0.9, 1.0]
    bins = CalibrationBins.of(y, p, n_bins=4)
    # [0, ¼): rows 0 and 1; [¼, ½): rows 2 and 3; [½, ¾): none; [¾, 1]: rows 4 and 5
    np.testing.assert_allclose(bins.low, [0.0, 0.25, 0.75])
    np.testing.assert_allclose(bins.high, [0.25, 0.5, 1.0])
    np.testing.assert_allclose(bins.predicted, [0.15, 0.275, 0.95])
    np.testing.assert_allclose(bins.observed, [0.5, 0.5, 1.0])
    assert bins.count.tolist() == [2, 2, 2]
    assert bins.ece == pytest.approx((0.35 + 0.225 + 0.05) / 3)
    assert bins.brier == pytest.approx((0.01 + 0.64 + 0.09 + 0.5625 + 0.01 + 0) / 6)


def test_quantile_bins_have_equally_many_rows():
    rng = np.random.default_rng(0)
    p = rng.random(100) ** 3
    bins = CalibrationBins.of(rng.random(100) < p, p, n_bins=5, strategy="quantile")
    assert bins.count.tolist() == [20] * 5
    np.testing.assert_allclose(bins.predicted, np.sort(p).reshape(5, 20).mean(axis=1))
    assert (bins.low[0], bins.high[-1]) == (p.min(), p.max())


def test_quantile_bins_of_tied_probabilities():
    bins = CalibrationBins.of([0, 1, 1, 0], [0.3] * 4, n_bins=3, strategy="quantile")
    assert (bins.count.tolist(), bins.ece, bins.brier) == ([4], pytest.approx(0.2), pytest.approx(0.29))


def test_weights_are_repeats():
    rng = np.random.default_rng(1)
    p, weight = rng.random(50), rng.integers(0, 4, 50)
    y = np.where(rng.random(50) < p, "yes", "no")
    weighted = CalibrationBins.of(y, p, n_bins=7, sample_weight=weight)
    repeated = CalibrationBins.of(np.repeat(y, weight), np.repeat(p, weight), n_bins=7)
    np.testing.assert_allclose(weighted.observed, repeated.observed)
    np.testing.assert_allclose(weighted.predicted, repeated.predicted)
    assert (weighted.ece, weighted.brier) == pytest.approx((repeated.ece, repeated.brier))
    assert weighted.ece != pytest.approx(CalibrationBins.of(y, p, n_bins=7).ece)


def test_positive_label():
    y, p = np.array(["a", "b", "b", "a"]), np.array([0.2, 0.9, 0.6, 0.4])
    assert CalibrationBins.of(y, p).brier == brier_score_loss(y, p, pos_label="b")
    assert CalibrationBins.of(y, p, pos_label="a").brier == brier_score_loss(y, p, pos_label="a")


def test_calibration_of_an_estimator(data, logistic):
    X, y = data
    display = CalibrationDisplay.from_estimator(logistic, X, y, n_bins=5, annotate_counts=True)
    expected = CalibrationBins.of(y, logistic.predict_proba(X)[:, 1], n_bins=5)
    assert (display.ece, display.brier) == (expected.ece, expected.brier)
    diagonal, points = display.ax_.lines
    np.testing.assert_array_equal(points.get_xydata(), np.column_stack([expected.predicted, expected.observed]))
    np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    assert legend(display) == [
        "perfectly calibrated",
        f"KernelLogistic\nECE {expected.ece:.3f}, Brier {expected.brier:.3f}",
    ]
    assert display.ax_.get_xlabel() == "mean predicted probability of 1"
    assert [text.get_text() for text in display.ax_.texts] == [f"{count}" for count in expected.count]
    heights = [bar.get_height() for bar in display.ax_.patches]
    np.testing.assert_allclose(np.divide(heights, max(heights)), expected.count / expected.count.max())


def test_areas_of_the_bars_are_the_rows(data, logistic):
    display = CalibrationDisplay.from_estimator(logistic, *data, strategy="quantile", n_bins=4)
    areas = [bar.get_height() * bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(np.divide(areas, sum(areas)), display.bins.count / display.bins.count.sum())


def test_calibration_of_the_other_class(data, logistic):
    X, y = data
    of_one = CalibrationDisplay.from_estimator(logistic, X, y)
    display = CalibrationDisplay.from_estimator(logistic, X, y, pos_label=-1, name="mine", color="red")
    np.testing.assert_allclose(display.bins.predicted, 1 - of_one.bins.predicted[::-1])
    np.testing.assert_allclose(display.bins.observed, 1 - of_one.bins.observed[::-1])
    assert display.ax_.lines[1].get_color() == "red"
    assert legend(display)[1].startswith("mine\n")


def test_calibration_of_three_classes_is_of_one_against_the_rest(data):
    X = data[0]
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"3 classes; pass pos_label, one of \[.*0.*1.*2.*\]"):
        CalibrationDisplay.from_estimator(model, X, y)
    display = CalibrationDisplay.from_estimator(model, X, y, pos_label=2)
    assert display.brier == pytest.approx(np.mean((model.predict_proba(X)[:, 2] - (y == 2)) ** 2))


@pytest.mark.parametrize("name", ["ovr", "multinomial", "gammas, multinomial"])
def test_calibration_of_every_class(name):
    model, (X, y) = fitted(name), three_classes()
    for k, label in enumerate(model.classes_):
        display = CalibrationDisplay.from_estimator(model, X, y, pos_label=label)
        assert display.brier == pytest.approx(np.mean((model.predict_proba(X)[:, k] - (y == label)) ** 2))
        assert_nothing_is_covered(display)


def test_several_calibrations_share_axes(data, logistic):
    X, y = data
    first = CalibrationDisplay.from_estimator(logistic, X, y, name="train")
    second = CalibrationDisplay.from_predictions(y, np.full(len(y), 0.5), name="half", ax=first.ax_)
    assert [label.split("\n")[0] for label in legend(second)] == ["perfectly calibrated", "train", "half"]


@pytest.mark.parametrize(
    ("y", "p", "options", "message"),
    [
        ([0, 1], [0.5, 1.5], {}, r"in \[0, 1\], got 1.5 in row 1"),
        ([0, 1], [np.nan, 0.5], {}, "got nan in row 0"),
        ([0, 1, 2], [0.1, 0.2, 0.3], {}, "3 different labels, not 2: pass pos_label"),
        ([1, 1], [0.1, 0.2], {}, "1 different labels"),
        ([0, 1, 1], [0.1, 0.2], {}, "inconsistent numbers of samples"),
        ([0, 1], [0.1, 0.2], {"strategy": "even"}, "strategy='even' is not available; available: 'uniform'"),
        ([0, 1], [0.1, 0.2], {"n_bins": 0}, "n_bins must be at least 1, got 0"),
        ([0, 1], [0.1, 0.2], {"sample_weight": [0, 0]}, "sample_weight must hold finite numbers >= 0, not all 0"),
        ([0, 1], [0.1, 0.2], {"sample_weight": [2, -1]}, "sample_weight must hold"),
    ],
)
def test_what_calibration_refuses(y, p, options, message):
    with pytest.raises(ValueError, match=message):
        CalibrationDisplay.from_predictions(y, p, **options)


def test_what_calibration_refuses_of_an_estimator(data, logistic):
    with pytest.raises(ValueError, match="SVC has no predict_proba; fit it with probability=True, or use"):
        CalibrationDisplay.from_estimator(SVC().fit(*data), *data)
    with pytest.raises(ValueError, match="KernelSVR is no classifier, and only classifiers have probabilities"):
        CalibrationDisplay.from_estimator(fitted("svr"), *numbers())
    with pytest.raises(ValueError, match=r"pos_label=7 is no class of KernelLogistic; its classes: \[.*-1.*1.*\]"):
        CalibrationDisplay.from_estimator(logistic, *data, pos_label=7)


# Scores over C


def test_scores_and_band(svc):
    display = CVCurveDisplay.from_estimator(svc)
    order = np.argsort(Cs)
    line, chosen_C, point = display.ax_.lines
    mean = svc.scores_.mean(axis=0)
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([svc.Cs_, mean])[order])
    error = svc.scores_.std(axis=0, ddof=1) / np.sqrt(5)
    (band,) = display.ax_.collections
    outline = band.get_paths()[0].vertices
    for C, low, high in zip(svc.Cs_, mean - error, mean + error, strict=True):
        reached = outline[outline[:, 0] == C, 1]
        assert (reached.min(), reached.max()) == pytest.approx((low, high))
    assert set(chosen_C.get_xdata()) == {svc.C_}
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (svc.C_, pytest.approx(svc.best_score_))
    assert (display.ax_.get_xscale(), display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("log", "C", "accuracy")
    assert legend(display) == ["± 1 standard error", f"C = {svc.C_:.3g}"]


def test_score_names(data, quantiles):
    scored = KernelSVC(Cs=Cs, scoring="roc_auc", cv=2).fit(*data)
    assert CVCurveDisplay.from_estimator(scored).ylabel == "roc_auc"
    scored = KernelSVC(Cs=Cs, scoring=lambda model, X, y: model.score(X, y), cv=2).fit(*data)
    assert CVCurveDisplay.from_estimator(scored).ylabel == "score"
    assert CVCurveDisplay.from_estimator(quantiles).ylabel == "negative mean pinball loss"


def test_one_line_a_loss(quantiles):
    display = CVCurveDisplay.from_estimator(quantiles)
    assert quantiles.C_.tolist() == [1.0, 1.0]
    assert legend(display) == ["τ = 0.2", "τ = 0.7", "C = 1", "± 1 standard error"]
    for line, scores in zip(display.lines, quantiles.scores_, strict=True):
        np.testing.assert_allclose(line.values, scores.mean(axis=0))
    second = CVCurveDisplay.from_estimator(quantiles, index=1)
    assert [line.label for line in second.lines] == ["τ = 0.7"]
    counts = SupportPathDisplay.from_estimator(quantiles, index=1).lines
    np.testing.assert_array_equal(counts[0].values, quantiles.n_support_path_[1])


def test_one_line_a_bandwidth():
    model = fitted("gammas")
    lines = CVCurveDisplay.from_estimator(model).lines
    assert [line.label for line in lines] == ["γ = 0.5", "γ = 0.05"]
    for line, gamma, scores in zip(lines, model.gammas_, model.scores_.transpose(1, 0, 2), strict=True):
        np.testing.assert_allclose(line.values, scores.mean(axis=0))
        assert (line.C, line.error is None) == ((model.C_, False) if gamma == model.gamma_ else (None, True))


def test_one_line_a_machine():
    """Machines that share C share one mark of it, and are drawn at the chosen γ."""
    model = fitted("gammas, ovo")
    display = SupportPathDisplay.from_estimator(model)
    names = [r"'\$x\$' against '_y'", r"'\$x\$' against 'z'", "'_y' against 'z'"]
    assert legend(display) == [*names, f"C = {model.C_:.3g}"]
    assert display.ax_.get_xlabel() == f"C, at γ = {model.gamma_:.3g}"
    (line, other) = SupportPathDisplay.from_estimator(model, index=2).lines
    assert (line.label, other.label) == ("'_y' against 'z', γ = 0.5", "'_y' against 'z', γ = 0.05")
    np.testing.assert_array_equal([line.values, other.values], model.n_support_path_[2])


def test_of_many_lines_the_first_and_the_last_are_named():
    display = CVCurveDisplay.from_estimator(fitted("many quantiles"))
    assert len(display.lines) == 12
    assert legend(display) == ["τ = 0.1", "τ = 0.9", "C = 10"]


def test_lines_with_different_Cs_name_them():
    display = CVCurveDisplay(np.array(Cs), [FALLING, RISING], ylabel="score").plot()
    assert legend(display) == ["falling, C = 0.1", "± 1 standard error", "rising, a longer name, C = 10"]
    marks = [line for line in display.ax_.lines if line.get_linestyle() == "--"]
    assert [mark.get_xdata()[0] for mark in marks] == [0.1, 10.0]
    assert [mark.get_color() for mark in marks] == [line.get_color() for line in display.ax_.lines[:2]]


@pytest.mark.parametrize("kind", PATH_DISPLAYS)
def test_each_part_may_have_its_own_Cs(kind):
    """As regressors of several targets have them: a line of `Cs_` for each."""
    model = KernelQuantile()
    vars(model).update(vars(fitted("gammas, quantiles")))
    model.Cs_ = np.outer([1.0, 3.0], model.Cs_)
    model.lambdas_ = 1.0 / (120 * model.Cs_)
    best = model.best_index_ % 4
    model.C_ = model.Cs_[[0, 1], best]
    display = kind.from_estimator(model)
    np.testing.assert_array_equal(display.Cs, model.Cs_)
    assert_nothing_is_covered(display)
    places = {tuple(line.get_xydata()[0]) for line in display.ax_.lines if line.get_marker() == "o"}
    if kind in (CVCurveDisplay, SupportPathDisplay):
        order = np.argsort(Cs)
        for line, Cs_k in zip(display.ax_.lines[:2], model.Cs_, strict=True):
            np.testing.assert_array_equal(line.get_xdata(), Cs_k[order])
        assert {C for C, _ in places} == set(model.C_)
    else:
        assert display.ax_.get_xlabel() == "place of C in its line of Cs_"
        assert places == ({(k + 1, model.gamma_) for k in best} if kind is SurfaceDisplay else set())
    np.testing.assert_array_equal(kind.from_estimator(model, index=1).Cs, model.Cs_[1])


@pytest.mark.parametrize("gamma", [0.5, [0.5, 0.05]])
@pytest.mark.parametrize("tune", ["joint", "each"])
@pytest.mark.parametrize("kind", PATH_DISPLAYS)
def test_several_targets(kind, tune, gamma):
    X, y = numbers()
    targets = np.column_stack([y, 100.0 * np.cos(X[:, 1])])
    model = KernelSVR(Cs=3, cv=3, tune=tune, gamma=gamma).fit(X, targets)
    display = kind.from_estimator(model)
    assert_nothing_is_covered(display)
    n = 1 if tune == "joint" and kind in SCORE_DISPLAYS else 2
    if kind in (CVCurveDisplay, SupportPathDisplay):
        expected = mean_scores(model) if kind is CVCurveDisplay else at_gamma(model, model.n_support_path_)
        marked = [line for line in display.lines if line.C is not None]
        assert [line.C for line in marked] == model.C_[:n].tolist()
        np.testing.assert_allclose([line.values for line in marked], expected.reshape(n, 3))
        names = " ".join(legend(display))
        assert ("target 0" in names and "target 1" in names) == (n == 2)
    elif kind is GapDisplay:
        np.testing.assert_array_equal(display.gaps.ravel(), at_gamma(model, model.gaps_).ravel())
    kind.from_estimator(model, index=n - 1)
    with pytest.raises(ValueError, match=f"index must be 0 to {n - 1}, got {n}: "):
        kind.from_estimator(model, index=n)


def test_leave_one_out(leave_one_out):
    (line,) = CVCurveDisplay.from_estimator(leave_one_out).lines
    np.testing.assert_allclose(line.error, leave_one_out.scores_.std(axis=0, ddof=1) / np.sqrt(40))
    names = [label.get_text() for label in GapDisplay.from_estimator(leave_one_out).ax_.get_yticklabels()]
    assert names == ["fold 0", "fold 39", "refit"]


def test_one_score_has_no_band(data):
    ranked = KernelSVC(Cs=Cs, cv="loo", scoring="roc_auc").fit(data[0][:40], data[1][:40])
    display = CVCurveDisplay.from_estimator(ranked)
    assert np.isnan(display.lines[0].error).all()
    np.testing.assert_array_equal(display.lines[0].values, ranked.scores_[0])
    assert np.ptp(pixels(display)) > 0


# Support vectors


def test_support_vectors(svc):
    display = SupportPathDisplay.from_estimator(svc)
    line, _, point = display.ax_.lines
    order = np.argsort(Cs)
    np.testing.assert_array_equal(line.get_xydata(), np.column_stack([svc.Cs_, svc.n_support_path_])[order])
    assert point.get_ydata()[0] == len(svc.support_)
    assert display.ax_.get_ylabel() == "support vectors of 120 rows"
    assert display.ax_.get_ylim()[0] == 0


# Certificates


def test_gaps(svc):
    display = GapDisplay.from_estimator(svc)
    (mesh,) = display.ax_.collections
    order = np.argsort(Cs)
    np.testing.assert_allclose(mesh.get_array(), np.log10(np.maximum(svc.gaps_, 1e-16))[:, order])
    assert display.ax_.get_title() == "24 of 24 gaps are within tol = 1e-06"
    assert mesh.norm.vcenter == pytest.approx(-6)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == [*(f"fold {k}" for k in range(5)), "refit"]
    np.testing.assert_allclose(mesh.get_coordinates()[0, 1:-1, 0], 10.0 ** np.array([-1.5, -0.5, 0.5]))


def test_gaps_of_one_model(data):
    alone = KernelSVC(Cs=1.0, cv=None).fit(*data)
    display = GapDisplay.from_estimator(alone)
    assert display.log10_gaps.shape == (1, 1)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["refit"]


def test_gaps_that_miss_the_tolerance():
    display = GapDisplay(np.array([1.0, 10.0]), np.array([[1e-9, 1e-2], [0.0, np.inf]]), tol=1e-6).plot()
    assert display.ax_.get_title() == "2 of 4 gaps are within tol = 1e-06"
    (mesh,) = display.ax_.collections
    assert mesh.norm.vmax == pytest.approx(-2)
    reached, missed, zero, _ = mesh.to_rgba(mesh.get_array()).reshape(4, 4)
    assert reached[2] > reached[0], "blue"
    assert zero[2] > zero[0], "blue"
    assert missed[0] > missed[2], "red"
    assert mesh.get_array().mask.ravel().tolist() == [False, False, False, True]


def test_gaps_of_several_levels_are_the_worst(quantiles):
    display = GapDisplay.from_estimator(quantiles)
    worst = np.log10(np.maximum(quantiles.gaps_.max(axis=0), 1e-16))
    np.testing.assert_allclose(display.log10_gaps, worst)
    assert display.ax_.get_title() == "worst of 2 models\n32 of 32 gaps are within tol = 1e-06"
    display = GapDisplay.from_estimator(quantiles, index=1)
    np.testing.assert_array_equal(display.gaps, quantiles.gaps_[1])
    assert display.ax_.get_title().startswith("τ = 0.7\n")


# C × γ


def test_surface_by_hand():
    """Values out of order and a model that was not run: every cell has its colour, where its C and γ are."""
    scores = np.array([[0.1, 0.2, 0.3], [0.4, np.nan, 0.6]])
    display = SurfaceDisplay(
        np.array([10.0, 0.1, 1.0]), np.array([2.0, 0.5]), scores, chosen=[(1, 2)], score_name="accuracy", title="best"
    ).plot(cmap="plasma")
    (mesh,) = display.ax_.collections
    np.testing.assert_array_equal(mesh.get_array(), np.ma.masked_invalid([[np.nan, 0.6, 0.4], [0.2, 0.3, 0.1]]))
    assert mesh.get_array().mask.tolist() == [[True, False, False], [False] * 3]
    np.testing.assert_allclose(mesh.get_coordinates()[0, :, 0], 10.0 ** np.array([-1.5, -0.5, 0.5, 1.5]))
    np.testing.assert_allclose(mesh.get_coordinates()[:, 0, 1], [0.25, 1.0, 4.0])
    assert mesh.get_cmap().name == "plasma"
    assert {tuple(line.get_xydata()[0]) for line in display.ax_.lines} == {(1.0, 0.5)}
    assert sorted(text.get_text() for text in display.ax_.get_yticklabels()) == ["0.5", "2"]
    texts = [display.ax_.get_xlabel(), display.ax_.get_ylabel(), display.ax_.get_title()]
    assert texts == ["C", "γ", "best"]
    assert display.figure_.axes[1].get_ylabel() == "accuracy"
    grey = display.ax_.get_facecolor()
    display.figure_.canvas.draw()
    x, y = display.ax_.transData.transform([0.1, 0.5]).astype(int)
    assert pixels(display)[::-1][y, x, :3] / 255 == pytest.approx(grey[:3], abs=0.01)


def test_surface_of_several_levels_is_their_mean():
    model = fitted("gammas, quantiles")
    display = SurfaceDisplay.from_estimator(model)
    np.testing.assert_allclose(display.scores, model.scores_.mean(axis=(0, 1)))
    assert display.title == f"mean of 2 scores\nchosen: a C for each, γ = {model.gamma_:.3g}"
    second = SurfaceDisplay.from_estimator(model, index=1)
    np.testing.assert_allclose(second.scores, model.scores_[1].mean(axis=0))
    assert second.title == f"τ = 0.7\nchosen: C = {model.C_[1]:.3g}, γ = {model.gamma_:.3g}"


def test_close_gammas_have_the_ticks_of_the_axis():
    gammas = np.array([1.0, 1.01, 100.0])
    display = SurfaceDisplay(np.ones(1), gammas, np.ones((3, 1)), chosen=[(0, 0)], score_name="score").plot()
    assert "1.01" not in [text.get_text() for text in display.ax_.get_yticklabels()]


# Legends


LAYOUTS = ["constrained", "tight", "tight afterwards", None]


def panels(layout, *shape, **options):
    return plt.subplots(*shape, layout=None if layout == "tight afterwards" else layout, **options)[1]


FALLING = Line("falling", np.linspace(1.0, 0.0, 4), np.full(4, 0.1), 0.1)
RISING = Line("rising, a longer name", np.linspace(0.0, 1.0, 4), None, 10.0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_lines", [1, 2, 10])
def test_legends_cover_no_line(layout, n_lines):
    """Points in every corner of the axes, on axes of any layout, above other axes."""
    lines = [FALLING, RISING, *([FALLING] * n_lines)][:n_lines]
    axes = panels(layout, 2, 2, figsize=(9, 12)).flat
    for ax in axes:
        display = CVCurveDisplay(np.array(Cs), lines, ylabel="score").plot(ax)
    if layout == "tight afterwards":
        display.figure_.tight_layout()
    assert_nothing_is_covered(display)


def test_a_line_without_a_name_has_no_legend():
    assert SupportPathDisplay(np.ones(1), [Line(None, np.ones(1))], ylabel="rows").plot().ax_.get_legend() is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_legends_cover_no_calibration(layout):
    """Each display on the same axes takes the place of the legend before it."""
    ax = panels(layout)
    y = np.arange(100) % 2
    for k, p in enumerate([y, 1 - y, np.linspace(0, 1, 100)]):
        display = CalibrationDisplay.from_predictions(y, p, name=f"number {k}", annotate_counts=True, ax=ax)
        assert_nothing_is_covered(display)
    assert display.ax_.get_window_extent().height > 150


# All of them


@pytest.mark.parametrize("kind", PATH_DISPLAYS)
def test_drawn_on_the_axes_given(svc, kind):
    figure, (left, right) = plt.subplots(1, 2)
    display = kind.from_estimator(svc, ax=right)
    assert display.ax_ is right
    assert display.figure_ is figure
    assert not left.has_data()
    again = display.plot()
    assert again is display
    assert display.figure_ is not figure


@pytest.mark.parametrize("kind", PATH_DISPLAYS)
def test_pipelines_are_looked_into(data, kind):
    pipeline = make_pipeline(StandardScaler(), KernelSVC(Cs=Cs, cv=2)).fit(*data)
    np.testing.assert_array_equal(kind.from_estimator(pipeline).Cs, Cs)


@pytest.mark.parametrize("kind", PATH_DISPLAYS)
def test_what_paths_refuse(data, svc, kind):
    with pytest.raises(TypeError, match="only estimators of kernelpath have a path to draw, got SVC"):
        kind.from_estimator(SVC().fit(*data))
    with pytest.raises(ValueError, match="not fitted yet"):
        kind.from_estimator(KernelSVC())
    for index in (1, -1):
        with pytest.raises(ValueError, match=f"index must be 0 to 0, got {index}"):
            kind.from_estimator(svc, index=index)
    with pytest.raises(TypeError, match="index must be an integer, got 0.0"):
        kind.from_estimator(svc, index=0.0)


@pytest.mark.parametrize("kind", [CalibrationDisplay, *PATH_DISPLAYS])
def test_the_picture_shows_something(data, logistic, kind, tmp_path):
    display = kind.from_estimator(logistic, *(data if kind is CalibrationDisplay else ()))
    file = tmp_path / "picture.png"
    display.figure_.savefig(file)
    assert file.stat().st_size > 5000
    image = plt.imread(file)
    empty = plt.subplots()[0]
    empty.savefig(file)
    assert np.mean(np.any(image != plt.imread(file), axis=2)) > 0.02


WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None  # as if it were not installed
import numpy as np
from kernelpath.display import GapDisplay
GapDisplay(np.ones(1), np.ones((1, 1)), tol=1e-6).plot()
"""


def test_without_matplotlib():
    run = subprocess.run([sys.executable, "-c", WITHOUT_MATPLOTLIB], capture_output=True, text=True, check=False)
    last = run.stderr.strip().splitlines()[-1]
    assert last == "ImportError: kernelpath.display draws with matplotlib: pip install kernelpath[plot]"


def test_examples():
    failed, attempted = doctest.testmod(kernelpath.display)
    assert (failed, attempted > 0) == (0, True)
