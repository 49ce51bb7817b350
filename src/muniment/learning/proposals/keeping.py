"""What becomes of checked lessons in a fold: a record of its own, evidence added to one that says the same, or neither.

Pure. Nothing is kept here: a plan writes what comes of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from muniment.core.record import JsonObject
from muniment.learning.fold.distill import BankIds, shared_keys_of
from muniment.learning.proposals.forbidding import forbidden_in
from muniment.learning.proposals.likes import CheckedLesson, find_like, lesson_id, lesson_tactic, with_evidence
from muniment.learning.proposals.records import LessonProposal, ShownEvent, ShownRun
from muniment.learning.quoted_words import folded
from muniment.learning.stored_memory import RunFacts, StoredMemory

__all__ = ["Keeping", "KeptLesson", "contradicted", "keep_lessons"]

_GONE = ("retired", "pruned")


class KeptLesson(NamedTuple):
    """The fate of one lesson, in the order they were given."""

    fate: Literal["written", "merged", "refused"]
    id: str
    record: JsonObject | None = None
    """What is to be written; None where nothing changes."""


class Keeping(NamedTuple):
    """What decides it."""

    place: BankIds
    now: str
    ttl: str
    likeness_min: float
    tools: Collection[str] = ()
    """Names of the tools that the runs called, so that a plain word is known for one."""


def keep_lessons(
    lessons: Sequence[CheckedLesson],
    existing: Mapping[str, StoredMemory],
    written: Mapping[str, JsonObject],
    keeping: Keeping,
) -> list[KeptLesson]:
    """The fate of each. `written` are tactics by id that the same plan writes anyhow."""
    stand: dict[str, tuple[str, JsonObject]] = {
        id_: (memory.status, memory.record) for id_, memory in existing.items() if memory.kind == "tactic"
    }
    stand |= {id_: (_status(existing, id_), record) for id_, record in written.items()}
    found: list[KeptLesson] = []
    for lesson in lessons:
        id_ = lesson_id(lesson, keeping.place)
        like = find_like(lesson, [(each, *held) for each, held in stand.items()], keeping.tools, keeping.likeness_min)
        if id_ in stand:
            like_id, is_gone = id_, stand[id_][0] in _GONE
        elif like is not None:
            like_id, is_gone = like
        else:
            record = lesson_tactic(lesson, id_, now=keeping.now, ttl=keeping.ttl)
            stand[id_] = ("active", record)
            found.append(KeptLesson("written", id_, record))
            continue
        if is_gone:
            found.append(KeptLesson("refused", like_id))
            continue
        before = stand[like_id][1]
        merged = with_evidence(before, lesson)
        stand[like_id] = (stand[like_id][0], merged)
        found.append(KeptLesson("merged", like_id, None if merged == before else merged))
    return found


def contradicted(existing: Iterable[StoredMemory], run: RunFacts) -> list[str]:
    """The warnings of a model that a run did not heed and passed. A person's stand until their trial says otherwise."""
    if not run.passed:
        return []
    calls = [step for step in run.steps if step.kind == "call"]
    events = (ShownEvent(step.evidence_id, "tool", step.action, step.detail or "") for step in calls)
    shown = ShownRun(run.trace_id, True, (), tuple(events))
    tools = {step.action for step in calls}
    return sorted(
        memory.id
        for memory in existing
        if memory.kind == "tactic"
        and memory.status == "active"
        and memory.record.get("intent_key") == shared_keys_of(run).get("intent_key")
        and any(warned.is_done_in(shown) for warned in forbidden_in(_warning_of(memory), tools))
    )


def _warning_of(memory: StoredMemory) -> LessonProposal:
    """What a model's lesson says; nothing for any other."""
    said = memory.record.get("lesson")
    if not isinstance(said, Mapping) or said.get("origin") != "model":
        return LessonProposal("", "", ())
    text = str(memory.record.get("summary") or "")
    when = str(said.get("when") or "")
    head, mark, rest = text.partition(": ")
    is_headed = bool(when and mark) and folded(when).rstrip(".") in folded(head)
    return LessonProposal(rest if is_headed else text, when, (), "avoid" if said.get("advice") == "avoid" else "do")


def _status(existing: Mapping[str, StoredMemory], id_: str) -> str:
    return existing[id_].status if id_ in existing else "active"
