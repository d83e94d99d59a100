"""What all estimators share in their signatures and docstrings, written once."""

from __future__ import annotations

import difflib
import functools
import inspect
import reprlib
from collections.abc import Callable
from numbers import Real
from typing import Any, TypedDict, TypeVar

_Class = TypeVar("_Class", bound=type)

# Every estimator, by the name of its class.
ESTIMATORS: dict[str, type] = {}

# Keywords of other libraries, and what to use instead: the first line whose parameter the class has. {value} stands for
# the value that was given.
HINTS = {
    "C": {"Cs": "Cs={value}: one value of C, or several to choose from"},
    "alpha": {
        "delta": "Cs=1 / (2 * alpha): the squared loss with this C is KernelRidge with that alpha",
        "noncrossing": "tau for the level of a quantile, or Cs for the penalty: a large alpha is a small C",
        "Cs": "Cs: a large alpha is a small C",
    },
    "quantile": {
        "noncrossing": "tau={value}: the level of the quantile",
        "Cs": "KernelQuantile(tau={value}), which fits quantiles",
    },
    "n_components": {
        "low_rank": "low_rank=True with n_landmarks={value}: landmarks; or with rank={value}: features made from them",
        "n_landmarks": "n_landmarks={value}: landmarks; or rank={value}: the features made from them",
    },
    "decision_function_shape": {
        "multi_class": "multi_class='ovo' or 'ovr'; decision_function has a column a class with either",
    },
}

CLASSIFIER_PARAMETERS = """
class_weight : dict, "balanced" or None, default=None
    Weights of the classes in the loss, multiplied with those of the rows; "balanced" gives all classes the same total
    weight: (sum of all weights) / (number of classes · sum of the weights of the class). Each fold balances its own
    training rows. Scores and calibrated probabilities (`probability`) leave them out: they are those of rows as they
    come.
multi_class : {{"ovo", "ovr"}}, or "multinomial" for `KernelLogistic`, default="ovo"
    More than two classes by a machine for each pair, which vote, or by a machine for each class against all others;
    all on one kernel matrix. "multinomial" is one problem for all classes.
tune : {{"joint", "each"}}, default="joint"
    More than two classes: one C for all machines, by the scores of the model they make together, or for each machine
    its own C, by its own scores.
"""

CLASSIFIER_ATTRIBUTES = """
n_support_ : ndarray of shape (n_classes,)
    Support vectors of each class.
classes_ : ndarray of shape (n_classes,)
    Labels; of two, a decision value > 0 means ``classes_[1]``.
machines_ : list of tuple
    Empty for two classes and for "multinomial". Else the labels that each machine sets apart: (positive, negative),
    or (positive, None) for all others. Attributes of the machines (`gaps_`, `status_`, `n_iter_`, `n_support_path_`,
    `dual_coef_`, `intercept_`, `objective_`) have a leading axis for them; with ``tune="each"`` `scores_`, `C_`,
    `best_index_` and `best_score_`, too. With more than two classes `oof_decision_` has a column a class, and there is
    no `oof_path_`.
"""

