"""CLUB without a graph in memory: an edge is there unless it was tested and deleted.

The complete graph of u users has u²/2 edges, a bit each. But edges matter only inside a component,
and of these few have been deleted at any time: who has lost all its edges is a component alone. So
the deleted edges stand in a table, a component's edges are all pairs of its members that are not in
it, and components are searched on the complement, which costs the members and deleted edges, not
the pairs. Every decision is that of CLUB with the complete graph; the tests compare them.
"""

from typing import NamedTuple

import numpy as np

from lib import chapters
from lib.graphs import flip_bit, has_bit
from lib.kernels import jit
from lib.simulate import Policy

CLUBS = chapters.load("clustering-of-bandits")
FREE = -1
SPREAD = 0x9E3779B97F4A7C15  # of the golden ratio: consecutive numbers land far apart


class Implicit(NamedTuple):
    """The state of CLUB with a table of deleted edges in place of a graph."""

    ridge: CLUBS.Ridges
    cluster: np.ndarray  # (u,) component of each user
    size: np.ndarray  # (u,) users in each component, 0 for a number not in use
    deleted: np.ndarray  # (c,) edges i·u + j with i < j, FREE where there is none
    entries: np.ndarray  # (1,) edges in the table
    lost: np.ndarray  # (u,) edges that a user has in the table
    work: np.ndarray  # nothing, searches, rebuilt components
    alpha: float
    beta: float
    lam: float
    released: bool


def init_implicit(problem, T, rng, lam=1.0, beta=1.0, alpha=1.0, room=20, released=False):
    """Return the state; the table of deleted edges has room for 2^room, of which half are used."""
    u, d = problem.theta.shape
    cluster, size = np.zeros(u, dtype=np.int64), np.zeros(u, dtype=np.int64)
    size[0] = u
    table = np.full(2**room, FREE, dtype=np.int64), np.zeros(1, np.int64), np.zeros(u, np.int64)
    scales = float(alpha), float(beta), float(lam)
    ridge, work = CLUBS.no_data(2 * u, d, lam), np.zeros(3, dtype=np.int64)
    return Implicit(ridge, cluster, size, *table, work, *scales, released)


@jit
def place(deleted, edge):
    """Return where an edge stands in the table, or where it would."""
    at = (np.uint64(edge) * np.uint64(SPREAD)) >> np.uint64(20)
    k = np.int64(at % np.uint64(deleted.size))
    while deleted[k] not in (FREE, edge):
        k = k + 1 if k + 1 < deleted.size else 0
    return k


@jit
def edge_of(i, j, u):
    return min(i, j) * u + max(i, j)


@jit
def is_deleted(state, i, j):
    if state.lost[i] == 0 or state.lost[j] == 0:
        return False
    return state.deleted[place(state.deleted, edge_of(i, j, state.size.size))] != FREE


@jit
def forget_between(state):
    """Take out the edges between components, which nobody asks for any more."""
    u, kept = state.size.size, state.deleted.copy()
    state.deleted[:] = FREE
    state.lost[:] = 0
    state.entries[0] = 0
    for edge in kept:
        i, j = edge // u, edge % u
        if edge != FREE and state.cluster[i] == state.cluster[j]:
            enter(state, i, j)


@jit
def enter(state, i, j):
    """Put an edge into the table."""
    edge = edge_of(i, j, state.size.size)
    state.deleted[place(state.deleted, edge)] = edge
    state.entries[0] += 1
    state.lost[i] += 1
    state.lost[j] += 1


@jit
def delete(state, i, j):
    """Delete an edge; where the table is half full, make room first."""
    if 2 * state.entries[0] >= state.deleted.size:
        forget_between(state)
        if 2 * state.entries[0] >= state.deleted.size:
            raise MemoryError("the table of deleted edges is full: give it more room")
    enter(state, i, j)


@jit
def prune(state, user):
    """Delete the refuted edges of a user and return how many these were."""
    gone, V, ridge = 0, state.cluster[user], state.ridge
    whole = state.lost[user] == 0  # nothing to look up, but for those deleted in this loop
    for other in range(state.size.size):
        if state.cluster[other] != V or other == user:
            continue
        threshold = state.alpha * (ridge.radius[user] + ridge.radius[other])
        apart = CLUBS.distance(ridge, user, other) > threshold
        if apart and (whole or not is_deleted(state, user, other)):
            delete(state, user, other)
            gone += 1
    return gone


@jit
def reach(state, start, found):
    """Write the users connected with `start` into a bitset and return how many they are."""
    V, u, left = state.cluster[start], state.size.size, 0
    outside = np.empty(state.size[V], dtype=np.int64)  # members that were not reached yet
    for j in range(u):
        if state.cluster[j] == V and j != start:
            outside[left] = j
            left += 1
    waiting, count, served = np.empty(left + 1, dtype=np.int64), 1, 0
    found[:] = np.uint64(0)
    flip_bit(found, start)
    waiting[0] = start
    while served < count and left > 0:
        i, kept = waiting[served], 0
        served += 1
        for k in range(left):
            j = outside[k]
            if is_deleted(state, i, j):
                outside[kept] = j
                kept += 1
            else:
                flip_bit(found, j)
                waiting[count] = j
                count += 1
        left = kept
    return count


@jit
def regroup(state, user):
    """Split the component of a user that has lost edges, in the order in which CLUB does it."""
    V, u = state.cluster[user], state.cluster.size
    stays = np.zeros((u + 63) // 64, dtype=np.uint64)
    piece = np.zeros_like(stays)
    for step in range(-1, u):
        j = user if step < 0 else step
        if state.cluster[j] != V or has_bit(stays, j):
            continue
        found = reach(state, j, piece)
        state.work[1] += 1
        if found == state.size[V]:
            break
        if step < 0 and 2 * found > state.size[V]:
            stays[:] = piece
        else:
            CLUBS.detach(state, V, piece)


@jit
def learn_implicit(state, t, user, x, reward, item):
    CLUBS.observe(state.ridge, user, x, reward)
    CLUBS.observe(state.ridge, state.cluster.size + state.cluster[user], x, reward)
    if prune(state, user) > 0:
        regroup(state, user)


IMPLICIT_CLUB = Policy(init_implicit, CLUBS.choose_clustered, learn_implicit)
