"""The certificate recomputed from the formulas, for a model as it was returned and K from X as it was given.

It shares no code with the library. Sums are taken in extended precision (numpy's longdouble, where the machine has
one), so that what the twin itself loses is far below what double precision can tell. Its noise is therefore that of the
numbers it is given: a change of f that double precision cannot tell from none,

    δᵢ = Σⱼ Eᵢⱼ |βⱼ|  +  (4 + √n) u (Σⱼ |Kᵢⱼ| |βⱼ| + |b| + |yᵢ|),        u = 2⁻⁵³,

with E the rounding of the entries of K, bounded by the formula of the kernel (0 for a matrix that was given), moves

    P by at most  Σ C wᵢ max(L(fᵢ ± δᵢ) − L(fᵢ))  +  Σ |βᵢ| δᵢ,
    D by at most  Σ |θᵢ| δᵢ  +  (4 + √n) u Σ C wᵢ (|L*ᵢ| + |yᵢ aᵢ|),      δ that of θ.

The gap is off by the sum of both over max(|P|, |D|).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from naive import LOSSES, SMOOTH
from scipy import sparse

LONG = np.longdouble
UNIT = 2.0**-53
MULTINOMIAL = "multinomial"
CLASSIFICATIONS = ("hinge", "squared_hinge", "logistic", "dwd", MULTINOMIAL)


class Value(NamedTuple):
    """A number and what it may be off by."""

    value: float
    noise: float


@dataclass(frozen=True)
class Kernel:
    """K and a bound E on the rounding of its entries in double precision."""

    K: np.ndarray
    E: np.ndarray

    def among(self, rows, columns=None):
        part = np.ix_(rows, rows if columns is None else columns)
        return Kernel(self.K[part], self.E[part])

    def times(self, beta, b, y):
        """Kβ + b, and δ as in the heading; β may have a column a class."""
        f = self.K @ beta.astype(LONG) + b
        size = np.abs(beta).astype(np.float64)
        magnitude = np.abs(self.K).astype(np.float64) @ size + np.abs(np.float64(b)) + np.abs(y).astype(np.float64)
        return f, self.E @ size + (4 + np.sqrt(len(self.K))) * UNIT * magnitude

    def half_square(self, beta):
        """½ βᵀKβ, summed over the columns of β."""
        image, delta = self.times(beta, 0.0, np.zeros((len(self.K),) + (1,) * (beta.ndim - 1)))
        return Value(float((beta * image).sum() / 2), float((np.abs(beta) * delta).sum()))


def exact_kernel(X, Z, kernel, gamma=1.0, degree=3, coef0=0.0):
    """K(X, Z) from the formulas, the differences of rows taken one by one."""
    X, Z = (np.asarray(A.toarray() if sparse.issparse(A) else A).astype(LONG) for A in (X, Z))
    width = X.shape[1]
    if kernel in ("rbf", "laplacian", "matern32", "matern52"):
        difference = X[:, None, :] - Z[None, :, :]
        if kernel == "rbf":
            a = LONG(gamma) * (difference**2).sum(axis=2)
            K = np.exp(-a)
        elif kernel == "laplacian":
            a = LONG(gamma) * np.abs(difference).sum(axis=2)
            K = np.exp(-a)
        else:
            order = LONG(3 if kernel == "matern32" else 5)
            a = np.sqrt(order * 2 * LONG(gamma) * (difference**2).sum(axis=2))
            K = (1 + a + (0 if kernel == "matern32" else a**2 / 3)) * np.exp(-a)
        E = 2 * UNIT * K * (4 + a * (width + 4))
        return Kernel(K, E.astype(np.float64))
    inner, size = X @ Z.T, (np.abs(X) @ np.abs(Z).T).astype(np.float64)
    if kernel == "linear":
        return Kernel(inner, 2 * UNIT * (width + 1) * size)
    base = LONG(gamma) * inner + LONG(coef0)
    error = 2 * UNIT * (gamma * (width + 3) * size + abs(coef0) + np.abs(base).astype(np.float64))
    if kernel == "sigmoid":
        K = np.tanh(base)
        return Kernel(K, ((1 - K**2) * error + 4 * UNIT).astype(np.float64))
    K = base**degree
    return Kernel(
        K, (degree * np.abs(base) ** (degree - 1) * error + 2 * UNIT * (degree + 1) * np.abs(K)).astype(float)
    )


def given_kernel(K):
    """A matrix that was given, so that its entries are exact."""
    K = np.asarray(K)
    return Kernel(K.astype(LONG), np.zeros(K.shape))


@dataclass(frozen=True)
class Problem:
    """Rows of one machine: loss and its constant, targets (classes 0, 1, … for the multinomial loss) and weights."""

    loss: str
    constant: float
    y: np.ndarray
    w: np.ndarray

    def __post_init__(self):
        object.__setattr__(self, "w", self.w.astype(LONG))
        if self.loss != MULTINOMIAL:
            object.__setattr__(self, "y", self.y.astype(LONG))

    def among(self, rows, count=1.0):
        """Some of the rows, their weights times `count`."""
        return replace(self, y=self.y[rows], w=self.w[rows] * count)

    def without_missing_classes(self):
        """The problem of the classes that are there, of which two are the binary problem; None if it has no optimum."""
        if self.loss not in CLASSIFICATIONS:
            return self
        classes, y = np.unique(self.y, return_inverse=True)
        if len(classes) < 2:
            return None
        if self.loss != MULTINOMIAL:
            return self
        if len(classes) == 2:
            return replace(self, loss="logistic", constant=0.0, y=np.where(y == 1, 1.0, -1.0))
        return replace(self, y=y)

    @property
    def targets(self):
        """What stands beside f: y, or for classes nothing."""
        return np.zeros((len(self.y), 1)) if self.loss == MULTINOMIAL else self.y

    def losses(self, f):
        if self.loss == MULTINOMIAL:
            return log_sum_exp(f) - f[np.arange(len(f)), self.y]
        return LOSSES[self.loss]["value"](self.y, f, self.constant)

    def primal(self, C, f, delta, half_square):
        """P of a model with the values f ± δ."""
        value = self.losses(f)
        if self.loss == MULTINOMIAL:
            off = 2 * delta.max(axis=1)
        else:
            off = np.maximum(np.abs(self.losses(f - delta) - value), np.abs(self.losses(f + delta) - value))
        cw = LONG(C) * self.w
        rounding = 4 * UNIT * float((cw * np.abs(value)).sum())
        return Value(
            float((cw * value).sum()) + half_square.value, float((cw * off).sum()) + half_square.noise + rounding
        )

    def duals(self, kernel, C, beta, f, b, enough=-np.inf):
        """The largest D of the points made from a model: β, and for a smooth loss the slopes; stops at `enough`."""
        best = self.dual(kernel, C, self.from_coefficients(C, beta))
        if best.value < enough and self.loss in (*SMOOTH, MULTINOMIAL):
            best = max(best, self.dual(kernel, C, self.from_slopes(f, b)))
        return best

    def from_coefficients(self, C, beta):
        """a = β / (C w), or for the multinomial loss the probabilities π = e_y − a."""
        cw = LONG(C) * self.w
        if self.loss != MULTINOMIAL:
            return np.divide(beta.astype(LONG), cw, out=np.zeros(len(cw), LONG), where=cw > 0)
        a = np.divide(beta.astype(LONG), cw[:, None], out=np.zeros(beta.shape, LONG), where=cw[:, None] > 0)
        p = np.maximum(np.eye(beta.shape[1], dtype=LONG)[self.y] - a, 0)
        return p / p.sum(axis=1, keepdims=True)

    def from_slopes(self, f, b):
        """The slopes −L′(f + c), c the intercept at which they sum to 0; or the probabilities there."""
        if self.loss == MULTINOMIAL:
            return softmax(f + self.class_intercepts(f))
        pull = LOSSES[self.loss]["pull"]

        def total(c):
            return (self.w * pull(self.y, f + c, self.constant)).sum()

        reach = max(float(np.abs(f).max()), float(np.abs(self.y).max()), abs(float(b)), 1e-300)
        low, high = -LONG(reach), LONG(reach)
        for _ in range(60):
            if total(low) >= 0 >= total(high):
                break
            low, high = 4 * low, 4 * high
        for _ in range(110):
            middle = (low + high) / 2
            low, high = (middle, high) if total(middle) > 0 else (low, middle)
        return pull(self.y, f + (low + high) / 2, self.constant)

    def class_intercepts(self, f):
        """The intercepts that minimise the multinomial loss at f, by damped Newton steps."""
        n_classes = f.shape[1]
        c, hot = np.zeros(n_classes, LONG), np.eye(n_classes, dtype=LONG)[self.y]
        value = (self.w * self.losses(f + c)).sum()
        for _ in range(60):
            p = softmax(f + c)
            gradient = (self.w[:, None] * (p - hot)).sum(axis=0)
            H = np.diag((self.w[:, None] * p).sum(axis=0)) - (self.w[:, None] * p).T @ p
            H = (H + self.w.sum() / n_classes * np.full((n_classes, n_classes), 1 / n_classes)).astype(np.float64)
            step = -np.linalg.lstsq(H, gradient.astype(np.float64), rcond=None)[0]
            length = 1.0
            while length > 1e-8 and (self.w * self.losses(f + c + length * step)).sum() > value:
                length /= 2
            c = c + length * step
            value = (self.w * self.losses(f + c)).sum()
            if np.abs(step).max() < 1e-17 * (1 + np.abs(f).max()):
                break
        return c

    def dual(self, kernel, C, a):
        """D at θ = C w a, after a is made feasible."""
        cw = LONG(C) * self.w
        if self.loss == MULTINOMIAL:
            p = self.balanced(a)
            theta = cw[:, None] * (np.eye(p.shape[1], dtype=LONG)[self.y] - p)
            gain, size = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1), np.zeros(len(p))
        else:
            a = self.feasible(a)
            theta = cw * a
            gain, size = LOSSES[self.loss]["dual"](self.y, a, self.constant), np.abs(self.y * a)
        half_square = kernel.half_square(theta)
        rounding = (4 + np.sqrt(len(cw))) * UNIT * float((cw * (np.abs(gain) + size)).sum())
        return Value(float((cw * gain).sum()) - half_square.value, half_square.noise + rounding)

    def feasible(self, a):
        """`a` in the interval of its loss, the heavier sign shrunk until Σ w a = 0."""
        a = np.clip(a, *LOSSES[self.loss]["domain"](self.y, self.constant))
        up, down = (self.w * np.maximum(a, 0)).sum(), (self.w * np.maximum(-a, 0)).sum()
        least = min(up, down)
        return a * np.where(a > 0, least / up if up > 0 else 0, least / down if down > 0 else 0)

    def balanced(self, p):
        """Probabilities mixed with as little as needed of one row of them, so that each class keeps its weight."""
        n_classes = p.shape[1]
        classes = np.array([self.w[self.y == c].sum() for c in range(n_classes)])
        has = (self.w[:, None] * p).sum(axis=0)
        keep = min(LONG(1), np.min(classes / np.where(has > 0, has, 1), where=has > 0, initial=1))
        if keep == 1:
            return p
        row = np.maximum(classes - keep * has, 0)
        return keep * p + (1 - keep) * row / row.sum()


def log_sum_exp(f):
    top = f.max(axis=1)
    return top + np.log(np.exp(f - top[:, None]).sum(axis=1))


def softmax(f):
    e = np.exp(f - f.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


class Certificate(NamedTuple):
    """P and D of a model, and what each may be off by."""

    primal: Value
    dual: Value

    @property
    def scale(self):
        return max(abs(self.primal.value), abs(self.dual.value))

    @property
    def gap(self):
        return (self.primal.value - self.dual.value) / self.scale if self.scale > 0 else 0.0

    @property
    def noise(self):
        """What P − D may be off by."""
        return self.primal.noise + self.dual.noise

    def proves(self, tol, noise=0.0):
        """Whether the relative gap is at most `tol`, up to the twin's noise and a relative one that was reported."""
        return self.primal.value - self.dual.value <= (tol + noise) * self.scale + self.noise


