"""What names a forgotten event or item in its body, whatever the links say; and live rows that still hold its words.

Links lead a forget to what was derived (LG-07). A link that somebody deleted, or that a dump lacked, would leave it: so
the bodies are asked as well, which name their evidence by its id, and at the end live rows are searched for the words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muniment.core.canonical import canonical_text
from muniment.core.ports.engine import Condition, Reader, Transaction
from muniment.core.ports.rows import by_ids, chunked, stream
from muniment.core.ports.schema import ENTRIES, ITEMS
from muniment.core.scope import is_reserved
from muniment.errors import StoreDamaged
from muniment.store.item_entries import ItemEntry, made_from
from muniment.store.items import HOLDS_BODY, Item, kinds_held
from muniment.store.ledger.memory_events import MEMORY_EVENTS, STATE_PATCHED
from muniment.store.ledger.rows import read_body

__all__ = ["WordsLeft", "entries_naming", "items_made_from", "items_naming", "words_left", "words_of"]

_FEW = 16
"""Up to so many names are looked for one by one; of more, all strings of a body are asked."""
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
"""A string as JSON writes it, from its quote to its quote: an empty one, a long one and one with escapes as well, since
whoever skips one takes what stands between two others for a string."""
_SAID = ("message", "tool_result")
_BY_PLACE = ("user_id", "session_id", "seq")
"""The order of the index that leads to an owner's entries."""
WORDS_CHARS_MIN = 24
"""A shorter text is said again by chance."""
_WITHOUT_WORDS = ("receipt",)
"""Kinds of items that hold ids and counts, and no word of anybody's: one of every forget of the tenant."""
WORDS_MAX = 64
"""Texts that are looked for among live rows: of more, an even sample."""


class _Body(NamedTuple):
    id: str
    run_id: str | None
    body: str | None


class _Owned(NamedTuple):
    id: str
    user_id: str | None


class _Carrying(NamedTuple):
    id: str
    run_id: str
    content_hash: bytes
    hash: bytes
    salt: bytes | None
    body: str | None
    receipt_id: str | None


def items_naming(reader: Reader, kinds: Collection[str], ids: Sequence[str], owners: Collection[str]) -> set[str]:
    """The live items of these kinds, of these owners or of nobody's own, whose body names one of these ids.

    That an item stands in a run of that name is not what it was made from.
    """
    found: set[str] = set()
    names = _finder(ids)
    for item in _live_items(reader, kinds, owners):
        if item.body is not None and any(name not in (item.id, item.run_id) for name in names(item.body)):
            found.add(item.id)
    return found


def entries_naming(
    tx: Transaction, items: Mapping[str, Item], lost: Collection[str], owners: Collection[str]
) -> Iterator[ItemEntry]:
    """The live patches of these owners that name one of these items or what is lost, with the item they speak of."""
    states = {item.run_id: id_ for id_, item in items.items() if item.kind == "working_state"}
    for row, metadata in _patches_naming(tx, [*items, *lost], owners):
        item_id = metadata.get("id")
        if item_id not in items and metadata.get("event") == STATE_PATCHED:
            item_id = states.get(row.run_id)
        yield ItemEntry(item_id if isinstance(item_id, str) else "", row.id, row.hash, row.salt or b"", metadata)


def items_made_from(reader: Reader, ids: Sequence[str], owners: Collection[str]) -> set[str]:
    """The items of these owners whose entries say that they were made from one of these.

    Only entries count that no caller can write, and only items of these owners: nobody names another's.
    """
    wanted = set(ids)
    made = {
        str(metadata.get("id"))
        for _, metadata in _patches_naming(reader, ids, owners)
        if metadata.get("event") in MEMORY_EVENTS and wanted & made_from(metadata)
    }
    return {row.id for row in by_ids(reader, ITEMS, sorted(made - wanted), into=_Owned) if row.user_id in owners}


