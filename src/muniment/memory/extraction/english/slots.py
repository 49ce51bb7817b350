"""What stands in the open places of English rules: names, places, firms, things, doings, each with where it ends."""

# ruff: noqa: E501 - a table of words reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import NamedTuple

from muniment.core.text.latin_names import plain
from muniment.core.text.names import is_everyday_word, is_name
from muniment.core.text.stated.places import is_known_place, is_no_place
from muniment.core.text.word_lists import WordList
from muniment.memory.extraction.english.words import GENERAL, NO_FIRMS, NO_LIKES, NO_NAMES, VAGUE, known_things
from muniment.memory.extraction.views import View

__all__ = [
    "Slot",
    "read_doing",
    "read_firm",
    "read_name",
    "read_names",
    "read_place",
    "read_small_firm",
    "read_things",
    "shown",
]

PLACE_CHARS_MAX = 60
_WORD = re.compile(r"\"?[^\W_](?:[\w'&+#./-]*[\w+#])?\"?")
_JOINT = re.compile(
    r"(?:,? (?:and|or|as well as)(?: also)?|,? (?:especially|particularly|mainly|mostly|including|such as)|,|/) ?(?=[\w\"])"
)
_LINKS = frozenset(("of", "the", "de", "da", "del", "la", "le", "van", "von", "der", "bin", "al", "and", "for", "in"))


class Slot(NamedTuple):
    """A value, and where it stands in the view."""

    value: str
    start: int
    end: int


def shown(view: View, start: int, end: int) -> str:
    """As it was written; words of a name that was written small begin large."""
    written = view.verbatim(start, end)
    if any(char.isupper() for char in written):
        return written
    return " ".join(word if word in _LINKS else word[:1].upper() + word[1:] for word in written.split())


def _words(view: View, at: int) -> Iterator[re.Match[str]]:
    """The words from a place on, as long as one blank stands between them."""
    while True:
        match = _WORD.match(view.text, at)
        if match is None:
            return
        yield match
        at = match.end()
        if not view.text.startswith(" ", at):
            return
        at += 1


def _bare(word: str) -> str:
    """Without a possessive."""
    return word[:-2] if word.endswith("'s") else word


def read_name(view: View, at: int, known: Container[str] = (), *, is_said: bool = False, most: int = 3) -> Slot | None:
    """A person's name: words written large, or a first name that is well known. `is_said`: words before it say that
    a name follows, so that any word which can be one is."""
    end, count = at, 0
    for match in _words(view, at):
        word = _bare(match[0])
        is_large = view.is_capital(match.start())
        is_known = word in known or (is_name(plain(word)) and (is_large or not is_everyday_word(word)))
        may_be = word.replace("-", "").replace("'", "").isalpha() and word not in NO_NAMES and len(word) > 1
        fits = may_be and (is_large or is_known or (is_said and count == 0))
        if not fits or (count and not is_large):
            if count and word in ("de", "van", "von", "da", "bin") and is_large is False:
                continue
            break
        end, count = match.start() + len(word), count + 1
        if count == most or word != match[0]:
            break
    if not count:
        return None
    if _is_shouted(view, at, end) and not (count == 1 and is_name(plain(view.text[at:end]))):
        return None
    return Slot(shown(view, at, end), at, end)


def _is_shouted(view: View, start: int, end: int) -> bool:
    written = view.verbatim(start, end)
    return len(written) > 3 and written.isupper()


def read_names(view: View, at: int) -> list[Slot]:
    """Names in a row: `Francis and Michelle`."""
    found: list[Slot] = []
    while len(found) < 6:
        slot = read_name(view, at, most=2)
        if slot is None:
            break
        found.append(slot)
        joint = re.compile(r"(?:,? and |, )").match(view.text, slot.end)
        if joint is None:
            break
        at = joint.end()
    return found


