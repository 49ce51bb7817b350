"""Every error muniment raises, as one tree.

    MunimentError
    ├── InvalidInput            the caller's data is wrong: fix it and call again
    │   ├── InvalidJson         not JSON, or JSON we refuse (duplicate keys, NaN, lone surrogates, too deep)
    │   ├── InvalidRecord       JSON that does not fit its contract; carries every issue found
    │   ├── UnknownKind         no such contract
    │   ├── TooLarge            over a stated limit
    │   ├── UnsafeFile          a third party's file that could only be read by trusting or running it
    │   ├── LessonRefused       a lesson that its evidence does not support, or that is not allowed; carries the reason
    │   ├── IllConditioned      measurements too weak for the requested result
    │   └── EvaluationFailed    a function of the caller's crashed, hung or returned an invalid result
    ├── NotFound                the thing named does not exist in this scope
    │   └── UnknownScope        no such tenant, user, session
    ├── Conflict                the data is valid, but conflicts with the state of the store
    │   ├── DuplicateId         an id that exists already
    │   ├── StaleState          an optimistic lock lost; carries the current version
    │   ├── IdempotencyMismatch the key was used before with another request
    │   ├── RunFinished         a write to a run that has ended
    │   ├── RunLocked           the run's compaction failed; carries the diagnosis
    │   ├── WrongStage          a research run is not there yet, or is past it
    │   ├── GateFailed          a gate of a research run does not hold; carries its metrics
    │   ├── MessagesDiffer      a list of messages does not begin with what was recorded of it
    │   ├── ClockWentBack       the clock reads earlier than what is recorded already
    │   └── ComposedBefore      a build of a version that stored too little to compose it again
    ├── Forbidden               the caller lacks the grant for it
    ├── Refused                 a server rejected the request before processing it
    │   ├── Unauthorized        no key, or one that does not hold
    │   ├── RateLimited         too many requests under one key
    │   ├── UnknownRoute        nothing answers at that address
    │   ├── WrongMethod         the address does not take that method
    │   ├── UnsupportedMedia    a body in a form that is not taken there
    │   ├── TooSlow             the body did not come in time
    │   └── QueueFull           too many requests of this tenant wait already
    │       └── Overloaded      too many requests wait already, from all callers
    ├── Stopped                 a server stopped the work: its caller has gone, and nothing was written
    │   └── DeadlineExceeded    it was not finished in its time limit
    ├── Forgotten               it was here and has been erased; carries the receipt's id
    ├── IntegrityFailure        stored bytes are not what they were
    │   ├── ChainBroken         a link of a session's hash chain does not hold
    │   ├── StoreDamaged        the data read differ from those written; names the entry or item, and the remedy
    │   │   └── BlobCorrupt     a blob does not hash to its name
    │   ├── QuoteMismatch       quoted text is not in the bytes it points to
    │   └── ArtifactEdited      a file of a run directory is not what the store holds
    ├── StorageFailure          the outside world failed; nothing was half-written
    │   ├── StorageBusy         another writer held the lock past the deadline
    │   ├── StorageReadOnly     the file or server refuses writes
    │   ├── StorageFull         no space left
    │   ├── StorageLost         the connection broke; the outcome of the call is unknown
    │   ├── NotADatabase        the file is something else
    │   └── SchemaMismatch      written by a newer or altered muniment
    ├── EmbedderFailure         an embedding server failed; nothing was stored
    │   ├── EmbedderUnreachable no answer, through every attempt
    │   ├── EmbedderRefused     a refusal
    │   └── EmbedderMalformed   an answer other than the requested vectors
    ├── ModelFailure            a model server failed; nothing was proposed
    │   ├── ModelUnreachable    no answer, through every attempt
    │   ├── ModelRefused        a refusal
    │   └── ModelMalformed      an answer of the wrong form
    ├── SandboxFailure          nothing was run: neither in a sandbox nor, ever, outside of one
    │   ├── SandboxUnavailable  a requirement is missing, or unavailable on this machine
    │   └── SandboxDenied       the system or the policy refuses
    ├── LearningFailed          learning from a run failed by a defect or a plug-in; its judgement is kept
    ├── Interrupted             the process that carried out a long work ended before the work did
    ├── AnswerNotRecorded       a model answered, and its answer could not be recorded; carries it
    ├── Closed                  used after close()
    └── MissingDependency       an extra is not installed

Each class fixes a `code` (stable, snake_case), an HTTP `status` and a hint for the usual case; each instance has a
message, a `hint` saying what to do, and where it helps a JSON `path` and `details`. Surfaces show exactly `to_dict()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

__all__ = [
    "AnswerNotRecorded", "ArtifactEdited", "BlobCorrupt", "ChainBroken", "ClockWentBack", "Closed", "ComposedBefore",
    "Conflict", "DeadlineExceeded", "DuplicateId", "EmbedderFailure", "EmbedderMalformed", "EmbedderRefused",
    "EmbedderUnreachable", "EvaluationFailed", "Forbidden", "Forgotten", "GateFailed", "IdempotencyMismatch",
    "IllConditioned", "IntegrityFailure", "Interrupted", "InvalidInput", "InvalidJson", "InvalidRecord", "Issue",
    "LearningFailed", "LessonRefused", "MessagesDiffer", "MissingDependency", "ModelFailure", "ModelMalformed",
    "ModelRefused", "ModelUnreachable", "MunimentError", "NotADatabase", "NotFound",
    "Overloaded", "QueueFull", "QuoteMismatch", "RateLimited", "Refused",
    "RunFinished", "RunLocked", "SandboxDenied", "SandboxFailure", "SandboxUnavailable", "SchemaMismatch", "StaleState",
    "Stopped", "StorageBusy", "StorageFailure", "StorageFull", "StorageLost", "StorageReadOnly", "StoreDamaged",
    "TooLarge", "TooSlow", "Unauthorized", "UnknownKind", "UnknownRoute", "UnknownScope", "UnsafeFile",
    "UnsupportedMedia", "WrongMethod", "WrongStage",
]  # fmt: skip


_ISSUES_SHOWN = 3
_ISSUE_CHARS_MAX = 200


class Issue(NamedTuple):
    """One fault at one place of a document; `path` is a JSONPath such as `$.meta.budget`."""

    path: str
    message: str
    code: str = "invalid"

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "message": self.message, "code": self.code}


class MunimentError(Exception):
    """The root of the tree: catch this to catch everything muniment raises on purpose."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    usual_hint: ClassVar[str] = "this is a defect; please report it"
    """Default advice, unless an instance has a better hint."""

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
        self.hint: str = self.usual_hint if hint is None else hint
        self.details: dict[str, Any] = dict(details or {})
        self.add_note(f"{self.code}: {self.hint}" if self.hint else self.code)  # shown below it in a traceback

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.message, self.path, self.hint, self.details))

    def __str__(self) -> str:
        where = f" (at {self.path})" if self.path else ""
        return f"{self.message}{where}"

    def within(self, place: str) -> Self:
        """Return this error relative to the whole input: its paths begin at `place`, such as `$[3]`."""
        self.path = f"{place}{(self.path or '$')[1:]}"
        for issue in self.details.get("issues", ()):
            issue["path"] = f"{place}{issue['path'][1:]}"
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the one form every surface shows. Absent parts are absent."""
        parts = {"path": self.path, "hint": self.hint or None, "details": self.details or None}
        present = {name: part for name, part in parts.items() if part is not None}
        return {"code": self.code, "message": self.message, **present}


def _rebuild(
    cls: type[MunimentError], message: str, path: str | None, hint: str | None, details: dict[str, Any]
) -> MunimentError:
    error = cls.__new__(cls)
    MunimentError.__init__(error, message, path=path, hint=hint, details=details)
    return error


class InvalidInput(MunimentError):
    code = "invalid_input"
    status = 422
    usual_hint = "correct it and call again; nothing was written"


class InvalidJson(InvalidInput):
    code = "invalid_json"
    status = 400
    usual_hint = "look at that place of the document; `python -m json.tool FILE` finds what is no JSON"


class InvalidRecord(InvalidInput):
    """A document that does not fit its contract. `issues` lists everything found, not only the first."""

    code = "invalid_record"
    usual_hint = "each issue names its path; `muniment schema show KIND` prints the contract"

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

    def __str__(self) -> str:
        """Return the message and the first issues, in one line; `issues` has them all, uncut."""
        issues = self.details.get("issues", ())
        if not issues:
            return super().__str__()
        shown = [_clipped(f"{issue['path']}: {issue['message']}") for issue in issues[:_ISSUES_SHOWN]]
        more = [f"and {len(issues) - _ISSUES_SHOWN} more"] if len(issues) > _ISSUES_SHOWN else []
        return f"{self.message}: {'; '.join([*shown, *more])}"


def _clipped(text: str) -> str:
    line = " ".join(text.encode("utf-8", "backslashreplace").decode().split())  # it may quote text without a UTF-8 form
    return line if len(line) <= _ISSUE_CHARS_MAX else line[: _ISSUE_CHARS_MAX - 1] + "…"


class UnknownKind(InvalidInput):
    code = "unknown_kind"
    status = 404
    usual_hint = "`muniment schema list` names the kinds"


class TooLarge(InvalidInput):
    code = "too_large"
    status = 413
    usual_hint = "split it, or raise the limit where the policy sets it"


class UnsafeFile(InvalidInput):
    code = "unsafe_file"
    usual_hint = "export it anew from the system it comes from, and do not use this file elsewhere"


class LessonRefused(InvalidInput):
    """`details.reason` gives the reason, as one word."""

    code = "lesson_refused"
    usual_hint = "say in one sentence what helps, when, and cite the events that show it"


class IllConditioned(InvalidInput):
    """`details.condition_number` gives the degree, if finite."""

    code = "ill_conditioned"
    usual_hint = "ask for less at once, choose probes that differ more, or measure with more repeats"


class EvaluationFailed(InvalidInput):
    code = "evaluation_failed"
    usual_hint = "the function is yours: the details say where it failed; nothing was planned"


class NotFound(MunimentError):
    code = "not_found"
    status = 404
    usual_hint = "check the id, and that tenant, user and store are those it was written in"


class UnknownScope(NotFound):
    code = "unknown_scope"
    usual_hint = "check the name; a scope is there once something was written in it"


class Conflict(MunimentError):
    code = "conflict"
    status = 409
    usual_hint = "read what stands now, and decide by that"


class DuplicateId(Conflict):
    code = "duplicate_id"
    usual_hint = "leave the id out and one is made, or choose another"


class StaleState(Conflict):
    code = "stale_state"
    usual_hint = "read the state again and make the change on that version"

    @property
    def current_version(self) -> int:
        return int(self.details["current_version"])


class IdempotencyMismatch(Conflict):
    code = "idempotency_mismatch"
    usual_hint = "a new request takes a new key"


class RunFinished(Conflict):
    code = "run_finished"
    usual_hint = "open another run with mem.run(...)"


class RunLocked(Conflict):  # CS-08
    """`details["validation"]` lists the failed checks."""

    code = "run_locked"
    usual_hint = "the details say what did not hold; `muniment run` opens it again"


class WrongStage(Conflict):
    code = "wrong_stage"
    usual_hint = "`status` says what comes next"


class GateFailed(Conflict):
    """`details` is the gate: its metrics and the reasons why it fails."""

    code = "gate_failed"
    usual_hint = "`gates` says what would help"


class ClockWentBack(Conflict):
    code = "clock_went_back"
    usual_hint = "set the clock right, or wait until it has passed what is recorded"


class MessagesDiffer(Conflict):
    """`details` gives the message's index, what was recorded there, and what was given."""

    code = "messages_differ"
    usual_hint = "a list may grow; one that was edited or cut is recorded in a session of its own"


