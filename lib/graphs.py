"""Users in groups: graphs as bitsets, components, and how well found groups fit the hidden ones.

Derived in the chapter on clustering of bandits, whose graphs of users lose edges round by round. A
row of a bitset holds 64 users a word. A compiled function calls only functions of this file, so
numba's on-disk cache can never serve stale machine code.
"""

import numpy as np
from scipy.sparse.csgraph import connected_components

from lib.kernels import compile_whole


def pack(together: np.ndarray) -> np.ndarray:
    """Return a u × u matrix of truth values as a bitset (u, ⌈u/64⌉), without loops."""
    u = len(together)
    padded = np.zeros((u, -(-u // 64) * 64), dtype=bool)
    padded[:, :u] = together & ~np.eye(u, dtype=bool)
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def unpack(edges: np.ndarray) -> np.ndarray:
    """Return a bitset as a u × u matrix of truth values."""
    return np.unpackbits(edges.view(np.uint8), axis=1, bitorder="little")[:, : len(edges)] > 0


def random_edges(rng: np.random.Generator, u: int, p: float) -> np.ndarray:
    """Return a symmetric bitset without loops; every edge is there with probability p."""
    upper = np.triu(rng.random((u, u)) < p, 1)
    return pack(upper | upper.T)


def components(together: np.ndarray) -> np.ndarray:
    """Return the connected component of each user, numbered by its first member."""
    return connected_components(together, directed=False)[1].astype(np.int64)


def equal_groups(users: int, m: int) -> np.ndarray:
    """Return the group of each user: m groups of consecutive users, as equal as they can be."""
    return np.arange(users) * m // users


def found_groups(label: np.ndarray, group: np.ndarray) -> dict[str, float]:
    """Return how many groups there are and how well they fit the labels: adjusted Rand index."""
    from sklearn.metrics import adjusted_rand_score

    return {"clusters": len(np.unique(group)), "ari": adjusted_rand_score(label, group)}


def share(truths: np.ndarray) -> float:
    """Return the share of what is true, and not a number where there is nothing to share."""
    return truths.mean() if truths.size else np.nan


@compile_whole
def has_bit(row, j):
    """Return whether user j is in a row of a bitset."""
    return (row[j >> 6] >> np.uint64(j & 63)) & np.uint64(1) != np.uint64(0)


@compile_whole
def flip_bit(row, j):
    """Put user j into a row of a bitset, or take it out."""
    row[j >> 6] ^= np.uint64(1) << np.uint64(j & 63)


@compile_whole
def reach(edges, start, found, limit):
    """Write the users connected with `start` into the bitset `found` and return how many they are.

    The search stops once it has `limit` of them: who knows how large the component can be need not
    look at the edges of those found last.
    """
    waiting = np.empty(edges.shape[0], dtype=np.int64)
    for w in range(found.size):
        found[w] = np.uint64(0)
    flip_bit(found, start)
    waiting[0] = start
    count, served = 1, 0
    while served < count and count < limit:
        row = edges[waiting[served]]
        served += 1
        for w in range(found.size):
            new = row[w] & ~found[w]
            found[w] |= new
            k = 64 * w
            while new != np.uint64(0):
                if new & np.uint64(1) != np.uint64(0):
                    waiting[count] = k
                    count += 1
                new >>= np.uint64(1)
                k += 1
    return count
