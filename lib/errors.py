"""What a user did wrong, said in one sentence."""

import difflib
from collections.abc import Iterable


class BookError(Exception):
    """A mistake in a call, a parameter or a file: one sentence on what was wrong, what to do."""


def nearest(name: str, names: Iterable[str]) -> str:
    """Return '; did you mean a, b?' with the names closest to `name`, or nothing."""
    close = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    return f"; did you mean {', '.join(close)}?" if close else ""