def read_place(view: View, at: int, *, must_know: bool = False) -> Slot | None:
    """A place: words written large, perhaps with a region behind a comma; written small, only one that is known."""
    text = view.text
    begin = at
    for article in (
        "the ",
        "downtown ",
        "central ",
        "north ",
        "south ",
        "east ",
        "west ",
        "sunny ",
        "rainy ",
        "rural ",
        "beautiful ",
    ):
        if text.startswith(article, at) and not view.is_capital(at):
            at += len(article)
    words: list[tuple[int, int, bool]] = []
    saint = 4 if text.startswith("st. ", at) else 0
    for match in _words(view, at + saint):
        words.append((match.start(), match.start() + len(_bare(match[0])), view.is_capital(match.start())))
        if len(words) == 5 or match[0].endswith("'s"):
            break
    if not words:
        return None
    large = _large_end(view, words)
    if large:
        end = words[large - 1][1]
        region = re.compile(r", (?=\w)").match(text, end)
        if region is not None:
            more = _large_end(
                view,
                [
                    (m.start(), m.end(), view.is_capital(m.start()))
                    for _, m in zip(range(3), _words(view, region.end()), strict=False)
                ],
            )
            tail = [(m.start(), m.end()) for _, m in zip(range(more), _words(view, region.end()), strict=False)]
            if tail and _is_region(text[tail[0][0] : tail[-1][1]], is_alone=_stops(text, tail[-1][1])):
                end = tail[-1][1]
        value = text[at:end]
        name = view.verbatim(at, end)
        if must_know and not is_known_place(value):
            return None
        is_word = value.split()[0].strip(",") in NO_NAMES or value.split()[-1] in NO_NAMES
        if is_no_place(name) or len(name) > PLACE_CHARS_MAX or (is_word and not is_known_place(value)):
            return None
        with_article = begin if text.startswith("the ", begin) else at
        return Slot(view.verbatim(with_article, end), with_article, end)
    for count in range(min(4, len(words)), 0, -1):
        end = words[count - 1][1]
        if is_known_place(text[at:end]):
            region = re.compile(r",? (?=\w)").match(text, end)
            if region is not None:
                for _, match in zip(range(1), _words(view, region.end()), strict=False):
                    if is_known_place(text[match.start() : match.end()]):
                        end = match.end()
            return Slot(shown(view, at, end), at, end)
    return None


def _is_region(name: str, *, is_alone: bool) -> bool:
    return is_known_place(name) or (is_alone and name not in NO_NAMES and not is_name(plain(name.split()[0])))


def _stops(text: str, at: int) -> bool:
    return at >= len(text) or text[at] in ".,;!?)" or text.startswith(" with", at) or text.startswith(" and", at)


def _large_end(view: View, words: list[tuple[int, int, bool]]) -> int:
    """How many of the words are of one name that is written large."""
    count = 0
    for number, (start, end, is_large) in enumerate(words, start=1):
        if is_large and not (number > 1 and view.text[start:end] in ("i", "i'm", "i've")):
            count = number
        elif view.text[start:end] not in ("of", "the", "de", "la", "del", "upon", "on", "and", "&", "st.") or not count:
            break
    return count


def read_firm(view: View, at: int) -> Slot | None:
    """An employer: words written large (`Acme Robotics`), up to five."""
    words: list[tuple[int, int, bool]] = []
    skipped = re.compile(r"(?:the |a company called |a startup called |a small company called )").match(view.text, at)
    if skipped is not None:
        at = skipped.end()
    for match in _words(view, at):
        words.append((match.start(), match.start() + len(_bare(match[0])), view.is_capital(match.start())))
        if len(words) == 5:
            break
    large = _large_end(view, words)
    if not large:
        return None
    end = words[large - 1][1]
    if any(word in NO_NAMES for word in view.text[at:end].split()):
        return None
    return Slot(view.verbatim(at, end), at, end)


_SMALL_FIRM = re.compile(
    r"(?P<value>[a-z][a-z&'-]{2,24})(?= (?:now|as|in|since|and|these|currently|too|for|but|part|full)\b|[,.!;)]|$)"
)


def read_small_firm(view: View, at: int) -> Slot | None:
    """An employer in small letters (`i work at google`): one word that names nothing else, and ends what is said."""
    match = _SMALL_FIRM.match(view.text, at)
    if match is None or match["value"] in NO_FIRMS or match["value"] in NO_NAMES:
        return None
    return Slot(view.verbatim(*match.span("value")), *match.span("value"))


_CLAUSES = WordList(__package__, "clauses.txt")
_STOPS = frozenset(_CLAUSES.words("value ends"))
_CUT = frozenset(_CLAUSES.words("cut objects"))
_DOING_STOPS = frozenset(_CLAUSES.words("doing ends"))
_OPENS = frozenset(_CLAUSES.words("opens"))
_DEICTIC = frozenset(
    (
        "this",
        "that",
        "these",
        "those",
        "it",
        "you",
        "your",
        "him",
        "them",
        "yours",
        "u",
        "you've",
        "you're",
        "you'd",
        "you'll",
    )
)
_OF = frozenset(
    (
        "challenge",
        "thrill",
        "feeling",
        "smell",
        "taste",
        "freedom",
        "flexibility",
        "independence",
        "sense",
        "energy",
        "peace",
        "beauty",
        "works",
        "music",
        "art",
        "history",
        "simplicity",
    )
)
_TRAILING = re.compile(
    r"(?: (?:a lot|so much|very much|in general|from time to time|for|with|in|on|at|during|to|of|such|like|and|by|from|about|over|the|a|all|as well|more than anything))+$"
)


