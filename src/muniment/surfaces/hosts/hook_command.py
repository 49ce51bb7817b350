"""The command that a host runs at a hook: an event as JSON comes in, what to tell the agent goes out.

    muniment hook --host claude-code --db ~/.muniment/agents.db --user ana

A hook must not stop its host. Whatever happens it ends within its limit; a failure is one line on standard error and
exit code 1, which hosts show and go on; never 2, which blocks. Standard output has one JSON object or nothing.

A tool's result is only put down here, with nothing loaded but the standard library (`pending`); hooks that open the
store write it. Whose memory it is: the tenant of the repository that the event names (`repository`), and the user.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from muniment.errors import InvalidInput, InvalidJson, MunimentError

if TYPE_CHECKING:
    from argparse import Namespace

    from muniment.surfaces.hosts.pending import Pending

__all__ = ["DEFAULT_DB", "home_folder", "main"]

DEFAULT_DB = "~/.muniment/agents.db"
_INPUT_BYTES_MAX = 16 * 1024 * 1024
_SECONDS_MAX = 8.0
_WAITS = ("PostToolUse", "PostToolUseFailure", "AfterTool", "postToolUse", "postToolUseFailure")
"""Events that are put down, and written by a later hook."""
_ENDS = ("SessionEnd", "sessionEnd")
"""A host that exits may not wait: such an event is put down first, and a later hook writes what this one cannot."""
_FROM_SETTINGS = {"tenant": "default", "user": "", "repository": "checkout", "branches": "any", "db": DEFAULT_DB}


def home_folder() -> Path:
    """Where muniment keeps what belongs to a person and not to a project."""
    return Path(os.environ.get("MUNIMENT_HOME") or Path("~/.muniment").expanduser())


def _arguments(arguments: Sequence[str] | None) -> Namespace:
    from argparse import ArgumentParser

    parser = ArgumentParser(prog="muniment hook", description="Observe and compose, as a coding agent's hook.")
    parser.add_argument("--host", default="", help="the coding agent that runs the hook, such as claude-code")
    parser.add_argument("--db", help=f"SQLite file or postgresql:// address (default: {DEFAULT_DB})")
    parser.add_argument("--tenant", help="the tenant that repositories stand below (default: default)")
    parser.add_argument("--user", help="whose memory it is (default: who runs it)")
    parser.add_argument("--agent", help="the agent (default: the host)")
    parser.add_argument("--repository", choices=("none", "checkout", "remote"), help="what has a memory of its own")
    parser.add_argument("--branches", help="which branches share it: any, same, or a list such as main,release/*")
    parser.add_argument("--personal", choices=("on", "off"), default="off", help="tell what the user prefers anywhere")
    parser.add_argument("--max-tokens", type=int, default=1024, help="the most that is told at once")
    parser.add_argument("--seconds", type=float, default=_SECONDS_MAX, help="how long it may take")
    try:
        given = parser.parse_args(arguments)
    except SystemExit as stopped:  # 2 would block the host, because of a word that another version wrote
        raise SystemExit(1 if stopped.code else 0) from None
    for name, default in _FROM_SETTINGS.items():
        if getattr(given, name) is None:
            setattr(given, name, os.environ.get(f"MUNIMENT_{name.upper()}") or default)
    if "://" not in given.db and given.db != ":memory:":
        given.db = os.path.abspath(os.path.expanduser(given.db))
    return given


def _read_event(source: IO[bytes]) -> dict[str, Any]:
    data = source.read(_INPUT_BYTES_MAX + 1)
    if len(data) > _INPUT_BYTES_MAX:
        raise InvalidInput(f"the event is over {_INPUT_BYTES_MAX} bytes", path="$")
    try:
        event = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidJson(f"the event is not JSON: {error}") from None
    if not isinstance(event, dict):
        raise InvalidJson("the event should be a JSON object")
    return event


def _directory(event: Mapping[str, Any]) -> str:
    roots = event.get("workspace_roots")
    named = roots[0] if isinstance(roots, list) and roots else event.get("cwd")
    return named if isinstance(named, str) and named else os.getcwd()


def main(arguments: Sequence[str] | None = None) -> int:
    """One event; the exit code. A limit that was reached ends the process."""
    given = _arguments(arguments)
    _watch(given.seconds)
    try:
        event = _read_event(sys.stdin.buffer)
        answer = _carry_out(given, event)
    except MunimentError as error:
        print(f"error[{error.code}]: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error[outside]: {error.strerror or type(error).__name__}", file=sys.stderr)
        return 1
    if answer:
        sys.stdout.write(json.dumps(answer, ensure_ascii=True) + "\n")
    return 0


def _watch(seconds: float) -> None:
    """End the process when its time is over, whatever it waits for. What it had not written stays as it was."""
    from threading import Timer

    def end() -> None:
        os.write(2, f"error[too_slow]: memory took longer than {seconds:g} s; the agent goes on without\n".encode())
        os._exit(1)

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _carry_out(given: Namespace, event: dict[str, Any]) -> dict[str, Any]:
    from muniment.surfaces.hosts.pending import pending_folder, put, waiting
    from muniment.surfaces.hosts.repository import scoped_tenant

    if given.host == "claude-code" and os.environ.get("CURSOR_VERSION"):
        return {}  # Cursor runs Claude Code's hooks too, and has its own
    tenant = scoped_tenant(given.tenant, _directory(event), kind=given.repository, branches=given.branches)
    folder = pending_folder(home_folder(), given.db)
    name = event.get("hook_event_name")
    if name in (*_WAITS, *_ENDS) and given.db != ":memory:":
        put(folder, tenant, event)
    return {} if name in _WAITS else _with_store(given, event, tenant, waiting(folder))


def _with_store(given: Namespace, event: dict[str, Any], tenant: str, pending: Iterable[Pending]) -> dict[str, Any]:
    from muniment.surfaces.hosts.events import read_event

    if read_event(event) is None:
        return {}
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them takes longer than the rest of it
    from getpass import getuser

    from muniment.core.text.tokens import ESTIMATE_NAME
    from muniment.surfaces.hosts.hooks import AGENT, Listener, handle, write_pending
    from muniment.surfaces.settings import load_settings, open_store

    if "://" not in given.db and given.db != ":memory:":
        Path(given.db).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    user, agent = given.user or getuser(), given.agent or given.host or AGENT
    named = {"db": given.db, "tenant": tenant, "user": user, "agent": agent, "repository": given.repository}
    quick = {"MUNIMENT_TOKENS": ESTIMATE_NAME}  # loading a vocabulary takes a sixth of a hook; hosts count characters
    settings = load_settings(named, {**quick, **os.environ, "MUNIMENT_REPOSITORY": "checkout"})
    with open_store(settings) as mem:
        if event["hook_event_name"] in _ENDS and given.db != ":memory:":
            write_pending(mem, Listener(user, agent, tenant, pending=pending))
            return {}
        return handle(
            mem,
            event,
            user_id=user,
            agent_id=agent,
            tenant_id=tenant,
            max_tokens=given.max_tokens,
            personal_tenant=given.tenant if given.personal == "on" else None,
            pending=pending,
        )
