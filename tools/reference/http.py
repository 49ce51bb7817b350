"""docs/reference/http.md: the addresses by handle, who may ask, what is answered when it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from muniment.surfaces.operations.openapi import openapi
from muniment.surfaces.operations.problems import titled
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.table import BASES, HANDLES, Operation
from reference.errors import classes
from reference.prose import first_paragraph, headed, table

ABOUT = (
    """
The library's methods are the API: each address calls one of them ([Python API](api.md)), takes its arguments by
name and answers what it answers. Every schema is in [openapi.json](openapi.json), which a server also shows at
`/v1/openapi.json`; [openapi-core.json](openapi-core.json) has the core alone.
`muniment.connect(url, key=…)` is the client: the same handles, over these addresses.""",
)
CONVENTIONS = """## Conventions

- **Scope is in the path.** What an id names must belong to the tenant and user in the path, or it does not exist.
  Ids are percent-encoded, so that one may hold a slash.
- **Keys**: `Authorization: Bearer KEY` (`muniment store keys create`), asked for unless only this machine can reach the
  server. A key is for one tenant or all, perhaps for one user, and for `read`, `write` or `admin`; each includes the
  one before.
- **Arguments** are the query of a `GET` and the JSON object in the body of everything else. Unknown ones are refused.
- **Answers** are canonical JSON, so equal things have equal bytes. Those to a `GET`, pages of lists too, have an
  `ETag`, and are 304 with it as `If-None-Match`; streams and JSON lines have none.
- **Lists** come in pages, `{"items": […], "next": CURSOR}` (`limit`, `cursor`), or whole, as JSON lines, with
  `Accept: application/x-ndjson`. The first page has a `count` where it is known. Where words or a kind are asked for a
  page may be short, or empty, and still have a `next`. `around` an id stand those before it and after it.
- **A run** that is not there is started by its first write, with the `agent_id`, `session_id` and `task_type` of the
  query.
- **Once**: with an `Idempotency-Key` a request writes once, however often it is sent; `compose` answers the same build.
  **In order**: with `If-Match`, only where the version is still the one that was read; else `stale_state`, 412.
- **Long work** (marked `*`) runs beside the requests with `Prefer: respond-async`: 202, and its progress under
  `…/operations/{operation_id}`.
- **Encoding**: `zstd` or `gzip` by `Accept-Encoding`. Bodies of requests are never encoded.
"""
ERRORS = """## Errors

`application/problem+json` with `code`, `detail`, `hint`, `request_id`, and `path` and `details` where they help. What
each code means is in [Errors](errors.md). `rate_limited` and `closed` (the server is being stopped) come with a
`Retry-After`. Every answer to a key says in `RateLimit` and `RateLimit-Policy` what is left of its rate.
"""


def page() -> str:
    return "\n".join([*headed("HTTP", *ABOUT), CONVENTIONS, *_errors(), *_server(), *_handles()])


def _errors() -> Iterator[str]:
    yield ERRORS
    by_status = sorted(classes(), key=lambda cls: cls.status)
    rows = [
        (f"{status} {titled(status)}", ", ".join(f"`{cls.code}`" for cls in group))
        for status, group in groupby(by_status, lambda cls: cls.status)
    ]
    rows.append((f"412 {titled(412)}", "`stale_state` where `If-Match` did not hold"))
    rows.append((f"431 {titled(431)}", "`too_large`, of a request's head"))
    yield from table(("status", "codes"), sorted(rows))


def _server() -> Iterator[str]:
    yield "## server\n"
    yield "Without a key, but for `/v1/key`.\n"
    pages = {path: item["get"] for path, item in openapi()["paths"].items() if "get" in item}
    rows = ((f"`GET {path}`", told["summary"]) for path, told in pages.items() if told["tags"] == ["server"])
    yield from table(("address", ""), rows)


def _handles() -> Iterator[str]:
    for handle in HANDLES:
        rows = [each for each in OPERATIONS if each.handle == handle]
        yield f"## {handle}\n"
        bases = {level: base for (name, level), base in BASES.items() if name == handle}
        yield from (f"- {level}: `{base}`" for level, base in bases.items())
        yield ""
        columns = ("address", "at", "who may", "") if len(bases) > 1 else ("address", "who may", "")
        yield from table(columns, (_row(each, has_levels=len(bases) > 1) for each in rows))
        free = [each for each in rows if each.free_route is not None]
        if free:
            yield f"For no run in particular, also below `{BASES['memory', 'user']}`:"
            yield f"{', '.join(f'`{each.method} /{each.without_run}`' for each in free)}.\n"


def _row(operation: Operation, *, has_levels: bool) -> tuple[str, ...]:
    address = f"`{operation.method} /{operation.path}`{'*' if operation.is_long else ''}"
    levels = (", ".join(operation.levels),) if has_levels else ()
    return address, *levels, operation.access, first_paragraph(operation.signature.doc)
