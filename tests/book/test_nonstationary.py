"""The drifting world: every fast policy against a literal one, round by round; the mathematics."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import chapters
from lib.errors import BookError

PAGE = chapters.load("nonstationary")
LAYERED = chapters.load("nonstationary/save")
RIVALS = chapters.load("nonstationary/rivals")
META = chapters.load("nonstationary/bob")
PRINTED = chapters.load("nonstationary/experiments")
TUNED = chapters.load("nonstationary/tuned")
VARIANCE = chapters.load("nonstationary/variance")
THEORY = chapters.load("nonstationary/theory")
LEMMAS = chapters.load("nonstationary/lemmas")
FIXED = {"path": "sine", "noise": "bursts", "variance": 100.0, "budget": 2.0}
CHANGING = {**FIXED, "path": "turn", "d": 3, "arms": 4, "items": 12}
WOFUL = {"window": 60, "beta": 0.8, "alpha": 0.1, "gamma": 0.3}


def lockstep(policy, literal, K, setting, other=None, **parameters):
    """Play K rounds and require the same arm from both in every round."""
    rng = np.random.default_rng(5)
    problem = PAGE.make_drifting(rng, K, **setting)
    state = policy.init(problem, K, np.random.default_rng(7), **{**policy.parameters, **parameters})
    mine = literal.init(problem, K, np.random.default_rng(7), **(other or parameters))
    played = set()
    for t in range(1, K + 1):
        user, items, arms = PAGE.draw(problem, t, rng)
        means = PAGE.expected(problem, t, user, items, arms).copy()
        k = policy.choose(state, t, user, arms, items)
        assert k == literal.choose(mine, t, user, arms, items), f"round {t}"
        reward = PAGE.feedback(problem, t, user, items[k], means[k], rng)
        policy.learn(state, t, user, arms[k], reward, items[k])
        literal.learn(mine, t, user, arms[k].copy(), reward, items[k])
        played.add(int(k))
    assert len(played) > 1  # a policy that always plays one arm is compared with nothing
    return state, mine


def test_weighted_regression_decides_as_its_definition():
    lockstep(PAGE.WEIGHTED, PAGE.LITERAL_WOFUL, 200, CHANGING, **WOFUL)


def test_radii_of_the_theory_count_the_rounds_of_an_epoch():
    """Radii by age: in the first round of an epoch the first, in its last round the last."""
    problem = PAGE.make_drifting(np.random.default_rng(0), 25)
    state = PAGE.init_weighted(problem, 25, None, window=10, beta=2.0, radii=np.arange(10.0))
    assert state.plan[:, 0].tolist() == [2.0 * (k % 10) for k in range(25)]


@pytest.mark.parametrize(
    "theory, layers, scale", [(False, 5, 0.7), (True, 1, 0.01), (True, 2, 0.1)]
)
def test_layers_decide_as_their_definition(theory, layers, scale):
    """An empty layer caps all bounds alike, so that the theory's radii need layers that fill."""
    parameters = {"window": 150, "alpha": 2.0**-layers, "scale": scale}
    lockstep(LAYERED.SAVE, LAYERED.LITERAL_SAVE, 300, CHANGING, **parameters, theory=theory)


def test_bandit_over_bandits_decides_as_its_definition():
    lockstep(META.BOB, META.LITERAL_BOB, 400, FIXED, scale=0.7)


@pytest.mark.parametrize("kind", ["window", "discount", "local"])
@pytest.mark.parametrize("alpha", [np.inf, 0.1])
def test_window_and_discount_decide_as_their_definitions(kind, alpha):
    parameters = {"window": 40, "beta": 0.6, "lam": 0.1, "kind": kind, "alpha": alpha}
    lockstep(RIVALS.FORGETTING, RIVALS.LITERAL_FORGETTING, 200, CHANGING, **parameters)


@pytest.mark.parametrize("detect, restarts", [(0.2, True), (0.4, True), (50.0, False)])
def test_master_decides_as_its_definition(detect, restarts):
    state, _ = lockstep(
        RIVALS.MASTER, RIVALS.LITERAL_MASTER, 600, FIXED, lam=0.1, beta=0.3, detect=detect
    )
    assert (state.seen[4] > 0) == restarts
    assert state.clock[2] <= len(state.uniform)


