"""docs/reference/format.md: how a store is laid out, from the declaration that both engines read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from muniment.core.ports.schema import TABLES, Table
from muniment.store.engines.codec import PREFIXES, WORD_OF
from muniment.store.engines.layout import LAYOUT, VIEWS
from reference.prose import first_paragraph, headed, table

ABOUT = (
    f"""
This page specifies how a store holds its rows (layout {LAYOUT}), so that it can be read, and its chains checked,
without muniment. SQLite and PostgreSQL have the same tables, made from one declaration.""",
    """
**Do not write to a store by SQL**: the next verification names what was changed. The layout may still change before
version 1; a store says in its table `layout` which one it has, and one of another layout is refused.""",
)
VIEWS_ABOUT = """## Views of a SQLite file

A SQLite file has read-only views, in which ids, names, times and words are text and bytes are hexadecimal digits:

```console
$ sqlite3 -readonly memory.db "SELECT ts, user_id, role, content FROM events ORDER BY ts DESC LIMIT 5"
```

They have the columns of their table and `tenant` before them; `events` also has `content`, the text of the body. Views
of one kind of items show the newest version of each item that was not forgotten. PostgreSQL has no views."""
ENCODINGS = {
    "shard": """An integer at the start of every key: the number of the tenant times 65,536. The lower 16 bits are
        reserved for a bucket of the tenant's users and 0 today, so the tenant is the unit by which a store can be
        distributed.""",
    "name": """An integer: the number of a user, session, agent or run in the table `names` under the same shard. Under
        shard 0, `names` has the numbers of tenants.""",
    "id": """Bytes that sort as the ids do. A minted id is a known prefix, `_` and 32 lower-case hexadecimal digits: one
        byte, twice the place of the prefix, and 16 raw bytes. An id that begins with a known prefix and `_` but is not
        minted: the code of the last minted id before it, and its UTF-8 text. Any other: one byte, twice the place of
        the last prefix before it plus 1, and its text.""",
    "ids": """Ids, one to a line. If all are minted ones of known prefixes, a byte 0 and the zlib data of their codes
        one after another; else a byte 1 and the zlib data of the text.""",
    "instant": "Microseconds since 1970 UTC. The least 64-bit integer stands for an empty text.",
    "word": """One letter for a word of the vocabulary. Any other word follows the letter of the last word before it, or
        `=` if there is none.""",
    "body": """JSON text. Where it is `{"content":"…"}` around a text that has no escapes and does not begin with `{`,
        that text alone. Anything else that does not begin with exactly one `{` has `{{` before it.""",
    "packed": """On SQLite, a text that gets shorter by it is a zlib BLOB; bytes have a first byte, which is 1 if the
        rest is zlib data and else 0. On PostgreSQL the value itself, which the server compresses.""",
}
CHECKING = """## What is hashed

```text
genesis      = sha256(canonical(["muniment.session.v1", tenant, user, session]))
content_hash = sha256(salt ‖ body)
hash         = sha256(prev_hash ‖ content_hash ‖ canonical(["muniment.entry.v1", tenant, user, agent, session, run,
                                                            id, seq, ts, recorded_at, kind, role, trust, flags]))
```

`prev_hash` of the first entry of a session is its genesis, of any other the `hash` of the entry before it. A forgotten
entry has neither body nor salt and names its receipt; its hashes stay, so the chain holds. `canonical` is JSON without
spaces, in UTF-8. This program checks every chain of a file with the standard library alone:

```py
import hashlib, json, sqlite3, sys


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def canonical(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


file = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
file.row_factory = sqlite3.Row
heads = {}
for row in file.execute("SELECT * FROM events ORDER BY tenant, user_id, session_id, seq"):
    session = (row["tenant"], row["user_id"], row["session_id"])
    seq, previous = heads.get(session, (0, sha256(canonical(["muniment.session.v1", *session]))))
    names = ("tenant", "user_id", "agent_id", "session_id", "run_id", "id", "seq", "ts", "recorded_at")
    header = canonical(["muniment.entry.v1", *(row[name] for name in (*names, "kind", "role", "trust", "flags"))])
    content_hash = bytes.fromhex(row["content_hash"])
    whole = row["seq"] == seq + 1 and sha256(previous, content_hash, header).hex() == row["hash"]
    if row["body"] is not None:
        whole = whole and sha256(bytes.fromhex(row["salt"]), row["body"].encode()) == content_hash
    else:
        whole = whole and row["receipt_id"] is not None
    if not whole:
        sys.exit(f"{row['id']} was altered, or an entry before it is missing")
    heads[session] = row["seq"], bytes.fromhex(row["hash"])
for row in file.execute("SELECT * FROM sessions_by_name"):
    session = (row["tenant"], row["user_id"], row["session_id"])
    if heads.pop(session, None) != (row["head_seq"], bytes.fromhex(row["head_hash"])):
        sys.exit(f"the end of session {row['session_id']} is missing")
print("every chain holds" if not heads else "a session is missing")
```

It does not check what was derived from the entries; `muniment verify` does."""
TABLES_ABOUT = """## Tables

`shard` is the first column of every table and of every key and index. `?` marks columns that may be null. *Content* is
what a forget empties."""


_CLAUSE = re.compile(r" \([A-Z]{1,2}-\d+\)")
"""What a docstring may cite, and a page may not."""


def page() -> str:
    parts = [*_views(), *_encodings(), CHECKING, "", *_tables()]
    return "\n".join([*headed("The format of a store", *ABOUT), *parts])


def _views() -> Iterator[str]:
    yield VIEWS_ABOUT + "\n"
    shown = ((f"`{name}`", f"`{held}`", f"`{kind}`" if kind else "") for name, (held, kind) in VIEWS.items())
    yield from table(("view", "table", "kind"), shown)


def _encodings() -> Iterator[str]:
    yield "## Encodings\n"
    yield from table(("form", "stored as"), ((f"`{form}`", text) for form, text in ENCODINGS.items()))
    yield "Prefixes in their order: " + ", ".join(f"`{prefix}`" for prefix in sorted(PREFIXES)) + ".\n"
    yield "Words by their letter: " + ", ".join(f"{letter} `{word}`" for letter, word in WORD_OF.items()) + ".\n"


def _tables() -> Iterator[str]:
    yield TABLES_ABOUT + "\n"
    for spec in TABLES:
        yield f"### {spec.name}\n"
        yield _CLAUSE.sub("", first_paragraph(spec.row.__doc__)) + "\n"
        yield from table(("column", "type", "form", ""), _columns(spec))
        key = ", ".join(("shard", *spec.key))
        yield f"Key: {key}. A forget: {spec.forget}.\n"
        if spec.serves:
            named = zip((*spec.unique, *spec.indexes), spec.serves, strict=True)
            yield from table(("index", "question that it answers"), ((", ".join(each), why) for each, why in named))


def _columns(spec: Table[Any]) -> Iterator[tuple[str, str, str, str]]:
    for column in spec.columns:
        form = "" if column.form == "plain" else column.form
        yield f"{column.name}{'?' if column.nullable else ''}", column.type, form, "content" if column.content else ""
