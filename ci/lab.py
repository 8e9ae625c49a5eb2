"""`regretbook lab`: a page as a notebook in JupyterLab; saving writes its Markdown back.

Jupytext opens the page and `jupytext.toml` says what it writes. The kernel is this interpreter, so
it has `lib`; it is told its page, as a run is, and keeps no record.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from ci import contents
from ci.contents import Page
from ci.project import environment
from lib.errors import BookError
from lib.paths import Project

SETTINGS = Path(__file__).with_name("jupyter")  # lets Markdown open as a notebook, not as text


def command(project: Project, page: Page, browser: bool = True) -> list[str]:
    """Return the command that opens a page."""
    address = f"/lab/tree/book/{page.file}.md"
    words = [sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1"]
    words += [f"--ServerApp.root_dir={project.root}", f"--LabApp.default_url={address}"]
    return words if browser else [*words, "--no-browser"]


def told(project: Project, page: Page) -> dict[str, str]:
    """Return what JupyterLab and its kernels are told."""
    settings = [str(SETTINGS), os.environ.get("JUPYTER_CONFIG_PATH")]
    return {
        "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, settings)),
        "REGRETBOOK_PAGE": page.place,
        **environment(project),
    }


def lab(project: Project, name: str, browser: bool = True) -> int:
    """Open a page, or the first of a chapter, until Ctrl-C."""
    page = contents.select(contents.discover(project), [name])[0]
    if importlib.util.find_spec("jupyterlab") is None:
        raise BookError("lab needs JupyterLab; get it with: pip install 'regretbook[lab]'")
    kernels = os.environ | told(project, page)
    return subprocess.run(command(project, page, browser), env=kernels).returncode
