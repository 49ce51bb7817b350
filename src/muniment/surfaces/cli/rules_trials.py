"""`muniment rules canary | watch | promote | retire | rollback | publish`: a rule tried, in force, and out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from muniment.surfaces.cli.asking import when
from muniment.surfaces.cli.learning_desk import bucket_given
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.rules_choice import verdict_plain
from muniment.surfaces.cli.rules_desk import (
    STAGES,
    Where,
    as_is,
    book_options,
    labelled,
    opened_book,
    opened_rule,
    place_text,
    said,
    signed_text,
    standing,
    way_back,
    whose_book,
)
from muniment.surfaces.cli.run import many
from muniment.surfaces.cli.tables import Cell, show_table

if TYPE_CHECKING:
    from muniment.handles.rulebook import Rulebook
    from muniment.learning.stored_memory import StoredMemory
    from muniment.rules.promotion.records import PromotionReport, RulebookRevision
    from muniment.rules.promotion.trials import CanaryVerdict

__all__ = ["canary", "promote", "publish", "retire", "rollback", "watch"]

_DECISIONS = {"stay": "yellow", "promote": "green", "rollback": "red", "ended": "red"}
_DONE = {"active": "was promoted", "retired": "was retired", "drafted": "is a draft again"}

signed_option = click.option("--signed-by", metavar="NAME", help="Who answers for it.")
dry_option = click.option("--dry-run", is_flag=True, help="Only say what would be done.")


# -- trials -------------------------------------------------------------------------------------------


@click.command()
@click.argument("rule_id", metavar="RULE")
@click.option("--share", type=float, metavar="SHARE", help="Of the runs, by the hash of their ids (default: 0.05).")
@click.option("--bucket", "buckets", multiple=True, metavar="KEY", help="Only runs of this bucket; repeatable.")
@book_options
@json_option
@handles_errors
def canary(rule_id: str, share: float | None, buckets: tuple[str, ...], where: Where, as_json: bool) -> None:
    """Let a share of real runs try RULE, which has passed its gate and its replay.

    Which runs is drawn by the hash of their ids. It acts in those from now on, until `watch` ends the trial, `promote`
    or `retire`.
    """
    for key in buckets:
        bucket_given(key)
    with opened_rule(where, rule_id) as book:
        memory, named, revision = (
            book.canary(rule_id, share=share, bucket_keys=buckets),
            whose_book(book),
            book.revision,
        )
    if as_json:
        emit_json(memory.to_wire())
        return
    assert memory.canary is not None
    of = f"runs of {', '.join(memory.canary.bucket_keys)}" if memory.canary.bucket_keys else "the runs it applies to"
    styled = click.style("canary", fg=STAGES["canary"])
    click.echo(f"{click.style(memory.id, bold=True)}  {styled}, on {memory.canary.share:.0%} of {of}")
    labelled("in", f"{named}, revision {revision}")
    labelled("applies", place_text(memory.record))
    as_is("what it says", where.spelled("report", memory.id))
    as_is("take it back", way_back(where, book, revision - 1))


@click.command()
@dry_option
@book_options
@json_option
@handles_errors
def watch(dry_run: bool, where: Where, as_json: bool) -> None:
    """Say what the trials show, and the holdouts of active rules; take back what is shown to do harm.

    A trial stays until its bound speaks. One that has ended makes the rule a draft again. Nothing is promoted but by a
    signature, or where the policy allows it without.
    """
    with opened_book(where) as book:
        before = {each.id: standing(each) for each in book.rules()}
        verdicts, named = book.watch(act=not dry_run), whose_book(book)
        after = {rule_id: standing(book.get(rule_id)) for rule_id in verdicts}
    if as_json:
        emit_json({"rules": [_watched(each, verdicts[each], before[each], after[each]) for each in verdicts]})
        return
    if not verdicts:
        said(f"no rule of {named} is active or on trial; --user and --agent name another")
        return
    rows = [_verdict_row(each, verdicts[each], before[each]) for each in verdicts]
    show_table(("rule", "stage", "says", "runs", "effect", "because"), rows)
    for rule_id, stage in after.items():
        if stage != before[rule_id]:
            click.echo(f"{rule_id} {_DONE.get(stage, f'is {stage}')}")
    if dry_run:
        click.echo("nothing was done")
    elif after == {rule_id: before[rule_id] for rule_id in after}:
        click.echo("nothing was to be done")


def _watched(rule_id: str, verdict: CanaryVerdict, before: str, after: str) -> dict[str, Any]:
    return {"rule_id": rule_id, "before": before, "after": after, **verdict_plain(verdict)}


def _verdict_row(rule_id: str, verdict: CanaryVerdict, stage: str) -> list[Cell]:
    effect = "–" if verdict.effect is None else f"{100 * verdict.effect:+.0f} pt"
    decision = (verdict.decision, _DECISIONS[verdict.decision])
    bounds = f"{100 * verdict.bounds.lower:+.0f} to {100 * verdict.bounds.upper:+.0f} pt"
    why = f"{verdict.reasons[0]}{f' ({bounds})' if verdict.runs else ''}"
    return [rule_id, (stage, STAGES[stage]), decision, str(verdict.runs), effect, why]


# -- in force and out of it ---------------------------------------------------------------------------


@click.command()
@click.argument("rule_id", metavar="RULE")
@signed_option
@book_options
@json_option
@handles_errors
def promote(rule_id: str, signed_by: str | None, where: Where, as_json: bool) -> None:
    """Make RULE active: from now on every run that it applies to gets it. `muniment rules report` comes first.

    It has passed its gate and its replay, its trial has spoken, and somebody signs; what is missing is said, and
    nothing happens. Rules that advise the opposite are narrowed in the same revision.
    """
    with opened_rule(where, rule_id) as book:
        report, memory, named, revision = (
            book.promote(rule_id, signed_by=signed_by),
            book.get(rule_id),
            whose_book(book),
            book.revision,
        )
    if as_json:
        emit_json(report.to_wire())
        return
    styled = click.style("active", fg=STAGES["active"])
    click.echo(f"{click.style(rule_id, bold=True)}  {styled}")
    labelled("in", f"{named}, revision {revision}")
    labelled("says", str(memory.record.get("body")))
    labelled("applies", place_text(memory.record))
    _show_reasons(report)
    as_is("take it back", way_back(where, book, revision - 1))


@click.command()
@click.argument("rule_id", metavar="RULE")
@click.option("--reason", required=True, metavar="TEXT", help="Why.")
@signed_option
@book_options
@json_option
@handles_errors
def retire(rule_id: str, reason: str, signed_by: str | None, where: Where, as_json: bool) -> None:
    """Take RULE out of force: no run gets it any more. It is kept, with its reports and what was counted."""
    with opened_rule(where, rule_id) as book:
        before = standing(book.get(rule_id))
        report, named, revision = (
            book.retire(rule_id, reason=reason, signed_by=signed_by),
            whose_book(book),
            book.revision,
        )
    if as_json:
        emit_json(report.to_wire())
        return
    styled = click.style("retired", fg=STAGES["retired"])
    click.echo(f"{click.style(rule_id, bold=True)}  {styled}, was {before}")
    labelled("in", f"{named}, revision {revision}")
    _show_reasons(report)
    as_is("take it back", way_back(where, book, revision - 1))


def _show_reasons(report: PromotionReport, most: int = 6) -> None:
    for number, reason in enumerate(report.reasons[:most]):
        labelled("because" if number == 0 else "", reason)
    labelled("signed by", signed_text(report.signed_by, report.allowed_by))
    labelled("report", report.report_id)


@click.command()
@click.option("--to", "to", type=int, required=True, metavar="N", help="The revision; 0 is the empty rulebook.")
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@signed_option
@dry_option
@book_options
@json_option
@handles_errors
def rollback(to: int, reason: str, signed_by: str | None, dry_run: bool, where: Where, as_json: bool) -> None:
    """Put the rulebook of revision N in force again: the same rules and the same selections, in one transaction.

    It is a revision of its own, so that it can be taken back too. What acts again is signed for as a promotion is.
    """
    with opened_book(where) as book:
        changes, named, current = _planned(book, to), whose_book(book), book.revision
        done = None if dry_run else book.rollback(to=to, reason=reason, signed_by=signed_by)
    if as_json:
        emit_json(_rolled(to, changes, done))
        return
    verb = "would be put" if done is None else "is"
    click.echo(f"revision {to} {verb} in force again; {many(len(changes), 'rule')} changed")
    labelled("in", named)
    show_table(
        ("rule", "now" if dry_run else "was", "then" if dry_run else "is", "says"),
        [_change_row(*each) for each in changes],
    )
    if done is None:
        click.echo("nothing was done")
    else:
        labelled("revision", f"{done.revision}, {when(done.created_at)}")
        as_is("take it back", way_back(where, book, current))


_Change = tuple["StoredMemory", "StoredMemory | None"]
"""A rule as it stands, and as it would; None: it was not there, and is retired."""


def _planned(book: Rulebook, to: int) -> list[_Change]:
    """What a rollback would change, rule by rule; those that were forgotten are no part of it."""
    from muniment.errors import InvalidInput, NotFound
    from muniment.rules.promotion.rollback import plan_rollback

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
        if then is not None or standing(memory) not in ("retired", "pruned"):
            found.append((memory, then))
    return found


def _change_row(memory: StoredMemory, then: StoredMemory | None) -> list[Cell]:
    before, after = standing(memory), "retired" if then is None else standing(then)
    said = (memory if then is None else then).record.get("body")
    return [memory.id, (before, STAGES[before]), (after, STAGES[after]), str(said or "")]


def _rolled(to: int, changes: list[_Change], done: RulebookRevision | None) -> dict[str, Any]:
    told = [
        {"rule_id": memory.id, "before": standing(memory), "after": "retired" if then is None else standing(then)}
        for memory, then in changes
    ]
    return {"to": to, "changes": told, "revision": None if done is None else done.to_wire()}


@click.command()
@book_options
@json_option
@handles_errors
def publish(where: Where, as_json: bool) -> None:
    """Write what was counted into the rules that act, as a revision: selection reads nothing else."""
    with opened_book(where) as book:
        done, named = book.publish(), whose_book(book)
    if as_json:
        emit_json({"revision": None if done is None else done.to_wire()})
    elif done is None:
        said(f"nothing new was counted in {named}")
    else:
        click.echo(f"revision {done.revision} of {named}: {done.reason}")
        for each in done.changes:
            click.echo(f"  {each.rule_id}")
