"""Names: in other letters, as people are called, with a slip, and what their spellings have in common."""

from __future__ import annotations

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.analyzer import term_hash
from muniment.core.text.latin_names import plain
from muniment.core.text.names import NAME, also_called, called, is_slip, name_key, name_terms
from muniment.memory.recall.index import index_text
from products import for_each


@for_each(
    ("written", "spelled"),
    [
        ("José", "jose"),
        ("Zoë", "zoe"),
        ("Łukasz", "lukasz"),
        ("Søren", "soren"),
        ("Strauß", "strauss"),
        ("Иван", "ivan"),
        ("Мухаммад", "muhammad"),
        ("Наталья", "natalya"),
        ("Γιώργος", "giorgos"),
        ("민수", "minsu"),
        ("지은", "jieun"),
        ("ケンジ", "kenji"),
        ("さくら", "sakura"),
        ("しょうた", "shouta"),
        ("きょうこ", "kyouko"),
        ("محمد", "mhmd"),
        ("דוד", "dvd"),
        ("李明", ""),
        ("R2-D2", "rd"),
    ],
)
def test_a_name_in_plain_letters(written: str, spelled: str) -> None:
    assert plain(written) == spelled


@for_each(
    "pair",
    ["Bob Robert", "Kate Katherine", "Katie Catherine", "Mike Michael", "Sasha Alexander", "Pepe José", "Liz Elizabeth",
     "Bill William", "Paco Francisco", "Misha Mikhail", "Mohamed Muhammad", "Nacho Ignacio", "Peggy Margaret"],
)  # fmt: skip
def test_what_somebody_is_called(pair: str) -> None:
    one, other = map(plain, pair.split())
    assert called(one) & called(other)
    assert called(other) & called(one)


@for_each("pair", ["Alexander Alexandra", "Samuel Samantha", "Maria Mario", "John Ivan", "Daniel Danielle", "Kate Emi"])
def test_two_names_are_two_even_where_they_share_a_nickname(pair: str) -> None:
    one, other = map(plain, pair.split())
    assert not called(one) & called(other)


@for_each(
    "pair",
    ["muhhamed muhammad", "caroine caroline", "carloine caroline", "mellanie melanie", "jhon john", "kevn kevin",
     "paolla paola", "elizabteh elizabeth", "kathrein katherine", "jonathen jonathan", "zorblx zorblax",
     "karoline caroline"],
)  # fmt: skip
def test_a_slip(pair: str) -> None:
    spelled, name = pair.split()
    assert is_slip(spelled, name)


@for_each(
    "pair",
    ["mario maria", "maria mario", "danielle daniel", "erica eric", "elisa elise", "marko marka", "zorblaxa zorblax",
     "ann ana", "tim tom", "kate nate", "paris parker", "caroline caroline", "lena lara", "brian ryan"],
)  # fmt: skip
def test_another_name_is_no_slip(pair: str) -> None:
    spelled, name = pair.split()
    assert not is_slip(spelled, name)


@for_each(
    "spellings",
    ["Muhammad Muhhamed Mohamed Mohammed Мухаммад", "Caroline Karoline Carolyn Caroleen", "Stephen Stefan",
     "Christopher Kristofer Christofer", "Thomas Tomas Tommas", "Philippa Filipa"],
)  # fmt: skip
def test_spellings_of_a_name_have_a_key_in_common(spellings: str) -> None:
    assert len({name_key(word) for word in spellings.split()}) == 1


def test_names_that_sound_otherwise_have_other_keys_and_short_ones_have_none() -> None:
    words = "Muhammad Mahmoud Caroline Catherine Kathleen Jonathan Barcelona Melanie Martin Marina".split()  # noqa: SIM905
    assert len({name_key(word) for word in words}) == len(words)
    assert not any(map(name_key, ["Maria", "Kate", "Mike", "Sean", "李明", "", "A"]))


def test_the_names_in_a_text() -> None:
    text = "Yesterday Kevin met Muhhamed in Barcelona. Melanie was late on Monday, the NASA badge too. Gardening waits."
    assert name_terms(text) == [NAME + name_key(word) for word in ["Kevin", "Muhammad", "Barcelona", "Melanie"]]
    assert name_terms("nobody is named here, said i") == []


def test_a_turn_is_indexed_by_its_names_and_they_count_as_no_words() -> None:
    said = date(2024, 3, 1)
    (passage,) = index_text("I met Muhammad.", said)
    assert passage.terms.count(term_hash(NAME + name_key("Muhhamed"))) == 1
    assert passage.length == index_text("I met muhammad.", said)[0].length


def test_what_else_somebody_is_called_leaves_out_the_form_itself_and_everyday_words() -> None:
    forms = also_called("kate")
    assert {"katherine", "katie", "catherine"} <= set(forms)
    assert "kate" not in forms
    assert "cat" not in forms
    assert also_called("zorblax") == []


@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    assert all("a" <= letter <= "z" for letter in plain(text))
    assert name_terms(text) == name_terms(text)
    is_slip(plain(text), "caroline")
    name_key(text)
