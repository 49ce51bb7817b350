"""Claims laid beside the source slot by slot: a swapped slot is never supported, the same in other words still is."""

from __future__ import annotations

from random import Random

import pytest
from benchmarks.swaps import FALSE_KINDS, claims_of

from muniment.contracts.runs import FGFCUnit
from muniment.core.policy import FactCheckPolicy
from muniment.core.text.analyzer import stem
from muniment.verify.facts import Source, SourceText, check_facts, check_source
from muniment.verify.facts._senses import is_irregular, is_ordinary, is_verb, relation
from muniment.verify.facts._senses import opposed as table_opposed
from muniment.verify.facts.check import judge_units
from products import for_each

POLICY = FactCheckPolicy()
FIRM_TEXT = """Veldkamp acquired Ostrava Steel in March 2019 for 420 million euros. The company closed two plants in
Moravia. Katrin Bauer founded Veldkamp in Rotterdam in 1974. She led it until 2003. Ostrava Steel
employed 3,100 people before the sale. Marek Dvorak, the mayor of Ostrava, criticised the purchase.
Dvorak did not attend the opening of the new furnace. The European Commission (EC) approved the merger on
7 May 2019. Exports rose by 12 percent in 2020."""
FIRM = " ".join(FIRM_TEXT.split())


def unit_of(claim: str, document: str = FIRM) -> FGFCUnit:
    (unit,) = check_facts(claim, [SourceText("text", document)], policy=POLICY).units or ()
    return unit


SWAPS = [
    ("subject", "Dvorak acquired Ostrava Steel in March 2019 for 420 million euros."),
    ("subject", "Halvorsen acquired Ostrava Steel in March 2019 for 420 million euros."),
    ("subject", "Bauer criticised the purchase."),
    ("subject", "Marek Dvorak founded Veldkamp in Rotterdam in 1974."),
    ("subject", "Kestrel employed 3,100 people before the sale."),
    ("object", "Veldkamp acquired Rotterdam in March 2019 for 420 million euros."),
    ("object", "Katrin Bauer founded Ostrava Steel in Rotterdam in 1974."),
    ("turned round", "Ostrava Steel acquired Veldkamp in March 2019 for 420 million euros."),
    ("verb", "Veldkamp sued Ostrava Steel in March 2019 for 420 million euros."),
    ("verb", "Katrin Bauer closed Veldkamp in Rotterdam in 1974."),
    ("verb", "The European Commission criticised the merger on 7 May 2019."),
    ("opposite", "The European Commission rejected the merger on 7 May 2019."),
    ("opposite", "The company opened two plants in Moravia."),
    ("opposite", "Exports fell by 12 percent in 2020."),
    ("number", "Veldkamp acquired Ostrava Steel in March 2019 for 3,100 million euros."),
    ("number", "Ostrava Steel employed 420 people before the sale."),
    ("number", "Exports rose by 17 percent in 2020."),
    ("year", "Katrin Bauer founded Veldkamp in Rotterdam in 2003."),
    ("year", "Exports rose by 12 percent in 2019."),
    ("date", "The European Commission approved the merger on 9 May 2019."),
    ("month", "Veldkamp acquired Ostrava Steel in May 2019 for 420 million euros."),
    ("place", "Katrin Bauer founded Veldkamp in Moravia in 1974."),
    ("place", "The company closed two plants in Rotterdam."),
    ("polarity", "Dvorak attended the opening of the new furnace."),
    ("polarity", "The European Commission did not approve the merger on 7 May 2019."),
    ("polarity", "Katrin Bauer never founded Veldkamp in Rotterdam."),
]


@pytest.mark.req("TM-14")
@for_each(("slot", "claim"), SWAPS)
def test_a_swapped_slot_is_never_supported(slot: str, claim: str) -> None:
    unit = unit_of(claim)
    assert unit.verdict != "SUPPORTED", slot
    assert unit.error_type is not None
    assert unit.evidence, "the quote stands beside it"


