"""Model files and pickles: what comes back predicts the same to the last bit, and what is damaged is refused."""

import copy
import json
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from old_files import DATA, answers
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, StratifiedKFold

import kernelpath
from kernelpath import (
    KernelDWD,
    KernelLogistic,
    KernelQuantile,
    KernelRegressor,
    KernelSVC,
    KernelSVR,
    NystromFeatures,
    _core,
    _saved,
)
from kernelpath._files import file_of

GRID = {"Cs": [0.1, 1.0, 10.0], "cv": 3}
rng = np.random.RandomState(0)
X = rng.standard_normal((75, 3))
TWO = np.where(X[:, 0] + 0.5 * rng.standard_normal(75) > 0, 1, -1)
THREE = np.digitize(X[:, 0] + 0.3 * rng.standard_normal(75), [-0.5, 0.5])
WAVE = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(75)
BOTH = np.column_stack([WAVE, 1.0 - 3.0 * X[:, 1]])
FRAME = pd.DataFrame(X, columns=["width", "length", "größe"])
SPARSE = sparse.csr_array(sparse.random(75, 3, density=0.6, random_state=0, format="csr"))
WEIGHT = np.arange(75) % 7 % 3
TEXTS = np.array(["ein", "zwei", "drei und mehr"])[THREE]

# Estimator, its parameters, rows, targets, and what else `fit` is given.
CASES = {
    "binary": (KernelSVC, {}, X, TWO, {}),
    "float32": (KernelSVC, {}, X.astype(np.float32), TWO, {}),
    "fortran": (KernelSVC, {}, np.asfortranarray(X), TWO, {}),
    "frame": (KernelSVC, {"scoring": "roc_auc"}, FRAME, TWO, {}),
    "weights of 0": (KernelSVC, {}, X, TWO, {"sample_weight": WEIGHT}),
    "loo": (KernelSVC, {"cv": "loo"}, X, TWO, {}),
    "no cv": (KernelSVC, {"cv": None, "Cs": 1.0}, X, TWO, {}),
    "balanced": (KernelSVC, {"class_weight": "balanced", "loss": "squared_hinge"}, X, TWO, {}),
    "class weights": (KernelSVC, {"class_weight": {-1: 1.0, 1: 2.5}}, X, TWO, {}),
    "ovo": (KernelSVC, {}, X, THREE, {}),
    "ovr each": (KernelSVC, {"multi_class": "ovr", "tune": "each"}, X, THREE, {}),
    "sigmoid": (KernelSVC, {"probability": True}, X, TWO, {}),
    "isotonic ovo": (KernelDWD, {"probability": "isotonic"}, X, THREE, {}),
    "temperature": (KernelDWD, {"probability": "temperature", "multi_class": "ovr"}, X, THREE, {}),
    "gammas": (KernelSVC, {"gamma": [0.1, 0.5]}, X, THREE, {}),
    "gammas each": (KernelSVC, {"gamma": [0.1, 0.5], "tune": "each"}, X, THREE, {}),
    "lambdas": (KernelLogistic, {"lambdas": [0.1, 0.01], "Cs": 50}, X, TWO, {}),
    "logistic ovo": (KernelLogistic, {"scoring": "neg_log_loss"}, X, TEXTS, {}),
    "multinomial": (KernelLogistic, {"multi_class": "multinomial"}, X, THREE, {}),
    "linear": (KernelSVC, {"kernel": "linear"}, X, THREE, {}),
    "poly": (KernelSVC, {"kernel": "poly", "degree": 2, "coef0": 1.0}, X, TWO, {}),
    "matern32": (KernelSVR, {"kernel": "matern32"}, X, WAVE, {}),
    "laplacian": (KernelSVR, {"kernel": "laplacian", "epsilon": 0.05}, X, BOTH, {}),
    "precomputed": (KernelSVC, {"kernel": "precomputed"}, rbf_kernel(X), THREE, {"sample_weight": WEIGHT}),
    "sparse array": (KernelSVC, {}, SPARSE, TWO, {}),
    "sparse matrix": (KernelSVC, {"probability": True}, sparse.csr_matrix(SPARSE, dtype=np.float32), TWO, {}),
    "low rank": (KernelSVC, {"low_rank": True, "landmarks": "kmeans", "n_landmarks": 20}, X, TWO, {}),
    "low rank rows": (KernelLogistic, {"low_rank": True, "landmarks": [3, 1, 4, 15], "rank": 3}, X, THREE, {}),
    "low rank sparse": (
        KernelQuantile,
        {"low_rank": True, "landmarks": "uniform", "tau": [0.9, 0.1]},
        SPARSE,
        WAVE,
        {},
    ),
    "low rank precomputed": (
        *(KernelSVC, {"low_rank": True, "n_landmarks": 20, "kernel": "precomputed"}),
        *(rbf_kernel(X), TWO, {}),
    ),
    "median": (KernelQuantile, {}, X, WAVE, {}),
    "quantiles": (KernelQuantile, {"tau": [0.9, 0.1, 0.5], "noncrossing": "sort", "scoring": "r2"}, X, WAVE, {}),
    "svr": (KernelSVR, {"Cs": 4}, X, WAVE, {}),
    "targets": (KernelSVR, {"Cs": 4, "tune": "each"}, X, BOTH, {}),
    "one column": (KernelRegressor, {}, X, WAVE[:, None], {}),
    "ridge": (KernelRegressor, {"selection": "1se"}, X, BOTH, {}),
    "huber": (KernelRegressor, {"loss": "huber"}, X, BOTH, {}),
    "expectile": (KernelRegressor, {"loss": "expectile", "tau": 0.8}, X, WAVE, {}),
    "indefinite": (KernelSVC, {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}, X, TWO, {}),
    "unfinished": (KernelSVC, {"max_iter": 1, "Cs": [1.0, 1e3]}, X, TWO, {}),
}


