"""The tables of the store, declared once; every engine reads this and nothing else.

A table's `tenant_id` column is implicit: rows never carry it, operations never name it, the engine binds it
to the transaction. So no operation can be written that crosses a tenant (LG-02).

`forget` has no default: each declaration defines what a `forget` does to the table (LG-07):

- `erase`: the row stays as a tombstone, its `content` columns become NULL and `receipt_id` is set;
- `drop`:  the row is deleted;
- `reindex`: the row is made of many subjects; the room that owns it rebuilds it without the erased ones;
- `clear`: the owner of the row's words is unknown, so the content of all rows of the tenant is erased
  (`store.answers`);
- `keep`:  the row holds no content, so it stays. Such a table may have no `content` column.

Content columns are never part of a key or an index: moving an index cell leaves stale bytes behind.

`subject` names the column that holds the id of the entry or item whose content the row carries; `forget`
finds rows by it. A new index, cache or projection declares its table here and is erased with its subject.

A table's columns are the fields of its row class: names, order, types and nulls are declared only there, and
`core.ports.rows` reads rows as these classes. Their annotations are read while this module loads, so they cannot be
strings.
"""

from types import NoneType
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

from muniment.core.scope import Trust

__all__ = [
    "BLOBS",
    "CLEARINGS",
    "ENTRIES",
    "EPISODES",
    "IDEMPOTENCY_KEYS",
    "ITEMS",
    "ITEM_TERMS",
    "KEYS",
    "LEASES",
    "LINEAGES",
    "LINKS",
    "LIVE",
    "MARKS",
    "NEVER",
    "OPAQUE",
    "PARTS",
    "PLACES",
    "PLACE_VECTORS",
    "PREFIXES",
    "PROOFS",
    "RATES",
    "REMOVED",
    "REPLIES",
    "SEGMENTS",
    "SERVER",
    "SESSIONS",
    "STATEMENTS",
    "SUPERSEDED",
    "TABLES",
    "TENANTS",
    "UPKEEP",
    "USERS",
    "VALUES_SESSION",
    "VECTORS",
    "WORKS",
    "BlobRow",
    "ClearingRow",
    "Column",
    "EntryRow",
    "EpisodeRow",
    "IdempotencyKeyRow",
    "ItemRow",
    "ItemTermRow",
    "KeyRow",
    "LeaseRow",
    "LineageRow",
    "LinkRow",
    "MarkRow",
    "PartRow",
    "PlaceRow",
    "PlaceVectorRow",
    "PrefixRow",
    "ProofRow",
    "RateRow",
    "ReplyRow",
    "SegmentRow",
    "SessionRow",
    "StatementRow",
    "Table",
    "TenantRow",
    "UserRow",
    "VectorRow",
    "WorkRow",
    "column_names",
    "table",
]

R = TypeVar("R", bound=tuple[Any, ...])


Form = Literal["plain", "id", "ids", "name", "instant", "word", "body", "packed"]
"""Storage form of a column in an engine (`store.engines.codec`); rooms use its plain type regardless.

- `id`: minted ids in 17 bytes;
- `ids`: ids, one to a line, compressed;
- `name`: the number of a user, session, agent or run. Only equality can be asked for. Rows sort by the names, at the
  cost of one statement for each name that leads the order and is not bound by `=`;
- `instant`: a time in the one form of `core.instants`, or an empty text, as an integer;
- `word`: a word of a small vocabulary in one letter;
- `body`: a body of an entry, without the JSON around it where it holds one plain text;
- `packed`: compressed where that is shorter.

Of `ids`, `body` and `packed`, only null or not null (`>= ""`) can be asked for.
"""


OPAQUE: frozenset[Form] = frozenset({"ids", "body", "packed"})
"""Forms that support no comparison but with null."""


