"""Bad input gives an error of the right type that says what is wrong, where, and what to do."""

import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from kernelpath import (
    GridEdgeWarning,
    KernelDWD,
    KernelLogistic,
    KernelQuantile,
    KernelRegressor,
    KernelSVC,
    KernelSVR,
    NystromFeatures,
)

FAST = {"Cs": [1.0, 10.0], "cv": 2, "random_state": 0}

BAD_PARAMETERS = [
    ({"kernel": "rbff"}, ValueError, "unknown kernel 'rbff'.*'rbf'.*'matern52'.*'precomputed'"),
    ({"kernel": lambda x, z: x[:, 0]}, ValueError, r"must return a matrix of numbers of shape \(60, 60\).*\(60,\)"),
    ({"kernel": 3}, ValueError, "unknown kernel 3"),
    ({"gamma": "median"}, ValueError, "gamma='median'.*'sigest', 'scale', 'auto', 'auto-grid'"),
    ({"gamma": 0.0}, ValueError, "gamma must be a finite number > 0, got 0.0"),
    ({"gamma": np.nan}, ValueError, "gamma must be a finite number > 0, got nan"),
    ({"gamma": [0.1, -1.0]}, ValueError, r"gamma must be a finite number > 0, got -1.0 \(gamma\[1\]\)"),
    ({"gamma": [0.1, 0.1]}, ValueError, "gamma must not repeat a value"),
    ({"gamma": []}, ValueError, "gamma is empty"),
    ({"multi_class": "ova"}, ValueError, "multi_class='ova' is not available; available: 'ovo', 'ovr'"),
    ({"tune": "all"}, ValueError, "tune='all' is not available; available: 'joint', 'each'"),
    ({"class_weight": "even"}, ValueError, "class_weight='even' is not known; pass a dict, 'balanced'"),
    ({"class_weight": {7: 2.0}}, ValueError, "class_weight names 7, which is not a class of y"),
    ({"class_weight": {1: -2.0}}, ValueError, r"class_weight\[1\] must be a finite number > 0, got -2.0"),
    ({"class_weight": 3}, TypeError, "class_weight must be a dict, 'balanced' or None, got 3"),
    ({"degree": 0}, ValueError, "degree must be at least 1, got 0"),
    ({"degree": 2.5}, TypeError, "degree must be an integer, got 2.5"),
    ({"coef0": np.inf}, ValueError, "coef0 must be a finite number, got inf"),
    ({"Cs": []}, ValueError, "Cs is empty"),
    ({"Cs": [1.0, 2.0, 3.0, -0.1]}, ValueError, r"C must be a finite number > 0, got -0.1 \(Cs\[3\]\)"),
    ({"Cs": 0.0}, ValueError, r"C must be a finite number > 0, got 0.0 \(Cs\[0\]\)"),
    ({"Cs": [1.0, np.nan]}, ValueError, r"got nan \(Cs\[1\]\)"),
    ({"Cs": [1.0, np.inf]}, ValueError, r"got inf \(Cs\[1\]\)"),
    ({"Cs": 1}, ValueError, "length of a grid and must be at least 2, got 1.*Cs=1.0"),
    ({"Cs": 0}, ValueError, "at least 2, got 0"),
    ({"Cs": "many"}, TypeError, "Cs must be a number or a sequence of numbers, got 'many'"),
    ({"Cs": ["a"]}, TypeError, "Cs must be a number or a sequence of numbers"),
    ({"Cs": None}, TypeError, "Cs must be a number or a sequence of numbers, got None"),
    ({"Cs": True}, TypeError, "Cs must be a number"),
    ({"Cs": [[1.0]]}, ValueError, r"one-dimensional, got shape \(1, 1\)"),
    ({"lambdas": []}, ValueError, "lambdas is empty"),
    ({"lambdas": [0.1, -1.0]}, ValueError, r"lambda must be a finite number > 0, got -1.0 \(lambdas\[1\]\)"),
    ({"lambdas": 0.1}, ValueError, r"both were given: Cs=\[1.0, 10.0\] and lambdas=0.1; pass one of them"),
    ({"cv": 1}, ValueError, "n_splits=1"),
    ({"cv": "kfold"}, ValueError, "unknown cv='kfold'.*'loo'"),
    ({"cv": 2.5}, TypeError, "cv must be an integer, a splitter.*got 2.5"),
    ({"cv": True}, TypeError, "cv must be an integer"),
    ({"cv": []}, ValueError, "cv yields no folds"),
    ({"cv": [3, 4]}, ValueError, "fold 0 of cv is not a pair"),
    ({"cv": [([0, 1], [])]}, ValueError, "test part of fold 0 has no rows"),
    ({"cv": [([0, 1], [2]), ([0, 99], [1])]}, ValueError, r"train part of fold 1 names a row outside 0\.\.59"),
    ({"cv": [([0, -1], [2])]}, ValueError, "train part of fold 0 names a row outside"),
    ({"cv": [([0.5, 1.0], [2])]}, ValueError, "must hold integers or booleans"),
    ({"cv": [(np.ones(3, bool), [2])]}, ValueError, "mask of length 3, but X has 60 rows"),
    ({"cv": [(np.arange(60), np.zeros(60, bool))]}, ValueError, "test part of fold 0 is a mask without a row"),
    ({"cv": None}, ValueError, "cv=None cannot choose among 2 values of C.*Cs=1.0"),
    ({"cv": "loo", "scoring": "roc_auc", "selection": "1se"}, ValueError, "'1se' needs .* at least 2 folds"),
    ({"selection": "min"}, ValueError, "selection='min' is not available; available: 'best', '1se'"),
    ({"scoring": "acuracy"}, ValueError, "acuracy"),
    ({"scoring": ["accuracy"]}, TypeError, "scoring must be None, the name of a scorer or a callable"),
    ({"scoring": "neg_log_loss"}, ValueError, "needs predict_proba, .* fold does not have; use probability=True"),
    ({"device": "gpu"}, ValueError, "device='gpu' is not available; available: 'cpu', 'auto'"),
    ({"device": "cuda:7"}, RuntimeError, '"cuda:7" cannot be used: .*available are cpu'),
    ({"device": None}, TypeError, "device must be a string, such as 'cpu', 'auto', 'cuda' or 'opencl:1', got None"),
    ({"solver": "smo"}, ValueError, "solver='smo' is not available; available: 'auto', 'active-set', 'newton'"),
    ({"solver": "newton"}, ValueError, "does not fit the hinge loss.*what fits: active-set"),
    ({"tol": 0.0}, ValueError, "tol must be a finite number > 0, got 0.0"),
    ({"tol": "small"}, TypeError, "tol must be a number > 0, got 'small'"),
    ({"max_iter": 0}, ValueError, "max_iter must be at least 1, got 0"),
    ({"time_budget": -1.0}, ValueError, "time_budget must be a finite number > 0, got -1.0"),
    ({"dtype": "float16"}, ValueError, "dtype='float16' is not available; available: 'auto', 'float32', 'float64'"),
    ({"dtype": np.int32}, ValueError, "dtype='int32' is not available"),
    ({"dtype": 7}, TypeError, "dtype must be one of 'auto', 'float32', 'float64' or a numpy type, got 7"),
    ({"dtype": "double precision"}, ValueError, "available: 'auto', 'float32', 'float64'"),
    ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ({"n_jobs": 1.5}, TypeError, "n_jobs must be an integer"),
    ({"random_state": "seed"}, ValueError, "seed"),
]


