"""Files of strangers: whatever is changed in one, it is refused with a ValueError, or is a model that works; and it
chooses neither the machine nor the terminal of whoever reads it."""

import copy
import json
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import kernelpath
from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelSVC, KernelSVR, NystromFeatures, _core
from kernelpath._files import file_of
from kernelpath._saved import NotHeldError

GRID = {"Cs": [0.1, 1.0], "cv": 2}
rng = np.random.RandomState(0)
X = rng.standard_normal((40, 3))
TWO = np.where(X[:, 0] > 0, 1, -1)
THREE = np.array(["ham", "spam", "eggs"])[np.digitize(X[:, 0], [-0.5, 0.5])]
SPARSE = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))

FITS = {
    "classes": lambda: KernelDWD(**GRID, probability="isotonic", tune="each").fit(X, THREE),
    "binary": lambda: KernelSVC(**GRID, class_weight={-1: 1.0, 1: 2.0}, gamma=[0.2, 1.0]).fit(SPARSE, TWO),
    "multinomial": lambda: KernelLogistic(**GRID, multi_class="multinomial", kernel="poly").fit(X, THREE),
    "quantiles": lambda: KernelQuantile(
        **GRID, tau=[0.9, 0.1], noncrossing="sort", low_rank=True, landmarks="uniform", n_landmarks=9
    ).fit(X, X[:, 1]),
    "targets": lambda: KernelSVR(**GRID).fit(X, X[:, :2]),
    "features": lambda: NystromFeatures(n_landmarks=8).fit(X),
}
TRUTH = {"classes": THREE, "binary": TWO, "multinomial": THREE, "quantiles": X[:, 1], "targets": X[:, :2]}


def given(name):
    return TRUTH.get(name), SPARSE if name == "binary" else X


def split(data):
    """The header and its document, and the body."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["kernelpath"]), data[8 + length :]


def joined(header, document, body):
    header = {**header, "__metadata__": {"kernelpath": json.dumps(document)}}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def places(value, path=()):
    """The path of everything in a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in list(inside)[:6] if isinstance(value, list) else inside:
        yield (*path, key)
        yield from places(entry, (*path, key))


def changed(document, path, change):
    document = copy.deepcopy(document)
    owner = document
    for key in path[:-1]:
        owner = owner[key]
    change(owner, path[-1])
    return document


def renamed(owner, key):
    if isinstance(owner, dict):
        owner[key[:-1] + "~"] = owner.pop(key)
    else:
        owner.reverse()


def replaced(other):
    def change(owner, key):
        owner[key] = other

    return change


CHANGES = [
    lambda owner, key: owner.pop(key),
    renamed,
    *map(replaced, (None, True, -1, 7, 0.5, 1e300, 2**70, "x", "", [], {}, [[]])),
    *map(
        replaced,
        ({"float": "nan"}, {"items": [[[], 1]]}, {"integer": "x"}, {"repr": "x"}, ["a", 1, None], {"items": 3}),
    ),
]


def use(model, y, X=X):
    """All that a reader may do with a model. Only a ValueError may come of it."""
    if isinstance(model, NystromFeatures):
        assert model.transform(X).shape[0] == len(X)
        return
    model.predict(X)
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            getattr(model, name)(X)
    repr(model)
    model.get_params()
    if hasattr(model, "C_"):
        model.path_table()
        if y is not None:
            model.verify(X, y)
    pickle.dumps(model)


