"""What goes wrong on a device: no driver, no device, too little memory, an interrupt; each in a process of its own.

CUDA is the stand-in for its driver, whose settings bring all of that about.
"""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from standin import build

import kernelpath

# What every program below begins with. `small` is a fit that any device can do.
BEGIN = """
import os, signal, threading, time
import numpy as np
from kernelpath import KernelLogistic, KernelSVC, _core
from kernelpath.datasets import make_mixture

X, y = make_mixture(200, 4, random_state=0)
options = {"Cs": [0.1, 1.0], "cv": 2, "dtype": "float32", "gamma": 0.5}

def small(device, **others):
    return KernelLogistic(**{**options, **others}, device=device).fit(X, y)

def said(error, device, **others):
    try:
        small(device, **others)
    except error as raised:
        return str(raised)
    raise AssertionError("no error")
"""


def run(program, **environment):
    """Runs a program; its output."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def cuda():
    """The environment in which the stand-in is found."""
    return {"LD_LIBRARY_PATH": str(build()), "STANDIN_POOLS": "0"}


def test_without_a_device_the_processor_works(cuda):
    program = """
    print(said(RuntimeError, "cuda"))
    assert small("auto").gaps_.max() <= 1e-6
    """
    assert "cannot be used" in run(program, **cuda, STANDIN_DEVICES="0")


def test_without_a_driver_the_processor_works(tmp_path):
    program = """
    for device in ("cuda", "opencl"):
        print(said(RuntimeError, device))
    assert small("auto").gaps_.max() <= 1e-6
    """
    output = run(program, LD_LIBRARY_PATH=str(tmp_path), OCL_ICD_VENDORS=str(tmp_path))
    assert output.count("cannot be used") == 2
    assert output.count("available are cpu") == 2


def test_without_a_loader_the_processor_works(tmp_path):
    """A file that is no library stands for one that is not there."""
    for name in ("libOpenCL.so.1", "libcuda.so", "libcuda.so.1"):
        (tmp_path / name).write_text("no library")
    program = """
    for device in ("cuda", "opencl"):
        print(said(RuntimeError, device))
    assert small("auto").gaps_.max() <= 1e-6
    """
    output = run(program, LD_LIBRARY_PATH=str(tmp_path))
    assert "the library libcuda.so is not found" in output
    assert "the library libOpenCL.so.1 is not found" in output


def test_a_card_without_double_precision_is_refused(tmp_path):
    """By every way to ask for it; "auto" takes the processor."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    library = tmp_path / "libOpenCL.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, Path(__file__).with_name("no_doubles.c")], check=True)
    program = """
    import kernelpath
    card = next(device for device in kernelpath.devices() if device.name == "opencl:0")
    print(card)
    assert not card.float64 and not card.is_processor
    for device in ("opencl", "opencl:0"):
        print(said(RuntimeError, device))
        print(said(RuntimeError, device, low_rank=True))
    assert small("auto").gaps_.max() <= 1e-6
    model = small("cpu")
    many = np.repeat(X, 60, axis=0)
    want = model.decision_function(many)
    assert (model.set_params(device="opencl").decision_function(many) == want).all()
    """
    output = run(program, OPENCL_DYLIB_PATH=str(library), LD_LIBRARY_PATH=str(tmp_path))
    assert "A card for games: not usable: it has no double precision, which every certificate needs" in output
    refused = "cannot be used: it has no double precision, which every certificate needs; available are cpu"
    assert output.count(refused) == 4, output


@pytest.mark.parametrize("others", [{"solver": "spectral"}, {"solver": "newton"}, {"low_rank": True}], ids=str)
def test_too_little_memory_is_said_before_work_begins(cuda, others):
    program = f"""
    text = said(MemoryError, "cuda", **{others})
    assert _core.device_traffic("cuda")[0] == 0, "work had begun"
    print(text)
    assert small("cpu", **{others}).gaps_.max() <= 1e-6
    """
    output = run(program, **cuda, STANDIN_MEMORY="65536")
    assert "of its memory can be had; use low_rank=True, fewer rows" in output