PARAMETERS = """
kernel : str or callable, default="rbf"
    "rbf" exp(−γ‖x−z‖²), "laplacian" exp(−γ‖x−z‖₁), "poly" (γ⟨x,z⟩ + coef0)^degree, "linear" ⟨x,z⟩,
    "sigmoid" tanh(γ⟨x,z⟩ + coef0), "matern32" and "matern52" of length scale 1/√(2γ), "precomputed", or a
    function of two arrays of rows that returns the matrix of kernel values between them: X may then be a list or an
    array of objects, such as texts, which it gets as arrays of dtype object. Certificates need a positive
    semi-definite kernel, which "sigmoid" mostly is not, nor "poly" with ``coef0 < 0``.
gamma : float, sequence of float, "sigest", "scale", "auto" or "auto-grid", default="sigest"
    Bandwidth γ. "sigest" takes it from the distances of pairs of rows (as kernlab and TorchKM do);
    "scale" is 1 / (n_features · Var(X)), "auto" is 1 / n_features. Of a sequence, or of "auto-grid" (⅛, ¼, ½, 1, 2 and
    4 times "sigest"), the best is chosen together with C, and scores and gaps gain an axis for γ before that for C.
degree : int, default=3
    Degree of the "poly" kernel.
coef0 : float, default=0.0
    Constant of the "poly" and "sigmoid" kernels.
Cs : int, float or sequence of float, default=50
    Values of C. An int is the length of a logarithmic grid from 1e-3 to 1e3 (for quantiles and `KernelSVR` times the
    spread of y), a float is one value; the order of a sequence is kept in all results. A :class:`GridEdgeWarning` says
    so if the best score lies at an end of the grid and still rises there.
lambdas : float or sequence of float, optional
    Values of λ in place of `Cs`, which then keeps its default: C = 1 / (2 n_samples λ), with n_samples the number of
    all rows, in the folds, too.
cv : int, splitter, iterable, "loo" or None, default=5
    An int is the number of shuffled folds, those of ``{splitter}(cv, shuffle=True, random_state=random_state)``;
    any scikit-learn splitter or iterable of (train, test) rows is taken as it is; "loo" is exact leave-one-out.
    None fits without cross-validation, for one C.
scoring : str, callable or None, default=None
    None is {score}. Else a scorer of scikit-learn, by name or as
    ``callable(estimator, X, y)``, applied to the out-of-fold values of each fold (with "loo": of all rows at once).
    A scorer gets the weights of the rows if its metric has the parameter ``sample_weight``, as in ``GridSearchCV``.
    `score` goes by it, too.
selection : {{"best", "1se"}}, default="best"
    The C and γ of the best mean score; or those of the smallest C within one standard error of it. Ties go to the
    smaller C, then to the smaller γ, whose kernel is smoother; means that differ by rounding only (10⁻¹² of the scores)
    are equal. The order of `Cs` and `gamma` changes nothing. With machines or levels that choose by themselves, γ is
    that of the best mean over them.
low_rank : bool, default=False
    True replaces the kernel by an approximation of rank at most `rank`, made once from `n_landmarks` landmarks
    (Nyström): time and memory then grow with the number of rows, not with its square. Certificates are for the
    approximated problem; `approximation_` says how far it is from the exact one.
landmarks : {{"auto", "kmeans", "rpcholesky", "uniform"}}, array of int, array or sparse matrix, default="auto"
    With `low_rank`: the rule that chooses landmarks, as of :class:`NystromFeatures`, or indices of rows, or points. No
    rule looks at targets.
n_landmarks : int, default=2000
    With `low_rank`: landmarks that a rule chooses.
rank : int, optional
    With `low_rank`: most features. None keeps all that stand out of rounding.
device : str, default="cpu"
    Where the linear algebra runs: "cpu", "cuda" or "cuda:1" (NVIDIA), "opencl" or "opencl:1" (the first OpenCL device,
    or that of a number), or "auto" (the best GPU that is found, else "cpu"). :func:`kernelpath.devices` lists them. A
    device that is not there is an error for `fit`. A fitted model needs none: where its device is missing, it predicts
    on the processor.
solver : {{"auto", "active-set", "newton", "spectral", "closed-form"}}, default="auto"
    How each problem is solved: "active-set" for piecewise-linear losses, "newton" for smooth ones, "closed-form"
    for the squared loss (rows that repeat go to "newton"), "spectral" for every loss but the multinomial one. "auto"
    takes the fastest. With `low_rank` "newton" and "spectral" work in rank dimensions, for every loss, and "auto" is
    "newton", unless the rank is nearly the number of rows: then it is what "auto" takes on the kernel matrix of the
    features.
tol : float, default=1e-6
    Relative duality gap each model has to reach.
max_iter : int, default=1000000
    Most solver steps for one model.
assume_definite : bool, default=False
    True takes the kernel for positive semi-definite without a look at its matrix. Otherwise the matrix of a kernel that
    is not so by its formula ("precomputed", a function, "sigmoid", "poly" with ``coef0 < 0``) is examined by a
    factorisation, of order n³, since certificates hold only if it has no negative eigenvalue. Say True if you know that
    it has none: certificates are then as true as what you say, and the model records it.
time_budget : float, optional
    Seconds after which the fit ends with the best model found and says what it left out. Several γ share them: each has
    an equal part of what is left, and more as long as a fold has no model; the choice is among the pairs of C and γ
    that were run on every fold and on all rows, and `gammas_` are those that were begun. With `low_rank` they count
    from the choice of landmarks on, which is not cut short: if it takes longer, that is a `TimeoutError`, unless
    another γ has models.
dtype : {{"auto", "float32", "float64"}}, default="auto"
    Precision that the kernel matrix is stored in; certificates are those of the matrix in float64 in any case. "auto"
    is float32 with a 16-bit correction of each entry, which is smaller and faster, unless the matrix is so close to
    singular that float32 would blur it ("linear", "poly", "sigmoid", smooth kernels of few features), or C is very
    large; a "precomputed" matrix keeps its own precision. With `low_rank` it is that of the features, and "auto" is
    float32.
n_jobs : int, optional
    Threads. None takes a thread for each core that this process may use (its affinity and the quota of its container
    count), or fewer where ``OMP_NUM_THREADS`` or an outer parallel loop says so: joblib's workers share the cores, so
    that ``cross_val_score(n_jobs=2)`` does not start more threads than there are cores. -1 takes a thread for each core
    in any case, -2 one less. Results do not depend on it.
random_state : int, RandomState or None, default=0
    Seed of the folds, of "sigest" and of the rule that chooses landmarks: an int gives the same answer for the same
    data; None draws anew at each fit.
verbose : int, default=0
    1 shows a live line of progress.
keep_path : bool, default=True
    Whether to keep `oof_path_`, the out-of-fold values at every C: n_samples × n_Cs numbers, and most of a pickle.
"""

