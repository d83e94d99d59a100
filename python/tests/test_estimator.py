"""scikit-learn conventions: parameters, attributes, labels, layouts, pickling, and scikit-learn's own checks."""

import pickle
import warnings
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_squared_error, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelpath import (
    KernelDWD,
    KernelLogistic,
    KernelQuantile,
    KernelRegressor,
    KernelSVC,
    KernelSVR,
    NystromFeatures,
    _base,
    _calibration,
    _core,
    _rows,
)
from kernelpath._shared import Parameters
from kernelpath.datasets import make_mixture

FAST = {"Cs": [0.1, 1.0, 10.0], "cv": 3, "random_state": 0}

PARAMETERS = (
    "kernel gamma degree coef0 Cs lambdas cv scoring selection low_rank landmarks n_landmarks rank device solver "
    "tol max_iter assume_definite time_budget dtype n_jobs random_state verbose keep_path"
)


def known_gaps(estimator):
    """With `probability`, `predict` goes by decision values, and where these are close may differ from the most
    probable class, as the documentation says.
    """
    if getattr(estimator, "probability", False):
        return {"check_classifiers_train": "predict goes by decision values, not by probabilities"}
    return {}


CLASSIFIER_PARAMETERS = "class_weight multi_class tune"

OWN_PARAMETERS = {
    KernelSVC: f"loss probability {CLASSIFIER_PARAMETERS}",
    KernelLogistic: CLASSIFIER_PARAMETERS,
    KernelDWD: f"probability {CLASSIFIER_PARAMETERS}",
    KernelQuantile: "tau noncrossing",
    KernelSVR: "epsilon tune",
    KernelRegressor: "loss delta tau tune",
}


