"""Who does what to whom: a name of the source in another's place is never supported, its own place is."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from muniment.core.policy import FactCheckPolicy
from muniment.verify.facts import SourceText, check_facts
from muniment.verify.facts._roles import Phrase, find_breaks, read_roles
from muniment.verify.facts._words import read_words
from products import for_each

POLICY = FactCheckPolicy()
PEOPLE_TEXT = (
    "Arvid Brellick|Karin Moss|Oskar Venn|Anna Prill|Marek Dvorak|Katrin Halden|Jonas Ettery|Lena Corvane|Tilda Fyfe|"
    "Samuel Thorne|Ingrid Vashti|Pavel Orlik"
)
PEOPLE = PEOPLE_TEXT.split("|")
DEEDS_TEXT = (
    "opposed the new bridge|designed the old lighthouse|repaired the eastern pier|criticised the harbour fares|"
    "published the town map|destroyed the wooden quay|bought the grain mill|rejected the school budget|"
    "discovered the silver mine|praised the museum garden|sold the railway depot|restored the abbey organ"
)
DEEDS = [(row.split()[0], " ".join(row.split()[1:])) for row in DEEDS_TEXT.split("|")]
PLACES_TEXT = "Lowick Carrow Tollburg Quenmark Zellport Umbrick"
PLACES = PLACES_TEXT.split()
REST = "The council met twice that year. {C} lived in {PL}."
SAID = ("{B} {P} {O}.", "{O} was {P} by {B}.")
TRUE = ("{A} {P} {O}.", "{O} was {P} by {A}.")
Rows = list[tuple[str, tuple[str, ...], tuple[str, ...]]]
FAMILIES: dict[str, Rows] = {
    "excepted": [
        (source, (*SAID, "Unlike {A}, {B} {P} {O}."), TRUE)
        for source in (
            "Unlike {B}, {A} {P} {O}. {B} wrote to the mayor.",
            "{A}, unlike {B}, {P} {O} in {Y}.",
            "{A} {P} {O}, unlike {B}.",
            "In contrast to {B}, {A} {P} {O} in {Y}.",
            "{A} rather than {B} {P} {O}.",
            "Instead of {B}, {A} {P} {O} in the end.",
        )
    ],
    "passive": [
        (source, SAID, TRUE)
        for source in (
            "{O} was {P} by {A} in {Y}. {B} attended the ceremony.",
            "{O}, {P} by {A} in {Y}, stands near the house of {B}.",
            "{O} had been {P} by {A} before {B} arrived in {PL}.",
            "The paper says that {O} was {P} by {A}, a friend of {B}.",
            "{A} {P} {O} for {B} in {Y}.",
            "{B} was in {PL} when {O} was {P} by {A}.",
            "{O} was later {P} by {A}. {B} did not come.",
            "With the help of {B}, {O} was {P} by {A}.",
        )
    ],
    "inserted": [
        (source, SAID, TRUE)
        for source in (
            "{A}, the brother of {B}, {P} {O} in {Y}.",
            "{A}, who had worked for {B}, {P} {O}.",
            "{A} (a pupil of {B}) {P} {O}.",
            "{A} worked at the firm of {B} and {P} {O}.",
            "{A} founded the firm. She {P} {O} in {Y}. {B} lived nearby.",
            "{A} came to {PL} in {Y}. There he {P} {O}. {B} wrote about it.",
            "{A}, together with the widow of {B}, {P} {O}.",
        )
    ]
    + [
        ("{A} succeeded {B} as director of the museum.", ("{B} succeeded {A} as director of the museum.",), ()),
        ("{A} hired {B} as head of the harbour in {Y}.", ("{B} hired {A} as head of the harbour.",), ()),
    ],
    "neighbours": [
        ("{A} {P} {O}. {B} {Q} {R}.", (*SAID, "{A} {Q} {R}."), (*TRUE, "{B} {Q} {R}.")),
        ("{A} {P} {O} in {Y}, and {B} {Q} {R}.", (*SAID, "{A} {Q} {R}."), ("{A} {P} {O}.", "{B} {Q} {R}.")),
        ("{A} and {D} {P} {O}. {B} {Q} {R}.", SAID, ("{A} {P} {O}.", "{D} {P} {O}.")),
        ("{A} {P} {O} and {Q} {R}, while {B} stayed in {PL}.", (*SAID, "{B} {Q} {R}."), ("{A} {Q} {R}.",)),
        ("{A} defeated {B} in {Y}. {D} trained {A} in {PL}.", ("{B} defeated {A}.", "{A} defeated {D}."), ()),
        ("{A} interviewed {B} in {PL}. {A} sued {D} in {Y}.", ("{A} interviewed {D} in {PL}.", "{A} sued {B}."), ()),
    ],
}
DRAWS = 5


def drawn(family: str) -> Iterator[tuple[str, str, bool]]:
    """Sources and claims of a family, with names and deeds drawn for each."""
    random = Random(f"roles/{family}")
    for source, false, true in FAMILIES[family]:
        for _ in range(DRAWS):
            one, two, three, four = random.sample(PEOPLE, 4)
            (did, what), (also, other) = random.sample(DEEDS, 2)
            words = {"A": one, "B": two, "C": three, "D": four, "P": did, "O": what, "Q": also, "R": other}
            words |= {"Y": str(random.randrange(1850, 1990)), "PL": random.choice(PLACES)}
            text = _capital(f"{source} {REST}".format(**words))
            for claim, wanted in (*((one, False) for one in false), *((one, True) for one in true)):
                yield text, _capital(claim.format(**words)), wanted


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


@pytest.mark.req("TM-14")
@pytest.mark.parametrize("family", FAMILIES)
def test_another_name_of_the_source_is_not_supported_and_the_right_one_is(family: str) -> None:
    wrong: list[tuple[str, str]] = []
    false = 0
    for source, claim, wanted in drawn(family):
        false += not wanted
        (unit,) = check_facts(claim, [SourceText("text", source)], policy=POLICY).units or ()
        if (unit.verdict == "SUPPORTED") != wanted:
            wrong.append((source, claim))
    assert false >= 60
    assert not wrong, (len(wrong), wrong[:8])


def _text(phrase: Phrase | None, text: str) -> str:
    words = read_words(text)
    return "" if phrase is None else text[words[phrase.at].start : words[phrase.end - 1].end]


@for_each(
    ("text", "verb", "agent", "patient"),
    [
        ("Unlike Moss, Brellick opposed the bridge.", "opposed", "Brellick", "bridge"),
        ("Brellick rather than Moss opposed the bridge.", "opposed", "Brellick", "bridge"),
        ("Marek Dvorak, the mayor of Ostrava, criticised the purchase.", "criticised", "Marek Dvorak", "purchase"),
        ("The mayor of Ostrava criticised the purchase.", "criticised", "mayor", "purchase"),
        ("The bridge was designed by Anna Prill in 1900.", "designed", "Anna Prill", "bridge"),
        ("Exports rose by 12 percent.", "rose", "Exports", "12 percent"),
        ("The bridge that Moss designed collapsed.", "designed", "Moss", "bridge"),
        ("Moss built the quay and sold the mill to Venn.", "sold", "Moss", "mill"),
        ("Moss agreed to sell the mill.", "sell", "Moss", "mill"),
        ("The acquisition of Ostrava Steel by Veldkamp was approved.", "acquisition", "Veldkamp", "Ostrava Steel"),
        ("Moss's brother sued Ames's firm.", "sued", "brother", "firm"),
        ("She led it until 2003.", "led", "She", "it"),
        ("Ann: Darling, buy some butter.", "buy", "", "butter"),
        ("Moss expects earnings per diluted share of two euros.", "diluted", "", ""),
        ("Jordan took the wicket of Smith, as the West Indies went to lunch.", "went", "West Indies", "lunch"),
        ("Piccoli called the rule 'unfair' Tuition rose.", "called", "Piccoli", "rule 'unfair"),
        ("The firm was sold in 1900.", "sold", "", "firm"),
    ],
)
def test_the_sides_of_a_verb(text: str, verb: str, agent: str, patient: str) -> None:
    words = read_words(text)
    at = next(place for place, word in enumerate(words) if word.text == verb)
    roles = read_roles(words, find_breaks(text, words), at)
    assert (_text(roles.agent, text), _text(roles.patient, text)) == (agent, patient)
    assert read_roles(words[at : at + 1], (0,), 0) == (None, None)


@for_each("text", ["", "and", "by by by", "who, which, that and", ", ( of of the", "was was by Moss"])
def test_roles_of_any_row_of_words(text: str) -> None:
    words = read_words(text)
    for at in range(len(words)):
        for phrase in read_roles(words, find_breaks(text, words), at):
            assert phrase is None or 0 <= phrase.at < phrase.end <= len(words)


@for_each(
    ("source", "claim"),
    [
        ("Running makes the heart muscle stronger and improves breathing.", "Running not only strengthens the heart."),
        ("The drug was approved in 1987 in Norway. It cured the rash.", ". It was approved in 1987 in Norway."),
        ("The two rivers, Elbe and Oder, froze in 1709.", "Two rivers froze in 1709."),
        ("Dvorak refused to attend the opening of the furnace.", "Dvorak did not attend the opening of the furnace."),
    ],
)
def test_what_says_the_same_is_not_held_against_a_claim(source: str, claim: str) -> None:
    report = check_facts(claim, [SourceText("text", source)], policy=POLICY)
    assert [unit.verdict for unit in report.units or ()] == ["SUPPORTED"], report.units
