"""Does recall hold on a set it has not learnt from? Ten sets in one format, every system side by side in one run.

    python -m benchmarks.recall_pool [--data DIR] [--embedder e5-small] [--only locomo,realtalk,…]
    git worktree add --detach ../before da462520
    python -m benchmarks.recall_pool --before ../before     the search of another checkout as one more system
    python -m benchmarks.recall_pool --misses 10            what was looked for and not found; prints texts of the sets

`bm25` and `recipe` are those of `benchmarks.reference`; `bm25_named` is BM25 as the pool's own page has it, with the
speaker's name in every turn and no stop words. `ours` ranks each set by weights fitted without it: those
that may be fitted on (`benchmarks.data.PERMITTED`) by the others of them, all other sets by the package's own file, as
`shipped` does throughout. `without …` is `ours` with one thing taken away and nothing fitted anew. What the
policy's own numbers are is one for all sets, and was chosen with them in sight: that is not left out.

R@k is the share of gold turns (older values count) among the first k; `in_512` that within so many tokens of ranked
turns; `sd` is the deviation of the scopes' means of R@10 and `interval` 95 % of a bootstrap over scopes. Of what
changed, `newest_above_stale` asks for a gold turn above every older value, `stale_first` whether an older value stands
first of all. `realmem` marks sessions: R@k is of sessions, each in the place of its best turn, and only what was said
before the session of the question is searched. Questions without an answer are left out. The mean is over the sets
with gold turns that are not easy, each counting the same.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import numpy.typing as npt

from benchmarks import learn_ranking
from benchmarks.data import PERMITTED, POOL, Question, Scope, Turn, default_data
from benchmarks.embedders import KeptVectors
from benchmarks.harness import report
from benchmarks.learn_evidence import EASY
from benchmarks.recall import DEPTH, Near, Searcher, index_of, mean, ours, plain, recipe
from benchmarks.recall_pool_side import SEED, counts_of, drawn
from benchmarks.reference import estimate_tokens
from muniment.core.canonical import digest
from muniment.core.policy import RecallPolicy
from muniment.core.text.word_lists import read_data
from muniment.memory import _index as recall_index
from muniment.memory import ranking as recall_rank
from muniment.memory._index import MemoryIndex
from muniment.memory.ranking import Ranking, ranking

ROOT = Path(__file__).resolve().parent.parent
DRAWS = 2_000
DEPTHS = (5, 10, 20)
BUDGETS = (256, 512, 1024)
SHOWN_CHARS = 300

Change = tuple[Any, str, Any]
"""A module, a name in it, and what stands there instead."""


class Variant(NamedTuple):
    """Ours, or ours with something taken away."""

    name: str
    settings: Mapping[str, Any] = {}
    """What the policy says otherwise."""
    reading: Sequence[Change] = ()
    """How turns are read otherwise: these need an index of their own."""


def _none(*_given: Any) -> list[str]:
    return []


OURS, SHIPPED = Variant("ours"), Variant("shipped")
WITHOUT = (
    Variant("without leaning", {"chat_context": 1.0, "chat_length": 1e9}),
    Variant("without traits", {"ranking": ""}),
    Variant("without newest", {"newest": 1}),
    Variant("without stretch", {"stretch": 0.0}),
    Variant("without names", {"speaker": 0.0, "company": 0.0, "called": 1.0}),
    Variant("without dates", {"session_date": 0.0}, reading=((recall_index, "date_terms", _none),)),
    Variant("without kinds", {"kinds": 0.0}),
)
"""What each thing brings."""


@contextmanager
def changed(changes: Sequence[Change]) -> Iterator[None]:
    with ExitStack() as stack:
        for module, name, instead in changes:
            stack.enter_context(mock.patch.object(module, name, instead))
        yield


# -- what was learnt ----------------------------------------------------------------------------------


def shipped_digest() -> str:
    return digest(read_data(recall_rank.__package__, "ranking.json")).hex()[:16]


class Learnt:
    """What is fitted on every permitted set but one, each fitted once; by words alone, and with vectors."""

    def __init__(self, data: Path, vectors: KeptVectors | None, scopes: Mapping[str, int]) -> None:
        sets = {name: drawn(data, name, scopes) for name in PERMITTED}
        self._words = {name: learn_ranking.samples(scopes, None) for name, scopes in sets.items()}
        self._vectors = self._words
        if vectors is not None:
            self._vectors = {name: learn_ranking.samples(scopes, vectors) for name, scopes in sets.items()}

    def without(self, name: str) -> Ranking:
        """The weights that a set is ranked by: the package's own where it has no part in them."""
        if name not in PERMITTED:
            return ranking(shipped_digest())
        words, vectors = (
            learn_ranking.fit({other: held for other, held in pool.items() if other != name})
            for pool in (self._words, self._vectors)
        )
        return Ranking(words, vectors)


