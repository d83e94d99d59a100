"""Reports: what they say, and how a browser shows them."""

import html
import os
import re

import numpy as np
import pandas as pd
import pytest
from browser import Browser, program
from scipy import sparse
from sklearn.datasets import load_iris, make_moons

import kernelpath
from kernelpath import KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, _core

OVERFLOW = """(() => {
  const wide = document.documentElement.clientWidth;
  const inside = (e) => e.closest(".scroll, pre, svg, .tip, caption");
  const isOut = (e) => !inside(e) && e.getBoundingClientRect().right > wide + 1;
  const out = [...document.querySelectorAll("body *")].filter(isOut);
  return [document.documentElement.scrollWidth - wide, out.map((e) => e.outerHTML.slice(0, 80))];
})()"""

# The least contrast between a text and what is behind it, over all elements that have a text of their own.
CONTRAST = """(() => {
  const numbers = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const linear = (v) => (v <= 10.31 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = (c) => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = numbers(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  let least = [99, ""];
  for (const e of document.querySelectorAll("body *")) {
    const hasText = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!hasText || e.closest("svg, script, .tip, caption")) continue;
    const [a, b] = [light(numbers(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least[0]) least = [ratio, e.outerHTML.slice(0, 120)];
  }
  return least;
})()"""


def text_of(page):
    """The words of a page, without its elements."""
    page = re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", page)).replace("\u202f", " ")


def report(model, path, *data, **options):
    assert model.report(path, *data, **options) is None
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.3, random_state=0)


@pytest.fixture(scope="module")
def pages(tmp_path_factory, moons):
    """Reports of several kinds of models."""
    folder, (X, y) = tmp_path_factory.mktemp("reports"), moons
    iris = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor, with a long name that wraps", "<b>virginica</b>"])[iris[1]]
    t = np.linspace(0.0, 6.0, 120)[:, None]
    wave = np.sin(t[:, 0]) + 0.2 * np.cos(17.0 * t[:, 0])
    few = np.geomspace(0.01, 100.0, 7)
    fits = {
        "binary": (KernelSVC(Cs=few, probability=True), X, y),
        "grid": (KernelLogistic(Cs=few, gamma=[0.3, 1.0, 3.0], cv=3), X, y),
        "classes": (KernelSVC(Cs=few, multi_class="ovo", cv=3), iris[0], names),
        "quantiles": (KernelQuantile(tau=[0.1, 0.5, 0.9], Cs=few, cv=3), t, wave),
        "regression": (KernelRegressor(Cs=few, cv=3), t, np.c_[wave, -2.0 * wave]),
    }
    for name, (model, rows, truth) in fits.items():
        report(model.fit(rows, truth), folder / f"{name}.html", rows, truth, title=f"A report: {name}")
    return sorted(folder.glob("*.html"))


