"""The peers, on the folds, bandwidth and C's of a fit of kernelpath.

liquidSVM and TorchKM run in an interpreter of their own: KERNELPATH_PEERS, or the one that `make peers` and
`make peers-torch` install into.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.svm import SVC, LinearSVC

from measure import FOLDS, SEED, NotAvailable, median_seconds

HERE = Path(__file__).resolve().parent
PEERS_PYTHON = Path(os.environ.get("KERNELPATH_PEERS", HERE / ".venv" / "bin" / "python"))
TORCHKM_LIMIT = 900  # seconds
LINEAR_SVC_LIMIT = 300  # seconds, for one C


def scikit_learn_seconds(X: np.ndarray, y: np.ndarray, ours: Any, n_Cs: int) -> tuple[float, str]:
    """GridSearchCV(SVC) on all C's, or on `n_Cs` of them and scaled; over the bandwidths, too, if there are several."""
    Cs = spread(ours.Cs_, n_Cs)
    refit = len(Cs) == len(ours.Cs_)
    model = SVC(cache_size=1000)
    grid = {"C": Cs, "gamma": ours.gammas_}
    search = GridSearchCV(model, grid, cv=splits(ours, X, y), n_jobs=2, refit=refit)
    clone(search).set_params(cv=2, refit=False).fit(X[:200], y[:200])  # starts its worker processes
    started = time.perf_counter()
    search.fit(X, y)
    seconds = (time.perf_counter() - started) * len(ours.Cs_) / len(Cs)
    return seconds, f"scikit-learn {seconds:.1f} s{scaling_note(ours, Cs)}"


def linear_svc_seconds(
    Z: np.ndarray, y: np.ndarray, ours: Any, n_Cs: int, n_folds: int | None = None, loss: str = "hinge"
) -> tuple[float, str, bool]:
    """LinearSVC on the features Z, fold by fold in two processes, on `n_Cs` of the C's and scaled.

    A C that takes longer than the limit is stopped there, and the seconds are then a lower bound, as the last value
    says. With `n_folds` only these folds are run, in one process (LIBLINEAR's copy of Z takes two to three times Z),
    and two are taken to be twice as fast.
    """
    Cs = spread(ours.Cs_, n_Cs)
    folds = splits(ours, Z, y)
    run = folds if n_folds is None else folds[:n_folds]
    processes = 2 if n_folds is None else 1
    total, stopped, unconverged, fits = 0.0, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "Z.npy"
        np.save(source, Z)
        for C in Cs:
            seconds, converged = linear_svc_at(source, y, C, run, processes, loss)
            total += seconds
            stopped += converged is None
            unconverged += 0 if converged is None else converged.count(False)
            fits += 0 if converged is None else len(converged)
    total *= len(ours.Cs_) / len(Cs) * len(folds) / len(run) * processes / 2
    note = f"LinearSVC(loss={loss!r}) {'≥ ' if stopped else ''}{total:.0f} s{scaling_note(ours, Cs)}"
    note += "" if n_folds is None else f", {len(run)} of {len(folds)} folds scaled, as if two processes halved it"
    note += f", stopped after {LINEAR_SVC_LIMIT} s at {stopped} C's" if stopped else ""
    note += f", max_iter = 1000 reached in {unconverged} of {fits} fits" if fits else ""
    return total, note, stopped > 0


def linear_svc_at(
    source: Path,
    y: np.ndarray,
    C: float,
    folds: list[tuple[np.ndarray, np.ndarray]],
    processes: int,
    loss: str = "hinge",
) -> tuple[float, list[bool] | None]:
    """The seconds of all folds and which of them converged; None if the limit came first."""
    spawn = multiprocessing.get_context("spawn")
    started_up = spawn.Barrier(processes + 1)
    with spawn.Pool(processes, wait, (started_up,)) as pool:  # ends its processes on the way out
        started_up.wait()
        started = time.perf_counter()
        jobs = [(source, y, C, train, test, loss) for train, test in folds]
        answer = pool.starmap_async(linear_svc, jobs, chunksize=1)
        try:
            converged = answer.get(LINEAR_SVC_LIMIT)
        except multiprocessing.TimeoutError:
            return float(LINEAR_SVC_LIMIT), None
        return time.perf_counter() - started, converged


