"""Where things are: every folder of the project, named once."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIB = ROOT / "lib"
BOOK = ROOT / "book"
DATA = ROOT / "data"
RESULTS = ROOT / "results"
BUILD = ROOT / "_build"
CACHE = ROOT / ".cache"