def test_optimism_of_a_fresh_copy_is_no_alarm():
    """The bound of a copy without samples is β/√λ = 30, but no mean reward is above 1."""
    rng = np.random.default_rng(5)
    problem = PAGE.make_drifting(rng, 1000, path="still", noise="level")
    state = RIVALS.MASTER.init(problem, 1000, rng, lam=1e-4, beta=0.3, detect=3.0)
    for t in range(1, 1001):
        _, items, arms = PAGE.draw(problem, t, rng)
        k = RIVALS.choose_master(state, t, 0, arms, items)
        RIVALS.learn_master(state, t, 0, arms[k], problem.theta[t - 1, k], items[k])
    assert state.seen[4] == 0


def test_a_floor_is_a_ridge():
    """Constant weights: the same play as RestartUCB with ridge λα² and radius αβ."""
    blind = {"window": 50, "gamma": 0.0, "observe": "nothing"}
    literal = PAGE.LITERAL_WOFUL._replace(
        init=lambda p, K, rng, **c: PAGE.init_literal_woful(
            p._replace(sigma=np.zeros(K)), K, rng, **c
        )
    )
    other = {"window": 50, "alpha": 1.0, "gamma": 0.0, "lam": 0.03, "beta": 0.4}
    lockstep(PAGE.WEIGHTED, literal, 200, CHANGING, other, **blind, alpha=0.1, lam=3.0, beta=4.0)


def test_told_methods_contain_their_blind_twins():
    problem = PAGE.make_drifting(np.random.default_rng(0), 300, **CHANGING)
    told = RIVALS.init_forgetting(problem, 300, None, window=30, kind="discount", alpha=1.0)
    assert (told.told == 1).all()
    weighted = PAGE.init_weighted(problem, 300, None, window=30, alpha=1.0, gamma=0.0)
    assert (np.maximum(weighted.plan[:, 1], weighted.alpha) == 1).all()


class SlowRestart:
    """Ridge regression since a restart: every `window` rounds or where the best arm turns."""

    def __init__(self, problem, K, rng, window, beta):
        self.d, self.beta, best = problem.theta.shape[1], beta, problem.theta.argmax(axis=1)
        self.begins = [
            t == 1 or (best[t - 1] != best[t - 2] if window == "oracle" else (t - 1) % window == 0)
            for t in range(1, K + 1)
        ]

    def choose(self, t, arms):
        if self.begins[t - 1]:
            self.past = []
        gram = np.eye(self.d) + sum(np.outer(x, x) for x, _ in self.past)
        theta = np.linalg.solve(gram, sum((r * x for x, r in self.past), np.zeros(self.d)))
        return PAGE.first_argmax(np.array([
            x @ theta + self.beta * math.sqrt(x @ np.linalg.solve(gram, x)) for x in arms
        ]))  # fmt: skip

    def learn(self, x, reward):
        self.past.append((x, reward))


def as_literal(slow):
    """Return a slow class as a policy."""
    return PAGE.LITERAL_WOFUL._replace(
        init=slow,
        choose=lambda state, t, user, arms, items: state.choose(t, arms),
        learn=lambda state, t, user, x, reward, item: state.learn(x, reward),
    )


def test_restarts_decide_as_their_definitions():
    slow = as_literal(SlowRestart)
    lockstep(PAGE.RESTART_UCB, slow, 200, CHANGING, window=60, beta=0.6)
    lockstep(PAGE.ORACLE_RESTART, slow, 400, FIXED, window="oracle", beta=0.3)


class SlowExp3S:
    def __init__(self, problem, K, rng, gamma):
        self.W, self.gamma, self.share = np.ones(problem.means.size), gamma, 1 / K
        self.uniform = rng.random(K)

    def choose(self, t, arms):
        n = len(self.W)
        self.p = (1 - self.gamma) * self.W / self.W.sum() + self.gamma / n
        found = np.searchsorted(np.cumsum(self.p), self.uniform[t - 1], "right")
        self.k = min(n - 1, int(found))
        return self.k

    def learn(self, x, reward):
        n, total = len(self.W), self.W.sum()
        self.W[self.k] *= math.exp(self.gamma * min(1, max(0, reward)) / self.p[self.k] / n)
        self.W += math.e * self.share / n * total


def test_exp3s_decides_as_its_definition():
    lockstep(RIVALS.EXP3S, as_literal(SlowExp3S), 1000, FIXED, gamma=0.1)


