"""The prompts of the bench of answers: what a model is told of a history, arm by arm, and the question.

Every arm has the same line that tells how to answer; what differs is what stands behind it in the system message:

- `nothing`; `gold`: the turns that answer it, in the order they were said; `whole`: all turns, if they fit;
- `bm25 N`: turns by plain BM25, best first, until N tokens are full; `vectors N`: turns by the cosine of their
  embeddings, as mem0 (infer off) and LangGraph's store answer a search. Each turn is a line with its day and speaker,
  which those two tell only where the application puts it there;
- `ours N`: the packet for a responder, `to_openai(cite=False)`; `ours 512 citing`: with the reminder to cite.

Stored results also have arms named `wording …`: packets in other words, as decision 0017 compared them.

A prompt's key is the hash of what the model reads, so that an answer is used wherever the same prompt stands.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

import muniment
from benchmarks.answers_sets import asked_of
from benchmarks.data import Question, Scope, Turn
from benchmarks.reference import Plain
from muniment.core.outside.token_counters import load_token_counter
from muniment.packets.builds import Build

__all__ = ["INSTRUCTION", "Near", "Prompt", "prompts_of", "read_prompts", "write_prompts"]

INSTRUCTION = "Answer the question with a short phrase."
BUDGETS = (256, 512, 1024)
MAIN, WIDER = 512, 1024
NEW_TOKENS, NEW_TOKENS_CITING = 48, 96
WHOLE_TOKENS_MAX = 28_000
WHOLE_EVERY = 3
"""One question of so many is asked of the whole conversation: it costs as much as forty others."""
_COUNTER = load_token_counter()


class Near(Protocol):
    """Vectors of texts, of length one."""

    def of_query(self, text: str) -> npt.NDArray[np.float32]: ...

    def of_passages(self, texts: Sequence[str]) -> npt.NDArray[np.float32]: ...


class Prompt(NamedTuple):
    """What is asked in one arm, and what is known of it without the model."""

    set: str
    scope: str
    question: str
    """Its id."""
    arm: str
    system: str
    user: str
    max_new_tokens: int
    stage: int
    """What is asked first: 0, the arms; 2, the whole conversation."""
    told: list[str]
    """The ids of the turns that stand in it."""
    marks: dict[str, str]
    """What each mark in it refers to, by turn id."""
    found: bool
    """Does the packet say that memory holds something on this? True in arms that say nothing of it."""

    @property
    def key(self) -> str:
        told = json.dumps([self.system, self.user, self.max_new_tokens], ensure_ascii=False)
        return hashlib.sha256(told.encode()).hexdigest()[:24]


def write_prompts(path: Path, prompts: Iterator[Prompt]) -> int:
    """One line each; how many they are. The same prompts make the same bytes."""
    count = 0
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as out:
        for prompt in prompts:
            row = {"key": prompt.key, **prompt._asdict()}
            out.write((json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n").encode())
            count += 1
    return count


def read_prompts(path: Path) -> Iterator[Prompt]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            row.pop("key")
            yield Prompt(**row)


def prompts_of(data: Path, name: str, *, near: Near | None, has_whole: bool, limit: int = 0) -> Iterator[Prompt]:
    """All prompts of a set, history by history; with `limit`, of no more than so many questions of each history."""
    for scope in asked_of(data, name).scopes:
        with muniment.open(":memory:") as mem:
            ids = _observe(mem, scope)
            history = _History(name, scope, mem, ids, near)
            for place, question in enumerate(scope.questions[: limit or None]):
                yield from _asked(history, question, has_whole=has_whole and place % WHOLE_EVERY == 0)


# -- a history ----------------------------------------------------------------------------------------


def _observe(mem: muniment.Memory, scope: Scope) -> dict[str, str]:
    """Tell a history, session by session; event id → turn id."""
    ids: dict[str, str] = {}
    for session, group in groupby(scope.turns, key=lambda turn: turn.session):
        turns = [turn for turn in group if turn.text.strip()]
        run = mem.run(user_id="user", session_id=f"session-{session}")
        events = [
            {"role": turn.role, "speaker": turn.speaker or None, "content": turn.text, "ts": turn.said_at}
            for turn in turns
        ]
        ids |= {entry.id: turn.id for turn, entry in zip(turns, run.observe_many(events), strict=True)}
    return ids


class _History:
    """A history that was told, and the reference's indexes of it."""

    def __init__(
        self, name: str, scope: Scope, mem: muniment.Memory, ids: Mapping[str, str], near: Near | None
    ) -> None:
        self.name, self.scope, self.ids = name, scope, ids
        self._mem = mem
        self.turns = [turn for turn in scope.turns if turn.text.strip()]
        self._plain = Plain(self.turns)
        self._near = near
        self._vectors = None if near is None else near.of_passages([turn.text for turn in self.turns])

    def compose(self, question: Question, budget: int) -> Build:
        """In a session of its own, so that marks begin with 1."""
        run = self._mem.run(user_id="user", session_id=f"asking-{question.id}-{budget}")
        return run.compose("responder", query=question.text, max_tokens=budget, now=question.now)

    def by_words(self, question: Question) -> list[Turn]:
        return self._ranked(self._plain.scores(question.text))

    def by_vectors(self, question: Question) -> list[Turn] | None:
        if self._near is None or self._vectors is None:
            return None
        return self._ranked(self._vectors @ self._near.of_query(question.text))

    def _ranked(self, scores: npt.NDArray[Any]) -> list[Turn]:
        best = np.argsort(-scores, kind="stable")[:200]
        return [self.turns[place] for place in best if scores[place] > 0]


