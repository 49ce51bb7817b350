"""SQLite when the world fails: wrong files, no right to write, no space, other writers, forks, kill -9."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from muniment.core.ports.engine import Count, Get, Insert, Put, Select, Transaction
from muniment.errors import (
    InvalidInput,
    NotADatabase,
    NotFound,
    StorageBusy,
    StorageFailure,
    StorageFull,
    StorageLost,
    StorageReadOnly,
)
from muniment.store.engines.opening import open_engine
from muniment.store.engines.sqlite import SqliteEngine


def links(engine: SqliteEngine) -> int:
    return engine.read("t1", lambda reader: reader.do(Count("links")))


def add(engine: SqliteEngine, name: str) -> None:
    engine.write("t1", lambda transaction: transaction.do(Insert("links", [(name, "x")])))


# -- files that go away


def _removed(path: Path) -> None:
    path.unlink()


def _renamed(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def _replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("copy.db"))
    os.replace(path.with_name("copy.db"), path)


def _log_removed(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def _folder_moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


@pytest.mark.parametrize("harm", [_removed, _renamed, _replaced, _log_removed, _folder_moved])
@pytest.mark.parametrize("during", [False, True], ids=["between writes", "during one"])
def test_no_write_is_acknowledged_to_a_file_that_is_gone(
    tmp_path: Path, harm: Callable[[Path], None], during: bool
) -> None:
    path = tmp_path / "in" / "store.db"
    path.parent.mkdir()
    engine = SqliteEngine(path)
    add(engine, "a")

    def write(transaction: Transaction) -> None:
        transaction.do(Insert("links", [("b", "x")]))
        if during:
            harm(path)

    if not during:
        harm(path)
    with pytest.raises(StorageLost, match="removed or replaced"):
        engine.write("t1", write)
    with pytest.raises(StorageLost):  # and not the next one either
        add(engine, "c")
    engine.close()


@pytest.mark.parametrize("harm", [_removed, _renamed, _replaced])
def test_nor_is_the_first_one(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = tmp_path / "store.db"
    engine = SqliteEngine(path)
    harm(path)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(StorageLost):
        add(engine, "a")
    assert sorted(os.listdir(tmp_path)) == before, "no other file was made in its place"
    engine.close()


def test_a_file_that_is_put_back_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    engine = SqliteEngine(path)
    add(engine, "a")
    path.rename(tmp_path / "away.db")
    with pytest.raises(StorageLost):
        add(engine, "b")
    (tmp_path / "away.db").rename(path)
    add(engine, "c")
    assert links(engine) == 2
    engine.close()


def test_whoever_goes_to_another_folder_writes_to_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = SqliteEngine("store.db")
    add(engine, "a")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    add(engine, "b")
    engine.close()


# -- files that are something else


@pytest.mark.parametrize(
    "content",
    [b"x", b"hello, world\n", b"\0" * 100, b'{"a": 1}' * 1000, b"SQLite format 4\0" + b"\0" * 5000],
    ids=lambda content: repr(content[:16]),
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes, read_only: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(NotADatabase):
        SqliteEngine(path, read_only=read_only)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["file"]


def test_a_damaged_database(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    SqliteEngine(path).close()
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 8000)
    with pytest.raises(NotADatabase):
        SqliteEngine(path)


@pytest.mark.parametrize("table", ["customers", "migrations", "entries"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_of_another_program(tmp_path: Path, table: str, read_only: bool) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE {table} (number, name, sha256)")
    before = path.read_bytes()
    with pytest.raises(NotADatabase) as caught:
        SqliteEngine(path, read_only=read_only)
    assert caught.value.hint
    assert path.read_bytes() == before


def test_a_folder_and_a_pipe(tmp_path: Path) -> None:
    with pytest.raises(NotADatabase):
        SqliteEngine(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotADatabase):
        SqliteEngine(tmp_path / "pipe")


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        SqliteEngine(tmp_path / "no" / "store.db")
    assert str(tmp_path / "no") in str(caught.value)
    assert caught.value.hint


def test_reading_makes_no_new_store(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        SqliteEngine(tmp_path / "store.db", read_only=True)
    (tmp_path / "empty.db").touch()
    with pytest.raises(NotADatabase):
        SqliteEngine(tmp_path / "empty.db", read_only=True)
    assert os.listdir(tmp_path) == ["empty.db"]
    engine = SqliteEngine(tmp_path / "empty.db")  # but an empty file may become one
    add(engine, "a")
    engine.close()


@pytest.mark.parametrize("name", ["with space.db", "per%20cent.db", "que?ry=1.db", "ha#sh.db", "ünï😀.db", "a'b\"c.db"])
def test_odd_names_of_files(tmp_path: Path, name: str) -> None:
    with closing(SqliteEngine(tmp_path / name)) as engine:
        add(engine, "a")
    with closing(SqliteEngine(tmp_path / name, read_only=True)) as engine:
        assert links(engine) == 1
    assert name in os.listdir(tmp_path)


# -- no right to write


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[tuple[Path, Callable[[str], None]]]:
    """A small disk of our own and a way to remount it; root passes every chmod, but not a read-only mount."""
    folder = tmp_path / "volume"
    folder.mkdir()

    def mount(options: str) -> None:
        ran = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
        )
        if ran.returncode != 0:
            pytest.skip(f"cannot mount a small disk here (needs root): {ran.stderr.strip()}")

    if shutil.which("mount") is None:
        pytest.skip("there is no mount command to make a small disk with")
    mount("size=1m")
    yield folder, lambda options: mount(f"remount,{options}")
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_read_only_disk(volume: tuple[Path, Callable[[str], None]], read_only: bool) -> None:
    folder, remount = volume
    with closing(SqliteEngine(folder / "store.db")) as engine:
        add(engine, "a")
    remount("ro")
    with closing(SqliteEngine(folder / "store.db", read_only=read_only)) as engine:
        assert links(engine) == 1
        for _ in range(2):
            with pytest.raises(StorageReadOnly):
                add(engine, "b")
        with pytest.raises(StorageReadOnly):
            engine.scrub([b"x"])
        with engine.snapshot("t1") as view:
            assert list(view.stream(Select("links"))) == [("a", "x")]
        assert engine.tenants() == []
    with pytest.raises((StorageReadOnly, NotFound)):
        SqliteEngine(folder / "new.db", read_only=read_only)


def test_a_read_only_disk_with_a_log_is_never_misread(volume: tuple[Path, Callable[[str], None]]) -> None:
    """The log of a store that was not closed holds rows that the file lacks."""
    folder, remount = volume
    with closing(SqliteEngine(folder / "store.db")) as engine:
        add(engine, "a")
        for name in ("store.db", "store.db-wal"):
            shutil.copy(folder / name, folder / name.replace("store", "copy"))
    assert (folder / "copy.db-wal").stat().st_size > 0
    remount("ro")
    with pytest.raises(StorageFailure) as caught:
        SqliteEngine(folder / "copy.db")
    assert caught.value.hint


def test_opened_for_reading(tmp_path: Path) -> None:
    with closing(SqliteEngine(tmp_path / "store.db")) as writer:
        add(writer, "a")
        with closing(open_engine(tmp_path / "store.db", read_only=True)) as reader:
            assert links(reader) == 1  # type: ignore[arg-type]
            add(writer, "b")
            assert links(reader) == 2  # type: ignore[arg-type]
            with pytest.raises(StorageReadOnly):
                add(reader, "c")  # type: ignore[arg-type]


# -- no space


def fill(engine: SqliteEngine) -> int:
    """Batches of fifty rows until there is no space; how many went in."""
    written = 0
    while True:
        rows = [(f"{written:03d} {number} {'x' * 500}", "x") for number in range(50)]
        try:
            engine.write("t1", lambda transaction, rows=rows: transaction.do(Insert("links", rows)))
        except StorageFull:
            return written
        written += 1


def test_a_full_disk(volume: tuple[Path, Callable[[str], None]]) -> None:
    folder, remount = volume
    with closing(SqliteEngine(folder / "store.db")) as engine:
        written = fill(engine)
        assert written > 0
        assert links(engine) == written * 50
        with pytest.raises(StorageFull):
            engine.write("t1", lambda t: t.do(Insert("links", [(f"{n} {'y' * 500}", "x") for n in range(500)])))
        assert links(engine) == written * 50
        remount("size=8m")
        add(engine, "there is room again")
        assert links(engine) == written * 50 + 1
    with closing(SqliteEngine(folder / "store.db")) as engine:
        assert links(engine) == written * 50 + 1


def test_a_full_disk_at_the_first_opening(volume: tuple[Path, Callable[[str], None]]) -> None:
    folder, remount = volume
    (folder / "ballast").write_bytes(b"\0" * (1 << 20))
    with pytest.raises(StorageFull):
        SqliteEngine(folder / "store.db")
    remount("size=8m")
    with closing(SqliteEngine(folder / "store.db")) as engine:
        add(engine, "a")


def test_a_file_at_its_limit(tmp_path: Path) -> None:
    with closing(SqliteEngine(tmp_path / "store.db")) as engine:
        add(engine, "a")
        writer = engine._connections.take_writer(time.monotonic() + 60)
        writer.execute("PRAGMA max_page_count = 60")
        engine._connections.leave_writer()
        with pytest.raises(StorageFull):
            engine.write("t1", lambda t: t.do(Insert("links", [(f"{n} {'y' * 500}", "x") for n in range(999)])))
        assert links(engine) == 1
        add(engine, "b")


# -- other writers

HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
print("free", flush=True)
sys.stdin.readline()
"""


