"""Low-rank features against scikit-learn's given the same landmarks, against the kernel itself, and the conventions."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelpath import NystromFeatures, _core
from kernelpath.datasets import make_mixture

RULES = [name for name in _core.LANDMARKS if name != "auto"]
SCIKIT_LEARN = ["rbf", "laplacian", "poly", "linear", "sigmoid"]


@pytest.fixture(scope="module")
def rows():
    return make_mixture(400, 5, random_state=0)[0]


@pytest.fixture(scope="module")
def thin():
    """Rows of mostly zeros."""
    rng = np.random.RandomState(1)
    return rng.standard_normal((300, 12)) * (rng.rand(300, 12) < 0.2)


@parametrize_with_checks(
    [
        NystromFeatures(random_state=0),
        *(NystromFeatures(n_landmarks=5, landmarks=rule, random_state=0) for rule in RULES),
        NystromFeatures(kernel="linear", random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", SCIKIT_LEARN)
def test_same_landmarks_as_scikit_learn(rows, kernel):
    # 1 keeps the sigmoid of these rows away from singular
    constants = {"linear": {}, "rbf": {"gamma": 0.3}, "laplacian": {"gamma": 0.3}}.get(
        kernel, {"gamma": 0.1, "coef0": 1.0} | ({"degree": 2} if kernel == "poly" else {})
    )
    theirs = Nystroem(kernel=kernel, **constants, n_components=4, random_state=0).fit(rows)
    ours = NystromFeatures(kernel=kernel, **constants, landmarks=theirs.component_indices_).fit(rows)
    np.testing.assert_array_equal(ours.landmark_indices_, theirs.component_indices_)
    np.testing.assert_array_equal(ours.landmarks_, theirs.components_)
    new = rows[:150] + 0.1
    if kernel == "sigmoid":  # scikit-learn takes negative eigenvalues as positive ones: compare the positive part
        core = pairwise_kernels(ours.landmarks_, metric=kernel, **constants)
        values, vectors = np.linalg.eigh(core)
        kept = values > 0
        Z = pairwise_kernels(new, ours.landmarks_, metric=kernel, **constants)
        expected = Z @ vectors[:, kept] / values[kept] @ vectors[:, kept].T @ Z.T
    else:
        expected = theirs.transform(new) @ theirs.transform(new).T
    Z = ours.transform(new)
    np.testing.assert_allclose(Z @ Z.T, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("rule", ["uniform", "rpcholesky"])
@pytest.mark.parametrize("kernel", [name for name in _core.KERNELS if name not in ("precomputed", "sigmoid")])
def test_all_rows_give_the_kernel(rows, kernel, rule):
    X = rows[:120]
    model = NystromFeatures(kernel=kernel, landmarks=rule, n_landmarks=120, random_state=0)
    Z = model.fit_transform(X)
    gamma = model.gamma_ or 1.0
    K = _core.kernel_matrix(X, X, kernel=kernel, gamma=gamma, degree=3, coef0=0.0)
    np.testing.assert_allclose(Z @ Z.T, K, rtol=1e-8, atol=1e-8 * np.abs(K).max())
    assert model.approximation_.trace_error < 1e-8
    assert (model.gamma_ is None) == (kernel == "linear")


@pytest.mark.parametrize("rule", RULES)
def test_approximation_is_what_it_says(rows, rule):
    model = NystromFeatures(landmarks=rule, n_landmarks=30, rank=20, random_state=0)
    Z = model.fit_transform(rows)
    K = rbf_kernel(rows, gamma=model.gamma_)
    of = model.approximation_
    assert model.rank_ == 20 == Z.shape[1] == len(of.spectrum)
    assert of.sampled_rows == 400
    assert of.trace_error == pytest.approx(1.0 - np.trace(Z @ Z.T) / np.trace(K), rel=1e-10)
    assert 0.0 < of.trace_error < 1.0
    values = np.linalg.eigvalsh(rbf_kernel(model.landmarks_, gamma=model.gamma_))[::-1]
    np.testing.assert_allclose(of.spectrum, values[:20], rtol=1e-10)
    assert of.tail == pytest.approx(values[20:].sum() / values.sum(), rel=1e-8)
    assert np.linalg.eigvalsh(K - Z @ Z.T).min() > -1e-9 or rule == "kmeans"  # centroids are no rows of K
    if rule == "kmeans":
        assert model.landmark_indices_ is None
    else:
        np.testing.assert_array_equal(model.landmarks_, rows[model.landmark_indices_])
    more = NystromFeatures(landmarks=rule, n_landmarks=200, random_state=0).fit(rows)
    assert more.approximation_.trace_error < of.trace_error


def test_auto(rows, thin):
    """Centroids where they are best and no larger than X; rows otherwise."""
    for X, kernel, n_landmarks, centroids in (
        (rows, "rbf", 20, True),
        (rows, "laplacian", 20, False),
        (sparse.csr_matrix(thin), "matern32", 20, True),  # 240 numbers, X has about 720
        (sparse.csr_matrix(thin), "matern32", 150, False),
        (thin @ thin.T, "precomputed", 20, False),
    ):
        settings = {"kernel": kernel, "n_landmarks": n_landmarks, "random_state": 0}
        auto = NystromFeatures(**settings).fit(X)
        assert (auto.landmark_indices_ is None) == centroids
        rule = NystromFeatures(**settings, landmarks="kmeans" if centroids else "rpcholesky").fit(X)
        np.testing.assert_array_equal(auto.map_, rule.map_)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
@pytest.mark.parametrize("rule", RULES)
def test_sparse_is_dense(thin, rule, kind):
    new = thin[:50] * 1.1
    settings = {"landmarks": rule, "n_landmarks": 40, "random_state": 0}
    dense, of_sparse = (NystromFeatures(**settings).fit(X) for X in (thin, kind(thin)))
    assert sparse.issparse(of_sparse.landmarks_) == (rule != "kmeans")
    expected = dense.transform(new) @ dense.transform(new).T
    for model in (dense, of_sparse):
        for X in (new, kind(new)):
            Z = model.transform(X)
            np.testing.assert_allclose(Z @ Z.T, expected, rtol=1e-8, atol=1e-8)


def test_points_and_indices(rows, thin):
    by_index = NystromFeatures(gamma=0.3, landmarks=[7, 3, 99]).fit(rows)
    by_point = NystromFeatures(gamma=0.3, landmarks=rows[[7, 3, 99]]).fit(rows)
    np.testing.assert_allclose(by_index.transform(rows), by_point.transform(rows), rtol=1e-12)
    np.testing.assert_array_equal(by_index.landmarks_, by_point.landmarks_)
    assert by_index.landmark_indices_.tolist() == [7, 3, 99]
    assert by_point.landmark_indices_ is None
    sparse_point = NystromFeatures(gamma=0.3, landmarks=sparse.coo_matrix(thin[:4])).fit(sparse.csc_matrix(thin))
    assert sparse_point.landmarks_.format == "csr"
    expected = NystromFeatures(gamma=0.3, landmarks=thin[:4]).fit(thin).transform(thin)
    np.testing.assert_allclose(sparse_point.transform(thin), expected, rtol=1e-9, atol=1e-12)
    # Points that are given twice are one.
    assert NystromFeatures(gamma=0.3, landmarks=[7, 3, 7]).fit(rows).rank_ == 2


@pytest.mark.parametrize("landmarks", ["uniform", "rpcholesky", [5, 50, 100]])
def test_precomputed_and_callable(rows, landmarks):
    settings = {"landmarks": landmarks, "n_landmarks": 40, "random_state": 0}
    own = NystromFeatures(gamma=0.3, **settings).fit(rows[:300])
    K, new = rbf_kernel(rows[:300], gamma=0.3), rbf_kernel(rows[300:], rows[:300], gamma=0.3)
    given = NystromFeatures(kernel="precomputed", **settings).fit(K)
    function = NystromFeatures(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3), **settings).fit(rows[:300])
    assert own.landmark_indices_.tolist() == given.landmark_indices_.tolist() == function.landmark_indices_.tolist()
    expected = own.transform(rows[300:])
    for Z in (given.transform(new), function.transform(rows[300:])):
        np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, rtol=1e-8, atol=1e-8)
    assert given.landmarks_.size == 0
    assert given.gamma_ is None


@pytest.mark.parametrize("rule", RULES)
def test_threads_and_seeds(rows, rule):
    settings = {"landmarks": rule, "n_landmarks": 30}
    one, two, other = (
        NystromFeatures(**settings, gamma=0.3, n_jobs=jobs, random_state=seed).fit_transform(rows)
        for jobs, seed in ((1, 0), (2, 0), (1, 1))
    )
    np.testing.assert_array_equal(one, two)
    assert np.abs(one @ one.T - other @ other.T).max() > 1e-6


def test_dtype(rows):
    single = rows.astype(np.float32)
    for X, dtype, expected in (
        (rows, "auto", np.float64),
        (single, "auto", np.float32),
        (sparse.csr_matrix(single), "auto", np.float32),
        (rows, "float32", np.float32),
        (single, np.float64, np.float64),
        ((10 * rows).astype(int), "auto", np.float64),
    ):
        assert NystromFeatures(dtype=dtype, n_landmarks=10).fit_transform(X).dtype == expected
    wide, narrow = (
        NystromFeatures(gamma=0.3, landmarks=range(40), dtype=d).fit_transform(rows) for d in ("auto", np.float32)
    )
    np.testing.assert_array_equal(wide.astype(np.float32), narrow)


def test_names_frames_and_pipelines(rows):
    y = make_mixture(400, 5, random_state=0)[1]
    frame = pd.DataFrame(rows, columns=list("abcde"))
    model = NystromFeatures(n_landmarks=10, random_state=0).set_output(transform="pandas")
    Z = model.fit_transform(frame)
    names = [f"nystromfeatures{k}" for k in range(10)]
    assert list(Z.columns) == names == list(model.get_feature_names_out())
    assert list(model.feature_names_in_) == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[list("edcba")])
    pipeline = make_pipeline(NystromFeatures(random_state=0), LogisticRegression())
    search = GridSearchCV(pipeline, {"nystromfeatures__n_landmarks": [2, 100]}, cv=3).fit(frame, y)
    assert search.best_params_ == {"nystromfeatures__n_landmarks": 100}
    assert search.best_score_ > 0.75


@pytest.mark.parametrize("rule", RULES)
def test_pickling_and_cloning(rows, rule):
    model = NystromFeatures(landmarks=rule, n_landmarks=20, random_state=0).fit(rows)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.transform(rows), model.transform(rows))
    again = clone(model).fit(rows)
    np.testing.assert_array_equal(again.transform(rows), model.transform(rows))
    assert again.approximation_.trace_error == model.approximation_.trace_error


def test_few_rows_and_constant_columns(rows):
    few = NystromFeatures(gamma=0.3, n_landmarks=100, random_state=0).fit(rows[:7])
    assert few.rank_ == 7
    constant = np.ones((20, 2))
    for rule in RULES:
        Z = NystromFeatures(gamma=1.0, landmarks=rule).fit_transform(constant)
        np.testing.assert_allclose(Z @ Z.T, np.ones((20, 20)), rtol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_landmarks": 0}, ValueError, "n_landmarks must be at least 1, got 0"),
        ({"n_landmarks": 2.5}, TypeError, "n_landmarks must be an integer, got 2.5"),
        ({"rank": 0}, ValueError, "rank must be at least 1, got 0"),
        ({"rank": 11, "n_landmarks": 10}, ValueError, "10 give no more than 10 features, but rank=11"),
        ({"rank": 3, "landmarks": [0, 1]}, ValueError, "2 give no more than 2 features, but rank=3"),
        (
            {"landmarks": "best"},
            ValueError,
            "'auto', 'uniform', 'kmeans', 'rpcholesky'; or pass indices of rows, or points",
        ),
        ({"landmarks": [1, 400]}, ValueError, "there is no row 400: X has 400 rows"),
        ({"landmarks": [1, -1]}, ValueError, "negative row index -1"),
        ({"landmarks": [0.5, 1.0]}, TypeError, "indices of rows"),
        ({"landmarks": [[1.0], [1.0, 2.0]]}, TypeError, "points, one a row"),
        ({"landmarks": [True, False]}, TypeError, "indices of rows"),
        ({"landmarks": []}, TypeError, "indices of rows"),
        ({"landmarks": np.empty((0, 5))}, ValueError, "0 rows"),
        ({"landmarks": None}, TypeError, "got None"),
        ({"landmarks": np.zeros((3, 4))}, ValueError, "4 columns, but X has 5"),
        ({"landmarks": [[0.0, 1.0, np.nan, 0.0, 0.0]]}, ValueError, "landmarks contains NaN at row 0, column 2"),
        ({"kernel": "rfb"}, ValueError, "unknown kernel 'rfb'"),
        ({"gamma": "auto-grid"}, ValueError, "gamma must be one number"),
        ({"gamma": [0.1, 1.0]}, ValueError, "gamma must be one number"),
        ({"gamma": -1.0}, ValueError, "gamma must be a finite number > 0"),
        ({"dtype": "float16"}, ValueError, "dtype='float16' is not available"),
        ({"kernel": rbf_kernel, "landmarks": "kmeans"}, ValueError, 'what fits: "uniform", "rpcholesky"'),
        ({"kernel": "precomputed"}, ValueError, "must be square, got 400 x 5"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ],
)
def test_bad_parameters(rows, parameters, error, message):
    with pytest.raises(error, match=message):
        NystromFeatures(**parameters).fit(rows)


def test_bad_data(rows):
    model = NystromFeatures(n_landmarks=5)
    with pytest.raises(NotFittedError):
        model.transform(rows)
    bad = rows.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 3, column 1"):
        model.fit(bad)
    model.fit(rows)
    with pytest.raises(ValueError, match="X contains NaN at row 3, column 1"):
        model.transform(bad)
    with pytest.raises(ValueError, match="4 features"):
        model.transform(rows[:, :4])
    poly = NystromFeatures(kernel="poly", gamma=1.0, n_landmarks=5, dtype="float32").fit(rows)
    with pytest.raises(ValueError, match="in float32: scale the features"):
        poly.transform(1e13 * rows)
