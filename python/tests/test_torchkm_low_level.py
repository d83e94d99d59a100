"""TorchKM's low-level classes: each path is that of kernelpath's estimator, and what the formula says."""

import inspect

import naive
import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss
from test_torchkm import Tensor, TensorOnGPU

from kernelpath import KernelDWD, KernelLogistic, KernelQuantile, KernelSVC, NystromFeatures
from kernelpath.torchkm import low_level
from kernelpath.torchkm.low_level import cvknyqr, cvknyssvm, cvksvm

N, TAU, DELTA = 60, 0.3, 0.5
LAMBDAS = np.array([1e-1, 1e-3, 1e-2])
FOLDID = np.arange(N) % 4 + 1
FOLDS = [(np.flatnonzero(FOLDID != k), np.flatnonzero(FOLDID == k)) for k in (1, 2, 3, 4)]
NYSTROM = {"num_landmarks": 30, "k": 12}

# Name: estimator of kernelpath, loss by its naive name, own argument.
EXACT = {
    "cvksvm": (KernelSVC(), ("hinge", 0.0), {}),
    "cvksqsvm": (KernelSVC(loss="squared_hinge"), ("squared_hinge", 0.0), {}),
    "cvkdwd": (KernelDWD(), ("dwd", 0.0), {}),
    "cvklogit": (KernelLogistic(), ("logistic", 0.0), {}),
    "cvkqr": (KernelQuantile(tau=TAU), ("quantile", TAU), {"tau": TAU}),
}
HUBER = {"cvkhuber": (None, ("huberised", DELTA), {"delta": DELTA})}
NYSTROM_OF = {"cvknyssvm": "cvksvm", "cvknysdwd": "cvkdwd", "cvknyslogit": "cvklogit", "cvknyqr": "cvkqr"}
ALL = [*EXACT, *HUBER, *NYSTROM_OF]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=N) > 0.8, 1.0, -1.0), np.sin(X[:, 0])


def own_argument(name):
    return (EXACT | HUBER)[NYSTROM_OF.get(name, name)][2]


def targets(name, rows):
    return rows[2] if name.endswith("qr") else rows[1]


def matrix(name, rows):
    """Kernel matrix, or the arguments of the Nyström classes."""
    if name in NYSTROM_OF:
        return {"Xmat": rows[0], "X_test": rows[0][:5], **NYSTROM}
    return {"Kmat": naive.gram(rows[0], rows[0], "rbf", 0.5)}


def made(name, rows, **options):
    arguments = {"y": targets(name, rows), "nlam": 3, "ulam": LAMBDAS, "foldid": FOLDID, "eps": 1e-8}
    return getattr(low_level, name)(**matrix(name, rows) | own_argument(name) | arguments | options)


def naive_objective(name, K, y, lam, alpha, b):
    """C Σ L + ½ αᵀKα, times 2λ (quantiles: λ), with C = 1 / (2nλ) (quantiles: 1 / (nλ))."""
    scale = lam if name.endswith("qr") else 2 * lam
    C = 1 / (len(y) * scale)
    loss = (EXACT | HUBER)[NYSTROM_OF.get(name, name)][1]
    if loss[0] != "huberised":
        return scale * naive.objective(K, y, C, alpha, b, loss)
    total = 0.0
    for short in 1 - y * (K @ alpha + b):
        total += 0.0 if short <= 0 else short**2 / (2 * DELTA) if short <= DELTA else short - DELTA / 2
    return lam * alpha @ K @ alpha + total / len(y)


