"""The answer is the optimum: against LIBSVM, against brute force, and by an independent certificate."""

import warnings

import naive
import numpy as np
import pytest
from conftest import circles
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from kernelpath import KernelSVC, _core

KERNELS = {
    "rbf": {},
    "laplacian": {},
    "poly": {"degree": 2, "coef0": 1.0},
    "linear": {},
    "matern32": {},
    "matern52": {},
    "precomputed": {},
}
EXACT = {"cv": None, "tol": 1e-9, "dtype": "float64"}


def fit_one(X, y, C, kernel="rbf", **options):
    """Our model and the float64 Gram of its kernel, by numpy."""
    if kernel == "precomputed":
        K = naive.gram(X, X, "rbf", 0.5)
        return KernelSVC(kernel=kernel, Cs=float(C), **EXACT | options).fit(K, y), K
    clf = KernelSVC(kernel=kernel, gamma="scale", Cs=float(C), **EXACT | options).fit(X, y)
    shape = {name: options[name] for name in ("degree", "coef0") if name in options}
    return clf, naive.gram(X, X, kernel, clf.gamma_ or 1.0, **shape)


def coefficients(clf, n):
    beta = np.zeros(n)
    beta[clf.support_] = clf.dual_coef_[0]
    return beta


@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_equals_libsvm(dataset, kernel, C):
    X, y = dataset
    clf, K = fit_one(X, y, C, kernel, **KERNELS[kernel])
    svc = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K, y)
    beta = coefficients(clf, len(y))
    theirs = np.zeros(len(y))
    theirs[svc.support_] = svc.dual_coef_[0]

    primal, dual = naive.certificate(K, y, C, beta, clf.intercept_[0])
    their_primal, their_dual = naive.certificate(K, y, C, theirs, svc.intercept_[0])
    assert clf.objective_ == pytest.approx(primal, rel=1e-9)
    assert naive.relative_gap(primal, dual) <= 2e-9
    assert their_dual * (1 - 2e-9) <= primal <= their_primal * (1 + 2e-9)

    # What each side may be off by. Ours, by strong convexity: ½ max|f − f*|² ≤ (P − D) max Kᵢᵢ. LIBSVM keeps K in
    # float32, so its f is off by 2⁻²⁴ Σ|β| max|K| (0.7 times that at most in these cases; its gap reaches 1e-3).
    ours_off = np.sqrt(2 * max(primal - dual, 0.0) * K.diagonal().max())
    libsvm_off = 2.0**-23 * np.abs(theirs).sum() * np.abs(K).max()
    rows = K if kernel == "precomputed" else X
    np.testing.assert_allclose(
        clf.decision_function(rows), svc.decision_function(K), rtol=0, atol=1e-7 + ours_off + libsvm_off
    )


