"""What a text states: of whom, which attribute, which value, and in which of its words.

"I live in Lisbon and I am allergic to peanuts" states two things, and a later "I moved to Berlin" ends one of them. So
that nothing is told as outdated that still holds, a statement is read only where it is plain: not asked, not wished for,
not somebody's whose name or kin is not said. What is denied or told as past is the end of a state, not a state.

Which of two statements stands is for those to say who know when they were made (`memory.recall.supersession`).
"""

# ruff: noqa: E501 - long patterns read best on one line

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from muniment.core.text.analyzer import ascii_words
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.sentences import sentence_spans
from muniment.core.text.stated.attributes import no_names
from muniment.core.text.stated.places import is_known_place, is_no_place, is_region
from muniment.core.text.stated.statement_table import KIN, Mode, Way, ways
from muniment.core.text.stated.statement_values import Value, read_value, words_in

__all__ = ["STATEMENTS_MAX", "Statement", "read_statements"]

STATEMENTS_MAX = 40
"""In one text. More is a list or a form, and nobody's plain word."""
MATCHES_MAX = 200
"""A text in which more seems to be stated is not looked at."""
SENTENCE_CHARS_MAX = 400
"""Longer runs are lists, pasted text and the like."""


class Statement(NamedTuple):
    """One thing that a text states."""

    who: tuple[str, str]
    """Whose it is: kin and name, each empty where it is not said; both are empty for the speaker."""
    key: str
    mode: Mode
    value: frozenset[str] | None
    """The stems of the words of the value; None where none is said."""
    is_named: bool
    """The value is a name, a day or a word that can be held against another: "a small flat" cannot."""
    adds: bool
    """It says "also": it stands beside what was said before."""
    scale: str
    """Of a home: a `region`, a `town` that is well known, any other `place`. Who lives in a region lives in a town, too."""
    start: int
    end: int
    """Where its words stand in the text, half-open, in characters."""

    @property
    def label(self) -> str:
        """`home`, or `sister.home` where it is somebody else's."""
        kin, name = self.who
        return f"{kin or name}.{self.key}" if kin or name else self.key


