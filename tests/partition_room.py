"""What tests of partitions share: stores with a row of each tenant in every table, and ways to look at how they lie."""

from __future__ import annotations

from typing import Any

import psycopg

from deployments import url_of
from muniment.core.ports.engine import Insert, Row, Select
from muniment.core.ports.schema import TABLES
from muniment.store.engines.postgres.engine import PostgresEngine
from muniment.store.engines.postgres.layouts import Layout, layout_of, read_shapes
from muniment.store.engines.postgres.opening import Target
from muniment.store.engines.postgres.partitioning import Step, convert
from muniment.testing.rows import sample_row

__all__ = ["BIG", "TENANTS", "converted", "fill", "held", "layout", "leftovers", "relations", "target", "url_of"]

TENANTS = ("acme", "globex", "o'neil\\é\"x", "initech")
BIG = Layout.checked(3, {"acme": 2, "o'neil\\é\"x": 1})


def target(dsn: str, schema: str) -> Target:
    return Target(dsn, schema, "muniment_app", 5, 30.0, False)


def layout(dsn: str, schema: str) -> Layout | None:
    with psycopg.connect(dsn) as connection:
        return layout_of(read_shapes(connection, schema))


def converted(dsn: str, schema: str, wanted: Layout, **more: Any) -> list[Step]:
    return list(convert(target(dsn, schema), wanted, **more))


def relations(dsn: str, schema: str) -> dict[str, tuple[Any, ...]]:
    """Every table of the schema with its owner and its walls."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            """SELECT relname, relkind::text, pg_get_userbyid(relowner), relrowsecurity, relforcerowsecurity
               FROM pg_class
               WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'p') AND relname <> 'migrations'""",
            (schema,),
        )
        return {name: tuple(rest) for name, *rest in rows}


def leftovers(dsn: str, schema: str) -> list[Any]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            """SELECT relname::text FROM pg_class
                 WHERE relnamespace = to_regnamespace(%(schema)s) AND relname LIKE '%%\\_\\_%%'
               UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = to_regnamespace(%(schema)s)
               UNION ALL SELECT tgname::text FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
                 WHERE relnamespace = to_regnamespace(%(schema)s)
               UNION ALL SELECT policyname::text FROM pg_policies
                 WHERE schemaname = %(schema)s AND policyname = 'partitioning'
               UNION ALL SELECT relname::text FROM pg_class
                 WHERE relnamespace = to_regnamespace(%(schema)s) AND relname = 'partitioning'""",
            {"schema": schema},
        ).fetchall()


def fill(engine: PostgresEngine, number: int = 1) -> None:
    for tenant in TENANTS:
        engine.write(
            tenant,
            lambda tx: [tx.do(Insert(spec.name, [sample_row(spec, number)])) for spec in TABLES if spec.key],
        )


def held(engine: PostgresEngine) -> dict[tuple[str, str], list[Row]]:
    return {
        (tenant, spec.name): engine.read(tenant, lambda reader, spec=spec: reader.do(Select(spec.name)))  # type: ignore[misc]
        for tenant in TENANTS
        for spec in TABLES
    }
