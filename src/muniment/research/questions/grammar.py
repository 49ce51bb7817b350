"""The grammar of questions: where one thing asked ends and the next begins, what it lists, names and demands.

One set of rules reads English and Chinese, by the forms of each language in `data/question_forms.txt`. No model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain, islice, takewhile
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.script import Written
from muniment.core.text.word_lists import WordList
from muniment.research.questions.phrases import Part, clip, once, tidy, unquoted, without_brackets
from muniment.research.questions.words import kind_of

__all__ = ["Grammar"]

_FORMS = WordList(__package__, "question_forms.txt")
_LEADS_MAX, _LISTS_MAX, _TOPICS_MAX, _NAMES_MAX, _SIDES_MAX, _DEMANDS_MAX = 10, 24, 12, 16, 8, 6
_CHARS_MAX: dict[Written, dict[str, int]] = {
    "en": {"phrase": 190, "subject": 100, "question": 145, "demand": 160, "scene": 0, "head": 85},
    "zh": {"phrase": 80, "subject": 48, "question": 48, "demand": 60, "scene": 40, "head": 40},
}
_SIZE_MAX: dict[Written, dict[str, int]] = {
    "en": {"item": 8, "short item": 5, "side": 6, "opening": 14},
    "zh": {"item": 24, "short item": 1, "side": 14, "opening": 24},
}
"""In words of English, in signs of Chinese."""
_BETWEEN: dict[Written, tuple[str, ...]] = {"en": (r",\s+",), "zh": ("、", "[，,]")}
"""What stands between the items of a list: of those that are tried in turn the first that makes one."""
_BETWEEN_SIDES = lazy_pattern(r",\s+(?:and\s+)?|\s+(?:vs\.?|versus)\s+|[、和与]")
_RUN = "[^,，、;；:：?？!！。()（）\\n]{1,120}"


class _Sentence(NamedTuple):
    text: str
    asked: bool
    """It ends with a question mark."""
    numbered: bool
    """It is an item of a numbered list."""


class _List(NamedTuple):
    items: tuple[str, ...]
    aside: bool = False
    """In brackets, and not as examples."""

    @property
    def is_of_names(self) -> bool:
        """Whether it names things, which are compared and no aspects of anything."""
        return not self.aside and all(item[:1].isupper() or item[1:2].isupper() for item in self.items)


@cache
def _source(name: str, language: Written) -> str:
    """The forms of a section, with those of the sections that it names; where a language has none, what never is."""
    section = f"{name} {language}"
    forms = _FORMS.either(section) if section in _FORMS else "(?!)"
    return "(?:" + re.sub("<([a-z ]+)>", lambda other: _source(other[1], language), forms) + ")"


@cache
def _form(name: str, language: Written, end: str) -> re.Pattern[str]:
    return re.compile(f"(?i){_source(name, language)}{end}")


@cache
def _turns(language: Written) -> list[tuple[re.Pattern[str], str]]:
    section = f"turns {language}"
    turns = (turn.partition(" =>") for turn in _FORMS.entries(section)) if section in _FORMS else ()
    return [(re.compile(f"(?i){form}"), put) for form, _, put in turns]


class Grammar:
    """How questions of one language are read."""

    def __init__(self, language: Written) -> None:
        self._language: Written = language
        self._chars_max, self._size_max = _CHARS_MAX[language], _SIZE_MAX[language]

    def _form(self, name: str, end: str = "") -> re.Pattern[str]:
        return _form(name, self._language, end)

    def _sentences(self, text: str) -> Iterator[_Sentence]:
        at = 0
        for found in self._form("sentence end").finditer(f"{text}\n"):
            for number, item in enumerate(self._form("numbered").split(text[at : found.start()])):
                if tidy(item):
                    bare = re.sub(r"^[（(]([^（）()]*)[）)]?$", r"\1", item.strip())
                    yield _Sentence(bare, found[0][0] in "?？", number > 0)
            at = found.end()

    def _size(self, text: str) -> int:
        return len(text.split()) if self._language == "en" else len(text)

    def _clip(self, text: str, use: str) -> str:
        return clip(text, self._chars_max[use], self._language)

    # -- parts ----------------------------------------------------------------------------------------

    def parts_in(self, text: str) -> tuple[Part, ...]:
        """All that is asked, in order; where nothing looks like an ask, the whole is one."""
        sentences = list(self._sentences(text))
        asks = [each for each in sentences if self._asks(each)] or sentences
        parts: dict[str, Part] = {}
        for part in chain.from_iterable(map(self._parts_of, asks)):
            parts.setdefault(part.text.casefold(), part)
        return tuple(parts.values())

    def _asks(self, sentence: _Sentence) -> bool:
        text = self._without_demands(sentence.text)
        if not text or self._form("no asks").search(text):
            return False
        return sentence.asked or sentence.numbered or self._form("asks").search(text) is not None

    def _parts_of(self, sentence: _Sentence) -> Iterator[Part]:
        text = self._without_demands(sentence.text) or sentence.text
        bare = self._without_leads(text)
        lead, scene = text[: len(text) - len(bare)], ""
        pieces = self._form("next ask").split(bare)
        for number, piece in enumerate(pieces):
            asked = piece if number else lead + piece
            phrase, leans = self._phrase(piece, sentence.asked)
            if number + 1 < len(pieces) and self._is_scene(phrase, asked):
                scene = phrase.partition("：")[0]
            elif len(phrase) >= 3 and not self._form("empty").fullmatch(phrase):
                belongs = 0 < len(scene) <= self._chars_max["scene"] and bool(
                    leans or self._form("scene").search(scene)
                )
                whole = f"{scene}，{phrase}" if belongs else phrase
                lists = [
                    each
                    for each in self._lists(self._without_leads(piece)) or self._lists(asked)
                    if not each.is_of_names
                ]
                topics = once([topic for each in lists for topic in each.items], _TOPICS_MAX)
                kind = kind_of(f"{self._cut(asked, 'frames')} {phrase}", self._language)
                yield Part(whole, kind, topics, leans and not belongs, self._head(lists, whole))
                scene = ""

    def _is_scene(self, phrase: str, asked: str) -> bool:
        """Whether a clause asks nothing, but says where or when that holds which is asked behind it."""
        if self._form("scene").search(phrase):
            return self._form("asking").search(phrase) is None
        return self._chars_max["scene"] > 0 and self._form("asks").search(asked) is None

    def _head(self, lists: list[_List], phrase: str) -> str:
        """What listed things are aspects of: the phrase that they stand beside, or what a cue in it parts from them."""
        before, item, _ = phrase.partition(lists[0].items[0]) if lists else ("", "", "")
        head = self._without("cue", f"{before} ") if item else self._without("examples", before)
        is_said = (not item or head != tidy(before)) and self._size(head) >= 2
        return self._cut(head, "articles") if is_said and len(head) <= self._chars_max["head"] else ""

    def _without_demands(self, text: str) -> str:
        return re.sub(r"[，,]\s*(?=[，,：:]|$)", "", tidy(self._form("demands").sub("", text)))

    # -- phrases --------------------------------------------------------------------------------------

    def _cut(self, text: str, leads: str) -> str:
        """Without what stands in front, as long as something does."""
        for _ in range(_LEADS_MAX):
            lead = self._form(leads).match(text)
            if lead is None or not lead.end():
                break
            text = unquoted(text[lead.end() :])
        return text

    def _without_leads(self, text: str) -> str:
        """Without who speaks, to whom, and what is wanted done: what it is wanted for."""
        return self._cut(unquoted(text), "leads")

    def _phrase(self, text: str, asked: bool = False) -> tuple[str, bool]:
        """A phrase worthy of a title, and whether it leans on the subject."""
        plain = tidy(without_brackets(self._without_leads(text))).rstrip("?？")
        for _ in range(2):
            plain = self._form("tails", "$").sub("", plain) or plain
        is_question = self._form("question").match(plain) is not None
        plain = plain[0].lower() + plain[1:] if is_question else plain
        turned = self._turned(plain)
        owned = self._cut(turned, "owners")
        leans = owned != turned or self._form("leaning").search(turned) is not None
        kept = self._clip(tidy(self._cut(owned, "articles")), "phrase")
        is_direct = is_question and turned == plain and not kept.startswith(("how to ", "whether "))
        return kept + ("?" if asked and is_direct else ""), leans

    def _turned(self, text: str) -> str:
        """A question as the noun phrase or the indirect question that it can be said as; others stay as they are."""
        for form, put in _turns(self._language):
            if found := form.match(text):
                return tidy(f"{found.expand(put)} {text[found.end() :]}")
        return text

    def _without(self, tails: str, text: str) -> str:
        """Without what stands at the end."""
        return tidy(self._form(tails, "$").sub("", text))

    # -- lists ----------------------------------------------------------------------------------------

    def _lists(self, text: str) -> list[_List]:
        """The enumerations of a text: three things or more, or two behind a cue such as "in terms of"."""
        flat = without_brackets(text)
        lists: list[_List] = []
        for between in _BETWEEN[self._language]:
            for run in islice(re.finditer(f"{_RUN}(?:{between}{_RUN}){{1,15}}", flat), 0 if lists else _LISTS_MAX):
                lists += self._list_of(self._form("crossed").sub("", run[0], count=1), between)
        for found in islice(self._form("brackets").finditer(text), _LISTS_MAX):
            example, inside = found.groups()
            items = self._items(self._form("aside").split(inside))
            if len(items) >= 3 or (len(items) == 2 and example):
                lists.append(_List(items, aside=not example or items[0][:1].islower()))
        return lists

    def _list_of(self, run: str, between: str) -> list[_List]:
        """The list in a run of pieces, if it is one: behind the last cue, up to the piece that opens with "and"."""
        cues = list(self._form("cue").finditer(run))
        first, *rest = re.split(between, run[cues[-1].end() :] if cues else run)
        pieces = [first, *takewhile(lambda piece: not self._form("no list").match(piece), rest)]
        closing = next((place for place, piece in enumerate(pieces) if place and self._form("last").match(piece)), None)
        pieces = pieces[: closing + 1 if closing else None]
        ends = self._form("last").split(pieces[-1], maxsplit=1)
        if len(ends) == 1 and self._form("open end").match(ends[0]):
            return []
        pieces = [*pieces[:-1], *filter(None, ends)]
        if not cues:
            pieces = [self._opening(pieces, is_within=between == "、"), *pieces[1:-1], pieces[-1].partition(" of ")[0]]
        items = self._items(pieces)
        is_list = (
            len(items) >= (2 if cues or self._form("and so on").search(run) else 3) and len(items) >= len(pieces) - 1
        )
        return [_List(items)] if is_list else []

    def _opening(self, pieces: list[str], *, is_within: bool) -> str:
        """The first item, without what stands before it."""
        if self._form("no opening").search(pieces[0]):
            return ""
        opening = self._cut(self._turned(self._without_leads(pieces[0])), "owners")
        if all(item[:1].isupper() for item in self._items(pieces[1:])):
            return self._form("before names").sub("", opening)
        return self._form("before items").sub("", opening) if is_within else opening

    def _items(self, pieces: list[str]) -> tuple[str, ...]:
        """The pieces that are items, without what follows them."""
        items = [tidy(self._cut(tidy(piece), "item leads")) for piece in pieces]
        shortest = self._size_max["short item"]
        items = [self._without("item tails", item) if self._size(item) > shortest else item for item in items]
        fitting = (item for item in items if len(item) > 1 and self._size(item) <= self._size_max["item"])
        return tuple(item for item in fitting if not self._form("no items").search(item))

    # -- names, sides, demands, subject ---------------------------------------------------------------

    def names_in(self, text: str) -> tuple[str, ...]:
        """Names and quoted titles, in the order they stand."""
        names = []
        for found in self._form("names").finditer(text):
            words = (found[found.lastindex or 0]).split()
            while words and self._form("no names").fullmatch(words[0]):
                words.pop(0)
            name = re.sub(r"['’]s?$", "", tidy(" ".join(words)))
            before = text[max(0, found.start() - 4) : found.start()].rstrip(" \"'“‘(")
            is_word = len(words) == 1 and name.istitle() and (not before or before[-1] in ".?!:\n)")
            names += [name] if len(name) > 1 and not name.isdigit() and not is_word else []
        return once(names, _NAMES_MAX)

    def compared_in(self, text: str) -> tuple[str, ...]:
        """The things a question sets side by side: X vs Y, the difference between X and Y, or a list of names."""
        for found in self._form("versus").finditer(text):
            sides = [self._side(each) for side in found.groups() if side for each in _BETWEEN_SIDES.split(side)]
            sizes = [self._size(side) for side in sides if not self._form("no side").search(side)]
            if len(sizes) == len(sides) and all(0 < size <= self._size_max["side"] for size in sizes):
                return once(sides, _SIDES_MAX)
        asks = [each.text for each in self._sentences(text) if self._asks(each)]
        named = [each.items for ask in asks for each in self._lists(ask) if each.is_of_names]
        return once(max(named, key=len, default=()), _SIDES_MAX)

    def _side(self, text: str) -> str:
        return tidy(self._cut(self._without("side tails", without_brackets(text)), "side leads"))

    def demands_in(self, text: str) -> tuple[str, ...]:
        """What the question says about the form of the answer, about its sources and about who asks."""
        found = [demand[0] for each in self._sentences(text) for demand in self._form("demands").finditer(each.text)]
        return once(
            [self._clip(self._cut(tidy(each.strip("（）")), "openers"), "demand") for each in found], _DEMANDS_MAX
        )

    def subject_in(self, text: str, parts: tuple[Part, ...]) -> str:
        """What it is about: a title it gives, what its opening sentence speaks of, or the first thing asked."""
        title = self._form("titles").search(text)
        if title and self._size(name := self._phrase(title[title.lastindex or 0])[0]) > 1:
            return self._clip(name, "subject")
        opening = next(self._sentences(text), None)
        spoken = self._form("opening").match(opening.text) if opening and not self._asks(opening) else None
        phrase, leans = self._phrase(spoken[1]) if spoken else ("", True)
        if 2 <= self._size(phrase) <= self._size_max["opening"] and not leans:
            return phrase
        part = next((part for part in parts if self._language == "en" or not part.leans), parts[0])
        owner = self._form("owner").search(part.text) if part.topics and not part.head else None
        text = self._without("examples", owner[1] if owner else part.text.rstrip("?"))
        scene, _, rest = text.partition("，")
        text = rest if rest and self._form("scene").search(scene) else text
        use = "question" if self._form("question").match(text) else "subject"
        return (self._without("examples", self._clip(text, use)) or text) + ("?" if part.text.endswith("?") else "")
