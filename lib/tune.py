"""Tuning: the same number of evaluations for every method, over ranges that the methods share.

A gain over a baseline is worth what the baseline's constants are worth. So a constant that several
methods have (a radius, a ridge, a window) has one range for all of them; every method gets the same
number of evaluations, on random numbers that no reported run uses; a winner at the end of a range
extends the range for everybody; and a method that contains another one tries the other's winner
too, so that on the tuning stream it is never worse. What is searched is data:

    RANGES = {"radius": Range(0.02, 2), "weight": Range(0.05, 5, edges={"high": "weights all 1"})}
    SPACES = {
        "LinUCB": Space({"beta": "radius"}),
        "CW-OFUL": Space(
            {"beta": "radius", "alpha": "weight"}, contains={"LinUCB": {"weight": np.inf}}
        ),
    }
    tuned = tune(CORRUPTED, POLICIES, SPACES, RANGES, evaluations=16, T=T, seed=seed)

The parameters that a policy already has are pinned, unless its space searches them.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from itertools import count
from numbers import Real
from typing import NamedTuple

import numpy as np
import pandas as pd

from lib.claims import digits
from lib.errors import BookError, nearest
from lib.measure import mean
from lib.simulate import Environment, Policy, repeat, simulate
from lib.spaces import (
    Range,
    Space,
    compared,
    extended,
    levels,
    most_contained,
    of_points,
    pieces,
    spread,
    spread_beyond,
)

TRIALS = 3  # of every evaluation, on the tuning stream
EXTENSIONS = 3  # of ranges, at most; each by half the width
SURVIVORS = 3  # one point in so many goes on to the next horizon


class Point(NamedTuple):
    """One choice of constants for one method; `origin` says how it came to be tried."""

    method: str
    number: int
    origin: str  # "search", "extension 1", …, or the contained method whose winner it is
    constants: dict


class Tuned(NamedTuple):
    """The methods with their best constants, every evaluation, and what is to be said of both.

    A winner's score is the best of many on the tuning stream, hence optimistic; report another run.
    """

    policies: dict  # of a function: its settings
    search: pd.DataFrame  # a row for each stage, method, point and trial
    winners: pd.DataFrame  # a row for each method
    note: str

    def __repr__(self) -> str:
        return f"{self.shown().to_string()}\n{self.note}"

    def _repr_html_(self) -> str:
        table = self.shown().to_html(border=0, justify="left")
        return f'<div class="rb-scroll">\n{table}\n</div>\n<p>{escape(self.note)}</p>'

    def shown(self) -> pd.DataFrame:
        """Return constants, score and what the winner does as text, a row for each method."""
        rows = self.winners.set_index("policy").rename_axis(None)
        score = [
            f"{digits(row.score)} [{digits(row.low)}, {digits(row.high)}]"
            for row in rows.itertuples()
        ]
        text = pd.DataFrame({"constants": rows["constants"], rows["objective"].iloc[0]: score})
        return text.assign(does=rows["does"]) if rows["does"].any() else text


def tune(
    environment: Environment,
    policies: dict[str, Policy],
    spaces: dict[str, Space] | None = None,
    ranges: dict[str, Range] | None = None,
    *,
    T: int,
    seed: int,
    trials: int = TRIALS,
    settings: list[dict] | Callable[[int], list[dict]] | None = None,
    shorter: Sequence[int] = (),
    objective: str = "regret",
    label: str = "tuning",
    **options,
) -> Tuned:
    """Give every policy the constants with the best mean `objective` at the end of the run.

    Several settings count by their mean. With `shorter` horizons the search is cheap: it happens at
    the first of them, one point in three goes on to the next one, and T decides; the table says
    whether the first winner is the last one. A setting that depends on the horizon is given by a
    function of it. The other options are those of `search`.
    """
    at_horizon = settings if callable(settings) else lambda _: settings
    horizons = [*shorter, T]
    if sorted(set(horizons)) != horizons:
        raise BookError(f"Shorter horizons must rise up to T = {T}, got {list(shorter)}.")

    def evaluate(horizon: int, candidates: dict[str, tuple[str, dict]]) -> pd.DataFrame:
        tried = {key: with_constants(policies[name], **c) for key, (name, c) in candidates.items()}
        table = simulate(
            environment,
            tried,
            T=horizon,
            trials=trials,
            seed=seed,
            settings=at_horizon(horizon),
            stream="tune",
            checkpoints=1,
            label=label,
        )
        known = {"t", "regret", "reward", *(key for s in at_horizon(horizon) or [] for key in s)}
        return table.drop(columns=known - {objective}, errors="ignore")

    stages = {f"T = {horizon:,}": partial(evaluate, horizon) for horizon in horizons}
    found = search(
        stages, list(policies), spaces, ranges, trials=trials, objective=objective, **options
    )
    best = {name: with_constants(policies[name], **found.policies[name]) for name in policies}
    return found._replace(policies=best)


def play_points(
    environment: Environment,
    policies: dict[str, Policy],
    spaces: dict[str, Space],
    points: dict[str, list[dict]],
    *,
    trials: int = TRIALS,
    **run,
) -> pd.DataFrame:
    """Play points that a page names itself on the tuning stream, a row for each point and trial."""
    named = [(name, k, point) for name, some in points.items() for k, point in enumerate(some)]
    tried = {
        f"{name}#{k}": with_constants(policies[name], **spaces[name].parameters_of(point))
        for name, k, point in named
    }
    constants = pd.DataFrame([point for *_, point in named], index=list(tried))
    table = simulate(environment, tried, trials=trials, stream="tune", checkpoints=1, **run)
    table = table.drop(columns=constants, errors="ignore").join(constants, on="policy")
    names = table["policy"].str.rpartition("#")
    return table.assign(policy=names[0], point=names[2].astype(int))


def tune_function(
    function: Callable,
    methods: dict[str, dict],
    spaces: dict[str, Space] | None = None,
    ranges: dict[str, Range] | None = None,
    *,
    seed: int,
    objective: str,
    trials: int = TRIALS,
    label: str = "tuning",
    **options,
) -> Tuned:
    """Tune function(rng, **setting) as `tune` does policies; a method is a name and its setting.

    The function returns `objective` among its numbers; of several rows the last one counts. Where
    one run measures several learners, a function of the page picks the learner's own number. The
    other options are those of `search`.
    """

    def evaluate(candidates: dict[str, tuple[str, dict]]) -> pd.DataFrame:
        tried = [{**methods[name], **constants} for name, constants in candidates.values()]
        table = repeat(
            function, trials=trials, seed=seed, settings=tried, stream="tune", label=label
        )
        # Rows come setting by setting and trial by trial: where the trial changes, a run begins.
        run = (table["trial"] != table["trial"].shift()).cumsum() - 1
        known = {key for setting in tried for key in setting}
        table = table.assign(policy=np.array(list(candidates))[run // trials])
        return table.drop(columns=known - {objective}, errors="ignore").groupby(run).tail(1)

    found = search(
        {"": evaluate}, list(methods), spaces, ranges, trials=trials, objective=objective, **options
    )
    return found._replace(policies={n: {**methods[n], **found.policies[n]} for n in methods})


def with_constants(policy: Policy, **constants) -> Policy:
    """Return a policy with some of its parameters set."""
    return policy._replace(parameters={**policy.parameters, **constants})


class _Log(NamedTuple):
    """What a search has done so far."""

    stages: dict[str, Callable[[dict], pd.DataFrame]]
    spaces: dict[str, Space]
    objective: str
    sign: int  # −1 where more is better
    tried: dict[tuple[str, str], list[Point]]  # by stage and method
    values: dict[tuple[str, str, int], np.ndarray]  # by stage, method and number: every trial
    tables: list[pd.DataFrame]
    numbers: dict[str, Iterator[int]]  # of every method, for its next points


def search(
    stages: dict[str, Callable[[dict], pd.DataFrame]],
    methods: list[str],
    spaces: dict[str, Space] | None = None,
    ranges: dict[str, Range] | None = None,
    *,
    trials: int = TRIALS,
    objective: str = "regret",
    maximise: bool = False,
    evaluations: int | None = None,
    points: dict[str, list[dict]] | None = None,
    extensions: int = EXTENSIONS,
    does: Sequence[str] = (),
) -> Tuned:
    """Find the best constants of every method, with the same number of evaluations for each.

    A stage evaluates {"CLUB#3": ("CLUB", parameters), …} and returns a table with the columns
    `policy` (such a key), `trial`, the objective, and what else it watched; rows of one trial count
    by their mean. Explicit `points` are parameters; nothing else is then tried. What is watched and
    named in `does` is shown of the winners. The `policies` of the result are parameters.
    """
    if trials < 2:
        raise BookError(f"{trials} tuning trial is luck: use {TRIALS}, or 2 at the least.")
    if points is not None:
        spaces, ranges, extensions = of_points(methods, points), {}, 0
        own = points
    elif spaces is None or ranges is None:
        raise BookError("Tuning needs spaces and ranges, or explicit points for every method.")
    else:
        spaces = compared(methods, spaces, ranges, evaluations)
        own = {n: spread(s, ranges, evaluations - len(s.contains)) for n, s in spaces.items()}
    log = _Log(stages, spaces, objective, -1 if maximise else 1, {}, {}, [], defaultdict(count))
    first, *later = stages
    _run(log, first, {name: _new(log, name, "search", own[name]) for name in methods})
    grown = ranges
    for extension in range(1, extensions + 1):
        new = pieces(grown, (e for n in methods for e in _edges(log, first, *_best(log, first, n))))
        if not new:
            break
        grown = extended(grown, new)
        _extend(log, first, grown, new, max(evaluations // 2, 2 * len(new)), extension)
    for before, stage in zip(stages, later, strict=False):
        size = max(len(log.tried[before, name]) for name in methods)
        size = max(math.ceil(size / SURVIVORS), most_contained(spaces) + 2)
        _run(
            log, stage, {n: _best(log, before, n, size - len(spaces[n].contains)) for n in methods}
        )
    return _result(log, ranges, grown, trials, does)


def _new(log: _Log, method: str, origin: str, constants: list[dict]) -> list[Point]:
    return [Point(method, next(log.numbers[method]), origin, dict(c)) for c in constants]


def _extend(log: _Log, stage: str, ranges, new, size: int, extension: int) -> None:
    """Give every method further points, in the new pieces of the ranges where it has them."""
    size = max(size, most_contained(log.spaces) + 1)
    own = {}
    for name, space in log.spaces.items():
        skip = len(log.tried[stage, name])
        further = spread_beyond(space, ranges, new, size - len(space.contains), skip)
        own[name] = _new(log, name, f"extension {extension}", further)
    _run(log, stage, own)


def _run(log: _Log, stage: str, own: dict[str, list[Point]]) -> None:
    """Evaluate the methods' own points, then in each the winners of the methods it contains."""
    _evaluate(log, stage, [point for points in own.values() for point in points])
    for level in levels(log.spaces)[1:]:
        pairs = [(n, *_best(log, stage, other)) for n in level for other in log.spaces[n].contains]
        points = [_contained(log, name, won) for name, won in pairs]
        _evaluate(log, stage, points)
        for point, (_, won) in zip(points, pairs, strict=True):
            _check_same(log, stage, point, won)


