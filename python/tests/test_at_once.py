"""A fit changes an estimator at its end and all at once, or not at all; what it learned does not hang on parameters."""

import os
import pickle
import signal
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import make_scorer, mean_absolute_error

from kernelpath import (
    KernelDWD,
    KernelLogistic,
    KernelQuantile,
    KernelRegressor,
    KernelSVC,
    KernelSVR,
    NystromFeatures,
    _core,
)
from kernelpath._saved import FEATURES, STATE
from kernelpath.datasets import make_mixture
from kernelpath.torchkm import TorchKMDWD, TorchKMKQR, TorchKMLogit, TorchKMSVC
from kernelpath.torchkm import estimators as torchkm_estimators
from kernelpath.torchkm._paths import LEARNED
from kernelpath.torchkm.low_level import cvknyssvm, cvkqr, cvksvm

FAST = {"Cs": [0.1, 1.0], "cv": 2, "random_state": 0}

MODELS = {
    "svc": KernelSVC(**FAST),
    "svc with probabilities": KernelSVC(**FAST, probability=True),
    "svc at low rank": KernelSVC(**FAST, low_rank=True, n_landmarks=20),
    "logistic": KernelLogistic(**FAST),
    "multinomial": KernelLogistic(**FAST, multi_class="multinomial"),
    "dwd": KernelDWD(**FAST, gamma=[0.1, 1.0]),
    "svr": KernelSVR(**FAST),
    "quantiles": KernelQuantile(**FAST, tau=[0.8, 0.2], noncrossing="sort"),
    "huber": KernelRegressor(**FAST, loss="huber"),
    "expectile without its path": KernelRegressor(**FAST, loss="expectile", keep_path=False),
    "features": NystromFeatures(n_landmarks=20),
    "torchkm svc": TorchKMSVC(nC=3, cv=2, random_state=0, probability=True, store_path=True),
    "torchkm dwd": TorchKMDWD(nC=3, cv=2, random_state=0, low_rank=True, num_landmarks=20, nys_k=10),
    "torchkm logit": TorchKMLogit(nC=3, cv=2, random_state=0),
    "torchkm kqr": TorchKMKQR(nC=3, cv=2, random_state=0),
}


def data(model):
    X, y = make_mixture(60, 3, random_state=0)
    return X, (np.where(y > 0, "spam", "ham") if is_classifier(model) else X[:, 0] + 0.3 * y)


def other_data(model):
    """More columns, other labels (of three classes, where these are taken) and other numbers."""
    X, y = make_mixture(70, 4, random_state=1)
    if not is_classifier(model):
        return X, 10.0 * X[:, 1]
    if isinstance(model, TorchKMSVC | TorchKMDWD | TorchKMLogit):
        return X, np.where(y > 0, "cat", "dog")
    return X, np.array(["bird", "cat", "dog"])[np.digitize(X[:, 0], [-0.5, 0.5])]


def answers(model, X):
    if isinstance(model, NystromFeatures):
        return model.transform(X)
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def state(model):
    """All that a model is, to the last bit, and the very objects that it consists of."""
    inner = getattr(model, "estimator_", None)
    return (
        pickle.dumps(model),
        {name: id(value) for name, value in vars(model).items()},
        None if inner is None else state(inner),
    )


def raising(*_, **__):
    raise ZeroDivisionError("on purpose")


class Folds:
    """A splitter."""

    split = get_n_splits = raising


class Raises:
    """A callback that raises at the end of a fit, or thereafter."""

    max_propagation_depth = None

    def __init__(self, at):
        self.at = at

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        if self.at == "teardown":
            raising()

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if self.at == "end" and context.parent is None:
            raising()


def with_nan(model):
    X, y = other_data(model)
    X[5, 1] = np.nan
    return model, (X, y)


def with_infinite_targets(model):
    X, y = other_data(model)
    y = np.ones(len(y)) if is_classifier(model) else np.where(np.arange(len(y)) == 3, np.inf, y)  # one class
    return model, (X, y)


def with_a_raising_kernel(model):
    if isinstance(model, TorchKMSVC | TorchKMDWD | TorchKMLogit | TorchKMKQR):
        return model.set_params(kernel="sigmoid"), other_data(model)  # which TorchKM does not have
    return model.set_params(kernel=raising), other_data(model)


def with_a_raising_scorer(model):
    scorer = make_scorer(raising)
    return model.set_params(scoring=scorer), other_data(model)


def with_raising_folds(model):
    if isinstance(model, TorchKMSVC | TorchKMDWD | TorchKMLogit | TorchKMKQR):
        return model.set_params(foldid=[1, 2]), other_data(model)  # which are not all rows
    return model.set_params(cv=Folds()), other_data(model)


def with_a_callback_that_raises_at_the_end(model):
    return model.set_callbacks(Raises("end")), other_data(model)


def with_a_callback_that_raises_at_its_teardown(model):
    return model.set_callbacks(Raises("teardown")), other_data(model)


