"""A run as a conversation: entries and packets in one order, from any place, either way, with what is asked for."""

from __future__ import annotations

import pytest

from muniment.core.listing import ListQuery
from muniment.errors import InvalidInput, NotFound
from muniment.handles.memory import Memory
from muniment.packets.timeline import RunTurn, count_turns, page_turns


def _name(turn: RunTurn | None) -> str:
    assert turn is not None
    return turn.entry.id if turn.entry is not None else turn.build.build_id  # type: ignore[union-attr]


def _told(mem: Memory) -> list[str]:
    """What happened, in the order in which it did; of another run of the session nothing."""
    run, other = (mem.run(user_id="ana", session_id="s", run_id=name) for name in ("r", "other"))
    names = []
    for number in range(9):
        names.append(run.observe("user", f"word {number}").id)
        other.observe("user", "between")
        if number % 3 == 0:
            names += [run.compose("responder", query=f"word {number}", max_tokens=300).id for _ in range(2)]
            other.compose("responder", query="between", max_tokens=300)
    return names


@pytest.mark.soak
def test_turns_and_packets_stand_in_one_order_from_any_place(any_mem: Memory) -> None:
    told = _told(any_mem)
    turns = [_name(turn) for turn in any_mem.log.turns("r")]
    assert turns[1:] == told, "the first says that the run began"
    assert [_name(turn) for turn in any_mem.log.turns("r", order="desc")] == turns[::-1]
    for descending in (False, True):
        wanted = turns[::-1] if descending else turns
        placed = list(page_turns(any_mem._ctx, "default", None, None, "r", ListQuery(descending)))
        for at, each in enumerate(placed):
            for limit in (1, 4):
                asked = ListQuery(descending, after=each.place, limit=limit)
                rest = [_name(one.value) for one in page_turns(any_mem._ctx, "default", None, None, "r", asked)]
                assert rest == wanted[at + 1 :], (descending, at, limit)
    for at, name in enumerate(turns):
        around = [_name(turn) for turn in any_mem.log.turns("r", around=name, limit=4)]
        begun = max(0, at - 2)
        assert around == turns[begun : begun + len(around)]
        assert name in around


def test_what_is_asked_of_turns(mem: Memory) -> None:
    _told(mem)
    builds = mem.log.turns("r", kind="build")
    assert [turn.build.query for turn in builds if turn.build] == [f"word {n}" for n in (0, 0, 3, 3, 6, 6)]
    assert all(turn.build.tokens <= turn.build.tokens_max == 300 for turn in builds if turn.build)
    said = mem.log.turns("r", q="WORD 3", kind="message")
    assert [turn.entry.content for turn in said if turn.entry] == ["word 3"]
    assert [turn.build is None for turn in mem.log.turns("r", q="word 3")] == [True, False, False]
    since = builds[2].build.created_at  # type: ignore[union-attr]
    assert [turn.build is None for turn in mem.log.turns("r", since=since)][:2] == [False, False]
    with pytest.raises(NotFound):
        mem.log.turns("r", around="nothing")
    with pytest.raises(InvalidInput):
        mem.log.turns("r", kind="packet")  # type: ignore[arg-type]


def test_a_forgotten_turn_stays_and_a_packet_made_of_it_goes(mem: Memory) -> None:
    told = _told(mem)
    mem.forget(event=told[0])
    turns = mem.log.turns("r")
    first = next(turn for turn in turns if turn.entry is not None and turn.entry.id == told[0])
    assert first.entry is not None
    assert first.entry.is_forgotten
    assert [turn.build for turn in turns if turn.build is not None and turn.build.build_id in told[1:3]] == []


def test_a_run_tells_when_it_was_said(any_mem: Memory) -> None:
    run = any_mem.run(user_id="kim", session_id="old", run_id="r")
    assert any_mem.runs(user_id="kim") == []
    run.observe("user", "long ago", ts="2023-05-04T10:00:00Z")
    run.observe("assistant", "so it is", ts="2023-05-04T10:07:00Z")
    run.finish("OBJECTIVE_ACHIEVED")
    for state in (any_mem.log.run_state("r"), any_mem.runs(user_id="kim")[0]):
        assert (state.first_said_at or "")[:16] == "2023-05-04T10:00"
        assert (state.last_said_at or "")[:16] == "2023-05-04T10:07"
        assert not state.started_at.startswith("2023")
    empty = any_mem.run(user_id="kim", session_id="new", run_id="bare")
    empty.patch(goal="nothing said")
    assert any_mem.log.run_state("bare").first_said_at is None
    assert [state.run_id for state in any_mem.runs(q="NEW")] == ["bare"]


