"""The Markdown of a page as HTML that needs nothing else: formulas as MathML, references as text.

Sphinx takes many seconds and the whole book for this. A report is made in one, from its own page
alone, so what stands on other pages is named and not linked.
"""

import functools
import html
import re
from typing import NamedTuple

from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

from lib import maths
from lib.errors import BookError

DIRECTIVE = re.compile(r"\{([\w:-]+)\}\s*(.*)")
OPTION = re.compile(r":([\w-]+):\s*(.*)")
NUMBERED = re.compile(
    r"^ *[`:]{3,}\{(math|exercise|prf:\w+)\}[ \t]*(.*)\n(?: *:[\w-]+:.*\n)*? *:label: *(\S+)", re.M
)
LABEL = re.compile(r"\\label\{[^}]*\}")


class Labels(NamedTuple):
    """What labels stand for: numbers of equations and titles here, words for what is elsewhere."""

    equations: dict[str, str]
    titles: dict[str, str]
    elsewhere: dict[str, str]


def labels(text: str, others: dict[str, str] | None = None) -> Labels:
    """Number what a page labels, in the order in which it stands there; `others` have a title."""
    found, counts = Labels({}, {}, {}), {}
    for page, other in (others or {}).items():
        for kind, title, label in NUMBERED.findall(other):
            plain = "equation" if kind == "math" else kind.removeprefix("prf:")
            found.elsewhere[label] = f"{title.strip() or plain} ({page})"
    for kind, title, label in NUMBERED.findall(text):
        counts[kind] = counts.get(kind, 0) + 1
        if kind == "math":
            found.equations[label] = str(counts[kind])
        else:
            name = f"{kind.removeprefix('prf:').capitalize()} {counts[kind]}"
            found.titles[label] = f"{name} ({title})" if title else name
    for label, title in re.findall(r"^\(([\w-]+)\)=\n+#+ +(.+)$", text, re.M):
        found.titles[label] = title
    return found


def as_html(text: str, known: Labels) -> str:
    """Return a text of a page as HTML."""
    return _parser().render(text, {"labels": known})


def formula(tex: str, block: bool = False) -> str:
    """Return a formula as MathML, or as its own text where it cannot be translated."""
    tex = LABEL.sub("", tex).strip()
    try:
        return maths.mathml(maths.aligned(tex) if block else tex, display=block)
    except BookError:  # TeX is still readable
        return f'<code class="tex">{html.escape(tex)}</code>'


@functools.cache
def highlighter():
    """Return lexer and formatter of code cells."""
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return PythonLexer(), HtmlFormatter(nowrap=True)


def code(source: str) -> str:
    """Return Python with its parts marked for the style sheet."""
    from pygments import highlight

    return f'<pre class="code">{highlight(source, *highlighter())}</pre>'


def code_style(dark: bool) -> str:
    """Return the style sheet of `code`; both themes are made for contrast."""
    from pygments.formatters import HtmlFormatter

    style = "github-dark" if dark else "friendly"
    return HtmlFormatter(style=style).get_style_defs("pre.code")


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    parser.use(front_matter_plugin).use(myst_block_plugin).use(myst_role_plugin)
    parser.use(dollarmath_plugin, allow_space=True, double_inline=True).use(amsmath_plugin)
    rules = {
        "front_matter": lambda *_: "",
        "myst_line_comment": lambda *_: "",
        "myst_block_break": lambda *_: "",
        "myst_target": _target,
        "myst_role": _role,
        "fence": _fence,
        "html_block": _html,
        "html_inline": _html,
        "link_open": _link,
        "link_close": _link,
    }
    for name in ("math_inline", "math_inline_double", "math_block", "math_block_label", "amsmath"):
        rules[name] = functools.partial(_maths, block=name != "math_inline")
    for name, rule in rules.items():
        parser.add_render_rule(name, lambda _, *args, rule=rule: rule(*args))
    return parser


def _maths(tokens, index, options, env, block: bool) -> str:
    return _display(tokens[index].content) if block else formula(tokens[index].content)


