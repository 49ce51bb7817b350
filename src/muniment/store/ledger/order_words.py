"""How much a text reads like an order to a model, by the parts that such an order is made of.

Forms (`order_forms`) know how orders are usually worded. Here a stretch of up to two sentences is weighed by what
stands in it: somebody addressed who is a model, a duty, a deed, what the deed is after, earlier guidance put aside, the
user spoken of to a third, secrecy, a place to send things to. No part is an order; what two of them together count for
was learned (`benchmarks.learn_orders`). Every step is linear in the text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from functools import cache
from itertools import combinations, pairwise
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList, read_data

__all__ = ["PARTS", "Weights", "features_of", "order_weight", "stretches_of"]

_PACKAGE = "muniment.store.ledger"
_WORDS = WordList(_PACKAGE, "order_words.txt")
_LISTED = (
    "model", "override", "guidance", "duty", "deed", "prize", "self", "user", "secrecy", "memory", "persona",
    "authority", "condition", "you", "lasting", "benefit",
)  # fmt: skip
_SHAPES = {
    "reach": (("@", "://", "www."), r"[\w.+-]{1,64}@[\w-]{1,64}\.\w|https?://|www\."),
    "slot": (
        ("://", "](", "src="),
        r"(?:https?://|\]\(|src=)[^\s)\"']{0,300}[?&/=](?:\{|<|\[|\$[a-z]|%[a-z]{3})",
    ),
    "role": (
        ("<", "[", "role", "##", "==", "system:", "user:", "human:", "assistant:"),
        r"<\|?/?(?:im_|start_|end_|system|user|assistant|human|tool)|\[/?(?:inst|system)|<</?sys"
        r"|^(?:system|user|human|assistant)\s?:|\"?role\"?\s?:\s?\"?(?:system|user)"
        r"|\#{2,4}\s?(?:instruction|system|response)|={3,10}\s?(?:end|operator|system)",
    ),
    "hidden": (
        ("<", "[//]", "/*"),
        r"<!--|display\s?:\s?none|font-size\s?:\s?0|^\[//\]|<template|<details hidden|/\*"
        r"|\balt=\"|aria-label=|\btitle=\"|<meta",
    ),
    "remark": (
        ("#", "//", "--", "*", '"', "_"),
        r"^[ \t]{0,20}(?:\#|//|--|/?\*|\"\"\")|\"description\"|\"message\"\s?:"
        r"|(?<!\w)\w{0,20}_(?:agent|hint|instructions|action|directive|step|complete)\"?\s?:",
    ),
    "command": (("`", "curl ", "rm -", "git ", "chmod ", "sudo "), r"`|\bcurl\s|\brm\s-|\bgit\s|\bchmod\s|\bsudo\s"),
}
"""What is told by its signs: those of which one must stand in the text at all, then what is looked for."""
PARTS = (*_LISTED, *_SHAPES, "order", "addressed")
"""What a stretch may hold."""
_TOKEN = lazy_pattern(r"(?<!\w)--[a-z][\w-]*|[^\W_]+(?:\.[^\W_]+)*|[,\"(`]|[.!?:;](?=[\s\"'<)\]*]|$)|[。！？；：\n]")
_SHAPE_PATTERNS = tuple((hints, lazy_pattern(f"(?m){told}")) for hints, told in _SHAPES.values())
_STRETCH = 2
"""Sentences that are weighed together."""
_SIGNS = r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_CJK = lazy_pattern(_SIGNS)
_SPLIT = lazy_pattern(r"[^\W_]+\*?")


class _Lists(NamedTuple):
    """The words, as they are looked up: by the first of a phrase, by the first letters of a stem, by signs."""

    phrases: dict[str, list[tuple[tuple[str, ...], int]]]
    stems: dict[str, list[tuple[str, int]]]
    signs: tuple[tuple[int, re.Pattern[str]], ...]
    before: frozenset[str]
    """What stands before a deed that is told to be done."""
    bound: frozenset[str]
    """What stands before "to" and such a deed: a duty, or whose it is."""
    joints: frozenset[str]
    """What joins a deed to what was told before it."""
    openers: frozenset[str]
    """What stands between the beginning of a clause and somebody who is addressed."""
    duties: frozenset[str]
    """What comes behind somebody whose duty is told."""


_STEM_CHARS = 3
_WITHIN = frozenset(',"(`:：')
_DEED, _ORDER, _ADDRESSED, _MODEL, _OVERRIDE = (
    1 << PARTS.index(name) for name in ("deed", "order", "addressed", "model", "override")
)
_DUTIFUL = _DEED | 1 << PARTS.index("duty")
_BEGUN = _ORDER | _OVERRIDE | 1 << PARTS.index("condition") | 1 << PARTS.index("memory")
"""What makes an order of a deed that is joined to it."""
_MODALS = frozenset({"could", "would", "can", "will", "should", "must", "shall"})
_NEGATIONS = frozenset({"not", "t", "never"})
_OPENERS_MAX, _SELF_WORDS = 4, 6


@cache
def _lists() -> _Lists:
    sets = [
        frozenset(word for entry in _WORDS.entries(name) for word in entry.split(", "))
        for name in ("before", "bound", "joints", "openers", "duties")
    ]
    found = _Lists({}, {}, (), *sets)
    signs: list[tuple[int, re.Pattern[str]]] = []
    for number, section in enumerate(_LISTED):
        entries = {word.strip() for entry in _WORDS.entries(section) for word in entry.replace("\n", ",").split(",")}
        of_signs = sorted(word.rstrip("*") for word in entries if _CJK.search(word))
        if of_signs:
            signs.append((1 << number, re.compile("|".join(map(re.escape, of_signs)))))
        for entry in sorted(entries):
            words = [] if _CJK.search(entry) else _SPLIT.findall(entry)
            if len(words) == 1 and words[0].endswith("*") and len(words[0]) > _STEM_CHARS:
                found.stems.setdefault(words[0][:_STEM_CHARS], []).append((words[0][:-1], 1 << number))
            elif words:
                found.phrases.setdefault(words[0].rstrip("*"), []).append((tuple(words[1:]), 1 << number))
    return found._replace(signs=tuple(signs))


def stretches_of(text: str) -> list[int]:
    """What stands in each stretch of a text in lower case, as bits in the order of `PARTS`; without doubles."""
    words, sentences, starts, ends = _words_of(text)
    held = [0] * (len(ends) + 1)
    lists = _lists()
    named_from, named_until = 0, -2
    for at, word in enumerate(words):
        bits, length = 0, 1
        for rest, bit in lists.phrases.get(word, ()):
            if not rest or _follows(words, at + 1, rest):
                bits |= bit
                length = max(length, 1 + len(rest)) if bit == _MODEL else length
        for stem, bit in lists.stems.get(word[:_STEM_CHARS], ()):
            if word.startswith(stem):
                bits |= bit
        if bits & _MODEL:
            named_from = at if at > named_until + 1 else named_from  # "AI coding agents" is one name
            named_until = max(named_until, at + length)
            if _speaks_of_itself(words, at):
                bits &= ~_MODEL
            elif _is_addressed(words, named_from, named_until, starts, lists):
                bits |= _ADDRESSED
        if bits & _OVERRIDE and at and words[at - 1] in _NEGATIONS:
            bits &= ~_OVERRIDE  # what is not to be forgotten is not put aside
        begun = held[sentences[at]]
        is_named = at <= named_until + 1 or bool(begun & _ADDRESSED)
        if bits & _DEED and _is_told(words, at, starts, lists, begun, is_named):
            bits |= _ORDER
        held[sentences[at]] |= bits
    shapes = [
        (1 << number, pattern)
        for number, (hints, pattern) in enumerate(_SHAPE_PATTERNS, len(_LISTED))
        if any(hint in text for hint in hints)
    ]
    for bit, pattern in (*shapes, *(lists.signs if not text.isascii() and _CJK.search(text) else ())):
        for match in pattern.finditer(text):
            held[bisect_right(ends, match.start())] |= bit
    if not text.isascii():  # without spaces no word comes before another: a duty in the sentence stands for it
        held = [bits | _ORDER if bits & _DUTIFUL == _DUTIFUL else bits for bits in held]
    return _joined([bits for bits in held if bits])  # what says nothing does not part what does


def _follows(words: list[str], at: int, rest: tuple[str, ...]) -> bool:
    """Do the further words of a phrase stand here? A star stands for any ending of the last one."""
    if not rest[-1].endswith("*"):
        return tuple(words[at : at + len(rest)]) == rest
    end = at + len(rest) - 1
    return end < len(words) and words[end].startswith(rest[-1][:-1]) and tuple(words[at:end]) == rest[:-1]


def _is_told(words: list[str], at: int, starts: set[int], lists: _Lists, begun: int, is_named: bool) -> bool:
    """Is a deed told to be done: at the beginning of a clause, as a duty, or joined to what was told before it?

    `begun` is what its sentence held before it; `is_named`: a model was named just before, or is addressed.
    """
    if at in starts:
        return True
    last, before = words[at - 1], words[at - 2] if at > 1 else ""
    if last in lists.before:
        return True
    if last == "to":
        return before in lists.bound or is_named
    if last in _MODALS:
        return before == "you" or is_named
    if last == "you":
        return before in _MODALS or bool(begun & _BEGUN)
    return last in lists.joints and bool(begun & _BEGUN)


def _is_addressed(words: list[str], at: int, end: int, starts: set[int], lists: _Lists) -> bool:
    """Is a model that is named here spoken to, or told its duty: at the beginning of a clause, with nothing behind it
    but the end of the clause or a duty?
    """
    first = at
    if first > 1 and first not in starts and words[first - 1] not in lists.openers:
        first -= words[first - 2] in lists.openers  # "the mail assistant"
    while first not in starts and at - first < _OPENERS_MAX and words[first - 1] in lists.openers:
        first -= 1
    return first in starts and (end >= len(words) or end in starts or words[end] in lists.duties)


def _speaks_of_itself(words: list[str], at: int) -> bool:
    """Does whoever speaks say that they are a model themselves: "I am a language model", "as an AI, I cannot"?"""
    before = words[max(0, at - _SELF_WORDS) : at]
    if any(one == "i" and other in ("m", "am") for one, other in pairwise(before)):
        return True
    return "as" in before[-2:] and "i" in words[at + 1 : at + 1 + _SELF_WORDS]


def _words_of(text: str) -> tuple[list[str], list[int], set[int], list[int]]:
    """The words of a text, the number of each one's sentence, which ones begin a clause, and where sentences end."""
    starts = {0}
    words: list[str] = []
    sentences: list[int] = []
    ends: list[int] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token[0].isalnum() or token[:2] == "--":  # a name with dots and an option are words of their own
            words.append(token)
            sentences.append(len(ends))
        else:
            starts.add(len(words))
            if token not in _WITHIN:
                ends.append(match.end())
    return words, sentences, starts, ends


