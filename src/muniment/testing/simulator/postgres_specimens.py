"""Stores on PostgreSQL under test: on a server, behind a pooler before it, and with a replica that answers reads.

Stories of a process share one schema of each; their tenants are distinguished by their seeds. The servers are
throwaways and go with the stories.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from muniment.core.ports.schema import TABLES
from muniment.store.engines._postgres_replica import ReplicaSettings
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.postgres import Servers, fresh_schema, pooled, server_dsn
from muniment.testing.simulator.specimens import Specimen

__all__ = ["PostgresSpecimen", "Server", "open_server"]


class PostgresSpecimen(Specimen):
    """A schema of a server shared by all stories of this process: their tenants are distinguished by the seed."""

    name = "postgres"
    is_durable = True

    def __init__(self, seed: int, server: Server) -> None:
        self._server = server
        self.name = server.name
        server.make_room(seed)
        super().__init__(seed, server.engine)

    def cut(self, transaction: Any) -> None:
        if transaction is None:
            super().cut(transaction)
        self._server.end_backend(transaction)

    def close(self) -> None:
        """Keep the server for the next story; this one's rows stay in tenants that are not read again."""


class Server:
    """A throwaway PostgreSQL, one engine in it or in front of it, and an operator's connection that can end others."""

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
        # Tables are not rebuilt after each forget: cleaning a server's files is up to its operator.
        self.engine = PostgresEngine(dsn, schema=schema, pool_max=4, replica=replica)
        stack.callback(self.engine.close)
        self._schema = schema
        self._seeds: set[int] = set()

    def make_room(self, seed: int) -> None:
        """Clear earlier data, so that a repeated story starts fresh."""
        if seed in self._seeds:
            self._operator.execute(f"TRUNCATE {', '.join(f'{self._schema}.{spec.name}' for spec in TABLES)}".encode())
            self._seeds.clear()
        self._seeds.add(seed)

    def end_backend(self, transaction: Any) -> None:
        ((pid,),) = transaction._run("", "SELECT pg_backend_pid()", ())  # a pooler gives the connection another number
        self._operator.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


def open_server(name: str, stack: ExitStack) -> Server:
    """Open the server of an engine's name; its resources end with the stack."""
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
