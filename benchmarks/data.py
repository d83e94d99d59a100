"""Real data, from the folder KERNELPATH_DATA or ../shared/data; a case that does not find its own is skipped."""

from __future__ import annotations

import lzma
import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from measure import SEED, NotAvailable

DATA = Path(os.environ.get("KERNELPATH_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
SIDE = 28  # pixels of a digit


@dataclass
class Split:
    """Rows to train on, and rows to test on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def head(self, n: int) -> Split:
        """The first n of both."""
        return Split(self.X[:n], self.y[:n], self.X_test[:n], self.y_test[:n])


def found(name: str) -> Path:
    file = DATA / name
    if not file.exists():
        raise NotAvailable(f"{file.name} is not there: set KERNELPATH_DATA to the folder that holds it")
    return file


def unpacked(name: str) -> bytes:
    return lzma.decompress(found(name).read_bytes())


def libsvm_data(name: str, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """A LIBSVM file as dense float32."""
    X, y = sparse_libsvm_data(name, n_features)
    return np.ascontiguousarray(X.toarray()), y


def sparse_libsvm_data(name: str, n_features: int) -> tuple[Any, np.ndarray]:
    """A LIBSVM file as a CSR matrix of float32."""
    X, y = load_svmlight_file(BytesIO(unpacked(f"{name}.xz")), n_features=n_features, dtype=np.float32)
    return X, y.astype(int)


def libsvm_split(name: str, n_features: int) -> Split:
    """A LIBSVM file and its test file, `name`.t."""
    return Split(*libsvm_data(name, n_features), *libsvm_data(f"{name}.t", n_features))


def fifth_held_out(X: np.ndarray, y: np.ndarray) -> Split:
    """Test rows are a fifth, drawn from each class."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=SEED)
    return Split(X, y, X_test, y_test)


def covtype() -> Split:
    """Class 2 against the rest; each feature scaled to [0, 1] on the training rows, as LIBSVM's file of it is."""
    table = np.loadtxt(BytesIO(unpacked("covtype.csv.xz")), delimiter=",", skiprows=1, dtype=np.float32)
    split = fifth_held_out(table[:, :-1], np.where(table[:, -1] == 2, 1, -1))
    scaler = MinMaxScaler().fit(split.X)
    split.X, split.X_test = scaler.transform(split.X), scaler.transform(split.X_test)
    return split


def deformed_digits(n: int, digits: tuple[int, int] = (4, 6)) -> Split:
    """Two digits of MNIST: the training images, and synthetic rows up to n, which are deformed copies of them in turn.

    A copy is read at the places A(u) + t + s·d(u) for its pixels u: A rotates by up to 7.5°, t shifts by up to a pixel
    on each axis, d is one of 500 smooth random fields (white noise, Gaussian filter of 4 pixels, scaled to a root
    mean square of 1 pixel), and 0 ≤ s ≤ 1. Test rows are the real test images. Pixels are in [0, 1].
    """
    with np.load(found("mnist_full.npz")) as file:
        parts = {name: file[name] for name in file.files}
    train, test = np.isin(parts["y_train"], digits), np.isin(parts["y_test"], digits)
    images = parts["X_train"][train].astype(np.float32) / 255.0
    X_test = parts["X_test"][test].astype(np.float32) / 255.0
    source = np.arange(n) % len(images)
    X = np.empty((n, SIDE * SIDE), dtype=np.float32)
    real = min(n, len(images))
    X[:real] = images[:real]
    rng = np.random.default_rng(SEED)
    fields = smooth_fields(500, rng)
    images = images.reshape(-1, SIDE, SIDE)
    for start in range(real, n, 2000):
        rows = slice(start, start + 2000)
        X[rows] = deformed(images, source[rows], fields, rng).reshape(-1, SIDE * SIDE)
    labels = parts["y_train"][train].astype(int)[source]
    return Split(X, labels, X_test, parts["y_test"][test].astype(int))


def smooth_fields(count: int, rng: np.random.Generator) -> np.ndarray:
    """Displacements (count, 2, SIDE, SIDE), smooth over the pixels."""
    noise = rng.standard_normal((count, 2, SIDE, SIDE))
    smooth = gaussian_filter(noise, sigma=(0, 0, 4, 4))
    return smooth / np.sqrt(np.mean(smooth**2, axis=(1, 2, 3), keepdims=True))


def deformed(images: np.ndarray, source: np.ndarray, fields: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A deformed copy of each of the images `source`."""
    count = len(source)
    angle = rng.uniform(-np.pi / 24, np.pi / 24, (count, 1, 1))
    shift = rng.uniform(-1.0, 1.0, (count, 2, 1, 1))
    strength = rng.uniform(0.0, 1.0, (count, 1, 1, 1))
    move = shift + strength * fields[rng.integers(len(fields), size=count)]
    centre = (SIDE - 1) / 2
    down, right = np.indices((SIDE, SIDE)) - centre
    places = np.empty((3, count, SIDE, SIDE))
    places[0] = source[:, None, None]
    places[1] = np.cos(angle) * down - np.sin(angle) * right + centre + move[:, 0]
    places[2] = np.sin(angle) * down + np.cos(angle) * right + centre + move[:, 1]
    return map_coordinates(images, places, order=1)
