"""Which C and γ a fit chooses, and what it tells of the choice."""

import json
import re
import time
import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, PredefinedSplit, StratifiedKFold
from sklearn.svm import SVC

import kernelpath
from kernelpath import (
    GridEdgeWarning,
    KernelLogistic,
    KernelQuantile,
    KernelRegressor,
    KernelSVC,
    KernelSVR,
)
from kernelpath._edge import with_error
from kernelpath._results import FoldScores, cv_results, shortfall

pytestmark = pytest.mark.filterwarnings("ignore::kernelpath.GridEdgeWarning")

CS = [0.1, 1.0, 10.0, 100.0]
GAMMAS = [0.05, 0.2, 0.8, 3.2]


def sample(seed, n=40, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    f = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.standard_normal(n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))


def chosen(model):
    return np.ravel(model.C_).tolist(), model.gamma_


# -------------------------------------------------- the order of the grid, and ties


@pytest.mark.parametrize("selection", ["best", "1se"])
@pytest.mark.parametrize(
    ("kind", "classes", "options"),
    [
        (KernelSVC, 2, {}),
        (KernelSVC, 3, {"tune": "each"}),
        (KernelLogistic, 3, {"scoring": "balanced_accuracy"}),
        (KernelSVC, 2, {"cv": "loo"}),
    ],
)
def test_the_order_of_the_grid_changes_nothing(kind, classes, options, selection):
    for seed in range(12):
        X, y = sample(seed, classes=classes)
        rng = np.random.default_rng(seed)
        settings = {"cv": 4, "tol": 1e-4, "selection": selection, "n_jobs": 1, **options}
        first = kind(Cs=CS, gamma=GAMMAS, **settings).fit(X, y)
        for _ in range(3):
            Cs, gammas = rng.permutation(CS), rng.permutation(GAMMAS)
            again = kind(Cs=Cs, gamma=gammas.tolist(), **settings).fit(X, y)
            assert chosen(again) == chosen(first), seed
            np.testing.assert_array_equal(again.best_score_, first.best_score_)
            # Each model is the same wherever it stands.
            order = np.ix_([GAMMAS.index(g) for g in gammas], [CS.index(C) for C in Cs])
            np.testing.assert_array_equal(again.scores_, first.scores_[..., order[0], order[1]])
            if selection == "best" and "tune" not in options:
                assert again.cv_results_["rank_test_score"][again.best_index_] == 1


def test_ties_go_to_the_smaller_C_then_to_the_smoother_kernel():
    X, y = sample(0)
    X[:, 0] += 20.0 * y  # every model separates the classes
    model = KernelSVC(Cs=[100.0, 10.0, 50.0], gamma=[0.02, 0.005, 0.01], cv=3).fit(X, y)
    assert (model.scores_ == 1.0).all()
    assert (model.C_, model.gamma_) == (10.0, 0.005)
    assert (model.cv_results_["rank_test_score"] == 1).all()


class Answers:
    """A scorer that answers with these numbers, fold after fold, and in a fold place after place."""

    def __init__(self, scores):
        self.left = iter(np.ravel(scores).tolist())

    def __call__(self, estimator, X, y):
        return next(self.left)


def test_scores_that_differ_by_rounding_are_equal():
    """The mean of 0.1, 0.2, 0.3 depends on their order, by an ulp."""
    X, y = sample(1)
    scores = np.array([[0.3, 0.1, 0.1], [0.2, 0.3, 0.2], [0.1, 0.2, 0.3]])
    assert len(set(scores.mean(axis=0))) > 1
    for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
        model = KernelSVC(Cs=[1.0, 2.0, 3.0], gamma=0.5, cv=3, scoring=Answers(scores[:, order])).fit(X, y)
        assert model.C_ == 1.0
        assert model.cv_results_["rank_test_score"].tolist() == [1, 1, 1]
        model = KernelSVC(Cs=1.0, gamma=[0.3, 0.1, 0.2], cv=3, scoring=Answers(scores[:, order])).fit(X, y)
        assert model.gamma_ == 0.1
        assert model.cv_results_["rank_test_score"][model.best_index_] == 1


