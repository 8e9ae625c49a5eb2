"""Exact tabular kernels against naive loops, closed forms, simulation and the simulation lemma."""

import itertools
import tracemalloc

import numpy as np
import pytest

from lib import mdp
from lib.errors import BookError


def random_model(rng, S, A, H, batch=(), sparse=False):
    P = rng.dirichlet(np.full(S, 0.2 if sparse else 1.0), size=(*batch, H, S, A))
    return P, rng.random((*batch, H, S, A)) / H


def naive_plan(P, r):
    H, S, A = r.shape
    V, Q = np.zeros((H + 1, S)), np.zeros((H, S, A))
    for h in reversed(range(H)):
        for s, a in itertools.product(range(S), range(A)):
            Q[h, s, a] = r[h, s, a] + sum(P[h, s, a, n] * V[h + 1, n] for n in range(S))
        V[h] = Q[h].max(axis=1)
    return V, Q


def all_paths(P, r, pi, start):
    """Yield the probability and return of every path: nothing is shared with the recursions."""
    H, S, A = r.shape
    for actions in itertools.product(range(A), repeat=H):
        for states in itertools.product(range(S), repeat=H):
            s, probability, total = start, 1.0, 0.0
            for h in range(H):
                probability *= pi[h, s, actions[h]] * P[h, s, actions[h], states[h]]
                total += r[h, s, actions[h]]
                s = states[h]
            yield probability, total


@pytest.mark.parametrize(("S", "A", "H"), [(1, 1, 1), (4, 3, 5), (5, 2, 7), (8, 4, 3)])
def test_planning_agrees_with_the_naive_loops(S, A, H):
    P, r = random_model(np.random.default_rng(S), S, A, H, batch=(3,))
    plan = mdp.backward_induction(P, r)
    for b in range(3):
        V, Q = naive_plan(P[b], r[b])
        np.testing.assert_allclose(plan.V[b], V, atol=1e-13)
        np.testing.assert_array_equal(plan.policy[b], Q.argmax(axis=2))
    np.testing.assert_array_equal(mdp.optimal_value(P, r), plan.V[:, 0])


def test_no_policy_beats_the_plan_and_its_policy_attains_it():
    rng = np.random.default_rng(1)
    P, r = random_model(rng, 3, 2, 3)
    plan = mdp.backward_induction(P, r)
    values = [
        mdp.policy_value(P, r, mdp.as_policy(np.reshape(actions, (3, 3)), 2))[0]
        for actions in itertools.product(range(2), repeat=9)
    ]
    assert max(values) == pytest.approx(plan.V[0, 0], abs=1e-12)
    own = mdp.evaluate(P, r, mdp.as_policy(plan.policy, 2))
    np.testing.assert_allclose(own, plan.V, atol=1e-12)


def test_ties_go_to_the_lowest_action():
    P = np.full((1, 2, 3, 2), 0.5)
    r = np.array([[[0.3, 0.1 + 0.2, 0.1], [0.0, 0.0, 0.0]]])  # 0.1 + 0.2 exceeds 0.3 by rounding
    np.testing.assert_array_equal(mdp.backward_induction(P, r).policy, [[0, 0]])


def test_variance_value_and_occupancy_against_every_path():
    rng = np.random.default_rng(2)
    P, r = random_model(rng, 3, 2, 3, sparse=True)
    pi = rng.dirichlet(np.ones(2), size=(3, 3))
    weights, returns = map(np.array, zip(*all_paths(P, r, pi, start=1), strict=True))
    mean = weights @ returns
    assert mdp.policy_value(P, r, pi)[1] == pytest.approx(mean, abs=1e-12)
    variance = weights @ (returns - mean) ** 2
    assert mdp.return_variance(P, r, pi, start=1) == pytest.approx(variance, abs=1e-12)
    d = mdp.occupancy(P, pi, start=1)
    np.testing.assert_allclose(d.sum(axis=(1, 2)), 1, atol=1e-12)
    assert (d * r).sum() == pytest.approx(mean, abs=1e-12)


def test_variance_of_a_coin_toss_and_of_a_random_start():
    # every step pays 1/H in state 0 and moves to a fair coin: a binomial return
    H = 16
    P = mdp.every_step(np.full((2, 1, 2), 0.5), H, 3)
    r = mdp.every_step(np.array([[1 / H], [0.0]]), H, 2)
    pi = mdp.every_step(np.ones((2, 1)), H, 2)
    assert mdp.return_variance(P, r, pi, start=0) == pytest.approx((H - 1) / H**2 / 4)
    start = np.array([0.5, 0.5])
    assert mdp.return_variance(P, r, pi, start=start) == pytest.approx(H / H**2 / 4)


