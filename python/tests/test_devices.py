"""Fits on devices other than the processor have its answers, with the same certificates.

Which devices: see `device` in conftest.py.
"""

import multiprocessing
import os
import pickle
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from recorded import CASES, FEATURES, LARGE, contradictions, outcome, recorded
from sklearn.base import clone

import kernelpath
from kernelpath import KernelLogistic, KernelSVC, _core
from kernelpath.datasets import make_mixture

TOL = 1e-6

# Cases whose outcome is a matter of the path of computation, or that never reach a device.
OTHER = ("few steps", "function", "large C", "default grid")


def on(case, device):
    return replace(case, estimator=clone(case.estimator).set_params(device=device))


NAMES = [name for name, case in CASES.items() if case not in [*LARGE.values(), *FEATURES.values()]]
GROUPS = {}
for _name in NAMES:
    if not _name.endswith(OTHER):
        GROUPS.setdefault(_name.split(", ")[0], []).append(_name)


@pytest.mark.parametrize("group", GROUPS)
def test_certificates_and_objectives_are_those_of_the_processor(device, group):
    """Every estimator and option: exact, low rank, sparse, weights, several classes, γ grids, leave-one-out."""
    record, found = recorded()["outcomes"], {}
    # The stand-in for CUDA is slow, and has the kernels of OpenCL: each third case is enough.
    for name in GROUPS[group][:: 3 if device == "cuda" else 1]:
        was, now = record[name], outcome(on(CASES[name], device))
        if "spectral" not in name:
            now["solver"] = was["solver"]  # "auto" has a rule of its own on a device
        tol = CASES[name].estimator.tol
        found[name] = contradictions(was, now, tol)
        if set(was["status"]) == {"converged"} and set(now["status"]) != {"converged"}:
            found[name].append(f"status is {now['status']}")
    assert not any(found.values()), "\n".join(f"{name}: {lines}" for name, lines in found.items() if lines)


def bits(model):
    names = ("scores_", "gaps_", "oof_decision_", "dual_coef_", "intercept_", "n_iter_", "objective_", "C_", "gamma_")
    return [np.asarray(getattr(model, name)).tobytes() for name in names]


@pytest.mark.parametrize("options", [{}, {"solver": "spectral"}, {"low_rank": True, "n_landmarks": 40}], ids=str)
@pytest.mark.parametrize("estimator", [KernelSVC, KernelLogistic])
def test_the_same_bits_every_time(device, estimator, options):
    X, y = make_mixture(150, 4, random_state=0)
    model = estimator(Cs=[0.1, 1.0, 10.0], cv=3, device=device, **options)
    first, second = (bits(clone(model).fit(X, y)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (17, 1), (129, 7), (257, 33)])
def test_odd_sizes(device, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    kernel = KernelSVC(kernel="rbf", gamma=0.5)
    y = np.where(np.arange(len(X)) % 2 == 0, 1, -1)
    if len(X) < 2:
        with pytest.raises(ValueError, match="class"):
            kernel.set_params(device=device).fit(X, y)
        return
    models = [clone(kernel).set_params(device=name, Cs=1.0, cv=None).fit(X, y) for name in ("cpu", device)]
    assert abs(models[0].objective_ - models[1].objective_) <= 2 * TOL * abs(models[0].objective_)
    many = rng.normal(size=(3000, shape[1]))
    np.testing.assert_allclose(models[1].decision_function(many), models[0].decision_function(many), atol=1e-2)


def test_predictions_of_many_rows_run_there(device):
    X, y = make_mixture(200, 5, random_state=0)
    model = KernelSVC(Cs=1.0, cv=None).fit(X, y)
    many = np.repeat(X, 60, axis=0)
    want = model.decision_function(many)
    got = model.set_params(device=device).decision_function(many)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12 * np.abs(model.dual_coef_).sum())


def test_models_need_no_device(device):
    X, y = make_mixture(100, 3, random_state=0)
    model = KernelSVC(Cs=[0.1, 1.0], cv=3, device=device).fit(X, y)
    again = pickle.loads(pickle.dumps(model)).set_params(device="cpu")
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-10)
    again.set_params(device="cuda:7")
    np.testing.assert_allclose(again.decision_function(np.repeat(X, 60, axis=0))[::60], again.decision_function(X))


