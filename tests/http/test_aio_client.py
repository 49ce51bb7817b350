"""`muniment.aio.connect`: the loop never waits for the server, and who is cancelled loses nothing that was begun."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from http_support import Serve, running

import muniment
from muniment import aio
from muniment.errors import Closed, Forbidden, InvalidInput, NotFound, StorageFailure, Unauthorized
from muniment.memory.corpus import Corpus
from muniment.surfaces.client.remote import RemoteMemory
from muniment.surfaces.http._keys import KeyFile

URL = "http://localhost"
WAIT_S = 60


class Gated:
    """An HTTP client that counts and, once it is shut, holds every request until it is opened."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.open, self.arrived, self.closed = threading.Event(), threading.Event(), threading.Event()
        self.open.set()
        self.asked: list[str] = []
        self.ended = 0

    def shut(self) -> None:
        self.open.clear()
        self.arrived.clear()

    def _pass(self, path: str) -> None:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        self.asked.append(path)
        self.arrived.set()
        assert self.open.wait(WAIT_S), "the loop stood still: it would have opened the gate"

    def request(self, method: str, path: str, **parts: Any) -> Any:
        self._pass(path)
        return self._inner.request(method, path, **parts)

    @contextmanager
    def stream(self, method: str, path: str, **parts: Any) -> Iterator[Any]:
        self._pass(path)
        try:
            with self._inner.stream(method, path, **parts) as answer:
                yield answer
        finally:
            self.ended += 1

    def close(self) -> None:
        self._inner.close()
        self.closed.set()


async def held(gate: Gated, call: Any) -> asyncio.Task[Any]:
    """A call that has reached the gate and waits there."""
    task = asyncio.ensure_future(call)
    assert await asyncio.to_thread(gate.arrived.wait, WAIT_S)
    return task


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.fixture
def gate(serve: Serve) -> Gated:
    return Gated(serve())