def _phrase(view: View, at: int, stops: Container[str], most: int, *, may_lack: bool = False) -> tuple[int, int] | None:
    """Where the words end that stand before a mark or a stop; None where nothing does, or what does lacks its object."""
    end, count = at, 0
    for match in _words(view, at):
        word = match[0].strip('"')
        is_within = (
            word in ("my", "our", "your", "his", "her", "their", "that", "this", "me") and count > 0 and not may_lack
        )
        if word in stops and not (word == "my" and count):
            if count and word in _CUT and not may_lack and not (is_within and word == "her"):
                return None
            break
        end, count = match.end(), count + 1
        if count == most:
            break
    return (at, end) if count else None


def read_things(view: View, at: int) -> list[Slot]:
    """What somebody likes or does, one or a list: `tea, jazz and long walks by the sea`."""
    found: list[tuple[Slot, bool]] = []
    is_loose = False
    while len(found) < 8:
        span = _phrase(view, at, _STOPS, 9)
        if span is None:
            break
        start, end = _without_article(view.text, *span)
        trailing = _TRAILING.search(view.text, start, end)
        end = trailing.start() if trailing is not None and trailing.start() > start else end
        if start >= end or view.text.startswith("@", end) or not _is_thing(view, start, end, is_first=not found):
            break
        value = view.verbatim(start, end).strip("\"“”'’ ")
        found.append((Slot(value, start, end), is_loose))
        joint = _JOINT.match(view.text, span[1])
        if joint is None or _opens_clause(view.text, joint.end()):
            break
        is_last = "and" in joint[0] or "or" in joint[0]
        if is_last:
            found = [(slot, False) for slot, _ in found]
        elif len(found) > 1 and not found[-1][1] and not is_loose and _had_and(view.text, found[0][0].start, span[1]):
            break
        is_loose, at = not is_last, joint.end()
    return [slot for slot, loose in found if not loose or is_pastime(slot.value.lower()) or view.is_capital(slot.start)]


def _had_and(text: str, start: int, end: int) -> bool:
    """A list is over behind its `and`."""
    return " and " in text[start:end] or " or " in text[start:end]


_ARTICLES = re.compile(
    r"(?:lots of|a lot of|all kinds of|all sorts of|all things|a mix of|a bit of|a|an|some|any|both|all) (?=\w)"
)


def _opens_clause(text: str, at: int) -> bool:
    match = _WORD.match(text, at)
    return match is None or match[0] in _OPENS


def _without_article(text: str, start: int, end: int) -> tuple[int, int]:
    while True:
        match = _ARTICLES.match(text, start, end)
        if match is None:
            return start, end
        start = match.end()


def _is_thing(view: View, start: int, end: int, *, is_first: bool) -> bool:
    """Is it something that one can like, told in so many words?"""
    words = [word.strip('"') for word in view.text[start:end].split()]
    is_titled = '"' in view.text[start:end]
    if not words or not words[0]:
        return False
    if words[0] in NO_LIKES and not (
        words[0] in ("hearing", "getting", "being", "knowing") and len(words) > 2 and not is_titled
    ):
        return False
    if len(words) == 1 and (words[0] in VAGUE or len(words[0]) < 2 or words[0].isdigit()):
        return False
    if _DEICTIC.intersection(words) or words[-1] in ("better", "more", "most", "best", "too", "much", "so"):
        return False
    if any(char.isdigit() for char in words[0]) and not is_titled:
        return False
    if words[0] in ("my", "our"):
        return False
    if words[0] == "the":
        rest = words[1:]
        if not rest:
            return False
        is_of = len(rest) > 2 and rest[1] == "of" and rest[0] in _OF
        is_title = is_titled and rest[1:2] != ["of"]
        return view.is_capital(start + 4) or rest[0] in GENERAL or rest[-1] in GENERAL or is_of or is_title
    return is_first or len(words) <= 6


def read_doing(view: View, at: int, most: int = 12) -> Slot | None:
    """What somebody does or wants to do, up to the next mark or turn of the sentence."""
    span = _phrase(view, at, _DOING_STOPS, most, may_lack=True)
    return None if span is None else Slot(view.verbatim(*span), *span)


def is_pastime(text: str) -> bool:
    """Is it food, drink or a pastime that is well known?"""
    return text in known_things()
