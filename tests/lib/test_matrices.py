"""Matrices: the recipe of the releases, singular value features, and clusters of users."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lib import datasets, matrices
from lib.errors import BookError


def naive_top_matrix(rows, users, items, binarise):
    """The recipe line by line, on a dictionary of ratings."""
    rating = {(user, item): value for user, item, value in rows}

    def top(ids, n):
        ids = list(ids)
        return sorted(set(ids), key=lambda i: (-ids.count(i), i))[:n]

    active = top((user for user, _ in rating), 3 * users)
    popular = top((item for user, item in rating if user in active), items)
    chosen = top((user for user, item in rating if user in active and item in popular), users)

    def value(pair):
        return pair in rating and (binarise == "rated" or rating[pair] > binarise)

    return [[float(value((user, item))) for item in popular] for user in chosen], chosen, popular


RATINGS = st.lists(
    st.tuples(st.integers(1, 12), st.integers(1, 8), st.sampled_from([1.0, 3.0, 3.5, 5.0])),
    min_size=1,
    max_size=60,
)


@settings(max_examples=100, deadline=None)
@given(
    rows=RATINGS,
    users=st.integers(1, 5),
    items=st.integers(1, 5),
    binarise=st.sampled_from(["rated", 3, 0.5]),
)
def test_top_matrix_is_the_naive_recipe(rows, users, items, binarise):
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    values, chosen, popular = naive_top_matrix(rows, users, items, binarise)
    if len(chosen) < users or len(popular) < items:
        with pytest.raises(BookError, match=rf"at most {len(chosen)} × {len(popular)}"):
            matrices.top_matrix(frame, users, items, binarise)
        return
    matrix = matrices.top_matrix(frame, users, items, binarise)
    assert matrix.values.tolist() == values
    assert matrix.user_ids.tolist() == chosen
    assert matrix.item_ids.tolist() == popular
    if len({(user, item) for user, item, _ in rows}) == len(rows):
        other = matrices.top_matrix(frame.sample(frac=1, random_state=0), users, items, binarise)
        assert other.values.tolist() == values, "the order of the rows does not matter"


@pytest.mark.parametrize("binarise", ["liked", float("nan"), True])
def test_top_matrix_refuses_other_rules(binarise):
    frame = pd.DataFrame({"user": [1], "item": [1], "rating": [4.0]})
    with pytest.raises(BookError, match="binarise must be"):
        matrices.top_matrix(frame, 1, 1, binarise)
    with pytest.raises(BookError, match="at least one user"):
        matrices.top_matrix(frame, 0, 1)


def square_root(A):
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.sqrt(values.clip(0))) @ vectors.T


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 7), m=st.integers(2, 7))
def test_svd_features_give_back_the_matrix(seed, n, m):
    # With P = U√S and Q = V√S: PQᵀ = R, |pᵢ|² = ((RRᵀ)^½)ᵢᵢ and |qⱼ|² = ((RᵀR)^½)ⱼⱼ.
    R = np.random.default_rng(seed).normal(size=(n, m))
    assume(np.linalg.cond(R) < 1e4)
    features = matrices.svd_features(R, min(n, m))
    p, q = np.sqrt(np.diag(square_root(R @ R.T))), np.sqrt(np.diag(square_root(R.T @ R)))
    np.testing.assert_allclose(features.users @ features.items.T * np.outer(p, q), R, atol=1e-5)
    for vectors in (features.users, features.items):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1)
    np.testing.assert_allclose((features.singular_values**2).sum(), (R**2).sum())


def test_svd_features_as_printed_drop_the_singular_values():
    R = np.random.default_rng(0).normal(size=(6, 4))
    U, _, _ = np.linalg.svd(R, full_matrices=False)
    cosines = U[:, :3] @ U[:, :3].T
    norms = np.sqrt(np.diag(cosines))
    users = matrices.svd_features(R, 3, power=0).users
    np.testing.assert_allclose(users @ users.T, cosines / np.outer(norms, norms))


def test_svd_features_have_fixed_signs_and_no_invented_directions():
    R = (np.random.default_rng(1).random((30, 20)) < 0.4).astype(float)
    R[:, 7] = 0
    matrix = matrices.Matrix(R, np.arange(30), np.arange(20))
    features = matrices.svd_features(matrix, 5)
    assert not features.items[7].any()
    np.testing.assert_allclose(np.linalg.norm(np.delete(features.items, 7, axis=0), axis=1), 1)
    turned = matrices.svd_features(R[::-1], 5)
    np.testing.assert_allclose(turned.users[::-1], features.users, atol=1e-10)
    np.testing.assert_allclose(turned.items, features.items, atol=1e-10)


def test_svd_features_refuse_more_than_the_rank():
    R = np.outer(np.arange(1, 5), np.arange(1, 4)).astype(float)
    assert matrices.svd_features(R, 1).users.shape == (4, 1)
    for d in (0, 2):
        with pytest.raises(BookError, match="from 1 to the rank 1"):
            matrices.svd_features(R, d)


def test_clusters_are_found_numbered_by_first_member_and_repeatable():
    rng = np.random.default_rng(3)
    hidden = np.array([2, 0, 2, 1, 0, 1, 1, 2] * 10)
    theta = np.eye(3)[hidden] + 0.05 * rng.normal(size=(80, 3))
    labels, centroids = matrices.cluster_users(theta, 3, seed=0)
    assert labels.tolist() == np.array([1, 2, 0])[hidden].tolist()
    np.testing.assert_allclose(np.linalg.norm(centroids, axis=1), 1)
    np.testing.assert_allclose(centroids, np.eye(3)[[2, 0, 1]], atol=0.05)
    for seed in (0, 1):
        again, same = matrices.cluster_users(theta, 3, seed)
        assert again.tolist() == labels.tolist()
        np.testing.assert_allclose(same, centroids)
    for m in (0, 3):
        with pytest.raises(BookError, match="from 1 to 2"):
            matrices.cluster_users(theta[[0, 1, 0]], m, seed=0)


def test_matrix_of_the_embedded_set():
    matrix = matrices.top_matrix(datasets.ratings("ml-latest-small"), 200, 300)
    assert matrix.values.shape == (200, 300)
    assert set(np.unique(matrix.values)) == {0.0, 1.0}
    assert (np.diff(matrix.values.sum(axis=1)) <= 0).all(), "most active users first"
    features = matrices.svd_features(matrix, 20)
    labels, centroids = matrices.cluster_users(features.users, 5, seed=0)
    assert set(labels) == set(range(5))
    assert centroids.shape == (5, 20)
