"""Folds, leave-one-out, scores and the choice of C, against naive refits on each fold's rows."""

import re
import warnings
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from paths import SETTINGS, fit_path
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, f1_score, make_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.svm import SVC

from kernelpath import KernelDWD, KernelLogistic, KernelRegressor, KernelSVC, _core
from kernelpath._machines import Machines, Task

CS = [30.0, 0.3, 3.0]  # not sorted, on purpose
EXACT = {"gamma": 0.4, "tol": 1e-10, "dtype": "float64", "Cs": CS}


def overlapping_folds(n, seed=0):
    """Repeated training rows, test rows in several folds, some in none: what bootstrap splitters yield."""
    rng = np.random.RandomState(seed)
    for _ in range(4):
        train = rng.randint(n, size=n)
        yield train, np.setdiff1d(np.arange(n - 5), train)


SPLITTERS = {
    "int": lambda n: 4,
    "KFold": lambda n: KFold(3),
    "StratifiedKFold": lambda n: StratifiedKFold(5, shuffle=True, random_state=1),
    "ShuffleSplit": lambda n: ShuffleSplit(4, test_size=0.3, random_state=2),
    "Repeated": lambda n: RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=3),
    "bootstrap": lambda n: list(overlapping_folds(n)),
    "masks": lambda n: [(np.arange(n) % 3 != k, np.arange(n) % 3 == k) for k in range(3)],
    "lists": lambda n: [(list(range(20, n)), list(range(20))), (list(range(40)), list(range(40, n)))],
}


def folds_of(cv, X, y):
    if isinstance(cv, int):
        cv = StratifiedKFold(cv, shuffle=True, random_state=0)
    splits = cv.split(X, y) if hasattr(cv, "split") else cv
    rows = np.arange(len(y))
    return [(rows[train], rows[test]) for train, test in splits]


@pytest.mark.parametrize("name", SPLITTERS)
def test_every_fold_equals_a_refit_on_its_rows(small, name):
    X, y = small
    cv = SPLITTERS[name](len(y))
    clf = KernelSVC(cv=cv, random_state=0, **EXACT).fit(X, y)
    K = naive.gram(X, X, "rbf", 0.4)
    folds = folds_of(cv, X, y)
    total, times = np.zeros((len(y), len(CS))), np.zeros(len(y))
    for k, (train, test) in enumerate(folds):
        decision = np.column_stack([naive.refit(K, y, C, train, test) for C in CS])
        np.testing.assert_allclose(clf.scores_[k], np.mean((decision > 0) == (y[test] > 0)[:, None], axis=0))
        total[test] += decision
        times[test] += 1
    assert clf.scores_.shape == (len(folds), len(CS))
    # LIBSVM's float32 kernel moves f by 2⁻²⁴ Σ|β|, and Σ|β| ≤ 30 · 60.
    np.testing.assert_allclose(clf.oof_path_[times > 0], (total[times > 0].T / times[times > 0]).T, atol=1e-4)
    assert np.isnan(clf.oof_path_[times == 0]).all()
    np.testing.assert_array_equal(clf.oof_decision_, clf.oof_path_[:, clf.best_index_])


def test_objective_of_every_fold_is_that_of_the_refit(small):
    X, y = small
    folds = list(overlapping_folds(len(y)))
    K = naive.gram(X, X, "rbf", 0.4)
    Cs = np.array([1e-3, 1.0, 100.0])
    path = fit_path(X, "hinge", 0.0, y.astype(float), cs=Cs, folds=folds, gamma=0.4, tol=1e-9)
    assert path.primal.shape == path.dual.shape == (len(folds) + 1, 3)
    for k, rows in enumerate([train for train, _ in folds] + [np.arange(len(y))]):
        for j, C in enumerate([1e-3, 1.0, 100.0]):
            svc = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K[np.ix_(rows, rows)], y[rows])
            beta = np.zeros(len(rows))
            beta[svc.support_] = svc.dual_coef_[0]
            primal, dual = naive.certificate(K[np.ix_(rows, rows)], y[rows], C, beta, svc.intercept_[0])
            # LIBSVM keeps K in float32: its own gap is 1e-5 at C = 100, ours 1e-9.
            assert naive.relative_gap(primal, dual) < 3e-5
            assert dual * (1 - 2e-9) <= path.primal[k, j] <= primal * (1 + 2e-9)
            assert naive.relative_gap(path.primal[k, j], path.dual[k, j]) == pytest.approx(path.gaps[k, j], abs=1e-14)
            assert path.gaps[k, j] <= 1e-9


