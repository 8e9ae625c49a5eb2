"""The small experiments of the chapters: their sliders fit, and what they return can be drawn."""

import json
import os
import subprocess
import sys

import pytest

from ci import contents, quick
from lib import toc
from lib.paths import CODE, project_at

PROJECT = project_at(CODE)
PAGES = contents.discover(PROJECT)
CHAPTERS = toc.chapters(PROJECT)

# Without machine code, which would take minutes to compile, and with next to no rounds.
SCRIPT = """
import json, sys
from pathlib import Path
import numba

def plain(function=None, **_):
    if function is None:
        return plain
    function.py_func = function
    return function

numba.njit = plain
from lib import machinecode
machinecode.sealed = plain
machinecode.two_doors = lambda dispatcher, inside: dispatcher
from lib import simulate

def small(function):
    def run(*arguments, settings, **options):
        few = {"K": 12, "variance": 1.2}
        settings = [{k: few.get(k, v) for k, v in each.items()} for each in settings[:1]]
        options |= {"trials": 2} | ({"T": 12} if "T" in options else {})
        return function(*arguments, settings=settings, **options)
    return run

simulate.simulate, simulate.repeat = small(simulate.simulate), small(simulate.repeat)
from ci import quick
for path in map(Path, sys.argv[1:]):
    values = {name: each.default for name, each in quick.sliders(path).items()}
    print(json.dumps(quick.draw(path, values)))
"""


def declared(chapter):
    return quick.declared(PROJECT, PAGES[f"{chapter}/index"])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_has_one_and_its_sliders_begin_where_they_can_stand(chapter):
    found = declared(chapter)
    assert found["question"].endswith(".")
    assert 2 <= len(found["sliders"]) <= 3
    for slider in found["sliders"]:
        for end in ("value", "high"):
            steps = (slider[end] - slider["low"]) / slider["step"]
            assert abs(steps - round(steps)) < 1e-9, slider
        assert slider["meaning"]


def test_all_of_them_are_drawn(tmp_path):
    paths = [quick.file_of(PROJECT, PAGES[f"{chapter}/index"]) for chapter in CHAPTERS]
    environment = {"NUMBA_DISABLE_JIT": "1", "REGRETBOOK_STORE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, paths)],
        env={**os.environ, **environment, "PYTHONPATH": str(CODE)},
        cwd=CODE,
        capture_output=True,
        text=True,
    )
    drawn = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(drawn) == len(CHAPTERS), done.stderr[-2000:]
    for each in drawn:
        assert "Mean of 2 trials" in each["figure"]
        assert " nan" not in each["figure"]
        assert "<svg" in each["figure"]
