"""Questions that go from one statement to the next, through the public face: FactConsolidation, single- and multi-hop.

    python -m benchmarks.chains [--data DIR]
    python -m benchmarks.chains --sets locomo,realtalk      does following chains change anything elsewhere?

A scope is a list of statements, of which a later one wins; every answer is one end of one statement. Rows are
`hops, size, how`: `bm25` is that of `benchmarks.reference`, `no chain` ours without following, `ours` as it is.
`answer_first` is the share of questions whose answer ends the statement that stands first, `answer_in_5` that of those
with it in one of the first five, `answer_in_512` in a packet of 512 tokens, word for word. `chain` is the share for
which one was followed, `chain_right` of all questions those whose chain ends in the answer.

The words that name one relation (`core/text/stated/data/relations.txt`) were written from general knowledge, and
mended where questions over a part of the relations failed. So multi-hop questions are told apart by the relations on
their way: `seen`, where all were in that part, and `unseen`, where at least one was not; a digest of a relation's words
decides. Those ways are found without the words of the question: the shortest from a name in it to its answer. Two dozen
of the unseen questions were read before the two were told apart, and the rules of following were chosen with all of
these lists at hand: other lists judge it.

With `--sets`, rows of sets of the pool: `changed` is the share of questions for which the first ten are not the same
with and without following, `R@5` and `R@10` with it, `no chain …` without.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import muniment
from benchmarks.data import POOL, Question, Scope, default_data, facts, pooled
from benchmarks.harness import report
from benchmarks.prompts import tell
from benchmarks.recall import index_of, mean, plain
from muniment.memory.recall.chains import chain, chained

BUDGET = 512
COMMON = 14
"""A word that so many statements have is one of a relation."""
WAY_MAX = 4
FRONT_MAX = 400


@contextmanager
def followed(is_on: bool) -> Iterator[None]:
    """With or without following chains."""
    if is_on:
        yield
        return
    with mock.patch.object(chained, "find_chain", return_value=()):
        yield


# -- which relations a question asks along ------------------------------------------------------------


_WORD = re.compile(r"[^\W_]+(?:(?:[.&-]|['’](?!s\b))[^\W_]+)*")
_SMALL = "of in by to for at on from with as is was are were be been has had the a an and or that where who s name"
_STOPS = frozenset(_SMALL.split())


class Relations:
    """What relates in a statement, told by the words that many of them have."""

    def __init__(self, statements: Sequence[str]) -> None:
        self._common = Counter(
            word for text in statements for word in set(_WORD.findall(text)[:-1]) if word[0].islower()
        )

    def of(self, statement: str) -> str:
        """The two commonest words in small letters before its end."""
        held = {word for word in _WORD.findall(statement)[:-1] if self._common[word] >= COMMON and word not in _STOPS}
        return " ".join(sorted(sorted(held, key=lambda word: (-self._common[word], word))[:2]))


class Ways:
    """The statements of a scope, and the ways that lead from one to the next."""

    def __init__(self, scope: Scope, relations: Relations) -> None:
        self._relations = relations
        self._texts = [turn.text for turn in scope.turns]
        self._index = index_of(scope.turns)
        self._all = [each for place, text in enumerate(self._texts) for each in chain._statements(place, text)]
        self._said: dict[str, list[Any]] = {}
        for each in self._all:
            for word in set(each.words):
                self._said.setdefault(word, []).append(each)
        self._about: dict[tuple[str, ...], list[Any]] = {}

    def shortest(self, question: Question) -> list[str]:
        """The relations on the shortest way from a name in the question to its answer; none where there is no way."""
        following = chain._Following(chain._Question(question.text), self._index, lambda _: (), None)
        front: list[tuple[Any, ...]] = []
        for each in self._all:
            named = following._named(each)
            if named is not None:
                front.append(((each, named[0] + named[2]),))
        for _ in range(WAY_MAX):
            right = [way for way in front if len(way) > 1 and _ends_in(way[-1][0].text, question.answers)]
            if right:
                return [self._relations.of(each.text) for each, _ in right[-1]]
            front = [after for way in front[-FRONT_MAX:] for after in self._after(way)]
        return []

    def _after(self, way: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        for end in chain._ends(*way[-1]):
            if end not in self._about:
                near = min((self._said.get(word, []) for word in end), key=len)
                places = [(each, chain._subject_at(end, each)) for each in near]
                self._about[end] = [(each, at + len(end)) for each, at in places if at is not None]
            if self._about[end]:
                yield from ((*way, each) for each in self._about[end] if all(each[0] is not one for one, _ in way))
                return


def _ends_in(statement: str, answers: Sequence[str]) -> bool:
    return any(statement.rstrip(".").endswith(f" {answer.rstrip('.')}") for answer in answers)


def is_seen(relation: str) -> bool:
    """Was the relation in sight when the words that name relations were written?"""
    return hashlib.sha256(relation.encode()).digest()[-1] % 2 == 0


def kind_of(question: Question, ways: Ways) -> str:
    relations = ways.shortest(question)
    return "no way" if not relations else "seen" if all(map(is_seen, relations)) else "unseen"


# -- measures -----------------------------------------------------------------------------------------


def measure_facts(scope: Scope, relations: Relations) -> dict[str, dict[str, Any]]:
    """Rows of one list of statements."""
    hops, size = scope.name.removeprefix("factconsolidation_").split("_")
    ways = Ways(scope, relations)
    kinds = [kind_of(question, ways) if hops == "mh" else "all" for question in scope.questions]
    texts = [turn.text for turn in scope.turns]
    found: dict[str, list[tuple[list[str], str]]] = {}
    search = plain(scope.turns)
    found["bm25"] = [([texts[at] for at in search(question)[:5]], "") for question in scope.questions]
    chains: list[bool] = []
    with muniment.open(":memory:") as mem:
        tell(mem, scope)
        run = mem.run(user_id="user", session_id="asking")
        for how in ("no chain", "ours"):
            with followed(how == "ours"):
                rows = []
                for question in scope.questions:
                    hits = run.search(question.text, k=10, now=question.now)
                    build = run.compose("responder", query=question.text, max_tokens=BUDGET, now=question.now)
                    rows.append(([hit.text for hit in hits[:5]], build.text))
                    if how == "ours":
                        chains.append(any(reason.startswith("followed from") for reason in hits[0].why))
                found[how] = rows
    made: dict[str, dict[str, Any]] = {}
    for kind in ("all", "seen", "unseen"):
        places = [place for place, each in enumerate(kinds) if kind in ("all", each)]
        if not places or (hops == "sh" and kind != "all"):
            continue
        for how, rows in found.items():
            row = _row([scope.questions[place] for place in places], [rows[place] for place in places])
            if how == "bm25":
                del row[f"answer_in_{BUDGET}"]
            if how == "ours":
                firsts = [_ends_in(rows[place][0][0], scope.questions[place].answers) for place in places]
                row["chain"] = mean(float(chains[place]) for place in places)
                row["chain_right"] = mean(
                    float(chains[place] and first) for place, first in zip(places, firsts, strict=True)
                )
            name = "" if kind == "all" else f", {kind} relations"
            made[f"{'single' if hops == 'sh' else 'multi'}-hop {size}{name}, {how}"] = row
    return made


def _row(questions: Sequence[Question], rows: Sequence[tuple[list[str], str]]) -> dict[str, Any]:
    both = list(zip(questions, rows, strict=True))
    return {
        "questions": len(questions),
        "answer_first": mean(float(_ends_in(texts[0], question.answers)) for question, (texts, _) in both),
        "answer_in_5": mean(
            float(any(_ends_in(text, question.answers) for text in texts)) for question, (texts, _) in both
        ),
        f"answer_in_{BUDGET}": mean(float(_is_told(question, packet)) for question, (_, packet) in both),
    }


def _is_told(question: Question, packet: str) -> bool:
    return any(f" {answer.rstrip('.')}" in packet for answer in question.answers)


def measure_set(scopes: Sequence[Scope], most: int) -> dict[str, Any]:
    """How following chains changes what is found on a set that asks along none."""
    changed: list[float] = []
    recalls: dict[str, tuple[list[float], list[float]]] = {"": ([], []), "no chain ": ([], [])}
    for scope in scopes:
        with muniment.open(":memory:") as mem:
            ids = tell(mem, scope)
            run = mem.run(user_id="user", session_id="asking")
            asked = (each for each in scope.questions if each.answerable and each.gold)
            for question in islice(asked, most or None):
                told = {}
                for name, shares in recalls.items():
                    with followed(not name):
                        told[name] = [hit.id for hit in run.search(question.text, k=10, now=question.now)]
                    for depth, share in zip((5, 10), shares, strict=True):
                        share.append(mean(float(ids[each] in told[name][:depth]) for each in question.gold))
                changed.append(float(len(set(map(tuple, told.values()))) > 1))
    row: dict[str, Any] = {"questions": len(changed), "changed": mean(changed)}
    return row | {f"{name}R@{depth}": mean(recalls[name][at]) for name in recalls for at, depth in enumerate((5, 10))}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--sets", default="", help="sets of the pool on which nothing should change, comma-separated")
    parser.add_argument("--questions", type=int, default=0, help="so many questions of a scope; all unless told")
    parser.add_argument("--no-facts", action="store_true", help="the sets alone")
    options = parser.parse_args(argv)
    if not (options.data / "retrieval").exists():
        sys.exit(f"no data at {options.data}: nothing was measured")
    rows: dict[str, dict[str, Any]] = {}
    if not options.no_facts:
        scopes = facts(options.data)
        longest = max(scopes, key=lambda scope: len(scope.turns))
        relations = Relations([turn.text for turn in longest.turns])
        for scope in scopes:
            rows |= measure_facts(scope, relations)
    for name in [name for name in POOL if name in options.sets.split(",")]:
        rows[f"set {name}"] = measure_set(pooled(options.data, name), options.questions)
        print(f"{name}: {rows[f'set {name}']}", file=sys.stderr)
    report("chains", rows, {"budget": BUDGET, "sets": options.sets, "questions": options.questions})


if __name__ == "__main__":
    main()
