"""The ledger is complete and readable; a verdict is a function of the rule and the measurement."""

import json
import math
import re
import sys
from collections import Counter

import numpy as np
import pytest
import yaml

from lib import claims, journal, measure, paths, toc
from lib.errors import BookError
from lib.journal import Judgement
from lib.measure import Measured

SPEC = paths.CODE.parent / "shared" / "spec" / "claims.yaml"
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
RULES = [(claim, rule) for claim in LEDGER.values() for rule in claim.questions.values()]
RULE = {
    "measure": "gain",
    "vacuous": "radius > 5",
    "reproduced": "abs(measured - printed) <= 2",
    "direction": "measured > 0",
    "refuted": "measured < 0",
}
NUMBER = {"value": 10.0, "unit": "percent"}
ENTRY = {"id": "toy", "statement": "A claim.", "source": "Here."}
THEOREM = {**ENTRY, "nature": "theorem", "number": NUMBER, "rule": RULE}
EXPERIMENT = {
    **ENTRY,
    "nature": "experiment",
    "number": NUMBER,
    "printed": {"T": 1000, "users": [5, 100]},
    "questions": {"reconstruction": RULE, "advantage": RULE},
}


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book of the test's own: book(entry, …) writes its ledger, which `judge` then reads."""
    project = paths.project_at(tmp_path)
    project.claims.mkdir(parents=True)
    project.toc.write_text(
        "root: index\nchapters:\n  - file: bandits/dueling\n  - file: rl/zero-shot/index\n"
    )
    monkeypatch.setenv("REGRETBOOK_ROOT", str(tmp_path))
    monkeypatch.delenv("REGRETBOOK_RUN", raising=False)

    def install(*entries, chapter="dueling"):
        path = project.claims / f"{chapter}.yml"
        path.write_text(yaml.safe_dump(list(entries), sort_keys=False), encoding="utf-8")
        return claims.ledger()

    return install


@pytest.fixture
def sizes(monkeypatch):
    """Parameters of the page that is executed."""

    def define(**parameters):
        for name, value in parameters.items():
            monkeypatch.setattr(sys.modules["__main__"], name, value, raising=False)

    return define


def without(entry, *keys):
    return {key: value for key, value in entry.items() if key not in keys}


# The ledger of the book


def test_every_claim_of_the_thesis_is_listed():
    assert len(LEDGER) >= 429  # the book adds claims of its own
    counts = Counter(id.split("-")[0] for id in LEDGER)
    for prefix, (chapter, count) in THESIS_CLAIMS.items():
        assert counts[prefix] == count
        listed = {claim.chapter for id, claim in LEDGER.items() if id.startswith(f"{prefix}-")}
        assert listed == {chapter}


@pytest.mark.skipif(not SPEC.exists(), reason="the specification is not on this machine")
def test_ledger_agrees_with_the_specification():
    for entry in yaml.load(SPEC.read_text(encoding="utf-8"), yaml.CSafeLoader):
        claim = LEDGER[entry["id"]]
        printed = entry["thesis_value"]
        assert (claim.number and claim.number.value) == (printed and printed["value"])
        assert bool(claim.needs) == (entry["needs_data"] not in ("none", "synthetic"))


def test_the_ledger_is_in_the_order_of_the_book():
    chapters = list(dict.fromkeys(claim.chapter for claim in LEDGER.values()))
    assert chapters == [name for name in toc.chapters() if name in chapters]


def test_a_few_dozen_claims_are_headlines():
    headlines = [c for c in LEDGER.values() if c.headline and c.id.split("-")[0] in THESIS_CLAIMS]
    assert 30 <= len(headlines) <= 45
    assert {claim.chapter for claim in headlines} == {c for c, _ in THESIS_CLAIMS.values()}


def test_needed_datasets_are_registered():
    registry = yaml.safe_load((paths.project().data / "registry.yml").read_text(encoding="utf-8"))
    assert {name for claim in LEDGER.values() for name in claim.needs} <= set(registry)


