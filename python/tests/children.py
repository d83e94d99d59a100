"""Programs run in a process of their own."""

import contextlib
import queue
import signal
import subprocess
import sys
import threading
import time


def interrupted_in(phase, code):
    """The line that `code` prints after Ctrl-C, sent when it has printed `phase`, and the seconds that took.

    A child that was in the middle of naming its next phase may still print that name first.
    """
    command = [sys.executable, "-c", code]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if line.strip() == phase:
                break
        time.sleep(0.1)
        started = time.monotonic()
        child.send_signal(signal.SIGINT)
        output = next((line for line in child.stdout if "interrupted" in line), "")
        return output, time.monotonic() - started
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def answers(command, shares, seconds):
    """(question, answer) for each question of `shares`, one child a share, in the order they come.

    A child reads a question a line and answers each with a line. The answer is None where it takes longer than
    `seconds`, and the exit code where the child ends without one; another child then goes on with the next question.
    """
    found = queue.Queue()
    threads = [threading.Thread(target=_ask, args=(command, share, seconds, found)) for share in shares]
    for thread in threads:
        thread.start()
    for _ in range(sum(map(len, shares))):
        yield found.get()
    for thread in threads:
        thread.join()


def _ask(command, questions, seconds, found):
    child = None
    for question in questions:
        if child is None:
            child, lines, reader = _start(command)
            lines.get()  # it is ready
        try:
            child.stdin.write(f"{question}\n")
            child.stdin.flush()
            answer = lines.get(timeout=seconds) or child.wait()
        except queue.Empty:
            answer = None
        except BrokenPipeError:
            answer = child.wait()
        found.put((question, answer))
        if not isinstance(answer, str):
            _end(child, reader)
            child = None
    if child is not None:
        _end(child, reader)


def _start(command):
    """A child, the queue of its lines (an empty one when it ends), and the thread that fills it."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    child, lines = subprocess.Popen(command, text=True, **pipes), queue.Queue()

    def read():
        for line in child.stdout:
            lines.put(line)
        lines.put("")

    reader = threading.Thread(target=read)
    reader.start()
    return child, lines, reader


def _end(child, reader):
    child.kill()
    child.wait()
    reader.join()
    child.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        child.stdin.close()


def finished_within(seconds, code):
    """What `code` prints; fails where it does not end in time, or ends with an error."""
    command = [sys.executable, "-c", code]
    child = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert child.returncode == 0, child.stderr
    return child.stdout
