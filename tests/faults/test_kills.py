"""Signals and kills, with real processes: one sentence, and nothing and nobody left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ci import runs
from lib.paths import CODE

PAGE = "book/foundations/linear-bandits.md"
HALF = """
import os, pathlib, time
from lib import journal
pathlib.Path(os.environ["REGRETBOOK_ROOT"], "kernel").write_text(str(os.getpid()))
time.sleep(60)
"""


def start(*words, ignore=()):
    """Start the command, with signals ignored as nohup and background jobs do."""

    def before():
        for number in ignore:
            signal.signal(number, signal.SIG_IGN)

    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "PYTHONPATH": str(CODE)}
    return subprocess.Popen(
        [sys.executable, "-m", *words], env=environment, preexec_fn=before, **pipes
    )


def wait_for(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def is_gone(process):
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().split()[2] == "Z"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_one_sentence(sandbox, monkeypatch, tmp_path, number):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    sandbox.edit(PAGE, "print(doubled)", HALF)
    process = start("ci", "run", "linear-bandits", ignore=[number])
    kernel = sandbox.project.root / "kernel"
    wait_for(kernel.exists, "the kernel did not start")
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.splitlines() == [
        "regretbook: interrupted; finished tasks are kept and the next run continues with them"
    ]
    left = runs.place(sandbox.project, sandbox.pages["linear-bandits"]).parent
    assert list(left.iterdir()) == []
    assert list(tmp_path.glob("runtime/*")) == [], "how to reach the kernel is nobody's business"
    wait_for(lambda: is_gone(int(kernel.read_text())), "the kernel lives on")


def test_a_kernel_and_its_folder_do_not_outlive_a_run_that_was_killed(sandbox):
    sandbox.edit(PAGE, "print(doubled)", HALF)
    process = start("ci", "run", "linear-bandits")
    kernel = sandbox.project.root / "kernel"
    wait_for(kernel.exists, "the kernel did not start")
    process.kill()
    process.communicate()
    wait_for(lambda: is_gone(int(kernel.read_text())), "the kernel lives on")
    target = runs.place(sandbox.project, sandbox.pages["linear-bandits"])
    assert [path.name for path in target.parent.iterdir()] != []
    with runs.prepared(sandbox.project, target) as work:
        assert list(target.parent.iterdir()) == [work]


RENDER = """
import pathlib, subprocess, sys
lock, flag, source = sys.argv[1:]
child = subprocess.Popen([sys.executable, "-m", "ci.render", lock, "build", source, "--all"])
pathlib.Path(flag).write_text(str(child.pid))
child.wait()
"""


def test_a_renderer_ends_with_its_build_and_holds_the_lock_until_then(tmp_path, sandbox):
    """An orphan that went on would write old pages among those of the next build."""
    from filelock import FileLock

    lock, flag = tmp_path / "render.lock", tmp_path / "pid"
    held = FileLock(lock)
    held.acquire()  # so that the renderer waits, and lives, for as long as we want
    script = tmp_path / "build.py"
    script.write_text(RENDER)
    command = [sys.executable, str(script), str(lock), str(flag), str(sandbox.project.book)]
    environment = {**os.environ, "PYTHONPATH": str(CODE)}
    build = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    wait_for(lambda: flag.exists() and flag.read_text(), "the renderer did not start")
    renderer = int(flag.read_text())
    time.sleep(1)
    assert not is_gone(renderer)
    build.kill()
    build.wait()
    wait_for(lambda: is_gone(renderer), "the renderer outlives its build", 20)
    held.release()
