"""Chapter 5: a research run from its question to a checked report, and one that is left on its way."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from golden_store.store import GoldenStore
from muniment.research.outside.url_check import Looked

__all__ = ["write_research"]

SHARED = Path("/tmp")
FOLDER = SHARED / "muniment-golden-store"
"""Where the files of the runs lie while the store is written. A study keeps the path, so that it is always this one."""

QUESTION = "How do heat pumps compare with gas boilers for heating homes in cold climates?"
TOOL_USE = {"search_calls": 2, "fetch_calls": 2}
PAGES = [
    {
        "url": "https://energy.example.org/field-study",
        "title": "Field study of heat pumps",
        "text": "The field study followed 550 homes in Norway for three winters. "
        "At minus 10 degrees the heat pumps delivered a coefficient of performance of 2.4.",
    },
    {
        "url": "https://prices.example.org/2024/heating",
        "title": "Heating prices",
        "text": "A heat pump costs 11,500 euros to install, a gas boiler 4,200 euros. "
        "Running costs of a heat pump are 38 percent lower than those of a gas boiler.",
    },
]
FINDINGS = (
    ("The field study followed 550 homes in Norway for three winters.", 1),
    ("At minus 10 degrees the heat pumps delivered a coefficient of performance of 2.4.", 1),
    ("A heat pump costs 11,500 euros to install, a gas boiler 4,200 euros.", 2),
    ("Half of all boilers were banned in 1987.", 2),
    ("The grid grew by 9 gigawatts.", 3),
)
SOURCES = (*(page["url"] for page in PAGES), "https://grid.example.org/report")


class Browser:
    """Stands for something that goes to a source: one address answers, the others are blocked."""

    def check_many(self, urls: list[str]) -> list[Looked]:
        return [
            Looked("valid", "200 OK", 200, text="The grid grew by 9 gigawatts.", media_type="text/plain", title="Grid")
            if "grid" in url
            else Looked("blocked", "403 Forbidden", 403)
            for url in urls
        ]


@contextmanager
def _folder() -> Iterator[Path]:
    """The folder of the runs, for one writer at a time; it is gone afterwards."""
    handle = os.open(SHARED, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        shutil.rmtree(FOLDER, ignore_errors=True)
        yield FOLDER
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.close(handle)


def write_research(store: GoldenStore) -> None:
    store.go_to("2026-03-20T08:00:00+00:00")
    with _folder() as folder:
        _whole(store, folder / "heat-pumps")
        _left(store, folder / "ferries")


def _output(number: int, gaps: str = "None") -> str:
    """What an agent hands back for a perspective: findings, in another order for each, and where they come from."""
    turned = [FINDINGS[(at + number) % len(FINDINGS)] for at in range(len(FINDINGS))]
    lines = [f"- {sentence} [{source}]" for sentence, source in turned]
    sources = [f"[{at}] {url}" for at, url in enumerate(SOURCES, 1)]
    return "\n".join(["## Findings", "", *lines, "", "## Sources", "", *sources, "", "## Gaps", "", gaps, ""])


def _whole(store: GoldenStore, directory: Path) -> None:
    """Routed, read in two waves, sourced, packed, written and checked."""
    study = store.mem.research(
        QUESTION, user_id="ana", mode="quick", run_id="heat-pumps", directory=directory,
        limits={"max_wave1_agents": 2, "max_wave2_agents": 1, "max_summary_kb": 2},
    )  # fmt: skip
    first, *others = study.route()
    study.ingest(first.id, "Heat pumps are better.", tool_use=TOOL_USE)
    gaps = "- [P0] Nobody has counted what the grid needs."
    study.ingest(first.id, _output(1, gaps), tool_use=TOOL_USE, sources=PAGES[:1], change_note="added the sections")
    study.collect(lambda _prompt, _perspective: {"markdown": _output(2), "tool_use": TOOL_USE})
    study.pivot()
    for perspective in study.perspectives()[1 + len(others) :]:
        study.ingest(perspective.id, _output(3), tool_use=TOOL_USE)
    study.supply(PAGES)
    browser: Any = Browser()
    study.look(browser, [SOURCES[-1], "https://closed.example.org/archive"])
    study.citations()
    study.pack()
    study.check("# Report\n\nHeat pumps cost 99 euros.\n")
    study.check(_report(study.synthesis_input()))
    study.finish("OBJECTIVE_ACHIEVED")


def _report(given: Any) -> str:
    """A report from the pack alone: its claims, cited."""
    claims = {claim.claim: claim for entry in given.pack.summaries for claim in entry.key_claims}
    lines = [f"{claim.claim} [{claim.citation_cids[0]}]" for claim in claims.values() if claim.citation_cids]
    sources = [f"- {source['url']}" for source in (given.pack.model_extra or {}).get("sources", ())]
    parts = ["# Report", "## Summary", lines[0], "## Findings", *lines, "## Limitations", "Little is known."]
    return "\n\n".join([*parts, "## Sources", "\n".join(sources)]) + "\n"


def _left(store: GoldenStore, directory: Path) -> None:
    """In its first wave: one output was refused, one perspective given up, the rest is waited for."""
    study = store.mem.research(
        "Should the town of Alder buy electric ferries, and what would it cost?",
        user_id="wei", run_id="ferries", directory=directory, limits={"max_wave1_agents": 3},
    )  # fmt: skip
    perspectives = study.route()
    study.ingest(perspectives[0].id, "Electric is better.", tool_use={"search_calls": 1})
    study.give_up(perspectives[1].id, "the archive is closed")
