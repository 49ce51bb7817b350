"""What learning costs, in counts: bytes of the log, transactions, rows that are read. No clock is read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.ports.engine import Engine, Select
from muniment.errors import RunFinished
from muniment.learning.keys import intent_key
from muniment.learning.projection import core_name
from muniment.learning.records import IntentParts
from muniment.learning.uses import list_uses, uses_of

PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
FAMILIES = 3


def intent_of(number: int) -> dict[str, str]:
    return {"domain_tag": "travel", "task_family": f"family{number % FAMILIES}"}


def key_of(number: int) -> str:
    return intent_key(IntentParts.from_wire(intent_of(number)))


def told(mem: muniment.Memory, number: int, *, learns: bool = True) -> muniment.Run:
    """A run of five events that is not ended yet."""
    run = mem.run(user_id="ana", agent_id="agent")
    run.observe("user", f"Find a table for {number % 9 + 1} in town {number % 7}, and mind the weather.")
    if learns:
        run.learning.recall("Find a table", intent=intent_of(number), state={"mode": "main"})
    strategy = ("careful", "quick")[number % 2]
    run.observe_tool(f"look_{strategy}", content=f"{number} tables", args={"row": number})
    run.observe_tool("book", content="done", args={"row": number})
    run.observe("assistant", f"Booked table {number}.")
    return run


def result_of(number: int) -> dict[str, Any]:
    return PASS if number * 7 % 10 < (8 if number % 2 == 0 else 3) else FAIL


def learnt(mem: muniment.Memory, number: int) -> None:
    told(mem, number).finish(verifier_result=result_of(number), intent=intent_of(number))


# -- bytes --------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize(("learns", "bytes_max"), [(True, 430_000), (False, 165_000)])
def test_a_run_of_five_events_writes_few_bytes(tmp_path: Path, learns: bool, bytes_max: int) -> None:
    path = tmp_path / "m.db"
    with muniment.open(path, embedder="none") as mem, closing(sqlite3.connect(path)) as other:
        for number in range(20):
            learnt(mem, number)
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        for number in range(20, 24):
            if learns:
                learnt(mem, number)
            else:
                told(mem, number, learns=False).finish()
        assert Path(f"{path}-wal").stat().st_size / 4 < bytes_max


# -- transactions -------------------------------------------------------------------------------------


@contextmanager
def counted_writes(mem: muniment.Memory) -> Iterator[list[str]]:
    """The tenants of all transactions that wrote or might have, one for each."""
    engine, seen = mem._ctx.engine, []
    write = engine.write

    def counted(tenant_id: str, work: Callable[[Any], Any]) -> Any:
        seen.append(tenant_id)
        return write(tenant_id, work)

    engine.write = counted  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        del engine.write


def test_a_run_ends_in_the_transaction_of_its_fold(mem: muniment.Memory) -> None:
    run = told(mem, 1)
    with counted_writes(mem) as writes:
        run.finish(verifier_result=PASS, intent=intent_of(1))
    assert len(writes) == 1  # the verdict, what was learnt, and the end
    state = run.state()
    assert state is not None
    assert state.finished_at is not None
    assert run.learning.learned() is not None
    assert [entry.metadata.get("event") for entry in run.ledger.entries()][-2:] == ["output_verified", "run_finished"]
    assert mem.verify().ok


def test_a_run_that_was_learnt_before_is_ended_by_itself(mem: muniment.Memory) -> None:
    run = told(mem, 1)
    learned = run.learning.learn(PASS, intent=intent_of(1))
    assert run.finish(verifier_result=PASS, intent=intent_of(1)) == learned.fold
    state = run.state()
    assert state is not None
    assert state.finished_at is not None
    with pytest.raises(RunFinished):
        run.finish(verifier_result=PASS, intent=intent_of(1))


def test_a_run_that_had_ended_is_learnt_from_and_not_ended_again(mem: muniment.Memory) -> None:
    run = told(mem, 1)
    run.finish()
    count = len(list(run.ledger.entries()))
    with pytest.raises(RunFinished):
        run.finish(verifier_result=PASS, intent=intent_of(1))
    assert run.learning.learned() is not None
    assert len(list(run.ledger.entries())) == count


def test_a_run_whose_end_cannot_be_written_is_not_learnt_from(
    mem: muniment.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from muniment.learning import folding

    class PowerWent(BaseException):
        """Nothing catches it."""

    def fails(*_: Any) -> None:
        raise PowerWent

    run = told(mem, 1)
    with monkeypatch.context() as patched:
        patched.setattr(folding, "append_decided", fails)
        with pytest.raises(PowerWent):
            run.finish(verifier_result=PASS, intent=intent_of(1))
    assert run.learning.learned() is None
    run.finish(verifier_result=PASS, intent=intent_of(1))
    assert run.learning.learned() is not None
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_runs_of_one_session_end_while_others_of_it_are_written_to(
    make: Callable[..., muniment.Memory], engine: str
) -> None:
    """Locks of sessions come before those of memory, everywhere: else two of these would wait for each other."""
    mem = make(engine)
    runs = [mem.run(user_id="ana", agent_id="agent", session_id="one") for _ in range(8)]
    for number, run in enumerate(runs):
        run.observe("user", f"Find a table for {number}.")
        run.observe("assistant", f"Booked table {number}.")

    def end(number: int) -> None:
        runs[number].finish(verifier_result=result_of(number), intent=intent_of(number))

    def tell(number: int) -> None:
        for _ in range(4):
            runs[number].log.plan_next(["look again"])
            runs[number].learning.recall("Find a table", intent=intent_of(number))

    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(end if number % 2 else tell, number) for number in range(8)]
    assert [each.exception() for each in done] == [None] * 8
    assert [run.learning.learned() is not None for run in runs] == [False, True] * 4
    assert mem.verify().ok


# -- rows ---------------------------------------------------------------------------------------------


class Looked:
    """What readers were asked, and how many rows they answered."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.rows = 0


