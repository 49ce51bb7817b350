"""Options that several commands share, each spelled once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["db_option", "json_option", "now_option", "scope_options", "tenant_option", "user_option"]

F = TypeVar("F", bound=Callable[..., Any])


def db_option(command: F) -> F:
    return click.option("--db", metavar="DB", help="SQLite file or postgresql:// address (default: muniment.db).")(
        command
    )


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")(command)


def tenant_option(command: F) -> F:
    return click.option("--tenant", metavar="ID", help="The tenant (default: default).")(command)


def user_option(command: F) -> F:
    return click.option("--user", metavar="ID", help="Whose memory (default: the setting `user`).")(command)


def now_option(command: F) -> F:
    return click.option(
        "--now", metavar="TIME", help="When the question is asked (ISO 8601); later turns are not hidden."
    )(command)


def scope_options(command: F) -> F:
    """--tenant, --user, --session: which part of the store."""
    command = click.option("--session", metavar="ID", help="One session.")(command)
    command = click.option("--user", metavar="ID", help="One user.")(command)
    return tenant_option(command)
