"""The ledger's records: a draft of an event, the entry it becomes, a run, a receipt; and their rows.

A row was validated when it was written, and is checked against its hash when read: altered rows are never returned
(TM-12). Also here: the check of a quote against the bytes that a pointer names (LG-03), and the names of the events
that only the run itself writes.

Pure, as `admission`, `messages`, `secrets` and `injection` are: never reads a clock, mints an id or touches storage.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Protocol, Self

from muniment.core.canonical import read_canonical
from muniment.core.instants import format_instant, local_form
from muniment.core.ports.schema import EntryRow
from muniment.core.record import (
    Absent,
    Count,
    Items,
    JsonObject,
    Numeric,
    Record,
    Timestamp,
    ValidationError,
    issues_of,
)
from muniment.core.scope import (
    LEDGER_CORPUS,
    ChunkSpan,
    EventSpan,
    IdText,
    Origin,
    Pointer,
    Scope,
    Span,
    Trust,
    UrlCitation,
    bank_holder,
    derive_evidence_id,
    is_reserved,
    quote_hash,
)
from muniment.errors import InvalidInput, InvalidJson, InvalidRecord, QuoteMismatch
from muniment.store.chain import damaged_entry, header_hash

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = [
    "ACTIONS_PLANNED",
    "ARTIFACT_KEPT",
    "CANDIDATE_DECIDED",
    "CANDIDATE_EVENTS",
    "CANDIDATE_PROPOSED",
    "CHECKPOINT_KEPT",
    "CITING",
    "CLAIM_DEMOTED",
    "CLAIM_MADE",
    "CLAIM_RETRACTED",
    "CLAIM_VERIFIED",
    "CONFLICT_RECORDED",
    "CONFLICT_SETTLED",
    "COUNTED_EVENTS",
    "DOCUMENT_ADDED",
    "DOCUMENT_EVENTS",
    "DOCUMENT_RETRACTED",
    "DRAFT_MADE",
    "FACT_DISPUTED",
    "FACT_EVENTS",
    "FACT_REINFORCED",
    "FACT_REMEMBERED",
    "FACT_RETRACTED",
    "FAILURE_RECORDED",
    "FOLD_MADE",
    "IMPORTED",
    "INSIGHT_EVENTS",
    "INSIGHT_JUDGED",
    "INSIGHT_PROMOTED",
    "INSIGHT_SUPPOSED",
    "INSTRUCTION_LIKE",
    "KEPT_EVENTS",
    "KINDS",
    "LESSONS_PROPOSED",
    "LESSONS_USED",
    "MEMORY_EVENTS",
    "MEMORY_KEPT",
    "MEMORY_RECALLED",
    "OUTPUT_VERIFIED",
    "PARTLY_ANALYSED",
    "PHASES",
    "PINNED",
    "PLAN_ENDED",
    "PLAN_MADE",
    "PROCEDURE_EVENTS",
    "PROCEDURE_RETIRED",
    "PROCEDURE_USED",
    "PROCEDURE_WRITTEN",
    "QUESTION_CLOSED",
    "QUESTION_OPENED",
    "ROLES",
    "RULEBOOK_CHANGED",
    "RULES_SELECTED",
    "RULE_REPORTED",
    "RULE_TESTED",
    "RUN_EVENTS",
    "RUN_FINISHED",
    "RUN_LOCKED",
    "RUN_LOGGED",
    "RUN_STARTED",
    "RUN_TURNS",
    "RUN_UNLOCKED",
    "SESSION_SUMMARIZED",
    "SNAPSHOT_TAKEN",
    "SOURCE_CHECKED",
    "STATE_PATCHED",
    "STOP_REASONS",
    "STUDY_CHANGED",
    "TURNS_CLAIMED",
    "TURNS_READ",
    "VALUES_PROLONGED",
    "VALUE_KEPT",
    "VALUE_REMOVED",
    "WORKING_SET_CHANGED",
    "WRITES_KEPT",
    "Body",
    "Cited",
    "ContentRow",
    "ContextManifest",
    "EntryDraft",
    "EntryKind",
    "EntryOwner",
    "EntryReceipt",
    "Erased",
    "Excluded",
    "LedgerEntry",
    "Receipt",
    "Resolved",
    "Role",
    "RunState",
    "StepEvent",
    "StopReason",
    "ToolCall",
    "check_content",
    "check_header",
    "cut",
    "draft_of",
    "drafts_of",
    "entry_of_row",
    "imported_from",
    "locate_quote",
    "make_draft",
    "named_events",
    "pointer_address",
    "read_body",
    "refuse_reserved",
]


class Excluded(Record):
    """An item kept out of a window, and why."""

    id: IdText
    reason: str


class ContextManifest(Record):  # CS-04
    """The content of the window at a step: ids of what was included, what was left out and why. No content."""

    manifest_id: IdText
    builds: Items[IdText]
    """The builds the window was made of; empty where the caller put it together."""
    selected: Items[IdText]
    """Evidence ids: events, chunks of documents."""
    excluded: Items[Excluded]
    filters: JsonObject
    """The filters that ran, with their arguments."""
    tokens: Absent[Count] = None


# -- records --------------------------------------------------------------------------------------------------


INSTRUCTION_LIKE = "instruction_like"
"""The flag of what came from outside and reads like instructions (LG-08)."""
IMPORTED = "imported:"
"""Prefix of the flag for an imported event, followed by the name of the source system."""
PARTLY_ANALYSED = "partly_analysed"
"""Flag of an event over the work budget: stored whole, with the rest after the analysed part found by words only."""
EntryKind = Literal["message", "tool_result", "state_patch", "system", "step"]
Role = Literal["user", "assistant", "tool", "system", "developer"]
StopReason = Literal["OBJECTIVE_ACHIEVED", "BUDGET_EXCEEDED", "NO_EVIDENCE", "HUMAN_REQUESTED", "SYSTEM_ERROR"]

KINDS: tuple[EntryKind, ...] = ("message", "tool_result", "state_patch", "system", "step")
ROLES: tuple[Role, ...] = ("user", "assistant", "tool", "system", "developer")
STOP_REASONS: tuple[StopReason, ...] = (
    "OBJECTIVE_ACHIEVED",
    "BUDGET_EXCEEDED",
    "NO_EVIDENCE",
    "HUMAN_REQUESTED",
    "SYSTEM_ERROR",
)


def imported_from(flags: Iterable[str]) -> str | None:
    """Return the source system of an event with these flags; None if it was observed here."""
    return next((flag.removeprefix(IMPORTED) for flag in flags if flag.startswith(IMPORTED)), None)


class ToolCall(Record):
    """The tool that was called, its arguments, and whether it worked; the result is the entry's content."""

    name: IdText
    args: Absent[JsonObject] = None
    ok: bool
    call_id: Absent[IdText] = None
    """The id under which the model made the call, where there is one: what joins the result to it."""


