"""The page on misspecified users: fast equals naive, decision by decision, and the mathematics."""

import numpy as np
import pytest

from lib import chapters
from lib.errors import BookError
from lib.kernels import TIE
from lib.linear import directions
from lib.trial import generators

PAGE = chapters.load("misspecified-users")

SMALL = dict(users=9, m=3, d=4, items=30, arms=6, noise=0.2, level=0.15)


def f(count):
    return np.sqrt((1 + np.log(1 + count)) / (1 + count))


def first_best(scores):
    best = scores.max()
    return int(np.flatnonzero(scores >= best - TIE * max(1.0, abs(best)))[0])


def index(history, arms, lam, beta, eps, released=False):
    """The index of the algorithm, with the bonus summed over the whole history."""
    d = arms.shape[1]
    X = np.array([x for x, _ in history]).reshape(-1, d)
    r = np.array([reward for _, reward in history])
    inverse = np.linalg.inv(lam * np.eye(d) + X.T @ X)
    forms = np.einsum("kd,de,ke->k", arms, inverse, arms)
    bonus = beta * (forms if released else np.sqrt(forms))
    return arms @ (inverse @ (X.T @ r)) + bonus + eps * np.abs(arms @ inverse @ X.T).sum(axis=1)


def ridge(history, lam, d):
    X = np.array([x for x, _ in history]).reshape(-1, d)
    r = np.array([reward for _, reward in history])
    return np.linalg.solve(lam * np.eye(d) + X.T @ X, X.T @ r)


def drive(policy, T, seed, choose_naive, learn_naive, after=lambda state, t: None, **changes):
    """Let the policy play, ask the naive version in every round, and compare the choices."""
    rngs = generators(seed, 0, 0)
    problem = PAGE.make_misspecified(rngs[0], **{**SMALL, **changes})
    state = policy.init(problem, T, rngs[2], **policy.parameters)
    for t in range(1, T + 1):
        user, items, arms = PAGE.draw(problem, t, rngs[1])
        items = items.copy()
        k = policy.choose(state, t, user, arms, items)
        assert k == choose_naive(user, arms), f"round {t}"
        mean = PAGE.expected(problem, t, user, items, arms)[k]
        reward = mean + problem.noise * rngs[1].standard_normal()
        policy.learn(state, t, user, arms[k], reward, items[k])
        learn_naive(t, user, arms[k], reward)
        after(state, t)
    return state, problem


class NaiveGraph:
    """RCLUMB line by line: a matrix of edges, lists of rounds, everything computed afresh."""

    def __init__(self, u, d, lam, beta, alpha1, alpha2, eps, slack=None, component=False, **other):
        self.edges = np.ones((u, u), dtype=bool)
        self.rounds = [[] for _ in range(u)]
        self.d, self.lam, self.beta, self.eps, self.other = d, lam, beta, eps, other
        self.alpha1, self.tolerance = alpha1, alpha2 * (eps if slack is None else slack)
        self.component, self.deleted = component, 0

    def cluster(self, user):
        if not self.component:
            return self.edges[user]
        found = self.edges[user]
        while (more := self.edges[found].any(axis=0)).sum() > found.sum():
            found = more
        return found

    def choose(self, user, arms):
        pooled = [r for i in np.flatnonzero(self.cluster(user)) for r in self.rounds[i]]
        return first_best(index(pooled, arms, self.lam, self.beta, self.eps, **self.other))

    def learn(self, t, user, x, reward):
        self.rounds[user].append((x.copy(), reward))
        theta = [ridge(r, self.lam, self.d) for r in self.rounds]
        for other in np.flatnonzero(self.edges[user]):
            threshold = self.alpha1 * (f(len(self.rounds[user])) + f(len(self.rounds[other])))
            gap = np.linalg.norm(theta[user] - theta[other])
            if other != user and gap >= threshold + self.tolerance:
                self.edges[user, other] = self.edges[other, user] = False
                self.deleted += 1


