"""A small project, a chapter of one page and one of two, and runs that need no kernel."""

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import nbformat
import pytest
from bs4 import BeautifulSoup

from ci import contents, execute, parameters, runs
from lib import journal
from lib.journal import Data, Judgement, Table
from lib.paths import Project, project_at

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

<!-- generated: verdicts clustering-of-bandits -->
"""
THEORY = """# Clusters in theory

```{code-cell} ipython3
:tags: [parameters]

seed = 1  # root of every random number, in [0, inf)
pairs = 3  # pairs of users, in [1, 10]
```

```{code-cell} ipython3
print("theory", pairs)
```
"""
TOC = """format: jb-book
root: index
chapters:
  - file: foundations/linear-bandits
  - file: foundations/clustering-of-bandits/index
    sections:
      - file: foundations/clustering-of-bandits/theory
  - file: scoreboard
"""
LINEAR_CLAIMS = """- id: lin-one
  nature: theorem
  headline: true
  statement: The share is at most $1/20$.
  number: {value: 0.05, unit: share}
  source: Theorem 1
  rule: {measure: the share, reproduced: "measured <= printed"}
- id: lin-two
  nature: experiment
  statement: It is smaller than the other.
  source: Figure 1
  printed: {T: 20_000}
  questions:
    advantage: {measure: the difference, reproduced: "measured < 0"}
"""
CLUSTER_CLAIMS = """- id: clu-one
  nature: experiment
  statement: Clusters help.
  source: Figure 2
  printed: {missing: [T]}
  questions:
    advantage: {measure: the ratio, reproduced: "measured < 1"}
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
    "book/claims/linear-bandits.yml": LINEAR_CLAIMS,
    "book/claims/clustering-of-bandits.yml": CLUSTER_CLAIMS,
    "book/foundations/linear-bandits.md": HEAD + CHAPTER,
    "book/foundations/clustering-of-bandits/index.md": HEAD + OTHER,
    "book/foundations/clustering-of-bandits/theory.md": HEAD + THEORY,
}
PAGES = ["linear-bandits", "clustering-of-bandits/index", "clustering-of-bandits/theory"]


@dataclass(frozen=True)
class Sandbox:
    """The project with what tests do to it; papermill alone is made up, and only where asked."""

    project: Project
    monkeypatch: pytest.MonkeyPatch

    claim: ClassVar = Judgement(
        "lin-one",
        "",
        "reproduced",
        measured=0.031,
        low=0.025,
        high=0.04,
        unit="share",
        figure="fig-lin-share",
    )
    content: ClassVar = "t,regret\n1,0.5\n"
    table: ClassVar = Table(
        "regret",
        "tables/regret.csv",
        hashlib.sha256(content.encode()).hexdigest(),
        "Regret after $T$ rounds",
        "live",
    )
    data: ClassVar = Data("ml-1m", "d1", "raw")

    @staticmethod
    def numbers(page: str) -> dict[str, list[int]]:
        """Return the rows of the scoreboard's tables of counts by their titles."""
        soup = BeautifulSoup(page, "html.parser")
        return {
            row.th.get_text(): [int(cell.get_text()) for cell in row.find_all("td")]
            for row in soup.select(".rb-counts tbody tr")
        }

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
    def pages(self) -> dict:
        return contents.discover(self.project)

    def fake_papermill(self, entries=(), page="linear-bandits") -> list[str]:
        """Let no kernel run: each output says of which cell it is; one page writes a journal.

        Return a list that grows with the names of the pages that are executed.
        """
        executed = []

        def fake(notebook, changes, kernel, position):
            executed.append(position.name)
            for number, cell in enumerate(execute.own_code(notebook), 1):
                text = f"output of cell {number}\n"
                cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
            if position.name != page:  # the environment is of all pages that run at this time
                return notebook
            self.monkeypatch.setenv("REGRETBOOK_RUN", kernel.told["REGRETBOOK_RUN"])
            for entry in entries:
                journal.note(entry)
                if isinstance(entry, Table):
                    path = journal.folder() / entry.file
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(self.content)
            self.monkeypatch.delenv("REGRETBOOK_RUN")
            return notebook

        self.monkeypatch.setattr(execute, "_papermill", fake)
        return executed

    def real_cells(self) -> None:
        """Let the cells of pages run in this very process instead of a kernel."""

        def fake(notebook, changes, kernel, position):
            with pytest.MonkeyPatch.context() as patch:
                for variable, value in kernel.told.items():
                    patch.setenv(variable, value)
                names = {}
                for number, cell in enumerate(execute.own_code(notebook), 1):
                    position.cell = number
                    exec(cell.source, names)
                    names |= changes if execute.has_tag(cell, "parameters") else {}
                    cell.outputs = []
            return notebook

        self.monkeypatch.setattr(execute, "_papermill", fake)

    def run(self, name="linear-bandits", entries=(), profile="book") -> runs.Run:
        """Publish a run without kernel of a page where `build` would."""
        page = self.pages[name]
        before = execute._papermill
        self.fake_papermill(entries, name)
        values = parameters.resolve(self.project, page, profile)
        target = runs.place(self.project, page, profile)
        run, _ = execute.execute(self.project, execute.Request(page, values, target, profile))
        self.monkeypatch.setattr(execute, "_papermill", before)
        return self.rewrite(
            run,
            started="2026-02-03T04:05:06+00:00",
            seconds=1.5,
            commit="0123456789abcdef",
            versions={"numpy": "2.0"},
            machine="Linux x86_64, 2 cores",
        )

    def rewrite(self, run: runs.Run, **changes) -> runs.Run:
        """Change what run.json says."""
        runs.write_info(run.folder, run.info._replace(**changes))
        return runs.read(run.folder)


@pytest.fixture
def sandbox(tmp_path, monkeypatch) -> Sandbox:
    box = Sandbox(project_at(tmp_path / "project"), monkeypatch)
    for file, text in FILES.items():
        box.add(file, text)
    monkeypatch.setenv("REGRETBOOK_ROOT", str(box.project.root))
    return box
