"""The ways in which a store is deployed, each as an address that any process can open.

`@on("sqlite")` puts a test into every run on these, and on all of them under `make soak` or with MUNIMENT_DEPLOYMENTS
set; the test asks for `deployment`, its name, and `fresh_store`, which gives an empty store whenever it is entered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from effort import SOAK
from kept_schemas import kept_schema

__all__ = ["DEPLOYMENTS", "EVERYWHERE", "IN_MEMORY", "Deployed", "FreshStore", "Stores", "on", "stores_of", "url_of"]

IN_MEMORY = "memory"
DEPLOYMENTS = ("sqlite", "postgres", "pooler", "replica")
"""A file; a server; behind PgBouncer in transaction mode; with a replica that answers reads."""
EVERYWHERE = SOAK or "MUNIMENT_DEPLOYMENTS" in os.environ
_numbers = count(1)


def url_of(dsn: str, schema: str, **more: Any) -> str:
    return f"{dsn}{'&' if '?' in dsn else '?'}" + "&".join(
        f"{name}={value}" for name, value in {"schema": schema, **more}.items()
    )


class Deployed(NamedTuple):
    """An empty store."""

    target: str
    """What `muniment.open` takes, in any process."""
    dsn: str = ""
    """The server itself, for who looks at it from outside; "" where there is none."""
    schema: str = ""


FreshStore = Callable[[], AbstractContextManager[Deployed]]
Stores = Callable[[str], AbstractContextManager[Deployed]]


def on(*usual: str) -> pytest.MarkDecorator:
    """These deployments in every run, all of them under a soak; that in memory where it is named."""
    every = (*(name for name in usual if name == IN_MEMORY), *DEPLOYMENTS)
    return pytest.mark.parametrize("deployment", every if EVERYWHERE else usual)


def stores_of(request: pytest.FixtureRequest, folder: Path) -> Stores:
    """Empty stores by the name of their deployment. What has no server here is skipped, and says so."""

    @contextmanager
    def made(deployment: str) -> Iterator[Deployed]:
        if deployment == IN_MEMORY:
            yield Deployed(":memory:")
        elif deployment == "sqlite":
            yield Deployed(str(folder / f"store{next(_numbers)}.db"))
        elif deployment == "replica":
            primary, replica = request.getfixturevalue("pair")
            with kept_schema(primary.dsn) as schema:
                yield Deployed(url_of(primary.dsn, schema, replica=replica.address), primary.dsn, schema)
        else:
            dsn = request.getfixturevalue("postgres_dsn")
            asked_at = request.getfixturevalue("pooled_dsn") if deployment == "pooler" else dsn
            with kept_schema(dsn) as schema:
                yield Deployed(url_of(asked_at, schema), dsn, schema)

    return made
