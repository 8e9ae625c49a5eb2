"""Figures: one theme, one style per algorithm, inline SVG that suits light, dark and phone.

Axes and text are drawn in black and leave this module as `currentColor`, so one picture follows the
page's mode; every other colour has a contrast of at least 3:1 on both backgrounds.
"""

import io
import json
import re
from collections.abc import Mapping
from html import escape

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import display
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from lib import beside, ends, guests, journal, maths, plotted
from lib.errors import BookError, nearest
from lib.files import write_atomically

BLUE, VERMILLION, GREEN, MAUVE, ORANGE, SKY, OLIVE, GREY, BROWN, VIOLET = PALETTE = (
    "#0072B2",
    "#CC4100",
    "#009E73",
    "#C95FA0",
    "#C28900",
    "#3E9BD3",
    "#667A00",
    "#8A8A8A",
    "#9A5540",
    "#7A5CDB",
)
INK = "#000000"  # becomes currentColor

SOLID, DASHED, DOTTED, DASHDOT = "-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2))
LINES = (SOLID, DASHED, DASHDOT, DOTTED)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")

STYLES = {
    "Oracle": (INK, "", DOTTED),
    "LinUCB": (BLUE, "o", SOLID),
    "LinUCB-Ind": (BROWN, "s", DASHED),
    "Thompson sampling": (MAUVE, "^", SOLID),
    "OFUL": (GREY, "D", DASHDOT),
    "CW-OFUL": (GREEN, "v", SOLID),
    "CW-OFUL-Ind": (VIOLET, "P", DASHED),
    "CLUB": (ORANGE, "^", SOLID),
    "SCLUB": (SKY, "X", DASHED),
    "ReCLUB": (GREEN, "P", SOLID),
    "ReCLUB-D": (GREEN, "*", DASHED),
    "RLinUCB": (OLIVE, "D", SOLID),
    "RLinUCB-Ind": (VIOLET, "p", DASHED),
    "RCLUMB": (VERMILLION, "v", SOLID),
    "RSCLUMB": (MAUVE, "<", DASHDOT),
    "RCLUB-WCU": (VERMILLION, "D", SOLID),
    "OCCUD": (VERMILLION, "<", DASHED),
    "GCUD": (OLIVE, ">", DASHDOT),
    "Arm-Con": (BROWN, "v", DASHED),
    "ConUCB": (ORANGE, "s", DASHDOT),
    "ConLinUCB-BS": (VERMILLION, "D", SOLID),
    "ConLinUCB-MCR": (GREEN, "^", SOLID),
    "ConLinUCB-UCB": (VIOLET, "X", DASHED),
    "ConLinUCB-Random": (GREY, "P", DOTTED),
    "SW-UCB": (ORANGE, "s", DASHED),
    "EXP3.S": (GREY, "X", DOTTED),
    "D-LinUCB": (SKY, "v", DASHDOT),
    "RestartUCB": (OLIVE, "P", DASHED),
    "Oracle restart": (INK, "", DOTTED),
    "Restarted-WeightedOFUL+": (VERMILLION, "D", SOLID),
    "Restarted-SAVE+": (GREEN, "^", SOLID),
    "SAVE+-BOB": (VIOLET, "<", DASHDOT),
    "LB-WeightUCB": (MAUVE, "p", SOLID),
    "MASTER": (BROWN, "X", SOLID),
    "RestartUCB-BOB": (BLUE, ">", DASHDOT),
    "COLDB": (VERMILLION, "o", SOLID),
    "CONDB": (GREEN, "^", SOLID),
    "LDB-Ind": (ORANGE, "s", DASHED),
    "NDB-Ind": (SKY, "D", DASHED),
    "Shared model": (BLUE, "v", DASHDOT),
    "Shared network": (OLIVE, "v", DASHDOT),
    "Thompson duel": (MAUVE, "^", DOTTED),
    "Oracle network": (INK, "p", DASHED),
    "O-MBRL": (VERMILLION, "o", SOLID),
    "PSRL": (SKY, "^", DASHED),
    "UCBVI": (ORANGE, "s", DASHDOT),
    "MVP": (VIOLET, "P", DASHED),
    "CPPO-LR": (GREEN, "v", SOLID),
    "Certainty equivalence": (BLUE, "D", DOTTED),
    "VI-LCB": (MAUVE, "s", DASHDOT),
    "PERM": (VERMILLION, "D", SOLID),
    "PPPO": (GREEN, "^", DASHED),
    "PEVI": (BLUE, "p", DASHDOT),
    "BC": (BROWN, "X", DOTTED),
    "CQL": (ORANGE, "v", DASHED),
    "IQL": (SKY, "s", DASHDOT),
    "LEEP": (VIOLET, "<", DASHED),
}

