"""Simulations: the environment draws and keeps the score, the policy only chooses and learns.

All policies of a trial meet the same problem, users, arms and noise, because the environment has
its own random stream that no policy touches: comparisons are paired.
"""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numba.core.dispatcher import Dispatcher

from lib import engine, program
from lib.errors import BookError
from lib.trial import rounds

# Tuning never sees the random numbers that are reported.
STREAMS = {"report": 0, "tune": 1}


def functions_of(method: NamedTuple) -> dict[str, Callable]:
    """Return the functions of a policy or an environment, of any fields, by name."""
    return {name: value for name, value in method._asdict().items() if callable(value)}


class Environment(NamedTuple):
    """Who comes, what is on offer, what it pays: four functions of a page."""

    make: Callable  # make(rng, **setting) -> problem, a NamedTuple of arrays and numbers
    draw: Callable  # draw(problem, t, rng) -> user, items (K,), arms (K, d)
    expected: Callable  # expected(problem, t, user, items, arms) -> mean rewards (K,)
    feedback: Callable  # feedback(problem, t, user, item, mean, rng) -> reward
    rounds: Callable = rounds  # the loop, for the rare problem that needs another one

    functions = property(functions_of)


class Policy(NamedTuple):
    """Three small functions and the parameters that `init` takes."""

    init: Callable  # init(problem, T, rng, **parameters) -> state, a NamedTuple of arrays
    choose: Callable  # choose(state, t, user, arms, items) -> index of an arm
    learn: Callable  # learn(state, t, user, x, reward, item), changes the arrays of state
    watch: Callable | None = None  # watch(state, problem) -> dict of numbers, at every checkpoint
    parameters: dict = {}  # noqa: RUF012
    # replan(state, t), plain Python, after each round of state.replans, an increasing array
    replan: Callable | None = None

    functions = property(functions_of)


def simulate(
    environment: Environment,
    policies: dict[str, Policy],
    *,
    T: int,
    trials: int,
    seed: int,
    settings: list[dict] | None = None,
    stream: str = "report",
    checkpoints: int = 60,
    label: str = "simulation",
) -> pd.DataFrame:
    """Run every policy on every setting and trial; a row per checkpoint, with sums up to it.

    A setting is passed to `make`; its numbers become columns. It may hold its own `T`.
    """
    settings = [{}] if settings is None else settings
    if min([T, trials, *(setting.get("T", T) for setting in settings)]) < 1:
        raise BookError(f"T and trials must be at least 1, got T = {T} and trials = {trials}.")
    # The points of a search have the same functions and share one program.
    text_of = cache(lambda code: _program({**functions_of(environment), **dict(code)}))
    programs = {name: text_of(tuple(functions_of(p).items())) for name, p in policies.items()}
    cases = list(product(settings, policies, range(trials)))
    tasks = []
    for setting, name, trial in cases:
        horizon = int(setting.get("T", T))
        arguments = {
            "setting": {k: v for k, v in setting.items() if k != "T"},
            "parameters": policies[name].parameters,
            "times": checkpoint_times(horizon, checkpoints).tolist(),
            "seed": seed,
            "stream": STREAMS[stream],
            "trial": trial,
        }
        threads = isinstance(policies[name].choose, Dispatcher)
        tasks.append(engine.Task(programs[name], "_play", arguments, horizon, threads))
    known = [_known(setting, policy=name, trial=trial) for setting, name, trial in cases]
    return _table(known, engine.run(tasks, label), label)


def repeat(
    function: Callable,
    *,
    trials: int,
    seed: int,
    settings: list[dict] | None = None,
    stream: str = "report",
    work: float | Callable[[dict], float] = 1.0,
    label: str = "experiment",
) -> pd.DataFrame:
    """Run function(rng, **setting) for every setting and trial; its numbers become rows.

    `work` says how long a trial takes, in any unit: a number, or a function of the setting.
    """
    if trials < 1:
        raise BookError(f"trials must be at least 1, got {trials}.")
    cases = list(product([{}] if settings is None else settings, range(trials)))
    text = program.text({"_repeated": function}, _REPEAT)
    common = {"seed": seed, "stream": STREAMS[stream]}
    tasks = [
        engine.Task(
            text,
            "_once",
            {"setting": setting, "trial": trial, **common},
            work(setting) if callable(work) else work,
        )
        for setting, trial in cases
    ]
    known = [_known(setting, trial=trial) for setting, trial in cases]
    return _table(known, engine.run(tasks, label), label)


def checkpoint_times(T: int, count: int) -> np.ndarray:
    """Return at most `count` rounds, evenly spaced, ending with T."""
    return np.unique(np.linspace(T / count, T, count).round().astype(int).clip(1))


def program_of(environment: Environment, policy: Policy) -> str:
    """Return the text of the program that plays a policy; `program.load` makes it a module."""
    return _program({**functions_of(environment), **functions_of(policy)})


_PLAY = """
from lib.trial import play_trial


def _play(advance, **arguments):
    return play_trial(globals(), advance, **arguments)


_play.reports_progress = True
"""

_COMPILE = """
from lib.kernels import compile_whole

rounds = compile_whole({loop})
"""

_REPEAT = """
from lib.trial import repeat_once


def _once(**arguments):
    return repeat_once(_repeated, **arguments)
"""


def _program(functions: dict[str, Callable]) -> str:
    functions = dict(functions)
    loop = functions.pop("rounds")
    name = loop.__name__
    if isinstance(functions["choose"], Dispatcher):
        return program.text(functions, _PLAY, loop, _COMPILE.format(loop=name))
    return program.text(functions, f"rounds = {name}\n{_PLAY}", loop)


def _known(setting: dict, **columns) -> dict:
    return {**{k: v for k, v in setting.items() if np.ndim(v) == 0}, **columns}


def _table(known: list[dict], results: list[dict | None], label: str) -> pd.DataFrame:
    """Return the rows of all results that are there; a limited run leaves some tasks out."""
    there = [
        (columns, {name: np.atleast_1d(value) for name, value in found.items()})
        for columns, found in zip(known, results, strict=True)
        if found is not None
    ]
    if not there:
        raise BookError(f"There is no result of {label!r}: give it something to compute.")
    alike = len({(*columns, "", *found) for columns, found in there}) == 1
    if alike and not any(value is None for columns, _ in there for value in columns.values()):
        return _at_once(there)
    return pd.concat([pd.DataFrame(c | f) for c, f in there], ignore_index=True)


def _at_once(there: list[tuple[dict, dict[str, np.ndarray]]]) -> pd.DataFrame:
    """Return the rows of results with the same columns; a frame for each would take long."""
    names = there[0][1]
    values = {name: np.concatenate([found[name] for _, found in there]) for name in names}
    counts = [max(map(len, found.values())) for _, found in there]
    columns = pd.DataFrame([columns for columns, _ in there])
    rows = columns.iloc[np.repeat(np.arange(len(there)), counts)].reset_index(drop=True)
    return rows.assign(**values)
