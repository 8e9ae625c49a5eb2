"""The history of verdicts: what earlier records of the same claims said, as far as git knows."""

import json
import subprocess
from typing import NamedTuple

from lib.paths import Project


class Past(NamedTuple):
    """What one recorded run said of one question of a claim."""

    date: str
    profile: str
    commit: str
    verdict: str
    measured: float | None


History = dict[tuple[str, str], list[Past]]


def read(project: Project) -> History:
    """Return what was recorded of each question, oldest first, without repetitions."""
    found: dict[tuple[str, str], set[Past]] = {}
    for text in _versions(project):
        for key, past in _judged(text):
            found.setdefault(key, set()).add(past)
    return {key: _changes(sorted(each)) for key, each in found.items()}


def changed(history: History) -> History:
    """Return the questions whose recorded verdict is no longer what it was at first."""
    return {
        key: each
        for key, each in history.items()
        if len({past.verdict for past in each if past.profile == each[-1].profile}) > 1
    }


def _changes(every: list[Past]) -> list[Past]:
    """Keep of each profile the records that say something else than the one before."""
    kept: list[Past] = []
    last: dict[str, tuple] = {}
    for past in every:
        if last.get(past.profile) != (said := (past.verdict, past.measured)):
            kept.append(past)
        last[past.profile] = said
    return kept


def _judged(text: str):
    """Yield what a record says; earlier editions kept other files there, which say nothing."""
    try:
        plain = json.loads(text)
        origin = plain["origin"]
        start = origin["date"][:16], origin["profile"], origin["commit"][:12]
        for each in plain["judgements"]:
            if each["measured"] is not None:
                key = each["id"], each["question"]
                yield key, Past(*start, each["verdict"], each["measured"])
    except (ValueError, KeyError, TypeError):
        return


def _git(project: Project, *words: str, given: bytes = b"") -> bytes:
    command = ["git", "--no-optional-locks", "-C", str(project.root), *words]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


def _versions(project: Project) -> list[str]:
    """Return every version of every record that a commit has, and what lies there now."""
    now = [path.read_text("utf-8") for path in sorted(project.results.glob("*/*/*.json"))]
    log = ["log", "--format=%x00%H", "--name-only", "--diff-filter=AM", "--", "results/*.json"]
    try:
        if _git(project, "rev-parse", "--show-prefix").strip():
            return now  # below another repository, whose history is about something else
        commits = _git(project, *log).decode().split("\0")[1:]
        names = [f"{first}:{path}" for first, *paths in map(str.split, commits) for path in paths]
        batch = "".join(f"{name}\n" for name in names).encode()
        found = _contents(_git(project, "cat-file", "--batch", given=batch))
    except (OSError, subprocess.CalledProcessError):
        return now
    return now + [data.decode("utf-8", "replace") for data in found]


def _contents(data: bytes) -> list[bytes]:
    """Return the contents of what `git cat-file --batch` writes: `<id> <kind> <size>`, content."""
    found, start = [], 0
    while start < len(data):
        line = data.index(b"\n", start)
        words = data[start:line].split()
        start = line + 1
        if len(words) == 3 and words[1] == b"blob":
            end = start + int(words[2])
            found.append(data[start:end])
            start = end + 1
    return found