class SlowRestartBob:
    """RestartUCB under Exp3, from the whole block."""

    def __init__(self, problem, K, rng, lam, beta):
        self.lam, self.beta, self.d = lam, beta, 2
        self.H = math.ceil(2 * math.sqrt(K))
        steps = math.ceil(math.log(self.H))
        self.w = sorted({max(1, math.floor(self.H ** (j / steps))) for j in range(steps + 1)})
        blocks = math.ceil(K / self.H)
        self.uniform, self.s = rng.random(blocks), np.ones(len(self.w))
        P = len(self.w)
        self.gamma = min(1.0, math.sqrt(P * math.log(P) / ((math.e - 1) * blocks)))
        self.Z = META.block_reach(K, self.H)

    def choose(self, t, arms):
        if (t - 1) % self.H == 0:
            if t > 1:
                x = min(1, max(0, 0.5 + self.earned / (2 * self.Z)))
                self.s[self.j] *= math.exp(self.gamma * x / (len(self.w) * self.p[self.j]))
            self.p = (1 - self.gamma) * self.s / self.s.sum() + self.gamma / len(self.w)
            draw = self.uniform[(t - 1) // self.H]
            self.j = min(len(self.w) - 1, int(np.searchsorted(np.cumsum(self.p), draw, "right")))
            self.earned, self.past = 0.0, []
        if len(self.past) == self.w[self.j]:
            self.past = []
        gram = self.lam * np.eye(2) + sum(np.outer(x, x) for x, _ in self.past)
        theta = np.linalg.solve(gram, sum((r * x for x, r in self.past), np.zeros(2)))
        return PAGE.first_argmax(np.array([
            x @ theta + self.beta * math.sqrt(x @ np.linalg.solve(gram, x)) for x in arms
        ]))  # fmt: skip

    def learn(self, x, reward):
        self.earned += reward
        self.past.append((x, reward))


def test_restart_bob_decides_as_its_definition():
    state, slow = lockstep(
        META.RESTART_BOB, as_literal(SlowRestartBob), 3000, FIXED, lam=0.1, beta=0.4
    )
    assert slow.gamma < 1
    assert state.meta.pool[:, 3] == pytest.approx(slow.p)


def test_meta_learner_draws_as_exp3_defines():
    """At horizons a slow twin can play γ of SAVE+-BOB is 1, so its draws are tested alone."""
    rng, P, gamma, reach, s = np.random.default_rng(3), 5, 0.3, 40.0, np.ones(5)
    pool = np.column_stack([np.arange(1.0, P + 1), np.full(P, 2.0), np.zeros(P), np.ones(P) / P])
    now, earned = np.zeros(4, np.int64), np.zeros(1)
    meta = META.Meta(pool, now, rng.random(1), earned, 10, gamma, reach)
    j, p = 0, pool[:, 3].copy()
    for block in range(300):
        if block > 0:
            s[j] *= math.exp(gamma * min(1, max(0, 0.5 + earned[0] / (2 * reach))) / (P * p[j]))
        p = (1 - gamma) * s / s.sum() + gamma / P
        uniform = rng.random()
        j = int(np.searchsorted(np.cumsum(p), uniform, "right"))
        META.begin_block(meta, uniform, block == 0)
        assert now[[0, 2, 3]].tolist() == [j, j + 1, 2]
        assert pool[:, 3] == pytest.approx(p)
        earned[0] = rng.normal(10 * j, 30)


def test_meta_learner_has_the_stated_constants():
    problem = PAGE.make_drifting(np.random.default_rng(0), 240_000)
    state = META.init_bob(problem, 240_000, np.random.default_rng(7))
    literal = META.init_literal_bob(problem, 240_000, np.random.default_rng(7))
    assert literal.gamma < 1
    assert (state.meta.gamma, state.meta.reach) == pytest.approx((literal.gamma, literal.Z))
    assert (state.meta.block, len(state.meta.pool)) == (literal.H, len(literal.pairs))


def test_a_pair_played_in_all_blocks_restarts_with_its_blocks():
    problem = PAGE.make_drifting(np.random.default_rng(0), 30)
    state = META.init_pair(problem, 30, None, window=10, alpha=0.25, inner=4)
    assert np.flatnonzero(state.begins).tolist() == [0, 4, 8, 10, 14, 18, 20, 24, 28]


def test_deep_layers_read_the_residuals():
    """Twelve layers, the tenth fed alone: the radius must use the direct sum."""
    rng, m, w, L = np.random.default_rng(0), 9, 50, 12
    fit, tally, samples = np.zeros((L, 5, 2)), np.zeros((L, 3)), []
    PAGE.begin(fit, m, 4.0 ** (m + 1))
    for _ in range(40):
        x, r = rng.standard_normal(2), rng.standard_normal()
        norm = PAGE.length(fit, m, x)
        weight = min(1.0, 2.0 ** -(m + 1) / norm) ** 2 * 1e6
        PAGE.enter(fit, m, x, r, weight, norm)
        tally[m] += weight * r * r, 1.0, 0.0
        samples.append((x, r, weight))
    direct = sum(weight * (r - fit[m, 3] @ x) ** 2 for x, r, weight in samples)
    log, log1 = math.log(4 * w**2 * L / 0.01), math.log(4 * (w + 1) ** 2 * L / 0.01)
    assert 2.0 ** (m + 1) >= 64 * math.sqrt(log1)
    two = 2.0 ** -(m + 1)
    spread = math.sqrt(8 * direct + 6 * log1 + 16 * two**2)
    expected = two * (16 * spread * math.sqrt(log) + 6 * log + 1)
    assert LAYERED.layer_radius(fit, tally, m, w, L, 0.01) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(0, 6), n=st.integers(1, 60))
