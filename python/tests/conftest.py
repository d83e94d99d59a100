import lzma
import os
import signal
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file, make_circles
from sklearn.preprocessing import StandardScaler

import kernelpath

settings.register_profile("kernelpath", deadline=None, derandomize=True, max_examples=200)
settings.load_profile("kernelpath")

# What a shell runs in the background ignores Ctrl-C, and so would all children of the tests.
signal.signal(signal.SIGINT, signal.default_int_handler)

DEVICES = os.environ.get("KERNELPATH_DEVICES", "opencl").split(",")
REQUIRED = os.environ.get("KERNELPATH_REQUIRE_DEVICES", "").split(",")
REPOSITORY = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("KERNELPATH_DATA", REPOSITORY.parent / "shared" / "data"))


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X[:250]), np.where(y[:250] == 1, 1, -1)


def digits_3v8():
    X, y = load_digits(return_X_y=True)
    rows = np.flatnonzero((y == 3) | (y == 8))[:240]
    return X[rows] / 16.0, np.where(y[rows] == 8, 1, -1)


def circles():
    X, y = make_circles(150, noise=0.15, factor=0.5, random_state=0)
    return X, np.where(y == 1, 1, -1)


def heart_scale():
    file = DATA / "heart_scale.xz"
    if not file.exists():
        pytest.skip(f"{file.name} is not there; set KERNELPATH_DATA to the folder that holds it")
    X, y = load_svmlight_file(BytesIO(lzma.decompress(file.read_bytes())), n_features=13)
    return X.toarray(), y.astype(int)


DATASETS = {f.__name__: f for f in (breast_cancer, digits_3v8, circles, heart_scale)}


@pytest.fixture(autouse=True)
def seeded():
    """What draws from numpy's global generator (README, random_state=None) draws the same in every run."""
    np.random.seed(0)  # noqa: NPY002


@pytest.fixture(params=DATASETS, scope="module")
def dataset(request):
    """(X, y) of a real or simulated two-class problem, y of −1 and +1."""
    return DATASETS[request.param]()


@pytest.fixture(scope="session")
def small():
    """60 overlapping rows: quick, with support vectors at both bounds and free."""
    rng = np.random.RandomState(0)
    y = np.where(rng.rand(60) < 0.4, 1, -1)
    return rng.standard_normal((60, 3)) + 0.7 * y[:, None], y


@pytest.fixture(scope="session", params=DEVICES)
def device(request):
    """The name of a device that can be used.

    The devices are those of KERNELPATH_DEVICES (such as "opencl,cuda"), else OpenCL. One that is not there is skipped,
    unless KERNELPATH_REQUIRE_DEVICES names it.
    """
    found = [device for device in kernelpath.devices() if device.name.split(":")[0] == request.param]
    if not any(device.problem is None for device in found):
        problems = "; ".join(str(device.problem) for device in found)
        (pytest.fail if request.param in REQUIRED else pytest.skip)(f"no device {request.param!r}: {problems}")
    return request.param
