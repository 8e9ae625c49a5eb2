"""Zero-shot generalisation: fast learners equal naive ones, lemmas hold, bad data is refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import chapters, mdp
from lib.errors import BookError

PAGE = chapters.load("zero-shot")
PERM = chapters.load("zero-shot/perm")
PPPO = chapters.load("zero-shot/pppo")
LINEAR = chapters.load("zero-shot/linear")
MAPS = chapters.load("zero-shot/maps")
SEEDS = st.integers(0, 10_000)


def problem(seed, n=5, K=40, **shape):
    """Return a family, its controllers and the counts of some data."""
    rng = np.random.default_rng(seed)
    fam = PAGE.draw_contexts(rng, PAGE.draw_archetypes(rng, **shape), n)
    behaviour = PAGE.controllers(fam, 0.3)
    return rng, fam, behaviour, *PAGE.collect(rng, fam, behaviour, K)


def recorded(seed, n=4, K=11, S=2, A=3, H=3):
    """Return trajectories of a random family under its own controllers."""
    rng = np.random.default_rng(seed)
    fam = PAGE.draw_contexts(rng, PAGE.draw_archetypes(rng, S=S, A=A, H=H), n)
    behaviour = PAGE.controllers(fam, 0.5)
    logs = [mdp.sample_episodes(rng, fam.P[i], behaviour[i], K=K) for i in range(n)]
    states, actions = np.stack([e.states for e in logs]), np.stack([e.actions for e in logs])
    return states, actions, rng.integers(2, size=actions.shape).astype(float)


def naive_count(states, actions, rewards, i, trajectories, S=2, A=3):
    """Count the listed trajectories of each step of context i, one visit after the other."""
    H = actions.shape[-1]
    N, R = np.zeros((H, S, A, S)), np.zeros((H, S, A))
    for h in range(H):
        for τ in trajectories(h):
            s, a, after = states[i, τ, h], actions[i, τ, h], states[i, τ, h + 1]
            N[h, s, a, after] += 1
            R[h, s, a] += rewards[i, τ, h]
    return N, R


@settings(max_examples=5, deadline=None)
@given(seed=SEEDS)
def test_counts_split_and_merged_counts_go_visit_by_visit(seed):
    logs = recorded(seed)
    (n, K, H), S, A = logs[1].shape, 2, 3
    whole, split = PAGE.count(*logs, S, A), PAGE.count_split(*logs, S, A)
    for i in range(n):
        N, R = naive_count(*logs, i, lambda h: range(K))
        assert (whole.N[i] == N).all() and (whole.R[i] == R).all()
        N, R = naive_count(*logs, i, lambda h: [τ * H + h for τ in range(K // H)])
        assert (split.N[i] == N).all() and (split.R[i] == R).all()
    pooled = PAGE.count(*(x.reshape(2, 2 * K, *x.shape[2:]) for x in logs), S, A)
    for x, y in zip(PAGE.merge(whole, 2), pooled, strict=True):
        np.testing.assert_allclose(x, y)


def naive_ppe(counts, i, π, ξ, b):
    """Pessimistic evaluation of one context, written line by line from the algorithm."""
    _, H, S, A, _ = counts.N.shape
    V, Q = np.zeros((H + 1, S)), np.zeros((H, S, A))
    for h in range(H - 1, -1, -1):
        for s, a in itertools.product(range(S), range(A)):
            visits = sum(counts.N[i, h, s, a])
            if visits == 0:
                Q[h, s, a] = 0
                continue
            mean = counts.R[i, h, s, a] / visits
            mean += sum(counts.N[i, h, s, a, t] / visits * V[h + 1, t] for t in range(S))
            Γ = b * (H - h) * np.sqrt(np.log(2 * S * A / ξ) / (2 * visits))
            Q[h, s, a] = max(0, min(H - h, mean - min(Γ, H - h)))
        for s in range(S):
            V[h, s] = sum(π[h, s, a] * Q[h, s, a] for a in range(A))
    return V, Q


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, b=st.sampled_from([0.05, 0.5, 1.0]))
def test_batched_evaluation_is_the_algorithm(seed, b):
    rng, fam, _, whole, _ = problem(seed)
    π = rng.dirichlet(np.ones(3), fam.r.shape[1:3])
    V, Q = PAGE.ppe(PAGE.tabular(whole, 0.05, b), π)
    for i in range(len(fam.r)):
        naive_V, naive_Q = naive_ppe(whole, i, π, 0.05, b)
        np.testing.assert_allclose(V[i], naive_V, atol=1e-12)
        np.testing.assert_allclose(Q[i], naive_Q, atol=1e-12)
    many = PAGE.pessimistic_values(PAGE.tabular(whole, 0.05, b), np.stack([π, π[::-1]]))
    np.testing.assert_allclose(many[0], V[:, 0, 0], atol=1e-12)


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, α=st.sampled_from([0.05, 1.0, 20.0]))
def test_cumulative_sums_are_the_pass_over_contexts(seed, α):
    _, fam, _, _, split = problem(seed, n=8)
    _, H, S, A = fam.r.shape
    iterates = PAGE.pppo(PAGE.tabular(split, 0.05, 0.3), α)
    π = np.full((H, S, A), 1 / A)
    for i in range(len(fam.r)):
        np.testing.assert_allclose(iterates[i], π, atol=1e-9)
        _, Q = naive_ppe(split, i, π, 0.05, 0.3)
        weights = π * np.exp(α * Q)
        π = weights / weights.sum(axis=-1, keepdims=True)


@settings(max_examples=5, deadline=None)
@given(seed=SEEDS, b=st.sampled_from([0.05, 0.5]), m=st.sampled_from([1, 3, 6]))
def test_perm_and_its_merged_variant_list_policy_by_policy(seed, b, m):
    _, fam, _, whole, _ = problem(seed, n=6)
    H, S, A = fam.r.shape[1:]
    counts = PAGE.merge(whole, m)
    best, top = None, -np.inf
    for actions in itertools.product(range(A), repeat=1 + S * (H - 1)):
        π = np.zeros((H, S, A))
        π[0, 0, actions[0]] = π[0, 1, 0] = 1
        for place, (h, s) in enumerate(itertools.product(range(1, H), range(S)), 1):
            π[h, s, actions[place]] = 1
        score = np.mean([naive_ppe(counts, i, π, 0.05, b)[0][0, 0] for i in range(m)])
        if score > top + 1e-12:
            best, top = π, score
    found = PAGE.perm(PAGE.tabular(counts, 0.05, b), PAGE.enumerate_policies(H, S, A))
    assert (found == best).all()


def naive_pevi(counts, i, ξ, b):
    """Pessimistic value iteration in one context: the first best action at each state."""
    _, H, S, A, _ = counts.N.shape
    π = np.zeros((H, S, A))
    for h in range(H - 1, -1, -1):
        _, Q = naive_ppe(counts, i, π, ξ, b)
        for s in range(S):
            best = max(Q[h, s])
            π[h, s, next(a for a in range(A) if Q[h, s, a] >= best - 1e-12)] = 1
    return π


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS, b=st.sampled_from([0.05, 0.5]))
def test_pevi_cloning_and_the_vote_decide_alike(seed, b):
    _, fam, _, whole, _ = problem(seed, n=5, K=6)
    n, H, S, A = fam.r.shape
    own = PAGE.pevi(PAGE.tabular(whole, 0.05, b))
    naive = [naive_pevi(whole, i, 0.05, b) for i in range(n)]
    assert (own == np.stack(naive)).all()
    pooled = PAGE.merge(whole, 1)
    blind = PAGE.pevi(PAGE.tabular(pooled, 0.05, b))
    assert (blind[0] == naive_pevi(pooled, 0, 0.05, b)).all()
    voted = PAGE.vote(whole.N.sum((-2, -1)) > 0, own)
    cloned = PAGE.clone(whole)
    for h, s in itertools.product(range(H), range(S)):
        ballots, taken = [0] * A, [0] * A
        for i in range(n):
            if whole.N[i, h, s].sum() > 0:
                ballots[int(naive[i][h, s].argmax())] += 1
            for a in range(A):
                taken[a] += whole.N[i, h, s, a].sum()
        assert voted[h, s, ballots.index(max(ballots))] == 1
        shares = [x / sum(taken) for x in taken] if sum(taken) else [1 / A] * A
        np.testing.assert_allclose(cloned[h, s], shares)


def test_contexts_without_data_abstain():
    """Two contexts that never saw the state would outvote the one that did."""
    policies = mdp.as_policy(np.array([0, 0, 2]).reshape(3, 1, 1), 3)
    informed = np.array([False, False, True]).reshape(3, 1, 1)
    assert PAGE.vote(informed, policies)[0, 0].argmax() == 2
    assert PAGE.vote(np.ones((3, 1, 1), bool), policies)[0, 0].argmax() == 0


def test_linear_evaluation_is_the_algorithm():
    """PPE for linear MDPs with the ridge regression solved anew at each step."""
    φ = LINEAR.linear_features()
    states, actions, rewards = recorded(3, n=2, K=30, S=3, A=3, H=2)
    π = np.random.default_rng(0).dirichlet(np.ones(3), (2, 3))
    V, Q = PAGE.ppe(LINEAR.linear(PAGE.count(states, actions, rewards, 3, 3), φ, β=0.3), π)
    for i in range(2):
        after = np.zeros(3)
        for h in (1, 0):
            Λ, target = np.eye(3), np.zeros(3)
            for τ in range(30):
                x = φ[states[i, τ, h], actions[i, τ, h]]
                Λ += np.outer(x, x)
                target += x * (rewards[i, τ, h] + after[states[i, τ, h + 1]])
            w, inverse = np.linalg.solve(Λ, target), np.linalg.inv(Λ)
            for s, a in itertools.product(range(3), range(3)):
                value = φ[s, a] @ w - 0.3 * np.sqrt(φ[s, a] @ inverse @ φ[s, a])
                assert Q[i, h, s, a] == pytest.approx(max(0, min(2 - h, value)), abs=1e-10)
            after = (Q[i, h] * π[h]).sum(-1)
            np.testing.assert_allclose(V[i, h], after, atol=1e-10)


def test_linear_oracle_is_ridge_regression():
    rng = np.random.default_rng(0)
    φ = LINEAR.linear_features()
    _, fam = LINEAR.linear_family(rng, 2, φ)
    π = np.full(fam.r.shape[1:], 1 / 3)
    logs = [mdp.sample_episodes(rng, fam.P[i], π, K=25) for i in range(2)]
    states, actions = (np.stack([getattr(e, x) for e in logs]) for x in ("states", "actions"))
    rewards = rng.random(actions.shape)
    estimate = LINEAR.linear(PAGE.count(states, actions, rewards, 3, 3), φ, β=0.7)
    V = rng.random(3)
    for i, h in itertools.product(range(2), range(2)):
        x = φ[states[i, :, h], actions[i, :, h]]
        Λ = np.eye(3) + x.T @ x
        w = np.linalg.solve(Λ, x.T @ (rewards[i, :, h] + V[states[i, :, h + 1]]))
        np.testing.assert_allclose(estimate.r[i, h] + estimate.P[i, h] @ V, φ @ w, atol=1e-10)
        norm = np.sqrt(np.einsum("sad,de,sae->sa", φ, np.linalg.inv(Λ), φ))
        np.testing.assert_allclose(estimate.Γ[i, h], 0.7 * norm, atol=1e-10)


def test_one_hot_features_without_ridge_are_the_table():
    _, fam, _, whole, _ = problem(3, K=5000)
    S, A = fam.r.shape[2:]
    φ = np.eye(S * A).reshape(S, A, S * A)
    table, ridge = PAGE.tabular(whole, 0.05), LINEAR.linear(whole, φ, β=1.0, λ=1e-9)
    seen = whole.N.sum(-1) > 0
    np.testing.assert_allclose(ridge.P[seen], table.P[seen], atol=1e-6)


@settings(max_examples=8, deadline=None)
@given(seed=SEEDS)
def test_no_random_policy_beats_the_listed_ones(seed):
    """Deterministic policies suffice, for the truth and for the pessimistic objective."""
    rng, fam, _, whole, _ = problem(seed)
    H, S, A = fam.r.shape[1:]
    listed = PAGE.enumerate_policies(H, S, A)
    estimate = PAGE.tabular(whole, 0.05, 0.2)
    others = rng.dirichlet(np.full(A, 0.4), (300, H, S))
    for score in (
        lambda π: PAGE.values(fam, π).mean(1),
        lambda π: PAGE.pessimistic_values(estimate, π).mean(1),
    ):
        assert score(others).max() <= score(listed).max() + 1e-12


def test_one_merged_group_is_blind_and_all_groups_are_perm():
    _, fam, _, whole, _ = problem(11, n=6)
    policies = PAGE.enumerate_policies(*fam.r.shape[1:])
    one = PAGE.tabular(PAGE.merge(whole, 1), 0.05, 0.1)
    blind = PAGE.pessimistic_values(one, PAGE.pevi(one)).item()
    best = PAGE.pessimistic_values(one, policies).max()
    assert blind == pytest.approx(best, abs=1e-12)
    assert (PAGE.merge(whole, 6).N == whole.N).all()
    with pytest.raises(BookError, match="must divide the 6 contexts"):
        PAGE.merge(whole, 4)


def test_gradient_nearly_always_finds_the_listed_maximum():
    """The objective has local maxima, so a climb may fall short, but it can never do better."""
    shortfalls = []
    for seed in range(8):
        rng, fam, _, whole, _ = problem(seed, n=6, K=300)
        H, S, A = fam.r.shape[1:]
        estimate = PAGE.tabular(whole, 0.05, 0.1)
        starts = rng.dirichlet(np.ones(A), (16, H, S))
        climbed = MAPS.perm_gradient(estimate, starts, 80)
        listed = PAGE.perm(estimate, PAGE.enumerate_policies(H, S, A))
        score = PAGE.pessimistic_values(estimate, np.stack([listed, climbed])).mean(1)
        shortfalls.append(score[0] - score[1])
    assert min(shortfalls) >= -1e-12 and max(shortfalls) < 0.1
    assert np.mean(np.array(shortfalls) < 1e-9) >= 0.75


def test_counts_are_those_of_trajectories():
    """Drawing counts gives the occupancies of simulated episodes, rewards included."""
    rng, fam, behaviour, _, _ = problem(2, n=2)
    counts = PAGE.draw_counts(rng, fam, behaviour, 200_000)
    share = counts.N.sum(-1) / 200_000
    np.testing.assert_allclose(share, mdp.occupancy(fam.P, behaviour), atol=0.006)
    np.testing.assert_allclose(counts.R / 200_000, share * fam.r, atol=0.006)
    whole, split = PAGE.collect(rng, fam, behaviour, 10)
    assert (whole.N.sum((2, 3, 4)) == 10).all()
    assert (split.N.sum((2, 3, 4)) == [4, 3, 3]).all()


def test_average_mdp_by_hand():
    fam, μ = PAGE.example(covered=False)
    average = PAGE.average_mdp(fam, μ)
    np.testing.assert_allclose(PAGE.printed_units(average.r[0, 0, 0]), [1, 0, 1], atol=1e-12)
    whole = PAGE.average_mdp(fam, μ, m=2)
    np.testing.assert_allclose(whole.r, fam.r)


def test_average_mdp_weighs_each_context_by_its_visits():
    _, fam, behaviour, _, _ = problem(5, n=4)
    average, d = PAGE.average_mdp(fam, behaviour), mdp.occupancy(fam.P, behaviour)
    for h, s, a in itertools.product(*map(range, fam.r.shape[1:])):
        total = sum(d[c, h, s, a] for c in range(4))
        share = [d[c, h, s, a] / total if total else 1 / 4 for c in range(4)]
        r = sum(share[c] * fam.r[c, h, s, a] for c in range(4))
        assert average.r[0, h, s, a] == pytest.approx(r)
        P = sum(share[c] * fam.P[c, h, s, a] for c in range(4))
        np.testing.assert_allclose(average.P[0, h, s, a], P)


@pytest.mark.parametrize("together", [False, True])
def test_oracle_and_clone_of_maps_go_visit_by_visit(together):
    S, A, H, ξ, b = 4, 2, 3, 0.1, 0.4
    states, actions, _ = recorded(8, n=3, K=7, S=S, A=A, H=H)
    goal, pay = np.arange(S) == 3, np.array([1.0, 0.8, 0.5])
    oracle = MAPS.pooled_oracle(states, actions, A, goal, pay, ξ, b, together)
    groups = [range(3)] if together else [[0], [1], [2]]
    for g, (s, a) in itertools.product(range(len(groups)), itertools.product(range(S), range(A))):
        seen = [
            states[i, τ, h + 1]
            for i, τ, h in itertools.product(groups[g], range(7), range(H))
            if (states[i, τ, h], actions[i, τ, h]) == (s, a)
        ]
        N = len(seen)
        Γ = min(1, b * np.sqrt(np.log(2 * S * A / ξ) / (2 * N))) if N else 1
        for h in range(H):
            assert oracle.Γ[g, h, s, a] == pytest.approx(0 if goal[s] else Γ)
            entered = seen.count(3) / N if N and not goal[s] else 0
            assert oracle.r[g, h, s, a] == pytest.approx(pay[h] * entered)
            for after in range(S):
                assert oracle.P[g, h, s, a, after] == (seen.count(after) / N if N else 0)
    cloned = MAPS.clone_steps(states, actions, S, A)
    for h, s in itertools.product(range(H), range(S)):
        taken = np.bincount(actions[:, :, h][states[:, :, h] == s], minlength=A)
        if taken.sum():
            np.testing.assert_allclose(cloned[h, s], taken / taken.sum(), atol=1e-4)


def naive_own_visits(estimate, α, passes):
    """Return all iterates of the mended PPPO, evaluated and weighted line by line."""
    n, H, S, A = estimate.r.shape
    π, found = np.full((H, S, A), 1 / A), []
    logits = np.zeros((H, S, A))
    for k in range(n * passes):
        found.append(π)
        _, Q = PAGE.literal_ppe(estimate, k % n, π)
        d = np.eye(S)[0]
        for h in range(H):
            logits[h] += α * d[:, None] * Q[h]
            d = np.einsum("s,sa,sat->t", d, π[h], estimate.P[k % n, h])
        weights = np.exp(logits)
        π = weights / weights.sum(-1, keepdims=True)
    return np.stack(found)


@pytest.mark.parametrize("passes", [1, 3])
def test_compiled_mended_pppo_is_the_equation(passes):
    *_, split = problem(4, n=6)
    estimate = PAGE.tabular(split, 0.05, 0.1)
    found = PPPO.own_visits(estimate.r, estimate.P, estimate.Γ, 2.0, passes, 1)
    np.testing.assert_allclose(found, naive_own_visits(estimate, 2.0, passes), atol=1e-9)
    kept = PPPO.own_visits(estimate.r, estimate.P, estimate.Γ, 2.0, passes, passes)
    np.testing.assert_allclose(kept, found[::passes], atol=1e-12)


@settings(max_examples=6, deadline=None)
@given(seed=SEEDS, α=st.sampled_from([0.05, 1.0, 5.0]))
def test_literal_and_fast_versions_decide_alike(seed, α):
    _, fam, _, whole, split = problem(seed, n=5)
    own, parts = PAGE.tabular(whole, 0.05, 0.3), PAGE.tabular(split, 0.05, 0.3)
    policies = PAGE.enumerate_policies(*fam.r.shape[1:])[::11]
    assert (PAGE.literal_perm(own, policies) == PAGE.perm(own, policies)).all()
    np.testing.assert_allclose(PAGE.literal_pppo(parts, α), PAGE.pppo(parts, α), atol=1e-9)


def test_mean_over_the_continuum_is_exact():
    """Moments of the mixing weights against many drawn contexts, and against pencil and paper."""
    rng = np.random.default_rng(0)
    law = PAGE.draw_archetypes(rng, q=3)
    policies = PAGE.enumerate_policies(*law.r.shape[1:])[::40]
    exact = PAGE.population(law, policies)
    drawn = PAGE.values(PAGE.draw_contexts(rng, law, 40_000), policies)
    error = drawn.std(1) / np.sqrt(drawn.shape[1])
    assert (np.abs(drawn.mean(1) - exact) < 5 * error + 1e-9).all()
    pays = np.array([0.2, 0.8]).reshape(2, 1, 1, 1)
    single = PAGE.Archetypes(np.ones((2, 1, 1, 1, 1)), pays, np.ones(2))
    assert PAGE.population(single, np.ones((1, 1, 1, 1)))[0] == pytest.approx(0.5)


def test_no_context_is_drawn_twice():
    law = PAGE.draw_archetypes(np.random.default_rng(0))
    fam = PAGE.draw_contexts(np.random.default_rng(1), law, 500)
    assert len(np.unique(fam.r.reshape(500, -1), axis=0)) == 500


@pytest.mark.parametrize(("H", "share"), [(15, 0.061), (20, 0.123)])
def test_printed_theorem_on_perm_fails_for_long_episodes(H, share):
    """Two policies with returns H·1[c = v], H·1[c = w]: PERM errs with probability Φ(−23.2/H)."""
    n = 1_000_000
    bound = PERM.supervised(2, n)
    assert bound * np.sqrt(n) == pytest.approx(23.2, abs=0.05)
    assert PERM.failure(H, n, bound) == pytest.approx(share, abs=0.002)
    assert PERM.failure(H, n, bound) > 0.05
    assert PERM.failure(1, n, bound) < 1e-9  # returns in [0, 1]: the theorem holds
    assert PERM.failure(H, n, H * PERM.supervised(2, n, factor=1.0)) < 0.001  # mended


def test_perm_itself_fails_as_often_as_the_formula_says():
    """Contexts are drawn and handed to PERM with a perfect oracle, and its gap is compared."""
    n, H, runs = 401, 20, 400
    bound = PERM.supervised(2, n)
    ρ = bound / (2 * H) * (1 + 1e-9)
    rng, failed = np.random.default_rng(0), 0
    for _ in range(runs):
        fam = PERM.two_contexts((rng.random(n) >= 0.5 + ρ).astype(int), H)
        exact = PAGE.Estimate(fam.r, fam.P, np.zeros(fam.r.shape))
        π = PAGE.perm(exact, PERM.always(H))
        failed += 2 * ρ * H * (π[0, 0].argmax() == 1) > bound
    expected = PERM.failure(H, n, bound)
    assert expected > 0.05
    assert abs(failed / runs - expected) < 4 * np.sqrt(expected / runs)


def test_worst_gap_of_two_contexts_falls_like_the_root():
    families = chapters.load("zero-shot/families")
    gaps = [families.worst_gap(n) for n in (101, 10_001)]
    assert np.log(gaps[1] / gaps[0]) / np.log(10_001 / 101) == pytest.approx(-0.5, abs=0.02)


def test_counterexample_has_the_known_gaps():
    """Gaps of 0.189 and 0.197 after ten and a hundred thousand contexts, against 0.2 in the end."""
    for n, gap in ((10_000, 0.189), (100_000, 0.197)):
        found = PPPO.counter_run(np.random.default_rng(0), "visits differ", n)
        assert found["gap"] == pytest.approx(gap, abs=0.003)
        assert found["gap"] > found["bound"] and found["telescope"] > 1
    for case in ("visits of the best", "estimated visits", "visits agree"):
        mended = PPPO.counter_run(np.random.default_rng(0), case, 100_000)
        assert mended["gap"] < mended["bound"], case


def test_long_horizon_breaks_the_printed_sum_but_not_the_mended_one():
    found = PPPO.counter_run(np.random.default_rng(0), "twenty steps", 10_000)
    assert found["sum"] > 1 and found["mended"] <= 1


def test_the_chain_attains_the_covering_factor():
    for H in (1, 2, 3, 8, 16):
        assert PERM.lipschitz(H, 1e-6) == pytest.approx((H + 1) / 4, rel=1e-3)


def test_the_linear_counterexample_is_linear_and_well_explored():
    fam, φ = PPPO.counter_family(A=3), np.tile(np.eye(3), (3, 1, 1))
    φ[2] = np.eye(3)[2]
    for x in (fam.P, fam.r[..., None]):
        flat = x.reshape(2, 2, 9, -1)
        for c, h in itertools.product(range(2), range(2)):
            w, *_ = np.linalg.lstsq(φ.reshape(9, 3), flat[c, h], rcond=None)
            np.testing.assert_allclose(φ.reshape(9, 3) @ w, flat[c, h], atol=1e-12)
    c = LINEAR.explored(fam, np.full((2, 2, 3, 3), 1 / 3), φ)
    np.testing.assert_allclose(c, [0.1, 1.0], atol=1e-9)


def test_balanced_logs_do_not_change_what_perm_chooses():
    """On the linear counterexample of PERM the uncertainty is the same for both actions."""
    fam = PERM.two_contexts(np.array([0, 1]), 4)
    N = np.full((2, 4, 1, 2, 1), 500.0)
    estimate = LINEAR.linear(PAGE.Counts(N, N[..., 0] * fam.r), np.eye(2)[None], 1.0)
    np.testing.assert_allclose(estimate.Γ[..., 0], estimate.Γ[..., 1])
    scores = PAGE.pessimistic_values(estimate, PERM.always(4))
    assert scores[0, 0] == pytest.approx(scores[1, 1]) and scores[0, 0] > scores[0, 1]


def logs(n=2, K=6, H=3):
    return np.zeros((n, K, H + 1), int), np.zeros((n, K, H), int), np.zeros((n, K, H))


def test_contexts_with_different_states_are_refused():
    models = [(np.full((2, S, 2, S), 1 / S), np.zeros((2, S, 2))) for S in (2, 3)]
    with pytest.raises(BookError, match="must share one state and action space"):
        PAGE.family(models)
    assert PAGE.family(models[:1]).P.shape == (1, 2, 2, 2, 2)
    with pytest.raises(BookError, match="must share one state and action space"):
        PAGE.family([(models[0][0], models[1][1])])


def test_a_missing_step_is_refused():
    states, actions, rewards = logs()
    for broken in ((states[..., :-1], actions, rewards), (states, actions, rewards[..., :-1])):
        with pytest.raises(BookError, match="A step is missing"):
            PAGE.count(*broken, 2, 2)
    with pytest.raises(BookError, match="A step is missing"):
        PAGE.count(states, actions, np.where(rewards == 0, np.nan, 0), 2, 2)
    for gap in ([[[0, 0], [0]]], [[[0, 0], [0, None]]], [[[0, 0], [0, -1]]], [[]]):
        with pytest.raises(BookError, match="A step is missing"):
            PAGE.count(np.zeros((1, 2, 3), int), gap, np.zeros((1, 2, 2)), 2, 2)
    with pytest.raises(BookError, match="leave the states 0 to 1 or the actions 0 to 1"):
        PAGE.count(states + 2, actions, rewards, 2, 2)


def test_too_few_trajectories_for_a_split_are_refused():
    with pytest.raises(BookError, match="at least H = 3 trajectories"):
        PAGE.count_split(*logs(K=2), 2, 2)
    assert (PAGE.count_split(*logs(K=8), 2, 2).N.sum((2, 3, 4)) == 2).all()


def test_long_features_are_refused():
    _, _, _, whole, _ = problem(0)
    with pytest.raises(BookError, match="norm at most 1, got one of norm 2"):
        LINEAR.linear(whole, 2 * np.eye(6).reshape(2, 3, 6), β=1.0)
