"""What someone takes back of what they said of themselves, in so many words: `我不住在北京了`. English has its own, `english.endings`.

It says no more than that: which fact falls is seen where facts are, and where none stands nothing comes of it.
"""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from muniment.memory.extraction import chinese, korean
from muniment.memory.extraction.grammar import TakenBack
from muniment.memory.extraction.sentences import Sentence
from muniment.memory.facts.candidate_records import Proposal

__all__ = ["TakenBack", "opposite_of", "take_back"]

_OPPOSITE = {"user.likes": "user.dislikes", "user.dislikes": "user.likes"}


class _Rule(NamedTuple):
    name: str
    pattern: re.Pattern[str]
    key: str
    value: str | None = None
    """In its stead, where the words of the pattern are not those of the fact."""


_CHINESE = tuple(
    _Rule(name, re.compile(rf"{pattern}$"), key, value)
    for name, pattern, key, value in (
        ("no longer lives in", rf"(?:{chinese.WE})(?:已经|已經|现在|現在|目前)?不(?:再)?住在?{chinese.PLACE}了?", "user.location", None),
        ("moved away from", rf"{chinese.WHEN}(?:{chinese.WE}){chinese.WHEN}从{chinese.PLACE}搬(?:走|出来|出去)了?", "user.location", None),
        ("moved away from", rf"{chinese.WHEN}(?:{chinese.WE}){chinese.WHEN}搬离了?{chinese.PLACE}", "user.location", None),
        ("left a job", rf"{chinese.WHEN}{chinese.SELF}{chinese.WHEN}[从從](?P<value>[\u4e00-\u9fff]{{2,10}}?|[A-Z][A-Za-z]+)(?:离职|離職|辞职|辭職|退休|辞掉工作)了?", "user.employer", None),
        ("left a job", rf"{chinese.WHEN}{chinese.SELF}{chinese.WHEN}(?:离职|離職|辞职|辭職|失业|失業|被裁员|被裁|退休)了", "user.employer", None),
        ("no longer works for", rf"{chinese.SELF}(?:已经|已經|现在|現在)?不(?:再)?在(?P<value>[\u4e00-\u9fff]{{2,10}}?|[A-Z][A-Za-z]+)(?:工作|上班)了?", "user.employer", None),
        ("no longer eats so", rf"{chinese.SELF}(?:已经|已經|现在|現在)?不(?:再)?(?:是素食者|是素食主义者|是素食主義者|吃素)了?", "user.diet", "vegetarian"),
        ("no allergy", rf"{chinese.SELF}(?:其实|其實|已经|已經|现在|現在)?[对對](?P<value>[\u4e00-\u9fff]{{1,5}}?)(?:其实|其實|已经|已經|现在|現在|并|並)?不(?:再)?[过過]敏了?", "user.allergy", None),
        ("no longer likes", rf"{chinese.SELF}(?:已经|已經|现在|現在)?不再(?:喜欢|喜歡)(?P<value>[\u4e00-\u9fff]{{1,8}}?)了?", "user.likes", None),
        ("no longer likes", rf"{chinese.SELF}(?:已经|已經|现在|現在)?不(?:喜欢|喜歡)(?P<value>[\u4e00-\u9fff]{{1,8}}?)了", "user.likes", None),
        ("no longer dislikes", rf"{chinese.SELF}(?:已经|已經|现在|現在)?不(?:再)?(?:讨厌|討厭)(?P<value>[\u4e00-\u9fff]{{1,8}}?)了?", "user.dislikes", None),
    )
)  # fmt: skip

_NOW = r"(?:이제는?|더 이상|더는|지금은|요즘은)\s"
_SINCE = rf"(?:{korean.SELF}(?:{_NOW})*|(?:{_NOW})+(?:{korean.SELF})?)"
_LEFT = r"(?:그만뒀어요|그만두었어요|그만뒀습니다|그만뒀어|그만뒀다|퇴사했어요|퇴사했습니다|퇴사했어)"

_KOREAN = tuple(
    _Rule(name, re.compile(rf"{pattern}$"), key, value)
    for name, pattern, key, value in (
        ("no longer lives in", rf"{_SINCE}(?P<value>[가-힣A-Za-z]{{2,10}})에(?:서는?|는)? (?:{_NOW})?(?:안 살아요|안 삽니다|안 살아|살지 않아요|살지 않습니다|살지 않아)", "user.location", None),
        ("left a job", rf"(?:{korean.SELF})?{korean.WHEN}(?:회사|직장|일)[을를] {_LEFT}", "user.employer", None),
        ("left a job", rf"(?:{korean.SELF})?{korean.WHEN}(?P<value>[가-힣A-Za-z]{{2,10}}?)(?:[을를]|에서) {_LEFT}", "user.employer", None),
        ("no longer works for", rf"{_SINCE}(?P<value>[가-힣A-Za-z]{{2,10}}?)에서 (?:{_NOW})?(?:일 안 해요|일하지 않아요|일하지 않습니다|근무하지 않아요|근무하지 않습니다)", "user.employer", None),
        ("no longer eats so", rf"{_SINCE}(?:채식주의자가 아니에요|채식주의자가 아닙니다|채식을 안 해요|채식을 하지 않아요)", "user.diet", "vegetarian"),
        ("no longer eats so", rf"{_SINCE}(?:비건이 아니에요|비건이 아닙니다)", "user.diet", "vegan"),
        ("no allergy", rf"{_SINCE}(?P<value>[가-힣]{{1,6}}?) ?알레르기가 (?:{_NOW})?(?:없어요|없습니다|없어|없어졌어요|아니에요)", "user.allergy", None),
        ("no longer likes", rf"(?:{korean.SELF})?(?:{_NOW})+(?:{korean.SELF})?(?P<value>[가-힣A-Za-z]{{1,10}}?)[을를] (?:{_NOW})?(?:안 좋아해요|좋아하지 않아요|좋아하지 않습니다)", "user.likes", None),
    )
)  # fmt: skip


def take_back(sentence: Sentence, language: str) -> Iterator[TakenBack]:
    """What a sentence takes back of its speaker; like a statement, it must be plain and beyond doubt."""
    rules, doubtful, clause = _LANGUAGES[language]
    if sentence.is_question or sentence.is_quoting or doubtful.search(sentence.text):
        return
    for part in clause.split(sentence.text):
        for rule in rules:
            match = rule.pattern.match(part)
            if match is not None:
                value = rule.value or match.groupdict().get("value")
                yield TakenBack(rule.key, value, part.strip(), f"{language}: {rule.name}")
                break


_LANGUAGES = {
    "chinese": (_CHINESE, chinese.DOUBTFUL, chinese.CLAUSE),
    "korean": (_KOREAN, korean.DOUBTFUL, korean.CLAUSE),
}


def opposite_of(proposal: Proposal) -> TakenBack | None:
    """Who says that they like something no longer dislikes it, and the other way round."""
    key = _OPPOSITE.get(proposal.key)
    if key is None or not isinstance(proposal.value, str):
        return None
    return TakenBack(key, proposal.value, proposal.quote, f"{proposal.why}, and not the contrary", proposal.confidence)
