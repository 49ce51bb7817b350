"""Copies of a store in use, and the way back."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import muniment
from muniment.store.engines._sqlite_files import copy_file, schema_number
from muniment.store.engines.layout import LAYOUT
from muniment.store.engines.opening import file_named
from muniment.surfaces.cli.main import cli


def told(*words: str, fails: bool = False) -> Result:
    done = CliRunner().invoke(cli, list(words))
    assert (done.exit_code != 0) == fails, done.output
    return done


# -- a file -------------------------------------------------------------------------------------------


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
    assert schema_number(str(tmp_path / "new.db")) == LAYOUT, "where nothing stood, nobody is asked"


def test_a_copy_that_breaks_off_leaves_nothing_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    muniment.open(path).close()

    def full(_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("muniment.store.engines._sqlite_files._sync", full)
    refused = told("store", "backup", str(tmp_path / "copy"), "--db", str(path), fails=True)
    assert "No space left" in refused.output
    assert not list(tmp_path.glob("copy*"))


def test_the_file_of_a_target_is_known() -> None:
    assert file_named("a.db") == "a.db"
    assert file_named("sqlite:///x/a%20b.db") == "x/a b.db"
    for other in (":memory:", "postgresql://host/db", "sqlite:a"):
        assert file_named(other) is None
    told("store", "backup", "x", "--db", "postgresql://nobody@127.0.0.1:1/x", fails=True)


@pytest.mark.soak
def test_a_copy_keeps_its_schema(tmp_path: Path) -> None:
    muniment.open(tmp_path / "a.db").close()
    assert copy_file(str(tmp_path / "a.db"), str(tmp_path / "b.db")) == LAYOUT
