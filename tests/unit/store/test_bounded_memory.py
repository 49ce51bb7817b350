"""Work on whole stores holds no more of them when they are larger: nothing is sorted or gathered in memory."""

from __future__ import annotations

import lzma
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.handles.derived import check_dump
from muniment.handles.memory import Memory
from muniment.store import replay, upgrade
from muniment.store.engines import sqlite
from muniment.store.engines.sqlite import SqliteReader

pytestmark = pytest.mark.req("LG-05")

OLD_STORE = Path(__file__).parents[2] / "goldens" / "store_0_1" / "store.sqlite.xz"


def fill(mem: Memory, users: int) -> None:
    for number in range(users):
        run = mem.run(user_id=f"user-{number:04}", session_id="s1", run_id=f"run-{number:04}")
        said = run.observe_many(
            {"role": "user", "content": f"The lease of flat {each} ends soon. " * 8} for each in range(8)
        )
        run.remember("user.city", f"Lisbon {number} " * 20, sources=[said[0].id])
        run.compose("responder", query="Which flat?")


def sorted_in_memory(asked: Callable[[str, Any], list[Any]], statement: str, parameters: Any) -> bool:
    return any("TEMP B-TREE" in row[3] for row in asked(f"EXPLAIN QUERY PLAN {statement}", parameters))


@pytest.mark.parametrize("work", ["verify", "rebuild", "export"])
def test_no_statement_sorts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str) -> None:
    statements: dict[str, bool] = {}

    def watch(name: str) -> None:
        real = getattr(SqliteReader, name)

        def watched(self: Any, table: str, statement: str, parameters: Any) -> Any:
            if statement not in statements and statement.startswith("SELECT"):
                asked = lambda text, values: self._connection.execute(text, values).fetchall()  # noqa: E731
                statements[statement] = sorted_in_memory(asked, statement, parameters)
            return real(self, table, statement, parameters)

        monkeypatch.setattr(SqliteReader, name, watched)

    with muniment.open(tmp_path / "store.db") as mem:
        fill(mem, 3)
        mem.forget(user_id="user-0001")
        watch("_run")
        watch("_fetch")
        {"verify": mem.verify, "rebuild": mem.store.rebuild, "export": lambda: list(mem.export())}[work]()
    assert len(statements) > 10
    assert [statement for statement, is_sorted in statements.items() if is_sorted] == []


WORKS: dict[str, Callable[[Memory, Path], object]] = {
    "verify": lambda mem, dump: mem.verify(),
    "rebuild": lambda mem, dump: mem.store.rebuild(),
    "export": lambda mem, dump: dump.write_bytes(b"") or sum(len(line) for line in mem.export()),
    "check of a dump": lambda mem, dump: check_dump(str(dump)),
}


@pytest.mark.parametrize("work", WORKS)
def test_a_store_of_four_times_the_size_takes_less_than_twice_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    monkeypatch.setattr(sqlite, "_STREAM_ROWS", 8)
    monkeypatch.setattr(replay, "HELD_MAX", 8)
    peaks = [peak(tmp_path / f"{users}", users, WORKS[work]) for users in (15, 60)]
    assert peaks[1] < 2 * peaks[0], peaks


def peak(folder: Path, users: int, work: Callable[[Memory, Path], object]) -> int:
    folder.mkdir()
    dump = folder / "dump.jsonl"
    with muniment.open(folder / "store.db") as mem:
        fill(mem, users)
        dump.write_bytes(b"".join(mem.export()))
        work(mem, dump)
        dump.write_bytes(b"".join(mem.export()))
        tracemalloc.start()
        try:
            work(mem, dump)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def test_an_old_store_is_read_without_sorting_its_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "old.sqlite"
    path.write_bytes(lzma.decompress(OLD_STORE.read_bytes()))
    statements: dict[str, bool] = {}
    real = upgrade._OldFile._rows

    def watched(self: Any, asked: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        if asked.startswith("SELECT"):
            plan = lambda text, given: self._connection.execute(text, given).fetchall()  # noqa: E731
            statements[asked] = sorted_in_memory(plan, asked, values)
        return real(self, asked, values)

    monkeypatch.setattr(upgrade._OldFile, "_rows", watched)
    with upgrade.read_old(str(path)) as tenants:
        for tenant in tenants:
            assert callable(tenant.lines)
            assert sum(1 for _ in tenant.lines()) > 2
    assert len(statements) > 10
    assert [asked for asked, is_sorted in statements.items() if is_sorted and " UNION " not in asked] == []
