"""OpenTelemetry, where it is turned on: a span and two measures a request, named by the route alone."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from http_support import ANA, Serve

from muniment.errors import MissingDependency
from muniment.surfaces.http.telemetry import otel_observer


def test_a_request_is_a_span_of_its_callers_trace(serve: Serve) -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")
    from opentelemetry import trace as api
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    seen = InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(seen))
    api.set_tracer_provider(provider)
    client = serve(otel="on")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    client.post(f"{ANA}/search", json={"query": "a secret"}, headers={"traceparent": parent})
    client.get("/nothing")
    first, second = seen.get_finished_spans()
    assert first.name == "POST /v1/tenants/{tenant_id}/users/{user_id}/search"
    assert f"{first.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert dict(first.attributes or {})["http.response.status_code"] == 200
    assert dict(second.attributes or {})["http.response.status_code"] == 404
    assert "ana" not in str(first.attributes)
    assert "secret" not in str(first.attributes)


def test_without_the_extra_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    held: Any = None
    monkeypatch.setitem(sys.modules, "opentelemetry", held)
    with pytest.raises(MissingDependency, match="OpenTelemetry"):
        otel_observer()