def certificate(kernel, problem, C, beta, b, enough=0.0):
    """The certificate of f = Kβ + b; a dual point that proves a relative gap of `enough` is good enough."""
    f, delta = kernel.times(beta, b, problem.targets)
    primal = problem.primal(C, f, delta, kernel.half_square(beta))
    needed = primal.value - enough * abs(primal.value)
    return Certificate(primal, problem.duals(kernel, C, beta, kernel.K @ beta.astype(LONG), b, needed))


@dataclass(frozen=True)
class LowRank:
    """The problem at low rank: f = K_nm c + b with the regulariser ½ cᵀK_mm c, c = Mw.

    It is the problem of the kernel matrix Z G⁻¹ Zᵀ with Z = K_nm M and G = MᵀK_mm M, which is I but for rounding.
    """

    to_landmarks: Kernel
    of_landmarks: Kernel
    map: np.ndarray

    def kernel(self):
        M = self.map.astype(LONG)
        Z, G = self.to_landmarks.K @ M, M.T @ self.of_landmarks.K @ M
        inverse = np.linalg.inv(G.astype(np.float64)).astype(LONG)
        inverse = inverse @ (2 * np.eye(len(G)) - G @ inverse)
        K = Z @ inverse @ Z.T
        size = np.abs(self.map)
        # Z is off by E_nm |M|, and G by |M|ᵀ E_mm |M|.
        from_z = np.abs(Z).astype(float) @ (self.to_landmarks.E @ size).T
        from_g = np.abs(Z).astype(float) @ (size.T @ self.of_landmarks.E @ size) @ np.abs(Z).astype(float).T
        return Kernel((K + K.T) / 2, from_z + from_z.T + from_g)

    def primal(self, problem, C, coef, b):
        f, delta = self.to_landmarks.times(coef, b, problem.targets)
        return problem.primal(C, f, delta, self.of_landmarks.half_square(coef))

    def among(self, rows):
        everything = np.arange(self.map.shape[0])
        return replace(self, to_landmarks=self.to_landmarks.among(rows, everything))


def is_indefinite(K, epsilon=2.0**-52):
    """True or False where K is clearly so, None where an eigenvalue is near the limit −16 √n ε max Kᵢᵢ.

    Computed eigenvalues are off by about 10 ε λmax, which may be more than the limit: a factor of K says that there is
    none below it.
    """
    K = np.asarray(K, np.float64)
    values = np.linalg.eigvalsh(K)
    limit = 16 * np.sqrt(len(K)) * epsilon * max(K.diagonal().max(), 0.0)
    if values[0] < -10 * (limit + 10 * 2.0**-52 * np.abs(values).max()):
        return True
    try:
        np.linalg.cholesky(K + limit / 2 * np.eye(len(K)))
    except np.linalg.LinAlgError:
        return None
    return False
