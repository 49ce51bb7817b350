"""Attempts over executors of every kind: threads, processes, a Dask cluster; and what is left of them when one dies."""

from __future__ import annotations

import importlib.util
import logging
import multiprocessing
import os
import pickle
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.rules._attempts import AgentTask, RunNotes, call_agents
from muniment.verify.outputs import Output

INTENT = {"task_family": "countdown"}
LIMIT = 100_000


def worker(task: AgentTask) -> dict[str, Any]:
    """An agent that any process can import."""
    if task.mode == "synth":
        return {"text": f"Answer: {len(task.summaries)}"}
    task.run.observe_tool("calc", args={"n": task.attempt}, content="24")
    return {
        "text": f"Answer: {task.attempt}",
        "features": {"near": isinstance(task.run, Run), "pid": os.getpid()},
        "usage": {"tokens_out": 1},
    }


async def awaited(task: AgentTask) -> str:
    return f"Answer: {task.attempt}"


def misbehaving(task: AgentTask) -> Any:
    """A different wrong for each attempt."""
    if task.attempt == 0:
        raise LookupError("lost")
    if task.attempt == 1:
        return "x" * (100 * 1024 * 1024)
    if task.attempt == 2:
        return "\ud800"  # cannot be kept
    if task.attempt == 3:
        task.run.observe_tool("", content="x")
    return "Answer: fine"


def sleeper(task: AgentTask) -> str:
    time.sleep(60 if task.attempt == 0 else 0)
    return "Answer: awake"


def dies(_task: AgentTask) -> str:
    os._exit(3)


def third(output: Output, _task: str) -> bool:
    return output.text == "Answer: 2"


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Memory]:
    with muniment.open(tmp_path / "a.db", clock=TickingClock(), ids=CountingIds()) as memory:
        yield memory


def warm(folder: str, count: int) -> int:
    """Loads this module, and what it imports, into a process; waits until as many have come."""
    Path(folder, str(os.getpid())).touch()
    while len(os.listdir(folder)) < count:
        time.sleep(0.01)
    return os.getpid()


