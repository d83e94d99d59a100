"""Who watches a fit: one live line of progress (tqdm if installed, else plain text; sparse lines where nothing is live)
and scikit-learn's callbacks.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

from kernelpath._callbacks import FitTasks

QUIET_SECONDS = 10.0


class Watch:
    """All that watch a fit, as one."""

    def __init__(self, line: ProgressLine | None, tasks: FitTasks | None) -> None:
        self._line, self._tasks = line, tasks
        self._all = [watcher for watcher in (line, tasks) if watcher is not None]

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._line is not None:
            self._line.__exit__(*error)

    def if_any(self) -> Watch | None:
        """What the core reports to; None if nobody watches."""
        return self if self._all else None

    def __call__(self, done: int, total: int, phase: str) -> None:
        """Report to all that `done` of `total` parts of a phase are done."""
        for watcher in self._all:
            watcher(done, total, phase)

    def begin_gamma(self, at: int, gammas: list[float]) -> None:
        """Say that the γ at this place begins."""
        name = f"gamma {at + 1} of {len(gammas)} ({gammas[at]:.3g})" if len(gammas) > 1 else ""
        for watcher in self._all:
            watcher.begin_gamma(name)

    def end_gamma(self) -> bool:
        """Say that it ended; True if a callback asks to try no other."""
        return self._tasks is not None and self._tasks.end_gamma()


class ProgressLine:
    """Callable ``(done, total, phase)`` that shows how far a fit has come, on stderr.

    A stream that cannot be written to, because it is closed, or because nobody reads it any more, is written to no
    more: the fit goes on.
    """

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._gone = self._stream is None or getattr(self._stream, "closed", False)  # None under pythonw
        self._live = not self._gone and (self._stream.isatty() or _in_notebook())
        self._bar: Any = None
        self._gamma = ""
        self._phase = ""
        self._width = 0
        self._last_quarter = -1
        self._last_time = self._started = time.monotonic()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._attempt(self._end)

    def __call__(self, done: int, total: int, phase: str) -> None:
        """Show `done` of `total`; a total of 0 is not known yet."""
        if total > 0:
            self._attempt(self._show, done, total, phase)

    def begin_gamma(self, name: str) -> None:
        """Name the γ that the next reports are of, if there are several."""
        self._gamma, self._phase = name and f"{name}, ", ""

    def _attempt(self, write: Callable[..., None], *arguments: Any) -> None:
        """Write, unless the stream is closed (a ValueError) or its reader is gone (an OSError)."""
        if self._gone:
            return
        try:
            write(*arguments)
        except (OSError, ValueError):
            self._gone = True
            if self._bar is not None:
                self._bar.disable = True  # it would write once more when it is collected

    def _show(self, done: int, total: int, phase: str) -> None:
        if not self._live:
            self._sparse(done, total, phase)
        elif (tqdm := _tqdm()) is not None:
            self._tqdm(tqdm, done, total, phase)
        else:
            text = self._text(done, total, phase)
            self._write("\r" + text.ljust(self._width))
            self._width = len(text)

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._width:
            self._write("\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _text(self, done: int, total: int, phase: str) -> str:
        seconds = time.monotonic() - self._started
        percent = 100 * done // total
        return f"{self._label}: {self._gamma}{phase} {done}/{total} ({percent} %), {seconds:.1f} s"

    def _tqdm(self, tqdm: Any, done: int, total: int, phase: str) -> None:
        title, unit = f"{self._label}: {self._gamma}{phase}", " models" if phase == "path" else " tiles"
        if self._bar is None:
            self._bar = tqdm(total=total, desc=title, unit=unit, file=self._stream)
        elif phase != self._phase:
            self._bar.unit = unit
            self._bar.set_description(title, refresh=False)
            self._bar.reset(total=total)
        self._phase = phase
        self._bar.update(done - self._bar.n)

    def _sparse(self, done: int, total: int, phase: str) -> None:
        """A line at each quarter of a phase, or after a while of silence."""
        now, quarter = time.monotonic(), 4 * done // total
        if phase != self._phase:
            self._phase, self._last_quarter = phase, 0
        if quarter > self._last_quarter or now - self._last_time >= QUIET_SECONDS:
            self._last_quarter, self._last_time = quarter, now
            self._write(self._text(done, total, phase) + "\n")


def _tqdm() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without ipywidgets gets the text bar
            from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs us: its streams are no terminals, but they are live."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
