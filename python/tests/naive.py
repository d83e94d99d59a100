"""Slow, plain twins of the library, written from the formulas and sharing no code with it."""

import itertools

import numpy as np
from sklearn.svm import SVC


def gram(X, Z, kernel="rbf", gamma=1.0, degree=3, coef0=0.0):
    X, Z = np.asarray(X, np.float64), np.asarray(Z, np.float64)
    difference = X[:, None, :] - Z[None, :, :]
    distance = np.sqrt((difference**2).sum(axis=2))
    if kernel == "rbf":
        return np.exp(-gamma * distance**2)
    if kernel == "laplacian":
        return np.exp(-gamma * np.abs(difference).sum(axis=2))
    if kernel == "matern32":
        a = np.sqrt(3.0) * distance * np.sqrt(2.0 * gamma)
        return (1.0 + a) * np.exp(-a)
    if kernel == "matern52":
        a = np.sqrt(5.0) * distance * np.sqrt(2.0 * gamma)
        return (1.0 + a + a**2 / 3.0) * np.exp(-a)
    inner = X @ Z.T
    return {"linear": lambda: inner, "poly": lambda: (gamma * inner + coef0) ** degree}.get(
        kernel, lambda: np.tanh(gamma * inner + coef0)
    )()


def certificate(K, y, C, beta, b, w=None):
    """(primal, dual) of the hinge problem; the dual point is β, moved into the box and onto Σθ = 0."""
    w = np.ones(len(y)) if w is None else w
    primal = C * np.sum(w * np.maximum(0.0, 1.0 - y * (K @ beta + b))) + 0.5 * beta @ K @ beta
    alpha = np.clip(y * beta, 0.0, C * w)
    positive, negative = alpha[y > 0].sum(), alpha[y < 0].sum()
    total = min(positive, negative)
    alpha[y > 0] *= total / positive if positive > 0 else 0.0
    alpha[y < 0] *= total / negative if negative > 0 else 0.0
    theta = y * alpha
    return primal, alpha.sum() - 0.5 * theta @ K @ theta


def relative_gap(primal, dual):
    return (primal - dual) / max(abs(primal), abs(dual))


def refit(K, y, C, train, test):
    """Decision values of the rows `test` of a support vector machine trained on the rows `train`, by LIBSVM."""
    svc = SVC(kernel="precomputed", C=C, tol=1e-10).fit(K[np.ix_(train, train)], y[train])
    return svc.decision_function(K[np.ix_(test, train)])


def brute_force_dual(K, y, C):
    """Optimal dual value, by trying each assignment of the rows to {0, free, C}; for a handful of rows."""
    best = 0.0
    for places in itertools.product((0, 1, 2), repeat=len(y)):
        places = np.array(places)
        free = np.flatnonzero(places == 1)
        theta = np.where(places == 2, C * y, 0.0)
        if free.size:
            # K_FF θ_F + b = y_F − K_FU θ_U and Σθ = 0
            system = np.ones((free.size + 1, free.size + 1))
            system[:-1, :-1] = K[np.ix_(free, free)]
            system[-1, -1] = 0.0
            right = np.append(y[free] - K[free] @ theta, -theta.sum())
            theta[free] = np.linalg.lstsq(system, right, rcond=None)[0][:-1]
        alpha = y * theta
        if alpha.min() >= -1e-9 * C and alpha.max() <= C * (1 + 1e-9) and abs(theta.sum()) <= 1e-9 * C:
            best = max(best, alpha.sum() - 0.5 * theta @ K @ theta)
    return best
