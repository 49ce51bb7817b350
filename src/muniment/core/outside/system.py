"""The system clock and ids, optional packages, and OpenTelemetry spans where it is installed and on."""

from __future__ import annotations

import importlib.util
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from muniment.core.canonical import SALT_BYTES
from muniment.core.limits import checkpoint
from muniment.errors import MissingDependency, MunimentError

# -- clock and ids --------------------------------------------------------------------------------------


def system_clock() -> datetime:
    return datetime.now(UTC)


def pause(seconds: float) -> None:
    """Wait, unless this work is stopped meanwhile."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.05))
        checkpoint()


class SystemIds:
    """Time-ordered ids in hex: 48 bits of milliseconds, 16 of sub-milliseconds, 64 random bits. Thread-safe, fork-safe.

    They contain no counter, which would reveal how many ids were minted in between (X-09).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def new(self, prefix: str) -> str:
        random = os.urandom(10)
        stamp = (time.time_ns() << 16) // 1_000_000
        with self._lock:
            if stamp <= self._last:  # a coarse clock, or one set back: advance by an unpredictable step
                stamp = self._last + 1 + int.from_bytes(random[8:], "big")
            self._last = stamp
        return f"{prefix}_{stamp:016x}{random[:8].hex()}"

    def salts(self, count: int) -> list[bytes]:
        pool = os.urandom(SALT_BYTES * count)
        return [pool[at : at + SALT_BYTES] for at in range(0, len(pool), SALT_BYTES)]


class CountingIds:
    """Repeatable ids and salts for tests, demos and golden files. Never for real data: the salts can be guessed."""

    def __init__(self, seed: str = "muniment") -> None:
        self._seed = seed
        self._count = 0
        self._lock = threading.Lock()

    def _next(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    def new(self, prefix: str) -> str:
        return f"{prefix}_{self._seed}{self._next():08d}"

    def salts(self, count: int) -> list[bytes]:
        return [sha256(f"{self._seed}:{self._next()}".encode()).digest()[:SALT_BYTES] for _ in range(count)]


class TickingClock:
    """A clock that starts at a given time and advances a fixed step on each reading."""

    def __init__(self, start: datetime | None = None, step: timedelta = timedelta(seconds=1)) -> None:
        self._now = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._step = step
        self._lock = threading.Lock()

    def __call__(self) -> datetime:
        with self._lock:
            now = self._now
            self._now = now + self._step
            return now

    def set(self, moment: datetime) -> None:
        with self._lock:
            self._now = moment


# -- extras ---------------------------------------------------------------------------------------------


class Extra(NamedTuple):
    """An optional extra that brings third-party packages."""

    serves: str
    """Its purpose, in a few words."""
    modules: tuple[str, ...]
    """The modules it needs to work."""


EXTRAS: Mapping[str, Extra] = {
    "server": Extra("`muniment serve` and its inspector", ("starlette", "uvicorn", "httptools")),
    "client": Extra("`muniment.connect`", ("httpx2",)),
    "mcp": Extra("`muniment mcp`, and /mcp of a server", ("mcp",)),
    "proxy": Extra("`muniment proxy`", ("starlette", "uvicorn", "httptools", "httpx2")),
    "postgres": Extra("stores in PostgreSQL", ("psycopg", "psycopg_pool")),
    "embed": Extra("embedders on this machine", ("onnxruntime", "tokenizers")),
    "tokens": Extra("exact counts of tokens", ("splintr",)),
    "otel": Extra("traces through OpenTelemetry", ("opentelemetry",)),
    "otlp": Extra("traces received as protobuf", ("opentelemetry.proto",)),
}
"""The extras of muniment itself. Those for agent frameworks are in `muniment.integrations`; `sandbox` needs a program
that the system may already have (`muniment.verify.sandbox`).
"""


def install_command(extra: str) -> str:
    """Return the install command, in double quotes, which every shell accepts, including that of Windows."""
    return f'pip install "muniment[{extra}]"'


def missing_modules(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed."""
    return [module for module in EXTRAS[extra].modules if not _is_found(module)]


def _is_found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package it is in
        return False


def is_installed(extra: str) -> bool:
    return not missing_modules(extra)


def not_installed(what: str, extra: str, otherwise: str = "") -> MissingDependency:
    """Return the error for a missing extra: what cannot be done, and the command to install it (or what to do
    `otherwise`).
    """
    return MissingDependency(what, hint=f"{install_command(extra)}{', or ' if otherwise else ''}{otherwise}")


def require(extra: str, what: str, otherwise: str = "") -> None:
    """Raise `MissingDependency` if the extra is not installed, before anything is opened or written."""
    missing = missing_modules(extra)
    if missing:
        raise not_installed(f"{what} (no {', '.join(missing)} here)", extra, otherwise)


# -- OpenTelemetry --------------------------------------------------------------------------------------


T = TypeVar("T")

SCOPE = "muniment"
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS = ("true", "1", "span_only", "span_and_event")


class OpenSpan:
    """A span around an operation. For an error it records only the code: its message may contain user content."""

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
        """Set attributes; None is left out."""
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
        """True if a span may record queries and results."""
        return os.environ.get(_CAPTURE, "").strip().lower() in _ON_SPANS

    def open(self, name: str, attributes: Mapping[str, Any]) -> OpenSpan:
        """Open a span within the current one."""
        held = self._tracer.start_as_current_span(
            name,
            kind=self._kind,
            attributes=_given(attributes),
            record_exception=False,
            set_status_on_exception=False,
        )
        return OpenSpan(held, self._failed)

    def carried(self, call: Callable[[], T]) -> Callable[[], T]:
        """Bind the call to the current span, whichever thread it runs in."""
        current = self._context.get_current()

        def carry() -> T:
            token = self._context.attach(current)
            try:
                return call()
            finally:
                self._context.detach(token)

        return carry
