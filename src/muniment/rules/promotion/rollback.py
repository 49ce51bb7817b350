"""Any earlier rulebook in force again: which version of which rule stood in a revision, and what restoring it takes.

A rule's versions only grow: a rollback writes what an old version said as a new one. So that a later rollback knows
the two as one, versions are followed to where their words came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muniment.errors import InvalidInput, NotFound
from muniment.rules.promotion.records import RulebookRevision

__all__ = ["plan_rollback", "state_at"]

RETIRE = 0
"""In place of a version: the rule was not there."""


def plan_rollback(revisions: Sequence[RulebookRevision], to: int) -> dict[str, int]:
    """By rule, the version whose content must stand again, 0 where the rule must be retired; empty where all is so."""
    states = _states(revisions)
    then, current = _state(revisions, states, to), states[-1]
    rules = sorted(then.keys() | current.keys())
    return {rule: then.get(rule, RETIRE) for rule in rules if then.get(rule, RETIRE) != current.get(rule, RETIRE)}


def state_at(revisions: Sequence[RulebookRevision], revision: int) -> Mapping[str, int]:
    """By rule, the version that first said what the revision has in force; rules that were not there are left out."""
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
    """The state after each revision, the empty one first. Raises `InvalidInput` for what is no history.

    Where the first ones were forgotten, a rule stood then as the first change that is known found it.
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
    """By rule, the version that the first change of it found."""
    found: dict[str, int] = {}
    for change in (change for revision in revisions for change in revision.changes):
        found.setdefault(change.rule_id, change.before)
    return {rule: version for rule, version in found.items() if version != RETIRE}


def _restored(revision: RulebookRevision, states: Sequence[dict[str, int]]) -> dict[str, int] | None:
    """The state that a rollback put in force; None of any other revision."""
    if revision.restores is None:
        return None
    if revision.restores >= len(states):
        raise InvalidInput(f"revision {revision.revision} restores {revision.restores}, which came later")
    return states[revision.restores]
