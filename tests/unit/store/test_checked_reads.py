"""What is read is checked (TM-12): whatever was changed in the file, every door gives what was written or one error."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from copy import copy
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import muniment
from muniment.core.ports.engine import Delete, Patch
from muniment.core.ports.rows import get
from muniment.core.ports.schema import ENTRIES
from muniment.errors import BlobCorrupt, Forgotten, StoreDamaged
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.memory.turn_reading import check_cited
from muniment.store.chain import header_hash
from muniment.store.engines.sqlite import SqliteReader
from stored_rows import stored_rows

pytestmark = pytest.mark.req("TM-12")

SAID = "My allergy is to peanuts, and the clinic is in Lisbon."
FORGED = "My allergy is to nothing, and the clinic is in Madrid."
LONG = "The lease of the flat in Lisbon ends in May. " * 2000


class Filled:
    """A store with a session of some turns, one of them in a blob, and what is known of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with muniment.open(path) as mem:
            run = mem.run(user_id="ana", session_id="s1", run_id="r1")
            run.observe("user", "Hello there, this is Ana speaking.")
            self.said = run.observe("user", SAID, tags={"health"}).id
            self.long = run.observe_tool("read_lease", content=LONG, args={"page": 1}).id
            self.last = run.observe("assistant", "Noted: peanuts, and the clinic.").id
            run.remember("user.city", "Lisbon", sources=[self.said])

    def edit(self, statement: str, *values: Any) -> None:
        with stored_rows(self.path) as file:
            assert file.execute(statement, values).rowcount > 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    return Filled(tmp_path_factory.mktemp("filled") / "store.db")


@pytest.fixture
def filled(made: Filled, tmp_path: Path) -> Filled:
    """A copy of the store that was filled once."""
    own = copy(made)
    own.path = Path(shutil.copyfile(made.path, tmp_path / "store.db"))
    return own


def _run(mem: Memory) -> Run:
    return mem.run(user_id="ana", session_id="s1", run_id="r1")


DOORS: dict[str, Callable[[Memory, Filled], Any]] = {
    "get": lambda mem, filled: mem.ledger.get(filled.said),
    "content": lambda mem, filled: mem.ledger.content(filled.said),
    "resolve": lambda mem, filled: mem.ledger.resolve(filled.said),
    "entries": lambda mem, filled: list(mem.ledger.entries(user_id="ana")),
    "entries of the run": lambda mem, filled: list(_run(mem).ledger.entries()),
    "search": lambda mem, filled: _run(mem).search("what is the allergy to?"),
    "compose": lambda mem, filled: _run(mem).compose("responder", query="what is the allergy to?"),
    "compose by cue": lambda mem, filled: _run(mem).compose("responder", cues={"tags": ["health"]}),
    "export": lambda mem, filled: list(mem.export()),
    "export of the user": lambda mem, filled: list(mem.export(user_id="ana")),
    "episodes": lambda mem, filled: list(mem.ledger.episodes(user_id="ana")),
    "remember": lambda mem, filled: _run(mem).remember("a.b", "c", sources=[filled.said], quote="peanuts"),
    "rebuild": lambda mem, filled: mem.store.rebuild(),
}


@pytest.mark.parametrize("door", DOORS)
def test_altered_content_is_handed_out_by_no_door(filled: Filled, door: str) -> None:
    filled.edit("UPDATE entries SET body = replace(body, ?, ?) WHERE id = id(?)", SAID, FORGED, filled.said)
    with muniment.open(filled.path) as mem, pytest.raises(StoreDamaged) as caught:
        DOORS[door](mem, filled)
    assert caught.value.details["id"] == filled.said
    assert filled.said in caught.value.message
    assert "peanuts" not in str(caught.value.to_dict())
    for way_out in ("muniment verify", "rebuild", "dump"):
        assert way_out in caught.value.hint