@pytest.mark.parametrize("name", EXACT)
def test_the_path_is_that_of_the_estimator(name, rows):
    y = targets(name, rows)
    model = made(name, rows)
    assert model.fit() is model
    scale = 0.5 if name == "cvkqr" else 1.0
    options = {"kernel": "precomputed", "lambdas": scale * LAMBDAS, "cv": FOLDS, "tol": 1e-8}
    ours = EXACT[name][0].set_params(**options).fit(model.Kmat, y)
    np.testing.assert_array_equal(model.pred, ours.oof_path_)
    np.testing.assert_array_equal(model.npass, ours.n_iter_[-1])
    np.testing.assert_array_equal(model.cvnpass, ours.n_iter_[:-1].sum(axis=0))
    assert (model.anlam, model.jerr, model.converged.tolist()) == (2, 0, [True] * 3)
    best = ours.best_index_
    alpha = np.zeros(N)
    alpha[ours.support_] = ours.dual_coef_[0]
    np.testing.assert_array_equal(model.alpmat[:, best], np.append(ours.intercept_, alpha))
    assert model.obj_value(model.alpmat[:, best], LAMBDAS[best]) == pytest.approx(
        2 * scale * LAMBDAS[best] * ours.objective_, rel=1e-6
    )
    (estimator,) = model.estimators_
    assert type(estimator) is type(ours)
    # All columns are optimal, by a certificate of their own.
    for j, lam in enumerate(LAMBDAS):
        C = 1 / (2 * N * scale * lam)
        point = model.Kmat, y, C, model.alpmat[1:, j], model.alpmat[0, j]
        certificates = [naive.certificate(*point, loss=EXACT[name][1])]
        if EXACT[name][1][0] in naive.SMOOTH:
            certificates.append(naive.slope_certificate(*point, EXACT[name][1]))
        assert min(naive.relative_gap(*of) for of in certificates) <= 1.1e-8


def test_the_huberised_hinge_is_at_its_optimum(rows):
    """At the optimum α = −L′(f) / (2nλ), and Σα = 0; L′ is −y · clip((1 − yf) / δ, 0, 1)."""
    model = made("cvkhuber", rows).fit()
    assert len(model.estimators_) == 3
    for j, lam in enumerate(LAMBDAS):
        b, alpha = model.alpmat[0, j], model.alpmat[1:, j]
        pull = model.y * np.clip((1 - model.y * (model.Kmat @ alpha + b)) / DELTA, 0, 1)
        np.testing.assert_allclose(alpha, pull / (2 * N * lam), atol=1e-6 * np.abs(alpha).max())
        assert abs(alpha.sum()) <= 1e-9 * np.abs(alpha).sum()
    # As δ shrinks it becomes the hinge loss.
    hinge = made("cvksvm", rows).fit()
    nearly = made("cvkhuber", rows, delta=1e-7).fit()
    np.testing.assert_allclose(nearly.Kmat @ nearly.alpmat[1:], hinge.Kmat @ hinge.alpmat[1:], atol=1e-5)


@pytest.mark.parametrize("name", ["cvksqsvm", "cvkdwd", "cvklogit", "cvkhuber"])
def test_folds_keep_the_number_of_all_rows(name, rows):
    """A fold at λ is a fit of its own rows at λ n / n_train: both have C = 1 / (2nλ). (Their optima are unique.)"""
    model = made(name, rows).fit()
    for train, test in FOLDS:
        part = {"Kmat": model.Kmat[np.ix_(train, train)], "y": model.y[train], "foldid": np.arange(len(train)) % 2}
        refit = made(name, rows, **part, ulam=LAMBDAS * N / len(train)).fit()
        values = model.Kmat[np.ix_(test, train)] @ refit.alpmat[1:] + refit.alpmat[0]
        np.testing.assert_allclose(values, model.pred[test], atol=1e-3)


