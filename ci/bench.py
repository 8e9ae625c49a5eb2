"""`regretbook bench`: microseconds a round of every algorithm, beside what else there is.

All that is compared plays in turns of a few milliseconds, so that whatever else the machine does
disturbs all alike: ratios mean something where seconds do not. Times are those of the processor.
"""

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from ci import algorithms, benchlibraries, benchplan, benchrecord, growth, shards
from ci.algorithms import Algorithm
from ci.game import WARM, Game, size_of
from ci.project import shown
from lib import chapters, engine
from lib.errors import BookError, nearest
from lib.paths import Project
from lib.progress import Progress

USUAL = ["rounds", "libraries", "growth", "crowds", "shards"]
PARTS = [*USUAL, "served", "plan"]  # the last two take many minutes, so they must be asked for
TURNS = 10  # of every player in a repeat
SMALL = 60  # rounds of a repeat in tests


class Spread(NamedTuple):
    """What repeats give together, the smallest and the largest of them."""

    whole: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.whole:.2f} ({self.low:.2f}–{self.high:.2f})"


def bench(
    project: Project, names: list[str], repeats: int, small: bool, record: bool, only: list[str]
) -> int:
    """Time what is asked for, print tables, and record them where that is asked for, too."""
    chosen = algorithms.chosen(names)
    for name in only:
        if name not in PARTS:
            hint = nearest(name, PARTS) or f"; they are {', '.join(PARTS)}"
            raise BookError(f"the bench has no part {name!r}{hint}")
    parts = only or (["rounds"] if names else USUAL)
    origin = benchrecord.origin(project, repeats) if record else None
    left_out: dict[str, str] = {}
    with threadpool_limits(1), Progress("bench", len(parts)) as progress:
        for part in parts:
            begin = time.perf_counter()
            try:
                tables, absent = _part(project, part, chosen, repeats, small)
            except Exception as error:  # the other parts are measured all the same
                left_out[part] = _why(error)
                continue
            progress.add(1)
            show(tables)
            left_out |= absent
            if origin:
                seconds = time.perf_counter() - begin
                for path in benchrecord.write_tables(project, tables, origin, seconds):
                    print(shown(path))
    for name, why in left_out.items():
        print(f"left out: {name} ({why})", file=sys.stderr)
    return 1 if {*parts, *chosen} & set(left_out) else 0


Part = tuple[dict[str, pd.DataFrame], dict[str, str]]  # tables, and why something has none


def _part(
    project: Project, part: str, chosen: dict[str, Algorithm], repeats: int, small: bool
) -> Part:
    """Measure one part."""
    if part == "rounds":
        return time_all(chosen, repeats, small)
    if part == "libraries":
        compared, absent = benchlibraries.compare(project, repeats, small)
        return {"libraries": compared}, absent
    if part == "growth":
        return {"growth": growth.cost(small)}, {}
    if part == "crowds":
        return {"crowds": growth.crowds(small)}, {}
    if part == "served":
        return {"served": growth.served(small)}, {}
    if part == "plan":
        return {"plan": benchplan.compare(project)}, {}
    return {"staleness": shards.staleness(small), "workers": shards.throughput(small)}, {}


def time_all(chosen: dict[str, Algorithm], repeats: int, small: bool) -> Part:
    """Return the times of algorithms, what there is to know about each, and which failed."""
    found, absent = [], {}
    with Progress("rounds", len(chosen)) as progress:
        for name, algorithm in chosen.items():
            try:
                found.append(measure(name, algorithm, repeats, small))
            except Exception as error:  # an hour of other measurements would be lost
                absent[name] = _why(error)
            progress.add(1)
    if not found:
        raise BookError(f"nothing could be measured: {next(iter(absent.values()))}")
    rounds = pd.concat([rows for rows, _ in found], ignore_index=True)
    return {"rounds": rounds, "about": pd.DataFrame([about for _, about in found])}, absent


