"""`verify` recomputes the certificate of the returned model; the naive twin recomputes it once more."""

import naive
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR
from kernelpath.datasets import make_mixture

X, y = make_mixture(160, 4, random_state=0)
TARGETS = X[:, 0] * X[:, 1] + 0.1 * np.random.default_rng(0).standard_normal(len(X))
FLOWERS, KINDS = load_iris(return_X_y=True)
SETTINGS = {"Cs": [0.1, 10.0, 1000.0], "cv": 3, "random_state": 0}

BINARY = [
    (KernelSVC(**SETTINGS), ("hinge", 0.0), y),
    (KernelSVC(loss="squared_hinge", **SETTINGS), ("squared_hinge", 0.0), y),
    (KernelLogistic(**SETTINGS), ("logistic", 0.0), y),
    (KernelDWD(**SETTINGS), ("dwd", 0.0), y),
    (KernelQuantile(tau=0.3, **SETTINGS), ("quantile", 0.3), TARGETS),
    (KernelSVR(epsilon=0.05, **SETTINGS), ("epsilon_insensitive", 0.05), TARGETS),
    (KernelRegressor(loss="squared", **SETTINGS), ("squared", 0.0), TARGETS),
    (KernelRegressor(loss="huber", delta=0.2, **SETTINGS), ("huber", 0.2), TARGETS),
    (KernelRegressor(loss="expectile", tau=0.7, **SETTINGS), ("expectile", 0.7), TARGETS),
]


@pytest.mark.parametrize(("model", "loss", "targets"), BINARY, ids=lambda value: getattr(value, "loss", None))
@pytest.mark.parametrize("dtype", ["auto", "float32", "float64"])
def test_it_agrees_with_the_fit_and_with_the_twin(model, loss, targets, dtype):
    model = model.set_params(dtype=dtype).fit(X, targets)
    proof = model.verify(X, targets)
    assert -proof.noise <= proof.gap <= model.tol
    assert proof.noise <= 0.1 * model.tol
    K = naive.gram(X, X, "rbf", model.gamma_)
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    primal = naive.objective(K, targets, model.C_, beta, model.intercept_[0], loss)
    assert np.isclose(proof.primal, primal, rtol=1e-12)
    for value, own in ((proof.primal, model.objective_), (proof.dual, model.dual_objective_)):
        assert np.isclose(value, own, rtol=1e-7)
    assert abs(proof.gap - model.gaps_[-1, model.best_index_]) <= 1e-8 + model.gap_noise_[-1, model.best_index_]


def test_a_model_that_is_not_optimal_is_found_out():
    model = KernelSVC(**SETTINGS).fit(X, y)
    model.dual_coef_ = 0.9 * model.dual_coef_
    assert model.verify(X, y).gap > 1e-3
    model = KernelSVC(**SETTINGS).fit(X, y)
    model.intercept_ = model.intercept_ + 0.1
    assert model.verify(X, y).gap > 1e-4


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes_have_a_proof_a_machine(multi_class):
    model = KernelSVC(multi_class=multi_class, **SETTINGS).fit(FLOWERS, KINDS)
    proof = model.verify(FLOWERS, KINDS)
    assert proof.gap.shape == (3,)
    assert (proof.gap <= model.tol).all()
    assert (proof.noise <= model.tol).all()
    assert np.allclose(proof.primal, model.objective_, rtol=1e-7)


@pytest.mark.parametrize("low_rank", [False, True])
def test_the_multinomial_loss(low_rank):
    model = KernelLogistic(multi_class="multinomial", low_rank=low_rank, **SETTINGS)
    if low_rank:
        model.set_params(n_landmarks=40)
    model.fit(FLOWERS, KINDS)
    proof = model.verify(FLOWERS, KINDS)
    assert proof.gap <= 2 * model.tol
    assert np.isclose(proof.primal, model.objective_, rtol=1e-6)


def test_several_quantiles_and_each_its_own_c():
    model = KernelQuantile(tau=[0.1, 0.5, 0.9], **SETTINGS).fit(X, TARGETS)
    proof = model.verify(X, TARGETS)
    assert proof.gap.shape == (3,)
    assert (proof.gap <= model.tol).all()
    machines = KernelSVC(multi_class="ovr", tune="each", **SETTINGS).fit(FLOWERS, KINDS)
    assert (machines.verify(FLOWERS, KINDS).gap <= machines.tol).all()


