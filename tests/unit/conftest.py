"""A memory on each engine with a clock and ids that repeat, and ways to look at all of a store."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from effort import SOAK, in_turn
from kept_schemas import kept_schema
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.core.ports.engine import Count, Engine
from muniment.core.ports.schema import TABLES
from muniment.handles.derived import derivations, new_context
from muniment.handles.memory import Memory
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.postgres import Unavailable, server_dsn

Maker = Callable[..., Memory]
ENGINES = ("memory", "sqlite", "postgres")


@pytest.fixture
def make(tmp_path: Path, empty_store: Path) -> Iterator[Maker]:
    """`make("sqlite", policy=…)`: a fresh memory on an engine; all are closed at the end."""
    numbers = itertools.count(1)
    with ExitStack() as stack:

        def made(engine: str = "memory", *, seed: str = "muniment", policy: Any = None, **parts: Any) -> Memory:
            context = new_context(
                engine=_engine(engine, tmp_path / "store" / f"{next(numbers)}.db", empty_store, stack),
                policy=Policy.from_wire(policy) if policy else Policy(),
                clock=parts.get("clock", TickingClock()),
                ids=parts.get("ids", CountingIds(seed)),
                kinds=parts.get("derivations", derivations()),
            )
            memory = Memory(context)
            stack.callback(memory.close)
            return memory

        (tmp_path / "store").mkdir()
        yield made


def _engine(name: str, path: Path, empty: Path, stack: ExitStack) -> Engine:
    if name == "postgres":
        try:
            dsn = server_dsn()
        except Unavailable as reason:
            pytest.skip(str(reason))
        return PostgresEngine(dsn, schema=stack.enter_context(kept_schema(dsn)))
    if name == "memory":
        return open_engine(":memory:")
    shutil.copyfile(empty, path)
    return open_engine(path)


@pytest.fixture(params=ENGINES[:2] if SOAK else ["turn"])
def mem(request: pytest.FixtureRequest, make: Maker) -> Memory:
    """For what does not hang on the engine: that they are alike is shown elsewhere, so each test takes its turn."""
    return make(request.param if SOAK else in_turn(request.node.nodeid, ENGINES[:2]))


@pytest.fixture(params=ENGINES if SOAK else ["turn"])
def any_mem(request: pytest.FixtureRequest, make: Maker) -> Memory:
    """Every engine under a soak; in every run one of those without a server, by the name of the test."""
    return make(request.param if SOAK else in_turn(request.node.nodeid.partition("[")[0], ENGINES[:2]))


@pytest.fixture
def counts() -> Callable[[Memory], dict[str, int]]:
    """How many rows each table of each tenant has: what must not change where something was refused."""

    def count(memory: Memory) -> dict[str, int]:
        engine = memory._ctx.engine
        return {
            f"{tenant}.{spec.name}": engine.read(tenant, lambda reader, spec=spec: reader.do(Count(spec.name)))  # type: ignore[misc]
            for tenant in ("default", "acme", *memory.store.tenants())
            for spec in TABLES
        }

    return count
