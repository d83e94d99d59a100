"""A fold is the refit of the same estimator on its rows: class weights, and classes that are missing from it."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, ShuffleSplit
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_sample_weight

from kernelpath import KernelDWD, KernelLogistic, KernelSVC

GAMMA = 0.4
# With smaller C's every row of balanced classes stands at its bound, and an interval of intercepts is optimal, of which
# LIBSVM takes an end or the middle, as rounding has it.
Cs = [0.7, 4.0, 20.0]
FIXED = {"gamma": GAMMA, "tol": 1e-10, "dtype": "float64"}


def imbalanced(n_classes=2, n=90, seed=3):
    """Rows sorted by a feature that has to do with the class, so that unstratified folds differ in their classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    cuts = {2: [0.9], 3: [0.4, 1.3], 4: [-0.2, 0.6, 1.4]}[n_classes]
    y = np.digitize(X[:, 0] + 0.7 * rng.standard_normal(n), cuts)
    order = np.argsort(X[:, 1] + 0.5 * y, kind="stable")
    return X[order], np.array(["a", "b", "c", "d"])[y[order]]


class WeighedByHand(ClassifierMixin, BaseEstimator):
    """The model of one C, with the weights of the classes of the rows it is given multiplied into those of the rows."""

    def __init__(self, model=None, Cs=1.0):
        self.model = model
        self.Cs = Cs

    def fit(self, X, y, sample_weight=None):
        own = np.ones(len(y)) if sample_weight is None else sample_weight
        # scikit-learn's LogisticRegression counts weights; so does this.
        total = {label: own[y == label].sum() for label in np.unique(y)}
        factor = {label: own.sum() / (len(total) * of) for label, of in total.items()}
        self.classes_ = np.unique(y)
        self.fitted_ = clone(self.model).set_params(Cs=self.Cs, cv=None)
        self.fitted_.fit(X, y, sample_weight=own * np.array([factor[label] for label in y]))
        return self

    def predict(self, X):
        return self.fitted_.predict(X)

    def decision_function(self, X):
        return self.fitted_.decision_function(X)


FOLDS = [KFold(4), ShuffleSplit(3, test_size=0.4, random_state=5)]
FOLD_IDS = ["sorted", "shuffled"]


@pytest.mark.parametrize("folds", FOLDS, ids=FOLD_IDS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_balanced_folds_are_those_of_svc(folds, n_classes):
    X, y = imbalanced(n_classes)
    ours = KernelSVC(class_weight="balanced", Cs=Cs, cv=folds, **FIXED).fit(X, y)
    theirs = GridSearchCV(
        SVC(class_weight="balanced", gamma=GAMMA, tol=1e-9, break_ties=True, decision_function_shape="ovr"),
        {"C": Cs},
        cv=folds,
    ).fit(X, y)
    mean = theirs.cv_results_["mean_test_score"]
    np.testing.assert_allclose(ours.scores_.mean(axis=0), mean, atol=1e-12)
    assert ours.C_ == theirs.best_params_["C"]
    # One weighting of all rows gives other scores: the test can fail.
    once = KernelSVC(Cs=Cs, cv=folds, **FIXED).fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    assert np.abs(once.oof_decision_ - ours.oof_decision_)[~np.isnan(ours.oof_decision_)].max() > 1e-3
    if isinstance(folds, KFold):
        for train, test in folds.split(X, y):
            svc = SVC(class_weight="balanced", gamma=GAMMA, tol=1e-9, C=ours.C_).fit(X[train], y[train])
            np.testing.assert_allclose(ours.oof_decision_[test], svc.decision_function(X[test]), atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("folds", FOLDS, ids=FOLD_IDS)
@pytest.mark.parametrize(
    ("model", "n_classes"),
    [
        (KernelLogistic(), 2),
        (KernelDWD(), 2),
        (KernelSVC(loss="squared_hinge"), 2),
        (KernelSVC(solver="spectral"), 2),
        (KernelLogistic(multi_class="ovo"), 3),
        (KernelLogistic(multi_class="ovr"), 3),
        (KernelSVC(multi_class="ovr"), 4),
        (KernelLogistic(multi_class="multinomial"), 3),
        (KernelSVC(low_rank=True, n_landmarks=30, landmarks="uniform"), 3),
        (KernelLogistic(multi_class="multinomial", low_rank=True, n_landmarks=30, landmarks="uniform"), 3),
    ],
)
def test_balanced_folds_are_refits(model, n_classes, folds, weighted):
    """Scores, and values of held-out rows, are those of models that are fitted on the training rows of each fold."""
    X, y = imbalanced(n_classes)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y)) if weighted else None
    model = clone(model).set_params(**FIXED)
    if model.low_rank:
        # All folds work on the same landmarks, as points.
        model.set_params(landmarks=X[::3], tol=1e-9)
    ours = clone(model).set_params(class_weight="balanced", Cs=Cs, cv=folds).fit(X, y, sample_weight=weight)
    assert ours.gaps_.max() <= model.tol
    own = np.ones(len(y)) if weight is None else weight
    for k, (train, test) in enumerate(folds.split(X, y)):
        for c, C in enumerate(Cs):
            twin = WeighedByHand(model, C).fit(X[train], y[train], sample_weight=own[train])
            right = twin.predict(X[test]) == y[test]
            assert ours.scores_[k, c] == pytest.approx(np.average(right, weights=own[test]), abs=1e-12)
            if ours.C_ == C and isinstance(folds, KFold):
                f = twin.decision_function(X[test])
                np.testing.assert_allclose(ours.oof_decision_[test], f, atol=2e-4 * max(1.0, np.abs(f).max()))


