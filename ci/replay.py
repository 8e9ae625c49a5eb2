"""Problems whose arms, contexts and noise are drawn beforehand, so that any library can play them.

Two are needed, since libraries differ in what they call a linear bandit. In the first an arm *is* a
feature vector and one vector of tastes serves all, as in this book. In the second a round has one
context and every arm a vector of its own (*disjoint*), which is what most libraries implement.
"""

from typing import NamedTuple

import numpy as np

from lib.kernels import (
    add_scaled,
    dot,
    first_argmax,
    jit,
    multiply,
    quadratic_form,
    rank_one_inverse,
    take_rows,
)
from lib.linear import directions
from lib.simulate import Environment, Policy


class Offers(NamedTuple):
    """Arms with features: `offered` are the items of every round."""

    theta: np.ndarray  # (1, d)
    pool: np.ndarray  # (n, d)
    offered: np.ndarray  # (T, K)
    noise: np.ndarray  # (T,)


def make_offers(rng, T, d, arms, items, noise):
    offered = np.argpartition(rng.random((T, items)), arms, axis=1)[:, :arms]
    return Offers(
        directions(rng, 1, d),
        directions(rng, items, d),
        np.ascontiguousarray(offered),
        noise * rng.standard_normal(T),
    )


@jit
def draw_offer(problem, t, rng):
    items = problem.offered[t - 1]
    return 0, items, take_rows(problem.pool, items)


@jit
def expected(problem, t, user, items, arms):
    means = np.empty(items.size)
    multiply(arms, problem.theta[0], means)
    return means


@jit
def feedback(problem, t, user, item, mean, rng):
    return mean + problem.noise[t - 1]


OFFERS = Environment(make_offers, draw_offer, expected, feedback)


class Contexts(NamedTuple):
    """A context a round, and a vector of tastes for every arm."""

    theta: np.ndarray  # (K, d)
    context: np.ndarray  # (T, d)
    arms: np.ndarray  # (K,) 0, 1, …
    noise: np.ndarray  # (T,)


def make_contexts(rng, T, d, arms, noise):
    theta, context = directions(rng, arms, d), directions(rng, T, d)
    return Contexts(theta, context, np.arange(arms), noise * rng.standard_normal(T))


@jit
def draw_context(problem, t, rng):
    return 0, problem.arms, problem.context[t - 1 : t]


@jit
def expected_of_arms(problem, t, user, items, arms):
    means = np.empty(items.size)
    multiply(problem.theta, arms[0], means)
    return means


def rounds(problem, state, start, stop, rng, total):
    """Play rounds start, …, stop − 1; all arms have the context for their features."""
    for t in range(start, stop):
        user, items, context = draw(problem, t, rng)  # noqa: F821
        means = expected(problem, t, user, items, context)
        k = choose(state, t, user, context, items)  # noqa: F821
        reward = feedback(problem, t, user, items[k], means[k], rng)
        total[0] += means.max() - means[k]
        total[1] += reward
        learn(state, t, user, context[0], reward, items[k])  # noqa: F821


CONTEXTS = Environment(make_contexts, draw_context, expected_of_arms, feedback, rounds)


class Disjoint(NamedTuple):
    """A regression for every arm."""

    M_inverse: np.ndarray  # (K, d, d)
    b: np.ndarray  # (K, d)
    theta: np.ndarray  # (K, d)
    beta: float


def init_disjoint(problem, T, rng, lam=1.0, beta=1.0):
    K, d = problem.theta.shape
    inverse = np.tile(np.eye(d) / lam, (K, 1, 1))
    return Disjoint(inverse, np.zeros((K, d)), np.zeros((K, d)), float(beta))


@jit
def choose_disjoint(state, t, user, context, items):
    scores, x = np.empty(items.size), context[0]
    for k in range(items.size):
        form = max(quadratic_form(state.M_inverse[k], x), 0.0)
        scores[k] = dot(state.theta[k], x) + state.beta * np.sqrt(form)
    return first_argmax(scores)


@jit
def learn_disjoint(state, t, user, x, reward, item):
    rank_one_inverse(state.M_inverse[item], x, 1.0)
    add_scaled(state.b[item], x, reward)
    multiply(state.M_inverse[item], state.b[item], state.theta[item])


DISJOINT = Policy(init_disjoint, choose_disjoint, learn_disjoint)
