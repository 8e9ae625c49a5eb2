"""The bench: it runs, bare kernels decide as their algorithms, and bad calls are named."""

import hashlib
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ci import (
    algorithms,
    bare,
    bench,
    benchlibraries,
    benchpage,
    benchplan,
    benchrecord,
    cli,
    contents,
    growth,
    implicit,
    libraries,
    replay,
    shards,
)
from ci.game import Game
from ci.verify import verify
from lib import chapters, journal, records
from lib.errors import BookError
from lib.files import read_yaml
from lib.paths import CODE, project, project_at
from lib.records import Origin, Record, Recorded
from lib.rehearsal import Planned
from lib.tune import with_constants

ORIGIN = Origin("2026-01-02T03:04:05", "thesis", {"repeats": 2}, None, "0" * 40, False, {}, "x", {})


def small_game(problem, policy, T=200):
    where = algorithms.PROBLEMS[problem]
    environment = getattr(chapters.load(where.page), where.environment)
    return Game(environment, policy, algorithms.setting_of(where, T, small=True), T)


@pytest.mark.parametrize(
    "words", [["LinUBC"], ["--repeats", "0"], ["LinUCB", "--record"], ["--only", "crowd"]]
)
def test_a_bad_call_is_one_sentence(words, capsys):
    assert cli.main(["bench", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("regretbook: ") and said.count("\n") == 1
    assert words != ["LinUBC"] or "did you mean LinUCB" in said
    assert words[-1] != "crowd" or "did you mean crowds" in said


def test_every_algorithm_of_the_list_is_one_of_the_book():
    for algorithm in algorithms.ALGORITHMS.values():
        policy = algorithms.policy_of(algorithm)
        assert set(algorithm.constants.items()) <= set(policy.parameters.items())
        where = algorithms.PROBLEMS[algorithm.problem]
        assert hasattr(chapters.load(where.page), where.environment)


LINEAR = chapters.load("linear-bandits")
BONUS = chapters.load("misspecified-users/bonus")
THOMPSON = chapters.load("linear-bandits/experiments").THOMPSON
SAME = {
    "LinUCB": (
        "arms",
        with_constants(LINEAR.LINUCB, beta=0.5),
        with_constants(bare.RIDGE, beta=0.5),
    ),
    "Thompson sampling": ("arms", with_constants(THOMPSON, v=0.3), bare.SAMPLE),
    "a cluster method that knows the clusters": (
        "clusters",
        with_constants(LINEAR.ORACLE, beta=0.5),
        with_constants(bare.GROUPS, beta=0.5, compared=True),
    ),
    "a robust one": (
        "deviations",
        with_constants(BONUS.RLINUCB, beta=0.1, sharing="clusters"),
        with_constants(bare.ROBUST_GROUPS, beta=0.1, eps=0.2, compared=True),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_a_bare_kernel_decides_as_its_algorithm(name):
    problem, *policies = SAME[name]
    ours, kernel, idle = (small_game(problem, p) for p in (*policies, bare.IDLE))
    for game in (ours, kernel, idle):
        game.play(150)
    assert ours.total == pytest.approx(kernel.total, rel=1e-12)
    assert ours.total[0] < idle.total[0]


def test_the_command_prints_a_line_for_each_algorithm(capsys):
    assert cli.main(["bench", "LinUCB", "--small", "--repeats", "2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ["algorithm", "LinUCB"]


def test_rounds_are_measured_of_everybody_in_every_repeat():
    rows, about = bench.measure("LinUCB", algorithms.ALGORITHMS["LinUCB"], 3, small=True)
    assert rows.groupby("who")["repeat"].nunique().to_dict() == dict.fromkeys(
        ("alone", "bare", "idle", "ours", "together"), 3
    )
    assert (rows["microseconds"] > 0).all() and about["megabytes"] > 0


def test_what_fails_is_named_and_the_rest_is_measured(monkeypatch, capsys):
    broken = algorithms.ALGORITHMS["LinUCB"]._replace(constants={"no_such_constant": 1.0})
    monkeypatch.setitem(algorithms.ALGORITHMS, "OFUL", broken)
    monkeypatch.setattr(growth, "cost", lambda small: 1 / 0)
    words = ["LinUCB", "OFUL", "--small", "--repeats", "1", "--only", "rounds,growth"]
    assert cli.main(["bench", *words]) == 1
    shown, said = capsys.readouterr()
    assert "LinUCB" in shown and "OFUL" not in shown
    assert "left out: OFUL (" in said and "no_such_constant" in said
    assert "left out: growth (ZeroDivisionError" in said


def test_ratios_take_the_environment_off_both():
    times = {"ours": [5.0, 8.0, 5.0], "bare": [3.0, 3.0, 4.0], "idle": [1.0, 1.0, 1.0]}
    table = pd.DataFrame(
        [("x", who, k, 10, t) for who, each in times.items() for k, t in enumerate(each)],
        columns=["algorithm", "who", "repeat", "rounds", "microseconds"],
    )
    assert bench.ratios(table, bench.to_bare)["x"] == pytest.approx((15 / 7, 4 / 3, 3.5))
    assert bench.ratios(table[table["who"] != "bare"], bench.to_bare) == {}


def test_one_disturbed_repeat_does_not_decide_what_cores_give():
    walls = {"alone": [4.0, 4.0, 4.0], "together": [2.0, 40.0, 2.0]}
    table = pd.DataFrame(
        [("x", who, k, 10, t) for who, each in walls.items() for k, t in enumerate(each)],
        columns=["algorithm", "who", "repeat", "rounds", "microseconds"],
    )
    assert bench.speedups(table)["x"] == pytest.approx((2.0, 0.1, 2.0))


class Plain:
    """LinUCB with a regression for every arm, in NumPy."""

    def __init__(self, data):
        arms, d = data["theta"].shape
        self.M, self.b = np.tile(np.eye(d), (arms, 1, 1)), np.zeros((arms, d))

    def choose(self, x):
        inverse = np.linalg.inv(self.M)
        theta = np.einsum("kij,kj->ki", inverse, self.b)
        forms = np.einsum("i,kij,j->k", x, inverse, x)
        return int(np.argmax((theta @ x + libraries.BETA * np.sqrt(forms)).round(9)))

    def learn(self, x, arm, reward):
        self.M[arm] += np.outer(x, x)
        self.b[arm] += reward * x


def test_a_library_plays_the_rounds_that_ours_plays():
    setting = {"d": 3, "arms": 4, "noise": 0.1, "T": 120}
    policy = with_constants(replay.DISJOINT, beta=libraries.BETA)
    ours = Game(replay.CONTEXTS, policy, setting, 120)
    ours.play(100 - (ours.t - 1))
    data = ours.problem._asdict()
    _, regret = libraries.play(Plain(data), data, 1, 101)
    assert regret == pytest.approx(ours.total[0])


def test_a_library_that_cannot_be_imported_is_named_and_left_out():
    table, absent = benchlibraries.compare(project(), 1, True, Path(sys.executable))
    assert set(absent) == set(libraries.LIBRARIES)
    assert all("No module named" in why for why in absent.values())
    assert set(table["library"]) == {benchlibraries.OURS}
    _, absent = benchlibraries.compare(project(), 1, True, Path("/nowhere"))
    assert "make bench" in absent["mabwiser"]


def recorded(project, rows=2):
    rounds = pd.DataFrame(
        [
            ("LinUCB", who, k, 10, t)
            for k in range(rows)
            for who, t in (("ours", 5.0), ("bare", 3.0), ("idle", 1.0))
        ]
        + [("LinUCB", who, k, 10, 1.0) for k in range(rows) for who in ("alone", "together")],
        columns=["algorithm", "who", "repeat", "rounds", "microseconds"],
    )
    about = pd.DataFrame([{"algorithm": "LinUCB", "page": "linear-bandits", "megabytes": 0.02}])
    tables = {"rounds": rounds, "about": about}
    return benchrecord.write_tables(project, tables, ORIGIN, 12.3)


def test_what_is_recorded_is_read_and_verified(sandbox, capsys):
    paths = recorded(sandbox.project)
    noted, table = benchrecord.read(sandbox.project, "rounds")
    assert noted.origin == ORIGIN and len(table) == 10
    assert verify(sandbox.project, [], None, None, "threads") == 0
    paths[0].write_text(paths[0].read_text().replace("5", "4"))
    assert verify(sandbox.project, [], None, None, "threads") == 1
    assert "bench/rounds.csv is not the table" in capsys.readouterr().err


def test_the_page_shows_what_is_recorded(sandbox):
    assert "`regretbook bench --only rounds --record`" in benchpage.part(
        sandbox.project, {}, "rounds"
    )
    recorded(sandbox.project)
    shown = benchpage.part(sandbox.project, {}, "rounds")
    assert "2.00 (2.00–2.00)" in shown and 'id="fig-bench-kernels"' in shown
    with pytest.raises(BookError, match="did you mean rounds"):
        benchpage.part(sandbox.project, {}, "round")
    assert "is recorded of clustering-of-bandits, linear-bandits" in benchpage.hours(
        sandbox.project
    )


def test_hours_tell_what_is_printed_from_what_is_ours_and_from_searches(sandbox):
    tables = {"runs": "policy,trial,regret\n", "search": "policy,point,regret\n"}
    tables["twins"] = tables["runs"]
    (sandbox.project.book / "printed.yml").write_text("linear-bandits: [runs, search]\n")
    folder = records.folder(sandbox.project, "linear-bandits", "thesis")
    folder.mkdir(parents=True)
    noted = {}
    for (name, text), seconds in zip(tables.items(), (7200.0, 10_800.0, 3600.0), strict=True):
        (folder / f"{name}.csv").write_text(text)
        noted[name] = Recorded(hashlib.sha256(text.encode()).hexdigest(), name, ORIGIN, seconds)
    record = Record("linear-bandits", "linear-bandits", noted, [], ORIGIN)
    records.write(sandbox.project, "thesis", record)
    shown = benchpage.hours(sandbox.project)
    assert "experiments took 2.0 h, our own 60 min and searches 3.0 h" in shown


def test_what_is_said_to_rebuild_print_is_recorded_and_no_search():
    here = project_at(CODE)
    kept = {(r.chapter, name): path.with_name(f"{name}.csv")
            for path, r in records.every(here).items() for name in r.tables}  # fmt: skip
    for chapter, names in read_yaml(here.book / "printed.yml", dict).items():
        for name in names:
            assert not benchpage._is_search(kept[chapter, name]), name


def test_club_without_a_graph_decides_as_club_with_the_complete_one():
    clubs = chapters.load("clustering-of-bandits")
    constants = {"beta": 0.5, "alpha": 0.5}
    ours, club = (
        small_game("clusters", with_constants(policy, **constants), 1500)
        for policy in (implicit.IMPLICIT_CLUB, clubs.CLUB)
    )
    seen = set()
    for _ in range(30):
        for game in (ours, club):
            game.play(40)
        np.testing.assert_array_equal(ours.state.cluster, club.state.cluster)
        np.testing.assert_array_equal(ours.total, club.total)
        seen.add(len(set(club.state.cluster.tolist())))
    assert len(seen) > 2  # components did split on the way


def test_the_table_of_deleted_edges_forgets_those_between_components():
    where = algorithms.PROBLEMS["clusters"]
    problem = chapters.load(where.page).make_clustered(np.random.default_rng(0), **where.small)
    state = implicit.init_implicit(problem, 1, None, room=5)
    between = [(i, j) for i in range(4) for j in range(6, 10)]  # sixteen, half of the table
    for i, j in between:
        implicit.delete(state, i, j)
    state.cluster[6:] = 1
    implicit.delete(state, 4, 5)
    assert state.deleted[state.deleted != implicit.FREE].tolist() == [4 * 12 + 5]
    assert implicit.is_deleted(state, 5, 4) and not implicit.is_deleted(state, 0, 6)
    assert state.lost.sum() == 2 * state.entries[0] == 2
    state.cluster[:] = 0
    with pytest.raises(MemoryError, match="more room"):
        for i, j in between:
            implicit.delete(state, i, j)


def test_shards_add_up_to_one_worker_that_saw_everything():
    ask = shards.here(2, shards.SMALL)
    found = shards.play(ask, 2, shards.SMALL, 5, 100)
    assert found["rounds"] == 100
    # every round adds one arm of length one to one cluster
    assert np.trace(found["M"].sum(axis=0)) == pytest.approx(100)
    one, many = (shards.play(shards.here(4, shards.SMALL), 4, shards.SMALL, b, 4000)
                 for b in (1, 1000))  # fmt: skip
    assert one["regret"] < many["regret"]


def test_shards_on_worker_processes_do_what_they_do_here():
    distributed = pytest.importorskip("distributed")
    with shards._cluster(2) as cluster, distributed.Client(cluster) as client:
        ask = shards.on_workers(client, 2, shards.SMALL)
        there = shards.play(ask, 2, shards.SMALL, 10, 100)
    here = shards.play(shards.here(2, shards.SMALL), 2, shards.SMALL, 10, 100)
    np.testing.assert_array_equal(here["M"], there["M"])
    assert here["regret"] == there["regret"]


def test_costs_grow_along_every_axis_that_is_named():
    table = growth.cost(small=True)
    assert set(table["axis"]) == {"t", *growth.AXES}
    assert (table["microseconds"] > 0).all() and (table["megabytes"] > 0).all()


def test_a_crowd_that_comes_often_is_looked_at_on_the_way():
    table = growth.served(small=True)
    assert (table.groupby("algorithm").size() == growth.LOOKS).all()
    last = table.groupby("algorithm").last()
    assert last.loc["LinUCB-Ind", "groups"] == last["users"].iloc[0]
    assert last.loc["clusters known", "agreement"] == 1.0
    assert last["regret"].idxmin() == "clusters known"
    assert (table.groupby("algorithm")["regret"].diff().dropna() >= 0).all()


def test_what_a_crowd_loses_stands_beside_what_everybody_alone_loses(sandbox):
    row = {"users": 9, "rounds": 90, "microseconds": 2.0, "groups": 9, "agreement": 0.0}
    rows = [{**row, "algorithm": name, "regret": regret, "megabytes": 1.0}
            for name, regret in (("LinUCB-Ind", 40.0), ("ReCLUB", 10.0))]  # fmt: skip
    benchrecord.write_tables(sandbox.project, {"served": pd.DataFrame(rows)}, ORIGIN, 1.0)
    assert "| 10 | 0.25 |" in benchpage.part(sandbox.project, {}, "served")


def test_parts_are_recorded_beside_each_other(sandbox):
    recorded(sandbox.project)
    stale = pd.DataFrame({"shards": 8, "block": [1, 100], "rounds": 800, "regret": [5.0, 7.0]})
    benchrecord.write_tables(sandbox.project, {"staleness": stale}, ORIGIN, 1.0)
    assert benchrecord.read(sandbox.project, "rounds")
    assert "1.40" in benchpage.part(sandbox.project, {}, "staleness")


def test_plans_stand_beside_what_recorded_runs_took(sandbox, monkeypatch):
    noted = Recorded("0" * 64, "Shares", ORIGIN, 30.0)
    record = Record("linear-bandits", "index", {"shares": noted}, [], ORIGIN)
    records.write(sandbox.project, "thesis", record)

    def rehearsed(project, profile, pages):
        assert profile == "thesis" and "regretbook-" in os.environ["REGRETBOOK_STORE"]
        for page in pages:
            yield page, [Planned("x", 2, 2, 20.0, False, 0.0, [])] * 2, None

    monkeypatch.setattr(benchplan, "rehearsed", rehearsed)
    table = benchplan.compare(sandbox.project)
    assert table.values.tolist() == [["linear-bandits", 40.0, 30.0]]
    benchrecord.write_tables(sandbox.project, {"plan": table}, ORIGIN, 1.0)
    assert "factor of two: 1 of 1 pages" in benchpage.part(sandbox.project, {}, "plan")


def test_the_page_says_what_pages_took_and_how_much_of_it_was_compiling(sandbox):
    page = contents.discover(sandbox.project)["linear-bandits"]
    run = sandbox.run(entries=[journal.Compiled(0.2), journal.Compiled(0.5)])
    for seconds, said in ((1.0, "More than a quarter: linear-bandits"), (4.0, "No page spent")):
        timed = run._replace(info=run.info._replace(seconds=seconds))
        shown = benchpage.part(sandbox.project, {page.name: (page, timed)}, "pages")
        assert said in shown and f"{0.5 / seconds:.0%}" in shown
