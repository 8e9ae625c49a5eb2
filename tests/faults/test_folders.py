"""`run --out` and builds never destroy what they did not write, nor a good run for a bad one."""

import errno
import os
from pathlib import Path

import pytest

from ci import cli, execute, runs

RUN = ["run", "linear-bandits"]


def run_into(target):
    return cli.main([*RUN, "--out", str(target)])


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def good(sandbox):
    """A finished run in a folder of the user's choice."""
    sandbox.fake_papermill([sandbox.table])
    target = sandbox.project.root / "results-of-mine"
    assert run_into(target) == 0
    return target


@pytest.mark.parametrize(
    "files",
    [["tables/mine.csv"], ["notebook.ipynb"], ["run.json"], ["run.json", "tables/regret.csv"]],
    ids=" and ".join,
)
def test_a_folder_of_the_user_is_never_replaced(sandbox, capsys, files):
    sandbox.fake_papermill()
    target = sandbox.project.root / "mine"
    for file in files:
        sandbox.add(f"mine/{file}", "{}")
    before = content(target)
    assert run_into(target) == 2
    assert "that no run wrote" in capsys.readouterr().err
    assert content(target) == before


def test_a_run_that_was_edited_is_not_replaced_and_an_untouched_one_is(good, capsys):
    assert run_into(good) == 0
    (good / "notebook.ipynb").write_text("my notes")
    assert run_into(good) == 2
    assert "changed after the run (notebook.ipynb" in capsys.readouterr().err
    assert (good / "notebook.ipynb").read_text() == "my notes"


@pytest.mark.parametrize("folder", ["_build", "_build/html", "_build/executed", "_build/runs"])
def test_what_was_built_is_not_replaced_by_a_run(sandbox, capsys, folder):
    for page in sandbox.pages:
        sandbox.run(page)
    sandbox.fake_papermill()
    assert cli.main(["run", "clustering-of-bandits/theory"]) == 0
    sandbox.add("_build/html/index.html", "the book")
    before = content(sandbox.project.build)
    assert run_into(sandbox.project.root / folder) == 2
    assert "that no run wrote" in capsys.readouterr().err
    assert content(sandbox.project.build) == before


def test_a_link_that_leads_to_itself_is_one_sentence(sandbox, capsys):
    link = sandbox.project.root / "loop"
    link.symlink_to(link)
    assert run_into(link) == 2
    assert "leads to itself" in capsys.readouterr().err


def test_what_somebody_writes_into_the_folder_of_a_run_meanwhile_is_kept(
    good, sandbox, monkeypatch, capsys
):
    compute = execute._papermill

    def slow(*given):
        (good / "notes.txt").write_text("years of work")
        return compute(*given)

    monkeypatch.setattr(execute, "_papermill", slow)
    assert run_into(good) == 0
    assert runs.read(good).ok
    kept = good.with_name(f"{good.name}-kept")
    assert (kept / "notes.txt").read_text() == "years of work"
    assert str(kept) in capsys.readouterr().err
    assert run_into(good) == 0
    assert (good.with_name(f"{good.name}-kept1") / "notes.txt").exists()


@pytest.mark.parametrize("name", [".mine.2024.backup", ".regretbook-work-of-mine"])
def test_what_lies_beside_the_target_stays(sandbox, name):
    sandbox.fake_papermill()
    beside = sandbox.project.root / name
    sandbox.add(f"{name}/thesis.tex", "years of work")
    assert run_into(sandbox.project.root / "mine") == 0
    assert (beside / "thesis.tex").read_text() == "years of work"


def test_a_failed_run_replaces_nothing(good, sandbox, monkeypatch, capsys):
    before = content(good)

    def fail(*_):
        raise ValueError("a cell failed")

    monkeypatch.setattr(execute, "_papermill", fail)
    assert run_into(good) == 1
    assert "a cell failed" in capsys.readouterr().err
    assert content(good) == before
    assert [path.name for path in good.parent.glob(".regretbook*")] == []


def test_a_folder_that_cannot_be_moved_is_refused_before_anything_runs(good, monkeypatch, capsys):
    """A mount point can be written to but not replaced."""
    rename = os.rename

    def busy(source, target):
        if Path(source) == good:
            raise OSError(errno.EBUSY, "Device or resource busy")
        rename(source, target)

    monkeypatch.setattr(os, "rename", busy)
    monkeypatch.setattr(execute, "_papermill", None)
    assert run_into(good) == 2
    assert "cannot replace" in capsys.readouterr().err


def test_what_a_killed_run_left_is_removed_and_an_old_run_comes_back(good, sandbox):
    """Killed before it had a lock, while it computed, and between the two renames of publishing."""
    bare, left = (good.with_name(f"{runs.WORK}{name}") for name in ("bare", "left"))
    for folder in (bare, left / "tables"):
        folder.mkdir(parents=True)
    for name in (runs.LOCK, "journal.jsonl", "tables/one.csv"):
        (left / name).touch()
    good.rename(good.with_name(f"{runs.WORK}aside-{good.name}"))
    with runs.prepared(sandbox.project, good):
        assert not bare.exists()
        assert not left.exists()
        assert runs.read(good).ok


def test_two_runs_side_by_side_do_not_take_each_other_for_dead(sandbox):
    one, two = (sandbox.project.root / name for name in ("one", "two"))
    with runs.prepared(sandbox.project, one) as first:
        with runs.prepared(sandbox.project, two) as second:
            assert first.is_dir()
        assert not second.exists()
        assert first.is_dir()


def test_tables_may_be_read_by_others(good):
    assert {path.stat().st_mode & 0o777 for path in good.iterdir() if path.is_file()} == {0o644}


@pytest.mark.parametrize("late", ["journal.jsonl", "figures/one.svg"])
def test_a_run_whose_kernel_writes_while_it_is_removed_is_removed_by_the_next(
    good, sandbox, monkeypatch, late
):
    """It keeps its lock until nothing else is there: without it, nobody would know whose it is."""
    left = good.with_name(f"{runs.WORK}left")
    (left / "tables").mkdir(parents=True)
    for name in (runs.LOCK, "run.json"):
        (left / name).touch()
    unlink = Path.unlink

    def write_meanwhile(path, *given):
        unlink(path, *given)
        if path.name == "run.json":
            (left / late).parent.mkdir(exist_ok=True)
            (left / late).touch()

    monkeypatch.setattr(Path, "unlink", write_meanwhile)
    with runs.prepared(sandbox.project, good):
        assert [path.name for path in left.glob(".*")] == [runs.LOCK]
    with runs.prepared(sandbox.project, good):
        assert not left.exists()
