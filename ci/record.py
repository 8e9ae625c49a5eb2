"""Recording: tables and verdicts of a run become the results that the repository keeps."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from ci import contents, experiments, parameters, runs
from ci.contents import Page
from ci.project import write
from ci.runs import Run
from lib import claims, journal, records
from lib.errors import BookError, nearest
from lib.journal import Judgement, Table
from lib.paths import Project
from lib.records import Origin, Record, Recorded

LIMIT = 1_000_000  # bytes of a table: the repository keeps what people can read


class Chosen(NamedTuple):
    """The run of a page, the tables of it to record, and what is recorded of the page so far."""

    page: Page
    run: Run
    tables: list[Table]
    old: Record | None


def record(
    project: Project,
    pages: list[Page],
    names: list[str],
    profile: str = "book",
    allow_dirty: bool = False,
) -> list[Path]:
    """Copy tables and verdicts of the last runs of a chapter's pages into results/.

    Without names all tables that a run computed are copied. A table that was itself read from
    results/ never is: that would pass it off as a new run; if its experiment has moved to this
    page, its old record moves, too. All is checked before any is written.
    """
    folder = records.folder(project, pages[0].chapter, profile)
    chosen = [
        Chosen(page, run, _tables(page, run, names), _read(folder / f"{page.page}.json"))
        for page, run in _runs(project, pages, names, profile)
    ]
    chosen = [each for each in chosen if each.tables or each.run.judgements]
    if not chosen:
        raise BookError(f"the last run of {pages[0].name} has no table that it computed itself")
    texts: dict[str, bytes] = {}
    for each in chosen:
        _check(project, each, allow_dirty)
        for table in each.tables:
            if table.name in texts:
                raise BookError(f"two pages have a table {table.name!r}; rename one of them")
            texts[table.name] = _content(each.run, table)
    new = [_merged(each, _moved(project, profile, each)) for each in chosen]
    rest = _robbed(project, profile, new)
    for name, content in texts.items():
        write(folder / f"{name}.csv", content)
    for path, other in rest.items():
        if other.tables or other.judgements:
            records.write(project, profile, other)
        else:
            path.unlink()
    paths = [records.write(project, profile, each) for each in new]
    return [folder / f"{name}.csv" for name in texts] + paths


def rule_of(judgement: Judgement) -> str:
    """Return the text of the rule that judges today what a judgement is of."""
    claim = claims.find(judgement.id)
    text = str(claim.questions[claims.question_of(claim, judgement.question)])
    number = f"; printed = {claim.number.value:g}" if claim.number and "printed" in text else ""
    return text + number


def _read(path: Path) -> Record | None:
    return records.read(path) if path.exists() else None


def _runs(
    project: Project, pages: list[Page], names: list[str], profile: str
) -> list[tuple[Page, Run]]:
    """Return the last runs of pages: of all, or of those that have one of the named tables."""
    if not names:
        return [(page, runs.require_last(project, page, profile)) for page in pages]
    found = [(page, run) for page in pages if (run := runs.last(project, page, profile))]
    if not found:
        runs.require_last(project, pages[0], profile)
    known = dict.fromkeys(name for _, run in found for name in run.tables)
    where = pages[0].chapter if len(pages) > 1 else pages[0].name
    for name in names:
        if name not in known:
            has = f"; it has {', '.join(known) or 'none'}"
            raise BookError(
                f"the last run of {where} has no table {name!r}{nearest(name, known) or has}"
            )
    return [(page, run) for page, run in found if set(names) & set(run.tables)]


def _tables(page: Page, run: Run, names: list[str]) -> list[Table]:
    """Return the tables that the run computed itself: all of them, or those of these names."""
    for name in names:
        if name in run.tables and run.tables[name].source != "live":
            raise BookError(
                f"{name} is no table that the last run of {page.name} computed itself; "
                f"`regretbook run {page.name} --profile {run.info.profile} --only {name}` does"
            )
    live = (table for table in run.tables.values() if table.source == "live")
    return [table for table in live if not names or table.name in names]


def _check(project: Project, chosen: Chosen, allow_dirty: bool) -> None:
    """Refuse a run that nobody could repeat, or whose verdicts rest on what is not recorded."""
    page, run, tables, old = chosen
    if run.info.dirty and not allow_dirty:
        raise BookError(
            f"the last run of {page.name} had local changes that no commit has; "
            "commit them and run it again, or add --allow-dirty"
        )
    usual = parameters.resolve(project, page, run.info.profile)
    if other := [n for n in usual if usual[n] != run.info.parameters.get(n)]:
        raise BookError(
            f"the last run of {page.name} had other values of {', '.join(other)} than profile "
            f"{run.info.profile} has; run it again without -p"
        )
    if run.info.policy:
        raise BookError(f"the last run of {page.name} had a policy of yours; run it without")
    for table in run.tables.values():
        computed = table.source == "live" and table.seconds is not None
        known = old.tables.get(table.name) if old else None
        if computed and table not in tables and (not known or known.sha256 != table.sha256):
            raise BookError(
                f"the last run of {page.name} computed {table.name} too, and its verdicts rest on "
                "it; record it as well, or run the others with --only"
            )
    for judgement in run.judgements:
        if claims.verdict_of(judgement) != judgement.verdict:
            raise BookError(
                f"the rule of {records.title(judgement)} changed after the last run of "
                f"{page.name}; run it again"
            )


def _content(run: Run, table: Table) -> bytes:
    """Return the bytes of a table as the run left them."""
    content = (run.folder / table.file).read_bytes()
    if hashlib.sha256(content).hexdigest() != table.sha256:
        raise BookError(f"table {table.name} was changed after its run; run the page again")
    if len(content) > LIMIT:
        raise BookError(
            f"table {table.name} has {len(content) / 1e6:.1f} MB, but at most 1 MB is recorded; "
            "keep fewer checkpoints"
        )
    return content


def _moved(project: Project, profile: str, chosen: Chosen) -> dict[str, Recorded]:
    """Return what other pages have recorded of experiments of this page that its run read."""
    page, run = chosen.page, chosen.run
    names = [name for name, table in run.tables.items() if table.source == "recorded"]
    own = {name for name in names if experiments.named(page, name)}
    return {
        name: table
        for path, other in records.every(project, page.chapter).items()
        for name, table in other.tables.items()
        if path.parent.name == profile and other.page != page.page and name in own
    }


def _merged(chosen: Chosen, moved: dict[str, Recorded]) -> Record:
    """Return the new record of a page: what this run has, and the tables of earlier runs.

    A verdict that this run could not give stays as it was recorded.
    """
    page, run, tables, old = chosen
    info = run.info
    origin = Origin(
        date=info.started,
        profile=info.profile,
        parameters=info.parameters,
        seed=info.seed,
        commit=info.commit,
        dirty=info.dirty,
        versions=info.versions,
        machine=info.machine,
        data={e.name: e.digest for e in run.entries(journal.Data) if e.digest},
    )
    now = {records.title(judgement): judgement for judgement in run.judgements}
    rules = {title: rule_of(judgement) for title, judgement in now.items()}
    for judgement in old.judgements if old and old.tables else []:
        title = records.title(judgement)
        if title in now and now[title].verdict == "not run" != judgement.verdict:
            now[title], rules[title] = judgement, old.rules.get(title, rules[title])
    kept = moved | (old.tables if old else {})
    new = {
        table.name: Recorded(table.sha256, table.caption, origin, table.seconds) for table in tables
    }
    return Record(page.chapter, page.page, kept | new, list(now.values()), origin, rules)


def _robbed(project: Project, profile: str, new: list[Record]) -> dict[Path, Record]:
    """Return what is left of the records of other pages whose experiments have moved to these."""
    chapter = new[0].chapter
    found = contents.of_chapter(contents.discover(project), chapter)
    pages = {page.page: page for page in found}
    tables = {name for record in new for name in record.tables}
    titles = {records.title(judgement) for record in new for judgement in record.judgements}
    rest = {}
    for path, other in records.every(project, chapter).items():
        if path.parent.name != profile or other.page in {record.page for record in new}:
            continue
        moved = sorted(tables & set(other.tables))
        page = pages.get(other.page)
        if page and (both := [name for name in moved if experiments.mentions(page, name)]):
            raise BookError(f"{page.name} has a table {both[0]!r}, too; rename one of the two")
        if moved:
            rest[path] = other._replace(
                tables={name: t for name, t in other.tables.items() if name not in tables},
                judgements=[j for j in other.judgements if records.title(j) not in titles],
            )
    return rest