def _contained(log: _Log, method: str, won: Point) -> Point:
    """Return the point at which a method is another one with its best constants."""
    space = log.spaces[method]
    constants = space.constants_as(won.method, won.constants)
    if set(constants) != set(space.names()):
        raise BookError(
            f"{method} searches {', '.join(space.names())}, but as {won.method} it is given "
            f"{', '.join(constants) or 'nothing'}: mend its `contains`."
        )
    return _new(log, method, won.method, [constants])[0]


def _check_same(log: _Log, stage: str, point: Point, won: Point) -> None:
    """Refuse a method that is not the one it says it contains."""
    mine, theirs = (log.values[stage, p.method, p.number] for p in (point, won))
    if not np.allclose(mine, theirs, rtol=1e-6, atol=1e-9):
        raise BookError(
            f"{point.method} with {_text(point.constants)} has {log.objective} "
            f"{digits(mine.mean())} where {won.method} has {digits(theirs.mean())}, so it does not "
            "contain it: mend or drop its `contains`."
        )


def _evaluate(log: _Log, stage: str, points: list[Point]) -> None:
    named = {f"{point.method}#{point.number}": point for point in points}
    parameters = {k: log.spaces[p.method].parameters_of(p.constants) for k, p in named.items()}
    table = log.stages[stage]({key: (p.method, parameters[key]) for key, p in named.items()})
    if log.objective not in table:
        close = nearest(log.objective, table.columns)
        raise BookError(f"Nothing that was measured is called {log.objective!r}{close}.")
    table = table.fillna({log.objective: log.sign * np.inf})  # what is not a number never wins
    means = table.groupby(["policy", "trial"], sort=False).mean(numeric_only=True)
    for key, point in named.items():
        log.tried.setdefault((stage, point.method), []).append(point)
        log.values[stage, point.method, point.number] = means.loc[key, log.objective].to_numpy()
        about = {"stage": stage, "policy": point.method, "point": point.number}
        about = {**about, "origin": point.origin, **point.constants}
        log.tables.append(means.loc[key].reset_index().assign(**about))


