"""What real emitters write is read as what was said: each message once, in order, whatever it was sent as (MV-07)."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from traced import CAPTURED, captured, in_pieces, said, turns

import muniment
from muniment import Memory
from products import for_each

TOLD = [
    ("user", "My sister Ana moved to Lisbon in March."),
    ("assistant", "Noted: your sister Ana moved to Lisbon in March."),
    ("user", "What is the weather there?"),
    ("tool", "21 degrees, sunny"),
    ("assistant", "It is 21 degrees and sunny in Lisbon."),
]
LOOKED = [*TOLD[:3], ("assistant", "Let me look."), *TOLD[3:]]
WHOLE = {
    "pydantic-ai.traces": TOLD,
    "agent-framework.traces": TOLD,
    "google-adk.logs": TOLD,
    "strands.traces": TOLD,
    "strands-new.traces": TOLD,
    "openai-v2-chat.logs": TOLD,
    "openai-v2-latest-chat-span.traces": TOLD,
    "openai-v2-latest-chat-event.logs": TOLD,
    "traceloop-chat.traces": TOLD,
    "traceloop-anthropic.traces": LOOKED,
    "openinference-chat.traces": TOLD,
    "openinference-anthropic.traces": LOOKED,
    "openinference-responses.traces": TOLD,
}
"""What each capture tells by itself."""


def test_every_capture_is_looked_at() -> None:
    others = {"agent-framework.logs", "google-adk.traces", "openai-v2-chat.traces", "openai-v2-chat-redacted.logs"}
    assert {path.stem for path in CAPTURED.glob("*.json")} == WHOLE.keys() | others


@pytest.mark.req("MV-07")
@pytest.mark.parametrize("name", WHOLE)
def test_a_conversation_is_read_as_it_was(mem: Memory, name: str) -> None:
    report = mem.ledger.ingest_otel(captured(name), default_user_id="ana")
    assert said(mem) == WHOLE[name]
    assert (report.messages, report.results, report.prompts) == (len(WHOLE[name]) - 1, 1, 1)
    assert len({each.session_id for each in report.sessions}) == 1
    result = next(each for each in turns(mem) if each.kind == "tool_result")
    assert result.body is not None
    assert result.body.tool is not None
    assert (result.body.tool.name, result.body.tool.ok) == ("get_weather", True)
    assert result.body.tool.args == {"city": "Lisbon"}
    assert all(each.ts < each.recorded_at for each in turns(mem))
    assert [each.ts for each in turns(mem)] == sorted(each.ts for each in turns(mem))
    assert mem.verify().ok


@pytest.mark.req("MV-07")
@pytest.mark.parametrize("name", WHOLE)
def test_sent_again_nothing_is_written_twice(mem: Memory, name: str) -> None:
    mem.ledger.ingest_otel(captured(name), default_user_id="ana")
    again = mem.ledger.ingest_otel(captured(name), default_user_id="ana")
    assert (again.messages, again.results, again.prompts, again.sessions) == (0, 0, 0, ())
    assert again.known >= len(WHOLE[name])
    assert said(mem) == WHOLE[name]


@pytest.mark.soak
@pytest.mark.req("MV-07")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", WHOLE)
def test_span_by_span_in_any_order_it_is_the_same(mem: Memory, name: str, seed: int) -> None:
    """Parents after children, late, twice."""
    pieces = in_pieces(captured(name), seed)
    for piece in [*pieces, *pieces]:
        mem.ledger.ingest_otel(piece, default_user_id="ana")
    assert Counter(said(mem)) == Counter(WHOLE[name])


@for_each("first", ["traces", "logs"])
@for_each("name", ["agent-framework", "google-adk", "openai-v2-chat"])
def test_spans_and_logs_of_one_trace_tell_it_once(name: str, first: str) -> None:
    other = "logs" if first == "traces" else "traces"
    with muniment.open() as mem:
        for signal in (first, other):
            mem.ledger.ingest_otel(captured(f"{name}.{signal}"), default_user_id="ana")
        counts = Counter(said(mem))
    if name == "agent-framework" and first == "logs":  # its logs name no session, and hold no answer to know one by
        counts[TOLD[0]] -= 1
        counts[TOLD[1]] -= 1
    assert counts == Counter(TOLD)


def test_what_was_not_captured_is_said_and_not_made_up(mem: Memory) -> None:
    for name in ("openai-v2-chat-redacted.logs", "google-adk.traces", "openai-v2-chat.traces"):
        report = mem.ledger.ingest_otel(captured(name), default_user_id="ana")
        assert (report.messages, report.results) == (0, 0), name
        assert report.left_out["without_content"] >= 4, name
    assert said(mem) == []


def test_whose_and_which_agent_it_was_the_spans_say(mem: Memory) -> None:
    for name in ("strands.traces", "google-adk.logs"):
        report = mem.ledger.ingest_otel(captured(name))
        assert {(each.user_id, each.session_id) for each in report.sessions} <= {("ana", "conv-7")}
    assert {each.scope.agent_id for each in turns(mem)} == {"travel"}
    report = mem.ledger.ingest_otel(captured("pydantic-ai.traces"))
    assert report.messages == 0
    assert report.left_out["no_user"] == report.rejected_spans == 6


def test_an_answer_says_which_model_gave_it(mem: Memory) -> None:
    mem.ledger.ingest_otel(captured("openai-v2-latest-chat-span.traces"), default_user_id="ana")
    answer = turns(mem)[-1]
    about = answer.metadata["otel"]
    assert isinstance(about, dict)
    assert about["model"] == "gpt-fake-2026"
    assert (about["input_tokens"], about["output_tokens"]) == (12, 7)
    assert len(str(about["trace_id"])) == 32


def test_a_later_trace_that_repeats_the_beginning_goes_on_with_the_session(mem: Memory) -> None:
    """agent-framework names no conversation: two traces, of which the second repeats the first."""
    report = mem.ledger.ingest_otel(captured("agent-framework.traces"), default_user_id="ana")
    assert len({each.session_id for each in report.sessions}) == 1
    assert said(mem) == TOLD


@pytest.mark.req("MV-07")
@pytest.mark.parametrize("name", ["pydantic-ai.traces", "google-adk.logs"])
def test_several_exporters_at_once_write_it_once(tmp_path: Path, name: str) -> None:
    """The same session from four threads, each with all of it in another order."""
    with muniment.open(tmp_path / "a.db") as mem, ThreadPoolExecutor(4) as pool:
        pieces = [in_pieces(captured(name), seed) for seed in range(4)]

        def send(own: list[dict[str, Any]]) -> None:
            for piece in own:
                mem.ledger.ingest_otel(piece, default_user_id="ana")

        for done in [pool.submit(send, own) for own in pieces]:
            done.result()
        assert Counter(said(mem)) == Counter(WHOLE[name])
        assert mem.verify().ok
