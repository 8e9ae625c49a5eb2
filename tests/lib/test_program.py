"""The text of a task: complete, free of comments, changed exactly when its code changes."""

import importlib
import linecache
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from lib import chapters, program, provenance, simulate, toc
from lib.errors import BookError
from lib.kernels import dot, jit
from lib.paths import CODE, project

SCALE = 3.0
TABLE = np.arange(4)
FAR = float("inf")
SIZES = (1, (2.5, "a"), np.float64(0.25))


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_ROOT", str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a reader's module and import it afresh."""
    monkeypatch.syspath_prepend(tmp_path)

    def written(name, source):
        file = tmp_path / f"{name.replace('.', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)
        shutil.rmtree(file.parent / "__pycache__", ignore_errors=True)
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    return written


def helper(x):
    return SCALE * x


@jit
def compiled(x):
    return dot(x, x) + 1.0


def entry(x, weight=SCALE):
    return helper(compiled(x)) + weight


def reads_array(x):
    return TABLE[x]


def reads_constants():
    return FAR, SIZES


def test_a_program_holds_everything_it_needs():
    text = program.text({"run": entry})
    module = program.load(text)
    x = np.array([1.0, 2.0])
    assert module.run(x) == entry(x) == 3 * 6 + 3
    assert module.__name__.endswith(program.digest(text)[:20])
    assert program.load(text) is module


def test_constants_keep_their_values():
    module = program.load(program.text({"run": reads_constants}))
    assert module.run() == (np.inf, (1, (2.5, "a"), 0.25))


def test_defaults_are_those_the_function_has(write):
    """Here, as in the next cell of a notebook, the name means something else by now."""
    source = "n = 5\n\n\ndef run(a, b=n, *, c, d=2 * n):\n    return a, b, c, d\n\n\nn = 7\n"
    mine = write("mine", source)
    module = program.load(program.text({"run": mine.run}))
    assert module.run(1, c=3) == mine.run(1, c=3) == (1, 5, 3, 10)


def test_heading_names_only_the_parts_of_lib_that_are_imported():
    text = program.text({"run": compiled})
    assert "# lib/kernels.py" in text
    assert "# lib/figures.py" not in text


def test_a_global_array_is_refused_with_its_name():
    with pytest.raises(BookError, match="global 'TABLE'"):
        program.text({"run": reads_array})


class Point(NamedTuple):
    """A field with the name of a global array, which is no use of that array."""

    TABLE: float


def shadows(x):
    return [TABLE for TABLE in (x, SCALE)] + [(lambda SCALE: SCALE)(x)]


def test_a_field_or_a_local_variable_is_not_a_global():
    assert program.load(program.text({"Point": Point})).Point(1.0).TABLE == 1.0
    assert program.load(program.text({"run": shadows})).run(1.0) == [1.0, 3.0, 1.0]


def test_a_class_of_a_notebook_is_found_in_its_cells(monkeypatch):
    main = sys.modules["__main__"]
    cells = ["class Pair:\n    a = 1", "%magic", "class Pair:\n    a = 2  # the last one counts"]
    monkeypatch.setattr(main, "In", cells, raising=False)
    pair = type("Pair", (), {"__module__": "__main__", "a": 2})
    assert "class Pair:\n    a = 2\n" in program.text({"Pair": pair})
    with pytest.raises(BookError, match="source of 'Lost' is not where it was"):
        program.text({"Lost": type("Lost", (), {"__module__": "__main__"})})


@pytest.mark.parametrize("place", ["linear-bandits/index", "linear-bandits/experiments"])
def test_a_page_has_one_name_where_it_runs_and_where_it_is_loaded(place, monkeypatch):
    """What two pages of a chapter run is one text, so that it is compiled and computed once."""
    monkeypatch.setenv("REGRETBOOK_ROOT", str(CODE))
    monkeypatch.setenv("REGRETBOOK_PAGE", place)
    package = program._Package({}, {}, {}, {})
    loaded = program._file(chapters.load(place.removesuffix("/index")).__name__, package)
    other = program._Package({}, {}, {}, {})
    assert program._file("__main__", other) == loaded == place.replace("-", "_").replace("/", "_")


MINE = '''\
"""What the reader measures."""

import numpy as np

import theirs
from theirs import shift as moved

FACTOR = 2
UNUSED = np.arange(3)


def measure(rng):
    """Return a number."""
    return {"value": inner(FACTOR)}


def inner(x):
    return theirs.scale(x) + moved(x)


def unrelated():
    return 1
'''
THEIRS = "def scale(x):\n    return 10 * x\n\n\ndef shift(x):\n    return x + 1\n"


@pytest.fixture
def mine(write):
    """Return the text of a task that uses two modules of the reader, given their sources."""

    def text_of(mine=MINE, theirs=THEIRS):
        write("theirs", theirs)
        return program.text({"run": write("mine", mine).measure})

    return text_of


