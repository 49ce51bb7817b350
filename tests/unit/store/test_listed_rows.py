"""Lists by the newest versions of items: in order, page by page, and without what was forgotten."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from muniment.core.instants import format_instant
from muniment.core.ports.engine import Condition, Insert, Patch, Reader
from muniment.core.ports.schema import ITEMS, ItemRow
from muniment.handles.memory import Memory
from muniment.store.items import Item, select_items
from muniment.store.lists.seeking import NEWEST, Listed, rows_listed
from muniment.testing.engine_contract import row_with

STATUSES = ("active", "gone", "made", "open", "é", "")


def _moment(number: int) -> str:
    return format_instant(datetime(2020, 1, 1 + number, tzinfo=UTC))


def _rows(random: Random, count: int) -> list[ItemRow]:
    """Items of few moments, so that many were placed at the same one; each has an older version too."""
    made: list[ItemRow] = []
    for n in range(count):
        held = {"kind": random.choice("kl"), "owner": random.choice("abc"), "placed_at": _moment(n % 7)}
        held |= {"id": random.choice(("evt_", "")) + f"i{n:03}", "trust": "user", "body": "{}", "receipt_id": None}
        for version in (1, 2):
            status, newest = random.choice(STATUSES), version - 1
            row: Any = row_with("items", n, version=version, status=status, newest=newest, **held)
            made.append(ItemRow(*row))
    return made


@pytest.mark.parametrize("seed", range(3))
def test_pages_are_those_of_the_whole_list(any_mem: Memory, seed: int) -> None:
    random = Random(seed)
    rows = _rows(random, 60)
    any_mem._ctx.engine.write("default", lambda tx: tx.do(Insert(ITEMS.name, rows)))
    ranks = {item.id: n for n, item in enumerate(any_mem._ctx.engine.read("default", lambda r: select_items(r, ())))}

    def walk(reader: Reader, where: tuple[Condition, ...], descending: bool, size: int) -> list[Listed]:
        found: list[Listed] = []
        while True:
            page = rows_listed(reader, where, after=found[-1] if found else None, descending=descending, limit=size)
            found += page
            if len(page) < size:
                return found

    for owner in ("a", "b", "c", None):
        for descending in (False, True):
            since, size = _moment(random.choice((0, 3))), random.choice((1, 4, 100))
            where: tuple[Condition, ...] = (("kind", "=", "k"), *NEWEST, ("placed_at", ">=", since))
            where += () if owner is None else (("owner", "=", owner),)
            found = any_mem._ctx.engine.read(
                "default", lambda reader, asked=(where, descending, size): walk(reader, *asked)
            )
            own = [row for row in rows if row.kind == "k" and row.newest and row.placed_at >= since]
            own = [row for row in own if owner in (None, row.owner)]
            own.sort(key=lambda row: (row.placed_at, ranks[row.id]), reverse=descending)
            assert found == [(row.placed_at, row.id) for row in own]


def test_a_list_of_runs_goes_by_when_they_began_whatever_became_of_them(any_mem: Memory) -> None:
    begun = []
    for number in range(6):
        run = any_mem.run(user_id="ana", agent_id="agent")
        run.observe("user", f"Find a table for {number}.")
        begun.append(run)
    for run in begun[::2]:
        run.finish()
    assert [state.run_id for state in any_mem.runs(user_id="ana")] == [run.run_id for run in begun]


def _items(mem: Memory, tenant_id: str = "default") -> list[Item]:
    return mem._ctx.engine.read(tenant_id, lambda reader: select_items(reader, ()))


def _filled(mem: Memory) -> None:
    """Items of several versions, of users, runs and banks; one that lost a source, some that were forgotten."""
    for user_id in ("ana", "bo"):
        run = mem.run(user_id=user_id, session_id="s", objective="Plan a trip.")
        said = [run.observe("user", f"I live in {city}.") for city in ("Oslo", "Rome")]
        for entry, city in zip(said, ("Oslo", "Rome"), strict=True):
            run.remember("user.city", city, sources=[entry.id])
        run.compose("responder", query="Where does the user live?", max_tokens=300)
        run.propose("user.diet", "vegetarian", sources=[said[0].id])
        run.log.claim("The user moved.", evidence=[{"event_id": said[1].id, "quote": "I live in Rome"}])
        run.finish()
    mem.forget(event=said[0].id)
    mem.forget(user_id="ana")


def test_one_version_of_each_item_that_is_left_is_the_newest(any_mem: Memory) -> None:
    _filled(any_mem)
    by_id: dict[str, list[Item]] = {}
    for item in _items(any_mem):
        by_id.setdefault(item.id, []).append(item)
    assert max(map(len, by_id.values())) > 1
    for versions in by_id.values():
        shown = [0] * (len(versions) - 1) + [int(versions[-1].receipt_id is None)]
        assert [item.newest for item in versions] == shown, versions[-1]
        assert {item.placed_at for item in versions} == {versions[0].created_at}
        assert len({item.owner for item in versions}) == 1
    owners = {(item.kind, item.owner == item.user_id) for item in _items(any_mem) if item.owner is not None}
    assert {("run", True), ("build", True), ("fact", True), ("candidate", True), ("claim", False)} <= owners


def test_a_dump_brings_items_to_the_same_places(make: Callable[..., Memory]) -> None:
    mem, other = make("sqlite"), make("sqlite")
    run = mem.run(user_id="ana", session_id="s", objective="Plan a trip.")
    run.observe("user", "I live in Oslo.")
    other.import_(list(mem.export()))
    run.finish()
    other.import_(list(mem.export()))  # one version more of what is there
    _filled(mem)
    third = make("sqlite")
    third.import_(list(mem.export()))
    assert [_place(item) for item in _items(third)] == [_place(item) for item in _items(mem)]
    assert [item.newest for item in _items(other)] == [0, 1]
    assert other.verify().ok
    assert third.verify().ok


def _place(item: Item) -> tuple[object, ...]:
    return item.id, item.version, item.newest, item.owner, item.placed_at


def test_a_wrong_place_is_found_by_a_verification_and_put_right_by_a_rebuild(any_mem: Memory) -> None:
    _filled(any_mem)
    whole = _items(any_mem)
    assert any_mem.verify().ok
    missed = []
    for kind in ("fact", "build", "receipt", "run"):
        for column, value in (("newest", 1), ("newest", 0), ("owner", "eve"), ("placed_at", _moment(0))):
            wrong = Patch("items", (("kind", "=", kind),), {column: value})
            any_mem._ctx.engine.write("default", lambda tx, wrong=wrong: tx.do(wrong))
            if _items(any_mem) == whole:
                continue
            report = any_mem.verify()
            any_mem.store.rebuild()
            if report.ok or not any_mem.verify().ok or _items(any_mem) != whole:
                missed.append(wrong)
    assert missed == []