@pytest.mark.soak
@pytest.mark.parametrize("door", ["get", "content", "resolve", "entries", "search", "compose", "export"])
@pytest.mark.parametrize(
    "change",
    [
        "role = word('assistant')", "trust = word('external')", "ts = 0", "agent_id = name('r1')",
        "salt = x'00'", "salt = NULL", "body = NULL", "body = '{}'", "body = ''", "content_hash = x'00'",
        "hash = x'00'", "prev_hash = x'00'", "flags = 'instruction_like'", "recorded_at = instant('')",
    ],
)  # fmt: skip
def test_whatever_column_was_altered(filled: Filled, door: str, change: str) -> None:
    filled.edit(f"UPDATE entries SET {change} WHERE id = id(?)", filled.said)
    with muniment.open(filled.path) as mem:
        with pytest.raises(StoreDamaged) as caught:
            DOORS[door](mem, filled)
        assert filled.said in str(caught.value.details) or "session_id" in caught.value.details
        assert not mem.verify().ok


@pytest.mark.soak
@pytest.mark.parametrize("data", [b"The lease ends in June.", b"\xff\xfe", b"", None])
@pytest.mark.parametrize("door", ["content", "resolve", "search", "compose", "export", "episodes", "rebuild"])
def test_an_altered_blob_is_handed_out_by_no_door(filled: Filled, door: str, data: bytes | None) -> None:
    filled.edit("UPDATE blobs SET data = ?", data)
    doors = DOORS | {
        "content": lambda mem, filled: mem.ledger.content(filled.long),
        "resolve": lambda mem, filled: mem.ledger.resolve(filled.long),
        "search": lambda mem, filled: _run(mem).search("when does the lease of the flat end?"),
    }
    with muniment.open(filled.path) as mem, pytest.raises(BlobCorrupt) as caught:
        doors[door](mem, filled)
    assert isinstance(caught.value, StoreDamaged)
    assert caught.value.details["id"] == filled.long


@pytest.mark.parametrize("door", ["resolve", "entries", "export", "search", "compose"])
def test_an_entry_that_was_sealed_anew_or_taken_out_does_not_stand_where_it_did(filled: Filled, door: str) -> None:
    """Who knows the form can make a row that holds by itself; its neighbours say that it is another one."""
    with muniment.open(filled.path) as mem:
        engine = mem._ctx.engine
        row = engine.read("default", lambda reader: get(reader, ENTRIES, (filled.said,)))
        assert row is not None
        assert row.body is not None
        body = row.body.replace(SAID, FORGED)
        forged = row._replace(body=body, content_hash=hashlib.sha256((row.salt or b"") + body.encode()).digest())
        forged = forged._replace(hash=header_hash("default", forged))
        values = {"body": forged.body, "content_hash": forged.content_hash, "hash": forged.hash}
        engine.write("default", lambda tx: tx.do(Patch("entries", (("id", "=", row.id),), values)))
    with muniment.open(filled.path) as mem, pytest.raises(StoreDamaged, match=r"stand|follow"):
        DOORS[door](mem, filled)


@pytest.mark.parametrize("which", ["said", "last"])
def test_a_row_that_is_gone_is_missed(filled: Filled, which: str) -> None:
    gone = getattr(filled, which)
    filled.edit("DELETE FROM entries WHERE id = id(?)", gone)
    query = {"said": "what is the allergy to?", "last": "what was noted?"}[which]
    doors: list[Callable[[Memory], Any]] = [
        lambda mem: list(mem.ledger.entries(user_id="ana")),
        lambda mem: list(mem.export()),
        lambda mem: _run(mem).search(query),
        lambda mem: _run(mem).compose("responder", query=query),
    ]
    for door in doors:
        with muniment.open(filled.path) as mem, pytest.raises(StoreDamaged):
            door(mem)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_engine_checks(make: Callable[..., Memory], engine: str) -> None:
    mem = make(engine)
    run = mem.run(user_id="ana", session_id="s1")
    entry = run.observe("user", SAID)
    forged = {"body": '{"content":"forged peanuts"}'}
    mem._ctx.engine.write("default", lambda tx: tx.do(Patch("entries", (("id", "=", entry.id),), forged)))
    for door in (
        lambda: mem.ledger.get(entry.id),
        lambda: run.search("peanuts"),
        lambda: run.compose("responder", query="peanuts"),
        lambda: list(mem.export()),
    ):
        with pytest.raises(StoreDamaged):
            door()