class Column(NamedTuple):
    name: str
    type: Literal["text", "int", "bytes"]
    nullable: bool = False
    content: bool = False
    """Holds user content or text derived from it: must be nullable where the table's rule is `erase`."""
    cleared: bool = False
    """Holds no words, but was made from them: emptied with the content. May be part of an index."""
    form: Form = "plain"


class Table(NamedTuple, Generic[R]):
    name: str
    row: type[R]
    """The class of its rows, without tenant_id."""
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """The primary key after the implicit tenant_id."""
    forget: Literal["erase", "drop", "reindex", "clear", "keep"]
    subject: str | None = None
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    serves: tuple[str, ...] = ()
    """The query that each of these indexes serves, unique ones first. `tests/contract/test_plans.py` checks them."""


_TYPES: dict[Any, Literal["text", "int", "bytes"]] = {str: "text", Trust: "text", int: "int", bytes: "bytes"}


def _columns(
    row: type[R], content: tuple[str, ...], cleared: tuple[str, ...], forms: dict[str, Form]
) -> tuple[Column, ...]:
    columns = []
    for name, declared in row.__annotations__.items():
        parts = get_args(declared)
        nullable = NoneType in parts
        held = parts[0] if nullable else declared
        form = forms.get(name, "plain")
        columns.append(Column(name, _TYPES[held], nullable, name in content, name in cleared, form))
    return tuple(columns)


def _forms(**names: str) -> dict[str, Form]:
    """Forms by column, from the columns of each form: `_forms(id="id receipt_id", word="kind")`."""
    return {column: form for form, columns in names.items() for column in columns.split()}  # type: ignore[misc]


def _table(
    name: str,
    row: type[R],
    *,
    key: tuple[str, ...],
    forget: Literal["erase", "drop", "reindex", "clear", "keep"],
    content: tuple[str, ...] = (),
    cleared: tuple[str, ...] = (),
    subject: str | None = None,
    unique: dict[tuple[str, ...], str] | None = None,
    indexes: dict[tuple[str, ...], str] | None = None,
    forms: dict[str, Form] | None = None,
) -> Table[R]:
    columns = _columns(row, content, cleared, forms or {})
    unique, indexes = unique or {}, indexes or {}
    serves = (*unique.values(), *indexes.values())
    return Table(name, row, columns, key, forget, subject, tuple(unique), tuple(indexes), serves)


def column_names(spec: Table[Any]) -> tuple[str, ...]:
    return tuple(column.name for column in spec.columns)


class TenantRow(NamedTuple):
    """An existing tenant. Listed only by `Engine.tenants`."""

    created_at: str


class UserRow(NamedTuple):
    """Progress of a user's entries, index and vectors. Corpora and banks have a row under their names, too."""

    user_id: str
    tail: int
    """Number of the user's entries, including forgotten ones, which are numbered 1 to this."""
    indexed: int
    """Number of them, from the first on, in the search index."""
    embedded: int
    """Number of them, from the first on, with vectors."""
    generation: int
    """Number of forgets that touched entries of the user."""
    key_sum: int = 0
    """Sum of a number for each of the user's idempotency keys (`store.append.number_of_key`), by which `verify` detects
    deleted or altered ones.
    """


class SessionRow(NamedTuple):
    """A session: the head of its hash chain."""

    user_id: str
    session_id: str
    head_seq: int
    head_hash: bytes
    head_recorded_at: str
    created_at: str


class EntryRow(NamedTuple):
    """The ledger. Append-only: the only update is a forget that empties `body` and `salt`."""

    id: str
    user_id: str
    agent_id: str
    session_id: str
    run_id: str
    seq: int
    ts: str
    recorded_at: str
    kind: str
    role: str
    trust: Trust
    flags: str
    content_hash: bytes
    prev_hash: bytes
    hash: bytes
    salt: bytes | None
    body: str | None
    receipt_id: str | None
    n: int = 0
    """The per-user number of the entry, assigned by the store on writing. No hash covers it."""


