"""The report of a run: what was changed, what came out differently, and nothing from elsewhere."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from ci import cli, execute, report, runs
from ci.cite import bibtex
from lib.beside import LABEL
from lib.journal import Figure, Judgement
from tests.browser import assert_readable

WIDER = """
import json
from lib import claims, figures, journal, results
import pandas as pd

table = pd.DataFrame({"t": range(1, dims[0] + 1), "regret": 0.5, "policy": "LinUCB", "trial": 0})
results.save("regret", table, "Regret after $T$ rounds")
fig, ax = figures.grid()
figures.curves(ax, table)
figures.show(fig, "fig-lin-share", "The share of $x_t$.", "A line.")
claims.judge("lin-one", 0.001 * T, figure="fig-lin-share")
"""


def judged(verdict, measured, scale=""):
    return Judgement("lin-one", "", verdict, scale, measured=measured, low=measured, high=measured)


@pytest.fixture
def changed(sandbox, capsys):
    """A published run, and one of a reader with another T and another verdict."""
    sandbox.run(entries=[sandbox.table, judged("reproduced", 0.031, "printed scale")])
    sandbox.fake_papermill([sandbox.table, judged("not reproduced", 0.07, "reduced (T 9 of 20)")])
    target = sandbox.project.root / "mine"
    assert cli.main(["run", "linear-bandits", "-p", "T=9", "--out", str(target)]) == 0
    return runs.read(target), capsys.readouterr().out


def test_every_run_has_a_report_that_its_folder_vouches_for(changed):
    run, out = changed
    assert report.FILE in run.info.files
    assert f"report:   {run.folder / report.FILE}" in out


def test_the_report_says_what_changed_with_both_measurements_and_scales(sandbox, changed):
    run, _ = changed
    page = sandbox.pages["linear-bandits"]
    soup = BeautifulSoup((run.folder / report.FILE).read_text(), "html.parser")
    parameters, verdicts = soup.find_all("table")[:2]
    assert [cell.text for cell in parameters.find_all("td")][:3] == ["T", "9", "20000"]
    mine, theirs = verdicts.find_all("td")[1:]
    assert "not reproduced" in mine.text and "0.07" in mine.text and "T 9 of 20" in mine.text
    assert "0.031" in theirs.text and "printed scale" in theirs.text
    said = [pre.text for pre in soup.find_all("pre")]
    assert "regretbook run linear-bandits -p T=9" in said
    assert bibtex(sandbox.project, page, run) in said and "with T = 9" in said[1]
    assert "output of cell 3" in soup.text and soup.article.math


def test_the_terminal_says_the_same_in_about_ten_lines(changed):
    _, out = changed
    assert len(out.splitlines()) <= 10
    assert "changed:  T = 9 (was 20000)" in out
    assert (
        "lin-one: not reproduced (0.07, reduced); published reproduced "
        "(0.031, printed scale)" in out
    )
    assert "repeat:   regretbook run linear-bandits -p T=9" in out


def test_a_parameter_that_the_published_run_did_not_have_is_compared_with_its_default(sandbox):
    published = sandbox.run()
    had = {name: value for name, value in published.info.parameters.items() if name != "rule"}
    sandbox.rewrite(published, parameters=had)
    run = published._replace(info=published.info._replace(parameters={**had, "rule": "ucb"}))
    page = sandbox.pages["linear-bandits"]
    assert report.compare(sandbox.project, page, run).parameters == {}


def test_many_changed_verdicts_are_counted_on_the_terminal(sandbox):
    pairs = [
        report.Pair(judged("refuted", i)._replace(id=f"c{i}"), judged("reproduced", i))
        for i in range(9)
    ]
    run = sandbox.run()
    found = report.Comparison(sandbox.pages["linear-bandits"], run, run, {}, pairs)
    lines = report.summary(sandbox.project, found, run.folder)
    assert len(lines) <= 12 and "5 more that differ" in "\n".join(lines)


def test_without_a_build_the_report_says_so(sandbox, capsys):
    sandbox.fake_papermill([sandbox.claim])
    assert cli.main(["run", "linear-bandits"]) == 0
    assert "nothing on this machine to compare with" in capsys.readouterr().out
    folder = runs.place(sandbox.project, sandbox.pages["linear-bandits"])
    assert "no build of this page is on this machine" in (folder / report.FILE).read_text()


def test_a_report_that_fails_costs_no_run(sandbox, capsys, monkeypatch):
    sandbox.fake_papermill()
    monkeypatch.setattr(report, "_page", lambda *found: 1 / 0)
    assert cli.main(["run", "linear-bandits"]) == 0
    assert "ran, but has no report (ZeroDivisionError" in capsys.readouterr().err
    folder = runs.place(sandbox.project, sandbox.pages["linear-bandits"])
    assert runs.read(folder).ok and not (folder / report.FILE).exists()


def test_a_build_makes_no_report(sandbox):
    assert not (sandbox.run().folder / report.FILE).exists()


@pytest.fixture(scope="module")
def opened(browser):
    """Return a function that opens a file and gives its page and every other address it asks."""
    context = browser.new_context()

    def load(path: Path):
        page, asked = context.new_page(), []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: asked.append(message.text))
        page.goto(path.as_uri())
        return page, [each for each in asked if each != path.as_uri()]

    yield load
    context.close()


def test_the_report_opens_in_a_browser_offline(sandbox, opened):
    """`regretbook run … && open report.html`, with a figure drawn by the page itself."""
    sandbox.edit("book/foundations/linear-bandits.md", "print(doubled)", WIDER.strip())
    page = sandbox.pages["linear-bandits"]
    kernel = execute._papermill
    sandbox.real_cells()
    place = runs.place(sandbox.project, page, "book")
    values = page.defaults | {"T": 10}
    assert execute.execute(sandbox.project, execute.Request(page, values, place, "book"))[0].ok
    sandbox.monkeypatch.setattr(execute, "_papermill", kernel)
    target = sandbox.project.root / "mine"
    options = ["-p", "T=900", "-p", "dims=[30]"]
    assert cli.main(["run", "linear-bandits", *options, "--out", str(target)]) == 0
    (figure,) = runs.read(target).entries(Figure)
    both = (target / figure.beside).read_text()
    assert both in (target / report.FILE).read_text()
    shown, asked = opened(target / report.FILE)
    assert asked == []
    assert shown.locator("h2", has_text="Verdicts that changed").count() == 1
    assert shown.locator("#fig-lin-share svg text", has_text=LABEL).count() == 1
    assert shown.locator("math").first.bounding_box()["width"] > 0
    assert_readable(shown)
