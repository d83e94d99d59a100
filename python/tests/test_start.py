"""What the command imports, and limits that the command, Rust and Python share."""

import subprocess
import sys

import numpy as np
import pytest

import kernelpath
from kernelpath import KernelSVC, _core
from kernelpath.datasets import make_mixture

HEAVY = ("numpy", "scipy", "sklearn", "joblib", "pandas", "email")


def modules_after(code):
    code = f"import sys; sys.argv = ['kernelpath', '--version']; {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_the_command_starts_without_the_estimators():
    found = modules_after("from kernelpath._command import main; assert main() == 0")
    assert "kernelpath" in found
    assert not found & set(HEAVY)
    assert not modules_after("import kernelpath; kernelpath.__version__") & set(HEAVY)


def test_the_package_has_what_it_names():
    assert set(kernelpath.__all__) <= set(dir(kernelpath))
    for name in kernelpath.__all__:
        assert getattr(kernelpath, name).__module__.startswith("kernelpath")
    assert kernelpath.datasets.make_mixture is make_mixture
    with pytest.raises(AttributeError, match="has no attribute 'KernelTrain'"):
        kernelpath.KernelTrain  # noqa: B018
    found = modules_after("from kernelpath import KernelSVC; KernelSVC()")
    assert "sklearn" in found


@pytest.mark.parametrize("first", ["kernelpath._files", "kernelpath.regressors", "kernelpath"])
def test_files_are_read_whatever_was_imported_before(first, tmp_path):
    X, y = make_mixture(60, 3, random_state=0)
    KernelSVC(Cs=1.0, cv=None).fit(X, y).save(tmp_path / "model.kpath")
    modules_after(f"import {first}; from kernelpath import load; load({str(tmp_path / 'model.kpath')!r})")


def test_limits_are_those_of_the_library():
    X, y = make_mixture(60, 3, random_state=0)
    with pytest.raises(ValueError, match="at most 10000, got 99999999999"):
        KernelSVC(Cs=99999999999).fit(X, y)
    with pytest.raises(ValueError, match="Cs has 10001 values, and 10000 are the most"):
        KernelSVC(Cs=np.geomspace(0.1, 1.0, 10_001)).fit(X, y)
    with pytest.raises(ValueError, match="gamma has 10001 values"):
        KernelSVC(gamma=np.geomspace(0.1, 1.0, 10_001)).fit(X, y)
    assert _core.count_threads(10**6) == _core.MOST_THREADS == 256
    KernelSVC(Cs=1.0, cv=None, n_jobs=10**9).fit(X, y)
