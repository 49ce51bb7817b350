"""Stores on PostgreSQL under test: on a server, behind a pooler before it, and with a replica that answers reads.

Stories of a process share one schema of each; their tenants are told apart by their seeds. The servers are throwaways
and go with the stories.
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, closing
from itertools import islice
from random import Random
from typing import Any

from muniment.core.ports.schema import TABLES
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.engines.postgres.layouts import Layout
from muniment.store.engines.postgres.opening import Target
from muniment.store.engines.postgres.partitioning import convert
from muniment.store.engines.postgres.replicas import ReplicaSettings
from muniment.testing.pooler import pooled
from muniment.testing.postgres_cluster import Servers
from muniment.testing.postgres_server import fresh_schema, server_dsn
from muniment.testing.simulator.faults import in_child
from muniment.testing.simulator.specimens import Specimen
from muniment.testing.simulator.story_objects import StoryObjects

__all__ = ["PostgresSpecimen", "Server", "open_server"]


class PostgresSpecimen(Specimen):
    """A schema of a server that all stories of this process share: their tenants are told apart by the seed."""

    name = "postgres"
    is_durable = True

    def __init__(self, seed: int, server: Server, objects: StoryObjects | None = None) -> None:
        self._server = server
        self.name = server.name
        server.make_room(seed)
        super().__init__(seed, server.engine, objects)

    def partition(self, tenant_id: str, chance: str) -> None:
        self._server.partition(tenant_id, Random(chance))

    def cut(self, transaction: Any) -> None:
        if transaction is None:
            super().cut(transaction)
        self._server.end_backend(transaction)

    def close(self) -> None:
        """The server stays for the next story; what this one wrote lies with tenants that nobody asks for again."""
        self.close_objects()


class Server:
    """A throwaway PostgreSQL, one engine in it or before it, and an operator's connection that can end others."""

    def __init__(
        self,
        stack: ExitStack,
        name: str,
        dsn: str,
        *,
        operator_dsn: str | None = None,
        replica: ReplicaSettings | None = None,
    ) -> None:
        import psycopg

        self.name = name
        schema = stack.enter_context(fresh_schema(operator_dsn or dsn))
        self._operator = stack.enter_context(psycopg.connect(operator_dsn or dsn, autocommit=True))
        # Tables are not rebuilt after each forget: what lies in a server's files is its operator's to clean.
        self.engine = PostgresEngine(dsn, schema=schema, pool_max=4, rebuild_bytes_max=0, replica=replica)
        stack.callback(self.engine.close)
        self._schema = schema
        self._seeds: set[int] = set()
        self._target = Target(operator_dsn or dsn, schema, "", 5, 30.0, False)
        self._wanted: Layout | None = None
        """The layout that it is being brought to."""
        self._parts = 0

    def partition(self, tenant_id: str, rng: Random) -> None:
        """Some steps towards another layout, by a process that is killed behind them, or that stops."""
        if self._wanted is None:
            self._parts = {0: 2, 2: 3, 3: 0}[self._parts]
            self._wanted = Layout.checked(self._parts, {tenant_id: 2} if self._parts == 3 else {})
        steps = rng.randint(10, 60)
        if rng.random() < 0.3:
            in_child(lambda: self._convert(steps, is_killed=True))
        elif self._convert(steps):
            self._wanted = None

    def _convert(self, steps: int | None, *, is_killed: bool = False) -> bool:
        """Was the last step done?"""
        assert self._wanted is not None
        with closing(convert(self._target, self._wanted, batch_rows=40)) as conversion:
            for step in islice(conversion, steps):
                if step.done == "finished":
                    return True
            if is_killed:
                os.kill(os.getpid(), signal.SIGKILL)
        return False

    def make_room(self, seed: int) -> None:
        """A story that is told again meets nothing of the last time."""
        if seed in self._seeds:
            if self._wanted is not None:  # no table is emptied while it is made anew
                self._convert(None)
                self._wanted = None
            self._operator.execute(f"TRUNCATE {', '.join(f'{self._schema}.{spec.name}' for spec in TABLES)}".encode())
            self._seeds.clear()
        self._seeds.add(seed)

    def end_backend(self, transaction: Any) -> None:
        ((pid,),) = transaction._run("", "SELECT pg_backend_pid()", ())  # a pooler tells the connection another number
        self._operator.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


def open_server(name: str, stack: ExitStack) -> Server:
    """The server of an engine's name; what it takes ends with the stack."""
    match name:
        case "postgres":
            return Server(stack, name, server_dsn())
        case "postgres-pooler":
            dsn = server_dsn()
            return Server(stack, name, stack.enter_context(pooled(dsn)), operator_dsn=dsn)
        case "postgres-replica":
            servers = stack.enter_context(Servers())
            primary = servers.primary()
            return Server(stack, name, primary.dsn, replica=ReplicaSettings(servers.replica(primary).dsn, wait_s=2.0))
        case other:
            raise ValueError(f"no engine {other}")
