"""CrewAI, by the real package and a scripted model: crews, agents alone, its tools, its calls on a memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("crewai") is not None:  # said before it is loaded, and nowhere else: it would turn off tracing for others
    os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it looks for prices on the network
pytest.importorskip(
    "crewai", reason="CREWAI TESTS SKIPPED: no crewai here; `make tools` installs it beside the product"
)

from connected import over_http
from crewai import Agent, Crew, Process, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from framework_pages import play_page

import muniment
from muniment.errors import InvalidInput, NotFound
from muniment.integrations.crewai import MunimentMemory

pytestmark = pytest.mark.filterwarnings("ignore")
BERLIN = "I moved to Berlin in May."
ASKED = "Where do I live?"


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CrewAI keeps files of its own: here, and not in the home of whoever runs this."""
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["open", "connected"])
def mem(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[muniment.Memory]:
    with ExitStack() as stack:
        store = stack.enter_context(muniment.open(":memory:"))
        yield store if request.param == "open" else over_http(store, tmp_path, stack)


@pytest.fixture
def store() -> Iterator[muniment.Memory]:
    with muniment.open(":memory:") as made:
        yield made


class Script(BaseLLM):
    """A model that says what it is told to, and keeps what it was asked."""

    answers: list[str]
    asked: list[Any]

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        self.asked.append("\n".join(str(each["content"]) for each in messages))
        answer = self.answers.pop(0)
        return answer if answer.startswith("Thought:") else f"Thought: I know.\nFinal Answer: {answer}"

    def supports_function_calling(self) -> bool:
        return False


def script(*answers: str) -> Script:
    return Script(model="script", answers=list(answers), asked=[])


def acts(name: str, given: str) -> str:
    return f"Thought: I look.\nAction: {name}\nAction Input: {given}"


def crew_of(memory: Any, model: Script, *descriptions: str, **given: Any) -> Crew:
    agent = Agent(role="Helper", goal="Help.", backstory="You help.", llm=model, tools=given.pop("tools", []))
    tasks = [Task(description=each, expected_output="An answer.", agent=agent) for each in descriptions]
    return Crew(agents=[agent], tasks=tasks, memory=memory, process=Process.sequential, verbose=False, **given)


def memory_of(mem: Any, session: str, user: str = "ana", **given: Any) -> MunimentMemory:
    return MunimentMemory(mem, user_id=user, session_id=session, **given)


def said(mem: Any, session: str, user: str = "ana") -> list[str]:
    entries = mem.ledger.entries(user_id=user, session_id=session)
    return [mem.ledger.content(entry.id) for entry in entries if entry.kind == "message" and not entry.is_forgotten]


def test_a_later_session_is_told_and_the_answer_leads_back(mem: Any) -> None:
    model = script("Noted.", "In Berlin [1].", "You asked.", "No idea.")
    crew_of(memory_of(mem, "s1"), model, BERLIN).kickoff()
    memory = memory_of(mem, "s2")
    assert crew_of(memory, model, ASKED).kickoff().raw == "In Berlin [1]."
    assert model.asked[-1].count(BERLIN) == 1
    assert model.asked[-1].count(ASKED) == 1
    (answer,) = [e for e in mem.ledger.entries(user_id="ana", session_id="s2") if e.role == "assistant"]
    assert answer.speaker == "Helper"
    assert answer.cited is not None
    (why,) = mem.why(answer.id)
    assert [mem.ledger.content(each) for each in why.evidence_ids] == [BERLIN]

    crew_of(memory, model, "What did I ask about my home?").kickoff()
    assert model.asked[-1].count(ASKED) <= 1, "nothing twice"
    assert said(mem, "s2") == [ASKED, "In Berlin [1].", "What did I ask about my home?", "You asked."]

    crew_of(memory_of(mem, "s1", "ben"), model, ASKED).kickoff()
    assert "Berlin" not in model.asked[-1]
    assert mem.verify().ok


def test_what_a_kickoff_hands_on_itself_is_not_told_again(store: Any) -> None:
    model = script("Rome has plugh.", "A poem on plugh.", "Rome again.", "A second poem.")
    crew = crew_of(memory_of(store, "s1"), model, "Say something of Rome.", "Write a poem about Rome.")
    crew.kickoff()
    assert model.asked[1].count("Rome has plugh.") == 1, "it is the context of the second task"
    crew.kickoff()
    assert model.asked[2].count("Rome has plugh.") == 1, "another kickoff is told of the first"
    assert model.asked[3].count("Rome again.") == 1
    assert said(store, "s1").count("Say something of Rome.") == 2, "each kickoff is recorded"


def test_the_same_crew_is_told_anew_for_other_inputs(store: Any) -> None:
    run = store.run(user_id="ana", session_id="old")
    run.observe("user", BERLIN)
    run.observe("user", "My dog is called Plugh.")
    model = script("In Berlin.", "Plugh.")
    crew = crew_of(memory_of(store, "s1"), model, "Answer: {question}")
    crew.kickoff(inputs={"question": ASKED})
    crew.kickoff(inputs={"question": "What is my dog called?"})
    assert "My dog is called Plugh." in model.asked[1]
    assert "Evidence from memory" in model.asked[1], "a packet, and not the first one"
    assert "[1]" in model.asked[1]


def test_texts_as_they_come_out_of_a_file(store: Any) -> None:
    """YAML's folded texts end with a line break: CrewAI hands them on as they are."""
    store.run(user_id="ana", session_id="old").observe("user", BERLIN)
    model = script("In Berlin [1].")
    agent = Agent(role="Helper\n", goal="Help.\n", backstory="You help.\n", llm=model)
    task = Task(description=f"{ASKED}\n", expected_output="An answer.\nShort.\n", agent=agent)
    Crew(agents=[agent], tasks=[task], memory=memory_of(store, "s1")).kickoff()
    assert said(store, "s1") == [ASKED, "In Berlin [1]."]
    (answer,) = [e for e in store.ledger.entries(user_id="ana", session_id="s1") if e.role == "assistant"]
    assert answer.speaker == "Helper"
    assert len(store.why(answer.id)) == 1


def test_a_task_that_is_done_again_is_asked_once(store: Any) -> None:
    model = script("Too short.", "It is long enough now.")
    memory = memory_of(store, "s1")
    crew = crew_of(memory, model, "Write a sentence.")
    crew.tasks[0].guardrail = lambda output: (len(output.raw) > 12, output.raw if len(output.raw) > 12 else "longer")
    crew.tasks[0]._guardrail = crew.tasks[0].guardrail
    crew.kickoff()
    assert said(store, "s1") == ["Write a sentence.", "Too short.", "It is long enough now."]


def test_its_tools_search_and_save(store: Any) -> None:
    store.run(user_id="ana", session_id="old").observe("user", "My sister Marta works at the hospital.")
    model = script(
        acts("search_memory", '{"queries": ["Where does Marta work?", "hospital"]}'),
        acts("save_to_memory", '{"contents": ["Marta is a doctor."]}'),
        "At the hospital.",
    )
    memory = memory_of(store, "s1")
    crew_of(memory, model, "Plan a birthday cake.").kickoff()
    found = model.asked[1].rpartition("Found memories:")[2]
    assert "My sister Marta works at the hospital." in found
    assert "[1]" not in found, "a number means a source of the packet, and nothing else"
    assert "Saved to memory" in model.asked[2]
    assert "Marta is a doctor." in said(store, "s1")
    (note,) = [e for e in store.ledger.entries(user_id="ana", session_id="s1") if e.content == "Marta is a doctor."]
    assert note.role == "assistant", "the agent said it, and not the user"


def test_an_agent_alone_has_memory_too(store: Any) -> None:
    model = script("Noted.", "In Berlin.")

    def agent(session: str) -> Agent:
        memory = memory_of(store, session)
        return Agent(role="Helper", goal="Help.", backstory="You help.", llm=model, memory=memory)

    first = agent("s1")
    first.kickoff(BERLIN)
    first.memory.drain_writes()
    agent("s2").kickoff(ASKED)
    assert model.asked[-1].count(BERLIN) == 1
    assert said(store, "s1") == [BERLIN, "Noted."]


def test_its_calls_on_a_memory(mem: Any) -> None:
    memory = memory_of(mem, "s1")
    moved = memory.remember(BERLIN, scope="/home", categories=["place"], metadata={"n": 1}, importance=0.9)
    memory.remember_many(["The team meets on Mondays.", "The team has five people."], scope="/club/team")
    memory.drain_writes()
    assert moved is not None
    assert memory.list_scopes() == ["/club", "/home"]
    assert memory.list_categories() == {"place": 1}
    assert memory.info("/club").record_count == 2
    assert memory.info("/club").child_scopes == ["/club/team"]
    assert "/club/team (2 records)" in memory.tree()
    assert [r.content for r in memory.list_records("/home")] == [BERLIN]
    assert len(memory.list_records(limit=1, offset=1)) == 1

    (found, *_) = memory.recall(ASKED)
    assert (found.record.content, found.record.importance, found.record.scope) == (BERLIN, 0.9, "/home")
    assert found.record.metadata["n"] == 1
    assert 0 < found.score <= 1
    assert BERLIN not in str(memory.recall(ASKED, scope="/club"))
    assert [m.record.content for m in memory.recall(ASKED, categories=["place"], depth="shallow")] == [BERLIN]
    assert BERLIN in str(memory.scope("/home").recall(ASKED))
    assert memory_of(mem, "s1", "ben").recall(ASKED) == []
    assert memory_of(mem, "s1", "ben").list_records() == []

    newer = memory.update(moved.id, content="I moved to Hamburg in June.")
    assert (newer.scope, newer.categories, newer.metadata) == ("/home", ["place"], {"n": 1})
    assert [r.content for r in memory.list_records("/home")] == ["I moved to Hamburg in June."]
    with pytest.raises(ValueError, match="not found"):
        memory.update(moved.id, content="again")
    with pytest.raises(ValueError, match="not found"):
        memory_of(mem, "s1", "ben").update(newer.id, content="mine")

    assert memory.forget(scope="/home", categories=["other"]) == 0
    assert memory.forget(metadata_filter={"n": 2}) == 0
    assert memory.forget(older_than=newer.created_at - timedelta(days=1)) == 0
    assert memory_of(mem, "s1", "ben").forget(record_ids=[newer.id]) == 0
    assert memory.forget(record_ids=[newer.id]) == 1
    assert memory.forget(scope="/club/team") == 2
    assert memory.list_records() == []
    memory.close()


def test_what_is_read_only_private_or_empty(store: Any) -> None:
    memory = memory_of(store, "s1", read_only=True)
    assert memory.remember(BERLIN) is None
    model = script("Hello.")
    crew_of(memory, model, "Say hello.").kickoff()
    assert said(store, "s1") == []
    with pytest.raises(InvalidInput, match="private"):
        memory_of(store, "s1").remember(BERLIN, private=True, source="x")
    assert memory_of(store, "s1").extract_memories("  ") == []
    for wrong in ({"user": ""}, {"on_error": "never"}):
        with pytest.raises(InvalidInput):
            memory_of(store, "s1", **wrong)
    assert said(store, "s1") == []


def test_what_is_erased_is_gone(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "a.db") as mem:
        model = script("Noted.", "No idea.")
        memory = memory_of(mem, "s1")
        crew = crew_of(memory, model, "plugh is where I keep the key")
        crew.kickoff()
        (hit, *_) = memory.session.search("where is the key")
        with pytest.raises(NotFound):
            memory_of(mem, "s1", "ben").session.forget(hit.id)
        assert memory.forget(record_ids=[hit.id]) == 1
        crew_of(memory_of(mem, "s2"), model, "Where do I keep the key?").kickoff()
        assert "plugh" not in model.asked[-1]
        other = memory_of(mem, "s9", "ben")
        other.remember("Ben stays.")
        crew.reset_memories("memory")
        assert memory.list_records() == []
        assert len(other.list_records()) == 1, "of this user alone"
        assert mem.verify().ok
    assert b"plugh" not in b"".join(file.read_bytes() for file in tmp_path.glob("a.db*"))


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_where_memory_fails(store: Any, on_error: Any) -> None:
    model = script("Hello.")
    crew = crew_of(memory_of(store, "s1", on_error=on_error), model, "Say hello.")
    store.close()
    if on_error == "open":
        assert crew.kickoff().raw == "Hello."
        return
    with pytest.raises(Exception, match="memory failed"):
        crew.kickoff()
    assert model.asked == []


@tool("weather")
def weather(city: str) -> str:
    """How warm it is."""
    return f"12 °C in {city}"


def test_the_page_is_true() -> None:
    play_page("crewai.md")


def test_a_copy_of_a_crew_remembers_the_same(store: Any) -> None:
    model = script("Noted.", "In Berlin.")
    crew_of(memory_of(store, "s1"), model, BERLIN).kickoff()
    crew = crew_of(memory_of(store, "s2"), model, ASKED, tools=[weather])
    (done,) = crew.kickoff_for_each(inputs=[{}])
    assert done.raw == "In Berlin."
    assert BERLIN in model.asked[-1]
    assert said(store, "s2") == [ASKED, "In Berlin."]
