"""The rulebook's items, projected from entries: revisions, selections, uses, reports, tests. Pure.

An acting rule is projected only if its report leads to a gate passed in its current form: the promotion's report if it
is active, the gate's if it is on trial. Foreign entries that merely call a rule active have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muniment.contracts.rules import RuleRecord
from muniment.core.canonical import short_id
from muniment.core.scope import is_bank
from muniment.errors import Conflict, InvalidInput, InvalidRecord
from muniment.learning.projection import held_record, named_id, project_event_log, project_memory
from muniment.learning.records import StoredMemory
from muniment.rules._gate import rule_digest
from muniment.runs.fold import change_of, erased, sources_named
from muniment.store.derivation import PATCHES, Projections, of_patches
from muniment.store.items import Change, Item, digest_name
from muniment.store.ledger import (
    MEMORY_KEPT,
    RULE_REPORTED,
    RULE_TESTED,
    RULEBOOK_CHANGED,
    RULES_SELECTED,
    RUN_LOGGED,
    LedgerEntry,
)

if TYPE_CHECKING:
    from muniment.contracts.runs import EventLog
    from muniment.core.ports.schema import ItemRow
    from muniment.learning.records import RuleArm
    from muniment.rules._records import RuleUse


# == projection =======================================================================================================

Lookup = Callable[[str], Item | None]


def book_id(tenant_id: str, owner: str) -> str:
    """The id of the item whose versions are the revisions of a bank's rulebook."""
    return short_id("book", [tenant_id, owner])


def use_name(rule_id: str) -> str:
    return digest_name(f"use:{rule_id}")


# -- rules --------------------------------------------------------------------------------------------


def is_earned(memory: StoredMemory, lookup: Lookup) -> bool:
    """Return whether the evidence supports the rule's stage. A rule on trial or active must show it."""
    is_active = "active" in (memory.status, memory.stage, memory.record.get("status"))
    if not is_active and memory.stage != "canary":
        return True
    from muniment.rules._records import GateReport, PromotionReport
    from muniment.rules.activation import is_borne_out

    try:
        promoted = PromotionReport.from_wire(_report(lookup, memory.report_id)) if is_active else None
        gate = GateReport.from_wire(_report(lookup, memory.report_id if promoted is None else promoted.gate_report_id))
        return is_borne_out(memory, gate, promoted)
    except InvalidInput:
        return False


def is_persons_own(before: StoredMemory | None, memory: StoredMemory) -> bool:
    """Return whether a rule of the submitted layer has the form of such rules: with a TTL, no guard, never changed.
    Other layers pass.
    """
    if "user" not in (memory.layer, None if before is None else before.layer):
        return True
    from muniment.rules.rulebook import check_user_change

    try:
        check_user_change(before, memory)
    except (Conflict, InvalidInput):
        return False
    return True


def _admits(before: StoredMemory | None, memory: StoredMemory, lookup: Lookup) -> bool:
    return is_earned(memory, lookup) and is_persons_own(before, memory)


def _place_of(memory: StoredMemory) -> str | None:
    from muniment.learning.keys import rule_place_key

    return rule_place_key(memory.record)


project_rule = project_memory("rule", _admits, _place_of)
"""Project a rule into its bank: the next version, if the evidence supports its stage."""


def _report(lookup: Lookup, report_id: str | None) -> Any:
    item = None if report_id is None else lookup(report_id)
    return {} if item is None or item.kind != "rule_report" or item.body is None else item.plain()["report"]


# -- the book -----------------------------------------------------------------------------------------