@pytest.mark.parametrize("estimator", [KernelSVC(), KernelLogistic(), KernelQuantile(), KernelSVR(), KernelRegressor()])
def test_low_rank(estimator):
    targets = y if hasattr(estimator, "class_weight") else TARGETS
    model = estimator.set_params(low_rank=True, n_landmarks=40, **SETTINGS).fit(X, targets)
    proof = model.verify(X, targets)
    assert proof.gap <= 2 * model.tol
    assert np.isclose(proof.primal, model.objective_, rtol=1e-6)
    model.dual_coef_ = 0.9 * model.dual_coef_
    assert model.verify(X, targets).gap > 1e-4


def test_weights_sparse_rows_precomputed_and_callable_kernels():
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    model = KernelSVC(class_weight="balanced", **SETTINGS).fit(X, y, sample_weight=weight)
    assert model.verify(X, y, sample_weight=weight).gap <= model.tol
    with pytest.raises(ValueError, match="not the training rows: their weights are not those of the fit"):
        model.verify(X, y)
    rows = sparse.csr_matrix(X)
    assert KernelSVC(**SETTINGS).fit(rows, y).verify(rows, y).gap <= 1e-6
    K = naive.gram(X, X, "rbf", 0.2)
    assert KernelSVC(kernel="precomputed", **SETTINGS).fit(K, y).verify(K, y).gap <= 1e-6
    low_rank = KernelSVC(kernel="precomputed", low_rank=True, n_landmarks=30, **SETTINGS).fit(K, y)
    assert low_rank.verify(K, y).gap <= 2e-6
    function = KernelSVC(kernel=lambda A, B: (1.0 + A @ B.T) ** 2, **SETTINGS).fit(X, y)
    assert function.verify(X, y).gap <= 1e-6


def test_an_indefinite_kernel_has_no_proof():
    with pytest.warns(match="indefinite"):
        model = KernelSVC(kernel="sigmoid", gamma=1.0, coef0=-1.0, **SETTINGS).fit(X, y)
    proof = model.verify(X, y)
    assert np.isfinite(proof.primal)
    assert np.isnan([proof.dual, proof.gap, proof.noise]).all()


def test_other_data_is_refused():
    model = KernelSVC(**SETTINGS).fit(X, y)
    with pytest.raises(ValueError, match="other rows than the model was fitted on"):
        model.verify(X + 1.0, y)
    with pytest.raises(ValueError, match="features"):
        model.verify(X[:, :2], y)
    with pytest.raises(ValueError, match="not the training rows: their labels"):
        model.verify(X, np.where(np.arange(len(y)) == 3, 1 - y, y) if set(y) == {0, 1} else np.roll(y, 1))
    with pytest.raises(ValueError, match="not the training rows: the model was trained on 160 rows"):
        model.verify(np.vstack([X, X[:1]]), np.append(y, y[:1]))
    machines = KernelSVC(**SETTINGS).fit(FLOWERS, KINDS)
    with pytest.raises(ValueError, match="not the classes"):
        machines.verify(FLOWERS, KINDS % 2)
    assert len(machines.machines_) == 3  # as before


def test_rows_are_known_again_in_any_container():
    frame, weight = pd.DataFrame(X.astype(np.float32), columns=list("abcd")), np.ones(len(X))
    model = KernelSVC(**SETTINGS).fit(frame, y)
    for rows in (frame, frame.astype(np.float64)):
        assert model.verify(rows, y, sample_weight=weight).gap <= model.tol
    rows = X.astype(np.float32)
    model = KernelSVC(**SETTINGS).fit(rows, y.astype(np.int8))
    assert model.verify(np.asfortranarray(rows.astype(np.float64)), y.astype(float)).gap <= model.tol
    thin = np.where(np.abs(X) > 0.5, X, 0.0)
    model = KernelSVR(**SETTINGS).fit(sparse.csr_matrix(thin), TARGETS)
    assert model.verify(sparse.coo_array(thin), TARGETS).gap <= model.tol
    with pytest.raises(ValueError, match="not the training rows: their labels"):
        model.verify(sparse.csr_matrix(thin), TARGETS + 1e-12)