def test_ranks_against_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (3, 40)).astype(float)
    theirs = np.array([1 + np.sum(scores.sum(axis=0) > total) for total in scores.sum(axis=0)])
    np.testing.assert_array_equal(FoldScores(scores).ranks(), theirs)
    scores[1, ::5] = np.nan
    assert set(FoldScores(scores).ranks()[::5]) == {33}


def test_a_model_that_cannot_be_chosen_ranks_last():
    scores, gaps = np.array([[0.9, 0.5], [0.9, 0.7]]), np.zeros((3, 2))
    status = np.array([["converged"] * 2, ["converged"] * 2, ["not_run", "converged"]])
    table = cv_results(
        scores, gaps, status, np.array([1.0, 2.0]), None, weight=None, split_columns=True, by_lambda=False
    )
    assert table["rank_test_score"].tolist() == [2, 1]
    assert table["mean_test_score"].tolist() == [0.9, 0.6]


# -------------------------------------------------- folds that do not count


def test_folds_without_a_row_of_a_machine_are_skipped_by_means():
    X, y = sample(2, n=90, classes=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    model = KernelSVC(Cs=CS, gamma=0.5, cv=KFold(6), tune="each").fit(X, y)
    assert np.isnan(model.scores_).all(axis=-1).any()
    for m in range(3):
        scores = model.scores_[m][~np.isnan(model.scores_[m]).all(axis=1)]
        assert 0 < len(scores) < 6
        np.testing.assert_allclose(model.cv_results_[m]["mean_test_score"], scores.mean(axis=0), rtol=1e-15)
        np.testing.assert_allclose(model.cv_results_[m]["std_test_score"], scores.std(axis=0), rtol=1e-12, atol=1e-16)
        assert model.best_score_[m] == scores.mean(axis=0).max()
        assert model.cv_results_[m]["rank_test_score"][model.best_index_[m]] == 1
    assert "nan" not in model.path_table()
    assert re.search(r"\d ± \d", model.path_table())


def test_a_fold_that_was_not_run_leaves_no_mean():
    scores = np.array([[0.5, 0.7], [np.nan, np.nan]])
    run = np.array([["converged"] * 2] * 2)
    assert FoldScores.counted(scores, None, run).mean().tolist() == [0.5, 0.7]
    run[1] = "not_run"
    assert np.isnan(FoldScores.counted(scores, None, run.astype("U9")).mean()).all()


# -------------------------------------------------- leave-one-out with weights


@pytest.mark.parametrize("classes", [2, 3])
def test_leave_one_out_weighs_rows_as_a_scorer_does(classes):
    for seed in range(8):
        X, y = sample(seed, classes=classes)
        weight = np.random.default_rng(seed).choice([0.05, 1.0, 20.0], len(y))
        ours, theirs = (
            KernelSVC(Cs=CS, gamma=GAMMAS, cv="loo", scoring=scoring).fit(X, y, sample_weight=weight)
            for scoring in (None, "accuracy")
        )
        np.testing.assert_allclose(
            ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-12
        )
        assert chosen(ours) == chosen(theirs), seed
        assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-12)
        expected = np.average(ours.scores_.reshape(len(y), -1), axis=0, weights=weight)
        np.testing.assert_allclose(ours.cv_results_["mean_test_score"], expected, rtol=1e-12)