@pytest.mark.parametrize("others", [{"solver": "spectral"}, {"solver": "newton"}, {"low_rank": True}], ids=str)
@pytest.mark.parametrize("number", [2, 9, 30])
def test_an_allocation_that_fails_in_the_middle(cuda, others, number):
    """It is an error, nothing leaks, and the next fit works."""
    program = f"""
    text = said(MemoryError, "cuda", **{others})
    assert "memory can be had" in text, text
    again, host = small("cuda", **{others}), small("cpu", **{others})
    assert again.gaps_.max() <= 1e-6
    assert abs(again.objective_ - host.objective_) <= 2e-6 * abs(host.objective_)
    """
    run(program, **cuda, STANDIN_FAIL_ALLOCATION=str(number), STANDIN_LEAKS="1")


def test_nothing_leaks(cuda):
    program = """
    for others in ({}, {"solver": "spectral"}, {"low_rank": True, "n_landmarks": 40}):
        small("cuda", **others)
    """
    run(program, **cuda, STANDIN_LEAKS="1")


DECOMPOSED = """
host, model = small("cpu", solver="spectral", **{others}), small("cuda", solver="spectral", **{others})
assert model.gaps_.max() <= 1e-6 and set(model.status_.ravel()) == {{"converged"}}, model.gaps_
assert abs(model.objective_ - host.objective_) <= 2e-6 * abs(host.objective_)
"""


@pytest.mark.parametrize(
    ("others", "blur", "called"),
    [
        ({}, 0, ["Ssyevd"]),
        ({"Cs": [1000.0], "cv": None}, 0, ["Ssyevd"]),
        ({"Cs": [1000.0], "cv": None}, 17, ["Ssyevd"]),
        ({"dtype": "float64"}, 0, ["Dsyevd"]),
        # Single precision that is not enough is followed by double precision.
        ({"Cs": [1000.0], "cv": None}, 3, ["Dsyevd", "Ssyevd"]),
    ],
    ids=str,
)
def test_a_card_with_slow_double_precision_decomposes_in_single_precision(cuda, tmp_path, others, blur, called):
    """The stand-in's ratio is 64. The gaps are those of K in double precision either way."""
    log = tmp_path / "calls"
    options = {"STANDIN_LOG": str(log), "STANDIN_BLUR": str(blur), "STANDIN_LEAKS": "1"}
    run(DECOMPOSED.format(others=others), **cuda, **options)
    calls = log.read_text().split()
    assert sorted({name[-6:] for name in calls if name.endswith("syevd")}) == called


def test_a_decomposition_that_does_not_converge(cuda):
    program = """
    print(said(RuntimeError, "cuda", solver="spectral"))
    assert small("cuda", solver="spectral").gaps_.max() <= 1e-6
    """
    output = run(program, **cuda, STANDIN_FAIL_EIGEN="1", STANDIN_LEAKS="1")
    assert "did not converge" in output


def test_a_process_that_ends_while_a_decomposition_is_left_behind(cuda):
    """No crash, and no waiting for it."""
    program = """
    X, y = make_mixture(600, 4, random_state=0)
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        KernelSVC(Cs=1.0, cv=None, gamma=0.5, dtype="float64", solver="spectral", device="cuda").fit(X, y)
    except KeyboardInterrupt:
        print("interrupted")
    """
    run(program, **cuda)


INTERRUPTED = """
X, y = make_mixture({n}, {p}, random_state=0)
model = KernelLogistic(Cs=np.logspace(-3, 4, 4000), cv=5, tol=1e-9, max_iter=10**9, device="{device}", **{others})
small("{device}")
delay = {delay}
sent = []
def interrupt():
    time.sleep(delay)
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    model.fit(X, y)
    raise AssertionError("it was not interrupted")
except KeyboardInterrupt:
    waited = time.perf_counter() - sent[0]
assert waited < 1.0, waited
assert small("{device}").gaps_.max() <= 1e-6
"""


@pytest.mark.parametrize("others", [{"solver": "spectral"}, {"solver": "newton"}, {"low_rank": True}], ids=str)
@pytest.mark.parametrize("delay", [0.05, 1.0])
@pytest.mark.parametrize("device", ["opencl", "cuda"])
def test_ctrl_c_is_heard_within_a_second(request, device, delay, others):
    """In the kernel matrix, features or decomposition, and on the path."""
    environment = {}
    if device == "cuda":
        environment = request.getfixturevalue("cuda") | {"STANDIN_LEAKS": "1"}
    elif not any(found.name.startswith("opencl") and found.problem is None for found in kernelpath.devices()):
        pytest.skip("no OpenCL device")
    n, p = (1000, 300) if device == "opencl" else (300, 50)
    run(INTERRUPTED.format(n=n, p=p, device=device, delay=delay, others=others), **environment)
