"""A published book has no script that its readers do not use, and no arrow without a name."""

import re

from ci.finish import finish, icons, page

PAGE = """<head>
  <script defer src="{up}_static/scripts/fontawesome.js?digest=1"></script>
  <script src="{up}_static/searchtools.js"></script>
    <script src="{up}_static/language_data.js"></script>
    <script src="{up}searchindex.js"></script>
  <script src="{up}_static/reading.js?v=1"></script>
</head>"""


def test_pages_lose_icons_and_index_and_the_search_keeps_its_own(tmp_path):
    scripts = tmp_path / "_static" / "scripts"
    scripts.mkdir(parents=True)
    for name in ("fontawesome.js", "fontawesome.js.map", "bootstrap.js", "bootstrap.js.map"):
        (scripts / name).write_text("x")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "page.html").write_text(PAGE.format(up="../"))
    (tmp_path / "search.html").write_text(PAGE.format(up=""))
    finish(tmp_path)
    page, search = ((tmp_path / name).read_text() for name in ("part/page.html", "search.html"))
    assert re.findall(r'src="([^"]*)"', page) == ["../_static/reading.js?v=1"]
    assert "fontawesome" not in search and search.count("<script") == 4
    assert [path.name for path in scripts.iterdir()] == ["bootstrap.js"]


def test_a_page_without_cells_has_no_style_of_cells():
    style = '<link rel="stylesheet" type="text/css" href="_static/mystnb.0a1b.css" />'
    copies = '<script src="_static/copybutton.js?v=1"></script>'
    head = f"<head>\n{style}\n{copies}\n</head>"
    assert page(head) == "<head>\n</head>"
    code = '<div class="highlight-python">'
    assert copies in page(head + code) and style not in page(head + code)
    cell = '<div class="cell docutils container">'
    assert style in page(head + cell)


def test_icons_that_somebody_names_stay():
    style = (
        '.fa-sun:before{content:"\\f185"}.fa-cut:before,.fa-scissors:before{content:"\\f0c4"}a{}'
    )
    assert icons(style, {"fa-sun"}) == '.fa-sun:before{content:"\\f185"}a{}'
    assert icons(style, {"fa-sun", "fa-cut"}) == style
    assert icons(style, set()) == "a{}"


def test_one_script_alone_marks_the_contents():
    theme = '<nav id="pst-page-toc-nav" class="page-toc" aria-labelledby="x">'
    assert page(theme) == '<nav class="page-toc" aria-labelledby="x">'
