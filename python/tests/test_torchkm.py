"""TorchKM's face: its import paths and signatures, what each parameter becomes, what each attribute means."""

import doctest
import inspect
import pickle
import re
from functools import partial
from importlib import import_module

import matplotlib
import naive
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import mean_pinball_loss
from sklearn.metrics.pairwise import polynomial_kernel
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelpath.torchkm
from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelSVC
from kernelpath.datasets import make_mixture
from kernelpath.display import CalibrationBins, CVCurveDisplay, GapDisplay
from kernelpath.torchkm import (
    TorchKMDWD,
    TorchKMKQR,
    TorchKMLogit,
    TorchKMSVC,
    data_gen,
    kernelMult,
    rbf_kernel,
    sigest,
    standardize,
)
from kernelpath.torchkm._translation import as_numpy

matplotlib.use("Agg")
import matplotlib.pyplot as plt

GRID = np.logspace(1, -2, 4)
FAST = {"Cs": GRID, "cv": 3, "random_state": 0}
CLASSIFIERS = {TorchKMSVC: KernelSVC, TorchKMDWD: KernelDWD, TorchKMLogit: KernelLogistic}
ALL = CLASSIFIERS | {TorchKMKQR: KernelQuantile}

# TorchKM 4.3.2, and n_jobs
COMMON = {
    "kernel": "rbf", "nC": 50, "Cs": None, "C_max": 1000.0, "C_min": 0.001, "cv": 5, "foldid": None,
    "tol": 1e-5, "max_iter": 1000, "solver_gamma": 1e-8, "is_exact": 0,
    "device": None, "rbf_sigma": None, "sigest_frac": 0.5, "poly_degree": 3, "poly_coef0": 1.0, "poly_gamma": 1.0,
    "random_state": None, "store_path": False, "low_rank": False, "num_landmarks": 2000, "nys_k": 1000,
    "n_jobs": None,
}  # fmt: skip


def with_own(after, own):
    """`COMMON` with parameters of one class after the one named."""
    items = list(COMMON.items())
    place = list(COMMON).index(after) + 1
    return dict(items[:place] + list(own.items()) + items[place:])