def test_residual_variance_is_the_direct_sum(seed, m, n):
    rng = np.random.default_rng(seed)
    X, r, w = rng.standard_normal((n, 3)), rng.standard_normal(n), rng.uniform(0, 1, n)
    ridge = 4.0 ** -(m + 1)
    gram = ridge * np.eye(3) + (X.T * w**2) @ X
    b = (X.T * w**2) @ r
    theta = np.linalg.solve(gram, b)
    fit, tally = np.zeros((m + 1, 6, 3)), np.zeros((m + 1, 3))
    fit[m, 3], fit[m, 4], tally[m, 0] = b, theta, (w**2 * r**2).sum()
    direct = (w**2 * (r - X @ theta) ** 2).sum()
    assert LAYERED.residual_variance(fit, tally, m) == pytest.approx(direct, rel=1e-8, abs=1e-8)


def test_gram_of_the_window_does_not_drift():
    rng, w = np.random.default_rng(3), 30
    problem = PAGE.make_drifting(rng, 20_000, **CHANGING)
    state = RIVALS.init_forgetting(problem, 20_000, rng, window=w)
    X = rng.standard_normal((20_000, 3))
    for t, x in enumerate(X, start=1):
        RIVALS.learn_forgetting(state, t, 0, x, 1.0, 0)
    assert state.gram == pytest.approx(np.eye(3) + X[-w:].T @ X[-w:], abs=1e-9)
    assert state.fit[0, :3] == pytest.approx(np.linalg.inv(state.gram), abs=1e-9)


def test_printed_problem_has_the_stated_moments():
    p = 0.5 / np.arange(1, 101)
    problem = PAGE.make_drifting(np.random.default_rng(0), 100)
    chance, gap = problem.noise.T
    assert chance == pytest.approx(p)
    assert gap == pytest.approx(np.ones(100))  # Bernoulli(p) − p
    assert problem.sigma**2 == pytest.approx(p * (1 - p))
    assert PAGE.total_variation(PAGE.sine_path(200_000, 3.0)) == pytest.approx(
        9 * math.sqrt(2), rel=1e-4
    )


@pytest.mark.parametrize("noise", ["bursts", "level", "mixed"])
def test_noise_spends_its_variance(noise):
    sigma, chance = PAGE.noise_schedule(np.random.default_rng(1), 50_000, noise, 5_000.0, 7.0)
    assert (sigma**2).sum() == pytest.approx(5_000, rel=0.05)
    assert (sigma <= 1).all() and (chance == 0.5).all()


def test_oracle_restarts_where_the_best_arm_changes():
    problem = PAGE.make_drifting(np.random.default_rng(0), 1000, budget=1.0, path="square")
    assert problem.change.sum() == 5  # five half periods, the first begins with round 1
    assert PAGE.epochs(problem, "oracle") is problem.change
    assert PAGE.epochs(problem, 300).nonzero()[0].tolist() == [0, 300, 600, 900]
    assert PAGE.epochs(problem, 300, offset=1).nonzero()[0].tolist() == [0, 299, 599, 899]
    assert PAGE.window_rounds(problem, "swing", 0.5) == 100


def test_hard_instance_stays_within_its_budgets():
    K, d, B, V = 5_000, 3, 0.5, 300.0
    problem = PAGE.make_drifting(
        np.random.default_rng(2), K, budget=B, path="hard", variance=V, d=d
    )
    means = problem.theta @ problem.pool.T
    assert (means >= 0).all()
    assert (means * (1 - means)).max(axis=1).sum() <= V
    assert PAGE.total_variation(problem.theta) <= B
    assert np.linalg.norm(problem.pool[:, :d], axis=1) == pytest.approx(np.ones(8))