def wait(barrier: Any) -> None:
    barrier.wait()


def linear_svc(source: Path, y: np.ndarray, C: float, train: np.ndarray, test: np.ndarray, loss: str) -> bool:
    """Fit and score one fold; whether it converged."""
    Z = np.load(source, mmap_mode="r")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LinearSVC(loss=loss, C=C, random_state=SEED).fit(Z[train], y[train]).score(Z[test], y[test])
    return not any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def liquid_seconds(X: np.ndarray, y: np.ndarray, ours: Any) -> float:
    """liquidSVM, on stratified folds that it draws itself; the median of three when it is quick."""
    with peer_files("liquidSVM", X=X, y=y, gamma=ours.gamma_, Cs=ours.Cs_, folds=FOLDS) as (source, _):
        return median_seconds(lambda: float(run_peer("liquid.py", source).split()[-2]))


@dataclass
class TorchKM:
    """What TorchKM took for all C's, or at least took; and the objectives of its models at those it was run on."""

    seconds: float
    note: str
    Cs: np.ndarray
    objectives: np.ndarray | None


def torchkm(method: str, X: np.ndarray, y: np.ndarray, ours: Any, n_Cs: int) -> TorchKM:
    """TorchKM on `n_Cs` of the C's, scaled, apart from its eigendecomposition; not scaled if it was stopped."""
    Cs = spread(ours.Cs_, n_Cs)
    fold = np.empty(len(y), dtype=int)
    for k, (_, test) in enumerate(splits(ours, X, y)):
        fold[test] = k
    arrays = {"X": X, "y": y, "gamma": ours.gamma_, "Cs": Cs, "fold": fold, "limit": TORCHKM_LIMIT}
    with peer_files("torchkm", method=method, **arrays) as (source, result):
        run_peer("torch_km.py", source, result)
        with np.load(result) as file:
            answer = dict(file)
    if not answer["finished"]:
        note = f"TorchKM stopped after {TORCHKM_LIMIT} s on {len(Cs)} of {len(ours.Cs_)} C's, not scaled"
        return TorchKM(float(answer["seconds"]), note, Cs, None)
    setup = float(answer["setup"])
    seconds = setup + (float(answer["seconds"]) - setup) * len(ours.Cs_) / len(Cs)
    note = f"TorchKM {seconds:.1f} s{scaling_note(ours, Cs)}"
    if answer["converged"].size:
        note += f", converged at {answer['converged'].sum()} of {len(Cs)}"
    if answer["exhausted"]:
        note += ", ran out of iterations"
    return TorchKM(seconds, note, Cs, answer["objectives"])


def spread(Cs: np.ndarray, n_Cs: int) -> np.ndarray:
    """`n_Cs` of the C's, spread evenly."""
    return Cs if n_Cs >= len(Cs) else Cs[((np.arange(n_Cs) + 0.5) * len(Cs) / n_Cs).astype(int)]


def scaling_note(ours: Any, Cs: np.ndarray) -> str:
    return "" if len(Cs) == len(ours.Cs_) else f", {len(Cs)} of {len(ours.Cs_)} C's scaled"


def splits(ours: Any, X: np.ndarray, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The folds of the fit."""
    splitter = StratifiedKFold if is_classifier(ours) else KFold
    return list(splitter(ours.cv, shuffle=True, random_state=SEED).split(X, y))


@contextmanager
def peer_files(module: str, **arrays: Any) -> Iterator[tuple[Path, Path]]:
    """A file of the arrays, and the name of one for the answer."""
    installed = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    if not PEERS_PYTHON.exists() or subprocess.run([str(PEERS_PYTHON), "-c", installed]).returncode != 0:
        raise NotAvailable(f"{module} is not installed: run `make peers` (liquidSVM) or `make peers-torch` (TorchKM)")
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "data.npz", Path(folder) / "result.npz"
        np.savez(source, **arrays)
        yield source, result


def run_peer(script: str, *files: Path) -> str:
    """What the script prints, run by the interpreter of the peers."""
    command = [str(PEERS_PYTHON), str(HERE / script), *map(str, files)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
