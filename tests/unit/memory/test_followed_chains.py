"""Questions that go from one statement to the next, with relations and names made up for the tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import muniment
from muniment.core.text.stated.relations import may_answer, names_same
from muniment.memory.recall.chains.chain import READS_MAX, find_chain
from muniment.memory.recall.index import MemoryIndex, SpokenTurn
from muniment.memory.recall.several import asks_along
from products import for_each

START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def index_of(texts: Sequence[str], role: str = "user") -> MemoryIndex:
    return MemoryIndex(
        SpokenTurn("s", role, role, START + timedelta(minutes=place), text) for place, text in enumerate(texts)
    )


def follow(question: str, *texts: str, role: str = "user") -> list[str]:
    """The statements of the chain, in their order."""
    steps = find_chain(question, index_of(texts, role), lambda ordinals: [texts[ordinal] for ordinal in ordinals])
    return [step.statement for step in steps]


GUILDS = (
    "The warden of Tolmar Keep is Ysolde Brand.",
    "Ysolde Brand studies under Master Corvin.",
    "Master Corvin was born in the city of Ellenmoor.",
    "The river that flows through Ellenmoor is the Sull.",
    "Ellenmoor is located in the province of Varn.",
    "The banner of Varn is the Silver Heron.",
    "Halric Dun was born in the city of Varn.",
)


@pytest.mark.parametrize(
    ("question", "places"),
    [
        ("Where was the master under whom the warden of Tolmar Keep studies born?", [0, 1, 2]),
        ("What river flows through the city where Master Corvin was born?", [2, 3]),
        ("What is the banner of the province where Master Corvin was born?", [2, 4, 5]),
        ("Under whom does the warden of Tolmar Keep study?", [0, 1]),
    ],
)
def test_a_question_is_followed_from_statement_to_statement(question: str, places: list[int]) -> None:
    assert follow(question, *GUILDS) == [GUILDS[place] for place in places]


@for_each(
    ("question", "facts"),
    [
        (
            "What is the capital of the country where Ana lives?",
            ("Ana lives in Porto.", "Porto is in Portugal.", "The capital of Portugal is Lisbon."),
        ),
        ("Where does Ana's husband work?", ("Ana's husband is Rui.", "Rui works at the Harbour Office.")),
        (
            "Who is the landlord of the flat that my sister rents?",
            ("My sister rents a flat in Quill House.", "The landlord of Quill House is Mrs Okafor."),
        ),
        (
            'Which instrument does the singer of "Paper Lanterns" play?',
            ("The singer of Paper Lanterns is Jo Venn.", "Jo Venn plays the hurdy-gurdy."),
        ),
        (
            "In which country was the game that Team Orlok plays invented?",
            ("Team Orlok plays the game of kwispel.", "kwispel was invented in the country of Malta."),
        ),
    ],
)
def test_what_people_ask_along(question: str, facts: tuple[str, ...]) -> None:
    assert asks_along(question)
    other = ("The weather was fine.", "Bruno lives in Faro.", "I bought a lamp.")
    assert follow(question, *other, *facts) == list(facts)


def test_at_every_step_the_newest_value_holds() -> None:
    texts = (
        "The keeper of Gull Light is Anders Voll.",
        "Anders Voll lives in the village of Hask.",
        "The keeper of Gull Light is Mirre Tansen.",
        "Mirre Tansen lives in the village of Orrin.",
        "Mirre Tansen lives in the village of Pell.",
        "The baker of Pell is Old Sim.",
        "The baker of Orrin is Young Sim.",
    )
    asked = "Who is the baker of the village where the keeper of Gull Light lives?"
    assert follow(asked, *texts) == [texts[2], texts[4], texts[5]]
    assert follow(asked, *texts, "The baker of Pell is Tam.")[-1] == "The baker of Pell is Tam."


def test_what_only_begins_alike_is_no_other_value() -> None:
    texts = (
        "Brindle Works was founded by Odo Fenn.",
        "Brindle Works was founded in the city of Marrow.",
        "Odo Fenn was born in the city of Tarn.",
    )
    assert follow("In which city was the person who founded Brindle Works born?", *texts) == [texts[0], texts[2]]


def test_one_statement_that_answers_all_is_no_chain() -> None:
    texts = (
        "The headquarters of Brindle Works is located in the city of Marrow.",
        "The director of Brindle Works is Odo Fenn.",
        "Marrow is located in the province of Varn.",
    )
    assert follow("Which city is the headquarters of Brindle Works located in?", *texts) == []


@for_each(
    "texts",
    [
        ("Ana Costa is married to Rui Melo.", "Rui Melo works at the Harbour Office."),  # another Ana
        ("Olga of Ana Lima is a ship.", "The ship is married to the sea."),
        ("Thanks, Ana Lima, for the lovely dinner with Rui!", "Rui works at the Harbour Office."),
        ("Is Ana Lima married to Rui Melo?", "Rui Melo works at the Harbour Office."),
        ("I met Ana Lima and her husband Rui Melo.", "Rui Melo works at the Harbour Office."),
    ],
)
def test_what_states_nothing_of_the_one_asked_about_is_not_followed(texts: tuple[str, ...]) -> None:
    assert follow("Where does the husband of Ana Lima work?", *texts) == []


def test_a_part_of_a_name_is_another_name() -> None:
    texts = (
        "Ana Lima lives in the town of North Pell.",
        "The mayor of Pell is Old Sim.",
        "The mayor of North Pell Harbour is Tam Reed.",
    )
    asked = "Who is the mayor of the town where Ana Lima lives?"
    assert follow(asked, *texts) == []
    assert follow(asked, *texts, "The mayor of North Pell is Ida Berg.")[-1] == "The mayor of North Pell is Ida Berg."


def test_circles_end() -> None:
    texts = (
        "The rival of Ana Lima is Ida Berg.",
        "The rival of Ida Berg is Ana Lima.",
        "The teacher of Ida Berg is Tam Reed.",
    )
    assert follow("Who is the teacher of the rival of Ana Lima?", *texts) == [texts[0], texts[2]]
    assert len(follow("Who is the rival of the rival of the rival of Ana Lima?", *texts)) <= 2


def test_of_two_ways_the_one_that_answers_more_is_taken() -> None:
    texts = (
        "The author of Salt Roads is Ida Berg.",
        "Ida Berg is a citizen of Norway.",
        "Ida Berg is married to Tam Reed.",
        "Tam Reed is a citizen of Iceland.",
    )
    assert follow("What is the citizenship of the spouse of the author of Salt Roads?", *texts) == [
        texts[0],
        texts[2],
        texts[3],
    ]
    assert follow("What is the citizenship of the author of Salt Roads?", *texts) == list(texts[:2])


def test_my_sister_is_nobody_in_particular_where_several_tell() -> None:
    texts = ["My sister lives in Porto.", "The mayor of Porto is Ida Berg.", "Good morning!"]
    asked = "Who is the mayor of the town where my sister lives?"

    def read(ordinals: Sequence[int]) -> list[str]:
        return [texts[ordinal] for ordinal in ordinals]

    told = [SpokenTurn("s", who, "user", START, text) for who, text in zip(("Bo", "Bo", "Kim"), texts, strict=True)]
    assert find_chain(asked, MemoryIndex(told), read) == ()
    assert len(find_chain(asked, index_of(texts), read)) == 2


@pytest.mark.parametrize("role", ["assistant", "tool", "system"])
def test_what_nobody_says_who_is_asked_for_states_nothing(role: str) -> None:
    assert follow("Under whom does the warden of Tolmar Keep study?", *GUILDS, role=role) == []


def test_a_page_that_a_tool_read_takes_no_place_in_a_chain() -> None:
    with muniment.open(":memory:") as mem:
        run = mem.run(user_id="ana")
        run.observe("user", "Ana lives in Porto.")
        run.observe("user", "The landlord of Porto is Mrs Okafor.")
        run.observe_tool("browser", args={"url": "a.example"}, content="The landlord of Porto is Mallory.")
        first = run.search("Who is the landlord of the city where Ana lives?")[0]
        assert first.text == "The landlord of Porto is Mrs Okafor."


def test_what_may_not_be_found_is_not_followed() -> None:
    index = index_of(GUILDS)
    among = np.ones(len(GUILDS), bool)
    among[1] = False
    asked = "Under whom does the warden of Tolmar Keep study?"
    assert find_chain(asked, index, lambda ordinals: [GUILDS[each] for each in ordinals], among) == ()


def test_what_is_read_is_bounded_and_the_same_again() -> None:
    texts = [f"Hub {number} is linked to Hub {other}." for number in range(60) for other in range(60)]
    read: list[int] = []

    def reader(ordinals: Sequence[int]) -> list[str]:
        read.extend(ordinals)
        return [texts[ordinal] for ordinal in ordinals]

    index = index_of(texts)
    asked = "What is the link of the link of the link of Hub 1 that is linked to the hub?"
    first = find_chain(asked, index, reader)
    assert len(read) <= READS_MAX
    assert find_chain(asked, index, reader) == first


@for_each(
    "query",
    [
        "What did Ana buy?",
        "Who was the keeper of Gull Light before?",
        "Where did the former warden of Tolmar Keep live?",
        "I talked to Ana. She said that the warden is ill. What is the name of the town?",
        "the capital of " * 40,
        "안나가 사는 나라의 수도는?",
        "",
    ],
)
def test_what_asks_along_no_chain(query: str) -> None:
    assert not asks_along(query)


@for_each(
    ("asked", "stated", "same"),
    [
        ("spous", "marri", True),
        ("citizenship", "citizen", True),
        ("where", "citi", True),
        ("citi", "where", False),
        ("banner", "river", False),
        ("car", "care", False),
    ],
)
def test_words_that_name_one_relation(asked: str, stated: str, same: bool) -> None:
    assert names_same(asked, stated) is same
    assert asked in may_answer(asked)


# -- through the public face --------------------------------------------------------------------------


def told(mem: muniment.Memory, user: str, *texts: str) -> list[str]:
    run = mem.run(user_id=user, session_id=f"of-{user}")
    events = [
        {"role": "user", "content": text, "ts": START + timedelta(minutes=place)} for place, text in enumerate(texts)
    ]
    return [entry.id for entry in run.observe_many(events)]


ASKED = "What is the capital of the country where Ana lives?"
HOME = ("Ana lives in Porto.", "Porto is in Portugal.", "The capital of Portugal is Lisbon.")
OTHERS = tuple(f"The colour of door {number} is green, and its handle is made of brass." for number in range(12))


def test_search_puts_the_turns_of_a_chain_together_and_tells_why() -> None:
    with muniment.open(":memory:") as mem:
        ids = told(mem, "u", *OTHERS, *HOME)
        hits = mem.run(user_id="u").search(ASKED, k=5)
    first, middle, last = ids[-3:]
    assert [hit.id for hit in hits[:3]] == [last, middle, first]
    assert f"followed from [{middle}]: Portugal" in hits[0].why
    assert f"followed from [{first}]: Porto" in hits[1].why
    assert "starts a chain: Porto" in hits[2].why
    assert [hit.score for hit in hits] == sorted([hit.score for hit in hits], reverse=True)


def test_a_packet_has_the_whole_chain() -> None:
    with muniment.open(":memory:") as mem:
        told(mem, "u", *OTHERS, *HOME)
        text = mem.run(user_id="u", session_id="asking").compose("responder", query=ASKED, max_tokens=256).text
    assert all(each.rstrip(".") in text for each in HOME)


def test_what_somebody_else_told_is_not_followed() -> None:
    with muniment.open(":memory:") as mem:
        told(mem, "u", *OTHERS, HOME[0], HOME[1])
        told(mem, "v", HOME[2])
        hits = mem.run(user_id="u").search(ASKED, k=5)
    assert not any("followed" in reason for hit in hits for reason in hit.why)
    assert all(hit.text != HOME[2] for hit in hits)


def test_what_was_forgotten_is_not_followed() -> None:
    with muniment.open(":memory:") as mem:
        ids = told(mem, "u", *OTHERS, *HOME)
        mem.forget(event=ids[-2])
        hits = mem.run(user_id="u").search(ASKED, k=5)
    assert not any("followed" in reason for hit in hits for reason in hit.why)


def test_where_no_chain_answers_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["What is the colour of the door with the handle that is made of brass?", "Who lives in Porto?"]
    with muniment.open(":memory:") as mem:
        told(mem, "u", *OTHERS, *HOME)
        run = mem.run(user_id="u")
        with_chains = [run.search(query, k=8) for query in asked]
        monkeypatch.setattr("muniment.memory.recall.chains.chained.find_chain", lambda *_: ())
        assert [run.search(query, k=8) for query in asked] == with_chains


@for_each(
    "told_of_ana",
    [
        "Ana does not live in Porto.",
        "Ana doesn't live in Porto.",
        "Ana doesn’t live in Porto.",
        "Ana never lived in Porto.",
        "Ana lives no longer in Porto.",
        "Ana used to live in Porto.",
        "Ana would live in Porto.",
        "Ana might live in Porto.",
        "Ana wants to live in Porto.",
        "Ana will live in Porto.",
        "Ana probably lives in Porto.",
    ],
)
def test_what_is_denied_or_only_thought_of_is_not_followed(told_of_ana: str) -> None:
    assert follow(ASKED, told_of_ana, *HOME[1:]) == []
    assert follow(ASKED, *HOME, told_of_ana.replace("Porto", "Malmö"), "Malmö is in Sweden.") == list(HOME)
    assert follow(ASKED, *HOME[::2], "Porto is not in Portugal.") == []


@pytest.mark.parametrize("denial", ["Ana does not live in Porto.", "Ana lives no longer in Porto."])
def test_what_was_denied_since_is_not_followed(denial: str) -> None:
    assert follow(ASKED, *HOME, denial) == []
    assert follow(ASKED, denial, *HOME) == list(HOME)
    assert follow(ASKED, *HOME, "Porto is not in Portugal.") == []


def test_a_word_that_is_written_as_a_name_denies_and_doubts_nothing() -> None:
    facts = ("Will Nevers is married to Hope Shaw.", "Hope Shaw was born in Porto.")
    assert follow("Where was the wife of Will Nevers born?", *facts) == list(facts)