@pytest.mark.parametrize("budget", [2.0, 20.0])
def test_hidden_rises_stay_within_their_budget(budget):
    variations = [
        PAGE.total_variation(PAGE.hidden_path(np.random.default_rng(i), 2_000, budget))
        for i in range(20)
    ]
    assert max(variations) <= budget
    assert np.ptp(PAGE.hidden_path(np.random.default_rng(0), 2_000, budget)[:, 0]) == 0


def test_no_schedule_beats_the_bound_of_the_hidden_rises():
    """Play arm 2 every n rounds until it pays: exact mean regret of a piece, for the best n."""
    length, gap = 200, 0.25
    costs = []
    for every in range(1, length):
        plays = np.arange(every - 1, length, every)
        waits = [next((p for p in plays if p >= r), length) - r for r in range(length)]
        before = [(plays < r).sum() for r in range(length)]
        costs.append(gap / 2 * (len(plays) + np.mean(waits) + np.mean(before)))
    assert min(costs) >= gap / 2 * (math.sqrt(2 * length) - 1.5)


def test_exp3_distribution_sums_to_one_and_survives_large_scores():
    pool = np.array([[1.0, 1.0, s, 0.0] for s in (0.0, 800.0, 801.0)])
    META.exp3_chances(pool, 0.1)
    assert pool[:, 3].sum() == pytest.approx(1)
    assert pool[0, 3] == pytest.approx(0.1 / 3)
    assert pool[2, 3] / pool[1, 3] > 2


def test_pool_is_runnable_and_counted_as_printed():
    assert len(META.bob_windows(240_000, 2)) * len(META.bob_alphas(240_000, 2)) == 240
    pairs, H = META.bob_pairs(240_000, 2), META.bob_block(240_000, 2)
    assert len(set(pairs)) == len(pairs)
    assert all(1 <= w <= H and 0 < a < 1 for w, a in pairs)


@pytest.mark.parametrize("rate, choice", [
    (THEORY.woful_rate, THEORY.woful_choice), (THEORY.save_rate, META.save_choice),
])  # fmt: skip
def test_corollary_is_within_a_constant_of_the_best_pair(rate, choice):
    windows, floors = np.meshgrid(np.geomspace(1, 1e6, 200), np.geomspace(1e-6, 1e3, 200))
    for B in (1.0, 30.0, 1e4):
        for V in (1.0, 1e3, 1e6):
            best = rate(1e6, 4.0, B, V, windows, floors).min()
            assert rate(1e6, 4.0, B, V, *choice(1e6, 4.0, B, V)) <= 4 * best


@settings(max_examples=30, deadline=None)
@given(h=st.floats(1.0, 1e3))
def test_mix_factor_is_the_mean_variance_times_the_mean_precision(h):
    rng = np.random.default_rng(0)
    sigma, _ = PAGE.noise_schedule(rng, 40_000, "mixed", 20_000.0, h)
    low, high = np.unique(sigma)[[0, -1]]
    direct = np.mean([low**2, high**2]) * np.mean([low**-2, high**-2])
    assert VARIANCE.mix_factor(h) == pytest.approx(direct, rel=1e-6)
    assert VARIANCE.mix_factor(h) == pytest.approx(VARIANCE.mix_factor(1 / h))


def test_a_deep_layer_is_filled_as_the_algorithm_fills_it():
    """One direction: fill_layer against the layer of SAVE+ itself, on the same coins."""
    layer, samples, sigma, x = 2, 40, 0.3, np.array([1.0])
    truth, residual = LEMMAS.fill_layer(np.random.default_rng(4), samples, sigma, 5.0, layer)
    fit, tally, rng = (
        np.zeros((layer + 1, 4, 1)),
        np.zeros((layer + 1, 3)),
        np.random.default_rng(4),
    )
    PAGE.begin(fit, layer, 4.0 ** (layer + 1))
    weights = 0.0
    for k in range(samples):
        norm = PAGE.length(fit, layer, x)
        noise = sigma if rng.random() < 0.5 else -sigma
        reward, weight = 0.5 * math.cos(5.0 * k / samples) + noise, (0.5 ** (layer + 1) / norm) ** 2
        PAGE.enter(fit, layer, x, reward, weight, norm)
        tally[layer, 0] += weight * reward**2
        weights += weight
    assert truth == pytest.approx(weights * sigma**2)
    assert residual == pytest.approx(LAYERED.residual_variance(fit, tally, layer))


