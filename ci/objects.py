"""Figures and tables as objects of the book: each has a number, files and an address."""

import collections
import re

from ci.contents import Page
from ci.runs import Run
from lib import journal, toc
from lib.paths import Project

OBJECT = re.compile(r'(<figure id="([a-z0-9-]+)" class="rb-(?:figure|table)">)(.*?)</figure>', re.S)
WORDS = {journal.Figure: "Figure", journal.Shown: "Table"}

Numbers = dict[tuple[str, str], str]


def numbers(project: Project, found: list[tuple[Page, Run | None]]) -> Numbers:
    """Return `Figure 4.7` for a page and the name of an object; a chapter counts over its pages."""
    chapters, counts, numbered = toc.chapters(project), collections.Counter(), {}
    for page, run in found:
        for kind, word in WORDS.items() if run and run.ok else ():
            for entry in run.entries(kind):
                counts[page.chapter, kind] += 1
                chapter = chapters.index(page.chapter) + 1
                numbered[page.name, entry.name] = f"{word} {chapter}.{counts[page.chapter, kind]}"
    return numbered


def with_number(markup: str, page: str, numbered: Numbers) -> str:
    """Return the markup of an output with the number of its object before the caption."""

    def number(found: re.Match) -> str:
        label = numbered.get((page, found[2]), "")
        head = f'<figcaption><span class="rb-number">{label}.</span> '
        body = found[3].replace("<figcaption>", head) if label else found[3]
        return f"{found[1]}{body}</figure>"

    return OBJECT.sub(number, markup)


def dress(notebook, page: Page, folder: str, numbered: Numbers) -> dict[str, bytes]:
    """Number the objects of an executed page, give each its strip, and return their files."""
    files: dict[str, bytes] = {}
    up = "../" * page.file.count("/")
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            known = OBJECT.search(data.get("text/html", ""))
            if not known:
                continue
            name, csv = known[2], data.pop("text/csv", "")
            offers = {}
            if "<svg" in known[3]:
                files[f"{folder}/{name}.svg"] = alone(known[3]).encode()
                offers["SVG"] = f"{up}{folder}/{name}.svg"
            if csv:
                files[f"{folder}/{name}.csv"] = csv.encode()
                offers["Data"] = f"{up}{folder}/{name}.csv"
            markup = with_number(data["text/html"], page.name, numbered)
            data["text/html"] = markup.replace("</figure>", f"{strip(name, offers)}</figure>")
    return files


def strip(name: str, offers: dict[str, str]) -> str:
    """Return the links below an object; `reading.js` adds those that need a script."""
    links = [f'<a href="#{name}">Link</a>']
    links += [f'<a href="{address}" download>{what}</a>' for what, address in offers.items()]
    return f'<div class="rb-strip">{" ".join(links)}</div>'


def alone(markup: str) -> str:
    """Return the picture of a figure as a file of its own, black on white, in its natural size."""
    svg = markup[markup.index("<svg") : markup.index("</svg>") + len("</svg>")]
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups()
    size = f'width="{width}pt" height="{height}pt" style="color: black; background: white"'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + svg.replace('width="100%"', size, 1) + "\n"
