"""Interface of sandboxes, in which an agent's code runs isolated from everything else.

A sandbox opens a session under a policy; a session offers three tools and answers each call with an `Observation` that
carries its `SandboxActionTrace`. An implementation never runs anything outside: if isolation cannot be set up, `open`
raises `SandboxUnavailable` or `SandboxDenied`.

Sandboxes are found by the entry points of the group `muniment.sandboxes`: a callable that takes `packages`, import
names of this environment to show inside, and its own further options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Literal, Protocol, Self

from muniment.contracts.runs import SandboxActionTrace, SandboxPolicy
from muniment.errors import SandboxUnavailable

SANDBOXES_GROUP = "muniment.sandboxes"
WORKDIR = "/scratch"
"""Default path of the scratch inside."""

Cap = Literal["turns", "wall", "cpu", "memory", "processes", "disk", "files", "output"]
"""A limit that was reached."""

ErrorClass = Literal[
    "exit_nonzero",  # the command ran and failed
    "invalid_action",  # invalid arguments: a path outside, text that does not occur
    "action_refused",  # refused by the policy or the session's state: a disabled tool, turns used up, already submitted
    "cap_exceeded",  # killed at the memory, file or output cap
    "sandbox_timeout",  # killed at the wall or CPU cap
    "sandbox_denied",  # the system refused to set up isolation
    "exec_unavailable",  # nothing in the sandbox could run it
]

EditorCommand = Literal["view", "create", "str_replace", "insert"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources used by an action; CPU and memory cover all its processes."""

    wall_ms: int = 0
    cpu_ms: int = 0
    mem_mb_peak: int = 0
    processes_peak: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """Result of an action. The text is verbatim; the trace holds digests and redacted arguments."""

    ok: bool
    trace: SandboxActionTrace
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    error_class: ErrorClass | None = None
    capped: tuple[Cap, ...] = ()
    usage: Usage = Usage()
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wires:
    """Extra descriptors for an action, under their numbers here.

    The action is ended as soon as there is something to read at `until`, or its other end is closed.
    """

    passed: tuple[int, ...] = ()
    until: int | None = None


class SandboxSession(Protocol):
    """One scratch folder and the actions on it, one at a time. Only the scratch outlives an action."""

    @property
    def traces(self) -> Sequence[SandboxActionTrace]:
        """One trace per action so far."""
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
        """Submit: return the named files as `files`; the session takes no more actions."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


class Sandbox(Protocol):
    """Opens sessions."""

    def open(self, policy: SandboxPolicy, files: Mapping[str, bytes] | None = None, *, trace_id: str) -> SandboxSession:
        """A session with these files in its scratch folder; raises `SandboxUnavailable` or `SandboxDenied`."""
        ...


class WiredSession(SandboxSession, Protocol):
    """A session whose actions accept extra descriptors, as needed to judge a suite from outside."""

    def execute_wired(self, command: str, wires: Wires) -> Observation: ...


def load_sandbox(**options: Any) -> Sandbox:
    """Load the installed sandbox, the first by name if there are several; raise `SandboxUnavailable` if
    there is none.
    """
    found = min(entry_points(group=SANDBOXES_GROUP), key=lambda each: each.name, default=None)
    if found is None:
        raise SandboxUnavailable("no sandbox is installed", hint=f"a package with an entry point {SANDBOXES_GROUP}")
    made: Sandbox = found.load()(**options)
    return made
