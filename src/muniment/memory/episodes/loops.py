"""Open loops: what was asked and not answered, what was promised and not yet kept, as far as the words show it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muniment.contracts.memory_packet import OpenLoop
from muniment.core.text.analyzer import analyze
from muniment.memory.episodes.turns import ReadTurn, questions_of
from muniment.memory.turns import Turn

__all__ = ["open_loops"]

_DONE = re.compile(
    r"(?i)\b(?:done|booked|sent|found|checked|confirmed|finished|completed|updated|scheduled|called"
    r"|here (?:is|are|it is))\b"
    r"|已经|好了|完成|订好|发了|완료|했습니다|보냈|예약했"
)
_LOOPS_MAX = 5


def open_loops(turns: Sequence[ReadTurn]) -> list[OpenLoop]:
    """Newest last. A user's question stays open until the assistant speaks again; an assistant's until the user does;
    a promise until a later turn of the assistant says it is done and names one of its words."""
    last = {read.turn.role: place for place, read in enumerate(turns)}
    loops: list[OpenLoop] = []
    for place, read in enumerate(turns):
        turn = read.turn
        if turn.role == "user" and place > last.get("assistant", -1):
            loops += [_loop(text, "agent", turn) for text in questions_of(turn)]
        elif turn.role == "assistant":
            if place > last.get("user", -1):
                loops += [_loop(text, "user", turn) for text in questions_of(turn)[-1:]]
            loops += [_loop(text, "agent", turn) for text in read.promises if not _is_kept(text, turns[place + 1 :])]
    return loops[-_LOOPS_MAX:]


def _loop(question: str, owner: str, turn: Turn) -> OpenLoop:
    return OpenLoop.model_validate({"question": question, "owner": owner, "status": "open", "evidence_id": turn.id})


def _is_kept(promise: str, later: Sequence[ReadTurn]) -> bool:
    words = set(analyze(promise))
    said = (read.turn for read in later)
    return any(
        turn.role in ("assistant", "tool") and _DONE.search(turn.text) and words & set(analyze(turn.text))
        for turn in said
    )
