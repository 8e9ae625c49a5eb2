"""Tables: one style for all that pages show, with a caption, aligned numbers, readable names."""

import itertools
import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
from IPython.display import display

from lib import journal, maths
from lib.errors import BookError

NAMES = {
    # columns of results
    "policy": "Method",
    "t": "Round",
    "score": "Regret in tuning",
    "low": "95% from",
    "high": "to",
    "does": "What it does",
    "edge": "At an edge",
    "alike": "Decided alike",
    "ari": "ARI",
    "best ari": "Best ARI",
    "largest": "Largest cluster",
    "lowered": "Weights below one",
    "auc_occud": "AUC of OCCUD",
    "auc_gcud": "AUC of GCUD",
    "law_within": "Within, by law",
    "law_between": "Between, by law",
    "same_arm": "Same arm twice",
    "strange": "Strangers alone",
    "others": "Others alone",
    "flipped": "Flipped rounds",
    "keyterms": "Key-terms",
    "lies": "Lies in its range",
    "says": "Bound says something",
    # letters of the text
    "T": "$T$",
    "K": "$K$",
    "H": "$H$",
    "C": "$C$",
    "d": "$d$",
    "m": "$m$",
    "n": "$n$",
    "u": "$u$",
    "alpha": "$α$",
    "alpha1": "$α_1$",
    "tilde_alpha": r"$\tilde α$",
    "beta": "$β$",
    "gamma": "$γ$",
    "delta": "$δ$",
    "epsilon": "$ε$",
    "lam": "$λ$",
    "tilde_lam": r"$\tilde λ$",
    "lambda_B": r"$λ_{\mathcal B}$",
    "rho": "$ρ$",
    "b": "$b$",
}
EMPTY = "–"
LONG = 30  # letters: from here on a cell has sentences
_NUMBER = re.compile(r"[−+<>≤≥~-]?\s?\d[\d,.]*\s?[%kMG×]?(e[−+-]?\d+)?(\s.*)?")


def show_table(
    table: pd.DataFrame | pd.Series,
    name: str,
    caption: str,
    names: Mapping[str, str] | None = None,
    digits: int = 3,
) -> None:
    """Put a table into the page, with its caption and its data.

    `names` are headings by column, with `$maths$` and the unit after a comma; floating-point
    numbers keep `digits` significant digits, the same number of decimals within a column.
    """
    if not re.fullmatch(r"tab-[a-z0-9]+(-[a-z0-9]+)*", name):
        raise BookError(f"A table's name looks like 'tab-winners'; got {name!r}.")
    if not caption.strip():
        raise BookError(f"Table {name} needs its caption; it is empty.")
    table = table.to_frame() if isinstance(table, pd.Series) else table
    journal.note(journal.Shown(name, caption))
    markup = (
        f'<figure id="{name}" class="rb-table"><figcaption>{maths.sentence(caption)}</figcaption>'
        f'<div class="rb-scroll">{html(table, names or {}, digits)}</div></figure>'
    )
    data = {"text/html": markup, "text/plain": f"{caption}\n\n{table}"}
    display(data | {"text/csv": table.to_csv(float_format="%.6g")}, raw=True)


def html(table: pd.DataFrame, names: Mapping[str, str], digits: int = 3) -> str:
    """Return a table as HTML: numbers to the right, everything else to the left."""
    bare = isinstance(table.index, pd.RangeIndex) and table.index.name is None
    keys = [] if bare else _index_cells(table.index)
    columns = [_column(table.iloc[:, i], digits) for i in range(table.shape[1])]
    right = [all(map(_is_number, column)) for column in columns]
    kinds = [" class=rb-n" if r else _room(c) for c, r in zip(columns, right, strict=True)]
    lines = [
        "<tr>" + "".join(key[i] for key in keys) + "".join(
            f"<td{kind}>{maths.sentence(column[i])}</td>"
            for column, kind in zip(columns, kinds, strict=True)
        ) + "</tr>"
        for i in range(len(table))
    ]  # fmt: skip
    head = _head(table, names, len(keys), right)
    return f"<table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"


def _room(column: list[str]) -> str:
    """Return the class of text that needs room: else a browser gives it a word a line."""
    return " class=rb-t" if max(map(len, column), default=0) > LONG else ""


