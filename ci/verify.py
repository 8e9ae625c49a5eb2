"""Verifying: what is recorded is what its record says, what the rules say, what a run gives."""

import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from ci import contents, parameters
from ci.contents import Page
from ci.display import say
from ci.execute import Request, execute, report
from ci.record import rule_of
from ci.runs import Run
from lib import claims, records, results
from lib.errors import BookError
from lib.journal import Compared, Judgement
from lib.paths import Project
from lib.records import Record

CHEAP = "cheap"  # in place of a number of trials: one task of one experiment of each chapter
DIGITS = 9  # of a measurement that must come out again


class Kept(NamedTuple):
    """A record and the file that holds it."""

    path: Path
    record: Record

    @property
    def profile(self) -> str:
        return self.path.parent.name


class Again(NamedTuple):
    """What computing a page again showed: rows compared, what is to be said, what differs."""

    rows: int = 0
    notes: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


def verify(
    project: Project,
    names: list[str],
    profile: str | None = None,
    trials: int | str | None = 1,
    engine: str = "threads",
) -> int:
    """Compare recorded tables and verdicts with their records, with the rules, and with new runs.

    The first `trials` trials of every experiment are computed again; if it is `cheap`, one task of
    the quickest experiment of each chapter; with None no page is executed. Return 1 when anything
    differs, after naming it.
    """
    pages = contents.discover(project)
    chosen = contents.select(pages, names)
    wanted = {page.place for page in chosen} or None
    chapters = {page.chapter for page in chosen} or None
    kept, troubles = _read(project, wanted, profile)
    troubles += _strays(project, chapters, profile)
    if names and not kept and not troubles:
        what = f" in profile {profile}" if profile else ""
        raise BookError(f"nothing is recorded of {', '.join(names)}{what}")
    rows = 0
    quickest = _quickest(kept) if trials == CHEAP else {}
    for each in kept:
        found = _files(each)
        found += _verdicts(each)
        only = quickest.get(each.path)
        if trials is not None and not found and (only or trials != CHEAP):
            again = _again(project, pages, each, trials, engine, only)
            rows += again.rows
            found += again.troubles
            for note in again.notes:
                say(f"{_name(each)}: {note}")
        say(f"{_name(each)}: {_counts([each])}, {_some(len(found), 'difference')}")
        troubles += found
    for trouble in troubles:
        print(f"regretbook: {trouble}", file=sys.stderr)
    again = f", {_some(rows, 'row')} computed again" if trials is not None else ""
    print(f"in all: {_counts(kept)}{again}, {_some(len(troubles), 'difference')}")
    return 1 if troubles else 0


def _quickest(kept: list[Kept]) -> dict[Path, str]:
    """Return the table of each chapter that took least time, by the record that has it."""
    found: dict[str, tuple[float, Path, str]] = {}
    for each in kept:
        for name, table in each.record.tables.items():
            if table.seconds is not None:
                mine = (table.seconds, each.path, name)
                found[each.record.chapter] = min(found.get(each.record.chapter, mine), mine)
    return {path: name for _, path, name in found.values()}


def _name(kept: Kept) -> str:
    return f"{kept.record.chapter}/{kept.record.page}, profile {kept.profile}"


def _counts(kept: list[Kept]) -> str:
    tables = sum(len(each.record.tables) for each in kept)
    verdicts = sum(len(each.record.judgements) for each in kept)
    return f"{_some(tables, 'table')}, {_some(verdicts, 'verdict')}"


