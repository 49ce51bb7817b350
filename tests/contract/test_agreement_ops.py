"""All engines, driven with the same random operations, answer alike; so do their full dumps at the end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from effort import SOAK, examples
from muniment.core.ports.engine import (
    Advance,
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
    Select,
    Transaction,
)
from muniment.core.ports.schema import TABLES, USERS, Column, Table
from muniment.errors import MunimentError
from muniment.store.engines.postgres import PostgresEngine
from muniment.store.engines.sqlite import SqliteEngine
from muniment.testing.postgres import Unavailable, fresh_schema, server_dsn

TENANTS = ("t1", "t2", "Ω")
COMPARISONS = ("=", "<", "<=", ">", ">=")

# Few values, so that keys collide and conditions meet; some that no column of the other types can hold.
VALUES = {
    "text": st.sampled_from(["", "a", "b", "B", "ab", "é", "\uffff", "😀"]),
    "int": st.sampled_from([-(2**63), -1, 0, 1, 2, 2**63 - 1]),
    "bytes": st.sampled_from([b"", b"\0", b"a", b"\xff", b"\xff\0"]),
}
ODD = st.sampled_from(["\0", "\ud800", 2**63, True, None, "x", 1, b"x"])
tables = st.sampled_from(TABLES)


@cache
def values(column: Column) -> st.SearchStrategy[Any]:
    plain = VALUES[column.type]
    return st.one_of(plain, plain, st.none()) if column.nullable else plain


@cache
def rows(spec: Table) -> st.SearchStrategy[Any]:
    good = st.tuples(*[values(column) for column in spec.columns])
    odd = st.tuples(*[st.one_of(values(column), ODD) for column in spec.columns])
    return st.integers(0, 39).flatmap(lambda chance: odd if chance == 0 else good)


@cache
@st.composite
def conditions(draw: st.DrawFn, spec: Table) -> Any:
    column = draw(st.sampled_from(spec.columns))
    if draw(st.integers(0, 3)) == 0:
        return (column.name, "in", tuple(draw(st.lists(VALUES[column.type], max_size=5))))
    if draw(st.integers(0, 59)) == 0:
        return (column.name, draw(st.sampled_from(COMPARISONS)), draw(ODD))
    comparison = draw(st.sampled_from(COMPARISONS))
    return (column.name, comparison, draw(values(column) if comparison == "=" else VALUES[column.type]))


@cache
def wheres(spec: Table, least: int = 0) -> st.SearchStrategy[Any]:
    by_path = st.sampled_from([spec.key, *spec.unique, *spec.indexes]).flatmap(
        lambda path: st.integers(0, len(path)).flatmap(
            lambda led: st.tuples(
                *[
                    st.tuples(st.just(name), st.just("="), values(column))
                    for name in path[:led]
                    for column in spec.columns
                    if column.name == name
                ]
            )
        )
    )
    free = st.lists(conditions(spec), min_size=least, max_size=2).map(tuple)
    return st.one_of(free, st.tuples(by_path, free).map(lambda pair: (*pair[0], *pair[1])))


@cache
@st.composite
def selects(draw: st.DrawFn, spec: Table) -> Select:
    by_name = {column.name: column for column in spec.columns}
    orders = [(), (), spec.key, *spec.unique, *spec.indexes, ("created_at",)]
    order = draw(st.sampled_from(orders))
    order = tuple(name for name in order if name in by_name and not by_name[name].nullable)
    if order and draw(st.booleans()):
        order = order[draw(st.integers(0, len(order) - 1)) :]
    after = None
    asked = order or spec.key
    if asked and draw(st.booleans()):
        after = draw(st.tuples(*[VALUES[by_name[name].type] for name in asked]))
    return Select(
        spec.name,
        draw(wheres(spec)),
        order,
        after,
        draw(st.booleans()),
        draw(st.one_of(st.none(), st.integers(0, 4))),
        tuple(draw(st.lists(st.sampled_from(list(by_name)), max_size=3))),
    )


@cache
def gets(spec: Table) -> st.SearchStrategy[Op[Any]]:
    by_name = {column.name: column for column in spec.columns}
    return st.tuples(*[VALUES[by_name[name].type] for name in spec.key]).map(lambda key: Get(spec.name, key))


@cache
@st.composite
def finds(draw: st.DrawFn, spec: Table) -> Op[Any]:
    by_name = {column.name: column for column in spec.columns}
    by = draw(st.sampled_from([spec.key, *spec.unique]))
    key = st.tuples(*[VALUES[by_name[name].type] for name in by])
    odd = st.tuples(*[st.one_of(VALUES[by_name[name].type], ODD) for name in by])
    keys = draw(st.lists(odd if draw(st.integers(0, 39)) == 0 else key, max_size=6))
    return Find(spec.name, by, tuple(keys), tuple(draw(st.lists(st.sampled_from(list(by_name)), max_size=3))))


@cache
@st.composite
def patches(draw: st.DrawFn, spec: Table) -> Op[Any]:
    fixed = {*spec.key}.union(*spec.unique)
    free = [column for column in spec.columns if column.name not in fixed] or list(spec.columns)
    chosen = draw(st.lists(st.sampled_from(free), min_size=1, max_size=3, unique=True))
    return Patch(spec.name, draw(wheres(spec, 1)), {column.name: draw(values(column)) for column in chosen})


questions = tables.flatmap(
    lambda spec: st.one_of(
        selects(spec), selects(spec), gets(spec), finds(spec), wheres(spec).map(lambda w: Count(spec.name, w))
    )
)
changes = tables.flatmap(
    lambda spec: st.one_of(
        st.lists(rows(spec), max_size=7).map(lambda r: Insert(spec.name, r)),
        st.lists(rows(spec), min_size=1, max_size=2).map(lambda r: Insert(spec.name, r)),
        st.lists(rows(spec), max_size=4).map(lambda r: Put(spec.name, r)),
        st.lists(rows(USERS), max_size=4).map(lambda r: Advance("users", r)),
        patches(spec),
        wheres(spec, 1).map(lambda w: Delete(spec.name, w)),
        finds(spec).map(lambda f: Remove(f.table, f.by, f.keys)),  # type: ignore[attr-defined]
        st.just(Lock(("a", spec.name))),
        st.just(LockAll([("a", spec.name), ("b", spec.name)])),
    )
)


class _Stop(Exception):
    pass


def outcome(call: Any) -> Any:
    try:
        return ("answered", call())
    except KeyTaken as error:
        return ("taken", error.table)
    except MunimentError as error:
        return (error.code, str(error))
    except _Stop:
        return ("stopped",)


class Agreement(RuleBasedStateMachine):
    """`engines` and `clean` are set by the test: a PostgreSQL schema costs too much to make one for each example."""

    shared: ClassVar[list[Engine]] = []
    admin: ClassVar[psycopg.Connection[Any] | None] = None
    schema: ClassVar[str] = ""

    @initialize()
    def open(self) -> None:
        self.stack = ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.engines: list[Engine] = [SqliteEngine(":memory:"), SqliteEngine(Path(folder) / "a.db"), *self.shared]
        for engine in self.engines[:2]:
            self.stack.callback(engine.close)
        if self.admin is not None:
            names = ", ".join(f'"{self.schema}"."{spec.name}"' for spec in TABLES)
            self.admin.execute(f"TRUNCATE {names}")

    def agree(self, call: Any) -> Any:
        answers = [outcome(lambda engine=engine: call(engine)) for engine in self.engines]
        for engine, answer in zip(self.engines[1:], answers[1:], strict=True):
            assert answer == answers[0], f"{engine.info.name} differs from {self.engines[0].info.name}"
        return answers[0]

    @rule(tenant=st.sampled_from(TENANTS), op=changes)
    def change(self, tenant: str, op: Op[Any]) -> None:
        self.agree(lambda engine: engine.write(tenant, lambda transaction: transaction.do(op)))

    @rule(
        tenant=st.sampled_from(TENANTS),
        ops=st.lists(st.one_of(changes, changes, questions), min_size=2, max_size=6),
        fails=st.integers(0, 3),
    )
    def transact(self, tenant: str, ops: list[Op[Any]], fails: int) -> None:
        """Several operations, read in between; one time in four the work itself fails at the end."""

        def work(transaction: Transaction) -> list[Any]:
            answers = [transaction.do(op) for op in ops]
            if fails == 0:
                raise _Stop
            return answers

        self.agree(lambda engine: engine.write(tenant, work))

    @rule(tenant=st.sampled_from(TENANTS), ops=st.lists(questions, min_size=1, max_size=8))
    def ask(self, tenant: str, ops: list[Op[Any]]) -> None:
        self.agree(lambda engine: [outcome(lambda op=op: engine.read(tenant, lambda r: r.do(op))) for op in ops])

    @rule(tenant=st.sampled_from(TENANTS), select=tables.flatmap(selects))
    def stream(self, tenant: str, select: Select) -> None:
        def both(reader: Reader) -> Any:
            return list(reader.stream(select)), reader.do(select)

        kind, *answer = self.agree(lambda engine: engine.read(tenant, both))
        if kind == "answered":
            assert answer[0][0] == answer[0][1]

    @rule()
    def list_tenants(self) -> None:
        """Those that are kept as tenants. A file whose row of one was deleted also tells of it by its sessions."""

        def kept(engine: Engine) -> list[str]:
            return [
                name for name in engine.tenants() if engine.read(name, lambda reader: reader.do(Count("tenants", ())))
            ]

        self.agree(kept)

    def teardown(self) -> None:
        if not hasattr(self, "engines"):
            return
        with self.stack:
            for tenant in TENANTS:
                self.agree(
                    lambda engine, tenant=tenant: engine.read(
                        tenant, lambda reader: [reader.do(Select(spec.name)) for spec in TABLES]
                    )
                )


@pytest.fixture
def server() -> Iterator[str | None]:
    """Adds PostgreSQL to the machine; without a server the other two are compared, and the test says so."""
    try:
        dsn = server_dsn()
    except Unavailable as reason:
        yield str(reason)
        return
    with fresh_schema(dsn) as schema:
        engine = PostgresEngine(dsn, schema=schema, pool_max=1)
        with psycopg.connect(dsn, autocommit=True) as admin:
            Agreement.shared, Agreement.admin, Agreement.schema = [engine], admin, schema
            yield None
            Agreement.shared, Agreement.admin = [], None
        engine.close()


@pytest.mark.soak
@pytest.mark.req("LG-02")
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of every column of every table
def test_engines_agree(server: str | None) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Agreement,
        settings=settings(
            max_examples=examples(24),
            stateful_step_count=30,
            deadline=None,
            derandomize=not SOAK,
            phases=(Phase.generate,),  # shrinking against a server takes minutes; the steps are printed whole
            suppress_health_check=list(HealthCheck),
        ),
    )
    if server is not None:
        pytest.skip(f"memory and SQLite agree; {server}")
