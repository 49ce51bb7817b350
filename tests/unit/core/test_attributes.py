"""What a text states of a person, what a question asks for, what the key of a fact names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment.core.text.analyzer import analyze
from muniment.core.text.stated import attributes
from muniment.core.text.stated.attributes import (
    CHANGE,
    QUANTITY,
    asked_attributes,
    key_attributes,
    marks,
    name_of,
    newly,
    other,
    own,
)
from products import for_each


def marked(text: str) -> list[str]:
    return marks(text, analyze(text))


@for_each(
    ("text", "term"),
    [
        ("I live in a small flat in Porto", own("home")),
        ("we relocated to Kyoto last month", own("home")),
        ("My friend Rachel moved back to the suburbs", other("home")),
        ("Rachel moved to Chicago", other("home")),
        ("My parents live near Lyon", other("home")),
        ("I've been working for Deloitte since May", own("work")),
        ("My brother got a new job at the port", other("work")),
        ("I got laid off on Friday", own("work")),
        ("Tom and I broke up", own("relationship")),
        ("I stopped eating meat", own("diet")),
        ("I traded the Honda in and got a Tesla", own("car")),
        ("我去年搬到了杭州", own("home")),
        ("他住在北京", other("home")),
        ("저는 작년에 서울로 이사했어요", own("home")),
    ],
)
def test_what_is_stated_and_of_whom(text: str, term: str) -> None:
    assert [each for each in marked(text) if name_of(each) and not each.endswith("!")] == [term]


@for_each(
    "text",
    [
        "I would love to live in Rome",
        "I used to live in Rome",
        "If I work at a bank I will be rich",
        "He was moved to tears",
        "I love live music in the park",
        "Let us move on to the next topic",
        "Do you work at Google?",
        "the plant needs water",
    ],
)
def test_what_is_only_thought_of_or_something_else_states_nothing(text: str) -> None:
    assert [term for term in marked(text) if name_of(term)] == []


def test_a_change_is_told_from_a_state() -> None:
    assert newly(own("home")) in marked("I moved to Berlin")
    assert newly(own("home")) not in marked("I live in Berlin")
    assert CHANGE in marked("I switched to oat milk")
    assert CHANGE not in marked("I like oat milk")
    assert CHANGE not in marked("I switched to oat milk. " + "Then it rained for hours. " * 20)


@for_each("text", ["I ran 5 miles", "three cats", "我有两只猫", "twice a week", "고양이 두 마리"])
def test_a_number_is_seen_in_figures_and_words(text: str) -> None:
    assert QUANTITY in marked(text)
    assert QUANTITY not in marked("my cats are asleep")


@for_each(
    ("text", "terms"),
    [
        ("Where does she live?", [own("home")]),
        ("where do my parents live", [other("home")]),
        ("Where does Rachel live?", [own("home"), other("home")]),
        ("Where do koalas live?", []),
        ("Who do I work for?", [own("work")]),
        ("What's my relationship status?", [own("relationship")]),
        ("我住在哪里", [own("home")]),
        ("어디에 살아요?", [own("home")]),
        ("What did I cook?", []),
        ("Which company built the bridge?", []),
    ],
)
def test_what_is_asked_and_of_whom(text: str, terms: list[str]) -> None:
    found = [asked.term for asked in asked_attributes(text)]
    assert [term for term in found if name_of(term) != "work"] == [term for term in terms if name_of(term) != "work"]
    assert (own("work") in found) is (own("work") in terms)


@for_each(
    ("text", "names"),
    [
        ("where where where do I live", ["home"]),
        ("Where? I live here", []),
        ("where did I live. Which town do I live in?", ["home"]),
        ("where did I move from", []),
        ("where do I live and where did I move from", []),
        ("where did I come from and where do I live", ["home"]),
        ("what phone have I, and what is my phone number", ["phone"]),
        ("what is my phone number", []),
        ("what is it that I drive, and which phone is mine", ["car", "phone"]),
    ],
)
def test_an_attribute_is_asked_for_within_one_sentence(text: str, names: list[str]) -> None:
    """Mutation: only what stands right behind a question word is read, or what stands in another sentence too."""
    assert [name_of(asked.term) for asked in asked_attributes(text)] == names


LONG = "and so on and on, as it goes with lists " * 12
"""More than is looked back for the start of a sentence."""


@for_each(
    ("text", "term"),
    [
        (f"My sister {LONG} lives in Rome", other("home")),
        (f"My sister said so. {LONG} lives in Rome", other("home")),
        (f"She knows that I {LONG} live in Rome", own("home")),
        (f"{LONG} living in Rome", own("home")),
        (f"My sister {LONG} Monday {LONG} lives in Rome", other("home")),
        (f"{LONG}我 {LONG}Ana住在北京", other("home")),
        (f"{LONG}朋友 {LONG}我住在北京", own("home")),
    ],
)
def test_whose_it_is_is_told_by_the_last_who_was_named_however_far_before(text: str, term: str) -> None:
    """Mutation: only so much of a long sentence is looked at, or what goes on behind the statement counts for it."""
    assert [each for each in marked(text) if name_of(each) == "home" and not each.endswith("!")] == [term]


WHO = ("I", "my", "We've", "she", "Anna", "grand", "i'm", "我", "她", "朋友", "住在", "나는", "에", "살", ",", "x")


@given(st.lists(st.sampled_from(WHO), max_size=60))
def test_whoever_is_named_is_found_as_if_the_text_ended_there(words: list[str]) -> None:
    """A text read once, as far as each statement, says the same as one that is read again for each."""
    for text in (" ".join(words), "".join(words)):
        subjects = attributes._Subjects(text)
        for at in range(len(text) + 1):
            assert subjects.is_own(at) == attributes._is_own(attributes._SUBJECT.finditer(text, 0, at))


@for_each(
    ("key", "terms"),
    [
        ("user.city", [own("home")]),
        ("home_address", [own("home")]),
        ("user.job_title", [own("work")]),
        ("user.sister.city", [other("home")]),
        ("shop.city", [other("home")]),
        ("user.favorite.tea", []),
    ],
)
def test_what_a_key_names(key: str, terms: list[str]) -> None:
    assert key_attributes(key) == terms


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert marked(text) == marked(text)
    asked_attributes(text)
    key_attributes(text)
