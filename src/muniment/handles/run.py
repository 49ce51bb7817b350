"""A run's handle: everything a caller says happens through it, under one fixed scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from muniment.core.record import JsonObject, ValidationError, issues_of
from muniment.errors import InvalidInput, InvalidRecord, MunimentError, RunFinished
from muniment.handles.run_learning_part import RunLearning
from muniment.handles.run_recall import RunRecall
from muniment.handles.run_steps import RunSteps
from muniment.handles.run_stores import RunStores
from muniment.store.items import latest
from muniment.store.ledger.drafts import drafts_of, new_draft, object_of, refuse_reserved, said_path
from muniment.store.ledger.records import STOP_REASONS, EntryDraft, RunState
from muniment.store.ledger.run_events import RUN_FINISHED

if TYPE_CHECKING:
    from muniment.contracts.folding import FoldResult
    from muniment.contracts.run_records import VerifierResult
    from muniment.core.pointer import Pointer
    from muniment.core.scope import Scope
    from muniment.core.vocabulary import Trust
    from muniment.store.context import Context
    from muniment.store.items import Item
    from muniment.store.ledger.admission import Admitted
    from muniment.store.ledger.evidence import Resolved
    from muniment.store.ledger.records import LedgerEntry, StopReason

__all__ = ["Run"]

_SILENT = {"task_type": "generic"}
"""What a run says of itself that was told nothing."""


class Run(RunRecall, RunStores, RunSteps, RunLearning):
    """One run of an agent in a session. Made by `Memory.run`; writes nothing until something happens.

    Thread-safe. Its first write also writes the `system` entry that says the run started. Once it has ended, writes
    raise `RunFinished`; while a compaction of it does not hold, `RunLocked`.
    """

    def __init__(
        self,
        ctx: Context,
        scope: Scope,
        task_type: str,
        objective: str | None,
        done_definition: JsonObject | str | None,
        grants: frozenset[str] = frozenset(),
        budgets: JsonObject | None = None,
        *,
        repairs: bool = False,
        found: Item | None = None,
        is_new: bool = False,
    ) -> None:
        """`found` is what the store has of the run, where that was read just now; of a new one there is nothing."""
        self._ctx = ctx
        self._scope = scope
        self._grants = grants
        self._task_type = task_type
        self._repairs = repairs
        said = {
            "task_type": task_type,
            "objective": objective,
            "done_definition": done_definition,
            "budgets": budgets,
        }
        self._said = {key: value for key, value in said.items() if value is not None}
        if self._said != _SILENT:
            self._opening = _opening(ctx, self._said)  # what is wrong with it is said now, not at the first write
        if found is None:  # a store that was closed says so now, and not at the first write
            found = ctx.engine.read(scope.tenant_id, lambda reader: None if is_new else latest(reader, scope.run_id))
        if found is not None:
            from muniment.store.writing import check_pinned, check_run

            check_run(found, scope)
            if self._said != _SILENT:
                check_pinned(found, self._opening)

    @cached_property
    def _opening(self) -> Admitted:
        return _opening(self._ctx, self._said)

    def __repr__(self) -> str:
        scope = self._scope
        return f"<Run {scope.run_id} of {scope.user_id} with {scope.agent_id} in {scope.session_id}>"

    @property
    def scope(self) -> Scope:
        """Tenant, user, agent, session and run."""
        return self._scope

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self._scope.run_id

    def observe(
        self,
        role: str,
        content: str,
        *,
        speaker: str | None = None,
        ts: Any = None,
        id: str | None = None,
        tags: Iterable[str] = (),
        entities: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        trust: Trust | None = None,
    ) -> LedgerEntry:
        """Record a message. `ts` is when it happened (default: now); `trust` may lower what the role gives.

        An `id` that exists is a `DuplicateId`. Under an `idempotency_key` the same message is written once and its
        entry answered again; another message under it is an `IdempotencyMismatch`.
        """
        draft = new_draft(
            kind="message" if role not in ("system", "developer") else "system",
            role=role,
            content=content,
            speaker=speaker,
            ts=ts,
            id=id,
            tags=tags,
            entities=entities,
            metadata=metadata,
            idempotency_key=idempotency_key,
            trust=trust,
        )
        refuse_reserved(draft, "$")
        return self._append([draft])[0]

    def observe_tool(
        self,
        name: str,
        *,
        content: str,
        args: Mapping[str, Any] | None = None,
        ok: bool = True,
        ts: Any = None,
        id: str | None = None,
        tags: Iterable[str] = (),
        entities: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        trust: Trust | None = None,
    ) -> LedgerEntry:
        """Record a tool's result. Content over 64 KiB lies out of line and reads the same."""
        tool = {"name": name, "ok": ok} | ({} if args is None else {"args": object_of(args)})
        draft = new_draft(
            kind="tool_result",
            role="tool",
            content=content,
            tool=tool,
            ts=ts,
            id=id,
            tags=tags,
            entities=entities,
            metadata=metadata,
            idempotency_key=idempotency_key,
            trust=trust,
        )
        return self._append([draft])[0]

    def observe_many(self, events: Iterable[Mapping[str, Any] | EntryDraft]) -> list[LedgerEntry]:
        """Record many at once: dicts of `observe`'s arguments, or drafts; one transaction, entries in order."""
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
            raise InvalidInput("observe_many takes a list of events", path="$", hint="wrap a single event in a list")
        drafts = drafts_of(events)
        for index, draft in enumerate(drafts):
            if draft.kind in ("system", "state_patch"):
                refuse_reserved(draft, f"$[{index}]")
        return self._append(drafts) if drafts else []

    @overload
    def finish(self, stop_reason: StopReason = "OBJECTIVE_ACHIEVED") -> RunState: ...

    @overload
    def finish(
        self,
        stop_reason: StopReason = "OBJECTIVE_ACHIEVED",
        *,
        verifier_result: VerifierResult | Mapping[str, Any],
        **learning: Any,
    ) -> FoldResult: ...

    def finish(
        self,
        stop_reason: StopReason = "OBJECTIVE_ACHIEVED",
        *,
        verifier_result: VerifierResult | Mapping[str, Any] | None = None,
        **learning: Any,
    ) -> RunState | FoldResult:
        """End the run. Nothing can be written to it afterwards.

        With what a verifier said of it, the run is first folded into memory (`learn`, whose further arguments it
        takes), and the fold is answered.
        """
        if verifier_result is None and learning:
            raise InvalidInput(f"{next(iter(learning))} is for learning", path="$", hint="give verifier_result as well")
        if stop_reason not in STOP_REASONS:
            is_text = isinstance(stop_reason, str)
            shown = repr(stop_reason[:60]) if is_text else f"a value of type {type(stop_reason).__name__}"
            raise InvalidInput(
                f"{shown} is not a stop reason", path="$.stop_reason", hint=f"one of {', '.join(STOP_REASONS)}"
            )
        learned = None if verifier_result is None else self._learn(verifier_result, None, learning, is_final=True)
        event: JsonObject = {"event": RUN_FINISHED, "stop_reason": stop_reason}
        self._append([EntryDraft(kind="system", role="system", content="", metadata=event)])
        state = self.state()
        if state is None:
            raise RunFinished(f"the run {self.run_id} was forgotten", path="$.run_id")
        return state if learned is None else learned.fold

    def state(self) -> RunState | None:
        """The run as it stands, or None while nothing has been written, and once it was forgotten."""
        item = self._ctx.engine.read(self._scope.tenant_id, lambda reader: latest(reader, self.run_id))
        if item is None:
            return None
        from muniment.store.writing import check_run

        check_run(item, self._scope)  # another scope may have taken the id meanwhile (LG-02)
        return None if item.body is None else RunState.from_wire(item.plain())

    def entries(self) -> Iterator[LedgerEntry]:
        """This run's entries, in order."""
        from muniment.store import reading

        scope = self._scope
        return reading.list_entries(self._ctx, scope.tenant_id, scope.user_id, scope.session_id, scope.run_id)

    def get(self, event_id: str) -> LedgerEntry:
        """An event of this user, of any session."""
        from muniment.store import reading

        return reading.get_entry(self._ctx, self._scope.tenant_id, event_id, self._scope.user_id)

    def content(self, event_id: str) -> str:
        """The full text of an event of this user, wherever it lies; `Forgotten` where it was erased."""
        from muniment.store import reading

        return reading.content_of(self._ctx, self._scope.tenant_id, event_id, self._scope.user_id)

    def resolve(self, pointer: Pointer | str) -> Resolved:
        """What a pointer (or an event id) points to within this user's evidence, its quote checked."""
        from muniment.store import reading

        return reading.resolve(self._ctx, self._scope.tenant_id, reading.pointer_of(pointer), self._scope.user_id)

    def _append(self, drafts: list[EntryDraft]) -> list[LedgerEntry]:
        from muniment.store.writing import append

        entries = append(self._ctx, self._scope, drafts, self._opening, repairs=self._repairs)
        if self._ctx.policy.memory.extract_on_observe:
            from muniment.memory.proposing import extract_from

            extract_from(self._desk(), entries)
        return entries


def _opening(ctx: Context, said: dict[str, Any]) -> Admitted:
    """The run's first entry, admitted; what is wrong with it is reported under the names of `Memory.run`."""
    from muniment.store.ledger.admission import admit
    from muniment.store.writing import opening_draft

    try:
        return admit(opening_draft(said), ctx.policy.ledger)
    except ValidationError as error:
        issues = [issue._replace(path=said_path(issue.path)) for issue in issues_of(error)]
        raise InvalidRecord("not a valid run", issues) from None
    except MunimentError as error:
        error.path = said_path(error.path or "$")
        raise
