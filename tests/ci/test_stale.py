"""A page is executed again exactly when something its numbers depend on has changed."""

import re
import shutil

import pytest

from ci import build, parameters, runs, stale
from ci.project import lock
from ci.site import site_of
from lib.errors import BookError
from lib.journal import Data, Loaded

PAGES = ["linear-bandits", "clustering-of-bandits/index", "clustering-of-bandits/theory"]
PAGE = "book/foundations/linear-bandits.md"
OTHER = "book/foundations/clustering-of-bandits/index.md"
ABSENT = Data("ml-25m", None, "absent")


@pytest.fixture(autouse=True)
def data(monkeypatch):
    """Datasets whose digests a test may change."""
    digests = {"ml-1m": "d1", "ml-25m": None}
    monkeypatch.setattr(stale, "data_digest", digests.get)
    return digests


def fresh(sandbox, profile="book"):
    page = sandbox.pages["linear-bandits"]
    values = parameters.resolve(sandbox.project, page, profile)
    run = runs.read(runs.place(sandbox.project, page, profile))
    return stale.is_fresh(sandbox.project, page, values, run, sandbox.pages)


@pytest.fixture
def executed(sandbox):
    """A project whose chapter read data, lacked other data, and loaded the other chapter."""
    other = sandbox.pages["clustering-of-bandits/index"]
    loaded = Loaded("clustering-of-bandits", other.digest)
    sandbox.run(entries=[sandbox.data, loaded])
    assert fresh(sandbox)
    return sandbox


def test_no_run_is_stale(sandbox):
    assert not fresh(sandbox)


def test_prose_is_not_a_reason(executed):
    executed.edit(PAGE, "More prose.", "Quite other prose, with $y$.")
    executed.edit(OTHER, "# Clustering", "# On clustering")
    assert fresh(executed)


def test_code_is_a_reason(executed):
    executed.edit(PAGE, "doubled = 2 * T", "doubled = T + T")
    assert not fresh(executed)


def test_parameters_are_a_reason(executed):
    executed.add("book/profiles.yml", "book: {linear-bandits: {T: 30}}\n")
    assert not fresh(executed)


def test_lib_is_a_reason(executed, monkeypatch):
    monkeypatch.setattr(stale.provenance, "lib_digest", lambda: "another")
    assert not fresh(executed)


def test_installed_versions_are_a_reason_and_pins_alone_are_not(executed, monkeypatch):
    executed.edit("constraints.txt", "2.0", "2.1")
    assert fresh(executed)
    monkeypatch.setattr(stale, "_version", lambda name: "3.0")
    assert not fresh(executed)


def test_rules_of_the_chapter_are_a_reason_and_those_of_others_are_not(executed):
    executed.edit("book/claims/clustering-of-bandits.yml", '"measured < 1"', '"measured < 2"')
    assert fresh(executed)
    executed.edit("book/claims/linear-bandits.yml", '"measured <= printed"', '"measured < printed"')
    assert not fresh(executed)


@pytest.mark.parametrize("digest", ["d2", None])
def test_data_is_a_reason(executed, data, digest):
    data["ml-1m"] = digest
    assert not fresh(executed)


def test_data_that_arrives_is_a_reason(sandbox, data):
    sandbox.run(entries=[ABSENT])
    assert fresh(sandbox)
    data["ml-25m"] = "now here"
    assert not fresh(sandbox)


def test_a_loaded_chapter_is_a_reason(executed):
    executed.edit(OTHER, 'print("other")', "print(1)")
    assert not fresh(executed)


def test_recorded_results_are_a_reason_for_the_page_that_shows_them(sandbox):
    sandbox.add("results/linear-bandits/book/regret.csv", "t\n1\n")
    sandbox.run(entries=[sandbox.data, sandbox.table])
    sandbox.add("results/linear-bandits/book/regret.csv", "t\n2\n")
    assert fresh(sandbox)
    sandbox.run(entries=[sandbox.data, sandbox.table._replace(source="recorded")])
    sandbox.add("results/linear-bandits/book/regret.csv", "t\n3\n")
    assert not fresh(sandbox)


