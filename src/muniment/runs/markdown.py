"""Stored text and JSON values in a line of Markdown that they cannot break out of.

Stored text stands on one line and is escaped where CommonMark or GitHub's dialect would read it as a heading, a list,
a link, code, a table or HTML. What needs no escape stands as it is, so that ids can be found with a plain search.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from muniment.contracts.snapshot import EvidencePointer
from muniment.core.canonical import canonical_text

__all__ = ["NONE", "escaped", "listed", "place_text", "pointer_text", "span_text", "value_text"]

NONE = "none"
"""What a list that holds nothing says."""

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]+")
"""Controls and marks that break a line, move the cursor or turn the direction of reading."""
_SPECIAL = re.compile(
    r"[\\`*\[\]<|~]|(?<![^ #])#|&(?=[#0-9A-Za-z])|:(?=//)|(?<=www)\.|(?<![0-9A-Za-z_])_++|(?<!_)_++(?![0-9A-Za-z_])",
    re.IGNORECASE,
)
_OPENER = re.compile(r"[+=>-]|[0-9]{1,9}(?=[.)](?: |$))")
"""What begins a block where it begins a line or a list item."""


def escaped(text: str) -> str:
    """The text on one line, with no meaning in Markdown, wherever in a line it stands."""
    flat = " ".join(_UNSEEN.sub(" ", text).split())
    safe = _SPECIAL.sub(lambda found: "".join(f"\\{char}" for char in found[0]), flat)
    opener = _OPENER.match(safe)
    if opener is None:
        return safe
    at = opener.end() if opener[0].isdigit() else 0
    return f"{safe[:at]}\\{safe[at:]}"


def value_text(value: Any) -> str:
    """A JSON value as a person would write it: text escaped, lists with commas, objects as `key: value`, sorted."""
    if isinstance(value, str):
        return escaped(value) or "(empty)"
    if isinstance(value, Mapping):
        return "; ".join(f"{escaped(key)}: {_nested(value[key])}" for key in sorted(value)) or NONE
    if isinstance(value, list | tuple):
        return ", ".join(map(_nested, value)) or NONE
    return canonical_text(value)


def _nested(value: Any) -> str:
    shown = value_text(value)
    return f"({shown})" if isinstance(value, Mapping | list | tuple) and value else shown


def span_text(span: Any) -> str:
    """`12–34` for offsets, in whichever of the allowed shapes they stand; anything else as the value it is."""
    ends = [span["start"], span["end"]] if isinstance(span, Mapping) and span.keys() == {"start", "end"} else span
    if isinstance(ends, list) and len(ends) == 2 and all(type(end) in (int, float) for end in ends):
        return f"{canonical_text(ends[0])}–{canonical_text(ends[1])}"
    return value_text(span)


def listed(lines: Iterable[str]) -> list[str]:
    """The lines, or the one line that says that there are none."""
    return list(lines) or [NONE]


def pointer_text(pointer: EvidencePointer) -> str:
    """`ev_1 [corpus/chunk 12–34]`."""
    return f"{value_text(pointer.evidence_id)} [{place_text(pointer)}]"


def place_text(pointer: EvidencePointer) -> str:
    """`corpus/chunk 12–34`; without the corpus where the pointer does not name it."""
    named = getattr(pointer, "corpus_id", None)
    corpus = escaped(named) if isinstance(named, str) else ""
    return f"{corpus}{'/' if corpus else ''}{value_text(pointer.chunk_id)} {span_text(pointer.span)}"