ATTRIBUTES = """
C_, lambda_, best_index_, best_score_ : float, float, int, float
    The chosen C, its λ, its line in `cv_results_` (which is its place in `Cs_` if one γ was tried), and its mean score
    over the folds that hold rows of the machine.
best_params_ : dict
    The chosen C as ``{"Cs": C_}``, with the chosen "gamma" if several were tried, and with ``"lambdas": None`` if these
    were given: what ``set_params`` takes to fit that one model. Not there where each machine or level has its own C.
gamma_ : float or None
    The bandwidth used; None for kernels without one.
gammas_ : ndarray of shape (n_gammas,)
    The bandwidths tried.
solver_ : str
    The solver used.
Cs_, lambdas_ : ndarray of shape (n_Cs,)
    The path.
scores_ : ndarray of shape (n_folds, n_Cs)
    Scores of the held-out rows; NaN where not run. With "loo", weights of the rows and ``scoring=None``, each counts in
    the means by the weight of its row, which `fold_weights_` then holds.
cv_results_ : dict
    Columns as in ``GridSearchCV``, with the gaps beside the scores; a line for each C, one γ after the other. Its
    ``"params"`` are what ``set_params`` takes to fit that one model, ``{"Cs": 1.0}`` or ``{"Cs": 1.0, "gamma": 0.1}``,
    and so are the columns ``"param_Cs"`` and ``"param_gamma"``. Means that differ by rounding only share a rank, and a
    model that cannot be chosen, as the time budget ended before it was run on all rows, ranks last.
gaps_ : ndarray of shape (n_folds + 1, n_Cs)
    Relative duality gaps, (P − D) / max(abs(P), abs(D)), for the kernel in double precision; the last row is the refit.
    inf where not run, NaN where the kernel matrix is indefinite, so that no gap proves anything.
gap_noise_ : ndarray of shape (n_folds + 1, n_Cs)
    How far rounding may have taken each gap, and its two values over the larger.
status_, n_iter_ : ndarray of shape (n_folds + 1, n_Cs)
    How each solve ended, and after how many steps: "converged", "max_iter", "stalled", "time_limit", "not_run",
    "inaccurate" where rounding hides the gap, or "indefinite" for every model on a kernel matrix with a negative
    eigenvalue.
objective_, dual_objective_ : float
    The primal and dual values of the returned model; the optimum lies between them. The dual value is NaN where the
    kernel matrix is indefinite.
smallest_eigenvalue_ : float or None
    The smallest eigenvalue of the kernel matrix (with `low_rank`, of that of the landmarks) at `gamma_`, if it is
    indefinite: below −n ε times the largest one, with ε that of its precision. An :class:`IndefiniteKernelWarning`
    says so, too. None if the kernel is positive semi-definite.
oof_decision_, oof_path_ : ndarray of shape (n_samples,), (n_samples, n_Cs)
    Out-of-fold values f at `C_` and, unless ``keep_path=False``, at every C: the mean over the folds that held the row
    out.
dual_coef_ : ndarray of shape (1, n_SV)
    Coefficients β of the support vectors.
intercept_ : ndarray of shape (1,)
    Intercept b.
coef_ : ndarray of shape (1, n_features) or, of a regressor, (n_features,)
    With the linear kernel only: the coefficients of the features, f(x) = coef_ · x + intercept_.
support_, support_vectors_ : ndarray of shape (n_SV,), (n_SV, n_features)
    Rows with β ≠ 0; the vectors are a CSR matrix when X was sparse, and empty when ``kernel="precomputed"``.
n_support_path_ : ndarray of shape (n_Cs,)
    Support vectors of the refit at each C.
landmarks_, landmark_indices_, rank_, approximation_ : ndarray, ndarray or None, int, Approximation
    With `low_rank` only: the landmarks, which take the place of the support vectors (`support_` holds those that are
    rows); the rows they are; the number of features; and how far they are from the kernel.
n_features_in_, feature_names_in_ : int, ndarray of str
    Columns seen by `fit`.
timed_out_ : bool
    Whether `time_budget` ended the fit.
fit_seconds_, kernel_seconds_, path_seconds_, gram_bytes_ : float, float, float, int
    Time of the whole fit, of the kernel matrix and of the path; size of the kernel matrix. With `low_rank` the
    features stand for the matrix.
planned_bytes_ : int
    Memory that the fit was planned to take at its peak, beside X. A fit whose plan does not fit is not begun.
"""


