"""Targets and the columns of the linear kernel far from 0: every model is proved, and predictions keep their digits."""

import pickle

import naive
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.svm import SVC

import kernelpath
from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR

GRID = {"Cs": [0.01, 1.0, 100.0], "cv": 4, "random_state": 0}
CLASSIFIERS = {
    "hinge": KernelSVC(**GRID),
    "squared hinge": KernelSVC(loss="squared_hinge", **GRID),
    "logistic": KernelLogistic(**GRID),
    "dwd": KernelDWD(**GRID),
}
REGRESSORS = {
    "svr": KernelSVR(epsilon=100.0, **GRID),
    "quantile": KernelQuantile(tau=0.3, **GRID),
    "quantiles": KernelQuantile(tau=[0.2, 0.8], **GRID),
    "squared": KernelRegressor(**GRID),
    "huber": KernelRegressor(loss="huber", delta=1e5, **GRID),
    "expectile": KernelRegressor(loss="expectile", tau=0.8, **GRID),
}
FAR = 2e4  # an offset of columns
START = 1.7e9  # seconds since 1970


def rows(n=80):
    """Columns around 2e4, and the same around 0. They are multiples of 2⁻⁸, so that float32 holds them."""
    rng = np.random.default_rng(3)
    near = np.round(256 * rng.standard_normal((n, 4))) / 256
    return near + FAR, near


def labels(near):
    return np.where(near[:, 0] - near[:, 1] + np.sin(np.arange(len(near))) > 0, 1, -1)


def times(near):
    """Times of events in seconds since 1970, some days apart."""
    return START + np.round(86_400 * (3 * near[:, 0] + near[:, 2] ** 2 + np.cos(np.arange(len(near)))))


FORMS = {
    "rows": lambda X: X,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_matrix,
}


