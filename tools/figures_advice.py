"""Figures of packets for questions that ask for advice."""

from __future__ import annotations

from typing import Any

__all__ = ["advice_packets"]

TOKENS = 512


def advice_packets(results: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| chats | needed turns in the packet | questions with all of them | tokens |", "|---|---|---|---|"]
    for half, told in (("choosing", "in sight while it was written"), ("judging", "run when it was done")):
        before, after = (results[f"{half}, {name}, {TOKENS} tokens"] for name in ("without", "with"))
        lines.append(
            f"| {told} | {before['needed']:.2f} → {after['needed']:.2f} | {before['complete']:.2f} →"
            f" {after['complete']:.2f} | {before['tokens']} → {after['tokens']} |"
        )
    judged = results[f"judging, with, {TOKENS} tokens"]
    return [
        *lines,
        "",
        f"In the second row {judged['outdated']:.2f} of what was replaced still stands there as if it held, and"
        f" {judged['others']:.2f} of what others said that looks alike (`python -m benchmarks.advice_packets`).",
    ]
