"""The way back out: a portable file as other systems and people take it.

`mem0`: a line for each call of mem0's `add`, with `infer` false, so that no model words it anew. `list`: a Markdown
list of what holds, as assistants take one. `dossier`: a Markdown page for a person, with what each line rests on.
What a form has no place for is not in it; the portable file has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from muniment.contracts.portable import PortableFact, PortableMemory, PortableMessage, PortableSession
from muniment.core.canonical import canonical_bytes, canonical_text
from muniment.errors import InvalidInput
from muniment.moving.records import Carried, Found

__all__ = ["FORMS", "Form", "convert"]

Form = Literal["portable", "mem0", "list", "dossier"]
FORMS: tuple[Form, ...] = ("portable", "mem0", "list", "dossier")
_TURNS_MAX = 50
"""So many messages of a conversation go into one call of mem0's `add`."""


def convert(items: Iterable[Found], form: str) -> Iterator[bytes]:
    """The lines of a form other than the portable one."""
    if form == "mem0":
        return _mem0(items)
    if form == "list":
        return _listed(items)
    if form == "dossier":
        return _dossier([found.item for found in items])
    raise InvalidInput(f"{form!r:.40} is not a form", path="$.form", hint=f"one of {', '.join(FORMS)}")


def _holds(fact: PortableFact) -> bool:
    return fact.status == "active" and fact.ended_at is None


def _value(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else canonical_text(value)


def _since(fact: PortableFact) -> str:
    return min(assertion.valid_from or assertion.since for assertion in fact.assertions)[:10]


# -- mem0 ---------------------------------------------------------------------------------------------


def _mem0(items: Iterable[Found]) -> Iterator[bytes]:
    """The arguments of `add`: conversations in stretches, facts and memories one by one."""
    turns: list[PortableMessage] = []
    user_id = None
    for found in items:
        item, user_id = found.item, found.user
        turn = item if isinstance(item, PortableMessage) and item.role in ("user", "assistant") else None
        if turns and (turn is None or len(turns) >= _TURNS_MAX or turns[-1].session_id != turn.session_id):
            yield _conversation(turns, user_id)
            turns = []
        if turn is not None:
            turns.append(turn)
        elif isinstance(item, PortableFact) and _holds(item):
            said = {"fact_id": item.id, "key": item.key, "since": _since(item)}
            yield _call([{"role": "user", "content": f"{item.key}: {_value(item.value)}"}], said, user_id)
        elif isinstance(item, PortableMemory) and item.origin.valid_to is None:
            said = {"memory_id": item.id, "system": item.origin.system, "since": item.ts[:10]}
            yield _call([{"role": "user", "content": item.text}], said, user_id)
    if turns:
        yield _conversation(turns, user_id)


def _call(messages: list[dict[str, Any]], metadata: dict[str, Any], user_id: str | None) -> bytes:
    said = {"messages": messages, "user_id": user_id, "infer": False, "metadata": metadata}
    return canonical_bytes(said) + b"\n"


def _conversation(turns: list[PortableMessage], user_id: str | None) -> bytes:
    messages = [{"role": turn.role, "content": turn.content} for turn in turns]
    return _call(messages, {"session_id": turns[0].session_id, "since": turns[0].ts[:10]}, user_id)


# -- Markdown -----------------------------------------------------------------------------------------


def _listed(items: Iterable[Found]) -> Iterator[bytes]:
    for found in items:
        item = found.item
        if isinstance(item, PortableFact) and _holds(item):
            yield f"- [{_since(item)}] {item.key}: {_value(item.value)}\n".encode()
        elif isinstance(item, PortableMemory) and item.origin.valid_to is None:
            yield f"- [{item.ts[:10]}] {_value(item.text)} (from {item.origin.system})\n".encode()


def _dossier(items: list[Carried]) -> Iterator[bytes]:
    said = {item.id: item for item in items if isinstance(item, PortableMessage | PortableMemory)}
    facts = [item for item in items if isinstance(item, PortableFact)]
    memories = [item for item in items if isinstance(item, PortableMemory)]
    yield b"# What is remembered\n"
    if facts:
        yield b"\n## Facts\n\n"
    for fact in sorted(facts, key=lambda each: not _holds(each)):
        yield from _fact_lines(fact, said)
    if memories:
        yield b"\n## Notes of other systems\n\n"
    for memory in memories:
        until = f", held until {memory.origin.valid_to[:10]}" if memory.origin.valid_to else ""
        yield f"- {memory.ts[:10]}, {memory.origin.system}{until}: {_value(memory.text)}\n".encode()
    spoken = {item.session_id for item in items if isinstance(item, PortableMessage)}
    for item in items:
        if isinstance(item, PortableSession) and item.session_id in spoken:
            title = f": {_value(item.title)}" if item.title else ""
            yield f"\n## Conversation {_value(item.session_id)}{title}\n\n".encode()
        elif isinstance(item, PortableMessage):
            origin = "" if item.origin is None else f", imported from {item.origin.system}"
            text, who = "\n  ".join(item.content.splitlines()), _value(item.speaker or item.role)
            yield f"- {item.ts[:16].replace('T', ' ')} **{who}**{origin}: {text}\n".encode()


def _fact_lines(fact: PortableFact, said: dict[str, PortableMessage | PortableMemory]) -> Iterator[bytes]:
    ended = f", until {fact.ended_at[:10]}" if fact.ended_at else ""
    state = "" if fact.status == "active" else f", {'taken back' if fact.is_retracted else fact.status}"
    yield f"- **{fact.key}**: {_value(fact.value)} (since {_since(fact)}{ended}{state})\n".encode()
    for source in dict.fromkeys(source for each in fact.assertions for source in each.sources):
        item = said.get(source)
        if item is not None:
            text = item.content if isinstance(item, PortableMessage) else item.text
            shown = _value(text)
            shown = shown if len(shown) <= 200 else shown[:199] + "…"
            yield f"  - {item.ts[:10]}: “{shown}” ({source})\n".encode()