def test_entries_are_found_by_all_they_say(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s", run_id="r")
    tool = run.observe_tool("ferry_times", args={"harbour": "Alder Quay"}, content="none today")
    said = run.observe("user", "hello", speaker="Rosa", metadata={"channel": "telephone"})
    for q, found in (
        ("alder quay", tool),
        ("ferry_times", tool),
        ("ROSA", said),
        ("telephone", said),
        (said.id, said),
    ):
        assert [each.id for each in run.ledger.entries(q=q)] == [found.id], q


def test_users_are_found_by_a_part_of_their_id(any_mem: Memory) -> None:
    for name in ("ana", "Johanna", "kim"):
        any_mem.run(user_id=name, session_id="s").observe("user", "x")
    assert [user.user_id for user in any_mem.store.users(q="AN")] == ["Johanna", "ana"]
    assert list(any_mem.store.users(q="nobody")) == []
    with pytest.raises(InvalidInput):
        any_mem.store.users(q=" ")


def _two_sessions(mem: Memory) -> list[str]:
    """Sessions of a user in the order of their ids, turns and packets in each; one in which was only composed."""
    names = []
    for session in ("a", "b", "c"):
        for run_id in (f"{session}1", f"{session}2"):
            run = mem.run(user_id="ana", session_id=session, run_id=run_id)
            if session != "b":
                names.append((run_id, run.observe("user", f"said in {run_id}").id))
            names.append((run_id, run.compose("responder", query=f"asked in {run_id}", max_tokens=300).id))
    mem.run(user_id="bo", session_id="b", run_id="x").observe("user", "somebody else's")
    return [name for _, name in names]


def test_a_user_s_turns_go_session_by_session_from_any_place(any_mem: Memory) -> None:
    told = _two_sessions(any_mem)
    turns = [_name(turn) for turn in any_mem.log.turns(user_id="ana")]
    assert [name for name in turns if name in told] == told
    assert len(turns) == len(told) + 4, "and four that say that a run began"
    for descending in (False, True):
        wanted = turns[::-1] if descending else turns
        placed = list(page_turns(any_mem._ctx, "default", "ana", None, None, ListQuery(descending)))
        assert [_name(each.value) for each in placed] == wanted
        for at, each in enumerate(placed):
            for limit in (1, 3):
                asked = ListQuery(descending, after=each.place, limit=limit)
                rest = page_turns(any_mem._ctx, "default", "ana", None, None, asked)
                assert [_name(one.value) for one in rest if one.value] == wanted[at + 1 :], (descending, at, limit)
    for at, name in enumerate(turns):
        around = [_name(turn) for turn in any_mem.log.turns(user_id="ana", around=name, limit=4)]
        assert around == turns[max(0, at - 2) : max(0, at - 2) + len(around)]
        assert name in around
    of_b = [_name(turn) for turn in any_mem.log.turns(user_id="ana", session_id="b")]
    assert of_b == told[4:6], "nothing was said there, and it is not absent"
    builds = any_mem.log.turns(user_id="ana", kind="build")
    assert [turn.build.run_id for turn in builds if turn.build] == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert count_turns(any_mem._ctx, "default", "ana", None, None, ListQuery()) == len(turns)
    assert count_turns(any_mem._ctx, "default", "ana", None, None, ListQuery(kind="build")) == 6


def test_a_run_that_only_composed_has_its_turns(any_mem: Memory) -> None:
    told = _two_sessions(any_mem)
    for mine in ({}, {"user_id": "ana"}, {"session_id": "b"}):
        assert [_name(turn) for turn in any_mem.log.turns("b2", **mine)] == [told[5]]
    assert count_turns(any_mem._ctx, "default", None, None, "b2", ListQuery()) == 1
    for run_id, mine in (
        ("b2", {"user_id": "bo"}),
        ("x", {"user_id": "ana"}),
        ("none", {}),
        ("b2", {"session_id": "a"}),
    ):
        with pytest.raises(NotFound):
            any_mem.log.turns(run_id, **mine)
    any_mem.forget(user_id="ana")
    with pytest.raises(NotFound):
        any_mem.log.turns("b2")


def test_turns_of_a_time_and_around_a_number(any_mem: Memory) -> None:
    _told(any_mem)
    whole = any_mem.log.turns(user_id="ana")
    moments = [turn.entry.recorded_at if turn.entry else turn.build.created_at for turn in whole]  # type: ignore[union-attr]
    for since, until in ((3, None), (None, 20), (5, 6), (4, 19), (0, 4)):
        window = {
            "since": None if since is None else moments[since],
            "until": None if until is None else moments[until],
        }
        wanted = [
            _name(turn)
            for turn, at in zip(whole, moments, strict=True)
            if at >= (window["since"] or "") and at < (window["until"] or "~")
        ]
        assert [_name(turn) for turn in any_mem.log.turns(user_id="ana", **window)] == wanted
        assert [_name(turn) for turn in any_mem.log.turns(user_id="ana", order="desc", **window)] == wanted[::-1]
    seventh = next(turn for turn in whole if turn.entry is not None and turn.entry.seq == 7)
    assert any_mem.log.turns(user_id="ana", session_id="s", around="7", limit=1) == [seventh]
    found = any_mem.log.turns("r", around="8", limit=1)
    assert found == [seventh], "the eighth is the other run's"
    with pytest.raises(NotFound):
        any_mem.log.turns(user_id="ana", around="7")
    with pytest.raises(InvalidInput):
        any_mem.log.turns()
