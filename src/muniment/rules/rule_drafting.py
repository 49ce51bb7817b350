"""Rules on their way to their tests: linted, consolidated, submitted, written by a person (RC-18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import InstanceOf

from muniment.contracts.rules import DistillDraft, RuleRecord
from muniment.core.canonical import canonical_bytes, short_id
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.requests import Expect, Request, checked
from muniment.core.scope import bank_level
from muniment.errors import Conflict, InvalidInput, InvalidRecord, Issue, NotFound, TooLarge
from muniment.learning.banks import find_memory, list_memories
from muniment.learning.stored_memory import StoredMemory
from muniment.memory.patches import draft_patch
from muniment.rules.promotion.activation import staged
from muniment.rules.promotion.consolidation import Consolidated, consolidate, rule_of
from muniment.rules.promotion.records import LintFinding
from muniment.rules.promotion.user_rules import user_memory, user_rule
from muniment.rules.rulebook.lint import is_clean, lint_rule
from muniment.rules.rulebook_reading import standing_rules
from muniment.rules.rulebook_writing import Book, RulebookEdit, edit_rulebook, find_rule
from muniment.store.admission import is_id
from muniment.store.injection import has_injection_form
from muniment.store.items import latest
from muniment.store.ledger import DRAFT_MADE
from muniment.store.secrets import find_secret

if TYPE_CHECKING:
    from muniment.core.ports.engine import Transaction
    from muniment.core.scope import RuleType
    from muniment.store.ledger import EntryDraft

__all__ = ["Submitted", "add_user_rule", "lint", "submit"]


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
    return lint_rule(record, book.ctx.policy.rules.lint, book.ctx.counter.count, has_injection_form, find_secret)


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