class NaiveSets:
    """RSCLUMB line by line."""

    def __init__(self, u, d, lam, beta, alpha1, alpha2, eps, pooled=False, **other):
        self.sets = {0: set(range(u))}
        self.rounds = [[] for _ in range(u)]
        self.checked = set()
        self.d, self.lam, self.beta, self.eps, self.other = d, lam, beta, eps, other
        self.alpha1, self.tolerance, self.pooled = alpha1, alpha2 * eps, pooled
        self.splits = self.merges = 0

    def of(self, user):
        return next(V for V, members in self.sets.items() if user in members)

    def history(self, V):
        return [r for i in sorted(self.sets[V]) for r in self.rounds[i]]

    def centre(self, V):
        if self.pooled:
            return ridge(self.history(V), self.lam, self.d)
        return np.mean([ridge(self.rounds[i], self.lam, self.d) for i in self.sets[V]], axis=0)

    def choose(self, user, arms):
        pooled = self.history(self.of(user))
        return first_best(index(pooled, arms, self.lam, self.beta, self.eps, **self.other))

    def threshold(self, first, second):
        return self.alpha1 * (f(first) + f(second)) + self.tolerance

    def learn(self, t, user, x, reward):
        if (t + 1) & t == 0:
            self.checked = set()
        self.rounds[user].append((x.copy(), reward))
        if user in self.checked:
            return
        V = self.of(user)
        gap = np.linalg.norm(ridge(self.rounds[user], self.lam, self.d) - self.centre(V))
        counts = len(self.rounds[user]), len(self.history(V))
        if len(self.sets[V]) > 1 and gap > self.threshold(*counts):
            self.sets[V].remove(user)
            self.sets[min(set(range(len(self.rounds))) - set(self.sets))] = {user}
            self.splits += 1
        self.checked.add(user)
        while self.merge_once():
            self.merges += 1

    def merge_once(self):
        done = sorted(V for V, members in self.sets.items() if members <= self.checked)
        for i, V in enumerate(done):
            for W in done[i + 1 :]:
                gap = np.linalg.norm(self.centre(V) - self.centre(W))
                if gap < self.threshold(len(self.history(V)), len(self.history(W))) / 2:
                    self.sets[V] |= self.sets.pop(W)
                    return True
        return False


SCALES = dict(lam=1.0, beta=0.4, alpha1=0.5, alpha2=0.5, eps=0.15)


@pytest.mark.parametrize(
    "changes",
    [{}, {"alpha1": 0.1, "alpha2": 0.0}, {"slack": 0.4}, {"eps": 0.0}, {"released": True}],
    ids=["tolerant", "falls to pieces", "own slack", "no bonus", "released"],
)
def test_rclumb_equals_its_naive_version(changes):
    parameters = {**SCALES, **changes}
    naive = NaiveGraph(SMALL["users"], SMALL["d"], **parameters)
    policy = PAGE.RCLUMB._replace(parameters=parameters)

    def same_graph(state, t):
        together = PAGE.together_of(state)
        np.testing.assert_array_equal(together, naive.edges)
        for i in range(len(together)):  # equal numbers of neighbourhoods mean equal neighbourhoods
            for j in range(i):
                settled = not (state.moved[i] or state.moved[j])
                if settled and state.shared[i] == state.shared[j]:
                    np.testing.assert_array_equal(together[i], together[j])

    drive(policy, 500, 3, naive.choose, naive.learn, same_graph)
    assert naive.deleted > 5


def test_component_variant_equals_its_naive_version():
    naive = NaiveGraph(SMALL["users"], SMALL["d"], **SCALES, component=True)
    policy = PAGE.RCLUMB._replace(parameters={**SCALES, "component": True})
    drive(policy, 400, 5, naive.choose, naive.learn)
    assert naive.deleted > 5


@pytest.mark.parametrize("seed", [7, 8, 12])
@pytest.mark.parametrize("changes", [{}, {"pooled": True}, {"released": True}], ids=str)
def test_rsclumb_equals_its_naive_version(changes, seed):
    parameters = {**SCALES, "alpha1": 0.7, "alpha2": 1.0, **changes}
    naive = NaiveSets(SMALL["users"], SMALL["d"], **parameters)
    policy = PAGE.RSCLUMB._replace(parameters=parameters)

    def same_sets(state, t):
        found = {frozenset(np.flatnonzero(state.cluster == V)) for V in np.unique(state.cluster)}
        assert found == {frozenset(members) for members in naive.sets.values()}

    state, _ = drive(policy, 500, seed, naive.choose, naive.learn, same_sets, noise=0.5)
    assert naive.splits >= 3
    assert naive.merges >= (2 if seed == 7 else 0)
    assert (state.work[1], state.work[2]) == (naive.splits, naive.merges)


