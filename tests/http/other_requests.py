"""What is asked of a server to see whether it tells of others: every address, with each of its ids made another's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

from http_support import owner_at
from other_scopes import ACTOR, PASSED, Ids

from effort import SOAK
from muniment.surfaces.http._calls import Route, routes_of
from muniment.surfaces.operations.rows import OPERATIONS
from muniment.surfaces.operations.table import owner_named

__all__ = ["Asked", "requests"]

ROUTES = [route for route in routes_of(OPERATIONS) if route.level != "store"]
KINDS = {
    "a": "build", "b": "build2", "build_id": "build", "candidate_id": "candidate", "chunk_id": "chunk",
    "claim_id": "claim", "conflict_id": "conflict", "corpus_id": "corpus", "document_id": "document",
    "event_id": "event", "fact_id": "fact", "insight_id": "insight", "lesson_id": "lesson",
    "memory_id": "memory", "operation_id": "event",
    "perspective_id": "event", "plan_id": "plan", "procedure_id": "procedure", "record_id": "memory",
    "rule_id": "rule", "run_id": "run",
}  # fmt: skip
"""Of what kind an id in a path is."""
MESSAGE = {"role": "user", "content": "x"}
TRACED = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "1" * 32,
                            "spanId": "2" * 16,
                            "attributes": [
                                {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                                {"key": "gen_ai.conversation.id", "value": {"stringValue": "@session"}},
                                {"key": "gen_ai.prompt.0.role", "value": {"stringValue": "user"}},
                                {"key": "gen_ai.prompt.0.content", "value": {"stringValue": "tea"}},
                            ],
                        }
                    ]
                }
            ]
        }
    ]
}
BODIES: dict[str, list[Any]] = {
    "memory.run": [{"run_id": "@run"}, {"run_id": "@run", "start": True}, {"session_id": "@session"}],
    "memory.learn": [{"verifier_result": PASSED}],
    "memory.resume": [{}, {"repair": True}],
    "memory.resolve": [{"pointer": "@event"}, {"pointer": {"chunk_id": "@chunk", "corpus_id": "@corpus"}}],
    "memory.forget": [{"event": "@event"}, {"fact": "@fact"}, {"session": "@session"}],
    "memory.resolve_answer": [{"answer": "Oslo [1]."}],
    "memory.compare": [{"policy": "default"}],
    "memory.preview": [{}, {"max_tokens": 512, "per_section": {"episodes": 0}, "basis": "now"}],
    "memory.why": [{"text": "I live in Oslo"}, {"text": "@event"}],
    "memory.add_documents": [
        [{"corpus_id": "@corpus", "document_id": "@document", "text": "x"}],
        [{"corpus_id": "new", "document_id": "@document", "text": "x"}],
    ],
    "memory.ingest_otel": [{"data": TRACED}, {"data": TRACED, "default_user_id": "bo"}],
    "memory.research": [{"question": "How do heat pumps work?", "run_id": "@study"}],
    "run.observe": [MESSAGE, MESSAGE | {"id": "@event"}, MESSAGE | {"build": "@build"}],
    "run.observe_tool": [{"name": "t", "content": "x", "id": "@event"}],
    "run.observe_many": [[MESSAGE | {"id": "@event"}, MESSAGE], [MESSAGE, MESSAGE | {"id": "@claim"}]],
    "run.record": [{"messages": [MESSAGE], "build": "@build"}],
    "run.resolve": [{"pointer": "@event"}, {"pointer": {"chunk_id": "@chunk", "corpus_id": "@corpus"}}],
    "run.finish": [{}, {"verifier_result": PASSED}],
    "run.patch": [{"goal": "x"}, {"goal": "x", "expected_version": 2}, {"tool_evidence": [{"evidence_id": "@event"}]}],
    "run.remember": [
        {"key": "k", "value": 1, "sources": ["@event"]},
        {"key": "k", "value": 1, "sources": ["event-own"], "depends_on": ["@fact"]},
    ],
    "run.dispute": [{}, {"sources": ["@event"]}],
    "run.retract": [{}, {"sources": ["@event"]}],
    "run.procedure": [{"task_type": "generic", "content": {"steps": ["x"]}, "sources": ["@event"]}],
    "run.insight": [{"type_": "hypothesis", "statement": "x", "sources": ["@event"]}],
    "run.propose": [{"key": "k", "value": 1, "sources": ["@event"]}],
    "run.decide": [{"accept": False, "reason": "x"}, {"accept": True}],
    "run.summarize": [{"text": "x", "sources": ["@event"]}],
    "run.extract": [{"event_ids": ["@event"]}],
    "run.search": [{"query": "tea"}],
    "run.compose": [
        {"purpose": "planner", "query": "tea"},
        {"purpose": "responder", "query": "tea", "exclude": ["@event"]},
        {"purpose": "responder", "query": "tea", "exclude_session": "@session"},
    ],
    "run.recall": [{"query": "tea"}],
    "run.used": [{"recalled": "@event", "memory_ids": ["@memory"]}],
    "run.learn": [{"verifier_result": PASSED}],
    "run.step": [{"event": "DONE", "content": "x"}, {"event": "DONE", "builds": ["@build"], "context": ["@event"]}],
    "run.claim": [
        {"statement": "x", "id": "@claim"},
        {"statement": "x", "evidence": ["@event"]},
        {"statement": "x", "depends_on": ["@claim"]},
    ],
    "run.verify_claim": [{"evidence": ["@event"]}],
    "run.retract_claim": [{"reason": "x"}, {"reason": "x", "evidence": ["@event"]}],
    "run.conflict": [
        {"description": "x", "side_a": ["@event"], "side_b": ["@event"]},
        {"description": "x", "side_a": ["event-own"], "side_b": ["asked-own"], "claims": ["@claim"]},
    ],
    "run.settle_conflict": [{"resolution": "x"}],
    "run.failure": [{"category": "TOOL", "where": "x", "why": "x", "evidence": ["@event"]}],
    "run.question": [{"text": "x"}],
    "run.close_question": [{"question": "Which tea?"}, {"question": "@event"}],
    "run.plan_next": [{"actions": ["x"]}],
    "run.verify": [
        {"output": "x", "documents": ["x"], "event": "@event"},
        {"output": "x", "documents": ["x"], "evidence": ["@event"]},
    ],
    "run.unlock": [{"reason": "x"}],
    "corpus.add": [{"text": "x", "document_id": "@document"}],
    "corpus.search": [{"query": "tea"}],
    "corpus.retract": [{"reason": "x"}],
    "corpus.forget": [{"document_id": "@document"}, {}],
    "study.ingest": [{"perspective_id": "@event", "output": "x"}],
    "study.give_up": [{"perspective_id": "@event", "reason": "x"}],
    "study.supply": [{"sources": [{"url": "https://example.org/", "text": "x"}]}],
    "study.check": [{"draft": "x"}],
    "bank.add_lesson": [
        {"text": "Ask for the size first", "when": "a cup is ordered"},
        {"text": "Ask where they live", "when": "tea is ordered", "evidence": ["@event"]},
        {"text": "Ask where they live", "when": "tea is ordered", "evidence": ["@run"]},
    ],
    "bank.sign_lesson": [{"signed_by": "rosa"}],
    "bank.drop_lesson": [{"reason": "x"}],
    "values.put": [
        {"values": [{"namespace": ["notes", "@user"], "key": "@key", "value": {}}]},
        {"values": [], "removed": [{"namespace": ["notes", "@user"], "key": "@key"}]},
    ],
    "values.get": [{"names": [{"namespace": ["notes", "@user"], "key": "@key"}]}],
    "values.search": [
        {}, {"query": "tea"}, {"namespace": ["notes"], "query": "tea"}, {"namespace": ["notes", "@user"]},
    ],
    "values.fill": [{"values": [{"event_id": "@event", "texts": ["x"]}]}],
    "values.namespaces": [{}, {"matches": [{"path": ["notes", "@user"]}]}],
    "values.history": [{"namespace": ["notes", "@user"], "key": "@key"}],
    "values.prolong": [{"names": [{"namespace": ["notes", "@user"], "key": "@key"}]}],
    "values.sweep": [{}, {"erase": True}],
    "values.forget": [{"names": [{"namespace": ["notes", "@user"], "key": "@key"}]}],
    "threads.put": [{"checkpoint": {"thread_id": "@thread", "checkpoint_id": "2", "values": {},
        "head": {"type": "null", "data": ""}, "metadata": {"type": "null", "data": ""}}}],
    "threads.put_writes": [{"thread_id": "@thread", "checkpoint_id": "1", "writes": []}],
    "threads.get": [{"thread_id": "@thread"}],
    "threads.checkpoints": [{}, {"thread_id": "@thread"}],
    "threads.copy": [{"thread_id": "@thread", "to": "t"}, {"thread_id": "thread-own", "to": "@thread"}],
    "threads.forget": [{"thread_id": "@thread"}],
    "rulebook.select": [{}, {"run_id": "@run"}],
    "rulebook.submit": [{"draft": "@event"}],
    "rulebook.add": [{"body": "Say less."}],
    "rulebook.retire": [{"reason": "x"}],
    "rulebook.rollback": [{"to": 0}],
}  # fmt: skip
"""What is sent, with Bo's own ids, as `@kind`, where ids go: each in turn is made another's."""
QUERIES: dict[str, dict[str, str]] = {
    "memory.entries": {"session_id": "@session"},
    "memory.turns": {"session_id": "@session", "run_id": "@run"},
    "memory.episodes": {"session_id": "@session"},
    "memory.export": {"session_id": "@session"},
    "corpus.documents": {"document_ids": "@document"},
    "run.fact_history": {"key": "user.city"},
    **{key: {"user_at": "1"} for key in ("values.get", "values.search", "values.namespaces", "values.sweep")},
}
CHOSEN = {
    "memory.run run_id", "memory.research run_id", "run.observe id", "run.observe_tool id", "run.observe_many id",
    "run.claim id",
}  # fmt: skip
"""Where a caller chooses an id for something new: one that its tenant has is refused, whosever it is."""


class Asked(NamedTuple):
    """A request, and which of its ids is another's."""

    route: Route
    path: str
    body: Any
    headers: dict[str, str]
    slot: str
    kind: str

    def __str__(self) -> str:
        sent = "" if self.body is None else f" {json.dumps(self.body)}"
        return f"{self.route.operation.method} {self.path}{sent} {self.headers or ''}"

    @property
    def names(self) -> dict[str, str]:
        """What the path says of its parameters."""
        named = {
            part[1:-1]: unquote(said)
            for part, said in zip(self.route.template.split("/"), self.path.partition("?")[0].split("/"), strict=True)
            if part.startswith("{")
        }
        owner = owner_named(named.get("owner", ""))
        return named if owner is None else named | owner[1]

    @property
    def chooses(self) -> bool:
        """May an id that the tenant has be refused here, where another would be taken?"""
        operation = self.route.operation
        starts = self.slot == "path run_id" and operation.handle == "run" and operation.access == "write"
        return starts or f"{operation.id} {self.slot.rpartition('.')[2]}" in CHOSEN