class Cited(Record):  # TM-10
    """Citations of an answer to its build: evidence by its marks, and the marks that name none."""

    build_id: IdText
    evidence_ids: Items[str]
    unknown_marks: Items[str]


class StepEvent(Record):  # CS-10
    """A moment in a run's step machine. Compaction counts PLAN_DONE, ACT_DONE and OBSERVE_DONE alone."""

    event: IdText
    step: Absent[Count] = None
    action: Absent[JsonObject] = None
    """The action taken, at ACT: `{"tool": …, "args": …}` or the like. Equal ones in a row are a loop."""
    tokens: Absent[Count] = None
    """The cost of the phase."""
    manifest: Absent[ContextManifest] = None
    """The content of the window, at COMPILE."""


class EntryDraft(Record):
    """A caller's description of an event, before it has a place in a chain."""

    kind: EntryKind = "message"
    role: Role
    content: str
    speaker: str | None = None
    ts: str | None = None
    id: IdText | None = None
    tags: Items[str] = ()
    entities: Items[str] = ()
    metadata: JsonObject | None = None
    tool: ToolCall | None = None
    step: StepEvent | None = None
    cited: Cited | None = None
    """Citations of an answer, read from its marks when it is observed with its build; never given by a caller."""
    imported: Origin | None = None
    """Source of an imported event. It is flagged so, and checked like all external content."""
    trust: Trust | None = None
    """May lower the trust the role gives, never raise it."""
    idempotency_key: IdText | None = None


