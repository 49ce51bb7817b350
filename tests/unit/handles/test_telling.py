"""Spans of our own: what memory is asked, by the conventions for memory, without a word of what was said (UK-06)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import muniment
from muniment import Memory
from muniment.errors import MissingDependency, NotFound

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


class Told:
    """An SDK of this test's own, and the spans that it was told."""

    def __init__(self, exporter: Any, tracer: Any) -> None:
        self._exporter, self.tracer = exporter, tracer

    def spans(self) -> list[Any]:
        found = list(self._exporter.get_finished_spans())
        self._exporter.clear()
        return found


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")
    from opentelemetry import trace
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.delenv(CAPTURE, raising=False)
    yield Told(exporter, provider.get_tracer("agent"))
    provider.shutdown()


@pytest.fixture
def mem(told: Told) -> Iterator[Memory]:
    with muniment.open(otel=True) as opened:
        yield opened


def all_asked(mem: Memory) -> dict[str, Any]:
    run = mem.run(user_id="ana", agent_id="helper", session_id="s1", run_id="r1")
    event = run.observe("user", "I live in Oslo.")
    fact = run.remember("user.city", "Oslo", sources=[event.id], quote="I live in Oslo")
    hits = run.search("Where does she live?")
    build = run.compose("responder", query="Where does she live?")
    run.verify("Oslo is a city.", documents=["Oslo is a city."])
    receipt = mem.forget(event=event.id)
    return {"fact": fact, "hits": hits, "build": build, "receipt": receipt, "event": event}


@pytest.mark.req("UK-06")
def test_each_question_is_a_span_of_the_callers_trace(mem: Memory, told: Told) -> None:
    with told.tracer.start_as_current_span("agent") as outer:
        made = all_asked(mem)
    *spans, _ = told.spans()
    assert [each.name for each in spans] == [
        "upsert_memory",
        "search_memory",
        "search_memory",
        "verify",
        "delete_memory",
    ]
    assert {each.context.trace_id for each in spans} == {outer.get_span_context().trace_id}
    remembered, searched, composed, verified, forgotten = [dict(each.attributes) for each in spans]
    run = {"gen_ai.conversation.id": "s1", "gen_ai.agent.name": "helper", "muniment.run.id": "r1"}
    assert remembered == run | {
        "gen_ai.operation.name": "upsert_memory", "muniment.operation": "remember",
        "gen_ai.memory.record.id": made["fact"].fact_id, "gen_ai.memory.record.count": 1,
    }  # fmt: skip
    assert searched["gen_ai.memory.record.count"] == len(made["hits"]) > 0
    assert composed["muniment.build.id"] == made["build"].id
    assert composed["muniment.operation"] == "compose"
    assert "gen_ai.operation.name" not in verified
    assert [each.name for each in spans[3].events] == ["gen_ai.evaluation.result"]
    assert forgotten["gen_ai.memory.record.id"] == made["event"].id
    assert forgotten["muniment.receipt.id"] == made["receipt"].receipt_id
    whole = json.dumps([[dict(each.attributes), [dict(event.attributes) for event in each.events]] for each in spans])
    assert "Oslo" not in whole
    assert "live" not in whole


@pytest.mark.req("UK-06")
@pytest.mark.parametrize(
    ("value", "captures"), [("true", True), ("SPAN_ONLY", True), ("EVENT_ONLY", False), ("false", False)]
)
def test_content_stands_in_a_span_by_the_conventions_own_variable_alone(
    mem: Memory, told: Told, monkeypatch: pytest.MonkeyPatch, value: str, captures: bool
) -> None:
    monkeypatch.setenv(CAPTURE, value)
    all_asked(mem)
    searched = dict(told.spans()[1].attributes)
    assert ("gen_ai.memory.query.text" in searched) is captures
    if captures:
        assert searched["gen_ai.memory.query.text"] == "Where does she live?"
        assert json.loads(searched["gen_ai.memory.records"])[0]["content"] == "I live in Oslo."


def test_of_an_error_the_code_is_told(mem: Memory, told: Told) -> None:
    with pytest.raises(NotFound):
        mem.forget(event="a secret name")
    (span,) = told.spans()
    assert span.attributes["error.type"] == "not_found"
    assert span.status.status_code.name == "ERROR"
    assert not span.events
    assert "secret" not in span.to_json()


def test_off_nothing_is_told_and_nothing_is_loaded(told: Told) -> None:
    with muniment.open() as mem:
        all_asked(mem)
    assert told.spans() == []
    code = "import sys, muniment; muniment.open().run(user_id='a').search('x'); print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_the_extra_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "opentelemetry", missing)
    with pytest.raises(MissingDependency, match="OpenTelemetry"):
        muniment.open(otel=True)
