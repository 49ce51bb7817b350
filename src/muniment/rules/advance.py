"""Advance every draft and rule of a bank as far as the evidence allows, and report what each lacks (RC-18).

It performs the steps a person would, in the same order and through the same functions: submit, tests, gate, replay,
trial, watch. It activates nothing that `watch` would not, and signs nothing. Unfinished steps are resumed by the next
call; finished steps are not repeated. Errors of the agent are results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any

from muniment.contracts.rules import DistillDraft
from muniment.core.canonical import short_id
from muniment.core.record import Number
from muniment.core.requests import Expect, FromOne, Request, checked, within
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.learning.banks import find_memory, list_memories
from muniment.learning.folding import list_drafts
from muniment.rules import promotion, testing
from muniment.rules._gate import faults_of, rule_digest
from muniment.rules._records import AdvancedRule, AdvanceReport, GateReport, ReplayReport
from muniment.rules._select import stage_of
from muniment.rules._tests import asks_verifier, place_words
from muniment.rules.activation import rule_in
from muniment.rules.rulebook import Book, find_rule, list_reports, list_tests, standing_rules, submit
from muniment.rules.testing import Calls, Examples, Trial, fitting_tasks

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.learning.records import StoredMemory
    from muniment.rules._gate import CanaryVerdict


_ORDER = ("canary", "replayed", "gated", "drafted")
"""Closest to completion first, so that agent calls go to finishing what was begun."""
_GATES_MAX = 3
"""Gate refusals before a rule waits for a person."""
_TASKS_MORE = 5
"""New tasks needed to continue a replay."""
_TITLE_MAX = 120


class AdvanceRequest(Request):
    """Limits on the resources `advance` may use."""

    verifier: Annotated[Callable[..., Any], Expect("a verifier is a function")]
    max_calls: Annotated[FromOne | None, Expect("max_calls is a whole number from 1")]
    tasks: Annotated[FromOne | None, Expect("tasks is a whole number from 1")]
    share: Annotated[Number | None, within("a share is a number between 0 and 1", above=0, below=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Agent, verifier, limits and examples for advancing rules."""

    agent: Callable[..., Any]
    verifier: Callable[..., Any]
    calls_max: int
    tasks: int
    share: float | None
    executor: Executor | None
    timeout_s: float | None
    examples: Examples
    """Read once for all rules."""
    calls: Calls = field(default_factory=Calls)

    @property
    def left(self) -> int:
        return self.calls_max - self.calls.made


@dataclass(slots=True)
class _Rule:
    """A rule being advanced, and its report."""

    id: str
    title: str
    before: str
    after: str
    draft_id: str | None = None
    done: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    ready: str | None = None
    calls: int = 0
    is_spent: bool = False

    def told(self) -> AdvancedRule:
        named = {"rule_id": self.id} | ({} if self.draft_id is None else {"draft_id": self.draft_id})
        ready = {} if self.ready is None else {"ready": self.ready}
        return AdvancedRule(
            **named,
            title=self.title,
            before=self.before,
            after=self.after,
            done=tuple(self.done),
            missing=tuple(self.missing),
            calls=self.calls,
            **ready,
        )


def advance(
    book: Book,
    agent: Callable[..., Any],
    verifier: Callable[..., Any],
    *,
    max_calls: int | None = None,
    tasks: int | None = None,
    share: float | None = None,
    executor: Executor | None = None,
    timeout_s: float | None = None,
) -> AdvanceReport:
    """Advance every draft and rule of the bank as far as the evidence allows."""
    policy = book.ctx.policy.rules
    checked(AdvanceRequest, verifier=verifier, max_calls=max_calls, tasks=tasks, share=share)
    Trial(agent, executor, policy.gate.test_timeout_s if timeout_s is None else timeout_s).check()
    if share is not None and share > policy.canary.share_max:
        hint = f"more than 0 and at most {policy.canary.share_max:g}"
        raise InvalidInput(f"a share of {share:g} of the runs", path="$.share", hint=hint)
    means = Means(
        agent=agent,
        verifier=verifier,
        calls_max=policy.advance.calls_max if max_calls is None else max_calls,
        tasks=policy.advance.tasks_max if tasks is None else tasks,
        share=share,
        executor=executor,
        timeout_s=timeout_s,
        examples=Examples(*book),
    )
    before = _standing(book)
    verdicts = promotion.watch(book, act=True)  # finished trials make room for rules that contradict them
    drafts = {each.rule_id: each for each in _submitted(book)}
    refused = [one for one in drafts.values() if one.after == "refused"]
    several = []
    for memory in _in_order(_standing(book) | {id_: memory for id_, memory in before.items() if id_ in verdicts}):
        draft = drafts.get(memory.id)
        one = _Rule(memory.id, _title(memory.record), stage_of(memory), "")
        if memory.id in before:
            one.before = stage_of(before[memory.id])
        elif draft is not None:
            one.before, one.draft_id = draft.before, draft.draft_id
        one.done += [] if draft is None else draft.done
        start = means.calls.made
        _advanced(book, one, means, verdicts.get(memory.id))
        one.calls = means.calls.made - start
        several.append(one)
    return AdvanceReport(
        rules=(*(one.told() for one in several), *refused),
        calls=means.calls.made,
        calls_max=means.calls_max,
        is_spent=any(one.is_spent for one in several),
    )


