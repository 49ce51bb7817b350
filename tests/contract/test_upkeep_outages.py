"""Upkeep when what it asks for is away or busy: nothing is lost, nobody else waits, and it is taken up again.

An embedder that fails leaves its vectors due; a tenant that is busy is come back to; a claim of somebody who is alive
is left alone. On every engine.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import muniment
from deployments import url_of
from muniment.core.ports.rows import insert
from muniment.core.ports.schema import LEASES, LeaseRow
from muniment.errors import EmbedderFailure, EmbedderUnreachable, ModelUnreachable, StorageBusy
from muniment.handles.memory import Memory
from muniment.handles.upkeep import resting
from muniment.handles.upkeep.running import Upkeep
from upkeep_room import leases, load, worker

Opened = Callable[..., Memory]
NOT_BEHIND = {"memory": {"extraction": {"in_background": False}}, "ledger": {"embed_in_background": False}}
WAIT_S = 60


@pytest.fixture(params=("sqlite", "postgres"))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens the store once more, as another process does."""
    with ExitStack() as stack:

        def open_(**parts: Any) -> Memory:
            target = str(tmp_path / "store.db")
            if request.param == "postgres":
                schema = request.getfixturevalue("kept_postgres_schema")
                target = url_of(request.getfixturevalue("postgres_dsn"), schema)
            return stack.enter_context(muniment.open(target, policy=NOT_BEHIND, **parts))

        yield open_


class Embedder:
    """One whose server can be away, from a call on."""

    identity = "counted@1"
    dim = 4

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked: Counter[str] = Counter()
        self.calls = 0

    def embed(self, texts: Sequence[str]) -> Any:
        self.calls += 1
        if self.error is not None:
            raise self.error
        self.asked.update(texts)
        return np.ones((len(texts), 4), np.float32)