class Parameters(TypedDict, total=False):
    """The keywords every estimator takes, for type checkers."""

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    Cs: Any
    lambdas: Any
    cv: Any
    scoring: Any
    selection: str
    low_rank: bool
    landmarks: Any
    n_landmarks: int
    rank: int | None
    device: str
    solver: str
    tol: float
    max_iter: int
    assume_definite: bool
    time_budget: float | None
    dtype: Any
    n_jobs: int | None
    random_state: Any
    verbose: int
    keep_path: bool


class ClassifierParameters(Parameters, total=False):
    """The keywords every classifier takes, for type checkers."""

    class_weight: Any
    multi_class: str
    tune: str


def estimator(*, splitter: str, score: str) -> Callable[[_Class], _Class]:
    """Decorate an estimator that names only what is its own, in ``__init__(self, *, own, **shared)`` and in its
    docstring, where the lines ``{parameters}`` and ``{attributes}`` stand for what all estimators share.
    """

    def complete(cls: _Class) -> _Class:
        spell_out_signature(cls)
        explain_unknown_keywords(cls)
        _keep_score_name(cls, score)
        ESTIMATORS[cls.__name__] = cls
        if cls.__doc__ is not None:  # python -OO has none
            classifies = splitter == "StratifiedKFold"
            parameters = (CLASSIFIER_PARAMETERS.rstrip() if classifies else "") + PARAMETERS
            attributes = ATTRIBUTES + (CLASSIFIER_ATTRIBUTES.lstrip() if classifies else "")
            parameters = parameters.format(splitter=splitter, score=score)
            cls.__doc__ = _inserted(cls.__doc__, {"{parameters}": parameters, "{attributes}": attributes})
        return cls

    return complete


def spell_out_signature(cls: Any) -> None:
    """Put the shared keywords in place of ``**shared``: scikit-learn reads parameters from the signature."""
    if "__init__" not in vars(cls):
        return
    own = inspect.signature(cls.__init__)
    base = next(base for base in cls.__mro__[1:] if "__init__" in vars(base))
    shared = inspect.signature(base.__init__)
    keywords = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = {p.name for p in keywords}
    keywords += [p for p in shared.parameters.values() if p.name not in names]
    cls.__init__.__signature__ = own.replace(parameters=keywords)


def explain_unknown_keywords(cls: _Class) -> _Class:
    """Let the constructor refuse an unknown keyword with the name of the class and the parameter to use instead."""
    constructor = cls.__init__  # type: ignore[misc]
    known = [name for name in inspect.signature(constructor).parameters if name != "self"]

    @functools.wraps(constructor)
    def checked(self: Any, *arguments: Any, **keywords: Any) -> None:
        for name, value in keywords.items():
            if name not in known:
                raise TypeError(_unknown_keyword(type(self).__name__, known, name, value))
        constructor(self, *arguments, **keywords)

    cls.__init__ = checked  # type: ignore[misc]
    return cls


def _unknown_keyword(kind: str, known: list[str], name: str, value: Any) -> str:
    message = f"{kind}.__init__() got an unexpected keyword argument {name!r}"
    for parameter, hint in HINTS.get(name, {}).items():
        if parameter in known:
            is_number = isinstance(value, Real) and not isinstance(value, bool)
            # An integer would be the length of a grid of Cs.
            shown = repr(float(value)) if is_number and name == "C" else reprlib.repr(value)
            return f"{message}. Use {hint.format(value=shown)}"
    close = difflib.get_close_matches(name, known, n=1)
    return f"{message}. Did you mean {close[0]!r}?" if close else message


def _keep_score_name(cls: Any, score: str) -> None:
    cls._score_name = score.removeprefix("the ")


def _inserted(text: str, parts: dict[str, str]) -> str:
    """`text` with each part in place of the line that names it, indented as that line is."""
    lines = []
    for line in text.splitlines():
        part = parts.get(line.strip())
        indent = line[: len(line) - len(line.lstrip())]
        lines += [line] if part is None else [indent + row if row else row for row in part.strip().splitlines()]
    return "\n".join(lines)
