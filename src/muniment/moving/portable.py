"""Read portable files; also the items and reports shared by all readers of other systems' files.

A portable file is refused as a whole unless every line fits its record and position, and the final digest matches.
Everything checkable is checked: the hash of each text, referenced ids, counts, the digest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any, Literal, NamedTuple

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
from muniment.core.record import Count, Items, Record
from muniment.errors import InvalidInput, InvalidRecord, MunimentError

# -- items and reports ----------------------------------------------------------------------------------


System = Literal["portable", "mem0", "zep", "letta", "chatgpt", "claude"]
SYSTEMS: tuple[System, ...] = ("portable", "mem0", "zep", "letta", "chatgpt", "claude")
"""Systems that can be imported."""
ONE_USER: tuple[System, ...] = ("letta", "chatgpt", "claude")
"""Systems whose files name no user, so the user must be given."""
LEFT_OUT_MAX = 10_000
"""Skipped items named in a report; further ones are only counted."""

Carried = PortableSession | PortableMessage | PortableMemory | PortableFact | PortableSummary


class Found(NamedTuple):
    """An item that can be imported, with its place and, if the source names one, its user."""

    path: str
    item: Carried
    user: str | None = None


class LeftOut(NamedTuple):
    """An item that is not imported, and why. One without anybody's words is no loss."""

    path: str
    kind: str
    why: str
    is_loss: bool = True
    times: int = 1
    """Number of items it represents."""


Read = Iterator[Found | LeftOut]
"""Items of a file in order, as every format reader yields them."""


class NotCarried(Record):
    """A source item that was not imported: its place, kind and reason."""

    path: str
    kind: str
    why: str
    is_loss: bool
    """False for items without anybody's words: an empty node, a vector, a tool definition."""


class MoveReport(Record):  # MV-05
    """Result of an import or of its dry run."""

    system: str
    tenant_id: str
    users: Items[str]
    dry_run: bool
    sessions: Count
    """Conversations the items belong to."""
    read: dict[str, Count]
    """Importable items in the source, by kind."""
    written: dict[str, Count]
    known: dict[str, Count]
    """Items that already existed; nothing is written twice."""
    changed: Count
    """Written items that are newer versions of ones imported earlier."""
    flagged: Count
    """Written items that read like instructions from outside, and are never quoted."""
    left_out: Items[NotCarried]
    left_out_counts: dict[str, Count]
    """All skipped items by kind, including those not named individually."""
    losses: Count
    """Skipped items that hold somebody's words."""

    @property
    def is_complete(self) -> bool:
        """True if no item with somebody's words was skipped."""
        return self.losses == 0


_KINDS: dict[type, str] = {
    PortableSession: "sessions",
    PortableMessage: "messages",
    PortableMemory: "memories",
    PortableFact: "facts",
    PortableSummary: "summaries",
}


def kind_of(item: Carried) -> str:
    """The kind of an item in reports."""
    return _KINDS[type(item)]


def content_hash(text: str) -> str:
    """SHA-256 (hex) of a text, with which a reader of the file can verify it."""
    return sha256(text.encode()).hexdigest()


def not_carried(items: Iterable[LeftOut]) -> tuple[NotCarried, ...]:
    """Convert skipped items to report entries."""
    return tuple(NotCarried(path=each.path, kind=each.kind, why=each.why, is_loss=each.is_loss) for each in items)


# -- reading a portable file ----------------------------------------------------------------------------


LINE_BYTES_MAX = 64 * 1024 * 1024
_HINT = f'the first line of a portable file is {{"header": {{"format": "{FORMAT}", "version": {VERSION}, …}}}}'
_ALTERED = "the file was altered or cut off; export it again"


def read_lines(lines: Iterable[bytes]) -> Iterator[Found]:
    """Yield each item of a file with its line; raise at the first error."""
    check = _Check()
    for number, line in enumerate(lines, 1):
        item = check.see(line, number)
        if item is not None:
            yield Found(f"line {number}", item, check.user)
    check.finish()


class _Check:
    """State of the check so far; its memory grows with the number of ids only."""

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
