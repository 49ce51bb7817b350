"""`install`, `uninstall` and `hook`: muniment in the coding agents people already use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from getpass import getuser
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from muniment.core.outside.pending import home_folder
from muniment.core.outside.system import install_command, is_installed
from muniment.errors import InvalidInput
from muniment.surfaces.cli._command import Call, Command, OptionSpec
from muniment.surfaces.given_names import checked_name
from muniment.surfaces.hosts import installing
from muniment.surfaces.hosts.config_files import Notes
from muniment.surfaces.hosts.hook_command import DEFAULT_DB
from muniment.surfaces.hosts.hook_command import main as run_hook
from muniment.surfaces.hosts.hosts import HOSTS, Setup
from muniment.surfaces.hosts.repository import find_repository

__all__ = ["hook", "install", "plugin_folder", "setup_here", "uninstall"]

ScopeAsked = Annotated[
    Literal["user", "project"], OptionSpec("For every project of yours, or for this one, in files that can be shared.")
]
HostAsked = Annotated[str | None, OptionSpec(metavar="[HOST]", type=click.Choice(list(HOSTS)))]
Repositories = Literal["checkout", "remote", "none"]


def notes_here() -> Notes:
    return Notes(home_folder() / "installed")


def setup_here(scope: Literal["user", "project"] = "user", **more: Any) -> Setup:
    """The requested setup, for the current directory."""
    return Setup(scope, find_repository(Path.cwd()).root, Path.home(), os.environ, **more)


def plugin_folder() -> Path:
    """The packaged plugin's folder: a marketplace that Claude Code can be pointed to."""
    return Path(__file__).parent / "marketplace"


# -- install ------------------------------------------------------------------------------------------


def _install(
    call: Call,
    host: HostAsked = None,
    *,
    scope: ScopeAsked = "user",
    db: Annotated[str | None, OptionSpec(f"The store (default: {DEFAULT_DB}).", metavar="DB")] = None,
    user: Annotated[str | None, OptionSpec("Whose memory it is (default: who runs it).", metavar="ID")] = None,
    repository: Annotated[
        Repositories, OptionSpec("What has a memory of its own: a checkout, all checkouts of a remote, or nothing.")
    ] = "checkout",
    branches: Annotated[
        str, OptionSpec("Which branches share it: any, same, or a list such as main,release/*.", metavar="NAMES")
    ] = "any",
    personal: Annotated[bool, OptionSpec("Tell what the user prefers in every repository.")] = False,
    max_tokens: Annotated[int | None, OptionSpec("The most a hook tells at once (default: 1024).", metavar="N")] = None,
    dry_run: bool = False,
    list: Annotated[bool, OptionSpec("Only list the hosts, and what is installed where.")] = False,
) -> dict[str, Any]:
    if list:
        return {"hosts": installing.list_installed(setup_here()), "plugin": str(plugin_folder())}
    if host is None:
        raise InvalidInput("no host is named", path="$.host", hint=f"one of {', '.join(HOSTS)}; or --list")
    if scope == "project" and db is not None and "@" in db:
        raise InvalidInput("a shared file should hold no password", path="$.db", hint="set MUNIMENT_DB instead")
    for name, value in (("db", db), ("user", user)):
        if value is not None:
            checked_name(value, name)
    found = installing.find_host(host, scope)
    if scope == "user":
        db, user = db or DEFAULT_DB, user or getuser()
    if db is not None and "://" not in db and scope == "user":
        db = os.path.abspath(os.path.expanduser(db))
    more = {"repository": repository, "branches": branches, "personal": personal, "max_tokens": max_tokens}
    setup = setup_here(scope, db=db, user=user, **more)
    notes = notes_here()
    changes = installing.plan_install(found, setup, notes)
    if not dry_run:
        installing.install(changes, notes, mode=0o644 if scope == "project" else 0o600)
    return _told(call, host, changes, dry_run, _noted(found.note))


def _noted(note: str) -> str:
    """A host's note, with a warning that its MCP server cannot start if MCP is not installed."""
    lacks = "" if is_installed("mcp") else f"its MCP server needs MCP, which is not installed: {install_command('mcp')}"
    return "; ".join(each for each in (note, lacks) if each)