@pytest.fixture(scope="module")
def browser():
    if program() is None:
        assert "KERNELPATH_REQUIRE_CHROMIUM" not in os.environ, "Chromium is missing"
        pytest.skip("Chromium is not installed")
    with Browser() as browser:
        yield browser


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1200, "dark")])
def test_a_browser_shows_every_page_without_errors_or_overflow(browser, pages, width, scheme):
    assert len(pages) == 5
    for page in pages:
        browser.open(page, width, scheme=scheme)
        assert browser.errors == [], page.name
        assert {url.split(":")[0] for url in browser.requests} <= {"file", "data"}, page.name
        assert browser.value(OVERFLOW) == [0, []], page.name
        ratio, where = browser.value(CONTRAST)
        assert ratio >= 4.5, (page.name, where)
        back = browser.value("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", back))) < 300) == (scheme == "dark")
        browser.value("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        assert browser.value(OVERFLOW) == [0, []], f"{page.name} with its tables"


def test_values_appear_under_the_pointer(browser, pages):
    page = next(page for page in pages if page.stem == "binary")
    browser.open(page, 1200)
    place = "document.querySelector('#scores .hit').getBoundingClientRect()"
    browser.value("document.querySelector('#scores').scrollIntoView({behavior: 'instant'})")
    assert browser.value("document.querySelector('.tip').hidden")
    browser.point_at(browser.value(f"{place}.x + 2"), browser.value(f"{place}.y + 20"))
    assert re.match(r"C = 0.01\n0\.\d+ ± 0\.\d+", browser.value("document.querySelector('.tip').textContent"))
    assert not browser.value("document.querySelector('.tip').hidden")
    browser.point_at(2, 2)
    assert browser.value("document.querySelector('.tip').hidden")


def test_a_page_says_what_the_fit_found(moons, tmp_path):
    X, y = moons
    model = KernelSVC(Cs=np.geomspace(0.01, 100.0, 5), cv=4).fit(X, y)
    page = report(model, tmp_path / "report.html", X, y)
    right = np.sum((model.oof_decision_ > 0) == y)
    assert f"{right} of 120 predictions are right" in page
    text = text_of(page)
    assert "out of fold, at the chosen C" in text
    assert re.search(rf"Support vectors\s+{len(model.support_)}\b", text)
    assert "All 25 models are proved optimal" in text


def proof(page):
    """The state of the proof, and the verdict."""
    (found,) = re.findall(r'<p class="badge (\w+)" data-proof="([\w-]+)">(.*?)</p>', page)
    return found[:2], text_of(found[2])


def test_a_page_says_whether_its_proof_was_recomputed(moons, tmp_path):
    X, y = moons
    path, weight = tmp_path / "report.html", np.arange(len(y)) % 3
    model = KernelSVC(Cs=[0.1, 10.0], cv=3, class_weight="balanced").fit(X, y, sample_weight=weight)
    state, text = proof(report(model, path))
    assert state == ("noted", "recorded")
    assert "All 8 models are proved optimal" in text
    assert text.endswith("as recorded in the file")
    state, text = proof(report(model, path, X, y, sample_weight=weight))
    assert state == ("good", "verified")
    state, text = proof(report(model, path, X, y))
    assert state == ("noted", "other-rows")
    assert "not the training rows (their weights are not those of the fit)" in text
    model.save(tmp_path / "model.kpath")
    forged = kernelpath.load(tmp_path / "model.kpath")
    forged.dual_coef_ = -3.7 * forged.dual_coef_
    assert proof(report(forged, path))[0] == ("noted", "recorded")
    state, text = proof(report(forged, path, X, y, sample_weight=weight))
    assert state == ("warn", "failed")
    assert "is not proved" in text
    other = kernelpath.load(tmp_path / "model.kpath")
    other._kernel["gamma"] *= 2.0
    assert proof(report(other, path, X, y, sample_weight=weight))[0] == ("warn", "failed")


def test_a_browser_runs_the_script_of_the_page_and_no_other(browser, moons, tmp_path):
    X, y = moons
    model = KernelSVC(Cs=[0.1, 10.0], cv=3).fit(X, y)
    page = report(model, tmp_path / "report.html")
    assert "unsafe-inline" not in page
    injected = page.replace("<main>", "<main><script>window.injected = 1</script><style>main { display: none }</style>")
    (tmp_path / "injected.html").write_text(injected, encoding="utf-8")
    browser.open(tmp_path / "injected.html", 800)
    assert browser.value("typeof window.injected") == "undefined"
    assert browser.value("getComputedStyle(document.querySelector('main')).display") != "none"
    assert browser.value("document.querySelectorAll('.tip').length") == 1


def test_the_call_on_the_page_fits_the_same_model(moons, tmp_path):
    X, y = moons
    models = [
        KernelSVC(Cs=np.geomspace(0.01, 100.0, 9), cv=3, class_weight="balanced", random_state=3),
        KernelLogistic(Cs=[0.1, 1.0, 2.0], gamma=[0.5, 1.0], selection="1se", tol=1e-7),
        KernelQuantile(tau=[0.2, 0.8], Cs=4, kernel="laplacian", noncrossing="sort"),
    ]
    for model in models:
        page = report(model.fit(X, y), tmp_path / "report.html")
        (code,) = re.findall(r"<pre><code>(import .*?)</code></pre>", page, flags=re.DOTALL)
        namespace = {"X": X, "y": y}
        exec(html.unescape(code), namespace)
        again = namespace["model"]
        assert type(again) is type(model)
        np.testing.assert_array_equal(again.C_, model.C_)
        np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)