def test_repeated_rows_of_a_fold_count_repeatedly():
    X, y = imbalanced()
    rng = np.random.default_rng(0)
    folds = [(rng.choice(90, 70), rng.choice(90, 20, replace=False)) for _ in range(3)]
    ours = KernelLogistic(class_weight="balanced", Cs=[2.0, 3.0], cv=folds, **FIXED).fit(X, y)
    model = KernelLogistic(**FIXED)
    for k, (train, test) in enumerate(folds):
        for c, C in enumerate([2.0, 3.0]):
            twin = WeighedByHand(model, C).fit(X[train], y[train])
            assert ours.scores_[k, c] == pytest.approx(np.mean(twin.predict(X[test]) == y[test]), abs=1e-12)


def test_balanced_logistic_regression():
    """Against scikit-learn's on the features of a Cholesky factor, whose weights have the penalty of the kernel."""
    X, y = imbalanced()
    K = np.exp(-GAMMA * cdist(X, X, "sqeuclidean")) + 1e-8 * np.eye(len(y))
    Z = np.linalg.cholesky(K)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    folds = KFold(4)
    ours = KernelLogistic(class_weight="balanced", Cs=Cs, cv=folds, kernel="precomputed", tol=1e-10)
    ours.fit(K, y, sample_weight=weight)
    for train, test in folds.split(X):
        theirs = LogisticRegression(C=ours.C_, class_weight="balanced", tol=1e-10, solver="newton-cholesky")
        theirs.fit(Z[train], y[train], sample_weight=weight[train])
        np.testing.assert_allclose(ours.oof_decision_[test], theirs.decision_function(Z[test]), atol=1e-4)


