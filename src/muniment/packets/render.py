"""Render a packet as text for its purpose and as messages; a second guard, independent of the composer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from muniment.contracts.packet import MemoryPacket, Purpose
from muniment.contracts.semantics import check_packet
from muniment.core.canonical import child_path
from muniment.errors import InvalidRecord, Issue
from muniment.packets.in_view import page_beside

__all__ = [
    "DIVIDER",
    "REMINDER",
    "Rendered",
    "guard",
    "render",
    "set_apart",
    "to_anthropic",
    "to_openai",
]

DIVIDER = "\n\n---\n\n"
"""Separates a packet from the caller's own words in one message. No line of evidence can imitate it."""
REMINDER = "Give the answer, then in square brackets the number of the line above that says it."
"""Placed after the question, where it makes models cite. It contains no mark, since a model would copy one."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """The text, the target of each mark, and the question it is meant for."""

    text: str
    marks: dict[str, str]
    query: str = ""
    stable_chars: int = 0
    """The length of the text's stable prefix."""


def render(
    packet: MemoryPacket | Mapping[str, Any],
    *,
    purpose: Purpose | None = None,
    query: str = "",
    in_view: Sequence[str] = (),
) -> Rendered:
    """Render the page of a packet for its purpose, or for another one; refused if that would show withheld content.

    With `in_view`, the texts of earlier packets that the model still sees, oldest first, only new lines are rendered;
    an empty text if there are none.

    Raises `InvalidRecord` for a packet that breaks its contract or one of its binding rules, MP-12 above all.
    """
    wire = packet.to_wire() if isinstance(packet, MemoryPacket) else dict(packet)
    if purpose is not None and isinstance(wire.get("meta"), Mapping):
        wire = {**wire, "meta": {**wire["meta"], "purpose": purpose}}
    try:
        checked = MemoryPacket.from_wire(wire)
    except InvalidRecord as error:
        raise _refusal(error.issues) from None
    guard(wire)
    page = page_beside(checked, in_view)
    return Rendered(page.text, page.marks, query, page.stable_chars)


def guard(wire: Mapping[str, Any]) -> None:
    """Refuse a well-formed packet that breaks one of its binding rules, MP-12 above all."""
    if issues := [*check_packet(wire), *_smuggled(wire)]:
        raise _refusal(issues)


def _refusal(issues: Iterable[Issue]) -> InvalidRecord:
    return InvalidRecord("this packet is not rendered", list(issues), hint="compose it again for this purpose")


def _smuggled(wire: Mapping[str, Any]) -> Iterator[Issue]:
    """MP-12: a responder's packet holds nothing marked as unvalidated, at any depth."""
    if wire["meta"]["purpose"] == "responder":
        for section in ("short_term", "long_term"):
            if _holds_state(wire[section]):
                yield from _unvalidated(wire[section], (section,))


def _unvalidated(value: Mapping[str, Any] | Sequence[Any], place: tuple[str | int, ...]) -> Iterator[Issue]:
    if isinstance(value, Mapping) and value.get("validation_state", "validated") != "validated":
        said = f"a responder packet holds nothing {value['validation_state']!r:.40}"
        yield Issue(f"{reduce(child_path, place, '$')}.validation_state", said, "MP-12")
    parts: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, part in parts:
        if _holds_state(part):
            yield from _unvalidated(part, (*place, key))


def _holds_state(value: Any) -> bool:
    """True if anything in the value carries a validation state; most of a packet does not."""
    if isinstance(value, str):
        return False
    if isinstance(value, Mapping):
        return "validation_state" in value or any(map(_holds_state, value.values()))
    return isinstance(value, list | tuple) and any(map(_holds_state, value))


def to_openai(rendered: Rendered, *, include_query: bool = True, cite: bool = True) -> list[dict[str, Any]]:
    """A system message with the context, and the question as the last user message. Empty ones are omitted.

    The reminder to cite follows the question, or the context if the question is sent separately.
    """
    context, asked = _asked(rendered, include_query, cite)
    messages = [{"role": "system", "content": "\n".join(context)}] if context else []
    if asked:
        messages.append({"role": "user", "content": asked})
    return messages


def to_anthropic(
    rendered: Rendered, *, include_query: bool = True, cite: bool = True, cache: bool = False
) -> list[dict[str, Any]]:
    """One user message: the context as its first block, the question as its last. (`system` is not a role there.)

    Models read blocks as one text, so a line separates the context from the question. With `cache` the context is two
    blocks, and a breakpoint ends the first, so that the stable prefix is cached.
    """
    context, asked = _asked(rendered, include_query, cite)
    stable = rendered.text[: rendered.stable_chars] if cache else ""
    blocks: list[dict[str, Any]] = []
    if stable:
        blocks.append({"type": "text", "text": stable, "cache_control": {"type": "ephemeral"}})
        context[0] = rendered.text[len(stable) :]
    if asked and context:
        context[-1] = set_apart(context[-1])
    blocks += [{"type": "text", "text": text} for text in (*context, asked) if text]
    return [{"role": "user", "content": blocks}] if blocks else []


def set_apart(packet: str) -> str:
    """A packet with its divider, to precede the caller's own words in one message."""
    return f"{packet.rstrip()}{DIVIDER}"


def _asked(rendered: Rendered, include_query: bool, cite: bool) -> tuple[list[str], str]:
    """The texts of the context, and the question; the reminder ends the last of them."""
    context = [rendered.text] if rendered.text else []
    asked = rendered.query if include_query else ""
    if cite and rendered.marks:
        if asked:
            return context, f"{asked}\n\n{REMINDER}"
        context.append(REMINDER)
    return context, asked