@parametrize_with_checks(
    [
        *(kind(Cs=5, cv=2) for kind in OWN_PARAMETERS),
        KernelSVC(Cs=5, cv=2, loss="squared_hinge"),
        KernelSVC(Cs=5, cv=2, probability=True),
        KernelDWD(Cs=5, cv=2, probability="isotonic"),
        KernelLogistic(Cs=5, cv=2, multi_class="multinomial"),
        KernelRegressor(Cs=5, cv=2, loss="huber"),
        KernelRegressor(Cs=5, cv=2, loss="expectile"),
    ],
    expected_failed_checks=known_gaps,
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        if check.func.__name__ == "check_class_weight_classifiers":
            # Weights of 1e3 and 1e-4 and C up to 1e3: the largest C's stall at gaps above tol, and say so.
            warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("kind", OWN_PARAMETERS)
def test_parameters_and_defaults(kind):
    assert list(signature(kind).parameters) == f"{OWN_PARAMETERS[kind]} {PARAMETERS}".split()
    assert set(Parameters.__annotations__) == set(PARAMETERS.split())
    rust, ours = _core.default_settings(), kind().get_params()
    for name in ("tol", "max_iter", "assume_definite", "dtype"):
        assert ours[name] == rust[name], name
    assert (ours["Cs"], ours["cv"]) == (rust["n_cs"], rust["folds"])
    with pytest.raises(TypeError, match="unexpected keyword argument 'kernle'"):
        kind(kernle="rbf")


def test_attributes(small):
    X, y = small
    clf = KernelSVC(**FAST).fit(X, y)
    n, n_SV = len(y), len(clf.support_)
    assert clf.dual_coef_.shape == (1, n_SV)
    assert clf.intercept_.shape == (1,)
    assert clf.support_vectors_.shape == (n_SV, 3)
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    assert clf.n_support_.tolist() == [np.sum(y[clf.support_] == label) for label in (-1, 1)]
    assert clf.n_support_path_[clf.best_index_] == n_SV
    np.testing.assert_array_equal(clf.classes_, [-1, 1])
    assert clf.oof_path_.shape == (n, 3)
    assert clf.gaps_.shape == clf.status_.shape == clf.n_iter_.shape == (4, 3)
    assert clf.dual_objective_ <= clf.objective_
    assert (clf.objective_ - clf.dual_objective_) / clf.objective_ == pytest.approx(
        clf.gaps_[-1, clf.best_index_], abs=1e-12
    )
    assert clf.C_ == clf.Cs_[clf.best_index_]
    assert clf.best_score_ == clf.scores_.mean(axis=0).max()
    assert clf.gamma_ > 0
    assert clf.timed_out_ is False
    assert clf.fit_seconds_ >= clf.kernel_seconds_ >= 0
    assert clf.gram_bytes_ >= n * n * 4
    assert clf.planned_bytes_ > clf.gram_bytes_
    assert clf.n_features_in_ == 3
    assert all(len(column) == 3 for column in clf.cv_results_.values())
    for column in ("worst_gap", "refit_gap", "split2_gap", "mean_test_score", "std_test_score", "rank_test_score"):
        assert column in clf.cv_results_


TARGETS = {KernelQuantile: {"tau": 0.3}, KernelSVR: {}, KernelRegressor: {}}


@pytest.mark.parametrize("kind", OWN_PARAMETERS)
@pytest.mark.parametrize("several", [False, True])
def test_best_params_fit_the_chosen_model(small, kind, several):
    """Set, they give the chosen model again; with λ in place of C, too."""
    X, sign = small
    y = sign if kind not in TARGETS else X[:, 0] + 0.3 * sign
    gamma = [0.1, 0.4] if several else 0.3
    model = kind(**FAST, gamma=gamma).fit(X, y)
    assert model.best_params_ == {"Cs": model.C_} | ({"gamma": model.gamma_} if several else {})
    one = clone(model).set_params(**model.best_params_, cv=None).fit(X, y)
    assert (one.C_, one.gamma_) == (model.C_, model.gamma_)
    np.testing.assert_allclose(one.predict(X), model.predict(X), atol=1e-3)

    by_lambda = kind(lambdas=model.lambdas_, cv=3, random_state=0, gamma=gamma).fit(X, y)
    assert by_lambda.best_params_ == model.best_params_ | {"Cs": by_lambda.C_, "lambdas": None}
    assert clone(by_lambda).set_params(**by_lambda.best_params_, cv=None).fit(X, y).C_ == by_lambda.C_


def test_best_params_of_several_machines(small):
    X, _ = small
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    joint = KernelSVC(**FAST).fit(X, three)
    assert joint.best_params_ == {"Cs": joint.C_}
    for model, y in ((KernelSVC(**FAST, tune="each"), three), (KernelQuantile(**FAST, tau=[0.2, 0.5, 0.8]), X[:, 0])):
        assert not hasattr(model, "best_params_")
        with pytest.raises(AttributeError, match="where one C was chosen, but this Kernel.* has 3: C_ holds them"):
            model.fit(X, y).best_params_  # noqa: B018


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("low_rank", [False, True])
def test_coef_of_the_linear_kernel(small, form, low_rank):
    X, sign = small
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    options = {"kernel": "linear", "low_rank": low_rank, **FAST}
    for model, y, shape in (
        (KernelSVC(**options), sign, (1, 3)),
        (KernelSVC(**options, multi_class="ovr"), three, (3, 3)),
        (KernelLogistic(**options, multi_class="multinomial"), three, (3, 3)),
        (KernelSVR(**options), X[:, 0], (3,)),
        (KernelQuantile(**options, tau=[0.2, 0.8]), X[:, 0], (2, 3)),
    ):
        model.fit(form(X), y)
        assert isinstance(model.coef_, np.ndarray)
        assert model.coef_.shape == shape
        values = X @ np.atleast_2d(model.coef_).T + model.intercept_
        np.testing.assert_allclose(values, model._decision_values(form(X)), atol=1e-8)


def test_coef_needs_the_linear_kernel(small):
    model = KernelSVC(**FAST)
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match="coef_ is there with kernel='linear' only.* fitted with kernel='rbf'"):
        model.fit(*small).coef_  # noqa: B018
    assert not hasattr(model.set_params(kernel="linear"), "coef_")  # what was fitted counts


