import numpy as np
from sklearn.metrics import accuracy_score

from kernelpath.datasets import make_mixture


def test_mixture_is_standardised_and_reproducible():
    X, y = make_mixture(500, 6, random_state=3)
    again, labels = make_mixture(500, 6, random_state=3)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    assert X.shape == (500, 6)
    assert set(y) == {-1, 1}
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)
    assert not np.array_equal(X, make_mixture(500, 6, random_state=4)[0])


def test_classes_differ_in_the_halves_of_the_columns():
    X, y = make_mixture(4000, 10, random_state=0)
    guess = np.sign(X[:, 5:].sum(axis=1) - X[:, :5].sum(axis=1))
    assert 0.8 < accuracy_score(y, guess) < 0.99
