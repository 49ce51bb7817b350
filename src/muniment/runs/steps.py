"""The steps of a run: COMPILE → PLAN → ACT → OBSERVE → (CHECKPOINT), each phase an entry (CS-10, CS-04)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

from muniment.core.ports.engine import Condition, Lock
from muniment.core.ports.rows import by_ids, select
from muniment.core.ports.schema import ENTRIES
from muniment.core.record import ValidationError, issues_of
from muniment.core.requests import Expect, FromOne, Request, checked
from muniment.errors import InvalidInput, InvalidRecord, NotFound
from muniment.memory.patches import MomentOrNone, cleaned
from muniment.runs.snapshots import count_tail
from muniment.store.append import append_in
from muniment.store.ledger import PHASES, ContextManifest, EntryDraft, EntryOwner, LedgerEntry, entry_of_row

if TYPE_CHECKING:
    from muniment.contracts.packet import MemoryPacket
    from muniment.core.policy import CompactionPolicy
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.memory.patches import Writer
    from muniment.store.context import Context

__all__ = ["ENDS", "Window", "window_of", "write_step"]

_EVENT = re.compile(rf"(?:{'|'.join(PHASES)})_[A-Z]+(?:_[A-Z]+)*")
ENDS = tuple(f"{phase}_DONE" for phase in PHASES)
_EVENTS = f"{', '.join(ENDS)}, or a verbose one such as ACT_PROGRESS"
_PAGE = 16
_LATEST = 8
"""The number of latest events searched for one of the same phase."""
_ORDER = ("user_id", "session_id", "seq")
_TYPO = 0.75
"""The similarity to DONE at which a name counts as a typo, since it would silently be a verbose event (CS-10)."""


class StepPosition(NamedTuple):
    """A run's position: the step, and the index of the phase that ended last in it."""

    step: int
    phase: int


class ShownPacket(Protocol):
    """The part of a build recorded in a manifest."""

    @property
    def id(self) -> str: ...

    @property
    def tokens(self) -> int: ...

    @property
    def packet(self) -> MemoryPacket: ...


class Window(NamedTuple):
    """The content of the context window, as recorded."""

    manifest: dict[str, Any]
    told: tuple[str, ...]
    """The caller's list of selected items. Those of a build were in scope when it was composed."""


class StepRequest(Request):
    """The fields of a step that the entry's own record does not check."""

    event: Annotated[
        str,
        Expect(
            "{given!r:.60} is not an event of a step",
            _EVENT.fullmatch,
            hint=_EVENTS,
            schema={"pattern": f"^{_EVENT.pattern}$"},
        ),
    ]
    step: Annotated[FromOne | None, Expect("step should be a whole number from 1")]
    ts: MomentOrNone


def write_step(
    writer: Writer,
    event: Any,
    content: Any,
    *,
    step: int | None,
    action: Mapping[str, Any] | None,
    tokens: int | None,
    window: Window | None,
    metadata: Mapping[str, Any] | None,
    ts: Any,
) -> LedgerEntry:
    """Write one event of the step machine, numbered."""
    asked = checked(StepRequest, event=event, step=step, ts=ts)
    phase, step = _phase(asked.event), asked.step
    if window is not None and event != "COMPILE_DONE":
        raise InvalidInput("a window is told with COMPILE_DONE", path="$.event", hint="leave builds and context out")
    id_ = writer.ctx.ids.new("evt")
    said: dict[str, Any] = {"event": event}
    if action is not None:
        said["action"] = dict(action) if isinstance(action, Mapping) else action
    if tokens is not None:
        said["tokens"] = tokens
    if window is not None:
        said["manifest"] = window.manifest | {"manifest_id": id_}
    plain: dict[str, Any] = {"kind": "step", "role": "system", "content": content, "id": id_}
    plain["ts"] = asked.ts
    if metadata is not None:
        plain["metadata"] = dict(metadata) if isinstance(metadata, Mapping) else metadata
    scope = writer.scope

    def work(tx: Transaction) -> LedgerEntry:
        tx.do(Lock(("session", scope.user_id, scope.session_id)))
        _check_selected(tx, scope, () if window is None else window.told)
        number = None if event in ENDS else _going_on(tx, scope, phase)
        if number is None or step not in (None, number):
            number = _number(_place(tx, scope, writer.ctx.policy.compaction), phase, step, ends=event in ENDS)
        draft = _draft(writer, plain, said | {"step": number})
        return append_in(writer.ctx, tx, scope, [draft], writer.opening, "", repairs=writer.repairs)[0]

    return writer.ctx.write(scope.tenant_id, work)


def _draft(writer: Writer, plain: dict[str, Any], said: dict[str, Any]) -> EntryDraft:
    """The entry, redacted (LG-10) except for the ids of its manifest."""
    kept = {key: said[key] for key in ("event", "step", "tokens", "manifest") if key in said}
    rest = {key: value for key, value in said.items() if key not in kept}
    words = {key: plain[key] for key in ("content", "metadata") if key in plain}
    clean = cleaned(writer.ctx, [rest, words])
    whole = plain | clean[1] | {"step": clean[0] | kept}
    try:
        return EntryDraft.model_validate(whole)
    except ValidationError as error:
        issues = [issue._replace(path=issue.path.replace("$.step.", "$.")) for issue in issues_of(error, whole)]
        raise InvalidRecord("not a valid step", issues) from None


