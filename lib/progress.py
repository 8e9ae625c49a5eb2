"""Progress of long work: on the terminal, or in a file that the build shows; never in a page."""

import json
import os
import sys
import threading
import time

from tqdm import tqdm

_EVERY = 0.2  # seconds between two reports
_current: "Progress | None" = None


class Progress:
    """Counts finished work of one experiment; `advance` may be called from any thread."""

    def __init__(self, task: str, total: float):
        self.task, self.total, self.done = task, total, 0.0
        self._lock, self._last = threading.Lock(), 0.0
        self._file = os.environ.get("REGRETBOOK_PROGRESS")
        self._bar = None
        if not self._file and sys.stderr.isatty():
            self._bar = tqdm(total=total, desc=task, unit_scale=True, leave=False)

    def __enter__(self):
        global _current
        _current = self
        self._report()
        return self

    def __exit__(self, *_):
        global _current
        _current = None
        self._report()
        if self._bar is not None:
            self._bar.close()

    def add(self, amount: float) -> None:
        with self._lock:
            self.done += amount
            if time.monotonic() - self._last >= _EVERY:
                self._report()

    def _report(self):
        self._last = time.monotonic()
        if self._bar is not None:
            self._bar.n = self.done
            self._bar.refresh()
        elif self._file:
            entry = {"task": self.task, "done": self.done, "total": self.total}
            with open(self._file, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def advance(amount: float) -> None:
    """Report finished work of the experiment under way, if there is one."""
    if _current is not None:
        _current.add(amount)
