"""Chromium without a window, spoken to through a pipe in its DevTools protocol."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0  # seconds until an answer must be there

# The browser reads descriptor 3 and writes to 4.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


def program():
    """The path of the browser, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page at a time; what it logs as an error, and what it asks of a network, is kept."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run")
        command = [sys.executable, "-c", LAUNCH, str(to_browser), str(to_us), program(), *options]
        command += ["--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={self.folder.name}"]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, pass_fds=(to_browser, to_us), start_new_session=True, **quiet)
        os.close(to_browser)
        os.close(to_us)
        self.sender, self.receiver = os.fdopen(from_us, "wb", 0), from_browser
        os.set_blocking(self.receiver, False)
        self.rest, self.count, self.session = b"", 0, None
        self.errors, self.requests, self.loaded = [], [], False
        try:
            self.begin()
        except BaseException:
            self.close()
            raise

    def begin(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        self.session = None  # the whole browser is asked
        try:
            self.ask("Browser.close")
            self.process.wait(PATIENCE)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.sender.close()
        os.close(self.receiver)
        self.folder.cleanup()

    def ask(self, method, **parameters):
        """The answer to a command."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        self.sender.write(json.dumps(message).encode() + b"\0")
        return self.until(lambda answer: answer.get("id") == self.count, method)

    def until(self, is_wanted, what):
        """The message that is wanted; of the others, what matters is kept."""
        end = time.monotonic() + PATIENCE
        while True:
            while b"\0" in self.rest:
                raw, self.rest = self.rest.split(b"\0", 1)
                message = json.loads(raw)
                self.note(message)
                if is_wanted(message):
                    assert "error" not in message, (what, message["error"])
                    return message.get("result", message)
            assert time.monotonic() < end, f"the browser did not answer {what}"
            assert self.process.poll() is None, f"the browser ended before it answered {what}"
            try:
                self.rest += os.read(self.receiver, 1 << 20)
            except BlockingIOError:
                time.sleep(0.01)

    def note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(parameters["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.errors.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, file, width, height=900, scheme="light"):
        """Show a file in a window of that size."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **metrics)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.errors, self.requests, self.loaded = [], [], False
        self.ask("Page.navigate", url=file.resolve().as_uri())
        if not self.loaded:
            self.until(lambda message: message.get("method") == "Page.loadEventFired", "the page")

    def value(self, expression):
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def point_at(self, x, y):
        """Move the pointer."""
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self):
        """The whole page as the text of a PNG in base64."""
        return self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"]
