"""Slow, plain twins of the library, written from the formulas and sharing no code with it."""

import itertools

import numpy as np
from scipy.special import expit
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


def spread(y, weight=None):
    """1.4826 times the median absolute deviation from the median; `weight`, of integers, repeats targets."""
    y = np.repeat(y, 1 if weight is None else np.asarray(weight, dtype=int))
    deviations = np.abs(y - np.median(y))
    candidates = 1.482602218505602 * np.median(deviations), np.sqrt(np.pi / 2) * deviations.mean(), np.abs(y).max()
    return next((value for value in candidates if value > 0), 1.0)


def asymmetry(tau, r):
    return np.where(r >= 0, tau, 1 - tau)


def entr(p):
    """−p log p, in the precision of p."""
    return -p * np.log(np.where(p > 0, p, 1))


# Each loss of y, f and its constant: value L, slope −L′, curvature L″, the interval of its dual variable a = −L′,
# and what a adds to the dual, min over f of L(f) + a f.
LOSSES = {
    "hinge": {
        "value": lambda y, f, _: np.maximum(0, 1 - y * f),
        "domain": lambda y, _: (np.minimum(y, 0), np.maximum(y, 0)),
        "dual": lambda y, a, _: y * a,
    },
    "squared_hinge": {
        "value": lambda y, f, _: np.maximum(0, 1 - y * f) ** 2,
        "pull": lambda y, f, _: 2 * y * np.maximum(0, 1 - y * f),
        "curvature": lambda y, f, _: 2.0 * (y * f < 1),
        "domain": lambda y, _: (np.where(y > 0, 0, -np.inf), np.where(y > 0, np.inf, 0)),
        "dual": lambda y, a, _: y * a - a**2 / 4,
    },
    "logistic": {
        "value": lambda y, f, _: np.logaddexp(0, -y * f),
        "pull": lambda y, f, _: y * expit(-y * f),
        "curvature": lambda y, f, _: expit(f) * expit(-f),
        "domain": lambda y, _: (np.minimum(y, 0), np.maximum(y, 0)),
        "dual": lambda y, a, _: entr(y * a) + entr(1 - y * a),
    },
    "dwd": {
        "value": lambda y, f, _: np.where(y * f <= 0.5, 1 - y * f, 0.25 / np.maximum(y * f, 0.5)),
        "pull": lambda y, f, _: y * np.where(y * f <= 0.5, 1, 0.25 / np.maximum(y * f, 0.5) ** 2),
        "curvature": lambda y, f, _: np.where(y * f <= 0.5, 0, 0.5 / np.maximum(y * f, 0.5) ** 3),
        "domain": lambda y, _: (np.minimum(y, 0), np.maximum(y, 0)),
        "dual": lambda y, a, _: np.sqrt(y * a),
    },
    "quantile": {
        "value": lambda y, f, tau: np.maximum(tau * (y - f), (tau - 1) * (y - f)),
        "domain": lambda y, tau: (np.full_like(y, tau - 1), np.full_like(y, tau)),
        "dual": lambda y, a, _: y * a,
    },
    "epsilon_insensitive": {
        "value": lambda y, f, epsilon: np.maximum(0, np.abs(y - f) - epsilon),
        "domain": lambda y, _: (-np.ones_like(y), np.ones_like(y)),
        "dual": lambda y, a, epsilon: y * a - epsilon * np.abs(a),
    },
    "squared": {
        "value": lambda y, f, _: (y - f) ** 2,
        "pull": lambda y, f, _: 2 * (y - f),
        "curvature": lambda y, f, _: np.full_like(f, 2.0),
        "domain": lambda y, _: (np.full_like(y, -np.inf), np.full_like(y, np.inf)),
        "dual": lambda y, a, _: y * a - a**2 / 4,
    },
    "huber": {
        "value": lambda y, f, delta: np.where(
            np.abs(y - f) <= delta, (y - f) ** 2 / 2, delta * (np.abs(y - f) - delta / 2)
        ),
        "pull": lambda y, f, delta: np.clip(y - f, -delta, delta),
        "curvature": lambda y, f, delta: 1.0 * (np.abs(y - f) <= delta),
        "domain": lambda y, delta: (np.full_like(y, -delta), np.full_like(y, delta)),
        "dual": lambda y, a, _: y * a - a**2 / 2,
    },
    "expectile": {
        "value": lambda y, f, tau: asymmetry(tau, y - f) * (y - f) ** 2,
        "pull": lambda y, f, tau: 2 * asymmetry(tau, y - f) * (y - f),
        "curvature": lambda y, f, tau: 2 * asymmetry(tau, y - f),
        "domain": lambda y, _: (np.full_like(y, -np.inf), np.full_like(y, np.inf)),
        "dual": lambda y, a, tau: y * a - a**2 / (4 * asymmetry(tau, a)),
    },
}
SMOOTH = tuple(name for name, formulas in LOSSES.items() if "curvature" in formulas)
HINGE = ("hinge", 0.0)


