"""Linear bandits: the fast policies decide as naive ones do, and the lemmas hold."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import chapters
from lib.kernels import TIE, rank_one_inverse
from lib.linear import directions
from lib.simulate import simulate

PAGE = chapters.load("linear-bandits")
EXPERIMENTS = chapters.load("linear-bandits/experiments")
THEORY = chapters.load("linear-bandits/theory")
WEIGHTED = chapters.load("linear-bandits/weighted")
ROUNDS = 150


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "store"))


def instance(seed, users=3, d=4, arms=6, items=30, noise=0.4):
    """Return a problem and the offers and noise of some rounds, drawn without the page's `draw`."""
    rng = np.random.default_rng(seed)
    problem = PAGE.make_problem(rng, users=users, d=d, arms=arms, items=items, noise=noise)
    rounds = [
        (int(rng.integers(users)), rng.choice(items, arms, replace=False), rng.normal(0, noise))
        for _ in range(ROUNDS)
    ]
    return problem, rounds


def decisions(policy, problem, rounds, seed=0, **parameters):
    """Return what the three functions of a policy choose on the given rounds."""
    rng = np.random.default_rng(seed)
    state = policy.init(problem, len(rounds), rng, **{**policy.parameters, **parameters})
    chosen = []
    for t, (user, items, noise) in enumerate(rounds, 1):
        arms = problem.pool[items]
        k = policy.choose(state, t, user, arms, items)
        reward = arms[k] @ problem.theta[user] + noise
        policy.learn(state, t, user, arms[k], reward, items[k])
        chosen.append(int(k))
    return chosen


class Naive(NamedTuple):
    """A policy by the book: the whole history, inverted afresh in every round."""

    lam: float = 1.0
    beta: float | None = None  # constant width; None for the radius of the theorem
    delta: float = 0.05
    sigma: float = 1.0
    alpha: float = np.inf
    C: float = 0.0
    individual: bool = False
    v: float | None = None  # Thompson sampling when given

    def play(self, problem, rounds, seed=0):
        rng = np.random.default_rng(seed)
        history, chosen = [], []
        for user, items, noise in rounds:
            mine = [row for row in history if not self.individual or row[0] == user]
            X = np.array([row[1] for row in mine]).reshape(-1, problem.pool.shape[1])
            r = np.array([row[2] for row in mine])
            w = np.array([row[3] for row in mine])
            M = self.lam * np.eye(X.shape[1]) + (w[:, None] * X).T @ X
            inverse = np.linalg.inv(M)
            theta = inverse @ (X.T @ (w * r))
            arms = problem.pool[items]
            norms = np.sqrt(np.einsum("kd,de,ke->k", arms, inverse, arms))
            if self.v is None:
                scores = arms @ theta + self.radius(M) * norms
            else:
                root = np.linalg.cholesky(M).T
                noise_now = rng.standard_normal(theta.size)
                scores = arms @ (theta + self.v * np.linalg.solve(root, noise_now))
            k = int(np.flatnonzero(scores >= scores.max() - TIE * max(1, abs(scores.max())))[0])
            weight = min(1.0, self.alpha / norms[k])
            history.append((user, arms[k], arms[k] @ problem.theta[user] + noise, weight))
            chosen.append(k)
        return chosen

    def radius(self, M):
        if self.beta is not None:
            return self.beta
        d = len(M)
        ratio = np.linalg.slogdet(M)[1] - d * np.log(self.lam)
        growing = self.sigma * np.sqrt(2 * np.log(1 / self.delta) + ratio)
        guard = self.C * min(self.alpha, 1 / np.sqrt(self.lam))
        return np.sqrt(self.lam) + growing + guard


