"""Draws the pictures of the documentation into docs/img/, one function a picture.

``python docs/pictures.py`` draws all of them, ``python docs/pictures.py svm dwd`` those two.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from scipy.special import expit, ndtri
from sklearn.datasets import make_gaussian_quantiles, make_moons
from sklearn.exceptions import ConvergenceWarning

from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelRegressor, KernelSVC, KernelSVR
from kernelpath.display import CalibrationDisplay, CVCurveDisplay, GapDisplay, SupportPathDisplay, SurfaceDisplay

FOLDER = Path(__file__).resolve().parent / "img"
WIDE = (8.4, 3.6)
BLUE, ORANGE, GREEN, RED, GREY = "#1f6fb4", "#e07b1a", "#2f8f4e", "#c23b3b", "#666666"
STYLE = {
    "figure.dpi": 100,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}
PICTURES: dict[str, Callable[[], plt.Figure]] = {}


def picture(draw: Callable[[], plt.Figure]) -> Callable[[], plt.Figure]:
    """Register a function under the name of its file."""
    PICTURES[draw.__name__] = draw
    return draw


def main() -> None:
    """Draw the pictures named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of: {', '.join(PICTURES)} (default: all)")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in PICTURES]
    if unknown:
        parser.error(f"no picture is named {', '.join(unknown)}; there are: {', '.join(PICTURES)}")
    FOLDER.mkdir(exist_ok=True)
    for name in arguments.names or PICTURES:
        with plt.rc_context(STYLE):
            figure = PICTURES[name]()
            file = FOLDER / f"{name}.png"
            save(figure, file)
        print(f"{file.relative_to(FOLDER.parent)}  {file.stat().st_size / 1000:.0f} kB")


