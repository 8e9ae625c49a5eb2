"""What a run would still compute, and how long that takes, found without computing it.

`regretbook plan` executes a page with this in place of an engine. One missing task of each program
and setting is rehearsed: a simulation plays its first rounds of the real problem, anything else has
half a minute. Then the page goes on with numbers that stand in for the missing ones. They are no
results, and none of them reaches the store.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from lib import engine, program, store
from lib.engine import Task
from lib.errors import BookError
from lib.lifetime import end_with_parent
from lib.progress import Progress

CAP = 30.0  # seconds for the rehearsals of a run's program that is no simulation
BEGIN = 120.0  # seconds in which a simulation must have compiled and begun
PLAYED = 1.0  # seconds of rounds that show the pace of a simulation
SPANS = 6  # doublings of its rounds that show it, if they can be had in five times as long
FEWEST = 64  # rounds that a simulation plays to show what it returns
COMPUTED = 20.0  # seconds of all its tasks below which a run is computed instead

Results = dict[str, dict[str, np.ndarray]]


class Rehearsed(NamedTuple):
    """What a task takes, and what it returns at a smaller scale."""

    seconds: float
    memory: float = 0.0  # bytes
    rows: dict[str, np.ndarray] | None = None  # None: it was stopped, and takes longer
    compiling: float = 0.0  # seconds that only the first task of its program takes


class Planned(NamedTuple):
    """What one run would compute: a line of the file that REGRETBOOK_PLAN names."""

    label: str
    tasks: int
    missing: int
    seconds: float  # with all cores
    more: bool  # whether it takes longer than that, nobody knows by how much
    memory: float  # bytes at the peak
    addresses: list[str]  # of what is missing: another page may ask for the same


_rehearsed: dict[str, Rehearsed] = {}  # by program and setting
_tried: dict[tuple[str, str], list[tuple[Rehearsed, float]]] = {}  # of a label's program: and work
_executors: list[ProcessPoolExecutor] = []  # idle; joblib's own would not expect ours
_approximate: set[str] = set()  # labels of runs that were too long to compute


def read(path: Path) -> list[Planned]:
    """Return what pages have planned so far."""
    if not path.exists():
        return []
    return [Planned(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def plan(label: str, asked: dict[str, Task], found: Results) -> Results:
    """Note what the missing tasks of a run would take; return results and what stands in."""
    missing = {address: task for address, task in asked.items() if address not in found}
    groups = {address: _group(task) for address, task in asked.items()}
    # The longest task of a group shows most: what it takes, and what it keeps in memory.
    order = sorted(missing, key=lambda address: missing[address].work)
    longest = {groups[address]: missing[address] for address in order}
    shown, compiling = {}, 0.0
    with Progress(label, len(longest)) as progress:
        for group, task in longest.items():
            stored = [address for address in found if groups[address] == group]
            shown[group] = _measured(task, stored, found) or _rehearse(label, group, task)
            compiling += shown[group].compiling
            if _plays(task):  # which costs little, and what was measured does not tell the memory
                shown[group] = shown[group]._replace(memory=_rehearse(label, group, task).memory)
            progress.add(1)
    paces = {group: shown[group].seconds / task.work for group, task in longest.items()}
    seconds = {address: paces[groups[address]] * task.work for address, task in missing.items()}
    more = any(rehearsed.rows is None for rehearsed in shown.values())
    memory = max((rehearsed.memory for rehearsed in shown.values()), default=0.0)
    _note(label, asked, seconds, compiling, more, memory)
    if not more and sum(seconds.values()) < COMPUTED and label not in _approximate:
        computed = engine.on_this_machine(missing, lambda amount: None)
        return found | {address: done.result for address, done in computed}
    _approximate.add(label)
    rows = {group: _rows(label, longest[group], shown[group]) for group in shown}
    return found | {a: _stand_in(task, rows[groups[a]]) for a, task in missing.items()}


def _group(task: Task) -> str:
    """Return a name of program and setting: tasks of one name cost the same for the same work."""
    about = {"entry": task.entry, "setting": task.arguments.get("setting")}
    return store.key(task.program, {**about, "rows": len(task.arguments.get("times", ()))})


def _plays(task: Task) -> bool:
    return "times" in task.arguments


def _note(
    label: str,
    asked: dict,
    seconds: dict[str, float],
    compiling: float,
    more: bool,
    memory: float,
) -> None:
    """Append a run to the plan; what an earlier run would leave in the store is not counted."""
    path = Path(os.environ["REGRETBOOK_PLAN"])
    before = {address for planned in read(path) for address in planned.addresses}
    new = {address: value for address, value in seconds.items() if address not in before}
    together = max(1, min(engine.cores(), len(new)))
    span = max(sum(new.values()) / together, max(new.values(), default=0.0))
    span += compiling if new else 0.0
    memory = _memory("VmRSS") + together * memory
    planned = Planned(label, len(asked), len(new), span, more and bool(new), memory, list(new))
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(planned._asdict()) + "\n")


def _measured(task: Task, stored: list[str], found: Results) -> Rehearsed | None:
    """Return what finished tasks of the same program and setting took, if there are any."""
    costs = [cost for address in stored if (cost := store.cost(address))]
    if not costs:
        return None
    pace = median(cost.seconds / cost.work for cost in costs)
    return Rehearsed(pace * task.work, rows=found[stored[0]])


def _rehearse(label: str, group: str, task: Task) -> Rehearsed:
    """Let a process of its own try a task, which can be ended when it takes too long."""
    if group in _rehearsed:
        return _rehearsed[group]._replace(compiling=0.0)
    tried = _tried.setdefault((label, task.program), [])
    if not _plays(task) and sum(rehearsed.seconds for rehearsed, _ in tried) >= CAP / 2:
        rehearsed, work = max(tried, key=lambda pair: pair[0].seconds)
        return rehearsed._replace(seconds=rehearsed.seconds * task.work / work)
    executor = (
        _executors.pop()
        if _executors
        else ProcessPoolExecutor(max_workers=1, initializer=end_with_parent)
    )
    executor.submit(os.getpid).result()  # it has begun
    cap = BEGIN if _plays(task) else CAP
    try:
        rehearsed = executor.submit(rehearse, task).result(timeout=cap)
        _executors.append(executor)
    except TimeoutError:
        executor.shutdown(kill_workers=True)
        rehearsed = Rehearsed(cap)
    tried.append((rehearsed, task.work))
    _rehearsed[group] = rehearsed
    return rehearsed


def rehearse(task: Task) -> Rehearsed:
    """Try a task in this process."""
    module = program.load(task.program)
    function = getattr(module, task.entry)
    threadpool_limits(1)
    if not _plays(task):
        return _whole(function, task)
    watch = getattr(module, "watch", None)
    look = _Look(watch)
    try:
        if watch:
            module.watch = look
        return _rounds(function, task, look)
    finally:
        if watch:
            module.watch = watch


def _whole(function: Callable, task: Task) -> Rehearsed:
    """Run a task, and again where there is time: the first time it may have been compiled."""
    taken = []
    while len(taken) < 2:
        base, start = _memory("VmRSS", reset=True), time.thread_time()
        rows = function(**task.arguments)
        taken.append(time.thread_time() - start)
        if taken[-1] > CAP / 3:
            break
    memory = max(0.0, _memory("VmHWM") - base)
    rows = {name: np.asarray(value) for name, value in rows.items()}
    return Rehearsed(taken[-1], memory, rows, max(0.0, taken[0] - taken[-1]))


class _Enough(Exception):
    pass


class _Look:
    """A policy's `watch` that really looks as often as it may, then repeats what it saw.

    A look at a thousand users can take longer than a thousand rounds.
    """

    def __init__(self, watch: Callable | None):
        self.watch, self.may, self.seconds, self.seen = watch, 2, 0.0, {}

    def __call__(self, *arguments):
        if self.may:
            self.may -= 1
            start = time.thread_time()
            self.seen = self.watch(*arguments)
            self.seconds = time.thread_time() - start
        return self.seen


def _rounds(function: Callable, task: Task, look: _Look) -> Rehearsed:
    """Play some rounds to compile and to see the rows, then the first of the real horizon."""
    *_, T = times = task.arguments["times"]
    few = min(T, max(len(times), FEWEST))
    cut = [max(1, t * few // T) for t in times]
    start = time.thread_time()
    rows = function(**{**task.arguments, "times": cut}, advance=lambda amount: None)
    first, looked = time.thread_time() - start, 2 - look.may
    steps = [*(2**k for k in range((T - 1).bit_length())), T]
    base, look.may, clock = _memory("VmRSS", reset=True), 1, [time.thread_time()]

    def advance(amount):
        clock.append(time.thread_time())
        played = clock[-1] - clock[1]
        if played > 5 * PLAYED or (played > PLAYED and len(clock) - 2 >= SPANS):
            raise _Enough

    with contextlib.suppress(_Enough):
        function(**{**task.arguments, "times": steps}, advance=advance)
    begun, costs = clock[1] - clock[0] - look.seconds, np.diff(clock[1:])
    spans, left = np.split(np.diff(steps), [len(costs)])
    again = begun + looked * look.seconds + np.interp(few, steps[: len(clock) - 1], clock[1:])
    compiling = max(0.0, first - float(again - clock[1]))
    seconds = begun + costs.sum() + _further(spans, costs, left) + len(times) * look.seconds
    rows = {name: np.asarray(value) for name, value in rows.items()}
    return Rehearsed(seconds, max(0.0, _memory("VmHWM") - base), rows, compiling)


def _further(spans: np.ndarray, costs: np.ndarray, left: np.ndarray) -> float:
    """Return what further spans of rounds cost, each twice as long as the one before.

    A part of the cost goes with the rounds. The other is the same in every span: what is done ever
    more rarely, as asking for key-terms or clustering again, costs so much at each doubling.
    """
    if not left.size:
        return 0.0
    spans, costs = spans[-SPANS:], costs[-SPANS:]
    (doubling, each), _ = nnls(np.column_stack([np.ones(len(spans)), spans]), costs)
    return float(doubling * len(left) + each * left.sum())


def _rows(label: str, task: Task, rehearsed: Rehearsed) -> dict[str, np.ndarray]:
    """Return rows such as a task returns, if need be those of another setting in the store."""
    if rehearsed.rows is not None:
        return rehearsed.rows
    for path in (store.folder() / store.group(task.program)).glob(f"*{store.SUFFIX}"):
        if (rows := store.load(f"{store.group(task.program)}/{path.stem}")) is not None:
            return rows
    raise BookError(
        f"A task of {label!r} takes more than {rehearsed.seconds:.0f} s, and no finished one is in "
        "the store to stand in for it: a run in a smaller profile leaves some there."
    )


def _stand_in(task: Task, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return made-up results: all methods alike, as those must be of which one contains another."""
    shrink = 1 - 1e-3 * (0.618 * task.arguments.get("trial", 0) % 1)  # no two trials are alike
    if task.arguments.get("stream") == 0:  # nor two settings, but those of a search may have to be
        address = store.key("", {"setting": task.arguments.get("setting")})
        shrink *= 1 - 0.1 * int(address[-8:], 16) / 16**8
    made = {n: value * shrink if value.dtype.kind == "f" else value for n, value in rows.items()}
    if _plays(task):
        times = np.array(task.arguments["times"])
        made = {name: np.resize(value, len(times)) for name, value in made.items()}
        made |= {"t": times, "regret": shrink * np.sqrt(times), "reward": shrink * times}
    return made


def _memory(field: str, reset: bool = False) -> float:
    """Return bytes in use (VmRSS) or at the peak (VmHWM), zero where the system does not tell."""
    with contextlib.suppress(OSError):
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text()
        return 1024.0 * int(re.search(rf"^{field}:\s+(\d+) kB", status, re.M)[1])
    return 0.0