class Body(Record):
    """The part of an entry that a forget erases; hashed under a salt."""

    content: Absent[str] = None
    """The text itself, unless it lies in a blob."""
    blob: Absent[str] = None
    """The SHA-256 (hex) of the content, where it lies in a blob."""
    bytes: Absent[Count] = None
    """The size of the blob in bytes."""
    speaker: Absent[str] = None
    tags: Absent[Items[str]] = None
    entities: Absent[Items[str]] = None
    metadata: Absent[JsonObject] = None
    tool: Absent[ToolCall] = None
    step: Absent[StepEvent] = None
    cited: Absent[Cited] = None
    imported: Absent[Origin] = None
    redactions: Absent[dict[str, Count]] = None
    """Redacted secrets: kind → count."""
    analysed_chars: Absent[Count] = None
    """Number of analysed characters, for a text over the work budget. The rest is found by its words."""
    utc_offset: Absent[Annotated[int, Numeric(integral=True)]] = None
    """Offset in minutes of the caller's `ts` from UTC, if not zero: days are the speaker's."""


class LedgerEntry(Record):
    """One event of the ledger. `id` is its evidence id.

    `body` is None once it was forgotten, and `receipt_id` then names the receipt. `content` and the other body fields
    are reachable as attributes.
    """

    id: IdText
    scope: Scope
    seq: Count
    ts: Timestamp
    recorded_at: Timestamp
    kind: EntryKind
    role: Role
    trust: Trust
    flags: Items[str] = ()
    content_hash: str
    prev_hash: str
    hash: str
    body: Body | None
    receipt_id: str | None = None

    @property
    def is_forgotten(self) -> bool:
        return self.body is None

    @property
    def local_ts(self) -> str:
        """`ts` as the clock of the speaker shows it, with its offset; in UTC where none is known."""
        offset = None if self.body is None else self.body.utc_offset
        return self.ts if offset is None else local_form(self.ts, offset)

    @property
    def content(self) -> str | None:
        """The text, where it lies in the row; None for a blob (ask `mem.ledger.content(id)`) or a forgotten entry."""
        return self.body.content if self.body else None

    @property
    def analysed_chars(self) -> int | None:
        """Number of analysed characters of a text over the work budget; None if all of it was analysed."""
        return self.body.analysed_chars if self.body else None

    @property
    def speaker(self) -> str | None:
        return self.body.speaker if self.body else None

    @property
    def tags(self) -> tuple[str, ...]:
        return (self.body.tags or ()) if self.body else ()

    @property
    def entities(self) -> tuple[str, ...]:
        return (self.body.entities or ()) if self.body else ()

    @property
    def metadata(self) -> JsonObject:
        return (self.body.metadata or {}) if self.body else {}

    @property
    def tool(self) -> ToolCall | None:
        return self.body.tool if self.body else None

    @property
    def step(self) -> StepEvent | None:
        return self.body.step if self.body else None

    @property
    def cited(self) -> Cited | None:
        """Citations of an answer that was observed with its build."""
        return self.body.cited if self.body else None

    @property
    def imported(self) -> Origin | None:
        """Source of an event that was not observed here."""
        return self.body.imported if self.body else None


