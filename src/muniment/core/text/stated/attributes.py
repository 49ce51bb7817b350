"""What may change about a person: what a question asks for, what a sentence says of it, what a fact's key names.

"Where does she live?" is answered by "I live in Lisbon" and, later, by "I moved to Berlin", which share no word. For a
handful of such attributes this module tells by patterns, in three languages, that a text states one and that a question
asks for one. Both become the same term, so that an index and a query meet there. A text that speaks of somebody else's
(`other`) has another term than one that speaks of the speaker's own (`own`).

Besides, `marks` tells what the words of a text do not: that it says of a change, that it names a quantity.
"""

# ruff: noqa: E501, SIM905 - tables of words read best as lines of words

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import NamedTuple

from muniment.core.text.analyzer import MONTHS, analyze, ascii_words, stem, stop_words
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.stated.attribute_table import WORDS, Statement, attributes

__all__ = [
    "ADDS",
    "CHANGE",
    "OTHER",
    "OWN",
    "QUANTITY",
    "AskedAttribute",
    "asked_attributes",
    "asking_words",
    "ended",
    "key_attributes",
    "marks",
    "mine",
    "name_of",
    "newly",
    "no_names",
    "other",
    "own",
]

CHANGE = "#change"
"""The term of a short text that says that something is no longer as it was. A long one is about more than that."""
CHANGE_CHARS_MAX = 200
ADDS = "#adds"
"""The term of a short text that says "also": it adds to what was said, and replaces nothing."""
OWN, OTHER = "#own-", "#other-"
"""What the terms of attributes begin with."""
QUANTITY = "#number"
"""The term of a text that has a number, or says how often."""

