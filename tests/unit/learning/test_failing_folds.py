"""A fold that fails by a defect, or by a plug-in that raises: the run stays judged and ended, and can be learnt later.

Each part of a fold is made to raise what nobody foresaw, at every door through which a run is learnt from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import muniment
from muniment.errors import EmbedderUnreachable, InvalidInput, LearningFailed
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.learning._lesson_writing import LessonAnswer

PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
INTENT = {"domain_tag": "travel", "task_family": "booking"}
RAISED: tuple[Exception, ...] = (
    RuntimeError("no more"),
    KeyError("weights"),
    ZeroDivisionError(),
    OSError(5, "a disk of its own"),
    EmbedderUnreachable("no answer"),
)


class Broken:
    """Stands for any part: whatever is asked of it raises."""

    name, identity, dim, is_exact = "broken", "broken", 4, True

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __call__(self, *_args: Any, **_named: Any) -> Any:
        raise self._error

    embed = count = count_many = write = __call__


def _begun(mem: Memory, **names: Any) -> Run:
    run = mem.run(user_id="ana", agent_id="agent", **names)
    run.observe("user", "Find a table.")
    run.observe_tool("look", content="12 tables", args={"row": 1})
    return run


def _kept(mem: Memory, run_id: str) -> list[str]:
    """The verdicts of a run in its ledger, and that it ended."""
    events = (entry.metadata for entry in mem.ledger.entries(user_id="ana") if entry.scope.run_id == run_id)
    told = [each for each in events if each.get("event") in ("output_verified", "run_finished")]
    return [str(each["result"]["verdict"] if "result" in each else "end") for each in told]


# What may fail while a run is folded: the code, what counts tokens, what embeds, what is written in its transaction.
PLACES = (
    "muniment.learning.folding.plan_fold",
    "muniment.learning.folding._see",
    "muniment.learning.folding.run_plan",
    "muniment.learning.folding.lesson_moves",
    "muniment.learning.folding.write_bank",
    "counter",
)


@contextmanager
def _failing(mem: Memory, place: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        if place == "counter":
            patch.setattr(mem._ctx.counter, "count", Broken(error))
        else:
            patch.setattr(place, Broken(error))
        yield


def _check_and_take_up(mem: Memory, run: Run, said: LearningFailed, error: Exception, *, ends: bool = True) -> None:
    assert said.code == "learning_failed"
    assert said.__cause__ is error
    assert said.details["run_id"] == run.run_id
    assert "learn" in said.hint
    assert _kept(mem, run.run_id) == (["PASS", "end"] if ends else ["PASS"])
    assert run.learning.learned() is None
    assert mem.bank(user_id="ana").records() == [], "nothing was half-written"
    assert mem.verify().ok
    learned = mem.learning.learn(run.run_id, PASS, intent=INTENT)
    assert learned.fold.produced.reasoning_ids
    assert learned.capsule.refs.verifier_ref is not None, "what was kept then is what it was learnt by"
    assert _kept(mem, run.run_id) == (["PASS", "end"] if ends else ["PASS"]), "and it is not kept twice"
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.req("RC-10")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_a_run_whose_fold_fails_is_judged_and_ended_all_the_same(
    mem: Memory, monkeypatch: pytest.MonkeyPatch, place: str, error: Exception
) -> None:
    run = _begun(mem)
    with _failing(mem, place, error, monkeypatch), pytest.raises(LearningFailed) as failed:
        run.finish(verifier_result=PASS, intent=INTENT)
    _check_and_take_up(mem, run, failed.value, error)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_it_is_so_on_every_engine(make: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    mem, error = make(engine), RuntimeError("no more")
    run = _begun(mem)
    with _failing(mem, PLACES[2], error, monkeypatch), pytest.raises(LearningFailed) as failed:
        run.finish(verifier_result=PASS, intent=INTENT)
    _check_and_take_up(mem, run, failed.value, error)


@pytest.mark.soak
@pytest.mark.parametrize("place", PLACES)
def test_to_learn_without_an_end_keeps_the_verdict(mem: Memory, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    run, error = _begun(mem), KeyError("weights")
    with _failing(mem, place, error, monkeypatch), pytest.raises(LearningFailed) as failed:
        run.learning.learn(PASS, intent=INTENT)
    assert run.state().stop_reason is None
    _check_and_take_up(mem, run, failed.value, error, ends=False)


def test_a_fold_midway_that_fails_leaves_the_run_to_go_on(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _begun(mem)
    with _failing(mem, PLACES[0], RuntimeError("no"), monkeypatch), pytest.raises(LearningFailed):
        run.learning.fold(verifier_result=PASS, intent=INTENT)
    assert run.state().stop_reason is None
    run.observe("assistant", "Booked.")
    run.finish(verifier_result=PASS, intent=INTENT)
    assert _kept(mem, run.run_id) == ["PASS", "end"]


def test_a_run_that_has_ended_is_told_of_and_left_as_it_is(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _begun(mem)
    run.finish()
    with _failing(mem, PLACES[0], RuntimeError("no"), monkeypatch), pytest.raises(LearningFailed):
        mem.learning.learn(run.run_id, PASS, intent=INTENT)
    assert _kept(mem, run.run_id) == ["end"]


def test_what_stops_the_program_is_no_failure_of_a_fold(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _begun(mem)
    with monkeypatch.context() as patch:
        patch.setattr("muniment.learning.folding.plan_fold", Broken(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            run.finish(verifier_result=PASS, intent=INTENT)
    assert _kept(mem, run.run_id) == []
    run.finish(verifier_result=PASS, intent=INTENT)
    assert _kept(mem, run.run_id) == ["PASS", "end"]


# -- plug-ins -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", RAISED[:3], ids=lambda error: type(error).__name__)
def test_an_embedder_that_raises(
    make: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Vectors follow the ledger, so a run that is learnt from does not wait for them."""
    mem = make()
    run = _begun(mem)
    monkeypatch.setattr(mem._ctx, "embedder", Broken(error))
    run.finish(verifier_result=PASS, intent=INTENT)
    monkeypatch.undo()
    assert _kept(mem, run.run_id) == ["PASS", "end"]
    assert mem.verify().ok


