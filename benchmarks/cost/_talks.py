"""Conversations to bill: real chats, labelled stores and made-up tool runs, each over a memory of what was said before.

Of a data set, sessions without gold turns are the live chat and all others are memory. Every fourth turn of the live
chat is one of the set's questions, answered with the set's answer; so a quarter of the turns need memory, which is more
than most chats do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.data import Question, Scope, Turn, pooled, sessions_of
from benchmarks.truth._stores import Store, load_stores

__all__ = ["SETS", "Ask", "Talk", "talks"]

SETS = ("longmemeval", "beam_100k", "locomo", "realtalk", "truth", "tools")
EVERY = 4
"""One turn in so many is a question to memory."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of a conversation."""

    turn: int
    """The user's turn it belongs to, from 0."""
    question: int
    """Which message is the question."""
    upto: int
    """How many messages are sent."""
    text: str
    needs: tuple[Any, ...] = ()
    is_met: Callable[[set[str], str], bool] = lambda _shown, _context: True


@dataclass(frozen=True, slots=True)
class Talk:
    set: str
    name: str
    now: datetime
    load: Callable[[Any], dict[str, str]]
    """Fills a store, and says which turn an event is."""
    messages: tuple[dict[str, Any], ...]
    asks: tuple[Ask, ...]

    def before(self, ask: Ask) -> tuple[str, ...]:
        """What the caller sends, text by text."""
        return tuple(str(each["content"]) for each in self.messages[: ask.upto])


def talks(name: str, data: Path, turns: int, limit: int) -> Iterator[Talk]:
    if name == "tools":
        yield from (_tool_run(number, turns) for number in range(limit))
    elif name == "truth":
        stores = [store for store in load_stores("development", data) if store.is_written and store.language == "en"]
        yield from (_of_store(store, turns) for store in stores[:limit])
    else:
        yield from (_of_scope(name, scope, turns) for scope in pooled(data, name)[:limit])


# -- data sets ---------------------------------------------------------------------------------------------


def _of_scope(name: str, scope: Scope, turns: int) -> Talk:
    session_of = {turn.id: turn.session for turn in scope.turns}
    asked = [each for each in scope.questions if each.answerable and each.gold]
    gold = Counter(session_of[id_] for each in asked for id_ in each.gold if id_ in session_of)
    sessions = sessions_of(scope.turns)
    live: list[str] = []
    pairs: list[tuple[str, str]] = []
    for session in sorted(sessions, key=lambda each: (gold[each], -sessions.index(each))):
        if len(pairs) >= turns or len(live) >= len(sessions) // 2:
            break
        live.append(session)
        said = [turn.text for turn in scope.turns if turn.session == session]
        pairs += zip(said[::2], said[1::2], strict=False)
    questions = [each for each in asked if not any(session_of.get(id_) in live for id_ in each.gold)]
    memory = [turn for turn in scope.turns if turn.session not in live]
    messages, asks = _interleaved(pairs, questions, turns)
    now = max(turn.said_at for turn in scope.turns) + timedelta(days=1)
    return Talk(name, scope.name, now, lambda mem: _loaded(mem, memory), messages, asks)


def _interleaved(
    pairs: list[tuple[str, str]], questions: list[Question], turns: int
) -> tuple[tuple[dict[str, Any], ...], tuple[Ask, ...]]:
    messages: list[dict[str, Any]] = []
    asks: list[Ask] = []
    left, more = iter(questions), iter(pairs)
    for turn in range(turns):
        question = next(left, None) if turn % EVERY == EVERY - 1 else None
        pair = None if question is not None else next(more, None)
        if question is None and pair is None:
            question = next(left, None)
        if question is not None:
            said, answer = question.text, (question.answers or ("I am not sure.",))[0]
        elif pair is not None:
            said, answer = pair
        else:
            break
        messages.append({"role": "user", "content": said or "…"})
        needs = tuple(sorted(question.gold)) if question is not None else ()
        asks.append(Ask(turn, len(messages) - 1, len(messages), said or "…", needs, _any_of(needs)))
        messages.append({"role": "assistant", "content": answer or "…"})
    return tuple(messages), tuple(asks)


def _any_of(needs: tuple[str, ...]) -> Callable[[set[str], str], bool]:
    return lambda shown, _context: bool(shown & set(needs))


def _loaded(mem: Any, turns: list[Turn]) -> dict[str, str]:
    turn_of: dict[str, str] = {}
    for session, said in groupby(turns, key=lambda turn: turn.session):
        held = list(said)
        drafts = [
            {
                "role": turn.role if turn.role in ("user", "assistant") else "user",
                "content": turn.text or "…",
                "ts": turn.said_at.isoformat(),
                **({"speaker": turn.speaker} if turn.speaker and turn.role == "user" else {}),
            }
            for turn in held
        ]
        entries = mem.run(user_id="user", session_id=f"earlier {session}").observe_many(drafts)
        turn_of |= {entry.id: turn.id for entry, turn in zip(entries, held, strict=True)}
    return turn_of


