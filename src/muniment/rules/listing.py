"""A rulebook, and what was found of its rules, a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from muniment.contracts.rules import RegressionTestSpec
from muniment.core.listing import Listing, Placed
from muniment.learning.banks import held_of
from muniment.learning.listing import page_memories
from muniment.rules.projection import book_id
from muniment.rules.promotion.records import RulebookRevision
from muniment.rules.rule_promoting import check_stage, stage_of
from muniment.rules.rulebook_reading import RuleTest, report_of, test_ids
from muniment.rules.rulebook_writing import find_rule
from muniment.store.items import digest_name
from muniment.store.lists.seeking import each_made, read_named, read_versions, seek

if TYPE_CHECKING:
    from muniment.learning.stored_memory import StoredMemory
    from muniment.rules.rulebook_reading import Report
    from muniment.rules.rulebook_writing import Book
    from muniment.store.items import Item

__all__ = ["page_history", "page_reports", "page_revisions", "page_rules", "page_tests"]

T = TypeVar("T")


def page_revisions(book: Book, asked: Listing) -> Iterator[Placed[RulebookRevision]]:
    """Every change of the rulebook."""
    make = each_made(lambda item: RulebookRevision.from_wire(item.plain()["revision"]))
    return seek(book.ctx, book.tenant_id, read_versions(book_id(book.tenant_id, book.owner), make), asked)


def page_rules(book: Book, stage: str | None, asked: Listing, *, include_all: bool) -> Iterator[Placed[StoredMemory]]:
    """The rules: of one stage, or all but the retired, or those too."""
    check_stage(stage)
    include_all = stage == "retired" or (stage is None and include_all)
    placed = page_memories(book.ctx, book.tenant_id, book.owner, ("rule",), asked, include_all=include_all)
    for each in placed:
        is_meant = each.value is not None and stage in (None, stage_of(each.value))
        yield each if is_meant else Placed(each.place, None)


def page_history(book: Book, rule_id: str, asked: Listing) -> Iterator[Placed[StoredMemory]]:
    """Every version of a rule that is still there."""
    make = each_made(lambda item: held_of(item).memory)
    return seek(book.ctx, book.tenant_id, read_versions(rule_id, make), asked)


def page_tests(book: Book, rule_id: str, asked: Listing) -> Iterator[Placed[RuleTest]]:
    def made(item: Item) -> RuleTest:
        body = item.plain()
        return RuleTest(RegressionTestSpec.from_wire(body["spec"]), body["is_micro"])

    named = test_ids(book.ctx.engine.read(book.tenant_id, lambda reader: find_rule(reader, book.owner, rule_id)))
    for each in _named(book, "rule_test", f"test:{rule_id}", made, asked):
        is_meant = each.value is not None and each.value.spec.test_id in named
        yield each if is_meant else Placed(each.place, None)


def page_reports(book: Book, rule_id: str, asked: Listing) -> Iterator[Placed[Report]]:
    return _named(book, "rule_report", f"report:{rule_id}", lambda item: report_of(item.plain()), asked)


def _named(book: Book, kind: str, name: str, made: Callable[[Item], T], asked: Listing) -> Iterator[Placed[T]]:
    read = read_named(kind, (("user_id", "=", book.owner),), digest_name(name), each_made(made))
    return seek(book.ctx, book.tenant_id, read, asked)
