"""`muniment store upgrade`: what it copies from a store of version 0.1, what it refuses, and that it leaves nothing."""

from __future__ import annotations

import json
import lzma
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from click.testing import CliRunner

import muniment
from muniment.store.upgrade import read_old
from muniment.surfaces.cli.main import cli

STORE = Path(__file__).parents[2] / "goldens" / "store_0_1"
EXPORTED = {
    "acme": "db49fb06d5b695e659a6f39e93cefd43705b9a8da83c7a13b94d62d126c0f3dc",
    "default": "98f0f3d58cc73e8f43ec6294b9864a3cb30e2c8b1a14c104a4ad85fdfc41fee6",
}
"""The SHA-256 of what version 0.1 exported of the tenants of its file."""


@pytest.fixture(scope="module")
def golden() -> bytes:
    return lzma.decompress((STORE / "store.sqlite.xz").read_bytes())


@pytest.fixture(scope="module")
def small(golden: bytes, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file with one of its tenants, which has a build, receipts, a document and a run."""
    path = tmp_path_factory.mktemp("small") / "old.db"
    path.write_bytes(golden)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = DELETE")
        for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            if name != "migrations" and not name.startswith("sqlite_"):
                file.execute(f"DELETE FROM {name} WHERE tenant_id = 'default'")
        file.execute("VACUUM")
    return path.read_bytes()


def upgraded(old: Path | str, new: Path | str) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON document of the command."""
    done = CliRunner().invoke(cli, ["store", "upgrade", str(old), str(new), "--json"])
    return done.exit_code, json.loads(done.output if done.exit_code == 0 else done.stderr)


def assert_refused(old: Path | str, new: Path | str, code: str) -> dict[str, Any]:
    """The command names what is wrong, and leaves nothing of its own."""
    folder = Path(new).parent
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    exit_code, answer = upgraded(old, new)
    error: dict[str, Any] = answer
    assert exit_code != 0, answer
    assert error["code"] == code, error
    assert error["hint"]
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    return error


# -- what is read -------------------------------------------------------------------------------------


@pytest.mark.req("LG-05", "MP-16")
def test_a_file_is_read_as_0_1_exported_it(golden: bytes, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    path.write_bytes(golden)
    with read_old(str(path)) as tenants:
        lines = {name: list(opened()) for name, opened in tenants if callable(opened)}
    assert {name: sha256(b"".join(each)).hexdigest() for name, each in lines.items()} == EXPORTED
    assert os.listdir(tmp_path) == ["old.db"]
    assert path.read_bytes() == golden


def test_a_log_beside_the_file_is_read(small: bytes, tmp_path: Path) -> None:
    """What a process that was killed had committed is still in its log."""
    path, copy = tmp_path / "live.db", tmp_path / "old.db"
    path.write_bytes(small)
    with closing(sqlite3.connect(path, isolation_level=None)) as live:
        live.execute("PRAGMA journal_mode = WAL")
        live.execute("UPDATE tenants SET created_at = '2025-01-01T00:00:00Z'")
        for ending in ("", "-wal"):
            Path(f"{copy}{ending}").write_bytes(Path(f"{path}{ending}").read_bytes())
    with read_old(str(copy)) as tenants:
        assert [tenant.name for tenant in tenants] == ["acme"]
    new = tmp_path / "new.db"
    assert upgraded(copy, new)[0] == 0


def test_a_dump_is_upgraded(tmp_path: Path) -> None:
    dump, new = tmp_path / "acme.jsonl", tmp_path / "new.db"
    dump.write_bytes(lzma.decompress((STORE / "acme.jsonl.xz").read_bytes()))
    code, done = upgraded(dump, new)
    assert code == 0, done
    assert done["tenants"] == ["acme"]
    with muniment.open(new) as mem:
        assert mem.verify().ok
        assert mem.store.tenants() == ["acme"]
    assert sorted(os.listdir(tmp_path)) == ["acme.jsonl", "new.db"]


def test_lines_are_read_in_flat_memory(small: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement sorts what it reads: each goes along an index that version 0.1 made."""
    path, asked = tmp_path / "old.db", dict[str, None]()
    path.write_bytes(small)
    connect = sqlite3.connect

    def traced(*given: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*given, **named)
        connection.set_trace_callback(lambda statement: asked.setdefault(statement))
        return connection

    with monkeypatch.context() as patched:
        patched.setattr("muniment.store.upgrade.sqlite3.connect", traced)
        with read_old(str(path)) as [tenant]:
            assert callable(tenant.lines)
            assert sum(1 for _ in tenant.lines()) == 51
    selects = [statement for statement in asked if statement.startswith("SELECT") and "tenant_id = " in statement]
    assert len(selects) > 20
    with closing(connect(path)) as file:
        plans = {each: [step[3] for step in file.execute(f"EXPLAIN QUERY PLAN {each}")] for each in selects}
    assert not {each: plan for each, plan in plans.items() if "TEMP B-TREE" in str(plan)}


# -- what is refused ----------------------------------------------------------------------------------

DAMAGE = {
    "an event's words": "UPDATE entries SET body = replace(body, 'a', 'b') WHERE kind = 'message'",
    "an event's time": "UPDATE entries SET ts = '2024-01-01T00:00:00Z' WHERE seq = 2",
    "an event in the middle": "DELETE FROM entries WHERE rowid = (SELECT rowid FROM entries WHERE seq = 2 LIMIT 1)",
    "the last event": "DELETE FROM entries WHERE rowid = (SELECT rowid FROM entries ORDER BY seq DESC LIMIT 1)",
    "a session": "DELETE FROM sessions WHERE session_id = 'winter'",
    "a session and its events": "DELETE FROM entries; DELETE FROM sessions",
    "a session's end": "UPDATE sessions SET head_seq = head_seq - 1 WHERE session_id = 'winter'",
    "a build's body": "UPDATE items SET body = replace(body, 'a', 'b') WHERE kind = 'build'",
    "a build's owner": "UPDATE items SET user_id = 'bob' WHERE kind = 'build'",
    "a build": "DELETE FROM items WHERE kind = 'build'",
    "a build and its proof": "DELETE FROM items WHERE id = (SELECT item_id FROM proofs WHERE session_id = 'winter' AND"
    " number = 2); DELETE FROM proofs WHERE session_id = 'winter' AND number = 2",
    "a build, its id and its proof": "DELETE FROM ids WHERE id = (SELECT item_id FROM proofs WHERE"
    " session_id = 'winter' AND number = 2); DELETE FROM items WHERE id = (SELECT item_id FROM proofs WHERE"
    " session_id = 'winter' AND number = 2); DELETE FROM proofs WHERE session_id = 'winter' AND number = 2",
    "a build without its digest": "UPDATE items SET body = replace(body, 'a', 'b'), digest = NULL WHERE kind = 'build'",
    "a receipt": "UPDATE items SET body = replace(body, 'a', 'b') WHERE kind = 'receipt'",
    "a receipt's second version": "DELETE FROM items WHERE kind = 'receipt' AND version = 2",
    "a fact": "UPDATE items SET body = replace(body, 'a', 'b') WHERE kind = 'fact'",
    "a fact's digest": "UPDATE items SET digest = zeroblob(32) WHERE kind = 'fact'",
    "a proof": "UPDATE proofs SET hash = zeroblob(32) WHERE number = 1",
    "the end of a chain of proofs": "UPDATE proofs SET version = 1 WHERE number = 0 AND session_id = 'winter'",
    "an idempotency key": "DELETE FROM idempotency",
    "a tombstone's receipt": "UPDATE entries SET receipt_id = 'rcp_other' WHERE receipt_id IS NOT NULL",
    "a mark": "UPDATE marks SET evidence_id = 'evt_other'",
}


@pytest.mark.req("TM-12")
def test_damage_is_refused_and_nothing_is_left(small: bytes, tmp_path: Path) -> None:
    old, new, accepted = tmp_path / "old.db", tmp_path / "new.db", []
    for what, statements in DAMAGE.items():
        old.write_bytes(small)
        with closing(sqlite3.connect(old)) as file:
            file.executescript(statements)
            assert file.total_changes, what
        code, answer = upgraded(old, new)
        if code == 0 or not answer["hint"] or not answer.get("path"):
            accepted.append((what, answer))
        assert os.listdir(tmp_path) == ["old.db"], what
    assert accepted == []


@pytest.mark.req("TM-12")
def test_broken_pages_are_refused(small: bytes, tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    held = bytearray(small)
    for at in range(4096, len(held) - 4096, 8192):
        held[at : at + 64] = b"\xff" * 64
    cases = {"pages": bytes(held), "cut": small[: len(small) // 2], "cut short": small[:4000], "no page": small[:100]}
    for what, data in cases.items():
        old.write_bytes(data)
        code, answer = upgraded(old, new)
        assert code != 0, what
        assert answer["hint"], what
        assert os.listdir(tmp_path) == ["old.db"], what


def test_other_files_are_refused(small: bytes, tmp_path: Path) -> None:
    old, new, other = tmp_path / "old.db", tmp_path / "new.db", tmp_path / "other"
    assert_refused(tmp_path / "missing.db", new, "not_found")
    assert_refused(tmp_path, new, "invalid_input")
    other.write_bytes(b"")
    assert_refused(other, new, "not_a_database")
    other.write_text("just a text")
    assert_refused(other, new, "not_a_database")
    other.write_text('{"some":"JSON"}\n')
    assert_refused(other, new, "invalid_input")
    other.unlink()
    with closing(sqlite3.connect(other)) as file:
        file.execute("CREATE TABLE theirs (x)")
    assert_refused(other, new, "not_a_database")
    assert_refused("postgresql://nobody@127.0.0.1:1/x", new, "invalid_input")
    old.write_bytes(small)
    with closing(sqlite3.connect(old)) as file, file:
        file.execute("DELETE FROM migrations WHERE number > 14")
    assert "0.1" in assert_refused(old, new, "schema_mismatch")["hint"]
    with closing(sqlite3.connect(old)) as file, file:
        file.execute("INSERT INTO migrations VALUES (17, 'later', '', '')")
    assert_refused(old, new, "schema_mismatch")
    with closing(sqlite3.connect(old)) as file, file:
        file.execute("UPDATE migrations SET name = 'other' WHERE number = 1")
    assert "already" in assert_refused(old, new, "schema_mismatch")["message"]
    with closing(sqlite3.connect(old)) as file, file:
        file.execute("DROP TABLE migrations")
    assert "already" in assert_refused(old, new, "schema_mismatch")["message"]
    old.write_bytes(small)
    with closing(sqlite3.connect(old)) as file, file:
        file.execute("INSERT INTO objects VALUES ('acme', x'00', 'blob', 'evt_1', 'key', NULL, 9)")
    assert "move-contents" in assert_refused(old, new, "invalid_input")["hint"]


def test_a_place_that_is_taken_is_refused(small: bytes, tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    old.write_bytes(small)
    assert_refused(old, old, "conflict")
    new.write_text("mine")
    assert_refused(old, new, "conflict")
    new.unlink()
    new.symlink_to(tmp_path / "nowhere")
    assert_refused(old, new, "conflict")
    code, answer = upgraded(old, tmp_path / "no folder" / "new.db")
    assert (code != 0, answer["code"]) == (True, "invalid_input")
    for target in (":memory:", "mysql://host/db"):
        code, answer = upgraded(old, target)
        assert code != 0
        assert answer["hint"]


def test_an_address_by_keywords_is_refused_and_not_repeated(small: bytes, tmp_path: Path) -> None:
    old, address = tmp_path / "old.db", "host=db password=hunter2"
    old.write_bytes(small)
    for code, answer in (upgraded(address, tmp_path / "new.db"), upgraded(old, address)):
        assert (code != 0, answer["code"]) == (True, "invalid_input")
        assert "postgresql://" in answer["hint"]
        assert "hunter2" not in str(answer)


def test_a_dump_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    dump = tmp_path / "acme.jsonl"
    lines = lzma.decompress((STORE / "acme.jsonl.xz").read_bytes()).splitlines(keepends=True)
    dump.write_bytes(b"".join(lines[:-1]))
    assert_refused(dump, tmp_path / "new.db", "invalid_input")
    dump.write_bytes(b"".join([*lines[:5], *lines[6:]]))
    assert_refused(dump, tmp_path / "new.db", "chain_broken")


# -- PostgreSQL ---------------------------------------------------------------------------------------


@pytest.fixture
def database(postgres_dsn: str) -> Iterator[str]:
    """The address of a database of the test's own."""
    with psycopg.connect(postgres_dsn, autocommit=True) as admin:
        admin.execute('CREATE DATABASE "upgraded" ENCODING UTF8 TEMPLATE template0')
        yield urlsplit(postgres_dsn)._replace(path="/upgraded").geturl()
        admin.execute('DROP DATABASE "upgraded" WITH (FORCE)')


def held_in(address: str) -> set[str]:
    with psycopg.connect(address) as server:
        asked = "SELECT nspname || '.' || relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace"
        asked += " WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
        schemas = server.execute("SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%'")
        return {name for (name,) in (*schemas, *server.execute(asked))}


def test_a_file_is_upgraded_to_postgresql_or_leaves_nothing(small: bytes, database: str, tmp_path: Path) -> None:
    old, empty = tmp_path / "old.db", held_in(database)
    old.write_bytes(small)
    with closing(sqlite3.connect(old)) as file, file:
        file.execute(DAMAGE["an event's words"])
    for schema in ("", "?schema=mine"):
        if schema:
            with psycopg.connect(database) as server:
                server.execute("CREATE SCHEMA mine")
            empty = held_in(database)
        assert upgraded(old, database + schema)[0] != 0
        assert held_in(database) == empty, schema
    old.write_bytes(small)
    code, done = upgraded(old, database)
    assert code == 0, done
    with muniment.open(database) as mem:
        assert mem.verify().ok
        assert mem.store.tenants() == ["acme"]
    code, answer = upgraded(old, database)
    assert (code != 0, answer["code"]) == (True, "conflict")
    with muniment.open(database) as mem:
        assert mem.store.tenants() == ["acme"], "what is there stays"