@pytest.mark.parametrize("solver", ["auto", "spectral"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_every_model_is_proved(name, form, solver):
    X, near = rows()
    y = labels(near) if name in CLASSIFIERS else times(near)
    if form == "sparse":
        X = near + 100  # products of sparse rows stay what they are, and are rounded
    model = clone((CLASSIFIERS | REGRESSORS)[name]).set_params(kernel="linear", solver=solver)
    if name in CLASSIFIERS:
        model.set_params(Cs=[0.01, 1.0])
    model.fit(FORMS[form](X), y)
    assert (model.status_ == "converged").all(), (model.status_, model.gaps_, model.gap_noise_)
    proof = model.verify(FORMS[form](X), y)
    assert np.all(proof.gap <= model.tol)
    assert np.all(proof.noise <= model.tol)
    np.testing.assert_allclose(proof.primal, model.objective_, rtol=1e-7)


@pytest.mark.parametrize("name", REGRESSORS)
def test_times_as_targets_are_proved_with_every_kernel(name):
    _, near = rows()
    y = times(near)
    far = clone(REGRESSORS[name]).fit(near, y)
    assert (far.status_ == "converged").all()
    # b alone differs from that of targets around 0.
    ours = clone(REGRESSORS[name]).fit(near, y - START)
    np.testing.assert_allclose(far.predict(near) - START, ours.predict(near), atol=1e-3 * 86_400)
    np.testing.assert_allclose(far.objective_, ours.objective_, rtol=2e-6)
    np.testing.assert_allclose(far.oof_decision_ - START, ours.oof_decision_, atol=1e-3 * 86_400)
    np.testing.assert_allclose(far.scores_, ours.scores_, rtol=1e-3)


@pytest.mark.parametrize("name", ["svr", "quantile", "squared", "huber", "expectile"])
def test_the_certificate_is_that_of_the_twin(name):
    X, near = rows()
    y = times(near)
    model = clone(REGRESSORS[name]).set_params(kernel="linear").fit(X, y)
    K = naive.gram(near, near, "linear")
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    task = {"svr": ("epsilon_insensitive", 100.0), "quantile": ("quantile", 0.3), "squared": ("squared", 0.0)}
    task |= {"huber": ("huber", 1e5), "expectile": ("expectile", 0.8)}
    # b of rows less FAR and of targets less START.
    b = model.intercept_[0] - START + FAR * np.sum(model.coef_)
    primal = naive.objective(K, y - START, model.C_, beta, b, task[name])
    np.testing.assert_allclose(model.objective_, primal, rtol=1e-8)
    values = near @ np.ravel(model.coef_) + b
    np.testing.assert_allclose(model.predict(X) - START, values, atol=1e-5)


def test_coefficients_are_those_of_ridge_regression():
    X, near = rows()
    y, C, folds = times(near), 7.0, KFold(4)
    ridge = Ridge(alpha=1 / (2 * C))
    want = clone(ridge).fit(near, y - START)
    for form in ("rows", "columns"):
        model = KernelRegressor(kernel="linear", Cs=C, cv=folds).fit(FORMS[form](X), y)
        np.testing.assert_allclose(np.ravel(model.coef_), want.coef_, rtol=1e-9)
        np.testing.assert_allclose(model.intercept_[0], want.intercept_ + START - FAR * want.coef_.sum(), rtol=1e-12)
        np.testing.assert_allclose(model.predict(X), want.predict(near) + START, atol=2e-6)
        held_out = cross_val_predict(ridge, near, y - START, cv=folds)
        np.testing.assert_allclose(model.oof_decision_, held_out + START, atol=1e-5)


def test_coefficients_are_those_of_scikit_learn():
    X, near = rows()
    y = labels(near)
    model = KernelSVC(kernel="linear", Cs=3.0, cv=None, tol=1e-9).fit(X, y)
    want = SVC(kernel="linear", C=3.0, tol=1e-8).fit(near, y)
    np.testing.assert_allclose(model.coef_, want.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, want.intercept_ - FAR * want.coef_.sum(axis=1), rtol=1e-4)
    np.testing.assert_allclose(model.decision_function(X), want.decision_function(near), atol=1e-4)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr", "multinomial"])
def test_several_machines_share_the_centre(multi_class):
    X, near = rows()
    y = np.digitize(near[:, 0] + 0.3 * near[:, 3], [-0.5, 0.5])
    model = KernelLogistic(kernel="linear", multi_class=multi_class, Cs=[0.1, 10.0], cv=3)
    far, ours = (clone(model).fit(data, y) for data in (X, near))
    assert (far.status_ == "converged").all()
    np.testing.assert_allclose(far.decision_function(X), ours.decision_function(near), atol=1e-4)
    np.testing.assert_allclose(X @ far.coef_.T + far.intercept_, near @ ours.coef_.T + ours.intercept_, atol=1e-3)
    assert np.all(far.verify(X, y).gap <= far.tol)


@pytest.mark.parametrize("data", ["dense", "sparse"])
def test_files_conversions_and_copies_predict_the_same(data, tmp_path):
    X, near = rows()
    y, far = labels(near), 100 if data == "sparse" else FAR
    X, form = near + far, sparse.csr_matrix if data == "sparse" else np.asarray
    model = KernelSVC(kernel="linear", Cs=[10.0], cv=None).fit(form(X), y)
    f = model.decision_function(form(X))
    np.testing.assert_allclose(f, near @ model.coef_[0] + model.intercept_[0] + far * model.coef_[0].sum(), atol=1e-8)
    path = tmp_path / "model.kpath"
    model.save(path)
    for other in (kernelpath.load(path), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.decision_function(form(X)), f)
        np.testing.assert_array_equal(other.coef_, model.coef_)
        np.testing.assert_array_equal(other.intercept_, model.intercept_)
    # One row at a time.
    one = [model.decision_function(form(X)[i : i + 1])[0] for i in range(5)]
    np.testing.assert_allclose(one, f[:5], rtol=0, atol=1e-10)


def test_onnx_subtracts_the_centre():
    ort = pytest.importorskip("onnxruntime")
    X, near = rows()
    y = labels(near)
    model = KernelSVC(kernel="linear", Cs=[100.0], cv=None).fit(X, y)
    for float32, atol in ((False, 1e-9), (True, 1e-4)):
        session = ort.InferenceSession(kernelpath.to_onnx(model, float32=float32), providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        out = dict(zip(names, session.run(None, {"X": X.astype(np.float32 if float32 else np.float64)}), strict=True))
        values = next(value for name, value in out.items() if "decision" in name or "value" in name).ravel()
        np.testing.assert_allclose(values, model.decision_function(X), atol=atol)


def test_a_libsvm_file_is_right_up_to_the_rounding_of_libsvm():
    X, near = rows()
    y = labels(near)
    model = KernelSVC(kernel="linear", Cs=[100.0], cv=None).fit(X, y)
    again = kernelpath.from_libsvm(kernelpath.to_libsvm(model).encode())
    size = np.abs(model.dual_coef_).sum() * np.square(X).sum(axis=1).max()
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=4e-16 * size)


def test_rows_around_zero_are_not_moved():
    _, near = rows()
    model = KernelSVC(kernel="linear", Cs=[1.0], cv=None).fit(near, labels(near))
    assert model._centre is None
    poly = KernelSVC(kernel="poly", degree=1, coef0=0.0, gamma=1.0, Cs=[1e-6], cv=None).fit(near + FAR, labels(near))
    assert poly._centre is None  # another kernel keeps its columns


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_absurd_cell_does_not_move_the_centre():
    X, near = rows(200)
    X[7, 0] = 999_999_999.0
    model = KernelSVC(kernel="linear", Cs=[0.01], cv=None).fit(X, labels(near))
    assert np.abs(model._centre[0] - FAR).max() <= 4


@pytest.mark.parametrize("model", [KernelSVC(), KernelLogistic(), KernelRegressor(), KernelQuantile(tau=0.3)], ids=repr)
def test_features_of_low_rank_are_centred_too(model):
    X, near = rows()
    y = labels(near) if isinstance(model, KernelSVC | KernelLogistic) else times(near)
    model = clone(model).set_params(kernel="linear", low_rank=True, **GRID).fit(X, y)
    assert (model.status_ == "converged").all()
    exact = clone(model).set_params(low_rank=False).fit(X, y)
    # (As many landmarks as columns span all of them. Of quantiles, b may lie anywhere in an interval.)
    np.testing.assert_allclose(model.objective_, exact.objective_, rtol=2e-6)
    spread = np.ptp(exact.oof_decision_)
    sums = X @ np.atleast_2d(model.coef_).T + model.intercept_
    values = model.decision_function(X) if isinstance(model, KernelSVC | KernelLogistic) else model.predict(X)
    np.testing.assert_allclose(sums.ravel(), values, atol=1e-6 * spread)