_CHANGED = lazy_pattern(
    r"(?i)"
    r"\b(?:switched|changed|swapped|upgraded|replaced|traded|converted|renamed|rescheduled|postponed)\b"
    r"|\b(?:moved|raised|lowered|increased|reduced|dropped) [^.!?]{0,30}?\b(?:to|from)\b"
    r"|\b(?:no longer|anymore|any more|from now on|nowadays)\b|\bnew favou?rite\b|\b(?:my|our|a|the|brand) new\b"
    r"|\b(?:quit|gave up|given up|took up|stopped|ditched|cancel+ed|dropped|sold)\b"
    r"|\b(?:is|are|am|'m|'s|'re|’m|have|has|i|we) (?:[\w'’]+ ){0,6}?now\b|\bnow (?:i|we|my|our|it)\b"
    r"|\bnow (?:starts?|begins?|ends?|opens?|closes?|runs?|leaves?|arrives?|costs?|takes?|happens?)\b"
    r"|换成|换了|换到|改成|改为|改用|不再|戒了|现在|搬到|바꿨|바뀌었|바꾸었|이제|더 이상|끊었|새로|옮겼|그만"
)
_NEWLY = lazy_pattern(
    r"(?i)^(?:moved|relocated|settled|new|joined|start|hired|promoted|got|get|landed|accepted|took|quit|left|lost|changed"
    r"|switched|resigned|laid|was fired|retired|broke|split|began|filed|tied|bought|leased|upgraded|picked|replaced|traded"
    r"|went|enrol|transferred|dropped|gave|given|stopped|cut|no longer)|\b(?:new|got|newly)\b"
    r"|搬|定居|入职|跳槽|换|新|辞|离|退休|分手|结婚|订婚|转|考上|买|이사|이직|입사|취직|퇴사|그만|결혼|이혼|헤어|약혼|편입|입학|바꿨|샀"
)
"""How a statement begins that says of a change by itself."""
_DIGIT = re.compile("[0-9]")
_DOUBT = lazy_pattern(
    r"(?i)\b(?:if|would|could|should|might|wish|want(?:s|ed)? to|planning|plan to|thinking|considering|hop(?:e|ing)"
    r"|going to|used to|dream|imagine|about to|how (?:to|do)|whether|did you|do you)\b"
    r"|如果|要是|假如|假设|万一|想|打算|希望|梦见|要不要|싶|려고|계획|만약|만일"
)
_DOUBT_AFTER = lazy_pattern(
    r"的话|就好[了啦]|就太好了|该多好|多好啊|的(?:打算|计划|想法)|싶|텐데|려고|려면|면 (?:좋|어떨)|으면|예정|계획|거예요|겁니다|거야|까 (?:해|하|생각)"
)
"""In Chinese and Korean what is only thought of may be told so behind it."""
_DOUBT_CHARS = 30
"""So far before or behind a statement its doubt stands: "I would love to live in Rome"."""
_SENTENCE_CHARS = 400
"""So far before a statement the start of its sentence is looked for."""
_NAME_CHARS = 64
"""No name is longer."""
_ADDING = lazy_pattern(
    r"(?i)\b(?:also|as well|in addition)\b|\btoo(?=[.!,;]|$)|也|还有|另外|此外|[가-힣]도(?=[\s,.!]|$)|또한|추가로"
)
_MINE = lazy_pattern(
    r"\b(?:[Mm]y|[Oo]ur)(?P<new> new)?(?: [a-z][\w-]*)? (?P<what>[a-z][\w-]*) (?:is|are) (?!not\b|also\b)"
)
"""What is the speaker's own is said to be something."""
_ENDED = lazy_pattern(
    r"(?i)\b(?:gave up|given up|quit|stopped (?:drinking|eating|having|using|taking|playing|smoking|going to|doing)"
    r"|no longer (?:drink|eat|have|use|take|play|smoke|do)) (?:the |my |all |any )?(?P<what>[a-z]+)\b"
)
_END_TRIGGERS = frozenset("give quit stop longer".split())
_HANGUL = lazy_pattern("[\uac00-\ud7a3]")  # its subject is often left out
_USERS = frozenset(("user", "me", "my", "self", "profile", "person", "personal"))
"""What the keys of facts about the user begin with."""
_OTHERS = frozenset(("person", "pet", "trip", "thing"))
"""What the keys of facts about somebody or something else begin with, where they have three parts."""
_KEY_WORD = lazy_pattern(r"[^\W_]+")
_SENTENCE = lazy_pattern(r"[.!?;。！？\n]")
_SUBJECT = lazy_pattern(
    r"(?i)\b(?P<own>(?:i|we)(?:['’]\w+)?|my|our|me)\b|(?P<own_cjk>我|咱|저는|나는|제가|내가|저희|우리)"
    r"|\b(?P<someone>he|she|they|you|his|her|their|your|who|user|customer|client|patient)\b|(?P<someone_cjk>[他她你您]|그는|그녀)"
    r"|\b(?P<kin>friends?|brothers?|sisters?|parents?|mother|mom|mum|father|dad|sons?|daughters?|boss|colleague|coworker"
    r"|roommate|neighbou?rs?|cousin|uncle|aunt|grand\w+|people|everyone|someone)\b"
    r"|(?P<kin_cjk>朋友|妈妈|爸爸|妹妹|姐姐|哥哥|弟弟|父母|친구|엄마|아빠|동생|언니|누나|오빠|부모님)"
    r"|(?-i:\b(?<!the )(?<!\ba )(?<!in )(?<!at )(?<!to )(?<!of )(?<!for )(?<!from )(?<!on )(?P<name>[A-Z][a-z]+)\b)"
)


class _Terms(NamedTuple):
    """The terms that a text is looked through for before any pattern is tried."""

    counts: frozenset[str]
    """Of numbers that are written in words."""
    changes: frozenset[str]
    statements: tuple[tuple[str, Statement], ...]
    """Attributes, each with a way to state it."""
    triggers: dict[str, list[int]]
    """Term → numbers of the statements that it may be part of."""
    telling: frozenset[str]
    """All of them: a text without any has only words."""


@cache
def _terms() -> _Terms:
    statements = tuple((attribute.name, statement) for attribute in attributes() for statement in attribute.stated)
    triggers: dict[str, list[int]] = {}
    for number, (_, statement) in enumerate(statements):
        for trigger in statement.triggers:
            triggers.setdefault(trigger, []).append(number)
    counts, changes = frozenset(WORDS.words("counting terms")), frozenset(WORDS.words("change terms"))
    return _Terms(counts, changes, statements, triggers, counts | changes | _END_TRIGGERS | triggers.keys())


