"""What a bank's handle does with lessons: shown with the runs of tactics and of rules, signed, dropped.

A signature and a drop are ordinary plans on a tactic (PIN, RETIRE), so that `undo` takes them back. What is kept as a
rule alone is promoted or retired by its rulebook, which asks what it always asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from muniment.core.requests import checked
from muniment.errors import Conflict, InvalidInput, WrongStage
from muniment.learning.banks import lock_bank, write_bank
from muniment.learning.lesson_state import LessonUse
from muniment.learning.lessons.effects import effect_of
from muniment.learning.lessons.records import LessonDecision
from muniment.learning.lessons.uses import family_of
from muniment.learning.lessons.uses import list_uses as list_lesson_uses
from muniment.learning.lessons.view import DROPPED, SIGNED, Difference, Kin, state_of
from muniment.learning.listing import LessonBank, find_kin, lesson_now
from muniment.learning.plans import plan_in
from muniment.rules._statistics import WITH
from muniment.rules.promotion import SignedRequest, promote, retire
from muniment.rules.rulebook import Book, list_uses

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.learning.stored_memory import StoredMemory
    from muniment.rules._records import RuleUse
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft

__all__ = ["drop_lesson", "lesson_bank", "sign_lesson"]

_CONFIDENCE = 0.95


def lesson_bank(ctx: Context, tenant_id: str, owner: str) -> LessonBank:
    """A bank's lessons, with the runs of both rooms."""
    policy = ctx.policy.learn.lessons
    read: dict[str | None, Sequence[LessonUse]] = {}  # by kind of work: one question answers for a page of its lessons

    def uses_of(reader: Reader, memory: StoredMemory) -> Sequence[LessonUse]:
        if memory.kind == "rule":
            return [_use_of(use) for use in list_uses(reader, owner, memory.id)]
        family = family_of(memory)
        if family not in read:
            read[family] = list_lesson_uses(reader, owner, family, policy.uses_max)
        own = {memory.id, *memory.parents}
        return [use for use in read[family] if use.memory_id in own]

    def difference_of(_memory: StoredMemory, uses: Sequence[LessonUse]) -> Difference | None:
        effect = effect_of(uses, policy)
        return None if effect.difference is None else Difference(effect.difference, *effect.bounds(_CONFIDENCE))

    return LessonBank(ctx, tenant_id, owner, uses_of, difference_of)


def _use_of(use: RuleUse) -> LessonUse:
    """A run of a rule as a run of the lesson that it is kept as."""
    plain: dict[str, Any] = {
        "memory_id": use.rule_id,
        "trace_id": use.trace_id,
        "arm": "had" if use.arm in WITH else "held_out",
        "passed": use.passed,
        "cost": use.cost,
        "at": use.at,
    }
    return LessonUse.model_validate(plain if use.x_digest is None else plain | {"task": use.x_digest})


# -- signing and dropping -----------------------------------------------------------------------------


def sign_lesson(ctx: Context, scope: Scope, owner: str, lesson_id: Any, *, signed_by: Any) -> LessonDecision:
    """A person answers for a lesson: it stays active. What is kept as a rule alone is promoted."""
    if signed_by is None:
        raise InvalidInput("somebody signs", path="$.signed_by", hint="give a name")
    signer = checked(SignedRequest, signed_by=signed_by).signed_by
    bank = lesson_bank(ctx, scope.tenant_id, owner)
    kin = _kin(bank, lesson_id)
    tactic, rule = kin.tactic, kin.rule
    if tactic is not None and state_of(tactic).stage != "retired":
        if tactic.memory.status == "pinned":
            return _decided(bank, kin)
        return _decided(bank, kin, plan_id=_planned(bank, "PIN", tactic.memory.id, (SIGNED, str(signer))))
    if rule is not None and state_of(rule).stage != "retired":
        if rule.memory.stage == "active":
            return _decided(bank, kin)
        report = promote(_book(bank), rule.memory.id, signed_by=signer)
        return _decided(bank, kin, report_id=report.report_id)
    if kin.draft is not None and not kin.kept:
        raise WrongStage(
            f"{kin.draft.id} is the draft of a rule: nobody has tried it",
            path="$.lesson_id",
            hint="submit it to the rulebook, which says what it needs; or wait until runs have tried it",
        )
    raise WrongStage(
        f"the lesson {kin.lesson_id} is retired", path="$.lesson_id", hint="undo the plan that retired it, then sign"
    )