def test_leave_one_out_weighs_the_rows_of_each_machine(tmp_path):
    X, y = sample(3, n=45, classes=3)
    weight = np.random.default_rng(0).choice([0.0, 0.05, 1.0, 20.0], len(y))
    model = KernelSVC(Cs=CS, gamma=0.5, cv="loo", tune="each").fit(X, y, sample_weight=weight)
    counted = weight[weight > 0]
    np.testing.assert_array_equal(model.fold_weights_, counted)
    for m, (positive, negative) in enumerate(model.machines_):
        own = np.isin(y[weight > 0], (positive, negative))
        expected = np.average(model.scores_[m][own], axis=0, weights=counted[own])
        np.testing.assert_allclose(model.cv_results_[m]["mean_test_score"], expected, rtol=1e-12)
        assert model.best_score_[m] == pytest.approx(expected.max(), rel=1e-12)
    model.save(tmp_path / "model.kpath")
    again = kernelpath.load(tmp_path / "model.kpath")
    np.testing.assert_array_equal(again.fold_weights_, counted)
    assert again.path_table() == model.path_table()
    # Without weights there are none to tell of.
    model.fit(X, y)
    assert not hasattr(model, "fold_weights_")


def test_leave_one_out_weighs_the_losses_of_regressors():
    X, y = sample(4)
    y = y + np.sin(3 * X[:, 0])
    weight = np.random.default_rng(1).choice([0.05, 1.0, 20.0], len(y))
    model = KernelQuantile(tau=[0.3, 0.8], Cs=CS, gamma=0.5, cv="loo", selection="1se").fit(X, y, sample_weight=weight)
    for k, scores in enumerate(model.scores_):
        mean = np.average(scores, axis=0, weights=weight)
        best = mean.argmax()
        error = np.sqrt(np.sum((weight * (scores[:, best] - mean[best])) ** 2) * 40 / 39) / weight.sum()
        assert model.C_[k] == model.Cs_[mean >= mean.max() - error].min()


def test_leave_one_out_without_weights_is_grid_search():
    X, y = sample(5)
    ours = KernelSVC(Cs=CS, gamma=0.5, cv="loo").fit(X, y)
    theirs = GridSearchCV(SVC(gamma=0.5, tol=1e-8), {"C": CS}, cv=LeaveOneOut()).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-12)


# -------------------------------------------------- scorers


def unweighted_accuracy(y_true, y_pred):
    return accuracy_score(y_true, y_pred)


def test_scorers_get_weights_if_they_take_them():
    """As in GridSearchCV: by the parameter ``sample_weight`` of the metric, or of the function itself."""
    X, y = sample(6)
    weight = np.random.default_rng(0).choice([0.1, 1.0, 10.0], len(y))
    folds = list(KFold(4).split(X))
    settings = {"Cs": CS, "gamma": 0.5, "cv": folds}

    def mean_scores(scoring):
        return KernelSVC(**settings, scoring=scoring).fit(X, y, sample_weight=weight).cv_results_["mean_test_score"]

    weighted = mean_scores("accuracy")
    np.testing.assert_array_equal(mean_scores(make_scorer(accuracy_score)), weighted)

    def with_weights(estimator, X, y, sample_weight=None):
        return accuracy_score(y, estimator.predict(X), sample_weight=sample_weight)

    np.testing.assert_array_equal(mean_scores(with_weights), weighted)
    for scorer in (make_scorer(unweighted_accuracy), lambda estimator, X, y: np.mean(estimator.predict(X) == y)):
        with pytest.warns(UserWarning, match="does not take sample_weight"):
            plain = mean_scores(scorer)
        assert not np.allclose(plain, weighted)
        theirs = [
            np.mean([np.mean(m.predict(X[b]) == y[b]) for m, (_, b) in zip(models, folds, strict=True)])
            for models in (
                [SVC(C=C, gamma=0.5, tol=1e-8).fit(X[a], y[a], sample_weight=weight[a]) for a, _ in folds] for C in CS
            )
        ]
        np.testing.assert_allclose(plain, theirs, atol=1e-12)


