"""How duels are judged: who never clustered decides nothing, and a bound counts below chance."""

import sys

import numpy as np
import pandas as pd
import pytest

from lib import chapters, claims, measure

EXPERIMENTS = chapters.load("dueling/experiments")
THEORY = chapters.load("dueling/theory")
SIZES = {"users": 200, "d": 20, "arms": 20}


def runs(**methods):
    """Return a table of two trials with regret and components of each method, half-way and last."""
    rows = [
        {"policy": name, "trial": trial, "t": t, "ari": 0.5}
        | {"regret": regret * t * (1 + trial / 100), "clusters": clusters[-k]}
        for name, (regret, *clusters) in methods.items()
        for trial in range(2)
        for t, k in ((500_000, len(clusters)), (1_000_000, 1))
    ]
    return pd.DataFrame(rows)


def judged(monkeypatch, coldb, shared=(0.9, 1), blind=(1.1, 5)):
    """Return the verdict on COLDB beside one bandit per user with regret 1 a round."""
    beside = {"LDB-Ind": (1.0, 200), "Shared model": shared, "Random clusters": (1.1, 5)}
    table = runs(**{"COLDB": coldb, "COLDB (blind)": blind, **beside})
    main = sys.modules["__main__"]
    for name, size in SIZES.items():
        monkeypatch.setattr(main, name, size, raising=False)
    given = "duel-coldb-syn-m5", "COLDB", "LDB-Ind", "Shared model", table, 200
    return EXPERIMENTS.judge_gain(*given, "fig-duel-linear").judgement


@pytest.mark.parametrize("coldb", [(0.5, 1), (0.9, 1), (1.0, 200), (0.9, 200)])
def test_a_method_that_never_clustered_decides_nothing(monkeypatch, coldb):
    found = judged(monkeypatch, coldb)
    assert found.verdict == "vacuous at this scale"
    assert "never clustered" in found.note and found.facts["clustered"] == 0


@pytest.mark.parametrize(
    ("coldb", "shared", "verdict"),
    [
        ((0.5, 5), (0.9, 1), "reproduced"),
        ((0.85, 5), (0.84, 1), "vacuous at this scale"),  # the shared model is as good
        ((0.85, 5), (0.95, 1), "direction only"),  # it is below 1, too, but clearly behind
        ((0.85, 5), (1.2, 1), "direction only"),
        ((0.5, 5), (0.45, 1), "vacuous at this scale"),
        ((0.5, 5), (0.6, 1), "direction only"),  # both have a fifth less: the order is left
        ((1.2, 175, 200), (0.9, 1), "not reproduced"),  # shattered on the way: that is a failure
        ((0.85, 175, 200), (1.2, 1), "direction only"),
    ],
)
def test_clusters_must_beat_one_model_for_all_and_one_for_each(monkeypatch, coldb, shared, verdict):
    found = judged(monkeypatch, coldb, shared)
    assert found.verdict == verdict
    assert f"{coldb[-1]} components" in found.note


@pytest.mark.parametrize(
    ("coldb", "blind", "verdict"),
    [
        ((0.85, 175, 200), (0.85, 175, 200), "vacuous at this scale"),
        ((0.85, 175, 200), (0.8, 175, 200), "vacuous at this scale"),
        ((0.85, 175, 200), (0.9, 175, 200), "direction only"),
        ((0.5, 5), (0.86, 175, 200), "reproduced"),
        ((0.85, 175, 200), (1.02, 175, 200), "direction only"),
    ],
)
def test_what_a_blind_twin_gains_is_not_credited_to_clusters(monkeypatch, coldb, blind, verdict):
    found = judged(monkeypatch, coldb, (1.2, 1), blind)
    assert found.verdict == verdict
    assert f"COLDB (blind) {blind[0]:.3f}" in found.note