# -- the arms -----------------------------------------------------------------------------------------


def _asked(history: _History, question: Question, *, has_whole: bool) -> Iterator[Prompt]:
    def prompt(arm: str, context: str, turns: Sequence[Turn], stage: int = 0) -> Prompt:
        system = f"{INSTRUCTION}\n\n{context}" if context else INSTRUCTION
        told_ids = [turn.id for turn in turns]
        return _prompt(history, question, arm, system, question.text, stage=stage, told_ids=told_ids)

    yield prompt("nothing", "", ())
    ranked = {"bm25": history.by_words(question), "vectors": history.by_vectors(question)}
    for name, turns in ranked.items():
        if turns is not None:
            for budget in (MAIN, WIDER):
                text, taken = _until_full(turns, budget)
                yield prompt(f"{name} {budget}", text, taken)
    if question.gold:
        golden = [turn for turn in history.turns if turn.id in question.gold]
        yield prompt("gold", "".join(map(_line, golden)), golden)
    if has_whole:
        text = "".join(map(_line, history.turns))
        if _COUNTER.count(text) <= WHOLE_TOKENS_MAX:
            yield prompt("whole", text, history.turns, stage=2)
    for budget in BUDGETS:
        build = history.compose(question, budget)
        yield _ours(history, question, f"ours {budget}", build, cite=False)
        if budget == MAIN:
            yield _ours(history, question, f"ours {budget} citing", build, cite=True)


def _ours(history: _History, question: Question, arm: str, build: Build, *, cite: bool) -> Prompt:
    """What the product itself says, behind the line that tells how to answer."""
    messages = {each["role"]: each["content"] for each in build.to_openai(cite=cite)}
    system = f"{INSTRUCTION}\n\n{messages['system']}" if "system" in messages else INSTRUCTION
    return _prompt(history, question, arm, system, messages["user"], build=build, is_citing=cite)


def _prompt(
    history: _History,
    question: Question,
    arm: str,
    system: str,
    user: str,
    *,
    stage: int = 0,
    told_ids: Sequence[str] = (),
    build: Build | None = None,
    is_citing: bool = False,
) -> Prompt:
    marks = (
        {} if build is None else {number: history.ids[id_] for number, id_ in build.marks.items() if id_ in history.ids}
    )
    return Prompt(
        history.name,
        history.scope.name,
        question.id,
        arm,
        system,
        user,
        NEW_TOKENS_CITING if is_citing else NEW_TOKENS,
        stage,
        list(told_ids) if build is None else sorted(set(marks.values())),
        marks,
        True if build is None else build.found,
    )


# -- lines of the reference ---------------------------------------------------------------------------


def _line(turn: Turn) -> str:
    return f"- {turn.said_at.day} {turn.said_at:%B %Y}, {turn.speaker or turn.role}: {turn.text}\n"


def _until_full(ranked: Sequence[Turn], budget: int) -> tuple[str, list[Turn]]:
    """Turns from the best on; the last one is cut at what is left."""
    lines: list[str] = []
    taken: list[Turn] = []
    left = budget
    for turn in ranked:
        line = _line(turn)
        size = _COUNTER.count(line)
        if size > left:
            line = _cut(line, left)
        if line:
            lines.append(line)
            taken.append(turn)
        if size >= left:
            break
        left -= size
    return "".join(lines), taken


def _cut(line: str, tokens: int) -> str:
    """As many of its first characters as take no more tokens."""
    low, high = 0, len(line)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _COUNTER.count(line[:middle]) <= tokens else (low, middle - 1)
    return f"{line[:low].rstrip()}\n" if line[:low].strip() else ""
