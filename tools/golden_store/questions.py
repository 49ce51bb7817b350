"""What is asked of the finished store, and how the answers are written down.

Whoever reads the same store later, with whatever code and on whatever engine, has to come to the same answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import muniment
from golden_store.store import build_digests, digest
from muniment.core.canonical import canonical_bytes
from muniment.errors import Forgotten

__all__ = ["compose_anew", "exports", "readings", "replay", "searches", "searches_by_meaning", "snapshots"]

NOW = "2026-04-15T12:00:00Z"
"""When the questions are asked."""

SCOPES: tuple[dict[str, str], ...] = (
    {},
    {"user_id": "ana"},
    {"user_id": "wei"},
    {"user_id": "ana", "session_id": "winter"},
    {"tenant_id": "acme"},
    {"tenant_id": "acme", "user_id": "ana"},
)
QUERIES: tuple[tuple[str, str, str], ...] = (
    ("default", "ana", "Where does Ana live?"),
    ("default", "ana", "Clara peanuts"),
    ("default", "ana", "What did I say in May 2025?"),
    ("default", "ana", "quiet place without loud music"),
    ("default", "ana", "bridge rust millimetres"),
    ("default", "ana", "Count the apples in basket 7."),
    ("default", "ana", "surprise for Clara"),
    ("default", "wei", "上海 餐馆"),
    ("default", "wei", "我住在哪里？"),
    ("default", "jisoo", "고양이 이름"),
    ("default", "jisoo", "multiple of 8"),
    ("acme", "ana", "Where does Ana live?"),
    ("acme", "noor", "snow forecast"),
)
CHUNK_QUERIES = (("default", "handbook", "stone bridges"), ("acme", "slopes", "When does Tryvann open?"))
REQUESTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("default", "ana", {"query": "Where does Ana live?"}),
    ("default", "ana", {"query": "What about Clara and peanuts?", "max_tokens": 256}),
    ("default", "ana", {"cues": {"tags": ["family"], "entities": ["Clara"]}, "max_tokens": 1_000}),
    ("default", "ana", {"query": "bridges", "per_section": {"episodes": 80}, "task_type": "booking"}),
    ("default", "wei", {"query": "推荐一家餐馆"}),
    ("default", "jisoo", {"query": "고양이"}),
    ("acme", "ana", {"query": "Where does Ana live?"}),
)
PURPOSES = ("planner", "tool", "responder")


def searches(mem: muniment.Memory) -> list[dict[str, Any]]:
    """A dozen searches of turns and facts, and two of documents: ids and scores, best first."""
    found = []
    for tenant_id, user_id, query in QUERIES:
        run = mem.run(tenant_id=tenant_id, user_id=user_id, session_id="asking", run_id="run-asking")
        found.append({"user_id": user_id, "query": query, "hits": _hits(run.search(query, k=8, now=NOW))})
    for tenant_id, corpus_id, query in CHUNK_QUERIES:
        corpus = mem.corpus(corpus_id, tenant_id=tenant_id)
        found.append({"corpus_id": corpus_id, "query": query, "hits": _hits(corpus.search(query, k=8, now=NOW))})
    return found


def searches_by_meaning(mem: muniment.Memory) -> list[list[Any]]:
    """Turns whose vectors the store holds, asked for through the embedder that made them: ids, scores, their parts."""
    run = mem.run(tenant_id="acme", user_id="noor", session_id="asking", run_id="run-asking")
    return [[hit.id, hit.score, hit.parts] for hit in run.search("flurries tomorrow", k=4, now=NOW)]


def _hits(hits: list[Any]) -> list[list[Any]]:
    return [[hit.id, hit.score] for hit in hits]


def compose_anew(mem: muniment.Memory) -> list[dict[str, Any]]:
    """Packets that are composed now from all that the store holds. Each is kept, so that the store grows by them."""
    made = []
    for tenant_id, user_id, request in REQUESTS:
        run = mem.run(
            tenant_id=tenant_id,
            user_id=user_id,
            agent_id="support",
            session_id="asking",
            run_id=f"run-asking-{tenant_id}-{user_id}",
        )
        for purpose in PURPOSES:
            build = run.compose(purpose, **{"now": NOW} | request)
            made.append({"purpose": purpose, "query": request.get("query", "")} | build_digests(build))
    return made


def replay(mem: muniment.Memory, build: Mapping[str, Any]) -> dict[str, Any]:
    """What a build comes to when it is composed again, or the receipt by which something of it was forgotten."""
    try:
        return build_digests(mem.replay(build["id"], tenant_id=build["tenant_id"]))
    except Forgotten as error:
        return {"forgotten": error.details["receipt_id"]}


def snapshots(mem: muniment.Memory) -> list[dict[str, Any]]:
    """Every snapshot that stands: its own bytes, its narrative, and whether it still holds."""
    found = []
    for tenant_id, state in _runs(mem):
        for snapshot in mem.log.snapshots(state.run_id, tenant_id=tenant_id):
            place = {"run_id": state.run_id, "sequence": snapshot.sequence}
            found.append(
                place
                | {
                    "snapshot_sha256": digest(canonical_bytes(snapshot.to_wire())),
                    "narrative_sha256": digest(mem.log.narrative(**place, tenant_id=tenant_id)),
                    "status": mem.log.check_snapshot(**place, tenant_id=tenant_id).status,
                }
            )
    return found


def _runs(mem: muniment.Memory) -> Iterator[tuple[str, Any]]:
    for tenant_id in mem.store.tenants():
        for state in mem.runs(tenant_id=tenant_id):
            yield tenant_id, state


def exports(mem: muniment.Memory) -> dict[str, str]:
    """The digests of the dumps of some scopes, by their names."""
    named = ((".".join(scope.values()) or "default", scope) for scope in SCOPES)
    return {name: digest(b"".join(mem.export(**scope))) for name, scope in named}


def readings(mem: muniment.Memory) -> dict[str, str]:
    """What the handles answer about what they hold: a digest for each question."""
    answers = _of_the_store(mem) | _of_runs(mem) | _of_learning(mem)
    return {name: digest(canonical_bytes(_plain(answer))) for name, answer in answers.items()}


def _of_the_store(mem: muniment.Memory) -> dict[str, Any]:
    return {
        "runs": [state for _, state in _runs(mem)],
        "users": [list(mem.store.users(tenant_id=tenant_id)) for tenant_id in mem.store.tenants()],
        "entries": [list(mem.ledger.entries(user_id=user_id)) for user_id in ("ana", "wei", "jisoo", "lena")],
        "episodes": list(mem.ledger.episodes(user_id="ana")),
        "documents": mem.corpus("handbook").documents(include_all=True),
        "drift": mem.log.drift(user_id="ana", since="2026-01-01", until="2026-04-01"),
        "builds that told": [telling.build_id for telling in mem.why("Potsdam", user_id="ana")],
    }


def _of_runs(mem: muniment.Memory) -> dict[str, Any]:
    run = mem.run(user_id="ana", agent_id="support", session_id="winter", run_id="run-winter")
    kept = {
        "working state": run.working_state(),
        "facts": run.facts(include_all=True),
        "facts at": run.facts(at="2025-03-01T00:00:00Z"),
        "fact history": run.memory.fact_history("user.city"),
        "candidates": run.memory.candidates(),
    }
    run = mem.run(user_id="ana", agent_id="surveyor", session_id="survey", run_id="run-survey")
    return kept | {
        "claims": run.log.claims(),
        "conflicts": run.log.conflicts(),
        "failures": run.log.failures(),
        "questions": run.log.questions(),
        "verifications": run.verifications(),
        "budgets": run.log.budgets(),
    }


def _of_learning(mem: muniment.Memory) -> dict[str, Any]:
    bank, book = mem.bank(user_id="ana"), mem.rulebook(user_id="ana")
    rules = book.rules(include_all=True)
    return {
        "records": bank.records(include_all=True),
        "event logs": bank.event_logs(),
        "drafts": bank.drafts(),
        "plans": [[plan.plan, plan.status, list(plan.records)] for plan in bank.plans()],
        "rules": rules,
        "revisions": book.revisions(),
        "reports": [book.reports(rule.id) for rule in rules],
        "tests": [[test.spec for test in book.tests(rule.id)] for rule in rules],
        "rules chosen": book.select(intent={"domain_tag": "count"}, run_id="run-asking").response,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.to_wire() if hasattr(value, "to_wire") else value
