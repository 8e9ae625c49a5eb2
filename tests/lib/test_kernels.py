"""The kernels against dense linear algebra, and the drift of an inverse over a million updates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import kernels


def instance(seed, d, n=8, lam=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, lam * np.eye(d) + X.T @ X, rng


@given(seed=st.integers(0, 10_000), d=st.integers(1, 24))
@settings(max_examples=40, deadline=None)
def test_products_match_dense_algebra(seed, d):
    X, A, rng = instance(seed, d)
    y, forms = np.empty(d), np.empty(len(X))
    kernels.multiply(A, X[0], y)
    kernels.quadratic_forms(A, X, forms)
    np.testing.assert_allclose(y, A @ X[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(forms, np.einsum("ki,ij,kj->k", X, A, X), rtol=1e-11)
    assert kernels.quadratic_form(A, X[1]) == pytest.approx(X[1] @ A @ X[1])
    assert kernels.dot(X[0], X[1]) == pytest.approx(X[0] @ X[1], abs=1e-12)
    rows = rng.integers(0, len(X), 5)
    np.testing.assert_array_equal(kernels.take_rows(X, rows), X[rows])
    total, vector = A.copy(), X[2].copy()
    kernels.add_outer(total, X[3], 0.25)
    kernels.add_scaled(vector, X[4], -2.0)
    np.testing.assert_allclose(total, A + 0.25 * np.outer(X[3], X[3]), rtol=1e-12)
    np.testing.assert_allclose(vector, X[2] - 2 * X[4], rtol=1e-12)


@given(seed=st.integers(0, 10_000), d=st.integers(1, 24), weight=st.floats(1e-6, 10))
@settings(max_examples=40, deadline=None)
def test_rank_one_inverse_is_the_inverse_of_the_sum(seed, d, weight):
    _, A, rng = instance(seed, d)
    x = rng.standard_normal(d)
    inverse = np.linalg.inv(A)
    inverse = (inverse + inverse.T) / 2
    norm = kernels.rank_one_inverse(inverse, x, weight)
    assert norm == pytest.approx(x @ np.linalg.solve(A, x))
    np.testing.assert_allclose(inverse @ (A + weight * np.outer(x, x)), np.eye(d), atol=1e-9)
    np.testing.assert_array_equal(inverse, inverse.T)


@pytest.mark.parametrize(
    ("lam", "scale", "narrow", "tolerance"),
    [
        (1.0, 1.0, 1.0, 1e-10),  # the case of every chapter: λ = 1, bounded features
        (1e-3, 1.0, 1e-3, 1e-10),  # nearly collinear features
        (1e-6, 1e3, 1e-4, 1e-6),  # the worst we could construct: condition number 1e8
    ],
)
def test_inverse_does_not_drift_over_a_million_updates(lam, scale, narrow, tolerance):
    d = 12
    rng = np.random.default_rng(5)
    X = scale * rng.standard_normal((1000, d)) * np.r_[np.ones(4), np.full(d - 4, narrow)]
    A, inverse = lam * np.eye(d), np.eye(d) / lam
    for _ in range(1000):
        _update_all(inverse, X)
    A += 1000 * X.T @ X
    exact = np.linalg.inv(A)
    widths = np.einsum("ki,ij,kj->k", X, inverse, X)
    np.testing.assert_allclose(widths, np.einsum("ki,ij,kj->k", X, exact, X), rtol=tolerance)
    assert np.abs(inverse - exact).max() <= tolerance * np.abs(exact).max()


@kernels.jit
def _update_all(inverse, X):
    for k in range(X.shape[0]):
        kernels.rank_one_inverse(inverse, X[k], 1.0)


@kernels.jit
def _halved(x):
    return x / 2.0 if x < 2.0 else _halved(x / 2.0)


@kernels.jit
def _halved_twice(x):
    return _halved(_halved(x))


def test_a_function_can_be_called_by_compiled_code_and_then_by_python():
    assert _halved_twice(4.0) == 0.25
    assert not _halved.overloads
    assert [len(each.inside.overloads) for each in (_halved, _halved_twice)] == [1, 0]
    assert _halved(4.0) == 0.5
    assert _halved_twice(4.0) == 0.25


@kernels.jit
def _refused(x):
    if x < 0.0:
        raise ValueError("negative", x)
    return x


@kernels.jit
def _refused_inside(x):
    return _refused(x) + 1.0


def test_an_error_inside_compiled_code_keeps_its_words_and_numbers():
    assert _refused_inside(1.0) == 2.0
    with pytest.raises(ValueError) as error:
        _refused_inside(-1.5)
    assert error.value.args == ("negative", -1.5)


def test_a_function_called_inside_has_no_machine_code_of_its_own():
    assert _refused_inside(1.0) == 2.0
    (compiled,) = _refused.inside.overloads.values()
    assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) == 0
    engine = compiled.library.codegen._engine
    assert not engine.is_symbol_defined(compiled.fndesc.llvm_func_name)


def test_ties_go_to_the_lowest_index_even_when_rounding_disagrees():
    assert kernels.first_argmax(np.array([0.1, 0.7, 0.7 + 1e-13, 0.2])) == 1
    assert kernels.first_argmax(np.array([-3.0, -1.0, -1.0])) == 1
    assert kernels.first_argmax(np.array([0.7, 0.7 + 1e-6])) == 1
    assert kernels.first_argmax(np.array([2.0])) == 0


def test_ucb_argmax_maximises_the_upper_confidence_bound():
    for seed in range(20):
        X, A, rng = instance(seed, 5, n=7)
        theta, inverse = rng.standard_normal(5), np.linalg.inv(A)
        scores = X @ theta + 0.8 * np.sqrt(np.einsum("ki,ij,kj->k", X, inverse, X))
        assert kernels.ucb_argmax(theta, inverse, X, 0.8) == np.argmax(scores)


def test_random_subset_is_uniform_over_items_and_without_repeats():
    rng = np.random.default_rng(0)
    order, counts = np.arange(6), np.zeros(6)
    for _ in range(6000):
        subset = kernels.random_subset(rng, order, 2)
        assert subset[0] != subset[1]
        counts[subset] += 1
    assert sorted(order) == list(range(6))
    # each item is in a third of 6000 subsets, standard deviation 36.5
    assert np.abs(counts - 2000).max() < 4.5 * 36.5
