"""Who asks for advice: what they said of themselves stands in the packet, though the question has no word of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from benchmarks.advice_chats import CHOOSING
from benchmarks.advice_packets import turns_of

from muniment.handles.memory import Memory
from muniment.packets import gathering
from muniment.packets.advice import bringing
from muniment.packets.advice.statements import read_standing
from muniment.packets.compose.audit import audit

pytestmark = pytest.mark.soak

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
SMALL_TALK = (
    "We painted the hallway green.",
    "The train was late on Friday.",
    "I finally fixed the gate.",
    "Jonas called about the lamp.",
    "It rained all Sunday.",
)


def chat(mem: Memory, said: Sequence[str | tuple[str, str]], *, between: int = 6, **more: Any) -> dict[str, str]:
    """The ids of what was said, by its text, in sessions of ten turns with small talk in between."""
    turns: list[tuple[str, str]] = []
    for each in said:
        turns += [("user" if at % 2 == 0 else "assistant", SMALL_TALK[at % 5]) for at in range(between)]
        turns.append(("user", each) if isinstance(each, str) else each)
    ids: dict[str, str] = {}
    for at, (role, text) in enumerate(turns):
        run = mem.run(user_id="u-1", session_id=f"s{at // 10}", run_id=f"r{at // 10}")
        if role == "tool":
            ids[text] = run.observe_tool("fetch", args={"page": at}, content=text).id
        else:
            ids[text] = run.observe(role, text, ts=(START + timedelta(minutes=7 * at)).isoformat(), **more).id
    return ids


def ask(mem: Memory, query: str, purpose: str = "responder", max_tokens: int = 512, **more: Any) -> Any:
    return mem.run(user_id="u-1", session_id="asking").compose(
        purpose, query=query, max_tokens=max_tokens, now=NOW, **more
    )


def brought(build: Any) -> set[str]:
    return {hit.turn.text for hit in build.pool.hits if hit.standing is not None}


DINNER, TRIP, DATABASE = (
    "Where should I go for dinner?",
    "Help me plan a trip in May.",
    "Which database should I use for the new service?",
)
TOLD = [
    (DINNER, "I'm vegetarian."),
    (DINNER, "We are vegetarians at home."),
    (DINNER, "I'm allergic to peanuts."),
    (DINNER, "I've got a shellfish allergy."),
    (DINNER, "I'm lactose intolerant."),
    (DINNER, "My wife can't eat gluten."),
    (DINNER, "Our son Omar has a nut allergy."),
    (DINNER, "I can't stand mushrooms."),
    (DINNER, "I don't like spicy food."),
    (DINNER, "I don't eat pork."),
    (DINNER, "We keep kosher."),
    (DINNER, "I'm pregnant."),
    (DINNER, "I live in Leipzig."),
    (DINNER, "I moved to Graz last month."),
    (DINNER, "We moved to Graz in spring."),
    (DINNER, "We live in Kirchberg with two cats."),
    ("Which antibiotic could I ask my doctor for?", "I'm allergic to penicillin."),
    ("What can I take for a headache?", "I'm pregnant."),
    (DINNER, "Money is tight at the moment."),
    (DINNER, "I can't afford more than 30 euros."),
    (DINNER, "We have two kids."),
    ("Any ideas for lunch?", "I'm diabetic."),
    ("Wo soll ich heute Abend essen gehen?", "Ich bin Vegetarierin."),
    ("Wo soll ich heute Abend essen gehen?", "Ich bin allergisch gegen Nüsse."),
    ("Was kann ich heute kochen?", "Ich bin vegan."),
    (TRIP, "I'm afraid of flying."),
    (TRIP, "I have a dog called Bruno."),
    (TRIP, "My daughter uses a wheelchair."),
    (TRIP, "We don't own a car."),
    (TRIP, "I don't do well in the heat."),
    ("Which sport should I try?", "I have a bad knee."),
    ("Which sport should I try?", "I can't swim."),
    ("Could you make me a workout plan?", "I work night shifts."),
    ("What should we do on Sunday?", "I dislike crowds."),
    ("Should we get a pet?", "My husband is allergic to cats."),
    ("What phone should I get?", "My budget is 400 dollars."),
    ("What phone should I get?", "I use a Mac for everything."),
    (DATABASE, "We write everything in Go here."),
    (DATABASE, "All our services run on AWS."),
    (DATABASE, "We already run PostgreSQL."),
    (DATABASE, "Our data must stay in the EU."),
    (DATABASE, "We have to comply with GDPR."),
    (DATABASE, "We are a team of three developers."),
    (DATABASE, "I hate Java."),
]


@pytest.mark.soak
@pytest.mark.parametrize(("query", "said"), TOLD)
def test_what_holds_of_the_asker_stands_in_the_packet(mem: Memory, query: str, said: str) -> None:
    ids = chat(mem, [said], between=24)
    build = ask(mem, query)
    assert said in build.text
    assert said in brought(build)
    assert ids[said] in build.marks.values()
    assert build.found
    selected = [each for each in build.packet.explain.selected if ids[said] in each]
    assert "tells_of_the_one_who_asks" in selected[0]


NOT_TOLD: list[tuple[str, str | tuple[str, str]]] = [
    (DINNER, "Am I allergic to peanuts?"),
    (DINNER, "If I were vegan I would have it easier."),
    (DINNER, "Maybe I should become vegetarian."),
    (DINNER, "The waiter said he is allergic to nuts."),
    (DINNER, "My colleague Jan is vegan."),
    (DINNER, "My neighbour moved to Graz."),
    (DINNER, "I'm not allergic to peanuts."),
    (DINNER, '"I am vegan", she wrote.'),
    (DINNER, "I hate Java."),
    (DINNER, "We write everything in Go here."),
    (DINNER, ("assistant", "I'm vegetarian and I live in Paris.")),
    (DINNER, ("tool", "I'm allergic to peanuts and I live in Paris.")),
    (DATABASE, "Should we write it in Java?"),
    (DATABASE, "If we use Java we are lost."),
    (DATABASE, "We might use Rust."),
    (DATABASE, "I'm vegetarian."),
    (DATABASE, "I can't stand mushrooms."),
    (DATABASE, ("assistant", "We write everything in Rust.")),
    (DATABASE, ("tool", "Our data must stay in the EU.")),
    (TRIP, "My boss is afraid of flying."),
    (TRIP, "Is there anybody who doesn't own a car?"),
]


@pytest.mark.parametrize(("query", "said"), NOT_TOLD)
def test_what_is_asked_supposed_denied_or_anothers_is_not_brought_in(
    mem: Memory, query: str, said: str | tuple[str, str]
) -> None:
    chat(mem, [said], between=12)
    assert not brought(ask(mem, query))


REPLACED = [
    (["I live in Linz.", "I moved to Graz last month."], {"I moved to Graz last month."}),
    (["I live in Porto.", "We moved to Madrid.", "We live in Valencia now."], {"We live in Valencia now."}),
    (["I'm vegan.", "I'm not vegan any more."], {"I'm not vegan any more."}),
    (["I'm vegan.", "I'm vegetarian these days."], {"I'm vegetarian these days."}),
    (["I love olives.", "I hate olives."], {"I hate olives."}),
    (["I'm allergic to nuts.", "I'm allergic to eggs."], {"I'm allergic to nuts.", "I'm allergic to eggs."}),
    (["I'm vegetarian.", "We keep kosher."], {"I'm vegetarian.", "We keep kosher."}),
    (["I'm vegetarian.", "As I said, I'm vegetarian."], {"As I said, I'm vegetarian."}),
]  # fmt: skip


@pytest.mark.parametrize(("said", "wanted"), REPLACED)
def test_the_newest_that_holds_is_brought_in(mem: Memory, said: list[str], wanted: set[str]) -> None:
    chat(mem, said)
    assert brought(ask(mem, DINNER)) == wanted


def test_a_correction_comes_with_what_it_puts_right(mem: Memory) -> None:
    run = mem.run(user_id="u-1", session_id="s1")
    run.observe("user", "I'm allergic to peanuts.", ts="2026-01-05T08:00:00Z")
    run.observe("assistant", "Noted.", ts="2026-01-05T08:01:00Z")
    run.observe("user", "Sorry, I meant cashews, not peanuts.", ts="2026-01-05T08:02:00Z")
    chat(mem, ["The gate is open."], between=20)
    assert "Sorry, I meant cashews, not peanuts." in ask(mem, DINNER).text


def test_a_move_stands_before_the_home_that_it_replaced(mem: Memory) -> None:
    chat(mem, ["I live in Linz, where we eat dinner late.", "I moved to Graz."])
    build = ask(mem, DINNER)
    assert brought(build) == {"I moved to Graz."}
    assert "tells_of_the_one_who_asks:_home" in build.packet.explain.selected[0]


def test_only_the_users_own_voice_counts(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    run.observe("user", "I'm allergic to peanuts.", speaker="Ben", ts="2026-01-05T08:00:00Z")
    run.observe("user", "I'm vegetarian.", speaker="Ana", ts="2026-01-05T08:01:00Z")
    build = mem.run(user_id="ana", session_id="asking").compose("responder", query=DINNER, now=NOW)
    assert brought(build) == {"I'm vegetarian."}


def test_names_that_were_told_are_theirs(mem: Memory) -> None:
    chat(mem, ["My daughter Lea is nine.", "Lea can't eat eggs.", "Kim can't eat eggs."])
    assert {"Lea can't eat eggs."} <= brought(ask(mem, DINNER))
    assert "Kim can't eat eggs." not in brought(ask(mem, DINNER))


def test_others_of_the_family_count_where_the_question_names_them(mem: Memory) -> None:
    chat(mem, ["My mother is vegan."])
    assert not brought(ask(mem, DINNER))
    assert brought(ask(mem, "Where should I take my mother for dinner?")) == {"My mother is vegan."}


@pytest.mark.soak
@pytest.mark.parametrize("max_tokens", [256, 300, 512, 1024])
@pytest.mark.parametrize("purpose", ["planner", "responder", "tool"])
def test_it_keeps_to_the_budget_and_counts_everything(mem: Memory, max_tokens: int, purpose: str) -> None:
    said = [line for query, line in TOLD if query in (DINNER, TRIP)]
    chat(mem, [*said, "Dinner was late because of the gate."], between=2)
    build = ask(mem, DINNER, purpose, max_tokens)
    assert build.tokens <= max_tokens
    assert audit(build.pool, build.packet) == []
    assert "I'm allergic to peanuts." in build.text
    counted = build.packet.explain.filters["not_gathered"]
    for kind in ("turns", "standing"):
        told = counted[kind]
        assert told["held"] == told["gathered"] + sum(told["not_gathered"].values())
    assert counted["turns"]["gathered"] == len(build.pool.hits)
    assert counted["standing"]["gathered"] == len(brought(build)) <= bringing.TURNS_MAX


def test_small_talk_does_not_crowd_them_out(mem: Memory) -> None:
    late = [f"Dinner was late because of lamp number {number}." for number in range(40)]
    chat(mem, ["I'm vegetarian.", *late], between=1)
    text = ask(mem, DINNER, max_tokens=256).text
    assert "I'm vegetarian." in text


@pytest.mark.parametrize(
    "said", [["We live in Graz.", "I moved to Vienna."], ["I live in Vienna.", "We moved to Graz."]]
)
def test_the_newest_home_stands_whoever_it_is_said_of(mem: Memory, said: list[str]) -> None:
    chat(mem, said)
    assert brought(ask(mem, DINNER)) == {said[1]}


@pytest.mark.parametrize(
    "said", ["We moved to Slack.", "We moved to Kubernetes.", "We lived in Graz.", "We live in fear."]
)
def test_what_a_firm_moves_to_is_no_home(mem: Memory, said: str) -> None:
    chat(mem, ["I live in Vienna.", said])
    assert brought(ask(mem, DINNER)) == {"I live in Vienna."}


def test_a_long_turn_is_cut_to_the_words_that_tell(mem: Memory) -> None:
    talk = " ".join(f"Then we went on to street number {number} and looked around there." for number in range(60))
    chat(mem, [f"{talk} By the way, I'm allergic to peanuts. {talk}"])
    build = ask(mem, DINNER, max_tokens=300)
    assert "I'm allergic to peanuts." in build.text
    assert build.tokens <= 300


@pytest.mark.req("MP-16")
def test_it_is_composed_again_as_it_was(make: Callable[..., Memory]) -> None:
    made = []
    for _ in range(2):
        mem = make("memory")
        chat(mem, ["I'm vegetarian.", "I live in Linz.", "I moved to Graz."])
        build = ask(mem, DINNER)
        again = mem.replay(build.id)
        assert (again.packet_bytes, again.text) == (build.packet_bytes, build.text)
        assert [hit.standing for hit in again.pool.hits] == [hit.standing for hit in build.pool.hits]
        made.append(build.packet_bytes)
    assert made[0] == made[1]


def test_what_was_forgotten_is_not_told(mem: Memory) -> None:
    ids = chat(mem, ["I'm vegetarian.", "I'm allergic to peanuts."])
    mem.forget(event=ids["I'm vegetarian."])
    assert brought(ask(mem, DINNER)) == {"I'm allergic to peanuts."}


def test_what_lies_outside_of_a_time_range_or_is_excluded_is_not_told(mem: Memory) -> None:
    ids = chat(mem, ["I'm vegetarian.", "I'm allergic to peanuts."])
    later = {"time_range": {"start": "2026-02-01T00:00:00Z"}}
    assert "vegetarian" not in ask(mem, DINNER, cues=later).text
    assert "vegetarian" not in ask(mem, DINNER, exclude=[ids["I'm vegetarian."]]).text


def test_a_bounded_number_of_texts_is_read(make: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for between in (10, 40):
        mem = make("memory")
        dogs = [f"The dog barked at the car in street {number}." for number in range(between * 4)]
        chat(mem, ["I have a dog called Bruno.", *dogs], between=1)
        read: list[str] = []

        def reading(text: str, ts: str, names: Any, held: list[str] = read) -> Any:
            held.append(text)
            return read_standing(text, ts, names)

        with monkeypatch.context() as spied:
            spied.setattr(bringing, "read_standing", reading)
            assert "I have a dog called Bruno." in ask(mem, TRIP).text
        counts.append(len(set(read)))
    assert max(counts) <= bringing.READ_MAX


NO_ADVICE = (
    "When did we paint the hallway?",
    "Where do I live?",
    "What am I allergic to?",
    "Am I vegetarian?",
    "How much is my budget?",
    "What language do we write in?",
    "What did you recommend last time?",
    "",
)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(4))
def test_other_questions_have_the_packets_they_had(
    make: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Byte for byte what is composed where nothing is ever brought in, and nothing of it is loaded for them."""

    def written() -> list[tuple[bytes, str]]:
        mem = make("memory")
        for at, (role, text) in enumerate(turns_of(CHOOSING[number])):
            run = mem.run(user_id="u-1", session_id=f"s{at // 20}", run_id=f"r{at // 20}")
            run.observe("assistant" if role == "tool" else role, text, ts=(START + timedelta(minutes=at)).isoformat())
        builds = [ask(mem, query, purpose) for query in NO_ADVICE for purpose in ("planner", "responder")]
        return [(build.packet_bytes, build.text) for build in builds]

    with monkeypatch.context() as before:
        before.setattr(gathering, "bring_standing", lambda *given: (given[6], ()))
        wanted = written()
    monkeypatch.setattr(bringing, "with_standing", None)
    assert written() == wanted
