"""A small project of two chapters, and runs of it that need no kernel."""

import json
from dataclasses import dataclass
from typing import ClassVar

import nbformat
import pytest

from ci import chapters, execute, parameters, runs, stale
from ci.project import Project, project_at

HEAD = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

"""
CHAPTER = """# Linear bandits

Prose about $x^2$.

```{code-cell} ipython3
:tags: [parameters]

T = 20_000  # rounds per trial, in [1, 10_000_000]
scale = 0.5  # width of the radius, in (0, inf)
rule = "ucb"  # which rule, in {"ucb", "ts"}
dims = [5, 10]  # dimensions, in [1, 100]
fast = True  # skip the slow part
seed = 1  # root of every random number, in [0, inf)
```

More prose.

```{code-cell} ipython3
doubled = 2 * T
```

```{code-cell} ipython3
print(doubled)
```
"""
OTHER = """# Clustering of bandits

```{code-cell} ipython3
:tags: [parameters]

seed = 1  # root of every random number, in [0, inf)
```

```{code-cell} ipython3
print("other")
```
"""
TOC = """format: jb-book
root: index
chapters:
  - file: foundations/linear-bandits
  - file: foundations/clustering-of-bandits
  - file: scoreboard
"""
LEDGER = """- id: lin-one
  chapter: linear-bandits
  kind: number
  headline: true
  statement: The share is at most $1/20$.
  print: {value: 0.05, unit: share}
  source: Theorem 1
  rule: {measure: the share, reproduced: "high <= printed"}
- id: lin-two
  chapter: linear-bandits
  kind: ordering
  statement: It is smaller than the other.
  check: compare the means
  source: Figure 1
- id: clu-one
  chapter: clustering-of-bandits
  kind: ordering
  statement: Clusters help.
  source: Figure 2
  rule: {measure: the ratio, reproduced: "high < 1"}
"""
FILES = {
    "_toc.yml": TOC,
    "_config.yml": 'title: Tiny\nexecute: {execute_notebooks: "off"}\nonly_build_toc_files: true\n',
    "constraints.txt": "numpy==2.0\n",
    "CITATION.cff": "title: The Regret Book\nversion: 1.2.0\ndate-released: 2026-01-31\n"
    "authors: [{family-names: Doe, given-names: Jane}, {name: A Team}]\n",
    "book/index.md": "# Front\n\n<!-- generated: scoreboard-glance -->\n",
    "book/scoreboard.md": "# Scoreboard\n\n<!-- generated: scoreboard -->\n",
    "book/profiles.yml": "smoke:\n  linear-bandits: {T: 10, dims: [2]}\n",
    "book/claims.yml": LEDGER,
    "book/foundations/linear-bandits.md": HEAD + CHAPTER,
    "book/foundations/clustering-of-bandits.md": HEAD + OTHER,
}


@dataclass(frozen=True)
class Sandbox:
    """The project with what tests do to it."""

    project: Project

    claim: ClassVar = {
        "kind": "claim", "id": "lin-one", "verdict": "reproduced", "measured": 0.031, "low": 0.025,
        "high": 0.04, "unit": "share", "figure": "fig-lin-share", "note": "",
    }  # fmt: skip
    table: ClassVar = {
        "kind": "table", "name": "regret", "file": "tables/regret.csv", "sha256": "ab" * 32,
        "caption": "Regret after $T$ rounds", "source": "live",
    }  # fmt: skip
    data: ClassVar = {"kind": "data", "name": "ml-1m", "digest": "d1", "where": "raw"}

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.project.root / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def add(self, file: str, text: str) -> None:
        path = self.project.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    @property
    def chapters(self) -> dict:
        return chapters.discover(self.project)

    def fake_execute(self, journal=(), log=None):
        """Return `execute` without a kernel: each output says of which cell it is."""

        def fake(project, chapter, values, target, profile, engine):
            if log is not None:
                log.append(chapter.name)
            work = runs.prepare(target)
            notebook = execute.read_page(chapter.text)
            for number, cell in enumerate(execute.own_code(notebook), 1):
                text = f"output of cell {number}\n"
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
            noted = list(journal) if chapter.name == "linear-bandits" else []
            (work / "journal.jsonl").write_text("".join(json.dumps(e) + "\n" for e in noted))
            (work / "tables").mkdir()
            (work / "tables" / "regret.csv").write_text("t,regret\n1,0.5\n")
            parts = stale.own(project, chapter, values) | stale.inputs(project, chapter.name, noted)
            info = {
                "chapter": chapter.name, "profile": profile, "parameters": values,
                "seed": 1, "started": "2026-02-03T04:05:06+00:00", "seconds": 1.5, "status": "ok",
                "commit": "0123456789abcdef", "dirty": False, "versions": {"numpy": "2.0"},
                "machine": "Linux x86_64, 2 cores", "digest": stale.digest(parts),
            }  # fmt: skip
            (work / "run.json").write_text(json.dumps(info))
            (work / "notebook.ipynb").write_text(nbformat.writes(notebook))
            runs.publish(project, work, target)
            return runs.read(target), None

        return fake

    def run(self, name="linear-bandits", journal=(), profile="book") -> runs.Run:
        """Publish a made-up run of a chapter where `build` would."""
        chapter = self.chapters[name]
        values = parameters.resolve(self.project, chapter, profile)
        target = runs.place(self.project, name, profile)
        return self.fake_execute(journal)(
            self.project, chapter, values, target, profile, "threads"
        )[0]


@pytest.fixture
def sandbox(tmp_path) -> Sandbox:
    box = Sandbox(project_at(tmp_path / "project"))
    for file, text in FILES.items():
        box.add(file, text)
    return box
