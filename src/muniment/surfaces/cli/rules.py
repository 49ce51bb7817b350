"""`rules …`: rules from a draft to a signature, active, and retired again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

from muniment.core.scope import RuleType
from muniment.errors import InvalidInput, NotFound
from muniment.handles.rulebook import Rulebook
from muniment.surfaces.cli import _reading as reading
from muniment.surfaces.cli._command import Call, Command, OptionSpec, wire
from muniment.surfaces.cli._views import COLOURS, show_plain
from muniment.surfaces.cli.terminal import as_is, coloured, counted, labelled, one_line, strong, wrapped

if TYPE_CHECKING:
    from muniment.learning.records import StoredMemory
    from muniment.rules._gate import CanaryVerdict
    from muniment.rules._records import (
        AdvancedRule,
        AdvanceReport,
        GateReport,
        PromotionReport,
        ReplayReport,
        RulebookRevision,
    )
    from muniment.rules._statistics import RuleStats
    from muniment.rules.rulebook import Submitted

__all__ = ["add", "advance", "list_", "promote", "report", "retire", "rollback", "show", "submit", "watch"]

_RULE = {"rule_id": "RULE"}
_DRY = {"dry_run": OptionSpec("Only print what would be done.", flag=True)}
_WITH = ("canary", "active")


# -- words for rules ----------------------------------------------------------------------------------


def _book_name(book: Rulebook) -> str:
    """The rulebook as `the rulebook of user ana` or `the tenant's rulebook`."""
    kind, _, name = book.name.partition(":")
    return f"the rulebook of {kind} {one_line(name, 60)}" if name else "the tenant's rulebook"


def _stage(memory: StoredMemory) -> str:
    if memory.status in ("retired", "pruned"):
        return memory.status
    return "user" if memory.layer == "user" else memory.stage or "drafted"


def _head(memory: StoredMemory) -> str:
    return f"{strong(memory.id)}  {memory.record.get('type')}, {coloured(_stage(memory), dict(COLOURS))}"


def _scope_text(record: Mapping[str, Any]) -> str:
    """The scope of a rule, on one line."""
    where = dict(record.get("applicability") or {})
    parts = [
        f"{name} {where[key]}" for name, key in (("domain", "domain_tag"), ("family", "task_family")) if where.get(key)
    ]
    same = {f'{key} == "{where[key]}"' for key in ("domain_tag", "task_family") if where.get(key)}
    parts += [str(each) for each in where.get("predicates") or () if each not in same]
    if where.get("bucket_keys"):
        parts.append(f"buckets {', '.join(where['bucket_keys'])}")
    return "; ".join(parts) or "everywhere"


def _undo_line(call: Call, to: int) -> str:
    """The command that restores an earlier revision. It names the rulebook even if this command did not."""
    kind, _, name = call.handle.name.partition(":")
    named = (f"--{kind}", name) if name else ()
    return as_is("to undo", call.spell_command("rules", "rollback", "--to", str(to), *named, "--signed-by", "NAME"))


def _arms(stats: RuleStats) -> dict[str, dict[str, int]]:
    """Passes and runs with the rule and without."""
    found = {"with": {"passes": 0, "n": 0}, "without": {"passes": 0, "n": 0}}
    for arm, counts in stats.arms.items():
        side = found["with" if arm in _WITH else "without"]
        side["passes"] += counts.runs.passes
        side["n"] += counts.runs.n
    return found


def _rate(arm: Mapping[str, int]) -> str:
    return f"{arm['passes']} of {arm['n']}" if arm["n"] else ""


# -- list and show ------------------------------------------------------------------------------------


class _Listed(NamedTuple):
    revision: int
    rules: list[StoredMemory]
    drafts: list[Any]


def _list(call: Call, ask: Callable[[], list[StoredMemory]]) -> _Listed:
    book: Rulebook = call.handle
    named = {name: call.typed[name] for name in ("user_id", "agent_id") if name in call.typed}
    drafts = [] if "stage" in call.typed else list(call.memory.bank(**named, tenant_id=call.tenant).drafts())
    return _Listed(book.revision, ask(), drafts)


def _show_list(call: Call) -> Iterator[str]:
    found: _Listed = call.answer
    book: Rulebook = call.handle
    yield f"{counted(len(found.rules), 'rule')} in {_book_name(book)}, revision {found.revision}"
    rows = []
    for memory in found.rules:
        acts = memory.stage in _WITH or memory.layer == "user"
        arms = _arms(book.stats(memory.id)) if acts else {"with": {"n": 0}, "without": {"n": 0}}
        body = memory.record.get("body") or "pruned: its text is gone"
        rows.append(
            {
                "rule": memory.id,
                "stage": _stage(memory),
                "type": str(memory.record.get("type") or "").removesuffix("Rule").lower(),
                "passed with": _rate(arms["with"]),
                "without": _rate(arms["without"]),
                "until": memory.expires_at,
                "text": body,
            }
        )
    for draft in found.drafts:
        rule = draft.proposed_rule
        rows.append(
            {
                "rule": draft.draft_id,
                "stage": "draft",
                "type": str(rule.type or "").removesuffix("Rule").lower(),
                "text": rule.body or rule.title,
            }
        )
    if rows:
        yield from show_plain(rows)
    else:
        yield "--user and --agent name another, --all lists retired rules"


list_ = Command(
    "rulebook.rules",
    _show_list,
    around=_list,
    options={
        "stage": OptionSpec("Only this stage; without drafts."),
        "include_all": OptionSpec("Also retired rules."),
    },
    about="Rules oldest first, with their stage and how often runs with each and without it passed; then the drafts.",
)


class _RuleView(NamedTuple):
    rule: StoredMemory
    stats: RuleStats
    tests: list[Any]
    reports: list[dict[str, Any]]
    history: list[StoredMemory]


def _read_rule(call: Call, ask: Callable[[], StoredMemory]) -> _RuleView:
    book, rule_id = call.handle, call.typed["rule_id"]
    reports = [
        {"kind": type(each).__name__.removesuffix("Report").lower(), "report": each} for each in book.reports(rule_id)
    ]
    return _RuleView(ask(), book.stats(rule_id), book.tests(rule_id), reports, book.history(rule_id))


def _show_rule(call: Call) -> Iterator[str]:
    memory, stats, tests, reports, versions = call.answer
    arms, difference = _arms(stats), stats.delta()
    yield _head(memory)
    yield from wrapped(str(memory.record.get("body") or "pruned: its text is gone"))
    points = None
    if difference.p_hat is not None and difference.p_lb95 is not None:
        points = f"{100 * difference.p_hat:+.0f} points, at least {100 * difference.p_lb95:+.0f}"
    canary = memory.canary
    fields = {
        "in": _book_name(call.handle),
        "title": memory.record.get("title"),
        "applies": _scope_text(memory.record),
        "tests": len(tests) or "none",
        "trial": canary and f"a share of {canary.share:g} of the runs since {canary.started_at}",
        "until": memory.expires_at,
        "exception_to": memory.record.get("exception_to"),
        "learnt from": list(memory.sources),
        "with it": _rate(arms["with"]),
        "without": _rate(arms["without"]),
        "difference": points,
        "utility": stats.utility,
    }
    yield from show_plain(fields)
    if stats.buckets:
        yield ""
        yield from show_plain([{"bucket": key, **_bucket(stats, key)} for key in sorted(stats.buckets)])
    if reports:
        yield ""
        yield from show_plain(wire(reports), "kind report.created_at report.passed report.signed_by report.reasons")
    yield ""
    rows = [
        {
            "version": each.version,
            "at": (each.record.get("lifecycle") or {}).get("updated_at") or each.created_at,
            "stage": _stage(each),
            "because": list(each.reason_keys),
        }
        for each in versions
    ]
    yield from show_plain(rows)


def _bucket(stats: RuleStats, key: str) -> dict[str, str]:
    sides = {"with": {"passes": 0, "n": 0}, "without": {"passes": 0, "n": 0}}
    for arm, tally in stats.buckets[key].items():
        side = sides["with" if arm in _WITH else "without"]
        side["passes"] += tally.passes
        side["n"] += tally.n
    return {name: _rate(side) for name, side in sides.items()}


show = Command("rulebook.get", _show_rule, around=_read_rule, arguments=_RULE)


# -- into the rulebook --------------------------------------------------------------------------------


def _draft_given(given: str) -> Any:
    """Read a draft from a file, or return the given id of one."""
    return reading.object_given("$.draft", "one DistillDraft")(given) if reading.is_file(given) else given


def _show_submitted(call: Call) -> Iterator[str]:
    made: Submitted = call.answer
    yield _head(made.rule)
    yield from wrapped(str(made.rule.record.get("body")))
    fields = {
        "in": _book_name(call.handle),
        "as": made.kind,
        "applies": _scope_text(made.rule.record),
        "because": list(made.reasons),
        "narrows": list(made.narrowed),
    }
    yield from show_plain(fields)
    if made.lint:
        yield from show_plain(wire(made.lint), "severity code path message")


submit = Command(
    "rulebook.submit",
    _show_submitted,
    on="rulebook",
    arguments={"draft": "DRAFT|FILE"},
    creates=lambda call: not isinstance(call.typed["draft"], str),
    options={"draft": OptionSpec(read=_draft_given)},
    about="A draft by its id, or the DistillDraft in FILE (`-` is stdin); nobody obeys the rule yet. It is merged with "
    "a rule of the same meaning, or made an exception to what it contradicts. `muniment rules list` lists drafts.",
)


def _add(
    book: Rulebook,
    body: Annotated[str, OptionSpec(read=reading.text_given)],
    *,
    title: Annotated[str | None, OptionSpec("What to call it.", metavar="TEXT")] = None,
    type_: Annotated[RuleType, OptionSpec("What to do, or what must not happen.", "type")] = "StrategyRule",
    domain: Annotated[str | None, OptionSpec("Only in this domain.", metavar="NAME")] = None,
    family: Annotated[str | None, OptionSpec("Only for this family of tasks.", metavar="NAME")] = None,
    buckets: Annotated[tuple[str, ...], OptionSpec("Only in this bucket; repeatable.", "bucket", metavar="KEY")] = (),
    predicates: Annotated[
        tuple[str, ...], OptionSpec("Only if this holds; repeatable.", "if", metavar="PREDICATE")
    ] = (),
    ttl: Annotated[
        str | None, OptionSpec("How long, such as hours:6 or days:14 (default: the policy's, 30 days).", metavar="TTL")
    ] = None,
) -> StoredMemory:
    named = {
        "domain_tag": domain,
        "task_family": family,
        "bucket_keys": list(buckets) or None,
        "predicates": list(predicates) or None,
    }
    scope = {name: value for name, value in named.items() if value is not None}
    return book.add(body.strip(), title=title, type=type_, applicability=scope or None, ttl=ttl)


def _show_added(call: Call) -> Iterator[str]:
    made: StoredMemory = call.answer
    yield _head(made)
    yield from show_plain(
        {"until": made.expires_at, "in": _book_name(call.handle), "applies": _scope_text(made.record)}
    )
    yield as_is("to end it", call.spell_command("rules", "retire", made.id, "--reason", "WHY"))


add = Command(
    "rulebook.add",
    _show_added,
    function=_add,
    creates=True,
    about="BODY (`-` is stdin) goes into prompts where it applies, from now until its time is up. It belongs to a "
    "layer of its own, below every learned rule; it is never promoted, and never a guard of the system.",
)


def _show_advanced(call: Call) -> Iterator[str]:
    report: AdvanceReport = call.answer
    if not report.rules:
        yield f"no draft and no rule in {_book_name(call.handle)}; --user and --agent-id name another"
    for one in report.rules:
        yield from _advanced_lines(call, one)
    rest = "; the rest is left for the next time" if report.is_spent else ""
    yield f"{counted(report.calls, 'call')} of the agent, of at most {report.calls_max}{rest}"


def _advanced_lines(call: Call, one: AdvancedRule) -> Iterator[str]:
    stages = [coloured(stage, dict(COLOURS)) for stage in dict.fromkeys((one.before, one.after))]
    yield f"{strong(one.rule_id or one.draft_id or '')}  {' → '.join(stages)}"
    yield from labelled("title", one.title)
    for label, texts in (("done", one.done), ("missing", one.missing)):
        for number, each in enumerate(texts):
            yield from labelled(label if number == 0 else "", each)
    if one.ready is not None and one.rule_id is not None:
        yield as_is("ready: sign", call.spell_command("rules", "promote", one.rule_id, "--signed-by", "NAME"))
    yield ""


advance = Command(
    view=_show_advanced,
    function=Rulebook.advance,
    on="rulebook advanced",
    arguments={},
    left_out=("executor",),
    options={
        "max_calls": OptionSpec(
            "At most this many calls of the agent (default: the policy's, 400).", metavar="N", type=click.IntRange(1)
        ),
        "tasks": OptionSpec(
            "Replay on at most this many earlier tasks (default: the policy's, 40).",
            metavar="N",
            type=click.IntRange(1),
        ),
        "share": OptionSpec("The share of runs that a trial takes (default: the policy's, 0.05).", metavar="SHARE"),
    },
    about="Drafts are submitted; rules are tested on earlier tasks that they were not learnt from, which the verifier "
    "judges; replayed, put on trial, watched, and promoted where the policy allows that without a signature. It may be "
    "run on a schedule: nothing is done twice.",
)


# -- trials -------------------------------------------------------------------------------------------


def _watch(call: Call, ask: Callable[..., dict[str, CanaryVerdict]]) -> list[dict[str, Any]]:
    book: Rulebook = call.handle
    before = {each.id: _stage(each) for each in book.rules()}
    verdicts = ask(act="dry_run" not in call.typed)
    return [
        {"rule_id": rule_id, "before": before[rule_id], "after": _stage(book.get(rule_id)), **wire(verdict)}
        for rule_id, verdict in verdicts.items()
    ]


watch = Command(
    "rulebook.watch",
    around=_watch,
    columns="rule_id before after decision runs effect reasons",
    noun="rules",
    left_out=("act",),
    options=_DRY,
    about="And the holdouts of active rules. A trial goes on until its bound decides. One that has ended makes the "
    "rule a draft again. Nothing is promoted without a signature, unless the policy allows it.",
)


class _Reading(NamedTuple):
    """The material that a person reads before signing."""

    rule: StoredMemory
    gate: GateReport | None
    replay: ReplayReport | None
    trial: CanaryVerdict | None
    missing: tuple[str, ...]
    narrows: tuple[str, ...]


def _report(call: Call, rule_id: str) -> _Reading:
    from muniment.contracts.rules import RuleRecord
    from muniment.rules._consolidate import consolidate
    from muniment.rules._gate import faults_of, replay_faults, rule_digest
    from muniment.rules._records import GateReport, ReplayReport
    from muniment.surfaces.cli._command import OPENINGS

    book: Rulebook = OPENINGS["rulebook"].open(call)
    policy = call.memory.policy.rules
    memory = book.get(rule_id)
    rule = RuleRecord.from_wire(memory.record)
    fitting = [each for each in book.reports(rule_id) if each.rule_digest == rule_digest(rule)]
    gate = next((each for each in reversed(fitting) if isinstance(each, GateReport)), None)
    replay = next((each for each in reversed(fitting) if isinstance(each, ReplayReport)), None)
    verdict = book.watch(act=False).get(rule_id)
    missing = [
        *(["no gate of the rule as it is"] if gate is None else faults_of(gate, rule, policy.gate)),
        *replay_faults(replay, rule, policy),
        *_trial_faults(memory, verdict),
    ]
    others = [each for each in book.rules(stage="active") if each.id != rule_id]
    found = consolidate(rule, others, now=memory.created_at) if memory.stage != "active" else None
    narrows = () if found is None else tuple(cut.rule_id for cut in found.cuts)
    if memory.layer == "user":
        missing, narrows = ["a rule that a person wrote is never promoted: it acts by its layer, until it ends"], ()
    elif _stage(memory) in ("active", "retired", "pruned"):
        missing = [f"it is {_stage(memory)} already"]
    return _Reading(memory, gate, replay, verdict, tuple(missing), narrows)


def _trial_faults(memory: StoredMemory, verdict: CanaryVerdict | None) -> list[str]:
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
    yield _head(read.rule)
    yield from labelled("text", str(read.rule.record.get("body")))
    yield from labelled("applies", _scope_text(read.rule.record))
    if read.gate is not None:
        passed = sum(each.ok for each in read.gate.outcomes)
        fate = "passed" if read.gate.passed else "not passed"
        yield from labelled("gate", f"{fate}, {passed} of {counted(len(read.gate.outcomes), 'test')}")
        for check in sorted(read.gate.checks, key=lambda each: each.ok):
            fate = "ok" if check.ok else "NO"
            yield from labelled("", f"{fate}  {check.name}: {check.found} (needed: {check.needed})")
    if read.replay is not None:
        tried = read.replay
        passes = f"{tried.with_passes} of {tried.pairs} passed with it, {tried.without_passes} without"
        yield from labelled("replay", f"{passes}: {tried.decision}; {tried.notes}")
    if read.trial is not None and read.rule.stage == "canary":
        for number, reason in enumerate(read.trial.reasons):
            yield from labelled("" if number else "trial", reason)
    for each in read.narrows:
        yield from labelled("narrows", f"{each}, which advises the opposite where this one applies")
    for each in read.missing:
        yield from labelled("missing", each)
    if not read.missing:
        words = ("--signed-by", "NAME") if _needs_signature(call) else ()
        yield as_is("to promote", call.spell_command("rules", "promote", read.rule.id, *words))


report = Command(
    view=_show_report,
    function=_report,
    on="rulebook call",
    arguments=_RULE,
    document=_report_document,
    holds=lambda read: not read.missing,
    about="Its text, its gate, its replay, its trial, what is missing. Nothing is written. Exit code 1 where "
    "something but a signature is missing.",
)


# -- promotion and retirement -------------------------------------------------------------------------


def _show_decision(call: Call) -> Iterator[str]:
    report: PromotionReport = call.answer
    memory: StoredMemory = call.handle.get(call.typed["rule_id"])
    yield _head(memory)
    fields = {
        "in": f"{_book_name(call.handle)}, revision {call.handle.revision}",
        "text": memory.record.get("body"),
        "applies": _scope_text(memory.record),
        "because": list(report.reasons),
        "signed by": report.signed_by or (f"policy {report.allowed_by}" if report.allowed_by else None),
        "report": report.report_id,
    }
    yield from show_plain(fields)
    yield _undo_line(call, call.handle.revision - 1)


promote = Command(
    "rulebook.promote",
    _show_decision,
    arguments=_RULE,
    about="From now on every run that it applies to gets it. Read `muniment rules report` first. The rule has passed "
    "its gate and its replay, its trial has decided, and somebody signs; if anything is missing, the error names it "
    "and nothing happens. Rules that advise the opposite are narrowed in the same revision.",
)
retire = Command(
    "rulebook.retire",
    _show_decision,
    arguments=_RULE,
    about="No run gets it any more. It is kept, with its reports and its counts.",
)


class _Rolled(NamedTuple):
    to: int
    changes: list[dict[str, str]]
    revision: RulebookRevision | None


def _rollback(call: Call, ask: Callable[[], RulebookRevision]) -> _Rolled:
    to = call.typed["to"]
    changes = _planned_changes(call.handle, to)
    return _Rolled(to, changes, None if "dry_run" in call.typed else ask())


def _planned_changes(book: Rulebook, to: int) -> list[dict[str, str]]:
    """The changes of a rollback, rule by rule. Forgotten rules are left out."""
    from muniment.rules.rulebook import plan_rollback

    if to < 0:
        raise InvalidInput("a revision is a whole number from 0", path="$.to", hint="0 is the empty rulebook")
    found: list[dict[str, str]] = []
    wanted = plan_rollback(book.revisions(), to) if to else {each.id: 0 for each in book.rules()}
    for rule_id, version in wanted.items():
        try:
            memory, versions = book.get(rule_id), book.history(rule_id)
        except NotFound:
            continue
        then = next((each for each in versions if each.version == version), None)
        if then is not None or _stage(memory) not in ("retired", "pruned"):
            after = "retired" if then is None else _stage(then)
            body = str((memory if then is None else then).record.get("body") or "")
            found.append({"rule_id": rule_id, "before": _stage(memory), "after": after, "text": body})
    return found


def _show_rolled(call: Call) -> Iterator[str]:
    done: _Rolled = call.answer
    verb = "would be put" if done.revision is None else "is"
    yield f"revision {done.to} {verb} in force again; {counted(len(done.changes), 'rule')} changed"
    yield from labelled("in", _book_name(call.handle))
    yield from show_plain(done.changes)
    if done.revision is None:
        yield "nothing was done"
    else:
        yield from labelled("revision", str(done.revision.revision))
        yield _undo_line(call, done.revision.revision - 1)


rollback = Command(
    "rulebook.rollback",
    _show_rolled,
    around=_rollback,
    options={"to": OptionSpec("The revision; 0 is the empty rulebook.", metavar="N"), **_DRY},
    about="The same rules and the same selections, in one transaction. It is a revision of its own, so that it can be "
    "undone too. What acts again is signed for as a promotion is.",
)
