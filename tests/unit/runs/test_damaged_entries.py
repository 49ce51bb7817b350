"""Entries of a run that are not as they were written: the gate names them, and nobody is handed a log without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muniment.core.ports.engine import Patch
from muniment.errors import RunLocked, StoreDamaged
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.testing.stories import check_run

Maker = Callable[..., Memory]
ALTERED: dict[str, dict[str, Any]] = {
    "other words": {"body": '{"content":"nothing"}'},
    "no json": {"body": '{"content":'},
    "another kind": {"kind": "message"},
    "another role": {"role": "developer"},
}


def begin(mem: Memory) -> tuple[Run, dict[str, str]]:
    """A run, and of each kind an entry that tells of it."""
    run = mem.run(user_id="ana", session_id="s1", run_id="r1", objective="find out")
    said = run.observe("user", "The harbour opens at nine.")
    claim = run.log.claim("It opens at nine", evidence=[said.id], status="verified")
    result = run.observe_tool("search", content="timeout", ok=False)
    run.log.claim("another")
    step = run.log.step("ACT_DONE", action={"tool": "search"}, tokens=7)
    return run, {"claim": claim.made_by, "tool_result": result.id, "step": step.id}


def alter(mem: Memory, entry_id: str, values: dict[str, Any]) -> None:
    assert mem._ctx.engine.write("default", lambda tx: tx.do(Patch("entries", (("id", "=", entry_id),), values))) == 1


def failing(error: RunLocked) -> dict[str, str]:
    checks = error.details["validation"]["checks"]
    return {check["name"]: check["message"] for check in checks if check["status"] == "FAIL"}


@pytest.mark.soak
@pytest.mark.req("CS-08", "TM-12")
@pytest.mark.parametrize("values", ALTERED.values(), ids=ALTERED)
@pytest.mark.parametrize("kind", ["claim", "tool_result", "step"])
def test_what_tells_of_a_run_was_altered_before_its_first_snapshot(
    make: Maker, kind: str, values: dict[str, Any]
) -> None:
    """A snapshot without what the entry said would hold in itself, and would have lost it."""
    mem = make("sqlite")
    run, told = begin(mem)
    alter(mem, told[kind], values)
    for read in (run.log.read, lambda: mem.resume("r1")):
        with pytest.raises(StoreDamaged) as damaged:
            read()
        assert damaged.value.details["id"] == told[kind]
    with pytest.raises(RunLocked) as caught:
        run.log.compact()
    assert told[kind] in failing(caught.value)["replay"]
    repair = mem.resume("r1", repair=True)
    assert [claim.statement for claim in repair.run.log.claims()][-1] == "another"
    with pytest.raises(RunLocked):
        repair.run.log.unlock("not yet")


@pytest.mark.req("CS-08", "LG-07")
@pytest.mark.parametrize("kind", ["claim", "tool_result", "step"])
def test_what_tells_of_a_run_was_altered_and_is_forgotten(make: Maker, kind: str) -> None:
    mem = make("sqlite")
    run, told = begin(mem)
    alter(mem, told[kind], ALTERED["other words"])
    with pytest.raises(RunLocked):
        run.log.compact()
    mem.forget(event=told[kind])
    assert mem.resume("r1", repair=True).run.log.unlock("the altered entry was forgotten").sequence == 1
    check_run(mem, run)
    assert mem.verify().ok


@pytest.mark.req("CS-08")
@pytest.mark.parametrize("kind", ["claim", "tool_result", "step"])
def test_what_tells_of_a_run_is_as_it_was_again(make: Maker, kind: str) -> None:
    mem = make("sqlite")
    run, told = begin(mem)
    before = run.ledger.get(told[kind]).role
    alter(mem, told[kind], {"role": "developer"})
    with pytest.raises(RunLocked):
        run.log.compact()
    alter(mem, told[kind], {"role": before})
    assert mem.resume("r1", repair=True).run.log.unlock("restored from a backup").validation.status == "PASS"
    check_run(mem, run)


@pytest.mark.req("CS-08")
def test_whether_a_snapshot_is_due_cannot_be_told(make: Maker) -> None:
    """Then the gate says why, instead of a run that goes on without a snapshot."""
    mem = make("sqlite")
    run, told = begin(mem)
    alter(mem, told["claim"], ALTERED["other words"])
    with pytest.raises(RunLocked) as caught:
        run.log.compact(force=False)
    assert told["claim"] in failing(caught.value)["replay"]


@pytest.mark.req("CS-08")
def test_what_nothing_rests_on_was_altered(make: Maker) -> None:
    """A message tells nothing of the run: it is counted, and the run goes on."""
    mem = make("sqlite")
    run, _ = begin(mem)
    idle = run.observe("user", "Nice weather.")
    whole = run.log.read()
    alter(mem, idle.id, ALTERED["other words"])
    assert mem.resume("r1").log == run.log.read() == whole
    snapshot = run.log.compact()
    assert snapshot is not None
    assert mem.log.check_snapshot("r1").status == "PASS"
