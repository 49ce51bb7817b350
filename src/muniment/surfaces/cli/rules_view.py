"""`muniment rules list | show | stats | revisions`: the rules, where they stand, and what their runs say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

import click

from muniment.learning.rule_state import RuleStage
from muniment.surfaces.cli.asking import when
from muniment.surfaces.cli.learning_desk import told
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.cli.rules_desk import (
    STAGES,
    Where,
    arms_of,
    as_is,
    book_options,
    labelled,
    next_command,
    opened_book,
    opened_rule,
    place_text,
    rate_line,
    rate_text,
    said,
    signed_text,
    span_of,
    standing,
    tally_with,
    whose_book,
)
from muniment.surfaces.cli.run import many
from muniment.surfaces.cli.tables import Cell, show_table, sparkline

if TYPE_CHECKING:
    from muniment.core.stats.counts import Tally
    from muniment.handles.rulebook import Rulebook
    from muniment.learning.stored_memory import StoredMemory
    from muniment.rules.promotion.records import RulebookRevision
    from muniment.rules.rulebook.statistics import RuleStats
    from muniment.rules.rulebook_reading import Report, RuleTest

__all__ = ["list_", "revisions", "show", "stats"]

_ACTING = ("canary", "active")
_TYPES = {"GuardrailRule": "guardrail", "StrategyRule": "strategy"}
_CLAIMS = {"better": "green", "not_harmful": "green", "harmful": "red", "undecided": "yellow"}
_SLICES_MAX = 60


# -- list ---------------------------------------------------------------------------------------------


@click.command("list")
@click.option("--stage", type=click.Choice(get_args(RuleStage)), help="Only those that stand there.")
@click.option("--all", "include_all", is_flag=True, help="Also those that were retired.")
@book_options
@json_option
@handles_errors
def list_(stage: RuleStage | None, include_all: bool, where: Where, as_json: bool) -> None:
    """List the rules of a rulebook, oldest first: where each stands, and how often runs with it and without passed."""
    with opened_book(where) as book:
        found, named, revision = book.rules(stage=stage, include_all=include_all), whose_book(book), book.revision
        figures = {} if as_json else _figures(book, found)
    if as_json:
        emit_json({"revision": revision, "rules": [each.to_wire() for each in found]})
    elif found:
        click.echo(f"{many(len(found), 'rule')} in {named}, revision {revision}")
        show_table(("rule", "stage", "type", "with", "without", "says"), [_rule_row(each, figures) for each in found])
    else:
        kind = f"{stage} rules" if stage else "rules"
        said(f"no {kind} in {named}; --user and --agent name another, --all has those that were retired")


def _figures(book: Rulebook, rules: Sequence[StoredMemory]) -> dict[str, RuleStats]:
    """Of those that act: nothing is counted of the others."""
    return {each.id: book.stats(each.id) for each in rules if each.stage in _ACTING or each.layer == "user"}


def _rule_row(memory: StoredMemory, figures: dict[str, RuleStats]) -> list[Cell]:
    stage, counted = standing(memory), figures.get(memory.id)
    tallies = {} if counted is None else arms_of(counted)
    until = f" (until {memory.expires_at[:10]})" if memory.expires_at else ""
    return [
        memory.id,
        (stage, STAGES[stage]),
        _TYPES.get(str(memory.record.get("type")), "–"),
        rate_text(tally_with(tallies, had_it=True)),
        rate_text(tally_with(tallies, had_it=False)),
        f"{_body(memory)}{until}",
    ]


def _body(memory: StoredMemory) -> str:
    """What a rule says, and not what it is called."""
    return told(memory) if memory.status == "pruned" else str(memory.record.get("body") or told(memory))


# -- show ---------------------------------------------------------------------------------------------


@click.command()
@click.argument("rule_id", metavar="RULE")
@book_options
@json_option
@handles_errors
def show(rule_id: str, where: Where, as_json: bool) -> None:
    """Show RULE: what it says and where, its tests, what runs say of it, its reports and its history."""
    with opened_rule(where, rule_id) as book:
        memory, named, counted = book.get(rule_id), whose_book(book), book.stats(rule_id)
        tests, reports, versions = book.tests(rule_id), book.reports(rule_id), book.history(rule_id)
    if as_json:
        emit_json(
            {
                "rule": memory.to_wire(),
                "tests": [{"spec": each.spec.to_wire(), "is_micro": each.is_micro} for each in tests],
                "stats": counted.to_wire(),
                "reports": [{"kind": _kind(each), "report": each.to_wire()} for each in reports],
                "history": [each.to_wire() for each in versions],
            }
        )
        return
    stage = standing(memory)
    styled = click.style(stage, fg=STAGES[stage])
    click.echo(f"{click.style(memory.id, bold=True)}  {memory.record.get('type')}, {styled}")
    said(_body(memory))
    labelled("in", named)
    _show_place(memory, tests)
    _show_rates(counted)
    if counted.buckets:
        click.echo()
        _show_buckets(counted)
    if reports:
        click.echo()
        show_table(("report", "when", "by", "found"), [_report_row(each) for each in reports])
    click.echo()
    show_table(("version", "when", "stage", "because"), [_version_row(each) for each in versions])
    following = next_command(where, memory)
    if following is not None:
        click.echo()
        as_is("next", following)


def _show_place(memory: StoredMemory, tests: Sequence[RuleTest]) -> None:
    record: dict[str, Any] = dict(memory.record)
    if record.get("title"):
        labelled("title", str(record["title"]))
    labelled("applies", place_text(record))
    labelled("tests", _test_text(tests))
    if memory.canary is not None:
        buckets = f" in {', '.join(memory.canary.bucket_keys)}" if memory.canary.bucket_keys else ""
        labelled(
            "trial", f"a share of {memory.canary.share:g} of the runs{buckets}, since {when(memory.canary.started_at)}"
        )
    if memory.expires_at:
        labelled("until", when(memory.expires_at))
    overridden = record.get("exception_to")
    if overridden:
        labelled("exception", f"to {', '.join(map(str, overridden))}")
    if memory.sources:
        labelled("learnt from", ", ".join(memory.sources))


def _test_text(tests: Sequence[RuleTest]) -> str:
    micro = sum(each.is_micro for each in tests)
    counter = sum(each.spec.test_type == "counterexample" for each in tests)
    if not tests:
        return "none"
    rest = many(len(tests) - micro - counter, "regression")
    return f"{len(tests)}: {rest}, {many(counter, 'counterexample')}, {micro} micro"


def _show_rates(counted: RuleStats) -> None:
    tallies = arms_of(counted)
    as_is("with it", rate_line(tally_with(tallies, had_it=True), counted.thin_n))
    as_is("without", rate_line(tally_with(tallies, had_it=False), counted.thin_n))
    difference = counted.delta()
    if difference.p_hat is not None and difference.p_lb95 is not None:
        labelled("difference", f"{100 * difference.p_hat:+.0f} points, at least {100 * difference.p_lb95:+.0f}")
    if counted.utility is not None:
        labelled("utility", f"{counted.utility:.2f}, passes less their share of cost, lately")


def _kind(report: Report) -> str:
    return type(report).__name__.removesuffix("Report").lower()


def _report_row(report: Report) -> list[Cell]:
    from muniment.rules.promotion.records import GateReport, ReplayReport

    if isinstance(report, GateReport):
        failing = [check.name for check in report.checks if not check.ok]
        ok = sum(each.ok for each in report.outcomes)
        against = f"; fails: {', '.join(failing)}" if failing else ""
        found = f"{ok} of {many(len(report.outcomes), 'test')} passed{against}"
        return [("gate", "green" if report.passed else "red"), when(report.created_at), "–", found]
    if isinstance(report, ReplayReport):
        found = (
            f"{report.with_passes} of {report.pairs} passed with it, {report.without_passes} without: {report.decision}"
        )
        return [("replay", "green" if report.passed else "red"), when(report.created_at), "–", found]
    by = signed_text(report.signed_by, report.allowed_by)
    return [
        (report.action, "green" if report.action == "promote" else "red"),
        when(report.created_at),
        by,
        report.reasons[0],
    ]


def _version_row(memory: StoredMemory) -> list[Cell]:
    stage = standing(memory)
    return [str(memory.version), when(_moment(memory)), (stage, STAGES[stage]), ", ".join(memory.reason_keys) or "–"]


def _moment(memory: StoredMemory) -> str:
    """When a version of a rule was written."""
    lifecycle: Any = memory.record.get("lifecycle") or {}
    return str(lifecycle.get("updated_at") or memory.created_at)


# -- figures ------------------------------------------------------------------------------------------


@click.command()
@click.argument("rule_id", metavar="[RULE]", required=False)
@click.option("--since", metavar="TIME", help="Runs learnt from then on (ISO 8601).")
@click.option("--until", metavar="TIME", help="Runs learnt before then (ISO 8601).")
@click.option(
    "--slices", type=click.IntRange(2, _SLICES_MAX), metavar="N", help="Of one RULE: cut its time in so many."
)
@book_options
@json_option
@handles_errors
def stats(
    rule_id: str | None, since: str | None, until: str | None, slices: int | None, where: Where, as_json: bool
) -> None:
    """Show what runs say of RULE, or of every rule that acts: passed with it and without, the difference, bounds.

    Bounds are Wilson's at 95 %. What decides on a trial is a bound that may be looked at after every run: `watch`.
    """
    with opened_book(where) if rule_id is None else opened_rule(where, rule_id) as book:
        ids = [rule_id] if rule_id is not None else [each.id for each in book.rules() if each.stage in _ACTING]
        counted = [book.stats(each, start=since, end=until) for each in ids]
        cut = [] if slices is None or rule_id is None else _sliced(book, rule_id, slices, since, until)
        named = whose_book(book)
    if as_json:
        emit_json(_plain(counted[0], cut) if rule_id is not None else {"stats": [each.to_wire() for each in counted]})
    elif rule_id is not None:
        _show_stats(counted[0], cut)
    elif counted:
        show_table(("with", "without", "", "95 % bounds", "difference", "rule"), [_stats_row(each) for each in counted])
    else:
        said(f"no rule of {named} is active or on trial; --user and --agent name another")


def _plain(counted: RuleStats, cut: Sequence[RuleStats]) -> dict[str, Any]:
    return counted.to_wire() | ({"slices": [each.to_wire() for each in cut]} if cut else {})


def _stats_row(counted: RuleStats) -> list[Cell]:
    tallies = arms_of(counted)
    mine = tally_with(tallies, had_it=True)
    return [
        rate_text(mine),
        rate_text(tally_with(tallies, had_it=False)),
        *span_of(mine, counted.thin_n),
        _difference(counted, None),
        counted.rule_id,
    ]


def _difference(counted: RuleStats, bucket_key: str | None) -> Cell:
    found = counted.delta(bucket_key)
    if found.p_hat is None or found.p_lb95 is None:
        return ("unknown", "bright_black")
    return f"{100 * found.p_hat:+.0f} (≥ {100 * found.p_lb95:+.0f})"


def _sliced(book: Rulebook, rule_id: str, slices: int, since: str | None, until: str | None) -> list[RuleStats]:
    """The time of a rule, or of the window, in equal parts."""
    from muniment.core.instants import format_instant, parse_instant

    memory, counted = book.get(rule_id), book.stats(rule_id, start=since, end=until)
    if counted.last_used_at is None:
        return []
    first = parse_instant(since or _since(book, memory), path="$.since")
    past = parse_instant(until, path="$.until") if until else parse_instant(counted.last_used_at, path="$.until")
    step = max((past - first) / slices, timedelta(microseconds=1)) + timedelta(microseconds=1)
    edges = [format_instant(first + number * step) for number in range(slices + 1)]
    return [book.stats(rule_id, start=start, end=end) for start, end in pairwise(edges)]


def _since(book: Rulebook, memory: StoredMemory) -> str:
    """When a rule began to act."""
    return next((_moment(each) for each in book.history(memory.id) if each.stage in _ACTING), memory.created_at)


def _show_stats(counted: RuleStats, cut: Sequence[RuleStats]) -> None:
    click.echo(f"{click.style(counted.rule_id, bold=True)}, version {counted.version} of what it says")
    _show_rates(counted)
    if cut:
        lines = [
            sparkline([_rate(tally_with(arms_of(each), had_it=had_it)) for each in cut]) for had_it in (True, False)
        ]
        as_is("over time", f"with it │{lines[0]}│  without │{lines[1]}│")
    click.echo()
    rows: list[list[Cell]] = [
        [
            name,
            (one.decision, _CLAIMS[one.decision]),
            rate_text(one.candidate),
            rate_text(one.baseline),
            _effect(one.effect),
        ]
        for name, one in (("trial", counted.trial), ("hold", counted.hold), ("matched", counted.matched))
    ]
    show_table(("comparison", "shows", "with", "without", "effect"), rows)
    if counted.buckets:
        click.echo()
        _show_buckets(counted)
    if counted.clusters:
        click.echo()
        clusters = [[str(each.with_n), str(each.without_n), each.cluster_id] for each in counted.clusters]
        show_table(("with", "without", "failure cluster"), clusters)


def _rate(tally: Tally) -> float | None:
    return tally.passes / tally.n if tally.n else None


def _effect(effect: float | None) -> str:
    return "–" if effect is None else f"{100 * effect:+.1f} points"


def _show_buckets(counted: RuleStats) -> None:
    rows: list[list[Cell]] = []
    for key in sorted(counted.buckets):
        mine = tally_with(counted.buckets[key], had_it=True)
        other = tally_with(counted.buckets[key], had_it=False)
        rows.append([rate_text(mine), rate_text(other), *span_of(mine, counted.thin_n), _difference(counted, key), key])
    show_table(("with", "without", "", "95 % bounds", "difference", "bucket"), rows)


# -- revisions ----------------------------------------------------------------------------------------


@click.command()
@book_options
@json_option
@handles_errors
def revisions(where: Where, as_json: bool) -> None:
    """List every change of a rulebook, oldest first. `muniment rules rollback --to` puts any of them in force again."""
    with opened_book(where) as book:
        found, named = book.revisions(), whose_book(book)
    if as_json:
        emit_json({"revisions": [each.to_wire() for each in found]})
    elif found:
        show_table(("", "when", "action", "by", "rules", "because"), [_revision_row(each) for each in found])
    else:
        said(f"nothing was ever changed in {named}; --user and --agent name another")


def _revision_row(revision: RulebookRevision) -> list[Cell]:
    restores = "" if revision.restores is None else f"as in revision {revision.restores}: "
    return [
        str(revision.revision),
        when(revision.created_at),
        revision.action,
        signed_text(revision.signed_by),
        str(len(revision.changes)),
        f"{restores}{revision.reason}",
    ]