def slots_of(body: Any, at: str = "$") -> Iterator[tuple[str, str]]:
    """Where ids stand in a body, and of what kind they are."""
    if isinstance(body, str) and body.startswith("@"):
        yield at, body[1:]
    elif isinstance(body, dict):
        for name, value in body.items():
            yield from slots_of(value, f"{at}.{name}")
    elif isinstance(body, list):
        for place, value in enumerate(body):
            yield from slots_of(value, f"{at}[{place}]")


def filled(body: Any, own: Ids, slot: str = "", given: str = "", at: str = "$") -> Any:
    """The body with Bo's own ids, but for one slot."""
    if isinstance(body, str) and body.startswith("@"):
        return given if at == slot else own[body[1:]]
    if isinstance(body, dict):
        return {name: filled(value, own, slot, given, f"{at}.{name}") for name, value in body.items()}
    if isinstance(body, list):
        return [filled(value, own, slot, given, f"{at}[{place}]") for place, value in enumerate(body)]
    return body


def path_of(route: Route, own: Ids, **other: str) -> str:
    tenant_id, user_id = ACTOR
    names = {"tenant_id": tenant_id, "user_id": user_id, "agent_id": "agent", "space": "space"}
    names |= {name: own[kind] for name, kind in KINDS.items()}
    names["owner"] = owner_at(route.level, user_id, "agent")
    if "/research/" in route.template:
        names["run_id"] = own["study"]
    path = route.template
    for name in route.operation.named_in(path):
        path = path.replace(f"{{{name}}}", quote((names | other)[name], safe=""))
    return path


