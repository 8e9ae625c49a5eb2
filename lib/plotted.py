"""The numbers that a figure shows, read back from what was drawn, for whoever wants the data."""

import weakref
from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

_bands: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def keep_band(line: Line2D, low: np.ndarray, high: np.ndarray) -> None:
    """Remember the band of a line; matplotlib draws it as a shape that belongs to nothing."""
    _bands[line] = low, high


def data(fig: Figure) -> pd.DataFrame:
    """Return a row for each point of each panel, with its band or error bar, and what axes say."""
    tables = []
    for number, ax in enumerate(fig.axes, 1):
        panel = ax.get_title() or str(number)
        for series, columns in _series(ax):
            table = pd.DataFrame({"panel": panel, "series": series, **columns})
            tables.append(table.assign(x_is=ax.get_xlabel(), y_is=ax.get_ylabel()))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _series(ax: Axes) -> Iterator[tuple[str, dict]]:
    """Yield name and columns of the curves, clouds, bars and maps of a panel; no guide lines."""
    bars = {
        id(each.lines[0]): each for each in ax.containers if isinstance(each, ErrorbarContainer)
    }
    for line in ax.lines:
        if not all(line.get_transform().contains_branch_seperately(ax.transData)):
            continue  # a guide line across the panel
        low = high = np.full(len(line.get_xdata(orig=True)), np.nan)
        if line in _bands:
            low, high = _bands[line]
        elif (bar := bars.get(id(line))) and bar.has_yerr:
            low, high = np.array(bar.lines[2][-1].get_segments())[:, :, 1].T
        x, y = line.get_xdata(orig=True), line.get_ydata(orig=True)
        yield _name(bars.get(id(line), line)), {"x": x, "y": y, "low": low, "high": high}
    for cloud in ax.collections:
        if isinstance(cloud, PathCollection):
            x, y = np.ma.getdata(cloud.get_offsets()).T
            yield _name(cloud), {"x": x, "y": y}
    for group in ax.containers:
        if isinstance(group, BarContainer):
            middle = [bar.get_x() + bar.get_width() / 2 for bar in group]
            yield _name(group), {"x": middle, "y": [bar.get_height() for bar in group]}
    for image in ax.images:
        values = np.asarray(image.get_array())
        if values.ndim == 2:
            y, x = np.indices(values.shape)
            yield _name(image), {"x": x.ravel(), "y": y.ravel(), "value": values.ravel()}


def _name(artist) -> str:
    label = str(artist.get_label())
    return "" if label.startswith("_") else label
