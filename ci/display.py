"""Progress of running pages, on the terminal alone: a line for each page that runs now."""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

QUIET = 10.0  # seconds between two reports where the output is a file and not a terminal
WIDTH = 110

_lock = threading.RLock()
_running: list["Position"] = []
_drawn = 0  # lines on the terminal that the next drawing replaces


class Position:
    """Where a notebook is; the kernel's client writes it, the display reads it."""

    def __init__(self, name: str, cells: int, progress: Path):
        self.name, self.cells, self.progress = name, cells, progress
        self.cell, self.start = 0, time.monotonic()

    def line(self) -> str:
        """Return page, cell, task and time as one line."""
        seconds = time.monotonic() - self.start
        task = _task(self.progress)
        return f"{self.name}: cell {self.cell} of {self.cells}{task}, {duration(seconds)}"


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
        return f", {entry['task']} {share:.0%}{_left(entry)}"
    return ""


def _left(entry: dict) -> str:
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
        for position in _running:
            print(position.line()[:WIDTH], file=sys.stderr)
        _drawn = len(_running)
        sys.stderr.flush()


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