class Answering:
    """A writer of lessons that answers whatever it is told to."""

    name = "odd"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def write(self, _question: Any, _tokens_max: int, /) -> Any:
        return self._answer


@pytest.mark.parametrize(
    "answer",
    [LessonAnswer(("a text",)), LessonAnswer((None,)), LessonAnswer((), malformed="many")],  # type: ignore[arg-type]
    ids=["text", "nothing", "no number"],
)
@pytest.mark.parametrize("door", ["store", "call"])
def test_a_writer_of_lessons_that_answers_what_is_none(
    make: Callable[..., Memory], answer: LessonAnswer, door: str
) -> None:
    mem = make()
    if door == "store":
        mem._ctx.lessons = Answering(answer)
    run = _begun(mem)
    said = {"lessons": Answering(answer)} if door == "call" else {}
    folded = run.finish(verifier_result=PASS, intent=INTENT, **said)
    assert (folded.model_extra or {})["lessons"]["failed"] == "model_malformed"
    assert _kept(mem, run.run_id) == ["PASS", "end"]
    assert run.learning.learned() is not None


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_a_writer_of_lessons_that_raises_is_told_in_the_fold(mem: Memory, error: Exception) -> None:
    run = _begun(mem)
    folded = run.finish(verifier_result=PASS, intent=INTENT, lessons=Broken(error))
    assert (folded.model_extra or {})["lessons"]["failed"].startswith("model_")
    assert _kept(mem, run.run_id) == ["PASS", "end"]


