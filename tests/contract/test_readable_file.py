"""The views of a SQLite file say what the store says, to a program that has nothing but `sqlite3`."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Insert, Select
from muniment.core.ports.schema import column_names, table
from muniment.store.engines.layout import VIEWS
from muniment.store.engines.sqlite import SqliteEngine
from muniment.testing.engine_contract import row_with

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "format.md"
IDS = ("evt_" + "0f" * 16, "evt_" + "0f" * 15, "evt_zz", "run 1", "ünï", "", "evt_" + "a" * 33, "aaa_" + "0" * 32)
TIMES = ("", "0001-01-01T00:00:00.000000Z", "1969-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def view(path: Path, statement: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as file:
        file.row_factory = sqlite3.Row
        return [dict(row) for row in file.execute(statement)]


def test_every_row_is_shown_as_it_was_written(path: Path) -> None:
    entries = [
        row_with("entries", n, id=id_, user_id=f"u{n % 2}", ts=TIMES[n % 4], kind=("message", "aside")[n % 2], n=n)
        for n, id_ in enumerate(IDS)
    ]
    items = [row_with("items", n, id=id_, kind="fact", newest=1, status="active") for n, id_ in enumerate(IDS)]
    with closing(SqliteEngine(path)) as engine:
        for tenant in ("acme", "other"):
            engine.write(tenant, lambda tx: [tx.do(Insert("entries", entries)), tx.do(Insert("items", items))])
        held = {name: engine.read("acme", lambda r, name=name: r.do(Select(name))) for name in ("entries", "items")}  # type: ignore[misc]
    for name, shown in (("entries", "events"), ("items", "facts"), ("items", "item_versions")):
        names = column_names(table(name))
        wanted = [dict(zip(names, row, strict=True)) for row in held[name]]
        for row in wanted:
            row.update({name: value.hex() for name, value in row.items() if isinstance(value, bytes)})
        assert view(path, f"SELECT {', '.join(names)} FROM {shown} WHERE tenant = 'acme' ORDER BY id") == wanted


@pytest.fixture
def told(path: Path) -> Iterator[tuple[muniment.Memory, Path]]:
    with muniment.open(path) as mem:
        run = mem.run(tenant_id="acme", user_id="ana", session_id="monday", run_id="trip")
        run.observe("user", "I moved to Berlin.")
        run.compose("responder", query="Where does she live?")
        gone = run.observe("user", "Forget this.")
        mem.forget(event=gone.id, tenant_id="acme")
        yield mem, path


def test_views_tell_what_happened(told: tuple[muniment.Memory, Path]) -> None:
    mem, path = told
    events = view(path, "SELECT * FROM events WHERE role = 'user' ORDER BY seq")
    entries = [each for each in mem.ledger.entries(user_id="ana", tenant_id="acme") if each.role == "user"]
    assert [(row["id"], row["ts"], row["hash"]) for row in events] == [
        (entry.id, entry.ts, entry.hash.hex() if isinstance(entry.hash, bytes) else entry.hash) for entry in entries
    ]
    assert [row["content"] for row in events] == ["I moved to Berlin.", None]
    assert [row["body"] for row in events] == ['{"content":"I moved to Berlin."}', None]
    assert events[1]["salt"] is None
    assert [(row["user_id"], row["session_id"]) for row in view(path, "SELECT * FROM sessions_by_name")] == [
        ("ana", "monday")
    ]
    assert [row["id"] for row in view(path, "SELECT id FROM runs")] == ["trip"]
    assert [row["id"] for row in view(path, "SELECT id FROM receipts")] == [events[1]["receipt_id"]]
    assert [row["body"] for row in view(path, "SELECT body FROM builds")] == ["(compressed)"]


def test_the_page_on_the_format_checks_a_file(told: tuple[muniment.Memory, Path], tmp_path: Path) -> None:
    """Its program needs nothing but the standard library, and finds what the verification finds."""
    mem, path = told
    mem.close()
    (program,) = re.findall(r"```py\n(.+?)```", PAGE.read_text("utf-8"), re.DOTALL)

    def check(file: Path) -> str:
        done = subprocess.run([sys.executable, "-I", "-S", "-c", program, file], capture_output=True, text=True)
        return done.stdout + done.stderr

    assert check(path) == "every chain holds\n"
    for number, damage in enumerate(
        (
            "UPDATE entries SET body = 'I moved to Paris.' WHERE seq = 2",
            "UPDATE entries SET ts = ts + 1 WHERE seq = 2",
            "UPDATE entries SET hash = zeroblob(32) WHERE seq = 1",
            "UPDATE entries SET body = NULL, salt = NULL WHERE seq = 2",
            "UPDATE names SET name = 'bob' WHERE name = 'ana'",
            "DELETE FROM entries WHERE seq = 2",
            "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)",
            "DELETE FROM entries",
        )
    ):
        damaged = tmp_path / f"{number}.db"
        shutil.copy(path, damaged)
        with closing(sqlite3.connect(damaged)) as file, file:
            file.execute(damage)
        assert "missing" in check(damaged), damage


def test_views_cannot_be_written(told: tuple[muniment.Memory, Path]) -> None:
    _, path = told
    with closing(sqlite3.connect(path)) as file:
        for name in VIEWS:
            with pytest.raises(sqlite3.OperationalError, match="it is a view"):
                file.execute(f"DELETE FROM {name}")