@pytest.mark.parametrize("at", [0, 0.5, 1], ids=["first byte", "middle byte", "last byte"])
def test_an_altered_block_of_the_index_is_not_searched(filled: Filled, at: float) -> None:
    with closing(sqlite3.connect(filled.path)) as file:
        blocks = file.execute("SELECT user_id, first, data FROM segments").fetchall()
    for user_id, first, data in blocks:
        place = int(at * (len(data) - 1))
        altered = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        filled.edit("UPDATE segments SET data = ? WHERE user_id = ? AND first = ?", altered, user_id, first)
    with muniment.open(filled.path) as mem:
        with pytest.raises(StoreDamaged, match="a block of segments"):
            _run(mem).search("peanuts")
        mem.store.rebuild()
        assert _run(mem).search("what is the allergy to?")[0].text == SAID


def test_what_was_checked_is_remembered_and_not_served_from_a_changed_file(filled: Filled) -> None:
    """A turn that was read before the file was changed is what it was; who reads it anew is told."""
    with muniment.open(filled.path) as mem:
        assert SAID in _run(mem).compose("responder", query="allergy").text
        filled.edit("UPDATE entries SET body = replace(body, ?, ?) WHERE id = id(?)", SAID, FORGED, filled.said)
        assert FORGED not in _run(mem).compose("responder", query="allergy").text
        with pytest.raises(StoreDamaged):
            mem.ledger.get(filled.said)


