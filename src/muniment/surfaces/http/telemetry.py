"""OpenTelemetry, for those who turn it on: a span and two measures for each request, by the extra `otel`.

Where the spans go is the business of the SDK, as its own environment variables say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from muniment.errors import MissingDependency

__all__ = ["Done", "NoObserver", "Observer", "otel_observer"]


class Done(NamedTuple):
    """What came of a request."""

    status: int
    seconds: float
    code: str | None = None
    """Of the error, where it was refused or failed."""


class Observer(Protocol):
    """Sees each request; `told` is filled in while the block runs."""

    def request(self, method: str, headers: Mapping[str, str]) -> Any:
        """A context manager around one request, whose value takes `end(route, done)`."""
        ...


class _Silent:
    def end(self, route: str, done: Done) -> None:
        """Nobody watches."""


class NoObserver:
    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[_Silent]:  # noqa: ARG002
        yield _Silent()


class _Span:
    def __init__(self, observer: _Otel, span: Any, method: str) -> None:
        self._observer, self._span, self._method = observer, span, method

    def end(self, route: str, done: Done) -> None:
        attributes: dict[str, Any] = {
            "http.request.method": self._method,
            "http.route": route,
            "http.response.status_code": done.status,
        }
        self._span.update_name(f"{self._method} {route}")
        self._span.set_attributes(attributes)
        if done.status >= 500:
            self._span.set_status(self._observer.failed)
        self._observer.durations.record(done.seconds, attributes)
        self._observer.requests.add(1, attributes)


class _Otel:
    """Names are those of the semantic conventions for HTTP servers."""

    def __init__(self) -> None:
        from opentelemetry import metrics, propagate, trace

        self._tracer = trace.get_tracer("muniment.http")
        self._extract = propagate.extract
        self._kind = trace.SpanKind.SERVER
        self.failed = trace.Status(trace.StatusCode.ERROR)
        meter = metrics.get_meter("muniment.http")
        self.durations = meter.create_histogram("http.server.request.duration", unit="s")
        self.requests = meter.create_counter("muniment.http.requests")

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[_Span]:
        with self._tracer.start_as_current_span(method, context=self._extract(headers), kind=self._kind) as span:
            yield _Span(self, span, method)


def otel_observer() -> Observer:
    try:
        import opentelemetry  # noqa: F401
    except ImportError:
        raise MissingDependency(
            "OpenTelemetry is not installed", hint='pip install "muniment[otel]", or leave otel off'
        ) from None
    return _Otel()
