"""Formulas as MathML: browsers typeset it themselves, without a script, and screen readers read it.

math-core knows LaTeX; `book/_static/fonts` has the font, and the style sheet asks for it.
"""

import html
import re

from math_core import LatexError, LatexToMathML

from lib.errors import BookError

# "Unreliable" are wide accents, which older browsers may draw too short; they stay readable.
_converter = LatexToMathML(fancy_error=False, allow_unreliable_rendering=True)
_TOKENS = re.compile(r"\\\\|\\begin|\\end|(?<!\\)&")


def mathml(tex: str, display: bool = False) -> str:
    """Return a formula as a `math` element; `display` gives it the large form."""
    try:
        # a backslash before a line break is a space to TeX
        return _converter.convert_with_local_state(
            tex.replace("\\\n", "\\ \n"), displaystyle=display
        )
    except LatexError as error:
        raise BookError(f"the formula {tex!r} cannot be typeset: {error}") from None


def aligned(tex: str) -> str:
    r"""Return a formula as Sphinx means it: an empty line or `\\` begins a line, `&` aligns."""
    text = r"\\".join(part.strip() for part in tex.split("\n\n") if part.strip())
    depth, several = 0, False
    for token in _TOKENS.findall(text):
        depth += token.startswith(r"\begin") - token.startswith(r"\end")
        several |= depth == 0 and token in (r"\\", "&")
    return rf"\begin{{aligned}}{text}\end{{aligned}}" if several else text


def inline(tex: str) -> str:
    """Return a formula of a sentence, in the box that may scroll where it is wider than a phone."""
    return f'<span class="math">{mathml(tex)}</span>'


def sentence(text: str) -> str:
    """Escape a text for HTML and typeset its `$maths$`."""
    parts = re.split(r"\$([^$]+)\$", text)
    return "".join(
        inline(part) if i % 2 else html.escape(part, quote=False) for i, part in enumerate(parts)
    )
