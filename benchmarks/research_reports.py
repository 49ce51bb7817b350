"""A hundred real research reports as runs of their own, through the library, from the question to the pack.

The reports are real (50 Chinese, 50 English), the pages of their sources are not: nobody kept those. A page is made of
the sentences that cite the source, or, where it is *laundered*, of sentences that do not bear them, among sentences of
other reports. `KINDS` says how; each source is dealt one, from a seed. No page is a paraphrase in other words: what the
checker makes of those, WiCE tells (`benchmarks.research_support`).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import muniment
from benchmarks.reference import estimate_tokens
from benchmarks.research_support import bigram_overlap, unigram_overlap
from benchmarks.verify_facts import auc
from muniment.core.canonical import canonical_text
from muniment.core.policy import ResearchPolicy
from muniment.handles.study import Study
from muniment.research._markdown import Claim, Reading, find_claims, read_markdown
from muniment.research.records import CheckedClaim
from muniment.research.urls import cid_of, try_normalize_url

KINDS = {
    "verbatim": 3,
    "turned": 3,
    "figure": 2,
    "neighbour": 2,
    "foreign": 2,
}
"""How often a page is made so. verbatim: the sentences that cite it, word for word. turned: the same, each cut in two
at a comma and its second half told first. Laundered: figure (as verbatim, with one figure of each sentence changed;
those without one are borne all the same), neighbour (sentences of another source of the report), foreign (of another
report)."""
DISTRACTORS = 12
TOOL_USE = {"search_calls": 1, "fetch_calls": 1}
FLAGGED = ("refuted", "not_supported")
_DIGITS = re.compile(r"\d+")
_COMMA = re.compile(r"[,;]\s+|[，；]")


@dataclass(frozen=True)
class Report:
    id: int
    language: str
    question: str
    text: str

    @cached_property
    def reading(self) -> Reading:
        return read_markdown(self.text)

    @cached_property
    def claims(self) -> list[Claim]:
        return find_claims(self.reading, ResearchPolicy())

    @cached_property
    def citing(self) -> dict[str, list[str]]:
        """Cid → the claims that cite it, beside it or at the end of their paragraph."""
        found: dict[str, list[str]] = {cid: [] for cid in self.urls}
        for claim in self.claims:
            for cid in claim.cited or claim.closing:
                found[cid].append(claim.sentence.text)
        return found

    @cached_property
    def urls(self) -> dict[str, str]:
        """Cid → address."""
        normal = (try_normalize_url(found.url) for found in self.reading.urls)
        return {cid_of(url): url for url in normal if url is not None}


def reports(data: Path) -> list[Report]:
    queries = [json.loads(line) for line in (data / "deepresearch_bench_query.jsonl").read_text("utf-8").splitlines()]
    language = {row["id"]: row["language"] for row in queries}
    lines = (data / "deepresearch_bench_claude37_reports.jsonl").read_text("utf-8").splitlines()
    return [Report(row["id"], language[row["id"]], row["prompt"], row["article"]) for row in map(json.loads, lines)]


# -- pages --------------------------------------------------------------------------------------------


class Page(NamedTuple):
    """A source's page, and the claims that it bears."""

    url: str
    kind: str
    sentences: tuple[str, ...]
    bears: frozenset[str]

    @property
    def supplied(self) -> dict[str, str]:
        return {"url": self.url, "text": "\n".join(self.sentences)}


def make_pages(report: Report, others: Sequence[Report], random: Random) -> dict[str, Page]:
    """A page for every source of a report; `others` are reports in the same language."""
    pages: dict[str, Page] = {}
    for cid, url in sorted(report.urls.items()):
        kind = random.choices(list(KINDS), weights=list(KINDS.values()))[0]
        own = report.citing[cid]
        told, bears = _told(kind, own, report, cid, others, random)
        strange = [random.choice(random.choice(others).claims).sentence.text for _ in range(DISTRACTORS)]
        sentences = [*told, *strange]
        random.shuffle(sentences)
        pages[cid] = Page(url, kind, tuple(sentences), frozenset(bears))
    return pages


def _told(
    kind: str, own: Sequence[str], report: Report, cid: str, others: Sequence[Report], random: Random
) -> tuple[list[str], set[str]]:
    """What a page says of its own, and which of the claims that cite it are true to it."""
    if kind == "verbatim":
        return list(own), set(own)
    if kind == "turned":
        return [turned(one) for one in own], set(own)
    if kind == "figure":
        return [changed(one, random) for one in own], {one for one in own if not _DIGITS.search(one)}
    if kind == "neighbour":
        near = [other for other in sorted(report.citing) if other != cid]
        said = report.citing[random.choice(near)] if near else []
        return [one for one in said if one not in own], set()
    foreign = random.choice(others)
    return list(foreign.citing[random.choice(sorted(foreign.citing))]), set()