class BlobRow(NamedTuple):
    """Payloads over the policy's inline limit (LG-09), by the hash of their bytes under the entry's salt."""

    hash: bytes
    entry_id: str
    size: int
    data: bytes | None


class ItemRow(NamedTuple):
    """A record derived from the ledger: runs, receipts, facts, episodes, builds…

    A change is a new version; the newest version is the state. `name` is a digest of the item's name (a fact's key,
    say), so that it can be looked up while no index holds a word.
    """

    id: str
    version: int
    kind: str
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    run_id: str | None
    status: str
    name: str | None
    created_at: str
    trust: Trust
    body: str | None
    receipt_id: str | None
    digest: bytes | None
    """Digest of the other columns as written; None for rows older than digests, and for forgotten ones."""
    checked: int
    """Verification of the row: 0 for older rows, which may lack a digest; 1 its digest; 2 a proof as well."""
    newest: int = 0
    """1 on the newest version of an item, 0 once that was forgotten. Runs of corpora and banks always have 0."""
    owner: str | None = None
    """Owner of the list that shows it: of the run for a run's log, else the user, the corpus or the bank. None for
    kinds that are not listed.
    """
    placed_at: str = ""
    """When its first version was written. Lists are in this order, then by id."""


class LinkRow(NamedTuple):
    """Lineage: `item_id` was derived from `source_id` (an entry or another item)."""

    source_id: str
    item_id: str


class LineageRow(NamedTuple):
    """Lineage in one row: an item's sources of one user, turns or records of their bank, by their ids, one to a
    line.
    """

    item_id: str
    user_id: str
    turns: str


class ItemTermRow(NamedTuple):
    """A search term of an item: a hashed word of its newest version, while that may be shown."""

    owner: str
    term: int
    placed_at: str
    item_id: str


class PartRow(NamedTuple):
    """Parts of snapshots, shared between those of one run: claims and the like, and the tree nodes that hold them,
    named by their hash under the run's own salt. `owner` is the item that all snapshots of the run are.
    """

    owner: str
    hash: bytes
    body: str | None
    receipt_id: str | None


class ProofRow(NamedTuple):
    """A link of a session's chain of proofs for builds, which no entry gives. Receipts, which no user owns, have the
    chain with empty names.

    The row with number 0 is the end of the chain: `version` is the number of its last link.
    """

    user_id: str
    session_id: str
    number: int
    item_id: str
    version: int
    keyed: int
    """1 where `hash` was made with the key of the store, which is kept outside it."""
    salt: bytes | None
    digest: bytes
    """Digest of the item's row under the salt, which reveals nothing once the salt was forgotten."""
    hash: bytes


class IdempotencyKeyRow(NamedTuple):
    """Idempotency keys (LG-06), hashed; `request_hash` is salted like the entry and goes with it."""

    user_id: str
    key_hash: bytes
    entry_id: str
    request_hash: bytes | None


class SegmentRow(NamedTuple):
    """The index: blocks of postings over consecutive turns of one user, by hashed terms. Merged as they grow."""

    user_id: str
    first: int
    count: int  # type: ignore[assignment] # the column's name; a row of blocks is never searched for a value
    level: int
    digest: bytes
    data: bytes


class VectorRow(NamedTuple):
    """Vectors of the same turns, in separate blocks, bound to the embedder that made them."""

    user_id: str
    embedder: str
    first: int
    count: int  # type: ignore[assignment]
    level: int
    digest: bytes
    data: bytes


class MarkRow(NamedTuple):
    """The number by which the packets of a session cite a piece of evidence. Assigned once, and never reused."""

    user_id: str
    session_id: str
    number: int
    evidence_id: str


class EpisodeRow(NamedTuple):
    """A stretch of a session that belongs together in time, as numbers of its entries. It holds no word."""

    user_id: str
    session_id: str
    first: int
    last: int
    turns: int
    """Number of its entries that are turns or were, before they were forgotten: a forget moves no cut."""
    started_at: str
    ended_at: str


