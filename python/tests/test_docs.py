"""Every Python block of the README and of docs/ runs (blocks of one file share a namespace, in order), and the demo."""

import doctest
import inspect
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import REPOSITORY

import kernelpath

FILES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


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


def check_example(name):
    """The object of that name, once its example ran."""
    found = getattr(kernelpath, name)
    (test,) = [test for test in doctest.DocTestFinder(recurse=False).find(found, name) if test.examples]
    assert doctest.DocTestRunner().run(test).failed == 0
    return found


FUNCTIONS = [name for name in kernelpath.__all__ if inspect.isfunction(getattr(kernelpath, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_example_of_function(name):
    check_example(name)


@pytest.mark.parametrize(
    "name", [name for name in kernelpath.__all__ if not name.endswith("Warning") and name not in FUNCTIONS]
)
def test_docstring(name):
    """Its example runs, and each parameter and attribute is described, none that is not there."""
    kind = check_example(name)
    assert re.findall(r"\{\w+\}", kind.__doc__) == []

    before, attributes = kind.__doc__.split("    Attributes\n")
    described = re.findall(r"^    (\w+) : ", before, flags=re.MULTILINE)
    assert described == list(inspect.signature(kind).parameters)
    rng = np.random.RandomState(0)
    X = pd.DataFrame(rng.standard_normal((20, 1)), columns=["x"])
    model = kind()
    if "Cs" in model.get_params():
        model.set_params(Cs=[1.0, 2.0], cv=2)
    # Some attributes are there only then.
    model.set_params(**{name: True for name in ("probability", "low_rank") if name in model.get_params()})
    model.fit(X, X["x"] > 0)
    described = ", ".join(re.findall(r"^    ((?:\w+_, )*\w+_) : ", attributes, flags=re.MULTILINE)).split(", ")
    properties = [name for name, _ in inspect.getmembers(kind, lambda member: isinstance(member, property))]
    there = [*vars(model), *properties]
    assert sorted(described) == sorted(key for key in there if key.endswith("_") and not key.startswith("_"))