def _why(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def measure(
    name: str, algorithm: Algorithm, repeats: int, small: bool
) -> tuple[pd.DataFrame, dict]:
    """Time an algorithm, its bare kernel and its environment in turns, then on all cores."""
    problem = algorithms.PROBLEMS[algorithm.problem]
    environment = getattr(chapters.load(problem.page), problem.environment)
    rounds = SMALL if small else algorithm.rounds
    T = 1 + WARM + rounds * repeats
    setting = algorithms.setting_of(problem, T, small)
    users = setting["users"] if algorithm.problem == "talk" else 1  # there all users play a round

    def game(policy):
        return Game(environment, policy, setting, T, users)

    policy = algorithms.policy_of(algorithm)
    players = {"ours": game(policy), "bare": algorithm.bare and game(algorithm.bare)}
    players = {who: each for who, each in players.items() if each}
    players["idle"] = game(problem.idle)
    alone, *crew = [game(policy) for _ in range(1 + engine.cores())]
    about = {
        "algorithm": name,
        "page": algorithm.page,
        "problem": algorithm.problem,
        "sizes": ", ".join(f"{k} = {v}" for k, v in setting.items() if k != problem.horizon),
        "megabytes": size_of(players["ours"].state) / 1e6,
        "compiling": players["ours"].compiling,
        "threads": len(crew),
    }
    rows = []
    with ThreadPoolExecutor(len(crew)) as pool:
        for repeat in range(repeats):
            measured = dict.fromkeys(players, 0.0)
            for count in _turns(rounds):
                for who, each in players.items():
                    measured[who] += each.play(count) * count
            # Whole repeats here: waking a thread takes as long as some play a turn.
            for who, copies in {"alone": [alone], "together": crew}.items():
                begin = time.perf_counter()
                list(pool.map(lambda each: each.play(rounds), copies))
                measured[who] = (time.perf_counter() - begin) / users / len(copies)
            for who, seconds in measured.items():
                rows.append((name, who, repeat, rounds, 1e6 * seconds / rounds))
    columns = ["algorithm", "who", "repeat", "rounds", "microseconds"]
    return pd.DataFrame(rows, columns=columns), about


def _turns(rounds: int) -> Iterator[int]:
    """Return the rounds of every turn of a repeat."""
    ends = np.linspace(0, rounds, min(TURNS, rounds) + 1).astype(int)
    yield from map(int, np.diff(ends))


def ratios(
    table: pd.DataFrame,
    by: Callable[[pd.DataFrame], pd.Series],
    together: Callable[[pd.DataFrame], pd.Series] = pd.DataFrame.mean,
) -> dict[str, Spread]:
    """Return a ratio of every algorithm over its repeats; `by` makes it of a row a repeat.

    Repeats follow one another in one run, in which some rounds are dearer than others (an algorithm
    may cluster its users again), so all of them count `together`.
    """
    found = {}
    for name, rows in table.groupby("algorithm", sort=False):
        wide = rows.pivot(index="repeat", columns="who", values="microseconds")
        if (values := by(wide)) is not None:
            whole = by(together(wide).to_frame().T).iloc[0]
            found[name] = Spread(whole, values.min(), values.max())
    return found


def speedups(table: pd.DataFrame) -> dict[str, Spread]:
    """Return how many times more rounds all cores play; the clock on the wall has outliers."""
    return ratios(table, speedup, pd.DataFrame.median)


def own(wide: pd.DataFrame) -> pd.Series:
    """Return what the algorithm itself takes of a round, without the environment."""
    return wide["ours"] - wide["idle"]


def to_bare(wide: pd.DataFrame) -> pd.Series | None:
    """Return how many times its bare kernel an algorithm takes."""
    return own(wide) / (wide["bare"] - wide["idle"]) if "bare" in wide else None


def speedup(wide: pd.DataFrame) -> pd.Series:
    """Return how many times more rounds all cores play than one."""
    return wide["alone"] / wide["together"]


def show(tables: dict[str, pd.DataFrame]) -> None:
    """Print what was measured."""
    if "rounds" in tables:
        _show_rounds(tables["rounds"], tables["about"].set_index("algorithm"))
    elif "libraries" in tables:
        benchlibraries.show(tables["libraries"])
    else:
        for table in tables.values():
            print(table.to_string(index=False, float_format="%.1f"))


def _show_rounds(rounds: pd.DataFrame, about: pd.DataFrame) -> None:
    own_times, bare, faster = ratios(rounds, own), ratios(rounds, to_bare), speedups(rounds)
    print(f"{'algorithm':<26}{'µs a round':<24}{'× bare kernel':<22}{'× one thread':<20}MB")
    for name in own_times:
        ratio = bare.get(name, "none")
        print(
            f"{name:<26}{own_times[name]!s:<24}{ratio!s:<22}{faster[name]!s:<20}"
            f"{about.loc[name, 'megabytes']:.1f}"
        )
