"""Lists of memories as people copy them out of an assistant: a line each, with a number, a dash or a date before it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from muniment.moving.formats.values import id_given, instant_in, make_memory, make_origin
from muniment.moving.records import Found

__all__ = ["listed_memories"]

_ITEM = re.compile(
    r"^\s*(?:[-*•]\s+|\d{1,4}[.)]\s+)?(?:\[(?P<date>\d{4}-\d\d-\d\d)[^\]\n]{0,40}\]\s*[-–.:]*\s*)?(?P<text>\S.*?)\s*$"
)
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|```|[-=*_]{3,}\s*$)")


def listed_memories(text: str, system: str, as_of: str, path: str, speaker: str | None = None) -> Iterator[Found]:
    """A memory for each line that is no heading."""
    for number, line in enumerate(text.splitlines(), 1):
        found = None if _HEADING.match(line) else _ITEM.match(line)
        if found is None:
            continue
        said = found["text"]
        origin = make_origin(system, "memory", created_at=instant_in(found["date"]))
        made = make_memory(id=id_given(None, system, said), text=said, as_of=as_of, origin=origin, speaker=speaker)
        yield Found(f"{path}:{number}", made)
