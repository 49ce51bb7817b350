"""What an exporter sends is read the same in every form; what is broken is refused with its place (MV-07)."""

from __future__ import annotations

import io
import json
import random
import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traced import CAPTURED, attributes, captured, chat, export, said, span, text

import muniment
from muniment import Memory
from muniment.errors import InvalidInput, InvalidJson, MissingDependency, TooLarge
from muniment.traces.otlp import read_export
from products import for_each

proto = pytest.importorskip(
    "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="needs opentelemetry-proto"
)


def packed(held: dict[str, Any]) -> bytes:
    """The same request as protobuf, by OpenTelemetry's own classes."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    made = ExportLogsServiceRequest() if "resourceLogs" in held else proto.ExportTraceServiceRequest()
    return bytes(ParseDict(_with_base64(held), made).SerializeToString())


def _with_base64(held: Any) -> Any:
    import base64

    if isinstance(held, dict):
        ids = ("traceId", "spanId", "parentSpanId")
        return {
            key: base64.b64encode(bytes.fromhex(value)).decode() if key in ids else _with_base64(value)
            for key, value in held.items()
        }
    return [_with_base64(each) for each in held] if isinstance(held, list) else held


@for_each("name", sorted(path.stem for path in CAPTURED.glob("*.json")))
def test_protobuf_and_json_are_the_same(name: str) -> None:
    held = captured(name)
    assert read_export(packed(held)) == read_export(held) == read_export(json.dumps(held))
    assert read_export(packed(held), "logs" if "resourceLogs" in held else "traces") == read_export(held)


VALUES: Any = st.recursive(
    st.one_of(
        st.text(max_size=20),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1, max_size=12), VALUES, max_size=6), st.integers(0, 2**63))
def test_any_value_crosses_both_ways(held: dict[str, Any], start: int) -> None:
    made = span(7, held)
    made["startTimeUnixNano"] = str(start)
    request = export(made)
    from_wire = read_export(packed(request), "traces")
    assert from_wire == read_export(request)
    assert dict(from_wire.spans[0].attributes) == held
    assert from_wire.spans[0].start_ns == start


def test_lines_of_the_collectors_file(mem: Memory) -> None:
    lines = "\n".join(json.dumps(captured(name)) for name in ("strands.traces", "google-adk.logs"))
    report = mem.ledger.ingest_otel(lines.encode() + b"\n\n")
    assert (report.spans, report.logs) == (9, 3)


def test_what_the_console_exporter_prints() -> None:
    """By the SDK itself: objects one behind the other, with line breaks inside."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
    from opentelemetry.trace import Status, StatusCode

    out = io.StringIO()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out)))
    tracer = provider.get_tracer("t")
    held = chat([text("user", "I live in Oslo.")], [text("assistant", "Noted.")])
    with tracer.start_as_current_span("invoke", attributes={"session.id": "s1", "user.id": "ana"}):
        with tracer.start_as_current_span("chat", attributes=held) as inner:
            inner.add_event("seen", {"n": 1})
        with tracer.start_as_current_span(
            "tool", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x"}
        ) as tool:
            tool.set_status(Status(StatusCode.ERROR, "no way"))
    provider.shutdown()
    with muniment.open() as mem:
        report = mem.ledger.ingest_otel(out.getvalue())
        assert (report.spans, report.messages, report.results) == (3, 2, 1)
        assert said(mem, session="s1") == [("user", "I live in Oslo."), ("assistant", "Noted."), ("tool", "no way")]


SPAN = "$.resourceSpans[0].scopeSpans[0].spans[0]"


