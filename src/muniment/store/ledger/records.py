"""The ledger's own records: a draft of what happened, the entry it becomes, a run, a receipt."""

from collections.abc import Iterable
from typing import Literal, Self

from muniment.core.record import Absent, Count, Items, JsonObject, Record, Timestamp
from muniment.core.scope import IdText, Origin, Scope, Trust, bank_holder, is_reserved
from muniment.store.ledger.manifest import ContextManifest

__all__ = [
    "IMPORTED",
    "INSTRUCTION_LIKE",
    "KINDS",
    "PARTLY_ANALYSED",
    "ROLES",
    "STOP_REASONS",
    "Body",
    "Cited",
    "EntryDraft",
    "EntryKind",
    "Erased",
    "LedgerEntry",
    "Receipt",
    "Role",
    "RunState",
    "StepEvent",
    "StopReason",
    "ToolCall",
    "imported_from",
]

INSTRUCTION_LIKE = "instruction_like"
"""The flag of what came from outside and reads like instructions (LG-08)."""
IMPORTED = "imported:"
"""What the flag begins with of what was not observed here; behind it stands the system that it comes from."""
PARTLY_ANALYSED = "partly_analysed"
"""The flag of an event that was over the budget of work: stored whole, and found by words behind what was analysed."""
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
    """The system that an event with these flags comes from; None of one that was observed here."""
    return next((flag.removeprefix(IMPORTED) for flag in flags if flag.startswith(IMPORTED)), None)


class ToolCall(Record):
    """Which tool was called with what, and whether it worked; the result is the entry's content."""

    name: IdText
    args: Absent[JsonObject] = None
    ok: bool
    call_id: Absent[IdText] = None
    """The id under which the model made the call, where there is one: what joins the result to it."""


class Cited(Record):  # TM-10
    """What an answer cites of the build it was given: evidence by its marks, and the marks that name none."""

    build_id: IdText
    evidence_ids: Items[str]
    unknown_marks: Items[str]


class StepEvent(Record):  # CS-10
    """A moment in a run's step machine. Compaction counts PLAN_DONE, ACT_DONE and OBSERVE_DONE alone."""

    event: IdText
    step: Absent[Count] = None
    action: Absent[JsonObject] = None
    """What was done, at ACT: `{"tool": …, "args": …}` or the like. Equal ones in a row are a loop."""
    tokens: Absent[Count] = None
    """What the phase cost."""
    manifest: Absent[ContextManifest] = None
    """What was in the window, at COMPILE."""


class EntryDraft(Record):
    """What a caller says happened, before it has a place in a chain."""

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
    """Of an answer, read from its marks where it is observed with its build; never given by a caller."""
    imported: Origin | None = None
    """Of what was not observed here: where it comes from. It is flagged so, and looked at as anything from outside."""
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
    """What was redacted at the door: kind of secret → how many."""
    analysed_chars: Absent[Count] = None
    """Of a text over the budget of work: how many of its characters were analysed. What is behind them is found by its
    words."""


class LedgerEntry(Record):
    """One event of the ledger, as it stands. `id` is its evidence id.

    `body` is None once it was forgotten, and `receipt_id` then says by which receipt. `content` and the other
    body fields are reachable as attributes.
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
    def content(self) -> str | None:
        """The text, where it lies in the row; None for a blob (ask `mem.ledger.content(id)`) or a forgotten entry."""
        return self.body.content if self.body else None

    @property
    def analysed_chars(self) -> int | None:
        """How many characters were analysed, of a text that is over the budget of work; None where all of it was."""
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
        """Of an answer that was observed with its build: what it cites."""
        return self.body.cited if self.body else None

    @property
    def imported(self) -> Origin | None:
        """Of an event that was not observed here: where it comes from."""
        return self.body.imported if self.body else None


class RunState(Record):
    """A run: what it is for and whether it has ended. Projected from its `system` entries."""

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
    """When the first of its turns was said, which may be long before it was recorded. Looked up, never stored."""
    last_said_at: Absent[str] = None
    """When the last of its turns was said."""

    @property
    def is_locked(self) -> bool:
        return self.diagnosis is not None

    @property
    def is_finished(self) -> bool:
        return self.finished_at is not None


class Erased(Record):
    """One thing a forget erased: what kind it was, its id, and the hash that stays (hex), where it had one."""

    kind: str
    id: str
    hash: str | None = None


LEFT_DAMAGED = "left_damaged"
"""Count of a receipt: rows of what was forgotten that are missing, or do not hold what was written there: it may stand
elsewhere."""

WAITING, LEFT_WAITING = "waiting", "left_waiting"
"""Counts of a receipt: events that hooks had put down for the store and nobody had written yet, which went, and those
that may be left."""


class Receipt(Record):  # LG-07
    """Proof of a forget: what was asked, what went. Holds ids and counts, never content."""

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
    """A digest of the one user whose it was, or of nobody; absent where it was several users'."""

    def user_among(self, owners: Iterable[str]) -> str | None:
        """The user whom it concerns, where these owned what went; "" where that is nobody, None where they are several.

        So a user's receipts are found among any number of others', and none of these moves a user's position.
        """
        asked = self.selector.get("user_id", "")
        users = {bank_holder(owner) or ("" if is_reserved(owner) else owner) for owner in (asked, *owners)} - {""}
        return None if len(users) > 1 else next(iter(users), "")

    def concerning(self, concerns: str | None) -> Self:
        return self if concerns is None else self.model_copy(update={"concerns": concerns})

    @property
    def status(self) -> Literal["complete", "pending"]:
        """`pending` while some of it may be left in a file, a damaged row or a hook's folder; the note names where."""
        return "complete" if self.scrubbed else "pending"

    @property
    def is_clean(self) -> bool:
        """Whether no count says that some of it may be left in rows or in what hooks hold."""
        return not (self.counts.get(LEFT_DAMAGED) or self.counts.get(LEFT_WAITING))

    @property
    def left_note(self) -> str:
        """The part of the note about damaged rows, and about events that hooks hold."""
        note = ""
        if damaged := self.counts.get(LEFT_DAMAGED, 0):
            rows = f"{damaged} {'row' if damaged == 1 else 'rows'}"
            note = f"; the store is damaged: what {rows} of it held may stand elsewhere (`muniment verify`)"
        if waiting := self.counts.get(LEFT_WAITING, 0):
            named = "1 event" if waiting == 1 else f"{waiting} events"
            note += f"; {named} that hooks put down could not be read or removed, and may hold some of it"
        return note
