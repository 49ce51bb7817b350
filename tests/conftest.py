"""Fixtures every test may ask for: a PostgreSQL server of this test process, and a schema in it for one test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muniment.testing.postgres_server import Unavailable, fresh_schema, server_dsn


@pytest.fixture(scope="session")
def postgres_dsn() -> str:
    try:
        return server_dsn()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def postgres_schema(postgres_dsn: str) -> Iterator[str]:
    with fresh_schema(postgres_dsn) as name:
        yield name
