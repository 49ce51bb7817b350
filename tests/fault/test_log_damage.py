"""A damaged write-ahead log of SQLite: acknowledged commits that are lost are never passed over in silence."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from muniment.core.ports.engine import Count, Insert, Put
from muniment.errors import StoreDamaged
from muniment.store.engines import _sqlite_files
from muniment.store.engines._sqlite_files import PAGE_BYTES, copy_file
from muniment.store.engines.sqlite import SqliteEngine

pytestmark = pytest.mark.req("TM-12")

PAGE = PAGE_BYTES
FRAME = PAGE + 24
COMMITS = 12


@pytest.fixture
def nobody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No live writer is about to announce a commit: nothing is won by waiting for one."""
    monkeypatch.setattr(_sqlite_files, "_SETTLE_S", 0.1)


def add(engine: SqliteEngine, *names: str) -> None:
    engine.write("t1", lambda tx: tx.do(Insert("links", [(name, "x") for name in names])))


def count(engine: SqliteEngine) -> int:
    return engine.read("t1", lambda reader: reader.do(Count("links")))


def crashed(folder: Path, log: bytes | None = None) -> Path:
    """The files that a killed process leaves, with another log where one is given."""
    live = folder / "live.db"
    path = folder / "crashed.db"
    if not live.exists():
        SqliteEngine(live).close()
        with closing(SqliteEngine(live)) as engine:
            for number in range(COMMITS):
                add(engine, *(f"{number}-{each:03}" for each in range(20)))
            for ending in ("", "-wal"):
                shutil.copy(f"{live}{ending}", f"{live}{ending}.kept")
    for ending in ("", "-wal"):
        shutil.copy(f"{live}{ending}.kept", f"{path}{ending}")
    path.with_name("crashed.db-shm").unlink(missing_ok=True)
    if log is not None:
        path.with_name("crashed.db-wal").write_bytes(log)
    return path


def log_of(path: Path) -> bytes:
    return path.with_name(f"{path.name}-wal").read_bytes()


def flipped(log: bytes, place: int, length: int = 4) -> bytes:
    return log[:place] + bytes(byte ^ 0xFF for byte in log[place : place + length]) + log[place + length :]


def refused(engine: SqliteEngine) -> list[str]:
    """What is refused because the log is damaged."""
    acts = {
        "write": lambda: engine.write("t1", lambda tx: tx.do(Put("links", [("new", "x")]))),
        "scrub": lambda: engine.scrub([]),
        "view": lambda: engine.snapshot("t1").__enter__(),
        "tenants": engine.unlisted_tenants,
    }
    found = []
    for name, act in acts.items():
        try:
            act()
        except StoreDamaged as error:
            found.append(name if "wal_checkpoint" in (error.hint or "") else f"{name} without a hint")
    return found


@pytest.mark.usefixtures("nobody_writes")
def test_damage_before_the_last_frames_is_noticed(tmp_path: Path) -> None:
    whole = log_of(crashed(tmp_path))
    frames = (len(whole) - 32) // FRAME
    assert frames > 2 * COMMITS
    header = {"magic": 0, "page size": 8, "salt": 16, "checksum": 24}
    frame = {"page": 0, "commit": 4, "salt": 8, "checksum": 16, "first byte": 24, "last bytes": FRAME - 4}
    places = dict(header)
    for number in (0, 1, frames // 2, frames - 3):
        places |= {f"{name} of frame {number}": 32 + number * FRAME + place for name, place in frame.items()}
    silent = []
    for name, place in places.items():
        damaged = flipped(whole, place)
        path = crashed(tmp_path, damaged)
        for read_only in (True, False):
            with closing(SqliteEngine(path, busy_timeout_s=0.02, read_only=read_only)) as engine:
                assert count(engine) < COMMITS * 20, name
                if refused(engine) != ["write", "scrub", "view", "tenants"]:
                    silent.append((name, read_only))
        assert log_of(path) == damaged, f"{name}: the evidence was overwritten"
    assert silent == []


@pytest.mark.usefixtures("nobody_writes")
def test_a_copy_of_it_is_refused(tmp_path: Path) -> None:
    whole = log_of(crashed(tmp_path))
    path = crashed(tmp_path, flipped(whole, len(whole) // 2))
    with pytest.raises(StoreDamaged):
        copy_file(str(path), str(tmp_path / "copy.db"))
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.usefixtures("nobody_writes")
def test_the_hint_makes_it_usable_again(tmp_path: Path) -> None:
    whole = log_of(crashed(tmp_path))
    path = crashed(tmp_path, flipped(whole, len(whole) // 2))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with closing(SqliteEngine(path)) as engine:
        left = count(engine)
        assert 0 < left < COMMITS * 20
        assert refused(engine) == []
        assert count(engine) == left + 1


def test_an_interrupted_write_is_no_damage(tmp_path: Path) -> None:
    """A process killed while it writes leaves an end that was never acknowledged, of whatever length."""
    whole = log_of(crashed(tmp_path))
    last = len(whole) - FRAME
    ends = {
        "whole": whole,
        "empty": b"",
        "half a header": whole[:20],
        "half a frame header": whole[: last + 10],
        "half a page": whole[: last + 500],
        "a page that did not arrive": whole[: last + 24] + bytes(PAGE),
        "an older log behind it": whole[:last] + flipped(whole, 40, len(whole) - 40)[32:],
    }
    for name, log in ends.items():
        with closing(SqliteEngine(crashed(tmp_path, log))) as engine:
            assert refused(engine) == [], name


def test_what_a_rolled_back_write_left_in_the_log_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    with closing(SqliteEngine(path)) as engine:
        add(engine, "first")

        def spill(tx: object) -> None:
            for number in range(60):  # more than the cache holds: pages go to the log before the commit
                tx.do(Insert("links", [(f"{number}-{each}" + "y" * 500, "x") for each in range(600)]))  # type: ignore[attr-defined]
            raise KeyError

        with pytest.raises(KeyError):
            engine.write("t1", spill)
        assert len(log_of(path)) > 100 * FRAME, "nothing was spilled"
        add(engine, "second")
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", tmp_path / f"crashed.db{ending}")
    with closing(SqliteEngine(tmp_path / "crashed.db")) as engine:
        assert refused(engine) == []
        assert count(engine) == 3


def test_a_store_that_is_being_written_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    with closing(SqliteEngine(path)) as writer:
        for number in range(200):
            add(writer, f"{number}")
            if number % 20 == 0:
                with closing(SqliteEngine(path)) as other:
                    assert refused(other) == [], number
