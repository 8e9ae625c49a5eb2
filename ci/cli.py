"""The `regretbook` command: arguments, exit status, and one sentence for every mistake.

Each command imports what it needs when it is called, so that `regretbook list` answers at once.
"""

import argparse
import os
import signal
import sys
import threading
from importlib import metadata
from pathlib import Path

from ci import contents, parameters, runs
from ci.project import shown
from lib.errors import BookError
from lib.paths import Project, project

PROFILE = "smoke, book (default) or thesis"
ENGINE = "where trials run: threads (default), dask, or dask://HOST:PORT"


class Parser(argparse.ArgumentParser):
    """argparse, but a bad call is a BookError: one sentence instead of a page of usage."""

    def error(self, message):
        raise BookError(f"{message} (see `{self.prog} --help`)")


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the whole command."""
    parser = Parser(prog="regretbook", description="Run, build, check and cite the Regret Book.")
    parser.add_argument(
        "--version", action="version", version=f"regretbook {metadata.version('regretbook')}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name, does, function):
        sub = commands.add_parser(name, help=does, description=does)
        sub.set_defaults(function=function)
        return sub

    pages = command("list", "chapters and pages, their parameters and published runs", list_pages)
    pages.add_argument("--run", type=Path, metavar="DIR", help="with a run of your own instead")

    run = command("run", "execute pages", run_pages)
    run.add_argument("pages", metavar="PAGE", nargs="+", help="a chapter, or chapter/page")
    run.add_argument("-p", dest="options", metavar="name=value", action="append", default=[])
    run.add_argument("--profile", default="book", help=PROFILE)
    run.add_argument("--engine", default="threads", help=ENGINE)
    run.add_argument(
        "--only",
        type=_names,
        default=[],
        metavar="EXPERIMENT[,…]",
        help="compute these alone; the others are shown as recorded",
    )
    run.add_argument(
        "--policy", metavar="FILE:NAME", default="", help="a policy of yours in the comparison"
    )
    run.add_argument("--out", type=Path, metavar="DIR", help="folder for notebook and tables")

    build = command("build", "execute what is stale, then build the HTML", build_book)
    build.add_argument("pages", metavar="PAGE", nargs="*")
    build.add_argument("--profile", default="book", help=PROFILE)
    build.add_argument("--engine", default="threads", help=ENGINE)
    build.add_argument("--jobs", type=_count, metavar="N", help="pages at a time (default: cores)")

    plan = command("plan", "what a run would still compute: tasks, hours, memory", plan_pages)
    plan.add_argument("pages", metavar="PAGE", nargs="*")
    plan.add_argument("-p", dest="options", metavar="name=value", action="append", default=[])
    plan.add_argument("--profile", default="book", help=PROFILE)

    claims = command("claims", "the scoreboard of the published runs", show_claims)
    claims.add_argument("--chapter", metavar="C")
    claims.add_argument("--profile", default="book", help=PROFILE)
    claims.add_argument("--run", type=Path, metavar="DIR", help="of a run of your own instead")
    claims.add_argument("--format", choices=("table", "json"), default="table")

    record = command("record", "copy tables and verdicts of a run into results/", record_pages)
    record.add_argument("page", metavar="PAGE")
    record.add_argument("experiments", metavar="EXPERIMENT", nargs="*")
    record.add_argument("--profile", default="book", help="of which runs (default: book)")
    record.add_argument(
        "--allow-dirty", action="store_true", help="record a run of files that no commit has"
    )

    verify = command("verify", "recompute recorded rows and verdicts and compare", verify_pages)
    verify.add_argument("pages", metavar="PAGE", nargs="*")
    verify.add_argument("--profile", help="of one profile only")
    depth = verify.add_mutually_exclusive_group()
    depth.add_argument(
        "--trials", type=_whole, default=1, metavar="K", help="trials to recompute (default: 1)"
    )
    depth.add_argument("--cheap", action="store_true", help="recompute one task of each chapter")
    depth.add_argument(
        "--quick", action="store_true", help="digests and rules only; execute no page"
    )
    verify.add_argument("--engine", default="threads", help=ENGINE)

    store = command("store", "the finished trials that are kept: size and entries", show_store)
    store.add_argument(
        "--prune", action="store_true", help="remove what no page of this tree can ask for"
    )

    data = command("data", "datasets: where each was found, licence, counts, checksum", show_data)
    data.add_argument("action", choices=("list", "fetch", "check", "add"))
    data.add_argument("names", metavar="NAME", nargs="*", help="for add: a name and a file")
    data.add_argument(
        "--columns", metavar="U,I,R", help="for add: which columns are user, item and rating"
    )

    live = command("live", "the built book with a form on every page that runs it", serve_book)
    live.add_argument("--profile", default="book", help="of which build (default: book)")
    live.add_argument("--port", type=_whole, default=0, metavar="N", help="default: a free one")
    live.add_argument("--open", action="store_true", help="open it in the browser")

    lab = command("lab", "a page as a notebook in JupyterLab; saving changes the page", open_lab)
    lab.add_argument("page", metavar="PAGE", help="a chapter, or chapter/page")
    lab.add_argument("--no-browser", action="store_true", help="print the address alone")

    bench = command(
        "bench", "microseconds a round, beside bare kernels and libraries", bench_algorithms
    )
    bench.add_argument("algorithms", metavar="ALGORITHM", nargs="*", help="default: all")
    bench.add_argument(
        "--repeats", type=_count, default=7, metavar="N", help="how often to measure (default: 7)"
    )
    bench.add_argument(
        "--only", type=_names, default=[], metavar="PART[,…]", help="rounds, libraries, growth, …"
    )
    bench.add_argument("--small", action="store_true", help="tiny problems, to try the command")
    bench.add_argument("--record", action="store_true", help="keep the tables in results/bench")

    cite = command("cite", "BibTeX of pages or of a claim: version, commit, results", cite_pages)
    cite.add_argument("page", metavar="PAGE|CLAIM")
    cite.add_argument("--run", type=Path, metavar="DIR", help="as a run of your own has it")
    return parser


def _count(text: str) -> int:
    """Return a whole number of at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def _whole(text: str) -> int:
    """Return a whole number, of which 0 is one."""
    return 0 if text == "0" else _count(text)


