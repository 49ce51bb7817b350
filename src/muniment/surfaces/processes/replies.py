"""Stored answers to requests with an idempotency key (LG-06), so that every process answers a retry alike.

An answer is sent again only after the ledger has confirmed, in a transaction, that the key was used for the same
request and that nothing it wrote was forgotten. Answers are bounded in size, number and age per tenant; a forget
deletes them all (`store.answers`), and an answer made during a forget is not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from starlette.responses import Response

from muniment.core.canonical import canonical_bytes, parse_json, salted_digest
from muniment.core.instants import format_instant
from muniment.core.ports.engine import Condition, Engine, Patch, Transaction
from muniment.core.ports.models import Clock, Ids
from muniment.core.ports.rows import get, put, select
from muniment.core.ports.schema import REPLIES, ReplyRow
from muniment.store.answers import clearing_of, hold_answers
from muniment.surfaces.http._calls import KeyedRequest, Repeated, key_hash

__all__ = ["KEPT", "Replies"]

KEPT = timedelta(hours=24)
"""How long an answer is kept."""
BODY_BYTES_MAX = 2 << 20
"""A larger answer is not kept."""
COUNT_MAX = 4096
BYTES_MAX = 32 << 20
"""The limits of one tenant: beyond either, the oldest are deleted."""
_CLEANED_AFTER = 64
"""One in this many answers triggers a cleanup."""


class _Size(NamedTuple):
    created_at: str
    size: int


class Replies:
    """A store's kept answers, as written and read by one process."""

    def __init__(self, engine: Engine, clock: Clock, ids: Ids) -> None:
        self._engine, self._clock, self._ids = engine, clock, ids

    def answer(self, request: KeyedRequest, call: Callable[[], Any], respond: Callable[[Any], Response]) -> Response:
        """Carry out a request and keep the answer; or return the kept answer, if it was carried out before."""
        number = self._engine.read(request.tenant_id, clearing_of)
        try:
            response = respond(call())
        except Repeated:
            kept = self._find(request)
            if kept is None:
                raise
            return kept
        if hasattr(response, "body") and len(response.body) <= BODY_BYTES_MAX:
            self._keep(request, number, response)
        return response

    def _keep(self, request: KeyedRequest, number: int, response: Response) -> None:
        salt = self._ids.salts(1)[0]
        headers = [[name, value] for name, value in response.headers.items() if name != "content-length"]
        body = bytes(response.body)
        row = ReplyRow(
            user_id=request.user_id,
            key_hash=key_hash(request),
            created_at=format_instant(self._clock()),
            kept=1,
            size=len(body),
            status=response.status_code,
            salt=salt,
            said=salted_digest(salt, request.said),
            headers=canonical_bytes(headers).decode(),
            body=body,
        )
        # By the key alone, not by a count: a count would reveal to a caller how many others had made requests.
        cleans = int.from_bytes(row.key_hash[:4], "big") % _CLEANED_AFTER == 0

        def work(tx: Transaction) -> None:
            if hold_answers(tx) != number:
                return
            put(tx, REPLIES, [row])
            if cleans:
                _clean(tx, self._since())

        self._engine.write(request.tenant_id, work)

    def _find(self, request: KeyedRequest) -> Response | None:
        key = (request.user_id, key_hash(request))
        row = self._engine.read(request.tenant_id, lambda reader: get(reader, REPLIES, key))
        if row is None or row.salt is None or row.body is None or row.created_at < self._since():
            return None
        if row.said != salted_digest(row.salt, request.said):
            return None
        headers = parse_json((row.headers or "[]").encode())
        assert isinstance(headers, list)
        return Response(row.body, row.status, {**dict(headers), "Idempotency-Replayed": "true"})

    def _since(self) -> str:
        return format_instant(self._clock() - KEPT)


def _clean(tx: Transaction, since: str) -> None:
    """Clear answers beyond the age or size limits. Their salt stays until a forget, which searches the files for
    copies.
    """
    kept: tuple[Condition, ...] = (("kept", "=", 1),)
    count = size = 0
    for row in select(tx, REPLIES, kept, into=_Size, order=("created_at",), descending=True):
        count, size = count + 1, size + row.size
        if count > COUNT_MAX or size > BYTES_MAX:
            since = max(since, row.created_at)
            break
    emptied = {"kept": 0, "size": 0, "said": None, "headers": None, "body": None}
    tx.do(Patch("replies", (*kept, ("created_at", "<=", since)), emptied))
