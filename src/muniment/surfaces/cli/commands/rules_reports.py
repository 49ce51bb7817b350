"""`rules select | lint | report`: which rules a run would get, what is wrong with one, what a signer reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from muniment.errors import InvalidInput
from muniment.surfaces.cli.calling import Call, Command, wire
from muniment.surfaces.cli.commands.rules_lines import (
    RULE,
    STAGES,
    check_lines,
    finding_lines,
    place_text,
    stage_of,
    stage_text,
    whose_book,
)
from muniment.surfaces.cli.openings import OPENINGS, check_there
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.reading import is_file
from muniment.surfaces.cli.terminal import Cell, as_is, counted, labelled, said, strong, style, table

if TYPE_CHECKING:
    from muniment.contracts.rules import RuleRecord
    from muniment.core.policy import RulePolicy
    from muniment.handles.rulebook import Rulebook
    from muniment.learning.records import StoredMemory
    from muniment.rules._gate import CanaryVerdict
    from muniment.rules._records import GateReport, LintFinding, ReplayReport
    from muniment.rules.selection import RuleSelection

__all__ = ["lint", "report", "select"]

_REFUSED_MAX = 20


# -- select -------------------------------------------------------------------------------------------


def _selection_document(call: Call) -> dict[str, Any]:
    names = ("request", "response", "arms", "refused", "text", "tokens", "revisions")
    return {name: wire(getattr(call.answer, name)) for name in names}


def _show_selection(call: Call) -> Iterator[str]:
    found: RuleSelection = call.answer
    bodies = {each.id: str(each.record.get("body") or "") for each in call.handle.rules()}
    chosen = found.response.selected_rules
    revision = next(iter(found.revisions.values()), 0)
    tokens = counted(found.tokens, "token")
    yield f"{counted(len(chosen), 'rule')} of {whose_book(call.handle)}, revision {revision}, {tokens}"
    arms = {each.rule_id: each.arm for each in found.arms}
    for each in chosen:
        rule_id = each.rule_id or ""
        arm = arms.get(rule_id, "user")
        styled = style(arm, fg=STAGES.get(arm, "white"))
        yield f"\n{strong(rule_id)}  {each.injection_mode}, {styled}, score {each.score or 0:.3g}"
        yield from said(bodies.get(rule_id, ""), first="  ", rest="  ")
        yield from said(f"because {'; '.join(each.reasons or ())}", first="  ", rest="    ")
    if found.refused:
        yield f"\n{counted(len(found.refused), 'rule')} left out"
        rows: list[list[Cell]] = [[each.rule_id, each.code, each.why] for each in found.refused[:_REFUSED_MAX]]
        yield from table(("rule", "code", "why"), rows)
        if len(found.refused) > _REFUSED_MAX:
            yield f"  and {len(found.refused) - _REFUSED_MAX} more (--json)"


select = Command(
    "rulebook.select",
    _show_selection,
    left_out=("prompt_profile",),
    words={
        "max_rules": Word("At most so many (default: the policy's).", metavar="N", type=click.IntRange(0)),
        "allow_types": Word("Only these; repeatable.", "type"),
        "run_id": Word("As a run of this id: trials are drawn by it."),
    },
    calls=("rulebook.rules",),
    document=_selection_document,
    about="And which it would not, and why not. Nothing is written.",
)


# -- lint ---------------------------------------------------------------------------------------------


def _lint(call: Call, rule: Annotated[str, Word(metavar="RULE|FILE")]) -> tuple[LintFinding, ...]:
    from muniment.surfaces.cli.documents import read_one
    from muniment.surfaces.settings import load_settings, open_store

    if is_file(rule):  # which needs no store
        record = _record(read_one(rule, "$.file", "one RuleRecord or DistillDraft"))
        with open_store(load_settings({"db": ":memory:"})) as mem:
            return mem.rulebook().lint(record)
    with open_store(call.settings, must_exist=True) as call.memory:
        book: Rulebook = OPENINGS["rulebook"].open(call)
        check_there(book, rule)
        return book.lint(rule)


def _record(data: Any) -> RuleRecord:
    """The rule of a file; a draft, as the rule it would become."""
    from muniment.contracts.rules import DistillDraft, RuleRecord
    from muniment.core.record import RULECRAFT_VERSION
    from muniment.rules._consolidate import rule_of

    if not isinstance(data, dict):
        raise InvalidInput(
            "a rule is a JSON object", path="$.file", hint="`muniment schema show RuleRecord` says of what"
        )
    if "proposed_rule" not in data:
        return RuleRecord.from_wire(data)
    return rule_of(DistillDraft.from_wire({"schema_version": RULECRAFT_VERSION, **data}), "rule_draft", "")


def _is_clean(findings: tuple[LintFinding, ...]) -> bool:
    from muniment.rules._lint import is_clean

    return is_clean(findings)


def _show_findings(call: Call) -> Iterator[str]:
    if call.answer:
        yield from finding_lines(call.answer)
    else:
        yield f"{call.typed['rule']}: nothing is wrong with it"


lint = Command(
    "rulebook.lint",
    _show_findings,
    function=_lint,
    on="rulebook call",
    document=lambda call: {"clean": _is_clean(call.answer), "findings": wire(call.answer)},
    holds=_is_clean,
    about="A rule by its id, or the RuleRecord or DistillDraft in FILE (`-` is stdin), which needs no store. Errors "
    "keep a rule from its gate, warnings do not. Exit code 1 where there is an error.",
)


# -- report -------------------------------------------------------------------------------------------


class _Reading(NamedTuple):
    """What a person reads before signing."""

    rule: StoredMemory
    gate: GateReport | None
    replay: ReplayReport | None
    trial: CanaryVerdict | None
    missing: tuple[str, ...]
    narrows: tuple[str, ...]


def _report(call: Call, rule_id: str) -> _Reading:
    book: Rulebook = OPENINGS["rulebook"].open(call)
    return _read(book, rule_id, call.memory.policy.rules)


def _read(book: Rulebook, rule_id: str, policy: RulePolicy) -> _Reading:
    from muniment.contracts.rules import RuleRecord
    from muniment.rules._consolidate import consolidate
    from muniment.rules._gate import faults_of, replay_faults, rule_digest
    from muniment.rules._records import GateReport, ReplayReport

    memory = book.get(rule_id)
    rule = RuleRecord.from_wire(memory.record)
    fitting = [each for each in book.reports(rule_id) if each.rule_digest == rule_digest(rule)]
    gate = next((each for each in reversed(fitting) if isinstance(each, GateReport)), None)
    replay = next((each for each in reversed(fitting) if isinstance(each, ReplayReport)), None)
    verdict = book.watch(act=False).get(rule_id)
    missing = [
        *(["no gate of the rule as it is"] if gate is None else faults_of(gate, rule, policy.gate)),
        *replay_faults(replay, rule, policy),
        *_trial_missing(memory, verdict),
    ]
    others = [each for each in book.rules(stage="active") if each.id != rule_id]
    found = consolidate(rule, others, now=memory.created_at) if memory.stage != "active" else None
    narrows = () if found is None else tuple(cut.rule_id for cut in found.cuts)
    if memory.layer == "user":
        missing, narrows = ["a rule that a person wrote is never promoted: it acts by its layer, until it ends"], ()
    elif stage_of(memory) in ("active", "retired", "pruned"):
        missing = [f"it is {stage_of(memory)} already"]
    return _Reading(memory, gate, replay, verdict, tuple(missing), narrows)


def _trial_missing(memory: StoredMemory, verdict: CanaryVerdict | None) -> list[str]:
    if memory.stage != "canary" or verdict is None:
        return ["no trial"]
    return [] if verdict.decision == "promote" else [f"the trial: {verdict.reasons[0]}"]


def _needs_signature(call: Call) -> bool:
    return call.memory.policy.rules.promote.signature == "required"


def _report_document(call: Call) -> dict[str, Any]:
    plain: dict[str, Any] = wire(call.answer)
    return plain | {"needs_signature": _needs_signature(call)}


def _show_report(call: Call) -> Iterator[str]:
    read: _Reading = call.answer
    memory, record = read.rule, read.rule.record
    yield f"{strong(memory.id)}  {record.get('type')}, {stage_text(stage_of(memory))}"
    yield from labelled("says", str(record.get("body")))
    yield from labelled("applies", place_text(record))
    if read.gate is not None:
        passed = sum(each.ok for each in read.gate.outcomes)
        fate = "passed" if read.gate.passed else "not passed"
        yield ""
        yield from labelled("gate", f"{fate}, {passed} of {counted(len(read.gate.outcomes), 'test')}")
        yield from check_lines(read.gate)
    if read.replay is not None:
        tried = read.replay
        yield ""
        yield from labelled(
            "replay", f"{tried.with_passes} of {tried.pairs} passed with it, {tried.without_passes} without"
        )
        yield from labelled("", f"{tried.decision}; {tried.notes}")
    if read.trial is not None and memory.stage == "canary":
        yield ""
        for number, reason in enumerate(read.trial.reasons):
            yield from labelled("trial" if number == 0 else "", reason)
    yield ""
    for each in read.narrows:
        yield from labelled("narrows", f"{each}, which advises the opposite where this one applies")
    for each in read.missing:
        yield from labelled("missing", each)
    if not read.missing:
        words = ("--signed-by", "NAME") if _needs_signature(call) else ()
        yield as_is("to promote", call.spelled("rules", "promote", memory.id, *words))


report = Command(
    "rulebook.reports",
    _show_report,
    function=_report,
    on="rulebook store",
    arguments=RULE,
    calls=("rulebook.get", "rulebook.rules", "rulebook.watch", "memory.policy"),
    document=_report_document,
    holds=lambda read: not read.missing,
    about="Its words, its gate, its replay, its trial, what is missing. Nothing is written. Exit code 1 where "
    "something is missing but a signature.",
)
