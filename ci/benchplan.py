"""What `regretbook plan` expects of pages, beside what their recorded runs took."""

import os
import tempfile

import pandas as pd

from ci import contents
from ci.plan import rehearsed
from lib import records, results
from lib.paths import Project


def compare(project: Project, longest: float = 600.0) -> pd.DataFrame:
    """Return planned and recorded seconds of pages whose recorded runs took at most `longest`.

    The plan starts from an empty store. It counts all that a page computes, not only what is kept.
    """
    taken = {}
    for record in records.every(project).values():
        kept = [t.seconds for t in record.tables.values() if t.origin.profile == results.PRINTED]
        if kept and None not in kept and 0 < sum(kept) <= longest:
            taken[f"{record.chapter}/{record.page}"] = sum(kept)
    pages = [p for p in contents.discover(project).values() if p.place in taken]
    before, rows = os.environ.get("REGRETBOOK_STORE"), []
    with tempfile.TemporaryDirectory(prefix="regretbook-") as store:
        os.environ["REGRETBOOK_STORE"] = store
        try:
            for page, found, failure in rehearsed(project, results.PRINTED, pages):
                if failure is None and not any(planned.more for planned in found):
                    seconds = sum(planned.seconds for planned in found)
                    rows.append((page.name, seconds, taken[page.place]))
        finally:
            del os.environ["REGRETBOOK_STORE"]
            if before is not None:
                os.environ["REGRETBOOK_STORE"] = before
    return pd.DataFrame(rows, columns=["page", "planned", "recorded"])
