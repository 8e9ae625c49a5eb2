"""What a method searches: ranges that all methods share, spaces that contain one another.

The geometry of `lib.tune`, which runs the searches: where the first points lie, what comes behind
the end of a range, and in which order methods that contain each other are searched.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy.stats import qmc

from lib.errors import BookError, nearest


class Range(NamedTuple):
    """Where a constant is searched, evenly in its logarithm unless `log` is false.

    An end that means something is named in `edges`, {"high": "weights all 1"}: a winner there is a
    finding and not a range that was too short. Other ends move when a winner is found at them.
    """

    low: float
    high: float
    log: bool = True
    integer: bool = False
    edges: dict[str, str] = {}  # noqa: RUF012

    def at(self, unit: float) -> float | int:
        """Return the value at a share of the range, with the four digits that a page prints."""
        if self.log:
            value = self.low * (self.high / self.low) ** unit
        else:
            value = self.low + (self.high - self.low) * unit
        return round(value) if self.integer else float(f"{value:.4g}")

    def beyond(self, side: str) -> "Range | None":
        """Return the next piece on a side, half as wide, or None where the range may not grow.

        What is not negative stays so, and a count stays at least one.
        """
        least = 1 if self.integer and self.low >= 1 else 0 if self.low >= 0 else -math.inf
        if side in self.edges or (side == "low" and self.low <= least):
            return None
        if self.log:
            factor = math.sqrt(self.high / self.low)
            low, high = self.low / factor, self.high * factor
        else:
            half = (self.high - self.low) / 2
            low, high = self.low - half, self.high + half
        if side == "low":
            return self._replace(low=max(low, least), high=self.low)
        return self._replace(low=self.high, high=high)


class Space(NamedTuple):
    """What a method searches, and which other methods it is at some of its constants.

    `constants` names ranges, or says which parameter takes its value from which range; where the
    parameters follow from the constants in another way, `parameters` computes them. `contains`
    gives, for each contained method, the constants to add to those of its winner, or a function of
    them: {"LinUCB": {"weight": inf}}. That the two then score the same is checked.
    """

    constants: dict[str, str] | tuple[str, ...] = ()
    parameters: Callable[[dict], dict] | None = None
    contains: dict[str, dict | Callable[[dict], dict]] = {}  # noqa: RUF012

    def names(self) -> tuple[str, ...]:
        """Return the ranges that are searched, each once."""
        named = self.constants.values() if isinstance(self.constants, dict) else self.constants
        return tuple(dict.fromkeys(named))

    def parameters_of(self, constants: dict) -> dict:
        """Return the method's parameters at one point of the search."""
        if self.parameters is not None:
            return self.parameters(constants)
        if isinstance(self.constants, dict):
            return {parameter: constants[name] for parameter, name in self.constants.items()}
        return dict(constants)

    def constants_as(self, other: str, constants: dict) -> dict:
        """Return the constants at which this method is another one that has these constants."""
        extra = self.contains[other]
        return extra(constants) if callable(extra) else {**constants, **extra}


Edge = tuple[str, str]  # the name of a range and a side of it, "low" or "high"


def units(n: int, d: int, skip: int = 0) -> np.ndarray:
    """Return n points of the unit cube: evenly spaced if d = 1, else Halton's, from end to end.

    After `skip` points that were already tried come the next ones of the sequence, unstretched.
    """
    if d == 1 and n > 1 and not skip:
        return np.linspace(0, 1, n)[:, None]
    sequence = qmc.Halton(d, scramble=False)
    sequence.fast_forward(1 + skip)  # the first point of the sequence is a corner
    points = sequence.random(n)
    if n == 1 or skip:
        return points
    return (points - points.min(axis=0)) / np.ptp(points, axis=0)


def spread(space: Space, ranges: dict[str, Range], n: int, skip: int = 0) -> list[dict]:
    """Return n points over the ranges of a method; one without constants has a single point."""
    names = space.names()
    if not names:
        return [] if skip else [{}]
    return [
        {name: ranges[name].at(u) for name, u in zip(names, unit, strict=True)}
        for unit in units(n, len(names), skip)
    ]


