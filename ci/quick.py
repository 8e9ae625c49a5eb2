"""The small experiment of a chapter, which answers while a reader moves a slider.

`live.py` beside the pages of a chapter has one function, `quick`. Its arguments are the sliders,
each with a comment like those of a parameters cell; it returns a table of policy, trial and the two
columns to draw. A process that stays between two requests keeps what was compiled, and the store
keeps what was computed.
"""

import ast
import asyncio
import json
import math
import os
import sys
import time
from pathlib import Path

from ci import parameters
from ci.contents import Page
from ci.parameters import Parameter
from ci.project import environment
from lib.errors import BookError
from lib.lifetime import end_with_parent
from lib.paths import CODE, Project

FILE = "live.py"
STEPS = 20  # positions of a slider, about: few enough that the store soon has them all
LABELS = {"t": "round t", "regret": "cumulative regret"}


def file_of(project: Project, page: Page) -> Path:
    return (project.book / page.file).with_name(FILE)


def declared(project: Project, page: Page) -> dict | None:
    """Return question and sliders of a chapter's small experiment, or None when it has none."""
    path = file_of(project, page)
    if page.file.count("/") != 2 or not path.is_file():
        return None
    function = _function(path.read_text(encoding="utf-8"), path)
    return {
        "page": page.name,
        "question": " ".join((ast.get_docstring(function) or "").split()),
        "sliders": [_slider(each) for each in sliders(path).values()],
    }


def sliders(path: Path) -> dict[str, Parameter]:
    """Return the arguments of `quick`, read as the lines of a parameters cell are."""
    source = path.read_text(encoding="utf-8")
    function = _function(source, path)
    comments = parameters.comments(source)
    names = function.args.args[-len(function.args.defaults) :] if function.args.defaults else []
    lines = [
        f"{argument.arg} = {ast.unparse(default)}  # {comments.get(argument.lineno, '')}"
        for argument, default in zip(names, function.args.defaults, strict=True)
    ]
    return parameters.parse_cell("\n".join(lines), path.parent.name)


def _function(source: str, path: Path) -> ast.FunctionDef:
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == "quick":
            return node
    raise BookError(f"{path.parent.name}/{FILE} has no function quick")


def _slider(parameter: Parameter) -> dict:
    allowed = parameter.range
    if allowed is None or allowed.choices or not math.isfinite(allowed.high - allowed.low):
        raise BookError(f"slider {parameter.name} needs a range like [1, 100]")
    step = _step(allowed.high - allowed.low)
    whole = isinstance(parameter.default, int)
    return {
        "name": parameter.name,
        "meaning": parameter.meaning,
        "value": parameter.default,
        "low": int(allowed.low) if whole else allowed.low,
        "high": int(allowed.high) if whole else allowed.high,
        "step": max(1, round(step)) if whole else step,
    }


def _step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten that divides a span into about twenty steps."""
    power = 10.0 ** math.floor(math.log10(span / STEPS))
    return min((m * power for m in (1, 2, 5, 10)), key=lambda step: abs(span / step - STEPS))


class Worker:
    """The process that draws; it starts with the first request and again after it died."""

    def __init__(self, project: Project):
        self.project = project
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def draw(self, page: Page, texts: dict) -> dict:
        """Return the figure of some values and how long it took, or the sentence that refuses."""
        path = file_of(self.project, page)
        known = sliders(path)
        values = {
            name: parameters.check(known[name], str(text), page.chapter)
            for name, text in texts.items()
        }
        async with self._turn:
            process = await self._started()
            request = {"file": str(path), "values": values}
            process.stdin.write(json.dumps(request).encode() + b"\n")
            await process.stdin.drain()
            answer = await process.stdout.readline()
        if not answer:
            raise BookError("the process that draws has ended; move the slider again")
        return json.loads(answer)

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "ci.quick"),
                env={**os.environ, **environment(self.project)},
                cwd=CODE,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=2**24,  # a figure is one long line
            )
        return self._process

    async def end(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


def draw(path: Path, values: dict) -> dict:
    """Compute a small experiment and draw it."""
    from lib import figures, program

    start = time.perf_counter()
    source = path.read_text(encoding="utf-8")
    module = program.load_page(f"{path.parent.name}-live", source)
    table = module.quick(**values)
    _, _, x, y = table.columns
    computed = time.perf_counter() - start
    fig, ax = figures.grid()
    names = [name for name in table["policy"].unique() if name.split(" (")[0] not in figures.STYLES]
    styles = {name: figures.series(index) for index, name in enumerate(names)}
    figures.curves(ax, table, x, y, styles=styles)
    labels = LABELS | getattr(module, "LABELS", {})
    ax.set(xlabel=labels.get(x, x), ylabel=labels.get(y, y))
    ax.set_ylim(bottom=0)
    if table[x].min() > 0 and table[x].max() > 200 * table[x].min():
        ax.set_xscale("log")
    ends = table[table[x] == table[x].max()].groupby("policy", sort=False)[y].mean()
    words = ", ".join(f"{name} {_number(value)}" for name, value in ends.items())
    ending = f"{labels.get(y, y).capitalize()} at the end: {words}."
    said = figures.band_text(table["trial"].nunique())
    return {
        "figure": figures.html(fig, "fig-quick", f"{said[0].upper()}{said[1:]}. {ending}", ending),
        "seconds": round(computed, 2),
    }


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main() -> None:
    """Answer requests, a line each, until nobody asks any more."""
    end_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the experiment prints is no answer
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = draw(Path(asked["file"]), asked["values"])
        except BookError as error:
            answer = {"error": str(error)}
        except Exception as error:  # of the experiment; the next values may be better ones
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
