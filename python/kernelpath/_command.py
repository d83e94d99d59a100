"""The `kernelpath` command, which is written in Rust."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kernelpath import _core


def main() -> int:
    """Run the command with the arguments of this process, and return its exit status."""
    with _interruptible():
        return _core.run_command(["kernelpath", *sys.argv[1:]])


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends the process, or does what the command makes of it: Python would wait for the end of the command."""
    if threading.current_thread() is not threading.main_thread():  # which alone hears signals
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
