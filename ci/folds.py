"""The names of folded cells: what a reader learns before opening the code."""

import ast
import re

KINDS = {
    'class="rb-figure"': "figure",
    'class="rb-table"': "table",
    'class="rb-check': "verdict",
}
LONGEST = 3  # names of definitions in a title


def title(source: str, outputs: list, prompt: str = "") -> str:
    """Return the name of a cell: the page's own, else what the cell shows and what it defines."""
    if prompt:
        own = re.sub(r"^Show ", "", prompt).strip()
        return own[:1].upper() + own[1:]
    shown = [*dict.fromkeys(filter(None, map(_kind, outputs)))]
    names = _defined(source)
    what = _listed([f"the {kind}" for kind in shown]).capitalize()
    if what and names:
        return f"{what}: {_listed(names)}"
    if what or names:
        return what or _listed(names)
    if re.match(r"(import|from) ", source):
        return "Imports"
    return _listed(_assigned(source)) or "Code"


def _kind(output) -> str:
    data = output.get("data", {})
    markup = data.get("text/html", "")
    found = next((kind for mark, kind in KINDS.items() if mark in markup), "")
    return found or ("words" if "text/markdown" in data else "")


def _defined(source: str) -> list[str]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [node.name for node in ast.parse(source).body if isinstance(node, kinds)]


def _assigned(source: str) -> list[str]:
    targets = [t for node in ast.parse(source).body if isinstance(node, ast.Assign)
               for t in node.targets]  # fmt: skip
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _listed(names: list[str]) -> str:
    """Return names as people list them, the first few of many."""
    if len(names) > LONGEST:
        names = [*names[:LONGEST], "more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
