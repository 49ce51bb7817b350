"""Rules on their way to a trial: linted, consolidated, given tests, put through the gate, replayed (RC-18)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import InstanceOf

from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
from muniment.core.canonical import canonical_bytes, short_id
from muniment.core.owners import bank_level
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.requests import Expect, FromOne, Request, checked, is_listing
from muniment.errors import Conflict, InvalidInput, InvalidRecord, Issue, NotFound, TooLarge, WrongStage
from muniment.learning.banks import find_memory, list_memories
from muniment.learning.stored_memory import StoredMemory
from muniment.memory.patches import draft_patch
from muniment.rules.judged_runs import Examples
from muniment.rules.promotion.activation import rule_in, staged
from muniment.rules.promotion.consolidation import Consolidated, consolidate, rule_of
from muniment.rules.promotion.gate import judge_gate, rule_digest
from muniment.rules.promotion.records import GateReport, LintFinding, ReplayReport
from muniment.rules.promotion.tests import MadeTests, is_micro, with_tests
from muniment.rules.promotion.tests import make_tests as tests_for
from muniment.rules.promotion.trials import judge_replay
from muniment.rules.promotion.user_rules import user_memory, user_rule
from muniment.rules.rule_trying import Trial, replay_pairs, try_tests
from muniment.rules.rulebook.lint import is_clean, lint_rule
from muniment.rules.rulebook_reading import list_tests, newest_report, standing_rules
from muniment.rules.rulebook_writing import Book, RulebookEdit, edit_rulebook, find_rule, report_draft, spec_draft
from muniment.store.items import latest
from muniment.store.ledger.foreign import is_id
from muniment.store.ledger.memory_events import DRAFT_MADE
from muniment.store.ledger.orders import is_worded_as_orders
from muniment.store.ledger.secrets import find_secret
from muniment.verify.regression.specs import constraints_of, grade, make_packs

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.vocabulary import RuleType
    from muniment.store.ledger.records import EntryDraft
    from muniment.verify.outputs import Output

__all__ = ["Submitted", "add_tests", "add_user_rule", "gate", "lint", "make_tests", "replay", "submit"]

_NEWEST = 400
"""Judged runs that are looked at for tests and replay."""


class Submitted(NamedTuple):
    """What became of a draft."""

    kind: str
    """new, merged, split"""
    rule: StoredMemory
    reasons: tuple[str, ...]
    lint: tuple[LintFinding, ...]
    narrowed: tuple[str, ...] = ()
    """Rules that this one is an exception to, and that must be narrowed before it can be promoted."""

    @property
    def id(self) -> str:
        return self.rule.id


# -- lint ---------------------------------------------------------------------------------------------


def lint(book: Book, rule: Any) -> tuple[LintFinding, ...]:
    """What is wrong with a rule, given as a record, as plain data or by its id."""
    if isinstance(rule, str):
        rule = book.ctx.engine.read(book.tenant_id, lambda reader: find_rule(reader, book.owner, rule)).record
    record = rule if isinstance(rule, RuleRecord) else RuleRecord.from_wire(rule)
    return lint_rule(record, book.ctx.policy.rules.lint, book.ctx.counter.count, is_worded_as_orders, find_secret)


def _must_be_clean(rule: RuleRecord, findings: tuple[LintFinding, ...]) -> None:
    if not is_clean(findings):
        issues = [Issue(one.path, one.message, one.code) for one in findings if one.severity == "error"]
        raise InvalidRecord(f"the rule {rule.title or rule.rule_id!r:.80} is refused", issues)


# -- drafts -------------------------------------------------------------------------------------------


def submit(book: Book, given: Any) -> Submitted:
    """Consolidate a draft with the rules of the book; what is refused changes nothing."""
    ctx, tenant_id, owner = book
    draft = _draft(book, given)
    _check_draft(book, draft)
    now = ctx.now()

    def decide(tx: Transaction) -> RulebookEdit[Submitted]:
        rule_id = short_id("rule", [tenant_id, owner, draft.draft_id])
        if find_memory(tx, (owner,), rule_id) is not None:
            raise Conflict(f"the draft {draft.draft_id!r:.80} was submitted already", details={"rule_id": rule_id})
        rule = rule_of(draft, rule_id, now)
        _must_be_clean(rule, lint(book, rule))
        near = ctx.policy.rules.select.near_duplicate
        existing = {memory.id: memory for memory in standing_rules(tx, owner)}
        found = consolidate(rule, list(existing.values()), near_duplicate=near, now=now)
        if found.kind == "refused" or found.record is None:
            raise Conflict(f"the draft {draft.draft_id!r:.80} is refused: {found.reasons[0]}", hint="mend the draft")
        rules = _written(book, draft, found, existing, now)
        findings = lint(book, found.record)
        waiting = tuple(cut.rule_id for cut in found.cuts if cut.is_active)
        is_new = latest(tx, draft.draft_id) is None
        return RulebookEdit(
            action="submit",
            answer=Submitted(found.kind, rules[0], found.reasons, findings, waiting),
            rules=rules,
            before={one.id: existing.get(one.id) for one in rules},
            drafts=[_kept(draft)] if is_new else (),
            reason="; ".join(found.reasons),
        )

    _, submitted = edit_rulebook(book, decide)
    return submitted


def _written(
    book: Book, draft: DistillDraft, found: Consolidated, existing: Mapping[str, StoredMemory], now: str
) -> list[StoredMemory]:
    """The rule that the draft went into, and those that it cuts; an active one is cut when the draft is promoted."""
    assert found.record is not None
    record, policy = found.record, book.ctx.policy.rules
    sources = tuple(dict.fromkeys(draft.source_trace_ids))
    if found.into is None:
        first = StoredMemory(
            id=record.rule_id,
            kind="rule",
            level=bank_level(book.owner),
            version=1,
            record=record.to_wire(),
            status="temporary",
            created_at=now,
            sources=sources,
            reason_keys=(found.kind,),
            stage="drafted",
            layer="learned",
        )
    else:
        held = existing[found.into]
        again = staged(held, "drafted", policy, now, reason="merged") if found.restarts else held
        first = _next(again, held, record, sources)
    cuts = []
    for cut in found.cuts:
        if not cut.is_active:
            held = existing[cut.rule_id]
            cuts.append(_next(staged(held, "drafted", policy, now, reason="narrowed"), held, cut.record, ()))
    return [first, *cuts]


def _next(memory: StoredMemory, held: StoredMemory, record: RuleRecord, sources: Sequence[str]) -> StoredMemory:
    """The next version of a rule with another record, at the stage it was put to."""
    united = tuple(dict.fromkeys((*held.sources, *sources)))
    status = memory.record.get("status", "temporary")
    wire = record.to_wire() | {"status": status}
    return memory.model_copy(update={"version": held.version + 1, "record": wire, "sources": united})


def _kept(draft: DistillDraft) -> EntryDraft:
    said = {"id": draft.draft_id, "draft": draft.to_wire(), "sources": list(draft.source_trace_ids)}
    return draft_patch(DRAFT_MADE, "assistant", said)


def _check_draft(book: Book, draft: DistillDraft) -> None:
    """What is kept of a draft holds no secret and is not endless (LG-10)."""
    limit = book.ctx.policy.learn.record_bytes_max
    if not is_id(draft.draft_id):
        raise InvalidInput("not an id", path="$.draft_id")
    if len(canonical_bytes(draft.to_wire())) > limit:
        raise TooLarge(f"a draft of more than {limit} bytes", path="$.draft", hint="say it shortly")
    kind = find_secret(draft.to_wire()) if book.ctx.policy.ledger.redact_secrets else None
    if kind is not None:
        raise InvalidInput(f"the draft holds a secret ({kind})", path="$.draft", hint="leave it out")


def _draft_of(reader: Reader, owner: str, rule: RuleRecord) -> DistillDraft | None:
    """The draft that a rule was made of, if it is still there: what it foresees is part of the gate."""
    named = (rule.evidence.model_extra or {}).get("draft_ids")
    for id_ in reversed(named) if isinstance(named, list | tuple) else ():
        item = latest(reader, id_) if isinstance(id_, str) else None
        if item is not None and item.kind == "draft" and item.user_id == owner and item.body is not None:
            return DistillDraft.from_wire(item.plain()["draft"])
    return None


def _draft(book: Book, given: Any) -> DistillDraft:
    if isinstance(given, DistillDraft):
        return given
    if isinstance(given, str):
        item = book.ctx.engine.read(book.tenant_id, lambda reader: latest(reader, given))
        if item is None or item.kind != "draft" or item.user_id != book.owner:
            raise NotFound(f"no draft {given!r:.80} in this bank", path="$.draft")
        return DistillDraft.from_wire(item.plain()["draft"])
    if not isinstance(given, Mapping):
        raise InvalidInput("a draft is a DistillDraft or the id of one", path="$.draft")
    return DistillDraft.from_wire({"schema_version": RULECRAFT_VERSION, **given})


_TEXT = Expect("the {name} of a rule is text")


class UserRuleRequest(Request):
    """What a person says of a rule of their own."""

    body: Annotated[str, _TEXT]
    title: Annotated[str | None, _TEXT]
    ttl: Annotated[str | None, _TEXT]
    applicability: Annotated[InstanceOf[Mapping[str, Any]] | None, Expect("an applicability is an object")]


def add_user_rule(
    book: Book,
    body: str,
    *,
    title: str | None,
    type_: RuleType,
    applicability: Mapping[str, Any] | None,
    ttl: str | None,
) -> StoredMemory:
    """A rule that a person wrote, in its own layer."""
    ctx = book.ctx
    now = ctx.now()
    checked(UserRuleRequest, body=body, title=title, ttl=ttl, applicability=applicability)
    rule = user_rule(
        ctx.ids.new("rule"),
        body,
        now=now,
        type_=type_,
        title=title,
        applicability=None if applicability is None else dict(applicability),
    )
    findings = lint(book, rule)

    def decide(tx: Transaction) -> RulebookEdit[None]:
        existing = [held.memory for held in list_memories(tx, book.owner, "rule")]
        promote = ctx.policy.rules.promote
        kept = user_memory(
            rule, existing, lint=findings, policy=promote, level=bank_level(book.owner), now=now, ttl=ttl
        )
        return RulebookEdit(action="submit", answer=None, rules=[kept], reason="submitted by a person")

    edit_rulebook(book, decide)
    return ctx.engine.read(book.tenant_id, lambda reader: find_rule(reader, book.owner, rule.rule_id))


# -- tests --------------------------------------------------------------------------------------------


def make_tests(book: Book, rule_id: str, constraints: Any) -> MadeTests:
    """Tests from the runs of the rule and from other runs of the bank; kept, in place of those made before."""
    from muniment.verify.verifying import constraints_of as read_constraint_set

    ctx, tenant_id, owner = book
    memory = ctx.engine.read(tenant_id, lambda reader: find_rule(reader, owner, rule_id))
    rule = rule_in(memory)
    examples = Examples(ctx, tenant_id, owner)
    known = [*examples.of(memory.sources), *examples.newest(_NEWEST)]
    known = list({one.trace_id: one for one in known}.values())
    given = read_constraint_set(constraints)
    asked = () if given is None else given.constraints
    packs = [
        spec
        for one in known[: max(1, ctx.policy.rules.gate.micro_min)]
        for specs in make_packs(rule, asked, x_ref=one.x_ref).values()
        for spec in specs
    ]
    made = tests_for(
        rule,
        failing=[one for one in known if not one.passed],
        passing=[one for one in known if one.passed],
        grade=grade,
        packs=packs,
        policy=ctx.policy.rules.gate,
    )
    # the words of a task stay in its run: a test refers to them
    specs = tuple(spec.model_copy(update={"prompt": None}) for spec in made.specs)
    traces = {one.x_ref: one.trace_id for one in known}
    _keep_tests(book, rule_id, specs, traces)
    return MadeTests(specs, made.notes)


def add_tests(book: Book, rule_id: str, given: Iterable[Any]) -> None:
    """A person's own tests beside those that were made."""
    if not is_listing(given):
        raise InvalidInput("tests are a list of RegressionTestSpecs", path="$.specs")
    specs = []
    for each in given:
        spec = (
            each
            if isinstance(each, RegressionTestSpec)
            else RegressionTestSpec.from_wire(
                {"schema_version": RULECRAFT_VERSION, **each} if isinstance(each, Mapping) else each
            )
        )
        constraints_of(spec)  # one that cannot be asked is refused when it is written
        specs.append(spec if spec.linked_rule_ids else spec.model_copy(update={"linked_rule_ids": (rule_id,)}))
    _keep_tests(book, rule_id, specs, {})


