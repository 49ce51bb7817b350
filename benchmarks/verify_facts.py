"""Does the fact checker see what is wrong? BUMP, SummEdits and WiCE, no model.

    python -m benchmarks.verify_facts [--data DIR] [--misses N] [--no-embedders]

BUMP: the consistent summary must score higher than the edited one (a tie fails), AUC over all of them, and the type of
error among the edited ones that were found. SummEdits: balanced accuracy with the threshold that is best on the other
domains; `original_summary` is never read. WiCE: F1 of the sentences cited for a claim (the best of its gold sets),
beside BM25 and embeddings, each with the number of sentences that serves it best. `spread` is the lowest and highest
fold (a fifth of the documents) or domain. The shipped weights were learned on these files: `benchmarks.learn_facts`
gives the figures on folds they were not learned from.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.harness import report
from benchmarks.reference import Bm25, words
from muniment.contracts.runs import FGFCReport
from muniment.core.policy import FactCheckPolicy
from muniment.verify.facts import SourceText, check_facts
from muniment.verify.facts._source import Source, read_claim
from muniment.verify.facts.check import pick_evidence
from muniment.verify.results import fact_score

Array = npt.NDArray[np.float64]

DOMAINS = ("ectsum", "qmsumm", "samsum", "scitldr")
FOLDS = 5
_TYPES = {"Predicate": "PredE", "Entity": "EntE", "Circumstance": "CircE"}


@dataclass(frozen=True, slots=True)
class Judgement:
    """An output with a known verdict. In BUMP references and edited ones take turns."""

    set: str
    document: str
    output: str
    good: bool
    error: str | None = None
    """BUMP: the type, extrinsic errors being OutE, as the annotators corrected it …"""
    asked: str | None = None
    """… and as it was asked for."""


class Gold(NamedTuple):
    claim: str
    sentences: list[str]
    gold: list[frozenset[int]]


# -- data ---------------------------------------------------------------------------------------------


def bump(data: Path) -> list[Judgement]:
    rows = []
    for row in json.loads((data / "bump_task1_dev.json").read_text("utf-8")):
        error, asked = _type(row["corrected_error_type"]), _type(row["error_type"])
        rows.append(Judgement("bump", row["article"], row["reference_summary"], True, error, asked))
        rows.append(Judgement("bump", row["article"], row["edited_summary"], False, error, asked))
    return rows


def _type(named: str) -> str:
    if named.startswith("Extrinsic"):
        return "OutE"
    return next((short for word, short in _TYPES.items() if word in named), "CorefE")


def summedits(data: Path) -> list[Judgement]:
    return [
        Judgement(name, row["doc"], row["summary"], bool(row["label"]))
        for name in DOMAINS
        for row in json.loads((data / "summedits" / f"summedits_{name}.json").read_text("utf-8"))
    ]


def wice(data: Path) -> list[Gold]:
    """The claims that some sentences support, wholly or in part."""
    rows = []
    for line in (data / "wice_claim_dev.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        gold = [frozenset(one) for one in row["supporting_sentences"] if one]
        if gold:
            rows.append(Gold(row["claim"], row["evidence"], gold))
    return rows


def folds_of(judgements: Sequence[Judgement]) -> dict[str, int]:
    """A document's fold, by the order in which documents come."""
    order = dict.fromkeys(one.document for one in judgements if one.set == "bump")
    return {document: place % FOLDS for place, document in enumerate(order)}


# -- measures -----------------------------------------------------------------------------------------


def auc(scores: Array, good: npt.NDArray[np.bool_]) -> float:
    higher, lower = scores[good][:, None], scores[~good][None]
    return float(np.mean((higher > lower) + 0.5 * (higher == lower)))


def balanced_accuracy(scores: Array, good: npt.NDArray[np.bool_], threshold: float) -> float:
    return float(((scores[good] >= threshold).mean() + (scores[~good] < threshold).mean()) / 2)