class StatementRow(NamedTuple):
    """A user's sentence that may matter, or a turn that is shown whole or not at all: its place in an entry and the
    scores of the gate, each from 0 to 255. It holds no word.
    """

    user_id: str
    rank: int
    """High for likely safety issues, standing wishes and corrections: a profile reads these first."""
    n: int
    """The per-user number of the entry."""
    start: int
    size: int
    """Characters before the sentence, and in it."""
    safety: int
    wish: int
    decision: int
    correction: int
    own: int
    gate: int
    """The version of the gate that gave the scores."""


# -- values and checkpoints that frameworks keep ---------------------------------------------------------
#
# The words stay in the entries; these rows point at them, so that a read costs no more than its result.

VALUES_SESSION = "kept_values"
"""The session of an owner in which values are kept: each is forgotten by itself, with all its versions."""

LIVE, SUPERSEDED, REMOVED = 1, 2, 3
"""Status of a kept value."""
NEVER = 2**62
"""Expiry time of what never expires, in microseconds since 1970."""


class PlaceRow(NamedTuple):
    """The place of something kept in an entry: one row for each, older ones included."""

    entry_id: str
    number: int
    """Index among the things kept in the entry."""
    user_id: str
    session_id: str
    seq: int
    space: str
    """The namespace: one store, or one saver."""
    path: str
    """Its path of labels, each followed by a character that no label holds, so that a prefix is a range."""
    name: str
    state: int
    made: int
    """Time of the first value under this name, in microseconds since 1970."""
    changed: int
    expires: int


class PrefixRow(NamedTuple):
    """A prefix of the path of a live value: a search below any prefix walks along an index."""

    space: str
    prefix: str
    changed: int
    entry_id: str


class PlaceVectorRow(NamedTuple):
    """The vector of one text of one entry, with its embedder and a digest.

    The row with number -1 marks that there is nothing to compare.
    """

    entry_id: str
    embedder: str
    number: int
    digest: bytes
    data: bytes


# -- rows that the processes of a server share --------------------------------------------------------
#
# They are no evidence: no dump has them, no chain covers them, no report counts them.

SERVER = "\x1fserver"
"""Tenant of rows without a tenant. Tenants' names hold no control characters, so it cannot clash, and is never
listed.
"""
UPKEEP = "\x1fupkeep"
"""Tenant of leases on upkeep of the store as a whole."""


class WorkRow(NamedTuple):
    """Long-running work of a server, visible to all its processes."""

    id: str
    name: str
    user_id: str | None
    status: str
    progress: int
    tries: int
    """Number of processes that took it up."""
    clearing: int
    """Number of clearings of answers when it began."""
    started_at: str
    finished_at: str | None
    salt: bytes | None
    asked: str | None
    """The request, to start it again; None where it cannot be restarted, and once it is finished."""
    answer: str | None
    """Its result or its error."""


class LeaseRow(NamedTuple):
    """The process that carries out a work, of any tenant, and that counts the lease on while it lives. A row of
    `SERVER`; for a piece of upkeep, of its tenant, or of `UPKEEP`.
    """

    id: str
    tenant: str
    owner: str
    beats: int
    is_open: int


class ReplyRow(NamedTuple):
    """An answer to a request with an idempotency key, as it was sent."""

    user_id: str
    key_hash: bytes
    created_at: str
    kept: int
    """1 while there is an answer; 0 once it expired."""
    size: int
    status: int
    salt: bytes | None
    said: bytes | None
    """Digest of the request, under the salt."""
    headers: str | None
    body: bytes | None


class ClearingRow(NamedTuple):
    """Number of times a forget or an import cleared stored answers."""

    number: int


class RateRow(NamedTuple):
    """The remaining requests of a key, in thousandths, and when that was computed. A row of `SERVER`."""

    name: str
    left_milli: int
    at_ms: int


