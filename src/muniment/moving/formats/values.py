"""Convert parsed values to record fields, and lists of memories copied out of an assistant: one per line, with an
optional number, dash or date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from muniment.contracts.portable import PortableMemory, PortableMessage, PortableSession
from muniment.core.canonical import canonical_text
from muniment.core.instants import format_instant, parse_instant
from muniment.core.scope import ID_MAX_BYTES, ID_MAX_CHARS, Origin
from muniment.errors import MunimentError
from muniment.moving.portable import Found, content_hash

# -- values ---------------------------------------------------------------------------------------------


METADATA_CHARS_MAX = 4_000
"""Maximum JSON size of an item's extra metadata."""
_NO_ID = re.compile(r"[\x00-\x1f\x7f]")
_MILLISECONDS = 100_000_000_000
"""Seconds since 1970 this large are milliseconds: no chat is from the year 5138."""


class Placed(NamedTuple):
    """A value of a file, its place, and its key in the outermost object."""

    path: str
    key: str | None
    value: Any


def text_in(value: Any) -> str | None:
    """A valid text with lone surrogates replaced; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def texts_in(value: Any) -> list[str]:
    """The texts of a list; none for anything else."""
    return [text for each in value if (text := text_in(each)) is not None] if isinstance(value, list) else []


def mapping_in(value: Any) -> Mapping[str, Any]:
    """The object itself, or an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def instant_in(value: Any) -> str | None:
    """Normalise a time given as ISO 8601, or seconds or milliseconds since 1970; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        if isinstance(value, int | float):
            seconds = value / 1000 if abs(value) > _MILLISECONDS else value
            return format_instant(datetime.fromtimestamp(seconds, UTC))
        return format_instant(parse_instant(value))
    except (MunimentError, ValueError, OverflowError, OSError):
        return None


def id_given(value: Any, *parts: str) -> str:
    """The given id if valid, or else one derived from the parts that name the item, the same at every import."""
    text = text_in(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
    if text and len(text) <= ID_MAX_CHARS and len(text.encode()) <= ID_MAX_BYTES and not _NO_ID.search(text):
        return text
    return "imp-" + sha256(canonical_text([text, *parts]).encode()).hexdigest()[:32]


def plain_metadata(given: Any, *without: str) -> dict[str, Any] | None:
    """Extra fields of an item as plain JSON of bounded size; None if there are none."""
    kept = {}
    for name, value in mapping_in(given).items():
        if isinstance(name, str) and name not in without and value not in (None, "", [], {}):
            kept[text_in(name) or ""] = _plain(value, 8)
    while kept and len(canonical_text(kept)) > METADATA_CHARS_MAX:
        kept.pop(max(kept, key=lambda name: len(canonical_text(kept[name]))))
    return kept or None


def _plain(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        return text_in(value)
    if value is None or isinstance(value, bool | int):
        return value if not isinstance(value, int) or abs(value) < 2**53 else str(value)[:40]
    if isinstance(value, float):
        return value if value - value == 0 else None
    if levels and isinstance(value, Mapping):
        return {text_in(str(name)) or "": _plain(each, levels - 1) for name, each in value.items()}
    if levels and isinstance(value, list | tuple):
        return [_plain(each, levels - 1) for each in value]
    return None


# -- items --------------------------------------------------------------------------------------------


def make_session(session_id: str, *, title: Any = None, started_at: Any = None) -> PortableSession:
    said = {"title": text_in(title) or None, "started_at": instant_in(started_at)}
    return PortableSession(session_id=session_id, **{name: value for name, value in said.items() if value is not None})


def make_origin(system: str, kind: str, **said: str | None) -> Origin:
    """The origin of an item; empty fields are left out."""
    return Origin.model_validate(
        {"system": system, "kind": kind} | {name: value for name, value in said.items() if value}
    )


def make_message(
    *,
    id: str,
    session_id: str,
    role: str,
    content: str,
    ts: str,
    origin: Origin,
    speaker: str | None = None,
    metadata: dict[str, Any] | None = None,
    tool: dict[str, Any] | None = None,
) -> PortableMessage:
    """A message with its hash; fields that are None are left out."""
    more = {"speaker": speaker, "metadata": metadata, "tool": tool}
    return PortableMessage.model_validate(
        {
            "id": id,
            "session_id": session_id,
            "role": role,
            "content": content,
            "sha256": content_hash(content),
            "ts": ts,
            "origin": origin,
        }
        | {name: value for name, value in more.items() if value is not None}
    )


def make_memory(
    *,
    id: str,
    text: str,
    as_of: str,
    origin: Origin,
    speaker: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> PortableMemory:
    """A memory with its hash. Without a time of its own it gets the time of the file, which proves it existed then."""
    when = origin.updated_at or origin.created_at or as_of
    more = {"speaker": speaker, "metadata": metadata}
    return PortableMemory.model_validate(
        {"id": id, "text": text, "sha256": content_hash(text), "ts": when, "origin": origin}
        | {name: value for name, value in more.items() if value is not None}
    )


# -- memory lists ---------------------------------------------------------------------------------------


_ITEM = re.compile(
    r"^\s*(?:[-*•]\s+|\d{1,4}[.)]\s+)?(?:\[(?P<date>\d{4}-\d\d-\d\d)[^\]\n]{0,40}\]\s*[-–.:]*\s*)?(?P<text>\S.*?)\s*$"
)
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|```|[-=*_]{3,}\s*$)")


def listed_memories(text: str, system: str, as_of: str, path: str, speaker: str | None = None) -> Iterator[Found]:
    """Read each line that is not a heading as a memory."""
    for number, line in enumerate(text.splitlines(), 1):
        found = None if _HEADING.match(line) else _ITEM.match(line)
        if found is None:
            continue
        said = found["text"]
        origin = make_origin(system, "memory", created_at=instant_in(found["date"]))
        made = make_memory(id=id_given(None, system, said), text=said, as_of=as_of, origin=origin, speaker=speaker)
        yield Found(f"{path}:{number}", made)
