"""Tuning: known optima are found, budgets are equal, ranges grow for all, robust never loses."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from lib.errors import BookError
from lib.kernels import jit
from lib.simulate import Environment, Policy, simulate
from lib.spaces import units
from lib.tune import Range, Space, search, tune, tune_function, with_constants

TRIALS = 3


@pytest.fixture(autouse=True)
def empty_store(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "store"))


def bowl(candidates, optimum, trials=TRIALS, seen=None):
    """Score candidates by 1 + the squared distance of their logarithms from an optimum."""
    rows = []
    for key, (name, parameters) in candidates.items():
        goal = optimum.get(name, optimum)
        distance = sum(math.log(parameters[k] / goal[k]) ** 2 for k in parameters)
        rows += [
            {"policy": key, "trial": k, "regret": 1 + distance + 0.01 * k, "clusters": 7}
            for k in range(trials)
        ]
        if seen is not None:
            seen.append((name, parameters))
    return pd.DataFrame(rows)


def found(optimum, spaces, ranges, **options):
    stages = {"": partial(bowl, optimum=optimum)}
    return search(stages, list(spaces), spaces, ranges, **options)


ONE = {"A": Space(("radius",))}
TWO = {"A": Space(("radius", "window")), "B": Space(("radius",))}
RANGES = {"radius": Range(0.1, 10.0), "window": Range(1.0, 1000.0)}


def test_one_constant_is_searched_evenly_in_its_logarithm_from_end_to_end():
    tried = found({"radius": 1.0}, ONE, RANGES, evaluations=5).search["radius"].unique()
    np.testing.assert_allclose(tried, np.geomspace(0.1, 10, 5), rtol=1e-3)


def test_the_optimum_is_found_within_the_spacing_of_the_points():
    for goal in (0.3, 1.0, 4.0):
        best = found({"radius": goal}, ONE, RANGES, evaluations=17).policies["A"]["radius"]
        assert abs(math.log(best / goal)) <= math.log(100) / 16 / 2 + 1e-3


@pytest.mark.parametrize("n", [8, 32, 128])
def test_in_two_dimensions_the_winner_is_as_near_as_the_discrepancy_promises(n):
    goal = {"A": {"radius": 0.7, "window": 60.0}, "B": {"radius": 0.7}}
    best = found(goal, TWO, RANGES, evaluations=n, extensions=0).policies["A"]
    gap = [
        math.log(best["radius"] / 0.7) / math.log(100),
        math.log(best["window"] / 60) / math.log(1000),
    ]
    assert math.hypot(*gap) <= 0.75 / math.sqrt(n)  # half the diagonal of a cell, n cells


@pytest.mark.parametrize(("n", "d"), [(7, 1), (8, 2), (16, 3), (50, 4)])
def test_points_reach_the_ends_and_leave_no_large_hole(n, d):
    points = units(n, d)
    assert points.shape == (n, d)
    np.testing.assert_array_equal([points.min(), points.max()], [0, 1])
    for column in points.T:  # each constant on its own is covered, too
        assert {column.min(), column.max()} == {0.0, 1.0}
        assert np.diff(np.sort(column)).max() <= 4 / n


def test_two_searches_are_the_same_point_by_point():
    goal = {"A": {"radius": 40.0, "window": 60.0}, "B": {"radius": 0.7}}
    first, second = (found(goal, TWO, RANGES, evaluations=9) for _ in range(2))
    pd.testing.assert_frame_equal(first.search, second.search)


def test_a_winner_at_an_edge_extends_the_range_for_all_who_share_it_alike():
    goal = {"A": {"radius": 30.0, "window": 60.0}, "B": {"radius": 0.7}, "C": {"window": 50.0}}
    spaces = {**TWO, "C": Space(("window",))}
    result = found(goal, spaces, RANGES, evaluations=12)
    points = result.search.drop_duplicates(["policy", "point"])
    assert points.groupby("policy").size().nunique() == 1  # the budgets stay equal
    assert result.winners["evaluations"].nunique() == 1
    further = points[points["origin"].str.startswith("extension")]
    for name in ("A", "B"):  # B's own winner was inside, and yet it looks there, too
        assert further.loc[further["policy"] == name, "radius"].between(10, 100.1).any()
        assert further.loc[further["policy"] == name, "radius"].max() > 30
    assert further.loc[further["policy"] == "C", "window"].between(1, 1000).all()
    assert not result.winners.set_index("policy").loc["A", "edge"]
    assert abs(math.log(result.policies["A"]["radius"] / 30)) < 1
    assert "radius was extended to 0.1–" in result.note


def test_extension_goes_on_until_the_optimum_is_inside_or_stops_and_says_so():
    far = found({"radius": 900.0}, ONE, RANGES, evaluations=8, extensions=4)
    assert abs(math.log(far.policies["A"]["radius"] / 900)) < 1
    assert far.winners.loc[0, "edge"] == ""
    short = found({"radius": 1e9}, ONE, RANGES, evaluations=8, extensions=2)
    assert short.winners.loc[0, "edge"] == (
        "at the high end of radius, and nothing beyond was tried"
    )
    assert short.winners.loc[0, "evaluations"] == 8 + 2 * 4


def test_an_end_that_means_something_is_reported_and_not_extended():
    ranges = {"radius": Range(0.1, 10.0, edges={"high": "weights all 1"})}
    result = found({"radius": 1e4}, ONE, ranges, evaluations=8)
    assert result.policies["A"]["radius"] == 10
    assert result.winners.loc[0, "evaluations"] == 8
    assert "A: at the high end of radius, weights all 1." in result.note


def test_counts_stop_at_one_and_what_is_not_negative_at_zero():
    counts = {"radius": Range(2, 50, integer=True)}
    result = found({"radius": 0.1}, ONE, counts, evaluations=6)
    assert result.policies["A"] == {"radius": 1}
    assert isinstance(result.policies["A"]["radius"], int)
    assert "1 is the least" in result.winners.loc[0, "edge"]
    assert Range(1.0, 5.0, log=False).beyond("low") == Range(0, 1.0, log=False)
    assert Range(0.0, 5.0, log=False).beyond("low") is None
    assert Range(-1.0, 1.0, log=False).beyond("low") == Range(-2.0, -1.0, log=False)


def robust_bowl(candidates, optimum):
    """Score like `bowl`; a weight of infinity is the baseline, the others are often worse."""
    rows = []
    for key, (_, parameters) in candidates.items():
        weight = parameters.get("weight", math.inf)
        score = math.log(parameters["beta"] / optimum) ** 2 + 3 / weight
        rows += [{"policy": key, "trial": k, "regret": 2 + score + k} for k in range(TRIALS)]
    return pd.DataFrame(rows)


BASE = Space({"beta": "radius"})
ROBUST = Space({"beta": "radius", "weight": "weight"}, contains={"base": {"weight": math.inf}})
NESTED = {"robust": ROBUST, "base": BASE}
WEIGHTS = {"radius": Range(0.1, 10.0), "weight": Range(0.1, 10.0)}


@pytest.mark.parametrize("optimum", [0.1, 0.37, 1.0, 2.2, 55.0])
@pytest.mark.parametrize("n", [4, 7, 12])
def test_a_method_that_contains_another_never_loses_to_it_on_tuning_data(optimum, n):
    stages = {"": partial(robust_bowl, optimum=optimum)}
    result = search(stages, ["robust", "base"], NESTED, WEIGHTS, evaluations=n)
    score = result.winners.set_index("policy")
    assert score.loc["robust", "score"] <= score.loc["base", "score"]
    assert score["evaluations"].nunique() == 1
    if score.loc["robust", "score"] == score.loc["base", "score"]:
        assert result.policies["robust"] == {**result.policies["base"], "weight": math.inf}
        assert score.loc["robust", "edge"] == "the same as base"
        assert "weight ∞" in score.loc["robust", "constants"]


def test_a_method_that_is_not_what_it_says_it_contains_is_refused():
    spaces = {**NESTED, "robust": ROBUST._replace(contains={"base": {"weight": 5.0}})}
    stages = {"": partial(robust_bowl, optimum=1.0)}
    with pytest.raises(BookError, match=r"robust with radius .*, weight 5 .* does not contain"):
        search(stages, ["robust", "base"], spaces, WEIGHTS, evaluations=6)
    spaces = {**NESTED, "robust": ROBUST._replace(contains={"base": lambda c: {"radius": 1.0}})}
    with pytest.raises(BookError, match="as base it is given radius"):
        search(stages, ["robust", "base"], spaces, WEIGHTS, evaluations=6)


def test_a_contained_method_that_is_not_compared_is_left_out():
    stages = {"": partial(robust_bowl, optimum=1.0)}
    result = search(stages, ["robust"], NESTED, WEIGHTS, evaluations=6, extensions=0)
    assert set(result.search["origin"]) == {"search"}


def test_chains_of_methods_and_methods_without_constants():
    spaces = {
        "greedy": Space(),
        "base": Space({"beta": "radius"}, contains={"greedy": {"radius": 0.01}}),
        "robust": ROBUST,
    }

    def evaluate(candidates):
        full = {k: (n, {"beta": 0.01, **p}) for k, (n, p) in candidates.items()}
        return robust_bowl(full, optimum=0.01)

    result = search({"": evaluate}, list(spaces), spaces, WEIGHTS, evaluations=6, extensions=0)
    assert result.policies["robust"] == {"beta": 0.01, "weight": math.inf}
    assert list(result.winners["evaluations"]) == [1, 6, 6]
    assert list(result.winners["edge"]) == ["", "the same as greedy", "the same as greedy"]


def shifting(candidates, horizon, seen):
    """Score by the distance from an optimum that moves with the horizon."""
    seen[horizon] = len(candidates)
    return bowl(candidates, {"radius": 0.3 * horizon**0.25, "window": 30.0})


def test_a_third_of_the_points_goes_on_and_the_longest_horizon_decides():
    seen = {}
    stages = {f"T = {T}": partial(shifting, horizon=T, seen=seen) for T in (1, 16, 256)}
    result = search(stages, ["A"], TWO, RANGES, evaluations=27, extensions=0)
    assert seen == {1: 27, 16: 9, 256: 3}
    last = result.search[result.search["stage"] == "T = 256"]
    best = last.loc[last["regret"].idxmin()]
    assert result.policies["A"] == {"radius": best["radius"], "window": best["window"]}
    assert result.winners.loc[0, "horizon"].startswith("the winner at T = 1 was another, radius")
    still = {f"T = {T}": partial(bowl, optimum={"radius": 1.0}) for T in (1, 16)}
    same = search(still, ["A"], ONE, RANGES, evaluations=9)
    assert same.winners.loc[0, "horizon"] == "the winner at T = 1, too"
    assert same.winners.loc[0, "evaluations"] == 12


def test_the_robust_method_does_not_lose_at_the_longest_horizon_either():
    stages = {f"T = {T}": partial(robust_bowl, optimum=0.2 * T) for T in (1, 5, 25)}
    result = search(stages, ["robust", "base"], NESTED, WEIGHTS, evaluations=12)
    score = result.winners.set_index("policy")
    assert score.loc["robust", "score"] <= score.loc["base", "score"]
    assert score["evaluations"].nunique() == 1


def test_more_is_better_where_that_is_said_and_what_is_not_a_number_never_wins():
    def evaluate(candidates):
        table = bowl(candidates, {"radius": 1.0}).rename(columns={"regret": "auc"})
        table.loc[table["policy"] == "A#0", "auc"] = math.nan
        return table

    for maximise, best in ((False, 1.0), (True, 10.0)):
        result = search(
            {"": evaluate},
            ["A"],
            ONE,
            RANGES,
            evaluations=5,
            objective="auc",
            maximise=maximise,
            extensions=0,
        )
        assert result.policies["A"]["radius"] == best
    with pytest.raises(BookError, match="called 'acu'; did you mean auc"):
        search({"": evaluate}, ["A"], ONE, RANGES, evaluations=5, objective="acu")
    nothing = {"": lambda c: bowl(c, {"radius": 1.0}).assign(regret=math.nan)}
    with pytest.raises(BookError, match="No point of A has a finite regret"):
        search(nothing, ["A"], ONE, RANGES, evaluations=5)


def test_parameters_may_share_a_range_or_follow_from_the_constants():
    seen = []
    spaces = {
        "twice": Space({"alpha": "radius", "tilde_alpha": "radius"}),
        "scaled": Space(("radius", "window"), lambda c: {"beta": c["radius"] / c["window"]}),
    }
    optimum = {"twice": {"alpha": 1.0, "tilde_alpha": 1.0}, "scaled": {"beta": 0.01}}
    stages = {"": partial(bowl, optimum=optimum, seen=seen)}
    result = search(stages, list(spaces), spaces, RANGES, evaluations=6)
    for name, parameters in seen:
        assert set(parameters) == ({"alpha", "tilde_alpha"} if name == "twice" else {"beta"})
    assert all(p["alpha"] == p["tilde_alpha"] for name, p in seen if name == "twice")
    row = result.search[result.search["policy"] == "scaled"].sort_values("regret").iloc[0]
    assert result.policies["scaled"]["beta"] == row["radius"] / row["window"]


def test_the_table_shows_constants_score_interval_and_what_the_winner_does():
    ranges = {"radius": Range(0.1, 10.0, edges={"high": "a < b & <script>"})}
    spaces = {"A<1>": Space(("radius",))}
    goal = {"A<1>": {"radius": 1e3}}
    result = found(goal, spaces, ranges, evaluations=5, does=["clusters"])
    page = BeautifulSoup(result._repr_html_(), "html.parser")
    assert page.script is None
    assert [cell.text for cell in page.select("thead th")] == ["", "constants", "regret", "does"]
    assert [cell.text for cell in page.select("tbody th")] == ["A<1>"]
    constants, score, does = (cell.text for cell in page.select("tbody td"))
    mean = 1 + math.log(100) ** 2 + 0.01
    half = 4.302652729911275 * 0.01 / math.sqrt(3)  # Student's t with two degrees of freedom
    assert constants == "radius 10"
    assert does == "clusters 7"
    assert score == f"{mean:.4g} [{mean - half:.4g}, {mean + half:.4g}]"
    assert "tried at 5 points, 3 trials each" in page.p.text
    assert "a < b & <script>" in page.p.text
    assert "clusters 7" in repr(result)
    with pytest.raises(BookError, match="watched as 'cluster'; did you mean clusters"):
        found(goal, spaces, ranges, evaluations=5, does=["cluster"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": 1}, "luck"),
        ({"evaluations": 1}, "needs at least 2 evaluations"),
        ({"evaluations": None}, "needs at least 2 evaluations"),
        ({"spaces": None}, "needs spaces and ranges"),
        ({"spaces": {"a": Space(("radius",))}}, "No space is given for 'A'"),
        ({"spaces": {"A": Space(("radus",))}}, "range 'radus', which is not given; did you mean"),
        ({"spaces": {"A": Space(contains={"B": {}})}}, "method 'B', which is not given"),
        ({"spaces": {"A": Space(contains={"A": {}})}}, "contain each other: A"),
        ({"ranges": {"radius": Range(0.0, 1.0)}}, "radius must rise, and from above 0"),
        ({"ranges": {"radius": Range(2.0, 1.0)}}, "radius must rise"),
        ({"ranges": {"radius": Range(1.0, 2.0, edges={"top": "x"})}}, "called low and high"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_anything_runs(changes, message):
    def never(candidates):
        raise AssertionError("evaluated")

    call = {"spaces": ONE, "ranges": RANGES, "evaluations": 4, **changes}
    with pytest.raises(BookError, match=message):
        search({"": never}, ["A"], **call)


class Line(NamedTuple):
    """Nine arms on a line; the best one lies at `best`."""

    mean: np.ndarray
    noise: float


class Aimed(NamedTuple):
    """A policy that plays the arm nearest to its constant and counts its rounds."""

    arm: int
    seen: np.ndarray  # rounds, sum of rewards


def places():
    return np.geomspace(0.1, 10, 9)


def make_line(rng, best=1.0, noise=0.1):
    return Line(-np.abs(np.log(places() / best)), noise)


@jit
def draw_line(problem, t, rng):
    return 0, np.arange(9), np.eye(9)


@jit
def expected_line(problem, t, user, items, arms):
    return problem.mean.copy()


@jit
def feedback_line(problem, t, user, item, mean, rng):
    return mean + problem.noise * rng.standard_normal()


def init_aimed(problem, T, rng, place=1.0, offset=1.0):
    return Aimed(int(np.abs(np.log(places() / (place * offset))).argmin()), np.zeros(2))


@jit
def choose_aimed(state, t, user, arms, items):
    return state.arm


@jit
def learn_aimed(state, t, user, x, reward, item):
    state.seen[0] += 1
    state.seen[1] += reward


def watch_aimed(state, problem):
    return {"rounds": state.seen[0], "average": state.seen[1] / state.seen[0], "name": "aimed"}


LINE = Environment(make_line, draw_line, expected_line, feedback_line)
AIMED = Policy(init_aimed, choose_aimed, learn_aimed, watch_aimed)


def test_policies_are_tuned_with_their_pinned_parameters_on_random_numbers_of_their_own():
    policies = {"aimed": AIMED, "squint": with_constants(AIMED, offset=10.0)}
    spaces = dict.fromkeys(policies, Space(("place",)))
    setting = [{"best": 3.0}]
    result = tune(
        LINE,
        policies,
        spaces,
        {"place": Range(0.1, 10.0)},
        evaluations=9,
        T=50,
        seed=5,
        settings=setting,
        does=["rounds", "average"],
    )
    nearest = places()[np.abs(np.log(places() / 3)).argmin()]
    assert result.policies["aimed"].parameters == {"place": float(f"{nearest:.4g}")}
    assert result.policies["squint"].parameters["offset"] == 10
    assert result.policies["squint"].parameters["place"] == pytest.approx(nearest / 10, rel=1e-3)
    assert set(result.search["trial"]) == {0, 1, 2}
    assert result.winners.loc[0, "does"].startswith("rounds 50, average -")
    arguments = {"T": 50, "trials": 3, "seed": 5, "settings": setting, "checkpoints": 1}
    best = {"aimed": result.policies["aimed"]}
    tuning = simulate(LINE, best, stream="tune", **arguments)["average"]
    reported = simulate(LINE, best, **arguments)["average"]
    won = result.search[result.search["policy"] == "aimed"]
    won = won[won["place"] == result.policies["aimed"].parameters["place"]]
    np.testing.assert_array_equal(won["average"], tuning)
    assert not np.isclose(tuning.to_numpy()[:, None], reported.to_numpy()).any()


def test_settings_count_by_their_mean_and_may_depend_on_the_horizon():
    spaces, ranges = {"aimed": Space(("place",))}, {"place": Range(0.1, 10.0)}
    both = tune(
        LINE,
        {"aimed": AIMED},
        spaces,
        ranges,
        evaluations=9,
        T=20,
        seed=0,
        extensions=0,
        settings=[{"best": 0.1}, {"best": 0.1}, {"best": 10.0}],
    )
    assert both.policies["aimed"].parameters["place"] == 0.1  # two of three settings want it
    moving = tune(
        LINE,
        {"aimed": AIMED},
        spaces,
        ranges,
        evaluations=9,
        T=40,
        shorter=[4],
        seed=0,
        settings=lambda T: [{"best": 1.0 if T == 4 else 1.7}],
    )
    assert moving.policies["aimed"].parameters["place"] == pytest.approx(1.778, rel=1e-3)
    assert moving.winners.loc[0, "horizon"].startswith("the winner at T = 4 was another, place 1 ")
    with pytest.raises(BookError, match="rise up to T = 40"):
        tune(LINE, {"aimed": AIMED}, spaces, ranges, evaluations=4, T=40, shorter=[50], seed=0)


def test_explicit_points_need_the_same_budget_and_say_where_the_winner_ended():
    grids = {"a": [{"place": 0.1}, {"place": 3.0}, {"place": 1.0}], "b": [{"place": 0.1}] * 3}
    policies = {"a": AIMED, "b": AIMED}
    result = tune(LINE, policies, points=grids, T=10, trials=2, seed=0, settings=[{"best": 9.0}])
    assert result.policies["a"].parameters == {"place": 3.0}
    assert result.policies["b"].parameters == {"place": 0.1}
    assert len(result.search) == 12
    best = result.search.groupby(["policy", "point"])["regret"].mean()["a"].idxmin()
    assert grids["a"][best] == {"place": 3.0}
    assert list(result.winners["edge"]) == ["the highest place that was tried", ""]
    with pytest.raises(BookError, match="same tuning budget"):
        tune(LINE, policies, points={**grids, "b": [{}]}, T=10, trials=2, seed=0)
    with pytest.raises(BookError, match="same tuning budget"):
        tune(LINE, policies, points={"a": grids["a"]}, T=10, trials=2, seed=0)


def measured_gap(rng, learner, knob, base):
    steps = np.arange(1, 4)
    noise = 1e-3 * rng.standard_normal()
    goal = {"first": 0.5, "second": 5.0}[learner]
    return {"step": steps, "gap": base + noise + math.log(knob / goal) ** 2 / steps}


def test_a_function_is_tuned_by_the_last_row_of_every_trial():
    methods = {name: {"learner": name, "base": 2.0} for name in ("first", "second")}
    spaces = dict.fromkeys(methods, Space({"knob": "multiplier"}))
    result = tune_function(
        measured_gap,
        methods,
        spaces,
        {"multiplier": Range(0.05, 50.0)},
        evaluations=7,
        objective="gap",
        seed=1,
    )
    assert result.policies["first"] == {"learner": "first", "base": 2.0, "knob": 0.5}
    assert result.policies["second"] == {"learner": "second", "base": 2.0, "knob": 5.0}
    assert set(result.search["step"]) == {3}
    assert len(result.search) == 2 * 7 * 3
    at = result.search[result.search["multiplier"] == 0.05]
    expected = 2 + math.log(10) ** 2 / 3
    np.testing.assert_allclose(at.loc[at["policy"] == "first", "gap"], expected, atol=0.01)
