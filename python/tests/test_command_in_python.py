"""The `kernelpath` command from Python: models go from one to the other, and Ctrl-C ends it."""

import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import kernelpath
from kernelpath import KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, NystromFeatures, _core
from kernelpath._command import _interruptible

rng = np.random.RandomState(0)
X = 5.0 + rng.standard_normal((80, 3)) * [1.0, 30.0, 0.1]
KIND = np.array(["ein", "zwei", "drei und mehr"])[np.digitize(X[:, 0] + 0.3 * rng.standard_normal(80), [4.5, 5.5])]
WAVE = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(80)
COLUMNS = ["width", "length", "größe"]


def run(*arguments):
    assert _core.run_command(["kernelpath", *map(str, arguments)]) == 0


def written(path, y):
    frame = pd.DataFrame(X, columns=COLUMNS)
    frame.assign(y=y).to_csv(path, index=False)
    return frame


def predicted(path, *options):
    """What the command says of the rows: a line each, its fields as texts."""
    out = path / "out.txt"
    run("predict", path / "model.kpath", path / "data.csv", out, "--quiet", *options)
    return [line.split() if options else line for line in out.read_text().splitlines()]


@pytest.mark.parametrize(
    "model",
    [
        KernelSVC(Cs=[0.1, 1.0, 10.0], gamma=[0.1, 1.0]),
        KernelLogistic(Cs=5, low_rank=True, n_landmarks=30),
        KernelRegressor(Cs=5, loss="huber"),
        KernelQuantile(Cs=5, tau=[0.9, 0.1], noncrossing="sort"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_command_predicts_with_our_models(model, tmp_path):
    y = KIND if hasattr(model, "decision_function") else WAVE
    frame = written(tmp_path / "data.csv", y)
    with np.errstate(all="ignore"):
        model.fit(frame, y).save(tmp_path / "model.kpath")
    lines = predicted(tmp_path)
    if y is KIND:
        assert lines == model.predict(frame).tolist()
    else:
        numbers = np.array([line.split() for line in lines], dtype=float)
        np.testing.assert_array_equal(numbers.reshape(np.shape(model.predict(frame))), model.predict(frame))


@pytest.mark.parametrize(
    ("options", "kind", "y"),
    [
        (["--scale", "standard", "--probability"], "KernelSVC", KIND),
        (["--task", "logistic", "--multi-class", "multinomial", "--scale=-1:1"], "KernelLogistic", KIND),
        (["--task", "dwd", "--multi-class", "ovr", "--tune", "each", "--loo"], "KernelDWD", KIND),
        (["--task", "svr", "--scale", "standard", "--gamma", "0.1,0.5"], "KernelSVR", WAVE),
        (["--task", "quantile", "--tau", "0.9,0.5", "--low-rank", "--n-landmarks", "20"], "KernelQuantile", WAVE),
        (["--task", "ridge", "--kernel", "linear"], "KernelRegressor", WAVE),
    ],
)
def test_models_of_the_command_are_ours(options, kind, y, tmp_path):
    """Predictions are equal to the last bit, and the model can be looked at, verified, fitted again and saved."""
    frame = written(tmp_path / "data.csv", y)
    run("train", tmp_path / "data.csv", "-o", tmp_path / "model.kpath", "--quiet", "--cs", "0.1,1,10", *options)
    model = kernelpath.load(tmp_path / "model.kpath")
    assert type(model).__name__ == kind
    assert model.feature_names_in_.tolist() == COLUMNS
    assert model.gaps_.max() <= 1e-6
    assert "status" in model.path_table()
    assert model.cv_results_ is not None
    if y is KIND:
        assert predicted(tmp_path) == model.predict(frame).tolist()
        assert model.n_support_.tolist() == [np.sum(y[model.support_] == label) for label in model.classes_]
        assert model.n_support_.dtype == np.int32
        values = np.array([line[-3:] for line in predicted(tmp_path, "--decision")], dtype=float)
        np.testing.assert_array_equal(values, model.decision_function(frame))
        if hasattr(model, "predict_proba"):
            proba = np.array([line[-3:] for line in predicted(tmp_path, "--proba")], dtype=float)
            np.testing.assert_array_equal(proba, model.predict_proba(frame))
    else:
        numbers = np.array([line.split() for line in predicted(tmp_path)], dtype=float)
        np.testing.assert_array_equal(numbers.reshape(model.predict(frame).shape), model.predict(frame))
    proof = model.verify(frame, y)
    np.testing.assert_allclose(proof.primal, model.objective_, rtol=1e-9)

    model.save(tmp_path / "again.kpath")
    again = kernelpath.load(tmp_path / "again.kpath")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(again.fit(frame, y).gaps_.shape, model.gaps_.shape)
    assert not hasattr(again, "_scaling")


def test_the_command_makes_our_features(tmp_path):
    frame = written(tmp_path / "data.csv", WAVE)
    features = NystromFeatures(n_landmarks=6).fit(frame)
    features.save(tmp_path / "model.kpath")
    numbers = np.array([line.split() for line in predicted(tmp_path)], dtype=float)
    np.testing.assert_allclose(numbers, features.transform(frame), rtol=0, atol=1e-12)


def test_the_module_is_the_command():
    child = subprocess.run([sys.executable, "-m", "kernelpath", "--version"], capture_output=True, text=True)
    assert (child.returncode, child.stdout.strip()) == (0, f"kernelpath {_core.__version__}")
    child = subprocess.run([sys.executable, "-m", "kernelpath", "no-such"], capture_output=True, text=True)
    assert child.returncode == 2
    assert "no-such" in child.stderr


def test_interruptions_are_pythons_again():
    # Whoever runs the tests may have made it another one: a shell ignores it for what runs in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with _interruptible():
            assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
            run("--version")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_the_command_ends_with_an_interruption():
    """It waits for data that does not come."""
    command = [sys.executable, "-m", "kernelpath", "train", "-"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(timeout=1.5)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=5) in (130, -signal.SIGINT)
    child.communicate()
