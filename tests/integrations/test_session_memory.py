"""The seam of the integrations: one session of one user, on a file and over a connection, with and without `await`.

Messages are recorded once, and what is sent anyway is left out of the packet (TM-09); an answer leads back (TM-10).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.integrations.connected import over_http

import muniment
from muniment.errors import InvalidInput, InvalidRecord, MunimentError, NotFound, QuoteMismatch, StorageFailure
from muniment.integrations.session import AsyncSessionMemory, SessionMemory, memory_functions
from muniment.integrations.session.functions import forget_function
from muniment.integrations.transcript import Line, Transcript

BERLIN = "I moved to Berlin in May."


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls(id_: str, name: str = "weather") -> dict[str, Any]:
    function = {"name": name, "arguments": '{"city": "Berlin"}'}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function", "function": function}]}


def result(id_: str, text: str, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": text, **more}


@pytest.fixture(params=["sqlite", "http"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[muniment.Memory]:
    with ExitStack() as stack:
        opened = stack.enter_context(muniment.open(tmp_path / "a.db"))
        yield opened if request.param == "sqlite" else over_http(opened, tmp_path, stack)


@pytest.fixture
def here() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as opened:
        yield opened


def session(mem: Any, session_id: str = "s1", user_id: str = "ana", **more: Any) -> SessionMemory:
    return SessionMemory(mem, user_id=user_id, session_id=session_id, **more)


def turns(of: SessionMemory) -> list[tuple[str, str]]:
    scope = of.run.scope
    found = of.mem.ledger.entries(user_id=scope.user_id, session_id=scope.session_id, tenant_id=scope.tenant_id)
    return [(entry.role, entry.content or "") for entry in found if entry.kind in ("message", "tool_result")]


# -- a talk -----------------------------------------------------------------------------------------------------


def test_a_later_session_is_told_and_the_answer_leads_back(mem: muniment.Memory) -> None:
    first = session(mem)
    assert first.prepare([user(BERLIN)]) is not None
    first.record([user(BERLIN)], answer=[says("Noted.")])
    later = session(mem, "s2")
    asked = [user("Where do I live?")]
    build = later.prepare(asked)
    assert build is not None
    assert BERLIN in build.text
    (entry,) = later.record(asked, answer=[says("In Berlin [1].")], build=build)
    assert entry.cited is not None
    assert entry.cited.build_id == build.id
    (told,) = mem.why(entry.id)
    assert [mem.ledger.content(id_) for id_ in told.evidence_ids] == [BERLIN], "the answer's evidence"
    assert turns(later) == [("user", "Where do I live?"), ("assistant", "In Berlin [1].")]


def test_nothing_of_the_live_session_is_told_and_what_was_cut_is(mem: muniment.Memory) -> None:
    live = session(mem)
    talk = [user(BERLIN), says("Noted."), user("My heron Bruno sleeps near the mill."), says("Good.")]
    live.record(talk)
    asked = [*talk, user("Where do I live, and where does my heron sleep?")]
    whole = live.prepare(asked)
    assert whole is not None
    assert BERLIN not in whole.text
    assert "near the mill" not in whole.text
    for packet in (live.prepare(asked[2:]), live.compose(asked[2:])):
        assert packet is not None
        assert BERLIN in packet.text
        assert "near the mill" not in packet.text
    texts = live.compose([each["content"] for each in talk], query="Where do I live?")
    assert texts is not None
    assert BERLIN not in texts.text


def test_what_another_agent_says_in_the_session_is_told_unless_it_is_sent(here: muniment.Memory) -> None:
    session(here, agent_id="planner").record([user(BERLIN)])
    writer = session(here, agent_id="writer")
    told, sent = writer.compose(query="Where do I live?"), writer.compose([user(BERLIN)], query="Where do I live?")
    assert told is not None
    assert sent is not None
    assert BERLIN in told.text
    assert BERLIN not in sent.text


def test_two_users_and_two_tenants_do_not_mix(mem: muniment.Memory) -> None:
    ana = session(mem)
    ana.record([user(BERLIN)])
    for other in (session(mem, user_id="ben"), session(mem, tenant_id="acme")):
        build = other.compose(query="Where do I live?")
        assert build is not None
        assert "Berlin" not in build.text
        assert other.search("Berlin") == []
        with pytest.raises(NotFound):
            other.forget(ana.search("Berlin")[0].id)
    assert [hit.text for hit in ana.search("Berlin")] == [BERLIN]


# -- recording --------------------------------------------------------------------------------------------------


def test_a_list_is_recorded_once_however_it_grows_and_is_cut(mem: muniment.Memory) -> None:
    talk = session(mem)
    said = [user("one"), says("two"), user("three"), says("four"), user("five")]
    for upto in (1, 3, 3, 5):
        talk.record(said[:upto])
    talk.record(said[2:])
    talk.record([*said[2:], says("six")])
    assert [text for _role, text in turns(talk)] == ["one", "two", "three", "four", "five", "six"]


def test_messages_under_ids_are_recorded_once(mem: muniment.Memory) -> None:
    talk = session(mem)
    talk.record([user("yes"), says("ok")], ids=["m1", "m2"])
    talk.record([user("yes")], ids=["m3"])
    talk.record([says("ok"), user("yes")], ids=["m2", "m3"])
    assert [text for _role, text in turns(talk)] == ["yes", "ok", "yes"]
    with pytest.raises(InvalidInput, match="2 messages have 1 ids"):
        session(mem, on_error="closed").record([user("a"), user("b")], ids=["m1"])


def test_a_result_finds_its_call_in_an_earlier_message(mem: muniment.Memory) -> None:
    talk = session(mem)
    talk.record([user("How warm is it?"), calls("c1")], ids=["m1", "m2"])
    talk.record([result("c1", "12 °C")], ids=["m3"])
    talk.record([result("c9", "red", name="colour")], ids=["m4"])
    tools = [entry.tool for entry in talk.run.ledger.entries() if entry.tool is not None]
    assert [(tool.name, tool.args) for tool in tools] == [("weather", {"city": "Berlin"}), ("colour", None)]
    assert [text for _role, text in turns(talk)] == ["How warm is it?", "12 °C", "red"]


def test_two_results_of_one_message_are_two(here: muniment.Memory) -> None:
    talk = session(here, on_error="closed")
    uses = [{"type": "tool_use", "id": id_, "name": "lamp", "input": {}} for id_ in ("c1", "c2")]
    results = [{"type": "tool_result", "tool_use_id": id_, "content": "off"} for id_ in ("c1", "c2")]
    for _ in range(2):
        talk.record([{"role": "assistant", "content": uses}, {"role": "user", "content": results}], ids=["m1", "m2"])
    assert [text for _role, text in turns(talk)] == ["off", "off"]


def test_what_was_forgotten_does_not_come_back_with_its_message(mem: muniment.Memory) -> None:
    talk = session(mem)
    talk.record([user(BERLIN)], ids=["m1"])
    talk.forget(talk.search("Berlin")[0].id)
    session(mem, on_error="closed").record([user(BERLIN), user("I like ramen.")], ids=["m1", "m2"])
    assert [text for _role, text in turns(talk)] == ["", "I like ramen."]
    listed = session(mem, "s2", on_error="closed")
    (said,) = listed.record([user(BERLIN)])
    listed.forget(said.id)
    listed.record([user(BERLIN), says("Noted."), user("I like tea.")])
    assert [text for _role, text in turns(listed)] == ["", "Noted.", "I like tea."]
    assert "Berlin" not in str(talk.search("Berlin"))


def test_a_line_with_a_key_is_written_once(here: muniment.Memory) -> None:
    def transcript() -> Transcript:
        return Transcript(here, "test", user_id="ana", session_id="s1", agent_id="a")

    for _ in range(2):
        transcript().append([Line({"content": "one"}, "one", "user", "content", key="e1")])
    transcript().append([Line({"content": "one"}, "one", "user", "content", key="e2")])
    assert transcript().items() == [{"content": "one"}, {"content": "one"}]


# -- while tools are asked ----------------------------------------------------------------------------------------


def test_a_question_keeps_its_packet_while_tools_are_asked(here: muniment.Memory) -> None:
    session(here, "old").record([user(BERLIN)])
    live, asked = session(here), [user("How warm is it where I live?")]
    first = live.prepare(asked)
    session(here, "beside").record([user("I live in Berlin, by the way, since May.")])
    again = live.prepare([*asked, calls("c1"), result("c1", "12 °C")])
    assert first is not None
    assert again is not None
    assert again.id == first.id
    composed = live.compose([*asked, calls("c1"), result("c1", "12 °C"), calls("c2")])
    assert composed is not None
    assert composed.id == first.id
    anew = live.prepare([*asked, says("12 °C."), user("How warm is it where I live?")])
    assert anew is not None
    assert anew.id != first.id


# -- in words -----------------------------------------------------------------------------------------------------


def test_search_remember_and_forget(mem: muniment.Memory) -> None:
    talk = session(mem)
    talk.record([user(BERLIN), user("I like ramen.")])
    (hit, *_) = talk.search("Where did I move?", k=3)
    assert hit.text == BERLIN
    assert 0 < hit.score <= 1
    with pytest.raises(QuoteMismatch):
        talk.remember("user.city", "Paris", sources=[hit.id], quote="moved to Paris")
    fact = talk.remember("user.city", "Berlin", sources=[hit.id], quote="moved to Berlin")
    assert fact.sources == (hit.id,)
    receipt = talk.forget(hit.id)
    assert hit.id in [erased.id for erased in receipt.erased]
    assert talk.run.facts() == []
    assert "Berlin" not in str(talk.search("Berlin"))
    with pytest.raises(MunimentError):
        talk.forget("evt_none")
    assert [text for _role, text in turns(talk)] == ["", "I like ramen."]
    talk.forget_session()
    assert talk.search("ramen") == []
    session(mem, "s2").record([user(BERLIN)])
    assert session(mem).forget_user().receipt_id
    assert session(mem, "s2").search("Berlin") == []
    assert mem.verify().ok


def test_a_fact_is_forgotten_by_its_id(here: muniment.Memory) -> None:
    talk = session(here)
    (said,) = talk.record([user(BERLIN)])
    fact = talk.remember("user.city", "Berlin", sources=[said.id], quote="Berlin")
    talk.forget(fact.fact_id)
    assert talk.run.facts() == []
    assert [hit.text for hit in talk.search("Berlin")] == [BERLIN]


def test_functions_for_a_model(here: muniment.Memory) -> None:
    talk = session(here)
    talk.record([user(BERLIN)])
    search_memory, propose_fact = memory_functions(talk, hits_max=3)
    (hit,) = search_memory("where she lives", limit=100)
    assert hit["text"] == BERLIN
    assert propose_fact("user.city", "Berlin", hit["id"], "moved to Berlin")["status"] == "proposed"
    assert propose_fact("user.city", "Rome", hit["id"], "moved to Rome")["error"] == "quote_mismatch"
    assert propose_fact("user.city", "Rome", "evt_none", "Rome")["error"] == "not_found"
    forget_memory = forget_function(talk)
    assert forget_memory("evt_none")["error"] == "not_found"
    assert forget_memory(hit["id"])["erased"] >= 1
    assert search_memory("where she lives") == []
    for each in (search_memory, propose_fact, forget_memory):
        described = inspect.getdoc(each) or ""
        assert all(f"{name}: " in described for name in inspect.signature(each).parameters), each.__name__


def test_what_memory_answered_is_not_recorded_as_news(here: muniment.Memory) -> None:
    talk = session(here)
    (said,) = session(here, "old").record([user(BERLIN)])
    asked = [user("Where do I live?"), calls("c1", "search_memory")]
    talk.record([*asked, result("c1", f"[{said.id}] {BERLIN}"), says("In Berlin.")])
    talk.record([calls("c2", "weather"), result("c2", "12 °C")], ids=["m1", "m2"])
    talk.record([result("c3", BERLIN, name="search_memory")], ids=["m3"])
    talk.record([*asked, result("c1", f"[{said.id}] {BERLIN}"), says("In Berlin."), user("Thanks.")])
    echo = "(what memory answered)"
    assert [text for _role, text in turns(talk)] == ["Where do I live?", echo, "In Berlin.", "12 °C", echo, "Thanks."]
    talk.forget(said.id)
    assert BERLIN not in str(talk.search("Where do I live?", k=20))


# -- failing ------------------------------------------------------------------------------------------------------


class Broken:
    """A store of which calls fail, as one behind a network does."""

    def __init__(self, mem: muniment.Memory, *names: str) -> None:
        self._mem, self._names = mem, names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mem, name)

    def run(self, **given: Any) -> Any:
        run, names = self._mem.run(**given), self._names

        class BrokenRun:
            def __getattr__(self, name: str) -> Any:
                if name in names:
                    raise StorageFailure(f"the words of a secret: {name}")
                return getattr(run, name)

        return BrokenRun()


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_where_memory_fails(
    here: muniment.Memory, on_error: Literal["open", "closed"], caplog: pytest.LogCaptureFixture
) -> None:
    broken: Any = Broken(here, "record", "observe_many", "compose", "search")
    talk = session(broken, on_error=on_error)
    around = [
        lambda: talk.prepare([user("Where do I live?")]),
        lambda: talk.compose([user("Where do I live?")]),
        lambda: talk.record([user(BERLIN)]),
        lambda: talk.record([user(BERLIN)], ids=["m1"]),
        lambda: talk.record([user(BERLIN)], answer=[says("Noted.")]),
    ]
    with caplog.at_level(logging.WARNING, "muniment.integrations"):
        for act in around:
            if on_error == "open":
                assert act() in (None, [])
            else:
                with pytest.raises(StorageFailure):
                    act()
    with pytest.raises(StorageFailure):
        talk.search("Berlin")
    assert ("storage_failure" in caplog.text) == (on_error == "open")
    assert "secret" not in caplog.text, "no content in the log"


def test_without_a_packet_what_was_said_is_still_recorded(here: muniment.Memory) -> None:
    broken: Any = Broken(here, "compose")
    assert session(broken).prepare([user(BERLIN)]) is None
    assert turns(session(here)) == [("user", BERLIN)]


@pytest.mark.parametrize(
    "odd",
    [
        {"user_id": ""},
        {"session_id": "a\nb"},
        {"tenant_id": 3},
        {"agent_id": ""},
        {"on_error": "maybe"},
        {"max_tokens": 77},
    ],
)
def test_odd_arguments_are_refused_at_once(here: muniment.Memory, odd: dict[str, Any]) -> None:
    with pytest.raises((InvalidRecord, InvalidInput)):
        SessionMemory(here, **({"user_id": "ana"} | odd))


@pytest.mark.parametrize("odd", ["text", [3], [{"role": "wizard", "content": "x"}], {"role": "user"}])
def test_messages_of_an_unknown_shape_change_nothing(here: muniment.Memory, odd: Any) -> None:
    with pytest.raises(InvalidInput):
        session(here, on_error="closed").record(odd)
    assert session(here).record(odd) == []
    assert turns(session(here)) == []


# -- with await -----------------------------------------------------------------------------------------------------


def test_every_verb_has_its_twin() -> None:
    def verbs(cls: type) -> dict[str, Any]:
        found = {name: member for name, member in vars(cls).items() if inspect.isfunction(member)}
        return {name: list(inspect.signature(each).parameters) for name, each in found.items() if name[0] != "_"}

    assert verbs(SessionMemory) == verbs(AsyncSessionMemory)


def test_with_await_over_an_async_store() -> None:
    async def talk() -> None:
        async with await muniment.aio.open(":memory:") as mem:
            first = SessionMemory(mem, user_id="ana", session_id="s1").aio
            await first.record([user(BERLIN)])
            later = SessionMemory(mem, user_id="ana", session_id="s2").aio
            build = await later.prepare([user("Where do I live?")])
            assert build is not None
            assert BERLIN in build.text
            (hit,) = await later.search("Berlin")
            await later.forget(hit.id)
            assert await later.search("Berlin") == []

    asyncio.run(talk())


# -- what was forgotten does not come back with a list ------------------------------------------------------


def _talk(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]


def _told(mem: muniment.Memory) -> list[str]:
    entries = mem.ledger.entries(user_id="ana", session_id="s1")
    return [entry.content or "" for entry in entries if entry.kind == "message" and not entry.is_forgotten]


HELD = ("My code is 4711.", "Noted.", "I like tea.", "Tea it is.", "And cake.", "Good.")


@pytest.mark.parametrize(
    ("forgotten", "sent", "new"),
    [
        (0, ("My code is 4711.", "Noted.", "I like TEA.", "Tea it is.", "Bye."), ["I like TEA.", "Bye."]),  # edited
        (2, ("I like tea.", "Tea it is.", "And cake.", "Good.", "Bye."), ["Bye."]),  # cut in front
        (2, ("Noted.", "I like tea.", "Tea it is.", "Bye."), ["Bye."]),  # cut on both sides
        (4, ("Tea it is.", "And cake.", "Good.", "Bye."), ["Bye."]),
        (2, ("My code is 4711.", "Noted.", "Tea it is.", "And cake.", "Good.", "Bye."), ["Bye."]),  # gone there, too
    ],
)
def test_a_list_that_was_cut_or_edited_does_not_bring_back_what_was_forgotten(
    mem: muniment.Memory, forgotten: int, sent: tuple[str, ...], new: list[str]
) -> None:
    memory = SessionMemory(mem, user_id="ana", session_id="s1", agent_id="x")
    entries = memory.record(_talk(*HELD))
    mem.forget(event=entries[forgotten].id)
    before = _told(mem)
    roles = {text: each["role"] for each in _talk(*HELD) for text in [each["content"]]}
    memory.record([{"role": roles.get(text, "user"), "content": text} for text in sent])
    assert _told(mem) == [*before, *new]


def test_what_stands_last_in_such_a_list_is_being_said_now(mem: muniment.Memory) -> None:
    """The last exchange was forgotten and the list goes on without it: what the user says next is no old message."""
    memory = SessionMemory(mem, user_id="ana", session_id="s1", agent_id="x")
    entries = memory.record(_talk(*HELD))
    for entry in entries[4:]:
        mem.forget(event=entry.id)
    memory.record([*_talk(*HELD[:4])[1:], {"role": "user", "content": "And now something else."}])
    assert _told(mem) == [*HELD[:4], "And now something else."]
