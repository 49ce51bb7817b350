"""Locks are taken in one order by all who write: of sessions, then of memory, and then of what users share. Of sessions
those of users come first, then those of banks and corpora, each by their names.

Two who take them in different orders wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dump_lines import dump_of
from muniment.core.ports.engine import Advance, Lock, LockAll
from muniment.handles.memory import Memory

Maker = Callable[..., Memory]
RANKS = {"session": 0, "memory": 1}


class _Watched:
    """A transaction that tells which locks it was asked for."""

    def __init__(self, tx: Any, locks: list[tuple[str, ...]]) -> None:
        self._tx, self._locks = tx, locks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def do(self, op: Any) -> Any:
        if isinstance(op, Lock | LockAll):
            self._locks += op.names if isinstance(op, LockAll) else [op.parts]
        if isinstance(op, Advance):  # whoever advances a user's row holds it
            self._locks += [("user", str(row[0])) for row in op.rows]
        return self._tx.do(op)


def _watch(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[str, ...]]]:
    """The locks of each transaction from now on, in order, each once."""
    engine, seen = mem._ctx.engine, list[list[tuple[str, ...]]]()
    write = type(engine).write

    def watched(self: Any, tenant_id: str, work: Any) -> Any:
        locks: list[tuple[str, ...]] = []
        done = write(self, tenant_id, lambda tx: work(_Watched(tx, locks)))
        seen.append(list(dict.fromkeys(locks)))
        return done

    monkeypatch.setattr(type(engine), "write", watched)
    return seen


def _shared(run: Any, mem: Memory, make: Maker) -> None:
    said = run.observe("user", "We ship on Fridays.")
    run.remember("team.ship_day", "Friday", sources=[said.id], scope_level="tenant")


def _imported(run: Any, mem: Memory, make: Maker) -> None:
    source = make("memory", seed="another")
    for session in ("t1", "t2"):
        other = source.run(user_id="ben", session_id=session, grants=("tenant",))
        _shared(other, source, make)
    mem.import_(dump_of(source))


def _forgotten(run: Any, mem: Memory, make: Maker) -> None:
    for number in range(70):
        run.observe("user", f"Word {number}.")
    mem.forget(user_id="ana")


_INTENT = {"domain_tag": "shop", "task_family": "lookup"}


def _learnt(run: Any, mem: Memory, make: Maker) -> None:
    """A run of a user whose name comes after those of the banks that it tells."""
    for bank in (mem.bank(agent_id="clerk"), mem.bank()):
        bank.add_lesson("Look the order up by number", when="an order is asked for", intent=_INTENT)
    for session in ("s1", "s2"):
        work = mem.run(user_id="zoe", agent_id="clerk", session_id=session)
        work.observe("user", "Find order 1.")
        work.learning.recall("Find order 1.", intent=_INTENT, sources=["ReuseBuffer"])
        work.finish(verifier_result={"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}, intent=_INTENT)


def _moved(run: Any, mem: Memory, make: Maker) -> None:
    source = make("memory", seed="another")
    _kept(source)
    _learnt(run, source, make)
    mem.import_(dump_of(source))


def _kept(mem: Memory) -> None:
    mem.corpus("notes").add("# A note\n\nOrders are looked up by number.", document_id="a")
    mem.store.values("settings", user_id="abe").put([{"namespace": ["ui"], "key": "colour", "value": {"is": "blue"}}])


def _rebuilt(run: Any, mem: Memory, make: Maker) -> None:
    _kept(mem)
    _learnt(run, mem, make)
    mem.store.rebuild()


@pytest.mark.parametrize("doing", [_learnt, _moved, _rebuilt])
def test_sessions_of_users_are_locked_before_those_of_banks_and_corpora(
    make: Maker, monkeypatch: pytest.MonkeyPatch, doing: Callable[[Any, Memory, Maker], None]
) -> None:
    mem = make("sqlite")
    run = mem.run(user_id="ana", session_id="s1")
    seen = _watch(mem, monkeypatch)
    doing(run, mem, make)
    places = [[(owner, session) for _, owner, session in locks] for locks in _of_sessions(seen)]
    assert any({"zoe"} < {owner for owner, _ in each} for each in places), "several owners in one transaction"
    for each in places:
        assert each == sorted(each, key=lambda place: (place[0].startswith(("bank:", "corpus:")), place))


@pytest.mark.parametrize("doing", [_learnt, _moved, _rebuilt])
def test_rows_of_users_are_held_in_the_order_of_their_sessions(
    make: Maker, monkeypatch: pytest.MonkeyPatch, doing: Callable[[Any, Memory, Maker], None]
) -> None:
    mem = make("sqlite")
    run = mem.run(user_id="ana", session_id="s1")
    seen = _watch(mem, monkeypatch)
    doing(run, mem, make)
    held = [[lock[1] for lock in locks if lock[0] == "user"] for locks in seen]
    assert any(len(each) > 1 for each in held), "several users in one transaction"
    for each in held:
        assert each == sorted(each, key=lambda name: (name.startswith(("bank:", "corpus:")), name))


def _of_sessions(seen: list[list[tuple[str, ...]]]) -> list[list[tuple[str, ...]]]:
    return [[lock for lock in locks if lock[0] == "session"] for locks in seen]


@pytest.mark.soak
@pytest.mark.parametrize("doing", [_shared, _imported, _forgotten, _learnt, _moved])
def test_locks_are_taken_in_one_order(
    make: Maker, monkeypatch: pytest.MonkeyPatch, doing: Callable[[Any, Memory, Maker], None]
) -> None:
    mem = make("sqlite")
    run = mem.run(user_id="ana", session_id="s1", grants=("tenant",))
    seen = _watch(mem, monkeypatch)
    doing(run, mem, make)
    ranked = [[RANKS[name] for name, *_ in locks if name in RANKS] for locks in seen]
    assert any(1 in ranks for ranks in ranked)
    for ranks, locks in zip(ranked, seen, strict=True):
        assert ranks == sorted(ranks), locks