@pytest.mark.parametrize(("parameters", "error", "message"), BAD_PARAMETERS)
def test_bad_parameters(small, parameters, error, message):
    with pytest.raises(error, match=message):
        KernelSVC(**FAST | parameters).fit(*small)


KEYWORDS_OF_OTHERS = [
    (KernelSVC, {"C": 1}, r"KernelSVC.* 'C'\. Use Cs=1\.0: one value of C"),
    (KernelSVR, {"C": [1.0, 10.0]}, r"KernelSVR.* 'C'\. Use Cs=\[1\.0, 10\.0\]"),
    (KernelRegressor, {"alpha": 0.1}, r"KernelRegressor.* 'alpha'\. Use Cs=1 / \(2 \* alpha\)"),
    (KernelQuantile, {"alpha": 0.1}, r"KernelQuantile.* 'alpha'\. Use tau .* or Cs"),
    (KernelDWD, {"alpha": 0.1}, r"KernelDWD.* 'alpha'\. Use Cs: a large alpha is a small C"),
    (KernelQuantile, {"quantile": 0.9}, r"KernelQuantile.* 'quantile'\. Use tau=0\.9"),
    (KernelRegressor, {"quantile": 0.9}, r"KernelRegressor.* 'quantile'\. Use KernelQuantile\(tau=0\.9\)"),
    (KernelLogistic, {"n_components": 50}, r"KernelLogistic.*\. Use low_rank=True with n_landmarks=50.*rank=50"),
    (NystromFeatures, {"n_components": 50}, r"NystromFeatures.*\. Use n_landmarks=50: landmarks; or rank=50"),
    (KernelSVC, {"decision_function_shape": "ovr"}, r"KernelSVC.* Use multi_class='ovo' or 'ovr'"),
    (KernelSVR, {"decision_function_shape": "ovr"}, r"KernelSVR.* argument 'decision_function_shape'$"),
    (NystromFeatures, {"C": 1.0}, r"NystromFeatures.* argument 'C'$"),
    (KernelSVC, {"kernle": "rbf"}, r"KernelSVC.* argument 'kernle'\. Did you mean 'kernel'\?"),
    (KernelSVC, {"multiclass": "ovr"}, r"KernelSVC.* Did you mean 'multi_class'\?"),
    (NystromFeatures, {"landmark": "uniform"}, r"NystromFeatures.* Did you mean 'landmarks'\?"),
    (KernelSVC, {"xyz": 1}, r"KernelSVC.* argument 'xyz'$"),
]


