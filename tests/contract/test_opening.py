"""`open_engine` finds the engine that a target names, and says what is wrong with one that names none."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from muniment.core.ports.engine import Count, Insert
from muniment.errors import InvalidInput, MissingDependency, StorageReadOnly
from muniment.store.engines import _sqlite_files as opening
from muniment.store.engines._sqlite_files import FileTarget, connect
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.postgres import throwaway_schema
from products import for_each


def test_memory() -> None:
    engine = open_engine(":memory:")
    assert engine.info.name == "memory"
    engine.close()
    engine = open_engine(":memory:", read_only=True)
    with pytest.raises(StorageReadOnly):
        engine.write("t1", lambda transaction: transaction.do(Insert("links", [("a", "b")])))


@pytest.mark.parametrize("form", ["{}/a.db", "sqlite:///{}/a.db", "sqlite:///{}/with%20space.db"])
def test_sqlite(tmp_path: Path, form: str) -> None:
    engine = open_engine(form.format(tmp_path), durability="full")
    info = engine.info
    engine.close()
    assert info.name == "sqlite"
    assert info.durability == "full"
    assert os.path.dirname(info.location) == str(tmp_path)
    assert os.listdir(tmp_path) in (["a.db"], ["with space.db"])


@pytest.mark.parametrize(("made_with", "held"), [(None, 2048), (4096, 4096)])
def test_a_new_file_has_small_pages_and_one_of_before_keeps_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_with: int | None, held: int
) -> None:
    path = tmp_path / "a.db"
    with monkeypatch.context() as before:
        if made_with is not None:
            before.setattr(opening, "PAGE_BYTES", made_with)
        open_engine(path).close()
    engine = open_engine(path)
    engine.write("t1", lambda transaction: transaction.do(Insert("links", [("a", "b")])))
    assert engine.read("t1", lambda reader: reader.do(Count("links"))) == 1
    engine.close()
    with closing(connect(FileTarget(str(path), "rw", "normal", 1.0), timeout_s=1.0)) as connection:
        assert connection.execute("PRAGMA page_size").fetchone() == (held,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        (pages,) = connection.execute("PRAGMA wal_autocheckpoint").fetchone()
    assert pages * held == 4 * 1024 * 1024  # the log is as long as ever


def test_a_path_object_is_never_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    engine = open_engine(Path("odd:name.db"))
    engine.close()
    assert os.listdir(tmp_path) == ["odd:name.db"]
    open_engine("odd:name.db").close()  # and a file that is there is meant


def test_postgres_with_a_schema_in_the_url(postgres_dsn: str) -> None:
    with throwaway_schema(postgres_dsn) as target:
        engine = open_engine(target)
        assert engine.info.name == "postgres"
        assert engine.is_walled_by_the_server
        engine.write("t1", lambda transaction: transaction.do(Insert("tenants", [("now",)])))
        assert engine.tenants() == ["t1"]
        assert engine.info.location.endswith(target.rpartition("=")[2])
        engine.close()
    with pytest.raises(InvalidInput):
        open_engine(f'{postgres_dsn}&schema=not"a"name')


def test_postgres_with_a_pool_size_in_the_url(postgres_dsn: str) -> None:
    """What is the driver's goes to the driver."""
    with throwaway_schema(postgres_dsn) as target:
        engine = open_engine(f"{target}&pool_size=2&options=-csearch_path%3Dmine")
        try:
            assert isinstance(engine, PostgresEngine)
            assert engine._pool.max_size == 2
            with engine._pool.connection(), engine._pool.connection():
                assert engine._pool.get_stats()["pool_size"] == 2
            with engine.snapshot("t1"), engine.snapshot("t1"):
                assert engine._long_pool is not None
                assert engine._long_pool.get_stats()["pool_size"] == engine._long_pool.max_size == 2
            with engine._pool.connection() as connection:
                assert connection.execute("SHOW search_path").fetchone() == ("mine",)
        finally:
            engine.close()


@pytest.mark.parametrize("given", ["0", "-1", "", "many", "1001", "8.0", "٣", "1" * 5000])
def test_what_is_no_pool_size(given: str) -> None:
    with pytest.raises(InvalidInput, match="pool_size is a whole number from 1 to 1000") as caught:
        open_engine(f"postgresql://nobody:secret@127.0.0.1:1/none?pool_size={given}")
    assert "secret" not in str(caught.value.to_dict())
    assert len(caught.value.message) < 120


@for_each(
    "target", ["mysql://host/x", "sqlite:", "sqlite://a.db", "sqlite:///", "http://user:s3cret@host/", "", "a\0b"]
)
def test_what_names_no_store(target: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        open_engine(target)
    assert caught.value.hint
    assert "s3cret" not in str(caught.value)


def test_an_unknown_durability() -> None:
    with pytest.raises(InvalidInput):
        open_engine(":memory:", durability="some")


def test_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("muniment.store.engines.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependency) as caught:
        open_engine("postgresql://host/x")
    assert caught.value.hint == 'pip install "muniment[postgres]"'


def test_a_second_engine_in_one_process_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    """Were they dropped, another process would take the store for abandoned when it closes, and remove its log."""
    path = tmp_path / "store.db"
    first = open_engine(path)
    first.write("t1", lambda transaction: transaction.do(Insert("links", [("a", "x")])))
    open_engine(path).close()
    code = (
        "import sys\nfrom muniment.store.engines.opening import open_engine\n"
        "from muniment.core.ports.engine import Insert\n"
        "engine = open_engine(sys.argv[1])\n"
        "engine.write('t1', lambda transaction: transaction.do(Insert('links', [('b', 'x')])))\nengine.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert (tmp_path / "store.db-wal").exists()
    first.write("t1", lambda transaction: transaction.do(Insert("links", [("c", "x")])))
    assert first.read("t1", lambda reader: reader.do(Count("links"))) == 3
    first.close()
    assert os.listdir(tmp_path) == ["store.db"]
