"""The number of a trial is never given twice, and what a run had of a lesson is what was drawn for it."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.core.policy import LearnPolicy, LessonPolicy
from muniment.learning._hints import Recallable, Weighed, hand_out
from muniment.learning.fold.operations import ActionContext, perform
from muniment.learning.lesson_moving import lesson_moves
from muniment.learning.lesson_state import LessonState, LessonUse
from muniment.learning.lessons.life import Family, next_state, started
from muniment.learning.lessons.proof import proven_of, trials_begun
from muniment.learning.lessons.uses import UseArm, uses_of
from muniment.learning.stored_memory import RunFacts, StoredMemory

POLICY = LessonPolicy()
INTENT = {"domain_tag": "shop", "task_family": "lookup"}
KEY = "intent|domain=shop|family=lookup"
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
OWNER = "bank:user:ana"


def at(number: int) -> str:
    return f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000000Z"


def tactic(id_: str = "tac_1", text: str = "Look it up by number.", **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.5.15", "tactic_id": id_, "created_at": at(0), "status": "active", "summary": text,
        "intent_key": KEY, "injection": {"mode": "inline", "content": text}, "lesson": {"origin": "model"}, **more,
    }  # fmt: skip


def memory(id_: str = "tac_1", stage: str = "trial", **state: Any) -> StoredMemory:
    plain = {"id": id_, "kind": "tactic", "level": "user", "version": 1, "created_at": at(0), "record": tactic(id_)}
    status = "retired" if stage == "retired" else "active"
    lesson = {"stage": stage, "since": at(0), "why": "so"} | state
    return StoredMemory.from_wire(plain | {"status": status, "lesson": lesson})


def uses(first: int, last: int, *, id_: str = "tac_1") -> list[LessonUse]:
    """Half of them had it, and those passed."""
    plain = {"memory_id": id_, "share": 0.5}
    return [
        LessonUse.from_wire(plain | {"trace_id": f"t{n}", "arm": arm, "passed": arm == "had", "at": at(n)})
        for n in range(first, last)
        for arm in (("had", "held_out")[n % 2],)
    ]


# -- what is known of earlier trials ------------------------------------------------------------------


def test_trials_without_a_number_are_counted_once_however_many_follow() -> None:
    listed = [memory(f"old {n}", stage) for n, stage in enumerate(("active", "trial", "retired"))]
    given = []
    for n in range(4):
        given.append(trials_begun(listed) + 1)
        listed.append(memory(f"new {n}", trial=given[-1]))
    assert given == [4, 5, 6, 7]


def test_the_count_that_any_lesson_carries_stands_for_those_that_are_gone() -> None:
    assert trials_begun([memory(trial=2, trials=5), memory("tac_2", trial=3)]) == 5
    assert trials_begun([memory(stage="candidate", trials=9)]) == 9
    assert trials_begun([]) == 0


def test_what_was_active_in_an_earlier_version_was_not_proven_by_a_trial() -> None:
    conflict = next_state(memory(stage="active"), (), POLICY, at(9), conflict=True)
    assert conflict.state.proven, "it comes back from its pause as it was"
    old = memory().model_copy(update={"lesson": conflict.state})
    assert proven_of([old, memory(stage="active", trial=1, proven=True)]) == 1


def test_the_bet_of_a_trial_of_an_earlier_version_does_not_slide() -> None:
    """It did not say when it began; where it stands since is that moment, and of before it nothing counts."""
    known, cut = uses(10, 60), {"family": Family(3), "oldest": at(10)}
    move = next_state(memory(since=at(5)), known, POLICY, at(99), **cut)
    assert (move.state.stage, move.reason, move.state.trial, move.state.trial_at) == ("trial", "trial_over", 4, at(99))
    assert next_state(memory(since=at(10)), known, POLICY, at(99), **cut).state.stage == "active"
    assert next_state(memory(since=at(58)), known, POLICY, at(99)) is None, "its bet has hardly begun"


# -- what is written carries the count ----------------------------------------------------------------


def context(*held: StoredMemory, payload: dict[str, Any], **stages: LessonState) -> ActionContext:
    known = {each.id: each for each in held}
    return ActionContext(known, known, {"p": payload}, "user", at(50), LearnPolicy(), stages=stages)


def action(op: str, *targets: str):
    from muniment.contracts.learning import MemoryAction

    plain = {"op": op, "target_store": "ReuseBuffer", "payload_ref": "p"}
    return MemoryAction.from_wire(plain | ({"target_ids": list(targets)} if targets else {}))


def test_a_lesson_that_says_something_else_keeps_what_was_spent() -> None:
    (made,) = perform(action("WRITE"), context(memory(trial=4, trial_at=at(3)), payload=tactic(text="Refund it all.")))
    assert (made.lesson.stage, made.lesson.trial, made.lesson.trial_at) == ("candidate", None, None)
    assert trials_begun([made]) == 4
    again = started(made, at(60), taken=0, policy=POLICY, number=trials_begun([made]) + 1)
    assert (again.state.trial, again.state.trial_at) == (5, at(60))


def test_a_lesson_that_is_written_again_by_a_fold_carries_the_count_and_stays_where_it_stands() -> None:
    before = memory(stage="active", trial=1, proven=True)
    told = before.lesson.model_copy(update={"trials": 7})
    (made,) = perform(action("WRITE"), context(before, payload=tactic(summary="Other figures."), tac_1=told))
    assert made.lesson == told
    assert proven_of([made]) == 1


@pytest.mark.parametrize("stages", [("trial", "trial"), ("trial", "active"), ("candidate", "trial")])
def test_a_merge_begins_with_no_bet_of_what_it_was_merged_from(stages: tuple[str, str]) -> None:
    held = [
        memory(f"tac_{n}", stage, trial=n + 2, trial_at=at(n), **({"proven": True} if stage == "active" else {}))
        for n, stage in enumerate(stages)
    ]
    made = perform(action("MERGE", "tac_0", "tac_1"), context(*held, payload=tactic("tac_9")))
    state = made[0].lesson
    assert (state.stage, state.trial, state.trial_at, state.proven) == ("candidate", None, None, None)
    assert trials_begun(made[:1]) == 3
    assert proven_of(made) == proven_of(held), "what it is made of counts, and it does not count again"
    begun = started(made[0], at(70), taken=0, policy=POLICY, number=4).state
    tried = made[0].model_copy(update={"lesson": begun})
    assert next_state(tried, uses(10, 60), POLICY, at(80)) is None


def test_a_merge_of_what_is_proven_is_proven_and_is_no_further_proof() -> None:
    held = [memory(f"tac_{n}", "active", trial=n + 1, proven=True) for n in range(2)]
    made = perform(action("MERGE", "tac_0", "tac_1"), context(*held, payload=tactic("tac_9")))
    assert (made[0].lesson.stage, made[0].lesson.proven) == ("active", True)
    assert proven_of(made) == 2
    doubted = [held[0], memory("tac_1", "suspended", trial=2)]
    made = perform(action("MERGE", "tac_0", "tac_1"), context(*doubted, payload=tactic("tac_9")))
    assert (made[0].lesson.stage, made[0].lesson.proven) == ("suspended", None)


# -- in a store ---------------------------------------------------------------------------------------


def policy_of(**more: Any) -> dict[str, Any]:
    return {"learn": {"lessons": {"holdout_share": 0, "trial_share": 1, "suspended_share": 1, **more}}}


def write(mem, *payloads: dict[str, Any]) -> None:
    bank = mem.bank(user_id="ana")
    plan = bank.plan([{"op": "WRITE", "target_store": "ReuseBuffer", "payload": each} for each in payloads])
    assert not bank.apply(plan.plan_id).aborted


def a_run(mem, number: int, result: dict[str, Any], used: list[str] | None = None):
    run = mem.run(user_id="ana", agent_id="clerk")
    run.observe("user", f"Find order {number}.")
    recalled = run.learning.recall(f"Find order {number}", intent=INTENT)
    run.observe("assistant", "Here it is.")
    if used is not None:
        run.learning.used(recalled, used)
    run.finish(verifier_result=result, intent=INTENT)
    return recalled


def read(mem, work):
    return mem._ctx.engine.read("default", work)


def kept_uses(mem, id_: str):
    held = mem.bank(user_id="ana").get(id_)
    return read(mem, lambda reader: uses_of(reader, OWNER, [held], 240)[id_])


@pytest.mark.soak
@pytest.mark.parametrize("result", [PASS, FAIL])
def test_a_run_stays_in_the_arm_that_was_drawn_whatever_it_says_of_the_use(make, result: dict[str, Any]) -> None:
    """Else an agent that calls a lesson unused where it failed would make any lesson look like helping."""
    mem = make(policy={"learn": {"lessons": {"trial_share": 0.5}}})
    write(mem, tactic())
    a_run(mem, 0, PASS)
    drawn = [a_run(mem, number, result, used=[]).arms for number in range(1, 13)]
    arms = [(arm.arm, arm.share) for (arm,) in drawn]
    assert {arm for arm, _ in arms} == {"had", "held_out"}
    assert [(use.arm, use.share) for use in kept_uses(mem, "tac_1").uses] == arms


@pytest.mark.soak
@pytest.mark.parametrize(("used", "had"), [(None, 1), ([], 0), (["tac_1"], 0)])
def test_what_is_no_lesson_was_had_where_the_run_says_so(make, used: list[str] | None, had: int) -> None:
    mem = make(policy=policy_of())
    write(mem, tactic())
    a_run(mem, 0, PASS)
    (first,) = mem.bank(user_id="ana").records(kind="reasoning")
    recalled = a_run(mem, 1, PASS, used=used)
    assert {hint.memory_id for hint in recalled.hints} == {first.id, "tac_1"}
    assert mem.bank(user_id="ana").get(first.id).with_tally.n == had
    assert mem.bank(user_id="ana").get("tac_1").with_tally.n == 1


def weighed(id_: str, text: str, kind: str = "tactic", **state: Any) -> Weighed:
    held = memory(id_, **state) if kind == "tactic" else memory(id_).model_copy(update={"kind": kind, "lesson": None})
    held = held.model_copy(update={"record": tactic(id_, text) | {"text": text}})
    return Weighed(Recallable(held, "ReuseBuffer" if kind == "tactic" else "Rulebook", 1.0), 1.0, {}, ())


def test_only_lessons_that_were_drawn_for_reach_a_prompt_and_keep_their_arm_where_they_do_not_fit() -> None:
    """Of two active lessons the first is held out in some runs; in the room that it leaves the third, which was too
    long to stand beside both and was not drawn for, does not come.
    """
    given = [weighed(id_, f"{id_} says {words}", stage="active") for id_, words in _LENGTHS.items()]
    policy = LearnPolicy.model_validate(
        {"injection": {"total_tokens_max": 60}, "lessons": {"holdout_share": 0.5, "uses_max": 240}}
    )

    def count(text: str) -> int:
        return len(text.split())

    seen = set()
    for number in range(30):
        handed = hand_out(given, 3, f"run {number}", policy, count)
        arms = {arm.memory_id: arm.arm for arm in handed.arms}
        assert set(arms) == {"tac_1", "tac_2"}
        assert set(handed.injection.used_ids) <= {id_ for id_, arm in arms.items() if arm == "had"}
        seen.add(tuple(arms.values()))
    assert len(seen) == 4


_LENGTHS = {"tac_1": "a " * 20, "tac_2": "b " * 20, "tac_3": "c " * 20}


def test_a_lesson_that_was_not_used_is_not_blamed_for_a_conflict(make) -> None:
    mem = make(policy=policy_of())
    write(mem, tactic())
    a_run(mem, 0, PASS)
    conflict = FAIL | {"reason_codes": ["memory_conflict"]}
    a_run(mem, 1, conflict, used=[])
    assert mem.bank(user_id="ana").get("tac_1").lesson.stage == "trial"
    a_run(mem, 2, conflict)
    assert mem.bank(user_id="ana").get("tac_1").lesson.stage == "suspended"


def moves(mem, arms: list[UseArm], family: list[StoredMemory], payloads: dict[str, Any] | None = None):
    facts = RunFacts.from_wire({"trace_id": "t", "x_summary": "so", "passed": True, "intent": INTENT, "at": at(99)})
    policy = mem._ctx.policy.learn
    return read(mem, lambda reader: lesson_moves(reader, OWNER, facts, arms, family, payloads or {}, policy, at(99)))


@pytest.mark.parametrize("out_of_sight", [(), ("tac_1",), ("tac_0", "tac_1")])
def test_each_trial_that_begins_in_one_fold_has_a_number_of_its_own(make, monkeypatch, out_of_sight) -> None:
    """Two that come back from a pause, perhaps too old to be among the newest, one that waits, and a new one."""
    mem = make(policy=policy_of(trial_places=4))
    paused = [memory(f"tac_{n}", "suspended", since=at(5), trial=n + 1) for n in range(2)]
    waiting = memory("tac_2", "candidate")
    held = {each.id: each for each in (*paused, waiting)}
    monkeypatch.setattr(
        "muniment.learning.lesson_moving.find_memory",
        lambda _reader, _owners, id_: type("Held", (), {"memory": held[id_]}) if id_ in held else None,
    )
    monkeypatch.setattr(
        "muniment.learning.lesson_moving.uses_of",
        lambda _reader, _owner, memories, _newest: {each.id: _uses(uses(10, 60, id_=each.id)) for each in memories},
    )
    arms = [UseArm(memory_id=each.id, arm="had", stage="suspended", share=0.5, family=KEY) for each in paused]
    seen = [each for each in held.values() if each.id not in out_of_sight]
    found = moves(mem, arms, seen, {"p": tactic("tac_3")}).stages
    assert {id_: state.stage for id_, state in found.items()} == dict.fromkeys(
        ("tac_0", "tac_1", "tac_2", "tac_3"), "trial"
    )
    assert sorted(state.trial for state in found.values()) == [3, 4, 5, 6]
    assert {state.trials for state in found.values()} == {6}, "each that is written knows them all"


def _uses(known: list[LessonUse]):
    from muniment.learning.lessons.uses import Uses

    return Uses(tuple(known), tuple(range(len(known)))[::-1])


def test_a_candidate_that_finds_no_place_carries_the_count(make) -> None:
    mem = make(policy=policy_of(trial_places=1))
    found = moves(mem, [], [memory(trial=3)], {"p": tactic("tac_2")}).stages
    assert (found["tac_2"].stage, found["tac_2"].trial, found["tac_2"].trials) == ("candidate", None, 3)


def test_a_number_is_not_given_again_where_its_lesson_is_out_of_sight_or_forgotten(make) -> None:
    """The runs that were of that trial tell of it."""
    mem = make(policy=policy_of(trial_places=1))
    write(mem, tactic())
    for number in range(3):
        a_run(mem, number, PASS)
    assert mem.bank(user_id="ana").get("tac_1").lesson.trial == 1
    assert kept_uses(mem, "tac_1").trials == 1
    found = moves(mem, [], [], {"p": tactic("tac_2")}).stages
    assert (found["tac_2"].stage, found["tac_2"].trial) == ("trial", 2)
    other = memory("tac_3", "candidate")
    assert moves(mem, [], [other], {}).stages["tac_3"].trial == 2


@pytest.mark.soak
def test_counts_outlive_a_rebuild(make) -> None:
    mem = make(policy=policy_of())
    write(mem, tactic(), tactic("tac_2", "Ask for the date first."))
    for number in range(3):
        a_run(mem, number, PASS)
    before = {each.id: each.lesson for each in mem.bank(user_id="ana").records(kind="tactic")}
    assert {state.trials for state in before.values()} == {2}
    assert mem.store.rebuild().repaired == ()
    assert {each.id: each.lesson for each in mem.bank(user_id="ana").records(kind="tactic")} == before
    assert mem.verify().ok