def _keep_tests(book: Book, rule_id: str, specs: Sequence[RegressionTestSpec], traces: Mapping[str, str]) -> None:
    def decide(tx: Transaction) -> RulebookEdit[None]:
        memory = find_rule(tx, book.owner, rule_id)
        if memory.stage not in (None, "drafted"):
            raise WrongStage(
                f"{rule_id} is {memory.stage}: its tests are made before its gate", details={"stage": memory.stage}
            )
        kept = {test.spec.test_id: test.spec for test in list_tests(tx, book.owner, rule_id)}
        fresh = [spec for spec in specs if kept.get(spec.test_id) != spec]
        kept |= {spec.test_id: spec for spec in specs}
        if not fresh:
            return RulebookEdit(action="submit", answer=None)
        drafts = [
            spec_draft(rule_id, spec, is_micro(spec), [traces[spec.x_ref]] if spec.x_ref in traces else [])
            for spec in fresh
        ]
        record = with_tests(rule_in(memory), kept.values()).to_wire()
        changed = memory.model_copy(update={"version": memory.version + 1, "record": record})
        return RulebookEdit(
            action="submit",
            answer=None,
            rules=[changed],
            before={rule_id: memory},
            drafts=drafts,
            reason=f"{len(fresh)} tests",
        )

    edit_rulebook(book, decide)


