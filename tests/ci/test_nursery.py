"""Kernels that are forked: like those from scratch, each for itself, gone when nobody is left."""

import os
import signal
import subprocess
import sys

import pytest
from jupyter_client.connect import write_connection_file

from ci import execute, nursery
from lib.paths import CODE

OTHER = "book/foundations/clustering-of-bandits/index.md"
NAME = "clustering-of-bandits/index"
TOLD = """import os, signal, sys
import matplotlib, numpy as np, pandas as pd
print(sys.path[0], sys.argv[0].rpartition("/")[2], os.getcwd(), matplotlib.get_backend())
print(signal.getsignal(signal.SIGCHLD), os.environ["REGRETBOOK_PAGE"], os.getpgid(0) == os.getpid())
os.environ["LEFT"] = np.left = "behind"
pd.DataFrame(np.zeros((1, 30)))"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks kernels")


@pytest.fixture
def kernels(sandbox):
    with nursery.opened(sandbox.project, ["", ""]) as found:
        yield found


def notebook(sandbox, kernels, code):
    """Return the notebook of a page with this code, run in a kernel of the nursery."""
    sandbox.edit(OTHER, 'print("other")', code)
    page, target = sandbox.pages[NAME], sandbox.project.root / "mine"
    request = execute.Request(page, page.defaults, target, "book", nursery=kernels)
    run, failure = execute.execute(sandbox.project, request)
    assert failure is None, failure
    sandbox.edit(OTHER, code, 'print("other")')
    return (run.folder / "notebook.ipynb").read_text()


def test_a_forked_kernel_shows_what_one_from_scratch_does(sandbox, kernels, capfd):
    assert notebook(sandbox, kernels, TOLD) == notebook(sandbox, None, TOLD)
    assert "Debugger" not in capfd.readouterr().err  # its warning stood in the output of a build


def test_no_page_meets_what_another_has_left(sandbox, kernels):
    notebook(sandbox, kernels, TOLD)
    asked = 'import os, numpy as np\nprint(os.environ.get("LEFT"), hasattr(np, "left"))'
    assert "None False" in notebook(sandbox, kernels, asked)


def test_a_nursery_that_died_is_done_without(sandbox, kernels):
    notebook(sandbox, kernels, TOLD)
    os.killpg(kernels.process.pid, signal.SIGKILL)
    kernels.process.wait()
    assert "still here" in notebook(sandbox, kernels, 'print("still here")')


def test_a_page_alone_needs_no_nursery(sandbox):
    with nursery.opened(sandbox.project, [""]) as found:
        assert found is None


def test_networks_are_there_where_a_page_asks_for_them(sandbox):
    for texts, trained in ((["", ""], False), (["", "import torch"], True)):
        with nursery.opened(sandbox.project, texts) as kernels:
            asked = 'import sys\nprint("torch" in sys.modules, "sklearn.cluster" in sys.modules)'
            assert f"{trained} True" in notebook(sandbox, kernels, asked)


def test_nothing_is_started_before_a_kernel_is_asked_for(kernels):
    assert kernels.process is None


def test_kernels_end_with_their_nursery(sandbox, tmp_path):
    with nursery.opened(sandbox.project, ["", ""]) as kernels, open(tmp_path / "log", "w") as log:
        file = str(tmp_path / "kernel.json")
        write_connection_file(file)
        forked = kernels.fork(["-f", file], dict(os.environ), str(tmp_path), log.fileno())
        assert forked.poll() is None
    assert forked.wait() == forked.poll() == 0
    forked.kill()  # nobody else, should the number be used again


def test_a_kernel_that_outlives_its_run_does_not_make_its_folder_again(kernels, tmp_path):
    """Its run was killed while it started, and the next one has removed the folder."""
    gone, place = tmp_path / "gone", str(tmp_path)
    arguments = ["-f", str(gone / "kernel.json")]
    with open(tmp_path / "log", "w") as log:
        forked = kernels.fork(arguments, dict(os.environ), place, log.fileno())
        script = [sys.executable, str(CODE / "ci" / "kernel.py")]
        assert subprocess.run([*script, *arguments], cwd=place, stderr=log).returncode == 1
        forked.wait()
    assert not gone.exists()
