"""Forgetting after folding: no byte of what was learnt is left, wherever it went, and none comes back in a race."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.outside.system import CountingIds, SystemIds, TickingClock, system_clock
from muniment.core.policy import Policy
from muniment.errors import Forgotten, MunimentError, UnknownScope
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine

INTENT = {"domain_tag": "math", "task_family": "countdown"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
WORDS = (
    "Quokkaword",
    "quokkaarg",
    "quokkafeature",
    "Quokkaanswer",
    "Quokkanote",
    "Quokkaplan",
    "Quokkamerge",
    "quokkakey",
)
"""Each stands in another part of a run of the user who is forgotten."""


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "s").mkdir()
    context = new_context(
        engine=open_engine(tmp_path / "s" / "store.db"), policy=Policy(), clock=TickingClock(), ids=CountingIds("f")
    )
    with Memory(context) as memory:
        yield memory


def raw_bytes(tmp_path: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((tmp_path / "s").iterdir()))


def one_run(mem: Memory, number: int, *, passed: bool, user_id: str, level: str, recalls: bool = False) -> Run:
    run = mem.run(user_id=user_id, agent_id="solver", grants=("agent", "tenant"))
    run.observe("user", f"Quokkaword: reach {number}." if user_id == "ana" else f"Reach {number}.")
    if recalls:
        run.learning.recall(
            "reach",
            intent=INTENT,
            state={"mode": "main"},
            features={"kind": "quokkafeature" if user_id == "ana" else "k"},
        )
        run.compose("planner", query="reach")
    said = "quokkaarg" if user_id == "ana" else "plain"
    run.observe_tool("back" if passed else "greedy", content=f"{said} came back", args={"way": said, "n": number})
    run.learning.note(facts=["Quokkanote"] if user_id == "ana" else ["a note"])
    run.observe("assistant", f"Quokkaanswer {number}." if user_id == "ana" else f"It is {number}.")
    way = f"{'quokkafeature' if user_id == 'ana' else 'way'} {'b' if passed else 'g'}"
    run.finish(
        verifier_result=PASS if passed else FAIL, intent=INTENT, features={"way": way},
        cfg={"seed_prompt": "quokkakey" if user_id == "ana" else "p"}, level=level,
    )  # fmt: skip
    return run


def record(memory_id: str, summary: str, **more: Any) -> dict[str, Any]:
    plain = {
        "schema_version": "0.5.15", "memory_id": memory_id, "kind": "episode", "created_at": "2026-01-01T00:00:00Z",
        "status": "active", "summary": summary, "intent_key": "intent|domain=math|family=countdown",
    }  # fmt: skip
    return plain | more


def live(mem: Memory, level: str) -> list[Run]:
    """Ana and Bo learn, side by side; Ana's bank sees plans, a merge, an undo, recalls, builds, a tidy."""
    runs = []
    for number in range(5):
        for user in ("ana", "bo"):
            one_run(mem, number + 50, passed=False, user_id=user, level=level)
            run = one_run(mem, number, passed=True, user_id=user, level=level, recalls=True)
            runs += [run] if user == "ana" else []
    bank = bank_of(mem, level)
    own = {log.trace_id for log in bank.event_logs()} & {trace_of(mem, run) for run in runs}
    trace = sorted(own)[0]
    first = bank.plan(
        [
            {
                "op": "WRITE",
                "target_store": "ReasoningBank",
                "payload": record("rm_1", "Quokkaplan", trace_ids=[trace]),
            },
            {
                "op": "WRITE",
                "target_store": "ReasoningBank",
                "payload": record("rm_2", "Quokkaplan two", trace_ids=[trace]),
            },
        ]
    )
    bank.apply(first.plan_id)
    merge = {"op": "MERGE", "target_store": "ReasoningBank", "target_ids": ["rm_1", "rm_2"]}
    merged = bank.plan([merge | {"payload": record("rm_3", "Quokkamerge")}])
    bank.apply(merged.plan_id)
    bank.undo(merged.plan_id)
    bank.plan([merge | {"payload": record("rm_4", "Quokkamerge again")}])  # never applied
    bank.plan(
        [{"op": "WRITE", "target_store": "ReasoningBank", "payload": record("rm_5", "Quokkaplan", trace_ids=[trace])}]
    )
    bank.tidy()
    return runs


def bank_of(mem: Memory, level: str) -> Any:
    return (
        mem.bank(user_id="ana") if level == "user" else mem.bank(agent_id="solver") if level == "agent" else mem.bank()
    )


def trace_of(mem: Memory, run: Run) -> str:
    return mem.learning.learn(run.run_id, PASS).event_log.trace_id