@pytest.mark.parametrize(("kind", "keyword", "message"), KEYWORDS_OF_OTHERS)
def test_unknown_keyword_gets_the_parameter_to_use(kind, keyword, message):
    with pytest.raises(TypeError, match=message):
        kind(**keyword)


def test_unknown_parameter_of_set_params():
    with pytest.raises(ValueError, match="Invalid parameter 'C' for estimator KernelSVC"):
        KernelSVC().set_params(C=1.0)


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({"n_landmarks": 30}, "n_landmarks has"),
        ({"rank": 3}, "rank has"),
        ({"landmarks": np.arange(5)}, "landmarks has"),
        ({"landmarks": "uniform", "n_landmarks": 30, "rank": 3}, "landmarks and n_landmarks and rank have"),
    ],
)
def test_landmarks_without_low_rank_are_a_warning(small, parameters, names):
    clf = KernelSVC(**FAST, **parameters)
    with pytest.warns(UserWarning, match=f"{names} no effect without low_rank=True") as record:
        clf.fit(*small)
    assert record[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GridEdgeWarning)
        clf.fit(*small, low_rank=True)
        clf.set_params(low_rank=True).fit(*small, low_rank=False)
        KernelSVC(**FAST, landmarks="auto", n_landmarks=2000, rank=None).fit(*small)


@pytest.mark.parametrize("name", ["auto", "float32", np.float32, np.dtype("float64"), np.float64])
def test_dtype_may_be_a_type(small, name):
    assert KernelSVC(**FAST, dtype=name).fit(*small).gaps_.max() <= 1e-6


@pytest.mark.parametrize("n_jobs", [None, -1, -2, 1, 3, 10_000])
def test_n_jobs_as_in_joblib(small, n_jobs):
    assert KernelSVC(**FAST, n_jobs=n_jobs).fit(*small).gaps_.max() <= 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
