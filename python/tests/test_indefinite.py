"""Kernels with negative eigenvalues: no model claims a proof, and the user is told."""

import warnings

import naive
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold

import kernelpath
from kernelpath import (
    GridEdgeWarning,
    IndefiniteKernelWarning,
    KernelDWD,
    KernelLogistic,
    KernelQuantile,
    KernelRegressor,
    KernelSVC,
    KernelSVR,
)
from kernelpath.display import CVCurveDisplay, GapDisplay, SupportPathDisplay

SIGMOID = {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}
FAST = {"Cs": [0.1, 1.0, 10.0], "cv": 3, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1, -1)


@pytest.fixture(scope="module")
def three(rows):
    X, _ = rows
    return X, np.arange(60) % 3


def fitted(model, X, y, **options):
    """The model, and the only warning of its fit, but for that of a narrow grid."""
    with pytest.warns(IndefiniteKernelWarning) as caught:
        model.fit(X, y, **options)
    caught = [warning for warning in caught if warning.category is not GridEdgeWarning]
    assert [warning.category for warning in caught] == [IndefiniteKernelWarning]
    assert caught[0].filename == __file__
    return model, str(caught[0].message)


def silent(model, X, y, **options):
    """The model of a fit that warns of no indefinite kernel."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", IndefiniteKernelWarning)
        return model.fit(X, y, **options)


def assert_no_proof(model):
    assert np.isnan(model.gaps_).all()
    assert (model.status_ == "indefinite").all()
    assert np.isnan(model.dual_objective_).all()
    assert np.isfinite(model.objective_).all()
    assert np.isfinite(model.dual_coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert model.smallest_eigenvalue_ < 0.0


def smallest(K):
    return float(np.linalg.eigvalsh(K)[0])


def test_the_sigmoid_kernel(rows):
    X, y = rows
    K = naive.gram(X, X, **SIGMOID)
    expected = smallest(K)
    assert expected < -1.0
    model, message = fitted(KernelSVC(**SIGMOID, **FAST), X, y)
    assert_no_proof(model)
    assert model.smallest_eigenvalue_ == pytest.approx(expected, rel=1e-9)
    assert f"has the eigenvalue {expected:.4g}" in message
    assert "kernel='sigmoid' is indefinite: the kernel matrix" in message
    assert "Use another kernel, such as 'rbf'" in message
    # Likely a stationary point, as that of LIBSVM; a sane model in any case.
    assert model.score(X, y) > 0.5
    beta = np.zeros(60)
    beta[model.support_] = model.dual_coef_[0]
    np.testing.assert_allclose(model.decision_function(X), K @ beta + model.intercept_[0], atol=1e-9)


def test_an_objective_far_below_that_of_the_stationary_point(rows):
    """Why there is no proof: P is far lower elsewhere."""
    X, y = rows
    model, _ = fitted(KernelSVC(**SIGMOID, Cs=1.0, cv=None), X, y)
    K = naive.gram(X, X, **SIGMOID)
    direction = 100.0 * np.linalg.eigh(K)[1][:, 0]
    elsewhere = np.maximum(0.0, 1.0 - y * (K @ direction)).sum() + direction @ K @ direction / 2
    assert elsewhere < model.objective_ - 1e3


def test_the_advised_shift_of_the_diagonal_makes_it_definite(rows):
    X, y = rows
    K = naive.gram(X, X, **SIGMOID)
    _, message = fitted(KernelSVC(kernel="precomputed", **FAST), K, y)
    shift = float(message.split("add at least ")[1].split(" ")[0])
    assert -smallest(K) < shift < -1.2 * smallest(K)
    model = silent(KernelSVC(kernel="precomputed", **FAST), K + shift * np.eye(60), y)
    assert model.gaps_.max() <= 1e-6
    assert model.smallest_eigenvalue_ is None
    values, vectors = np.linalg.eigh(K)
    clipped = silent(KernelSVC(kernel="precomputed", **FAST), vectors * np.maximum(values, 0.0) @ vectors.T, y)
    assert clipped.gaps_.max() <= 1e-6


def test_poly_with_a_negative_coef0(rows):
    X, y = rows
    model, message = fitted(KernelSVC(kernel="poly", degree=2, gamma=1.0, coef0=-1.0, **FAST), X, y)
    assert_no_proof(model)
    assert model.smallest_eigenvalue_ == pytest.approx(smallest(naive.gram(X, X, "poly", 1.0, 2, -1.0)), rel=1e-9)
    assert "Use coef0 >= 0 (it is -1)" in message
    assert silent(KernelSVC(kernel="poly", degree=2, gamma=1.0, coef0=0.0, **FAST), X, y).gaps_.max() <= 1e-6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precomputed_and_callable(rows, dtype):
    X, y = rows
    K = naive.gram(X, X, **SIGMOID).astype(dtype)
    precomputed, message = fitted(KernelSVC(kernel="precomputed", **FAST), K, y)
    assert_no_proof(precomputed)
    assert "repair the training matrix" in message
    called, _ = fitted(KernelSVC(kernel=lambda A, B: naive.gram(A, B, **SIGMOID).astype(dtype), **FAST), X, y)
    assert_no_proof(called)
    assert called.smallest_eigenvalue_ == precomputed.smallest_eigenvalue_


@pytest.mark.parametrize(
    ("model", "solvers"),
    [
        (KernelSVC(), ["active-set", "spectral"]),
        (KernelSVC(loss="squared_hinge"), ["newton", "spectral"]),
        (KernelLogistic(), ["newton", "spectral"]),
        (KernelDWD(), ["newton", "spectral"]),
        (KernelSVR(epsilon=0.1), ["active-set", "spectral"]),
        (KernelQuantile(tau=[0.2, 0.8]), ["active-set", "spectral"]),
        (KernelRegressor(loss="squared"), ["closed-form", "newton", "spectral"]),
        (KernelRegressor(loss="huber"), ["newton", "spectral"]),
    ],
    ids=repr,
)
def test_every_solver_ends_and_claims_nothing(rows, model, solvers):
    X, y = rows
    for solver in solvers:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", GridEdgeWarning)
            model.set_params(**SIGMOID, **FAST, solver=solver).fit(X, y)
        assert [warning.category for warning in caught] == [IndefiniteKernelWarning]
        assert_no_proof(model)
        assert np.isfinite(model.predict(X).astype(float)).all()
        assert (np.asarray(model.n_iter_) >= 1).all()


@pytest.mark.parametrize("estimator", [KernelSVC, KernelLogistic, KernelRegressor])
def test_leave_one_out(rows, estimator):
    X, y = rows
    model, _ = fitted(estimator(**SIGMOID, Cs=[0.1, 1.0], cv="loo"), X, y)
    assert_no_proof(model)
    assert model.gaps_.shape == (61, 2)


@pytest.mark.parametrize("estimator", [KernelSVC, KernelLogistic, KernelRegressor])
@pytest.mark.parametrize("solver", ["auto", "spectral"])
def test_low_rank(rows, estimator, solver):
    X, y = rows
    indices = np.arange(0, 60, 3)
    options = {"low_rank": True, "landmarks": indices, "solver": solver}
    model, message = fitted(estimator(**SIGMOID, **FAST, **options), X, y)
    assert_no_proof(model)
    expected = smallest(naive.gram(X[indices], X[indices], **SIGMOID))
    assert model.smallest_eigenvalue_ == pytest.approx(expected, rel=1e-9)
    assert "the kernel matrix of the landmarks has the eigenvalue" in message
    definite = silent(estimator(**FAST, **options), X, y)
    assert definite.gaps_.max() <= 1e-6
    assert definite.smallest_eigenvalue_ is None


def test_low_rank_of_nearly_all_rows():
    """There the matrix of the features takes their place: it has no negative eigenvalue, but the kernel has."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(700, 8))
    y = np.where(X[:, 0] > 0, 1, -1)
    options = {"Cs": 0.1, "cv": None, "low_rank": True, "landmarks": "uniform", "n_landmarks": 650}
    model, _ = fitted(KernelSVC(kernel="sigmoid", gamma=1.0, coef0=0.0, **options), X, y)
    assert model.rank_ >= 256
    assert_no_proof(model)


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("multi_class", ["ovo", "ovr", "multinomial"])
def test_several_classes(three, multi_class, low_rank):
    X, y = three
    options = {"multi_class": multi_class} | ({"low_rank": True, "n_landmarks": 30} if low_rank else {})
    model, _ = fitted(KernelLogistic(**SIGMOID, **FAST, **options), X, y)
    assert_no_proof(model)
    assert (model.cv_results_["refit_status"] == "indefinite").all()
    assert model.path_table().count("indefinite") == 3
    assert silent(KernelLogistic(**FAST, **options), X, y).gaps_.max() <= 1e-6


