"""Threads, time, interruption and progress."""

import contextlib
import io
import os
import re
import sys
import textwrap
import time

import numpy as np
import pytest
from children import interrupted_in
from sklearn.exceptions import ConvergenceWarning

from kernelpath import KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, _core, _progress
from kernelpath.datasets import make_mixture


def results(clf):
    arrays = (clf.scores_, clf.gaps_, clf.oof_path_, clf.dual_coef_, clf.intercept_, clf.support_, clf.n_iter_)
    return [array.tobytes() for array in arrays] + [clf.gamma_, clf.C_, clf.objective_]


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_do_not_depend_on_threads_or_run(kernel, dtype):
    X, y = make_mixture(500, 7, random_state=0)
    first, *others = (
        results(KernelSVC(kernel=kernel, dtype=dtype, Cs=8, cv=4, n_jobs=n_jobs, random_state=0).fit(X, y))
        for n_jobs in (1, 2, 4, 2)
    )
    assert all(other == first for other in others)


@pytest.mark.parametrize("cv", ["loo", None])
def test_loo_and_single_fits_do_not_depend_on_threads(cv):
    X, y = make_mixture(150, 4, random_state=1)
    first, *others = (
        results(KernelSVC(Cs=[1.0, 30.0] if cv else 1.0, cv=cv, n_jobs=n_jobs, random_state=0).fit(X, y))
        for n_jobs in (1, 2, 4)
    )
    assert all(other == first for other in others)


@pytest.mark.parametrize(("n", "p", "seed"), [(300, 3, 0), (1000, 5, 1), (1500, 10, 2)])
@pytest.mark.parametrize("solver", ["auto", "spectral"])
def test_low_rank_does_not_depend_on_threads(n, p, seed, solver):
    X, y = make_mixture(n, p, random_state=seed)
    curve = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    settings = {"low_rank": True, "n_landmarks": 40, "solver": solver, "Cs": 4, "cv": 3, "random_state": 0}
    for model, target in (
        (KernelSVC(**settings), y),
        (KernelLogistic(**settings), y),
        (KernelQuantile(tau=0.3, **settings), curve),
        (KernelRegressor(loss="huber", **settings), curve),
    ):
        first, *others = (bits(model.set_params(n_jobs=n_jobs).fit(X, target)) for n_jobs in (1, 2, 3))
        assert all(other == first for other in others), model


def bits(model):
    arrays = (model.scores_, model.gaps_, model.oof_path_, model.dual_coef_, model.intercept_, model.n_iter_)
    return [np.asarray(array).tobytes() for array in arrays]


def test_predictions_do_not_depend_on_threads():
    X, y = make_mixture(400, 5, random_state=0)
    clf = KernelSVC(Cs=1.0, cv=None, random_state=0).fit(X, y)
    one, four = (clf.set_params(n_jobs=n).decision_function(X) for n in (1, 4))
    np.testing.assert_array_equal(one, four)
    np.testing.assert_allclose(clf.decision_function(X[:1]), one[:1], rtol=1e-12, atol=1e-12)


CHILD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored
import sys
import numpy as np
from kernelpath import _core
from kernelpath._tuning import Task
rng = np.random.RandomState(0)
X = rng.standard_normal(({n}, {p}))
y = np.where(rng.rand({n}) < 0.5, 1.0, -1.0)
rows = np.arange({n})
folds = [(rows[rows % 5 != k], rows[rows % 5 == k]) for k in range(5)]
phases = []
def progress(done, total, phase):
    phase = phase if done else "start"
    if not phases or phases[-1] != phase:
        phases.append(phase)
        print(phase, flush=True)