@pytest.mark.req("LG-07", "RC-12")
@pytest.mark.parametrize("level", ["user", "agent", "tenant"])
def test_a_user_leaves_nothing_learnt(mem: Memory, tmp_path: Path, level: str) -> None:
    live(mem, level)
    assert all(word.encode() in raw_bytes(tmp_path) for word in WORDS[:7])
    receipt = mem.forget(user_id="ana")
    assert receipt.scrubbed
    left = raw_bytes(tmp_path).lower()
    assert [word for word in WORDS if word.lower().encode() in left] == []
    assert "quokka" not in b"".join(mem.export()).decode().lower()
    traces = {entry.id for entry in receipt.erased if entry.kind == "event_log"}
    assert traces
    for bank in (mem.bank(user_id="ana"), mem.bank(agent_id="solver"), mem.bank(), mem.bank(user_id="bo")):
        for held in bank.records(include_all=True):
            assert traces.isdisjoint(held.sources)
        for plan in bank.plans():
            assert not any(trace in str(plan.payloads) for trace in traces)
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()
    again = one_run(mem, 7, passed=True, user_id="bo", level=level, recalls=True)  # and Bo goes on
    assert mem.learning.learn(again.run_id, PASS).records


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("level", ["user", "tenant"])
@pytest.mark.parametrize("selector", ["session", "event"])
def test_a_session_or_an_event_takes_what_came_of_it(mem: Memory, tmp_path: Path, level: str, selector: str) -> None:
    live(mem, level)
    run = mem.run(user_id="ana", agent_id="solver", session_id="only", grants=("tenant",))
    said = run.observe("user", "Wombatword: reach 3.")
    run.learning.recall("reach", intent=INTENT, state={"mode": "main"})
    run.compose("planner", query="reach")
    run.observe_tool("wombattool", content="wombattext", args={"way": "wombatarg"})
    run.observe("assistant", "Wombatanswer.")
    learned = None
    run.finish(verifier_result=PASS, intent=INTENT, features={"way": "wombatfeature"}, level=level)
    learned = mem.learning.learn(run.run_id, PASS)
    bank = bank_of(mem, level)
    plan = bank.plan(
        [{"op": "WRITE", "target_store": "ReasoningBank",
          "payload": record("rm_9", "Wombatplan", trace_ids=[learned.event_log.trace_id])}]
    )  # fmt: skip
    mem.forget(session="only", user_id="ana") if selector == "session" else mem.forget(event=said.id)
    left = raw_bytes(tmp_path)
    in_bank = [b"Wombatword", b"wombatfeature", b"Wombatplan"]
    own = [b"wombattext", b"wombatarg", b"wombattool", b"Wombatanswer"]
    assert [word for word in in_bank + (own if selector == "session" else []) if word in left] == []
    with pytest.raises(MunimentError):
        bank.apply(plan.plan_id)
    with pytest.raises(MunimentError):
        bank.get("rm_9")
    with pytest.raises((Forgotten, MunimentError)):
        mem.learning.learn(run.run_id, PASS)
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()


def test_a_tenant_goes_as_a_whole(mem: Memory, tmp_path: Path) -> None:
    live(mem, "tenant")
    live_here = len(mem.bank().records(include_all=True))
    assert live_here
    mem.forget(tenant="default")
    assert b"uokka" not in raw_bytes(tmp_path)
    assert mem.bank().records(include_all=True) == [] == mem.bank().plans()
    assert mem.verify().ok


def test_a_lesson_that_was_forgotten_can_be_added_anew_under_another_id(mem: Memory) -> None:
    bank = mem.bank(user_id="bo")
    run = one_run(mem, 1, passed=True, user_id="bo", level="user")
    event = next(entry.id for entry in run.ledger.entries() if entry.tool is not None)
    tool = mem.ledger.get(event).tool
    assert tool is not None
    said = {"text": f"Call {tool.name} before the answer", "when": "a number is to be reached"}
    first = bank.add_lesson(**said, evidence=[event])
    mem.forget(event=event)
    assert bank.records(kind="tactic") == []
    again = bank.add_lesson(**said)
    assert again.fate == "written"
    assert again.lesson_id != first.lesson_id


