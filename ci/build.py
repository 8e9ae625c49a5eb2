"""The build: execute what is stale, assemble the pages, let Jupyter Book render them."""

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from ci import assemble, contents, nursery, parameters, runs, stale
from ci.contents import Page, Pages
from ci.display import queued, say
from ci.execute import Request, execute, report, stop
from ci.finish import finish
from ci.project import lock, shown, write
from ci.runs import Run
from ci.site import Site, site_of
from lib import claims, provenance, toc
from lib.errors import BookError
from lib.files import require_writable
from lib.paths import CODE, Project


def build(
    project: Project, profile: str, names: list[str], engine: str = "threads", jobs: int = 0
) -> int:
    """Build the book in one profile; return 1 when a page failed, after the others are done.

    `jobs` pages are executed at a time, by default one for each core.
    """
    pages = contents.discover(project)
    check(project, pages)
    chosen = contents.select(pages, names)
    values = {name: parameters.resolve(project, page, profile) for name, page in pages.items()}
    site = site_of(project, profile)
    require_writable(site.html.parent)
    busy = f"another build of profile {profile} is running; wait for it to end"
    with lock(site.lock, busy):
        found: dict[str, Run | None] = {}
        waiting: list[Page] = []
        for name, page in pages.items():
            run = runs.read(runs.place(project, page, profile))
            if stale.is_fresh(project, page, values[name], run, pages):
                say(f"{name}: up to date")
                found[name] = run
            elif not chosen or page in chosen:
                waiting.append(page)
            else:
                found[name] = None
        found |= _execute(project, waiting, values, profile, engine, jobs)
        shown_pages = {name: (page, found[name]) for name, page in pages.items()}
        rendered = _render(project, site, assemble.stage(project, site, shown_pages, profile))
    failed = [name for name, run in found.items() if run and not run.ok]
    if failed:
        print(f"regretbook: failed: {', '.join(failed)}; the others are done", file=sys.stderr)
    return 0 if rendered and not failed else 1


def check(project: Project, pages: Pages) -> None:
    """Refuse files of the book that contradict each other, before anything runs."""
    missing = [file for file in toc.listed(project) if not (project.book / f"{file}.md").exists()]
    if missing:
        raise BookError(f"_toc.yml lists {missing[0]}, but there is no book/{missing[0]}.md")
    parameters.check_profiles(project, pages.values())
    claims.ledger()


def _execute(
    project: Project, pages: list[Page], values: dict, profile: str, engine: str, jobs: int
) -> dict[str, Run]:
    """Execute pages, some at a time, each kernel with its share of the cores."""
    cores = provenance.cores()
    jobs = min(jobs or cores, len(pages)) or 1
    threads = max(1, cores // jobs)

    def one(page: Page) -> tuple[str, Run]:
        say(f"{page.name}: executing, profile {profile}")
        place = runs.place(project, page, profile)
        took = expected[page.name]
        more = {"expected": took, "nursery": kernels}
        request = Request(page, values[page.name], place, profile, engine, threads, **more)
        run, failure = execute(project, request)
        if failure:
            report(project, request, failure)
        else:
            say(f"{page.name}: done in {run.info.seconds:.0f} s")
        return page.name, run

    expected = {p.name: runs.expected(project, p, profile, values[p.name]) for p in pages}
    # Whoever ends last should be short: the long pages begin, and one that is new may be longest.
    order = sorted(
        _from_both_ends(pages), key=lambda page: expected[page.name] or float("inf"), reverse=True
    )
    with (
        nursery.opened(project, [page.text for page in pages]) as kernels,
        ThreadPoolExecutor(jobs) as pool,
        queued(expected, jobs),
    ):
        try:
            return dict(pool.map(one, order))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise


def _from_both_ends(pages: list[Page]) -> list[Page]:
    """Return the first, the last, the second, … page.

    Neighbours run the same programs: started at one moment, both would compile them.
    """
    return [pages[i // 2 if i % 2 == 0 else -1 - i // 2] for i in range(len(pages))]


def _render(project: Project, site: Site, tree: assemble.Tree) -> bool:
    """Run Jupyter Book unless nothing changed; every warning of Sphinx is an error.

    Navigation stands on every page, so a changed title or table of contents rebuilds them all; so
    does a failure, since Sphinx would not repeat the warnings of pages that it believes done. Only
    a book that was rendered whole takes the place of the one that people read.
    """
    index = site.html / "index.html"
    before = _stamp(site) if index.exists() else {}
    if before == tree._asdict():
        print(f"nothing changed: {shown(index)}")
        return True
    site.stamp.unlink(missing_ok=True)
    command = [sys.executable, "-m", "ci.render", site.out / ".render.lock", "build", site.source]
    command += ["-W", "--keep-going", "--config", project.config, "--toc", project.toc]
    command += ["--path-output", site.out]
    if before.get("structure") != tree.structure:
        shutil.rmtree(site.rendered, ignore_errors=True)
        command.append("--all")
    print("rendering the pages", flush=True)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(list(map(str, command)), cwd=CODE, **pipes)
    output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    log = site.out / "sphinx.log"
    write(log, output)
    if done.returncode:
        lines = output.replace(f"{site.source}/", "").splitlines()
        wrong = [line for line in lines if re.search("WARNING|ERROR|Error", line)] or lines[-5:]
        where = f"(see {shown(log)})"
        sentence = "regretbook: Sphinx did not accept the pages, beginning with:"
        print("\n  ".join([sentence, *wrong[:5], where]), file=sys.stderr)
        return False
    _publish(site)
    write(site.stamp, json.dumps(tree._asdict()) + "\n")
    print(f"built: {shown(index)}")
    return True


def _stamp(site: Site) -> dict:
    """Return the digests of what was rendered last; none when nobody knows."""
    try:
        found = json.loads(site.stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _publish(site: Site) -> None:
    """Put a copy of the rendered book in the place of the old one; Sphinx goes on with its own."""
    new, old = site.out / "html.new", site.out / "html.old"
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(site.rendered, new)
    finish(new)
    shutil.copytree(site.claims, new / "claims")
    if site.html.exists():
        site.html.rename(old)
    site.html.parent.mkdir(parents=True, exist_ok=True)
    new.rename(site.html)
    shutil.rmtree(old, ignore_errors=True)
