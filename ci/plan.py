"""What a run would still compute: each page is executed with rehearsals in place of its tasks."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ci import contents, parameters
from ci.contents import Page
from ci.display import duration
from ci.execute import Request, execute
from ci.runs import Failure
from lib import engine
from lib.paths import Project
from lib.rehearsal import Planned, read


def plan(project: Project, profile: str, names: list[str], options: dict | None = None) -> int:
    """Print tasks, time and memory of every experiment of some pages, or of all."""
    pages = contents.discover(project)
    chosen = contents.select(pages, names) or [*pages.values()]
    parameters.check_options(options or {}, chosen)
    stopped, found = [], []
    for page, new, failure in rehearsed(project, profile, chosen, options):
        found += new
        _show(page.name, new)
        if failure:
            stopped.append(page.name)
            what = f"{failure.error}: {failure.message}"
            print(f"{page.name}: stopped in {failure.where()}: {what}", file=sys.stderr)
    if len(chosen) > 1:
        print(f"in all: {_amount(found)}")
    if stopped:
        print(
            f"regretbook: {', '.join(stopped)} could not go on with numbers that only stand in for "
            "results; what comes after is not counted",
            file=sys.stderr,
        )
    return 1 if stopped else 0


def rehearsed(
    project: Project, profile: str, chosen: list[Page], options: dict | None = None
) -> Iterator[tuple[Page, list[Planned], Failure | None]]:
    """Rehearse pages one after the other; give what each would compute, and where it stopped."""
    values = {page.name: parameters.resolve(project, page, profile, options) for page in chosen}
    with tempfile.TemporaryDirectory(prefix="regretbook-plan-") as temporary:
        # Nothing of a plan is published: its folders, logs and locks vanish with it.
        folder, known = Path(temporary), 0
        elsewhere = project._replace(build=folder, logs=folder / "logs")
        file = folder / "plan.jsonl"
        for page in chosen:
            request = Request(
                page,
                values[page.name],
                folder / page.place,
                profile,
                engine.PLAN,
                environment={"REGRETBOOK_PLAN": str(file)},
            )
            _, failure = execute(elsewhere, request)
            new = read(file)[known:]
            known += len(new)
            yield page, new, failure


def _show(name: str, found: list[Planned]) -> None:
    """Print a line for every experiment of a page, and one for the page."""
    for label in dict.fromkeys(planned.label for planned in found):
        print(f"{name}: {label}: {_amount([p for p in found if p.label == label])}")
    print(f"{name}: {_amount(found)}", flush=True)


def _amount(found: list[Planned]) -> str:
    """Return tasks, time and memory of some runs, one after the other, in words."""
    tasks, missing = sum(p.tasks for p in found), sum(p.missing for p in found)
    text = f"{missing} of {tasks} tasks"
    if missing:
        more = "more than " if any(p.more for p in found) else ""
        memory = max(p.memory for p in found) / 1e9
        text += f", {more}{duration(sum(p.seconds for p in found))}, {memory:.1f} GB"
    return text
