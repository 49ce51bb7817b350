"""Find turns of one user in all their sessions: assemble the index, rank, and read back from the ledger."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from muniment.core.canonical import check_text, read_canonical
from muniment.core.instants import format_instant, parse_instant
from muniment.core.limits import checkpoint, drop_tenant
from muniment.core.policy import RecallPolicy
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import by_ids
from muniment.core.ports.schema import ENTRIES
from muniment.core.record import Absent, Items, Number, Numeric, Record, Timestamp, issues_of
from muniment.core.requests import whole
from muniment.core.scope import Trust, imported_note
from muniment.errors import InvalidInput, InvalidRecord
from muniment.memory._index import StoredIndex, field_term, role_number
from muniment.memory.index import load_index
from muniment.memory.query import QUERY_CHARS_MAX
from muniment.memory.ranking import Ranked, Reach, rank
from muniment.memory.scoring import weigh_dense
from muniment.memory.turn_reading import LiveTurn, turns_by_id
from muniment.store.context import Context
from muniment.store.ledger import check_content

__all__ = [
    "DEPTH_MAX",
    "EVENTS_MAX",
    "FoundTurn",
    "Hit",
    "LabelCache",
    "Within",
    "check_min_score",
    "check_search",
    "find_turns",
    "ids_let_in",
    "labelled_turns",
    "mask_of",
    "newest_ids",
    "turn_hit",
    "unranked_hit",
    "within_given",
]


# -- hits ----------------------------------------------------------------------------------------------
#
# Hits: turns, facts, documents and packs found by a search.


class Hit(Record):
    """A search result: its text, its sources, and the reasons it was found."""

    id: str
    kind: Literal["event", "fact", "episode", "chunk"]
    text: str
    score: Number
    """The probability that it is evidence for the query, from 0 to 1, comparable across queries and scopes."""
    ts: Timestamp
    sources: Items[str]
    """The events it rests on; for an event, itself."""
    why: Items[str]
    parts: dict[str, float]
    """The factors of its rank, feature by feature; for a fact, its match."""
    session_id: str | None = None
    speaker: str | None = None
    role: str | None = None
    trust: Trust
    """The trust of its least trusted event; `external` if one is not visible to this user."""
    flags: Items[str] = ()
    """Flags of the events it rests on: `instruction_like` if one reads like a prompt injection."""


SEARCH_MAX = 1000
HitCount = Annotated[int, Numeric(integral=True, minimum=1, maximum=SEARCH_MAX)]
"""The number of hits requested, as documented; a search validates it itself."""
IN_PART = "analysed in part"
"""The reason note of a turn over the work budget, which was only partly analysed."""
_HIT_FIELDS = set(Hit.model_fields)


class FoundTurn(NamedTuple):
    """A turn and its rank."""

    turn: LiveTurn
    ranked: Ranked

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons it was found, with a note if only part of it was analysed."""
        return (*self.ranked.reasons, IN_PART) if self.turn.is_partly_analysed else self.ranked.reasons


def check_search(ctx: Context, query: Any, k: Any, now: Any) -> tuple[str, int, str]:
    """Validate a search; return the part of the query that is read, the number of hits, and the time of asking."""
    if not isinstance(query, str):
        raise InvalidInput("a query is text", path="$.query")
    check_text(query, "$.query")
    k = whole(k)
    if type(k) is not int or not 1 <= k <= SEARCH_MAX:
        raise InvalidInput(f"k should be a whole number from 1 to {SEARCH_MAX}", path="$.k")
    moment = ctx.clock() if now is None else parse_instant(now, path="$.now")
    return query[:QUERY_CHARS_MAX], k, format_instant(moment)


def check_min_score(min_score: Any) -> float:
    """Validate the minimum score of a hit; by default every hit is returned."""
    if min_score is None:
        return 0.0
    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0 <= min_score <= 1:
        raise InvalidInput(
            "min_score should be a number from 0 to 1",
            path="$.min_score",
            hint="a score is the chance that a hit is evidence: 0.5 keeps what is more likely so than not",
        )
    return float(min_score)


