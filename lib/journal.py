"""The journal of a run: a JSON line for each dataset read, page loaded, table, figure and verdict.

A page knows nothing of the build; the build reads only this file and the folder it lies in. Each
kind of entry is a NamedTuple: `note` alone writes them, `read` alone reads them.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple, get_args

from lib.errors import BookError

RECORDED = "recorded"  # among the sizes of a run: the origin of the recorded table behind it
VERDICTS = (
    "reproduced",
    "direction only",
    "not reproduced",
    "refuted",
    "undecided",
    "vacuous at this scale",
    "not run",
)


class Data(NamedTuple):
    """A dataset that the page asked for; `digest` is None when it is absent."""

    name: str
    digest: str | None
    where: str


class Loaded(NamedTuple):
    """Another page whose definitions the page took."""

    name: str
    digest: str


class Table(NamedTuple):
    """A table beside the notebook; `source` says whether it was computed live or recorded."""

    name: str
    file: str
    sha256: str
    caption: str
    source: str
    seconds: float | None = None  # what computing it took, where that was measured


class Figure(NamedTuple):
    """A figure that the page shows, with the files that hold its curves and a comparison."""

    name: str
    caption: str
    alt: str
    curves: str = ""  # the numbers behind its lines
    beside: str = ""  # the figure over the published curves, where there are any


class Shown(NamedTuple):
    """A table that the page shows to its reader, apart from those that it computed and keeps."""

    name: str
    caption: str


class Judgement(NamedTuple):
    """What one run says of one question of a claim, with everything that its rule used."""

    id: str
    question: str
    verdict: str
    scale: str = ""  # "printed scale", "reduced (…)"; empty where a claim prints no sizes
    share: float | None = None  # of the printed sizes that the run had, 1 at printed scale
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    trials: int | None = None
    needed: int | None = None  # trials that would decide an undecided claim
    figure: str | None = None
    note: str = ""
    facts: dict = {}  # noqa: RUF012
    values: list = []  # noqa: RUF012
    control: list = []  # noqa: RUF012  # value, low and high of the control, where one was run
    recorded: str = ""  # where the numbers come from when this run did not compute them itself


class Compared(NamedTuple):
    """A recorded table that `verify` computed again: how many rows, and what differs first."""

    name: str
    rows: int
    difference: str  # empty when all rows agree
    skipped: str = ""  # why it was not computed again, where it was not


class Compiled(NamedTuple):
    """How long the run has compiled so far, noted after each of its simulations."""

    seconds: float


Entry = Data | Loaded | Table | Figure | Shown | Judgement | Compared | Compiled
KINDS = {kind.__name__.lower(): kind for kind in get_args(Entry)}


def folder() -> Path | None:
    """Return the folder of the current run, or None when the page is executed by hand.

    It is never made here: a kernel that outlives its killed run would leave it behind for ever.
    """
    run = os.environ.get("REGRETBOOK_RUN")
    if run and not Path(run).is_dir():
        raise BookError(f"the folder of this run is gone ({run}); run the page again")
    return Path(run) if run else None


def note(entry: Entry) -> None:
    """Append one entry; without a run folder nothing is written."""
    run = folder()
    if run is None:
        return
    line = {"kind": type(entry).__name__.lower(), **entry._asdict()}
    with open(run / "journal.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def read(run: Path) -> list[Entry]:
    """Return the entries of a finished run, oldest first."""
    path = Path(run) / "journal.jsonl"
    if not path.exists():
        return []
    return [_entry(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def checked(kind: type, values: dict) -> Entry:
    """Return an entry of a kind; ValueError or TypeError when its parts are not what they are."""
    entry = kind(**values)
    for name, hint in kind.__annotations__.items():
        value = getattr(entry, name)
        allowed = hint | int if float in (hint, *get_args(hint)) else hint
        if not isinstance(value, allowed):
            raise TypeError(f"{name} is {value!r}")
    if kind is Judgement and entry.verdict not in VERDICTS:
        raise ValueError(f"there is no verdict {entry.verdict!r}")
    return entry


def _entry(line: str) -> Entry:
    try:
        values = json.loads(line)
        return checked(KINDS[values.pop("kind")], values)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BookError(
            f"the journal of a run has a line that nothing wrote: {line[:80]}"
        ) from None
