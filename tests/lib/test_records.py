"""Records: what is written is what is read, and no table is used that its record does not name."""

import hashlib
import json

import pytest

from lib import records
from lib.errors import BookError
from lib.journal import Judgement
from lib.paths import project_at
from lib.records import Origin, Record, Recorded

TEXT = "trial,regret\n0,1.5\n1,2.5\n"
ORIGIN = Origin(
    date="2026-11-17T08:00:00+00:00",
    profile="thesis",
    parameters={"T": 1000, "dims": [1, 2], "scale": float("inf")},
    seed=1,
    commit="abc1234def",
    dirty=False,
    versions={"numpy": "2.0"},
    machine="Linux",
    data={"ml-1m": "d1"},
)
TABLE = Recorded(hashlib.sha256(TEXT.encode()).hexdigest(), "Regret", ORIGIN, 12.5)
JUDGEMENT = Judgement("a", "advantage", "reproduced", measured=1.0, facts={"rate": 0.5})
RECORD = Record("dueling", "index", {"regret": TABLE}, [JUDGEMENT], ORIGIN, {"a advantage": "rule"})


@pytest.fixture
def project(tmp_path):
    where = project_at(tmp_path)
    records.write(where, "thesis", RECORD)
    records.folder(where, "dueling", "thesis").joinpath("regret.csv").write_text(TEXT)
    return where


def test_a_record_is_read_as_it_was_written(project):
    (path,) = records.every(project)
    assert path == project.results / "dueling/thesis/index.json"
    assert records.read(path) == RECORD
    assert records.every(project, "dueling") and not records.every(project, "linear-bandits")


def test_a_table_comes_with_its_origin(project):
    assert records.table(project, "dueling", "thesis", "regret") == (TABLE, TEXT)
    assert records.table(project, "dueling", "book", "regret") is None
    assert records.table(project, "dueling", "thesis", "other") is None


def test_a_table_of_any_page_of_the_chapter_is_found(project):
    later = RECORD._replace(page="theory", tables={})
    records.write(project, "thesis", later)
    records.write(project, "thesis", later._replace(page="experiments"))
    assert records.table(project, "dueling", "thesis", "regret") == (TABLE, TEXT)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda f: (f / "regret.csv").write_text(TEXT.replace("2.5", "2.6")), "is not the table"),
        (lambda f: (f / "regret.csv").unlink(), "recorded but not there"),
        (lambda f: (f / "index.json").unlink(), "no record of where it came from"),
        (lambda f: (f / "index.json").write_text('{"chapter": "duel'), "is damaged"),
        (lambda f: (f / "index.json").write_text("[]"), "is damaged"),
    ],
)
def test_what_does_not_fit_together_is_refused_by_name(project, damage, sentence):
    damage(project.results / "dueling/thesis")
    with pytest.raises(BookError, match=f"results/dueling/thesis/.*{sentence}"):
        records.table(project, "dueling", "thesis", "regret")


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("verdict", "certain"),
        ("measured", "<script>"),
        ("low", [1]),
        ("facts", [1]),
        ("values", None),
        ("note", 3),
        ("trials", 2.5),
        ("invented", 1),
    ],
)
def test_a_judgement_that_nothing_wrote_is_refused(project, part, value):
    (path,) = records.every(project)
    plain = json.loads(path.read_text())
    plain["judgements"][0][part] = value
    path.write_text(json.dumps(plain))
    with pytest.raises(BookError, match=rf"index.json is damaged \(.*{part}"):
        records.every(project)


def test_a_judgement_is_named_by_claim_and_question():
    assert records.title(JUDGEMENT) == "a advantage"
    assert records.title(JUDGEMENT._replace(question="")) == "a"