@pytest.mark.parametrize("gamma", ["sigest", "scale", 0.5])
def test_non_finite_X_is_located(small, value, name, gamma, dtype):
    X, y = small[0].astype(dtype), small[1]
    clf = KernelSVC(gamma=gamma, **FAST).fit(X, y)
    X = X.copy()
    X[17, 2] = value
    with pytest.raises(ValueError, match=f"{name}.*row 17, column 2"):
        KernelSVC(gamma=gamma, **FAST).fit(X, y)
    with pytest.raises(ValueError, match=f"{name}.*row 17, column 2"):
        clf.predict(X)


def test_non_finite_y(small):
    X, y = small
    y = y.astype(float)
    y[3] = np.nan
    with pytest.raises(ValueError, match="y contains NaN"):
        KernelSVC(**FAST).fit(X, y)


def test_lengths_must_agree(small):
    X, y = small
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        KernelSVC(**FAST).fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples"):
        KernelSVC(**FAST).fit(X, y, groups=np.zeros(7))


def test_y_is_needed(small):
    with pytest.raises(ValueError, match="requires y"):
        KernelSVC(**FAST).fit(small[0], None)


def test_classes(small):
    X, _ = small
    with pytest.raises(ValueError, match="y has 1 class: \\['a'\\]"):
        KernelSVC(**FAST).fit(X, ["a"] * 60)
    with pytest.raises(ValueError, match="Unknown label type"):
        KernelSVC(**FAST).fit(X, X[:, 0])


def test_class_smaller_than_folds(small):
    X, _ = small
    y = np.where(np.arange(60) < 3, 1, -1)
    with pytest.warns(UserWarning, match="The least populated class in y has only 3 members"):
        clf = KernelSVC(Cs=[1.0, 10.0], cv=5, random_state=0).fit(X, y)
    assert clf.scores_.shape == (5, 2)


def test_fold_that_trains_on_one_class(small):
    X, y = small
    positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    folds = [(np.arange(60), np.arange(5)), (negative, positive)]
    with pytest.raises(ValueError, match="fold 1"):
        KernelSVC(Cs=[1.0, 10.0], cv=folds).fit(X, y)
    lonely = np.where(np.arange(60) == 4, 1, -1)
    with pytest.raises(ValueError, match="fold 4|row 4"):
        KernelSVC(Cs=[1.0, 10.0], cv="loo").fit(X, lonely)


def test_precomputed_must_be_square_and_symmetric(small):
    X, y = small
    with pytest.raises(ValueError, match="square.*60.*3"):
        KernelSVC(kernel="precomputed", **FAST).fit(X, y)
    K = X @ X.T
    K[3, 5] += 0.5
    with pytest.raises(ValueError, match="symmetric"):
        KernelSVC(kernel="precomputed", **FAST).fit(K, y)
    clf = KernelSVC(kernel="precomputed", **FAST).fit(X @ X.T, y)
    with pytest.raises(ValueError, match="60 features"):
        clf.predict(X @ X[:59].T)


