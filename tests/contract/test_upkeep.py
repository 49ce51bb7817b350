"""Upkeep that processes share: each piece is one's at a time, who was held up writes nothing, nothing is done twice.

On every engine, with handles of their own on one store. What several processes do has the bytes that one alone gives.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psycopg
import pytest

import muniment
from deployments import url_of
from muniment.core.limits import checkpoint
from muniment.core.ports.engine import Patch, ScrubReport
from muniment.core.ports.rows import select
from muniment.core.ports.schema import ENTRIES, UPKEEP
from muniment.errors import (
    InvalidInput,
    ModelUnreachable,
    MunimentError,
    StorageFailure,
    StorageReadOnly,
    StoreDamaged,
)
from muniment.handles.memory import Memory
from muniment.handles.upkeep import running
from muniment.handles.upkeep.records import UpkeepKind
from muniment.handles.upkeep.running import Upkeep
from muniment.handles.upkeep.watching import UpkeepWatch
from muniment.memory import index as indexing
from muniment.store import forget as forget_room
from muniment.store import scrub as scrub_room
from muniment.store.background.leases import LeaseLost, StillLeases, check_fence, take_free, take_over
from muniment.store.items import select_items
from muniment.surfaces.cli import store as store_commands
from products import for_each
from upkeep_room import SameSalts, clock_ahead, leases, load, made, users_waiting, worker

Opened = Callable[..., Memory]
NOT_BEHIND = {"memory": {"extraction": {"in_background": False}}}


@pytest.fixture(params=("sqlite", "postgres"))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens the store once more, as another process does."""
    with ExitStack() as stack:

        def db() -> str:
            if request.param == "sqlite":
                return str(tmp_path / "store.db")
            schema = request.getfixturevalue("postgres_schema")
            return url_of(request.getfixturevalue("postgres_dsn"), schema)

        def opened_again(**parts: Any) -> Memory:
            return stack.enter_context(muniment.open(db(), policy=NOT_BEHIND, **parts))

        yield opened_again


class Model:
    """Reads nothing out of turns, and counts how often it was asked about each."""

    name = "counting"

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.before: Callable[[], None] = lambda: None

    def __call__(self, messages: list[dict[str, str]]) -> str:
        lines = [json.loads(line) for line in messages[1]["content"].split("\n")]
        self.asked.update(line["text"] for line in lines if "turn" in line)
        self.before()
        return '{"facts": []}'


def say(mem: Memory, users: int = 4) -> None:
    for user in range(users):
        mem.run(user_id=f"u{user}", session_id="s").observe_many([{"role": "user", "content": f"I once saw {user}"}])


# -- what is done ---------------------------------------------------------------------------------------


@pytest.mark.req("UK-01")
def test_what_waits_is_done_and_nothing_is_left_behind(opened: Opened) -> None:
    mem = opened(extract=Model())
    load(mem)
    done = mem.store.upkeep(kinds=("index", "extract", "scrub"))
    assert (done.index, done.scrub, done.lost, done.held) == (80, 0, 0, 0)
    assert done.extract == 80
    assert leases(mem) == []
    assert mem.store.overview().unindexed == 0
    again = mem.store.upkeep(kinds=("index", "extract", "scrub"))
    assert again.is_idle
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()
    assert mem.run(user_id="u3").search("ferry")


@pytest.mark.soak
def test_a_scrub_that_is_due_is_done_once(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    mem, other = opened(), opened()
    run = mem.run(user_id="ana", session_id="s")
    (event,) = run.observe_many([{"role": "user", "content": "the code is xyzzy"}])
    asked: list[bool] = []

    def leaves_something(needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        asked.append(thorough)
        return ScrubReport(clean=thorough, vacuumed=thorough, note="played", due=not thorough)

    for each in {id(mem): mem, id(other): other}.values():
        monkeypatch.setattr(each._ctx.engine, "scrub", leaves_something)
    receipt = mem.forget(event=event.id)
    assert [each.id for each in mem.store.attention(kind="scrub_due")] == [receipt.receipt_id]
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda each: each.store.upkeep(kinds=["scrub"], lease_seconds=60), (mem, other)))
    assert sum(report.scrub for report in reports) == 1
    assert asked == [False, True]
    assert not mem.store.attention(kind="scrub_due")
    assert mem.verify().ok