def _patches_naming(
    reader: Reader, ids: Sequence[str], owners: Collection[str]
) -> Iterator[tuple[_Carrying, dict[str, Any]]]:
    """The live patches of these owners that name one of these, with what they say."""
    names = _finder(ids)
    for owner in sorted(owners):
        kinds = ("state_patch", "tool_result") if is_reserved(owner) else ("state_patch",)
        where: tuple[Condition, ...] = (("user_id", "=", owner), ("kind", "in", kinds), HOLDS_BODY)
        for row in stream(reader, ENTRIES, where, into=_Carrying, order=_BY_PLACE):
            if row.body is None or not names(row.body):
                continue
            try:
                yield row, (read_body(row) or {}).get("metadata") or {}
            except StoreDamaged:  # what it says cannot be believed, and it names what goes
                yield row, {}


def _finder(ids: Sequence[str]) -> Callable[[str], list[str]]:
    """Which of these ids stand in a body as a string of their own."""
    written = {canonical_text(id_): id_ for id_ in ids}
    if len(ids) <= _FEW:
        return lambda body: [id_ for quoted, id_ in written.items() if quoted in body]
    return lambda body: sorted(written[quoted] for quoted in written.keys() & set(_STRING.findall(body)))


def _live_items(reader: Reader, kinds: Collection[str], owners: Collection[str]) -> Iterator[_Body]:
    """Those of these kinds: every index of items that leads to an owner begins with the kind."""
    of_kinds: Condition = ("kind", "in", tuple(sorted(kinds)))
    of_all: list[Condition] = [("user_id", "=", None)]
    of_all += [("user_id", "in", some) for some in chunked(sorted(owners))]
    for whose in of_all:
        yield from stream(reader, ITEMS, (of_kinds, whose, HOLDS_BODY), into=_Body)


# -- words --------------------------------------------------------------------------------------------


class WordsLeft(NamedTuple):
    """Live rows in which words of what was forgotten still stand: where they were said again, and what was derived."""

    items: int
    events: int


class _Spoken(NamedTuple):
    id: str
    kind: str
    body: str | None


class _Said(NamedTuple):
    kind: str
    content_hash: bytes
    salt: bytes | None
    id: str
    body: str | None
    receipt_id: str | None


def words_of(reader: Reader, entry_ids: Sequence[str], chars_min: int = WORDS_CHARS_MIN) -> list[str]:
    """What these events said, as their rows hold it: texts that are long enough to be known again, at most so many."""
    step = max(1, len(entry_ids) // WORDS_MAX)
    texts: dict[str, None] = {}
    for row in by_ids(reader, ENTRIES, entry_ids[::step], into=_Said):
        if row.kind not in _SAID or row.body is None:
            continue
        try:
            content = (read_body(row) or {}).get("content")
        except StoreDamaged:
            continue
        if isinstance(content, str) and len(content) >= chars_min:
            texts[content] = None
    return list(texts)[:WORDS_MAX]


def words_left(reader: Reader, texts: Iterable[str], owners: Collection[str]) -> WordsLeft:
    """How many live items and events of these owners, or of nobody's own, hold one of the texts."""
    needles = [canonical_text(text)[1:-1] for text in texts]
    if not needles:
        return WordsLeft(0, 0)

    def holds(body: str | None) -> bool:
        return body is not None and any(needle in body for needle in needles)

    kinds = [kind for kind in kinds_held(reader) if kind not in _WITHOUT_WORDS]
    items = {item.id for item in _live_items(reader, kinds, owners) if holds(item.body)}
    events = 0
    for some in chunked(sorted(owners)):
        where: tuple[Condition, ...] = (("user_id", "in", some), HOLDS_BODY)
        for row in stream(reader, ENTRIES, where, into=_Spoken, order=_BY_PLACE):
            if holds(row.body):
                is_said = row.kind in _SAID
                events += is_said
                items |= set() if is_said else {row.id}
    return WordsLeft(len(items), events)