def test_index_equals_the_sum_over_the_history():
    """Counts per item give the bonus of the whole history, for few and for most items seen."""
    rng = np.random.default_rng(4)
    for rounds in rng.integers(1, 60, 1000):
        pool, reward = directions(rng, 12, 4), rng.standard_normal(rounds)
        items = rng.integers(12, size=rounds)
        history, arms = (
            list(zip(pool[items], reward, strict=True)),
            directions(rng, 8, 4),
        )
        inverse = np.linalg.inv(np.eye(4) + pool[items].T @ pool[items])
        seen = np.bincount(items, minlength=12).astype(float)
        theta = inverse @ pool[items].T @ reward
        rough, counts = pool.astype(np.float32), seen.astype(np.float32)
        k = PAGE.robust_argmax(inverse, theta, counts, pool, rough, arms, 0.4, 0.5, False)
        assert k == first_best(index(history, arms, 1.0, 0.4, 0.5))


@pytest.mark.parametrize("sharing", ["all", "none", "clusters"])
def test_rlinucb_equals_its_naive_version(sharing):
    parameters = dict(lam=1.0, beta=0.4, eps=0.15, sharing=sharing)
    u, m = SMALL["users"], SMALL["m"]
    group = {"all": np.zeros(u, int), "none": np.arange(u), "clusters": np.arange(u) * m // u}
    rounds = [[] for _ in range(u)]
    drive(
        PAGE.RLINUCB._replace(parameters=parameters), 200, 9,
        lambda user, arms: first_best(index(rounds[group[sharing][user]], arms, 1.0, 0.4, 0.15)),
        lambda t, user, x, r: rounds[group[sharing][user]].append((x.copy(), r)),
    )  # fmt: skip


def test_informed_oracle_equals_its_naive_version():
    """It is LinUCB on rewards without their deviations, which it adds back when it predicts."""
    u, m = SMALL["users"], SMALL["m"]
    rounds, label = [[] for _ in range(m)], np.arange(u) * m // u
    problem = PAGE.make_misspecified(generators(13, 0, 0)[0], **SMALL)
    deviation = problem.mean - problem.theta @ problem.pool.T

    def items_of(arms):
        return [(problem.pool == x).all(axis=1).argmax() for x in np.atleast_2d(arms)]

    def choose(user, arms):
        linear = index(rounds[label[user]], arms, 1.0, 0.4, 0.0)
        return first_best(linear + deviation[user, items_of(arms)])

    def learn(t, user, x, reward):
        rounds[label[user]].append((x.copy(), reward - deviation[user, items_of(x)[0]]))

    drive(PAGE.INFORMED._replace(parameters=dict(lam=1.0, beta=0.4)), 200, 13, choose, learn)
    assert np.abs(deviation).max() > 0.1


def test_neighbourhoods_keep_the_sums_of_their_members():
    """After catching up, every regression equals the sum over the closed neighbourhood."""
    parameters = {**SCALES, "alpha1": 0.3}
    naive = NaiveGraph(SMALL["users"], SMALL["d"], **parameters)
    policy = PAGE.RCLUMB._replace(parameters=parameters)
    state, _ = drive(policy, 300, 11, naive.choose, naive.learn)
    u = SMALL["users"]
    for user in range(u):
        PAGE.pool_neighbours(state, 301, user)
        g = state.shared[user]
        members = np.flatnonzero(naive.edges[user])
        for sums in (state.ridge.M, state.ridge.b, state.ridge.count, state.seen):
            np.testing.assert_allclose(sums[u + g], sums[members].sum(axis=0), atol=1e-9)
    assert state.seen[:u].sum() == 300


def test_nothing_is_deleted_with_an_infinite_tolerance():
    policy = PAGE.RCLUMB._replace(parameters={**SCALES, "alpha1": np.inf})
    naive = NaiveGraph(SMALL["users"], SMALL["d"], **{**SCALES, "alpha1": np.inf})
    state, _ = drive(policy, 200, 1, naive.choose, naive.learn)
    assert state.sharing[0] == SMALL["users"]


@pytest.mark.parametrize(
    ("sizes", "word"),
    [
        (dict(eps_star=-0.1), "eps_star"),
        (dict(eps_star=float("nan")), "eps_star"),
        (dict(m=11), "clusters"),
        (dict(arms=51), "arms"),
        (dict(d=51), "d is"),
    ],
)
def test_bad_sizes_are_refused_in_a_sentence(sizes, word):
    good = dict(users=10, m=2, d=3, items=50, arms=5, eps_star=0.1)
    PAGE.check_sizes(**good)
    with pytest.raises(BookError, match=word):
        PAGE.check_sizes(**{**good, **sizes})


@pytest.mark.parametrize("values", [[], [0.1], [0.1, 0.2, 0.1]])
def test_a_sweep_needs_different_values(values):
    PAGE.check_sweep("levels", [0.1, 0.2], 2)
    with pytest.raises(BookError, match="levels"):
        PAGE.check_sweep("levels", values, 2)


def test_separation_of_an_instance():
    """Two users share a vector, a third is close to them, the fourth is far from all."""
    theta = np.array([[0.0, 0.0], [0.0, 0.0], [0.3, 0.0], [0.0, 2.0]])
    assert PAGE.separation(theta, 0.5) == (2.0, 0.75)
    assert PAGE.separation(theta, 0.1) == (0.3, 0.0)
    assert PAGE.separation(theta, 9.0) == (np.inf, 1.0)


def test_terms_of_the_bound():
    """On the line λ̃ = 1; no gap above ζ leaves the second part of the clustering time."""
    terms = PAGE.terms_rclumb(1, 2, 4, 2, 1000, 0.1, np.inf, hard=0.5)
    ell = np.log(1001)
    np.testing.assert_allclose(
        list(terms.values()),
        [
            5 + 64 * np.log(4000) + 16 * 16 * np.log(8000),
            0.5 * 0.2 * np.sqrt(2) * 1000,
            200 * (1 + np.sqrt(4 * ell)),
            2 * (1 + np.sqrt(2 * np.log(1000) + ell)) * np.sqrt(4000 * ell),
        ],
    )


def test_more_users_than_the_matrix_has_are_refused():
    assert PAGE.served(10, 3).tolist() == [0, 3, 6]
    with pytest.raises(BookError, match="only 10"):
        PAGE.served(10, 11)


def test_exploration_constant_against_its_closed_cases():
    """One arm: the integral is explicit; the lemma holds for the worst arm; at the printed size."""
    assert PAGE.lambda_tilde(1, 5) == 1.0
    z = np.linspace(0, 0.5, 200_001)
    direct = np.trapezoid((1 - np.exp(-((0.5 - z) ** 2) * 4)) ** 2, z)
    np.testing.assert_allclose(PAGE.lambda_tilde(2, 2), direct, rtol=1e-6)
    rng = np.random.default_rng(0)
    arms = directions(rng, 40_000, 3).reshape(10_000, 4, 3)
    assert (arms[:, :, 0] ** 2).min(axis=1).mean() > PAGE.lambda_tilde(3, 4)
    assert 1e-17 < PAGE.lambda_tilde(50, 20) < 1e-15
    assert PAGE.zeta(50, 20, 0.2) > 1e7


def test_theory_constants_cover_the_radii_of_the_proof():
    constants = PAGE.theory_constants(1, 2, 4, 10_000)
    n = np.arange(10_001)
    radius = (1 + np.sqrt(2 * np.log(40_000) + np.log1p(n))) / np.sqrt(1 + 2 * n)
    assert (constants["alpha1"] * f(n) >= radius - 1e-3).all()
    np.testing.assert_allclose(constants["alpha2"] * 0.02, 2 * 0.02 * np.sqrt(1 / 2))


def test_printed_example_of_the_lemma_is_zero():
    left, right = PAGE.sides(np.array([[0.0, 1], [1, 0]]), np.array([[1.0, 0], [0, 1]]))
    assert left == 0
    np.testing.assert_allclose(right, np.sqrt(2))


def test_users_come_as_often_as_told():
    rng = np.random.default_rng(1)
    arrival = np.array([1.0, 2.0, 0.0, 5.0])
    problem = PAGE.make_misspecified(
        rng, arms=2, noise=0.1, theta=np.zeros((4, 2)), pool=directions(rng, 3, 2),
        label=np.zeros(4, dtype=np.int64), arrival=arrival, menu=np.array([[2, 0]]), rounds=8000,
    )  # fmt: skip
    drawn = [PAGE.draw(problem, t, rng) for t in range(1, 8001)]
    counts = np.bincount([user for user, _, _ in drawn], minlength=4)
    np.testing.assert_allclose(counts / 8000, arrival / 8, atol=0.02)
    assert all(items.tolist() == [2, 0] for _, items, _ in drawn)


def test_deviations_that_hide_a_gap_hide_it_exactly_up_to_twice_the_bound():
    rng = np.random.default_rng(2)
    assert PAGE.hidden_gap(rng, gap=0.04, eps=0.02)["visible"] < 1e-15
    assert PAGE.hidden_gap(rng, gap=0.1, eps=0.02)["visible"] > 0.01
