"""Real files: where a dataset lies, whether it is intact, and its rows as a tidy frame.

The registry is `data/registry.yml`. Asking for a dataset is noted in the journal, found or not,
because a page depends on that answer. An absent dataset is an error with a remedy, never a
synthetic stand-in.
"""

import functools
import hashlib
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lib import formats, journal, paths
from lib.errors import BookError, nearest
from lib.files import read_yaml
from lib.formats import open_plain, plain_name

CARD = "card.yml"  # beside a dataset of the reader's own
SHAPE = {
    "title": str, "owner": str, "homepage": str, "reference": list, "format": str, "files": dict,
    "counts": dict, "redistribute": bool, "terms": str, "get": str,
}  # fmt: skip


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


def registry() -> dict[str, dict]:
    """Return the entries of all datasets by name: the book's, and the reader's own."""
    return registered() | _own()


def registered() -> dict[str, dict]:
    """Return the entries of `data/registry.yml` by dataset name."""
    return _registry(paths.project().data / "registry.yml")


@functools.cache
def _registry(path: Path) -> dict[str, dict]:
    found = read_yaml(path, dict)
    for name, entry in found.items():
        _check_shape(entry, f"{path.name}: {name}")
    return found


def _check_shape(entry, what: str) -> None:
    for key, kind in SHAPE.items():
        if not (isinstance(entry, dict) and isinstance(entry.get(key), kind)):
            raise BookError(f"{what} must have a {kind.__name__} as {key}")


def _own() -> dict[str, dict]:
    """Return the cards of the datasets that `regretbook data add` wrote."""
    found = {}
    for path in sorted((paths.project().data / "raw").glob(f"*/{CARD}")):
        found[path.parent.name] = read_yaml(path, dict)
        _check_shape(found[path.parent.name], f"{path.parent.name}/{CARD}")
    return found


def _entry(name: str) -> dict:
    if name not in registry():
        raise BookError(
            f"there is no dataset '{name}'{nearest(name, registry())}"
            f" (known: {', '.join(registry())})"
        )
    return registry()[name]


def _places(entry: dict) -> Iterator[tuple[str, Path]]:
    if entry.get("embedded"):
        yield "embedded", paths.project().data
    yield "raw", paths.project().data / "raw"
    if os.environ.get("REGRETBOOK_DATA"):
        yield "environment", Path(os.environ["REGRETBOOK_DATA"])
    yield "shared", paths.project().root.parent / "shared" / "datasets"


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
    """Return where the dataset lies, or None, and note the answer in the journal.

    Files that are not the registered ones count as absent: nothing is judged on them.
    """
    found = _locate(name)
    if found and altered(name):
        found = None
    journal.note(journal.Data(name, digest(name) if found else None, _where(name, found)))
    return found


def _where(name: str, found: Found | None) -> str:
    return found.where if found else "altered" if altered(name) else "absent"


def altered(name: str) -> str:
    """Say which file differs from the registry; nothing when all agree or none is there."""
    entry, found = _entry(name), _locate(name)
    return "; ".join(_changed(entry, _files(entry, found.path))) if found else ""


def why_absent(name: str) -> str:
    """Say why `find` has nothing."""
    if problem := altered(name):
        return f"{name} on this machine is not the registered one ({problem})"
    return f"{name} is not on this machine"


def _need(name: str) -> list[Path]:
    entry, found = _entry(name), find(name)
    if found:
        return _files(entry, found.path)
    if problem := altered(name):
        raise BookError(
            f"the dataset {name} at {_locate(name).path} is not the registered one: {problem}; put "
            "the original in its place, or take it away"
        )
    raise BookError(
        f"the dataset {name} ({' and '.join(entry['files'])}, plain or .gz) is in none of "
        f"data/raw/{name}, $REGRETBOOK_DATA/{name} and ../shared/datasets/{name}: {_remedy(name)}"
    )


def _remedy(name: str) -> str:
    if "download" in _entry(name):
        return f"run `regretbook data fetch {name}`"
    return _entry(name)["get"].rstrip(".")


@functools.cache
def _sha256_of(path: Path, size: int, modified: int) -> str:
    try:
        with open_plain(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (EOFError, OSError, zlib.error):
        # A damaged gzip still needs a digest, so that its repair is noticed.
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _sha256(path: Path) -> str:
    stat = path.stat()
    return _sha256_of(path, stat.st_size, stat.st_mtime_ns)


def _listing(digests: dict[str, str]) -> str:
    lines = "".join(f"{digest}  {file}\n" for file, digest in digests.items())
    return hashlib.sha256(lines.encode()).hexdigest()


def digest(name: str) -> str | None:
    """Return the SHA-256 of the `sha256sum` listing of the uncompressed files, None when absent."""
    found = _locate(name)
    if found is None:
        return None
    return _listing({plain_name(path): _sha256(path) for path in _files(_entry(name), found.path)})


def _expected(entry: dict, files: list[Path]) -> dict[str, str | None]:
    return {plain_name(path): entry["files"].get(plain_name(path)) for path in files}


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


def _changed(entry: dict, files: list[Path]) -> list[str]:
    return [
        f"{path.name} has SHA-256 {_sha256(path)}, the registry says {expected}"
        for path, expected in zip(files, _expected(entry, files).values(), strict=True)
        if expected and expected != _sha256(path)
    ]


def _problems(entry: dict, files: list[Path]) -> list[str]:
    problems = _changed(entry, files)
    try:
        frame = formats.read(entry["format"], files[0])
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
    entry, found = _entry(name), _locate(name)
    return _problems(entry, _files(entry, found.path) if found else _need(name))


def fetch(name: str, progress: bool = False) -> Found:
    """Download a dataset from its owner into `data/raw`, check it, and return where it lies.

    Nothing is downloaded when an intact copy is already in reach.
    """
    entry, found = _entry(name), _locate(name)
    if found and not _problems(entry, _files(entry, found.path)):
        return found
    if "download" not in entry:
        raise BookError(f"{name} cannot be downloaded: {_remedy(name)}")
    raw = paths.project().data / "raw"
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
    for name, entry in registered().items():
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


def ratings(name: str) -> pd.DataFrame:
    """Return a dataset as rows user, item, rating and what else its owner gives.

    MovieLens and Amazon add `time` (seconds since 1970; not in the embedded set), Amazon `helpful`
    and `total` votes, Yelp `label` (−1 filtered as fake, +1 genuine) and `date`.
    """
    return formats.read(_rated(name)["format"], _need(name)[0])


def counts(name: str) -> dict[str, int]:
    """Return how many rows, users and items a dataset of ratings has; it must be at hand."""
    entry = _rated(name)
    _need(name)
    return entry["counts"]


def _rated(name: str) -> dict:
    entry = _entry(name)
    if entry["format"].startswith("hetrec"):
        raise BookError(f"{name} holds tags, not ratings: read it with datasets.tags('{name}')")
    return entry


def tags(name: str) -> pd.DataFrame:
    """Return a HetRec dataset as rows user, item, tag."""
    return formats.read(_hetrec(name), _need(name)[0])[["user", "item", "tag"]]


def _hetrec(name: str) -> str:
    form = _entry(name)["format"]
    if not form.startswith("hetrec"):
        raise BookError(f"{name} holds ratings, not tags: read it with datasets.ratings('{name}')")
    return form
