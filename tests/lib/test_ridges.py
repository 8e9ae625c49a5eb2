"""Regressions of users and groups: each update against ridge regression from scratch."""

import numpy as np
import pytest

from lib import ridges


def with_rounds(k=3, d=4, rounds=30, lam=0.5, seed=0):
    rng, ridge = np.random.default_rng(seed), ridges.no_data(k, d, lam)
    X, r, who = (
        rng.standard_normal((rounds, d)),
        rng.standard_normal(rounds),
        rng.integers(k, size=rounds),
    )
    for i, x, reward in zip(who, X, r, strict=True):
        ridges.observe(ridge, i, x, reward)
    return ridge, X, r, who


def expected(X, r, lam=0.5):
    M = lam * np.eye(X.shape[1]) + X.T @ X
    return np.linalg.inv(M), np.linalg.solve(M, X.T @ r)


def test_every_regression_is_that_of_its_rounds():
    ridge, X, r, who = with_rounds()
    for i in range(3):
        inverse, theta = expected(X[who == i], r[who == i])
        np.testing.assert_allclose(ridge.M_inverse[i], inverse, atol=1e-10)
        np.testing.assert_allclose(ridge.theta[i], theta, atol=1e-10)
        assert ridge.count[i] == (who == i).sum()
        assert ridge.radius[i] == pytest.approx(ridges.f(ridge.count[i]))


def test_sums_are_absorbed_and_given_back():
    ridge, X, r, who = with_rounds()
    before = ridge.theta[0].copy()
    ridges.absorb(ridge, 0, 1, 1.0)
    ridges.refresh(ridge, 0, 0.5)
    inverse, theta = expected(X[who < 2], r[who < 2])
    np.testing.assert_allclose(ridge.M_inverse[0], inverse, atol=1e-10)
    np.testing.assert_allclose(ridge.theta[0], theta, atol=1e-10)
    ridges.absorb(ridge, 0, 1, -1.0)
    ridges.refresh(ridge, 0, 0.5)
    np.testing.assert_allclose(ridge.theta[0], before, atol=1e-10)


def test_without_data_the_radius_is_one_and_falls():
    assert ridges.f(0.0) == 1.0 == ridges.no_data(2, 3, 1.0).radius[0]
    assert ridges.f(10.0) > ridges.f(100.0) > 0


def test_pairs_are_measured_by_hidden_cluster():
    ridge, *_ = with_rounds(k=4)
    label, together = np.array([0, 0, 1, 1]), np.zeros((4, 4), dtype=bool)
    together[0, 2] = together[2, 0] = True
    seen = ridges.pairs(ridge, label, together)
    assert seen["false_split"] == 1 and seen["false_keep"] == pytest.approx(1 / 4)
    within = [ridges.distance(ridge, 0, 1), ridges.distance(ridge, 2, 3)]
    assert seen["same_50"] == pytest.approx(np.median(within))