def test_a_bound_counts_only_where_random_pairs_exceed_it():
    t = np.array([10, 100, 1000])
    table = pd.DataFrame({"t": t, "bound": 50 * np.sqrt(t), "regret": 4 * np.sqrt(t)})
    idle = pd.DataFrame({"t": t, "regret": 2.0 * t})
    ratio, random = THEORY.beside_bound(table, idle, 0)
    assert ratio.value == pytest.approx(0.08)
    assert random.value == pytest.approx(2000 / (50 * np.sqrt(1000)))
    assert verdict_of(ratio, random) == "reproduced"
    early = THEORY.beside_bound(table[:2], idle[:2], 0)
    assert early[1].value < 1 and verdict_of(*early) == "vacuous at this scale"
    broken = THEORY.beside_bound(table.assign(regret=2.0 * t), idle, 0)
    assert verdict_of(*broken) == "refuted"


def verdict_of(ratio, random):
    claim = claims.find("duel-thm-linear")
    return claims.decide(claim, claims.question_of(claim, ""), ratio, {}, None, random)


def test_a_lemma_that_an_idle_estimate_satisfies_says_nothing():
    claim, all_runs = claims.find("duel-theta-concentration"), measure.share([True] * 200)
    few = measure.share([True] * 20 + [False] * 180)
    given = claim, claims.question_of(claim, ""), all_runs, {"delta": 0.05}, None
    assert claims.decide(*given, all_runs) == "vacuous at this scale"
    assert claims.decide(*given, few) == "reproduced"


def test_a_long_search_tries_thresholds_at_the_widths_that_won():
    setting = {"users": 8, "d": 4, "items": 30, "arms": 5, "m": 2}
    names = ("COLDB", "LDB-Ind", "Shared model")
    methods = {name: EXPERIMENTS.LINEAR[name] for name in names}
    about = (methods, EXPERIMENTS.SPACES, setting, 200, 1, "search", 6)
    once = EXPERIMENTS.search(*about).set_index("policy")
    twice = EXPERIMENTS.search(*about, long=200).set_index("policy")
    assert list(twice.index) == list(once.index) == list(names)
    assert set(once["evaluations"]) == {6}
    assert set(twice["evaluations"]) == {18 + 6 + 9}  # a tenth, all rounds, and the second round
    assert (twice["score"]["COLDB"] <= twice["score"][["LDB-Ind", "Shared model"]]).all()
    assert "thresholds at the widths that won" in twice["note"].iloc[0]


def test_the_second_round_pins_the_width_of_whoever_has_a_threshold():
    found = pd.DataFrame({"policy": ["COLDB", "LDB-Ind"], "width": [2.0, 8.0]})
    methods = {name: EXPERIMENTS.LINEAR[name] for name in found["policy"]}
    spaces = {name: EXPERIMENTS.SPACES[name] for name in methods}
    policies, spaces, ranges = EXPERIMENTS.closer(methods, spaces, found)
    assert policies["COLDB"].parameters["width"] == 2.0
    assert policies["LDB-Ind"] == methods["LDB-Ind"]
    assert spaces["COLDB"].names() == ("rounds",)
    assert (ranges["width"].low, ranges["width"].high) == (2.0 / 1.5, 12.0)
    assert ranges["rounds"] is EXPERIMENTS.RANGES["rounds"]


def test_whoever_contains_a_better_method_is_that_method():
    row = {"low": 0.0, "high": 9.0, "does": "", "edge": "", "evaluations": 3, "width": 1.0}
    first = pd.DataFrame([{"policy": "COLDB", "score": 5.0, "alpha": 2.0, **row},
                          {"policy": "LDB-Ind", "score": 6.0, **row}])  # fmt: skip
    second = first.assign(score=[7.0, 4.0], width=2.0)
    spaces = {"COLDB": EXPERIMENTS.graph_space("rounds", "LDB-Ind", "Shared model"),
              "LDB-Ind": EXPERIMENTS.WIDTH}  # fmt: skip
    for rounds, score, alpha, edge in (([first], 5.0, 2.0, ""), ([first, second], 4.0, 0.0,
                                       "the same as LDB-Ind")):  # fmt: skip
        best = EXPERIMENTS.best_of(rounds, spaces, spaces).set_index("policy")
        found = best.loc["COLDB"]
        assert (found["score"], found["alpha"], found["edge"]) == (score, alpha, edge)
        assert set(best["evaluations"]) == {3 * len(rounds)}
