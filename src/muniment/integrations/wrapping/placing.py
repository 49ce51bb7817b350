"""Choose a packet's place in a model request, for wrapped clients, the proxy and LiteLLM alike.

An `Insertion` is a text and its place, as data, so that it applies to Python objects (`inserted`) and to the bytes of a
request (`integrations.proxy.spans`) alike, and nothing else changes. There are two places (docs/decisions/0025-proxy.md
compares their effect on a provider's cache):

    question    before the words of the last user message that says something: everything before it is unchanged
    system      after the caller's own system prompt
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from muniment.packets.render import set_apart

__all__ = [
    "GAP",
    "PLACES",
    "Insertion",
    "Place",
    "before_message",
    "behind_blocks",
    "behind_prompts",
    "behind_text",
    "inserted",
]

Place = Literal["question", "system"]
PLACES: tuple[Place, ...] = ("question", "system")
GAP = "\n\n"
_PROMPTS = ("system", "developer")
_TEXTS = ("text", "input_text")

How = Literal["before_text", "after_text", "as_value", "as_item", "as_blocks"]


class Insertion(NamedTuple):
    """A text and its place. The last step of the path is the value to change, or for `as_item` the index in a list.

    `before_text` and `after_text` add to a text; `as_value` replaces a missing or empty value; `as_item` is a new
    element of a list; `as_blocks` makes a text the first of two blocks of text.
    """

    path: tuple[str | int, ...]
    how: How
    value: Any


# -- places -------------------------------------------------------------------------------------------


def before_message(messages: Any, key: str, at: int, packet: str, part_type: str) -> Insertion | None:
    """Insert before the words of a message in the list under this key; None if it cannot hold them."""
    if isinstance(messages, str):
        return Insertion((key,), "before_text", set_apart(packet)) if messages else None
    message = messages[at]
    if not isinstance(message, Mapping):
        return None
    path, content = (key, at, "content"), message.get("content")
    if isinstance(content, str):
        return Insertion(path, "before_text", set_apart(packet))
    if not isinstance(content, list | tuple):
        return None
    first = next((at for at, part in enumerate(content) if _is_text(part)), None)
    if first is None:
        return None
    return Insertion((*path, first), "as_item", {"type": part_type, "text": set_apart(packet)})


def behind_prompts(messages: Sequence[Any], packet: str) -> Insertion:
    """Insert at the end of the last leading system message of a chat, as many servers only take one, or else as a new
    one.
    """
    leading = next((at for at, each in enumerate(messages) if _role(each) not in _PROMPTS), len(messages))
    own = messages[leading - 1] if leading else None
    if not isinstance(own, Mapping):
        return Insertion(("messages", leading), "as_item", {"role": "system", "content": packet})
    path, content = ("messages", leading - 1, "content"), own.get("content")
    if isinstance(content, list | tuple):
        return Insertion((*path, len(content)), "as_item", {"type": "text", "text": packet})
    return _behind(path, content, packet)


def behind_text(given: Mapping[str, Any], key: str, packet: str) -> Insertion:
    """Insert after a text that may be missing."""
    return _behind((key,), given.get(key), packet)


def behind_blocks(given: Mapping[str, Any], key: str, packet: str) -> Insertion:
    """Insert a separate block after the caller's, whose cache breakpoints stay in place."""
    own, block = given.get(key), {"type": "text", "text": packet}
    if isinstance(own, list | tuple):
        return Insertion((key, len(own)), "as_item", block)
    return (
        Insertion((key,), "as_blocks", block)
        if isinstance(own, str) and own
        else Insertion((key,), "as_value", [block])
    )


def _behind(path: tuple[str | int, ...], own: Any, packet: str) -> Insertion:
    is_said = isinstance(own, str) and own
    return Insertion(path, "after_text", f"{GAP}{packet}") if is_said else Insertion(path, "as_value", packet)


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, Mapping) and part.get("type") in _TEXTS)


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, Mapping) else getattr(message, "role", None)


# -- into objects -------------------------------------------------------------------------------------


def inserted(given: Any, insertion: Insertion) -> Any:
    """The caller's arguments with the packet inserted, copied as far as they change."""
    step, rest = insertion.path[0], insertion._replace(path=insertion.path[1:])
    if rest.path:
        return _with(given, step, inserted(given[step], rest))
    value = insertion.value
    if insertion.how == "as_item":
        assert isinstance(step, int)
        return [*given[:step], value, *given[step:]]
    if insertion.how == "as_value":
        return _with(given, step, value)
    own = given[step]
    if insertion.how == "as_blocks":
        return _with(given, step, [{"type": "text", "text": own}, value])
    return _with(given, step, f"{value}{own}" if insertion.how == "before_text" else f"{own}{value}")


def _with(given: Any, step: str | int, value: Any) -> Any:
    if isinstance(step, str):
        return {**given, step: value}
    return [*given[:step], value, *given[step + 1 :]]
