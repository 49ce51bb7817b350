"""Trials, promotion, retirement and rollback of rules, and their current statistics (RC-14, RC-16, RC-18).

Every change is a revision of the rulebook. One that puts a rule in force or takes it out needs a report.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from muniment.core.limits import drop_tenant
from muniment.core.record import Count, Number
from muniment.core.requests import ByRule, Expect, Request, checked, within
from muniment.core.stats import Comparison
from muniment.errors import Conflict, InvalidInput, NotFound, TooLarge
from muniment.learning.banks import list_memories
from muniment.learning.plans import version_of
from muniment.learning.records import CanaryPlan
from muniment.rules._consolidate import consolidate
from muniment.rules._gate import CanaryVerdict, judge_canary, rule_digest, start_canary
from muniment.rules._records import GateReport, PromotionReport, ReplayReport
from muniment.rules._statistics import RuleStats, published, stats_of, use_order, window
from muniment.rules.activation import (
    activated,
    narrowed,
    refuse_stage,
    report_change,
    report_narrowing,
    report_promotion,
    restored,
    retired,
    rule_in,
    staged,
)
from muniment.rules.rulebook import (
    ENDED,
    Book,
    RulebookEdit,
    UseRows,
    edit_rulebook,
    find_rule,
    list_reports,
    list_revisions,
    list_rules,
    list_uses,
    newest_report,
    plan_rollback,
    report_draft,
    standing_rules,
    use_rows,
)
from muniment.store.admission import is_id

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.learning.records import StoredMemory
    from muniment.rules._records import RulebookRevision, RuleUse


_NAME_CHARS_MAX = 200
_REASON_CHARS_MAX = 2_000
_STATS_HELD_MAX = 1_024


# -- reading ------------------------------------------------------------------------------------------


def rule_stats(book: Book, rule_id: str, *, start: Any, end: Any) -> RuleStats:
    """Statistics of a rule over a window, or over all runs of its current version."""

    def read(reader: Reader) -> RuleStats:
        memory = find_rule(reader, book.owner, rule_id)
        uses = window(_uses(book, reader, memory), start, end)
        return stats_of(uses, rule_id, book.ctx.policy.rules, version=rule_in(memory).version)

    return book.ctx.engine.read(book.tenant_id, read)


def _uses(book: Book, reader: Reader, memory: StoredMemory, after: UseRows | None = None) -> list[RuleUse]:
    """The runs of a rule's current version whose judge may teach, in order; only those after the first `after` rows."""
    judges = (None, *book.ctx.policy.learn.judges)
    uses = list_uses(reader, book.owner, memory.id, after=after)
    return [use for use in uses if use.version == memory.record["version"] and use.judge in judges]


