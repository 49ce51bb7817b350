"""The rulebook of a bank: reading, linting, submitting, editing and rolling back.

Every change is a revision, written with its reports in one transaction under the bank's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeVar, cast, get_args

from pydantic import InstanceOf

from muniment.contracts.rules import DistillDraft, RegressionTestSpec, RuleRecord
from muniment.core.canonical import canonical_bytes, read_canonical, short_id
from muniment.core.listing import ListQuery, Placed
from muniment.core.policy import PromotePolicy
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import chunked, first, select, stream
from muniment.core.ports.schema import ITEMS
from muniment.core.record import RULECRAFT_VERSION, JsonObject
from muniment.core.requests import Expect, Request, checked
from muniment.core.scope import RuleType, ScopeLevel, bank_level
from muniment.core.text.sentences import words_of
from muniment.errors import Conflict, DuplicateId, InvalidInput, InvalidRecord, Issue, NotFound, TooLarge
from muniment.learning.banks import find_memory, held_of, list_memories, lock_bank, memory_drafts, write_bank
from muniment.learning.keys import expires_at, has_expired, parse_ttl, rule_place_key
from muniment.learning.lessons import page_memories
from muniment.learning.projection import core_name
from muniment.learning.records import RuleStage, StoredMemory
from muniment.memory.patches import draft_patch
from muniment.rules._consolidate import Consolidated, can_hold, consolidate, place_of, rule_of
from muniment.rules._gate import rule_digest
from muniment.rules._lint import is_clean, lint_rule
from muniment.rules._records import (
    GateReport,
    LintFinding,
    PromotionReport,
    ReplayReport,
    RuleAction,
    RulebookChange,
    RulebookRevision,
    RuleUse,
)
from muniment.rules._select import stage_of
from muniment.rules.activation import staged
from muniment.rules.projection import book_id, use_name
from muniment.store.admission import is_id
from muniment.store.injection import has_injection_form
from muniment.store.items import Item, digest_name, latest, select_items
from muniment.store.ledger import DRAFT_MADE, RULE_REPORTED, RULE_TESTED, RULEBOOK_CHANGED
from muniment.store.lists.seeking import each_made, read_named, read_versions, seek
from muniment.store.secrets import find_secret

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader, Transaction
    from muniment.store.context import Context
    from muniment.store.ledger import EntryDraft


# == rulebook reading =================================================================================================

Report = GateReport | ReplayReport | PromotionReport
ENDED = ("retired", "pruned")
"""Statuses of rules taken out."""
_REPORTS: dict[str, type[Report]] = {"gate": GateReport, "replay": ReplayReport, "promotion": PromotionReport}


class RuleTest(NamedTuple):
    """A stored test of a rule."""

    spec: RegressionTestSpec
    is_micro: bool


class _Version(NamedTuple):
    version: int


class _State(NamedTuple):
    id: str
    version: int
    status: str
    receipt_id: str | None


class _Body(NamedTuple):
    id: str
    body: str | None


# -- the book -----------------------------------------------------------------------------------------


def revision_of(reader: Reader, tenant_id: str, owner: str) -> int:
    """The number of the revision in force; 0 if nothing was ever changed."""
    where: tuple[Condition, ...] = (("id", "=", book_id(tenant_id, owner)),)
    newest = first(reader, ITEMS, where, into=_Version, order=("id", "version"), descending=True)
    return 0 if newest is None else newest.version


def list_revisions(reader: Reader, tenant_id: str, owner: str, *, after: int = 0) -> list[RulebookRevision]:
    """The later revisions, oldest first; those of a forgotten bank are gone."""
    where: tuple[Condition, ...] = (("id", "=", book_id(tenant_id, owner)), ("version", ">", after))
    items = select_items(reader, where)
    return [RulebookRevision.from_wire(item.plain()["revision"]) for item in items if item.body is not None]


def versions_of(reader: Reader, rule_id: str) -> Iterator[StoredMemory]:
    """The remaining versions of a rule, oldest first."""
    for item in select_items(reader, (("id", "=", rule_id),)):
        if item.body is not None:
            yield held_of(item).memory


def why_taken_out(reader: Reader, tenant_id: str, rule_id: str) -> str | None:
    """The revision that took a rule out of force, and its reason; None for one that is in force or missing."""
    newest = latest(reader, rule_id)
    if newest is None or newest.kind != "rule" or newest.body is None or newest.user_id is None:
        return None
    rule = held_of(newest).memory
    if rule.status not in ENDED and rule.stage in (None, "canary", "active"):
        return None
    changed = (
        revision
        for revision in reversed(list_revisions(reader, tenant_id, newest.user_id))
        if rule_id in {change.rule_id for change in revision.changes}
    )
    last = next(changed, None)
    if last is None:
        return None
    signed = f", signed by {last.signed_by}" if last.signed_by else ""
    reason = f": {last.reason}" if last.reason else ""
    return f"{last.action} in revision {last.revision} of the rulebook{signed}{reason}"


# -- candidates ---------------------------------------------------------------------------------------


def standing_rules(reader: Reader, owner: str) -> list[StoredMemory]:
    """The rules of a bank that were not taken out, by id. Bodies of others, and of old versions, are not read."""
    where: tuple[Condition, ...] = (("kind", "=", "rule"), ("user_id", "=", owner))
    newest: dict[str, tuple[int, bool]] = {}
    for id_, version, status, receipt_id in stream(reader, ITEMS, where, into=_State, order=("id", "version")):
        newest[id_] = version, status not in ENDED and receipt_id is None
    wanted = [(id_, version) for id_, (version, stands) in newest.items() if stands]
    found: list[StoredMemory] = []
    for portion in chunked(wanted):
        asked = dict(portion)
        numbers = tuple(sorted(set(asked.values())))
        exact: tuple[Condition, ...] = (("id", "in", tuple(asked)), ("version", "in", numbers))
        items = select_items(reader, exact)
        found += [held_of(item).memory for item in items if asked[item.id] == item.version]
    return found


# -- counts, tests and reports ------------------------------------------------------------------------


class UseRows(NamedTuple):
    """The rows of a rule's uses: their number, the last one, and a digest of all."""

    n: int = 0
    last: tuple[str, str] = ("", "")
    """Instant and id."""
    digest: str = ""
    is_extension: bool = False
    """The rows read before are unchanged, and only new runs follow them."""


