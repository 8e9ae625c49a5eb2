"""What every test relies on: no display, and no setting of the caller's shell."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ci.project import ONE_THREAD

HERE = Path(__file__).parent
SECOND_HALF = "every second page"
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


def pytest_configure(config):
    """Let workers take files in the order below, not those with the most tests first."""
    config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    """Begin with all pages: one worker builds the smoke book while the others test the rest.

    A file stays with one worker, but half of the pages can go to another one. They and the rest of
    the site need the built book, so they come late. The pages of a reader come last: by then the
    book has compiled most of what they run.
    """
    order = {"test_pages.py": 0, "test_site.py": 2, SECOND_HALF: 3, "test_reader.py": 4}
    groups = {item: _group(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: order.get(groups[item].rpartition("/")[2], 1))


def _group(item):
    name = getattr(item, "callspec", None) and item.callspec.params.get("name")
    if item.path.name == "test_pages.py" and name in item.module.PAGES[1::2]:
        return SECOND_HALF
    return item.path.relative_to(HERE).as_posix()


def pytest_terminal_summary(terminalreporter):
    """Print what the pages of the book weigh, as the browser tests found it."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    lines = [text for each in reports for key, text in each.user_properties if key == "page"]
    if lines:
        terminalreporter.section("pages: uncompressed weight of a first visit, nodes")
        terminalreporter.write_line("\n".join(sorted(lines)))
