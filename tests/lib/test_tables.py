"""Tables: aligned numbers, readable names, a caption, and the data that stand in them."""

import io

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from lib import tables
from lib.errors import BookError


@pytest.fixture
def shown(monkeypatch):
    pages = []
    monkeypatch.setattr(tables, "display", lambda data, raw: pages.append(data))
    return pages


def cells(frame, names=None, **options):
    """Return headings and rows as a reader sees them."""
    soup = BeautifulSoup(tables.html(frame, names or {}, **options), "html.parser")
    lines = [
        [cell.get_text() for cell in row.find_all(["th", "td"])] for row in soup.find_all("tr")
    ]
    return lines[0], lines[1:]


def column(*values, **options):
    return [row[0] for row in cells(pd.DataFrame({"x": list(values)}), **options)[1]]


def test_numbers_have_three_digits_and_one_number_of_decimals():
    assert column(1234.5, 98.76) == ["1,234", "99"]
    assert column(0.12345, 0.5, 0.0) == ["0.123", "0.500", "0.000"]
    assert column(1.2345, 2.5, digits=2) == ["1.2", "2.5"]
    assert column(-1.5, 2.25) == ["−1.50", "2.25"]


def test_no_number_is_rounded_away():
    assert column(1e-7, 3.0, 1234.0) == ["1.00e−07", "3.00", "1,234"]


def test_counts_missing_values_and_truth_are_words_of_their_own():
    assert column(1.0, np.nan, 20_000.0) == ["1", "–", "20,000"]
    assert column(True, False) == ["yes", "no"]
    assert column(0.5, np.inf) == ["0.500", "∞"]
    assert column("some", None, np.inf, 0.25, 3.0) == ["some", "–", "∞", "0.250", "3"]


def test_columns_have_the_names_that_people_read():
    frame = pd.DataFrame({"policy": ["CLUB"], "auc_x": [0.5], "k": [1], "mean": [2.0]})
    assert cells(frame, {"auc_x": "AUC of $x$"})[0] == ["Method", "AUC of x", "k", "Mean"]


def test_numbers_stand_to_the_right_and_words_to_the_left():
    frame = pd.DataFrame({"name": ["a"], "value": [1.5], "text": ["1.5 ± 0.1"], "what": ["2nd b"]})
    soup = BeautifulSoup(tables.html(frame, {}), "html.parser")
    assert ["rb-n" in cell.get("class", []) for cell in soup.find_all("td")] == [
        False, True, True, False
    ]  # fmt: skip


def test_sentences_have_room_in_a_column():
    frame = pd.DataFrame({"short": ["a", "b"], "said": ["", "at the end of its range, " * 3]})
    soup = BeautifulSoup(tables.html(frame, {}), "html.parser")
    assert ["rb-t" in cell.get("class", []) for cell in soup.find_all("td")] == [False, True] * 2


def test_equal_neighbours_of_an_index_are_one_cell_and_no_heading_is_empty():
    keys = pd.MultiIndex.from_product([["a", "b"], ["x", "y"]], names=["group", None])
    frame = pd.DataFrame(np.ones((4, 2)), keys, pd.MultiIndex.from_product([["A"], ["u", "v"]]))
    soup = BeautifulSoup(tables.html(frame, {}), "html.parser")
    assert [th["rowspan"] for th in soup.find_all("th", rowspan=True)] == ["2", "2"]
    assert [th["colspan"] for th in soup.find_all("th", colspan=True)] == ["2"]
    assert all(th.get_text() for th in soup.find_all("th"))
    wide = [sum(int(c.get("colspan", 1)) for c in row(["th", "td"])) for row in soup("tr")]
    assert wide == [4, 4, 4, 3, 4, 3]  # the rows below a tall cell have one cell less


def test_a_table_is_an_object_with_caption_and_data(shown):
    frame = pd.DataFrame({"policy": ["CLUB"], "regret": [1.23456789]})
    tables.show_table(frame, "tab-regret", "Regret & $T$.")
    (page,) = shown
    assert page["text/html"].startswith('<figure id="tab-regret" class="rb-table"><figcaption>')
    assert "Regret &amp; " in page["text/html"]
    assert pd.read_csv(io.StringIO(page["text/csv"]))["regret"].item() == 1.23457


@pytest.mark.parametrize(("name", "caption"), [("winners", "All."), ("tab-x", " ")])
def test_a_table_needs_a_name_and_a_caption(name, caption):
    with pytest.raises(BookError, match=r"name looks like|needs its caption"):
        tables.show_table(pd.DataFrame({"x": [1]}), name, caption)


def test_every_known_name_can_be_typeset():
    for key in tables.NAMES:
        assert tables.heading(key, {})
