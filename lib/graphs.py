"""Users in groups: graphs as bitsets, components, and how well found groups fit the hidden ones.

Derived in the chapter on clustering of bandits, whose graphs of users lose edges round by round. A
row of a bitset holds 64 users a word. A compiled function calls only functions of this file, so
numba's on-disk cache can never serve stale machine code.
"""

from typing import NamedTuple

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


def random_circle(rng: np.random.Generator, u: int) -> np.ndarray:
    """Return for each user the one before it in a random circle: for controls, whose tests
    compare with somebody else's estimate."""
    order = rng.permutation(u)
    before = np.empty(u, dtype=np.int64)
    before[order] = np.roll(order, 1)
    return before


def components(together: np.ndarray) -> np.ndarray:
    """Return the connected component of each user, numbered by its first member."""
    return connected_components(together, directed=False)[1].astype(np.int64)


def equal_groups(users: int, m: int) -> np.ndarray:
    """Return the group of each user: m groups of consecutive users, as equal as they can be."""
    return np.arange(users) * m // users


def found_groups(label: np.ndarray, group: np.ndarray) -> dict[str, float]:
    """Return how many groups there are, how large, how pure, and how well they fit the labels.

    `largest` is the share of the users in the largest group, `purity` that of the users whose
    label is the most frequent one of their group, `ari` the adjusted Rand index.
    """
    groups, mine = np.unique(group, return_inverse=True)
    labels, true = np.unique(label, return_inverse=True)
    counts = np.zeros((len(groups), len(labels)), dtype=np.int64)
    np.add.at(counts, (mine, true), 1)
    return {
        "clusters": len(groups),
        "ari": adjusted_rand_index(counts),
        "largest": counts.sum(axis=1).max() / len(label),
        "purity": counts.max(axis=1).sum() / len(label),
    }


def adjusted_rand_index(counts: np.ndarray) -> float:
    """Return the agreement of two partitions whose common members are counted.

    The numbers of scikit-learn, bit by bit, at a tenth of the time: checkpoints ask for thousands.
    """
    inside = int((counts**2).sum())
    mine, true = (int((counts.sum(axis=axis) ** 2).sum()) for axis in (1, 0))
    both, mixed, parted = inside - int(counts.sum()), mine - inside, true - inside
    apart = int(counts.sum()) ** 2 - mixed - parted - inside
    if not mixed and not parted:
        return 1.0
    top = 2.0 * (both * apart - mixed * parted)
    return top / ((both + mixed) * (mixed + apart) + (both + parted) * (parted + apart))


def threshold(n):
    """Return 2f(n), what α is multiplied with for two users with n rounds each."""
    return 2 * np.sqrt((1 + np.log1p(n)) / (1 + n))


def estimate_distances(n, d: int, noise: float, gap: float, lam: float = 1.0):
    """Return how far apart two users' ridge estimates are, root mean square, after n rounds each.

    The first number is for users of one cluster, the second for clusters at distance `gap`. Arms
    point in all directions alike; where a learner chooses them, distances are larger. Derived on
    the page on thresholds.
    """
    information = np.asarray(n) / d
    scatter = 2 * d * noise**2 * information / (information + lam) ** 2
    return np.sqrt(scatter), np.sqrt(scatter + (gap * information / (information + lam)) ** 2)


def alpha_range(
    n: float, d: int, noise: float, gap: float, lam: float = 1.0
) -> tuple[float, float]:
    """Return where to search the constant α of a threshold α(f(T_i) + f(T_l)), for n rounds a user.

    From half of what keeps users of one cluster together to twice of what tells two clusters apart.
    """
    within, between = estimate_distances(n, d, noise, gap, lam)
    return float(within / threshold(n) / 2), float(2 * between / threshold(n))


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


class Sets(NamedTuple):
    """A partition of the users whose sets split and merge, as SCLUB and RSCLUMB keep it.

    The functions below take it, or any state that has its fields.
    """

    cluster: np.ndarray  # (u,) number of each user's set
    size: np.ndarray  # (u,) users in each set, 0 for a number not in use
    checked: np.ndarray  # (u,) whether the user was served in this phase
    unchecked: np.ndarray  # (u,) users of each set not yet served in this phase
    changed: np.ndarray  # (u,) sets that changed since pairs were last compared


def one_set(u: int) -> Sets:
    """Return the partition that has all users in set 0."""
    cluster = np.zeros(u, dtype=np.int64)
    size = np.bincount(cluster, minlength=u)
    return Sets(cluster, size, cluster > 0, size.copy(), cluster > 0)


@compile_whole
def begin_phase(sets):
    """Mark all users unchecked."""
    for k in range(sets.size.size):
        sets.checked[k] = False
        sets.unchecked[k] = sets.size[k]


@compile_whole
def leave(sets, user):
    """Make the user a set of its own and return its number, the lowest that is free."""
    V, W = sets.cluster[user], 0
    while sets.size[W] > 0:
        W += 1
    sets.cluster[user] = W
    for k, by in ((V, -1), (W, 1)):
        sets.size[k] += by
        sets.changed[k] = True
    sets.unchecked[W] = 0
    if not sets.checked[user]:
        sets.unchecked[V] -= 1
        sets.unchecked[W] = 1
    return W


@compile_whole
def check(sets, user):
    """Mark a user checked."""
    if not sets.checked[user]:
        sets.checked[user] = True
        sets.unchecked[sets.cluster[user]] -= 1


@compile_whole
def join(sets, V, W):
    """Move all users of set W to set V."""
    for user in range(sets.cluster.size):
        if sets.cluster[user] == W:
            sets.cluster[user] = V
    sets.size[V] += sets.size[W]
    sets.unchecked[V] += sets.unchecked[W]
    sets.size[W] = 0
    sets.unchecked[W] = 0
    sets.changed[V] = True


@compile_whole
def first_close(sets, centre, radius, scale, slack, rounds, often):
    """Return the first two checked sets that are close, and how many pairs were compared.

    Close means 2·‖centre_V − centre_W‖ < scale·(radius_V + radius_W) + slack, and that the mean
    numbers of rounds of their users differ by less than `often`. SCLUB's centres are pooled
    estimates, RSCLUMB's averages of its users' estimates. Only pairs with a set that changed are
    looked at: for the others nothing is new. Where no two are close, both are the number of users.
    """
    u = sets.size.size
    first, second, compared = u, u, 0
    for V in range(u):
        if not sets.changed[V] or sets.size[V] == 0 or sets.unchecked[V] > 0:
            continue
        for W in range(u):
            low, high = min(V, W), max(V, W)
            if W == V or sets.size[W] == 0 or sets.unchecked[W] > 0:
                continue
            if low < first or (low == first and high < second):
                compared += 1
                total = 0.0
                for j in range(centre.shape[1]):
                    total += (centre[V, j] - centre[W, j]) ** 2
                near = 2 * np.sqrt(total) < scale * (radius[V] + radius[W]) + slack
                apart = rounds[V] / sets.size[V] - rounds[W] / sets.size[W]
                if near and abs(apart) < often:
                    first, second = low, high
    return first, second, compared
