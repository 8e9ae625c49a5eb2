"""Figures: legible in both modes, the same bytes every time, and honest about their bands."""

import importlib
import io
import json
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib import colors
from matplotlib import pyplot as plt
from scipy import stats

from lib import figures
from lib.errors import BookError

CHAPTERS = {
    "linear-bandits": "LinUCB, LinUCB-Ind, Thompson sampling, OFUL, CW-OFUL, CW-OFUL-Ind, Oracle",
    "clustering-of-bandits": "LinUCB, LinUCB-Ind, CLUB, SCLUB, Oracle",
    "misspecified-users": (
        "LinUCB, LinUCB-Ind, RLinUCB, RLinUCB-Ind, CLUB, SCLUB, RCLUMB, RSCLUMB, Oracle"
    ),
    "corrupted-users": (
        "LinUCB, LinUCB-Ind, CW-OFUL, CW-OFUL-Ind, CLUB, SCLUB, RCLUB-WCU, Oracle, OCCUD, GCUD"
    ),
    "conversational": (
        "LinUCB, Arm-Con, ConUCB, ConLinUCB-BS, ConLinUCB-MCR, ConLinUCB-UCB, Oracle"
    ),
    "nonstationary": (
        "LinUCB, SW-UCB, EXP3.S, D-LinUCB, RestartUCB, Restarted-WeightedOFUL+, Restarted-SAVE+, "
        "SAVE+-BOB, Oracle"
    ),
    "dueling": "COLDB, CONDB, LDB-Ind, NDB-Ind, Oracle",
    "model-based": "O-MBRL, PSRL, UCBVI, MVP, CPPO-LR, PEVI, BC, Oracle",
    "zero-shot": "PERM, PPPO, PEVI, BC, CQL, IQL, LEEP, Oracle",
}


def luminance(color):
    rgb = np.array(colors.to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def runs(names=("LinUCB", "CLUB"), trials=5, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(100, 20_100, 400)
    return pd.concat(
        pd.DataFrame(
            {"t": t, "regret": np.cumsum(rng.exponential(size=t.size)), "policy": n, "trial": i}
        )
        for n in names
        for i in range(trials)
    )


@pytest.fixture
def shown(monkeypatch):
    """Collect what would be displayed in the page."""
    pages = []
    monkeypatch.setattr(figures, "display", lambda data, raw: pages.append(data))
    return pages


def draw(name="fig-regret", caption="Regret.", alt="Two rising curves.", table=None, **options):
    fig, ax = figures.grid()
    figures.curves(ax, runs() if table is None else table, **options)
    figures.show(fig, name=name, caption=caption, alt=alt)


@pytest.mark.parametrize("background", ["#ffffff", "#14181e", "#121212"])
def test_palette_has_graphics_contrast_on_both_backgrounds(background):
    assert min(contrast(color, background) for color in figures.PALETTE) >= 3


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_algorithms_of_a_chapter_differ_in_colour_and_without_it(chapter):
    looks = [figures.style(name) for name in CHAPTERS[chapter].split(", ")]
    full = {(look["color"], look["marker"], look["linestyle"]) for look in looks}
    grey = {(look["marker"], look["linestyle"]) for look in looks}
    assert len(full) == len(grey) == len(looks)


def test_variants_keep_the_colour_and_turn_the_line(shown):
    base, variant = figures.style("LinUCB"), figures.style("LinUCB (tuned)", variant=1)
    assert base["color"] == variant["color"] and base["linestyle"] != variant["linestyle"]
    fig, ax = figures.grid()
    figures.curves(ax, runs(("LinUCB", "LinUCB (tuned)", "LinUCB (theory)")))
    assert len({line.get_linestyle() + str(line._dash_pattern) for line in ax.lines}) == 3
    figures.show(fig, "fig-variants", "Variants.", "Three curves.")


def test_unknown_algorithm_is_refused_with_the_nearest_name():
    with pytest.raises(BookError, match=r"did you mean .*SCLUB"):
        figures.style("SCLUBB")


def test_band_is_the_student_interval_of_the_mean():
    table = runs(("LinUCB",), trials=7)
    at_end = table[table.t == table.t.max()].regret
    low, high = stats.t.interval(0.95, 6, at_end.mean(), stats.sem(at_end))
    last = figures.summary(table).iloc[-1]
    assert np.allclose(last, [at_end.mean(), low, high])


def test_a_single_trial_has_no_band():
    single = figures.summary(runs(("LinUCB",), trials=1))
    assert single[["low", "high"]].isna().all().all()


def test_band_is_named_in_words():
    assert figures.band_text(20) == (
        "mean of 20 trials, the band is the 95% Student-t interval of the mean"
    )
    assert figures.band_text(1) == "one trial, no band"
    assert figures.band_text(20, band=False) == "mean of 20 trials"
    assert figures.band_text(3, 10, 3, band=False) == "mean of 3 or 10 trials"
    with pytest.raises(BookError, match="at least one trial"):
        figures.band_text(0)


def test_a_title_says_the_message_above_the_picture_and_stays_out_of_it(shown):
    for title in ("Pooling saves $d$ of <10 rounds.", ""):
        fig, ax = figures.grid()
        figures.curves(ax, runs())
        figures.show(fig, "fig-regret", "Regret.", "Two rising curves.", title=title)
    titled, plain = (page["text/html"] for page in shown)
    message = re.search(r'class="rb-figure"><p class="rb-title">(.*?)</p><div', titled)[1]
    assert message.startswith("Pooling saves <span") and message.endswith(" of &lt;10 rounds.")
    assert titled.replace(f'<p class="rb-title">{message}</p>', "") == plain


def test_svg_follows_the_page_and_says_what_it_shows(shown):
    draw(alt='Regret of "LinUCB" & CLUB.')
    html = shown[0]["text/html"]
    assert html.startswith('<figure id="fig-regret" class="rb-figure">')
    assert 'role="img" aria-label="Regret of &quot;LinUCB&quot; &amp; CLUB."' in html
    assert "<title>Regret of" in html and "<figcaption>Regret.</figcaption>" in html
    assert "currentColor" in html and "#000000" not in html
    assert "<metadata" not in html and "<style" not in html
    assert ">LinUCB</text>" in html and ">20k</text>" in html
    assert shown[0]["text/plain"] == "Regret."


def test_coordinates_are_short_and_labels_whole(shown):
    fig, ax = figures.grid()
    ax.plot([1, 2], [1 / 3, 2 / 3])
    ax.set_xticks([1, 2], ["0.001", "σ = 0.0125"])
    figures.show(fig, "fig-labels", caption="Labels.", alt="A line.")
    html = shown[0]["text/html"]
    assert ">0.001</text>" in html and ">σ = 0.0125</text>" in html
    assert not re.search(r'd="[^"]*\d\.\d{3}', html)


def test_same_figure_gives_the_same_bytes(shown):
    draw()
    draw()
    assert shown[0] == shown[1]


def test_two_figures_of_a_page_share_no_id(shown):
    draw()
    draw(name="fig-other")
    first, second = (set(re.findall(r'\bid="([^"]*)"', page["text/html"])) for page in shown)
    assert first and second and not first & second
    for page in shown:
        html = page["text/html"]
        used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', html))
        assert used <= set(re.findall(r'\bid="([^"]*)"', html))


def test_maths_of_the_caption_is_typeset_and_text_is_escaped(shown):
    draw(caption="Regret for $a < b$ & <more>.")
    caption = re.search(r"<figcaption>(.*)</figcaption>", shown[0]["text/html"])[1]
    assert caption.startswith('Regret for <span class="math"><math>')
    assert "<mo>&lt;</mo>" in caption and caption.endswith("&amp; &lt;more&gt;.")


def test_figure_is_noted_in_the_journal(shown, tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path))
    draw()
    figures.missing("fig-yelp", "YelpZip is not here; see the data page.")
    first, second = map(json.loads, (tmp_path / "journal.jsonl").read_text().splitlines())
    assert first == {
        "kind": "figure",
        "name": "fig-regret",
        "caption": "Regret.",
        "alt": "Two rising curves.",
        "curves": "figures/fig-regret.json",
        "beside": "",
    }
    assert second["name"] == "fig-yelp" and "rb-missing" in shown[1]["text/html"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "regret"}, "looks like 'fig-regret'"),
        ({"caption": " "}, "needs its caption"),
        ({"alt": ""}, "needs its alt"),
        ({"y": "reward"}, "no column reward"),
    ],
)
def test_figure_without_its_words_is_refused(change, message):
    with pytest.raises(BookError, match=message):
        draw(**change)