def test_two_fits_at_once(device):
    X, y = make_mixture(150, 4, random_state=0)
    model = KernelSVC(Cs=[0.1, 1.0, 10.0], cv=3, device=device, solver="spectral")
    want, got = bits(clone(model).fit(X, y)), {}
    threads = [threading.Thread(target=lambda k=k: got.update({k: bits(clone(model).fit(X, y))})) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == {0: want, 1: want}


def fit_in_child(device, queue):
    X, y = make_mixture(60, 3, random_state=0)
    try:
        KernelSVC(Cs=1.0, cv=None, device=device).fit(X, y)
        queue.put("fitted")
    except RuntimeError as error:
        queue.put(str(error))
    queue.put(KernelSVC(Cs=1.0, cv=None).fit(X, y).gaps_.max())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_refuses_the_device_of_its_parent(device):
    X, y = make_mixture(60, 3, random_state=0)
    KernelSVC(Cs=1.0, cv=None, device=device).fit(X, y)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=fit_in_child, args=(device, queue))
    child.start()
    said, gap = queue.get(timeout=30), queue.get(timeout=30)
    child.join(timeout=30)
    assert "forked" in said
    assert "spawn" in said
    assert gap <= TOL


@pytest.mark.parametrize("options", [{}, {"solver": "spectral"}, {"low_rank": True, "n_landmarks": 60}], ids=str)
def test_a_time_budget_ends_a_fit(device, options):
    X, y = make_mixture(300, 5, random_state=0)
    started = time.perf_counter()
    model = KernelLogistic(Cs=np.logspace(-3, 6, 2000), cv=10, device=device, time_budget=0.5, tol=1e-9, **options)
    with pytest.warns(UserWarning, match="time"):
        model.fit(X, y)
    assert time.perf_counter() - started < 20.0
    assert "not_run" in model.status_


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (KernelSVC, {"solver": "spectral", "dtype": "float32"}),
        (KernelLogistic, {"solver": "spectral", "dtype": "float64"}),
        (KernelLogistic, {"solver": "newton"}),
        (KernelSVC, {"low_rank": True, "n_landmarks": 20}),
    ],
    ids=str,
)
def test_bytes_of_a_step_do_not_grow_with_the_square_of_the_rows(device, estimator, options):
    """What a fit with ten C's moves beyond one with five, per step of a model: vectors, so proportional to the rows."""

    def moved(n):
        X, y = make_mixture(n, 4, random_state=0)
        traffic = []
        for n_Cs in (5, 10):
            before = _core.device_traffic(device) or (0, 0, 0)
            model = estimator(Cs=np.logspace(-2, 2, 10)[:n_Cs], cv=3, device=device, gamma=0.5, **options).fit(X, y)
            traffic.append(np.subtract(_core.device_traffic(device), before))
        _, up, down = traffic[1] - traffic[0]
        assert up + down > 0
        return (up + down) / model.n_iter_[..., 5:].sum()

    small, large = moved(300), moved(600)
    # Twice the rows; a matrix would be four times as large.
    assert large < 3 * small, f"{small:.0f} bytes a step became {large:.0f}"


def test_a_device_that_is_not_there():
    X, y = make_mixture(60, 3, random_state=0)
    with pytest.raises(RuntimeError, match=r'"cuda:7" cannot be used: .*available are cpu'):
        KernelSVC(Cs=1.0, cv=None, device="cuda:7").fit(X, y)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "opencl:x", "cuda:-1", ""])
def test_names_that_no_device_has(name):
    X, y = make_mixture(60, 3, random_state=0)
    with pytest.raises(ValueError, match=r"device=.* is not available; available: 'cpu', 'auto'"):
        KernelSVC(Cs=1.0, cv=None, device=name).fit(X, y)


def test_auto_never_takes_a_processor_of_opencl():
    X, y = make_mixture(60, 3, random_state=0)
    assert KernelSVC(Cs=1.0, cv=None, device="auto").fit(X, y).gaps_.max() <= TOL
    found = kernelpath.devices()
    assert found[0].name == "cpu"
    assert all(device.problem or device.memory > 0 for device in found)


def test_versions_name_the_devices(capsys):
    kernelpath.show_versions()
    said = capsys.readouterr().out
    assert "kernelpath" in said
    assert all(device.name in said for device in kernelpath.devices())