@pytest.mark.parametrize("tune", ["joint", "each"])
def test_all_machines_are_told_though_the_matrix_of_some_is_definite(tune):
    """The matrix of two classes is a part of K: K alone decides, for all machines."""
    K = np.eye(30)
    K[0, 10] = K[10, 0] = 2.0  # rows of classes 0 and 1
    y = np.repeat([0, 1, 2], 10)
    model, _ = fitted(KernelSVC(kernel="precomputed", tune=tune, Cs=[0.1, 1.0], cv=2, random_state=0), K, y)
    assert model.status_.shape == (3, 3, 2)
    assert_no_proof(model)
    assert model.smallest_eigenvalue_ == pytest.approx(-1.0)


def test_a_grid_of_gammas_of_which_some_are_indefinite():
    """Orthogonal rows: tanh(γ⟨x,z⟩ + coef0) has coef0's sign off the diagonal, and the diagonal grows with γ."""
    X = np.eye(30)
    y = np.where(np.arange(30) % 2, 1, -1)
    gammas = [1e-3, 0.5, 3.0]
    definite = [smallest(naive.gram(X, X, "sigmoid", gamma, coef0=-0.02)) > 0.0 for gamma in gammas]
    assert definite == [False, False, True]
    model, message = fitted(KernelSVC(kernel="sigmoid", gamma=gammas, coef0=-0.02, **FAST), X, y)
    assert model.gaps_.shape == (4, 3, 3)
    assert np.isnan(model.gaps_[:, :2]).all()
    assert (model.gaps_[:, 2] <= 1e-6).all()
    assert (model.status_[:, :2] == "indefinite").all()
    assert (model.status_[:, 2] == "converged").all()
    worst = min(smallest(naive.gram(X, X, "sigmoid", gamma, coef0=-0.02)) for gamma in gammas)
    assert (
        f"is indefinite at 2 of 3 values of gamma: the kernel matrix has the eigenvalue {worst:.4g} (gamma=" in message
    )
    table = model.path_table()
    assert table.count("indefinite") == 6
    assert table.count("converged") == 3
    chosen = gammas.index(model.gamma_)
    assert (model.smallest_eigenvalue_ is None) == definite[chosen]


