"""Executing a chapter: jupytext reads the page, papermill runs it, a folder is published whole."""

import json
import logging
import re
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ci import parameters as params
from ci import progress, runs, stale
from ci.chapters import Chapter
from ci.project import Project, commit, require_writable, shown, write
from lib import journal, provenance

INJECTED = "injected-parameters"
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}


class Failure(NamedTuple):
    """Which cell of a chapter failed (0: before the first), its first line, and the error."""

    cell: int
    line: str
    error: str
    message: str

    def where(self) -> str:
        return f"cell {self.cell} ({self.line})" if self.cell else "the start of its kernel"


def report(project: Project, chapter: str, failure: Failure) -> None:
    """Say on stderr which chapter failed, where and why, and where the traceback is."""
    what = f"{failure.error}: {failure.message}" if failure.message else failure.error
    log = shown(project.logs / f"{chapter}.log")
    where = failure.where()
    print(f"regretbook: {chapter} failed in {where}: {what} (see {log})", file=sys.stderr)


def read_page(text: str):
    """Return a page as a notebook that is the same at every reading, for a plain python3 kernel."""
    import jupytext

    notebook = jupytext.reads(text, fmt="md:myst")
    notebook.metadata.pop("jupytext", None)
    # papermill asks for the language, which a page need not name.
    notebook.metadata["kernelspec"] = dict(KERNELSPEC)
    return _number_cells(notebook)


def _number_cells(notebook):
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    return notebook


def has_tag(cell, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def own_code(notebook) -> list:
    """Return the code cells that the page itself has, without papermill's parameters."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return [cell for cell in cells if not has_tag(cell, INJECTED)]


def execute(
    project: Project, chapter: Chapter, parameters: dict, target: Path, profile: str, engine: str
) -> tuple[runs.Run, Failure | None]:
    """Execute a chapter and publish its run folder at `target`, replacing what was there.

    A failed run publishes a run.json that says so and nothing else: no page shows old output.
    """
    require_writable(project.logs)
    work = runs.prepare(target)
    try:
        info = _describe(project, chapter, parameters, profile, engine)
        # Taken before the run: an edit made while it computes leaves it stale.
        own = stale.own(project, chapter, parameters)
        start = time.monotonic()
        notebook, failure = _execute(project, chapter, parameters, work, engine)
        info["seconds"] = round(time.monotonic() - start, 2)
        (work / "progress.jsonl").unlink(missing_ok=True)
        if failure:
            shutil.rmtree(work)
            info |= {"status": "failed", "error": failure._asdict()}
        else:
            noted = stale.inputs(project, chapter.name, journal.read(work))
            info |= {"status": "ok", "digest": stale.digest(own | noted)}
            write(work / "notebook.ipynb", as_json(notebook))
        write(work / "run.json", json.dumps(info, indent=1) + "\n")
        runs.publish(project, work, target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    return runs.read(target), failure


def as_json(notebook) -> str:
    """Return the text of a notebook file."""
    import nbformat

    return nbformat.writes(notebook, version=4) + "\n"


def _describe(
    project: Project, chapter: Chapter, parameters: dict, profile: str, engine: str
) -> dict:
    """Return what run.json says before the run: everything needed to repeat it."""
    identity, dirty = commit(project)
    return {
        "chapter": chapter.name,
        "profile": profile,
        "parameters": parameters,
        "seed": parameters.get("seed"),
        "engine": engine,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": identity,
        "dirty": dirty,
        "versions": provenance.versions(),
        "machine": provenance.machine(),
    }


def _execute(project: Project, chapter: Chapter, parameters: dict, work: Path, engine: str):
    """Run the page in a kernel of its own; return the clean notebook, or None and the failure."""
    environment = {
        "REGRETBOOK_RUN": str(work),
        "REGRETBOOK_PROGRESS": str(work / "progress.jsonl"),
        "REGRETBOOK_ENGINE": engine,
        **{f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "MKL", "OMP")},
    }
    page = read_page(chapter.text)
    cells = own_code(page)
    position = progress.Position(len(cells))
    with (
        open(project.logs / f"{chapter.name}.log", "w", encoding="utf-8") as log,
        progress.shown(chapter.name, position, work / "progress.jsonl"),
    ):
        try:
            changes = params.changed(chapter, parameters)
            notebook = _papermill(page, changes, project.root, environment, log, position)
        except Exception as error:  # of a cell, or of a kernel that died or did not start
            trace = "\n".join(getattr(error, "traceback", [repr(error)]))
            print(re.sub(r"\x1b\[[0-9;]*m", "", trace), file=log)
            return None, _failure(
                cells[position.cell - 1] if position.cell else None, position, error
            )
        for number, text in _clean(notebook):
            print(f"cell {number} wrote to stderr:\n{text}", file=log)
            first = text.strip().splitlines()[0][:120]
            note = f"{chapter.name}, cell {number} wrote to stderr (not shown on the page): {first}"
            print(f"regretbook: {note}", file=sys.stderr)
    return notebook, None


def _papermill(page, changes: dict, root: Path, environment: dict, log, position):
    """Let papermill inject the changed parameters and run all cells."""
    import papermill

    for name in ("papermill", "traitlets"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    numbers = {cell["id"]: number for number, cell in enumerate(own_code(page), 1)}

    def follow(cell, cell_index):
        position.cell = numbers.get(cell["id"], position.cell)

    return papermill.execute_notebook(
        page,
        None,
        parameters=changes,
        progress_bar=False,
        cwd=str(root),
        kernel_manager_class=_kernel(environment, log),
        on_cell_start=follow,
    )


def _kernel(environment: dict[str, str], log):
    """Return a kernel manager class that starts this very interpreter, whatever is installed."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    launch = [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher"]
    spec = KernelSpec(
        argv=[*launch, "-f", "{connection_file}"],
        language="python",
        display_name="Python 3",
        env={name: value.replace("$", "$$") for name, value in environment.items()},
    )

    class Kernel(AsyncKernelManager):
        @property
        def kernel_spec(self):
            return spec

        async def _async_pre_start_kernel(self, **options):
            return await super()._async_pre_start_kernel(**options, stdout=log, stderr=log)

    return Kernel


def _failure(cell, position: progress.Position, error: Exception) -> Failure:
    """Describe a failure by the error of the cell, or by that of the kernel under it."""
    lines = cell.source.splitlines() if cell else []
    line = next((text.strip() for text in lines if text.strip()), "")
    name = getattr(error, "ename", type(error).__name__)
    message = getattr(error, "evalue", str(error)).strip().partition("\n")[0]
    return Failure(position.cell, line[:80], name, message[:300])


def _clean(notebook) -> list[tuple[int, str]]:
    """Strip what depends on machine and moment; return the stderr texts, which no page may show."""
    notebook.metadata.pop("papermill", None)
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in _number_cells(notebook).cells:
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if not cell.metadata.get("tags"):
            cell.metadata.pop("tags", None)
    noise = []
    for number, cell in enumerate(own_code(notebook), 1):
        texts = [output.text for output in cell.outputs if output.get("name") == "stderr"]
        noise += [(number, text) for text in texts if text.strip()]
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return noise
