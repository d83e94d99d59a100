"""Model files of the formats that there were, and what their models predicted when they were written.

``python python/tests/old_files.py 1`` writes those of format 1. It is run once for each format, when it is new.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy import sparse

from kernelpath import KernelDWD, KernelQuantile, KernelSVR

DATA = Path(__file__).parent / "data"
ROWS = [[0.5, -1.0, 2.0], [0.0, 0.0, 0.0], [-1.5, 0.25, 1.0], [3.0, 3.0, -3.0]]


def models():
    """Small models that together have most of what a file can hold."""
    import pandas as pd

    rng = np.random.RandomState(0)
    X = rng.standard_normal((40, 3)).round(2)
    kind = np.array(["ein", "zwei", "größer"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    grid = {"Cs": [0.5, 5.0], "cv": 2}
    frame = pd.DataFrame(X, columns=["width", "length", "größe"])
    few = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    return {
        "classes": KernelDWD(**grid, gamma=[0.2, 0.8], probability="isotonic", tune="each").fit(frame, kind),
        "quantiles": KernelQuantile(
            **grid, tau=[0.9, 0.1], noncrossing="sort", low_rank=True, landmarks="uniform", n_landmarks=10
        ).fit(few, X[:, 0]),
        "targets": KernelSVR(**grid, kernel="poly", degree=2, coef0=1.0).fit(X, X[:, :2]),
    }


def answers(model):
    """What the model says of the rows."""
    rows = np.array(ROWS)
    if hasattr(model, "feature_names_in_"):
        import pandas as pd

        rows = pd.DataFrame(rows, columns=model.feature_names_in_)
    names = [name for name in ("predict", "decision_function", "predict_proba") if hasattr(model, name)]
    return {name: getattr(model, name)(rows).tolist() for name in names} | {"score": np.max(model.best_score_)}


if __name__ == "__main__":
    version, fitted = sys.argv[1], models()
    for name, model in fitted.items():
        model.slim().save(DATA / f"format{version}_{name}.kpath")
    found = {name: answers(model) for name, model in fitted.items()}
    text = json.dumps(found, ensure_ascii=False, indent=1)
    (DATA / f"format{version}.json").write_text(text + "\n", encoding="utf-8")