def made(name):
    kind, parameters, rows, targets, more = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the indefinite and the unfinished
        return kind(**{**GRID, **parameters}).fit(rows, targets, **more), rows


def assert_same(a, b, name=""):
    """Equal in type, shape and bits."""
    assert type(a) is type(b), name
    if isinstance(a, dict):
        assert a.keys() == b.keys(), name
        for key in a:
            assert_same(a[key], b[key], f"{name}.{key}")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), name
        for k, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{name}[{k}]")
    elif sparse.issparse(a):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), name
        for part in ("indptr", "indices", "data"):
            assert_same(getattr(a, part), getattr(b, part), f"{name}.{part}")
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), name
        assert a.flags.c_contiguous == b.flags.c_contiguous, name
        assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes(), name
    elif isinstance(a, float):
        assert a == b or (np.isnan(a) and np.isnan(b)), name
    elif hasattr(a, "__dict__"):
        assert_same(vars(a), vars(b), name)
    elif isinstance(a, _core.Arrangement | _core.Calibration):
        assert a.__reduce__() == b.__reduce__(), name
    else:
        assert a == b, name


def assert_twins(model, again, rows):
    """The same class, parameters and attributes, and predictions equal to the last bit."""
    assert type(model) is type(again)
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    assert fitted.keys() == {name for name in vars(again) if name.endswith("_")}
    assert_same(fitted, {name: getattr(again, name) for name in fitted})
    parameters, kept = model.get_params(), again.get_params()
    assert parameters.keys() == kept.keys()
    assert all(np.array_equal(parameters[name], kept[name]) for name in kept)
    assert again.path_table() == model.path_table()
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    if is_classifier(model):
        assert_same(model.decision_function(rows), again.decision_function(rows))
        if hasattr(model, "predict_proba"):
            assert_same(model.predict_proba(rows), again.predict_proba(rows))


@pytest.mark.parametrize("name", CASES)
def test_what_is_saved_comes_back(name, tmp_path):
    model, rows = made(name)
    model.save(tmp_path / "model.kpath")
    again = kernelpath.load(tmp_path / "model.kpath")
    assert_twins(model, again, rows)
    state = pickle.dumps(model)
    assert b"_kernelpath_file" in state
    assert_twins(model, pickle.loads(state), rows)
    # The Rust library reads the same file, and answers the same.
    values, odds = _core.Saved.load(tmp_path / "model.kpath").answers(np.asarray(rows) if name == "frame" else rows)
    assert_same(values, (model.decision_function if is_classifier(model) else model._decision_values)(rows).ravel())
    if odds is not None:
        assert_same(odds, model.predict_proba(rows).ravel())
    again.save(tmp_path / "again.kpath")
    assert (tmp_path / "again.kpath").read_bytes() == (tmp_path / "model.kpath").read_bytes()


