"""Fits under limits on memory end with a model or with a MemoryError that helps, whatever the limit."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelpath import KernelLogistic, _core

LADDER = Path(__file__).parent / "memory_ladder.py"
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs the limits and /proc of Linux")

# From less than a thread takes to enough for all cases; and between, where a fit finds out on the way.
MEGABYTES = (32, 160, 320, 416, 544, 704, 3072)

SIZE = r"(\d+\.\d) (MB|GB)"


def in_bytes(number, unit):
    return float(number) * {"MB": 1e6, "GB": 1e9}[unit]


def run(code):
    """What a program prints, with one thread for BLAS: each takes address space."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    child = subprocess.run(
        [sys.executable, *code], env=environment, capture_output=True, text=True, timeout=300, cwd=LADDER.parent
    )
    assert child.returncode == 0, child.stderr
    return child.stdout


@pytest.fixture(scope="module")
def ladder():
    """All cases at all limits, by name: one interpreter, and a process of its own for each fit."""
    results = {}
    for line in run([str(LADDER), ",".join(map(str, MEGABYTES))]).splitlines():
        result = json.loads(line)
        results.setdefault(result["case"], []).append(result)
    return results


CASES = (
    "gamma grid",
    "active set",
    "active set, sigest",
    "quantile",
    "newton",
    "spectral",
    "closed form",
    "low rank",
    "low rank, spectral",
    "product of features",
    "multinomial",
    "multinomial, low rank",
    "pairs of classes",
    "leave one out",
    "leave one out, newton",
    "predict",
    "features",
    "kernel matrix",
)


@LINUX
def test_all_cases_ran(ladder):
    assert sorted(ladder) == sorted(CASES)


@LINUX
@pytest.mark.parametrize("case", CASES)
def test_no_limit_ends_the_process(ladder, case):
    """No abort, no panic, no hang: a result, or a MemoryError."""
    for result in ladder[case]:
        assert result["code"] == 0, result
        assert result["said"] == "done" or result["said"].startswith("MemoryError: "), result
    assert ladder[case][0]["said"] != "done"  # less than a thread takes
    assert ladder[case][-1]["said"] == "done"


@LINUX
@pytest.mark.parametrize("case", CASES)
def test_errors_say_what_is_needed_and_what_to_do(ladder, case):
    for result in ladder[case]:
        if result["said"] == "done":
            continue
        said = result["said"]
        found = re.search(rf"{SIZE}.*, but only {SIZE} are available under the limit on the address space", said)
        assert found, said
        assert in_bytes(*found.groups()[:2]) > in_bytes(*found.groups()[2:]), said
        assert "ulimit -v" in said
        assert re.search("fewer|low_rank=True|smaller rank|raise the limit", said.split(";")[-1]), said


@LINUX
def test_what_is_available_respects_the_limits_of_the_process():
    code = """
import resource
from memory_ladder import address_space
from kernelpath import _core
free = _core.available_memory()
for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (address_space() + (50 << 20), before[1]))
    print(_core.available_memory() < min(free, 51 << 20) or kind == resource.RLIMIT_DATA)
    print(_core.available_memory() <= min(free, address_space() + (50 << 20)))
    resource.setrlimit(kind, before)
print(_core.available_memory() > 51 << 20)
"""
    assert run(["-c", code]).split() == ["True"] * 5


@LINUX
def test_a_limit_on_data_is_an_error_too():
    code = """
import resource
import memory_ladder
for case in ("newton", "spectral"):
    for megabytes in (0, 200, 2000):
        code, said = memory_ladder.run(case, megabytes - memory_ladder.address_space() // memory_ladder.MB + 150,
                                       resource.RLIMIT_DATA)
        print(code, said.split(":")[0])
"""
    lines = run(["-c", code]).splitlines()
    assert len(lines) == 6
    assert set(lines) <= {"0 done", "0 MemoryError"}, lines
    assert "0 MemoryError" in lines
    assert lines[2] == lines[5] == "0 done"


def test_the_error_names_low_rank_and_its_size():
    X = np.arange(400_000, dtype=np.float32)[:, np.newaxis]
    y = np.arange(len(X)) % 2
    with pytest.raises(MemoryError, match=rf"low_rank=True \(about {SIZE}\), fewer rows.*float32"):
        KernelLogistic(gamma=1.0, Cs=1.0, cv=None, dtype="float64").fit(X, y)


@pytest.mark.parametrize("size", [{"n_landmarks": 20}, {"n_landmarks": 200, "rank": 10}])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_size_of_the_fit_at_low_rank_is_the_one_that_it_plans(size, classes):
    X = np.arange(400_000, dtype=np.float32)[:, np.newaxis]
    y = np.arange(len(X)) % classes
    model = KernelLogistic(
        gamma=1.0, Cs=1.0, cv=None, dtype="float64", multi_class="multinomial", landmarks="uniform", tol=0.1, **size
    )
    with pytest.raises(MemoryError) as error, pytest.warns(UserWarning, match="no effect without low_rank=True"):
        model.fit(X, y)
    found = re.search(rf"low_rank=True \(about {SIZE}\)", str(error.value))
    assert found, error.value
    planned = model.fit(X, y, low_rank=True).planned_bytes_
    assert in_bytes(*found.groups()) == pytest.approx(planned, abs=0.06e6 if found[2] == "MB" else 0.06e9)


def test_too_large_a_kernel_matrix():
    X = np.zeros((3_000_000, 1))
    with pytest.raises(MemoryError, match="are needed for the kernel matrix"):
        _core.kernel_matrix(X, X, kernel="rbf", gamma=1.0, degree=3, coef0=0.0)
