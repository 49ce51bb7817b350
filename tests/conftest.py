"""What every test may count on: a PostgreSQL server of this process, and examples that are the same in every run."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from deployments import FreshStore, Stores, stores_of
from effort import SOAK, examples
from kept_schemas import drop_kept, kept_schema
from muniment.store.engines.opening import open_engine
from muniment.testing.postgres import PostgresProcess, Servers, Unavailable, fresh_schema, pooled, server_dsn
from warm_commands import warm_commands

# A change is judged by the same examples wherever it is tested, however slow the machine; `make soak` draws new ones.
settings.register_profile("any", deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("suite", settings.get_profile("any"), derandomize=True, database=None)
settings.register_profile("soak", settings.get_profile("any"))
settings.load_profile("soak" if SOAK else "suite")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what only a soak runs out of every other run."""
    if SOAK:
        return
    left_out = [item for item in items if item.get_closest_marker("soak") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]


# -- in CI a missing tool is a failure

_MISSING: list[str] = []


def _note_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Reasons that begin with "optional: " name what CI does not promise, such as a large model."""
    if report.skipped and "CI" in os.environ and isinstance(report.longrepr, tuple):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if not reason.startswith("optional: "):
            _MISSING.append(f"{report.nodeid}: {reason}")


pytest_runtest_logreport = pytest_collectreport = _note_skip


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _MISSING:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _MISSING:
        terminalreporter.write_line(f"skipped in CI, where nothing may be missing: {line}", red=True)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: no collection of garbage has to look through it, nor so often."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture(scope="session")
def postgres_dsn() -> str:
    try:
        return server_dsn()
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def pooled_dsn(postgres_dsn: str) -> Iterator[str]:
    """The same server behind PgBouncer in transaction mode."""
    try:
        with pooled(postgres_dsn) as dsn:
            yield dsn
    except Unavailable as reason:
        pytest.skip(f"NOTHING IS TRIED BEHIND A POOLER: {reason}")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Servers]:
    """Where servers of a test's own are made; they end with the tests."""
    try:
        with Servers() as servers:
            yield servers
    except Unavailable as reason:
        pytest.skip(f"NOTHING IS TRIED WITH REPLICAS: {reason}")


@pytest.fixture(scope="session")
def pair(cluster: Servers) -> Iterator[tuple[PostgresProcess, PostgresProcess]]:
    """A primary and a replica that streams from it, for tests that leave both as they are."""
    primary = cluster.primary()
    yield primary, cluster.replica(primary)
    drop_kept()  # while the primary is there


@pytest.fixture(scope="session")
def warm_place() -> Iterator[str | None]:
    """Where commands and scripts are run by a process that has loaded the library."""
    with warm_commands() as place:
        yield place


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store without a row: a copy of it is opened in less time than a new one is made."""
    path = tmp_path_factory.mktemp("empty") / "store.db"
    open_engine(path).close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    return path


@pytest.fixture(scope="session", autouse=True)
def _kept_schemas() -> Iterator[None]:
    yield
    drop_kept()


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """Empty stores, by the name of their deployment."""
    return stores_of(request, tmp_path)


@pytest.fixture
def fresh_store(stores: Stores, deployment: str) -> FreshStore:
    """Empty stores of the deployment that the test is about (`deployments.on`)."""
    return partial(stores, deployment)


@pytest.fixture
def kept_postgres_schema(postgres_dsn: str) -> Iterator[str]:
    """For tests that leave the tables of a store as they are."""
    with kept_schema(postgres_dsn) as name:
        yield name


@pytest.fixture
def postgres_schema(postgres_dsn: str) -> Iterator[str]:
    with fresh_schema(postgres_dsn) as name:
        yield name
