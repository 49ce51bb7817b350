"""`muniment rules submit | add | tests | gate | replay`: a rule on its way to a trial."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, get_args

import click

from muniment.core.vocabulary import RuleType
from muniment.errors import InvalidInput
from muniment.surfaces.cli.asking import one_line, text_given, when
from muniment.surfaces.cli.check import read_constraint_file
from muniment.surfaces.cli.documents import read_all, read_one
from muniment.surfaces.cli.functions import AGENT_HELP, VERIFIER_HELP, load_function
from muniment.surfaces.cli.options import json_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.cli.rules_desk import (
    Where,
    as_is,
    book_options,
    is_file,
    labelled,
    next_command,
    opened_book,
    opened_rule,
    place_text,
    said,
    show_checks,
    show_findings,
    store_options,
    timeout_option,
    whose_book,
)
from muniment.surfaces.cli.run import many
from muniment.surfaces.cli.tables import Cell, bar, show_table

if TYPE_CHECKING:
    from muniment.contracts.rules import RegressionTestSpec
    from muniment.learning.stored_memory import StoredMemory
    from muniment.rules.promotion.records import GateReport, ReplayReport
    from muniment.rules.rule_drafting import Submitted
    from muniment.rules.rulebook_reading import RuleTest

__all__ = ["add", "gate", "replay", "submit", "tests"]

_CLAIMS = {"better": "green", "not_harmful": "green", "harmful": "red", "undecided": "yellow"}
_FATES = {"new": "a rule of its own", "merged": "merged into what says the same", "split": "an exception to another"}


# -- submit and add -----------------------------------------------------------------------------------


@click.command()
@click.argument("draft", metavar="DRAFT|FILE")
@book_options
@json_option
@handles_errors
def submit(draft: str, where: Where, as_json: bool) -> None:
    """Make DRAFT, or the DistillDraft in FILE (`-` is stdin), a temporary rule; nobody obeys it yet.

    It is merged with what says the same, or made an exception of what it contradicts. `muniment bank drafts` has ids.
    """
    given = read_one(draft, "$.draft", "one DistillDraft") if is_file(draft) else draft
    record_id = None if is_file(draft) else draft
    with opened_book(where, record_id, must_exist=record_id is not None) as book:
        made, named = book.submit(given), whose_book(book)
    if as_json:
        emit_json(_submitted(made))
        return
    click.echo(f"{click.style(made.id, bold=True)}  {_FATES.get(made.kind, made.kind)}")
    said(str(made.rule.record.get("body")))
    labelled("in", named)
    labelled("applies", place_text(made.rule.record))
    labelled("because", "; ".join(made.reasons))
    for each in made.narrowed:
        labelled("narrows", f"{each}, once this one is promoted")
    if made.lint:
        show_findings(made.lint)
    _show_next(where, made.rule)


def _submitted(made: Submitted) -> dict[str, Any]:
    return {
        "kind": made.kind,
        "rule": made.rule.to_wire(),
        "reasons": list(made.reasons),
        "lint": [each.to_wire() for each in made.lint],
        "narrowed": list(made.narrowed),
    }


def _show_next(where: Where, memory: StoredMemory) -> None:
    following = next_command(where, memory)
    if following is not None:
        as_is("next", following)


@click.command()
@click.argument("body", metavar="BODY")
@click.option("--title", metavar="TEXT", help="What to call it.")
@click.option(
    "--type",
    "type_",
    type=click.Choice(get_args(RuleType)),
    default="StrategyRule",
    show_default=True,
    help="What to do, or what must not happen.",
)
@click.option("--domain", metavar="NAME", help="Only in this domain.")
@click.option("--family", metavar="NAME", help="Only for this family of tasks.")
@click.option("--bucket", "buckets", multiple=True, metavar="KEY", help="Only in this bucket; repeatable.")
@click.option("--if", "predicates", multiple=True, metavar="PREDICATE", help="Only if this holds; repeatable.")
@click.option("--ttl", metavar="TTL", help="How long, such as hours:6 or days:14 (default: the policy's, 30 days).")
@book_options
@json_option
@handles_errors
def add(
    body: str,
    title: str | None,
    type_: RuleType,
    domain: str | None,
    family: str | None,
    buckets: tuple[str, ...],
    predicates: tuple[str, ...],
    ttl: str | None,
    where: Where,
    as_json: bool,
) -> None:
    """Write a rule of your own: BODY (`-` is stdin) goes into prompts where it applies, from now until its time is up.

    It stands in a layer of its own, below every learned rule; it is never promoted, and never a guard of the system.
    """
    named = {
        "domain_tag": domain,
        "task_family": family,
        "bucket_keys": list(buckets) or None,
        "predicates": list(predicates) or None,
    }
    place = {name: value for name, value in named.items() if value is not None}
    with opened_book(where, must_exist=False) as book:
        made = book.add(text_given(body).strip(), title=title, type=type_, applicability=place or None, ttl=ttl)
        whose = whose_book(book)
    if as_json:
        emit_json(made.to_wire())
        return
    click.echo(f"{click.style(made.id, bold=True)}  in force until {when(made.expires_at)}")
    labelled("in", whose)
    labelled("applies", place_text(made.record))
    as_is("to end it", where.spelled("retire", made.id, "--reason", "WHY"))


# -- tests --------------------------------------------------------------------------------------------


@click.command()
@click.argument("rule_id", metavar="RULE")
@click.option("--make", is_flag=True, help="Make tests from the runs it was learnt from, and from others.")
@click.option(
    "--constraints", metavar="FILE", help="With tests of these constraints (YAML); makes tests as --make does."
)
@click.option("--add", "added", metavar="FILE", help="Add the RegressionTestSpecs in FILE: a list, or JSON lines.")
@book_options
@json_option
@handles_errors
def tests(rule_id: str, make: bool, constraints: str | None, added: str | None, where: Where, as_json: bool) -> None:
    """List the tests of RULE; make them, or add some, before its gate.

    Tests are made of runs that failed and must pass now, of others that failed alike, and of runs it is not for. One
    that passes whatever the output is says nothing, and is not made.
    """
    if (constraints, added).count("-") > 1:
        raise InvalidInput("stdin can be read once", path="$.add", hint="give one of them as a file")
    asked = None if constraints is None else read_constraint_file(constraints, as_json=as_json)
    specs = None if added is None else _read_specs(added)
    notes: tuple[str, ...] = ()
    with opened_rule(where, rule_id) as book:
        if make or asked is not None:
            notes = book.make_tests(rule_id, constraints=asked).notes
        if specs is not None:
            book.add_tests(rule_id, specs)
        held, memory = book.tests(rule_id), book.get(rule_id)
    if as_json:
        plain = [{"spec": each.spec.to_wire(), "is_micro": each.is_micro} for each in held]
        emit_json({"tests": plain, "notes": list(notes)})
        return
    if held:
        show_table(("test", "kind", "asks"), [_test_row(each) for each in held])
    else:
        click.echo(f"no tests; to make them from its runs: {where.spelled('tests', rule_id, '--make')}")
    for note in notes:
        labelled("not made", note)
    if held:
        _show_next(where, memory)


def _read_specs(name: str) -> list[Any]:
    documents = read_all(name)
    first = documents[0] if len(documents) == 1 else documents
    return first if isinstance(first, list) else documents


def _test_row(test: RuleTest) -> list[Cell]:
    spec = test.spec
    kind = "micro" if test.is_micro else spec.kind or spec.test_type
    return [spec.test_id, kind, f"{_asks(spec)}{f' of: {spec.prompt}' if spec.prompt else ''}"]


def _asks(spec: RegressionTestSpec) -> str:
    if spec.assertion is None:
        return "–"
    args = spec.assertion.args or {}
    told = next((args[name] for name in ("pattern", "tool", "name", "text", "max", "value") if name in args), None)
    return f"{spec.assertion.type}{'' if told is None else f' {one_line(str(told), 24)}'}"


# -- the gate -----------------------------------------------------------------------------------------


@click.command()
@click.argument("rule_id", metavar="RULE")
@click.option("--agent", metavar="MODULE:FUNCTION", help=AGENT_HELP)
@click.option(
    "--outputs", metavar="FILE", help="Judge these instead: a JSON object of outputs, or of texts, by test id."
)
@click.option("--beside", metavar="RULE", help="Test an active rule as it would be with this exception beside it.")
@timeout_option
@store_options
@json_option
@handles_errors
def gate(
    rule_id: str,
    agent: str | None,
    outputs: str | None,
    beside: str | None,
    timeout_s: float | None,
    where: Where,
    as_json: bool,
) -> None:
    """Run the tests of RULE on an agent, with the rule in its prompt. Exit code 1 where it does not pass.

    What is asked for: a regression, a counterexample of the same failure and one from beyond its place, five
    micro-regressions, two failures foreseen; every test passes, and none would pass whatever the output is.
    """
    if (agent is None) == (outputs is None):
        raise InvalidInput("a gate takes an agent or outputs", path="$.agent", hint="give --agent or --outputs")
    tried: Any = load_function(agent, "agent") if agent is not None else _read_outputs(str(outputs))
    with opened_rule(where, rule_id) as book:
        report = book.gate(rule_id, tried, beside=beside, timeout_s=timeout_s)
        memory = book.get(rule_id)
    if as_json:
        emit_json(report.to_wire())
    else:
        _show_gate(report)
        if report.passed and beside is None:
            _show_next(where, memory)
    if not report.passed:
        sys.exit(EXIT_FAILED)


def _read_outputs(name: str) -> dict[str, Any]:
    from muniment.verify.outputs import Output

    data = read_one(name, "$.outputs", "a JSON object: an output, or a text, by test id")
    if not isinstance(data, dict):
        raise InvalidInput("outputs are a JSON object", path="$.outputs", hint="an output, or a text, by test id")
    return {test_id: given if isinstance(given, str) else Output.from_wire(given) for test_id, given in data.items()}


def _show_gate(report: GateReport) -> None:
    fate = click.style("passed", fg="green") if report.passed else click.style("not passed", fg="red")
    good = sum(each.ok for each in report.outcomes)
    click.echo(f"{click.style(report.rule_id, bold=True)}  {fate}, {good} of {many(len(report.outcomes), 'test')}")
    show_checks(report)
    failing: list[list[Cell]] = [
        [(each.status, "red"), each.test_id, "passes whatever the output is" if each.vacuous else each.message]
        for each in report.outcomes
        if not each.ok or each.vacuous
    ]
    if failing:
        click.echo()
        show_table(("", "test", "why"), failing)
    if report.lint:
        click.echo()
        show_findings(report.lint)
    labelled("report", report.report_id)


# -- replay -------------------------------------------------------------------------------------------


@click.command()
@click.argument("rule_id", metavar="RULE")
@click.option("--agent", required=True, metavar="MODULE:FUNCTION", help=AGENT_HELP)
@click.option("--verifier", required=True, metavar="MODULE:FUNCTION", help=VERIFIER_HELP)
@click.option("--tasks", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="At most so many.")
@timeout_option
@store_options
@json_option
@handles_errors
def replay(
    rule_id: str,
    agent: str,
    verifier: str,
    tasks: int,
    timeout_s: float | None,
    where: Where,
    as_json: bool,
) -> None:
    """Try earlier tasks that RULE applies to, newest first, each with it and without. Exit code 1 where it fails."""
    asked, judge = load_function(agent, "agent"), load_function(verifier, "verifier")
    with opened_rule(where, rule_id) as book:
        report = book.replay(rule_id, asked, judge, tasks=tasks, timeout_s=timeout_s)
        memory = book.get(rule_id)
    if as_json:
        emit_json(report.to_wire())
    else:
        _show_replay(report)
        if report.passed:
            _show_next(where, memory)
    if not report.passed:
        sys.exit(EXIT_FAILED)


def _show_replay(report: ReplayReport) -> None:
    claim = click.style(report.decision, fg=_CLAIMS[report.decision])
    click.echo(f"{click.style(report.rule_id, bold=True)}  {claim}, over {many(report.pairs, 'task')}")
    for label, passes in (("with it", report.with_passes), ("without", report.without_passes)):
        rate = passes / report.pairs if report.pairs else 0.0
        as_is(label, f"{passes} of {report.pairs}  {bar(rate)} {rate:.0%}")
    if not report.passed:
        labelled("not passed", "it was shown to do harm, or too little was tried")
    labelled("because", report.notes)
    labelled("report", report.report_id)
