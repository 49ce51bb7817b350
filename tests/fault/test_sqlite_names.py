"""A SQLite file whose list of tables is damaged: a table or a column that has another name is never taken for something
else. SQLite takes a name in double quotes for a text where no column has it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Condition, Count, Delete, Insert, Put, Select, Transaction
from muniment.core.ports.schema import TABLES, Table, column_names
from muniment.errors import IntegrityFailure, NotADatabase
from muniment.store.engines.sqlite import SqliteEngine
from muniment.testing.engine_contract import sample_row

pytestmark = pytest.mark.req("TM-12")

TENANT = "default"
DAMAGED = (IntegrityFailure, NotADatabase)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A closed store in which something was said, composed and forgotten."""
    path = tmp_path_factory.mktemp("names") / "whole.db"
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        gone = run.observe("user", "I live in Lisbon and I like to cook at home.")
        run.observe("user", "Bob is my brother.")
        run.compose("responder", query="Where does the user live?")
        mem.forget(event=gone.id)
        mem.store.scrub()
    return path.read_bytes()


def renamed(path: Path, table: str, old: str, new: str) -> None:
    """Edit what the file says of a table, as flipped bytes would."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA writable_schema = ON")
        where = "type = 'table' AND name = ?"
        (text,) = file.execute(f"SELECT sql FROM sqlite_schema WHERE {where}", (table,)).fetchone()
        assert old in text
        file.execute(f"UPDATE sqlite_schema SET sql = replace(sql, ?, ?) WHERE {where}", (old, new, table))
        file.commit()


def _altered(name: str) -> str:
    return name[:-1] + ("x" if name[-1] != "x" else "y")


@pytest.mark.soak
@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_a_column_of_another_name_is_damage(tmp_path: Path, written: bytes, spec: Table[Any]) -> None:
    for column in ("tenant_id", *column_names(spec)):
        path = tmp_path / f"{column}.db"
        path.write_bytes(written)
        renamed(path, spec.name, column, _altered(column))
        row = sample_row(spec, 7)
        asked: list[Any] = [Select(spec.name), Insert(spec.name, [row]), Put(spec.name, [row])]
        if column != "tenant_id":
            where: tuple[Condition, ...] = ((column, ">=", row[column_names(spec).index(column)]),)
            asked += [Count(spec.name, where), Delete(spec.name, where)]
        for op in asked:
            with pytest.raises(DAMAGED), closing(SqliteEngine(path)) as engine:
                engine.write(TENANT, partial(_do, op))


def _do(op: Any, tx: Transaction) -> Any:
    return tx.do(op)


@pytest.mark.parametrize(("table", "column"), [("links", "source_id"), ("lineages", "turns"), ("lineages", "user_id")])
def test_no_door_tells_the_name_of_a_column(tmp_path: Path, written: bytes, table: str, column: str) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(written)
    renamed(path, table, column, _altered(column))
    with pytest.raises(DAMAGED), muniment.open(path) as mem:
        list(mem.export())
    with pytest.raises(DAMAGED), muniment.open(path) as mem:
        mem.forget(user_id="ana")


def test_a_table_that_is_not_listed_is_damage(tmp_path: Path, written: bytes) -> None:
    for spec in TABLES:
        path = tmp_path / f"{spec.name}.db"
        path.write_bytes(written)
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA writable_schema = ON")
            file.execute("DELETE FROM sqlite_schema WHERE tbl_name = ?", (spec.name,))
            file.commit()
        with pytest.raises(DAMAGED), closing(SqliteEngine(path)) as engine:
            engine.write(TENANT, partial(_do, Select(spec.name)))
