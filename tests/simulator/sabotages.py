"""Faults put into the product by hand: each breaks one promise, and some story must notice.

python tests/simulator/sabotages.py        # which sabotage is noticed, by which seed, in which words
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest import mock

from muniment.core.ports.engine import ScrubReport, Select
from muniment.errors import NotFound
from muniment.handles.run import Run
from muniment.memory._segments import build_segment
from muniment.store import append, reading
from muniment.store.engines.sqlite import SqliteEngine, SqliteReader
from muniment.testing.simulator.simulating import Failure, Tally, acts_named, tell
from muniment.testing.simulator.specimens import open_specimens

SEEDS = 60
ENGINES = ("memory", "sqlite")


class Sabotage(NamedTuple):
    """What is done to the product, the acts among which its trace is looked for, and whether all of it is tested."""

    name: str
    patch: Callable[[], AbstractContextManager[Any]]
    acts: str
    engines: tuple[str, ...] = ENGINES


def _patch(target: str, new: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch(target, new)


@contextmanager
def lost_commits() -> Iterator[None]:
    """Every fifth commit is acknowledged and not made."""
    count = itertools.count(1)
    commit = SqliteEngine._commit

    def forgetful(connection: Any, location: str) -> None:
        if next(count) % 5:
            commit(connection, location)
        else:
            connection.execute("ROLLBACK")

    with mock.patch.object(SqliteEngine, "_commit", staticmethod(forgetful)):
        yield


@contextmanager
def late_commits() -> Iterator[None]:
    """A write is acknowledged before it is committed: with the next call, if there is one."""
    commit, write, read = SqliteEngine._commit, SqliteEngine.write, SqliteEngine._view

    def settle(engine: SqliteEngine) -> None:
        connection = engine._connections._writer
        if connection is not None and connection.in_transaction:
            commit(connection, "")

    def settled_write(self: SqliteEngine, tenant_id: str, work: Any) -> Any:
        settle(self)
        return write(self, tenant_id, work)

    def settled_view(self: SqliteEngine, tenant_id: str) -> Any:
        settle(self)
        return read(self, tenant_id)

    with (
        mock.patch.object(SqliteEngine, "_commit", staticmethod(lambda connection, location: None)),
        mock.patch.object(SqliteEngine, "write", settled_write),
        mock.patch.object(SqliteEngine, "_view", settled_view),
    ):
        yield


@contextmanager
def open_tenants() -> Iterator[None]:
    """An event that is not in this tenant is looked for in the others."""
    get_entry = reading.get_entry

    def anywhere(ctx: Any, tenant_id: str, entry_id: str, user_id: str | None = None) -> Any:
        for each in (tenant_id, *ctx.engine.tenants()):
            try:
                return get_entry(ctx, each, entry_id, user_id)
            except NotFound:
                continue
        raise NotFound("nowhere")

    with mock.patch.object(reading, "get_entry", anywhere):
        yield


@contextmanager
def open_users() -> Iterator[None]:
    """Facts are listed without the condition on the user."""
    with mock.patch(
        "muniment.memory.fact_rows.level_of", lambda scope, level: () if level == "user" else (("id", "=", ""),)
    ):
        yield


@contextmanager
def half_batches() -> Iterator[None]:
    """A batch is written in as many transactions as it has messages."""

    def one_by_one(self: Run, events: Any) -> Any:
        return [self.observe(**event) for event in events]

    with mock.patch.object(Run, "observe_many", one_by_one):
        yield


@contextmanager
def drifting_replay() -> Iterator[None]:
    """What is replayed has a blank more than what was sent."""
    from muniment.handles.memory import Memory

    replay = Memory.replay

    def drifting(self: Memory, build_id: str, *, tenant_id: str = "default") -> Any:
        build = replay(self, build_id, tenant_id=tenant_id)
        return replace(build, packet_bytes=build.packet_bytes + b" ")

    with mock.patch.object(Memory, "replay", drifting):
        yield


@contextmanager
def other_order() -> Iterator[None]:
    """One engine does not keep to the order that was asked for."""
    do = SqliteReader._select

    def turned(self: SqliteReader, op: Select) -> Any:
        rows = do(self, op)
        return rows[::-1] if op.order else rows

    with mock.patch.dict(SqliteReader.ops, {Select: turned}):
        yield


@contextmanager
def unheld_clock() -> Iterator[None]:
    """A clock that stepped back is believed."""

    def believed(ctx: Any, _head: Any, _after: str) -> str:
        return str(ctx.now())

    with mock.patch.object(append, "_recorded_now", believed):
        yield


@contextmanager
def lost_rollback() -> Iterator[None]:
    """The engine keeps what a transaction did that was broken off."""

    def commit(_connections: Any, connection: Any) -> None:
        connection.execute("COMMIT")

    with mock.patch("muniment.store.engines.sqlite.SqliteEngine._roll_back", commit):
        yield


@contextmanager
def other_keys() -> Iterator[None]:
    """The key of an event depends on when it is loaded."""
    numbers = (f"ingest:{number}" for number in itertools.count())
    with mock.patch("muniment.memory.loading.event_key", side_effect=numbers):
        yield


def _clean(*_: Any, **__: Any) -> ScrubReport:
    return ScrubReport(clean=True, vacuumed=False, note="no residue found")


SAYING = "observe,observe_many,observe_tool,record"
FORGETTING = f"{SAYING},remember,correct,compose,search,forget_event,forget_session,forget_user,forget_fact"
SABOTAGES = (
    Sabotage(
        "a forget leaves the index as it was",
        _patch("muniment.memory.index.drop_from_blocks", lambda *_: 0),
        f"{FORGETTING},index",
    ),
    Sabotage(
        "a forget follows no links", _patch("muniment.store.forget._follow_evidence", lambda *_: None), FORGETTING
    ),
    Sabotage(
        "a forget leaves the files as they were",
        _patch("muniment.store.engines._sqlite_residue.confirm", _clean),
        FORGETTING,
    ),
    Sabotage("one tenant reads another's events", open_tenants, f"{SAYING},trespass"),
    Sabotage("one user's facts are listed for another", open_users, f"{SAYING},remember,correct"),
    Sabotage("a commit is acknowledged and not made", lost_commits, SAYING, ("sqlite",)),
    Sabotage("a write is acknowledged before its commit", late_commits, SAYING, ("sqlite",)),
    Sabotage("a batch is several transactions", half_batches, SAYING),
    Sabotage("what was broken off is kept", lost_rollback, SAYING, ("memory",)),
    Sabotage(
        "a repeat is written again",
        _patch("muniment.store.append.written_before", lambda tx, batch: {}),
        "observe,again",
    ),
    Sabotage("a replay is not what was sent", drifting_replay, f"{SAYING},compose,replay"),
    Sabotage("secrets are not redacted", _patch("muniment.store.admission.may_hold_secret", lambda *_: False), SAYING),
    Sabotage(
        "orders from outside are not flagged",
        _patch("muniment.store.admission.reads_like_instructions", lambda *_: False),
        SAYING,
    ),
    Sabotage(
        "altered content is served",
        _patch("muniment.store.ledger.check_content", lambda row: None),
        f"{SAYING},damage_row",
    ),
    Sabotage("a clock that stepped back is believed", unheld_clock, SAYING),
    Sabotage("one engine orders rows otherwise", other_order, f"{SAYING},compose,transfer"),
    Sabotage("a load given again is written again", other_keys, f"{SAYING},load,load_again"),
    Sabotage(
        "turns are indexed by half",
        _patch("muniment.memory.index.build_segment", lambda turns: build_segment(turns[::2])),
        "load,index,search",
    ),
    Sabotage(
        "the watermark goes further than the index",
        _patch("muniment.memory.index.append_block", lambda *_: None),
        "observe,load,index,search",
    ),
)


def noticed(sabotage: Sabotage, seeds: int = SEEDS) -> Failure | None:
    """The first story that notices a sabotage."""
    with open_specimens(sabotage.engines) as opener, sabotage.patch():
        for seed in range(seeds):
            failure = tell(seed, range(1, 15), opener, Tally(), acts_named(sabotage.acts.split(",")))
            if failure is not None:
                return failure
    return None


if __name__ == "__main__":
    for each in SABOTAGES:
        if len(sys.argv) > 1 and not any(word in each.name for word in sys.argv[1:]):
            continue
        found = noticed(each)
        print(
            f"{each.name}: ",
            "NOT NOTICED" if found is None else f"seed {found.seed}, step {found.steps[-1]}: {found.error!s:.160}",
        )