def heading(key, names: Mapping[str, str]) -> str:
    """Return the name of a column as people read it; `regret_total` becomes `Regret total`."""
    text = names.get(key) or NAMES.get(key) or str(key).replace("_", " ")
    symbol = len(text.split(" ")[0]) == 1  # a letter of the text stays as it is
    return maths.sentence(text if symbol else text[:1].upper() + text[1:])


def _head(table: pd.DataFrame, names: Mapping[str, str], keys: int, right: list[bool]) -> str:
    """Return the rows of headings: a row for each level, equal neighbours as one cell."""
    rows = []
    for depth in range(table.columns.nlevels):
        last = depth == table.columns.nlevels - 1
        corner = (
            [_corner(key, names) for key in table.index.names] if last else ["<td></td>"] * keys
        )
        cells = corner[:keys]
        for place, span in _spans(table.columns, depth):
            style = " class=rb-n" if last and right[place] else ""
            scope = f'colgroup" colspan="{span}' if span > 1 else "col"
            key = table.columns.get_level_values(depth)[place]
            cells.append(f'<th scope="{scope}"{style}>{heading(key, names)}</th>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return "".join(rows)


def _spans(index: pd.Index, depth: int) -> list[tuple[int, int]]:
    """Return start and length of the runs of equal keys of a level; the last level has none."""
    if depth == index.nlevels - 1:
        return [(i, 1) for i in range(len(index))]
    outer = [key[: depth + 1] for key in index]
    lengths = [len(list(group)) for _, group in itertools.groupby(outer)]
    return list(zip(itertools.accumulate([0, *lengths[:-1]]), lengths, strict=True))


def _corner(key, names: Mapping[str, str]) -> str:
    return f'<th scope="col">{heading(key, names)}</th>' if key is not None else "<td></td>"


def _index_cells(index: pd.Index) -> list[list[str]]:
    """Return the cells of each level of the index, row by row; equal neighbours are one cell."""
    found = []
    for depth in range(index.nlevels):
        shown = _column(pd.Series(index.get_level_values(depth)), 3)
        align = " class=rb-n" if all(map(_is_number, shown)) else ""
        cells = []
        for place, span in _spans(index, depth):
            scope = f'rowgroup" rowspan="{span}' if span > 1 else "row"
            cells.append(f'<th scope="{scope}"{align}>{maths.sentence(shown[place])}</th>')
            cells += [""] * (span - 1)
        found.append(cells)
    return found


def _column(values: pd.Series, digits: int) -> list[str]:
    """Return a column as text; its numbers have one number of decimals, where that says enough."""
    if values.dtype.kind == "f" and not _whole(values):
        decimals = _decimals(values, digits)
        return [_float(value, decimals, digits) for value in values]
    return [_text(value, digits) for value in values]


def _whole(values: pd.Series) -> bool:
    """Return whether these are counts that became floats because some are missing."""
    there = values.dropna()
    return bool(len(there)) and bool(np.isfinite(there).all() and (there == there.round()).all())


def _decimals(values: pd.Series, digits: int) -> int | None:
    """Return how many decimals the middle of a column needs; None when that would hide a number."""
    sizes = values.abs().replace([0, np.inf], np.nan).dropna()
    if sizes.empty:
        return 0
    decimals = max(0, digits - 1 - int(np.floor(np.log10(sizes.median()))))
    return decimals if decimals <= 6 and sizes.min() >= 0.5 * 10.0**-decimals else None


def _float(value: float, decimals: int | None, digits: int) -> str:
    if pd.isna(value):
        return EMPTY
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    if decimals is None:
        small = abs(value) < 1e-4 and value != 0
        decimals = max(0, digits - 1 - int(np.floor(np.log10(abs(value))))) if value else 0
        if small:
            return f"{value:.{digits - 1}e}".replace("-", "−")
    return f"{value:,.{decimals}f}".replace("-", "−")


def _text(value, digits: int) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if value is None or (np.isscalar(value) and pd.isna(value)):
        return EMPTY
    if isinstance(value, int | np.integer):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float | np.floating):
        if np.isfinite(value) and value == round(value):
            return f"{value:,.0f}".replace("-", "−")
        return _float(value, None, digits)
    return str(value)


def _is_number(text: str) -> bool:
    return text in (EMPTY, "") or "∞" in text or bool(_NUMBER.fullmatch(text))
