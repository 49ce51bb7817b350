"""A run's handle: all writes of a caller go through it, under one fixed scope.

These are the methods every run uses. Long runs, later changes to memory, learning and the ledger have handles of their
own: `run.log`, `run.memory`, `run.learning`, `run.ledger`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

from muniment.core.policy import policy_named
from muniment.core.record import JsonObject
from muniment.errors import InvalidInput, RunFinished
from muniment.handles.given import answer_given, check_stop_reason, event_given, opening_given, plain
from muniment.handles.openings import require_room
from muniment.handles.telling import told
from muniment.store.items import latest
from muniment.store.ledger import RUN_FINISHED, EntryDraft, RunState, drafts_of, make_draft, refuse_reserved

if TYPE_CHECKING:
    from muniment.contracts.learning import FoldResult
    from muniment.contracts.packet import Fact, InsightItem, Procedure, Purpose, ValidationState, WorkingState
    from muniment.contracts.runs import VerifierResult
    from muniment.core.listing import Listing, ListQuery, Placed
    from muniment.core.policy import Policy
    from muniment.core.record import JsonValue
    from muniment.core.scope import Scope, ScopeLevel, Trust
    from muniment.handles.run_learning import RunLearning
    from muniment.handles.run_ledger import RunLedger
    from muniment.handles.run_log import RunLogHandle
    from muniment.handles.run_memory import RunMemory
    from muniment.learning.recalling import Recall
    from muniment.learning.records import IntentParts
    from muniment.memory._fact_records import Candidate
    from muniment.memory.patches import Writer
    from muniment.memory.profile import Profile
    from muniment.memory.search import Hit
    from muniment.memory.sessions import GivenSummary
    from muniment.packets.builds import Build
    from muniment.store.admission import Admitted
    from muniment.store.context import Context
    from muniment.store.items import Item
    from muniment.store.ledger import Cited, LedgerEntry, StopReason
    from muniment.verify.outputs import Output
    from muniment.verify.sandbox.harness import Harness

# Whatever a process does not need to start a run and to search is imported where it is needed (decision 0001).

__all__ = ["Run"]

_SILENT = {"task_type": "generic"}
"""The description of a run that was started without one."""


class Run:
    """One run of an agent in a session. Made by `Memory.run`; writes nothing until something happens.

    Thread-safe. Its first write also writes the `system` entry that starts the run. Once it has ended, writes raise
    `RunFinished`; while its latest compaction is invalid, `RunLocked`.
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
        """`found` is the run as just read from the store; None for a new one."""
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
            self._opening = opening_given(ctx, self._said)  # report errors now, not at the first write
        if found is None:  # report a closed store now, not at the first write
            found = ctx.engine.read(scope.tenant_id, lambda reader: None if is_new else latest(reader, scope.run_id))
        if found is not None:
            from muniment.store.append import check_pinned, check_run

            check_run(found, scope)
            if self._said != _SILENT:
                check_pinned(found, self._opening)

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

    # -- further handles ------------------------------------------------------------------------------

    @cached_property
    def log(self) -> RunLogHandle:
        """The log of a long run: steps, claims, conflicts, failures, questions, snapshots."""
        from muniment.handles.run_log import RunLogHandle

        return RunLogHandle(self._ctx, self._scope, self._writer)

    @cached_property
    def memory(self) -> RunMemory:
        """Later changes to memory: facts disputed, insights judged, candidates decided."""
        from muniment.handles.run_memory import RunMemory

        return RunMemory(self._writer)

    @cached_property
    def learning(self) -> RunLearning:
        """Lessons of earlier runs, the rules for this one, its working set, and its fold."""
        require_room("learning", "learning from runs")
        from muniment.handles.run_learning import RunLearning

        return RunLearning(self._ctx, self._scope, self._writer, self._task_type)

    @cached_property
    def ledger(self) -> RunLedger:
        """This run's entries, and every event of its user."""
        from muniment.handles.run_ledger import RunLedger

        return RunLedger(self._ctx, self._scope)

    # -- recording ------------------------------------------------------------------------------------

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
        build: Build | str | None = None,
    ) -> LedgerEntry:
        """Record a message. `ts` is when it happened (default: now); `trust` may lower the role's trust.

        For an answer, `build` is the packet it was given, or its id: its marks are resolved and stored with it, and the
        entry's `cited` lists the evidence it cites and the marks that cite none. `mem.why` traces back from there.

        An existing `id` raises `DuplicateId`. Under an `idempotency_key` the same message is written once and its entry
        returned again; another message under it raises `IdempotencyMismatch`.
        """
        draft = make_draft(
            kind="message" if role not in ("system", "developer") else "system",
            role=role, content=content, speaker=speaker, ts=ts, id=id, tags=tags, entities=entities,
            metadata=metadata, idempotency_key=idempotency_key, trust=trust,
            cited=None if build is None else self._cite(role, content, build, "$.build"),
        )  # fmt: skip
        refuse_reserved(draft, "$")
        return self._append([draft])[0]

    def _cite(self, role: Any, content: Any, build: Build | str, path: str) -> Cited:
        from muniment.packets.why import cite

        return cite(self._ctx, self._scope, role, content, build, path)

    def observe_tool(
        self,
        name: str,
        *,
        content: str,
        args: Mapping[str, Any] | None = None,
        ok: bool = True,
        call_id: str | None = None,
        ts: Any = None,
        id: str | None = None,
        tags: Iterable[str] = (),
        entities: Iterable[str] = (),
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        trust: Trust | None = None,
    ) -> LedgerEntry:
        """Record a tool's result. Content over 64 KiB is stored out of line and reads the same.

        `call_id` is the id under which the model made the call. If `args` is omitted, they are taken from the assistant
        message of this session that recorded the call (`metadata={"tool_calls": [{"id": …, "name": …, "args": …}]}`).
        """
        tool: dict[str, Any] = {"name": name, "ok": ok}
        if args is None and call_id is not None:
            from muniment.memory.turn_reading import find_call

            args = find_call(self._ctx, self._scope, name, call_id)
        if args is not None:  # the record refuses anything but a mapping
            tool["args"] = dict(args) if isinstance(args, Mapping) else args
        if call_id is not None:
            tool["call_id"] = call_id
        draft = make_draft(
            kind="tool_result", role="tool", content=content, tool=tool, ts=ts, id=id, tags=tags, entities=entities,
            metadata=metadata, idempotency_key=idempotency_key, trust=trust,
        )  # fmt: skip
        return self._append([draft])[0]

    def observe_many(self, events: Iterable[Mapping[str, Any] | EntryDraft]) -> list[LedgerEntry]:
        """Record many events at once: dicts of `observe`'s arguments, or drafts; one transaction, entries in order."""
        if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
            raise InvalidInput("observe_many takes a list of events", path="$", hint="wrap a single event in a list")
        drafts = drafts_of([event_given(event, index, self._cite) for index, event in enumerate(events)])
        for index, draft in enumerate(drafts):
            if draft.kind in ("system", "state_patch"):
                refuse_reserved(draft, f"$[{index}]")
        return self._append(drafts) if drafts else []

    def record(self, messages: Iterable[Any], *, build: Build | str | None = None) -> list[LedgerEntry]:
        """Record a conversation in an API's own form: Chat Completions messages, Responses items or Anthropic messages.

        The list is the whole session's: when it is recorded again after it has grown, only new messages are written and
        returned. An edited list writes nothing; `MessagesDiffer` names the place. Tool results are joined to their
        calls by id; pictures and files are kept as references. `build` is the packet that the last answer was given
        (see `observe`). System and developer messages are kept, and never quoted.
        """
        from muniment.packets.recording import new_drafts

        drafts = answer_given(new_drafts(self._ctx, self._scope, messages), build, self._cite)
        return self._append(drafts) if drafts else []

    # -- working state --------------------------------------------------------------------------------

    def patch(
        self,
        *,
        goal: str | None = None,
        plan: Iterable[Mapping[str, Any]] | None = None,
        slots: Mapping[str, Any] | None = None,
        constraints: Mapping[str, Any] | None = None,
        tool_evidence: Iterable[Mapping[str, Any]] | None = None,
        decisions: Iterable[Mapping[str, Any]] | None = None,
        risks: Iterable[Mapping[str, Any]] | None = None,
        expected_version: int | None = None,
        **extra: JsonValue,
    ) -> WorkingState:
        """Change the run's working state: slots and constraints merge, null removes a key, other fields are replaced.

        With `expected_version`, only if the state is still at that version; else `StaleState` names the current one.
        """
        from muniment.memory import working_state as states

        named = {"goal": goal, "plan": plan, "slots": slots, "constraints": constraints}
        named |= {"tool_evidence": tool_evidence, "decisions": decisions, "risks": risks}
        given = {name: plain(value) for name, value in named.items() if value is not None}
        return states.patch_state(self._writer(), given | extra, expected_version)

    def working_state(self) -> WorkingState:
        """The run's working state, at version 0 before its first patch."""
        from muniment.contracts.packet import WorkingState
        from muniment.memory import working_state as states

        found = self._ctx.engine.read(self._scope.tenant_id, lambda reader: states.read_state(reader, self._scope))
        return WorkingState(state_version=0) if found is None else found

    # -- memory ---------------------------------------------------------------------------------------

    @told
    def remember(
        self,
        key: str,
        value: JsonValue,
        *,
        sources: Iterable[str] = (),
        confidence: float | None = None,
        scope_level: ScopeLevel = "user",
        valid_from: Any = None,
        valid_to: Any = None,
        notes: str | None = None,
        depends_on: Iterable[str] = (),
        quote: str | None = None,
        is_preference: bool | None = None,
    ) -> Fact:
        """Remember a fact on evidence. The policy's rules decide its effect on known values; nothing is deleted.

        `sources` are the events that support it, at least one. The same value again counts as a mention: it strengthens
        the fact, which lists the first eight of its sources and those that changed it. `quote` must occur in one of the
        sources, verbatim (else `QuoteMismatch`). A level above the user's requires a grant (else `Forbidden`). A source
        that is not this user's evidence is `NotFound`. `confidence` defaults to 0.5, or to the policy's value for
        quotes of the user's own words: 0.9, recorded in the notes.
        """
        from muniment.memory import facts as facts

        request = facts.request_fact(
            key=key, value=value, sources=sources, confidence=confidence, scope_level=scope_level,
            valid_from=valid_from, valid_to=valid_to, notes=notes, depends_on=depends_on, quote=quote,
            is_preference=is_preference,
        )  # fmt: skip
        return facts.remember(self._writer(), request)

    def facts(
        self,
        key: str | None = None,
        *,
        include_all: bool = False,
        at: Any = None,
        order: Literal["asc", "desc"] = "asc",
        since: Any = None,
        until: Any = None,
        q: str | None = None,
        around: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Listing[Fact]:
        """The facts that hold now, or held `at` a time, from the nearest level; with `include_all`, all of them.

        Ordered by when they were first held, oldest first or newest (`desc`).
        """
        from muniment.core.listing import list_query, read_listing
        from muniment.memory.facts import page_facts

        def read(asked: ListQuery) -> Iterator[Placed[Fact]]:
            return page_facts(self._writer(), key, at, asked, include_all=include_all)

        asked = list_query(order=order, since=since, until=until, q=q, around=around, limit=limit)
        place = (str, str) if key is None else (str, str, int)
        return read_listing("facts", place, read, asked, cursor)

    def profile(self, *, max_tokens: int = 256, purpose: Purpose | None = None) -> Profile:
        """This run's user in their own words: dated sentences with their events, within `max_tokens`.

        With a `purpose`, limited to what the policy allows in a packet for it.
        """
        from muniment.memory.profile import read_profile

        return read_profile(self._ctx, self._scope.tenant_id, self._scope.user_id, max_tokens, purpose=purpose)

    def hints(
        self,
        query: str | None = None,
        *,
        intent: IntentParts | Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> Recall:
        """Hints from earlier judged runs: the last that passed at similar work, and lessons.

        `text` goes into the prompt, and into the packets of planner and tool. `query` defaults to the user's last
        message. Without an `intent`, the task type is the family of work.
        """
        from muniment.learning.recalling import last_asked

        asked = last_asked(self._ctx, self._scope) if query is None else query
        if intent is None and self._task_type != _SILENT["task_type"]:
            intent = {"task_family": self._task_type}
        return self.learning.recall(asked, intent=intent, features=features)

    def procedure(
        self,
        task_type: str,
        content: JsonObject,
        *,
        priority: int = 0,
        sources: Iterable[str] = (),
        applicability: JsonObject | None = None,
        scope_level: ScopeLevel = "user",
    ) -> Procedure:
        """Store a procedure for a type of task."""
        from muniment.memory import insights

        given = {
            "task_type": task_type,
            "content": plain(content),
            "priority": priority,
            "sources": sources,
            "applicability": plain(applicability),
        }
        return insights.write_procedure(self._writer(), given, scope_level)

    def insight(
        self,
        type_: Literal["hypothesis", "strategy", "pattern"],
        statement: str,
        *,
        sources: Iterable[str] = (),
        trigger: Literal["conflict", "failure", "synthesis", "analogy"] | None = None,
        confidence: float | None = None,
        tests_suggested: Iterable[str] = (),
        expires_at: Any = "run_end",
        validation_state: ValidationState = "unvalidated",
    ) -> InsightItem:
        """Record a hypothesis, strategy or pattern. Responders never see it. It ends with the run, or at the given
        time.
        """
        from muniment.memory import insights

        given = {
            "type": type_,
            "statement": statement,
            "sources": sources,
            "trigger": trigger,
            "confidence": confidence,
            "tests_suggested": tests_suggested,
            "expires_at": expires_at,
            "validation_state": validation_state,
        }
        return insights.suppose(self._writer(), given)

    def propose(
        self,
        key: str,
        value: JsonValue,
        *,
        sources: Iterable[str],
        quote: str | None = None,
        confidence: float | None = None,
        reason: str | None = None,
    ) -> Candidate:
        """Propose a fact. Policy promotes it at once if certain; else it waits for a decision. The result gives the
        reason.
        """
        from muniment.memory import candidates
        from muniment.memory import facts as facts

        request = facts.request_fact(key=key, value=value, sources=sources, quote=quote, confidence=confidence)
        if reason is not None and not isinstance(reason, str):
            raise InvalidInput("reason should be a string", path="$.reason")
        return candidates.propose(self._writer(), candidates.Proposed(request, "caller", reason))

    def summarize(self, text: str, *, sources: Iterable[str]) -> GivenSummary:
        """Store the caller's own summary of this session, based on events of this user.

        The newest is used, and packets present it as given by the caller, alongside what was settled in the session.
        It has no more trust than its sources, and is forgotten with any of them. A source that is not this user's
        evidence is `NotFound`.
        """
        from muniment.memory import sessions as summary_writing

        return summary_writing.summarize(self._writer(), text, sources)

    def extract(self, event_ids: Iterable[str] | None = None, *, model: Any = None) -> list[Candidate]:
        """Extract candidates from these messages, or from all of this run (or its session, if the run has none yet): by
        rule, and by a model if given.
        """
        from muniment.memory import extracting as extraction

        return extraction.extract(self._writer(), event_ids, model)

    # -- recall ---------------------------------------------------------------------------------------

    @told
    def search(
        self, query: str, *, k: int = 10, now: Any = None, min_score: float | None = None,
        within: JsonObject | None = None,
    ) -> list[Hit]:  # fmt: skip
        """The best `k` of this user's turns (of all sessions) and facts for a query, best first, each with its reason.

        `now` is the time of the question, from which "last week" is resolved; later turns are not hidden. A score is
        the chance of being evidence, 0 to 1, comparable across queries; `min_score` leaves out less likely hits.
        `within` limits the search: `fields`, `roles`, `sessions`, `since` …; an empty query returns the newest matches.
        """
        from muniment.packets.searching import search_user

        return search_user(self._ctx, self._scope, query, k, now, min_score, within)

    @told
    def compose(
        self,
        purpose: str,
        *,
        query: str = "",
        cues: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        per_section: Mapping[str, int] | None = None,
        policy: str | Policy | Mapping[str, Any] = "default",
        now: Any = None,
        task_type: str | None = None,
        exclude_session: bool = False,
        exclude: Iterable[str] = (),
        in_view: Iterable[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Build:
        """Compose a MemoryPacket for a planner, tool or responder, and its text within the budget.

        `exclude_session` leaves out messages of this session, and `exclude` leaves out events by id: the caller sends
        these itself. What was remembered from them stays. `exclude` also leaves out a fact, as `FACT_ID@VERSION`, until
        its value changes.

        `in_view` lists builds of this session whose texts are still in the model's window, oldest first. The packet is
        complete; its text adds only what they do not show, or is complete if the list is empty. `build.request.in_view`
        lists the builds that may stay: a build of which something was forgotten may not be sent again.

        `policy` defaults to the store's own; an object changes only the values it names, from the default policy. `now`
        is the time of the question: "last week", validity and recency are resolved from it; later messages are not
        hidden.

        Under an `idempotency_key` the same request of this run returns the same build, byte for byte, until something
        it was made from is forgotten; another request under it raises `IdempotencyMismatch`.
        """
        from muniment.packets.builds import compose_build

        return compose_build(
            self._ctx,
            self._scope,
            purpose,
            query=query,
            cues=cues,
            max_tokens=max_tokens,
            per_section=per_section,
            policy=policy_named(self._ctx.policy, policy),
            now=now,
            task_type=task_type or self._task_type,
            exclude_session=exclude_session,
            exclude=exclude,
            in_view=in_view,
            opening=self._opening.body.get("metadata"),
            idempotency_key=idempotency_key,
            policy_asked=policy if isinstance(policy, str) else None,
        )

    # -- verification ---------------------------------------------------------------------------------

    @told
    def verify(
        self,
        output: str | Mapping[str, Any] | Output,
        *,
        constraints: Any = None,
        documents: Iterable[Any] | None = None,
        evidence: Iterable[Any] | None = None,
        harness: Harness | None = None,
        files: Mapping[str, bytes] | None = None,
        event: str | None = None,
        grader: Any = None,
    ) -> VerifierResult:
        """Verify an output, and store the result with the run.

        `constraints` are checks of form, as records, plain data or YAML. The output's facts are checked against
        `documents` (texts) and `evidence` (pointers into the ledger or a corpus). `harness` runs the output, or
        `files`, in a sandbox, and its result decides. `event` is the id under which the output was observed; if it was
        recorded with a build, its marks are ignored. `grader` is a model that judges every unit; a `Grading` sets when
        its verdict decides.
        """
        from muniment.runs.claims import pointers_of

        require_room("verify", "verifying an output")
        from muniment.verify import verify as verifying

        given = verifying.read_output(output)
        pointers = pointers_of(() if evidence is None else evidence, "$.evidence")
        verified = verifying.verify_output(
            given,
            constraints=verifying.constraints_of(constraints),
            documents=verifying.documents_of(self._ctx, self._scope, documents, pointers),
            harness=harness,
            policy=self._ctx.policy,
            files=files,
            trace_id=self.run_id,
            stated=verifying.stated_in(self._ctx, self._scope, given, event),
            grader=self._ctx.grader if grader is None else grader,
        )
        return verifying.keep_result(self._writer(), verified, given, event, pointers)

    def verifications(self, *, limit: int | None = None, cursor: str | None = None) -> Listing[VerifierResult]:
        """The verification results of the run, oldest first."""
        from muniment.core.listing import list_query, read_listing

        require_room("verify", "verifying an output")
        from muniment.verify.verify import page_results

        def read(asked: ListQuery) -> Iterator[Placed[VerifierResult]]:
            return page_results(self._ctx, self._scope, asked)

        return read_listing("verifications", (str, str), read, list_query(limit=limit), cursor)

    # -- the run itself -------------------------------------------------------------------------------

    def state(self) -> RunState | None:
        """The run's current state; None before anything is written, and after it was forgotten."""
        item = self._ctx.engine.read(self._scope.tenant_id, lambda reader: latest(reader, self.run_id))
        if item is None or item.kind != "run" or item.user_id != self._scope.user_id:
            return None  # another user may have taken the id since (LG-02)
        from muniment.store.append import check_run

        check_run(item, self._scope)
        return None if item.body is None else RunState.from_wire(item.plain())

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

        Given a verifier's result, the run is first folded into memory (`run.learning.learn`, whose other arguments it
        accepts), and the fold is returned.
        """
        if verifier_result is None and learning:
            raise InvalidInput(f"{next(iter(learning))} is for learning", path="$", hint="give verifier_result as well")
        check_stop_reason(stop_reason)
        event: JsonObject = {"event": RUN_FINISHED, "stop_reason": stop_reason}
        ending = EntryDraft(kind="system", role="system", content="", metadata=event)
        learned, has_ended = None, False
        if verifier_result is not None:
            require_room("learning", "a verifier result")
            from muniment.handles.run_learning import learn_and_end

            learned, has_ended = learn_and_end(self._writer(), verifier_result, learning, ending, self._task_type)
        if not has_ended:
            self._append([ending])
        state = self.state()
        if state is None:
            raise RunFinished(f"the run {self.run_id} was forgotten", path="$.run_id")
        return state if learned is None else learned.fold

    @cached_property
    def _opening(self) -> Admitted:
        return opening_given(self._ctx, self._said)

    def _writer(self) -> Writer:
        from muniment.memory.patches import Writer

        return Writer(self._ctx, self._scope, self._opening, self._grants, self._repairs)

    def _append(self, drafts: list[EntryDraft], expected_seq: int | None = None) -> list[LedgerEntry]:
        from muniment.store.append import append

        entries = append(
            self._ctx, self._scope, drafts, self._opening, repairs=self._repairs, expected_seq=expected_seq
        )
        if self._ctx.policy.memory.extract_on_observe:
            from muniment.memory.extracting import extract_from

            extract_from(self._writer(), entries)
        if self._ctx.background is not None and self._ctx.extract_model is not None:
            roles = self._ctx.policy.memory.extraction.roles
            if any(entry.kind == "message" and entry.role in roles for entry in entries):
                self._ctx.background.notice(self._scope, self._ctx.extract_model)
        return entries
