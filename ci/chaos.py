"""Chaos: kill, interrupt and damage builds at random, then compare every table with a quiet run.

    python -m ci.chaos --seconds 600 --seed 1 PAGE…

Both runs work on copies of the project with stores of their own, so that nothing of the reader's is
touched. The outcome is one JSON object; `make chaos` keeps it in `results/chaos.json`.
"""

import argparse
import contextlib
import json
import os
import random
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

from ci import contents, runs
from ci.project import commit
from lib.paths import CODE, Project, project, project_at

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".cache", "_build", "__pycache__", "raw")
LONGEST = 12.0  # seconds until the next fault
ENDING = 1800.0  # seconds that a quiet build may take


class Outcome(NamedTuple):
    """What was done to the builds, and what of their tables differed in the end."""

    seed: int
    seconds: float
    pages: list[str]
    faults: dict[str, int]
    tables: int
    differences: list[str]


def chaos(where: Project, names: list[str], seconds: float, seed: int) -> Outcome:
    """Disturb builds of these pages for some time and return what came of it."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="regretbook-chaos-") as folder:
        quiet, wild = (_copy(where, Path(folder) / name) for name in ("quiet", "wild"))
        _finish(_start(quiet, names))
        expected = _tables(quiet, names)
        end, faults = time.monotonic() + seconds, Counter()
        while time.monotonic() < end:
            faults[_disturb(wild, names, rng)] += 1
        _finish(_start(wild, names))
        found = _tables(wild, names)
    differences = [
        name for name in sorted(expected | found) if expected.get(name) != found.get(name)
    ]
    return Outcome(seed, seconds, names, dict(sorted(faults.items())), len(expected), differences)


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


def _disturb(where: Project, names: list[str], rng: random.Random) -> str:
    """Start a run, let it live for a moment, do one bad thing, and return its name."""
    process = _start(where, names)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(rng.uniform(0.5, LONGEST))
    name, fault = rng.choice(sorted(FAULTS.items()))
    fault(where, process, rng)
    if process.poll() is None:
        process.kill()
    process.communicate()
    return name


def _files(where: Project, rng: random.Random) -> list[Path]:
    """Return some files that runs keep: results, programs, machine code, finished pages."""
    kept = [p for root in (where.cache, where.build) for p in root.rglob("*") if p.is_file()]
    kept = sorted(path for path in kept if path.suffix != ".lock")
    return rng.sample(kept, min(len(kept), 5))


def _kill(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    process.kill()


def _interrupt(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    process.send_signal(rng.choice([signal.SIGINT, signal.SIGTERM]))
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()


def _flip(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    """Change one byte of some files."""
    for path in _files(where, rng):
        content = bytearray(path.read_bytes())
        if content:
            content[rng.randrange(len(content))] ^= 1 + rng.randrange(255)
            path.write_bytes(content)


def _truncate(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    """Cut some files short, as a machine that loses power does."""
    for path in _files(where, rng):
        os.truncate(path, rng.randint(0, path.stat().st_size))


def _delete(where: Project, process: subprocess.Popen, rng: random.Random) -> None:
    for path in _files(where, rng):
        path.unlink(missing_ok=True)


FAULTS = {
    "kill": _kill,
    "interrupt": _interrupt,
    "flip": _flip,
    "truncate": _truncate,
    "delete": _delete,
}


def _tables(where: Project, names: list[str]) -> dict[str, str]:
    """Return the digests of all tables of the last runs of pages, those of exact experiments."""
    pages = contents.select(contents.discover(where), names)
    found = {page.name: runs.require_last(where, page, "smoke") for page in pages}
    return {
        f"{name} {table.name}": table.sha256
        for name, run in found.items()
        for table in run.tables.values()
    }


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
