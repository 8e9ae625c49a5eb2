"""The parts of the benchmarks page: what `results/bench` keeps, what pages and recordings took."""

from pathlib import Path

import numpy as np
import pandas as pd

from ci import bench, benchlibraries, benchrecord
from ci.contents import Page
from ci.display import duration
from ci.runs import Run
from lib import figures, journal, records, results, toc
from lib.errors import BookError, nearest
from lib.files import read_yaml
from lib.paths import Project

Found = dict[str, tuple[Page, Run | None]]
PRINTED_EXPERIMENTS = "printed.yml"  # in the book: recorded tables of what the thesis prints
NOTHING = "*Nothing is recorded yet; `regretbook bench --only {} --record` records it.*\n"


def part(project: Project, found: Found, name: str) -> str:
    """Return one part of the page."""
    if name == "pages":
        return pages(found)
    if name in ("hours", "limits"):
        return {"hours": hours, "limits": limits}[name](project)
    if name not in PARTS:
        raise BookError(f"the bench has no part {name!r}{nearest(name, PARTS)}")
    table, make = PARTS[name]
    kept = benchrecord.read(project, table)
    if kept is None:
        return NOTHING.format("shards" if name in ("staleness", "workers") else name)
    noted, rows = kept
    origin = noted.origin
    repeats = origin.parameters.get("repeats")
    times = f", {repeats} repeats" if repeats else ""
    about = f"*Recorded on {origin.machine}, {origin}{times}.*\n"
    return f"{make(project, rows)}\n{about}"


