"""The async face is the sync one with `await`: the same names, the same signatures, the same answers."""

from __future__ import annotations

import asyncio
import functools
import inspect
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment import aio
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.errors import Closed, NotFound
from muniment.handles.bank import Bank
from muniment.handles.memory import Memory
from muniment.handles.memory_learning import MemoryLearning
from muniment.handles.memory_ledger import MemoryLedger
from muniment.handles.memory_log import MemoryLog
from muniment.handles.memory_store import MemoryStore
from muniment.handles.rulebook import Rulebook
from muniment.handles.run import Run
from muniment.handles.run_learning import RunLearning
from muniment.handles.run_ledger import RunLedger
from muniment.handles.run_log import RunLogHandle
from muniment.handles.run_memory import RunMemory
from muniment.handles.runner import Runner
from muniment.handles.study import Study
from muniment.memory.corpus import Corpus
from products import for_each

ROOT = Path(__file__).parents[3]

NAMES = [
    "EntryDraft", "LedgerEntry", "Memory", "MunimentError", "Policy", "Receipt", "Run", "__version__", "aio", "connect",
    "errors", "open", "wrap",
]  # fmt: skip


def public(cls: type) -> list[str]:
    return sorted(name for name in dir(cls) if not name.startswith("_"))


def test_exported_names_are_pinned() -> None:
    """A name more or fewer is a decision, and this is where it is taken down."""
    assert sorted(muniment.__all__) == NAMES == dir(muniment)
    for name in NAMES:
        assert getattr(muniment, name) is not None
    with pytest.raises(AttributeError):
        muniment.nothing  # type: ignore[attr-defined] # noqa: B018


@for_each(
    ("ours", "theirs"),
    [
        (aio.AsyncMemory, Memory),
        (aio.AsyncRun, Run),
        (aio.AsyncCorpus, Corpus),
        (aio.AsyncStudy, Study),
        (aio.AsyncBank, Bank),
        (aio.AsyncRulebook, Rulebook),
        (aio.AsyncRunner, Runner),
        (aio.AsyncMemoryLedger, MemoryLedger),
        (aio.AsyncMemoryLog, MemoryLog),
        (aio.AsyncMemoryLearning, MemoryLearning),
        (aio.AsyncMemoryStore, MemoryStore),
        (aio.AsyncRunLogHandle, RunLogHandle),
        (aio.AsyncRunMemory, RunMemory),
        (aio.AsyncRunLearning, RunLearning),
        (aio.AsyncRunLedger, RunLedger),
    ],
)
def test_signatures_are_those_of_the_sync_classes(ours: type, theirs: type) -> None:
    assert public(ours) == public(theirs)
    for name in public(theirs):
        sync, twin = getattr(theirs, name), getattr(ours, name)
        if isinstance(inspect.getattr_static(theirs, name), property | functools.cached_property):
            assert isinstance(inspect.getattr_static(ours, name), property)
            continue
        assert inspect.signature(twin) == inspect.signature(sync)
        assert twin.__doc__ == sync.__doc__
        is_iterated = str(sync.__annotations__["return"]).startswith(("Iterator", "Listing"))
        assert inspect.iscoroutinefunction(twin) == (not is_iterated)
    for name in ("open", "connect"):
        assert inspect.signature(getattr(aio, name)) == inspect.signature(getattr(muniment, name))
        assert inspect.iscoroutinefunction(getattr(aio, name))
        assert getattr(aio, name).__doc__ == getattr(muniment, name).__doc__


@pytest.mark.soak
def test_the_stub_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "make_aio_stub.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


async def collect(iterator: Any) -> list[Any]:
    return [item async for item in iterator]


async def story(mem: Any, run: Any) -> list[Any]:
    said = await run.observe("user", "x", idempotency_key="k", metadata={"a": 1})
    return [
        said,
        await run.observe_tool("t", content="y" * 70_000),
        await run.observe_many([{"role": "user", "content": str(n)} for n in range(3)]),
        await run.state(),
        await collect(run.ledger.entries()),
        await run.ledger.get(said.id),
        await run.ledger.content(said.id),
        await run.ledger.resolve(said.id),
        await mem.ledger.resolve(said.id),
        await mem.ledger.content(said.id),
        await mem.ledger.get(said.id),
        await collect(mem.ledger.entries(user_id="ana")),
        await run.finish(),
        await mem.verify(),
        await mem.store.rebuild(),
        await collect(mem.export()),
        await mem.forget(event=said.id),
        await mem.store.tenants(),
    ]


