"""Which statements are outdated: a later one by the same person, of the same thing and with another value.

Never a whole turn because another of its statements is: "I live in Lisbon and I am allergic to peanuts" loses its first
half to "I moved to Berlin", and the second stands. Where the patterns of `core.text.stated` read nothing, the words
themselves are held against each other, clause by clause, for pairs of turns that the ranking found to answer alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from muniment.core.text.analyzer import analyze, stop_words
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import sentence_spans
from muniment.core.text.stated.attributes import OWN, attribute_spans, name_of
from muniment.core.text.stated.statement_values import words_in
from muniment.core.text.stated.statements import Statement

__all__ = ["Outdated", "Told", "covers_all", "find_outdated", "order_of", "outdated_in_pair"]

LATER_MAX = 24
"""So many later statements of one thing are held against an older one."""
_MANY = frozenset(("allergy", "likes", "pet"))
"""Of these a further one ends none: only what takes one back does."""
_HELD = frozenset(("car", "phone"))
"""Who says that they have one may have another: only a change ends it."""
_UNBOUND = frozenset(("singl", "divorc", "widow", "separ"))
"""Of nobody's company is what a break-up does not end."""
_CLAUSE = lazy_pattern(
    r",? (?:and|but|so|while) (?=(?:I|i|we|my|our|the|she|he|they|his|her|their|it|you)\b)"
    r"|;\s|, (?=(?:I|my|we)\b)|[，；]"
)
_WORD = lazy_pattern(r"[^\W_]+(?:['’][^\W_]+)?")
_SHARED_MIN = 1


class Told(NamedTuple):
    """What a turn states, and when it was said."""

    id: str
    speaker: str
    session_id: str
    at: Any
    """Sorts by time."""
    seq: int
    statements: tuple[Statement, ...]

    def is_after(self, other: Told) -> bool:
        """Surely later: of one moment only within a session."""
        if self.session_id == other.session_id:
            return self.seq > other.seq
        return bool(self.at > other.at)


class Outdated(NamedTuple):
    """A stretch of an older turn that a newer one supersedes."""

    label: str | None
    """What it is about; None where only the words tell."""
    start: int
    end: int
    by: str
    by_start: int
    by_end: int


def order_of(outdated: Outdated) -> tuple[int, int, str, str]:
    """Where it stands among the others of its turn."""
    return outdated.start, outdated.end, outdated.label or "", outdated.by


def find_outdated(turns: Iterable[Told]) -> dict[str, list[Outdated]]:
    """The statements among these that are outdated, by the turn that made them, in the order of their words."""
    groups: dict[tuple[str, str], list[tuple[Told, Statement]]] = {}
    for turn in turns:
        for statement in turn.statements:
            groups.setdefault((turn.speaker, statement.key), []).append((turn, statement))
    found: dict[str, list[Outdated]] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        group.sort(key=lambda each: (each[0].at, each[0].seq, each[1].start), reverse=True)
        later: deque[tuple[Told, Statement]] = deque(maxlen=LATER_MAX)
        for turn, statement in group:
            by = _ended_by(turn, statement, later)
            if by is not None:
                newer, ending = by
                found.setdefault(turn.id, []).append(_outdated(statement, newer.id, ending))
            if len(later) < LATER_MAX:  # the newest ones decide
                later.append((turn, statement))
    return {id_: sorted(set(each), key=order_of) for id_, each in found.items()}


def _outdated(statement: Statement, by: str, ending: Statement) -> Outdated:
    return Outdated(statement.label, statement.start, statement.end, by, ending.start, ending.end)


def _ended_by(
    turn: Told, statement: Statement, later: Iterable[tuple[Told, Statement]]
) -> tuple[Told, Statement] | None:
    """The newest statement that ends this one; none where it was said again since."""
    if statement.mode == "ends":
        return None
    for newer, ending in later:
        if not _is_same_person(statement.who, ending.who) or not newer.is_after(turn):
            continue
        if ending.mode != "ends" and _is_same_value(statement, ending):
            return None
        if _ends(ending, statement):
            return newer, ending
    return None


