"""A session on bubblewrap: three tools over one scratch, within one budget of turns and time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self

from muniment.contracts.runs import SandboxActionTrace, SandboxPolicy
from muniment.core.ports.models import Ids
from muniment.core.scope import SandboxTool
from muniment.errors import Closed, InvalidInput, NotFound, TooLarge
from muniment.verify.sandbox import editing
from muniment.verify.sandbox.arguments import Descriptors, Tools, action_arguments, environment
from muniment.verify.sandbox.caps import MB, Limits
from muniment.verify.sandbox.port import Cap, EditorCommand, Observation, Usage
from muniment.verify.sandbox.proxy import FilteringProxy
from muniment.verify.sandbox.running import NO_WIRES, Finished, Wires, run_action
from muniment.verify.sandbox.stage import Stage
from muniment.verify.sandbox.traces import Change, Fetches, Outcome, changes, make_trace
from muniment.verify.sandbox.trees import library_path

__all__ = ["BubblewrapSession", "Walls"]

COMMAND_BYTES_MAX = 100_000
"""The kernel takes an argument of at most 128 KiB; longer scripts come as a file."""
VIEW_BYTES_MAX = 4 * MB
UNDO_MAX = 20
PROXY_PORT = 3128


@dataclass(frozen=True, slots=True)
class Walls:
    """What a session stands on."""

    tools: Tools
    stage: Stage
    proxy: FilteringProxy | None
    seccomp: bytes
    workdir: str
    has_packages: bool
    is_root: bool


class BubblewrapSession:
    """One after the other, from one thread at a time. Close it, or use it as a context manager."""

    def __init__(
        self, policy: SandboxPolicy, limits: Limits, walls: Walls, ids: Ids, *, trace_id: str, closing: ExitStack
    ) -> None:
        self._policy = policy
        self._left = limits
        self._scan_max = (limits.files, 2 * limits.disk_mb * MB)
        self._walls = walls
        self._ids = ids
        self._trace_id = trace_id
        self._closing = closing
        self._traces: list[SandboxActionTrace] = []
        self._undo: deque[tuple[tuple[str, ...], bytes | None]] = deque(maxlen=UNDO_MAX)
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
        """The same, with descriptors handed to it, and ended by whoever holds the other end of one."""
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
            "str_replace": lambda parts: self._edit(parts, lambda text: editing.replace_text(text, old_str, new_str)),
            "insert": lambda parts: self._edit(parts, lambda text: editing.insert_text(text, insert_line, new_str)),
            "undo_edit": self._undo_edit,
        }
        read: tuple[str, int] | None = None
        try:
            if command not in commands:
                raise InvalidInput(f"there is no command {command!r}", path="$.command", hint=", ".join(commands))
            parts = editing.parts_of(path, self._walls.workdir)
            said, size = commands[command](parts)
            if size is not None:
                read = ("/".join((self._walls.workdir, *parts)), size)
            outcome = Outcome(True, stdout=said)
        except (InvalidInput, NotFound, TooLarge) as error:
            hint = "" if error.hint == error.usual_hint else f" ({error.hint})"
            outcome = Outcome(False, stderr=f"{error.message}{hint}", error_class="invalid_action")
        return self._tell("str_replace_editor", args, outcome, read=read)

    def submit(self, message: str = "", paths: Sequence[str] = ()) -> Observation:
        """Hand in: the named files come back as `files`, and the session takes no more actions."""
        args = {"message": message, "paths": list(paths)}
        refused = self._refused("submit")
        if refused is not None:
            return self._tell("submit", args, refused)
        files: dict[str, bytes] = {}
        room = self._left.disk_mb * MB
        try:
            for parts in dict.fromkeys(editing.parts_of(path, self._walls.workdir) for path in paths):
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
            return editing.numbered(_text(data, parts), view_range), len(data)
        prefix = "".join(f"{part}/" for part in parts)
        inside = [path.removeprefix(prefix) for path in self._seen if path.startswith(prefix)]
        return editing.listing(inside), None

    def _create(self, parts: tuple[str, ...], file_text: str | None) -> tuple[str, int | None]:
        if file_text is None:
            raise InvalidInput("file_text is what the file is to hold", path="$.file_text")
        self._walls.stage.scratch.write(parts, _bytes(file_text), new=True)
        self._undo.append((parts, None))
        return f"created {'/'.join(parts)}", None

    def _edit(self, parts: tuple[str, ...], edit: Callable[[str], tuple[str, str]]) -> tuple[str, int | None]:
        before = self._walls.stage.scratch.read(parts, VIEW_BYTES_MAX)
        made, around = edit(_text(before, parts))
        self._walls.stage.scratch.write(parts, _bytes(made))
        self._undo.append((parts, before))
        return around, len(before)

    def _undo_edit(self, parts: tuple[str, ...]) -> tuple[str, int | None]:
        kept = next((edit for edit in reversed(self._undo) if edit[0] == parts), None)
        if kept is None:
            raise InvalidInput(f"there is no edit of {'/'.join(parts)} to undo", path="$.path")
        self._undo.remove(kept)
        before = kept[1]
        if before is None:
            self._walls.stage.scratch.remove(parts)
        else:
            self._walls.stage.scratch.write(parts, before)
        return f"undid the last edit of {'/'.join(parts)}", None

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
        """Every action, refused ones too, ends here: one turn, one trace."""
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