def _names(text: str) -> list[str]:
    """Return the names in a list such as `regret,real-ml`."""
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"takes different names, not {text!r}")
    return names


def list_pages(project: Project, args) -> int:
    from lib import records

    found = contents.discover(project)
    if not found:
        raise BookError(f"{project.toc.name} lists no chapter that is in {shown(project.book)}")
    kept = records.every(project)
    own = {page.name: run for page, run in runs.below(args.run, found)} if args.run else {}
    for page in found.values():
        print(f"{page.name}  {page.title}")
        lines = {f"{name} = {p.default!r}": p for name, p in page.parameters.items()}
        width = max(map(len, lines), default=0)
        for line, parameter in lines.items():
            allowed = f", in {parameter.range.text}" if parameter.range else ""
            print(f"    {line:<{width}}  {parameter.meaning}{allowed}")
        run = own.get(page.name) if args.run else runs.newest(project, page)
        whose = "your run" if args.run else "published"
        print(f"    {whose}: {_describe(run.info) if run else 'none yet'}")
        for record in kept.values():
            if (record.chapter, record.page) == (page.chapter, page.page):
                for name, table in record.tables.items():
                    origin = table.origin
                    print(f"    recorded: {name}, {origin.date[:10]}, profile {origin.profile}")
        print()
    return 0


def _describe(info: runs.Info) -> str:
    when = f"{info.started[:16].replace('T', ' ')} UTC"
    return f"{when}, profile {info.profile}, {info.seconds:.0f} s, commit {info.commit[:12]}"


def _engine(name: str) -> str:
    from lib import engine

    engine.check(name)
    return name


def run_pages(project: Project, args) -> int:
    pages = contents.select(contents.discover(project), args.pages)
    options = parameters.parse_options(args.options)
    parameters.check_options(options, pages)
    if args.only:
        from ci.experiments import having

        pages = having(pages, args.only)
    if args.policy:
        pages, args.policy = _open_to(pages, args.policy)
    values = [parameters.resolve(project, page, args.profile, options) for page in pages]
    engine = _engine(args.engine)

    from ci.execute import Request, execute, report
    from ci.report import compare, summary

    failed, waiting = False, set(args.only)
    for page, chosen in zip(pages, values, strict=True):
        target = runs.place(project, page)
        if args.out:
            target = _resolved(args.out) / (page.page if len(pages) > 1 else "")
        only = tuple(args.only)
        expected = runs.expected(project, page, args.profile, chosen)
        more = {"only": only, "report": True, "policy": args.policy, "expected": expected}
        request = Request(page, chosen, target, args.profile, engine, **more)
        run, failure = execute(project, request)
        if failure:
            failed = True
            report(project, request, failure)
            continue
        print("\n".join(summary(project, compare(project, page, run), target)))
        waiting -= {table.name for table in run.tables.values() if table.source == "live"}
    if waiting and not failed:
        print(
            f"regretbook: not computed: {', '.join(sorted(waiting))}; no page that ran has such an "
            "experiment with its data on this machine",
            file=sys.stderr,
        )
    return 1 if failed or waiting else 0


def _resolved(folder: Path) -> Path:
    try:
        return folder.resolve()
    except RuntimeError:
        raise BookError(f"{folder} is a link that leads to itself; choose another") from None