class KeyRow(NamedTuple):
    """An API key, by the hashes of its secrets; `number` counts the changes of any key. A row of `SERVER`."""

    key_id: str
    number: int
    body: str


# -- tables -------------------------------------------------------------------------------------------

TENANTS = _table("tenants", TenantRow, key=(), forget="keep")
USERS = _table("users", UserRow, key=("user_id",), forget="keep", forms=_forms(name="user_id"))
SESSIONS = _table(
    "sessions",
    SessionRow,
    key=("user_id", "session_id"),
    forget="keep",
    indexes={("session_id", "user_id"): "whose session has this name"},
    forms=_forms(instant="head_recorded_at created_at"),
)
ENTRIES = _table(
    "entries",
    EntryRow,
    key=("id",),
    content=("salt", "body"),
    forget="erase",
    subject="id",
    unique={
        ("user_id", "session_id", "seq"): "a session's entries in order: chain, pages, resume",
        ("user_id", "n"): "a user's entries in order: the tail behind the index",
    },
    indexes={("run_id", "seq"): "a run's entries in order"},
    forms=_forms(
        id="id receipt_id",
        name="user_id agent_id session_id run_id",
        instant="ts recorded_at",
        word="kind role trust",
        body="body",
    ),
)
BLOBS = _table(
    "blobs",
    BlobRow,
    key=("hash",),
    content=("data",),
    forget="erase",
    subject="entry_id",
    indexes={("entry_id",): "the payloads of an entry, for a forget"},
    forms=_forms(id="entry_id"),
)
ITEMS = _table(
    "items",
    ItemRow,
    key=("id", "version"),
    content=("body",),
    cleared=("name", "digest"),
    forget="erase",
    subject="id",
    indexes={
        ("kind", "user_id", "name", "created_at"): "a fact by its key; a user's items of a kind by time",
        ("kind", "run_id"): "a run's items of a kind",
        ("kind", "created_at"): "a tenant's items of a kind by time",
        ("kind", "owner", "newest", "status", "placed_at", "id", "version"): "a page of an owner's list",
        ("kind", "newest", "status", "placed_at", "id", "version"): "a page of a tenant's list",
    },
    forms=_forms(
        id="id receipt_id",
        name="user_id agent_id session_id run_id owner",
        instant="created_at placed_at",
        word="kind status trust",
        packed="body",
    ),
)
LINKS = _table(
    "links",
    LinkRow,
    key=("source_id", "item_id"),
    forget="keep",
    indexes={("item_id", "source_id"): "what an item was derived from"},
    forms=_forms(id="source_id item_id"),
)
LINEAGES = _table(
    "lineages",
    LineageRow,
    key=("item_id",),
    forget="keep",
    indexes={("user_id", "item_id"): "what was made of a user's turns"},
    forms=_forms(id="item_id", ids="turns", name="user_id"),
)
ITEM_TERMS = _table(
    "item_terms",
    ItemTermRow,
    key=("owner", "term", "placed_at", "item_id"),
    forget="drop",
    subject="item_id",
    indexes={("item_id", "term"): "the terms of an item, for a forget"},
    forms=_forms(id="item_id", name="owner", instant="placed_at"),
)
PARTS = _table(
    "parts",
    PartRow,
    key=("owner", "hash"),
    content=("body",),
    forget="erase",
    subject="owner",
    forms=_forms(id="owner receipt_id", packed="body"),
)
PROOFS = _table(
    "proofs",
    ProofRow,
    key=("user_id", "session_id", "number"),
    content=("salt",),
    forget="erase",
    subject="item_id",
    unique={("item_id", "version"): "the proof of an item"},
    forms=_forms(id="item_id", name="user_id session_id"),
)
IDEMPOTENCY_KEYS = _table(
    "idempotency_keys",
    IdempotencyKeyRow,
    key=("user_id", "key_hash"),
    content=("request_hash",),
    forget="erase",
    subject="entry_id",
    indexes={("entry_id",): "the keys of an entry, for a forget"},
    forms=_forms(id="entry_id", name="user_id"),
)
SEGMENTS = _table(
    "segments",
    SegmentRow,
    key=("user_id", "first"),
    content=("data",),
    forget="reindex",
    forms=_forms(name="user_id", packed="data"),
)
VECTORS = _table(
    "vectors",
    VectorRow,
    key=("user_id", "embedder", "first"),
    content=("data",),
    forget="reindex",
    forms=_forms(name="user_id"),
)
MARKS = _table(
    "marks",
    MarkRow,
    key=("user_id", "session_id", "number"),
    forget="keep",
    unique={("user_id", "session_id", "evidence_id"): "the number of a piece of evidence"},
    forms=_forms(id="evidence_id", name="user_id session_id"),
)
EPISODES = _table(
    "episodes",
    EpisodeRow,
    key=("user_id", "session_id", "first"),
    forget="keep",
    forms=_forms(name="user_id session_id", instant="started_at ended_at"),
)
STATEMENTS = _table(
    "statements",
    StatementRow,
    key=("user_id", "rank", "n", "start"),
    forget="reindex",
    forms=_forms(name="user_id"),
)
PLACES = _table(
    "places",
    PlaceRow,
    key=("entry_id", "number"),
    forget="drop",
    subject="entry_id",
    indexes={
        ("name", "state"): "what is live under a name",
        ("space", "state", "path", "name"): "what is live below a path, in order",
        ("space", "expires"): "what has expired",
        ("user_id", "session_id", "seq"): "what a user or a session keeps",
    },
    forms=_forms(id="entry_id"),
)
PREFIXES = _table(
    "prefixes",
    PrefixRow,
    key=("space", "prefix", "changed", "entry_id"),
    forget="drop",
    subject="entry_id",
    indexes={("entry_id",): "the prefixes of an entry, for a forget"},
    forms=_forms(id="entry_id"),
)
PLACE_VECTORS = _table(
    "place_vectors",
    PlaceVectorRow,
    key=("entry_id", "embedder", "number"),
    content=("data",),
    forget="drop",
    subject="entry_id",
    forms=_forms(id="entry_id"),
)
WORKS = _table("works", WorkRow, key=("id",), content=("salt", "asked", "answer"), forget="clear")
LEASES = _table("leases", LeaseRow, key=("id",), forget="keep", indexes={("is_open", "id"): "leases that are held"})
REPLIES = _table(
    "replies",
    ReplyRow,
    key=("user_id", "key_hash"),
    content=("salt", "said", "headers", "body"),
    forget="clear",
    indexes={("kept", "created_at"): "answers that are kept, the newest first"},
)
CLEARINGS = _table("clearings", ClearingRow, key=(), forget="keep")
RATES = _table("rates", RateRow, key=("name",), forget="keep")
KEYS = _table("keys", KeyRow, key=("key_id",), forget="keep", indexes={("number",): "the last change of any key"})

TABLES: tuple[Table[Any], ...] = (
    TENANTS,
    USERS,
    SESSIONS,
    ENTRIES,
    BLOBS,
    ITEMS,
    LINKS,
    LINEAGES,
    ITEM_TERMS,
    PARTS,
    PROOFS,
    IDEMPOTENCY_KEYS,
    SEGMENTS,
    VECTORS,
    MARKS,
    EPISODES,
    STATEMENTS,
    PLACES,
    PREFIXES,
    PLACE_VECTORS,
    WORKS,
    LEASES,
    REPLIES,
    CLEARINGS,
    RATES,
    KEYS,
)

_BY_NAME = {spec.name: spec for spec in TABLES}


def table(name: str) -> Table[Any]:
    return _BY_NAME[name]
