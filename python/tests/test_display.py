"""Pictures: their numbers against hand computations, their labels and axes, what they refuse, and that they show."""

import doctest
import subprocess
import sys
import warnings

import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kernelpath.display
from kernelpath import KernelLogistic, KernelQuantile, KernelSVC
from kernelpath.datasets import make_mixture
from kernelpath.display import CalibrationBins, CalibrationDisplay, CVCurveDisplay, GapDisplay, SupportPathDisplay

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Cs = [10.0, 0.01, 1.0, 0.1]  # out of order on purpose
PATH_DISPLAYS = [CVCurveDisplay, SupportPathDisplay, GapDisplay]


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
    equal, points = display.ax_.lines
    np.testing.assert_array_equal(points.get_xydata(), np.column_stack([expected.predicted, expected.observed]))
    np.testing.assert_array_equal(equal.get_xydata(), [[0, 0], [1, 1]])
    assert legend(display) == ["equal", f"KernelLogistic\nECE {expected.ece:.3f}, Brier {expected.brier:.3f}"]
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


def test_several_calibrations_share_axes(data, logistic):
    X, y = data
    first = CalibrationDisplay.from_estimator(logistic, X, y, name="train")
    second = CalibrationDisplay.from_predictions(y, np.full(len(y), 0.5), name="half", ax=first.ax_)
    assert [label.split("\n")[0] for label in legend(second)] == ["equal", "train", "half"]


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
    assert legend(display) == [f"C = {svc.C_:.3g}"]


def test_score_names(data, quantiles):
    scored = KernelSVC(Cs=Cs, scoring="roc_auc", cv=2).fit(*data)
    assert CVCurveDisplay.from_estimator(scored).ylabel == "roc_auc"
    scored = KernelSVC(Cs=Cs, scoring=lambda model, X, y: model.score(X, y), cv=2).fit(*data)
    assert CVCurveDisplay.from_estimator(scored).ylabel == "score"
    assert CVCurveDisplay.from_estimator(quantiles).ylabel == "negative mean pinball loss"


def test_one_line_a_loss(quantiles):
    display = CVCurveDisplay.from_estimator(quantiles)
    assert legend(display) == [f"τ = {tau:g}, C = {C:.3g}" for tau, C in zip([0.2, 0.7], quantiles.C_, strict=True)]
    for line, scores in zip(display.lines, quantiles.scores_, strict=True):
        np.testing.assert_allclose(line.values, scores.mean(axis=0))
    second = CVCurveDisplay.from_estimator(quantiles, index=1)
    assert [line.label for line in second.lines] == ["τ = 0.7"]
    counts = SupportPathDisplay.from_estimator(quantiles, index=1).lines
    np.testing.assert_array_equal(counts[0].values, quantiles.n_support_path_[1])


def test_one_line_a_bandwidth(svc):
    """`scores_` of shape (n_folds, n_gammas, n_Cs), as an estimator that tunes several bandwidths has them."""
    tuned = KernelSVC()
    vars(tuned).update(vars(svc))
    tuned.gammas_ = np.array([0.5 * svc.gamma_, svc.gamma_])
    tuned.scores_ = np.stack([svc.scores_ - 0.1, svc.scores_], axis=1)
    tuned.gaps_ = np.stack([np.full_like(svc.gaps_, 0.5), svc.gaps_], axis=1)
    tuned.n_support_path_ = np.stack([svc.n_support_path_ + 1, svc.n_support_path_])
    below, chosen = CVCurveDisplay.from_estimator(tuned).lines
    (alone,) = CVCurveDisplay.from_estimator(svc).lines
    assert (below.label, below.C, below.error) == (f"γ = {0.5 * svc.gamma_:.3g}", None, None)
    np.testing.assert_allclose(below.values, alone.values - 0.1)
    assert (chosen.label, chosen.C) == (f"γ = {svc.gamma_:.3g}", svc.C_)
    np.testing.assert_array_equal(chosen.error, alone.error)
    assert [line.C for line in SupportPathDisplay.from_estimator(tuned).lines] == [None, svc.C_]
    np.testing.assert_array_equal(GapDisplay.from_estimator(tuned).gaps, svc.gaps_)


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


def test_gaps_of_several_losses_need_an_index(quantiles):
    with pytest.raises(ValueError, match="KernelQuantile has 2 losses, .*: pass index, 0 to 1"):
        GapDisplay.from_estimator(quantiles)
    display = GapDisplay.from_estimator(quantiles, index=1)
    np.testing.assert_array_equal(display.gaps, quantiles.gaps_[1])
    assert display.ax_.get_title().startswith("τ = 0.7\n")


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


def test_scores_need_folds(data):
    with pytest.raises(ValueError, match="KernelSVC has no scores: it was fitted with cv=None"):
        CVCurveDisplay.from_estimator(KernelSVC(Cs=1.0, cv=None).fit(*data))


@pytest.mark.parametrize("kind", PATH_DISPLAYS)
def test_models_not_run_leave_gaps_in_the_picture(svc, kind):
    """As after `time_budget`: NaN scores, infinite gaps."""
    stopped = KernelSVC()
    vars(stopped).update(vars(svc))
    never = svc.Cs_ == 10.0
    stopped.scores_ = np.where(never, np.nan, svc.scores_)
    stopped.gaps_ = np.where(never, np.inf, svc.gaps_)
    stopped.status_ = np.where(never, "not_run", svc.status_)
    stopped.n_support_path_ = np.where(never, 0, svc.n_support_path_)
    display = kind.from_estimator(stopped)
    drawn = display.log10_gaps[0] if kind is GapDisplay else np.ma.masked_invalid(display.lines[0].values)
    np.testing.assert_array_equal(np.ma.getmaskarray(drawn), never)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (pixels(display) != pixels(kind.from_estimator(svc))).any()


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
