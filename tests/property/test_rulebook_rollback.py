"""Whatever happens to a rulebook, rolling back to a revision gives the very state that it had."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.rules._records import RulebookRevision
from muniment.rules.rulebook import plan_rollback, state_at

RULES = ("a", "b", "c", "d")

Change = dict[str, str]
"""By rule, what it says from then on; nothing where it is retired."""


class Book:
    """A rulebook as a bank keeps it: every version of every rule, and the revisions."""

    def __init__(self) -> None:
        self.versions: dict[str, list[str]] = {name: [] for name in RULES}
        self.revisions: list[RulebookRevision] = []
        self.shown: list[dict[str, str]] = [{}]

    @property
    def state(self) -> dict[str, str]:
        """What is in force: the last word of each rule."""
        return {name: words[-1] for name, words in self.versions.items() if words and words[-1]}

    def write(self, change: Change, restores: int | None = None) -> None:
        changes = []
        for name, words in sorted(change.items()):
            before = len(self.versions[name])
            self.versions[name].append(words)
            changes.append({"rule_id": name, "before": before, "after": before + 1})
        plain: dict[str, Any] = {
            "revision": len(self.revisions) + 1,
            "action": "promote" if restores is None else "rollback",
            "changes": changes,
            "created_at": "2026-05-01T12:00:00Z",
        }
        self.revisions.append(RulebookRevision.from_wire(plain | ({} if restores is None else {"restores": restores})))
        self.shown.append(self.state)

    def roll_back(self, to: int) -> None:
        plan = plan_rollback(self.revisions, to)
        self.write({name: self.versions[name][version - 1] if version else "" for name, version in plan.items()}, to)


changes = st.dictionaries(st.sampled_from(RULES), st.sampled_from(("", "one", "two", "three")), min_size=1)
steps = st.lists(st.one_of(changes, st.integers(0, 30)), max_size=20)


@pytest.mark.req("RC-14", "RC-18")
@settings(deadline=None)
@given(steps, st.integers(0, 60))
def test_a_rollback_gives_the_very_state_also_after_others(taken: list[Change | int], to: int) -> None:
    book = Book()
    for step in taken:
        if isinstance(step, int):
            book.roll_back(step % (len(book.revisions) + 1))
        else:
            book.write(step)
    chosen = to % (len(book.revisions) + 1)
    book.roll_back(chosen)
    assert book.state == book.shown[chosen]
    assert plan_rollback(book.revisions, chosen) == {}, "it is in force already"


@settings(deadline=None)
@given(steps)
def test_every_revision_is_known_by_versions_that_say_what_it_said(taken: list[Change | int]) -> None:
    book = Book()
    for step in taken:
        if isinstance(step, int):
            book.roll_back(step % (len(book.revisions) + 1))
        else:
            book.write(step)
    for number, shown in enumerate(book.shown):
        versions = state_at(book.revisions, number)
        said = {name: book.versions[name][version - 1] for name, version in versions.items()}
        assert {name: words for name, words in said.items() if words} == shown
