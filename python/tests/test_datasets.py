import bz2
import gzip
import lzma

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.metrics import accuracy_score

from kernelpath import KernelSVC
from kernelpath.datasets import load_libsvm, make_mixture


def test_mixture_is_standardised_and_reproducible():
    X, y = make_mixture(500, 6, random_state=3)
    again, labels = make_mixture(500, 6, random_state=3)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert X.shape == (500, 6)
    assert set(y) == {-1, 1}
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)
    assert not np.array_equal(X, make_mixture(500, 6, random_state=4)[0])


def test_classes_differ_in_the_halves_of_the_columns():
    X, y = make_mixture(4000, 10, random_state=0)
    guess = np.sign(X[:, 5:].sum(axis=1) - X[:, :5].sum(axis=1))
    assert 0.8 < accuracy_score(y, guess) < 0.99


@pytest.fixture(scope="module")
def libsvm_file(tmp_path_factory):
    """300 rows of 20 columns, with comments and blank lines, and the file that scikit-learn wrote of them."""
    path = tmp_path_factory.mktemp("libsvm") / "data.libsvm"
    rng = np.random.RandomState(0)
    X = sparse.random(300, 20, density=0.2, random_state=rng, format="csr")
    dump_svmlight_file(X, rng.randint(3, size=300), str(path), zero_based=False, comment="of the test")
    return path


@pytest.mark.parametrize("options", [{}, {"n_features": 30}, {"dtype": np.float32}, {"zero_based": False}])
@pytest.mark.parametrize("packed", [None, gzip, bz2, lzma])
def test_libsvm_files_are_those_of_scikit_learn(libsvm_file, tmp_path, options, packed):
    path, text = tmp_path / "data", libsvm_file.read_bytes()
    path.write_bytes(text if packed is None else packed.compress(text))
    expected, labels = load_svmlight_file(str(libsvm_file), **options)
    for source in (path, str(path), path.read_bytes()):
        X, y = load_libsvm(source, **options)
        assert (X.shape, X.dtype, y.dtype) == (expected.shape, expected.dtype, np.int64)
        assert X.has_canonical_format
        assert abs(X - expected).max() == 0
        np.testing.assert_array_equal(y, labels)


def test_libsvm_columns_count_from_0_or_1():
    text = b"1 0:0.5 2:1\n-1.5 1:2\n"
    X, y = load_libsvm(text)
    assert (X.toarray().tolist(), y.tolist()) == ([[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]], [1.0, -1.5])
    assert load_libsvm(text, zero_based=True)[0].shape == (2, 3)
    with pytest.raises(ValueError, match="<bytes>:1: index 0, but indices count from 1"):
        load_libsvm(text, zero_based=False)
    X, y = load_libsvm(b"1 qid:3 1:0.5\n2 qid:4 1:1\n", ignore_qid=True)
    assert (X.toarray().tolist(), y.tolist()) == ([[0.5], [1.0]], [1, 2])


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        (b"1 1:1\n1 3:1 2:1\n", {}, ValueError, "<bytes>:2: index 2 does not rise after 3"),
        (b"1,2 1:1\n", {}, ValueError, "<bytes>:1: the row has several labels"),
        (b"yes 1:1\n", {}, ValueError, "<bytes>:1: the label yes is"),
        (b"1 qid:3 1:1\n", {}, ValueError, "qid:3 names the query"),
        (b"1 1:one\n", {}, ValueError, "<bytes>:1: the value of index 1 is one"),
        (b"1 9:1\n", {"n_features": 3}, ValueError, "index 9 is too large"),
        (b"", {}, ValueError, "no rows"),
        (gzip.compress(b"1 1:1\n" * 1000)[:-9], {}, ValueError, "<bytes>"),
        (b"1 1:1\n", {"zero_based": "no"}, ValueError, "zero_based must be True, False or 'auto', got 'no'"),
        (b"1 1:1\n", {"dtype": int}, ValueError, "dtype must be float32 or float64"),
        ("no such file", {}, FileNotFoundError, "no such file"),
        (3, {}, TypeError, "int"),
    ],
)
def test_what_is_wrong_with_a_libsvm_file_is_told(text, options, error, message):
    with pytest.raises(error, match=message):
        load_libsvm(text, **options)


def test_libsvm_data_is_fitted(libsvm_file):
    X, y = load_libsvm(libsvm_file, n_jobs=1)
    model = KernelSVC(Cs=[1.0, 10.0], cv=3).fit(X, y)
    assert model.gaps_.max() <= 1e-6
