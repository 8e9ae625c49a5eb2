"""What is shown is what it says: its profile, its chapter, the run and the code that made it."""

import os
import subprocess
import sys

import pytest

from ci import build, cli, evidence, execute, scoreboard, scorepage, stale
from ci.site import site_of
from lib import chapters, claims, datasets, engine, program, provenance, store
from lib.errors import BookError


def test_the_scoreboard_of_another_profile_says_so(sandbox, monkeypatch):
    monkeypatch.setattr(build, "_render", lambda *_: True)
    sandbox.fake_papermill([sandbox.claim])
    for profile, warned in (("book", False), ("smoke", True)):
        assert cli.main(["build", "--profile", profile]) == 0
        source = site_of(sandbox.project, profile).source
        for page in ("index.md", "scoreboard.md"):
            assert ("of the profile smoke" in (source / page).read_text()) == warned


def test_no_page_judges_a_claim_of_another_chapter(sandbox, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_PAGE", "linear-bandits/index")
    assert claims.judge("lin-one", 0.01).verdict == "reproduced"
    for act in (lambda: claims.judge("clu-one", 0.5), lambda: claims.skip("clu-one", "no time")):
        with pytest.raises(BookError, match="clu-one is of clustering-of-bandits"):
            act()


def test_what_is_judged_on_recorded_numbers_says_so_everywhere(sandbox, monkeypatch):
    origin = {"recorded": "commit 0123456 with local changes that no commit has, 2026-02-03, book"}
    found = claims.judge("lin-two", -1.0, sizes=origin | {"T": 20_000}).judgement
    assert found.recorded == origin["recorded"]
    page, run = sandbox.pages["linear-bandits"], sandbox.run(entries=[found])
    board = scoreboard.board(claims.ledger(), evidence.of_runs([(page, run)]))
    (row,) = [row for row in board["linear-bandits"] if row.claim.id == "lin-two"]
    assert row.where == "recorded 0123456"
    assert "local changes that no commit has" in scorepage.verdicts(
        board, sandbox.pages, "linear-bandits"
    )


LAST = """
```{code-cell} ipython3
WIDTH = 2.0
```
"""
MIDDLE = """
```{code-cell} ipython3
from lib import chapters
from lib.linear import unit_rows

THEORY = chapters.load("clustering-of-bandits/theory")


def area(r):
    return THEORY.WIDTH * r


def length(x):
    return unit_rows(x)
```
"""


def test_a_number_from_a_page_behind_the_loaded_page_is_part_of_the_key(sandbox):
    """A changed constant two pages away once published an old number with a verdict."""
    for page, text in (("theory", LAST), ("index", MIDDLE)):
        file = sandbox.project.book / "foundations" / "clustering-of-bandits" / f"{page}.md"
        file.write_text(file.read_text() + text)

    def programs():
        page = chapters.load("clustering-of-bandits")
        return [program.text({"run": each}) for each in (page.area, page.length)]

    area, length = programs()
    assert "lib/linear.py" in length.partition("# file")[0], "its digest stands in the heading"
    sandbox.edit("book/foundations/clustering-of-bandits/theory.md", "WIDTH = 2.0", "WIDTH = 3.0")
    assert programs()[0] != area
    assert programs()[1] == length


@pytest.mark.parametrize("world", provenance.WORLDS)
def test_the_version_of_a_world_is_part_of_the_key_of_who_imports_it(world, monkeypatch):
    plain, of_world = provenance.ground(["x = 1"]), provenance.ground([f"import {world}"])
    assert plain in of_world
    monkeypatch.setattr(provenance, "_version", lambda name: "99.0")
    assert provenance.ground([f"import {world}"]) != of_world
    with pytest.raises(BookError, match=f"made with {world} "):
        provenance.check_ground(of_world)


def test_an_edit_of_equal_size_and_time_runs_the_new_code(tmp_path, monkeypatch):
    source = tmp_path / "lib" / "odd.py"
    source.parent.mkdir()
    machine_code = source.parent / "__pycache__" / "odd.f-1.py311.1.nbi"

    def said(value):
        source.write_text(f"print({value})")
        os.utime(source, (1e9, 1e9))
        monkeypatch.setattr(execute, "LIB", source.parent)
        execute._trust_no_clock.cache_clear()
        execute._trust_no_clock()
        done = subprocess.run(
            [sys.executable, "-c", "import odd"], cwd=source.parent, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert said(1) == "1"
    machine_code.touch()
    assert said(1) == "1"
    assert machine_code.exists()
    assert said(2) == "2"
    assert not machine_code.exists(), "numba goes by time and size, too"
    execute._trust_no_clock.cache_clear()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_cannot_be_written_is_refused_before_computing(tmp_path, monkeypatch):
    tmp_path.chmod(0o500)
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "store"))
    with pytest.raises(BookError, match="cannot write to"):
        engine.run([engine.Task("", "never", {})], "never")


def test_a_store_that_is_a_file_is_refused_before_computing(tmp_path, monkeypatch):
    (tmp_path / "store").write_text("mine")
    monkeypatch.setenv("REGRETBOOK_STORE", str(tmp_path / "store"))
    with pytest.raises(BookError, match="cannot write to"):
        engine.run([engine.Task("", "never", {})], "never")
    assert store.folder() == tmp_path / "store"


def test_altered_data_make_a_page_stale_and_count_as_absent(monkeypatch):
    monkeypatch.setattr(datasets, "altered", lambda name: "ratings.dat has SHA-256 …")
    assert stale.data_digest("ml-1m") is None
