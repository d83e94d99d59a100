"""Probabilities from out-of-fold decision values."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold

from kernelpath import KernelDWD, KernelLogistic, KernelSVC
from kernelpath._calibration import Calibrator

METHODS = ("sigmoid", "isotonic", "temperature")
CALIBRATED = (KernelSVC, KernelDWD)
GRID = np.linspace(-6.0, 6.0, 241)


def noisy(n, seed=0):
    """Scores, some tied, and whether each is positive; the probability is ½ away from 0."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.uniform(-3.0, 3.0, n), 1)
    return scores, rng.random(n) < expit(1.7 * scores - 0.6)


def log_loss(log_odds, targets, weights):
    return np.sum(weights * (targets * np.logaddexp(0.0, -log_odds) + (1.0 - targets) * np.logaddexp(0.0, log_odds)))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_sigmoid_is_the_minimum_of_platts_objective(seed, weighted):
    scores, positive = noisy(80, seed)
    weights = np.random.default_rng(seed).uniform(0.0, 3.0, 80) if weighted else np.ones(80)
    positives, negatives = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(positive, (positives + 1.0) / (positives + 2.0), 1.0 / (negatives + 2.0))

    calibrator = Calibrator.fit("sigmoid", scores, positive, weights if weighted else None)
    naive = minimize(lambda ab: log_loss(ab[0] * scores + ab[1], targets, weights), [0.0, 0.0], tol=1e-10)
    assert [calibrator.slope, calibrator.intercept] == pytest.approx(naive.x, abs=1e-5)
    np.testing.assert_allclose(
        calibrator.probability(GRID), expit(calibrator.slope * GRID + calibrator.intercept), rtol=1e-12
    )
    theirs = _SigmoidCalibration().fit(scores, positive, weights)
    np.testing.assert_allclose(calibrator.probability(GRID), theirs.predict(GRID), atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_temperature_is_the_minimum_of_the_log_loss(seed):
    scores, positive = noisy(80, seed)
    weights = np.random.default_rng(seed).uniform(0.0, 3.0, 80)
    calibrator = Calibrator.fit("temperature", scores, positive, weights)
    naive = minimize_scalar(
        lambda log_slope: log_loss(np.exp(log_slope) * scores, positive, weights),
        bounds=(-5.0, 5.0),
        options={"xatol": 1e-10},
    )
    assert calibrator.slope == pytest.approx(np.exp(naive.x), rel=1e-6)
    assert calibrator.intercept is None
    np.testing.assert_allclose(calibrator.probability(GRID), expit(calibrator.slope * GRID), rtol=1e-12)


@given(
    data=st.lists(st.tuples(st.integers(-30, 30), st.booleans(), st.floats(0.01, 10.0)), min_size=2, max_size=60),
)
def test_isotonic_is_that_of_scikit_learn(data):
    scores, positive, weights = map(np.array, zip(*data, strict=True))
    assume(positive.any() and not positive.all())
    theirs = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(scores / 7.0, positive, weights)
    ours = Calibrator.fit("isotonic", scores / 7.0, positive, weights)
    np.testing.assert_allclose(ours.probability(GRID), theirs.predict(GRID), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@given(data=st.lists(st.tuples(st.integers(-30, 30), st.booleans(), st.integers(0, 4)), min_size=2, max_size=40))
@example(data=[(-1, False, 1), (2, True, 3), (5, True, 0), (1, False, 2)])
def test_weights_are_repeated_rows(method, data):
    scores, positive, weights = map(np.array, zip(*data, strict=True))
    rows = np.repeat(np.arange(len(data)), weights)
    assume(positive[rows].any() and not positive[rows].all())
    weighted = Calibrator.fit(method, scores / 7.0, positive, weights)
    repeated = Calibrator.fit(method, scores[rows] / 7.0, positive[rows])
    np.testing.assert_allclose(weighted.probability(GRID), repeated.probability(GRID), rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_rows_without_a_score_are_left_out(method):
    scores, positive = noisy(60)
    gaps = np.where(np.arange(60) % 3 == 0, np.nan, scores)
    there = ~np.isnan(gaps)
    ours, expected = Calibrator.fit(method, gaps, positive), Calibrator.fit(method, scores[there], positive[there])
    np.testing.assert_allclose(ours.probability(GRID), expected.probability(GRID), rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(np.isnan(ours.probability(gaps)), ~there)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_extreme_and_separable_scores(method, scale):
    scores = scale * np.array([-3.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    calibrator = Calibrator.fit(method, scores, scores > 0)
    p = calibrator.probability(np.concatenate([[-np.inf, -1e308], scores, [1e308, np.inf]]))
    assert np.all(np.diff(p) >= 0.0)
    assert p[0] < 0.2
    assert p[-1] > 0.8
    assert np.all((p >= 0.0) & (p <= 1.0))


def test_scores_that_point_the_wrong_way_give_the_base_rate():
    scores, positive = noisy(80)
    calibrator = Calibrator.fit("sigmoid", -scores, positive)
    positives, negatives = np.sum(positive), np.sum(~positive)
    base = (positives * (positives + 1) / (positives + 2) + negatives / (negatives + 2)) / 80
    assert calibrator.slope == 0.0
    np.testing.assert_allclose(calibrator.probability(GRID), base, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("platt", [1.0, 2.0], [True, False]), ValueError, "method='platt' is not available.*'temperature'"),
        (("sigmoid", [1.0, np.inf], [True, False]), ValueError, "scores contains inf at row 1"),
        (("sigmoid", [], np.array([], dtype=bool)), ValueError, "none of the 0 rows"),
        (("sigmoid", [np.nan, np.nan], [True, False]), ValueError, "none of the 2 rows"),
        (("isotonic", [1.0, 2.0], [True, True]), ValueError, "all 2 rows that count are positive"),
        (("sigmoid", [1.0, 2.0], [1, -1]), TypeError, "array of booleans, such as y == classes_"),
        (("sigmoid", [1.0, 2.0], [True]), ValueError, "positive has length 1, but 2"),
        (("sigmoid", [[1.0, 2.0]], [True, False]), ValueError, "scores must be one-dimensional"),
        (("sigmoid", [1.0, 2.0], [True, False], [1.0, -1.0]), ValueError, "got -1 at row 1"),
        (("sigmoid", [1.0, 2.0], [True, False], [1.0]), ValueError, "weights has length 1, but 2"),
    ],
)
def test_calibrator_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        Calibrator.fit(*arguments)


def test_calibrator_says_what_it_is():
    scores, positive = noisy(80)
    calibrators = [Calibrator.fit(method, scores, positive) for method in METHODS]
    sigmoid, isotonic, temperature = map(repr, calibrators)
    assert sigmoid.startswith("Calibrator('sigmoid', slope=")
    assert "intercept=" in sigmoid
    assert isotonic == f"Calibrator('isotonic', n_points={len(calibrators[1].points)})"
    assert temperature == f"Calibrator('temperature', slope={calibrators[2].slope:.6g})"


# The estimators


# Rounding hides gaps this small: it is the models that count here, not their proofs.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", CALIBRATED)
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_are_those_of_refits(kind, method, dataset):
    """scikit-learn fits each fold again, and calibrates on what it held out."""
    X, y = dataset
    folds = StratifiedKFold(5, shuffle=True, random_state=1)
    # A gap of 1e-14 of an objective near 100 leaves f unknown by √(2e-12), and an isotonic map may be steep.
    ours = kind(Cs=1.0, gamma=0.05, cv=folds, probability=method, tol=1e-14, dtype="float64").fit(X, y)
    alone = kind(Cs=1.0, gamma=0.05, cv=None, tol=1e-14, dtype="float64")
    theirs = CalibratedClassifierCV(alone, method=method, cv=folds, ensemble=False).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0.0, atol=2e-5)


@pytest.mark.parametrize("kind", CALIBRATED)
@pytest.mark.parametrize("method", [True, *METHODS])
def test_predict_proba(kind, method, small):
    X, y = small
    model = kind(Cs=[0.1, 1.0, 10.0], probability=method, random_state=0).fit(X, y)
    X = np.vstack([X, 1e3 * np.ones((1, 3))])
    f, p = model.decision_function(X), model.predict_proba(X)
    assert p.shape == (61, 2)
    assert np.all((p >= 0.0) & (p <= 1.0))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)
    assert np.all(np.diff(p[np.argsort(f), 1]) >= 0.0)
    assert model.calibration_.method == ("sigmoid" if method is True else method)
    np.testing.assert_allclose(p[:, 1], model.calibration_.probability(f), rtol=1e-12)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(p), rtol=1e-10)

    expected = Calibrator.fit(model.calibration_.method, model.oof_decision_, y == 1)
    np.testing.assert_allclose(model.oof_proba_[:, 1], expected.probability(model.oof_decision_), rtol=1e-12)
    np.testing.assert_allclose(model.oof_proba_.sum(axis=1), 1.0)
    assert 0.0 < model.calibration_seconds_ < model.fit_seconds_


def test_log_probabilities_are_finite_where_probabilities_are_zero(small):
    model = KernelSVC(kernel="linear", Cs=1.0, probability=True, random_state=0).fit(*small)
    far = 1e6 * np.ones((1, 3))
    assert model.predict_proba(far)[0, 0] == 0.0
    f = model.decision_function(far)
    expected = -(model.calibration_.slope * f[0] + model.calibration_.intercept)
    assert model.predict_log_proba(far)[0, 0] == pytest.approx(expected)


def test_when_labels_and_probabilities_disagree(small):
    """Sigmoid: exactly between 0 and −intercept/slope. Temperature: never."""
    X, y = small
    rare = np.concatenate([np.flatnonzero(y < 0), np.flatnonzero(y > 0)[:10]])
    X, y = X[rare], y[rare]
    new = np.random.default_rng(0).uniform(-2.0, 2.0, (2000, 3))
    svc = KernelSVC(kernel="linear", Cs=0.1, probability="sigmoid", random_state=0).fit(X, y)
    disagree = svc.classes_[svc.predict_proba(new).argmax(axis=1)] != svc.predict(new)
    f, threshold = svc.decision_function(new), -svc.calibration_.intercept / svc.calibration_.slope
    np.testing.assert_array_equal(disagree, (f > min(0.0, threshold)) & (f <= max(0.0, threshold)))
    assert disagree.any()
    svc.set_params(probability="temperature").fit(X, y)
    np.testing.assert_array_equal(svc.classes_[svc.predict_proba(new).argmax(axis=1)], svc.predict(new))


@pytest.mark.parametrize("kind", [*CALIBRATED, KernelLogistic])
def test_rows_never_held_out_have_no_probability(kind, small):
    X, y = small
    parameters = {} if kind is KernelLogistic else {"probability": True}
    folds = [(np.arange(30), np.arange(30, 60))]
    model = kind(Cs=1.0, cv=folds, **parameters).fit(X, y)
    assert np.isnan(model.oof_proba_[:30]).all()
    held_out = model.oof_proba_[30:]
    np.testing.assert_allclose(held_out.sum(axis=1), 1.0)
    if kind is KernelLogistic:
        np.testing.assert_allclose(held_out[:, 1], expit(model.oof_decision_[30:]))
    else:
        alone = Calibrator.fit("sigmoid", model.oof_decision_[30:], y[30:] == 1)
        np.testing.assert_allclose(held_out[:, 1], alone.probability(model.oof_decision_[30:]), rtol=1e-9)


@pytest.mark.parametrize("cv", ["loo", ShuffleSplit(4, random_state=0)])
def test_any_folds(cv, small):
    X, y = small
    model = KernelSVC(Cs=[0.1, 1.0], cv=cv, probability=True, random_state=0).fit(X, y)
    expected = Calibrator.fit("sigmoid", model.oof_decision_, y == 1)
    p = expected.probability(model.decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], p, rtol=1e-12)


