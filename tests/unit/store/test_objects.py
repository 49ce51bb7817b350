"""Large contents outside the store, in a folder, on every engine: where they lie, who reads them, how they go, what a
crash leaves, and how they travel (LG-09).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Count, Transaction
from muniment.core.ports.objects import ObjectRow, Removal
from muniment.core.ports.rows import insert, select
from muniment.core.ports.schema import BLOBS, OBJECTS
from muniment.errors import (
    Conflict,
    DuplicateId,
    IdempotencyMismatch,
    InvalidInput,
    ObjectsUnavailable,
    StorageBusy,
    StorageFull,
)
from muniment.handles.memory import Memory
from muniment.store.objects import clearing, sending
from muniment.store.objects.view import near
from products import for_each

TEXT = "The harbour master counts the boats at dusk. " * 3000
OTHER = "Nobody counts them at noon, says the pilot. " * 3000

Opener = Callable[..., Memory]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "objects"
    made.mkdir()
    return made


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Iterator[Opener]:
    """Opens the same store again and again; that of memory once."""
    target = {"memory": ":memory:", "sqlite": str(tmp_path / "a.db")}.get(request.param)
    if target is None:
        dsn, schema = request.getfixturevalue("postgres_dsn"), request.getfixturevalue("postgres_schema")
        target = f"{dsn}{'&' if '?' in dsn else '?'}schema={schema}"
    with ExitStack() as stack:

        def open_(**more: Any) -> Memory:
            return stack.enter_context(muniment.open(target, **{"objects": folder.as_uri()} | more))

        yield open_


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def told(mem: Memory, text: str = TEXT, *, user_id: str = "ana", tenant_id: str = "default", **more: Any) -> str:
    return mem.run(user_id=user_id, session_id="s1", tenant_id=tenant_id).observe("user", text, **more).id


def in_rows(mem: Memory, tenant_id: str = "default") -> list[bytes | None]:
    return mem._ctx.engine.read(tenant_id, lambda reader: [row.data for row in select(near(reader), BLOBS)])


def unread(mem: Memory) -> Memory:
    """The same memory, having read nothing yet."""
    assert mem._ctx.outside is not None
    mem._ctx.outside.fetched.clear()
    return mem


# -- where it lies ------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("LG-11")
def test_large_contents_lie_outside_and_are_read_as_if_they_did_not(opened: Opener, folder: Path) -> None:
    mem = opened()
    small, large = told(mem, "A short word."), told(mem)
    assert len(files(folder)) == 1
    assert files(folder)[0].read_text() == TEXT
    assert in_rows(mem) == [None]
    assert unread(mem).ledger.content(large) == TEXT
    assert mem.ledger.content(large, start=4, length=14) == "harbour master"
    assert mem.ledger.content(small) == "A short word."
    found = mem.run(user_id="ana").search("harbour master boats")
    assert large in {source for hit in found for source in hit.sources}
    assert mem.ledger.resolve({"event_id": large, "span": {"start": 4, "end": 18}}).text == "harbour master"
    packet = mem.run(user_id="ana", session_id="s2").compose("responder", query="Who counts the boats?")
    assert "harbour master" in packet.text
    report = mem.verify()
    assert (report.ok, report.objects) == (True, 1)
    quick = mem.verify(quick=True)
    assert (quick.ok, quick.sampled, quick.objects) == (True, True, 1)


@pytest.mark.soak
@pytest.mark.req("LG-11")
def test_equal_contents_have_equal_names_nowhere(opened: Opener, folder: Path) -> None:
    mem = opened()
    for tenant_id in ("one", "two"):
        for user_id in ("ana", "ben"):
            told(mem, user_id=user_id, tenant_id=tenant_id)
    names = [path.relative_to(folder).as_posix() for path in files(folder)]
    assert len({name.rpartition("/")[2] for name in names}) == 4
    assert len({name.split("/")[1] for name in names}) == 2, "a folder for each tenant"
    assert not [name for name in names if "one" in name.split("/") or "ana" in name]


@pytest.mark.soak
@pytest.mark.req("LG-11")
def test_two_stores_share_a_folder_and_nothing_in_it(opened: Opener, folder: Path, tmp_path: Path) -> None:
    mem = opened()
    event = told(mem)
    with muniment.open(tmp_path / "other.db", objects=folder.as_uri()) as other:
        told(other)
        assert other.store.sweep_objects(grace_hours=0).seen == 1
        other.forget(user_id="ana")
        assert other.store.sweep_objects(grace_hours=0).deleted == 0
    assert unread(mem).ledger.content(event) == TEXT


@pytest.mark.soak
@pytest.mark.req("LG-12")
def test_a_store_that_is_opened_without_its_objects_says_so(opened: Opener, folder: Path) -> None:
    mem = opened()
    if mem.info.name == "memory":
        mem._ctx.engine, mem._ctx.outside = mem._ctx.engine.inner, None  # type: ignore[attr-defined]
        with pytest.raises(Conflict):
            mem.store.sweep_objects()
        return
    event, small = told(mem), told(mem, "A short word.")
    bare = opened(objects=None)
    assert bare.ledger.content(small) == "A short word."
    for call, kind in (
        (lambda: bare.ledger.content(event), ObjectsUnavailable),
        (lambda: list(bare.export(user_id="ana")), ObjectsUnavailable),
        (bare.verify, ObjectsUnavailable),
        (bare.store.sweep_objects, Conflict),
        (bare.store.move_contents, Conflict),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.path == "$.objects"
    receipt = bare.forget(event=event)
    assert receipt.counts["left_objects"] == 1
    assert "opened without its objects" in receipt.note
    assert len(files(folder)) == 1
    assert not mem.store.scrub().due
    assert files(folder) == []


# -- what a crash leaves ------------------------------------------------------------------------------


class Crash(BaseException):
    """The process ends here: nothing catches it."""


@contextmanager
def crashing(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[None]:
    """Whoever comes to this function ends there."""

    def crash(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(name, crash)
        yield


@pytest.mark.soak
@pytest.mark.req("LG-12")
def test_a_crash_between_object_and_row_leaves_what_a_sweep_takes(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem = opened()
    kept = told(mem, OTHER)

    with crashing(monkeypatch, "muniment.store.writing.insert_blobs"):
        with pytest.raises(Crash):
            told(mem, idempotency_key="k")
        with pytest.raises(Crash):
            told(mem, tenant_id="new")
    assert len(files(folder)) == 3, "objects come first"
    assert mem.verify().ok, "no row points at them"
    first = mem.store.sweep_objects()
    assert (first.seen, first.young, first.deleted) == (3, 3, 0), "they may be somebody's"
    again = mem.store.sweep_objects(grace_hours=0)
    assert (again.deleted, again.young) == (1, 1), "a tenant that nobody knows has a day's grace"
    for path in files(folder):
        os.utime(path, (0, 0))
    assert mem.store.sweep_objects(grace_hours=0).deleted == 1
    assert len(files(folder)) == 1
    assert unread(mem).ledger.content(kept) == OTHER
    event = told(mem, idempotency_key="k")
    assert told(mem, idempotency_key="k") == event


@pytest.mark.soak
@pytest.mark.req("LG-12")
def test_who_is_slower_than_a_sweep_is_told_to_call_again(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem = opened()
    told(mem, "A short word.")
    send = sending.send_blobs

    def slow(*given: Any) -> Any:
        sent = send(*given)
        assert mem.store.sweep_objects(grace_hours=0).deleted == len(sent)
        return sent

    with monkeypatch.context() as patch:
        patch.setattr("muniment.store.writing.send_blobs", slow)
        with pytest.raises(StorageBusy, match="given up"):
            told(mem)
    assert mem.verify().ok, "never a row that points at nothing"
    assert told(mem)
    assert mem.verify().objects == 1


@pytest.mark.soak
@pytest.mark.req("LG-14")
@pytest.mark.parametrize("how", ["observe", "load", "refused", "mismatch"])
def test_what_is_not_written_leaves_no_object_behind(opened: Opener, folder: Path, how: str) -> None:
    mem = opened()
    given = {"user_id": "ana", "session_id": "s1", "role": "user", "content": TEXT, "idempotency_key": "k"}
    if how == "load":
        assert mem.store.load([given]).written == 1
        assert mem.store.load([given]).already_present == 1
    else:
        event = told(mem, idempotency_key="k")
        if how == "observe":
            assert told(mem, idempotency_key="k") == event
        elif how == "refused":
            with pytest.raises(DuplicateId):
                told(mem, OTHER, id=event)
        else:
            with pytest.raises(IdempotencyMismatch):
                told(mem, OTHER, idempotency_key="k")
    assert [path.read_text() for path in files(folder)] == [TEXT]
    receipt = mem.forget(user_id="ana")
    assert (receipt.counts["objects"], receipt.counts.get("left_objects", 0)) == (1, 0)
    assert files(folder) == []


@pytest.mark.req("LG-14")
def test_a_forget_takes_what_a_crash_before_a_second_try_left(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem = opened()

    with crashing(monkeypatch, "muniment.store.writing.insert_blobs"), pytest.raises(Crash):
        told(mem, idempotency_key="k")
    event = told(mem, idempotency_key="k")
    assert len(files(folder)) == 2
    assert "left_objects" not in mem.forget(event=event).counts
    assert files(folder) == []


@pytest.mark.req("LG-12")
def test_a_write_that_meets_a_forget_is_sent_again(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem = opened()
    gone = told(mem, "A short word.", user_id="ben")
    send, forgets = sending.send_blobs, iter([gone])

    def interrupted(*given: Any) -> Any:
        sent = send(*given)
        for event in forgets:
            mem.forget(event=event)
            assert files(folder) == [], "nobody wrote a row of it yet"
        return sent

    with monkeypatch.context() as patch:
        patch.setattr("muniment.store.writing.send_blobs", interrupted)
        event = told(mem)
    assert unread(mem).ledger.content(event) == TEXT
    assert len(files(folder)) == 1
    assert mem.verify().ok


@pytest.mark.req("LG-12", "LG-14")
def test_a_forget_leaves_alone_what_was_taken_up_while_it_looked(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer has announced and put; a forget has read that it is due; the writer commits; then the forget deletes."""
    mem = opened()
    gone = told(mem, "A short word.", user_id="ben")
    outside = mem._ctx.outside
    assert outside is not None
    real, looked, written = clearing._settle, iter([True]), []

    def take(row: ObjectRow, tx: Transaction) -> None:
        written.append(clearing.take_up(tx, row.held_at))
        insert(tx, OBJECTS, [row._replace(use="blob", subject="somebody's")])

    def late(*given: Any) -> Any:
        for _ in looked:
            mem._ctx.engine.write("default", partial(take, given[3]))
        return real(*given)

    row = outside.blob_row("default", "evt_x", b"n" * 32, 4)
    clearing.announce(mem._ctx, "default", [row])
    outside.store.put(row.held_at, b"text")
    with monkeypatch.context() as patch:
        patch.setattr(clearing, "_settle", late)
        mem.forget(event=gone)
    assert written == [True]
    assert [path.read_text() for path in files(folder)] == ["text"]