def test_where_a_model_was_asked_the_end_is_kept_too(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run, error = _begun(mem), RuntimeError("no more")
    with _failing(mem, PLACES[0], error, monkeypatch), pytest.raises(LearningFailed) as failed:
        run.finish(verifier_result=PASS, intent=INTENT, lessons=lambda _messages: '{"lessons": []}')
    _check_and_take_up(mem, run, failed.value, error)


def test_a_writer_that_cannot_even_be_looked_at_is_refused_and_changes_nothing(mem: Memory) -> None:
    class Shy:
        @property
        def name(self) -> str:
            raise RuntimeError("ask somebody else")

        def write(self, *_args: Any) -> None: ...

    run = _begun(mem)
    with pytest.raises(InvalidInput) as refused:
        run.finish(verifier_result=PASS, intent=INTENT, lessons=Shy())
    assert refused.value.path == "$.lessons"
    assert _kept(mem, run.run_id) == []


# -- doors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["main", "kroll"])
def test_a_runner_ends_all_its_runs_and_says_which_were_not_learnt_from(
    mem: Memory, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    runner = mem.runner(lambda _task: "A table for two.", lambda *_: True, user_id="ana", agent_id="agent")
    error = KeyError("weights")
    with _failing(mem, PLACES[0], error, monkeypatch), pytest.raises(LearningFailed) as failed:
        runner.run("Find a table.", mode, run_id="tried", intent=INTENT, **({"k": 3} if mode == "kroll" else {}))
    runs = {entry.scope.run_id for entry in mem.ledger.entries(user_id="ana")}
    assert len(runs) == (3 if mode == "kroll" else 1)
    assert all(_kept(mem, run_id) == ["PASS", "end"] for run_id in runs)
    assert failed.value.__cause__ is error
    for run_id in sorted(runs):
        assert mem.learning.learn(run_id, PASS, intent=INTENT).fold.produced.reasoning_ids


def test_of_several_attempts_those_that_can_be_are_learnt_from(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    from muniment.learning import folding

    calls, whole = [0], folding.plan_fold

    def second_fails(*args: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            raise RuntimeError("once")
        return whole(*args, **named)

    monkeypatch.setattr(folding, "plan_fold", second_fails)
    runner = mem.runner(lambda _task: "A table.", lambda *_: True, user_id="ana", agent_id="agent")
    with pytest.raises(LearningFailed) as failed:
        runner.run("Find a table.", "kroll", k=3, run_id="tried", intent=INTENT)
    assert failed.value.details["run_id"] == "tried-2"
    assert len(_logs(mem)) == 2


def _logs(mem: Memory) -> list[dict[str, Any]]:
    from muniment.learning.folding import list_event_logs

    return mem._ctx.engine.read("default", lambda reader: list_event_logs(reader, "bank:user:ana"))


def test_tidying_that_fails_leaves_what_was_learnt(mem: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    run = _begun(mem)
    with monkeypatch.context() as patch:
        patch.setattr("muniment.learning.tidying.tidy_sometimes", Broken(RuntimeError("no")))
        with pytest.raises(LearningFailed, match="was learnt from"):
            run.finish(verifier_result=PASS, intent=INTENT)
    assert run.learning.learned() is not None
    assert _kept(mem, run.run_id) == ["PASS", "end"]


def test_the_async_face_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> list[str]:
        async with await muniment.aio.open() as mem:
            run = await mem.run(user_id="ana", agent_id="agent")
            await run.observe("user", "Find a table.")
            with monkeypatch.context() as patch:
                patch.setattr("muniment.learning.folding.plan_fold", Broken(KeyError("weights")))
                with pytest.raises(LearningFailed):
                    await run.finish(verifier_result=PASS, intent=INTENT)
            learned = await mem.learning.learn(run.run_id, PASS, intent=INTENT)
            return list(learned.fold.produced.reasoning_ids or ())

    assert asyncio.run(story())
