"""Measurements with intervals, the only things that rules judge.

Every function takes one number for each trial and returns a `Measured`: the number, and the 95 %
interval that decides. Trials are paired: methods of one trial saw the same users, arms and noise.
Nothing here depends on the moment: a bootstrap has a fixed seed.

Input that is wrong is refused. Sound numbers that leave a statistic without a value, such as a
ratio to a regret of zero in a very short run, give one that says why, and decides nothing.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from lib.errors import BookError

CONFIDENCE = 0.95
RESAMPLES = 2000
KEPT = 200  # numbers of single trials that a measurement carries along, at most
FINEST = 1e-3  # factor of the width below which more trials are hopeless: a million times as many


class Measured(NamedTuple):
    """A number with the interval that its trials leave; where there is none, all three agree."""

    value: float
    low: float
    high: float
    trials: int | None = None
    values: tuple[float, ...] = ()  # of each trial, where there is one number for each
    why: str = ""  # why there is no value: then all three are NaN


def exact(value: float) -> Measured:
    """Return a number that has no interval: one that was computed, not sampled."""
    return Measured(float(value), float(value), float(value))


def undefined(why: str, trials: int) -> Measured:
    """Return what these trials leave without a value; `judge` leaves its claim unjudged."""
    return Measured(math.nan, math.nan, math.nan, trials, (), why)


def mean(values: Sequence[float], within: tuple[float, float] = (-math.inf, math.inf)) -> Measured:
    """Return the mean over trials with its Student-t interval, cut to the range `within`."""
    values = _trials(values)
    lowest, highest = within
    if not (lowest <= values.min() and values.max() <= highest):
        raise BookError(f"a trial lies outside of the range [{lowest:g}, {highest:g}]")
    value = float(values.mean())
    half = _quantile(len(values)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    return _measured(value, half, values, within)


def share(hits: Sequence[bool]) -> Measured:
    """Return how often something happened, with the exact binomial (Clopper–Pearson) interval."""
    hits = np.asarray(hits)
    if hits.ndim != 1 or not len(hits) or not np.isin(hits, (0, 1)).all():
        raise BookError("a share needs at least one trial, each true or false")
    n, k, tail = len(hits), int(hits.sum()), (1 - CONFIDENCE) / 2
    low = float(special.betaincinv(k, n - k + 1, tail)) if k else 0.0
    high = float(special.betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Measured(k / n, low, high, n, _kept(hits))


def worst(values: Sequence[float]) -> Measured:
    """Return the largest value: a claim about every run has no interval."""
    return _every(values, np.max)


def least(values: Sequence[float]) -> Measured:
    """Return the smallest value: a claim about every run has no interval."""
    return _every(values, np.min)


def difference(a: Sequence[float], b: Sequence[float]) -> Measured:
    """Return the mean of a − b, paired over trials."""
    a, b = _pair(a, b)
    return mean(a - b)


def gain(a: Sequence[float], b: Sequence[float]) -> Measured:
    """Return by how many percent the mean of a is above that of b, paired over trials."""
    return _of_ratio(a, b, lambda ratio: 100 * (ratio - 1))


def saving(a: Sequence[float], b: Sequence[float]) -> Measured:
    """Return by how many percent the mean of a is below that of b, paired over trials."""
    return _of_ratio(a, b, lambda ratio: 100 * (1 - ratio))


def ratio(a: Sequence[float], b: Sequence[float]) -> Measured:
    """Return the ratio of means a / b, paired over trials, by the jackknife.

    With n trials the spread is n − 1 times that of the n ratios that leave one trial out; the
    quantile is Student's, as for a mean. A ratio of what cannot be negative stays at 0 or above.
    """
    a, b = _pair(a, b)
    n = len(a)
    if not b.mean() or not ((b.sum() - b) * b.sum() > 0).all():
        why = "a ratio needs a denominator whose mean keeps its sign without any trial"
        return undefined(why, n)
    without = (a.sum() - a) / (b.sum() - b)
    half = _quantile(n) * math.sqrt((n - 1) / n * float(((without - without.mean()) ** 2).sum()))
    lowest = 0.0 if (a >= 0).all() and (b > 0).all() else -math.inf
    single = a / b if (b != 0).all() else ()
    return _measured(float(a.mean() / b.mean()), half, single, (lowest, math.inf), n)


def slope(x: Sequence[float], values: Sequence[Sequence[float]]) -> Measured:
    """Return the exponent of growth: the log-log slope over x of the means over trials.

    `values` has a row for each trial and a column for each x; the bootstrap resamples rows.
    """
    x, values = np.asarray(x, dtype=float), np.asarray(values, dtype=float)
    if values.ndim != 2 or values.shape[1] != len(x) or not (x > 0).all():
        raise BookError("a slope needs positive x and a row of values for each trial")
    if len(values) < 2 or not np.isfinite(values).all():
        raise BookError("a slope needs at least two trials, all finite")
    if len(np.unique(x)) < 2:
        return undefined("a slope needs at least two different x", len(values))
    if not (values.mean(axis=0) > 0).all():
        return undefined("a slope on logarithmic axes needs positive means", len(values))
    centred = np.log(x) - np.log(x).mean()
    weights = centred / (centred @ centred)
    with np.errstate(all="ignore"):
        drawn = np.log(values[_resamples(len(values))].mean(axis=1)) @ weights
    return _spread(float(np.log(values.mean(axis=0)) @ weights), drawn, len(values))


def require_several(**lists: Sequence[float]) -> None:
    """Refuse lists of parameters over which no slope can be fitted, before anything is computed."""
    for name, values in lists.items():
        if len(set(values)) < 2:
            raise BookError(
                f"{name} is {values}, but this page looks at how things grow with it: give it at "
                "least two different values."
            )


def bootstrap(
    statistic: Callable[..., float],
    *samples: Sequence,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> Measured:
    """Return a statistic of samples over trials with an interval from resampled trials.

    The first axis of every sample is the trial, and all are resampled together. Whatever is
    chosen (the best rival, the window of a fit) must be chosen inside `statistic`, so that the
    interval knows of the choice.
    """
    samples = [np.asarray(sample, dtype=float) for sample in samples]
    lengths = {len(sample) for sample in samples if sample.ndim}
    if len(lengths) != 1 or lengths.pop() < 2 or not all(np.isfinite(s).all() for s in samples):
        raise BookError("a bootstrap needs samples over the same two or more trials, all finite")
    n = len(samples[0])
    with np.errstate(all="ignore"):
        value = float(statistic(*samples))
        # Few trials have few resamples: three have 27, however often each of them is drawn.
        different, which = np.unique(_resamples(n), axis=0, return_inverse=True)
        found = [statistic(*(sample[rows] for sample in samples)) for rows in different]
    return _spread(value, np.array(found, dtype=float)[which.ravel()], n, within)


def _resamples(n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(n, size=(RESAMPLES, n))


def _spread(value: float, drawn: np.ndarray, n: int, within=(-math.inf, math.inf)) -> Measured:
    """Return a statistic with the standard error of its resamples and Student's quantile.

    The error is corrected for n, so that for a mean this is the interval of `mean`. Percentiles
    would be too narrow with the three to ten trials that most experiments have.
    """
    if not math.isfinite(value):
        return undefined(f"the statistic of the trials is {value}", n)
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < RESAMPLES / 2:
        return undefined("the statistic is not a number for most resamples of the trials", n)
    half = _quantile(n) * float(drawn.std()) * math.sqrt(n / (n - 1))
    return _measured(value, half, (), within, n)


def shrunk(measured: Measured, factor: float) -> Measured:
    """Return the measurement with an interval that is `factor` times as wide."""
    value, low, high = measured[:3]
    return measured._replace(
        low=value - factor * (value - low), high=value + factor * (high - value)
    )


def trials_to_decide(measured: Measured, decided: Callable[[Measured], bool]) -> int | None:
    """Return how many trials would decide if the measurement stayed where it is.

    Intervals shrink with the root of the number of trials, so one that must become s times as
    wide needs trials / s²; None where that is hopeless, or where trials were not counted.
    """
    if measured.trials is None or not decided(shrunk(measured, FINEST)):
        return None
    enough, too_wide = FINEST, 1.0
    while too_wide - enough > 1e-4 * enough:
        middle = (enough + too_wide) / 2
        if decided(shrunk(measured, middle)):
            enough = middle
        else:
            too_wide = middle
    return math.ceil(measured.trials / enough**2)


def _trials(values: Sequence[float]) -> np.ndarray:
    """Return one number for each of at least two trials: one says nothing about its spread."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise BookError("an interval needs at least two trials, each a finite number")
    return values


def _pair(a: Sequence[float], b: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    a, b = _trials(a), _trials(b)
    if len(a) != len(b):
        raise BookError(f"a pair needs the same trials twice, but one has {len(a)}, one {len(b)}")
    return a, b


def _every(values: Sequence[float], choose: Callable) -> Measured:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise BookError("a claim about every run needs at least one, each a finite number")
    value = float(choose(values))
    return Measured(value, value, value, len(values), _kept(values))


def _of_ratio(a: Sequence[float], b: Sequence[float], to: Callable[[float], float]) -> Measured:
    found = ratio(a, b)
    low, high = sorted((to(found.low), to(found.high)))
    return found._replace(
        value=to(found.value), low=low, high=high, values=tuple(map(to, found.values))
    )


def _quantile(n: int) -> float:
    return float(special.stdtrit(n - 1, (1 + CONFIDENCE) / 2))


def _kept(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values) if len(values) <= KEPT else ()


def _measured(value: float, half: float, values, within, trials: int | None = None) -> Measured:
    low, high = max(value - half, within[0]), min(value + half, within[1])
    return Measured(value, low, high, trials or len(values), _kept(values))
