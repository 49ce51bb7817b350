"""Trace ingestion through the handles: arguments are checked, and each run is opened as usual."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from muniment.core.requests import ByRule, Expect, Request, checked, is_listing, one_of
from muniment.core.scope import IdText, is_reserved, scope_given
from muniment.errors import InvalidInput
from muniment.handles.run import Run
from muniment.traces.ingest import Whose, ingest
from muniment.traces.sessions import USER_ATTRIBUTES

if TYPE_CHECKING:
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft, LedgerEntry
    from muniment.traces.ingest import TraceReport

__all__ = ["IngestRequest", "ingest_otel"]

_ATTRIBUTES_MAX = 20
_User = Annotated[
    IdText | None,
    Expect("{name} should be the id of a user", lambda given: not is_reserved(given), hint="1 to 256 characters"),
]


def _names(given: Any, path: str) -> tuple[str, ...]:
    if given is None:
        return USER_ATTRIBUTES
    names = tuple(given) if is_listing(given) else (None,)
    if len(names) > _ATTRIBUTES_MAX or not all(isinstance(name, str) and name for name in names):
        raise InvalidInput(
            "user_attributes should be names of attributes", path=path, hint=f'such as ["{USER_ATTRIBUTES[0]}"]'
        )
    return names


class IngestRequest(Request):
    """The target of ingested traces."""

    user_id: _User
    default_user_id: _User
    user_attributes: Annotated[tuple[str, ...], ByRule(_names)]
    signal: Annotated[str | None, one_of(("traces", "logs"), "signal says what a protobuf holds")]


def ingest_otel(ctx: Context, data: Any, *, tenant_id: str, **asked: Any) -> TraceReport:
    """Check the arguments, and ingest the traces."""
    request = checked(IngestRequest, **asked)
    scope_given({"tenant_id": tenant_id, **dict.fromkeys(("user_id", "agent_id", "session_id", "run_id"), "unsaid")})
    _check_data(data)

    def open_run(names: Mapping[str, str]) -> Run:
        return Run(ctx, scope_given(dict(names)), "generic", None, None)

    def append(run: Run, drafts: list[EntryDraft], seq: int) -> list[LedgerEntry]:
        return run._append(drafts, expected_seq=seq)

    whose = Whose(tenant_id, request.user_id, request.default_user_id, request.user_attributes)
    signal: Any = request.signal
    return ingest(ctx, open_run, append, data, whose, signal)


def _check_data(data: Any) -> None:
    if not isinstance(data, str | bytes | bytearray | memoryview | Mapping | Iterable):
        raise InvalidInput(
            f"data should be OTLP as JSON or protobuf, not {type(data).__name__}",
            path="$.data",
            hint="the bytes of a file, its text, or its objects",
        )
