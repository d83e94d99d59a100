"""scikit-learn's callbacks, from its version 1.9 on: a fit tells them of its tasks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

__all__ = ["CallbackSupportMixin", "FitTasks", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """There are no callbacks to support."""

    def _with_callbacks(method: Any) -> Any:
        return functools.wraps(method)(lambda *arguments, **keywords: method(*arguments, **keywords))


_Method = TypeVar("_Method", bound=Callable[..., Any])

# What the core reports on, as tasks, and the parts that these consist of.
TASKS = {"kernel": ("kernel matrix", "tile"), "path": ("path", "model")}


def with_callbacks(method: _Method) -> _Method:
    """Decorate `fit`: callbacks that it set up are torn down when it ends, also by an exception.

    It is one call deeper on the stack with every version of scikit-learn, which `stacklevel` of warnings counts, as it
    does :func:`at_once`.
    """
    return cast(_Method, _with_callbacks(method))


class FitTasks:
    """The tasks of one fit: those of each γ, which are the kernel matrix, by tiles, and the path, by models.

    With one γ the two are tasks of the fit itself. A callback that asks to stop at the end of a γ ends the choice among
    the γ's; nothing else stops.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, n_gammas: int = 1) -> None:
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._has_gammas = n_gammas > 1
        self._fit = estimator._init_callback_context(max_subtasks=n_gammas if self._has_gammas else len(TASKS))
        self._fit.call_on_fit_task_begin(**self._data)
        self._gamma, self._phase = self._fit, cast(Any, None)
        self._seen: set[str] = set()

    @classmethod
    def of(cls, estimator: Any, *arguments: Any) -> FitTasks | None:
        """The tasks, if any callback wants to know of them."""
        return cls(estimator, *arguments) if getattr(estimator, "_skl_callbacks", None) else None

    def begin_gamma(self, name: str) -> None:
        """Begin the tasks of one γ."""
        self._seen.clear()
        if self._has_gammas:
            self._gamma = self._begun(self._fit, name, len(TASKS))

    def __call__(self, done: int, total: int, phase: str) -> None:
        """Begin and end the tasks that are new since the last report."""
        if total == 0:  # not known yet
            return
        if phase not in self._seen:
            self._end_phase()
            self._seen.add(phase)
            self._phase, self._done = self._begun(self._gamma, TASKS[phase][0], total), 0
        elif self._phase is None or self._phase.task_name != TASKS[phase][0]:
            return  # the core came back to it, and a task cannot begin again
        for _ in range(min(done, self._phase.max_subtasks) - self._done):
            self._begun(self._phase, TASKS[phase][1], 0).call_on_fit_task_end(**self._data)
            self._done += 1

    def end_gamma(self) -> bool:
        """End the tasks of one γ; True if a callback asks to try no other."""
        self._end_phase()
        return self._has_gammas and self._gamma.call_on_fit_task_end(**self._data)

    def end(self) -> None:
        """End the fit, whose model callbacks may look at."""
        self._fit.call_on_fit_task_end(**self._data, reconstruction_attributes={})

    def _begun(self, parent: Any, name: str, max_subtasks: int) -> Any:
        context = parent.subcontext(task_name=name, max_subtasks=max_subtasks)
        return context.call_on_fit_task_begin(**self._data)

    def _end_phase(self) -> None:
        if self._phase is not None:
            self._phase.call_on_fit_task_end(**self._data)
        self._phase = None
