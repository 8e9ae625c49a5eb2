"""Running independent tasks on the cores of this machine, each result stored at once.

Compiled tasks release the interpreter's lock and run in threads. Tasks in plain Python (those with
torch) would wait for one another there, so they run in processes, which a task of text and numbers
reaches without pickling code.
"""

import os
from typing import NamedTuple

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from lib import program, provenance, store
from lib.errors import BookError
from lib.progress import Progress, advance

ENGINES = ("threads",)
SOON = 5_000  # units of work in plain Python that are done before a process has even started


class Task(NamedTuple):
    """A program, the function in it to call, and the arguments: nothing that cannot be hashed."""

    program: str
    entry: str
    arguments: dict
    work: float = 1.0  # share of the progress bar, in any unit
    threads: bool = True  # whether it lets other threads run


def run(tasks: list[Task], label: str) -> list[dict[str, np.ndarray]]:
    """Return the result of every task, in order, computing only what the store does not have."""
    engine = os.environ.get("REGRETBOOK_ENGINE", "threads")
    if engine not in ENGINES:
        raise BookError(f"Engine {engine!r} is not available; use one of: {', '.join(ENGINES)}.")
    addresses = [store.key(task.program, {"entry": task.entry, **task.arguments}) for task in tasks]
    results = {i: found for i, a in enumerate(addresses) if (found := store.load(a)) is not None}
    missing = [i for i in range(len(tasks)) if i not in results]
    with Progress(label, sum(task.work for task in tasks)) as progress, threadpool_limits(1):
        progress.add(sum(tasks[i].work for i in results))
        for threads in (True, False):
            group = [i for i in missing if tasks[i].threads == threads]
            soon = not threads and sum(tasks[i].work for i in group) < SOON
            jobs = 1 if soon else min(provenance.cores(), max(1, len(group)))
            backend = "threading" if threads or jobs == 1 else "loky"
            parallel = joblib.Parallel(jobs, backend=backend, return_as="generator_unordered")
            for i, result in parallel(joblib.delayed(_compute)(i, tasks[i]) for i in group):
                store.save(addresses[i], result)
                results[i] = result
                if backend == "loky":  # what another process reports does not arrive here
                    progress.add(tasks[i].work)
    return [results[i] for i in range(len(tasks))]


def _compute(i: int, task: Task) -> tuple[int, dict[str, np.ndarray]]:
    function = getattr(program.load(task.program), task.entry)
    result = {name: np.asarray(value) for name, value in function(**task.arguments).items()}
    if not hasattr(function, "reports_progress"):
        advance(task.work)
    return i, result