# ------------------------------------------------------------------------------------------------- leave-one-out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("model", "n_classes"),
    [
        (KernelSVC(), 2),
        (KernelSVC(solver="spectral"), 2),
        (KernelSVC(loss="squared_hinge"), 2),
        (KernelLogistic(), 2),
        (KernelDWD(), 2),
        (KernelSVC(), 3),
        (KernelSVC(multi_class="ovr"), 3),
        (KernelLogistic(multi_class="ovr"), 3),
    ],
)
def test_leave_one_out_balances_without_the_row(model, n_classes, weighted):
    X, y = imbalanced(n_classes, n=40, seed=8)
    X[5], y[5] = X[4], y[4]  # equal rows are one unit, of which one row is left out
    weight = np.where(np.arange(40) % 3 == 0, 2.0, 1.0) if weighted else np.ones(40)
    weight[5] = weight[4]
    model = clone(model).set_params(**FIXED)
    cs = [0.5, 5.0]
    ours = clone(model).set_params(class_weight="balanced", Cs=cs, cv="loo").fit(X, y, sample_weight=weight)
    assert ours.gaps_.max() <= 1e-10
    place = cs.index(ours.C_)
    for i in range(40):
        rest = np.arange(40) != i
        twin = WeighedByHand(model, ours.C_).fit(X[rest], y[rest], sample_weight=weight[rest])
        f = twin.decision_function(X[[i]])[0]
        np.testing.assert_allclose(ours.oof_decision_[i], f, atol=1e-4 * max(1.0, np.abs(f).max()))
        assert ours.scores_[i, place] == float(twin.predict(X[[i]])[0] == y[i])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leave_one_out_of_svc(n_classes):
    X, y = imbalanced(n_classes, n=50, seed=4)
    ours = KernelSVC(class_weight="balanced", Cs=Cs, cv="loo", **FIXED).fit(X, y)
    svc = SVC(class_weight="balanced", gamma=GAMMA, tol=1e-9, break_ties=True, decision_function_shape="ovr")
    theirs = GridSearchCV(svc, {"C": Cs}, cv=LeaveOneOut()).fit(X, y)
    np.testing.assert_allclose(ours.scores_.mean(axis=0), theirs.cv_results_["mean_test_score"], atol=1e-12)


# ------------------------------------------------------------------------------------------------ missing classes


def sorted_classes(n_classes=3, n=72):
    X, y = imbalanced(n_classes, n, seed=6)
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


MISSING = [
    (KernelSVC(), 4),
    (KernelSVC(), 5),
    (KernelSVC(multi_class="ovr"), 4),
    (KernelSVC(multi_class="ovr"), 5),
    (KernelSVC(loss="squared_hinge", solver="spectral"), 4),
    (KernelLogistic(multi_class="ovo"), 4),
    (KernelLogistic(multi_class="ovr"), 5),
    (KernelLogistic(multi_class="multinomial"), 5),
    (KernelDWD(multi_class="ovr"), 4),
    (KernelSVC(low_rank=True), 4),
    (KernelLogistic(multi_class="multinomial", low_rank=True), 5),
]


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("n_classes", [3, 4])
@pytest.mark.parametrize(("model", "n_folds"), MISSING)
def test_a_fold_without_a_class(model, n_folds, n_classes, class_weight):
    """With sorted y and unshuffled folds, the scores are those of GridSearchCV around the same estimator at one C."""
    X, y = sorted_classes(n_classes)
    model = clone(model).set_params(class_weight=class_weight, **{**FIXED, "tol": 1e-9})
    if model.low_rank:
        model.set_params(landmarks=X[::3])
    folds = KFold(n_folds)
    assert any(len(np.unique(y[train])) < n_classes for train, _ in folds.split(X))
    ours = clone(model).set_params(Cs=Cs, cv=folds).fit(X, y)
    theirs = GridSearchCV(clone(model).set_params(cv=None), {"Cs": Cs}, cv=folds, error_score="raise").fit(X, y)
    for k in range(n_folds):
        np.testing.assert_allclose(ours.scores_[k], theirs.cv_results_[f"split{k}_test_score"], atol=1e-12)
    assert ours.C_ == theirs.best_params_["Cs"]
    assert np.isfinite(ours.oof_decision_).all()
    assert set(ours.status_.ravel()) == {"converged"}
    assert ours.gaps_.max() <= 1e-9
    if hasattr(ours, "oof_proba_"):
        np.testing.assert_allclose(ours.oof_proba_.sum(axis=1), 1.0)
        for train, test in folds.split(X):
            missing = np.setdiff1d(np.arange(n_classes), np.searchsorted(ours.classes_, np.unique(y[train])))
            # (Where pairs contradict each other, their coupling gives some probability to classes that win none.)
            most = 0.05 if model.multi_class == "ovo" else 0.0
            assert (ours.oof_proba_[test][:, missing] <= most).all()