@pytest.mark.soak
def test_over_a_real_server_with_keys(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json", lambda: datetime.now(UTC))

    async def main(url: str) -> None:
        with pytest.raises(Unauthorized):
            await aio.connect(url)
        key = keys.create("acme", tenant="acme").token
        async with await aio.connect(url, key=key) as mem:
            assert isinstance(mem, aio.AsyncMemory)
            assert isinstance(mem._sync, RemoteMemory)  # type: ignore[attr-defined]
            run = await mem.run(user_id="ana", tenant_id="acme", session_id="s1")
            assert isinstance(run, aio.AsyncRun)
            await asyncio.gather(*[run.observe("user", f"turn {n}") for n in range(50)])
            assert len([entry async for entry in run.ledger.entries()]) == 51
            assert (await mem.verify()).ok
            corpus = await mem.corpus("notes", tenant_id="acme", user_id="ana")
            assert isinstance(corpus, aio.AsyncCorpus)
            assert isinstance(corpus._sync, Corpus)  # type: ignore[attr-defined]
            await corpus.add("# A\n\ntext", document_id="a.md")
            assert [each.document_id for each in await corpus.documents()] == ["a.md"]
            with pytest.raises(Forbidden):
                await mem.runs()
            with pytest.raises(NotFound):
                await mem.ledger.get("nope", tenant_id="acme")
            assert mem.info.name == "sqlite"
            assert mem.policy == muniment.Policy()
            resumed = await mem.resume(run.run_id, tenant_id="acme")
            assert isinstance(resumed.run, aio.AsyncRun)
            assert resumed.tail == 51

    with muniment.open(tmp_path / "store.db") as memory, running(memory, tmp_path, auth="on") as url:
        asyncio.run(main(url))


def test_nobody_there_and_nonsense_are_said(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(StorageFailure, match="cannot be reached"):
            await aio.connect("http://127.0.0.1:9")
        with pytest.raises(InvalidInput):
            await aio.connect("localhost")

    asyncio.run(main())


def test_the_loop_goes_on_while_the_server_thinks(gate: Gated) -> None:
    async def main() -> None:
        gate.shut()
        connecting = await held(gate, aio.connect(URL, http=gate))
        gate.open.set()
        async with await connecting as mem:
            run = await mem.run(user_id="ana")
            book = await mem.rulebook(user_id="ana")
            for ask in (mem.store.tenants, run.state, lambda: run.observe("user", "x"), lambda: _revision(book)):
                gate.shut()
                task = await held(gate, ask())
                assert not task.done()
                gate.open.set()
                await task
            gate.shut()
            reading = await held(gate, anext(aiter(run.ledger.entries())))
            gate.open.set()
            await reading

    asyncio.run(main())


async def _revision(book: aio.AsyncRulebook) -> int:
    return await book.revision


def test_what_a_handle_tells_without_await_is_not_asked_for(gate: Gated) -> None:
    async def main() -> None:
        async with await aio.connect(URL, http=gate) as mem:
            run = await mem.run(user_id="ana")
            study = await mem.research("Should Alder replace its diesel ferries?", user_id="ana", run_id="alder")
            book, bank = await mem.rulebook(user_id="ana"), await mem.bank(agent_id="solver")
            gate.shut()
            told = [mem.info.name, mem.policy.policy_id, run.run_id, run.scope.user_id, study.run_id, study.run.scope]
            told += [study.directory, book.name, book.level, bank.name, repr(mem), repr(run), repr(study)]
            assert all(told)
            gate.open.set()

    asyncio.run(main())


def test_what_a_build_was_made_from_is_fetched_off_the_loop_alone(gate: Gated) -> None:
    async def main() -> None:
        async with await aio.connect(URL, http=gate) as mem:
            run = await mem.run(user_id="ana")
            await run.observe("user", "I moved to Berlin in May.")
            build = await run.compose("responder", query="Where does she live?")
            assert "Berlin" in build.text
            with pytest.raises(InvalidInput, match="event loop") as refused:
                _ = build.pool
            assert "to_thread" in str(refused.value.hint)
            pool = await asyncio.to_thread(lambda: build.pool)
            assert pool.hits
            assert build.pool is pool, "it is held from then on"

    asyncio.run(main())


def test_a_connection_that_was_not_made_for_a_loop_may_wait_on_one(serve: Serve) -> None:
    async def in_a_notebook() -> int:
        with muniment.connect(URL, http=serve()) as mem:
            build = mem.run(user_id="ana").compose("responder", query="Where does she live?")
            return len(build.pool.hits)

    assert asyncio.run(in_a_notebook()) == 0


def test_a_cancelled_write_is_done_once_and_the_connection_goes_on(gate: Gated) -> None:
    async def main() -> None:
        async with await aio.connect(URL, http=gate) as mem:
            run = await mem.run(user_id="ana", session_id="s1")
            await run.observe("user", "before")
            gate.shut()
            await cancelled(await held(gate, run.observe("user", "while nobody waits")))
            assert not gate.open.is_set(), "who is cancelled does not wait for the server"
            gate.open.set()
            await run.observe("user", "after")
        with pytest.raises(Closed):
            await run.observe("user", "late")
        with pytest.raises(Closed):
            await anext(aiter(run.ledger.entries()))
        assert gate.closed.is_set()

    asyncio.run(main())
    sent = [path for path in gate.asked if path.endswith("/events")]
    assert len(sent) == 3


def test_closing_waits_for_a_write_that_nobody_waits_for(serve: Serve) -> None:
    memory = muniment.open()
    gate = Gated(serve(memory))

    async def main() -> None:
        mem = await aio.connect(URL, http=gate)
        run = await mem.run(user_id="ana", session_id="s1")
        gate.shut()
        await cancelled(await held(gate, run.observe("user", "x")))
        closing = asyncio.ensure_future(mem.close())
        await asyncio.sleep(0)
        assert not closing.done()
        assert not gate.closed.is_set()
        gate.open.set()
        await closing
        assert gate.closed.is_set()

    asyncio.run(main())
    assert [entry.role for entry in memory.ledger.entries(user_id="ana")] == ["system", "user"]
    memory.close()


def test_who_is_cancelled_while_connecting_leaves_nothing_open(gate: Gated) -> None:
    async def main() -> None:
        gate.shut()
        await cancelled(await held(gate, aio.connect(URL, http=gate)))
        gate.open.set()
        assert await asyncio.to_thread(gate.closed.wait, WAIT_S)

    asyncio.run(main())


def test_a_stream_that_nobody_reads_on_is_ended(serve: Serve) -> None:
    with muniment.open() as memory:
        memory.run(user_id="ana").observe_many([{"role": "user", "content": "x" * 1000} for _ in range(500)])
        gate = Gated(serve(memory))

        async def main() -> None:
            async with await aio.connect(URL, http=gate) as mem:
                for _ in range(2):
                    ended = gate.ended
                    lines = mem.export()
                    await anext(lines)
                    await lines.aclose()
                    assert gate.ended == ended + 1

                gate.shut()
                reading = await held(gate, anext(mem.export()))
                await cancelled(reading)
                ended = gate.ended
                gate.open.set()
                while gate.ended == ended:  # in its own thread, as soon as the server has answered
                    await asyncio.sleep(0.01)
                assert (await mem.verify()).ok

        asyncio.run(main())


def test_agents_are_awaited_on_the_loop_with_handles_of_the_connection(gate: Gated) -> None:
    async def agent(task: Any) -> str:
        assert isinstance(task.run, aio.AsyncRun)
        await task.run.observe_tool("abacus", content="24")
        return "24"

    async def main() -> None:
        async with await aio.connect(URL, http=gate) as mem:
            runner = await mem.runner(agent, _passes, user_id="ana")
            done = await asyncio.gather(*[runner.run(f"Reach 24 in {n} steps.") for n in range(5)])
            assert [each.passed for each in done] == [True] * 5
            study = await mem.research("Should Alder replace its diesel ferries?", user_id="ana", run_id="alder")
            await study.route()
            assert await study.collect(_answer)

    asyncio.run(main())


async def _passes(output: Any, _task: str) -> bool:
    await asyncio.sleep(0)
    return bool(output.text == "24")


async def _answer(prompt: str, _perspective: Any) -> str:
    await asyncio.sleep(0)
    return f"# Output\n\n{prompt[:40]}"


def test_the_sync_client_is_closed_too(gate: Gated) -> None:
    mem = muniment.connect(URL, http=gate)
    mem.close()
    with pytest.raises(Closed):
        mem.store.tenants()
    with pytest.raises(Closed):
        mem.export()


def test_two_loops_use_one_store_one_after_the_other(tmp_path: Path) -> None:
    """Threads belong to the store, not to a loop: a handle outlives the loop it was made on."""
    mem = asyncio.run(aio.open(tmp_path / "a.db"))

    async def say() -> int:
        run = await mem.run(user_id="ana", session_id="s1")
        return (await run.observe("user", "x")).seq

    assert [asyncio.run(say()) for _ in range(3)] == [2, 4, 6]
    asyncio.run(mem.close())
