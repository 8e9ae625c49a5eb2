"""The owners' file formats: a file becomes a tidy frame, or one sentence says why it cannot.

A whole table goes through pandas' C parser; only when a file does not fit is it read line by line,
to name the first line that is wrong.
"""

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lib.errors import BookError


def open_plain(path: Path):
    return gzip.open(path) if path.suffix == ".gz" else open(path, "rb")


def plain_name(path: Path) -> str:
    return path.name.removesuffix(".gz")


class Field(NamedTuple):
    """How one kind of field is read, and what a line of text and a whole column must satisfy."""

    dtype: str
    fits: Callable[[str], bool]
    holds: Callable[[pd.Series], bool]


def _is_whole(text: str) -> bool:
    return bool(re.fullmatch(r"\d{1,18}", text))


def _is_stars(text: str) -> bool:
    return bool(re.fullmatch(r"\d(\.\d+)?", text)) and 0.5 <= float(text) <= 5


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[-+]?\d*\.?\d+([eE][-+]?\d+)?", text))


def _is_date(text: str) -> bool:
    try:
        return bool(datetime.strptime(text, "%Y-%m-%d"))
    except ValueError:
        return False


FIELDS = {
    "whole": Field("int64", _is_whole, lambda s: s.min() >= 0),
    "key": Field("str", bool, lambda s: s.notna().all()),
    "number": Field("float64", _is_number, lambda s: s.notna().all()),
    "stars": Field("float64", _is_stars, lambda s: s.between(0.5, 5).all()),
    "label": Field("int64", lambda text: text in ("1", "-1"), lambda s: s.isin((1, -1)).all()),
    "date": Field("str", _is_date, lambda s: s.notna().all()),
}


class Layout(NamedTuple):
    """One owner's table: separator, header line if any, and the kind of each column."""

    separator: str
    header: str | None
    columns: dict[str, str]

    def words(self) -> str:
        return self.separator.replace(r"\s+", " ").join(self.columns)


_RATING = {"user": "whole", "item": "whole", "rating": "stars"}
_TAG = {"user": "whole", "item": "whole", "tag": "whole"}
_DAY = dict.fromkeys(("day", "month", "year"), "whole")
_CLOCK = dict.fromkeys(("hour", "minute", "second"), "whole")

# HetRec is tab separated, but line 2 of its MovieLens tags has doubled tabs, and Yelp comes with
# tabs or spaces: there any white space separates.
LAYOUTS = {
    "movielens-dat": [Layout("::", None, _RATING | {"time": "whole"})],
    "movielens-csv": [
        Layout(",", "userId,movieId,rating,timestamp", _RATING | {"time": "whole"}),
        Layout(",", "user,item,rating", _RATING),
    ],
    "ratings": [Layout(",", "user,item,rating", _RATING | {"rating": "number"})],
    "yelp": [Layout(r"\s+", None, _RATING | {"label": "label", "date": "date"})],
    "amazon": [
        Layout(
            ",",
            None,
            {"user": "key", "item": "key", "rating": "stars"}
            | dict.fromkeys(("time", "helpful", "total"), "whole"),
        )
    ],
    "hetrec-lastfm": [Layout(r"\s+", "userID artistID tagID day month year", _TAG | _DAY)],
    "hetrec-movielens": [
        Layout(
            r"\s+",
            "userID movieID tagID date_day date_month date_year date_hour date_minute date_second",
            _TAG | _DAY | _CLOCK,
        )
    ],
}


def label(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines; a damaged gzip is an error that says after which line."""
    number = 0
    try:
        with open_plain(path) as file:
            for number, line in enumerate(file, 1):
                # HetRec's tag names are Latin-1, everything else is ASCII.
                yield number, line.decode("latin-1").rstrip("\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BookError(
            f"{label(path)} is damaged or cut short after line {number} ({error}), get it again"
        ) from error


def _layout_of(form: str, path: Path) -> Layout:
    layouts = LAYOUTS[form]
    _, first = next(lines(path), (0, ""))
    for layout in layouts:
        if not first or layout.header in (None, first.replace("\t", " ")):
            return layout
    expected = " or ".join(f"'{layout.header}'" for layout in layouts)
    raise BookError(f"{label(path)}, line 1: expected the header {expected}, found '{first[:60]}'")


def _fits(texts: Iterable[str], columns: dict[str, str]) -> bool:
    pairs = zip_longest(texts, columns.values())
    return all(text is not None and kind and FIELDS[kind].fits(text) for text, kind in pairs)


def _blame(path: Path, layout: Layout, reason: str) -> BookError:
    """Find the first line that does not fit, which the fast parser does not reliably name."""
    empty = True
    for number, line in lines(path):
        if not line.strip() or (number == 1 and layout.header):
            continue
        empty = False
        if not _fits(re.split(layout.separator, line.strip()), layout.columns):
            return BookError(
                f"{label(path)}, line {number}: expected {layout.words()}, found '{line[:60]}'"
            )
    if empty:
        return BookError(f"{label(path)} has no rows: expected lines of {layout.words()}")
    return BookError(f"{label(path)} could not be read as lines of {layout.words()}: {reason}")


def _table(path: Path, layout: Layout) -> pd.DataFrame:
    """Read a whole table with the C parser; only when that fails is the file read line by line."""
    names = list(layout.columns)
    separator = layout.separator
    if separator == "::":
        # The C parser splits at one character, which leaves an empty column inside each '::'.
        separator, names = ":", [part for name in names for part in (name, f"{name}:")][:-1]
    kinds = {name: FIELDS[kind] for name, kind in layout.columns.items()}
    try:
        frame = pd.read_csv(
            path,
            sep=separator,
            names=names,
            header=None,
            skiprows=1 if layout.header else 0,
            dtype={name: field.dtype for name, field in kinds.items()},
            quoting=csv.QUOTE_NONE,
            encoding="latin-1",
            keep_default_na=False,
            na_values=[""],
        )
        if "date" in kinds:
            frame["date"] = pd.to_datetime(frame["date"], format="%Y-%m-%d")
    except (ValueError, OverflowError, EOFError, OSError, zlib.error) as error:
        raise _blame(path, layout, str(error).partition("\n")[0]) from error
    # pandas takes surplus fields of the first line for an index.
    sound = isinstance(frame.index, pd.RangeIndex) and len(frame) > 0
    sound = sound and frame[[name for name in names if name not in kinds]].isna().all(axis=None)
    if not (sound and all(field.holds(frame[name]) for name, field in kinds.items())):
        raise _blame(path, layout, "a value is missing or out of range")
    return frame[list(layout.columns)]


def _amazon_json(path: Path) -> pd.DataFrame:
    columns, rows = LAYOUTS["amazon"][0].columns, []
    for number, line in lines(path):
        try:
            review = json.loads(line)
            row = [review[key] for key in ("reviewerID", "asin", "overall", "unixReviewTime")]
            row += review["helpful"]
            if not _fits(map(str, row), columns):
                raise ValueError
        except (ValueError, KeyError, TypeError) as error:
            raise BookError(
                f"{label(path)}, line {number}: expected a JSON review with reviewerID, asin, "
                f"overall, unixReviewTime and helpful, found '{line[:60]}'"
            ) from error
        rows.append(row)
    if not rows:
        raise BookError(f"{label(path)} has no rows: expected one JSON review a line")
    return pd.DataFrame(rows, columns=list(columns))


def read(form: str, path: Path) -> pd.DataFrame:
    if plain_name(path).endswith(".json"):
        return _amazon_json(path)
    return _table(path, _layout_of(form, path))
