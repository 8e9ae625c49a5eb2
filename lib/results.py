"""Tables of a run: computed live, or read from `results/`, where every table has its record.

What a command wants of the experiments of a page stands in the environment of its kernel:
`REGRETBOOK_PAGE` (chapter/page) and `REGRETBOOK_PROFILE` say which recorded tables are meant,
`REGRETBOOK_ONLY` names the experiments to compute, and `REGRETBOOK_VERIFY` asks to compute
recorded rows again: those of the first so many trials, or `cheap`, those of a single task.
"""

import contextlib
import csv
import hashlib
import io
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pandas as pd

from lib import datasets, engine, journal, records
from lib.errors import BookError
from lib.files import write_atomically
from lib.journal import RECORDED
from lib.paths import project
from lib.records import Origin, Recorded

PRINTED = "thesis"  # the profile of the printed scale
SOON = 120.0  # seconds: an experiment without trials that took less is verified as a whole


class Experiment(NamedTuple):
    """A table and where it came from: live, recorded, or missing."""

    table: pd.DataFrame | None
    source: str
    note: str  # one sentence for the caption; empty for a live run
    origin: Origin | None = None  # of a recorded table

    @property
    def sizes(self) -> dict:
        """Return what `claims.judge(…, sizes=…)` is to know of a recorded table.

        Its parameters, and where it comes from: who is judged on recorded numbers must say so.
        """
        if self.origin is None:
            return {}
        return self.origin.parameters | {RECORDED: f"{self.origin}, profile {self.origin.profile}"}


def save(name: str, table: pd.DataFrame, caption: str) -> pd.DataFrame:
    """Write a table into the folder of the run, for download and for `regretbook record`."""
    _note(name, as_text(table), caption, "live")
    return table


def experiment(
    name: str,
    caption: str,
    run: Callable[..., pd.DataFrame],
    *,
    trials: int | None = None,
    needs: Sequence[str] = (),
    exact: bool = True,
) -> Experiment:
    """Compute a table by run(trials), or run() without trials; show the recorded one where asked.

    With `trials` the table has a column `trial`, and the rows of a trial depend on no other trial.
    `needs` names datasets. `exact=False` marks what no rerun repeats, such as measured times.
    The table is returned as its file has it: a verdict is the same from a live and a recorded one.
    """
    absent = [dataset for dataset in needs if datasets.find(dataset) is None]
    where = " and ".join(map(datasets.why_absent, absent))
    only = asked()
    if os.environ.get("REGRETBOOK_VERIFY"):
        reason = where if absent else "" if exact else "no rerun repeats it"
        return _verified(name, caption, run, trials, reason)
    if only and name not in only:
        return _instead(name, caption, f"this run computes {', '.join(only)} alone", [profile()])
    if absent:
        # The smoke profile is for tests, which nobody records: it shows the book's table.
        kept = [profile(), "book"] if profile() == "smoke" else [profile()]
        how = " && ".join(f"regretbook data fetch {dataset}" for dataset in absent)
        return _instead(name, caption, where, kept, f"; get the data with: {how}")
    start, before = time.perf_counter(), engine.spent()
    table = run() if trials is None else run(trials)
    # What the store already has took its time, too; other work on the machine took none of it.
    seconds = (engine.spent() - before) / engine.cores() or time.perf_counter() - start
    if trials is not None and "trial" not in table:
        raise BookError(f"experiment {name} is given trials, so its table needs a column `trial`")
    text = as_text(table)
    _note(name, text, caption, "live", round(seconds, 2))
    return Experiment(as_table(text), "live", "")


def recorded(name: str, profile: str = PRINTED) -> Experiment:
    """Return what `results/` keeps of an experiment of this chapter, to show beside the live one.

    Where nothing is recorded the table is None.
    """
    scale = "at the printed scale" if profile == PRINTED else f"in profile {profile}"
    kept = _kept(name, profile)
    if kept is None:
        return Experiment(None, "missing", f"Nothing is recorded {scale} yet.")
    found, text = kept
    table = as_table(text)
    note = f"Recorded {scale}: {_about(found.origin, table)}."
    _note(f"{name}-{profile}", text, f"{found.caption}. {note}", "recorded")
    return Experiment(table, "recorded", note, found.origin)


def at_best(name: str, live: Experiment) -> Experiment:
    """Return what is recorded of an experiment at the printed scale, or the live one.

    For figures and tables of the book; what is judged is the run itself, and whoever runs a page
    with numbers of their own wants to see these.
    """
    found = recorded(name)
    own = os.environ.get("REGRETBOOK_OWN") and live.source == "live"
    return live if own or found.table is None else found


def profile() -> str:
    """Return the profile of the current run."""
    return os.environ.get("REGRETBOOK_PROFILE") or "book"


def asked() -> list[str]:
    """Return the experiments that this run is to compute; none means all."""
    return [name for name in os.environ.get("REGRETBOOK_ONLY", "").split(",") if name]


def as_text(table: pd.DataFrame) -> str:
    """Return a table as its file has it: ten digits, so that equal numbers are equal text."""
    return table.to_csv(index=False, float_format="%.10g", lineterminator="\n")


def as_table(text: str) -> pd.DataFrame:
    """Return the table of a file."""
    try:
        return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise BookError(f"a recorded table is damaged: {error}; restore it with git") from None


def _note(name: str, text: str, caption: str, source: str, seconds: float | None = None) -> None:
    """Write a table beside the notebook and into the journal; without a run, do nothing."""
    run = journal.folder()
    if run is not None:
        file = f"tables/{name}.csv"
        content = text.encode()
        write_atomically(run / file, content)
        sha256 = hashlib.sha256(content).hexdigest()
        journal.note(journal.Table(name, file, sha256, caption, source, seconds))


