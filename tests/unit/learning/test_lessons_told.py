"""What a model is told of lessons: sentence, condition and figures, cited; and what it is not told, and why."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.handles.memory import Memory
from muniment.learning._lesson_words import cited_events, lesson_line, sentence_of
from muniment.learning.records import LessonState, StoredMemory, Tally
from muniment.memory.patches import Decided, draft_patch, write_patches
from muniment.store.ledger import MEMORY_RECALLED
from products import for_each

INTENT = {"domain_tag": "shop", "task_family": "lookup"}
ASKED = "Find the order by its number."


def tactic(text: str, **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.5.15", "tactic_id": "tac_1", "created_at": "2026-01-01T00:00:00Z", "status": "active",
        "ttl": "days:60", "summary": text, "injection": {"mode": "inline", "content": text},
        "intent_key": "intent|domain=shop|family=lookup", **more,
    }  # fmt: skip


def held(text: str, *, had: tuple[int, int] = (0, 0), without: tuple[int, int] = (0, 0), **more: Any) -> StoredMemory:
    sides = [Tally(passes=passes, n=n) for passes, n in (had, without)]
    return StoredMemory(
        id="tac_1", kind="tactic", level=more.pop("level", "user"), version=1, record=tactic(text, **more),
        status="active", created_at="2026-01-01T00:00:00Z", with_tally=sides[0], without_tally=sides[1],
    )  # fmt: skip


@for_each(
    ("memory", "line"),
    [
        (held("Look it up by number."), "Look it up by number."),
        (
            held("Look it up by number: passed 3 of 3 with it, 0 of 3 without."),
            "Look it up by number: passed 3 of 3 with it, 0 of 3 without.",
        ),
        (
            held("Look it up by number: passed 3 of 3 with it, 0 of 3 without.", had=(9, 12), without=(3, 11)),
            "Look it up by number. Runs told this passed 9 of 12, others 3 of 11.",
        ),
        (
            held("Do not give way=sea: passed 0 of 3 with it, 5 of 5 without. Those that passed gave way=air."),
            "Do not give way=sea: passed 0 of 3 with it, 5 of 5 without. Those that passed gave way=air.",
        ),
        (
            held(
                "Do not give way=sea: passed 0 of 3 with it, 5 of 5 without. Those that passed gave way=air.",
                had=(16, 25),
                without=(2, 7),
            ),
            "Do not give way=sea. Those that passed gave way=air. Runs told this passed 16 of 25, others 2 of 7.",
        ),
        (held("Look it up by number.", had=(9, 12)), "Look it up by number."),
        (
            held("Change n: mended 4 of 4 with it, 1 of 5 without, on the same tasks."),
            "Change n: mended 4 of 4 with it, 1 of 5 without, on the same tasks.",
        ),
        (
            held("Look it up by number.", predicates=['task_family == "lookup"', 'x_features.size == "large"']),
            "When size is large: Look it up by number.",
        ),
        (
            held("When it is old, ask for the year.", lesson={"when": "it is old"}),
            "When it is old, ask for the year.",
        ),
        (held("Ask for the year.", lesson={"when": "it is old"}), "When it is old: Ask for the year."),
    ],
)
def test_a_lesson_says_sentence_condition_and_figures_once(memory: StoredMemory, line: str) -> None:
    assert lesson_line(memory) == line


@pytest.mark.parametrize(
    ("stage", "start"),
    [("trial", "On trial: "), ("suspended", "In doubt: "), ("active", "")],
)
def test_a_lesson_that_is_not_in_force_is_told_as_such_with_its_figures(stage: str, start: str) -> None:
    state = LessonState.model_validate({"stage": stage, "since": "2026-01-01T00:00:00Z", "why": "a test"})
    memory = held("Look it up by number.", had=(9, 12), without=(3, 11)).model_copy(update={"lesson": state})
    assert lesson_line(memory) == f"{start}Look it up by number. Runs told this passed 9 of 12, others 3 of 11."
    assert sentence_of(lesson_line(memory)) == f"{start}Look it up by number."  # also where there is no room for more
    signed = memory.model_copy(update={"status": "pinned"})
    assert lesson_line(signed).startswith("Look it up")


def test_a_lesson_cites_few_events_and_none_above_a_user() -> None:
    cites = {"event_ids": ["e1", "e2", "e3", "e4"]}
    assert cited_events(held("Look.", lesson=cites)) == ["e1", "e2", "e3"]
    assert cited_events(held("Look.", lesson=cites, level="agent")) == []


def taught(mem: Memory) -> Any:
    """A bank with one lesson that cites an event of an earlier run, and a run that may be told it."""
    before = mem.run(user_id="ana", agent_id="clerk", session_id="before")
    event = before.observe("user", "Orders are found by their number only.")
    bank = mem.bank(user_id="ana")
    payload = tactic("Find the order by its number.", lesson={"origin": "person", "event_ids": [event.id]})
    bank.apply(bank.plan([{"op": "WRITE", "target_store": "ReuseBuffer", "payload": payload}]).plan_id)
    bank.sign_lesson("tac_1", signed_by="rosa")
    run = mem.run(user_id="ana", agent_id="clerk", session_id="now")
    run.observe("user", ASKED)
    return run, event


@pytest.mark.req("MP-13")
@pytest.mark.req("RC-09")
def test_a_lesson_is_cited_like_every_other_item_and_no_responder_hears_it(any_mem: Memory) -> None:
    run, event = taught(any_mem)
    shown = run.learning.recall(ASKED, intent=INTENT, keep=False)
    assert [hint.memory_id for hint in shown.hints] == ["tac_1"]
    _told(run, shown, held_out=False)
    for purpose in ("planner", "tool"):
        build = run.compose(purpose, query="What next?", max_tokens=1024)
        (line,) = (each for each in build.text.splitlines() if each.startswith("lesson: "))
        mark = line.rpartition(" ")[2]
        assert line == f"lesson: Find the order by its number. {mark}"
        assert build.marks[mark.strip("[]")] == event.id
        assert event.id in {citation.id for citation in build.packet.citations}
        assert any_mem.replay(build.id).packet_bytes == build.packet_bytes
    responder = run.compose("responder", query="What next?", max_tokens=1024)
    assert "lesson: " not in responder.text
    any_mem.forget(event=event.id)
    assert "lesson: " not in run.compose("planner", query="What next?", max_tokens=1024).text


def _told(run: Any, shown: Any, *, held_out: bool) -> None:
    """Write a recall into a run as it is told there, with what was drawn for the lesson."""
    arm = {"memory_id": "tac_1", "arm": "held_out" if held_out else "had", "stage": "active"}
    said = {
        "id": shown.request.request_id,
        "request": shown.request.to_wire(),
        "response": shown.response.to_wire() | ({"items": []} if held_out else {}),
        "injected": {"text": "" if held_out else shown.text, "tokens": 0, "overflow": []},
        "used_ids": [] if held_out else ["tac_1"],
        "arms": [arm],
        "sources": ["tac_1"],
    }
    write_patches(
        run._writer(), lambda _tx: Decided([draft_patch(MEMORY_RECALLED, "assistant", said)]), lambda _reader: None
    )


def test_a_lesson_that_was_left_out_is_explained_and_says_nothing(any_mem: Memory) -> None:
    run, _ = taught(any_mem)
    _told(run, run.learning.recall(ASKED, intent=INTENT, keep=False), held_out=True)
    build = run.compose("planner", query="What next?", max_tokens=1024)
    assert "lesson: " not in build.text
    assert "memory_hints" not in build.packet.short_term.working_state.to_wire()
    (omitted,) = (each.to_wire() for each in build.packet.explain.omitted if each.reason == "held_out")
    assert omitted["lesson"] == "tac_1"
    assert any_mem.replay(build.id).packet_bytes == build.packet_bytes
    responder = run.compose("responder", query="What next?", max_tokens=1024)
    assert "held_out" not in {each.reason for each in responder.packet.explain.omitted}


def test_hints_that_somebody_patched_in_break_nothing(mem: Memory) -> None:
    run = mem.run(user_id="ana", agent_id="clerk")
    run.observe("user", ASKED)
    run.patch(memory_hints=[{"summary": "they close at ten", "evidence_ids": 5}, "plain", {"held_out": "yes"}])
    assert "hint: they close at ten" in run.compose("planner", query=ASKED, max_tokens=1024).text
