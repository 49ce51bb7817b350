"""OpenTelemetry, where it is turned on: spans and measures by the semantic conventions for HTTP, told to a real SDK and
sent to a real receiver of OTLP, and nothing of what was said in them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from http_support import ANA, Serve

from muniment.errors import MissingDependency
from muniment.surfaces.http import app as gateway
from muniment.surfaces.http.telemetry import otel_observer

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SEARCH = "/v1/tenants/{tenant_id}/users/{user_id}/search"


class Seen:
    """What the SDK was told."""

    def __init__(self, spans: Any, metrics: Any) -> None:
        self._spans, self._metrics = spans, metrics

    def spans(self) -> list[Any]:
        found = list(self._spans.get_finished_spans())
        self._spans.clear()
        return found

    def points(self, name: str) -> list[Any]:
        data = self._metrics.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    """An SDK of this test's own, which the API hands out."""
    trace_sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider, meters = trace_sdk.TracerProvider(), MeterProvider(metric_readers=[reader])
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
    yield Seen(spans, reader)
    provider.shutdown()
    meters.shutdown()


def test_a_request_is_a_span_of_its_callers_trace(serve: Serve, seen: Seen) -> None:
    client = serve(otel="on")
    client.post(f"{ANA}/search", json={"query": "a secret"}, headers={"traceparent": PARENT})
    client.get("/nothing/ana")
    client.request("BREW", "/v1/health")
    searched, first, second, third = seen.spans()
    assert searched.name == "search_memory"
    assert searched.context.trace_id == first.context.trace_id
    assert searched.parent.span_id == first.context.span_id
    assert first.name == f"POST {SEARCH}"
    assert f"{first.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{first.parent.span_id:016x}" == "b7ad6b7169203331"
    assert first.kind.name == "SERVER"
    assert dict(first.attributes) == {
        "http.request.method": "POST",
        "http.route": SEARCH,
        "http.response.status_code": 200,
        "url.scheme": "http",
    }
    assert (second.name, third.name) == ("GET", "HTTP")
    assert "http.route" not in second.attributes, "the address itself is no template"
    assert second.attributes["muniment.error.code"] == "unknown_route"
    assert second.status.status_code.name == "UNSET", "a refusal is not the server's failure"
    assert third.attributes["http.request.method"] == "_OTHER"
    assert third.attributes["http.request.method_original"] == "BREW"
    for word in ("ana", "secret", "default"):
        assert word not in f"{first.attributes}{second.attributes}{first.name}{second.name}"


def test_what_fails_is_told_without_what_was_in_it(serve: Serve, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("the words that were said")

    monkeypatch.setattr(gateway, "carry_out", fail)
    assert serve(otel="on").post(f"{ANA}/search", json={"query": "x"}).status_code == 500
    (span,) = seen.spans()
    assert span.status.status_code.name == "ERROR"
    assert span.attributes["error.type"] == "ZeroDivisionError"
    assert "words" not in span.to_json()
    assert not span.events


def test_measures_are_those_of_the_conventions(serve: Serve, seen: Seen) -> None:
    client = serve(otel="on")
    for _ in range(3):
        client.post(f"{ANA}/search", json={"query": "x"})
    (took,) = seen.points("http.server.request.duration")
    assert took.count == 3
    assert took.attributes == {
        "http.request.method": "POST",
        "http.route": SEARCH,
        "http.response.status_code": 200,
    }
    assert took.explicit_bounds[0] == 0.001
    assert sum(took.bucket_counts) == 3
    (active,) = seen.points("http.server.active_requests")
    assert active.value == 0
    (asked,) = seen.points("muniment.http.requests")
    assert asked.value == 3


# -- over the wire ------------------------------------------------------------------------------------


@pytest.fixture
def receiver() -> Iterator[tuple[str, list[bytes]]]:
    """What a collector does with OTLP over HTTP, as far as a test needs it: takes what comes."""
    taken: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", taken
        server.shutdown()
        thread.join()


def test_spans_reach_a_receiver_of_otlp(serve: Serve, receiver: tuple[str, list[bytes]]) -> None:
    """By the SDK's own exporter, in protobuf over HTTP."""
    exporting = pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        reason="opentelemetry-exporter-otlp-proto-http is not installed",
    )
    from opentelemetry import trace
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    url, taken = receiver
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporting.OTLPSpanExporter(endpoint=f"{url}/v1/traces")))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trace, "get_tracer", provider.get_tracer)
        client = serve(otel="on")
    client.post(f"{ANA}/search", json={"query": "a secret"}, headers={"traceparent": PARENT})
    provider.shutdown()
    (span,) = ExportTraceServiceRequest.FromString(taken[-1]).resource_spans[0].scope_spans[0].spans
    assert span.name == f"POST {SEARCH}"
    assert span.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert b"secret" not in b"".join(taken)


def test_without_the_extra_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    held: Any = None
    monkeypatch.setitem(sys.modules, "opentelemetry", held)
    with pytest.raises(MissingDependency, match="OpenTelemetry"):
        otel_observer()
