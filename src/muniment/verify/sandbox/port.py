"""A place to run what an agent wrote, walled off from everything else (RC-25).

A sandbox opens a session under a policy; a session offers three tools and answers each call with an `Observation`
that carries its `SandboxActionTrace`. Whoever implements this never runs anything outside the wall: where the wall
cannot be built, `open` raises `SandboxUnavailable` or `SandboxDenied`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, Self

from muniment.contracts.runs import SandboxActionTrace, SandboxPolicy

__all__ = [
    "Cap",
    "EditorCommand",
    "ErrorClass",
    "Observation",
    "Sandbox",
    "SandboxSession",
    "Usage",
]

Cap = Literal["turns", "wall", "cpu", "memory", "processes", "disk", "files", "output"]
"""A limit that was met."""

ErrorClass = Literal[
    "exit_nonzero",  # the command ran and says no
    "invalid_action",  # the arguments do not fit: a path outside, text that does not occur
    "action_refused",  # the policy or the state of the session says no: a tool left out, turns used up, submitted
    "cap_exceeded",  # killed at the memory, file or output cap
    "sandbox_timeout",  # killed at the wall or CPU cap
    "sandbox_denied",  # the system refused to build the wall
    "exec_unavailable",  # the sandbox holds nothing that could run it
]

EditorCommand = Literal["view", "create", "str_replace", "insert", "undo_edit"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What an action took; CPU and memory are those of all its processes together."""

    wall_ms: int = 0
    cpu_ms: int = 0
    mem_mb_peak: int = 0
    processes_peak: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """What an action answered. The text is as it came; the trace holds digests and redacted arguments."""

    ok: bool
    trace: SandboxActionTrace
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    error_class: ErrorClass | None = None
    capped: tuple[Cap, ...] = ()
    usage: Usage = Usage()
    files: Mapping[str, bytes] = field(default_factory=dict)


class SandboxSession(Protocol):
    """One scratch folder and the actions on it, one after the other. What outlives an action is the scratch alone."""

    @property
    def traces(self) -> Sequence[SandboxActionTrace]:
        """One for each action so far."""
        ...

    def execute_bash(self, command: str) -> Observation:
        """Run a command line in the scratch folder; whatever it leaves running is killed."""
        ...

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
        """View or edit a file of the scratch folder."""
        ...

    def submit(self, message: str = "", paths: Sequence[str] = ()) -> Observation:
        """Hand in: the named files come back as `files`, and the session takes no more actions."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


class Sandbox(Protocol):
    """Opens sessions."""

    def open(self, policy: SandboxPolicy, files: Mapping[str, bytes] | None = None, *, trace_id: str) -> SandboxSession:
        """A session with these files in its scratch folder; raises `SandboxUnavailable` or `SandboxDenied`."""
        ...
