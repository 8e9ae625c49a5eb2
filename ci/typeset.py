"""How Sphinx writes formulas, as MathML that needs no script, and the heads of folded cells."""

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from lib.errors import BookError
from lib.maths import aligned, inline, mathml

log = logging.getLogger(__name__)


def visit_inline(writer, node: nodes.math) -> None:
    """Write a formula of a sentence."""
    writer.body.append(typeset(node, inline, node.astext()))
    raise nodes.SkipNode


def visit_display(writer, node: nodes.math_block) -> None:
    """Write a formula of its own, and its number beside the box in which it scrolls."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    formula = node.astext() if node["nowrap"] else aligned(node.astext())
    writer.body.append(f'<div class="rb-formula">{typeset(node, mathml, formula, True)}</div>')
    if node["number"]:
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def typeset(node: nodes.Element, how, *arguments) -> str:
    """Return a formula as HTML; one that cannot be typeset is a warning with its place."""
    try:
        return how(*arguments)
    except BookError as error:
        log.warning("%s", error, location=node)
        return ""


def visit_fold(writer, node: HideCodeCellNode) -> None:
    """Write the head of a folded cell: its name and its length."""
    count = len(node.astext().strip().splitlines())
    length = f"{count} line{'s' * (count != 1)}"
    writer.body.append(
        f'<details class="rb-code"><summary>{writer.encode(node["prompt_show"])}'
        f'<span class="rb-length">{length}</span></summary>\n'
    )


def depart_fold(writer, _) -> None:
    """Close a folded cell."""
    writer.body.append("</details>\n")


def setup(app) -> dict:
    """Register the writers; the setting `html_math_renderer` chooses that of formulas."""
    app.setup_extension("myst_nb")
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_fold))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