def find_turns(
    ctx: Context,
    reader: Reader,
    tenant_id: str,
    user_id: str,
    query: str,
    k: int,
    now: str,
    policy: RecallPolicy,
    without: frozenset[str] = frozenset(),
    is_asked_later: bool = False,
    index: StoredIndex | None = None,
    among: npt.NDArray[np.bool_] | None = None,
    reach: Reach | None = None,
) -> list[FoundTurn]:
    """The best `k` turns for a query, best first, from all sessions except `without`.

    `is_asked_later`: see `turns_by_id`. `index`, if the caller already has it; `among` and `reach`: see `rank`.
    """
    if index is None:
        index = load_index(ctx, reader, tenant_id, user_id, without)
    dense = None
    if ctx.embedder is not None:
        policy = weigh_dense(policy, ctx.embedder.identity, query)
        if policy.dense_turn or policy.dense_window:
            from muniment.memory.vectors import dense_for

            dense = dense_for(ctx, reader, tenant_id, user_id, index, ctx.embedder, query)

    checkpoint()
    ranked = rank(query, index, policy, parse_instant(now).date(), k, dense, among, reach)
    ids = [index.id(hit.ordinal) for hit in ranked]
    turns = turns_by_id(ctx, reader, tenant_id, ids, is_asked_later=is_asked_later)
    return [FoundTurn(turns[id_], hit) for id_, hit in zip(ids, ranked, strict=True) if id_ in turns]


def turn_hit(found: FoundTurn, kind: Literal["event", "chunk"] = "event", *why: str) -> Hit:
    """The hit of a found turn."""
    return _hit(found.turn, kind, found.ranked.chance, found.reasons + why, found.ranked.parts)


def unranked_hit(turn: LiveTurn, *why: str) -> Hit:
    """The hit of a turn found without a query."""
    return _hit(turn, "event", 0.0, why, {})


def _hit(
    turn: LiveTurn,
    kind: Literal["event", "chunk"],
    score: float,
    why: tuple[str, ...],
    parts: Mapping[str, float],
) -> Hit:
    """Build without validation: its parts come from the ledger and the ranking, which are typed."""
    origin = turn.imported_from
    why = why if origin is None else (*why, imported_note(origin))  # MV-02
    return Hit.unchecked(
        {
            "id": turn.id,
            "kind": kind,
            "text": turn.text,
            "score": score,
            "ts": turn.ts,
            "sources": (turn.id,),
            "why": why,
            "parts": dict(parts),
            "session_id": turn.session_id,
            "speaker": turn.call or turn.speaker,
            "role": turn.role,
            "trust": turn.trust,
            "flags": turn.flags,
        },
        _HIT_FIELDS,
    )


# -- filters --------------------------------------------------------------------------------------------
#
# Filters: conditions on turns that the index answers without reading the ledger.


EVENTS_MAX = 20_000
DEPTH_MAX = 24

Mask = npt.NDArray[np.bool_]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Within(Record):
    """Conditions that must all hold. An absent one is not checked."""

    fields: Absent[Items[str]] = None
    """All of these fields, from the event's `muniment:fields` metadata."""
    roles: Absent[Items[str]] = None
    """In one of these roles."""
    sessions: Absent[Items[str]] = None
    """In one of these sessions."""
    events: Absent[Items[str]] = None
    """One of these events."""
    since: Absent[str] = None
    """From this moment on, by whole seconds."""
    until: Absent[str] = None
    """Up to this moment, by whole seconds."""
    all_of: Absent[Items[Within]] = None
    """All of these hold."""
    any_of: Absent[Items[Within]] = None
    """One of these holds."""
    none_of: Absent[Items[Within]] = None
    """None of these holds."""


def within_given(given: Any) -> Within:
    """Validate a caller's conditions; raises `InvalidInput`."""
    try:
        asked = Within.model_validate(dict(given) if isinstance(given, Mapping) else given)
    except ValidationError as error:
        refused = InvalidRecord("within should be conditions on events", issues_of(error, given))
        raise refused.within("$.within") from None
    _check(asked, "$.within", 1)
    return asked


