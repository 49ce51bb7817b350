"""What the tests of research runs share: a memory with clock and ids that repeat, the files of a run, an engine that
lets something happen around its writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.core.ports.engine import Engine
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.handles.study import Study
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.stories import QUESTION

Open = Callable[..., Memory]


class Crash(Exception):
    """The process is gone, as far as the caller can tell."""


class Meddled:
    """An engine that lets something happen once: before its next write, or in it when all but the commit is done."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner
        self.before: Callable[[], Any] | None = None
        self.inside: Callable[[], Any] | None = None
        self.after: Callable[[], Any] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write(self, tenant_id: str, work: Callable[[Any], Any]) -> Any:
        self._let("before")
        answer = self.inner.write(tenant_id, lambda tx: self._inside(tx, work))
        self._let("after")
        return answer

    def _inside(self, tx: Any, work: Callable[[Any], Any]) -> Any:
        answer = work(tx)
        self._let("inside")
        return answer

    def _let(self, when: str) -> None:
        happen = getattr(self, when)
        if happen is not None:
            setattr(self, when, None)
            happen()


def crash() -> None:
    raise Crash


@contextmanager
def opener(engine: str, tmp_path: Path, dsn: str = "") -> Iterator[Open]:
    """A way to open one store again and again, each time with ids of its own; all are closed at the end."""
    with ExitStack() as stack:
        held = open_engine(":memory:") if engine == "memory" else None
        schema = ""
        if engine == "postgres":
            from kept_schemas import kept_schema  # a script that races another process has no such module

            schema = stack.enter_context(kept_schema(dsn))

        def opened(seed: str = "a", policy: Any = None) -> Memory:
            if engine == "postgres":
                inner: Engine = PostgresEngine(dsn, schema=schema)
            else:
                inner = held or open_engine(tmp_path / "store.db")
            context = new_context(
                engine=Meddled(inner),  # type: ignore[arg-type]
                policy=Policy.from_wire(policy or {}),
                clock=TickingClock(),
                ids=CountingIds(seed),
            )
            return stack.enter_context(Memory(context)) if held is None else Memory(context)

        yield opened


def meddled(mem: Memory) -> Meddled:
    engine: Any = mem._ctx.engine
    assert isinstance(engine, Meddled)
    return engine


def begin(mem: Memory, directory: Path, *, run_id: str = "dr_1", user_id: str = "ana", **more: Any) -> Study:
    return mem.research(more.pop("question", QUESTION), user_id=user_id, run_id=run_id, directory=directory, **more)


def files(directory: Path) -> dict[str, bytes]:
    """Everything but the lock."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def in_step(study: Study) -> bool:
    """Is the directory the store's, with nothing under way?"""
    names = {path.rpartition("/")[2] for path in files(study.directory)}
    return study.status().edited == () and not any(name.startswith(".") for name in names)