def test_feature_selection_by_coef(small):
    X, sign = small
    noise = np.random.RandomState(1).standard_normal((60, 2))
    X = np.column_stack([noise[:, 0], X, noise[:, 1]])
    for model, y in (
        (KernelSVC(kernel="linear", **FAST), sign),
        (KernelSVR(kernel="linear", **FAST), X[:, 1:4].sum(1)),
    ):
        assert RFE(model, n_features_to_select=3).fit(X, y).support_.tolist() == [False, True, True, True, False]
        assert SelectFromModel(model).fit(X, y).get_support().tolist() == [False, True, True, True, False]


def test_score_goes_by_scoring(small):
    X, y = small
    weight = np.where(y > 0, 3.0, 1.0)
    values = KernelSVC(**FAST, scoring="roc_auc").fit(X, y)
    expected = roc_auc_score(y, values.decision_function(X))
    assert values.score(X, y) == expected != values.set_params(scoring=None).score(X, y)
    assert values.score(X, y) == accuracy_score(y, values.predict(X))

    def of_score(model, X, y):
        return -model.score(X, y)

    assert values.set_params(scoring=of_score).score(X, y) == -accuracy_score(y, values.predict(X))

    weighted = KernelSVC(**FAST, scoring="balanced_accuracy").fit(X, y)
    expected = balanced_accuracy_score(y, weighted.predict(X), sample_weight=weight)
    assert weighted.score(X, y, weight) == expected

    for model in (KernelSVR(**FAST), KernelQuantile(**FAST)):
        model.set_params(scoring="neg_mean_squared_error").fit(X, X[:, 0])
        expected = -mean_squared_error(X[:, 0], model.predict(X), sample_weight=weight)
        assert model.score(X, X[:, 0], weight) == pytest.approx(expected, rel=1e-12)
    levels = KernelQuantile(**FAST, tau=[0.2, 0.8], scoring="neg_mean_absolute_error").fit(X, X[:, 0])
    expected = -np.abs(X[:, :1] - levels.predict(X)).mean()
    assert levels.score(X.tolist(), X[:, 0]) == pytest.approx(expected, rel=1e-12)


def test_decision_values_are_the_kernel_expansion(small):
    X, y = small
    clf = KernelSVC(**FAST).fit(X, y)
    X_new = np.random.RandomState(1).standard_normal((50, 3))
    K = np.exp(-clf.gamma_ * ((X_new[:, None] - clf.support_vectors_) ** 2).sum(axis=2))
    expected = K @ clf.dual_coef_[0] + clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(X_new), expected, atol=1e-6)
    np.testing.assert_array_equal(clf.predict(X_new), np.where(clf.decision_function(X_new) > 0, 1, -1))


@pytest.mark.parametrize("kernel", [k for k in _core.KERNELS if k not in ("precomputed", "sigmoid")])
def test_every_kernel_fits_and_predicts(small, kernel):
    X, y = small
    clf = KernelSVC(kernel=kernel, coef0=1.0, **FAST).fit(X, y)
    assert clf.score(X, y) > 0.75
    assert (clf.gamma_ is None) == (kernel == "linear")


@pytest.mark.parametrize(
    ("kernel", "columns", "expected"),
    [
        ("rbf", 10, "float32"),
        ("laplacian", 10, "float32"),
        ("rbf", 1, "float64"),
        ("linear", 10, "float64"),
        ("poly", 10, "float64"),
        ("sigmoid", 10, "float64"),
    ],
)
@pytest.mark.filterwarnings("ignore::kernelpath.IndefiniteKernelWarning")
def test_auto_precision(kernel, columns, expected):
    """float32, unless the matrix is so close to singular that its rounding would matter."""
    X, y = make_mixture(300, 10, random_state=0)
    options = {"kernel": kernel, "gamma": 0.01 if kernel == "sigmoid" else "sigest", "Cs": 0.1, "cv": None}
    auto, named = (
        KernelSVC(**options, dtype=dtype, random_state=0).fit(X[:, :columns], y) for dtype in ("auto", expected)
    )
    assert auto.gram_bytes_ == named.gram_bytes_
    np.testing.assert_array_equal(auto.dual_coef_, named.dual_coef_)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precomputed_keeps_its_precision(small, dtype):
    X, y = small
    K = (X @ X.T).astype(dtype)
    options = {"kernel": "precomputed", "Cs": 0.1, "cv": None, "assume_definite": True}
    auto, named = (KernelSVC(**options, dtype=name).fit(K, y) for name in ("auto", dtype))
    assert auto.gram_bytes_ == named.gram_bytes_
    np.testing.assert_array_equal(auto.dual_coef_, named.dual_coef_)


