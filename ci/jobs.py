"""The queue of `regretbook live`: ordinary runs in processes of their own, one at a time.

What a run has done so far is read from its folder: the progress and the journal that it writes
anyway. A cancelled run keeps its finished trials in the store, as one that was interrupted does.
"""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from ci import parameters, runs
from ci.contents import Page
from ci.display import left
from ci.project import environment
from ci.report import FILE as REPORT
from ci.report import Pair, judged, row
from lib import journal
from lib.errors import BookError
from lib.maths import sentence
from lib.paths import CODE, Project

PATIENCE = 10.0  # seconds for an interrupted run to end by itself

# `python -m ci`, but nobody waits for what it computes once the server is gone.
COMMAND = (
    "import sys; from lib.lifetime import end_with_parent; from ci.cli import main; "
    "end_with_parent(); sys.exit(main(sys.argv[1:]))"
)


class Position:
    """Where a run is, by the progress file that it writes; only what is new is read."""

    def __init__(self):
        self.cell, self.cells, self.task, self._read = 0, 1, {}, 0

    def follow(self, path: Path) -> None:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):  # half written
                    break
                self._read += len(line)
                entry = json.loads(line)
                if "cell" in entry:
                    self.cell, self.cells, self.task = entry["cell"], entry["cells"], {}
                else:
                    self.task = entry

    def shown(self) -> dict:
        """Return how far the run has come, as a share of its cells, and where it is in words."""
        share = self.task["done"] / self.task["total"] if self.task.get("total") else 0.0
        where = f"cell {self.cell} of {self.cells}" if self.cell else "starting"
        if self.task:
            where += f", {self.task['task']} {share:.0%}{left(self.task)}"
        return {"progress": (max(self.cell - 1, 0) + share) / self.cells, "where": where}


@dataclass(eq=False)
class Job:
    """A run, or the plan of one, that was asked for."""

    id: str
    page: Page
    kind: str  # "run" or "plan"
    command: list[str]  # words after `regretbook`
    changes: dict[str, str]
    known: dict  # what is published of the questions that it may judge
    folder: Path
    state: str = "waiting"  # then running, and perhaps cancelling; then done, failed or cancelled
    started: float = 0.0
    seconds: float = 0.0
    said: str = ""  # the sentence that says how it ended
    process: asyncio.subprocess.Process | None = None
    ending: asyncio.Task | None = None
    position: Position = field(default_factory=Position)
    results: dict = field(default_factory=dict)
    read: int = -1  # bytes of the journal that the results are of

    @property
    def target(self) -> Path:
        return self.folder / "run"

    @property
    def ended(self) -> bool:
        return self.state not in ("waiting", "running", "cancelling")