# -- drafts -------------------------------------------------------------------------------------------


def _submitted(book: Book) -> Iterator[AdvancedRule]:
    """Submit every draft of the bank that was not submitted yet."""
    for draft in _waiting(book):
        title = _title(draft.proposed_rule.to_wire())
        common: dict[str, Any] = {"draft_id": draft.draft_id, "title": title, "before": "draft"}
        try:
            made = submit(book, draft.draft_id)
        except (Conflict, InvalidInput, NotFound) as error:
            issues = [f"{each.code}: {each.message}" for each in getattr(error, "issues", ())]
            yield AdvancedRule(**common, after="refused", missing=(error.message, *issues))
            continue
        fate = {"new": "submitted", "merged": "merged into it", "split": "submitted as an exception"}[made.kind]
        yield AdvancedRule(**common, rule_id=made.id, after="drafted", done=(f"{fate}: {'; '.join(made.reasons)}",))


def _waiting(book: Book) -> list[DistillDraft]:
    def read(reader: Reader) -> list[DistillDraft]:
        rules: list[Any] = [held.memory.record for held in list_memories(reader, book.owner, "rule")]
        known = {id_ for record in rules for id_ in (record.get("evidence") or {}).get("draft_ids") or ()}
        found = [DistillDraft.from_wire(body["draft"]) for body in list_drafts(reader, book.owner)]
        return [
            draft
            for draft in found
            if draft.draft_id not in known
            and find_memory(reader, (book.owner,), short_id("rule", [book.tenant_id, book.owner, draft.draft_id]))
            is None
        ]

    return book.ctx.engine.read(book.tenant_id, read)


def _standing(book: Book) -> dict[str, StoredMemory]:
    """The learned rules that were not retired, by id."""
    found = book.ctx.engine.read(book.tenant_id, lambda reader: standing_rules(reader, book.owner))
    return {memory.id: memory for memory in found if memory.layer != "user"}


def _in_order(rules: dict[str, StoredMemory]) -> list[StoredMemory]:
    def place(memory: StoredMemory) -> tuple[int, str, str]:
        stage = stage_of(memory)
        return _ORDER.index(stage) if stage in _ORDER else -1, memory.created_at, memory.id

    return sorted(rules.values(), key=place)


def _title(record: Any) -> str:
    return str(record.get("title") or record.get("body") or "")[:_TITLE_MAX]


# -- rules --------------------------------------------------------------------------------------------


def _advanced(book: Book, one: _Rule, means: Means, verdict: CanaryVerdict | None) -> None:
    """Take step after step until one reports missing evidence."""
    if one.before == "canary" and verdict is not None and verdict.decision == "stay":
        try:
            _replayed_more(book, one, means, _read(book, one.id))
        except (Conflict, NotFound) as error:  # changed meanwhile
            one.missing.append(error.message)
        verdict = None  # the runs are read again
    for step in (_gated, _replayed, _on_trial):
        try:
            goes_on = step(book, one, means)
        except (Conflict, NotFound) as error:  # changed, retired or forgotten meanwhile; or refused, with reasons
            reasons = error.details.get("reasons") if isinstance(error.details, dict) else None
            one.missing += [error.message, *(str(each) for each in (reasons or ())[1:])]
            goes_on = False
        if not goes_on:
            break
    try:
        memory = _read(book, one.id)
    except NotFound:
        one.after = "retired"
        return
    one.after = stage_of(memory)
    if one.after in ("canary", "active"):
        _told_of_runs(book, one, memory, verdict)
    elif one.after == "retired" and verdict is not None:
        one.done.append(f"taken back: {verdict.reasons[0]}")


def _read(book: Book, rule_id: str) -> StoredMemory:
    return book.ctx.engine.read(book.tenant_id, lambda reader: find_rule(reader, book.owner, rule_id))


