"""OpenTelemetry spans for memory operations, if enabled, by the conventions for memory.

`compose` and `search` are `search_memory`, `remember` is `upsert_memory`, `forget` is `delete_memory`. Verification has
no operation in the conventions; its verdict is recorded as an evaluation. Disabled, which is the default, it costs one
attribute lookup, and nothing is imported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

if TYPE_CHECKING:
    from muniment.core.outside.system import OpenSpan, Spans

__all__ = ["spans_of", "told"]

P = ParamSpec("P")
R = TypeVar("R")
_OPERATIONS = {
    "compose": "search_memory",
    "search": "search_memory",
    "remember": "upsert_memory",
    "forget": "delete_memory",
}


def spans_of(*, on: bool) -> Spans | None:
    """The span recorder, if enabled; raises `MissingDependency` if OpenTelemetry is not installed."""
    if not on:
        return None
    from muniment.core.outside.system import Spans

    return Spans()


def told(method: Callable[P, R]) -> Callable[P, R]:
    """Wrap a handle's method in a span if the store was opened with `otel`."""
    name = method.__name__

    @functools.wraps(method)
    def call(*args: P.args, **given: P.kwargs) -> R:
        handle: Any = args[0]
        spans = handle._ctx.spans
        if spans is None:
            return method(*args, **given)
        operation = _OPERATIONS.get(name, name)
        with spans.open(operation, _beginning(name, operation, handle)) as span:
            answer = method(*args, **given)
            asked = _Asked(name, args[1:], given, spans.captures_content)
            _tell(span, asked, answer)
            return answer

    return call


class _Asked(NamedTuple):
    name: str
    args: tuple[Any, ...]
    given: Mapping[str, Any]
    captures: bool
    """True if queries and results may be recorded."""

    def argument(self, name: str, place: int) -> Any:
        return self.args[place] if len(self.args) > place else self.given.get(name)


def _beginning(name: str, operation: str, handle: Any) -> dict[str, Any]:
    scope = getattr(handle, "scope", None)
    return {
        "gen_ai.operation.name": operation if name in _OPERATIONS else None,
        "gen_ai.conversation.id": None if scope is None else scope.session_id,
        "gen_ai.agent.name": None if scope is None else scope.agent_id,
        "muniment.operation": name,
        "muniment.run.id": None if scope is None else scope.run_id,
    }


def _tell(span: OpenSpan, asked: _Asked, answer: Any) -> None:
    match asked.name:
        case "compose":
            count = len(set(answer.marks.values()))
            span.set({"muniment.build.id": answer.id, "muniment.build.tokens": answer.tokens})
            _tell_records(span, asked, count, asked.given.get("query"), [{"id": answer.id, "content": answer.text}])
        case "search":
            found = [{"id": hit.id, "score": float(hit.score), "content": hit.text} for hit in answer]
            _tell_records(span, asked, len(found), asked.argument("query", 0), found)
        case "remember":
            span.set({"gen_ai.memory.record.id": answer.fact_id})
            content = {"key": answer.fact_key, "value": answer.value}
            _tell_records(span, asked, 1, None, [{"id": answer.fact_id, "content": content}])
        case "forget":
            named = asked.given.get("event") or asked.given.get("fact")
            span.set({"gen_ai.memory.record.id": named, "muniment.receipt.id": answer.receipt_id})
            _tell_records(span, asked, len(answer.erased), None, [])
        case "verify":
            _tell_verdict(span, answer)


def _tell_records(span: OpenSpan, asked: _Asked, count: int, query: Any, records: list[dict[str, Any]]) -> None:
    span.set({"gen_ai.memory.record.count": count})
    if not asked.captures:
        return
    from muniment.core.canonical import canonical_text

    span.set(
        {
            "gen_ai.memory.query.text": query if isinstance(query, str) else None,
            "gen_ai.memory.records": canonical_text(records) if records else None,
        }
    )


def _tell_verdict(span: OpenSpan, answer: Any) -> None:
    """Record an output's verdict, or whether a store's chains are valid."""
    verdict = getattr(answer, "verdict", None)
    if verdict is None:
        span.set({"muniment.verified": answer.ok, "muniment.entries": answer.entries})
        return
    evaluation = {
        "gen_ai.evaluation.name": answer.verifier_id,
        "gen_ai.evaluation.score.label": str(verdict),
        "gen_ai.evaluation.score.value": None if answer.score is None else float(answer.score),
    }
    span.set({"muniment.outcome": str(answer.outcome)})
    span.event("gen_ai.evaluation.result", evaluation)