def _best(log: _Log, stage: str, method: str, size: int = 1) -> list[Point]:
    """Return the best points of a method, among equals those of a contained method first."""

    def place(point: Point) -> tuple:
        score = log.sign * log.values[stage, method, point.number].mean()
        return score, point.origin not in log.spaces, point.number

    ranked = sorted(log.tried[stage, method], key=place)
    if not math.isfinite(place(ranked[0])[0]):
        raise BookError(f"No point of {method} has a finite {log.objective}.")
    return ranked[:size]


def _edges(log: _Log, stage: str, point: Point) -> list[tuple[str, str]]:
    """Return the constants of a point beyond which its method tried nothing, and on which side.

    Where a contained method wins, the ends of the ranges are that method's affair.
    """
    if point.origin in log.spaces:
        return []
    own = [p.constants for p in log.tried[stage, point.method] if p.origin not in log.spaces]
    found = []
    for name, value in point.constants.items():
        numbers = {c[name] for c in own if isinstance(c.get(name), Real)}
        if len(numbers) > 1 and value in numbers:
            found += [(name, "low")] * (value == min(numbers))
            found += [(name, "high")] * (value == max(numbers))
    return found


def _result(log: _Log, ranges, grown, trials: int, does: Sequence[str]) -> Tuned:
    stages = list(log.stages)
    first, last = stages[0], stages[-1]
    constants = dict.fromkeys(name for tried in log.tried.values() for p in tried for name in p[3])
    head = ["stage", "policy", "point", "origin", *constants, "trial", log.objective]
    table = pd.concat(log.tables, ignore_index=True)
    table = table[[*head, *(column for column in table if column not in head)]]
    for unknown in [name for name in does if name not in table]:
        raise BookError(f"Nothing was watched as {unknown!r}{nearest(unknown, table.columns)}.")
    runs = table.set_index(["stage", "policy", "point"]).sort_index()
    rows, parameters = [], {}
    for name, space in log.spaces.items():
        (won,) = _best(log, last, name)
        parameters[name] = space.parameters_of(won.constants)
        score = mean(log.values[last, name, won.number])
        rows.append(
            {
                "policy": name,
                "constants": _text(won.constants),
                "objective": log.objective,
                "score": score.value,
                "low": score.low,
                "high": score.high,
                "edge": _edge_text(log, first, last, won, grown),
                "horizon": _horizon_text(log, first, last, won),
                "does": _text(runs.loc[(last, name, won.number), [*does]].mean().dropna()),
                "evaluations": sum(len(log.tried[stage, name]) for stage in stages),
            }
        )
    winners = pd.DataFrame(rows)
    return Tuned(parameters, table, winners, _note(log, winners, ranges, grown, trials))