def best_threshold(groups: Sequence[tuple[Array, npt.NDArray[np.bool_]]]) -> float:
    """The one with the highest mean balanced accuracy over the groups."""
    candidates = np.quantile(np.concatenate([scores for scores, _ in groups]), np.linspace(0.02, 0.98, 97))
    values = [np.mean([balanced_accuracy(*group, float(one)) for group in groups]) for one in candidates]
    return float(candidates[int(np.argmax(values))])


def set_f1(found: frozenset[int], gold: Sequence[frozenset[int]]) -> float:
    """Of several gold sets the one that fits best counts."""
    return max(2 * len(found & one) / (len(found) + len(one)) for one in gold) if found else 0.0


# -- runs ---------------------------------------------------------------------------------------------


def check(judgements: Sequence[Judgement], policy: FactCheckPolicy) -> list[FGFCReport]:
    return [check_facts(one.output, [SourceText("document", one.document)], policy=policy) for one in judgements]


def measure_bump(judgements: Sequence[Judgement], reports: Sequence[FGFCReport]) -> dict[str, dict[str, Any]]:
    scores = np.array([fact_score(one) for one in reports])
    good = np.array([one.good for one in judgements])
    folds = np.array([folds_of(judgements)[one.document] for one in judgements])
    right = scores[::2] > scores[1::2]
    by_fold = [right[folds[::2] == fold].mean() for fold in range(FOLDS)]
    aucs = [auc(scores[folds == fold], good[folds == fold]) for fold in range(FOLDS)]
    by_type = {
        name: round(float(right[[one.error == name for one in judgements[::2]]].mean()), 3)
        for name in sorted({str(one.error) for one in judgements})
    }
    edited = [(one, _found_type(report_)) for one, report_ in zip(judgements, reports, strict=True) if not one.good]
    found = [(one, type_) for one, type_ in edited if type_ is not None]
    alarms = sum(_found_type(two) is not None for one, two in zip(judgements, reports, strict=True) if one.good)
    return {
        "bump consistency": {"value": float(right.mean()), "bar": 0.80, "spread": _spread(by_fold), "by_type": by_type},
        "bump auc": {"value": auc(scores, good), "bar": 0.60, "spread": _spread(aucs)},
        "bump error type": {
            "value": sum(one.error == type_ for one, type_ in found) / max(1, len(found)),
            "as_asked": round(sum(one.asked == type_ for one, type_ in found) / max(1, len(found)), 3),
            "bar": 0.50,
            "detected": len(found),
            "of": len(edited),
            "references_flagged": alarms,
            "always_OutE": round(sum(one.error == "OutE" for one, _ in found) / max(1, len(found)), 3),
            "types": dict(Counter(str(type_) for _, type_ in found)),
        },
    }


def _found_type(checked: FGFCReport) -> str | None:
    """The type of the worst unit that is not supported."""
    flagged = [unit for unit in checked.units or () if unit.error_type is not None]
    flagged.sort(key=lambda unit: (unit.model_extra or {}).get("support", 0.0))
    return flagged[0].error_type if flagged else None


def measure_summedits(judgements: Sequence[Judgement], reports: Sequence[FGFCReport]) -> dict[str, dict[str, Any]]:
    scores = np.array([fact_score(one) for one in reports])
    good = np.array([one.good for one in judgements])
    names = np.array([one.set for one in judgements])
    rows: dict[str, float] = {}
    for name in DOMAINS:
        others = [(scores[names == other], good[names == other]) for other in DOMAINS if other != name]
        rows[name] = balanced_accuracy(scores[names == name], good[names == name], best_threshold(others))
    value = float(np.mean(list(rows.values())))
    by_domain = {name: round(one, 3) for name, one in rows.items()}
    return {"summedits balanced accuracy": {"value": value, "bar": 0.57, "by_domain": by_domain}}


def _spread(values: Sequence[float]) -> list[float]:
    return [round(float(min(values)), 3), round(float(max(values)), 3)]


