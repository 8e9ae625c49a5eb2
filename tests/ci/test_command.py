"""The command line: refusals in one sentence, exit status, and a `list` that answers at once."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ci import cli, execute, runs

RUN = ["run", "linear-bandits"]
REFUSED = {
    "unknown chapter": ["run", "linear-bandit"],
    "unknown parameter": [*RUN, "-p", "horizon=5"],
    "another type": [*RUN, "-p", "T=many"],
    "zero rounds": [*RUN, "-p", "T=0"],
    "negative": [*RUN, "-p", "T=-1"],
    "NaN": [*RUN, "-p", "scale=nan"],
    "no value": [*RUN, "-p", "T"],
    "unknown profile": [*RUN, "--profile", "tiny"],
    "unknown profile of a build": ["build", "--profile", "tiny"],
    "unknown chapter of a build": ["build", "clustering"],
    "unknown engine": [*RUN, "--engine", "slurm"],
    "unreachable scheduler": [*RUN, "--engine", "dask://127.0.0.1:9"],
    "no jobs": ["build", "--jobs", "0"],
    "jobs that are no number": ["build", "--jobs", "two"],
    "a page named twice": ["run", "linear-bandits", "linear-bandits"],
    "a parameter of another page": ["run", "clustering-of-bandits/index", "-p", "pairs=2"],
    "no trials to verify": ["verify", "--trials", "-1"],
    "nothing recorded": ["verify", "linear-bandits"],
    "claims of no run": ["claims", "--run", "BOOK"],
    "unwritable folder": [*RUN, "--out", "FILE/below"],
    "a file as folder": [*RUN, "--out", "FILE"],
    "a folder with other things": [*RUN, "--out", "BOOK"],
    "no command": [],
    "unknown command": ["runn"],
    "unknown option": ["list", "--all"],
    "unknown dataset": ["data", "check", "ml-1n"],
    "nothing to cite": ["cite", "nothing"],
    "nothing to record": ["record", "linear-bandits"],
    "claims of no chapter": ["claims", "--chapter", "nothing"],
    "a list of no run": ["list", "--run", "BOOK"],
    "a policy without name": [*RUN, "--policy", "mine.py"],
    "a policy of no file": [*RUN, "--policy", "mine.py:MINE"],
}


@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED)
def test_bad_calls_are_refused_in_one_line_before_anything_runs(
    sandbox, words, capsys, monkeypatch
):
    def never(*_):
        raise AssertionError("something was executed")

    monkeypatch.setattr(execute, "_papermill", never)
    file = sandbox.project.toc
    paths = {"FILE/below": file / "below", "FILE": file, "BOOK": sandbox.project.book}
    words = [str(paths.get(word, word)) for word in words]
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("regretbook: ")
    assert len(err.splitlines()) == 1
    assert not (sandbox.project.build / "runs").exists()


def test_a_missing_page_is_refused_before_anything_runs(sandbox, capsys, monkeypatch):
    monkeypatch.setattr(execute, "_papermill", None)
    sandbox.edit("_toc.yml", "clustering-of-bandits/theory", "clustering-of-bandits/later")
    assert cli.main(["build"]) == 2
    assert "_toc.yml lists foundations/clustering-of-bandits/later" in capsys.readouterr().err


def test_an_earlier_run_may_be_replaced_and_other_files_not(sandbox, capsys):
    target = sandbox.project.root / "mine"
    run = sandbox.run()
    run.folder.rename(target)
    with runs.prepared(sandbox.project, target) as work:
        assert work.parent == target.parent
    (target / "notes.txt").write_text("mine")
    assert cli.main([*RUN, "--out", str(target)]) == 2
    assert "notes.txt" in capsys.readouterr().err
    assert (target / "notes.txt").read_text() == "mine"


def test_a_full_disk_is_one_sentence_and_the_last_run_stays(sandbox, capsys, monkeypatch):
    target = runs.place(sandbox.project, sandbox.pages["linear-bandits"])
    target.parent.mkdir(parents=True)
    sandbox.run().folder.rename(target)

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(execute, "_papermill", lambda page, *_: page)
    monkeypatch.setattr("os.fsync", full)
    assert cli.main(RUN) == 1
    err = capsys.readouterr().err
    assert "disk is full" in err
    assert len(err.splitlines()) == 1
    assert [path.name for path in target.parent.iterdir()] == ["index"]
    assert (target / "notebook.ipynb").exists()


def test_list_shows_parameters_and_runs(sandbox, capsys):
    sandbox.run(entries=[sandbox.table])
    assert cli.main(["record", "linear-bandits"]) == 0
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    assert "T = 20000       rounds per trial, in [1, 10_000_000]" in out
    assert "published: 2026-02-03 04:05 UTC, profile book, 2 s, commit 0123456789ab" in out
    assert "recorded: regret, 2026-02-03, profile book" in out
    assert "published: none yet" in out


def test_list_imports_nothing_heavy(sandbox):
    script = (
        "import sys; from ci.cli import main; main(sys.argv[1:]); "
        "print(sorted({'numpy', 'jupytext', 'papermill', 'nbformat'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "list"],
        capture_output=True,
        text=True,
        cwd=Path(cli.__file__).parent.parent,
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_claims_and_cite_print(sandbox, capsys):
    sandbox.run(entries=[sandbox.claim, sandbox.data, sandbox.table])
    assert cli.main(["claims", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 3
    assert cli.main(["cite", "linear-bandits"]) == 0
    assert capsys.readouterr().out.startswith("@incollection{regretbook-linear-bandits,")


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("regretbook ")
