"""docs/reference/schemas.md: the kinds of the contracts, each in a line, and where its schema is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from muniment.contracts.kinds import ALL_KINDS, document_of, record_of
from muniment.contracts.schemas import DIALECT, schema_id
from reference.prose import first_paragraph, headed, table

ABOUT = (
    f"The documents of the contracts. Each kind has a JSON Schema ({DIALECT.split('/')[-3]} {DIALECT.split('/')[-2]}),"
    f" named `{schema_id('KIND')}`, generated from the record that the library itself reads and writes, and kept in"
    " [`schemas/`](../../schemas).",
    "```console\n"
    "muniment schema list                        every kind\n"
    "muniment schema show KIND                   its schema\n"
    "muniment schema export DIR                  all of them, as files\n"
    "muniment validate --kind KIND FILE…         check documents; --semantic also checks what a schema cannot say\n"
    "```",
    """
In Python, `muniment.contracts.kinds.record_of(KIND).from_wire(document)` is the record, or an `InvalidRecord` that
names every place that is wrong.""",
)


def page() -> str:
    return "\n".join([*headed("Schemas", *ABOUT), *_documents()])


def _documents() -> Iterator[str]:
    order = list(dict.fromkeys(document_of(kind) for kind in ALL_KINDS))
    kinds = sorted(ALL_KINDS, key=lambda kind: order.index(document_of(kind)))
    for document, group in groupby(kinds, document_of):
        yield f"## {document}\n"
        rows = ((f"[`{kind}`](../../schemas/{kind}.json)", first_paragraph(record_of(kind).__doc__)) for kind in group)
        yield from table(("kind", ""), rows)