def test_tables(rows):
    X, y = rows
    model, _ = fitted(KernelSVC(**SIGMOID, **FAST), X, y)
    assert np.isnan(model.cv_results_["worst_gap"]).all()
    assert np.isnan(model.cv_results_["split0_gap"]).all()
    assert (model.cv_results_["refit_status"] == "indefinite").all()
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    for line in model.path_table().splitlines()[1:]:
        assert line.split()[-2:] == ["-", "indefinite"]


def test_displays(rows):
    plt = pytest.importorskip("matplotlib.pyplot")
    X, y = rows
    model, _ = fitted(KernelSVC(**SIGMOID, **FAST), X, y)
    drawn = GapDisplay.from_estimator(model)
    assert drawn.ax_.get_title() == "the kernel is indefinite: 12 of 12 models have no certificate"
    assert drawn.log10_gaps.mask.all()
    drawn.figure_.canvas.draw()
    for display in (CVCurveDisplay, SupportPathDisplay):
        display.from_estimator(model).figure_.canvas.draw()
    plt.close("all")


def test_torchkm_did_not_converge(rows):
    from kernelpath.torchkm import TorchKMSVC

    X, y = rows
    model = TorchKMSVC(kernel="poly", poly_coef0=-1.0, poly_degree=2, poly_gamma=1.0, Cs=[0.1, 1.0], cv=3)
    with pytest.warns(IndefiniteKernelWarning):
        model.fit(X, y)
    assert not model.converged_.any()