class Queue:
    """Jobs in the order in which they were asked for."""

    def __init__(self, project: Project):
        self.project = project
        self.jobs: dict[str, Job] = {}
        self._waiting: asyncio.Queue[Job] = asyncio.Queue()

    def add(self, page: Page, kind: str, profile: str, values: dict) -> Job:
        """Put a job behind the others; its values were checked."""
        values = parameters.resolve(self.project, page, profile) | values
        words = shlex.split(parameters.command(self.project, page, profile, values))[2:]
        id = f"{time.strftime('%Y%m%d-%H%M%S')}-{len(self.jobs) + 1}"
        folder = self.project.build / "live" / id
        published = runs.beside(self.project, page, profile)
        usual = parameters.resolve(self.project, page)
        usual |= published.info.parameters if published else {}
        changes = {name: str(v) for name, v in values.items() if v != usual[name]}
        known = judged(self.project, published)
        job = Job(id, page, kind, [kind, *words], changes, known, folder)
        if kind == "run":
            job.command += ["--out", str(job.target)]
        self.jobs[id] = job
        self._waiting.put_nowait(job)
        return job

    def cancel(self, job: Job) -> None:
        """Interrupt a job that runs, as Ctrl-C would, or let one that waits never run."""
        if job.state == "waiting":
            job.state, job.said = "cancelled", "It had not begun."
        elif job.state == "running":
            job.state = "cancelling"
            if job.process:
                job.ending = asyncio.create_task(_end(job.process))

    async def work(self) -> None:
        """Run the jobs, one at a time, until cancelled; then end the one that runs."""
        while True:
            job = await self._waiting.get()
            if job.state == "waiting":
                await self._run(job)

    async def _run(self, job: Job) -> None:
        job.folder.mkdir(parents=True, exist_ok=True)
        job.state, job.started = "running", time.monotonic()
        log = job.folder / "log.txt"
        with open(log, "w", encoding="utf-8") as file:
            # In a session of its own, so that a Ctrl-C on the terminal reaches it once, from here.
            job.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", COMMAND, *job.command),
                env={**os.environ, **environment(self.project)},
                cwd=CODE,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        if job.state == "cancelling":  # before there was a process to end
            job.ending = asyncio.create_task(_end(job.process))
        try:
            status = await job.process.wait()
        except asyncio.CancelledError:
            await _end(job.process)
            job.state = "cancelled"
            raise
        job.seconds = time.monotonic() - job.started
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        if job.state == "cancelling":
            job.state, job.said = "cancelled", "Finished trials are kept."
        elif status == 0:
            job.state = "done"
            job.said = lines[-1].partition(": ")[2] if job.kind == "plan" and lines else ""
        else:
            job.state = "failed"
            own = [line for line in lines if line.startswith("regretbook: ")]
            job.said = (own or lines or [f"It ended with status {status}."])[-1]

    def shown(self) -> list[dict]:
        """Return what a browser shows of every job, the newest first."""
        return [self._shown(job) for job in reversed(self.jobs.values())]

    def _shown(self, job: Job) -> dict:
        if job.started and not job.ended:
            job.seconds = time.monotonic() - job.started
        entry = {
            "id": job.id,
            "page": job.page.name,
            "file": job.page.file,
            "kind": job.kind,
            "state": job.state,
            "changes": job.changes,
            "seconds": round(job.seconds),
            "said": job.said,
            "command": shlex.join(["regretbook", *job.command]),
        }
        if job.kind == "run" and job.state != "waiting":
            entry |= self._results(job)
        return entry

    def _results(self, job: Job) -> dict:
        """Return what the folder of a run says, as far as it has come."""
        work = _folder(job)
        job.position.follow(work / "progress.jsonl")
        journaled = work / "journal.jsonl"
        size = journaled.stat().st_size if journaled.is_file() else 0
        if size > job.read:  # of a run that was cancelled, nothing is left to be read
            job.read = size
            entries = _so_far(work)
            figures = [entry for entry in entries if isinstance(entry, journal.Figure)]
            job.results = {
                "verdicts": verdicts(entries, job.known),
                "figures": {each.name: sentence(each.caption) for each in figures if each.beside},
            }
        if job.state == "done" and "files" not in job.results:
            files = runs.read(job.target).info.files
            tables = sorted(name for name in files if name.startswith("tables/"))
            job.results["files"] = {name.removeprefix("tables/"): name for name in tables}
            job.results["report"] = REPORT in files
        return job.position.shown() | job.results

    def file(self, job: Job, name: str) -> Path | None:
        """Return a file that the run of a job lists among its own."""
        run = runs.read(job.target)
        return run.folder / name if run and name in run.info.files else None

    def figure(self, job: Job, name: str) -> Path | None:
        """Return the picture of a figure that the run has noted, while it runs and afterwards."""
        work = _folder(job)
        for entry in _so_far(work):
            if isinstance(entry, journal.Figure) and entry.name == name and entry.beside:
                return work / entry.beside
        return None


def _folder(job: Job) -> Path:
    """Return where a run writes: beside its place until it is finished."""
    return next(job.folder.glob(f"{runs.WORK}*"), job.target)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Interrupt a process, and kill its whole session where it does not end."""
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(process.wait(), PATIENCE)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _so_far(work: Path) -> list[journal.Entry]:
    """Return the journal of a run under way, whose last line may be half written."""
    with contextlib.suppress(BookError, OSError):
        return journal.read(work)
    return []


def verdicts(entries: list[journal.Entry], known: dict) -> dict:
    """Return the questions that were judged so far beside what is published, changed ones first."""
    mine = runs.judgements_of(entries)
    pairs = [Pair(each, known.get((each.id, each.question))) for each in mine]
    changed = [pair for pair in pairs if pair.changed]
    rest = [pair for pair in pairs if not pair.changed]
    marked = (row(pair).replace("<tr>", '<tr class="rb-changed">', 1) for pair in changed)
    return {
        "rows": "".join([*marked, *map(row, rest)]),
        "count": len(pairs),
        "changed": len(changed),
    }
