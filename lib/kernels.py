"""Linear-bandit kernels: rank-one inverse updates, quadratic forms, ridge estimates.

Derived in the chapter on linear bandits. Every function here calls only functions of this file, so
numba's on-disk cache, which watches one file, can never serve stale machine code.

How drift is controlled: the Sherman–Morrison update writes each entry and its mirror from one
number, so the inverse stays exactly symmetric, and it multiplies the error already there by
I − A'⁻¹xxᵀ, which contracts. Rounding therefore adds up at most linearly: after a million updates
the inverse agrees with a fresh factorisation to about 1e-12, and to 1e-8 in the worst case we could
construct (condition number 1e8, λ = 1e-6, features of norm 1e3); the tests hold it to that.
"""

import numba
import numpy as np

from lib.machinecode import Inside, sealed, two_doors

# Reassociation lets reductions use vector instructions; NaN and infinity keep their meaning.
_FASTMATH = {"reassoc", "contract", "nsz"}

_OPTIONS = {"nogil": True, "fastmath": _FASTMATH, "error_model": "numpy"}


def jit(function):
    """Compile a function of a page; its machine code is kept with the program that runs it."""
    inside = numba.njit(
        no_cpython_wrapper=True, no_cfunc_wrapper=True, pipeline_class=Inside, **_OPTIONS
    )(function)
    return two_doors(numba.njit(**_OPTIONS)(function), inside)


def compile_whole(function):
    """Compile a function whose file holds everything it calls: its cached copy is never stale.

    A notebook is no such file: numba would know a cell's function by its own text, whatever the
    functions that it calls have become, so nothing of it is kept on disk.
    """
    if function.__module__ == "__main__":
        return jit(function)
    return sealed(numba.njit(cache=True, **_OPTIONS)(function))


BLAS_FROM = 16  # below this dimension a BLAS call costs more than the plain loops
TIE = 1e-10  # scores closer than this (relative) count as equal


@compile_whole
def dot(x, y):
    """Return the inner product of two vectors."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@compile_whole
def multiply(A, x, out):
    """Write A x into `out`."""
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(x.size):
            total += A[i, j] * x[j]
        out[i] = total


@compile_whole
def add_scaled(y, x, weight):
    """Add weight · x to y in place."""
    for i in range(x.size):
        y[i] += weight * x[i]


@compile_whole
def take_rows(A, rows):
    """Return the given rows of A as a new matrix."""
    taken = np.empty((rows.size, A.shape[1]))
    for k in range(rows.size):
        for j in range(A.shape[1]):
            taken[k, j] = A[rows[k], j]
    return taken


@compile_whole
def add_outer(A, x, weight):
    """Add weight · x xᵀ to A in place."""
    for i in range(x.size):
        scaled = weight * x[i]
        for j in range(x.size):
            A[i, j] += scaled * x[j]


@compile_whole
def quadratic_form(A, x):
    """Return xᵀ A x for a symmetric A."""
    total = 0.0
    for i in range(x.size):
        row = 0.0
        for j in range(x.size):
            row += A[i, j] * x[j]
        total += row * x[i]
    return total


@compile_whole
def quadratic_forms(A, X, out):
    """Write x_kᵀ A x_k for every row x_k of X into `out`."""
    if X.shape[1] < BLAS_FROM:
        for k in range(X.shape[0]):
            out[k] = quadratic_form(A, X[k])
    else:
        Y = np.dot(X, A)
        for k in range(X.shape[0]):
            out[k] = dot(Y[k], X[k])


@compile_whole
def rank_one_inverse(A_inverse, x, weight):
    """Turn A⁻¹ into (A + weight · x xᵀ)⁻¹ in place and return xᵀ A⁻¹ x before the update."""
    d = x.size
    v = np.empty(d)
    multiply(A_inverse, x, v)
    norm = dot(x, v)
    scale = weight / (1.0 + weight * norm)
    for i in range(d):
        scaled = scale * v[i]
        for j in range(i + 1):
            A_inverse[i, j] -= scaled * v[j]
    for i in range(d):  # apart, so that the loop above runs on whole vectors
        for j in range(i):
            A_inverse[j, i] = A_inverse[i, j]
    return norm


@compile_whole
def first_argmax(scores):
    """Return the lowest index whose score is the largest up to rounding.

    Unit-norm arms tie exactly in round one; without a tolerance, rounding would pick the winner and
    fork the trajectories of two correct implementations.
    """
    best = scores[0]
    for k in range(1, scores.size):
        best = max(best, scores[k])
    threshold = best - TIE * max(1.0, abs(best))
    for k in range(scores.size):
        if scores[k] >= threshold:
            return k
    return 0


@compile_whole
def ucb_argmax(theta, A_inverse, X, beta):
    """Return the first arm that maximises xᵀθ + β · sqrt(xᵀ A⁻¹ x)."""
    scores = np.empty(X.shape[0])
    quadratic_forms(A_inverse, X, scores)
    for k in range(X.shape[0]):
        scores[k] = dot(X[k], theta) + beta * np.sqrt(max(scores[k], 0.0))
    return first_argmax(scores)


@compile_whole
def random_index(rng, n):
    """Draw one of 0, …, n − 1, each with probability 1/n up to n/2⁵³."""
    return int(rng.random() * n)


@compile_whole
def random_subset(rng, order, size):
    """Draw `size` different items by the first steps of a Fisher–Yates shuffle of `order`."""
    for k in range(size):
        j = k + random_index(rng, order.size - k)
        item = order[j]
        order[j] = order[k]
        order[k] = item
    return order[:size]


@compile_whole
def random_normal(rng):
    """Draw from the standard normal law."""
    return rng.standard_normal()