class ComposedBefore(Conflict):
    code = "composed_before"
    usual_hint = "replay it with the version that composed it"


class Forbidden(MunimentError):
    code = "forbidden"
    status = 403
    usual_hint = "name the grant where the run is opened: mem.run(..., grants=(...))"


class Refused(MunimentError):
    """Refused by a server before it processed anything."""

    code = "refused"
    status = 400
    usual_hint = "the OpenAPI document at /v1/openapi.json says what is taken where"


class Unauthorized(Refused):
    code = "unauthorized"
    status = 401
    usual_hint = "send `Authorization: Bearer KEY`; `muniment store keys create` makes one"


class RateLimited(Refused):
    """`details.retry_after_s` gives the waiting time."""

    code = "rate_limited"
    status = 429
    usual_hint = "wait as long as Retry-After says, and ask less often"


class UnknownRoute(Refused):
    code = "unknown_route"
    status = 404


class WrongMethod(Refused):
    """`details.allowed` are the accepted ones."""

    code = "wrong_method"
    status = 405


class UnsupportedMedia(Refused):
    code = "unsupported_media"
    status = 415
    usual_hint = "send the body as `Content-Type: application/json`, not encoded"


class TooSlow(Refused):
    code = "too_slow"
    status = 408
    usual_hint = "send the whole body at once"