@cache
def no_names() -> frozenset[str]:
    """Words that start a sentence with a capital and name nobody."""
    return stop_words("english") | frozenset(MONTHS) | frozenset(WORDS.words("no names"))


@cache
def asking_words() -> frozenset[str]:
    """An English question for an attribute has one of these words."""
    return frozenset(WORDS.words("asking words"))


def own(attribute: str) -> str:
    """The term of what the speaker says of themselves."""
    return OWN + attribute


def other(attribute: str) -> str:
    """The term of what the speaker says of somebody else."""
    return OTHER + attribute


def newly(term: str) -> str:
    """The term of a text that says that the attribute of a term has just changed."""
    return f"{term}!"


def mine(term: str) -> str:
    """The term of a text that says what is the speaker's own: "my manager is …" """
    return f"#my-{term}"


def ended(term: str) -> str:
    """The term of a text that says that something is given up."""
    return f"#ended-{term}"


def name_of(term: str) -> str | None:
    """The attribute that a term stands for; None for a word."""
    return term.partition("-")[2] or None if term.startswith((OWN, OTHER)) else None


def marks(text: str, terms: Collection[str]) -> list[str]:
    """The terms of what a text says beyond its words. `terms` are those of its words."""
    known = _terms()
    telling = known.telling.intersection(terms)
    found = _short_marks(text, telling) if len(text) <= CHANGE_CHARS_MAX else []
    if not telling and " now" not in text:
        return [*found, QUANTITY] if _DIGIT.search(text) else found
    if _DIGIT.search(text) or not known.counts.isdisjoint(telling):
        found.append(QUANTITY)
    if len(text) <= CHANGE_CHARS_MAX:
        may_change = " now" in text or not known.changes.isdisjoint(telling)
        if may_change and _CHANGED.search(text):
            found.append(CHANGE)
    subjects = _Subjects(text)
    for number in sorted({number for term in telling for number in known.triggers.get(term, ())}):
        name, statement = known.statements[number]
        found += _statements(text, name, statement.pattern, subjects)
    return list(dict.fromkeys(found))


def _short_marks(text: str, telling: Collection[str]) -> list[str]:
    """The marks of a short text: that it adds to what was said, says what is the speaker's own, or gives something up."""
    found = []
    if (not text.isascii() or "lso " in text or " too" in text or "as well" in text or "addition" in text) and (
        _ADDING.search(text)
    ):
        found.append(ADDS)
    if (" is " in text or " are " in text) and ("y " in text or "ur " in text):
        for match in _MINE.finditer(text):
            term = mine(stem(match["what"]))
            found += [term, newly(term)] if match["new"] else [term]
    if not _END_TRIGGERS.isdisjoint(telling):
        found += [ended(stem(match["what"].casefold())) for match in _ENDED.finditer(text)]
    return found


def _statements(text: str, name: str, pattern: re.Pattern[str], subjects: _Subjects) -> list[str]:
    """Whose attribute the text states in this way, and whether as something new."""
    found = []
    for match in pattern.finditer(text):
        said = _said(text, match, name, subjects)
        if said is not None:
            found += [said, newly(said)] if _NEWLY.search(match[0]) else [said]
    return found


def _said(text: str, match: re.Match[str], attribute: str, subjects: _Subjects) -> str | None:
    """Whose attribute is stated there; None where it is only thought of."""
    start, at = 0, match.start()
    for end in _SENTENCE.finditer(text, max(0, at - _SENTENCE_CHARS), at):
        start = end.end()
    if _DOUBT.search(text, max(start, at - _DOUBT_CHARS), at):
        return None
    if not text.isascii():
        last = match.end() + _DOUBT_CHARS
        stop = _SENTENCE.search(text, match.end(), last)
        if _DOUBT_AFTER.search(text, match.end(), stop.start() if stop else last):
            return None
    is_own = _is_own(_SUBJECT.finditer(text, start, at)) if start else subjects.is_own(at)
    return own(attribute) if is_own else other(attribute)


