"""The summary covers the whole session, stays bounded, is made again to the byte, and lets nothing settled fall out."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Count, Delete, Patch, Select
from muniment.handles.memory import Memory
from muniment.memory.episodes.extracts import SHOWN_MAX, STRETCH, decode_extract, encode_extract
from muniment.memory.session_rows import read_extracts
from muniment.packets.builds import Build
from muniment.store.engines import sqlite as views

pytestmark = pytest.mark.req("TM-06")
Maker = Callable[..., Memory]
BAN = "Never book a hotel without asking me first."
SUBJECTS = ("garden", "harbour", "museum", "recipe", "library", "bicycle", "market", "orchestra", "lantern", "valley")


def chatter(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Turns of a chat that settle nothing."""
    chance = random.Random(seed)
    return [
        (
            ("user", "assistant")[number % 2],
            f"The {chance.choice(SUBJECTS)} number {number} looked {chance.choice(('old', 'bright', 'quiet'))} near "
            f"the {chance.choice(SUBJECTS)} yesterday.",
        )
        for number in range(count)
    ]


def fill(mem: Memory, turns: list[tuple[str, str]], session: str = "s1", user: str = "ana") -> list[str]:
    run = mem.run(user_id=user, session_id=session, run_id=f"run-{user}-{session}")
    said = run.observe_many([{"role": role, "content": text} for role, text in turns])
    return [entry.id for entry in said]


def summary_of(mem: Memory, session: str = "s1", query: str = "", **more: Any) -> list[Any]:
    return list(mem.run(user_id="ana", session_id=session).compose("planner", query=query, **more).pool.summary)


def rows_of(mem: Memory) -> list[Any]:
    """The stored extracts, once the index has followed the ledger to its end."""
    mem.store.index()
    return mem._ctx.engine.read("default", lambda reader: reader.do(Select("extracts")))


def test_a_prohibition_of_the_third_turn_is_in_every_packet_after_120(any_mem: Memory) -> None:
    turns = chatter(120)
    turns[2] = ("user", f"Thanks. {BAN}")
    ids = fill(any_mem, turns)
    run = any_mem.run(user_id="ana", session_id="s1")
    for purpose in ("planner", "tool", "responder"):
        for query in ("", "Which museum was bright?"):
            for budget in (256, 512, 2048):
                build = run.compose(purpose, query=query, max_tokens=budget)
                assert f"constraint (user): {BAN} [" in build.text
                (line,) = [each for each in build.pool.summary if each.kind]
                assert (line.kind, line.evidence_id, line.text) == ("constraint", ids[2], BAN)
                assert ids[2] in {cited.id for cited in build.packet.citations}
                assert any_mem.replay(build.id).packet_bytes == build.packet_bytes


def test_what_was_settled_is_told_in_the_order_said_and_nothing_else(any_mem: Memory) -> None:
    turns = chatter(150)
    turns[10] = ("user", "Let's go with option B.")
    turns[90] = ("assistant", "I'll send you the list by Friday.")
    turns[120] = ("user", BAN)
    fill(any_mem, turns)
    assert [line.kind for line in summary_of(any_mem)] == ["decision", "commitment", "constraint"]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_rows_are_the_same_on_every_engine_and_hold_no_word(make: Maker, engine: str) -> None:
    mem, other = make(engine), make("memory")
    turns = chatter(STRETCH * 3 + 7)
    turns[5] = ("user", BAN)
    for each in (mem, other):
        fill(each, turns)
    assert rows_of(mem) == rows_of(other)
    assert [first for _, _, first, _ in rows_of(mem)] == [1], "no row for a stretch in which nothing was settled"
    for *_, data in rows_of(mem):
        assert b"hotel" not in data
        assert encode_extract(decode_extract(data)) == data  # type: ignore[arg-type]


def test_turn_by_turn_and_at_once_come_to_the_same(make: Maker) -> None:
    turns = chatter(STRETCH * 6 + 20)
    turns[100] = turns[200] = ("user", BAN)
    at_once, apart = make("memory"), make("memory")
    fill(at_once, turns)
    for at in range(0, len(turns), 7):
        fill(apart, turns[at : at + 7])
    assert [row[2] for row in rows_of(at_once)] == [97, 193]
    assert rows_of(at_once) == rows_of(apart)


