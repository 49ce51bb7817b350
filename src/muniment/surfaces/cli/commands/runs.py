"""`run …`: the runs of a store, what they claim, their snapshots, and a locked one opened again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from muniment.errors import InvalidInput, MunimentError, NotFound
from muniment.surfaces.cli.calling import Call, Command, wire
from muniment.surfaces.cli.openings import run_named
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.terminal import coloured, counted, one_line, strong, when

if TYPE_CHECKING:
    from muniment.contracts.snapshot import CompactionSnapshot, EvidencePointer, SnapshotValidation
    from muniment.core.policy import CompactionPolicy
    from muniment.core.record import JsonObject
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.memory.sessions import GivenSummary
    from muniment.runs.drift import DriftReport
    from muniment.runs.records import RunClaim, RunLog
    from muniment.runs.snapshots import Resumed
    from muniment.store.ledger import RunState

__all__ = ["claims", "conflicts", "drift", "events", "failures", "list_", "log", "narrative", "questions", "resume"]
__all__ += ["show", "snapshot", "snapshots", "summarize", "unlock", "verifications", "view"]

_RUN = {"run_id": "RUN"}


# -- list ---------------------------------------------------------------------------------------------


def _show_runs(call: Call) -> Iterator[str]:
    for state in call.answer:
        aim = one_line(state.objective, 80) if state.objective else "no objective given"
        yield f"{state.run_id}  {when(state.started_at)}  {_standing(state)}  {state.scope.user_id}  {aim}"
    if not call.answer:
        user = call.typed.get("user_id")
        yield f"no runs{f' of {user}' if user else ''} in {call.settings.shown_db}"


def _standing(state: RunState) -> str:
    if state.is_finished:
        return f"ended, {state.stop_reason}"
    return "LOCKED" if state.is_locked else "open"


list_ = Command(
    "memory.runs", _show_runs, document="runs", words={"user_id": Word("Runs of one user (default: of all).")}
)


# -- show and log -------------------------------------------------------------------------------------


class _RunView(NamedTuple):
    """A run and its log, as `run show` prints them."""

    state: RunState
    log: RunLog
    policy: CompactionPolicy


def _read(call: Call, ask: Callable[[], RunState]) -> _RunView:
    state = ask()
    return _RunView(state, run_named(call.memory, state.run_id, call.tenant).log.read(), call.memory.policy.compaction)


def _show(call: Call) -> Iterator[str]:
    state, log, policy = call.answer
    scope = state.scope
    yield f"{strong(state.run_id)}  {_standing(state)}"
    yield f"{scope.user_id} with {scope.agent_id} in session {scope.session_id}, since {when(state.started_at)}"
    yield from _log_lines(log)
    if not state.is_finished:
        yield f"next snapshot: {_ahead(log, policy)}"
    if state.diagnosis is not None:
        yield from _diagnosis_lines(state.diagnosis)


def _shown_document(call: Call) -> dict[str, Any]:
    """A log in numbers, with what is short enough to be read whole."""
    state, log, _ = call.answer
    return {
        "run": state.to_wire(),
        "objective": log.objective,
        "done_definition": log.done_definition,
        "step": log.step,
        "phase": log.phase,
        "loops": log.loops,
        "claims": _tally(claim.status for claim in log.claims),
        "conflicts": _tally(conflict.status for conflict in log.conflicts),
        "failures": {"kinds": len(log.failures), "met": sum(failure.count for failure in log.failures)},
        "open_questions": [question.text for question in log.open_questions],
        "next_actions": list(log.next_actions),
        "budgets": {"limits": log.budgets, "used": log.spent.to_wire()},
        "last_snapshot": log.sequence,
        "since_snapshot": {"steps": len(log.steps_since), "counted_events": len(log.counted_since)},
    }


def _tally(statuses: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(statuses).items()))


def _tally_text(statuses: Iterable[str]) -> str:
    return ", ".join(f"{count} {status}" for status, count in _tally(statuses).items()) or "none"


def _log_lines(log: RunLog) -> Iterator[str]:
    """How a run stands, for a person."""
    ended, loops = f", {log.phase} done" if log.phase else "", f", {counted(log.loops, 'loop')}" if log.loops else ""
    met = sum(failure.count for failure in log.failures)
    lines = {
        "objective": one_line(log.objective) or "none given",
        "done when": _value_line(log.done_definition) or "not said",
        "step": f"{log.step}{ended}{loops}" if log.step else "none yet",
        "claims": _tally_text(claim.status for claim in log.claims),
        "conflicts": _tally_text(conflict.status for conflict in log.conflicts),
        "failures": f"{counted(len(log.failures), 'kind')}, met {counted(met, 'time')}" if log.failures else "none",
        "questions": f"{len(log.open_questions)} open" if log.open_questions else "none",
        "last snapshot": str(log.sequence) if log.sequence else "none yet",
        **_budgets(log),
    }
    for label, text in lines.items():
        yield f"{label + ':':<14} {text}"
    for question in log.open_questions:
        yield f"  ? {one_line(question.text)}"
    for action in log.next_actions:
        yield f"  → {one_line(action)}"


def _value_line(value: JsonObject | str) -> str:
    """A value on one line."""
    from muniment.packets.page import value_text

    if isinstance(value, str):
        return one_line(value)
    return one_line("; ".join(f"{key}: {value_text(part)}" for key, part in value.items()))


def _budgets(log: RunLog) -> dict[str, str]:
    """What was used, against its limit where the run was given one."""
    used = log.spent.to_wire()
    named = [_used(used[name], log.budgets.get(name), name.replace("_", " ")) for name in used]
    other = [f"{name} {value}" for name, value in sorted(log.budgets.items()) if name not in used]
    return {"used": ", ".join(named)} | ({"limits": one_line(", ".join(other))} if other else {})


def _used(used: int, limit: Any, name: str) -> str:
    if isinstance(limit, int | float) and not isinstance(limit, bool):
        return f"{used} of {limit} {name}"
    return counted(used, name.removesuffix("s"))


def _ahead(log: RunLog, policy: CompactionPolicy) -> str:
    how = "taken" if policy.auto else "due, and taken when asked for,"
    return (
        f"{how} at {policy.event_threshold} counted events or {policy.step_fallback} steps; "
        f"there are {len(log.counted_since)} and {len(log.steps_since)}"
    )


def _diagnosis_lines(diagnosis: Mapping[str, Any]) -> Iterator[str]:
    """Why a run is locked, and what to do about it."""
    yield "locked: its snapshot did not hold, so nothing more is written to it"
    for check in diagnosis.get("checks", ()):
        if check.get("status") != "PASS":
            yield f"  {check.get('name')}: {one_line(str(check.get('message')), 300)}"
    yield "put it right with mem.resume(run_id, repair=True), then: muniment run unlock RUN --reason …"


show = Command(
    "memory.run_state",
    _show,
    around=_read,
    arguments=_RUN,
    calls=("run.log", "memory.policy"),
    document=_shown_document,
)


def _show_log(call: Call) -> Iterator[str]:
    found: RunLog = call.answer
    yield from _log_lines(found)
    for failure in found.failures:
        yield f"  ✗ {_brief(failure.to_wire())}"
    for conflict in found.conflicts:
        yield f"  ≠ {_brief(conflict.to_wire())}"


log = Command("run.log", _show_log)


# -- parts of a run -----------------------------------------------------------------------------------


def _brief(plain: Mapping[str, Any]) -> str:
    """A record on a line: what it says of itself that is plain."""
    parts = [f"{name} {value}" for name, value in plain.items() if isinstance(value, str | int | float) and value != ""]
    return one_line(", ".join(parts), 300)


def _listed(operation: str, noun: str) -> Command:
    """What a run has of one kind, a line for each."""

    def lines(call: Call) -> Iterator[str]:
        found = list(call.answer)
        for each in found:
            yield _brief(each.to_wire())
        if not found:
            yield f"no {noun} in {call.typed['run_id']}"

    on_memory = operation.startswith("memory.")
    return Command(operation, lines, document=noun.replace(" ", "_"), arguments=_RUN if on_memory else None)


conflicts = _listed("run.conflicts", "conflicts")
failures = _listed("run.failures", "failures")
questions = _listed("run.questions", "questions")
verifications = _listed("run.verifications", "verifications")
snapshots = _listed("memory.snapshots", "snapshots")


def _show_events(call: Call) -> Iterator[str]:
    from muniment.surfaces.cli.commands.memory import entry_line

    return map(entry_line, call.answer)


events = Command("run.entries", _show_events, document="events")


# -- claims -------------------------------------------------------------------------------------------

_COLOURS = {"verified": "green", "candidate": "yellow", "retracted": "red"}


def _quotes(call: Call, claim: RunClaim) -> list[dict[str, Any]]:
    return [_quote(call.handle, ref) for ref in claim.evidence_refs]


def _quote(run: Run, ref: EvidencePointer) -> dict[str, Any]:
    """The words at a pointer as they are stored now, or why they cannot be had."""
    from muniment.runs.claims import pointer_to

    try:
        return {"evidence_id": ref.evidence_id, "text": run.ledger.resolve(pointer_to(ref)).text}
    except MunimentError as error:
        return {"evidence_id": ref.evidence_id, "error": error.to_dict()}


def _claims_document(call: Call) -> dict[str, Any]:
    found = [claim.to_wire() | {"quotes": _quotes(call, claim)} for claim in call.answer]
    return {"run_id": call.typed["run_id"], "claims": found}


def _show_claims(call: Call) -> Iterator[str]:
    for claim in call.answer:
        yield from _claim_lines(claim, _quotes(call, claim))
    if not call.answer:
        status = call.typed.get("status")
        yield f"{call.typed['run_id']} has made no {f'{status} ' if status else ''}claims"


def _claim_lines(claim: RunClaim, quotes: list[dict[str, Any]]) -> Iterator[str]:
    from muniment.runs.narrative import place_text

    yield f"{coloured(claim.status, _COLOURS)}  {one_line(claim.statement, 300)}"
    yield f"    {claim.claim_id}"
    if claim.depends_on:
        yield f"    rests on {', '.join(claim.depends_on)}"
    if claim.reason:
        yield f"    because: {one_line(claim.reason, 300)}"
    for ref, quote in zip(claim.evidence_refs, quotes, strict=True):
        said = f"“{one_line(quote['text'], 200)}”" if "text" in quote else f"not to be had: {quote['error']['message']}"
        yield f"    [{place_text(ref)}] {said}"
    if not quotes:
        yield "    no evidence"


claims = Command(
    "run.claims",
    _show_claims,
    calls=("run.resolve",),
    document=_claims_document,
    words={"status": Word("Only claims of this status.")},
    about="In the order it was claimed, each with the words that its evidence points to.",
)


# -- snapshots ----------------------------------------------------------------------------------------


class _Snapshot(NamedTuple):
    found: CompactionSnapshot
    validation: SnapshotValidation | None


def _snapshot(call: Call, ask: Callable[[], CompactionSnapshot]) -> _Snapshot:
    mem, run_id, take = call.memory, call.typed["run_id"], call.typed.get("take")
    if take and "sequence" in call.typed:
        raise InvalidInput("--take makes the next snapshot, --sequence names one that exists", hint="give one of them")
    taken = mem.resume(run_id, tenant_id=call.tenant).run.log.compact() if take else None
    found = taken if taken is not None else ask()
    is_checked = call.typed.get("check")
    return _Snapshot(
        found, mem.log.check_snapshot(run_id, found.sequence, tenant_id=call.tenant) if is_checked else None
    )


def _show_snapshot(call: Call) -> Iterator[str]:
    found, validation = call.answer
    return _snapshot_lines(found) if validation is None else _validation_lines(found, validation)


def _snapshot_lines(found: CompactionSnapshot) -> Iterator[str]:
    state, coverage, counts = found.state, found.state.source_coverage, found.counts
    lines = {
        "objective": one_line(found.objective) or "none given",
        "since the last": f"{counted(counts.steps_since_last_compaction, 'step')}, "
        f"{counted(counts.counted_events_since_last_compaction, 'counted event')}",
        "claims": _tally_text(claim.status for claim in state.claims),
        "conflicts": str(len(state.conflicts)),
        "failures": str(len(state.failures)),
        "questions": str(len(state.open_questions)),
        "coverage": f"{counted(len(coverage.source_ids_seen), 'source')}; chunks: {len(coverage.chunk_ids_seen)} seen, "
        f"{len(coverage.chunk_ids_cited)} cited",
        "validation": f"{found.validation.status}, {len(found.validation.checks)} checks",
    }
    yield f"{strong(found.snapshot_id)}  snapshot {found.sequence} of {found.run_id}, {when(found.created_at)}"
    for label, text in lines.items():
        yield f"{label + ':':<15} {text}"
    yield f"in words: muniment run narrative {found.run_id} --sequence {found.sequence}; the document: --json"


def _validation_lines(found: CompactionSnapshot, validation: SnapshotValidation) -> Iterator[str]:
    for check in validation.checks:
        yield f"{'holds ' if check.status == 'PASS' else 'BROKEN'}  {check.name}: {one_line(check.message, 300)}"
    yield f"snapshot {found.sequence} of {found.run_id} {'holds' if validation.status == 'PASS' else 'does not hold'}"


snapshot = Command(
    "memory.snapshot",
    _show_snapshot,
    around=_snapshot,
    arguments=_RUN,
    more={
        "take": Word("Take one now, whether or not it is due.", flag=True),
        "check": Word("Check it again from the stored bytes and a replay of the ledger.", flag=True),
    },
    calls=("memory.resume", "run.compact", "memory.check_snapshot"),
    document=lambda call: (call.answer.validation or call.answer.found).to_wire(),
    holds=lambda answer: answer.validation is None or answer.validation.status == "PASS",
    about="With --json exactly the document of the contract. --check prints the validation instead, and exits 1 where "
    "the snapshot does not hold.",
)


def _narrated(found: CompactionSnapshot) -> str:
    from muniment.runs.narrative import narrative as narrative_text

    return narrative_text(found)


def _narrative_document(call: Call) -> dict[str, Any]:
    found: CompactionSnapshot = call.answer
    return {"snapshot_id": found.snapshot_id, "sequence": found.sequence, "markdown": _narrated(found)}


narrative = Command(
    "memory.snapshot",
    lambda call: [_narrated(call.answer).removesuffix("\n")],
    arguments=_RUN,
    calls=("memory.narrative",),
    document=_narrative_document,
    about="Eight sections of Markdown: nothing that the snapshot does not hold, always the same bytes.",
)


# -- restart ------------------------------------------------------------------------------------------


class _Restart(NamedTuple):
    state: RunState
    found: Resumed[Run]


def _resume(call: Call, ask: Callable[..., Resumed[Run]]) -> _Restart:
    state = call.memory.log.run_state(call.typed["run_id"], tenant_id=call.tenant)
    return _Restart(state, ask(repair=True))


def _show_restart(call: Call) -> Iterator[str]:
    state, found = call.answer
    yield f"{strong(state.run_id)}  {_begins(found)}"
    for each in found.rejected:
        yield f"passed over: {each.snapshot_id}: {one_line(each.reason, 300)}"
    yield from _log_lines(found.log)
    if state.diagnosis is not None:
        yield from _diagnosis_lines(state.diagnosis)


def _restart_document(call: Call) -> dict[str, Any]:
    state, found = call.answer
    return {
        "run_id": found.log.run_id,
        "is_locked": state.is_locked,
        "snapshot_id": None if found.snapshot is None else found.snapshot.snapshot_id,
        "tail": found.tail,
        "rejected": wire(found.rejected),
        "log": found.log.to_wire(),
    }


def _begins(found: Resumed[Run]) -> str:
    if found.snapshot is None:
        return f"begins with the whole ledger: {counted(found.tail, 'event')}, no snapshot"
    taken = when(found.snapshot.created_at)
    return f"begins with snapshot {found.snapshot.sequence} of {taken} and {counted(found.tail, 'event')} after it"


resume = Command(
    "memory.resume",
    _show_restart,
    around=_resume,
    arguments=_RUN,
    left_out=("repair",),
    calls=("memory.run_state",),
    document=_restart_document,
    about="Which snapshot, how many events since, how the run stands. Names every snapshot that was passed over "
    "because it does not hold. A run that has ended is refused. Nothing is written.",
)


def _show_unlocked(call: Call) -> Iterator[str]:
    found: CompactionSnapshot = call.answer
    yield f"{call.typed['run_id']} is open again: snapshot {found.sequence} holds ({found.snapshot_id})"


unlock = Command(
    "run.unlock",
    _show_unlocked,
    on="repaired run",
    calls=("memory.resume",),
    document=lambda call: {
        "run_id": call.typed["run_id"],
        "snapshot_id": call.answer.snapshot_id,
        "sequence": call.answer.sequence,
    },
    words={"reason": Word("Why it may go on; kept in the ledger.")},
    about="Only if its snapshot holds now; else exit 1, and it stays locked.",
)


def _show_summarized(call: Call) -> Iterator[str]:
    given: GivenSummary = call.answer
    yield f"{given.summary_id}: packets of the session {given.session_id} tell it as yours"
    yield f"    on {', '.join(given.sources)}"


summarize = Command(
    "run.summarize",
    _show_summarized,
    arguments={"text": "TEXT"},
    words={"sources": Word("An event that it sums up; repeatable.", "source", "EVENT", many=True)},
    about="A summary of your own of the run's session. The newest stands; it is told as given by the caller, with its "
    "sources, and forgotten with any of them.",
)


# -- drift --------------------------------------------------------------------------------------------


def _show_drift(call: Call) -> Iterator[str]:
    report: DriftReport = call.answer
    seen = {"run": report.runs, "step": report.steps, "action": report.actions, "snapshot": report.snapshots}
    yield ", ".join(counted(count, noun) for noun, count in seen.items())
    cost = report.tokens_per_verified_claim
    lines = {
        "loops": f"{report.loops}{_rate(report.loop_rate, 'an action')}",
        "stalls": f"{report.stalls}{_rate(report.stall_rate, 'a step')}",
        "forgotten constraints": f"{report.constraints_forgotten}{_rate(report.forgotten_rate, 'a step')}",
        "verified claims": f"{report.verified}",
        "tokens": f"{report.tokens}{f', {cost:.0f} a verified claim' if cost is not None else ''}",
    }
    for label, text in lines.items():
        yield f"{label + ':':<22} {text}"


def _rate(rate: float | None, unit: str) -> str:
    return "" if rate is None else f" ({rate:.3f} {unit})"


drift = Command(
    "memory.drift",
    _show_drift,
    words={
        "user_id": Word("Runs of one user (default: of all)."),
        "run_id": Word(metavar="ID"),
        "since": Word("What was recorded from then on (ISO 8601)."),
        "until": Word("What was recorded before then (ISO 8601)."),
    },
    about="Loops, stalls and forgotten constraints with their rates, and the cost of a verified claim.",
)


# -- a page of a run ----------------------------------------------------------------------------------


class _Page(NamedTuple):
    file: str
    run_id: str
    bytes: int


def _view(
    memory: Memory,
    out: str,
    *,
    run_id: Annotated[str | None, Word("Which run (default: the newest).")] = None,
    user_id: Annotated[str | None, Word("Of whom the newest run is taken (default: of anybody).")] = None,
    link: Annotated[str | None, Word("Open it at this view: an address of the inspector.", metavar="LINK")] = None,
    tenant_id: str = "default",
) -> _Page:
    from muniment.surfaces.cli.commands.store import write_file
    from muniment.surfaces.inspector.bundle import make_bundle

    chosen = run_id or _newest(memory, tenant_id, user_id)
    page = make_bundle(memory, chosen, tenant_id, link=link)
    write_file(Path(out), iter([page]))
    return _Page(out, chosen, len(page))


def _newest(mem: Memory, tenant_id: str, user_id: str | None) -> str:
    runs = mem.runs(user_id=user_id, tenant_id=tenant_id)
    if not runs:
        raise NotFound("there is no run", path="$.run", hint="muniment run list shows which there are")
    return max(runs, key=lambda run: (run.started_at, run.run_id)).run_id


def _show_page(call: Call) -> Iterator[str]:
    page: _Page = call.answer
    yield f"{page.file}: the run {page.run_id}, {page.bytes:,} bytes; open it in a browser"


view = Command(
    "",
    _show_page,
    function=_view,
    on="memory",
    calls=("memory.runs",),
    about="An audit of one run in OUT: a single HTML file that any browser shows, with no server and no network. It "
    "holds the run's conversation, its packets with their explanations, compared, its claims and snapshots, and of the "
    "rest of the user's memory what those rest on. Whoever gets the file can read all of that.",
)
