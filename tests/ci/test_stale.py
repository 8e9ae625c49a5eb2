"""A chapter is executed again exactly when something its numbers depend on has changed."""

import pytest

from ci import build, parameters, runs, stale
from ci.project import lock
from lib.errors import BookError

PAGE = "book/foundations/linear-bandits.md"
ABSENT = {"kind": "data", "name": "ml-25m", "digest": None, "where": "absent"}


@pytest.fixture(autouse=True)
def data(monkeypatch):
    """Datasets whose digests a test may change."""
    digests = {"ml-1m": "d1", "ml-25m": None}
    monkeypatch.setattr(stale, "data_digest", digests.get)
    return digests


def fresh(sandbox, profile="book"):
    chapter = sandbox.chapters["linear-bandits"]
    values = parameters.resolve(sandbox.project, chapter, profile)
    run = runs.read(runs.place(sandbox.project, chapter.name, profile))
    return stale.is_fresh(sandbox.project, chapter, values, run, sandbox.chapters)


@pytest.fixture
def executed(sandbox):
    """A project whose chapter read data, lacked other data, and loaded the other chapter."""
    other = sandbox.chapters["clustering-of-bandits"]
    loaded = {"kind": "chapter", "name": other.name, "digest": other.digest}
    sandbox.run(journal=[sandbox.data, loaded])
    assert fresh(sandbox)
    return sandbox


def test_no_run_is_stale(sandbox):
    assert not fresh(sandbox)


def test_prose_is_not_a_reason(executed):
    executed.edit(PAGE, "More prose.", "Quite other prose, with $y$.")
    executed.edit("book/foundations/clustering-of-bandits.md", "# Clustering", "# On clustering")
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


def test_constraints_are_a_reason(executed):
    executed.edit("constraints.txt", "2.0", "2.1")
    assert not fresh(executed)


def test_rules_of_the_chapter_are_a_reason_and_those_of_others_are_not(executed):
    executed.edit("book/claims.yml", '"high < 1"', '"high < 2"')
    assert fresh(executed)
    executed.edit("book/claims.yml", '"high <= printed"', '"low <= printed"')
    assert not fresh(executed)


@pytest.mark.parametrize("digest", ["d2", None])
def test_data_is_a_reason(executed, data, digest):
    data["ml-1m"] = digest
    assert not fresh(executed)


def test_data_that_arrives_is_a_reason(sandbox, data):
    sandbox.run(journal=[ABSENT])
    assert fresh(sandbox)
    data["ml-25m"] = "now here"
    assert not fresh(sandbox)


def test_a_loaded_chapter_is_a_reason(executed):
    executed.edit("book/foundations/clustering-of-bandits.md", 'print("other")', "print(1)")
    assert not fresh(executed)


def test_recorded_results_are_a_reason_for_the_page_that_shows_them(sandbox):
    sandbox.add("results/linear-bandits/regret.csv", "t\n1\n")
    sandbox.run(journal=[sandbox.data, sandbox.table])
    sandbox.add("results/linear-bandits/regret.csv", "t\n2\n")
    assert fresh(sandbox)
    sandbox.run(journal=[sandbox.data, {**sandbox.table, "source": "recorded"}])
    sandbox.add("results/linear-bandits/regret.csv", "t\n3\n")
    assert not fresh(sandbox)


def test_a_run_without_notebook_or_with_damaged_run_json_is_stale(executed):
    folder = runs.place(executed.project, "linear-bandits", "book")
    (folder / "run.json").write_text('{"chapter": "linear')
    assert not fresh(executed)
    executed.run(journal=[executed.data])
    (folder / "notebook.ipynb").unlink()
    assert not fresh(executed)


@pytest.fixture
def builds(sandbox, monkeypatch):
    """Return a build without kernel and Sphinx that tells which chapters it executed."""
    executed = []
    monkeypatch.setattr(build, "execute", sandbox.fake_execute([sandbox.data], executed))
    monkeypatch.setattr(build, "_render", lambda project, tree: True)

    def go(profile="book", *names):
        executed.clear()
        assert build.build(sandbox.project, profile, list(names), "threads") == 0
        return list(executed)

    return go


def staged(sandbox):
    return (sandbox.project.source / "foundations/linear-bandits.ipynb").read_text()


def test_build_executes_what_is_stale_and_rerenders_prose(sandbox, builds):
    assert builds() == ["linear-bandits", "clustering-of-bandits"]
    assert builds() == []
    sandbox.edit(PAGE, "More prose.", "An edit of prose.")
    assert builds() == []
    assert "An edit of prose." in staged(sandbox)
    assert "output of cell 3" in staged(sandbox)
    sandbox.edit(PAGE, "print(doubled)", "print(-doubled)")
    assert builds() == ["linear-bandits"]


def test_profiles_do_not_show_each_others_output(sandbox, builds):
    builds("book")
    assert builds("smoke", "clustering-of-bandits") == ["clustering-of-bandits"]
    assert "Not executed in this build" in staged(sandbox)
    assert "output of cell" not in staged(sandbox)
    assert builds("book") == []
    assert "output of cell 3" in staged(sandbox)


def test_a_build_of_one_chapter_keeps_valid_runs_and_hides_stale_ones(sandbox, builds):
    builds()
    assert builds("book", "clustering-of-bandits") == []
    assert "output of cell 3" in staged(sandbox)
    sandbox.edit(PAGE, "print(doubled)", "print(-doubled)")
    assert builds("book", "clustering-of-bandits") == []
    assert "output of cell" not in staged(sandbox)
    assert "print(-doubled)" in staged(sandbox)


def test_two_builds_at_once_are_refused(sandbox, builds):
    with (
        lock(sandbox.project.build / ".build.lock", "busy"),
        pytest.raises(BookError, match="another build is running"),
    ):
        builds()
    assert builds() == ["linear-bandits", "clustering-of-bandits"]