# -- searching ----------------------------------------------------------------------------------------

Found = dict[str, list[list[list[int]]]]
"""By system, for each scope and each of its questions: ordinals, best first."""


def search_all(
    scopes: Sequence[Scope], variants: Sequence[Variant], learnt: Mapping[str, Ranking], vectors: KeptVectors | None
) -> Found:
    """What every system finds for the questions of a set."""
    found: Found = {}
    for scope in scopes:
        near = None if vectors is None else Near(scope.turns, vectors)
        _add(found, "bm25", scope, plain(scope.turns))
        _add(found, "bm25_named", scope, plain(scope.turns, named=True))
        _add(found, "recipe", scope, recipe(scope.turns, near))
        usual = index_of(scope.turns)
        for variant in variants:
            made = learnt.get(variant.name, learnt["ours"])
            policy = RecallPolicy(**{"ranking": shipped_digest(), **variant.settings})
            with changed(variant.reading):
                index: MemoryIndex = index_of(scope.turns) if variant.reading else usual
            with changed(((recall_rank, "ranking", lambda _name, made=made: made),)):
                _add(found, variant.name, scope, ours(scope.turns, policy, index, near))
    return found


def _add(found: Found, system: str, scope: Scope, search: Searcher) -> None:
    found.setdefault(system, []).append([search(question) for question in scope.questions])


@contextmanager
def other_side(checkout: Path | None, job: Mapping[str, Any]) -> Iterator[Any]:
    """The search of another checkout, beside ours; what is given back tells what it found, once it is done."""
    if checkout is None:
        yield dict
        return
    with tempfile.TemporaryDirectory(prefix="muniment-pool-") as folder:
        given, answer = Path(folder) / "job.json", Path(folder) / "found.json"
        given.write_text(json.dumps(job), "utf-8")
        settings = {**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout / "src"), str(checkout)))}
        command = [sys.executable, "-m", "benchmarks.recall_pool_side", str(given), str(answer)]
        with subprocess.Popen(command, env=settings, cwd=checkout) as process:

            def finish() -> Any:
                if process.wait():
                    raise SystemExit(f"the search of {checkout} failed")
                told = json.loads(answer.read_text("utf-8"))
                if not Path(told["package"]).is_relative_to(checkout):
                    raise SystemExit(f"the package of {checkout} was not taken, but {told['package']}")
                return told["found"]

            yield finish


# -- measures -----------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A question with an answer, and what was found for it."""

    scope: Scope
    question: Question
    found: Sequence[int]

    @property
    def ids(self) -> list[str]:
        return [self.scope.turns[place].id for place in self.found]

    @property
    def sessions(self) -> list[str]:
        """The sessions that were found, each in the place of its best turn."""
        return list(dict.fromkeys(self.scope.turns[place].session for place in self.found))

    @property
    def gold_sessions(self) -> frozenset[str]:
        held = {turn.session for turn in self.scope.turns if turn.id in self.question.gold}
        return self.question.gold_sessions or frozenset(held)


def answered(scopes: Sequence[Scope], found: Sequence[Sequence[Sequence[int]]]) -> list[list[Asked]]:
    """By scope, the questions that have an answer."""
    return [
        [
            Asked(scope, question, ordinals)
            for question, ordinals in zip(scope.questions, each, strict=True)
            if question.answerable and (question.gold or question.gold_sessions)
        ]
        for scope, each in zip(scopes, found, strict=True)
    ]