def test_a_multinomial_fold_of_two_classes_is_the_binary_problem():
    X, y = sorted_classes(3)
    folds = [(np.flatnonzero(y != label), np.flatnonzero(y == label)) for label in "abc"]
    ours = KernelLogistic(multi_class="multinomial", Cs=[3.0], cv=folds, **FIXED).fit(X, y)
    for k, (train, test) in enumerate(folds):
        binary = KernelLogistic(Cs=3.0, cv=None, **FIXED).fit(X[train], y[train])
        there = np.flatnonzero(np.isin(ours.classes_, binary.classes_))
        f = ours.oof_decision_[test]
        np.testing.assert_allclose(f[:, there[1]] - f[:, there[0]], binary.decision_function(X[test]), atol=1e-4)
        np.testing.assert_allclose(ours.oof_proba_[test][:, there], binary.predict_proba(X[test]), atol=1e-5)
        assert ours.gaps_[k, 0] <= 1e-10


def test_against_the_wrappers_of_scikit_learn():
    X, y = sorted_classes(4)
    for multi_class, wrapper in [("ovo", OneVsOneClassifier), ("ovr", OneVsRestClassifier)]:
        ours = KernelSVC(multi_class=multi_class, Cs=Cs, cv=KFold(6), **FIXED).fit(X, y)
        theirs = GridSearchCV(wrapper(SVC(gamma=GAMMA, tol=1e-9)), {"estimator__C": Cs}, cv=KFold(6)).fit(X, y)
        np.testing.assert_allclose(ours.scores_.mean(axis=0), theirs.cv_results_["mean_test_score"], atol=1e-12)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("model", [KernelSVC(), KernelSVC(multi_class="ovr"), KernelDWD(), KernelSVC(tune="each")])
def test_probabilities_of_folds_without_a_class(model, method):
    X, y = sorted_classes(3)
    model = clone(model).set_params(probability=method, Cs=Cs, cv=KFold(4), gamma=GAMMA).fit(X, y)
    assert np.isfinite(model.oof_proba_).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.isfinite(model.oof_decision_).all()


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("kind", [KernelSVC, KernelLogistic])
def test_leave_one_out_of_the_only_row_of_a_class(kind, multi_class, class_weight):
    X, y = imbalanced(3, n=30, seed=8)
    y = np.where(y == "c", "b", y)
    y[11] = "c"
    model = kind(multi_class=multi_class, class_weight=class_weight, **FIXED)
    ours = clone(model).set_params(Cs=[0.5, 5.0], cv="loo").fit(X, y)
    theirs = GridSearchCV(clone(model).set_params(cv=None), {"Cs": [0.5, 5.0]}, cv=LeaveOneOut()).fit(X, y)
    np.testing.assert_allclose(ours.scores_.mean(axis=0), theirs.cv_results_["mean_test_score"], atol=1e-12)
    assert np.isfinite(ours.oof_decision_).all()
    assert set(ours.status_.ravel()) == {"converged"}


@pytest.mark.parametrize("multi_class", ["ovo", "ovr", "multinomial"])
def test_a_fold_of_one_class_is_refused(multi_class):
    X, y = sorted_classes(3)
    first = np.flatnonzero(y == "a")
    folds = [(np.flatnonzero(y != "a"), first), (first, np.flatnonzero(y != "a"))]
    message = f"fold 1: all {len(first)} training rows have the same class, and two are needed; use stratified folds"
    with pytest.raises(ValueError, match=message):
        KernelLogistic(multi_class=multi_class, Cs=[1.0], cv=folds).fit(X, y)
    with pytest.raises(ValueError, match=message.replace("fold 1", "fold 0")):
        KernelSVC(Cs=[1.0], cv=folds[1:]).fit(X, y == "a")
