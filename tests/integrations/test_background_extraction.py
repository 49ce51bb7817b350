"""A model reads turns behind the calls that write them: `open(extract=…)` and `wrap(…, extract=True)`."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.errors import InvalidInput, ModelUnreachable
from muniment.handles.memory import Memory
from muniment.handles.upkeep import resting
from muniment.memory import _extract_model
from planted_model import PlantedModel

AT_ONCE = {"memory": {"extraction": {"wait_s": 0}}}
WAIT_S = 120


def noted(text: str) -> list[tuple[str, str, str]]:
    return [("user.note", text.split()[-1], text)] if text.startswith("I ") else []


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def turns_read(mem: Memory) -> int:
    report = mem.store.extracted
    return 0 if report is None else report.turns


@pytest.mark.req("MP-17")
def test_turns_are_read_behind_the_calls_that_write_them(tmp_path: Path) -> None:
    model = PlantedModel(noted)
    with muniment.open(tmp_path / "a.db", extract=model, policy=AT_ONCE) as mem:
        run = mem.run(user_id="ana")
        for at in range(3):
            run.observe("user", f"I saw n{at}")
            run.observe("assistant", "I see everything")
        until(lambda: turns_read(mem) == 3)
        report = mem.store.extracted
        assert report is not None
        assert (report.promoted, report.left, report.extractor) == (3, 0, "model:planted")
        assert min(report.calls, report.tokens_in, report.tokens_out) > 0
        assert {fact.value for fact in run.facts(include_all=True)} == {"n0", "n1", "n2"}
        assert sorted(model.texts) == ["I saw n0", "I saw n1", "I saw n2"]
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()


def test_turns_that_follow_one_another_share_a_call() -> None:
    model = PlantedModel(noted)
    with muniment.open(extract=model, policy={"memory": {"extraction": {"wait_s": 0.5}}}) as mem:
        run = mem.run(user_id="ana")
        for at in range(5):
            run.observe("user", f"I saw n{at}")
        until(lambda: turns_read(mem) == 5)
    assert [len(batch) for batch in model.asked] == [5]


@pytest.mark.req("MP-17")
def test_closing_waits_for_no_model_and_another_process_goes_on(tmp_path: Path) -> None:
    asked, may_go_on, went_on = threading.Event(), threading.Event(), threading.Event()

    def hangs(_messages: list[dict[str, str]]) -> str:
        asked.set()
        may_go_on.wait(10 * WAIT_S)
        went_on.set()
        return '{"facts": []}'

    path = tmp_path / "a.db"
    with muniment.open(path, extract=hangs, policy=AT_ONCE) as mem:
        mem.run(user_id="ana", session_id="s1").observe("user", "I saw n0")
        assert asked.wait(WAIT_S)
        mem.run(user_id="ana", session_id="s2").observe("user", "I saw n1")
        assert mem.run(user_id="ana").search("n1"), "nobody waits for the model"
    assert not went_on.is_set()
    may_go_on.set()
    model = PlantedModel(noted)
    with muniment.open(path, extract=model, policy=AT_ONCE) as mem:
        mem.run(user_id="ana", session_id="s3").observe("user", "I saw n2")
        until(lambda: turns_read(mem) == 3)
        assert sorted(model.texts) == ["I saw n0", "I saw n1", "I saw n2"]
        assert mem.extract_pending().left == 0
        assert {run.stop_reason for run in mem.runs() if run.task_type == "extract"} <= {"OBJECTIVE_ACHIEVED", None}
        assert mem.verify().ok


def test_closing_does_not_wait_until_a_call_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, waited_out, pause = threading.Event(), [], _extract_model.pause

    def noted_pause(seconds: float) -> None:
        pause(seconds)
        waited_out.append(seconds)

    monkeypatch.setattr(_extract_model, "pause", noted_pause)

    def busy(_messages: list[dict[str, str]]) -> str:
        asked.set()
        raise ModelUnreachable("busy", details={"retry_after_s": 30})

    with muniment.open(tmp_path / "a.db", extract=busy, policy=AT_ONCE) as mem:
        mem.run(user_id="ana", session_id="s1").observe("user", "I saw n0")
        assert asked.wait(WAIT_S)
    assert not waited_out
    with muniment.open(tmp_path / "a.db") as mem:
        assert mem.extract_pending(model=PlantedModel(noted)).promoted == 1


@pytest.mark.req("MP-17")
def test_two_stores_on_one_file_read_each_turn_once(tmp_path: Path) -> None:
    models = [PlantedModel(noted), PlantedModel(noted)]
    opened = [muniment.open(tmp_path / "a.db", extract=model, policy=AT_ONCE) for model in models]
    try:
        for at in range(12):
            opened[at % 2].run(user_id="ana", session_id=f"s{at % 3}").observe("user", f"I saw n{at}")
        until(lambda: sum(map(turns_read, opened)) == 12)
        assert sorted(models[0].texts + models[1].texts) == sorted(f"I saw n{at}" for at in range(12))
        assert len(opened[0].run(user_id="ana").facts(include_all=True)) == 12
    finally:
        for mem in opened:
            mem.close()


@pytest.mark.req("MP-17")
def test_what_is_said_while_another_process_reads_the_session_is_read_too(tmp_path: Path) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def slow(messages: list[dict[str, str]]) -> str:
        asked.set()
        assert may_answer.wait(WAIT_S)
        return PlantedModel(noted)(messages)

    model, path = PlantedModel(noted), tmp_path / "a.db"
    with (
        muniment.open(path, extract=slow, policy=AT_ONCE) as one,
        muniment.open(path, extract=model, policy=AT_ONCE) as other,
    ):
        one.run(user_id="ana", session_id="s1").observe("user", "I saw n0")
        assert asked.wait(WAIT_S)
        other.run(user_id="ana", session_id="s1").observe("user", "I saw n1")
        until(lambda: other.store.extracted is not None)
        assert other.store.extracted.claimed == 2  # type: ignore[union-attr]
        may_answer.set()
        until(lambda: turns_read(one) + turns_read(other) == 2)
        assert model.texts == ["I saw n1"]


def test_a_model_that_is_away_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "FIRST_S", 0.05)
    away = [ModelUnreachable("away")] * 3

    def chat(messages: list[dict[str, str]]) -> str:
        if away:
            raise away.pop()
        return PlantedModel(noted)(messages)

    policy = {"memory": {"extraction": {"wait_s": 0, "attempts_max": 1}}}
    with muniment.open(extract=chat, policy=policy) as mem:
        mem.run(user_id="ana").observe("user", "I saw n0")
        until(lambda: turns_read(mem) == 1)
        assert away == []


def test_nothing_is_read_in_the_background_where_nobody_asked_for_it(tmp_path: Path) -> None:
    model = PlantedModel(noted)
    off = {"memory": {"extraction": {"in_background": False, "wait_s": 0}}}
    with muniment.open(tmp_path / "a.db", extract=model, policy=off) as mem:
        mem.run(user_id="ana").observe("user", "I saw n0")
        assert mem.store.extracted is None
        assert model.asked == []
        assert mem.extract_pending().turns == 1
    with muniment.open() as mem:
        assert mem.store.extracted is None


@pytest.mark.req("LG-07")
def test_what_is_forgotten_before_it_is_read_is_not_read() -> None:
    model = PlantedModel(noted)
    with muniment.open(extract=model, policy={"memory": {"extraction": {"wait_s": 0.3}}}) as mem:
        run = mem.run(user_id="ana")
        gone = run.observe("user", "I saw secret")
        run.observe("user", "I saw n1")
        mem.forget(event=gone.id)
        until(lambda: turns_read(mem) == 1)
        assert model.texts == ["I saw n1"]


def test_what_is_no_model_is_refused_before_a_store_is_opened(tmp_path: Path) -> None:
    for wrong in (5, "gpt", object()):
        with pytest.raises(InvalidInput):
            muniment.open(tmp_path / "a.db", extract=wrong)
    assert not (tmp_path / "a.db").exists()


# -- a wrapped client ---------------------------------------------------------------------------------


class Completions:
    """A client's calls: it answers a chat with a greeting, and a question about turns with facts."""

    def __init__(self) -> None:
        self.reader = PlantedModel(noted)
        self.asked: list[dict[str, Any]] = []

    def create(self, **given: Any) -> Any:
        self.asked.append(given)
        is_reading = "response_format" in given
        said = self.reader(given["messages"]) if is_reading else "Hello!"
        usage = {"prompt_tokens": 70, "completion_tokens": 7}
        return {"choices": [{"message": {"role": "assistant", "content": said}}], "usage": usage}


