"""Three memories (memory, SQLite, PostgreSQL) told the same story answer alike: entries, errors, dumps to the byte."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from effort import SOAK
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import LedgerPolicy, Policy
from muniment.core.ports.engine import Engine
from muniment.core.ports.schema import TABLES
from muniment.core.record import Record
from muniment.errors import MunimentError
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.store.engines.postgres import PostgresEngine
from muniment.store.engines.sqlite import SqliteEngine
from muniment.store.ledger import Receipt
from muniment.testing.postgres import Unavailable, fresh_schema, server_dsn

USERS, SESSIONS, TENANTS = ("ana", "bob", "ana "), ("s1", "s2"), ("default", "acme")
POLICY = Policy(ledger=LedgerPolicy(inline_bytes_max=40, content_bytes_max=400, clock_back_ms_max=5000))
numbers = itertools.count(1)

contents = st.one_of(
    st.sampled_from(["", "hi", "\0", "字🏠", "x" * 40, "x" * 41, "x" * 401, "password=" + "hunter2222", "\ud800"]),
    st.text(max_size=20),
)
metadata = st.one_of(
    st.none(),
    st.dictionaries(
        st.text(max_size=5), st.one_of(st.integers(), st.floats(), st.text(max_size=5), st.none()), max_size=3
    ),
)
ids = st.one_of(st.none(), st.none(), st.sampled_from(["", "e1", "e2", "r1", "a\nb"]))
keys = st.one_of(st.none(), st.sampled_from(["k1", "k2", "k3"]))
event = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "root"]), "content": contents},
    optional={
        "metadata": metadata, "id": ids, "idempotency_key": keys, "tags": st.lists(st.text(max_size=3), max_size=2),
        "ts": st.sampled_from([None, "2025-01-01", "soon", "2025-01-01T00:00:00+05:00"]),
        "speaker": st.sampled_from([None, "", "\0A"]),
        "trust": st.sampled_from([None, "user", "external"]),
    },
)  # fmt: skip
scopes = st.fixed_dictionaries(
    {"user_id": st.sampled_from(USERS), "session_id": st.sampled_from(SESSIONS), "tenant_id": st.sampled_from(TENANTS)},
    optional={"run_id": st.sampled_from(["r1", "r2", "e1"]), "agent_id": st.sampled_from(["a1", "a2"])},
)


def shown(value: Any) -> Any:
    """An answer as it can be compared: a receipt's remarks about files are the engine's own."""
    if isinstance(value, Receipt):
        return value.to_wire() | {"scrubbed": None, "note": None}
    if isinstance(value, Record):
        return value
    return [shown(one) for one in value] if isinstance(value, list) else value


class Agreement(RuleBasedStateMachine):
    engines: ClassVar[dict[str, Engine]] = {}
    wipe: ClassVar[Callable[[], None]]
    counted: ClassVar[dict[str, int]] = {"steps": 0, "errors": 0}

    @initialize()
    def begin(self) -> None:
        type(self).wipe()
        seed = f"x{next(numbers)}"
        self.clocks = {name: TickingClock() for name in self.engines}
        self.mems = {
            name: Memory(new_context(engine=engine, policy=POLICY, clock=self.clocks[name], ids=CountingIds(seed)))
            for name, engine in self.engines.items()
        }
        self.written: list[tuple[str, str]] = []

    def ask(self, question: Callable[[Memory], Any]) -> Any:
        """Put a question to every memory; all must answer, or refuse, alike."""
        answers: dict[str, Any] = {}
        for name, mem in self.mems.items():
            try:
                answers[name] = ("ok", shown(question(mem)))
            except MunimentError as error:
                answers[name] = ("error", error.code, error.path)
        self.counted["steps"] += 1
        first = answers["memory"]
        self.counted["errors"] += first[0] == "error"
        for name, answer in answers.items():
            assert answer == first, (name, answer, first)
        return first[1] if first[0] == "ok" else None

    @rule(scope=scopes, event=event)
    def observe(self, scope: dict[str, Any], event: dict[str, Any]) -> None:
        said = self.ask(lambda mem: mem.run(**scope).observe(**event))
        if said is not None:
            self.written.append((scope["tenant_id"], said.id))

    @rule(scope=scopes, events=st.lists(event, max_size=5))
    def observe_many(self, scope: dict[str, Any], events: list[dict[str, Any]]) -> None:
        said = self.ask(lambda mem: mem.run(**scope).observe_many(events))
        self.written += [(scope["tenant_id"], entry.id) for entry in said or ()]

    @rule(scope=scopes, content=contents, args=metadata, ok=st.sampled_from([True, False, 1]))
    def observe_tool(self, scope: dict[str, Any], content: str, args: Any, ok: Any) -> None:
        self.ask(lambda mem: mem.run(**scope).observe_tool("t", content=content, args=args, ok=ok))

    @rule(scope=scopes, reason=st.sampled_from(["OBJECTIVE_ACHIEVED", "NO_EVIDENCE", "done"]))
    def finish(self, scope: dict[str, Any], reason: Any) -> None:
        self.ask(lambda mem: mem.run(**scope, objective="o").finish(reason))

    @rule(scope=scopes)
    def state(self, scope: dict[str, Any]) -> None:
        self.ask(lambda mem: mem.run(**scope).state())
        self.ask(lambda mem: list(mem.run(**scope).ledger.entries()))

    @rule(seconds=st.sampled_from([1, 3, 60]))
    def the_clock_steps_back(self, seconds: int) -> None:
        from datetime import timedelta

        for clock in self.clocks.values():
            clock.set(clock() - timedelta(seconds=seconds))

    @precondition(lambda self: self.written)
    @rule(
        data=st.data(),
        how=st.sampled_from(["event", "event of a user", "session", "user_id", "tenant", "session of a user"]),
    )
    def forget(self, data: Any, how: str) -> None:
        tenant_id, id_ = data.draw(st.sampled_from(self.written))
        user_id, session = data.draw(st.sampled_from(USERS)), data.draw(st.sampled_from(SESSIONS))
        selector = {
            "event": {"event": id_},
            "event of a user": {"event": id_, "user_id": user_id},
            "session": {"session": session},
            "session of a user": {"session": session, "user_id": user_id},
            "user_id": {"user_id": user_id},
            "tenant": {"tenant": tenant_id},
        }[how]
        where = {} if how == "tenant" else {"tenant_id": tenant_id}
        self.ask(lambda mem: mem.forget(**selector, **where))  # type: ignore[arg-type]

    @precondition(lambda self: self.written)
    @rule(data=st.data(), tenant=st.sampled_from(TENANTS))
    def read(self, data: Any, tenant: str) -> None:
        _, id_ = data.draw(st.sampled_from(self.written))
        for question in (
            lambda mem: mem.ledger.get(id_, tenant_id=tenant),
            lambda mem: mem.ledger.content(id_, tenant_id=tenant),
            lambda mem: mem.ledger.resolve(id_, tenant_id=tenant),
        ):
            self.ask(question)

    @rule(
        tenant=st.sampled_from(TENANTS),
        user=st.sampled_from([None, *USERS]),
        session=st.sampled_from([None, *SESSIONS]),
    )
    def export_and_bring_back(self, tenant: str, user: str | None, session: str | None) -> None:
        def dump(mem: Memory) -> list[bytes]:
            """A receipt keeps what the engine said about its files: only a tenant's dump has it, compared without."""
            lines = list(mem.export(tenant_id=tenant, user_id=user, session_id=session))
            if user is not None or session is not None:
                return lines
            return [line for line in lines[:-1] if b'"kind":"receipt"' not in line]

        self.ask(dump)

        def again(mem: Memory) -> Any:
            lines = list(mem.export(tenant_id=tenant, user_id=user, session_id=session))
            return sum(mem.import_(lambda: lines).written.values())

        assert self.ask(again) in (0, None)

    @rule(tenant=st.sampled_from(TENANTS))
    def rebuild(self, tenant: str) -> None:
        report = self.ask(lambda mem: mem.store.rebuild(tenant_id=tenant))
        assert report.repaired == ()

    @invariant()
    def every_chain_holds(self) -> None:
        if getattr(self, "mems", None):
            report = self.ask(lambda mem: mem.verify())
            assert report.ok, report

    def teardown(self) -> None:
        """A dump of one engine goes into a fresh memory and comes out the same."""
        if not getattr(self, "mems", None):
            return
        for tenant in self.mems["memory"].store.tenants():
            for mem in self.mems.values():
                lines = list(mem.export(tenant_id=tenant))
                with Memory(
                    new_context(engine=SqliteEngine(":memory:"), policy=POLICY, clock=TickingClock(), ids=CountingIds())
                ) as fresh:
                    fresh.import_(lambda lines=lines: lines)  # type: ignore[misc]
                    assert list(fresh.export(tenant_id=tenant)) == lines


