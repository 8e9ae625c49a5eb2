"""What a reader brings: ratings and a policy of their own, through real pages in real kernels."""

import csv
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from ci import contents, report, runs
from lib import results
from lib.journal import Data, Judgement
from lib.paths import CODE, project_at

OURS = ("book", "results", "_toc.yml", "constraints.txt", "CITATION.cff", ".cache")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Return a root with the pages of the book, and data of a reader's own beside its own.

    Finished trials and machine code are shared with the tree itself: they are known by digest.
    """
    root = tmp_path_factory.mktemp("reader")
    (CODE / ".cache").mkdir(exist_ok=True)
    for name in OURS:
        (root / name).symlink_to(CODE / name)
    shutil.copytree(CODE / "data", root / "data", ignore=shutil.ignore_patterns("raw"))
    return root


def regretbook(root, *words) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(CODE), "REGRETBOOK_ROOT": str(root)}
    environment.pop("REGRETBOOK_DATA", None)  # no data but the embedded and the reader's own
    command = [sys.executable, "-m", "ci", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root)


def run(root, page, *words) -> runs.Run:
    """Run a page in profile smoke and return what it left."""
    done = regretbook(root, "run", page, "--profile", "smoke", *words)
    assert done.returncode == 0, done.stderr[-2000:]
    return runs.read(runs.place(project_at(root), contents.discover(project_at(root))[page]))


@pytest.fixture(scope="module")
def mine(root):
    """Add a file of ratings: 160 users of four tastes, 70 items."""
    rng = np.random.default_rng(1)
    likes = rng.normal(size=(4, 3))[np.arange(160) % 4] @ rng.normal(size=(70, 3)).T
    stars = np.clip(np.round(3 + likes + rng.normal(0, 0.5, likes.shape)), 1, 5)
    with open(root / "ratings.csv", "w", encoding="utf-8") as file:
        write = csv.writer(file).writerow
        write(["user", "item", "rating"])
        for user, item in zip(*np.nonzero(rng.random(stars.shape) < 0.6), strict=True):
            write([f"u{user}", f"i{item}", stars[user, item]])
    done = regretbook(root, "data", "add", "mine", root / "ratings.csv")
    assert "160 users on 70 items; pages on ratings take it with -p dataset=mine" in done.stdout
    return "dataset=mine"


@pytest.mark.parametrize(
    ("page", "table", "options"),
    [
        ("clustering-of-bandits/movielens", "movielens", ["movie_items=60", "movie_T=200"]),
        ("misspecified-users/ratings", "mine-case-2", ["items=60", "rating_T=60"]),
    ],
)
def test_ratings_of_a_reader_go_through_a_chapter_and_judge_nothing(
    root, mine, page, table, options
):
    # Of two cases one is enough.
    only = ["--only", table] if table == "mine-case-2" else []
    given = [word for each in (mine, *options) for word in ("-p", each)]
    found = run(root, page, *given, *only)
    assert found.tables[table].source == "live"
    regret = results.as_table((found.folder / found.tables[table].file).read_text())
    assert regret["policy"].nunique() > 3
    assert {"mine"} <= {data.name for data in found.entries(Data) if data.digest}
    judged = found.entries(Judgement)
    assert judged and {each.verdict for each in judged} == {"not run"}
    assert all("mine" in each.note for each in judged)
    assert "dataset" in (found.folder / report.FILE).read_text()


def test_without_the_ratings_what_is_recorded_is_judged(root):
    found = run(root, "corrupted-users/ratings")
    assert found.tables["regret-ml"].source == "recorded"
    best = [each for each in found.entries(Judgement) if each.id == "cud-ml-rclubwcu-best"]
    assert len(best) == 2 and {each.verdict for each in best} != {"not run"}


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (
            "clustering-of-bandits/movielens",
            "mine has 160 users and 70 items, but clustering-of-bandits/movielens needs "
            "40 users (movie_users) and 500 items (movie_items)",
        ),
        ("dueling/movielens", "but dueling/movielens needs 200 users (users) and 20 items (arms)"),
    ],
)
def test_too_few_users_or_items_are_refused_with_the_counts(root, mine, page, message):
    done = regretbook(root, "run", page, "-p", mine)
    assert done.returncode == 2 and message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_policy_of_the_page_on_rerunning_enters_a_comparison(root):
    text = (CODE / "book/rerun.md").read_text(encoding="utf-8")
    code = re.search(r'```python\n("""Greedy.*?)```', text, flags=re.S)[1]
    (root / "mine.py").write_text(code, encoding="utf-8")
    (words,) = re.findall(r"^regretbook run (\S+ --policy .*)$", text, flags=re.M)
    page, *words = words.split()
    found = run(root, page, *words)
    table = results.as_table((found.folder / "tables/first.csv").read_text())
    regret = table.groupby("policy")["regret"].mean()
    assert regret["Oracle"] < regret["MINE"] < regret["Uniform"]
    assert (found.folder / "mine.py").read_text() == code
    said = (found.folder / report.FILE).read_text()
    assert ">MINE</text>" in said, "it has a curve"
    assert "--policy mine.py:MINE" in said and "with the policy mine.py:MINE, sha256:" in said
