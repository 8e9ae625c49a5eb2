"""A small chaos: a page with a simulation is disturbed for seconds and gives the same tables."""

import os
import random
import subprocess
import sys

import pytest

from ci import chaos, runs
from lib.paths import project_at

CODE = """
from lib import results
from lib.simulate import repeat


def draws(rng, scale):
    return {"share": rng.uniform(0, scale)}


table = repeat(draws, trials=20, seed=seed, settings=[{"scale": 1.0}, {"scale": 2.0}])
results.save("shares", table, "Shares")
"""


@pytest.mark.parametrize("seed", [3])
def test_disturbed_builds_give_the_tables_of_a_quiet_one(sandbox, monkeypatch, seed):
    sandbox.edit("book/foundations/linear-bandits.md", "print(doubled)", CODE)
    monkeypatch.setattr(chaos, "LONGEST", 4.0)
    outcome = chaos.chaos(project_at(sandbox.project.root), ["linear-bandits"], 12.0, seed)
    assert outcome.tables == 1
    assert outcome.differences == []
    assert sum(outcome.faults.values()) >= 1


def test_a_difference_is_found(sandbox, monkeypatch):
    """The comparison itself must be able to fail."""
    sandbox.edit("book/foundations/linear-bandits.md", "print(doubled)", CODE)
    monkeypatch.setattr(chaos, "_disturb", lambda where, name, rng: _edit(where))
    outcome = chaos.chaos(sandbox.project, ["linear-bandits"], 0.1, 1)
    assert outcome.differences == ["table linear-bandits shares"]


@pytest.mark.parametrize(("seed", "room"), [(9, 206), (5, 1301)])
def test_a_disk_that_is_full_ends_a_run_with_one_sentence(sandbox, seed, room):
    assert int(10 ** random.Random(seed).uniform(0, 5)) == room
    process = chaos._start(sandbox.project, ["linear-bandits"])
    chaos._fill(sandbox.project, process, random.Random(seed))
    _, err = process.communicate(timeout=60)
    assert process.returncode in (1, 2)
    assert len(err.splitlines()) == 1, err
    assert err.startswith("regretbook: ")


def test_what_is_left_behind_is_found(sandbox, monkeypatch):
    monkeypatch.setattr(chaos, "ORPHANS", 0.0)
    monkeypatch.delenv("REGRETBOOK_ROOT")  # or this very process would be one
    assert chaos._left(sandbox.project) == []
    folder = sandbox.project.build / "runs" / f"{runs.WORK}abc"
    folder.mkdir(parents=True)
    environment = {**os.environ, "REGRETBOOK_ROOT": str(sandbox.project.root)}
    process = subprocess.Popen([sys.executable, "-c", "input()"], env=environment, stdin=-1)
    try:
        said = [f"process {process.pid} is left behind", f"{folder.name} is left behind"]
        assert chaos._left(sandbox.project) == said
    finally:
        process.communicate()


def _edit(where):
    page = where.book / "foundations" / "linear-bandits.md"
    page.write_text(page.read_text().replace("rng.uniform(0, scale)", "rng.uniform(1, 1 + scale)"))
    return "edit", "0", ""
