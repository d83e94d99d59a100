"""ONNX Runtime predicts what we predict: every estimator, kernel, arrangement of classes and calibration."""

import numpy as np
import pytest
from naive import gram
from scipy import sparse

import kernelpath
from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

KERNELS = ["rbf", "laplacian", "poly", "linear", "sigmoid", "matern32", "matern52", "precomputed"]
RNG = np.random.RandomState(0)
X = RNG.standard_normal((72, 3)) * [1.0, 5.0, 0.2] + [0.0, 100.0, -3.0]
NEW = np.vstack([X[:20], X[:20] + 0.1 * RNG.standard_normal((20, 3))])
SCORE = np.sin(X[:, 0]) + 0.2 * (X[:, 1] - 100.0) + X[:, 2] + 3.0 + 0.3 * RNG.standard_normal(72)
TWO = (np.median(SCORE) < SCORE).astype(int)
FOUR = np.searchsorted(np.quantile(SCORE, [0.25, 0.5, 0.75]), SCORE)
QUICK = {"Cs": [3.0], "cv": 3, "random_state": 0}


def run(model, data, float32=False):
    """The outputs by name, of a model that the checker has passed and whose floats have one precision."""
    proto = onnx.load_from_string(kernelpath.to_onnx(model, float32=float32))
    onnx.checker.check_model(proto, full_check=True)
    assert {(entry.domain, entry.version) for entry in proto.opset_import} == {("", 13)}
    assert proto.ir_version == 7
    other = onnx.TensorProto.DOUBLE if float32 else onnx.TensorProto.FLOAT
    inferred = onnx.shape_inference.infer_shapes(proto, strict_mode=True).graph
    values = [*inferred.value_info, *inferred.input, *inferred.output]
    types = {value.type.tensor_type.elem_type for value in values if value.name != "label"}
    assert other not in types
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    session = ort.InferenceSession(proto.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    assert given.name == "X"
    assert given.shape == ["rows", model.n_features_in_]
    assert given.type == ("tensor(float)" if float32 else "tensor(double)")
    names = [output.name for output in session.get_outputs()]
    data = (data.toarray() if sparse.issparse(data) else data).astype(outputs_type(float32))
    outputs, one, none = (dict(zip(names, session.run(None, {"X": data[:n]}), strict=True)) for n in (None, 1, 0))
    for name, output in outputs.items():
        assert one[name].shape == (1, *output.shape[1:])
        assert none[name].shape == (0, *output.shape[1:])
        assert one[name].dtype == none[name].dtype == output.dtype
    return outputs


def outputs_type(float32):
    return np.float32 if float32 else np.float64


def sizes(model, data):
    """Σ|β||k| of each row and function, which is what errors of rounding grow with."""
    kernel, vectors = model._kernel["kernel"], model.support_vectors_
    if hasattr(model, "_scaling"):
        data = (data - model._scaling[0]) * model._scaling[1]
    if kernel == "precomputed":
        K = data[:, model.support_]
    else:
        vectors = vectors.toarray() if sparse.issparse(vectors) else vectors
        data = data.toarray() if sparse.issparse(data) else data
        K = gram(data, vectors, kernel, *(model._kernel[name] for name in ("gamma", "degree", "coef0")))
    return 1.0 + np.abs(K) @ np.abs(model.dual_coef_).T + np.abs(model.intercept_)


def check(model, data=NEW, float32=False):
    found = run(model, data, float32)
    if hasattr(model, "classes_"):
        expected = {"label": model.predict(data), "decision": model.decision_function(data)}
        if hasattr(model, "predict_proba"):
            expected["probabilities"] = model.predict_proba(data)
    else:
        expected = {"values": model.predict(data)}
    assert list(found) == list(expected)
    tolerance = (1e-4 if float32 else 1e-9) * sizes(model, data).max(axis=1)
    for name, values in expected.items():
        assert found[name].shape == values.shape
        if name == "label":
            # Rounding may change the label where two classes are as good as equal.
            ranked = np.sort(np.atleast_2d(expected["decision"].T).T, axis=1)
            margin = np.abs(ranked[:, 0]) if ranked.shape[1] == 1 else ranked[:, -1] - ranked[:, -2]
            sure = margin > 2 * tolerance
            assert sure.sum() > len(sure) // 2
            assert (found[name] == values)[sure].all()
            assert found[name].dtype.kind in ("O" if values.dtype.kind in "UO" else values.dtype.kind)
            continue
        assert found[name].dtype == outputs_type(float32)
        errors = np.abs(found[name] - values).reshape(len(values), -1).max(axis=1)
        assert (errors <= tolerance).all(), f"{name}: {(errors / tolerance).max()} of what is allowed"
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"].sum(axis=1), 1.0, atol=1e-6 if float32 else 1e-12)


def fit(model, y, **parameters):
    """The model fitted on a kernel of any kind, and rows for it."""
    settings = {"gamma": 0.1, "coef0": 0.5, "degree": 3} if "kernel" in parameters else {}
    model.set_params(**QUICK, **settings, **parameters)
    if parameters.get("kernel") == "precomputed":
        return model.fit(gram(X, X, "rbf", 0.1), y), gram(NEW, X, "rbf", 0.1)
    # Inner products of columns far from 0 would be all that such a kernel sees.
    shift = [0.0, 100.0, -3.0] if parameters.get("kernel") in ("poly", "linear", "sigmoid") else 0.0
    return model.fit(X - shift, y), NEW - shift


@pytest.mark.filterwarnings("ignore::kernelpath.IndefiniteKernelWarning")
@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel, float32):
    for model, y in [(KernelSVC(), TWO), (KernelRegressor(), SCORE), (KernelSVC(multi_class="ovr"), FOUR)]:
        for low_rank in ({}, {"low_rank": True, "n_landmarks": 12}):
            fitted, data = fit(model, y, kernel=kernel, **low_rank)
            check(fitted, data, float32)


