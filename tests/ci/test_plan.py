"""Plans of whole pages, in real kernels: what is printed, and that nothing of it is left."""

import json
import re

import pytest

from ci import cli, execute
from ci.plan import _amount
from lib.rehearsal import Planned

PAGE = """---
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# Linear bandits

```{code-cell} ipython3
:tags: [parameters]

T = 100  # rounds, in [1, inf)
seed = 1  # root of every random number, in [0, inf)
```

```{code-cell} ipython3
from typing import NamedTuple

import numpy as np

from lib import results
from lib.simulate import Environment, Policy, repeat, simulate


class State(NamedTuple):
    seen: np.ndarray


def make(rng):
    return State(np.array([0.5, 0.0]))


def draw(problem, t, rng):
    return 0, np.arange(2), np.eye(2)


def expected(problem, t, user, items, arms):
    return problem.seen


def feedback(problem, t, user, item, mean, rng):
    return mean + rng.standard_normal()


def init(problem, T, rng):
    return State(np.zeros(1))


def choose(state, t, user, arms, items):
    return t % 2


def learn(state, t, user, x, reward, item):
    state.seen[0] += reward


def number(rng):
    return {"value": rng.random()}
```

```{code-cell} ipython3
COINS, POLICIES = Environment(make, draw, expected, feedback), {"a": Policy(init, choose, learn)}
small = repeat(number, trials=3, seed=seed, label="numbers")
assert small["value"].nunique() == 3
```

```{code-cell} ipython3
table = simulate(COINS, POLICIES, T=T, trials=2, seed=seed, checkpoints=4, label="walks")
results.save("walks", table, "Walks")
```

```{code-cell} ipython3
assert table.regret.iloc[-1] == 0.25 * table.t.iloc[-1]
```

```{code-cell} ipython3
again = repeat(number, trials=4, seed=seed, label="numbers again")
```
"""


@pytest.fixture
def book(sandbox, monkeypatch):
    monkeypatch.delenv("REGRETBOOK_STORE", raising=False)
    sandbox.add("book/foundations/linear-bandits.md", PAGE)
    sandbox.add("book/profiles.yml", "thesis:\n  linear-bandits: {T: 1_000_000_000}\n")
    return sandbox


def test_a_page_that_goes_on_is_planned_to_its_end_and_leaves_nothing(book, capsys):
    (folder := book.project.build / "logs" / "book").mkdir(parents=True)
    (folder / "linear-bandits.index.log").write_text("of the last run")
    assert cli.main(["plan", "linear-bandits"]) == 0
    lines = capsys.readouterr().out.splitlines()
    counts = [line.split(" tasks")[0] for line in lines]
    assert counts == [
        "linear-bandits: numbers: 3 of 3",
        "linear-bandits: walks: 2 of 2",
        "linear-bandits: numbers again: 1 of 4",
        "linear-bandits: 6 of 9",
    ]
    assert all(line.endswith(" GB") for line in lines)
    files = [path for path in book.project.build.rglob("*") if path.is_file()]
    assert [path.read_text() for path in files] == ["of the last run"]
    assert not (book.project.cache / "store").exists()


def test_a_page_that_stand_ins_stop_is_planned_up_to_there(book, capsys):
    assert cli.main(["plan", "linear-bandits", "--profile", "thesis"]) == 1
    out, err = capsys.readouterr()
    assert [line.split(" tasks")[0] for line in out.splitlines()] == [
        "linear-bandits: numbers: 3 of 3",
        "linear-bandits: walks: 2 of 2",
        "linear-bandits: 5 of 5",
    ]
    # A billion rounds take no seconds on any machine; how many minutes or hours is its affair.
    assert re.search(r", [\d.]+ (min|h), ", out.splitlines()[1])
    assert "stopped in cell 5 (assert table.regret" in err
    assert "what comes after is not counted" in err


@pytest.mark.parametrize("words", [["linear-bandit"], ["linear-bandits", "--profile", "tiny"]])
def test_a_plan_of_nothing_is_refused_before_anything_runs(book, words, capsys, monkeypatch):
    monkeypatch.setattr(execute, "_papermill", None)
    assert cli.main(["plan", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_all_pages_are_planned_with_a_sum(book, capsys, monkeypatch):
    seen = []

    def fake(notebook, changes, kernel, position):
        assert kernel.told["REGRETBOOK_ENGINE"] == "plan"
        seen.append(position.name)
        planned = Planned("runs", 10, 4, 3600.0 * len(seen), len(seen) == 2, 2e9, [])
        with open(kernel.told["REGRETBOOK_PLAN"], "a") as file:
            file.write(json.dumps(planned._asdict()) + "\n")
        return notebook

    monkeypatch.setattr(execute, "_papermill", fake)
    assert cli.main(["plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert seen == list(book.pages)
    assert lines[0] == "linear-bandits: runs: 4 of 10 tasks, 60 min, 2.0 GB"
    assert lines[2] == "clustering-of-bandits/index: runs: 4 of 10 tasks, more than 2.0 h, 2.0 GB"
    assert lines[-1] == "in all: 12 of 30 tasks, more than 6.0 h, 2.0 GB"


def test_runs_of_one_name_are_added_and_memory_is_the_largest():
    runs = [Planned("tuning", 8, n, 10.0, False, n * 1e9, []) for n in (2, 3)]
    assert _amount(runs) == "5 of 16 tasks, 20 s, 3.0 GB"
    assert _amount([]) == "0 of 0 tasks"
