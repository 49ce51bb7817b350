"""Open loops: what was asked in earnest and not answered yet, as far as the words show it."""

from __future__ import annotations

from collections.abc import Sequence

from muniment.contracts.packet import OpenLoop
from muniment.core.text.sentences import with_marks
from muniment.memory.episodes.questions import puts_off, real_questions, takes_back
from muniment.memory.episodes.turns import ReadTurn
from muniment.memory.turns import Turn

__all__ = ["open_loops"]

_LOOPS_MAX = 5


def open_loops(turns: Sequence[ReadTurn]) -> list[OpenLoop]:
    """Newest last. A question stays open until the other side says something that does not put it off, or who asked it
    takes it back. What a tool answers is no answer yet, and a promise is no question."""
    asked: list[tuple[str, OpenLoop]] = []
    for turn in (read.turn for read in turns):
        if turn.role not in ("user", "assistant"):
            continue
        if asked and not puts_off(turn.text):
            asked = [(who, loop) for who, loop in asked if who == turn.role]
        if asked and turn.role == "user" and takes_back(turn.text):
            asked = []
        by_assistant = turn.role == "assistant"
        questions = real_questions(turn.text, of_assistant=by_assistant)
        # An assistant that asks several things at once has asked the last: the others lead up to it.
        asked += [(turn.role, _loop(text, turn)) for text in (questions[-1:] if by_assistant else questions)]
    return [loop for _, loop in asked[-_LOOPS_MAX:]]


def _loop(question: str, turn: Turn) -> OpenLoop:
    owner = "agent" if turn.role == "user" else "user"
    question = with_marks(question, turn.cited or {})
    return OpenLoop.model_validate({"question": question, "owner": owner, "status": "open", "evidence_id": turn.id})
