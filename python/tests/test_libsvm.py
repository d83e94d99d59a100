"""LIBSVM's own programs read our models and predict what we predict, and we read what `svm-train` writes."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from naive import gram
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import kernelpath
from kernelpath import KernelDWD, KernelLogistic, KernelRegressor, KernelSVC, KernelSVR

REQUIRED = "KERNELPATH_REQUIRE_LIBSVM" in os.environ
RNG = np.random.RandomState(0)
X = RNG.standard_normal((90, 4))
X[:, 3] = 0.0  # the last column of all vectors is 0, and a model still knows that there is one
X[::7, 1] = 0.0
SCORE = X[:, 0] ** 2 + X[:, 1] * X[:, 2] + 0.3 * RNG.standard_normal(90)
TWO = np.where(np.median(SCORE) < SCORE, 5, -2)
THREE = np.searchsorted(np.quantile(SCORE, [0.3, 0.7]), SCORE) * 10 - 10
QUICK = {"Cs": [3.0], "cv": 3, "random_state": 0}
KERNELS = [{"kernel": "rbf"}, {"kernel": "linear"}, {"kernel": "poly", "degree": 2, "coef0": 1.0}]
INDEFINITE = {"kernel": "sigmoid", "gamma": 0.1, "coef0": -0.5}


def program(name):
    found = shutil.which(name)
    if found is None:
        assert not REQUIRED, f"{name} is not there; install libsvm-tools"
        pytest.skip(f"{name} is not there; install libsvm-tools")
    return found


def official():
    """LIBSVM as a library."""
    try:
        from libsvm import svmutil
    except ImportError:
        assert not REQUIRED, "the package libsvm-official is not there"
        pytest.skip("the package libsvm-official is not there")
    return svmutil


def call(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def write_rows(path, rows, y=None):
    dump_svmlight_file(rows, np.zeros(rows.shape[0]) if y is None else y, str(path), zero_based=False)


def svm_predict(folder, text, rows, *options):
    """What `svm-predict` writes: lines of words."""
    (folder / "model").write_text(text)
    write_rows(folder / "rows", rows)
    call(program("svm-predict"), *options, folder / "rows", folder / "model", folder / "out")
    return [line.split() for line in (folder / "out").read_text().splitlines()]


def official_values(folder, text, rows):
    """The decision values of LIBSVM, a column for each machine."""
    svm = official()
    (folder / "model").write_text(text)
    model = svm.svm_load_model(os.fsencode(folder / "model").decode())
    # Classes make a line of svm_predict's values, numbers one of a single value.
    _, _, values = svm.svm_predict([0] * len(rows), np.asarray(rows).tolist(), model, "-q")
    return np.array(values)


def machine_values(model, rows):
    """Of each machine, positive for the class that LIBSVM has first: the second of two, the first of a pair."""
    kernel = {name: model._kernel[name] for name in ("kernel", "gamma", "degree", "coef0")}
    return gram(rows, model.support_vectors_, **kernel) @ model.dual_coef_.T + model.intercept_


def fit(model, y, **parameters):
    return model.set_params(**{"gamma": 0.4, **QUICK, **parameters}).fit(X, y)


@pytest.mark.filterwarnings("ignore::kernelpath.IndefiniteKernelWarning")
@pytest.mark.parametrize("kernel", [*KERNELS, INDEFINITE], ids=lambda kernel: kernel["kernel"])
def test_two_classes(kernel, tmp_path):
    model = fit(KernelSVC(probability=True), TWO, **kernel)
    text = kernelpath.to_libsvm(model)
    assert [int(line[0]) for line in svm_predict(tmp_path, text, X)] == model.predict(X).tolist()
    head, *lines = svm_predict(tmp_path, text, X, "-b", "1")
    assert head == ["labels", "5", "-2"]
    found = np.array([[float(word) for word in line[1:]] for line in lines])[:, ::-1]
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=0, atol=1e-6)
    values = model.decision_function(X)
    np.testing.assert_allclose(official_values(tmp_path, text, X).ravel(), values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
def test_one_against_one(kernel, low_rank, tmp_path):
    parameters = {"low_rank": True, "n_landmarks": 15} if low_rank else {}
    model = fit(KernelSVC(probability=True), THREE, **kernel, **parameters)
    text = kernelpath.to_libsvm(model)
    values = machine_values(model, X)
    np.testing.assert_allclose(official_values(tmp_path, text, X), values, rtol=1e-9, atol=1e-9)
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    winner = np.where(values > 0, first, second)
    votes = np.stack([(winner == c).sum(axis=1) for c in range(3)], axis=1)
    clear = votes.max(axis=1) == 2
    assert clear.sum() > 80
    found = np.array([int(line[0]) for line in svm_predict(tmp_path, text, X)])
    assert (found == model.predict(X))[clear].all()
    # LIBSVM couples the pairs by an iteration that ends within 0.005 / 3.
    head, *lines = svm_predict(tmp_path, text, X, "-b", "1")
    assert head == ["labels", "-10", "0", "10"]
    found = np.array([[float(word) for word in line[1:]] for line in lines])
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=0, atol=0.01)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel["kernel"])
def test_regression(kernel, tmp_path):
    model = fit(KernelSVR(epsilon=0.1), SCORE, **kernel)
    text = kernelpath.to_libsvm(model)
    # svm-predict writes six digits.
    found = np.array([float(line[0]) for line in svm_predict(tmp_path, text, X)])
    np.testing.assert_allclose(found, model.predict(X), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(official_values(tmp_path, text, X).ravel(), model.predict(X), rtol=1e-9, atol=1e-9)


def test_precomputed_kernel(tmp_path):
    K = gram(X, X, "rbf", 0.4)
    model = KernelSVC(kernel="precomputed", **QUICK).fit(K, THREE)
    text = kernelpath.to_libsvm(model)
    lines = [f"0 0:{i + 1} " + " ".join(f"{j + 1}:{k:.17g}" for j, k in enumerate(row)) for i, row in enumerate(K)]
    (tmp_path / "rows").write_text("\n".join(lines) + "\n")
    (tmp_path / "model").write_text(text)
    call(program("svm-predict"), tmp_path / "rows", tmp_path / "model", tmp_path / "out")
    found = [int(label) for label in (tmp_path / "out").read_text().split()]
    assert np.mean(found == model.predict(K)) > 0.95
    assert (kernelpath.from_libsvm(text.encode()).predict(K) == model.predict(K)).all()


TRAINED = [
    ("-s 0 -t 2 -g 0.4 -c 3", TWO),
    ("-s 0 -t 0 -c 3", TWO),
    ("-s 0 -t 1 -d 2 -r 1 -g 0.4 -c 3", THREE),
    ("-s 0 -t 3 -g 0.1 -r -0.5 -c 1", THREE),
    ("-s 0 -t 2 -g 0.4 -c 3 -b 1", TWO),
    ("-s 0 -t 2 -g 0.4 -c 3 -b 1", THREE),
    ("-s 1 -t 2 -g 0.4 -n 0.3", TWO),
    ("-s 1 -t 2 -g 0.4 -n 0.3", THREE),
    ("-s 3 -t 2 -g 0.4 -c 3 -p 0.1", SCORE),
    ("-s 3 -t 2 -g 0.4 -c 3 -p 0.1 -b 1", SCORE),
    ("-s 4 -t 0 -c 3 -n 0.5", SCORE),
]


@pytest.mark.parametrize(("options", "y"), TRAINED, ids=[options for options, _ in TRAINED])
@pytest.mark.parametrize("is_turned", [False, True])
def test_models_of_svm_train(options, y, is_turned, tmp_path):
    order = np.arange(90)[::-1] if is_turned else np.arange(90)  # the first row's label is LIBSVM's first
    rows = X[:, :3]
    write_rows(tmp_path / "train", rows[order], y[order])
    call(program("svm-train"), "-q", *options.split(), tmp_path / "train", tmp_path / "trained")
    text = (tmp_path / "trained").read_text()
    model = kernelpath.from_libsvm(tmp_path / "trained")
    assert isinstance(model, KernelSVR if y is SCORE else KernelSVC)
    # For nu_svc of three classes the package writes values beyond the end of its array.
    values = None if y is THREE else official_values(tmp_path, text, rows)
    own = svm_predict(tmp_path, text, rows)
    if y is SCORE:
        np.testing.assert_allclose(model.predict(rows), values.ravel(), rtol=1e-9, atol=1e-9)
    else:
        assert model.classes_.tolist() == sorted(set(y.tolist()))
        expected = np.array([int(line[0]) for line in own])
        if y is TWO:
            first = int(next(line for line in text.splitlines() if line.startswith("label")).split()[1])
            sign = 1.0 if first == 5 else -1.0
            np.testing.assert_allclose(model.decision_function(rows), sign * values.ravel(), rtol=1e-9, atol=1e-9)
            assert (model.predict(rows) == expected).all()
        else:
            assert np.mean(model.predict(rows) == expected) > 0.95  # but for tied votes
    if "-b 1" in options and y is TWO:
        head, *lines = svm_predict(tmp_path, text, rows, "-b", "1")
        found = np.array([[float(word) for word in line[1:]] for line in lines])
        found = found[:, np.argsort([int(label) for label in head[1:]])]
        np.testing.assert_allclose(model.predict_proba(rows), found, rtol=0, atol=1e-6)
    # What was read is a model like any other: in files, and for LIBSVM again.
    model.save(tmp_path / "model.kpath")
    again = kernelpath.load(tmp_path / "model.kpath")
    assert (again.predict(rows) == model.predict(rows)).all()
    written = svm_predict(tmp_path, kernelpath.to_libsvm(again), rows)
    assert np.mean([a[0] == b[0] for a, b in zip(written, own, strict=True)]) > 0.95


def test_sparse_rows(tmp_path):
    rows = sparse.random(80, 2000, density=0.01, random_state=0, format="csr")
    y = np.where(np.asarray(rows.sum(axis=1)).ravel() > 10.0, 1, -1)
    model = KernelSVC(gamma=0.1, **QUICK).fit(rows, y)
    text = kernelpath.to_libsvm(model)
    assert [int(line[0]) for line in svm_predict(tmp_path, text, rows)] == model.predict(rows).tolist()
    again = kernelpath.from_libsvm(text.encode())
    assert again.n_features_in_ == 2000
    assert sparse.issparse(again.support_vectors_)
    np.testing.assert_allclose(again.decision_function(rows), model.decision_function(rows), rtol=0, atol=1e-12)


REFUSED = [
    (KernelSVC(kernel="laplacian"), TWO, 'its kernel is "laplacian"'),
    (KernelSVC(kernel="matern32"), TWO, 'its kernel is "matern32"'),
    (KernelSVC(multi_class="ovr"), THREE, 'multi_class="ovo"'),
    (KernelLogistic(multi_class="multinomial"), THREE, 'its loss is "multinomial"'),
    (KernelSVC(probability="isotonic"), TWO, 'probability="sigmoid"'),
    (KernelSVC(probability="temperature"), TWO, 'probability="sigmoid"'),
    (KernelSVC(loss="squared_hinge"), TWO, 'its loss is "squared_hinge"'),
    (KernelDWD(), TWO, 'its loss is "dwd"'),
    (KernelRegressor(), SCORE, "fit KernelSVR"),
    (KernelSVC(), np.where(TWO > 0, "yes", "no"), 'its label "no" is no integer'),
    (KernelSVC(), TWO > 0, "its label false is no integer"),
    (KernelSVR(), np.stack([SCORE, -SCORE], axis=1), "it has 2 targets"),
]


@pytest.mark.parametrize(("model", "y", "reason"), REFUSED, ids=[reason for *_, reason in REFUSED])
def test_what_libsvm_cannot_express_is_refused(model, y, reason):
    with pytest.raises(ValueError, match=f"a LIBSVM model file cannot express this model: .*{reason}"):
        kernelpath.to_libsvm(fit(model, y))


def test_stored_scaling_is_refused():
    model = fit(KernelSVC(), TWO)
    model._scaling = np.zeros(4), np.ones(4)
    with pytest.raises(ValueError, match="scales the columns of rows itself"):
        kernelpath.to_libsvm(model)


def test_labels_that_are_whole_floats_are_integers(tmp_path):
    model = fit(KernelSVC(), np.where(TWO > 0, 1.0, -1.0))
    found = [int(line[0]) for line in svm_predict(tmp_path, kernelpath.to_libsvm(model), X)]
    assert found == model.predict(X).astype(int).tolist()


def test_a_damaged_file_names_its_line():
    text = kernelpath.to_libsvm(fit(KernelSVC(), TWO))
    with pytest.raises(ValueError, match=r"line 3: \"gama\" is no word of a LIBSVM model file"):
        kernelpath.from_libsvm(text.replace("gamma", "gama").encode())