_OUTSIDE = lazy_pattern(r"(?s)```.*?(?:```|\Z)|`[^`\n]{0,500}`|(?m:^[ \t]{0,8}(?:>|\|).*$)")
"""Code, and lines that quote somebody."""
_QUOTE = lazy_pattern('["“”„«»「」『』]')
_WORDS = lazy_pattern(r"[^\W_]+")
_WHO = lazy_pattern(
    r"(?P<own>\b(?:I|i|[Ww]e)\b(?!\.))"
    rf"|(?P<kin>\b(?:[Mm]y|[Oo]ur) (?P<noun>(?:(?:older|younger|big|little|elder|twin|eldest|youngest|oldest|middle|first|second|other|late|former|old) )?{KIN})\b"
    r"(?:,? (?P<called>[A-Z][a-z]+)\b)?(?:['’]s? (?P<kins>[a-z]+))?)"
    r"|(?P<third>\b(?:[Hh]e|[Ss]he)\b)|(?P<nobody>\b(?:[Tt]hey|[Yy]ou|[Ii]t)\b)"
    r"|(?P<name>\b[A-ZÀ-ÖØ-Þ][a-zà-ÿ]+\b(?:['’]s (?P<names>[a-z]+))?)"
)  # fmt: skip
_OF = lazy_pattern(rf"(?:[Mm]y|[Oo]ur) (?P<noun>(?:[a-z]+ )?{KIN})['’]s?|(?P<name>[^\W\d_][\w-]*)['’]s")
_DOUBT = lazy_pattern(
    r"(?i)\b(?:if|would|could|should|might|wish|wants?|wanted|plan(?:s|ning|ned)?|thinking|consider(?:s|ing|ed)?|hop(?:e|es|ing|ed)|going to"
    r"|dream(?:s|t|ed|ing)?|imagine|about to|how to|whether|pretend|suppose|supposed|almost|nearly|maybe|perhaps|probably|will|won['’]t|gonna|unless"
    r"|until|let['’]s|can|can['’]t|cannot|ought|as if|as though|when i was|before i|(?:he|she|they|you|people) (?:said|says?|thinks?|told|believes?|claims?))\b"
    r"|['’](?:ll|d)\b|如果|要是|假如|万一|想|打算|希望|梦|싶|려고|만약"
)  # fmt: skip
_DOUBT_AFTER = lazy_pattern(
    r"的话|就好|多好|싶|텐데|려고|려면|으면|면 (?:좋|어떨)|예정|계획|거예요|겁니다|(?i:\b(?:one day|someday|next (?:week|month|year|summer|spring)))\b"
)
_NEGATED = lazy_pattern(
    r"(?i)\b(?:not|never|no longer|used to|don['’]t|doesn['’]t|didn['’]t|isn['’]t|aren['’]t|wasn['’]t|haven['’]t|hasn['’]t|ain['’]t)\b|不再?$|没有?$"
)
_PAST = lazy_pattern(
    r"(?i)\b(?:years|decades?) ago\b|\b(?:as|when i was) a (?:kid|child|teen\w*|student|boy|girl)\b|\bback (?:then|in (?:the|my|19|20))|\bat the time\b"
    r"|\bin my (?:twenties|thirties|youth|childhood|teens)\b|\buntil (?:last|recently|then|\d)|\bfor (?:the weekend|a visit|a holiday|vacation|a few days|a week)\b"
)
_NOW = lazy_pattern(r"\bnow\b|现在|이제")
_NOW_NEW = frozenset(("home", "employer", "job", "car", "phone"))
"""Of these, who says "now" tells of a change."""
_YEAR = lazy_pattern(r"\b(?:in|of|around) (?:[A-Z][a-z]+ )?((?:19|20)\d\d)\b")
_ADDS = lazy_pattern(
    r"(?i)\b(?:also|too|as well|another|second|in addition|besides|on weekends|on the side|for my (?!self)|for a friend|for the summer)\b|也|还|另外|[가-힣]도(?=[\s,.!]|$)|또"
)
_CLAUSE_END = lazy_pattern(
    r"[,;:—–()，；、]|\s-\s|\s(?:and|but|so|while|although|though|because|where|which|who|whereas|plus)\b"
)
_GAP = lazy_pattern(r"[\w'’-]+|[,;:—–(]")
_PARTNERS = [
    f"{word}{joint} "
    for word in (
        "girlfriend",
        "boyfriend",
        "wife",
        "husband",
        "partner",
        "spouse",
        "fiancé",
        "fiancée",
        "fiance",
        "fiancee",
    )
    for joint in ("", ",")
]
_LOOKED_BACK = 240
"""So far before a statement its subject is looked for."""


def read_statements(text: str, year: int) -> tuple[Statement, ...]:
    """What a text states that was said in this year, in the order of its words."""
    by_word, signs = ways()
    words = set(ascii_words(text)) if text.isascii() else {word.casefold() for word in _WORDS.findall(text)}
    chosen = {way: None for word in sorted(by_word.keys() & words) for way in by_word[word]}
    if not text.isascii():
        chosen |= {way: None for sign, way in signs if sign in text}
    if not chosen:
        return ()
    if "`" in text or ">" in text or "|" in text:
        text = _OUTSIDE.sub(lambda match: "\n" * len(match[0]), text)
    matches = [(way, match) for way in chosen for match in way.pattern.finditer(text)]
    if not matches or len(matches) > MATCHES_MAX:
        return ()
    spans = sentence_spans(text)
    starts = [start for start, _ in spans]
    found: dict[tuple[int, str, Mode], Statement] = {}
    for way, match in matches:
        place = bisect_right(starts, match.start() + len(match[0]) - len(match[0].lstrip())) - 1
        if place >= 0 and _is_plain(text, spans[place], match.start()):
            statement = _read(text, spans[place], way, match, year)
            if statement is not None:
                found.setdefault((statement.start, statement.key, statement.mode), statement)
    if len(found) > STATEMENTS_MAX:
        return ()
    return tuple(sorted(found.values(), key=lambda each: (each.start, each.end, each.key, each.mode)))


def _is_plain(text: str, span: tuple[int, int], at: int) -> bool:
    """Neither too long to be plain, nor a question, nor within quotation marks."""
    start, end = span
    if end - start > SENTENCE_CHARS_MAX or text[end - 1] in "?？":
        return False
    return len(_QUOTE.findall(text, start, at)) % 2 == 0