class RunState(Record):
    """A run: its purpose and whether it has ended. Projected from its `system` entries."""

    run_id: IdText
    scope: Scope
    task_type: str = "generic"
    objective: str | None = None
    done_definition: JsonObject | str | None = None
    started_at: Timestamp
    finished_at: Timestamp | None = None
    stop_reason: StopReason | None = None
    budgets: JsonObject | None = None
    """Limits the run was given, by name: tokens, tool_calls, steps."""
    diagnosis: JsonObject | None = None  # CS-08
    """Why the run is locked: the validation its compaction failed."""
    first_said_at: Absent[str] = None
    """Time of its first turn, which may be long before it was recorded. Looked up, never stored."""
    last_said_at: Absent[str] = None
    """Time of its last turn."""

    @property
    def is_locked(self) -> bool:
        return self.diagnosis is not None

    @property
    def is_finished(self) -> bool:
        return self.finished_at is not None


class Erased(Record):
    """One erased thing: its kind, its id, and the hash that stays (hex), where it had one."""

    kind: str
    id: str
    hash: str | None = None


LEFT_DAMAGED = "left_damaged"
"""Count in a receipt: forgotten rows that are missing or altered, whose content may be elsewhere."""

WAITING, LEFT_WAITING = "waiting", "left_waiting"
"""Counts in a receipt: unwritten events held by hooks that were erased, and those that may remain."""


class Receipt(Record):  # LG-07
    """Proof of a forget: the request and what was erased. Holds ids and counts, never content."""

    receipt_id: IdText
    tenant_id: IdText
    requested_at: Timestamp
    selector: dict[str, str]
    erased: Items[Erased]
    counts: dict[str, Count]
    scrubbed: bool
    """The engine checked its own files and found none of it."""
    note: str
    concerns: Absent[str] = None
    """A digest of the one user it concerns, or of nobody; absent for several users."""

    def user_among(self, owners: Iterable[str]) -> str | None:
        """Return the one user a receipt concerns among these owners; "" for nobody, None for several.

        So a user's receipts are found among any number of others', and none of these moves a user's position.
        """
        asked = self.selector.get("user_id", "")
        users = {bank_holder(owner) or ("" if is_reserved(owner) else owner) for owner in (asked, *owners)} - {""}
        return None if len(users) > 1 else next(iter(users), "")

    def concerning(self, concerns: str | None) -> Self:
        return self if concerns is None else self.model_copy(update={"concerns": concerns})

    @property
    def status(self) -> Literal["complete", "pending"]:
        """`pending` while content may remain in a file, a damaged row or a hook's folder; the note names where."""
        return "complete" if self.scrubbed else "pending"

    @property
    def is_clean(self) -> bool:
        """Return whether no count reports content that may remain in rows or with hooks."""
        return not (self.counts.get(LEFT_DAMAGED) or self.counts.get(LEFT_WAITING))

    @property
    def left_note(self) -> str:
        """Return the part of the note about damaged rows, and about events that hooks hold."""
        note = ""
        if damaged := self.counts.get(LEFT_DAMAGED, 0):
            rows = f"{damaged} {'row' if damaged == 1 else 'rows'}"
            note = f"; the store is damaged: what {rows} of it held may stand elsewhere (`muniment verify`)"
        if waiting := self.counts.get(LEFT_WAITING, 0):
            named = "1 event" if waiting == 1 else f"{waiting} events"
            note += f"; {named} that hooks put down could not be read or removed, and may hold some of it"
        return note


# -- drafts of callers ------------------------------------------------------------------------------------------


@cache
def _drafts() -> "TypeAdapter[list[EntryDraft]]":
    from pydantic import TypeAdapter  # a search records nothing, and loads no validator

    return TypeAdapter(list[EntryDraft])


def drafts_of(events: Iterable[Any]) -> list[EntryDraft]:
    """Convert dicts of `observe`'s arguments, and drafts, to drafts in the same order; reports every issue at once."""
    plain = [event if isinstance(event, EntryDraft) else _event(event, index) for index, event in enumerate(events)]
    try:
        return _drafts().validate_python(plain)
    except ValidationError as error:
        raise InvalidRecord("some events cannot be recorded", issues_of(error, plain)) from None