def vectors(mem: Memory, tenant_id: str = "default") -> int:
    """How many turns have one, as a search by meaning finds them."""
    from muniment.core.ports.rows import stream
    from muniment.core.ports.schema import VECTORS

    def read(reader: Any) -> int:
        return sum(row.count for row in stream(reader, VECTORS, (("embedder", "=", Embedder.identity),)))

    return mem._ctx.engine.read(tenant_id, read)


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock for rests that goes on when it is told."""
    now = [1000.0]
    monkeypatch.setattr(resting, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


# -- an embedder that is away -------------------------------------------------------------------------


@pytest.mark.req("UK-05")
@pytest.mark.parametrize("how", ["index", "load", "upkeep"])
def test_vectors_stay_due_where_the_embedder_failed(opened: Opened, how: str) -> None:
    embedder = Embedder()
    mem = opened(embedder=embedder)
    embedder.error = EmbedderUnreachable("the embedder is away")
    load(mem)
    event = {"user_id": "late", "session_id": "s", "role": "user", "content": "the last ferry"}
    ways: dict[str, Callable[[], Any]] = {
        "index": mem.store.index,
        "upkeep": lambda: mem.store.upkeep(kinds=["index"]),
        "load": lambda: mem.store.load([event]),
    }
    with pytest.raises(EmbedderFailure):
        ways[how]()
    turns = 81 if how == "load" else 80
    seen = mem.store.overview()
    assert (seen.unindexed, seen.unembedded) == (0, 5 if how == "load" else 4), "words are there, vectors are due"
    assert vectors(mem) == 0
    assert mem.run(user_id="u1").search("ferry Bergen"), "found by words meanwhile"
    assert mem.verify().ok
    embedder.error = None
    report = mem.store.upkeep(kinds=["index"])
    assert report.index == (5 if how == "load" else 4)
    assert vectors(mem) == turns
    assert mem.store.overview().unembedded == 0
    assert set(embedder.asked.values()) == {1}, "nothing is asked for twice"
    assert mem.store.upkeep(kinds=["index"]).is_idle
    assert leases(mem) == []


def test_an_embedder_that_fails_in_the_middle_leaves_the_rest_due(opened: Opened) -> None:
    embedder = Embedder()
    mem = opened(embedder=embedder)
    load(mem, users=6, turns=4)
    answer = embedder.embed

    def fail_late(texts: Sequence[str]) -> Any:
        if embedder.calls == 2:
            raise EmbedderUnreachable("away since")
        return answer(texts)

    embedder.embed = fail_late  # type: ignore[method-assign]
    with pytest.raises(EmbedderFailure):
        mem.store.index()
    assert vectors(mem) == 8
    assert mem.store.overview().unembedded == 4
    embedder.embed = answer  # type: ignore[method-assign]
    mem.store.upkeep(kinds=["index"])
    assert vectors(mem) == 24
    assert mem.store.overview().unembedded == 0


def test_an_embedder_that_is_away_is_left_alone_longer_each_time(opened: Opened, rests: list[float]) -> None:
    embedder = Embedder()
    mem = opened(embedder=embedder)
    embedder.error = EmbedderUnreachable("the embedder is away")
    load(mem, users=2, turns=2)
    with worker(mem, "index") as upkeep:
        waits = []
        for _ in range(9):
            with pytest.raises(EmbedderFailure):
                upkeep.run()
            asked = embedder.calls
            began = rests[0]
            assert not upkeep.is_retry_due
            load_one(mem, str(asked))
            assert upkeep.run().index == 1, "words go on without it"
            assert embedder.calls == asked
            while not upkeep.is_retry_due:
                rests[0] += 1
            waits.append(rests[0] - began)
        assert waits[:3] == [15, 30, 60]
        assert waits[-1] == waits[-2] == 600
        embedder.error = None
        assert upkeep.run().index > 0
        assert not upkeep.is_retry_due
    assert vectors(mem) == 4 + 9
    assert mem.store.overview().unembedded == 0


def load_one(mem: Memory, text: str) -> None:
    event = {"user_id": "u0", "session_id": f"t{text}", "role": "user", "content": f"the tide {text}"}
    mem.store.load([event], index=False)


def test_turns_indexed_while_others_embed_keep_their_own_due(opened: Opened) -> None:
    """Between the reading of what lacks vectors and the end of it, another process indexes more of the same user."""
    embedder = Embedder()
    mem = opened(embedder=embedder)
    other = opened(embedder=embedder)
    load(mem, users=1, turns=3)
    answer = embedder.embed

    def meanwhile(texts: Sequence[str]) -> Any:
        embedder.embed = answer  # type: ignore[method-assign]
        event = {"user_id": "u0", "session_id": "s2", "role": "user", "content": "the last ferry"}
        other.store.load([event], index=False)
        embedder.error = EmbedderUnreachable("away for the other")
        with pytest.raises(EmbedderFailure):
            other.store.index()
        embedder.error = None
        return answer(texts)

    embedder.embed = meanwhile  # type: ignore[method-assign]
    mem.store.index()
    mem.store.upkeep(kinds=["index"])
    assert vectors(mem) == 4
    assert mem.store.overview().unembedded == 0


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, ZeroDivisionError])
def test_a_process_that_ends_while_it_embeds_leaves_the_rest_due(opened: Opened, end: type[BaseException]) -> None:
    embedder = Embedder()
    mem = opened(embedder=embedder)
    load(mem, users=2, turns=3)
    answer = embedder.embed

    def ends(_texts: Sequence[str]) -> Any:
        raise end

    embedder.embed = ends  # type: ignore[method-assign]
    with pytest.raises(end):
        mem.store.index()
    embedder.embed = answer  # type: ignore[method-assign]
    other = opened(embedder=embedder)
    assert other.verify().ok
    other.store.upkeep(kinds=["index"])
    assert vectors(other) == 6


def test_a_store_without_an_embedder_owes_no_vectors(opened: Opened) -> None:
    mem = opened()
    load(mem, users=2, turns=3)
    mem.store.index()
    assert mem.store.overview().unembedded == 0
    assert mem.store.upkeep(kinds=["index"]).is_idle


def test_a_rebuild_leaves_no_vectors_due(opened: Opened) -> None:
    embedder = Embedder()
    mem = opened(embedder=embedder)
    load(mem, users=2, turns=3)
    mem.store.rebuild()
    assert mem.store.overview().unindexed == 0
    assert mem.store.overview().unembedded == 0
    assert vectors(mem) == 6
    assert mem.verify().ok


def test_what_was_forgotten_meanwhile_is_due_no_longer(opened: Opened) -> None:
    embedder = Embedder()
    mem = opened(embedder=embedder)
    embedder.error = EmbedderUnreachable("the embedder is away")
    load(mem, users=2, turns=3)
    with pytest.raises(EmbedderFailure):
        mem.store.index()
    mem.forget(user_id="u0")
    embedder.error = None
    mem.store.upkeep(kinds=["index"])
    assert mem.store.overview().unembedded == 0
    assert not [text for text in embedder.asked if "Turn 0" in text or "Turn 2:" in text or "Turn 4" in text]


# -- a tenant that is busy ----------------------------------------------------------------------------


@pytest.mark.req("UK-05")
@pytest.mark.parametrize("times", [1, 2])
def test_a_busy_tenant_is_passed_over_and_come_back_to(opened: Opened, times: int) -> None:
    mem = opened()
    for tenant in ("a", "b", "c"):
        load(mem, users=1, turns=2, tenant_id=tenant)
    done: list[str] = []
    with worker(mem, "index") as upkeep:
        chore = upkeep._chores["index"]
        do, left = chore.do, [times]

        def busy(ctx: Any, piece: Any, progress: Any) -> int:
            if piece.place == "a" and left[0]:
                left[0] -= 1
                raise StorageBusy("another writes there")
            done.append(piece.place)
            return do(ctx, piece, progress)

        chore.do = busy  # type: ignore[method-assign]
        report = upkeep.run()
    assert report.index == 6
    assert sorted(done) == ["a", "b", "c"]
    assert done[-1] == "a"
    assert all(leases(mem, tenant) == [] for tenant in ("a", "b", "c"))


def test_a_tenant_that_stays_busy_is_told_when_all_else_is_done(opened: Opened) -> None:
    mem = opened()
    for tenant in ("a", "b"):
        load(mem, users=20, turns=2, tenant_id=tenant)
    tried: list[list[str]] = []
    with worker(mem, "index") as upkeep:
        chore = upkeep._chores["index"]
        do = chore.do

        def busy(ctx: Any, piece: Any, progress: Any) -> int:
            if piece.place == "a" and "u7" in piece.names:
                tried.append(piece.names)
                raise StorageBusy("another writes there")
            return do(ctx, piece, progress)

        chore.do = busy  # type: ignore[method-assign]
        with pytest.raises(StorageBusy, match="another writes there"):
            upkeep.run()
        assert mem.store.overview(tenant_id="b").unindexed == 0
        assert mem.store.overview(tenant_id="a").unindexed == 3, "of its other users nothing is left"
        assert 1 < len([names for names in tried if names == ["u7"]]) < 10
        chore.do = do  # type: ignore[method-assign]
        assert upkeep.run().index == 2


@pytest.mark.parametrize("when", ["looking", "reading leases", "taking"])
def test_a_store_that_is_busy_for_one_tenant_ends_nothing(
    opened: Opened, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem = opened()
    for tenant in ("a", "b", "c"):
        load(mem, users=1, turns=2, tenant_id=tenant)
    left = [1]

    def busy_once(then: Callable[..., Any], tenant_at: int) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            if given[tenant_at] == "b" and left[0]:
                left[0] -= 1
                raise StorageBusy("all connections are in use")
            return then(*given)

        return call

    with worker(mem, "index") as upkeep:
        engine, chore = mem._ctx.engine, upkeep._chores["index"]
        if when == "looking":
            monkeypatch.setattr(chore, "waiting", busy_once(chore.waiting, 1))
        else:
            name = "read" if when == "reading leases" else "write"
            monkeypatch.setattr(engine, name, busy_once(getattr(engine, name), 0))
        assert upkeep.run().index == 6
    assert left == [0]


# -- servers beside the store, each left alone by itself ----------------------------------------------


@pytest.mark.soak
def test_a_model_that_is_away_is_left_alone_and_the_rest_goes_on(opened: Opened, rests: list[float]) -> None:
    mem = opened(extract=Model())
    say(mem)
    load(mem, users=1, turns=2)
    with worker(mem, "index", "extract") as upkeep:
        chore = upkeep._chores["extract"]
        do, asked = chore.do, []

        def away(_ctx: Any, piece: Any, _progress: Any) -> int:
            asked.append(piece.names)
            raise ModelUnreachable("the model does not answer")

        chore.do = away  # type: ignore[method-assign]
        with pytest.raises(ModelUnreachable):
            upkeep.run()
        for number in range(3):
            load_one(mem, str(number))
            assert upkeep.run().index == 1
        assert len(asked) == 1, "it rests"
        chore.do = do  # type: ignore[method-assign]
        rests[0] += 16
        assert upkeep.is_retry_due
        assert upkeep.run().extract > 0
        assert not upkeep.is_retry_due


# -- claims of the living -----------------------------------------------------------------------------


class Model:
    """Reads nothing out of turns, counts how often it was asked about each, and can be held up."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.is_asked = threading.Event()
        self.answers = threading.Event()
        self.answers.set()

    def __call__(self, messages: list[dict[str, str]]) -> str:
        lines = [json.loads(line) for line in messages[1]["content"].split("\n")]
        self.asked.update(line["text"] for line in lines if "turn" in line)
        self.is_asked.set()
        assert self.answers.wait(WAIT_S)
        return '{"facts": []}'


