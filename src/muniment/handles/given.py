"""Readers for what callers pass to a run: its opening, batched events, stop reasons. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from muniment.core.record import ValidationError, issues_of
from muniment.errors import InvalidInput, InvalidRecord, MunimentError
from muniment.store.ledger import STOP_REASONS, EntryDraft

if TYPE_CHECKING:
    from muniment.store.admission import Admitted
    from muniment.store.context import Context
    from muniment.store.ledger import Cited

__all__ = ["answer_given", "check_stop_reason", "event_given", "opening_given", "plain"]


def opening_given(ctx: Context, said: dict[str, Any]) -> Admitted:
    """The run's first entry, admitted; errors use the parameter names of `Memory.run`."""
    from muniment.store.admission import admit
    from muniment.store.append import opening_draft

    try:
        return admit(opening_draft(said), ctx.policy.ledger)
    except ValidationError as error:
        issues = [issue._replace(path=_said_path(issue.path)) for issue in issues_of(error)]
        raise InvalidRecord("not a valid run", issues) from None
    except MunimentError as error:
        error.path = _said_path(error.path or "$")
        raise


def _said_path(path: str) -> str:
    return "$" + path.removeprefix("$.metadata") if path.startswith("$.metadata.") else path


def event_given(event: Any, index: int, cite: Callable[[Any, Any, Any, str], Cited]) -> Any:
    """One event of a batch, with the citations of its `build`; `cite` takes role, content, build and path."""
    if isinstance(event, EntryDraft):
        event = event if event.cited is None else event.to_wire()
    if not isinstance(event, Mapping):
        return event
    if "cited" in event:
        raise InvalidInput(
            "what an answer cites is read from its marks", path=f"$[{index}].cited", hint="give its build instead"
        )
    if "build" not in event:
        return event
    bare = {key: value for key, value in event.items() if key != "build"}
    if event["build"] is None:
        return bare
    return bare | {"cited": cite(bare.get("role"), bare.get("content"), event["build"], f"$[{index}].build")}


def answer_given(drafts: list[EntryDraft], build: Any, cite: Callable[[Any, Any, Any, str], Cited]) -> list[EntryDraft]:
    """The drafts of a conversation; given a `build`, the last answer carries its citations."""
    if build is None:
        return drafts
    from muniment.packets.recording import last_answer

    answers = [draft for draft in drafts if draft.role == "assistant"]
    return last_answer(drafts, cite("assistant", answers[-1].content if answers else "", build, "$.build"))


def check_stop_reason(stop_reason: Any) -> None:
    """Raise unless it is one of a run's stop reasons."""
    if stop_reason not in STOP_REASONS:
        is_text = isinstance(stop_reason, str)
        shown = repr(stop_reason[:60]) if is_text else f"a value of type {type(stop_reason).__name__}"
        raise InvalidInput(
            f"{shown} is not a stop reason", path="$.stop_reason", hint=f"one of {', '.join(STOP_REASONS)}"
        )


def plain(given: Any) -> Any:
    """Convert what callers give to real dicts and lists; anything else is refused later, by the record."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | list | tuple):
        return list(given)
    return given
