"""The stand-in for the CUDA driver catches planted bugs, and lets right programs pass."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import standin
from standin_calls import Cuda
from standin_cases import CASES


@pytest.fixture(scope="module")
def libraries():
    return standin.build()


def run(libraries, name, environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("STANDIN_")}
    command = [sys.executable, Path(__file__).with_name("standin_cases.py"), libraries, name]
    return subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True)


@pytest.mark.parametrize("name", CASES)
def test_case(libraries, name):
    ends, environment, _ = CASES[name]
    done = run(libraries, name, environment)
    told = f"{done.stdout}{done.stderr} (exit status {done.returncode})"
    kind, _, rest = ends.partition(" ")
    if kind == "fault:":
        assert done.returncode == -signal.SIGABRT, told
        assert re.search(r"^stand-in: fault in \w+.*: (" + rest + ")", done.stderr, re.MULTILINE), told
    elif kind == "signal":
        assert done.returncode == -int(rest), told
    elif kind == "exit":
        assert done.returncode == int(rest), told
    else:
        assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, [ends]), told


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_missing_barrier_shows_in_any_order(libraries, seed):
    done = run(libraries, "barrier_missing", {"STANDIN_SEED": str(seed)})
    assert done.stdout.splitlines() == ["differs"], done.stderr


def test_headers_of_cuda_12_fit_too():
    standin.build(12)


def test_libraries_can_be_missing(libraries, tmp_path):
    for name in ("libcuda.so", "libnvrtc.so", "libstandin.so"):
        (tmp_path / name).symlink_to(libraries / name)
    done = run(tmp_path, "kernels_alone", {})
    assert done.stdout.splitlines() == ["right"], done.stderr


def test_it_compiles_the_kernels_of_this_checkout(libraries):
    text, names = standin.kernel_text()
    cuda = Cuda(libraries)
    module = cuda.compile(text, b"--gpu-architecture=compute_80")
    for name in names:
        cuda.kernel(module, name)