def _check(asked: Within, path: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise InvalidInput(f"conditions may stand {DEPTH_MAX} deep", path=path)
    if len(asked.events or ()) > EVENTS_MAX:
        raise InvalidInput(f"at most {EVENTS_MAX} events can be named", path=f"{path}.events")
    for name in ("since", "until"):
        moment = getattr(asked, name)
        if moment is not None:
            parse_instant(moment, path=f"{path}.{name}")
    for name in ("all_of", "any_of", "none_of"):
        for number, each in enumerate(getattr(asked, name) or ()):
            _check(each, f"{path}.{name}[{number}]", depth + 1)


def mask_of(index: StoredIndex, asked: Within) -> Mask:
    """Mask of the index's turns that meet the conditions."""
    found = np.ones(len(index), bool)
    for field in asked.fields or ():
        having = np.zeros(len(index), bool)
        having[index.postings(field_term(field))[0]] = True
        found &= having
    if asked.roles is not None:
        found &= np.isin(index.role, [role_number(role) for role in asked.roles])
    if asked.sessions is not None:
        numbers = [index.session_number(session) for session in asked.sessions]
        found &= np.isin(index.session, [number for number in numbers if number is not None])
    if asked.events is not None:
        wanted = frozenset(asked.events)
        found &= np.fromiter((id_ in wanted for id_ in index.ids()), bool, len(index))
    if asked.since is not None:
        found &= index.ts >= _seconds(asked.since)
    if asked.until is not None:
        found &= index.ts <= _seconds(asked.until)
    for each in asked.all_of or ():
        found &= mask_of(index, each)
    if asked.any_of is not None:
        found &= _any(index, asked.any_of)
    if asked.none_of is not None:
        found &= ~_any(index, asked.none_of)
    return found


def _any(index: StoredIndex, several: Iterable[Within]) -> Mask:
    found = np.zeros(len(index), bool)
    for each in several:
        found |= mask_of(index, each)
    return found


def _seconds(moment: str) -> int:
    return int((parse_instant(moment) - _EPOCH).total_seconds())


def newest_ids(index: StoredIndex, mask: Mask, count: int) -> list[str]:
    """The newest turns in the mask, newest first."""
    return [index.id(ordinal) for ordinal in index.newest(mask, count)]


def ids_let_in(index: StoredIndex, mask: Mask, ids: Iterable[str]) -> frozenset[str]:
    """The subset of these events that are turns in the mask."""
    wanted = frozenset(ids)
    held = index.ids()
    return frozenset(held[ordinal] for ordinal in mask.nonzero()[0].tolist() if held[ordinal] in wanted)


# -- labels --------------------------------------------------------------------------------------------
#
# The turns of a user with a tag or an entity. Labels exist only in the ledger, and are read once for each turn.


SCOPES_MAX = 16
"""Users whose labels are kept in memory."""
KINDS = ("tags", "entities")


class _Labels:
    """The labels of the turns of one user read so far."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.turns: dict[tuple[str, str], set[str]] = {}
        """The labelled turns, by kind and folded label."""


class LabelCache:
    """Labels by tenant and user. Thread-safe; never the only copy."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[str, str], _Labels] = OrderedDict()
        self.lock = threading.Lock()

    def of(self, tenant_id: str, user_id: str) -> _Labels:
        """A user's known labels; the caller holds the lock."""
        labels = self._held.setdefault((tenant_id, user_id), _Labels())
        self._held.move_to_end((tenant_id, user_id))
        while len(self._held) > SCOPES_MAX:
            self._held.popitem(last=False)
        return labels

    def clear(self, tenant_id: str | None = None) -> None:
        with self.lock:
            drop_tenant(self._held, tenant_id)


class _Content(NamedTuple):
    id: str
    content_hash: bytes
    salt: bytes | None
    body: str | None
    receipt_id: str | None


def labelled_turns(
    ctx: Context,
    reader: Reader,
    tenant_id: str,
    user_id: str,
    ids: Sequence[str],
    *,
    tags: Iterable[str] = (),
    entities: Iterable[str] = (),
) -> set[str]:
    """The subset of a user's turns with one of the tags or entities, ignoring case."""
    wanted = [(kind, label.casefold()) for kind, given in zip(KINDS, (tags, entities), strict=True) for label in given]
    cache = ctx.cache(LabelCache)
    with cache.lock:
        known = cache.of(tenant_id, user_id)
        fresh = [id_ for id_ in ids if id_ not in known.read]
    read = [(row, _labels(row)) for row in by_ids(reader, ENTRIES, fresh, into=_Content)]
    with cache.lock:
        for row, labels in read:
            known.read.add(row.id)
            for label in labels:
                known.turns.setdefault(label, set()).add(row.id)
        carrying = set().union(*(known.turns.get(label, ()) for label in wanted))
    return carrying.intersection(ids)


def _labels(row: _Content) -> Iterable[tuple[str, str]]:
    check_content(row)
    if row.body is None or not any(f'"{kind}":' in row.body for kind in KINDS):
        return ()
    said = read_canonical(row.body)
    return [(kind, label.casefold()) for kind in KINDS for label in said.get(kind) or ()]
