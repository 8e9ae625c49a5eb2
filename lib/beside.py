"""The curves of a figure as numbers, and those of the published run drawn below one's own."""

import json
import os
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

LABEL = "published run"


def panels(fig: Figure) -> list[dict]:
    """Return the lines of each panel in the units of its axes; a line across the axes is none."""
    return [
        {
            "title": ax.get_title(),
            "lines": [
                {
                    "label": line.get_label(),
                    "x": _rounded(line.get_xdata(orig=False)),
                    "y": _rounded(line.get_ydata(orig=False)),
                }
                for line in _lines(ax)
            ],
        }
        for ax in fig.axes
    ]


def _lines(ax: Axes) -> list[Line2D]:
    return [line for line in ax.get_lines() if line.get_transform() == ax.transData]


def _rounded(values) -> list[float | None]:
    """Return six digits of each number, and none where there is no number."""
    numbers = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    return [float(f"{number:.6g}") if np.isfinite(number) else None for number in numbers]


def published(name: str) -> list[dict]:
    """Return the panels of a figure as the published run drew it; none where it did not.

    `REGRETBOOK_BESIDE` is the folder of that run.
    """
    folder = os.environ.get("REGRETBOOK_BESIDE")
    if not folder:
        return []
    try:
        return json.loads((Path(folder) / f"figures/{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []


def draw(fig: Figure, found: list[dict], color: str) -> bool:
    """Draw published lines below those of this run, at their own checkpoints; say if any was drawn.

    Where the number of panels differs, a panel is known by its title.
    """
    by_title = {panel["title"]: panel for panel in found}
    drawn = False
    for i, ax in enumerate(fig.axes):
        panel = found[i] if len(found) == len(fig.axes) else by_title.get(ax.get_title())
        own = {line.get_label(): line for line in _lines(ax)}
        for kept in panel["lines"] if panel else []:
            x, y = (np.array(kept[axis], dtype=float) for axis in "xy")
            (line,) = ax.plot(x, y)
            if twin := own.get(kept["label"]):  # dashes and markers tell which curve it is
                line.update_from(twin)
                line.set_markevery(twin.get_markevery())
            line.set(color=color, markerfacecolor="none", markeredgecolor=color)
            line.set(linewidth=1.2, markersize=4, markeredgewidth=1.0, zorder=1.5)
            line.set_label("_published")
            drawn = True
    if drawn:
        fig.axes[0].plot([], [], color=color, linewidth=1.2, label=LABEL)
    return drawn