class _UseKey(NamedTuple):
    created_at: str
    id: str
    version: int
    receipt_id: str | None


def use_rows(reader: Reader, owner: str, rule_id: str, before: UseRows | None = None) -> UseRows:
    """Read the rows of a rule's uses by their keys alone, without bodies."""
    hashed, n, last = sha256(), 0, ("", "")
    is_extension = before is not None and before.n == 0
    order = ("created_at", "id", "version")
    for key in stream(reader, ITEMS, _uses_where(owner, rule_id), into=_UseKey, order=order):
        is_extension &= before is None or n < before.n or (key.version == 1 and key.receipt_id is None)
        hashed.update(repr(tuple(key)).encode("utf-8", "surrogatepass"))
        n, last = n + 1, (key.created_at, key.id)
        if before is not None and n == before.n:
            is_extension = hashed.hexdigest() == before.digest
    return UseRows(n, last, hashed.hexdigest(), is_extension)


def _uses_where(owner: str, rule_id: str) -> tuple[Condition, ...]:
    return ("kind", "=", "rule_use"), ("user_id", "=", owner), ("name", "=", use_name(rule_id))


class _UseBody(NamedTuple):
    created_at: str
    id: str
    body: str | None


def list_uses(reader: Reader, owner: str, rule_id: str, *, after: UseRows | None = None) -> list[RuleUse]:
    """The judged runs of a rule, oldest first; skips the `after` rows read before."""
    last = ("", "") if after is None else after.last
    where: tuple[Condition, ...] = (*_uses_where(owner, rule_id), ("created_at", ">=", last[0]))
    order = ("created_at", "id", "version")
    bodies: dict[str, str] = {}
    for at, id_, body in select(reader, ITEMS, where, into=_UseBody, order=order, descending=True):
        if body is not None and (at, id_) > last:
            bodies.setdefault(id_, body)  # the newest version of each
    uses = [RuleUse.from_wire(cast("Any", read_canonical(body))["use"]) for body in bodies.values()]
    return sorted(uses, key=lambda use: (use.at, use.trace_id))


