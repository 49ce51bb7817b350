"""Lessons of a bank's handle: read with the runs of tactics and rules, signed, dropped.

A signature and a drop are ordinary plans on a tactic (PIN, RETIRE), so `undo` reverts them. A rule is promoted or
retired by its rulebook, with the rulebook's usual checks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from muniment.core.requests import checked
from muniment.errors import Conflict, InvalidInput, WrongStage
from muniment.learning.banks import lock_bank, write_bank
from muniment.learning.lessons import DROPPED, SIGNED, KeptLesson, LessonBank, find_lesson, lesson_now
from muniment.learning.plans import plan_in
from muniment.learning.records import LessonDecision, LessonUse
from muniment.learning.uses import family_of
from muniment.learning.uses import list_uses as list_lesson_uses
from muniment.rules._statistics import WITH
from muniment.rules.promotion import SignedRequest, promote, retire
from muniment.rules.rulebook import Book, list_uses

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.core.scope import Scope
    from muniment.learning.records import StoredMemory
    from muniment.rules._records import RuleUse
    from muniment.store.context import Context

__all__ = ["drop_lesson", "lesson_bank", "sign_lesson"]


def lesson_bank(ctx: Context, tenant_id: str, owner: str) -> LessonBank:
    """A bank's lessons, with the runs of both tactics and rules."""
    policy = ctx.policy.learn.lessons
    read: dict[str | None, Sequence[LessonUse]] = {}  # by kind of work: one query serves a page of lessons

    def uses_of(reader: Reader, memory: StoredMemory) -> Sequence[LessonUse]:
        if memory.kind == "rule":
            return [_use_of(use) for use in list_uses(reader, owner, memory.id)]
        family = family_of(memory)
        if family not in read:
            read[family] = list_lesson_uses(reader, owner, family, policy.uses_max)
        own = {memory.id, *memory.parents}
        return [use for use in read[family] if use.memory_id in own]

    return LessonBank(ctx, tenant_id, owner, uses_of)


def _use_of(use: RuleUse) -> LessonUse:
    """Convert a rule's run to a run of the corresponding lesson."""
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
    """Sign a lesson so that it stays active. A rule is promoted."""
    if signed_by is None:
        raise InvalidInput("somebody signs", path="$.signed_by", hint="give a name")
    signer = checked(SignedRequest, signed_by=signed_by).signed_by
    bank = lesson_bank(ctx, scope.tenant_id, owner)
    kept = _find(bank, lesson_id)
    if kept.memory is None:
        raise WrongStage(
            f"{kept.id} is the draft of a rule: nobody has tried it",
            path="$.lesson_id",
            hint="submit it to the rulebook, which says what it needs",
        )
    if kept.state.stage == "retired":
        raise WrongStage(
            f"the lesson {kept.id} is retired", path="$.lesson_id", hint="undo the plan that retired it, then sign"
        )
    if kept.kind == "tactic":
        if kept.memory.status == "pinned":
            return _decided(bank, kept)
        return _decided(bank, kept, plan_id=_planned(bank, "PIN", kept.id, (SIGNED, str(signer))))
    if kept.memory.stage == "active":
        return _decided(bank, kept)
    return _decided(bank, kept, report_id=promote(_book(bank), kept.id, signed_by=signer).report_id)


def drop_lesson(
    ctx: Context, scope: Scope, owner: str, lesson_id: Any, *, reason: Any, signed_by: Any
) -> LessonDecision:
    """Retire a lesson's tactic or rule, so that no run receives it."""
    asked = checked(SignedRequest, signed_by=signed_by, reason=reason)
    why = asked.reason.strip()
    if not why:
        raise InvalidInput("say why", path="$.reason")
    bank = lesson_bank(ctx, scope.tenant_id, owner)
    kept = _find(bank, lesson_id)
    if kept.memory is None:
        raise WrongStage(
            f"{kept.id} is the draft of a rule and is handed to nobody: there is nothing to drop",
            path="$.lesson_id",
            hint="it goes with the runs it was drafted from, when they are forgotten",
        )
    if kept.state.stage == "retired":
        return _decided(bank, kept)
    if kept.kind == "tactic":
        return _decided(bank, kept, plan_id=_planned(bank, "RETIRE", kept.id, (DROPPED, why)))
    report = retire(_book(bank), kept.id, reason=asked.reason, signed_by=asked.signed_by)
    return _decided(bank, kept, report_id=report.report_id)


def _find(bank: LessonBank, lesson_id: Any) -> KeptLesson:
    return bank.ctx.engine.read(bank.tenant_id, lambda reader: find_lesson(bank, reader, lesson_id))


def _book(bank: LessonBank) -> Book:
    return Book(bank.ctx, bank.tenant_id, bank.owner)


def _decided(bank: LessonBank, kept: KeptLesson, **told: str) -> LessonDecision:
    return LessonDecision.model_validate({"lesson": lesson_now(bank, kept.id), **told})


def _planned(bank: LessonBank, op: str, memory_id: str, reasons: tuple[str, str]) -> str:
    """Make and apply a plan of one action. It is forgotten with its record, since it holds content."""
    action = {"op": op, "target_store": "ReuseBuffer", "target_ids": [memory_id], "reason_keys": list(reasons)}

    def work(tx: Transaction) -> str:
        lock_bank(tx, bank.owner)
        try:
            plan_id, drafts = plan_in(bank.ctx, tx, bank.owner, [action], sources=(memory_id,))
        except Conflict as error:
            raise Conflict(f"the lesson: {error.message}", path="$.lesson_id", hint=error.hint) from None
        write_bank(bank.ctx, tx, bank.tenant_id, bank.owner, drafts)
        return plan_id

    return bank.ctx.engine.write(bank.tenant_id, work)