class Sync:
    """The sync classes under `await`, to tell the same story twice."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)
        if not callable(method):  # a further handle
            return Sync(method)

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        async def iterated(*args: Any, **kwargs: Any) -> Any:
            for item in method(*args, **kwargs):
                yield item

        return iterated if name in ("entries", "export") else awaited


def test_both_faces_tell_the_same_story(tmp_path: Path) -> None:
    async def asynchronous() -> list[Any]:
        async with await aio.open(tmp_path / "a.db", clock=TickingClock(), ids=CountingIds()) as mem:
            run = await mem.run(user_id="ana", session_id="s1", objective="o")
            assert (run.scope.user_id, mem.info.name) == ("ana", "sqlite")
            assert "async" in repr(run)
            return await story(mem, run)

    async def synchronous() -> list[Any]:
        with muniment.open(tmp_path / "s.db", clock=TickingClock(), ids=CountingIds()) as mem:
            return await story(Sync(mem), Sync(mem.run(user_id="ana", session_id="s1", objective="o")))

    assert asyncio.run(asynchronous()) == asyncio.run(synchronous())


def test_agents_and_verifiers_may_be_coroutines(tmp_path: Path) -> None:
    async def agent(task: Any) -> str:
        assert isinstance(task.run, aio.AsyncRun)
        await task.run.observe_tool("abacus", content="24")
        await asyncio.sleep(0)
        return "24"

    async def verifier(output: Any, _task: str) -> bool:
        await asyncio.sleep(0)
        return bool(output.text == "24")

    async def main() -> None:
        async with await aio.open(tmp_path / "a.db") as mem:
            runner = await mem.runner(agent, verifier, user_id="ana")
            done = await asyncio.gather(*[runner.run(f"Reach 24 in {n} steps.") for n in range(4)])
            assert [each.passed for each in done] == [True] * 4
            bank = await mem.bank(user_id="ana")
            assert isinstance(bank, aio.AsyncBank)
            logs = await bank.event_logs()
            assert len(logs) == 4
            assert all(log.cost is not None and log.cost.tool_calls == 1 for log in logs)
            crash = await (await mem.runner(_crash, verifier, user_id="ana")).run("Reach 24.")
            assert crash.result.reason_codes == ("tool_failure",)

    asyncio.run(main())


def test_more_agents_than_threads_do_not_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that is awaited asks for more of the store than its runner does, and finds a thread for it."""
    monkeypatch.setattr(aio, "THREADS", 2)
    started = 0

    async def agent(task: Any) -> str:
        nonlocal started
        started += 1
        while started < 6:  # all are under way before any asks
            await asyncio.sleep(0)
        await task.run.observe_tool("abacus", content="24")
        return "24"

    async def verifier(_output: Any, _task: str) -> bool:
        return True

    async def main() -> None:
        async with await aio.open(tmp_path / "a.db") as mem:
            runner = await mem.runner(agent, verifier, user_id="ana")
            done = await asyncio.gather(*[runner.run(f"Reach 24 in {n} steps.") for n in range(6)])
            assert [each.passed for each in done] == [True] * 6

    asyncio.run(main())


def test_an_agent_whose_loop_ends_is_stopped_and_has_not_failed(tmp_path: Path) -> None:
    async def agent(_task: Any) -> str:
        asyncio.current_task().cancel()  # type: ignore[union-attr]  # as the end of a loop does
        await asyncio.sleep(0)
        return "24"

    async def main() -> None:
        async with await aio.open(tmp_path / "a.db") as mem:
            runner = await mem.runner(agent, lambda *_: True, user_id="ana")
            with pytest.raises(asyncio.CancelledError):
                await runner.run("Reach 24.", run_id="r1")
            assert not (await mem.log.run_state("r1")).is_finished
            assert await (await mem.bank(user_id="ana")).event_logs() == []

    asyncio.run(main())


def test_properties_that_ask_the_store_are_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        async with await aio.open(tmp_path / "a.db") as mem:
            book = await mem.rulebook(user_id="ana")
            assert await book.revision == 0
            assert (book.name, book.level) == ("user:ana", "user")
            assert isinstance(mem.policy, muniment.Policy)

    asyncio.run(main())


PROPERTIES = {
    name: (sync, [name for name in public(sync) if isinstance(inspect.getattr_static(sync, name), property)])
    for name, sync in (("memory", Memory), ("run", Run), ("corpus", Corpus), ("study", Study), ("bank", Bank),
                       ("rulebook", Rulebook))
}  # fmt: skip