def test_modules_of_the_reader_are_part_of_the_program(mine):
    base = mine()
    assert program.load(base).run(None) == {"value": 23}
    for changed in (
        mine(MINE.replace("FACTOR = 2", "FACTOR = 3")),
        mine(MINE.replace("theirs.scale(x) +", "theirs.scale(x) -")),
        mine(theirs=THEIRS.replace("10 * x", "20 * x")),
        mine(theirs=THEIRS.replace("x + 1", "x + 2")),
    ):
        assert changed != base
        assert program.load(changed).run(None) != {"value": 23}
    assert program.load(base).run(None) == {"value": 23}


def test_what_a_task_does_not_use_is_not_part_of_it(mine):
    base = mine()
    assert mine(MINE.replace("return 1", "return 2").replace("arange(3)", "arange(4)")) == base
    assert mine(MINE.replace("Return a number.", "Return the number.")) == base
    assert mine(MINE.replace("    return {", "    # why\n    return {")) == base
    assert mine(theirs=THEIRS + "\n\ndef other():\n    return 0\n") == base


def test_a_program_runs_where_no_module_of_the_reader_is(mine, tmp_path):
    text = mine()
    (tmp_path / "mine.py").unlink()
    (tmp_path / "theirs.py").unlink()
    script = "import sys; from lib import program\nprint(program.load(sys.stdin.read()).run(None))"
    environment = {**os.environ, "PYTHONPATH": str(CODE)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=text,
        env=environment,
        cwd=CODE,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "{'value': 23}\n", done.stderr


def test_installed_packages_are_imported_by_name(write):
    source = "import textwrap\n\nimport yaml\nfrom numpy import sqrt as root\n\n\n"
    source += "def run():\n    return root(4.0), yaml.safe_load('1'), textwrap.dedent(' a')\n"
    text = program.text({"run": write("mine", source).run})
    assert "import yaml as yaml" in text
    assert "def dedent" not in text
    assert program.load(text).run() == (2.0, 1, "a")


def test_functions_of_one_name_live_in_different_modules(write):
    first = write("first", "def same():\n    return 1\n").same
    second = write("second", "def same():\n    return 2\n").same
    module = program.load(program.text({"a": first, "b": second}))
    assert (module.a(), module.b()) == (1, 2)


def test_two_versions_of_one_function_are_refused(write):
    old = write("first", "def same():\n    return 1\n").same
    linecache.clearcache()
    program.text({"a": old})
    new = write("first", "def same():\n    return 2\n").same
    with pytest.raises(BookError, match="Two different things are called 'same'"):
        program.text({"a": old, "b": new})


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("import theirs\n\n\ndef run():\n    return vars(theirs)\n", "module 'theirs' as a value"),
        ("def run():\n    import theirs\n\n    return theirs.f()\n", "imports theirs only when"),
        (
            "def run():\n    from lib import chapters\n\n    return chapters.load('x')\n",
            "imports lib.chapters only when",
        ),
        ("def make(k):\n    def f():\n        return k\n    return f\n\n\nrun = make(1)\n", "made"),
        ("run = lambda: 1\n", "made"),
        ("from functools import partial\n\nrun = partial(int, 1)\n", "global 'run'"),
        ("from lib.kernels import jit\n\n\ndef f():\n    return 1\n\n\nrun = jit(f)\n", "above"),
        ("import theirs\n\n\ndef run():\n    return theirs.g()\n\n\ndef h():\n    pass\n", "join"),
    ],
)
def test_what_cannot_be_stored_by_its_code_is_refused(write, source, sentence):
    theirs = "def f():\n    return 1\n\n\ndef g():\n    return mine.h()\n"
    write("theirs", theirs)
    module = write("mine", source)
    sys.modules["theirs"].mine = module
    with pytest.raises(BookError, match=sentence) as refused:
        program.text({"run": module.run})
    assert "\n" not in str(refused.value)


def test_a_loop_calls_functions_by_the_names_they_are_given(write):
    loops = write(
        "loops",
        "def choose():\n    return 'home'\n\n\ndef other():\n    return 'other'\n\n\n"
        "def rounds():\n    return choose(), other()\n",
    )
    given = write("given", "def pick():\n    return 'given'\n")
    module = program.load(program.text({"choose": given.pick}, loop=loops.rounds))
    assert module.rounds() == ("given", "other")


def test_files_that_were_damaged_or_edited_are_written_again():
    text = program.text({"run": helper})
    files = [Path(sys.modules[program.load(text).run.__module__].__file__)]
    files.append(Path(program.load(text).__file__))
    assert len(set(files)) == 2
    contents = [file.read_bytes() for file in files]
    for file in files:
        file.write_text("def helper(x):\n    return 0\n\n\nrun = helper\n")
    for name in [name for name in sys.modules if program.digest(text)[:20] in name]:
        del sys.modules[name]
    assert program.load(text).run(2.0) == 6.0
    assert [file.read_bytes() for file in files] == contents