@pytest.mark.parametrize("C", [1e-4, 1e-3, 1e-2])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_intercept_is_the_middle_of_the_optimal_ones(C, dtype):
    """With every row at a bound, an interval of intercepts is optimal; LIBSVM, too, takes its middle."""
    X, y = circles()
    clf, K = fit_one(X, y, C, dtype=dtype)
    f = K @ coefficients(clf, len(y))
    np.testing.assert_allclose(np.abs(clf.dual_coef_), C, rtol=1e-9)
    lowest, highest = np.max(-1 - f[y < 0]), np.min(1 - f[y > 0])
    assert highest - lowest > 1.0
    assert clf.intercept_[0] == pytest.approx((lowest + highest) / 2, abs=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_gap_of_the_path_meets_tol(dataset, dtype):
    X, y = dataset
    clf = KernelSVC(Cs=20, cv=4, random_state=0, dtype=dtype).fit(X, y)
    assert clf.gaps_.shape == (5, 20)
    assert clf.gaps_.max() <= 1e-6
    assert clf.gaps_.min() >= -1e-13  # rounding of the two sums
    assert set(clf.status_.ravel()) == {"converged"}


@pytest.mark.parametrize("kernel", KERNELS)
def test_reported_certificate_is_the_naive_one(small, kernel):
    X, y = small
    for C in [0.01, 1.0, 100.0]:
        clf, K = fit_one(X, y, C, kernel, **KERNELS[kernel])
        primal, dual = naive.certificate(K, y, C, coefficients(clf, len(y)), clf.intercept_[0])
        assert clf.objective_ == pytest.approx(primal, rel=1e-9)
        assert clf.dual_objective_ == pytest.approx(dual, rel=1e-7)
        assert clf.gaps_[-1, 0] == pytest.approx(naive.relative_gap(primal, dual), abs=1e-8)
        assert -1e-12 <= naive.relative_gap(primal, dual) <= 1e-8


def test_naive_certificate_is_large_for_a_wrong_solution(small):
    X, y = small
    clf, K = fit_one(X, y, 1.0)
    beta = coefficients(clf, len(y))
    assert naive.relative_gap(*naive.certificate(K, y, 1.0, 0.5 * beta, clf.intercept_[0])) > 1e-2
    assert naive.relative_gap(*naive.certificate(K, y, 1.0, beta, clf.intercept_[0] + 1.0)) > 1e-2


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 100.0])
def test_float32_gram_loses_nothing_that_matters(dataset, C):
    """The default model, judged on the float64 Gram the user meant."""
    X, y = dataset
    clf, K = fit_one(X, y, C, dtype="float32", tol=1e-6)
    double, _ = fit_one(X, y, C)
    primal, dual = naive.certificate(K, y, C, coefficients(clf, len(y)), clf.intercept_[0])
    assert naive.relative_gap(primal, dual) <= 1e-5
    assert primal == pytest.approx(double.objective_, rel=1e-5)
    assert np.mean(clf.predict(X) == double.predict(X)) >= 1 - 1 / len(y)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
def test_equals_brute_force_on_tiny_problems(seed, C):
    rng = np.random.RandomState(seed)
    n = 4 + seed % 3
    X = rng.randint(-2, 3, size=(n, 2)).astype(float)  # small integers, so that rows coincide
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    clf, K = fit_one(X, y, C)
    best = naive.brute_force_dual(K, y, C)
    assert clf.objective_ == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert clf.dual_objective_ == pytest.approx(best, rel=1e-6, abs=1e-9)


