"""Research runs of many megabytes: does the time of packing grow with the input, and no faster?

The outputs are synthetic: each sentence is the first half of one sentence of a real report and the second half of
another. A source's page holds half of the sentences that cite it, behind other words, so that nothing is borne word for
word.
"""

from __future__ import annotations

import gc
import hashlib
import re
import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import muniment
from muniment.handles.study import Study

PERSPECTIVES = 12
SOURCES_A_MB = 100
PAGE_SHARE = 0.5
TOOL_USE = {"search_calls": 1, "fetch_calls": 1}
CHECKED = 400
"""Claims of an output that are checked, by default."""
ALL = 100_000


def policy_for(checked: int) -> muniment.Policy:
    """Limits raised so that outputs of a megabyte are taken, and the list of 60,000 checked claims is kept."""
    return muniment.Policy.from_wire(
        {
            "ledger": {"index_turns": False, "content_bytes_max": 128 * 1024 * 1024},
            "research": {
                "limits": {"max_wave1_agents": PERSPECTIVES},
                "contract": {"max_words": 1_000_000, "max_sources": 2_000},
                "claims_checked_max": checked,
            },
        }
    )


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
        parts = ["## Findings", "", *lines, "", "## Sources", "", listed, "", "## Gaps", "", "None", ""]
        outputs.append("\n".join(parts))
    return Material(outputs, [{"url": url, "text": _page(held)} for url, held in cited.items()])


def _page(cited: Sequence[str]) -> str:
    told = [f"As it is told here, {one}" for one in cited[: int(len(cited) * PAGE_SHARE)]]
    return "\n".join(told) or "Nothing is told here."


def cpu(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_mb() -> float:
    """The most memory that this process has held so far (Linux)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def feed(study: Study, material: Material) -> None:
    for perspective, output in zip(study.perspectives(), material.outputs, strict=True):
        result = study.ingest(perspective.id, output, tool_use=TOOL_USE)
        assert result.accepted, result.breaches
    study.pivot(second_wave=False)


def read_and_hash(material: Material, folder: Path) -> None:
    """The reference: the same bytes put together, hashed and written."""
    whole = "\n\n".join([*material.outputs, *(page["text"] for page in material.pages)]).encode()
    hashlib.sha256(whole).hexdigest()
    (folder / "whole.md").write_bytes(whole)


def measure_run(stock: Sequence[str], megabytes: float, checked: int) -> dict[str, Any]:
    """One run from its outputs to its pack; for a process of its own, whose memory is then measured too."""
    material = make_material(stock, megabytes)
    before = peak_mb()
    with tempfile.TemporaryDirectory() as name, muniment.open(Path(name, "run.db"), policy=policy_for(checked)) as mem:
        folder = Path(name)
        place = folder / "big"
        study = mem.research("What do the reports say?", user_id="ana", run_id="big", mode="deep", directory=place)
        study.route()
        taken = {
            "ingest_s": cpu(lambda: feed(study, material)),
            "supply_s": cpu(lambda: study.supply(material.pages)),
            "citations_s": cpu(study.citations),
            "pack_s": cpu(study.pack),
        }
        plain = cpu(lambda: read_and_hash(material, folder))
        grown = peak_mb() - before
        limits, written = study.manifest().limits, sorted((place / "summaries").glob("*.summary.md"))
        sizes = [path.stat().st_size for path in written]
        claims = study.claims()
        shutil.rmtree(place)
        resumed = cpu(study.resume)
        return taken | {
            "mb": material.size / 1024**2,
            "sources": len(study.sources()),
            "claims_checked": len(claims),
            "supported": sum(claim.support == "supported" for claim in claims),
            "total_s": sum(taken.values()),
            "hash_s": plain,
            "within_limits": max(sizes) <= limits.summary_bytes_max and sum(sizes) <= limits.total_bytes_max,
            "grown_mb": grown,
            "resume_s": resumed,
            "resume_unchanged_s": cpu(study.resume),
        }


def measure_memory(stock: Sequence[str], megabytes: float) -> dict[str, Any]:
    """The most memory that Python objects take in each step of one run (tracemalloc), with the default claims."""
    material = make_material(stock, megabytes)
    row: dict[str, Any] = {"mb": material.size / 1024**2}
    with tempfile.TemporaryDirectory() as name, muniment.open(Path(name, "run.db"), policy=policy_for(CHECKED)) as mem:
        place = Path(name) / "big"
        study = mem.research("What do the reports say?", user_id="ana", run_id="big", mode="deep", directory=place)
        study.route()
        steps: dict[str, Callable[[], object]] = {
            "ingest": lambda: feed(study, material),
            "supply": lambda: study.supply(material.pages),
            "citations": study.citations,
            "pack": study.pack,
        }
        for step, work in steps.items():
            gc.collect()
            tracemalloc.start()
            work()
            row[f"{step}_peak_mb"] = tracemalloc.get_traced_memory()[1] / 1024**2
            tracemalloc.stop()
    return row


def measure_scale(stock: Sequence[str], sizes: Sequence[float]) -> dict[str, dict[str, Any]]:
    """Seconds for each megabyte as the input grows, with every claim checked and with as many as by default."""
    rows: dict[str, dict[str, Any]] = {}
    for checked, shown in ((ALL, "every claim checked"), (CHECKED, f"{CHECKED} claims an output")):
        per_mb: dict[float, float] = {}
        for size in sizes if checked == ALL else (sizes[0], sizes[-1]):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                row = pool.submit(measure_run, stock, size, checked).result()
            per_mb[size] = row["s_a_mb"] = row["total_s"] / row["mb"]
            rows[f"{size:g} MB, {shown}"] = row
        first, last = sizes[0], sizes[-1]
        rows[f"{last:g} MB against {first:g} MB, {shown}"] = {"s_a_mb_ratio": per_mb[last] / per_mb[first]}
    for size in (sizes[0], sizes[-1]):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            row = pool.submit(measure_memory, stock, size).result()
        rows[f"{size:g} MB, memory by step"] = row
    return rows