def turned(sentence: str) -> str:
    """Two sentences, the second half first; one without a comma stays."""
    commas = list(_COMMA.finditer(sentence))
    if not commas:
        return sentence
    middle = min(commas, key=lambda found: abs(found.start() - len(sentence) / 2))
    stop = "." if sentence.isascii() else "。"
    first, second = sentence[: middle.start()], sentence[middle.end() :].rstrip(".。")
    return f"{second[:1].upper()}{second[1:]}{stop} {first}{stop}"


def changed(sentence: str, random: Random) -> str:
    """The sentence with the first digit of one of its figures another one."""
    figures = list(_DIGITS.finditer(sentence))
    if not figures:
        return sentence
    at = random.choice(figures).start()
    other = random.choice([digit for digit in "123456789" if digit != sentence[at]])
    return sentence[:at] + other + sentence[at + 1 :]


# -- runs ---------------------------------------------------------------------------------------------


def policy_for(wave1: int, **limits: float) -> muniment.Policy:
    """The default, but for a contract that a whole report can meet."""
    contract = {"max_words": 20_000, "max_sources": 500, "must_include_sections": []}
    bounds = {"max_wave1_agents": wave1, **limits}
    return muniment.Policy.from_wire({"research": {"contract": contract, "limits": bounds, "sources_max": 5_000}})


class Packed(NamedTuple):
    """What came of a run."""

    claims: list[CheckedClaim]
    row: dict[str, float]


def run_reports(
    mem: muniment.Memory, given: Sequence[Report], pages: Mapping[str, Page], folder: Path, name: str
) -> Packed:
    """One research run with a report for each perspective; times are the process's own."""
    start = time.process_time()
    study = mem.research(given[0].question, user_id="ana", run_id=name, mode="deep", directory=folder / name)
    for perspective, report in zip(study.route(), given, strict=True):
        result = study.ingest(perspective.id, report.text, tool_use=TOOL_USE)
        assert result.accepted, (report.id, result.breaches)
    study.pivot(second_wave=False)
    study.supply([page.supplied for page in pages.values()])
    study.citations()
    study.pack()
    seconds = time.process_time() - start
    return Packed(list(study.claims()), {"cpu_s": seconds, **measure_bytes(study, given)})


def measure_bytes(study: Study, given: Sequence[Report]) -> dict[str, float]:
    """Sizes on disk against the limits, tokens against a count of what a synthesis reads."""
    limits = study.manifest().limits
    sizes = [path.stat().st_size for path in sorted((study.directory / "summaries").glob("*.summary.md"))]
    read = study.synthesis_input()
    plain = read.pack.to_wire()
    said, plain["total_estimated_tokens"] = plain["total_estimated_tokens"], 0
    texts = [canonical_text(plain), *read.summaries.values()]
    count = study._ctx.counter.count
    return {
        "bytes_in": sum(len(report.text.encode()) for report in given),
        "bytes_out": sum(sizes),
        "largest_summary": max(sizes),
        "over": (max(sizes) > limits.summary_bytes_max) + (sum(sizes) > limits.total_bytes_max),
        "tokens_said": said,
        "tokens_counted": sum(map(count, texts)),
        "tokens_reference": sum(map(estimate_tokens, texts)),
        "pack_bytes": (study.directory / "summaries" / "summary-pack.json").stat().st_size,
    }


# -- measures -----------------------------------------------------------------------------------------


def measure_reading(given: Sequence[Report]) -> dict[str, Any]:
    """What the reports hold, before anything is checked."""
    claims = [claim for report in given for claim in report.claims]
    figures = [claim for claim in claims if claim.figure]
    marks = [mark for report in given for sentence in report.reading.sentences for mark in sentence.marks]
    return {
        "reports": len(given),
        "claims_a_report": _median([len(report.claims) for report in given]),
        "cited_beside": _share(bool(claim.cited) for claim in claims),
        "cited_by_paragraph": _share(not claim.cited and bool(claim.closing) for claim in claims),
        "figures": len(figures),
        "figures_uncited": _share(not claim.cited and not claim.closing for claim in figures),
        "figures_not_beside": _share(not claim.cited for claim in figures),
        "marks": len(marks),
        "marks_resolved": _share(mark.url is not None for mark in marks),
        "sources_a_report": _median([len(report.urls) for report in given]),
    }