def _uninstall(call: Call, host: HostAsked = None, *, scope: ScopeAsked = "user", dry_run: bool = False) -> Any:
    if host is None:
        raise InvalidInput("no host is named", path="$.host", hint="`muniment install --list` says what is there")
    found, notes = installing.find_host(host, scope), notes_here()
    changes = installing.plan_uninstall(found, setup_here(scope), notes)
    if not dry_run:
        installing.uninstall(changes, notes)
    return _told(call, host, changes, dry_run, "")


def _told(_: Call, host: str, changes: list[installing.Change], dry_run: bool, note: str) -> dict[str, Any]:
    told: dict[str, Any] = {"host": host, "dry_run": dry_run, "files": [change.to_wire() for change in changes]}
    return {**told, "note": note} if note and any(change.is_change for change in changes) else told


def _show(call: Call) -> Iterator[str]:
    if "hosts" in call.answer:
        yield from _listed(call.answer)
        return
    for file in call.answer["files"]:
        yield from file["diff"]
    would = "would be " if call.answer["dry_run"] else ""
    for file in call.answer["files"]:
        if file["does"] == "nothing":
            yield f"{file['path']}: as it was"
            continue
        yield f"{file['path']}: {would}{file['does']}"
        if "backup" in file and not call.answer["dry_run"]:
            yield f"  as it was before: {file['backup']}"
    if not call.answer["files"]:
        yield "nothing of ours is there"
    if "note" in call.answer:
        yield call.answer["note"]


def _listed(found: dict[str, Any]) -> Iterator[str]:
    for host in found["hosts"]:
        states = [f"{scope}: {host[scope]['state']}" for scope in ("user", "project") if scope in host]
        yield f"{host['host']:12} {', '.join(states)}"
    yield f"plugin for Claude Code: claude plugin marketplace add {found['plugin']}"


install = Command(
    view=_show,
    function=_install,
    on="nothing",
    document=lambda call: call.answer,
    about="Puts hooks and the MCP server into the host's own configuration, shows the change, and keeps what is there. "
    "Each repository has a memory of its own. `muniment uninstall` takes out exactly what was put in.",
)
uninstall = Command(
    view=_show,
    function=_uninstall,
    on="nothing",
    document=lambda call: call.answer,
    about="What was there before an installation is put back byte for byte; where the file was changed meanwhile, our "
    "entries alone are taken out. What was recorded stays: `muniment forget` erases.",
)


# -- hook ---------------------------------------------------------------------------------------------


def _hook(
    _: Call,
    *,
    host: Annotated[
        str | None, OptionSpec("The coding agent that runs it, such as claude-code.", metavar="HOST")
    ] = None,
    db: Annotated[str | None, OptionSpec(f"The store (default: {DEFAULT_DB}).", metavar="DB")] = None,
    tenant: Annotated[str | None, OptionSpec("The tenant that repositories stand below (default: default).")] = None,
    user: Annotated[str | None, OptionSpec("Whose memory it is (default: who runs it).", metavar="ID")] = None,
    agent: Annotated[str | None, OptionSpec("The agent (default: the host).", metavar="ID", read=str)] = None,
    repository: Annotated[Repositories | None, OptionSpec("What has a memory of its own (default: checkout).")] = None,
    branches: Annotated[str | None, OptionSpec("Which branches share it (default: any).", metavar="NAMES")] = None,
    personal: Annotated[Literal["on", "off"] | None, OptionSpec("Tell what the user prefers anywhere.")] = None,
    max_tokens: Annotated[int | None, OptionSpec("The most that is told at once (default: 1024).", metavar="N")] = None,
    seconds: Annotated[float | None, OptionSpec("How long it may take (default: 8).", metavar="N")] = None,
) -> None:
    named: dict[str, Any] = {
        "host": host,
        "db": db,
        "tenant": tenant,
        "user": user,
        "agent": agent,
        "repository": repository,
    }
    named |= {"branches": branches, "personal": personal, "max-tokens": max_tokens, "seconds": seconds}
    words = [word for name, value in named.items() if value is not None for word in (f"--{name}", str(value))]
    code = run_hook(words)
    if code:
        raise SystemExit(code)


hook = Command(
    function=_hook,
    on="nothing",
    about="A host runs it: an event comes in as JSON, what to tell the agent goes out. It never stops the host: a "
    "failure is one line on standard error and exit code 1.",
)
