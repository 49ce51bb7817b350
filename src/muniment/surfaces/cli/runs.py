"""`run …`: the runs of a store, their state, turns and snapshots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from muniment.errors import InvalidInput, MunimentError, NotFound
from muniment.surfaces.cli._command import Call, Command, OptionSpec, run_named, wire
from muniment.surfaces.cli._views import COLOURS, entry_line
from muniment.surfaces.cli.terminal import coloured, counted, one_line, strong, when

if TYPE_CHECKING:
    from muniment.contracts.snapshot import CompactionSnapshot, EvidencePointer, SnapshotValidation
    from muniment.core.record import JsonObject
    from muniment.handles.memory import Memory
    from muniment.handles.run import Run
    from muniment.runs.records import RunClaim, RunLog
    from muniment.runs.snapshots import Resumed
    from muniment.store.ledger import RunState

__all__ = ["list_", "resume", "show", "snapshot", "turns", "unlock", "view"]

_RUN = {"run_id": "RUN"}


# -- list and turns -----------------------------------------------------------------------------------


def _show_runs(call: Call) -> Iterator[str]:
    for state in call.answer:
        goal = one_line(state.objective, 80) if state.objective else "no objective given"
        yield f"{state.run_id}  {when(state.started_at)}  {_status(state)}  {state.scope.user_id}  {goal}"
    if not call.answer:
        user = call.typed.get("user_id")
        yield f"no runs{f' of {user}' if user else ''} in {call.settings.shown_db}"


def _status(state: RunState) -> str:
    if state.is_finished:
        return f"ended, {state.stop_reason}"
    return "LOCKED" if state.is_locked else "open"


list_ = Command(
    "memory.runs", _show_runs, noun="runs", options={"user_id": OptionSpec("Runs of one user (default: of all).")}
)


def _show_turns(call: Call) -> Iterator[str]:
    for turn in call.answer:
        if turn.entry is not None:
            yield entry_line(turn.entry)
        elif turn.build is not None:
            build = turn.build
            yield (
                f"{build.build_id}  {when(build.created_at)}  PACKET for {build.purpose}, "
                f"{build.tokens} of {build.tokens_max} tokens  {one_line(build.query, 80)}"
            )
    if not call.answer:
        yield "no turns"


turns = Command(
    "memory.turns",
    _show_turns,
    noun="turns",
    options={
        "run_id": OptionSpec("The turns of one run."),
        "user_id": OptionSpec("The turns of a user, session by session."),
        "around": OptionSpec("Those around an event or a build; in a run or a session, around the event of a number."),
    },
)


# -- show ---------------------------------------------------------------------------------------------


class _RunView(NamedTuple):
    """A run, its log, and its claims with the words they cite."""

    state: RunState
    log: RunLog
    quotes: dict[str, list[dict[str, Any]]]


def _read(call: Call, ask: Callable[[], RunState]) -> _RunView:
    state = ask()
    run = run_named(call.memory, state.run_id, call.tenant)
    log = run.log.read()
    quotes = {claim.claim_id: [_quote(run, ref) for ref in claim.evidence_refs] for claim in log.claims}
    return _RunView(state, log, quotes)


def _quote(run: Run, ref: EvidencePointer) -> dict[str, Any]:
    """The words at a pointer as stored now, or why there are none."""
    from muniment.runs.claims import pointer_to

    try:
        return {"evidence_id": ref.evidence_id, "text": run.ledger.resolve(pointer_to(ref)).text}
    except MunimentError as error:
        return {"evidence_id": ref.evidence_id, "error": error.to_dict()}


def _show(call: Call) -> Iterator[str]:
    state, log, quotes = call.answer
    scope, policy = state.scope, call.memory.policy.compaction
    yield f"{strong(state.run_id)}  {_status(state)}"
    yield f"{scope.user_id} with {scope.agent_id} in session {scope.session_id}, since {when(state.started_at)}"
    yield from _log_lines(log)
    if not state.is_finished:
        how = "taken" if policy.auto else "due, and taken on request,"
        yield (
            f"next snapshot: {how} at {policy.event_threshold} counted events or {policy.step_fallback} steps; "
            f"there are {len(log.counted_since)} and {len(log.steps_since)}"
        )
    for claim in log.claims:
        yield from _claim_lines(claim, quotes[claim.claim_id])
    for failure in log.failures:
        yield f"  ✗ {_brief(failure.to_wire())}"
    for conflict in log.conflicts:
        yield f"  ≠ {_brief(conflict.to_wire())}"
    if state.diagnosis is not None:
        yield from _diagnosis_lines(state.diagnosis)


def _shown_document(call: Call) -> dict[str, Any]:
    state, log, quotes = call.answer
    claims = [claim.to_wire() | {"quotes": quotes[claim.claim_id]} for claim in log.claims]
    return {"run": state.to_wire(), "log": log.to_wire(), "claims": claims}


def _log_lines(log: RunLog) -> Iterator[str]:
    ended, loops = f", {log.phase} done" if log.phase else "", f", {counted(log.loops, 'loop')}" if log.loops else ""
    met = sum(failure.count for failure in log.failures)
    lines = {
        "objective": one_line(log.objective) or "none given",
        "done when": _value_line(log.done_definition) or "not defined",
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
    from muniment.packets.page import value_text

    if isinstance(value, str):
        return one_line(value)
    return one_line("; ".join(f"{key}: {value_text(part)}" for key, part in value.items()))


def _tally_text(statuses: Iterable[str]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(Counter(statuses).items())) or "none"


def _budgets(log: RunLog) -> dict[str, str]:
    """The usage, against its limit if the run has one."""
    used = log.spent.to_wire()
    named = [_used(used[name], log.budgets.get(name), name.replace("_", " ")) for name in used]
    other = [f"{name} {value}" for name, value in sorted(log.budgets.items()) if name not in used]
    return {"used": ", ".join(named)} | ({"limits": one_line(", ".join(other))} if other else {})


def _used(used: int, limit: Any, name: str) -> str:
    if isinstance(limit, int | float) and not isinstance(limit, bool):
        return f"{used} of {limit} {name}"
    return counted(used, name.removesuffix("s"))


def _claim_lines(claim: RunClaim, quotes: list[dict[str, Any]]) -> Iterator[str]:
    from muniment.runs.narrative import place_text

    yield f"{coloured(claim.status, dict(COLOURS))}  {one_line(claim.statement, 300)}  {claim.claim_id}"
    if claim.depends_on:
        yield f"    rests on {', '.join(claim.depends_on)}"
    if claim.reason:
        yield f"    because: {one_line(claim.reason, 300)}"
    for ref, quote in zip(claim.evidence_refs, quotes, strict=True):
        words = f"“{one_line(quote['text'], 200)}”" if "text" in quote else f"unavailable: {quote['error']['message']}"
        yield f"    [{place_text(ref)}] {words}"
    if not quotes:
        yield "    no evidence"


def _brief(plain: Mapping[str, Any]) -> str:
    parts = [f"{name} {value}" for name, value in plain.items() if isinstance(value, str | int | float) and value != ""]
    return one_line(", ".join(parts), 300)


def _diagnosis_lines(diagnosis: Mapping[str, Any]) -> Iterator[str]:
    """The reason a run is locked, and how to fix it."""
    yield "locked: its snapshot did not hold, so nothing more is written to it"
    for check in diagnosis.get("checks", ()):
        if check.get("status") != "PASS":
            yield f"  {check.get('name')}: {one_line(str(check.get('message')), 300)}"
    yield "repair it with mem.resume(run_id, repair=True), then: muniment run unlock RUN --reason …"


show = Command("memory.run_state", _show, around=_read, arguments=_RUN, document=_shown_document)


# -- snapshots ----------------------------------------------------------------------------------------


class _Snapshot(NamedTuple):
    found: CompactionSnapshot
    validation: SnapshotValidation | None


def _snapshot(call: Call, ask: Callable[[], CompactionSnapshot]) -> _Snapshot:
    mem, run_id, take = call.memory, call.typed["run_id"], call.typed.get("take")
    if take and "sequence" in call.typed:
        raise InvalidInput(
            "--take makes the next snapshot, --sequence names an earlier one", path="$.take", hint="give one of them"
        )
    taken = mem.resume(run_id, tenant_id=call.tenant).run.log.compact() if take else None
    found = taken if taken is not None else ask()
    is_checked = call.typed.get("check")
    return _Snapshot(
        found, mem.log.check_snapshot(run_id, found.sequence, tenant_id=call.tenant) if is_checked else None
    )


def _show_snapshot(call: Call) -> Iterator[str]:
    from muniment.runs.narrative import narrative

    found, validation = call.answer
    if validation is None:
        yield narrative(found).removesuffix("\n")
        return
    for check in validation.checks:
        yield f"{'holds ' if check.status == 'PASS' else 'BROKEN'}  {check.name}: {one_line(check.message, 300)}"
    yield f"snapshot {found.sequence} of {found.run_id} {'holds' if validation.status == 'PASS' else 'does not hold'}"


snapshot = Command(
    "memory.snapshot",
    _show_snapshot,
    around=_snapshot,
    arguments=_RUN,
    options={
        "take": OptionSpec("Take one now, whether or not it is due.", flag=True),
        "check": OptionSpec("Check it again from the stored bytes and a replay of the ledger.", flag=True),
    },
    document=lambda call: (call.answer.validation or call.answer.found).to_wire(),
    holds=lambda answer: answer.validation is None or answer.validation.status == "PASS",
    about="Prints the snapshot as Markdown in eight sections: nothing that it does not hold, always the same bytes. "
    "With --json it is exactly the document of the contract. --check prints the validation instead, and exits 1 where "
    "the snapshot does not hold.",
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
    tail = counted(found.tail, "event")
    if found.snapshot is None:
        yield f"{strong(state.run_id)}  begins with the whole ledger: {tail}, no snapshot"
    else:
        taken = when(found.snapshot.created_at)
        yield f"{strong(state.run_id)}  begins with snapshot {found.snapshot.sequence} of {taken} and {tail} after it"
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


resume = Command(
    "memory.resume",
    _show_restart,
    around=_resume,
    arguments=_RUN,
    left_out=("repair",),
    document=_restart_document,
    about="Which snapshot, how many events since, and the run's state. Names every snapshot that was passed over "
    "because it does not hold. A run that has ended is refused. Nothing is written.",
)


def _show_unlocked(call: Call) -> Iterator[str]:
    yield f"{call.typed['run_id']} is open again: snapshot {call.answer.sequence} holds ({call.answer.snapshot_id})"


unlock = Command(
    "run.unlock",
    _show_unlocked,
    on="repaired run",
    document=lambda call: {
        "run_id": call.typed["run_id"],
        "snapshot_id": call.answer.snapshot_id,
        "sequence": call.answer.sequence,
    },
    options={"reason": OptionSpec("Why it may go on; kept in the ledger.")},
    about="Only if its snapshot holds now; otherwise exit 1, and it stays locked.",
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
    run_id: Annotated[str | None, OptionSpec("Which run (default: the newest).")] = None,
    user_id: Annotated[str | None, OptionSpec("The newest run of this user (default: of all).")] = None,
    link: Annotated[str | None, OptionSpec("Open it at this inspector address.", metavar="LINK")] = None,
    tenant_id: str = "default",
) -> _Page:
    from muniment.surfaces.cli.store import write_file
    from muniment.surfaces.inspector.bundle import make_bundle

    chosen = run_id or _newest(memory, tenant_id, user_id)
    page = make_bundle(memory, chosen, tenant_id, link=link)
    write_file(Path(out), iter([page]))
    return _Page(out, chosen, len(page))


def _newest(mem: Memory, tenant_id: str, user_id: str | None) -> str:
    runs = mem.runs(user_id=user_id, tenant_id=tenant_id)
    if not runs:
        raise NotFound("there is no run", path="$.run", hint="`muniment run list` lists them")
    return max(runs, key=lambda run: (run.started_at, run.run_id)).run_id


view = Command(
    view=lambda call: [
        f"{call.answer.file}: the run {call.answer.run_id}, {call.answer.bytes:,} bytes; open it in a browser"
    ],
    function=_view,
    on="memory",
    about="An audit of one run in OUT: a single HTML file that any browser shows, with no server and no network. It "
    "holds the run's conversation, its packets with their explanations, compared, its claims and snapshots, and the "
    "memory of the user that those rest on. Everybody who gets the file can read all of that.",
)