@pytest.mark.parametrize(
    ("parameters", "rows"),
    [
        ({"n_landmarks": 10}, FRAME),
        ({"landmarks": [3, 1, 4], "kernel": "linear", "rank": 2}, np.asfortranarray(X.astype(np.float32))),
        ({"landmarks": "uniform", "n_landmarks": 10, "kernel": "precomputed"}, rbf_kernel(X)),
        ({"landmarks": "rpcholesky", "n_landmarks": 10, "dtype": "float32"}, SPARSE),
    ],
)
def test_features_come_back(parameters, rows, tmp_path):
    features = NystromFeatures(**parameters).fit(rows)
    features.save(tmp_path / "features.kpath")
    state = pickle.dumps(features)
    assert b"_kernelpath_file" in state
    for again in (kernelpath.load(tmp_path / "features.kpath"), pickle.loads(state), copy.copy(features)):
        assert_same(
            {name: value for name, value in vars(features).items() if name.endswith("_")},
            {name: getattr(again, name) for name in vars(features) if name.endswith("_")},
        )
        assert again.get_params() == features.get_params()
        assert_same(features.transform(rows), again.transform(rows))
    with pytest.raises(NotFittedError):
        NystromFeatures().save(tmp_path / "never")


LABELS = {
    "bool": np.array([False, True]),
    "int8": np.array([-1, 1], dtype=np.int8),
    "uint64": np.array([3, 2**64 - 1], dtype=np.uint64),
    "float32": np.array([-1.0, 2.0], dtype=np.float32),
    "texts": np.array(["nein", "ja", "größer"]),
    "wide texts": np.array(["a", "b"], dtype="<U17"),
    "objects": np.array(["x", "ÿ", "\U0001f600 \"'\\"], dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_keep_their_type(name, tmp_path):
    labels = LABELS[name]
    y = labels[np.arange(75) % len(labels)]
    model = KernelSVC(gamma=0.5, Cs=1.0, cv=None).fit(X, y)
    model.save(tmp_path / "model.kpath")
    for again in (kernelpath.load(tmp_path / "model.kpath"), pickle.loads(pickle.dumps(model))):
        assert_same(model.classes_, again.classes_)
        assert_same(model.predict(X), again.predict(X))


def test_padding_of_labels_is_bounded():
    """One long text among many short ones is not padded, nor are short texts of a type that is wide."""
    labels = [*(str(k) for k in range(1000)), "x" * 10_000]
    for label_type, expected in ((None, labels), ("<U10000", labels), ("<U100000000", ["a", "b"])):
        classes = _saved._classes(expected, label_type)
        assert (classes.dtype, classes.tolist()) == (object, expected)
    with pytest.raises(ValueError, match="not of the type <U1"):
        _saved._classes(["aa", "bb"], "<U1")


def test_labels_that_no_file_holds_are_refused_but_pickled():
    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")[(TWO > 0).astype(int)]
    model = KernelSVC(gamma=0.5, Cs=1.0, cv=None).fit(X, days)
    with pytest.raises(TypeError, match="a label of a model file is a bool, int, float or str, not date: 2024-01-01"):
        model.save("never")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_what_cannot_be_saved_is_refused(tmp_path):
    path = tmp_path / "model.kpath"
    with pytest.raises(NotFittedError, match="This KernelSVC instance is not fitted yet"):
        KernelSVC().save(path)
    model = KernelSVC(kernel=linear, Cs=1.0, cv=None).fit(X, TWO)
    with pytest.raises(ValueError, match=r"holds no code, and the kernel is the function .*linear.*'precomputed'"):
        model.save(path)
    again = pickle.loads(pickle.dumps(model))
    assert_same(model.decision_function(X), again.decision_function(X))

    class Mine(KernelSVC):
        pass

    with pytest.raises(TypeError, match="Mine is a class of its own.*use KernelSVC, or pickle"):
        Mine(Cs=1.0, cv=None).fit(X, TWO).save(path)
    with pytest.raises(TypeError, match="a fitted estimator of kernelpath is needed, or a Pipeline .*, not a KFold"):
        kernelpath.to_libsvm(KFold())
    assert not path.exists()
    with pytest.raises(FileNotFoundError, match=r"nowhere/model\.kpath"):
        KernelSVC(Cs=1.0, cv=None).fit(X, TWO).save(tmp_path / "nowhere/model.kpath")
    with pytest.raises(FileNotFoundError, match=r"model\.kpath"):
        kernelpath.load(path)


def linear(A, B):
    return A @ B.T


def own_score(model, X, y):
    return model.score(X, y)


def test_parameters_that_json_cannot_hold_are_told(tmp_path):
    path = tmp_path / "model.kpath"
    given = {"cv": StratifiedKFold(3), "scoring": own_score, "random_state": np.random.RandomState(0), "C": 1.0}
    model = KernelSVC(**{**GRID, **{name: given[name] for name in ("cv", "random_state")}}).fit(X, TWO)
    model.set_params(scoring=own_score)
    model.save(path)
    with pytest.warns(UserWarning, match="holds cv=StratifiedKFold.*, random_state=Random.*, scoring=.*own_score as a"):
        again = kernelpath.load(path)
    assert (again.cv, again.scoring, again.random_state) == (5, None, 0)
    assert_same(model.decision_function(X), again.decision_function(X))
    # A pickle has them as they are.
    again = pickle.loads(pickle.dumps(model))
    assert again.scoring is own_score
    assert repr(again.cv) == repr(model.cv)


def test_parameters_of_many_types_come_back(tmp_path):
    model = KernelSVC(
        Cs=np.geomspace(0.1, 10, 3), gamma=np.float32(0.5), cv=np.int64(3), dtype=np.float64, low_rank=np.False_
    )
    model.fit(X, TWO).save(tmp_path / "model.kpath")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = kernelpath.load(tmp_path / "model.kpath")
    assert again.Cs == model.Cs.tolist()
    assert (again.gamma, again.cv, again.dtype) == (0.5, 3, "float64")
    assert again.low_rank is False
    assert_same(again.fit(X, TWO).scores_, model.scores_)


def test_pickles_hold_parameters_and_what_others_keep(tmp_path):
    model = KernelSVC(**GRID, gamma=0.5).fit(X, TWO)
    model.note = {"by": "me"}
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert again.note == {"by": "me"}
        assert_twins(model, again, X)
    joblib.dump(model, tmp_path / "model.joblib")
    assert_twins(model, joblib.load(tmp_path / "model.joblib"), X)
    assert joblib.hash(model) == joblib.hash(copy.deepcopy(model))
    unfitted = pickle.loads(pickle.dumps(clone(model)))
    assert unfitted.get_params() == model.get_params()
    assert not hasattr(unfitted, "C_")
    # What was changed by hand is pickled as it is.
    model.intercept_ = "five"
    assert pickle.loads(pickle.dumps(model)).intercept_ == "five"


def test_a_subclass_is_pickled():
    model = Own(**GRID, gamma=0.5).fit(X, TWO)
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is Own
    assert again.extra_ == 1
    assert_same(model.decision_function(X), again.decision_function(X))


class Own(KernelSVC):
    def fit(self, X, y):
        super().fit(X, y)
        self.extra_ = 1
        return self


def test_the_path_is_dropped_on_request():
    whole = KernelSVC(Cs=50, cv=5).fit(X, TWO)
    without = KernelSVC(Cs=50, cv=5, keep_path=False).fit(X, TWO)
    assert whole.oof_path_.shape == (75, 50)
    assert not hasattr(without, "oof_path_")
    assert_same(whole.oof_decision_, without.oof_decision_)
    size = len(pickle.dumps(whole))
    assert whole.slim() is whole
    assert not hasattr(whole, "oof_path_")
    assert_same(whole.decision_function(X), without.decision_function(X))
    assert len(pickle.dumps(whole)) < 0.7 * size
    assert not hasattr(whole.set_params(keep_path=False).fit(X, TWO), "oof_path_")
    assert hasattr(whole.set_params(keep_path=True).fit(X, TWO), "oof_path_")
    with pytest.raises(NotFittedError):
        KernelSVC().slim()


def test_a_loaded_model_is_verified_and_fitted_again(tmp_path):
    model = KernelSVC(**GRID).fit(X, TWO)
    model.save(tmp_path / "model.kpath")
    again = kernelpath.load(tmp_path / "model.kpath")
    assert again.verify(X, TWO) == model.verify(X, TWO)
    assert_same(again.fit(X, TWO).gaps_, model.gaps_)


def test_a_killed_process_leaves_a_whole_file(tmp_path):
    """Two models are saved in turns over each other until the process is killed."""
    path = tmp_path / "model.kpath"
    code = f"""
import numpy as np, kernelpath
models = [kernelpath.KernelSVC(Cs=c, cv=None, gamma=1.0).fit(np.random.RandomState(0).randn(1500, 100),
          np.arange(1500) % 2) for c in (1.0, 2.0)]
models[0].save({str(path)!r})
print("ready", flush=True)
while True:
    for model in models:
        model.save({str(path)!r})
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"ready\n"
        for _ in range(20):  # while it is replaced, too
            assert kernelpath.load(path).C_ in (1.0, 2.0)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert kernelpath.load(path).C_ in (1.0, 2.0)
    assert path.stat().st_size > 600_000


def damaged(data, change):
    """A model file with another document in its header."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    document = json.loads(header["__metadata__"]["kernelpath"])
    change(document)
    header["__metadata__"]["kernelpath"] = json.dumps(document)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


@pytest.fixture(scope="module")
def data():
    return file_of(KernelSVC(**GRID, probability="isotonic").fit(FRAME, THREE)).to_bytes()


def read(data, path):
    path.write_bytes(data)
    return kernelpath.load(path)


def test_a_newer_format_is_refused(data, tmp_path):
    newer = damaged(data, lambda document: document.update(format=3, library="9.8.7"))
    message = r"it has format 3, written by kernelpath 9\.8\.7; .* install a newer version"
    with pytest.raises(ValueError, match=message):
        read(newer, tmp_path / "model.kpath")
    state = pickle.dumps(KernelSVC(**GRID).fit(X, TWO))
    model = KernelSVC()
    with pytest.raises(ValueError, match=message):
        model.__setstate__({**vars(model), "_kernelpath_file": newer})
    assert b"kernelpath_file" in state


@pytest.mark.parametrize("cut", [0, 7, 8, 9, 200, -100, -1])
def test_a_file_that_is_cut_off_is_refused(data, tmp_path, cut):
    with pytest.raises(ValueError, match="model.kpath: "):
        read(data[:cut], tmp_path / "model.kpath")


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40])
def test_a_header_without_end_is_refused(data, tmp_path, length):
    with pytest.raises(ValueError, match=f"its header would take {length} bytes"):
        read(length.to_bytes(8, "little") + data[8:], tmp_path / "model.kpath")


