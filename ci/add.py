"""`regretbook data add`: a reader's own ratings become a dataset beside those of the book.

A file of users, items and ratings, with a header that names them or none at all, is checked line by
line and written to `data/raw/NAME` as `user,item,rating`, users and items numbered in the order in
which they come, beside a card of the registry's form. Nothing of it is ever part of the repository.
"""

import csv
import hashlib
import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ci.project import write
from lib import datasets
from lib.errors import BookError
from lib.formats import lines
from lib.paths import Project

COLUMNS = ("user", "item", "rating")
# What owners call the columns: MovieLens, Amazon, RecBole's .inter files, Yelp.
NAMES = {
    "user": ("user", "user_id", "userid", "reviewerid", "u"),
    "item": ("item", "item_id", "itemid", "movieid", "artistid", "asin", "business_id", "i"),
    "rating": ("rating", "ratings", "overall", "stars", "score", "r"),
}
LEAST = 10  # users and items: with fewer there is nothing to choose from


class Ratings(NamedTuple):
    """What a file holds: a row for each rating, users and items as numbers."""

    rows: list[tuple[int, int, str]]
    users: int
    items: int


def add(project: Project, name: str, file: Path, columns: str | None) -> str:
    """Read a reader's file, keep it as a dataset, and return what to say."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise BookError(f"a dataset is named by small letters, digits and hyphens, not {name!r}")
    if name in datasets.registered():
        raise BookError(f"{name} is a dataset of the book; choose another name")
    if not file.is_file():
        raise BookError(f"there is no file {file}")
    found = read(file, columns)
    folder = project.data / "raw" / name
    text = "user,item,rating\n" + "".join(f"{u},{i},{r}\n" for u, i, r in found.rows)
    write(folder / "ratings.csv", text)
    write(folder / datasets.CARD, card(name, file.name, found, text))
    return (
        f"{name}: {len(found.rows):,} ratings of {found.users:,} users on {found.items:,} items; "
        f"pages on ratings take it with -p dataset={name}"
    )


def card(name: str, file: str, found: Ratings, text: str) -> str:
    """Return the card of a dataset, of the registry's form."""
    import yaml

    counts = {"rows": len(found.rows), "users": found.users, "items": found.items}
    entry = {
        "title": f"{name} (your own file {file})",
        "owner": "you",
        "homepage": "",
        "reference": [],
        "format": "ratings",
        "files": {"ratings.csv": hashlib.sha256(text.encode()).hexdigest()},
        "counts": counts,
        "redistribute": False,
        "terms": "Yours; the book passes nothing of it on.",
        "get": f"It was added by `regretbook data add {name}`.",
    }
    return yaml.safe_dump(entry, allow_unicode=True, sort_keys=False)


def read(file: Path, columns: str | None = None) -> Ratings:
    """Return the ratings of a file, or say in which line it is wrong."""
    rows = _fields(file)
    number, first = next(rows, (0, []))
    if not number:
        raise BookError(f"{file.name} has no lines")
    places, has_header = _places(file, first, columns)
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    ratings = []
    rated = rows if has_header else itertools.chain([(number, first)], rows)
    for line, fields in rated:
        if len(fields) <= max(places):
            raise BookError(f"{file.name}, line {line}: expected {len(first)} fields")
        user, item, rating = (fields[place].strip() for place in places)
        if not (user and item and _is_number(rating)):
            raise BookError(
                f"{file.name}, line {line}: expected a user, an item and a number as rating, "
                f"found {user[:30]!r}, {item[:30]!r}, {rating[:30]!r}"
            )
        ratings.append(
            (users.setdefault(user, len(users)), items.setdefault(item, len(items)), rating)
        )
    if min(len(users), len(items)) < LEAST:
        raise BookError(
            f"{file.name} has {len(ratings):,} ratings of {len(users):,} users on {len(items):,} "
            f"items; a dataset needs {LEAST} users and {LEAST} items at least"
        )
    return Ratings(ratings, len(users), len(items))


def _fields(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Return numbered lines as fields; the first line says what separates them."""
    separator = None
    for number, line in lines(file):
        if not line.strip():
            continue
        if separator is None:
            separator = next((mark for mark in ("::", "\t", ",", ";") if mark in line), " ")
        if separator in (",", ";"):
            yield number, next(csv.reader([line], delimiter=separator))
        else:
            yield number, line.split(separator)


def _places(file: Path, first: list[str], columns: str | None) -> tuple[list[int], bool]:
    """Return where user, item and rating stand, and whether the first line is a header."""
    plain = [field.partition(":")[0].strip().strip('"\ufeff').lower() for field in first]
    if columns is not None:
        wanted = [name.strip().lower() for name in columns.split(",")]
        if len(wanted) != len(COLUMNS):
            raise BookError("--columns takes three names or numbers: user,item,rating")
        if all(name.isdecimal() and 1 <= int(name) <= len(first) for name in wanted):
            return [int(name) - 1 for name in wanted], not _is_number(first[int(wanted[2]) - 1])
        if missing := [name for name in wanted if name not in plain]:
            raise BookError(f"{file.name} has no column {missing[0]!r}; it has {', '.join(plain)}")
        return [plain.index(name) for name in wanted], True
    found = [next((plain.index(n) for n in NAMES[c] if n in plain), None) for c in COLUMNS]
    if None not in found:
        return found, True
    if len(first) >= 3 and _is_number(first[2]):
        return [0, 1, 2], False
    raise BookError(
        f"{file.name}, line 1: which columns are user, item and rating? Name them with "
        f"--columns, from {', '.join(plain)}"
    )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
