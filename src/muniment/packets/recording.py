"""Lists of messages into the ledger, each message once: what of a list that has grown is new, and what differs (TM-09).

The place of a message in its session's conversation is its idempotency key. A list that was recorded and has grown
writes what is new; one that was edited writes nothing and says where. The caller's own prompts (system and developer
messages) have no place in the conversation: each is kept as often as its text changes, unless it is a packet of ours.
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
    """Messages as plain objects; those of a client library say themselves what they are."""
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
    """What an object of a client library stands for, where it can say so."""
    dump = getattr(value, "model_dump", None)
    dumped = dump(mode="json", exclude_unset=True) if callable(dump) else None
    return dumped if isinstance(dumped, Mapping) else None


def new_drafts(ctx: Context, scope: Scope, messages: Any) -> list[EntryDraft]:
    """What of these messages was not recorded in this session yet, as drafts; `MessagesDiffer` where one is another."""
    events = _events(messages)
    drafts = _drafts(events, scope.session_id)
    found = ctx.engine.read(scope.tenant_id, lambda reader: match_keys(reader, scope, drafts))
    for event, match in zip(events, found, strict=True):
        if match.entry_id is not None and not match.is_same:
            raise _differs(ctx, scope, event, match)
    return [draft for draft, match in zip(drafts, found, strict=True) if match.entry_id is None]


def message_drafts(messages: Any, session_id: str) -> list[EntryDraft]:
    """All of these messages as drafts, each under the key of its place in the session's conversation."""
    return _drafts(_events(messages), session_id)


def _drafts(events: list[MessageEvent], session_id: str) -> list[EntryDraft]:
    return [_draft(event, key) for event, key in zip(events, _keys(session_id, events), strict=True)]


def _events(messages: Any) -> list[MessageEvent]:
    return [each for each in read_messages(plain_messages(messages)) if not _is_packet(each)]


def last_answer(drafts: list[EntryDraft], cited: Cited | None) -> list[EntryDraft]:
    """The drafts with what the last answer among them cites."""
    at = next((at for at in reversed(range(len(drafts))) if drafts[at].role == "assistant"), None)
    if at is None or cited is None:
        return drafts
    return [*drafts[:at], drafts[at].model_copy(update={"cited": cited}), *drafts[at + 1 :]]


def _is_packet(event: MessageEvent) -> bool:
    """A packet that the caller put into its prompt is kept as a build; as an event it would be told back to a model."""
    return event.is_prompt and PAGE_SIGN in event.event["content"]


def _keys(session_id: str, events: Iterable[MessageEvent]) -> list[str]:
    """The place of each event in the session's conversation; of a prompt its own text."""
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
        canonical_text(event.event)  # what has no form in UTF-8 is told with its place
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
    """Both texts from a little before where they part."""
    shortest = min(len(recorded), len(given))
    at = next((at for at in range(shortest) if recorded[at] != given[at]), shortest)
    start = max(0, at - 20)
    return f"{recorded[start : at + 40]!r} there, {given[start : at + 40]!r} here"