def _as_recorded(event: dict[str, Any]) -> dict[str, Any]:
    """Convert callers' values to the strict record's: text time stamps, real sequences, real dicts."""
    ts = event.get("ts")
    if isinstance(ts, datetime):
        event["ts"] = format_instant(ts) if ts.tzinfo is None else ts.isoformat()
    elif isinstance(ts, date):
        event["ts"] = ts.isoformat()
    for key in ("tags", "entities"):
        value = event.get(key)
        if value is None:
            event.pop(key, None)
        elif not isinstance(value, str | list | tuple | Mapping) and isinstance(value, Iterable):
            event[key] = _ordered(value) if isinstance(value, set | frozenset) else list(value)
    if isinstance(event.get("metadata"), Mapping):
        event["metadata"] = dict(event["metadata"])
    return event


def _ordered(values: Iterable[Any]) -> list[Any]:
    """Put a set in a fixed order. Values that are not text are refused later, by the record."""
    texts = list(values)
    return sorted(texts) if all(isinstance(text, str) for text in texts) else texts


def make_draft(**event: Any) -> EntryDraft:
    """Return a draft with these fields, leaving out those that are None."""
    return _validated({key: value for key, value in event.items() if value is not None})


def draft_of(event: Mapping[str, Any]) -> EntryDraft:
    """Convert a dict of `observe`'s arguments to a draft, inferring the kind of entry from its fields."""
    return _validated(_with_kind(dict(event)))


def _validated(event: dict[str, Any]) -> EntryDraft:
    plain = _as_recorded(event)
    return EntryDraft.of_given(plain, "this cannot be recorded")


def _event(event: Any, index: int) -> dict[str, Any]:
    if not isinstance(event, Mapping):
        raise InvalidInput(f"an event should be an object, found {type(event).__name__}", path=f"$[{index}]")
    try:
        return _with_kind(_as_recorded(dict(event)))
    except InvalidInput as error:
        raise error.within(f"$[{index}]") from None


def _with_kind(event: dict[str, Any]) -> dict[str, Any]:
    if "kind" not in event:
        if event.get("tool") is not None:
            event["kind"] = "tool_result"
        elif event.get("step") is not None:
            event["kind"] = "step"
        elif event.get("role") in ("system", "developer"):
            event["kind"] = "system"
    return event


def refuse_reserved(draft: EntryDraft, path: str) -> None:
    """Refuse events that only the run itself may write: that it started or ended, or that memory changed."""
    reserved = MEMORY_EVENTS | RUN_EVENTS if draft.kind == "state_patch" else RUN_TURNS
    event = draft.metadata.get("event") if draft.metadata else None
    if draft.kind in ("system", "state_patch") and isinstance(event, str) and event in reserved:
        raise InvalidInput(
            f"a {draft.kind} entry's event {event!r} is written by the run itself",
            path=f"{path}.metadata.event",
            hint="use finish(), patch(), claim() and the like, or another name for your event",
        )


# -- rows -----------------------------------------------------------------------------------------------------


class EntryOwner(NamedTuple):
    """An entry and its owner."""

    id: str
    user_id: str


class EntryReceipt(NamedTuple):
    """An entry, with the receipt of its forgetting if it was forgotten."""

    id: str
    receipt_id: str | None


class ContentRow(Protocol):
    """The columns a row needs for its content to be checked."""

    @property
    def id(self) -> str: ...
    @property
    def content_hash(self) -> bytes: ...
    @property
    def salt(self) -> bytes | None: ...
    @property
    def body(self) -> str | None: ...
    @property
    def receipt_id(self) -> str | None: ...


def check_content(row: ContentRow) -> None:
    """Check that the content of an entry is what was sealed, or was forgotten by a receipt."""
    body, salt = row.body, row.salt
    if body is None:
        if row.receipt_id is None or salt is not None:
            raise damaged_entry(row.id, "the content is missing and no receipt says why")
        return
    if row.receipt_id is not None:
        raise damaged_entry(row.id, "a forgotten entry still holds content")
    if (
        type(body) is not str
        or type(salt) is not bytes
        or sha256(salt + body.encode("utf-8", "surrogatepass")).digest() != row.content_hash
    ):
        raise damaged_entry(row.id, "the content was altered")