def test_a_request_for_metadata_goes_before_the_signature():
    X, y = sample(6)
    weight = np.random.default_rng(0).choice([0.1, 1.0, 10.0], len(y))
    with config_context(enable_metadata_routing=True):
        asked, refused = (make_scorer(accuracy_score).set_score_request(sample_weight=asks) for asks in (True, False))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", GridEdgeWarning)
        weighted, plain = (
            KernelSVC(Cs=CS, gamma=0.5, cv=4, scoring=scorer).fit(X, y, sample_weight=weight)
            for scorer in (asked, refused)
        )
    for model, weights in ((weighted, weight), (plain, None)):
        right = (model.oof_path_ > 0) == (y > 0)[:, None]
        folds = StratifiedKFold(4, shuffle=True, random_state=0).split(X, y)
        means = [np.average(right[b], axis=0, weights=weights if weights is None else weights[b]) for _, b in folds]
        np.testing.assert_allclose(model.scores_, means, rtol=1e-12)


def test_the_score_of_a_model_follows_the_same_rule():
    X, y = sample(7)
    weight = np.where(y > 0, 1.0, 5.0)
    plain = KernelSVC(Cs=1.0, cv=3, scoring=make_scorer(unweighted_accuracy)).fit(X, y)
    with pytest.warns(UserWarning, match="does not take sample_weight"):
        assert plain.score(X, y, sample_weight=weight) == np.mean(plain.predict(X) == y)
    weighted = clone(plain).set_params(scoring="accuracy").fit(X, y)
    assert weighted.score(X, y, sample_weight=weight) == accuracy_score(y, weighted.predict(X), sample_weight=weight)
    quantile = KernelQuantile(tau=[0.2, 0.8], Cs=1.0, cv=3, scoring=make_scorer(lambda y, q: -np.mean(abs(y - q))))
    quantile.fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="does not take sample_weight"):
        assert quantile.score(X, X[:, 0], sample_weight=weight) == quantile.score(X, X[:, 0])


@pytest.mark.parametrize("cv", [3, "loo"])
def test_a_metric_is_no_scorer(cv):
    X, y = sample(8)
    with pytest.raises(ValueError, match=r"scoring=f1_score .*pass scoring=make_scorer\(f1_score\)"):
        KernelSVC(Cs=CS, cv=cv, scoring=f1_score).fit(X, y)
    KernelSVC(Cs=CS, cv=cv, scoring=make_scorer(f1_score)).fit(X, y)


# -------------------------------------------------- rows of weight 0


def test_a_predefined_split_counts_rows_of_weight_0_as_none():
    X, y = sample(9)
    weight = np.ones(len(y))
    weight[[3, 10, 11, 39]] = 0.0
    fold = np.arange(len(y)) % 4 - 1
    ours = KernelSVC(Cs=CS, gamma=0.5, cv=PredefinedSplit(fold)).fit(X, y, sample_weight=weight)
    kept = weight > 0
    without = KernelSVC(Cs=CS, gamma=0.5, cv=PredefinedSplit(fold[kept])).fit(X[kept], y[kept])
    np.testing.assert_array_equal(ours.scores_, without.scores_)
    np.testing.assert_array_equal(ours.oof_decision_[kept], without.oof_decision_)
    with pytest.raises(ValueError, match="has the folds of 39 rows, but X has 40"):
        KernelSVC(Cs=CS, cv=PredefinedSplit(fold[:-1])).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("part", [0, 1])
def test_a_fold_of_weight_0_is_named(part):
    X, y = sample(10)
    rows = np.arange(len(y))
    folds = [(rows, rows), (rows, rows)]
    folds[1] = (rows[:5], rows) if part == 0 else (rows, rows[:5])
    weight = np.where(rows < 5, 0.0, 1.0)
    name = ("train", "test")[part]
    with pytest.raises(ValueError, match=f"the {name} part of fold 1 has rows of weight 0 only"):
        KernelSVC(Cs=CS, cv=folds).fit(X, y, sample_weight=weight)


# -------------------------------------------------- what is told


