"""Spans of our own, for those who turn them on: through OpenTelemetry's API, by the extra `otel`.

Where they go is the business of the SDK that the process was started with. A span joins the trace that its caller is
in. It holds ids and counts; what was asked and found stands in it only where the conventions' own variable says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from muniment.core.outside.extras import not_installed
from muniment.errors import MunimentError

__all__ = ["OpenSpan", "Spans"]

T = TypeVar("T")

SCOPE = "muniment"
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS = ("true", "1", "span_only", "span_and_event")


class OpenSpan:
    """A span around what is done. Of an error it tells the code alone: what it says may be somebody's content."""

    def __init__(self, held: Any, failed: Any) -> None:
        self._held, self._failed = held, failed
        self._span: Any = None

    def __enter__(self) -> Self:
        self._span = self._held.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._span.set_attribute("error.type", error.code if isinstance(error, MunimentError) else kind.__name__)
            self._span.set_status(self._failed)
        self._held.__exit__(kind, error, traceback)

    def set(self, attributes: Mapping[str, Any]) -> None:
        """What became known; None is left out."""
        self._span.set_attributes(_given(attributes))

    def event(self, name: str, attributes: Mapping[str, Any]) -> None:
        self._span.add_event(name, _given(attributes))


def _given(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


class Spans:
    """Opens spans. Thread-safe."""

    def __init__(self) -> None:
        try:
            from opentelemetry import context, trace
        except ImportError:
            raise not_installed("OpenTelemetry is not installed", "otel", "leave otel off") from None
        self._context = context
        self._tracer = trace.get_tracer(SCOPE)
        self._kind = trace.SpanKind.INTERNAL
        self._failed = trace.Status(trace.StatusCode.ERROR)

    @property
    def captures_content(self) -> bool:
        """May what was asked and found stand in a span?"""
        return os.environ.get(_CAPTURE, "").strip().lower() in _ON_SPANS

    def open(self, name: str, attributes: Mapping[str, Any]) -> OpenSpan:
        """A span, within the one that is open now."""
        held = self._tracer.start_as_current_span(
            name,
            kind=self._kind,
            attributes=_given(attributes),
            record_exception=False,
            set_status_on_exception=False,
        )
        return OpenSpan(held, self._failed)

    def carried(self, call: Callable[[], T]) -> Callable[[], T]:
        """The call under the span that is open now, whichever thread it is made in."""
        current = self._context.get_current()

        def carry() -> T:
            token = self._context.attach(current)
            try:
                return call()
            finally:
                self._context.detach(token)

        return carry
