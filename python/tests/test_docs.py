"""Every Python block of the README and of docs/ runs; blocks of one file share a namespace, in order."""

import doctest
import re

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


def test_docstrings():
    failed, tried = doctest.testmod(estimators)
    assert tried > 0
    assert failed == 0