@pytest.mark.req("LG-14")
@pytest.mark.parametrize("again", [False, True])
def test_what_was_put_after_a_forget_cleared_its_announcement_goes_again(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    mem = opened()
    if again:
        told(mem, idempotency_key="k")
    gone = told(mem, "A short word.", user_id="ben")
    outside = mem._ctx.outside
    assert outside is not None
    real, forgets = type(outside).send_blob, iter([gone])

    def slow(self: Any, *given: Any) -> Any:
        for event in forgets:
            mem.forget(event=event)
        return real(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(type(outside), "send_blob", slow)
        event = told(mem, idempotency_key="k")
    assert len(files(folder)) == 1
    assert "left_objects" not in mem.forget(event=event).counts
    assert files(folder) == []
    assert mem._ctx.engine.read("default", lambda reader: reader.do(Count("objects"))) == 0


@pytest.mark.req("LG-14")
def test_a_sweep_that_fails_is_made_up_for_by_a_forget(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem = opened()

    with crashing(monkeypatch, "muniment.store.writing.insert_blobs"), pytest.raises(Crash):
        told(mem, idempotency_key="k")
    event = told(mem, idempotency_key="k")
    outside = mem._ctx.outside
    assert outside is not None
    with monkeypatch.context() as patch:
        patch.setattr(type(outside.store), "remove", lambda _, key: Removal(key, 1, "kept by its lock"))
        assert mem.store.sweep_objects(grace_hours=0).left == 1
        receipt = mem.forget(event=event)
        assert receipt.counts["left_objects"] >= 1
    assert len(files(folder)) == 2
    assert not mem.store.scrub().due
    assert files(folder) == []


@pytest.mark.req("LG-14")
def test_a_crash_after_a_forget_leaves_what_a_scrub_takes(
    opened: Opener, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem = opened()
    event = told(mem)

    with crashing(monkeypatch, "muniment.store.forget.clear_outside"), pytest.raises(Crash):
        mem.forget(event=event)
    assert len(files(folder)) == 1
    assert len(mem.store.attention(kind="scrub_due")) == 1
    done = mem.store.scrub()
    assert (done.due, done.receipts) == (False, 1)
    assert files(folder) == []


# -- how it goes --------------------------------------------------------------------------------------


@pytest.mark.req("LG-14")
@pytest.mark.parametrize("selector", ["event", "session", "user", "tenant"])
def test_objects_go_with_what_is_forgotten_and_no_others(opened: Opener, folder: Path, selector: str) -> None:
    mem = opened()
    event, other = told(mem), told(mem, OTHER, user_id="ben", tenant_id="two")
    given: dict[str, dict[str, Any]] = {
        "event": {"event": event}, "session": {"session": "s1", "user_id": "ana"}, "user": {"user_id": "ana"},
        "tenant": {"tenant": "default"},
    }  # fmt: skip
    receipt = mem.forget(**given[selector])
    assert (receipt.counts["blobs"], receipt.counts["objects"]) == (1, 1)
    assert [path.read_text() for path in files(folder)] == [OTHER]
    assert unread(mem).ledger.content(other, tenant_id="two") == OTHER
    assert mem._ctx.engine.read("default", lambda reader: reader.do(Count("objects"))) == 0
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.req("LG-14")
def test_a_deletion_that_fails_is_in_the_receipt_until_it_is_done(opened: Opener, folder: Path) -> None:
    mem = opened()
    event = told(mem)
    outside = mem._ctx.outside
    assert outside is not None
    real = outside.store

    class Keeping:
        location = "a bucket"

        def remove(self, key: str) -> Removal:
            return Removal(key, 2, "they are locked until 2030")

    outside.store = Keeping()  # type: ignore[assignment]
    receipt = mem.forget(event=event)
    assert not receipt.scrubbed
    assert receipt.counts["left_objects"] == 1
    assert "2 versions of a bucket: they are locked until 2030" in receipt.note
    outside.store = real
    assert not mem.store.scrub().due
    assert files(folder) == []
    assert mem.verify().ok


# -- how it travels -----------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("LG-15")
@pytest.mark.parametrize("key", [None, "5e" * 32])
def test_a_dump_holds_the_content_and_an_import_puts_it_out_again(
    opened: Opener, folder: Path, tmp_path: Path, key: str | None
) -> None:
    mem = opened(objects_key=None if key is None else lambda: key)
    event = told(mem)
    lines = list(mem.export(user_id="ana"))
    assert TEXT.encode().hex().encode() in b"".join(lines)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with muniment.open(tmp_path / "b.db", objects=elsewhere.as_uri()) as other:
        assert other.import_(lines).written["blobs"] == 1
        assert [path.read_text() for path in files(elsewhere)] == [TEXT]
        assert other.import_(lines).skipped["blobs"] == 1
        assert len(files(elsewhere)) == 1, "what is here already is not sent again"
        assert unread(other).ledger.content(event) == TEXT
        assert other.verify().ok
        assert list(other.export(user_id="ana")) == lines
    with muniment.open(tmp_path / "c.db") as inside:
        inside.import_(lines)
        assert inside.ledger.content(event) == TEXT
        assert list(inside.export(user_id="ana")) == lines


@pytest.mark.soak
@pytest.mark.req("LG-12", "LG-15")
def test_an_import_goes_on_after_a_crash_and_a_sweep(
    opened: Opener, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with muniment.open(tmp_path / "from.db") as source:
        told(source, "A short word.")
        event = told(source)
        lines = list(source.export(user_id="ana"))
    mem = opened()
    told(mem, "Somebody else's.", user_id="ben")

    with crashing(monkeypatch, "muniment.store.transfer.insert_blobs"), pytest.raises(Crash):
        mem.import_(lines)
    assert mem.store.sweep_objects(grace_hours=0).deleted == 1
    assert mem.import_(lines).written["blobs"] == 1
    assert unread(mem).ledger.content(event) == TEXT
    assert len(files(folder)) == 1
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.req("LG-15")
def test_contents_of_before_are_moved_out_and_back(opened: Opener, folder: Path) -> None:
    mem = opened()
    outside = mem._ctx.outside
    assert outside is not None
    mem._ctx.outside = None
    events = [told(mem, f"{number} {TEXT}") for number in range(3)]
    mem._ctx.outside = outside
    before = list(mem.export(user_id="ana"))
    assert files(folder) == []
    assert mem.ledger.content(events[0]) == f"0 {TEXT}"
    done = mem.store.move_contents()
    assert (done.moved, done.size_bytes, len(files(folder))) == (3, 3 * (len(TEXT) + 2), 3)
    assert in_rows(mem) == [None] * 3
    assert unread(mem).verify().objects == 3
    assert mem.store.move_contents().moved == 0
    assert list(mem.export(user_id="ana")) == before
    back = mem.store.move_contents(back=True)
    assert (back.moved, back.left, files(folder)) == (3, 0, [])
    assert all(in_rows(mem))
    assert mem.verify().ok
    assert list(mem.export(user_id="ana")) == before


@pytest.mark.req("LG-15")
def test_a_copy_of_a_file_reads_what_lies_outside(folder: Path, tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db", objects=folder.as_uri()) as mem:
        event = told(mem)
    shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")
    with muniment.open(tmp_path / "copy.db", objects=folder.as_uri(), read_only=True) as copy:
        assert copy.ledger.content(event) == TEXT
        assert copy.verify().ok


# -- folders that do not do their part ----------------------------------------------------------------


@pytest.mark.req("LG-12")
def test_a_folder_that_vanished_is_no_empty_folder(folder: Path, tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db", objects=folder.as_uri()) as mem:
        event = told(mem)
        folder.rename(tmp_path / "unmounted")
        with pytest.raises(ObjectsUnavailable):
            unread(mem).ledger.content(event)
        with pytest.raises(ObjectsUnavailable):
            told(mem, OTHER)
        assert not folder.exists(), "nothing is written where nobody looks for it"
        with pytest.raises(ObjectsUnavailable):
            mem.store.sweep_objects()
        (tmp_path / "unmounted").rename(folder)
        assert mem.verify().ok


@pytest.mark.req("LG-12")
def test_a_disk_that_is_full_leaves_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with muniment.open(tmp_path / "a.db", objects=folder.as_uri()) as mem:

        def full(_handle: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("muniment.core.outside.object_folder.os.fsync", full)
            with pytest.raises(StorageFull):
                told(mem)
        assert files(folder) == []
        assert told(mem)


@for_each("grace", [-1, "soon", True, None, float("nan"), 10**9])
def test_a_grace_that_is_none_is_refused(folder: Path, grace: Any) -> None:
    with muniment.open(objects=folder.as_uri()) as mem, pytest.raises(InvalidInput) as caught:
        mem.store.sweep_objects(grace_hours=grace)
    assert caught.value.path == "$.grace_hours"


def test_rows_of_objects_hold_no_word(folder: Path, tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db", objects=folder.as_uri()) as mem:
        told(mem)
        rows = mem._ctx.engine.read("default", lambda reader: select(reader, OBJECTS))
        assert [row.use for row in rows] == ["blob"]
    with sqlite3.connect(tmp_path / "a.db") as connection:
        assert "harbour" not in str(connection.execute("SELECT * FROM objects").fetchall())
    connection.close()