def test_every_rule_can_fail():
    """A rule that no measurement could fail judges nothing."""
    grid = [-1e6, -2.0, -0.3, 0.0, 0.04, 0.3, 0.97, 1.0, 1.2, 7.0, 30.0, 500.0, 1e6]
    for claim, rule in RULES:
        bare = claim._replace(questions={"": rule._replace(vacuous=None)})
        used = {name for text in rule.conditions().values() for name in claims.names(text)}
        facts = [dict.fromkeys(used - {"measured", "printed"}, value) for value in (0.0, 1.0, 5.0)]
        found = {claims.at_point(bare, "", point, given) for point in grid for given in facts}
        assert found & {"not reproduced", "refuted"}, claim.id


def texts(claim):
    """Return everything of a claim that a reader sees."""
    unit = claim.number.unit if claim.number else ""
    rules = [text for rule in claim.questions.values() for text in (rule.unit, rule.control)]
    return [claim.statement, claim.source, unit, *rules]


def prose(text):
    """Return the text without its formulas."""
    return re.sub(r"\$[^$]*\$", "", text)


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


# Reading a ledger


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (without(THEOREM, "nature"), "claim toy: nature is missing"),
        ({**THEOREM, "nature": "guess"}, "claim toy: nature is 'guess'"),
        ({**THEOREM, "statment": "x"}, "statment is not a known key; did you mean statement"),
        ({**THEOREM, "kind": "bound"}, "claim toy: kind is not a known key"),
        ({**THEOREM, "statement": ""}, "claim toy: statement"),
        ({**THEOREM, "headline": "yes"}, "claim toy: headline"),
        ({**THEOREM, "group": ["cells"]}, "claim toy: group must be a text"),
        ({**THEOREM, "needs": "ml-1m"}, "claim toy: needs"),
        ({**THEOREM, "number": {"value": "ten", "unit": "x"}}, "claim toy: number"),
        ({**THEOREM, "number": {"value": 1}}, "claim toy: number"),
        (without(THEOREM, "number"), "uses printed, but the entry has no number"),
        (without(THEOREM, "rule"), "claim toy: rule is missing"),
        ({**THEOREM, "questions": {"advantage": RULE}}, "questions belong to experiments"),
        ({**THEOREM, "printed": {"T": 5}}, "printed belongs to experiments"),
        (without(EXPERIMENT, "printed"), "claim toy: printed must give the printed sizes"),
        ({**EXPERIMENT, "printed": {}}, "claim toy: printed must give"),
        ({**EXPERIMENT, "printed": {"T": "long"}}, "a positive number as T"),
        ({**EXPERIMENT, "printed": {"T": 0}}, "a positive number as T"),
        ({**EXPERIMENT, "printed": {"missing": "T"}}, "a list of names as missing"),
        ({**EXPERIMENT, "printed": {"T": 5, "missing": ["T"]}}, "as a size and as missing"),
        (without(EXPERIMENT, "questions"), "claim toy: questions is missing"),
        ({**EXPERIMENT, "questions": {"gain": RULE}}, "question gain is none of"),
        ({**EXPERIMENT, "rule": RULE}, "rule belongs to theorems and algebra"),
        ({**THEOREM, "rule": {"reproduced": "measured > 0"}}, "under measure"),
        ({**THEOREM, "rule": {"measure": "x"}}, "claim toy: rule needs one of"),
        ({**THEOREM, "rule": {**RULE, "reproduces": "measured > 0"}}, "did you mean reproduced"),
        ({**THEOREM, "rule": {**RULE, "reproduced": True}}, "claim toy: rule reproduced"),
        ({**THEOREM, "rule": {**RULE, "direction": "low > 0"}}, "uses low, but a rule is asked"),
        ({**THEOREM, "rule": {**RULE, "refuted": "high < 0"}}, "uses high, but a rule is asked"),
        ({**THEOREM, "rule": {**RULE, "refuted": "control < 0"}}, "uses control, which `judge`"),
    ],
)
def test_bad_entries_get_one_sentence(book, entry, complaint):
    with pytest.raises(BookError, match=complaint) as refused:
        book(entry)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "expression",
    [
        "measured.real > 0",
        "measured.__class__ == 1",
        "__import__('os') == 1",
        "open('x') == 1",
        "print(measured) == 1",
        "max(measured, key=abs) > 0",
        "[x for x in a] == b",
        "(lambda: 1)() == 1",
        "'a' < 'b'",
        "measured[0] < 1",
        "a if b else measured",
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
        book({**THEOREM, "rule": {"measure": "x", "direction": expression}})


def test_an_id_occurs_once_in_all_files(book):
    with pytest.raises(BookError, match=r"claim toy: id occurs twice in claims/dueling.yml"):
        book(THEOREM, THEOREM)
    book(THEOREM)
    with pytest.raises(BookError, match=r"twice in book/claims: dueling.yml and zero-shot.yml"):
        book(THEOREM, chapter="zero-shot")


def test_a_ledger_file_belongs_to_a_chapter(book):
    with pytest.raises(BookError, match=r"duelling.yml belongs to no chapter; did you mean duel"):
        book(THEOREM, chapter="duelling")


def test_a_ledger_is_read_in_the_order_of_the_chapters_and_again_when_it_changes(book):
    book(THEOREM, chapter="zero-shot")
    assert list(book({**THEOREM, "id": "other"})) == ["other", "toy"]
    assert claims.ledger()["toy"] is claims.ledger()["toy"]
    assert book({**THEOREM, "id": "other", "statement": "New."})["other"].statement == "New."


# Deciding


def judged(value, low=None, high=None, trials=10):
    low, high = (value if end is None else end for end in (low, high))
    return Measured(value, low, high, trials)


@pytest.mark.parametrize(
    ("measured", "radius", "verdict"),
    [
        (judged(10.0, 9.0, 11.0), 1.0, "reproduced"),
        (judged(10.0, 7.0, 13.0), 1.0, "direction only"),  # too wide for the tolerance
        (judged(3.0, 2.0, 4.0), 1.0, "direction only"),
        (judged(3.0, -1.0, 7.0), 1.0, "undecided"),
        (judged(-3.0, -7.0, -1.0), 1.0, "refuted"),
        (judged(-3.0, -7.0, 0.0), 1.0, "not reproduced"),  # zero itself is nothing at all
        (judged(0.0), 1.0, "not reproduced"),
        (judged(10.0, 9.0, 11.0), 6.0, "vacuous at this scale"),
    ],
)
def test_an_interval_gives_the_verdict_that_holds_all_over_it(book, measured, radius, verdict):
    claim = book(THEOREM)["toy"]
    assert claims.decide(claim, "", measured, {"radius": radius}) == verdict
    assert verdict in claims.VERDICTS


def test_a_window_inside_the_interval_is_noticed(book):
    """The ends and the centre agree, but a verdict that holds between them does not."""
    rule = {"measure": "x", "reproduced": "measured < 1.3 or measured > 1.4"}
    claim = book({**THEOREM, "rule": rule})["toy"]
    assert claims.decide(claim, "", judged(1.0, 0.0, 2.0), {}) == "undecided"


def test_a_wide_interval_around_a_narrow_tolerance_is_undecided(book):
    rule = {"measure": "x", "reproduced": "abs(measured - printed) <= 0.1"}
    claim = book({**THEOREM, "rule": rule})["toy"]
    assert claims.decide(claim, "", judged(400.0, -700.0, 1500.0), {}) == "undecided"


def test_vacuous_on_a_part_of_the_interval_is_undecided(book):
    rule = {"measure": "x", "vacuous": "measured > 1", "reproduced": "measured > 0"}
    claim = book({**THEOREM, "rule": rule})["toy"]
    assert claims.decide(claim, "", judged(1.0, 0.5, 1.5), {}) == "undecided"


def test_first_condition_that_holds_decides(book):
    rule = {"measure": "x", "refuted": "measured > 0", "reproduced": "measured > 0"}
    claim = book({**THEOREM, "rule": rule})["toy"]
    assert claims.decide(claim, "", judged(1.0), {}) == "reproduced"


def test_a_shrinking_interval_never_becomes_undecided_again(book):
    """`trials_to_decide` halves the width until it finds the change: there must be only one."""
    claim = book(THEOREM)["toy"]
    rng = np.random.default_rng(7)
    for value, left, right in rng.uniform((-5, 0, 0), (15, 10, 10), size=(50, 3)):
        found = judged(value, value - left, value + right)
        decided = [
            claims.decide(claim, "", measure.shrunk(found, s), {"radius": 1.0}) != "undecided"
            for s in (1.0, 0.7, 0.4, 0.2, 0.1, 0.01)
        ]
        assert decided == sorted(decided)


@pytest.mark.parametrize(
    ("share", "verdict"), [(1.0, "refuted"), (0.5, "not reproduced"), (None, "not reproduced")]
)
def test_only_the_printed_scale_refutes_an_experiment(book, share, verdict):
    claim = book(EXPERIMENT)["toy"]
    found = claims.decide(claim, "advantage", judged(-3.0, -4.0, -2.0), {"radius": 1.0}, share)
    assert found == verdict


@pytest.mark.parametrize(
    ("measured", "control", "verdict"),
    [
        (10.0, 10.5, "vacuous at this scale"),
        (10.0, 3.0, "reproduced"),  # the control has the direction, not the number
        (3.0, 3.0, "vacuous at this scale"),
        (3.0, 10.0, "vacuous at this scale"),
        (3.0, -1.0, "direction only"),
        (-3.0, 10.0, "refuted"),  # a control excuses no failure
    ],
)
def test_a_control_that_passes_makes_a_rule_say_nothing(book, measured, control, verdict):
    claim = book(THEOREM)["toy"]
    found = claims.decide(claim, "", judged(measured), {"radius": 1}, control=judged(control))
    assert found == verdict


@pytest.mark.parametrize(
    ("measured", "control", "over", "verdict"),
    [
        (10.0, 10.5, (-2.0, 1.0), "vacuous at this scale"),
        (3.0, 1.0, (-0.1, 4.0), "vacuous at this scale"),  # may be as good
        (3.0, 1.0, (0.1, 4.0), "direction only"),
        (10.0, 9.9, (0.1, 4.0), "direction only"),  # the number says nothing, the order does
        (-3.0, -9.0, (0.1, 4.0), "refuted"),  # better than nothing is no excuse
    ],
)
def test_a_control_that_is_clearly_behind_leaves_the_direction(
    book, measured, control, over, verdict
):
    claim = book(THEOREM)["toy"]
    facts = claims.flat({"radius": 1, "over_control": Measured(sum(over) / 2, *over)})
    assert claims.decide(claim, "", judged(measured), facts, control=judged(control)) == verdict


def test_facts_of_the_method_do_not_let_its_control_pass(book):
    rule = {"measure": "x", "reproduced": "measured > 8", "direction": "ordered"}
    claim = book({**THEOREM, "rule": rule})["toy"]
    found = claims.decide(claim, "", judged(5.0), {"ordered": True}, control=judged(0.0))
    assert found == "direction only"


@pytest.mark.parametrize(
    ("lead", "verdict"),
    [
        (Measured(2.0, 1.0, 3.0), "direction only"),
        (Measured(2.0, -1.0, 5.0), "undecided"),
        (Measured(-2.0, -3.0, -1.0), "not reproduced"),
        (2.0, "direction only"),  # what was computed and not sampled has no interval
    ],
)
def test_a_fact_with_an_interval_decides_only_with_all_of_it(book, tmp_path, lead, verdict):
    rule = {"measure": "x", "reproduced": "measured > 8", "direction": "lead > 0"}
    book({**THEOREM, "rule": rule})
    found = claims.judge("toy", judged(5.0, 4.0, 6.0), lead=lead)
    assert found.verdict == verdict
    assert claims.verdict_of(found.judgement) == verdict  # from the journal alone


def test_division_by_zero_in_a_rule_is_an_error_not_a_verdict(book):
    book({**THEOREM, "rule": {"measure": "x", "reproduced": "1 / measured > 0"}})
    with pytest.raises(BookError, match="rule reproduced fails"):
        claims.judge("toy", 0.0)


# Scale


@pytest.mark.parametrize(
    ("given", "text", "share"),
    [
        ({"T": 1000, "users": 100}, "printed scale", 1.0),
        ({"T": 5000, "users": 100}, "printed scale", 1.0),  # larger counts as printed
        ({"T": 250, "users": 100}, "reduced (T 250 of 1000)", 0.25),
        ({"T": 250, "users": 50}, "reduced (T 250 of 1000, users 50 of 100)", 0.125),
        ({"T": 1000, "users": [0, 60]}, "reduced (users 60 of 100)", 0.6),
        ({"T": 1000, "users": np.array([3, 100])}, "printed scale", 1.0),
    ],
)
def test_scale_is_computed_from_the_sizes(book, given, text, share):
    assert claims.scale_of(book(EXPERIMENT)["toy"], given) == (text, pytest.approx(share))


def test_large_sizes_are_readable(book):
    claim = book({**EXPERIMENT, "printed": {"users": 1000, "T": 1_000_000}})["toy"]
    found = claims.scale_of(claim, {"users": 80, "T": 20_000})
    assert found.text == "reduced (users 80 of 1000, T 20,000 of 1,000,000)"


def test_what_is_not_printed_is_said(book):
    claim = book({**EXPERIMENT, "printed": {"T": 1000, "missing": ["noise"]}})["toy"]
    assert claims.scale_of(claim, {"T": 1000}) == ("printed scale; noise not printed", 1.0)
    assert claims.scale_of(claim, {"T": 10}).text == "reduced (T 10 of 1000); noise not printed"
    claim = book({**EXPERIMENT, "printed": {"missing": ["T", "noise"]}})["toy"]
    assert claims.scale_of(claim, {}) == ("no printed scale (T, noise not printed)", None)


def test_theorems_and_algebra_have_no_scale(book):
    assert claims.scale_of(book(THEOREM)["toy"], {}) == ("", None)


@pytest.mark.parametrize("value", [-5, "many", [], math.nan])
def test_a_size_is_a_number_from_zero_on(book, value):
    with pytest.raises(BookError, match="T is"):
        claims.scale_of(book(EXPERIMENT)["toy"], {"T": value, "users": 3})


# Judging


def test_judge_reads_sizes_from_the_page_and_writes_the_journal(book, sizes, tmp_path, monkeypatch):
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.setenv("REGRETBOOK_RUN", str(run))
    book(EXPERIMENT)
    sizes(T=250, users=100)
    verdict = claims.judge(
        "toy", [9.5, 10.0, 10.5], question="advantage", figure="fig-gain", note="ten $d$",
        control=np.float64(1.5), radius=np.int64(1),
    )  # fmt: skip
    assert verdict.verdict == "reproduced"
    (line,) = (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    low, high = measure.mean([9.5, 10.0, 10.5])[1:3]
    assert json.loads(line) == {
        "kind": "judgement", "id": "toy", "question": "advantage", "verdict": "reproduced",
        "scale": "reduced (T 250 of 1000)", "share": 0.25, "measured": 10.0, "low": low,
        "high": high, "unit": "percent", "trials": 3, "needed": None, "figure": "fig-gain",
        "note": "ten $d$", "facts": {"radius": 1}, "values": [9.5, 10.0, 10.5],
        "control": [1.5, 1.5, 1.5], "recorded": "",
    }  # fmt: skip
    assert journal.read(run) == [verdict.judgement]


def test_the_verdict_shows_everything_that_the_rule_used(book, sizes):
    book(EXPERIMENT)
    sizes(T=250, users=100)
    shown = claims.judge("toy", [9.0, 11.0], question="advantage", control=1.5, radius=1)
    page = shown._repr_html_()
    for text in (
        'class="rb-verdict rb-undecided">undecided<',
        "<code>toy</code> advantage",
        "10 [-2.706, 22.71] percent",
        "2 trials; reduced (T 250 of 1000); about 4 trials would decide; control 1.5",
        "reproduced: abs(measured - printed) &lt;= 2",
    ):
        assert text in page, text
    assert repr(shown) == "toy advantage: undecided (10 [-2.706, 22.71])"


def test_markup_is_escaped_outside_and_inside_formulas(book):
    book({**THEOREM, "statement": "<b>$a<b$ & 'c'."})
    page = claims.judge("toy", 10.0, radius=1)._repr_html_()
    assert "&lt;b&gt;<span" in page and "<mo>&lt;</mo>" in page and "</span> &amp; 'c'." in page


def test_values_are_a_number_a_measurement_trials_or_hits(book):
    book({**THEOREM, "rule": {"measure": "x", "reproduced": "measured > 0"}})

    def number(values):
        return claims.judge("toy", values).judgement[5:8]

    assert number(10) == (10.0, 10.0, 10.0)
    assert number(np.float64(2.0)) == (2.0, 2.0, 2.0)
    assert number(measure.worst([1.0, 3.0])) == (3.0, 3.0, 3.0)
    assert number([1.0, 3.0]) == measure.mean([1.0, 3.0])[:3]
    assert number(np.array([True, False, True])) == measure.share([1, 0, 1])[:3]


def test_sizes_of_the_page_the_measurement_and_the_call(book, sizes):
    book({**EXPERIMENT, "printed": {"T": 1000, "trials": 10}})
    sizes(T=1000)

    def scale(**words):
        found = claims.judge("toy", [9.5, 10.0, 10.5], question="advantage", radius=1, **words)
        return found.judgement.scale

    assert scale() == "reduced (trials 3 of 10)"  # no parameter is called trials
    sizes(trials=10)
    assert scale() == "printed scale"
    assert scale(sizes={"T": 500}) == "reduced (T 500 of 1000)"


def test_a_size_that_nobody_knows_is_asked_for(book):
    book({**EXPERIMENT, "printed": {"depth": 12}})
    with pytest.raises(BookError, match=r"prints depth.*sizes=\{'depth': …\}"):
        claims.judge("toy", 1.0, question="advantage", radius=1)


def test_an_undecided_claim_says_how_many_trials_would_decide(book):
    book({**THEOREM, "rule": {"measure": "x", "reproduced": "measured > 0"}})
    found = claims.judge("toy", Measured(2.0, -2.0, 6.0, trials=5)).judgement
    assert (found.verdict, found.needed) == ("undecided", 21)
    assert claims.judge("toy", Measured(2.0, 1.0, 3.0, trials=5)).judgement.needed is None


def test_questions_may_be_left_out_where_there_is_one(book, sizes):
    one = {**EXPERIMENT, "id": "one", "questions": {"reconstruction": RULE}}
    book(EXPERIMENT, one, {**THEOREM, "id": "bound"})
    sizes(T=1000, users=100)
    assert claims.judge("one", 10.0, radius=1).judgement.question == "reconstruction"
    assert claims.judge("bound", 10.0, radius=1).judgement.question == ""
    with pytest.raises(BookError, match="needs one of its questions: reconstruction and advantage"):
        claims.judge("toy", 10.0, radius=1)
    with pytest.raises(BookError, match="has no question 'advantage'; it has reconstruction"):
        claims.judge("one", 10.0, question="advantage", radius=1)
    with pytest.raises(BookError, match="has no question 'advantage'; it has none"):
        claims.judge("bound", 10.0, question="advantage", radius=1)


@pytest.mark.parametrize(
    ("values", "facts", "complaint"),
    [
        (math.nan, {}, "measured is nan"),
        (math.inf, {}, "measured is inf"),
        (Measured(1.0, math.nan, 2.0), {}, "low is nan"),
        (Measured(1.0, 2.0, 0.0), {}, "does not contain"),
        (Measured(3.0, 0.0, 2.0), {}, "does not contain"),
        (1.0, {"radius": math.nan}, "radius is nan"),
        (1.0, {"radius": None}, "radius is None"),
        ([1.0], {}, "at least two trials"),
        (1.0, {"control": math.nan}, "control is nan"),
    ],
)
def test_bad_measurements_are_refused(book, values, facts, complaint):
    book(THEOREM)
    with pytest.raises(BookError, match=complaint):
        claims.judge("toy", values, **{"radius": 1.0, **facts})


@pytest.mark.parametrize("where", ["values", "control", "radius"])
def test_what_has_no_value_leaves_its_claim_unjudged_and_says_why(book, where):
    """A very short run of a reader's has regrets of zero; its page must not fail for that."""
    book(THEOREM)
    given = {"values": 10.0, "radius": 1.0} | {where: measure.ratio([1.0, 2.0], [0.0, 0.0])}
    found = claims.judge("toy", **given)
    assert (found.verdict, found.judgement.measured) == ("not run", None)
    assert "cannot be measured in this run: a ratio needs a denominator" in found.judgement.note


def test_missing_facts_and_claims_are_refused(book):
    book(THEOREM)
    with pytest.raises(BookError, match="rule vacuous needs radius"):
        claims.judge("toy", 10.0)
    with pytest.raises(BookError, match=r"no claim 'toyy'.*did you mean toy"):
        claims.judge("toyy", 10.0, radius=1)


def test_a_skipped_claim_is_not_run_and_says_why(book, tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETBOOK_RUN", str(tmp_path))
    book(EXPERIMENT)
    verdict = claims.skip("toy", "needs ten million rounds", question="advantage")
    assert (verdict.verdict, verdict.judgement.measured) == ("not run", None)
    assert "ten million" in verdict._repr_html_()
    assert journal.read(tmp_path) == [verdict.judgement]
    assert claims.verdict_of(verdict.judgement) == "not run"
    with pytest.raises(BookError, match="say why"):
        claims.skip("toy", " ", question="advantage")


# Judging again what was recorded


def test_a_recorded_judgement_is_judged_again_from_its_numbers_alone(book, sizes, tmp_path):
    book(EXPERIMENT, {**THEOREM, "id": "bound"})
    sizes(T=250, users=100)
    found = [
        claims.judge("bound", Measured(*numbers, trials=4), radius=radius, control=control)
        for numbers in ((10, 9, 11), (3, -1, 7), (-3, -4, -2), (10, 5, 15))
        for radius in (1, 6)
        for control in (None, 10.2)
    ]
    found += [claims.judge("toy", -3.0, question="advantage", radius=1)]
    assert {each.verdict for each in found} >= {
        "reproduced", "direction only", "undecided", "refuted", "not reproduced",
        "vacuous at this scale",
    }  # fmt: skip
    for each in found:
        again = Judgement(**json.loads(json.dumps(each.judgement._asdict())))
        assert claims.verdict_of(again) == each.verdict


def test_a_changed_rule_changes_the_verdict_of_a_recorded_judgement(book):
    book(THEOREM)
    judgement = claims.judge("toy", 10.0, radius=1).judgement
    book({**THEOREM, "rule": {**RULE, "reproduced": "measured > 11"}})
    assert claims.verdict_of(judgement) == "direction only"
    with pytest.raises(BookError, match="rule vacuous needs radius"):
        claims.verdict_of(judgement._replace(facts={}))
