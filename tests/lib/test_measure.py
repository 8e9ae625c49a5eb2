"""Intervals cover as often as they say, stay in range, and know of what was chosen."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from lib import measure
from lib.errors import BookError
from lib.measure import Measured

DRAWS = 2000


def coverage(intervals, truth):
    """Return how many of the intervals contain the truth."""
    return np.mean([found.low <= truth <= found.high for found in intervals])


def test_mean_against_closed_forms():
    # With two trials the t distribution is Cauchy: its 95 % quantile factor is tan(0.475 π).
    two = measure.mean([1.0, 3.0])
    assert (two.value, two.trials, two.values) == (2.0, 2, (1.0, 3.0))
    assert two.high - 2.0 == pytest.approx(np.tan(0.475 * np.pi))
    values = [1.0, 2.5, 4.0, 0.5]
    low, high = stats.ttest_1samp(values, 0).confidence_interval()
    assert measure.mean(values)[1:3] == pytest.approx((low, high))
    assert measure.mean([5.0, 5.0])[:3] == (5.0, 5.0, 5.0)


def test_mean_covers_as_often_as_it_says():
    rng = np.random.default_rng(1)
    assert coverage(map(measure.mean, rng.normal(size=(DRAWS, 4))), 0) == pytest.approx(
        0.95, abs=0.015
    )


def test_mean_stays_in_its_range():
    found = measure.mean([0.9, 1.0, 1.0], within=(0, 1))
    assert found.high == 1.0
    assert found.low == pytest.approx(measure.mean([0.9, 1.0, 1.0]).low)
    with pytest.raises(BookError, match="outside of the range"):
        measure.mean([0.5, 1.5], within=(0, 1))


@pytest.mark.parametrize("hits", [0, 1, 7, 19, 20])
def test_share_is_the_exact_binomial_interval(hits):
    found = measure.share([True] * hits + [False] * (20 - hits))
    exact = stats.binomtest(hits, 20).proportion_ci(method="exact")
    assert found.value == hits / 20
    assert found[1:3] == pytest.approx((exact.low, exact.high))
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.trials == 20


def test_share_covers_at_least_as_often_as_it_says():
    """Exactly, not by simulation: sum the binomial over all outcomes whose interval has p."""
    outcomes = [measure.share([1] * k + [0] * (12 - k)) for k in range(13)]
    for p in (0.02, 0.1, 0.37, 0.5, 0.93):
        held = [k for k, found in enumerate(outcomes) if found.low <= p <= found.high]
        assert stats.binom.pmf(held, 12, p).sum() >= 0.95


def test_a_claim_about_every_run_has_no_interval():
    assert measure.worst([3.0, 1.0, 2.0])[:4] == (3.0, 3.0, 3.0, 3)
    assert measure.least([3.0, 1.0, 2.0])[:4] == (1.0, 1.0, 1.0, 3)
    assert measure.worst([0.5]).trials == 1
    assert measure.worst(np.arange(measure.KEPT + 1)).values == ()


def test_a_difference_is_paired():
    common = np.array([0.0, 100.0, -50.0, 7.0])
    found = measure.difference(common + 1, common)
    assert found[:3] == pytest.approx((1.0, 1.0, 1.0))
    a, b = np.array([1.0, 2.0, 4.0]), np.array([0.5, 2.5, 1.0])
    interval = stats.ttest_rel(a, b).confidence_interval()
    assert measure.difference(a, b)[1:3] == pytest.approx((interval.low, interval.high))


def test_gain_and_saving_of_a_constant_factor_are_exact():
    base = np.array([3.0, 10.0, 1.0, 200.0])
    assert measure.gain(1.2 * base, base)[:3] == pytest.approx((20, 20, 20))
    assert measure.saving(0.7 * base, base)[:3] == pytest.approx((30, 30, 30))


def test_saving_is_the_gain_with_the_other_sign():
    rng = np.random.default_rng(2)
    a, b = rng.uniform(1, 2, size=(2, 6))
    gain, saving = measure.gain(a, b), measure.saving(a, b)
    assert saving.value == pytest.approx(100 * (1 - a.mean() / b.mean()))
    assert saving[:3] == pytest.approx((-gain.value, -gain.high, -gain.low))


def test_a_ratio_of_means_covers_as_often_as_it_says():
    """Numerator and denominator share noise, as methods of one trial do."""
    rng = np.random.default_rng(3)
    shared = rng.normal(10, 2, size=(DRAWS, 8))
    a = 0.8 * shared + rng.normal(0, 0.5, size=shared.shape)
    found = (measure.ratio(x, y) for x, y in zip(a, shared, strict=True))
    assert coverage(found, 0.8) == pytest.approx(0.95, abs=0.015)


def test_a_ratio_of_regrets_is_never_negative():
    found = measure.ratio([0.0, 4.0, 0.0], [1.0, 1.0, 1.0])
    assert found.low == 0.0
    assert measure.saving([0.0, 4.0, 0.0], [1.0, 1.0, 1.0]).high == 100.0
    assert measure.ratio([-1.0, 4.0, 0.0], [1.0, 1.0, 1.0]).low < 0


def test_the_slope_of_an_exact_power_law_is_its_exponent():
    x = np.array([10, 100, 1000, 5000])
    assert measure.slope(x, np.tile(3 * x**0.7, (5, 1)))[:3] == pytest.approx((0.7, 0.7, 0.7))
    assert measure.slope(x, np.tile(1 / x, (2, 1))).value == pytest.approx(-1)
    # Trials that differ by a factor grow alike, so their slope has no spread either.
    found = measure.slope(x, np.outer([1.0, 2.0, 9.0], x**0.5))
    assert found[:3] == pytest.approx((0.5, 0.5, 0.5))
    assert found.trials == 3


def test_a_slope_covers_as_often_as_it_says():
    rng = np.random.default_rng(4)
    x = np.array([1.0, 2.0, 4.0, 8.0])
    draws = np.sqrt(x) * rng.uniform(0.8, 1.2, size=(300, 6, 4))
    assert coverage((measure.slope(x, values) for values in draws), 0.5) >= 0.91


def test_the_bootstrap_of_a_mean_is_the_interval_of_the_mean():
    values = np.random.default_rng(5).normal(size=7)
    drawn, exact = measure.bootstrap(np.mean, values), measure.mean(values)
    assert drawn.value == pytest.approx(exact.value)
    assert drawn.high - drawn.low == pytest.approx(exact.high - exact.low, rel=0.05)
    assert measure.bootstrap(np.mean, values) == drawn


def test_what_is_chosen_inside_the_bootstrap_widens_its_interval():
    """Which of two rivals is best hangs on one trial: an interval of the chosen one forgets it."""
    ours = np.full(6, 1.0)
    rivals = np.array([[3.0, 3.0, 3.0, 3.0, 3.0, 3.0], [1.0, 1.0, 1.0, 1.0, 1.0, 13.6]])

    def margin(ours, first, second):
        return min(first.mean(), second.mean()) - ours.mean()

    best = rivals[rivals.mean(axis=1).argmin()]
    outside = measure.difference(best, ours)
    inside = measure.bootstrap(margin, ours, *rivals)
    assert outside[:3] == (2.0, 2.0, 2.0)
    assert inside.value == pytest.approx(outside.value)
    assert inside.high - inside.low > 1


def test_a_bootstrap_stays_in_its_range_and_resamples_all_samples_together():
    a = np.array([1.0, 5.0, 9.0])
    assert measure.bootstrap(lambda a, b: (a - b).mean(), a, a - 1)[:3] == pytest.approx((1, 1, 1))
    rate = measure.bootstrap(np.mean, [0.9, 1.0, 1.0], within=(0, 1))
    assert rate.high == 1.0


def test_trials_to_decide_grow_with_the_square_of_what_is_missing():
    found = Measured(2.0, -2.0, 6.0, trials=5)

    def above_zero(tried):
        return tried.low > 0

    # The interval must shrink to half its width: four times the trials.
    assert measure.trials_to_decide(found, above_zero) in (20, 21)
    assert measure.trials_to_decide(found, lambda tried: tried.low > 1) in (80, 81)
    assert measure.trials_to_decide(found._replace(trials=None), above_zero) is None
    assert measure.trials_to_decide(found._replace(value=0.0), above_zero) is None


def test_more_trials_decide_as_promised():
    rng = np.random.default_rng(6)
    few = measure.mean(rng.normal(0.3, 1, size=10))
    assert few.low < 0 < few.value
    needed = measure.trials_to_decide(few, lambda tried: tried.low > 0)
    sample = rng.normal(few.value, 1, size=(200, needed))
    decided = [measure.mean(values).low > 0 for values in sample]
    assert np.mean(decided) > 0.4


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: measure.mean([1.0]), "at least two trials"),
        (lambda: measure.mean([]), "at least two trials"),
        (lambda: measure.mean([1.0, math.nan]), "at least two trials"),
        (lambda: measure.mean([[1.0, 2.0]]), "at least two trials"),
        (lambda: measure.share([]), "at least one trial"),
        (lambda: measure.share([0.5, 1.0]), "true or false"),
        (lambda: measure.worst([]), "at least one"),
        (lambda: measure.least([math.inf]), "finite"),
        (lambda: measure.difference([1.0, 2.0], [1.0, 2.0, 3.0]), "the same trials twice"),
        (lambda: measure.slope([1.0, 2.0], [[1.0, 2.0, 3.0]]), "a row of values"),
        (lambda: measure.slope([0.0, 2.0], [[1.0, 2.0]] * 2), "positive x"),
        (lambda: measure.slope([1.0, 2.0], [[1.0, 2.0]]), "at least two trials"),
        (lambda: measure.slope([1.0, 2.0], [[1.0, 2.0], [1.0, math.nan]]), "finite"),
        (lambda: measure.bootstrap(np.mean, [1.0]), "two or more trials"),
        (lambda: measure.bootstrap(np.mean, [1.0, math.nan]), "finite"),
        (lambda: measure.bootstrap(lambda a, b: 0.0, [1.0, 2.0], [1.0, 2.0, 3.0]), "the same"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, complaint):
    with pytest.raises(BookError, match=complaint):
        call()


def rarely(a):
    """Return a statistic that only the trials as they are have a value of."""
    return 1.0 if len(set(a)) == len(a) else math.nan


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: measure.ratio([1.0, 2.0], [1.0, -1.0]), "denominator"),
        (lambda: measure.ratio([1.0, 2.0], [0.0, 1.0]), "denominator"),
        (lambda: measure.gain([1.0, 2.0], [0.0, 0.0]), "denominator"),
        (lambda: measure.saving([0.0, 0.0], [0.0, 0.0]), "denominator"),
        (lambda: measure.slope([3.0], [[1.0], [2.0]]), "two different x"),
        (lambda: measure.slope([3.0, 3.0], [[1.0, 2.0]] * 2), "two different x"),
        (lambda: measure.slope([1.0, 2.0], [[1.0, -2.0]] * 2), "positive means"),
        (lambda: measure.bootstrap(lambda a, b: a.mean() / b.mean(), [1, 2], [0, 0]), "is inf"),
        (lambda: measure.bootstrap(rarely, range(9)), "most resamples"),
    ],
)
def test_sound_numbers_without_a_value_say_why(call, why):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a division by zero is no news to the reader of a page
        found = call()
    assert why in found.why
    assert np.isnan(found[:3]).all()
    assert found.trials >= 2
    assert measure.mean([1.0, 2.0]).why == ""


def test_lists_without_a_slope_are_refused_by_name():
    measure.require_several(sizes=[1, 2, 2], noises=[0.1, 0.5])
    for few in ([1], [2, 2]):
        with pytest.raises(BookError, match=r"noises is .*at least two different values"):
            measure.require_several(sizes=[1, 2], noises=few)


def test_a_resample_that_comes_again_is_not_computed_again():
    calls = []

    def median(values):
        calls.append(values)
        return float(np.median(values))

    sample = np.array([1.0, 2.0, 7.0])
    found = measure.bootstrap(median, sample)
    assert len(calls) == 1 + 3**3
    drawn = [np.median(sample[rows]) for rows in measure._resamples(3)]
    assert found == measure._spread(2.0, np.array(drawn), 3)
