"""Where the stand-in for CUDA is, and how it is built: for test_standin.py and test_cuda_text.py."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "crates/kernelpath/tests/standin"
KERNELS = ROOT / "crates/kernelpath/src/device/gpu"
# What `make cuda-headers` has downloaded.
CUDA = Path(os.environ.get("KERNELPATH_CUDA", ROOT / ".cuda"))


def missing(reason):
    """Skips, or fails where KERNELPATH_REQUIRE_DEVICES says that CUDA has to be tested."""
    if "cuda" in os.environ.get("KERNELPATH_REQUIRE_DEVICES", ""):
        pytest.fail(reason)
    pytest.skip(reason)


def need(*paths):
    for path in paths:
        if not path.exists():
            missing(f"{path} is not there: run `make cuda-headers`")


def build(version=13):
    """The folder of the stand-in's libraries, built against the headers of a CUDA version."""
    need(CUDA / str(version) / "include/cuda.h")
    if not shutil.which("g++"):
        missing("the stand-in needs g++")
    out = CUDA / ("standin" if version == 13 else f"standin-{version}")
    command = ["sh", SOURCES / "build.sh", out, CUDA / str(version) / "include"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def kernel_text():
    """The CUDA text as launcher.rs puts it together, and the names of its kernels."""
    if not (KERNELS / "kernels.src").exists():
        missing(f"there are no kernels in {KERNELS}")
    launcher = (KERNELS / "launcher.rs").read_text()
    read = {name: (KERNELS / name).read_text() for name in ("prelude_cu.h", "product.src", "kernels.src")}
    variants = re.findall(r'\("(float|double)", (\d+), "(\w+)"\)', launcher)
    assert variants, "launcher.rs no longer lists the variants of product.src: change kernel_text"
    text = read["prelude_cu.h"] + "\n#define TILE 64\n#define STEP 16\n"
    for real, columns, suffix in variants:
        text += f"#define REAL {real}\n#define COLUMNS {columns}\n#define NAME(x) x##_{suffix}\n{read['product.src']}\n"
        text += "#undef REAL\n#undef COLUMNS\n#undef NAME\n"
    listed = re.search(r"const KERNELS: \[&str; \d+\] = \[(.*?)\];", launcher, re.DOTALL).group(1)
    return text + read["kernels.src"], re.findall(r'"(\w+)"', listed)