def _is_same_person(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """By name where both have one, else by kin: "my sister" is "my sister Ana", and "Ana" is too."""
    if one == other:
        return True
    (kin, name), (other_kin, other_name) = one, other
    if name and other_name:
        return name == other_name and (not kin or not other_kin or kin == other_kin)
    return bool(kin) and kin == other_kin


def _is_same_value(one: Statement, other: Statement) -> bool:
    """`Lisbon` is `Lisbon, Portugal`, and the other way round."""
    if one.value is None or other.value is None:
        return False
    return one.value <= other.value or other.value <= one.value


def _ends(newer: Statement, older: Statement) -> bool:
    """Does the newer statement of the same thing leave the older one outdated?"""
    if newer.adds or _is_same_value(newer, older) != (newer.mode == "ends" and newer.value is not None):
        return False
    if newer.mode == "ends":
        is_one = newer.key not in _MANY
        return newer.value is not None or (is_one and not _UNBOUND & (older.value or frozenset()))
    if newer.key in _MANY:
        return False
    if newer.key == "home" and not _is_elsewhere(newer, older):
        return False
    if newer.mode == "changes":
        return True
    return newer.key not in _HELD and newer.is_named and older.is_named


def _is_elsewhere(newer: Statement, older: Statement) -> bool:
    """Is the newer home surely not in or around the older one? Another flat may be in the same town, and a town in the
    country that was named before.
    """
    if not newer.is_named or (older.scale == "region" and newer.scale != "region"):
        return False
    return newer.scale == older.scale or (newer.mode == "changes" and newer.scale != "region")


# -- a pair of turns that answer alike ----------------------------------------------------------------


def outdated_in_pair(
    older: str, newer: str, by: str, stated: Sequence[Statement], restated: Sequence[Statement]
) -> list[Outdated]:
    """What of an older turn's text a newer one supersedes, where the ranking found that they answer alike.

    `stated` and `restated` are their statements. What those settle, they settle; what they say nothing about is told by
    words.
    """
    found: list[Outdated] = []
    for statement in stated:
        for ending in restated:
            is_matter = statement.key == ending.key and _is_same_person(statement.who, ending.who)
            if is_matter and statement.mode != "ends" and _ends(ending, statement):
                found.append(_outdated(statement, by, ending))
                break
    if found:
        return found
    return _by_words(older, newer, by, stated, restated)


def _by_words(
    older: str, newer: str, by: str, stated: Sequence[Statement], restated: Sequence[Statement]
) -> list[Outdated]:
    """The clause of the older text that says what the newer one says otherwise; none that a statement is read from."""
    older, newer = older[:_PAIR_CHARS_MAX], newer[:_PAIR_CHARS_MAX]
    clauses = [span for span in _clauses(older)[:_CLAUSES_MAX] if not _touches(span, stated)]
    if not clauses:
        return []
    attribute = _common_attribute(older, newer)
    if attribute is not None:
        places, label = attribute
        clauses = [span for span in clauses if any(span[0] <= at < span[1] for at in places)]
    else:
        label = None
    every = _clauses(newer)[:_CLAUSES_MAX]
    there = [span for span in every if not _touches(span, restated)] or every
    best: tuple[int, tuple[int, int], tuple[int, int]] | None = None
    said = [(span, frozenset(analyze(newer[slice(*span)]))) for span in there]
    for span in clauses:
        words = frozenset(analyze(older[slice(*span)]))
        for other, others in said:
            shared = len(words & others)
            if (
                (shared >= _SHARED_MIN or attribute is not None)
                and words != others
                and (best is None or shared > best[0])
            ):
                best = shared, span, other
    if best is None:
        return []
    _, (start, end), (by_start, by_end) = best
    return [Outdated(label, start, end, by, by_start, by_end)]


_CLAUSES_MAX = 24
_PAIR_CHARS_MAX = 2_000
"""So much of two turns is held against each other word by word: what stands farther down is no plain restatement."""


def _touches(span: tuple[int, int], statements: Iterable[Statement]) -> bool:
    return any(each.start < span[1] and span[0] < each.end for each in statements)


def _common_attribute(older: str, newer: str) -> tuple[list[int], str] | None:
    """Where the older text states an attribute of the speaker that the newer one states too."""
    mine, theirs = attribute_spans(older), attribute_spans(newer)
    for term in sorted({term for term, _ in mine} & {term for term, _ in theirs}):
        if term.startswith(OWN):
            return [at for each, at in mine if each == term], name_of(term) or ""
    return None


def _clauses(text: str) -> list[tuple[int, int]]:
    """The clauses of a text, without the signs that end them."""
    spans = []
    for start, end in sentence_spans(text):
        for joint in _CLAUSE.finditer(text, start, end):
            if joint.start() > start:
                spans.append((start, joint.start()))
            start = joint.end()
        while end > start and (text[end - 1].isspace() or text[end - 1] in ".!?…。！？"):
            end -= 1
        if end > start:
            spans.append((start, end))
    return spans


# -- how much of a turn that is -----------------------------------------------------------------------


def covers_all(text: str, spans: Iterable[tuple[int, int]]) -> bool:
    """Is there nothing else in a text that says anything?"""
    at = 0
    for start, end in sorted(spans):
        if start > at and _says_something(text[at:start]):
            return False
        at = max(at, end)
    return not _says_something(text[at:])


def _says_something(text: str) -> bool:
    return any(word.casefold() not in _fillers() for word in _WORD.findall(text))


@cache
def _fillers() -> frozenset[str]:
    return stop_words("english") | words_in("fillers")
