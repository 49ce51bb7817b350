"""Open loops: what was asked and not answered, what was promised and not yet kept, as far as the words show it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muniment.prompts.sentences import sentence_spans
from muniment.records.packet import OpenLoop
from muniment.records.pool import Turn
from muniment.text.analyzer import analyze

__all__ = ["open_loops"]

_PROMISE = re.compile(
    r"(?i)^(?:ok(?:ay)?[,.!]?\s+|sure[,.!]?\s+|yes[,.!]?\s+)?(?:i['’]ll|i will|let me|i['’]m going to)\s+"
    r"(?:check|look|find|get back|send|book|call|ask|follow|confirm|update|prepare|write|remind|let you know|schedule)"
    r"|^(?:好的?[,，]?)?我(?:会|来|去|马上)(?:查|看|问|找|发|订|联系|确认|提醒|准备)"
    r"|(?:확인|연락|예약|준비|전달|안내|알려)(?:해)?\s?(?:드리겠|할게|드릴게|보겠)"
)
_DONE = re.compile(
    r"(?i)\b(?:done|booked|sent|found|checked|confirmed|finished|completed|updated|scheduled|called"
    r"|here (?:is|are|it is))\b"
    r"|已经|好了|完成|订好|发了|완료|했습니다|보냈|예약했"
)
_LOOPS_MAX = 5


def open_loops(turns: Sequence[Turn]) -> list[OpenLoop]:
    """Newest last. A user's question stays open until the assistant speaks again; an assistant's until the user does;
    a promise until a later turn of the assistant says it is done and names one of its words."""
    loops: list[OpenLoop] = []
    for place, turn in enumerate(turns):
        later = turns[place + 1 :]
        if turn.role == "user" and not any(other.role == "assistant" for other in later):
            loops += [_loop(text, "agent", turn) for text in _questions(turn.text)]
        elif turn.role == "assistant":
            if not any(other.role == "user" for other in later):
                loops += [_loop(text, "user", turn) for text in _questions(turn.text)[-1:]]
            loops += [_loop(text, "agent", turn) for text in _promises(turn.text) if not _is_kept(text, later)]
    return loops[-_LOOPS_MAX:]


def _loop(question: str, owner: str, turn: Turn) -> OpenLoop:
    return OpenLoop.model_validate({"question": question, "owner": owner, "status": "open", "evidence_id": turn.id})


def _questions(text: str) -> list[str]:
    found = (text[start:end] for start, end in sentence_spans(text))
    return [sentence for sentence in found if sentence.rstrip("\"'”’)").endswith(("?", "？")) and len(sentence) <= 300]


def _promises(text: str) -> list[str]:
    found = (text[start:end] for start, end in sentence_spans(text))
    return [sentence for sentence in found if len(sentence) <= 300 and _PROMISE.search(sentence)]


def _is_kept(promise: str, later: Sequence[Turn]) -> bool:
    words = set(analyze(promise))
    return any(
        turn.role in ("assistant", "tool") and _DONE.search(turn.text) and words & set(analyze(turn.text))
        for turn in later
    )
