"""The command that a host runs at a hook: it reads an event as JSON and prints the text for the agent.

    muniment hook --host claude-code --db ~/.muniment/agents.db --user ana

A hook must not stop its host. It always ends within its limit; a failure is one line on standard error and exit code 1,
which hosts show before they go on; never 2, which blocks. Standard output has one JSON object or nothing.

Events that the host need not wait for (a tool's result, an answer, the end of a session) are only queued here, using
the standard library alone (`pending`). At the end of a turn a separate process writes them (`--pending`), because a
host that exits also ends its hooks. The memory belongs to the tenant of the event's repository (`repository`), and to
the user.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from muniment.core.outside.pending import (
    home_folder,
    is_outside,
    may_read,
    note_folder,
    pending_folder,
    put,
    the_only_writer,
    waiting,
    write_apart,
)
from muniment.errors import InvalidInput, InvalidJson, MunimentError
from muniment.surfaces.given_names import checked_name

if TYPE_CHECKING:
    from argparse import Namespace

    from muniment.core.outside.pending import Pending
    from muniment.handles.memory import Memory

__all__ = ["DEFAULT_DB", "main"]

DEFAULT_DB = "~/.muniment/agents.db"
_AGENT = "coding-agent"
_INPUT_BYTES_MAX = 16 * 1024 * 1024
_SECONDS_MAX = 8.0
_WRITER_SECONDS_MAX = 120.0
_RESULTS = frozenset(("PostToolUse", "PostToolUseFailure", "AfterTool", "postToolUse", "postToolUseFailure"))
_ENDS = frozenset(("Stop", "SubagentStop", "SessionEnd", "AfterAgent", "afterAgentResponse", "sessionEnd"))
"""The end of a turn or of a session: queued events are written then."""
_FROM_SETTINGS = {"tenant": "default", "user": "", "repository": "checkout", "branches": "any", "db": DEFAULT_DB}


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
    parser.add_argument("--pending", action="store_true", help="read no event: write those that wait")
    try:
        given = parser.parse_args(arguments)
    except SystemExit as stopped:  # 2 would block the host, because of a word that another version wrote
        raise SystemExit(1 if stopped.code else 0) from None
    for name, default in _FROM_SETTINGS.items():
        if getattr(given, name) is None:
            said = os.environ.get(f"MUNIMENT_{name.upper()}")
            setattr(given, name, default if said is None or (not said and name != "db") else said)
    checked_name(given.db, "db")
    if "://" not in given.db and given.db != ":memory:":
        given.db = os.path.abspath(os.path.expanduser(given.db))
    given.user = given.user or _who_runs_it()
    given.agent = given.agent or given.host or _AGENT
    return given


def _who_runs_it() -> str:
    from getpass import getuser

    return getuser()


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
    """Handle one event; returns the exit code. Reaching a limit ends the process."""
    try:
        given = _arguments(arguments)
        _watch(_WRITER_SECONDS_MAX if given.pending else given.seconds)
        answer = _write_waiting(given) if given.pending else _carry_out(given, _read_event(sys.stdin.buffer))
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
    """End the process when its time is over, whatever it waits for. Unwritten events stay queued."""
    from threading import Timer

    def end() -> None:
        os.write(2, f"error[too_slow]: memory took longer than {seconds:g} s; the agent goes on without\n".encode())
        os._exit(1)

    timer = Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _carry_out(given: Namespace, event: dict[str, Any]) -> dict[str, Any]:
    from muniment.surfaces.hosts.repository import scoped_tenant

    if given.host == "claude-code" and os.environ.get("CURSOR_VERSION"):
        return {}  # Cursor runs Claude Code's hooks too, and has its own
    tenant = scoped_tenant(given.tenant, _directory(event), kind=given.repository, branches=given.branches)
    folder = pending_folder(home_folder(), given.db)
    name = event.get("hook_event_name")
    if name not in _RESULTS | _ENDS or given.db == ":memory:":
        with may_read(folder) as is_free:
            return _told(given, event, tenant, waiting(folder) if is_free else ())
    if name in _ENDS and not _is_listened_to(event):
        return {}
    if not is_outside(given.db):
        with suppress(OSError):  # the event is still queued, where a forget finds it
            note_folder(given.db, folder)
    put(folder, tenant, event, user=given.user, agent=given.agent)
    if name in _ENDS:
        _start_writer(given)
    return {}


def _is_listened_to(event: Mapping[str, Any]) -> bool:
    from muniment.surfaces.hosts.events import read_event

    return read_event(event) is not None


def _start_writer(given: Namespace) -> None:
    named = {"--db": given.db, "--tenant": given.tenant, "--user": given.user, "--agent": given.agent}
    words = [word for name, value in named.items() if value for word in (name, value)]
    write_apart([sys.executable, "-P", "-m", "muniment.integrations.hooks", "--pending", *words])


def _told(given: Namespace, event: dict[str, Any], tenant: str, pending: Iterable[Pending]) -> dict[str, Any]:
    if not _is_listened_to(event):
        return {}
    with _opened(given, tenant) as mem:
        from muniment.surfaces.hosts.hooks import handle

        return handle(
            mem,
            event,
            user_id=given.user,
            agent_id=given.agent,
            tenant_id=tenant,
            max_tokens=given.max_tokens,
            personal_tenant=given.tenant if given.personal == "on" else None,
            pending=pending,
        )


def _write_waiting(given: Namespace) -> dict[str, Any]:
    """Write queued events, including those that arrive meanwhile."""
    folder = pending_folder(home_folder(), given.db)
    with the_only_writer(folder) as is_alone, may_read(folder) as is_free:
        first = next(waiting(folder), None)
        if not is_alone or not is_free or first is None:
            return {}
        from muniment.surfaces.hosts.hooks import Listener, write_pending

        with _opened(given, given.tenant) as mem:
            tried: set[str] = set()
            while fresh := [each for each in waiting(folder) if each.key not in tried]:
                tried.update(each.key for each in fresh)
                write_pending(mem, Listener(given.user, given.agent, given.tenant, pending=fresh))
    return {}


def _opened(given: Namespace, tenant: str) -> Memory:
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for plugins takes longer than the rest
    from muniment.core.text.tokens import ESTIMATE_NAME
    from muniment.surfaces.settings import load_settings, open_store

    if "://" not in given.db and given.db != ":memory:":
        Path(given.db).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    named = {
        "db": given.db, "tenant": tenant, "user": given.user, "agent": given.agent, "repository": given.repository,
    }  # fmt: skip
    quick = {"MUNIMENT_TOKENS": ESTIMATE_NAME}  # loading a vocabulary takes a sixth of a hook; hosts count characters
    return open_store(load_settings(named, {**quick, **os.environ, "MUNIMENT_REPOSITORY": "checkout"}))
