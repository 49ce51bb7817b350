"""The fact checker: one small case for each check, what must stay silent, and what holds for any input."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.contracts.runs import FGFCReport, FGFCUnit
from muniment.core.policy import FactCheckPolicy
from muniment.verify.constraints import DEFAULT_REGISTRY
from muniment.verify.facts import SourceText, check_facts
from muniment.verify.results import REASON_OF_ERROR, fact_reason_codes, fact_score, fact_verdict
from products import for_each

POLICY = FactCheckPolicy()
HARBOUR = """Ines Calder opened the Larkfield ferry line on 14 March 1987. She paid the city $40 for the berth.
Tomas Wendt repaired the engine in Dunmore, Ontario. The council did not approve the second pier after the storm.
Ticket prices increased by 12 percent because fuel became dearer. Calder hired Wendt before the strike.
The crossing takes 25 minutes on Monday. The old bridge may close. The captain was praised by Petra Lund."""


def check(output: str, document: str = HARBOUR, **options: object) -> FGFCReport:
    return check_facts(output, [SourceText("harbour", document)], policy=POLICY, **options)  # type: ignore[arg-type]


def only(output: str, document: str = HARBOUR) -> FGFCUnit:
    (unit,) = check(output, document).units or ()
    return unit


# -- each check ---------------------------------------------------------------------------------------


@pytest.mark.req("RC-17", "TM-14")
@for_each(
    ("claim", "error", "correction"),
    [
        ("She paid the city $90 for the berth.", "OutE", "She paid the city $40 for the berth."),
        ("The crossing takes 25 hours on Monday.", "CircE", None),
        ("The crossing takes 25 minutes on Friday.", "OutE", "The crossing takes 25 minutes on Monday."),
        ("Ines Calder opened the Larkfield ferry line on 14 March 1978.", "OutE", None),
        (
            "Tomas Wendt repaired the engine in Halifax, Ontario.",
            "OutE",
            "Tomas Wendt repaired the engine in Dunmore, Ontario.",
        ),
        ("Wendt hired Calder before the strike.", "EntE", None),
        ("The captain praised Petra Lund.", "EntE", None),
        ("The council approved the second pier after the storm.", "PredE", None),
        ("Ticket prices did not increase by 12 percent because fuel became dearer.", "PredE", None),
        ("Ticket prices decreased by 12 percent because fuel became dearer.", "PredE", None),
        ("The old bridge closed.", "PredE", None),
        ("Calder hired Wendt after the strike.", "LinkE", "Calder hired Wendt before the strike."),
        ("Ticket prices increased by 12 percent although fuel became dearer.", "LinkE", None),
    ],
)
def test_what_the_evidence_contradicts(claim: str, error: str, correction: str | None) -> None:
    unit = only(claim)
    assert (unit.verdict, unit.error_type) == ("REFUTED", error), unit.justification
    if correction is not None:
        assert unit.correction == correction
    assert unit.evidence
    assert unit.justification


@pytest.mark.req("RC-17")
@for_each(
    "claim",
    [
        "Calder opened a ferry line in March 1987.",
        "The ferry line was opened on 1987-03-14.",
        "Ines Calder paid the city 40 dollars.",
        "The engine was repaired in Dunmore by Tomas Wendt.",
        "The council did not approve the second pier.",
        "Before the strike, Calder hired Wendt.",
        "Wendt was hired by Calder before the strike.",
        "Petra Lund praised the captain.",
        "The old bridge may close.",
        "The crossing takes twenty-five minutes on Monday.",
    ],
)
def test_what_the_evidence_says_in_other_words(claim: str) -> None:
    unit = only(claim)
    assert unit.verdict == "SUPPORTED", unit.justification
    assert unit.error_type is None
    assert unit.correction is None


@pytest.mark.req("RC-17")
@pytest.mark.parametrize(
    ("claim", "error"),
    [
        ("Seventeen elephants painted marvellous portraits yesterday.", "OutE"),
        ("Tomas Wendt later sailed to Greenland with Ruth Amsel.", "OutE"),
        ("Purple clouds.", None),
    ],
)
def test_what_the_source_does_not_speak_of(claim: str, error: str | None) -> None:
    unit = only(claim)
    assert (unit.verdict, unit.error_type) == ("NOT_ENOUGH_INFO", error)
    assert unit.correction is None


@pytest.mark.req("RC-17")
def test_a_pronoun_of_the_wrong_person() -> None:
    units = check("Ines Calder opened the ferry line. He paid the city $40 for the berth.").units or ()
    assert [unit.error_type for unit in units] == [None, "CorefE"]


@pytest.mark.req("RC-17")
def test_a_pronoun_that_stands_for_nobody_so_far() -> None:
    units = check("They hired Wendt before the strike. Calder opened the ferry line.").units or ()
    assert (units[0].verdict, units[0].error_type) == ("NOT_ENOUGH_INFO", "CorefE")
    assert units[1].verdict == "SUPPORTED"
    assert only("She paid the city $40.").verdict == "SUPPORTED", "an answer may begin as its question ended"


@pytest.mark.req("RC-17")
@for_each(
    ("claim", "document", "verdict", "correction"),
    [
        ("李娜在2021年去了杭州。", "李娜在2021年去了成都。", "REFUTED", "李娜在2021年去了成都。"),
        ("李娜在2019年去了成都。", "李娜在2021年去了成都。", "REFUTED", "李娜在2021年去了成都。"),
        ("她买了五个苹果。", "她买了三个苹果。", "REFUTED", "她买了三个苹果。"),
        ("王强不喜欢喝咖啡。", "王强喜欢喝咖啡。", "REFUTED", None),
        ("王强喜欢喝咖啡。", "王强喜欢喝咖啡，每天喝两杯。", "SUPPORTED", None),
        (
            "지민은 3월에 부산으로 이사했다.",
            "지민은 3월에 대구로 이사했다.",
            "REFUTED",
            "지민은 3월에 대구로 이사했다.",
        ),
        ("지민은 4월에 대구로 이사했다.", "지민은 3월에 대구로 이사했다.", "REFUTED", "지민은 3월에 대구로 이사했다."),
        ("지민은 커피를 좋아하지 않는다.", "지민은 커피를 좋아한다.", "REFUTED", None),
        ("지민은 5만 원을 썼다.", "지민은 5만 원을 썼다. 그리고 집에 갔다.", "SUPPORTED", None),
    ],
)
def test_chinese_and_korean(claim: str, document: str, verdict: str, correction: str | None) -> None:
    unit = only(claim, document)
    assert unit.verdict == verdict, unit.justification
    assert unit.correction == correction


# -- the report ---------------------------------------------------------------------------------------


@pytest.mark.req("RC-17")
def test_the_report_counts_and_maps() -> None:
    report = check("Calder hired Wendt after the strike. The old bridge may close. Purple clouds.")
    assert report.overall is not None
    assert (report.overall.supported, report.overall.refuted, report.overall.nei) == (1, 1, 1)
    assert [unit.unit_id for unit in report.units or ()] == ["s0", "s1", "s2"]
    assert fact_reason_codes(report) == ("fact_discourse_link_mismatch", "insufficient_evidence")
    assert fact_verdict(report) == "FAIL"
    assert fact_verdict(check("The old bridge may close. Purple clouds.")) == "PARTIAL"
    assert fact_verdict(check("The old bridge may close.")) == "PASS"
    assert fact_reason_codes(check("The old bridge may close.")) == ()
    assert FGFCReport.from_wire(report.to_wire()) == report


@pytest.mark.req("RC-17")
def test_every_error_type_has_a_registered_reason() -> None:
    for error, code in REASON_OF_ERROR.items():
        assert DEFAULT_REGISTRY.reasons[code] == error


@pytest.mark.req("RC-17")
def test_scores_fall_with_each_mistake() -> None:
    claims = (
        "Ines Calder opened the Larkfield ferry line on 14 March 1987.",
        "Ines Calder opened the Larkfield ferry line on 14 March 1978.",
        "Ines Harmon opened the Larkfield ferry line on 14 March 1978.",
    )
    scores = [fact_score(check(claim)) for claim in claims]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3


@pytest.mark.req("RC-17")
def test_atomic_claims_are_clauses_with_words_of_their_own() -> None:
    text = "Calder hired Wendt before the strike, and ticket prices decreased by 12 percent; the old bridge may close."
    units = check(text, unitization="atomic_claim").units or ()
    assert [unit.unit_id for unit in units] == ["s0.c0", "s0.c1", "s0.c2"]
    assert [unit.verdict for unit in units] == ["SUPPORTED", "REFUTED", "SUPPORTED"]
    assert all((unit.text or "") in text for unit in units)


@pytest.mark.req("RC-17")
def test_evidence_names_its_document_and_its_place() -> None:
    documents = [SourceText("menu", "Soup costs 5 euros."), SourceText("log", "The oven failed at noon.", "tool")]
    (unit,) = check_facts("The oven failed at noon.", documents, policy=POLICY).units or ()
    (evidence,) = unit.evidence or ()
    assert (evidence.source, evidence.ref, evidence.quote) == ("tool", "tool:log#c0-24", "The oven failed at noon.")


@pytest.mark.req("RC-17")
def test_a_long_sentence_is_quoted_where_it_matters() -> None:
    document = " ".join(f"word{number}" for number in range(80)) + " the harbour master resigned in Dunmore yesterday."
    (evidence,) = only("The harbour master resigned in Dunmore.", document).evidence or ()
    quote = evidence.quote or ""
    assert "harbour master resigned in Dunmore" in quote
    assert len(quote.split()) <= 25
    assert quote in document


def test_a_weight_of_nothing_silences_a_check() -> None:
    policy = FactCheckPolicy(doubts=POLICY.doubts.model_copy(update={"link_changed": 0.0}))
    (unit,) = check_facts("Calder hired Wendt after the strike.", [SourceText("h", HARBOUR)], policy=policy).units or ()
    assert unit.verdict == "SUPPORTED"


# -- what always holds --------------------------------------------------------------------------------

_SENTENCES = st.sampled_from(HARBOUR.replace("\n", " ").split(". "))
_TEXT = st.one_of(
    st.text(max_size=120),
    st.text(alphabet="aB1.,:-'’ \n不是三万年월않한%$€²½ΣßİǅŉA", max_size=60),
    st.lists(_SENTENCES, max_size=4).map(". ".join),
)


@pytest.mark.req("RC-17")
@given(output=_TEXT, documents=st.lists(_TEXT, max_size=3))
@settings(max_examples=examples(50), deadline=None)
def test_any_text_gives_a_sound_report(output: str, documents: list[str]) -> None:
    sources = [SourceText(str(number), text) for number, text in enumerate(documents)]
    report = check_facts(output, sources, policy=POLICY)
    assert report == check_facts(output, sources, policy=POLICY)
    assert FGFCReport.from_wire(report.to_wire()) == report
    assert 0 <= fact_score(report) <= 1
    rest = output
    for unit in report.units or ():
        assert unit.text
        assert unit.verdict in ("SUPPORTED", "REFUTED", "NOT_ENOUGH_INFO")
        before, _, rest = rest.partition(unit.text)
        assert not before.strip(), "every character stands in a unit"
        for evidence in unit.evidence or ():
            quote = evidence.quote or ""
            number, _, span = (evidence.ref or "").removeprefix("x_ref:").partition("#c")
            start, _, end = span.partition("-")
            assert documents[int(number)][int(start) : int(end)] == quote
            assert 0 < len(quote.split()) <= 25
    assert not rest.strip()


@pytest.mark.req("RC-17")
@given(output=_TEXT)
@settings(max_examples=examples(25), deadline=None)
def test_without_documents_nothing_is_supported_or_refuted(output: str) -> None:
    for sources in ([], [SourceText("empty", "")]):
        units = check_facts(output, sources, policy=POLICY).units or ()
        assert {unit.verdict for unit in units} <= {"NOT_ENOUGH_INFO"}


@pytest.mark.req("RC-17")
@given(_TEXT)
@settings(max_examples=examples(50), deadline=None)
def test_a_text_supports_itself(text: str) -> None:
    report = check(text, text)
    assert {unit.verdict for unit in report.units or ()} <= {"SUPPORTED"}
    assert fact_reason_codes(report) == (() if report.units else ("insufficient_evidence",))
