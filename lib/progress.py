"""Progress of long work: on the terminal, or in a file that the build shows; never in a page."""

import json
import os
import sys
import threading
import time

from tqdm import tqdm

_EVERY = 0.2  # seconds between two reports


class Progress:
    """Counts finished work of one experiment; `add` may be called from any thread.

    What the store already `had` is done from the start, and no pace can be read from it.
    """

    def __init__(self, task: str, total: float, had: float = 0.0):
        self.task, self.total, self.had, self.done = task, total, had, had
        self._lock, self._last, self._start = threading.Lock(), 0.0, time.monotonic()
        self._file = os.environ.get("REGRETBOOK_PROGRESS")
        self._bar = None
        if not self._file and sys.stderr.isatty():
            self._bar = tqdm(total=total, initial=had, desc=task, unit_scale=True, leave=False)

    def __enter__(self):
        self._report()
        return self

    def __exit__(self, *_):
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
            entry = {"task": self.task, "done": self.done, "total": self.total, "had": self.had}
            entry["seconds"] = round(self._last - self._start, 1)
            with open(self._file, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
