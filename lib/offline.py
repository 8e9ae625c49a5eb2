"""Learning from logs of finite-horizon MDPs: counts, frequencies, pessimistic planning.

Used by the chapters on model-based reinforcement learning and on zero-shot generalisation, which
derive the penalties. Shapes are those of `lib.mdp`; logs have states (…, K, H + 1) and actions
(…, K, H), and leading axes are datasets of their own.
"""

import numpy as np

from lib.mdp import TIE, Plan


def count_transitions(
    states: np.ndarray, actions: np.ndarray, S: int, A: int, by_step: bool = False
) -> np.ndarray:
    """Return how often each (s, a, s′) occurs, (…, S, A, S), or at each step, (…, H, S, A, S)."""
    *leading, K, H = actions.shape
    datasets = int(np.prod(leading, dtype=int))
    states, actions = states.reshape(datasets, K, H + 1), actions.reshape(datasets, K, H)
    counts = np.zeros((datasets, H if by_step else 1, S, A, S))
    step = np.arange(H) if by_step else np.zeros(H, dtype=int)
    which = np.arange(datasets)[:, None, None]
    np.add.at(counts, (which, step, states[..., :-1], actions, states[..., 1:]), 1)
    return counts.reshape(*leading, *([H] if by_step else []), S, A, S)


def frequencies(counts: np.ndarray) -> np.ndarray:
    """Return shares along the last axis, uniform where nothing was counted.

    Of the counts of actions these are the policy that behaviour cloning learns.
    """
    total = counts.sum(axis=-1, keepdims=True)
    return np.where(total > 0, counts / np.maximum(total, 1), 1 / counts.shape[-1])


def pessimistic_plan(P: np.ndarray, r: np.ndarray, penalty: np.ndarray, cap) -> Plan:
    """Plan by Q = r + PV − penalty, cut off below 0 and above `cap`, a number or one for each step.

    An infinite penalty makes an action worth nothing: the state where no data is.
    """
    *leading, H, S, _ = r.shape
    cap = np.broadcast_to(cap, H)
    V, policy = np.zeros((*leading, H + 1, S)), np.zeros((*leading, H, S), dtype=np.int64)
    for h in reversed(range(H)):
        backup = r[..., h, :, :] + (P[..., h, :, :, :] @ V[..., h + 1, None, :, None])[..., 0]
        Q = np.clip(backup - penalty[..., h, :, :], 0, cap[h])
        V[..., h, :] = Q.max(axis=-1)
        policy[..., h, :] = np.argmax(V[..., h, :, None] - TIE <= Q, axis=-1)
    return Plan(V, policy)