def test_repeated_steps_are_read_once_and_change_nothing():
    rng = np.random.default_rng(3)
    P, r = rng.dirichlet(np.ones(4), size=(6, 4, 2)), rng.random((4, 2))
    H = 9
    lazy_P, lazy_r = mdp.every_step(P, H, 3), mdp.every_step(r, H, 2)
    full_P, full_r = lazy_P.copy(), lazy_r.copy()
    assert mdp._batched((lazy_P, 3))[0][0].shape == (6, 1, 4, 2, 4)
    for lazy, full in zip(
        mdp.backward_induction(lazy_P, lazy_r), mdp.backward_induction(full_P, full_r), strict=True
    ):
        np.testing.assert_array_equal(lazy, full)
    pi = mdp.as_policy(mdp.backward_induction(full_P, full_r).policy, 2)
    grid = mdp.policy_value(lazy_P[:, None], lazy_r, pi[None])  # models × policies
    assert grid.shape == (6, 6, 4)
    one = mdp.evaluate(full_P[2], full_r, pi[5])[0]
    np.testing.assert_allclose(grid[2, 5], one, atol=1e-14)


def test_episodes_follow_the_model():
    rng = np.random.default_rng(4)
    P, r = random_model(rng, 4, 2, 5, sparse=True)
    pi = rng.dirichlet(np.ones(2), size=(5, 4))
    K = 40_000
    states, actions = mdp.sample_episodes(rng, P, pi, start=2, K=K)
    returns = r[np.arange(5), states[:, :-1], actions].sum(axis=1)
    spread = mdp.return_variance(P, r, pi, start=2)
    assert abs(returns.mean() - mdp.policy_value(P, r, pi)[2]) < 4 * np.sqrt(spread / K)
    assert returns.var() == pytest.approx(spread, rel=0.05)
    h = np.broadcast_to(np.arange(5), actions.shape)
    seen = np.zeros((5, 4, 2))
    np.add.at(seen, (h, states[:, :-1], actions), 1 / K)
    np.testing.assert_allclose(seen, mdp.occupancy(P, pi, start=2), atol=0.015)
    assert (P[h, states[:, :-1], actions, states[:, 1:]] > 0).all()


def test_an_impossible_step_is_never_drawn():
    assert mdp.draw(np.array([0.0, 0.0, 1.0, 1.0]), 0.0) == 2
    assert mdp.draw(np.array([0.25, 1.0, 1.0]), np.nextafter(1, 0)) == 1


def test_simulation_lemma_holds_and_is_an_identity_without_absolute_values():
    rng = np.random.default_rng(5)
    for _ in range(50):
        P, r = random_model(rng, 4, 2, 6, sparse=True)
        other, _ = random_model(rng, 4, 2, 6)
        pi = mdp.as_policy(rng.integers(0, 2, (6, 4)), 2)
        V = mdp.evaluate(other, r, pi)
        error = np.einsum("hsan,hn->hsa", P - other, V[1:])
        d = mdp.occupancy(P, pi)
        gap = (mdp.policy_value(P, r, pi) - mdp.policy_value(other, r, pi))[0]
        assert gap == pytest.approx((d * error).sum(), abs=1e-12)
        assert abs(gap) <= (d * np.abs(error)).sum() + 1e-12


@pytest.mark.parametrize("plan", [mdp.optimal_value, mdp.backward_induction])
def test_planning_copies_no_model_for_every_step(plan):
    """Five hundred models at 256 steps would be 1.6 GB; the plans themselves are 41 MB."""
    rng = np.random.default_rng(6)
    P = mdp.every_step(rng.dirichlet(np.ones(20), size=(500, 20, 4)), 256, 3)
    r = mdp.every_step(rng.random((20, 4)) / 256, 256, 2)
    tracemalloc.start()
    plan(P, r)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda P, r: (P * 0.9, r), "sum to one"),
        (lambda P, r: (P - 1e-3 + 2e-3 * (np.arange(3) == 0) * 1.5, r), "nonnegative"),
        (lambda P, r: (P * np.nan, r), "finite"),
        (lambda P, r: (P, r[..., :1]), "shape"),
        (lambda P, r: (P[..., :2], r), "shape"),
    ],
)
def test_models_that_are_none_are_refused(change, words):
    P, r = random_model(np.random.default_rng(7), 3, 2, 4)
    P[0, 0, 0] = [1, 0, 0]
    mdp.check_model(P, r)
    with pytest.raises(BookError, match=words):
        mdp.check_model(*change(P, r))


def test_a_missing_time_axis_is_refused_with_the_way_out():
    P, r = random_model(np.random.default_rng(8), 3, 2, 4)
    with pytest.raises(BookError, match="every_step"):
        mdp.backward_induction(P[0], r)