def project_rulebook(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project a revision: the next version of the bank's rulebook."""
    said = entry.metadata
    if said.get("event") != RULEBOOK_CHANGED or not is_bank(entry.scope.user_id):
        return []
    id_ = book_id(entry.scope.tenant_id, entry.scope.user_id)
    before = lookup(id_)
    from muniment.rules._records import RulebookRevision

    revision = held_record(entry, "revision", RulebookRevision)
    if revision is None or said.get("id") != id_ or revision.revision != (1 if before is None else before.version + 1):
        return []
    return [change_of(entry, id_, "rulebook", revision.action, {"revision": revision.to_wire()}, (entry.id,))]


def project_report(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project the report of a gate, a replay or a promotion. Each is written once."""
    id_, kind = named_id(entry, RULE_REPORTED, by_bank=True), entry.metadata.get("kind")
    if id_ is None:
        return []
    from muniment.rules._records import GateReport, PromotionReport, ReplayReport

    reports: dict[str, Any] = {"gate": GateReport, "replay": ReplayReport, "promotion": PromotionReport}
    if not isinstance(kind, str) or kind not in reports or lookup(id_) is not None:
        return []
    report = held_record(entry, "report", reports[kind])
    if report is None or report.report_id != id_:
        return []
    body = {"kind": kind, "report": report.to_wire()}
    return [
        change_of(entry, id_, "rule_report", kind, body, sources_named(entry), digest_name(f"report:{report.rule_id}"))
    ]


def project_test(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project a test of a rule, or its next version."""
    said = entry.metadata
    id_, rule_id = named_id(entry, RULE_TESTED, by_bank=True), said.get("rule_id")
    before = None if id_ is None else lookup(id_)
    if id_ is None or not isinstance(rule_id, str) or (before is not None and before.user_id != entry.scope.user_id):
        return []
    from muniment.contracts.rules import RegressionTestSpec

    spec = held_record(entry, "spec", RegressionTestSpec)
    if spec is None:
        return []
    body = {"spec": spec.to_wire(), "rule_id": rule_id, "is_micro": said.get("is_micro") is True}
    return [change_of(entry, id_, "rule_test", "made", body, sources_named(entry), digest_name(f"test:{rule_id}"))]


# -- runs ---------------------------------------------------------------------------------------------


def project_selection(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project the rules given to a run; the newest selection of a run counts."""
    said = entry.metadata
    id_ = named_id(entry, RULES_SELECTED, by_bank=False)
    if id_ is None or lookup(id_) is not None:
        return []
    kept = ("request", "response", "arms", "revisions", "text", "tokens", "features")
    body = {key: said[key] for key in kept if key in said}
    return [change_of(entry, id_, "rule_selection", "answered", body, sources_named(entry))]


def project_rule_use(entry: LedgerEntry, lookup: Lookup) -> list[Change]:
    """Project the use of rules by a run, once its log is final."""
    changes = project_event_log(entry, lookup) if entry.metadata.get("rules") else []
    if not changes:
        return []
    from muniment.contracts.runs import EventLog

    body = changes[0].body
    return uses_of(entry, EventLog.from_wire(body["event_log"]), body)


def uses_of(entry: LedgerEntry, log: EventLog, body: dict[str, Any]) -> list[Change]:
    """One item for each rule that applied to a judged run, in the rule's bank: figures, no text."""
    uses, facts = entry.metadata.get("rules"), body["facts"]
    if not isinstance(uses, list) or not body["is_final"] or facts.get("verdict") is None:
        return []
    from muniment.learning.records import RuleArm

    changes: list[Change] = []
    for each in uses:
        owner = each.get("owner") if isinstance(each, dict) else None
        if not isinstance(each, dict) or not isinstance(owner, str) or not is_bank(owner):
            continue
        try:
            arm = RuleArm.from_wire(each.get("arm"))
            use = _use(entry, log, facts, arm)
        except InvalidRecord:
            continue
        id_ = short_id("use", [log.trace_id, arm.rule_id])
        sources = (entry.id, log.trace_id, arm.rule_id)
        status = "passed" if use.passed else "failed"
        change = change_of(entry, id_, "rule_use", status, {"use": use.to_wire()}, sources, use_name(arm.rule_id))
        changes.append(change._replace(user_id=owner))
    return changes


def _use(entry: LedgerEntry, log: EventLog, facts: dict[str, Any], arm: RuleArm) -> RuleUse:
    from muniment.rules._records import RuleUse

    plain: dict[str, Any] = {
        "trace_id": log.trace_id,
        "rule_id": arm.rule_id,
        "version": arm.version,
        "arm": arm.arm,
        "passed": facts["passed"],
        "confirmed": facts["passed"] and facts.get("outcome") == "OK",
        "violated": bool(facts.get("violated")),
        "cost": facts.get("cost", 0),
        "at": entry.ts,
    }
    digest = entry.metadata.get("x_digest")
    bucket = facts.get("bucket_key") or facts.get("bucket_derived")
    optional = {"bucket_key": bucket, "cluster_id": facts.get("cluster_id"), "x_digest": digest}
    if facts.get("set_aside") is None:  # otherwise the judge did not decide what is counted
        optional["judge"] = facts.get("judge")
    return RuleUse.from_wire(plain | {key: value for key, value in optional.items() if isinstance(value, str)})


def projections() -> Projections:
    """The item kinds that rules add to a store (entry point `muniment.projections`)."""

    return Projections(
        (
            of_patches("rule", erased, project_rule, MEMORY_KEPT, listens=PATCHES | {"tool_result"}),
            of_patches("rulebook", erased, project_rulebook, RULEBOOK_CHANGED),
            of_patches("rule_report", erased, project_report, RULE_REPORTED),
            of_patches("rule_test", erased, project_test, RULE_TESTED),
            of_patches("rule_selection", erased, project_selection, RULES_SELECTED),
            of_patches("rule_use", erased, project_rule_use, RUN_LOGGED),
        ),
        check_dump=ForeignRules,
    )


# == foreign rules ====================================================================================================

_ACTING = frozenset({"canary", "active"})


@dataclass(slots=True)
class ForeignRules:
    """The rules of a dump, version by version. Reports may come after the rules that depend on them."""

    reports: dict[str, Item] = field(default_factory=dict)
    claims: dict[tuple[Any, ...], tuple[int, StoredMemory]] = field(default_factory=dict)
    """Claims that need a report as evidence, each once, with the line that made it."""
    before: StoredMemory | None = None

    def see(self, row: ItemRow, number: int) -> None:
        """Process the next item of the dump."""
        item = Item(*row)
        if item.body is None or item.kind not in ("rule", "rule_report"):
            return
        if item.kind == "rule_report":
            self.reports[item.id] = item
            return
        memory = self._memory(item, number)
        before = self.before if self.before is not None and self.before.id == memory.id else None
        if not is_persons_own(before, memory):
            raise InvalidInput(f"line {number}: {item.id!r} is no rule that a person wrote", path="$.row.body")
        self.before = memory
        if _ACTING.intersection((memory.status, memory.stage, memory.record.get("status"))):
            self.claims.setdefault(_claim(memory), (number, memory))

    def end(self) -> None:
        for number, memory in self.claims.values():
            if not is_earned(memory, self.reports.get):
                raise InvalidInput(
                    f"line {number}: the rule {memory.id!r} acts, and no report of the dump lets it", path="$.row.body"
                )

    @staticmethod
    def _memory(item: Item, number: int) -> StoredMemory:
        memory = StoredMemory.from_wire(item.plain().get("memory"))
        if (memory.kind, memory.id, memory.version, memory.status) != ("rule", item.id, item.version, item.status):
            raise InvalidInput(f"line {number}: {item.id!r} holds another rule", path="$.row.body")
        return memory


def _claim(memory: StoredMemory) -> tuple[Any, ...]:
    digest = rule_digest(RuleRecord.from_wire(memory.record))
    return memory.id, digest, memory.status, memory.stage, memory.record.get("status"), memory.report_id, memory.canary
