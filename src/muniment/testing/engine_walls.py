"""The walls of an engine as tests: one tenant never meets another, and nonsense is refused alike everywhere.

Mixed into `EngineContract`; written apart because these tests cover every table by its declaration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.core.ports.engine import (
    Advance,
    Count,
    Delete,
    Engine,
    Get,
    Insert,
    KeyTaken,
    Lock,
    LockAll,
    Op,
    Patch,
    Put,
    Reader,
    Remove,
    Row,
    Select,
)
from muniment.core.ports.schema import OPAQUE, TABLES, Table
from muniment.errors import InvalidInput, StorageFailure
from muniment.testing.rows import row_with, sample_key, sample_row

__all__ = ["EngineWalls"]

every_table = pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)


class EngineWalls:
    @pytest.fixture
    def engine(self) -> Engine:
        pytest.fail("give an `engine` fixture")

    # -- one tenant never meets another

    @every_table
    def test_no_operation_reaches_another_tenant(self, engine: Engine, spec: Table[Any]) -> None:
        rows = [sample_row(spec, number) for number in ((1, 2, 3) if spec.key else (1,))]
        engine.write("mine", lambda transaction: transaction.do(Insert(spec.name, rows)))
        names = [column.name for column in spec.columns]
        fixed = {*spec.key}.union(*spec.unique)
        free = next((column for column in spec.columns if column.name not in fixed), None)
        for name, value in zip(names, rows[0], strict=True):
            if spec.columns[names.index(name)].form in OPAQUE:
                continue  # nothing can be asked of it
            where = ((name, "=", value),)
            for op, nothing in ((Select(spec.name, where), []), (Count(spec.name, where), 0)):  # type: ignore[arg-type]
                assert engine.read("other", lambda reader, op=op: reader.do(op)) == nothing  # type: ignore[misc]
            gone: Op[int] = Delete(spec.name, where)  # type: ignore[arg-type]
            assert engine.write("other", lambda transaction, op=gone: transaction.do(op)) == 0  # type: ignore[misc]
            if free is not None:
                new = sample_row(spec, 7)[names.index(free.name)]
                patch = Patch(spec.name, where, {free.name: new})  # type: ignore[arg-type]
                assert engine.write("other", lambda transaction, op=patch: transaction.do(op)) == 0  # type: ignore[misc]
        for reading in (self._all, self._streamed):
            assert engine.read("other", lambda reader, ask=reading: ask(reader, spec)) == []  # type: ignore[misc]
            with engine.snapshot("other") as view:
                assert reading(view, spec) == []
        for number in range(1, len(rows) + 1):
            assert engine.read("other", lambda r, n=number: r.do(Get(spec.name, sample_key(spec, n)))) is None  # type: ignore[misc]
        assert engine.read("mine", lambda reader: self._all(reader, spec)) == rows

    def _all(self, reader: Reader, spec: Table[Any]) -> list[Row]:
        return reader.do(Select(spec.name))

    def _streamed(self, reader: Reader, spec: Table[Any]) -> list[Row]:
        return list(reader.stream(Select(spec.name)))

    @every_table
    def test_the_same_key_in_two_tenants(self, engine: Engine, spec: Table[Any]) -> None:
        """Two rows that know nothing of each other, whatever the table."""
        mine, theirs = sample_row(spec, 1), sample_row(spec, 2)
        names = [column.name for column in spec.columns]
        other = tuple(a if name in spec.key else b for name, a, b in zip(names, mine, theirs, strict=True))
        engine.write("mine", lambda transaction: transaction.do(Insert(spec.name, [mine])))
        for op in (Insert(spec.name, [other]), Put(spec.name, [other])):
            engine.write("other", lambda transaction, op=op: transaction.do(op))  # type: ignore[misc]
            assert engine.read("other", lambda reader: self._all(reader, spec)) == [other]
            engine.write("other", lambda t: t.do(Delete(spec.name, ((names[0], "=", other[0]),))))
        assert engine.read("mine", lambda reader: self._all(reader, spec)) == [mine]

    def test_a_key_is_taken_in_its_own_tenant_and_in_no_other(self, engine: Engine) -> None:
        engine.write("t1", lambda transaction: transaction.do(Insert("rates", [("one", 1, 1)])))
        engine.write("t2", lambda transaction: transaction.do(Insert("rates", [("two", 1, 1), ("one", 2, 2)])))
        with pytest.raises(KeyTaken) as caught:
            engine.write("t1", lambda transaction: transaction.do(Insert("rates", [("two", 1, 1), ("one", 1, 1)])))
        assert caught.value.table == "rates"
        assert engine.read("t1", lambda reader: reader.do(Select("rates"))) == [("one", 1, 1)]
        engine.write("t1", lambda transaction: transaction.do(Delete("rates", (("name", "=", "one"),))))
        assert engine.read("t2", lambda reader: reader.do(Get("rates", ("one",)))) == ("one", 2, 2)

    def test_names_that_are_nearly_the_same(self, engine: Engine) -> None:
        tenants = ["t", "T", "t ", " t", "t%", "t_", "é", "e\u0301", "'; --", "\\", '"', "😀"]
        for number, tenant in enumerate(tenants):
            op = Insert("links", [("a", f"{number}")])
            engine.write(tenant, lambda transaction, op=op: transaction.do(op))  # type: ignore[misc]
        for number, tenant in enumerate(tenants):
            assert engine.read(tenant, lambda reader: reader.do(Select("links"))) == [("a", f"{number}")]

    # -- nonsense is refused

    @pytest.mark.parametrize("tenant", ["", "*", "a\0b", "\ud800", None, 1, b"t"], ids=repr)
    def test_what_is_no_tenant(self, engine: Engine, tenant: Any) -> None:
        with pytest.raises(InvalidInput):
            engine.write(tenant, lambda transaction: transaction.do(Insert("links", [("a", "b")])))
        with pytest.raises(InvalidInput):
            engine.read(tenant, lambda reader: reader.do(Count("links")))
        with pytest.raises(InvalidInput):
            engine.snapshot(tenant).__enter__()

    @pytest.mark.parametrize(
        "row",
        [
            ("a",),
            ("a", "b", "c"),
            ("a", None),
            ("a", 1),
            ("a", b"b"),
            ("a", "\0"),
            ("a", "b\0c"),
            ("a", "é\0"),
            ("a", "\ud800"),
            ("a", 1.5),
            ("a", True),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("rows", [1, 40])
    @pytest.mark.parametrize("op", [Insert, Put])
    def test_rows_a_table_cannot_hold(self, engine: Engine, row: Any, rows: int, op: Callable[..., Op[None]]) -> None:
        good = [(f"{number}", "x") for number in range(rows - 1)]
        with pytest.raises(InvalidInput):
            engine.write("t1", lambda transaction: transaction.do(op("links", [*good, row])))
        assert engine.read("t1", lambda reader: reader.do(Count("links"))) == 0

    @pytest.mark.parametrize("value", [2**63, -(2**63) - 1, True, "1", None, 1.0], ids=repr)
    @pytest.mark.parametrize("rows", [1, 40])
    def test_numbers_a_column_cannot_hold(self, engine: Engine, value: Any, rows: int) -> None:
        good = [row_with("sessions", number) for number in range(2, rows + 1)]
        bad = row_with("sessions", 1, head_seq=value)
        with pytest.raises(InvalidInput):
            engine.write("t1", lambda transaction: transaction.do(Insert("sessions", [*good, bad])))

    @pytest.mark.parametrize(
        "op",
        [
            Get("nowhere", ("a",)),
            Get("links", ("a",)),
            Get("links", ("a", None)),
            Get("links", ("a", 1)),
            Select("nowhere"),
            Select("links", (("nothing", "=", "a"),)),
            Select("links", (("tenant_id", "=", "t2"),)),
            Select("links", (("item_id", "like", "a"),)),  # type: ignore[arg-type]
            Select("links", (("item_id", "=", 1),)),
            Select("links", (("item_id", "<", None),)),
            Select("links", (("item_id", "=", ("a",)),)),
            Select("links", (("item_id", "in", "a"),)),
            Select("links", (("item_id", "in", ("a", None)),)),
            Select("links", (("item_id", "in", tuple(map(str, range(20_000)))),)),
            Select("links", (("item_id", "=", "\0"),)),
            Select("links", order=("nothing",)),
            Select("links", order=("tenant_id",)),
            Select("links", order=("item_id", "item_id")),
            Select("links", columns=("tenant_id",)),
            Select("links", after=("a",)),
            Select("links", after=("a", None)),
            Select("links", after=("a", 1)),
            Select("links", limit=-1),
            Select("links", limit=True),
            Select("items", order=("name",)),
            Select("tenants", after=()),
            Count("links", (("nothing", "=", "a"),)),
        ],
        ids=lambda op: repr(op)[:90],
    )
    def test_questions_without_sense(self, engine: Engine, op: Op[object]) -> None:
        with pytest.raises(InvalidInput):
            engine.read("t1", lambda reader: reader.do(op))
        if isinstance(op, Select):
            with pytest.raises(InvalidInput):
                engine.read("t1", lambda reader: list(reader.stream(op)))

    @pytest.mark.parametrize(
        "op",
        [
            Patch("items", (), {"body": "x"}),
            Patch("items", (("id", "=", "a"),), {}),
            Patch("items", (("id", "=", "a"),), {"id": "b"}),
            Patch("items", (("id", "=", "a"),), {"tenant_id": "b"}),
            Patch("items", (("id", "=", "a"),), {"status": None}),
            Patch("items", (("id", "=", "a"),), {"status": 1}),
            Patch("items", (("id", "=", "a"),), {"status": "\0"}),
            Patch("entries", (("id", "=", "a"),), {"seq": 2}),
            Delete("items", ()),
            Delete("items", (("nothing", "=", "a"),)),
            Insert("nowhere", [("a",)]),
        ],
        ids=lambda op: repr(op)[:90],
    )
    def test_changes_without_sense(self, engine: Engine, op: Op[object]) -> None:
        with pytest.raises(InvalidInput):
            engine.write("t1", lambda transaction: transaction.do(op))

    @pytest.mark.parametrize(
        "op",
        [
            Insert("links", [("a", "b")]),
            Put("links", [("a", "b")]),
            Advance("users", [("a", 1, 0, 0, 0, 0)]),
            Patch("items", (("id", "=", "a"),), {"body": "x"}),
            Delete("links", (("item_id", "=", "b"),)),
            Lock(("a",)),
            LockAll([("a",), ("b",)]),
            Remove("links", ("source_id", "item_id"), [("a", "b")]),
        ],
        ids=lambda op: type(op).__name__,
    )
    def test_a_reader_only_reads(self, engine: Engine, op: Op[object]) -> None:
        with pytest.raises(InvalidInput):
            engine.read("t1", lambda reader: reader.do(op))
        with engine.snapshot("t1") as view, pytest.raises(InvalidInput):
            view.do(op)

    def test_no_call_inside_the_work_of_another(self, engine: Engine) -> None:
        inner: list[Callable[[], object]] = [
            lambda: engine.write("t1", lambda transaction: transaction.do(Insert("links", [("b", "b")]))),
            lambda: engine.read("t1", lambda reader: reader.do(Count("links"))),
            lambda: engine.snapshot("t1").__enter__(),
            lambda: engine.tenants(),
            lambda: engine.scrub([b"x"]),
            lambda: engine.close(),
        ]
        for call in inner:
            with pytest.raises(StorageFailure):
                engine.write("t1", lambda _, call=call: call())  # type: ignore[misc]
            with pytest.raises(StorageFailure):
                engine.read("t1", lambda _, call=call: call())  # type: ignore[misc]
        assert engine.read("t1", lambda reader: reader.do(Count("links"))) == 0
