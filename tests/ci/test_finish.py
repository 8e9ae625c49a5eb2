"""A published book has no script that its readers do not use, and no arrow without a name."""

import re

from ci.finish import finish

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
