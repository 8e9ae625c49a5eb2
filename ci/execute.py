"""Executing a page: jupytext reads it, papermill runs it, a folder is published whole."""

import contextlib
import functools
import importlib.util
import logging
import os
import py_compile
import re
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ci import display, runs, stale
from ci import parameters as params
from ci.contents import Page
from ci.nursery import Nursery, provisioner
from ci.project import ONE_THREAD, commit, environment, shown, write
from ci.runs import Failure, Info
from lib import journal, provenance
from lib.files import require_writable
from lib.paths import CODE, LIB, Project

INJECTED = "injected-parameters"
CONNECTION = ".kernel.json"  # how to reach the kernel of a run
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}


_kernels: set = set()  # processes of the kernels that run now
_stopping = threading.Event()


def stop() -> None:
    """End all kernels: the runs under way leave nothing behind."""
    _stopping.set()
    for process in list(_kernels):
        process.kill()


class Request(NamedTuple):
    """What to execute, with which values, where its folder goes, and how."""

    page: Page
    parameters: dict
    target: Path
    profile: str
    engine: str = "threads"
    threads: int | None = None  # cores that the kernel may use; None: all of them
    environment: dict = {}  # noqa: RUF012
    only: tuple[str, ...] = ()  # the experiments to compute; none: all
    report: bool = False  # whether a reader wants to see it beside the published run
    policy: str = ""  # a reader's own in the comparison, as in path/mine.py:MINE
    expected: float = 0.0  # seconds that it took last time; 0 when nobody knows
    nursery: Nursery | None = None  # where its kernel comes from; None: a process from scratch


def log_of(project: Project, request: Request) -> Path:
    """Return where the traceback and the noise of a run go."""
    return project.logs / request.profile / f"{request.page.place.replace('/', '.')}.log"


def report(project: Project, request: Request, failure: Failure) -> None:
    """Say on stderr which page failed, where and why, and where the traceback is."""
    what = f"{failure.error}: {failure.message}" if failure.message else failure.error
    where, log = failure.where(), shown(log_of(project, request))
    name = request.page.name
    print(f"regretbook: {name} failed in {where}: {what} (see {log})", file=sys.stderr)


def as_notebook(text: str):
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


def values_text(cell, profile: str) -> str:
    """Return the cell of values that papermill put into a page, as its readers see it."""
    values = cell.source.removeprefix("# Parameters\n").strip()
    return f"# The values of this run (profile {profile})\n{values}"