def test_a_writer_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(SqliteEngine(path, busy_timeout_s=0.3)) as engine:
        add(engine, "a")
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(StorageBusy):
                add(engine, "b")
            assert links(engine) == 1  # readers wait for nobody
            holder.stdin.write("\n")
            holder.stdin.flush()
            assert holder.stdout.readline() == "free\n"
            add(engine, "b")
            assert links(engine) == 2


def test_a_writer_in_another_thread(tmp_path: Path) -> None:
    with closing(SqliteEngine(tmp_path / "store.db", busy_timeout_s=0.2)) as engine:
        held, free = threading.Event(), threading.Event()

        def hold(transaction: Transaction) -> None:
            transaction.do(Insert("links", [("held", "x")]))
            held.set()
            free.wait(10)

        thread = threading.Thread(target=lambda: engine.write("t1", hold))
        thread.start()
        assert held.wait(10)
        with pytest.raises(StorageBusy):
            add(engine, "b")
        assert links(engine) == 0
        free.set()
        thread.join(10)
        add(engine, "b")
        assert links(engine) == 2


COUNTER = """
import sys
from muniment.store.engines.opening import open_engine
from muniment.core.ports.engine import Get, Put
def work(transaction):
    row = transaction.do(Get("sessions", ("u", "s")))
    number = row[2] if row else 0
    transaction.do(Put("sessions", [("u", "s", number + 1, b"", "", "")]))
engine = open_engine(sys.argv[1])
for _ in range(int(sys.argv[2])):
    engine.write("t1", work)
engine.close()
"""