# -- hostile --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "path"),
    [
        ({"resourceSpans": {}}, "$.resourceSpans"),
        ({"resourceSpans": [7]}, "$.resourceSpans[0]"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}, f"{SPAN}.traceId"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz" * 16}]}]}]}, f"{SPAN}.traceId"),
        (export({**span(1, {}), "startTimeUnixNano": "-1"}), f"{SPAN}.startTimeUnixNano"),
        (export({**span(1, {}), "startTimeUnixNano": "1e9"}), f"{SPAN}.startTimeUnixNano"),
        (export({**span(1, {}), "attributes": [{"key": "a", "value": {"intValue": "x"}}]}),
         f"{SPAN}.attributes[0].value.intValue"),
        (export({**span(1, {}), "attributes": [{"key": "a", "value": {"stringValue": "x", "intValue": 1}}]}),
         f"{SPAN}.attributes[0].value"),
        ({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"spanId": "12"}]}]}]},
         "$.resourceLogs[0].scopeLogs[0].logRecords[0].spanId"),
        ({"spans": []}, "$"),
        ([[]], "$[0]"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place_and_changes_nothing(mem: Memory, held: Any, path: str) -> None:
    good = export(span(9, chat([text("user", "hi")], [])))
    with pytest.raises(InvalidInput) as refused:
        mem.ledger.ingest_otel(json.dumps([good, held]) if isinstance(held, dict) else held, user_id="ana")
    assert str(refused.value.path).removeprefix("$[1]").removeprefix("$") == path.removeprefix("$")
    assert refused.value.hint
    assert list(mem.store.users()) == []


@pytest.mark.parametrize("held", [7, None, object()])
def test_what_is_no_trace_at_all(mem: Memory, held: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        mem.ledger.ingest_otel(held, user_id="ana")
    assert refused.value.path == "$.data"


def test_without_the_extra_protobuf_is_refused_with_the_command_and_json_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = export(span(1, {}))
    data = packed(held)
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
    with pytest.raises(MissingDependency) as refused:
        read_export(data)
    assert "muniment[otlp]" in str(refused.value.hint)
    assert len(read_export(held).spans) == len(read_export(json.dumps(held)).spans) == 1


@for_each("data", [b"{", b"[1,", b'{"resourceSpans": NaN}', b"\xff\xfe{", b'{"a":' * 5000, b"[" * 100_000])
def test_broken_json(data: bytes) -> None:
    with pytest.raises((InvalidInput, InvalidJson)):
        read_export(data)


def test_every_cut_of_a_protobuf_is_refused() -> None:
    data = packed(captured("strands-new.traces"))[:2_000]
    for end in range(2, len(data)):  # the first byte alone is a line break
        with pytest.raises(InvalidInput):
            read_export(data[:end], "traces")


def test_random_bytes_are_refused_in_our_own_words() -> None:
    draw = random.Random(17)
    data = packed(captured("pydantic-ai.traces"))
    for _ in range(400):
        broken = bytearray(data)
        for _ in range(draw.randint(1, 6)):
            broken[draw.randrange(len(broken))] = draw.randrange(256)
        with suppress(InvalidInput):
            read_export(bytes(broken))
    for _ in range(400):
        with suppress(InvalidInput):
            read_export(draw.randbytes(draw.randint(1, 200)))


def test_nesting_is_bounded_in_both_forms() -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    made = export(span(1, {"deep": deep}))
    with pytest.raises(InvalidInput, match="deeper"):
        read_export(made)
    with pytest.raises(InvalidInput, match="deeper"):
        read_export(packed(made))
    wire = b""
    for _ in range(3_000):  # a list in a list in a list …, as bytes alone
        inner = b"\x0a" + _length(wire) + wire
        wire = b"\x2a" + _length(inner) + inner
    pair = b"\x12" + _length(wire) + wire
    attribute = b"\x4a" + _length(pair) + pair
    for number in (0x12, 0x12, 0x0A):
        attribute = bytes([number]) + _length(attribute) + attribute
    with pytest.raises(InvalidInput):
        read_export(attribute, "traces")


def _length(data: bytes) -> bytes:
    size, found = len(data), bytearray()
    while size > 0x7F:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*found, size])


def test_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muniment.traces.otlp.RECORDS_MAX", 5)
    with pytest.raises(TooLarge):
        read_export(export(*(span(number, {}) for number in range(6))))
    with pytest.raises(TooLarge):
        read_export(packed(export(*(span(number, {}) for number in range(6)))), "traces")
    monkeypatch.setattr("muniment.traces.otlp.PROTOBUF_BYTES_MAX", 10)
    with pytest.raises(TooLarge):
        read_export(packed(export(span(1, {}))))
    monkeypatch.setattr("muniment.traces.otlp.BYTES_MAX", 10)
    with pytest.raises(TooLarge):
        read_export(b" " * 11)


@pytest.mark.soak
@pytest.mark.timeout(120)
def test_a_long_session_completes(mem: Memory) -> None:
    """Turns of the same words, sent span by span in one export: each is laid beside a bounded part of what is known."""
    spans = [
        span(
            number,
            chat([text("user", "yes")], [text("assistant", f"done {number % 7}")], **{"session.id": "s1"}),
            at=number * 20,
        )
        for number in range(1, 3_001)
    ]
    mem.ledger.ingest_otel(json.dumps(export(*spans)), user_id="ana")


def test_strange_values_do_no_harm(mem: Memory) -> None:
    odd = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(
            [
                7,
                None,
                {"role": 5, "parts": 9},
                {"parts": [None, "x", {"type": 3}]},
                {"role": "user", "content": {"a": 1}},
            ]
        ),
        "gen_ai.output.messages": json.dumps(
            {"role": "assistant", "tool_calls": [{"function": 3}, 4, {"function": {"name": ""}}]}
        ),
        "gen_ai.agent.name": "\n\n",
        "session.id": "s" * 5_000,
        "gen_ai.usage.input_tokens": -4,
    }
    made = export({**span(1, odd), "endTimeUnixNano": str(2**63), "attributes": attributes(odd)})
    report = mem.ledger.ingest_otel(made, user_id="ana")
    assert report.spans == 1
    assert mem.verify().ok
