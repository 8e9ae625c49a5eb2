"""Simulations: the environment draws and keeps the score, the policy only chooses and learns.

All policies of a trial meet the same problem, users, arms and noise, because the environment has
its own random stream that no policy touches: comparisons are paired.
"""

import inspect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numba.core.dispatcher import Dispatcher

from lib import engine, program
from lib.errors import BookError
from lib.trial import rounds

# Tuning never sees the random numbers that are reported.
STREAMS = {"report": 0, "tune": 1}


class Environment(NamedTuple):
    """Who comes, what is on offer, what it pays: four functions of a page."""

    make: Callable  # make(rng, **setting) -> problem, a NamedTuple of arrays and numbers
    draw: Callable  # draw(problem, t, rng) -> user, items (K,), arms (K, d)
    expected: Callable  # expected(problem, t, user, items, arms) -> mean rewards (K,)
    feedback: Callable  # feedback(problem, t, user, item, mean, rng) -> reward
    rounds: Callable = rounds  # the loop, for the rare problem that needs another one


class Policy(NamedTuple):
    """Three small functions and the parameters that `init` takes."""

    init: Callable  # init(problem, T, rng, **parameters) -> state, a NamedTuple of arrays
    choose: Callable  # choose(state, t, user, arms, items) -> index of an arm
    learn: Callable  # learn(state, t, user, x, reward, item), changes the arrays of state
    watch: Callable | None = None  # watch(state, problem) -> dict of numbers, at every checkpoint
    parameters: dict = {}  # noqa: RUF012


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
    if T < 1 or trials < 1:
        raise BookError(f"T and trials must be at least 1, got T = {T} and trials = {trials}.")
    settings = [{}] if settings is None else settings
    cases = [
        (setting, name, trial)
        for setting in settings
        for name in policies
        for trial in range(trials)
    ]
    distinct = {policy[:4]: policy for policy in policies.values()}  # tuning shares its functions
    programs = {key: program_of(environment, policy) for key, policy in distinct.items()}
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
        text, threads = programs[policies[name][:4]], isinstance(policies[name].choose, Dispatcher)
        tasks.append(engine.Task(text, "_play", arguments, work=horizon, threads=threads))
    frames = []
    for (setting, name, trial), result in zip(cases, engine.run(tasks, label), strict=True):
        columns = {k: v for k, v in setting.items() if np.ndim(v) == 0}
        frames.append(pd.DataFrame({**columns, "policy": name, "trial": trial, **result}))
    return pd.concat(frames, ignore_index=True)


def repeat(
    function: Callable,
    *,
    trials: int,
    seed: int,
    settings: list[dict] | None = None,
    stream: str = "report",
    label: str = "experiment",
) -> pd.DataFrame:
    """Run function(rng, **setting) for every setting and trial; its numbers become rows."""
    settings = [{}] if settings is None else settings
    cases = [(setting, trial) for setting in settings for trial in range(trials)]
    text = program.text({"_repeated": function}, "from lib.trial import repeat_once\n" + _REPEAT)
    common = {"seed": seed, "stream": STREAMS[stream]}
    tasks = [
        engine.Task(text, "_once", {"setting": setting, "trial": trial, **common})
        for setting, trial in cases
    ]
    frames = []
    for (setting, trial), result in zip(cases, engine.run(tasks, label), strict=True):
        columns = {k: v for k, v in setting.items() if np.ndim(v) == 0}
        rows = {name: np.atleast_1d(value) for name, value in result.items()}
        frames.append(pd.DataFrame({**columns, "trial": trial, **rows}))
    return pd.concat(frames, ignore_index=True)


def tune(
    environment: Environment,
    policies: dict[str, Policy],
    grids: dict[str, list[dict]],
    *,
    T: int,
    trials: int,
    seed: int,
    settings: list[dict] | None = None,
    label: str = "tuning",
) -> tuple[dict[str, Policy], pd.DataFrame]:
    """Give every policy the parameters with the least mean final regret, and the whole search.

    All grids must have the same number of points: the same budget for every method.
    """
    sizes = {name: len(grids[name]) for name in policies}
    if len(set(sizes.values())) > 1:
        raise BookError(f"Every method needs the same tuning budget, got grid sizes {sizes}.")
    candidates = {
        f"{name}#{i}": policy._replace(parameters={**policy.parameters, **point})
        for name, policy in policies.items()
        for i, point in enumerate(grids[name])
    }
    table = simulate(
        environment,
        candidates,
        T=T,
        trials=trials,
        seed=seed,
        settings=settings,
        stream="tune",
        checkpoints=1,
        label=label,
    )
    search = table.groupby("policy", sort=False)["regret"].mean().rename("regret").reset_index()
    search[["policy", "point"]] = search["policy"].str.rsplit("#", n=1, expand=True)
    search["point"] = search["point"].astype(int)
    best = search.loc[search.groupby("policy")["regret"].idxmin()].set_index("policy")["point"]
    return {name: candidates[f"{name}#{best[name]}"] for name in policies}, search


def checkpoint_times(T: int, count: int) -> np.ndarray:
    """Return at most `count` rounds, evenly spaced, ending with T."""
    return np.unique(np.linspace(T / count, T, count).round().astype(int).clip(1))


_PLAY = """
def _play(**arguments):
    return play_trial(globals(), **arguments)


_play.reports_progress = True
"""

_REPEAT = """
def _once(**arguments):
    return repeat_once(_repeated, **arguments)
"""


def program_of(environment: Environment, policy: Policy) -> str:
    """Return the text of the program that plays a policy; `program.load` makes it a module."""
    functions = {**environment._asdict(), **policy._asdict()}
    loop = functions.pop("rounds")
    del functions["parameters"]
    functions = {name: value for name, value in functions.items() if value is not None}
    ending = "from lib.trial import play_trial\n\n\n" + inspect.getsource(loop)
    if isinstance(policy.choose, Dispatcher):
        ending += "\n\nfrom lib.kernels import compile_whole\nrounds = compile_whole(rounds)\n"
    return program.text(functions, ending + _PLAY)
