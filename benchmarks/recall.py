"""Does recall find the evidence? Ours beside the recipe of the baselines and plain BM25, in one run, on the same turns.

    python -m benchmarks.recall [--data DIR] [--embedder e5-small] [--only locomo,longmemeval,…]

Every figure is a share from 0 to 1. `spread` is the lowest and the highest conversation (or half, where questions have
a scope each).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks import data as sets
from benchmarks.data import Question, Scope, Turn
from benchmarks.embedders import KeptVectors
from benchmarks.harness import report
from benchmarks.reference import Plain, Recipe, estimate_tokens
from muniment.core.policy import RecallPolicy
from muniment.memory._index import MemoryIndex, SpokenTurn
from muniment.memory.ranking import rank
from muniment.memory.scoring import Dense, weigh_dense
from muniment.memory.vectors import mean_of_windows, passage_of, windows_of

Array = npt.NDArray[np.float64]
DEPTH = 200
"""How far down a ranking is looked at."""


class Searcher(Protocol):
    def __call__(self, question: Question) -> list[int]:
        """Ordinals, best first."""


class Near:
    """How near a question is to the turns of a scope, and to the windows around them, as a search has it."""

    def __init__(self, turns: Sequence[Turn], vectors: KeptVectors) -> None:
        self._vectors = vectors
        self.identity = vectors.identity
        self._turns = vectors.of_passages([passage_of(turn.speaker, turn.text) for turn in turns])
        sessions = np.unique(np.array([turn.session for turn in turns]), return_inverse=True)[1]
        self._windows = windows_of(sessions)

    def to(self, question: str) -> tuple[Array, Array]:
        near = (self._turns @ self._vectors.of_query(question)).astype(np.float64)
        return near, mean_of_windows(near, self._windows)


@dataclass(frozen=True)
class System:
    name: str
    over: Callable[[Sequence[Turn]], Searcher]


def said_before(turns: Sequence[Turn], question: Question) -> npt.NDArray[np.bool_] | None:
    """Which turns a question may be answered from, where it is asked in a session of its scope; None: from all."""
    if not question.asked_in:
        return None
    first = next(place for place, turn in enumerate(turns) if turn.session == question.asked_in)
    return np.arange(len(turns)) < first


def _best(scores: Array, among: npt.NDArray[np.bool_] | None) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    found: list[int] = (order if among is None else order[among[order]])[:DEPTH].tolist()
    return found


def index_of(turns: Iterable[Turn]) -> MemoryIndex:
    return MemoryIndex(SpokenTurn(turn.session, turn.speaker, turn.role, turn.said_at, turn.text) for turn in turns)


def plain(turns: Sequence[Turn], *, named: bool = False) -> Searcher:
    made = Plain(turns, named=named)
    return lambda question: _best(made.scores(question.text), said_before(turns, question))


def recipe(turns: Sequence[Turn], near: Near | None = None) -> Searcher:
    made = Recipe(turns)

    def search(question: Question) -> list[int]:
        nearness = () if near is None else near.to(question.text)
        return _best(made.scores(question.text, *nearness), said_before(turns, question))

    return search


def ours(turns: Sequence[Turn], policy: RecallPolicy, index: MemoryIndex, near: Near | None = None) -> Searcher:
    def search(question: Question) -> list[int]:
        weighed, dense = policy, None
        if near is not None:
            weighed = weigh_dense(policy, near.identity, question.text)
            dense = Dense(*near.to(question.text)) if weighed.dense_turn else None
        among = said_before(turns, question)
        found = rank(question.text, index, weighed, question.now.date(), DEPTH, dense, among=among)
        return [hit.ordinal for hit in found]

    return search


def systems(vectors: KeptVectors | None, policy: RecallPolicy) -> list[System]:
    found = [
        System("bm25", plain),
        System("recipe", recipe),
        System("ours", lambda turns: ours(turns, policy, index_of(turns))),
    ]
    if vectors is not None:
        found += [
            System("recipe+dense", lambda turns: recipe(turns, Near(turns, vectors))),
            System("ours+dense", lambda turns: ours(turns, policy, index_of(turns), Near(turns, vectors))),
        ]
    return found


# -- measures -----------------------------------------------------------------------------------------


def mean(values: Iterable[float]) -> float:
    got = list(values)
    return round(float(np.mean(got)), 4) if got else float("nan")


def measure_locomo(scopes: list[Scope], system: System) -> dict[str, Any]:
    rows: list[tuple[str, str, list[float]]] = []
    for scope in scopes:
        search = system.over(scope.turns)
        places = {turn.id: place for place, turn in enumerate(scope.turns)}
        tokens = [estimate_tokens(f"{turn.speaker}: {turn.text}\n") for turn in scope.turns]
        for question in scope.questions:
            found = search(question)
            used = np.cumsum([tokens[place] for place in found])
            at = {place: order for order, place in enumerate(found)}
            ranks = [at.get(places[id_], len(tokens)) for id_ in question.gold]
            spent = [float(used[order]) if order < len(found) else np.inf for order in ranks]
            row = [float(np.mean([order < k for order in ranks])) for k in (5, 10, 20)]
            row += [float(np.mean([tokens_ <= budget for tokens_ in spent])) for budget in (512, 1024)]
            rows.append((scope.name, question.kind, row))

    def share(column: int, kinds: str, scope: str = "") -> float:
        return mean(row[column] for name, kind, row in rows if kind in kinds and scope in ("", name))

    by_scope = [share(1, "1234", scope.name) for scope in scopes]
    return {
        "questions": sum(kind in "1234" for _, kind, _ in rows),
        **{f"R@{k}": share(column, "1234") for column, k in enumerate((5, 10, 20))},
        "in_512": share(3, "1234"),
        "in_1024": share(4, "1234"),
        **{f"cat{kind}_R@10": share(1, kind) for kind in "12345"},
        "spread": [min(by_scope), max(by_scope)],
        "cat1_by_conversation": [share(1, "1", scope.name) for scope in scopes],
    }


def measure_longmemeval(scopes: list[Scope], system: System) -> dict[str, Any]:
    recalls, wholes, newest = [], [], []
    for scope in scopes:
        question = scope.questions[0]
        if not question.gold:
            continue
        found = system.over(scope.turns)(question)
        ids = [scope.turns[place].id for place in found]
        at = {id_: order for order, id_ in enumerate(ids)}
        recalls.append(len(question.gold & set(ids[:10])) / len(question.gold))
        sessions = list(dict.fromkeys(scope.turns[place].session for place in found))
        wholes.append(float(question.gold_sessions <= set(sessions[:5])))
        if question.kind == "knowledge-update":
            new, old = (min((at.get(id_, DEPTH) for id_ in ids), default=DEPTH) for ids in question.newest)
            newest.append(float(new < old))
    return {
        "questions": len(recalls),
        "turn_R@10": mean(recalls),
        "sessions_all@5": mean(wholes),
        "updates": len(newest),
        "newest_above_stale": mean(newest),
        "spread": [mean(recalls[::2]), mean(recalls[1::2])],
    }


def measure_facts(scopes: list[Scope], system: System) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for scope in scopes:
        search = system.over(scope.turns)
        firsts, tens = [], []
        for question in scope.questions:
            texts = [scope.turns[place].text for place in search(question)[:10]] or [""]
            firsts.append(float(any(answer in texts[0] for answer in question.answers)))
            tens.append(float(any(answer in text for answer in question.answers for text in texts)))
        name = scope.name.removeprefix("factconsolidation_")
        row |= {f"{name}_latest_first": mean(firsts), f"{name}_R@10": mean(tens)}
    return row


def measure_passages(scopes: list[Scope], system: System) -> dict[str, Any]:
    ranks = []
    for scope in scopes:
        search = system.over(scope.turns)
        for question in scope.questions:
            ids = [scope.turns[place].id for place in search(question)[:5]]
            ranks.append(next((order for order, id_ in enumerate(ids) if id_ in question.gold), 99))
    return {
        "questions": len(ranks),
        "R@1": mean(float(order < 1) for order in ranks),
        "R@5": mean(float(order < 5) for order in ranks),
    }


def measure_realmem(scopes: list[Scope], system: System) -> dict[str, Any]:
    """A query sees what came before its session: each is asked of the history up to then, in ten steps for speed."""
    by_scope = []
    for scope in scopes:
        recalls = []
        steps = np.array_split(np.arange(len(scope.questions)), 10)
        for step in steps:
            if not len(step):
                continue
            now = scope.questions[int(step[0])].now
            turns = [turn for turn in scope.turns if turn.said_at < now]
            search = system.over(turns)
            for number in step.tolist():
                question = scope.questions[number]
                gold = question.gold_sessions & {turn.session for turn in turns}
                if gold:
                    found = [turns[place].session for place in search(question)]
                    sessions = [name for name in dict.fromkeys(found) if name != question.kind][:10]
                    recalls.append(len(gold & set(sessions)) / len(gold))
        by_scope.append(recalls)
    everything = [recall for recalls in by_scope for recall in recalls]
    means = [mean(recalls) for recalls in by_scope]
    return {"questions": len(everything), "session_R@10": mean(everything), "spread": [min(means), max(means)]}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=sets.default_data())
    parser.add_argument("--embedder", default="", help="such as e5-small: measure with vectors too")
    parser.add_argument("--only", default="", help="sets, comma-separated")
    parser.add_argument("--policy", type=Path, help="a RecallPolicy as JSON")
    options = parser.parse_args(argv)
    policy = RecallPolicy.model_validate_json(options.policy.read_text()) if options.policy else RecallPolicy()
    tried = systems(KeptVectors(options.embedder) if options.embedder else None, policy)
    where = options.data
    measures: dict[str, Callable[[], Callable[[System], dict[str, Any]]]] = {
        "locomo": lambda: _over(measure_locomo, sets.locomo(where)),
        "longmemeval": lambda: _over(measure_longmemeval, sets.longmemeval(where)),
        "facts": lambda: _over(measure_facts, sets.facts(where)),
        "bfcl": lambda: _over(measure_passages, sets.bfcl(where)),
        "xquad_zh": lambda: _over(measure_passages, [sets.xquad(where, "zh")]),
        "xquad_en": lambda: _over(measure_passages, [sets.xquad(where, "en")]),
        "klue_ko": lambda: _over(measure_passages, [sets.klue_pairs(where)]),
        "realmem": lambda: _over(measure_realmem, sets.realmem(where, every=4)),
    }
    only = set(options.only.split(",")) - {""}
    rows: dict[str, dict[str, Any]] = {}
    for name, load in measures.items():
        if only and name not in only:
            continue
        measure = load()
        for system in tried:
            rows[f"{name} {system.name}"] = measure(system)
    report("recall", rows, {"embedder": options.embedder, "only": options.only, "policy_digest": policy.digest})


def _over(measure: Callable[[Any, System], dict[str, Any]], what: Any) -> Callable[[System], dict[str, Any]]:
    return lambda system: measure(what, system)


if __name__ == "__main__":
    main()