def share_within(ranks: Sequence[int], depth: int) -> float:
    return sum(rank < depth for rank in ranks) / len(ranks)


def places_of(wanted: frozenset[str], ranked: Sequence[str]) -> list[int]:
    """Where each stands; beyond the end where it was not found."""
    at = {name: place for place, name in enumerate(ranked)}
    return [at.get(name, DEPTH) for name in sorted(wanted)]


def measure(name: str, scopes: Sequence[Scope], found: Sequence[Sequence[Sequence[int]]]) -> dict[str, Any]:
    """The figures of one system on one set."""
    held = [each for each in answered(scopes, found) if each]
    asked = [each for group in held for each in group]
    by_session = name == "realmem"
    ranks = {
        id(each): places_of(each.gold_sessions, each.sessions)
        if by_session
        else places_of(each.question.gold, each.ids)
        for each in asked
    }
    row: dict[str, Any] = {"questions": len(asked), "scopes": len(held)}
    row |= {f"R@{depth}": mean(share_within(ranks[id(each)], depth) for each in asked) for depth in DEPTHS}
    if not by_session:
        spent = [_within_budget(each, ranks[id(each)]) for each in asked]
        row |= {f"in_{budget}": mean(each[at] for each in spent) for at, budget in enumerate(BUDGETS)}
    tens = [[share_within(ranks[id(each)], 10) for each in group] for group in held]
    row["sd"] = round(float(np.std([np.mean(each) for each in tens])), 4)
    row["interval"] = bootstrap(tens)
    if name == "longmemeval":
        first = [(each.gold_sessions, set(each.sessions[:5])) for each in asked]
        row["sessions_any@5"] = mean(float(bool(gold & got)) for gold, got in first)
        row["sessions_all@5"] = mean(float(gold <= got) for gold, got in first)
    updated = [each for each in asked if all(each.question.newest)]
    if updated:
        row["updated"] = len(updated)
        pairs = [[min(places_of(part, each.ids)) for part in each.question.newest] for each in updated]
        row["newest_above_stale"] = mean(float(new < old) for new, old in pairs)
        row["stale_first"] = mean(float(old == 0) for _, old in pairs)
    return row


def _within_budget(asked: Asked, ranks: Sequence[int]) -> list[float]:
    turns = [asked.scope.turns[place] for place in asked.found]
    used = np.cumsum([_tokens(turn) for turn in turns])
    return [share_within(ranks, int(np.searchsorted(used, budget, "right"))) for budget in BUDGETS]


@cache
def _tokens(turn: Turn) -> float:
    return estimate_tokens(f"{turn.speaker}: {turn.text}\n")


def bootstrap(groups: Sequence[Sequence[float]]) -> list[float]:
    """95 % of the means over questions, when scopes are drawn again and again with a fixed seed."""
    sums, counts = np.array([sum(each) for each in groups]), np.array([len(each) for each in groups])
    picks: npt.NDArray[np.int64] = np.random.default_rng(SEED).integers(len(groups), size=(DRAWS, len(groups)))
    means = sums[picks].sum(axis=1) / counts[picks].sum(axis=1)
    return [round(float(each), 4) for each in np.quantile(means, (0.025, 0.975))]


def means_of(rows: Mapping[str, Mapping[str, Any]], sets: Sequence[str], system: str) -> dict[str, Any]:
    """The mean over the sets that count."""
    counted = [name for name in sets if name not in (*EASY, "realmem")]
    keys = [f"R@{depth}" for depth in DEPTHS] + [f"in_{budget}" for budget in BUDGETS]
    return {"sets": len(counted)} | {key: mean(rows[f"{name} {system}"][key] for name in counted) for key in keys}


# -- misses -------------------------------------------------------------------------------------------


