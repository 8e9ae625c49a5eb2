"""Publishing by rename, git without locks, pinned actions: what a failure must not leave behind."""

import os
import re
import subprocess

import pytest

from ci import build
from ci.project import commit
from ci.site import site_of
from lib.paths import CODE


@pytest.fixture
def published(sandbox, monkeypatch):
    """A book that people read, and a renderer that writes into its own folder and then ends."""
    sandbox.fake_papermill()
    site = site_of(sandbox.project, "book")
    sandbox.add(f"{site.html.relative_to(sandbox.project.root)}/index.html", "the old book")

    def render(status):
        def fake(command, **_):
            site.rendered.mkdir(parents=True, exist_ok=True)
            (site.rendered / "index.html").write_text("half of the new book")
            return subprocess.CompletedProcess(command, status, "ERROR: a page is wrong")

        monkeypatch.setattr(build.subprocess, "run", fake)
        return build.build(sandbox.project, "book", [])

    return site, render


def test_a_book_that_cannot_be_rendered_leaves_the_old_one(published, capsys):
    site, render = published
    assert render(1) == 1
    assert "a page is wrong" in capsys.readouterr().err
    assert (site.html / "index.html").read_text() == "the old book"


def test_a_build_that_was_killed_while_it_published_is_mended_by_the_next(published, monkeypatch):
    """Killed between the two renames: the old book is aside, the new one not yet there."""
    site, render = published
    monkeypatch.setattr(build, "finish", lambda folder: None)
    (site.out / "html.new").mkdir(parents=True)
    site.html.rename(site.out / "html.old")
    (site.out / "html.new" / "left.html").write_text("of the build that was killed")
    assert render(0) == 0
    assert {path.name for path in site.html.iterdir()} == {"index.html", "claims"}
    assert not (site.out / "html.new").exists()
    assert not (site.out / "html.old").exists()


def test_asking_git_writes_nothing_into_the_repository(sandbox):
    """`git status` rewrites the index when it may, and leaves index.lock when it is killed."""
    root = sandbox.project.root

    def git(*words):
        who = ["-c", "user.name=Jane", "-c", "user.email=jane@example.org"]
        subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    os.utime(root / "_toc.yml", (1e9, 1e9))  # what the index says of this file is no longer true
    before = (root / ".git" / "index").read_bytes()
    identity, dirty = commit(sandbox.project)
    assert (len(identity), dirty) == (40, False)
    assert (root / ".git" / "index").read_bytes() == before


def test_actions_are_pinned_to_a_commit():
    """A tag can be moved to other code, which would build and publish the book."""
    texts = [path.read_text() for path in (CODE / ".github" / "workflows").glob("*.yml")]
    used = re.findall(r"uses:\s*(\S+)", "\n".join(texts))
    assert used
    assert [name for name in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name)] == []
