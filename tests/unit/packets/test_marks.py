"""The session's table of marks: a number is given once, whoever asks at the same time."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from muniment.core.ports.engine import Delete
from muniment.core.scope import Scope
from muniment.errors import ChainBroken, InvalidInput
from muniment.handles.memory import Memory
from muniment.packets import marks
from muniment.packets.marks import KeptMarks, SessionMarks, assign_marks, keep_marks, read_marks

Maker = Callable[..., Memory]


def scope_of(user_id: str = "ana", session_id: str = "s1") -> Scope:
    return Scope(tenant_id="default", user_id=user_id, agent_id="default", session_id=session_id, run_id="r1")


def assign(mem: Memory, *ids: str, scope: Scope | None = None) -> dict[str, int]:
    return mem._ctx.engine.write("default", lambda tx: assign_marks(tx, scope or scope_of(), ids))


def keep(mem: Memory, numbers: dict[str, int]) -> bool:
    return mem._ctx.engine.write("default", lambda tx: keep_marks(tx, scope_of(), numbers))


def read(mem: Memory, *ids: str, scope: Scope | None = None, kept: KeptMarks | None = None) -> SessionMarks:
    return mem._ctx.engine.read("default", lambda reader: read_marks(reader, scope or scope_of(), ids, kept))


@pytest.mark.req("TM-08")
def test_numbers_are_given_in_order_and_stay(any_mem: Memory) -> None:
    assert read(any_mem, "e1") == SessionMarks({}, 1)
    assert assign(any_mem, "e3", "e1", "e3") == {"e3": 1, "e1": 2}
    assert assign(any_mem, "e2", "e1") == {"e2": 3, "e1": 2}
    assert read(any_mem, "e1", "e2", "unknown") == SessionMarks({"e1": 2, "e2": 3}, 4)
    assert assign(any_mem) == {}
    assert read(any_mem) == SessionMarks({}, 4)


@pytest.mark.req("TM-08")
def test_sessions_and_users_have_tables_of_their_own(any_mem: Memory) -> None:
    assign(any_mem, "e1", "e2")
    assert assign(any_mem, "e2", scope=scope_of(session_id="s2")) == {"e2": 1}
    assert assign(any_mem, "e9", scope=scope_of("bob")) == {"e9": 1}
    assert read(any_mem, "e1", "e2", "e9").numbers == {"e1": 1, "e2": 2}


@pytest.mark.req("TM-08")
@pytest.mark.parametrize("most", [0, 3, 4096])
def test_a_table_that_is_kept_says_what_the_store_says(
    any_mem: Memory, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Whatever was given since, by whomever, in this session or another, and however long the table is."""
    monkeypatch.setattr(marks, "KEPT_MAX", most)
    kept, other = KeptMarks(), scope_of(session_id="s2")
    asked = ("e1", "e2", "e3", "e4", "unknown")
    for given in (("e1",), ("e2", "e1"), (), ("e3", "e4")):
        assign(any_mem, *given)
        assert read(any_mem, *asked, kept=kept) == read(any_mem, *asked)
        assert read(any_mem, *asked, scope=other, kept=kept) == read(any_mem, *asked, scope=other)
    assign(any_mem, "e4", scope=other)
    assert read(any_mem, *asked, scope=other, kept=kept) == SessionMarks({"e4": 1}, 2)
    any_mem._ctx.engine.write("default", lambda tx: tx.do(Delete("marks", (("user_id", "=", "ana"),))))
    assert read(any_mem, *asked, kept=kept) == SessionMarks({}, 1)
    assign(any_mem, "e9", "e1")
    assert read(any_mem, *asked, kept=kept) == SessionMarks({"e1": 2}, 3)
    any_mem._ctx.engine.write("default", lambda tx: tx.do(Delete("marks", (("user_id", "=", "ana"),))))
    assign(any_mem, "e2", "e9", "e4", "e3")  # grown again beyond what was known, with other numbers
    assert read(any_mem, *asked, kept=kept) == SessionMarks({"e2": 1, "e3": 4, "e4": 3}, 5)


def test_tables_of_many_sessions_are_not_kept_for_ever(any_mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marks, "SESSIONS_MAX", 2)
    kept = KeptMarks()
    scopes = [scope_of(session_id=f"s{number}") for number in range(4)]
    for scope in scopes:
        assign(any_mem, "e1", scope=scope)
        assert read(any_mem, "e1", scope=scope, kept=kept).numbers == {"e1": 1}
    assert len(kept._held) == 2


def test_numbers_can_be_planned_before_they_are_kept(any_mem: Memory) -> None:
    assign(any_mem, "e1")
    planned = read(any_mem, "e1", "e2", "e3").extended(["e3", "e1", "e2", "e3"])
    assert planned == {"e3": 2, "e1": 1, "e2": 3}
    assert keep(any_mem, planned)
    assert keep(any_mem, planned)
    assert assign(any_mem, "e4") == {"e4": 4}


