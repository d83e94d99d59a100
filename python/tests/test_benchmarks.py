"""The pieces of the benchmarks on large data, on few rows of it."""

import sys

import numpy as np
import pytest
from conftest import REPOSITORY

from kernelpath import KernelSVC

sys.path.append(str(REPOSITORY / "benchmarks"))
import data
import nystrom
import peers
from measure import NotAvailable


def loaded(load, *arguments):
    try:
        return load(*arguments)
    except NotAvailable as reason:
        pytest.skip(str(reason))


def test_low_rank_case():
    split = loaded(data.libsvm_split, "a9a", 123).head(2000)
    bars = nystrom.Bars(accuracy=0.8, ratio=1e-3, memory=None)
    row = nystrom.against_linear_svc("a9a", split, 30, bars, 17.9, n_Cs=3, n_landmarks=100, peer_Cs=1)
    assert row.passed
    assert row.worst_gap <= 1e-6
    assert "1 of 3 C's scaled" in row.peer
    assert "paper's L40S 17.9 s" in row.measured


def test_peer_has_the_features_of_the_fit():
    split = loaded(data.libsvm_split, "a9a", 123).head(1000)
    model = KernelSVC(low_rank=True, n_landmarks=100, rank=30, Cs=1.0, cv=None, random_state=0).fit(split.X, split.y)
    Z = np.column_stack([nystrom.features(model, split.X), np.ones(len(split.y))])
    f = model.decision_function(split.X)
    np.testing.assert_allclose(Z @ np.linalg.lstsq(Z, f)[0], f, atol=1e-5)


def test_peer_is_stopped(tmp_path, monkeypatch, small):
    Z, y = small
    np.save(tmp_path / "Z.npy", Z)
    monkeypatch.setattr(peers, "LINEAR_SVC_LIMIT", 1e-6)
    rows = np.arange(len(y))
    assert peers.linear_svc_at(tmp_path / "Z.npy", y, 1e3, [(rows, rows)], 1) == (1e-6, None)


def test_deformed_digits():
    n = 12_000
    split = loaded(data.deformed_digits, n)
    assert split.X.shape == (n, 784)
    assert split.X.min() >= 0.0
    assert split.X.max() <= 1.0
    assert set(split.y) == set(split.y_test) == {4, 6}
    real = 11_760  # training images of 4 and 6
    np.testing.assert_array_equal(split.y[real:], split.y[: n - real])
    copies, originals = split.X[real:], split.X[: n - real]
    correlation = [np.corrcoef(copy, original)[0, 1] for copy, original in zip(copies, originals, strict=True)]
    assert 0.3 < np.mean(correlation) < 0.95
    np.testing.assert_array_equal(copies, data.deformed_digits(n).X[real:])
