"""The store seen from outside: what pages can still ask for, and what is removed."""

import os
import sys

import pytest

from ci import cli, keep
from lib import chapters, provenance, store
from lib.simulate import repeat

CODE = """
```{code-cell} ipython3
def half(x):
    return x / 2  # exactly


def scaled(rng, size):
    "Return a number."
    return {"value": half(size) * rng.random()}
```
"""


@pytest.fixture
def used(sandbox, monkeypatch):
    """The small project after a run of three tasks, long ago."""
    monkeypatch.delenv("REGRETBOOK_STORE", raising=False)
    for name in [name for name in sys.modules if name.startswith("regretbook_")]:
        monkeypatch.delitem(sys.modules, name)  # as in a process that begins with this run
    file = "book/foundations/clustering-of-bandits/theory.md"
    sandbox.edit(file, "# Clusters in theory\n", f"# Clusters in theory\n{CODE}")
    scaled = chapters.load("clustering-of-bandits/theory").scaled
    repeat(scaled, trials=3, seed=1, settings=[{"size": 4.0}])
    for path in sandbox.project.cache.rglob("*"):
        os.utime(path, (0, 0))
    return sandbox


def files(sandbox):
    found = (path for path in sandbox.project.cache.rglob("*") if path.is_file())
    return {path.relative_to(sandbox.project.cache).parts[0]: path for path in found}


def edit(sandbox, old, new):
    sandbox.edit("book/foundations/clustering-of-bandits/theory.md", old, new)


def test_what_a_page_can_ask_for_stays(used, capsys):
    before = sorted(used.project.cache.rglob("*"))
    assert cli.main(["store", "--prune"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("the store has 3 finished tasks of 1 programs")
    assert "can ask for all of it" in out
    assert sorted(used.project.cache.rglob("*")) == before


CHANGES = {
    "comment": ("# exactly", "# by two"),
    "docstring": ('"Return a number."', '"Return another text."'),
    "another function": ("def half", "def third(x):\n    return x / 3\n\n\ndef half"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_changes_no_number_keeps_all(used, capsys, change):
    edit(used, *CHANGES[change])
    assert cli.main(["store"]) == 0
    assert "can ask for all of it" in capsys.readouterr().out


def test_results_of_changed_code_are_shown_and_then_removed(used, capsys):
    edit(used, "x / 2", "0.5 * x")
    assert cli.main(["store"]) == 0
    assert "no page of this tree can ask for 3 finished tasks of 1 programs" in (
        capsys.readouterr().out
    )
    assert files(used).keys() == {"store", "programs", "pages"}
    assert cli.main(["store", "--prune"]) == 0
    assert "removed 3 finished tasks of 1 programs" in capsys.readouterr().out
    assert not files(used)
    assert cli.main(["store"]) == 0
    assert "the store has 0 finished tasks" in capsys.readouterr().out


def test_of_two_versions_the_current_one_stays(used, capsys):
    edit(used, "x / 2", "x / 4")
    scaled = chapters.load("clustering-of-bandits/theory").scaled
    table = repeat(scaled, trials=2, seed=1, settings=[{"size": 4.0}])
    assert keep.show(used.project, prune=True) == 0
    assert "removed 3 finished tasks of 1 programs" in capsys.readouterr().out
    assert len(list(store.folder().glob("*/*.task"))) == 2
    again = repeat(scaled, trials=2, seed=1, settings=[{"size": 4.0}])
    assert again.equals(table)


def test_results_of_other_packages_can_go(used, capsys, monkeypatch):
    other = provenance.versions() | {"numpy": "1.2.3"}
    monkeypatch.setattr(provenance, "versions", lambda: other)
    keep.show(used.project, prune=True)
    assert "removed 3 finished tasks" in capsys.readouterr().out


def test_results_of_nobody_knows_what_can_go(used, capsys):
    (program,) = store.folder().glob("*/program.txt")
    program.write_text("something else")
    keep.show(used.project, prune=True)
    assert "removed 3 finished tasks" in capsys.readouterr().out


def test_a_page_that_left_the_book_asks_for_nothing(used, capsys):
    used.edit("_toc.yml", "      - file: foundations/clustering-of-bandits/theory\n", "")
    used.edit("_toc.yml", "    sections:\n", "")
    keep.show(used.project, prune=True)
    assert "removed 3 finished tasks" in capsys.readouterr().out


def test_code_of_a_run_that_has_just_begun_stays(used, capsys):
    programs = used.project.cache / "programs" / "regretbook_program_0123456789abcdef0123"
    programs.mkdir()
    keep.show(used.project, prune=True)
    assert programs.exists()