@contextmanager
def engines() -> Iterator[tuple[dict[str, Engine], Callable[[], None]]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        made: dict[str, Engine] = {}
        schema = ""
        try:
            dsn = server_dsn()
            schema = stack.enter_context(fresh_schema(dsn))
            made["postgres"] = PostgresEngine(dsn, schema=schema)
            stack.callback(made["postgres"].close)
            owner = stack.enter_context(psycopg.connect(dsn, autocommit=True))
        except Unavailable as reason:
            warnings.warn(f"PostgreSQL is NOT part of this agreement: {reason}", stacklevel=1)

        def wipe() -> None:
            for name in ("memory", "sqlite"):
                if name in made:
                    made[name].close()
            made["memory"] = SqliteEngine(":memory:")
            made["sqlite"] = SqliteEngine(folder / f"{next(numbers)}.db")
            if schema:
                owner.execute(f"TRUNCATE {', '.join(f'{schema}.{spec.name}' for spec in TABLES)}".encode())

        stack.callback(lambda: [made[name].close() for name in ("memory", "sqlite") if name in made])
        yield made, wipe


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("X-05", "X-06", "LG-01", "LG-02", "LG-05", "LG-06", "LG-07")
def test_three_memories_agree(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(), engines() as (made, wipe):
        warnings.simplefilter("default")
        Agreement.engines, Agreement.wipe = made, staticmethod(wipe)
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            Agreement,
            settings=settings(
                max_examples=400 if SOAK else 6,
                stateful_step_count=25,
                deadline=None,
                derandomize=not SOAK,
                database=None,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            ),
        )
    with capsys.disabled():
        print(f"\n  {Agreement.counted['steps']} questions to {', '.join(made)}, {Agreement.counted['errors']} refused")
    assert Agreement.counted["errors"] < 0.8 * Agreement.counted["steps"]
    if "postgres" not in made:
        pytest.skip("memory and SQLite agree; PostgreSQL was not there to be asked")
