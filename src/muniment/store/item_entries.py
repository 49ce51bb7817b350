"""Which entries carry the words of an item, and so have to go with it (LG-07): patches, and turns of a bank. And which
items tell of whole runs, and go with any entry of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muniment.core.ports.engine import Condition, Transaction
from muniment.core.ports.rows import by_ids, chunked, select
from muniment.core.ports.schema import ENTRIES, LINKS
from muniment.errors import StoreDamaged
from muniment.store.items import HOLDS_BODY, Item, latest
from muniment.store.ledger import STATE_PATCHED, read_body
from muniment.store.proving.ends import are_one_holder_s, followed

__all__ = ["CITING", "ItemEntry", "entries_of_items", "items_of_runs", "made_from", "named_events", "origins_of"]

_CARRYING = ("state_patch", "tool_result")


class ItemEntry(NamedTuple):
    """An entry that said what an item holds."""

    item_id: str
    entry_id: str
    hash: bytes
    salt: bytes
    metadata: dict[str, Any]

    def has_lost(self, lost: Collection[str]) -> bool:
        """Did it speak on evidence that is now all lost, or of an event that is?"""
        sources = self.metadata.get("sources")
        named = sources if isinstance(sources, list) else []
        return (
            (bool(named) and all(source in lost for source in named))
            or self.metadata.get("from") in lost
            or any(event in lost for event in named_events(self.metadata.get("patch")))
        )


def entries_of_items(tx: Transaction, item_ids: Iterable[str]) -> Iterator[ItemEntry]:
    """The patches that carried these items' words and are not erased yet; not those that only touched them."""
    for asked in chunked(sorted(item_ids)):
        links = followed(tx, select(tx, LINKS, (("item_id", "in", asked),))).links
        entries = _patches(tx, {link.source_id for link in links})
        for source, item_id in links:
            if source in entries:
                hash_, salt, metadata = entries[source]
                if metadata is None:  # nobody can tell whose words it carried: it goes with each that it may be
                    yield ItemEntry(item_id, source, hash_, salt, {})
                elif metadata.get("id") == item_id or metadata.get("event") == STATE_PATCHED:
                    yield ItemEntry(item_id, source, hash_, salt, metadata)


class _Patch(NamedTuple):
    id: str
    content_hash: bytes
    hash: bytes
    salt: bytes | None
    body: str | None
    receipt_id: str | None


def _patches(tx: Transaction, ids: set[str]) -> dict[str, tuple[bytes, bytes, dict[str, Any] | None]]:
    """Hash, salt and metadata of the patches with these ids; no metadata where somebody altered the entry."""
    found: dict[str, tuple[bytes, bytes, dict[str, Any] | None]] = {}
    where: tuple[Condition, ...] = (("kind", "in", _CARRYING), HOLDS_BODY)
    for row in by_ids(tx, ENTRIES, sorted(ids), where=where, into=_Patch):
        try:
            metadata = (read_body(row) or {}).get("metadata") or {}
        except StoreDamaged:
            metadata = None
        found[row.id] = (row.hash, row.salt or b"", metadata)
    return found


class _Run(NamedTuple):
    user_id: str
    run_id: str


def items_of_runs(
    tx: Transaction, entry_ids: Sequence[str], ids_of: Sequence[Callable[[str], str]]
) -> tuple[dict[str, Item], dict[str, str]]:
    """The live items that tell of whole runs of which these are entries; and the ids of those that are not here, with
    whose runs they are: a user's copy lacks the log of a run that was learnt into another's bank.

    `ids_of`: how the id of such an item is made of its run's.
    """
    runs = sorted(set(by_ids(tx, ENTRIES, entry_ids, into=_Run)))
    told = [(run.user_id, id_of(run.run_id)) for run in runs for id_of in ids_of]
    found = {id_: latest(tx, id_) for _, id_ in told}
    items = {
        id_: item
        for user_id, id_ in told
        if (item := found[id_]) is not None and item.body is not None and are_one_holder_s(user_id, item.user_id)
    }
    return items, {id_: user_id for user_id, id_ in told if found[id_] is None}


def origins_of(item: Item) -> tuple[str, ...]:
    """The candidates that an erased fact was promoted from: they hold the same words."""
    if item.kind != "fact" or item.body is None:
        return ()
    assertions = item.plain().get("assertions", ())
    return tuple(each["origin"] for each in assertions if isinstance(each.get("origin"), str))


CITING = {"decisions": "evidence_id", "tool_evidence": "ref"}
"""Lists whose elements name an event."""


def named_events(patch: Any) -> tuple[str, ...]:
    """The events that decisions and tool evidence of a patch refer to, each once."""
    if not isinstance(patch, Mapping):
        return ()
    named: dict[str, None] = {}
    for field, key in CITING.items():
        elements = patch.get(field)
        for element in elements if isinstance(elements, list | tuple) else ():
            if isinstance(element, Mapping) and isinstance(element.get(key), str):
                named[element[key]] = None
    return tuple(named)


def made_from(metadata: Mapping[str, Any]) -> frozenset[str]:
    """What an entry says its item was made from: sources that it lists, and those of the learned record it carries."""
    memory = _mapping(metadata.get("memory"))
    lesson = _mapping(_mapping(memory.get("record")).get("lesson"))
    lists = (metadata.get("sources"), memory.get("sources"), memory.get("parents"), lesson.get("event_ids"))
    return frozenset(each for listed in lists if isinstance(listed, list) for each in listed if isinstance(each, str))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
