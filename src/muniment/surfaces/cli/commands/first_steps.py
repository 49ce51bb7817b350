"""`demo`, `doctor`, `completion`: what a newcomer runs first."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from importlib import metadata, util
from io import StringIO
from typing import Annotated, Any, Literal

import click

from muniment.errors import MunimentError
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.settings import Settings, open_store

__all__ = ["completion", "demo", "doctor"]

# -- the demo -----------------------------------------------------------------------------------------


def _demo(call: Call, part: Annotated[Literal["rules"] | None, Word(metavar="[rules]")] = None) -> list[str]:
    if not call.as_json:
        _tell(part)
        return []
    with redirect_stdout(StringIO()) as printed:
        _tell(part)
    return click.unstyle(printed.getvalue()).splitlines()


def _tell(part: str | None) -> None:
    from muniment.surfaces.cli.demo.story import Calendar, show_main_job

    if part is None:
        show_main_job()
        return
    from muniment.surfaces.cli.demo.rules import show_rules

    show_rules(Calendar())


def _told_already(_: Call) -> Iterator[str]:
    return iter(())


demo = Command(
    "",
    _told_already,
    function=_demo,
    on="nothing",
    document=lambda call: {"lines": call.answer},
    about="Record, compose, explain, replay, prove, forget, research, learn. `muniment demo rules` tells the life of a "
    "rule: drafted, tested, tried, signed for, taken back.",
)


# -- the doctor ---------------------------------------------------------------------------------------

EXTRAS = {
    "postgres": ("psycopg", "psycopg_pool"),
    "vectors": ("wordllama",),
    "tokens": ("splintr",),
    "seal": ("cryptography",),
    "plots": ("matplotlib",),
    "mcp": ("mcp",),
    "server": ("starlette", "uvicorn"),
    "client": ("httpx2",),
    "otel": ("opentelemetry",),
}
"""Extra → the modules it brings."""


def _doctor(call: Call) -> dict[str, Any]:
    settings = call.settings
    brought_by = metadata.packages_distributions()
    return {
        "muniment": metadata.version("muniment"),
        "python": sys.version.split()[0],
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: metadata.version(name) for name in ("pydantic", "click", "rich")},
        "extras": {extra: _extra(extra, modules, brought_by) for extra, modules in EXTRAS.items()},
        "tokens": _tokens(settings),
        "embedder": _embedder(settings),
        "sandbox": _sandbox(),
        "inspector": _inspector(),
        "hosts": _hosts(),
        "settings": {
            "db": _without_password(settings.db),
            "tenant": settings.tenant,
            "durability": settings.durability,
        },
        "store": _store(settings),
    }


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


def _hosts() -> list[dict[str, Any]]:
    """The coding agents that have something of ours in their configuration, for this user or in this project."""
    from muniment.surfaces.hosts.commands import setup_here
    from muniment.surfaces.hosts.installing import list_installed

    states = [{"host": each["host"], **_installed(each)} for each in list_installed(setup_here())]
    return [each for each in states if len(each) > 1]


def _installed(host: Mapping[str, Any]) -> dict[str, str]:
    scopes = {scope: host[scope]["state"] for scope in ("user", "project") if scope in host}
    return {scope: state for scope, state in scopes.items() if state != "none"}


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


def _show(call: Call) -> Iterator[str]:
    found: dict[str, Any] = call.answer
    yield f"muniment {found['muniment']} on Python {found['python']}, SQLite {found['sqlite']}"
    for name, version in found["packages"].items():
        yield f"  {name} {version}"
    for extra, state in found["extras"].items():
        shown = f"installed ({state['version']})" if state["state"] == "installed" else f"missing: {state['hint']}"
        yield f"  extra [{extra}]: {shown}"
    tokens, embedder = found["tokens"], found["embedder"]
    yield f"  tokens: {tokens['name']}{_in_brackets(tokens)}"
    yield f"  embedder: {embedder['identity'] or 'cannot be loaded'}{_in_brackets(embedder)}"
    sandbox = found["sandbox"]
    yield f"  sandbox: {sandbox.get('bwrap') or sandbox['error']['message']}{_in_brackets(sandbox)}"
    yield f"  inspector: {found['inspector'].get('hint', 'built')}"
    for host in found["hosts"]:
        states = [f"{scope}: {state}" for scope, state in host.items() if scope != "host"]
        yield f"  in {host['host']}: {', '.join(states)}"
    store = found["store"]
    yield f"store: {found['settings']['db']}"
    if store["state"] == "ok":
        yield f"  {store['engine']} {store['version']}, schema {store['schema']}, {store['tenants']} tenants"
    elif store["state"] == "none":
        yield "  not there yet; the first write makes it"
    else:
        yield f"  broken: {store['error']['message']}"
        if "hint" in store["error"]:
            yield f"  hint: {store['error']['hint']}"


def _in_brackets(part: dict[str, Any]) -> str:
    if "error" in part:
        return f" ({part['error'].get('hint') or part['error']['message']})"
    if part.get("identity") == "none":
        return f" (search by words alone; better: {part['minilm']}, then MUNIMENT_EMBEDDER=minilm)"
    return "" if part.get("is_exact", True) else " (an estimate; exact with the extra [tokens])"


doctor = Command(
    "memory.info",
    _show,
    function=_doctor,
    on="settings",
    calls=("memory.tenants",),
    document=lambda call: call.answer,
    holds=lambda found: found["store"]["state"] != "broken",
    about="Looks at the installation and the store; exit 1 if something that was asked for does not work.",
)


# -- completion ---------------------------------------------------------------------------------------


def _completion(_: Call, shell: Literal["bash", "zsh", "fish"]) -> str:
    from click.shell_completion import ShellComplete, get_completion_class

    from muniment.surfaces.cli.main import cli

    known = get_completion_class(shell)
    assert known is not None
    return ShellComplete.source(known(cli, {}, "muniment", "_MUNIMENT_COMPLETE"))


completion = Command(
    "",
    lambda call: [call.answer],
    function=_completion,
    on="nothing",
    document=lambda call: {"shell": call.typed["shell"], "script": call.answer},
    about='For example: `eval "$(muniment completion bash)"` in ~/.bashrc, the same with zsh in ~/.zshrc, or `muniment '
    "completion fish > ~/.config/fish/completions/muniment.fish`.",
)