@pytest.mark.parametrize("kind", CALIBRATED)
def test_probabilities_are_there_only_if_asked_for(kind, small):
    X, y = small
    model = kind(Cs=1.0, random_state=0).fit(X, y)
    for name in ("predict_proba", "predict_log_proba", "oof_proba_", "calibration_", "calibration_seconds_"):
        assert not hasattr(model, name)
    for name in ("predict_proba", "predict_log_proba"):
        with pytest.raises(AttributeError, match=rf"{kind.__name__} has no {name}: fit it with probability=True"):
            getattr(model, name)

    asked = clone(model).set_params(probability="isotonic")
    assert hasattr(asked, "predict_proba")
    assert asked.get_params()["probability"] == "isotonic"
    assert clone(asked).probability == "isotonic"
    with pytest.raises(NotFittedError):
        asked.predict_proba(X)
    asked.fit(X, y)
    assert hasattr(asked, "oof_proba_")
    np.testing.assert_array_equal(asked.predict(X), model.predict(X))

    asked.set_params(probability=False).fit(X, y)
    for name in ("predict_proba", "oof_proba_", "calibration_", "calibration_seconds_"):
        assert not hasattr(asked, name)
    with pytest.raises(NotFittedError):
        asked.set_params(probability=True).predict_proba(X)