def test_no_property_asks_on_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a handle tells without `await`, it holds."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    async def main() -> None:
        async with await aio.open(tmp_path / "a.db") as mem:
            handles = {
                "memory": mem,
                "run": await mem.run(user_id="ana"),
                "corpus": await mem.corpus("notes"),
                "study": await mem.research("Should Alder replace its diesel ferries?", user_id="ana"),
                "bank": await mem.bank(user_id="ana"),
                "rulebook": await mem.rulebook(user_id="ana"),
            }
            engine = type(mem._sync._ctx.engine)  # type: ignore[attr-defined]
            for name in ("read", "write", "snapshot"):
                monkeypatch.setattr(engine, name, _off_loop(getattr(engine, name)))
            for handle, (_, names) in PROPERTIES.items():
                for name in names:
                    told = getattr(handles[handle], name)
                    assert inspect.isawaitable(told) == (name in aio.ASKED)
                    if name in aio.ASKED:
                        await told

    asyncio.run(main())


def _off_loop(method: Any) -> Any:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return method(*args, **kwargs)

    return call


async def _crash(_task: Any) -> str:
    raise ValueError("no")


def test_a_study_is_lifted_with_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    async def main() -> None:
        async with await aio.open(tmp_path / "a.db") as mem:
            question = "Should Alder replace its diesel ferries?"
            study = await mem.research(question, user_id="ana", run_id="alder")
            assert isinstance(study, aio.AsyncStudy)
            assert isinstance(study.run, aio.AsyncRun)
            assert await study.route()
            again = await mem.open_research("alder")
            assert await again.manifest() == await study.manifest()

    asyncio.run(main())


def test_awaits_run_side_by_side_on_one_store(tmp_path: Path) -> None:
    async def main() -> None:
        async with await aio.open(tmp_path / "a.db") as mem:
            runs = await asyncio.gather(*[mem.run(user_id="ana", session_id=f"s{n % 3}") for n in range(9)])
            await asyncio.gather(*[run.observe("user", str(n)) for n, run in enumerate(runs) for _ in range(5)])
            report = await mem.verify()
            assert report.ok
            assert (report.sessions, report.entries) == (3, 9 + 45)

    asyncio.run(main())


@pytest.mark.soak
def test_iterating_while_writing_stopping_early_and_being_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        async with await aio.open(tmp_path / "a.db") as mem:
            run = await mem.run(user_id="ana")
            await run.observe_many([{"role": "user", "content": str(n)} for n in range(1500)])
            seen = 0
            async for _ in mem.export():
                seen += 1
                if seen % 500 == 0:
                    await run.observe("user", "while exporting")
            assert seen == 1 + 1 + 1501 + 2 + 1
            export = mem.export()
            await anext(export)
            await export.aclose()

            async def endless() -> None:
                while True:
                    async for _ in run.ledger.entries():
                        pass

            task = asyncio.create_task(endless())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await mem.verify()).ok

    asyncio.run(main())


def test_a_store_that_nobody_waits_for_any_more_is_closed_again() -> None:
    begun, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def make() -> Memory:
        begun.set()
        assert go_on.wait(30)
        memory = muniment.open()
        close = memory.close

        def tell() -> None:
            close()
            closed.set()

        memory.close = tell  # type: ignore[method-assign]
        return memory

    async def main() -> None:
        task = asyncio.create_task(aio.opened(make))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not closed.is_set()
        go_on.set()
        assert await asyncio.to_thread(closed.wait, 30)

    asyncio.run(main())


def test_closing_waits_for_what_was_begun_and_nothing_begins_after_it(tmp_path: Path) -> None:
    async def main() -> None:
        mem = await aio.open(tmp_path / "a.db")
        run = await mem.run(user_id="ana", session_id="s1")
        calls = [asyncio.create_task(run.observe("user", str(n))) for n in range(100)]
        await asyncio.sleep(0)  # all are on their way, most wait for a thread
        await mem.close()
        await asyncio.gather(*calls)
        with pytest.raises(Closed):
            await run.observe("user", "late")
        await mem.close()
        async with await aio.open(tmp_path / "a.db") as again:
            assert len(await collect(again.ledger.entries(user_id="ana"))) == 101

    asyncio.run(main())


def test_errors_come_through_and_a_closed_store_says_so() -> None:
    async def main() -> None:
        mem = await aio.open()
        with pytest.raises(NotFound):
            await mem.ledger.get("no")
        await mem.close()
        with pytest.raises(Closed):
            await mem.store.tenants()
        with pytest.raises(Closed):
            await anext(mem.export())

    asyncio.run(main())


def test_import_and_export_between_stores(tmp_path: Path) -> None:
    async def main() -> None:
        async with await aio.open(tmp_path / "a.db") as here, await aio.open() as there:
            await (await here.run(user_id="ana")).observe("user", "x" * 70_000)
            lines = await collect(here.export())
            report = await there.import_(lambda: lines, progress=lambda _: None)
            assert report.written["entries"] == 2
            assert await collect(there.export()) == lines

    asyncio.run(main())


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, muniment;"
        "heavy = {'pydantic', 'psycopg', 'sqlite3', 'click', 'rich', 'numpy', 'asyncio'} & set(sys.modules);"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
