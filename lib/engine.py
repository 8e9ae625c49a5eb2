"""Running independent tasks, each result stored at once: here, or on Dask.

A task is text and numbers, so that any process can compute it without pickled code, and its result
is the same bit for bit wherever that is. On the cores of this machine compiled tasks, which release
the interpreter's lock, run in threads; tasks in plain Python (those with torch) would wait for one
another there, so they run in processes.
"""

import contextlib
import importlib.util
import os
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import NamedTuple

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from lib import compiling, journal, program, provenance, store
from lib.errors import BookError
from lib.files import require_writable
from lib.lifetime import end_with_parent
from lib.progress import Progress

SOON = 5_000  # units of work in plain Python that are done before a process has even started
PLAN = "plan"  # the engine of `regretbook plan`, which computes next to nothing

_most: ContextVar[int | None] = ContextVar("most", default=None)
_spent: dict[str, float] = {}  # seconds of a core that a task took, now or earlier, by address


class Task(NamedTuple):
    """A program, the function in it to call, and the arguments: nothing that cannot be hashed."""

    program: str
    entry: str
    arguments: dict
    work: float = 1.0  # share of the progress bar, in any unit
    threads: bool = True  # whether it lets other threads run


class Done(NamedTuple):
    """The result of a task and the seconds of a core that it took, whatever else was running."""

    result: dict[str, np.ndarray]
    seconds: float


Waiting = dict[str, Task]  # by address: what is still to be computed


def check(name: str) -> None:
    """Refuse an engine that does not exist or cannot be reached, before anything runs."""
    if name == "threads":
        return
    if name != "dask" and not name.startswith("dask://"):
        raise BookError(
            f"there is no engine {name!r}; use threads, dask, or dask://HOST:PORT of a scheduler"
        )
    if importlib.util.find_spec("distributed") is None:
        raise BookError(
            f"engine {name} needs a package more; get it with: pip install 'regretbook[cluster]'"
        )
    from lib import cluster

    cluster.check(name)


def cores() -> int:
    """Return how many cores tasks may use here: the share that a build gave this kernel, or all."""
    return int(os.environ.get("REGRETBOOK_THREADS") or provenance.cores())


def spent() -> float:
    """Return the seconds of a core that all tasks asked for so far took, now or earlier.

    Who asks for a task again, as two tables of one run do, has it for nothing.
    """
    return sum(_spent.values())


@contextlib.contextmanager
def limited(most: int) -> Iterator[None]:
    """Compute at most so many tasks of every run, those with the least work; others give None."""
    token = _most.set(most)
    try:
        yield
    finally:
        _most.reset(token)


def run(tasks: list[Task], label: str) -> list[dict[str, np.ndarray] | None]:
    """Return the result of every task, in order, computing only what the store does not have."""
    engine = os.environ.get("REGRETBOOK_ENGINE") or "threads"
    arrays: dict[int, str] = {}  # the tasks of a run share theirs
    addresses = [
        store.key(task.program, {"entry": task.entry, **task.arguments}, arrays) for task in tasks
    ]
    asked = dict(zip(addresses, tasks, strict=True))
    kept = {address: entry for address in asked if (entry := store.read(address)) is not None}
    found = {address: result for address, (result, _) in kept.items()}
    if engine == PLAN:
        from lib import rehearsal

        found = rehearsal.plan(label, asked, found)
        return [found[address] for address in addresses]
    if len(found) < len(asked):
        require_writable(store.folder())
    waiting = _chosen({address: task for address, task in asked.items() if address not in found})
    for text in {task.program for task in tasks}:
        store.describe(text)
    had = sum(asked[address].work for address in found)
    total = had + sum(task.work for task in waiting.values())
    with Progress(label, total, had) as progress:
        for address, done in _computed(engine, waiting, progress):
            store.save(address, done.result, store.Cost(done.seconds, waiting[address].work))
            found[address] = done.result
            _spent[address] = done.seconds
    earlier = {address: cost.seconds for address, (_, cost) in kept.items() if cost}
    _spent.update({a: seconds for a, seconds in earlier.items() if a not in _spent})
    journal.note(journal.Compiled(round(compiling.seconds(), 2)))
    return [found.get(address) for address in addresses]


def _chosen(missing: Waiting) -> Waiting:
    """Return the tasks to compute: the longest first, so that all cores end at about one time."""
    most = _most.get()
    order = sorted(missing, key=lambda address: missing[address].work, reverse=most is None)
    return {address: missing[address] for address in order[:most]}


def _computed(engine: str, waiting: Waiting, progress: Progress) -> Iterator[tuple[str, Done]]:
    if not waiting:
        return iter(())
    if engine == "threads":
        return on_this_machine(waiting, progress.add)
    from lib import cluster

    return cluster.computed(engine, waiting, progress.add)


def on_this_machine(
    waiting: Waiting, advance: Callable[[float], None]
) -> Iterator[tuple[str, Done]]:
    """Compute tasks on the cores of this machine and give each result when it is there."""
    for threads in (True, False):
        group = {a: task for a, task in waiting.items() if task.threads == threads}
        if not group:
            continue
        soon = not threads and sum(task.work for task in group.values()) < SOON
        jobs = 1 if soon else min(cores(), len(group))
        here = threads or jobs == 1
        parallel = joblib.Parallel(
            jobs, backend="threading" if here else "loky", return_as="generator_unordered"
        )
        call = joblib.delayed(_named)
        with threadpool_limits(1):
            for address, done in parallel(
                call(address, task, advance if here else None) for address, task in group.items()
            ):
                yield address, done
                if not here:  # what another process reports does not arrive here
                    advance(group[address].work)


def _named(address: str, task: Task, advance: Callable | None) -> tuple[str, Done]:
    if advance:
        return address, compute(task, advance)
    end_with_parent()
    return address, compute_alone(task)


def compute(task: Task, advance: Callable[[float], None]) -> Done:
    """Run one task in this process."""
    function = getattr(program.load(task.program), task.entry)
    reports = hasattr(function, "reports_progress")
    start = time.thread_time()
    found = function(**task.arguments, **({"advance": advance} if reports else {}))
    seconds = time.thread_time() - start
    if not reports:
        advance(task.work)
    return Done({name: np.asarray(value) for name, value in found.items()}, seconds)


def compute_alone(task: Task) -> Done:
    """Run one task in a process that does nothing else, with one thread for linear algebra."""
    program.load(task.program)  # and with it the libraries that have threads to limit
    threadpool_limits(1)
    return compute(task, lambda amount: None)
