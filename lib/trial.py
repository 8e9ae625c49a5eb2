"""What happens inside one trial: the loop over rounds, the random streams, the checkpoints.

Only this file, the kernels and the functions of a page decide a stored result; the rest of `lib`
may change without making it stale.
"""

from collections.abc import Callable

import numpy as np


def rounds(problem, state, start, stop, rng, total):
    """Play rounds start, …, stop − 1 and add regret and reward to `total`."""
    for t in range(start, stop):
        user, items, arms = draw(problem, t, rng)  # noqa: F821
        means = expected(problem, t, user, items, arms)  # noqa: F821
        k = choose(state, t, user, arms, items)  # noqa: F821
        reward = feedback(problem, t, user, items[k], means[k], rng)  # noqa: F821
        total[0] += means.max() - means[k]
        total[1] += reward
        learn(state, t, user, arms[k], reward, items[k])  # noqa: F821


def generators(seed: int, stream: int, trial: int) -> list[np.random.Generator]:
    """Return the streams of problem, environment and policy; trial k is the same in any run."""
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, trial))
    return [np.random.default_rng(child) for child in sequence.spawn(3)]


def play_trial(
    page: dict, advance: Callable, setting, parameters, times, seed, stream, trial
) -> dict:
    """Play one trial with the functions of a program and return its checkpoints.

    `advance` hears how many rounds were played; it sees no number and changes none. A policy that
    replans does so after each round that its state names in `replans`, before that is recorded.
    """
    problem_rng, environment_rng, policy_rng = generators(seed, stream, trial)
    problem = page["make"](problem_rng, **setting)
    state = page["init"](problem, times[-1], policy_rng, **parameters)
    replans = {int(t) for t in state.replans if t <= times[-1]} if "replan" in page else set()
    total, start, records = np.zeros(2), 1, []
    for stop in sorted({*times} | replans):
        page["rounds"](problem, state, start, stop + 1, environment_rng, total)
        if stop in replans:
            page["replan"](state, stop)
        if stop in times:
            watched = page["watch"](state, problem) if "watch" in page else {}
            records.append({"t": stop, "regret": total[0], "reward": total[1], **watched})
        advance(stop + 1 - start)
        start = stop + 1
    return {name: np.array([record[name] for record in records]) for name in records[0]}


def repeat_once(function: Callable, setting, seed, stream, trial) -> dict:
    """Call a page's function with the random stream of one trial."""
    return function(generators(seed, stream, trial)[0], **setting)