def with_a_warning_as_an_error(model):
    return model.set_params(tol=1e-300), other_data(model)


def with_too_few_rows(model):
    X, y = other_data(model)
    return model, (X[:1], y[:1])


def with_the_lengths_of_others(model):
    X, y = other_data(model)
    return model, (X[:40], y)


FAILURES = [
    with_nan,
    with_infinite_targets,
    with_a_raising_kernel,
    with_a_raising_scorer,
    with_raising_folds,
    with_a_callback_that_raises_at_the_end,
    with_a_callback_that_raises_at_its_teardown,
    with_a_warning_as_an_error,
    with_too_few_rows,
    with_the_lengths_of_others,
]


def applies(name, failure):
    """Whether this estimator can fail in this way."""
    model = MODELS[name]
    if failure in (with_a_callback_that_raises_at_the_end, with_a_callback_that_raises_at_its_teardown):
        return hasattr(model, "set_callbacks")
    if isinstance(model, NystromFeatures):
        return failure in (with_nan, with_a_raising_kernel, with_too_few_rows)
    if name.startswith("torchkm"):
        return failure not in (with_a_raising_scorer, with_a_warning_as_an_error)
    return True


CASES = [(name, failure) for name in MODELS for failure in FAILURES if applies(name, failure)]


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "failure"), CASES)
def test_a_failed_refit_changes_nothing(name, failure):
    model = clone(MODELS[name])
    X, y = data(model)
    expected = answers(model.fit(X, y), X)
    model, given = failure(model)
    before = state(model)
    with pytest.raises((ValueError, ZeroDivisionError, ConvergenceWarning)):
        model.fit(*given)
    assert state(model) == before
    np.testing.assert_array_equal(answers(model, X), expected)
    if is_classifier(model):
        assert set(model.predict(X)) == {"ham", "spam"}


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "failure"), CASES)
def test_a_failed_first_fit_leaves_an_estimator_that_is_not_fitted(name, failure):
    model, given = failure(clone(MODELS[name]))
    before = state(model)
    with pytest.raises((ValueError, ZeroDivisionError, ConvergenceWarning)):
        model.fit(*given)
    assert state(model) == before
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        answers(model, given[0])


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_sets_what_it_is_known_to_set(name):
    """A name that is missing there would live on from one fit to the next."""
    model = clone(MODELS[name])
    names = vars(model.fit(*data(model))).keys() - model.get_params().keys()
    known = FEATURES if isinstance(model, NystromFeatures) else STATE
    assert names <= (torchkm_estimators.LEARNED if name.startswith("torchkm") else known)


@pytest.mark.parametrize("name", MODELS)
def test_a_refit_keeps_nothing_of_the_first_fit(name):
    pd = pytest.importorskip("pandas")
    model = clone(MODELS[name])
    X, y = data(model)
    model.fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    model.mine = "kept"
    plain = {"probability": False, "low_rank": False, "n_landmarks": 2000}
    fresh = clone(model).set_params(**{n: v for n, v in plain.items() if n in model.get_params()})
    model.set_params(**fresh.get_params()).fit(X, y)
    assert model.mine == "kept"
    assert vars(model).keys() - {"mine"} == vars(fresh.fit(X, y)).keys()


@pytest.mark.parametrize("kind", [cvksvm, cvkqr, cvknyssvm])
def test_low_level_classes_too(kind, monkeypatch):
    X, y = make_mixture(40, 3, random_state=0)
    own = {"Xmat": X, "X_test": None} if kind is cvknyssvm else {"Kmat": X @ X.T + np.eye(40)}
    own |= {"tau": 0.4} if kind is cvkqr else {}
    model = kind(y=y, nlam=2, ulam=[0.1, 0.01], nfolds=2, **own)

    def fails():
        before = dict(vars(model))
        monkeypatch.setattr(_core, "fit", raising)
        with pytest.raises(ZeroDivisionError):
            model.fit()
        monkeypatch.undo()
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())

    fails()
    names = vars(model).keys()
    model.fit()
    assert vars(model).keys() - names <= LEARNED
    fails()


def identities(model):
    return {name: id(value) for name, value in vars(model).items()}


def interrupted_at(moment, model, given):
    """Fit while a KeyboardInterrupt comes at the given line of our own code; whether it came."""
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        if "kernelpath" not in frame.f_code.co_filename:
            return None
        lines += 1
        if lines == moment:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        model.fit(*given)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("name", MODELS)
def test_interrupted_at_any_line(name):
    """The model is the former one, to the last bit and object: none of the new one is seen before all is."""
    model = clone(MODELS[name])
    old, new = data(model), other_data(model)
    expected, before = answers(model.fit(*old), old[0]), state(model)
    moment = 1
    while interrupted_at(moment, model, new):
        assert state(model) == before, moment
        moment += 1 + moment // 3
    assert moment > 100
    assert state(model) != before
    model.fit(*old)
    np.testing.assert_array_equal(answers(model, old[0]), expected)


