"""What a run would still compute: each page is executed with rehearsals in place of its tasks."""

import sys
import tempfile
from pathlib import Path

from ci import contents, parameters
from ci.display import duration
from ci.execute import Request, execute
from lib import engine
from lib.paths import Project
from lib.rehearsal import Planned, read


def plan(project: Project, profile: str, names: list[str]) -> int:
    """Print tasks, time and memory of every experiment of some pages, or of all."""
    pages = contents.discover(project)
    chosen = contents.select(pages, names) or [*pages.values()]
    values = {page.name: parameters.resolve(project, page, profile) for page in chosen}
    stopped, found = [], []
    with tempfile.TemporaryDirectory(prefix="regretbook-plan-") as temporary:
        # Nothing of a plan is published: its folders, logs and locks vanish with it.
        folder = Path(temporary)
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
            new = read(file)[len(found) :]
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
