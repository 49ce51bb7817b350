"""Messages of chat frameworks as events: their text, their role, and an idempotency key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from muniment.core.canonical import digest_of
from muniment.errors import Forgotten

if TYPE_CHECKING:
    from muniment.handles.run import Run
    from muniment.store.ledger import LedgerEntry

__all__ = ["content_text", "observe_once", "once_key"]


def content_text(content: Any) -> str:
    """Text of a message's content: itself, or its text blocks, one below the other."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        text = content.get("text", content.get("refusal", ""))
        return text if isinstance(text, str) else ""
    if isinstance(content, Iterable):
        return "\n".join(text for text in map(content_text, _parts(content)) if text)
    return ""


def _parts(content: Iterable[Any]) -> Iterator[Any]:
    for part in content:
        yield part if isinstance(part, str | Mapping) else {"text": getattr(part, "text", None)}


def once_key(place: str, message_id: str | None, position: int, said: Any) -> str:
    """The idempotency key of a message: the same for one message at one place, however often a step is repeated, and a
    different one once the message is edited.
    """
    name = f"#{position}" if message_id is None else message_id
    return f"{place[:80]}:{name[:100]}:{digest_of([place, name, said])[:24]}"


def observe_once(run: Run, events: Sequence[Mapping[str, Any]]) -> list[LedgerEntry]:
    """Write events under their idempotency keys. A forgotten event does not come back under its key, and does not block
    others.
    """
    try:
        return run.observe_many(events) if events else []
    except Forgotten:
        entries: list[LedgerEntry] = []
        for event in events:
            with suppress(Forgotten):
                entries += run.observe_many([event])
        return entries
