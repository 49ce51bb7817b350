"""Rules that come with a dump, asked what lets them act. Its items are written as they are, past every projection, so
what a projection refuses is refused here: a rule that acts without a report, or that is not a person's as those are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muniment.contracts.rules import RuleRecord
from muniment.errors import InvalidInput
from muniment.learning.stored_memory import StoredMemory
from muniment.rules.projection import is_earned, is_persons_own
from muniment.rules.promotion.gate import rule_digest
from muniment.store.items import Item

if TYPE_CHECKING:
    from muniment.core.ports.schema import ItemRow

__all__ = ["ForeignRules"]

_ACTING = frozenset({"canary", "active"})


@dataclass(slots=True)
class ForeignRules:
    """The rules of a dump, one version after the other. Reports may come after the rules that lean on them."""

    reports: dict[str, Item] = field(default_factory=dict)
    claims: dict[tuple[Any, ...], tuple[int, StoredMemory]] = field(default_factory=dict)
    """What must be borne out by a report, each claim once, and the line that made it."""
    before: StoredMemory | None = None

    def see(self, row: ItemRow, number: int) -> None:
        """The next item of the dump."""
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
