"""Every error muniment raises, as one tree.

    MunimentError
    ├── InvalidInput            the caller's data is wrong: fix it and call again
    │   ├── InvalidJson         not JSON, or JSON we refuse (duplicate keys, NaN, lone surrogates, too deep)
    │   ├── InvalidRecord       JSON that does not fit its contract; carries every issue found
    │   ├── UnknownKind         no such contract
    │   └── TooLarge            over a stated limit
    ├── NotFound                the thing named does not exist in this scope
    │   └── UnknownScope        no such tenant, user, session
    ├── Conflict                the data is fine, the state of the store says no
    │   ├── DuplicateId         an id that exists already
    │   ├── StaleState          an optimistic lock lost; carries the current version
    │   ├── IdempotencyMismatch the key was used before with another request
    │   ├── RunFinished         a write to a run that has ended
    │   └── ClockWentBack       the clock reads earlier than what is recorded already
    ├── Forbidden               the caller lacks the grant for it
    ├── Forgotten               it was here and has been erased; carries the receipt's id
    ├── IntegrityFailure        stored bytes are not what they were
    │   ├── ChainBroken         a link of a session's hash chain does not hold
    │   ├── BlobCorrupt         a blob does not hash to its name
    │   └── QuoteMismatch       quoted text is not in the bytes it points to
    ├── StorageFailure          the outside world failed; nothing was half-written
    │   ├── StorageBusy         another writer held the lock past the deadline
    │   ├── StorageReadOnly     the file or server refuses writes
    │   ├── StorageFull         no space left
    │   ├── StorageLost         the connection broke; the outcome of the call is unknown
    │   ├── NotADatabase        the file is something else
    │   └── SchemaMismatch      written by a newer or altered muniment
    ├── EmbedderFailure         a server that embeds did not do its part; nothing was stored
    │   ├── EmbedderUnreachable no answer, through every attempt
    │   ├── EmbedderRefused     an answer that says no
    │   └── EmbedderMalformed   an answer that is not the vectors asked for
    ├── Closed                  used after close()
    └── MissingDependency       an extra is not installed

Each class fixes a `code` (stable, snake_case) and an HTTP `status`; each instance has a message, and where
it helps a JSON `path`, a `hint` saying what to do, and `details`. Surfaces show exactly `to_dict()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

__all__ = [
    "BlobCorrupt",
    "ChainBroken",
    "ClockWentBack",
    "Closed",
    "Conflict",
    "DuplicateId",
    "EmbedderFailure",
    "EmbedderMalformed",
    "EmbedderRefused",
    "EmbedderUnreachable",
    "Forbidden",
    "Forgotten",
    "IdempotencyMismatch",
    "IntegrityFailure",
    "InvalidInput",
    "InvalidJson",
    "InvalidRecord",
    "Issue",
    "MissingDependency",
    "MunimentError",
    "NotADatabase",
    "NotFound",
    "QuoteMismatch",
    "RunFinished",
    "SchemaMismatch",
    "StaleState",
    "StorageBusy",
    "StorageFailure",
    "StorageFull",
    "StorageLost",
    "StorageReadOnly",
    "TooLarge",
    "UnknownKind",
    "UnknownScope",
]


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing wrong at one place of a document; `path` is a JSONPath such as `$.meta.budget`."""

    path: str
    message: str
    code: str = "invalid"

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "message": self.message, "code": self.code}


class MunimentError(Exception):
    """The root of the tree: catch this to catch everything muniment raises on purpose."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.path, self.hint, self.details))

    def __str__(self) -> str:
        where = f" (at {self.path})" if self.path else ""
        return f"{self.message}{where}"

    def to_dict(self) -> dict[str, Any]:
        """The one shape every surface shows. Absent parts are absent."""
        shape: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.path is not None:
            shape["path"] = self.path
        if self.hint is not None:
            shape["hint"] = self.hint
        if self.details:
            shape["details"] = self.details
        return shape


def _rebuild(
    cls: type[MunimentError], message: str, path: str | None, hint: str | None, details: dict[str, Any]
) -> MunimentError:
    error = cls.__new__(cls)
    MunimentError.__init__(error, message, path=path, hint=hint, details=details)
    return error


class InvalidInput(MunimentError):
    code = "invalid_input"
    status = 422


class InvalidJson(InvalidInput):
    code = "invalid_json"
    status = 400


class InvalidRecord(InvalidInput):
    """A document that does not fit its contract. `issues` lists everything found, not only the first."""

    code = "invalid_record"

    def __init__(self, message: str, issues: Sequence[Issue], *, hint: str | None = None) -> None:
        super().__init__(
            message,
            path=issues[0].path if issues else None,
            hint=hint,
            details={"issues": [issue.to_dict() for issue in issues]},
        )

    @property
    def issues(self) -> tuple[Issue, ...]:
        return tuple(Issue(**issue) for issue in self.details.get("issues", ()))


class UnknownKind(InvalidInput):
    code = "unknown_kind"
    status = 404


class TooLarge(InvalidInput):
    code = "too_large"
    status = 413


class NotFound(MunimentError):
    code = "not_found"
    status = 404


class UnknownScope(NotFound):
    code = "unknown_scope"


class Conflict(MunimentError):
    code = "conflict"
    status = 409


class DuplicateId(Conflict):
    code = "duplicate_id"


class StaleState(Conflict):
    code = "stale_state"

    @property
    def current_version(self) -> int:
        return int(self.details["current_version"])


class IdempotencyMismatch(Conflict):
    code = "idempotency_mismatch"


class RunFinished(Conflict):
    code = "run_finished"


class ClockWentBack(Conflict):
    code = "clock_went_back"


class Forbidden(MunimentError):
    code = "forbidden"
    status = 403


class Forgotten(MunimentError):
    code = "forgotten"
    status = 410


class IntegrityFailure(MunimentError):
    code = "integrity_failure"
    status = 500


class ChainBroken(IntegrityFailure):
    code = "chain_broken"


class BlobCorrupt(IntegrityFailure):
    code = "blob_corrupt"


class QuoteMismatch(IntegrityFailure):
    code = "quote_mismatch"
    status = 422


class StorageFailure(MunimentError):
    code = "storage_failure"
    status = 503


class StorageBusy(StorageFailure):
    code = "storage_busy"


class StorageReadOnly(StorageFailure):
    code = "storage_read_only"


class StorageFull(StorageFailure):
    code = "storage_full"
    status = 507


class StorageLost(StorageFailure):
    code = "storage_lost"


class NotADatabase(StorageFailure):
    code = "not_a_database"
    status = 500


class SchemaMismatch(StorageFailure):
    code = "schema_mismatch"
    status = 500


class EmbedderFailure(MunimentError):
    """The server that embeds did not do its part; nothing was stored."""

    code = "embedder_failure"
    status = 502


class EmbedderUnreachable(EmbedderFailure):
    """No answer: refused, cut off, too late, or busy through every attempt."""

    code = "embedder_unreachable"
    status = 503


class EmbedderRefused(EmbedderFailure):
    """An answer that says no: a wrong key, an unknown model, too long a text."""

    code = "embedder_refused"


class EmbedderMalformed(EmbedderFailure):
    """An answer that is not the vectors that were asked for."""

    code = "embedder_malformed"


class Closed(MunimentError):
    code = "closed"
    status = 500


class MissingDependency(MunimentError):
    code = "missing_dependency"
    status = 501
