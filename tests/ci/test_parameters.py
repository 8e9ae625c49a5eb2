"""Parameters are read from their cell and refused before anything runs."""

import math
import re
import shlex

import pytest

from ci import forms, parameters
from ci.add import add
from ci.parameters import Range, parse_cell
from lib.errors import BookError


def one(line):
    return next(iter(parse_cell(line, "x").values()))


def test_comment_gives_meaning_and_range():
    found = one("T = 20_000  # rounds per trial, in [1, 10_000_000]")
    assert found == ("T", 20000, "rounds per trial", Range("[1, 10_000_000]", 1, 1e7))
    assert one("a = 0.5  # width, in (0, inf)").range == Range("(0, inf)", 0, math.inf, True, True)
    assert one('k = "b"  # kind, in {"a", "b"}').range.choices == ("a", "b")
    assert one("seed = 3  # in [0, 9]")[2:] == ("", Range("[0, 9]", 0, 9))
    assert one("n = 3  # users, drawn in pairs")[2:] == ("users, drawn in pairs", None)
    assert one('tag = "#1"  # first, in {"#1", "x"}').range.choices == ("#1", "x")


def test_a_dataset_has_the_sizes_that_a_page_needs_as_its_range():
    cell = 'n = 3  # users\nd = "x"  # whose ratings, in datasets(n + 100, 7)'
    found = parse_cell(cell, "x")["d"]
    assert (found.meaning, found.range.sizes) == ("whose ratings", ("n + 100", "7"))
    with pytest.raises(BookError, match="'m' is no parameter"):
        parse_cell(cell.replace("n +", "m +"), "x")


DATASET = 'dataset = "ml-latest-small"  # ratings, in datasets(T + 5, 7)\nfast = True'


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("dataset=mien", "is 'mien', which is no dataset; did you mean mine?"),
        ("dataset=elsewhere", "which is no dataset; `regretbook data add` makes one"),
        ("T=8", "mine has 12 users and 11 items, but linear-bandits needs 13 users (T + 5) and 7"),
        ("T=7", None),
    ],
)
def test_a_dataset_that_is_too_small_is_refused_with_its_counts(sandbox, tmp_path, given, message):
    rows = [f"{user},{item},{user % 5}\n" for user in range(12) for item in range(11)]
    (tmp_path / "r.csv").write_text("".join(rows))
    add(sandbox.project, "mine", tmp_path / "r.csv", None)
    sandbox.edit("book/foundations/linear-bandits.md", "fast = True", DATASET)
    options = {"dataset": "mine", **parameters.parse_options([given])}
    page = sandbox.pages["linear-bandits"]
    if message is None:
        assert parameters.resolve(sandbox.project, page, "book", options)["dataset"] == "mine"
        return
    with pytest.raises(BookError, match=re.escape(message)):
        parameters.resolve(sandbox.project, page, "book", options)
    errors = forms.checked(page, {name: str(value) for name, value in options.items()})[1]
    assert message in errors["dataset"]


def test_a_list_may_span_lines_and_its_range_holds_for_each_element():
    grid = one("grid = [\n    1,\n    2,\n]  # sizes, in [1, 9]")
    assert (grid.default, grid.meaning) == ([1, 2], "sizes")
    assert parameters.check(grid, "3, 4", "x") == [3, 4]
    with pytest.raises(BookError, match=r"grid of x is 10, but must be in \[1, 9\]"):
        parameters.check(grid, "[3, 10]", "x")


@pytest.mark.parametrize(
    "line", ["T = f(3)", "import os", "T = None", "a, b = 1, 2", "T = ", "T = 0  # n, in [1, 5]",
             "T = 1  # n, in [a, b]"],
)  # fmt: skip
def test_a_cell_that_is_not_plain_literals_is_refused(line):
    with pytest.raises(BookError):
        parse_cell(line, "x")


