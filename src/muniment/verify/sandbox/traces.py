"""Records of an action: its `SandboxActionTrace`, and a session's counts for the event log. Pure.

A trace holds digests and paths instead of output and files. All text in it, and all text that is digested, has its
secrets replaced first, so that a digest cannot confirm a guess at one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from muniment.contracts.runs import SandboxActionTrace, SandboxBlock, SandboxPolicy
from muniment.core.record import RULECRAFT_VERSION
from muniment.core.scope import SandboxTool
from muniment.store.secrets import may_hold_secret, redact_text, redact_value
from muniment.verify.sandbox.port import Cap, ErrorClass

__all__ = ["Change", "Entry", "Fetches", "Outcome", "changes", "make_trace", "redacted", "sandbox_block"]

PATHS_MAX = 500
"""Maximum paths in one trace; `files_written_n` always counts all."""
ARGUMENT_CHARS_MAX = 4_000
"""Maximum length of one text argument; written files are identified by digest anyway."""
DIGEST_REDACTED_CHARS_MAX = 65_536
_SECRET_CHARS_MAX = 4_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the scratch; `stamp` changes on every modification, `digest` is None if it cannot be read."""

    size: int
    digest: str | None
    stamp: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Changes an action made to the scratch."""

    written: Mapping[str, Entry]
    deleted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fetches:
    """Connections of one action: allowed and refused, as `host:port`; None if they were not recorded."""

    allowed: tuple[str, ...] | None = ()
    denied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an action ended, before it becomes an observation."""

    ok: bool
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    error_class: ErrorClass | None = None
    capped: tuple[Cap, ...] = ()


def changes(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> Change:
    """Files whose bytes differ, by path; a file that was only touched does not count."""
    written = {
        path: entry
        for path, entry in sorted(after.items())
        if path not in before or (before[path].size, before[path].digest) != (entry.size, entry.digest)
    }
    return Change(written, tuple(sorted(before.keys() - after.keys())))


def redacted(text: str) -> str:
    return redact_text(text, Counter()) if may_hold_secret(text) else text


def make_trace(
    *,
    trace_id: str,
    action_id: str,
    turn: int,
    tool: SandboxTool,
    args: Mapping[str, Any],
    outcome: Outcome,
    change: Change,
    read: tuple[str, int] | None = None,
    fetches: Fetches,
) -> SandboxActionTrace:
    """Make the trace; `read` is the path and size of the file the editor read."""
    return SandboxActionTrace.from_wire(
        {
            "schema_version": RULECRAFT_VERSION,
            "trace_id": trace_id,
            "action_id": action_id,
            "turn": turn,
            "tool": tool,
            "args": redact_value(_present(args), Counter()),
            "obs": _observation(outcome),
            "io": _io(change, read),
            "net": _net(fetches),
        }
    )


def _present(args: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _storable(value) for name, value in args.items() if value is not None}


def _storable(value: Any) -> Any:
    """Make text storable as JSON: lone surrogates are escaped, and the length is limited."""
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value[:PATHS_MAX]]
    if not isinstance(value, str):
        return value
    kept = value[: ARGUMENT_CHARS_MAX + _SECRET_CHARS_MAX].encode("utf-8", "backslashreplace").decode()
    if len(value) <= ARGUMENT_CHARS_MAX:
        return kept
    # Redact before cutting, so that no half of a secret remains at the end.
    return f"{redacted(kept)[:ARGUMENT_CHARS_MAX]}… [{len(value):,} characters]"


def _observation(outcome: Outcome) -> dict[str, Any]:
    return {
        "ok": outcome.ok,
        "exit_code": outcome.exit_code,
        "stdout_digest": _digest(outcome.stdout),
        "stderr_digest": _digest(outcome.stderr),
        "error_class": outcome.error_class,
        "capped": list(outcome.capped),
    }


def _digest(text: str) -> str:
    """Digest of a text without its secrets; a long text is digested unredacted, as nobody can guess all of it."""
    safe = redacted(text) if len(text) <= DIGEST_REDACTED_CHARS_MAX else text
    return f"sha256:{sha256(safe.encode('utf-8', 'backslashreplace')).hexdigest()}"


def _io(change: Change, read: tuple[str, int] | None) -> dict[str, Any]:
    listed = list(change.written.items())[:PATHS_MAX]
    return {
        "files_read": None if read is None else [redacted(read[0])],
        "bytes_read": None if read is None else read[1],
        "files_written": [redacted(path) for path, _ in listed],
        "files_written_n": len(change.written),
        "bytes_written": sum(entry.size for entry in change.written.values()),
        "digests": {redacted(path): entry.digest for path, entry in listed},
        "files_deleted": [redacted(path) for path in change.deleted[:PATHS_MAX]],
    }


def _net(fetches: Fetches) -> dict[str, Any]:
    if fetches.allowed is None:
        return {"used": None, "fetch_n": None, "domains": None}
    domains = sorted({target.rpartition(":")[0] for target in fetches.allowed})
    return {
        "used": bool(fetches.allowed),
        "fetch_n": len(fetches.allowed),
        "domains": domains,
        "denied": sorted(set(fetches.denied)),
    }


def sandbox_block(policy: SandboxPolicy, traces: Sequence[SandboxActionTrace]) -> SandboxBlock:
    """Counts of the session. Turns are attempted actions; a file counts once per action."""
    io = [trace.io for trace in traces if trace.io is not None]
    fetches = [trace.net.fetch_n for trace in traces if trace.net is not None]
    return SandboxBlock.from_wire(
        {
            "enabled": policy.enabled is not False,
            "image_id": policy.image_id,
            "network": policy.network or "off",
            "allowlist": None if policy.allowlist is None else list(policy.allowlist),
            "turns": max((trace.turn for trace in traces), default=0),
            "actions_n": len(traces),
            "files_read_n": sum(len(part.files_read or ()) for part in io),
            "files_written_n": sum(_written_n(part.model_extra, part.files_written) for part in io),
            "external_fetch_n": None if None in fetches else sum(count or 0 for count in fetches),
            "exec_fail_n": sum(
                trace.tool == "execute_bash" and trace.obs is not None and not trace.obs.ok for trace in traces
            ),
            "traces_ref": [trace.action_id for trace in traces],
        }
    )


def _written_n(extra: Mapping[str, Any] | None, listed: Sequence[str] | None) -> int:
    counted = (extra or {}).get("files_written_n")
    return counted if isinstance(counted, int) else len(listed or ())
