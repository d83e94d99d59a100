"""Certificates hold for K in double precision from X as it was given, or the model says that they do not."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from campaign import recorded
from naive import gram, spread
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons
from twin import Certificate, LowRank, Problem, certificate, exact_kernel, given_kernel

from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR
from kernelpath.datasets import make_mixture

TOL = 1e-6


def quietly(model, X, y, **rest):
    """A fit whose warnings do not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, **rest)


def rbf(X, gamma):
    """K of many rows: distances from differences, in double precision, taken as exact."""
    return given_kernel(np.exp(-gamma * cdist(X, X, "sqeuclidean")))


def coefficients(model, n, machine=0):
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[machine]
    return beta


def assert_proved(model, kernel, problem, machine=0):
    """The twin finds the reported P, and a gap of at most tol, each up to its noise and the one reported."""
    C, objective, b = (np.atleast_1d(v)[machine] for v in (model.C_, model.objective_, model.intercept_))
    found = certificate(kernel, problem, C, coefficients(model, len(problem.y), machine), b, TOL / 10)
    noise = np.max(getattr(model, "gap_noise_", 0.0))
    assert noise <= TOL
    assert found.proves(TOL, noise), f"true gap {found.gap:.2e}, reported {model.gaps_.max():.2e}"
    assert abs(objective - found.primal.value) <= (noise + TOL / 100) * found.scale + found.primal.noise


# 1. False proofs.


@pytest.fixture(scope="module")
def mixture():
    X, y = make_mixture(2000, 10, random_state=0)
    target = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * np.random.default_rng(0).standard_normal(len(X))
    gamma = KernelSVC(Cs=0.01, cv=None, random_state=0).fit(X, y).gamma_
    return X, y, target, gamma, rbf(X, gamma)


@pytest.mark.parametrize("C", [100.0, 1000.0])
def test_hinge_on_the_mixture(mixture, C):
    X, y, _, gamma, kernel = mixture
    model = KernelSVC(gamma=gamma, Cs=C, cv=None).fit(X, y)
    assert (model.status_ == "converged").all()
    assert_proved(model, kernel, Problem("hinge", 0.0, y, np.ones(len(y))))


@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_median_regression_on_the_mixture(mixture, C):
    X, _, target, gamma, kernel = mixture
    model = KernelQuantile(gamma=gamma, Cs=C, cv=None).fit(X, target)
    assert (model.status_ == "converged").all()
    assert_proved(model, kernel, Problem("quantile", 0.5, target, np.ones(len(target))))


