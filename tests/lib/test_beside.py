"""Curves beside published ones: drawn where they were measured, and told apart from one's own."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from lib import beside, figures, journal
from lib.journal import Figure


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Return a function that draws a figure as a page of a run would, and gives its entry."""
    monkeypatch.setattr(figures, "display", lambda data, raw: None)

    def draw(run, x, y, name="LinUCB", panels=1, published=None):
        (tmp_path / run).mkdir(exist_ok=True)
        monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path / run))
        monkeypatch.setenv("REGRETBOOK_BESIDE", str(tmp_path / published) if published else "")
        fig, axes = figures.grid(1, panels, squeeze=False)
        for ax in axes.flat:
            ax.plot(x, y, label=name, **figures.style(name))
            ax.axhline(0.5)
        figures.show(fig, "fig-regret", "Regret.", "A curve.")
        return journal.read(tmp_path / run)[-1]

    return draw


def test_a_run_keeps_its_curves_as_numbers(page, tmp_path):
    entry = page("one", [1, 2, 4], [0.1, np.nan, 1 / 3])
    assert entry == Figure("fig-regret", "Regret.", "A curve.", "figures/fig-regret.json", "")
    (panel,) = json.loads((tmp_path / "one" / entry.curves).read_text())
    assert panel["lines"] == [{"label": "LinUCB", "x": [1, 2, 4], "y": [0.1, None, 0.333333]}]
    assert not (tmp_path / "one/figures/fig-regret.svg").exists()


def test_published_curves_keep_their_own_checkpoints(page, tmp_path, monkeypatch):
    page("published", [10, 20, 30], [1, 2, 3])
    drawn, close = [], plt.close

    def keep(fig):
        drawn.extend(fig.axes[0].get_lines())
        close(fig)

    monkeypatch.setattr(plt, "close", keep)
    entry = page("mine", [100, 200], [5, 9], published="published")
    grey = [line for line in drawn if line.get_color() == figures.GREY and len(line.get_xdata())]
    assert [(*line.get_xdata(), *line.get_ydata()) for line in grey] == [(10, 20, 30, 1, 2, 3)]
    mine = next(line for line in drawn if line.get_label() == "LinUCB")
    assert list(mine.get_xdata()) == [100, 200], "curves are not joined"
    assert mine.get_zorder() > grey[0].get_zorder()
    assert grey[0].get_marker() == mine.get_marker(), "a marker tells which curve it is"
    svg = (tmp_path / "mine" / entry.beside).read_text()
    assert beside.LABEL in svg and figures.GREY.lower() in svg.lower()
    kept = json.loads((tmp_path / "mine" / entry.curves).read_text())
    assert [line["x"] for line in kept[0]["lines"]] == [[100, 200]], "published ones are not mine"


def test_the_page_itself_shows_its_own_curves_alone(page, tmp_path, monkeypatch):
    page("published", [10, 20, 30], [1, 2, 3])
    shown = []
    monkeypatch.setattr(figures, "display", lambda data, raw: shown.append(data["text/html"]))
    page("plain", [100, 200], [5, 9])
    page("mine", [100, 200], [5, 9], published="published")
    assert shown[0] == shown[1]


@pytest.mark.parametrize("damage", ["", "[", None])
def test_without_published_curves_there_is_no_comparison(page, tmp_path, damage):
    page("published", [1, 2], [1, 2])
    file = tmp_path / "published/figures/fig-regret.json"
    file.unlink() if damage is None else file.write_text(damage)
    assert page("mine", [1, 2], [3, 4], published="published").beside == ""


def test_panels_that_are_not_the_same_are_not_mixed(page):
    page("published", [1, 2], [1, 2], panels=2)
    one, two = [{"title": "a", "lines": []}], [{"title": "b", "lines": []}] * 2
    fig, ax = plt.subplots()
    ax.set_title("c")
    line = {"label": "LinUCB", "x": [1], "y": [1]}
    assert not beside.draw(fig, [{**panel, "lines": [line]} for panel in two], figures.GREY)
    assert beside.draw(fig, [{**panel, "lines": [line]} for panel in one], figures.GREY)
    plt.close(fig)