CLASSIFIERS = {
    "svm": KernelSVC(),
    "svm, sigmoid": KernelSVC(probability="sigmoid"),
    "svm, isotonic": KernelSVC(probability="isotonic"),
    "svm, temperature": KernelSVC(probability="temperature"),
    "squared hinge": KernelSVC(loss="squared_hinge", probability=True),
    "logistic": KernelLogistic(),
    "dwd": KernelDWD(probability=True),
    "dwd, isotonic": KernelDWD(probability="isotonic"),
}


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, low_rank):
    parameters = {"low_rank": True, "n_landmarks": 12} if low_rank else {}
    for y, multi_class in [(TWO, "ovo"), (FOUR, "ovo"), (FOUR, "ovr")]:
        model, data = fit(CLASSIFIERS[name], y, gamma=0.3, multi_class=multi_class, **parameters)
        check(model, data)
        if "isotonic" not in name:  # whose steep lines turn an error of a value into a larger one
            check(model, data, float32=True)


def test_multinomial():
    for y in (TWO, FOUR):
        model, data = fit(KernelLogistic(multi_class="multinomial"), y)
        check(model, data)
        check(model, data, float32=True)


REGRESSORS = [
    KernelSVR(),
    KernelRegressor(),
    KernelRegressor(loss="huber"),
    KernelRegressor(loss="expectile"),
    KernelQuantile(),
    KernelQuantile(tau=[0.9, 0.1, 0.5], noncrossing="sort"),
]


@pytest.mark.parametrize("low_rank", [False, True])
@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_regressors(model, low_rank):
    parameters = {"low_rank": True, "n_landmarks": 12} if low_rank else {}
    targets = [SCORE] if isinstance(model, KernelQuantile) else [SCORE, np.stack([SCORE, -(SCORE**2)], axis=1)]
    for y in targets:
        fitted, data = fit(model, y, **parameters)
        check(fitted, data)
        check(fitted, data, float32=True)


@pytest.mark.parametrize("names", [["no", "yes"], [False, True], [-7, 2**40], [0.0, 2.0], ["a", "b", "ü ≠", "d"]])
def test_labels_keep_their_type(names):
    y = np.array(names)[TWO if len(names) == 2 else FOUR]
    model, data = fit(KernelSVC(), y)
    check(model, data)
    if y.dtype.kind == "U":
        check(model.fit(X, y.astype(object)), data)