# -- races --------------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with ExitStack() as stack:
        if request.param == "postgres":
            schema = request.getfixturevalue("kept_postgres_schema")
            engine: Any = PostgresEngine(request.getfixturevalue("postgres_dsn"), schema=schema)
        else:
            engine = open_engine(tmp_path / "store.db")
        yield stack.enter_context(
            Memory(new_context(engine=engine, policy=Policy(), clock=system_clock, ids=SystemIds()))
        )


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("level", ["user", "tenant"])
def test_words_never_come_back_in_a_race(shared: Memory, level: str) -> None:
    """Ana is forgotten while others learn from what she taught, merge it and recall it."""
    mem = shared
    for number in range(3):
        one_run(mem, number, passed=True, user_id="ana", level=level)
        one_run(mem, number + 50, passed=False, user_id="ana", level=level)
    start, problems = threading.Barrier(4), []

    def learner(user: str) -> None:
        start.wait()
        for number in range(4):
            attempt(
                lambda number=number: one_run(
                    mem, number, passed=number % 2 == 0, user_id=user, level=level, recalls=True
                )
            )

    def merger() -> None:
        start.wait()
        bank = bank_of(mem, level)
        for number in range(6):
            attempt(lambda number=number: merge(bank, number))

    def merge(bank: Any, number: int) -> None:
        held = [each for each in bank.records(kind="reasoning") if "Quokka" in str(each.record)][:2]
        if len(held) == 2:
            payload = record(f"rm_{number}", held[0].record["summary"])
            targets = [each.id for each in held]
            merge = {"op": "MERGE", "target_store": "ReasoningBank", "target_ids": targets, "payload": payload}
            bank.apply(bank.plan([merge]).plan_id)

    def attempt(call: Any) -> None:
        try:
            call()
        except MunimentError:
            pass
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test has to see it
            problems.append(error)

    def forgetter() -> None:
        start.wait()
        attempt(lambda: mem.forget(user_id="ana"))

    workers = [threading.Thread(target=learner, args=("bo",)), threading.Thread(target=learner, args=("ana",)),
               threading.Thread(target=merger), threading.Thread(target=forgetter)]  # fmt: skip
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert problems == []
    with suppress(UnknownScope):
        mem.forget(user_id="ana")  # what she said after
    assert "uokka" not in b"".join(mem.export()).decode()
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()


def test_a_hint_that_is_forgotten_while_it_is_recalled_is_not_told(mem: Memory) -> None:
    """Between the look into the bank and the word to the run, a forget comes by."""
    run = one_run(mem, 1, passed=True, user_id="ana", level="user")
    event = next(entry.id for entry in run.ledger.entries() if entry.role == "user")
    other = mem.run(user_id="ana", agent_id="solver")
    other.observe("user", "go")
    engine = mem._ctx.engine
    write, calls = engine.write, []

    def slow(tenant_id: str, work: Any) -> Any:
        if not calls:
            calls.append(1)
            mem.forget(event=event)
        return write(tenant_id, work)

    engine.write = slow  # type: ignore[method-assign]
    recalled = other.learning.recall("reach", intent=INTENT)
    engine.write = write  # type: ignore[method-assign]
    assert calls
    assert not any("uokkaword" in (hint.summary or "") for hint in recalled.hints)
    assert "uokkaword" not in b"".join(mem.export()).decode()


def test_an_old_dump_does_not_bring_back_what_was_learnt(tmp_path: Path) -> None:
    with muniment.open(":memory:") as mem:
        run = one_run(mem, 1, passed=True, user_id="ana", level="user")
        event = next(entry.id for entry in run.ledger.entries() if entry.role == "user")
        (tmp_path / "all").write_bytes(b"".join(mem.export(user_id="ana")))
        (tmp_path / "part").write_bytes(b"".join(mem.export(user_id="ana", session_id=run.scope.session_id)))
        mem.forget(event=event)
        mem.import_(tmp_path / "all")
        assert "Quokkaword" not in b"".join(mem.export()).decode()
    with muniment.open(":memory:") as mem:  # where the run was known, and its bank was not
        mem.import_(tmp_path / "part")
        mem.forget(event=event)
        mem.import_(tmp_path / "all")
        assert "Quokkaword" not in b"".join(mem.export()).decode()
        assert mem.verify().ok
        assert mem.store.rebuild().repaired == ()


@pytest.mark.req("LG-07")
def test_what_an_import_empties_is_in_no_index(tmp_path: Path) -> None:
    """The entry that carried a forgotten item comes empty, and its words stand in no block that is searched."""
    (tmp_path / "s").mkdir()
    with muniment.open(":memory:") as mem:
        run = one_run(mem, 1, passed=True, user_id="ana", level="user")
        event = next(entry.id for entry in run.ledger.entries() if entry.role == "user")
        (tmp_path / "all").write_bytes(b"".join(mem.export(user_id="ana")))
        (tmp_path / "part").write_bytes(b"".join(mem.export(user_id="ana", session_id=run.scope.session_id)))
    with muniment.open(tmp_path / "s" / "store.db") as mem:
        mem.import_(tmp_path / "part")
        mem.forget(event=event)
        mem.import_(tmp_path / "all")
        emptied = {entry.id for entry in mem.ledger.entries(user_id="bank:user:ana") if entry.is_forgotten}
        assert emptied
        assert mem.verify().differing == ()
    assert b"quokkaword" not in raw_bytes(tmp_path).lower()
