"""DSPy, by the real package and its own dummy model: modules, histories, a retriever, tools, a callback."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it looks for prices on the network
dspy = pytest.importorskip(
    "dspy", reason="DSPY TESTS SKIPPED: no dspy here; `make tools` installs it beside the product"
)

from connected import over_http  # noqa: E402
from dspy.utils.dummies import DummyLM  # noqa: E402
from framework_pages import play_page  # noqa: E402

import muniment  # noqa: E402
from muniment.errors import InvalidInput, NotFound  # noqa: E402
from muniment.integrations.dspy import (  # noqa: E402
    MunimentCallback,
    MunimentHistory,
    MunimentModule,
    MunimentRetriever,
    memory_tools,
    with_memory,
)

pytestmark = pytest.mark.filterwarnings("ignore")
BERLIN = "I moved to Berlin in May."
ASKED = "Where do I live?"
CHAT = "question, history: dspy.History -> answer"


@pytest.fixture(params=["open", "connected"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[muniment.Memory]:
    with ExitStack() as stack:
        store = stack.enter_context(muniment.open(":memory:"))
        yield store if request.param == "open" else over_http(store, tmp_path, stack)


@pytest.fixture
def store() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as made:
        yield made


def saying(*answers: str) -> Any:
    return DummyLM([{"answer": answer} for answer in answers])


def module_of(mem: Any, session: str, user: str = "ana", signature: Any = CHAT, **given: Any) -> MunimentModule:
    return MunimentModule(signature, mem, user_id=user, session_id=session, **given)


def sent(model: Any, at: int = -1) -> str:
    return "\n".join(str(message["content"]) for message in model.history[at]["messages"])


def said(mem: Any, session: str, user: str = "ana") -> list[str]:
    entries = mem.ledger.entries(user_id=user, session_id=session)
    return [mem.ledger.content(entry.id) for entry in entries if entry.kind == "message" and not entry.is_forgotten]


def test_a_later_session_is_told_and_the_answer_leads_back(mem: Any) -> None:
    model = saying("Noted.", "In Berlin [1].", "You asked.", "No idea.")
    with dspy.context(lm=model):
        module_of(mem, "s1")(question=BERLIN)
        chat = module_of(mem, "s2")
        assert chat(question=ASKED).answer == "In Berlin [1]."
        whole = sent(model)
        assert whole.count(BERLIN) == 1
        assert whole.count(ASKED) == 1
        assert whole.index(BERLIN) < whole.index(ASKED)
        (answer,) = [e for e in mem.ledger.entries(user_id="ana", session_id="s2") if e.role == "assistant"]
        assert answer.cited is not None
        assert chat.last_build is not None
        assert answer.cited.build_id == chat.last_build.id
        (why,) = mem.why(answer.id)
        assert [mem.ledger.content(each) for each in why.evidence_ids] == [BERLIN]

        chat(question="What did I ask about my home?")
        whole = sent(model)
        assert whole.count(ASKED) == 1, "nothing of the live session twice"
        assert whole.count("In Berlin [1].") == 1
        assert said(mem, "s2") == [ASKED, "In Berlin [1].", "What did I ask about my home?", "You asked."]

        module_of(mem, "s2", "ben")(question=ASKED)
        assert "Berlin" not in sent(model)
        assert mem.verify().ok


def test_what_is_older_than_the_history_is_told(store: Any) -> None:
    model = saying("Noted.", "Fine.", "Well.", "In Berlin.")
    chat = module_of(store, "s1", turns_max=1)
    with dspy.context(lm=model):
        for text in (BERLIN, "How are you?", "And you?", ASKED):
            chat(question=text)
    messages = [str(message["content"]) for message in model.history[-1]["messages"]]
    assert sum(BERLIN in each for each in messages) == 1
    assert BERLIN in messages[-1], "the packet tells what the history left out"
    assert sum("And you?" in each for each in messages) == 1


def test_without_a_history_the_session_itself_is_told(store: Any) -> None:
    model = saying("Noted.", "In Berlin.")
    chat = module_of(store, "s1", signature="question -> answer")
    with dspy.context(lm=model):
        chat(question=BERLIN)
        chat(question=ASKED)
    assert sent(model).count(BERLIN) == 1, "nothing else sends it"


def test_histories_come_back_as_they_were(mem: Any) -> None:
    history = MunimentHistory(mem, user_id="ana", session_id="s1")
    turns = [
        {"context": ["a", {"b": 1}], "question": "Who?", "reasoning": "It says so.", "answer": "Ana."},
        {"question": "How many apples are there?", "answer": "3", "count": 3},
        {"question": "", "number": 7, "answer": "", "ok": True},
    ]
    for turn in turns:
        inputs = {name: turn[name] for name in ("context", "question", "number") if name in turn}
        history.append(inputs, {name: value for name, value in turn.items() if name not in inputs})
    assert history.load() == dspy.History(messages=turns)
    assert MunimentHistory(mem, user_id="ana", session_id="s1").load(turns_max=1).messages == turns[-1:]
    assert history.load(turns_max=0).messages == []
    assert MunimentHistory(mem, user_id="ben", session_id="s1").load().messages == []
    (hit, *_) = history.memory.search("How many apples are there?")
    history.memory.forget(hit.id)
    assert history.load().messages == [turns[0], turns[2]], "a turn that lost its question is gone"


def test_any_module_is_told_awaited_and_copied(store: Any) -> None:
    model = DummyLM([{"reasoning": "It was said.", "answer": "Noted."}, {"reasoning": "[1]", "answer": "In Berlin."}])
    chat = module_of(store, "s1", module=dspy.ChainOfThought)
    with dspy.context(lm=model):
        chat(question=BERLIN)
        copied = chat.deepcopy()
        assert copied.conversation is chat.conversation
        later = module_of(store, "s2", module=dspy.ChainOfThought)
        assert [name for name, _ in later.named_predictors()] == ["module.predict"]
        assert asyncio.run(later.acall(question=ASKED)).answer == "In Berlin."
    assert BERLIN in sent(model)
    assert later.conversation.load().messages == [{"question": ASKED, "answer": "In Berlin."}]


def test_threads_that_share_a_module_keep_their_builds(store: Any) -> None:
    store.run(user_id="ana", session_id="old").observe("user", BERLIN)
    chat = module_of(store, "s1", signature="question -> answer")
    questions = [f"What is {n} + 1?" for n in range(8)]
    model = DummyLM([{"answer": "One more."} for _ in questions])
    with dspy.context(lm=model):
        dspy.Parallel(num_threads=4, disable_progress_bar=True)([(chat, {"question": each}) for each in questions])
    entries = [entry for entry in store.ledger.entries(user_id="ana", session_id="s1") if entry.kind == "message"]
    for asked, answer in zip(entries[::2], entries[1::2], strict=True):
        assert answer.cited is not None
        assert store.replay(answer.cited.build_id).request.query == store.ledger.content(asked.id)
    assert len(chat.conversation.load().messages) == 8


def test_an_optimizer_can_run_without_recording(store: Any) -> None:
    chat = module_of(store, "s1", signature="question -> answer")
    chat.recording = False
    examples = [dspy.Example(question=f"What is {n} + 1?", answer=str(n + 1)).with_inputs("question") for n in range(3)]
    model = DummyLM([{"answer": str(n + 1)} for n in range(3)] * 4)
    with dspy.context(lm=model):
        optimizer = dspy.BootstrapFewShot(metric=lambda example, got, trace=None: example.answer == got.answer)
        better = optimizer.compile(chat, trainset=examples)
    assert len(better.module.demos) == 3
    assert said(store, "s1") == []


def test_passages_have_their_sources(store: Any) -> None:
    store.run(user_id="ana", session_id="old").observe("user", BERLIN)
    history = MunimentHistory(store, user_id="ana", session_id="s1")
    history.append({"question": "I like Berlin."}, {"answer": "Fine."})
    search = MunimentRetriever(history.memory, k=2)
    found = search("Where does she live, in Berlin?")
    assert found.passages[0] == BERLIN
    assert "I like Berlin." not in found.passages, "the live session is sent by the program"
    assert [store.ledger.content(each) for each in found.sources[0]] == [BERLIN]
    assert len(search(ASKED, k=1).passages) == 1
    assert MunimentRetriever(MunimentHistory(store, user_id="ben", session_id="s").memory)(ASKED).passages == []


def test_a_model_searches_and_proposes(store: Any) -> None:
    event = store.run(user_id="ana", session_id="old").observe("user", BERLIN)
    history = MunimentHistory(store, user_id="ana", session_id="s1")
    right = {"key": "user.city", "value": "Berlin", "source_id": event.id, "quote": "moved to Berlin"}
    steps = [
        ("search_memory", {"query": "home", "limit": 2}), ("propose_fact", {**right, "quote": "in Rome"}),
        ("propose_fact", right), ("finish", {}),
    ]  # fmt: skip
    thought = [
        {"next_thought": "…", "next_tool_name": name, "next_tool_args": args, "reasoning": "…"} for name, args in steps
    ]
    model = DummyLM([*thought, {"reasoning": "…", "answer": "In Berlin."}])
    agent = dspy.ReAct("question -> answer", tools=memory_tools(history.memory))
    with dspy.context(lm=model):
        answer = agent(question=ASKED)
    assert answer.answer == "In Berlin."
    seen = answer.trajectory
    assert seen["observation_0"][0]["id"] == event.id
    assert "error" in seen["observation_1"] or seen["observation_1"]["status"] == "declined"
    assert seen["observation_2"]["status"] == "proposed"


def test_a_callback_records_the_outermost_call(store: Any) -> None:
    history = MunimentHistory(store, user_id="ana", session_id="s1")
    program = dspy.ChainOfThought("question -> answer")
    model = DummyLM([{"reasoning": "So it is.", "answer": "Noted."}])
    with dspy.context(lm=model, callbacks=[MunimentCallback(history)]):
        program(question=BERLIN)
    assert said(store, "s1") == [BERLIN, "Noted."]
    assert history.load().messages == [{"question": BERLIN, "reasoning": "So it is.", "answer": "Noted."}]
    chat = module_of(store, "s2")
    with dspy.context(lm=saying("Hi."), callbacks=[MunimentCallback(history)]):
        chat(question="Hello.")
    assert said(store, "s1") == [BERLIN, "Noted."], "what records by itself is recorded once"
    assert said(store, "s2") == ["Hello.", "Hi."]

    class Failing(dspy.Module):
        def forward(self, question: str) -> Any:
            raise ValueError(question)

    with dspy.context(callbacks=[MunimentCallback(history)]), pytest.raises(ValueError, match="xyzzy"):
        Failing()(question="xyzzy")
    assert said(store, "s1") == [BERLIN, "Noted."]


def test_what_is_erased_is_gone(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db") as mem:
        model = saying("Noted.", "No idea.")
        with dspy.context(lm=model):
            first = module_of(mem, "s1")
            first(question="plugh is where I keep the key")
            (hit, *_) = first.conversation.memory.search("where is the key")
            with pytest.raises(NotFound):
                module_of(mem, "s1", "ben").conversation.memory.forget(hit.id)
            first.conversation.memory.forget(hit.id)
            module_of(mem, "s2")(question="Where do I keep the key?")
            assert "plugh" not in sent(model)
            assert first.conversation.load().messages == []
        first.conversation.memory.forget_session()
        assert mem.verify().ok
    assert b"plugh" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_where_memory_fails(store: Any, on_error: Any) -> None:
    model = saying("Hello.")
    chat = module_of(store, "s1", on_error=on_error)
    store.close()
    with dspy.context(lm=model):
        if on_error == "open":
            assert chat(question="Hi.").answer == "Hello."
            return
        with pytest.raises(Exception, match="closed"):
            chat(question="Hi.")
    assert model.history == []


def test_the_page_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    play_page("dspy.md")


def test_bad_input_is_refused(store: Any) -> None:
    assert list(with_memory("question -> answer").input_fields) == ["memory", "question"]
    with pytest.raises(InvalidInput, match="memory"):
        with_memory("memory, question -> answer")
    with pytest.raises(InvalidInput):
        module_of(store, "s1", user="")
    with pytest.raises(InvalidInput, match="on_error"):
        module_of(store, "s1", on_error="never")