def _text(numbers: Mapping) -> str:
    words = {name: digits(v) if isinstance(v, Real) else v for name, v in numbers.items()}
    return ", ".join(f"{name} {'∞' if word == 'inf' else word}" for name, word in words.items())


def _edge_text(log: _Log, first: str, last: str, point: Point, ranges: dict[str, Range]) -> str:
    """Say that a winner is a contained method, or at which ends it is and what they mean."""
    if point.origin in log.spaces:
        while point.origin in log.spaces:
            (point,) = _best(log, last, point.origin)
        return f"the same as {point.method}"
    words = []
    for name, side in _edges(log, first, point):
        if name not in ranges:
            words.append(f"the {side}est {name} that was tried")
        elif ranges[name].beyond(side) is not None:
            words.append(f"at the {side} end of {name}, and nothing beyond was tried")
        else:
            least = f"{digits(point.constants[name])} is the least"
            words.append(f"at the {side} end of {name}, {ranges[name].edges.get(side, least)}")
    return "; ".join(words)


def _horizon_text(log: _Log, first: str, last: str, point: Point) -> str:
    """Say whether the point that won at the first horizon wins at the last one."""
    if first == last:
        return ""
    (begun,) = _best(log, first, point.method)
    if begun.constants == point.constants:
        return f"the winner at {first}, too"
    again = [p.number for p in log.tried[last, point.method] if p.constants == begun.constants]
    values = [digits(log.values[last, point.method, number].mean()) for number in again]
    now = f"{values[0]} at {last}" if values else "dropped on the way"
    return f"the winner at {first} was another, {_text(begun.constants)} ({now})"


def _note(log: _Log, winners: pd.DataFrame, ranges, grown, trials: int) -> str:
    """Say in sentences what everybody's budget was, which ranges grew, and who is at an end."""
    budget = []
    for stage in log.stages:
        size = max(len(log.tried[stage, name]) for name in log.spaces)
        budget.append(f"{size} points for {stage}" if stage else f"{size} points")
    sentences = [
        f"Every method was tried at {' and '.join(budget)}, {trials} trials each, on random "
        "numbers that no reported run uses."
    ]
    for name in ranges:
        if grown[name] != ranges[name]:
            low, high = digits(grown[name].low), digits(grown[name].high)
            sentences.append(f"For all who have it, {name} was extended to {low}–{high}.")
    for column in ("edge", "horizon"):
        for remark, rows in winners[winners[column] != ""].groupby(column, sort=False):
            sentences.append(f"{', '.join(rows['policy'])}: {remark}.")
    return " ".join(sentences)
