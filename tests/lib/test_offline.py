"""Learning from logs: counts against loops, plans against exact planning and the truth."""

import numpy as np
import pytest

from lib import mdp
from lib.offline import count_transitions, frequencies, pessimistic_plan


def random_model(rng, *leading, H=4, S=3, A=2):
    P = rng.dirichlet(np.full(S, 0.5), size=(*leading, H, S, A))
    return P, rng.random((*leading, H, S, A)) / H


def logs(rng, n=2, K=7, H=4, S=3, A=2):
    return rng.integers(S, size=(n, K, H + 1)), rng.integers(A, size=(n, K, H))


def test_counts_are_those_of_a_loop_over_all_steps():
    states, actions = logs(np.random.default_rng(0))
    expected = np.zeros((2, 4, 3, 2, 3))
    for i, k, h in np.ndindex(actions.shape):
        expected[i, h, states[i, k, h], actions[i, k, h], states[i, k, h + 1]] += 1
    by_step = count_transitions(states, actions, 3, 2, by_step=True)
    np.testing.assert_array_equal(by_step, expected)
    np.testing.assert_array_equal(count_transitions(states, actions, 3, 2), expected.sum(axis=1))
    alone = count_transitions(states[1], actions[1], 3, 2)
    np.testing.assert_array_equal(alone, expected[1].sum(axis=0))


def test_frequencies_of_many_episodes_are_the_policy_that_played():
    rng = np.random.default_rng(1)
    P, _ = random_model(rng)
    pi = rng.dirichlet(np.ones(2), size=(4, 3))
    episodes = mdp.sample_episodes(rng, P, pi, K=40_000)
    counts = count_transitions(*episodes, 3, 2, by_step=True)
    cloned = frequencies(counts.sum(axis=-1))
    visited = counts.sum(axis=(-2, -1)) > 2_000
    assert visited.sum() >= 4
    np.testing.assert_allclose(cloned[visited], pi[visited], atol=0.04)
    np.testing.assert_allclose(frequencies(counts)[0, 0], P[0, 0], atol=0.02)
    assert (cloned[0, 1:] == 0.5).all()  # every episode begins in state 0
    np.testing.assert_allclose(cloned.sum(axis=-1), 1)


def test_without_penalty_it_is_backward_induction():
    P, r = random_model(np.random.default_rng(2), 5)
    exact, plan = mdp.backward_induction(P, r), pessimistic_plan(P, r, np.zeros(r.shape), np.inf)
    np.testing.assert_allclose(plan.V, exact.V)
    np.testing.assert_array_equal(plan.policy, exact.policy)


@pytest.mark.parametrize("seed", range(5))
def test_pessimism_never_promises_more_than_the_policy_earns(seed):
    rng = np.random.default_rng(seed)
    P, r = random_model(rng, 3)
    penalty = rng.exponential(0.1, r.shape)
    plan = pessimistic_plan(P, r, penalty, 1.0)
    earned = mdp.evaluate(P, r, mdp.as_policy(plan.policy, 2))
    assert (plan.V[:, :-1] <= earned[:, : plan.V.shape[1] - 1] + 1e-12).all()
    assert (plan.V >= 0).all()


def test_caps_hold_step_by_step_and_what_was_never_seen_is_worth_nothing():
    P, r = random_model(np.random.default_rng(3), H=3)
    cap = np.array([0.3, 0.2, 0.1])
    plan = pessimistic_plan(P, r + 1.0, np.zeros(r.shape), cap)
    np.testing.assert_allclose(plan.V[:3], np.tile(cap[:, None], 3))
    assert (plan.policy == 0).all()  # all actions are worth the cap: the lowest is taken
    unseen = np.zeros(r.shape)
    unseen[..., 0] = np.inf
    assert (pessimistic_plan(P, r, unseen, 1.0).policy == 1).all()
    nothing = pessimistic_plan(P, r, np.full(r.shape, np.inf), 1.0)
    assert (nothing.V == 0).all()
