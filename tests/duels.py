"""Duels for tests: one, and fast and literal algorithms that must choose the same pairs."""

import numpy as np

from lib import chapters

DUELING = chapters.load("dueling")


def duel(problem, rng, t, choose):
    """Play one duel; return user, items and outcome."""
    user, items, arms = DUELING.BANDITS.draw(problem, t, rng)
    items, arms = items.copy(), arms.copy()
    means = DUELING.expected(problem, t, user, items, arms)
    i, j = choose(t, user, arms, items)
    return user, items[i], items[j], DUELING.feedback(problem, means[i] - means[j], rng)


def play(policy, state, literal_policy, literal, problem, T, seed=1):
    """Run fast and literal side by side; every pair must agree."""
    rng = np.random.default_rng(seed)

    def choose(t, user, arms, items):
        pair = tuple(policy.choose(state, t, user, arms, items))
        assert pair == tuple(literal_policy.choose(literal, t, user, arms, items)), f"round {t}"
        return pair

    for t in range(1, T + 1):
        user, i, j, y = duel(problem, rng, t, choose)
        policy.learn(state, t, user, i, j, y)
        literal_policy.learn(literal, t, user, i, j, y)