WIDTH, HEIGHT = 6.4, 4.0  # inches; text of 12 points is 9 pixels on a 390-pixel phone
_FONTS = "'DejaVu Sans', Verdana, system-ui, sans-serif"


def theme() -> None:
    """Set the one theme of the book; matplotlib brings its font, so layouts agree everywhere."""
    sns.set_theme(
        context="notebook",
        style="ticks",
        palette=PALETTE,
        rc={
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans"],
            "font.size": 13,
            "axes.titlesize": 13,
            "axes.labelsize": 13,
            "xtick.labelsize": 12,
            "ytick.labelsize": 12,
            "legend.fontsize": 12,
            "text.color": INK,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "grid.color": INK,
            "grid.alpha": 0.15,
            "axes.grid": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.figsize": (WIDTH, HEIGHT),
            "figure.constrained_layout.use": True,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "lines.markersize": 6,
            "lines.markeredgewidth": 0,
            "svg.fonttype": "none",
        },
    )


def style(name: str, variant: int = 0) -> dict:
    """Return colour, marker and line style of an algorithm, the same on every page.

    `LinUCB (tuned)` is a variant of `LinUCB`: colour and marker stay, `variant` changes the line.
    """
    base = name.split(" (")[0]
    if base in guests.names():
        return {"color": VIOLET, "marker": "*", "linestyle": SOLID, "linewidth": 2.4}
    if base not in STYLES:
        raise BookError(
            f"No style for {name!r}{nearest(base, STYLES)}; add the algorithm to "
            "lib.figures.STYLES, or pass styles={name: figures.series(i)} for any other curve."
        )
    color, marker, line = STYLES[base]
    if variant:
        line = LINES[(LINES.index(line) + variant) % len(LINES)]
    return {"color": color, "marker": marker, "linestyle": line}


def series(index: int) -> dict:
    """Return the style of the `index`-th curve of a sweep over d, over T, …: ten at most."""
    if not 0 <= index < len(PALETTE):
        raise BookError(
            f"A figure has room for {len(PALETTE)} curves, numbered from 0; got {index}."
        )
    return {
        "color": PALETTE[index],
        "marker": MARKERS[index],
        "linestyle": LINES[index % len(LINES)],
    }


def grid(rows: int = 1, cols: int = 1, height: float | None = None, **subplots):
    """Return figure and axes, at most two panels side by side: a phone can still show them."""
    if rows < 1 or cols not in (1, 2):
        raise BookError(
            f"A figure has at least one row and one or two columns; got {rows} × {cols}."
        )
    height = height or (HEIGHT if cols == 1 else 3.4)
    # Unknown to pyplot: a cell that leaves the rest to the next one must not show it half drawn.
    fig = Figure(figsize=(WIDTH if cols == 1 else 8.8, height * rows))
    return fig, fig.subplots(rows, cols, **subplots)


def band_text(*trials: int, band: bool = True) -> str:
    """Say in words what line and band of `curves` are, for the caption; panels may differ."""
    if min(trials, default=0) < 1:
        raise BookError(f"A curve needs at least one trial; got {[*trials]}.")
    if max(trials) == 1:
        return "one trial, no band"
    what = ", the band is the 95% Student-t interval of the mean" if band else ""
    return f"mean of {' or '.join(map(str, dict.fromkeys(trials)))} trials{what}"


def summary(table: pd.DataFrame, x: str = "t", y: str = "regret") -> pd.DataFrame:
    """Return mean, low and high of `y` over the trials at each `x`; one trial has no interval."""
    groups = table.groupby(x, sort=True)[y]
    mean, count = groups.mean(), groups.count()
    half = stats.t.ppf(0.975, np.maximum(count - 1, 1)) * groups.std(ddof=1) / np.sqrt(count)
    frame = pd.DataFrame({"mean": mean, "low": mean - half, "high": mean + half})
    frame.loc[count < 2, ["low", "high"]] = np.nan
    return frame