@pytest.mark.parametrize(
    "planned",
    [
        {"e2": 2},
        {"e1": 2},
        {"e1": 3, "e9": 2},
        {"e8": 5, "e9": 5},
    ],
    ids=["taken", "has another", "swapped", "twice"],
)
def test_who_lost_the_race_keeps_nothing(any_mem: Memory, planned: dict[str, int]) -> None:
    assign(any_mem, "e1", "other")
    before = read(any_mem, *planned)
    assert not keep(any_mem, planned)
    assert read(any_mem, *planned) == before


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.req("TM-08")
def test_composers_side_by_side_agree(make: Maker, engine: str) -> None:
    """Mutation: without the lock two writers read the same next number."""
    mem, writers, rounds = make(engine), 4, 8
    start = Barrier(writers)

    def work(writer: int) -> list[dict[str, int]]:
        start.wait()
        return [
            assign(mem, *(f"e{writer}-{at}-{n}" for n in range(3)), f"shared-{at}", "always") for at in range(rounds)
        ]

    with ThreadPoolExecutor(writers) as pool:
        answers = [answer for given in pool.map(work, range(writers)) for answer in given]
    told: dict[str, int] = {}
    for answer in answers:
        for id_, number in answer.items():
            assert told.setdefault(id_, number) == number
    assert sorted(told.values()) == list(range(1, writers * rounds * 3 + rounds + 2))


def observed(mem: Memory) -> list[str]:
    run = mem.run(user_id="ana", session_id="s1")
    return [run.observe("user", f"said {n}").id for n in range(3)]


@pytest.mark.req("LG-07", "TM-08")
def test_a_forget_gives_no_number_free(any_mem: Memory) -> None:
    ids = observed(any_mem)
    assign(any_mem, *ids)
    any_mem.forget(event=ids[2])
    assert assign(any_mem, ids[2], "new") == {ids[2]: 3, "new": 4}
    any_mem.forget(user_id="ana")
    assert read(any_mem).next_number == 5


@pytest.mark.req("X-05")
@pytest.mark.parametrize(("here", "there"), [("sqlite", "postgres"), ("postgres", "sqlite")])
def test_marks_travel_with_a_dump(make: Maker, here: str, there: str) -> None:
    source, target = make(here), make(there)
    ids = observed(source)
    assign(source, *reversed(ids))
    source.run(user_id="bob", session_id="s1").observe("user", "bob's")
    assign(source, "of-bob", scope=scope_of("bob"))
    lines = list(source.export())
    assert target.import_(lambda: lines).written["marks"] == 4
    assert list(target.export()) == lines
    assert read(target, *ids) == read(source, *ids)
    of_bob = [json.loads(line).get("row") for line in source.export(user_id="bob") if b'"table":"marks"' in line]
    assert of_bob == [{"user_id": "bob", "session_id": "s1", "number": 1, "evidence_id": "of-bob"}]


def test_numbers_that_mean_something_else_here_stay_as_they_are(make: Maker) -> None:
    """Two stores went on from one dump, each with packets of its own; then one is imported into the other."""
    source, target = make("sqlite"), make("memory", seed="other")
    ids = observed(source)
    assign(source, ids[0])
    lines = list(source.export())
    target.import_(lambda: lines)
    assign(source, ids[1], ids[2], "here-too", "last")
    assign(target, ids[2], "here-too")
    later = list(source.export())
    report = target.import_(lambda: later)
    assert read(target, *ids, "here-too", "last").numbers == {ids[0]: 1, ids[2]: 2, "here-too": 3, "last": 5}
    assert report.written["marks"] == 1
    assert report.skipped["marks"] == 4


@pytest.mark.parametrize(
    ("alter", "error"),
    [
        ({"number": 0}, InvalidInput),
        ({"number": "1"}, InvalidInput),
        ({"evidence_id": ""}, InvalidInput),
        ({"user_id": "bob"}, InvalidInput),
        ({"number": 9}, ChainBroken),
    ],
    ids=["no number", "a text", "no id", "another user", "out of order"],
)
def test_a_dump_with_marks_that_are_none_is_refused(
    make: Maker, alter: dict[str, Any], error: type[Exception], counts: Callable[[Memory], dict[str, int]]
) -> None:
    from muniment.core.canonical import canonical_bytes, digest

    source, target = make("sqlite"), make("memory")
    assign(source, *observed(source))
    lines = [json.loads(line) for line in source.export(user_id="ana")]
    first = next(line for line in lines if line.get("table") == "marks")
    first["row"] |= alter
    body = [canonical_bytes(line) + b"\n" for line in lines[:-1]]
    sealed = [*body, canonical_bytes(lines[-1] | {"digest": digest(b"".join(body)).hex()}) + b"\n"]
    before = counts(target)
    with pytest.raises(error):
        target.import_(sealed)
    assert counts(target) == before
