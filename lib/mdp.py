"""Finite-horizon tabular MDPs, exactly: planning, evaluation, variance, occupancy, episodes.

Shapes, in every function: transitions P (..., H, S, A, S), rewards r (..., H, S, A), policies pi
(..., H, S, A) as action probabilities. Leading axes are batches (models, contexts, policies) and
broadcast against each other. A model that does not change within an episode gets its time axis from
`every_step`, which repeats nothing in memory: axes of stride zero are recognised and read once.

Derived in the chapter on model-based reinforcement learning, also used by the zero-shot chapter.
Every compiled function calls only functions of this file, so numba's cached copy is never stale.
"""

from typing import NamedTuple

import numpy as np

from lib.errors import BookError
from lib.kernels import compile_whole

TIE = 1e-12  # action values closer than this count as equal, and the lowest action is taken


class Plan(NamedTuple):
    """The optimum of every model: values and the first best action."""

    V: np.ndarray  # (..., H + 1, S), the last step is zero
    policy: np.ndarray  # (..., H, S), integers


class Episodes(NamedTuple):
    """Simulated episodes, the state after the last action included."""

    states: np.ndarray  # (K, H + 1)
    actions: np.ndarray  # (K, H)


def every_step(x: np.ndarray, H: int, axes: int) -> np.ndarray:
    """Give x, whose last `axes` axes describe one step, a time axis of H equal steps before them.

    `axes` is 3 for transitions and 2 for rewards and policies.
    """
    x = np.asarray(x, dtype=float)
    place = x.ndim - axes
    return np.broadcast_to(np.expand_dims(x, place), (*x.shape[:place], H, *x.shape[place:]))


def as_policy(actions: np.ndarray, A: int) -> np.ndarray:
    """Turn a deterministic policy (..., H, S) of integers into action probabilities."""
    return (np.asarray(actions)[..., None] == np.arange(A)).astype(float)


def check_model(P: np.ndarray, r: np.ndarray) -> None:
    """Refuse transitions that are not probabilities, and rewards of another shape."""
    P, r = np.asarray(P), np.asarray(r)
    if P.ndim < 4 or P.shape[-1] != P.shape[-3] or r.shape[-3:] != P.shape[-4:-1]:
        raise BookError(
            f"Transitions must have shape (..., H, S, A, S) and rewards (..., H, S, A); "
            f"got {P.shape} and {r.shape}."
        )
    P, r = _once(P, 3), _once(r, 2)
    if not (np.isfinite(P).all() and np.isfinite(r).all()):
        raise BookError("Transitions and rewards must be finite numbers.")
    sums = P.sum(axis=-1)
    worst = np.unravel_index(np.argmax(np.abs(sums - 1)), sums.shape)
    if abs(sums[worst] - 1) > 1e-8 or P.min() < 0:
        raise BookError(
            f"Every row of the transitions must be nonnegative and sum to one; the row of state "
            f"{worst[-2]}, action {worst[-1]} sums to {sums[worst]:.6g} and the smallest entry is "
            f"{P.min():.6g}."
        )


def backward_induction(P: np.ndarray, r: np.ndarray) -> Plan:
    """Plan in every model at once: V_h(s) = max_a r_h(s, a) + Σ P_h(s' | s, a) V_{h+1}(s')."""
    (P, r), places, batch, H = _batched((P, 3), (r, 2))
    B, S = len(places[0]), r.shape[2]
    V, policy = np.zeros((B, H + 1, S)), np.empty((B, H, S), dtype=np.int16)
    _plan(P, r, *places, H, V, policy)
    return Plan(*(x.reshape(*batch, *x.shape[1:]) for x in (V, policy)))


