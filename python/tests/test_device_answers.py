"""What a device computes, beside a twin in numpy; and awkward data: answers and errors are those of the processor.

Which devices: see `device` in conftest.py.
"""

import numpy as np
import pytest
from naive import certificate, gram, relative_gap, slope_certificate
from scipy import sparse

from kernelpath import KernelLogistic, KernelRegressor, KernelSVC, _core
from kernelpath.datasets import make_mixture

TOL = 1e-6
KERNELS = [
    {"kernel": "rbf", "gamma": 0.4},
    {"kernel": "laplacian", "gamma": 0.3},
    {"kernel": "poly", "gamma": 0.2, "degree": 3, "coef0": 0.5},
    {"kernel": "linear"},
    {"kernel": "sigmoid", "gamma": 0.1, "coef0": -0.2},
    {"kernel": "matern32", "gamma": 0.4},
    {"kernel": "matern52", "gamma": 0.4},
]


def counted(device):
    """Launches and bytes so far."""
    return np.array(_core.device_traffic(device) or (0, 0, 0))


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
@pytest.mark.filterwarnings("ignore::kernelpath.IndefiniteKernelWarning")
def test_decision_values_are_sums_of_kernel_values(device, kernel, form):
    rng = np.random.default_rng(3)
    X = np.where(rng.random((90, 6)) < 0.6, rng.normal(size=(90, 6)), 0.0)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.4, 0.4])
    many = np.where(rng.random((1111, 6)) < 0.6, rng.normal(size=(1111, 6)), 0.0)
    made = sparse.csr_matrix if form == "sparse" else np.asarray
    model = KernelSVC(Cs=1.0, cv=None, multi_class="ovr", **kernel).fit(made(X), y)
    # Rows enough that the device does it, and not a multiple of its tiles.
    many = np.tile(many, (3, 1))
    before = counted(device)
    got = model.set_params(device=device).decision_function(made(many))
    # (A linear model predicts by its weights, which takes no longer than sending the rows.)
    assert (counted(device)[0] > before[0]) == (kernel["kernel"] != "linear")
    K = gram(many, X[model.support_], **{"gamma": 1.0, **kernel})
    coef = np.asarray(model.dual_coef_)
    want = K @ coef.T + model.intercept_
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(K).max() * np.abs(coef).sum(axis=1).max())


@pytest.mark.parametrize("solver", ["newton", "spectral"])
@pytest.mark.parametrize("kernel", KERNELS[:1] + KERNELS[5:], ids=lambda kernel: kernel["kernel"])
def test_gaps_are_those_of_a_twin_in_double_precision(device, kernel, solver):
    """The kernel matrix was made, and its products were taken, on the device."""
    X, y = make_mixture(120, 4, random_state=1)
    sign = np.where(y == np.unique(y)[1], 1.0, -1.0)
    K = gram(X, X, **kernel)
    for C in (0.1, 30.0):
        model = KernelLogistic(Cs=C, cv=None, solver=solver, device=device, **kernel).fit(X, y)
        beta = np.zeros(len(X))
        beta[model.support_] = np.ravel(model.dual_coef_)
        of_model = (K, sign, C, beta, np.ravel(model.intercept_)[0])
        # Any dual point proves a gap.
        primal, by_slopes = slope_certificate(*of_model, ("logistic", 0.0))
        _, by_coefficients = certificate(*of_model, loss=("logistic", 0.0))
        gap = relative_gap(primal, max(by_slopes, by_coefficients))
        assert gap <= TOL
        assert gap <= model.gaps_.max() + 1e-9
        np.testing.assert_allclose(model.objective_, primal, rtol=1e-9)


def plain():
    X, y = make_mixture(80, 4, random_state=2)
    return np.ascontiguousarray(X), y


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


SAME_NUMBERS = {
    "Fortran": np.asfortranarray,
    "read-only": read_only,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "float32": lambda X: X.astype(np.float32),
}


@pytest.mark.parametrize("form", SAME_NUMBERS)
def test_the_layout_of_an_array_does_not_matter(device, form):
    X, y = plain()
    X = X.astype(np.float32).astype(np.float64)
    model = KernelSVC(Cs=[0.5, 5.0], cv=2, device=device, gamma=0.5, random_state=0)
    want = model.fit(X, y).decision_function(X)
    other = SAME_NUMBERS[form](X)
    got = model.fit(other, y).decision_function(other)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 if form == "float32" else 0)
    assert model.gaps_.max() <= TOL


def outcome(estimator, X, y):
    """Objectives and gaps, or the error."""
    try:
        model = estimator.fit(X, y)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return np.ravel(model.objective_), np.max(model.gaps_)


def constant(X):
    X = X.copy()
    X[:, 1], X[:, 3] = 7.0, 0.0
    return X


def with_one(value):
    def made(X):
        X = X.copy()
        X[5, 2] = value
        return X

    return made


AWKWARD = {
    "constant columns": constant,
    "all rows equal": lambda X: np.ones_like(X),
    "1e150": lambda X: 1e150 * X,
    "one 1e150": with_one(1e150),
    "1e-150": lambda X: 1e-150 * X,
    "nan": with_one(np.nan),
    "infinity": with_one(np.inf),
    "complex": lambda X: X + 1j,
    "no columns": lambda X: X[:, :0],
    "no rows": lambda X: X[:0],
}


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("what", AWKWARD)
@pytest.mark.filterwarnings("ignore")
def test_awkward_data_end_as_on_the_processor(device, what, kernel, form):
    X, y = plain()
    X = AWKWARD[what](X)
    if form == "sparse":
        X = sparse.csr_matrix(X)
    y = y[: X.shape[0]]
    for estimator in (KernelSVC, KernelLogistic, KernelRegressor):
        targets = 1.0 * (y == y[:1]) if estimator is KernelRegressor else y
        want, got = (
            outcome(estimator(Cs=1.0, cv=None, kernel=kernel, gamma=0.5, device=name), X, targets)
            for name in ("cpu", device)
        )
        if isinstance(want, str) or isinstance(got, str):
            assert got == want
            continue
        assert (got[1] <= TOL) == (want[1] <= TOL), f"gaps {got[1]:.1e}, {want[1]:.1e}"
        if want[1] <= TOL:
            np.testing.assert_allclose(got[0], want[0], rtol=2 * TOL)