def test_predict(small):
    X, y = small
    with pytest.raises(NotFittedError):
        KernelSVC().predict(X)
    with pytest.raises(NotFittedError):
        KernelSVC().path_table()
    clf = KernelSVC(**FAST).fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but KernelSVC is expecting 3 features"):
        clf.predict(X[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array"):
        clf.predict(X[0])


def test_text_in_X(small):
    X, y = small
    with pytest.raises(ValueError, match="strings"):
        KernelSVC(**FAST).fit(X.astype(str), y)
    mixed = X.astype(object)
    KernelSVC(**FAST).fit(mixed, y)
    mixed[12, 1] = "tall"
    with pytest.raises(ValueError, match="row 12, column 1 is 'tall'; encode text columns first"):
        KernelSVC(**FAST).fit(mixed, y)
    mixed[12, 1] = {}
    with pytest.raises(TypeError):
        KernelSVC(**FAST).fit(mixed, y)


def test_shapes(small):
    X, y = small
    with pytest.raises(ValueError, match="Expected 2D array"):
        KernelSVC(**FAST).fit(X[:, 0], y)
    with pytest.raises(ValueError, match="0 feature"):
        KernelSVC(**FAST).fit(X[:, :0], y)
    with pytest.raises(ValueError, match="0 sample"):
        KernelSVC(**FAST).fit(X[:0], y[:0])


def test_complex(small):
    with pytest.raises(ValueError, match="Complex data not supported"):
        KernelSVC(**FAST).fit(small[0] * 1j, small[1])


def test_too_large_for_memory():
    X = np.arange(1_000_000, dtype=np.float32)[:, np.newaxis]
    y = np.arange(len(X)) % 2
    with pytest.raises(MemoryError, match=r"(?s)(GB|GiB|TB|TiB).*(available|free).*(rows|memory)"):
        KernelSVC(gamma=1.0, Cs=1.0, cv=None).fit(X, y)


@pytest.mark.parametrize(("scale", "dtype"), [("1e20", "float32"), ("1e160", "float64")])
def test_overflow_is_an_error(scale, dtype):
    """Finite rows, infinite kernel. In a process of its own, since what it guards against is a fit that never ends."""
    code = f"""
import numpy as np
from kernelpath import KernelSVC
X = np.random.RandomState(0).standard_normal((60, 3))
try:
    KernelSVC(kernel="linear", Cs=1.0, cv=None, dtype="{dtype}").fit({scale} * X, X[:, 0] > 0)
except ValueError as error:
    print(error)
"""
    child = subprocess.run([sys.executable, "-c", code], timeout=30, capture_output=True, text=True, check=True)
    assert re.search(f"kernel of rows \\d+ and \\d+ .* in {dtype}: scale the features", child.stdout)


def test_sigest_needs_two_different_rows():
    X, y = np.array([[0.0], [1.0]]), [0, 1]
    assert KernelSVC(Cs=1.0, cv=None, random_state=0).fit(X, y).gamma_ == pytest.approx(2.0)
    with pytest.raises(ValueError, match="sigest.*equal.*gamma as a number"):
        KernelSVC(Cs=1.0, cv=None, random_state=0).fit(np.ones((2, 1)), y)
    with pytest.raises(ValueError, match="scale.*equal.*gamma as a number"):
        KernelSVC(gamma="scale", Cs=1.0, cv=None).fit(np.ones((2, 1)), y)


def test_convergence_warning_says_what_was_reached(small):
    X, y = small
    with pytest.warns(ConvergenceWarning) as record:
        clf = KernelSVC(Cs=[1.0, 1e4], cv=2, gamma=0.5, max_iter=1, tol=1e-12, random_state=0).fit(X, y)
    message = str(record[0].message)
    short = np.sum(clf.gaps_ > 1e-12)
    assert f"{short} of 6 models did not reach tol=1e-12" in message
    assert f"{clf.gaps_.max():.1e}" in message
    assert "max_iter" in message
    assert f"gap {clf.gaps_[-1, clf.best_index_]:.1e}" in message


def test_no_warning_when_all_converged(small):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelSVC(**FAST).fit(*small)


def test_failed_fit_leaves_the_estimator_usable(small):
    X, y = small
    clf = KernelSVC(**FAST)
    with pytest.raises(ValueError, match="row 0, column 0"):
        clf.fit(np.full_like(X, np.nan), y)
    assert clf.fit(X, y).gaps_.max() <= 1e-6


def test_scorer_that_fails_is_heard(small):
    def scorer(estimator, X, y):
        raise RuntimeError("my scorer broke")

    with pytest.raises(RuntimeError, match="my scorer broke"):
        KernelSVC(**FAST, scoring=scorer).fit(*small)


def test_scorer_without_a_finite_score(small):
    with pytest.raises(ValueError, match="gave no finite score"):
        KernelSVC(**FAST, scoring=lambda estimator, X, y: np.nan).fit(*small)


def test_scorer_must_ask_for_the_held_out_rows(small):
    with pytest.raises(ValueError, match="held-out rows"):
        KernelSVC(**FAST, scoring=lambda estimator, X, y: estimator.predict(X[:2]).mean()).fit(*small)
