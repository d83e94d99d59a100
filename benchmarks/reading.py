"""Reading data files against scikit-learn and pandas. The files are temporary, and read from the page cache."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

import kernelpath.datasets
from data import unpacked
from measure import SEED, NotAvailable
from table import Row, case

SIZE = 300_000_000
RUNS = 3
ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def repeated(text: bytes, suffix: str, size: int, header: bytes = b"") -> Iterator[Path]:
    """A file of about that size: the header, and the text as often as it takes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"data{suffix}"
        with file.open("wb") as to:
            to.write(header)
            for _ in range(-(-size // len(text))):
                to.write(text)
        yield file


def fastest(read: Callable[[], Any]) -> float:
    """The least of several runs: everything else on the machine only adds to it."""
    seconds = []
    for _ in range(RUNS):
        started = time.perf_counter()
        read()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def example() -> Path:
    """The program `read`, built from crates/kernelpath-data/examples."""
    command = ["cargo", "build", "--quiet", "--release", "-p", "kernelpath-data", "--example", "read"]
    try:
        subprocess.run(command, cwd=ROOT, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotAvailable(f"the example `read` cannot be built: {error}") from None
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples" / "read"


def rust_seconds(program: Path, file: Path) -> float:
    output = subprocess.run([program, file, str(RUNS)], check=True, capture_output=True, text=True).stdout
    return float(output.split()[-1])


def row(name: str, file: Path, ours: float, peer: str, theirs: float, bar: float) -> Row:
    size, ratio = file.stat().st_size / 1e6, theirs / ours
    measured = f"{ours:.2f} s ({size / ours:.0f} MB/s)"
    peer = f"{peer} {theirs:.2f} s ({size / theirs:.0f} MB/s)"
    return Row(f"{name}, {size:.0f} MB", measured, None, peer, ratio, f"≥ {bar:g} ×", ratio >= bar)


@case("libsvm_read")
def libsvm_read(quick: bool) -> Row:
    """a9a repeated to 300 MB (--quick: 60), against load_svmlight_file"""
    with repeated(unpacked("a9a.xz"), ".libsvm", SIZE // 5 if quick else SIZE) as file:
        ours = fastest(lambda: kernelpath.datasets.load_libsvm(file))
        theirs = fastest(lambda: load_svmlight_file(str(file)))
        return row("LIBSVM, a9a", file, ours, "scikit-learn", theirs, 5.0)


def against_pandas(name: str, text: bytes, header: bytes, quick: bool) -> Row:
    import pandas

    program = example()
    with repeated(text, ".csv", SIZE // 5 if quick else SIZE, header) as file:
        ours = rust_seconds(program, file)
        theirs = fastest(lambda: pandas.read_csv(file, engine="c"))
        return row(name, file, ours, "pandas", theirs, 1.0)


@case("csv_read")
def csv_read(quick: bool) -> Row:
    """Forest cover types, 54 integers a row, repeated to 300 MB (--quick: 60), in Rust, against pandas' C reader"""
    header, text = unpacked("covtype.csv.xz").split(b"\n", 1)
    return against_pandas("CSV of integers", text, header + b"\n", quick)


@case("csv_read_floats")
def csv_read_floats(quick: bool) -> Row:
    """Normal numbers with all their digits, 20 a row, repeated to 300 MB (--quick: 60), in Rust, against pandas"""
    rows = np.random.default_rng(SEED).standard_normal((20_000, 20)).tolist()
    text = "".join(",".join(map(repr, row)) + "\n" for row in rows).encode()
    header = ",".join(f"x{j}" for j in range(20)) + "\n"
    return against_pandas("CSV of floats with 17 digits", text, header.encode(), quick)