def read_body(row: ContentRow) -> dict[str, Any] | None:
    """Return the checked body of an entry; None where it was forgotten."""
    check_content(row)
    return None if row.body is None else read_canonical(row.body)


def check_header(tenant_id: str, row: EntryRow) -> None:
    """Check that a row's header (owner, place, time, author) is what was sealed."""
    try:
        is_sound = type(row.seq) is int and row.hash == header_hash(tenant_id, row)
    except (TypeError, InvalidJson):  # a value of another type than its column's
        is_sound = False
    if not is_sound:
        raise damaged_entry(row.id, "the header was altered")


_ENTRY_FIELDS = set(LedgerEntry.model_fields)
_SCOPE_FIELDS = set(Scope.model_fields)
_EMPTY_BODY: dict[str, Any] = dict.fromkeys(Body.model_fields)


def entry_of_row(
    tenant_id: str, row: EntryRow, *, scope: Scope | None = None, body: dict[str, Any] | None = None
) -> LedgerEntry:
    """Return the record of a stored row after checking it; `scope` and `body` are those of an entry the caller just
    sealed.
    """
    if body is None:
        check_header(tenant_id, row)
    plain = body if body is not None else read_body(row)
    return LedgerEntry.unchecked(
        {
            "id": row.id,
            "scope": scope or _scope(tenant_id, row),
            "seq": row.seq,
            "ts": row.ts,
            "recorded_at": row.recorded_at,
            "kind": row.kind,
            "role": row.role,
            "trust": row.trust,
            "flags": tuple(row.flags.split(",")) if row.flags else (),
            "content_hash": row.content_hash.hex(),
            "prev_hash": row.prev_hash.hex(),
            "hash": row.hash.hex(),
            "body": None if plain is None else _body(plain),
            "receipt_id": row.receipt_id,
        },
        _ENTRY_FIELDS,
    )


def _scope(tenant_id: str, row: EntryRow) -> Scope:
    return Scope.unchecked(
        {
            "tenant_id": tenant_id,
            "user_id": row.user_id,
            "agent_id": row.agent_id,
            "session_id": row.session_id,
            "run_id": row.run_id,
        },
        _SCOPE_FIELDS,
    )


def _body(plain: dict[str, Any]) -> Body:
    fields = _EMPTY_BODY | plain
    if "tags" in plain:
        fields["tags"] = tuple(plain["tags"])
    if "entities" in plain:
        fields["entities"] = tuple(plain["entities"])
    if "tool" in plain:
        fields["tool"] = ToolCall.from_wire(plain["tool"])
    if "step" in plain:
        fields["step"] = StepEvent.from_wire(plain["step"])
    if "cited" in plain:
        fields["cited"] = Cited.from_wire(plain["cited"])
    if "imported" in plain:
        fields["imported"] = Origin.from_wire(plain["imported"])
    return Body.unchecked(fields, _present(tuple(plain)))


@lru_cache(maxsize=256)
def _present(names: tuple[str, ...]) -> set[str]:
    """Return the shared set of field names for bodies of one shape."""
    return set(names)


# -- evidence -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Resolved:
    """The target of a pointer: the bytes, their location, and the id that names exactly this evidence."""

    evidence_id: str
    data: bytes
    span: Span

    @property
    def text(self) -> str:
        return self.data.decode()


def pointer_address(pointer: Pointer) -> tuple[str, str]:
    """Return (corpus_id, chunk_id) of any pointer."""
    match pointer:
        case EventSpan():
            return LEDGER_CORPUS, pointer.event_id
        case ChunkSpan():
            return pointer.corpus_id, pointer.chunk_id
        case UrlCitation():
            return "url", pointer.cid


def locate_quote(whole: bytes, quote: str) -> Span | None:
    """Return the first verbatim occurrence of the quote in the bytes."""
    needle = quote.encode()
    at = whole.find(needle)
    return None if at < 0 else Span(start=at, end=at + len(needle))