@pytest.mark.parametrize("name", NYSTROM_OF)
def test_nystrom_classes_are_exact_on_their_features(name, rows):
    X, y = rows[0], targets(name, rows)
    model = made(name, rows, sigma=0.25, random_state=3).fit()
    features = NystromFeatures(gamma=0.5, landmarks="uniform", n_landmarks=30, rank=12, random_state=3).fit(X)
    Z = features.transform(X)
    assert (model.k_eff_, model.sig_w_) == (12, 0.25)
    np.testing.assert_array_equal(model.Z_train, Z)
    np.testing.assert_array_equal(model.Z_test, Z[:5])
    np.testing.assert_array_equal(model.transform(X[7:9]), features.transform(X[7:9]))
    np.testing.assert_array_equal(model.landmarks_, X[model.indices])
    np.testing.assert_allclose(naive.gram(X, model.landmarks_, "rbf", 0.5) @ model.M_, Z, atol=1e-10)
    assert model.converged.all()
    rank = N if name == "cvknyqr" else 12
    assert model.alpmat.shape == (rank + 1, 3)

    exact = made(NYSTROM_OF[name], rows, Kmat=Z @ Z.T, eps=1e-10).fit()
    np.testing.assert_allclose(model.pred, exact.pred, atol=1e-3)
    basis = Z @ Z.T if name == "cvknyqr" else Z
    np.testing.assert_allclose(basis @ model.alpmat[1:] + model.alpmat[0], Z @ Z.T @ exact.alpmat[1:] + exact.alpmat[0],
                               atol=1e-3)  # fmt: skip
    for j, lam in enumerate(LAMBDAS):
        # The objective in terms of α, where w = Zᵀα.
        alpha = exact.alpmat[1:, j]
        coef = alpha if name == "cvknyqr" else Z.T @ alpha
        expected = naive_objective(name, Z @ Z.T, y, lam, alpha, exact.alpmat[0, j])
        assert model.obj_value(np.append(exact.alpmat[0, j], coef), lam) == pytest.approx(expected, rel=1e-10)
        assert model.obj_value(model.alpmat[:, j], lam) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", [*EXACT, *HUBER])
def test_objective_is_that_of_the_formula(name, rows):
    """At the solution and at any other point, and no other is lower."""
    model = made(name, rows).fit()
    rng = np.random.default_rng(1)
    for j, lam in enumerate(LAMBDAS):
        best = model.obj_value(model.alpmat[:, j], lam)
        for point in (model.alpmat[:, j], rng.normal(size=N + 1), 1.01 * model.alpmat[:, j]):
            value = model.obj_value(Tensor(point), Tensor(lam))
            assert isinstance(value, float)
            assert value == pytest.approx(naive_objective(name, model.Kmat, model.y, lam, point[1:], point[0]))
            assert value >= best * (1 - 1e-7)


@pytest.mark.parametrize("name", ALL)
def test_errors_of_the_folds_and_predictions(name, rows):
    X, y = rows[0], targets(name, rows)
    model = made(name, rows).fit()
    column = model.alpmat[:, 1]
    new = np.random.default_rng(2).normal(size=(9, 3))
    if name in NYSTROM_OF:
        basis = model.approx_kernel_to_train(new) if name == "cvknyqr" else model.transform(new)
        given = new
    else:
        basis = given = naive.gram(new, X, "rbf", 0.5)
    values = basis @ column[1:] + column[0]
    error = model.cv(Tensor(model.pred), Tensor(y))
    assert error.shape == (3,)
    if name.endswith("qr"):
        expected = [mean_pinball_loss(y, model.pred[:, j], alpha=TAU) for j in range(3)]
        np.testing.assert_allclose(error, expected, rtol=1e-12)
        arguments = (given, column) if name == "cvknyqr" else (given, y[:9], column)
        np.testing.assert_allclose(model.predict(*arguments), values, atol=1e-8)
        return
    assert error.tolist() == [np.mean((model.pred[:, j] > 0) != (y == 1)) for j in range(3)]
    labels, accuracy = model.predict(Tensor(given), Tensor(y[:9]), Tensor(column))
    np.testing.assert_array_equal(labels, np.where(values > 0, 1, -1))
    assert accuracy == np.mean(labels == y[:9])
    assert 0.0 < accuracy < 1.0


@pytest.mark.parametrize("name", ALL)
def test_tensors(name, rows):
    given = {"ulam": Tensor(LAMBDAS), "foldid": Tensor(FOLDID), "y": Tensor(targets(name, rows))}
    given |= {key: Tensor(value) if np.ndim(value) else value for key, value in matrix(name, rows).items()}
    options = {"random_state": 0} if name == "cvknyqr" else {}
    tensors, arrays = made(name, rows, **given, **options).fit(), made(name, rows, **options).fit()
    np.testing.assert_array_equal(tensors.alpmat, arrays.alpmat)
    np.testing.assert_array_equal(tensors.pred, arrays.pred)


