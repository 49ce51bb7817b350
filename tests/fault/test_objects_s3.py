"""Large contents in a real S3 server, which does its part well, badly, or not at all (LG-09, LG-07).

Nothing is acknowledged that is not there, nothing is half-written, and what a bucket keeps of what was forgotten is
said in the receipt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.objects import BrokenSeal
from muniment.errors import (
    BlobCorrupt,
    InvalidInput,
    NoObjectsKey,
    ObjectsRefused,
    ObjectsUnavailable,
    StorageFailure,
)
from muniment.handles.memory import Memory
from s3_room import Denying, FaultyProxy, S3Room

pytestmark = pytest.mark.soak

TEXT = "The keeper of the lighthouse wrote it down. " * 4000
QUICK = {"timeout_s": 1, "attempts": 3}


def told(mem: Memory, text: str = TEXT, **more: Any) -> str:
    return mem.run(user_id="ana", session_id="s1").observe("user", text, **more).id


def events_in(mem: Memory) -> int:
    return sum(entry.kind == "message" for entry in mem.ledger.entries(user_id="ana"))


def keys_in(room: S3Room, bucket: str) -> int:
    return room.listed(bucket).count("<Version>")


@pytest.mark.req("LG-11", "LG-14")
@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgres"])
def test_a_large_content_lives_and_dies_in_a_bucket(
    engine: str, room: S3Room, bucket: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    target = {"memory": ":memory:", "sqlite": str(tmp_path / "a.db")}.get(engine)
    if target is None:
        dsn, schema = request.getfixturevalue("postgres_dsn"), request.getfixturevalue("postgres_schema")
        target = f"{dsn}{'&' if '?' in dsn else '?'}schema={schema}"
    with muniment.open(target, objects=room.url(bucket)) as mem:
        event = told(mem)
        assert keys_in(room, bucket) == 1
        assert "lighthouse" not in room.listed(bucket), "its key says nothing"
        mem._ctx.outside.fetched.clear()  # type: ignore[union-attr]
        assert mem.ledger.content(event) == TEXT
        assert mem.run(user_id="ana").search("lighthouse keeper")[0].sources
        report = mem.verify()
        assert report.ok
        assert report.objects == 1
        receipt = mem.forget(event=event)
        assert receipt.counts["objects"] == 1
        assert "left_objects" not in receipt.counts
        assert keys_in(room, bucket) == 0
        assert mem.verify().ok


# -- what goes wrong ----------------------------------------------------------------------------------


@pytest.mark.req("LG-12")
@pytest.mark.parametrize("fault", ["silent", "late", "reset", "lost", "error", "liar", "garbage", "twice", "doubled"])
def test_a_put_that_goes_wrong_once_is_made_good(
    fault: str, room: S3Room, bucket: str, proxy: FaultyProxy, tmp_path: Path
) -> None:
    proxy.faults, proxy.hold_s = [fault], 1.6
    with muniment.open(tmp_path / "a.db", objects=room.url(bucket, proxy.endpoint, **QUICK)) as mem:
        event = told(mem)
        mem._ctx.outside.fetched.clear()  # type: ignore[union-attr]
        assert mem.ledger.content(event) == TEXT
        assert keys_in(room, bucket) == 1
        assert mem.verify().ok


@pytest.mark.req("LG-12")
@pytest.mark.parametrize("fault", ["silent", "reset", "lost", "error", "liar", "garbage"])
def test_what_was_not_stored_is_not_acknowledged(
    fault: str, room: S3Room, bucket: str, proxy: FaultyProxy, tmp_path: Path
) -> None:
    url = room.url(bucket, proxy.endpoint, timeout_s=0.4, attempts=2)
    with muniment.open(tmp_path / "a.db", objects=url) as mem:
        told(mem, "small")
        proxy.always = fault
        with pytest.raises(ObjectsUnavailable) as caught:
            told(mem, idempotency_key="k1")
        assert caught.value.code == "objects_unavailable"
        assert "lighthouse" not in str(caught.value.to_dict())
        assert events_in(mem) == 1, "nothing was written"
        assert len(proxy.seen) <= 8, "attempts are bounded"
        proxy.always = None
        event = told(mem, idempotency_key="k1")
        assert told(mem, idempotency_key="k1") == event, "the retry writes once"
        assert events_in(mem) == 2
        assert mem.verify().ok


@pytest.mark.req("LG-12")
@pytest.mark.parametrize("fault", ["silent", "reset", "cut", "error", "garbage"])
def test_a_read_that_goes_wrong_is_tried_again_and_then_said(
    fault: str, room: S3Room, bucket: str, proxy: FaultyProxy, tmp_path: Path
) -> None:
    url = room.url(bucket, proxy.endpoint, timeout_s=0.5, attempts=2)
    with muniment.open(tmp_path / "a.db", objects=url) as mem:
        event = told(mem)
        fetched = mem._ctx.outside.fetched  # type: ignore[union-attr]
        fetched.clear()
        proxy.faults = [fault]
        assert mem.ledger.content(event) == TEXT
        fetched.clear()
        proxy.always = fault
        with pytest.raises(ObjectsUnavailable):
            mem.ledger.content(event)
        with pytest.raises(ObjectsUnavailable):
            mem.verify()
        proxy.always = None
        assert mem.verify().ok, "an object store that is down is no damage"


@pytest.mark.req("LG-12")
def test_no_server_no_bucket_no_credentials(room: S3Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = "s3://bucket/p?endpoint=http://127.0.0.1:9&attempts=1"
    with muniment.open(tmp_path / "a.db", objects=nobody) as mem, pytest.raises(ObjectsUnavailable):
        told(mem)
    with muniment.open(tmp_path / "a.db", objects=room.url("no-such-bucket")) as mem:
        with pytest.raises(ObjectsRefused) as caught:
            told(mem)
        assert caught.value.hint == "make the bucket, or correct its name"
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        with pytest.raises(ObjectsRefused, match="no credentials"):
            told(mem)
        assert events_in(mem) == 0


@pytest.mark.req("LG-12")
@pytest.mark.parametrize("what", ["missing", "altered", "cut"])
def test_an_object_that_is_not_what_it_was_is_named(what: str, room: S3Room, bucket: str, tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db", objects=room.url(bucket)) as mem:
        event = told(mem)
        outside = mem._ctx.outside
        assert outside is not None
        (listed,) = outside.store.listed(f"{outside.folder}/")
        if what == "missing":
            outside.store.remove(listed.key)
        else:
            outside.store.put(listed.key, TEXT[:-9].encode() + (b"" if what == "cut" else b"forgeries"))
        outside.fetched.clear()
        with pytest.raises(BlobCorrupt) as caught:
            mem.ledger.content(event)
        assert caught.value.details["id"] == event
        assert "forget the event" in caught.value.hint
        report = mem.verify()
        assert [link.id for link in report.broken] == [event]
        assert listed.key in report.broken[0].reason
        with pytest.raises(BlobCorrupt):
            list(mem.export(user_id="ana"))
        assert mem.forget(event=event).scrubbed, "the way out"
        assert mem.verify().ok


# -- forgetting ---------------------------------------------------------------------------------------


@pytest.mark.req("LG-14")
def test_every_version_of_a_versioned_bucket_goes(room: S3Room, versioned: str, tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db", objects=room.url(versioned)) as mem:
        event = told(mem)
        outside = mem._ctx.outside
        assert outside is not None
        (listed,) = outside.store.listed(f"{outside.folder}/")
        outside.store.put(listed.key, TEXT.encode())
        assert keys_in(room, versioned) == 2
        receipt = mem.forget(event=event)
        assert receipt.counts["objects"] == 1
        assert receipt.scrubbed
        assert "<Version>" not in room.listed(versioned)
        assert "<DeleteMarker>" not in room.listed(versioned)


@pytest.mark.req("LG-14")
@pytest.mark.parametrize("denied", [("DELETE versionId=",), ("GET versions=",), ("DELETE /",)])
def test_what_a_bucket_keeps_is_said_and_finished_later(
    denied: tuple[str, ...], room: S3Room, versioned: str, tmp_path: Path
) -> None:
    proxy = Denying(room.endpoint)
    with muniment.open(tmp_path / "a.db", objects=room.url(versioned, proxy.endpoint)) as mem:
        event = told(mem)
        proxy.denied = denied
        receipt = mem.forget(event=event)
        assert receipt.counts["left_objects"] == 1
        assert not receipt.scrubbed
        assert "1 object could not be deleted yet" in receipt.note
        assert mem.ledger.get(event).is_forgotten, "the store itself has forgotten"
        assert [each.id for each in mem.store.attention(kind="scrub_due")] == [receipt.receipt_id]
        assert mem.store.scrub().due
        assert "<Version>" in room.listed(versioned)
        proxy.denied = ()
        done = mem.store.scrub()
        assert (done.due, done.clean, done.receipts) == (False, True, 1)
        assert mem.store.attention(kind="scrub_due") == []
        assert "<Version>" not in room.listed(versioned)
    proxy.close()


@pytest.mark.req("LG-14")
def test_a_forget_does_not_wait_for_a_server_that_is_down(
    room: S3Room, bucket: str, proxy: FaultyProxy, tmp_path: Path
) -> None:
    url = room.url(bucket, proxy.endpoint, timeout_s=0.3, attempts=1)
    with muniment.open(tmp_path / "a.db", objects=url) as mem:
        run = mem.run(user_id="ana", session_id="s1")
        for number in range(5):
            run.observe("user", f"{number} {TEXT}")
        proxy.always, proxy.seen = "reset", []
        receipt = mem.forget(user_id="ana")
        assert receipt.counts["left_objects"] == 5
        assert len(proxy.seen) == 1, "a server that is down is asked once"
        proxy.always = None
        assert not mem.store.scrub().due
        assert keys_in(room, bucket) == 0


# -- keys ---------------------------------------------------------------------------------------------


@pytest.mark.req("LG-13")
def test_encrypted_content_is_readable_with_its_key_alone(room: S3Room, versioned: str, tmp_path: Path) -> None:
    url, old, new = room.url(versioned), "5e" * 32, "a7" * 32
    with muniment.open(tmp_path / "a.db", objects=url, objects_key=lambda: old) as mem:
        event = told(mem)
        outside = mem._ctx.outside
        assert outside is not None
        (listed,) = outside.store.listed(f"{outside.folder}/")
        kept = outside.store.get(listed.key)
        assert kept is not None
        assert b"lighthouse" not in kept
    for key in (None, lambda: new):
        with muniment.open(tmp_path / "a.db", objects=url, objects_key=key) as mem:
            with pytest.raises(NoObjectsKey) as caught:
                mem.ledger.content(event)
            assert caught.value.code == "no_objects_key"
            with pytest.raises(NoObjectsKey):
                mem.verify()
    with muniment.open(tmp_path / "a.db", objects=url, objects_key=lambda: [new, old]) as mem:
        assert mem.ledger.content(event) == TEXT
        later = told(mem)
        outside = mem._ctx.outside
        assert outside is not None
        outside.store.put(listed.key, kept[:-1] + bytes([kept[-1] ^ 1]))
        outside.fetched.clear()
        with pytest.raises(BlobCorrupt):
            mem.ledger.content(event)
        assert mem.ledger.content(later) == TEXT
    dump = tmp_path / "a.db"
    assert old.encode() not in dump.read_bytes()


@pytest.mark.req("LG-13", "LG-14")
def test_what_a_bucket_keeps_encrypted_opens_for_nobody_once_its_event_is_forgotten(
    room: S3Room, versioned: str, tmp_path: Path
) -> None:
    proxy = Denying(room.endpoint)
    url = room.url(versioned, proxy.endpoint)
    with muniment.open(tmp_path / "a.db", objects=url, objects_key=lambda: "5e" * 32) as mem:
        event = told(mem)
        proxy.denied = ("DELETE versionId=",)
        mem.forget(event=event)
        row = mem.ledger.get(event)
        assert row.is_forgotten
        outside = mem._ctx.outside
        assert outside is not None
        assert outside.keys is not None
        (listed,) = outside.store.listed(f"{outside.folder}/")
        name = bytes.fromhex(listed.key.rpartition("/")[2].partition("-")[0])
        left = outside.store.get(listed.key)
        assert left is not None, "the bucket kept it"
        salts = [salt for (salt,) in _rows(tmp_path / "a.db", "SELECT salt FROM entries WHERE id = ?", event)]
        assert salts == [None], "the half of its key that the store had"
        with pytest.raises(BrokenSeal):
            outside.keys()[0].open(left, b"", (b"default", name))
    proxy.close()


def _rows(path: Path, statement: str, *values: Any) -> list[Any]:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement, values).fetchall()


# -- bad input ----------------------------------------------------------------------------------------


@pytest.mark.req("LG-12")
@pytest.mark.parametrize(
    "given",
    [
        "", "s3://", "s3:///prefix", "s3://UPPER/p", "s3://ab/p", "s3://user:secret@bucket/p", "s3://bucket/p?nonsense=1",
        "s3://bucket?endpoint=ftp://host", "s3://bucket?endpoint=http://user:pw@host", "s3://bucket?timeout_s=no",
        "s3://bucket?attempts=0", "s3://bucket?attempts=1.5", "s3://bucket?region=a/b", "file://host/folder", "file:///no/such/folder",
        "file:relative", "gs://bucket/p", "/a/path", 17, object(), "s3://[bucket/p",
    ],
)  # fmt: skip
def test_an_address_that_names_no_object_store_is_refused(given: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        muniment.open(tmp_path / "a.db", objects=given)
    assert caught.value.path == "$.objects"
    assert "secret" not in str(caught.value.to_dict())
    assert not (tmp_path / "a.db").exists(), "nothing was opened"


def test_a_key_without_objects_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="none are named"):
        muniment.open(tmp_path / "a.db", objects_key="env:NOTHING")


def test_every_failure_is_of_the_branch_that_says_nothing_was_half_written() -> None:
    assert issubclass(ObjectsUnavailable, StorageFailure)
    assert issubclass(ObjectsRefused, StorageFailure)
