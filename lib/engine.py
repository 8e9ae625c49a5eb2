"""Running independent tasks on the threads of this machine, each result stored at once."""

import os
from typing import NamedTuple

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from lib import program, provenance, store
from lib.errors import BookError
from lib.progress import Progress, advance

ENGINES = ("threads",)


class Task(NamedTuple):
    """A program, the function in it to call, and the arguments: nothing that cannot be hashed."""

    program: str
    entry: str
    arguments: dict
    work: float = 1.0  # share of the progress bar, in any unit


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
        parallel = joblib.Parallel(
            n_jobs=min(provenance.cores(), max(1, len(missing))),
            backend="threading",
            return_as="generator_unordered",
        )
        for i, result in parallel(
            joblib.delayed(_finish)(i, tasks[i], addresses[i]) for i in missing
        ):
            results[i] = result
    return [results[i] for i in range(len(tasks))]


def _finish(i: int, task: Task, address: str) -> tuple[int, dict[str, np.ndarray]]:
    function = getattr(program.load(task.program), task.entry)
    result = {name: np.asarray(value) for name, value in function(**task.arguments).items()}
    store.save(address, result)
    if not hasattr(function, "reports_progress"):
        advance(task.work)
    return i, result
