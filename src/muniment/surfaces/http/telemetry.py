"""OpenTelemetry, if enabled: a span and three metrics for each request, by the extra `otel`.

The SDK decides where the spans go, by its own environment variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, Protocol

from muniment.core.outside.system import not_installed

__all__ = ["BUCKETS_S", "METHODS", "Done", "NotObserved", "Observer", "otel_observer"]

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of the latency buckets."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods recorded by name; a caller may send any other word as one."""
NO_ROUTE = "-"
"""The logged route of a request that has none."""
_OTHER_METHOD = "_OTHER"


class Done(NamedTuple):
    """The result of a request."""

    status: int
    seconds: float
    code: str | None = None
    """The code of the error, if it was refused or failed."""
    is_stream: bool = False
    """True if it stayed open for events, so that its duration is not a latency."""


class Observer(Protocol):
    """Observes each request."""

    def request(self, method: str, headers: Mapping[str, str]) -> Any:
        """Return a context manager around one request, whose value takes `end(route, done)`."""
        ...


class NotObserved:
    """An observer that records nothing."""

    def request(self, _method: str, _headers: Mapping[str, str]) -> NotObserved:
        return self

    def __enter__(self) -> NotObserved:
        return self

    def __exit__(self, *_: object) -> None:
        """End nothing."""

    def end(self, route: str, done: Done) -> None:
        """Record nothing."""


class _Span:
    """A request as recorded by OpenTelemetry: its route and result, never its content."""

    def __init__(self, observer: _Otel, held: Any, method: str) -> None:
        self._observer, self._held, self._method = observer, held, method
        self._span: Any = None

    def __enter__(self) -> _Span:
        self._observer.count_active(1)
        self._span = self._held.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._span.set_status(self._observer.failed)
            self._span.set_attribute("error.type", kind.__name__)
        self._held.__exit__(kind, error, traceback)
        self._observer.count_active(-1)

    def end(self, route: str, done: Done) -> None:
        known = self._method if self._method in METHODS else _OTHER_METHOD
        attributes: dict[str, Any] = {"http.request.method": known, "http.response.status_code": done.status}
        if route != NO_ROUTE:
            attributes["http.route"] = route
        if done.status >= 500:
            attributes["error.type"] = done.code or str(done.status)
            self._span.set_status(self._observer.failed)
        name = "HTTP" if known == _OTHER_METHOD else known
        self._span.update_name(name if route == NO_ROUTE else f"{name} {route}")
        self._span.set_attributes(attributes)
        if known == _OTHER_METHOD:
            self._span.set_attribute("http.request.method_original", self._method[:20])
        if done.code is not None:
            self._span.set_attribute("muniment.error.code", done.code)
        if not done.is_stream:
            self._observer.durations.record(done.seconds, attributes)
        self._observer.requests.add(1, attributes)


class _Otel:
    """An observer with the names of the semantic conventions for HTTP servers."""

    def __init__(self, scheme: str) -> None:
        from opentelemetry import metrics, propagate, trace

        self._scheme = {"url.scheme": scheme}
        self._tracer = trace.get_tracer("muniment.http")
        self._extract = propagate.extract
        self._kind = trace.SpanKind.SERVER
        self.failed = trace.Status(trace.StatusCode.ERROR)
        meter = metrics.get_meter("muniment.http")
        self.durations = meter.create_histogram(
            "http.server.request.duration",
            unit="s",
            description="Duration of HTTP server requests.",
            explicit_bucket_boundaries_advisory=list(BUCKETS_S),
        )
        self.requests = meter.create_counter("muniment.http.requests", unit="{request}")
        self._active = meter.create_up_down_counter("http.server.active_requests", unit="{request}")

    def request(self, method: str, headers: Mapping[str, str]) -> _Span:
        held = self._tracer.start_as_current_span(
            "HTTP",
            context=self._extract(headers),
            kind=self._kind,
            attributes=self._scheme,
            record_exception=False,  # an exception's text may be a user's content
            set_status_on_exception=False,
        )
        return _Span(self, held, method)

    def count_active(self, change: int) -> None:
        self._active.add(change, self._scheme)


def otel_observer(scheme: str = "http") -> Observer:
    try:
        import opentelemetry  # noqa: F401
    except ImportError:
        raise not_installed("OpenTelemetry is not installed", "otel", "leave otel off") from None
    return _Otel(scheme)