def say(mem: Memory, users: int = 2) -> None:
    for user in range(users):
        mem.run(user_id=f"u{user}", session_id="s").observe_many([{"role": "user", "content": f"I once saw {user}"}])


def leave_a_lease(mem: Memory, user_id: str, owner: str = "gone.1") -> None:
    """What a process leaves that was killed at this user's turns."""
    row = LeaseRow(f"extract:{user_id}", "default", owner, beats=0, is_open=1)
    mem._ctx.engine.write("default", lambda tx: insert(tx, LEASES, [row]))


@pytest.mark.soak
@pytest.mark.req("UK-05")
@pytest.mark.parametrize("taken_over", [False, True])
def test_a_claim_of_somebody_who_is_alive_is_left_alone(opened: Opened, taken_over: bool) -> None:
    """A caller without a lease reads a user's turns; upkeep comes to the same user, by a lease that was left or not."""
    model = Model()
    mem = opened(extract=model)
    other = opened(extract=model)
    say(mem, users=1)
    if taken_over:
        leave_a_lease(mem, "u0")
    model.answers.clear()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(mem.extract_pending, user_id="u0")
        assert model.is_asked.wait(WAIT_S)
        asked = model.asked.copy()
        upkeep = Upkeep(other._ctx, ("extract",), tenant_id=None, lease_s=0.2)
        report = upkeep.run()
        assert (report.extract, report.taken_over, report.lost) == (0, int(taken_over), 0)
        assert model.asked == asked, "nobody asks about it again"
        model.answers.set()
        assert reading.result().turns == 1, "what it claimed is its own to the end"
    assert dict(model.asked) == {"I once saw 0": 1}
    assert leases(mem) == []
    assert mem.verify().ok


def test_the_claim_of_a_lease_that_is_taken_over_holds_nobody_up(opened: Opened) -> None:
    """Who had it is gone in the middle of asking: the next one reads at once, and what comes late writes nothing."""
    model = Model()
    mem = opened(extract=model)
    other = opened(extract=model)
    say(mem, users=1)
    model.answers.clear()
    with ThreadPoolExecutor(2) as pool, worker(mem, "extract", lease_s=0.2) as held_up:
        slow = pool.submit(held_up.run)
        assert model.is_asked.wait(WAIT_S)
        going = pool.submit(Upkeep(other._ctx, ("extract",), tenant_id=None, lease_s=0.2).run)
        while model.asked["I once saw 0"] < 2:
            threading.Event().wait(0.01)
        model.answers.set()
        assert going.result().extract == 1
        assert slow.result().lost == 1
    assert other.store.upkeep(kinds=["extract"]).is_idle
    assert mem.verify().ok
