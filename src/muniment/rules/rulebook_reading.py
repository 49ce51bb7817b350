"""The rulebook of a bank as the store holds it: rules by where they apply, revisions, uses, reports, tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from muniment.contracts.rules import RegressionTestSpec
from muniment.core.canonical import read_canonical
from muniment.core.ports.engine import Condition
from muniment.core.ports.rows import chunked, first, select, stream
from muniment.core.ports.schema import ITEMS
from muniment.learning.banks import held_of, list_memories
from muniment.learning.keys import rule_place_key
from muniment.learning.projection import core_name
from muniment.rules.projection import book_id, use_name
from muniment.rules.promotion.records import GateReport, PromotionReport, ReplayReport, RulebookRevision, RuleUse
from muniment.rules.rulebook.rule_cache import RuleCache
from muniment.rules.rulebook.selection import Candidate, compile_rule
from muniment.store.items import Item, digest_name, latest, select_items

if TYPE_CHECKING:
    from muniment.core.ports.engine import Reader
    from muniment.learning.stored_memory import StoredMemory
    from muniment.store.context import Context

__all__ = [
    "ENDED",
    "RuleTest",
    "candidates_for",
    "list_reports",
    "list_revisions",
    "list_tests",
    "list_uses",
    "names_for",
    "newest_report",
    "report_of",
    "revision_of",
    "standing_rules",
    "test_ids",
    "versions_of",
    "why_taken_out",
]

Report = GateReport | ReplayReport | PromotionReport
ENDED = ("retired", "pruned")
"""What was taken out has one of these."""
_REPORTS: dict[str, type[Report]] = {"gate": GateReport, "replay": ReplayReport, "promotion": PromotionReport}


class RuleTest(NamedTuple):
    """A test of a rule as it is kept."""

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
    """The number of the revision in force; 0 where nothing was ever changed."""
    where: tuple[Condition, ...] = (("id", "=", book_id(tenant_id, owner)),)
    newest = first(reader, ITEMS, where, into=_Version, order=("id", "version"), descending=True)
    return 0 if newest is None else newest.version


def list_revisions(reader: Reader, tenant_id: str, owner: str, *, after: int = 0) -> list[RulebookRevision]:
    """The revisions after that one, oldest first; those of a bank that was forgotten are not there any more."""
    where: tuple[Condition, ...] = (("id", "=", book_id(tenant_id, owner)), ("version", ">", after))
    items = select_items(reader, where)
    return [RulebookRevision.from_wire(item.plain()["revision"]) for item in items if item.body is not None]


def versions_of(reader: Reader, rule_id: str) -> Iterator[StoredMemory]:
    """Every version of a rule that is still there, oldest first."""
    for item in select_items(reader, (("id", "=", rule_id),)):
        if item.body is not None:
            yield held_of(item).memory


def why_taken_out(reader: Reader, tenant_id: str, rule_id: str) -> str | None:
    """The revision that took a rule out of force, and its reason; None of one that is in force, or not there."""
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


# -- rules that may apply -----------------------------------------------------------------------------


def standing_rules(reader: Reader, owner: str) -> list[StoredMemory]:
    """The rules of a bank that were not taken out, by id. Of what was, and of earlier versions, no body is read."""
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


def names_for(domain_tag: str | None, task_family: str | None) -> tuple[str, ...]:
    """What rules that may apply to such a run are looked up by: its family, its domain, and those for anything."""
    said: list[dict[str, Any]] = [{"task_family": task_family}] if task_family else []
    said += [{"domain_tag": domain_tag}] if domain_tag else []
    named = [core_name(rule_place_key({"applicability": where})) for where in (*said, {})]
    return tuple(cast("str", name) for name in named)


def candidates_for(
    ctx: Context, reader: Reader, tenant_id: str, owner: str, names: Sequence[str]
) -> tuple[int, list[Candidate]]:
    """The revision in force, and the rules of these names as it has them."""
    revision = revision_of(reader, tenant_id, owner)
    if revision == 0:
        return 0, []
    found: list[Candidate] = []
    for name in names:
        found += _candidates_named(ctx, reader, (tenant_id, owner, name), revision)
    return revision, found


def _candidates_named(ctx: Context, reader: Reader, key: tuple[str, str, str], revision: int) -> tuple[Candidate, ...]:
    """The rules under one name of a rulebook, from the cache where it is not out of date."""
    tenant_id, owner, name = key
    held = ctx.cache(RuleCache).get(key)
    if held is not None:
        if held[0] == revision:
            return held[1]
        changed = list_revisions(reader, tenant_id, owner, after=held[0])
        if len(changed) == revision - held[0] > 0 and all(name not in each.names for each in changed):
            ctx.cache(RuleCache).put(key, revision, held[1])
            return held[1]
    compiled = tuple(
        compile_rule(each.memory, ctx.counter.count)
        for each in list_memories(reader, owner, "rule", name=name)
        if each.memory.stage in ("canary", "active") or each.memory.layer == "user"
    )
    ctx.cache(RuleCache).put(key, revision, compiled)
    return compiled


# -- what was counted, tested and told ----------------------------------------------------------------


def list_uses(reader: Reader, owner: str, rule_id: str, *, newest: int | None = None) -> list[RuleUse]:
    """The judged runs of a rule, oldest first."""
    where: tuple[Condition, ...] = (
        ("kind", "=", "rule_use"),
        ("user_id", "=", owner),
        ("name", "=", use_name(rule_id)),
    )
    order = ("created_at", "id", "version")
    bodies: dict[str, str] = {}
    for id_, body in select(reader, ITEMS, where, into=_Body, order=order, descending=True, limit=newest):
        if body is not None:
            bodies.setdefault(id_, body)  # the newest version of each
    uses = [RuleUse.from_wire(cast("Any", read_canonical(body))["use"]) for body in bodies.values()]
    return sorted(uses, key=lambda use: (use.at, use.trace_id))


def list_tests(reader: Reader, owner: str, rule_id: str) -> list[RuleTest]:
    found = {item.id: item.plain() for item in _of_rule(reader, owner, "rule_test", f"test:{rule_id}")}
    return [RuleTest(RegressionTestSpec.from_wire(body["spec"]), body["is_micro"]) for body in found.values()]


def test_ids(memory: StoredMemory) -> frozenset[str]:
    """The tests that a rule goes by; of those that were made for it, later ones may have taken their place."""
    tests = memory.record.get("tests")
    lists = (
        [tests.get(kind) for kind in ("regression_tests", "counterexample_tests")] if isinstance(tests, dict) else []
    )
    return frozenset(str(name) for named in lists if isinstance(named, list) for name in named)


def list_reports(reader: Reader, owner: str, rule_id: str) -> list[Report]:
    """What was found of a rule, oldest first."""
    bodies = [item.plain() for item in _of_rule(reader, owner, "rule_report", f"report:{rule_id}")]
    return [report_of(body) for body in bodies]


def report_of(body: dict[str, Any]) -> Report:
    return _REPORTS[body["kind"]].from_wire(body["report"])


def newest_report(reader: Reader, owner: str, rule_id: str, kind: type[Report], digest: str) -> Any:
    """The last report of a kind on the rule as it is; None where there is none."""
    reports = [each for each in list_reports(reader, owner, rule_id) if isinstance(each, kind)]
    fitting = [each for each in reports if each.rule_digest == digest]
    return fitting[-1] if fitting else None


def _of_rule(reader: Reader, owner: str, kind: str, name: str) -> Iterator[Item]:
    where: tuple[Condition, ...] = (("kind", "=", kind), ("user_id", "=", owner), ("name", "=", digest_name(name)))
    for item in select_items(reader, where, order=("created_at", "id", "version")):
        if item.body is not None:
            yield item
