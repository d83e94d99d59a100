"""The table: its rows, and the cases that make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Row:
    """One line of the table; `passed` is None when there is no bar, `at_least` says that the peer was stopped."""

    case: str
    measured: str
    worst_gap: float | None = None
    peer: str = ""
    ratio: float | None = None
    bar: str = "report"
    passed: bool | None = None
    at_least: bool = False

    HEADER = "| case | measured | worst gap | peer | ratio | bar | |\n|---|---|---|---|---|---|---|"

    def __str__(self) -> str:
        gap = "" if self.worst_gap is None else f"{self.worst_gap:.1e}"
        ratio = "" if self.ratio is None else f"{'≥ ' if self.at_least else ''}{self.ratio:.1f} ×"
        verdict = {True: "pass", False: "**FAIL**", None: ""}[self.passed]
        return f"| {self.case} | {self.measured} | {gap} | {self.peer} | {ratio} | {self.bar} | {verdict} |"


Case = Callable[[bool], Row]
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def register(function: Case) -> Case:
        CASES[name] = function
        return function

    return register
