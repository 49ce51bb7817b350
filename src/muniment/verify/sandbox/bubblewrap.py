"""The bubblewrap sandbox: sessions under a policy, or a refusal that says why. Code never runs on the host."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Self

from muniment.contracts.runs import SandboxActionTrace, SandboxPolicy
from muniment.core.outside.system import SystemIds
from muniment.core.ports.models import Ids
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import Network, SandboxTool
from muniment.core.text.sentences import lines_at
from muniment.errors import Closed, InvalidInput, NotFound, SandboxDenied, SandboxUnavailable, TooLarge
from muniment.verify.sandbox._mounts import (
    STEP_DOWN,
    MountNamespace,
    Tools,
    Tree,
    action_arguments,
    check_workdir,
    environment,
    find_tools,
    host_tree,
    image_tree,
    library_path,
    package_binds,
    stage_arguments,
    system_tree,
    with_network,
)
from muniment.verify.sandbox._network import FilteringProxy, parse_entries
from muniment.verify.sandbox._running import (
    MB,
    NO_WIRES,
    Descriptors,
    Finished,
    Limits,
    can_watch,
    limits_of,
    run_action,
)
from muniment.verify.sandbox._seccomp import filter_program
from muniment.verify.sandbox.port import WORKDIR, Cap, EditorCommand, Observation, Usage, Wires
from muniment.verify.sandbox.traces import Change, Fetches, Outcome, changes, make_trace


class BubblewrapSandbox:
    """Opens sessions.

    `images` maps a policy's `image_id` to an unpacked root file system; without an image, this machine's programs are
    visible. `packages` are import names of this environment to show to the sandbox's Python. `mounts` maps further
    paths inside to folders or files here, read-only.
    """

    def __init__(
        self,
        *,
        images: Mapping[str, Path] | None = None,
        packages: Sequence[str] = (),
        mounts: Mapping[str, Path] | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._images = dict(images or {})
        self._packages = tuple(packages)
        self._mounts = dict(mounts or {})
        self._ids = ids or SystemIds()

    def open(
        self, policy: SandboxPolicy, files: Mapping[str, bytes] | None = None, *, trace_id: str
    ) -> BubblewrapSession:
        """A session with these files in its scratch; raises `SandboxUnavailable` or `SandboxDenied`."""
        if policy.enabled is False:
            raise SandboxDenied("the policy switches the sandbox off", hint="policy.enabled")
        limits, network, is_root = limits_of(policy), policy.network or "off", os.geteuid() == 0
        entries = parse_entries(policy.allowlist or ())
        if entries and network != "allowlist":
            raise InvalidInput(f"an allowlist with network {network!r}", path="$.allowlist")
        tools = find_tools()
        if not can_watch():
            raise SandboxUnavailable("this kernel does not list the children of a process: nothing could be watched")
        owner = (STEP_DOWN, STEP_DOWN) if is_root else None
        with ExitStack() as made:
            proxy = FilteringProxy(entries, owner) if network == "allowlist" else None
            if proxy is not None:
                made.callback(proxy.close)
            root = self._root(policy.image_id, network, proxy)
            workdir = check_workdir(policy.workdir or WORKDIR, root)
            arguments = stage_arguments(
                tools, system_tree(), root, workdir=workdir, disk_mb=limits.disk_mb, is_root=is_root
            )
            stage = MountNamespace(arguments, is_root=is_root)
            made.callback(stage.close)
            for path, data in (files or {}).items():
                stage.scratch.write(parts_of(path, workdir), data)
            walls = SandboxSetup(
                tools=tools,
                stage=stage,
                proxy=proxy,
                seccomp=filter_program(platform.machine()),
                workdir=workdir,
                has_packages=bool(self._packages),
                is_root=is_root,
            )
            return BubblewrapSession(policy, limits, walls, self._ids, trace_id=trace_id, closing=made.pop_all())

    def _root(self, image_id: str | None, network: Network, proxy: FilteringProxy | None) -> Tree:
        if image_id is None:
            root = host_tree()
        elif image_id in self._images:
            root = image_tree(self._images[image_id])
        else:
            raise SandboxUnavailable(f"there is no image {image_id!r} here", hint="BubblewrapSandbox(images={…})")
        more = tuple((str(path), inside) for inside, path in self._mounts.items())
        root = Tree((*root.binds, *package_binds(self._packages), *more), root.links)
        return with_network(root, network, None if proxy is None else proxy.folder)


def probe() -> str:
    """Run `true` in a sandbox; return the bubblewrap used, or raise the errors of `open`."""
    policy = SandboxPolicy(schema_version=RULECRAFT_VERSION)
    with BubblewrapSandbox().open(policy, trace_id="probe") as session:
        seen = session.execute_bash("true")
    if not seen.ok:
        raise SandboxDenied(f"the sandbox came up, but `true` did not run: {seen.stderr.strip()}")
    return find_tools().bwrap


# -- sessions ------------------------------------------------------------------------------------------

COMMAND_BYTES_MAX = 100_000
"""The kernel limits an argument to 128 KiB; longer scripts are passed as a file."""
VIEW_BYTES_MAX = 4 * MB
PROXY_PORT = 3128


@dataclass(frozen=True, slots=True)
class SandboxSetup:
    """The parts of a session."""

    tools: Tools
    stage: MountNamespace
    proxy: FilteringProxy | None
    seccomp: bytes
    workdir: str
    has_packages: bool
    is_root: bool


class BubblewrapSession:
    """A session with one action at a time, used from one thread at a time. Close it, or use it as a context manager."""

    def __init__(
        self, policy: SandboxPolicy, limits: Limits, walls: SandboxSetup, ids: Ids, *, trace_id: str, closing: ExitStack
    ) -> None:
        self._policy = policy
        self._left = limits
        self._scan_max = (limits.files, 2 * limits.disk_mb * MB)
        self._walls = walls
        self._ids = ids
        self._trace_id = trace_id
        self._closing = closing
        self._traces: list[SandboxActionTrace] = []
        self._is_submitted = False
        self._is_closed = False
        self._seen = walls.stage.scratch.scan({}, *self._scan_max)

    @property
    def traces(self) -> Sequence[SandboxActionTrace]:
        return tuple(self._traces)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._closing.close()

    # -- tools ----------------------------------------------------------------------------------------

    def execute_bash(self, command: str) -> Observation:
        """Run a command line in the scratch folder; whatever it leaves running is killed."""
        return self.execute_wired(command, NO_WIRES)

    def execute_wired(self, command: str, wires: Wires) -> Observation:
        """Run a command like `execute_bash`, with extra descriptors, ending it when the other end of a wire says so."""
        args = {"command": command}
        refused = self._refused("execute_bash") or _command_refused(command)
        if refused is not None:
            return self._tell("execute_bash", args, refused)
        try:
            finished = run_action(
                lambda given, limiting: self._arguments(command, given, limiting),
                self._walls.seccomp,
                self._left,
                self._walls.stage.scratch.in_use,
                wires,
            )
        except OSError as error:
            outcome = Outcome(False, error_class="sandbox_denied", stderr=f"the action could not be started: {error}")
            return self._tell("execute_bash", args, outcome)
        self._left = self._left.after(wall_ms=finished.usage.wall_ms, cpu_ms=finished.usage.cpu_ms)
        seen = self._tell("execute_bash", args, _outcome(finished), usage=finished.usage, spent=True)
        self._walls.stage.sweep()
        return seen

    def str_replace_editor(
        self,
        command: EditorCommand,
        path: str,
        *,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        view_range: tuple[int, int] | None = None,
    ) -> Observation:
        """View or edit a file of the scratch folder. `insert` takes `insert_line` and `new_str`."""
        args = {
            "command": command,
            "path": path,
            "file_text": file_text,
            "old_str": old_str,
            "new_str": new_str,
            "insert_line": insert_line,
            "view_range": view_range,
        }
        refused = self._refused("str_replace_editor")
        if refused is not None:
            return self._tell("str_replace_editor", args, refused)
        commands: dict[str, Callable[[tuple[str, ...]], tuple[str, int | None]]] = {
            "view": lambda parts: self._view(parts, view_range),
            "create": lambda parts: self._create(parts, file_text),
            "str_replace": lambda parts: self._edit(parts, lambda text: replace_text(text, old_str, new_str)),
            "insert": lambda parts: self._edit(parts, lambda text: insert_text(text, insert_line, new_str)),
        }
        read: tuple[str, int] | None = None
        try:
            if command not in commands:
                raise InvalidInput(f"there is no command {command!r}", path="$.command", hint=", ".join(commands))
            parts = parts_of(path, self._walls.workdir)
            said, size = commands[command](parts)
            if size is not None:
                read = ("/".join((self._walls.workdir, *parts)), size)
            outcome = Outcome(True, stdout=said)
        except (InvalidInput, NotFound, TooLarge) as error:
            hint = "" if error.hint == error.usual_hint else f" ({error.hint})"
            outcome = Outcome(False, stderr=f"{error.message}{hint}", error_class="invalid_action")
        return self._tell("str_replace_editor", args, outcome, read=read)

    def submit(self, message: str = "", paths: Sequence[str] = ()) -> Observation:
        """Submit: return the named files as `files`; the session takes no more actions."""
        args = {"message": message, "paths": list(paths)}
        refused = self._refused("submit")
        if refused is not None:
            return self._tell("submit", args, refused)
        files: dict[str, bytes] = {}
        room = self._left.disk_mb * MB
        try:
            for parts in dict.fromkeys(parts_of(path, self._walls.workdir) for path in paths):
                files["/".join(parts)] = self._walls.stage.scratch.read(parts, room)
                room -= len(files["/".join(parts)])
        except (InvalidInput, NotFound, TooLarge) as error:
            return self._tell("submit", args, Outcome(False, stderr=error.message, error_class="invalid_action"))
        self._is_submitted = True
        return self._tell("submit", args, Outcome(True, stdout=message), files=files)

    # -- the editor -----------------------------------------------------------------------------------

    def _view(self, parts: tuple[str, ...], view_range: tuple[int, int] | None) -> tuple[str, int | None]:
        if not self._walls.stage.scratch.is_folder(parts):
            data = self._walls.stage.scratch.read(parts, VIEW_BYTES_MAX)
            return numbered(_text(data, parts), view_range), len(data)
        prefix = "".join(f"{part}/" for part in parts)
        inside = [path.removeprefix(prefix) for path in self._seen if path.startswith(prefix)]
        return listing(inside), None

    def _create(self, parts: tuple[str, ...], file_text: str | None) -> tuple[str, int | None]:
        if file_text is None:
            raise InvalidInput("file_text is what the file is to hold", path="$.file_text")
        self._walls.stage.scratch.write(parts, _bytes(file_text), new=True)
        return f"created {'/'.join(parts)}", None

    def _edit(self, parts: tuple[str, ...], edit: Callable[[str], tuple[str, str]]) -> tuple[str, int | None]:
        before = self._walls.stage.scratch.read(parts, VIEW_BYTES_MAX)
        made, around = edit(_text(before, parts))
        self._walls.stage.scratch.write(parts, _bytes(made))
        return around, len(before)

    # -- what every action shares ---------------------------------------------------------------------

    def _refused(self, tool: SandboxTool) -> Outcome | None:
        if self._is_closed:
            raise Closed("the session is closed")
        toolset = self._policy.toolset
        if toolset is not None and tool not in toolset:
            return Outcome(False, stderr=f"the policy leaves {tool} out", error_class="action_refused")
        if self._is_submitted:
            return Outcome(False, stderr="the work was handed in already", error_class="action_refused")
        if self._left.max_turns < 1:
            return Outcome(False, stderr="no turns are left", error_class="action_refused", capped=("turns",))
        if tool == "execute_bash" and (self._left.wall_ms < 1 or self._left.cpu_ms < 1):
            met: Cap = "wall" if self._left.wall_ms < 1 else "cpu"
            return Outcome(False, stderr="no time is left", error_class="sandbox_timeout", capped=(met,))
        return None

    def _arguments(self, command: str, descriptors: Descriptors, limiting: str) -> list[str]:
        walls = self._walls
        bash = ["bash", "--noprofile", "--norc", "-c"]
        inner = [*bash, "--", command]
        if walls.proxy is not None:
            inner = ["python3", "-I", "/opt/muniment/forward.py", str(PROXY_PORT), "/run/proxy/socket", *inner]
        return action_arguments(
            walls.tools,
            [*bash, limiting, "limits", *inner],
            environment(
                walls.workdir,
                library_path=library_path(self._policy.image_id),
                has_packages=walls.has_packages,
                proxy_port=None if walls.proxy is None else PROXY_PORT,
            ),
            descriptors,
            stage_pid=walls.stage.pid,
            workdir=walls.workdir,
            share_net=self._policy.network == "on",
            is_root=walls.is_root,
        )

    def _tell(
        self,
        tool: SandboxTool,
        args: Mapping[str, Any],
        outcome: Outcome,
        *,
        usage: Usage | None = None,
        read: tuple[str, int] | None = None,
        files: Mapping[str, bytes] | None = None,
        spent: bool = False,
    ) -> Observation:
        """Finish an action, even a refused one, as one turn with one trace."""
        if not spent:
            self._left = self._left.after(wall_ms=0, cpu_ms=0)
        trace = make_trace(
            trace_id=self._trace_id,
            action_id=self._ids.new("act"),
            turn=len(self._traces) + 1,
            tool=tool,
            args=args,
            outcome=outcome,
            change=self._look(),
            read=read,
            fetches=self._fetches(),
        )
        self._traces.append(trace)
        return Observation(
            ok=outcome.ok,
            trace=trace,
            stdout=outcome.stdout,
            stderr=outcome.stderr,
            exit_code=outcome.exit_code,
            error_class=outcome.error_class,
            capped=outcome.capped,
            usage=usage or Usage(),
            files=files or {},
        )

    def _look(self) -> Change:
        before = self._seen
        self._seen = self._walls.stage.scratch.scan(before, *self._scan_max)
        change = changes(before, self._seen)
        return Change(
            {f"{self._walls.workdir}/{path}": entry for path, entry in change.written.items()},
            tuple(f"{self._walls.workdir}/{path}" for path in change.deleted),
        )

    def _fetches(self) -> Fetches:
        if self._walls.proxy is not None:
            return self._walls.proxy.take()
        return Fetches(None) if self._policy.network == "on" else Fetches()


def _command_refused(command: str) -> Outcome | None:
    if "\0" in command:
        return Outcome(False, stderr="a command cannot hold a zero byte", error_class="invalid_action")
    if len(command.encode("utf-8", "surrogateescape")) > COMMAND_BYTES_MAX:
        said = f"a command has at most {COMMAND_BYTES_MAX:,} bytes: write a file and run it"
        return Outcome(False, stderr=said, error_class="invalid_action")
    return None


def _outcome(finished: Finished) -> Outcome:
    made = Outcome(
        ok=finished.exit_code == 0,
        stdout=finished.stdout.decode("utf-8", "replace"),
        stderr=finished.stderr.decode("utf-8", "replace"),
        exit_code=finished.exit_code,
        capped=finished.capped,
    )
    return made if made.ok else _classed(made, finished.started)


def _classed(made: Outcome, started: bool) -> Outcome:
    if {"wall", "cpu"} & set(made.capped):
        return replace(made, error_class="sandbox_timeout")
    if {"memory", "files", "output"} & set(made.capped):
        return replace(made, error_class="cap_exceeded")
    if started:
        return replace(made, error_class="exit_nonzero")
    unable = "execvp" in made.stderr
    return replace(made, error_class="exec_unavailable" if unable else "sandbox_denied")


def _text(data: bytes, parts: tuple[str, ...]) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{'/'.join(parts)} is not UTF-8 text", path="$.path") from None


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("the text holds a lone surrogate", path="$.file_text") from None


# -- the editor ----------------------------------------------------------------------------------------

SNIPPET_LINES = 4
"""Lines shown before and after an edit."""


def parts_of(path: str, workdir: str) -> tuple[str, ...]:
    """Split a path, absolute or relative to the scratch folder, into its names below that folder.

    `..` is refused rather than resolved: with links, its target cannot be known from the text.
    """
    if "\0" in path:
        raise InvalidInput("a path cannot hold a zero byte", path="$.path")
    inner = path
    if path.startswith("/"):
        if path != workdir and not path.startswith(f"{workdir}/"):
            raise InvalidInput(f"{path} is outside of {workdir}", path="$.path", hint=f"files lie under {workdir}")
        inner = path[len(workdir) :]
    parts = tuple(part for part in inner.split("/") if part not in ("", "."))
    if ".." in parts:
        raise InvalidInput(f"{path} holds `..`", path="$.path", hint="give the path without it")
    return parts


def numbered(text: str, view_range: Sequence[int] | None = None) -> str:
    """Lines with their numbers from 1; `view_range` is first and last, last -1 means to the end."""
    lines = text.split("\n")
    first, last = 1, len(lines)
    if view_range is not None:
        if len(view_range) != 2:
            raise InvalidInput("view_range is two line numbers", path="$.view_range")
        first, last = view_range[0], len(lines) if view_range[1] == -1 else view_range[1]
        if not 1 <= first <= last <= len(lines):
            raise InvalidInput(
                f"view_range [{view_range[0]}, {view_range[1]}] does not fit a file of {len(lines)} lines",
                path="$.view_range",
            )
    return "\n".join(f"{number:6}\t{lines[number - 1]}" for number in range(first, last + 1))


def replace_text(text: str, old: str | None, new: str | None) -> tuple[str, str]:
    """Replace the single occurrence of `old`; also return the lines around it."""
    if not old:
        raise InvalidInput("old_str is the text to replace", path="$.old_str")
    count = text.count(old)
    if count != 1:
        at = lines_at(text, _places(text, old))
        where = f"occurs {count} times (lines {', '.join(map(str, at))})" if count else "does not occur"
        raise InvalidInput(f"old_str {where}; it has to occur exactly once", path="$.old_str")
    place = text.index(old)
    made = text[:place] + (new or "") + text[place + len(old) :]
    return made, _around(made, text.count("\n", 0, place), (new or "").count("\n"))


def _places(text: str, old: str) -> list[int]:
    places: list[int] = []
    place = text.find(old)
    while place >= 0 and len(places) < 10:
        places.append(place)
        place = text.find(old, place + 1)
    return places


def insert_text(text: str, after_line: int | None, new: str | None) -> tuple[str, str]:
    """Insert `new` as separate lines after a line (0: at the start); also return the lines around them."""
    if new is None:
        raise InvalidInput("new_str is the text to insert", path="$.new_str")
    lines = text.split("\n")
    if after_line is None or not 0 <= after_line <= len(lines):
        raise InvalidInput(f"insert_line is a number from 0 to {len(lines)}", path="$.insert_line")
    added = new.removesuffix("\n").split("\n")
    made = "\n".join([*lines[:after_line], *added, *lines[after_line:]])
    return made, _around(made, after_line, len(added) - 1)


def _around(text: str, line: int, further: int) -> str:
    last = text.count("\n") + 1
    return numbered(text, (max(1, line + 1 - SNIPPET_LINES), min(last, line + 1 + further + SNIPPET_LINES)))


def listing(paths: Sequence[str]) -> str:
    """Listing of a folder: its files and folders two levels deep, without hidden ones, from all paths below it."""
    visible = [path.split("/") for path in paths if not any(part.startswith(".") for part in path.split("/"))]
    shown = chain.from_iterable(
        ["/".join(parts[:depth]) + ("/" if len(parts) > depth else "") for depth in range(1, min(2, len(parts)) + 1)]
        for parts in visible
    )
    return "\n".join(sorted(set(shown)))
