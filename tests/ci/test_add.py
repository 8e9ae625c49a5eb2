"""A reader's own ratings: many forms of one file give one dataset, and bad ones say where."""

import itertools

import pytest

from ci import add, cli
from lib import datasets, paths
from lib.errors import BookError

ROWS = [(f"u{u}", f"i{i}", 1 + (u * i) % 5 / 2) for u, i in itertools.product(range(12), range(11))]


def text(separator=",", header=None, order=(0, 1, 2), extra=""):
    lines = [separator.join(str(row[k]) for k in order) + extra for row in ROWS]
    return "\n".join(([header] if header else []) + lines) + "\n"


FORMS = {
    "plain.csv": (text(), None),
    "header.csv": (text(header="user,item,rating"), None),
    "movielens.csv": (text(header="userId,movieId,rating,timestamp", extra=",978300760"), None),
    "amazon.dat": (text("::", extra="::978300760"), None),
    "recbole.inter": (text("\t", "user_id:token\titem_id:token\trating:float"), None),
    "named.csv": (text(";", "Stars;Who;What", (2, 0, 1)), "who,what,stars"),
    "numbered.csv": (text(order=(2, 1, 0)), "3,2,1"),
    "quoted.csv": (text(header='"user","item","rating"'), None),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_dataset(sandbox, tmp_path, capsys, name):
    content, columns = FORMS[name]
    file = tmp_path / name
    file.write_text(content)
    words = ["data", "add", "mine", str(file), *(["--columns", columns] if columns else [])]
    assert cli.main(words) == 0
    assert "mine: 132 ratings of 12 users on 11 items" in capsys.readouterr().out
    frame = datasets.ratings("mine")
    assert frame["rating"].tolist() == [row[2] for row in ROWS]
    assert (frame["user"].nunique(), frame["item"].nunique()) == (12, 11)
    assert datasets.check("mine") == []
    assert cli.main(["data", "list", "mine"]) == 0
    assert f"your own file {name}" in capsys.readouterr().out


def test_it_is_found_altered_and_is_no_dataset_of_the_book(sandbox, tmp_path):
    file = tmp_path / "r.csv"
    file.write_text(text())
    add.add(sandbox.project, "mine", file, None)
    assert "mine" not in datasets.cards()
    path = paths.project().data / "raw/mine/ratings.csv"
    path.write_text(path.read_text().replace("2.0", "5.0"))
    with pytest.raises(BookError, match="is not the registered one"):
        datasets.ratings("mine")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no lines"),
        ("a,b\n", "which columns are user, item and rating"),
        ("user,item,rating\n1,2\n", "line 2: expected 3 fields"),
        ("user,item,rating\n1,2,3\n1,,3\n", "line 3: expected a user, an item and a number"),
        ("user,item,rating\n1,2,nan\n", "line 2: expected a user"),
        ("1,2,3\n1,3,x\n", "line 2: expected a user"),
        ("1,2,3\n1,3,4\n", "2 ratings of 1 users on 2 items; a dataset needs 10"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(sandbox, tmp_path, content, message):
    file = tmp_path / "r.csv"
    file.write_text(content)
    with pytest.raises(BookError, match=message):
        add.add(sandbox.project, "mine", file, None)
    assert not (sandbox.project.data / "raw").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mine"], "takes a name and a file"),
        (["Mine", "r.csv"], "small letters"),
        (["../mine", "r.csv"], "small letters"),
        (["mine", "gone.csv"], "there is no file"),
    ],
)
def test_bad_calls_are_one_sentence(sandbox, capsys, words, message):
    assert cli.main(["data", "add", *words]) == 2
    assert message in capsys.readouterr().err
