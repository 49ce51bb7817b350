"""`muniment doctor`: what is installed, what is missing and how to get it, and whether the store opens."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Mapping
from importlib import metadata, util
from typing import Any

import click

from muniment.errors import MunimentError
from muniment.surfaces.cli.options import db_option, json_option
from muniment.surfaces.cli.output import EXIT_FAILED, emit_json, handles_errors
from muniment.surfaces.settings import Settings, load_settings, open_store

__all__ = ["doctor"]

EXTRAS = {
    "postgres": ("psycopg", "psycopg_pool"),
    "vectors": ("wordllama",),
    "tokens": ("splintr",),
    "plots": ("matplotlib",),
    "mcp": ("mcp",),
    "server": ("starlette", "uvicorn"),
    "client": ("httpx2",),
    "otel": ("opentelemetry",),
}
"""Extra → the modules it brings."""


@click.command()
@db_option
@json_option
@handles_errors
def doctor(db: str | None, as_json: bool) -> None:
    """Look at the installation and the store; exit 1 if something that was asked for does not work."""
    settings = load_settings({"db": db})
    brought_by = metadata.packages_distributions()
    found: dict[str, Any] = {
        "muniment": metadata.version("muniment"),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: metadata.version(name) for name in ("pydantic", "click", "rich")},
        "extras": {extra: _extra(extra, modules, brought_by) for extra, modules in EXTRAS.items()},
        "tokens": _tokens(settings),
        "embedder": _embedder(settings),
        "sandbox": _sandbox(),
        "inspector": _inspector(),
        "settings": {
            "db": _without_password(settings.db),
            "tenant": settings.tenant,
            "durability": settings.durability,
        },
        "store": _store(settings),
    }
    if as_json:
        emit_json(found)
    else:
        _show(found)
    if found["store"]["state"] == "broken":
        sys.exit(EXIT_FAILED)


def _extra(extra: str, modules: tuple[str, ...], brought_by: Mapping[str, list[str]]) -> dict[str, str]:
    if all(util.find_spec(module) is not None for module in modules):
        name, *_ = brought_by.get(modules[0], [modules[0]])
        return {"state": "installed", "version": metadata.version(name)}
    return {"state": "missing", "hint": f'pip install "muniment[{extra}]"'}


def _tokens(settings: Settings) -> dict[str, Any]:
    from muniment.core.outside.token_counters import load_token_counter

    try:
        counter = load_token_counter(settings.tokens)
    except MunimentError as error:
        return {"name": settings.tokens, "error": error.to_dict()}
    return {"name": counter.name, "is_exact": counter.is_exact}


def _embedder(settings: Settings) -> dict[str, Any]:
    from muniment.memory.outside.embed_minilm import MINILM_HINT
    from muniment.memory.outside.embedders import load_embedder

    try:
        return {"identity": load_embedder(settings.embedder).identity, "minilm": MINILM_HINT}
    except MunimentError as error:
        return {"identity": None, "error": error.to_dict()}


def _sandbox() -> dict[str, Any]:
    from muniment.verify.sandbox import probe

    try:
        return {"state": "ok", "bwrap": probe()}
    except MunimentError as error:
        return {"state": error.code, "error": error.to_dict()}


def _inspector() -> dict[str, str]:
    from muniment.surfaces.inspector.pages import NOT_BUILT, is_built

    return {"state": "built"} if is_built() else {"state": "missing", "hint": NOT_BUILT}


def _without_password(db: str) -> str:
    if "://" not in db or "@" not in db:
        return db
    scheme, rest = db.split("://", 1)
    login, host = rest.rsplit("@", 1)
    return f"{scheme}://{login.split(':', 1)[0]}@{host}"


def _store(settings: Settings) -> dict[str, Any]:
    try:
        with open_store(settings, must_exist=True, read_only=True) as mem:
            info = mem.info
            return {
                "state": "ok",
                "engine": info.name,
                "version": info.version,
                "durability": info.durability,
                "schema": info.schema_number,
                "tenants": len(mem.store.tenants()),
            }
    except MunimentError as error:
        missing = "there is no store" in error.message
        return {"state": "none" if missing else "broken", "error": error.to_dict()}


def _show(found: dict[str, Any]) -> None:
    click.echo(f"muniment {found['muniment']} on Python {found['python']}, SQLite {found['sqlite']}")
    for name, version in found["packages"].items():
        click.echo(f"  {name} {version}")
    for extra, state in found["extras"].items():
        shown = f"installed ({state['version']})" if state["state"] == "installed" else f"missing: {state['hint']}"
        click.echo(f"  extra [{extra}]: {shown}")
    tokens, embedder = found["tokens"], found["embedder"]
    click.echo(f"  tokens: {tokens['name']}{_in_brackets(tokens)}")
    click.echo(f"  embedder: {embedder['identity'] or 'cannot be loaded'}{_in_brackets(embedder)}")
    sandbox = found["sandbox"]
    click.echo(f"  sandbox: {sandbox.get('bwrap') or sandbox['error']['message']}{_in_brackets(sandbox)}")
    click.echo(f"  inspector: {found['inspector'].get('hint', 'built')}")
    store = found["store"]
    click.echo(f"store: {found['settings']['db']}")
    if store["state"] == "ok":
        click.echo(f"  {store['engine']} {store['version']}, schema {store['schema']}, {store['tenants']} tenants")
    elif store["state"] == "none":
        click.echo("  not there yet; the first write makes it")
    else:
        click.echo(f"  broken: {store['error']['message']}")
        if "hint" in store["error"]:
            click.echo(f"  hint: {store['error']['hint']}")


def _in_brackets(part: dict[str, Any]) -> str:
    if "error" in part:
        return f" ({part['error'].get('hint') or part['error']['message']})"
    if part.get("identity") == "none":
        return f" (search by words alone; better: {part['minilm']}, then MUNIMENT_EMBEDDER=minilm)"
    return "" if part.get("is_exact", True) else " (an estimate; exact with the extra [tokens])"
