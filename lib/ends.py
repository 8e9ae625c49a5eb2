"""Names of curves at their ends, where a reader looks for them, instead of a legend far away."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

NAME_HEIGHT = 14.0  # points between the names of two curves


def name_curves(fig: Figure) -> bool:
    """Write the names of curves at their right ends, unless one would stand far from its curve."""
    if len(fig.axes) != 1 or fig.legends or fig.axes[0].get_legend():
        return False
    ax = fig.axes[0]
    handles, labels = ax.get_legend_handles_labels()
    if not all(isinstance(each, Line2D) for each in handles) or not 2 <= len(handles) <= 8:
        return False
    found = [_end(ax, line) for line in handles]
    if max(map(len, labels)) > 24 or any(end is None for end in found):
        return False
    heights = [end[1] for end in found]
    moves = np.subtract(apart(heights, NAME_HEIGHT), heights)
    if np.abs(moves).max() > 2 * NAME_HEIGHT:
        return False
    crowded = np.abs(moves).max() > 0.25 * NAME_HEIGHT
    for line, label, (point, _), move in zip(handles, labels, found, moves, strict=True):
        lead = {"arrowstyle": "-", "color": line.get_color(), "shrinkA": 0, "shrinkB": 0}
        ax.annotate(
            label,
            point,
            (16 if crowded else 7, move),
            textcoords="offset points",
            va="center",
            fontsize=11.5,
            arrowprops={**lead, "relpos": (0, 0.5)} if crowded else None,
            annotation_clip=False,
        )
    return True


def _end(ax: Axes, line: Line2D) -> tuple[tuple[float, float], float] | None:
    """Return the last point of a curve and its height in points; None when it ends too early."""
    x, y = (np.ma.asarray(each, dtype=float) for each in line.get_data(orig=False))
    there = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if not len(there):
        return None
    last = there[np.argmax(x[there])]
    across, up = ax.transAxes.inverted().transform(ax.transData.transform((x[last], y[last])))
    if across < 0.9 or not 0 <= up <= 1:
        return None
    return (float(x[last]), float(y[last])), up * 0.8 * ax.figure.get_figheight() * 72


def apart(heights: list[float], gap: float) -> list[float]:
    """Move heights as little as needed, so that each is a gap above the next lower one."""
    groups: list[list[int]] = []
    middle: list[float] = []
    for i in np.argsort(heights, kind="stable"):
        groups.append([int(i)])
        middle.append(heights[i])
        while (
            len(groups) > 1
            and middle[-1] - middle[-2] < gap * (len(groups[-1]) + len(groups[-2])) / 2
        ):
            joined = groups[-2] + groups[-1]
            groups[-2:], middle[-2:] = [joined], [float(np.mean([heights[k] for k in joined]))]
    found = [0.0] * len(heights)
    for group, centre in zip(groups, middle, strict=True):
        for place, i in enumerate(group):
            found[i] = centre + gap * (place - (len(group) - 1) / 2)
    return found
