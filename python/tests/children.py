"""Programs run in a process of their own."""

import signal
import subprocess
import sys
import time


def interrupted_in(phase, code):
    """The line that `code` prints after Ctrl-C, sent when it has printed `phase`, and the seconds that took."""
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
        output = child.stdout.readline()
        return output, time.monotonic() - started
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def finished_within(seconds, code):
    """What `code` prints; fails where it does not end in time, or ends with an error."""
    command = [sys.executable, "-c", code]
    child = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert child.returncode == 0, child.stderr
    return child.stdout