# The first arguments, in TorchKM's order.
ORDER = {
    "cvkhuber": "delta Kmat y nlam ulam foldid nfolds eps maxit gamma",
    "cvkqr": "Kmat y nlam ulam tau foldid nfolds eps maxit gamma",
    "cvknyqr": "Xmat X_test y nlam ulam tau foldid nfolds eps maxit gamma",
    **dict.fromkeys(["cvksvm", "cvksqsvm", "cvkdwd", "cvklogit"], "Kmat y nlam ulam foldid nfolds eps maxit gamma"),
    **dict.fromkeys(["cvknyssvm", "cvknysdwd", "cvknyslogit"], "Xmat X_test y nlam ulam foldid nfolds eps maxit gamma"),
}


@pytest.mark.parametrize("name", ALL)
def test_arguments_by_position_and_those_without_effect(name, rows):
    given = {"y": targets(name, rows), "nlam": 3, "ulam": LAMBDAS, "foldid": FOLDID, "nfolds": 4, "eps": 1e-6}
    given |= {"maxit": 7, "gamma": 0.1} | own_argument(name) | matrix(name, rows)
    others = dict.fromkeys(["is_exact", "delta_len", "mproj", "KKTeps", "KKTeps2"], 1)
    others |= {"device": "cpu", "n_jobs": 1} | (NYSTROM | {"random_state": 0} if name in NYSTROM_OF else {})
    by_position = getattr(low_level, name)(*[given[key] for key in ORDER[name].split()], **others).fit()
    plain = made(name, rows, eps=1e-6, **({"random_state": 0} if name == "cvknyqr" else {})).fit()
    np.testing.assert_array_equal(by_position.alpmat, plain.alpmat)
    assert by_position.estimators_[0].n_jobs == 1


def test_defaults():
    assert set(ORDER) == set(low_level.__all__) == set(ALL)
    defaults = {key: of.default for key, of in inspect.signature(cvksvm).parameters.items()}
    assert [defaults[key] for key in ("foldid", "nfolds", "eps", "device")] == [None, 5, 1e-5, None]
    defaults = {key: of.default for key, of in inspect.signature(cvknyssvm).parameters.items()}
    assert [defaults[key] for key in ("num_landmarks", "k", "random_state")] == [2000, 1000, 0]
    defaults = {key: of.default for key, of in inspect.signature(cvknyqr).parameters.items()}
    assert [defaults[key] for key in ("nlam", "tau", "random_state")] == [50, 0.5, None]


def test_folds_are_drawn_where_none_are_given(rows):
    model = made("cvksvm", rows, foldid=None, nfolds=7)
    assert sorted(np.bincount(model.foldid)[1:]) == [8, 8, 8, 9, 9, 9, 9]
    again = made("cvksvm", rows, foldid=None, nfolds=7)
    assert not np.array_equal(model.foldid, again.foldid)
    one_each = made("cvksvm", rows, foldid=None, nfolds=N).fit()
    assert sorted(one_each.foldid) == list(range(1, N + 1))
    ours = KernelSVC(kernel="precomputed", lambdas=LAMBDAS, cv="loo", tol=1e-8).fit(one_each.Kmat, one_each.y)
    np.testing.assert_allclose(one_each.cv(one_each.pred, one_each.y), 1 - ours.scores_.mean(axis=0))


def test_the_first_lambdas_alone(rows):
    model = made("cvkdwd", rows, nlam=2).fit()
    np.testing.assert_array_equal(model.ulam, LAMBDAS[:2])
    assert model.alpmat.shape == (N + 1, 2)