def measure_wice(
    claims: Sequence[Gold], policy: FactCheckPolicy, embedders: Sequence[str]
) -> dict[str, dict[str, Any]]:
    def ours(row: Gold) -> frozenset[int]:
        source = Source([SourceText(str(place), text.replace("\n", " ")) for place, text in enumerate(row.sentences)])
        picked = pick_evidence(read_claim(row.claim, source), source, policy)
        return frozenset(int(source.documents[source.sentences[place].document].id) for place in picked)

    values = np.array([set_f1(ours(row), row.gold) for row in claims])
    parts = [values[fold::FOLDS].mean() for fold in range(FOLDS)]
    rows: dict[str, dict[str, Any]] = {"wice evidence f1": {"value": float(values.mean()), "spread": _spread(parts)}}
    rankings: dict[str, Callable[[Gold], Array]] = {"bm25": _bm25} | {name: _nearest(name) for name in embedders}
    for name, rank in rankings.items():
        orders = [np.argsort(-rank(row), kind="stable") for row in claims]
        by_size = {
            size: float(
                np.mean(
                    [
                        set_f1(frozenset(order[:size].tolist()), row.gold)
                        for order, row in zip(orders, claims, strict=True)
                    ]
                )
            )
            for size in range(1, 6)
        }
        best = max(by_size, key=lambda size: by_size[size])
        rows[f"wice {name}"] = {"value": by_size[best], "best_k": best}
    return rows


def _bm25(row: Gold) -> Array:
    return Bm25([words(text) for text in row.sentences]).scores(words(row.claim))


def _nearest(name: str) -> Callable[[Gold], Array]:
    from benchmarks.embedders import load

    embedder = load(name)

    def rank(row: Gold) -> Array:
        vectors = embedder.embed_passages(row.sentences)
        return np.asarray(vectors @ embedder.embed_queries([row.claim])[0], np.float64)

    return rank


def measure_speed(judgements: Sequence[Judgement], policy: FactCheckPolicy) -> dict[str, dict[str, Any]]:
    """CPU time of ten sentences against a thousand words, made of the set's own documents."""
    words_ = " ".join(dict.fromkeys(one.document for one in judgements if one.set == "bump")).split()
    outputs = " ".join(one.output for one in judgements if one.set == "bump" and not one.good)
    times = []
    for number in range(20):
        document = " ".join(words_[number * 1000 : number * 1000 + 1000])
        output = "\n".join(outputs.split(" . ")[number * 10 : number * 10 + 10])
        start = time.process_time()
        check_facts(output, [SourceText("document", document)], policy=policy)
        times.append((time.process_time() - start) * 1000)
    return {"ten sentences, a thousand words": {"cpu_ms": float(np.median(times)), "max_ms": max(times), "bar": 50.0}}


def show_misses(judgements: Sequence[Judgement], reports: Sequence[FGFCReport], count: int) -> None:
    """Pairs that score the wrong way round, spread over the set."""
    pairs = range(0, len(judgements), 2)
    missed = [at for at in pairs if fact_score(reports[at]) <= fact_score(reports[at + 1])]
    for at in missed[:: max(1, len(missed) // max(1, count))][:count]:
        print(
            f"\n#{at // 2} {judgements[at].error}  {fact_score(reports[at]):.4f} <= {fact_score(reports[at + 1]):.4f}"
        )
        print("  reference:", judgements[at].output)
        print("  edited:   ", judgements[at + 1].output)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--misses", type=int, default=0)
    parser.add_argument("--no-embedders", action="store_true")
    options = parser.parse_args(argv)
    policy = FactCheckPolicy()
    pairs, edits = bump(options.data), summedits(options.data)
    checked = check(pairs, policy)
    rows = measure_bump(pairs, checked) | measure_summedits(edits, check(edits, policy))
    rows |= measure_wice(wice(options.data), policy, () if options.no_embedders else ("wordllama", "minilm"))
    rows |= measure_speed(pairs, policy)
    report("verify_facts", rows, {"policy": policy.digest})
    if options.misses:
        show_misses(pairs, checked, options.misses)


if __name__ == "__main__":
    main()