def pieces(ranges: dict[str, Range], edges: Iterable[Edge]) -> dict[Edge, Range]:
    """Return what comes after each of these ends, without those that may not grow."""
    found = {(name, side): ranges[name].beyond(side) for name, side in sorted(set(edges))}
    return {edge: piece for edge, piece in found.items() if piece is not None}


def extended(ranges: dict[str, Range], new: dict[Edge, Range]) -> dict[str, Range]:
    """Return the ranges with their new pieces."""
    grown = dict(ranges)
    for (name, _), piece in new.items():
        low, high = min(grown[name].low, piece.low), max(grown[name].high, piece.high)
        grown[name] = grown[name]._replace(low=low, high=high)
    return grown


def spread_beyond(
    space: Space, ranges: dict[str, Range], new: dict[Edge, Range], n: int, skip: int
) -> list[dict]:
    """Return n further points: in the new pieces of a method's ranges, else among the old ones."""
    mine = [edge for edge in new if edge[0] in space.names()]
    if not mine:
        return spread(space, ranges, n, skip)
    found = []
    for i, (name, side) in enumerate(mine):
        size = len(range(i, n, len(mine)))
        piece = new[name, side]
        if side == "high":  # the old end has been tried
            piece = piece._replace(low=piece.at(1 / size))
        else:
            piece = piece._replace(high=piece.at(1 - 1 / size))
        found += spread(space, {**ranges, name: piece}, size)
    return found


def levels(spaces: dict[str, Space]) -> list[list[str]]:
    """Return the methods in groups, each behind the groups of the methods that it contains."""
    left, groups = dict(spaces), []
    while left:
        group = [name for name in left if not set(left[name].contains) & set(left)]
        if not group:
            raise BookError(f"These methods contain each other: {', '.join(left)}.")
        groups.append(group)
        left = {name: space for name, space in left.items() if name not in group}
    return groups


def most_contained(spaces: dict[str, Space]) -> int:
    """Return the largest number of methods that one method contains."""
    return max(len(space.contains) for space in spaces.values())


def compared(
    methods: list[str], spaces: dict[str, Space], ranges: dict[str, Range], evaluations: int | None
) -> dict[str, Space]:
    """Return the spaces of these methods, checked, containing only methods among them."""
    for name, searched in ranges.items():
        if not searched.low < searched.high or (searched.log and searched.low <= 0):
            raise BookError(
                f"The range of {name} must rise, and from above 0 if it is a log range."
            )
        if set(searched.edges) - {"low", "high"}:
            raise BookError(f"The edges of {name} are called low and high, not {searched.edges}.")
    for name in methods:
        if name not in spaces:
            raise BookError(f"No space is given for {name!r}{nearest(name, spaces)}.")
        for known, asked in ((spaces, spaces[name].contains), (ranges, spaces[name].names())):
            for unknown in [one for one in asked if one not in known]:
                what = "method" if known is spaces else "range"
                close = nearest(unknown, known)
                raise BookError(f"{name} refers to {what} {unknown!r}, which is not given{close}.")
    kept = {}
    for name in methods:
        contains = {k: v for k, v in spaces[name].contains.items() if k in methods}
        kept[name] = spaces[name]._replace(contains=contains)
    levels(kept)
    if evaluations is None or evaluations < most_contained(kept) + 2:
        least = most_contained(kept) + 2
        raise BookError(f"This comparison needs at least {least} evaluations, not {evaluations}.")
    return kept


def of_points(methods: list[str], points: dict[str, list[dict]]) -> dict[str, Space]:
    """Return the spaces of methods whose points are listed; all must list as many."""
    sizes = {name: len(points.get(name, [])) for name in methods}
    if len(set(sizes.values())) > 1 or 0 in sizes.values():
        raise BookError(f"Every method needs the same tuning budget, got grid sizes {sizes}.")
    return {
        name: Space(tuple(dict.fromkeys(key for point in points[name] for key in point)))
        for name in methods
    }
