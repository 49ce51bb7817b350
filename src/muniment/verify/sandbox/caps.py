"""The limits of a session, counted: what a policy asks for, what is left of it, which resource limits say it.

Pure. A cap the policy leaves out has a default: nothing in a sandbox is without limit. `SandboxCaps` is open, and
three caps the contract does not name are read from its further keys: `processes`, `files`, `output_bytes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from muniment.contracts.runs import SandboxCaps, SandboxPolicy
from muniment.errors import InvalidInput

__all__ = ["DEFAULTS", "MB", "Limits", "limit_script", "limits_of", "resource_limits"]

MB = 1 << 20
MAPPED_MB_MORE = 2048


@dataclass(frozen=True, slots=True)
class Limits:
    """Whole session: turns, wall and CPU time of its actions. At any moment: the rest."""

    max_turns: int = 100
    wall_ms: int = 60_000
    cpu_ms: int = 60_000
    mem_mb: int = 512
    disk_mb: int = 256
    processes: int = 64
    files: int = 20_000
    output_bytes: int = MB

    def after(self, *, wall_ms: int, cpu_ms: int) -> Limits:
        """What is left when an action has taken so much; the times never go below zero."""
        return replace(
            self,
            max_turns=self.max_turns - 1,
            wall_ms=max(0, self.wall_ms - wall_ms),
            cpu_ms=max(0, self.cpu_ms - cpu_ms),
        )


DEFAULTS = Limits()


def limits_of(policy: SandboxPolicy) -> Limits:
    """The policy's caps over the defaults; raises `InvalidInput` for a cap that is no positive integer."""
    caps = policy.caps or SandboxCaps()
    asked = {**{name: getattr(caps, name) for name in SandboxCaps.model_fields}, **(caps.model_extra or {})}
    unknown = sorted(asked.keys() - {field.name for field in fields(Limits)})
    if unknown:
        raise InvalidInput(f"there is no cap {unknown[0]!r}", path=f"$.caps.{unknown[0]}")
    given = {name: value for name, value in asked.items() if value is not None}
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidInput(f"the cap {name!r} is an integer of at least 1", path=f"$.caps.{name}")
    return replace(DEFAULTS, **given)


_FLAGS = {  # of bash's ulimit, and its unit
    "RLIMIT_CORE": ("-c", 1024),
    "RLIMIT_CPU": ("-t", 1),
    "RLIMIT_DATA": ("-d", 1024),
    "RLIMIT_FSIZE": ("-f", 1024),
    "RLIMIT_MEMLOCK": ("-l", 1024),
    "RLIMIT_MSGQUEUE": ("-q", 1),
    "RLIMIT_NOFILE": ("-n", 1),
    "RLIMIT_NPROC": ("-u", 1),
}


def resource_limits(limits: Limits, *, counted: bool) -> dict[str, int]:
    """Limits of each process by their RLIMIT names, as a stop that needs nobody to watch.

    `counted` says that a control group counts memory. Else the watcher, which sums over processes, kills at the cap,
    and what one process may map is bounded well above it: a refusal would look like a fault of the program.
    """
    made = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": -(-limits.cpu_ms // 1000) + 1,
        "RLIMIT_FSIZE": limits.disk_mb * MB,
        "RLIMIT_MEMLOCK": 64 << 10,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_NOFILE": 256,
        "RLIMIT_NPROC": limits.processes + 1,  # and the init of the namespace
    }
    if counted:
        made["RLIMIT_NPROC"] += 8  # so that the group refuses first: it tells
    else:
        made["RLIMIT_DATA"] = (limits.mem_mb + MAPPED_MB_MORE) * MB
    return made


def limit_script(wanted: Mapping[str, int], hard: Mapping[str, int]) -> str:
    """A line of bash that lowers its own limits for good and becomes its arguments.

    `hard` are the limits it starts with, below zero where there is none. They are set inside because the count of
    processes is then that of the sandbox's own user namespace.
    """
    parts = []
    for name, value in wanted.items():
        flag, unit = _FLAGS[name]
        ceiling = hard.get(name, -1)
        parts.append(f"{flag} {(value if ceiling < 0 else min(value, ceiling)) // unit}")
    return f'ulimit {" ".join(parts)} && exec "$@"'
