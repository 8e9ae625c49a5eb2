"""CLUB and SCLUB, fast, against the literal versions of the page, decision by decision."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import chapters
from lib.errors import BookError
from lib.graphs import components, flip_bit, unpack

PAGE = chapters.load("clustering-of-bandits")
EXPERIMENTS = chapters.load("clustering-of-bandits/experiments")
THRESHOLDS = chapters.load("clustering-of-bandits/thresholds")
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


def together_of(label):
    return label[:, None] == label


def literal_label(state):
    """Return the group of each user in the state of a literal version."""
    return components(state.edges) if hasattr(state, "edges") else state.cluster


def check_statistics(state, literal):
    """Every cluster's regression must be that of its members' rounds, each counted once."""
    u, lam, sums = len(state.cluster), literal.lam, literal.sums
    assert state.size.sum() == u
    assert state.ridge.count[u:].sum() == sums.T.sum()
    for V in set(state.cluster.tolist()):
        members, k = np.flatnonzero(state.cluster == V), u + V
        assert state.size[V] == len(members)
        np.testing.assert_allclose(state.ridge.M[k], sums.M[members].sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(state.ridge.b[k], sums.b[members].sum(axis=0), atol=1e-9)
        np.testing.assert_allclose(state.ridge.count[k], sums.T[members].sum())
        inverse, theta, _ = PAGE.pooled(sums, members, lam)
        np.testing.assert_allclose(state.ridge.M_inverse[k], inverse, atol=1e-9)
        np.testing.assert_allclose(state.ridge.theta[k], theta, atol=1e-8)
    free = np.setdiff1d(np.arange(u), state.cluster)
    assert not state.size[free].any()
    np.testing.assert_allclose(state.ridge.M[u + free], 0, atol=1e-9)
    alone = [PAGE.pooled(sums, [i], lam)[0] for i in range(u)]
    np.testing.assert_allclose(state.ridge.M_inverse[:u], alone, atol=1e-9)


def play_both(fast, literal, seed, T=300, every=10, **constants):
    """Play both versions side by side, compare all that can be compared, return the partitions."""
    problem, constants = problem_of(seed), {"lam": 0.5, "beta": 0.6, **constants}
    one, two = (p.init(problem, T, np.random.default_rng(0), **constants) for p in (fast, literal))
    partitions = []
    for t, user, items, arms, noise in rounds_of(problem, seed, T):
        k = fast.choose(one, t, user, arms, items)
        assert k == literal.choose(two, t, user, arms, items), f"round {t}"
        reward = arms[k] @ problem.theta[user] + noise
        fast.learn(one, t, user, arms[k], reward, items[k])
        literal.learn(two, t, user, arms[k], reward, items[k])
        partitions.append(together_of(literal_label(two)))
        np.testing.assert_array_equal(together_of(one.cluster), partitions[-1], f"round {t}")
        if t % every == 0:
            check_statistics(one, two)
    return one, two, partitions


@pytest.mark.parametrize("seed, alpha", [(0, 0.7), (1, 0.9), (2, 0.6), (3, 0.4)])
def test_club_decides_like_its_literal_version(seed, alpha):
    one, two, partitions = play_both(PAGE.CLUB, PAGE.LITERAL_CLUB, seed, alpha=alpha)
    np.testing.assert_array_equal(unpack(one.edges), two.edges)
    assert len({p.tobytes() for p in partitions}) > 2, "no component fell apart: nothing is shown"


@pytest.mark.parametrize(
    "seed, alpha, alpha_p", [(0, 0.9, np.inf), (1, 1.2, np.inf), (2, 0.9, 0.4), (3, 1.5, 0.3)]
)
def test_sclub_decides_like_its_literal_version(seed, alpha, alpha_p):
    _, _, partitions = play_both(
        PAGE.SCLUB, PAGE.LITERAL_SCLUB, seed, every=1, alpha=alpha, alpha_p=alpha_p
    )
    steps = list(itertools.pairwise(partitions))
    assert any((before & ~after).any() for before, after in steps), "no split: nothing is shown"
    assert any((after & ~before).any() for before, after in steps), "no merge: nothing is shown"


def test_literal_regression_is_ridge_regression_on_all_rounds_of_the_pool():
    problem, sums = problem_of(4), PAGE.no_sums(12, 4)
    kept = []
    for _, user, _, arms, noise in rounds_of(problem, 4, 80):
        PAGE.add_round(sums, user, arms[0], noise)
        kept.append((user, arms[0], noise))
    V = [0, 3, 7]
    X = np.array([x for user, x, _ in kept if user in V] + [row for row in 0.7 * np.eye(4)])
    y = np.array([r for user, _, r in kept if user in V] + [0.0] * 4)
    _, theta, count = PAGE.pooled(sums, V, 0.49)
    np.testing.assert_allclose(theta, np.linalg.lstsq(X, y)[0], atol=1e-10)
    assert count == len(X) - 4
    assert PAGE.apart(sums, V, V, 0.49) == 0


def test_phases_of_the_literal_sclub_begin_in_rounds_two_to_the_s_minus_one():
    problem = problem_of(0)
    state = PAGE.LITERAL_SCLUB.init(problem, 40, None, alpha=np.inf)
    begun = []
    for t in range(1, 40):
        state.checked[:] = True
        PAGE.LITERAL_SCLUB.learn(state, t, 0, problem.pool[0], 0.0, 0)
        begun += [t] * (not state.checked[1:].any())
    assert begun == [1, 3, 7, 15, 31]


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
    sums = PAGE.no_sums(12, 4)
    for t, user, items, arms, noise in rounds_of(problem, 7, 50):
        inverse, theta, count = PAGE.pooled(sums, range(12), 1.0)
        width = 1 + np.sqrt(4 * np.log(1 + count / 4) + 4 * np.log(t) + np.log(2))
        k = PAGE.CLUB.choose(state, t, user, arms, items)
        scores = arms @ theta + width * np.einsum("kd,de,ke->k", arms, inverse, arms)
        assert scores[k] == pytest.approx(scores.max(), abs=1e-9)
        reward = arms[k] @ problem.theta[user] + noise
        PAGE.CLUB.learn(state, t, user, arms[k], reward, items[k])
        PAGE.add_round(sums, user, arms[k], reward)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 90), st.floats(0.5, 4), st.integers(0, 2**32 - 1))
def test_regroup_keeps_components_while_one_user_loses_edges(u, degree, seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(0, users=u, m=1, d=2)
    state = PAGE.CLUB.init(problem, 1, rng, edge_probability=degree / u)
    for user in rng.integers(u, size=5):
        for other in np.flatnonzero(unpack(state.edges)[user]):
            if rng.random() < 0.7:
                flip_bit(state.edges[user], other)
                flip_bit(state.edges[other], user)
        PAGE.regroup(state, user)
        expected = components(unpack(state.edges))
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
    seen = PAGE.watch_club(PAGE.CLUB.init(problem, 1, np.random.default_rng(0)), problem)
    assert seen["clusters"] == 1 and seen["ari"] == 0 and seen["false_keep"] == 1
    sets = PAGE.SCLUB.init(problem, 1, None)._replace(cluster=problem.label)
    seen = PAGE.watch_sclub(sets, problem)
    assert (seen["clusters"], seen["ari"], seen["false_split"], seen["false_keep"]) == (3, 1, 0, 0)


def test_pairs_are_measured_in_the_estimates_of_users():
    problem = problem_of(0)
    state = PAGE.CLUB.init(problem, 1, np.random.default_rng(0), alpha=0.5)
    state.ridge.theta[:12] = problem.theta
    seen = PAGE.watch_club(state, problem)
    for q in (5, 50, 95):
        assert seen[f"same_{q}"] == pytest.approx(0, abs=1e-7)
        assert seen[f"other_{q}"] == pytest.approx(1.2)
    assert seen["radius"] == pytest.approx(2), "f(0) = 1 for users never served"


def test_quantiles_of_pairs_are_those_of_all_distances():
    problem = problem_of(3)
    state = PAGE.CLUB.init(problem, 1, np.random.default_rng(0))
    state.ridge.theta[:] = np.random.default_rng(1).standard_normal(state.ridge.theta.shape)
    apart = {True: [], False: []}
    for i, j in itertools.combinations(range(12), 2):
        distance = np.linalg.norm(state.ridge.theta[i] - state.ridge.theta[j])
        apart[bool(problem.label[i] == problem.label[j])].append(distance)
    seen = PAGE.watch_club(state, problem)
    for name, same in (("same", True), ("other", False)):
        for q in (5, 50, 95):
            assert seen[f"{name}_{q}"] == pytest.approx(np.quantile(apart[same], q / 100))


def test_the_four_pictures_show_fewer_and_fewer_edges():
    problem = problem_of(0)
    rows, rng = [], np.random.default_rng(0)
    for p in (1.0, 0.6, 0.25, 0.05):
        state = PAGE.CLUB.init(problem, 1, rng, edge_probability=p)
        rows.append({"t": len(rows), **PAGE.CLUB.watch(state, problem)})
        together, component = EXPERIMENTS.graph_of(pd.DataFrame(rows[-1:]).iloc[0])
        np.testing.assert_array_equal(together, unpack(state.edges))
        np.testing.assert_array_equal(component, components(together))
    assert EXPERIMENTS.four_moments(pd.DataFrame(rows))["t"].tolist() == [0, 1, 2, 3]


def test_error_rates_move_the_right_way():
    found = pd.DataFrame(THRESHOLDS.error_rates(np.random.default_rng(0), 3, 0.3, 1.0, pairs=40))
    rates = {
        alpha: rows.reset_index()
        for alpha, rows in found.groupby("alpha", sort=False)
        if alpha in (0.5, 1.0, 3.0)
    }
    assert all(list(rows["n"]) == list(THRESHOLDS.SIZES) for rows in rates.values())
    for rate in rates.values():
        assert (np.diff(rate["false_split"]) >= 0).all()
        assert (np.diff(rate["false_keep"]) <= 0).all()
    assert rates[0.5]["false_split"].iloc[-1] > rates[3.0]["false_split"].iloc[-1]
    assert (rates[0.5]["false_keep"] <= rates[3.0]["false_keep"]).all()