class QueueFull(Refused):
    """`details.retry_after_s` gives the waiting time."""

    code = "queue_full"
    status = 429
    usual_hint = "wait for answers before asking more, or as long as Retry-After says"


class Overloaded(QueueFull):
    code = "overloaded"
    status = 503
    usual_hint = "come back after as long as Retry-After says"


class Stopped(MunimentError):
    """The caller has gone. Earlier commits stay; nothing else was written."""

    code = "stopped"
    status = 499
    usual_hint = "ask again, and wait for the answer"


class DeadlineExceeded(Stopped):
    """`details.seconds` is the time it had."""

    code = "deadline_exceeded"
    status = 504
    usual_hint = "ask for less (a smaller limit, a narrower filter), or later; nothing was written"


class Forgotten(MunimentError):
    code = "forgotten"
    status = 410
    usual_hint = "it cannot be had back; the receipt says what went"


class IntegrityFailure(MunimentError):
    code = "integrity_failure"
    status = 500
    usual_hint = "run `muniment verify`; what does not hold can be restored from an export"


class ChainBroken(IntegrityFailure):
    code = "chain_broken"


class StoreDamaged(IntegrityFailure):
    """The data read differ from what was written. `details` name the entry or item; nothing of it is returned."""

    code = "store_damaged"
    usual_hint = (
        "`muniment verify` names all that is damaged; `muniment store rebuild` makes again what is derived from the "
        "ledger; an entry is restored from a dump or a backup"
    )


