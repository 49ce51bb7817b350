"""The sandbox (001): what it may do, and what each action in it did (RC-25)."""

from muniment.core.record import Absent, Integer, Items, JsonObject, OpenRecord, RulecraftRecord
from muniment.core.vocabulary import Network, SandboxTool

__all__ = [
    "ActionIo",
    "ActionNet",
    "ActionObservation",
    "SandboxActionTrace",
    "SandboxCaps",
    "SandboxPolicy",
]


class SandboxCaps(OpenRecord):
    """Limits of a sandboxed run."""

    max_turns: Integer | None = None
    wall_ms: Integer | None = None
    cpu_ms: Integer | None = None
    mem_mb: Integer | None = None
    disk_mb: Integer | None = None


class SandboxPolicy(RulecraftRecord):
    """What a sandbox is and may do."""

    enabled: Absent[bool] = None
    image_id: str | None = None
    network: Absent[Network] = None
    allowlist: Items[str] | None = None
    caps: Absent[SandboxCaps] = None
    toolset: Absent[Items[SandboxTool]] = None
    workdir: str | None = None


class ActionObservation(OpenRecord):
    """What an action gave back; digests, not text."""

    ok: bool
    exit_code: Integer | None = None
    stdout_digest: str | None = None
    stderr_digest: str | None = None
    error_class: str | None = None


class ActionIo(OpenRecord):
    """Files an action read and wrote."""

    files_read: Items[str] | None = None
    files_written: Items[str] | None = None
    bytes_read: Integer | None = None
    bytes_written: Integer | None = None


class ActionNet(OpenRecord):
    """What an action fetched."""

    used: bool | None = None
    fetch_n: Integer | None = None
    domains: Items[str] | None = None


class SandboxActionTrace(RulecraftRecord):
    """One action in the sandbox; `args` are redacted before they stand here."""

    trace_id: str
    action_id: str
    turn: Integer
    tool: SandboxTool
    args: Absent[JsonObject] = None
    obs: Absent[ActionObservation] = None
    io: Absent[ActionIo] = None
    net: Absent[ActionNet] = None