class AsyncCompletions(Completions):
    loops: set[int]

    async def create(self, **given: Any) -> Any:  # type: ignore[override]
        self.loops = getattr(self, "loops", set()) | {id(asyncio.get_running_loop())}
        return super().create(**given)


class Client:
    def __init__(self, calls: Completions) -> None:
        self.chat = type("Chat", (), {"completions": calls})()


@pytest.mark.req("MP-17")
def test_a_wrapped_client_reads_with_the_model_of_its_calls() -> None:
    calls = Completions()
    with muniment.open(policy=AT_ONCE) as mem:
        client = muniment.wrap(Client(calls), mem, user_id="ana", session_id="s1", extract=True)
        client.chat.completions.create(model="m-1", messages=[{"role": "user", "content": "I moved to Rome"}])
        until(lambda: turns_read(mem) == 1)
        report = mem.store.extracted
        assert report is not None
        assert (report.extractor, report.tokens_in, report.tokens_out, report.is_estimated) == (
            "model:m-1",
            70,
            7,
            False,
        )
        assert [fact.value for fact in mem.run(user_id="ana").facts()] == ["Rome"]
        assert [given["model"] for given in calls.asked] == ["m-1", "m-1"]
        turns = [
            entry.content for entry in mem.ledger.entries(user_id="ana", session_id="s1") if entry.kind == "message"
        ]
        assert turns == ["I moved to Rome", "Hello!"], "what is asked about turns is no part of the conversation"


def test_an_async_client_is_awaited_in_its_own_loop() -> None:
    calls = AsyncCompletions()

    async def talk() -> None:
        async with await muniment.aio.open(policy=AT_ONCE) as mem:
            client = muniment.wrap(Client(calls), mem, user_id="ana", extract=True)
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "I moved to Rome"}])
            for _ in range(100 * WAIT_S):
                if (report := mem.store.extracted) is not None and report.turns:
                    break
                await asyncio.sleep(0.01)
            assert [fact.value for fact in await (await mem.run(user_id="ana")).facts()] == ["Rome"]

    asyncio.run(talk())
    assert len(calls.loops) == 1
    assert len(calls.asked) == 2


def test_without_extract_a_wrapped_client_reads_nothing() -> None:
    calls = Completions()
    with muniment.open(policy=AT_ONCE) as mem:
        client = muniment.wrap(Client(calls), mem, user_id="ana")
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "I moved to Rome"}])
        assert mem.store.extracted is None
        assert len(calls.asked) == 1
        with pytest.raises(InvalidInput, match="a model is"):
            muniment.wrap(type("Odd", (), {"responses": calls})(), mem, user_id="ana", extract=True)