def optimal_value(P: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return V_0 (..., S) alone; no table over steps is kept, so hundreds of models stay cheap."""
    (P, r), places, batch, H = _batched((P, 3), (r, 2))
    V = np.zeros((len(places[0]), 1, r.shape[2]))
    _plan(P, r, *places, H, V, np.empty((0, 0, 0), dtype=np.int16))
    return V.reshape(*batch, V.shape[2])


def evaluate(P: np.ndarray, r: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """Return the values (..., H + 1, S) of a policy, the last step zero."""
    (P, r, pi), places, batch, H = _batched((P, 3), (r, 2), (pi, 2))
    V = np.zeros((len(places[0]), H + 1, r.shape[2]))
    _evaluate(P, r, pi, *places, H, V)
    return V.reshape(*batch, *V.shape[1:])


def policy_value(P: np.ndarray, r: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """Return V_0 (..., S) of a policy, for many policies and models without their tables."""
    (P, r, pi), places, batch, H = _batched((P, 3), (r, 2), (pi, 2))
    V = np.zeros((len(places[0]), 1, r.shape[2]))
    _evaluate(P, r, pi, *places, H, V)
    return V.reshape(*batch, V.shape[2])


def return_variance(P: np.ndarray, r: np.ndarray, pi: np.ndarray, start=0) -> np.ndarray:
    """Return the variance (...) of the total reward, by the law of total variance at every step.

    Var_h(s) = E_a[ E_s' Var_{h+1}(s') + Var_s' V_{h+1}(s') ] + Var_a Q_h(s, a). The start is a
    state or a distribution (S,) over states.
    """
    (P, r, pi), places, batch, H = _batched((P, 3), (r, 2), (pi, 2))
    V, W = np.zeros((2, len(places[0]), r.shape[2]))
    _variance(P, r, pi, *places, H, V, W)
    weights = _distribution(start, r.shape[2])
    between = ((V - (V @ weights)[:, None]) ** 2) @ weights
    return (W @ weights + between).reshape(batch)


def occupancy(P: np.ndarray, pi: np.ndarray, start=0) -> np.ndarray:
    """Return the probability (..., H, S, A) of being in s and doing a at each step."""
    (P, pi), places, batch, H = _batched((P, 3), (pi, 2))
    d = np.empty((len(places[0]), H, *pi.shape[2:]))
    _occupancy(P, pi, *places, _distribution(start, pi.shape[2]), d)
    return d.reshape(*batch, *d.shape[1:])


def sample_episodes(rng, P: np.ndarray, pi: np.ndarray, start=0, K: int = 1) -> Episodes:
    """Run K episodes of one policy in one model."""
    (P, pi), places, _, H = _batched((P, 3), (pi, 2))
    if len(places[0]) != 1:
        raise BookError("Episodes are sampled from one model and one policy at a time.")
    S = pi.shape[2]
    first = rng.choice(S, size=K, p=_distribution(start, S))
    states, actions = np.empty((K, H + 1), np.int64), np.empty((K, H), np.int64)
    _episodes(rng, P[0].cumsum(axis=-1), pi[0].cumsum(axis=-1), first, states, actions)
    return Episodes(states, actions)


def _once(x: np.ndarray, axes: int) -> np.ndarray:
    """Keep one copy along every leading axis that only repeats itself."""
    x = np.asarray(x, dtype=float)
    strides = x.strides[: x.ndim - axes]
    return x[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)]


def _batched(*arguments):
    """Flatten the batch axes of (array, axes of one step).

    Return the arrays (n, H or 1, ...), where in each of them every batch element is found, the
    shape of the batch, and H.
    """
    shapes = [np.shape(x)[: np.ndim(x) - axes] for x, axes in arguments]
    if any(not shape for shape in shapes) or len({shape[-1] for shape in shapes}) > 1:
        raise BookError(
            f"All arguments need a time axis of the same length, got {[s[-1:] for s in shapes]}: "
            "give what does not change within an episode its own with lib.mdp.every_step."
        )
    batch, flat, places = np.broadcast_shapes(*(s[:-1] for s in shapes)), [], []
    for x, axes in arguments:
        x = np.ascontiguousarray(_once(x, axes))
        lead = x.shape[: x.ndim - axes - 1]
        flat.append(x.reshape(-1, *x.shape[x.ndim - axes - 1 :]))
        numbers = np.broadcast_to(np.arange(len(flat[-1])).reshape(lead), batch)
        places.append(np.ascontiguousarray(numbers).ravel())
    return flat, places, batch, shapes[0][-1]


def _distribution(start, S: int) -> np.ndarray:
    if np.ndim(start) == 0:
        return (np.arange(S) == start).astype(float)
    return np.ascontiguousarray(start, dtype=float)


@compile_whole
def _plan(P, r, at_P, at_r, H, V, policy):
    """Fill V, and policy unless it is empty; V with one step keeps only V_0."""
    S, A = r.shape[2], r.shape[3]
    # Pairs action by action, and by next state: every inner loop is then a long vector.
    transposed = np.empty((S, A * S))
    q, v, first = np.empty(A * S), np.empty(S), np.zeros(S)
    for b in range(at_P.size):
        for s in range(S):
            v[s] = 0.0
        for back in range(H):
            h = H - 1 - back
            if back == 0 or P.shape[1] > 1:
                model = P[at_P[b], h if P.shape[1] > 1 else 0]
                for s in range(S):
                    for a in range(A):
                        for n in range(S):
                            transposed[n, a * S + s] = model[s, a, n]
            reward = r[at_r[b], h if r.shape[1] > 1 else 0]
            for s in range(S):
                for a in range(A):
                    q[a * S + s] = reward[s, a]
            for n in range(0, S - 3, 4):  # four at a time: q is read and written a quarter as often
                v0, v1, v2, v3 = v[n], v[n + 1], v[n + 2], v[n + 3]
                for i in range(A * S):
                    q[i] += (
                        transposed[n, i] * v0
                        + transposed[n + 1, i] * v1
                        + transposed[n + 2, i] * v2
                        + transposed[n + 3, i] * v3
                    )
            for n in range(S - S % 4, S):
                for i in range(A * S):
                    q[i] += transposed[n, i] * v[n]
            for s in range(S):
                v[s] = q[s]
            for a in range(1, A):
                for s in range(S):
                    v[s] = max(v[s], q[a * S + s])
            if V.shape[1] > 1:
                for s in range(S):
                    V[b, h, s] = v[s]
            if policy.size > 0:
                for a in range(A - 1, -1, -1):  # downwards: the lowest of the best stays
                    for s in range(S):
                        first[s] = float(a) if q[a * S + s] >= v[s] - TIE else first[s]
                for s in range(S):
                    policy[b, h, s] = int(first[s])
        for s in range(S):
            V[b, 0, s] = v[s]


@compile_whole
def _evaluate(P, r, pi, at_P, at_r, at_pi, H, V):
    """Fill V; with one step it keeps only V_0. Actions that are never taken cost nothing."""
    S, A = r.shape[2], r.shape[3]
    v, new = np.zeros(S), np.zeros(S)
    for b in range(at_P.size):
        for s in range(S):
            v[s] = 0.0
        for back in range(H):
            h = H - 1 - back
            model = P[at_P[b], h if P.shape[1] > 1 else 0]
            reward = r[at_r[b], h if r.shape[1] > 1 else 0]
            act = pi[at_pi[b], h if pi.shape[1] > 1 else 0]
            for s in range(S):
                total = 0.0
                for a in range(A):
                    if act[s, a] != 0.0:
                        mean = reward[s, a]
                        for n in range(S):
                            mean += model[s, a, n] * v[n]
                        total += act[s, a] * mean
                new[s] = total
            for s in range(S):
                v[s] = new[s]
                if V.shape[1] > 1:
                    V[b, h, s] = v[s]
        for s in range(S):
            V[b, 0, s] = v[s]


@compile_whole
def _variance(P, r, pi, at_P, at_r, at_pi, H, V, W):
    """Fill V_0 and the variance W_0 of the return from every state."""
    S, A = r.shape[2], r.shape[3]
    v, w, q, new = np.zeros(S), np.zeros(S), np.zeros(A), np.zeros((2, S))
    for b in range(at_P.size):
        for s in range(S):
            v[s] = w[s] = 0.0
        for back in range(H):
            h = H - 1 - back
            model = P[at_P[b], h if P.shape[1] > 1 else 0]
            reward = r[at_r[b], h if r.shape[1] > 1 else 0]
            act = pi[at_pi[b], h if pi.shape[1] > 1 else 0]
            for s in range(S):
                value, inside, between = 0.0, 0.0, 0.0
                for a in range(A):
                    if act[s, a] != 0.0:
                        mean, spread = 0.0, 0.0
                        for n in range(S):
                            mean += model[s, a, n] * v[n]
                        for n in range(S):
                            spread += model[s, a, n] * (w[n] + (v[n] - mean) ** 2)
                        q[a] = reward[s, a] + mean
                        value += act[s, a] * q[a]
                        inside += act[s, a] * spread
                for a in range(A):
                    if act[s, a] != 0.0:
                        between += act[s, a] * (q[a] - value) ** 2
                new[0, s], new[1, s] = value, inside + between
            for s in range(S):
                v[s], w[s] = new[0, s], new[1, s]
        for s in range(S):
            V[b, s], W[b, s] = v[s], w[s]


@compile_whole
def _occupancy(P, pi, at_P, at_pi, start, d):
    S, A = d.shape[2], d.shape[3]
    here, after = np.empty(S), np.empty(S)
    for b in range(d.shape[0]):
        for s in range(S):
            here[s] = start[s]
        for h in range(d.shape[1]):
            model = P[at_P[b], h if P.shape[1] > 1 else 0]
            act = pi[at_pi[b], h if pi.shape[1] > 1 else 0]
            for n in range(S):
                after[n] = 0.0
            for s in range(S):
                for a in range(A):
                    mass = here[s] * act[s, a]
                    d[b, h, s, a] = mass
                    if mass != 0.0:
                        for n in range(S):
                            after[n] += mass * model[s, a, n]
            for s in range(S):
                here[s] = after[s]


@compile_whole
def draw(cumulative, u):
    """Return the first index whose cumulative probability exceeds u, never one of probability 0."""
    last = cumulative.size - 1
    for i in range(last):
        if u * cumulative[last] < cumulative[i]:
            return i
    while last > 0 and cumulative[last] == cumulative[last - 1]:
        last -= 1
    return last


@compile_whole
def _episodes(rng, P_sums, pi_sums, first, states, actions):
    for k in range(first.size):
        s = first[k]
        states[k, 0] = s
        for h in range(actions.shape[1]):
            a = draw(pi_sums[h if pi_sums.shape[0] > 1 else 0, s], rng.random())
            s = draw(P_sums[h if P_sums.shape[0] > 1 else 0, s, a], rng.random())
            actions[k, h] = a
            states[k, h + 1] = s
