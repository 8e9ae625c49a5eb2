"""A reader's own policy, from a file of the reader's, in the comparisons that a page opens to it.

`regretbook run PAGE --policy mine.py:MINE` tells it to the kernel as `REGRETBOOK_POLICY`. Its text
counts for what is stored as that of any other policy does.
"""

import os
import re
import sys
from pathlib import Path
from types import ModuleType

from lib.errors import BookError, nearest


def names() -> list[str]:
    """Return what the reader's policy is called in tables and figures; none where there is none."""
    given = os.environ.get("REGRETBOOK_POLICY", "")
    return [given.rpartition(":")[2]] if given else []


def added(policies: dict) -> dict:
    """Return the policies of a comparison and, below them, the reader's."""
    for name in names():
        if name in policies:
            raise BookError(f"there is a policy {name!r} here already: give yours another name")
    guests = {name: load(os.environ["REGRETBOOK_POLICY"]) for name in names()}
    return {**policies, **guests}


def load(given: str):
    """Return the policy that `mine.py:MINE` names, or say what is wrong with it."""
    from lib.simulate import Policy

    file, colon, name = given.rpartition(":")
    path = Path(file)
    if not colon or path.suffix != ".py" or not name.isidentifier():
        raise BookError(f"--policy takes a file and a name, as in mine.py:MINE, not {given!r}")
    if not path.is_file():
        raise BookError(f"there is no file {file}")
    found = vars(_module(path))
    if name not in found:
        known = [key for key, value in found.items() if isinstance(value, Policy)]
        raise BookError(f"{path.name} has no {name!r}{nearest(name, known)}")
    if not isinstance(found[name], Policy):
        raise BookError(
            f"{name} of {path.name} is a {type(found[name]).__name__}, not a lib.simulate.Policy"
        )
    return found[name]


def _module(path: Path) -> ModuleType:
    """Return a reader's file as a module, under a name that no installed package has.

    Its text is executed, not bytecode that a clock may believe to be of this text.
    """
    name = "guest_" + re.sub(r"\W", "_", path.stem)
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = str(path.resolve())
    try:
        exec(compile(path.read_bytes(), module.__file__, "exec"), vars(module))
    except Exception as error:
        del sys.modules[name]
        raise BookError(f"{path.name} fails with {type(error).__name__}: {error}") from error
    return module