def test_a_page_file_is_checked_too():
    source = "def area(r):\n    return 2 * r\n"
    name = f"regretbook_page_test_{program.digest(source)[:20]}"
    file = project().cache / "pages" / f"{name}.py"
    file.parent.mkdir(parents=True)
    file.write_text("def area(r):\n    return 0\n")
    page = program.load_page("test", source)
    assert page.__name__ == name
    assert page.area(1) == 2
    assert file.read_text() == source
    file.write_text("def area(r):\n    return 0\n")  # an editor's; what was executed counts
    assert program.load(program.text({"run": page.area})).run(1) == 2


def test_a_program_that_fails_can_be_loaded_again(monkeypatch):
    text = program.text({"run": helper}, "import os\n\nos.environ['REGRETBOOK_TEST_SET']")
    for _ in range(2):
        with pytest.raises(KeyError):
            program.load(text)
    monkeypatch.setenv("REGRETBOOK_TEST_SET", "1")
    assert program.load(text).run(1.0) == 3.0


def test_a_process_with_other_packages_or_another_lib_refuses_a_program(monkeypatch):
    text = program.text({"run": compiled})
    kernels = provenance._LIB["kernels"]
    for old, new in [("numpy ", "numpy 0."), ("lib/kernels.py ", "lib/kernels.py 0")]:
        with pytest.raises(BookError, match=f"made with .*{new}"):
            program.load(text.replace(old, new, 1))
    monkeypatch.setitem(provenance._LIB, "kernels", kernels + "\n# a comment\n")
    assert program.text({"run": compiled}) == text
    monkeypatch.setitem(provenance._LIB, "kernels", kernels + "\nTIE = 0.0\n")
    with pytest.raises(BookError, match=r"lib/kernels.py has changed since"):
        program.text({"run": compiled})


KEYS = """\
import numpy as np
from lib import program, simulate
from lib.kernels import jit

def make(rng): return 1
@jit
def f(a, b): return a
def init(problem, T, rng): return 1

environment = simulate.Environment(make, f, f, f)
for policy in (simulate.Policy(init, f, f), simulate.Policy(init, f.py_func, f.py_func)):
    print(program.digest(simulate.program_of(environment, policy)))
print(program.digest(program.text({"_repeated": make}, simulate._REPEAT)))
"""


def test_only_code_of_lib_that_can_change_a_number_changes_keys(tmp_path):
    """A progress bar, a figure, a comment or a docstring of `lib` is in no key; a kernel is."""
    copy = tmp_path / "copy"
    shutil.copytree(CODE / "lib", copy / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "keys.py").write_text(KEYS)

    def keys():
        environment = {**os.environ, "PYTHONPATH": str(copy), "REGRETBOOK_ROOT": str(copy)}
        command = [sys.executable, "-B", copy / "keys.py"]
        done = subprocess.run(command, env=environment, cwd=copy, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    base = keys()
    assert len(base) == 3
    for name in ("progress", "figures", "engine", "simulate", "store", "program"):
        path = copy / "lib" / f"{name}.py"
        path.write_text(path.read_text() + "\n\nADDED = 1\n")
    for name in ("kernels", "trial"):
        path = copy / "lib" / f"{name}.py"
        path.write_text(
            '"""Another docstring."""\n# comment\n' + path.read_text().split('"""', 2)[2]
        )
    assert keys() == base
    path = copy / "lib" / "kernels.py"
    path.write_text(path.read_text() + "\nADDED = 1\n")
    changed = keys()
    assert [a == b for a, b in zip(base, changed, strict=True)] == [False, False, True]


PLUMBING = {
    *("claims", "datasets", "definitions", "engine", "figures", "journal", "paths", "program"),
    *("progress", "provenance", "results", "simulate", "store"),
}


def methods(page):
    """Return the environments and the policies that a page defines, of whatever type."""
    tuples = [v for v in vars(page).values() if isinstance(v, tuple) and hasattr(v, "_asdict")]
    return (
        [value for value in tuples if "make" in value._fields],
        [value for value in tuples if "choose" in value._fields],
    )


def test_no_program_of_the_book_depends_on_plumbing(monkeypatch):
    monkeypatch.delenv("REGRETBOOK_ROOT")
    texts = [
        simulate.program_of(environment, policy)
        for page in map(chapters.load, (entry.name for entry in toc.entries()))
        for environment in methods(page)[0]
        for policy in methods(page)[1]
    ]
    assert len(texts) > 20
    parts = set(re.findall(r"^# lib/(\w+)\.py", "".join(texts), re.MULTILINE))
    assert {"kernels", "trial"} <= parts
    assert not parts & PLUMBING
