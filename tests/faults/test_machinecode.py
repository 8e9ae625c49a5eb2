"""Damaged machine code is compiled again; a notebook's is never taken from disk."""

import random
import subprocess
import sys

import pytest

from lib.kernels import compile_whole
from lib.paths import CODE

SOURCE = """from lib.kernels import compile_whole


@compile_whole
def area(n):
    total = 0.0
    for i in range(n):
        total += 0.5 * i
    return total
"""
ASK = """import sys
sys.path[:0] = {paths}
import area
print(area.area(10), sum(area.area.stats.cache_hits.values()))
"""


@pytest.fixture
def area(tmp_path):
    """Return a function that asks a fresh process for the area, and the folder of machine code."""
    (tmp_path / "area.py").write_text(SOURCE)
    command = [sys.executable, "-c", ASK.format(paths=[str(tmp_path), str(CODE)])]

    def ask():
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        number, hits = done.stdout.split()
        return float(number), hits == "1"

    return ask, tmp_path / "__pycache__"


def test_sound_code_is_taken_from_disk_and_damaged_code_is_not(area):
    ask, folder = area
    assert ask() == (22.5, False)
    assert ask() == (22.5, True)
    rng = random.Random(1)
    for suffix in ("nbi", "nbc", "nbc"):
        (path,) = folder.glob(f"*.{suffix}")
        content = bytearray(path.read_bytes())
        content[rng.randrange(60, len(content))] ^= 1 + rng.randrange(255)
        path.write_bytes(content)
        assert ask() == (22.5, False), "damaged code must not be used"
        assert ask() == (22.5, True), "and is mended"
    path.write_bytes(b"")
    assert ask() == (22.5, False)


def test_a_function_of_a_notebook_keeps_nothing_on_disk():
    def inner(x):
        return 2 * x

    inner.__module__ = "__main__"
    assert type(compile_whole(inner)._cache).__name__ == "NullCache"
