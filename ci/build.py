"""The build: execute what is stale, assemble the pages, let Jupyter Book render them."""

import json
import re
import shutil
import subprocess
import sys

from ci import assemble, chapters, parameters, runs, scoreboard, stale
from ci.chapters import Chapter
from ci.execute import execute, report
from ci.project import Project, lock, require_writable, shown, write
from ci.runs import Run
from lib.errors import BookError

# Jupyter Book has no `python -m`; its script may belong to another interpreter.
JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"


def build(project: Project, profile: str, names: list[str], engine: str) -> int:
    """Build the book in one profile; return 1 when a chapter or a page failed, after the others."""
    known = chapters.discover(project)
    listed = chapters.toc_pages(project)
    _check(project, known, listed)
    chosen = [chapters.find(known, name).name for name in names]
    book = [name for name, chapter in known.items() if chapter.page in listed]
    values = {
        name: parameters.resolve(project, known[name], profile)
        for name in dict.fromkeys(book + chosen)
    }
    require_writable(project.build)
    busy = f"another build is running in {project.build}; wait for it to end"
    with lock(project.build / ".build.lock", busy):
        found: dict[str, Run | None] = {}
        for name in values:
            run = runs.read(runs.place(project, name, profile))
            if stale.is_fresh(project, known[name], values[name], run, known):
                print(f"{name}: up to date", flush=True)
                found[name] = run
            elif not chosen or name in chosen:
                found[name] = _execute(project, known[name], values[name], profile, engine)
            else:
                found[name] = None
        shown_pages = {name: (known[name], found[name]) for name in book}
        rendered = _render(project, assemble.stage(project, listed, shown_pages))
    failed = [name for name, run in found.items() if run and not run.ok]
    if failed:
        print(f"regretbook: failed: {', '.join(failed)}; the others are done", file=sys.stderr)
    return 0 if rendered and not failed else 1


def _check(project: Project, known: dict[str, Chapter], listed: list[str]) -> None:
    """Refuse files of the book that contradict each other, before anything runs."""
    if missing := [page for page in listed if not (project.book / f"{page}.md").exists()]:
        raise BookError(f"_toc.yml lists {missing[0]}, but there is no book/{missing[0]}.md")
    parameters.check_profiles(project, known)
    scoreboard.ledger(project)


def _execute(project: Project, chapter: Chapter, values: dict, profile: str, engine: str) -> Run:
    """Execute one chapter and say how it went."""
    print(f"{chapter.name}: executing, profile {profile}", flush=True)
    place = runs.place(project, chapter.name, profile)
    run, failure = execute(project, chapter, values, place, profile, engine)
    if failure:
        report(project, chapter.name, failure)
    else:
        print(f"{chapter.name}: done in {run.info['seconds']:.0f} s", flush=True)
    return run


def _render(project: Project, tree: assemble.Tree) -> bool:
    """Run Jupyter Book unless nothing changed; every warning of Sphinx is an error.

    Navigation stands on every page, so a changed title or table of contents rebuilds them all; so
    does a failure, since Sphinx would not repeat the warnings of pages that it believes done.
    """
    stamp, index = project.build / "html.json", project.html / "index.html"
    before = json.loads(stamp.read_text()) if stamp.exists() and index.exists() else {}
    if before == tree._asdict():
        print(f"nothing changed: {shown(index)}")
        return True
    stamp.unlink(missing_ok=True)
    command = [sys.executable, "-c", JUPYTER_BOOK, "build", project.source, "-W", "--keep-going"]
    command += ["--config", project.config, "--toc", project.toc, "--path-output", project.root]
    if before.get("structure") != tree.structure:
        shutil.rmtree(project.html, ignore_errors=True)
        command.append("--all")
    print("rendering the pages", flush=True)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(list(map(str, command)), **pipes)
    output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    log = project.logs / "sphinx.log"
    write(log, output)
    if done.returncode:
        lines = output.replace(f"{project.source}/", "").splitlines()
        wrong = [line for line in lines if re.search("WARNING|ERROR|Error", line)] or lines[-5:]
        where = f"(see {shown(log)})"
        sentence = "regretbook: Sphinx did not accept the pages, beginning with:"
        print("\n  ".join([sentence, *wrong[:5], where]), file=sys.stderr)
        return False
    write(stamp, json.dumps(tree._asdict()) + "\n")
    print(f"built: {shown(index)}")
    return True
