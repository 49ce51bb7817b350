"""The contract of `core.ports.engine.Engine` as tests: subclass `EngineContract` and give it an `engine` fixture.

    class TestMyEngine(EngineContract):
        @pytest.fixture
        def engine(self):
            engine = MyEngine(...)
            yield engine
            engine.close()

The engine must be empty at the start of each test. Tests see it only through the port. `EngineWalls` holds the part of
the contract about isolation and refusals; `sample_row` makes rows for any declared table.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from muniment.core.instants import format_instant
from muniment.core.ports.engine import (
    Advance,
    Condition,
    Count,
    Delete,
    Engine,
    Find,
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
    Transaction,
    Value,
)
from muniment.core.ports.schema import OPAQUE, TABLES, Table, column_names, table
from muniment.errors import Closed, InvalidInput, MunimentError, StorageFailure
from muniment.store.engines.checks import shape_of

# -- sample rows ----------------------------------------------------------------------------------------


_FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def sample_row(spec: Table[Any], number: int) -> Row:
    """Return a row that differs from those of all other numbers in every column."""
    make: dict[str, Value] = {"text": f"{spec.name} {number:06d}", "int": number, "bytes": b"%s %06d" % (b"b", number)}
    moment = format_instant(_FIRST + timedelta(seconds=number))
    return tuple(moment if column.form == "instant" else make[column.type] for column in spec.columns)


def sample_key(spec: Table[Any], number: int) -> Row:
    row = sample_row(spec, number)
    names = column_names(spec)
    return tuple(row[names.index(name)] for name in spec.key)


def row_with(table_name: str, number: int = 1, **values: Value) -> Row:
    """Return the sample row of a table with some columns given."""
    spec = table(table_name)
    unknown = values.keys() - set(column_names(spec))
    if unknown:
        raise KeyError(f"{table_name} has no column {', '.join(sorted(unknown))}")
    names = column_names(spec)
    return tuple(values.get(name, value) for name, value in zip(names, sample_row(spec, number), strict=True))


def stored_row(spec: Table[Any], number: int) -> Row:
    """Return a row as SQL would write it, without its shard."""
    make: dict[str, Value] = {"text": f"={number:06d}", "int": number, "bytes": b"%06d" % number}
    return tuple(make[kind] for kind in shape_of(spec.name).stored.values())


# -- walls between tenants ------------------------------------------------------------------------------


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
        """Rows of two tenants are independent, whatever the table."""
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


# -- the contract ---------------------------------------------------------------------------------------


R = TypeVar("R")
TEXTS = (
    "",
    " ",
    "0",
    "A",
    "B",
    "a",
    "aa",
    "b",
    "z",
    "é",
    "ß",
    "Ω",
    "中",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "😀",
    "😀a",
    "𐍈",
)


def write(engine: Engine, *ops: Op[object], tenant: str = "t1") -> list[object]:
    return engine.write(tenant, lambda transaction: [transaction.do(op) for op in ops])


def read(engine: Engine, op: Op[R], tenant: str = "t1") -> R:
    return engine.read(tenant, lambda reader: reader.do(op))


_MANY_ROWS = 1500
"""More rows than an engine writes one by one, if it has a bulk path."""


class _Stop(Exception):
    """Raised by work in the middle of a transaction."""


def _meets(value: object, sign: str, wanted: Any) -> bool:
    return value == wanted if sign == "=" else value in wanted


class EngineContract(EngineWalls):
    @pytest.fixture
    def engine(self) -> Engine:
        pytest.fail("give an `engine` fixture")

    # -- one operation each

    @every_table
    def test_what_is_inserted_is_got(self, engine: Engine, spec: Table[Any]) -> None:
        rows = [sample_row(spec, number) for number in (range(1, 60) if spec.key else (1,))]
        write(engine, Insert(spec.name, rows))
        for number, row in enumerate(rows, start=1):
            assert read(engine, Get(spec.name, sample_key(spec, number))) == row
        assert read(engine, Count(spec.name)) == len(rows)
        if spec.key:
            assert read(engine, Get(spec.name, sample_key(spec, 99))) is None

    @every_table
    def test_thousands_of_rows_at_once_are_as_they_were_given(self, engine: Engine, spec: Table[Any]) -> None:
        if not spec.key:
            return
        rows = [sample_row(spec, number) for number in range(1, _MANY_ROWS)]
        empty = tuple(None if column.nullable else value for column, value in zip(spec.columns, rows[-1], strict=True))
        write(engine, Insert(spec.name, [*rows[:-1], empty]), Insert(spec.name, [sample_row(spec, _MANY_ROWS)]))
        assert read(engine, Get(spec.name, sample_key(spec, 7))) == rows[6]
        assert read(engine, Get(spec.name, sample_key(spec, _MANY_ROWS - 1))) == empty
        assert read(engine, Count(spec.name)) == _MANY_ROWS
        assert read(engine, Count(spec.name), tenant="t2") == 0
        with pytest.raises(KeyTaken) as caught:
            write(engine, Insert(spec.name, [sample_row(spec, number) for number in range(2, 2 * _MANY_ROWS)]))
        assert caught.value.table == spec.name
        assert read(engine, Count(spec.name)) == _MANY_ROWS

    @every_table
    def test_one_row_more_than_once_is_refused(self, engine: Engine, spec: Table[Any]) -> None:
        write(engine, Insert(spec.name, [sample_row(spec, 1)]))
        with pytest.raises(KeyTaken) as caught:
            write(engine, Insert(spec.name, [sample_row(spec, 1)]))
        assert caught.value.table == spec.name
        if spec.key:
            with pytest.raises(KeyTaken):
                write(engine, Insert(spec.name, [sample_row(spec, 2), sample_row(spec, 3), sample_row(spec, 2)]))
        assert read(engine, Count(spec.name)) == 1

    def test_a_unique_key_is_refused_by_insert_and_put(self, engine: Engine) -> None:
        write(engine, Insert("entries", [row_with("entries", 1, user_id="u", session_id="s", seq=1)]))
        for op in (Insert, Put):
            with pytest.raises(KeyTaken) as caught:
                write(engine, op("entries", [row_with("entries", 2, user_id="u", session_id="s", seq=1)]))
            assert caught.value.table == "entries"
        write(engine, Insert("entries", [row_with("entries", 2, user_id="u", session_id="s", seq=2)]))

    @every_table
    def test_put_adds_and_replaces(self, engine: Engine, spec: Table[Any]) -> None:
        key = set(spec.key)
        first, other = sample_row(spec, 1), sample_row(spec, 2)
        names = [column.name for column in spec.columns]
        changed = tuple(a if name in key else b for name, a, b in zip(names, first, other, strict=True))
        write(engine, Put(spec.name, [first]))
        write(engine, Put(spec.name, [first, changed]))
        assert read(engine, Get(spec.name, sample_key(spec, 1))) == changed
        assert read(engine, Count(spec.name)) == 1

    def test_nothing_to_insert_or_put_is_fine(self, engine: Engine) -> None:
        write(engine, Insert("links", []), Put("links", []))
        assert read(engine, Count("links")) == 0

    def test_patch_answers_how_many(self, engine: Engine) -> None:
        write(engine, Insert("items", [row_with("items", n, kind="k", status=f"s{n % 2}") for n in range(6)]))
        answer = write(engine, Patch("items", (("status", "=", "s1"),), {"body": None, "receipt_id": "r"}))
        assert answer == [3]
        rows = read(engine, Select("items", (("receipt_id", "=", "r"),), columns=("version", "body")))
        assert rows == [(1, None), (3, None), (5, None)]
        assert write(engine, Patch("items", (("kind", "=", "none"),), {"body": "x"})) == [0]
        assert write(engine, Patch("items", (("kind", "in", ()),), {"body": "x"})) == [0]

    def test_patched_columns_are_found_by_their_index(self, engine: Engine) -> None:
        write(engine, Insert("items", [row_with("items", n, kind="k", user_id="u", name=f"n{n}") for n in range(4)]))
        write(engine, Patch("items", (("name", "=", "n1"),), {"name": None}))
        write(engine, Patch("items", (("name", "=", "n2"),), {"name": "n0"}))
        ask = ("version",)
        where: tuple[Condition, ...] = (("kind", "=", "k"), ("user_id", "=", "u"))
        assert read(engine, Select("items", (*where, ("name", "=", None)), columns=ask)) == [(1,)]
        assert read(engine, Select("items", (*where, ("name", "=", "n0")), columns=ask)) == [(0,), (2,)]
        assert read(engine, Select("items", (*where, ("name", "=", "n1")), columns=ask)) == []

    def test_delete_answers_how_many(self, engine: Engine) -> None:
        write(engine, Insert("links", [(a, b) for a in "abc" for b in "xyz"]))
        assert write(engine, Delete("links", (("source_id", "=", "a"),))) == [3]
        assert write(engine, Delete("links", (("source_id", "in", ("b", "c", "d")), ("item_id", ">", "x")))) == [4]
        assert write(engine, Delete("links", (("source_id", "=", "a"),))) == [0]
        assert read(engine, Select("links")) == [("b", "x"), ("c", "x")]

    # -- conditions and order

    @pytest.mark.parametrize(
        ("condition", "found"),
        [
            (("head_seq", "=", 3), [3]),
            (("head_seq", "<", 3), [1, 2]),
            (("head_seq", "<=", 3), [1, 2, 3]),
            (("head_seq", ">", 3), [4, 5]),
            (("head_seq", ">=", 3), [3, 4, 5]),
            (("head_seq", "in", (5, 1, 9, 1)), [1, 5]),
            (("head_seq", "in", ()), []),
            (("session_id", ">=", "s3"), [3, 4, 5]),
            (("head_hash", "<", b"\x03"), [1, 2]),
            (("head_hash", "in", (b"\x04", b"\x05")), [4, 5]),
            (("head_seq", "=", None), []),
        ],
    )
    def test_conditions(self, engine: Engine, condition: tuple[str, str, object], found: list[int]) -> None:
        rows = [
            row_with("sessions", n, user_id="u", session_id=f"s{n}", head_seq=n, head_hash=bytes([n]))
            for n in (3, 1, 5, 2, 4)
        ]
        write(engine, Insert("sessions", rows))
        where = (condition,)
        assert read(engine, Select("sessions", where, columns=("head_seq",))) == [(n,) for n in found]  # type: ignore[arg-type]
        assert read(engine, Count("sessions", where)) == len(found)  # type: ignore[arg-type]

    def test_null_meets_only_the_question_for_null(self, engine: Engine) -> None:
        write(engine, Insert("items", [row_with("items", 1, name=None), row_with("items", 2, name="")]))
        for comparison, value, found in (
            ("=", None, [1]),
            ("=", "", [2]),
            (">=", "", [2]),
            ("<=", "zzz", [2]),
            ("in", ("", "a"), [2]),
        ):
            rows = read(engine, Select("items", (("name", comparison, value),), columns=("version",)))  # type: ignore[arg-type]
            assert rows == [(n,) for n in found], (comparison, value)

    def test_many_values_in_one_question(self, engine: Engine) -> None:
        write(engine, Insert("links", [(f"s{n:05d}", "i") for n in range(0, 3000, 3)]))
        wanted = tuple(f"s{n:05d}" for n in range(3000))
        assert read(engine, Count("links", (("source_id", "in", wanted),))) == 1000

    def test_text_sorts_by_code_point(self, engine: Engine) -> None:
        write(engine, Insert("links", [(text, "i") for text in reversed(TEXTS)]))
        expected = sorted(TEXTS)
        assert [a for a, _ in read(engine, Select("links"))] == expected
        assert [a for a, _ in read(engine, Select("links", descending=True))] == expected[::-1]
        for text in TEXTS:
            assert read(engine, Get("links", (text, "i"))) == (text, "i")
            above = [a for a, _ in read(engine, Select("links", (("source_id", ">", text),)))]
            assert above == [other for other in expected if other > text]
            after = [a for a, _ in read(engine, Select("links", order=("source_id",), after=(text,)))]
            assert after == above

    def test_text_is_not_changed(self, engine: Engine) -> None:
        texts = [
            "e\u0301",
            "é",
            "A",
            "a",
            "ﬁ",
            "fi",
            "x ",
            "x",
            "\t",
            "\r\n",
            "\u2028",
            "'\"\\%;--",
            "%s",
            "?",
            "\u200d",
        ]
        write(engine, Insert("links", [(text, "i") for text in texts]))
        assert sorted(a for a, _ in read(engine, Select("links"))) == sorted(texts)  # type: ignore[type-var]

    def test_numbers_and_bytes_at_their_limits(self, engine: Engine) -> None:
        numbers = [-(2**63), -1, 0, 1, 2**31, 2**53 + 1, 2**63 - 1]
        blobs = [b"", b"\0", b"\0\0", bytes(range(256)), b"\xff" * 70_000]
        write(engine, Insert("blobs", [row_with("blobs", n, hash=blob, data=blob) for n, blob in enumerate(blobs)]))
        assert read(engine, Select("blobs", columns=("hash", "data"))) == [(blob, blob) for blob in sorted(blobs)]
        write(engine, Insert("sessions", [row_with("sessions", n, head_seq=v) for n, v in enumerate(numbers)]))
        rows = read(engine, Select("sessions", (("head_seq", ">=", -(2**63)),), ("head_seq",), columns=("head_seq",)))
        assert [value for (value,) in rows] == numbers

    def test_order_after_limit_and_columns(self, engine: Engine) -> None:
        early, late = "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000001Z"
        rows = [
            row_with("items", n, id=f"i{n}", version=1, kind=f"k{n % 3}", created_at=late if n % 2 else early)
            for n in range(12)
        ]
        write(engine, Insert("items", rows[::-1]))
        ask = ("kind", "created_at", "id")
        expected = sorted((f"k{n % 3}", late if n % 2 else early, f"i{n}") for n in range(12))
        order = ("kind", "created_at")
        select = Select("items", order=order, columns=ask)
        assert read(engine, select) == expected  # ties in the order of the key
        assert read(engine, Select("items", order=order, columns=ask, descending=True)) == expected[::-1]
        assert read(engine, Select("items", order=order, columns=ask, limit=5)) == expected[:5]
        assert read(engine, Select("items", order=order, columns=ask, limit=0)) == []
        after = read(engine, Select("items", order=order, columns=ask, after=("k1", early), limit=3))
        assert after == [row for row in expected if row[:2] > ("k1", early)][:3]
        before = read(engine, Select("items", order=order, columns=ask, after=("k1", early), descending=True))
        assert before == [row for row in expected[::-1] if row[:2] < ("k1", early)]

    def test_coded_columns_hold_any_value_they_can_be_given(self, engine: Engine) -> None:
        ids = [
            "",
            "evt_",
            "evt_x",
            f"evt_{'0' * 32}",
            f"evt_{'f' * 32}",
            f"evt_{'F' * 32}",
            f"evt_{'0' * 31}",
            "run_1",
            "é",
        ]
        times = ["", "0001-01-01T00:00:00.000000Z", "1969-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"]
        words = ["user", "=user", "=", "", "A", "agent", "ü"]
        bodies = ["", "x" * 5000, "\ufeff", "é" * 4000, "%s?" * 999]
        count = max(map(len, (ids, times, words, bodies)))
        rows = [
            row_with(
                "items",
                n,
                id=ids[n % len(ids)],
                version=n,
                created_at=times[n % len(times)],
                status=words[n % len(words)],
                body=bodies[n % len(bodies)],
                user_id=words[n % len(words)],
                session_id=None,
            )
            for n in range(count)
        ]
        write(engine, Insert("items", rows))
        for row, n in zip(rows, range(count), strict=True):
            assert read(engine, Get("items", (row[0], n))) == row
        by_time = read(engine, Select("items", order=("created_at",), columns=("created_at",)))
        assert by_time == sorted((row[9],) for row in rows)
        assert sorted(read(engine, Select("items", (("user_id", "in", ("user", "", "nobody")),)))) == sorted(
            row for row in rows if row[3] in ("user", "")
        )

    def test_columns_of_names_and_packed_texts_refuse_what_they_cannot_answer(self, engine: Engine) -> None:
        write(engine, Insert("items", [row_with("items", 1)]))
        refused: tuple[Condition, ...] = (("user_id", ">", "a"), ("session_id", "<=", "a"), ("body", "=", "x"))
        for condition in (*refused, ("created_at", "=", "yesterday"), ("created_at", ">", "2026-01-01T00:00:00Z")):
            with pytest.raises(InvalidInput):
                read(engine, Select("items", (condition,)))
        with pytest.raises(InvalidInput):
            write(engine, Insert("items", [row_with("items", 2, created_at="2026-01-01T00:00:00Z")]))
        assert read(engine, Count("items", (("user_id", "=", "never written"),))) == 0
        assert read(engine, Count("items", (("body", "=", None),))) == 0

    def test_rows_sort_by_names_however_these_are_stored(self, engine: Engine) -> None:
        names = ("zoe", "ana", "\uffff", "😀", "Ben", "", "b")
        cells = [(user, session, seq) for user in names for session in names[:4] for seq in (2, 1)]
        rows = [
            row_with("entries", n, user_id=user, session_id=session, seq=seq, run_id="r")
            for n, (user, session, seq) in enumerate(cells)
        ]
        write(engine, Insert("entries", rows))
        by = ("user_id", "session_id", "seq")
        wheres: tuple[tuple[Condition, ...], ...] = (
            (),
            (("user_id", "=", "ana"),),
            (("user_id", "in", ("zoe", "ana", "nobody")),),
            (("session_id", "=", "zoe"),),
            (("user_id", "=", "ana"), ("session_id", "=", "zoe")),
            (("seq", "=", 1),),
        )
        for where in wheres:
            found = [cell for cell in cells if all(_meets(cell[by.index(name)], sign, v) for name, sign, v in where)]
            for down in (False, True):
                expected = sorted(found, reverse=down)
                for after in (None, ("ana", "zoe", 1), ("b", "", 9), ("", "", 0), ("😀", "\uffff", 2)):
                    behind = [cell for cell in expected if after is None or (cell < after if down else cell > after)]
                    for limit in (None, 0, 3):
                        ask = Select("entries", where, by, after=after, descending=down, limit=limit, columns=by)
                        assert read(engine, ask) == behind[:limit], ask
                streamed = engine.read(
                    "t1",
                    lambda reader, where=where, down=down: list(  # type: ignore[misc]
                        reader.stream(Select("entries", where, by, descending=down, columns=by))
                    ),
                )
                assert streamed == expected
        by_seq = read(engine, Select("entries", order=("seq", "user_id"), after=(1, "ana"), columns=("seq", "user_id")))
        assert by_seq == sorted((c[2], c[0]) for c in cells if (c[2], c[0]) > (1, "ana"))

    def test_names_written_in_a_transaction_that_failed_are_not_taken_for_written(self, engine: Engine) -> None:
        def fail(transaction: Transaction) -> None:
            transaction.do(Insert("items", [row_with("items", 1, user_id="ana", session_id="s1")]))
            raise _Stop

        with pytest.raises(_Stop):
            engine.write("t1", fail)
        write(engine, Insert("items", [row_with("items", 2, user_id="ben", session_id="s2")]))
        write(engine, Insert("items", [row_with("items", 3, user_id="ana", session_id="s1")]))
        ask = ("user_id", "session_id")
        for user, session in (("ana", "s1"), ("ben", "s2")):
            assert read(engine, Select("items", (("user_id", "=", user),), columns=ask)) == [(user, session)]

    def test_rows_are_found_by_values_of_a_unique_key(self, engine: Engine) -> None:
        rows = [row_with("entries", n, id=f"e{n}", user_id="u", session_id=f"s{n % 7}", seq=n) for n in range(60)]
        write(engine, Insert("entries", rows))
        write(engine, Insert("entries", [row_with("entries", 99, id="e3")]), tenant="t2")
        by = ("user_id", "session_id", "seq")
        there = [("u", f"s{n % 7}", n) for n in range(0, 60, 3)]
        keys = [*reversed(there), ("u", "s1", 2), ("x", "s1", 1), there[0]]
        assert sorted(read(engine, Find("entries", by, keys, by))) == sorted(there)
        assert read(engine, Find("entries", ("id",), [("e3",), ("e99",)])) == [rows[3]]
        assert read(engine, Find("entries", by, [], by)) == []
        for odd in (("seq",), ("user_id", "session_id")):
            with pytest.raises(InvalidInput):
                read(engine, Find("entries", odd, [("u",) * len(odd)]))
        for key in (("u", "s1"), ("u", "s1", None), ("u", "s1", "1"), ("u", "s\0", 1)):
            with pytest.raises(InvalidInput):
                read(engine, Find("entries", by, [key]))

    def test_rows_are_removed_by_values_of_a_unique_key(self, engine: Engine) -> None:
        rows = [row_with("entries", n, id=f"e{n}", user_id="u", session_id=f"s{n % 7}", seq=n) for n in range(60)]
        write(engine, Insert("entries", rows))
        write(engine, Insert("entries", rows[:9]), tenant="t2")
        by = ("user_id", "session_id", "seq")
        gone = [("u", f"s{n % 7}", n) for n in range(0, 60, 3)]
        asked = [*reversed(gone), ("u", "s1", 2), ("x", "s1", 1), gone[0]]  # others' and those that are not there
        assert write(engine, Remove("entries", by, asked)) == [20]
        left = [row for n, row in enumerate(rows) if n % 3]
        assert sorted(read(engine, Select("entries"))) == sorted(left)
        assert write(engine, Remove("entries", ("id",), [("e1",), ("e3",), ("e99",)])) == [1]
        assert write(engine, Remove("entries", by, []), Remove("entries", by, gone)) == [0, 0]
        assert read(engine, Count("entries")) == 39
        assert read(engine, Count("entries"), tenant="t2") == 9
        for odd in (("seq",), ("user_id", "session_id")):
            with pytest.raises(InvalidInput):
                write(engine, Remove("entries", odd, [("u",) * len(odd)]))
        for key in (("u", "s1"), ("u", "s1", None), ("u", "s1", "1"), ("u", "s\0", 1)):
            with pytest.raises(InvalidInput):
                write(engine, Remove("entries", by, [key]))

    def test_pages_meet_without_gap_or_overlap(self, engine: Engine) -> None:
        write(
            engine,
            Insert("entries", [row_with("entries", n, user_id="u", session_id="s", seq=n) for n in range(1, 24)]),
        )
        where: tuple[Condition, ...] = (("user_id", "=", "u"), ("session_id", "=", "s"))
        for descending in (False, True):
            seen: list[int] = []
            after: Row | None = None
            while True:
                page = read(
                    engine,
                    Select("entries", where, ("seq",), after, descending, limit=5, columns=("seq",)),
                )
                if not page:
                    break
                seen += [value for (value,) in page]  # type: ignore[misc]
                after = page[-1]
            assert seen == sorted(range(1, 24), reverse=descending)

    # -- transactions

    @pytest.mark.parametrize("error", [_Stop, KeyTaken, InvalidInput], ids=lambda kind: kind.__name__)
    def test_all_or_nothing(self, engine: Engine, error: type[Exception]) -> None:
        write(engine, Insert("links", [("a", "x"), ("b", "x")]), Insert("items", [row_with("items", 1, body="was")]))
        before = self._everything(engine)

        def work(transaction: Transaction) -> None:
            transaction.do(Insert("links", [("c", "x")]))
            transaction.do(Delete("links", (("source_id", "=", "a"),)))
            transaction.do(Patch("items", (("version", "=", 1),), {"body": "is", "name": None}))
            transaction.do(Put("items", [row_with("items", 2), row_with("items", 1, status="new")]))
            transaction.do(Insert("rates", [("new", 1, 1)]))
            assert transaction.do(Count("links")) == 2
            if error is KeyTaken:
                transaction.do(Insert("links", [("d", "x"), ("b", "x")]))
            elif error is InvalidInput:
                transaction.do(Insert("links", [("d", "\0")]))
            raise _Stop

        with pytest.raises(error):
            engine.write("t1", work)
        assert self._everything(engine) == before
        write(engine, Insert("rates", [("new", 1, 1)]))
        write(engine, Insert("links", [("c", "x")]))  # still usable

    def _everything(self, engine: Engine) -> dict[str, list[Row]]:
        return engine.read("t1", lambda reader: {spec.name: reader.do(Select(spec.name)) for spec in TABLES})

    def test_a_swallowed_failure_still_rolls_back(self, engine: Engine) -> None:
        write(engine, Insert("links", [("a", "x")]))

        def work(transaction: Transaction) -> str:
            transaction.do(Insert("links", [("b", "x")]))
            with pytest.raises(KeyTaken):
                transaction.do(Insert("links", [("a", "x")]))
            with pytest.raises(StorageFailure):
                transaction.do(Count("links"))
            return "as if nothing had happened"

        with pytest.raises(KeyTaken):
            engine.write("t1", work)
        assert read(engine, Count("links")) == 1

    def test_a_swallowed_failure_of_a_stream_still_rolls_back(self, engine: Engine) -> None:
        def work(transaction: Transaction) -> None:
            transaction.do(Insert("links", [("b", "x")]))
            with pytest.raises(InvalidInput):
                list(transaction.stream(Select("links", limit=-1)))

        with pytest.raises(InvalidInput):
            engine.write("t1", work)
        assert read(engine, Count("links")) == 0

    def test_a_transaction_reads_what_it_wrote(self, engine: Engine) -> None:
        def work(transaction: Transaction) -> list[Row]:
            transaction.do(Insert("links", [("a", "x"), ("b", "x")]))
            transaction.do(Delete("links", (("source_id", "=", "a"),)))
            assert transaction.do(Get("links", ("a", "x"))) is None
            assert list(transaction.stream(Select("links"))) == [("b", "x")]
            return transaction.do(Select("links"))

        assert engine.write("t1", work) == [("b", "x")]
        assert read(engine, Select("links")) == [("b", "x")]

    def test_work_is_answered_and_its_own_error_comes_through(self, engine: Engine) -> None:
        assert engine.write("t1", lambda _: 42) == 42
        assert engine.read("t1", lambda _: "x") == "x"
        with pytest.raises(_Stop):
            engine.read("t1", self._stop)

    def _stop(self, reader: Reader) -> None:
        reader.do(Count("links"))
        raise _Stop

    @pytest.mark.parametrize("lock", [Lock(("session", "u", "s")), LockAll([("a",), ("session", "u", "s"), ("z",)])])
    def test_locks_let_one_in_at_a_time(self, engine: Engine, lock: Op[None]) -> None:
        write(engine, Insert("sessions", [row_with("sessions", 1, user_id="u", session_id="s", head_seq=0)]))

        def work(transaction: Transaction) -> None:
            transaction.do(lock)
            row = transaction.do(Get("sessions", ("u", "s")))
            assert row is not None
            assert isinstance(row[2], int)
            transaction.do(Patch("sessions", (("session_id", "=", "s"),), {"head_seq": row[2] + 1}))

        self._in_threads(4, lambda: [engine.write("t1", work) for _ in range(10)])
        assert read(engine, Select("sessions", columns=("head_seq",))) == [(40,)]

    def test_numbers_are_added_to_those_of_rows_that_are_there(self, engine: Engine) -> None:
        def advance(*rows: Row) -> list[Row]:
            return engine.write("t1", lambda transaction: transaction.do(Advance("users", rows)))

        engine.write("t2", lambda transaction: transaction.do(Advance("users", [("ana", 50, 0, 0, 0, 0)])))
        assert advance() == []
        assert advance(("ana", 2, 0, 0, 1, 0)) == [("ana", 2, 0, 0, 1, 0)]
        assert advance(("zoe", 1, 1, 1, 1, 0), ("ana", 3, 1, 0, 0, 0), ("bob", 7, 0, 0, 0, 0)) == [
            ("zoe", 1, 1, 1, 1, 0),
            ("ana", 5, 1, 0, 1, 0),
            ("bob", 7, 0, 0, 0, 0),
        ]
        many: list[Row] = [(f"user {number:04d}", number, 0, 0, 0, 0) for number in range(1300)]
        assert advance(*many) == many
        assert advance(*reversed(many)) == [(name, 2 * number, 0, 0, 0, 0) for name, number, *_ in reversed(many)]  # type: ignore[operator]
        assert engine.read("t2", lambda reader: reader.do(Select("users"))) == [("ana", 50, 0, 0, 0, 0)]
        for op in (Advance("users", [("a", 1, 0, 0, 0, 0)] * 2), Advance("sessions", [row_with("sessions")])):
            with pytest.raises(InvalidInput):
                write(engine, op)

    def test_whoever_advances_a_row_holds_it(self, engine: Engine) -> None:
        write(engine, Insert("sessions", [row_with("sessions", 1, user_id="u", session_id="s", head_seq=0)]))

        def work(transaction: Transaction) -> None:
            (user,) = transaction.do(Advance("users", [("u", 1, 0, 0, 0, 0)]))
            row = transaction.do(Get("sessions", ("u", "s")))
            assert row is not None
            assert row[2] == user[1] - 1  # type: ignore[operator]
            transaction.do(Patch("sessions", (("session_id", "=", "s"),), {"head_seq": user[1]}))

        self._in_threads(4, lambda: [engine.write("t1", work) for _ in range(10)])
        assert read(engine, Select("users", columns=("tail",))) == [(40,)]

    def test_threads_write_side_by_side(self, engine: Engine) -> None:
        names = iter("abcd")

        def run() -> None:
            name = next(names)
            for number in range(10):
                write(engine, Insert("links", [(name, f"{number:02d}")]), Count("links"))
                assert read(engine, Count("links", (("source_id", "=", name),))) == number + 1

        self._in_threads(4, run)
        assert read(engine, Count("links")) == 40

    def _in_threads(self, number: int, run: Callable[[], object]) -> None:
        failures: list[BaseException] = []

        def guarded() -> None:
            try:
                run()
            except (MunimentError, KeyTaken, AssertionError) as error:
                failures.append(error)

        threads = [threading.Thread(target=guarded) for _ in range(number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failures == []
        assert not any(thread.is_alive() for thread in threads)

    # -- views

    def test_a_snapshot_stays_as_it_was(self, engine: Engine) -> None:
        write(engine, Insert("links", [(f"{n:04d}", "x") for n in range(1500)]))
        with engine.snapshot("t1") as view:
            rows = view.stream(Select("links"))
            first = [next(rows) for _ in range(3)]
            write(engine, Delete("links", (("source_id", "<", "1000"),)), Insert("links", [("zzzz", "x")]))
            assert [*first, *rows] == [(f"{n:04d}", "x") for n in range(1500)]
            assert view.do(Count("links")) == 1500
            assert view.do(Get("links", ("zzzz", "x"))) is None
        assert read(engine, Count("links")) == 501

    def test_a_stream_left_half_way_does_no_harm(self, engine: Engine) -> None:
        write(engine, Insert("links", [(f"{n:04d}", "x") for n in range(2000)]))
        left = [engine.read("t1", lambda reader: next(reader.stream(Select("links")))) for _ in range(20)]
        assert left == [("0000", "x")] * 20

        def work(transaction: Transaction) -> Row:
            row = next(transaction.stream(Select("links", descending=True, limit=9)))
            transaction.do(Insert("rates", [("after", 1, 1)]))
            return row

        assert engine.write("t1", work) == ("1999", "x")
        assert read(engine, Count("rates")) == 1

    def test_a_stream_takes_every_part_of_a_select(self, engine: Engine) -> None:
        write(engine, Insert("links", [(f"{n:04d}", "x") for n in range(50)]))
        select = Select("links", (("item_id", "=", "x"),), after=("0040", "x"), descending=True, limit=3)
        assert engine.read("t1", lambda reader: list(reader.stream(select))) == read(engine, select)
        assert engine.read("t1", lambda r: list(r.stream(Select("links", (("item_id", "in", ()),))))) == []

    def test_a_stream_of_any_length_is_whole(self, engine: Engine) -> None:
        write(engine, Insert("links", [(f"{n:04d}", "x") for n in range(1100)]))

        def streamed(limit: int | None, rows: int) -> list[str]:
            select = Select("links", (("source_id", "<", f"{rows:04d}"),), limit=limit)
            return engine.read("t1", lambda reader: [str(row[0]) for row in reader.stream(select)])

        for rows in (0, 1, 499, 500, 501, 502, 1001, 1100):
            for limit in (None, 0, 1, 500, 501, 502, 2000):
                assert streamed(limit, rows) == [f"{n:04d}" for n in range(rows)][:limit], (rows, limit)

    def test_nothing_is_answered_after_the_end(self, engine: Engine) -> None:
        kept: list[Reader] = [
            engine.write("t1", lambda transaction: transaction),
            engine.read("t1", lambda reader: reader),
        ]
        with engine.snapshot("t1") as view:
            kept.append(view)
        for reader in kept:
            with pytest.raises(StorageFailure):
                reader.do(Count("links"))
            with pytest.raises(StorageFailure):
                list(reader.stream(Select("links")))

    # -- the engine as a whole

    def test_tenants_are_listed_sorted(self, engine: Engine) -> None:
        assert engine.tenants() == []
        for tenant in ("b", "é", "a", "😀"):
            write(engine, Insert("tenants", [("now",)]), tenant=tenant)
        write(engine, Insert("links", [("a", "x")]), tenant="without a row")
        assert engine.tenants() == ["a", "b", "é", "😀"]

    def test_it_says_how_large_it_is(self, engine: Engine) -> None:
        """Size on disk, if any, and number of entries, which is approximate: a server's statistics may lag by
        seconds.
        """
        deadline = time.monotonic() + 20
        while (sizes := engine.sizes()).entries:
            assert time.monotonic() < deadline, sizes
            time.sleep(0.2)
        assert sizes.size_bytes >= 0

    def test_it_says_what_it_is(self, engine: Engine) -> None:
        info = engine.info
        assert info.name
        assert info.version
        assert info.location
        assert info.schema_number >= 1
        assert isinstance(engine.is_shared_between_processes, bool)
        assert isinstance(engine.is_walled_by_the_server, bool)

    def test_the_mark_moves_with_every_commit(self, engine: Engine) -> None:
        marks = [engine.mark()]
        for name in ("a", "b"):
            write(engine, Insert("links", [(name, "x")]))
            marks.append(engine.mark())
        assert len(set(marks)) == 3

    def test_the_mark_stays_while_nobody_commits(self, engine: Engine) -> None:
        if engine.is_walled_by_the_server:
            pytest.skip("optional: others may commit to the same server, and move it")
        mark = engine.mark()
        read(engine, Count("links"))
        assert engine.mark() == mark

    def test_scrub_reports(self, engine: Engine) -> None:
        report = engine.scrub([b"never written here"])
        assert report.note
        assert isinstance(report.clean, bool)

    def test_nothing_works_after_close(self, engine: Engine) -> None:
        write(engine, Insert("links", [("a", "x")]))
        engine.close()
        engine.close()
        for call in (
            lambda: write(engine, Insert("links", [("b", "x")])),
            lambda: read(engine, Count("links")),
            lambda: engine.snapshot("t1").__enter__(),
            lambda: engine.tenants(),
            lambda: engine.mark(),
            lambda: engine.scrub([b"x"]),
        ):
            with pytest.raises(Closed):
                call()