def test_tie_goes_to_the_first_class():
    clf = KernelSVC(kernel="linear", Cs=1.0, cv=None, dtype="float64").fit([[-1.0], [1.0]], ["a", "b"])
    assert clf.decision_function([[0.0]]) == 0.0
    assert clf.predict([[0.0], [0.1]]).tolist() == ["a", "b"]


LABELS = {
    "int": (3, 7),
    "float": (0.0, 1.0),
    "bool": (False, True),
    "str": ("benign", "malignant"),
    "object": (np.array("b", object)[()], "m"),
    "uint8": tuple(np.array([1, 2], np.uint8)),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_type(small, kind):
    X, sign = small
    low, high = LABELS[kind]
    y = np.array([high if s > 0 else low for s in sign], dtype=object if kind == "object" else None)
    reference, clf = KernelSVC(**FAST).fit(X, sign), KernelSVC(**FAST).fit(X, y)
    assert clf.classes_.tolist() == [low, high]
    assert clf.predict(X).dtype == y.dtype
    np.testing.assert_array_equal(clf.predict(X) == high, reference.predict(X) == 1)
    assert clf.score(X, y) == reference.score(X, sign)


def strided(X):
    wide = np.full((2 * len(X), 3 * X.shape[1]), np.nan, X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": strided,
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "list": lambda X: X.tolist(),
    "DataFrame": pd.DataFrame,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_layout_does_not_matter(small, layout, dtype):
    X, y = small
    X = X.astype(dtype)
    given = LAYOUTS[layout](X)
    reference = KernelSVC(**FAST).fit(X, y)
    clf = KernelSVC(**FAST).fit(given, y)
    atol = 1e-3 if dtype is np.float32 and layout == "list" else 0  # a list is read as float64
    np.testing.assert_allclose(clf.oof_path_, reference.oof_path_, rtol=0, atol=atol)
    with_names = pd.DataFrame(X) if layout == "DataFrame" else X
    np.testing.assert_allclose(clf.decision_function(with_names), reference.decision_function(X), rtol=0, atol=atol)


def test_integers_are_read_as_float64(small):
    X, y = small
    X = np.round(10 * X).astype(np.int16)
    np.testing.assert_array_equal(
        KernelSVC(**FAST).fit(X, y).oof_path_, KernelSVC(**FAST).fit(X.astype(float), y).oof_path_
    )


def test_feature_names(small):
    X, y = small
    clf = KernelSVC(**FAST).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(pd.DataFrame(X, columns=["c", "b", "a"]))


def test_fit_mutates_neither_input_nor_parameters(small):
    X, y = small[0].copy(), small[1].copy()
    Cs, folds = np.array([3.0, 0.1]), [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    clf = KernelSVC(Cs=Cs, cv=folds, random_state=0)
    before = pickle.dumps((X, y, clf.get_params()))
    assert clf.fit(X, y) is clf
    clf.Cs_[:] = 0  # results share no memory with parameters
    assert pickle.dumps((X, y, clf.get_params())) == before


def test_clone_and_set_params(small):
    clf = KernelSVC(**FAST, gamma=0.3, selection="1se")
    assert clone(clf).get_params() == clf.get_params()
    fitted = clone(clf).fit(*small)
    fitted.set_params(gamma=99.0, kernel="linear")
    np.testing.assert_array_equal(
        fitted.decision_function(small[0]), clone(clf).fit(*small).decision_function(small[0])
    )


def test_pickle(small):
    X, y = small
    clf = KernelSVC(**FAST).fit(X, y)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))
    assert copy.path_table() == clf.path_table()


def test_pickle_of_a_model_whose_parameters_were_set_for_another_fit(small):
    X, y = small
    clf = KernelSVC(**FAST, probability=True).fit(X, y)
    clf.set_params(cv=None, class_weight={"neither": 2.0}, multi_class="unknown")
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.predict_proba(X), clf.predict_proba(X))


