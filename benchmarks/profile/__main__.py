"""Does a profile hold what protects its user and what they asked for lastingly?

    python -m benchmarks.profile            # the development half; writes benchmarks/results/profile.json
    python -m benchmarks.profile --missing  # and prints what the gate's first 256 tokens lack

Every arm orders the sentences of the user's own turns, and the budget is filled in that order. A statement is in if the
chosen sentences of its turn show all of its keys. Bounds are 95 % intervals from resampling stores.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import muniment
from benchmarks.data import default_data
from benchmarks.harness import report
from benchmarks.truth._arms import draft_turn
from benchmarks.truth._scoring import Context, Line, is_conveyed
from benchmarks.truth._stores import Statement, Store, load_stores
from muniment.core.outside.token_counters import load_token_counter
from muniment.core.text.sentences import sentence_spans
from muniment.memory.gate import score_sentences

BUDGETS = (128, 256, 512)
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Sentence:
    turn: str
    number: int
    """Counted over the user's turns, oldest first."""
    text: str
    tokens: int
    """With a mark and its date, as a line of a profile."""


Chosen = Callable[[Store, int], list[Line]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--missing", action="store_true", help="print what the gate's first 256 tokens lack")
    given = parser.parse_args()
    stores = load_stores("development", given.data)
    found = {
        (arm, budget): [_conveyed(store, choose(store, budget)) for store in stores]
        for arm, choose in ARMS.items()
        for budget in BUDGETS
    }
    rows: dict[str, dict[str, Any]] = {}
    for language in ["all", *sorted({store.language for store in stores})]:
        at = [number for number, store in enumerate(stores) if language in ("all", store.language)]
        for arm in ARMS:
            row = rows[f"{language}: {arm}"] = {}
            for kind, is_kind in {"in": _is_any, **_KINDS}.items():
                for budget in BUDGETS:
                    counts = [
                        {
                            id_: is_in
                            for id_, is_in in found[arm, budget][each].items()
                            if is_kind(stores[each].statements[id_])
                        }
                        for each in at
                    ]
                    row["n" if kind == "in" else f"{kind} n"] = sum(map(len, counts))
                    row[f"{kind}_{budget}"] = _share(counts)
                    row[f"{kind}_{budget}_bounds"] = _bounds(counts)
    report("profile", rows, {"stores": len(stores)})
    if given.missing:
        for store, conveyed in zip(stores, found["gate", 256], strict=True):
            for id_, is_in in conveyed.items():
                each = store.statements[id_]
                turn = next(turn for turn in store.turns if turn.id == each.turn)
                if not is_in:
                    print(f"{store.id} {id_} {each.kind}: {turn.text[each.start : each.end]}")


# -- figures


_KINDS: dict[str, Callable[[Statement], bool]] = {
    "safety": lambda each: each.kind == "safety",
    "others' safety": lambda each: each.kind != "safety" and each.is_safety,
    "wish": lambda each: each.kind == "wish",
}


def _conveyed(store: Store, lines: Sequence[Line]) -> dict[str, bool]:
    """Which of the statements that a profile should hold are in some lines, themselves or by an echo."""
    users = {turn.id for turn in store.turns if turn.role == "user"}
    context = Context(tuple(lines), 0, 0)
    shown = {each.id for each in store.statements.values() if is_conveyed(store, each, context)}
    shown |= {each.of for each in store.statements.values() if each.of and each.id in shown}
    return {each.id: each.id in shown for each in store.statements.values() if each.turn in users and _is_any(each)}


def _is_any(statement: Statement) -> bool:
    return any(is_kind(statement) for is_kind in _KINDS.values())


def _share(counts: Sequence[dict[str, bool]]) -> float | None:
    total = sum(map(len, counts))
    return round(sum(sum(each.values()) for each in counts) / total, 3) if total else None


def _bounds(counts: Sequence[dict[str, bool]]) -> list[float] | None:
    """None where a single store has any: there is nothing to resample."""
    counts = [each for each in counts if each]
    if len(counts) < 2:
        return None
    random = Random(1)
    shares = sorted(_share(random.choices(counts, k=len(counts))) or 0.0 for _ in range(_RESAMPLES))
    return [shares[_RESAMPLES // 40], shares[-_RESAMPLES // 40]]


# -- arms


def _ranked(order: Callable[[list[Sentence]], list[Sentence]]) -> Chosen:
    def choose(store: Store, budget: int) -> list[Line]:
        left = budget
        lines = []
        for each in order(_sentences(store)):
            if each.tokens <= left:
                left -= each.tokens
                lines.append(Line(each.text, (each.turn,), each.tokens))
        return lines

    return choose


def _newest(sentences: list[Sentence]) -> list[Sentence]:
    return sentences[::-1]


_FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|i've|i'd|me|my|mine|we|our|us|ich|mir|mich|mein\w*|wir|uns|unser\w*|je|j|moi|mon|ma|mes|nous|notre"
    r"|yo|mí?|mis|nosotr\w+|nuestr\w+|eu|meus?|minhas?|mim|io|mi[oae]i?|ik|mij|mijn|wij|ons|onze)\b"
    r"|我|私|僕|俺|うち|저|제가|나는|내가|우리",
    re.IGNORECASE,
)


def _first_person(sentences: list[Sentence]) -> list[Sentence]:
    return sorted(_newest(sentences), key=lambda each: _FIRST_PERSON.search(each.text) is None)


def _gate(sentences: list[Sentence]) -> list[Sentence]:
    scores = score_sentences([each.text for each in sentences])
    worth = {each.number: max(scored.safety, scored.wish) for each, scored in zip(sentences, scores, strict=True)}
    return sorted(_newest(sentences), key=lambda each: -worth[each.number])


def _profile(store: Store, budget: int) -> list[Line]:
    mem, turn_of = _memory(store)
    profile = mem.profile(user_id=store.user, max_tokens=budget)
    return [Line(line.text, (turn_of[line.event_id],), line.tokens) for line in profile.lines]


_MEMORIES: dict[str, tuple[Any, dict[str, str]]] = {}


def _memory(store: Store) -> tuple[Any, dict[str, str]]:
    """A store of its turns, kept for the next budget, and the turn of each event."""
    if store.id not in _MEMORIES:
        now = datetime.fromisoformat(store.now)
        mem = muniment.open(":memory:", clock=lambda: now)
        turn_of: dict[str, str] = {}
        for session in dict.fromkeys(turn.session for turn in store.turns):
            turns = [turn for turn in store.turns if turn.session == session]
            entries = mem.run(user_id=store.user, session_id=session).observe_many(map(draft_turn, turns))
            turn_of |= {entry.id: turn.id for turn, entry in zip(turns, entries, strict=True)}
        _MEMORIES[store.id] = mem, turn_of
    return _MEMORIES[store.id]


ARMS: dict[str, Chosen] = {
    "newest": _ranked(_newest),
    "first person": _ranked(_first_person),
    "gate": _ranked(_gate),
    "profile": _profile,
}


def _sentences(store: Store) -> list[Sentence]:
    count = load_token_counter().count
    return [
        Sentence(turn.id, number, text, count(f"[99] {turn.ts[:10]}: {text}\n"))
        for number, (turn, text) in enumerate(_texts(store))
    ]


def _texts(store: Store) -> Iterator[tuple[Any, str]]:
    for turn in store.turns:
        if turn.role == "user":
            for start, end in sentence_spans(turn.text):
                yield turn, turn.text[start:end]


if __name__ == "__main__":
    main()