def test_the_command_on_the_page_trains_the_same_model(moons, tmp_path, capfd):
    X, y = moons
    np.savetxt(
        tmp_path / "data.csv", np.c_[y, X], delimiter=",", header="y,a,b", comments="", fmt=["%d", "%.17g", "%.17g"]
    )
    model, page = tmp_path / "model.kpath", tmp_path / "report.html"
    options = "--label y --cs 0.1:100:7 --gamma 0.5,2 --folds 3 --selection 1se --probability --seed 7 --quiet"
    assert _core.run_command(["kernelpath", "train", f"{tmp_path}/data.csv", "-o", str(model), *options.split()]) == 0
    assert (
        _core.run_command(["kernelpath", "report", str(model), f"{tmp_path}/data.csv", "--label", "y", "-o", str(page)])
        == 0
    )
    (command,) = re.findall(r"<pre><code>(kernelpath train .*?)</code></pre>", page.read_text("utf-8"), flags=re.DOTALL)
    words = html.unescape(command).replace("\\\n", " ").replace("DATA", f"{tmp_path}/data.csv --label y --quiet")
    again = words.replace("model.kpath", f"{tmp_path}/again.kpath").split()
    assert _core.run_command(again) == 0
    first, second = kernelpath.load(model), kernelpath.load(tmp_path / "again.kpath")
    rows = pd.DataFrame(X, columns=["a", "b"])
    np.testing.assert_array_equal(first.predict_proba(rows), second.predict_proba(rows))
    assert first.get_params() == second.get_params()
    capfd.readouterr()


def test_parameters_that_only_their_text_is_known_of_are_named(moons, tmp_path):
    from sklearn.model_selection import KFold

    X, y = moons
    page = report(KernelSVC(Cs=3, cv=KFold(3)).fit(X, y), tmp_path / "report.html")
    assert "cv = KFold(n_splits=3" in text_of(page)


def test_sparse_rows_slim_models_and_loaded_ones_have_reports(moons, tmp_path):
    X, y = moons
    model = KernelSVC(Cs=3, cv=3).fit(sparse.csr_matrix(X), y)
    first = report(model, tmp_path / "a.html", sparse.csr_matrix(X), y)
    assert "out of fold" in text_of(first)
    model.save(tmp_path / "model.kpath")
    loaded = kernelpath.load(tmp_path / "model.kpath")
    assert report(loaded, tmp_path / "b.html", sparse.csr_matrix(X), y) == first


def test_what_cannot_be_reported_is_refused(moons, tmp_path):
    X, y = moons
    model = KernelSVC(Cs=3, cv=3)
    path = tmp_path / "report.html"
    with pytest.raises(Exception, match="not fitted"):
        model.report(path)
    model.fit(X, y)
    with pytest.raises(ValueError, match="got X without y"):
        model.report(path, X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.report(path, X, y[:-1])
    with pytest.raises(ValueError, match="no label is a class of the model: 7 is not among 0, 1"):
        model.report(path, X, np.full(len(y), 7))
    with pytest.raises(ValueError, match="NaN"):
        model.report(path, np.where(X == X[3], np.nan, X), y)
    with pytest.raises(OSError, match="nowhere"):
        model.report(tmp_path / "nowhere" / "report.html")
    assert not path.exists()
