"""Chapters in real kernels: what a run leaves behind when it ends well, badly, or not at all."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest

from ci import build, cli, execute, runs
from ci.site import site_of

PAGE = "book/foundations/linear-bandits.md"
OTHER = "book/foundations/clustering-of-bandits/index.md"
NAME = "clustering-of-bandits/index"
JUDGED = "journal.note(journal.Judgement('lin-one', 'statement', 'reproduced'))"


def regretbook(sandbox, *words):
    return cli.main(list(words))


def start(sandbox, *words):
    """Start the command as a process of its own."""
    command = [sys.executable, "-m", "ci", *words]
    code = Path(cli.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": str(code)}
    return subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )


def wait_for(path, seconds=30):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.05)


def test_a_run_injects_parameters_and_leaves_a_clean_notebook(sandbox, capsys):
    sandbox.edit(
        PAGE,
        "print(doubled)",
        "import os, sys, warnings\n"
        "from lib import journal\n"
        "warnings.warn('noise')\n"
        f"{JUDGED}\n"
        "print(doubled, os.path.exists('_toc.yml'), os.environ['OMP_NUM_THREADS'])\n"
        "print(sys.executable)",
    )
    assert regretbook(sandbox, "run", "linear-bandits", "-p", "T=1e3", "-p", "rule=ts") == 0
    out, err = capsys.readouterr()
    assert "verdicts: 1 reproduced" in out
    assert "linear-bandits, cell 3 wrote to stderr" in err
    folder = runs.place(sandbox.project, sandbox.pages["linear-bandits"])
    assert str(folder / "notebook.ipynb") in out
    text = (folder / "notebook.ipynb").read_text()
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code[1].source.splitlines() == ["# Parameters", "T = 1000", 'rule = "ts"']
    assert [output.text for output in code[-1].outputs] == [f"2000 True 1\n{sys.executable}\n"]
    assert notebook.metadata.kernelspec.name == "python3"
    assert "papermill" not in text
    assert str(sandbox.project.root) not in text
    info = json.loads((folder / "run.json").read_text())
    assert info["status"] == "ok"
    assert info["parameters"]["T"] == 1000
    assert info["profile"] == "book"
    assert {path.name for path in folder.parent.iterdir()} == {"index"}
    assert {path.name for path in folder.iterdir()} == {
        "run.json", "notebook.ipynb", "journal.jsonl", "report.html",
    }  # fmt: skip


def test_a_failing_chapter_is_named_and_the_others_are_finished(sandbox, capsys, monkeypatch):
    monkeypatch.setattr(build, "_render", lambda project, site, tree: True)
    old = sandbox.run()
    note = f"from lib import journal\n{JUDGED}"
    sandbox.edit(PAGE, "doubled = 2 * T", f"doubled = 2 * T\n{note}")
    sandbox.edit(PAGE, "print(doubled)", "\nprint(doubled / 0)")
    assert regretbook(sandbox, "build") == 1
    _, err = capsys.readouterr()
    assert (
        "linear-bandits failed in cell 3 (print(doubled / 0)): ZeroDivisionError: division" in err
    )
    log = sandbox.project.logs / "book" / "linear-bandits.index.log"
    assert str(log) in err
    assert "ZeroDivisionError" in log.read_text()
    assert "\x1b" not in log.read_text()
    assert runs.read(old.folder) == old, "a failed run must not replace a good one"
    assert runs.published(sandbox.project, sandbox.pages[NAME])
    source = site_of(sandbox.project, "book").source
    page = (source / "foundations/linear-bandits.ipynb").read_text()
    assert "output of cell" not in page
    assert "ZeroDivisionError" in page


def test_a_kernel_that_dies_is_a_failed_run(sandbox, capsys):
    sandbox.edit(OTHER, 'print("other")', "import os\nos._exit(7)")
    assert regretbook(sandbox, "run", NAME) == 1
    assert f"{NAME} failed in cell 2 (import os): DeadKernelError" in (capsys.readouterr().err)


@pytest.fixture
def waiting(sandbox):
    """A chapter that writes half of its results and then takes long."""
    sandbox.edit(
        OTHER,
        'print("other")',
        "import os, pathlib, time\n"
        "run = pathlib.Path(os.environ['REGRETBOOK_RUN'])\n"
        "(run / 'journal.jsonl').write_text('half')\n"
        f"pathlib.Path({str(sandbox.project.root)!r}, 'kernel').write_text(str(os.getpid()))\n"
        "time.sleep(60)",
    )
    return sandbox


def gone(process, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        state = Path(f"/proc/{process}/stat")
        if not state.exists() or state.read_text().split()[2] == "Z":
            return True
        time.sleep(0.1)
    return False


def test_kill_9_leaves_nothing_half_written(waiting):
    process = start(waiting, "run", NAME)
    wait_for(waiting.project.root / "kernel")
    process.kill()
    process.communicate()
    folder = runs.place(waiting.project, waiting.pages[NAME])
    assert not folder.exists()
    assert len(list(folder.parent.iterdir())) == 1
    assert gone(int((waiting.project.root / "kernel").read_text()))
    waiting.edit(OTHER, "time.sleep(60)", "(run / 'journal.jsonl').unlink()")
    assert regretbook(waiting, "run", NAME) == 0
    assert [path.name for path in folder.parent.iterdir()] == ["index"]


def test_interrupting_says_what_is_kept(waiting):
    process = start(waiting, "run", NAME)
    wait_for(waiting.project.root / "kernel")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.splitlines() == [
        "regretbook: interrupted; finished tasks are kept and the next run continues with them"
    ]
    assert list(runs.place(waiting.project, waiting.pages[NAME]).parent.iterdir()) == []
    assert gone(int((waiting.project.root / "kernel").read_text()))


def test_interrupting_a_build_of_several_pages_ends_every_kernel(waiting):
    process = start(waiting, "build", "--jobs", "3")
    wait_for(waiting.project.root / "kernel")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted; finished tasks are kept" in err
    assert runs.read(runs.place(waiting.project, waiting.pages[NAME], "book")) is None
    assert gone(int((waiting.project.root / "kernel").read_text()))


def test_kill_9_of_a_build_ends_the_kernels_that_it_forked(waiting):
    process = start(waiting, "build", "--jobs", "3")
    wait_for(waiting.project.root / "kernel")
    kernel = int((waiting.project.root / "kernel").read_text())
    parent = int(Path(f"/proc/{kernel}/stat").read_text().split()[3])
    process.kill()
    process.communicate()
    assert parent != process.pid  # the nursery
    assert gone(kernel) and gone(parent)


def test_a_kernel_works_on_the_project_and_the_share_of_cores_it_was_given(sandbox, capsys):
    sandbox.edit(
        OTHER,
        'print("other")',
        "from lib import engine, paths\nprint(paths.project().root, engine.cores())",
    )
    page = sandbox.pages[NAME]
    target = sandbox.project.root / "mine"
    request = execute.Request(page, page.defaults, target, "book", threads=1)
    assert execute.execute(sandbox.project, request)[1] is None
    assert f"{sandbox.project.root} 1" in (target / "notebook.ipynb").read_text()
