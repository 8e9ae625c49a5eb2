"""The drifting world: every fast policy against a line-by-line one that recomputes from history."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import chapters
from lib.errors import BookError

page = chapters.load("nonstationary")
FIXED = {"path": "sine", "noise": "bursts", "variance": 100.0, "budget": 2.0}
CHANGING = {**FIXED, "path": "turn", "d": 3, "arms": 4, "items": 12}


def lockstep(policy, slow, K, setting, **parameters):
    """Play K rounds and require the same arm from both in every round."""
    rng = np.random.default_rng(5)
    problem = page.make_drifting(rng, K, **setting)
    state = policy.init(problem, K, np.random.default_rng(7), **{**policy.parameters, **parameters})
    naive = slow(problem, K, np.random.default_rng(7), **parameters)
    for t in range(1, K + 1):
        user, items, arms = page.draw(problem, t, rng)
        means = page.expected(problem, t, user, items, arms).copy()
        k = policy.choose(state, t, user, arms, items)
        assert k == naive.choose(t, arms), f"round {t}"
        reward = page.feedback(problem, t, user, items[k], means[k], rng)
        policy.learn(state, t, user, arms[k], reward, items[k])
        naive.learn(t, arms[k].copy(), reward, problem.sigma[t - 1], k)


def first_best(scores):
    best = max(scores)
    return next(k for k, s in enumerate(scores) if s >= best - 1e-10 * max(1.0, abs(best)))


class SlowWeighted:
    def __init__(self, problem, K, rng, window, beta, alpha, gamma, theory=False):
        self.d, self.window, self.beta = problem.theta.shape[1], window, beta
        self.alpha, self.gamma, self.theory, self.past = alpha, gamma, theory, []

    def statistics(self):
        gram, b = np.eye(self.d), np.zeros(self.d)
        for x, r, bar in self.past:
            gram += np.outer(x, x) / bar**2
            b += r * x / bar**2
        return np.linalg.inv(gram), b

    def choose(self, t, arms):
        if (t - 1) % self.window == 0:
            self.past = []
        inverse, b = self.statistics()
        beta = self.beta
        if self.theory:
            n = max(1, len(self.past))
            inner = math.log(32 * (1 + math.log(max(1, self.gamma**2 / self.alpha))) * n**2 / 0.01)
            beta *= (
                12 * math.sqrt(self.d * math.log(1 + n / (self.alpha**2 * self.d)) * inner)
                + 30 * inner / self.gamma**2
                + 1
            )
        return first_best([x @ inverse @ b + beta * math.sqrt(x @ inverse @ x) for x in arms])

    def learn(self, t, x, reward, sigma, k):
        norm = math.sqrt(x @ self.statistics()[0] @ x)
        self.past.append((x, reward, max(sigma, self.alpha, self.gamma * math.sqrt(norm))))


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
        return first_best([
            x @ theta + self.beta * math.sqrt(x @ np.linalg.solve(gram, x)) for x in arms
        ])  # fmt: skip

    def learn(self, t, x, reward, sigma, k):
        self.past.append((x, reward))


class SlowLayers:
    """Restarted SAVE+ with every sum over the layer's history written out."""

    def __init__(self, problem, K, rng, window, alpha, scale, theory=False):
        self.d, self.window, self.scale, self.theory = problem.theta.shape[1], window, scale, theory
        self.L = math.ceil(math.log2(1 / alpha))
        self.forget()

    def forget(self):
        self.layers = [[] for _ in range(self.L)]
        self.beta = [self.scale * 2.0 ** (1 - m) for m in range(1, self.L + 1)]
        self.age = 0

    def statistics(self, m):
        gram, b = 4.0 ** -(m + 1) * np.eye(self.d), np.zeros(self.d)
        for x, r, w in self.layers[m]:
            gram += w**2 * np.outer(x, x)
            b += w**2 * r * x
        return np.linalg.inv(gram), b

    def radius(self, m):
        inverse, b = self.statistics(m)
        w, L, two = self.window, self.L, 2.0 ** -(m + 1)
        log, log1 = math.log(4 * w**2 * L / 0.01), math.log(4 * (w + 1) ** 2 * L / 0.01)
        variance = len(self.layers[m])
        if 2.0 ** (m + 1) >= 64 * math.sqrt(log1):
            variance = sum(w**2 * (r - x @ inverse @ b) ** 2 for x, r, w in self.layers[m])
        spread = math.sqrt((8 * variance + 6 * log1 + 2.0 ** (4 - 2 * (m + 1))) * log)
        return self.scale * (16 * two * spread + 6 * two * log + two)

    def choose(self, t, arms):
        if self.age == self.window:
            self.forget()
        fits = [self.statistics(m) for m in range(self.L)]
        return first_best([
            min(
                x @ inverse @ b + self.beta[m] * math.sqrt(x @ inverse @ x)
                for m, (inverse, b) in enumerate(fits)
            )
            for x in arms
        ])  # fmt: skip

    def learn(self, t, x, reward, sigma, k):
        self.age += 1
        for m in range(self.L):
            norm = math.sqrt(x @ self.statistics(m)[0] @ x)
            if norm >= 2.0 ** -(m + 1):
                self.layers[m].append((x, reward, 2.0 ** -(m + 1) / norm))
                if self.theory:
                    self.beta[m] = self.radius(m)
                return