def test_refit_forgets_the_first_fit(small):
    X, y = small
    clf = KernelSVC(**FAST).fit(X[:, :2], y)
    clf.set_params(kernel="linear", cv=2).fit(X, y)
    fresh = KernelSVC(kernel="linear", Cs=FAST["Cs"], cv=2, random_state=0).fit(X, y)
    assert vars(clf).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(clf.decision_function(X), fresh.decision_function(X))


def test_inside_scikit_learn(small):
    X, y = small
    pipeline = make_pipeline(StandardScaler(), KernelSVC(**FAST))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.75
    search = GridSearchCV(KernelSVC(**FAST), {"gamma": [0.1, 1.0], "kernel": ["rbf", "laplacian"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.75
    K = X @ X.T
    precomputed = KernelSVC(kernel="precomputed", **FAST)
    assert cross_val_score(precomputed, K, y, cv=3).mean() > 0.75
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    assert OneVsRestClassifier(KernelSVC(**FAST)).fit(X, three).score(X, three) > 0.75


def test_tags():
    assert is_classifier(KernelSVC())
    assert get_tags(KernelSVC(kernel="precomputed")).input_tags.pairwise
    tags = get_tags(KernelSVC())
    assert not tags.input_tags.pairwise
    assert tags.input_tags.sparse
    assert not get_tags(KernelSVC(kernel="precomputed")).input_tags.sparse
    assert tags.classifier_tags.multi_class
    assert all(is_classifier(kind()) != is_regressor(kind()) for kind in OWN_PARAMETERS)
    assert [kind for kind in OWN_PARAMETERS if is_regressor(kind())] == [KernelQuantile, KernelSVR, KernelRegressor]


def test_random_state_seeds_folds_and_bandwidth():
    X, y = make_mixture(600, 3, random_state=0)  # of up to 500 rows, all pairs make the bandwidth

    def drawn(random_state):
        clf = KernelSVC(Cs=[1.0, 10.0], cv=3, random_state=random_state).fit(X, y)
        return clf.gamma_, clf.oof_path_.tobytes()

    assert drawn(1) == drawn(1)
    assert drawn(np.random.RandomState(1)) == drawn(np.random.RandomState(1))
    gammas, folds = zip(*map(drawn, [1, 2, 3, None, None]), strict=True)
    assert len(set(gammas)) == len(set(folds)) == 5


def test_folds_of_an_integer_can_be_had_again(small):
    X, y = small
    ours = KernelSVC(Cs=[1.0, 10.0], cv=4, random_state=7, gamma=0.3).fit(X, y)
    theirs = KernelSVC(
        Cs=[1.0, 10.0], cv=StratifiedKFold(4, shuffle=True, random_state=7), random_state=1, gamma=0.3
    ).fit(X, y)
    np.testing.assert_array_equal(ours.oof_path_, theirs.oof_path_)


def test_path_table(small):
    clf = KernelSVC(**FAST).fit(*small)
    header, *lines = clf.path_table().splitlines()
    assert "worst gap" in header
    assert len(lines) == 3
    assert [line.startswith("*") for line in lines].index(True) == clf.best_index_
    assert f"{clf.best_score_:.4f}" in lines[clf.best_index_]
    assert lines[0].endswith("converged")


def calls_into_rust(monkeypatch, model, X, y):
    """The functions of the core that a fit calls, in their order."""
    seen = []

    def watched(name, function):
        def call(*arguments, **keywords):
            seen.append(name)
            return function(*arguments, **keywords)

        return call

    for name in ("fit", "decision", "nystrom", "nystrom_features", "bandwidth", "kernel_matrix", "verify"):
        monkeypatch.setattr(_core, name, watched(name, getattr(_core, name)))
    model.fit(X, y)
    monkeypatch.undo()
    return seen


@pytest.mark.parametrize(
    "model",
    [
        KernelSVC(Cs=3, cv=3, probability=True),
        KernelSVC(Cs=3, cv=3, gamma="auto-grid", multi_class="ovr", probability="isotonic"),
        KernelSVC(Cs=3, cv=3, gamma=[0.1, 1.0], scoring="neg_log_loss", probability=True),
        KernelDWD(Cs=3, cv=3, low_rank=True, n_landmarks=20, gamma="scale", tune="each"),
        KernelLogistic(Cs=3, cv=3, multi_class="multinomial"),
        KernelSVR(Cs=3, cv=3, gamma="auto-grid"),
        KernelRegressor(loss="huber", Cs=3, cv=3, scoring="r2"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")
def test_python_enters_rust_once(monkeypatch, model):
    """Bandwidths, every gamma, folds, the choice, votes and calibration are one call; a scorer is called from there."""
    X, y = load_iris(return_X_y=True)
    assert calls_into_rust(monkeypatch, model, X[:, :3], y if is_classifier(model) else X[:, 3]) == ["fit"]


@pytest.mark.parametrize(
    "model",
    [
        KernelSVC(**FAST, probability=True),
        KernelSVC(**FAST, low_rank=True, n_landmarks=10),
        KernelLogistic(**FAST),
        KernelQuantile(**FAST, tau=[0.2, 0.8]),
        KernelSVR(**FAST, kernel=lambda A, B: A @ B.T),
        NystromFeatures(n_landmarks=10),
    ],
    ids=str,
)
def test_an_array_that_is_right_is_not_looked_at(small, monkeypatch, model):
    """To ask scikit-learn takes several times as long as to predict one row."""
    X, y = small[0], small[1] if is_classifier(model) else small[0][:, 0]
    model = clone(model).fit(X, y)
    asked = []
    for module, name in ((_rows, "validate_data"), (_base, "check_is_fitted"), (_calibration, "check_is_fitted")):
        function = getattr(module, name)
        watched = lambda *a, f=function, n=name, **k: (asked.append(n), f(*a, **k))[1]  # noqa: E731
        monkeypatch.setattr(module, name, watched)
    methods = [getattr(model, n) for n in ("predict", "predict_proba", "transform") if hasattr(model, n)]
    for method in methods:
        expected = method(X[:5].tolist())
        assert asked == ["validate_data"]
        asked.clear()
        for right in (X[:5], X[:5].copy(order="F"), X[:5].astype(np.float32), strided(X[:5]), read_only(X[:5])):
            np.testing.assert_allclose(method(right), expected, atol=1e-4)
        assert asked == []
        big_endian, integers = X[:5].astype(">f8"), np.arange(6).reshape(2, 3)
        for other in (pd.DataFrame(X[:5]), sparse.csr_array(X[:5]), big_endian, integers, X[:5].astype(object)):
            if not (sparse.issparse(other) and callable(getattr(model, "kernel", None))):
                method(other)
                assert asked == ["validate_data"]
            asked.clear()
        for wrong, message in (
            (X[:5, :2], "X has 2 features, but .* is expecting 3 features as input"),
            (X[0], "Expected 2D array, got 1D array instead"),
            (X[:0], r"Found array with 0 sample\(s\)"),
            (np.where(X > 1.0, np.nan, X), "NaN|nan"),
        ):
            with pytest.raises(ValueError, match=message):
                method(wrong)
        asked.clear()
    named = clone(model).fit(pd.DataFrame(X, columns=list("abc")), y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        getattr(named, "transform", getattr(named, "predict", None))(X)


def test_several_targets_of_quantiles_are_refused_with_the_reason(small):
    X, _ = small
    y = X[:, :2]
    for given in (y, y.tolist(), pd.DataFrame(y)):
        with pytest.raises(ValueError, match=r"takes one column of targets, and y has 2.*MultiOutputRegressor"):
            KernelQuantile(**FAST).fit(X, given)
    way_out = MultiOutputRegressor(KernelQuantile(**FAST, tau=0.3)).fit(X, y).predict(X)
    for k in range(2):
        np.testing.assert_array_equal(way_out[:, k], KernelQuantile(**FAST, tau=0.3).fit(X, y[:, k]).predict(X))
