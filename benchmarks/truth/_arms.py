"""The arms that are scored: the product, and baselines that anybody could write in an hour."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any

import muniment
from benchmarks.truth._scoring import Addition, Context, Line
from benchmarks.truth._stores import Request, Store, Turn
from muniment.core.outside.token_counters import load_token_counter

__all__ = ["ARMS", "OPTIONAL_ARMS", "Arm", "Asker", "draft_turn"]

Asker = Callable[[Request, int], Context]
"""The context for a request within a budget of tokens."""
Arm = Callable[[Store], Any]
"""A context manager that gives an `Asker` for a store."""


@contextmanager
def newest_first(store: Store) -> Iterator[Asker]:
    """The user's own turns, newest first, until the budget is full; shown oldest first."""
    own = [(turn, _transcript_line(turn)) for turn in store.turns if turn.role == "user"]

    def ask(_: Request, budget: int) -> Context:
        chosen: list[Line] = []
        left = budget
        for _turn, line in reversed(own):
            if line.tokens <= left:
                chosen.append(line)
                left -= line.tokens
        return Context(tuple(reversed(chosen)), budget - left, 0)

    yield ask


@contextmanager
def everything(store: Store) -> Iterator[Asker]:
    """The whole transcript, whatever the budget."""
    lines = tuple(_transcript_line(turn) for turn in store.turns)
    tokens = sum(line.tokens for line in lines)
    yield lambda _request, _budget: Context(lines, tokens, 0)


def _transcript_line(turn: Turn) -> Line:
    return Line(turn.text, (turn.id,), _count(f"[1] {turn.ts[:10]} {turn.speaker or turn.role}: {turn.text}\n"))


@cache
def _count(text: str) -> int:
    return load_token_counter().count(text)


@contextmanager
def composed(store: Store, *, is_extracted: bool = False, embedder: str | None = None) -> Iterator[Asker]:
    """`run.compose` with default settings, each request in a session of its own, a follow-up in the last one."""
    now = datetime.fromisoformat(store.now)
    with muniment.open(":memory:", clock=lambda: now, embedder=embedder) as mem:
        turn_of: dict[str, str] = {}
        for session in dict.fromkeys(turn.session for turn in store.turns):
            run = mem.run(user_id=store.user, session_id=session)
            turns = [turn for turn in store.turns if turn.session == session]
            for turn, entry in zip(turns, run.observe_many(map(draft_turn, turns)), strict=True):
                turn_of[entry.id] = turn.id
            if is_extracted:
                run.extract()
        if embedder is not None:
            mem.store.index()

        def ask(request: Request, budget: int) -> Context:
            session = store.turns[-1].session if request.kind == "follow_up" else f"request {request.id}"
            run = mem.run(user_id=store.user, session_id=session)
            build = run.compose(request.purpose, query=request.text, max_tokens=budget, now=now)
            return _read_build(build, turn_of)

        yield ask


@contextmanager
def extracted(store: Store) -> Iterator[Asker]:
    """`composed` after `run.extract()` has read every session by rules."""
    with composed(store, is_extracted=True) as ask:
        yield ask


@contextmanager
def with_e5_small(store: Store) -> Iterator[Asker]:
    """`composed` with search by meaning."""
    with composed(store, embedder="e5-small") as ask:
        yield ask


ARMS: dict[str, Arm] = {
    "composed": composed,
    "composed after extract": extracted,
    "own turns, newest first": newest_first,
    "everything": everything,
}
OPTIONAL_ARMS: dict[str, Arm] = {"composed with e5-small": with_e5_small}
"""Those that need more than the project: asked for by name."""


def draft_turn(turn: Turn) -> dict[str, Any]:
    draft: dict[str, Any] = {"role": turn.role, "content": turn.text, "ts": turn.ts}
    if turn.role == "tool":
        draft["metadata"] = {"tool": turn.tool or "tool"}
    if turn.speaker:
        draft["speaker"] = turn.speaker
    return draft


# -- a build as lines that cite turns

_MARKS = re.compile(r"\[(\d+)\]")
_DAY_NOTE = re.compile(r"([^;|]+?) ?\(= ([^)]+)\)")
_NOTES = re.compile(r" \| [^|]*\(= [^)]+\)\s*$| \([^()]*superseded[^()]*\)")
_WHO = re.compile(r"^(?:\[\d+\] ?)*[^:\[\]]{1,40}: ")


def _read_build(build: Any, turn_of: dict[str, str]) -> Context:
    marked = {int(number): turn_of[id_] for number, id_ in build.marks.items() if id_ in turn_of}
    lines: list[Line] = []
    additions: list[Addition] = []
    frame = 0
    turns: tuple[str, ...] = ()
    for text in build.text.split("\n"):
        tokens = _count(f"{text}\n")
        found = tuple(marked[number] for number in map(int, _MARKS.findall(text)) if number in marked)
        is_heading = text.startswith("## ") or (text.endswith(":") and not found) or not text.strip()
        if is_heading or (not found and not turns):
            turns = ()
            frame += tokens
            continue
        turns = found or turns  # a quote of several lines is marked at its first
        shown = _MARKS.sub("", _NOTES.sub("", text))
        lines.append(Line(_WHO.sub("", shown), turns, tokens))
        additions.extend(_notes_of(text, turns))
    for fact in build.packet.long_term.facts:
        sources = tuple(turn_of[id_] for id_ in fact.sources if id_ in turn_of)
        additions.append(Addition("fact", sources, str(fact.value), fact.fact_key))
    says_nothing = not build.found
    return Context(tuple(lines), build.tokens, frame, says_nothing, tuple(additions))


def _notes_of(text: str, turns: tuple[str, ...]) -> Iterator[Addition]:
    body, _, notes = text.rpartition(" | ")
    if body:
        for about, means in _DAY_NOTE.findall(notes):
            yield Addition("day", turns, means, about.strip())
    if "superseded" in text and re.search(r"\([^()]*superseded[^()]*\)", text):
        yield Addition("mark", turns, "", _WHO.sub("", _MARKS.sub("", text)))
