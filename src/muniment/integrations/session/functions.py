"""Memory as functions for a model: plain, annotated and documented, as frameworks need to make tools.

A model names no user and no session: the functions are bound to a session. Errors are returned to the model, unless
`refuse` says otherwise, so that it can retry with another quote or another id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from muniment.errors import MunimentError

if TYPE_CHECKING:
    from muniment.memory._fact_records import Candidate
    from muniment.memory.search import Hit
    from muniment.store.ledger import Receipt

__all__ = ["ECHO", "ECHOES", "forget_function", "hit_told", "memory_functions", "without_echoes"]

ECHOES = frozenset({"search_memory", "propose_fact", "forget_memory"})
"""The names of these functions. Memory's own answers are not recorded: they would be found next to their sources, and
would outlive them when those are forgotten.
"""
ECHO = "(what memory answered)"
"""Placeholder recorded for such an answer."""


class _Searched(Protocol):
    """A session's memory, or a run."""

    def search(self, query: str, *, k: int = 10) -> list[Hit]: ...

    def propose(self, key: str, value: Any, *, sources: Any, quote: str | None = None) -> Candidate: ...


class _Forgetting(Protocol):
    def forget(self, id: str) -> Receipt: ...


def hit_told(hit: Hit) -> dict[str, Any]:
    """A hit in the form shown to a model."""
    return {"id": hit.id, "text": hit.text, "when": hit.ts, "sources": list(hit.sources)}


def _told(error: MunimentError) -> dict[str, Any]:
    said = {"error": error.code, "message": error.message, "hint": error.hint}
    return {name: value for name, value in said.items() if value}


def without_echoes(messages: Sequence[Any]) -> Sequence[Any]:
    """Chat messages as they are recorded: results of these functions are replaced by a placeholder."""
    if isinstance(messages, str | bytes | Mapping):  # not a list of messages: the recording code will refuse it
        return messages
    names: dict[Any, Any] = {}
    found = []
    for message in messages:
        if isinstance(message, Mapping):
            for call in message.get("tool_calls") or ():
                if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping):
                    names[call.get("id")] = call["function"].get("name")
            id_ = message.get("tool_call_id")
            if message.get("role") == "tool" and (names.get(id_) or message.get("name")) in ECHOES:
                message = {**message, "content": ECHO}
        found.append(message)
    return found


def memory_functions(
    session: _Searched, *, hits_max: int = 20, refuse: Callable[[MunimentError], Any] = _told
) -> list[Callable[..., Any]]:
    """Two functions: `search_memory` and `propose_fact`."""

    def search_memory(query: str, limit: int = 5) -> Any:
        """Search what was said in all conversations with this user, and the facts that stand.

        Args:
            query: What to look for, in a few words.
            limit: How many to answer, best first.
        """
        try:
            return [hit_told(hit) for hit in session.search(query, k=max(1, min(limit, hits_max)))]
        except MunimentError as error:
            return refuse(error)

    def propose_fact(key: str, value: str, source_id: str, quote: str) -> Any:
        """Propose a fact about the user. It is kept only if the quote stands in the source, word for word.

        Args:
            key: A short dotted name, such as user.city.
            value: The fact itself.
            source_id: The id of a search result that says it.
            quote: The words that say it, copied from that result.
        """
        try:
            made = session.propose(key, value, sources=[source_id], quote=quote)
        except MunimentError as error:
            return refuse(error)
        return {"status": made.status, "explanation": made.explanation}

    return [search_memory, propose_fact]


def forget_function(
    session: _Forgetting, *, refuse: Callable[[MunimentError], Any] = _told
) -> Callable[..., dict[str, Any]]:
    """Make a function with which a model erases memories at its user's request. Frameworks only get it on request."""

    def forget_memory(id: str) -> dict[str, Any]:
        """Erase one thing that memory holds, for good. Only when the user asks for it.

        Args:
            id: The id of a search result.
        """
        try:
            receipt = session.forget(id)
        except MunimentError as error:
            told: dict[str, Any] = refuse(error)
            return told
        return {"receipt": receipt.receipt_id, "erased": len(receipt.erased)}

    return forget_memory