def test_flipped_bits_are_errors_of_value_or_other_numbers(data, tmp_path):
    """Half of the flips hit the header: what it then says is refused, or changes a name or a number."""
    seeded = np.random.RandomState(0)
    header = int.from_bytes(data[:8], "little")
    refused, path = 0, tmp_path / "model.kpath"
    for k in range(400):
        changed = bytearray(data)
        place = seeded.randint(8 + header) if k % 2 else seeded.randint(len(data))
        changed[place] ^= 1 << seeded.randint(8)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = read(bytes(changed), path)
                model.n_jobs, model.device = 1, "cpu"
                model.predict(FRAME if hasattr(model, "feature_names_in_") else X)
        except ValueError:
            refused += 1
    assert 100 < refused < 400


def deep(document, *names):
    for name in names:
        document = document[name]
    return document


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(estimator="KernelSVCC"),
        lambda document: document.update(estimator="_KernelPathBase"),
        lambda document: document.update(estimator="KernelSVR"),
        lambda document: document.update(label_type="V1000000000"),
        lambda document: document.update(label_type="<U2"),
        lambda document: document.update(label_type="no such"),
        lambda document: deep(document, "parameters").update(Cs={"items": 3}),
        lambda document: deep(document, "attributes").update(parts_={"names": ["a"], "is_joint": False}),
        lambda document: deep(document, "attributes").update(parts_=[]),
        lambda document: deep(document, "attributes").update(rank_=3),
        lambda document: document["texts"].update({"attributes/status_": ["x" * 1_000_000]}),
        lambda document: deep(document, "attributes").update({"support_vectors_.layout": 3}),
    ],
)
def test_documents_that_do_not_fit_are_errors_of_value(data, tmp_path, change):
    with pytest.raises(ValueError, match=r"model\.kpath|do not fit together"):
        read(damaged(data, change), tmp_path / "model.kpath")