def has_tag(cell, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def own_code(notebook) -> list:
    """Return the code cells that the page itself has, without papermill's parameters."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return [cell for cell in cells if not has_tag(cell, INJECTED)]


def execute(project: Project, request: Request) -> tuple[runs.Run, Failure | None]:
    """Execute a page and publish its run folder, replacing what was there.

    A failed run replaces nothing: it is returned without outputs, and its log says what happened.
    """
    page, target = request.page, request.target
    require_writable(log_of(project, request).parent)
    with runs.prepared(project, target) as work:
        info = _describe(project, request)
        # Taken before the run: an edit made while it computes leaves it stale.
        own = stale.own(project, page, request.parameters)
        start = time.monotonic()
        notebook, failure = _execute(project, request, work)
        info = info._replace(seconds=round(time.monotonic() - start, 2))
        if _stopping.is_set():
            raise KeyboardInterrupt
        if failure:
            return runs.Run(target, info._replace(status="failed", error=failure), []), failure
        for passing in ("progress.jsonl", CONNECTION):
            (work / passing).unlink(missing_ok=True)
        entries = journal.read(work)
        digest = stale.digest(own | stale.inputs(project, page, entries))
        data = {e.name: e.digest for e in entries if isinstance(e, journal.Data) and e.digest}
        write(work / "notebook.ipynb", as_json(notebook))
        if request.policy:
            file = Path(request.policy.rpartition(":")[0])
            write(work / file.name, file.read_bytes())
        info = info._replace(status="ok", digest=digest, data=data)
        if request.report:
            _write_report(project, page, runs.Run(work, info, entries))
        runs.write_info(work, info)
        runs.publish(project, work, target)
    return runs.read(target), None


def _write_report(project: Project, page: Page, run: runs.Run) -> None:
    """Write the report of a run, which must not be lost for want of one."""
    from ci import report

    try:
        write(run.folder / report.FILE, report.text(project, report.compare(project, page, run)))
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        display.say(f"regretbook: {page.name} ran, but has no report ({what})", sys.stderr)


def as_json(notebook) -> str:
    """Return the text of a notebook file."""
    import nbformat

    return nbformat.writes(notebook, version=4) + "\n"


def _describe(project: Project, request: Request) -> Info:
    """Return what run.json says before the run: everything needed to repeat it."""
    identity, dirty = commit(project)
    return Info(
        chapter=request.page.chapter,
        page=request.page.page,
        profile=request.profile,
        parameters=request.parameters,
        seed=request.parameters.get("seed"),
        engine=request.engine,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=identity,
        dirty=dirty,
        versions=provenance.versions(),
        machine=provenance.machine(),
        only=request.only,
        policy=request.policy and os.path.basename(request.policy),
    )


def _environment(project: Project, request: Request, work: Path) -> dict[str, str]:
    """Return what the kernel is told: our code, its page, run, engine and share of cores."""
    return {
        **environment(project),
        "REGRETBOOK_PAGE": request.page.place,
        "REGRETBOOK_PROFILE": request.profile,
        "REGRETBOOK_ONLY": ",".join(request.only),
        "REGRETBOOK_VERIFY": "",
        "REGRETBOOK_POLICY": request.policy,
        "REGRETBOOK_RUN": str(work),
        "REGRETBOOK_PROGRESS": str(work / "progress.jsonl"),
        "REGRETBOOK_BESIDE": _beside(project, request),
        "REGRETBOOK_OWN": "1" if request.report else "",
        "REGRETBOOK_ENGINE": request.engine,
        "REGRETBOOK_THREADS": str(request.threads or provenance.cores()),
        **ONE_THREAD,
        **request.environment,
    }


def _beside(project: Project, request: Request) -> str:
    """Return the folder of the published run whose curves the figures show in grey."""
    if not request.report:
        return ""
    found = runs.beside(project, request.page, request.profile)
    return str(found.folder) if found else ""


def _execute(project: Project, request: Request, work: Path):
    """Run the page in a kernel of its own; return the clean notebook, or None and the failure."""
    name = request.page.name
    notebook = as_notebook(request.page.text)
    cells = own_code(notebook)
    position = display.Position(name, len(cells), work / "progress.jsonl", request.expected)
    environment = _environment(project, request, work)
    with (
        open(log_of(project, request), "w", encoding="utf-8") as log,
        display.shown(position),
    ):
        try:
            changes = params.changed(request.page, request.parameters)
            kernel = _kernel(environment, project.root, log, request.nursery)
            notebook = _papermill(notebook, changes, kernel, position)
        except Exception as error:  # of a cell, or of a kernel that died or did not start
            trace = "\n".join(getattr(error, "traceback", [repr(error)]))
            print(re.sub(r"\x1b\[[0-9;]*m", "", trace), file=log)
            cell = cells[position.cell - 1] if position.cell else None
            return None, _failure(cell, position.cell, error)
        for number, text in _clean(notebook):
            print(f"cell {number} wrote to stderr:\n{text}", file=log)
            first = text.strip().splitlines()[0][:120]
            note = f"{name}, cell {number} wrote to stderr (not shown on the page): {first}"
            display.say(f"regretbook: {note}", sys.stderr)
    return notebook, None


def _papermill(page, changes: dict, kernel: type, position):
    """Let papermill inject the changed parameters and run all cells."""
    import papermill

    for name in ("papermill", "traitlets", "asyncio"):  # what an interruption leaves is no news
        logging.getLogger(name).setLevel(logging.CRITICAL)
    numbers = {cell["id"]: number for number, cell in enumerate(own_code(page), 1)}

    def follow(cell, cell_index):
        if cell["id"] in numbers:
            position.move(numbers[cell["id"]])

    return papermill.execute_notebook(
        page,
        None,
        parameters=changes,
        progress_bar=False,
        kernel_manager_class=kernel,
        on_cell_start=follow,
    )


def _kernel(environment: dict[str, str], root: Path, log, nursery: Nursery | None):
    """Return a kernel manager class that starts this very interpreter, whatever is installed.

    Its folder is told to the kernel alone: papermill would change that of this process, in which
    other pages run at the same time.
    """
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    launch = [sys.executable, "-Xfrozen_modules=off", str(CODE / "ci" / "kernel.py")]
    _trust_no_clock()
    spec = KernelSpec(
        argv=[*launch, "-f", "{connection_file}"],
        language="python",
        display_name="Python 3",
        env={name: value.replace("$", "$$") for name, value in environment.items()},
    )

    class Kernel(AsyncKernelManager):
        told = environment

        def __init__(self, **options):
            # Beside the run and gone with it, even when nobody is left to tidy up.
            connection = os.path.join(environment["REGRETBOOK_RUN"], CONNECTION)
            super().__init__(connection_file=connection, **options)

        @property
        def kernel_spec(self):
            return spec

        async def _async_pre_start_kernel(self, **options):
            self.provisioner = provisioner(nursery, kernel_id="", kernel_spec=spec, parent=self)
            options |= {"cwd": str(root), "stdout": log, "stderr": log}
            return await super()._async_pre_start_kernel(**options)

        async def _async_post_start_kernel(self, **options):
            _kernels.add(self.provisioner.process)
            await super()._async_post_start_kernel(**options)

        async def _async_cleanup_resources(self, restart=False):
            _kernels.discard(getattr(self.provisioner, "process", None))
            await super()._async_cleanup_resources(restart=restart)

    return Kernel


@functools.cache
def _trust_no_clock() -> None:
    """Let Python know the bytecode of `lib` by its source, not by that file's time and size.

    An edit that changes neither would run the old code; numba's machine code lies beside it.
    """
    for source in LIB.glob("*.py"):
        bytecode = Path(importlib.util.cache_from_source(source))
        expected = (3).to_bytes(4, "little") + importlib.util.source_hash(source.read_bytes())
        with contextlib.suppress(OSError):
            if bytecode.is_file() and bytecode.read_bytes()[4:16] == expected:
                continue
            for machine_code in bytecode.parent.glob(f"{source.stem}.*.nb?"):
                machine_code.unlink()
            mode = py_compile.PycInvalidationMode.CHECKED_HASH
            py_compile.compile(str(source), invalidation_mode=mode)


def _failure(cell, number: int, error: Exception) -> Failure:
    """Describe a failure by the error of the cell, or by that of the kernel under it."""
    lines = cell.source.splitlines() if cell else []
    line = next((text.strip() for text in lines if text.strip()), "")
    name = getattr(error, "ename", type(error).__name__)
    message = getattr(error, "evalue", str(error)).strip().partition("\n")[0]
    return Failure(number, line[:80], name, message[:300])


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