def test_agrees_with_grid_search(dataset):
    X, y = dataset
    Cs = np.logspace(-2, 2, 7)
    splits = list(StratifiedKFold(5, shuffle=True, random_state=3).split(X, y))
    ours = KernelSVC(gamma="scale", Cs=Cs, cv=5, random_state=3).fit(X, y)
    theirs = GridSearchCV(SVC(gamma=ours.gamma_, tol=1e-6), {"C": Cs}, cv=splits).fit(X, y)
    at_most_one_row = 1.0 / min(len(test) for _, test in splits)
    for k in range(5):
        np.testing.assert_allclose(
            ours.cv_results_[f"split{k}_test_score"],
            theirs.cv_results_[f"split{k}_test_score"],
            atol=at_most_one_row + 1e-12,
        )
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=at_most_one_row)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.98
    shared = {"mean_test_score", "std_test_score", "rank_test_score", "params"}
    assert shared <= set(ours.cv_results_) & set(theirs.cv_results_)


def test_leave_one_out_equals_naive_refits(small):
    X, y = small[0][:32], small[1][:32]
    K = naive.gram(X, X, "rbf", 0.4)
    clf = KernelSVC(cv="loo", **EXACT).fit(X, y)
    rows = np.arange(len(y))
    for j, C in enumerate(CS):
        expected = [naive.refit(K, y, C, np.delete(rows, i), [i])[0] for i in rows]
        np.testing.assert_allclose(clf.oof_path_[:, j], expected, atol=1e-4)
        np.testing.assert_array_equal(clf.scores_[:, j], (np.array(expected) > 0) == (y > 0))
    assert clf.scores_.shape == (32, 3)
    assert clf.gaps_.shape == (33, 3)
    assert clf.gaps_.max() <= 1e-10
    assert "split0_test_score" not in clf.cv_results_


def left_out_problems():
    rng = np.random.RandomState(1)
    X, few = rng.standard_normal((80, 3)), np.where(rng.random_sample(80) < 0.1, 1, -1)
    few[:3] = 1
    X[few == 1] += 1.0
    twice = np.repeat(rng.standard_normal((22, 2)), 3, axis=0)
    curve = np.sin(2 * twice[:, 0]) + 0.3 * rng.standard_normal(66)
    curve[::2] = curve[1::2]
    grid = {"Cs": np.geomspace(1e-2, 1e4, 6)}
    yield KernelLogistic(kernel="linear", Cs=[0.1, 10.0, 775.0]), X, few
    yield KernelRegressor(loss="huber", **grid), twice, curve
    yield KernelRegressor(loss="huber", delta=0.1, **grid), twice + 1e-3 * rng.standard_normal(twice.shape), curve
    yield KernelDWD(kernel="linear", **grid), X, few
    yield KernelSVC(loss="squared_hinge", kernel="linear", **grid), X, few