def _open_to(pages: list[contents.Page], policy: str) -> tuple[list[contents.Page], str]:
    """Return the pages with a comparison that takes a policy of one's own, and where that is."""
    from lib import guests

    guests.load(policy)
    takers = [page for page in pages if any("guests.added(" in c.source for c in page.cells)]
    if not takers:
        raise BookError(f"{pages[0].name} has no comparison that takes a policy of your own")
    file, _, name = policy.rpartition(":")
    return takers, f"{Path(file).resolve()}:{name}"


def build_book(project: Project, args) -> int:
    from ci.build import build

    engine = _engine(args.engine)
    return build(project, args.profile, args.pages, engine, args.jobs or 0)


def plan_pages(project: Project, args) -> int:
    from ci.plan import plan

    return plan(project, args.profile, args.pages, parameters.parse_options(args.options))


def show_claims(project: Project, args) -> int:
    from ci import scoreboard
    from lib import toc

    if args.chapter is not None and args.chapter not in toc.chapters(project):
        from lib.errors import nearest

        near = nearest(args.chapter, toc.chapters(project))
        raise BookError(f"there is no chapter {args.chapter!r}{near}")
    board = _board(project, args.run, args.profile)
    print(scoreboard.as_text(board, args.chapter, args.format))
    return 0


def _board(project: Project, own: Path | None, profile: str = "book"):
    """Return the scoreboard of what is published, or of a run of one's own."""
    from ci import evidence, scoreboard
    from lib import claims

    pages = contents.discover(project)
    if own:
        found = evidence.of_runs(runs.below(own, pages))
    else:
        published = ((page, runs.published(project, page, profile)) for page in pages.values())
        found = evidence.gather(project, published)
    return scoreboard.board(claims.ledger(), found)


def record_pages(project: Project, args) -> int:
    from ci.record import record

    pages = contents.select(contents.discover(project), [args.page])
    for path in record(project, pages, args.experiments, args.profile, args.allow_dirty):
        print(shown(path))
    return 0


def verify_pages(project: Project, args) -> int:
    from ci.verify import verify

    engine = _engine(args.engine)
    trials = None if args.quick else "cheap" if args.cheap else args.trials
    return verify(project, args.pages, args.profile, trials, engine)


def show_store(project: Project, args) -> int:
    from ci.keep import show

    return show(project, args.prune)


def show_data(project: Project, args) -> int:
    from ci.data import act

    return act(args.action, args.names, args.columns)


def serve_book(project: Project, args) -> int:
    import importlib.util

    if not (importlib.util.find_spec("starlette") and importlib.util.find_spec("uvicorn")):
        raise BookError("live needs packages more; get them with: pip install 'regretbook[live]'")
    parameters.profile_values(project, args.profile, "")
    from ci.live import serve

    return serve(project, args.profile, args.port, args.open)


def open_lab(project: Project, args) -> int:
    from ci.lab import lab

    return lab(project, args.page, not args.no_browser)


def bench_algorithms(project: Project, args) -> int:
    from ci.bench import bench

    if args.record and (args.algorithms or args.small):
        raise BookError("only whole parts of the bench are recorded; leave out names and --small")
    words = args.repeats, args.small, args.record, args.only
    return bench(project, args.algorithms, *words)


def cite_pages(project: Project, args) -> int:
    from ci.cite import bibtex, claim_bibtex
    from lib import claims

    pages = contents.discover(project)
    if args.page in claims.ledger():
        rows = [row for each in _board(project, args.run).values() for row in each]
        entries = [claim_bibtex(project, row) for row in rows if row.claim.id == args.page]
    elif args.run:
        chosen = contents.select(pages, [args.page])
        found = [(page, run) for page, run in runs.below(args.run, pages) if page in chosen]
        if not found:
            raise BookError(f"{args.run} has no finished run of {args.page}")
        entries = [bibtex(project, page, run) for page, run in found]
    else:
        chosen = contents.select(pages, [args.page])
        entries = [bibtex(project, page, runs.published(project, page)) for page in chosen]
    print("\n\n".join(entries))
    return 0


def _interrupt(number, frame) -> None:
    raise KeyboardInterrupt


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status: 2 for a bad call, 1 for a run that failed."""
    if threading.current_thread() is threading.main_thread():
        # Whoever started this may ignore Ctrl-C, as nohup does, and `kill` is to end it as kindly.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt)
    try:
        args = arguments().parse_args(argv)
        return args.function(project(), args)
    except BookError as error:
        print(f"regretbook: {' '.join(str(error).split())}", file=sys.stderr)
        # A file that could not be written is not the caller's mistake: the run failed.
        return 1 if isinstance(error.__cause__, OSError) else 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        print(
            f"regretbook: stopped by the system at{where}: {error.strerror}; "
            "finished tasks are kept",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print(
            "regretbook: interrupted; finished tasks are kept and the next run continues with them",
            file=sys.stderr,
        )
        return 130
