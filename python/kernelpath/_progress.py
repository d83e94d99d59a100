"""One live line of progress: tqdm if installed, else plain text; sparse lines where nothing is live."""

from __future__ import annotations

import sys
import time
import warnings
from types import TracebackType
from typing import Any, TextIO

QUIET_SECONDS = 10.0


class ProgressLine:
    """Callable ``(done, total, phase)`` that shows how far a fit has come, on stderr."""

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty() or _in_notebook()
        self._bar: Any = None
        self._phase = ""
        self._width = 0
        self._last_quarter = -1
        self._last_time = self._started = time.monotonic()

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._width:
            self._stream.write("\n")
            self._stream.flush()

    def __call__(self, done: int, total: int, phase: str) -> None:
        """Show `done` of `total`; a total of 0 is not known yet."""
        if total == 0:
            return
        if not self._live:
            self._sparse(done, total, phase)
        elif (tqdm := _tqdm()) is not None:
            self._tqdm(tqdm, done, total, phase)
        else:
            text = self._text(done, total, phase)
            self._stream.write("\r" + text.ljust(self._width))
            self._stream.flush()
            self._width = len(text)

    def _text(self, done: int, total: int, phase: str) -> str:
        seconds = time.monotonic() - self._started
        percent = 100 * done // total
        return f"{self._label}: {phase} {done}/{total} ({percent} %), {seconds:.1f} s"

    def _tqdm(self, tqdm: Any, done: int, total: int, phase: str) -> None:
        title, unit = f"{self._label}: {phase}", " models" if phase == "path" else " tiles"
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
            self._stream.write(self._text(done, total, phase) + "\n")
            self._stream.flush()


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