@pytest.mark.parametrize(("model", "X", "y"), list(left_out_problems()))
def test_leave_one_out_converges_where_the_fold_alone_does(model, X, y):
    """The solution with all rows is no good start for each of these: then the row is left out as a fold."""
    rows = np.arange(len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        loo = clone(model).set_params(cv="loo", random_state=0).fit(X, y)
        short = np.flatnonzero((loo.status_[:-1] != "converged").any(axis=1))
        assert len(short) <= 1
        if len(short):
            folds = [(np.delete(rows, i), [i]) for i in short]
            alone = clone(model).set_params(cv=folds, gamma=loo.gamma_ or 1.0).fit(X, y)
            assert (alone.status_[:-1] != "converged")[loo.status_[short] != "converged"].all()


def test_leave_one_out_as_folds_counts_in_the_progress(capfd):
    model, X, y = list(left_out_problems())[2]
    clone(model).set_params(cv="loo", verbose=1).fit(X, y)
    done, total = re.findall(r"path (\d+)/(\d+) \(100 %\)", capfd.readouterr().err)[-1]
    assert int(done) == int(total) >= 67 * 6


def test_leave_one_out_splitter_is_loo(small):
    X, y = small
    named, splitter = (KernelSVC(cv=cv, **EXACT).fit(X, y) for cv in ("loo", LeaveOneOut()))
    np.testing.assert_array_equal(named.oof_path_, splitter.oof_path_)


def test_groups_reach_the_splitter(small):
    X, y = small
    groups = np.arange(len(y)) // 6
    clf = KernelSVC(cv=GroupKFold(3), **EXACT).fit(X, y, groups=groups)
    expected = KernelSVC(cv=list(GroupKFold(3).split(X, y, groups)), **EXACT).fit(X, y)
    np.testing.assert_array_equal(clf.oof_path_, expected.oof_path_)


def test_precomputed_equals_its_kernel(small):
    X, y = small
    K = naive.gram(X, X, "rbf", 0.4)
    ours = KernelSVC(cv=4, random_state=0, **EXACT).fit(X, y)
    precomputed = KernelSVC(kernel="precomputed", cv=4, random_state=0, **EXACT).fit(K, y)
    np.testing.assert_allclose(precomputed.oof_path_, ours.oof_path_, atol=1e-5)
    X_new = X[:7] + 0.1
    np.testing.assert_allclose(
        precomputed.decision_function(naive.gram(X_new, X, "rbf", 0.4)), ours.decision_function(X_new), atol=1e-5
    )
    assert precomputed.gamma_ is None
    assert precomputed.support_vectors_.shape == (0, 0)


def test_order_of_Cs_is_kept(small):
    X, y = small
    Cs = np.array([3.0, 0.01, 100.0, 0.5])
    options = {"cv": 4, "random_state": 0, "gamma": 0.4, "tol": 1e-9, "dtype": "float64"}
    shuffled, ascending = (KernelSVC(Cs=grid, **options).fit(X, y) for grid in (Cs, np.sort(Cs)))
    order = np.argsort(Cs)
    np.testing.assert_array_equal(shuffled.Cs_, Cs)
    np.testing.assert_array_equal(shuffled.scores_[:, order], ascending.scores_)
    np.testing.assert_array_equal(shuffled.oof_path_[:, order], ascending.oof_path_)
    assert shuffled.C_ == ascending.C_
    np.testing.assert_array_equal(shuffled.dual_coef_, ascending.dual_coef_)


def test_lambdas_are_Cs(small):
    X, y = small
    n, Cs = len(y), np.array([0.1, 10.0, 1.0])
    by_lambda = KernelSVC(lambdas=1 / (2 * n * Cs), cv=3, gamma=0.4, random_state=0).fit(X, y)
    by_C = KernelSVC(Cs=Cs, cv=3, gamma=0.4, random_state=0).fit(X, y)
    np.testing.assert_allclose(by_lambda.Cs_, Cs)
    np.testing.assert_allclose(by_lambda.lambdas_, by_C.lambdas_)
    np.testing.assert_allclose(by_lambda.oof_path_, by_C.oof_path_, atol=1e-3)
    assert by_lambda.lambda_ == pytest.approx(1 / (2 * n * by_lambda.C_))


def test_default_grid(small):
    clf = KernelSVC(cv=2, random_state=0).fit(*small)
    np.testing.assert_allclose(clf.Cs_, np.logspace(-3, 3, 50))


def test_one_C_without_folds(small):
    X, y = small
    clf = KernelSVC(Cs=2.0, cv=None, gamma=0.4).fit(X, y)
    assert (clf.C_, clf.best_index_) == (2.0, 0)
    assert clf.scores_.shape == (0, 1)
    assert clf.gaps_.shape == (1, 1)
    assert np.isnan(clf.best_score_)
    assert np.isnan(clf.oof_decision_).all()


def chosen(scores, Cs, selection):
    """The place that a scorer with these scores, (n_folds, n_Cs), makes a fit choose."""
    X, y = np.array([[0.0], [1.0], [0.2], [0.8]]), np.array([-1.0, 1.0, -1.0, 1.0])
    rows = np.arange(4)
    folds = [(rows, rows)] * len(scores)
    machines = Machines([Task("hinge", 0.0, y)])
    settings = SimpleNamespace(**SETTINGS | {"selection": selection})
    return _core.fit(X, machines, settings, Cs, folds, scorer=lambda _: [scores]).places


def test_selection_rules():
    scores = np.array([[0.70, 0.80, 0.90, 0.90], [0.70, 0.86, 0.80, 0.80]])
    Cs = np.array([0.1, 1.0, 10.0, 100.0])
    assert chosen(scores, Cs, "best") == [2]  # a tie goes to the smaller C
    assert chosen(scores[:, ::-1].copy(), Cs[::-1].copy(), "best") == [1]
    assert chosen(scores, Cs, "1se") == [1]  # 0.83 ≥ 0.85 − 0.05
    scores[0, 2:] = np.nan
    assert chosen(np.where([True, True, False, False], scores, np.nan), Cs, "best") == [1]
    assert chosen(np.full((2, 4), np.nan), Cs, "best") is None


def test_one_standard_error_chooses_a_smaller_C(small):
    X, y = small
    best, simplest = (
        KernelSVC(Cs=30, cv=5, gamma=0.05, random_state=0, selection=rule).fit(X, y) for rule in ("best", "1se")
    )
    np.testing.assert_array_equal(best.scores_, simplest.scores_)
    mean = best.scores_.mean(axis=0)
    error = best.scores_[:, best.best_index_].std(ddof=1) / np.sqrt(5)
    assert mean[best.best_index_] == mean.max()
    assert simplest.C_ == best.Cs_[mean >= mean.max() - error].min()
    assert simplest.C_ < best.C_


SCORERS = {
    "roc_auc": lambda y, f: roc_auc_score(y, f),
    "average_precision": lambda y, f: average_precision_score(y == "yes", f),
    "f1": lambda y, f: f1_score(y, np.where(f > 0, "yes", "no"), pos_label="yes"),
    "balanced_accuracy": lambda y, f: np.mean([np.mean(f[y == "yes"] > 0), np.mean(f[y == "no"] <= 0)]),
}


@pytest.mark.parametrize("name", SCORERS)
def test_scoring_by_name_and_callable(small, name):
    X, sign = small
    y = np.where(sign > 0, "yes", "no")
    if name == "f1":
        scoring = make_scorer(f1_score, pos_label="yes")
    elif name == "average_precision":
        scoring = make_scorer(average_precision_score, pos_label="yes", response_method="decision_function")
    else:
        scoring = name
    clf = KernelSVC(Cs=CS, cv=3, gamma=0.4, scoring=scoring, random_state=0).fit(X, y)
    folds = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
    expected = [[SCORERS[name](y[test], f) for f in clf.oof_path_[test].T] for _, test in folds]
    np.testing.assert_allclose(clf.scores_, expected)
    assert clf.best_score_ == pytest.approx(np.mean(expected, axis=0).max())


def test_scorer_is_called_with_estimator_X_y(small):
    X, y = small
    seen = []

    def scorer(estimator, X_test, y_test):
        seen.append((X_test, y_test))
        np.testing.assert_array_equal(estimator.classes_, [-1, 1])
        return float(np.mean(estimator.predict(X_test) == y_test))

    clf = KernelSVC(Cs=CS, cv=3, gamma=0.4, scoring=scorer, random_state=0).fit(X, y)
    plain = KernelSVC(Cs=CS, cv=3, gamma=0.4, random_state=0).fit(X, y)
    np.testing.assert_array_equal(clf.scores_, plain.scores_)
    assert len(seen) == 3 * len(CS)
    for X_test, y_test in seen:
        assert all(np.any(np.all(X == row, axis=1) & (y == label)) for row, label in zip(X_test, y_test, strict=True))


def test_loo_scores_all_rows_at_once(small):
    X, y = small
    clf = KernelSVC(Cs=CS, cv="loo", gamma=0.4, scoring="roc_auc").fit(X, y)
    np.testing.assert_allclose(clf.scores_, [[roc_auc_score(y, f) for f in clf.oof_path_.T]])


def test_scorers_of_labels(small):
    X, y = small
    for name in ["accuracy", "precision", "recall", "jaccard", "matthews_corrcoef"]:
        clf = KernelSVC(Cs=[1.0, 10.0], cv=2, gamma=0.4, scoring=name, random_state=0).fit(X, y)
        assert np.isfinite(clf.scores_).all()
