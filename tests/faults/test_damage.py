"""Damaged files: one sentence where they cannot be used, and never an old or altered number."""

import json

import pytest

from ci import build, cli, runs
from ci.site import site_of
from lib import datasets

GARBAGE = {
    "bytes": b"\xff\xfe\x00",
    "unclosed": b"a: [1,\nb: }",
    "a list": b"- 1\n- [2]\n",
    "a word": b"word\n",
    "a number": b"3\n",
    "nested": b"smoke: {linear-bandits: [1]}\nauthors: 3\nml-1m: 4\n",
    "deep": b"[" * 3000,
    "twice": b"smoke: {}\nsmoke: {}\n",
    "a bomb": b"a: &a [x, x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (c, c, b"*%c," % (c - 1) * 9) for c in b"bcdefghijkl"),
}
FILES = [
    "_toc.yml",
    "book/profiles.yml",
    "book/claims/linear-bandits.yml",
    "data/registry.yml",
    "CITATION.cff",
]
COMMANDS = [["list"], ["build"], ["claims"], ["cite", "linear-bandits"], ["data", "list"]]


@pytest.fixture
def book(sandbox, monkeypatch):
    monkeypatch.setattr(build, "_render", lambda *_: True)
    datasets._registry.cache_clear()
    sandbox.fake_papermill([sandbox.claim, sandbox.table])
    return sandbox


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", GARBAGE)
def test_a_damaged_setting_is_one_sentence(book, capsys, file, damage):
    path = book.project.root / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(GARBAGE[damage])
    refused = 0
    for command in COMMANDS:
        status = cli.main(command)
        err = capsys.readouterr().err
        assert (status, len(err.splitlines())) in {(0, 0), (2, 1)}, (command, status, err)
        # An entry of the ledger names itself; a well-formed file is found wrong by what lacks it.
        named = path.name in err or "regretbook: claim 1:" in err or damage == "nested"
        assert status == 0 or named, (command, err)
        refused += status == 2
    assert refused or damage in ("a list", "nested"), "some command needs the file"


def wreck(path, damage):
    text = path.read_bytes()
    path.write_bytes({"half": text[: len(text) // 2], "empty": b"", "other": b"[1, 2]"}[damage])


@pytest.mark.parametrize("damage", ["half", "empty", "other"])
@pytest.mark.parametrize(
    "file", ["run.json", "notebook.ipynb", "journal.jsonl", "tables/regret.csv"]
)
def test_a_damaged_run_counts_as_absent_and_is_made_again(book, capsys, file, damage):
    assert cli.main(["build"]) == 0
    page = book.pages["linear-bandits"]
    folder = runs.place(book.project, page, "book")
    wreck(folder / file, damage)
    assert runs.published(book.project, page) is None
    for command in (["list"], ["claims"], ["cite", "linear-bandits"], ["record", "linear-bandits"]):
        assert cli.main(command) in (0, 2)
        assert "Traceback" not in capsys.readouterr().err
    executed = book.fake_papermill([book.claim, book.table])
    assert cli.main(["build"]) == 0
    assert executed == ["linear-bandits"]


@pytest.mark.parametrize("act", ["delete", "edit"])
def test_a_verdict_that_no_run_gave_is_not_published(book, act):
    assert cli.main(["build"]) == 0
    journal = runs.place(book.project, book.pages["linear-bandits"], "book") / "journal.jsonl"
    if act == "delete":
        journal.unlink()
    else:
        journal.write_text(journal.read_text().replace("reproduced", "refuted"))
    executed = book.fake_papermill([book.claim, book.table])
    assert cli.main(["build"]) == 0
    assert executed == ["linear-bandits"], "it must not count as up to date"
    assert '"reproduced"' in journal.read_text()


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"content": 3}'])
def test_a_damaged_stamp_of_the_html_renders_again(sandbox, text):
    site = site_of(sandbox.project, "book")
    site.stamp.parent.mkdir(parents=True)
    site.stamp.write_text(text)
    assert build._stamp(site) in ({}, {"content": 3})


MONSTERS = [
    "1" + "0" * 400,
    "-" * 20_000 + "1",
    "[" * 9_000,
    "1e400",
    "0x" + "f" * 5_000,
    "9" * 9_000,
]


@pytest.mark.parametrize("value", MONSTERS, ids=lambda value: value[:3])
@pytest.mark.parametrize("name", ["T", "scale", "dims", "fast"])
def test_a_monstrous_value_is_one_short_sentence(sandbox, capsys, name, value):
    assert cli.main(["run", "linear-bandits", "-p", f"{name}={value}"]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert len(err) < 300


def test_run_json_names_the_data_that_were_read(book):
    book.fake_papermill([book.data])
    target = book.project.root / "mine"
    assert cli.main(["run", "linear-bandits", "--out", str(target)]) == 0
    assert json.loads((target / "run.json").read_text())["data"] == {"ml-1m": "d1"}
