"""Time liquidSVM in its own interpreter: ``python liquid.py data.npz`` prints the seconds it took.

The file holds X, y (−1 and +1), gamma, Cs and folds. liquidSVM has no intercept, draws its own stratified folds and
refits nothing, so the clock runs over its cross-validation and one training on all rows at the best C.
Its kernel is exp(−d²/G²) and its λ is 1 / (2 n_train C); it refuses numbers in exponent notation.
"""

import sys
import time

import numpy as np
from liquidSVM import SVM


def plain(number):
    return f"{number:.15f}"


def train(X, y, gamma, Cs, n_train, folds):
    lambdas = " ".join(plain(1.0 / (2.0 * n_train * C)) for C in Cs)
    model = SVM(
        X,
        y,
        scenario="BC",
        gammas=plain(gamma**-0.5),
        lambdas=lambdas,
        folds=folds,
        threads=2,
        display=0,
    )
    return model.train().reshape(folds, len(Cs), -1)


def main():
    data = np.load(sys.argv[1])
    X, y, Cs = np.ascontiguousarray(data["X"], float), data["y"].astype(float), np.sort(data["Cs"])
    gamma, folds = float(data["gamma"]), int(data["folds"])
    started = time.perf_counter()
    table = train(X, y, gamma, Cs, len(y) * (folds - 1) // folds, folds)
    errors = table[:, :, 7].mean(axis=0)
    train(X, y, gamma, Cs[[errors.argmin()]], len(y), 1)
    print(time.perf_counter() - started, 1.0 - errors.min())


if __name__ == "__main__":
    main()