def _left_behind(needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
    del needles
    return ScrubReport(clean=thorough, vacuumed=thorough, note="played", due=not thorough)


def _versions(mem: Memory, receipt_id: str) -> list[str]:
    rows = mem._ctx.engine.read("default", lambda reader: select_items(reader, (("id", "=", receipt_id),)))
    return [row.status for row in rows]


def test_a_forget_leaves_a_receipt_alone_that_another_has_settled(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process scrubs while the forget looks at the files: what it has said stands, and is answered."""
    mem, other = opened(), opened()
    (event,) = mem.run(user_id="ana").observe_many([{"role": "user", "content": "the code is xyzzy"}])

    def in_between(needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        if not thorough:
            assert other.store.scrub().receipts == 1
        return _left_behind(needles, thorough=thorough)

    monkeypatch.setattr(other._ctx.engine, "scrub", _left_behind)
    monkeypatch.setattr(mem._ctx.engine, "scrub", in_between)
    receipt = mem.forget(event=event.id)
    assert receipt.scrubbed
    assert _versions(mem, receipt.receipt_id) == ["scrub_due", "issued"]
    assert not mem.store.attention(kind="scrub_due")
    assert mem.verify().ok


def test_a_forget_and_a_scrub_write_one_receipt_at_once(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scrub is in the middle of its transaction when the forget begins with its own."""
    mem, other = opened(), opened()
    (event,) = mem.run(user_id="ana").observe_many([{"role": "user", "content": "the code is xyzzy"}])
    is_erased, may_go_on = threading.Event(), threading.Event()

    def looks(needles: Sequence[bytes], *, thorough: bool = False) -> ScrubReport:
        if not thorough:
            is_erased.set()
            assert may_go_on.wait(60)
        return _left_behind(needles, thorough=thorough)

    prove, is_first = forget_room.prove, [True]

    def slow(*given: Any) -> None:
        if is_erased.is_set() and is_first:
            is_first.clear()
            may_go_on.set()
            threading.Event().wait(0.5)  # the forget comes to its last write
        prove(*given)

    for each in {id(mem): mem, id(other): other}.values():
        monkeypatch.setattr(each._ctx.engine, "scrub", looks)
    for room in (forget_room, scrub_room):
        monkeypatch.setattr(room, "prove", slow, raising=False)
    with ThreadPoolExecutor(1) as pool:
        forgetting = pool.submit(mem.forget, event=event.id)
        assert is_erased.wait(60)
        assert other.store.scrub().receipts == 1
        receipt = forgetting.result(60)
    assert receipt.scrubbed
    assert _versions(mem, receipt.receipt_id) == ["scrub_due", "issued"]
    assert mem.verify().ok


@pytest.mark.soak
def test_a_scrub_that_leaves_something_is_not_tried_for_ever(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    mem = opened()
    (event,) = mem.run(user_id="ana").observe_many([{"role": "user", "content": "the code is xyzzy"}])
    monkeypatch.setattr(mem._ctx.engine, "scrub", lambda *_, **__: ScrubReport(False, False, "played", due=True))
    mem.forget(event=event.id)
    done = mem.store.upkeep(kinds=["scrub"])
    assert (done.pieces, done.scrub) == (1, 0)
    assert mem.store.attention(kind="scrub_due")


@pytest.mark.req("UK-01")
def test_several_share_it_and_the_bytes_are_those_of_one(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Users of different lengths, so that where a piece ends would differ from worker to worker."""
    monkeypatch.setattr(indexing, "PIECE_ENTRIES", 50)
    monkeypatch.setattr(running, "_BEATS", 600)  # who finds the rest taken looks again soon
    clock = clock_ahead(timedelta())
    with muniment.open(tmp_path / "alone.db", ids=SameSalts(), clock=clock) as alone:
        mem = opened(ids=SameSalts(), clock=clock)
        for each in (alone, mem):
            load(each, users=5, turns=30)
            load(each, users=2, turns=70, tenant_id="acme")
        assert alone.store.upkeep(kinds=["index"]).index == 5 * 30 + 140
        others = [mem, *(opened(clock=clock) for _ in range(2))]
        with ThreadPoolExecutor(3) as pool:
            reports = list(pool.map(lambda each: each.store.upkeep(kinds=["index"], lease_seconds=60), others))
        assert sum(report.index for report in reports) == 5 * 30 + 140
        for tenant in ("default", "acme"):
            assert not users_waiting(mem, tenant)
            ours, theirs = (_places(made(each, tenant)) for each in (mem, alone))
            assert ours == theirs
        assert leases(mem) == leases(mem, "acme") == []


def _places(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Rows without what hangs on the moment at which a store was filled."""
    return {name: [row for row in found if not isinstance(row[-1], str)] for name, found in rows.items()}


# -- what fails -----------------------------------------------------------------------------------------


def _alter(mem: Memory, entry_id: str, tenant_id: str) -> None:
    def work(tx: Any) -> None:
        (row,) = select(tx, ENTRIES, (("id", "=", entry_id),))
        tx.do(Patch("entries", (("id", "=", entry_id),), {"body": row.body.replace("ferry", "train")}))

    mem._ctx.engine.write(tenant_id, work)
    mem._ctx.clear_caches()


def _make_due(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    (event,) = mem.run(user_id="ana").observe_many([{"role": "user", "content": "the code is xyzzy"}])
    monkeypatch.setattr(mem._ctx.engine, "scrub", _left_behind)
    mem.forget(event=event.id)
    assert mem.store.attention(kind="scrub_due")


@pytest.mark.soak
def test_who_is_damaged_keeps_nobody_else_waiting(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those who were taken together with them, nor later tenants, nor the scrub; the error is raised then."""
    mem = opened()
    load(mem, users=32, turns=2, tenant_id="aaa")
    load(mem, users=3, turns=2, tenant_id="bbb")
    _make_due(mem, monkeypatch)
    _alter(mem, "evt_5", "aaa")
    for _ in range(2):
        with pytest.raises(StoreDamaged, match="evt_5"):
            mem.store.upkeep(kinds=["index", "scrub"], lease_seconds=5)
        assert users_waiting(mem, "aaa") == {"u5"}
        assert not users_waiting(mem, "bbb")
        assert not mem.store.attention(kind="scrub_due")
        assert leases(mem, "aaa") == leases(mem, "bbb") == []


def test_a_look_that_fails_keeps_no_other_tenant_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with muniment.open(tmp_path / "store.db") as mem, worker(mem, "index", "scrub") as upkeep:
        for tenant in ("aaa", "bbb"):
            load(mem, tenant_id=tenant)
        _make_due(mem, monkeypatch)
        waiting = upkeep._chores["index"].waiting

        def fails(ctx: Any, place: str) -> list[str]:
            if place == "aaa":
                raise StoreDamaged("a row of a user is no row")
            return waiting(ctx, place)

        upkeep._chores["index"].waiting = fails  # type: ignore[method-assign]
        with pytest.raises(StoreDamaged, match="row of a user"):
            upkeep.run()
        assert users_waiting(mem, "aaa")
        assert not users_waiting(mem, "bbb")
        assert not mem.store.attention(kind="scrub_due")


def test_a_server_that_is_away_is_not_asked_for_each_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with muniment.open(tmp_path / "store.db", policy=NOT_BEHIND, extract=Model()) as mem:
        say(mem, users=4)
        _make_due(mem, monkeypatch)
        asked: list[str] = []

        def away(_ctx: Any, piece: Any, _progress: Any) -> int:
            asked.extend(piece.names)
            raise ModelUnreachable("the model does not answer")

        with worker(mem, "extract", "scrub") as upkeep:
            upkeep._chores["extract"].do = away  # type: ignore[method-assign]
            with pytest.raises(ModelUnreachable):
                upkeep.run()
        assert len(asked) == 1
        assert not mem.store.attention(kind="scrub_due")
        assert leases(mem) == []


def test_what_had_nothing_in_it_is_not_left_alone_afterwards(opened: Opened) -> None:
    """Nothing of a system's messages is indexed; what the same user says next is."""
    mem = opened()
    with worker(mem, "index") as upkeep:
        for role, turns in (("system", 0), ("user", 1)):
            event = {"user_id": "u", "session_id": role, "role": role, "content": "the ferry leaves at nine"}
            mem.store.load([event], index=False)
            assert upkeep.run().index == turns
            assert mem.store.overview().unindexed == 0


def test_who_finds_a_scrub_done_by_another_does_the_next(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    mem = opened()
    _make_due(mem, monkeypatch)
    with worker(mem, "scrub") as upkeep:
        taken = upkeep._taken

        def late(*given: Any) -> Iterator[Any]:
            mem.store.scrub()
            yield from taken(*given)

        upkeep._taken = late  # type: ignore[method-assign]
        assert upkeep.run().scrub == 0
        upkeep._taken = taken  # type: ignore[method-assign]
        _make_due(mem, monkeypatch)
        assert upkeep.run().scrub == 1


def test_a_watch_tries_again_what_it_could_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When its time is up, though nothing was committed since; and not at every look before."""
    with muniment.open(tmp_path / "store.db") as mem:
        _make_due(mem, monkeypatch)
        monkeypatch.setattr(mem._ctx.engine, "scrub", lambda *_, **__: ScrubReport(False, False, "played", due=True))
        watch = UpkeepWatch(mem._ctx, ("scrub",), lease_s=1, every_s=0.01)
        run, runs = watch._upkeep.run, [0]

        def counted() -> Any:
            runs[0] += 1
            return run()

        watch._upkeep.run = counted  # type: ignore[method-assign]
        look, looks = watch._look, [0]

        def looked() -> Any:
            looks[0] += 1
            return look()

        watch._look = looked  # type: ignore[method-assign]
        watch.start()
        _wait_until(lambda: looks[0] >= 20)
        assert 0 < runs[0] <= 3
        assert mem.store.attention(kind="scrub_due")
        monkeypatch.setattr(mem._ctx.engine, "scrub", _left_behind)
        monkeypatch.setattr(running, "RETRY_S", 0.05)
        _wait_until(lambda: not mem.store.attention(kind="scrub_due"))
        watch.stop()


# -- leases ---------------------------------------------------------------------------------------------


@pytest.mark.req("UK-02")
def test_a_piece_is_one_process_at_a_time(opened: Opened) -> None:
    mem, other = opened(), opened()
    engine, there = mem._ctx.engine, other._ctx.engine
    first = engine.write("default", lambda tx: take_free(tx, "default", ["index:a", "index:b"], "one.1"))
    second = there.write("default", lambda tx: take_free(tx, "default", ["index:b", "index:c"], "two.1"))
    assert (first.ids, second.ids) == (("index:a", "index:b"), ("index:c",))
    engine.write("default", lambda tx: check_fence(tx, first))
    (seen, *_) = there.read("default", lambda reader: [row for row in leases_of(reader) if row.id == "index:a"])
    assert there.write("default", lambda tx: take_over(tx, seen, "two.2"))
    assert not engine.write("default", lambda tx: take_over(tx, seen, "one.2")), "it does not stand as it was seen"
    with pytest.raises(LeaseLost) as lost:
        engine.write("default", lambda tx: check_fence(tx, first))
    assert lost.value.code == "storage_busy"
    assert lost.value.hint


def leases_of(reader: Any) -> Any:
    from muniment.store.background.leases import open_leases

    return open_leases(reader)


def test_a_lease_is_judged_by_how_long_it_was_seen_to_stand() -> None:
    from muniment.core.ports.schema import LeaseRow

    still, lease = StillLeases(10), LeaseRow("a", "t", "p.1", 3, 1)
    assert still.look("t", [lease], 100) == []
    assert still.look("u", [lease], 109.0) == [], "another tenant's of that name"
    assert still.look("t", [lease], 109.9) == []
    moved = lease._replace(beats=4)
    assert still.look("t", [moved], 110) == []
    assert still.look("t", [moved], 119.9) == []
    assert still.look("t", [moved], 120) == [moved]
    assert still.look("t", [moved], 121) == [], "told once, then it begins anew"
    assert still.look("t", [], 122) == []
    assert still.look("t", [moved], 140) == [], "gone in between"


def test_a_worker_that_stalls_behind_a_look_still_takes_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts how long a lease stood from look to look: the time that it lost itself says nothing of the holder."""
    clock, stalls = [0.0], [0.9, 5.0]
    monkeypatch.setattr(running, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with muniment.open(tmp_path / "store.db") as mem, worker(mem, "index", lease_s=1) as upkeep:
        load(mem)
        names = [f"index:u{number}" for number in range(4)]
        mem._ctx.engine.write("default", lambda tx: take_free(tx, "default", names, "ended.1"))
        look = upkeep._still.look

        def stalls_behind(place: str, found: Any, now: float) -> Any:
            still = look(place, found, now)
            clock[0] += stalls.pop(0) if stalls else 0
            return still

        upkeep._still.look = stalls_behind  # type: ignore[method-assign]
        done = upkeep.run()
    assert (done.taken_over, done.index, done.held) == (4, 80, 0)


@pytest.mark.soak
@pytest.mark.req("UK-02")
@pytest.mark.parametrize("kind", ["index", "extract"])
def test_who_was_held_up_writes_nothing_more(opened: Opened, kind: UpkeepKind) -> None:
    """It stops before one of its writes; another takes over and ends it; it goes on, and changes nothing."""
    mem, other = opened(extract=Model()), opened(extract=Model())
    if kind == "index":
        load(mem)
    else:
        say(mem, users=1)
    is_there, may_go_on = threading.Event(), threading.Event()
    with worker(mem, kind) as held_up, ThreadPoolExecutor(1) as pool:
        do = held_up._chores[kind].do

        def held(ctx: Any, piece: Any, progress: Any) -> int:
            write = ctx.engine.write

            def stopped(tenant_id: str, work: Any) -> Any:
                is_there.set()
                assert may_go_on.wait(60)
                return write(tenant_id, work)

            ctx.engine.write = stopped
            return do(ctx, piece, progress)

        held_up._chores[kind].do = held  # type: ignore[method-assign]
        running = pool.submit(held_up.run)
        assert is_there.wait(60)
        done = other.store.upkeep(kinds=[kind], lease_seconds=0.3)
        after = (made(mem), _events(mem))
        assert done.taken_over > 0
        assert getattr(done, kind) > 0
        may_go_on.set()
        lost = running.result(60)
    assert lost.lost > 0
    assert getattr(lost, kind) == 0
    assert (made(mem), _events(mem)) == after
    assert leases(mem) == []
    assert mem.verify().ok
    assert mem.store.upkeep(kinds=[kind]).is_idle


def _events(mem: Memory) -> list[str]:
    return sorted(entry.id for user in mem.store.users() for entry in mem.ledger.entries(user_id=user.user_id))


@pytest.mark.soak
def test_leases_that_are_counted_on_are_left_alone(opened: Opened) -> None:
    """A process that takes long is no process that has ended."""
    mem, other = opened(extract=Model()), opened()
    say(mem, users=1)
    is_there, may_go_on = threading.Event(), threading.Event()

    def slow() -> None:
        is_there.set()
        assert may_go_on.wait(60)

    mem._ctx.extract_model.before = slow
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(mem.store.upkeep, kinds=["extract"], lease_seconds=1)
        assert is_there.wait(60)
        model, other._ctx.extract_model = other._ctx.extract_model, Model()
        del model
        assert mem.store.overview().under_way == 1
        done = other.store.upkeep(kinds=["extract"], lease_seconds=1)
        assert (done.held, done.pieces, other._ctx.extract_model.asked.total()) == (1, 0, 0)
        may_go_on.set()
        assert running.result(60).extract == 1
    assert mem.store.overview().under_way == 0


@pytest.mark.req("UK-02")
def test_clocks_that_differ_do_no_harm(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of workers a day ahead and behind no turn is read twice, and what one left is taken up at once by any."""
    monkeypatch.setattr(running, "_BEATS", 600)
    models = [Model() for _ in range(3)]
    mems = [
        opened(clock=clock_ahead(timedelta(days=days)), extract=model)
        for days, model in zip((-1, 0, 1), models, strict=True)
    ]
    say(mems[1], users=6)
    with ThreadPoolExecutor(3) as pool:
        reports = list(pool.map(lambda each: each.store.upkeep(kinds=["extract"], lease_seconds=60), mems))
    asked = sum((model.asked for model in {id(each): each for each in models}.values()), Counter())
    assert asked == Counter(f"I once saw {user}" for user in range(6))
    assert sum(report.extract for report in reports) == 6


@pytest.mark.soak
def test_a_claim_of_who_ended_keeps_nobody_waiting(opened: Opened) -> None:
    """A process ends in the middle of a batch: its claim would hold for five minutes, and as much as its clock is
    ahead. The lease says that it has ended."""
    ahead = opened(clock=clock_ahead(timedelta(seconds=0.5)), extract=Model())
    say(ahead, users=1)

    class Killed(BaseException):
        """Ends a worker as a kill does: nothing of it is given back."""

    def dies() -> None:
        raise Killed

    ahead._ctx.extract_model.before = dies
    write = ahead._ctx.engine.write

    def dead(tenant_id: str, work: Any) -> Any:
        if ahead._ctx.extract_model.asked:
            raise Killed
        return write(tenant_id, work)

    with worker(ahead, "extract") as upkeep:
        upkeep._give_back = lambda taken: None  # type: ignore[method-assign]
        ahead._ctx.engine.write = dead  # type: ignore[method-assign]
        with pytest.raises(Killed):
            upkeep.run()
    ahead._ctx.engine.write = write  # type: ignore[method-assign]
    ahead._ctx.extract_model.before = lambda: None
    assert len(leases(ahead)) == 1
    mem = opened(extract=Model())
    mem._ctx.extract_model = Model()
    done = mem.store.upkeep(kinds=["extract"], lease_seconds=0.3)
    assert (done.taken_over, done.extract) == (1, 1)
    assert leases(mem) == []


# -- a forget wins --------------------------------------------------------------------------------------


@pytest.mark.req("UK-03")
@pytest.mark.parametrize("kind", ["index", "extract"])
def test_a_forget_in_between_wins(opened: Opened, kind: str) -> None:
    mem, other = opened(extract=Model()), opened()
    load(mem, users=2)
    forgotten: list[str] = []

    with worker(mem, kind, lease_s=30) as upkeep:
        do = upkeep._chores[kind].do  # type: ignore[index]

        def between(ctx: Any, piece: Any, progress: Any) -> int:
            write = ctx.engine.write

            def forgets(tenant_id: str, work: Any) -> Any:
                if not forgotten and tenant_id == "default":
                    forgotten.append(piece.names[0])
                    other.forget(user_id=piece.names[0])
                return write(tenant_id, work)

            ctx.engine.write = forgets
            return do(ctx, piece, progress)

        upkeep._chores[kind].do = between  # type: ignore[index, method-assign]
        upkeep.run()
    assert mem.run(user_id=forgotten[0]).search("ferry plan agreed") == []
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()
    assert leases(mem) == []


# -- bad input ------------------------------------------------------------------------------------------


def test_there_is_no_scrub_of_one_tenant() -> None:
    """It is of the files, so how long it takes, and how many receipts it settles, would tell of others."""
    with muniment.open(":memory:") as mem:
        (event,) = mem.run(user_id="ana").observe_many([{"role": "user", "content": "the code is xyzzy"}])
        mem.forget(event=event.id)
        mem.store.index()
        assert mem.store.upkeep(kinds=["index", "scrub"], tenant_id="default").is_idle
        with pytest.raises(InvalidInput, match="whole store") as refused:
            mem.store.upkeep(kinds=["scrub"], tenant_id="default")
    assert (refused.value.path, bool(refused.value.hint)) == ("$.kinds", True)


def test_whoever_goes_on_for_one_tenant_scrubs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the worker itself, whatever kinds it is handed, nor the command that looks again and again."""
    with muniment.open(tmp_path / "store.db") as mem:
        (event,) = mem.run(user_id="ana").observe_many([{"role": "user", "content": "the code is xyzzy"}])
        monkeypatch.setattr(mem._ctx.engine, "scrub", lambda *_, **__: ScrubReport(False, False, "played", due=True))
        mem.forget(event=event.id)
        with worker(mem, "index", "scrub", tenant_id="acme") as upkeep:
            assert upkeep.run().is_idle
        with worker(mem, "scrub", tenant_id="default") as upkeep:
            assert upkeep.run().is_idle
        call = SimpleNamespace(memory=mem)
        with pytest.raises(InvalidInput, match="whole store"):
            next(store_commands._watched(call, 1.0, kinds=["scrub"], tenant_id="default"))  # type: ignore[arg-type]


@for_each("kinds", [["indices"], [], "everything", [None], 7])
def test_kinds_that_are_none(kinds: Any) -> None:
    with muniment.open(":memory:") as mem, pytest.raises(InvalidInput) as refused:
        mem.store.upkeep(kinds=kinds)
    assert (refused.value.path, bool(refused.value.hint)) == ("$.kinds", True)


@for_each("seconds", [0, -1, 1e9, float("nan"), "10", None, True])
def test_leases_that_last_no_time(seconds: Any) -> None:
    with muniment.open(":memory:") as mem, pytest.raises(InvalidInput) as refused:
        mem.store.upkeep(lease_seconds=seconds)
    assert refused.value.path == "$.lease_seconds"


def test_leases_that_cannot_be_read(postgres_dsn: str, postgres_schema: str) -> None:
    """A typed error with what to do, and nothing was done."""
    with muniment.open(url_of(postgres_dsn, postgres_schema)) as mem:
        load(mem)
        before = made(mem)
        with psycopg.connect(postgres_dsn, autocommit=True) as admin:
            admin.execute(f"REVOKE ALL ON {postgres_schema}.leases FROM muniment_app")
            with pytest.raises(StorageFailure) as refused:
                mem.store.upkeep()
            assert "grant" in (refused.value.hint or "")
            assert made(mem) == before
            admin.execute(f"GRANT ALL ON {postgres_schema}.leases TO muniment_app")
        assert mem.store.upkeep().index == 80


def test_a_server_that_goes_read_only_in_the_middle_of_a_piece(postgres_dsn: str, postgres_schema: str) -> None:
    """The piece is not written and its lease stays; when the server takes writes again, it is taken over and done."""
    with muniment.open(url_of(postgres_dsn, postgres_schema)) as mem:
        load(mem)
        before = made(mem)
        is_read_only = [True]
        with worker(mem, "index", lease_s=0.3) as upkeep:
            do = upkeep._chores["index"].do

            def refused(ctx: Any, piece: Any, progress: Any) -> int:
                write = ctx.engine.write

                def turned(tenant_id: str, work: Any) -> Any:
                    def inside(tx: Any) -> Any:
                        if is_read_only[0]:
                            tx._connection.execute("SET TRANSACTION READ ONLY")
                        return work(tx)

                    return write(tenant_id, inside)

                ctx.engine.write = turned
                return do(ctx, piece, progress)

            upkeep._chores["index"].do = refused  # type: ignore[method-assign]
            with pytest.raises(StorageReadOnly) as told:
                upkeep.run()
            assert told.value.hint
            assert made(mem) == before
            is_read_only[0] = False
        assert mem.store.upkeep(kinds=["index"], lease_seconds=0.3).index == 80
        assert leases(mem) == []


def test_a_store_that_is_opened_for_reading(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store.db") as mem:
        load(mem)
    with muniment.open(tmp_path / "store.db", read_only=True) as mem, pytest.raises(StorageReadOnly) as refused:
        mem.store.upkeep()
    assert refused.value.hint


# -- going on -------------------------------------------------------------------------------------------


def test_a_watch_does_what_comes_and_ends_when_told(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store.db") as mem:
        watch = UpkeepWatch(mem._ctx, ("index",), lease_s=1, every_s=0.05)
        watch.start()
        load(mem)
        for _ in range(600):
            if not mem.store.overview().unindexed:
                break
            threading.Event().wait(0.05)
        watch.stop()
        assert mem.store.overview().unindexed == 0
        assert leases(mem) == []


def test_a_watch_outlives_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with muniment.open(tmp_path / "store.db") as mem:
        load(mem)
        watch = UpkeepWatch(mem._ctx, ("index",), lease_s=1, every_s=0.02)
        run, failed = watch._upkeep.run, [MunimentError("the store is away")]

        def fails_once() -> Any:
            if failed:
                raise failed.pop()
            return run()

        watch._upkeep.run = fails_once  # type: ignore[method-assign]
        assert next(watch.reports()).index == 80
        assert "upkeep failed" in caplog.text


class Embedder:
    """One of a caller's own, whose server is away at first."""

    identity = "away@1"
    dim = 4

    def __init__(self) -> None:
        self.failures: list[BaseException] = [ConnectionError("down"), ZeroDivisionError()]

    def embed(self, texts: Sequence[str]) -> Any:
        if self.failures:
            raise self.failures.pop()
        return np.ones((len(texts), 4), np.float32)


def test_a_watch_outlives_a_defect_of_what_it_is_handed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    embedder = Embedder()
    with muniment.open(tmp_path / "store.db", embedder=embedder) as mem:
        watch = UpkeepWatch(mem._ctx, ("index",), lease_s=1, every_s=0.02)
        watch.start()
        for at in range(3):
            load(mem, users=1, turns=2, tenant_id=f"t{at}")
            _wait_until(lambda at=at: mem.store.overview(tenant_id=f"t{at}").unindexed == 0)  # type: ignore[misc]
        watch.stop()
        assert not embedder.failures
        assert not any(leases(mem, f"t{at}") for at in range(3))
    assert "ConnectionError: down" in caplog.text
    assert "by a defect" in caplog.text


def _wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(600):
        if is_so():
            return
        threading.Event().wait(0.05)
    raise AssertionError("it never came")


class Endless:
    """A chore that goes on until it is stopped."""

    pieces_max = 1
    is_of_the_store = False

    def __init__(self) -> None:
        self.began = threading.Event()

    def waiting(self, _ctx: Any, _place: str) -> list[str]:
        return ["u"]

    def do(self, _ctx: Any, _piece: Any, _progress: Any) -> int:
        self.began.set()
        while True:
            checkpoint()
            threading.Event().wait(0.01)


@pytest.mark.soak
def test_a_watch_that_is_stopped_gives_its_leases_back(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    mem = opened()
    say(mem, users=1)
    watch, chore = UpkeepWatch(mem._ctx, ("index",), lease_s=30, every_s=0.02), Endless()
    watch._upkeep._chores = {"index": chore}
    watch.start()
    assert chore.began.wait(60)
    assert len(leases(mem)) == 1
    watch.stop()
    assert leases(mem) == []
    assert "given back" not in caplog.text


def test_a_watch_that_is_broken_off_gives_its_leases_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a command is by Ctrl-C, in the middle of a piece."""
    with muniment.open(tmp_path / "store.db") as mem:
        say(mem, users=1)
        watch, chore = UpkeepWatch(mem._ctx, ("index",), lease_s=30, every_s=0.02), Endless()
        watch._upkeep._chores = {"index": chore}

        def breaks_off(_going: Any, _timeout: Any = None) -> Any:
            assert chore.began.wait(60)
            raise KeyboardInterrupt

        monkeypatch.setattr(Future, "exception", breaks_off)
        with pytest.raises(KeyboardInterrupt):
            next(watch.reports())
        assert leases(mem) == []


def test_it_stops_between_pieces(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store.db") as mem:
        load(mem)
        upkeep = Upkeep(mem._ctx, ("index",), tenant_id=None, lease_s=1, progress=lambda _: upkeep.stop())
        assert upkeep.run().index == 20
        assert leases(mem) == []
        assert mem.store.overview().unindexed > 0
        assert UPKEEP not in mem.store.tenants()


# -- what heartbeats leave behind -----------------------------------------------------------------------


@pytest.mark.req("UK-04")
def test_heartbeats_leave_no_dead_entry_in_an_index(postgres_dsn: str, postgres_schema: str) -> None:
    """PostgreSQL counts them as heap-only updates: no index has the count, and pruning makes room in the page."""
    beats = 300
    with muniment.open(url_of(postgres_dsn, postgres_schema)) as mem:
        upkeep = Upkeep(mem._ctx, ("index",), tenant_id=None, lease_s=3600)
        names = [f"index:u{number}" for number in range(64)]
        taken = mem._ctx.engine.write("default", lambda tx: take_free(tx, "default", names, "p.1"))
        with upkeep._keeper.holding(taken):
            for _ in range(beats):
                upkeep._keeper.beat()
        upkeep._keeper.close()
    with psycopg.connect(postgres_dsn, autocommit=True) as admin:
        row = admin.execute(
            "SELECT n_tup_upd, n_tup_hot_upd, pg_relation_size(relid) FROM pg_stat_user_tables"
            " WHERE schemaname = %s AND relname = 'leases'",
            (postgres_schema,),
        ).fetchone()
    assert row is not None
    updates, heap_only, size = row
    assert updates == beats * 64
    assert heap_only >= 0.97 * updates
    assert size <= 16 * 8192
