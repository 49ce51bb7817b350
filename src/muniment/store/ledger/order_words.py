"""What a text is made of, sentence by sentence, for whoever weighs whether it gives orders to a model.

A sentence has parts and terms. Parts are what an order is made of in any language: somebody addressed who is a model,
a duty, a deed, what the deed is after, earlier guidance put aside, the user spoken of to a third, secrecy, a place to
send things to. Terms are its words, their beginnings and each two that follow one another; in Chinese, Japanese and
Korean two and three signs in a row. No part and no term is an order: `order_weights` has what each counts for. Every
step is linear in the text.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

__all__ = ["PARTS", "Sentence", "sentences_of"]

_WORDS = WordList("muniment.store.ledger", "order_words.txt")
_LISTED = (
    "model", "reading", "override", "precedence", "guidance", "task", "end", "duty", "deed", "say", "rate", "speech",
    "only", "omit", "prize", "money", "tool", "self", "user", "secrecy", "memory", "persona", "authority", "approval",
    "condition", "you", "lasting", "benefit",
)  # fmt: skip
_SHAPES = {
    "reach": (("@", "://", "www."), r"[\w.+-]{1,64}@[\w-]{1,64}\.\w|https?://|www\."),
    "slot": (
        ("://", "](", "src="),
        r"(?:https?://|\]\(|src=)[^\s)\"']{0,300}[?&/=](?:\{|<|\[|\$[a-z]|%[a-z]{3})",
    ),
    "role": (
        ("<", "[", "role", "##", "==", "--", "{{", "```"),
        r"<\|?/?\s?(?:im_|start_|end_|system|user|assistant|human|tool|instruction|important|admin|context|document|sys|eot)"
        r"|\[/?(?:inst|system|user|assistant|developer)|<</?sys|\"?role\"?\s?:\s?\"?(?:system|user|assistant)"
        r"|\#{2,4}\s?(?:new\s)?(?:instruction|system|response|user|assistant)"
        r"|[=-]{3,10}\s?(?:end|begin|operator|system|developer)|\{\{\s?\#?system|```\s?system",
    ),
    "turn": (
        (":", "："),
        r"^[\s\[(<*#-]{0,6}(?:user|human|assistant|system|developer|ai|nutzer|benutzer|mensch|assistent|ki|utilisateur"
        r"|humain|ia|systeme|usuario|humano|asistente|sistema|用户|人类|助手|系统|ユーザー|利用者|人間|アシスタント|システム"
        r"|사용자|어시스턴트|시스템)[\])>*]{0,3}\s?[:：]",
    ),
    "hidden": (
        ("<", "[//]", "/*"),
        r"<!--|display\s?:\s?none|font-size\s?:\s?0|^\[//\]|<template|<details hidden|<span hidden|/\*"
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
"""What a sentence may hold."""
_TOKEN = lazy_pattern(
    r"(?<!\w)--[a-z][\w-]{0,40}|[^\W_]{1,48}(?:\.[^\W_]{1,48}){0,4}|[,\"(`]|[.!?:;](?=[\s\"'<)\]*]|$)|[。！？；：\n]"
)
_SHAPE_PATTERNS = tuple((hints, lazy_pattern(f"(?m){told}")) for hints, told in _SHAPES.values())
_CJK = lazy_pattern(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CJK_RUN = lazy_pattern(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_SPLIT = lazy_pattern(r"[^\W_]+\*?")
_SENTENCE_WORDS = 32
"""A longer sentence is cut, so that an order cannot be lost among harmless words without a stop between them."""


class Sentence(NamedTuple):
    """What stands in one sentence."""

    bits: int
    """The parts, as bits in the order of `PARTS`."""
    terms: list[str]


class _Lists(NamedTuple):
    """The words, as they are looked up: by the first of a phrase, by the first letters of a stem, by signs."""

    phrases: dict[str, list[tuple[tuple[str, ...], int]]]
    stems: dict[str, list[tuple[str, int]]]
    signs: dict[str, list[tuple[str, int]]]
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
_PREFIX_CHARS = 5
_WITHIN = frozenset(',"(`:：')


def _bit(*names: str) -> int:
    return sum(1 << PARTS.index(name) for name in names)


_DEED, _ORDER, _ADDRESSED, _MODEL = _bit("deed", "say", "rate"), _bit("order"), _bit("addressed"), _bit("model")
_OVERRIDE, _DUTY = _bit("override"), _bit("duty")
_BEGUN = _ORDER | _OVERRIDE | _bit("condition", "memory")
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
    found = _Lists({}, {}, {}, *sets)
    for number, section in enumerate(_LISTED):
        entries = {word.strip() for entry in _WORDS.entries(section) for word in entry.replace("\n", ",").split(",")}
        for entry in sorted(entries):
            if _CJK.search(entry):
                found.signs.setdefault(entry[:2], []).append((entry, 1 << number))
                continue
            words = _SPLIT.findall(entry)
            if len(words) == 1 and words[0].endswith("*") and len(words[0]) > _STEM_CHARS:
                found.stems.setdefault(words[0][:_STEM_CHARS], []).append((words[0][:-1], 1 << number))
            elif words:
                found.phrases.setdefault(words[0].rstrip("*"), []).append((tuple(words[1:]), 1 << number))
    return found


def sentences_of(text: str) -> list[Sentence]:
    """The sentences of a text in lower case that hold any words."""
    words, sentences, starts, ends = _words_of(text)
    held = [0] * (len(ends) + 1)
    _hold_words(words, sentences, starts, held)
    shapes = [
        (1 << number, pattern)
        for number, (hints, pattern) in enumerate(_SHAPE_PATTERNS, len(_LISTED))
        if any(hint in text for hint in hints)
    ]
    for bit, pattern in shapes:
        for match in pattern.finditer(text):
            held[bisect_right(ends, match.start())] |= bit
    if not text.isascii() and _CJK.search(text):
        _hold_signs(text, ends, held)  # without blanks no word comes before another: a duty stands for it
        held = [bits | _ORDER if bits & _DUTY and bits & _DEED else bits for bits in held]
    spoken: list[list[str]] = [[] for _ in held]
    for word, number in zip(words, sentences, strict=True):
        spoken[number].append(word)
    return [Sentence(bits, _terms_of(said)) for bits, said in zip(held, spoken, strict=True) if bits or said]


def _hold_words(words: list[str], sentences: list[int], starts: set[int], held: list[int]) -> None:
    """Say of each sentence which parts its words are."""
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
        if not bits:
            continue
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


def _hold_signs(text: str, ends: list[int], held: list[int]) -> None:
    """Say of each sentence which parts its signs are, where words have no blanks between them."""
    get = _lists().signs.get
    for run in _CJK_RUN.finditer(text):
        for at in range(*run.span()):
            for found in (get(text[at : at + 2]), get(text[at])):
                for told, bit in found or ():
                    if text.startswith(told, at):
                        held[bisect_right(ends, at)] |= bit


def _terms_of(words: list[str]) -> list[str]:
    """The terms of the words of one sentence."""
    found: list[str] = []
    last = ""
    for word in words:
        if word.isascii():
            if word.isdigit():
                word = "0"
            found.append(word)
            if len(word) > _PREFIX_CHARS:
                found.append(f"{word[:_PREFIX_CHARS]}*")
        elif _CJK.search(word):
            found += [word[at : at + 2] for at in range(len(word) - 1)]
            found += [word[at : at + 3] for at in range(len(word) - 2)]
            last = ""
            continue
        else:
            found.append(word)
        if last:
            found.append(f"{last} {word}")
        last = word
    return found


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
    if last == "to":
        return before in lists.bound or is_named
    if last in lists.before:
        return True
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
    first = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token[0].isalnum() or token[:2] == "--":  # a name with dots and an option are words of their own
            if len(words) - first >= _SENTENCE_WORDS:
                ends.append(match.start())
                first = len(words)
            words.append(token)
            sentences.append(len(ends))
        else:
            starts.add(len(words))
            if token not in _WITHIN:
                ends.append(match.end())
                first = len(words)
    return words, sentences, starts, ends
