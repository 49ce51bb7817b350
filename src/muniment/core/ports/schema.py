"""The tables of the store, declared once; every engine reads this and nothing else.

A table's `tenant_id` column is implicit: rows never carry it, operations never name it, the engine binds it
to the transaction. So no operation can be written that crosses a tenant (LG-02).

`forget` has no default: whoever declares a table says what a `forget` does to it (LG-07):

- `erase`: the row stays as a tombstone, its `content` columns become NULL and `receipt_id` is set;
- `drop`:  the row goes;
- `reindex`: the row is a block over many subjects; `store.blocks` makes it anew without those that went;
- `keep`:  the row holds nothing that was said, so it stays. Such a table may have no `content` column.

Content columns are never part of a key or an index: moving an index cell leaves stale bytes behind.

`subject` names the column that holds the id of the entry or item whose content the row carries; `forget`
finds rows by it. A new index, cache or projection declares its table here and is erased with its subject.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["TABLES", "Column", "Table", "column_names", "table"]


class Column(NamedTuple):
    name: str
    type: Literal["text", "int", "bytes"]
    nullable: bool = False
    content: bool = False
    """Holds something that was said or derived from it: must be nullable where the table's rule is `erase`."""
    cleared: bool = False
    """Holds no words, but was made from them: emptied with the content. May be part of an index."""


class Table(NamedTuple):
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """The primary key after the implicit tenant_id."""
    forget: Literal["erase", "drop", "reindex", "keep"]
    subject: str | None = None
    unique: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    global_key: bool = False
    """The key is unique across tenants (X-09): the one kind of table whose key is not led by tenant_id."""


def column_names(spec: Table) -> tuple[str, ...]:
    return tuple(column.name for column in spec.columns)


def _text(name: str, *, nullable: bool = False, content: bool = False) -> Column:
    return Column(name, "text", nullable, content)


def _int(name: str, *, nullable: bool = False) -> Column:
    return Column(name, "int", nullable)


def _bytes(name: str, *, nullable: bool = False, content: bool = False) -> Column:
    return Column(name, "bytes", nullable, content)


TABLES: tuple[Table, ...] = (
    # Which tenants exist. Listed only by `Engine.tenants`.
    Table("tenants", (_text("created_at"),), key=(), forget="keep"),
    # Every record id there is, whatever its kind and tenant.
    Table("ids", (_text("id"), _text("kind")), key=("id",), forget="keep", global_key=True),
    # One row per session: the head of its hash chain.
    Table(
        "sessions",
        (
            _text("user_id"),
            _text("session_id"),
            _int("head_seq"),
            _bytes("head_hash"),
            _text("head_recorded_at"),
            _text("created_at"),
        ),
        key=("user_id", "session_id"),
        forget="keep",
        indexes=(("session_id", "user_id"),),
    ),
    # The ledger. Append-only: the only update is a forget that empties `body` and `salt`.
    Table(
        "entries",
        (
            _text("id"),
            _text("user_id"),
            _text("agent_id"),
            _text("session_id"),
            _text("run_id"),
            _int("seq"),
            _text("ts"),
            _text("recorded_at"),
            _text("kind"),
            _text("role"),
            _text("trust"),
            _text("flags"),
            _bytes("content_hash"),
            _bytes("prev_hash"),
            _bytes("hash"),
            _bytes("salt", nullable=True, content=True),
            _text("body", nullable=True, content=True),
            _text("receipt_id", nullable=True),
        ),
        key=("id",),
        unique=(("user_id", "session_id", "seq"),),
        forget="erase",
        subject="id",
    ),
    # Payloads over the policy's inline limit (LG-09), by the hash of their bytes under the entry's salt.
    Table(
        "blobs",
        (_bytes("hash"), _text("entry_id"), _int("size"), _bytes("data", nullable=True, content=True)),
        key=("hash",),
        indexes=(("entry_id",),),
        forget="erase",
        subject="entry_id",
    ),
    # Everything derived from the ledger that is a record: runs, receipts, later facts, episodes, builds…
    # A change is a new version; the newest version is the state. `name` is a digest of what the item is called
    # (a fact's key, say), so that it can be looked up while no index holds a word.
    Table(
        "items",
        (
            _text("id"),
            _int("version"),
            _text("kind"),
            _text("user_id", nullable=True),
            _text("agent_id", nullable=True),
            _text("session_id", nullable=True),
            _text("run_id", nullable=True),
            _text("status"),
            Column("name", "text", nullable=True, cleared=True),
            _text("created_at"),
            _text("trust"),
            _text("body", nullable=True, content=True),
            _text("receipt_id", nullable=True),
        ),
        key=("id", "version"),
        indexes=(("kind", "user_id", "name", "created_at"), ("kind", "run_id"), ("kind", "created_at")),
        forget="erase",
        subject="id",
    ),
    # Lineage: `item_id` was derived from `source_id` (an entry or another item).
    Table(
        "links",
        (_text("source_id"), _text("item_id")),
        key=("source_id", "item_id"),
        indexes=(("item_id", "source_id"),),
        forget="keep",
    ),
    # The same for the turns of one user that an item was made from, all in one row: ids, a line for each.
    Table(
        "lineages",
        (_text("item_id"), _text("user_id"), _text("turns")),
        key=("item_id",),
        indexes=(("user_id", "item_id"),),
        forget="keep",
    ),
    # What snapshots are made of, shared between those of one run: claims and the like, and the nodes of the trees they
    # hang on, named by their hash under the run's own salt. `owner` is the item that all snapshots of the run are.
    Table(
        "parts",
        (
            _text("owner"),
            _bytes("hash"),
            _text("body", nullable=True, content=True),
            _text("receipt_id", nullable=True),
        ),
        key=("owner", "hash"),
        forget="erase",
        subject="owner",
    ),
    # Idempotency keys (LG-06), hashed; `request_hash` is salted like the entry and goes with it.
    Table(
        "idempotency",
        (
            _text("user_id"),
            _bytes("key_hash"),
            _text("entry_id"),
            _bytes("request_hash", nullable=True, content=True),
        ),
        key=("user_id", "key_hash"),
        indexes=(("entry_id",),),
        forget="erase",
        subject="entry_id",
    ),
    # The index: blocks of postings over consecutive turns of one user, by hashed terms. Merged as they grow.
    Table(
        "segments",
        (
            _text("user_id"),
            _int("first"),
            _int("count"),
            _int("level"),
            _bytes("digest"),
            _bytes("data", content=True),
        ),
        key=("user_id", "first"),
        forget="reindex",
    ),
    # Vectors of the same turns, in blocks of their own, bound to the embedder that made them.
    Table(
        "vectors",
        (
            _text("user_id"),
            _text("embedder"),
            _int("first"),
            _int("count"),
            _int("level"),
            _bytes("digest"),
            _bytes("data", content=True),
        ),
        key=("user_id", "embedder", "first"),
        forget="reindex",
    ),
)

_BY_NAME = {spec.name: spec for spec in TABLES}


def table(name: str) -> Table:
    return _BY_NAME[name]
