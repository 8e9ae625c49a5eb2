"""How long this process has been making machine code, or reading it from disk."""

import threading
import time

from numba.core import event

_KIND = "numba:compiler_lock"  # held by whoever compiles, so threads never compile side by side


class _Clock(event.Listener):
    """Counts the seconds in which at least one thread compiles or waits for another's code."""

    def __init__(self):
        self.lock, self.depth, self.begin, self.seconds = threading.Lock(), 0, 0.0, 0.0

    def on_start(self, event):
        with self.lock:
            if self.depth == 0:
                self.begin = time.perf_counter()
            self.depth += 1

    def on_end(self, event):
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.seconds += time.perf_counter() - self.begin


_clock = _Clock()
event.register(_KIND, _clock)


def seconds() -> float:
    """Return how long this process has compiled since this module was imported."""
    return _clock.seconds