def _kept(name: str, profile: str) -> tuple[Recorded, str] | None:
    """Return what is recorded under a name in this chapter; by hand, no chapter is known."""
    chapter = os.environ.get("REGRETBOOK_PAGE", "").partition("/")[0]
    return records.table(project(), chapter, profile, name) if chapter else None


def _instead(
    name: str, caption: str, why: str, profiles: list[str], otherwise: str = ""
) -> Experiment:
    """Return the recorded table in place of one that is not computed, and say why."""
    kept = next(filter(None, (_kept(name, each) for each in profiles)), None)
    if kept is None:
        return Experiment(None, "missing", f"{why} and no run is recorded{otherwise}")
    found, text = kept
    table = as_table(text)
    page = vars(sys.modules["__main__"])  # where the parameters of a page are
    other = [n for n, v in found.origin.parameters.items() if repr(page.get(n, v)) != repr(v)]
    differs = f"; it had another value of {', '.join(other)}" if other else ""
    note = f"Recorded run ({_about(found.origin, table)}): {why}{differs}."
    _note(name, text, f"{caption}. {note}", "recorded")
    return Experiment(table, "recorded", note, found.origin)


def _about(origin: Origin, table: pd.DataFrame) -> str:
    """Return trials, commit and date of a recorded table."""
    count = table["trial"].nunique() if "trial" in table else 0
    trials = [f"{count} trial{'s' if count > 1 else ''}"] if count else []
    return ", ".join([*trials, str(origin)])


def _verified(name: str, caption: str, run: Callable, trials: int | None, reason: str):
    """Compute recorded rows again and compare; the page goes on with the recorded table."""
    kept = _kept(name, profile())
    if kept is None:
        return Experiment(None, "missing", f"{name} is not recorded")
    found, text = kept
    only = asked()
    if not only or name in only:
        journal.note(_compared(name, run, trials, found, text, reason))
    _note(name, text, caption, "recorded")
    return Experiment(as_table(text), "recorded", "Recorded run, verified.", found.origin)


def _compared(
    name: str, run: Callable, trials: int | None, found: Recorded, text: str, reason: str
) -> journal.Compared:
    depth = os.environ["REGRETBOOK_VERIFY"]
    cheap = depth == "cheap"
    if not reason and depth == "0":
        reason = "no trial was asked for"
    if not reason and trials is None and found.seconds is None:
        reason = "it has no trials, and what it took is not recorded"
    if not reason and trials is None and found.seconds >= SOON:
        reason = f"it has no trials and took {found.seconds:.0f} s"
    if reason:
        return journal.Compared(name, 0, "", reason)
    count = None if trials is None else min(trials, 1 if cheap else int(depth))
    with _empty_store(), engine.limited(1) if cheap else contextlib.nullcontext():
        try:
            fresh = run() if count is None else run(count)
        except Exception as error:
            if not cheap:
                raise
            # A page need not know what to do with a part of its results.
            why = f"it cannot be computed in part ({type(error).__name__}: {error})"
            return journal.Compared(name, 0, "", why)
    return journal.Compared(name, *differences(text, as_text(fresh), count, not cheap))


@contextlib.contextmanager
def _empty_store() -> Iterator[None]:
    """Let tasks be computed although the store has them: otherwise nothing would be verified."""
    before = os.environ.get("REGRETBOOK_STORE")
    with tempfile.TemporaryDirectory(prefix="regretbook-") as folder:
        os.environ["REGRETBOOK_STORE"] = folder
        try:
            yield
        finally:
            del os.environ["REGRETBOOK_STORE"]
            if before is not None:
                os.environ["REGRETBOOK_STORE"] = before


def differences(kept: str, fresh: str, trials: int | None, whole: bool) -> tuple[int, str]:
    """Return how many rows were compared, and where a computed table differs from the recorded one.

    Of the recorded rows only the first `trials` trials count; `whole` says that all of these must
    have been computed. Rows are compared as text; their order does not matter.
    """
    (names, *old), (columns, *new) = _rows(kept), _rows(fresh)
    if names != columns:
        return len(new), f"columns: recorded {', '.join(names)}, computed {', '.join(columns)}"
    lines = dict(enumerate(old, 2))
    if trials is not None:
        if "trial" not in names:
            return len(new), "the recorded table has no column trial"
        at = names.index("trial")
        lines = {line: row for line, row in lines.items() if float(row[at]) < trials}
    surplus = list((Counter(new) - Counter(lines.values())).elements())
    lacking = Counter(lines.values()) - Counter(new)
    left = {line: row for line, row in lines.items() if row in lacking}
    if surplus and left:
        row = surplus[0]
        alike = {line: sum(map(str.__eq__, row, each)) for line, each in left.items()}
        line = max(alike, key=alike.get)
        at = next(i for i, pair in enumerate(zip(row, left[line], strict=True)) if len({*pair}) > 1)
        values = f"recorded {left[line][at] or 'nothing'}, computed {row[at] or 'nothing'}"
        return len(new), f"line {line}, column {names[at]}: {values}"
    if surplus:
        return len(new), f"computed, but not recorded: {', '.join(surplus[0])}"
    if whole and left:
        return len(new), f"line {next(iter(left))}: recorded, but not computed"
    return len(new), ""


def _rows(text: str) -> list[tuple[str, ...]]:
    return [tuple(row) for row in csv.reader(io.StringIO(text))]
