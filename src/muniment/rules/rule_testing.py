"""The tests of a rule: made from runs, kept, run at the gate, and earlier tasks replayed (RC-18, RC-19).

A rule is tested on tasks that it was not learnt from, and the caller's verifier says what passes, where one is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.requests import Expect, FromOne, Request, checked, is_listing
from muniment.errors import Conflict, InvalidInput, WrongStage
from muniment.rules.judged_runs import Examples
from muniment.rules.promotion.activation import rule_in, staged
from muniment.rules.promotion.consolidation import consolidate
from muniment.rules.promotion.gate import judge_gate, rule_digest
from muniment.rules.promotion.records import GateReport, ReplayReport
from muniment.rules.promotion.task_tests import HELD_OUT, asks_verifier, held_out, make_task_tests
from muniment.rules.promotion.tests import MadeTests, is_micro, with_tests
from muniment.rules.promotion.tests import make_tests as tests_for
from muniment.rules.promotion.trials import judge_replay
from muniment.rules.rule_drafting import lint
from muniment.rules.rule_trying import Calls, Judge, Trial, replay_pairs, try_tests
from muniment.rules.rulebook_reading import RuleTest, list_tests, newest_report, test_ids
from muniment.rules.rulebook_writing import Book, RulebookEdit, edit_rulebook, find_rule, report_draft, spec_draft
from muniment.store.items import latest
from muniment.verify.regression import constraints_of, grade, make_packs

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from muniment.core.ports.engine import Reader, Transaction
    from muniment.learning.stored_memory import StoredMemory
    from muniment.rules.promotion.examples import Example
    from muniment.verify.outputs import Output

__all__ = ["add_tests", "gate", "known_runs", "make_tests", "named_tests", "replay", "untried_runs"]

_NEWEST = 400
"""Judged runs that are looked at for tests and replay."""


# -- tests --------------------------------------------------------------------------------------------


class VerifierRequest(Request):
    """Who judges tests that are earlier tasks."""

    verifier: Annotated[Callable[..., Any] | None, Expect("a verifier is a function")]


def known_runs(book: Book, memory: StoredMemory, examples: Examples | None = None) -> list[Example]:
    """The judged runs that a rule's tests are made of: its own first, then the newest of the bank.

    `examples` are those of whoever looks at several rules at once.
    """
    examples = examples or Examples(*book)
    known = [*examples.of(memory.sources), *examples.newest(_NEWEST)]
    return list({one.trace_id: one for one in known}.values())


def untried_runs(
    book: Book, memory: StoredMemory, before: ReplayReport | None = None, examples: Examples | None = None
) -> list[Example]:
    """The newest judged runs of tasks that a rule was not learnt from, and that an earlier replay did not take."""
    return held_out(
        known_runs(book, memory, examples), {*memory.sources, *(() if before is None else before.trace_ids)}
    )


def named_tests(reader: Reader, owner: str, memory: StoredMemory) -> list[RuleTest]:
    """The tests that a rule goes by; those that were made anew are not its tests any more."""
    named = test_ids(memory)
    return [test for test in list_tests(reader, owner, memory.id) if test.spec.test_id in named]


def make_tests(
    book: Book,
    rule_id: str,
    constraints: Any,
    verifier: Callable[..., Any] | None = None,
    spent: Collection[str] = (),
    examples: Examples | None = None,
) -> MadeTests:
    """Tests from the runs of the rule and from other runs of the bank; kept, in place of those made before.

    With a verifier they are earlier tasks that the rule was not learnt from, and it judges them. `spent` are tasks that
    are taken last.
    """
    checked(VerifierRequest, verifier=verifier)
    ctx, tenant_id, owner = book
    memory = ctx.engine.read(tenant_id, lambda reader: find_rule(reader, owner, rule_id))
    known = known_runs(book, memory, examples)
    made = _asserting(book, memory, known, constraints) if verifier is None or constraints is not None else None
    if verifier is not None:
        judged = _task_tests(book, memory, known, verifier, spent)
        micro = () if made is None else tuple(spec for spec in made.specs if is_micro(spec))
        made = MadeTests((*judged.specs, *micro), judged.notes)
    assert made is not None
    # the words of a task stay in its run: a test refers to them
    specs = tuple(spec.model_copy(update={"prompt": None}) for spec in made.specs)
    _keep_tests(book, rule_id, specs, {one.x_ref: one.trace_id for one in known}, is_anew=verifier is not None)
    return MadeTests(specs, made.notes)


def _task_tests(
    book: Book, memory: StoredMemory, known: Sequence[Example], verifier: Callable[..., Any], spent: Collection[str]
) -> MadeTests:
    policy, rule = book.ctx.policy, rule_in(memory)
    judge = Judge(verifier, policy.learn.judges, policy.rules.gate.test_timeout_s)

    def can_fail(one: Example) -> bool:
        failed = [other.output for other in known if other.prompt == one.prompt and not other.passed]
        return judge.can_fail(rule, one.prompt, failed)

    untaught = held_out(known, set(memory.sources))
    return make_task_tests(rule, untaught, can_fail=can_fail, policy=policy.rules.gate, spent=spent)


def _asserting(book: Book, memory: StoredMemory, known: Sequence[Example], constraints: Any) -> MadeTests:
    """Tests that assert something of an answer by themselves."""
    from muniment.verify.verify import constraints_of as read_constraint_set

    rule, policy = rule_in(memory), book.ctx.policy.rules.gate
    given = read_constraint_set(constraints)
    asked = () if given is None else given.constraints
    packs = [
        spec
        for one in known[: max(1, policy.micro_min)]
        for specs in make_packs(rule, asked, x_ref=one.x_ref).values()
        for spec in specs
    ]
    return tests_for(
        rule,
        failing=[one for one in known if not one.passed],
        passing=[one for one in known if one.passed],
        grade=grade,
        packs=packs,
        policy=policy,
    )


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


def _keep_tests(
    book: Book,
    rule_id: str,
    specs: Sequence[RegressionTestSpec],
    traces: Mapping[str, str],
    *,
    is_anew: bool = False,
) -> None:
    """Keep tests beside those that the rule has; `is_anew`: in place of the tasks that were made into tests before."""

    def decide(tx: Transaction) -> RulebookEdit[None]:
        memory = find_rule(tx, book.owner, rule_id)
        if memory.stage not in (None, "drafted"):
            raise WrongStage(
                f"{rule_id} is {memory.stage}: its tests are made before its gate", details={"stage": memory.stage}
            )
        written = {test.spec.test_id: test.spec for test in list_tests(tx, book.owner, rule_id)}
        standing = [test.spec for test in named_tests(tx, book.owner, memory)]
        stays = [spec for spec in standing if not (is_anew and HELD_OUT in (spec.tags or ()))]
        kept = {spec.test_id: spec for spec in (*stays, *specs)}
        fresh = [spec for spec in specs if written.get(spec.test_id) != spec]
        if not fresh and kept.keys() == {spec.test_id for spec in standing}:
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


def _draft_of(reader: Reader, owner: str, rule: RuleRecord) -> DistillDraft | None:
    """The draft that a rule was made of, if it is still there: what it foresees is part of the gate."""
    named = (rule.evidence.model_extra or {}).get("draft_ids")
    for id_ in reversed(named) if isinstance(named, list | tuple) else ():
        item = latest(reader, id_) if isinstance(id_, str) else None
        if item is not None and item.kind == "draft" and item.user_id == owner and item.body is not None:
            return DistillDraft.from_wire(item.plain()["draft"])
    return None


# -- the gate -----------------------------------------------------------------------------------------


def gate(
    book: Book,
    rule_id: str,
    agent: Callable[..., Any] | Mapping[str, Output | str],
    *,
    verifier: Callable[..., Any] | None = None,
    beside: str | None = None,
    executor: Executor | None = None,
    timeout_s: float | None = None,
    calls: Calls | None = None,
    examples: Examples | None = None,
) -> GateReport:
    """Run a rule's tests and judge them; a rule that passes is gated."""
    checked(VerifierRequest, verifier=verifier)
    ctx, tenant_id, owner = book
    policy = ctx.policy.rules
    memory = ctx.engine.read(tenant_id, lambda reader: find_rule(reader, owner, rule_id))
    rule = rule_in(memory) if beside is None else narrowed_record(book, rule_id, beside)
    tests = ctx.engine.read(tenant_id, lambda reader: named_tests(reader, owner, memory))
    specs = [test.spec for test in tests]
    examples = examples or Examples(*book)
    known = known_runs(book, memory, examples)
    judge: Judge | None = None
    trial: Any = agent
    if not isinstance(agent, Mapping):
        seconds = policy.gate.test_timeout_s if timeout_s is None else timeout_s
        notes_tools = any(one.output.tool_calls for one in known)
        trial = Trial(agent, executor, seconds, policy.gate.tries, calls or Calls(), notes_tools).check()
        judge = None if verifier is None else Judge(verifier, ctx.policy.learn.judges, seconds)
    if judge is None and any(map(asks_verifier, specs)):
        hint = "give the gate an agent and the verifier that they were made with"
        raise InvalidInput(f"tests of {rule_id} ask your verifier", path="$.verifier", hint=hint)
    tried = try_tests(rule, specs, trial, examples, known, judge)
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
        if [test.spec for test in named_tests(tx, owner, standing)] != specs:
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
    tries: int = 1,
    calls: Calls | None = None,
    before: ReplayReport | None = None,
    examples: Examples | None = None,
) -> ReplayReport:
    """Earlier tasks that the rule was not learnt from, with it and without; one not shown to do harm is replayed."""
    ctx, tenant_id, owner = book
    policy = ctx.policy.rules
    tasks = checked(ReplayRequest, tasks=tasks, verifier=verifier).tasks
    seconds = policy.gate.test_timeout_s if timeout_s is None else timeout_s
    trial = Trial(agent, executor, seconds, tries, calls or Calls()).check()
    memory = ctx.engine.read(tenant_id, lambda reader: find_rule(reader, owner, rule_id))
    rule = rule_in(memory)
    gated = ctx.engine.read(
        tenant_id, lambda reader: newest_report(reader, owner, rule_id, GateReport, rule_digest(rule))
    )
    if gated is None or not gated.passed:
        raise WrongStage(f"{rule_id} has not passed its gate", hint="gate it first", details={"stage": memory.stage})
    known = untried_runs(book, memory, before, examples)
    trial = trial._replace(notes_tools=any(one.output.tool_calls for one in known))
    pairs = replay_pairs(rule, known, trial, Judge(verifier, ctx.policy.learn.judges, seconds), most=tasks)
    report = judge_replay(rule, pairs, policy, report_id=ctx.ids.new("replay"), now=ctx.now(), before=before)

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
