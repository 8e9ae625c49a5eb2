"""The ledger is complete and readable; a verdict is a function of the measurement and the rule."""

import html
import json
import re
from collections import Counter

import numpy as np
import pytest
import yaml

from lib import claims, journal, paths
from lib.errors import BookError

SPEC = paths.ROOT.parent / "shared" / "spec" / "claims.yaml"
THESIS_CLAIMS = {
    "mbrl": ("model-based", 44),
    "zsg": ("zero-shot", 39),
    "mis": ("misspecified-users", 84),
    "cud": ("corrupted-users", 88),
    "conv": ("conversational", 61),
    "nonstat": ("nonstationary", 53),
    "duel": ("dueling", 32),
}
LEDGER = claims.ledger()
ENTRY = {
    "id": "toy",
    "chapter": "dueling",
    "kind": "number",
    "statement": "A claim.",
    "source": "Here.",
    "print": {"value": 10.0, "unit": "percent"},
}
RULE = {
    "measure": "gain",
    "vacuous": "radius > 5",
    "reproduced": "low <= printed <= high and abs(measured - printed) < 0.5 * printed",
    "direction": "low > 0",
    "refuted": "high < 0",
}


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A ledger of the test's own: book(entry, …) makes it the one that `check` reads."""

    def install(*entries):
        path = tmp_path / "claims.yml"
        path.write_text(yaml.safe_dump(list(entries)), encoding="utf-8")
        ledger = claims.load(path)
        monkeypatch.setattr(claims, "ledger", lambda: ledger)
        return ledger

    monkeypatch.delenv("REGRETBOOK_RUN", raising=False)
    claims.reset()
    yield install
    claims.reset()


def texts(claim):
    """Return everything of a claim that a reader sees."""
    unit = claim.print.unit if claim.print else ""
    return [claim.statement, claim.source, claim.check, unit]


def prose(text):
    """Return the text without its formulas."""
    return re.sub(r"\$[^$]*\$", "", text)


def test_every_claim_of_the_thesis_is_listed():
    counts = Counter(id.split("-")[0] for id in LEDGER)
    for prefix, (chapter, count) in THESIS_CLAIMS.items():
        assert counts[prefix] == count
        listed = {claim.chapter for id, claim in LEDGER.items() if id.startswith(f"{prefix}-")}
        assert listed == {chapter}


@pytest.mark.skipif(not SPEC.exists(), reason="the specification is not on this machine")
def test_ledger_agrees_with_the_specification():
    for entry in yaml.safe_load(SPEC.read_text(encoding="utf-8")):
        claim = LEDGER[entry["id"]]
        printed = entry["thesis_value"]
        assert claim.kind == entry["kind"]
        assert (claim.print and claim.print.value) == (printed and printed["value"])
        assert bool(claim.needs) == (entry["needs_data"] not in ("none", "synthetic"))


def test_a_few_dozen_claims_are_headlines():
    headlines = [c for c in LEDGER.values() if c.headline and c.id.split("-")[0] in THESIS_CLAIMS]
    assert 30 <= len(headlines) <= 45
    assert {claim.chapter for claim in headlines} == {c for c, _ in THESIS_CLAIMS.values()}


def test_needed_datasets_are_registered():
    registry = yaml.safe_load((paths.DATA / "registry.yml").read_text(encoding="utf-8"))
    assert {name for claim in LEDGER.values() for name in claim.needs} <= set(registry)


def faults(text):
    """Name what would not be typeset: maths outside formulas, unbalanced or plain formulas."""
    if text.count("$") % 2:
        yield "unbalanced $"
    if found := re.search(r"sqrt\(|eps_|[<>]=|\^[T0-9({]|\w_[*{0-9]|\*\w|\\|`", prose(text)):
        yield f"maths outside a formula: {found.group()}"
    if found := re.search(r"\blines? \d|thesis\.tex", text):
        yield f"a reference readers cannot follow: {found.group()}"
    for formula in re.findall(r"\$([^$]+)\$", text):
        braces = re.sub(r"\\[{}]", "", formula)
        if braces.count("{") != braces.count("}"):
            yield f"unbalanced braces: {formula}"
        if re.search(r"\||(?<!\\)\b(sqrt|log|min|max|epsilon|delta|lambda)\b", formula):
            yield f"a bar, which splits Markdown tables, or a bare name: {formula}"


def test_text_is_typeset():
    found = {id: [f for text in texts(claim) for f in faults(text)] for id, claim in LEDGER.items()}
    assert {id: what for id, what in found.items() if what} == {}
    assert [id for id, claim in LEDGER.items() if not claim.statement.endswith(".")] == []


@pytest.mark.parametrize(
    "text", ["$a", "sqrt(T)", "eps_* T", "a <= b", "x^T", r"\log", "$\\frac{a$", "$|x|$", "$log T$"]
)
def test_ascii_mathematics_would_be_noticed(text):
    assert list(faults(text))