def objective(K, y, C, beta, b, loss=HINGE, w=1.0):
    """C Σ w L(y, f) + ½ βᵀKβ with f = Kβ + b."""
    name, constant = loss
    return C * np.sum(w * LOSSES[name]["value"](y, K @ beta + b, constant)) + 0.5 * beta @ K @ beta


def certificate(K, y, C, beta, b, w=None, loss=HINGE):
    """(primal, dual); the dual point is β, moved into the box of the loss and onto Σθ = 0."""
    y = np.asarray(y, np.float64)
    w = np.ones(len(y)) if w is None else w
    a = np.divide(beta, C * w, out=np.zeros(len(y)), where=w > 0)
    return objective(K, y, C, beta, b, loss, w), dual_objective(K, y, C, a, loss, w)


def slope_certificate(K, y, C, beta, b, loss):
    """(primal, dual) of a smooth loss; the dual point is −C L′(f + c), c the intercept at which it sums to 0."""
    name, constant = loss
    f, pull = K @ beta, LOSSES[name]["pull"]
    low, high = b - 1e4, b + 1e4
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if pull(y, f + middle, constant).sum() > 0 else (low, middle)
    a = pull(y, f + (low + high) / 2, constant)
    return objective(K, y, C, beta, b, loss), dual_objective(K, y, C, a, loss, np.ones(len(y)))


def dual_objective(K, y, C, a, loss, w):
    """−Σ C w L*(−a) − ½ θᵀKθ with θ = C w a, after a is clipped to its interval and one sign shrunk until Σθ = 0."""
    name, constant = loss
    a = np.clip(a, *LOSSES[name]["domain"](y, constant))
    up, down = np.sum((w * a)[a > 0]), -np.sum((w * a)[a < 0])
    a = a * np.where(a > 0, min(up, down) / up if up > 0 else 0.0, min(up, down) / down if down > 0 else 0.0)
    theta = C * w * a
    return C * np.sum(w * LOSSES[name]["dual"](y, a, constant)) - 0.5 * theta @ K @ theta


def relative_gap(primal, dual):
    return (primal - dual) / max(abs(primal), abs(dual))


def solve(K, y, C, loss):
    """(β, b) at the optimum: Newton steps for a smooth loss, else an interior point of the dual."""
    y = np.asarray(y, np.float64)
    return (newton if loss[0] in SMOOTH else interior_point)(K, y, C, loss)


def newton(K, y, C, loss):
    """Damped Newton on β and b for C Σ L(y, f) + ½ βᵀKβ.

    The gradient in β is K (β − C a) with a = −L′: the step makes β + Δβ = C (a − L″ Δf), Σ(β + Δβ) = 0.
    """
    name, constant = loss
    n, formulas = len(y), LOSSES[name]
    beta, b = np.zeros(n), 0.0
    for _ in range(500):
        f = K @ beta + b
        pull, bend = formulas["pull"](y, f, constant), formulas["curvature"](y, f, constant)
        # A floor on the curvature keeps b determined where the loss is straight; the optimum does not depend on it.
        bend = C * np.maximum(bend, 1e-6)
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = np.eye(n) + bend[:, None] * K
        system[:n, n] = bend
        system[n, :n] = 1.0
        step = np.linalg.solve(system, np.append(C * pull - beta, -beta.sum()))
        if np.abs(step).max() <= 1e-11 * max(1.0, np.abs(beta).max(), abs(b)):
            break
        most, length = objective(K, y, C, beta, b, loss) * (1 + 1e-14), 1.0  # 1e-14: what rounding may hide
        while objective(K, y, C, beta + length * step[:n], b + length * step[n], loss) > most and length > 1e-10:
            length /= 2
        beta, b = beta + length * step[:n], b + length * step[n]
    return beta, b