def drop_lesson(
    ctx: Context, scope: Scope, owner: str, lesson_id: Any, *, reason: Any, signed_by: Any
) -> LessonDecision:
    """Nobody is handed a lesson any more: its tactic and its rule are retired, whichever there are."""
    asked = checked(SignedRequest, signed_by=signed_by, reason=reason)
    if not asked.reason.strip():
        raise InvalidInput("say why", path="$.reason")
    bank = lesson_bank(ctx, scope.tenant_id, owner)
    kin = _kin(bank, lesson_id)
    told: dict[str, str] = {}
    tactic, rule = (
        None if each is None or state_of(each).stage == "retired" else each for each in (kin.tactic, kin.rule)
    )
    why = DROPPED, asked.reason.strip()
    if rule is not None:

        def without_tactic(tx: Transaction) -> Sequence[EntryDraft]:
            """Both go, or neither: a crash between them would leave half of a lesson handed out."""
            if tactic is None:
                return ()
            told["plan_id"], drafts = _plan(bank, tx, "RETIRE", tactic.memory.id, why)
            return drafts

        report = retire(
            _book(bank), rule.memory.id, reason=asked.reason, signed_by=asked.signed_by, beside=without_tactic
        )
        told["report_id"] = report.report_id
    elif tactic is not None:
        told["plan_id"] = _planned(bank, "RETIRE", tactic.memory.id, why)
    if not kin.kept:
        raise WrongStage(
            f"{kin.lesson_id} is the draft of a rule and is handed to nobody: there is nothing to drop",
            path="$.lesson_id",
            hint="it goes with the runs it was drafted from, when they are forgotten",
        )
    return _decided(bank, kin, **told)


def _kin(bank: LessonBank, lesson_id: Any) -> Kin:
    return bank.ctx.engine.read(bank.tenant_id, lambda reader: find_kin(bank, reader, lesson_id))


def _book(bank: LessonBank) -> Book:
    return Book(bank.ctx, bank.tenant_id, bank.owner)


def _decided(bank: LessonBank, kin: Kin, **told: str) -> LessonDecision:
    return LessonDecision.model_validate({"lesson": lesson_now(bank, kin.lesson_id), **told})


def _plan(
    bank: LessonBank, tx: Transaction, op: str, memory_id: str, reasons: tuple[str, str]
) -> tuple[str, Sequence[EntryDraft]]:
    """A plan of one action, made and carried out; it is forgotten with the record it is about, since it holds words."""
    action = {"op": op, "target_store": "ReuseBuffer", "target_ids": [memory_id], "reason_keys": list(reasons)}
    try:
        return plan_in(bank.ctx, tx, bank.owner, [action], sources=(memory_id,))
    except Conflict as error:
        raise Conflict(f"the lesson: {error.message}", path="$.lesson_id", hint=error.hint) from None


def _planned(bank: LessonBank, op: str, memory_id: str, reasons: tuple[str, str]) -> str:
    """Such a plan in a transaction of its own; its id."""

    def work(tx: Transaction) -> str:
        lock_bank(tx, bank.owner)
        plan_id, drafts = _plan(bank, tx, op, memory_id, reasons)
        write_bank(bank.ctx, tx, bank.tenant_id, bank.owner, drafts)
        return plan_id

    return bank.ctx.engine.write(bank.tenant_id, work)
