"""Items are held against a digest of their row whenever they are read (TM-12)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from muniment.core.ports.engine import Patch
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ITEMS, ItemRow
from muniment.errors import StoreDamaged
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.store.items import WRITTEN, Change, item_of, row_digest

pytestmark = pytest.mark.req("TM-12")


def tell(mem: Memory) -> Run:
    run = mem.run(user_id="ana", session_id="s1", run_id="r1")
    said = run.observe("user", "I live in Lisbon and I like to cook at home.").id
    run.remember("user.city", "Lisbon", sources=[said])
    run.procedure("cook", {"steps": ["wash the hands"]}, sources=[said])
    run.patch(goal="cook in Lisbon")
    return run


def rows(mem: Memory, kind: str) -> list[ItemRow]:
    return mem._ctx.engine.read("default", lambda reader: select(reader, ITEMS, (("kind", "=", kind),)))


def alter(mem: Memory, kind: str, values: dict[str, Any]) -> None:
    mem._ctx.engine.write("default", lambda tx: tx.do(Patch("items", (("kind", "=", kind),), values)))


FORGED: dict[str, dict[str, Any]] = {
    "fact": {"name": "0" * 32},
    "working_state": {"session_id": "s9"},
    "procedure": {"agent_id": None, "status": "retired"},
    "build": {"created_at": "2020-01-01T00:00:00.000000Z"},
}


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("kind", ["fact", "working_state", "procedure", "build"])
def test_a_reworded_item_is_told_by_no_door(make: Callable[..., Memory], engine: str, kind: str) -> None:
    mem = make(engine)
    run = tell(mem)
    build = run.compose("planner", query="Where does the user live?")
    (row, *_) = rows(mem, kind)
    assert row.body is not None
    told = row.body.replace("Lisbon", "Madrid").replace("wash", "wipe")
    assert told != row.body
    alter(mem, kind, {"body": told})
    doors: dict[str, list[Callable[[], Any]]] = {
        "fact": [run.facts, lambda: run.search("city"), lambda: run.compose("planner", query="city")],
        "working_state": [run.working_state, lambda: run.compose("planner", query="city")],
        "procedure": [lambda: run.compose("planner", query="cook")],
        "build": [lambda: mem.replay(build.id), lambda: mem.why("Lisbon")],
    }
    for door in (*doors[kind], lambda: list(mem.export())):
        with pytest.raises(StoreDamaged, match=f"the {kind} .* is not as it was written") as caught:
            door()
        assert caught.value.details["id"] == row.id
        assert "rebuild" in caught.value.hint
    assert row.id in {each.id for each in mem.verify().differing}
    if kind != "build":
        mem.store.rebuild()
        assert mem.verify().ok
        doors[kind][0]()


@pytest.mark.parametrize("kind", FORGED)
def test_columns_are_in_the_digest(mem: Memory, kind: str) -> None:
    run = tell(mem)
    run.compose("planner", query="Where does the user live?")
    alter(mem, kind, FORGED[kind])
    with pytest.raises(StoreDamaged, match="the row was altered"):
        list(mem.export())


def test_every_column_counts() -> None:
    change = Change("itm_1", "note", "live", {"a": 1}, "2026-01-01T00:00:00Z", "user", name="n", user_id="ana")
    item = item_of(change, 1)
    seen = {row_digest(item)}
    columns = [column for column in WRITTEN if column not in ("receipt_id", "digest", "checked")]
    for column in columns:
        other = 2 if column == "version" else "other"
        seen.add(row_digest(item._replace(**{column: other})))
        if column != "version":
            seen.add(row_digest(item._replace(**{column: None})))
    assert len(seen) == 1 + 2 * len(columns) - 1 - sum(getattr(item, column) is None for column in columns)
    assert row_digest(item._replace(checked=2)) not in seen
    assert row_digest(item._replace(user_id=None, agent_id="ana")) != row_digest(item)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("kind", ["fact", "run", "build", "working_state"])
def test_an_item_without_a_digest_is_damaged(make: Callable[..., Memory], engine: str, kind: str) -> None:
    """Whoever alters a row cannot leave its digest out instead of making it again."""
    mem = make(engine)
    tell(mem).compose("planner", query="Where does the user live?")
    alter(mem, kind, {"digest": None, "checked": 0})
    undermined = {"terms"} if kind == "fact" else set()  # its words are indexed for a fact that cannot be read
    assert {each.kind for each in mem.verify().differing} == {kind, *undermined}
    with pytest.raises(StoreDamaged, match="the row was altered"):
        list(mem.export())
    mem.store.rebuild()
    assert mem.verify().ok == (kind != "build")


def test_what_was_forgotten_has_a_digest_of_what_is_left(mem: Memory) -> None:
    tell(mem)
    mem.forget(user_id="ana")
    left = [row for kind in ("fact", "run", "working_state") for row in rows(mem, kind)]
    assert all(row.body is None and (row.digest or b"")[:32] == row_digest(row) for row in left)
    assert mem.verify().ok
    alter(mem, "fact", {"status": "other"})
    assert not mem.verify().ok


def test_a_damaged_item_can_be_forgotten(mem: Memory) -> None:
    run = tell(mem)
    (row, *_) = rows(mem, "fact")
    assert row.body is not None
    alter(mem, "fact", {"body": row.body.replace("Lisbon", "Madrid")})
    said = next(entry for entry in run.ledger.entries() if entry.kind == "message")
    mem.forget(event=said.id)
    assert run.facts(include_all=True) == []
    assert mem.verify().ok


def test_a_dump_brings_no_digest(mem: Memory) -> None:
    tell(mem)
    assert all(b'"digest":"' not in line for line in list(mem.export())[:-1])


LACKING: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "no text": lambda body: {name: value for name, value in body.items() if name != "text"},
    "nothing": lambda body: {},
    "a text that is none": lambda body: body | {"text": 3},
    "no request": lambda body: {name: value for name, value in body.items() if name != "request"},
    "a request of nothing": lambda body: body | {"request": {}},
    "a purpose that is none": lambda body: body | {"request": body["request"] | {"purpose": 3}},
}
IN_POOL: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "no pool": lambda body: {name: value for name, value in body.items() if name != "pool"},
    "a pool that is none": lambda body: body | {"pool": []},
}


@pytest.mark.soak
@pytest.mark.parametrize("change", LACKING | IN_POOL)
def test_why_names_a_build_whose_body_is_none(make: Callable[..., Memory], change: str) -> None:
    """Where no digest tells it, the body does: one error of the same type, not what Python says of a key."""
    mem = make("memory")
    run = tell(mem)
    build = run.compose("planner", query="Where does the user live?")
    answer = run.observe("assistant", "You live in Lisbon [1].", build=build)
    assert {each.build_id for each in mem.why("Lisbon")} == {build.id} == {each.build_id for each in mem.why(answer.id)}
    (row,) = rows(mem, "build")
    assert row.body is not None
    row = row._replace(body=json.dumps((LACKING | IN_POOL)[change](json.loads(row.body))))
    row = row._replace(checked=1)
    alter(mem, "build", {"body": row.body, "digest": row_digest(row), "checked": row.checked})
    for asked in ("Lisbon", answer.id) if change in LACKING else ("Lisbon",):
        with pytest.raises(StoreDamaged, match=f"the build {build.id} is not as it was written") as caught:
            mem.why(asked)
        assert caught.value.details["id"] == build.id
