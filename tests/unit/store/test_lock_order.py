"""Locks are taken in one order by all who write: of sessions, then of memory, and then of what users share.

Two who take them in different orders wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dump_lines import dump_of
from muniment.core.ports.engine import Lock, LockAll
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


@pytest.mark.parametrize("doing", [_shared, _imported, _forgotten])
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
