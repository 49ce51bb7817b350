"""One thing called a lesson: what a contrast left, read as one; listed, signed, dropped, undone, forgotten."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from muniment.errors import Conflict, GateFailed, InvalidInput, NotFound, TooLarge, WrongStage
from muniment.handles.memory import Memory
from muniment.learning.records import Lesson, LessonDecision, LessonStory
from muniment.testing.stories import RuleStory
from rule_stages import story_at

INTENT = {"domain_tag": "shop", "task_family": "lookup"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL"}


def teach(mem: Memory, runs: int = 6, **more: Any) -> list[str]:
    """Runs that passed in one way and failed in another, each of an order of its own, so that none is a second try;
    answers the ids of their first events.
    """
    events = []
    for number in range(runs):
        for way, result, order in (("by_name", FAIL, 2 * number), ("by_number", PASS, 2 * number + 1)):
            run = mem.run(
                user_id="ana", agent_id="clerk", grants=["agent"], run_id=f"{more.get('level')}-{number}-{way}"
            )
            events.append(run.observe("user", f"Find order {order}.").id)
            run.observe_tool(way, content="tried", args={"n": order})
            run.finish(verifier_result=result, intent=INTENT, features={"way": way}, **more)
    return events


def tactic(name: str, text: str = "Look it up by its number.", **more: Any) -> dict[str, Any]:
    """A tactic as it is written: active, in every version."""
    return {
        "schema_version": "0.5.15", "tactic_id": name, "created_at": "2026-01-01T00:00:00Z", "status": "active",
        "ttl": "days:60", "summary": text, "injection": {"mode": "inline", "content": text},
        "intent_key": "intent|domain=shop|family=lookup", "predicates": ['task_family == "lookup"'], **more,
    }  # fmt: skip


def write(mem: Memory, *payloads: dict[str, Any], **scope: Any) -> None:
    bank = mem.bank(**scope or {"user_id": "ana"})
    for payload in payloads:
        bank.apply(bank.plan([{"op": "WRITE", "target_store": "ReuseBuffer", "payload": payload}]).plan_id)


# -- one lesson of one contrast -------------------------------------------------------------------------


@pytest.mark.soak
def test_a_tactic_and_a_draft_of_one_contrast_are_one_lesson(any_mem: Memory) -> None:
    teach(any_mem)
    bank = any_mem.bank(user_id="ana")
    (learnt,) = bank.records(kind="tactic")
    drafts = [draft.draft_id for draft in bank.drafts() if draft.evidence.get("feature")]
    assert drafts
    kinds = {tuple(each.kind for each in lesson.kept_as) for lesson in bank.lessons()}
    assert ("tactic", "draft") in kinds
    shown = [lesson.lesson_id for lesson in bank.lessons()]
    assert learnt.id in shown
    assert not set(drafts) & set(shown)
    story = bank.lesson(learnt.id)
    for each in story.kept_as:
        assert bank.lesson(each.id).lesson_id == learnt.id
    assert "number" in story.text
    assert "passed" not in story.text
    assert story.origin == "contrast"
    assert story.when.predicates
    assert {run.passed for run in story.learnt_from} == {True, False}
    assert {run.run_id for run in story.learnt_from} == set(story.evidence.run_ids)
    assert story.effect.guess is not None
    assert story.effect.guess.had.passes > 0


@pytest.mark.soak
def test_a_rule_that_was_promoted_is_the_lesson_of_its_draft(mem: Memory) -> None:
    story, rule_id = story_at(mem, "canary", RuleStory)
    bank = mem.bank(user_id="ana")
    (lesson,) = (each for each in bank.lessons() if rule_id in {kept.id for kept in each.kept_as})
    assert lesson.stage == "trial"
    assert {each.kind for each in lesson.kept_as} == {"rule", "draft"}
    for _ in range(8):
        story.run()
    told = bank.lesson(rule_id)
    assert told.uses > 0
    assert told.held_out > 0
    assert told.effect.low is not None
    assert told.effect.high is not None
    assert -1 <= told.effect.low <= (told.effect.difference or 0) <= told.effect.high <= 1
    assert {run.arm for run in told.runs} == {"had", "held_out"}
    assert [change.stage for change in told.history][-1] == "trial"
    assert [lesson.lesson_id for lesson in bank.lessons(stage="trial")] == [rule_id]


@pytest.mark.soak
def test_what_is_furthest_on_is_shown_and_stands_in_the_list_once(any_mem: Memory) -> None:
    teach(any_mem)
    bank, book = any_mem.bank(user_id="ana"), any_mem.rulebook(user_id="ana")
    (learnt,) = bank.records(kind="tactic")
    draft = next(each.id for each in bank.lesson(learnt.id).kept_as if each.kind == "draft")
    rule = book.submit(draft)
    kept = {each.kind: each.stage for each in bank.lesson(learnt.id).kept_as}
    assert kept.keys() == {"tactic", "rule", "draft"}
    bank.drop_lesson(learnt.id, reason="not any more")
    assert bank.lesson(rule.id).stage == "retired"
    assert learnt.id not in [lesson.lesson_id for lesson in bank.lessons()]
    assert [lesson.lesson_id for lesson in bank.lessons(stage="retired")].count(learnt.id) == 1


@pytest.mark.soak
def test_a_rule_and_its_tactic_are_dropped_together_or_not_at_all(any_mem: Memory, monkeypatch) -> None:
    teach(any_mem)
    bank, book = any_mem.bank(user_id="ana"), any_mem.rulebook(user_id="ana")
    (learnt,) = bank.records(kind="tactic")
    rule = book.submit(next(each.id for each in bank.lesson(learnt.id).kept_as if each.kind == "draft"))
    before = bank.lesson(learnt.id).kept_as, book.revision, len(bank.plans())

    def changed(*_args: Any, **_more: Any) -> Any:
        raise Conflict("it was changed meanwhile", hint="read it again")

    with monkeypatch.context() as patch:
        patch.setattr("muniment.handles.bank_lessons.plan_in", changed)
        with pytest.raises(Conflict, match="changed meanwhile"):
            bank.drop_lesson(learnt.id, reason="not any more")
    assert (bank.lesson(learnt.id).kept_as, book.revision, len(bank.plans())) == before, "nothing is half dropped"
    dropped = bank.drop_lesson(rule.id, reason="not any more")
    assert dropped.plan_id is not None
    assert dropped.report_id is not None
    assert {each.stage for each in dropped.lesson.kept_as if each.kind != "draft"} == {"retired"}
    bank.undo(dropped.plan_id)
    assert bank.lesson(learnt.id).stage != "retired"


def test_what_a_person_wrote_into_the_rulebook_is_no_lesson(any_mem: Memory) -> None:
    any_mem.rulebook(user_id="ana").add("Answer in short sentences.")
    assert any_mem.bank(user_id="ana").lessons() == []


def test_what_a_person_or_a_model_wrote_says_so(any_mem: Memory) -> None:
    (event, *_) = teach(any_mem, 1)
    said = {"origin": "person", "event_ids": [event], "when": "the order is older than a year"}
    write(any_mem, tactic("tac_1", lesson=said))
    lesson = any_mem.bank(user_id="ana").lesson("tac_1")
    assert (lesson.origin, lesson.when.words) == ("person", "lookup tasks, when the order is older than a year")
    assert lesson.evidence.event_ids == (event,)


# -- lists ----------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_lessons_are_listed_as_other_lists_are(any_mem: Memory) -> None:
    texts = ("Look it up by its number.", "Ask for the name first.", "Say when it was sent.")
    write(any_mem, *(tactic(f"tac_{number}", text) for number, text in enumerate(texts)))
    bank = any_mem.bank(user_id="ana")

    def ids(**asked: Any) -> list[str]:
        return [lesson.lesson_id for lesson in bank.lessons(**asked)]

    assert ids() == ["tac_0", "tac_1", "tac_2"]
    assert ids(order="desc", limit=2) == ["tac_2", "tac_1"]
    assert ids(q="by its NUMBER") == ["tac_0"]
    assert ids(q="lookup tasks", limit=1) == ["tac_0"]
    assert ids(around="tac_1", limit=1) == ["tac_1"]
    assert ids(stage="active") == ids()
    assert ids(stage="suspended") == ids(until="2020-01-01T00:00:00Z") == []
    bank.drop_lesson("tac_1", reason="nobody knows their name")
    assert ids() == ["tac_0", "tac_2"]
    assert ids(stage="retired") == ["tac_1"]


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"stage": "good"}, "$.stage"),
        ({"stage": 1}, "$.stage"),
        ({"order": "up"}, "$.order"),
        ({"limit": 0}, "$.limit"),
        ({"q": " "}, "$.q"),
        ({"since": "soon"}, "$.since"),
        ({"around": "nobody"}, "$.around"),
    ],
)
def test_a_list_that_cannot_be_asked_for_says_so(mem: Memory, asked: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput if path != "$.around" else NotFound) as raised:
        mem.bank(user_id="ana").lessons(**asked)
    assert raised.value.path == path
    assert raised.value.hint


# -- a person's word ------------------------------------------------------------------------------------


def test_a_signature_is_a_plan_and_is_undone_like_one(any_mem: Memory) -> None:
    write(any_mem, tactic("tac_1"))
    bank = any_mem.bank(user_id="ana")
    before = bank.lesson("tac_1")
    signed = bank.sign_lesson("tac_1", signed_by="rosa")
    assert signed.plan_id is not None
    assert (signed.lesson.stage, signed.lesson.signed, signed.lesson.why) == ("active", True, "signed by rosa")
    assert bank.get("tac_1").status == "pinned"
    again = bank.sign_lesson("tac_1", signed_by="tom")
    assert again.plan_id is None
    assert again.lesson == signed.lesson
    bank.undo(signed.plan_id)
    after = bank.lesson("tac_1")
    assert (after.stage, after.signed) == (before.stage, False)
    assert [(change.why, change.plan_id is None) for change in after.history[1:]] == [
        ("signed by rosa", False),
        (f"the plan {signed.plan_id} was taken back", False),
    ]
    assert after.history[1].plan_id == signed.plan_id


@pytest.mark.soak
def test_a_drop_is_a_plan_and_is_undone_like_one(any_mem: Memory) -> None:
    write(any_mem, tactic("tac_1"))
    bank = any_mem.bank(user_id="ana")
    dropped = bank.drop_lesson("tac_1", reason="the shop has changed")
    assert dropped.plan_id is not None
    assert (dropped.lesson.stage, dropped.lesson.why) == ("retired", "dropped: the shop has changed")
    run = any_mem.run(user_id="ana", agent_id="clerk")
    run.observe("user", "Look up the order by its number.")
    assert run.learning.recall("Look up the order by its number.", intent=INTENT).hints == ()
    with pytest.raises(WrongStage):
        bank.sign_lesson("tac_1", signed_by="rosa")
    assert bank.drop_lesson("tac_1", reason="again").plan_id is None
    bank.undo(dropped.plan_id)
    assert bank.lesson("tac_1").stage == "active"
    assert [lesson.lesson_id for lesson in bank.lessons()] == ["tac_1"]


def test_what_is_kept_as_a_rule_asks_what_its_rulebook_asks(mem: Memory) -> None:
    _, rule_id = story_at(mem, "gate")
    bank = mem.bank(user_id="ana")
    with pytest.raises((GateFailed, WrongStage)):
        bank.sign_lesson(rule_id, signed_by="rosa")
    dropped = bank.drop_lesson(rule_id, reason="no need", signed_by="rosa")
    assert (dropped.plan_id, dropped.lesson.stage) == (None, "retired")
    assert dropped.report_id is not None
    assert mem.rulebook(user_id="ana").get(rule_id).stage == "retired"


def test_a_signature_promotes_a_rule_that_has_shown_itself(mem: Memory) -> None:
    story, rule_id = story_at(mem, "shown", RuleStory)
    signed = mem.bank(user_id="ana").sign_lesson(rule_id, signed_by="rosa")
    assert signed.lesson.stage == "active"
    assert signed.report_id is not None
    assert story.book.get(rule_id).stage == "active"
    assert mem.bank(user_id="ana").sign_lesson(rule_id, signed_by="rosa").report_id is None


def test_a_draft_alone_can_be_neither_signed_nor_dropped(mem: Memory) -> None:
    _, draft_id = story_at(mem, "teach")
    bank = mem.bank(user_id="ana")
    assert bank.lesson(draft_id).stage == "candidate"
    assert draft_id in [lesson.lesson_id for lesson in bank.lessons(stage="candidate")]
    with pytest.raises(WrongStage, match="draft"):
        bank.sign_lesson(draft_id, signed_by="rosa")
    with pytest.raises(WrongStage, match="draft"):
        bank.drop_lesson(draft_id, reason="no")


@pytest.mark.parametrize(
    ("signed_by", "kind"), [(None, InvalidInput), ("", InvalidInput), (7, InvalidInput), ("x" * 1000, InvalidInput)]
)
def test_nobody_signs_without_a_name(mem: Memory, signed_by: Any, kind: type[Exception]) -> None:
    write(mem, tactic("tac_1"))
    with pytest.raises(kind) as raised:
        mem.bank(user_id="ana").sign_lesson("tac_1", signed_by=signed_by)
    assert raised.value.path == "$.signed_by"  # type: ignore[attr-defined]
    assert mem.bank(user_id="ana").get("tac_1").status == "active"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("", InvalidInput), (" ", InvalidInput), (None, InvalidInput), ("x" * 100_000, TooLarge)],
)
def test_nothing_is_dropped_without_a_reason(mem: Memory, reason: Any, kind: type[Exception]) -> None:
    write(mem, tactic("tac_1"))
    with pytest.raises(kind) as raised:
        mem.bank(user_id="ana").drop_lesson("tac_1", reason=reason)
    assert raised.value.path == "$.reason"  # type: ignore[attr-defined]
    assert mem.bank(user_id="ana").get("tac_1").status == "active"


def test_a_reason_that_holds_a_secret_is_refused(mem: Memory) -> None:
    write(mem, tactic("tac_1"))
    with pytest.raises(InvalidInput, match="secret"):
        mem.bank(user_id="ana").drop_lesson("tac_1", reason="it uses AKIAIOSFODNN7EXAMPLE")
    assert mem.bank(user_id="ana").get("tac_1").status == "active"


# -- scopes and forgetting ------------------------------------------------------------------------------


@pytest.mark.req("LG-02")
def test_a_lesson_of_another_bank_does_not_exist(any_mem: Memory) -> None:
    write(any_mem, tactic("tac_1"))
    for bank in (any_mem.bank(user_id="bo"), any_mem.bank(agent_id="clerk"), any_mem.bank()):
        assert bank.lessons() == bank.lessons(stage="retired") == []
        asked: list[Callable[[], Any]] = [
            partial(bank.lesson, "tac_1"),
            partial(bank.sign_lesson, "tac_1", signed_by="rosa"),
            partial(bank.drop_lesson, "tac_1", reason="mine"),
            partial(bank.lesson, "nobody"),
        ]
        for ask in asked:
            with pytest.raises(NotFound) as raised:
                ask()
            assert raised.value.path == "$.lesson_id"
    assert any_mem.bank(user_id="ana").lesson("tac_1").stage == "active"


@pytest.mark.parametrize("lesson_id", [None, 7, "", "x" * 10_000, ["tac_1"]])
def test_what_is_no_id_is_not_found(mem: Memory, lesson_id: Any) -> None:
    with pytest.raises(NotFound):
        mem.bank(user_id="ana").lesson(lesson_id)


@pytest.mark.soak
def test_above_a_user_a_lesson_names_no_run_and_no_event(any_mem: Memory) -> None:
    teach(any_mem, level="agent")
    bank = any_mem.bank(agent_id="clerk")
    lessons = bank.lessons()
    assert lessons
    for lesson in lessons:
        story = bank.lesson(lesson.lesson_id)
        assert story.level == "agent"
        assert story.evidence.run_ids == story.evidence.event_ids == ()
        assert story.evidence.trace_ids
        named = [*(run.run_id for run in story.learnt_from), *(run.run_id for run in story.runs)]
        assert set(named) == {None}


@pytest.mark.soak
@pytest.mark.req("LG-07")
def test_a_lesson_goes_with_the_runs_it_was_learnt_from(any_mem: Memory) -> None:
    teach(any_mem)
    bank = any_mem.bank(user_id="ana")
    learnt = bank.records(kind="tactic")[0].id
    dropped = bank.drop_lesson(learnt, reason="ana said that her order is late")
    any_mem.forget(user_id="ana")
    assert bank.lessons() == bank.lessons(stage="retired") == []
    with pytest.raises(NotFound):
        bank.lesson(learnt)
    assert all(dropped.plan_id != state.plan.plan_id for state in bank.plans())


@pytest.mark.soak
def test_the_words_of_a_drop_go_with_the_lesson(any_mem: Memory) -> None:
    events = teach(any_mem)
    bank = any_mem.bank(user_id="ana")
    learnt = bank.records(kind="tactic")[0].id
    bank.drop_lesson(learnt, reason="her order 4711 is late")
    assert "4711" in str([state.plan for state in bank.plans()])
    for event in events:
        any_mem.forget(event=event)
    with pytest.raises(NotFound):
        bank.lesson(learnt)
    assert "4711" not in str([state.plan for state in bank.plans()])


# -- records --------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_what_is_told_is_read_again(any_mem: Memory) -> None:
    teach(any_mem)
    bank = any_mem.bank(user_id="ana")
    for lesson in bank.lessons():
        assert Lesson.from_wire(lesson.to_wire()) == lesson
        story = bank.lesson(lesson.lesson_id)
        assert LessonStory.from_wire(story.to_wire()) == story
    (learnt,) = bank.records(kind="tactic")
    signed = bank.sign_lesson(learnt.id, signed_by="rosa")
    assert LessonDecision.from_wire(signed.to_wire()) == signed


# -- of a run -------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_a_runner_says_which_lessons_its_run_had_and_which_came_of_it(mem: Memory) -> None:
    def agent(task: Any) -> dict[str, Any]:
        way = "by_number" if int(task.task.rpartition(" ")[2]) % 2 else "by_name"
        task.run.observe_tool(way, content="tried")
        return {"text": way, "features": {"way": way}}

    runner = mem.runner(agent, lambda output, _: output.text == "by_number", user_id="ana", agent_id="clerk")
    done = [runner.run(f"Find order {number}", intent=INTENT) for number in range(12)]
    bank = mem.bank(user_id="ana")
    made = [id_ for each in done for id_ in each.lessons.made]
    assert made
    assert set(made) <= {lesson.lesson_id for lesson in bank.lessons()}
    assert len(made) == len(set(made))
    later = [id_ for each in done for id_ in (*each.lessons.had, *each.lessons.held_out)]
    assert set(later) <= set(made)
    run = mem.run(user_id="ana", agent_id="clerk")
    assert run.learning.lessons().to_wire() == {"had": [], "held_out": [], "made": []}
    run.observe("user", "Find the order")
    bank.sign_lesson(made[0], signed_by="rosa")
    recalled = run.learning.recall("Find the order", intent=INTENT)
    lessons = run.learning.lessons()
    assert made[0] in {*lessons.had, *lessons.held_out}
    assert set(lessons.had) <= {hint.memory_id for hint in recalled.hints}


@pytest.mark.soak
def test_a_draft_that_comes_later_takes_no_lesson_back(any_mem: Memory) -> None:
    """The draft of its rule is made when the contrast is surer: by then the tactic is on trial, and stays so."""
    teach(any_mem)
    bank = any_mem.bank(user_id="ana")
    (lesson,) = [each for each in bank.lessons() if {kept.kind for kept in each.kept_as} == {"tactic", "draft"}]
    story = bank.lesson(lesson.lesson_id)
    assert story.stage == "trial"
    assert story.history[-1].stage == story.stage
    stages = [change.stage for change in story.history]
    assert "candidate" not in stages[stages.index("trial") :]