def test_a_damaged_page_of_the_file_is_the_same_error(filled: Filled) -> None:
    with closing(sqlite3.connect(filled.path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = file.execute("PRAGMA page_size").fetchone()
    data = bytearray(filled.path.read_bytes())
    at = next(page for page in range(1, len(data) // size) if SAID.encode() in data[page * size : (page + 1) * size])
    data[at * size : at * size + 8] = b"\xff" * 8
    filled.path.write_bytes(data)
    with muniment.open(filled.path) as mem, pytest.raises(StoreDamaged) as caught:
        mem.ledger.get(filled.said)
    assert "backup" in caught.value.hint


def test_a_forgotten_entry_is_still_forgotten_and_not_damaged(filled: Filled) -> None:
    with muniment.open(filled.path) as mem:
        mem.forget(event=filled.said)
        assert mem.ledger.get(filled.said).is_forgotten
        assert mem.verify().ok
        list(mem.export())
        assert "peanuts, and the clinic is in" not in _run(mem).compose("responder", query="allergy").text


TOMBSTONE_DOORS: dict[str, Callable[[Memory, Filled], Any]] = {
    "get": lambda mem, filled: mem.ledger.get(filled.said),
    "content": lambda mem, filled: mem.ledger.content(filled.said),
    "resolve": lambda mem, filled: mem.ledger.resolve(filled.said),
    "entries": lambda mem, filled: list(mem.ledger.entries(user_id="ana")),
    "entries of a kind": lambda mem, filled: list(mem.ledger.entries(user_id="ana", kind="message")),
    "as evidence": lambda mem, filled: _run(mem).remember("user.allergy", "peanuts", sources=[filled.said]),
    "the same key": lambda mem, filled: _run(mem).observe("user", "again", idempotency_key="k"),
    "export": lambda mem, filled: list(mem.export()),
}


def _told(ask: Callable[[], Any]) -> str:
    """What a door says of what was forgotten, as an answer or as an error."""
    try:
        return str(ask())
    except Forgotten as error:
        return str(error.to_dict())


@pytest.mark.parametrize("door", TOMBSTONE_DOORS)
@pytest.mark.parametrize("receipt", ["made up", "another's"])
def test_an_altered_receipt_of_a_forgotten_entry_is_told_by_no_door(filled: Filled, door: str, receipt: str) -> None:
    with muniment.open(filled.path) as mem:
        keyed = _run(mem).observe("user", "again", idempotency_key="k").id
        other = mem.forget(event=filled.long).receipt_id
        mem.forget(event=filled.said)
        mem.forget(event=keyed)
        assert mem.verify().unreceipted == 0
    named = other if receipt == "another's" else "rcp_altered"
    filled.edit("UPDATE entries SET receipt_id = id(?) WHERE id IN (id(?), id(?))", named, filled.said, keyed)
    with muniment.open(filled.path) as mem:
        if receipt == "another's" or door == "export":
            with pytest.raises(StoreDamaged):
                TOMBSTONE_DOORS[door](mem, filled)
        else:
            assert named not in _told(lambda: TOMBSTONE_DOORS[door](mem, filled))
        report = mem.verify()
        assert report.unreceipted == 2 if receipt == "made up" else not report.ok


@pytest.mark.parametrize(
    "change",
    [
        "key_hash = randomblob(32)",
        "entry_id = (SELECT id FROM entries WHERE seq = 1)",
        "user_id = name('agent')",
    ],
)
def test_an_altered_idempotency_key_is_noticed(filled: Filled, change: str) -> None:
    with muniment.open(filled.path) as mem:
        _run(mem).observe("user", "one more", idempotency_key="k1")
        _run(mem).observe("user", "and one more", idempotency_key="k2")
        assert mem.verify().ok
        list(mem.export())
    filled.edit(f"UPDATE idempotency_keys SET {change} WHERE rowid = (SELECT min(rowid) FROM idempotency_keys)")
    with muniment.open(filled.path) as mem:
        assert not mem.verify().ok
        with pytest.raises(StoreDamaged):
            list(mem.export())


@pytest.mark.parametrize(
    "change",
    [
        "status = word('actixe')",
        "user_id = name('agent')",
        "trust = word('user ')",
        "kind = word('claim')",
        "created_at = instant('')",
        "receipt_id = id('rcp_1')",
        "receipt_id = x''",
        "status = 'damage'",
        "created_at = 7",
    ],
)
def test_what_a_forget_left_of_an_item_cannot_be_altered(filled: Filled, change: str) -> None:
    with muniment.open(filled.path) as mem:
        mem.forget(event=filled.said)
        list(mem.export())
    filled.edit(f"UPDATE items SET {change} WHERE kind = word('fact')")
    with muniment.open(filled.path) as mem:
        with pytest.raises(StoreDamaged):
            list(mem.export())
        assert not mem.verify().ok


def test_a_damaged_entry_can_be_forgotten(filled: Filled) -> None:
    filled.edit("UPDATE entries SET body = replace(body, ?, ?) WHERE id = id(?)", SAID, FORGED, filled.said)
    with muniment.open(filled.path) as mem:
        receipt = mem.forget(event=filled.said)
        assert filled.said in {gone.id for gone in receipt.erased}
        assert mem.verify().ok
        assert mem.run(user_id="ana", session_id="s1", run_id="r1").facts() == []


def test_deleting_rows_through_the_engine_needs_no_file(make: Callable[..., Memory]) -> None:
    mem = make("memory")
    run = mem.run(user_id="ana", session_id="s1")
    entry = run.observe("user", SAID)
    mem.store.index()
    mem._ctx.engine.write("default", lambda tx: tx.do(Delete("entries", (("id", "=", entry.id),))))
    with pytest.raises(StoreDamaged, match="it is missing"):
        run.search("peanuts")


def test_the_neighbours_of_what_is_cited_are_read_at_once_and_nothing_else(tmp_path: Path) -> None:
    """Forty entries of twenty sessions: two questions, and no more rows than entries and their neighbours."""
    answered: list[int] = []
    with muniment.open(tmp_path / "many.db") as mem:
        cited = []
        for number in range(20):
            run = mem.run(user_id="ana", session_id=f"s{number:02}")
            said = [
                run.observe("user", f"The lease of flat {number} has page {page}.").id for page in range(2 + number)
            ]
            cited += [said[number % 3], said[-1]]
        context = mem._ctx
        with mock.patch("muniment.store.engines.sqlite.SqliteReader._fetch", _counting(answered)):
            context.engine.read("default", lambda reader: check_cited(context, reader, "default", cited))
    heads = 20  # a session's last entry is held against the session's own row
    assert len(answered) <= 2 + heads
    assert sum(answered) <= len(set(cited)) * 3 + heads


def _counting(answered: list[int]) -> Any:
    fetch = SqliteReader._fetch

    def counted(self: SqliteReader, *question: Any) -> Any:
        rows = fetch(self, *question)
        answered.append(len(rows))
        return rows

    return counted
