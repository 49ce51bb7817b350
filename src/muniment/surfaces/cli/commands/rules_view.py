"""`rules list | show | stats | revisions`: the rules, where they stand, and what their runs say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from muniment.surfaces.cli.calling import Call, Command, wire
from muniment.surfaces.cli.commands.banks import says
from muniment.surfaces.cli.commands.rules_lines import (
    CLAIMS,
    RULE,
    arms_of,
    next_command,
    place_text,
    rate_line,
    rate_text,
    signed_text,
    span_of,
    stage_cell,
    stage_of,
    stage_text,
    tally_with,
    whose_book,
)
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.terminal import Cell, as_is, counted, labelled, said, sparkline, strong, table, when

if TYPE_CHECKING:
    from muniment.handles.rulebook import Rulebook
    from muniment.learning.records import StoredMemory
    from muniment.rules._records import RulebookRevision
    from muniment.rules._statistics import RuleStats
    from muniment.rules.rulebook import Report, RuleTest

__all__ = ["list_", "revisions", "show", "stats"]

_ACTING = ("canary", "active")
_TYPES = {"GuardrailRule": "guardrail", "StrategyRule": "strategy"}
_ELSEWHERE = "--user and --agent name another"


# -- list ---------------------------------------------------------------------------------------------


def _show_rules(call: Call) -> Iterator[str]:
    book, found = call.handle, call.answer
    if found:
        yield f"{counted(len(found), 'rule')} in {whose_book(book)}, revision {book.revision}"
        rows = [_rule_row(book, each) for each in found]
        yield from table(("rule", "stage", "type", "with", "without", "says"), rows)
    else:
        stage = call.typed.get("stage")
        kind = f"{stage} rules" if stage else "rules"
        yield from said(f"no {kind} in {whose_book(book)}; {_ELSEWHERE}, --all has those that were retired")


def _rule_row(book: Rulebook, memory: StoredMemory) -> list[Cell]:
    acts = memory.stage in _ACTING or memory.layer == "user"  # nothing is counted of the others
    tallies = arms_of(book.stats(memory.id)) if acts else {}
    until = f" (until {memory.expires_at[:10]})" if memory.expires_at else ""
    return [
        memory.id,
        stage_cell(memory),
        _TYPES.get(str(memory.record.get("type")), "–"),
        rate_text(tally_with(tallies, had_it=True)),
        rate_text(tally_with(tallies, had_it=False)),
        f"{_body(memory)}{until}",
    ]


def _body(memory: StoredMemory) -> str:
    """What a rule says, and not what it is called."""
    return says(memory) if memory.status == "pruned" else str(memory.record.get("body") or says(memory))


list_ = Command(
    "rulebook.rules",
    _show_rules,
    calls=("rulebook.revision", "rulebook.stats"),
    document=lambda call: {"revision": call.handle.revision, "rules": wire(call.answer)},
    words={"stage": Word("Only those that stand there."), "include_all": Word("Also those that were retired.")},
    about="Oldest first: where each stands, and how often runs with it and without passed.",
)


# -- show ---------------------------------------------------------------------------------------------


class _RuleView(NamedTuple):
    """A rule and what is known of it, as `rules show` prints it."""

    rule: StoredMemory
    stats: RuleStats
    tests: list[RuleTest]
    reports: list[dict[str, Any]]
    history: list[StoredMemory]


def _show(call: Call, ask: Callable[[], StoredMemory]) -> _RuleView:
    book, rule_id = call.handle, call.typed["rule_id"]
    reports = [{"kind": _kind(each), "report": each} for each in book.reports(rule_id)]
    return _RuleView(ask(), book.stats(rule_id), book.tests(rule_id), reports, book.history(rule_id))


def _show_rule(call: Call) -> Iterator[str]:
    memory, stats, tests, reports, versions = call.answer
    yield f"{strong(memory.id)}  {memory.record.get('type')}, {stage_text(stage_of(memory))}"
    yield from said(_body(memory))
    yield from labelled("in", whose_book(call.handle))
    yield from _place_lines(memory, tests)
    yield from _rate_lines(stats)
    if stats.buckets:
        yield ""
        yield from _bucket_lines(stats)
    if reports:
        yield ""
        yield from table(("report", "when", "by", "found"), [_report_row(each["report"]) for each in reports])
    yield ""
    yield from table(("version", "when", "stage", "because"), [_version_row(each) for each in versions])
    following = next_command(call, memory)
    if following is not None:
        yield ""
        yield as_is("next", following)


def _place_lines(memory: StoredMemory, tests: Sequence[RuleTest]) -> Iterator[str]:
    record: dict[str, Any] = dict(memory.record)
    lines = {"title": record.get("title"), "applies": place_text(record), "tests": _test_text(tests)}
    if memory.canary is not None:
        buckets = f" in {', '.join(memory.canary.bucket_keys)}" if memory.canary.bucket_keys else ""
        since = when(memory.canary.started_at)
        lines["trial"] = f"a share of {memory.canary.share:g} of the runs{buckets}, since {since}"
    if memory.expires_at:
        lines["until"] = when(memory.expires_at)
    if record.get("exception_to"):
        lines["exception"] = f"to {', '.join(map(str, record['exception_to']))}"
    if memory.sources:
        lines["learnt from"] = ", ".join(memory.sources)
    for label, text in lines.items():
        if text:
            yield from labelled(label, str(text))


def _test_text(tests: Sequence[RuleTest]) -> str:
    micro = sum(each.is_micro for each in tests)
    counter = sum(each.spec.test_type == "counterexample" for each in tests)
    if not tests:
        return "none"
    rest = counted(len(tests) - micro - counter, "regression")
    return f"{len(tests)}: {rest}, {counted(counter, 'counterexample')}, {micro} micro"


def _rate_lines(stats: RuleStats) -> Iterator[str]:
    tallies = arms_of(stats)
    yield as_is("with it", rate_line(tally_with(tallies, had_it=True), stats.thin_n))
    yield as_is("without", rate_line(tally_with(tallies, had_it=False), stats.thin_n))
    difference = stats.delta()
    if difference.p_hat is not None and difference.p_lb95 is not None:
        yield from labelled(
            "difference", f"{100 * difference.p_hat:+.0f} points, at least {100 * difference.p_lb95:+.0f}"
        )
    if stats.utility is not None:
        yield from labelled("utility", f"{stats.utility:.2f}, passes less their share of cost, lately")


def _kind(report: Report) -> str:
    return type(report).__name__.removesuffix("Report").lower()


def _report_row(report: Report) -> list[Cell]:
    from muniment.rules._records import GateReport, ReplayReport

    moment = when(report.created_at)
    if isinstance(report, GateReport):
        failing = [check.name for check in report.checks if not check.ok]
        against = f"; fails: {', '.join(failing)}" if failing else ""
        ok = sum(each.ok for each in report.outcomes)
        found = f"{ok} of {counted(len(report.outcomes), 'test')} passed{against}"
        return [("gate", "green" if report.passed else "red"), moment, "–", found]
    if isinstance(report, ReplayReport):
        passes = f"{report.with_passes} of {report.pairs} passed with it, {report.without_passes} without"
        return [("replay", "green" if report.passed else "red"), moment, "–", f"{passes}: {report.decision}"]
    colour = "green" if report.action == "promote" else "red"
    return [(report.action, colour), moment, signed_text(report.signed_by, report.allowed_by), report.reasons[0]]


def _version_row(memory: StoredMemory) -> list[Cell]:
    return [str(memory.version), when(_moment(memory)), stage_cell(memory), ", ".join(memory.reason_keys) or "–"]


def _moment(memory: StoredMemory) -> str:
    """When a version of a rule was written."""
    lifecycle: Any = memory.record.get("lifecycle") or {}
    return str(lifecycle.get("updated_at") or memory.created_at)


show = Command(
    "rulebook.get",
    _show_rule,
    around=_show,
    arguments=RULE,
    calls=("rulebook.stats", "rulebook.tests", "rulebook.reports", "rulebook.history"),
)


# -- figures ------------------------------------------------------------------------------------------


class _Counted(NamedTuple):
    stats: list[RuleStats]
    cut: list[RuleStats]


def _stats(
    book: Rulebook,
    rule_id: Annotated[str | None, Word(metavar="[RULE]")] = None,
    *,
    since: Annotated[str | None, Word("Runs learnt from then on (ISO 8601).")] = None,
    until: Annotated[str | None, Word("Runs learnt before then (ISO 8601).")] = None,
    slices: Annotated[
        int | None, Word("Of one RULE: cut its time in so many.", metavar="N", type=click.IntRange(2, 60))
    ] = None,
) -> _Counted:
    ids = [rule_id] if rule_id is not None else [each.id for each in book.rules() if each.stage in _ACTING]
    stats = [book.stats(each, start=since, end=until) for each in ids]
    cut = [] if slices is None or rule_id is None else _sliced(book, rule_id, slices, since, until)
    return _Counted(stats, cut)


def _sliced(book: Rulebook, rule_id: str, slices: int, since: str | None, until: str | None) -> list[RuleStats]:
    """The time of a rule, or of the window, in equal parts."""
    from muniment.core.instants import format_instant, parse_instant

    memory, stats = book.get(rule_id), book.stats(rule_id, start=since, end=until)
    if stats.last_used_at is None:
        return []
    acting = (_moment(each) for each in book.history(memory.id) if each.stage in _ACTING)
    first = parse_instant(since or next(acting, memory.created_at), path="$.since")
    past = parse_instant(until or stats.last_used_at, path="$.until")
    step = max((past - first) / slices, timedelta(microseconds=1)) + timedelta(microseconds=1)
    edges = [format_instant(first + number * step) for number in range(slices + 1)]
    return [book.stats(rule_id, start=start, end=end) for start, end in pairwise(edges)]


def _stats_document(call: Call) -> dict[str, Any]:
    stats, cut = call.answer
    if "rule_id" not in call.typed:
        return {"stats": wire(stats)}
    return {**stats[0].to_wire(), **({"slices": wire(cut)} if cut else {})}


def _show_stats(call: Call) -> Iterator[str]:
    stats, cut = call.answer
    if "rule_id" in call.typed:
        yield from _stats_lines(stats[0], cut)
    elif stats:
        yield from table(
            ("with", "without", "", "95 % bounds", "difference", "rule"), [_stats_row(each) for each in stats]
        )
    else:
        yield from said(f"no rule of {whose_book(call.handle)} is active or on trial; {_ELSEWHERE}")


def _stats_row(stats: RuleStats) -> list[Cell]:
    tallies = arms_of(stats)
    mine = tally_with(tallies, had_it=True)
    return [
        rate_text(mine),
        rate_text(tally_with(tallies, had_it=False)),
        *span_of(mine, stats.thin_n),
        _difference(stats, None),
        stats.rule_id,
    ]


def _difference(stats: RuleStats, bucket_key: str | None) -> Cell:
    found = stats.delta(bucket_key)
    if found.p_hat is None or found.p_lb95 is None:
        return ("unknown", "bright_black")
    return f"{100 * found.p_hat:+.0f} (≥ {100 * found.p_lb95:+.0f})"


def _stats_lines(stats: RuleStats, cut: Sequence[RuleStats]) -> Iterator[str]:
    yield f"{strong(stats.rule_id)}, version {stats.version} of what it says"
    yield from _rate_lines(stats)
    if cut:
        lines = [
            sparkline([tally_with(arms_of(each), had_it=had_it).p_hat for each in cut]) for had_it in (True, False)
        ]
        yield as_is("over time", f"with it │{lines[0]}│  without │{lines[1]}│")
    yield ""
    compared = (("trial", stats.trial), ("hold", stats.hold))
    rows: list[list[Cell]] = [
        [
            name,
            (one.decision, CLAIMS[one.decision]),
            rate_text(one.candidate),
            rate_text(one.baseline),
            "–" if one.effect is None else f"{100 * one.effect:+.1f} points",
        ]
        for name, one in compared
    ]
    yield from table(("comparison", "shows", "with", "without", "effect"), rows)
    if stats.buckets:
        yield ""
        yield from _bucket_lines(stats)
    if stats.clusters:
        yield ""
        clusters = [[str(each.with_n), str(each.without_n), each.cluster_id] for each in stats.clusters]
        yield from table(("with", "without", "failure cluster"), clusters)


def _bucket_lines(stats: RuleStats) -> Iterator[str]:
    rows: list[list[Cell]] = []
    for key in sorted(stats.buckets):
        mine = tally_with(stats.buckets[key], had_it=True)
        other = tally_with(stats.buckets[key], had_it=False)
        rows.append([rate_text(mine), rate_text(other), *span_of(mine, stats.thin_n), _difference(stats, key), key])
    return table(("with", "without", "", "95 % bounds", "difference", "bucket"), rows)


stats = Command(
    "rulebook.stats",
    _show_stats,
    function=_stats,
    calls=("rulebook.rules", "rulebook.history"),
    document=_stats_document,
    about="Of RULE, or of every rule that acts: passed with it and without, the difference, bounds. Bounds are "
    "Wilson's at 95 %. What decides on a trial is a bound that may be looked at after every run: `watch`.",
)


# -- revisions ----------------------------------------------------------------------------------------


def _show_revisions(call: Call) -> Iterator[str]:
    if call.answer:
        yield from table(
            ("", "when", "action", "by", "rules", "because"), [_revision_row(each) for each in call.answer]
        )
    else:
        yield from said(f"nothing was ever changed in {whose_book(call.handle)}; {_ELSEWHERE}")


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


revisions = Command(
    "rulebook.revisions",
    _show_revisions,
    document="revisions",
    about="Oldest first. `muniment rules rollback --to` puts any of them in force again.",
)