def test_nobody_sees_a_part_of_a_fit():
    """Line by line, an estimator is what it was until it is all that it will be."""
    model = clone(MODELS["svc with probabilities"]).fit(*data(KernelSVC()))
    seen = []

    def trace(frame, event, argument):
        if "kernelpath" in frame.f_code.co_filename and identities(model) not in seen:
            seen.append(identities(model))
        return trace

    sys.settrace(trace)
    try:
        model.fit(*other_data(KernelDWD()))
    finally:
        sys.settrace(None)
    assert len(seen) == 2
    learned = ("_kernel", "_learned", "_parts", "classes_", "dual_coef_", "intercept_", "calibration_", "gaps_")
    assert all(seen[0][name] != seen[1][name] for name in learned)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send")
@pytest.mark.parametrize("name", ["svc with probabilities", "quantiles", "features", "torchkm svc"])
def test_interrupted_by_a_signal(name):
    """Ctrl-C at random moments of refits: the model is the former one or the new one, and never a mixture."""
    model = clone(MODELS[name])
    old, new = data(model), other_data(model)
    old_answers = answers(model.fit(*old), old[0])
    started = time.perf_counter()
    new_answers = answers(clone(model).fit(*new), new[0])
    seconds = time.perf_counter() - started
    rng, interrupted = np.random.default_rng(0), 0
    for _ in range(20):
        model.fit(*old)
        before = identities(model)
        timer = threading.Timer(rng.uniform(0.0, seconds), os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            model.fit(*new)
            timer.join()
            time.sleep(0.01)  # in which the signal arrives
        except KeyboardInterrupt:
            interrupted += 1
        timer.join()
        if identities(model) == before:
            np.testing.assert_array_equal(answers(model, old[0]), old_answers)
        else:
            np.testing.assert_array_equal(answers(model, new[0]), new_answers)
    assert interrupted > 5


def product(X, Z):
    return (X @ Z.T + 1.0) ** 2


OTHER_PARAMETERS = {
    "kernel": ["linear", "precomputed", raising],
    "gamma": [0.7, [0.1, 0.2]],
    "degree": [5],
    "coef0": [9.0],
    "dtype": ["float32"],
    "noncrossing": [None, "sort"],
    "tau": [0.5, [0.1, 0.9]],
    "probability": [False, True, "isotonic"],
    "multi_class": ["ovr", "multinomial"],
    "low_rank": [True, False],
    "loss": ["squared_hinge"],
    "cv": [None],
}


@pytest.mark.parametrize("kernel", ["rbf", "precomputed", product])
@pytest.mark.parametrize("name", MODELS)
def test_what_was_fitted_predicts_whatever_the_parameters_say(name, kernel):
    if name.startswith("torchkm") and callable(kernel):
        return
    model = clone(MODELS[name]).set_params(kernel=kernel)
    if kernel != "rbf" and (name in ("features", "svc at low rank")):
        model.set_params(landmarks="uniform")
    X, y = data(model)
    rows = product(X, X) if kernel == "precomputed" else X
    if "gamma" in model.get_params():
        model.set_params(gamma=0.3)
    expected = answers(model.fit(rows, y), rows)
    has_probabilities = hasattr(model, "predict_proba")
    certificate = model.verify(rows, y) if hasattr(model, "verify") else None
    fitted = model.get_params()
    for parameter in OTHER_PARAMETERS.keys() & fitted.keys():
        for value in OTHER_PARAMETERS[parameter]:
            model.set_params(**{parameter: value})
            got = answers(model, rows)
            np.testing.assert_array_equal(got, expected, err_msg=f"{parameter}={value}")
            assert got.dtype == expected.dtype
            again = pickle.loads(pickle.dumps(model))
            np.testing.assert_array_equal(answers(again, rows), expected, err_msg=f"{parameter}={value}")
            if has_probabilities:
                assert model.predict_proba(rows).shape == (len(y), 2)
            if certificate is not None and parameter == "kernel":
                np.testing.assert_array_equal(model.verify(rows, y), certificate)
        model.set_params(**{parameter: fitted[parameter]})


def test_scorers_and_callbacks_see_no_half_of_a_model():
    """While a fit runs, the estimator is what it was, for all who look."""
    X, y = data(KernelSVC())
    seen = []

    def look(truth, predicted):
        seen.append(vars(model).get("C_"))
        model.looks = len(seen)
        return -mean_absolute_error(truth == "spam", predicted == "spam")

    model = KernelSVC(**FAST, scoring=make_scorer(look))
    model.fit(X, y)
    assert set(seen) == {None}
    assert model.looks == len(seen)  # what others keep on it stays
    seen.clear()
    former = model.C_
    model.set_params(Cs=[0.5, 2.0]).fit(X, y)
    assert set(seen) == {former}
    assert former not in (0.5, 2.0)
    assert model.C_ in (0.5, 2.0)
