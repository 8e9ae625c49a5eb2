"""The `regretbook` command: arguments, exit status, and one sentence for every mistake.

Each command imports what it needs when it is called, so that `regretbook list` answers at once.
"""

import argparse
import os
import sys
from importlib import metadata
from pathlib import Path

from ci import chapters, parameters, runs
from ci.project import Project, project_at, shown
from ci.record import record, recorded
from lib.errors import BookError

ENGINES = ("threads",)


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
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name, does, function):
        sub = commands.add_parser(name, help=does, description=does)
        sub.set_defaults(function=function)
        return sub

    command("list", "chapters, their parameters, and the last run of each", list_chapters)

    run = command("run", "execute one chapter", run_chapter)
    run.add_argument("chapter", metavar="CHAPTER")
    run.add_argument("-p", dest="options", metavar="name=value", action="append", default=[])
    run.add_argument("--profile", default="book", help="smoke, book (default) or thesis")
    run.add_argument("--engine", default="threads", help="where trials run: threads")
    run.add_argument("--out", type=Path, metavar="DIR", help="folder for notebook and tables")

    build = command("build", "execute what is stale, then build the HTML", build_book)
    build.add_argument("chapters", metavar="CHAPTER", nargs="*")
    build.add_argument("--profile", default="book", help="smoke, book (default) or thesis")
    build.add_argument("--engine", default="threads", help="where trials run: threads")

    claims = command("claims", "the scoreboard of the last run", show_claims)
    claims.add_argument("--chapter", metavar="C")
    claims.add_argument("--format", choices=("table", "json"), default="table")

    record = command("record", "copy the tables of the last run into results/", record_tables)
    record.add_argument("chapter", metavar="CHAPTER")
    record.add_argument("experiments", metavar="EXPERIMENT", nargs="*")
    record.add_argument("--profile", default="book", help="of which runs (default: book)")

    data = command("data", "datasets: where each was found, licence, counts, checksum", show_data)
    data.add_argument("action", choices=("list", "fetch", "check"))
    data.add_argument("names", metavar="NAME", nargs="*")

    cite = command("cite", "BibTeX of a chapter with version, commit and results", cite_chapter)
    cite.add_argument("chapter", metavar="CHAPTER")
    return parser


def list_chapters(project: Project, args) -> int:
    found = chapters.discover(project)
    if not found:
        raise BookError(f"there are no chapters in {project.book}")
    for chapter in found.values():
        print(f"{chapter.name}  {chapter.title}")
        lines = {f"{name} = {p.default!r}": p for name, p in chapter.parameters.items()}
        width = max(map(len, lines), default=0)
        for line, parameter in lines.items():
            allowed = f", in {parameter.range.text}" if parameter.range else ""
            print(f"    {line:<{width}}  {parameter.meaning}{allowed}")
        run = runs.last(project, chapter.name)
        print(f"    last run: {_describe(run) if run else 'none yet'}")
        for table, source in recorded(project, chapter.name).items():
            print(f"    recorded: {table}, {source['date'][:10]}, profile {source['profile']}")
        print()
    return 0


def _describe(run: runs.Run) -> str:
    info = run.info
    when = f"{info['started'][:16].replace('T', ' ')} UTC"
    return (
        f"{when}, profile {info['profile']}, {info['seconds']:.0f} s, commit {info['commit'][:12]}"
    )


def _engine(name: str) -> str:
    if name not in ENGINES:
        raise BookError(f"there is no engine {name!r}; the engines are {', '.join(ENGINES)}")
    return name


def run_chapter(project: Project, args) -> int:
    chapter = chapters.find(chapters.discover(project), args.chapter)
    engine = _engine(args.engine)
    options = parameters.parse_options(args.options)
    values = parameters.resolve(project, chapter, args.profile, options)
    target = args.out.resolve() if args.out else runs.place(project, chapter.name)

    from ci.execute import execute, report

    run, failure = execute(project, chapter, values, target, args.profile, engine)
    if failure:
        report(project, chapter.name, failure)
        return 1
    print(f"notebook: {shown(run.folder / 'notebook.ipynb')}")
    for table in run.tables.values():
        print(f"table:    {shown(run.folder / table['file'])}")
    print(f"verdicts: {_counts(run)}")
    return 0


def _counts(run: runs.Run) -> str:
    verdicts = [entry["verdict"] for entry in {e["id"]: e for e in run.entries("claim")}.values()]
    counts = [f"{verdicts.count(name)} {name}" for name in dict.fromkeys(verdicts)]
    return ", ".join(counts) or "no claim was checked"


def build_book(project: Project, args) -> int:
    from ci.build import build

    return build(project, args.profile, args.chapters, _engine(args.engine))


def show_claims(project: Project, args) -> int:
    from ci import scoreboard

    print(scoreboard.as_text(project, args.chapter, args.format))
    return 0


def record_tables(project: Project, args) -> int:
    chapter = chapters.find(chapters.discover(project), args.chapter)
    for path in record(project, chapter, args.experiments, args.profile):
        print(shown(path))
    return 0


def show_data(project: Project, args) -> int:
    from ci.data import act

    return act(args.action, args.names)


def cite_chapter(project: Project, args) -> int:
    from ci.cite import bibtex

    chapter = chapters.find(chapters.discover(project), args.chapter)
    print(bibtex(project, chapter, runs.last(project, chapter.name)))
    return 0


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status: 2 for a bad call, 1 for a run that failed."""
    try:
        args = arguments().parse_args(argv)
        root = args.root or os.environ.get("REGRETBOOK_ROOT")
        return args.function(project_at(Path(root).resolve()) if root else project_at(), args)
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