# -- the gate -----------------------------------------------------------------------------------------


def gate(
    book: Book,
    rule_id: str,
    agent: Callable[..., Any] | Mapping[str, Output | str],
    *,
    beside: str | None,
    executor: Executor | None,
    timeout_s: float | None,
) -> GateReport:
    """Run a rule's tests and judge them; a rule that passes is gated."""
    ctx, tenant_id, owner = book
    policy = ctx.policy.rules
    memory = ctx.engine.read(tenant_id, lambda reader: find_rule(reader, owner, rule_id))
    rule = rule_in(memory) if beside is None else narrowed_record(book, rule_id, beside)
    tests = ctx.engine.read(tenant_id, lambda reader: list_tests(reader, owner, rule_id))
    specs = [test.spec for test in tests]
    examples = Examples(ctx, tenant_id, owner)
    known = [*examples.of(memory.sources), *examples.newest(_NEWEST)]
    trial: Any = agent
    if not isinstance(agent, Mapping):
        seconds = policy.gate.test_timeout_s if timeout_s is None else timeout_s
        trial = Trial(agent, executor, seconds, policy.gate.tries).check()
    tried = try_tests(rule, specs, trial, examples, list({one.trace_id: one for one in known}.values()))
    report = judge_gate(
        rule,
        draft=ctx.engine.read(tenant_id, lambda reader: _draft_of(reader, owner, rule)),
        specs=specs,
        outcomes=tried.outcomes,
        lint=lint(book, rule),
        clashes=tried.clashes,
        policy=policy.gate,
        report_id=ctx.ids.new("gate"),
        now=ctx.now(),
    )

    def decide(tx: Transaction) -> RulebookEdit[None]:
        standing = find_rule(tx, owner, rule_id)
        if beside is None and rule_digest(rule_in(standing)) != report.rule_digest:
            raise Conflict(f"the rule {rule_id} was changed while it was tested", hint="test it again")
        if [test.spec for test in list_tests(tx, owner, rule_id)] != specs:
            raise Conflict(f"the tests of {rule_id} were changed while they were run", hint="test it again")
        drafts = [report_draft("gate", report)]
        if not report.passed or beside is not None or standing.stage == "active":
            return RulebookEdit(action="submit", answer=None, drafts=drafts)
        if standing.stage == "canary":
            raise WrongStage(f"{rule_id} is on trial already", details={"stage": "canary"})
        gated = staged(standing, "gated", policy, ctx.now(), gate=report)
        return RulebookEdit(
            action="submit",
            answer=None,
            rules=[gated],
            before={rule_id: standing},
            drafts=drafts,
            report_id=report.report_id,
            reason="passed its gate",
        )

    edit_rulebook(book, decide)
    return report


