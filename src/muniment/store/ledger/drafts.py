"""What callers say happened, as drafts of ledger entries: time stamps as text, real sequences, their kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from muniment.core.instants import format_instant, parse_instant
from muniment.core.record import ValidationError, issues_of
from muniment.errors import InvalidInput, InvalidRecord
from muniment.store.ledger.memory_events import MEMORY_EVENTS
from muniment.store.ledger.records import EntryDraft
from muniment.store.ledger.run_events import RUN_EVENTS, RUN_TURNS

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["draft_of", "drafts_of", "make_draft", "refuse_reserved"]


@cache
def _drafts() -> TypeAdapter[list[EntryDraft]]:
    from pydantic import TypeAdapter

    return TypeAdapter(list[EntryDraft])


def drafts_of(events: Iterable[Any]) -> list[EntryDraft]:
    """Dicts of `observe`'s arguments, and drafts, as drafts in the same order; every issue is told at once."""
    plain = [event if isinstance(event, EntryDraft) else _event(event, index) for index, event in enumerate(events)]
    try:
        return _drafts().validate_python(plain)
    except ValidationError as error:
        raise InvalidRecord("some events cannot be recorded", issues_of(error, plain)) from None


def _as_recorded(event: dict[str, Any]) -> dict[str, Any]:
    """What callers write, as the strict record wants it: text time stamps, real sequences, real dicts."""
    ts = event.get("ts")
    if isinstance(ts, datetime):
        event["ts"] = format_instant(parse_instant(ts))
    elif isinstance(ts, date):
        event["ts"] = ts.isoformat()
    for key in ("tags", "entities"):
        value = event.get(key)
        if value is None:
            event.pop(key, None)
        elif not isinstance(value, str | list | tuple | Mapping) and isinstance(value, Iterable):
            event[key] = _ordered(value) if isinstance(value, set | frozenset) else list(value)
    if isinstance(event.get("metadata"), Mapping):
        event["metadata"] = dict(event["metadata"])
    return event


def _ordered(values: Iterable[Any]) -> list[Any]:
    """A set in one order. What is not text is refused later, by the record."""
    texts = list(values)
    return sorted(texts) if all(isinstance(text, str) for text in texts) else texts


def make_draft(**event: Any) -> EntryDraft:
    """A draft with these fields; those that are None are left out."""
    return _validated({key: value for key, value in event.items() if value is not None})


def draft_of(event: Mapping[str, Any]) -> EntryDraft:
    """A dict of `observe`'s arguments as a draft; what kind of entry it is follows from what it holds."""
    return _validated(_with_kind(dict(event)))


def _validated(event: dict[str, Any]) -> EntryDraft:
    plain = _as_recorded(event)
    return EntryDraft.of_given(plain, "this cannot be recorded")


def _event(event: Any, index: int) -> dict[str, Any]:
    if not isinstance(event, Mapping):
        raise InvalidInput(f"an event should be an object, found {type(event).__name__}", path=f"$[{index}]")
    try:
        return _with_kind(_as_recorded(dict(event)))
    except InvalidInput as error:
        raise error.within(f"$[{index}]") from None


def _with_kind(event: dict[str, Any]) -> dict[str, Any]:
    if "kind" not in event:
        if event.get("tool") is not None:
            event["kind"] = "tool_result"
        elif event.get("step") is not None:
            event["kind"] = "step"
        elif event.get("role") in ("system", "developer"):
            event["kind"] = "system"
    return event


def refuse_reserved(draft: EntryDraft, path: str) -> None:
    """Only the run itself says that it started or ended, or that memory changed."""
    reserved = MEMORY_EVENTS | RUN_EVENTS if draft.kind == "state_patch" else RUN_TURNS
    event = draft.metadata.get("event") if draft.metadata else None
    if draft.kind in ("system", "state_patch") and isinstance(event, str) and event in reserved:
        raise InvalidInput(
            f"a {draft.kind} entry's event {event!r} is written by the run itself",
            path=f"{path}.metadata.event",
            hint="use finish(), patch(), claim() and the like, or another name for your event",
        )