def _some(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


def _read(
    project: Project, wanted: set[str] | None, profile: str | None
) -> tuple[list[Kept], list[str]]:
    """Return the records of these pages, and say which are damaged or in another's place."""
    kept, troubles = [], []
    for path in sorted(project.results.glob("*/*/*.json")):
        place = f"{path.parts[-3]}/{path.stem}"
        if (wanted and place not in wanted) or profile not in (None, path.parent.name):
            continue
        try:
            record = records.read(path)
        except BookError as error:
            troubles.append(str(error))
            continue
        if f"{record.chapter}/{record.page}" != place:
            troubles.append(f"{records.where(path)} says it is of {record.chapter}/{record.page}")
        else:
            kept.append(Kept(path, record))
    return kept, troubles


def _strays(project: Project, chapters: set[str] | None, profile: str | None) -> list[str]:
    """Name the tables in results/ that no record lists, or that two list."""
    troubles = []
    for path in sorted(project.results.rglob("*.csv")):
        parts = path.relative_to(project.results).parts
        if (chapters and parts[0] not in chapters) or (profile and profile not in parts):
            continue
        listed, noted = [], None
        for record in path.parent.glob("*.json"):
            try:
                tables = records.read(record).tables
            except BookError:  # said elsewhere
                listed.append(record.stem)
                continue
            if path.stem in tables:
                listed.append(record.stem)
                noted = tables[path.stem]
        if len(parts) not in (2, 3) or not listed:
            troubles.append(records.trouble(path, None))
        elif len(parts) == 2:  # of no page: what `bench` measured
            troubles += filter(None, [records.trouble(path, noted)])
        elif len(listed) > 1:
            troubles.append(f"{records.where(path)} is recorded by {' and by '.join(listed)}")
    return troubles


def _files(kept: Kept) -> list[str]:
    """Compare the digest of every recorded table with its file."""
    found = (
        records.trouble(kept.path.with_name(f"{name}.csv"), table)
        for name, table in kept.record.tables.items()
    )
    return [trouble for trouble in found if trouble]


def _verdicts(kept: Kept) -> list[str]:
    """Judge every recorded measurement by the rule of today."""
    troubles = []
    for judgement in kept.record.judgements:
        title, where = records.title(judgement), records.where(kept.path)
        try:
            verdict, rule = claims.verdict_of(judgement), rule_of(judgement)
        except BookError as error:
            troubles.append(f"{where}: {error}")
            continue
        before = kept.record.rules.get(title, rule)
        changed = f"its rule was '{before}' and is '{rule}'" if before != rule else ""
        if verdict != judgement.verdict:
            why = f" ({changed})" if changed else ""
            troubles.append(
                f"{where}: {title} is recorded as {judgement.verdict}, "
                f"but the ledger says {verdict}{why}"
            )
        elif changed:
            say(f"{_name(kept)}: {title} is {verdict} still, but {changed}")
    return troubles


def _again(
    project: Project, pages, kept: Kept, trials: int | str, engine: str, only: str | None
) -> Again:
    """Execute a page with the parameters of its tables, for as many sets of them as there are.

    With `only` that table alone is computed again.
    """
    record, where = kept.record, records.where(kept.path)
    page = next((p for p in pages.values() if p.place == f"{record.chapter}/{record.page}"), None)
    if page is None:
        return Again(troubles=(f"{where} is of a page that the book does not have",))
    whole = Again()
    for values, names in _sets(record):
        names = [name for name in names if only in (None, name)]
        if only and not names:
            continue
        say(f"{_name(kept)}: computing again{f' a part of {only}' if only else ''}")
        judged = values == record.origin.parameters
        found = _execute(project, page, kept, values, names, trials, engine, judged)
        whole = Again(*(a + b for a, b in zip(whole, found, strict=True)))
    return whole


def _sets(record: Record) -> list[tuple[dict, list[str]]]:
    """Return the parameters of a record, first those of its verdicts, with the tables of each."""
    sets = {json.dumps(record.origin.parameters, sort_keys=True): []}
    for name, table in record.tables.items():
        sets.setdefault(json.dumps(table.origin.parameters, sort_keys=True), []).append(name)
    return [(json.loads(key), names) for key, names in sets.items()]


def _execute(
    project: Project,
    page: Page,
    kept: Kept,
    recorded: dict,
    names: list[str],
    trials: int | str,
    engine: str,
    judged: bool,
) -> Again:
    where = records.where(kept.path)
    try:
        values = parameters.resolve(project, page, kept.profile, recorded)
    except BookError as error:
        return Again(troubles=(f"{where}: {error}",))
    gone = [name for name in recorded if name not in page.parameters]
    notes = [f"{page.name} has no parameter {', '.join(gone)} any more"] if gone else []
    depth = {"REGRETBOOK_VERIFY": str(trials) if names else "0"}
    with tempfile.TemporaryDirectory(prefix="regretbook-") as folder:
        target = Path(folder) / "run"
        request = Request(page, values, target, kept.profile, engine, None, depth, tuple(names))
        run, failure = execute(project, request)
        if failure:
            report(project, request, failure)
            return Again(0, tuple(notes), (f"{where}: {page.name} failed",))
        tables = _tables(kept, run, names)
        troubles = [*tables.troubles, *(_judgements(kept, run) if judged else [])]
        return Again(tables.rows, (*notes, *tables.notes), tuple(troubles))


def _tables(kept: Kept, run: Run, names: list[str]) -> Again:
    """Return what the run says of the recorded tables of these names."""
    compared = {entry.name: entry for entry in run.entries(Compared)}
    rows, notes, troubles = 0, [], []
    for name in names:
        path = kept.path.with_name(f"{name}.csv")
        if name in compared:
            entry = compared[name]
        elif name in run.tables and run.tables[name].source == "live":  # saved by the page itself
            fresh = (run.folder / run.tables[name].file).read_text(encoding="utf-8")
            text = path.read_text(encoding="utf-8")
            entry = Compared(name, *results.differences(text, fresh, None, True))
        else:
            entry = Compared(name, 0, f"{run.info.chapter}/{run.info.page} has it no more")
        rows += entry.rows
        notes += [f"{name} is not computed again: {entry.skipped}"] if entry.skipped else []
        troubles += [f"{records.where(path)}: {entry.difference}"] if entry.difference else []
    return Again(rows, tuple(notes), tuple(troubles))


def _judgements(kept: Kept, run: Run) -> list[str]:
    """Compare the recorded verdicts with those that the page gives from the recorded tables."""
    now = {records.title(judgement): judgement for judgement in run.judgements}
    troubles = []
    for judgement in kept.record.judgements:
        title = records.title(judgement)
        before, after = _text(judgement), _text(now.get(title))
        if before != after:
            troubles.append(
                f"{records.where(kept.path)}: {title} is recorded as {before}, computed {after}"
            )
    return troubles


def _text(judgement: Judgement | None) -> str:
    if judgement is None:
        return "nothing"
    measured = judgement.measured
    return judgement.verdict + ("" if measured is None else f" ({measured:.{DIGITS}g})")
