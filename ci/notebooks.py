"""Collect the executed notebooks for the branch `notebooks`, where Colab and Binder open them.

The branch is the source tree plus `notebooks/*.ipynb` and the two files that Binder reads.
"""

import argparse
import sys
from pathlib import Path
from textwrap import dedent
from urllib.parse import urlsplit

import nbformat

from ci import contents, runs
from lib.paths import project

POST_BUILD = "#!/bin/sh\nset -e\npip install --quiet -c constraints.txt -e .\n"


def colab_cell(url: str) -> str:
    """Return the cell that gives a Colab machine the library; anywhere else it does nothing."""
    return dedent(f"""\
        import sys

        if "google.colab" in sys.modules:  # Colab has this file alone; fetch the book
            !git clone --quiet --depth 1 --branch notebooks {url}.git regretbook
            %pip install --quiet -e regretbook
            sys.path.insert(0, "regretbook")
        """)


def collect(folders: dict[str, Path], out: Path, url: str) -> list[str]:
    """Write the executed notebook of every run folder below `out`, with what Binder needs."""
    names = list(folders)
    (out / "notebooks").mkdir(parents=True, exist_ok=True)
    for name, folder in folders.items():
        notebook = nbformat.read(folder / "notebook.ipynb", as_version=4)
        cell = nbformat.v4.new_code_cell(colab_cell(url), id="colab", metadata={"tags": ["colab"]})
        notebook.cells.insert(0, cell)
        nbformat.write(notebook, out / "notebooks" / f"{name}.ipynb")
    binder = out / ".binder"
    binder.mkdir(exist_ok=True)
    (binder / "runtime.txt").write_text("python-3.11\n")
    (binder / "postBuild").write_text(POST_BUILD)
    (binder / "postBuild").chmod(0o755)
    (out / "notebooks" / "README.md").write_text(index(names, url))
    return names


def launchers(name: str, url: str) -> dict[str, str]:
    """Return where Colab and Binder open a notebook of the branch."""
    place = urlsplit(url).path.strip("/")
    return {
        "Colab": f"https://colab.research.google.com/github/{place}/blob/notebooks/notebooks/"
        f"{name}.ipynb",
        "Binder": f"https://mybinder.org/v2/gh/{place}/notebooks?labpath=notebooks/{name}.ipynb",
    }


def index(names: list[str], url: str) -> str:
    """Return the page that links each notebook to Colab and Binder."""
    rows = []
    for name in names:
        links = (f"[{where}]({address})" for where, address in launchers(name, url).items())
        rows.append(f"| {name} | {' | '.join(links)} |")
    head = ["# Executed notebooks", "", "| page | | |", "|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def published(profile: str) -> dict[str, Path]:
    """Return the folders of the finished runs of a profile by the name of their notebook."""
    where = project()
    pages = contents.discover(where).values()
    found = ((page, runs.published(where, page, profile)) for page in pages)
    return {page.name.replace("/", "-"): run.folder for page, run in found if run}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder to write")
    parser.add_argument("--url", required=True, help="address of the repository")
    parser.add_argument("--profile", default="book")
    options = parser.parse_args()
    names = collect(published(options.profile), options.out, options.url)
    if not names:
        print(f"no executed notebooks of the profile {options.profile}", file=sys.stderr)
        return 1
    print(f"{len(names)} notebooks in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
