"""Stores that differ in nothing but what others hold, to compare what somebody is answered in each (LG-02, X-09).

Bo of acme is the same in all of them, to the byte. In the first nobody else is there. In the second another tenant has
one of everything, in the third another user of the same tenant. Each question is asked of a store as it was made, so
that no answer depends on the ones before.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import muniment
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.ports.engine import Engine, Op, Reader, Row, Select
from muniment.handles.memory import Memory
from muniment.store.engines.sqlite import SqliteEngine
from muniment.testing.stories import QUESTION

__all__ = ["ACTOR", "PASSED", "AskedStore", "Ids", "holdings", "made"]

ACTOR = ("acme", "bo")
PASSED = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
_LATER = datetime(2026, 6, 1, tzinfo=UTC)
T = TypeVar("T")
Ids = dict[str, str]
"""What somebody holds, by kind."""


class Minting:
    """Ids that repeat, from a seed that can be changed."""

    def __init__(self) -> None:
        self.now = CountingIds("actor")

    def new(self, prefix: str) -> str:
        return self.now.new(prefix)

    def salts(self, count: int) -> list[bytes]:
        return self.now.salts(count)


class _CountedReader:
    """A view that notes each operation: what it is, and on which table. Each is one statement on every engine."""

    def __init__(self, reader: Any, noted: list[str]) -> None:
        self._reader, self._noted = reader, noted

    def do(self, op: Op[T]) -> T:
        self._noted.append(f"{type(op).__name__} {getattr(op, 'table', '')}")
        return self._reader.do(op)  # type: ignore[no-any-return]

    def stream(self, select: Select) -> Iterator[Row]:
        self._noted.append(f"stream {select.table}")
        return self._reader.stream(select)  # type: ignore[no-any-return]


class CountedEngine:
    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.noted: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def _counted(self, work: Callable[[Any], T]) -> Callable[[Any], T]:
        return lambda reader: work(_CountedReader(reader, self.noted))

    def write(self, tenant_id: str, work: Callable[[Any], T]) -> T:
        self.noted.append("write")
        return self.engine.write(tenant_id, self._counted(work))  # type: ignore[no-any-return]

    def read(self, tenant_id: str, work: Callable[[Any], T]) -> T:
        self.noted.append("read")
        return self.engine.read(tenant_id, self._counted(work))  # type: ignore[no-any-return]

    @contextmanager
    def snapshot(self, tenant_id: str) -> Iterator[Reader]:
        self.noted.append("snapshot")
        with self.engine.snapshot(tenant_id) as reader:
            yield _CountedReader(reader, self.noted)


class AskedStore:
    """A store in memory that can be put back to what it was, and that counts what it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock, self.ids = TickingClock(), Minting()
        self.memory: Memory = muniment.open(clock=self.clock, ids=self.ids)
        self.counted = CountedEngine(self.memory._ctx.engine)
        self.memory._ctx.engine = _as_engine(self.counted)
        self._image = b""

    def keep(self) -> None:
        """What it is put back to."""
        self._image = self.counted.engine._connections._connection.serialize()
        shutil.copytree(self.folder, self._kept)
        self.put_back()

    @property
    def _kept(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}-kept")

    def put_files_back(self) -> None:
        """Those of studies, after a question that may have changed them."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._kept, self.folder)

    def put_back(self) -> None:
        self.counted.engine.close()
        self.counted.engine = SqliteEngine(":memory:")
        self.counted.engine._connections._connection.deserialize(self._image)
        self.clock.set(_LATER)
        self.ids.now = CountingIds("later")
        self.memory._ctx.clear_caches()
        self.counted.noted.clear()

    def ops(self) -> list[str]:
        return list(self.counted.noted)


def _as_engine(counted: Any) -> Engine:
    engine: Engine = counted
    return engine


def propose_none(_asked: Any) -> str:
    """A model that has nothing to say; that it was asked stands in a report."""
    return '{"lessons": []}'


def holdings(memory: Memory, tenant_id: str, user_id: str, name: str, folder: Path) -> Ids:
    """One of everything that has an id, of one user; those that a caller may choose have `name` in them."""
    scope = {"tenant_id": tenant_id, "user_id": user_id}
    run = memory.run(**scope, agent_id="agent", session_id=f"session-{name}", run_id=f"run-{name}", objective="talk")
    event = run.observe("user", "I live in Oslo and I like tea.", id=f"event-{name}", idempotency_key=f"key-{name}")
    asked = run.observe("user", "Or is it Rome?", id=f"asked-{name}")
    gone = run.observe("user", "Forget me.", id=f"gone-{name}")
    receipt = memory.forget(event=gone.id, tenant_id=tenant_id, user_id=user_id)
    fact = run.remember("user.city", "Oslo", sources=[event.id])
    run.patch(goal="eat")
    run.patch(goal="sleep")
    procedure = run.procedure("generic", {"steps": ["Ask twice."]}, sources=[event.id])
    insight = run.insight("hypothesis", "Bo may like green tea.", sources=[event.id])
    candidate = run.propose("user.drink", "tea", sources=[event.id], confidence=0.1)
    build = run.compose("responder", query="Where do I live?")
    other_build = run.compose("planner", query="What do I drink?")
    claim = run.log.claim("Bo lives in Oslo", evidence=[event.id], id=f"claim-{name}")
    conflict = run.log.conflict("Oslo or Rome", side_a=[event.id], side_b=[asked.id], claims=[claim.claim_id])
    run.log.question("Which tea?")
    verification = run.verify("tea", documents=["tea"])
    run.learning.recall("tea")
    run.log.compact()
    learnt = memory.run(**scope, agent_id="agent", session_id=f"session-{name}", run_id=f"learnt-{name}")
    learnt.observe("user", "Count the apples.")
    counting = {"domain_tag": "count", "task_family": "apples"}
    learned = learnt.learning.learn(PASSED, intent=counting, lessons=propose_none)
    bank = memory.bank(tenant_id=tenant_id, user_id=user_id)
    episode = {
        "schema_version": "0.5.15", "memory_id": f"memory-{name}", "kind": "episode",
        "created_at": "2026-01-01T00:00:00Z", "status": "active", "summary": "Work backwards.",
        "intent_key": "intent|domain=math|family=countdown",
    }  # fmt: skip
    tactic = {
        "schema_version": "0.5.15", "tactic_id": f"lesson-{name}", "created_at": "2026-01-01T00:00:00Z",
        "status": "active", "ttl": "days:60", "summary": "Work backwards.",
        "intent_key": "intent|domain=math|family=countdown",
        "injection": {"mode": "inline", "content": "Work backwards."},
    }  # fmt: skip
    plan = bank.plan(
        [
            {"op": "WRITE", "target_store": "ReasoningBank", "payload": episode},
            {"op": "WRITE", "target_store": "ReuseBuffer", "payload": tactic},
        ]
    )
    bank.apply(plan.plan_id)
    rule = memory.rulebook(tenant_id=tenant_id, user_id=user_id).add("Answer in short sentences.")
    corpus = memory.corpus(f"corpus-{name}", tenant_id=tenant_id, user_id=user_id)
    document = corpus.add("Notes on tea and on Oslo.", document_id=f"document-{name}", title="tea")
    (hit,) = corpus.search("tea")
    value = {"namespace": ["notes", user_id], "key": f"key-{name}", "value": {"text": "tea"}, "texts": ["tea"]}
    owned = {"user_id": user_id, "tenant_id": tenant_id}
    memory.store.values("space", user_at=1, tenant_id=tenant_id).put([value])
    memory.store.values("space", **owned).put([value])
    part = {"type": "null", "data": ""}
    checkpoint = {"thread_id": f"thread-{name}", "checkpoint_id": "1", "head": part, "metadata": part, "values": {}}
    memory.store.threads("space", **owned).put(checkpoint)
    study = memory.research(QUESTION, directory=folder, run_id=f"study-{name}", **scope)
    return {
        "run": run.run_id, "event": event.id, "gone": gone.id, "fact": fact.fact_id, "claim": claim.claim_id,
        "procedure": procedure.procedure_id, "insight": insight.id, "candidate": candidate.candidate_id,
        "build": build.id, "build2": other_build.id, "conflict": conflict.conflict_id, "learnt": learnt.run_id,
        "verification": verification.verifier_id, "fold": learned.fold.fold_id,
        "plan": plan.plan_id, "memory": f"memory-{name}", "lesson": f"lesson-{name}",
        "rule": rule.id, "corpus": f"corpus-{name}",
        "document": document.document_id, "chunk": hit.id, "study": study.run_id, "receipt": receipt.receipt_id,
        "session": f"session-{name}", "key": f"key-{name}", "thread": f"thread-{name}", "user": user_id,
    }  # fmt: skip


def made(folder: Path, others: tuple[str, str] | None) -> tuple[AskedStore, Ids, Ids]:
    """A store, what Bo holds there, and what the others hold; nobody else where there are none."""
    store = AskedStore(folder)
    own = holdings(store.memory, *ACTOR, "own", folder / "own")
    theirs: Ids = {}
    if others is not None:
        store.ids.now = CountingIds("theirs")
        theirs = holdings(store.memory, *others, "theirs", folder / "theirs")
    store.keep()
    return store, own, theirs
