"""Real files and what chapters make of them: where a dataset lies, tidy frames, matrices, features.

The registry is `data/registry.yml`. Asking for a dataset is noted in the journal, found or not,
because a page depends on that answer. An absent dataset is an error with a remedy, never a
synthetic stand-in.
"""

import csv
import functools
import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import yaml

from lib import journal, paths
from lib.errors import BookError, nearest


class Found(NamedTuple):
    """A dataset on this machine: its folder and which place of the search order that is."""

    path: Path
    where: str  # embedded | raw | environment | shared


class Status(NamedTuple):
    """One row of `regretbook data list`."""

    name: str
    title: str
    where: str  # as in Found, or absent
    terms: str
    rows: int
    users: int
    items: int
    digest: str | None  # None when absent
    intact: bool | None  # None when absent or when no digest is registered


@functools.cache
def registry() -> dict[str, dict]:
    """Return the entries of `data/registry.yml` by dataset name."""
    return yaml.safe_load((paths.DATA / "registry.yml").read_text(encoding="utf-8"))


def _entry(name: str) -> dict:
    if name not in registry():
        raise BookError(
            f"there is no dataset '{name}'{nearest(name, registry())}"
            f" (known: {', '.join(registry())})"
        )
    return registry()[name]


def _places(entry: dict) -> Iterator[tuple[str, Path]]:
    if entry.get("embedded"):
        yield "embedded", paths.DATA
    yield "raw", paths.DATA / "raw"
    if os.environ.get("REGRETBOOK_DATA"):
        yield "environment", Path(os.environ["REGRETBOOK_DATA"])
    yield "shared", paths.ROOT.parent / "shared" / "datasets"


def _files(entry: dict, folder: Path) -> list[Path] | None:
    """Return the files of a dataset as they lie in `folder`; None when one is missing."""
    files = []
    for file in entry["files"]:
        names = [file, entry.get("or", {}).get(file, file)]
        candidates = [folder / (name + suffix) for name in names for suffix in ("", ".gz")]
        files.append(next((path for path in candidates if path.is_file()), None))
    return None if None in files else files


def _locate(name: str) -> Found | None:
    entry = _entry(name)
    for where, place in _places(entry):
        for folder in [name, *entry.get("folders", [])]:
            if _files(entry, place / folder):
                return Found(place / folder, where)
    return None


def find(name: str) -> Found | None:
    """Return where the dataset lies, or None, and note the answer in the journal."""
    found = _locate(name)
    journal.note("data", name=name, digest=digest(name), where=found.where if found else "absent")
    return found


def _need(name: str) -> list[Path]:
    entry, found = _entry(name), find(name)
    if found:
        return _files(entry, found.path)
    raise BookError(
        f"the dataset {name} ({' and '.join(entry['files'])}, plain or .gz) is in none of "
        f"data/raw/{name}, $REGRETBOOK_DATA/{name} and ../shared/datasets/{name}: {_remedy(name)}"
    )


def _remedy(name: str) -> str:
    if "download" in _entry(name):
        return f"run `regretbook data fetch {name}`"
    return _entry(name)["get"].rstrip(".")


def _open(path: Path):
    return gzip.open(path) if path.suffix == ".gz" else open(path, "rb")


