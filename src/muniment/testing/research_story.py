"""A small research run that can be walked to any stage: a question, pages, outputs that cite them, a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muniment.handles.study import Study
    from muniment.research.run_records import SynthesisInput

__all__ = ["LAUNDERED", "PAGES", "QUESTION", "TOOL_USE", "draft_for", "output_for", "walk_to"]

QUESTION = "How do heat pumps compare with gas boilers for heating homes in cold climates?"
TOOL_USE = {"search_calls": 2, "fetch_calls": 2}
PAGES: list[dict[str, Any]] = [
    {
        "url": "https://energy.example.org/field-study",
        "title": "Field study of heat pumps",
        "text": "The field study followed 550 homes in Norway for three winters. "
        "At minus 10 degrees the heat pumps delivered a coefficient of performance of 2.4. "
        "Owners reported fewer breakdowns than owners of gas boilers.",
    },
    {
        "url": "https://prices.example.org/2024/heating",
        "title": "Heating prices",
        "text": "A heat pump costs 11,500 euros to install, a gas boiler 4,200 euros. "
        "Running costs of a heat pump are 38 percent lower than those of a gas boiler in a well insulated house.",
    },
    {
        "url": "https://grid.example.org/report",
        "title": "Grid report",
        "text": "Replacing every gas boiler would raise the winter peak of the grid by 9 gigawatts. "
        "Operators expect that half of it can be shifted to other hours.",
    },
]
LAUNDERED = "A laundered figure says that 99 percent of boilers were banned in Finland in 1987."
_FINDINGS = (
    ("At minus 10 degrees the heat pumps delivered a coefficient of performance of 2.4.", 1),
    ("The field study followed 550 homes in Norway for three winters.", 1),
    ("A heat pump costs 11,500 euros to install, a gas boiler 4,200 euros.", 2),
    ("Running costs of a heat pump are 38 percent lower than those of a gas boiler in a well insulated house.", 2),
    ("Replacing every gas boiler would raise the winter peak of the grid by 9 gigawatts.", 3),
)


def output_for(perspective_id: str) -> str:
    """What an agent hands back for a perspective: findings in another order for each, and one laundered citation."""
    number = int(perspective_id[1:])
    turned = [_FINDINGS[(at + number) % len(_FINDINGS)] for at in range(len(_FINDINGS))]
    lines = [f"- {sentence} [{source}]" for sentence, source in turned]
    lines.append(f"- {LAUNDERED} [2]")
    sources = [f"[{at}] {page['url']} - {page['title']}" for at, page in enumerate(PAGES, 1)]
    return "\n".join(["## Findings", "", *lines, "", "## Sources", "", *sources, "", "## Gaps", "", "None", ""])


def walk_to(study: Study, stage: str, *, pages: Sequence[dict[str, Any]] = tuple(PAGES)) -> None:
    """Take a new run to a stage, as a careful caller would."""
    study.route()
    if stage == "wave1":
        return
    for perspective in study.perspectives():
        study.ingest(perspective.id, output_for(perspective.id), tool_use=TOOL_USE)
    study.pivot()
    if stage == "wave2":
        return
    study.supply(pages)
    study.citations()
    if stage != "citations":
        study.pack()


def draft_for(given: SynthesisInput) -> str:
    """A report from the pack alone: its best claims, cited."""
    claims = {claim.claim: claim for entry in given.pack.summaries for claim in entry.key_claims}
    lines = [f"{claim.claim} [{claim.citation_cids[0]}]" for claim in claims.values() if claim.citation_cids]
    sources = [f"- {source['url']}" for source in (given.pack.model_extra or {}).get("sources", ())]
    parts = [
        "# Report",
        "## Summary",
        lines[0],
        "## Findings",
        *lines,
        "## Limitations",
        "Little is known of old houses.",
    ]
    return "\n\n".join([*parts, "## Sources", "\n".join(sources)]) + "\n"
