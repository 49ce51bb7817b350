"""The SQL that spreads a store over the servers of a Citus cluster, made from the tables as they are declared.

Writes a text and runs nothing: there is no Citus in our tests, and the guide says what was shown without it.
"""

from __future__ import annotations

from muniment.core.ports.schema import ENTRIES, TABLES
from muniment.errors import InvalidInput

__all__ = ["SHARDS_MAX", "script"]

SHARDS_MAX = 1024
_HEAD = """\
-- Spreads the store in the schema {schema} over the workers of a Citus cluster, by tenant.
--
-- Not run by the tests of muniment: there is no Citus in them. Try it on a copy first.
--
-- On the coordinator, as a superuser, once, after the store was opened once: its tables are whole (`muniment store
-- partition --parts 0`), its policies and rights are there, and go with them. Nobody writes meanwhile.
-- The roles that work with the store must be known to the workers; Citus hands CREATE ROLE on to them where
-- citus.enable_create_role_propagation is on, which it is by default.
--
-- {schema}.migrations stays a table of the coordinator: it is read when a store is opened, and names no tenant. No
-- table is shared by all tenants, so none becomes a reference table.

BEGIN;
"""


def script(schema: str, shards: int) -> str:
    """Every table with a tenant is distributed by it, and all rows of a tenant lie on one worker."""
    if type(shards) is not int or not 1 <= shards <= SHARDS_MAX:
        raise InvalidInput(f"shards is a whole number from 1 to {SHARDS_MAX}, not {shards!r:.40}", path="$.shards")
    first = f"{schema}.{ENTRIES.name}"
    lines = [f"SELECT create_distributed_table('{first}', 'tenant_id', shard_count => {shards});"]
    lines += [
        f"SELECT create_distributed_table('{schema}.{spec.name}', 'tenant_id', colocate_with => '{first}');"
        for spec in TABLES
        if spec is not ENTRIES
    ]
    return _HEAD.format(schema=schema) + "\n".join(lines) + "\nCOMMIT;\n"
