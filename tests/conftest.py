"""What every test relies on: no display, and no setting of the caller's shell."""

import os

import pytest
from hypothesis import HealthCheck, settings

os.environ["MPLBACKEND"] = "Agg"
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


def pytest_collection_modifyitems(items):
    """Begin with all pages: one worker builds the smoke book while the others test the rest.

    The rest of the site needs the built book, so it comes late. The pages of a reader come last: by
    then the book has compiled most of what they run.
    """
    order = {"test_pages.py": 0, "test_site.py": 2, "test_reader.py": 3}
    items.sort(key=lambda item: order.get(item.path.name, 1))


def pytest_terminal_summary(terminalreporter):
    """Print what the pages of the book weigh, as the browser tests found it."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    lines = [text for each in reports for key, text in each.user_properties if key == "page"]
    if lines:
        terminalreporter.section("pages: uncompressed weight of a first visit, nodes")
        terminalreporter.write_line("\n".join(sorted(lines)))