def test_a_time_budget_is_told_of_without_gaps():
    """Models that were not run are one thing, models without a certificate another."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(250, 3))
    y = np.where(rng.random(250) < 0.5, 1, -1)
    Cs = np.geomspace(1e-3, 1e3, 10_000)
    model = KernelLogistic(**SIGMOID, Cs=Cs, cv=3, time_budget=0.7, random_state=0)
    with pytest.warns() as caught:
        model.fit(X, y)
    assert {w.category for w in caught} == {ConvergenceWarning, IndefiniteKernelWarning}
    message = next(str(w.message) for w in caught if w.category is ConvergenceWarning)
    assert "models were not run" in message
    assert "did not reach" not in message
    assert "has no gap, as its kernel is indefinite. To run the others, raise time_budget." in message
    not_run = model.status_ == "not_run"
    assert np.isinf(model.gaps_[not_run]).all()
    assert np.isnan(model.gaps_[~not_run]).all()


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly", "matern32", "matern52"])
def test_definite_kernels_do_not_warn(rows, kernel):
    X, y = rows
    model = silent(KernelSVC(kernel=kernel, **FAST), X, y)
    assert model.smallest_eigenvalue_ is None
    assert model.gaps_.max() <= 1e-6


@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_rounding_is_not_indefinite(n, dtype, kernel):
    """Matrices of low or full rank, whose eigenvalues of 0 become slightly negative by rounding."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1)
    K = naive.gram(X, X, kernel, 1e-4 if kernel == "rbf" else 0.3).astype(dtype)
    assert smallest(K.astype(float)) < 0.0
    with warnings.catch_warnings():
        if dtype == "float32":  # gaps may be lost in the rounding of such a matrix
            warnings.simplefilter("ignore", ConvergenceWarning)
        model = silent(KernelSVC(kernel="precomputed", Cs=[0.01, 0.1], cv=3, random_state=0), K, y)
    assert model.smallest_eigenvalue_ is None
    assert not np.isnan(model.gaps_).any()
    lost = model.gap_noise_ > model.tol
    assert (model.status_ == np.where(lost, "inaccurate", "converged")).all()
    assert not lost.any() or dtype == "float32"
    low_rank = silent(KernelSVC(kernel="precomputed", low_rank=True, n_landmarks=50, Cs=0.1, cv=None), K, y)
    assert low_rank.gaps_.max() <= 1e-6


def test_a_small_negative_eigenvalue_by_hand():
    """λmin = −1e-14 is rounding, −1e-9 is not, however few rows there are."""
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.normal(size=(50, 50)))[0]
    y = np.where(np.arange(50) % 2, 1, -1)
    for value, warns in ((-1e-14, False), (-1e-9, True)):
        values = np.r_[np.linspace(1.0, 20.0, 49), value]
        K = basis * values @ basis.T
        K = (K + K.T) / 2
        if warns:
            model, message = fitted(KernelSVC(kernel="precomputed", **FAST), K, y)
            assert "has the eigenvalue -1e-09" in message
        else:
            model = silent(KernelSVC(kernel="precomputed", **FAST), K, y)
            assert model.gaps_.max() <= 1e-6


