"""Which versions stand again after a rollback."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.errors import InvalidInput, NotFound
from muniment.rules._records import RulebookRevision
from muniment.rules.rulebook import plan_rollback, state_at
from products import for_each


def revisions(*changes: dict[str, tuple[int, int]], restores: dict[int, int] | None = None) -> list[RulebookRevision]:
    return [revision(place, each, (restores or {}).get(place)) for place, each in enumerate(changes, 1)]


def revision(number: int, changes: dict[str, tuple[int, int]], restores: int | None = None) -> RulebookRevision:
    plain: dict[str, Any] = {
        "revision": number,
        "action": "promote" if restores is None else "rollback",
        "changes": [{"rule_id": name, "before": before, "after": after} for name, (before, after) in changes.items()],
        "created_at": "2026-05-01T12:00:00Z",
    }
    return RulebookRevision.from_wire(plain | ({} if restores is None else {"restores": restores}))


HISTORY = revisions({"a": (0, 1)}, {"a": (1, 2), "b": (0, 1)}, {"b": (1, 2)})


@pytest.mark.req("RC-14")
def test_a_plan_names_what_differs_and_retires_what_was_not_there() -> None:
    assert plan_rollback(HISTORY, 3) == {}
    assert plan_rollback(HISTORY, 2) == {"b": 1}
    assert plan_rollback(HISTORY, 1) == {"a": 1, "b": 0}
    assert plan_rollback(HISTORY, 0) == {"a": 0, "b": 0}


def test_a_rollback_is_known_as_what_it_restored() -> None:
    rolled = [*HISTORY, revision(4, {"a": (2, 3), "b": (2, 3)}, restores=1)]
    assert plan_rollback(rolled, 1) == {}
    assert plan_rollback(rolled, 2) == {"a": 2, "b": 1}
    again = [*rolled, revision(5, {"a": (3, 4), "b": (3, 4)}, restores=2)]
    assert plan_rollback(again, 2) == {}
    assert plan_rollback(again, 4) == {"a": 1, "b": 0}
    assert state_at(again, 4) == {"a": 1}


def test_versions_written_between_revisions_do_not_matter() -> None:
    history = revisions({"a": (0, 1)}, {"a": (5, 6)})
    assert plan_rollback(history, 1) == {"a": 1}


@pytest.mark.parametrize("to", [-1, 4, 99])
def test_a_revision_that_never_was_cannot_be_restored(to: int) -> None:
    with pytest.raises(NotFound, match=f"no revision {to}"):
        plan_rollback(HISTORY, to)
    with pytest.raises(NotFound):
        state_at(HISTORY, to)


@for_each(
    "history",
    [
        [HISTORY[0], HISTORY[2]],
        HISTORY[::-1],
        [*HISTORY, HISTORY[-1]],
        revisions({"a": (0, 2)}, {"a": (1, 3)}),
        revisions({"a": (1, 1)}),
        [*HISTORY, revision(4, {"a": (2, 3)}, restores=4)],
    ],
    ids=["lacks one", "backwards", "twice", "versions go back", "no change", "restores itself"],
)
def test_what_is_no_history_is_refused(history: list[RulebookRevision]) -> None:
    with pytest.raises(InvalidInput):
        plan_rollback(history, 0)


def test_what_was_forgotten_cannot_be_restored() -> None:
    """A bank that was forgotten goes on with the next number, and with an empty book."""
    history = [revision(4, {"a": (0, 1)}), revision(5, {"a": (1, 2), "b": (0, 1)})]
    assert plan_rollback(history, 4) == {"a": 1, "b": 0}
    assert plan_rollback(history, 0) == {"a": 0, "b": 0}
    for number in (1, 3):
        with pytest.raises(NotFound, match="forgotten"):
            plan_rollback(history, number)


def test_the_empty_rulebook_is_revision_nought() -> None:
    assert plan_rollback([], 0) == {}