def _read(text: str, span: tuple[int, int], way: Way, match: re.Match[str], year: int) -> Statement | None:
    """The statement that a match makes; None where it makes none."""
    start, end = span
    whose = _whose(text, start, match)
    if whose is None:
        return None
    who, begun, gap, is_we = whose
    if _DOUBT.search(text, max(start, begun - 40), match.end()):
        return None
    value = read_value(text, way.value, match, end)
    if value is None:
        return None
    stop = _clause_end(text, max(value.end, match.end()), end)
    if way.key == "partner" and match[0].endswith(tuple(_PARTNERS)):
        stop = value.end  # "my wife Tina works for Bayer" says what she is called, and more
    tail = text[value.end : stop]
    if _DOUBT_AFTER.search(tail) or _PAST.search(tail) or any(int(each) < year - 1 for each in _YEAR.findall(tail)):
        return None
    mode = way.mode
    if _NEGATED.search(gap) or _NEGATED.search(match[0]):
        if mode == "ends" or value.words is None:
            return None
        mode = "ends"
    key = way.key or _thing(match, value)
    if not key or (way.key == "home" and not _is_home(value, is_we=is_we)):
        return None
    adds = _ADDS.search(text, begun, stop) is not None
    if mode == "is" and key in _NOW_NEW and _NOW.search(text, begun, stop):
        mode = "changes"
    scale = _scale(value.text) if way.key == "home" and value.is_named else ""
    return Statement(who, key, mode, value.words, value.is_named, adds, scale, begun, stop)


def _is_home(value: Value, *, is_we: bool) -> bool:
    """One moves to Slack without living there; a `we` may be a firm, so its place must be well known."""
    if not value.is_named or not value.text.isascii():
        return True
    return is_known_place(value.text) if is_we else not is_no_place(value.text)


def _scale(place: str) -> str:
    return "region" if is_region(place) else "town" if is_known_place(place) else "place"


def _thing(match: re.Match[str], value: Value) -> str:
    """What "my … is" is about; nothing where it says how that is, and not which: "my boss is great"."""
    what = " ".join(match["what"].casefold().replace("favourite", "favorite").split())
    if what.startswith("favorite "):
        return what.replace(" ", ".", 1).replace(" ", "_")
    return what.replace(" ", "_") if any(char.isupper() or char.isdigit() for char in value.text) else ""


def _clause_end(text: str, at: int, end: int) -> int:
    found = _CLAUSE_END.search(text, at, end)
    stop = end if found is None else found.start()
    while stop > at and (text[stop - 1].isspace() or text[stop - 1] in ".!…。！\"'”’)"):
        stop -= 1
    return stop


# -- whose it is --------------------------------------------------------------------------------------


class _Whose(NamedTuple):
    who: tuple[str, str]
    begun: int
    """Where the words of the statement begin: at its subject, if that stands right before it."""
    gap: str
    is_we: bool


def _whose(text: str, start: int, match: re.Match[str]) -> _Whose | None:
    groups = match.groupdict()
    at = match.start() + len(match[0]) - len(match[0].lstrip(" ,;"))
    before = text[max(start, match.start() - 24) : match.start()]
    if (of := groups.get("of")) is not None:
        who = _owner(of)
        return None if who is None else _Whose(who, min(at, match.start("of")), before, False)
    if not match[0].isascii():
        return _whose_cjk(text, start, match)
    form = "base" if groups.get("base") else "third" if groups.get("third") else ""
    joined = match[0][:1] in ",;" or match[0].startswith("and ")
    for subject in reversed(list(_WHO.finditer(text, max(start, match.start() - _LOOKED_BACK), match.start()))):
        gap = text[subject.end() : match.start()]
        reach = "joined" if joined else _reach(gap)
        if reach is None or not _agrees(subject, form):
            continue
        if subject["own"] is None and not _is_subject(text, start, subject, reach):
            continue
        who = _person(text, subject)
        if who is None:
            return None
        begun = subject.start() if reach == "adjacent" else at
        return _Whose(who, begun, gap if reach == "adjacent" else _last_part(gap), subject["own"] in ("we", "We"))
    opening = [word.casefold() for word in _GAP.findall(text[start : match.start()])]
    is_elided = form != "third" and all(
        word in words_in("intro") or word in words_in("joints") or word in words_in("between") for word in opening
    )
    return _Whose(("", ""), at, text[start : match.start()], False) if is_elided else None