class Tensor:
    """What numpy sees of a torch tensor on the CPU."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


class TensorOnGPU:
    """What numpy sees of one on a GPU."""

    device = "cuda:0"

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def circles():
    X, y = make_circles(150, factor=0.4, noise=0.2, random_state=0)
    return X, np.where(y == 1, "in", "out")


def fitted(kind, data, **parameters):
    """Fitted to `data` with FAST and these parameters; the target of a regressor is the first column."""
    X, y = data
    return kind(**FAST | parameters).fit(X, np.asarray(X)[:, 0] if kind is TorchKMKQR else y)


@parametrize_with_checks([kind(nC=5, cv=2) for kind in ALL] + [TorchKMSVC(nC=5, cv=2, probability=True)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_signature_of_classifiers(kind):
    expected = with_own("poly_gamma", {"probability": False, "platt_device": None})
    parameters = inspect.signature(kind).parameters
    assert {name: p.default for name, p in parameters.items()} == expected
    assert list(parameters) == list(expected)
    assert {p.kind for p in parameters.values()} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}


def test_signature_of_quantiles():
    parameters = inspect.signature(TorchKMKQR).parameters
    own = {"delta_len": 4, "mproj": 2, "KKTeps": 1e-3, "KKTeps2": 1e-3}
    order = list(with_own("is_exact", own))
    order.insert(order.index("tol"), "tau")
    assert list(parameters) == order
    assert {name: p.default for name, p in parameters.items()} == COMMON | own | {"tau": 0.5}


@pytest.mark.parametrize("kind", ALL)
def test_signature_of_fit(kind):
    assert list(inspect.signature(kind.fit).parameters) == ["self", "X", "y", "low_rank", "num_landmarks", "nys_k"]


@pytest.mark.parametrize("kind", ALL)
def test_docstring_describes_each_parameter_and_attribute(kind, circles):
    before, after = kind.__doc__.split("    Attributes\n")
    names = r"^    ((?:\w+, )*\w+) : "
    described = ", ".join(re.findall(names, before, flags=re.MULTILINE)).split(", ")
    assert sorted(described) == sorted(inspect.signature(kind).parameters)
    described = ", ".join(re.findall(names, after, flags=re.MULTILINE)).split(", ")
    model = fitted(kind, (pd.DataFrame(circles[0], columns=["a", "b"]), circles[1]), low_rank=True, num_landmarks=20)
    assert sorted(described) == sorted(name for name in vars(model) if name.endswith("_"))


def test_examples():
    failed, attempted = doctest.testmod(kernelpath.torchkm.estimators)
    assert (failed, attempted > 0) == (0, True)


@pytest.mark.parametrize("kind", ALL)
def test_it_is_the_estimator_of_kernelpath(kind, circles):
    X, y = circles
    target = X[:, 0] if kind is TorchKMKQR else y
    model = kind(**FAST, rbf_sigma=0.7).fit(X, target)
    ours = ALL[kind](Cs=GRID, cv=3, gamma=1.4, tol=1e-5, random_state=0).fit(X, target)
    assert type(model.estimator_) is ALL[kind]
    assert (model.best_C_, model.best_ind_) == (ours.C_, ours.best_index_)
    assert model.estimator_.gamma_ == 1.4
    assert model.kernel_state_ == {"sigma": 0.7}
    np.testing.assert_array_equal(model.Cs_, GRID)
    np.testing.assert_array_equal(model.predict(X), ours.predict(X))
    assert model.score(X, target) == ours.score(X, target)
    if kind in CLASSIFIERS:
        np.testing.assert_array_equal(model.decision_function(X), ours.decision_function(X))
        np.testing.assert_allclose(model.cv_mis_, 1 - ours.scores_.mean(axis=0), rtol=0, atol=1e-15)
        assert model.classes_.tolist() == ["in", "out"]
    else:
        np.testing.assert_array_equal(model.cv_loss_, -ours.scores_.mean(axis=0))


@pytest.mark.parametrize("kind", ALL)
def test_coefficients_of_all_rows(kind, circles):
    X = circles[0]
    model = fitted(kind, circles)
    sigma = model.kernel_state_["sigma"]
    K = np.exp(-2 * sigma * ((X[:, None] - X) ** 2).sum(axis=2))
    values = model.predict(X) if kind is TorchKMKQR else model.decision_function(X)
    np.testing.assert_allclose(K @ model.alpha_ + model.intercept_, values, atol=1e-4)
    assert isinstance(model.intercept_, float)
    assert model.n_samples_fit_ == len(X)


def test_polynomial_kernel(circles):
    X = circles[0]
    model = fitted(TorchKMSVC, circles, kernel="poly", poly_degree=2, poly_coef0=0.5, poly_gamma=0.3)
    K = polynomial_kernel(X, X, degree=2, coef0=0.5, gamma=0.3)
    np.testing.assert_allclose(K @ model.alpha_ + model.intercept_, model.decision_function(X), atol=1e-6)
    assert model.kernel_state_ == {}


def test_precomputed_and_linear_kernels_agree(circles):
    X = circles[0]
    linear = fitted(TorchKMLogit, circles, kernel="linear")
    matrix = fitted(TorchKMLogit, (X @ X.T, circles[1]), kernel="precomputed")
    np.testing.assert_allclose(matrix.decision_function(X @ X.T), linear.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kind", ALL)
def test_the_grid_falls_from_C_max_to_C_min(kind, circles):
    model = fitted(kind, circles, Cs=None, nC=5, C_max=100.0, C_min=0.01)
    np.testing.assert_allclose(model.Cs_, [100.0, 10.0, 1.0, 0.1, 0.01])
    assert model.best_C_ == model.Cs_[model.best_ind_]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("seed", [0, None])
def test_fold_numbers_are_those_of_the_fit(kind, seed, circles):
    model = fitted(kind, circles, random_state=seed, rbf_sigma=1.0)
    assert sorted(set(model.foldid_)) == [1, 2, 3]
    again = fitted(kind, circles, foldid=model.foldid_, cv=9, rbf_sigma=1.0)
    np.testing.assert_array_equal(again.estimator_.scores_, model.estimator_.scores_)
    np.testing.assert_array_equal(again.foldid_, model.foldid_)
    if seed is not None:
        X, y = circles
        splitter = (StratifiedKFold if kind in CLASSIFIERS else KFold)(3, shuffle=True, random_state=seed)
        for k, (_, test) in enumerate(splitter.split(X, y)):
            assert set(model.foldid_[test]) == {k + 1}


def test_foldid_is_honoured(circles):
    X, y = circles
    foldid = np.arange(len(y)) % 4 + 1
    model = fitted(TorchKMSVC, circles, foldid=foldid.tolist(), rbf_sigma=1.0, store_path=True)
    folds = [(np.flatnonzero(foldid != k), np.flatnonzero(foldid == k)) for k in (1, 2, 3, 4)]
    ours = KernelSVC(Cs=GRID, cv=folds, gamma=2.0, tol=1e-5).fit(X, y)
    np.testing.assert_array_equal(model.estimator_.scores_, ours.scores_)
    np.testing.assert_array_equal(model.pred_path_, ours.oof_path_)
    wrong = np.where(model.pred_path_ > 0, "out", "in") != y[:, None]
    by_fold = [wrong[foldid == k].mean(axis=0) for k in (1, 2, 3, 4)]
    np.testing.assert_allclose(model.cv_mis_, np.mean(by_fold, axis=0))


def test_quantile_level_and_score(circles):
    X = circles[0]
    model = fitted(TorchKMKQR, circles, tau=0.8)
    assert model.tau_ == 0.8
    assert model.score(X, X[:, 0]) == pytest.approx(-mean_pinball_loss(X[:, 0], model.predict(X), alpha=0.8))
    assert np.mean(X[:, 0] <= model.predict(X) + 1e-3) >= 0.8


def test_converged_tells_which_Cs_reached_tol(circles, monkeypatch):
    assert fitted(TorchKMSVC, circles).converged_.tolist() == [True] * 4
    monkeypatch.setattr(TorchKMSVC, "_kind", partial(KernelSVC, max_iter=40))
    with pytest.warns(ConvergenceWarning, match="did not reach tol=1e-05"):
        model = fitted(TorchKMSVC, circles)
    np.testing.assert_array_equal(model.converged_, model.estimator_.gaps_.max(axis=0) <= 1e-5)
    assert set(model.converged_) == {True, False}


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("kind", ALL)
def test_path_is_kept_on_request_only(kind, low_rank, circles):
    X = circles[0]
    options = {"rbf_sigma": 0.7, "tol": 1e-7, "low_rank": low_rank, "num_landmarks": 40, "nys_k": 25}
    plain = fitted(kind, circles, **options)
    assert plain.pred_path_ is None
    assert plain.alpmat_path_ is None
    model = fitted(kind, circles, store_path=True, **options)
    assert type(model.estimator_) is ALL[kind]
    np.testing.assert_array_equal(model.pred_path_, model.estimator_.oof_path_)
    assert model.alpmat_path_.shape == (151, 4)
    np.testing.assert_array_equal(model.alpmat_path_[1:, model.best_ind_], plain.alpha_)
    assert model.alpmat_path_[0, model.best_ind_] == plain.intercept_
    # A column is what a fit of its C alone would be.
    K = naive.gram(X, X, "rbf", 1.4)
    for j, C in enumerate(GRID):
        alone = fitted(kind, circles, Cs=[C], **options)
        values = alone.predict(X) if kind is TorchKMKQR else alone.decision_function(X)
        np.testing.assert_allclose(K @ model.alpmat_path_[1:, j] + model.alpmat_path_[0, j], values, atol=2e-3)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).alpmat_path_, model.alpmat_path_)


@pytest.mark.parametrize("kind", ALL)
def test_parameters_without_effect(kind, circles):
    other = {"max_iter": 7, "solver_gamma": 0.1, "is_exact": 1, "sigest_frac": 0.1, "num_landmarks": 3, "nys_k": 2}
    if kind is TorchKMKQR:
        other |= {"delta_len": 1, "mproj": 1, "KKTeps": 1.0, "KKTeps2": 1.0}
    plain, steered = fitted(kind, circles), fitted(kind, circles, **other)
    np.testing.assert_array_equal(plain.alpha_, steered.alpha_)


def test_the_device_of_platts_calibration_has_no_effect_but_must_be_one(circles):
    assert fitted(TorchKMSVC, circles, probability=True, platt_device="cuda").platt_ is not None
    with pytest.raises(ValueError, match="platt_device='gpu' is not available; available: 'cpu', 'auto'"):
        fitted(TorchKMSVC, circles, platt_device="gpu")


@pytest.mark.parametrize(("device", "ours"), [("cpu", "cpu"), ("auto", "auto"), (None, "auto")])
def test_devices(device, ours, circles):
    assert fitted(TorchKMSVC, circles, device=device).estimator_.device == ours


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"device": "cuda:7"}, RuntimeError, '"cuda:7" cannot be used: .*available are cpu'),
        ({"device": "gpu"}, ValueError, "device='gpu' is not available; available: 'cpu', 'auto'"),
        ({"low_rank": "yes"}, TypeError, "low_rank must be True or False, got 'yes'"),
        ({"low_rank": True, "num_landmarks": 0}, ValueError, "num_landmarks must be at least 1, got 0"),
        ({"low_rank": True, "nys_k": 2.5}, TypeError, "nys_k must be an integer, got 2.5"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"kernel": "laplacian"}, ValueError, "kernel='laplacian' is not available; available: 'rbf', 'linear'"),
        ({"rbf_sigma": -1.0}, ValueError, "rbf_sigma must be a finite number > 0, got -1.0"),
        ({"Cs": [1.0, -1.0]}, ValueError, r"C must be a finite number > 0, got -1.0 \(Cs\[1\]\)"),
        ({"Cs": None, "C_min": 0.0}, ValueError, "C_min must be a finite number > 0, got 0.0"),
        ({"Cs": None, "C_max": np.inf}, ValueError, "C_max must be a finite number > 0, got inf"),
        ({"Cs": None, "nC": 0}, ValueError, "Cs is empty"),
        ({"cv": "loo"}, TypeError, "cv must be a number of folds, got 'loo'; pass foldid, or to Kernel"),
        ({"foldid": [1, 2]}, ValueError, "mask of length 2, but X has 150 rows"),
        ({"foldid": np.ones(150)}, ValueError, "the train part of fold 0 is a mask without a row"),
    ],
)
@pytest.mark.parametrize("kind", ALL)
def test_what_it_refuses(kind, parameters, error, message, circles):
    with pytest.raises(error, match=message):
        fitted(kind, circles, **parameters)


@pytest.mark.parametrize("kind", ALL)
def test_low_rank_is_that_of_kernelpath(kind, circles):
    X, y = circles
    target = X[:, 0] if kind is TorchKMKQR else y
    model = kind(**FAST, rbf_sigma=0.7, low_rank=True, num_landmarks=40, nys_k=25).fit(X, target)
    options = {"low_rank": True, "landmarks": "uniform", "n_landmarks": 40, "rank": 25}
    ours = ALL[kind](Cs=GRID, cv=3, gamma=1.4, tol=1e-5, random_state=0, **options).fit(X, target)
    assert model.estimator_.rank_ == ours.rank_ == 25
    assert model.estimator_.gaps_.max() <= 1e-5
    np.testing.assert_array_equal(model.estimator_.landmark_indices_, ours.landmark_indices_)
    np.testing.assert_array_equal(model.predict(X), ours.predict(X))
    # The coefficients of all rows are those of the landmarks, and 0.
    np.testing.assert_array_equal(np.flatnonzero(model.alpha_), np.sort(ours.landmark_indices_))
    np.testing.assert_array_equal(model.low_rank_landmark_indices_, ours.landmark_indices_)
    assert (model.num_landmarks_, model.nys_k_, model.low_rank_basis_dim_) == (40, 25, 25)
    K = np.exp(-1.4 * ((X[:, None] - X) ** 2).sum(axis=2))
    values = model.predict(X) if kind is TorchKMKQR else model.decision_function(X)
    np.testing.assert_allclose(K @ model.alpha_ + model.intercept_, values, atol=1e-9 * np.abs(model.alpha_).sum())


@pytest.mark.parametrize("kind", ALL)
def test_low_rank_of_one_fit_goes_before_the_parameter(kind, circles):
    X, y = circles
    target = X[:, 0] if kind is TorchKMKQR else y
    exact = kind(**FAST, low_rank=True).fit(X, target, low_rank=False, num_landmarks=10, nys_k=5)
    np.testing.assert_array_equal(exact.alpha_, fitted(kind, circles).alpha_)
    assert not hasattr(exact.estimator_, "rank_")
    model = kind(**FAST, num_landmarks=30, nys_k=20)
    before = model.get_params()
    assert model.fit(X, target, low_rank=True).estimator_.rank_ == 20
    assert model.fit(X, target, low_rank=True, nys_k=7).estimator_.rank_ == 7
    few = model.fit(X, target, low_rank=True, num_landmarks=10)  # and no more than 10 of nys_k=20
    assert few.estimator_.rank_ == 10 == np.count_nonzero(few.alpha_)
    assert {name: value for name, value in model.get_params().items() if name != "Cs"} == {
        name: value for name, value in before.items() if name != "Cs"
    }


LOW_RANK_ATTRIBUTES = ("low_rank_basis_dim_", "low_rank_landmark_indices_", "num_landmarks_", "nys_k_")


@pytest.mark.parametrize("kind", ALL)
def test_landmarks_are_a_matter_of_low_rank_alone(kind, circles):
    """An exact fit neither passes nor checks them, and has none of their attributes, even after one of low rank."""
    model = kind(**FAST, num_landmarks=0, nys_k="all")
    target = circles[0][:, 0] if kind is TorchKMKQR else circles[1]
    model.fit(circles[0], target, low_rank=True, num_landmarks=9, nys_k=5)
    assert all(hasattr(model, name) for name in LOW_RANK_ATTRIBUTES)
    model.fit(circles[0], target)
    assert not any(hasattr(model, name) for name in LOW_RANK_ATTRIBUTES)
    untouched = ALL[kind]()
    for name in ("low_rank", "landmarks", "n_landmarks", "rank"):
        assert getattr(model.estimator_, name) == getattr(untouched, name)


@pytest.mark.parametrize("kind", ALL)
def test_threads(kind, circles):
    one, two = (fitted(kind, circles, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert (one.estimator_.n_jobs, two.estimator_.n_jobs) == (1, 2)
    np.testing.assert_array_equal(one.alpha_, two.alpha_)


@pytest.mark.parametrize("kind", ALL)
def test_what_it_was_fitted_to(kind, circles):
    X, y = circles
    model = fitted(kind, circles)
    assert model.X_fit_ is X
    np.testing.assert_array_equal(model.y_fit_original_, X[:, 0] if kind is TorchKMKQR else y)
    assert model.y_fit_original_ is not y
    frame = fitted(kind, (pd.DataFrame(X), y))
    assert type(frame.X_fit_) is np.ndarray
    np.testing.assert_array_equal(frame.X_fit_, X)
    rows, target = sparse.csr_matrix(X), model.y_fit_original_
    assert kind(**FAST).fit(rows, target).X_fit_ is rows
    assert kind(**FAST, kernel="precomputed").fit(X @ X.T, target).X_fit_ is None


# Import paths, tensors and helpers


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("", "TorchKMSVC TorchKMDWD TorchKMLogit TorchKMKQR ConvergenceWarning"),
        ("", "data_gen sigest rbf_kernel kernelMult standardize"),
        (".estimators", "TorchKMSVC TorchKMDWD TorchKMLogit TorchKMKQR"),
        (".functions", "data_gen sigest rbf_kernel kernelMult standardize"),
        (".exceptions", "ConvergenceWarning"),
        *[(f".cvk{name}", f"cvk{name}") for name in ("svm", "dwd", "logit", "qr", "sqsvm", "huber")],
        *[(f".cvkny{name}", f"cvkny{name}") for name in ("ssvm", "sdwd", "slogit", "qr")],
    ],
)
def test_import_paths(module, names):
    found = import_module(f"kernelpath.torchkm{module}")
    for name in names.split():
        assert getattr(found, name).__name__ == name
        assert getattr(kernelpath.torchkm, name, None) in (getattr(found, name), found)  # as in TorchKM
    assert set(names.split()) <= set(found.__all__)


@pytest.mark.parametrize("kind", ALL)
def test_tensors_are_read_as_arrays(kind, circles):
    X, y = circles
    if kind is not TorchKMKQR:  # tensors hold numbers
        y = np.where(y == "out", 1, -1)
    options = {"random_state": 0, "rbf_sigma": 1.0} | ({} if kind is TorchKMKQR else {"probability": True})
    foldid = np.arange(len(X)) % 3 + 1
    target = X[:, 0] if kind is TorchKMKQR else y
    arrays = kind(Cs=GRID, foldid=foldid, **options).fit(X, target)
    tensors = kind(Cs=Tensor(GRID), foldid=Tensor(foldid), **options).fit(Tensor(X), Tensor(target))
    np.testing.assert_array_equal(tensors.alpha_, arrays.alpha_)
    np.testing.assert_array_equal(tensors.predict(Tensor(X)), arrays.predict(X))
    assert tensors.score(Tensor(X), Tensor(target)) == arrays.score(X, target)
    for name, value in (("X_fit_", X), ("y_fit_original_", target), ("foldid_", foldid), ("Cs_", GRID)):
        assert type(getattr(tensors, name)) is np.ndarray
        np.testing.assert_array_equal(getattr(tensors, name), value)
    if kind is not TorchKMKQR:
        np.testing.assert_array_equal(tensors.decision_function(Tensor(X)), arrays.decision_function(X))
        np.testing.assert_array_equal(tensors.predict_proba(Tensor(X)), arrays.predict_proba(X))
        assert tensors.platt_plot(Tensor(X), Tensor(y))[1]["ece"] == arrays.platt_plot(X, y)[1]["ece"]


def test_tensors_on_a_GPU_are_refused(circles):
    X, y = circles
    message = r"X is a TensorOnGPU on the device 'cuda:0' that numpy cannot read; pass X.detach\(\).cpu\(\) \(can't"
    with pytest.raises(TypeError, match=message):
        TorchKMSVC(**FAST).fit(TensorOnGPU(), y)
    with pytest.raises(TypeError, match=message.replace("X", "y")):
        TorchKMSVC(**FAST).fit(X, TensorOnGPU())
    with pytest.raises(TypeError, match=message):
        fitted(TorchKMSVC, circles).predict(TensorOnGPU())
    with pytest.raises(TypeError, match=message.replace("X", "x")):
        standardize(TensorOnGPU())


def test_only_tensors_are_converted(circles):
    for value in (circles[0], circles[0].tolist(), pd.DataFrame(circles[0]), pd.Series([1, 2]), None, "sigest"):
        assert as_numpy("X", value) is value
    matrix = sparse.csr_matrix(circles[0])
    assert as_numpy("X", matrix) is matrix


def test_kernel_matrices():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(60, 3)), rng.normal(size=(7, 3))
    np.testing.assert_allclose(rbf_kernel(X, 0.3), naive.gram(X, X, "rbf", 0.6), rtol=1e-13)
    np.testing.assert_allclose(kernelMult(Tensor(X), Z, 0.3), naive.gram(X, Z, "rbf", 0.6), rtol=1e-13)
    with pytest.raises(ValueError, match="sigma must be a finite number > 0, got -1.0"):
        rbf_kernel(X, -1.0)
    with pytest.raises(ValueError, match="X has 3 features and X_new 2; both need the same"):
        kernelMult(X, Z[:, :2], 0.3)
    with pytest.raises(ValueError, match=r"X must be a matrix, got shape \(60,\)"):
        kernelMult(X[:, 0], Z, 0.3)
    with pytest.raises(ValueError, match="X must hold numbers: could not convert string to float: 'a'"):
        kernelMult([["a"]], Z, 0.3)


def test_sigest_is_half_of_gamma():
    X = make_mixture(60, 3, random_state=0)[0]
    pairs = ((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(60, 1)]
    high, low = np.quantile(pairs, [0.9, 0.1])
    assert sigest(Tensor(X), frac=0.5) == pytest.approx((1 / high + 1 / low) / 2, rel=0.3)
    np.random.seed(1)  # noqa: NPY002
    seed = np.random.mtrand._rand.randint(np.iinfo(np.int32).max)
    np.random.seed(1)  # noqa: NPY002
    assert sigest(X) == kernelpath._core.bandwidth(X, "rbf", "sigest", seed) / 2


def test_standardize():
    X = np.random.default_rng(0).normal(2.0, 3.0, size=(60, 3))
    X[:, 1] = 4.0
    Z = standardize(Tensor(X))
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(Z.std(axis=0, ddof=1), [1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="standardize needs at least 2 rows, got 1"):
        standardize(X[:1])


def test_simulated_data():
    X, y, means = data_gen(60, 4, 6, 3, 3, 2.0, 3.0, 42)
    assert (X.shape, y.shape, means.shape) == ((60, 6), (60,), (8, 6))
    assert set(y) == {-1.0, 1.0}
    scaled, labels = make_mixture(60, 6, n_centers=4, random_state=42)
    np.testing.assert_array_equal((X - X.mean(axis=0)) / (X - X.mean(axis=0)).std(axis=0), scaled)
    np.testing.assert_array_equal(y, labels)
    # Centres of class -1 are shifted in the first p1 features, the others in the rest.
    means = data_gen(1, 500, 6, 2, 4, 5.0, 1.0, 0)[2]
    np.testing.assert_allclose(means[:500].mean(axis=0), [5, 5, 0, 0, 0, 0], atol=0.2)
    np.testing.assert_allclose(means[500:].mean(axis=0), [0, 0, 5, 5, 5, 5], atol=0.2)
    # Rows around given centres.
    centers = np.array([[100.0, 0.0], [0.0, 0.0], [0.0, -100.0], [0.0, -100.0]])
    X, y, means = data_gen(60, 2, 2, 1, 1, 2.0, 0.1, sdn=42, means=Tensor(centers))
    np.testing.assert_array_equal(means, centers)
    np.testing.assert_allclose(X[y == 1.0], np.tile([0.0, -100.0], (int(np.sum(y == 1.0)), 1)), atol=1.0)
    assert not np.array_equal(X, data_gen(60, 2, 2, 1, 1, 2.0, 0.1, 42, centers)[0])
    with pytest.raises(ValueError, match=r"means must have shape \(2 \* nm, pp\) = \(6, 2\), got \(4, 2\)"):
        data_gen(60, 3, 2, 1, 1, 2.0, 0.1, means=centers)


def test_a_level_outside_0_to_1(circles):
    with pytest.raises(ValueError, match="tau must be a finite number > 0 and < 1, got 1.5"):
        fitted(TorchKMKQR, circles, tau=1.5)


@pytest.mark.parametrize("kind", ALL)
def test_clone_pipeline_and_pickle(kind, circles):
    X, y = circles
    target = X[:, 0] if kind is TorchKMKQR else y
    model = kind(**FAST, rbf_sigma=0.5)
    assert clone(model).get_params()["rbf_sigma"] == 0.5
    assert is_classifier(model) == (kind in CLASSIFIERS)
    assert is_regressor(model) == (kind is TorchKMKQR)
    pipeline = make_pipeline(StandardScaler(), model)
    scores = cross_val_score(pipeline, X, target, cv=3)
    assert np.isfinite(scores).all()
    model.fit(X, target)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_displays_look_into_it(circles):
    model = fitted(TorchKMSVC, circles)
    np.testing.assert_allclose(CVCurveDisplay.from_estimator(model).lines[0].values, 1 - model.cv_mis_)
    np.testing.assert_array_equal(GapDisplay.from_estimator(model).gaps, model.estimator_.gaps_)


# Probabilities


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_no_probabilities_unless_asked_for(kind, circles):
    model = fitted(kind, circles)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "platt_plot")
    assert model.platt_ is None
    assert model.platt_scores_ is None
    assert model.platt_y_ is None


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_probabilities(kind, circles):
    X, y = circles
    model = fitted(kind, circles, probability=True)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(p[:, 1], model.platt_.probability(model.decision_function(X)))
    assert np.mean(model.classes_[p.argmax(axis=1)] == y) > 0.8
    np.testing.assert_array_equal(model.platt_scores_, model.estimator_.oof_decision_)
    np.testing.assert_array_equal(model.platt_y_, y)


@pytest.mark.parametrize("kind", [TorchKMSVC, TorchKMDWD])
def test_probabilities_are_those_of_kernelpath(kind, circles):
    X, y = circles
    ours = CLASSIFIERS[kind](Cs=GRID, cv=3, tol=1e-5, probability="sigmoid", random_state=0).fit(X, y)
    np.testing.assert_array_equal(fitted(kind, circles, probability=True).predict_proba(X), ours.predict_proba(X))


def test_logistic_probabilities_are_calibrated(circles):
    """At a small C labels may be right and log-odds too close to even."""
    X, y = circles
    model = fitted(TorchKMLogit, circles, Cs=[1e-3], probability=True)
    own = model.estimator_.predict_proba(X)[:, 1]
    assert CalibrationBins.of(y, model.predict_proba(X)[:, 1]).brier < 0.7 * CalibrationBins.of(y, own).brier


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_platt_plot_of_the_training_rows_is_out_of_fold(kind, circles, tmp_path):
    y = circles[1]
    model = fitted(kind, circles, probability=True)
    file = tmp_path / "platt.png"
    ax, stats = model.platt_plot(n_bins=6, strategy="quantile", title="Mine", figsize=(4, 3), dpi=50, savepath=file)
    p = model.platt_.probability(model.estimator_.oof_decision_)
    expected = CalibrationBins.of(y == "out", p, n_bins=6, strategy="quantile")
    assert (stats["ece"], stats["brier"]) == pytest.approx((expected.ece, expected.brier))
    np.testing.assert_allclose(stats["bin_avg_proba"], expected.predicted)
    np.testing.assert_allclose(stats["bin_empirical_freq"], expected.observed)
    np.testing.assert_array_equal(stats["bin_count"], expected.count)
    assert ax.get_title() == "Mine"
    assert plt.imread(file).shape[:2] == (150, 200)
    assert len(ax.texts) == len(expected.count)


def test_platt_plot_of_other_rows(circles):
    model = fitted(TorchKMLogit, circles, probability=True)
    X, y = make_circles(80, factor=0.4, noise=0.2, random_state=1)
    y = np.where(y == 1, "in", "out")
    given = plt.subplots()[1]
    ax, stats = model.platt_plot(X, y, annotate_counts=False, ax=given)
    assert ax is given
    assert not ax.texts
    assert stats["brier"] == pytest.approx(np.mean((model.predict_proba(X)[:, 1] - (y == "out")) ** 2))
    assert stats["bin_count"].sum() == 80
    for alone in ({"X": X}, {"y": y}):
        with pytest.raises(ValueError, match="platt_plot needs X and y, or neither"):
            model.platt_plot(**alone)


def circles_snippet(kind, **of_fit):
    """As in TorchKM's paper: standardised circles, twelve values of C, probabilities of the test rows."""
    X, y = make_circles(n_samples=1200, factor=0.4, noise=0.15, random_state=42)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=42)
    scaler = StandardScaler().fit(X_train)
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    Cs = np.logspace(3, -3, num=12)
    clf = kind(kernel="rbf", Cs=Cs, nC=len(Cs), cv=5, probability=True, device="cpu").fit(X_train, y_train, **of_fit)
    return clf, X_test, y_test


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_circles(kind, low_rank):
    clf, X, y = circles_snippet(kind, low_rank=low_rank)
    assert clf.score(X, y) > 0.95
    assert clf.predict_proba(X).shape == (300, 2)
    assert np.mean((clf.predict_proba(X)[:, 1] - y) ** 2) < 0.03
    assert clf.converged_.all()
    assert clf.cv_mis_.shape == (12,)
    assert clf.cv_mis_.min() == clf.cv_mis_[clf.best_ind_]
    stats = clf.platt_plot(X, y, n_bins=10)[1]
    assert stats["bin_count"].sum() == 300
    assert stats["ece"] < 0.06
    assert hasattr(clf.estimator_, "rank_") == low_rank
