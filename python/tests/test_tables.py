"""Models that the command trained on tables predict from the columns of the table, in Python as well."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import kernelpath
from kernelpath import KernelSVC, _core

rng = np.random.default_rng(3)
N = 90
FRAME = pd.DataFrame(
    {
        "size": np.where(np.arange(N) % 8 == 3, np.nan, rng.standard_normal(N).round(3)),
        "colour": np.array(["red", "blue", "pale, green", None], dtype=object)[rng.integers(0, 4, N)],
        "count": rng.integers(0, 5, N).astype(float),
    }
)
KIND = np.where(FRAME["colour"].eq("red") ^ (FRAME["count"] > 2), "yes", "no")


def run(*arguments):
    assert _core.run_command(["kernelpath", *map(str, arguments)]) == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    FRAME.assign(kind=KIND).to_csv(path / "data.csv", index=False)
    options = ["--missing", "mean", "--one-hot", "--scale", "standard", "--cs", "1,10", "--gamma", "0.3", "--quiet"]
    run("train", path / "data.csv", "-o", path / "model.kpath", *options)
    run("predict", path / "model.kpath", path / "data.csv", path / "out.txt", "--decision", "--quiet")
    return path


def by_the_command(folder):
    lines = [line.split("\t") for line in (folder / "out.txt").read_text().splitlines()]
    return [label for label, _ in lines], np.array([float(value) for _, value in lines])


def by_hand():
    """The features, column by column."""
    size = FRAME["size"].fillna(FRAME["size"].mean()).to_numpy()
    known = FRAME["colour"].notna().to_numpy()
    columns = [size]
    for colour in ["blue", "pale, green", "red"]:
        is_it = FRAME["colour"].eq(colour).to_numpy()
        columns.append(np.where(known, is_it, is_it[known].mean()))
    features = np.column_stack([*columns, FRAME["count"]]).astype(float)
    return (features - features.mean(axis=0)) / features.std(axis=0)


def test_a_loaded_model_predicts_from_the_raw_columns(folder):
    model = kernelpath.load(folder / "model.kpath")
    labels, values = by_the_command(folder)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["size", "colour", "count"]
    assert model.predict(FRAME).tolist() == labels
    np.testing.assert_array_equal(model.decision_function(FRAME), values)
    rows = FRAME.to_numpy(dtype=object)
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.decision_function(rows), values)
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.decision_function(rows.tolist()), values)
    # The same model on the features that one makes by hand.
    assert model.score(FRAME, KIND) > 0.85
    twin = KernelSVC(Cs=[model.C_], gamma=0.3, cv=None).fit(by_hand(), KIND)
    np.testing.assert_allclose(twin.decision_function(by_hand()), values, atol=2e-3)


def test_files_and_copies_of_it_predict_the_same(folder, tmp_path):
    model = kernelpath.load(folder / "model.kpath")
    values = model.decision_function(FRAME)
    model.save(tmp_path / "again.kpath")
    again = kernelpath.load(tmp_path / "again.kpath")
    for other in (again, pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        np.testing.assert_array_equal(other.decision_function(FRAME), values)
    assert (tmp_path / "again.kpath").read_bytes().count(b"colour=blue") == 1
    model.report(tmp_path / "page.html", FRAME, KIND)
    for convert in (kernelpath.to_onnx, kernelpath.to_libsvm):
        with pytest.raises(ValueError, match='turns the texts of columns "colour" into numbers'):
            convert(model)


def test_what_does_not_fit_is_named(folder):
    model = kernelpath.load(folder / "model.kpath")
    bad = FRAME.astype({"size": object})
    bad.loc[1, "size"] = "big"
    with pytest.raises(ValueError, match="row 1, column 'size' is 'big'"):
        model.predict(bad)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(FRAME[["size", "colour"]])
    unseen = FRAME.assign(colour="violet")
    assert np.isfinite(model.decision_function(unseen)).all()
    # Another fit knows nothing of the table.
    model.set_params(Cs=1.0, cv=None).fit(by_hand(), KIND)
    assert model.n_features_in_ == 5
    assert model.predict(by_hand()).shape == (N,)


def test_rows_with_gaps_are_refused_by_a_model_that_dropped_them(folder, tmp_path):
    run("train", folder / "data.csv", "--missing", "drop", "--ignore", "colour", "--cs", "1", "--quiet", "-o",
        tmp_path / "model.kpath")  # fmt: skip
    model, numbers = kernelpath.load(tmp_path / "model.kpath"), FRAME[["size", "count"]]
    with pytest.raises(ValueError, match="nan at row 3, column 'size'|NaN at row 3, column 'size'"):
        model.predict(numbers)
    assert len(model.predict(numbers.dropna())) == N - numbers["size"].isna().sum()
