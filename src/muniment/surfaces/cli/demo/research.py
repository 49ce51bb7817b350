"""The part of the demo that researches: a question taken to a checked report, with outputs as agents write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muniment.surfaces.cli.terminal import echo, one_line, style

if TYPE_CHECKING:
    from muniment.handles.study import Study
    from muniment.research.records import WaveResult

__all__ = ["show_research"]

QUESTION = "Should the town of Alder replace its diesel ferries with electric ones, and what would it cost?"
AGENTS = ("Reader", "Archivist", "Sceptic")
LIMITS = {"max_wave1_agents": 3, "max_summary_kb": 1, "max_total_summary_kb": 2}
PAGES: list[dict[str, Any]] = [
    {
        "url": "https://harbour.example.org/trial",
        "title": "The electric ferry on trial",
        "text": "The trial ran from March to October 2025 with one electric ferry on the line from Alder to Holm. "
        "It made 2,140 crossings and missed 31, most of them because of the charging crane. "
        "Energy cost 38 euros a crossing, against 96 euros on the diesel ferry.",
    },
    {
        "url": "https://accounts.example.org/ferries",
        "title": "Ferry accounts",
        "text": "A new electric ferry costs 11.2 million euros, a new diesel ferry 6.8 million euros. "
        "The town keeps a ferry for 25 years.",
    },
    {
        "url": "https://grid.example.org/harbour",
        "title": "The harbour's connection",
        "text": "The harbour's connection carries 3 megawatts. "
        "Two ferries that charge at once need 4.6 megawatts, so a second cable would have to be laid.",
    },
]
FINDINGS = (
    (
        "Energy cost 38 euros a crossing, against 96 euros on the diesel ferry. [1]",
        "A new electric ferry costs 11.2 million euros, a new diesel ferry 6.8 million euros. [2]",
    ),
    (
        "The town keeps a ferry for 25 years. [2]",
        "The harbour's connection carries 3 megawatts. [3]",
        "The trial cut emissions by 84 percent. [1]",
    ),
    (
        "The ferry made 2,140 crossings and missed 31, most of them because of the charging crane. [1]",
        "Two ferries that charge at once need 4.6 megawatts, so a second cable would have to be laid. [3]",
    ),
)
"""The claims of each perspective. What the second says of emissions, its source does not."""
UNCITED = "Over 25 years that saves 40 million euros."
DRAFT = f"""# Electric ferries for Alder

## Summary

Energy cost 38 euros a crossing, against 96 euros on the diesel ferry [1]. {UNCITED}

## Findings

A new electric ferry costs 11.2 million euros, a new diesel ferry 6.8 million euros [2].
Two ferries that charge at once need 4.6 megawatts, so a second cable would have to be laid [3].

## Limitations

One ferry was tried, on one line.

## Sources

"""
SOURCES = "\n".join(f"[{number}] {page['url']} - {page['title']}" for number, page in enumerate(PAGES, 1))


def show_research(folder: Path, clock: Callable[[], datetime]) -> None:
    """Show a research run from the question to the report, with all that goes wrong on the way."""
    from muniment.handles.memory import open as open_memory

    echo()
    echo(style("8 · Research: your agents read; what they hand in is checked, bounded and passed on", bold=True))
    with open_memory(":memory:", clock=clock) as mem:
        study = mem.research(
            QUESTION, user_id="ana", agent_types=AGENTS, limits=LIMITS, run_id="ferries", directory=folder / "ferries"
        )
        _waves(study)
        _citations(study)
        _pack(study)
        _report(study)


def _say(label: str, text: str) -> None:
    echo(f"  {label:<10} {text}")


def _waves(study: Study) -> None:
    _say("asked", QUESTION)
    perspectives = study.route()
    _say("routed", ", ".join(f"{each.id} {each.track} by {each.agent_type}" for each in perspectives))
    for each, findings in zip(perspectives, FINDINGS, strict=True):
        if each.track == "contrarian":
            _retry(study.ingest(each.id, _output(findings, sources=False), tool_use={"search_calls": 2}))
        study.ingest(each.id, _output(findings), tool_use={"search_calls": 2}, change_note="listed the sources")
    _say("", f"the next attempt is accepted; {one_line(study.pivot().reason.partition(':')[0].lower())}")


def _output(findings: tuple[str, ...], *, sources: bool = True) -> str:
    parts = ["## Findings", *(f"- {each}" for each in findings)]
    if sources:
        parts += ["## Sources", SOURCES]
    return "\n\n".join([*parts, "## Gaps", "- None"])


def _retry(result: WaveResult) -> None:
    kinds = ", ".join(breach.kind for breach in result.breaches)
    _say("rejected", f"{result.perspective_id}, for {kinds}: {one_line(result.breaches[0].message, 80)}")


def _citations(study: Study) -> None:
    def validated() -> str:
        settled = study.citations()
        gate = next(gate for gate in study.gates().gates if gate.gate == "C")
        return f"{sum(each.status == 'valid' for each in settled)} of {len(settled)} valid, gate C: {gate.status}"

    _say("citations", f"nobody has shown a page: {validated()}")
    study.supply(PAGES)
    _say("", f"the pages that were read are handed in: {validated()}")


def _pack(study: Study) -> None:
    study.pack()
    for claim in study.claims():
        if not claim.citation_cids:
            _say("flagged", f"{claim.perspective_id} says {claim.claim!r} of a page that does not:")
            _say("", one_line(claim.reason, 100))
    given, metrics = study.synthesis_input(), study.gates().gates[3].metrics
    size_text = (
        f"{len(given.pack.summaries)} summaries in {metrics['bytes_total']} bytes of {metrics['bytes_total_max']}"
    )
    _say(
        "pack", f"{size_text}, {metrics['key_claims']} claims, each with its source: all that a report is written from"
    )
    pack = study.directory / "summaries" / "summary-pack.json"
    pack.write_text(pack.read_text("utf-8").replace("11.2", "9.2"), "utf-8")
    _say("", f"somebody edits it → {_refusal(study)}; written anew: {', '.join(study.resume())}")


def _refusal(study: Study) -> str:
    from muniment.errors import ArtifactEdited

    try:
        study.synthesis_input()
    except ArtifactEdited as error:
        return f"error[{error.code}]"
    return "nobody noticed"


def _report(study: Study) -> None:
    for finding in study.check(DRAFT + SOURCES).findings:
        _say("draft", f"{finding.problem}: {one_line(finding.text or finding.message, 80)!r}")
    check = study.check(DRAFT.replace(f" {UNCITED}", "") + SOURCES)
    gates = " ".join(f"{gate.gate} {gate.status}" for gate in study.gates().gates)
    _say("mended", f"the report holds: {check.passed}; gates: {gates}; {study.manifest().revision} revisions kept")
