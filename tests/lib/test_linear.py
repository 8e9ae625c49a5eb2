"""Linear-model mathematics against closed forms, exact laws, NumPy and simulation."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from lib.linear import (
    append_row,
    confidence_radius,
    directions,
    ellipsoid_norms,
    invert,
    lambda_tilde,
    log_det_bound,
    solve_upper,
    sphere_moments,
    unit_rows,
)


def positive_definite(rng, d, condition=100.0):
    """Return a matrix with eigenvalues spread evenly, in logarithm, over the condition number."""
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (Q * np.geomspace(1 / condition, 1, d)) @ Q.T


def test_unit_rows_keep_directions_and_leave_zero_alone():
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0], [1e-9, 0.0], [-2.0, 0.0]]))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [1, 0], [-1, 0]])
    assert unit_rows(np.zeros((2, 3, 4))).sum() == 0
    assert unit_rows(np.zeros((0, 4))).shape == (0, 4)


@pytest.mark.parametrize("d", [2, 3, 10])
def test_directions_are_uniform_on_the_sphere(d):
    x = directions(np.random.default_rng(d), 40, 100, d)
    assert x.shape == (40, 100, d)
    np.testing.assert_allclose(np.linalg.norm(x, axis=-1), 1)
    z = directions(np.random.default_rng(99), d)
    law = stats.beta(0.5, (d - 1) / 2)  # of (zᵀx)² for any unit vector z
    assert stats.kstest((x @ z).ravel() ** 2, law.cdf).pvalue > 0.01
    np.testing.assert_allclose(sphere_moments(d), law.stats("mv"))


def test_on_a_line_every_squared_projection_is_one():
    assert sphere_moments(1) == (1.0, 0.0)
    assert lambda_tilde(*sphere_moments(1), 20) == 1.0


def test_ellipsoid_norms_are_lengths_after_a_square_root():
    rng = np.random.default_rng(0)
    A = np.stack([positive_definite(rng, 4) for _ in range(3)])
    x = rng.standard_normal((3, 5, 4))
    roots = np.linalg.cholesky(A)
    lengths = np.linalg.norm(np.einsum("rij,rki->rkj", roots, x), axis=-1)
    np.testing.assert_allclose(ellipsoid_norms(A, x), lengths)
    np.testing.assert_allclose(ellipsoid_norms(A, x[:, 0]), lengths[:, 0])
    barely_negative = np.array([[[-1e-18, 0.0], [0.0, 1.0]]])
    assert ellipsoid_norms(barely_negative, np.array([[1.0, 0.0]])) == 0


@pytest.mark.parametrize("lam", [0.1, 1.0, 7.0])
def test_log_det_is_largest_when_arms_take_turns_along_the_axes(lam):
    d, n = 5, 60
    turns = np.eye(d)[np.arange(n) % d]
    drawn = directions(np.random.default_rng(1), n, d)
    for arms, exact in ((turns, True), (drawn, False)):
        logdet = np.linalg.slogdet(np.eye(d) + arms.T @ arms / lam)[1]
        assert logdet <= log_det_bound(n, d, lam) * (1 + 1e-12)
        assert math.isclose(logdet, log_det_bound(n, d, lam), rel_tol=1e-12) == exact


def test_the_potential_stays_below_twice_the_log_det():
    rng, d, lam = np.random.default_rng(2), 4, 0.5
    inverse, total = np.eye(d) / lam, 0.0
    for n, x in enumerate(directions(rng, 500, d), start=1):
        total += min(1.0, x @ inverse @ x)
        inverse = np.linalg.inv(np.linalg.inv(inverse) + np.outer(x, x))
        assert total <= 2 * log_det_bound(n, d, lam)


def test_the_radius_covers_in_all_rounds_at_once():
    rng, runs, rounds, d, lam, sigma, delta = np.random.default_rng(3), 400, 100, 3, 0.5, 0.3, 0.1
    assert confidence_radius(0, d, delta, lam, sigma) == pytest.approx(
        math.sqrt(lam) + sigma * math.sqrt(2 * math.log(1 / delta))
    )
    theta = directions(rng, runs, d)
    X = directions(rng, runs, rounds, d)
    y = np.einsum("rtd,rd->rt", X, theta) + sigma * rng.standard_normal((runs, rounds))
    missed = np.zeros(runs, dtype=bool)
    for n in range(1, rounds + 1):
        M = lam * np.eye(d) + np.einsum("rtd,rte->rde", X[:, :n], X[:, :n])
        b = np.einsum("rtd,rt->rd", X[:, :n], y[:, :n])
        error = np.linalg.solve(M, b[..., None])[..., 0] - theta
        missed |= ellipsoid_norms(M, error) > confidence_radius(n, d, delta, lam, sigma)
    assert missed.mean() <= delta
    radii = confidence_radius(np.arange(10), d, delta)
    assert (np.diff(radii) > 0).all()


def by_expansion(lam, variance, K):
    """Expand the power and integrate every term: ∫₀^λ exp(−k y²/2σ²) dy is an error function."""
    total = lam
    for k in range(1, K + 1):
        a = math.sqrt(k / (2 * variance))
        term = math.sqrt(math.pi) / (2 * a) * special.erf(a * lam)
        total += (-1) ** k * math.comb(K, k) * term
    return total


@pytest.mark.parametrize("K", [1, 2, 3, 8])
@pytest.mark.parametrize(("lam", "variance"), [(0.1, 0.01), (0.5, 0.02), (0.5, 2.0), (1.0, 1e-6)])
def test_lambda_tilde_is_its_binomial_expansion(lam, variance, K):
    expanded = by_expansion(lam, variance, K)
    assert lambda_tilde(lam, variance, K) == pytest.approx(expanded, rel=1e-6, abs=1e-13)


@pytest.mark.parametrize(("d", "K"), [(2, 2), (5, 5), (20, 20), (50, 20)])
def test_no_choice_of_arms_on_a_sphere_reveals_less_than_lambda_tilde(d, K):
    law = stats.beta(0.5, (d - 1) / 2)
    least = integrate.quad(lambda s: 2 * s * law.sf(s**2) ** K, 0, 1)[0]  # E min over K arms
    assert 0 < lambda_tilde(*sphere_moments(d), K) <= least
    assert lambda_tilde(*sphere_moments(d), K + 1) < lambda_tilde(*sphere_moments(d), K)


@pytest.mark.parametrize("d", [1, 2, 7, 30])
def test_gauss_jordan_inverts_in_place(d):
    A = positive_definite(np.random.default_rng(d), d)
    stack = np.stack([A, A])
    invert(stack[1])
    np.testing.assert_allclose(stack[1], np.linalg.inv(A), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(stack[0], A)
    slow = A.copy()
    invert.py_func(slow)
    np.testing.assert_allclose(slow, stack[1], rtol=1e-12, atol=1e-12)


def test_gauss_jordan_needs_no_pivots_even_for_badly_scaled_matrices():
    rng = np.random.default_rng(4)
    A = positive_definite(rng, 12, condition=1e8)
    inverse = A.copy()
    invert(inverse)
    residual = np.abs(inverse @ A - np.eye(12)).max()
    assert residual < 1e-6  # about the condition number times the rounding of a double
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-6)


def test_appended_rows_keep_matrix_and_right_hand_side_of_the_regression():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 5)), rng.normal(size=40)
    R, z = 0.5 * np.eye(5), np.zeros(5)
    for row, value in zip(X, y, strict=True):
        append_row(R, z, row.copy(), value)
    assert np.allclose(np.tril(R, -1), 0)
    M, b = 0.25 * np.eye(5) + X.T @ X, X.T @ y
    np.testing.assert_allclose(R.T @ R, M)
    np.testing.assert_allclose(R.T @ z, b)
    solve_upper(R, z)
    np.testing.assert_allclose(z, np.linalg.solve(M, b))


def test_a_triangular_system_is_solved_from_the_last_row_up():
    y = np.array([5.0, 6.0])
    solve_upper.py_func(np.array([[1.0, 2.0], [9.0, 3.0]]), y)  # what is below is not read
    np.testing.assert_allclose(y, [1.0, 2.0])