@pytest.mark.parametrize(
    "option, value",
    [("T=1e5", 100_000), ("T=10_000", 10_000), ("scale=2", 2.0), ("rule=ts", "ts"),
     ('rule="ts"', "ts"), ("dims=[3]", [3]), ("dims=3,4", [3, 4]), ("fast=false", False),
     ("fast=True", True)],
)  # fmt: skip
def test_accepted_values_get_the_type_of_the_parameter(sandbox, option, value):
    options = parameters.parse_options([option])
    found = parameters.resolve(sandbox.project, sandbox.pages["linear-bandits"], "book", options)
    name = option.split("=")[0]
    assert found[name] == value
    assert type(found[name]) is type(value)


REFUSED = {
    "T=0": "T of linear-bandits is 0, but must be in",
    "T=-5": "is -5, but must be in",
    "T=1.5": "must be an integer, but is '1.5'",
    "T=nan": "must be an integer, but is 'nan'",
    "T=True": "must be an integer",
    "T=many": "must be an integer, but is 'many'",
    "T=": "must be an integer, but is ''",
    "T=1e99": "must be in",
    "scale=nan": "is NaN",
    "scale=inf": "must be in",
    "scale=0": "must be in",
    "rule=greedy": "must be in",
    "rule=": "must be in",
    "dims=5": "must be a list such as",
    "dims=[]": "at least one value",
    "dims=[5, 0]": "is 0, but must be in",
    "dims=[5, 'a']": "must be an integer, but is 'a'",
    "dims=[5, 7, 5.0]": "has 5 twice",
    "fast=1": "must be True or False",
    "horizon=5": "no parameter 'horizon'",
    "t=5": "it has T, scale",
    "T": "name=value",
    "=5": "name=value",
}


@pytest.mark.parametrize("option, sentence", REFUSED.items())
def test_refused_values(sandbox, option, sentence):
    with pytest.raises(BookError) as refusal:
        options, page = parameters.parse_options([option]), sandbox.pages["linear-bandits"]
        parameters.check_options(options, [page])
        parameters.resolve(sandbox.project, page, options=options)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_parameter_given_twice_is_refused():
    with pytest.raises(BookError, match="twice"):
        parameters.parse_options(["T=1", "T=2"])


def test_profiles_change_values_and_are_checked_alike(sandbox):
    page = sandbox.pages["linear-bandits"]
    smoke = parameters.resolve(sandbox.project, page, "smoke", {"T": "7"})
    assert (smoke["T"], smoke["dims"], smoke["scale"]) == (7, [2], 0.5)
    assert parameters.resolve(sandbox.project, page, "thesis") == page.defaults
    with pytest.raises(BookError, match="the profiles are smoke, book, thesis"):
        parameters.resolve(sandbox.project, page, "tiny")
    sandbox.edit("book/profiles.yml", "T: 10", "T: 0")
    with pytest.raises(BookError, match="must be in"):
        parameters.resolve(sandbox.project, page, "smoke")
    sandbox.edit("book/profiles.yml", "linear-bandits", "linear-bandit")
    with pytest.raises(BookError, match="did you mean linear-bandits"):
        parameters.check_profiles(sandbox.project, sandbox.pages.values())


def test_the_rerun_command_gives_the_same_parameters(sandbox):
    page = sandbox.pages["linear-bandits"]
    values = parameters.resolve(
        sandbox.project, page, "smoke", {"rule": "ts", "dims": "[3, 4]", "fast": "false"}
    )
    words = shlex.split(parameters.command(sandbox.project, page, "smoke", values))
    assert words[:5] == ["regretbook", "run", "linear-bandits", "--profile", "smoke"]
    options = parameters.parse_options(words[6::2])
    assert set(options) == {"rule", "dims", "fast"}
    assert parameters.resolve(sandbox.project, page, "smoke", options) == values
    usual = parameters.resolve(sandbox.project, page)
    assert parameters.command(sandbox.project, page, "book", usual) == (
        "regretbook run linear-bandits"
    )
