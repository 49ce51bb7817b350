"""Rows by name: each table is read and written as its row class, on an engine, through every function there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import pytest

from muniment.core.ports.engine import Engine, KeyTaken, Reader, Transaction
from muniment.core.ports.rows import (
    ASKED_MAX,
    by_ids,
    chunked,
    first,
    get,
    insert,
    put,
    select,
    stream,
    stream_texts,
    texts,
)
from muniment.core.ports.schema import BLOBS, ITEMS, LINKS, SESSIONS, TABLES, LinkRow, SessionRow, Table, column_names
from muniment.errors import InvalidInput
from muniment.store.engines.sqlite import SqliteEngine
from muniment.testing.engine_contract import sample_key, sample_row

T = TypeVar("T")


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = SqliteEngine(":memory:")
    yield engine
    engine.close()


def asked(engine: Engine, question: Callable[[Reader], T]) -> T:
    return engine.read("t1", question)


def filled(engine: Engine, spec: Table[Any], count: int) -> list[Any]:
    rows = [spec.row(*sample_row(spec, number)) for number in range(1, count + 1)]
    engine.write("t1", lambda tx: insert(tx, spec, rows))
    return rows


def by_name(spec: Table[Any]) -> str:
    return spec.name


@pytest.mark.parametrize("spec", TABLES, ids=by_name)
def test_every_table_is_read_as_its_row_class(engine: Engine, spec: Table[Any]) -> None:
    rows = filled(engine, spec, 1 if not spec.key else 3)
    for found in (
        asked(engine, lambda reader: select(reader, spec)),
        asked(engine, lambda reader: list(stream(reader, spec))),
        asked(engine, lambda reader: [get(reader, spec, sample_key(spec, 1)), *rows[1:]]),
        asked(engine, lambda reader: [first(reader, spec), *rows[1:]]),
    ):
        assert found == rows
        assert {type(row) for row in found} == {spec.row}
    assert spec.row._fields == column_names(spec)


@pytest.mark.parametrize("spec", TABLES, ids=by_name)
def test_what_is_not_there_is_none(engine: Engine, spec: Table[Any]) -> None:
    assert asked(engine, lambda reader: get(reader, spec, sample_key(spec, 1))) is None
    assert asked(engine, lambda reader: first(reader, spec)) is None
    assert asked(engine, lambda reader: select(reader, spec)) == []


class Head(NamedTuple):
    head_hash: bytes
    user_id: str


class Tail(NamedTuple):
    user_id: str
    end: int


def test_a_pick_has_the_fields_it_names_in_its_order(engine: Engine) -> None:
    rows = filled(engine, SESSIONS, 3)
    wanted = [Head(row.head_hash, row.user_id) for row in rows]
    where = (("head_seq", ">", 1),)
    for found in (
        asked(engine, lambda reader: select(reader, SESSIONS, where, into=Head)),
        asked(engine, lambda reader: list(stream(reader, SESSIONS, where, into=Head))),
        asked(engine, lambda reader: [first(reader, SESSIONS, where, into=Head), wanted[2]]),
        asked(engine, lambda reader: list(by_ids(reader, SESSIONS, (2, 3), column="head_seq", into=Head))),
    ):
        assert found == wanted[1:]
        assert {type(row) for row in found} == {Head}


def test_a_field_that_is_no_column_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="table sessions has no column 'end'"):
        asked(engine, lambda reader: select(reader, SESSIONS, into=Tail))


def test_order_and_limits_go_with_the_question(engine: Engine) -> None:
    rows = filled(engine, SESSIONS, 5)

    def newest(reader: Reader) -> list[SessionRow]:
        return select(reader, SESSIONS, order=("head_seq",), after=(5,), descending=True, limit=2)

    assert asked(engine, newest) == [rows[3], rows[2]]
    last = asked(engine, lambda reader: first(reader, SESSIONS, order=("head_seq",), descending=True))
    assert last == rows[4]


@pytest.mark.parametrize("count", [0, 1, ASKED_MAX, ASKED_MAX + 1])
def test_however_many_ids_are_asked_for(engine: Engine, count: int) -> None:
    rows = filled(engine, LINKS, count + 2)[:count]
    ids = [row.source_id for row in rows]
    portions = list(chunked(ids))
    assert [id_ for portion in portions for id_ in portion] == ids
    assert all(0 < len(portion) <= ASKED_MAX for portion in portions)
    assert asked(engine, lambda reader: list(by_ids(reader, LINKS, ids, column="source_id"))) == rows


def test_texts_of_one_column(engine: Engine) -> None:
    rows = filled(engine, LINKS, 3)
    wanted = [row.item_id for row in rows]
    assert asked(engine, lambda reader: texts(reader, LINKS, "item_id")) == wanted
    assert asked(engine, lambda reader: texts(reader, LINKS, "item_id", limit=2)) == wanted[:2]
    assert asked(engine, lambda reader: list(stream_texts(reader, LINKS, "item_id"))) == wanted


@pytest.mark.parametrize(("spec", "column"), [(ITEMS, "body"), (BLOBS, "size"), (BLOBS, "hash"), (LINKS, "nothing")])
def test_a_column_that_may_hold_no_text_is_no_column_of_texts(engine: Engine, spec: Table[Any], column: str) -> None:
    for ask in (texts, stream_texts):
        with pytest.raises(InvalidInput, match=column):
            asked(engine, lambda reader, ask=ask: list(ask(reader, spec, column)))  # type: ignore[misc]


def test_insert_refuses_and_put_replaces(engine: Engine) -> None:
    (row,) = filled(engine, SESSIONS, 1)
    changed = row._replace(head_seq=7)

    def both(tx: Transaction) -> None:
        put(tx, SESSIONS, [changed])
        put(tx, LINKS, [LinkRow("a", "x")])

    engine.write("t1", both)
    assert asked(engine, lambda reader: select(reader, SESSIONS)) == [changed]
    with pytest.raises(KeyTaken):
        engine.write("t1", lambda tx: insert(tx, SESSIONS, [row]))
