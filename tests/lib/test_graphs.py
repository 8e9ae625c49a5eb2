"""Bitsets and components against networkx; scores of partitions that are known."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from lib import graphs
from lib.graphs import (
    alpha_range,
    components,
    equal_groups,
    estimate_distances,
    flip_bit,
    found_groups,
    has_bit,
    pack,
    random_edges,
    reach,
    share,
    threshold,
    unpack,
)
from lib.linear import directions

SIZES = (1, 2, 63, 64, 65, 130)


def members(bits, u):
    return {j for j in range(u) if has_bit(bits, j)}


@pytest.mark.parametrize("u", SIZES)
def test_a_bitset_is_the_matrix_without_its_diagonal(u):
    together = np.random.default_rng(u).random((u, u)) < 0.3
    edges = pack(together)
    assert edges.shape == (u, -(-u // 64))
    np.testing.assert_array_equal(unpack(edges), together & ~np.eye(u, dtype=bool))
    for i in (0, u // 2, u - 1):
        assert members(edges[i], u) == set(np.flatnonzero(together[i])) - {i}


@given(st.sets(st.integers(0, 129)), st.integers(0, 129))
def test_flipping_puts_in_and_takes_out_one_user_alone(users, other):
    row = np.zeros(3, dtype=np.uint64)
    for j in users:
        flip_bit(row, j)
    assert members(row, 130) == users
    flip_bit(row, other)
    assert members(row, 130) == users ^ {other}


@pytest.mark.parametrize("u", SIZES)
@pytest.mark.parametrize("density", [0.0, 0.5, 1.0, 2.0, 10.0])
def test_reach_and_components_agree_with_networkx(u, density):
    edges = random_edges(np.random.default_rng(u), u, min(1.0, density / u))
    graph = nx.from_numpy_array(unpack(edges))
    label = components(unpack(edges))
    found = np.zeros(edges.shape[1], dtype=np.uint64)
    for start in {0, u // 3, u - 1}:
        whole = nx.node_connected_component(graph, start)
        assert reach(edges, start, found, u) == len(whole)
        assert members(found, u) == whole
        assert set(np.flatnonzero(label == label[start])) == whole
    assert label.dtype == np.int64
    _, first = np.unique(label, return_index=True)
    assert (np.diff(first) > 0).all()  # numbered by the first member


@pytest.mark.parametrize("limit", [1, 2, 10, 99])
def test_a_search_that_is_limited_stops_early_and_never_leaves_the_component(limit):
    line = np.eye(100, k=1, dtype=bool) | np.eye(100, k=-1, dtype=bool)
    line[59, 60] = line[60, 59] = False
    found = np.zeros(2, dtype=np.uint64)
    count = reach(pack(line), 0, found, limit)
    assert count == min(limit, 60)
    assert members(found, 100) == set(range(count))
    full = pack(np.ones((100, 100), dtype=bool))
    assert reach(full, 7, found, limit) == (1 if limit == 1 else 100)  # a whole row at a time


def test_random_edges_are_symmetric_and_as_many_as_they_should_be():
    together = unpack(random_edges(np.random.default_rng(0), 300, 0.2))
    assert (together == together.T).all()
    assert not together.diagonal().any()
    pairs = 300 * 299 / 2
    spread = np.sqrt(pairs * 0.2 * 0.8)
    assert abs(together.sum() / 2 - 0.2 * pairs) < 3 * spread
    assert not unpack(random_edges(np.random.default_rng(0), 50, 0.0)).any()


@given(st.integers(1, 200), st.data())
def test_equal_groups_are_consecutive_and_differ_by_one_user_at_most(users, data):
    m = data.draw(st.integers(1, users))
    label = equal_groups(users, m)
    assert (np.diff(label) >= 0).all()
    sizes = np.bincount(label)
    assert len(sizes) == m
    assert sizes.max() - sizes.min() <= 1


def test_groups_are_scored_whatever_their_numbers():
    label = equal_groups(12, 3)
    names = ("clusters", "ari", "largest", "purity")
    for group, scores in {
        "true": (7 - label, (3, 1.0, 1 / 3, 1.0)),
        "alone": (np.arange(12), (12, 0.0, 1 / 12, 1.0)),
        "together": (np.zeros(12), (1, 0.0, 1.0, 1 / 3)),
    }.values():
        assert found_groups(label, group) == pytest.approx(dict(zip(names, scores, strict=True)))
    one_moved = label.copy()
    one_moved[0] = 1
    assert found_groups(label, one_moved)["purity"] == pytest.approx(11 / 12)
    assert found_groups(label, one_moved)["largest"] == pytest.approx(5 / 12)
    # pairs together in both 15, expected 18 · 19/66, at most (18 + 19)/2: Hubert and Arabie
    expected = 18 * 19 / 66
    assert found_groups(label, one_moved)["ari"] == pytest.approx(
        (15 - expected) / (18.5 - expected)
    )


def test_agreement_is_that_of_scikit_learn_bit_by_bit():
    rng = np.random.default_rng(4)
    for _ in range(200):
        label, group = (rng.integers(rng.integers(1, 9), size=30) for _ in range(2))
        assert found_groups(label, group)["ari"] == adjusted_rand_score(label, group)


def test_a_share_of_nothing_is_not_a_number():
    assert share(np.array([True, False, True, True])) == 0.75
    assert np.isnan(share(np.array([], dtype=bool)))


@pytest.mark.parametrize("n, d, noise, gap", [(200, 4, 0.5, 1.0), (60, 10, 0.3, 1.4)])
def test_distances_of_ridge_estimates_are_those_of_drawn_users(n, d, noise, gap):
    rng, pairs = np.random.default_rng(0), 2000
    one, other = np.zeros(d), np.zeros(d)
    one[0], other[0] = gap / 2, -gap / 2
    theta = np.repeat([one, one, other], pairs, axis=0)
    x = directions(rng, 3 * pairs, n, d)
    r = np.einsum("ind,id->in", x, theta) + noise * rng.standard_normal(x.shape[:2])
    M = np.swapaxes(x, 1, 2) @ x + np.eye(d)
    estimates = np.linalg.solve(M, np.einsum("ind,in->id", x, r)[:, :, None])[:, :, 0]
    first, same, apart = estimates.reshape(3, pairs, d)
    expected = estimate_distances(n, d, noise, gap)
    for found, value in zip((first - same, first - apart), expected, strict=True):
        # the formula replaces M by its mean, which is off by about d/n
        assert np.sqrt((found**2).sum(axis=1).mean()) == pytest.approx(value, rel=2 * d / n)


def test_alpha_scales_with_noise_and_dimension_and_hardly_with_rounds():
    low, high = alpha_range(10_000, 10, 0.5, 1.0)
    assert 0 < low < high
    assert alpha_range(10_000, 10, 1.0, 1.0)[0] == pytest.approx(2 * low)
    assert alpha_range(10_000, 20, 0.5, 1.0)[0] == pytest.approx(2 * low, rel=0.01)
    assert alpha_range(100_000, 10, 0.5, 1.0)[0] == pytest.approx(low, rel=0.15)
    # what keeps one cluster together approaches σd/√(2(1 + ln n))
    assert 2 * low == pytest.approx(0.5 * 10 / np.sqrt(2 * (1 + np.log(10_000))), rel=0.01)
    assert threshold(0) == 2


def test_sets_keep_their_books_whatever_happens_to_them():
    """Sizes, and users not yet checked, follow from who is where and who was checked."""
    rng = np.random.default_rng(5)
    sets = graphs.one_set(12)
    for _ in range(300):
        user = rng.integers(12)
        what = rng.integers(4)
        if what == 0 and sets.size[sets.cluster[user]] > 1:
            free = min(set(range(12)) - set(sets.cluster))
            assert graphs.leave(sets, user) == free == sets.cluster[user]
        elif what == 1:
            graphs.check(sets, user)
        elif what == 2 and len(np.unique(sets.cluster)) > 1:
            low, high = np.sort(rng.choice(np.unique(sets.cluster), 2, replace=False))
            graphs.join(sets, low, high)
        elif rng.random() < 0.1:
            graphs.begin_phase(sets)
        np.testing.assert_array_equal(sets.size, np.bincount(sets.cluster, minlength=12))
        waiting = np.bincount(sets.cluster[~sets.checked], minlength=12)
        np.testing.assert_array_equal(sets.unchecked, waiting)


def test_first_close_pair_is_the_first_of_all_pairs_that_could_have_changed():
    rng = np.random.default_rng(6)
    for _ in range(200):
        cluster = rng.integers(6, size=10)
        size = np.bincount(cluster, minlength=10)
        sets = graphs.Sets(
            cluster, size, rng.random(10) < 0.9, np.zeros(10, int), rng.random(10) < 0.5
        )
        sets.unchecked[:] = np.bincount(cluster[~sets.checked], minlength=10)
        centre, radius, rounds = rng.random((10, 2)), rng.random(10), rng.integers(50, size=10)
        often = rng.choice([5.0, np.inf])
        visits = rounds / np.maximum(size, 1)
        close = [
            (V, W)
            for V, W in combinations(range(10), 2)
            if size[V] * size[W] > 0
            and sets.unchecked[V] + sets.unchecked[W] == 0
            and (sets.changed[V] or sets.changed[W])
            and 2 * np.linalg.norm(centre[V] - centre[W]) < 0.5 * (radius[V] + radius[W]) + 0.1
            and abs(visits[V] - visits[W]) < often
        ]
        *found, compared = graphs.first_close(sets, centre, radius, 0.5, 0.1, rounds, often)
        assert tuple(found) == (close[0] if close else (10, 10))
        assert compared >= len(close[:1])


def test_in_a_random_circle_no_two_users_stand_for_each_other():
    before = graphs.random_circle(np.random.default_rng(0), 12)
    walk = [0]
    while before[walk[-1]] != 0:
        walk.append(before[walk[-1]])
    assert sorted(walk) == list(range(12))
