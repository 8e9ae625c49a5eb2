"""What folded cells are called."""

import pytest

from ci import folds


def output(markup="", **data):
    return {"output_type": "display_data", "data": {"text/html": markup, **data}}


FIGURE = output('<figure id="fig-a" class="rb-figure"><svg viewBox="0 0 4 3"')


@pytest.mark.parametrize(
    ("source", "outputs", "prompt", "title"),
    [
        ("x = 1", [], "Show RCLUMB, fast", "RCLUMB, fast"),
        ("x = 1", [], "Show the sweeps", "The sweeps"),
        ("import os\nx = 1", [], "", "Imports"),
        ("def f():\n    pass\n\n\nclass G:\n    pass", [], "", "f and G"),
        ("draw()", [FIGURE, output('<div class="rb-check">')], "", "The figure and the verdict"),
        ("def f():\n    pass", [FIGURE], "", "The figure: f"),
        ("Markdown()", [{"data": {"text/markdown": "a"}}], "", "The words"),
        ("runs = 1\nmore()", [], "", "runs"),
        ("more()", [], "", "Code"),
    ],
)
def test_a_folded_cell_has_a_name(source, outputs, prompt, title):
    assert folds.title(source, outputs, prompt) == title
