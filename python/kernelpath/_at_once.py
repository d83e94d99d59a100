"""What a fit learns is set at its end, by one assignment: an estimator is as it was before, or fitted anew."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

_Method = TypeVar("_Method", bound=Callable[..., Any])


def at_once(learned: frozenset[str]) -> Callable[[_Method], _Method]:
    """Decorate `fit`, which sets the attributes `learned`, so that none of them is seen before all are.

    `fit` works on a twin, which has all of the estimator but what an earlier fit learned, and whose attributes then
    become those of the estimator. An exception, or a signal at any moment, so leaves the estimator as it was.
    """

    def decorated(fit: _Method) -> _Method:
        @functools.wraps(fit)
        def fit_at_once(self: Any, *arguments: Any, **keywords: Any) -> Any:
            kind: Any = type(self)
            twin = kind.__new__(kind)
            vars(twin).update(without(self, learned))
            given = dict(vars(twin))
            fit(twin, *arguments, **keywords)
            # What a callback or a scorer set on the estimator itself meanwhile stays.
            changed = {name: value for name, value in vars(twin).items() if given.get(name, given) is not value}
            attributes = {**without(self, learned), **changed}
            self.__dict__ = attributes  # one assignment: a loop of them could be interrupted half-way
            return self

        return cast(_Method, fit_at_once)

    return decorated


def without(estimator: Any, learned: frozenset[str]) -> dict[str, Any]:
    """The attributes of an estimator that no fit has set."""
    return {name: value for name, value in vars(estimator).items() if name not in learned}