@pytest.mark.parametrize(
    ("make", "y_of"),
    [
        (lambda **grid: KernelSVC(cv=3, **grid), lambda X, y: y),
        (lambda **grid: KernelRegressor(loss="huber", cv=3, **grid), lambda X, y: X[:, 0]),
        (lambda **grid: KernelSVC(cv=3, tune="each", **grid), lambda X, y: y + (X[:, 1] > 0.5)),
    ],
)
@pytest.mark.parametrize(
    "grid",
    [
        {"Cs": CS, "gamma": [0.9, 0.1]},
        {"Cs": CS, "gamma": 0.3},
        {"Cs": 4, "gamma": "auto-grid"},
        {"lambdas": [1e-4, 1e-2], "gamma": [0.3, 0.03]},
    ],
)
def test_the_best_index_names_parameters_that_lead_to_the_model(make, y_of, grid):
    X, y = sample(11, n=60)
    model = make(**grid).fit(X, y_of(X, y))
    tables = model.cv_results_ if isinstance(model.cv_results_, list) else [model.cv_results_]
    places = zip(tables, np.ravel(model.best_index_), np.ravel(model.C_), np.ravel(model.best_score_), strict=True)
    for table, k, C, score in places:
        params = table["params"][k]
        assert (params["Cs"], params.get("gamma", model.gamma_)) == (C, model.gamma_)
        assert table["mean_test_score"][k] == score
        assert table["param_Cs"][k] == C
        assert ("param_gamma" in table) == (len(model.gammas_) > 1) == ("gamma" in params)
        alone = make(**grid).set_params(**params)
        assert set(params) <= set(alone.get_params())
        if len(tables) == 1:
            assert params == model.best_params_
            alone.fit(X, y_of(X, y))
            assert (alone.C_, alone.gamma_) == (model.C_, model.gamma_)
            np.testing.assert_allclose(alone.predict(X), model.predict(X), atol=1e-2)
    marked = [line.startswith("*") for line in model.path_table().splitlines() if re.match(r"[ *] +\d", line)]
    n_lines = len(tables[0]["params"])
    assert np.flatnonzero(marked).tolist() == [k + m * n_lines for m, k in enumerate(np.ravel(model.best_index_))]


def test_files_keep_the_best_index(tmp_path):
    X, y = sample(12)
    model = KernelSVC(Cs=CS, gamma=[0.01, 2.0, 0.5], cv=3).fit(X, y)
    model.save(tmp_path / "model.kpath")
    again = kernelpath.load(tmp_path / "model.kpath")
    assert again.best_index_ == model.best_index_
    assert again.cv_results_["params"] == model.cv_results_["params"]
    assert json.dumps(again.cv_results_["params"][again.best_index_])


@pytest.mark.parametrize(
    ("grid", "values", "instead"),
    [
        ({"Cs": 1.0, "gamma": [0.1, 1.0]}, "2 values of gamma", "one gamma, such as gamma='sigest'"),
        ({"Cs": CS, "gamma": 1.0}, "4 values of C", "one C, such as Cs=1.0"),
        ({"Cs": CS, "gamma": [0.1, 1.0]}, "4 values of C and 2 values of gamma", "one C, such as Cs=1.0 and one gamma"),
    ],
)
def test_what_cannot_be_chosen_is_named(grid, values, instead):
    X, y = sample(13)
    with pytest.raises(ValueError, match=f"cv=None cannot choose among {values}; pass {instead}"):
        KernelSVC(cv=None, **grid).fit(X, y)