@pytest.mark.soak
def test_a_long_session_is_read_in_few_rows(make: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 turns: every row and entry that one compose reads is counted."""
    mem = make("sqlite")
    turns = chatter(5000)
    turns[3] = ("user", BAN)
    turns[4000] = ("user", "Please never use exclamation marks.")
    for at in range(0, len(turns), 500):
        fill(mem, turns[at : at + 500])
    mem._ctx.clear_caches()
    seen = {"rows": 0}
    run = mem.run(user_id="ana", session_id="s1")
    reader_class = next(each for each in vars(views).values() if isinstance(each, type) and hasattr(each, "do"))
    whole = reader_class.do

    def counted(self: Any, op: Any) -> Any:
        answer = whole(self, op)
        if isinstance(op, Select) and op.table in ("entries", "extracts"):
            seen["rows"] += len(answer)
        return answer

    monkeypatch.setattr(reader_class, "do", counted)
    build = run.compose("responder", max_tokens=1024)
    assert seen["rows"] < 700
    assert [line.text for line in build.pool.summary if line.kind] == [BAN, "Please never use exclamation marks."]
    extracts = mem._ctx.engine.read(
        "default", lambda reader: read_extracts(mem._ctx, reader, "default", "ana", "s1", 5001)
    )
    assert len(extracts.spans) == 2
    assert extracts.covered == 5001 // STRETCH * STRETCH


def test_sessions_do_not_mix(any_mem: Memory) -> None:
    for session, ban in (("s1", BAN), ("s2", "Do not email my boss.")):
        turns = chatter(100)
        turns[2] = ("user", ban)
        fill(any_mem, turns, session)
    fill(any_mem, [("user", "Always cc Kim.")] * 60, "s1", "bob")
    assert [line.text for line in summary_of(any_mem, "s1") if line.kind] == [BAN]
    assert [line.text for line in summary_of(any_mem, "s2") if line.kind] == ["Do not email my boss."]


@pytest.mark.req("LG-07")
def test_a_forgotten_constraint_is_gone_and_the_rows_are_what_is_left(any_mem: Memory, make: Maker) -> None:
    turns = chatter(STRETCH * 6 + 20)
    turns[2] = ("user", BAN)
    turns[200] = ("user", "Don't call me before 9.")
    ids = fill(any_mem, turns)
    any_mem.store.index()
    assert [line.text for line in summary_of(any_mem) if line.kind] == [BAN, "Don't call me before 9."]
    receipt = any_mem.forget(event=ids[2])
    assert receipt.counts["extracts"] == 1
    assert [line.text for line in summary_of(any_mem) if line.kind] == ["Don't call me before 9."]
    after = rows_of(any_mem)
    assert any_mem.verify().ok
    any_mem.store.rebuild()
    assert rows_of(any_mem) == after
    any_mem.forget(user_id="ana")
    assert rows_of(any_mem) == []
    assert any_mem.verify().ok


def test_it_goes_on_in_another_process(tmp_path: Any) -> None:
    turns = chatter(130)
    turns[2] = ("user", BAN)
    with muniment.open(tmp_path / "store.db") as mem:
        fill(mem, turns[:70])
    with muniment.open(tmp_path / "store.db") as mem:
        fill(mem, turns[70:])
    with muniment.open(tmp_path / "store.db") as mem:
        assert BAN in [line.text for line in summary_of(mem)]


@pytest.mark.parametrize(
    "damage",
    [
        lambda tx: tx.do(Patch("extracts", (("first", "=", 49),), {"data": b"\x02"})),
        lambda tx: tx.do(Patch("extracts", (("first", "=", 1),), {"data": b"?"})),
        lambda tx: tx.do(Delete("extracts", (("first", "=", 1),))),
    ],
    ids=["emptied", "nonsense", "dropped"],
)
def test_what_was_altered_is_found_and_made_again(any_mem: Memory, damage: Callable[[Any], Any]) -> None:
    turns = chatter(130)
    turns[2] = ("user", BAN)
    turns[60] = ("user", "Don't call me before 9.")
    fill(any_mem, turns)
    whole = rows_of(any_mem)
    any_mem._ctx.engine.write("default", damage)
    found = any_mem.verify()
    assert not found.ok
    assert "extract" in found.broken[0].reason
    any_mem.store.rebuild()
    assert rows_of(any_mem) == whole
    assert any_mem.verify().ok


def counted(build: Build, kind: str) -> Any:
    """What the packet says of how much of a kind was not gathered."""
    told: Any = build.packet.explain.filters["not_gathered"]
    return told.get(kind)


def test_what_was_lifted_or_said_again_is_counted_with_what_still_holds(mem: Memory) -> None:
    fill(mem, [("user", BAN), ("user", "Never call my boss."), ("user", BAN), ("user", "You can call my boss again.")])
    build = mem.run(user_id="ana", session_id="s1").compose("planner")
    assert [line.text for line in build.pool.summary if line.kind == "constraint"] == [BAN]
    assert counted(build, "constraints") == {
        "held": 3,
        "gathered": 1,
        "not_gathered": {"deprecated": 1, "duplicate": 1},
    }
    assert counted(build, "decisions") is None


@pytest.mark.soak
def test_dumps_bring_it_along_without_holding_it(make: Maker) -> None:
    source, target = make("sqlite"), make("memory", seed="other")
    turns = chatter(2500)
    turns[2] = ("user", BAN)
    fill(source, turns[:1500])
    fill(source, turns[1500:])
    lines = list(source.export())
    assert not [line for line in lines if b'"table":"extracts"' in line]
    target.import_(lambda: lines)
    assert rows_of(target) == rows_of(source)


def test_when_there_is_too_much_the_strongest_and_newest_stand_and_the_rest_is_counted(mem: Memory) -> None:
    most = SHOWN_MAX["constraint"]
    turns = [("user", f"Please avoid street number {number}.") for number in range(most + 40)]
    turns.insert(0, ("user", BAN))
    fill(mem, turns)
    build = mem.run(user_id="ana", session_id="s1").compose("planner", max_tokens=600, query="Which streets?")
    constraints = [line.text for line in build.pool.summary if line.kind]
    assert len(constraints) == most
    assert constraints[0] == BAN
    assert constraints[-1] == f"Please avoid street number {most + 39}."
    assert f"{BAN} [" in build.text
    assert counted(build, "constraints") == {
        "held": most + 41,
        "gathered": most,
        "not_gathered": {"count_limit": 41},
    }
    omitted = [each for each in build.packet.explain.omitted if each.item.startswith("summary:")]
    assert any(each.reason == "over_budget" for each in omitted)


@pytest.mark.parametrize("gap", [1, 30, 200])
def test_a_constraint_that_was_taken_back_is_gone_until_that_is_forgotten(mem: Memory, gap: int) -> None:
    turns = [
        ("user", "Don't call me before 9."),
        *chatter(gap),
        ("user", "You may call me before 9 now."),
        *chatter(70),
    ]
    ids = fill(mem, turns)
    assert not [line for line in summary_of(mem) if line.kind]
    mem.forget(event=ids[gap + 1])
    assert [line.text for line in summary_of(mem) if line.kind] == ["Don't call me before 9."]


def test_what_comes_from_outside_settles_nothing(mem: Memory) -> None:
    run = mem.run(user_id="ana", session_id="s1")
    run.observe("user", "Never book a hotel without asking me.", trust="external")
    run.observe_tool("fetch", content="Never use the phone.")
    run.observe("assistant", "You should never share your password.")
    fill(mem, chatter(100))
    assert not [line for line in summary_of(mem) if line.kind]


CONSTRAINT_FORMS = ("Never {}.", "Don't {}.", "Please do not {}.", "You must not {}.", "From now on, never {}.")
DEEDS = ("call Tom before 9", "book a hotel", "use my card", "email the press", "share my address", "order fish")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(12))
def test_every_agreement_of_a_session_is_in_its_summary(make: Maker, seed: int) -> None:
    chance = random.Random(seed)
    turns = chatter(chance.randrange(3, 1200), seed)
    said = {
        chance.choice(CONSTRAINT_FORMS).format(f"{chance.choice(DEEDS)} in {number} {chance.choice(SUBJECTS)}s")
        for number in range(chance.randrange(1, 40))
    }
    said |= {f"I'll send you the {subject} on Monday." for subject in chance.sample(SUBJECTS, 3)}
    said |= {f"Let's go with the {subject}." for subject in chance.sample(SUBJECTS, 3)}
    for text in sorted(said):
        turns.insert(chance.randrange(len(turns) + 1), ("user", f"Right. {text}"))
    mem = make("memory")
    at = 0
    while at < len(turns):
        step = chance.randrange(1, 90)
        fill(mem, turns[at : at + step])
        at += step
    assert {line.text for line in summary_of(mem) if line.kind} == said
    assert mem.verify().ok
    assert mem._ctx.engine.read("default", lambda reader: reader.do(Count("extracts"))) > 0


@pytest.mark.soak
@pytest.mark.parametrize("size", [1, 7, 47, 48, 49, 130])
def test_what_was_just_written_gives_the_rows_that_the_ledger_gives(any_mem: Memory, size: int) -> None:
    turns = chatter(150)
    turns[2], turns[60] = ("user", BAN), ("user", "Use short sentences. " * 600)
    turns[90] = ("assistant", "I'll send you the invoice on Friday. Password: hunter2-hunter2")
    for at in range(0, len(turns), size):
        fill(any_mem, turns[at : at + size])
        if at % 3 == 0:
            run = any_mem.run(user_id="ana", session_id="s1", run_id="run-ana-s1")
            run.observe_tool("search", content="never mind " * at, args={"query": "harbour"})
    written = rows_of(any_mem)
    assert written
    any_mem.store.rebuild()
    assert rows_of(any_mem) == written
