"""Chaos: kill, interrupt, damage and fill at random while pages run, then compare with a quiet run.

    python -m ci.chaos --seconds 600 --seed 1 PAGE…

Both runs work on copies of the project with stores of their own, so that nothing of the reader's is
touched. Whatever counts as finished at any moment must have the tables and verdicts of the quiet
run, every end must be a sentence, and in the end nothing may be missing and nothing left behind.
The outcome is one JSON object; `make chaos` keeps it in `results/chaos.json`.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psutil

from ci import contents, runs
from ci.project import commit
from lib.paths import CODE, Project, project, project_at

LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", ".cache", "_build", "__pycache__", "raw")
LONGEST = 20.0  # seconds until the next fault
ENDING = 1800.0  # seconds that a quiet run may take
ORPHANS = 30.0  # seconds that what a killed run started may still live


class Outcome(NamedTuple):
    """What was done to the runs, how they ended, and what was wrong at any time."""

    seed: int
    seconds: float
    pages: list[str]
    faults: dict[str, int]
    ends: dict[str, int]  # exit status: runs that were disturbed and ended with it
    tables: int
    verdicts: int
    differences: list[str]


def chaos(where: Project, names: list[str], seconds: float, seed: int) -> Outcome:
    """Disturb runs of single pages for some time and return what came of it."""
    rng, faults, ends, wrong = random.Random(seed), Counter(), Counter(), []
    with tempfile.TemporaryDirectory(prefix="regretbook-chaos-") as folder:
        quiet, wild = (_copy(where, Path(folder) / name) for name in ("quiet", "wild"))
        pages = contents.select(contents.discover(quiet), names)
        _finish(_start(quiet, names))
        expected = _found(quiet, pages)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            page = rng.choice(pages)  # each alone, or the first would be all that is ever disturbed
            fault, status, err = _disturb(wild, page.name, rng)
            faults[fault] += 1
            ends[status] += 1
            found = _found(wild, pages)
            wrong += [f"{name}, after {fault}" for name in found if found[name] != expected[name]]
            if "Traceback" in err:
                wrong.append(f"{page.name} ended with a traceback after {fault}")
        _finish(_start(wild, names))
        found = _found(wild, pages)
        wrong += [name for name in sorted(expected) if found.get(name) != expected[name]]
        wrong += _left(wild)
    tables = sum(name.startswith("table ") for name in expected)
    done = dict(sorted(faults.items())), dict(sorted(ends.items()))
    return Outcome(seed, seconds, names, *done, tables, len(expected) - tables, wrong)


def _copy(where: Project, target: Path) -> Project:
    shutil.copytree(where.root, target, ignore=LEFT_OUT, symlinks=True)
    return project_at(target)


def _start(where: Project, names: list[str]) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(CODE), "REGRETBOOK_ROOT": str(where.root)}
    environment.pop("REGRETBOOK_STORE", None)
    command = [sys.executable, "-m", "ci", "run", *names, "--profile", "smoke"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **quiet)


def _finish(process: subprocess.Popen) -> None:
    """Wait for a quiet run, which must succeed whatever happened before it."""
    _, err = process.communicate(timeout=ENDING)
    if process.returncode:
        last = err.strip().splitlines()[-1] if err.strip() else "it said nothing"
        raise RuntimeError(f"an undisturbed run failed: {last}")


def _disturb(where: Project, name: str, rng: random.Random) -> tuple[str, str, str]:
    """Start a run, do one bad thing to it, and return what that was, its status, what it said.

    Half of the runs that survive it are let go on: what they publish must be right, too.
    """
    process = _start(where, [name])
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(rng.uniform(0.5, LONGEST))
    fault = rng.choice(sorted(FAULTS))
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        FAULTS[fault](where, process, rng)
    patience = rng.choice([0.0, 3 * LONGEST])
    try:
        _, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        _, err = process.communicate()
    return fault, str(process.returncode), err


def _files(where: Project, rng: random.Random) -> list[Path]:
    """Return some files that runs keep: results, programs, machine code, finished pages."""
    kept = [p for root in (where.cache, where.build) for p in root.rglob("*") if p.is_file()]
    # What is under way belongs to its run alone, and nobody keeps what a lock says.
    kept = sorted(p for p in kept if runs.WORK not in str(p) and not p.name.endswith(".lock"))
    return rng.sample(kept, min(len(kept), 5))


def _family(process: subprocess.Popen) -> list[psutil.Process]:
    """Return the process of a run and those that it started: kernel and workers."""
    parent = psutil.Process(process.pid)
    return [parent, *parent.children(recursive=True)]


def _kill(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    process.kill()


def _kill_kernel(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    """Kill what the run has started, or itself before it has."""
    rng.choice(_family(process)[1:] or [process]).kill()


def _interrupt(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    process.send_signal(rng.choice([signal.SIGINT, signal.SIGTERM]))
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)


def _fill(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    """Let no file grow beyond some size, as on a disk that is full."""
    size = int(10 ** rng.uniform(0, 5))
    for each in _family(process):
        resource.prlimit(each.pid, resource.RLIMIT_FSIZE, (size, size))


def _flip(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    """Change one byte of some files."""
    for path in _files(where, rng):
        with contextlib.suppress(FileNotFoundError):
            content = bytearray(path.read_bytes())
            if content:
                content[rng.randrange(len(content))] ^= 1 + rng.randrange(255)
                path.write_bytes(content)


def _truncate(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    """Cut some files short, as a machine that loses power does."""
    for path in _files(where, rng):
        with contextlib.suppress(FileNotFoundError):
            os.truncate(path, rng.randint(0, path.stat().st_size))


def _delete(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    for path in _files(where, rng):
        path.unlink(missing_ok=True)


FAULTS = {
    "kill": _kill,
    "kill kernel": _kill_kernel,
    "interrupt": _interrupt,
    "fill": _fill,
    "flip": _flip,
    "truncate": _truncate,
    "delete": _delete,
}


def _found(where: Project, pages: list[contents.Page]) -> dict[str, str]:
    """Return what finished runs give: the digest of every table as it lies there, all verdicts."""
    found = {}
    for page in pages:
        run = runs.last(where, page, "smoke")
        for table in run.tables.values() if run else ():
            content = (run.folder / table.file).read_bytes()
            found[f"table {page.name} {table.name}"] = hashlib.sha256(content).hexdigest()
        for judged in run.judgements if run else ():
            found[f"verdict {page.name} {judged.id} {judged.question}"] = judged.verdict
    return found


def _left(where: Project) -> list[str]:
    """Return what killed runs have left: unfinished folders and files, and processes."""
    end = time.monotonic() + ORPHANS
    while (living := _living(where)) and time.monotonic() < end:
        time.sleep(0.5)
    folders = sorted(path.name for path in where.build.rglob(f"{runs.WORK}*"))
    return [f"{name} is left behind" for name in (*living, *folders)]


def _living(where: Project) -> list[str]:
    """Return the processes that work on a project."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("REGRETBOOK_ROOT") == str(where.root):
                found.append(f"process {process.pid}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", metavar="PAGE", nargs="+")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where to keep the outcome")
    options = parser.parse_args()
    outcome = chaos(project(), options.pages, options.seconds, options.seed)
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(project())[0],
    }
    text = json.dumps(about | outcome._asdict(), indent=1) + "\n"
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print(text, end="")
    return 1 if outcome.differences else 0


if __name__ == "__main__":
    sys.exit(main())
