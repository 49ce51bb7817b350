"""What a sandbox costs to start, against bubblewrap alone in the same run.

    python -m benchmarks.verify_sandbox

Ours is a whole session: the stage with its sized scratch, one action under every cap with its trace, and the end of
it. The reference is `bwrap --unshare-all … true` with nothing around it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

from benchmarks.harness import report, timed, versus
from muniment.contracts.runs import SandboxPolicy
from muniment.verify.sandbox._mounts import find_tools, system_tree
from muniment.verify.sandbox.bubblewrap import BubblewrapSandbox

__all__ = ["sandbox_start"]

POLICY = SandboxPolicy.from_wire({"schema_version": "0.5.15", "caps": {"max_turns": 10_000, "wall_ms": 3_600_000}})


def bare_arguments() -> list[str]:
    made = [find_tools().bwrap, "--unshare-all", "--proc", "/proc", "--dev", "/dev"]
    system = system_tree()
    for host, path in system.binds:
        made += ["--ro-bind", host, path]
    for target, path in system.links:
        made += ["--symlink", target, path]
    return [*made, "true"]


def sandbox_start(rounds: int) -> dict[str, dict[str, Any]]:
    """Times and their ratio (ours ÷ bare); the bar for a session is 5."""
    sandbox, bare = BubblewrapSandbox(), bare_arguments()

    def reference() -> None:
        subprocess.run(bare, check=True)

    def session() -> None:
        with sandbox.open(POLICY, trace_id="bench") as opened:
            assert opened.execute_bash("true").ok

    rows = {"sandbox: a session with one action": _compared(session, reference, rounds)}
    with sandbox.open(POLICY, trace_id="bench") as opened:
        rows["sandbox: one more action"] = _compared(lambda: opened.execute_bash("true"), reference, rounds)
    return rows


def _compared(ours: Callable[[], object], bare: Callable[[], object], rounds: int) -> dict[str, Any]:
    ours()
    bare()
    mine, theirs, faster = versus(lambda _: timed(ours), lambda _: timed(bare), rounds)
    return {"ours_ms": mine * 1e3, "bare_bwrap_ms": theirs * 1e3, "times_bare": 1 / faster}


def main() -> None:
    report("verify_sandbox", sandbox_start(100), {"rounds": 100})


if __name__ == "__main__":
    main()
