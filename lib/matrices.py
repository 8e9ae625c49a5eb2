"""From ratings to bandits: feedback matrices, feature vectors, and clusters of users."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.errors import BookError
from lib.linear import unit_rows


class Matrix(NamedTuple):
    """Binary feedback of the most active users on the most rated items, both in falling order."""

    values: np.ndarray  # (users, items), 0.0 or 1.0
    user_ids: np.ndarray
    item_ids: np.ndarray


class Features(NamedTuple):
    """Unit vectors of users and items from a truncated singular value decomposition."""

    users: np.ndarray  # (users, d)
    items: np.ndarray  # (items, d)
    singular_values: np.ndarray  # (d,)


def _most_frequent(ids: pd.Series, n: int) -> pd.Index:
    """Return the n most frequent identifiers, ties by identifier."""
    counts = ids.value_counts().sort_index()
    return counts.sort_values(ascending=False, kind="stable").index[:n]


def top_matrix(
    ratings: pd.DataFrame, users: int, items: int, binarise: str | float = "rated"
) -> Matrix:
    """Return the `users` × `items` feedback matrix of the public releases.

    Keep the 3·users most active users, then the most rated items among their ratings, then the most
    active users on those items; ties go to the smaller identifier. `binarise="rated"` puts 1 where
    there is a rating, a number puts 1 where the rating is above it. Of several ratings of a pair
    the last one counts.
    """
    if binarise != "rated" and (isinstance(binarise, str | bool) or not np.isfinite(binarise)):
        raise BookError(f"binarise must be 'rated' or a finite number, not {binarise!r}")
    if min(users, items) < 1:
        raise BookError(f"a matrix needs at least one user and one item, not {users} × {items}")
    kept = ratings.drop_duplicates(["user", "item"], keep="last")
    kept = kept[kept["user"].isin(_most_frequent(kept["user"], 3 * users))]
    top_items = _most_frequent(kept["item"], items)
    kept = kept[kept["item"].isin(top_items)]
    top_users = _most_frequent(kept["user"], users)
    if len(top_items) < items or len(top_users) < users:
        raise BookError(
            f"{users} users × {items} items were asked for, but the ratings give at most "
            f"{len(top_users)} × {len(top_items)}"
        )
    kept = kept[kept["user"].isin(top_users)]
    row, column = top_users.get_indexer(kept["user"]), top_items.get_indexer(kept["item"])
    values = np.zeros((users, items))
    values[row, column] = 1.0 if binarise == "rated" else kept["rating"] > binarise
    return Matrix(values, top_users.to_numpy(), top_items.to_numpy())


def svd_features(matrix: Matrix | np.ndarray, d: int, power: float = 0.5) -> Features:
    """Return user vectors U·Sᵖ and item vectors V·Sᵖ, where R = U S Vᵀ is cut at rank d.

    Every vector is scaled to length one. At p = 1/2 the inner products before scaling are the best
    rank-d approximation of R; p = 0 is the recipe as printed, R = Θ S Xᵀ with S dropped. Each
    singular pair is signed so that the largest entry of its item vector is positive. The full
    decomposition is taken (half a second at 1,000 × 1,000, four at 2,000 × 2,000): it needs no
    random start.
    """
    values = np.asarray(matrix.values if isinstance(matrix, Matrix) else matrix, dtype=float)
    U, S, Vt = np.linalg.svd(values, full_matrices=False)
    tolerance = S[0] * max(values.shape) * np.finfo(float).eps
    rank = sum(value > tolerance for value in S)
    if not 1 <= d <= rank:
        raise BookError(f"d = {d} features were asked for, but d must be from 1 to the rank {rank}")
    U, S, V = U[:, :d], S[:d], Vt[:d].T
    sign = np.sign(V[np.abs(V).argmax(axis=0), np.arange(d)])
    return Features(unit_rows(U * sign * S**power), unit_rows(V * sign * S**power), S)


def cluster_users(theta: np.ndarray, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return k-means labels and m unit-length centroids, clusters numbered by first member."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    distinct = len(np.unique(theta, axis=0))
    if not 1 <= m <= distinct:
        raise BookError(
            f"m = {m} clusters were asked for, but m must be from 1 to {distinct} (distinct users)"
        )
    with threadpool_limits(1):  # sums in another order would give other last digits
        fit = KMeans(n_clusters=m, n_init=10, random_state=seed).fit(theta)
    order = pd.unique(fit.labels_)
    renumber = np.empty(m, dtype=np.int64)
    renumber[order] = np.arange(m)
    return renumber[fit.labels_], unit_rows(fit.cluster_centers_[order])
