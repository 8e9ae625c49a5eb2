"""What every test relies on: no display, and no setting of the caller's shell."""

import os

import pytest
from hypothesis import HealthCheck, settings

os.environ["MPLBACKEND"] = "Agg"
pytest_plugins = ["tests.sandbox"]

# A busy machine is no mistake of a test.
settings.register_profile("book", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("book")


@pytest.fixture(autouse=True)
def no_run_of_the_shell(monkeypatch):
    """A test that wants a run folder, a progress file, or an engine sets its own."""
    for name in ("REGRETBOOK_RUN", "REGRETBOOK_PROGRESS", "REGRETBOOK_ENGINE"):
        monkeypatch.delenv(name, raising=False)


def pytest_collection_modifyitems(items):
    """Begin with the site: one worker builds the smoke book while the others test the rest."""
    items.sort(key=lambda item: item.path.name != "test_site.py")
