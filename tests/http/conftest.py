"""A server over a fresh store, in this process: with keys or without, and clients for either."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from http_support import Serve
from starlette.testclient import TestClient

import muniment
from effort import SOAK, in_turn
from muniment.core.outside.system import CountingIds, SystemIds, TickingClock, system_clock
from muniment.core.policy import Policy
from muniment.core.ports.engine import Engine
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.surfaces.http._keys import KeyFile
from muniment.surfaces.http.app import create_app
from muniment.surfaces.http.settings import ServerSettings

ENGINES = ("memory", "sqlite", "postgres")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """`serve(auth="on", …)`: a client of a server over `memory`, by default a new store; all are closed at the end."""
    with ExitStack() as stack:

        def served(memory: Memory | None = None, **settings: Any) -> TestClient:
            if memory is None:
                memory = muniment.open(clock=TickingClock(), ids=CountingIds())
                stack.callback(memory.close)
            places = {"keys": str(tmp_path / "keys.json"), "research_dir": str(tmp_path / "research")}
            app = create_app(memory, ServerSettings(**places | settings))
            return stack.enter_context(
                TestClient(app, base_url="http://localhost", raise_server_exceptions=False, follow_redirects=False)
            )

        yield served


@pytest.fixture
def client(serve: Serve) -> TestClient:
    return serve()


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys.json", system_clock)


@pytest.fixture(params=ENGINES if SOAK else ["turn"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    """A store on each engine under a soak; on one of them, by the name of the test, in every run."""
    name = request.param if request.param in ENGINES else in_turn(request.node.nodeid.partition("[")[0], ENGINES)
    with ExitStack() as stack:
        if name == "postgres":
            engine: Engine = PostgresEngine(
                request.getfixturevalue("postgres_dsn"), schema=request.getfixturevalue("kept_postgres_schema")
            )
        else:
            engine = open_engine(":memory:" if name == "memory" else tmp_path / "store.db")
        context = new_context(engine=engine, policy=Policy(), clock=system_clock, ids=SystemIds())
        yield stack.enter_context(Memory(context))
