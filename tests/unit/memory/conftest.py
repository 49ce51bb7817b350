"""A memory on each engine with a clock and ids that repeat, and the raw bytes of a store."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from muniment.adapters.system import CountingIds, TickingClock
from muniment.engines.opening import open_engine
from muniment.engines.postgres.engine import PostgresEngine
from muniment.ports.engine import Count, Engine, Reader, Row, Select
from muniment.ports.schema import TABLES
from muniment.records.policy import Policy
from muniment.runtime.context import Context
from muniment.runtime.memory import Memory
from muniment.testing.postgres_server import Unavailable, fresh_schema, server_dsn

Maker = Callable[..., Memory]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Maker]:
    """`make("sqlite", policy=…)`: a fresh memory on an engine; all are closed at the end."""
    numbers = itertools.count(1)
    with ExitStack() as stack:

        def made(engine: str = "memory", *, policy: Any = None, **parts: Any) -> Memory:
            context = Context(
                engine=_engine(engine, tmp_path / "store" / f"{next(numbers)}.db", stack),
                policy=Policy.from_wire(policy) if policy else Policy(),
                clock=parts.get("clock", TickingClock()),
                ids=parts.get("ids", CountingIds()),
            )
            memory = Memory(context)
            stack.callback(memory.close)
            return memory

        (tmp_path / "store").mkdir()
        yield made


def _engine(name: str, path: Path, stack: ExitStack) -> Engine:
    if name == "postgres":
        try:
            dsn = server_dsn()
        except Unavailable as reason:
            pytest.skip(str(reason))
        return PostgresEngine(dsn, schema=stack.enter_context(fresh_schema(dsn)))
    return open_engine(":memory:" if name == "memory" else path)


@pytest.fixture(params=["memory", "sqlite"])
def mem(request: pytest.FixtureRequest, make: Maker) -> Memory:
    return make(request.param)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def any_mem(request: pytest.FixtureRequest, make: Maker) -> Memory:
    return make(request.param)


@pytest.fixture
def counts() -> Callable[[Memory], dict[str, int]]:
    """How many rows each table has: what must not change where something was refused."""

    def count(memory: Memory) -> dict[str, int]:
        engine = memory._ctx.engine
        return {
            spec.name: engine.read("default", lambda reader, spec=spec: reader.do(Count(spec.name)))  # type: ignore[misc]
            for spec in TABLES
        }

    return count


@pytest.fixture
def stored_bytes(tmp_path: Path) -> Callable[[], bytes]:
    """Every byte of every file of the stores, read by another process, so that SQLite keeps its locks."""

    def read() -> bytes:
        command = ["find", str(tmp_path / "store"), "-type", "f", "-exec", "cat", "{}", ";"]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout

    return read


@pytest.fixture
def everything() -> Callable[[Memory], str]:
    """All that any table answers."""

    def read(memory: Memory) -> str:
        def rows(reader: Reader) -> list[Row]:
            return [row for spec in TABLES for row in reader.do(Select(spec.name))]

        return repr(memory._ctx.engine.read("default", rows))

    return read