def _gated(book: Book, one: _Rule, means: Means) -> bool:
    """Test and gate a rule that has not passed in its current form; returns whether it has passed."""
    memory = _read(book, one.id)
    stage, policy = stage_of(memory), book.ctx.policy.rules
    if stage not in ("drafted", "gated", "replayed"):
        return False
    rule = rule_in(memory)
    reports = [each for each in _reports(book, memory) if isinstance(each, GateReport)]
    if stage != "drafted" and reports and not faults_of(reports[-1], rule, policy.gate):
        return True
    if memory.reason_keys == ("trial_ended",):
        one.missing.append("its trial ended and showed nothing: it waits until it is changed, or retired")
        return False
    refused = [each for each in reports if not each.passed]
    if len(refused) >= _GATES_MAX:
        one.missing += [f"the gate refused it {len(refused)} times: it waits until it is changed", *_fails(refused[-1])]
        return False
    if stage == "drafted" and not _tested(book, one, memory, refused, means):
        return False
    tests = book.ctx.engine.read(
        book.tenant_id, lambda reader: testing.named_tests(reader, book.owner, _find(reader, book, one.id))
    )
    asked = {(test.spec.x_ref, asks_verifier(test.spec)) for test in tests}
    if not _may_call(one, means, sum(policy.gate.tries * (1 + by_verifier) for _, by_verifier in asked), "gate"):
        return False
    report = testing.gate(
        book,
        one.id,
        means.agent,
        verifier=means.verifier,
        executor=means.executor,
        timeout_s=means.timeout_s,
        calls=means.calls,
        examples=means.examples,
    )
    good = sum(outcome.ok for outcome in report.outcomes)
    one.done.append(f"gate: {good} of {len(report.outcomes)} tests passed")
    one.missing += [] if report.passed else _fails(report)
    return report.passed


def _find(reader: Reader, book: Book, rule_id: str) -> StoredMemory:
    return find_rule(reader, book.owner, rule_id)


def _reports(book: Book, memory: StoredMemory) -> list[Any]:
    digest = rule_digest(rule_in(memory))
    found = book.ctx.engine.read(book.tenant_id, lambda reader: list_reports(reader, book.owner, memory.id))
    return [each for each in found if each.rule_digest == digest]


def _tested(book: Book, one: _Rule, memory: StoredMemory, refused: list[GateReport], means: Means) -> bool:
    """Test on earlier tasks; after a failed gate, on other tasks than those that failed."""
    failed = {outcome.test_id for report in refused for outcome in report.outcomes if not outcome.ok}
    tests = book.ctx.engine.read(book.tenant_id, lambda reader: list_tests(reader, book.owner, memory.id))
    asked = [means.examples.asked(test.spec.x_ref) for test in tests if test.spec.test_id in failed]
    spent = [prompt for prompt in asked if prompt is not None]
    made = testing.make_tests(book, one.id, None, means.verifier, spent, means.examples)
    notes = [note for note in made.notes if note.startswith("needs ")]
    if notes:
        one.missing += notes
        return False
    if refused and {spec.test_id for spec in made.specs} & failed:
        one.missing += ["needs other earlier tasks: the gate refused it on those there are", *_fails(refused[-1])]
        return False
    if _read(book, one.id).version != memory.version:
        one.done.append(f"{len(made.specs)} tests made of earlier tasks that it was not learnt from")
    return True


def _may_call(one: _Rule, means: Means, most: int, what: str) -> bool:
    if most <= means.left:
        return True
    one.is_spent = True
    one.missing.append(
        f"its {what} may take {most} calls of the agent, and {means.left} of {means.calls_max} are left: "
        "call advance again, or raise max_calls"
    )
    return False


def _fails(report: GateReport) -> list[str]:
    return [f"{check.name}: {check.found} (needed: {check.needed})" for check in report.checks if not check.ok]


def _replayed(book: Book, one: _Rule, means: Means) -> bool:
    """Replay earlier tasks with and without the rule; returns whether that showed no harm."""
    memory, policy = _read(book, one.id), book.ctx.policy.rules
    if stage_of(memory) == "replayed":
        return True
    return _tried(book, one, means, memory, None, policy.gate.replay_pairs_min)