@pytest.mark.parametrize("n", [60, 600])
def test_few_and_many_rows(n):
    """The smallest eigenvalue of many rows, by products with K, is that of all eigenvalues."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    model, _ = fitted(KernelSVC(**SIGMOID, Cs=0.1, cv=None), X, y)
    expected = smallest(naive.gram(X, X, **SIGMOID))
    assert model.smallest_eigenvalue_ == pytest.approx(expected, rel=1e-5)


def test_a_sigmoid_kernel_that_is_definite_keeps_its_certificate():
    X = np.vstack([np.eye(15), -np.eye(15)])
    y = np.where(np.arange(30) % 2, 1, -1)
    K = naive.gram(X, X, "sigmoid", 0.5)
    assert smallest(K) > -1e-15
    model = silent(KernelSVC(kernel="sigmoid", gamma=0.5, coef0=0.0, **FAST), X, y)
    assert model.gaps_.max() <= 1e-6
    assert (model.status_ == "converged").all()
    assert model.smallest_eigenvalue_ is None


def test_sparse_rows_and_rows_that_repeat(rows):
    X, y = rows
    twice = np.vstack([X, X])
    model, _ = fitted(KernelSVC(**SIGMOID, **FAST), twice, np.r_[y, y])
    assert model.smallest_eigenvalue_ == pytest.approx(smallest(naive.gram(X, X, **SIGMOID)), rel=1e-9)
    of_sparse, _ = fitted(KernelSVC(**SIGMOID, **FAST), sparse.csr_array(X), y)
    assert_no_proof(of_sparse)


def test_the_result_does_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(1200, 5))
    y = np.where(X[:, 0] > 0, 1, -1)
    one, two = (fitted(KernelSVC(**SIGMOID, Cs=0.1, cv=None, n_jobs=jobs), X, y)[0] for jobs in (1, 2))
    assert one.smallest_eigenvalue_ == two.smallest_eigenvalue_
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_scores_still_choose(rows):
    X, y = rows
    folds = list(StratifiedKFold(3).split(X, y))
    model, _ = fitted(KernelSVC(**SIGMOID, Cs=[0.1, 1.0], cv=folds, probability=True), X, y)
    assert model.C_ in (0.1, 1.0)
    assert np.isfinite(model.best_score_)
    assert np.isfinite(model.predict_proba(X)).all()


def tau(K):
    """The rounding that is allowed for: 16 √n ε max Kᵢᵢ."""
    return 16 * np.sqrt(len(K)) * float(np.finfo(K.dtype).eps) * float(K.diagonal().max())


@pytest.mark.parametrize("n", [100, 400])
def test_float32_hides_no_eigenvalue_above_its_rounding(n):
    """λmax is about 100 here, and n ε λmax was above the negative eigenvalue."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1)
    smooth = naive.gram(X, X, "rbf", 0.05) - 3e-3 * np.eye(n)
    u = np.where(np.arange(n) % 2, 1.0, -1.0) / np.sqrt(n)
    dwarfed = np.ones((n, n)) + np.eye(n) - 1.004 * np.outer(u, u)
    for K in (smooth.astype(np.float32), dwarfed.astype(np.float32)):
        expected = smallest(K.astype(float))
        assert expected < -20 * tau(K)
        for model in (KernelSVC, KernelLogistic):
            found, _ = fitted(model(kernel="precomputed", **FAST), K, y)
            assert_no_proof(found)
            assert found.smallest_eigenvalue_ == pytest.approx(expected, rel=1e-2)


def test_one_small_negative_eigenvalue_in_a_uniform_spectrum():
    """No product with K shows it, and the factor does."""
    n = 1500
    rng = np.random.default_rng(9)
    u = rng.normal(size=n)
    u /= np.linalg.norm(u)
    values = np.r_[np.arange(1, n) / n, -1e-5]
    reflection = np.eye(n) - 2 * np.outer(u, u)
    K = reflection * values @ reflection
    y = np.where(rng.random(n) < 0.5, 1, -1)
    model, message = fitted(KernelSVC(kernel="precomputed", Cs=0.1, cv=None), (K + K.T) / 2, y)
    assert_no_proof(model)
    assert model.smallest_eigenvalue_ == pytest.approx(-1e-5, rel=0.05)
    assert "has the eigenvalue -1e-05" in message


def definite_kernels(kind):
    """Positive semi-definite but for the rounding of their entries."""
    if kind == "square":
        return lambda A, B: (A @ B.T) ** 2
    return lambda A, B: rbf_kernel(A, B, gamma=1.0 / (A.shape[1] * A.var()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "standardised"])
@pytest.mark.parametrize("kind", ["square", "rbf"])
@pytest.mark.parametrize("n", [300, 1200])
def test_rounding_of_functions_does_not_alarm(n, kind, scaled, dtype):
    rng = np.random.default_rng(10)
    X = rng.lognormal(sigma=1.0, size=(n, 8)) * np.logspace(-2, 3, 8) + np.linspace(0.0, 500.0, 8)
    y = np.where(X[:, 3] > np.median(X[:, 3]), 1, -1)
    X = ((X - X.mean(0)) / X.std(0) if scaled else X).astype(dtype)
    size = definite_kernels(kind)(X, X).diagonal().max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # float32 hides gaps in noise
        model = silent(KernelSVC(kernel=definite_kernels(kind), Cs=0.01 / float(size), cv=None), X, y)
    assert model.smallest_eigenvalue_ is None
    assert not np.isnan(model.gaps_).any()