@functools.cache
def _sha256_of(path: Path, size: int, modified: int) -> str:
    try:
        with _open(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (EOFError, OSError, zlib.error):
        # A damaged gzip still needs a digest, so that its repair is noticed.
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _sha256(path: Path) -> str:
    stat = path.stat()
    return _sha256_of(path, stat.st_size, stat.st_mtime_ns)


def _plain(path: Path) -> str:
    return path.name.removesuffix(".gz")


def _listing(digests: dict[str, str]) -> str:
    lines = "".join(f"{digest}  {file}\n" for file, digest in digests.items())
    return hashlib.sha256(lines.encode()).hexdigest()


def digest(name: str) -> str | None:
    """Return the SHA-256 of the `sha256sum` listing of the uncompressed files, None when absent."""
    found = _locate(name)
    if found is None:
        return None
    return _listing({_plain(path): _sha256(path) for path in _files(_entry(name), found.path)})


def _expected(entry: dict, files: list[Path]) -> dict[str, str | None]:
    return {_plain(path): entry["files"].get(_plain(path)) for path in files}


def status() -> list[Status]:
    """Return one row per registered dataset, for `regretbook data list`."""
    rows = []
    for name, entry in registry().items():
        found, actual, intact = _locate(name), digest(name), None
        if found:
            expected = _expected(entry, _files(entry, found.path))
            intact = None if None in expected.values() else _listing(expected) == actual
        where = found.where if found else "absent"
        counts = entry["counts"].values()
        rows.append(Status(name, entry["title"], where, entry["terms"], *counts, actual, intact))
    return rows


def _problems(entry: dict, files: list[Path]) -> list[str]:
    problems = [
        f"{path.name} has SHA-256 {_sha256(path)}, the registry says {expected}"
        for path, expected in zip(files, _expected(entry, files).values(), strict=True)
        if expected and expected != _sha256(path)
    ]
    try:
        frame = _read(entry["format"], files[0])
    except BookError as error:
        return [*problems, str(error)]
    counts = (len(frame), frame["user"].nunique(), frame["item"].nunique())
    return problems + [
        f"{files[0].name} has {count:,} {what}, the registry says {expected:,}"
        for count, (what, expected) in zip(counts, entry["counts"].items(), strict=True)
        if count != expected
    ]


def check(name: str) -> list[str]:
    """Return what differs from the registry, one sentence each; empty when all is well."""
    return _problems(_entry(name), _need(name))


def fetch(name: str, progress: bool = False) -> Found:
    """Download a dataset from its owner into `data/raw`, check it, and return where it lies.

    Nothing is downloaded when an intact copy is already in reach.
    """
    entry, found = _entry(name), _locate(name)
    if found and not _problems(entry, _files(entry, found.path)):
        return found
    if "download" not in entry:
        raise BookError(f"{name} cannot be downloaded: {_remedy(name)}")
    raw = paths.DATA / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    # Unpacked and checked beside its destination, so that what arrives there is whole.
    with tempfile.TemporaryDirectory(dir=raw, prefix=".fetch-") as folder:
        files = _download(name, entry, Path(folder), progress)
        if problems := _problems(entry, files):
            raise BookError(f"the download of {name} is not the registered dataset: {problems[0]}")
        target = raw / name
        target.mkdir(exist_ok=True)
        for path in files:
            os.replace(path, target / path.name)
    return Found(target, "raw")


def _download(name: str, entry: dict, folder: Path, progress: bool) -> list[Path]:
    import pooch  # only here: pages that read local files need no HTTP stack

    url, known = entry["download"]["url"], entry["download"]["sha256"]
    pooch.get_logger().setLevel("WARNING")
    try:
        fname = url.rsplit("/", 1)[1]
        path = Path(pooch.retrieve(url, known, fname, folder, progressbar=progress))
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                for member in archive.namelist():
                    if (file := member.rsplit("/", 1)[-1]) in entry["files"]:
                        with archive.open(member) as source, open(folder / file, "wb") as copy:
                            shutil.copyfileobj(source, copy)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        reason = str(error).partition("\n")[0]
        raise BookError(f"{name} could not be downloaded from {url}: {reason}") from error
    files = _files(entry, folder)
    if files is None:
        raise BookError(f"the archive at {url} does not hold {' and '.join(entry['files'])}")
    return files


def cards() -> str:
    """Return the dataset cards of `book/data.md` as Markdown, from the registry alone."""
    table = ["| name | rows | users | items | in the repository |", "|---|--:|--:|--:|---|"]
    text = []
    for name, entry in registry().items():
        counts = " | ".join(f"{count:,}" for count in entry["counts"].values())
        table.append(f"| `{name}` | {counts} | {'yes' if entry.get('embedded') else 'no'} |")
        files = []
        for file, sha256 in entry["files"].items():
            original = f" or `{entry['or'][file]}`" if file in entry.get("or", {}) else ""
            files.append(f"`{file}`{original}" + (f" (SHA-256 `{sha256[:12]}…`)" if sha256 else ""))
        text += [
            f"\n## {entry['title']}\n",
            f"Name in this book: `{name}`. Owner: [{entry['owner']}]({entry['homepage']}); "
            f"{{cite:p}}`{','.join(entry['reference'])}`.\n",
            f"- **Terms.** {entry['terms']}",
            f"- **How to get it.** {entry['get']}",
            f"- **Files read**, plain or gzipped: {', '.join(files)}.",
        ]
    return "\n".join(table + text) + "\n"


class Field(NamedTuple):
    """How one kind of field is read, and what a line of text and a whole column must satisfy."""

    dtype: str
    fits: Callable[[str], bool]
    holds: Callable[[pd.Series], bool]


def _is_whole(text: str) -> bool:
    return bool(re.fullmatch(r"\d{1,18}", text))


def _is_stars(text: str) -> bool:
    return bool(re.fullmatch(r"\d(\.\d+)?", text)) and 0.5 <= float(text) <= 5


def _is_date(text: str) -> bool:
    try:
        return bool(datetime.strptime(text, "%Y-%m-%d"))
    except ValueError:
        return False


FIELDS = {
    "whole": Field("int64", _is_whole, lambda s: s.min() >= 0),
    "key": Field("str", bool, lambda s: s.notna().all()),
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


def _label(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines; a damaged gzip is an error that says after which line."""
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                # HetRec's tag names are Latin-1, everything else is ASCII.
                yield number, line.decode("latin-1").rstrip("\r\n")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BookError(
            f"{_label(path)} is damaged or cut short after line {number} ({error}), get it again"
        ) from error


def _layout(form: str, path: Path) -> Layout:
    layouts = LAYOUTS[form]
    _, first = next(_lines(path), (0, ""))
    for layout in layouts:
        if not first or layout.header in (None, first.replace("\t", " ")):
            return layout
    expected = " or ".join(f"'{layout.header}'" for layout in layouts)
    raise BookError(f"{_label(path)}, line 1: expected the header {expected}, found '{first[:60]}'")


def _fits(texts: Iterable[str], columns: dict[str, str]) -> bool:
    pairs = zip_longest(texts, columns.values())
    return all(text is not None and kind and FIELDS[kind].fits(text) for text, kind in pairs)


def _blame(path: Path, layout: Layout, reason: str) -> BookError:
    """Find the first line that does not fit, which the fast parser does not reliably name."""
    empty = True
    for number, line in _lines(path):
        if not line.strip() or (number == 1 and layout.header):
            continue
        empty = False
        if not _fits(re.split(layout.separator, line.strip()), layout.columns):
            return BookError(
                f"{_label(path)}, line {number}: expected {layout.words()}, found '{line[:60]}'"
            )
    if empty:
        return BookError(f"{_label(path)} has no rows: expected lines of {layout.words()}")
    return BookError(f"{_label(path)} could not be read as lines of {layout.words()}: {reason}")


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
    for number, line in _lines(path):
        try:
            review = json.loads(line)
            row = [review[key] for key in ("reviewerID", "asin", "overall", "unixReviewTime")]
            row += review["helpful"]
            if not _fits(map(str, row), columns):
                raise ValueError
        except (ValueError, KeyError, TypeError) as error:
            raise BookError(
                f"{_label(path)}, line {number}: expected a JSON review with reviewerID, asin, "
                f"overall, unixReviewTime and helpful, found '{line[:60]}'"
            ) from error
        rows.append(row)
    if not rows:
        raise BookError(f"{_label(path)} has no rows: expected one JSON review a line")
    return pd.DataFrame(rows, columns=list(columns))


def _read(form: str, path: Path) -> pd.DataFrame:
    if _plain(path).endswith(".json"):
        return _amazon_json(path)
    return _table(path, _layout(form, path))


def ratings(name: str) -> pd.DataFrame:
    """Return a dataset as rows user, item, rating and what else its owner gives.

    MovieLens and Amazon add `time` (seconds since 1970; not in the embedded set), Amazon `helpful`
    and `total` votes, Yelp `label` (−1 filtered as fake, +1 genuine) and `date`.
    """
    form = _entry(name)["format"]
    if form.startswith("hetrec"):
        raise BookError(f"{name} holds tags, not ratings: read it with datasets.tags('{name}')")
    return _read(form, _need(name)[0])


def tags(name: str) -> pd.DataFrame:
    """Return a HetRec dataset as rows user, item, tag; `tag_names` has the texts of the tags."""
    return _read(_hetrec(name), _need(name)[0])[["user", "item", "tag"]]


def tag_names(name: str) -> pd.Series:
    """Return the text of every tag of a HetRec dataset, indexed by the tag's identifier."""
    _hetrec(name)
    path = _need(name)[1]
    names = {}
    for number, line in _lines(path):
        tag, _, text = line.partition("\t")
        if number > 1 and line.strip():
            if not (tag.isdecimal() and text):
                raise BookError(
                    f"{_label(path)}, line {number}: expected tag, tab, text, found '{line[:60]}'"
                )
            names[int(tag)] = text
    if not names:
        raise BookError(f"{_label(path)} has no rows: expected lines of tag, tab, text")
    return pd.Series(names, name="name").rename_axis("tag")


def _hetrec(name: str) -> str:
    form = _entry(name)["format"]
    if not form.startswith("hetrec"):
        raise BookError(f"{name} holds ratings, not tags: read it with datasets.ratings('{name}')")
    return form


class Matrix(NamedTuple):
    """Binary feedback of the most active users on the most rated items, both in falling order."""

    values: np.ndarray  # (users, items), 0.0 or 1.0
    user_ids: np.ndarray
    item_ids: np.ndarray


class Features(NamedTuple):
    """Unit vectors of users and items from a truncated singular value decomposition."""

    users: np.ndarray  # (users, d)
    items: np.ndarray  # (items, d)
    singular_values: np.ndarray  # (d,)


def _most_frequent(ids: pd.Series, n: int) -> pd.Index:
    """Return the n most frequent identifiers, ties by identifier."""
    counts = ids.value_counts().sort_index()
    return counts.sort_values(ascending=False, kind="stable").index[:n]


def top_matrix(
    ratings: pd.DataFrame, users: int, items: int, binarise: str | float = "rated"
) -> Matrix:
    """Return the `users` × `items` feedback matrix of the public releases.

    Keep the 3·users most active users, then the most rated items among their ratings, then the most
    active users on those items; ties go to the smaller identifier. `binarise="rated"` puts 1 where
    there is a rating, a number puts 1 where the rating is above it. Of several ratings of a pair
    the last one counts.
    """
    if binarise != "rated" and (isinstance(binarise, str | bool) or not np.isfinite(binarise)):
        raise BookError(f"binarise must be 'rated' or a finite number, not {binarise!r}")
    if min(users, items) < 1:
        raise BookError(f"a matrix needs at least one user and one item, not {users} × {items}")
    kept = ratings.drop_duplicates(["user", "item"], keep="last")
    kept = kept[kept["user"].isin(_most_frequent(kept["user"], 3 * users))]
    top_items = _most_frequent(kept["item"], items)
    kept = kept[kept["item"].isin(top_items)]
    top_users = _most_frequent(kept["user"], users)
    if len(top_items) < items or len(top_users) < users:
        raise BookError(
            f"{users} users × {items} items were asked for, but the ratings give at most "
            f"{len(top_users)} × {len(top_items)}"
        )
    kept = kept[kept["user"].isin(top_users)]
    row, column = top_users.get_indexer(kept["user"]), top_items.get_indexer(kept["item"])
    values = np.zeros((users, items))
    values[row, column] = 1.0 if binarise == "rated" else kept["rating"] > binarise
    return Matrix(values, top_users.to_numpy(), top_items.to_numpy())


def _unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to length one; a row of zeros, up to rounding, has no direction and stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    zero = norms <= 1e-12 * norms.max()
    return np.where(zero, 0.0, vectors / np.where(zero, 1.0, norms))


def svd_features(matrix: Matrix | np.ndarray, d: int, power: float = 0.5) -> Features:
    """Return user vectors U·Sᵖ and item vectors V·Sᵖ, where R = U S Vᵀ is cut at rank d.

    Every vector is scaled to length one. At p = 1/2 the inner products before scaling are the best
    rank-d approximation of R; p = 0 is the recipe as printed, R = Θ S Xᵀ with S dropped. Each
    singular pair is signed so that the largest entry of its item vector is positive. The full
    decomposition is taken (half a second at 1,000 × 1,000, four at 2,000 × 2,000): it needs no
    random start.
    """
    values = np.asarray(matrix.values if isinstance(matrix, Matrix) else matrix, dtype=float)
    U, S, Vt = np.linalg.svd(values, full_matrices=False)
    tolerance = S[0] * max(values.shape) * np.finfo(float).eps
    rank = sum(value > tolerance for value in S)
    if not 1 <= d <= rank:
        raise BookError(f"d = {d} features were asked for, but d must be from 1 to the rank {rank}")
    U, S, V = U[:, :d], S[:d], Vt[:d].T
    sign = np.sign(V[np.abs(V).argmax(axis=0), np.arange(d)])
    return Features(_unit_rows(U * sign * S**power), _unit_rows(V * sign * S**power), S)


def cluster_users(theta: np.ndarray, m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return k-means labels and m unit-length centroids, clusters numbered by first member."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    distinct = len(np.unique(theta, axis=0))
    if not 1 <= m <= distinct:
        raise BookError(
            f"m = {m} clusters were asked for, but m must be from 1 to {distinct} (distinct users)"
        )
    with threadpool_limits(1):  # sums in another order would give other last digits
        fit = KMeans(n_clusters=m, n_init=10, random_state=seed).fit(theta)
    order = pd.unique(fit.labels_)
    renumber = np.empty(m, dtype=np.int64)
    renumber[order] = np.arange(m)
    return renumber[fit.labels_], _unit_rows(fit.cluster_centers_[order])