def curves(
    ax: Axes,
    table: pd.DataFrame,
    x: str = "t",
    y: str = "regret",
    by: str = "policy",
    band: bool = True,
    styles: Mapping[str, dict] | None = None,
) -> None:
    """Draw a line with its band for each value of `by`; the table has a row per trial and `x`."""
    absent = [column for column in (x, y, by) if column not in table]
    if absent:
        raise BookError(
            f"The table has no column {', '.join(absent)}; it has {', '.join(map(str, table))}."
        )
    groups = table.groupby(by, sort=False, observed=True)
    seen = {str(name): 1 for name in groups.groups}  # a plain name keeps its line
    for order, (name, rows) in enumerate(groups):
        label = str(name)
        if styles is not None and name in styles:
            look = styles[name]
        else:
            base = label.split(" (")[0]
            look = style(label, variant=0 if base == label else seen.get(base, 0))
            if base != label:
                seen[base] = seen.get(base, 0) + 1
        line = summary(rows.dropna(subset=y), x, y)
        if line.empty:  # nothing was measured, so there is nothing to draw
            continue
        # staggered, so that markers of curves that coincide do not hide one another
        spots = (0.035 * (order % 4), 0.14)
        (drawn,) = ax.plot(line.index, line["mean"], label=label, markevery=spots, **look)
        if band and line["low"].notna().any():
            ax.fill_between(
                line.index, line["low"], line["high"], color=look["color"], alpha=0.18, linewidth=0
            )
            plotted.keep_band(drawn, line["low"].to_numpy(), line["high"].to_numpy())


def show(
    fig: Figure, name: str, caption: str, alt: str, legend: bool = True, title: str = ""
) -> None:
    """Put the figure into the page as inline SVG, with caption and alternative text, and close it.

    `title` is the message in a sentence; a page computes what a run decides of it. Curves of a
    single panel get their names at their ends, where these fit; other labelled artists get one
    legend below all panels, unless the figure already has one.
    """
    made = _prepare(fig, name, caption, alt, legend)
    body = _canvas(fig, name, alt)
    csv = plotted.data(fig).to_csv(index=False, float_format="%.6g")
    files = _keep(fig, name, alt, made)
    plt.close(fig)
    _publish(name, _titled(title) + body, caption, alt, csv, *files)


def html(fig: Figure, name: str, caption: str, alt: str, legend: bool = True) -> str:
    """Return the figure as `show` puts it into a page, for a page that no kernel executes."""
    _prepare(fig, name, caption, alt, legend)
    body = _canvas(fig, name, alt)
    plt.close(fig)
    return _framed(name, body, caption)


def _prepare(fig: Figure, name: str, caption: str, alt: str, legend: bool) -> str:
    """Check the words of a figure, write its ticks, and return what it got: `names`, `legend`."""
    _check_words(name, caption=caption, alt=alt)
    for ax in fig.axes:
        _plain_ticks(ax)
    if not legend:
        return ""
    if ends.name_curves(fig):
        return "names"
    return "legend" if _legend_below(fig) else ""


def _titled(title: str) -> str:
    # not drawn: a sentence breaks into lines on a phone, and the letters of a picture do not
    return f'<p class="rb-title">{maths.sentence(title)}</p>' if title else ""


def _canvas(fig: Figure, name: str, alt: str) -> str:
    # the width is inline for those who open the notebook itself, without the book's style sheet
    kind, width = ("rb-canvas rb-wide", 56) if fig.get_figwidth() > WIDTH else ("rb-canvas", 37)
    return f'<div class="{kind}" style="max-width: {width}rem">{_svg(fig, name, alt)}</div>'


def missing(name: str, text: str) -> None:
    """Hold the place of a figure that cannot be drawn, saying what is missing and how to get it."""
    _check_words(name, text=text)
    body = f'<div class="rb-missing" role="note"><p>{escape(text)}</p></div>'
    _publish(name, body, caption="", alt=text)


def _check_words(name: str, **texts: str) -> None:
    if not re.fullmatch(r"fig-[a-z0-9]+(-[a-z0-9]+)*", name):
        raise BookError(f"A figure's name looks like 'fig-regret'; got {name!r}.")
    for what, text in texts.items():
        if not text.strip():
            raise BookError(f"Figure {name} needs its {what}; it is empty.")