TRUE = [
    ("as it stands", "Veldkamp acquired Ostrava Steel in March 2019 for 420 million euros."),
    ("passive", "Ostrava Steel was acquired by Veldkamp in March 2019."),
    ("passive", "Veldkamp was founded by Katrin Bauer in Rotterdam in 1974."),
    ("passive", "The purchase was criticised by Marek Dvorak."),
    ("synonym", "Katrin Bauer established Veldkamp in Rotterdam in 1974."),
    ("noun", "The acquisition of Ostrava Steel by Veldkamp was in March 2019."),
    ("alias", "The EC approved the merger on 7 May 2019."),
    ("short name", "Bauer founded Veldkamp in Rotterdam in 1974."),
    ("date", "The European Commission approved the merger on May 7, 2019."),
    ("date", "The European Commission approved the merger on 2019-05-07."),
    ("number", "Exports rose by twelve percent in 2020."),
    ("pronoun", "Katrin Bauer led Veldkamp until 2003."),
    ("denied too", "Dvorak didn't attend the opening of the new furnace."),
    ("part", "Ostrava Steel employed 3,100 people."),
]


@pytest.mark.req("TM-14")
@for_each(("form", "claim"), TRUE)
def test_the_same_in_other_words_stays_supported(form: str, claim: str) -> None:
    unit = unit_of(claim)
    assert unit.verdict == "SUPPORTED", (form, unit.justification)


@pytest.mark.req("TM-14")
@pytest.mark.parametrize(
    ("claim", "slot", "mine", "theirs", "error"),
    [
        ("Dvorak acquired Ostrava Steel in March 2019.", "subject", "Dvorak", "Veldkamp", "EntE"),
        ("Veldkamp sued Ostrava Steel in March 2019 for 420 million euros.", "verb", "sued", "acquired", "PredE"),
        ("Katrin Bauer founded Veldkamp in Moravia in 1974.", "place", "Moravia", "Rotterdam", "CircE"),
    ],
)
def test_the_report_names_the_slot_both_words_and_the_quote(
    claim: str, slot: str, mine: str, theirs: str, error: str
) -> None:
    unit = unit_of(claim)
    assert unit.error_type == error
    assert unit.justification is not None
    assert f"{slot}: “{mine}”" in unit.justification
    assert f"“{theirs}”" in unit.justification
    assert theirs in (unit.evidence or ())[0].quote


NAMES = (
    "Arvidsen",
    "Brellick",
    "Corvane",
    "Dastrup",
    "Elmwick",
    "Fyfeston",
    "Gorringe",
    "Hexley",
    "Ivarsson",
    "Jendrek",
)
PLACES = ("Tollburg", "Quenmark", "Vashmere", "Zellport", "Umbrick", "Wrexa")
VERBS_TEXT = (
    "acquired criticised hired rescued praised sued trained visited defeated painted warned arrested interviewed "
    "married replaced"
)
VERBS = VERBS_TEXT.split()


def _story(random: Random) -> tuple[str, list[tuple[str, str, str, str, str]]]:
    """Sentences of names and verbs that are in no set, and what each of them says."""
    names, places = random.sample(NAMES, 8), random.sample(PLACES, 4)
    verbs, years = random.sample(VERBS, 4), random.sample(range(1950, 2020), 4)
    rows = [(names[2 * at], verbs[at], names[2 * at + 1], places[at], str(years[at])) for at in range(4)]
    return " ".join(f"{who} {did} {whom} in {where} in {when}." for who, did, whom, where, when in rows), rows