def as_markdown(head: list[str], rows: list[list]) -> str:
    """Return a table in Markdown; numbers stand on the right."""
    right = [bool(rows) and not isinstance(rows[0][k], str) for k in range(len(head))]
    lines = [head, ["---:" if each else "---" for each in right], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def _picture(fig, name: str, caption: str, alt: str, legend: bool = True) -> str:
    return f"``````{{raw}} html\n{figures.html(fig, name, caption, alt, legend)}\n``````\n"


class _Number(float):
    """A number that is shown shortly."""

    def __str__(self) -> str:
        return f"{round(self, 2) + 0.0:,.2f}" if abs(self) < 10 else f"{self:,.0f}"


def rounds(project: Project, table: pd.DataFrame) -> str:
    """Return every algorithm with its time and how it compares with its bare kernel."""
    _, about = benchrecord.read(project, "about")
    about = about.set_index("algorithm")
    own, bare = bench.ratios(table, bench.own), bench.ratios(table, bench.to_bare)
    faster = bench.speedups(table)
    rows = [
        [
            f"{{doc}}`{name} <{toc.find(about.loc[name, 'page'], project).file}>`",
            _Number(own[name].whole),
            str(bare.get(name, "no kernel")),
            str(faster[name]),
            _Number(about.loc[name, "megabytes"]),
        ]
        for name in own
    ]
    head = ["algorithm", "µs a round", "× bare kernel", "× one thread", "MB"]
    return as_markdown(head, rows) + "\n" + _kernel_figure(bare)


def _kernel_figure(bare: dict[str, bench.Spread]) -> str:
    names = sorted(bare, key=lambda name: bare[name].whole)
    fig, ax = figures.grid(height=0.26 * len(names) + 1)
    at = np.arange(len(names))
    ax.barh(at, [bare[n].whole for n in names], color=figures.BLUE, height=0.6)
    ax.hlines(at, [bare[n].low for n in names], [bare[n].high for n in names], color=figures.INK)
    ax.set_yticks(at, names)
    ax.set(xlabel="× the time of its bare kernel")
    ax.axvline(1.0, color=figures.INK, linestyle=":")
    return _picture(
        fig,
        "fig-bench-kernels",
        "How many times its bare kernel an algorithm takes; the bar is all rounds together, the "
        "line reaches from the cheapest repeat to the dearest. The environment is taken off both.",
        "Bars of the ratio of every algorithm to its bare kernel.",
        legend=False,
    )


def library_table(project: Project, table: pd.DataFrame) -> str:
    """Return libraries beside ours: time, ratio, regret."""
    rows = []
    for problem, each in table.groupby("problem", sort=False):
        wide = each.pivot(index="repeat", columns="library", values="microseconds")
        regret = each.groupby("library", sort=False)["regret"].sum()
        version = each.groupby("library", sort=False)["version"].first().fillna("")
        for name in regret.index:
            over = wide[name] / wide[benchlibraries.OURS]
            spread = str(bench.Spread(over.median(), over.min(), over.max()))
            rows.append(
                [
                    f"{name} {version[name]}".strip(),
                    problem,
                    _Number(wide[name].median()),
                    spread if name != benchlibraries.OURS else "1",
                    _Number(regret[name]),
                ]
            )
    wanted = {*benchlibraries.libraries.LIBRARIES}
    missing = sorted(wanted - set(table["library"]))
    note = (
        f"\nNot compared, since they did not run there: {', '.join(missing)}.\n" if missing else ""
    )
    head = ["LinUCB of", "problem", "µs a round", "× ours", "regret"]
    return as_markdown(head, rows) + note


def pages(found: Found) -> str:
    """Return what every page of this build took and how much of it was compiling."""
    done = [
        (page, run.info.seconds, _compiled(run)) for page, run in found.values() if run and run.ok
    ]
    if not done:
        return "*The table appears here when pages have been executed.*\n"
    total, compiled = (sum(each[k] for each in done) for k in (1, 2))
    rows = [
        [f"{{doc}}`{page.name} <{page.file}>`", _Number(seconds), f"{making / seconds:.0%}"]
        for page, seconds, making in sorted(done, key=lambda each: -each[1])
    ]
    many = [page.name for page, seconds, making in done if making > seconds / 4]
    above = f" More than a quarter: {', '.join(many)}." if many else " No page spent a quarter so."
    said = (
        f"{len(done)} pages took {duration(total)} together, added up over pages that ran side by "
        f"side, of which {compiled / total:.0%} went into machine code.{above}\n\n"
    )
    body = as_markdown(["page", "seconds", "machine code"], rows)
    return f"{said}``````{{dropdown}} Every page\n\n{body}\n``````\n"


def _compiled(run: Run) -> float:
    """Return the seconds in which a run compiled or read machine code."""
    noted = [entry.seconds for entry in run.entries(journal.Compiled)]
    return max(noted, default=0.0)


def hours(project: Project) -> str:
    """Return what the recorded runs at the printed scale took, chapter by chapter."""
    listed = project.book / PRINTED_EXPERIMENTS
    rebuilt = read_yaml(listed, dict) if listed.exists() else {}
    kinds = ("printed experiments", "our own", "searches for constants")
    taken: dict[str, list[tuple[str, float | None]]] = {}
    for path, record in records.every(project).items():
        for name, table in record.tables.items():
            if table.origin.profile == results.PRINTED:
                kind = kinds[0] if name in rebuilt.get(record.chapter, []) else kinds[1]
                kind = kinds[2] if _is_search(path.with_name(f"{name}.csv")) else kind
                taken.setdefault(record.chapter, []).append((kind, table.seconds))
    rows, sums = [], dict.fromkeys(kinds, 0.0)
    for chapter, kept in taken.items():
        each = {kind: sum(s or 0.0 for k, s in kept if k == kind) for kind in kinds}
        sums = {kind: sums[kind] + each[kind] for kind in kinds}
        unknown = sum(s is None for _, s in kept)
        rows.append([chapter, len(kept), unknown, *map(duration, each.values())])
    absent = sorted(set(toc.chapters(project)) - set(taken))
    note = f" Nothing at that scale is recorded of {', '.join(absent)}." if absent else ""
    printed, own, searches = map(duration, sums.values())
    total = f"The printed experiments took {printed}, our own {own} and searches {searches}"
    head = ["chapter", "tables", "without a duration", *kinds]
    return f"{as_markdown(head, rows)}\n{total}, on two cores.{note}\n"


def _is_search(table: Path) -> bool:
    """Say whether a recorded table is of a search for constants: it tells points or evaluations."""
    with open(table, encoding="utf-8") as file:
        return not {"point", "evaluations"}.isdisjoint(file.readline().strip().split(","))


def cost(project: Project, table: pd.DataFrame) -> str:
    """Return four panels: the cost of a round against time, users, arms and dimension."""
    titles = {"t": "round t", "users": "users u", "arms": "arms K", "d": "dimension d"}
    fig, axes = figures.grid(2, 2, height=3.2)
    for ax, (axis, title) in zip(axes.flat, titles.items(), strict=True):
        for name, rows in table[table["axis"] == axis].groupby("algorithm", sort=False):
            ax.plot(rows["value"], rows["microseconds"], label=name, **figures.style(name))
        ax.set(xlabel=title, ylabel="µs a round", yscale="log")
        ax.set_xscale("linear" if axis == "t" else "log")
    rows = table[table["axis"] == "t"]
    said = []
    for name, each in rows.groupby("algorithm", sort=False):
        first, last = each["microseconds"].iloc[0], each["microseconds"].iloc[-1]
        said.append(
            [
                name,
                _Number(each["microseconds"].mean()),
                _Number(each["microseconds"].max()),
                _Number(last / first),
            ]
        )
    head = ["algorithm", "mean µs", "most", "last over first slice"]
    return (
        _picture(
            fig,
            "fig-bench-growth",
            "Microseconds a round, environment included: over time at the printed size, then with "
            "users (at d = 20), arms and dimension changed one at a time, over the first rounds.",
            "Four panels of microseconds a round against time, users, arms and dimension.",
        )
        + f"\nOver the first {rows['value'].max():,} rounds:\n\n"
        + as_markdown(head, said)
    )


def limits(project: Project) -> str:
    """Return the bytes that grow with users, at d = 20 and 1,000 items."""
    d, n = 20, 1000
    parts = {
        "complete graph, a bit for each pair": lambda u: u * u / 8,
        "M and its inverse for each user": lambda u: 2 * u * d * d * 8,
        "the same for as many groups, as CLUB and SCLUB keep them": lambda u: 2 * u * d * d * 8,
        "counts of items for users and groups, as RSCLUMB keeps them": lambda u: 3 * u * n * 4,
        "estimates of users": lambda u: u * d * 8,
    }
    crowds = (10_000, 100_000, 1_000_000)
    rows = [[name, *(f"{size(u) / 1e9:,.2f}" for u in crowds)] for name, size in parts.items()]
    return as_markdown(["GB", *(f"{u:,} users" for u in crowds)], rows)


def crowds(project: Project, table: pd.DataFrame) -> str:
    """Return what rounds take with very many users."""
    rows = [
        [
            row.algorithm,
            f"{row.users:,}",
            f"{row.rounds:,}",
            _Number(row.microseconds),
            _Number(row.megabytes),
            f"{row.groups:,}",
        ]
        for row in table.itertuples()
    ]
    head = ["algorithm", "users", "rounds", "µs a round", "MB", "groups in the end"]
    return as_markdown(head, rows)


def served(project: Project, table: pd.DataFrame) -> str:
    """Return what crowds cost and lose by the last look."""
    both = table.groupby(["users", "algorithm"], sort=False)
    cost, last = both["microseconds"].mean(), both.last()
    rows = [
        [
            name,
            f"{users:,}",
            _Number(cost[users, name]),
            _Number(row.megabytes),
            f"{row.groups:,.0f}",
            f"{row.agreement:.3f}",
            f"{row.regret:,.0f}",
            f"{row.regret / last.loc[(users, 'LinUCB-Ind'), 'regret']:.2f}",
        ]
        for (users, name), row in last.iterrows()
    ]
    head = ["algorithm", "users", "µs a round", "MB", "groups", "agreement", "regret"]
    return as_markdown([*head, "× LinUCB-Ind"], rows)


def staleness(project: Project, table: pd.DataFrame) -> str:
    """Return regret against how stale shared sums are."""
    best = table["regret"].iloc[0]
    rows = [
        [f"{row.block:,}", f"{row.rounds:,}", _Number(row.regret), f"{row.regret / best:.2f}"]
        for row in table.itertuples()
    ]
    shards = table["shards"].iloc[0]
    head = [f"rounds between exchanges, {shards} shards", "rounds", "regret", "over the first"]
    return as_markdown(head, rows)


def workers(project: Project, table: pd.DataFrame) -> str:
    """Return rounds a second on worker processes."""
    rows = [
        [
            str(row.workers),
            f"{row.block:,}",
            _Number(row.rounds / row.wall),
            _Number(1e6 * row.cpu / row.rounds),
            f"{row.bytes / 1e3:.0f}",
        ]
        for row in table.itertuples()
    ]
    head = [
        "workers",
        "rounds between exchanges",
        "rounds a second",
        "µs of a worker",
        "kB exchanged",
    ]
    return as_markdown(head, rows)


def plan(project: Project, table: pd.DataFrame) -> str:
    """Return what was planned beside what was taken."""
    over = table["planned"] / table["recorded"]
    near = ((over >= 0.5) & (over <= 2.0)).sum()
    rows = [
        [row.page, _Number(row.planned), _Number(row.recorded), _Number(row.planned / row.recorded)]
        for row in table.itertuples()
    ]
    head = ["page", "planned, s", "recorded, s", "ratio"]
    return f"Within a factor of two: {near} of {len(table)} pages.\n\n{as_markdown(head, rows)}"


PARTS = {
    "plan": ("plan", plan),
    "rounds": ("rounds", rounds),
    "libraries": ("libraries", library_table),
    "growth": ("growth", cost),
    "crowds": ("crowds", crowds),
    "served": ("served", served),
    "staleness": ("staleness", staleness),
    "workers": ("workers", workers),
}