def list_tests(reader: Reader, owner: str, rule_id: str) -> list[RuleTest]:
    found = {item.id: item.plain() for item in _of_rule(reader, owner, "rule_test", f"test:{rule_id}")}
    return [RuleTest(RegressionTestSpec.from_wire(body["spec"]), body["is_micro"]) for body in found.values()]


def test_ids(memory: StoredMemory) -> frozenset[str]:
    """The ids of a rule's current tests; earlier generated tests may have been replaced."""
    tests = memory.record.get("tests")
    lists = (
        [tests.get(kind) for kind in ("regression_tests", "counterexample_tests")] if isinstance(tests, dict) else []
    )
    return frozenset(str(name) for named in lists if isinstance(named, list) for name in named)


def list_reports(reader: Reader, owner: str, rule_id: str) -> list[Report]:
    """The reports on a rule, oldest first."""
    bodies = [item.plain() for item in _of_rule(reader, owner, "rule_report", f"report:{rule_id}")]
    return [report_of(body) for body in bodies]


def report_of(body: dict[str, Any]) -> Report:
    return _REPORTS[body["kind"]].from_wire(body["report"])


def newest_report(reader: Reader, owner: str, rule_id: str, kind: type[Report], digest: str) -> Any:
    """The last report of a kind on the rule in its current form; None if there is none."""
    reports = [each for each in list_reports(reader, owner, rule_id) if isinstance(each, kind)]
    fitting = [each for each in reports if each.rule_digest == digest]
    return fitting[-1] if fitting else None


def _of_rule(reader: Reader, owner: str, kind: str, name: str) -> Iterator[Item]:
    where: tuple[Condition, ...] = (("kind", "=", kind), ("user_id", "=", owner), ("name", "=", digest_name(name)))
    for item in select_items(reader, where, order=("created_at", "id", "version")):
        if item.body is not None:
            yield item


# == rulebook writing =================================================================================================

A = TypeVar("A")


class Book(NamedTuple):
    """The rulebook of a bank, and its store."""

    ctx: Context
    tenant_id: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RulebookEdit(Generic[A]):
    """The planned changes of a rulebook. Without rules there is no revision: a report alone changes nothing."""

    action: RuleAction
    answer: A
    """The value returned to the caller once the edit is written."""
    rules: Sequence[StoredMemory] = ()
    """The next versions of the rules that change."""
    before: Mapping[str, StoredMemory | None] = field(default_factory=dict)
    """The current versions of the rules that change, by id; None for a new rule."""
    drafts: Sequence[EntryDraft] = ()
    """Reports and tests, written before the rules that depend on them."""
    report_id: str | None = None
    """The report that justifies the revision."""
    restores: int | None = None
    """The revision put in force again."""
    signed_by: str | None = None
    reason: str = ""


def find_rule(reader: Reader, owner: str, rule_id: Any) -> StoredMemory:
    """Find a rule of this bank, whatever its status."""
    held = find_memory(reader, (owner,), rule_id) if isinstance(rule_id, str) else None
    if held is None or held.memory.kind != "rule":
        raise NotFound(f"no rule {rule_id!r:.80} in this rulebook", path="$.rule_id")
    return held.memory


def edit_rulebook(book: Book, decide: Callable[[Transaction], RulebookEdit[A]]) -> tuple[RulebookRevision | None, A]:
    """Decide the changes under the bank's lock, and write them.

    Returns the new revision, None if no rule changed, and the edit's answer.
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
        for rule in edit.rules:  # if a projection refused one, the revision would be false
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
    """The entry of a report, with its rule and the runs it names as sources."""
    said = {"id": report.report_id, "kind": kind, "report": report.to_wire(), "sources": [report.rule_id, *sources]}
    return draft_patch(RULE_REPORTED, "assistant", said)


def spec_draft(rule_id: str, spec: RegressionTestSpec, is_micro: bool, sources: Sequence[str] = ()) -> EntryDraft:
    said = {"id": spec.test_id, "rule_id": rule_id, "spec": spec.to_wire(), "is_micro": is_micro}
    return draft_patch(RULE_TESTED, "assistant", said | {"sources": [rule_id, *sources]})


# == user rules =======================================================================================================


def user_rule(
    rule_id: str,
    body: str,
    *,
    now: str,
    type_: RuleType = "StrategyRule",
    title: str | None = None,
    applicability: JsonObject | None = None,
) -> RuleRecord:
    """A person's rule as a record. Raises `InvalidInput` if it is empty or applies nowhere."""
    if not body.strip():
        raise InvalidInput("a rule that says nothing", path="$.body")
    rule = RuleRecord.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "rule_id": rule_id,
            "version": "1",
            "type": type_,
            "status": "temporary",
            **({} if title is None else {"title": title}),
            "body": body,
            "applicability": applicability or {},
            "priority": {"guardrail_first": False},
            "evidence": {},
            "tests": {"regression_tests": [], "counterexample_tests": []},
            "metrics": {},
            "lifecycle": {"created_at": now, "updated_at": now},
        }
    )
    if not can_hold(place_of(rule.applicability)):
        raise InvalidInput("its conditions contradict each other", path="$.applicability.predicates")
    return rule