def cut(pointer: Pointer, whole: bytes) -> Resolved:
    """Return the bytes of `whole` that the pointer means, checking its quote verbatim."""
    span = pointer.span
    if span is None:
        span = Span(start=0, end=len(whole))
        if pointer.quote is not None:
            found = locate_quote(whole, pointer.quote)
            if found is None:
                raise QuoteMismatch("the quote does not stand in the text it cites", path="$.quote")
            span = found
    if span.end > len(whole):
        raise QuoteMismatch(f"the span ends at byte {span.end}, the text has {len(whole)}", path="$.span")
    data = whole[span.start : span.end]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise QuoteMismatch(
            "the span cuts a character in two", path="$.span", hint="spans are offsets in UTF-8 bytes"
        ) from None
    if pointer.quote is not None and text != pointer.quote:
        raise QuoteMismatch("the quote is not what stands at the span", path="$.quote")
    corpus_id, chunk_id = pointer_address(pointer)
    digest_of_quote = None if pointer.quote is None else quote_hash(pointer.quote)
    return Resolved(derive_evidence_id(corpus_id, chunk_id, span, digest_of_quote), data, span)


# -- events of a run ------------------------------------------------------------------------------------------


PHASES = ("COMPILE", "PLAN", "ACT", "OBSERVE", "CHECKPOINT")
"""The step machine, in order. `<PHASE>_DONE` ends a phase; any other `<PHASE>_…` is verbose."""
COUNTED_EVENTS = frozenset({"PLAN_DONE", "ACT_DONE", "OBSERVE_DONE"})
"""The terminal events that compaction counts (CS-10)."""

PINNED = ("objective", "done_definition", "budgets")
"""A run's purpose: set when it starts, and never changed (CS-05)."""

# `system` entries, written by the run itself
RUN_STARTED = "run_started"
RUN_FINISHED = "run_finished"
RUN_LOCKED = "run_locked"
RUN_UNLOCKED = "run_unlocked"
RUN_TURNS = frozenset({RUN_STARTED, RUN_FINISHED, RUN_LOCKED, RUN_UNLOCKED})

# `state_patch` entries, written by the run itself
CLAIM_MADE = "claim_made"
CLAIM_VERIFIED = "claim_verified"
CLAIM_RETRACTED = "claim_retracted"
CLAIM_DEMOTED = "claim_demoted"
CONFLICT_RECORDED = "conflict_recorded"
CONFLICT_SETTLED = "conflict_settled"
FAILURE_RECORDED = "failure_recorded"
QUESTION_OPENED = "question_opened"
QUESTION_CLOSED = "question_closed"
ACTIONS_PLANNED = "actions_planned"
SNAPSHOT_TAKEN = "snapshot_taken"
OUTPUT_VERIFIED = "output_verified"

RUN_EVENTS = frozenset(
    {
        CLAIM_MADE,
        CLAIM_VERIFIED,
        CLAIM_RETRACTED,
        CLAIM_DEMOTED,
        CONFLICT_RECORDED,
        CONFLICT_SETTLED,
        FAILURE_RECORDED,
        QUESTION_OPENED,
        QUESTION_CLOSED,
        ACTIONS_PLANNED,
        SNAPSHOT_TAKEN,
        OUTPUT_VERIFIED,
    }
)


# -- events of memory -----------------------------------------------------------------------------------------


