"""An agent that is traced has memory: its trace is taken in, and a question is answered from it, with its evidence.

The agent is a real one of pydantic-ai with a scripted model and a tool. It has no line of ours in it.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the pydantic-ai extra is not installed: pip install 'muniment[pydantic-ai]'")
pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

import muniment


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(f"The boat leaves at {last.content}.")])
    if "boat" in str(getattr(last, "content", "")):
        return ModelResponse(parts=[ToolCallPart("timetable", {"pier": "B"}, tool_call_id="t1")])
    return ModelResponse(parts=[TextPart("I will remember that.")])


def talk(provider: TracerProvider) -> None:
    """Two turns of an agent, traced by its framework."""
    agent = Agent(FunctionModel(answer), name="ferry", instructions="You help travellers.")
    agent.instrument = InstrumentationSettings(tracer_provider=provider)

    @agent.tool_plain
    def timetable(pier: str) -> str:
        return "17:45 from pier B"

    first = agent.run_sync("My grandmother Ingrid is allergic to walnuts.")
    agent.run_sync("When does the boat leave?", message_history=first.all_messages())
    provider.shutdown()


def check_memory(mem: muniment.Memory) -> None:
    """Questions are answered from what was traced, and what they cite leads to the entries."""
    for query, words, role in (
        ("What is Ingrid allergic to?", "walnuts", "user"),
        ("When does the boat leave from pier B?", "17:45", "tool"),
    ):
        build = mem.run(user_id="ana").compose("responder", query=query)
        assert words in build.text
        assert build.found
        cited = [mem.ledger.get(id_) for id_ in set(build.marks.values()) if id_.startswith("evt_")]
        told = [each for each in cited if words in (each.content or "")]
        assert role in {each.role for each in told}
        assert {each.scope.agent_id for each in told} == {"ferry"}
    assert "travellers" not in build.text


@pytest.mark.req("MV-07")
def test_a_file_of_its_trace_answers_questions(tmp_path: Path) -> None:
    out = io.StringIO()
    provider = TracerProvider(resource=Resource.create({"user.id": "ana"}))
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
    talk(provider)
    with muniment.open(tmp_path / "a.db") as mem:
        report = mem.ledger.ingest_otel(out.getvalue())
        assert (report.messages, report.results) == (4, 1)
        assert mem.ledger.ingest_otel(out.getvalue()).sessions == ()
        check_memory(mem)


@pytest.mark.req("MV-07")
def test_by_its_exporter_and_a_server_it_has_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it is given are the standard variables: an address and a header."""
    exporting = pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        reason="opentelemetry-exporter-otlp-proto-http is not installed",
    )
    pytest.importorskip("uvicorn", reason="the server extra is not installed")
    from muniment.surfaces.http._keys import KeyFile

    with muniment.open(tmp_path / "a.db") as mem, served(mem, tmp_path, auth="on") as url:
        made = KeyFile(tmp_path / "keys.json", mem._ctx.clock).create(
            "agent", tenant="default", user="ana", access="write"
        )
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{made.token}")
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(exporting.OTLPSpanExporter()))
        talk(provider)
        check_memory(mem)


def served(mem: muniment.Memory, tmp_path: Path, **settings: Any) -> Any:
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1] / "http"))
    try:
        from http_support import running
    finally:
        sys.path.pop(0)
    return running(mem, tmp_path, **settings)
