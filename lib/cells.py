"""The code cells of a page, read without jupytext, whose import takes longer than a command may.

The tests check that jupytext sees the same cells.
"""

import hashlib
import re
from typing import NamedTuple


class Cell(NamedTuple):
    """A code cell of a page."""

    source: str
    tags: tuple[str, ...] = ()


def code_cells(text: str) -> list[Cell]:
    """Return the code cells of a MyST page: fences at the margin whose directive is code-cell."""
    cells, fence, body = [], None, []
    for line in text.splitlines():
        if fence is None:
            opening = re.match(r"(`{3,}|~{3,})\s*(.*)", line)
            if opening:
                fence, info, body = opening[1], opening[2], []
        elif re.fullmatch(rf"{re.escape(fence)}{fence[0]}*\s*", line):
            if info.startswith("{code-cell}"):
                cells.append(_cell(body))
            fence = None
        else:
            body.append(line)
    return cells


def _cell(lines: list[str]) -> Cell:
    """Separate the options of a cell, in either of the two notations of MyST, from its source."""
    import yaml

    options = {}
    if lines and lines[0].strip() == "---":
        end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
        options = yaml.safe_load("\n".join(lines[1:end])) or {}
        lines = lines[end + 1 :]
    else:
        count = 0
        while count < len(lines) and (option := re.match(r":([\w-]+):\s*(.*)", lines[count])):
            options[option[1]] = yaml.safe_load(option[2])
            count += 1
        lines = lines[count:]
    return Cell("\n".join(lines).strip("\n"), tuple(options.get("tags") or ()))


def code_digest(cells: list[Cell]) -> str:
    """Return a digest of the code of a page, which an edit of its prose does not change."""
    return hashlib.sha256("".join(f"{cell.source}\0" for cell in cells).encode()).hexdigest()
