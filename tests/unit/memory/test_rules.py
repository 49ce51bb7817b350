"""The closed list of facts that a message states beyond doubt (MP-17, TM-01), and everything that it leaves alone."""

from __future__ import annotations

import pytest

from muniment.memory._rules import CHARS_MAX, extract_certain, find_endings
from products import for_each

STATED = {
    "My name is Ana.": "Ana",
    "my name is Ana": "Ana",
    "Hi there, my name is Ana Lopez! Can you help me with my taxes?": "Ana Lopez",
    "My name's McKenzie and I'm new here.": "McKenzie",
    "Well, my name’s Jean-Claude O’Neill.": "Jean-Claude O’Neill",
    "Nice to meet you. My name is Vincent van Gogh": "Vincent van Gogh",
    "My name is Álvaro Núñez.": "Álvaro Núñez",
    "I live in Berlin.": "Berlin",
    "I currently live in Rio de Janeiro, where it never snows?": None,
    "I currently live in Rio de Janeiro with my wife.": "Rio de Janeiro",
    "What's the weather like? We live in Portland, Oregon.": "Portland, Oregon",
    "I was born in Cork, but now I live in the Netherlands.": "the Netherlands",
    "No, I live in New York City and I take the subway.": "New York City",
    "i live in Leeds right now": "Leeds",
    "I live in Texas too.": "Texas",
}


@pytest.mark.req("MP-17", "TM-01")
@for_each("text, value", STATED.items())
def test_what_a_plain_sentence_states_is_found_with_its_sentence(text: str, value: str | None) -> None:
    found = extract_certain(text)
    assert [each.value for each in found] == ([] if value is None else [value])
    for each in found:
        assert each.key == ("user.name" if "name" in text else "user.location")
        assert each.quote in text
        assert str(each.value) in each.quote


NOT_STATED = {
    "what was once read wrongly": (
        "I'll see the doctor on April 3 and then I'm on April until June.",
        "I'm 87.5% toward my goal!",
        "My girlfriend Toby ate my shoes again. He is a good dog.",
        "In chapter two of my novel the hero speaks. I live in Japan.",
        "My daughter is allergic to peanuts.",
        "I moved to Postgres last week.",
        "I'm from the data team.",
    ),
    "quotations": (
        '"My name is Ana."',
        "She wrote “I live in Berlin.”",
        "„Ich bin da. I live in Berlin.“",
        "'My name is Ana'",
        "> My name is Ana.",
        "The sign reads: I live in Berlin.",
        "「My name is Ana.」",
    ),
    "somebody else": (
        "My sister's name is Ana.",
        "My brother lives in Rome.",
        "His name is Ana. He lives in Rome.",
        "Ana told me this. I live in Rome.",
        "My mom says I live in Rome.",
    ),
    "denials and ends": (
        "My name is not Ana.",
        "I don't live in Berlin.",
        "I never lived in Berlin.",
        "I no longer live in Berlin.",
        "I used to live in Berlin.",
        "I lived in Berlin.",
        "I live in Berlin until May.",
        "I live in Berlin. Wait, I mean Hamburg.",
        "I live in Berlin. I live in Hamburg.",
    ),
    "questions and suppositions": (
        "My name is Ana?",
        "Do you think I live in Berlin?",
        "If I live in Berlin, what do I pay?",
        "Suppose I live in Berlin.",
        "Imagine this. I live in Berlin.",
        "I might live in Berlin.",
        "I would live in Berlin.",
        "I wish. I live in Berlin.",
        "Let's assume my name is Ana.",
    ),
    "jokes": (
        "I live in Berlin. Just kidding!",
        "My name is Batman lol",
        "I live in Atlantis 😂",
        "I live in Berlin ;)",
        "I live in Mordor.",
        "I live in Narnia.",
        "I live in Slack.",
        "I live in Excel.",
        "I live in fear.",
        "I live in the Matrix.",
        "I live in Room Five.",
    ),
    "drafts, roles, other people's texts": (
        "Translate this into French. My name is Ana.",
        "Proofread my letter. My name is Ana. I live in Berlin.",
        "Act as a tour guide. I live in Rome.",
        "You are Max. My name is Ana.",
        "Write a poem that begins with my name is Ana.",
        "Here is what the character says. I live in Rome.",
        "Fix my English please. I live in Lisbon.",
        "What is a good reply to this? My name is Ana and I love you.",
        "Let's play a game. My name is Ana.",
        "*bows* My name is Igor.",
        "Dear Sir or Madam\n\nMy name is Ana.",
        "My name is Ana\nI live in Rome\nI work at night",
    ),
    "code, markup, forms": (
        "```\nMy name is Ana.\n```",
        "`I live in Berlin.`",
        "<p>My name is Ana.</p>",
        "print(My name is Ana.) # I live in Berlin.",
        "My name is [your name].",
        "My name is {name}.",
        "My name is User 1.",
        "My name is user_1.",
        "name: Ana | My name is Ana.",
        "- My name is Ana.",
        "https://example.org I live in Berlin.",
    ),
    "values in doubt": (
        "MY NAME IS ANA.",
        "My Name Is Earl",
        "my name is misspelled.",
        "My name is Dr. Smith.",
        "My name is Karen's.",
        "My name is 小明.",
        "I live in a small town.",
        "I live in St. Louis.",
        "I live in Bosnia and Herzegovina.",
        "I live in Berlin and Hamburg.",
        "My name is A\u200bna.",
        "I live in B.",
    ),
    "languages that nobody measured": (
        "Ich heiße Ana. Ich wohne in Berlin.",
        "Je m'appelle Ana. J'habite à Paris.",
        "Me llamo Ana. Vivo en Madrid.",
        "Meu nome é Ana. Moro em Lisboa.",
        "我叫小明。我住在深圳。",
        "私の名前は花子です。東京に住んでいます。",
        "제 이름은 민수예요. 저는 서울에 살아요.",
    ),
}


@pytest.mark.req("MP-17", "TM-01")
@for_each("text", [text for texts in NOT_STATED.values() for text in texts])
def test_what_is_not_stated_beyond_doubt_is_left_alone(text: str) -> None:
    assert extract_certain(text) == []


@pytest.mark.req("MP-17")
def test_a_message_states_several_facts_and_each_once() -> None:
    found = extract_certain("Hi, my name is Ana. I live in Berlin. Yes, I live in Berlin. What should I cook?")
    assert [(each.key, each.value) for each in found] == [("user.name", "Ana"), ("user.location", "Berlin")]


@pytest.mark.req("TM-13")
def test_a_long_message_is_not_read() -> None:
    assert extract_certain("I live in Berlin." + " " * CHARS_MAX) != []
    assert extract_certain("Hello. " * (CHARS_MAX // 7) + "I live in Berlin. Bye now, and thanks.") == []
    for part in ("I live in Berlin. ", "my name is ", "Aa, ", ".", "oh, ", "I moved "):
        text = part * 200_000
        assert extract_certain(text) == []
        find_endings(text)
