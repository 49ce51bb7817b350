"""What a framework sends of a conversation by itself, so that a packet need not tell it again.

The latest messages of a session go to the model as they are. A packet composed beside them leaves their events out: of
a session that is sent whole all of it, of one that was cut what is sent, so that what was cut can be told. It stands
before the last question, behind everything that was sent before: a provider's cache keeps the longest prefix that two
requests share, and a packet differs from question to question.
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
"""How many of a run's latest entries are looked at at least; of a longer history, four for each text."""
_TURNS = ("message", "tool_result")


def compose_beside(run: Run, texts: Iterable[str], *, query: str, max_tokens: int) -> str:
    """The text of a packet for a question, without what these texts say, which are sent beside it; empty where memory
    holds nothing else.
    """
    left = _left_out(run, texts, lambda limit: run.ledger.entries(order="desc", limit=limit))
    return run.compose("responder", query=query, max_tokens=max_tokens, **left).text


def left_out(mem: Memory, run: Run, texts: Iterable[str]) -> dict[str, Any]:
    """What a packet leaves out, since these texts of the session say it: arguments of `compose`."""
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
    """A text as the ledger holds it, which took its secrets out at the door."""
    return str(redact_value(text, Counter()))


def cut_in_steps(count: int, count_max: int) -> int:
    """How many of so many messages to leave out in front, where at most `count_max` are to stay.

    It goes in steps of half of that, so that the front of what is sent stays the same for a while: a cut that moves
    with every message changes every request from its beginning.
    """
    over = count - count_max
    step = max(1, count_max // 2)
    return 0 if over <= 0 else min(count, -(-over // step) * step)