STATE_PATCHED = "state_patched"
FACT_REMEMBERED = "fact_remembered"
FACT_REINFORCED = "fact_reinforced"
FACT_DISPUTED = "fact_disputed"
FACT_RETRACTED = "fact_retracted"
PROCEDURE_WRITTEN = "procedure_written"
PROCEDURE_RETIRED = "procedure_retired"
PROCEDURE_USED = "procedure_used"
INSIGHT_SUPPOSED = "insight_supposed"
INSIGHT_JUDGED = "insight_judged"
INSIGHT_PROMOTED = "insight_promoted"
CANDIDATE_PROPOSED = "candidate_proposed"
CANDIDATE_DECIDED = "candidate_decided"
DOCUMENT_ADDED = "document_added"
DOCUMENT_RETRACTED = "document_retracted"
ARTIFACT_KEPT = "artifact_kept"
STUDY_CHANGED = "study_changed"
SOURCE_CHECKED = "source_checked"
MEMORY_KEPT = "memory_kept"
RUN_LOGGED = "run_logged"
RULE_TESTED = "rule_tested"
RULE_REPORTED = "rule_reported"
RULES_SELECTED = "rules_selected"
RULEBOOK_CHANGED = "rulebook_changed"
FOLD_MADE = "fold_made"
PLAN_MADE = "plan_made"
PLAN_ENDED = "plan_ended"
DRAFT_MADE = "draft_made"
LESSONS_PROPOSED = "lessons_proposed"
LESSONS_USED = "lessons_used"
MEMORY_RECALLED = "memory_recalled"
WORKING_SET_CHANGED = "working_set_changed"
SESSION_SUMMARIZED = "session_summarized"
TURNS_CLAIMED = "turns_claimed"
TURNS_READ = "turns_read"
VALUE_KEPT = "value_kept"
VALUE_REMOVED = "value_removed"
VALUES_PROLONGED = "values_prolonged"
CHECKPOINT_KEPT = "checkpoint_kept"
WRITES_KEPT = "writes_kept"

FACT_EVENTS = frozenset({FACT_REMEMBERED, FACT_REINFORCED, FACT_DISPUTED, FACT_RETRACTED})
PROCEDURE_EVENTS = frozenset({PROCEDURE_WRITTEN, PROCEDURE_RETIRED, PROCEDURE_USED})
INSIGHT_EVENTS = frozenset({INSIGHT_SUPPOSED, INSIGHT_JUDGED, INSIGHT_PROMOTED})
CANDIDATE_EVENTS = frozenset({CANDIDATE_PROPOSED, CANDIDATE_DECIDED})
KEPT_EVENTS = frozenset({VALUE_KEPT, VALUE_REMOVED, VALUES_PROLONGED, CHECKPOINT_KEPT, WRITES_KEPT})
DOCUMENT_EVENTS = frozenset({DOCUMENT_ADDED, DOCUMENT_RETRACTED})

MEMORY_EVENTS: frozenset[str] = frozenset[str]().union(
    FACT_EVENTS,
    PROCEDURE_EVENTS,
    INSIGHT_EVENTS,
    CANDIDATE_EVENTS,
    DOCUMENT_EVENTS,
    KEPT_EVENTS,
    {
        STATE_PATCHED,
        ARTIFACT_KEPT,
        STUDY_CHANGED,
        SOURCE_CHECKED,
        MEMORY_KEPT,
        RUN_LOGGED,
        RULE_TESTED,
        RULE_REPORTED,
        RULES_SELECTED,
        RULEBOOK_CHANGED,
        FOLD_MADE,
        PLAN_MADE,
        PLAN_ENDED,
        DRAFT_MADE,
        LESSONS_PROPOSED,
        LESSONS_USED,
        MEMORY_RECALLED,
        WORKING_SET_CHANGED,
        SESSION_SUMMARIZED,
        TURNS_CLAIMED,
        TURNS_READ,
    },
)

CITING = {"decisions": "evidence_id", "tool_evidence": "ref"}
"""Lists of a patch whose elements name an event, and the field that names it."""


def named_events(patch: Any) -> tuple[str, ...]:
    """Return the events that decisions and tool evidence of a patch refer to, each once."""
    if not isinstance(patch, Mapping):
        return ()
    named: dict[str, None] = {}
    for field, key in CITING.items():
        elements = patch.get(field)
        for element in elements if isinstance(elements, list | tuple) else ():
            if isinstance(element, Mapping) and isinstance(element.get(key), str):
                named[element[key]] = None
    return tuple(named)
