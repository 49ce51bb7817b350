"""Score one context (what is handed to a model) against the labels of a store and a request."""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from difflib import SequenceMatcher
from typing import Literal

from benchmarks.truth._stores import Request, Statement, Store

__all__ = ["Addition", "Context", "Line", "Score", "score"]

_FREE_SHARE = 0.15
_OWN_TRUE = ("safety", "wish", "current")
_NOISE = ("filler", "echo")
_PIECE_MIN = 6
"""Shorter matches between a line and its turn are chance."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the context, without its marks, and the turns that it cites."""

    text: str
    turns: tuple[str, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Addition:
    """Something that the composer adds to people's own words."""

    kind: Literal["fact", "day", "mark"]
    turns: tuple[str, ...]
    text: str
    """A fact's value; what a day note says that the expression means; empty for a mark."""
    about: str = ""
    """A fact's key; the expression that a day note explains; the marked words."""


@dataclass(frozen=True, slots=True)
class Context:
    lines: tuple[Line, ...]
    tokens: int
    frame_tokens: int
    """Headings, dates and marks: neither needed nor noise."""
    says_nothing: bool = False
    """It says, or its build says, that memory holds no answer."""
    additions: tuple[Addition, ...] = ()


@dataclass(slots=True)
class Score:
    missing: list[tuple[str, ...]] = field(default_factory=list)
    has_room: bool = False
    """At least 15 % of the budget is free."""
    crucial: int = 0
    helpful: int = 0
    helpful_conveyed: int = 0
    stale_alone: list[str] = field(default_factory=list)
    tokens: int = 0
    frame_tokens: int = 0
    noise: float = 0.0
    denies_an_answer: bool = False
    additions: list[tuple[str, bool | None]] = field(default_factory=list)
    """Class of the addition; right, wrong, or not judged by the labels."""


def score(store: Store, request: Request, context: Context, budget: int) -> Score:
    conveyed = {each.id for each in store.statements.values() if is_conveyed(store, each, context)}
    conveyed |= {each.of for each in store.statements.values() if each.of and each.id in conveyed}
    found = Score(tokens=context.tokens, frame_tokens=context.frame_tokens)
    found.missing = [group for group in request.crucial if not conveyed.intersection(group)]
    found.has_room = context.tokens <= (1 - _FREE_SHARE) * budget
    found.crucial = len(request.crucial)
    found.helpful = len(request.helpful)
    found.helpful_conveyed = sum(bool(conveyed.intersection(group)) for group in request.helpful)
    found.stale_alone = sorted(_stale_alone(store, request, conveyed))
    found.noise = _noise_tokens(store, request, context)
    found.denies_an_answer = context.says_nothing and bool(request.crucial)
    found.additions = [(each.kind, _is_right(store, each)) for each in context.additions]
    return found


# -- what is conveyed


def is_conveyed(store: Store, statement: Statement, context: Context) -> bool:
    """Whether lines that cite the statement's turn show all its keys, or the whole of it where it has none."""
    words = " ".join(line.text for line in context.lines if statement.turn in line.turns)
    if not words:
        return False
    shown = _folded(words)
    turn = next(turn for turn in store.turns if turn.id == statement.turn)
    wanted = statement.keys or (turn.text[statement.start : statement.end],)
    return all(_folded(key) in shown for key in wanted)


def _stale_alone(store: Store, request: Request, conveyed: set[str]) -> Iterator[str]:
    """Replaced statements that are conveyed without what replaced them in the end."""
    pairs = dict(request.newer)
    for each in store.statements.values():
        newest = store.newest_of(each.id) | ({pairs[each.id]} if each.id in pairs else set())
        if each.id in conveyed and newest and not newest & conveyed:
            yield each.id


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


# -- noise


def _noise_tokens(store: Store, request: Request, context: Context) -> float:
    """Tokens that are filler, echo, repetition or the query.

    A verbatim line is noise where its words lie outside of every labelled statement, inside an echo or filler, or in a
    stretch that was shown before. A line in other words is noise unless it conveys a statement for the first time.
    """
    shown: dict[str, set[int]] = {}
    noise = 0.0
    query = _squeezed(request.text)
    for line in context.lines:
        text = _squeezed(line.text)
        if not text:
            continue
        if len(query) >= _PIECE_MIN and query in text:
            noise += line.tokens * len(query) / len(text)
            continue
        found = {
            turn.id: (_matched_places(text, _squeezed(turn.text)), _useful_places(store, turn.id, turn.text))
            for turn in store.turns
            if turn.id in line.turns
        }
        matched = sum(len(places) for places, _ in found.values())
        if matched < len(text) / 2:
            noise += 0 if _conveys_something_new(store, line, shown) else line.tokens
            continue
        for id_, (places, worth) in found.items():
            seen = shown.setdefault(id_, set())
            noise += line.tokens * len(places - (worth - seen)) / len(text)
            seen |= places
    return noise


def _useful_places(store: Store, turn: str, text: str) -> set[int]:
    """Positions of the squeezed text that lie in a statement worth something."""
    places: set[int] = set()
    for each in store.statements.values():
        if each.turn == turn and each.kind not in _NOISE:
            start = len(_squeezed(text[: each.start]))
            places.update(range(start, start + len(_squeezed(text[each.start : each.end]))))
    return places


def _conveys_something_new(store: Store, line: Line, shown: dict[str, set[int]]) -> bool:
    context = Context((line,), line.tokens, 0)
    text_of = {turn.id: turn.text for turn in store.turns}
    is_new = False
    for each in store.statements.values():
        if each.turn in line.turns and each.kind not in _NOISE and each.keys and is_conveyed(store, each, context):
            start = len(_squeezed(text_of[each.turn][: each.start]))
            seen = shown.setdefault(each.turn, set())
            is_new = is_new or start not in seen
            seen.update(range(start, start + len(_squeezed(text_of[each.turn][each.start : each.end]))))
    return is_new


def _matched_places(line: str, turn: str) -> set[int]:
    """Positions of the turn that the line shows."""
    at = turn.find(line)
    if at >= 0:
        return set(range(at, at + len(line)))
    places: set[int] = set()
    for block in SequenceMatcher(None, line, turn, autojunk=False).get_matching_blocks():
        if block.size >= _PIECE_MIN:
            places.update(range(block.b, block.b + block.size))
    return places


def _squeezed(text: str) -> str:
    """Letters and digits alone, so that spaces, marks and punctuation cost nothing."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", text).casefold())


# -- additions


def _is_right(store: Store, addition: Addition) -> bool | None:
    """Whether an addition is right by the labels; None where they do not decide."""
    if addition.kind == "day":
        return _is_right_day(store, addition)
    text_of = {turn.id: turn.text for turn in store.turns}
    near = [each for each in store.statements.values() if each.turn in addition.turns]
    if addition.kind == "mark":
        words = _squeezed(addition.about)
        marked = [each for each in near if _squeezed(text_of[each.turn][each.start : each.end]) in words]
        if not marked:
            return None
        return any(each.kind in ("stale", "over", "wrong") or store.newest_of(each.id) for each in marked)
    value = _squeezed(addition.text)
    holding = [each for each in near if value in _squeezed(text_of[each.turn][each.start : each.end])]
    if not holding:
        return False if value else None
    if not any(each.kind in _OWN_TRUE for each in holding):
        return None if any(each.kind == "other" for each in holding) else False
    keys = [_squeezed(key) for each in holding for key in each.keys]
    return True if any(value in key or key in value for key in keys) else None


def _is_right_day(store: Store, addition: Addition) -> bool | None:
    labels = [day for turn, quote, day in store.times if turn in addition.turns and _same_time(quote, addition.about)]
    told = _days(addition.text)
    if not labels or told is None:
        return None
    return any(told[0] <= first and last <= told[1] for first, last in filter(None, map(_days, labels)))


def _same_time(label: str, told: str) -> bool:
    left, right = _squeezed(label), _squeezed(told)
    return left in right or right in left


_MONTHS = list(calendar.month_name)


def _days(text: str) -> tuple[date, date] | None:
    """First and last day of `2026-03-06`, `2026-03`, `2026`, `2026-W10`, `6 March 2026`, `week of 8 May 2023`, …"""
    if found := re.fullmatch(r"(\d{4})-W(\d\d)", text):
        first = date.fromisocalendar(int(found[1]), int(found[2]), 1)
        return first, first + timedelta(days=6)
    words = text.replace("-", " ").split() if re.fullmatch(r"[\d-]+", text) else text.split()[::-1]
    is_week = text.startswith("week of")
    numbers = [str(_MONTHS.index(word)) if word in _MONTHS else word for word in words]
    numbers = [number for number in numbers if number.isdigit()]
    if not numbers or len(numbers) > 3:
        return None
    try:
        year, *rest = map(int, numbers)
        first = date(year, *[*rest, 1, 1][:2])
    except ValueError:
        return None
    if len(rest) == 2:
        return first, first + timedelta(days=6 if is_week else 0)
    after = date(year + 1, 1, 1) if not rest or rest[0] == 12 else date(year, rest[0] + 1, 1)
    return first, after - timedelta(days=1)
