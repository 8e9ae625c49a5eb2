"""A small chaos: a page with a simulation is disturbed for seconds and gives the same tables."""

import pytest

from ci import chaos
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


def _edit(where):
    page = where.book / "foundations" / "linear-bandits.md"
    page.write_text(page.read_text().replace("rng.uniform(0, scale)", "rng.uniform(1, 1 + scale)"))
    return "edit", "0", ""
