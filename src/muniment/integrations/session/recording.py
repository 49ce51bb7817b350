"""Record messages in a session, each once: from a list that has grown, was cut or edited, or singly by id.

A list is the conversation as its framework holds it. If it begins with the recorded session, the rest is new; otherwise
it is aligned with the session. Messages with ids are new unless their id is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.core.canonical import digest_of
from muniment.errors import IdempotencyMismatch, InvalidInput, MessagesDiffer
from muniment.integrations.messages import observe_once, once_key
from muniment.integrations.session.alignment import (
    Aligned,
    Recorded,
    align,
    ends_with,
    missing_calls,
    recorded,
    unmade_calls,
)
from muniment.packets.recording import plain_messages
from muniment.store.messages import MessageEvent, read_messages

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.packets.builds import Build
    from muniment.store.ledger import LedgerEntry

__all__ = ["Written", "event_texts", "record_answer", "record_list", "record_named"]

_OTHERWISE = (MessagesDiffer, IdempotencyMismatch, InvalidInput)
"""Errors that mean a list does not continue the recorded session: it was edited; a concurrent call was recorded first;
or it was cut, so that a result lacks its call.
"""


class Written(NamedTuple):
    """The new entries, and the arguments of `compose` that leave out what the list contains."""

    entries: list[LedgerEntry]
    left_out: dict[str, Any]


def record_list(
    mem: Memory,
    run: Run,
    messages: Sequence[Any],
    build: Build | str | None = None,
    *,
    goes_on_from: str | None = None,
) -> Written:
    """Write the new messages of a list, its last answer with its build. With `goes_on_from`, the list only follows
    messages that a server holds.
    """
    if goes_on_from is None:
        try:
            return Written(run.record(messages, build=build), {"exclude_session": True})
        except _OTHERWISE:
            pass
    aligned, entries = _record_new(mem, run, messages, (), build, goes_on_from=goes_on_from)
    if goes_on_from is not None:  # the server adds its messages, which are the whole session
        return Written(entries, {"exclude_session": True})
    return Written(entries, {"exclude": [*aligned.known_ids, *(entry.id for entry in entries)]})


def record_answer(
    mem: Memory,
    run: Run,
    messages: Sequence[Any],
    answer: Sequence[Any],
    build: Build | str | None,
    *,
    goes_on_from: str | None = None,
) -> list[LedgerEntry]:
    """Write the answer to a list, with its build."""
    if goes_on_from is None:
        try:
            return run.record([*messages, *answer], build=build)
        except _OTHERWISE:  # repeated, or after an edit
            pass
    return _record_new(mem, run, messages, answer, build, goes_on_from=goes_on_from)[1]


def record_named(
    mem: Memory, run: Run, messages: Sequence[Any], ids: Sequence[str], build: Build | str | None = None
) -> list[LedgerEntry]:
    """Write messages under their framework's ids, each once however often it is passed. The caller's own prompts are
    left out. Returns the entries of all of them.
    """
    plain = plain_messages(messages)
    if len(ids) != len(plain):
        raise InvalidInput(f"{len(plain)} messages have {len(ids)} ids", path="$.ids", hint="one id for each message")
    events = _read(mem, run, plain)
    place, nth, drafts = run.scope.session_id, dict.fromkeys(range(len(plain)), 0), []
    for each in events:
        if not each.is_prompt:
            said = [each.event["role"], each.event["content"], nth[each.at]]
            drafts.append({**each.event, "idempotency_key": once_key(place, ids[each.at], each.at, said)})
            nth[each.at] += 1
    return observe_once(run, _with_build(drafts, build))


def event_texts(messages: Sequence[Any]) -> list[str]:
    """The texts of a list, as they are recorded."""
    plain = plain_messages(messages)
    return [each.event["content"] for each in read_messages([*unmade_calls(plain), *plain])]


def _read(mem: Memory, run: Run, plain: Sequence[Mapping[str, Any]]) -> list[MessageEvent]:
    """Read a stretch of the conversation as events. Earlier calls are looked up in the session; one that was never
    recorded gets the name in its result.
    """
    unmade = unmade_calls(plain)
    if unmade:
        made = {call["call_id"]: call for call in missing_calls(_known(mem, run), plain)}
        unmade = [made.get(call["call_id"], call) for call in unmade]
    return [each._replace(at=each.at - len(unmade)) for each in read_messages([*unmade, *plain])[len(unmade) :]]


def _known(mem: Memory, run: Run) -> list[Recorded]:
    scope = run.scope
    entries = mem.ledger.entries(user_id=scope.user_id, session_id=scope.session_id, tenant_id=scope.tenant_id)
    return recorded(entries, run.ledger.content)


def _record_new(
    mem: Memory,
    run: Run,
    messages: Sequence[Any],
    answer: Sequence[Any],
    build: Build | str | None = None,
    *,
    goes_on_from: str | None = None,
) -> tuple[Aligned, list[LedgerEntry]]:
    """Write messages the session lacks or, with an answer, only that; return the alignment and the entries written."""
    known = _known(mem, run)
    plain = plain_messages([*messages, *answer])
    before = missing_calls(known, plain)
    events = read_messages([*before, *plain])
    if answer:
        first = len(before) + len(messages)
        said = [each for each in events if each.at >= first]
        asked = [each for each in events if each.at < first and not each.is_prompt][-1:]
        new = Aligned([], [] if ends_with(known, [*asked, *said]) else said)  # the same question and answer, repeated
    elif goes_on_from is not None:
        sent = [each for each in events if each.at >= len(before)]
        new = Aligned([], [] if ends_with(known, sent) else sent)  # resent after a failure
    else:
        new = align(known, [each for each in events if each.at >= len(before)])
    prompts = [plain[each.at - len(before)] for each in events if each.at >= len(before) and each.is_prompt]
    written = run.record(prompts) if prompts else []
    turns = [each for each in new.new if not each.is_prompt]
    after = goes_on_from or (known[-1].id if known else None)
    drafts = [dict(turn.event) for turn in turns] if answer else _drafts(turns, after, events)
    return new, [*written, *run.observe_many(_with_build(drafts, build))]


def _drafts(turns: Sequence[MessageEvent], after: str | None, events: Sequence[MessageEvent]) -> list[dict[str, Any]]:
    """Events to write. A key made from the preceding events ensures that a list sent twice at once is written once."""
    drafts = []
    for turn in turns:
        led_by = [after, *(each.event for each in events if each.at <= turn.at), turn.event]
        drafts.append({**turn.event, "idempotency_key": f"wrap:{digest_of(led_by)[:40]}"})
    return drafts


def _with_build(drafts: Iterable[dict[str, Any]], build: Build | str | None) -> list[dict[str, Any]]:
    """The events, with the build set on the last answer."""
    found = list(drafts)
    said = [draft for draft in found if draft["role"] == "assistant"]
    if said and build is not None:
        said[-1]["build"] = build
    return found