def test_processes_take_turns(tmp_path: Path) -> None:
    path = str(tmp_path / "store.db")
    running = [subprocess.Popen([sys.executable, "-c", COUNTER, path, "200"]) for _ in range(4)]
    assert [process.wait(240) for process in running] == [0] * 4
    with closing(SqliteEngine(path)) as engine:
        row = engine.read("t1", lambda reader: reader.do(Get("sessions", ("u", "s"))))
        assert row is not None
        assert row[2] == 800


# -- forks and ends


def test_a_fork_gets_connections_of_its_own(tmp_path: Path) -> None:
    with closing(SqliteEngine(tmp_path / "store.db")) as engine:
        add(engine, "parent")
        assert links(engine) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            failed = 1
            try:
                add(engine, "child")
                failed = 0 if links(engine) == 2 else 2
                engine.close()
            finally:
                os._exit(failed)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert links(engine) == 2
        add(engine, "parent again")


PAIRS = """
import sys
from muniment.store.engines.opening import open_engine
from muniment.core.ports.engine import Insert
engine = open_engine(sys.argv[1], durability=sys.argv[2])
number = 0
while True:
    number += 1
    def work(transaction):
        transaction.do(Insert("links", [(sys.argv[3], f"{number}")]))
        transaction.do(Insert("rates", [(f"{sys.argv[3]} {number}", 1, 1)]))
    engine.write("t1", work)
    print(number, flush=True)
"""


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_kill_9_leaves_whole_transactions(tmp_path: Path, durability: str) -> None:
    path = str(tmp_path / "store.db")
    told: dict[str, int] = {}
    for run in ("one", "two", "three"):
        command = [sys.executable, "-c", PAIRS, path, durability, run]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(20 + len(told) * 17):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
            told[run] = max((int(line) for line in process.stdout.read().split()), default=0) or 20 + len(told) * 17
    with closing(SqliteEngine(path)) as engine:
        for run, number in told.items():
            pairs = engine.read("t1", lambda reader, run=run: reader.do(Count("links", (("source_id", "=", run),))))
            assert pairs >= number  # what was said to be written is there
        assert links(engine) == engine.read("t1", lambda reader: reader.do(Count("rates")))
        engine.write("t1", lambda transaction: transaction.do(Put("links", [("after", "x")])))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
