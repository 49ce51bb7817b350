"""Does the judge know which claims a source supports? WiCE, with no model, beside simple baselines in the same run.

Sentences of Wikipedia with the pages they cite; people said of each whether the page supports it, in part or not at
all. The judge is the one of research runs (`SourceJudge`): its confidence is ranked (AUC), and its decision counted
(balanced accuracy). A baseline has no threshold of its own: it is given the one that is best on the other half of the
claims, and so is the judge's confidence. The intervals are of 1,000 samples of the claims (bootstrap); `ahead` is the
share of samples in which the judge's AUC is higher.

These are development data. Nothing was fitted to them, but what the judge's confidence is made of, and that its verdict
decides, was chosen with all of these claims in sight, from about a dozen ways: expect a little less elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

import muniment
from benchmarks.reference import Bm25, words
from benchmarks.verify_facts import auc, balanced_accuracy, best_threshold, measure_wice, wice
from muniment.research.sources import Judgement, SourceJudge

Array = npt.NDArray[np.float64]
Truth = npt.NDArray[np.bool_]
Score = Callable[[str, Sequence[str]], float]

SAMPLES = 1_000


class Labelled(NamedTuple):
    claim: str
    sentences: list[str]
    label: str
    """supported, partially_supported, not_supported"""


def labelled(data: Path) -> list[Labelled]:
    lines = (data / "wice_claim_dev.jsonl").read_text("utf-8").splitlines()
    rows = map(json.loads, lines)
    return [Labelled(row["claim"], [one.replace("\n", " ") for one in row["evidence"]], row["label"]) for row in rows]


# -- baselines ----------------------------------------------------------------------------------------


def unigram_overlap(claim: str, sentences: Sequence[str]) -> float:
    """The share of the claim's words that stand anywhere on the page."""
    held = {word for sentence in sentences for word in words(sentence)}
    own = words(claim)
    return sum(word in held for word in own) / max(1, len(own))


def bigram_overlap(claim: str, sentences: Sequence[str]) -> float:
    """The share of its pairs of neighbouring words that are neighbours on the page."""
    held = {pair for sentence in sentences for pair in pairwise(words(sentence))}
    own = list(pairwise(words(claim)))
    return sum(pair in held for pair in own) / max(1, len(own))


def rouge_l(claim: str, sentences: Sequence[str]) -> float:
    """The longest common subsequence with the best sentence, as a share of the claim."""
    own = words(claim)
    return max((_common(own, words(sentence)) for sentence in sentences), default=0) / max(1, len(own))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for at, against in enumerate(other, start=1):
            before, row[at] = row[at], before + 1 if word == against else max(row[at], row[at - 1])
    return row[-1]


def bm25_top(claim: str, sentences: Sequence[str]) -> float:
    """The score of the best sentence, for each word of the claim."""
    own = words(claim)
    return float(Bm25([words(sentence) for sentence in sentences]).scores(own).max()) / max(1, len(own))


def nearest(name: str) -> Score:
    """The cosine of the nearest sentence, of the four that BM25 ranks first."""
    from benchmarks.embedders import load

    embedder = load(name)

    def score(claim: str, sentences: Sequence[str]) -> float:
        ranked = np.argsort(-Bm25([words(sentence) for sentence in sentences]).scores(words(claim)), kind="stable")
        vectors = embedder.embed_passages([sentences[at] for at in ranked[:4]])
        return float(np.max(vectors @ embedder.embed_queries([claim])[0]))

    return score


def baselines(embedders: Sequence[str]) -> dict[str, Score]:
    found: dict[str, Score] = {
        "unigram overlap": unigram_overlap,
        "bigram overlap": bigram_overlap,
        "rouge-l": rouge_l,
        "bm25 top sentence": bm25_top,
    }
    return found | {f"{name} cosine": nearest(name) for name in embedders}


# -- the judge ----------------------------------------------------------------------------------------


def judge(row: Labelled, policy: muniment.Policy) -> Judgement:
    """As a research run would: the page is a document of one source."""
    page = SimpleNamespace(chunk=lambda _: SimpleNamespace(text="\n".join(row.sentences)))
    shelved = cast("Any", {"cid_page": SimpleNamespace(chunk_ids=("page",))})
    return SourceJudge(cast("Any", page), shelved, policy)(row.claim, ["cid_page"])["cid_page"]


# -- measures -----------------------------------------------------------------------------------------


def held_out_accuracy(scores: Array, good: Truth) -> float:
    """Balanced accuracy with the threshold that is best on the other half, either way round."""
    halves = [np.arange(len(scores)) % 2 == half for half in (0, 1)]
    values = [
        balanced_accuracy(scores[own], good[own], best_threshold([(scores[other], good[other])]))
        for own, other in (halves, halves[::-1])
    ]
    return float(np.mean(values))


def interval(values: Sequence[float] | Array) -> list[float]:
    return [round(float(one), 3) for one in np.quantile(values, (0.025, 0.975))]


def measure_support(
    rows: Sequence[Labelled], policy: muniment.Policy, embedders: Sequence[str], seed: int = 7
) -> dict[str, dict[str, Any]]:
    good = np.array([row.label == "supported" for row in rows])
    none = np.array([row.label == "not_supported" for row in rows])
    judged = [judge(row, policy) for row in rows]
    decided = np.array([float(one.support == "supported") for one in judged])
    scores: dict[str, Array] = {"the judge": np.array([float(one.confidence) for one in judged])}
    for name, score in baselines(embedders).items():
        scores[name] = np.array([score(row.claim, row.sentences) for row in rows])
    random = np.random.default_rng(seed)
    samples = [random.integers(0, len(rows), len(rows)) for _ in range(SAMPLES)]
    drawn = {name: np.array([auc(own[at], good[at]) for at in samples]) for name, own in scores.items()}
    found: dict[str, dict[str, Any]] = {}
    for name, own in scores.items():
        found[f"wice support, {name}"] = {
            "auc": auc(own, good),
            "interval": interval(drawn[name]),
            "balanced_accuracy": held_out_accuracy(own, good),
            "auc_against_none": auc(own[good | none], good[good | none]),
        } | ({} if name == "the judge" else {"ahead": float((drawn["the judge"] > drawn[name]).mean())})
    found["wice support, the judge"] |= _decisions(decided, good, none, samples)
    return found


def _decisions(decided: Array, good: Truth, none: Truth, samples: Sequence[npt.NDArray[np.int64]]) -> dict[str, Any]:
    """What the judge says by itself, with no threshold looked for."""
    accuracies = [balanced_accuracy(decided[at], good[at], 0.5) for at in samples]
    return {
        "as_decided": balanced_accuracy(decided, good, 0.5),
        "as_decided_interval": interval(accuracies),
        "supported_kept": float(decided[good].mean()),
        "partly_flagged": float(1 - decided[~good & ~none].mean()),
        "unsupported_flagged": float(1 - decided[none].mean()),
    }


def measure_evidence(data: Path, policy: muniment.Policy) -> dict[str, dict[str, Any]]:
    """The sentences cited for a claim, as `benchmarks.verify_facts` measures them (there beside embedders too)."""
    return measure_wice(wice(data), policy.verify, ())
