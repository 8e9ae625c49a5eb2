"""A policy at play, a few rounds at a time, so that several can be timed in turns."""

import time

import numpy as np

from lib import program, simulate, trial

SEED = 2025
WARM = 20  # rounds before the first that is timed: they load the machine code


class Game:
    """A policy at play in an environment, from the first round on."""

    def __init__(self, environment, policy, setting: dict, T: int, users: int = 1):
        begin = time.thread_time()
        page = program.load(simulate.program_of(environment, policy))
        problem_rng, self.rng, policy_rng = trial.generators(SEED, 0, 0)
        self.problem = page.make(problem_rng, **setting)
        self.state = page.init(self.problem, T, policy_rng, **policy.parameters)
        self.page, self.t, self.total, self.users = page, 1, np.zeros(2), users
        replans = getattr(policy, "replan", None) is not None
        self.replans = {int(t) for t in self.state.replans} if replans else set()
        self.play(1)
        fresh = sum(page.rounds.stats.cache_misses.values()) > 0
        self.compiling = time.thread_time() - begin if fresh else np.nan
        self.play(WARM)

    def play(self, count: int) -> float:
        """Play some more rounds; return the seconds of the processor that one took."""
        end, begin = self.t + count, time.thread_time()
        for stop in sorted({t + 1 for t in self.replans if self.t <= t < end - 1} | {end}):
            self.page.rounds(self.problem, self.state, self.t, stop, self.rng, self.total)
            self.t = stop
            if stop - 1 in self.replans:
                self.page.replan(self.state, stop - 1)
        return (time.thread_time() - begin) / (count * self.users)


def size_of(state) -> int:
    """Return the bytes of the arrays of a state."""
    if isinstance(state, tuple):
        return sum(map(size_of, state))
    return state.nbytes if isinstance(state, np.ndarray) else 0