@pytest.mark.parametrize(
    ("model", "loss", "constant"),
    [
        (KernelSVC(), "hinge", 0.0),
        (KernelSVC(loss="squared_hinge"), "squared_hinge", 0.0),
        (KernelLogistic(), "logistic", 0.0),
        (KernelDWD(), "dwd", 0.0),
        (KernelQuantile(tau=0.3), "quantile", 0.3),
        (KernelSVR(), "epsilon_insensitive", "auto"),
        (KernelRegressor(), "squared", 0.0),
        (KernelRegressor(loss="huber"), "huber", "auto"),
        (KernelRegressor(loss="expectile", tau=0.8), "expectile", 0.8),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("dtype", ["auto", "float32"])
def test_every_model_of_the_default_grid(model, loss, constant, dtype):
    """Default settings, unit variance: every C of the grid, folds against another solve of the same problem."""
    X, y = make_mixture(150, 4, random_state=1)
    if not hasattr(model, "class_weight"):
        y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(len(X))
    if constant == "auto":
        constant = {"epsilon_insensitive": 0.1, "huber": 1.0}[loss] * spread(y)
    model = model.set_params(dtype=dtype, Cs=12, cv=2, random_state=0)
    with recorded() as calls:
        model.fit(X, y)
    kernel = exact_kernel(X, X, "rbf", model.gamma_)
    everyone, path = Problem(loss, constant, y.astype(float), np.ones(len(y))), calls[0].paths[0]
    noise = np.broadcast_to(getattr(model, "gap_noise_", 0.0), model.gaps_.shape)
    assert (model.status_ == "converged").all()
    problems = [(train, everyone.among(train)) for train, _ in calls[0].folds]
    for k, C in enumerate(model.Cs_):
        found = certificate(kernel, everyone, C, path.coef(k), path.intercepts[k], TOL / 10)
        assert found.proves(TOL, noise[-1, k]), f"refit, C={C:g}: true gap {found.gap:.2e}"
        for fold, (train, problem) in enumerate(problems):
            alone = type(model)(**model.get_params()).set_params(
                kernel="precomputed", dtype="float64", Cs=float(C), cv=None, tol=1e-9
            )
            part = kernel.among(train)
            alone = quietly(alone, part.K.astype(np.float64), y[train])
            other = certificate(part, problem, C, coefficients(alone, len(train)), alone.intercept_[0], TOL / 1000)
            off = max(other.dual.value - path.primal[fold, k], path.dual[fold, k] - other.primal.value)
            allowed = other.noise + (noise[fold, k] + TOL / 100) * other.scale
            assert off <= allowed, f"fold {fold}, C={C:g}: off by {off / other.scale:.1e} of the optimum"


@pytest.mark.parametrize(
    ("model", "loss", "constant"),
    [(KernelSVC(), "hinge", 0.0), (KernelQuantile(), "quantile", 0.5), (KernelLogistic(), "logistic", 0.0)],
    ids=["hinge", "quantile", "logistic"],
)
@pytest.mark.parametrize("dtype", ["auto", "float32"])
def test_the_returned_model_at_low_rank(model, loss, constant, dtype):
    """Its landmarks and coefficients have the certified objective, and it is the best they can have."""
    X, y = make_mixture(400, 3, random_state=0)
    if loss == "quantile":
        y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(400)
    model.set_params(dtype=dtype, Cs=1000.0, cv=None, random_state=0)
    alone = type(model)(**model.get_params()).set_params(
        kernel="precomputed", dtype="float64", tol=1e-8, low_rank=False
    )
    model.set_params(low_rank=True, landmarks="uniform", n_landmarks=200)
    with recorded() as calls:
        model.fit(X, y)
    assert (model.status_ == "converged").all()
    landmarks = model.landmarks_
    low_rank = LowRank(
        exact_kernel(X, landmarks, "rbf", model.gamma_),
        exact_kernel(landmarks, landmarks, "rbf", model.gamma_),
        calls[0].found.map,
    )
    problem, kernel = Problem(loss, constant, y, np.ones(len(y))), low_rank.kernel()
    primal = low_rank.primal(problem, model.C_, model.dual_coef_[0], model.intercept_[0])
    noise = np.max(getattr(model, "gap_noise_", 0.0))
    assert abs(model.objective_ / primal.value - 1) <= noise + TOL / 100 + primal.noise / primal.value
    K = kernel.K.astype(np.float64)
    alone = quietly(alone, (K + K.T) / 2, y)
    other = certificate(kernel, problem, model.C_, coefficients(alone, len(y)), alone.intercept_[0], TOL / 100)
    assert Certificate(primal, other.dual).proves(TOL, noise)


@pytest.mark.parametrize(("model", "loss"), [(KernelLogistic(), "logistic"), (KernelDWD(), "dwd")])
def test_smooth_losses_with_extreme_weights(model, loss):
    rng = np.random.default_rng(0)
    X, y = make_mixture(100, 3, random_state=0)
    weight = 10 ** rng.uniform(-6, 6, len(y))
    model.set_params(Cs=1.0, cv=None, random_state=0)
    quietly(model, X, y, sample_weight=weight)
    if (model.status_ == "converged").all():
        assert_proved(model, exact_kernel(X, X, "rbf", model.gamma_), Problem(loss, 0.0, y, weight))


# 2. Indefinite kernels.


def assert_called_indefinite(model, X, y):
    with pytest.warns(Warning, match="(?i)indefinite|eigenvalue"):
        model.fit(X, y)
    assert (model.status_ == "indefinite").all()
    assert np.isnan(model.gaps_).all()
    assert np.isnan(model.dual_objective_)
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.dual_coef_).all()


INDEFINITE = {
    "sigmoid": {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0},
    "poly": {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": -2.0},
    "callable": {"kernel": lambda A, B: gram(A, B, "sigmoid", 1.0, coef0=-1.0)},
}


@pytest.mark.parametrize("name", INDEFINITE)
@pytest.mark.parametrize("low_rank", [False, True])
def test_indefinite_kernels_are_called_so(small, name, low_rank):
    model = KernelSVC(**INDEFINITE[name], Cs=[0.1, 1.0, 10.0], cv=3, low_rank=low_rank, random_state=0)
    if low_rank:
        model.set_params(landmarks="uniform", n_landmarks=50)
    assert_called_indefinite(model, *small)


@pytest.mark.parametrize(
    "model",
    [KernelSVC(), KernelSVC(loss="squared_hinge"), KernelLogistic(), KernelDWD(), KernelSVR(), KernelQuantile(),
     KernelRegressor(), KernelRegressor(loss="huber")],
    ids=lambda model: type(model).__name__ + getattr(model, "loss", ""),
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["auto", "float64"])
def test_an_indefinite_matrix_is_called_so_by_every_loss(small, model, dtype):
    X, y = small
    K = gram(X, X, "sigmoid", 1.0, coef0=-1.0)
    model.set_params(kernel="precomputed", dtype=dtype, Cs=1.0, cv=None)
    assert_called_indefinite(model, K, y)


@pytest.mark.parametrize("of", [np.float32, np.float64])
def test_a_singular_matrix_is_not_called_indefinite(small, of):
    """Rounding makes some eigenvalues of XXᵀ negative; that is no indefiniteness."""
    X, y = small
    X = X.astype(of)
    model = quietly(KernelSVC(kernel="precomputed", Cs=[0.1, 1.0, 10.0], cv=3, random_state=0), X @ X.T, y)
    # What rounding may have made of a float32 matrix is more than tol.
    lost = model.gap_noise_ > model.tol
    assert (model.status_ == np.where(lost, "inaccurate", "converged")).all()
    assert not lost.any() or of is np.float32
    model = KernelSVC(kernel=lambda A, B: gram(A, B, "rbf", 0.1), Cs=[0.1, 1.0], cv=3, random_state=0).fit(X, y)
    assert (model.status_ == "converged").all()


# 3. Negative gaps, and the noise of a gap.


@pytest.mark.parametrize("around", ["scaled", "shifted"])
@pytest.mark.parametrize("dtype", ["auto", "float64"])
def test_columns_around_1e8_in_a_polynomial(around, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) + (1.0 if around == "shifted" else 0.0)
    X = X * 1e8 if around == "scaled" else X + 1e8
    y = np.sin(np.arange(60))
    model = KernelRegressor(kernel="poly", degree=2, gamma=1.0, Cs=1.0, cv=None, dtype=dtype)
    quietly(model, X, y)
    gap, noise = model.gaps_.item(), model.gap_noise_.item()
    assert np.isfinite(gap)
    if model.status_.item() == "converged":
        assert -noise <= gap <= TOL
        kernel = exact_kernel(X, X, "poly", 1.0, 2, 0.0)
        assert_proved(model, kernel, Problem("squared", 0.0, y, np.ones(60)))
    else:
        assert model.status_.item() in ("inaccurate", "stalled", "max_iter")


def test_noise_is_part_of_the_certificate(small):
    model = KernelSVC(Cs=4, cv=3, random_state=0).fit(*small)
    assert model.gap_noise_.shape == model.gaps_.shape
    assert (model.gap_noise_ > 0).all()
    assert (model.gap_noise_ <= TOL).all()
    assert (model.gaps_ >= -model.gap_noise_).all()


# 4. Gaps are finite where something was run.


@pytest.mark.parametrize("model", [KernelSVC(), KernelLogistic(), KernelQuantile(), KernelRegressor(loss="huber")])
def test_a_model_that_fell_short_has_the_gap_it_reached(small, model):
    model.set_params(Cs=[1.0, 1e4], cv=3, max_iter=1, random_state=0)
    quietly(model, *small)
    assert np.isfinite(model.gaps_).all()


# 5. Exact targets.


@pytest.mark.parametrize(("n", "dtype"), [(300, "auto"), (100, "float64")])
@pytest.mark.parametrize(
    ("model", "loss", "constant"),
    [(KernelQuantile(tau=0.5), "quantile", 0.5), (KernelSVR(epsilon=0.0), "epsilon_insensitive", 0.0)],
    ids=["quantile", "svr"],
)
def test_a_sine_without_noise(model, loss, constant, n, dtype):
    X = np.random.default_rng(0).uniform(-3, 3, (n, 1))
    y = np.sin(X[:, 0])
    model.set_params(Cs=10, random_state=0, dtype=dtype)
    quietly(model, X, y)
    short = model.status_ != "converged"
    assert not short.any(), f"{short.sum()} of {short.size} models; the worst gap is {model.gaps_.max():.1e}"
    assert_proved(model, exact_kernel(X, X, "rbf", model.gamma_), Problem(loss, constant, y, np.ones(n)))


def test_moons_without_noise():
    X, y = make_moons(200, noise=0.0, random_state=0)
    y = 2 * y - 1
    model = quietly(KernelSVC(random_state=0), X, y)
    short = model.status_ != "converged"
    assert not short.any(), f"{short.sum()} of {short.size} models; the worst gap is {model.gaps_.max():.1e}"
    assert_proved(model, exact_kernel(X, X, "rbf", model.gamma_), Problem("hinge", 0.0, y, np.ones(200)))


# 6. Leave-one-out of smooth losses.


def leave_one_out_cases():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    rare = np.where(np.arange(60) < 4, 1, -1)
    doubled = np.repeat(rng.standard_normal((33, 3)), 2, axis=0)
    noisy = np.sin(doubled[:, 0]) + rng.standard_t(1.5, 66)
    few = np.where(np.arange(30) < 3, 1, -1)
    wide = np.random.default_rng(20).standard_normal((30, 5)) + 0.3 * few[:, None]
    return {
        "logistic": (KernelLogistic(kernel="linear", Cs=[0.1, 10.0, 775.0]), wide, few),
        "huber": (KernelRegressor(loss="huber", delta=0.1, Cs=6), doubled, noisy),
        "dwd": (KernelDWD(kernel="linear", Cs=[0.1, 10.0, 775.0]), X + 0.5 * rare[:, None], rare),
    }


@pytest.mark.parametrize("name", ["logistic", "huber", "dwd"])
@pytest.mark.parametrize("dtype", ["auto", "float64"])
def test_leave_one_out_converges_where_its_folds_do(name, dtype):
    model, X, y = leave_one_out_cases()[name]
    model.set_params(cv="loo", random_state=0, dtype=dtype)
    quietly(model, X, y)
    short = np.argwhere(model.status_[:-1] != "converged")
    for row, k in short[:: max(1, len(short) // 5)]:
        train = np.delete(np.arange(len(y)), row)
        alone = type(model)(**model.get_params()).set_params(Cs=float(model.Cs_[k]), cv=None)
        if model.gamma_ is not None:
            alone.set_params(gamma=model.gamma_)
        alone.fit(X[train], y[train])
        assert alone.status_.item() != "converged", f"row {row}, C={model.Cs_[k]:g}: gap {model.gaps_[row, k]:.1e}"
    assert len(short) <= 0.01 * model.status_.size


# 7. Repeated values of C.

REPEATED = np.r_[np.geomspace(0.1, 1, 3), np.geomspace(1, 100, 4)]


@pytest.mark.parametrize("model", [KernelSVC(), KernelQuantile(), KernelSVR(), KernelLogistic(), KernelRegressor()])
@pytest.mark.parametrize("solver", ["auto", "spectral"])
@pytest.mark.parametrize("order", ["rising", "mixed"])
def test_repeated_values_of_C(small, model, solver, order):
    """Equal values have equal results, and the others those they have without repeats."""
    X, y = small
    Cs = REPEATED if order == "rising" else REPEATED[[4, 2, 0, 6, 3, 5, 1]]
    model.set_params(solver=solver, random_state=0, cv=3)
    distinct = quietly(model.set_params(Cs=np.unique(Cs)), X, y)
    of = np.searchsorted(distinct.Cs_, Cs)
    expected = [array[:, of].copy() for array in (distinct.scores_, distinct.gaps_, distinct.oof_path_)]
    repeated = quietly(model.set_params(Cs=Cs), X, y)
    assert (repeated.status_ == "converged").all()
    for array, wanted in zip((repeated.scores_, repeated.gaps_, repeated.oof_path_), expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


# 8. Extreme values of C.

EXTREME = """
import numpy as np
import warnings
warnings.simplefilter("ignore")
from kernelpath import *
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
y = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1, -1)
try:
    model = {model}.set_params(Cs={Cs}, cv=3, random_state=0).fit(X, y)
except ValueError as error:
    print("refused:", error)
else:
    print("fitted", model.gaps_.max())
"""


@pytest.mark.parametrize("model", ["KernelSVC()", "KernelLogistic()", "KernelQuantile()"])
@pytest.mark.parametrize("Cs", [[1.0, 1e-310], [1.0, 1e308]])
def test_extreme_values_of_C_end(model, Cs):
    code = EXTREME.format(model=model, Cs=Cs)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.startswith(("refused: ", "fitted ")), done.stdout
