"""How a rulebook is edited: reports, rules and the revision that names them go into one transaction under the bank's
lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from muniment.errors import Conflict, NotFound
from muniment.learning.banks import find_memory, lock_bank, memory_drafts, write_bank
from muniment.learning.keys import rule_place_key
from muniment.learning.projection import core_name
from muniment.memory.patches import draft_patch
from muniment.rules.projection import book_id
from muniment.rules.promotion.records import RuleAction, RulebookChange, RulebookRevision
from muniment.rules.rulebook_reading import Report, revision_of
from muniment.store.ledger import RULE_REPORTED, RULE_TESTED, RULEBOOK_CHANGED

if TYPE_CHECKING:
    from collections.abc import Callable

    from muniment.contracts.rules import RegressionTestSpec
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.learning.stored_memory import StoredMemory
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft

__all__ = ["Book", "RulebookEdit", "edit_rulebook", "find_rule", "report_draft", "spec_draft"]

A = TypeVar("A")


class Book(NamedTuple):
    """The rulebook of a bank, and the store it is in."""

    ctx: Context
    tenant_id: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RulebookEdit(Generic[A]):
    """What is to be written into a rulebook. Without rules there is no revision: a report alone changes nothing."""

    action: RuleAction
    answer: A
    """What the caller of the edit is answered once it is written."""
    rules: Sequence[StoredMemory] = ()
    """The rules that change, in their next versions."""
    before: Mapping[str, StoredMemory | None] = field(default_factory=dict)
    """By id, the rules that change, as they stand; a new rule has none."""
    drafts: Sequence[EntryDraft] = ()
    """Reports and tests, which are written before the rules that lean on them."""
    report_id: str | None = None
    """The report that the revision leans on."""
    restores: int | None = None
    """The revision that is put in force again."""
    signed_by: str | None = None
    reason: str = ""


def find_rule(reader: Reader, owner: str, rule_id: Any) -> StoredMemory:
    """A rule of this bank, whatever its standing."""
    held = find_memory(reader, (owner,), rule_id) if isinstance(rule_id, str) else None
    if held is None or held.memory.kind != "rule":
        raise NotFound(f"no rule {rule_id!r:.80} in this rulebook", path="$.rule_id")
    return held.memory


def edit_rulebook(book: Book, decide: Callable[[Transaction], RulebookEdit[A]]) -> tuple[RulebookRevision | None, A]:
    """Decide under the bank's lock what is to be written, and write it.

    Answers the new revision, None where no rule changed, and the answer of the edit.
    """
    ctx, tenant_id, owner = book

    def work(tx: Transaction) -> tuple[RulebookRevision | None, A]:
        lock_bank(tx, owner)
        edit = decide(tx)
        revision = _revision(book, tx, edit) if edit.rules else None
        drafts = [*edit.drafts, *memory_drafts(edit.rules, edit.before)]
        if revision is not None:
            said = {"id": book_id(tenant_id, owner), "revision": revision.to_wire()}
            drafts.append(draft_patch(RULEBOOK_CHANGED, "assistant", said))
        if drafts:
            write_bank(ctx, tx, tenant_id, owner, drafts)
        for rule in edit.rules:  # a projection that refused one would leave a revision that is not true
            if find_rule(tx, owner, rule.id).version != rule.version:
                raise Conflict(f"the rule {rule.id} was not taken as it is", hint="read it again")
        return revision, edit.answer

    return ctx.engine.write(tenant_id, work)


def _revision(book: Book, tx: Transaction, edit: RulebookEdit[Any]) -> RulebookRevision:
    names: dict[str, None] = {}
    changes = []
    for rule in edit.rules:
        before = edit.before.get(rule.id)
        changes.append(
            RulebookChange(rule_id=rule.id, before=0 if before is None else before.version, after=rule.version)
        )
        for held in (before, rule):
            name = None if held is None else core_name(rule_place_key(held.record))
            names |= {} if name is None else {name: None}
    plain: dict[str, Any] = {
        "revision": revision_of(tx, book.tenant_id, book.owner) + 1,
        "action": edit.action,
        "changes": changes,
        "names": list(names),
        "reason": edit.reason,
        "created_at": book.ctx.now(),
    }
    optional = {"report_id": edit.report_id, "restores": edit.restores, "signed_by": edit.signed_by}
    return RulebookRevision.model_validate(plain | {key: value for key, value in optional.items() if value is not None})


def report_draft(kind: str, report: Report, sources: Sequence[str] = ()) -> EntryDraft:
    """The entry of a report; it goes with the rule it is about, and with the runs it names."""
    said = {"id": report.report_id, "kind": kind, "report": report.to_wire(), "sources": [report.rule_id, *sources]}
    return draft_patch(RULE_REPORTED, "assistant", said)


def spec_draft(rule_id: str, spec: RegressionTestSpec, is_micro: bool, sources: Sequence[str] = ()) -> EntryDraft:
    said = {"id": spec.test_id, "rule_id": rule_id, "spec": spec.to_wire(), "is_micro": is_micro}
    return draft_patch(RULE_TESTED, "assistant", said | {"sources": [rule_id, *sources]})
