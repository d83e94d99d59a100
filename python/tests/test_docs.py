"""Every Python block of the README and of docs/ runs (blocks of one file share a namespace, in order), and the demo."""

import doctest
import os
import re
import subprocess
import sys

import pytest
from conftest import REPOSITORY

from kernelpath import estimators

FILES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def blocks(file):
    """(line number, code) of the fenced ```python blocks."""
    text = file.read_text(encoding="utf-8")
    for match in re.finditer(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start(1)), match[1]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_python_blocks_run(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for line, code in blocks(file):
        exec(compile("\n" * line + code, str(file), "exec"), namespace)


def test_readme_has_python():
    assert list(blocks(REPOSITORY / "README.md"))


def test_demo_runs(tmp_path):
    picture = tmp_path / "demo.png"
    command = [sys.executable, REPOSITORY / "examples" / "demo.py", "-n", "200", "-p", "4", "--picture", picture]
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    output = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", env=environment).stdout
    assert "550 of 550 models proved optimal to 1e-06" in output
    assert re.search(r"kernelpath is [\d.]+ × faster", output)
    assert picture.stat().st_size > 10_000


def test_docstrings():
    failed, tried = doctest.testmod(estimators)
    assert tried > 0
    assert failed == 0