def measure_packs(rows: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {
        "runs": len(rows),
        "kb_in": float(columns["bytes_in"].sum() / 1024),
        "kb_out": float(columns["bytes_out"].sum() / 1024),
        "out_of_in": float(columns["bytes_out"].sum() / columns["bytes_in"].sum()),
        "largest_summary_bytes": int(columns["largest_summary"].max()),
        "over_a_limit": int(columns["over"].sum()),
        "tokens_off_count": int(np.abs(columns["tokens_said"] - columns["tokens_counted"]).max()),
        "tokens_to_reference": float(columns["tokens_said"].sum() / columns["tokens_reference"].sum()),
        "cpu_ms_median": float(np.median(columns["cpu_s"]) * 1e3),
        "cpu_ms_a_kb": float(columns["cpu_s"].sum() * 1e3 / (columns["bytes_in"].sum() / 1024)),
    }


class Seen(NamedTuple):
    """A claim as it was judged, beside what is true of it."""

    claim: CheckedClaim
    kinds: frozenset[str]
    borne: bool
    beside: bool
    unigrams: float
    bigrams: float


def look_at_claims(report: Report, pages: Mapping[str, Page], claims: Sequence[CheckedClaim]) -> list[Seen]:
    """The claims of a report that cite something, with what their pages bear."""
    seen = []
    for claim, candidate in zip(claims, report.claims, strict=True):
        cited = [pages[cid] for cid in candidate.cited or candidate.closing if cid in pages]
        if cited:
            texts = [list(page.sentences) for page in cited]
            seen.append(
                Seen(
                    claim,
                    frozenset(page.kind for page in cited),
                    any(claim.claim in page.bears for page in cited),
                    bool(candidate.cited),
                    max(unigram_overlap(claim.claim, text) for text in texts),
                    max(bigram_overlap(claim.claim, text) for text in texts),
                )
            )
    return seen


def measure_laundering(seen: Sequence[Seen]) -> dict[str, dict[str, Any]]:
    """Flags among the claims with a citation beside them; of the others, which ones were given the paragraph's."""
    beside = [one for one in seen if one.beside]
    borne = np.array([one.borne for one in beside])
    flagged = np.array([one.claim.support in FLAGGED for one in beside])
    confidence = np.array([float(one.claim.confidence) for one in beside])
    rows: dict[str, dict[str, Any]] = {
        "laundered citations": {
            "claims": len(beside),
            "laundered": int((~borne).sum()),
            "recall": float(flagged[~borne].mean()),
            "precision": float((~borne)[flagged].mean()),
            "borne_kept": float((~flagged)[borne].mean()),
            "auc": auc(confidence, borne),
            "auc_unigrams": auc(np.array([one.unigrams for one in beside]), borne),
            "auc_bigrams": auc(np.array([one.bigrams for one in beside]), borne),
        }
    }
    alone = [one for one in beside if len(one.kinds) == 1]
    for kind in KINDS:
        held = [one for one in alone if kind in one.kinds and one.borne == (kind in ("verbatim", "turned"))]
        right = [(one.claim.support in FLAGGED) != one.borne for one in held]
        rows[f"laundered citations, pages {kind}"] = {"claims": len(held), "judged_right": _share(right)}
    closed = [one for one in seen if not one.beside]
    given = [bool(one.claim.citation_cids) for one in closed]
    rows["citations that close a paragraph"] = {
        "claims": len(closed),
        "given_where_borne": _share(got for got, one in zip(given, closed, strict=True) if one.borne),
        "given_where_not": _share(got for got, one in zip(given, closed, strict=True) if not one.borne),
    }
    return rows


def _share(values: Any) -> float:
    held = list(values)
    return sum(held) / len(held) if held else 0.0


def _median(values: Sequence[int]) -> float:
    return float(np.median(values))


def measure_reports(given: Sequence[Report], folder: Path, seed: int = 7) -> dict[str, dict[str, Any]]:
    """Everything over the reports: what they hold, what the packs come to, who is caught."""
    rows: dict[str, dict[str, Any]] = {}
    for language in ("zh", "en"):
        rows[f"reports {language}"] = measure_reading([one for one in given if one.language == language])
    packed: list[Mapping[str, float]] = []
    seen: dict[str, list[Seen]] = {"zh": [], "en": []}
    pages: dict[int, dict[str, Page]] = {}
    random = Random(seed)
    with muniment.open(folder / "one.db", policy=policy_for(1)) as mem:
        for report in given:
            others = [one for one in given if one.language == report.language and one.id != report.id]
            pages[report.id] = make_pages(report, others, random)
            one = run_reports(mem, [report], pages[report.id], folder, f"r{report.id}")
            packed.append(one.row)
            seen[report.language] += look_at_claims(report, pages[report.id], one.claims)
    rows["a run for each report"] = measure_packs(packed)
    for name, found in {"": seen["zh"] + seen["en"], ", zh": seen["zh"], ", en": seen["en"]}.items():
        rows |= {
            f"{key}{name}": row for key, row in measure_laundering(found).items() if not name or "pages" not in key
        }
    size = 12
    with muniment.open(folder / "twelve.db", policy=policy_for(size, max_total_summary_kb=24)) as mem:
        together = []
        for start in range(0, len(given) - size + 1, size):
            group = given[start : start + size]
            shared = {cid: page for report in group for cid, page in pages[report.id].items()}
            together.append(run_reports(mem, group, shared, folder, f"g{start}").row)
    if together:
        rows["twelve reports a run, 24 KB in all"] = measure_packs(together)
    return rows
