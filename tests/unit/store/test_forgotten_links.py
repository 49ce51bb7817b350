"""What a forgotten item was made from is told as the forget left it, or not at all: `export` and `verify` notice each
edit of a link."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from muniment.core.ports.engine import Delete, Patch, Reader, Transaction
from muniment.core.ports.rows import get, insert, put, select
from muniment.core.ports.schema import ITEMS, LINEAGES, LINKS, LineageRow, LinkRow
from muniment.errors import StoreDamaged
from muniment.handles.memory import Memory
from muniment.store.items import Item, links_of

pytestmark = pytest.mark.req("TM-12")

Edit = Callable[[Transaction], Any]
ENGINES = ("sqlite", "postgres")
NOBODY, OTHER = "evt_nobody", "ev-bob"


def tell(mem: Memory) -> None:
    """One user with items of many kinds, and another who stays."""
    run = mem.run(user_id="ana", session_id="s1", run_id="run-ana", objective="help ana to cook")
    run.observe("user", "I live in Lisbon and I like to cook at home.", id="ev-ana")
    run.observe("assistant", "Lisbon has many kitchens, and yours is one of them.", id="ev-answer")
    run.remember("user.city", "Lisbon", sources=["ev-ana"])
    run.procedure("cook", {"steps": ["wash the rice"]}, sources=["ev-ana"])
    quote = {"event_id": "ev-ana", "quote": "I like to cook at home"}
    run.log.claim("Ana cooks at home.", evidence=[quote], status="verified")
    run.patch(goal="cook rice")
    run.compose("responder", query="Where does the user live?")
    mem.run(user_id="bob", session_id="s1").observe("user", "bob stays where he is", id=OTHER)


def forgotten(mem: Memory) -> dict[str, Item]:
    """By kind, an item that was forgotten and was made from something."""

    def work(reader: Any) -> dict[str, Item]:
        rows = select(reader, ITEMS, (("version", "=", 1),), into=Item)
        return {row.kind: row for row in rows if row.body is None and links_of(reader, row.id)}

    return mem._ctx.engine.read("default", work)


def write(mem: Memory, work: Callable[[Transaction], Any]) -> None:
    mem._ctx.engine.write("default", work)
    mem._ctx.clear_caches()


def _move(link: LinkRow, to: Sequence[LinkRow], tx: Transaction) -> None:
    tx.do(Delete("links", (("source_id", "=", link.source_id), ("item_id", "=", link.item_id))))
    put(tx, LINKS, to)


def _add(link: LinkRow, tx: Transaction) -> None:
    insert(tx, LINKS, [link])


def _relate(old: LineageRow | None, new: LineageRow | None, tx: Transaction) -> None:
    """Put one row of turns in the place of another."""
    if old is not None:
        tx.do(Delete("lineages", (("item_id", "=", old.item_id),)))
    if new is not None:
        insert(tx, LINEAGES, [new])


def _edits(reader: Reader, id_: str) -> Iterator[tuple[str, Edit]]:
    """Every way in which what an item was made from can be edited."""
    for link in select(reader, LINKS, (("item_id", "=", id_),))[:2]:
        for source in (NOBODY, OTHER, link.source_id[:-1] + "~"):
            yield f"source {source}", partial(_move, link, [LinkRow(source, id_)])
        yield "item", partial(_move, link, [LinkRow(link.source_id, "itm_other")])
        yield "deleted", partial(_move, link, [])
    yield "added", partial(_add, LinkRow(OTHER, id_))
    lineage = get(reader, LINEAGES, (id_,))
    if lineage is None:
        yield "turns added", partial(_relate, None, LineageRow(id_, "ana", OTHER))
        return
    for name, new in {
        "turns": lineage._replace(turns="turns"),
        "a turn more": lineage._replace(turns=f"{lineage.turns}\n{OTHER}"),
        "user": lineage._replace(user_id="bob"),
        "item of turns": lineage._replace(item_id="itm_other"),
        "turns deleted": None,
    }.items():
        yield name, partial(_relate, lineage, new)


def _all_edits(id_: str, reader: Reader) -> list[tuple[str, Edit]]:
    return list(_edits(reader, id_))


def _clear(tx: Transaction) -> None:
    for name in ("links", "lineages"):
        tx.do(Delete(name, (("item_id", ">=", ""),)))


def _rows(mem: Memory) -> tuple[list[LinkRow], list[LineageRow]]:
    return mem._ctx.engine.read("default", lambda reader: (select(reader, LINKS), select(reader, LINEAGES)))


def _restore(mem: Memory, held: tuple[list[LinkRow], list[LineageRow]]) -> None:
    def work(tx: Transaction) -> None:
        _clear(tx)
        insert(tx, LINKS, held[0])
        insert(tx, LINEAGES, held[1])

    write(mem, work)


CASES = [
    *((engine, {"event": "ev-ana"}) for engine in ENGINES),
    ("memory", {"session": "s1", "user_id": "ana"}),
    ("memory", {"user_id": "ana"}),
]


@pytest.mark.parametrize(("engine", "selector"), CASES)
def test_each_edit_of_a_forgotten_link_is_noticed(
    make: Callable[..., Memory], engine: str, selector: dict[str, str]
) -> None:
    mem = make(engine)
    tell(mem)
    mem.forget(**selector)
    whole = list(mem.export())
    held, kinds = _rows(mem), forgotten(mem)
    assert {"build", "fact"} <= kinds.keys()
    assert mem.verify().ok
    tried = 0
    for kind, item in kinds.items():
        for name, edit in mem._ctx.engine.read("default", partial(_all_edits, item.id)):
            write(mem, edit)
            told = f"{kind}, {name}"
            with pytest.raises(StoreDamaged, match=re.escape(item.id)):
                list(mem.export())
            report = mem.verify()
            assert not report.ok, told
            assert item.id in {each.id for each in report.differing}, told
            _restore(mem, held)
            tried += 1
    assert tried >= 10
    assert list(mem.export()) == whole
    assert mem.verify().ok


@pytest.mark.parametrize("engine", ENGINES)
def test_tombstones_that_come_with_a_dump_are_sealed_too(make: Callable[..., Memory], engine: str) -> None:
    mem, other = make("memory"), make(engine, seed="other")
    tell(mem)
    mem.forget(event="ev-ana")
    dump = list(mem.export())
    other.import_(dump)
    assert list(other.export()) == dump
    assert other.verify().ok
    build = forgotten(other)["build"]
    write(other, lambda tx: insert(tx, LINKS, [LinkRow(OTHER, build.id)]))
    with pytest.raises(StoreDamaged, match=build.id):
        list(other.export())
    assert not other.verify().ok


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dump_of_before_adds_nothing_to_what_was_forgotten_here(make: Callable[..., Memory], engine: str) -> None:
    mem = make(engine)
    tell(mem)
    before = list(mem.export())
    mem.forget(event="ev-ana")
    build = forgotten(mem)["build"]
    lost = mem._ctx.engine.read("default", lambda reader: links_of(reader, build.id))
    after = list(mem.export())
    mem.import_(before)
    assert list(mem.export()) == after
    write(mem, _clear)
    mem.import_(before)  # what damage took is not made up for in silence either
    assert not set(lost) & set(mem._ctx.engine.read("default", lambda reader: links_of(reader, build.id)))
    assert not mem.verify().ok


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rebuild_does_not_vouch_for_links_that_were_altered(make: Callable[..., Memory], engine: str) -> None:
    """An item of several versions has one seal, at its newest: the older ones do not call for another."""
    mem = make(engine)
    run = mem.run(user_id="ana", session_id="s1", run_id="run-ana")
    for city in ("Lisbon", "Porto"):
        said = run.observe("user", f"I live in {city}, by the river.")
        run.remember("user.city", city, sources=[said.id])
    run.patch(goal="cook rice")
    run.patch(goal="cook lentils")
    mem.forget(user_id="ana")
    assert mem.verify().ok
    rows = mem._ctx.engine.read("default", lambda reader: select(reader, ITEMS, (("version", "=", 2),), into=Item))
    ids = {item.id for item in rows if item.body is None}
    assert len(ids) >= 2
    write(mem, lambda tx: insert(tx, LINKS, [LinkRow(OTHER, id_) for id_ in sorted(ids)]))
    for _ in range(2):
        assert ids <= {each.id for each in mem.verify().differing}
        mem.store.rebuild()
    with pytest.raises(StoreDamaged):
        list(mem.export())


@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_forgotten_and_is_said_again_has_other_links(make: Callable[..., Memory], engine: str) -> None:
    mem = make(engine)
    run = mem.run(user_id="ana", session_id="s1", run_id="run-ana")
    for number in range(3):
        said = run.observe("user", f"I live in Lisbon, in house number {number}.")
        run.remember("user.city", "Lisbon", sources=[said.id])
        run.patch(goal=f"find house {number}")
        run.compose("responder", query="Where?")
        if number < 2:
            mem.forget(event=said.id)
        assert mem.verify().ok
    other = make("memory")
    other.import_(list(mem.export()))
    assert list(other.export()) == list(mem.export())
    assert other.verify().ok


@pytest.mark.parametrize("values", [{"checked": 1}, {"checked": 2}, {"digest": None}, {"digest": b"x" * 64}, "cut"])
def test_the_seal_cannot_be_taken_away(make: Callable[..., Memory], values: Any) -> None:
    mem = make("memory")
    tell(mem)
    mem.forget(event="ev-ana")
    build = forgotten(mem)["build"]
    assert build.digest is not None
    changed = {"digest": build.digest[:32]} if values == "cut" else values
    write(mem, lambda tx: tx.do(Patch("items", (("id", "=", build.id),), changed)))
    with pytest.raises(StoreDamaged, match=build.id):
        list(mem.export())
    assert not mem.verify().ok