def test_a_gap_below_tol_is_not_said_to_miss_it():
    gaps, noise = np.array([[2.1e-15, 1e-16], [1e-16, 1e-16]]), np.array([[3e-13, 1e-16], [4e-14, 1e-16]])
    status = np.array([["inaccurate", "converged"], ["inaccurate", "converged"]])
    told = {"tol": 1e-14, "time_budget": None, "untried": (0, 1)}
    message = shortfall(gaps, noise, status, np.array([1.0, 2.0]), 0, **told)
    assert "did not reach" not in message
    assert "2 of 4 models are not proved to reach tol=1e-14 (inaccurate)" in message
    assert "by up to 3.0e-13 (fold 0, C=1)" in message
    assert "has gap 1.0e-16, known up to 4.0e-14" in message
    gaps[0, 0], status[0, 0] = 1e-3, "stalled"
    message = shortfall(gaps, noise, status, np.array([1.0, 2.0]), 1, **told)
    assert "1 of 4 models did not reach tol=1e-14 (stalled); the worst relative duality gap is 1.0e-03" in message
    assert "1 of 4 models are not proved" in message


def test_the_warning_of_a_tiny_tol_does_not_contradict_itself():
    X, y = sample(14)
    with pytest.warns(ConvergenceWarning) as record:
        model = KernelLogistic(Cs=[1.0, 10.0], cv=3, gamma=0.5, tol=1e-17).fit(X, y)
    message = str(record[0].message)
    worst = re.search(r"the worst relative duality gap is (\S+) ", message)
    assert worst is None or float(worst[1]) > 1e-17
    assert f"has gap {model.gaps_[-1, model.best_index_]:.1e}" in message


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0.0019, 0.0018, "0.0019 ± 0.0018"),
        (0.00194, 0.00186, "0.0019 ± 0.0019"),
        (0.123456, 0.0321, "0.123 ± 0.032"),
        (12345.6, 321.0, "12346 ± 321"),
        (1e-12, 3e-13, "1e-12 ± 3e-13"),
        (0.5, 0.0, "0.5 ± 0"),
    ],
)
def test_a_rise_is_shown_to_the_digits_of_its_error(value, error, shown):
    if shown == "0.0019 ± 0.0019":
        shown = "0.00194 ± 0.00186"
    assert with_error(value, error) == shown


@pytest.mark.parametrize(
    ("grid", "parameter", "holds"),
    [
        ({"Cs": [1e-3, 1e-2, 0.1]}, "Cs", lambda wide: wide[0] == 1e-3 and wide[-1] >= 10.0 and len(wide) == 5),
        ({"Cs": np.geomspace(1e-4, 0.1, 31)}, "Cs", lambda wide: wide[-1] >= 9.9 and len(wide) == 51),
        ({"lambdas": [0.01, 1.0, 10.0]}, "lambdas", lambda wide: wide[0] <= 1.1e-4 and wide[-1] == 10.0),
        ({"Cs": 1.0, "gamma": [1e-3, 1e-2, 0.1]}, "gamma", lambda wide: wide[-1] >= 0.99 and len(wide) == 4),
        ({"Cs": [0.05, 0.1]}, "Cs", lambda wide: wide[0] == 0.05 and wide[-1] >= 9.9),
    ],
)
def test_the_call_of_a_wider_grid_can_be_pasted(grid, parameter, holds):
    rng = np.random.default_rng(0)
    angle, outer = rng.uniform(0, 2 * np.pi, 300), rng.integers(0, 2, 300)
    radius = 1.0 + 0.5 * outer + 0.1 * rng.standard_normal(300)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    with pytest.warns(GridEdgeWarning) as record:
        model = KernelSVC(**({"gamma": 1.0, "cv": 5} | grid)).fit(X, outer)
    call = re.search(r"model\.set_params\(.*\)$", str(record[0].message))[0]
    score = np.max(model.best_score_)
    wider = eval(call, {"model": model, "np": np})
    assert holds(np.asarray(getattr(wider, parameter)))
    assert wider.fit(X, outer).best_score_ >= score - 0.02


# -------------------------------------------------- one budget of time


def slow(n=1500):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, 10)), rng.integers(0, 2, n)  # noise, which is slow at large C


