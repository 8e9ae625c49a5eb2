"""Progress of running pages, on the terminal alone: a line for each page that runs now."""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

QUIET = 600.0  # seconds between two lines where the output is a file: one of a night stays short
WIDTH = 110
BAR = 20  # characters

_lock = threading.RLock()
_running: list["Position"] = []
_queue: "Queue | None" = None  # of the build that goes on
_drawn = 0  # lines on the terminal that the next drawing replaces


class Position:
    """Where a notebook is; the kernel's client writes it, the display reads it.

    Whoever watches a run from outside reads it in the progress file, between its tasks.
    """

    def __init__(self, name: str, cells: int, progress: Path, expected: float = 0.0):
        self.name, self.cells, self.progress, self.expected = name, cells, progress, expected
        self.cell, self.start = 0, time.monotonic()

    def move(self, cell: int) -> None:
        """Go to a cell."""
        self.cell = cell
        with open(self.progress, "a", encoding="utf-8") as file:
            file.write(json.dumps({"cell": cell, "cells": self.cells}) + "\n")

    def line(self) -> str:
        """Return page, cell, task and time as one line."""
        task, seconds = _task(self.progress), time.monotonic() - self.start
        words = f"{self.name}: cell {self.cell} of {self.cells}{task}, {duration(seconds)}"
        left = f", about {duration(self.left())} left" if self.left() else ""
        return f"{bar(self.share)} {words}{left}"

    @property
    def share(self) -> float:
        """Return how much is done: by what it took last time, else by cells."""
        seconds = time.monotonic() - self.start
        return seconds / self.expected if self.expected else max(self.cell - 1, 0) / self.cells

    def left(self) -> float:
        """Return the seconds that it should still take; 0 when nobody knows, or it takes longer."""
        return max(self.expected - (time.monotonic() - self.start), 0.0)


class Queue:
    """The pages of a build: how many are done, and what the others should still take."""

    def __init__(self, expected: dict[str, float], jobs: int):
        self.expected, self.jobs, self.waiting = expected, jobs, set(expected)

    def line(self) -> str:
        done = len(self.expected) - len(self.waiting) - len(_running)
        left = sum(self.expected[name] for name in self.waiting) + sum(p.left() for p in _running)
        known = left and all(self.expected.values())
        said = f", about {duration(left / self.jobs)} left" if known else ""
        return f"{bar(done / len(self.expected))} {done} of {len(self.expected)} pages{said}"


def bar(share: float) -> str:
    """Return a share as a bar."""
    full = min(int(BAR * share), BAR)
    return f"[{'#' * full}{'-' * (BAR - full)}]"


def duration(seconds: float) -> str:
    """Return a time span as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _task(path: Path) -> str:
    """Return the newest line of the progress file as text; the file may be long after a night."""
    with contextlib.suppress(OSError, ValueError, IndexError, KeyError, ZeroDivisionError):
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            entry = json.loads(file.read().splitlines()[-1])
        share = entry["done"] / entry["total"]
        return f", {entry['task']} {share:.0%}{left(entry)}"
    return ""


def left(entry: dict) -> str:
    """Return the time left at the pace so far; what the store already had took no time."""
    fresh, seconds = entry["done"] - entry.get("had", 0), entry.get("seconds", 0)
    if seconds < 5 or fresh <= 0 or entry["done"] >= entry["total"]:
        return ""
    return f", {duration((entry['total'] - entry['done']) * seconds / fresh)} left"


def say(text: str, file=None) -> None:
    """Print a line that stays, above the lines that change."""
    with _lock:
        _erase()
        print(text, file=file, flush=True)


def _erase() -> None:
    global _drawn
    if _drawn:
        print(f"\x1b[{_drawn}F\x1b[J", end="", file=sys.stderr, flush=True)
        _drawn = 0


def _draw() -> None:
    global _drawn
    with _lock:
        _erase()
        lines = [each.line()[:WIDTH] for each in (*_running, *filter(None, [_queue]))]
        print("\n".join(lines), file=sys.stderr)
        _drawn = len(lines)
        sys.stderr.flush()


@contextlib.contextmanager
def queued(expected: dict[str, float], jobs: int) -> Iterator[None]:
    """Show below the pages that run now how much of a build is left."""
    global _queue
    _queue = Queue(expected, jobs)
    try:
        yield
    finally:
        _queue = None


@contextlib.contextmanager
def shown(position: Position) -> Iterator[None]:
    """Show a page while the body runs: lines that change, or now and then one that stays."""
    live, stop = sys.stderr.isatty(), threading.Event()

    def show():
        while not stop.wait(0.3 if live else QUIET):
            if live:
                _draw()
            else:
                say(position.line(), sys.stderr)

    with _lock:
        _running.append(position)
        if _queue:
            _queue.waiting.discard(position.name)
    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        with _lock:
            _running.remove(position)
            _erase()