@pytest.mark.parametrize("kind", CALIBRATED)
@pytest.mark.parametrize("value", ["platt", None, 1, "Sigmoid", ["sigmoid"]])
def test_unknown_probability(kind, value, small):
    message = r"probability=.* is not available; available: False, True \('sigmoid'\), 'sigmoid', 'isotonic', 'temp"
    with pytest.raises(ValueError, match=message):
        kind(Cs=1.0, probability=value).fit(*small)


def test_probabilities_need_held_out_rows(small):
    with pytest.raises(ValueError, match="cv=None holds none out; pass folds, such as cv=5"):
        KernelSVC(Cs=1.0, cv=None, probability=True).fit(*small)
    X, y = small
    negative = np.flatnonzero(y < 0)[:5]
    folds = [(np.setdiff1d(np.arange(60), negative), negative)]
    with pytest.raises(ValueError, match="all 5 rows that count are negative"):
        KernelSVC(Cs=1.0, cv=folds, probability=True).fit(X, y)


@pytest.mark.parametrize("method", METHODS)
def test_pickle(method, small):
    X, y = small
    model = KernelSVC(Cs=1.0, probability=method, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert repr(again.calibration_) == repr(model.calibration_)
    np.testing.assert_array_equal(again.calibration_.points, model.calibration_.points)


def test_scorers_of_probabilities_see_them(small):
    search = GridSearchCV(KernelSVC(Cs=1.0, random_state=0), {"probability": METHODS}, scoring="neg_log_loss", cv=3)
    search.fit(*small)
    scores = search.cv_results_["mean_test_score"]
    # Unlike an isotonic map, whose 0 may be wrong, these two never are.
    assert np.all(scores[[0, 2]] > -np.log(2.0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [KernelSVC, KernelDWD])
def test_c_is_chosen_by_calibrated_probabilities(make, method, small):
    """At each C the folds are scored with the map that a fit of that C alone has."""
    X, y = small
    Cs, cv = np.array([0.01, 1.0, 100.0]), list(StratifiedKFold(3, shuffle=True, random_state=1).split(X, y))
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    settings = {"cv": cv, "gamma": 0.3, "probability": method, "tol": 1e-10}
    model = make(Cs=Cs, scoring="neg_brier_score", **settings).fit(X, y, sample_weight=weight)
    expected = np.empty((3, 3))
    for c, C in enumerate(Cs):
        proba = make(Cs=C, **settings).fit(X, y, sample_weight=weight).oof_proba_[:, 1]
        for k, (_, test) in enumerate(cv):
            squares = (proba[test] - (y[test] == model.classes_[1])) ** 2
            expected[k, c] = -np.average(squares, weights=weight[test])
    np.testing.assert_allclose(model.scores_, expected, rtol=1e-4)
    assert Cs[expected.mean(axis=0).argmax()] == model.C_


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_c_is_chosen_by_probabilities_of_several_classes(multi_class):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 2)) + y[:, None]
    cv = list(StratifiedKFold(3).split(X, y))
    settings = {"cv": cv, "gamma": 0.3, "probability": True, "multi_class": multi_class}
    model = KernelSVC(Cs=[0.1, 1.0], scoring="neg_log_loss", **settings).fit(X, y)
    for c, C in enumerate([0.1, 1.0]):
        proba = KernelSVC(Cs=C, **settings).fit(X, y).oof_proba_
        for k, (_, test) in enumerate(cv):
            expected = np.mean(np.log(proba[test, y[test]]))
            assert model.scores_[k, c] == pytest.approx(expected, rel=1e-4)
    with pytest.raises(ValueError, match="tune='each' scores each machine by itself"):
        KernelSVC(Cs=[0.1, 1.0], scoring="neg_log_loss", tune="each", **settings).fit(X, y)
