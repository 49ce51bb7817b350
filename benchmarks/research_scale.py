"""Research runs of many megabytes: does the time of packing grow with the input, and no faster?

The outputs are synthetic: each sentence is the first half of one sentence of a real report and the second half of another.
A source's page holds half of the sentences that cite it, behind other words, so that nothing is borne word for word.
"""

from __future__ import annotations

import gc
import hashlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import muniment
from benchmarks.research_reports import Report
from muniment.runtime.studies import Study

PERSPECTIVES = 12
SOURCES_A_MB = 100
PAGE_SHARE = 0.5
CHECKED = __import__("os").environ.get("CHECKED") and int(__import__("os").environ["CHECKED"]) or 100_000
TOOL_USE = {"search_calls": 1, "fetch_calls": 1}
POLICY = muniment.Policy.from_wire(
    {
        "ledger": {"index_turns": False},
        "research": {
            "limits": {"max_wave1_agents": PERSPECTIVES},
            "contract": {"max_words": 1_000_000, "max_sources": 2_000},
            "claims_checked_max": CHECKED,
        },
    }
)
"""Every claim is checked; the default is the first 400 of an output."""


@dataclass(frozen=True, slots=True)
class Material:
    """Outputs for every perspective, and the pages of their sources."""

    outputs: list[str]
    pages: list[dict[str, Any]]

    @property
    def size(self) -> int:
        return sum(len(output.encode()) for output in self.outputs)


def make_material(stock: Sequence[str], megabytes: float, seed: int = 7) -> Material:
    """So many megabytes of outputs; sources and pages grow with them."""
    random = Random(seed)
    by_language = [[one for one in stock if one.isascii()], [one for one in stock if not one.isascii()]]
    share = int(megabytes * 1024 * 1024 / PERSPECTIVES)
    sources = [f"https://source{number}.example.org/page" for number in range(int(SOURCES_A_MB * megabytes))]
    cited: dict[str, list[str]] = {source: [] for source in sources}
    outputs = []
    for place in range(PERSPECTIVES):
        own = sources[place::PERSPECTIVES]
        listed = "\n".join(f"[{number}] {url} - Source {number}" for number, url in enumerate(own, 1))
        lines: list[str] = []
        size = len(listed)
        while size < share:
            one, other = random.sample(by_language[random.random() < 0.2], 2)
            number = random.randrange(len(own))
            sentence = one[: len(one) // 2].rstrip(" ,") + " " + other[len(other) // 2 :].lstrip(" ,")
            cited[own[number]].append(sentence)
            lines.append(f"- {sentence} [{number + 1}]")
            size += len(lines[-1].encode()) + 1
        outputs.append("\n".join(["## Findings", "", *lines, "", "## Sources", "", listed, "", "## Gaps", "", "None", ""]))
    pages = [
        {"url": url, "text": "\n".join(f"As it is told here, {one}" for one in held[: int(len(held) * PAGE_SHARE)]) or "Empty."}
        for url, held in cited.items()
    ]
    return Material(outputs, pages)


def cpu(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def feed(study: Study, material: Material) -> None:
    for perspective, output in zip(study.perspectives(), material.outputs, strict=True):
        result = study.ingest(perspective.id, output, tool_use=TOOL_USE)
        assert result.accepted, result.breaches
    study.pivot(second_wave=False)


def reference(material: Material, folder: Path) -> None:
    """The same bytes put together, hashed and written to a file, and the pages too."""
    whole = "\n\n".join([*material.outputs, *(page["text"] for page in material.pages)]).encode()
    hashlib.sha256(whole).hexdigest()
    (folder / "whole.md").write_bytes(whole)


def measure_run(material: Material, folder: Path) -> dict[str, Any]:
    mem = muniment.open(folder / "run.db", policy=POLICY)
    try:
        study = mem.research("What do the reports say?", user_id="ana", run_id="big", mode="deep", directory=folder / "big")
        study.route()
        taken = {
            "ingest_s": cpu(lambda: feed(study, material)),
            "supply_s": cpu(lambda: study.supply(material.pages)),
            "citations_s": cpu(study.citations),
            "pack_s": cpu(study.pack),
        }
        claims = study.claims()
        shutil.rmtree(study.directory)
        resumed = cpu(study.resume)
        again = cpu(study.resume)
        taken |= {
            "claims": len(claims),
            "supported": sum(claim.support == "supported" for claim in claims),
            "sources": len(study.sources()),
            "resume_s": resumed,
            "resume_unchanged_s": again,
        }
    finally:
        mem.close()
    return taken
