"""Threads, time, interruption and progress."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from children import finished_within, interrupted_in
from joblib import Parallel, delayed, parallel_config
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from kernelpath import KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, _core, _progress
from kernelpath._settings import n_threads
from kernelpath.datasets import make_mixture

HERE = Path(__file__).parent
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork and /proc of Linux")


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
sys.path.insert(0, {here!r})
import numpy as np
from paths import fit_path
rng = np.random.RandomState(0)
X = rng.standard_normal(({n}, {p}))
y = np.where(rng.rand({n}) < 0.5, 1.0, -1.0)
rows = np.arange({n})
folds = [(rows[rows % 5 != k], rows[rows % 5 == k]) for k in range(5)]
phases = []
class Progress:
    def __call__(self, done, total, phase):
        phase = phase if done else "start"
        if not phases or phases[-1] != phase:
            phases.append(phase)
            print(phase, flush=True)
    def begin_gamma(self, at, gammas):
        pass
    def end_gamma(self):
        return False
Progress()(0, 0, "kernel")
try:
    fit_path(
        X, "hinge", 0.0, y, kernel="laplacian", gamma=1.0 / {p}, cs=np.logspace(-2, 6, 60), folds=folds,
        tol=1e-12, max_iter=10**9, dtype="float32", n_threads=2, watch=Progress(),
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
    output, seconds = interrupted_in(phase, textwrap.dedent(CHILD.format(n=n, p=p, here=str(HERE))))
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
    with pytest.warns(ConvergenceWarning, match=r"time_budget=1\.5 s ended the fit: \d+ of 12000 models were not run"):
        clf = KernelSVC(Cs=np.logspace(-4, 5, 2000), cv=5, tol=1e-11, time_budget=1.5, random_state=0).fit(X, y)
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
    X, y = make_mixture(1500, 10, random_state=0)
    fit = threading.Thread(target=lambda: KernelSVC(Cs=30, cv=5, random_state=0, n_jobs=1).fit(X, y))
    fit.start()
    ticks = 0
    while fit.is_alive():
        time.sleep(0.002)
        ticks += 1
    fit.join()
    assert ticks > 5


@pytest.fixture(scope="module")
def forked():
    """Every estimator and engine, used in a process and then in children forked from it."""
    found = {}
    command = [sys.executable, str(HERE / "forked.py")]
    for line in subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout.splitlines():
        result = json.loads(line)
        found[result["case"]] = result
    return found


FORKED = re.findall(r'^    "(.*)": lambda', (HERE / "forked.py").read_text(), flags=re.MULTILINE)


@LINUX
@pytest.mark.parametrize("case", FORKED)
def test_a_forked_process_gives_the_same_answer(forked, case):
    """It hung where the parent kept a pool of threads, none of which are forked."""
    assert (forked[case]["code"], forked[case]["said"]) == (0, "same")


@LINUX
@pytest.mark.parametrize("case", FORKED)
def test_no_thread_outlives_its_call(forked, case):
    assert forked[case]["threads_left"] == 0


FIT_IN_POOL = """
import multiprocessing
from joblib import Parallel, delayed, parallel_config
from scipy import sparse
from kernelpath import KernelSVC
from kernelpath.datasets import make_mixture

X, y = make_mixture(100, 3, random_state=0)
def fit(C):
    return KernelSVC(Cs=C, cv=None, random_state=0).fit(X, y).objective_

here = [fit(0.1), fit(1.0)]
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map_async(fit, [0.1, 1.0]).get(timeout=60) == here)
with parallel_config(backend="multiprocessing"):
    print(Parallel(n_jobs=2, timeout=60)(delayed(fit)(C) for C in (0.1, 1.0)) == here)