class LookedAt:
    """A reader or a transaction that is looked at."""

    def __init__(self, inner: Any, looked: Looked) -> None:
        self._inner, self._looked = inner, looked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def do(self, op: Any) -> Any:
        answer = self._inner.do(op)
        self._looked.asked.append(op)
        self._looked.rows += len(answer) if isinstance(answer, list | tuple) else 1
        return answer


@contextmanager
def looked_at(engine: Engine) -> Iterator[Looked]:
    looked = Looked()
    kept: dict[str, Callable[..., Any]] = {"read": engine.read, "write": engine.write}

    def looking(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda tenant_id, work: call(tenant_id, lambda inner: work(LookedAt(inner, looked)))

    for name, call in kept.items():
        setattr(engine, name, looking(call))
    try:
        yield looked
    finally:
        for name in kept:
            delattr(engine, name)


def records(first: int, count: int) -> list[dict[str, Any]]:
    made = []
    for number in range(first, first + count):
        record = {
            "schema_version": "0.5.15",
            "memory_id": f"rm_{number}",
            "kind": "episode",
            "created_at": "2026-01-01T00:00:00Z",
            "status": "active",
            "summary": f"Asked: find table {number} in town {number % 17}. Passed. Did: search, then book.",
            "intent_key": key_of(number),
            "state_key": "state|mode=main",
            "tags": ["pass"],
            "pass_p_hat": 1.0,
        }
        made.append({"op": "WRITE", "target_store": "ReasoningBank", "payload": record})
    return made


def rows_of_recall(mem: muniment.Memory) -> int:
    run = mem.run(user_id="ana", agent_id="agent")
    run.observe("user", "Find a table in town 3.")
    with looked_at(mem._ctx.engine) as looked:
        run.learning.recall("Find a table in town 3", intent=intent_of(0), state={"mode": "main"})
    return looked.rows


@pytest.mark.soak
def test_a_recall_reads_as_many_rows_of_a_large_bank_as_of_a_small_one(mem: muniment.Memory) -> None:
    bank = mem.bank(user_id="ana")
    bank.apply(bank.plan(records(0, 300)).plan_id)
    small = rows_of_recall(mem)
    for first in range(300, 3_000, 900):
        bank.apply(bank.plan(records(first, 900)).plan_id)
    assert rows_of_recall(mem) < 1.5 * small


@pytest.mark.soak
def test_a_recall_counts_uses_of_the_work_that_it_is_for_alone(mem: muniment.Memory) -> None:
    for number in range(18):
        learnt(mem, number)
    run = mem.run(user_id="ana", agent_id="agent")
    run.observe("user", "Find a table for 2 in town 3, and mind the weather.")
    with looked_at(mem._ctx.engine) as looked:
        recalled = run.learning.recall("Find a table", intent=intent_of(1), state={"mode": "main"})
    selects = [each for each in looked.asked if isinstance(each, Select)]
    asked = [{column: value for column, _, value in each.where} for each in selects]
    names = {each["name"] for each in asked if each.get("kind") == "lesson_use"}
    own = core_name(key_of(1))
    assert recalled.hints
    assert own in names
    assert names <= {own, None}


@pytest.mark.soak
def test_uses_and_idle_runs_are_what_going_through_all_uses_gives(mem: muniment.Memory) -> None:
    for number in range(24):
        learnt(mem, number)
    owner = "bank:user:ana"

    def work(reader: Any) -> None:
        from muniment.learning.banks import list_memories

        memories = [held.memory for kind in ("reasoning", "tactic") for held in list_memories(reader, owner, kind)]
        found = uses_of(reader, owner, memories, 50)
        assert sum(len(each.uses) for each in found.values()) > 20
        for memory in memories:
            key = memory.record.get("intent_key")
            everything = list_uses(reader, owner, core_name(key if isinstance(key, str) else None), 50)
            mine = [use for use in everything if use.memory_id in (memory.id, *memory.parents)]
            assert list(found[memory.id].uses) == mine
            since = max(
                [memory.created_at if memory.lesson is None else memory.lesson.since, *(use.at for use in mine)]
            )
            assert found[memory.id].idle == len({use.trace_id for use in everything if use.at > since})

    mem._ctx.engine.read("default", work)
