"""After a scrub the bytes of what was emptied are in no file of a SQLite store; where they are, the report says so."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.core.ports.engine import Delete, Insert, Patch, Select
from muniment.store.engines import _sqlite_residue as residue
from muniment.store.engines._sqlite_files import read_chunks
from muniment.store.engines._sqlite_residue import found_in, traces_of
from muniment.store.engines.sqlite import SqliteEngine
from muniment.testing.engine_contract import row_with


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(tmp_path / "store.db", busy_timeout_s=0.5)
    yield engine
    engine.close()


def raw_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def forget(engine: SqliteEngine, numbers: list[int]) -> None:
    values = {"body": None, "salt": None, "receipt_id": "r"}
    engine.write("t1", lambda t: t.do(Patch("entries", (("seq", "in", tuple(numbers)),), values)))


@pytest.mark.parametrize("length", [20, 60, 300, 3_000, 9_000, 100_000])
def test_what_was_emptied_is_gone(engine: SqliteEngine, tmp_path: Path, length: int) -> None:
    chance = random.Random(length)
    secrets = [f"secret {n} " + chance.randbytes(length // 2).hex() for n in range(60)]
    order = list(range(60))
    chance.shuffle(order)
    for n in order:
        row = row_with("entries", n, body=secrets[n], salt=chance.randbytes(16))
        engine.write("t1", lambda t, row=row: t.do(Insert("entries", [row])))
    gone = order[::2]
    needles = [secrets[n].encode() for n in gone]
    assert needles[0][:60] in raw_bytes(tmp_path)
    for n in gone:
        forget(engine, [n])
    report = engine.scrub(needles)
    assert report.clean, report
    left = raw_bytes(tmp_path)
    for needle in needles:
        assert needle not in left
        assert needle[:30] not in left
        assert needle[-30:] not in left
    kept = engine.read("t1", lambda reader: reader.do(Select("entries", order=("seq",), columns=("seq", "body"))))
    assert kept == [(n, None if n in gone else secrets[n]) for n in range(60)]


def test_rows_that_are_still_there_are_reported(engine: SqliteEngine) -> None:
    engine.write(
        "t1", lambda t: t.do(Insert("entries", [row_with("entries", n, body="the same words") for n in (1, 2)]))
    )
    forget(engine, [1])
    report = engine.scrub([b"the same words"])
    assert not report.clean
    assert report.vacuumed
    assert "not forgotten" in report.note
    forget(engine, [2])
    assert engine.scrub([b"the same words"]).clean


def test_a_reader_that_holds_the_log_is_reported(engine: SqliteEngine, tmp_path: Path) -> None:
    engine.write("t1", lambda t: t.do(Insert("entries", [row_with("entries", 1, body="words for a reader")])))
    with engine.snapshot("t1") as view:
        forget(engine, [1])
        report = engine.scrub([b"words for a reader"])
        assert not report.clean
        assert "this process holds the write-ahead log open" in report.note
        assert view.do(Select("entries", columns=("body",))) == [("words for a reader",)]
    assert engine.scrub([b"words for a reader"]).clean
    assert b"words for a reader" not in raw_bytes(tmp_path)


def test_deleted_rows_leave_nothing_in_indexes(engine: SqliteEngine, tmp_path: Path) -> None:
    names = [f"name of something {n:04d}" for n in range(800)]
    chance = random.Random(1)
    chance.shuffle(names)
    for name in names:
        engine.write("t1", lambda t, name=name: t.do(Insert("links", [(name, "x")])))
    gone = names[:400]
    engine.write("t1", lambda t: t.do(Delete("links", (("source_id", "in", tuple(gone)),))))
    assert engine.scrub([name.encode() for name in gone]).clean
    left = raw_bytes(tmp_path)
    assert not any(name.encode() in left for name in gone)
    assert all(name.encode() in left for name in names[400:])


def test_nothing_to_look_for(engine: SqliteEngine) -> None:
    assert engine.scrub([]).clean
    assert engine.scrub([b""]).clean


def test_without_needles_no_file_is_read(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A forget costs the same in a store of any size."""
    monkeypatch.setattr(residue, "read_chunks", None)
    engine.write("t1", lambda t: t.do(Insert("entries", [row_with("entries", 1, body="few", salt=b"s" * 16)])))
    forget(engine, [1])
    report = engine.scrub([])
    assert (report.clean, report.vacuumed, report.due) == (True, False, False)


@pytest.mark.parametrize("many", [1, 100])
@pytest.mark.parametrize("length", [3, 14, 15, 16, 64, 5000])
def test_needles_are_found_wherever_they_lie(
    tmp_path: Path, many: int, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any offset, across the edges of the stretches that are read, alone or among many."""
    monkeypatch.setattr("muniment.store.engines._sqlite_residue._CHUNK_BYTES", 1024)
    chance = random.Random(length)
    needle = chance.randbytes(length)
    others = [b"never there" + chance.randbytes(20) for _ in range(many - 1)]
    path = tmp_path / "file"
    for offset in [*range(9), *range(1024 - length - 2, 1026), 3000]:
        if offset >= 0:
            path.write_bytes(b"\1" * offset + needle + b"\2" * 3000)
            assert found_in([(str(path), "")], [*others, needle]), offset
    path.write_bytes(b"\1" * 4000 + needle[:-1])
    assert not found_in([(str(path), "")], [*others, needle])


def test_parts_that_count() -> None:
    assert traces_of([b"short", b"", b"short"]) == [b"short"]
    assert traces_of([b"a" * 16 + b"b" * 17]) == [b"a" * 16, b"b" * 17]
    long = bytes(range(200))
    parts = traces_of([long])
    assert all(part in long and len(part) == 64 for part in parts)
    assert parts[-1] == long[-64:]


def test_a_large_file_is_not_looked_through_and_the_report_says_so(tmp_path: Path) -> None:
    """LG-07: what was not looked at is not called clean; a thorough scrub takes it."""
    path = tmp_path / "store.db"
    engine = SqliteEngine(path, look_bytes_max=64 << 10)
    try:
        salt = random.Random(1).randbytes(16)
        engine.write("t1", lambda t: t.do(Insert("entries", [row_with("entries", 1, body="few", salt=salt)])))
        few = SqliteEngine(path, look_bytes_max=64 << 20)
        assert few.scrub([b"not there at all"]).clean
        few.close()
        assert path.stat().st_size > 64 << 10
        forget(engine, [1])
        report = engine.scrub([salt])
        assert (report.clean, report.vacuumed, report.due) == (False, False, True)
        assert "more than 0 MiB, and was not looked through" in report.note
        assert "scrub the store" in report.note
        assert salt not in raw_bytes(tmp_path)
        whole = engine.scrub([], thorough=True)
        assert (whole.clean, whole.vacuumed, whole.due) == (True, True, False)
    finally:
        engine.close()


def test_a_large_file_is_not_read_for_a_forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def chunks(path: str, size: int, ending: str) -> Iterator[bytes]:
        read.append(path)
        return iter(read_chunks(path, size, ending=ending))

    monkeypatch.setattr(residue, "read_chunks", chunks)
    for look_bytes_max, looked in ((1 << 30, True), (1, False)):
        engine = SqliteEngine(tmp_path / f"{look_bytes_max}.db", look_bytes_max=look_bytes_max)
        engine.write("t1", lambda t: t.do(Insert("entries", [row_with("entries", 1, body="few", salt=b"s" * 16)])))
        forget(engine, [1])
        read.clear()
        assert engine.scrub([b"s" * 16]).due is not looked
        assert bool(read) is looked
        engine.close()