def test_unlike_statements():
    """Lemmas that two chapters share may read alike, claims of one chapter may not."""
    counts = Counter((claim.chapter, claim.statement) for claim in LEDGER.values())
    assert max(counts.values()) == 1


@pytest.mark.parametrize("chapter", claims.CHAPTERS)
def test_table_shows_every_claim_escaped(chapter, book):
    page = claims.table(chapter)._repr_html_()
    rows = claims.rows(chapter)
    assert page.count("<tr id=") == len(rows)
    assert "$" not in page
    for row in rows:
        assert f'<tr id="claim-{row.claim.id}"' in page
        shown = re.search(rf'id="claim-{re.escape(row.claim.id)}".*?<td>(.*?)<br>', page).group(1)
        assert not re.search("[<>]", shown)
        plain = html.unescape(shown).replace(r"\(", "$").replace(r"\)", "$")
        assert plain == row.claim.statement
        assert row.verdict == "not run"


def test_table_escapes_markup_outside_and_inside_formulas(book):
    book({**ENTRY, "check": "By hand.", "statement": "<b>$a<b$ & 'c'."})
    page = claims.table("dueling")._repr_html_()
    assert r"&lt;b&gt;\(a&lt;b\) &amp; &#x27;c&#x27;." in page
    assert 'class="rb-verdict rb-not-run">not run<' in page


@pytest.mark.parametrize(
    ("measured", "low", "high", "radius", "verdict"),
    [
        (10.0, 9.0, 11.0, 1.0, "reproduced"),
        (14.0, 9.0, 19.0, 1.0, "reproduced"),
        (16.0, 9.0, 23.0, 1.0, "direction only"),
        (3.0, 2.0, 4.0, 1.0, "direction only"),
        (3.0, -1.0, 7.0, 1.0, "not reproduced"),
        (-3.0, -7.0, -1.0, 1.0, "refuted"),
        (10.0, 9.0, 11.0, 6.0, "vacuous at this scale"),
    ],
)
def test_decide(book, measured, low, high, radius, verdict):
    claim = book({**ENTRY, "rule": RULE})["toy"]
    assert claims.decide(claim, measured, low, high, {"radius": radius}) == verdict
    assert verdict in claims.VERDICTS


def test_first_expression_that_holds_decides(book):
    rule = {"measure": "x", "refuted": "measured > 0", "reproduced": "measured > 0"}
    claim = book({**ENTRY, "rule": rule})["toy"]
    assert claims.decide(claim, 1.0, 1.0, 1.0, {}) == "reproduced"


@pytest.mark.parametrize(
    "expression",
    [
        "measured.real > 0",
        "measured.__class__ == 1",
        "__import__('os') == 1",
        "open('x') == 1",
        "print(measured) == 1",
        "max(measured, key=abs) > 0",
        "[x for x in low] == high",
        "(lambda: 1)() == 1",
        "'a' < 'b'",
        "low[0] < 1",
        "low if high else measured",
        "(x := 1) > 0",
        "_secret > 0",
        "measured",
        "measured + 1",
        "measured >",
        "",
    ],
)
def test_unsafe_or_meaningless_expressions_are_refused(book, expression):
    with pytest.raises(BookError, match="claim toy: rule direction"):
        book({**ENTRY, "rule": {"measure": "x", "direction": expression}})


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kind": "guess"}, "claim toy: kind"),
        ({"chapter": "duelling"}, "claim toy: chapter"),
        ({"statment": "x"}, "statment is not a known key; did you mean statement"),
        ({"statement": ""}, "claim toy: statement"),
        ({"check": ""}, "claim toy: check"),
        ({"headline": "yes"}, "claim toy: headline"),
        ({"needs": "ml-1m"}, "claim toy: needs"),
        ({"print": {"value": "ten", "unit": "x"}}, "claim toy: print"),
        ({"print": {"value": 1}}, "claim toy: print"),
        ({"rule": {"reproduced": "measured > 0"}}, "claim toy: rule"),
        ({"rule": {"measure": "x"}}, "claim toy: rule"),
        ({"rule": {"measure": "x", "reproduces": "measured > 0"}}, "did you mean reproduced"),
        ({"rule": {"measure": "x", "reproduced": True}}, "claim toy: rule reproduced"),
    ],
)
def test_bad_entries_name_the_claim_and_the_key(book, change, complaint):
    with pytest.raises(BookError, match=complaint):
        book({**ENTRY, "check": "By hand.", **change})


def test_printed_needs_a_print(book):
    entry = {key: value for key, value in ENTRY.items() if key != "print"}
    with pytest.raises(BookError, match="uses printed"):
        book({**entry, "rule": RULE})