def _display(tex: str, number: str = "") -> str:
    number = f'<span class="number">({number})</span>' if number else ""
    return f'<div class="maths"><div class="scroll">{formula(tex, True)}</div>{number}</div>\n'


def _target(tokens, index, options, env) -> str:
    return f'<a id="{html.escape(tokens[index].content)}"></a>'


def _html(tokens, index, options, env) -> str:
    """Keep markup; a comment is nothing, or a part that only the whole book can fill."""
    said = tokens[index].content
    if "<!-- generated:" in said:
        return "<p><i>What all pages of the chapter found stands in the published book.</i></p>"
    return re.sub(r"<!--.*?-->", "", said, flags=re.S)


def _link(tokens, index, options, env) -> str:
    """Keep links that lead out of the book or stay on the page; others would lead nowhere."""
    token = tokens[index]
    if token.type == "link_close":
        depth = env.setdefault("links", [])
        return "</a>" if depth.pop() else ""
    address = token.attrs.get("href", "")
    kept = address.startswith(("https://", "http://", "#"))
    env.setdefault("links", []).append(kept)
    return f'<a href="{html.escape(address)}">' if kept else ""


def _role(tokens, index, options, env) -> str:
    """Return a reference in words."""
    name, content, known = tokens[index].meta["name"], tokens[index].content, env["labels"]
    shown = re.fullmatch(r"(.*?)\s*<(.+)>", content, re.S)
    if name == "eq":
        number = known.equations.get(content)
        said = known.elsewhere.get(content, f"({content})")
        return f'<a href="#{content}">({number})</a>' if number else html.escape(said)
    if name.startswith("cite"):
        return html.escape(f"[{', '.join(map(_work, content.split(',')))}]")
    if shown:
        return html.escape(shown[1])
    if content in known.titles:
        return f'<a href="#{content}">{html.escape(known.titles[content])}</a>'
    if content in known.elsewhere:
        return html.escape(known.elsewhere[content])
    if name in ("doc", "ref", "prf:ref", "numref"):
        return f"<i>{html.escape(content.rpartition('/')[2].replace('-', ' '))}</i>"
    return f"<code>{html.escape(content)}</code>"


def _work(key: str) -> str:
    """Return `Wang 2025` for `wang2025thesis`: keys of the bibliography are made so."""
    found = re.match(r"([a-z]+)(\d{4})", key.strip())
    return f"{found[1].capitalize()} {found[2]}" if found else key.strip()


def _fence(tokens, index, options, env) -> str:
    """Return a block of code, or a directive of the page."""
    token = tokens[index]
    found = DIRECTIVE.match(token.info.strip())
    if not found:
        return f"<pre>{html.escape(token.content)}</pre>\n"
    name, title = found.groups()
    given, body = _options(token.content)
    label, known = given.get("label", ""), env["labels"]
    anchor = f' id="{html.escape(label)}"' if label else ""
    if name == "math":
        body = "\n".join(filter(None, (title, body)))
        return f"<div{anchor}>{_display(body, known.equations.get(label, ''))}</div>"
    heading = known.titles.get(label)
    if heading is None:
        heading = f"Solution of {known.titles.get(title, title)}" if name == "solution" else title
        plain = name.removeprefix("prf:").capitalize()
        heading = heading or plain
    inner = as_html(body, known)
    head = _parser().renderInline(heading, {"labels": known})
    if "dropdown" in given.get("class", "") or name == "dropdown":
        return f"<details{anchor}><summary>{head}</summary>{inner}</details>\n"
    return f'<div class="box"{anchor}><p class="head">{head}</p>{inner}</div>\n'


def _options(content: str) -> tuple[dict[str, str], str]:
    """Return the options with which a directive begins, and its body."""
    lines, given = content.splitlines(), {}
    while lines and (option := OPTION.fullmatch(lines[0].strip())):
        given[option[1]] = option[2]
        lines.pop(0)
    return given, "\n".join(lines)
