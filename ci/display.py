"""Progress of a running chapter, on the terminal alone."""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

QUIET = 10.0  # seconds between two lines where the output is a file and not a terminal


class Position:
    """Where the notebook is; the kernel's client writes it, the display reads it."""

    def __init__(self, cells: int):
        self.cell, self.cells = 0, cells


def _task(path: Path) -> str:
    """Return the newest line of the progress file as text; the file may be long after a night."""
    with contextlib.suppress(OSError, ValueError, IndexError, KeyError, ZeroDivisionError):
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            entry = json.loads(file.read().splitlines()[-1])
        label = f" ({entry['label']})" if entry.get("label") else ""
        return f", {entry['task']} {entry['done'] / entry['total']:.0%}{label}"
    return ""


@contextlib.contextmanager
def shown(chapter: str, position: Position, path: Path) -> Iterator[None]:
    """Show chapter, cell and task while the body runs: one changing line, or now and then one."""
    live, stop, start = sys.stderr.isatty(), threading.Event(), time.monotonic()

    def line() -> str:
        seconds = time.monotonic() - start
        return f"{chapter}: cell {position.cell} of {position.cells}{_task(path)}, {seconds:.0f} s"

    def show():
        while not stop.wait(0.2 if live else QUIET):
            print(f"\r{line()[:110]}\x1b[K" if live else line(), end="" if live else "\n",
                  file=sys.stderr, flush=True)  # fmt: skip

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        if live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