def conditions(route: Route, theirs: Ids) -> list[dict[str, str]]:
    """Headers that make an answer depend on what is there."""
    operation = route.operation
    found: list[dict[str, str]] = [{}]
    if operation.versioned is not None and operation.takes_body:
        found += [{"If-Match": f'"{number}"'} for number in (0, 1, 2)]
    if operation.repeats != "safe":
        found.append({"Idempotency-Key": theirs["key"]})
    return found


def requests(own: Ids, theirs: Ids, levels: set[str]) -> Iterator[Asked]:
    """Every address with Bo's own ids; then with each of them made another's: one of the kind that belongs there, of a
    few other kinds, and of all kinds under a soak."""
    extra = tuple(theirs) if SOAK else ("event", "run", "gone", "receipt")
    turn = 0
    for route in ROUTES:
        operation = route.operation
        if route.level not in levels or operation.takes == "lines" or operation.media == "text/event-stream":
            continue
        queries = QUERIES.get(operation.id, {})
        asked = f"?{urlencode(filled(queries, own))}" if queries else ""
        named = [name for name in operation.named_in(route.template) if name in KINDS]
        for body in BODIES.get(operation.id, [{}]) if operation.takes_body else [None]:
            sent = filled(body, own)
            for headers in conditions(route, theirs):
                turn += 1
                others = extra if SOAK else (extra[turn % len(extra)],)
                yield Asked(route, path_of(route, own) + asked, sent, headers, "", "")
                for name in named:
                    fits = "study" if "/research/" in route.template else KINDS[name]
                    for kind in dict.fromkeys((fits, *others)):
                        path = path_of(route, own, **{name: theirs[kind]})
                        yield Asked(route, path + asked, sent, headers, f"path {name}", kind)
                        if name == "run_id" and operation.handle == "run" and kind == fits:
                            where = f"{path}?agent_id=agent&session_id={own['session']}"
                            yield Asked(route, where, sent, headers, f"path {name}", kind)
                for slot, fits in slots_of(body):
                    for kind in dict.fromkeys((fits, *others)):
                        changed = filled(body, own, slot, theirs[kind])
                        yield Asked(route, path_of(route, own) + asked, changed, headers, slot, kind)
        for slot, fits in slots_of(queries):
            changed = filled(queries, own, slot, theirs[fits])
            yield Asked(route, f"{path_of(route, own)}?{urlencode(changed)}", None, {}, slot, fits)