def _whose_cjk(text: str, start: int, match: re.Match[str]) -> _Whose | None:
    """The speaker, unless somebody else is named before: these languages leave the speaker out."""
    before = text[start : match.start()] + match[0]
    if re.search(
        "[他她你您它谁]|朋友|妈妈|爸爸|妹妹|姐姐|哥哥|弟弟|父母|同事|친구|엄마|아빠|동생|언니|누나|오빠|부모님|그는|그녀",
        before,
    ):
        return None
    own = re.search("我们?|咱们?|저는|나는|제가|내가|저희|우리", text[start : match.start()])
    begun = match.start() if own is None else start + own.start()
    return _Whose(("", ""), begun, text[begun : match.start()], False)


def _owner(of: str) -> tuple[str, str] | None:
    if of.casefold() in ("my", "our"):
        return "", ""
    found = _OF.fullmatch(of)
    if found is None:
        return None
    return (found["noun"].casefold(), "") if found["noun"] else ("", found["name"].casefold())


def _reach(gap: str) -> str | None:
    """How a subject reaches its verb: it stands right before it, or further verbs are joined to it; else not at all."""
    words = [word.casefold() for word in _GAP.findall(gap)]
    while words and (words[-1] in words_in("between") or words[-1].endswith("ly")):
        words.pop()
    if not words or (words in ([","], ["("]) and re.search(r"\bwho\b", gap)):
        return "adjacent"
    return "joined" if words[-1] in (",", ";", "—", "–", "and", "but", "then") else None


def _last_part(gap: str) -> str:
    """What stands behind the last joint: "and no longer"."""
    return re.split(r"[,;—–]|\b(?:and|but|then)\b", gap)[-1]


def _agrees(subject: re.Match[str], form: str) -> bool:
    """`live` is said of the speaker and of several, `lives` of one other."""
    is_own = subject["own"] is not None
    noun = subject["noun"] or ""
    is_several = subject["nobody"] is not None or noun.endswith(("s", "children")) or bool(subject["kins"])
    return not ((form == "third" and is_own) or (form == "base" and not is_own and not is_several))


def _is_subject(text: str, start: int, subject: re.Match[str], reach: str) -> bool:
    """Does it begin a clause? "I love my sister and moved" tells of the speaker. A name is none that ends a phrase."""
    before = [word.casefold() for word in _GAP.findall(text[max(start, subject.start() - 24) : subject.start()])]
    if subject["name"] and subject["name"].casefold() in no_names():
        return False
    if not before or before[-1] in words_in("joints") or before[-1] in words_in("intro"):
        return True
    is_phrase = before[-1] in ("in", "at", "to", "of", "for", "from", "on", "with", "near", "the", "a", "an", "and")
    return reach == "adjacent" and not (subject["name"] and is_phrase)


def _person(text: str, subject: re.Match[str]) -> tuple[str, str] | None:
    """Whom the subject names; None where nobody can tell."""
    if subject["own"] is not None:
        return "", ""
    if subject["nobody"] is not None:
        return None
    if subject["third"] is not None:
        named = {found for found in _named(text[: subject.start()]) if found is not None}
        return named.pop() if len(named) == 1 else None
    return _named_by(subject)


def _named(text: str) -> Iterator[tuple[str, str] | None]:
    """Those who were named before, for whom "she" may stand; only what is near is looked at."""
    for subject in _WHO.finditer(text[-_LOOKED_BACK:]):
        if subject["kin"] or (subject["name"] and subject["name"].casefold() not in no_names()):
            yield _named_by(subject)


def _named_by(subject: re.Match[str]) -> tuple[str, str]:
    if subject["kin"]:
        kin = subject["noun"].casefold() + (f"'s {subject['kins']}" if subject["kins"] else "")
        return kin, (subject["called"] or "").casefold()
    name = subject["name"].partition("'")[0].partition("’")[0].casefold()
    if name in ("mom", "mum", "dad", "grandma", "grandpa", "mother", "father"):
        return name, ""
    return (f"{name}'s {subject['names']}", "") if subject["names"] else ("", name)