@pytest.mark.parametrize("budget", [0.6, 2.0])
def test_a_budget_of_time_is_one_for_all_gammas(budget):
    X, y = slow()
    model = KernelSVC(Cs=np.geomspace(1e-3, 1e4, 1000), gamma="auto-grid", cv=5, tol=1e-9, time_budget=budget)
    started = time.monotonic()
    with pytest.warns(ConvergenceWarning, match=rf"^time_budget={budget:g} s ended the fit") as record:
        model.fit(X, y)
    seconds = time.monotonic() - started
    assert model.timed_out_
    message = str(record[0].message)
    assert "of 36000 models were not run" in message
    assert "of 6000 pairs of C and gamma were run on every fold" in message
    untried = re.search(r"(\d) of 6 values of gamma were not begun", message)
    assert len(model.gammas_) + (int(untried[1]) if untried else 0) == 6
    assert np.isfinite(model.best_score_)
    assert model.status_.reshape(6, -1)[-1, model.best_index_] != "not_run"
    assert model.predict(X).shape == (len(X),)
    assert seconds <= budget + 2.0  # on a busy machine


def test_what_is_found_before_the_budget_ends_is_returned():
    """A share of the budget is too short for the landmarks of one γ, and the whole budget is not."""
    X, y = slow(4000)
    settings = {"Cs": [0.1, 1.0], "low_rank": True, "n_landmarks": 150, "landmarks": "kmeans", "cv": 2, "tol": 1e-3}
    started = time.monotonic()
    KernelSVC(gamma=0.1, **settings).fit(X, y)
    one = time.monotonic() - started
    gammas = np.geomspace(0.01, 1.0, 30).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelSVC(gamma=gammas, time_budget=5.0 * one, **settings).fit(X, y)
    assert 1 <= len(model.gammas_) < 30
    assert model.timed_out_
    assert np.isfinite(model.best_score_)


def test_the_message_of_too_short_a_budget_names_the_budget():
    X, y = slow()
    for settings in ({}, {"low_rank": True, "n_landmarks": 500, "landmarks": "kmeans"}):
        with pytest.raises(TimeoutError, match=r"(time_budget=0\.001|budget of 0\.001) s"):
            KernelSVC(gamma=[0.1, 0.2, 0.4, 0.8], time_budget=1e-3, **settings).fit(X, y)


def test_an_ample_budget_changes_nothing_with_several_gammas():
    X, y = sample(15)
    with_budget, without = (
        KernelSVC(Cs=CS, gamma=GAMMAS, cv=3, time_budget=budget).fit(X, y) for budget in (1e3, None)
    )
    np.testing.assert_array_equal(with_budget.scores_, without.scores_)
    assert chosen(with_budget) == chosen(without)
    assert not with_budget.timed_out_


# -------------------------------------------------- seconds


@pytest.mark.parametrize("low_rank", [False, True])
def test_seconds_of_machines_side_by_side_are_seconds_that_passed(low_rank):
    X, y = sample(16, n=240, classes=8)
    approximation = {"low_rank": True, "n_landmarks": 40} if low_rank else {}
    model = KernelSVC(Cs=CS, cv=3, n_jobs=2, **approximation).fit(X, y)
    assert model.kernel_seconds_ >= 0.0
    assert model.path_seconds_ > 0.0
    assert model.kernel_seconds_ + model.path_seconds_ <= model.fit_seconds_


def test_targets_are_scored_apart_with_weights_and_folds():
    X, y = sample(17)
    Y = np.column_stack([X[:, 0], X[:, 1] ** 2])
    weight = np.random.default_rng(2).choice([0.1, 1.0, 5.0], len(y))
    model = KernelSVR(Cs=CS, gamma=0.5, cv="loo", tune="each").fit(X, Y, sample_weight=weight)
    for k in range(2):
        mean = np.average(model.scores_[k], axis=0, weights=weight)
        np.testing.assert_allclose(model.cv_results_[k]["mean_test_score"], mean, rtol=1e-12)
        assert model.best_score_[k] == pytest.approx(mean.max(), rel=1e-12)
