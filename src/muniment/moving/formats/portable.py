"""The neutral file, read: every line is of its record, in its place, and the digest at the end holds.

It believes nothing that it can check: the hash of each text, ids that are named, counts, the digest. A file that does
not hold is refused as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from muniment.contracts.portable import (
    FORMAT,
    VERSION,
    PortableEnd,
    PortableFact,
    PortableHeader,
    PortableLine,
    PortableMemory,
    PortableMessage,
    PortableSession,
    PortableSummary,
)
from muniment.core.canonical import parse_json
from muniment.core.instants import parse_instant
from muniment.errors import InvalidInput, InvalidRecord, MunimentError
from muniment.moving.records import Carried, Found, content_hash

__all__ = ["LINE_BYTES_MAX", "read_lines"]

LINE_BYTES_MAX = 64 * 1024 * 1024
_HINT = f'the first line of a portable file is {{"header": {{"format": "{FORMAT}", "version": {VERSION}, …}}}}'
_ALTERED = "the file was altered or cut off; export it again"


def read_lines(lines: Iterable[bytes]) -> Iterator[Found]:
    """The items of a file, each with its line; raises for the first thing wrong."""
    check = _Check()
    for number, line in enumerate(lines, 1):
        item = check.see(line, number)
        if item is not None:
            yield Found(f"line {number}", item, check.user)
    check.finish()


class _Check:
    """What the lines so far say, in memory that grows with their ids alone."""

    def __init__(self) -> None:
        self.user: str | None = None
        self.is_ended = False
        self._hasher = sha256()
        self._counts: Counter[str] = Counter()
        self._sessions: set[str] = set()
        self._evidence: set[str] = set()
        self._facts: set[str] = set()

    def see(self, line: bytes, number: int) -> Carried | None:
        if self.is_ended:
            raise InvalidInput(f"line {number}: more lines after the end of the file", path="$")
        name, held = _read(line, number)
        if (name == "header") != (number == 1):
            raise InvalidInput(f"line {number}: not a portable file of version {VERSION}", path="$", hint=_HINT)
        if isinstance(held, PortableEnd):
            self._end(held, number)
            return None
        self._hasher.update(line)
        if isinstance(held, PortableHeader):
            self.user = held.user_id
            return None
        self._counts[name] += 1
        item: Carried = held
        self._check_ids(item, number)
        return item

    def finish(self) -> None:
        if not self.is_ended:
            raise InvalidInput("the file ends without its last line", path="$", hint=_ALTERED)

    def _end(self, end: PortableEnd, number: int) -> None:
        if end.digest != self._hasher.hexdigest() or end.counts != dict(self._counts):
            raise InvalidInput(f"line {number}: the file does not match its own digest", path="$.end", hint=_ALTERED)
        self.is_ended = True

    def _check_ids(self, held: Carried, number: int) -> None:
        match held:
            case PortableSession():
                self._once(self._sessions, held.session_id, number)
            case PortableMessage():
                self._once(self._evidence, held.id, number)
                self._need(self._sessions, held.session_id, "session", number)
                _check_hash(held.content, held.sha256, held.id, number)
                _check_time(held.ts, number)
            case PortableMemory():
                self._once(self._evidence, held.id, number)
                _check_hash(held.text, held.sha256, held.id, number)
                _check_time(held.ts, number)
            case PortableFact():
                self._once(self._facts, held.id, number)
                if not held.assertions:
                    raise InvalidInput(f"line {number}: the fact {held.id!r:.80} rests on nothing", path="$.fact")
                for assertion in held.assertions:
                    self._need_sources(assertion.sources, number)
                    _check_time(assertion.since, number)
            case PortableSummary():
                self._need(self._sessions, held.session_id, "session", number)
                self._need_sources(held.sources, number)

    def _need_sources(self, sources: Iterable[str], number: int) -> None:
        named = list(sources)
        if not named:
            raise InvalidInput(f"line {number}: nothing is named that it rests on", path="$.sources")
        for source in named:
            self._need(self._evidence, source, "evidence", number)

    def _once(self, seen: set[str], name: str, number: int) -> None:
        if name in seen:
            raise InvalidInput(f"line {number}: the id {name!r:.80} stands twice", path="$.id")
        seen.add(name)

    def _need(self, seen: set[str], name: str, noun: str, number: int) -> None:
        if name not in seen:
            raise InvalidInput(
                f"line {number}: the {noun} {name!r:.80} does not stand before it",
                path="$",
                hint="what something rests on stands before it in the file",
            )


def _read(line: bytes, number: int) -> tuple[str, Any]:
    """The one key of a line and its record."""
    try:
        held = PortableLine.from_wire(parse_json(line, max_bytes=LINE_BYTES_MAX))
    except MunimentError as error:
        if number == 1 and isinstance(error, InvalidRecord):
            raise InvalidInput("line 1: not a portable file", path="$", hint=_HINT) from None
        error.message = f"line {number}: {error.message}"
        raise
    named = sorted(held.model_fields_set)
    if len(named) != 1:
        raise InvalidInput(f"line {number}: a line says one thing, not {len(named)}", path="$")
    return named[0], getattr(held, named[0])


def _check_hash(text: str, claimed: str, name: str, number: int) -> None:
    if content_hash(text) != claimed:
        said = f"line {number}: the text of {name!r:.80} is not what its hash says"
        raise InvalidInput(said, path="$.sha256", hint=_ALTERED)


def _check_time(ts: str, number: int) -> None:
    try:
        parse_instant(ts)
    except InvalidInput as error:
        error.message = f"line {number}: {error.message}"
        raise