def tried(data, path, y=None, X=X):
    """Whether the file is read and its model works."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            use(kernelpath.load(path), y, X)
        except ValueError:
            return False
    return True


@pytest.mark.parametrize("name", FITS)
def test_every_change_of_a_document_is_an_error_of_value_or_a_model(name, tmp_path):
    data = file_of(FITS[name]()).to_bytes()
    header, document, body = split(data)
    assert tried(joined(header, document, body), tmp_path / "model.kpath", *given(name))
    refused = total = 0
    for path in places(document):
        for change in CHANGES:
            other = joined(header, changed(document, path, change), body)
            refused += not tried(other, tmp_path / "model.kpath")
            total += 1
    assert total > 500
    assert 0.2 * total < refused < total


@pytest.mark.parametrize("name", FITS)
def test_every_change_of_the_arrays_is_an_error_of_value_or_a_model(name, tmp_path):
    header, document, body = split(file_of(FITS[name]()).to_bytes())
    for array in [array for array in header if array != "__metadata__"]:
        others = [{k: v for k, v in header.items() if k != array}]
        others.append({(array[:-1] + "~" if k == array else k): v for k, v in header.items()})
        own = header[array]
        others += [
            {**header, array: {**own, "dtype": kind}} for kind in ("F64", "F32", "I64", "I32", "U32", "U8", "BOOL")
        ]
        count = int(np.prod(own["shape"]))
        shapes = ([count], [1, count], [count, 1], own["shape"][::-1], [*own["shape"], 1])
        others += [{**header, array: {**own, "shape": shape}} for shape in shapes]
        for other in others:
            tried(joined(other, document, body), tmp_path / "model.kpath", *given(name))


@pytest.mark.parametrize("name", FITS)
def test_every_flipped_bit_of_a_header_is_an_error_of_value_or_a_model(name, tmp_path):
    data = file_of(FITS[name]()).to_bytes()
    seeded, length = np.random.RandomState(1), int.from_bytes(data[:8], "little")
    for _ in range(700):
        damaged = bytearray(data)
        damaged[seeded.randint(8 + length)] ^= 1 << seeded.randint(8)
        tried(bytes(damaged), tmp_path / "model.kpath")


def test_a_file_does_not_choose_the_machine(tmp_path):
    model = KernelSVC(**GRID, n_jobs=2).fit(X, TWO)
    header, document, body = split(file_of(model).to_bytes())
    assert document["parameters"]["n_jobs"] == 2
    document["parameters"] |= {"n_jobs": 1_000_000, "device": "cuda:99"}
    path = tmp_path / "model.kpath"
    path.write_bytes(joined(header, document, body))
    again = kernelpath.load(path)
    assert (again.n_jobs, again.device) == (None, "cpu")
    assert again.get_params()["device"] == "cpu"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    again.report(tmp_path / "report.html", X, TWO)

    def recorded(model):
        parameters = split(file_of(model).to_bytes())[1]["parameters"]
        return parameters["n_jobs"], parameters["device"]

    # What the fit used stays on record, until it is set, or the model is fitted again.
    assert recorded(again) == (1_000_000, "cuda:99")
    assert recorded(pickle.loads(pickle.dumps(again))) == (1_000_000, "cuda:99")
    assert recorded(copy.copy(again).set_params(n_jobs=3)) == (3, "cuda:99")
    assert (clone(again).n_jobs, clone(again).device) == (None, "cpu")
    assert recorded(again.fit(X, TWO)) == (None, "cpu")
    features = NystromFeatures(n_landmarks=5, n_jobs=2).fit(X)
    features.save(path)
    assert kernelpath.load(path).n_jobs is None
    # A pickle, which its reader trusts, has them as they were.
    assert pickle.loads(pickle.dumps(KernelSVC(**GRID, n_jobs=2).fit(X, TWO))).n_jobs == 2


EVIL = "x\x1b[2J\r\x9b1A\nproved\u202e"


def test_names_from_a_file_are_shown_on_one_line(tmp_path):
    header, document, body = split(file_of(KernelSVC(**GRID).fit(X, TWO)).to_bytes())
    path = tmp_path / f"{EVIL}.kpath"
    document["parameters"] |= {"cv": {"repr": EVIL}, EVIL: 3}
    path.write_bytes(joined(header, document, body))
    with pytest.warns(UserWarning, match="as a text only") as caught:
        kernelpath.load(path)
    texts = [str(caught[0].message)]
    for damaged in (b"no model", joined(header, {**document, "estimator": EVIL}, body)):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="x") as raised:
            kernelpath.load(path)
        texts.append(str(raised.value))
    header, document, body = split(file_of(KernelQuantile(**GRID, tau=[0.1, 0.9]).fit(X, X[:, 0])).to_bytes())
    document["attributes"]["parts_"]["names"][0] = EVIL
    path.write_bytes(joined(header, document, body))
    texts.append(kernelpath.load(path).path_table().replace("\n", ""))
    for text in texts:
        assert _core.shown(text) == text
        assert "\\u{1b}[2J" in text or "\\x1b[2J" in text
    assert _core.shown("größer 日本") == "größer 日本"


def test_a_pickle_hides_no_error(monkeypatch):
    """Only what a file cannot hold is pickled attribute by attribute."""
    model = KernelSVC(**GRID).fit(X, TWO)
    model.dual_coef_ = model.dual_coef_[:, :-1]
    with pytest.raises(NotHeldError, match="dual_coef_ of shape"):
        file_of(model)
    assert pickle.loads(pickle.dumps(model)).dual_coef_.shape == model.dual_coef_.shape
    model.fit(X, TWO).C_ = 1j
    with pytest.raises(NotHeldError, match="C_"):
        file_of(model)
    assert pickle.loads(pickle.dumps(model)).C_ == 1j
    model.fit(X, TWO)

    def broken(*args, **kwargs):
        raise TypeError("a mistake of ours")

    monkeypatch.setattr("kernelpath._saved._outputs", broken)
    with pytest.raises(TypeError, match="a mistake of ours"):
        pickle.dumps(model)