def user_memory(
    rule: RuleRecord,
    existing: Sequence[StoredMemory],
    *,
    lint: Sequence[LintFinding],
    policy: PromotePolicy,
    level: ScopeLevel,
    now: str,
    ttl: str | None = None,
) -> StoredMemory:
    """Check that a rule may be added, and return it as the bank stores it. `existing` are the bank's rules."""
    _check_record(rule)
    errors = [Issue(one.path, one.message, one.code) for one in lint if one.severity == "error"]
    if errors:
        raise InvalidRecord(f"the rule {rule.rule_id!r} may not be added", errors)
    if any(memory.id == rule.rule_id for memory in existing):
        raise DuplicateId(
            f"there is a rule {rule.rule_id!r} already", hint="rules of this layer are added, never changed"
        )
    live = [one for one in existing if one.layer == "user" and _is_live(one, now)]
    if len(live) >= policy.user_rules_max:
        raise TooLarge(f"{len(live)} submitted rules are in force", hint=f"at most {policy.user_rules_max}: retire one")
    for memory in live:
        if _same(rule, RuleRecord.from_wire(memory.record)):
            raise Conflict(
                f"{memory.id} says so already", hint="wait until it ends, or retire it", details={"id": memory.id}
            )
    until = expires_at(parse_ttl(policy.user_ttl if ttl is None else ttl), now)
    if until is None:
        raise InvalidInput("a rule of a person's ends at a time", path="$.ttl", hint="hours:6 or days:14")
    return StoredMemory(
        id=rule.rule_id,
        kind="rule",
        level=level,
        version=1,
        record=rule.to_wire(),
        status="temporary",
        created_at=now,
        expires_at=until,
        reason_keys=("user_rule",),
        layer="user",
    )


def check_user_change(before: StoredMemory | None, after: StoredMemory) -> None:
    """Allow adding, retiring, and restoring by a rollback, without changes to the rule; raise `Conflict` otherwise."""
    layers = {after.layer} if before is None else {before.layer, after.layer}
    if "user" not in layers:
        return
    if before is not None and before.layer != after.layer:
        raise Conflict(f"{after.id} would change its layer", hint="submit what it says as a draft instead")
    rule = RuleRecord.from_wire(after.record)
    _check_record(rule)
    if after.expires_at is None or (after.stage is not None and after.stage != "retired"):
        raise Conflict(
            f"{after.id} would outlive its time or be staged", hint="a submitted rule has a TTL and no stage"
        )
    if "active" in (after.status, rule.status):
        raise Conflict(f"{after.id} would be an active rule", hint="only promotion makes those, of learned rules")
    if before is None:
        return
    same = (
        rule_digest(RuleRecord.from_wire(before.record)) == rule_digest(rule) and before.expires_at == after.expires_at
    )
    if not same:
        raise Conflict(f"{after.id} would be changed", hint="rules of this layer are added and retired, never changed")


def _check_record(rule: RuleRecord) -> None:
    if rule.status == "active" or (rule.priority is not None and rule.priority.guardrail_first):
        raise InvalidInput(
            f"{rule.rule_id!r} would stand as a system guard", path="$.priority", hint="a submitted rule stands inline"
        )


def _is_live(memory: StoredMemory, now: str) -> bool:
    return memory.status not in ("retired", "pruned") and not has_expired(memory, now)


def _same(one: RuleRecord, other: RuleRecord) -> bool:
    places = place_of(one.applicability) == place_of(other.applicability)
    return places and words_of(one.body) == words_of(other.body)


