"""Formulas become MathML, and one that cannot says so."""

import pytest

from lib import maths
from lib.errors import BookError


def test_a_formula_is_mathml():
    assert maths.mathml(r"\theta_t") == "<math><msub><mi>θ</mi><mi>t</mi></msub></math>"
    assert maths.mathml("x", display=True).startswith('<math display="block">')


def test_a_backslash_at_the_end_of_a_line_is_a_space():
    assert maths.mathml("a,\\\nb") == maths.mathml("a,\\ b")


def test_text_is_escaped_and_its_formulas_are_typeset():
    assert maths.sentence("1 < 2 & $x<y$") == (
        '1 &lt; 2 &amp; <span class="math"><math><mi>x</mi><mo>&lt;</mo><mi>y</mi></math></span>'
    )


def test_an_unknown_command_is_refused_in_one_sentence():
    with pytest.raises(BookError, match=r"cannot be typeset: .*nonsense"):
        maths.mathml(r"\nonsense x")


@pytest.mark.parametrize(
    ("tex", "aligned"),
    [
        (r"a = b", False),
        (r"a &= b \\ c &= d", True),
        (r"\begin{cases} a \\ b \end{cases}", False),
        ("a = b\n\nc = d", True),
    ],
)
def test_only_lines_of_its_own_align_a_formula(tex, aligned):
    assert maths.aligned(tex).startswith(r"\begin{aligned}") == aligned