@contextmanager
def pool_of(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that are up, and are ended even where one hangs."""
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"))
    try:
        with tempfile.TemporaryDirectory() as folder:
            ready = [pool.submit(warm, folder, count) for _ in range(count)]
            assert len({each.result(120) for each in ready}) == count
        yield pool
    finally:
        held = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in held:
            process.kill()
            process.join()


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with pool_of(2) as pool:
        yield pool


@pytest.fixture
def doomed() -> Iterator[ProcessPoolExecutor]:
    """A pool for a test that spoils it."""
    with pool_of(2) as pool:
        yield pool


def check_attempts(mem: Memory, executor: Executor, *, near: bool) -> None:
    done = mem.runner(worker, third, user_id="ana", executor=executor).run("Go.", "kroll", intent=INTENT)
    assert done.passed
    assert done.output.text == "Answer: 2"
    assert [each.output.text for each in done.attempts] == ["Answer: 0", "Answer: 1", "Answer: 2"]
    for number, each in enumerate(done.attempts):
        log = each.learned.event_log
        assert log.cost is not None
        assert (log.cost.tool_calls, log.cost.tokens_out) == (1, 1)
        assert [call.args for call in each.output.tool_calls or ()] == [{"n": number}]
    entries = [entry for entry in mem.ledger.entries(user_id="ana") if entry.kind == "tool_result"]
    assert len(entries) == 3
    told = {entry.scope.run_id for entry in entries}
    assert told == {each.run_id for each in done.attempts}
    assert mem.verify().ok
    assert near is (os.getpid() in _pids(mem))


def _pids(mem: Memory) -> set[int]:
    from muniment.learning.folding import list_event_logs

    bodies = mem._ctx.engine.read("default", lambda reader: list_event_logs(reader, "bank:user:ana"))
    return {body["facts"]["own_features"]["pid"] for body in bodies}


@pytest.mark.req("RC-20")
def test_on_threads(mem: Memory) -> None:
    with ThreadPoolExecutor(2) as pool:
        check_attempts(mem, pool, near=True)


@pytest.mark.req("RC-20")
def test_on_processes(mem: Memory, processes: ProcessPoolExecutor) -> None:
    check_attempts(mem, processes, near=False)
    done = mem.runner(worker, lambda *_: {"verifier_id": "v", "verdict": "PASS", "outcome": "UNKNOWN"},
                      user_id="ana", executor=processes).run("Go.", "synth")  # fmt: skip
    assert done.output.text == "Answer: 3"
    waited = mem.runner(awaited, third, user_id="ana", executor=processes).run("Go.", "kroll")
    assert waited.passed


@pytest.mark.req("RC-20")
def test_what_goes_wrong_in_another_process_is_an_outcome(mem: Memory, processes: ProcessPoolExecutor) -> None:
    runner = mem.runner(misbehaving, lambda *_: True, user_id="ana", executor=processes)
    done = runner.run("Go.", "matts", k=5, seed="even")
    codes = [(each.result.reason_codes or ("",))[0] for each in done.attempts]
    assert codes == ["tool_failure", "tool_output_invalid", "tool_output_invalid", "tool_failure", ""]
    assert "lost" in (done.attempts[0].result.notes or "")
    assert done.passed
    assert done.output.text == "Answer: fine"


@pytest.mark.soak
@pytest.mark.req("RC-20")
def test_a_process_that_hangs_is_left_behind(mem: Memory, doomed: ProcessPoolExecutor) -> None:
    runner = mem.runner(sleeper, lambda *_: True, {"timeout_s": 4.0}, user_id="ana", executor=doomed)
    done = runner.run("Go.", "kroll", k=2)
    assert [each.result.reason_codes for each in done.attempts] == [("tool_timeout",), None]
    assert done.passed


@pytest.mark.soak
@pytest.mark.req("RC-20")
def test_an_executor_that_dies_is_an_outcome_and_counts_for_nothing(mem: Memory, doomed: ProcessPoolExecutor) -> None:
    runner = mem.runner(dies, lambda *_: True, user_id="ana", executor=doomed)
    done = runner.run("Go.", "kroll", intent=INTENT)
    assert {each.result.reason_codes for each in done.attempts} == {("exec_unavailable",)}
    assert {(each.result.verdict, each.result.outcome) for each in done.attempts} == {("PARTIAL", "UNKNOWN")}
    assert done.steps[-1].code == "exec_unavailable"
    assert len(done.attempts) == 3  # no more of them are asked of it
    assert not done.passed
    again = runner.run("Go.")
    assert again.result.reason_codes == ("exec_unavailable",)


def test_an_executor_that_is_closed_or_cannot_send_the_agent(mem: Memory, processes: ProcessPoolExecutor) -> None:
    unsent = mem.runner(lambda _task: "x", lambda *_: True, user_id="ana", executor=processes).run("Go.")
    assert unsent.result.reason_codes == ("exec_unavailable",)
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    closed = mem.runner(worker, lambda *_: True, user_id="ana", executor=pool).run("Go.")
    assert closed.result.reason_codes == ("exec_unavailable",)


class Silent(Executor):
    """Takes calls and never tells that they run."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        return Future()


@pytest.mark.soak
def test_an_executor_that_says_nothing_is_not_waited_for_without_end(mem: Memory) -> None:
    done = mem.runner(worker, lambda *_: True, {"timeout_s": 0.1}, user_id="ana", executor=Silent()).run("Go.")
    assert done.result.reason_codes == ("tool_timeout",)


def test_a_late_thread_holds_the_others_up_without_blame(mem: Memory) -> None:
    given_up = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        run = mem.run(user_id="ana")
        tasks = [AgentTask("t", "t", (), None, run, attempt=number) for number in range(2)]

        def slow(_task: AgentTask) -> str:
            given_up.wait(60)
            return "x"

        answers = call_agents(slow, tasks, executor=pool, timeout_s=0.1, output_bytes_max=LIMIT)
        given_up.set()
    assert [each.code for each in answers] == ["tool_timeout", "exec_unavailable"]


@pytest.mark.req("RC-20")
def test_a_task_can_be_sent(mem: Memory) -> None:
    sent: list[AgentTask] = []

    class Posting(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            fn, (agent, task, most) = pickle.loads(pickle.dumps((fn, args)))
            sent.append(task)
            answer: Future[Any] = Future()
            answer.set_result(pickle.loads(pickle.dumps(fn(agent, task, most))))
            return answer

    runner = mem.runner(worker, lambda *_: True, {"reuse": True}, user_id="ana", executor=Posting())
    assert runner.run("Find the number.", intent=INTENT).passed
    done = runner.run("Find the number.", "kroll", k=2, intent=INTENT, features={"size": 4})
    assert done.passed
    last = sent[-1]
    assert isinstance(last.run, RunNotes)
    assert last.run.run_id == done.attempts[1].run_id
    assert last.hints
    assert last.seed is not None
    assert last.cfg is not None
    assert last.features == {"size": 4}


@pytest.mark.soak
def test_notes_refuse_what_a_run_would_refuse() -> None:
    notes = RunNotes("r")
    notes.observe("user", "hello")
    notes.observe_tool("calc", content="1", ok=False)
    assert [event.kind for event in notes.events] == ["message", "tool_result"]
    with pytest.raises(muniment.MunimentError):
        notes.observe("nobody", "x")
    with pytest.raises(muniment.MunimentError):
        notes.observe_many([{"role": "user", "content": "x"}] * 10_001)


# -- a cluster ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("dask.distributed is not installed: attempts on a cluster were not tried")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from distributed import LocalCluster

        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        made = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0, silence_logs=50
        )
        client = made.get_client()
        yield client.get_executor()
        client.close()
        made.close()


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RC-20")
@pytest.mark.filterwarnings("ignore")
def test_on_a_dask_cluster(mem: Memory, cluster: Executor) -> None:
    check_attempts(mem, cluster, near=False)
    runner = mem.runner(misbehaving, lambda *_: True, user_id="ana", executor=cluster)
    codes = [(each.result.reason_codes or ("",))[0] for each in runner.run("Go.", "kroll", k=4).attempts]
    assert codes == ["tool_failure", "tool_output_invalid", "tool_output_invalid", "tool_failure"]
    late = mem.runner(sleeper, lambda *_: True, {"timeout_s": 4.0}, user_id="ana", executor=cluster)
    done = late.run("Go.", "kroll", k=2)
    assert [each.result.reason_codes for each in done.attempts] == [("tool_timeout",), None]
