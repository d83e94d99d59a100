"""Fits of every kind give what they gave when recorded.json was written (`python python/tests/recorded.py --write`).

On the instruction set of the record all results agree to 1e-9; on another, where sums are rounded otherwise, objectives
agree as far as their certificates grant, and scores to 3 %.
"""

import copy

import numpy as np
import pytest
from recorded import CASES, LARGE, MODELS, changes, contradictions, differences, recorded


@pytest.fixture(scope="module")
def record():
    return recorded()


def test_every_case_is_recorded(record):
    assert list(record["outcomes"]) == list(CASES)


@pytest.mark.parametrize("group", [*MODELS, "large", "features"])
def test_results_are_as_recorded(record, group):
    names = [name for name in CASES if name.replace(": ", ", ").split(", ")[0] == group]
    assert names
    found = {name: differences(name, record) for name in names}
    assert not any(found.values()), "\n" + "\n".join(f"{name}: {line}" for name in names for line in found[name])


@pytest.mark.parametrize(
    ("key", "factor", "seen_anywhere"),
    [("objective", 1 + 1e-8, False), ("objective", 1 + 1e-5, True), ("score", 1 + 1e-8, False), ("score", 0.9, True)],
)
def test_changes_would_be_seen(record, key, factor, seen_anywhere):
    """The first line of all sees to 1e-9, the second, for other instruction sets, what no rounding explains."""
    for name in ("svc, auto", "logistic, low rank, auto", "squared, loo"):
        was = record["outcomes"][name]
        now = copy.deepcopy(was)
        assert not changes(was, now)
        assert not contradictions(was, now, 1e-6)
        now[key] *= factor
        assert changes(was, now)
        assert bool(contradictions(was, now, 1e-6)) == seen_anywhere


@pytest.mark.parametrize(
    "name",
    ["svc ovo", "svc squared ovr, gammas", "multinomial", "multinomial, low rank", "dwd, gammas", "huber of two"],
)
def test_machines_of_one_fit_do_not_depend_on_threads(name):
    """To the bit; single machines are in test_losses.py, test_low_rank.py and test_runtime.py."""
    first, *others = (bits(LARGE[name].fit(n_jobs=n_jobs)) for n_jobs in (1, 2, 2))
    assert all(other == first for other in others)


def bits(model):
    names = ("scores_", "gaps_", "oof_decision_", "dual_coef_", "intercept_", "n_iter_", "objective_", "C_", "gamma_")
    return [np.asarray(getattr(model, name)).tobytes() for name in names]
