"""`muniment fold`: a run folded into memory by what a verifier said of it, and what came of that."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import click

from muniment.core.vocabulary import Outcome, ScopeLevel, Verdict
from muniment.errors import InvalidInput, NotFound
from muniment.surfaces.cli.asking import one_line
from muniment.surfaces.cli.learning_desk import (
    bucket_given,
    bucket_option,
    features_given,
    in_words_of_commands,
    key_options,
    parts_given,
    show_actions,
    spelled,
    told,
)
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.cli.run import run_named
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.contracts.rules import DistillDraft
    from muniment.contracts.run_records import VerifierResult
    from muniment.handles.bank import Bank
    from muniment.handles.run import Run
    from muniment.learning.folding import Learned
    from muniment.learning.stored_memory import StoredMemory

__all__ = ["fold"]

_VERIFIER = "by_hand"


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--result", metavar="FILE", help="What the verifier said: a VerifierResult in JSON (`-` is stdin).")
@click.option("--verdict", type=click.Choice(get_args(Verdict)), help="Or its verdict …")
@click.option("--outcome", type=click.Choice(get_args(Outcome)), help="… its outcome (default: UNKNOWN) …")
@click.option("--reason", "reasons", multiple=True, metavar="CODE", help="… and its reason codes; repeatable.")
@key_options
@bucket_option
@click.option(
    "--level", type=click.Choice(get_args(ScopeLevel)), default="user", show_default=True, help="Whose bank learns it."
)
@db_option
@tenant_option
@json_option
@handles_errors
def fold(
    run_id: str,
    result: str | None,
    verdict: str | None,
    outcome: str | None,
    reasons: tuple[str, ...],
    intents: tuple[str, ...],
    states: tuple[str, ...],
    features: tuple[str, ...],
    bucket: str | None,
    level: ScopeLevel,
    db: str | None,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Learn from RUN, whether it is open or has ended: log, episode, tactics, seed, drafts, by a plan.

    Judged by --result or --verdict; without either, by the last result that the run keeps. Folding twice is folding
    once. Intent and state are those it recalled by, unless they are said. Exits 1 where the plan was aborted.
    """
    said = _said(result, verdict, outcome, reasons)
    learning: dict[str, Any] = {
        "intent": parts_given(intents, "intent"),
        "state": parts_given(states, "state"),
        "features": features_given(features),
        "bucket_key": bucket_given(bucket),
        "level": level,
    }
    settings = load_settings({"db": db, "tenant": tenant})
    with in_words_of_commands(), open_store(settings, must_exist=True) as mem:
        run = run_named(mem, run_id, settings.tenant)
        before = run.learning.learned()
        grants = () if level == "user" else (level,)
        learned = before or mem.learning.learn(
            run_id, said or _kept_result(run), tenant_id=settings.tenant, grants=grants, **learning
        )
        bank = mem.learning.bank_of(learned.event_log.trace_id, tenant_id=settings.tenant)
        made = _records(bank, learned)
        wanted = set(learned.fold.produced.rule_draft_ids or ())
        drafts = [draft for draft in bank.drafts() if draft.draft_id in wanted]
    if as_json:
        emit_json({"learnt_before": before is not None, **_plain(learned, made, drafts)})
    else:
        if before is not None:
            click.echo("it was folded before, and nothing is learnt twice; this is what was learnt then")
        _show(run_id, learned, made, drafts)
        if before is None and made:
            click.echo(f"to take it back: {spelled('undo', learned.plan.plan_id, db=db, tenant=tenant)}")
    if any(record.status == "FAILED" for record in learned.records):
        raise SystemExit(EXIT_FAILED)


def _said(
    result: str | None, verdict: str | None, outcome: str | None, reasons: tuple[str, ...]
) -> Mapping[str, Any] | None:
    """What the command line says of the run; None where it says nothing."""
    if result is not None and (verdict or outcome or reasons):
        raise InvalidInput("a run is judged once", path="$.result", hint="give --result, or --verdict and --outcome")
    if result is not None:
        return _read_result(result)
    if verdict is None:
        if outcome or reasons:
            raise InvalidInput("an outcome goes with a verdict", path="$.verdict", hint="give --verdict as well")
        return None
    plain: dict[str, Any] = {"verifier_id": _VERIFIER, "verdict": verdict, "outcome": outcome or "UNKNOWN"}
    return plain | ({"reason_codes": list(reasons)} if reasons else {})


def _read_result(name: str) -> Mapping[str, Any]:
    from muniment.surfaces.cli.documents import read_one

    found = read_one(name, "$.result", "one VerifierResult")
    if not isinstance(found, dict):
        raise InvalidInput(
            "a verifier's result is a JSON object",
            path="$.result",
            hint="`muniment schema show VerifierResult` says of what",
        )
    return found


def _kept_result(run: Run) -> VerifierResult:
    kept = run.verifications()
    if not kept:
        raise InvalidInput(
            "nobody has judged this run yet",
            path="$.result",
            hint="give --result FILE or --verdict; `muniment verify-output --run RUN` keeps a result with it",
        )
    return kept[-1]


def _records(bank: Bank, learned: Learned) -> list[StoredMemory]:
    """What the plan left, as it stands; what was forgotten since is not there."""
    found: list[StoredMemory] = []
    for id_ in dict.fromkeys(id_ for record in learned.records for id_ in record.produced_ids or ()):
        with suppress(NotFound):
            found.append(bank.get(id_))
    return found


def _plain(learned: Learned, made: list[StoredMemory], drafts: list[DistillDraft]) -> dict[str, Any]:
    return {
        "event_log": learned.event_log.to_wire(),
        "trace_capsule": learned.capsule.to_wire(),
        "fold": learned.fold.to_wire(),
        "plan": learned.plan.to_wire(),
        "actions": [record.to_wire() for record in learned.records],
        "records": [memory.to_wire() for memory in made],
        "drafts": [draft.to_wire() for draft in drafts],
    }


def _show(run_id: str, learned: Learned, made: list[StoredMemory], drafts: list[DistillDraft]) -> None:
    found, log = learned.fold, learned.event_log
    click.echo(f"{click.style(run_id, bold=True)}  {log.verifier.verdict}, outcome {log.verifier.outcome}")
    lines = {
        "log": f"{log.trace_id}, folded for {found.trigger.kind}",
        "intent": found.intent_key or "none: it is compared with other runs that have none",
        "state": found.state_key or "none",
    }
    for label, text in lines.items():
        click.echo(f"{label + ':':<9} {one_line(text, 200)}")
    for memory in made:
        standing = f" [{memory.status}]" if memory.status != "active" else ""
        kind = "episode" if memory.kind == "reasoning" else memory.kind
        click.echo(f"{kind + ':':<9} {memory.id}{standing}  {one_line(told(memory), 300)}")
    for draft in drafts:
        rule = draft.proposed_rule
        click.echo(f"{'draft:':<9} {draft.draft_id}  {rule.type}: {one_line(rule.title or rule.body or '', 200)}")
    if learned.records:
        click.echo(f"\nplan {learned.plan.plan_id}")
        show_actions(learned.records)
    else:
        click.echo(f"plan:     {learned.plan.plan_id} was forgotten, with a run that it was learnt from")
