"""ReCLUB-D: the fast version against the literal one, and what was proved about deviations."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from lib import chapters
from lib.linear import directions

PAGE = chapters.load("clustering-of-bandits/deviations")
PRACTICE = chapters.load("clustering-of-bandits/practice")
ELSEWHERE = chapters.load("clustering-of-bandits/elsewhere")
CLUBS = chapters.load("clustering-of-bandits")


def data_of(seed, users=16, m=2, d=4, n=60, noise=0.4, gap=1.2, deviation=0.0, idle=0):
    """Return sums of users with fixed arms and their clusters; some users have no rounds."""
    rng = np.random.default_rng(seed)
    label = np.arange(users) * m // users
    theta = CLUBS.cluster_vectors(rng, m, d, gap)[label]
    theta = theta + deviation * directions(rng, users, d)
    data = ELSEWHERE.draw_data(rng, theta, n, noise)
    for part in data:
        part[:idle] = 0
    return data, label


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n, deviation, idle", [(3, 0.0, 0), (60, 0.0, 2), (60, 0.5, 0)])
def test_both_versions_of_the_re_clustering_agree(seed, n, deviation, idle):
    data, _ = data_of(seed, n=n, deviation=deviation, idle=idle)
    fast = PAGE.recluster_mixed(*data, 0.7, delta=0.3)
    group, rho = PAGE.literal_recluster_mixed(data, 0.7, 0.3)
    np.testing.assert_array_equal(fast.group, group)
    np.testing.assert_array_equal(fast.rho, rho)


def test_both_versions_of_the_policy_decide_alike_round_by_round():
    problem = PAGE.make_hard(
        np.random.default_rng(1), 6, 0.3, deviation=0.6, users=12, m=2, d=4, items=40, gap=1.2
    )
    policies = PAGE.RECLUB_D, PAGE.LITERAL_RECLUB_D
    states = [p.init(problem, 500, None, beta=0.3, n0=3.0, lam=0.5) for p in policies]
    rng, shrunk = np.random.default_rng(2), 0
    for t in range(1, 501):
        user, items = int(rng.integers(12)), rng.choice(40, 6, replace=False)
        arms = problem.pool[items]
        one, two = (
            p.choose(s, t, user, arms, items) for p, s in zip(policies, states, strict=True)
        )
        assert one == two, f"round {t}"
        reward = arms[one] @ problem.theta[user] + 0.3 * rng.standard_normal()
        for policy, state in zip(policies, states, strict=True):
            policy.learn(state, t, user, arms[one], reward, items[one])
            if t in state.replans:
                policy.replan(state, t)
        shrunk += states[0].rho[user] > 0
    assert shrunk > 100, "nobody ever deviated: nothing is shown"


def test_the_likelihood_is_that_of_the_normal_law():
    rng, rho, sigma, n, d = np.random.default_rng(0), 0.3, 0.7, 12, 4
    X, theta = rng.standard_normal((n, d)), rng.standard_normal(d)
    r = rng.standard_normal(n)
    data = PRACTICE.Data((X.T @ X)[None], (X.T @ r)[None], np.array([r @ r]), np.array([float(n)]))
    covariance = sigma**2 * (np.eye(n) + rho * X @ X.T)
    left = r - X @ theta
    expected = left @ np.linalg.solve(covariance, left) + np.linalg.slogdet(covariance)[1]
    Q, logs = PAGE.mixed_error(data, 0, theta, rho)
    assert Q / sigma**2 + logs + n * np.log(sigma**2) == pytest.approx(expected)


def test_the_mean_shrinks_from_the_users_own_estimate_to_that_of_the_cluster():
    data, _ = data_of(0)
    theta, M, b = np.ones(4), data.M[0], data.b[0]

    def mean(rho):
        return np.linalg.solve(M + np.eye(4) / rho, b + theta / rho)

    np.testing.assert_allclose(mean(1e-9), theta, atol=1e-5)
    np.testing.assert_allclose(mean(1e9), np.linalg.solve(M, b), atol=1e-5)


def test_shrinking_has_the_derived_error_which_is_below_both_ends():
    rng, d, nu, sigma, tau = np.random.default_rng(0), 5, 8.0, 0.5, 0.2
    delta = tau * rng.standard_normal((20_000, d))
    own = delta + sigma / np.sqrt(nu) * rng.standard_normal(delta.shape)
    shrunk = own * nu / (nu + sigma**2 / tau**2)
    error = ((shrunk - delta) ** 2).sum(axis=1).mean()
    assert error == pytest.approx(d / (1 / tau**2 + nu / sigma**2), rel=0.03)
    assert error < min(d * tau**2, d * sigma**2 / nu)


def test_without_deviations_it_finds_what_reclub_finds():
    data, label = data_of(1, users=40, m=3, d=6, n=100, noise=0.3)
    found, plain = PAGE.recluster_mixed(*data, 1.0), PRACTICE.recluster(*data, 1.0)
    np.testing.assert_array_equal(found.group, plain.group)
    assert not found.rho.any() and adjusted_rand_score(label, found.group) == 1


def test_deviations_are_found_and_do_not_become_clusters():
    rng, tau, sigma, d = np.random.default_rng(3), 0.25, 0.5, 10
    theta = np.ones(d) / np.sqrt(d) + tau * rng.standard_normal((200, d))
    data = ELSEWHERE.draw_data(rng, theta, 200, sigma)
    found = PAGE.recluster_mixed(*data, 1.0)
    assert found.clusters == 1 and not found.alone.any()
    assert 0.1 <= found.rho[0] <= 0.5, "τ²/σ² is 0.25"
    assert PRACTICE.recluster(*data, 1.0).group.max() > 2, "ReCLUB takes them for clusters"


def test_strangers_are_alone_and_do_not_make_the_others_look_apart():
    data, _ = data_of(2, users=40, m=2, d=6, n=60, noise=0.3)
    odd = ELSEWHERE.draw_data(np.random.default_rng(9), -3 * np.eye(6)[:2], 60, 0.3)
    data = PRACTICE.Data(*(np.concatenate(parts) for parts in zip(data, odd, strict=True)))
    found = PAGE.recluster_mixed(*data, 1.0)
    assert (np.bincount(found.group)[found.group[40:]] <= 2).all()
    assert found.rho[:40].max() <= 0.01
    assert not found.alone[:40].any()


def test_uneven_clusters_halve_and_keep_their_vectors():
    sizes = dict(users=40, m=4, d=8, items=30, gap=1.2)
    problem = PAGE.make_hard(np.random.default_rng(3), arms=5, noise=0.1, uneven=True, **sizes)
    np.testing.assert_array_equal(np.bincount(problem.label), [21, 11, 5, 3])
    apart = np.linalg.norm(problem.theta[:, None] - problem.theta, axis=2)
    same = problem.label[:, None] == problem.label
    np.testing.assert_allclose(apart[same], 0, atol=1e-7)
    np.testing.assert_allclose(apart[~same], 1.2)


@pytest.mark.parametrize("users, m, d, noise, gap", [(40, 4, 5, 0.5, 1.0), (60, 5, 8, 0.8, 1.2)])
def test_the_last_clusters_are_split_when_the_formula_says_so(users, m, d, noise, gap):
    """The closed form of the price, and the criterion itself on arms in all directions."""
    n = ELSEWHERE.rounds_needed(users, m, d, noise, gap)
    price = d * np.log(users * n) + users * np.log(m / (m - 1))
    assert (2 * users / m) * n * gap**2 / (4 * d * noise**2) == pytest.approx(price)
    found = []
    for part in (0.4, 2.0):
        rng = np.random.default_rng(5)
        theta = CLUBS.cluster_vectors(rng, m, d, gap)[np.arange(users) % m]
        data = ELSEWHERE.draw_data(rng, theta, round(part * n), noise)
        found.append(PRACTICE.recluster(*data, 1.0).clusters)
    assert found[0] < m == found[1]