def test_the_hard_bound_is_half_of_what_random_arms_cost():
    K, d, B, V = 6_000, 2, 0.5, 600.0
    T = PAGE.piece_length(K, d, B, V)
    problem = PAGE.make_drifting(np.random.default_rng(0), K, B, "hard", variance=V, d=d)
    means = problem.theta @ problem.pool.T
    cost = (means.max(axis=1) - means.mean(axis=1))[: K // T * T].sum()
    assert LEMMAS.hard_bound(K, d, B, V) == pytest.approx(cost / 2)


def test_the_order_of_methods_is_judged_as_the_ledger_says():
    """Two horizons, means 1, 2, 3, 4: first and ahead; with arms at random in place, neither."""
    values = np.array([1.0, 2.0, 3.0, 4.0]) + np.zeros((3, 2, 4))
    assert PRINTED.first(values).all() and PRINTED.ahead(values).all()
    worst = values[..., [3, 3, 1, 2]]
    assert not PRINTED.first(worst).any() and not PRINTED.ahead(worst).any()
    jitter = values + np.random.default_rng(0).normal(0, 0.01, values.shape)
    assert PRINTED.clearly_lower(jitter, 0, 3).all()
    assert not PRINTED.clearly_lower(jitter, 3, 0).any()


def test_the_margin_of_a_method_that_learns_nothing_is_no_lead():
    """Where baselines are worst a constant regret looks best; it must still be below theirs."""
    budgets = np.array([1.0, 2.0, 3.0, 4.0])[None, :, None]  # baselines worst at the last budget
    values = np.stack(np.broadcast_arrays(0 * budgets, 5.0, budgets, budgets), axis=-1)
    assert PRINTED.lead(values + np.zeros((2, 4, 3, 4))) < 0
    values[..., 1] = 0.5
    assert PRINTED.lead(values + np.zeros((2, 4, 3, 4))) > 0


def test_the_depth_of_a_search_counts_its_own_first_points():
    """Later horizons, extensions and points of contained methods are none of the first points."""
    rows = [("short", "search", 0, 5.0), ("short", "search", 0, 7.0), ("short", "search", 1, 3.0),
            ("short", "extension 1", 2, 1.0), ("long", "search", 0, 0.5)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["stage", "origin", "point", "regret"]).assign(policy="A")
    assert [TUNED.best_of(table, n)["A"] for n in (1, 2, 8)] == [6.0, 3.0, 3.0]


def test_the_blind_twin_is_the_told_method_at_floor_one():
    point = {"window": 0.1, "radius": 0.3, "ridge": 0.02, "caution": 0.4}
    told, blind = TUNED.weighted({**point, "floor": 1.0}), TUNED.cautious(point)
    assert blind == {**told, "observe": "nothing"}
    problem = PAGE.make_drifting(np.random.default_rng(0), 100)  # the printed noise, σ ≤ ½
    plans = [PAGE.init_weighted(problem, 100, None, **c) for c in (told, blind)]
    bars = [np.maximum(plan.plan[:, 1], plan.alpha) for plan in plans]
    assert (bars[0] == bars[1]).all()


@pytest.mark.parametrize("call, words", [
    (lambda p: RIVALS.init_forgetting(p, 100, None, window=0), "window must lie in [1, K]"),
    (lambda p: PAGE.init_weighted(p, 100, None, window=101), "window must lie in [1, K]"),
    (lambda p: RIVALS.init_forgetting(p, 100, None, window=-3, kind="local"), "[1, K]"),
    (lambda p: LAYERED.init_save(p, 100, None, window=10, alpha=1.0), "α must lie in (0, 1)"),
    (lambda p: LAYERED.init_save(p, 100, None, window=10, alpha=-0.5), "α must lie in (0, 1)"),
    (lambda p: PAGE.init_weighted(p, 100, None, window=10, alpha=0.0), "α must be positive"),
    (lambda p: PAGE.init_weighted(p, 100, None, window=10, observe=-0.1), "cannot be negative"),
    (lambda p: PAGE.init_weighted(p, 100, None, window=10, observe=math.nan), "negative"),
    (lambda p: PAGE.make_drifting(np.random.default_rng(0), 100, variance=-1.0), "total variance"),
])  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(call, words):
    problem = PAGE.make_drifting(np.random.default_rng(0), 100)
    with pytest.raises(BookError) as refusal:
        call(problem)
    assert words in str(refusal.value)
    assert str(refusal.value).count(". ") == 0
