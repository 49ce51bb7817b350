"""Record lists of messages in the ledger, each message once: find the new part of a grown list, and differences
(TM-09).

A message's position in its session's conversation is its idempotency key. A recorded list that has grown writes only
the new messages; an edited one writes nothing and reports the position. The caller's own prompts (system and developer
messages) have no position: each is recorded once per distinct text, unless it is one of our packets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import canonical_text, digest_of
from muniment.core.scope import Scope
from muniment.errors import InvalidInput, MessagesDiffer, MunimentError
from muniment.packets.page import PAGE_SIGN
from muniment.store.append import KeyMatch, match_keys
from muniment.store.context import Context
from muniment.store.ledger import draft_of
from muniment.store.messages import MessageEvent, read_messages
from muniment.store.reading import content_of, get_entry

if TYPE_CHECKING:
    from muniment.store.ledger import Cited, EntryDraft

__all__ = ["last_answer", "message_drafts", "new_drafts", "plain_messages"]

_SHOWN_MAX = 200


def plain_messages(messages: Any) -> list[Mapping[str, Any]]:
    """Convert messages, including those of client libraries, to plain objects."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise InvalidInput(
            "record takes a list of messages", path="$", hint="wrap a single message in a list; observe takes a text"
        )
    return [_plain(message, f"$[{index}]") for index, message in enumerate(messages)]


def _plain(message: Any, path: str) -> Mapping[str, Any]:
    if isinstance(message, Mapping):
        return {key: _plain_part(value) for key, value in message.items()}
    dumped = _dumped(message)
    if dumped is None:
        raise InvalidInput(
            f"a message should be an object, found {type(message).__name__}",
            path=path,
            hint='such as {"role": "user", "content": "…"}',
        )
    return dumped


def _plain_part(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain_part(each) for each in value]
    dumped = None if isinstance(value, Mapping) else _dumped(value)
    return value if dumped is None else dumped


def _dumped(value: Any) -> Mapping[str, Any] | None:
    """The plain form of a client library's object, if it provides one."""
    dump = getattr(value, "model_dump", None)
    dumped = dump(mode="json", exclude_unset=True) if callable(dump) else None
    return dumped if isinstance(dumped, Mapping) else None


def new_drafts(ctx: Context, scope: Scope, messages: Any) -> list[EntryDraft]:
    """Drafts of the messages not yet recorded in this session; `MessagesDiffer` if one was changed."""
    events = _events(messages)
    drafts = _drafts(events, scope.session_id)
    found = ctx.engine.read(scope.tenant_id, lambda reader: match_keys(reader, scope, drafts))
    for event, match in zip(events, found, strict=True):
        if match.entry_id is not None and not match.is_same:
            raise _differs(ctx, scope, event, match)
    return [draft for draft, match in zip(drafts, found, strict=True) if match.entry_id is None]


def message_drafts(messages: Any, session_id: str) -> list[EntryDraft]:
    """Drafts of all these messages, each keyed by its position in the session's conversation."""
    return _drafts(_events(messages), session_id)


def _drafts(events: list[MessageEvent], session_id: str) -> list[EntryDraft]:
    return [_draft(event, key) for event, key in zip(events, _keys(session_id, events), strict=True)]


def _events(messages: Any) -> list[MessageEvent]:
    return [each for each in read_messages(plain_messages(messages)) if not _is_packet(each)]


def last_answer(drafts: list[EntryDraft], cited: Cited | None) -> list[EntryDraft]:
    """The drafts, with the citations of the last answer among them."""
    at = next((at for at in reversed(range(len(drafts))) if drafts[at].role == "assistant"), None)
    if at is None or cited is None:
        return drafts
    return [*drafts[:at], drafts[at].model_copy(update={"cited": cited}), *drafts[at + 1 :]]


def _is_packet(event: MessageEvent) -> bool:
    """A packet in the caller's prompt is kept as a build; recorded as an event it would be shown to a model again."""
    return event.is_prompt and PAGE_SIGN in event.event["content"]


def _keys(session_id: str, events: Iterable[MessageEvent]) -> list[str]:
    """The position of each event in the session's conversation; for a prompt, its own text."""
    keys: list[str] = []
    place = 0
    for event in events:
        if event.is_prompt:
            keys.append(f"record:{session_id}:prompt:{digest_of(event.event['content'])[:32]}")
        else:
            keys.append(f"record:{session_id}:{place}")
            place += 1
    return keys


def _draft(event: MessageEvent, key: str) -> EntryDraft:
    try:
        canonical_text(event.event)  # reports text that UTF-8 cannot encode, with its position
        return draft_of(event.event | {"idempotency_key": key})
    except MunimentError as error:
        raise error.within(f"$[{event.at}]") from None


def _differs(ctx: Context, scope: Scope, event: MessageEvent, match: KeyMatch) -> MessagesDiffer:
    assert match.entry_id is not None
    entry = get_entry(ctx, scope.tenant_id, match.entry_id, scope.user_id)
    recorded = f"{entry.role}: {content_of(ctx, scope.tenant_id, entry.id, scope.user_id)}"
    given = f"{event.event['role']}: {event.event['content']}"
    return MessagesDiffer(
        f"message {event.at} is not the one that was recorded in its place: {_around(recorded, given)}",
        path=f"$[{event.at}]",
        details={"index": event.at, "id": entry.id, "recorded": recorded[:_SHOWN_MAX], "given": given[:_SHOWN_MAX]},
    )


def _around(recorded: str, given: str) -> str:
    """Both texts from a little before their first difference."""
    shortest = min(len(recorded), len(given))
    at = next((at for at in range(shortest) if recorded[at] != given[at]), shortest)
    start = max(0, at - 20)
    return f"{recorded[start : at + 40]!r} there, {given[start : at + 40]!r} here"
