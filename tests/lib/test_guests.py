"""A reader's own policy: found by file and name, refused in one sentence, stored by its text."""

import pytest

from lib import figures, guests, simulate
from lib.errors import BookError

FILE = """
from lib.simulate import Policy

LAZY = 0


def init(problem, T, rng, pace=1):
    return None


def choose(state, t, user, arms, items):
    return LAZY


def learn(state, t, user, x, reward, item):
    pass


MINE = Policy(init, choose, learn)
NOT = "a policy"
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    path = tmp_path / "random.py"  # a file may have the name of a module of Python
    path.write_text(FILE)
    monkeypatch.setenv("REGRETBOOK_POLICY", f"{path}:MINE")
    return path


def test_it_comes_last_in_a_comparison_and_has_a_look_of_its_own(mine):
    theirs = {"LinUCB": guests.load(f"{mine}:MINE")}
    assert list(guests.added(theirs)) == ["LinUCB", "MINE"]
    look = figures.style("MINE")
    assert look["marker"] not in {marker for _, marker, _ in figures.STYLES.values()} - {"*"}


def test_without_one_nothing_changes(monkeypatch):
    monkeypatch.delenv("REGRETBOOK_POLICY", raising=False)
    policies = {"LinUCB": object()}
    assert guests.added(policies) == policies and guests.names() == []
    with pytest.raises(BookError, match="No style"):
        figures.style("MINE")


def test_a_name_that_is_taken_is_refused(mine):
    with pytest.raises(BookError, match="'MINE' here already"):
        guests.added({"MINE": object()})


def text(path):
    """Return the program of the policy as its file is now."""

    policy = guests.load(f"{path}:MINE")
    environment = simulate.Environment(*[policy.learn] * 4)
    return simulate.program_of(environment, policy)


def test_what_is_stored_depends_on_its_text_and_on_what_it_reads(mine):
    first = text(mine)
    mine.write_text(FILE.replace("LAZY = 0", "LAZY = 1"))
    assert text(mine) != first
    mine.write_text(FILE.replace("LAZY = 0", "LAZY = 0  # a comment"))
    assert text(mine) == first
    mine.write_text(FILE.replace("return LAZY", "return LAZY + 0"))
    assert text(mine) != first


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("mine.py", "takes a file and a name"),
        ("mine.txt:MINE", "takes a file and a name"),
        ("gone.py:MINE", "there is no file"),
        ("FILE:MIEN", "has no 'MIEN'; did you mean MINE"),
        ("FILE:NOT", "NOT of random.py is a str, not a lib.simulate.Policy"),
        ("BROKEN:MINE", "broken.py fails with ZeroDivisionError"),
    ],
)
def test_what_is_wrong_is_one_sentence(mine, given, message):
    broken = mine.with_name("broken.py")
    broken.write_text("1 / 0")
    given = given.replace("FILE", str(mine)).replace("BROKEN", str(broken))
    with pytest.raises(BookError, match=message):
        guests.load(given)