def print_misses(name: str, held: Sequence[Asked], count: int) -> None:
    """Questions with gold that is not among the first ten, with what is there instead. To be read, never kept."""
    missed = []
    for each in held:
        if name == "realmem":
            ranks = dict(zip(sorted(each.gold_sessions), places_of(each.gold_sessions, each.sessions), strict=True))
        else:
            ranks = dict(zip(sorted(each.question.gold), places_of(each.question.gold, each.ids), strict=True))
        if max(ranks.values()) >= 10:
            missed.append((each, ranks))
    random.Random(SEED).shuffle(missed)
    print(f"== {name}: {len(missed)} of {len(held)} questions miss something")
    for number, (each, ranks) in enumerate(missed[:count], 1):
        print(f"\n-- {name} {number} ({each.scope.name}, {each.question.kind}): {each.question.text}")
        texts = {turn.id: f"{turn.session} {turn.speaker}: {turn.text}" for turn in each.scope.turns}
        for id_, rank in ranks.items():
            shown = texts.get(id_) or next(text for text in texts.values() if text.startswith(f"{id_} "))
            print(f"   gold at {rank if rank < DEPTH else 'nowhere'}: {_cut(shown)}")
        for place, id_ in enumerate(each.ids[:5]):
            print(f"   {place}{' (gold)' if id_ in each.question.gold else ''}: {_cut(texts[id_])}")


def _cut(text: str) -> str:
    return " ".join(text.split())[:SHOWN_CHARS]


# ------------------------------------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--embedder", default="", help="such as e5-small: every system but bm25 with vectors")
    parser.add_argument("--fitted-with", default="e5-small", help="whose vectors the ranking with vectors is fitted on")
    parser.add_argument("--only", default="", help="sets, comma-separated")
    parser.add_argument(
        "--scopes", default="", help="of some sets so many scopes, drawn with a fixed seed: qmsum=20,memdaily=20"
    )
    parser.add_argument("--before", type=Path, help="another checkout, measured as a system of its own")
    parser.add_argument("--no-ablations", action="store_true", help="leave out what each thing brings")
    parser.add_argument("--misses", type=int, default=0, help="print so many misses of each set, and write nothing")
    options = parser.parse_args(argv)
    if not (options.data / "retrieval").exists():
        sys.exit(f"no data at {options.data}: nothing was measured")
    only = set(options.only.split(",")) - {""}
    if only - set(POOL):
        sys.exit(f"no set is called {', '.join(sorted(only - set(POOL)))}: there are {', '.join(POOL)}")
    sets = [name for name in POOL if not only or name in only]
    data, before = options.data.resolve(), options.before and options.before.resolve()
    job = {"data": str(data), "sets": sets, "embedder": options.embedder, "scopes": counts_of(options.scopes)}
    variants = [OURS] if options.misses else [OURS, SHIPPED, *(() if options.no_ablations else WITHOUT)]
    rows: dict[str, dict[str, Any]] = {}
    with other_side(before, job) as finish:
        made = {name: KeptVectors(name) for name in {options.embedder, options.fitted_with}} if options.embedder else {}
        vectors = made.get(options.embedder)
        learnt = Learnt(data, made.get(options.fitted_with), counts_of(options.scopes))
        held = {name: drawn(data, name, counts_of(options.scopes)) for name in sets}
        found: dict[str, Found] = {}
        for name, scopes in held.items():
            rankings = {"ours": learnt.without(name), "shipped": ranking(shipped_digest())}
            found[name] = search_all(scopes, variants, rankings, vectors)
            print(f"{name} is searched", file=sys.stderr)
        for name, others in finish().items():
            found[name]["before"] = others
    if options.misses:
        for name, scopes in held.items():
            asked = [each for group in answered(scopes, found[name]["ours"]) for each in group]
            print_misses(name, asked, options.misses)
        return
    for name, scopes in held.items():
        for system, each in found[name].items():
            rows[f"{name} {system}"] = measure(name, scopes, each)
    for system in next(iter(found.values())):
        if any(name not in (*EASY, "realmem") for name in sets):
            rows[f"mean {system}"] = means_of(rows, sets, system)
    told = {
        "embedder": options.embedder,
        "fitted_with": options.fitted_with if options.embedder else "",
        "only": options.only,
        "scopes": options.scopes,
        "before": _commit(before) if before else "",
        "seed": SEED,
        "policy_digest": RecallPolicy(ranking=shipped_digest()).digest,
    }
    report("recall_pool", rows, told, f"recall_pool_{options.embedder}" if options.embedder else "")


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    main()
