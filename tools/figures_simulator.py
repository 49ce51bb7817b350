"""Figures of the stories that the simulator told."""

from __future__ import annotations

from typing import Any

__all__ = ["simulator"]

CHECKS = {
    "nothing_lost": "nothing acknowledged is lost",
    "facts_on_evidence": "facts rest on evidence that is there",
    "nothing_crosses": "nothing crosses a scope",
    "bytes_gone": "forgotten words are gone from the bytes",
    "words_gone": "and from every answer",
    "words_found": "what was said is found",
    "builds_replay": "packets replay to the byte",
    "chains_hold": "chains hold",
    "same_bytes": "three stores, the same bytes",
}


def simulator(results: dict[str, dict[str, Any]]) -> list[str]:
    stories, faults = results["stories"], results["faults"]
    told = stories["held"] + stories["failed"]
    steps, checks = results["steps"], results["checks"]
    forgets = sum(count for name, count in steps.items() if name.startswith("forget_"))
    damages = sum(count for name, count in steps.items() if name.startswith("damage_"))
    killed = sum(count for name, count in faults.items() if name.startswith("kill"))
    return [
        f"Of {told:,} stories on {stories['stores']} stores {stories['failed']:,} broke a promise:"
        f" {stories['steps']:,} steps, among them {forgets:,} forgets,"
        f" {damages:,} damages of files and rows, {steps['race']:,} races of"
        f" processes and {sum(faults.values()):,} faults, of which {killed:,} were kills"
        f" ({stories['cpu_seconds_per_story']:.2f} s of processor time each).",
        "",
        "| promise | times it was checked |",
        "|---|---|",
        *(f"| {words} | {checks[name]:,} |" for name, words in CHECKS.items()),
    ]