def test_a_page_that_asks_for_the_printed_scale_is_stale_when_it_gets_there(sandbox):
    sandbox.edit(PAGE, "print(doubled)", 'print(results.recorded("regret").note)')
    sandbox.run(entries=[sandbox.data])
    for file in ("regret.csv", "index.json"):
        assert fresh(sandbox)
        sandbox.add(f"results/linear-bandits/thesis/{file}", "new")
        assert not fresh(sandbox)
        sandbox.run(entries=[sandbox.data])
    sandbox.add("results/clustering-of-bandits/thesis/regret.csv", "of another chapter")
    assert fresh(sandbox)


def test_a_run_without_notebook_or_with_damaged_run_json_is_stale(executed):
    folder = runs.place(executed.project, executed.pages["linear-bandits"], "book")
    (folder / "run.json").write_text('{"chapter": "linear')
    assert not fresh(executed)
    executed.run(entries=[executed.data])
    (folder / "notebook.ipynb").unlink()
    assert not fresh(executed)


@pytest.fixture
def builds(sandbox, monkeypatch):
    """Return a build without kernel and Sphinx that tells which pages it executed."""
    executed = sandbox.fake_papermill([sandbox.data])
    monkeypatch.setattr(build, "_render", lambda project, site, tree: True)

    def go(profile="book", *names):
        executed.clear()
        assert build.build(sandbox.project, profile, list(names), jobs=1) == 0
        return list(executed)

    return go


def staged(sandbox, profile="book"):
    source = site_of(sandbox.project, profile).source
    return (source / "foundations/linear-bandits.ipynb").read_text()


def test_build_executes_what_is_stale_and_rerenders_prose(sandbox, builds):
    assert sorted(builds()) == sorted(PAGES)
    assert builds() == []
    sandbox.edit(PAGE, "More prose.", "An edit of prose.")
    assert builds() == []
    assert "An edit of prose." in staged(sandbox)
    assert "output of cell 3" in staged(sandbox)
    sandbox.edit(PAGE, "print(doubled)", "print(-doubled)")
    assert builds() == ["linear-bandits"]


def test_pages_of_a_chapter_are_stale_one_by_one(sandbox, builds):
    builds()
    sandbox.edit(OTHER, 'print("other")', 'print("another")')
    assert builds() == ["clustering-of-bandits/index"]


def untimed(text):
    """Return a page without its footer and without the seconds that its run took."""
    return re.sub(r'seconds\\?": [\d.]+', "", text.split("Executed")[0])


def test_several_pages_at_a_time_give_the_same_book(sandbox, builds):
    builds()
    alone = staged(sandbox)
    for page in sandbox.pages.values():
        shutil.rmtree(runs.place(sandbox.project, page, "book"))
    assert build.build(sandbox.project, "book", [], jobs=3) == 0
    assert untimed(staged(sandbox)) == untimed(alone)


def test_the_page_that_took_longest_begins(sandbox, builds):
    builds()
    for name, seconds in zip(PAGES, (5.0, 1.0, 9.0), strict=True):
        run = runs.published(sandbox.project, sandbox.pages[name])
        sandbox.rewrite(run, seconds=seconds, digest="stale")
    assert builds() == [PAGES[2], PAGES[0], PAGES[1]]


def test_neighbours_do_not_begin_together(sandbox, builds):
    assert builds() == [PAGES[0], PAGES[2], PAGES[1]]


def test_profiles_have_folders_of_their_own(sandbox, builds):
    builds("book")
    assert builds("smoke", "clustering-of-bandits") == PAGES[1:]
    assert "Not executed in this build" in staged(sandbox, "smoke")
    assert "output of cell" not in staged(sandbox, "smoke")
    assert "output of cell 3" in staged(sandbox)
    assert site_of(sandbox.project, "book").html == sandbox.project.build / "html"


def test_a_build_of_one_chapter_keeps_valid_runs_and_hides_stale_ones(sandbox, builds):
    builds()
    assert builds("book", "clustering-of-bandits") == []
    assert "output of cell 3" in staged(sandbox)
    sandbox.edit(PAGE, "print(doubled)", "print(-doubled)")
    assert builds("book", "clustering-of-bandits") == []
    assert "output of cell" not in staged(sandbox)
    assert "print(-doubled)" in staged(sandbox)


def test_two_builds_of_one_profile_at_once_are_refused(sandbox, builds):
    with (
        lock(site_of(sandbox.project, "book").lock, "busy"),
        pytest.raises(BookError, match="another build of profile book is running"),
    ):
        builds()
    with lock(site_of(sandbox.project, "smoke").lock, "busy"):
        assert sorted(builds()) == sorted(PAGES)
