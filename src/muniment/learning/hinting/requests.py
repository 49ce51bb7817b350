"""What was asked, without what is said around it, and its form: the same for a task that is asked and for an episode.

`Hi, could you please find order 7?` and `Find order 9.` are one task: greetings, "could you", "please" and thanks are
no part of it, nor are spaces, case and the sign at the end (`data/courtesies.txt`, the languages that words are stemmed
in, and Chinese, Japanese and Korean). Where a courtesy may be what is spoken of (`What is Spanish for thanks?`), it
stays: better two forms of one task than one of two. A form is of the whole request, however much of it an episode
tells; which words of it are left open is said by `open_words`. Every step is linear in what it reads. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import NamedTuple

from muniment.core.canonical import digest_of
from muniment.core.limits import remembered
from muniment.core.text.patterns import lazy_pattern, plain_letters
from muniment.core.text.word_lists import WordList
from muniment.learning.hinting.forms import Form
from muniment.learning.hinting.open_words import request_key_form

__all__ = ["ASKED_CHARS", "LATER", "TaskForm", "is_closing", "request_form", "request_of", "task_form", "told_form"]

ASKED_CHARS = 110
"""Of what was asked an episode tells so many characters: several have to fit into a prompt with what was done."""
LATER = " – "
"""Stands in an episode between what was asked first and what was asked later."""
_READ_CHARS_MAX = 4_000
"""Of a longer request the rest is compared word for word."""
_DIGEST_CHARS = 16
_TIMES_MAX = 8
"""So many courtesies one after the other are taken off an end."""

_LISTS = WordList(__package__, "courtesies.txt")
_QUOTED = lazy_pattern(r"(\"[^\"]*\"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|「[^「」]*」|`[^`]*`|(?<!\w)'[^']*'(?!\w))")
_END_SIGNS = " \t\n.,;:?!…。？！、，"
_START_SIGNS = "¿¡"
_WORD = lazy_pattern(r"[^\W\d_]+")
_ONLY_WORD = lazy_pattern(r"(?:^|[.!?;:,–—(])\s*([\w'-]+)\Z")
_FIRST_WORDS = lazy_pattern(r"(?:^|[.!?;,–—(])\s*([\w'-]+)((?:\s+\w+){0,2})\Z")
_WORD_BEHIND = lazy_pattern(r"[\w'-]+\Z")
_WORD_NEXT = lazy_pattern(r"\s*([\w'-]+)")
_OBJECT_NEXT = lazy_pattern(r"\s*(?:[#\d\"“„«'`]|[A-Z]|(?:the|my|our|your|this|that|all)\b)")
_RUSSIAN_OBJECT_NEXT = lazy_pattern(r"\s*(?![а-яё]+(?:те|тесь)\b)[а-яё№#\d]")
_BLANK_BEFORE_SIGN = lazy_pattern(r" (?=[,.;:?!])")
_BEFORE_CHARS = 80
"""So much before a courtesy is looked at, and so much of an end: none is longer."""
_ENGLISH = frozenset(("please", "pls", "plz"))
_SENTENCE_SIGNS, _CLAUSE_SIGNS = ".!?…。！？", ",;:–—，；："


class TaskForm(NamedTuple):
    """The form of a task that is asked."""

    whole: str
    """By the whole request."""
    told: tuple[str, ...]
    """By as much of it as an episode would tell: episodes of earlier versions have no other."""


@remembered(2048)
def request_of(text: str) -> str:
    """What was asked in one line, without what is said around it; a text that says nothing else stays as it is. Of a
    very long one the beginning.
    """
    return _whole_request(text)[:_READ_CHARS_MAX].rstrip()


def _whole_request(text: str) -> str:
    spelled = unicodedata.normalize("NFC", text).replace("’", "'")
    lines = [" ".join(line.split()) for line in spelled.splitlines()]
    told = "\n".join(filter(None, lines))
    line = " ".join(told.split())
    found, is_asked = told, False
    for _ in range(_TIMES_MAX):
        before = found
        found = _greeting().sub("", _without_please(found), count=1)
        found, asked = _asking().subn("", found, count=1)
        found = _please_first().sub("", found, count=1)
        is_asked = is_asked or bool(asked)
        found = _without_end(found, is_asked)
        if found == before:
            break
    found = _BLANK_BEFORE_SIGN.sub("", " ".join(found.split()))
    if _WORD.search(found) is None:
        return line
    is_capital = line.lstrip(_START_SIGNS + " ")[:1].isupper()
    return found[0].upper() + found[1:] if is_capital else found  # it begins the sentence now


def _without_end(line: str, is_asked: bool) -> str:
    """The line without one thing that is said behind it. Only its end is looked at."""
    end = len(line.rstrip(_END_SIGNS))
    start = max(0, end - _BEFORE_CHARS)
    behind = _end(is_asked).search(line[start:end])
    return (line if behind is None else line[: start + behind.start()]).strip()


def request_form(text: str) -> Form:
    """The form of a request, or of a part of one."""
    return _form(request_of(text))


def told_form(told: str) -> tuple[str, ...]:
    """The form of what an episode tells of a request, without what was asked later."""
    first = told.partition(LATER)[0]  # a dash of the request itself ends it here for both sides
    return _form(_cut(request_of(first.rstrip(_END_SIGNS)))).key


@remembered(1024)
def task_form(text: str) -> TaskForm:
    request = request_of(text)
    key = list(_form(request).key)
    if len(text) > _READ_CHARS_MAX and (rest := _whole_request(text)[_READ_CHARS_MAX:].rstrip(_END_SIGNS)):
        key.append(digest_of(rest.casefold()))
    return TaskForm(digest_of(key)[:_DIGEST_CHARS], told_form(request))


def _form(request: str) -> Form:
    return request_key_form(request.strip(_START_SIGNS + _END_SIGNS))


def _cut(line: str) -> str:
    """As much as an episode tells, without the sign that says so."""
    if len(line) <= ASKED_CHARS:
        return line
    cut = line[:ASKED_CHARS]
    return cut[: cut.rfind(" ")] if " " in cut else cut


def is_closing(said: str) -> bool:
    """Does a sentence only take leave: "You're welcome"?"""
    return _closing().match(said.replace("’", "'").strip()) is not None


# -- courtesies ---------------------------------------------------------------------------------------


def _spelled(section: str) -> list[str]:
    """The entries of a section as patterns, the longest first, with and without their accents."""
    entries = {entry.strip() for entry in _LISTS.entries(section)}
    entries |= {plain_letters(entry) for entry in entries}
    ordered = sorted(entries, key=lambda entry: (-len(entry), entry))
    return [re.escape(entry).replace(r"\ ", r"\s+") for entry in ordered]


def _any(*sections: str) -> str:
    return "|".join(part for section in sections for part in _spelled(section))


@cache
def _asking() -> re.Pattern[str]:
    """The words that ask for something, in front of it."""
    return re.compile(rf"(?i)^(?:[¿¡]\s*)?(?:{_any('asking')})(?:,\s*|\s+)(?=\w)")


@cache
def _greeting() -> re.Pattern[str]:
    """What is said before a request begins."""
    signs = _any("signs in front")
    greeted = rf"(?:\s+(?:{_any('greeted')}))?(?:\s+(?-i:[^\W\d_a-z][^\W\d_]*\.?)){{0,3}}"
    spoken_of = r"(?!\s+(?:world|in|is|as|means?|and|or|to|from|for)\b)"
    bare = rf"(?:\s+there)?(?=\s+(?-i:[^\W\d_A-Z])){spoken_of}"
    greeting = rf"(?:{_any('greetings')})(?!\w)(?:{greeted}\s*[!,.:;–—-]+|{bare})"
    opening = rf"(?:{_any('openings')})\s*[!,.;–—]+"
    return re.compile(rf"(?i)^[¿¡]?\s*(?:{greeting}|{opening}|(?:{signs})[，,。!！、\s]*)\s*[¿¡]?\s*")


@cache
def _end(is_asked: bool) -> re.Pattern[str]:
    """What stands behind it: thanks behind a sign or on a line of their own, the endings of a verb that asks."""
    thanks = rf"(?:[.;!?¡…–—]|(?<=\s)-|(?<![:\n])\n)[\s,.;!?¡…–—-]*(?:{_any('thanks')})"
    small = rf",\s*(?-i:(?=[^\W\dA-Z]))(?:{_any('thanks')})"
    signs = rf"(?:[，,。.！!？?、；;～~…\n]\s*)(?:{_any('signs of thanks')})"
    verbs = rf"(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])\s?(?:{_any('signs behind')})"
    for_me = rf"|[\s,]+(?:{_any('for me')})" if is_asked else ""
    return re.compile(rf"(?i)(?:{thanks}|{small}|{signs}|{verbs}{for_me})$")


@cache
def _closing() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:{_any('closings')})(?!\w)")


# -- please -------------------------------------------------------------------------------------------


@cache
def _please() -> re.Pattern[str]:
    return re.compile(rf"(?i)(,\s*)?(?<![\w'-])({_any('please')})(?![\w('-])(\s*,)?")


@cache
def _please_first() -> re.Pattern[str]:
    """ "Please" that begins what is asked."""
    done_to = _any("done to")
    return re.compile(rf"(?i)^[¿¡]?(?:{_any('please')})(?![\w('-])(?!\s+(?:{done_to})\b)(?:\s*,)?\s+(?=\S)")


@cache
def _words(section: str) -> frozenset[str]:
    return frozenset(entry.casefold() for entry in _LISTS.entries(section))


def _without_please(line: str) -> str:
    """The line without "please" where it begins or ends a clause, but for what it quotes."""
    quoted = [found.span() for found in _QUOTED.finditer(line)]
    at = 0
    kept: list[str] = []
    end = 0
    for found in _please().finditer(line):
        while at < len(quoted) and quoted[at][1] <= found.start(2):
            at += 1
        if at < len(quoted) and quoted[at][0] < found.start(2):
            continue
        if (instead := _instead(line, found)) is not None:
            kept += line[end : found.start()].rstrip(" "), instead
            end = found.end()
            if instead == " " and found[2][0].isupper():  # what follows begins the sentence now
                end += line[end : end + 1] == " "
                kept.append(line[end : end + 1].upper())
                end += 1
    return "".join((*kept, line[end:])).strip()


def _instead(line: str, found: re.Match[str]) -> str | None:
    """What stands where "please" stood; None where it stays."""
    before = line[max(0, found.start() - _BEFORE_CHARS) : found.start()].rstrip(" ")
    after = line[found.end() : found.end() + _BEFORE_CHARS]
    said = found[2]
    is_first = not before or before[-1] in _SENTENCE_SIGNS
    if said[0].isupper() and not said.isupper() and not is_first and (said == "Bitte" or not found[1]):
        return None  # a noun, or the name of something
    ends = not after.strip() or after.lstrip(" ")[0] in _SENTENCE_SIGNS + _CLAUSE_SIGNS
    if ends or (found[3] and not found[1] and not is_first):
        behind = _WORD_BEHIND.search(before)
        if behind is not None and not found[1] and behind[0].casefold() in _words("spoken of") | _words("answers"):
            return None
        return "," if found[3] and not ends else ""
    following = _WORD_NEXT.match(after)
    if following is not None and not found[3] and following[1].casefold() in _words("done to"):
        return None
    if is_first or before[-1] in _CLAUSE_SIGNS:
        return " " if before else ""
    if found[1]:
        return " " if found[3] and _is_between_verb_and_object(before, after) else ", "
    return " " if _is_behind_verb(before, said, following) else None


def _is_between_verb_and_object(before: str, after: str) -> bool:
    """`Find, please, the order`: behind a word that answers, or before another verb, a comma has to stay."""
    only = _ONLY_WORD.search(before)
    if only is None or only[1].casefold() in _words("answers"):
        return False
    return _OBJECT_NEXT.match(after) is not None or _RUSSIAN_OBJECT_NEXT.match(after) is not None


def _is_behind_verb(before: str, said: str, following: re.Match[str] | None) -> bool:
    """`Suche bitte Bestellung 7`: where it is no word of English, it may stand behind the first one."""
    first = _FIRST_WORDS.search(before)
    if first is None or following is None or said.casefold() in _ENGLISH:
        return False
    between = first[2].casefold().split()
    is_spoken_of = first[1].casefold() in _words("spoken of") | _words("answers")
    is_into = following[1].casefold() in _words("into")
    return not is_spoken_of and not is_into and all(word in _words("between") for word in between)
