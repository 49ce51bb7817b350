"""Cold sessions archived in a real S3 server, which does its part well, badly, or not at all; and processes that are
killed in the middle of a move (LG-16).

Whatever goes wrong, what was said is told as it was said, or a typed error says why not; a session is in its rows or in
its archive; and what was forgotten is gone from the bucket, or stands in the receipt.
"""

from __future__ import annotations

import os
import signal
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import muniment
from effort import one_in
from muniment.core.outside.object_opening import open_objects
from muniment.core.outside.s3_server import S3Server
from muniment.core.ports.objects import ObjectStore
from muniment.errors import ObjectsRefused, ObjectsUnavailable
from muniment.handles.memory import Memory
from muniment.store.engines.sqlite.engine import SqliteEngine
from muniment.testing.simulator.faults import in_child
from s3_room import Denying, FaultyProxy, S3Room

pytestmark = pytest.mark.soak

LARGE = "The cartographer drew the coast again and again. " * 2000
SAID = ("Ana keeps the old lighthouse of Marseille.", "Noted: a lighthouse.", LARGE)
ONCE = {"timeout_s": 1, "attempts": 3}
BRIEFLY = {"timeout_s": 0.4, "attempts": 2}


def talked(target: Path, url: str) -> Memory:
    mem = muniment.open(target, objects=url)
    for session_id in ("old", "new"):
        run = mem.run(user_id="ana", session_id=session_id)
        for text in SAID:
            run.observe("user", text if session_id == "old" else f"{text} Again.")
    return mem


def told(mem: Memory, session_id: str = "old") -> list[str | None]:
    """What is read of a session by somebody who has read nothing before."""
    mem._ctx.clear_caches()
    found = mem.ledger.entries(user_id="ana", session_id=session_id)
    return [None if entry.is_forgotten else mem.ledger.content(entry.id) for entry in found if entry.kind == "message"]


def first_of(mem: Memory) -> str:
    found = mem.ledger.entries(user_id="ana", session_id="old")
    return next(entry.id for entry in found if entry.kind == "message")


def outside(room: S3Room, bucket: str) -> ObjectStore:
    found = open_objects(room.url(bucket))
    assert found is not None
    return found


def archives(room: S3Room, bucket: str) -> list[str]:
    return [each.key for each in outside(room, bucket).listed("") if "/archives/" in each.key]


def words(room: S3Room, bucket: str) -> bytes:
    """All that lies in the bucket, unpacked."""
    place = outside(room, bucket)
    held = [(each.key, place.get(each.key) or b"") for each in place.listed("")]
    return b"".join(zlib.decompress(data) if "/archives/" in key else data for key, data in held)


# -- a server that does its part badly ----------------------------------------------------------------


PUTS = ["silent", "late", "reset", "lost", "error", "liar", "garbage", "twice", "doubled"]
GETS = ["silent", "reset", "cut", "error", "garbage"]


@pytest.mark.req("LG-16", "LG-12")
@pytest.mark.parametrize("fault", PUTS)
def test_a_move_that_goes_wrong_once_is_made_good(
    fault: str, room: S3Room, bucket: str, proxy: FaultyProxy, tmp_path: Path
) -> None:
    with talked(tmp_path / "a.db", room.url(bucket, proxy.endpoint, **ONCE)) as mem:
        proxy.faults, proxy.hold_s = [fault], 1.6
        assert mem.store.archive(session="old", user_id="ana").events == 3
        assert told(mem) == list(SAID)
        assert len(archives(room, bucket)) == 1
        proxy.faults = ["reset" if fault == "liar" else fault]  # a lie about what is read is damage, and told as such
        assert mem.store.unarchive(session="old", user_id="ana").events == 3
        assert told(mem) == list(SAID)
        assert mem.verify().ok
        mem.store.scrub()
        assert archives(room, bucket) == [], "also what came twice"


@pytest.mark.req("LG-16", "LG-12")
@pytest.mark.parametrize("fault", ["silent", "reset", "lost", "error", "liar", "garbage", "denied"])
def test_a_move_that_fails_leaves_the_session_where_it_was(
    fault: str, room: S3Room, bucket: str, tmp_path: Path
) -> None:
    proxy = Denying(room.endpoint)
    with talked(tmp_path / "a.db", room.url(bucket, proxy.endpoint, **BRIEFLY)) as mem:
        proxy.always, proxy.denied = (None, ("PUT /",)) if fault == "denied" else (fault, ())
        with pytest.raises(ObjectsRefused if fault == "denied" else ObjectsUnavailable) as caught:
            mem.store.archive(session="old", user_id="ana")
        assert "lighthouse" not in str(caught.value.to_dict())
        proxy.always, proxy.denied = None, ()
        assert told(mem) == list(SAID)
        assert mem.verify().ok
        assert mem.store.archive(session="old", user_id="ana").events == 3, "the same again is done"
        assert told(mem) == list(SAID)
        receipt = mem.forget(session="old", user_id="ana")
        assert "left_objects" not in receipt.counts
        assert archives(room, bucket) == [], "and no attempt left a copy"
    proxy.close()


