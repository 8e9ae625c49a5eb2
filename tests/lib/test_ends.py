"""Names of curves stand at their ends, apart from each other, or in a legend."""

import numpy as np
import pandas as pd

from lib import ends, figures


def rising(levels):
    t = np.arange(1, 101)
    return pd.concat(
        pd.DataFrame({"t": t, "regret": level * t, "policy": name, "trial": trial})
        for name, level in levels.items()
        for trial in range(2)
    )


def test_curves_are_named_at_their_ends_where_the_names_fit():
    fig, ax = figures.grid()
    figures.curves(ax, rising({"LinUCB": 3.0, "CLUB": 2.0, "SCLUB": 1.0}))
    assert ends.name_curves(fig) and not fig.legends
    assert [note.xy[0] for note in ax.texts] == [100, 100, 100]
    figures.plt.close(fig)


def test_names_far_from_their_curves_go_into_a_legend():
    names = ("LinUCB", "CLUB", "SCLUB", "RCLUMB", "RSCLUMB", "LinUCB-Ind", "RLinUCB", "Oracle")
    fig, ax = figures.grid()
    figures.curves(ax, rising(dict.fromkeys(names, 1.0)))
    assert not ends.name_curves(fig) and figures._legend_below(fig)
    figures.plt.close(fig)


def test_names_are_moved_apart_and_no_further():
    assert ends.apart([0.0, 1.0, 30.0, 100.0], 14) == [-6.5, 7.5, 30.0, 100.0]
    assert ends.apart([5.0, 5.0, 5.0], 10) == [-5.0, 5.0, 15.0]
