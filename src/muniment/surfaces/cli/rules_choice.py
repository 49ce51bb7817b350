"""`muniment rules select | lint | report`: which rules a run would get, what is wrong with one, what a signer reads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import click

from muniment.core.vocabulary import RuleType
from muniment.errors import InvalidInput
from muniment.surfaces.cli.documents import read_one
from muniment.surfaces.cli.learning_desk import bucket_given, bucket_option, features_given, key_options, parts_given
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.cli.rules_desk import (
    STAGES,
    Where,
    as_is,
    book_of,
    book_options,
    check_there,
    is_file,
    labelled,
    opened_book,
    opened_rule,
    opened_store,
    place_text,
    said,
    show_checks,
    show_findings,
    standing,
    whose_book,
)
from muniment.surfaces.cli.run import many
from muniment.surfaces.cli.tables import Cell, show_table

if TYPE_CHECKING:
    from muniment.contracts.rules import RuleRecord
    from muniment.core.policy.rules import RulePolicy
    from muniment.handles.rulebook import Rulebook
    from muniment.learning.stored_memory import StoredMemory
    from muniment.rules.promotion.records import GateReport, LintFinding, ReplayReport
    from muniment.rules.promotion.trials import CanaryVerdict
    from muniment.rules.rule_selecting import RuleSelection

__all__ = ["lint", "report", "select", "verdict_plain"]

_REFUSED_MAX = 20


# -- select -------------------------------------------------------------------------------------------


@click.command()
@key_options
@bucket_option
@click.option("--max-rules", type=click.IntRange(0), metavar="N", help="At most so many (default: the policy's).")
@click.option("--type", "types", type=click.Choice(get_args(RuleType)), multiple=True, help="Only these; repeatable.")
@click.option("--run", "run_id", metavar="RUN", default="none", help="As a run of this id: trials are drawn by it.")
@book_options
@json_option
@handles_errors
def select(
    intents: tuple[str, ...],
    states: tuple[str, ...],
    features: tuple[str, ...],
    bucket: str | None,
    max_rules: int | None,
    types: tuple[RuleType, ...],
    run_id: str,
    where: Where,
    as_json: bool,
) -> None:
    """Say which rules a run would get, and why; and which it would not, and why not. Nothing is written."""
    asked: dict[str, Any] = {
        "intent": parts_given(intents, "intent"),
        "state": parts_given(states, "state"),
        "features": features_given(features),
        "bucket_key": bucket_given(bucket),
        "max_rules": max_rules,
        "allow_types": list(types) or None,
    }
    with opened_book(where) as book:
        found, named = book.select(**asked, run_id=run_id), whose_book(book)
        bodies = {each.id: str(each.record.get("body") or "") for each in book.rules()} if not as_json else {}
    if as_json:
        emit_json(
            {
                "request": found.request.to_wire(),
                "response": found.response.to_wire(),
                "arms": [each.to_wire() for each in found.arms],
                "refused": [each.to_wire() for each in found.refused],
                "text": found.text,
                "tokens": found.tokens,
                "revisions": dict(found.revisions),
            }
        )
    else:
        _show_selection(found, named, bodies)


def _show_selection(found: RuleSelection, named: str, bodies: dict[str, str]) -> None:
    chosen = found.response.selected_rules
    revision = next(iter(found.revisions.values()), 0)
    click.echo(f"{many(len(chosen), 'rule')} of {named}, revision {revision}, {many(found.tokens, 'token')}")
    arms = {each.rule_id: each.arm for each in found.arms}
    for each in chosen:
        rule_id = each.rule_id or ""
        arm = arms.get(rule_id, "user")
        styled = click.style(arm, fg=STAGES.get(arm, "white"))
        click.echo(f"\n{click.style(rule_id, bold=True)}  {each.injection_mode}, {styled}, score {each.score or 0:.3g}")
        said(bodies.get(rule_id, ""), first="  ", rest="  ")
        said(f"because {'; '.join(each.reasons or ())}", first="  ", rest="    ")
    if found.refused:
        click.echo(f"\n{many(len(found.refused), 'rule')} left out")
        rows: list[list[Cell]] = [[each.rule_id, each.code, each.why] for each in found.refused[:_REFUSED_MAX]]
        show_table(("rule", "code", "why"), rows)
        if len(found.refused) > _REFUSED_MAX:
            click.echo(f"  and {len(found.refused) - _REFUSED_MAX} more (--json)")


# -- lint ---------------------------------------------------------------------------------------------


@click.command()
@click.argument("rule", metavar="RULE|FILE")
@book_options
@json_option
@handles_errors
def lint(rule: str, where: Where, as_json: bool) -> None:
    """Say what is wrong with RULE, or with the RuleRecord or DistillDraft in FILE (`-` is stdin), which needs no store.

    Errors keep a rule from its gate, warnings do not. Exit code 1 where there is an error.
    """
    from muniment.rules.rulebook.lint import is_clean

    findings = _lint_file(rule, where) if is_file(rule) else _lint_rule(rule, where)
    clean = is_clean(findings)
    if as_json:
        emit_json({"clean": clean, "findings": [each.to_wire() for each in findings]})
    elif findings:
        show_findings(findings)
    else:
        click.echo(f"{rule}: nothing is wrong with it")
    if not clean:
        sys.exit(EXIT_FAILED)


def _lint_rule(rule_id: str, where: Where) -> tuple[LintFinding, ...]:
    with opened_rule(where, rule_id) as book:
        return book.lint(rule_id)


def _lint_file(name: str, where: Where) -> tuple[LintFinding, ...]:
    record = _record(read_one(name, "$.file", "one RuleRecord or DistillDraft"))
    with opened_store(where._replace(db=":memory:")) as mem:
        return book_of(mem, where).lint(record)


def _record(data: Any) -> RuleRecord:
    """The rule of a file; a draft, as the rule it would become."""
    from muniment.contracts.rules import DistillDraft, RuleRecord
    from muniment.core.record import RULECRAFT_VERSION
    from muniment.rules.promotion.consolidation import rule_of

    if not isinstance(data, dict):
        raise InvalidInput(
            "a rule is a JSON object", path="$.file", hint="`muniment schema show RuleRecord` says of what"
        )
    if "proposed_rule" not in data:
        return RuleRecord.from_wire(data)
    return rule_of(DistillDraft.from_wire({"schema_version": RULECRAFT_VERSION, **data}), "rule_draft", "")


# -- report -------------------------------------------------------------------------------------------


class _Reading(NamedTuple):
    """What a person reads before signing."""

    memory: StoredMemory
    gate: GateReport | None
    replay: ReplayReport | None
    verdict: CanaryVerdict | None
    missing: tuple[str, ...]
    narrows: tuple[str, ...]


@click.command()
@click.argument("rule_id", metavar="RULE")
@book_options
@json_option
@handles_errors
def report(rule_id: str, where: Where, as_json: bool) -> None:
    """Print what a person reads before signing for RULE: its words, its gate, its replay, its trial, what is missing.

    Nothing is written. Exit code 1 where something is missing but a signature.
    """
    with opened_store(where, rule_id) as mem:
        book = book_of(mem, where, rule_id)
        check_there(book, rule_id)
        read = _read(book, rule_id, mem.policy.rules)
        needs_signature = mem.policy.rules.promote.signature == "required"
    if as_json:
        emit_json(_plain(read, needs_signature))
    else:
        _show_report(read, where, needs_signature)
    if read.missing:
        sys.exit(EXIT_FAILED)


def _read(book: Rulebook, rule_id: str, policy: RulePolicy) -> _Reading:
    from muniment.contracts.rules import RuleRecord
    from muniment.rules.promotion.consolidation import consolidate
    from muniment.rules.promotion.gate import faults_of, rule_digest
    from muniment.rules.promotion.records import GateReport, ReplayReport
    from muniment.rules.promotion.trials import replay_faults

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
    elif standing(memory) in ("active", "retired", "pruned"):
        missing = [f"it is {standing(memory)} already"]
    return _Reading(memory, gate, replay, verdict, tuple(missing), narrows)


def _trial_missing(memory: StoredMemory, verdict: CanaryVerdict | None) -> list[str]:
    if memory.stage != "canary" or verdict is None:
        return ["no trial"]
    return [] if verdict.decision == "promote" else [f"the trial: {verdict.reasons[0]}"]


def _plain(read: _Reading, needs_signature: bool) -> dict[str, Any]:
    return {
        "rule": read.memory.to_wire(),
        "gate": None if read.gate is None else read.gate.to_wire(),
        "replay": None if read.replay is None else read.replay.to_wire(),
        "trial": None if read.verdict is None else verdict_plain(read.verdict),
        "missing": list(read.missing),
        "narrows": list(read.narrows),
        "needs_signature": needs_signature,
    }


def verdict_plain(verdict: CanaryVerdict) -> dict[str, Any]:
    """What a trial shows, as plain data."""
    return verdict._asdict() | {
        "bounds": verdict.bounds._asdict(),
        "reasons": list(verdict.reasons),
        "points": [each._asdict() for each in verdict.points],
    }


def _show_report(read: _Reading, where: Where, needs_signature: bool) -> None:
    memory, record = read.memory, read.memory.record
    stage = standing(memory)
    styled = click.style(stage, fg=STAGES[stage])
    click.echo(f"{click.style(memory.id, bold=True)}  {record.get('type')}, {styled}")
    labelled("says", str(record.get("body")))
    labelled("applies", place_text(record))
    if read.gate is not None:
        _show_gate(read.gate)
    if read.replay is not None:
        tried = read.replay
        click.echo()
        labelled("replay", f"{tried.with_passes} of {tried.pairs} passed with it, {tried.without_passes} without")
        labelled("", f"{tried.decision}; {tried.notes}")
    if read.verdict is not None and memory.stage == "canary":
        click.echo()
        for number, reason in enumerate(read.verdict.reasons):
            labelled("trial" if number == 0 else "", reason)
    click.echo()
    for each in read.narrows:
        labelled("narrows", f"{each}, which advises the opposite where this one applies")
    for each in read.missing:
        labelled("missing", each)
    if not read.missing:
        words = ("--signed-by", "NAME") if needs_signature else ()
        as_is("to promote", where.spelled("promote", memory.id, *words))


def _show_gate(gate: GateReport) -> None:
    click.echo()
    passed = sum(each.ok for each in gate.outcomes)
    labelled("gate", f"{'passed' if gate.passed else 'not passed'}, {passed} of {many(len(gate.outcomes), 'test')}")
    show_checks(gate)