@pytest.mark.req("TM-14")
def test_unseen_names_and_verbs_swapped_in_each_slot() -> None:
    """One of the five slots of a row is another row's: never supported; as it stands without a slot: supported."""
    random = Random("unseen names")
    wrong: list[str] = []
    asked = 0
    for _ in range(40):
        text, rows = _story(random)
        source = Source([SourceText("text", text)])
        row, other = random.sample(rows, 2)
        for slot in range(5):
            made = [*row]
            made[slot] = other[slot]
            who, did, whom, where, when = made
            claim = f"{who} {did} {whom} in {where} in {when}."
            (unit,) = check_source(claim, source, policy=POLICY).units or ()
            asked += 1
            if unit.verdict == "SUPPORTED":
                wrong.append(claim)
        for claim in (f"{row[0]} {row[1]} {row[2]}.", f"{row[2]} was {row[1]} by {row[0]} in {row[3]}."):
            (unit,) = check_source(claim, source, policy=POLICY).units or ()
            asked += 1
            if unit.verdict != "SUPPORTED":
                wrong.append(claim)
    assert len(wrong) <= 0.03 * asked, wrong


ARTICLE_TEXT = """The harbour of Lowick opened in 1872. Gerta Halden designed the old lighthouse for the harbour board
in 1881. Halden published a book about tides in 1890, and the Royal Society praised it. In 1893 a storm
destroyed the eastern pier. Samuel Thorne repaired the pier for 5,400 pounds. He was not paid until 1895.
The railway from Lowick to Carrow was opened by Lord Ames on 3 June 1899. It carried 210,000 passengers
in the first year. The Carrow Gazette criticised the fares. The board reduced them by 15 percent in 1901.
Oskar Venn bought the harbour in 1922. Venn sold it to Lowick Council in 1931. The council built a new
quay of stone. Fishing boats were moved to the northern basin in 1934. Anna Prill founded the museum in
the lighthouse. She was elected mayor in 1951. In 1960 the council honoured Gerta Halden, Samuel Thorne,
Oskar Venn and Anna Prill. The museum is open from April to October."""
ARTICLE = " ".join(ARTICLE_TEXT.split())


@pytest.mark.req("TM-14")
@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_generated_swaps_are_not_supported(seed: str) -> None:
    source = Source([SourceText("text", ARTICLE)])
    made = [one for one in claims_of(ARTICLE, seed, 30) if not one.true]
    passed = [
        one
        for one in made
        if all(unit.verdict == "SUPPORTED" for unit in check_source(one.text, source, policy=POLICY).units or ())
    ]
    assert len(made) > 60
    assert {one.kind for one in made} >= set(FALSE_KINDS) - {"turned round", "month or day", "place"}
    assert len(passed) <= 0.05 * len(made), passed


@pytest.mark.req("TM-14")
def test_every_sentence_supports_itself_and_has_its_slots_counted() -> None:
    source = Source([SourceText("text", ARTICLE)])
    for judged in judge_units("Gerta Halden designed the old lighthouse in 1881.", source, POLICY):
        assert judged.alignment.subject.matched == 1
        assert judged.alignment.verb.share("matched") == 1.0
        assert judged.alignment.time.contradicted == 0
        assert judged.alignment.place.share("unmatched") == 0.0
    for judged in judge_units("Oskar Venn designed the old lighthouse in 1881.", source, POLICY):
        assert judged.alignment.subject.matched == 0
        assert judged.alignment.swapped > 0


def test_words_are_related_as_in_the_table() -> None:
    def related(one: str, other: str) -> float:
        return relation(stem(one), stem(other))

    assert related("acquired", "acquires") == 1.0
    assert related("established", "founded") > 0.5
    assert related("bought", "purchase") > 0.5
    assert related("acquired", "acquisition") > 0.5
    assert related("built", "construction") > 0.5
    assert related("married", "announced") == 0.0
    assert is_irregular("wrote")
    assert not is_irregular("acquired")
    assert is_ordinary(stem("researchers"))
    assert not is_ordinary("halvorsen")
    assert is_verb(stem("acquired"))
    assert stem("fall") in table_opposed(stem("rise"))


@pytest.mark.timeout(60)
@for_each(
    "piece",
    ["Alder met Birch in 1999. ", "not ", "A B C ", "Alder ", "12 13 14 ", "was bought by ", "Alder, Birch and "],
)
def test_checks_against_hostile_texts_complete(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    check_facts(text[:2000], [SourceText("text", text)], policy=POLICY)