def test_names_in_a_file_set_nothing_else(data, tmp_path):
    def change(document):
        document["attributes"] |= {"predict": 1, "__class__": 2, "_kernel": 3, "fit": 4}
        document["parameters"]["frobnicate"] = 5

    with pytest.warns(UserWarning, match="frobnicate=5"):
        model = read(damaged(data, change), tmp_path / "model.kpath")
    assert callable(model.predict)
    assert callable(model.fit)
    assert type(model) is KernelSVC
    model.predict(FRAME)


def test_libsvm_models_come_back_as_themselves(tmp_path):
    """What LIBSVM's text holds is read with the same predictions, and can be saved, pickled and written again."""
    for kind, y in ((KernelSVC, THREE), (KernelSVR, WAVE)):
        more = {"probability": True} if kind is KernelSVC else {}
        model = kind(**GRID, **more).fit(X, y)
        text = kernelpath.to_libsvm(model)
        (tmp_path / "libsvm.model").write_text(text)
        for again in (kernelpath.from_libsvm(text.encode()), kernelpath.from_libsvm(tmp_path / "libsvm.model")):
            again.save(tmp_path / "model.kpath")
            for twin in (again, kernelpath.load(tmp_path / "model.kpath"), pickle.loads(pickle.dumps(again))):
                np.testing.assert_allclose(twin._decision_values(X), model._decision_values(X), rtol=0, atol=1e-12)
                np.testing.assert_array_equal(twin.predict(X), twin.predict(X))
                assert kernelpath.to_libsvm(twin) == kernelpath.to_libsvm(again)
            if more:
                np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-12)
                np.testing.assert_array_equal(again.classes_, model.classes_)
    assert not hasattr(again, "C_")
    with pytest.raises(ValueError, match="holds no C.* to verify"):
        again.verify(X, WAVE)
    with pytest.raises(ValueError, match="the model of LIBSVM: line 1: "):
        kernelpath.from_libsvm(b"no model")
    (tmp_path / "libsvm.model").write_text("svm_type c_svc\nkernel_type none\n")
    with pytest.raises(ValueError, match=r"libsvm\.model: line "):
        kernelpath.from_libsvm(tmp_path / "libsvm.model")
    with pytest.raises(ValueError, match='its kernel is "laplacian"'):
        kernelpath.to_libsvm(KernelSVC(kernel="laplacian", Cs=1.0, cv=None).fit(X, TWO))


@pytest.mark.parametrize("name", ["classes", "quantiles", "targets"])
@pytest.mark.parametrize("version", [1, 2])
def test_files_of_older_formats_are_read(name, version):
    model = kernelpath.load(DATA / f"format{version}_{name}.kpath")
    expected = json.loads((DATA / f"format{version}.json").read_text(encoding="utf-8"))[name]
    assert hasattr(model, "_training") == (version > 1)
    found = answers(model)
    assert found.keys() == expected.keys()
    for what in expected:
        if isinstance(np.ravel(expected[what])[0], str):
            assert found[what] == expected[what]
        else:
            np.testing.assert_allclose(found[what], expected[what], rtol=0, atol=1e-9)
    assert model.gaps_.max() <= 1e-6
    assert "oof_path_" not in vars(model)
