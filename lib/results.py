"""Tables of a run: written beside the notebook, read from `results/` where data is absent."""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import pandas as pd

from lib import datasets, journal
from lib.errors import BookError
from lib.files import write_atomically
from lib.paths import project


class Experiment(NamedTuple):
    """A table and where it came from: live, recorded, or missing."""

    table: pd.DataFrame | None
    source: str
    note: str  # one sentence for the caption; empty for a live run


def save(name: str, table: pd.DataFrame, caption: str, source: str = "live") -> pd.DataFrame:
    """Write a table into the folder of the run, for download and for `regretbook record`."""
    content = table.to_csv(index=False, float_format="%.10g").encode()
    run = journal.folder()
    if run is not None:
        file = f"tables/{name}.csv"
        write_atomically(run / file, content)
        sha256 = hashlib.sha256(content).hexdigest()
        journal.note(journal.Table(name, file, sha256, caption, source))
    return table


def experiment(
    chapter: str, name: str, caption: str, needs: list[str], run: Callable[[], pd.DataFrame]
) -> Experiment:
    """Run an experiment on real data, or show the recorded run where a dataset is absent."""
    absent = [dataset for dataset in needs if datasets.find(dataset) is None]
    for dataset in absent:
        journal.note(journal.Data(dataset, None, "absent"))
    if not absent:
        return Experiment(save(name, run(), caption), "live", "")
    where = f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not on this machine"
    recorded = project().results / chapter / f"{name}.csv"
    if recorded.exists():
        table = save(name, _read(recorded), caption, source="recorded")
        return Experiment(table, "recorded", f"Recorded run: {where}.")
    how = " && ".join(f"regretbook data fetch {dataset}" for dataset in absent)
    return Experiment(None, "missing", f"{where} and no run is recorded; get it with: {how}")


def _read(path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise BookError(f"The recorded table {path.name} is damaged: {error}.") from error
