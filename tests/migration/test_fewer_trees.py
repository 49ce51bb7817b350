"""Links in the order of their key and one index less, in files of before: every row stays, also in a crash."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import muniment
from muniment.errors import StorageFailure
from muniment.store.engines import migrations
from muniment.store.engines.sqlite import opening
from muniment.store.engines.sqlite.engine import SqliteEngine

NAME = "fewer_trees"


@contextmanager
def known(*, has_it: bool, spoiled: bool = False) -> Iterator[None]:
    """Files are opened with the migrations before this one; or with it too, and failing at its end."""

    def load(package: str) -> tuple[migrations.Migration, ...]:
        found = migrations.load(package)
        (number,) = (each.number for each in found if each.name == NAME)
        kept = found[: number if has_it else number - 1]
        last = kept[-1]
        return (*kept[:-1], last._replace(sql=f"{last.sql}\nSELECT no_such_column FROM links;")) if spoiled else kept

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "load", load)
        yield


def filled(path: Path) -> str:
    """A file of before with a story in it; answers an event that much was made of."""
    with known(has_it=False), muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        said = run.observe("user", "I live in Ghent.")
        for number in range(40):
            run.remember(f"place.{number}", "Ghent", sources=[said.id])
        mem.run(tenant_id="acme", user_id="ben").observe("user", "I live in Bruges.")
    return said.id


def links(path: Path) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(path)) as file:
        return sorted(file.execute("SELECT tenant_id, source_id, item_id FROM links").fetchall())


def made_as(path: Path) -> str:
    with closing(sqlite3.connect(path)) as file:
        return str(file.execute("SELECT sql FROM sqlite_schema WHERE name = 'links'").fetchone()[0])


def test_every_link_stays_and_leads_where_it_led(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    said = filled(path)
    before = links(path)
    assert len(before) > 40
    assert "WITHOUT ROWID" not in made_as(path)
    with muniment.open(path) as mem:
        assert links(path) == before
        assert "WITHOUT ROWID" in made_as(path)
        assert mem.verify().ok
        assert len(mem.forget(event=said).erased) > 40
        assert mem.verify().ok


def test_a_file_that_breaks_off_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    filled(path)
    before = links(path)
    with known(has_it=True, spoiled=True), pytest.raises(StorageFailure):
        SqliteEngine(path)
    assert links(path) == before
    assert "WITHOUT ROWID" not in made_as(path)
    with muniment.open(path) as mem:
        assert links(path) == before
        assert mem.verify().ok


def test_links_are_found_by_either_end_without_a_walk(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    muniment.open(path).close()
    with closing(sqlite3.connect(path)) as file:
        for column in ("source_id", "item_id"):
            asked = f"EXPLAIN QUERY PLAN SELECT * FROM links WHERE tenant_id = 'a' AND {column} = 'b'"
            (plan,) = (str(row[3]) for row in file.execute(asked))
            assert plan.startswith("SEARCH links USING"), plan
            assert f"{column}=?" in plan, plan
