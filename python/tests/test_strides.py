"""Arrays whose numbers lie at odd places, such as the fields of records: the answers are those of plain copies."""

import re

import numpy as np
import pytest
from conftest import REPOSITORY
from scipy import sparse

import kernelpath
from kernelpath import KernelQuantile, KernelRegressor, KernelSVC, _core

FAST = {"Cs": [0.1, 1.0], "cv": 3, "random_state": 0}
RBF = {"kernel": "rbf", "gamma": 0.5, "degree": 3, "coef0": 0.0}


def beside_a_byte(array):
    """A field of a structured array: each line is followed by one byte."""
    records = np.zeros(len(array), dtype=[("x", array.dtype, array.shape[1:]), ("flag", "?")])
    records["x"], records["flag"] = array, True
    return records["x"]


def after_a_byte(array):
    """The same with the byte in front."""
    records = np.zeros(len(array), dtype=[("flag", "i1"), ("x", array.dtype, array.shape[1:])])
    records["flag"], records["x"] = -1, array
    return records["x"]


def in_a_buffer(array):
    """Numbers one after the other, from an odd byte on."""
    buffer = np.full(array.nbytes + 1, 255, np.uint8)
    view = buffer[1:].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


LAYOUTS = {
    "beside a byte": beside_a_byte,
    "after a byte": after_a_byte,
    "in a buffer": in_a_buffer,
    "backwards": lambda array: after_a_byte(array[::-1])[::-1],
    "columns": lambda array: after_a_byte(array.T).T,
}


@pytest.fixture(params=LAYOUTS)
def odd(request):
    def moved(array):
        array = np.asarray(array)
        found = LAYOUTS[request.param](array)
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)
        if array.itemsize > 1:
            strides = [stride % array.itemsize for stride in found.strides]
            assert not found.flags.aligned or any(strides)
        return found

    return moved


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=90) > 0, 1, -1)


