"""What is known of the claims: the judgements of runs and those that the repository recorded."""

from collections.abc import Iterable

from ci.contents import Page
from ci.runs import Run
from ci.scoreboard import Evidence
from lib import records
from lib.paths import Project


def of_runs(found: Iterable[tuple[Page, Run | None]]) -> list[Evidence]:
    """Return the judgements of finished runs."""
    return [
        Evidence(judgement, page.name, "live", run.info.commit)
        for page, run in found
        if run and run.ok
        for judgement in run.judgements
    ]


def recorded(project: Project) -> list[Evidence]:
    """Return the judgements that the repository keeps."""
    return [
        Evidence(judgement, f"{record.chapter}/{record.page}", "recorded", record.origin.commit)
        for record in records.every(project).values()
        for judgement in record.judgements
    ]


def gather(project: Project, found: Iterable[tuple[Page, Run | None]]) -> list[Evidence]:
    """Return everything that is known: live and recorded."""
    return of_runs(found) + recorded(project)