def test_ids_are_unique(book):
    with pytest.raises(BookError, match="claim toy: id occurs twice"):
        book({**ENTRY, "rule": RULE}, {**ENTRY, "rule": RULE})


def test_check_writes_the_journal_and_the_table(book, tmp_path, monkeypatch):
    run = tmp_path / "run"
    monkeypatch.setenv("REGRETBOOK_RUN", str(run))
    book({**ENTRY, "rule": RULE})
    verdict = claims.check(
        "toy", np.float64(10.5), 9, 12, figure="fig-gain", note="ten $d$", radius=np.int64(1)
    )
    assert verdict.verdict == "reproduced"
    (line,) = (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {
        "kind": "claim", "id": "toy", "verdict": "reproduced", "measured": 10.5, "low": 9.0,
        "high": 12.0, "unit": "percent", "figure": "fig-gain", "note": "ten $d$",
        "facts": {"radius": 1},
    }  # fmt: skip
    for shown in (verdict._repr_html_(), claims.table("dueling")._repr_html_()):
        assert "10.5 [9, 12]" in shown
        assert 'class="rb-verdict rb-reproduced">reproduced<' in shown
    assert 'href="#fig-gain"' in claims.table("dueling")._repr_html_()
    claims.reset()
    assert claims.rows("dueling")[0].verdict == "not run"


def test_check_works_without_a_run_folder(book):
    book({**ENTRY, "rule": RULE})
    assert claims.check("toy", 10.0, radius=1.0).number() == "10"
    assert claims.rows("dueling")[0].verdict == "reproduced"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"measured": float("nan")}, "measured is nan"),
        ({"measured": float("inf")}, "measured is inf"),
        ({"measured": 1.0, "low": float("nan")}, "low is nan"),
        ({"measured": 1.0, "radius": float("nan")}, "radius is nan"),
        ({"measured": 1.0, "low": 2.0, "high": 0.0}, "does not contain"),
        ({"measured": 3.0, "low": 0.0, "high": 2.0}, "does not contain"),
    ],
)
def test_bad_measurements_are_refused(book, arguments, complaint):
    book({**ENTRY, "rule": RULE})
    with pytest.raises(BookError, match=complaint):
        claims.check("toy", **{"radius": 1.0, **arguments})


def test_missing_fact_rule_and_claim_are_refused(book):
    book({**ENTRY, "rule": RULE}, {**ENTRY, "id": "bare", "check": "By hand."})
    with pytest.raises(BookError, match="rule vacuous needs radius"):
        claims.check("toy", 10.0)
    with pytest.raises(BookError, match="bare has no rule"):
        claims.check("bare", 10.0)
    with pytest.raises(BookError, match=r"no claim 'toyy'.*did you mean toy"):
        claims.check("toyy", 10.0)
    with pytest.raises(BookError, match=r"no chapter 'duelling'.*did you mean dueling"):
        claims.table("duelling")


def test_division_by_zero_in_a_rule_is_an_error_not_a_verdict(book):
    book({**ENTRY, "rule": {"measure": "x", "reproduced": "1 / measured > 0"}})
    with pytest.raises(BookError, match="rule reproduced fails"):
        claims.check("toy", 0.0)


def test_interval_against_closed_forms():
    # With two trials the t distribution is Cauchy: its 95 % quantile factor is tan(0.475 π).
    two = claims.interval([1.0, 3.0])
    assert two.mean == 2.0
    assert two.high - 2.0 == pytest.approx(np.tan(0.475 * np.pi))
    # With three trials the quantile is 2q √(2 / (1 − 4q²)) at probability 1/2 + q.
    three = claims.interval([1.0, 2.0, 3.0], confidence=0.9)
    quantile = 2 * 0.45 * np.sqrt(2 / (1 - 4 * 0.45**2))
    assert three.high - three.low == pytest.approx(2 * quantile / np.sqrt(3))
    assert claims.interval([5.0, 5.0]) == (5.0, 5.0, 5.0)


def test_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = [low <= 0 <= high for _, low, high in map(claims.interval, rng.normal(size=(2000, 4)))]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.02)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")], [[1.0, 2.0]]])
def test_interval_needs_two_finite_trials(values):
    with pytest.raises(BookError, match="at least two trials"):
        claims.interval(values)


def test_interval_refuses_a_confidence_outside_the_unit_interval():
    with pytest.raises(BookError, match="confidence is 95"):
        claims.interval([1.0, 2.0], confidence=95)


def test_a_skipped_claim_is_not_run_and_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path))
    some = next(iter(claims.ledger()))
    verdict = claims.skip(some, "needs ten million rounds")
    assert (verdict.verdict, verdict.measured) == ("not run", None)
    assert "ten million" in claims.row_html(verdict)
    (entry,) = journal.read(tmp_path)
    assert entry["note"] == "needs ten million rounds"
    with pytest.raises(BookError, match="say why"):
        claims.skip(some, " ")
