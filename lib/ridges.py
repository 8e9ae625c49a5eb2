"""Ridge regressions of many users and groups in one array, and how far their estimates are apart.

Derived in the chapter on clustering of bandits: regression i is user i, regression u + V group V.
Sums of members are added and subtracted; the inverse is then computed afresh, so errors do not pile
up. The compiled functions call `lib.kernels`, so they are compiled with the program that runs them.
"""

from typing import NamedTuple

import numpy as np

from lib.graphs import share
from lib.kernels import add_outer, add_scaled, jit, multiply, rank_one_inverse
from lib.linear import invert


class Ridges(NamedTuple):
    """The regressions of users and groups; the radius is f(T), see `f`."""

    M: np.ndarray  # (k, d, d) sums of x xᵀ, without the λI
    M_inverse: np.ndarray  # (k, d, d) inverses of λI + M
    b: np.ndarray  # (k, d) sums of r x
    theta: np.ndarray  # (k, d) ridge estimates
    count: np.ndarray  # (k,) rounds T
    radius: np.ndarray  # (k,) f(T)


def no_data(k: int, d: int, lam: float) -> Ridges:
    """Return k regressions that have seen no round."""
    M_inverse = np.tile(np.eye(d) / lam, (k, 1, 1))
    zeros = np.zeros((k, d))
    return Ridges(np.zeros((k, d, d)), M_inverse, zeros, zeros.copy(), np.zeros(k), np.ones(k))


@jit
def f(count):
    """Return √((1 + ln(1 + T))/(1 + T)), the rate at which estimates settle."""
    return np.sqrt((1.0 + np.log(1.0 + count)) / (1.0 + count))


@jit
def observe(ridge, k, x, reward):
    """Add one round to regression k."""
    add_outer(ridge.M[k], x, 1.0)
    rank_one_inverse(ridge.M_inverse[k], x, 1.0)
    add_scaled(ridge.b[k], x, reward)
    multiply(ridge.M_inverse[k], ridge.b[k], ridge.theta[k])
    ridge.count[k] += 1
    ridge.radius[k] = f(ridge.count[k])


@jit
def absorb(ridge, k, i, sign):
    """Add the sums of regression i to those of k, or subtract them; `refresh` has to follow."""
    for row in range(ridge.M.shape[1]):
        add_scaled(ridge.M[k, row], ridge.M[i, row], sign)
    add_scaled(ridge.b[k], ridge.b[i], sign)
    ridge.count[k] += sign * ridge.count[i]


@jit
def refresh(ridge, k, lam):
    """Recompute inverse, estimate and radius of regression k from its sums."""
    A = ridge.M_inverse[k]
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            A[i, j] = ridge.M[k, i, j]
        A[i, i] += lam
    invert(A)
    multiply(A, ridge.b[k], ridge.theta[k])
    ridge.radius[k] = f(ridge.count[k])


@jit
def distance(ridge, i, j):
    """Return how far two estimates are apart."""
    total = 0.0
    for a in range(ridge.theta.shape[1]):
        total += (ridge.theta[i, a] - ridge.theta[j, a]) ** 2
    return np.sqrt(total)


def pairs(ridge: Ridges, label: np.ndarray, together: np.ndarray) -> dict[str, float]:
    """Return how far pairs of users are apart, by hidden cluster, and the share judged wrongly.

    `together` says which two users are taken to be alike.
    """
    u = len(label)
    theta, radius, upper = ridge.theta[:u], ridge.radius[:u], np.triu_indices(u, 1)
    square = (theta**2).sum(axis=1)
    apart = np.sqrt(np.maximum(square[:, None] + square - 2 * theta @ theta.T, 0))[upper]
    same, joined = (label[:, None] == label)[upper], together[upper]
    found = {"radius": np.median((radius[:, None] + radius)[upper])}
    for name, chosen in (("same", same), ("other", ~same)):
        for q in (5, 50, 95):
            found[f"{name}_{q}"] = np.quantile(apart[chosen], q / 100) if chosen.any() else np.nan
    return {**found, "false_split": share(~joined[same]), "false_keep": share(joined[~same])}
