"""Rows that say where content lies outside the store, edited: `verify` tells, and no forget calls clean what it could
not reach (LG-05, LG-07)."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.handles.memory import Memory

pytestmark = pytest.mark.req("LG-05", "LG-07")

LARGE = "The cartographer drew the blobword coast again. " * 2000
BLOB, ARCHIVE = "use = 'blob' AND subject = 'large'", "use = 'archive'"
EDITS = {
    "the row of a content is gone": (f"DELETE FROM objects WHERE {BLOB}", "s1"),
    "a content is another's": (f"UPDATE objects SET subject = 'other' WHERE {BLOB}", "s1"),
    "a content is nobody's": (f"UPDATE objects SET subject = 'forged' WHERE {BLOB}", "s1"),
    "a content is for something else": (f"UPDATE objects SET use = 'forged' WHERE {BLOB}", "s1"),
    "a content is told as an archive": (f"UPDATE objects SET use = 'archive', subject = '' WHERE {BLOB}", "s1"),
    "a content lies elsewhere": (f"UPDATE objects SET held_at = 'elsewhere' WHERE {BLOB}", "s1"),
    "a content has another size": (f"UPDATE objects SET size = size + 1 WHERE {BLOB}", None),
    "the row of an archive is gone": (f"DELETE FROM objects WHERE {ARCHIVE}", "s2"),
    "an archive is for something else": (f"UPDATE objects SET use = 'forged' WHERE {ARCHIVE}", "s2"),
    "an archive is told as a content": (f"UPDATE objects SET use = 'blob', subject = 'old' WHERE {ARCHIVE}", "s2"),
    "an archive lies elsewhere": (f"UPDATE objects SET held_at = 'elsewhere' WHERE {ARCHIVE}", "s2"),
    "an archive is somebody's": (f"UPDATE objects SET subject = 'forged' WHERE {ARCHIVE}", None),
    "an archive is due under no receipt": (f"UPDATE objects SET use = 'rewrite', subject = 'x' WHERE {ARCHIVE}", None),
}
"""By what was done: the statement, and the session whose words it puts out of reach."""


def _open(folder: Path) -> Memory:
    return muniment.open(folder / "store.db", objects=(folder / "objects").as_uri())


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A store with a content and an archive outside."""
    (tmp_path / "objects").mkdir()
    with _open(tmp_path) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        run.observe("user", LARGE, id="large")
        run.observe("user", "a turn that is short enough for its row", id="other")
        mem.run(user_id="ana", session_id="s2").observe("user", "an archword turn of the old session", id="old")
        assert mem.store.archive(session="s2", user_id="ana").events == 1
        assert mem.verify().ok
    return tmp_path


def _words_outside(folder: Path) -> bytes:
    held = b""
    for path in (folder / "objects").rglob("*"):
        if path.is_file():
            held += (data := path.read_bytes())
            with suppress(zlib.error):
                held += zlib.decompress(data)
    return held


def _edit(folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(folder / "store.db")) as file, file:
        assert file.execute(statement).rowcount == 1, statement


@pytest.mark.soak
@pytest.mark.parametrize("what", EDITS)
def test_verify_tells_of_an_edited_row_of_an_object(told: Path, what: str) -> None:
    _edit(told, EDITS[what][0])
    with _open(told) as mem:
        assert not mem.verify().ok


@pytest.mark.parametrize("by", ["user", "session", "event"])
@pytest.mark.parametrize("what", [what for what, (_, session) in EDITS.items() if session is not None])
def test_what_a_forget_cannot_reach_outside_is_told(told: Path, what: str, by: str) -> None:
    statement, session = EDITS[what]
    _edit(told, statement)
    event = "large" if session == "s1" else "old"
    asks: dict[str, dict[str, Any]] = {"user": {}, "session": {"session": session}, "event": {"event": event}}
    with _open(told) as mem:
        receipt = mem.forget(user_id="ana", **asks[by])
        assert mem.ledger.get(event).is_forgotten
    assert (receipt.scrubbed, receipt.counts["left_damaged"]) == (False, 1)
    assert "the store is damaged" in receipt.note


@pytest.mark.parametrize("event", ["large", "old", "other"])
def test_where_no_row_was_edited_a_forget_is_clean(told: Path, event: str) -> None:
    with _open(told) as mem:
        assert mem.forget(event=event, user_id="ana").scrubbed
        assert mem.verify().ok
    assert {"large": b"blobword", "old": b"archword", "other": b"short enough"}[event] not in _words_outside(told)
