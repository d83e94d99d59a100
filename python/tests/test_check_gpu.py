"""The parts of `make check-gpu`, on the processor and few rows."""

import json
import subprocess
import sys

import pytest
from conftest import REPOSITORY

import kernelpath

sys.path.append(str(REPOSITORY / "benchmarks"))
import check_gpu


def test_only_gpus_are_checked_unless_one_is_named():
    assert check_gpu.found("opencl") == ["opencl"]
    gpus = [device.name for device in kernelpath.devices() if device.problem is None and not device.is_processor]
    assert check_gpu.found(None) == gpus


@pytest.mark.parametrize("method", check_gpu.METHODS)
def test_a_cell_is_550_certified_models(method):
    row = check_gpu.cell(method, 40, 2, "cpu")
    assert row["worst_gap"] <= 1e-6
    assert row["certified"] == 1.0
    assert row["seconds"] > 0.0


def test_a_cell_that_fails_says_why():
    row = check_gpu.cell("svc", 40, 2, "cuda:99")
    assert "cannot be used" in row["error"]
    assert "seconds" not in row


def test_what_the_tests_say_is_kept(monkeypatch):
    seen = {}

    def run(command, env, **_):
        seen.update(command=command, env=env)
        return subprocess.CompletedProcess(command, 1, "1 failed", "oh")

    monkeypatch.setattr(subprocess, "run", run)
    assert check_gpu.tested("cuda:1") == {"passed": False, "said": "1 failedoh"}
    assert seen["env"]["KERNELPATH_DEVICES"] == seen["env"]["KERNELPATH_REQUIRE_DEVICES"] == "cuda"
    files = [name for name in seen["command"] if name.endswith(".py")]
    assert files
    assert all((REPOSITORY / name).exists() for name in files)


def test_both_files_are_written(monkeypatch, tmp_path, capsys):
    said = {"passed": True, "said": "3 passed"}
    changes = {"OUT": tmp_path / "out", "SIZES": (40,), "FEATURES": (2,), "tested": lambda _: said}
    for name, value in {**changes, "METHODS": {"svc": check_gpu.METHODS["svc"]}}.items():
        monkeypatch.setattr(check_gpu, name, value)
    monkeypatch.setattr(sys, "argv", ["check_gpu.py", "--device", "cpu", "--quick"])
    assert check_gpu.main() == 0
    report = json.loads((tmp_path / "out/check-gpu.json").read_text())
    assert report["devices"]["cpu"]["tests"] == said
    assert [row["device"] for row in report["devices"]["cpu"]["cells"]] == ["cpu", "cpu"]
    text = (tmp_path / "out/check-gpu.txt").read_text()
    assert "kernelpath" in text
    assert "3 passed" in text
    assert "Thank you" in capsys.readouterr().out
