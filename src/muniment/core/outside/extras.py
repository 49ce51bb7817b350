"""Which extra brings which package, and what is said where one is not installed.

One table for errors and for `muniment doctor`, so that both name the same command. It looks for packages by name and
never loads them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import NamedTuple

from muniment.errors import MissingDependency

__all__ = ["EXTRAS", "Extra", "install_command", "is_installed", "missing_modules", "not_installed", "require"]


class Extra(NamedTuple):
    """A part of muniment that brings packages of others."""

    serves: str
    """What it is for, in a few words."""
    modules: tuple[str, ...]
    """The modules without which it does not work."""


EXTRAS: Mapping[str, Extra] = {
    "server": Extra("`muniment serve` and its inspector", ("starlette", "uvicorn", "httptools")),
    "client": Extra("`muniment.connect`", ("httpx2",)),
    "mcp": Extra("`muniment mcp`, and /mcp of a server", ("mcp",)),
    "proxy": Extra("`muniment proxy`", ("starlette", "uvicorn", "httptools", "httpx2")),
    "postgres": Extra("stores in PostgreSQL", ("psycopg", "psycopg_pool")),
    "vectors": Extra("the embedder wordllama", ("wordllama",)),
    "tokens": Extra("exact counts of tokens", ("splintr",)),
    "plots": Extra("flow maps as PNG", ("matplotlib",)),
    "otel": Extra("traces through OpenTelemetry", ("opentelemetry",)),
    "otlp": Extra("traces received as protobuf", ("opentelemetry.proto",)),
}
"""The extras of muniment itself. Those for agent frameworks are in `muniment.integrations`; `sandbox` brings a program,
which the system may have by itself (`muniment.verify.sandbox`)."""


def install_command(extra: str) -> str:
    """Double quotes: every shell, also that of Windows, takes them."""
    return f'pip install "muniment[{extra}]"'


def missing_modules(extra: str) -> list[str]:
    """The modules of an extra that are not installed here."""
    return [module for module in EXTRAS[extra].modules if not _is_found(module)]


def _is_found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package it is in
        return False


def is_installed(extra: str) -> bool:
    return not missing_modules(extra)


def not_installed(what: str, extra: str, otherwise: str = "") -> MissingDependency:
    """The error to raise: what cannot be done, and the command that mends it (or what to do `otherwise`)."""
    return MissingDependency(what, hint=f"{install_command(extra)}{', or ' if otherwise else ''}{otherwise}")


def require(extra: str, what: str, otherwise: str = "") -> None:
    """Raises `MissingDependency` where the extra is not installed, before anything is opened or written."""
    missing = missing_modules(extra)
    if missing:
        raise not_installed(f"{what} (no {', '.join(missing)} here)", extra, otherwise)