# -- labelled stores -----------------------------------------------------------------------------------------

_TASKS = ("Write an alt text for the third picture.", "Shorten this by a third, please.", "Give me a title for it.",
          "And a version for the newsletter?", "Turn the list into a table.", "Check the spelling of the last one.",
          "What is the German word for that?")  # fmt: skip
_REPLY = (
    "Here is a version of it. I kept the order of the points, made the sentences shorter and left out what was said "
    "twice. The second paragraph now begins with the result, and the example stands behind it instead of before it. "
    "If you prefer the longer opening, say so and I will put it back. I have not changed any of the figures. "
)


def _of_store(store: Store, turns: int) -> Talk:
    """The requests of a labelled store among small tasks that need nothing."""
    wanted = [each for each in store.requests if each.crucial or each.helpful]
    messages: list[dict[str, Any]] = []
    asks: list[Ask] = []
    for turn in range(turns):
        request = wanted[turn // EVERY % len(wanted)] if turn % EVERY == EVERY - 1 else None
        text = _TASKS[turn % len(_TASKS)] if request is None else request.text
        messages.append({"role": "user", "content": text})
        groups = () if request is None else request.crucial or request.helpful
        if request is not None and turn // EVERY >= len(wanted):
            groups = ()  # asked before, and in view
        asks.append(Ask(turn, len(messages) - 1, len(messages), text, groups, _all_groups(store, groups)))
        messages.append({"role": "assistant", "content": f"{turn}: {_REPLY * 2}"})
    now = datetime.fromisoformat(store.now)
    held = [
        Turn(each.id, each.session, each.speaker or "", each.role, datetime.fromisoformat(each.ts), each.text)
        for each in store.turns
    ]
    return Talk("truth", store.id, now, lambda mem: _loaded(mem, held), tuple(messages), tuple(asks))


def _all_groups(store: Store, groups: tuple[tuple[str, ...], ...]) -> Callable[[set[str], str], bool]:
    """Of each group one statement is conveyed: its turn is cited, and its keys stand in the text."""

    def is_conveyed(id_: str, shown: set[str], context: str) -> bool:
        statement = store.statements[id_]
        return statement.turn in shown and all(key in context for key in statement.keys)

    def is_met(shown: set[str], context: str) -> bool:
        return all(any(is_conveyed(id_, shown, context) for id_ in group) for group in groups)

    return is_met


# -- tool runs -------------------------------------------------------------------------------------------------

_STEPS = 5
_FACTS = (
    "The staging database is called heron and is rebuilt every night.",
    "Deploys to production need the flag --confirm-eu.",
    "I want every migration to have a rollback script.",
    "Never touch the invoices table without asking me.",
    "The smoke tests live in checks/smoke.",
    "Our API limits are 40 calls a minute for each key.",
)


def _tool_run(number: int, turns: int) -> Talk:
    """An agent that calls tools, some steps to a question; each step is a request that re-sends everything."""
    messages: list[dict[str, Any]] = []
    asks: list[Ask] = []
    for turn in range(max(4, turns // _STEPS)):
        fact = turn % len(_FACTS)
        text = f"Task {number}.{turn}: look into {_FACTS[fact].split()[-2]} and prepare the next deploy step."
        question = len(messages)
        messages.append({"role": "user", "content": text})
        for step in range(_STEPS):
            asks.append(Ask(turn * _STEPS + step, question, len(messages), text))
            if step == _STEPS - 1:
                messages.append({"role": "assistant", "content": f"Step {turn} is prepared. {_REPLY}"})
                break
            id_ = f"c{turn}-{step}"
            call = {"id": id_, "type": "function", "function": {"name": "read", "arguments": f'{{"part": {step}}}'}}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            result = f"part {step} of {turn}: " + " ".join(f"line {line} ok;" for line in range(60))
            messages.append({"role": "tool", "tool_call_id": id_, "content": result})
    now = datetime(2026, 11, 2, 9, tzinfo=UTC)
    said = [
        Turn(f"f{at}", f"{at}", "", "user", now - timedelta(days=30 - at), text)
        for at, text in enumerate((*_FACTS, *(f"Note {note}: {task}" for note, task in enumerate(_TASKS * 6))))
    ]
    return Talk("tools", str(number), now, lambda mem: _loaded(mem, said), tuple(messages), tuple(asks))