def narrowed_record(book: Book, rule_id: str, exception_id: str) -> RuleRecord:
    """An active rule as it would be once an exception stands beside it."""

    def read(reader: Reader) -> tuple[StoredMemory, StoredMemory]:
        return find_rule(reader, book.owner, rule_id), find_rule(reader, book.owner, exception_id)

    wide, exception = book.ctx.engine.read(book.tenant_id, read)
    found = consolidate(rule_in(exception), [wide], now=wide.created_at)
    cut = next((each for each in found.cuts if each.rule_id == rule_id), None)
    if cut is None:
        raise Conflict(f"{exception_id} is no exception to {rule_id}", details={"reasons": list(found.reasons)})
    return cut.record


# -- replay -------------------------------------------------------------------------------------------


class ReplayRequest(Request):
    """On how many earlier tasks a rule is tried, and who judges."""

    tasks: Annotated[FromOne, Expect("tasks is a whole number from 1")]
    verifier: Annotated[Callable[..., Any], Expect("a verifier is a function")]


def replay(
    book: Book,
    rule_id: str,
    agent: Callable[..., Any],
    verifier: Callable[..., Any],
    *,
    tasks: int,
    executor: Executor | None,
    timeout_s: float | None,
) -> ReplayReport:
    """Earlier tasks with the rule and without; a rule that is not shown to do harm is replayed."""
    ctx, tenant_id, owner = book
    policy = ctx.policy.rules
    tasks = checked(ReplayRequest, tasks=tasks, verifier=verifier).tasks
    trial = Trial(agent, executor, policy.gate.test_timeout_s if timeout_s is None else timeout_s).check()
    memory = ctx.engine.read(tenant_id, lambda reader: find_rule(reader, owner, rule_id))
    rule = rule_in(memory)
    gated = ctx.engine.read(
        tenant_id, lambda reader: newest_report(reader, owner, rule_id, GateReport, rule_digest(rule))
    )
    if gated is None or not gated.passed:
        raise WrongStage(f"{rule_id} has not passed its gate", hint="gate it first", details={"stage": memory.stage})
    known = Examples(ctx, tenant_id, owner).newest(_NEWEST)[:_NEWEST]
    pairs = replay_pairs(rule, known, trial, verifier, most=tasks, judges=ctx.policy.learn.judges)
    report = judge_replay(rule, pairs, policy, report_id=ctx.ids.new("replay"), now=ctx.now())

    def decide(tx: Transaction) -> RulebookEdit[None]:
        standing = find_rule(tx, owner, rule_id)
        drafts = [report_draft("replay", report, report.trace_ids)]
        if not report.passed or standing.stage not in ("gated", "replayed"):
            return RulebookEdit(action="submit", answer=None, drafts=drafts)
        done = staged(standing, "replayed", policy, ctx.now(), gate=gated, replay=report)
        return RulebookEdit(
            action="submit",
            answer=None,
            rules=[done],
            before={rule_id: standing},
            drafts=drafts,
            report_id=report.report_id,
            reason="replayed",
        )

    edit_rulebook(book, decide)
    return report