def _tried(book: Book, one: _Rule, means: Means, memory: StoredMemory, before: ReplayReport | None, least: int) -> bool:
    known = fitting_tasks(rule_in(memory), testing.untried_runs(book, memory, before, means.examples))
    most = means.tasks - (0 if before is None else len(before.trace_ids))
    tries = book.ctx.policy.rules.advance.replay_tries
    if len(known) < least and before is None:
        place = place_words(rule_in(memory))
        one.missing.append(
            f"needs {least - len(known)} more earlier tasks of {place} to be tried on: "
            f"{len(known)} of {least}, other than those it was learnt from"
        )
        return False
    if not known:
        return True
    wanted = min(most, len(known))
    affordable = min(wanted, means.left // (2 * tries))  # tasks beyond the call budget are tried the next time
    if affordable < max(1, min(least, wanted)) and not _may_call(one, means, 2 * tries * wanted, "replay"):
        return False
    one.is_spent |= affordable < wanted
    report = testing.replay(
        book,
        one.id,
        means.agent,
        means.verifier,
        tasks=affordable,
        tries=tries,
        executor=means.executor,
        timeout_s=means.timeout_s,
        calls=means.calls,
        before=before,
        examples=means.examples,
    )
    of = "" if report.pairs == len(report.trace_ids) else f"answers to {len(report.trace_ids)} "
    passes = f"{report.with_passes} of {report.pairs} {of}earlier tasks passed with it, {report.without_passes} without"
    one.done.append(f"replay: {passes}")
    if not report.passed and before is None:
        _after_replay(book, one, memory, report)
    return report.passed


def _after_replay(book: Book, one: _Rule, memory: StoredMemory, report: ReplayReport) -> None:
    """Do not start a trial for a rule that harmed earlier tasks."""
    if report.decision != "harmful":
        one.missing.append(f"the verifier could not judge enough of the replay: {report.notes}")
    elif book.ctx.policy.rules.promote.retire_signature == "policy":
        promotion.retire(book, memory.id, reason=f"harmful on earlier tasks: {report.notes}", signed_by=None)
        one.done.append("retired: it does harm on earlier tasks")
    else:
        one.missing.append("it does harm on earlier tasks: retire it")


def _replayed_more(book: Book, one: _Rule, means: Means, memory: StoredMemory) -> None:
    """Continue the replay during the trial, on tasks added since: each once, and all of them count."""
    before = book.ctx.engine.read(book.tenant_id, lambda reader: promotion.replay_counted(reader, book, memory))
    if before is None or len(before.trace_ids) >= means.tasks:
        return
    fresh = fitting_tasks(rule_in(memory), testing.untried_runs(book, memory, before, means.examples))
    if len(fresh) >= min(_TASKS_MORE, means.tasks - len(before.trace_ids)):
        _tried(book, one, means, memory, before, 0)


def _on_trial(book: Book, one: _Rule, means: Means) -> bool:
    memory = promotion.start_trial(book, one.id, share=means.share, bucket_keys=())
    assert memory.canary is not None
    one.done.append(f"on trial, with a share of {memory.canary.share:g} of the runs that it applies to")
    return False


# -- evidence from runs -------------------------------------------------------------------------------


def _told_of_runs(book: Book, one: _Rule, memory: StoredMemory, verdict: CanaryVerdict | None) -> None:
    """Report on the trial: enough runs, only a signature missing, or what it lacks."""
    stage, policy = one.after, book.ctx.policy.rules
    if verdict is None:
        verdict, _ = book.ctx.engine.read(book.tenant_id, lambda reader: promotion.verdict_of(book, reader, memory))
    if stage == "active":
        if one.before != "active":
            one.done.append(f"promoted: {verdict.reasons[0]}")
        return
    if verdict.decision != "promote":
        one.missing += [verdict.reasons[0], *_runs_left(verdict, memory, policy.canary.runs_min), *_counted(verdict)]
    elif policy.promote.signature == "required":
        one.ready = f"ready: sign with book.promote({memory.id!r}, signed_by=…): {verdict.reasons[0]}"
    else:
        try:
            promotion.promote(book, memory.id, signed_by=None, seen=memory.version)
        except (Conflict, NotFound) as error:
            one.missing += [error.message, *([error.hint] if error.hint else [])]
        else:
            one.after = "active"
            one.done.append(f"promoted: {verdict.reasons[0]}")


def _counted(verdict: CanaryVerdict) -> list[str]:
    return [each for each in verdict.reasons[1:] if each.startswith(("passed ", "its replay counts", "evidence"))]


def _runs_left(verdict: CanaryVerdict, memory: StoredMemory, least: int) -> list[str]:
    """The minimum number of runs of its kind that the trial still needs, given its share."""
    assert memory.canary is not None
    share = memory.canary.share
    most = ceil(least / min(share, 1 - share))
    if verdict.runs >= most:
        return []
    return [f"that takes about {most - verdict.runs} more runs of its kind at a share of {share:g}"]
