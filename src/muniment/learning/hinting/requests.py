"""What was asked, without what is said around it, and its form: the same for a task that is asked and for an episode.

`Hi, could you please find order 7?` and `Find order 9.` are one task: greetings, "could you", "please" and thanks are
no part of it, nor are spaces, case and the sign at the end (`data/courtesies.txt`, the languages that words are stemmed
in, and Chinese, Japanese and Korean). A form is of the whole request, however much of it an episode tells. Where it is
in doubt whether a word is a name, it is none: better two forms of one task than one of two. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from muniment.core.canonical import digest_of
from muniment.core.memos import remembered
from muniment.core.text.analyzer import MONTHS, stop_words
from muniment.core.text.characters import plain_letters
from muniment.core.text.latin_names import plain
from muniment.core.text.names import is_everyday_word, is_name
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.text_language import text_language
from muniment.core.text.word_lists import WordList
from muniment.learning.hinting.forms import Form, Token, make_form

__all__ = ["ASKED_CHARS", "LATER", "TaskForm", "is_closing", "request_form", "request_of", "task_form", "told_form"]

ASKED_CHARS = 110
"""Of what was asked an episode tells so many characters: several have to fit into a prompt with what was done."""
LATER = " – "
"""Stands in an episode between what was asked first and what was asked later."""
_READ_CHARS_MAX = 4_000
_DIGEST_CHARS = 16
_TIMES_MAX = 8
"""So many courtesies one after the other are taken off an end."""

_LISTS = WordList(__package__, "courtesies.txt")
_QUOTED = lazy_pattern(r"(\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|`[^`]*`|(?<!\w)'[^']*'(?!\w))")
_END_SIGNS = " \t\n.,;:?!…。？！、，"
_START_SIGNS = "¿¡"
_WORD = lazy_pattern(r"[^\W\d_]+")
_NUMBER_NEXT = lazy_pattern(r"(?i)\s*(?:(?:no|nr|num|number|nummer|núm|№|n[o°º])\.?\s*)?#?\w*\d")
_LAST_WORD = lazy_pattern(r"([^\W\d_]+)\.?\s*$")
_ARTICLES = frozenset(
    ("the", "a", "an", "my", "our", "your", "his", "her", "its", "their", "this", "that", "these", "those", "each",
     "every", "all", "any", "some", "no")
)  # fmt: skip
"""Before a noun that somebody writes with a capital: `the Order`."""
_TITLES = frozenset(("herr", "herrn", "frau", "familie", "firma"))


class TaskForm(NamedTuple):
    """The form of a task that is asked."""

    whole: str
    """By the whole request."""
    told: tuple[str, ...]
    """By as much of it as an episode would tell: episodes of earlier versions have no other."""


@remembered(2048)
def request_of(text: str) -> str:
    """What was asked in one line, without what is said around it; a text that says nothing else stays as it is."""
    line = " ".join(unicodedata.normalize("NFC", text[:_READ_CHARS_MAX]).replace("’", "'").split())
    found = _without_please(line)
    is_asked = False
    for _ in range(_TIMES_MAX):
        before = found
        found = _greeting().sub("", found, count=1)
        found, asked = _asking().subn("", found, count=1)
        is_asked = is_asked or bool(asked)
        behind = _end(is_asked).search(found.rstrip(_END_SIGNS))
        found = (found if behind is None else found[: behind.start()]).strip()
        if found == before:
            break
    if _WORD.search(found) is None:
        return line
    return found[0].upper() + found[1:] if line[0].isupper() else found  # it begins the sentence now


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
    return TaskForm(digest_of(list(_form(request).key))[:_DIGEST_CHARS], told_form(request))


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
    return re.compile(rf"(?i)^(?:[¿¡]\s*)?(?:{_any('asking')})(?=\s+\w)\s+")


@cache
def _greeting() -> re.Pattern[str]:
    """What is said before a request begins."""
    signs = _any("signs in front")
    greeted = rf"(?:\s+(?:{_any('greeted')}))?(?:\s+(?-i:[^\W\d_a-z][^\W\d_]*\.?)){{0,3}}"
    greeting = (
        rf"(?:{_any('greetings')})(?!\w)(?:{greeted}\s*[!,.:;–—-]+|(?:\s+there)?(?=\s+(?-i:[^\W\d_A-Z]))(?!\s+world))"
    )
    opening = rf"(?:{_any('openings')})\s*[!,.:;–—]+"
    return re.compile(rf"(?i)^[¿¡]?\s*(?:{greeting}|{opening}|(?:{signs})[，,。!！、\s]*)\s*[¿¡]?\s*")


@cache
def _end(is_asked: bool) -> re.Pattern[str]:
    """What stands behind it."""
    said = _any("thanks", "for me") if is_asked else _any("thanks")
    return re.compile(rf"(?i)(?:(?:[\s,.;:!?¡…–—-]+(?:{said}))|\s*(?:{_any('signs behind')}))$")


@cache
def _closing() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:{_any('closings')})(?!\w)")


@cache
def _please() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:,\s*)?(?<![\w'-])(?:{_any('please')})(?![\w('-])(?:\s*,)?")


def _without_please(line: str) -> str:
    """The line without "please", but for what it quotes."""
    parts = _QUOTED.split(line)
    kept = [part if place % 2 else _please().sub(" ", part) for place, part in enumerate(parts)]
    return re.sub(r"\s+(?=[,.;:?!])", "", " ".join("".join(kept).split())).strip()


# -- names --------------------------------------------------------------------------------------------


@remembered(4096)
def _form(request: str) -> Form:
    """The form of a request: numbers, ids and names are left open, and a noun with a capital is no name."""
    words = _WORD.findall(request)
    is_shouted = len(words) > 1 and not any(word != word.upper() for word in words)
    is_one_case = is_shouted or request == request.lower()
    language = "english" if is_one_case else _language(request, words)
    request = request.strip(_START_SIGNS + _END_SIGNS)

    def may_vary(token: Token) -> bool:
        if token.in_code:
            return False
        if token.is_id or token.starts_sentence:
            return token.is_id
        return _is_known(token.text) if is_one_case else token.is_capital and _is_named(token, language)

    return make_form(request, may_vary)


def _is_named(token: Token, language: str) -> bool:
    """Is a word that begins with a capital a name?"""
    folded = plain_letters(token.text.casefold())
    if folded in MONTHS:
        return True
    if folded in _small_words(language):
        return False
    if _is_known(token.text) or token.goes_on:
        return True
    last = _LAST_WORD.search(token.before)
    ahead = "" if last is None else last[1].casefold()
    if language == "german":
        return ahead in _TITLES
    return ahead not in _ARTICLES and _NUMBER_NEXT.match(token.after) is None


def _is_known(word: str) -> bool:
    spelled = plain(word)
    return is_name(spelled) and not is_everyday_word(spelled)


@cache
def _small_words(language: str) -> frozenset[str]:
    return stop_words("english") | stop_words(language)


def _language(request: str, words: Iterable[str]) -> str:
    """The language of a request. German, which writes nouns with a capital, is also told by its letters, where no small
    word tells of any language.
    """
    folded = [plain_letters(word.casefold()) for word in words]
    if (language := text_language(request, folded)) is not None:
        return language
    if stop_words("english").intersection(folded):
        return "english"
    from muniment.core.text.languages import detect_language  # most texts are told by their small words

    detected = detect_language(request)
    return "german" if detected is not None and detected.code == "de" else "english"
