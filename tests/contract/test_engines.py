"""The shipped contract suite over every engine there is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from effort import SOAK
from kept_schemas import kept_engine, kept_schema
from muniment.core.ports.engine import Engine
from muniment.store.engines._postgres_replica import ReplicaSettings
from muniment.store.engines.postgres import PostgresEngine
from muniment.store.engines.sqlite import SqliteEngine
from muniment.testing.engine_contract import EngineContract
from muniment.testing.postgres import PostgresProcess

# The suite is shipped, so it cannot carry marks that only this project knows.
pytest.mark.req("LG-02")(EngineContract.test_no_operation_reaches_another_tenant)
pytest.mark.req("LG-02")(EngineContract.test_the_same_key_in_two_tenants)
pytest.mark.req("X-09")(EngineContract.test_a_key_is_taken_in_its_own_tenant_and_in_no_other)


def is_counted(request: pytest.FixtureRequest) -> bool:
    """Is it about what the server counts? It hears of that when a session ends: such a test has a schema of its own."""
    return request.function.__name__ == EngineContract.test_it_says_how_large_it_is.__name__


class TestMemory(EngineContract):
    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        engine = SqliteEngine(":memory:")
        yield engine
        engine.close()


class TestSqlite(EngineContract):
    @pytest.fixture
    def engine(self, tmp_path: Path, empty_store: Path) -> Iterator[Engine]:
        engine = SqliteEngine(shutil.copy(empty_store, tmp_path / "store.db"))
        yield engine
        engine.close()


class TestPostgres(EngineContract):
    @pytest.fixture
    def engine(self, postgres_dsn: str, request: pytest.FixtureRequest) -> Iterator[Engine]:
        if is_counted(request):
            with closing(PostgresEngine(postgres_dsn, schema=request.getfixturevalue("postgres_schema"))) as engine:
                yield engine
            return
        with kept_engine(postgres_dsn) as engine:
            yield engine


@pytest.mark.soak
class TestPostgresBehindAPooler(EngineContract):
    """Transactions of one engine get whichever of two server connections is free."""

    @pytest.fixture
    def engine(self, pooled_dsn: str, request: pytest.FixtureRequest) -> Iterator[Engine]:
        schema = request.getfixturevalue("postgres_schema" if is_counted(request) else "kept_postgres_schema")
        engine = PostgresEngine(pooled_dsn, schema=schema)
        yield engine
        engine.close()


class TestPostgresWithAReplica(EngineContract):
    """Reads are answered by another server than writes, and see them."""

    @pytest.fixture(params=[60.0, 0.0] if SOAK else [60.0])
    def engine(self, pair: tuple[PostgresProcess, PostgresProcess], request: pytest.FixtureRequest) -> Iterator[Engine]:
        primary, replica = pair
        settings = ReplicaSettings(replica.dsn, lag_s=request.param, wait_s=5.0)
        with kept_schema(primary.dsn) as schema:
            engine = PostgresEngine(primary.dsn, schema=schema, replica=settings)
            yield engine
            engine.close()
