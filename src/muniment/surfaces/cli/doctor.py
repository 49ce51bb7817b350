"""`doctor`: installed parts, their locations, and parts that the settings need but that are missing.

It gives no other advice: unused parts are listed without comment. It opens the store read-only.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import muniment
from muniment.core.outside.system import EXTRAS, is_installed, require
from muniment.errors import MunimentError
from muniment.surfaces.cli._command import Call, Command
from muniment.surfaces.settings import Settings, config_files, open_store, read_config

__all__ = ["doctor"]

_TABLES = {"server": "server", "mcp": "mcp", "proxy": "proxy"}
"""The tables of `muniment.toml` that need a part, and the extra that installs it."""


_REPLICA_PROBLEMS = {
    "away": ("the replica cannot be reached; the primary answers all reads", "is it up, and are host and port right?"),
    "promoted": ("the replica was promoted: it has a history of its own", "name a replica of the primary, or none"),
}
_REPLICA_TOLD = {"follows": "answers reads", "behind": "is behind: the primary answers until it has come so far"}


def _doctor(call: Call) -> dict[str, Any]:
    settings = call.settings
    tokens, embedder, hosts = _tokens(settings), _embedder(settings), _hosts()
    problems = [
        *({"asked_by": name, **part["error"]} for name, part in (("tokens", tokens), ("embedder", embedder))
          if "error" in part),
        *_server(),
        *_lacking("the configuration of a coding agent", "mcp", "MCP is not installed", _asks_for_mcp(hosts)),
    ]  # fmt: skip
    openable = _openable(settings, tokens, embedder)
    store = _store(openable)
    if store["state"] == "broken":
        problems.append({"asked_by": "db", **store["error"]})
    if store.get("replica") in _REPLICA_PROBLEMS:
        message, hint = _REPLICA_PROBLEMS[store["replica"]]
        problems.append({"asked_by": "replica= in db", "message": message, "hint": hint})
    return {
        "muniment": muniment.__version__,
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.machine()}",
        "paths": _paths(),
        "packages": {name: metadata.version(name) for name in ("pydantic", "click", "rich", "numpy")},
        "extras": _extras(),
        "tokens": tokens,
        "embedder": embedder,
        "sandbox": _sandbox(),
        "inspector": _inspector(),
        "hosts": hosts,
        "settings": {
            "db": settings.shown_db,
            "tenant": settings.tenant,
            "durability": settings.durability,
        },
        "store": store,
        "problems": problems,
    }


# -- installed parts ----------------------------------------------------------------------------------


def _paths() -> dict[str, str | None]:
    config = next((each for each in config_files(os.environ) if each.is_file()), None)
    return {
        "package": str(Path(muniment.__file__).parent),
        "python": sys.executable,
        "config": str(config.resolve()) if config else None,
    }


def _extras() -> dict[str, dict[str, str]]:
    brought_by = metadata.packages_distributions()
    return {name: _extra(name, brought_by) for name in EXTRAS}


def _extra(name: str, brought_by: Mapping[str, list[str]]) -> dict[str, str]:
    serves, modules = EXTRAS[name]
    if not is_installed(name):
        return {"state": "missing", "for": serves}
    package, *_ = brought_by.get(modules[0], [modules[0]])
    return {"state": "installed", "for": serves, "package": package, "version": metadata.version(package)}


def _tokens(settings: Settings) -> dict[str, Any]:
    from muniment.core.outside.token_counters import load_token_counter

    try:
        counter = load_token_counter(settings.tokens)
    except MunimentError as error:
        return {"name": settings.tokens, "error": error.to_dict()}
    return {"name": counter.name, "is_exact": counter.is_exact}


def _embedder(settings: Settings) -> dict[str, Any]:
    from muniment.memory.embedding import load_embedder

    try:
        found = load_embedder(settings.embedder)
        return {"identity": "none" if found is None else found.identity}
    except MunimentError as error:
        return {"identity": None, "error": error.to_dict()}


def _sandbox() -> dict[str, Any]:
    try:
        from muniment.verify.sandbox.bubblewrap import probe

        return {"state": "ok", "bwrap": probe()}
    except MunimentError as error:
        return {"state": error.code, "error": error.to_dict()}


def _inspector() -> dict[str, str]:
    from muniment.surfaces.inspector.pages import is_built, not_built

    return {"state": "built"} if is_built() else {"state": "missing", "hint": not_built()}


def _hosts() -> list[dict[str, Any]]:
    """The coding agents with our entries in their configuration, for this user or in this project."""
    from muniment.surfaces.hosts.commands import setup_here
    from muniment.surfaces.hosts.installing import list_installed

    states = [{"host": each["host"], **_installed(each)} for each in list_installed(setup_here())]
    return [each for each in states if len(each) > 1]


def _installed(host: Mapping[str, Any]) -> dict[str, str]:
    scopes = {scope: host[scope]["state"] for scope in ("user", "project") if scope in host}
    return {scope: state for scope, state in scopes.items() if state != "none"}


# -- required parts -----------------------------------------------------------------------------------


def _lacking(asked_by: str, extra: str, what: str, is_asked: bool) -> list[dict[str, Any]]:
    try:
        if is_asked:
            require(extra, what)
    except MunimentError as error:
        return [{"asked_by": asked_by, **error.to_dict()}]
    return []


def _asks_for_mcp(hosts: list[dict[str, Any]]) -> bool:
    return any(state in ("installed", "partly") for each in hosts for state in each.values())


def _server() -> list[dict[str, Any]]:
    """The settings of a server, its MCP and the proxy, if there are any."""
    from muniment.surfaces.http.settings import load_server_settings

    config = read_config(os.environ)
    found = [
        lack
        for table, extra in _TABLES.items()
        for lack in _lacking(f"[{table}]", extra, f"the extra {extra} is not installed", table in config)
    ]
    try:
        otel = load_server_settings({}).otel
    except MunimentError as error:
        return [*found, {"asked_by": "[server]", **error.to_dict()}]
    return [*found, *_lacking("otel", "otel", "OpenTelemetry is not installed", otel == "on")]


def _openable(settings: Settings, tokens: Mapping[str, Any], embedder: Mapping[str, Any]) -> Settings:
    """The settings without parts that cannot be loaded: those are reported once, and the store is still opened."""
    return replace(
        settings,
        tokens="auto" if "error" in tokens else settings.tokens,
        embedder="none" if "error" in embedder else settings.embedder,
    )


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
                **({} if info.replica is None else {"replica": info.replica}),
            }
    except MunimentError as error:
        missing = "there is no store" in error.message
        return {"state": "none" if missing else "broken", "error": error.to_dict()}


# -- output -------------------------------------------------------------------------------------------


def _show(call: Call) -> Iterator[str]:
    found: dict[str, Any] = call.answer
    yield f"muniment {found['muniment']} on Python {found['python']}, SQLite {found['sqlite']}, {found['system']}"
    yield f"  installed in {found['paths']['package']}, run by {found['paths']['python']}"
    yield f"  settings: {found['paths']['config'] or 'no muniment.toml here'}"
    yield f"  {', '.join(f'{name} {version}' for name, version in found['packages'].items())}"
    yield from _show_extras(found["extras"])
    tokens, embedder, sandbox = found["tokens"], found["embedder"], found["sandbox"]
    yield f"  tokens: {tokens['name']}{'' if tokens.get('is_exact', True) else ' (an estimate)'}"
    identity = embedder["identity"] or "cannot be loaded"
    yield f"  embedder: {'none (search by words alone)' if identity == 'none' else identity}"
    hint = sandbox["error"].get("hint") if "error" in sandbox else None
    yield f"  sandbox: {sandbox.get('bwrap') or sandbox['error']['message']}{f' ({hint})' if hint else ''}"
    yield f"  inspector: {found['inspector'].get('hint', 'built')}"
    for host in found["hosts"]:
        states = [f"{scope}: {state}" for scope, state in host.items() if scope != "host"]
        yield f"  in {host['host']}: {', '.join(states)}"
    store = found["store"]
    yield f"store: {found['settings']['db']}"
    if store["state"] == "ok":
        yield f"  {store['engine']} {store['version']}, schema {store['schema']}, {store['tenants']} tenants"
        if "replica" in store:
            yield f"  the replica {_REPLICA_TOLD.get(store['replica'], 'answers no reads: ' + store['replica'])}"
    elif store["state"] == "none":
        yield "  not there yet; the first write makes it"
    else:
        yield "  cannot be opened"
    yield from _show_problems(found["problems"])


def _show_extras(extras: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    here = [
        f"{name} ({extra['package']} {extra['version']})"
        for name, extra in extras.items()
        if extra["state"] == "installed"
    ]
    yield f"  extras: {', '.join(here) or 'none; the core needs none'}"
    others = [f"{name} ({extra['for']})" for name, extra in extras.items() if extra["state"] == "missing"]
    if others:
        yield f"  not installed: {', '.join(others)}"


def _show_problems(problems: list[dict[str, Any]]) -> Iterator[str]:
    if not problems:
        yield "Everything that the settings ask for is here."
        return
    yield "What the settings ask for and does not work:"
    for each in problems:
        yield f"  {each['asked_by']}: {each['message']}"
        if "hint" in each:
            yield f"    hint: {each['hint']}"


doctor = Command(
    "memory.info",
    _show,
    function=_doctor,
    on="settings",
    document=lambda call: call.answer,
    holds=lambda found: not found["problems"],
    about="Looks at the installation and the store, and advises what your settings ask for and is missing. Exit 1 if "
    "something that was asked for does not work.",
)