def _is_own(subjects: Iterable[re.Match[str]], before: bool = True) -> bool:
    """Is the last of the subjects the speaker? Where there is none, what was so `before` them is so still."""
    is_own = before
    for subject in subjects:
        name = subject["name"]
        if name is None or name.casefold() not in no_names():
            is_own = bool(subject["own"] or subject["own_cjk"])
    return is_own


class _Subjects:
    """Who is spoken of up to a place of a text whose sentence began far before it, if at all.

    The text is read for its subjects once, as far as it is asked about: one statement repeated for pages would
    otherwise have it read from the start for each.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._unread = _SUBJECT.finditer(text)
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._own: list[bool] = []
        """After each subject: was the last one that counts the speaker?"""

    def is_own(self, at: int) -> bool:
        """Is the speaker the last that was named before this place?"""
        while not self._ends or self._ends[-1] <= at:
            subject = next(self._unread, None)
            if subject is None:
                break
            self._own.append(_is_own((subject,), self._own[-1] if self._own else True))
            self._starts.append(subject.start())
            self._ends.append(subject.end())
        count, near = bisect_right(self._ends, at), at - _NAME_CHARS
        if count < len(self._ends) and self._starts[count] < near:
            return self._own[count]  # one without end, and the place is in the midst of it
        before, read = (self._own[count - 1], self._ends[count - 1]) if count else (True, 0)
        # For a subject the text ends at this place, so a word that goes on behind it is read again: `Ana住在北京`.
        return _is_own(_SUBJECT.finditer(self._text, max(read, near), at), before)


class AskedAttribute(NamedTuple):
    """An attribute that a question asks for."""

    term: str
    words: frozenset[str]
    """The terms of the words that it may be asked with."""
    is_shared: bool
    """Somebody is named, and many may have it: it tells less than the name does."""


def asked_attributes(text: str, *, names_speaker: bool = False) -> list[AskedAttribute]:
    """What a question asks for: of the speaker, of somebody else, or, where it names somebody, of either."""
    if text.isascii() and asking_words().isdisjoint(ascii_words(text)):
        return []
    wanted = [each for each in attributes() if each.asked.search(text)]
    if not wanted:
        return []
    whose = [own] if names_speaker else _whose(text)
    return [
        AskedAttribute(term(each.name), _asking_terms(each.name), len(whose) > 1) for each in wanted for term in whose
    ]


def _whose(text: str) -> list[Callable[[str], str]]:
    """Whom a question is about: a sister is somebody else, whoever has a name may be the speaker, koalas are nobody."""
    kinds: set[str] = set()
    for subject in _SUBJECT.finditer(text):
        if subject.lastgroup != "name" or subject["name"].casefold() not in no_names():
            kinds.add(str(subject.lastgroup).removesuffix("_cjk"))
    if "kin" in kinds:
        return [other]
    if "name" in kinds:
        return [own, other]
    return [own] if kinds or _HANGUL.search(text) else []


@cache
def _asking_terms(name: str) -> frozenset[str]:
    words = next(each.words for each in attributes() if each.name == name)
    return frozenset(analyze(" ".join(sorted(words))))


def key_attributes(key: str) -> list[str]:
    """The terms of the attributes that the key of a fact names: `user.city`, `job`; `shop.city` is somebody else's."""
    words = _KEY_WORD.findall(key.casefold())
    found = [each for each in attributes() if not each.words.isdisjoint(words)]
    if not found:
        return []
    subjects = [_SUBJECT.fullmatch(word) for word in words]
    has_kin = any(subject is not None and subject["kin"] is not None for subject in subjects)
    is_others = words[0] in _OTHERS and key.count(".") > 1
    is_users = not is_others and (words[0] in _USERS or "." not in key or any(words[0] in each.words for each in found))
    whose = own if is_users and not has_kin else other
    return [whose(each.name) for each in found]
