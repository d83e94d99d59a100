"""For the first person with a card: tests of the devices and the cells of the paper's Table 2, as two files to send.

    make check-gpu                                    all GPUs that are found
    python benchmarks/check_gpu.py --device opencl    one device, which may be a processor
    python benchmarks/check_gpu.py --quick            cells of at most 1000 rows

Writes out/check-gpu.json and out/check-gpu.txt.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import kernelpath
from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelSVC
from kernelpath.datasets import make_mixture

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out"
METHODS: dict[str, Any] = {"svc": KernelSVC, "dwd": KernelDWD, "logistic": KernelLogistic, "quantile": KernelQuantile}
SIZES = (1000, 5000, 10_000, 20_000)
FEATURES = (10, 100, 1000)


def found(wanted: str | None) -> list[str]:
    """The devices to check."""
    usable = [device for device in kernelpath.devices() if device.problem is None and device.name != "cpu"]
    if wanted is not None:
        return [wanted]
    return [device.name for device in usable if not device.is_processor]


def tested(device: str) -> dict[str, Any]:
    """What pytest says of the tests of devices."""
    kind = device.split(":")[0]
    environment = os.environ | {"KERNELPATH_DEVICES": kind, "KERNELPATH_REQUIRE_DEVICES": kind}
    files = [str(ROOT / "python/tests" / name) for name in ("test_device_answers.py", "test_devices.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-x", *files]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    return {"passed": done.returncode == 0, "said": done.stdout[-20_000:] + done.stderr[-5_000:]}


def cell(method: str, n: int, p: int, device: str) -> dict[str, Any]:
    """One fit: 50 C's, 10 folds and all rows."""
    X, y = make_mixture(n, p, random_state=0)
    if method == "quantile":
        y = np.sin(2 * X[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=n)
    Cs = 1.0 / (2.0 * n * np.logspace(3, -3, 50))
    of_method = {"tau": 0.5} if method == "quantile" else {}
    model = METHODS[method](Cs=Cs, cv=10, device=device, random_state=0, **of_method)
    row: dict[str, Any] = {"method": method, "n": n, "p": p, "device": device}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            started = time.perf_counter()
            model.fit(X, y)
            row["seconds"] = time.perf_counter() - started
    except (MemoryError, RuntimeError, ValueError) as error:
        return row | {"error": f"{type(error).__name__}: {error}"}
    gaps = np.asarray(model.gaps_)
    return row | {"solver": model.solver_, "worst_gap": float(gaps.max()), "certified": float(np.mean(gaps <= 1e-6))}


def main() -> int:
    """Print what is found, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="check this device, such as cuda:0 or opencl; all GPUs unless given")
    parser.add_argument("--quick", action="store_true", help="cells of at most 1000 rows")
    asked = parser.parse_args()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        kernelpath.show_versions()
    lines = [said.getvalue()]
    print(lines[0])
    devices = found(asked.device)
    if not devices:
        print("No GPU was found; the list above says why. --device opencl checks any OpenCL device.")
        return 1
    report: dict[str, Any] = {"versions": lines[0], "devices": {}}
    for device in devices:
        tests = tested(device)
        cells = []
        lines += [f"{device}: tests {'passed' if tests['passed'] else 'FAILED'}", tests["said"]]
        print(lines[-2])
        for n in SIZES[:1] if asked.quick else SIZES:
            for p in FEATURES:
                for method in METHODS:
                    for place in (device, "cpu"):
                        cells.append(cell(method, n, p, place))
                        lines.append(json.dumps(cells[-1]))
                        print(lines[-1], flush=True)
        report["devices"][device] = {"tests": tests, "cells": cells}
    OUT.mkdir(exist_ok=True)
    (OUT / "check-gpu.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    (OUT / "check-gpu.txt").write_text("\n".join(lines), encoding="utf-8")
    print("Attach out/check-gpu.json and out/check-gpu.txt to an issue. Thank you!")
    return 0 if all(of["tests"]["passed"] for of in report["devices"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