def assert_same(model, expected, X):
    for name in ("gaps_", "dual_coef_", "intercept_", "oof_decision_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name), err_msg=name)
    decide = "decision_function" if isinstance(model, KernelSVC) else "predict"
    np.testing.assert_array_equal(getattr(model, decide)(X), getattr(expected, decide)(X.copy()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows(rows, odd, dtype):
    X, y = rows[0].astype(dtype), rows[1]
    expected = KernelSVC(**FAST).fit(X, y)
    assert_same(KernelSVC(**FAST).fit(odd(X), y), expected, odd(X))
    assert expected.verify(odd(X), y) == expected.verify(X, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_precomputed_matrix_and_the_result_of_a_kernel_function(rows, odd, dtype):
    X, y = rows
    K = np.exp(-0.5 * np.square(X[:, None] - X[None]).sum(-1)).astype(dtype)
    expected = KernelSVC(kernel="precomputed", **FAST).fit(K, y)
    assert_same(KernelSVC(kernel="precomputed", **FAST).fit(odd(K), y), expected, odd(K))
    at_low_rank = [
        KernelSVC(kernel="precomputed", low_rank=True, n_landmarks=20, **FAST).fit(matrix, y) for matrix in (odd(K), K)
    ]
    assert_same(*at_low_rank, odd(K))

    def called(A, B):
        return odd(np.exp(-0.5 * np.square(A[:, None] - B[None]).sum(-1)).astype(dtype))

    assert_same(
        KernelSVC(kernel=called, **FAST).fit(X, y),
        KernelSVC(kernel=lambda A, B: called(A, B).copy(), **FAST).fit(X, y),
        X,
    )


def test_a_file_of_records(rows, tmp_path):
    X, y = rows
    records = np.memmap(
        tmp_path / "records", dtype=[("label", "i1"), ("x", "f8", (3,)), ("w", "f4")], shape=90, mode="w+"
    )
    records["label"], records["x"], records["w"] = y, X, 1.0 + (X[:, 1] > 0)
    records.flush()
    records = np.memmap(tmp_path / "records", dtype=records.dtype, mode="r")
    model = KernelSVC(**FAST).fit(records["x"], records["label"], sample_weight=records["w"])
    expected = KernelSVC(**FAST).fit(X, y, sample_weight=1.0 + (X[:, 1] > 0))
    assert_same(model, expected, records["x"])


@pytest.mark.parametrize("estimator", [KernelSVC, KernelRegressor, KernelQuantile])
def test_targets_weights_values_of_C_and_folds(rows, odd, estimator):
    X, y = rows
    if estimator is not KernelSVC:
        y = X[:, 0] + X[:, 1] ** 2
    weight = 0.5 + np.abs(X[:, 2])
    folds = [(np.flatnonzero(np.arange(90) % 3 != k), np.flatnonzero(np.arange(90) % 3 == k)) for k in range(3)]
    Cs = np.array([0.1, 1.0])
    expected = estimator(Cs=Cs, cv=folds, random_state=0).fit(X, y, sample_weight=weight)
    moved = [(odd(train), odd(test)) for train, test in folds]
    model = estimator(Cs=odd(Cs), cv=moved, random_state=0).fit(X, odd(y), sample_weight=odd(weight))
    assert_same(model, expected, X)
    assert model.verify(X, odd(y), sample_weight=odd(weight)) == expected.verify(X, y, sample_weight=weight)
    assert model.score(X, odd(y), sample_weight=odd(weight)) == expected.score(X, y, sample_weight=weight)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_the_parts_of_a_sparse_matrix(rows, odd, dtype, index):
    X, y = rows
    X = sparse.csr_array(np.where(np.abs(X) > 0.4, X, 0.0).astype(dtype))
    parts = X.data, X.indices.astype(index), X.indptr.astype(index)

    class Parts:
        """What passes for a CSR matrix; scipy itself would copy some of the parts."""

        format, shape = "csr", X.shape
        data, indices, indptr = map(odd, parts)

    native = [_core.kernel_matrix(given, given, **RBF) for given in (Parts(), X)]
    np.testing.assert_array_equal(*native)
    moved = sparse.csr_array(tuple(map(odd, parts)), shape=X.shape)
    assert_same(KernelSVC(**FAST).fit(moved, y), KernelSVC(**FAST).fit(X, y), moved)


def test_several_classes_and_probabilities(rows, odd):
    X, _ = rows
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    for options in ({"multi_class": "ovo"}, {"multi_class": "ovr"}):
        model, expected = (
            KernelSVC(probability=True, **options, **FAST).fit(rows, labels)
            for rows, labels in ((odd(X), odd(y)), (X, y))
        )
        assert_same(model, expected, odd(X))
        np.testing.assert_array_equal(model.predict_proba(odd(X)), expected.predict_proba(X))


def test_what_a_model_file_holds(rows, odd, tmp_path):
    X, y = rows
    expected = KernelSVC(**FAST).fit(X, y)
    model = KernelSVC(**FAST).fit(X, y)
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray) and value.ndim > 0 and value.dtype.kind in "fi":
            setattr(model, name, odd(value))
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    model.save(tmp_path / "odd.kpath")
    expected.save(tmp_path / "plain.kpath")
    loaded, plain = (kernelpath.load(tmp_path / name) for name in ("odd.kpath", "plain.kpath"))
    for name, value in vars(plain).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(loaded, name), value, err_msg=name)
    np.testing.assert_array_equal(loaded.decision_function(X), expected.decision_function(X))


def test_every_function_of_the_native_module(rows, odd):
    """Each array argument at an odd place, whatever the estimators do before they pass it on."""
    X, y = rows
    weight, values = 0.5 + np.abs(X[:, 1]), X[:, :2].copy()
    index = np.arange(0, 90, 7)

    def answers(of):
        nystrom = [
            _core.nystrom(of(X), landmarks, 13, None, 0, weight=of(weight), **RBF)
            for landmarks in (of(index), of(X[index]), "kmeans")
        ]
        svc = _core.Arrangement("ovr", 3)
        maps = [
            _core.Calibration.fit(method, of(X[:, 0]), of(y > 0), weights=of(weight))
            for method in ("sigmoid", "isotonic")
        ]
        yield _core.spread(of(X[:, 0]), of(weight))
        yield _core.bandwidth(of(X), "rbf", "sigest", 0, weight=of(weight))
        yield _core.kernel_matrix(of(X), of(X[:5]), **RBF)
        yield _core.decision(of(X), of(X[:4]), of(np.arange(8.0).reshape(2, 4)), of(np.array([1.0, -1.0])), **RBF)
        yield from (found.map for found in nystrom)
        yield _core.nystrom_features(of(X), of(X[index]), of(nystrom[1].map), dtype="float64", **RBF)
        yield from svc.targets(1, of(np.arange(90) % 3))[:1]
        yield svc.decision(of(X))
        yield svc.probabilities(of(X), [maps[0]] * 3)
        yield svc.log_probabilities(of(X), [maps[0]] * 3)
        yield from (fitted.probability(of(X[:, 0])) for fitted in maps)
        yield from (fitted.log_odds(of(X[:, 0])) for fitted in maps)
        yield _core.Arrangement("ovo", 2).decision(of(values[:, :1]))
        yield _core.training_rows(of(X), numbers=of(values), weight=of(weight))

    for moved, plain in zip(answers(odd), answers(np.array), strict=True):
        np.testing.assert_array_equal(moved, plain)


def test_no_array_enters_by_another_door():
    """`boundary.rs` alone names what borrows arrays unchecked: a new argument has to be one of its types."""
    folder = REPOSITORY / "crates" / "kernelpath-py" / "src"
    files = sorted(folder.rglob("*.rs"))
    assert len(files) > 10
    unchecked = re.compile(r"PyRead|PyArrayLike|PyUntypedArray\b|as_array|as_slice|readonly\(|\.data\(\)|unsafe")
    found = [(file.name, match) for file in files for match in unchecked.findall(file.read_text())]
    assert {name for name, _ in found} == {"boundary.rs"}
    # One call there hands out numbers where they lie.
    assert (folder / "boundary.rs").read_text().count("as_array()") == 1
