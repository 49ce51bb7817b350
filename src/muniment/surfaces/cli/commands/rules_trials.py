"""`rules canary | watch | promote | retire | rollback | publish`: a rule tried, in force, and out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from muniment.errors import InvalidInput, NotFound
from muniment.surfaces.cli.calling import Call, Command, wire
from muniment.surfaces.cli.commands.rules_lines import (
    RULE,
    STAGES,
    place_text,
    signed_text,
    stage_cell,
    stage_of,
    stage_text,
    way_back,
    whose_book,
)
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.reading import bucket_given
from muniment.surfaces.cli.terminal import Cell, as_is, counted, labelled, said, strong, table, when

if TYPE_CHECKING:
    from muniment.handles.rulebook import Rulebook
    from muniment.learning.records import StoredMemory
    from muniment.rules._gate import CanaryVerdict
    from muniment.rules._records import PromotionReport, RulebookRevision

__all__ = ["canary", "promote", "publish", "retire", "rollback", "watch"]

_DECISIONS = {"stay": "yellow", "promote": "green", "rollback": "red", "ended": "red"}
_DONE = {"active": "was promoted", "retired": "was retired", "drafted": "is a draft again"}
_REASONS_MAX = 6
_DRY = {"dry_run": Word(flag=True)}


def _place_lines(call: Call) -> Iterator[str]:
    return labelled("in", f"{whose_book(call.handle)}, revision {call.handle.revision}")


def _back_line(call: Call) -> str:
    return as_is("take it back", way_back(call, call.handle.revision - 1))


# -- trials -------------------------------------------------------------------------------------------


def _buckets_given(keys: tuple[str, ...]) -> list[str]:
    return [bucket_given(key) for key in keys]


def _show_canary(call: Call) -> Iterator[str]:
    memory: StoredMemory = call.answer
    assert memory.canary is not None
    of = f"runs of {', '.join(memory.canary.bucket_keys)}" if memory.canary.bucket_keys else "the runs it applies to"
    yield f"{strong(memory.id)}  {stage_text('canary')}, on {memory.canary.share:.0%} of {of}"
    yield from _place_lines(call)
    yield from labelled("applies", place_text(memory.record))
    yield as_is("what it says", call.spelled("rules", "report", memory.id))
    yield _back_line(call)


canary = Command(
    "rulebook.canary",
    _show_canary,
    arguments=RULE,
    calls=("rulebook.revision",),
    words={
        "share": Word("Of the runs, by the hash of their ids (default: 0.05).", metavar="SHARE"),
        "bucket_keys": Word(
            "Only runs of this bucket; repeatable.", "bucket", metavar="KEY", many=True, read=_buckets_given
        ),
    },
    about="The rule has passed its gate and its replay. Which runs is drawn by the hash of their ids. It acts in those "
    "from now on, until `watch` ends the trial, `promote` or `retire`.",
)


class _Watched(NamedTuple):
    before: dict[str, str]
    verdicts: dict[str, CanaryVerdict]
    after: dict[str, str]


def _watch(call: Call, ask: Callable[..., dict[str, CanaryVerdict]]) -> _Watched:
    book: Rulebook = call.handle
    before = {each.id: stage_of(each) for each in book.rules()}
    verdicts = ask(act="dry_run" not in call.typed)
    return _Watched(before, verdicts, {rule_id: stage_of(book.get(rule_id)) for rule_id in verdicts})


def _show_watched(call: Call) -> Iterator[str]:
    before, verdicts, after = call.answer
    if not verdicts:
        yield from said(f"no rule of {whose_book(call.handle)} is active or on trial; --user and --agent name another")
        return
    rows = [_verdict_row(each, verdicts[each], before[each]) for each in verdicts]
    yield from table(("rule", "stage", "says", "runs", "effect", "because"), rows)
    moved = [rule_id for rule_id, stage in after.items() if stage != before[rule_id]]
    for rule_id in moved:
        yield f"{rule_id} {_DONE.get(after[rule_id], f'is {after[rule_id]}')}"
    if call.typed.get("dry_run"):
        yield "nothing was done"
    elif not moved:
        yield "nothing was to be done"


def _verdict_row(rule_id: str, verdict: CanaryVerdict, stage: str) -> list[Cell]:
    effect = "–" if verdict.effect is None else f"{100 * verdict.effect:+.0f} pt"
    decision = (verdict.decision, _DECISIONS[verdict.decision])
    bounds = f"{100 * verdict.bounds.lower:+.0f} to {100 * verdict.bounds.upper:+.0f} pt"
    why = f"{verdict.reasons[0]}{f' ({bounds})' if verdict.runs else ''}"
    return [rule_id, (stage, STAGES[stage]), decision, str(verdict.runs), effect, why]


def _watched_document(call: Call) -> dict[str, Any]:
    before, verdicts, after = call.answer
    return {
        "rules": [
            {"rule_id": each, "before": before[each], "after": after[each], **wire(verdict)}
            for each, verdict in verdicts.items()
        ]
    }


watch = Command(
    "rulebook.watch",
    _show_watched,
    around=_watch,
    left_out=("act",),
    more=_DRY,
    calls=("rulebook.rules", "rulebook.get"),
    document=_watched_document,
    about="And the holdouts of active rules. A trial stays until its bound speaks. One that has ended makes the rule a "
    "draft again. Nothing is promoted but by a signature, or where the policy allows it without.",
)


# -- in force and out of it ---------------------------------------------------------------------------


def _reason_lines(report: PromotionReport) -> Iterator[str]:
    for number, reason in enumerate(report.reasons[:_REASONS_MAX]):
        yield from labelled("because" if number == 0 else "", reason)
    yield from labelled("signed by", signed_text(report.signed_by, report.allowed_by))
    yield from labelled("report", report.report_id)


def _show_promoted(call: Call) -> Iterator[str]:
    memory: StoredMemory = call.handle.get(call.typed["rule_id"])
    yield f"{strong(memory.id)}  {stage_text('active')}"
    yield from _place_lines(call)
    yield from labelled("says", str(memory.record.get("body")))
    yield from labelled("applies", place_text(memory.record))
    yield from _reason_lines(call.answer)
    yield _back_line(call)


promote = Command(
    "rulebook.promote",
    _show_promoted,
    arguments=RULE,
    calls=("rulebook.get", "rulebook.revision"),
    about="From now on every run that it applies to gets it. `muniment rules report` comes first. The rule has passed "
    "its gate and its replay, its trial has spoken, and somebody signs; what is missing is said, and nothing happens. "
    "Rules that advise the opposite are narrowed in the same revision.",
)


class _Retired(NamedTuple):
    before: str
    report: PromotionReport


def _retire(call: Call, ask: Callable[[], PromotionReport]) -> _Retired:
    return _Retired(stage_of(call.handle.get(call.typed["rule_id"])), ask())


def _show_retired(call: Call) -> Iterator[str]:
    before, report = call.answer
    yield f"{strong(call.typed['rule_id'])}  {stage_text('retired')}, was {before}"
    yield from _place_lines(call)
    yield from _reason_lines(report)
    yield _back_line(call)


retire = Command(
    "rulebook.retire",
    _show_retired,
    around=_retire,
    arguments=RULE,
    calls=("rulebook.get", "rulebook.revision"),
    document=lambda call: call.answer.report.to_wire(),
    about="No run gets it any more. It is kept, with its reports and what was counted.",
)


# -- rollback -----------------------------------------------------------------------------------------

_Change = tuple["StoredMemory", "StoredMemory | None"]
"""A rule as it stands, and as it would; None: it was not there, and is retired."""


class _Rolled(NamedTuple):
    changes: list[_Change]
    current: int
    done: RulebookRevision | None


def _rollback(call: Call, ask: Callable[[], RulebookRevision]) -> _Rolled:
    changes, current = _planned(call.handle, call.typed["to"]), call.handle.revision
    return _Rolled(changes, current, None if "dry_run" in call.typed else ask())


def _planned(book: Rulebook, to: int) -> list[_Change]:
    """What a rollback would change, rule by rule; those that were forgotten are no part of it."""
    from muniment.rules.rulebook import plan_rollback

    if to < 0:
        raise InvalidInput("a revision is a whole number from 0", path="$.to")
    found: list[_Change] = []
    wanted = plan_rollback(book.revisions(), to) if to else {each.id: 0 for each in book.rules()}
    for rule_id, version in wanted.items():
        try:
            memory, versions = book.get(rule_id), book.history(rule_id)
        except NotFound:
            continue
        then = next((each for each in versions if each.version == version), None)
        if then is not None or stage_of(memory) not in ("retired", "pruned"):
            found.append((memory, then))
    return found


def _show_rolled(call: Call) -> Iterator[str]:
    changes, current, done = call.answer
    verb, heads = ("would be put", ("now", "then")) if done is None else ("is", ("was", "is"))
    yield f"revision {call.typed['to']} {verb} in force again; {counted(len(changes), 'rule')} changed"
    yield from labelled("in", whose_book(call.handle))
    yield from table(("rule", *heads, "says"), [_change_row(*each) for each in changes])
    if done is None:
        yield "nothing was done"
    else:
        yield from labelled("revision", f"{done.revision}, {when(done.created_at)}")
        yield as_is("take it back", way_back(call, current))


def _change_row(memory: StoredMemory, then: StoredMemory | None) -> list[Cell]:
    after: Cell = ("retired", STAGES["retired"]) if then is None else stage_cell(then)
    body = (memory if then is None else then).record.get("body")
    return [memory.id, stage_cell(memory), after, str(body or "")]


def _rolled_document(call: Call) -> dict[str, Any]:
    changes, _, done = call.answer
    turned = [
        {"rule_id": memory.id, "before": stage_of(memory), "after": "retired" if then is None else stage_of(then)}
        for memory, then in changes
    ]
    return {"to": call.typed["to"], "changes": turned, "revision": wire(done)}


rollback = Command(
    "rulebook.rollback",
    _show_rolled,
    around=_rollback,
    words={"to": Word("The revision; 0 is the empty rulebook.", metavar="N")},
    more=_DRY,
    calls=("rulebook.revisions", "rulebook.history", "rulebook.revision", "rulebook.rules", "rulebook.get"),
    document=_rolled_document,
    about="The same rules and the same selections, in one transaction. It is a revision of its own, so that it can be "
    "taken back too. What acts again is signed for as a promotion is.",
)


def _show_published(call: Call) -> Iterator[str]:
    done: RulebookRevision | None = call.answer
    if done is None:
        yield from said(f"nothing new was counted in {whose_book(call.handle)}")
        return
    yield f"revision {done.revision} of {whose_book(call.handle)}: {done.reason}"
    for each in done.changes:
        yield f"  {each.rule_id}"


publish = Command(
    "rulebook.publish", _show_published, document="revision", about="As a revision: selection reads nothing else."
)
