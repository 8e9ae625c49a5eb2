"""What is known of the claims: the judgements of runs and those that the repository recorded."""

from collections.abc import Iterable

from ci.cite import results_digest, tables_digest
from ci.contents import Page
from ci.runs import Run
from ci.scoreboard import Evidence
from lib import records
from lib.journal import Judgement
from lib.paths import Project


def of_runs(found: Iterable[tuple[Page, Run | None]]) -> list[Evidence]:
    """Return the judgements of finished runs."""
    return [
        _of_run(judgement, page, run)
        for page, run in found
        if run and run.ok
        for judgement in run.judgements
    ]


def _of_run(judgement: Judgement, page: Page, run: Run) -> Evidence:
    """Return a judgement as evidence: recorded where the run judged numbers of an earlier one."""
    digest = results_digest(run)
    if judgement.recorded:
        commit = judgement.recorded.removeprefix("commit ").split()[0].rstrip(",")
        profile = judgement.recorded.rpartition("profile ")[2] or run.info.profile
        return Evidence(judgement, page.name, "recorded", commit, profile, digest)
    return Evidence(judgement, page.name, "live", run.info.commit, run.info.profile, digest)


def recorded(project: Project) -> list[Evidence]:
    """Return the judgements that the repository keeps."""
    return [
        Evidence(
            judgement._replace(recorded=f"{record.origin}, profile {record.origin.profile}"),
            f"{record.chapter}/{record.page}",
            "recorded",
            record.origin.commit,
            record.origin.profile,
            tables_digest({name: table.sha256 for name, table in record.tables.items()}),
        )
        for record in records.every(project).values()
        for judgement in record.judgements
    ]


def gather(project: Project, found: Iterable[tuple[Page, Run | None]]) -> list[Evidence]:
    """Return everything that is known: live and recorded."""
    return of_runs(found) + recorded(project)