def _phase(event: str) -> int:
    phase, _, rest = event.partition("_")
    if rest != "DONE" and get_close_matches(rest, ["DONE"], cutoff=_TYPO):
        raise InvalidInput(
            f"{event} looks like a misspelt {phase}_DONE, and would not count",
            path="$.event",
            hint=f"{phase}_DONE ends the phase; call what happens within it something else",
        )
    return PHASES.index(phase)


def _going_on(reader: Reader, scope: Scope, phase: int) -> int | None:
    """The step of the latest verbose event of this phase, if no phase has ended since; the next such event belongs to
    it.

    This avoids reading a phase with many events from its beginning each time.
    """
    for row in select(reader, ENTRIES, _steps_of(scope), order=_ORDER, descending=True, limit=_LATEST):
        told = entry_of_row(scope.tenant_id, row).step
        if told is not None and told.event in ENDS:
            return None
        if told is not None and told.event.startswith(f"{PHASES[phase]}_"):
            return told.step
    return None


def _steps_of(scope: Scope) -> tuple[Condition, ...]:
    return (
        ("user_id", "=", scope.user_id),
        ("session_id", "=", scope.session_id),
        ("run_id", "=", scope.run_id),
        ("kind", "=", "step"),
    )


def _place(reader: Reader, scope: Scope, policy: CompactionPolicy) -> StepPosition:
    """The run's position, by the last phase that ended in it.

    Imported steps may be unnumbered or out of order; then use the fold.
    """
    after = None
    while True:
        rows = select(reader, ENTRIES, _steps_of(scope), order=_ORDER, after=after, descending=True, limit=_PAGE)
        told = [entry_of_row(scope.tenant_id, row).step for row in rows]
        ended = [(step.step, ENDS.index(step.event)) for step in told if step is not None and step.event in ENDS]
        numbers = [number for number, _ in ended if number is not None]
        if len(numbers) < len(ended) or numbers != sorted(numbers, reverse=True):
            log = count_tail(reader, scope, policy)
            return StepPosition(log.step, len(PHASES) if log.phase is None else PHASES.index(log.phase))
        if ended:
            return StepPosition(numbers[0], ended[0][1])
        if len(rows) < _PAGE:
            return StepPosition(0, len(PHASES))
        after = (scope.user_id, scope.session_id, rows[-1].seq)


def _number(place: StepPosition, phase: int, given: int | None, *, ends: bool) -> int:
    """The step number of an event: as given, else the current one, or the next if its phase is over."""
    if given is None:
        return place.step + (phase <= place.phase if ends else phase < place.phase)
    if given not in (place.step, place.step + 1) or given == 0:
        raise InvalidInput(
            f"the run is at step {place.step}, so this is step {place.step} or {place.step + 1}, not {given}",
            path="$.step",
            hint="leave step out to have it numbered",
            details={"step": place.step},
        )
    if given == place.step and phase < place.phase:
        raise InvalidInput(
            f"{PHASES[phase]} comes before {PHASES[place.phase]}, which has ended in step {given}",
            path="$.event",
            hint=f"it begins step {given + 1}",
        )
    return given


# -- context manifests --------------------------------------------------------------------------------


def window_of(ctx: Context, builds: Iterable[ShownPacket], context: Any) -> Window | None:
    """The window: from builds by their own record; else from the caller, redacted (LG-10)."""
    made = list(builds)
    if not made and context is None:
        return None
    given = _context(context)
    told = tuple(given.get("selected", ()))
    selected = dict.fromkeys(told)
    excluded = [each | {"reason": cleaned(ctx, each["reason"])} for each in given.get("excluded", ())]
    filters = cleaned(ctx, dict(given.get("filters", {})))
    tokens = given.get("tokens")
    for build in made:
        selected |= dict.fromkeys(citation.id for citation in build.packet.citations)
        explain = build.packet.explain
        excluded += [{"id": omitted.item, "reason": omitted.reason} for omitted in explain.omitted]
        filters[build.id] = explain.filters
        tokens = (tokens or 0) + build.tokens
    plain: dict[str, Any] = {
        "builds": [build.id for build in made],
        "selected": list(selected),
        "excluded": excluded,
        "filters": filters,
    }
    return Window(plain if tokens is None else plain | {"tokens": tokens}, told)


def _context(context: Any) -> dict[str, Any]:
    if context is None:
        return {}
    allowed = {"selected", "excluded", "filters", "tokens"}
    if not isinstance(context, Mapping) or not context.keys() <= allowed:
        raise InvalidInput(
            "a context says what was selected and excluded",
            path="$.context",
            hint=f"an object of {', '.join(sorted(allowed))}",
        )
    plain = dict(context)
    try:
        whole = {"manifest_id": "of-the-entry", "builds": [], "selected": [], "excluded": [], "filters": {}}
        ContextManifest.from_wire(whole | plain)
    except InvalidRecord as error:
        issues = [issue._replace(path=f"$.context{issue.path[1:]}") for issue in error.issues]
        raise InvalidRecord("the context does not fit", issues) from None
    return plain


def _check_selected(reader: Reader, scope: Scope, ids: Iterable[str]) -> None:
    """Check that the caller's selected items are visible to this user (LG-02)."""
    from muniment.core.scope import is_visible

    wanted = list(dict.fromkeys(ids))
    rows = by_ids(reader, ENTRIES, wanted, into=EntryOwner)
    seen = {row.id for row in rows if is_visible(row.user_id, scope.user_id)}
    for id_ in wanted:
        if id_ not in seen:
            raise NotFound(f"no event or chunk {id_!r:.80} in this scope", path="$.context.selected")