class BlobCorrupt(StoreDamaged):
    code = "blob_corrupt"


class QuoteMismatch(IntegrityFailure):
    code = "quote_mismatch"
    status = 422
    usual_hint = "quote the source's own words, exactly"


class ArtifactEdited(IntegrityFailure):
    """`details.paths` are the files."""

    code = "artifact_edited"
    usual_hint = "resume() writes the store's files over the edited ones"


class StorageFailure(MunimentError):
    code = "storage_failure"
    status = 503
    usual_hint = "nothing was half-written: look at the details and try again"


class StorageBusy(StorageFailure):
    code = "storage_busy"
    usual_hint = "another writer holds the store: try again"


class StorageReadOnly(StorageFailure):
    code = "storage_read_only"
    usual_hint = "open it for writing, and check that the file or server lets you"


class StorageFull(StorageFailure):
    code = "storage_full"
    status = 507
    usual_hint = "make room and try again; nothing was half-written"


class StorageLost(StorageFailure):
    code = "storage_lost"
    usual_hint = "connect again; with an idempotency key the call can be repeated without harm"


class NotADatabase(StorageFailure):
    code = "not_a_database"
    status = 500
    usual_hint = "check the path: it should name a store of muniment's, or no file yet"


class SchemaMismatch(StorageFailure):
    code = "schema_mismatch"
    status = 500
    usual_hint = "open it with the muniment that wrote it, or a newer one"


class EmbedderFailure(MunimentError):
    code = "embedder_failure"
    status = 502
    usual_hint = "look at the embedding server, and try again"


class EmbedderUnreachable(EmbedderFailure):
    code = "embedder_unreachable"
    status = 503
    usual_hint = "check that the server runs and that its address is right"


class EmbedderRefused(EmbedderFailure):
    code = "embedder_refused"
    usual_hint = "check the key, the model's name and the length of the text"


class EmbedderMalformed(EmbedderFailure):
    code = "embedder_malformed"
    usual_hint = "check that the address is that of an OpenAI-compatible /embeddings"


class ModelFailure(MunimentError):
    code = "model_failure"
    status = 502
    usual_hint = "look at the model's server, and try again; patterns need none"


class ModelUnreachable(ModelFailure):
    code = "model_unreachable"
    status = 503
    usual_hint = "check that the server runs and that its address is right"


class ModelRefused(ModelFailure):
    code = "model_refused"
    usual_hint = "check the key, the model's name and the length of the text"


class ModelMalformed(ModelFailure):
    code = "model_malformed"
    usual_hint = "check that the address is that of an OpenAI-compatible /chat/completions that takes a JSON schema"


class SandboxFailure(MunimentError):  # RC-17
    """Nothing was run. `code` is the reason code a verifier gives with UNKNOWN."""

    code = "sandbox_failure"
    status = 503
    usual_hint = "`muniment doctor` says what the sandbox lacks"


class SandboxUnavailable(SandboxFailure):
    code = "exec_unavailable"
    status = 501


class SandboxDenied(SandboxFailure):
    code = "sandbox_denied"
    status = 403


class LearningFailed(MunimentError):
    code = "learning_failed"
    usual_hint = "see to the cause; then `run.learning.learn(verifier_result)` learns from it, also after its end"


class Interrupted(MunimentError):
    code = "interrupted"
    status = 503
    usual_hint = "start it again: what it had done is kept, and it takes up from there"


class AnswerNotRecorded(MunimentError):
    """Raised by a wrapped client that fails closed. `answer` is the client's answer; the cause is the failure."""

    code = "answer_not_recorded"
    status = 503
    usual_hint = "the answer is in the error: use it, and record it once the store is there again"
    answer: Any = None


class Closed(MunimentError):
    code = "closed"
    status = 503
    usual_hint = "open the store again with muniment.open(...)"


class MissingDependency(MunimentError):
    code = "missing_dependency"
    status = 501
    usual_hint = "`muniment doctor` says which extra brings it"