def _keep(fig: Figure, name: str, alt: str, made: str) -> tuple[str, str]:
    """Write the curves of a figure beside the run, and the figure over the published curves.

    Return both files, "" for one that is not there.
    """
    run = journal.folder()
    if run is None:
        return "", ""
    curves, picture = f"figures/{name}.json", f"figures/{name}.svg"
    write_atomically(run / curves, (json.dumps(beside.panels(fig)) + "\n").encode())
    if not beside.draw(fig, beside.published(name), GREY):
        return curves, ""
    for ax in fig.axes:
        _plain_ticks(ax)
    if made == "legend":
        fig.legends[-1].remove()
    if made:
        _legend_below(fig)
    write_atomically(run / picture, _svg(fig, f"{name}-beside", alt).encode())
    return curves, picture


def _framed(name: str, body: str, caption: str) -> str:
    below = f"<figcaption>{maths.sentence(caption)}</figcaption>" if caption else ""
    return f'<figure id="{name}" class="rb-figure">{body}{below}</figure>'


def _publish(name: str, body: str, caption: str, alt: str, csv: str = "", *files: str) -> None:
    journal.note(journal.Figure(name, caption, alt, *files))
    markup = _framed(name, body, caption)
    data = {"text/csv": csv} if csv else {}
    display({"text/html": markup, "text/plain": caption or alt} | data, raw=True)


def _legend_below(fig: Figure) -> bool:
    """Put one legend below all panels, unless there is one; say whether it did."""
    if fig.legends or any(ax.get_legend() for ax in fig.axes):
        return False
    entries = {}
    for ax in fig.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        room = fig.get_figwidth() * 72 / (7.6 * max(map(len, entries)) + 52)
        fig.legend(
            entries.values(),
            entries.keys(),
            loc="outside lower center",
            ncols=int(np.clip(room, 1, min(4, len(entries)))),
            handlelength=2.6,
            columnspacing=1.4,
        )
    return bool(entries)


def _plain_ticks(ax: Axes) -> None:
    """Write large ticks as 20k or 1M; label a log axis at decades, a short one at 1, 2 and 5."""
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(map(abs, axis.get_view_interval()))
        formatter = axis.get_major_formatter()
        large = isinstance(formatter, ticker.ScalarFormatter) and high >= 1e4
        decades = isinstance(formatter, ticker.LogFormatter) and low >= 1e-4 and high <= 1e10
        if large or decades:
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: compact(value)))
        if isinstance(axis.get_major_locator(), ticker.LogLocator):
            marks = (1, 2, 5) if high < 50 * low else (1,)
            axis.set_major_locator(ticker.LogLocator(subs=marks, numticks=9))
            axis.set_minor_formatter(ticker.NullFormatter())


def compact(value: float) -> str:
    """Write a tick value shortly: 500, 5k, 20k, 1.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


def _short_numbers(tag: re.Match) -> str:
    """Keep two decimals of the coordinates in a tag; labels are not tags and stay as they are."""
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", tag[0])


def _svg(fig: Figure, name: str, alt: str) -> str:
    """Render to an SVG element whose bytes depend on the figure and its name alone."""
    buffer = io.StringIO()
    with plt.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        fig.savefig(
            buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].rstrip()
    svg = re.sub(r"\s*<(metadata|style)\b.*?</\1>", "", svg, flags=re.S)
    # group ids repeat from figure to figure; ids that are referenced carry the salt and stay
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r'(<image\b[^>]*?) id="[^"]*"', r"\1", svg)
    svg = re.sub(r' transform="rotate\(-0 [^"]*"', "", svg)
    svg = re.sub(r"<[^>]*>", _short_numbers, svg)
    svg = svg.replace(INK, "currentColor").replace("'DejaVu Sans', sans-serif", _FONTS)
    box = re.search(r'viewBox="([^"]*)"', svg)[1]
    head = (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="{box}" width="100%" role="img" aria-label="{escape(alt)}" '
        'fill="currentColor" stroke-linejoin="round" stroke-linecap="butt">'
        f"<title>{escape(alt, quote=False)}</title>"
    )
    return re.sub(r"^<svg[^>]*>", lambda _: head, re.sub(r"\s*\n\s*", " ", svg), count=1)


theme()