@pytest.mark.parametrize(
    "model", [KernelSVC(), KernelLogistic(), KernelRegressor(), KernelLogistic(multi_class="multinomial")], ids=repr
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_certificate_is_that_of_the_shifted_matrix(model, dtype):
    """P and D of K + τI lie within the noise of those that are reported, and so does their difference."""
    rng = np.random.default_rng(11)
    n = 200
    X = rng.normal(size=(n, 4))
    y = np.arange(n) % 3 if model.get_params().get("multi_class") == "multinomial" else np.where(X[:, 0] > 0, 1, -1)
    K = naive.gram(X, X, "linear").astype(dtype)  # of rank 4: rounding makes eigenvalues of 0 negative
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_params(kernel="precomputed", Cs=1.0, cv=None, tol=1e-6, assume_definite=False).fit(K, y)
        noise = np.asarray(model.gap_noise_ * np.abs(model.objective_)).item()
        beta = np.zeros((len(model.dual_coef_), n))
        beta[:, model.support_] = model.dual_coef_
        sizes = 0.5 * tau(K) * np.square(beta).sum() * 2
        assert noise >= 0.95 * sizes
        vouched = model.set_params(assume_definite=True).fit(K, y)
    assert (vouched.gap_noise_ * np.abs(vouched.objective_)).item() < noise - 0.9 * sizes
    # By formula there is no doubt, and no shift.
    if dtype == "float64":
        by_name = model.set_params(kernel="linear", assume_definite=False).fit(X, y)
        assert (by_name.gap_noise_ * np.abs(by_name.objective_)).item() < noise


def test_float32_far_from_singular_is_proved_in_full(rows):
    """The entries of the matrix are numbers of double precision, too: a factor in it proves more."""
    X, y = rows
    K = (naive.gram(X, X, "laplacian", 1.0)).astype(np.float32)
    assert smallest(K.astype(float)) > 1e-3
    model = silent(KernelSVC(kernel="precomputed", **FAST), K, y)
    assert (model.status_ == "converged").all()
    assert model.gap_noise_.max() < 1e-8


def test_a_user_who_knows_better_may_say_so(rows, tmp_path):
    X, y = rows
    model = KernelSVC(**SIGMOID, Cs=1e-3, cv=None, assume_definite=True)
    silent(model, X, y)
    assert model.smallest_eigenvalue_ is None
    assert np.isfinite(model.gaps_).all()
    assert np.isfinite(model.verify(X, y).gap)
    # The model records it.
    model.save(tmp_path / "vouched.kpath")
    assert kernelpath.load(tmp_path / "vouched.kpath").assume_definite is True
    assert model.get_params()["assume_definite"] is True
    model.report(tmp_path / "vouched.html")
    assert "assume_definite=True" in (tmp_path / "vouched.html").read_text()
    for estimator in (
        KernelLogistic(**SIGMOID, Cs=1e-3, cv=None),
        KernelLogistic(**SIGMOID, Cs=1e-3, cv=None, low_rank=True, landmarks=np.arange(0, 60, 3)),
    ):
        fitted(estimator, X, y)
        silent(estimator.set_params(assume_definite=True), X, y)
        assert np.isfinite(estimator.gaps_).all()
    with pytest.raises(TypeError, match="assume_definite must be True or False, got 1"):
        KernelSVC(assume_definite=1).fit(X, y)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_symmetry_is_relative_to_the_entries(rows, unit):
    X, y = rows
    K = naive.gram(X, X, "rbf", 0.5)
    K[3, 5] *= 1.0 + 1e-7
    silent(KernelSVC(kernel="precomputed", Cs=0.1 / unit, cv=None), unit * K, y)
    K[3, 5] *= 1.01
    with pytest.raises(ValueError, match="symmetric"):
        KernelSVC(kernel="precomputed", Cs=0.1 / unit, cv=None).fit(unit * K, y)
    # What is 0 but for rounding may differ by rounding.
    K = np.eye(60)
    K[3, 5] = 1e-12
    silent(KernelSVC(kernel="precomputed", Cs=0.1 / unit, cv=None), unit * K, y)
    K[3, 5] = 1e-6
    with pytest.raises(ValueError, match="symmetric"):
        KernelSVC(kernel="precomputed", Cs=0.1 / unit, cv=None).fit(unit * K, y)