def save(figure: plt.Figure, file: Path) -> None:
    """As a PNG of 64 colours, a third of the size."""
    figure.canvas.draw()
    image = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    image.quantize(64, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(file, optimize=True)
    plt.close(figure)


@picture
def losses() -> plt.Figure:
    """All losses: of the margin yf, and of the residual y − f."""
    figure, (left, right) = plt.subplots(1, 2, figsize=WIDE, layout="constrained")
    u = np.linspace(-1.5, 2.5, 801)
    left.plot(u, np.maximum(0, 1 - u), color=BLUE, linewidth=4, alpha=0.5, label="hinge")
    left.plot(u, np.maximum(0, 1 - u) ** 2, color=BLUE, linestyle="--", label="squared hinge")
    left.plot(u, np.logaddexp(0, -u), color=ORANGE, label="logistic")
    left.plot(u, np.where(u <= 0.5, 1 - u, 0.25 / np.maximum(u, 0.5)), color=GREEN, label="DWD")
    left.set(xlabel="margin u = y f", title="Classification", ylim=(0, 3))
    left.legend()
    r = np.linspace(-2.5, 2.5, 801)
    right.plot(r, np.maximum(0.8 * r, -0.2 * r), color=BLUE, label="quantile, τ = 0.8")
    right.plot(r, np.maximum(0, np.abs(r) - 1), color=ORANGE, label="ε-insensitive, ε = 1")
    right.plot(r, np.where(np.abs(r) <= 1, r**2 / 2, np.abs(r) - 0.5), color=RED, label="Huber, δ = 1")
    right.plot(r, r**2, color=GREEN, label="squared")
    right.plot(r, np.where(r > 0, 0.8, 0.2) * r**2, color=GREEN, linestyle="--", label="expectile, τ = 0.8")
    right.set(xlabel="residual r = y − f", title="Regression", ylim=(0, 4))
    right.legend(loc="upper center")
    return figure


@picture
def svm() -> plt.Figure:
    """The boundary, the margin and the support vectors, for both hinge losses."""
    X, y = make_moons(200, noise=0.3, random_state=0)
    figure, panels = plt.subplots(1, 2, figsize=WIDE, layout="constrained", sharey=True)
    for axes, loss in zip(panels, ("hinge", "squared_hinge"), strict=True):
        clf = KernelSVC(loss=loss, gamma=1.0, random_state=0).fit(X, y)
        grid, points = plane(X)
        decision = clf.decision_function(points).reshape(grid[0].shape)
        axes.contourf(*grid, decision, [-np.inf, 0, np.inf], colors=["#dbe9f6", "#fbe6cf"])
        axes.contour(*grid, decision, [-1, 0, 1], colors=GREY, linestyles=["--", "-", "--"], linewidths=1.2)
        scatter_classes(axes, X, y)
        support = X[clf.support_]
        axes.scatter(*support.T, s=42, facecolors="none", edgecolors="black", linewidths=0.6)
        name = loss.replace("_", " ")
        axes.set_title(f"{name}, C = {clf.C_:.2g}\n{len(support)} of {len(X)} rows are support vectors")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    return figure


@picture
def logistic() -> plt.Figure:
    """Probabilities against the truth; and how often they come true out of fold."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (600, 1))
    truth = wavy_probability(X[:, 0])
    y = rng.random(600) < truth
    clf = KernelLogistic(gamma=0.5, scoring="neg_log_loss", random_state=0).fit(X, y)

    figure, (curve, reliability) = plt.subplots(1, 2, figsize=WIDE, layout="constrained")
    x = np.linspace(-3, 3, 301)
    curve.plot(x, wavy_probability(x), color=GREY, linestyle="--", label="truth")
    curve.plot(x, clf.predict_proba(x[:, None])[:, 1], color=ORANGE, label="predict_proba")
    curve.plot(X[:, 0], np.where(y, 1.04, -0.04), "|", color=BLUE, alpha=0.4, markersize=6, label="rows")
    curve.set(xlabel="x", ylabel="P(y = 1 | x)", title="Fitted probability", ylim=(-0.1, 1.25), yticks=[0, 0.5, 1])
    curve.legend(loc="upper center", ncol=3, fontsize=8)

    p = expit(clf.oof_decision_)
    groups = np.array_split(np.argsort(p), 10)
    predicted = [p[rows].mean() for rows in groups]
    observed = [y[rows].mean() for rows in groups]
    error = [np.sqrt(q * (1 - q) / len(rows)) for q, rows in zip(predicted, groups, strict=True)]
    reliability.plot([0, 1], [0, 1], color=GREY, linestyle="--", label="perfectly calibrated")
    reliability.errorbar(predicted, observed, error, fmt="o", color=ORANGE, linewidth=1.2, label="tenth of the rows")
    reliability.set(xlabel="mean out-of-fold probability", ylabel="observed frequency", title="Reliability (± 1 s.e.)")
    reliability.legend(loc="upper left")
    return figure


@picture
def dwd() -> plt.Figure:
    """Where features outnumber rows: the training rows pile up at the margin of the SVM, not of DWD."""
    X, y, X_test, y_test = few_rows_many_features()
    figure, panels = plt.subplots(1, 2, figsize=WIDE, layout="constrained")
    for axes, (name, kind) in zip(panels, (("SVM", KernelSVC), ("DWD", KernelDWD)), strict=True):
        clf = kind(kernel="linear", Cs=10.0, cv=None).fit(X, y)
        train, test = clf.decision_function(X), clf.decision_function(X_test)
        reach = 1.05 * np.abs(np.concatenate([train, test])).max()
        bins = np.linspace(-reach, reach, 49)
        for label, colour in ((-1, BLUE), (1, ORANGE)):
            axes.hist(test[y_test == label], bins, density=True, color=colour, alpha=0.35)
            axes.plot(train[y == label], np.zeros(np.sum(y == label)), "|", color=colour, markersize=16, clip_on=False)
        axes.axvline(0, color=GREY, linewidth=1)
        axes.set_ylim(top=1.2 * axes.get_ylim()[1])
        accuracy = np.mean((test > 0) == (y_test > 0))
        axes.set(xlabel="f(x)", yticks=[], title=f"{name}: test accuracy {accuracy:.3f}", xlim=(-reach, reach))
        axes.spines["left"].set_visible(False)
    panels[0].plot([], [], "|", color=GREY, markersize=12, label="40 training rows")
    panels[0].bar([0], [0], color=GREY, alpha=0.35, label="4000 test rows")
    panels[0].legend(loc="upper left", fontsize=8)
    return figure


@picture
def quantile() -> plt.Figure:
    """Quantiles of data whose spread changes; and crossing where rows are few."""
    figure, (left, right) = plt.subplots(1, 2, figsize=WIDE, layout="constrained")
    X, y = widening(400, seed=0)
    levels = [0.1, 0.5, 0.9]
    model = KernelQuantile(tau=levels, gamma=0.5, random_state=0).fit(X, y)
    x = np.linspace(0, 4, 201)
    left.plot(X[:, 0], y, ".", color=GREY, markersize=3, alpha=0.6)
    for tau, values, colour in zip(levels, model.predict(x[:, None]).T, (BLUE, GREEN, ORANGE), strict=True):
        left.plot(x, values, color=colour, label=f"τ = {tau}")
        left.plot(x, true_quantile(x, tau), color=colour, linestyle="--", linewidth=1)
    left.set(xlabel="x", ylabel="y", title="400 rows; dashed: the truth")
    left.legend(loc="upper left")

    X, y = widening(40, seed=1)
    levels = np.round(np.arange(0.1, 0.95, 0.1), 1)
    model = KernelQuantile(tau=levels, gamma=0.5, Cs=30.0, cv=None).fit(X, y)
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(levels)))
    right.plot(X[:, 0], y, ".", color=GREY, markersize=4)
    for tau, values, colour in zip(levels, model.predict(x[:, None]).T, colours, strict=True):
        right.plot(x, values, color=colour, linewidth=1.2, label=f"{tau}")
    right.set(xlabel="x", title=f"40 rows, C = 30: quantiles cross at {model.n_crossings_} rows")
    right.legend(title="τ", fontsize=7, ncol=2, loc="lower left", columnspacing=1.0)
    return figure


@picture
def svr() -> plt.Figure:
    """The tube and its support vectors, narrow and wide."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (80, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(80)
    x = np.linspace(-2, 2, 201)
    figure, panels = plt.subplots(1, 2, figsize=WIDE, layout="constrained", sharey=True)
    for axes, epsilon in zip(panels, (0.1, 0.4), strict=True):
        model = KernelSVR(epsilon=epsilon, gamma=0.5, random_state=0).fit(X, y)
        f = model.predict(x[:, None])
        axes.fill_between(x, f - epsilon, f + epsilon, color=ORANGE, alpha=0.2, linewidth=0, label="f ± ε")
        axes.plot(x, f, color=ORANGE, label="f")
        axes.plot(x, np.sin(2 * x), color=GREY, linestyle="--", linewidth=1, label="truth")
        axes.plot(X[:, 0], y, ".", color=BLUE, markersize=5, label="rows")
        support = model.support_
        axes.scatter(
            X[support, 0], y[support], s=42, facecolors="none", edgecolors="black", linewidths=0.6,
            label="support vectors",
        )  # fmt: skip
        axes.set(xlabel="x", title=f"ε = {epsilon}: {len(support)} of {len(X)} rows are support vectors")
    panels[0].set_ylabel("y")
    panels[0].legend(loc="lower right", fontsize=8)
    return figure


@picture
def regression() -> plt.Figure:
    """What outliers do to the mean and not to Huber's; and expectiles."""
    figure, (left, right) = plt.subplots(1, 2, figsize=WIDE, layout="constrained")
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (150, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(150)
    wrong = rng.choice(150, 15, replace=False)
    y[wrong] += 6.0
    x = np.linspace(-2, 2, 201)
    left.plot(X[:, 0], y, ".", color=GREY, markersize=4, label="rows, one in ten wrong")
    left.plot(x, np.sin(2 * x), color=GREY, linestyle="--", linewidth=1.2, label="truth")
    for loss, colour in (("squared", BLUE), ("huber", ORANGE)):
        model = KernelRegressor(loss=loss, delta=0.3, gamma=0.5, random_state=0).fit(X, y)
        left.plot(x, model.predict(x[:, None]), color=colour, label=loss)
    left.set(xlabel="x", ylabel="y", title="Outliers: squared and Huber (δ = 0.3)", ylim=(-1.8, 9.5))
    left.legend(loc="upper center", ncol=2)

    X, y = widening(400, seed=0)
    x = np.linspace(0, 4, 201)
    right.plot(X[:, 0], y, ".", color=GREY, markersize=3, alpha=0.6)
    for tau, colour in ((0.1, BLUE), (0.5, GREEN), (0.9, ORANGE)):
        model = KernelRegressor(loss="expectile", tau=tau, gamma=0.5, random_state=0).fit(X, y)
        right.plot(x, model.predict(x[:, None]), color=colour, label=f"τ = {tau}")
    right.set(xlabel="x", title="Expectiles")
    right.legend(loc="upper left")
    return figure


@picture
def smoothing() -> plt.Figure:
    """The hinge, its roundings, and their slopes: the dual variables."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.0), layout="constrained")
    u = np.linspace(-0.5, 2.5, 1201)
    for delta, colour in ((1.0, ORANGE), (1 / 8, GREEN)):
        inside = np.maximum(delta - np.abs(u - 1), 0)
        label = "δ = 1" if delta == 1.0 else "δ = 1/8"
        left.plot(u, np.maximum(0, 1 - u) + inside**2 / (4 * delta), color=colour, label=label)
        right.plot(u, np.clip(0.5 + (1 - u) / (2 * delta), 0, 1), color=colour, label=label)
    left.plot(u, np.maximum(0, 1 - u), color="black", linewidth=1.2, linestyle="--", label="hinge")
    right.plot([-0.5, 1, 1, 2.5], [1, 1, 0, 0], color="black", linewidth=1.2, linestyle="--", label="hinge")
    left.set(xlabel="margin u = y f", title="Loss")
    right.set(xlabel="margin u = y f", title="y a = −dL/du")
    left.legend()
    return figure


@picture
def calibration() -> plt.Figure:
    """Probabilities of new rows; and beside them those of an SVM pressed through the logistic function."""
    X, y = make_moons(300, noise=0.4, random_state=0)
    X_new, y_new = make_moons(3000, noise=0.4, random_state=1)
    clf = KernelLogistic(gamma=1.0, scoring="neg_log_loss", random_state=0).fit(X, y)
    svc = KernelSVC(gamma=1.0, random_state=0).fit(X, y)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 4.9), layout="constrained")
    CalibrationDisplay.from_estimator(clf, X_new, y_new, annotate_counts=True, ax=left)
    options = {"strategy": "quantile", "pos_label": 1, "ax": right}
    CalibrationDisplay.from_estimator(clf, X_new, y_new, **options)
    pressed = expit(svc.decision_function(X_new))
    CalibrationDisplay.from_predictions(y_new, pressed, name="expit of KernelSVC", **options)
    left.set_title('strategy="uniform", annotate_counts=True')
    right.set_title('strategy="quantile", two displays')
    return figure


@picture
def paths() -> plt.Figure:
    """Scores and support vectors over C."""
    X, y = make_moons(300, noise=0.4, random_state=0)
    clf = KernelSVC(gamma=1.0, random_state=0).fit(X, y)
    levels = KernelQuantile(tau=[0.1, 0.5, 0.9], gamma=0.5, random_state=0).fit(*widening(200, seed=0))
    tube = KernelSVR(epsilon=0.4, gamma=0.5, random_state=0).fit(*widening(200, seed=0))
    figure, panels = plt.subplots(2, 2, figsize=(8.4, 6.8), layout="constrained")
    for above, model in zip(panels[0], (clf, levels), strict=True):
        CVCurveDisplay.from_estimator(model, ax=above)
        above.set_title(f"CVCurveDisplay, {type(model).__name__}")
    for below, model in zip(panels[1], (clf, tube), strict=True):
        SupportPathDisplay.from_estimator(model, ax=below)
        below.set_title(f"SupportPathDisplay, {type(model).__name__}")
    return figure


@picture
def surface() -> plt.Figure:
    """Scores over C and γ, of two classes and of three levels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=WIDE, layout="constrained")
    clf = KernelSVC(gamma="auto-grid", random_state=0).fit(*make_moons(300, noise=0.4, random_state=0))
    SurfaceDisplay.from_estimator(clf, ax=left)
    levels = KernelQuantile(tau=[0.1, 0.5, 0.9], gamma=np.geomspace(0.01, 10, 7), random_state=0)
    SurfaceDisplay.from_estimator(levels.fit(*widening(200, seed=0)), ax=right)
    return figure


@picture
def gaps() -> plt.Figure:
    """All models proved; and what too few steps leave open."""
    X, y = make_moons(300, noise=0.4, random_state=0)
    figure, (left, right) = plt.subplots(1, 2, figsize=WIDE, layout="constrained")
    GapDisplay.from_estimator(KernelSVC(gamma=1.0, random_state=0).fit(X, y), ax=left)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        hurried = KernelSVC(gamma=1.0, max_iter=200, random_state=0).fit(X, y)
    GapDisplay.from_estimator(hurried, ax=right)
    return figure


@picture
def nystrom() -> plt.Figure:
    """Scores, and what the features miss, over the number of landmarks."""
    X, y = make_gaussian_quantiles(n_samples=1500, n_features=5, n_classes=2, random_state=0)
    settings = {"Cs": np.geomspace(0.1, 1000, 9), "random_state": 0}
    exact = KernelSVC(**settings).fit(X, y)
    counts = [5, 10, 20, 40, 80, 160, 320]
    figure, (left, right) = plt.subplots(1, 2, figsize=WIDE, layout="constrained")
    for rule, colour in (("kmeans", BLUE), ("rpcholesky", ORANGE), ("uniform", GREEN)):
        models = [KernelSVC(low_rank=True, landmarks=rule, n_landmarks=count, **settings).fit(X, y) for count in counts]
        left.plot(counts, [model.best_score_ for model in models], "o-", color=colour, markersize=4, label=rule)
        missed = [model.approximation_.trace_error for model in models]
        right.plot(counts, missed, "o-", color=colour, markersize=4, label=rule)
    left.axhline(exact.best_score_, color=GREY, linestyle="--", linewidth=1.2, label="exact, 1500 rows")
    left.set(xscale="log", xlabel="n_landmarks", title="Accuracy out of fold, at the chosen C")
    right.set(xscale="log", yscale="log", xlabel="n_landmarks", title="approximation_.trace_error")
    left.legend(loc="lower right")
    return figure


def plane(X: np.ndarray, steps: int = 161) -> tuple[list[np.ndarray], np.ndarray]:
    """A mesh over the rows, and its points."""
    low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    grid = np.meshgrid(*(np.linspace(a, b, steps) for a, b in zip(low, high, strict=True)))
    return grid, np.column_stack([axis.ravel() for axis in grid])


def scatter_classes(axes: plt.Axes, X: np.ndarray, y: np.ndarray) -> None:
    """The rows, coloured by class."""
    for label, colour in zip(np.unique(y), (BLUE, ORANGE), strict=True):
        axes.scatter(*X[y == label].T, s=11, color=colour)


def wavy_probability(x: np.ndarray) -> np.ndarray:
    """A probability that rises and falls."""
    return expit(2.5 * np.sin(1.6 * x))


def few_rows_many_features() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """40 training rows of 400 features, of which ten differ between the classes; and test rows."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(4040) % 2 == 0, 1, -1)
    X = rng.standard_normal((4040, 400))
    X[:, :10] += 0.7 * y[:, None]
    return X[:40], y[:40], X[40:], y[40:]


def widening(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A wave whose noise grows with x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 4, n)
    return x[:, None], np.sin(2 * x) + (0.1 + 0.3 * x) * rng.standard_normal(n)


def true_quantile(x: np.ndarray, tau: float) -> np.ndarray:
    """The quantiles of :func:`widening`."""
    return np.sin(2 * x) + (0.1 + 0.3 * x) * ndtri(tau)


if __name__ == "__main__":
    main()
