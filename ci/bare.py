"""Bare kernels: of every kind of round the arithmetic of its formulas and nothing else.

Each is a policy that plays in the same environment as the algorithm it stands beside, so both see
the same users, arms and noise. What an algorithm has to find out, its bare kernel is told: which
users belong together, when to look. Scratch is allocated once, and nothing is kept for later looks.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lib.kernels import BLAS_FROM, add_scaled, dot, first_argmax, jit, multiply
from lib.linear import append_row, solve_upper
from lib.simulate import Policy


class Talker(NamedTuple):
    """A policy of the chapter on conversations: it also asks and hears."""

    init: Callable
    ask: Callable
    hear: Callable
    choose: Callable
    learn: Callable
    parameters: dict = {}  # noqa: RUF012


class Bare(NamedTuple):
    """Regressions whose users are known, and scratch."""

    group: np.ndarray  # (u,) which regression serves each user
    inverse: np.ndarray  # (g, d, d)
    theta: np.ndarray  # (g, d)
    own: np.ndarray  # (u, d, d) inverses of the users alone, (0, d, d) where nobody needs them
    alone: np.ndarray  # (u, d) their estimates
    members: np.ndarray  # (u, s) whom a user is compared with
    rough: np.ndarray  # (n, d) the pool in single precision, (0, d) without a bonus
    seen: np.ndarray  # (g, n) rounds with each item
    forms: np.ndarray  # (K, d) scratch
    scores: np.ndarray  # (K,) scratch
    bonus: np.ndarray  # (K,) scratch
    apart_from: np.ndarray  # (K, d) scratch
    pool: np.ndarray  # (n, d) the items
    apart: np.ndarray  # (u,) how many of the members are far
    beta: float
    eps: float
    rng: np.random.Generator


def init_bare(
    problem, T, rng, lam=1.0, beta=1.0, eps=0.0, sharing="all", users=False, compared=False
):
    u, d = problem.theta.shape
    group = {
        "all": np.zeros(u, dtype=np.int64),
        "none": np.arange(u),
        "clusters": getattr(problem, "label", np.zeros(u, dtype=np.int64)),
    }[sharing]
    g, arms = int(group.max()) + 1, _offered(problem)
    members = np.zeros((u, 0), dtype=np.int64)
    if compared:
        size = np.bincount(group).min()
        members = np.array([np.flatnonzero(group == k)[:size] for k in range(g)])[group]
    pool = problem.pool[: len(problem.pool) * (eps > 0)]
    return Bare(
        group,
        np.tile(np.eye(d) / lam, (g, 1, 1)),
        np.zeros((g, d)),
        np.tile(np.eye(d) / lam, (u * users, 1, 1)),
        np.zeros((u * users, d)),
        members,
        pool.astype(np.float32),
        np.zeros((g, len(pool)), np.float32),
        np.empty((arms, d)),
        np.empty(arms),
        np.zeros(arms, np.float32),
        np.zeros((arms, d)),
        problem.pool,
        np.zeros(u, dtype=np.int64),
        float(beta),
        float(eps),
        rng,
    )


def _offered(problem) -> int:
    return int(getattr(problem, "offered", 0) or getattr(problem, "arms", 0) or problem.means.size)


@jit
def take_in(inverse, theta, x, reward):
    """Take one round into a regression; its estimate moves by the error of its prediction."""
    v = np.empty(x.size)
    multiply(inverse, x, v)
    scale = 1.0 / (1.0 + dot(x, v))
    missed = reward - dot(x, theta)
    for i in range(x.size):
        add_scaled(inverse[i], v, -scale * v[i])
    add_scaled(theta, v, scale * missed)


@jit
def index(state, user, arms):
    """Write xᵀθ + β√(xᵀM⁻¹x) of every arm into the scratch for scores."""
    g, forms, scores = state.group[user], state.forms, state.scores
    if arms.shape[1] < BLAS_FROM:
        for k in range(scores.size):
            multiply(state.inverse[g], arms[k], forms[k])
    else:
        np.dot(arms, state.inverse[g], forms)
    for k in range(scores.size):
        form = max(dot(forms[k], arms[k]), 0.0)
        scores[k] = dot(arms[k], state.theta[g]) + state.beta * np.sqrt(form)
    return scores


@jit
def choose_ridge(state, t, user, arms, items):
    return first_argmax(index(state, user, arms))


@jit
def learn_ridge(state, t, user, x, reward, item):
    g = state.group[user]
    take_in(state.inverse[g], state.theta[g], x, reward)


RIDGE = Policy(init_bare, choose_ridge, learn_ridge)


@jit
def choose_first(state, t, user, arms, items):
    return 0


@jit
def learn_nothing(state, t, user, x, reward, item):
    pass


IDLE = Policy(init_bare, choose_first, learn_nothing)


@jit
def choose_sample(state, t, user, arms, items):
    """Draw d normal numbers, solve a triangular system, look at every arm."""
    g, sample = state.group[user], state.forms[0]
    for i in range(sample.size):
        sample[i] = state.theta[g, i] + state.beta * state.rng.standard_normal()
    solve_upper(state.inverse[g], sample)
    multiply(arms, sample, state.scores)
    return first_argmax(state.scores)


@jit
def learn_sample(state, t, user, x, reward, item):
    g, row = state.group[user], state.forms[0]
    row[:] = x
    append_row(state.inverse[g], state.theta[g], row, reward)


SAMPLE = Policy(init_bare, choose_sample, learn_sample, None, {"beta": 0.3})


@jit
def compare(state, user):
    """Look how far the estimate of a user is from those of the users it may be compared with."""
    far = 0
    for j in state.members[user]:
        total = 0.0
        for i in range(state.alone.shape[1]):
            total += (state.alone[user, i] - state.alone[j, i]) ** 2
        far += total > 4.0
    state.apart[user] = far


@jit
def learn_group(state, t, user, x, reward, item):
    learn_ridge(state, t, user, x, reward, item)
    take_in(state.own[user], state.alone[user], x, reward)
    compare(state, user)


GROUPS = Policy(init_bare, choose_ridge, learn_group, None, {"sharing": "clusters", "users": True})


@jit
def choose_robust(state, t, user, arms, items):
    """Add ε Σ n|xᵀM⁻¹x_a| in single precision, for the items that were ever offered."""
    scores, count = index(state, user, arms), state.seen[state.group[user]]
    Z = np.dot(state.rough, state.forms.astype(np.float32).T)
    for a in range(count.size):
        for k in range(scores.size):
            state.bonus[k] += count[a] * abs(Z[a, k])
    for k in range(scores.size):
        scores[k] += state.eps * state.bonus[k]
        state.bonus[k] = np.float32(0.0)
    return first_argmax(scores)


@jit
def learn_robust(state, t, user, x, reward, item):
    learn_ridge(state, t, user, x, reward, item)
    state.seen[state.group[user], item] += np.float32(1.0)


@jit
def learn_robust_group(state, t, user, x, reward, item):
    learn_robust(state, t, user, x, reward, item)
    take_in(state.own[user], state.alone[user], x, reward)
    compare(state, user)


ROBUST = Policy(init_bare, choose_robust, learn_robust)
ROBUST_GROUPS = Policy(
    init_bare, choose_robust, learn_robust_group, None, {"sharing": "clusters", "users": True}
)


@jit
def ask_first(state, t, j, user, arms, terms):
    return 0, terms[0]


@jit
def hear_row(state, t, user, x, answer):
    g = state.group[user]
    take_in(state.inverse[g], state.theta[g], x, answer)


@jit
def choose_lazily(state, t, user, arms, items):
    """Look at every estimate, but at one norm: older norms are upper bounds."""
    g, scores = state.group[user], state.scores
    multiply(arms, state.theta[g], scores)
    k = first_argmax(scores)
    multiply(state.inverse[g], arms[k], state.forms[0])
    scores[k] += state.beta * np.sqrt(max(dot(state.forms[0], arms[k]), 0.0))
    return k


LAZY_TALKER = Talker(
    init_bare, ask_first, hear_row, choose_lazily, hear_row, {"sharing": "none", "beta": 0.1}
)


@jit
def hear_nothing(state, t, user, x, answer):
    pass


IDLE_TALKER = Talker(init_bare, ask_first, hear_nothing, choose_first, hear_nothing)


@jit
def choose_pair(state, t, user, arms, items):
    """Take the best arm and the arm with the largest index against it."""
    g, scores, forms = state.group[user], state.scores, state.forms
    multiply(arms, state.theta[g], scores)
    i = first_argmax(scores)
    for k in range(scores.size):
        for a in range(arms.shape[1]):
            state.apart_from[k, a] = arms[k, a] - arms[i, a]
    np.dot(state.apart_from, state.inverse[g], forms)
    for k in range(scores.size):
        scores[k] += state.beta * np.sqrt(max(dot(forms[k], state.apart_from[k]), 0.0))
    return i, first_argmax(scores)


@jit
def learn_pair(state, t, user, i, j, y):
    """Take one duel into a user's logistic regression and its cluster's: a step of Newton each."""
    x, g = state.apart_from[0], state.group[user]
    for a in range(x.size):
        x[a] = state.pool[i, a] - state.pool[j, a]
    take_in(state.inverse[g], state.theta[g], x, y - 0.5)
    take_in(state.own[user], state.alone[user], x, y - 0.5)


@jit
def choose_two(state, t, user, arms, items):
    return 0, 1


@jit
def learn_no_pair(state, t, user, i, j, y):
    pass


PAIR = Policy(init_bare, choose_pair, learn_pair, None, {"sharing": "clusters", "users": True})
IDLE_PAIR = Policy(init_bare, choose_two, learn_no_pair)