def test_default_landmarks_are_the_same_every_time(rows):
    one, two = (made("cvknyssvm", rows).fit() for _ in range(2))
    np.testing.assert_array_equal(one.indices, two.indices)
    assert one.sig_w_ == two.sig_w_
    drawn, again = (made("cvknyqr", rows, X_test=None).fit() for _ in range(2))
    assert not np.array_equal(drawn.indices, again.indices)
    assert drawn.Z_test is None


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("cvksvm", {"Kmat": np.ones((3, 2))}, ValueError, r"Kmat must be a square matrix, got shape \(3, 2\)"),
        ("cvksvm", {"Kmat": np.ones(3)}, ValueError, r"Kmat must be a matrix, got shape \(3,\)"),
        ("cvksvm", {"y": np.ones(59)}, ValueError, "y must have 60 entries, got 59"),
        ("cvklogit", {"y": FOLDID % 2}, ValueError, "y must hold the labels -1 and 1 alone, got 0 in row 1"),
        ("cvkdwd", {"nlam": 4}, ValueError, "nlam=4, but ulam has 3 values"),
        ("cvkdwd", {"nlam": 2.5}, TypeError, "nlam must be an integer, got 2.5"),
        (
            "cvksqsvm",
            {"foldid": FOLDID[:9]},
            ValueError,
            r"foldid must have an entry for each of the 60 rows, .*\(9,\)",
        ),
        ("cvksqsvm", {"nfolds": 1}, ValueError, "nfolds must be at least 2, got 1"),
        ("cvkqr", {"tau": 1.5}, ValueError, "tau must be a finite number > 0 and < 1, got 1.5"),
        ("cvkhuber", {"delta": 0.0}, ValueError, "delta must be a finite number > 0, got 0.0"),
        (
            "cvksvm",
            {"Kmat": TensorOnGPU()},
            TypeError,
            "Kmat is a TensorOnGPU on the device 'cuda:0' that numpy cannot",
        ),
        ("cvksvm", {"ulam": TensorOnGPU()}, TypeError, r"pass ulam.detach\(\).cpu\(\)"),
        ("cvknyssvm", {"y": FOLDID}, ValueError, "y must hold the labels -1 and 1 alone, got 2 in row 1"),
        ("cvknyssvm", {"k": 0}, ValueError, "k must be at least 1, got 0"),
        ("cvknyssvm", {"sigma": -1.0}, ValueError, "sigma must be a finite number > 0, got -1.0"),
        ("cvknyqr", {"y": None}, ValueError, "cvknyqr needs y, got None"),
        ("cvknyqr", {"ulam": None}, ValueError, "cvknyqr needs ulam, got None"),
        ("cvksvm", {"device": "cuda:7"}, RuntimeError, '"cuda:7" cannot be used: .*available are cpu'),
        ("cvksvm", {"ulam": [1.0, -1.0, 1.0]}, ValueError, r"lambda must be a finite number > 0, got -1 \(ulam\[1\]\)"),
        ("cvksvm", {"eps": 0.0}, ValueError, "eps must be a finite number > 0, got 0.0"),
        ("cvksvm", {"epsilon": 1.0}, TypeError, "unexpected keyword argument 'epsilon'"),
    ],
)
def test_what_they_refuse(name, options, error, message, rows):
    with pytest.raises(error, match=message):
        made(name, rows, **options).fit()


def test_features_come_with_the_fit(rows):
    for name in NYSTROM_OF:
        model = made(name, rows)
        for method in (lambda m: m.transform(rows[0]), lambda m: m.obj_value(np.zeros(13), 0.1)):
            with pytest.raises(RuntimeError, match=rf"call fit\(\) first: this {name} has no landmarks yet"):
                method(model)


def test_sizes_that_do_not_fit(rows):
    model = made("cvksvm", rows).fit()
    column = model.alpmat[:, 0]
    for message, ask in {
        "alp_b must have 61 entries, got 60": lambda: model.obj_value(column[1:], 0.1),
        "Kmat_new must have a column for each of the 60 training rows, got 3": lambda: model.predict(
            rows[0], model.y, column
        ),
        "y_new must have 60 entries, got 5": lambda: model.predict(
            Kmat_new=model.Kmat, y_new=model.y[:5], alp_b=column
        ),
        "y must have 60 entries, got 5": lambda: model.cv(model.pred, model.y[:5]),
        r"lam_b must be a number, got shape \(3,\)": lambda: model.obj_value(column, LAMBDAS),
    }.items():
        with pytest.raises(ValueError, match=message):
            ask()
    quantiles = made("cvknyqr", rows).fit()
    with pytest.raises(ValueError, match="alp_b must have 61 entries, got 3"):
        quantiles.predict(rows[0], np.zeros(3))