def interior_point(K, y, C, loss):
    """The dual of a piecewise-linear loss, min ½ θᵀKθ − Σ dual(θ), θ in the box, Σθ = 0; b is the multiplier.

    θ = p − q with p, q ≥ 0, each with its bound: for ε-insensitive p and q have the costs ε − y and ε + y; for the
    others q only shifts the box to start at 0.
    """
    name, constant = loss
    lo, hi = (C * bound for bound in LOSSES[name]["domain"](y, constant))
    if name == "epsilon_insensitive":
        signs = np.concatenate([np.ones(len(y)), -np.ones(len(y))])
        Q, cost = np.outer(signs, signs) * np.tile(K, (2, 2)), np.concatenate([constant - y, constant + y])
        x, b = box_qp(Q, cost, np.full(2 * len(y), C), signs, 0.0)
        return x[: len(y)] - x[len(y) :], b
    x, b = box_qp(K, K @ lo - y, hi - lo, np.ones(len(y)), -lo.sum())
    return x + lo, b


def intercepts(K, y, C, beta, b, loss):
    """(lowest, highest) intercept optimal with β: one, unless every row is on a straight part of the loss."""
    name, constant = loss
    f = K @ beta
    if name in SMOOTH:

        def is_optimal(b):
            return abs(LOSSES[name]["pull"](y, f + b, constant).sum()) <= 1e-9 * len(y)

        return tuple(farthest(is_optimal, b, b + reach) for reach in (-100.0, 100.0))
    lo, hi = (C * bound for bound in LOSSES[name]["domain"](y, constant))
    epsilon, middle = (constant, 0.0) if name == "epsilon_insensitive" else (0.0, hi)
    snap = 1e-6 * (hi - lo)
    # A row that may rise wants f + b at or above its kink; one that may fall, at or below it.
    rise = np.where(beta < middle - snap, y + epsilon, np.where(beta < hi - snap, y - epsilon, -np.inf))
    fall = np.where(beta > middle + snap, y - epsilon, np.where(beta > lo + snap, y + epsilon, np.inf))
    return min(b, np.max(rise - f)), max(b, np.min(fall - f))


def farthest(holds, inside, outside):
    """The last point from `inside` towards `outside` at which a condition holds, by bisection."""
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


def box_qp(Q, cost, upper, e, total):
    """min ½xᵀQx + costᵀx, 0 ≤ x ≤ upper, eᵀx = total, by primal–dual interior-point steps; (x, multiplier of eᵀx)."""
    n = len(cost)
    x, z, v, b = upper / 2, np.ones(n), np.ones(n), 0.0
    for _ in range(100):
        gap = (x @ z + (upper - x) @ v) / (2 * n)
        dual_residual = Q @ x + cost + b * e - z + v
        primal_residual = e @ x - total
        scale = max(1.0, upper.max())
        if gap < 1e-13 * upper.max() and max(np.abs(dual_residual).max(), abs(primal_residual)) < 1e-11 * scale:
            break
        target = 0.1 * gap
        diagonal = z / x + v / (upper - x)
        right = -dual_residual + (target / x - z) - (target / (upper - x) - v)
        system = np.zeros((n + 1, n + 1))
        system[:n, :n] = Q + np.diag(diagonal)
        system[:n, n] = system[n, :n] = e
        step = np.linalg.solve(system, np.append(right, -primal_residual))
        dx, db = step[:n], step[n]
        dz = (target - z * dx) / x - z
        dv = (target + v * dx) / (upper - x) - v
        length = 1.0
        for value, change in ((x, dx), (upper - x, -dx), (z, dz), (v, dv)):
            falling = change < 0
            length = min(length, 0.99 * np.min(-value[falling] / change[falling], initial=np.inf))
        x, z, v, b = x + length * dx, z + length * dz, v + length * dv, b + length * db
    return x, b


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
