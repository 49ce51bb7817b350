"""Nobody but its owner may read a store's files, whatever the umask."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import muniment
from muniment.store.engines._sqlite_files import copy_file, replace_file
from muniment.store.engines.sqlite import SqliteEngine

pytestmark = pytest.mark.req("LG-07")


@pytest.fixture(params=[0o022, 0o000], ids=oct)
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    before = os.umask(request.param)
    yield tmp_path
    os.umask(before)


def readable(folder: Path) -> list[str]:
    """The files that somebody else may read or write."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [f"{path.name} {stat.filemode(path.stat().st_mode)}" for path in files if path.stat().st_mode & 0o077]


def test_a_store_and_its_copies(folder: Path) -> None:
    path = folder / "a.db"
    with muniment.open(path) as mem:
        mem.run(user_id="ana", session_id="s").observe("user", "My secret is out. " * 60_000)
        copy_file(str(path), str(folder / "copy.db"))
        assert len(list(folder.iterdir())) == 4, "the store, its two logs and the copy"
        assert readable(folder) == []
    replace_file(str(folder / "copy.db"), str(path))
    with muniment.open(path):
        assert readable(folder) == []


def test_what_a_command_writes_out(folder: Path) -> None:
    db = f"--db={folder / 'a.db'}"
    with muniment.open(folder / "a.db") as mem:
        mem.run(user_id="ana", session_id="s").observe("user", "My secret is out.")
    for command in (
        ["export", str(folder / "dump.jsonl"), db],
        ["store", "backup", str(folder / "b.db"), db],
        ["store", "restore", str(folder / "b.db"), f"--db={folder / 'c.db'}"],
    ):
        done = subprocess.run([sys.executable, "-P", "-m", "muniment", *command], capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stderr)
    assert readable(folder) == []


def test_a_file_that_others_may_read_by_its_owner_s_will_stays_so(folder: Path) -> None:
    path = folder / "a.db"
    path.touch()
    path.chmod(0o640)
    (folder / "link.db").symlink_to(folder / "linked.db")
    with closing(SqliteEngine(path)), closing(SqliteEngine(folder / "link.db")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert stat.S_IMODE((folder / "linked.db").stat().st_mode) == 0o600
