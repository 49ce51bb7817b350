"""The stored form of a snapshot: a head, and parts named by their content, hung on trees.

A long list leaves the head and becomes leaves of `LEAF` elements under nodes of `FAN` names each, down from one root.
Where an element stands depends on its index alone, so two snapshots share every leaf and node that did not change:
changing or appending one element makes one new leaf and the nodes above it. The head names the roots, every name is
the salted hash of its part, so the head's digest covers all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.core.canonical import canonical_bytes, canonical_text, read_canonical, salted_digest
from muniment.errors import IntegrityFailure, InvalidJson
from muniment.runs.compaction.snapshots import DELTAS

__all__ = ["FAN", "LEAF", "Fetch", "Split", "head_digest", "join", "split"]

FAN = 32
"""Names in a node."""
LEAF = 8
"""Elements in a leaf. A list that would fit into one stays in the head."""

_COVERAGE = ("state", "source_coverage")
_PATHS: tuple[tuple[str, ...], ...] = (
    ("latest_context_manifest_ids",),
    ("state", "claims"),
    ("state", "conflicts"),
    ("state", "failures"),
    ("state", "open_questions"),
    ("state", "open_question_refs"),
    (*_COVERAGE, "source_ids_seen"),
    (*_COVERAGE, "chunk_ids_seen"),
    (*_COVERAGE, "chunk_ids_cited"),
    *(("deltas", name) for name in DELTAS),
)
"""The lists that may be long."""
_NAMES = {".".join(path): path for path in _PATHS}

Fetch = Callable[[Sequence[bytes]], Mapping[bytes, str]]
"""The stored texts of these parts; what is not there is left out."""


@dataclass(frozen=True, slots=True)
class Split:
    """A snapshot as it is stored: `head` is `{"document": …, "trees": {path: {"count", "root"}}}`."""

    head: dict[str, Any]
    parts: dict[bytes, str]


def split(wire: dict[str, Any], salt: bytes) -> Split:
    """The plain snapshot with its long lists hung on trees. `wire` itself is left as it is."""
    document = dict(wire)
    trees: dict[str, Any] = {}
    parts: dict[bytes, str] = {}
    for name, path in _NAMES.items():
        held = _at(wire, path)
        if isinstance(held, list) and len(held) > LEAF:
            trees[name] = {"count": len(held), "root": _hang(held, salt, parts).hex()}
            document = _with(document, path, [])
    return Split({"document": document, "trees": trees}, parts)


def head_digest(head: dict[str, Any], salt: bytes) -> str:
    """What the ledger says of a snapshot: covers the head and, through the roots, every part."""
    return salted_digest(salt, canonical_bytes(head)).hex()


def _hang(elements: Sequence[Any], salt: bytes, parts: dict[bytes, str]) -> bytes:
    """The root of a tree over these elements; its leaves and nodes are put into `parts`."""
    names = [_put(elements[at : at + LEAF], salt, parts) for at in range(0, len(elements), LEAF)]
    while len(names) > 1:
        groups = [names[at : at + FAN] for at in range(0, len(names), FAN)]
        names = [_put([name.hex() for name in group], salt, parts) if group[1:] else group[0] for group in groups]
    return names[0]


def _put(part: Sequence[Any], salt: bytes, parts: dict[bytes, str]) -> bytes:
    text = canonical_text(part)
    name = salted_digest(salt, text.encode())
    parts[name] = text
    return name


def _at(wire: Mapping[str, Any], path: Sequence[str]) -> Any:
    here: Any = wire
    for key in path:
        if not isinstance(here, Mapping) or key not in here:
            return None
        here = here[key]
    return here


def _with(wire: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """A copy with another value at the path; what is not on the path is shared."""
    key, *rest = path
    return {**wire, key: _with(wire[key], rest, value) if rest else value}


# -- and back -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _PartRange:
    """A part that is still to be read: which elements of which list hang below it."""

    tree: str
    start: int
    end: int
    name: bytes

    def __str__(self) -> str:
        return f"the part {self.name.hex()} of {self.tree} (elements {self.start} to {self.end - 1})"

    @property
    def is_leaf(self) -> bool:
        return self.end - self.start <= LEAF


def join(head: dict[str, Any], salt: bytes, fetch: Fetch) -> dict[str, Any]:
    """The plain snapshot again. Reads one level of all trees at a time, and checks every part against its name.

    The head is taken at its word: whoever stored its digest compares that first. Raises `IntegrityFailure`, naming
    the part and the elements below it, where one is missing or was altered.
    """
    document, trees = _checked_head(head)
    places = [
        _PartRange(name, 0, tree["count"], _name_of(tree["root"], f"the root of {name}"))
        for name, tree in trees.items()
    ]
    leaves: dict[str, dict[int, list[Any]]] = {name: {} for name in trees}
    while places:
        texts = fetch(list(dict.fromkeys(place.name for place in places)))
        below: list[_PartRange] = []
        for place in places:
            part = _read(place, salt, texts.get(place.name))
            if place.is_leaf:
                leaves[place.tree][place.start] = part
            else:
                below += _children(place, part)
        places = below
    for name, found in leaves.items():
        elements = [element for start in sorted(found) for element in found[start]]
        document = _with(document, _NAMES[name], elements)
    return document


def _checked_head(head: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    document, trees = head.get("document"), head.get("trees")
    if not isinstance(document, dict) or not isinstance(trees, dict):
        raise IntegrityFailure("the head of a snapshot holds no document or no trees")
    for name, tree in trees.items():
        count = tree.get("count") if isinstance(tree, dict) else None
        if name not in _NAMES or type(count) is not int or count <= LEAF or _at(document, _NAMES[name]) != []:
            raise IntegrityFailure(f"the head of a snapshot names a tree {name!r:.60} that does not fit it")
    return document, trees


def _read(place: _PartRange, salt: bytes, text: str | None) -> list[Any]:
    if text is None:
        raise _broken(place, "is missing")
    if salted_digest(salt, text.encode()) != place.name:
        raise _broken(place, "was altered")
    try:
        part = read_canonical(text)
    except InvalidJson:
        raise _broken(place, "is not JSON") from None
    wanted = place.end - place.start if place.is_leaf else -(-(place.end - place.start) // _span_below(place))
    if not isinstance(part, list) or len(part) != wanted:
        raise _broken(place, f"does not hold {wanted} {'elements' if place.is_leaf else 'names'}")
    return part


def _broken(place: _PartRange, said: str) -> IntegrityFailure:
    return IntegrityFailure(
        f"{place} {said}",
        hint="an older snapshot and the entries after it give the same state",
        details={"part": place.name.hex(), "tree": place.tree, "start": place.start, "end": place.end},
    )


def _span_below(place: _PartRange) -> int:
    """How many elements hang below each name of this node but the last."""
    span = LEAF
    while span * FAN < place.end - place.start:
        span *= FAN
    return span


def _children(place: _PartRange, names: Sequence[Any]) -> list[_PartRange]:
    span = _span_below(place)
    return [
        _PartRange(place.tree, start, min(start + span, place.end), _name_of(name, str(place)))
        for start, name in zip(range(place.start, place.end, span), names, strict=True)
    ]


def _name_of(text: Any, where: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise IntegrityFailure(f"{where} names no part") from None
