"""Pipelines of scalers and a model as one model: in files, for ONNX Runtime, in reports."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

import kernelpath
from kernelpath import KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, NystromFeatures
from kernelpath.datasets import make_mixture

FAST = {"Cs": [0.1, 10.0], "cv": 2, "random_state": 0}

SCALERS = {
    "standard": [StandardScaler()],
    "mean alone": [StandardScaler(with_std=False)],
    "deviation alone": [StandardScaler(with_mean=False)],
    "neither": [StandardScaler(with_mean=False, with_std=False)],
    "min and max": [MinMaxScaler()],
    "another range": [MinMaxScaler(feature_range=(-3.0, 5.0))],
    "largest": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "robust, centre alone": [RobustScaler(with_scaling=False)],
    "robust, scale alone": [RobustScaler(with_centering=False, quantile_range=(10.0, 90.0), unit_variance=True)],
    "several": [MinMaxScaler(), "passthrough", RobustScaler(), None, StandardScaler()],
    "nested": [make_pipeline(MaxAbsScaler(), StandardScaler()), MinMaxScaler()],
    "none": [],
}


def rows(n=90):
    """Columns of very different units, the last constant."""
    X, y = make_mixture(n, 4, random_state=0)
    return np.column_stack([X * [1e-3, 1.0, 1e4, 1e7] + [5.0, -3.0, 1e6, 0.0], np.full(n, 7.0)]), y


def pipeline(steps, model):
    return make_pipeline(*steps, model)


@pytest.mark.parametrize("name", SCALERS)
@pytest.mark.parametrize(
    "model",
    [KernelSVC(**FAST, probability=True), KernelQuantile(**FAST, tau=[0.2, 0.8]), KernelRegressor(**FAST)],
    ids=str,
)
def test_a_loaded_pipeline_predicts_from_its_own_columns(name, model, tmp_path):
    X, y = rows()
    y = y if is_classifier(model) else X[:, 1]
    given = pipeline(clone(SCALERS[name], safe=False), clone(model)).fit(X, y)
    kernelpath.save(given, tmp_path / "model.kpath")
    again = kernelpath.load(tmp_path / "model.kpath")
    assert type(again) is type(model)
    new = rows(120)[0][90:]
    for Z in (X, new):
        scaled = given[:-1].transform(Z) if len(given) > 1 else Z
        np.testing.assert_allclose(again._decision_values(Z), given[-1]._decision_values(scaled), atol=1e-9)
    if is_classifier(model):
        np.testing.assert_array_equal(again.predict(new), given.predict(new))
        np.testing.assert_allclose(again.predict_proba(new), given.predict_proba(new), atol=1e-9)
    assert not hasattr(given[-1], "_scaling")  # the pipeline stays as it was
    assert again.n_features_in_ == 5
    assert np.max(again.verify(X, y).gap) <= 1e-5  # these are the rows of the fit


def test_single_precision(tmp_path):
    X, y = rows()
    X = X.astype(np.float32)
    given = make_pipeline(StandardScaler(), KernelSVC(**FAST)).fit(X, y)
    assert given[-1].support_vectors_.dtype == np.float32
    kernelpath.save(given, tmp_path / "model.kpath")
    again = kernelpath.load(tmp_path / "model.kpath")
    np.testing.assert_allclose(again.decision_function(X), given.decision_function(X), atol=1e-3)
    again.verify(X, y)  # these are the rows of the fit
    with pytest.raises(ValueError, match="X holds other rows"):
        again.verify(X + np.float32(1e-3) * X.std(axis=0), y)


def test_names_of_the_columns_are_those_of_the_pipeline(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcde"))
    for scaler in (StandardScaler(), StandardScaler().set_output(transform="pandas")):
        given = make_pipeline(scaler, KernelSVC(**FAST)).fit(frame, y)
        kernelpath.save(given, tmp_path / "model.kpath")
        again = kernelpath.load(tmp_path / "model.kpath")
        assert again.feature_names_in_.tolist() == list("abcde")
        np.testing.assert_allclose(again.decision_function(frame), given.decision_function(frame), atol=1e-9)
        with pytest.raises(ValueError, match="feature names"):
            again.predict(frame[list("edcba")])
    unnamed = make_pipeline(StandardScaler().set_output(transform="pandas"), KernelSVC(**FAST)).fit(X, y)
    kernelpath.save(unnamed, tmp_path / "model.kpath")
    assert not hasattr(kernelpath.load(tmp_path / "model.kpath"), "feature_names_in_")


@pytest.mark.parametrize(
    "scaler", [StandardScaler(with_mean=False), MaxAbsScaler(), RobustScaler(with_centering=False)]
)
def test_sparse_rows_stay_sparse(scaler, tmp_path, monkeypatch):
    X, y = make_mixture(90, 4, random_state=0)
    X = sparse.csr_array(np.where(X > 0.0, X, 0.0))
    given = make_pipeline(scaler, KernelSVC(**FAST)).fit(X, y)
    kernelpath.save(given, tmp_path / "model.kpath")
    again = kernelpath.load(tmp_path / "model.kpath")
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    np.testing.assert_allclose(again.decision_function(X), given.decision_function(X), atol=1e-9)
    again.verify(X, y)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()])
def test_sparse_rows_cannot_be_centred(scaler, tmp_path):
    """As scikit-learn, whose pipeline refuses them."""
    X, y = rows()
    given = make_pipeline(scaler, KernelSVC(**FAST)).fit(X, y)
    kernelpath.save(given, tmp_path / "model.kpath")
    again = kernelpath.load(tmp_path / "model.kpath")
    if not isinstance(scaler, RobustScaler):  # which forgets to centre them
        with pytest.raises((TypeError, ValueError)):
            given.predict(sparse.csr_array(X))
    with pytest.raises(ValueError, match=r"subtracts a number from each column.*sparse.*pass X\.toarray\(\)"):
        again.predict(sparse.csr_array(X))


def test_onnx_runtime_predicts_from_the_columns_of_the_pipeline():
    runtime = pytest.importorskip("onnxruntime")
    X, y = rows()
    given = make_pipeline(RobustScaler(), MinMaxScaler(), KernelLogistic(**FAST)).fit(X, y)
    session = runtime.InferenceSession(kernelpath.to_onnx(given))
    labels, odds = session.run(["label", "probabilities"], {"X": X})
    np.testing.assert_array_equal(labels, given.predict(X))
    np.testing.assert_allclose(odds, given.predict_proba(X), atol=1e-9)


def test_report_of_a_pipeline(tmp_path):
    """It has the scores of the held-out rows, since the rows are recognised though the pipeline takes others."""
    X, y = rows()
    given = make_pipeline(StandardScaler(), KernelSVC(**FAST)).fit(X, y)
    kernelpath.report(given, tmp_path / "a.html", X, y, title="A pipeline")
    given[-1].report(tmp_path / "b.html", given[:-1].transform(X), y, title="A pipeline")
    a, b = ((tmp_path / name).read_text(encoding="utf-8") for name in ("a.html", "b.html"))
    assert "columns are shifted and scaled" in a
    kernelpath.report(given[-1], tmp_path / "c.html", given[:-1].transform(X), y, title="A pipeline")
    words = [re.findall(r"judged by[^.<]*|rows of the fit[^.<]*|held[- ]out[^.<]*", page) for page in (a, b)]
    assert words[0] == words[1] != []
    kernelpath.report(given, tmp_path / "a.html", X[:40], y[:40], title="A pipeline")
    assert re.findall(r"judged by[^.<]*|rows of the fit[^.<]*", (tmp_path / "a.html").read_text()) != words[0]


class Other(StandardScaler):
    """What a subclass does to a column is not known."""


def fitted(*steps):
    X, y = rows()
    return make_pipeline(*steps).fit(X, y)


def unfitted_scaler():
    given = fitted(StandardScaler(), KernelSVC(**FAST))
    given.steps[0] = ("standardscaler", StandardScaler())
    return given


def scaler_of_other_columns():
    given = fitted(StandardScaler(), KernelSVC(**FAST))
    given.steps[0] = ("standardscaler", StandardScaler().fit(np.eye(3)))
    return given


REFUSED = {
    "PCA": (lambda: fitted(PCA(3), KernelSVC(**FAST)), "the step 'pca' .* is a PCA, .*StandardScaler.*pickle"),
    "Normalizer": (lambda: fitted(Normalizer(), KernelSVC(**FAST)), "the step 'normalizer' .* is a Normalizer"),
    "a subclass": (lambda: fitted(Other(), KernelSVC(**FAST)), "the step 'other' .* is a Other"),
    "columns": (
        lambda: fitted(ColumnTransformer([("a", StandardScaler(), [0, 1])]), KernelSVC(**FAST)),
        "'columntransformer' .* is a ColumnTransformer",
    ),
    "features": (
        lambda: fitted(NystromFeatures(n_landmarks=5), KernelSVC(**FAST)),
        "'nystromfeatures' .* is a NystromFeatures",
    ),
    "a nested step": (
        lambda: fitted(make_pipeline(StandardScaler(), PCA(2)), KernelSVC(**FAST)),
        "the step 'pca' .* is a PCA",
    ),
    "clip": (
        lambda: fitted(MinMaxScaler(clip=True), KernelSVC(**FAST)),
        r"'minmaxscaler' .* MinMaxScaler with clip=True.*fit with clip=False",
    ),
    "another model": (
        lambda: fitted(StandardScaler(), LogisticRegression()),
        "ends in the step 'logisticregression', a LogisticRegression",
    ),
    "no model": (lambda: fitted(StandardScaler()), "ends in the step 'standardscaler', a StandardScaler"),
    "a search": (
        lambda: GridSearchCV(make_pipeline(StandardScaler(), KernelSVC(**FAST)), {}, cv=2).fit(*rows()),
        "not a GridSearchCV: pass its best_estimator_",
    ),
    "not fitted": (lambda: make_pipeline(StandardScaler(), KernelSVC(**FAST)), "not fitted yet"),
    "a step that is not fitted": (unfitted_scaler, "'standardscaler' .*, a StandardScaler, is not fitted yet"),
    "other columns": (scaler_of_other_columns, "'standardscaler' .* on 3 columns, and the last step on 5"),
    "a kernel matrix": (
        lambda: make_pipeline(StandardScaler(), KernelSVC(**FAST, kernel="precomputed")).fit(np.eye(30), [0, 1] * 15),
        "the step 'standardscaler' .* scales what the kernel is computed of",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_a_model_cannot_hold_is_refused_by_name(name, tmp_path):
    make, message = REFUSED[name]
    given = make()
    for write in (
        lambda: kernelpath.save(given, tmp_path / "model.kpath"),
        lambda: kernelpath.to_onnx(given),
        lambda: kernelpath.report(given, tmp_path / "page.html"),
    ):
        with pytest.raises((TypeError, ValueError, NotFittedError), match=message):
            write()
    assert not list(tmp_path.iterdir())


def test_a_model_that_scales_already(tmp_path):
    X, y = rows()
    given = make_pipeline(StandardScaler(), KernelSVC(**FAST)).fit(X, y)
    kernelpath.save(given, tmp_path / "model.kpath")
    inner = kernelpath.load(tmp_path / "model.kpath")
    before = RobustScaler().fit(X)
    outer = Pipeline([("before", before), ("model", inner)])
    kernelpath.save(outer, tmp_path / "model.kpath")
    again = kernelpath.load(tmp_path / "model.kpath")
    np.testing.assert_allclose(again.decision_function(X), outer.decision_function(X), atol=1e-9)


def test_save_is_the_method_of_that_name(tmp_path):
    X, y = rows()
    model = KernelSVC(**FAST).fit(X, y)
    kernelpath.save(model, tmp_path / "a.kpath")
    model.save(tmp_path / "b.kpath")
    assert (tmp_path / "a.kpath").read_bytes() == (tmp_path / "b.kpath").read_bytes()
