"""Every row comes back from both engines as it was written, in the order of its values, however they are stored."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.core.ports.engine import Engine, Get, Insert, Put, Reader, Row, Select, Transaction
from muniment.core.ports.schema import TABLES, Column, Table
from muniment.errors import InvalidInput
from muniment.store.engines.checks import shape_of
from muniment.store.engines.codec import PREFIXES, WORDS
from muniment.store.engines.postgres import PostgresEngine
from muniment.store.engines.sqlite import SqliteEngine
from muniment.testing.engine_contract import row_with
from muniment.testing.postgres import fresh_schema

texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)
ids = st.one_of(
    st.builds("{}_{:032x}".format, st.sampled_from(PREFIXES), st.integers(0, 2**128 - 1)),
    st.builds(
        "{}_{:x}{}".format, st.sampled_from(PREFIXES), st.integers(0, 2**128 - 1), st.sampled_from(["", "g", "-"])
    ),
    texts,
    st.sampled_from(["", "e" * 2000]),
)
times = st.sampled_from(
    ["", "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"]
    + [f"2026-05-01T12:00:00.{n:06}Z" for n in range(4)]
)
bodies = st.one_of(texts, texts.map('{{"content":"{}"}}'.format), st.just("word " * 400))
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "id": ids,
    "ids": st.lists(ids, min_size=1, max_size=4).map("\n".join),
    "name": texts,
    "instant": times,
    "word": st.one_of(st.sampled_from(WORDS), texts),
    "body": bodies,
    "packed": bodies,
    "text": texts,
    "int": st.integers(-(2**63), 2**63 - 1),
    "bytes": st.binary(max_size=700),
}
_tenants = count(1)


@pytest.fixture(scope="module", params=["memory", "sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    if request.param == "postgres":
        dsn = request.getfixturevalue("postgres_dsn")
        with fresh_schema(dsn) as schema, closing(PostgresEngine(dsn, schema=schema)) as engine:
            yield engine
        return
    target = ":memory:" if request.param == "memory" else tmp_path_factory.mktemp("stored") / "store.db"
    with closing(SqliteEngine(target)) as engine:
        yield engine


def _values(column: Column) -> st.SearchStrategy[Any]:
    form = column.type if column.form == "plain" or column.type == "bytes" else column.form
    values = _VALUES[form]
    return st.one_of(st.none(), values) if column.nullable else values


def _rows(spec: Table[Any]) -> st.SearchStrategy[list[Row]]:
    row = st.tuples(*map(_values, spec.columns))
    keys = [tuple(spec.columns.index(c) for c in spec.columns if c.name in key) for key in (spec.key, *spec.unique)]
    unique = tuple(lambda row, key=key: tuple(row[at] for at in key) for key in keys)
    return st.lists(row, min_size=1, max_size=6 if spec.key else 1, unique_by=unique)


@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_rows_come_back_in_the_order_of_their_values(engine: Engine, spec: Table[Any]) -> None:
    shape = shape_of(spec.name)

    @given(_rows(spec))
    @settings(max_examples=examples(16))
    def check(rows: list[Row]) -> None:
        tenant = f"t{next(_tenants)}"
        wanted = sorted(rows, key=shape.key_of)
        engine.write(tenant, lambda tx: tx.do(Insert(spec.name, rows)))

        def read(reader: Reader) -> None:
            assert reader.do(Select(spec.name)) == wanted
            assert list(reader.stream(Select(spec.name, descending=True))) == wanted[::-1]
            for at, row in enumerate(wanted):
                assert reader.do(Get(spec.name, shape.key_of(row))) == row
                if spec.key:
                    assert reader.do(Select(spec.name, after=shape.key_of(row))) == wanted[at + 1 :]

        engine.read(tenant, read)
        engine.write(tenant, lambda tx: tx.do(Put(spec.name, rows)))
        engine.read(tenant, read)

    check()


@pytest.mark.parametrize("column", ["id", "user_id", "kind", "body", "flags", "run_id", "receipt_id"])
def test_texts_that_no_store_holds_are_the_same_error(engine: Engine, column: str) -> None:
    for text, words in (("a\0b", "holds a NUL character"), ("a\udc80", "holds a lone surrogate")):
        row = row_with("entries", 1, **{column: text})
        with pytest.raises(InvalidInput, match=words):
            engine.write("odd", lambda tx, row=row: tx.do(Insert("entries", [row])))  # type: ignore[misc]
        if column != "body":
            with pytest.raises(InvalidInput, match=words):
                engine.read("odd", lambda reader, text=text: reader.do(Select("entries", ((column, "=", text),))))  # type: ignore[misc]


# -- names


class Stopped(Exception):
    pass


def _names_of(engine: Engine, tenant: str) -> list[str]:
    rows = engine.read(tenant, lambda reader: reader.do(Select("lineages")))
    return [row[1] for row in rows]  # type: ignore[misc]


def _add(tx: Transaction, item: str, *names: str) -> None:
    for name in names:
        tx.do(Insert("lineages", [(f"{item}{name}", name, "")]))


def test_a_name_that_was_rolled_back_is_given_anew(engine: Engine) -> None:
    def stop(tx: Transaction) -> None:
        _add(tx, "a", "ann", "bob")
        raise Stopped

    for _ in range(2):
        with pytest.raises(Stopped):
            engine.write("rolled", stop)
    engine.write("rolled", lambda tx: _add(tx, "b", "cleo"))
    engine.write("rolled", lambda tx: _add(tx, "c", "bob", "ann"))
    assert sorted(_names_of(engine, "rolled")) == ["ann", "bob", "cleo"]
    found = engine.read("rolled", lambda reader: reader.do(Select("lineages", (("user_id", "=", "bob"),))))
    assert found == [("cbob", "bob", "")]


def test_a_new_tenant_that_was_rolled_back_is_written_later(engine: Engine) -> None:
    def stop(tx: Transaction) -> None:
        _add(tx, "a", "ann")
        raise Stopped

    with pytest.raises(Stopped):
        engine.write("never was", stop)
    assert _names_of(engine, "never was") == []
    engine.write("another", lambda tx: _add(tx, "a", "zoe"))
    assert _names_of(engine, "never was") == []
    engine.write("never was", lambda tx: _add(tx, "a", "ann"))
    assert (_names_of(engine, "never was"), _names_of(engine, "another")) == (["ann"], ["zoe"])


@pytest.fixture(params=["sqlite", "postgres"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Engine, Engine]]:
    """Two engines over one store, as two processes have them: neither knows what the other has learned."""
    if request.param == "sqlite":
        with closing(SqliteEngine(tmp_path / "a.db")) as one, closing(SqliteEngine(tmp_path / "a.db")) as other:
            yield one, other
        return
    dsn = request.getfixturevalue("postgres_dsn")
    with (
        fresh_schema(dsn) as schema,
        closing(PostgresEngine(dsn, schema=schema)) as one,
        closing(PostgresEngine(dsn, schema=schema)) as other,
    ):
        yield one, other


def test_two_processes_give_a_name_one_number(two: tuple[Engine, Engine]) -> None:
    """Both give the same new names at once, in opposite orders, round after round; a third of them is rolled back."""
    rounds = 12
    meet = threading.Barrier(2)
    failures: list[BaseException] = []

    def write(engine: Engine, own: str, *, is_back: bool) -> None:
        try:
            for at in range(rounds):
                names = [f"{at} {each}" for each in ("x", "y", "z")]
                meet.wait()
                try:
                    engine.write("t", lambda tx, at=at, names=names: give(tx, at, names[:: -1 if is_back else 1], own))
                except Stopped:
                    continue
        except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
            failures.append(error)
            meet.abort()

    def give(tx: Transaction, at: int, names: list[str], own: str) -> None:
        _add(tx, own, *names)
        if (at + len(own)) % 3 == 0:
            raise Stopped

    threads = [
        threading.Thread(target=write, args=(two[0], "a"), kwargs={"is_back": False}),
        threading.Thread(target=write, args=(two[1], "bb"), kwargs={"is_back": True}),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    wanted = sorted(
        f"{at} {each}" for own in (1, 2) for at in range(rounds) if (at + own) % 3 for each in ("x", "y", "z")
    )
    for engine in two:
        assert sorted(_names_of(engine, "t")) == wanted
    for name in set(wanted):
        for engine in two:
            found = engine.read("t", lambda reader, n=name: reader.do(Select("lineages", (("user_id", "=", n),))))  # type: ignore[misc]
            assert len(found) == wanted.count(name)


def test_numbers_that_were_skipped_are_read_over(two: tuple[Engine, Engine]) -> None:
    """A rolled back transaction leaves gaps in a server's numbers, wider than the names that are read at once."""

    def stop(tx: Transaction) -> None:
        _add(tx, "a", *(f"gone {n}" for n in range(300)))
        raise Stopped

    two[0].write("t", lambda tx: _add(tx, "a", "first"))
    with pytest.raises(Stopped):
        two[0].write("t", stop)
    two[0].write("t", lambda tx: _add(tx, "a", "last"))
    assert _names_of(two[1], "t") == ["first", "last"]