@st.composite
def awkward_problems(draw):
    """Rows with ties and duplicates, classes out of balance, labels that contradict each other, any scale."""
    n = draw(st.integers(4, 40))
    p = draw(st.integers(1, 4))
    rng = np.random.RandomState(draw(st.integers(0, 10_000)))
    levels = draw(st.sampled_from([1, 2, 5, None]))
    X = rng.standard_normal((n, p)) if levels is None else rng.randint(levels, size=(n, p)).astype(float)
    if draw(st.booleans()):
        X = X[rng.randint(max(2, n // 3), size=n)]
    n_positive = draw(st.integers(1, n - 1))
    y = np.where(rng.permutation(n) < n_positive, 1, -1)
    return X * draw(st.sampled_from([1e-3, 1.0, 1e3])), y


@given(
    problem=awkward_problems(),
    C=st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6]),
    kernel=st.sampled_from(["rbf", "laplacian", "linear", "poly", "matern32"]),
    dtype=st.sampled_from(["float32", "float64"]),
)
@example(problem=(np.zeros((6, 2)), np.array([1, -1, 1, -1, -1, -1])), C=1.0, kernel="rbf", dtype="float32")
@example(problem=(np.ones((5, 1)), np.array([1, 1, 1, 1, -1])), C=1e6, kernel="linear", dtype="float32")
def test_awkward_problems_end_with_an_honest_gap(problem, C, kernel, dtype):
    """Whatever the data, the fit ends, and what it says of its optimality holds for the float64 Gram."""
    X, y = problem
    gamma = 1.0 / (X.var() * X.shape[1]) if X.var() > 0 else 1.0
    options = {"kernel": kernel, "gamma": gamma, "degree": 2, "coef0": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = KernelSVC(**options, Cs=C, cv=None, dtype=dtype, max_iter=20_000).fit(X, y)
    beta, b = coefficients(clf, len(y)), clf.intercept_[0]
    gap = clf.gaps_[-1, 0]
    assert clf.status_[-1, 0] in _core.STATUS_NAMES
    assert np.isfinite([gap, b, clf.objective_, clf.dual_objective_]).all()
    noise = clf.gap_noise_[-1, 0]
    assert gap >= -max(noise, 1e-9)
    assert (clf.status_[-1, 0] == "converged") == (-noise <= gap <= 1e-6 and noise <= 1e-6)

    # Dual feasible: in the box and Σβ = 0.
    alpha = y * beta
    assert alpha.min() >= -1e-9 * C
    assert alpha.max() <= C * (1 + 1e-9)
    assert abs(beta.sum()) <= 1e-7 * max(np.abs(beta).sum(), 1e-300)

    if dtype == "float64":
        K = naive.gram(X, X, kernel, gamma, degree=2, coef0=1.0)
        primal, dual = naive.certificate(K, y, C, beta, b)
        # f is a sum known to eps · Σ|β| max|K|, and the loss of each row multiplies that by C.
        rounding = (
            4 * np.finfo(float).eps * C * len(y) * np.abs(beta).sum() * np.abs(K).max() / max(abs(primal), abs(dual))
        )
        assert naive.relative_gap(primal, dual) == pytest.approx(gap, abs=1e-12 + rounding)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_C_converges_on_ordinary_data(small, kernel, C):
    X, y = small
    clf = KernelSVC(kernel=kernel, gamma=0.5, Cs=C, cv=None, dtype="float64").fit(X, y)
    assert clf.gaps_.max() <= 1e-6


@pytest.mark.filterwarnings("ignore::kernelpath.IndefiniteKernelWarning")
def test_indefinite_kernel_ends_with_a_status(small):
    X, y = small
    clf = KernelSVC(kernel="sigmoid", gamma=1.0, coef0=-1.0, Cs=[0.1, 10.0, 1e4], cv=3, random_state=0).fit(X, y)
    assert (clf.status_ == "indefinite").all()
    assert np.isfinite(clf.decision_function(X)).all()


def test_linear_kernel_with_fewer_columns_than_free_rows(small):
    X, y = small
    clf = KernelSVC(kernel="linear", Cs=[0.01, 1.0, 100.0, 1e4], cv=3, random_state=0).fit(X[:, :1], y)
    assert clf.gaps_.max() <= 1e-6


@pytest.mark.parametrize("kernel", [k for k in _core.KERNELS if k != "precomputed"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_kernel_matrix_is_the_formula(kernel, dtype, shift):
    """On rows far from the origin too, where ‖x‖² − 2⟨x,z⟩ + ‖z‖² cancels."""
    rng = np.random.RandomState(0)
    X, Z = ((rng.standard_normal((n, 5)) + shift).astype(dtype) for n in (37, 19))
    options = {"kernel": kernel, "gamma": 0.3 if shift == 0 else 1e-3, "degree": 3, "coef0": 0.5}
    K = _core.kernel_matrix(X, Z, **options)
    expected = naive.gram(X, Z, **options)
    assert K.dtype == np.float64
    np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-12)


def test_sigest_and_scale():
    X = np.random.RandomState(0).standard_normal((600, 7))
    assert _core.bandwidth(X, "rbf", "scale", 0) == pytest.approx(1 / (7 * X.var()))
    # Squared distances of standard normal pairs are 2·χ²₇.
    from scipy.stats import chi2

    expected = 2 * np.mean(1 / (2 * chi2(7).ppf([0.9, 0.1])))
    draws = [_core.bandwidth(X, "rbf", "sigest", seed) for seed in range(20)]
    assert np.mean(draws) == pytest.approx(expected, rel=0.1)
    assert len(set(draws)) > 1
    assert _core.bandwidth(X, "rbf", "sigest", 3) == draws[3]
