"""What a prompt holds, set by set: gold at four budgets, tokens, what nothing answers, the prefix that is kept.

A sample of each set's questions by a fixed seed, asked of whole histories through the public face. Beside it stands
plain BM25 with its best turns until the budget is full, in the same run. Used by `benchmarks.prompts`.

- `gold_N`: the share of gold turns (`realmem`: gold sessions) that the packet of N tokens cites, quoted whole or cut;
  `whole_N`: that it quotes word for word, from the first to the last (days that the page resolves are not counted).
- `tokens_N`: what the packets took on average. `bm25_N`, `bm25_tokens_N`: the same of the reference.
- `unanswerable_recognised`: of the questions that nothing answers, those where `build.found` is false;
  `answerable_refused`: of the others, those where it is false as well.
- `prefix_share`: of a packet's bytes, how many stand at its start as they stood in the packet before it, when a
  session goes on and a packet is composed after every few turns, with the last one as query.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import groupby, takewhile
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import muniment
from benchmarks.data import Question, Scope, Turn, pooled
from benchmarks.reference import Plain
from muniment.core.outside.token_counters import load_token_counter
from muniment.packets.builds import Build

__all__ = ["BUDGETS", "measure_set", "quotes_of"]

BUDGETS = (256, 512, 1024, 2048)
MAIN = 1024
"""The budget at which abstention and the prefix are looked at."""
STEP, STEPS = 4, 6
"""A packet after every so many turns of a session, and how many."""
SESSIONS_MAX = 3
"""Sessions of a set that are followed turn by turn."""
PURPOSES = ("responder", "planner")


class Asked(NamedTuple):
    """What came of one question at one budget."""

    gold: float
    whole: float
    tokens: int
    found: bool
    bm25_gold: float
    bm25_tokens: int


Answers = dict[int, Asked]


def measure_set(data: Path, name: str, questions_max: int, seed: int = 11) -> dict[str, Any]:
    """One row of the table."""
    scopes = pooled(data, name)
    chosen = _sampled(scopes, questions_max, Random(seed))
    rows: list[tuple[str, Question, Answers]] = []
    shares: dict[str, list[float]] = {purpose: [] for purpose in PURPOSES}
    followed = 0
    for scope in scopes:
        if asked := chosen.get(scope.name):
            follow = followed < SESSIONS_MAX
            with muniment.open(":memory:") as mem:
                rows += [(scope.name, *row) for row in _ask(mem, scope, asked, shares if follow else None)]
            followed += follow
    return _row(rows) | {
        f"prefix_share_{purpose}": round(statistics.fmean(found), 4) for purpose, found in shares.items() if found
    }


def _sampled(scopes: Sequence[Scope], count: int, random: Random) -> dict[str, list[Question]]:
    """Up to `count` answerable questions and as many that nothing answers, by scope and in the order they stand."""
    every = [(scope.name, place) for scope in scopes for place in range(len(scope.questions))]
    by_name = {scope.name: scope for scope in scopes}
    taken: set[tuple[str, int]] = set()
    for answerable in (True, False):
        fit = [each for each in every if by_name[each[0]].questions[each[1]].answerable is answerable]
        taken.update(random.sample(fit, min(count, len(fit))))
    kept: dict[str, list[Question]] = {}
    for name, place in every:
        if (name, place) in taken:
            kept.setdefault(name, []).append(by_name[name].questions[place])
    return kept


# -- one history --------------------------------------------------------------------------------------


def _ask(
    mem: muniment.Memory, scope: Scope, asked: Sequence[Question], shares: Mapping[str, list[float]] | None
) -> Iterator[tuple[Question, Answers]]:
    """Tell a history and ask; a question that is asked inside it is asked before the session it is asked in."""
    sessions = {name: list(turns) for name, turns in groupby(scope.turns, key=lambda turn: turn.session)}
    ids: dict[str, str] = {}
    told: list[Turn] = []
    asked_in = {name: [each for each in asked if each.asked_in == name] for name in sessions}
    last = list(sessions)[-1]
    for name, turns in sessions.items():
        for question in asked_in[name]:
            yield question, _answers(mem, question, told, ids)
        if name == last and shares is not None and len(turns) >= 2 * STEP:
            _follow(mem, name, turns, ids, shares)
        else:
            _observe(mem, name, turns, ids)
        told += turns
    for question in asked:
        if not question.asked_in:
            yield question, _answers(mem, question, told, ids)


def _observe(mem: muniment.Memory, session: str, turns: Sequence[Turn], ids: dict[str, str]) -> None:
    run = mem.run(user_id="user", session_id=f"session-{session}")
    events = [
        {"role": turn.role, "speaker": turn.speaker or None, "content": turn.text, "ts": turn.said_at}
        for turn in turns
        if turn.text.strip()
    ]
    entries = iter(run.observe_many(events))
    ids.update((turn.id, next(entries).id) for turn in turns if turn.text.strip())


def _follow(
    mem: muniment.Memory, session: str, turns: Sequence[Turn], ids: dict[str, str], shares: Mapping[str, list[float]]
) -> None:
    """Tell a session step by step, composing as it goes on."""
    before: dict[str, bytes] = {}
    run = mem.run(user_id="user", session_id=f"session-{session}")
    for start in range(0, len(turns), STEP):
        part = turns[start : start + STEP]
        _observe(mem, session, part, ids)
        if start >= STEP * STEPS:
            continue
        now = part[-1].said_at + timedelta(seconds=1)
        for purpose, found in shares.items():
            build = run.compose(purpose, query=part[-1].text[:2000], max_tokens=MAIN, now=now)
            text = build.text.encode()
            if (old := before.get(purpose)) is not None and text:
                found.append(sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, text))) / len(text))  # noqa: B905
            before[purpose] = text


def _answers(mem: muniment.Memory, question: Question, told: Sequence[Turn], ids: Mapping[str, str]) -> Answers:
    run = mem.run(user_id="user", session_id="asking")
    texts = {turn.id: turn for turn in told}
    sessions = {ids[turn.id]: turn.session for turn in told if turn.id in ids}
    ranked = _reference(question, told)
    found = {}
    for budget in BUDGETS:
        build = run.compose("responder", query=question.text, max_tokens=budget, now=question.now)
        cited = {citation.id for citation in build.packet.citations}
        taken, spent = _until_full(ranked, budget)
        if question.gold_sessions and not question.gold:
            gold = question.gold_sessions & set(sessions.values())
            told_of = {sessions[each] for each in cited if each in sessions}
            whole, held = told_of, {turn.session for turn in taken}
        else:
            gold = question.gold
            told_of = {each for each in gold if ids.get(each) in cited}
            quotes = quotes_of(build)
            whole = {each for each in told_of if texts[each].text.strip() in quotes.get(ids[each], "")}
            held = {turn.id for turn in taken}
        found[budget] = Asked(
            _part(gold, told_of),
            _part(gold, whole),
            build.tokens,
            getattr(build, "found", True),
            _part(gold, held),
            spent,
        )
    return found


def quotes_of(build: Build) -> dict[str, str]:
    """What a packet quotes, by evidence: its own words, without the days that the page resolves in them."""
    quotes: dict[str, str] = {}
    for each in build.packet.short_term.key_quotes or ():
        quotes[each.evidence_id] = f"{quotes.get(each.evidence_id, '')}{each.quote}\n"
    return quotes


def _part(gold: frozenset[str], held: Iterable[str]) -> float:
    return len(gold.intersection(held)) / len(gold) if gold else 0.0


# -- the reference ------------------------------------------------------------------------------------

_COUNTER = load_token_counter()
_INDEXES: dict[int, tuple[Sequence[Turn], int, Plain]] = {}


def _reference(question: Question, told: Sequence[Turn]) -> list[Turn]:
    """The turns by plain BM25, best first; the index of a history is made once, as long as it does not grow."""
    known = _INDEXES.get(id(told))
    if known is None or known[0] is not told or known[1] != len(told):
        _INDEXES.clear()
        known = _INDEXES[id(told)] = (told, len(told), Plain(told))
    scores = known[2].scores(question.text)
    best = np.argsort(-scores, kind="stable")[:100]
    return [told[place] for place in best if scores[place] > 0]


def _until_full(ranked: Sequence[Turn], budget: int) -> tuple[list[Turn], int]:
    """Turns from the best on, as a line each; the last one is cut at what is left."""
    taken: list[Turn] = []
    spent = 0
    for turn in ranked:
        if spent >= budget:
            break
        spent = min(budget, spent + _COUNTER.count(f"{turn.speaker or turn.role}: {turn.text}\n"))
        taken.append(turn)
    return taken, spent


# -- the row ------------------------------------------------------------------------------------------


def _row(rows: Sequence[tuple[str, Question, Answers]]) -> dict[str, Any]:
    able = [(name, answers) for name, question, answers in rows if question.answerable]
    unable = [answers for _, question, answers in rows if not question.answerable]

    def mean(field: str, budget: int) -> float:
        return round(statistics.fmean(getattr(answers[budget], field) for _, answers in able), 4)

    by_scope: dict[str, list[float]] = {}
    for name, answers in able:
        by_scope.setdefault(name, []).append(answers[MAIN].gold)
    means = [statistics.fmean(each) for each in by_scope.values()]
    row: dict[str, Any] = {"questions": len(able), "scopes": len(means), "unanswerable": len(unable)}
    for budget in BUDGETS:
        row |= {f"gold_{budget}": mean("gold", budget), f"tokens_{budget}": round(mean("tokens", budget))}
        row[f"whole_{budget}"] = mean("whole", budget)
        row |= {
            f"bm25_{budget}": mean("bm25_gold", budget),
            f"bm25_tokens_{budget}": round(mean("bm25_tokens", budget)),
        }
    row["spread_1024"] = round(statistics.stdev(means), 4) if len(means) > 1 else 0.0
    row["answerable_refused"] = round(1 - mean("found", MAIN), 4)
    if unable:
        row["unanswerable_recognised"] = round(statistics.fmean(not answers[MAIN].found for answers in unable), 4)
    return row