# == rule drafting ====================================================================================================


class Submitted(NamedTuple):
    """The result of submitting a draft."""

    kind: str
    """new, merged, split"""
    rule: StoredMemory
    reasons: tuple[str, ...]
    lint: tuple[LintFinding, ...]
    narrowed: tuple[str, ...] = ()
    """Rules that this one is an exception to; they must be narrowed before it can be promoted."""

    @property
    def id(self) -> str:
        return self.rule.id


# -- lint ---------------------------------------------------------------------------------------------


def lint(book: Book, rule: Any) -> tuple[LintFinding, ...]:
    """Lint a rule, given as a record, as plain data or by its id."""
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
    """Consolidate a draft with the rules of the book; a refused draft changes nothing."""
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
    """The rule that the draft went into, and the rules it cuts; an active one is cut on promotion."""
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
    """The next version of a rule with another record, in the same stage."""
    united = tuple(dict.fromkeys((*held.sources, *sources)))
    status = memory.record.get("status", "temporary")
    wire = record.to_wire() | {"status": status}
    return memory.model_copy(update={"version": held.version + 1, "record": wire, "sources": united})


def _kept(draft: DistillDraft) -> EntryDraft:
    said = {"id": draft.draft_id, "draft": draft.to_wire(), "sources": list(draft.source_trace_ids)}
    return draft_patch(DRAFT_MADE, "assistant", said)


def _check_draft(book: Book, draft: DistillDraft) -> None:
    """Check that the stored parts of a draft hold no secret and are bounded in size (LG-10)."""
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
    """A person's own rule."""

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
    """Add a person's rule, in its own layer."""
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


# == rollback =========================================================================================================

RETIRE = 0
"""Replaces a version if the rule did not exist."""


def plan_rollback(revisions: Sequence[RulebookRevision], to: int) -> dict[str, int]:
    """By rule, the version whose content must be restored, 0 if the rule must be retired; empty if nothing changes."""
    states = _states(revisions)
    then, current = _state(revisions, states, to), states[-1]
    rules = sorted(then.keys() | current.keys())
    return {rule: then.get(rule, RETIRE) for rule in rules if then.get(rule, RETIRE) != current.get(rule, RETIRE)}


def state_at(revisions: Sequence[RulebookRevision], revision: int) -> Mapping[str, int]:
    """By rule, the version that introduced the content in force at the revision; rules that did not exist are
    left out.
    """
    state = _state(revisions, _states(revisions), revision)
    return {rule: version for rule, version in state.items() if version != RETIRE}


def _state(revisions: Sequence[RulebookRevision], states: Sequence[dict[str, int]], number: int) -> dict[str, int]:
    if not 0 <= number < len(states):
        raise NotFound(f"the rulebook has no revision {number}", hint=f"0, the empty one, to {len(states) - 1}")
    first = revisions[0].revision if revisions else 1
    if 0 < number < first:
        raise NotFound(f"revision {number} was forgotten", hint=f"0, the empty one, or {first} to {len(states) - 1}")
    return states[number]


def _states(revisions: Sequence[RulebookRevision]) -> list[dict[str, int]]:
    """The state after each revision, starting with the empty one. Raises `InvalidInput` for an inconsistent history.

    If the first revisions were forgotten, a rule is taken to have been as the first known change found it.
    """
    first = revisions[0].revision if revisions else 1
    states: list[dict[str, int]] = [{} for _ in range(first)]
    if first > 1:
        states[-1] = _versions_before(revisions)
    written: dict[str, int] = {}
    for number, revision in enumerate(revisions, first):
        if revision.revision != number:
            raise InvalidInput(
                f"revision {revision.revision} stands where {number} should", hint="all of them, in order"
            )
        state = dict(states[-1])
        restored = _restored(revision, states)
        for change in revision.changes:
            if change.after <= change.before or change.before < written.get(change.rule_id, 0):
                raise InvalidInput(
                    f"revision {number} takes {change.rule_id} from version {change.before} to {change.after}",
                    hint="versions of a rule only grow",
                )
            written[change.rule_id] = change.after
            state[change.rule_id] = change.after if restored is None else restored.get(change.rule_id, RETIRE)
        states.append(state)
    return states


