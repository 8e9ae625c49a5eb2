"""What tools read to cite the book agrees with itself."""

import json
import tomllib

import pytest

from ci import cite, parts
from lib.errors import BookError
from lib.files import read_yaml
from lib.paths import CODE


def test_versions_dates_and_authors_agree():
    project = tomllib.loads((CODE / "pyproject.toml").read_text("utf-8"))["project"]
    citation = read_yaml(CODE / "CITATION.cff", dict)
    zenodo = json.loads((CODE / ".zenodo.json").read_text("utf-8"))
    assert project["version"] == citation["version"] == zenodo["version"]
    assert str(citation["date-released"]) == zenodo["publication_date"]
    assert [each["name"] for each in citation["authors"]] == [
        each["name"] for each in zenodo["creators"]
    ]
    (author,) = (each["name"] for each in citation["authors"])
    assert read_yaml(CODE / "_config.yml", dict)["author"] == author
    assert f"Copyright (c) 2026 {author}\n" in (CODE / "LICENSE").read_text("utf-8")
    page = (CODE / "book" / "cite.md").read_text("utf-8")
    assert f"author  = {{{{{author}}}}}" in page
    assert f"version = {{{project['version']}}}" in page
    assert f"year    = {{{str(citation['date-released'])[:4]}}}" in page


def test_an_address_that_is_none_is_refused(sandbox):
    sandbox.edit("CITATION.cff", "version: 1.2.0\n", "version: 1.2.0\nurl: example\n")
    with pytest.raises(BookError, match="'example', which is not an address"):
        parts.doors(sandbox.project, "", "")


def test_without_addresses_nothing_links_to_one(sandbox):
    page = sandbox.pages["linear-bandits"]
    assert cite.addresses(sandbox.project) == ("", "")
    assert parts.doors(sandbox.project, page.title, page.file, page) == ""
    assert "url" not in cite.bibtex(sandbox.project, page, sandbox.run())
    tags = cite.scholar(sandbox.project, page.title, f"{page.file}.html")
    assert "citation_fulltext_html_url" not in tags and not any("http" in t for t in tags.values())


def test_a_book_without_an_author_is_refused(sandbox):
    text = (sandbox.project.root / "CITATION.cff").read_text("utf-8")
    sandbox.add("CITATION.cff", text[: text.index("authors:")])
    with pytest.raises(BookError, match="a list of names as authors"):
        cite.scholar(sandbox.project, "", "")
