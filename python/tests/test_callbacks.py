"""scikit-learn's callbacks: what they hear of a fit, alone and inside pipelines and searches."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpath import KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, NystromFeatures
from kernelpath.datasets import make_mixture

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

FAST = {"Cs": [0.1, 1.0, 10.0], "cv": 3, "random_state": 0}


class Recorder:
    """Keeps what it is told; stops where `stop` says so."""

    max_propagation_depth = None

    def __init__(self, stop=lambda context: False):
        self.stop = stop
        self.log, self.begun, self.ended, self.models = [], [], [], []

    def setup(self, estimator, context):
        self.log.append("setup")

    def teardown(self, estimator, context):
        self.log.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self.begun.append(path(context))
        self.seen = (X, y, metadata)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.ended.append(path(context))
        if fitted_estimator is not None:
            self.models.append((path(context), fitted_estimator))
        return self.stop(context)


def path(context):
    """Names of the tasks down to this one."""
    return (*(() if context.parent is None else path(context.parent)), context.task_name)


def leaves(paths, name):
    return sum(of[-1] == name for of in paths)


@pytest.fixture(scope="module")
def data():
    return make_mixture(120, 4, random_state=0)


def test_tasks_of_a_fit(data):
    X, y = data
    recorder, plain = Recorder(), KernelSVC(**FAST).fit(X, y)
    weight = np.ones(len(y))
    clf = KernelSVC(**FAST).set_callbacks(recorder).fit(X, y, sample_weight=weight)
    assert recorder.log == ["setup", "teardown"]
    assert recorder.begun[0] == recorder.ended[-1] == ("fit",)
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert ("fit", "path") in recorder.begun
    assert leaves(recorder.ended, "model") == 3 * (3 + 1)
    assert recorder.begun.count(("fit", "path")) == 1
    assert recorder.seen[0] is X
    assert recorder.seen[1] is y
    assert recorder.seen[2]["sample_weight"] is weight
    ((of, model),) = recorder.models
    assert of == ("fit",)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    np.testing.assert_array_equal(clf.decision_function(X), plain.decision_function(X))
    assert vars(clf).keys() - vars(plain).keys() == {"_skl_callbacks"}
    assert vars(clf.set_callbacks()).keys() == vars(plain).keys()


@pytest.mark.parametrize(
    "model",
    [
        KernelSVC(**FAST, low_rank=True, n_landmarks=20),
        KernelSVC(**FAST, low_rank=True),  # as many landmarks as rows: on the kernel matrix of the features
        KernelLogistic(**FAST, multi_class="multinomial"),
        KernelSVC(**FAST, multi_class="ovr"),
        KernelSVC(Cs=[0.1, 1.0], cv="loo"),
        KernelQuantile(**FAST, tau=[0.2, 0.8]),
        KernelRegressor(**FAST),
    ],
    ids=str,
)
def test_tasks_of_every_kind_of_fit(data, model):
    X, _ = data
    y = np.digitize(X[:, 0], [-0.5, 0.5]) if hasattr(model, "decision_function") else X[:, 0]
    recorder = Recorder()
    clone(model).set_callbacks(recorder).fit(X, y)
    assert sorted(recorder.begun) == sorted(recorder.ended)
    assert leaves(recorder.ended, "model") >= 6
    assert recorder.log == ["setup", "teardown"]


def test_each_gamma_is_a_task(data):
    X, y = data
    recorder = Recorder()
    clf = KernelSVC(**FAST, gamma=[0.1, 0.3, 1.0]).set_callbacks(recorder).fit(X, y)
    names = ["gamma 1 of 3 (0.1)", "gamma 2 of 3 (0.3)", "gamma 3 of 3 (1)"]
    assert [of[1] for of in recorder.ended if len(of) == 2] == names
    assert [of for of in recorder.begun if of[-1] == "path"] == [("fit", name, "path") for name in names]
    assert leaves(recorder.ended, "model") == 3 * 3 * (3 + 1)
    assert clf.gammas_.tolist() == [0.1, 0.3, 1.0]


def test_callback_ends_the_choice_among_gammas(data):
    X, y = data
    recorder = Recorder(stop=lambda context: context.task_name.startswith("gamma 2 "))
    clf = KernelSVC(**FAST, gamma=[0.1, 0.3, 1.0]).set_callbacks(recorder).fit(X, y)
    two = KernelSVC(**FAST, gamma=[0.1, 0.3]).fit(X, y)
    assert clf.gammas_.tolist() == [0.1, 0.3]
    np.testing.assert_array_equal(clf.scores_, two.scores_)
    np.testing.assert_array_equal(clf.decision_function(X), two.decision_function(X))


def test_exception_in_a_callback_stops_the_fit(data):
    def stop(context):
        raise RuntimeError("enough")

    recorder = Recorder(stop)
    clf = KernelSVC(**FAST).set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="enough"):
        clf.fit(*data)
    assert recorder.log == ["setup", "teardown"]
    assert not hasattr(clf, "C_")


def test_failed_fit_is_torn_down(data):
    X, y = data
    recorder = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        KernelSVC(**FAST, gamma=0.3).set_callbacks(recorder).fit(np.where(X > 1.0, np.nan, X), y)
    assert recorder.log == ["setup", "teardown"]


def test_with_verbose(data, capfd):
    recorder = Recorder()
    KernelSVC(**FAST, verbose=1).set_callbacks(recorder).fit(*data)
    assert "path 12/12" in capfd.readouterr().err
    assert leaves(recorder.ended, "model") == 12


def test_warnings_point_at_the_call_of_fit(data):
    X, y = data
    with pytest.warns(ConvergenceWarning) as record:
        KernelSVC(**FAST, max_iter=1).fit(X, y)
    assert record[0].filename == __file__


def test_inside_pipeline_and_search(data):
    X, y = data
    recorder = Recorder()
    pipeline = make_pipeline(StandardScaler(), NystromFeatures(n_landmarks=10, random_state=0), KernelSVC(**FAST))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it warns of an estimator without support
        pipeline.set_callbacks(recorder).fit(X, y)
    assert recorder.log == ["setup", "teardown"]
    assert leaves(recorder.ended, "model") == 12
    assert sorted(recorder.begun) == sorted(recorder.ended)
    names = [of for of, _ in recorder.models]
    assert len(names) >= 2

    recorder = Recorder()
    search = GridSearchCV(KernelSVC(**FAST), {"kernel": ["rbf", "linear"]}, cv=2).set_callbacks(recorder)
    search.fit(X, y)
    assert recorder.log == ["setup", "teardown"]
    assert leaves(recorder.ended, "model") == (2 * 2 + 1) * 12


def test_scoring_monitor(data):
    X, y = data
    monitor = callback.ScoringMonitor(scoring="accuracy")
    clf = KernelSVC(**FAST).set_callbacks(monitor).fit(X, y)
    (row,) = monitor.get_logs().data
    assert row["accuracy"] == clf.score(X, y)


def test_clone_and_pickle_keep_working(data):
    X, y = data
    clf = KernelSVC(**FAST).set_callbacks(callback.ScoringMonitor(scoring="accuracy")).fit(X, y)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))
    clone(clf).fit(X, y)


@pytest.mark.parametrize("gamma", [0.3, [0.1, 0.3]])
def test_progress_bar(data, capfd, gamma):
    pytest.importorskip("rich", reason="the progress bar of scikit-learn needs rich")
    KernelSVC(**FAST, gamma=gamma).set_callbacks(callback.ProgressBar()).fit(*data)
    shown = capfd.readouterr().out
    assert "KernelSVC - fit" in shown
    assert "KernelSVC - path" in shown
    assert "100%" in shown
    assert ("gamma 2 of 2 (0.3)" in shown) == isinstance(gamma, list)
