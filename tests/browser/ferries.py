"""A small study: a question, what three agents found, the pages they cite, and a draft of the report."""

from __future__ import annotations

from typing import Any

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


def written_output(findings: tuple[str, ...], *, sources: bool = True) -> str:
    parts = ["## Findings", *(f"- {each}" for each in findings)]
    if sources:
        parts += ["## Sources", SOURCES]
    return "\n\n".join([*parts, "## Gaps", "- None"])
