"""A replica that lags takes over while archives lie in an object store: nothing old is lost with it.

What was brought back from an archive, or written anew without what was forgotten, leaves an object that nobody needs.
To a replica that has not come so far it still is all there is of the session.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muniment
from deployments import url_of
from muniment.testing.postgres_cluster import Servers

pytestmark = [pytest.mark.soak, pytest.mark.req("LG-06", "LG-17")]
SAID = [f"number {number} was said" for number in range(4)]
WAYS = ("unarchive", "forget")


def archives_in(folder: Path) -> int:
    return sum(path.is_file() and "archives" in path.parts for path in folder.rglob("*"))


def archived(mem: Any, user: str) -> str:
    """Four events of a user in an archive; the id of the first."""
    run = mem.run(user_id=user, session_id=f"s-{user}")
    first, *_ = [run.observe("user", content).id for content in SAID]
    mem.store.archive(session=f"s-{user}", user_id=user)
    return str(first)


def make_needless(mem: Any, user: str, first: str) -> int:
    """Have the object of the archive replaced, each user by the way of that name; how many are left that are due."""
    if user == "unarchive":
        return int(mem.store.unarchive(session=f"s-{user}", user_id=user).left)
    receipt = mem.forget(event=first)
    left = int(receipt.counts.get("left_objects", 0))
    assert ("the replica has not applied yet" in receipt.note) == (left > 0)
    return left


def messages(mem: Any, user: str) -> list[str]:
    return [entry.content for entry in mem.ledger.entries(user_id=user, kind="message") if entry.content is not None]


def until(holds: Callable[[], bool], why: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, why
        time.sleep(0.2)


def test_objects_outlast_a_replica_that_lags(cluster: Servers, tmp_path: Path) -> None:
    primary = cluster.primary()
    replica = cluster.replica(primary)
    given: dict[str, Any] = {"objects": f"file:{tmp_path}"}
    with muniment.open(url_of(primary.dsn, "muniment", replica=replica.address), **given) as mem:
        first = {user: archived(mem, user) for user in WAYS}
        assert mem._ctx.engine.is_copied()
        replica.execute("SELECT pg_wal_replay_pause()")
        assert [make_needless(mem, user, first[user]) for user in WAYS] == [1, 2], "the second is told of both"
        assert [messages(mem, user) for user in WAYS] == [SAID, SAID[1:]]
        assert archives_in(tmp_path) == 3, "that of the forget is written anew at once"
        run = mem.run(user_id="cleo", session_id="s-cleo")
        run.observe("user", "of nobody else")
        mem.store.archive(session="s-cleo", user_id="cleo")
        mem.forget(user_id="cleo")
        assert archives_in(tmp_path) == 3, "one in which all was forgotten waits for nobody"
        replica.execute("SELECT pg_wal_replay_resume()")
        until(lambda: not mem.store.scrub().due, "it comes so far, on a busy machine later: what was left goes")
        assert archives_in(tmp_path) == 1
        again = {user: archived(mem, user) for user in WAYS}
        assert mem._ctx.engine.is_copied()
        replica.kill()  # from here on it misses all of it
        assert [make_needless(mem, user, again[user]) > 0 for user in WAYS] == [True, True]
        before = {user: sorted(messages(mem, user)) for user in WAYS}
        assert mem.verify().ok
    primary.kill()
    replica.start()
    replica.promote()
    with muniment.open(url_of(replica.dsn, "muniment"), **given) as mem:
        assert mem.verify().ok
        assert sorted(messages(mem, "unarchive")) == before["unarchive"]
        assert sorted(messages(mem, "forget")) == sorted([*before["forget"], SAID[0]]), "forgotten where it was lost"
    replica.stop()


def test_without_a_replica_nothing_is_kept(tmp_path: Path) -> None:
    with muniment.open(":memory:", objects=f"file:{tmp_path}") as mem:
        for user in WAYS:
            assert make_needless(mem, user, archived(mem, user)) == 0
        assert archives_in(tmp_path) == 1