@pytest.mark.req("LG-16", "LG-12")
@pytest.mark.parametrize("fault", GETS)
def test_a_read_of_an_archive_that_goes_wrong_is_tried_again_and_then_said(
    fault: str, room: S3Room, bucket: str, proxy: FaultyProxy, tmp_path: Path
) -> None:
    with talked(tmp_path / "a.db", room.url(bucket, proxy.endpoint, **BRIEFLY)) as mem:
        mem.store.archive(before="2100-01-01T00:00:00Z")
        proxy.faults = [fault]
        assert told(mem) == list(SAID)
        event = first_of(mem)
        pointer = {"event_id": event, "span": {"start": 0, "end": 9}}
        doors: dict[str, Callable[[], Any]] = {
            "content": lambda: mem.ledger.content(event),
            "search": lambda: mem.run(user_id="ana").search("old lighthouse Marseille"),
            "cite": lambda: mem.ledger.resolve(pointer),
            "compose": lambda: mem.run(user_id="ana").compose("responder", query="Who keeps the old lighthouse?"),
            "verify": mem.verify,
            "export": lambda: list(mem.export(user_id="ana")),
            "unarchive": lambda: mem.store.unarchive(session="old", user_id="ana"),
            "forget a part": lambda: mem.forget(event=event),
        }
        proxy.always = fault
        for name, door in doors.items():
            mem._ctx.clear_caches()
            with pytest.raises(ObjectsUnavailable) as caught:
                door()
            assert "lighthouse" not in str(caught.value.to_dict()), name
        proxy.always = None
        assert told(mem) == list(SAID), "a part that was to be forgotten is there: the error said that nothing was done"
        assert mem.verify().ok, "a server that is down is no damage"
        proxy.always = fault
        receipt = mem.forget(session="old", user_id="ana")
        assert receipt.counts["left_objects"] == 2
        assert not receipt.scrubbed
        assert "2 objects could not be deleted yet" in receipt.note
        proxy.always = None
        assert SAID[0].encode() in words(room, bucket), "the receipt says so"
        assert mem.store.scrub().clean
        assert told(mem) == [None] * 3
        assert mem.verify().ok


@pytest.mark.req("LG-16")
def test_what_is_archived_in_a_bucket_is_found_cited_composed_exported_and_verified(
    room: S3Room, versioned: str, tmp_path: Path
) -> None:
    with talked(tmp_path / "a.db", room.url(versioned)) as mem:
        run = mem.run(user_id="ana", session_id="new")
        event = first_of(mem)
        doors: dict[str, Callable[[], Any]] = {
            "search": lambda: [(hit.id, hit.text, hit.score) for hit in run.search("old lighthouse Marseille")],
            "cite": lambda: mem.ledger.resolve({"event_id": event, "span": {"start": 0, "end": 9}}).text,
            "export": lambda: list(mem.export(user_id="ana")),
            "told": lambda: told(mem),
        }
        build = run.compose("responder", query="Who keeps the old lighthouse?")
        before = {name: door() for name, door in doors.items()}
        assert mem.store.archive(before="2100-01-01T00:00:00Z").sessions == 2
        for name, door in doors.items():
            mem._ctx.clear_caches()
            assert door() == before[name], name
        assert mem.replay(build.id).packet_bytes == build.packet_bytes
        assert SAID[0] in run.compose("responder", query="Who keeps the old lighthouse?").text
        assert mem.verify().ok
        with muniment.open(tmp_path / "b.db") as other:
            other.import_(before["export"])
            assert told(other) == before["told"]


# -- forgetting on a bucket that keeps versions -------------------------------------------------------


@pytest.mark.req("LG-16", "LG-14")
@pytest.mark.parametrize("how", ["event", "session", "user"])
def test_a_forget_takes_every_version_of_an_archive(how: str, room: S3Room, versioned: str, tmp_path: Path) -> None:
    with talked(tmp_path / "a.db", room.url(versioned)) as mem:
        mem.store.archive(before="2100-01-01T00:00:00Z")
        place = outside(room, versioned)
        for key in archives(room, versioned):
            place.put(key, place.get(key) or b"")  # as a put does that comes twice
        selector: dict[str, Any] = {"event": first_of(mem)}
        if how != "event":
            selector = {"user_id": "ana"} | ({"session": "old"} if how == "session" else {})
        receipt = mem.forget(**selector)
        assert receipt.counts["objects"] == {"event": 1, "session": 2, "user": 4}[how], "archives and large contents"
        assert receipt.scrubbed
        mem._ctx.clear_caches()
        assert mem.verify().ok
        assert SAID[0].encode() + b'"' not in words(room, versioned)
        left = {"event": 5, "session": 3, "user": 0}[how]
        assert room.listed(versioned).count("<Version>") == left, "what is needed, and second versions of the rest"
        assert "<DeleteMarker>" not in room.listed(versioned)


