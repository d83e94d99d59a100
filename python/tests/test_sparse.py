"""Sparse rows give what the same rows give dense, and are never made dense."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import get_scorer

from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR, _core

KERNELS = [name for name in _core.KERNELS if name != "precomputed"]
BANDWIDTHS = [("linear", 1.0), *itertools.product([k for k in KERNELS if k != "linear"], ("sigest", "scale"))]
CLASSIFIERS = [KernelSVC, KernelLogistic, KernelDWD]
REGRESSORS = [KernelSVR, KernelQuantile, KernelRegressor]
FAST = {"Cs": [0.1, 10.0], "cv": 3, "tol": 1e-10, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    """130 rows, more than one tile: dense and rare columns, two empty rows, a row that comes twice."""
    rng = np.random.RandomState(0)
    X = rng.standard_normal((130, 25)) * (rng.rand(130, 25) < np.geomspace(1.0, 0.02, 25))
    X[[5, 77]] = 0.0
    X[3] = X[90]
    return X


@pytest.fixture(scope="module")
def labels(rows):
    return np.where(rows[:, 0] + rows[:, 1] ** 2 + 0.5 * np.sin(9.0 * np.arange(130)) > 0.5, "yes", "no")


@pytest.fixture(scope="module")
def numbers(rows):
    return np.sin(2.0 * rows[:, 0]) + rows[:, 1] + 0.1 * np.cos(5.0 * np.arange(130))


def values(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def assert_same(of_sparse, of_dense, X):
    """Both models, on rows of both kinds."""
    assert of_sparse.gamma_ == (None if of_dense.gamma_ is None else pytest.approx(of_dense.gamma_, rel=1e-12))
    np.testing.assert_allclose(of_sparse.scores_, of_dense.scores_, rtol=1e-8, atol=1e-8)
    assert of_sparse.C_ == of_dense.C_
    assert (of_sparse.smallest_eigenvalue_ is None) == (of_dense.smallest_eigenvalue_ is None)
    assert of_sparse.smallest_eigenvalue_ is not None or of_sparse.gaps_.max() <= 1e-10
    expected = values(of_dense, X)
    for model in (of_sparse, of_dense):
        for new in (X, sparse.csr_array(X)):
            np.testing.assert_allclose(values(model, new), expected, rtol=1e-8, atol=1e-8)


def both(X):
    return sparse.csr_matrix(X), X


@pytest.mark.filterwarnings("ignore::kernelpath.IndefiniteKernelWarning")
@pytest.mark.parametrize(("kernel", "gamma"), BANDWIDTHS)
def test_every_kernel(rows, labels, kernel, gamma):
    model = FAST | {"kernel": kernel, "gamma": gamma, "coef0": 0.1, "dtype": "float64"}
    if kernel == "sigmoid":
        model |= {"Cs": [0.01, 0.1]}  # tanh is indefinite: larger C's have several stationary points
    of_sparse, of_dense = (KernelSVC(**model).fit(x, labels) for x in both(rows))
    assert_same(of_sparse, of_dense, rows)
    np.testing.assert_array_equal(of_sparse.scores_, of_dense.scores_)


@pytest.mark.parametrize("estimator", CLASSIFIERS + REGRESSORS)
@pytest.mark.parametrize("cv", [3, "loo"])
def test_every_estimator(rows, labels, numbers, estimator, cv):
    y = labels if estimator in CLASSIFIERS else numbers
    model = FAST | {"cv": cv, "dtype": "float64"}
    of_sparse, of_dense = (estimator(**model).fit(x, y) for x in both(rows))
    assert_same(of_sparse, of_dense, rows)
    np.testing.assert_allclose(of_sparse.oof_path_, of_dense.oof_path_, rtol=1e-7, atol=1e-7)


def shuffled(X):
    """The same matrix with its entries in falling order of columns, each stored in two halves, and some zeros."""
    dense = X.toarray()
    row, column = np.nonzero((dense != 0.0) | (np.add.outer(np.arange(len(dense)), np.arange(dense.shape[1])) % 7 == 0))
    order = np.lexsort((-column, row))
    row, column = np.repeat(row[order], 2), np.repeat(column[order], 2)
    indptr = np.searchsorted(row, np.arange(len(dense) + 1))
    return sparse.csr_matrix((dense[row, column] / 2.0, column, indptr), shape=X.shape)


def with_wide_indices(X):
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


FORMS = {
    "csr_matrix": sparse.csr_matrix,
    "csr_array": sparse.csr_array,
    "csc_matrix": sparse.csc_matrix,
    "csc_array": sparse.csc_array,
    "coo": sparse.coo_array,
    "lil": sparse.lil_matrix,
    "int64": lambda X: with_wide_indices(sparse.csr_array(X)),
    "shuffled": lambda X: shuffled(sparse.csr_matrix(X)),
    "strided": lambda X: strided(sparse.csr_matrix(X)),
}


def strided(X):
    X.data = np.repeat(X.data, 2)[::2]
    return X


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_and_left_alone(rows, labels, form):
    X = FORMS[form](rows)
    before = pickle.dumps(X)
    model = KernelSVC(**FAST).fit(X, labels)
    expected = KernelSVC(**FAST).fit(rows, labels)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(rows), rtol=1e-8, atol=1e-8)
    assert pickle.dumps(X) == before
    assert model.support_vectors_.format == "csr"
    assert isinstance(model.support_vectors_, sparse.sparray) == isinstance(X, sparse.sparray)
    np.testing.assert_array_equal(model.support_vectors_.toarray(), rows[model.support_])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_other_types_of_numbers(rows, labels, dtype):
    dense = rows.astype(dtype)
    of_sparse, of_dense = (KernelSVC(**FAST, dtype="float64").fit(x, labels) for x in both(dense))
    assert_same(of_sparse, of_dense, dense)
    expected = np.float32 if dtype == np.float32 else np.float64
    assert of_sparse.support_vectors_.dtype == expected


@pytest.mark.parametrize("rule", ["sigest", "scale"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("n", [60, 700])  # sigest looks at all pairs, or at random ones
def test_bandwidth_of_weighted_rows(rule, kernel, n):
    rng = np.random.RandomState(1)
    X = np.round(rng.standard_normal((n, 8)) * (rng.rand(n, 8) < 0.3), 1)
    weight = rng.randint(0, 4, n).astype(float)
    of_sparse, of_dense = (_core.bandwidth(x, kernel, rule, 3, weight) for x in both(X))
    assert of_sparse == pytest.approx(of_dense, rel=1e-12)


def test_weights_classes_and_gammas(rows):
    three = np.digitize(rows[:, 0], [-0.5, 0.5])
    weight = 1.0 + np.arange(130) % 3
    model = FAST | {"gamma": [0.05, 0.5], "dtype": "float64"}
    of_sparse, of_dense = (KernelSVC(**model).fit(x, three, sample_weight=weight) for x in both(rows))
    assert_same(of_sparse, of_dense, rows)
    np.testing.assert_array_equal(of_sparse.predict(sparse.csc_array(rows)), of_dense.predict(rows))


def test_a_callable_kernel_sees_sparse_rows(rows, labels):
    def cubic(X, Z):
        product = X @ Z.T
        return (1.0 + (product.toarray() if sparse.issparse(product) else product)) ** 3

    # Its powers have no negative coefficient, so that it is definite; an examined matrix has more noise than this tol.
    model = FAST | {"kernel": cubic, "dtype": "float64", "assume_definite": True}
    of_sparse, of_dense = (KernelSVC(**model).fit(x, labels) for x in both(rows))
    np.testing.assert_allclose(
        of_sparse.decision_function(sparse.csr_matrix(rows)), of_dense.decision_function(rows), atol=1e-7
    )


def test_scorers_see_sparse_rows(rows, labels):
    seen = []

    def scorer(model, X, y):
        seen.append(X)
        return get_scorer("balanced_accuracy")(model, X, y)

    of_sparse, of_dense = (KernelSVC(**FAST, scoring=scorer).fit(x, labels) for x in both(rows))
    np.testing.assert_array_equal(of_sparse.scores_, of_dense.scores_)
    assert sparse.issparse(seen[0])
    assert not sparse.issparse(seen[-1])


def test_pickle(rows, labels):
    X = sparse.csr_array(rows)
    model = KernelSVC(**FAST).fit(X, labels)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "sigmoid"])
def test_a_billion_columns(kernel):
    """A dense row alone would take 8 GB."""
    rng = np.random.RandomState(0)
    column = np.column_stack([np.arange(200) % 2 * 999_999_999, rng.randint(1, 10**9 - 1, (200, 5))])
    X = sparse.coo_array((np.ones(1200), (np.repeat(np.arange(200), 6), column.ravel())), shape=(200, 10**9)).tocsr()
    y = np.arange(200) % 2
    model = KernelSVC(kernel=kernel, **FAST | {"tol": 1e-6}).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), y)
    assert model.gaps_.max() <= 1e-6


def test_precomputed_must_be_dense(rows, labels):
    K = rows @ rows.T
    with pytest.raises(TypeError, match=r"precomputed kernel matrix must be dense, got a sparse csr_array.*toarray"):
        KernelSVC(kernel="precomputed", **FAST).fit(sparse.csr_array(K), labels)
    model = KernelSVC(kernel="precomputed", **FAST | {"tol": 1e-6}).fit(K, labels)
    with pytest.raises(TypeError, match=r"must be dense, got a sparse csc_matrix"):
        model.predict(sparse.csc_matrix(K))


@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (-np.inf, "-inf")])
@pytest.mark.parametrize("gamma", ["sigest", "scale", 0.5])
def test_non_finite_values_are_located(rows, labels, value, name, gamma):
    model = KernelSVC(gamma=gamma, **FAST).fit(sparse.csr_array(rows), labels)
    dense = rows.copy()
    dense[17, 2] = value
    for X in (sparse.csr_array(dense), sparse.csc_array(dense)):
        with pytest.raises(ValueError, match=f"X contains {name} at row 17, column 2"):
            KernelSVC(gamma=gamma, **FAST).fit(X, labels)
        with pytest.raises(ValueError, match=f"X contains {name} at row 17, column 2"):
            model.predict(X)


def test_columns_must_agree(rows, labels):
    model = KernelSVC(**FAST).fit(sparse.csr_array(rows), labels)
    for X in (rows, sparse.csr_array(rows)):
        with pytest.raises(ValueError, match="X has 24 features, but KernelSVC is expecting 25 features"):
            model.predict(X[:, :24])


def test_zeros_alone_have_no_bandwidth(labels):
    with pytest.raises(ValueError, match="sigest.*equal.*gamma as a number"):
        KernelSVC(**FAST).fit(sparse.csr_array((130, 4)), labels)
    with pytest.raises(ValueError, match="scale.*equal.*gamma as a number"):
        KernelSVC(gamma="scale", **FAST).fit(sparse.csr_array((130, 4)), labels)


def test_arrays_that_do_not_fit_together(rows, labels):
    pointer, column = sparse.csr_array(rows), sparse.csr_matrix(rows)
    pointer.indptr[3] = 10**6
    column.indices[20] = 25
    with pytest.raises(ValueError, match="non-decreasing"):
        KernelSVC(**FAST).fit(pointer, labels)
    with pytest.raises(ValueError, match="indices must be < 25"):
        KernelSVC(**FAST).fit(column, labels)


class Broken:
    """What passes for a CSR matrix and is none."""

    format = "csr"

    def __init__(self, **parts):
        self.shape, self.indptr, self.indices, self.data = (2, 3), np.array([0, 1, 2]), np.array([0, 2]), np.ones(2)
        vars(self).update(parts)


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"indices": np.array([0, 3])}, ValueError, "row 1 has column index 3, out of range for 3 columns"),
        ({"indices": np.array([0, -2], np.int32)}, ValueError, "row 1 has column index -2"),
        ({"indptr": np.array([0, 3, 2])}, ValueError, "row 0 goes from 0 to 3 of 2 entries"),
        ({"indptr": np.array([0, 2])}, ValueError, "indptr has 2 entries for 2 rows"),
        ({"indptr": np.array([0, 2, 2]), "indices": np.array([2, 0])}, ValueError, "row 0 has column index 0 after 2"),
        ({"data": np.ones(3)}, ValueError, "2 column indices for 3 values"),
        ({"data": np.ones(2, int)}, TypeError, "X.data must be a float32 or float64 array"),
        ({"indices": [0, 2]}, TypeError, "X.indices must be an int32 or int64 array"),
    ],
)
def test_the_native_module_trusts_nothing(parts, error, message):
    assert _core.bandwidth(Broken(), "rbf", "sigest", 0) == pytest.approx(1.0)
    with pytest.raises(error, match=message):
        _core.bandwidth(Broken(**parts), "rbf", "sigest", 0)