SAME = {
    "LinUCB": (PAGE.LINUCB, {"lam": 0.7, "beta": 0.6}, Naive(0.7, 0.6)),
    "LinUCB-Ind": (PAGE.LINUCB_IND, {"beta": 0.6}, Naive(1.0, 0.6, individual=True)),
    "OFUL": (
        PAGE.OFUL,
        {"lam": 0.5, "sigma": 0.4, "delta": 0.1},
        Naive(0.5, sigma=0.4, delta=0.1),
    ),
    "CW-OFUL": (
        WEIGHTED.CW_OFUL,
        {"sigma": 0.4, "budget": 8.0},
        Naive(sigma=0.4, C=8.0, alpha=0.25),
    ),
    "CW-OFUL-Ind": (
        WEIGHTED.CW_OFUL_IND,
        {"alpha": 0.2, "beta": 1.5},
        Naive(beta=1.5, alpha=0.2, individual=True),
    ),
    "Thompson sampling": (EXPERIMENTS.THOMPSON, {"lam": 2.0, "v": 0.3}, Naive(2.0, v=0.3)),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", SAME)
def test_fast_path_decides_as_the_naive_one(name, seed):
    policy, parameters, naive = SAME[name]
    problem, rounds = instance(seed)
    assert decisions(policy, problem, rounds, seed, **parameters) == naive.play(
        problem, rounds, seed
    )


@pytest.mark.parametrize("seed", range(3))
def test_without_weights_and_with_a_constant_radius_cw_oful_is_linucb(seed):
    problem, rounds = instance(seed)
    unweighted = decisions(WEIGHTED.CW_OFUL, problem, rounds, alpha=np.inf, beta=0.8)
    assert unweighted == decisions(PAGE.LINUCB, problem, rounds, beta=0.8)


def test_theory_sets_the_threshold_and_the_radius_of_the_weights():
    problem, _ = instance(0)
    corrupted = WEIGHTED.CorruptedProblem(*problem, 10, 20.0)
    state = WEIGHTED.init_cw_oful(corrupted, 100, None, alpha="theory", budget="told")
    assert state.alpha == pytest.approx(2.0 / 20.0)
    assert state.offset == pytest.approx(1.0 + 2.0)  # √λ S + α C, and α C = √d
    unknown = WEIGHTED.init_cw_oful(problem, 100, None, alpha="theory", budget="unknown")
    assert unknown.alpha == pytest.approx(2.0 / 10.0)
    honest = WEIGHTED.init_cw_oful(problem, 100, None, alpha="theory", budget=0.0)
    assert honest.alpha == np.inf and honest.offset == 1.0
    enlarged = WEIGHTED.init_cw_oful(corrupted, 100, None, budget="told")
    assert enlarged.offset == pytest.approx(1.0 + 20.0)


def test_thompson_samples_have_the_posterior_law():
    """The sample of the last choice is left in the scratch row of the state."""
    rng = np.random.default_rng(5)
    problem, _ = instance(1, users=1, d=3)
    state = EXPERIMENTS.init_thompson(problem, 100, rng, lam=1.0, v=0.7)
    X, r = rng.normal(size=(30, 3)), rng.normal(size=30)
    for x, reward in zip(X, r, strict=True):
        EXPERIMENTS.learn_thompson(state, 1, 0, x, reward, 0)
    samples = np.empty((20_000, 3))
    for i in range(len(samples)):
        EXPERIMENTS.choose_thompson(state, 1, 0, problem.pool[:2], np.arange(2))
        samples[i] = state.row
    inverse = np.linalg.inv(np.eye(3) + X.T @ X)
    scale = 0.7 * np.sqrt(np.diag(inverse))
    assert np.all(np.abs(samples.mean(0) - inverse @ X.T @ r) < 5 * scale / np.sqrt(len(samples)))
    assert np.allclose(np.cov(samples.T), 0.49 * inverse, atol=0.05 * scale.max() ** 2)


@settings(max_examples=50, deadline=None)
@given(
    d=st.integers(1, 6),
    n=st.integers(1, 60),
    lam=st.floats(1e-3, 1e3),
    seed=st.integers(0, 2**32 - 1),
)
def test_determinant_identity_and_elliptical_potential(d, n, lam, seed):
    rng = np.random.default_rng(seed)
    X = directions(rng, n, d) * rng.random((n, 1))
    M_inverse = np.eye(d) / lam
    surprise = np.array([rank_one_inverse(M_inverse, x, 1.0) for x in X])
    logdet = np.log1p(surprise).sum()
    exact = np.linalg.slogdet(np.eye(d) + X.T @ X / lam)[1]
    assert logdet == pytest.approx(exact, rel=1e-8, abs=1e-10)
    assert np.minimum(1, surprise).sum() <= 2 * logdet * (1 + 1e-9)
    assert logdet <= d * np.log1p(n / (lam * d)) * (1 + 1e-9)


def test_oful_state_carries_the_weighted_determinant():
    problem, rounds = instance(2, users=1)
    state = WEIGHTED.init_cw_oful(problem, ROUNDS, None, lam=0.8, alpha=0.3)
    M = 0.8 * np.eye(4)
    for t, (user, items, noise) in enumerate(rounds, 1):
        arms = problem.pool[items]
        x = arms[WEIGHTED.choose_cw_oful(state, t, user, arms, items)]
        weight = min(1.0, 0.3 / np.sqrt(x @ np.linalg.solve(M, x)))
        M += weight * np.outer(x, x)
        WEIGHTED.learn_cw_oful(state, t, user, x, x @ problem.theta[user] + noise, 0)
    assert state.logdet[0] == pytest.approx(np.linalg.slogdet(M / 0.8)[1])
    assert WEIGHTED.watch_cw_oful(state, problem)["beta"] == pytest.approx(
        WEIGHTED.radius(state, 0)
    )


def test_audit_plays_like_oful():
    """The loop that evaluates the proof and the policy of the page are written independently."""
    audit = THEORY.audit(
        np.random.default_rng(8), rounds=ROUNDS, lam=1.0, delta=0.05, d=4, arms=6, items=30
    )
    rng = np.random.default_rng(8)
    problem = PAGE.make_problem(rng, d=4, arms=6, items=30)
    state = PAGE.init_oful(problem, ROUNDS, None, sigma=problem.noise)
    regret = 0.0
    for t in range(1, ROUNDS + 1):
        user, items, arms = PAGE.draw(problem, t, rng)
        means = arms @ problem.theta[user]
        k = PAGE.choose_oful(state, t, user, arms, items)
        reward = PAGE.feedback(problem, t, user, items[k], means[k], rng)
        regret += means.max() - means[k]
        PAGE.learn_oful(state, t, user, arms[k], reward, items[k])
    assert audit["regret"][-1] == pytest.approx(regret)
    assert audit["logdet"][-1] == pytest.approx(state.logdet[0])
    beta = THEORY.closed_form(ROUNDS, 4, 1.0, 0.05, problem.noise)[0]
    assert PAGE.radius(state, 0) <= beta


def first_two_items(problem, t, rng):
    return 0, np.array([0, 1]), problem.pool[:2]


def plane_problem(rng):
    """Two arms of means 0.6 and 0.8, no noise: the trajectory can be worked out on paper."""
    theta, pool = np.array([[0.6, 0.8]]), np.eye(2)
    return PAGE.LinearProblem(theta, pool, np.arange(2), 2, 0.0)


def plain(function):
    return function.py_func


@pytest.mark.parametrize(
    ("policy", "parameters", "regret"),
    [
        # All scores tie at β, so arm 0 is played first and loses 0.2. It then scores
        # 0.3 + β/√2 against β: with β = 0 it is played for ever, with β = 2 arm 1 is next, then
        # 0.3 + 1.41 < 0.4 + 1.41, again arm 1, which falls to 0.53 + 1.15 = 1.69 < 1.71: arm 0.
        ("LINUCB", {"beta": 0.0}, [0.2, 0.4, 0.6, 0.8]),
        ("LINUCB", {"beta": 2.0}, [0.2, 0.2, 0.2, 0.4]),
        ("CLAIRVOYANT", {"knows": True}, [0.0, 0.0, 0.0, 0.0]),
        ("UNIFORM", {"knows": False}, [0.2, 0.4, 0.6, 0.8]),
    ],
)
def test_regret_of_a_trajectory_worked_out_by_hand(policy, parameters, regret):
    functions = {field: plain(getattr(PAGE.LINEAR, field)) for field in ("expected", "feedback")}
    environment = PAGE.LINEAR._replace(make=plane_problem, draw=first_two_items, **functions)
    fast = getattr(PAGE, policy)
    slow = fast._replace(choose=plain(fast.choose), learn=plain(fast.learn), parameters=parameters)
    table = simulate(environment, {"it": slow}, T=4, trials=1, seed=0, checkpoints=4)
    assert table["regret"].to_numpy() == pytest.approx(regret)


def test_oracle_has_no_regret_and_uniform_choice_loses_what_it_must():
    policies = {"Oracle": PAGE.CLAIRVOYANT, "Uniform": PAGE.UNIFORM}
    setting = {"d": 3, "arms": 5, "items": 50, "users": 2}
    table = simulate(PAGE.LINEAR, policies, T=4_000, trials=1, seed=4, settings=[setting])
    final = table[table["t"] == 4_000].set_index("policy")["regret"]
    assert final["Oracle"] == pytest.approx(0, abs=1e-6)
    assert 0.3 * 4_000 < final["Uniform"] < 1.0 * 4_000


def test_corruption_flips_the_mean_of_the_first_rounds_only():
    problem, _ = instance(0, noise=0.0)
    corrupted = WEIGHTED.CorruptedProblem(*problem, 3, 6.0)
    rng = np.random.default_rng(0)
    paid = [WEIGHTED.feedback_corrupted.py_func(corrupted, t, 0, 0, 0.5, rng) for t in (1, 3, 4)]
    assert paid == [-0.5, -0.5, 0.5]


@pytest.mark.parametrize(
    ("users", "distinct", "different"), [(6, None, 6), (6, 1, 1), (6, 4, 4), (1, None, 1)]
)
def test_users_share_as_many_tastes_as_asked(users, distinct, different):
    problem = PAGE.make_problem(np.random.default_rng(0), users=users, distinct=distinct)
    assert len(np.unique(problem.theta, axis=0)) == different
    assert np.allclose(np.linalg.norm(problem.theta, axis=1), 1)


LITERAL = {
    "LinUCB": (PAGE.LINUCB, PAGE.LITERAL, {"lam": 0.7, "beta": 0.6}),
    "LinUCB-Ind": (PAGE.LINUCB_IND, PAGE.LITERAL, {"beta": 0.6, "sharing": "none"}),
    "OFUL": (PAGE.OFUL, PAGE.LITERAL, {"lam": 0.5, "sigma": 0.4, "delta": 0.1}),
    "CW-OFUL": (WEIGHTED.CW_OFUL, WEIGHTED.LITERAL_CW, {"sigma": 0.4, "budget": 8.0}),
    "Thompson sampling": (
        EXPERIMENTS.THOMPSON,
        EXPERIMENTS.LITERAL_THOMPSON,
        {"lam": 2.0, "v": 0.3},
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", LITERAL)
def test_literal_version_of_the_page_decides_as_the_fast_one(name, seed):
    fast, literal, parameters = LITERAL[name]
    problem, rounds = instance(seed)
    assert decisions(fast, problem, rounds, seed, **parameters) == decisions(
        literal, problem, rounds, seed, **parameters
    )


def test_released_bonus_has_no_root_and_a_growing_width():
    problem, _ = instance(0, users=1)
    state = EXPERIMENTS.NO_ROOT.init(problem, 10, None, beta=np.inf)
    state.M_inverse[0] = np.diag([0.01, 0.04, 1.0, 1.0])
    state.theta[0] = [0.2, 0.0, 0.0, 0.0]
    width = 1 + np.sqrt(4 * np.log1p(3 / 4) + 4 * np.log(3) + np.log(2))
    assert 0.2 + width * 0.01 > width * 0.04  # without the root the first arm is the better one
    assert 0.2 + width * 0.1 < width * 0.2  # with it, the second
    assert EXPERIMENTS.choose_without_root(state, 3, 0, np.eye(4)[:2], np.arange(2)) == 0