def _joined(held: list[int]) -> list[int]:
    """Sentences by themselves, and each with those behind it."""
    found = dict.fromkeys(held)
    for count in range(2, _STRETCH + 1):
        for at in range(len(held) - count + 1):
            bits = 0
            for each in held[at : at + count]:
                bits |= each
            found[bits] = None
    return list(found)


_PAIRS = tuple(combinations(range(len(PARTS)), 2))


def features_of(bits: int) -> list[int]:
    """The numbers of what counts in a stretch: its parts, then each two of them."""
    parts = [number for number in range(len(PARTS)) if bits >> number & 1]
    return parts + [_number(one, other) for one, other in combinations(parts, 2)]


def _number(one: int, other: int) -> int:
    """The place of a pair behind the parts, in the order of `combinations`."""
    count = len(PARTS)
    return count + one * (2 * count - one - 1) // 2 + other - one - 1


class Weights(NamedTuple):
    """What every part and pair counts for, and what is to be passed."""

    counts: tuple[float, ...]
    least: float

    def weigh(self, bits: int) -> float:
        return sum(self.counts[number] for number in features_of(bits)) - self.least


@cache
def _weights() -> Weights:
    told = json.loads(read_data(_PACKAGE, "order_weights.json"))
    counts = [0.0] * (len(PARTS) + len(_PAIRS))
    for name, weight in told["weights"].items():
        one, _, other = name.partition("+")
        first = PARTS.index(one)
        counts[first if not other else _number(first, PARTS.index(other))] = weight
    return Weights(tuple(counts), told["least"])


def order_weight(text: str, weights: Weights | None = None) -> float:
    """How much the heaviest stretch of a text in lower case weighs; above 0 it reads like an order."""
    used = _weights() if weights is None else weights
    return max(map(used.weigh, stretches_of(text)), default=-used.least)
