"""Solvers at the edge: scales change nothing, and what a solver loses to rounding it wins back."""

import numpy as np
import pytest

from kernelpath import KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def sample(n=60, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(n), 10 ** rng.uniform(-6, 6, n)


@pytest.mark.parametrize("model", [KernelSVC(), KernelSVR(epsilon=0.01), KernelQuantile(tau=0.3)], ids=repr)
def test_the_scale_of_the_kernel_changes_nothing(model):
    """K/s with s·C is the same problem, in which β is s times as large."""
    X, y, _ = sample()
    if isinstance(model, KernelSVC):
        y = np.where(y > 0, 1, -1)
    K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2))
    scale, Cs = 2.0**48, np.array([0.1, 10.0, 1000.0])
    ours, other = (
        type(model)(**model.get_params()).set_params(kernel="precomputed", solver="active-set", Cs=Cs * s, cv=3)
        for s in (1.0, scale)
    )
    ours.fit(K, y)
    other.fit(K / scale, y)
    assert (other.status_ == "converged").all()
    assert other.n_iter_.sum() <= 1.1 * ours.n_iter_.sum()
    np.testing.assert_allclose(other.objective_, scale * ours.objective_, rtol=2e-6)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_factor_in_single_precision_costs_steps_but_no_proof(seed):
    """Newton's preconditioner may be a factor of I + S½KS½ in single precision, even with eigenvalues above 1e7."""
    X, y, _ = sample(200, 5, seed)
    labels = np.where(y > 0, 1, -1)
    models = [KernelLogistic(dtype=dtype, Cs=[1e6, 1e8], cv=3).fit(X, labels) for dtype in ("float32", "float64")]
    for model in models:
        assert (model.status_ == "converged").all(), (model.status_, model.gaps_)
    steps = [model.n_iter_.sum() for model in models]
    assert steps[0] <= 20 * steps[1]


@pytest.mark.parametrize("seed", [82, 273, 285, 318, 352])
def test_the_closed_form_is_refined_where_eigenvectors_are_too_rough(seed):
    """Matrices that are singular to rounding, with C so large that ρ = 1/(2C) is below the error of eigenvectors.

    The seeds are those of many random fits at which the closed form alone was furthest from its tolerance.
    """
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(15, 120)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.choice([-4, -1, 0, 1, 4]) + rng.choice([0, 0, 10])
    if rng.random() < 0.3:
        X[n // 2 :] = X[: n - n // 2] + 1e-9 * rng.standard_normal((n - n // 2, p))
    y = np.sin(X[:, 0]) + rng.choice([0, 0.1]) * rng.standard_normal(n)
    kernel, parameters = str(rng.choice(["rbf", "poly", "linear", "matern52", "laplacian"])), {}
    if kernel == "poly":
        parameters = {"degree": int(rng.integers(1, 5)), "coef0": 1.0, "gamma": "scale"}
    if kernel == "matern52":
        parameters = {"gamma": float(10 ** rng.uniform(-5, 1))}
    dtype = str(rng.choice(["auto", "float32", "float64"]))
    cv = "loo" if rng.random() < 0.3 else 3
    model = KernelRegressor(kernel=kernel, solver="closed-form", Cs=np.logspace(-2, 8, 6), cv=cv, dtype=dtype)
    model.set_params(**parameters).fit(X, y)
    is_known = model.gap_noise_ <= 0.1 * model.tol
    assert is_known.any()
    assert (model.gaps_[is_known] <= model.tol).all(), model.gaps_[is_known].max()
