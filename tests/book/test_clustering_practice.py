"""ReCLUB: the fast re-clustering against the literal one, and what was proved about it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from sklearn.metrics import adjusted_rand_score

from lib import chapters
from lib.simulate import simulate
from lib.tune import with_constants

PAGE = chapters.load("clustering-of-bandits/practice")
ELSEWHERE = chapters.load("clustering-of-bandits/elsewhere")
CLUBS = chapters.load("clustering-of-bandits")
LINEAR = chapters.load("linear-bandits")


def data_of(seed, users=14, m=3, d=4, n=40, noise=0.4, gap=1.2, idle=0):
    """Return sums of users with fixed arms and their clusters; some users have no rounds."""
    rng = np.random.default_rng(seed)
    label = np.arange(users) * m // users
    theta = CLUBS.cluster_vectors(rng, m, d, gap)[label]
    data = ELSEWHERE.draw_data(rng, theta, n, noise)
    for part in data:
        part[:idle] = 0
    return data, label


def alike(one, two):
    return ((one[:, None] == one) == (two[:, None] == two)).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n, idle", [(5, 0), (40, 0), (40, 3)])
def test_both_versions_of_the_re_clustering_agree(seed, n, idle):
    data, _ = data_of(seed, n=n, idle=idle)
    fast = PAGE.recluster(*data, 0.7, delta=0.3)
    np.testing.assert_array_equal(fast.group, PAGE.literal_recluster(data, 0.7, 0.3))


def test_both_versions_of_the_policy_decide_alike_round_by_round():
    problem = CLUBS.make_clustered(np.random.default_rng(1), 6, 0.4, **sizes_of())
    constants = {"beta": 0.3, "n0": 3.0, "lam": 0.5}
    one, two = (p.init(problem, 400, None, **constants) for p in POLICIES)
    rng, changed = np.random.default_rng(2), 0
    for t in range(1, 401):
        user, items = int(rng.integers(12)), rng.choice(40, 6, replace=False)
        arms = problem.pool[items]
        k = POLICIES[0].choose(one, t, user, arms, items)
        assert k == POLICIES[1].choose(two, t, user, arms, items), f"round {t}"
        reward = arms[k] @ problem.theta[user] + 0.4 * rng.standard_normal()
        for policy, state in zip(POLICIES, (one, two), strict=True):
            policy.learn(state, t, user, arms[k], reward, items[k])
            if t in state.replans:
                before = state.group.copy()
                policy.replan(state, t)
                changed += not alike(before, state.group)
        np.testing.assert_array_equal(one.group, two.group)
        for V in set(one.group.tolist()):
            inverse, theta, _ = CLUBS.pooled(two.data, one.group == V, 0.5)
            np.testing.assert_allclose(one.M_inverse[V], inverse, atol=1e-9)
            np.testing.assert_allclose(one.theta[V], theta, atol=1e-9)
    assert changed > 2, "clusters never changed: nothing is shown"


POLICIES = (PAGE.RECLUB, PAGE.LITERAL_RECLUB)


def sizes_of():
    return {"users": 12, "m": 3, "d": 4, "items": 40, "gap": 1.2}


def test_a_residual_is_the_sum_of_squared_errors():
    rng = np.random.default_rng(0)
    X, r, theta = rng.standard_normal((30, 4)), rng.standard_normal(30), rng.standard_normal(4)
    data = PAGE.Data((X.T @ X)[None], (X.T @ r)[None], np.array([r @ r]), np.array([30.0]))
    expected = ((r - X @ theta) ** 2).sum()
    assert PAGE.residual(data, 0, theta) == pytest.approx(expected)
    assert PAGE.residuals(*data[:3], theta[None])[0, 0] == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.floats(0.05, 3), st.integers(1, 60))
def test_no_half_step_of_lloyd_increases_the_total(seed, m, noise, n):
    found = ELSEWHERE.largest_increase(np.random.default_rng(seed), 15, m, 6, noise, 1.0, n)
    assert found["increase"] <= 1e-9


def test_lloyd_ends_where_no_user_wants_to_leave():
    data, _ = data_of(5, noise=1.0)
    rng = np.random.default_rng(0)
    group, errors = PAGE.lloyd(*data[:3], PAGE.largest_first(rng.integers(4, size=14)), 1.0)
    np.testing.assert_array_equal(errors.argmin(axis=1), group)
    expected = PAGE.residuals(*data[:3], PAGE.pool(data.M, data.b, group, 1.0))
    np.testing.assert_allclose(errors, expected)


def test_clusters_are_found_and_users_without_rounds_join_the_largest():
    data, label = data_of(1, users=40, m=3, d=6, n=100, noise=0.3, idle=2)
    found = PAGE.recluster(*data, 1.0)
    assert found.clusters == 3 and not found.alone.any()
    assert adjusted_rand_score(label[2:], found.group[2:]) == 1
    assert found.sigma2 == pytest.approx(0.09, rel=0.05)
    assert (found.group[:2] == np.bincount(found.group[2:]).argmax()).all()


def test_labels_have_their_price():
    """Users all alike stay together; the plain criterion splits them, as derived."""
    data, _ = data_of(0, users=600, m=1, d=6, n=20, noise=0.5)
    assert PAGE.recluster(*data, 1.0).clusters == 1
    assert PAGE.recluster(*data, 1.0, labels=False).clusters > 1


def test_pure_noise_gains_what_the_derivation_says_from_a_split_in_two():
    u, d = 2000, 10
    z = np.random.default_rng(0).standard_normal((u, d))
    _, vectors = np.linalg.eigh(z.T @ z)
    side = z @ vectors[:, -1] > 0
    gain = sum(part.sum(axis=0) @ part.sum(axis=0) / len(part) for part in (z[side], z[~side]))
    assert gain == pytest.approx(2 / np.pi * (np.sqrt(u) + np.sqrt(d)) ** 2, rel=0.05)
    assert gain < u * np.log(2) + d * np.log(20 * u)


def test_the_guard_keeps_its_level_and_sees_strangers():
    found = [
        ELSEWHERE.turned_away(np.random.default_rng(k), 200, 5, 0.5, 1.2, 200) for k in range(5)
    ]
    belong, strange = (np.mean([one[name] for one in found]) for name in ("belong", "strange"))
    assert belong <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)
    assert belong >= 0.02, "the law is nearly exact with many rounds: a guard that sleeps is wrong"
    assert strange > 0.95


def with_stranger(n):
    """Return two clusters and a user of neither who has n rounds."""
    data, label = data_of(2, users=40, m=2, d=6, n=150, noise=0.3)
    stranger = ELSEWHERE.draw_data(np.random.default_rng(9), -np.eye(6)[:1], n, 0.3)
    return PAGE.Data(*(np.concatenate(p) for p in zip(data, stranger, strict=True))), label


@pytest.mark.parametrize("n, guarded", [(14, True), (150, False)])
def test_a_stranger_is_served_alone_and_leaves_the_pool(n, guarded):
    """With few rounds the guard sees it, with many the criterion gives it a cluster."""
    data, label = with_stranger(n)
    found = PAGE.recluster(*data, 1.0)
    assert found.alone[40] == guarded and not found.alone[:40].any()
    assert (found.group == found.group[40]).sum() == 1
    assert adjusted_rand_score(label, found.group[:40]) == 1
    kept = PAGE.recluster(*data, 1.0, delta=0.0)
    assert not kept.alone.any()
    assert ((kept.group == kept.group[40]).sum() > 1) == guarded


def test_a_split_pays_from_the_number_of_rounds_that_was_derived():
    users, d, noise, gap = 40, 8, 0.5, 0.8
    needed = {}
    for n in (4, 400):
        t = users * n
        price = d * np.log(t) + users * np.log(2)
        needed[n] = noise**2 * d / (0.25 * gap**2) * price / users
    assert needed[4] > 4 and needed[400] < 400
    few, many = (data_of(0, users, 2, d, n, noise, gap)[0] for n in (4, 400))
    assert PAGE.recluster(*few, 1.0).clusters == 1
    assert PAGE.recluster(*many, 1.0).clusters == 2


@pytest.mark.parametrize(
    "u, T, n0, times",
    [(10, 400, 12, [120, 170, 240, 339]), (10, 100, 12, []), (5, 1000, np.inf, [])],
)
def test_users_are_clustered_again_at_times_that_grow_by_the_root_of_two(u, T, n0, times):
    assert PAGE.replan_times(u, T, n0).tolist() == times


def test_its_ends_are_linucb_linucb_ind_and_the_oracle():
    ends = {"together": LINEAR.LINUCB, "alone": LINEAR.LINUCB_IND, "hidden": LINEAR.ORACLE}
    run = dict(T=500, trials=1, seed=3, settings=[{**sizes_of(), "arms": 6, "noise": 0.4}])
    for sharing, linear in ends.items():
        mine = with_constants(PAGE.RECLUB, beta=0.4, sharing=sharing, n0=np.inf)
        one, two = (
            simulate(CLUBS.CLUSTERED, {"a": p}, **run)["regret"]
            for p in (mine, with_constants(linear, beta=0.4))
        )
        np.testing.assert_allclose(one, two, rtol=1e-9)


def test_the_chance_of_a_wrong_cluster_is_the_derived_one():
    rng, d, n, noise, gap = np.random.default_rng(0), 10, 60, 0.5, 1.0
    one, other = CLUBS.cluster_vectors(rng, 2, d, gap)
    data = ELSEWHERE.draw_data(rng, np.tile(one, (4000, 1)), n, noise)
    errors = PAGE.residuals(*data[:3], np.array([one, other]))
    expected = chi2.sf((gap / (2 * noise)) ** 2 * n / d, 1) / 2  # Φ(−x) = P(χ² > x²)/2
    assert (errors[:, 1] < errors[:, 0]).mean() == pytest.approx(expected, rel=0.3)
