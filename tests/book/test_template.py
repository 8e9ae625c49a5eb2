"""The template of a chapter runs, judges and renders its first screen as CONTRIBUTING.md says."""

import shutil

import pytest

from ci import assemble, contents, execute, parameters, runs
from ci.site import site_of
from lib.paths import CODE

TEMPLATE = CODE / "book" / "_template"


@pytest.fixture
def chapter(sandbox):
    """Do by hand what CONTRIBUTING.md tells a newcomer to do."""
    book = sandbox.project.book
    home = book / "bandits" / "two-doors"
    home.mkdir(parents=True)
    shutil.copy(TEMPLATE / "index.md", home)
    shutil.copy(TEMPLATE / "claims.yml", book / "claims" / "two-doors.yml")
    shutil.copy(TEMPLATE / "findings.yml", book / "findings.yml")
    sandbox.edit(
        "_toc.yml",
        "  - file: scoreboard",
        "  - file: bandits/two-doors/index\n  - file: scoreboard",
    )
    return sandbox


def executed(chapter, **changes):
    page = chapter.pages["two-doors/index"]
    values = parameters.resolve(chapter.project, page, "book", changes)
    target = runs.place(chapter.project, page, "book")
    run, failure = execute.execute(chapter.project, execute.Request(page, values, target, "book"))
    assert failure is None
    return run


def test_the_template_of_a_chapter_runs_and_judges(chapter, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_STORE", str(chapter.project.root / "store"))
    run = executed(chapter)
    found = {judgement.id: judgement for judgement in run.judgements}
    assert found["doors-bound"].verdict == "reproduced"
    assert found["doors-try"].verdict == "reproduced"
    assert found["doors-try"].scale == "printed scale"
    assert list(run.tables) == ["doors"]
    every = {name: (page, None) for name, page in chapter.pages.items()}
    every["two-doors/index"] = (contents.discover(chapter.project)["two-doors/index"], run)
    assemble.stage(chapter.project, site_of(chapter.project, "book"), every)
    text = (site_of(chapter.project, "book").source / "bandits/two-doors/index.ipynb").read_text()
    assert "**Trying first pays.** It saves a share of" in text
    assert 'fig-two-doors\\"' in text, "the figure stands on the first screen"