"""


@LINUX
def test_pools_of_processes_after_a_fit():
    assert finished_within(180, FIT_IN_POOL).split() == ["True", "True"]


THREAD_VARIABLES = ("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


@pytest.fixture
def no_limits(monkeypatch):
    for variable in THREAD_VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def threads_for(n_jobs):
    return _core.count_threads(n_threads(n_jobs))


def cores():
    """As many as this process may use."""
    return _core.count_threads(-1)


@LINUX
def test_threads_are_those_of_the_cores_that_the_process_may_use(no_limits):
    all_cores = os.sched_getaffinity(0)
    assert 1 <= cores() <= len(all_cores)
    assert threads_for(None) == threads_for(-1) == cores()
    try:
        os.sched_setaffinity(0, {min(all_cores)})
        assert [threads_for(n_jobs) for n_jobs in (None, -1, -2, 3)] == [1, 1, 1, 3]
    finally:
        os.sched_setaffinity(0, all_cores)


def test_fewer_cores_than_all():
    assert [threads_for(-k) for k in (1, 2, 3)] == [max(1, cores() - k) for k in (0, 1, 2)]
    assert threads_for(-10_000) == 1
    assert threads_for(3) == 3


@pytest.mark.parametrize("variable", THREAD_VARIABLES)
def test_the_environment_asks_for_fewer_threads(variable, no_limits, monkeypatch):
    for limit, expected in (("1", 1), ("1,4,4", 1), ("100000", cores()), ("nonsense", cores()), ("0", cores())):
        monkeypatch.setenv(variable, limit)
        assert threads_for(None) == expected
        assert threads_for(-1) == cores()


def threads_of_default():
    return threads_for(None)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_processes_of_joblib_share_the_cores(n_jobs, no_limits):
    with parallel_config(backend="loky"):
        found = Parallel(n_jobs=n_jobs)(delayed(threads_of_default)() for _ in range(n_jobs))
    assert set(found) == {max(1, cores() // n_jobs)}


def test_threads_of_joblib_take_one_thread_each():
    with parallel_config(backend="threading"):
        assert Parallel(n_jobs=2)(delayed(threads_of_default)() for _ in range(2)) == [1, 1]
    with parallel_config(n_jobs=1):
        assert threads_of_default() == 1


@LINUX
@pytest.mark.parametrize(("n_jobs", "limit"), [(1, None), (3, None), (None, "1")])
def test_a_fit_starts_as_many_threads_as_it_says(n_jobs, limit, monkeypatch):
    """Also for the bandwidth."""
    if limit is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
    expected = threads_for(n_jobs)
    X, y = make_mixture(1000, 10, random_state=0)
    fit = threading.Thread(target=KernelSVC(Cs=20, cv=5, random_state=0, n_jobs=n_jobs).fit, args=(X, y))
    fit.start()
    seen = set()
    while fit.is_alive():
        seen |= workers()
        time.sleep(0.001)
    fit.join()
    assert seen == {f"kernelpath-{k}" for k in range(expected)}


def workers():
    """Names of the threads of our pools: numbers in a pool, of which one may end while the next begins."""
    names = set()
    for comm in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it ended
            names.add(comm.read_text().strip())
    return {name for name in names if name.startswith("kernelpath-")}


FEW_ROWS = """
import resource
import numpy as np
from memory_ladder import address_space
from kernelpath import KernelLogistic, KernelSVC, NystromFeatures
from kernelpath.datasets import make_mixture

X, y = make_mixture(300, 5, random_state=0)
kinds = np.digitize(X[:, 0], [-0.5, 0.5])
models = [
    kind(Cs=1.0, cv=None, low_rank=low_rank, n_landmarks=100, random_state=0).fit(X, labels)
    for kind in (KernelSVC, KernelLogistic) for low_rank in (False, True) for labels in (y, kinds)
]
features = NystromFeatures(random_state=0).fit(X)
expected = [model.decision_function(X[:3]) for model in models]
limit = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (address_space() + (16 << 20), limit[1]))  # no thread is started in so little
found = [model.decision_function(X[:3]) for model in models]
features.transform(X[:3])
try:
    models[0].predict(np.tile(X, (100, 1)))
except MemoryError as error:
    print(all(map(np.array_equal, found, expected)), "thread" in str(error))
"""


@LINUX
def test_few_rows_start_no_threads():
    """No estimator needs threads for them, where many rows do."""
    child = subprocess.run(
        [sys.executable, "-c", FEW_ROWS], capture_output=True, text=True, timeout=120, check=False, cwd=HERE
    )
    assert child.returncode == 0, child.stderr[-4000:]
    assert child.stdout.split() == ["True", "True"]


CHANGING = ["dense float64", "dense float32", "sparse data", "sparse indices", "sparse indptr"]


@pytest.mark.parametrize("case", CHANGING)
def test_data_that_change_during_a_fit_do_no_harm(case):
    """A model or an exception, never the end of the process."""
    child = subprocess.run(
        [sys.executable, str(HERE / "changing.py"), case], capture_output=True, text=True, timeout=120, check=False
    )
    assert child.returncode == 0, child.stderr[-4000:]
    ended, *failed = child.stdout.split()
    assert int(ended) + len(failed) > 0
    assert set(failed) <= {"ValueError", "RuntimeError"}


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear", "matern52", "sigmoid"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.asfortranarray, "strided", "sparse"])
def test_one_row_has_the_value_that_it_has_among_many(kernel, kind):
    """One row is read where the support vectors lie, many are packed."""
    rng = np.random.default_rng(0)
    p, n = 7, 600
    V, Z, coef, b = rng.normal(size=(n, p)), rng.normal(size=(40, p)), rng.normal(size=(3, n)), rng.normal(size=3)
    V, Z = (as_kind(rows, kind) for rows in (V, Z))
    arguments = {"kernel": kernel, "gamma": 0.2, "degree": 2, "coef0": 0.5}
    many = _core.decision(Z, V, coef, b, **arguments)
    K = _core.kernel_matrix(Z, V, **arguments)
    np.testing.assert_allclose(many, K @ coef.T + b, rtol=1e-12, atol=1e-11)
    one = np.vstack([_core.decision(Z[i : i + 1], V, coef, b, **arguments) for i in range(40)])
    np.testing.assert_allclose(one, many, rtol=1e-12, atol=1e-11)
    transposed = np.asfortranarray(coef)
    np.testing.assert_allclose(_core.decision(Z[:1], V, transposed, b, **arguments), one[:1], rtol=1e-12, atol=1e-11)


def as_kind(rows, kind):
    if kind == "strided":
        return np.repeat(np.repeat(rows, 2, axis=0), 3, axis=1)[::2, ::3]
    return sparse.csr_matrix(np.where(rows > 0.0, rows, 0.0)) if kind == "sparse" else kind(rows)