progress(0, 0, "kernel")
try:
    _core.fit_paths(
        X, [Task("hinge", 0.0, y)], solver="auto", kernel="laplacian", gamma=1.0 / {p}, degree=3, coef0=0.0,
        cs=np.logspace(-2, 6, 60), folds=folds,
        tol=1e-12, max_iter=10**9, dtype="float32", n_threads=2, time_budget=None, progress=progress,
    )
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(0)
print("not interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize(("phase", "n", "p"), [("start", 12_000, 1000), ("kernel", 6000, 4000), ("path", 3000, 5)])
def test_interrupt_is_heard_within_a_second(phase, n, p):
    """While the data is read and the matrix allocated, while it is filled, and while models are solved."""
    output, seconds = interrupted_in(phase, textwrap.dedent(CHILD.format(n=n, p=p)))
    assert output.strip() == "interrupted"
    assert seconds < 1.0


def test_exception_in_progress_stops_the_fit(monkeypatch):
    class StopNowError(Exception):
        pass

    def stop(self, done, total, phase):
        raise StopNowError

    monkeypatch.setattr(_progress.ProgressLine, "__call__", stop)
    X, y = make_mixture(2000, 10, random_state=0)
    with pytest.raises(StopNowError):
        KernelSVC(Cs=30, cv=5, verbose=1, random_state=0).fit(X, y)


def test_time_budget_returns_the_best_found_and_says_so():
    X, _ = make_mixture(3000, 10, random_state=0)
    y = np.where(np.random.RandomState(0).rand(3000) < 0.5, 1, -1)  # noise, which is slow at large C
    started = time.monotonic()
    with pytest.warns(ConvergenceWarning, match=r"time_budget=1\.5 s ended the fit: \d+ of 600 models were not run"):
        clf = KernelSVC(Cs=np.logspace(-4, 5, 100), cv=5, tol=1e-11, time_budget=1.5, random_state=0).fit(X, y)
    assert time.monotonic() - started < 4.0
    assert clf.timed_out_
    not_run = clf.status_ == "not_run"
    assert not_run.any()
    assert np.isinf(clf.gaps_[not_run]).all()
    assert np.isnan(clf.scores_[not_run[:-1]]).all()
    assert np.isfinite(clf.gaps_[-1, clf.best_index_])
    assert clf.status_[-1, clf.best_index_] != "not_run"
    assert clf.predict(X).shape == (3000,)
    assert "not_run" in clf.path_table()


def test_time_budget_shorter_than_the_kernel():
    X, y = make_mixture(3000, 200, random_state=0)
    with pytest.raises(TimeoutError, match="time_budget"):
        KernelSVC(time_budget=1e-6, gamma=0.01, random_state=0).fit(X, y)


def test_ample_time_budget_changes_nothing():
    X, y = make_mixture(200, 5, random_state=0)
    with_budget, without = (
        KernelSVC(Cs=5, cv=3, time_budget=budget, random_state=0).fit(X, y) for budget in (1e3, None)
    )
    assert results(with_budget) == results(without)
    assert not with_budget.timed_out_


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_in_a_terminal_without_tqdm(monkeypatch):
    monkeypatch.setattr(_progress, "_tqdm", lambda: None)
    stream = Terminal()
    with _progress.ProgressLine("KernelSVC", stream) as progress:
        progress(0, 0, "kernel")
        progress(1, 4, "kernel")
        progress(100, 550, "path")
        progress(550, 550, "path")
    text = stream.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert [part.split(",")[0].strip() for part in text.split("\r")[1:]] == [
        "KernelSVC: kernel 1/4 (25 %)",
        "KernelSVC: path 100/550 (18 %)",
        "KernelSVC: path 550/550 (100 %)",
    ]


def test_progress_in_a_terminal_with_tqdm():
    pytest.importorskip("tqdm")
    stream = Terminal()
    with _progress.ProgressLine("KernelSVC", stream) as progress:
        progress(0, 0, "kernel")  # before the total is known
        progress(1, 4, "kernel")
        progress(4, 4, "kernel")
        progress(550, 550, "path")
    lines = [line.strip() for line in stream.getvalue().split("\r") if line.strip()]
    assert all(line.startswith("KernelSVC: ") for line in lines)
    assert "KernelSVC: kernel" in lines[0]
    assert "KernelSVC: path: 100%" in lines[-1]
    assert "550/550" in lines[-1]
    assert "models" in lines[-1]


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
@pytest.mark.parametrize("with_tqdm", [False, True])
def test_progress_says_which_gamma(monkeypatch, kind, with_tqdm):
    if not with_tqdm:
        monkeypatch.setattr(_progress, "_tqdm", lambda: None)
    elif _progress._tqdm() is None:
        pytest.skip("tqdm is not installed")
    X, y = make_mixture(200, 5, random_state=0)
    stream = kind()
    monkeypatch.setattr(sys, "stderr", stream)
    KernelSVC(Cs=4, cv=3, gamma=[0.05, 0.2, 1.0], random_state=0, verbose=1).fit(X, y)
    text = stream.getvalue()
    for k, gamma in enumerate(("0.05", "0.2", "1"), start=1):
        assert f"KernelSVC: gamma {k} of 3 ({gamma}), path" in text
    assert "16/16" in text
    monkeypatch.setattr(sys, "stderr", stream := kind())
    KernelSVC(Cs=4, cv=3, gamma=0.2, random_state=0, verbose=1).fit(X, y)
    assert "KernelSVC: path" in stream.getvalue()
    assert "gamma" not in stream.getvalue()


class LiveFile(io.TextIOWrapper):
    def isatty(self):
        return True


def stream_of_no_use(kind, file):
    """A standard error that nothing can be written to."""
    if kind == "missing":
        return None
    if kind == "closed":
        stream = file(open(os.devnull, "wb"))  # noqa: SIM115 (closed at once)
        stream.close()
        return stream
    reading, writing = os.pipe()
    os.close(reading)
    return file(open(writing, "wb", buffering=0))


@pytest.mark.parametrize("kind", ["missing", "closed", "broken pipe"])
@pytest.mark.parametrize("file", [io.TextIOWrapper, LiveFile])
@pytest.mark.parametrize("with_tqdm", [False, True])
def test_verbose_survives_a_stderr_that_cannot_be_written(monkeypatch, kind, file, with_tqdm):
    if not with_tqdm:
        monkeypatch.setattr(_progress, "_tqdm", lambda: None)
    X, y = make_mixture(200, 5, random_state=0)
    silent = KernelSVC(Cs=8, cv=3, gamma=[0.1, 0.3], random_state=0).fit(X, y)
    stream = stream_of_no_use(kind, file)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        clf = KernelSVC(Cs=8, cv=3, gamma=[0.1, 0.3], random_state=0, verbose=1).fit(X, y)
    assert results(clf) == results(silent)
    if kind == "broken pipe":
        with contextlib.suppress(BrokenPipeError):
            stream.close()


def test_progress_in_a_log_is_sparse():
    stream = io.StringIO()
    with _progress.ProgressLine("KernelSVC", stream) as progress:
        for done in range(551):
            progress(done, 550, "path")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert "\r" not in stream.getvalue()
    assert lines[-1].startswith("KernelSVC: path 550/550 (100 %)")


def test_verbose_shows_progress_and_silence_is_silent(capfd):
    X, y = make_mixture(300, 5, random_state=0)
    KernelSVC(Cs=20, cv=5, random_state=0).fit(X, y)
    assert capfd.readouterr() == ("", "")
    KernelSVC(Cs=20, cv=5, random_state=0, verbose=1).fit(X, y)
    out, err = capfd.readouterr()
    assert out == ""
    assert re.search(r"KernelSVC: path 120/120 \(100 %\)", err)


def test_available_memory_is_plausible():
    assert 1 << 20 < _core.available_memory() < 1 << 50


def test_threads_release_the_gil():
    """Another Python thread runs while a fit is under way."""
    import threading

    X, y = make_mixture(1500, 10, random_state=0)
    fit = threading.Thread(target=lambda: KernelSVC(Cs=30, cv=5, random_state=0, n_jobs=1).fit(X, y))
    fit.start()
    ticks = 0
    while fit.is_alive():
        time.sleep(0.002)
        ticks += 1
    fit.join()
    assert ticks > 5
