"""Kernel functions of objects that are no rows of numbers: texts, graphs, series of unequal length."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelpath
from kernelpath import KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR, NystromFeatures

FAST = {"Cs": [0.1, 1.0, 10.0], "cv": 3, "random_state": 0}


def words(n=60):
    """Words of vowels, and of consonants, with some noise."""
    rng = np.random.default_rng(0)
    letters = [list("aeiou"), list("bcdfg")]
    labels = rng.integers(2, size=n)
    texts = [
        "".join(rng.choice(letters[k if rng.random() < 0.9 else 1 - k]) for _ in range(rng.integers(2, 9)))
        for k in labels
    ]
    return texts, np.where(labels == 1, "consonants", "vowels")


def spectrum(A, B):
    """The cosine of the counts of letters."""

    def counts(texts):
        table = np.array([[text.count(letter) for letter in "aeioubcdfg"] for text in texts], dtype=float)
        return table / np.linalg.norm(table, axis=1, keepdims=True)

    assert all(isinstance(text, str) for text in [*A, *B])
    return counts(A) @ counts(B).T


class Graph:
    """Edges; an object of its own, with neither numbers nor an order nor equality."""

    def __init__(self, edges):
        self.edges = edges

    def __len__(self):
        return len(self.edges)

    def __getitem__(self, k):
        return self.edges[k]


def common_edges(A, B):
    assert all(type(graph) is Graph for graph in [*A, *B])
    return np.array([[len(set(a.edges) & set(b.edges)) for b in B] for a in A], dtype=float)


def graphs(n=60):
    rng = np.random.default_rng(0)
    made = [Graph([(int(a), int(b)) for a, b in rng.integers(4, size=(rng.integers(2, 9), 2))]) for _ in range(n)]
    return made, np.array([(0, 1) in graph.edges or (1, 0) in graph.edges for graph in made])


def of_means(A, B):
    """Of series of unequal length."""
    a, b = (np.array([[np.mean(series), len(series)] for series in rows]) for rows in (A, B))
    return a @ b.T


def series(n=60):
    rng = np.random.default_rng(0)
    made = [rng.standard_normal(rng.integers(2, 9)).tolist() for _ in range(n)]
    return made, np.array([np.mean(values) > 0 for values in made])


OBJECTS = {
    "texts": (words, spectrum),
    "an array of texts": (lambda: (np.array(words()[0]), words()[1]), spectrum),
    "an array of objects": (lambda: (np.array(words()[0], dtype=object), words()[1]), spectrum),
    "a tuple": (lambda: (tuple(words()[0]), words()[1]), spectrum),
    "graphs": (graphs, common_edges),
    "series": (series, of_means),
}


def part(X, index):
    return X[index] if isinstance(X, np.ndarray) else [X[i] for i in index]


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_as_their_kernel_matrix(name):
    make, kernel = OBJECTS[name]
    X, y = make()
    train, test = np.arange(45), np.arange(45, 60)
    as_objects = np.fromiter(X, dtype=object, count=len(X))
    K = kernel(as_objects[train], as_objects[train])
    model = KernelSVC(**FAST, kernel=kernel).fit(part(X, train), y[train])
    twin = KernelSVC(**FAST, kernel="precomputed").fit(K, y[train])
    np.testing.assert_array_equal(model.scores_, twin.scores_)
    assert model.C_ == twin.C_
    K_test = kernel(as_objects[test], as_objects[train])
    expected = twin.decision_function(K_test)
    np.testing.assert_allclose(model.decision_function(part(X, test)), expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict(part(X, test)), twin.predict(K_test))
    assert model.score(part(X, test), y[test]) == twin.score(K_test, y[test])
    assert model.score(part(X, train), y[train]) > 0.6
    assert model.verify(part(X, train), y[train]) == twin.verify(K, y[train])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(part(X, test)), model.decision_function(part(X, test)))
    again.verify(part(X, train), y[train])
    fresh = clone(model).fit(part(X, train), y[train])
    np.testing.assert_array_equal(fresh.decision_function(part(X, test)), model.decision_function(part(X, test)))
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    "model",
    [
        KernelSVC(**FAST, scoring="roc_auc", probability=True),
        KernelLogistic(**FAST, multi_class="multinomial", scoring="neg_log_loss"),
        KernelSVC(Cs=[1.0, 2.0], cv="loo"),
        KernelSVC(**FAST, low_rank=True, landmarks="uniform", n_landmarks=20),
        KernelSVR(**FAST, scoring="r2"),
        KernelRegressor(**FAST),
        KernelQuantile(**FAST, tau=[0.2, 0.8], noncrossing="sort"),
    ],
    ids=str,
)
def test_every_estimator_takes_objects(model):
    X, labels = words()
    y = labels if hasattr(model, "decision_function") else np.array([float(len(text)) for text in X])
    weight = np.where(np.arange(60) % 7 == 3, 0.0, 1.0)
    rows = np.flatnonzero(weight)
    model.set_params(kernel=spectrum).fit(X, y, sample_weight=weight)
    expected = clone(model).fit(part(X, rows), y[rows])
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert np.isfinite(model.score(X, y))
    model.verify(X, y, sample_weight=weight)
    assert model.support_vectors_.dtype == object


def test_features_of_objects():
    X, y = words()
    features = NystromFeatures(kernel=spectrum, landmarks="rpcholesky", n_landmarks=40, random_state=0)
    Z = features.fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, spectrum(X, X), atol=1e-8)
    assert Z.dtype == np.float64
    assert make_pipeline(features, KernelSVC(**FAST, kernel="linear")).fit(X, y).score(X, y) > 0.8
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features)).transform(X), Z)


def test_inside_scikit_learn():
    X, y = words()
    assert cross_val_score(KernelSVC(**FAST, kernel=spectrum), X, y, cv=3).mean() > 0.7
    search = GridSearchCV(KernelLogistic(**FAST, kernel=spectrum), {"class_weight": [None, "balanced"]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.7


def test_numbers_stay_numbers():
    """A table of numbers is one, also for a kernel function, and an array of objects is none."""
    seen = []

    def kernel(A, B):
        seen.append((type(A), A.dtype, A.ndim))
        return np.array([[float(a[0]) * float(b[0]) for b in B] for a in A])

    numbers, y = [[1, 2], [3, 4], [5, 6], [7, 9]], [0, 1, 0, 1]
    for X, dtype, n_dim in (
        (numbers, np.float64, 2),
        (np.array(numbers), np.float64, 2),
        (np.array(numbers, dtype=object), object, 2),
        ([["1", "2"], ["3", "4"], ["5", "6"], ["7", "9"]], object, 1),
        ([[1, 2], [3, 4], [5, 6], [7, 8, 9]], object, 1),
    ):
        seen.clear()
        model = KernelSVC(Cs=1.0, cv=None, kernel=kernel).fit(X, y)
        model.predict(X)
        assert set(seen) == {(np.ndarray, np.dtype(dtype), n_dim)}
        assert model.predict(X[:1]).shape == (1,)
    for X in (numbers[:2], np.array(numbers[:2])):  # for a model of lists, two that happen to be of equal length
        assert KernelSVC(Cs=1.0, cv=None, kernel=kernel).fit([[1, 2], [3, 4], [5]], [0, 1, 0]).predict(X).shape == (2,)


@pytest.mark.parametrize("X", [list("ab" * 20), [f"{k}" for k in range(40)]])
def test_texts_without_a_function_are_refused_as_before(X):
    with pytest.raises(ValueError):
        KernelSVC(**FAST).fit(X, [0, 1] * 20)


def test_what_is_no_sequence_of_objects_is_refused():
    pd = pytest.importorskip("pandas")
    X, y = words()
    column = pd.Series(X)
    model = KernelSVC(**FAST, kernel=spectrum).fit(column, y)
    np.testing.assert_array_equal(model.predict(column), model.predict(X))
    for wrong in ("a text", pd.DataFrame({"text": X}), 7, iter(X)):
        with pytest.raises(TypeError, match="function of objects as its kernel takes a list or an array of them"):
            model.predict(wrong)
    with pytest.raises(ValueError, match="X has 0 samples"):
        model.predict([])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        KernelSVC(**FAST, kernel=spectrum).fit(X, y[:-1])
    with pytest.raises(ValueError, match="y should be a 1d array"):
        KernelSVC(**FAST, kernel=spectrum).fit(X, np.column_stack([y, y]))
    numeric = KernelSVC(Cs=1.0, cv=None, kernel=lambda A, B: A @ B.T).fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(ValueError):
        numeric.predict(["a", "b"])


def test_files_say_why_they_hold_no_such_model(tmp_path):
    X, y = words()
    model = KernelSVC(**FAST, kernel=spectrum).fit(X, y)
    message = "holds no code, and the kernel is the function .*spectrum.*: fit with kernel='precomputed'.*or pickle"
    for write in (
        lambda: model.save(tmp_path / "model.kpath"),
        lambda: kernelpath.to_onnx(model),
        lambda: model.report(tmp_path / "page.html"),
    ):
        with pytest.raises(ValueError, match=message):
            write()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError):
        make_pipeline(StandardScaler(), model).fit(X, y)
