"""Every page of the inspector over `browser_story`: its address, and a text that stands there once it is whole."""

from __future__ import annotations

from pathlib import Path

import muniment

__all__ = ["ANA", "PAGES", "ROSA", "address_of", "build_of"]

ANA, ROSA = "default/ana", "default/rosa"


def build_of(story: Path, purpose: str, run_id: str = "run_friday") -> str:
    """The first build for a purpose in a run."""
    from muniment.surfaces.operations.parts import builds

    with muniment.open(story) as mem:
        found = [each for each in builds(mem, user_id="ana") if (each.purpose, each.run_id) == (purpose, run_id)]
    return found[-1].build_id


def _rule(story: Path) -> str:
    with muniment.open(story) as mem:
        return mem.rulebook(user_id="rosa").rules(stage="active")[0].id


def _event(story: Path, words: str) -> str:
    with muniment.open(story) as mem:
        return next(each.id for each in mem.ledger.entries(user_id="ana") if words in (each.content or ""))


PAGES = {
    "start": ("default", "Newest packets"),
    "answer": (f"{ANA}/answer/run_friday?at={{responder}}", "Why it was chosen"),
    "talk": (f"{ANA}/answer?at={{responder}}", "session by session"),
    "runs": (f"{ANA}/runs", "Find a table for six in Berlin"),
    "ledger": (f"{ANA}/run/run_dinner", "A table for six at seven, please. No meat."),
    "event": (f"{ANA}/event/{{event}}", "Builds that told a model this"),
    "run_packets": (f"{ANA}/run/run_friday/packets", "Who found Canal Kitchen"),
    "claims": (f"{ANA}/run/run_dinner/claims", "Lokal Nord serves no meat."),
    "snapshots": (f"{ANA}/run/run_dinner/snapshots", "Run narrative"),
    "packets": (f"{ANA}/packets", "Which places are free at seven?"),
    "packet": (f"{ANA}/packet/{{responder}}", "insight wall"),
    "packet_text": (f"{ANA}/packet/{{responder}}/prompt_text", "Jiwoo and I ate at Canal Kitchen."),
    "packet_json": (f"{ANA}/packet/{{responder}}/raw", "schema_version"),
    "purposes": (f"{ANA}/purposes/{{responder}}", "planner"),
    "diff": (f"{ANA}/diff/{{responder}}", "This purpose does not get it."),
    "whatif": (f"{ANA}/whatif/{{responder}}?max_tokens=256&episodes=0", "It did not fit into the budget."),
    "search": (f"{ANA}/search/hits?q=where%20does%20she%20live", "Big news! I live in Berlin now."),
    "why": (f"{ANA}/search/why?q=mushroom%20dumplings", "the best thing there"),
    "facts": (f"{ANA}/facts", "in the quiet corner"),
    "episodes": (f"{ANA}/episodes", "It gets loud after nine."),
    "lessons": (f"{ROSA}/lessons", "apples tasks in count"),
    "lesson": (f"{ROSA}/lesson/{{rule}}", "Runs that it fitted"),
    "rules": (f"{ROSA}/rules", "on trial with a share of 0.5"),
    "rule": (f"{ROSA}/rule/{{rule}}", "micro-regressions"),
    "flow": (f"{ROSA}/flow", "main→verify"),
    "research": (f"{ANA}/research", "Should the town of Alder"),
    "study": (f"{ANA}/study/ferries", "The trial cut emissions by 84 percent."),
}


def address_of(name: str, story: Path) -> tuple[str, str]:
    address, awaited = PAGES[name]
    if "{responder}" in address:
        address = address.format(responder=build_of(story, "responder"))
    elif "{rule}" in address:
        address = address.format(rule=_rule(story))
    elif "{event}" in address:
        address = address.format(event=_event(story, "mushroom dumplings"))
    return address, awaited
