"""The closed vocabularies that more than one record uses. What only one record uses stands with that record."""

from typing import Literal

__all__ = [
    "TRUST_ORDER",
    "InjectionMode",
    "JudgeKind",
    "Level",
    "MemoryOp",
    "Network",
    "Outcome",
    "RuleType",
    "RunMode",
    "SandboxTool",
    "ScopeLevel",
    "Trust",
    "Verdict",
]

Verdict = Literal["PASS", "FAIL", "PARTIAL"]
Outcome = Literal["OK", "FAIL", "UNKNOWN"]
JudgeKind = Literal["external_process", "in_process", "command"]
"""Who said that a run in a sandbox passed: a process that the code under test never enters; the process that the code
runs in, with its tests; or a command that shares a sandbox with the code. The code can forge the last two."""
RuleType = Literal["StrategyRule", "GuardrailRule"]
InjectionMode = Literal["prepend", "inline", "system_guard"]
Level = Literal["low", "med", "high"]
ScopeLevel = Literal["user", "agent", "tenant"]
MemoryOp = Literal["WRITE", "PIN", "MERGE", "PRUNE", "RETIRE"]
Network = Literal["off", "allowlist", "on"]
SandboxTool = Literal["execute_bash", "str_replace_editor", "submit"]
Trust = Literal["user", "assistant", "tool", "external"]
TRUST_ORDER: tuple[Trust, ...] = ("user", "assistant", "tool", "external")
"""From most to least trusted (LG-08)."""
RunMode = Literal["main", "sot", "matts", "kroll", "synth", "tree"]