class SlowBob:
    def __init__(self, problem, K, rng, scale, theory=False):
        self.problem, self.K, d = problem, K, problem.theta.shape[1]
        self.scale, self.theory = scale, theory
        self.pairs, self.H = page.bob_pairs(K, d), page.bob_block(K, d)
        self.uniform, self.s = rng.random(math.ceil(K / self.H)), [1.0] * len(self.pairs)
        P, N = len(self.pairs), math.ceil(K / self.H)
        self.gamma = min(1.0, math.sqrt(P * math.log(P) / ((math.e - 1) * N)))
        log = math.log(K * (K / self.H + 1))
        self.reach = self.H + math.sqrt(self.H / 2 * log) + 2 / 3 * log

    def choose(self, t, arms):
        if (t - 1) % self.H == 0:
            P = len(self.pairs)
            if t > 1:
                gain = min(1, max(0, 0.5 + self.earned / (2 * self.reach)))
                self.s[self.j] *= math.exp(self.gamma * gain / (P * self.p[self.j]))
            self.p = [(1 - self.gamma) * s / sum(self.s) + self.gamma / P for s in self.s]
            self.j = int(np.searchsorted(np.cumsum(self.p), self.uniform[(t - 1) // self.H]))
            w, a = self.pairs[self.j]
            self.base = SlowLayers(self.problem, self.K, None, w, a, self.scale, self.theory)
            self.earned = 0.0
        return self.base.choose(t, arms)

    def learn(self, t, x, reward, sigma, k):
        self.earned += reward
        self.base.learn(t, x, reward, sigma, k)


class SlowRidge:
    """SW-UCB and D-LinUCB from the whole history, a weight for every age."""

    def __init__(self, problem, K, rng, window, beta, lam, discounted=False):
        self.d, self.window, self.beta, self.lam = problem.theta.shape[1], window, beta, lam
        self.discounted, self.past = discounted, []

    def choose(self, t, arms):
        gram, twice = self.lam * np.eye(self.d), self.lam * np.eye(self.d)
        b = np.zeros(self.d)
        for s, (x, r) in enumerate(self.past, start=1):
            age = t - 1 - s
            weight = (1 - 1 / self.window) ** age if self.discounted else float(age < self.window)
            gram += weight * np.outer(x, x)
            twice += weight**2 * np.outer(x, x)
            b += weight * r * x
        inverse = np.linalg.inv(gram)
        norm = inverse @ twice @ inverse if self.discounted else inverse
        return first_best([x @ inverse @ b + self.beta * math.sqrt(x @ norm @ x) for x in arms])

    def learn(self, t, x, reward, sigma, k):
        self.past.append((x, reward))


class SlowDiscounted(SlowRidge):
    def __init__(self, problem, K, rng, window, beta, lam):
        super().__init__(problem, K, rng, window, beta, lam, discounted=True)


class SlowExp3S:
    def __init__(self, problem, K, rng, gamma):
        self.W, self.gamma, self.share = np.ones(problem.means.size), gamma, 1 / K
        self.uniform = rng.random(K)

    def choose(self, t, arms):
        n = len(self.W)
        self.p = (1 - self.gamma) * self.W / self.W.sum() + self.gamma / n
        return min(n - 1, int(np.searchsorted(np.cumsum(self.p), self.uniform[t - 1], "right")))

    def learn(self, t, x, reward, sigma, k):
        n, total = len(self.W), self.W.sum()
        self.W[k] *= math.exp(self.gamma * min(1, max(0, reward)) / self.p[k] / n)
        self.W += math.e * self.share / n * total


@pytest.mark.parametrize("theory", [False, True])
def test_weighted_regression_decides_as_its_definition(theory):
    parameters = {"window": 60, "beta": 0.01 if theory else 0.8, "alpha": 0.1, "gamma": 0.3}
    lockstep(page.WEIGHTED, SlowWeighted, 200, CHANGING, **parameters, theory=theory)


@pytest.mark.parametrize("theory", [False, True])
def test_layers_decide_as_their_definition(theory):
    parameters = {"window": 90, "alpha": 2.0**-5, "scale": 0.01 if theory else 0.7}
    lockstep(page.SAVE, SlowLayers, 200, CHANGING, **parameters, theory=theory)


@pytest.mark.parametrize("theory", [False, True])
def test_bandit_over_bandits_decides_as_its_definition(theory):
    lockstep(page.BOB, SlowBob, 400, FIXED, scale=0.01 if theory else 0.7, theory=theory)


def test_meta_learner_draws_as_exp3_defines():
    """At horizons a slow twin can play γ is 1 and the draws are uniform, so it is tested alone."""
    rng, P, gamma, reach, earned, s = np.random.default_rng(3), 5, 0.3, 40.0, 0.0, np.ones(5)
    pool = np.column_stack([np.arange(1.0, P + 1), np.full(P, 2.0), np.zeros(P), np.ones(P) / P])
    now, j, p = np.zeros(4, np.int64), 0, pool[:, 3].copy()
    for block in range(300):
        if block > 0:
            s[j] *= math.exp(gamma * min(1, max(0, 0.5 + earned / (2 * reach))) / (P * p[j]))
        p = (1 - gamma) * s / s.sum() + gamma / P
        uniform = rng.random()
        j = int(np.searchsorted(np.cumsum(p), uniform, "right"))
        page.begin_block(pool, now, gamma, page.exp3_gain(earned, reach), uniform, block == 0)
        assert now[[0, 2, 3]].tolist() == [j, j + 1, 2]
        assert pool[:, 3] == pytest.approx(p)
        earned = rng.normal(10 * j, 30)


def test_meta_learner_has_the_stated_constants():
    problem = page.make_drifting(np.random.default_rng(0), 240_000)
    state = page.BOB.init(problem, 240_000, np.random.default_rng(7), candidates="pool")
    naive = SlowBob(problem, 240_000, np.random.default_rng(7), 1.0)
    assert naive.gamma < 1
    assert (state.gamma, state.reach) == pytest.approx((naive.gamma, naive.reach))
    assert (state.block, len(state.pool)) == (naive.H, len(naive.pairs))


def test_restarts_decide_as_their_definitions():
    lockstep(page.RESTART_UCB, SlowRestart, 200, CHANGING, window=60, beta=0.6)
    lockstep(page.ORACLE_RESTART, SlowRestart, 400, FIXED, window="oracle", beta=0.3)


def test_window_and_discount_decide_as_their_definitions():
    lockstep(page.SW_UCB, SlowRidge, 200, CHANGING, window=40, beta=0.6, lam=0.1)
    lockstep(page.D_LINUCB, SlowDiscounted, 200, CHANGING, window=40, beta=0.6, lam=0.1)


def test_exp3s_decides_as_its_definition():
    lockstep(page.EXP3S, SlowExp3S, 1000, FIXED, gamma=0.1)


def test_deep_layers_read_the_residuals():
    """Twelve layers, the first nine closed to everything: the radius must use the direct sum."""
    rng, m, w, L = np.random.default_rng(0), 9, 50, 12
    fit, tally, samples = np.zeros((L, 5, 2)), np.zeros((L, 3)), []
    page.begin(fit, m, 4.0 ** (m + 1))
    for _ in range(40):
        x, r = rng.standard_normal(2), rng.standard_normal()
        norm = page.length(fit, m, x)
        weight = min(1.0, 2.0 ** -(m + 1) / norm) ** 2 * 1e6
        page.shrink(fit, m, weight, norm)
        page.accumulate(fit, m, x, weight * r)
        page.estimate(fit, m)
        tally[m] += weight * r * r, 1.0, 0.0
        samples.append((x, r, weight))
    direct = sum(weight * (r - fit[m, 3] @ x) ** 2 for x, r, weight in samples)
    log, log1 = math.log(4 * w**2 * L / 0.01), math.log(4 * (w + 1) ** 2 * L / 0.01)
    assert 2.0 ** (m + 1) >= 64 * math.sqrt(log1)
    two = 2.0 ** -(m + 1)
    spread = math.sqrt(8 * direct + 6 * log1 + 16 * two**2)
    expected = two * (16 * spread * math.sqrt(log) + 6 * log + 1)
    assert page.layer_radius(fit, tally, m, w, L, 1.0, 0.01) == pytest.approx(expected, rel=1e-9)


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
    assert page.residual_variance(fit, tally, m) == pytest.approx(direct, rel=1e-8, abs=1e-8)


def test_gram_of_the_window_does_not_drift():
    rng, w = np.random.default_rng(3), 30
    problem = page.make_drifting(rng, 20_000, **CHANGING)
    state = page.init_sliding(problem, 20_000, rng, window=w)
    X = rng.standard_normal((20_000, 3))
    for t, x in enumerate(X, start=1):
        page.learn_sliding(state, t, 0, x, 1.0, 0)
    assert state.gram == pytest.approx(np.eye(3) + X[-w:].T @ X[-w:], abs=1e-9)
    assert state.fit[0, :3] == pytest.approx(np.linalg.inv(state.gram), abs=1e-9)


def test_printed_problem_has_the_stated_moments():
    p = 0.5 / np.arange(1, 101)
    problem = page.make_drifting(np.random.default_rng(0), 100)
    chance, gap = problem.noise.T
    assert chance == pytest.approx(p)
    assert gap == pytest.approx(np.ones(100))  # Bernoulli(p) − p
    assert problem.sigma**2 == pytest.approx(p * (1 - p))
    assert page.total_variation(page.sine_path(200_000, 3.0)) == pytest.approx(
        9 * math.sqrt(2), rel=1e-4
    )


@pytest.mark.parametrize("noise", ["bursts", "level"])
def test_noise_spends_its_variance(noise):
    sigma, chance = page.noise_schedule(np.random.default_rng(1), 50_000, noise, 5_000.0)
    assert (sigma**2).sum() == pytest.approx(5_000, rel=0.05)
    assert (sigma <= 1).all() and (chance == 0.5).all()


def test_oracle_restarts_where_the_best_arm_changes():
    problem = page.make_drifting(np.random.default_rng(0), 1000, budget=1.0, path="square")
    assert problem.change.sum() == 5  # five half periods, the first begins with round 1
    begins = page.epochs(problem, 1000, "oracle", 1.0)
    assert begins is problem.change
    assert page.epochs(problem, 1000, 300, 1.0).nonzero()[0].tolist() == [0, 300, 600, 900]


def test_hard_instance_stays_within_its_budgets():
    K, d, B, V = 5_000, 3, 0.5, 300.0
    problem = page.make_drifting(
        np.random.default_rng(2), K, budget=B, path="hard", variance=V, d=d
    )
    means = problem.theta @ problem.pool.T
    assert (means >= 0).all()
    assert (means * (1 - means)).max(axis=1).sum() <= V
    assert page.total_variation(problem.theta) <= B
    assert np.linalg.norm(problem.pool[:, :d], axis=1) == pytest.approx(np.ones(8))


@pytest.mark.parametrize("rate, choice", [
    (page.woful_rate, page.woful_choice), (page.save_rate, page.save_choice),
])  # fmt: skip
def test_corollary_is_within_a_constant_of_the_best_pair(rate, choice):
    windows, floors = np.meshgrid(np.geomspace(1, 1e6, 200), np.geomspace(1e-6, 1e3, 200))
    for B in (1.0, 30.0, 1e4):
        for V in (1.0, 1e3, 1e6):
            best = rate(1e6, 4.0, B, V, windows, floors).min()
            assert rate(1e6, 4.0, B, V, *choice(1e6, 4.0, B, V)) <= 4 * best


def test_exp3_distribution_sums_to_one_and_survives_large_scores():
    pool = np.array([[1.0, 1.0, s, 0.0] for s in (0.0, 800.0, 801.0)])
    page.exp3_chances(pool, 0.1)
    assert pool[:, 3].sum() == pytest.approx(1)
    assert pool[0, 3] == pytest.approx(0.1 / 3)
    assert pool[2, 3] / pool[1, 3] > 2


def test_pool_is_runnable_and_counted_as_printed():
    assert page.pool_size(240_000, 2) == 240
    pairs, H = page.bob_pairs(240_000, 2), page.bob_block(240_000, 2)
    assert len(set(pairs)) == len(pairs)
    assert all(1 <= w <= H and 0 < a < 1 for w, a in pairs)


@pytest.mark.parametrize("call, words", [
    (lambda p: page.init_sliding(p, 100, None, window=0), "window must lie in [1, K]"),
    (lambda p: page.init_weighted(p, 100, None, window=101), "window must lie in [1, K]"),
    (lambda p: page.init_discounted(p, 100, None, window=-3), "window must lie in [1, K]"),
    (lambda p: page.init_layers(p, 100, None, window=10, alpha=1.0), "α must lie in (0, 1)"),
    (lambda p: page.init_layers(p, 100, None, window=10, alpha=-0.5), "α must lie in (0, 1)"),
    (lambda p: page.init_weighted(p, 100, None, window=10, alpha=0.0), "α must be positive"),
    (lambda p: page.init_weighted(p, 100, None, window=10, observe=-0.1), "cannot be negative"),
    (lambda p: page.init_weighted(p, 100, None, window=10, observe=math.nan), "negative"),
    (lambda p: page.check_values("dimensions", [2], 2), "at least 2 of them"),
    (lambda p: page.check_values("horizons", [3000, 3000], 1), "different values"),
    (lambda p: page.make_drifting(np.random.default_rng(0), 100, variance=-1.0), "total variance"),
])  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(call, words):
    problem = page.make_drifting(np.random.default_rng(0), 100)
    with pytest.raises(BookError) as refusal:
        call(problem)
    assert words in str(refusal.value)
    assert str(refusal.value).count(". ") == 0
