"""What cannot be read as numbers: the error names the value, its column, and what to do."""

import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelpath import KernelQuantile, KernelSVC, NystromFeatures
from kernelpath._settings import called

FAST = {"Cs": [1.0, 10.0], "cv": 2, "random_state": 0}
N = 60
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=k) for k in range(N)]
TIMES = [dt.datetime(2020, 1, 1) + dt.timedelta(hours=k) for k in range(N)]
LETTERS = ["tall", "wide"] * (N // 2)
NUMBERS_AND_TEXT = [0.5, "tall", None, 2] * (N // 4)

# A column that holds no numbers, as each library makes it; the exception, and what it says of column 'mean area'.
COLUMNS = {
    "text": (
        {pd: LETTERS, pl: LETTERS},
        ValueError,
        r"row 0, column 'mean area' is 'tall'; encode text columns first",
    ),
    "categories": (
        {pd: pd.Categorical(LETTERS), pl: pl.Series(LETTERS, dtype=pl.Categorical)},
        ValueError,
        r"column 'mean area' holds categories, such as 'tall'; encode them first, by OneHotEncoder",
    ),
    "enum": (
        {pl: pl.Series(LETTERS, dtype=pl.Enum(["tall", "wide"]))},
        ValueError,
        r"column 'mean area' holds categories, such as 'tall'",
    ),
    "times": (
        {pd: pd.to_datetime(TIMES), pl: TIMES},
        TypeError,
        r"column 'mean area' holds dates or times \(.*\); turn dates and times into numbers first",
    ),
    "days": (
        {pd: DAYS, pl: DAYS},
        TypeError,
        r"column 'mean area' (is datetime.date|holds dates).*; turn dates and times into numbers first",
    ),
    "durations": (
        {pd: pd.to_timedelta(np.arange(N), "h"), pl: [dt.timedelta(hours=k) for k in range(N)]},
        TypeError,
        r"column 'mean area' holds dates or times .*; turn dates and times into numbers first",
    ),
    "mixed": (
        {pd: pd.Series(NUMBERS_AND_TEXT, dtype=object), pl: pl.Series(NUMBERS_AND_TEXT, dtype=pl.Object)},
        ValueError,
        r"row 1, column 'mean area' is 'tall'; encode text columns first",
    ),
    "missing": (
        {pd: pd.Series([1.0, pd.NA] * (N // 2), dtype=object)},
        TypeError,
        r"row 1, column 'mean area' is <NA>; remove or impute",
    ),
    "objects": (
        {pd: [1.0, {}] * (N // 2)},
        TypeError,
        r"row 1, column 'mean area' is {}; convert it: dict is not a number",
    ),
    "lists": ({pd: [[1, 2]] * N, pl: [[1, 2]] * N}, ValueError, r"row 0, column 'mean area' is .*; convert it"),
}
CASES = [(name, library) for name, (columns, _, _) in COLUMNS.items() for library in columns]


def frames(X, column, library):
    """A frame of numbers, and that frame with the column in the middle of it."""
    numbers = library.DataFrame({"a": X[:, 0], "mean area": X[:, 1], "b": X[:, 2]})
    return numbers, library.DataFrame({"a": X[:, 0], "mean area": column, "b": X[:, 2]})


@pytest.mark.parametrize(("name", "library"), CASES, ids=lambda part: getattr(part, "__name__", part))
def test_column_without_numbers_is_named(small, name, library):
    X, y = small
    columns, error, message = COLUMNS[name]
    numbers, frame = frames(X, columns[library], library)
    clf, features = KernelSVC(**FAST).fit(numbers, y), NystromFeatures(n_landmarks=5).fit(numbers)
    for call in (
        lambda: KernelSVC(**FAST).fit(frame, y),
        lambda: clf.predict(frame),
        lambda: NystromFeatures().fit(frame),
        lambda: features.transform(frame),
    ):
        with pytest.raises(error, match=f"X must hold numbers, but .*{message}"):
            call()


@pytest.mark.parametrize("library", [pd, pl])
def test_numbers_of_any_column_type_pass(small, library):
    X, y = small
    whole = np.round(4 * X[:, 1])
    expected = KernelSVC(**FAST).fit(np.column_stack([X[:, 0], whole, X[:, 2]]), y).oof_path_
    as_objects = pd.Series(whole, dtype=object) if library is pd else pl.Series(whole.tolist(), dtype=pl.Object)
    for column in (whole.astype(int), whole.astype(np.float32), as_objects):
        np.testing.assert_array_equal(KernelSVC(**FAST).fit(frames(X, column, library)[1], y).oof_path_, expected)
    if library is pd:
        categories = pd.Categorical(whole.astype(int))
        np.testing.assert_array_equal(KernelSVC(**FAST).fit(frames(X, categories, pd)[1], y).oof_path_, expected)


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf")])
@pytest.mark.parametrize("options", [{}, {"gamma": 0.5}, {"gamma": 0.5, "low_rank": True}])
def test_value_that_is_not_finite_is_named(small, library, value, name, options):
    X, y = small
    column = X[:, 1].copy()
    column[17] = value
    numbers, frame = frames(X, column, library)
    message = f"X contains {name} at row 17, column 'mean area': remove or impute"
    clf = KernelSVC(**FAST, **options).fit(numbers, y)
    features = NystromFeatures(n_landmarks=5).fit(numbers)
    for call in (
        lambda: KernelSVC(**FAST, **options).fit(frame, y),
        lambda: clf.decision_function(frame),
        lambda: NystromFeatures(n_landmarks=5, gamma=options.get("gamma", "sigest")).fit(frame),
        lambda: features.transform(frame),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_columns_without_names_keep_their_numbers_or_labels(small):
    X, y = small
    X = X.copy()
    X[17, 1] = np.nan
    for given, label in ((X, "1"), (X.tolist(), "1"), (pd.DataFrame(X, columns=[10, 20, 30]), "20")):
        with pytest.raises(ValueError, match=f"row 17, column {label}:"):
            KernelSVC(**FAST).fit(given, y)


def test_row_is_that_of_X_among_rows_of_weight_0(small):
    X, y = small
    weight = np.ones(N)
    weight[[3, 9]] = 0.0
    X = X.copy()
    X[17, 1] = np.nan
    for gamma in ("sigest", 0.5):
        with pytest.raises(ValueError, match="row 17, column 1:"):
            KernelSVC(**FAST, gamma=gamma).fit(X, y, sample_weight=weight)
    X[17, 1], X[3, 1] = 0.0, np.nan
    KernelSVC(**FAST).fit(X, y, sample_weight=weight)


def test_times_in_arrays(small):
    X, y = small
    for array in (np.array(TIMES, "datetime64[s]"), np.arange(N).astype("timedelta64[h]")):
        with pytest.raises(TypeError, match=rf"X must hold numbers, but its dtype is {re.escape(str(array.dtype))};"):
            KernelSVC(**FAST).fit(array[:, None], y)
    mixed = X.astype(object)
    mixed[4, 2] = TIMES[0]
    with pytest.raises(TypeError, match=r"row 4, column 2 is datetime.datetime\(2020, .*; turn dates and times"):
        KernelSVC(**FAST).fit(mixed, y)


def test_lazy_frame(small):
    X, y = small
    frame = pl.DataFrame(X).lazy()
    with pytest.raises(TypeError, match=r"polars LazyFrame, which holds no values yet; pass X.collect\(\)"):
        KernelSVC(**FAST).fit(frame, y)


def test_other_errors_about_frames_stay(small):
    X, y = small
    numbers, text = frames(X, LETTERS, pd)
    clf = KernelSVC(**FAST).fit(numbers, y)
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(text.rename(columns={"b": "c"}))
    with pytest.raises(ValueError, match="Input y contains NaN"):
        KernelSVC(**FAST).fit(numbers, np.where(y > 0, np.nan, 1.0))


def masked(values, count):
    """The values with the first of them masked."""
    mask = np.zeros(values.size, dtype=bool)
    mask[:count] = True
    return np.ma.MaskedArray(values, mask.reshape(values.shape))


def test_masked_entries_are_an_error(small):
    X, y = small
    weight = np.ones(N)
    clf, features = KernelSVC(**FAST).fit(X, y), NystromFeatures(n_landmarks=5).fit(X)
    fresh, levels = KernelSVC(**FAST), KernelQuantile(**FAST).fit(X, X[:, 0])
    advice = r"fill them, as by {}\.filled\(0\.0\) or an imputer, or drop their rows"
    for name, n_entries, call in (
        ("X", 180, lambda: fresh.fit(masked(X, 2), y)),
        ("X", 180, lambda: clf.predict(masked(X, 2))),
        ("X", 180, lambda: NystromFeatures().fit(masked(X, 2))),
        ("X", 180, lambda: features.transform(masked(X, 2))),
        ("y", 60, lambda: fresh.fit(X, masked(y, 2))),
        ("y", 60, lambda: clf.verify(X, masked(y, 2))),
        ("y", 60, lambda: clf.score(X, masked(y, 2))),
        ("y", 60, lambda: levels.score(X, masked(X[:, 0], 2))),
        ("sample_weight", 60, lambda: fresh.fit(X, y, sample_weight=masked(weight, 2))),
        ("sample_weight", 60, lambda: clf.score(X, y, masked(weight, 2))),
        ("sample_weight", 60, lambda: levels.score(X, X[:, 0], masked(weight, 2))),
    ):
        with pytest.raises(ValueError, match=f"{name} is a masked array with 2 masked of {n_entries} entries"):
            call()
        with pytest.raises(ValueError, match=advice.format(name)):
            call()


def test_masked_arrays_without_masked_entries_pass(small):
    X, y = small
    plain = KernelSVC(**FAST).fit(X, y, sample_weight=np.full(N, 2.0))
    other = KernelSVC(**FAST).fit(masked(X, 0), masked(y, 0), sample_weight=masked(np.full(N, 2.0), 0))
    np.testing.assert_array_equal(other.oof_path_, plain.oof_path_)
    np.testing.assert_array_equal(other.decision_function(masked(X, 0)), plain.decision_function(X))
    assert other.score(masked(X, 0), masked(y, 0)) == plain.score(X, y)


def test_kernel_of_ones_own_that_is_not_finite(small):
    X, y = small

    def hollow(A, B):
        K = A @ B.T
        K[K > 6.0] = np.nan
        return K

    assert np.isnan(hollow(X, X)).any()
    i, j = np.argwhere(np.isnan(hollow(X, X)))[0]
    with pytest.raises(
        ValueError, match=rf"the kernel <.*hollow.*> returned nan for row {i} of .* row {j} of"
    ) as error:
        KernelSVC(**FAST, kernel=hollow).fit(X, y)
    assert "X contains" not in str(error.value)
    near = X / 10
    clf = KernelSVC(**FAST, kernel=hollow).fit(near, y)
    with pytest.raises(ValueError, match=r"the kernel <.*hollow.*> returned nan for row 0 of its first argument"):
        clf.predict(1e3 * clf.support_vectors_[:1])
    large = called(lambda A, B: np.full((60, 60), 1e36, np.float32), X, X)
    assert np.isfinite(large).all()  # though its sum is not, in float32