def test_panels_stay_readable_on_a_phone(shown):
    with pytest.raises(BookError, match="one or two columns"):
        figures.grid(1, 3)
    fig, axes = figures.grid(1, 2)
    for ax in axes:
        figures.curves(ax, runs())
        ax.set_xscale("log")
    figures.show(fig, "fig-panels", "Panels.", "Two panels.")
    html = shown[0]["text/html"]
    assert "rb-wide" in html
    assert html.count(">LinUCB</text>") == 1, "one legend serves all panels"
    assert ">1k</text>" in html


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (-2500, "−2.5k"), (20_000, "20k"), (1.5e6, "1.5M")],
)
def test_ticks_are_short(value, text):
    assert figures.compact(value) == text


def test_a_figure_carries_the_numbers_that_it_shows(shown):
    table = runs(("LinUCB", "CLUB"), trials=4)
    draw(table=table)
    data = pd.read_csv(io.StringIO(shown[0]["text/csv"]))
    end = data[(data["series"] == "CLUB") & (data["x"] == table["t"].max())].iloc[0]
    wanted = figures.summary(table[table["policy"] == "CLUB"]).iloc[-1]
    assert np.allclose(end[["y", "low", "high"]].astype(float), wanted, rtol=1e-4)
    assert set(data["series"]) == {"LinUCB", "CLUB"}


def test_a_figure_that_two_cells_draw_is_shown_once(monkeypatch):
    """Whatever pyplot makes in a notebook is displayed at the end of its cell."""
    name = "matplotlib_inline.backend_inline"  # which ipykernel brings
    show, before = importlib.import_module(name).show, plt.get_backend()
    monkeypatch.setattr(show, "_draw_called", False)
    plt.switch_backend(f"module://{name}")
    try:
        with plt.ion():
            figures.curves(figures.grid()[1], runs())
            assert not show._draw_called
            plt.subplots()
            assert show._draw_called
    finally:
        plt.close("all")
        plt.switch_backend(before)