class StatsCache:
    """Folded statistics of rules and the rows behind them, kept between calls of `watch` and `promote`."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[Any, ...], tuple[UseRows, RuleStats]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[Any, ...]) -> tuple[UseRows, RuleStats] | None:
        with self._lock:
            return self._held.get(key)

    def put(self, key: tuple[Any, ...], rows: UseRows, stats: RuleStats) -> None:
        with self._lock:
            self._held[key] = rows, stats
            self._held.move_to_end(key)
            while len(self._held) > _STATS_HELD_MAX:
                self._held.popitem(last=False)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            drop_tenant(self._held, tenant_id)


def _stats(book: Book, reader: Reader, memory: StoredMemory, *, since: str = "") -> RuleStats:
    """The statistics of a rule's runs from `since` on. Counted runs are not read again, unless one was changed or
    forgotten: then all are recounted.
    """
    policy, version = book.ctx.policy.rules, str(memory.record["version"])
    cache, judges = book.ctx.cache(StatsCache), book.ctx.policy.learn.judges
    key = (book.tenant_id, book.owner, memory.id, version, since, judges, policy.canary.margin, policy.canary.alpha)
    held = cache.get(key)
    rows = use_rows(reader, book.owner, memory.id, None if held is None else held[0])
    stats: RuleStats | None = None
    if held is not None and rows.is_extension:
        fresh = [use for use in _uses(book, reader, memory, held[0]) if use.at >= since] if rows.n > held[0].n else []
        with suppress(Conflict):  # a run arrived out of order
            stats = held[1].add_all(sorted(fresh, key=use_order))
    if stats is None:
        stats = stats_of(
            (use for use in _uses(book, reader, memory) if use.at >= since), memory.id, policy, version=version
        )
    cache.put(key, rows, stats)
    return stats


# -- trials -------------------------------------------------------------------------------------------


class TrialRequest(Request):
    """The share of the runs in a trial, and the buckets it is limited to."""

    share: Annotated[Number | None, within("a share is a number between 0 and 1", above=0, below=1)]
    bucket_keys: Annotated[list[str] | tuple[str, ...], Expect("bucket_keys is a list of bucket keys")]


def start_trial(book: Book, rule_id: str, *, share: float | None, bucket_keys: Sequence[str]) -> StoredMemory:
    ctx, policy = book.ctx, book.ctx.policy.rules
    checked(TrialRequest, share=share, bucket_keys=bucket_keys)

    def decide(tx: Transaction) -> RulebookEdit[None]:
        memory = find_rule(tx, book.owner, rule_id)
        gate, replay = _reports(tx, book, memory)
        now = ctx.now()
        if gate is None:
            refuse_stage(memory, "canary", policy, now)
        plan = start_canary(
            rule_in(memory),
            gate,
            replay,
            policy,
            canary_id=ctx.ids.new("canary"),
            now=now,
            share=share,
            bucket_keys=bucket_keys,
        )
        on_trial = staged(memory, "canary", policy, now, gate=gate, replay=replay, canary=plan)
        words = f"on trial with a share of {plan.share:g}"
        return RulebookEdit(action="canary", answer=None, rules=[on_trial], before={rule_id: memory}, reason=words)

    edit_rulebook(book, decide)
    return ctx.engine.read(book.tenant_id, lambda reader: find_rule(reader, book.owner, rule_id))


def _reports(reader: Reader, book: Book, memory: StoredMemory) -> tuple[GateReport | None, ReplayReport | None]:
    digest = rule_digest(rule_in(memory))
    return (
        newest_report(reader, book.owner, memory.id, GateReport, digest),
        newest_report(reader, book.owner, memory.id, ReplayReport, digest),
    )


def verdict_of(book: Book, reader: Reader, memory: StoredMemory) -> tuple[CanaryVerdict, Comparison]:
    """The verdict on a rule's trial (or, if it is active, on the runs that left it out), and the comparison
    behind it.
    """
    judged = _judge(book, reader, memory)
    return judged.verdict, judged.comparison


class _Judged(NamedTuple):
    verdict: CanaryVerdict
    comparison: Comparison
    stats: RuleStats
    replay: ReplayReport | None
    """The replay that the comparison started with."""


def _judge(book: Book, reader: Reader, memory: StoredMemory) -> _Judged:
    policy = book.ctx.policy.rules
    if memory.canary is not None:
        stats = _stats(book, reader, memory, since=memory.canary.started_at)
        replay = replay_counted(reader, book, memory)
        joined = None if replay is None else Comparison.from_wire(dict(replay.comparison)).followed_by(stats.trial)
        verdict = judge_canary(stats.trial, policy.canary, memory.canary, joined)
        return _Judged(verdict, joined or stats.trial, stats, replay)
    stats = _stats(book, reader, memory)
    is_held_out = memory.layer != "user" and rule_in(memory).type != "GuardrailRule"
    share = 1 - policy.canary.holdout_share if is_held_out else 1
    plan = CanaryPlan(canary_id=memory.id, share=share, started_at=stats.held_since or memory.created_at)
    return _Judged(judge_canary(stats.hold, policy.canary, plan), stats.hold, stats, None)


def replay_counted(reader: Reader, book: Book, memory: StoredMemory) -> ReplayReport | None:
    """The replay that a trial continues, with the earlier ones that it continues itself.

    None if there is none, or if it omits another one: then the best of several might have been picked.
    """
    policy, digest = book.ctx.policy.rules, rule_digest(rule_in(memory))
    if not policy.canary.counts_replay:
        return None
    reports = [each for each in list_reports(reader, book.owner, memory.id) if isinstance(each, ReplayReport)]
    fitting = [each for each in reports if each.rule_digest == digest]
    is_whole = [each.continues for each in fitting] == [None, *(each.report_id for each in fitting[:-1])]
    if not fitting or not is_whole or not fitting[-1].pairs:
        return None
    comparison = fitting[-1].comparison
    same = (comparison.get("margin"), comparison.get("alpha")) == (policy.canary.margin, policy.canary.alpha)
    return fitting[-1] if same else None


def watch(book: Book, *, act: bool) -> dict[str, CanaryVerdict]:
    """Judge every acting rule; with `act`, roll back harmful ones, and end or promote trials where permitted."""
    acting = [
        memory for memory in list_rules(book, stage=None, include_all=False) if memory.stage in ("canary", "active")
    ]
    found: dict[str, CanaryVerdict] = {}
    for memory in acting:
        verdict, _ = book.ctx.engine.read(
            book.tenant_id,
            lambda reader, memory=memory: verdict_of(book, reader, memory),  # type: ignore[misc]
        )
        found[memory.id] = verdict
        if act:
            try:
                _act_on(book, memory, verdict)
            except (Conflict, NotFound):  # changed meanwhile, or not ready for promotion: continue with the others
                continue
    return found


def _act_on(book: Book, memory: StoredMemory, verdict: CanaryVerdict) -> None:
    """Act on a verdict, as far as the policy needs no signature; only if the rule has not changed since."""
    policy, reason = book.ctx.policy.rules.promote, verdict.reasons[0]
    is_trial = memory.stage == "canary"
    if verdict.decision == "rollback" and policy.retire_signature == "policy":
        retire(book, memory.id, reason=reason, signed_by=None, seen=memory.version)
    elif verdict.decision == "ended" and is_trial:
        _end_trial(book, memory.id, reason, memory.version)
    elif verdict.decision == "promote" and is_trial and policy.signature == "policy":
        promote(book, memory.id, signed_by=None, seen=memory.version)


def _find(tx: Transaction, book: Book, rule_id: str, seen: int | None) -> StoredMemory:
    """The rule, if still in the version that was judged."""
    memory = find_rule(tx, book.owner, rule_id)
    if seen is not None and memory.version != seen:
        raise Conflict(f"{rule_id} was changed meanwhile", hint="look at it again")
    return memory


def _end_trial(book: Book, rule_id: str, reason: str, seen: int) -> None:
    """End an inconclusive trial: the rule becomes a draft again."""

    def decide(tx: Transaction) -> RulebookEdit[None]:
        memory = _find(tx, book, rule_id, seen)
        ended = staged(memory, "drafted", book.ctx.policy.rules, book.ctx.now(), reason="trial_ended")
        return RulebookEdit(action="canary", answer=None, rules=[ended], before={rule_id: memory}, reason=reason)

    edit_rulebook(book, decide)


# -- changes of force ---------------------------------------------------------------------------------


def _is_name(given: str) -> bool:
    return is_id(given) and bool(given.strip()) and len(given) <= _NAME_CHARS_MAX


def _reason(given: Any, path: str) -> str:
    if not isinstance(given, str):
        raise InvalidInput("a reason is text", path=path)
    if len(given) > _REASON_CHARS_MAX:
        raise TooLarge(f"a reason of more than {_REASON_CHARS_MAX} characters", path=path, hint="say it shortly")
    return given


class SignedRequest(Request):
    """The signer of a rulebook change, and the reason."""

    signed_by: Annotated[str | None, Expect(f"a signature is a name of at most {_NAME_CHARS_MAX} characters", _is_name)]
    reason: Annotated[str, ByRule(_reason)] = ""


class RollbackRequest(SignedRequest):
    """The revision to put in force again."""

    to: Annotated[Count, Expect("a revision is a whole number from 0")]


def promote(book: Book, rule_id: str, *, signed_by: str | None, seen: int | None = None) -> PromotionReport:
    """Make a rule active, and narrow the rules that it is an exception to."""
    ctx, policy = book.ctx, book.ctx.policy.rules
    checked(SignedRequest, signed_by=signed_by)

    def decide(tx: Transaction) -> RulebookEdit[PromotionReport]:
        memory = _find(tx, book, rule_id, seen)
        gate, replay = _reports(tx, book, memory)
        now = ctx.now()
        if gate is None or memory.canary is None:
            refuse_stage(memory, "canary", policy, now, gate=gate, replay=replay, canary=memory.canary)
        judged = _judge(book, tx, memory)
        judges = judged.stats.judges
        report = report_promotion(
            rule_in(memory),
            gate,
            replay,
            memory.canary,
            judged.comparison,
            judged.verdict,
            policy,
            report_id=ctx.ids.new("prm"),
            now=now,
            signed_by=signed_by,
            judges={} if set(judges) <= {"own"} else dict(sorted(judges.items())),
            counts_replay=judged.replay is not None,
        )
        active = activated(memory, report, gate, replay, policy, now)
        others = list(_narrowed(book, tx, memory, report, now))
        return RulebookEdit(
            action="promote",
            answer=report,
            rules=[active, *(one for one, _ in others)],
            before={rule_id: memory} | {one.id: find_rule(tx, book.owner, one.id) for one, _ in others},
            drafts=[report_draft("promotion", report), *(draft for _, draft in others)],
            report_id=report.report_id,
            signed_by=signed_by,
            reason=judged.verdict.reasons[0],
        )

    _, report = edit_rulebook(book, decide)
    return report


def _narrowed(
    book: Book, tx: Transaction, memory: StoredMemory, report: PromotionReport, now: str
) -> Iterator[tuple[StoredMemory, Any]]:
    """Narrow the active rules that contradict this one: each must have passed its gate in a smaller place, and is
    changed in the same revision.
    """
    active = [one for one in standing_rules(tx, book.owner) if one.stage == "active"]
    found = consolidate(rule_in(memory), [one for one in active if one.id != memory.id], now=now)
    if found.kind == "refused":
        raise Conflict(f"{memory.id} cannot stand beside what is active: {found.reasons[0]}")
    for cut in found.cuts:
        gate = newest_report(tx, book.owner, cut.rule_id, GateReport, rule_digest(cut.record))
        if gate is None or not gate.passed:
            raise Conflict(
                f"{cut.rule_id} advises the opposite where {memory.id} applies",
                hint=f"gate it as it would be: gate({cut.rule_id!r}, agent, beside={memory.id!r})",
                details={"rule_id": cut.rule_id, "exception": memory.id},
            )
        wide = find_rule(tx, book.owner, cut.rule_id)
        cut_report = report_narrowing(
            cut.record,
            memory.id,
            gate,
            book.ctx.policy.rules,
            report_id=book.ctx.ids.new("prm"),
            now=now,
            signed_by=report.signed_by,
        )
        smaller = narrowed(wide, cut.record, cut_report, gate, book.ctx.policy.rules, now)
        yield smaller, report_draft("promotion", cut_report)


def retire(
    book: Book,
    rule_id: str,
    *,
    reason: str,
    signed_by: str | None,
    seen: int | None = None,
) -> PromotionReport:
    """Take a rule out of force; the report includes the results of its runs."""
    checked(SignedRequest, signed_by=signed_by, reason=reason)
    if not reason.strip():
        raise InvalidInput("say why", path="$.reason")

    def decide(tx: Transaction) -> RulebookEdit[PromotionReport]:
        memory = _find(tx, book, rule_id, seen)
        more: dict[str, Any] = {}
        why = [reason]
        if memory.stage in ("canary", "active"):
            verdict, comparison = verdict_of(book, tx, memory)
            more = {"comparison": comparison.to_wire(), "decision": verdict.claim}
            is_compared = comparison.candidate.n and comparison.baseline.n
            said = verdict.reasons if is_compared else ("no run was left out, so there is nothing to compare",)
            why += [each for each in said if each != reason]
        report = _change_report(book, memory, "retire", why, signed_by, **more)
        gone = retired(memory, report, book.ctx.policy.rules, book.ctx.now())
        return RulebookEdit(
            action="retire",
            answer=report,
            rules=[gone],
            before={rule_id: memory},
            drafts=[report_draft("promotion", report)],
            report_id=report.report_id,
            signed_by=signed_by,
            reason=reason,
        )

    _, report = edit_rulebook(book, decide)
    return report


def roll_back(book: Book, to: int, *, reason: str, signed_by: str | None) -> RulebookRevision:
    """Put an earlier revision in force again, rule by rule, in one transaction."""
    to = checked(RollbackRequest, signed_by=signed_by, to=to, reason=reason).to

    def decide(tx: Transaction) -> RulebookEdit[None]:
        revisions = list_revisions(tx, book.tenant_id, book.owner)
        wanted = plan_rollback(revisions, to)
        if to == 0 and revisions and revisions[0].revision > 1:  # revisions were forgotten: retire all rules
            wanted |= {held.memory.id: 0 for held in list_memories(tx, book.owner, "rule")}
        if not wanted:
            raise Conflict(f"the rulebook stands as in revision {to}", hint="there is nothing to roll back")
        rules: list[StoredMemory] = []
        drafts: list[Any] = []
        before: dict[str, StoredMemory] = {}
        for rule_id, version in wanted.items():
            one = _restored(book, tx, rule_id, version, reason or f"back to revision {to}", signed_by)
            if one is not None:
                before[rule_id], changed, draft = one
                rules.append(changed)
                drafts.append(draft)
        if not rules:
            raise Conflict(f"nothing of revision {to} is left to be restored", hint="its rules were forgotten")
        return RulebookEdit(
            action="rollback",
            answer=None,
            rules=rules,
            before=before,
            drafts=drafts,
            restores=to,
            signed_by=signed_by,
            reason=reason or f"back to revision {to}",
        )

    revision, _ = edit_rulebook(book, decide)
    assert revision is not None
    return revision


def _restored(
    book: Book, tx: Transaction, rule_id: str, version: int, reason: str, signed_by: str | None
) -> tuple[StoredMemory, StoredMemory, Any] | None:
    """The rule as it is, the restored rule, and the report of that; None if it was forgotten, or is out of force."""
    policy, now = book.ctx.policy.rules, book.ctx.now()
    try:
        current = find_rule(tx, book.owner, rule_id)
    except NotFound:
        return None
    then = version_of(tx, rule_id, version) if version else None
    if then is None:
        if current.status in ENDED:
            return None
        report = _change_report(book, current, "rollback", (reason,), signed_by)
        return current, retired(current, report, policy, now), report_draft("promotion", report)
    promoted = _promotion_of(tx, book, then)
    acts, acting = (one.stage in ("canary", "active") for one in (then, current))
    gate_id = None if promoted is None else promoted.gate_report_id
    again = acts and not acting
    report = _change_report(book, then, "rollback", (reason,), signed_by, acts_again=again, gate_report_id=gate_id)
    back = restored(then, current, report, promoted, policy)
    return current, back, report_draft("promotion", report)


def _promotion_of(reader: Reader, book: Book, memory: StoredMemory) -> PromotionReport | None:
    reports = [each for each in list_reports(reader, book.owner, memory.id) if isinstance(each, PromotionReport)]
    return next((each for each in reports if each.report_id == memory.report_id), None)


def _change_report(
    book: Book,
    memory: StoredMemory,
    action: Literal["retire", "rollback"],
    reasons: Sequence[str],
    signed_by: str | None,
    *,
    acts_again: bool = False,
    **more: Any,
) -> PromotionReport:
    """Report why a rule is taken out of force or restored, with the results of its runs."""
    report = report_change(
        rule_in(memory),
        action,
        reasons,
        book.ctx.policy.rules,
        report_id=book.ctx.ids.new("prm"),
        now=book.ctx.now(),
        signed_by=signed_by,
        acts_again=acts_again,
    )
    return report.model_copy(update={key: value for key, value in more.items() if value is not None})


# -- figures ------------------------------------------------------------------------------------------


def publish(book: Book) -> RulebookRevision | None:
    """Write the counted statistics into the acting rules. Selection reads nothing else."""

    def decide(tx: Transaction) -> RulebookEdit[None]:
        rules: list[StoredMemory] = []
        before: dict[str, StoredMemory] = {}
        for memory in [held.memory for held in list_memories(tx, book.owner, "rule")]:
            if memory.stage not in ("canary", "active") or memory.status == "retired":
                continue
            rule = rule_in(memory)
            record: Mapping[str, Any] = published(rule, _stats(book, tx, memory)).to_wire()
            if record != memory.record:
                before[memory.id] = memory
                rules.append(memory.model_copy(update={"version": memory.version + 1, "record": dict(record)}))
        words = f"figures of {len(rules)} rules"
        return RulebookEdit(action="publish", answer=None, rules=rules, before=before, reason=words)

    revision, _ = edit_rulebook(book, decide)
    return revision