@pytest.mark.req("LG-16", "LG-14")
@pytest.mark.parametrize("how", ["event", "session"])
@pytest.mark.parametrize("denied", [("DELETE versionId=",), ("GET versions=",), ("DELETE /",)])
def test_what_a_bucket_keeps_of_an_archive_is_in_the_receipt_and_finished_later(
    denied: tuple[str, ...], how: str, room: S3Room, versioned: str, tmp_path: Path
) -> None:
    proxy = Denying(room.endpoint)
    with talked(tmp_path / "a.db", room.url(versioned, proxy.endpoint)) as mem:
        mem.store.archive(session="old", user_id="ana")
        proxy.denied = denied
        receipt = mem.forget(**({"event": first_of(mem)} if how == "event" else {"session": "old", "user_id": "ana"}))
        assert receipt.counts["left_objects"] == (1 if how == "event" else 2)
        assert not receipt.scrubbed
        assert "could not be deleted yet" in receipt.note
        assert [each.id for each in mem.store.attention(kind="scrub_due")] == [receipt.receipt_id]
        assert told(mem) == ([None, *SAID[1:]] if how == "event" else [None] * 3), "the store itself has forgotten"
        assert mem.store.scrub().due
        proxy.denied = ()
        done = mem.store.scrub()
        assert (done.due, done.clean, done.receipts) == (False, True, 1)
        assert mem.store.attention(kind="scrub_due") == []
        assert SAID[0].encode() + b'"' not in words(room, versioned)
        assert mem.verify().ok
    proxy.close()


@pytest.mark.req("LG-16", "LG-14")
def test_an_archive_that_may_not_be_read_does_not_keep_the_rest_of_a_forget(
    room: S3Room, bucket: str, tmp_path: Path
) -> None:
    """A refusal is of one object; a server that does not answer ends the attempt."""
    proxy = Denying(room.endpoint)
    with talked(tmp_path / "a.db", room.url(bucket, proxy.endpoint)) as mem:
        mem.store.archive(session="old", user_id="ana")
        (key,) = archives(room, bucket)
        proxy.denied = (f"GET {key}",)
        receipt = mem.forget(user_id="ana")
        assert receipt.counts["left_objects"] == 1
        assert receipt.counts["objects"] == 2, "the large contents of both sessions are gone"
        proxy.denied = ()
        assert mem.store.scrub().clean
        assert words(room, bucket) == b""
    proxy.close()


# -- kill -9 in the middle ----------------------------------------------------------------------------


class Killing:
    """Ends the process at a moment: each request to the server and each transaction has one before and one after."""

    def __init__(self, moment: int) -> None:
        self.left = moment

    def count(self) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1

    def around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **more: Any) -> Any:
            self.count()
            answer = real(*args, **more)
            self.count()
            return answer

        return counted


MOVES: dict[str, Callable[[Memory], Any]] = {
    "archive": lambda mem: mem.store.archive(session="old", user_id="ana").events,
    "unarchive": lambda mem: mem.store.unarchive(session="old", user_id="ana").events,
    "forget event": lambda mem: mem.forget(event=first_of(mem)).counts["objects"],
    "forget session": lambda mem: mem.forget(session="old", user_id="ana").counts["objects"],
}


def killed_at(moment: int, move: str, path: Path, url: str) -> bool:
    """Was the process ended by it, before it had done its work?"""

    def work() -> Any:
        killing = Killing(moment)
        with (
            muniment.open(path, objects=url) as mem,
            mock.patch.object(S3Server, "ask", killing.around(S3Server.ask)),
            mock.patch.object(SqliteEngine, "write", killing.around(SqliteEngine.write)),
        ):
            return MOVES[move](mem)

    return in_child(work) is None


@pytest.mark.slow
@pytest.mark.req("LG-16", "LG-07")
@pytest.mark.parametrize("move", MOVES)
def test_a_process_that_is_killed_in_the_middle_of_a_move(
    move: str, room: S3Room, versioned: str, tmp_path: Path
) -> None:
    url = room.url(versioned)
    moments = 0
    for moment in one_in(3, range(200), start=len(move)):
        path = tmp_path / f"{moment}.db"
        with talked(path, url) as mem:
            if move != "archive":
                mem.store.archive(session="old", user_id="ana")
        if not killed_at(moment, move, path, url):
            break
        moments += 1
        with muniment.open(path, objects=url) as mem:
            _check_after(mem, move)
            place = mem._ctx.outside
            assert place is not None
            mem.forget(user_id="ana")
            mem.store.scrub()
            assert list(place.store.listed(f"{place.folder}/")) == [], (
                "whatever was under way, nothing outlives a forget"
            )
            assert mem.verify().ok
    else:
        raise AssertionError("the move never ended by itself")
    assert moments > 2
    assert room.listed(versioned).count("<DeleteMarker>") == 0


def _check_after(mem: Memory, move: str) -> None:
    """All of it is as it was, or all of it as it was to be; and what was broken off can be done again."""
    now = told(mem)
    assert now in (list(SAID), [None, *SAID[1:]] if move == "forget event" else [None] * 3), now
    if not move.startswith("forget"):
        assert now == list(SAID)
        assert MOVES[move](mem) in (0, 3)
        assert told(mem) == now
    assert told(mem, "new") == [f"{text} Again." for text in SAID]
    assert mem.verify().ok
