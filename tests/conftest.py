"""What every test relies on: no display, and no setting of the caller's shell."""

import os

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from ci.project import ONE_THREAD
from lib import toc
from lib.paths import CODE, project_at

SECOND_HALF = "every second page"
SECOND_PAGES = toc.listed(project_at(CODE))[1::2]
os.environ["MPLBACKEND"] = "Agg"
os.environ.update(ONE_THREAD)  # before anything imports numpy or torch
pytest_plugins = ["tests.browser", "tests.sandbox", "tests.site"]

# A busy machine is no mistake of a test.
settings.register_profile("book", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("book")


@pytest.fixture(autouse=True)
def no_run_of_the_shell(monkeypatch):
    """A test that wants a run folder, a progress file, or an engine sets its own."""
    for name in ("REGRETBOOK_RUN", "REGRETBOOK_PROGRESS", "REGRETBOOK_ENGINE"):
        monkeypatch.delenv(name, raising=False)


class Groups(LoadScopeScheduling):
    """Gives a file to one worker as a whole, so that its functions are compiled once.

    Half of the pages can go to another one. (xdist's own groups are lost on pytest 9.)
    """

    def _split_scope(self, nodeid):
        return _group(nodeid)


def pytest_xdist_make_scheduler(config, log):
    """Let workers take files in the order below, not those with the most tests first."""
    config.option.loadscopereorder = False
    return Groups(config, log)


def pytest_collection_modifyitems(items):
    """Begin with all pages: one worker builds the smoke book while the others test the rest.

    Tests of chapters come after the others, those of the built site after them and the pages of a
    reader last: by then the book has compiled most of what they run.
    """
    items.sort(key=lambda item: _turn(_group(item.nodeid)))


def _turn(group):
    if group.startswith("tests/book/"):
        return 2
    late = {"test_pages.py": 0, "test_site.py": 3, SECOND_HALF: 4, "test_reader.py": 5}
    return late.get(group.rpartition("/")[2], 1)


def _group(nodeid):
    file, _, test = nodeid.partition("::")
    name = test.partition("[")[2].removesuffix("]")
    return SECOND_HALF if file.endswith("test_pages.py") and name in SECOND_PAGES else file


def pytest_terminal_summary(terminalreporter):
    """Print what the pages of the book weigh, as the browser tests found it."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    lines = [text for each in reports for key, text in each.user_properties if key == "page"]
    if lines:
        terminalreporter.section("pages: uncompressed weight of a first visit, nodes")
        terminalreporter.write_line("\n".join(sorted(lines)))