def test_sparse_rows_and_models_without_vectors():
    rows = sparse.random(80, 300, density=0.02, random_state=0, format="csr")
    y = np.asarray(rows.sum(axis=1)).ravel() > 3.0
    for kernel in ("rbf", "linear", "laplacian"):
        check(KernelSVC(kernel=kernel, gamma=0.5, **QUICK).fit(rows, y), rows[:30])
    constant = KernelSVR(epsilon=100.0, **QUICK).fit(X, SCORE)
    assert len(constant.support_) == 0
    check(constant)


@pytest.mark.filterwarnings("ignore::kernelpath.IndefiniteKernelWarning")
def test_stored_scaling():
    model, data = fit(KernelSVC(gamma=0.3, probability=True), FOUR)
    model._scaling = np.array([0.1, 98.0, -2.0]), np.array([1.1, 0.9, 1.3])
    check(model, data)
    check(model, data, float32=True)
    # One column, whose factor is a single number.
    for kernel in KERNELS[:-1]:
        model = KernelRegressor(kernel=kernel, gamma=0.1, coef0=0.3, **QUICK).fit(X[:, :1], SCORE)
        model._scaling = np.array([0.1]), np.array([1.1])
        check(model, NEW[:, :1])


def test_pairwise_coupling_up_to_ten_classes():
    rng = np.random.RandomState(1)
    y = np.arange(120) % 11
    rows = rng.standard_normal((120, 2)) + 2.0 * np.stack([np.cos(y), np.sin(y)], axis=1)
    parameters = {"gamma": 0.5, **QUICK}
    for probability in ("sigmoid", "temperature"):
        few = y < 10
        model = KernelSVC(probability=probability, **parameters).fit(rows[few], y[few])
        check(model, rows)
        check(model, rows, float32=True)
    # The pairs contradict each other, and some are as sure as they can be.
    model = KernelLogistic(gamma=5.0, **{**QUICK, "Cs": [1e4]}).fit(rows[few], y[few])
    check(model, rows)
    with pytest.raises(ValueError, match=r"all pairs of 11 classes.*at most 10.*multi_class=\"ovr\""):
        kernelpath.to_onnx(KernelSVC(probability=True, **parameters).fit(rows, y))
    check(KernelSVC(**parameters).fit(rows, y), rows)
    check(KernelSVC(probability=True, multi_class="ovr", **parameters).fit(rows, y), rows)


def test_tied_votes_go_to_the_same_class():
    rng = np.random.RandomState(0)
    rows, y = rng.standard_normal((60, 2)), rng.randint(3, size=60)
    model = KernelSVC(gamma=2.0, **QUICK).fit(rows, y)
    around = 1.5 * rng.standard_normal((300, 2))
    votes = np.floor(model.decision_function(around) + 0.5)
    assert (votes == 1).all(axis=1).sum() > 10  # each class wins one of its two pairs
    assert (run(model, around)["label"] == model.predict(around)).all()


def test_what_is_refused():
    model, _ = fit(KernelSVC(), np.array([0, 2**63], dtype=np.uint64)[TWO])
    with pytest.raises(ValueError, match=r"ONNX cannot express this model: its label 9223372036854775808"):
        kernelpath.to_onnx(model)
    model, _ = fit(KernelRegressor(), SCORE * 1e60)
    check(model)
    with pytest.raises(ValueError, match="single precision; convert in double"):
        kernelpath.to_onnx(model, float32=True)


def test_names_of_columns_are_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "ü"])
    proto = onnx.load_from_string(kernelpath.to_onnx(KernelSVC(**QUICK).fit(frame, TWO)))
    assert {entry.key: entry.value for entry in proto.metadata_props} == {
        "kernelpath.estimator": "KernelSVC",
        "kernelpath.kernel": "rbf",
        "kernelpath.columns": '["a","b","ü"]',
    }
