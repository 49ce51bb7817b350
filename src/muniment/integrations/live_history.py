"""Find the part of a conversation that a framework sends itself, so that a packet need not repeat it.

The latest messages of a session go to the model unchanged. A packet for the same request leaves their events out: the
whole session if it is sent whole, or the part sent if it was cut, so that the packet can cover the rest. It goes before
the last question, after everything sent before: a provider's cache keeps the longest common prefix of two requests, and
a packet differs from question to question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from muniment.store.secrets import redact_value

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.store.ledger import LedgerEntry

__all__ = ["compose_beside", "cut_in_steps", "left_out"]

_LOOKED_AT = 400
"""Minimum number of a run's latest entries that are examined; for a longer history, four per text."""
_TURNS = ("message", "tool_result")


def compose_beside(run: Run, texts: Iterable[str], *, query: str, max_tokens: int) -> str:
    """Text of a packet for a question, without these texts, which are sent anyway; empty if memory holds
    nothing else.
    """
    left = _left_out(run, texts, lambda limit: run.ledger.entries(order="desc", limit=limit))
    return run.compose("responder", query=query, max_tokens=max_tokens, **left).text


def left_out(mem: Memory, run: Run, texts: Iterable[str]) -> dict[str, Any]:
    """Arguments of `compose` that leave out these texts of the session."""
    scope = run.scope

    def latest(limit: int) -> Iterable[LedgerEntry]:
        return mem.ledger.entries(
            user_id=scope.user_id, session_id=scope.session_id, tenant_id=scope.tenant_id, order="desc", limit=limit
        )

    return _left_out(run, texts, latest)


def _left_out(run: Run, texts: Iterable[str], latest: Callable[[int], Iterable[LedgerEntry]]) -> dict[str, Any]:
    sent = {_kept(text) for text in texts if text}
    limit = max(_LOOKED_AT, 4 * len(sent))
    entries = list(latest(limit))
    turns = [entry for entry in entries if entry.kind in _TURNS and not entry.is_forgotten]
    known = [
        entry.id
        for entry in turns
        if (entry.content if entry.content is not None else run.ledger.content(entry.id)) in sent
    ]
    is_whole = len(known) == len(turns) and len(entries) < limit
    return {"exclude_session": True} if is_whole else {"exclude": known}


def _kept(text: str) -> str:
    """A text as stored in the ledger, with secrets redacted."""
    return str(redact_value(text, Counter()))


def cut_in_steps(count: int, count_max: int) -> int:
    """Number of leading messages to leave out, so that at most `count_max` remain.

    The cut moves in steps of half of that, so that the beginning of the request stays the same for a while: a cut that
    moves with every message changes every request from its start.
    """
    over = count - count_max
    step = max(1, count_max // 2)
    return 0 if over <= 0 else min(count, -(-over // step) * step)
