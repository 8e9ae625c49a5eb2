"""CLUB and SCLUB against line-by-line implementations, and the graph against scipy and networkx."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from lib import chapters
from lib.errors import BookError

PAGE = chapters.load("clustering-of-bandits")
LINEAR = chapters.load("linear-bandits")


def problem_of(seed, users=12, m=3, d=4, items=40, arms=6, noise=0.4, gap=1.2):
    return PAGE.make_clustered(
        np.random.default_rng(seed), arms, noise, users=users, m=m, d=d, items=items, gap=gap
    )


def rounds_of(problem, seed, T):
    """Yield rounds with users, arms and noise that do not depend on what the policy does."""
    rng = np.random.default_rng(seed)
    for t in range(1, T + 1):
        user = int(rng.integers(len(problem.theta)))
        items = rng.choice(len(problem.pool), problem.arms, replace=False)
        yield t, user, items, problem.pool[items], problem.noise * rng.standard_normal()


def f(count):
    return np.sqrt((1 + np.log(1 + count)) / (1 + count))


class NaiveUsers:
    """Sums of each user; everything else is computed from them when it is asked for."""

    def __init__(self, u, d, lam):
        self.M, self.b, self.T = np.zeros((u, d, d)), np.zeros((u, d)), np.zeros(u)
        self.lam = lam

    def add(self, i, x, reward):
        self.M[i] += np.outer(x, x)
        self.b[i] += reward * x
        self.T[i] += 1

    def ridge(self, members):
        members = sorted(members)
        inverse = np.linalg.inv(self.lam * np.eye(self.b.shape[1]) + self.M[members].sum(axis=0))
        return inverse, inverse @ self.b[members].sum(axis=0)

    def apart(self, V, W):
        return np.linalg.norm(self.ridge(V)[1] - self.ridge(W)[1])

    def rounds(self, V):
        return self.T[sorted(V)].sum()

    def choose(self, members, arms, beta):
        inverse, theta = self.ridge(members)
        scores = [x @ theta + beta * np.sqrt(x @ inverse @ x) for x in arms]
        return next(k for k, score in enumerate(scores) if score >= max(scores) - 1e-10)


class NaiveClub(NaiveUsers):
    def __init__(self, u, d, lam, alpha):
        super().__init__(u, d, lam)
        self.alpha, self.graph = alpha, nx.complete_graph(u)

    def cluster(self, i):
        return nx.node_connected_component(self.graph, i)

    def partition(self):
        return [set(V) for V in nx.connected_components(self.graph)]

    def learn(self, t, i, x, reward):
        self.add(i, x, reward)
        for j in list(self.graph[i]):
            if self.apart([i], [j]) > self.alpha * (f(self.T[i]) + f(self.T[j])):
                self.graph.remove_edge(i, j)


class NaiveSclub(NaiveUsers):
    def __init__(self, u, d, lam, alpha, alpha_p):
        super().__init__(u, d, lam)
        self.alpha, self.alpha_p = alpha, alpha_p
        self.sets, self.phase, self.splits, self.merges = {0: set(range(u))}, 0, 0, 0
        self.checked, self.left = set(), 0

    def number(self, i):
        return next(k for k, V in self.sets.items() if i in V)

    def cluster(self, i):
        return self.sets[self.number(i)]

    def partition(self):
        return list(self.sets.values())

    def learn(self, t, i, x, reward):
        if self.left == 0:
            self.phase += 1
            self.left, self.checked = 2**self.phase, set()
        self.left -= 1
        self.add(i, x, reward)
        if i not in self.checked:
            self.split(t, i)
            self.checked.add(i)
            while self.merge(t):
                self.merges += 1

    def split(self, t, i):
        V = self.cluster(i)
        far = self.apart([i], V) > self.alpha * (f(self.T[i]) + f(self.rounds(V)))
        odd = abs(self.T[i] - self.rounds(V) / len(V)) / t > self.alpha_p * f(t)
        if len(V) > 1 and (far or odd):
            V.remove(i)
            self.sets[next(k for k in itertools.count() if k not in self.sets)] = {i}
            self.splits += 1

    def merge(self, t):
        for low, high in itertools.combinations(sorted(self.sets), 2):
            V, W = self.sets[low], self.sets[high]
            near = self.apart(V, W) < self.alpha / 2 * (f(self.rounds(V)) + f(self.rounds(W)))
            often = abs(self.rounds(V) / len(V) - self.rounds(W) / len(W)) / t
            if self.checked.issuperset(V | W) and near and often < self.alpha_p / 2 * f(t):
                self.sets[low] = V | self.sets.pop(high)
                return True
        return False


def partition_of(state):
    return sorted(np.flatnonzero(state.cluster == k).tolist() for k in set(state.cluster))


def check_statistics(state, naive):
    """Every cluster's regression must be that of its members' rounds, each counted once."""
    u, lam = len(state.cluster), naive.lam
    assert state.size.sum() == u
    assert state.ridge.count[u:].sum() == naive.T.sum()
    for V in set(state.cluster.tolist()):
        members, k = np.flatnonzero(state.cluster == V), u + V
        assert state.size[V] == len(members)
        np.testing.assert_allclose(state.ridge.M[k], naive.M[members].sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(state.ridge.b[k], naive.b[members].sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(state.ridge.count[k], naive.T[members].sum())
        inverse, theta = naive.ridge(members)
        np.testing.assert_allclose(state.ridge.M_inverse[k], inverse, atol=1e-9)
        np.testing.assert_allclose(state.ridge.theta[k], theta, atol=1e-8)
    free = np.setdiff1d(np.arange(u), state.cluster)
    assert not state.size[free].any()
    np.testing.assert_allclose(state.ridge.M[u + free], 0, atol=1e-9)
    np.testing.assert_allclose(state.ridge.M_inverse[: len(naive.T)], [
        np.linalg.inv(lam * np.eye(naive.b.shape[1]) + M) for M in naive.M
    ], atol=1e-9)  # fmt: skip


def play_both(policy, naive, problem, seed, T, lam, beta, every, **parameters):
    """Play a fast and a naive policy side by side, and compare all that can be compared."""
    state = policy.init(problem, T, np.random.default_rng(0), lam=lam, beta=beta, **parameters)
    partitions = set()
    for t, user, items, arms, noise in rounds_of(problem, seed, T):
        k = policy.choose(state, t, user, arms, items)
        assert k == naive.choose(naive.cluster(user), arms, beta), f"round {t}"
        reward = arms[k] @ problem.theta[user] + noise
        policy.learn(state, t, user, arms[k], reward, items[k])
        naive.learn(t, user, arms[k], reward)
        partition = sorted(map(sorted, naive.partition()))
        assert partition_of(state) == partition, f"round {t}"
        partitions.add(str(partition))
        if t % every == 0:
            check_statistics(state, naive)
    return state, partitions


@pytest.mark.parametrize("seed, alpha", [(0, 0.7), (1, 0.9), (2, 0.6), (3, 0.4)])
def test_club_decides_like_its_pseudocode(seed, alpha):
    problem = problem_of(seed)
    naive = NaiveClub(12, 4, 0.5, alpha)
    state, partitions = play_both(PAGE.CLUB, naive, problem, seed, 300, 0.5, 0.6, 10, alpha=alpha)
    np.testing.assert_array_equal(
        PAGE.adjacency(state.edges), nx.to_numpy_array(naive.graph, dtype=bool)
    )
    assert len(partitions) > 2, "no component fell apart: the test shows nothing"
    _, components = connected_components(PAGE.adjacency(state.edges))
    assert len(set(zip(components, state.cluster, strict=True))) == components.max() + 1


@pytest.mark.parametrize(
    "seed, alpha, alpha_p", [(0, 0.9, np.inf), (1, 1.2, np.inf), (2, 0.9, 0.4), (3, 1.5, 0.3)]
)
def test_sclub_decides_like_its_pseudocode(seed, alpha, alpha_p):
    problem = problem_of(seed)
    naive = NaiveSclub(12, 4, 0.5, alpha, alpha_p)
    play_both(PAGE.SCLUB, naive, problem, seed, 300, 0.5, 0.6, 1, alpha=alpha, alpha_p=alpha_p)
    assert naive.splits > 0 and naive.merges > 0, "no split or no merge: the test shows nothing"


@pytest.mark.parametrize("alpha, linear", [(np.inf, LINEAR.LINUCB), (0.0, LINEAR.LINUCB_IND)])
def test_club_has_linucb_and_linucb_ind_as_ends(alpha, linear):
    problem = problem_of(5)
    one = PAGE.CLUB.init(problem, 400, np.random.default_rng(0), beta=0.5, alpha=alpha)
    two = linear.init(problem, 400, np.random.default_rng(0), beta=0.5, **linear.parameters)
    for t, user, items, arms, noise in rounds_of(problem, 5, 400):
        k = PAGE.CLUB.choose(one, t, user, arms, items)
        assert k == linear.choose(two, t, user, arms, items)
        reward = arms[k] @ problem.theta[user] + noise
        PAGE.CLUB.learn(one, t, user, arms[k], reward, items[k])
        linear.learn(two, t, user, arms[k], reward, items[k])
    assert (one.size > 0).sum() == (1 if alpha else 12)


def test_released_bonus_has_no_square_root():
    problem = problem_of(7)
    state = PAGE.CLUB.init(problem, 50, np.random.default_rng(0), alpha=np.inf, released=True)
    naive = NaiveUsers(12, 4, 1.0)
    for t, user, items, arms, noise in rounds_of(problem, 7, 50):
        inverse, theta = naive.ridge(range(12))
        width = 1 + np.sqrt(4 * np.log(1 + naive.T.sum() / 4) + 4 * np.log(t) + np.log(2))
        k = PAGE.CLUB.choose(state, t, user, arms, items)
        scores = arms @ theta + width * np.einsum("kd,de,ke->k", arms, inverse, arms)
        assert scores[k] == pytest.approx(scores.max(), abs=1e-9)
        reward = arms[k] @ problem.theta[user] + noise
        PAGE.CLUB.learn(state, t, user, arms[k], reward, items[k])
        naive.add(user, arms[k], reward)


graphs = st.tuples(st.integers(1, 150), st.floats(0, 1), st.integers(0, 2**32 - 1))


@settings(max_examples=60, deadline=None)
@given(graphs)
def test_bitset_is_a_simple_graph_and_reach_finds_its_components(graph):
    u, p, seed = graph
    edges = PAGE.random_edges(np.random.default_rng(seed), u, p)
    together = PAGE.adjacency(edges)
    assert together.shape == (u, u) and not together.diagonal().any()
    np.testing.assert_array_equal(together, together.T)
    components = connected_components(together)[1]
    found = np.empty(edges.shape[1], dtype=np.uint64)
    for start in {0, u // 2, u - 1}:
        size = (components == components[start]).sum()
        assert PAGE.reach(edges, start, found, size) == size
        users = [j for j in range(u) if PAGE.has_bit(found, j)]
        assert users == np.flatnonzero(components == components[start]).tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 90), st.floats(0.5, 4), st.integers(0, 2**32 - 1))
def test_regroup_keeps_components_while_one_user_loses_edges(u, degree, seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(0, users=u, m=1, d=2)
    state = PAGE.CLUB.init(problem, 1, rng, edge_probability=degree / u)
    for user in rng.integers(u, size=5):
        for other in np.flatnonzero(PAGE.adjacency(state.edges)[user]):
            if rng.random() < 0.7:
                PAGE.flip_bit(state.edges[user], other)
                PAGE.flip_bit(state.edges[other], user)
        PAGE.regroup(state, user)
        expected = connected_components(PAGE.adjacency(state.edges))[1]
        pairs = set(zip(expected.tolist(), state.cluster.tolist(), strict=True))
        assert len(pairs) == expected.max() + 1 == len(set(state.cluster))
        np.testing.assert_array_equal(state.size, np.bincount(state.cluster, minlength=u))


@pytest.mark.parametrize("m, d, gap", [(1, 3, 0.5), (4, 5, 1.0), (9, 10, np.sqrt(2) - 1e-9)])
def test_all_pairs_of_clusters_have_the_gap(m, d, gap):
    theta = PAGE.cluster_vectors(np.random.default_rng(0), m, d, gap)
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 1)
    for one, two in itertools.combinations(theta, 2):
        assert np.linalg.norm(one - two) == pytest.approx(gap)


def test_every_cluster_has_users_and_given_arrays_are_taken_as_they_are():
    problem = problem_of(0, users=11, m=4, d=6)
    assert sorted(set(problem.label)) == [0, 1, 2, 3]
    assert np.bincount(problem.label).max() - np.bincount(problem.label).min() <= 1
    again = PAGE.make_clustered(
        np.random.default_rng(9), 3, 0.1, problem.theta, problem.pool, problem.label
    )
    assert again.theta is problem.theta and again.label is problem.label


@pytest.mark.parametrize(
    "sizes", [(2, 3, 5, 10, 5), (10, 5, 5, 10, 5), (10, 2, 5, 4, 5)], ids=["users", "d", "items"]
)
def test_impossible_sizes_are_refused_in_one_sentence(sizes):
    with pytest.raises(BookError, match=r"must be at most [^.]*\.$"):
        PAGE.check_sizes(*sizes)


def test_watch_scores_a_perfect_and_a_trivial_partition():
    problem = problem_of(0)
    state = PAGE.CLUB.init(problem, 1, np.random.default_rng(0))
    seen = PAGE.CLUB.watch(state, problem)
    assert seen["clusters"] == 1 and seen["ari"] == 0 and seen["false_keep"] == 1
    state.cluster[:] = problem.label
    state.size[:] = np.bincount(problem.label, minlength=12)
    seen = PAGE.SCLUB.watch(PAGE.SCLUB.init(problem, 1, None)._replace(
        cluster=state.cluster, size=state.size
    ), problem)  # fmt: skip
    assert (seen["clusters"], seen["ari"], seen["false_split"], seen["false_keep"]) == (3, 1, 0, 0)


def test_error_rates_move_the_right_way():
    rates = {
        alpha: PAGE.error_rates(np.random.default_rng(0), alpha, 3, 0.3, 1.0, pairs=40)
        for alpha in (0.2, 1.0, 3.0)
    }
    for rate in rates.values():
        assert (np.diff(rate["false_split"]) >= 0).all()
        assert (np.diff(rate["false_keep"]) <= 0).all()
    assert rates[0.2]["false_split"][-1] > rates[3.0]["false_split"][-1]
    assert (rates[0.2]["false_keep"] <= rates[3.0]["false_keep"]).all()
