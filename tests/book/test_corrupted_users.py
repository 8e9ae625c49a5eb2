"""The chapter on corrupted users: fast paths against literal ones, and what must be refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import roc_auc_score

from lib import chapters
from lib.errors import BookError
from lib.graphs import unpack
from lib.linear import directions, lambda_tilde

PAGE = chapters.load("corrupted-users")
SETTING = dict(users=12, m=3, d=4, items=40, arms=5, noise=0.2, share=0.25, stop=150)
PARAMETERS = dict(beta=0.4, alpha=0.3, alpha1=0.7, slack=0.2, delta=0.1)


def make(seed=0, **changes):
    return PAGE.make_corrupted(np.random.default_rng(seed), **{**SETTING, **changes})


class Naive:
    """RCLUB-WCU, OCCUD and GCUD line by line: sums over users, fresh inverses, a full graph."""

    def __init__(self, problem, lam=1.0, beta=1.0, alpha=0.5, alpha1=1.0, slack=0.0, delta=0.05):
        self.u, self.d = problem.theta.shape
        self.lam, self.beta, self.alpha, self.alpha1 = lam, beta, alpha, alpha1
        self.slack, self.delta = slack, delta
        self.M, self.plain_M = np.zeros((2, self.u, self.d, self.d))
        self.b, self.plain_b = np.zeros((2, self.u, self.d))
        self.count = np.zeros(self.u)
        self.edges = ~np.eye(self.u, dtype=bool)
        self.rounds = []

    def inverse(self, M):
        return np.linalg.inv(self.lam * np.eye(self.d) + M)

    def estimates(self):
        return np.array([self.inverse(M) @ b for M, b in zip(self.M, self.b, strict=True)])

    def component(self, user):
        labels = connected_components(self.edges)[1]
        return labels == labels[user]

    def choose(self, user, arms):
        V = self.component(user)
        inverse = self.inverse(self.M[V].sum(axis=0))
        theta = inverse @ self.b[V].sum(axis=0)
        norms = np.sqrt(np.einsum("ki,ij,kj->k", arms, inverse, arms))
        index = arms @ theta + self.beta * norms
        return int(np.flatnonzero(index >= index.max() - 1e-10)[0])

    def learn(self, user, x, reward):
        weight = min(1.0, self.alpha / np.sqrt(x @ self.inverse(self.M[user]) @ x))
        self.M[user] += weight * np.outer(x, x)
        self.b[user] += weight * reward * x
        self.plain_M[user] += np.outer(x, x)
        self.plain_b[user] += reward * x
        self.count[user] += 1
        self.rounds.append((user, x, reward))
        theta, f = self.estimates(), np.sqrt((1 + np.log1p(self.count)) / (1 + self.count))
        far = np.linalg.norm(theta - theta[user], axis=1) > self.alpha1 * (f + f[user] + self.slack)
        self.edges[user, far] = self.edges[far, user] = False

    def lowest(self, M):
        return np.linalg.eigvalsh(self.lam * np.eye(self.d) + M)[0]

    def occud(self, i):
        """Both sides of the printed test of user i."""
        V, d, lam, doubt = self.component(i), self.d, self.lam, 2 * np.log(1 / self.delta)
        cluster = self.inverse(self.M[V].sum(axis=0)) @ self.b[V].sum(axis=0)
        plain = self.inverse(self.plain_M[i]) @ self.plain_b[i]
        own = np.sqrt(d * np.log(1 + self.count[i] / (lam * d)) + doubt) + np.sqrt(lam)
        whole = np.sqrt(d * np.log(1 + self.count[V].sum() / (lam * d)) + doubt)
        whole += np.sqrt(lam) + self.slack
        bound = own / np.sqrt(self.lowest(self.plain_M[i]))
        bound += whole / np.sqrt(self.lowest(self.M[V].sum(axis=0)))
        return np.linalg.norm(plain - cluster), bound

    def residual_variance(self, i):
        data = [(x, r) for user, x, r in self.rounds if user == i]
        X, r = np.array([x for x, _ in data]), np.array([r for _, r in data])
        hat = X @ self.inverse(self.plain_M[i]) @ X.T
        return ((r - hat @ r) ** 2).sum() / max(len(r) - np.trace(hat), 0.5)


def play(problem, T, seed=1, **parameters):
    """Run fast and naive side by side; every decision must agree."""
    rng = np.random.default_rng(seed)
    state = PAGE.init_rclub(problem, T, rng, **parameters)
    naive = Naive(problem, **parameters)
    for t in range(1, T + 1):
        user, items, arms = PAGE.BANDITS.draw(problem, t, rng)
        k = PAGE.RCLUB_WCU.choose(state, t, user, arms, items)
        assert k == naive.choose(user, arms), f"round {t}"
        mean = arms[k] @ problem.theta[user]
        reward = PAGE.feedback(problem, t, user, items[k], mean, rng)
        PAGE.learn_rclub(state, t, user, arms[k], reward, items[k])
        naive.learn(user, arms[k].copy(), reward)
    return state, naive


@pytest.fixture(scope="module")
def played():
    return play(make(), 500, **PARAMETERS)


def test_every_decision_and_the_graph_equal_the_literal_algorithm(played):
    state, naive = played
    np.testing.assert_array_equal(unpack(state.edges), naive.edges)
    found = connected_components(naive.edges)[0]
    assert 1 < found == (state.size > 0).sum()
    np.testing.assert_allclose(state.ridge.theta[: naive.u], naive.estimates(), atol=1e-9)


def test_scores_and_detected_set_equal_the_literal_test(played):
    state, naive = played
    sides = np.array([naive.occud(i) for i in range(naive.u)])
    scores = PAGE.scores(state)
    np.testing.assert_allclose(scores["occud"], sides[:, 0] / sides[:, 1], atol=1e-8)
    for scale in (0.05, 0.2, 1.0):  # the sets, from nearly all users to nearly none
        expected = {i for i in range(naive.u) if sides[i, 0] > scale * sides[i, 1]}
        assert set(np.flatnonzero(scores["occud"] > scale)) == expected
    np.testing.assert_allclose(
        scores["own"], [naive.residual_variance(i) for i in range(naive.u)], rtol=1e-7
    )


def test_the_printed_test_fires_when_lies_never_stop():
    problem = make(stop=10**9, d=3, m=1, users=6, arms=2, noise=0.05, share=1 / 6)
    state, naive = play(problem, 1500, beta=0.5, alpha=0.1, alpha1=9.0, delta=0.5)
    flagged = PAGE.scores(state)["occud"] > 1
    assert set(np.flatnonzero(flagged)) == {
        i for i in range(naive.u) if np.greater(*naive.occud(i))
    }
    np.testing.assert_array_equal(flagged, problem.corrupted)


def test_gcud_takes_its_share_of_every_component(played):
    state, _ = played
    score = PAGE.scores(state)["gcud"]
    flagged = PAGE.gcud_set(score, state.cluster, 0.5)
    for V in np.unique(state.cluster):
        members = state.cluster == V
        assert flagged[members].sum() == round(0.5 * members.sum())
        if flagged[members].any() and not flagged[members].all():
            assert score[members & flagged].min() >= score[members & ~flagged].max()


def test_auc_and_recall_at_a_level():
    rng = np.random.default_rng(3)
    score, corrupted = rng.integers(0, 20, 300).astype(float), rng.random(300) < 0.3
    auc, recalls = PAGE.quality(score, corrupted)
    assert auc == pytest.approx(roc_auc_score(corrupted, score))
    for level, recall in zip(PAGE.LEVELS, recalls, strict=True):
        cuts = [c for c in score if (score[~corrupted] > c).mean() <= level]
        assert recall == (score[corrupted] > min(cuts)).mean()


def test_known_clusters_stay_as_they_are():
    problem = make()
    state = PAGE.init_rclub(problem, 10, np.random.default_rng(0), known=True)
    same = problem.label[:, None] == problem.label
    np.testing.assert_array_equal(unpack(state.edges), same & ~np.eye(12, dtype=bool))
    assert state.alpha == np.inf


def test_only_corrupted_users_flip_and_only_then():
    problem = make(start=10, stop=20, noise=0.0)
    rng = np.random.default_rng(0)
    for user in range(12):
        for t in (10, 11, 20, 21):
            reward = PAGE.feedback(problem, t, user, 0, 0.7, rng)
            lies = problem.corrupted[user] and 10 < t <= 20
            assert reward == (-0.7 if lies else 0.7)
    draws = [PAGE.feedback(make(binary=True), 999, 0, 0, 0.7, rng) for _ in range(2000)]
    assert set(draws) == {0.0, 1.0} and abs(np.mean(draws) - 0.7) < 0.05


def test_a_part_of_the_users_keeps_the_share_of_liars():
    corrupted = np.arange(100) < 10
    kept = PAGE.pick(np.random.default_rng(0), corrupted, 30)
    assert len(set(kept)) == 30 and corrupted[kept].sum() == 3
    rare = PAGE.pick(np.random.default_rng(0), np.arange(100) < 1, 20)
    assert (rare < 1).sum() == 1  # the AUC needs one of each
    assert len(PAGE.pick(np.random.default_rng(0), np.ones(10, dtype=bool), 4)) == 4


def test_a_lie_never_counts_more_than_alpha():
    rng = np.random.default_rng(5)
    for alpha in (0.05, 0.5, 2.0):
        X, out = directions(rng, 200, 3), np.empty((200, 2))
        M = PAGE.influences(X, alpha, 1.0, out)
        np.testing.assert_allclose(M, np.eye(3) + (X.T * out[:, 0]) @ X)
        assert out[:, 1].max() <= alpha + 1e-12
        lies = out[:, 0] * rng.choice([-1, 1], 200)
        term = X.T @ lies
        assert np.sqrt(term @ np.linalg.solve(M, term)) <= alpha * 200 + 1e-9


def test_constants_of_the_theory():
    assert lambda_tilde(1.0, 1e-9, 5) == pytest.approx(1.0, abs=1e-3)
    one, two = (lambda_tilde(0.5, 0.25, K) for K in (1, 2))
    assert 0 < two < one < 0.5
    problem = make()
    values = PAGE.theory(problem, 1000, 1.0, 0.05)
    assert problem.budget == 2 * 150 * 0.25
    assert values["alpha"] * problem.budget == pytest.approx(values["slack"]) == 3.0
    assert PAGE.theory(make(share=0.0), 1000, 1.0, 0.05)["alpha"] == np.inf


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1.2, 10, 100), r"share is 1.2, but .* \[0, 1\]"),
        ((-0.1, 10, 100), r"share is -0.1"),
        ((0.1, 101, 100), "between 0 and T = 100"),
        ((0.1, 10, 100, -1.0), "C is -1.0, but .* negative"),
    ],
)
def test_impossible_corruption_is_refused(arguments, words):
    with pytest.raises(BookError, match=words):
        PAGE.check_corruption(*arguments)


def test_labels_must_match_the_users():
    labels = pd.Series({"a": True, "b": False})
    np.testing.assert_array_equal(PAGE.match_labels(["b", "a"], labels), [False, True])
    with pytest.raises(BookError, match=r"lack 1 of 2 users .*'c'"):
        PAGE.match_labels(["a", "c"], labels)


def test_labels_of_the_datasets():
    yelp = pd.DataFrame({"user": [1, 1, 2], "label": [-1, 1, 1]})
    assert PAGE.corruption_labels("yelp-zip", yelp).to_dict() == {1: True, 2: False}
    amazon = pd.DataFrame({"user": list("aabc"), "helpful": [0, 1, 0, 0], "total": [5, 5, 4, 0]})
    found = PAGE.corruption_labels("amazon-musical-instruments", amazon)
    assert found.to_dict() == {"a": True, "b": True, "c": False}
    assert PAGE.corruption_labels("ml-1m", yelp) is None