def _versions_before(revisions: Sequence[RulebookRevision]) -> dict[str, int]:
    """By rule, the version before its first change."""
    found: dict[str, int] = {}
    for change in (change for revision in revisions for change in revision.changes):
        found.setdefault(change.rule_id, change.before)
    return {rule: version for rule, version in found.items() if version != RETIRE}


def _restored(revision: RulebookRevision, states: Sequence[dict[str, int]]) -> dict[str, int] | None:
    """The state restored by a rollback; None for any other revision."""
    if revision.restores is None:
        return None
    if revision.restores >= len(states):
        raise InvalidInput(f"revision {revision.revision} restores {revision.restores}, which came later")
    return states[revision.restores]


# == listing ==========================================================================================================

T = TypeVar("T")


def list_rules(book: Book, *, stage: RuleStage | None, include_all: bool) -> list[StoredMemory]:
    check_stage(stage)

    def read(reader: Reader) -> list[StoredMemory]:
        if stage == "retired" or (stage is None and include_all):
            return [held.memory for held in list_memories(reader, book.owner, "rule")]
        return standing_rules(reader, book.owner)

    found = book.ctx.engine.read(book.tenant_id, read)
    if stage is not None:
        found = [memory for memory in found if stage_of(memory) == stage]
    return sorted(found, key=lambda memory: (memory.created_at, memory.id))


def check_stage(stage: str | None) -> None:
    if stage is not None and stage not in get_args(RuleStage):
        raise InvalidInput("no such stage", path="$.stage", hint=", ".join(get_args(RuleStage)))


def page_revisions(book: Book, asked: ListQuery) -> Iterator[Placed[RulebookRevision]]:
    """Page through every change of the rulebook."""
    make = each_made(lambda item: RulebookRevision.from_wire(item.plain()["revision"]))
    return seek(book.ctx, book.tenant_id, read_versions(book_id(book.tenant_id, book.owner), make), asked)


def page_rules(book: Book, stage: str | None, asked: ListQuery, *, include_all: bool) -> Iterator[Placed[StoredMemory]]:
    """Page through the rules: of one stage, or all but the retired, or all."""
    check_stage(stage)
    include_all = stage == "retired" or (stage is None and include_all)
    placed = page_memories(book.ctx, book.tenant_id, book.owner, ("rule",), asked, include_all=include_all)
    return _meant_of(placed, lambda rule: stage in (None, stage_of(rule)), asked)


def _meant_of(placed: Iterable[Placed[T]], is_meant: Callable[[T], bool], asked: ListQuery) -> Iterator[Placed[T]]:
    """Filter; after a batch without matches, yields the place of the last row with no item, so that paging can
    continue.
    """
    for looked, each in enumerate(placed, 1):
        if each.value is not None and is_meant(each.value):
            yield each
        elif each.value is None or looked == asked.looked_max:
            yield Placed(each.place, None)
            return


def page_history(book: Book, rule_id: str, asked: ListQuery) -> Iterator[Placed[StoredMemory]]:
    """Page through the remaining versions of a rule."""
    make = each_made(lambda item: held_of(item).memory)
    return seek(book.ctx, book.tenant_id, read_versions(rule_id, make), asked)


def page_tests(book: Book, rule_id: str, asked: ListQuery) -> Iterator[Placed[RuleTest]]:
    def made(item: Item) -> RuleTest:
        body = item.plain()
        return RuleTest(RegressionTestSpec.from_wire(body["spec"]), body["is_micro"])

    named = test_ids(book.ctx.engine.read(book.tenant_id, lambda reader: find_rule(reader, book.owner, rule_id)))
    placed = _named(book, "rule_test", f"test:{rule_id}", made, asked)
    return _meant_of(placed, lambda test: test.spec.test_id in named, asked)


def page_reports(book: Book, rule_id: str, asked: ListQuery) -> Iterator[Placed[Report]]:
    return _named(book, "rule_report", f"report:{rule_id}", lambda item: report_of(item.plain()), asked)


def _named(book: Book, kind: str, name: str, made: Callable[[Item], T], asked: ListQuery) -> Iterator[Placed[T]]:
    read = read_named(kind, (("user_id", "=", book.owner),), digest_name(name), each_made(made))
    return seek(book.ctx, book.tenant_id, read, asked)
