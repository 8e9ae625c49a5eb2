"""What tools read to cite the book agrees with itself."""

import json
import tomllib

import pytest

from ci import parts
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
    page = (CODE / "book" / "cite.md").read_text("utf-8")
    assert f"version = {{{project['version']}}}" in page
    assert f"year    = {{{str(citation['date-released'])[:4]}}}" in page


def test_an_address_that_is_none_is_refused(sandbox):
    sandbox.edit("CITATION.cff", "version: 1.2.0\n", "version: 1.2.0\nurl: example\n")
    with pytest.raises(BookError, match="'example', which is not an address"):
        parts.doors(sandbox.project, "", "")
