"""The attributes of a person that may change: how each is asked for, how it is stated, what it goes by.

Patterns for English, Chinese and Korean, written from memory of how people talk, beside the words of
`data/attributes.txt`. `core.text.stated.attributes` reads them.
"""

# ruff: noqa: E501 - a table of patterns reads best with one to a line

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from muniment.core.text.analyzer import stem
from muniment.core.text.patterns import lazy_pattern
from muniment.core.text.word_lists import WordList

__all__ = ["WORDS", "Attribute", "Statement", "attributes"]

WORDS = WordList(__package__, "attributes.txt")

_SPAN = r"(?:[\w'’$-]+ ){0,3}?"
"""A few words between two that belong together."""


def _then(first: str, then: str, unless: str = "") -> str:
    """In one sentence `first`, and anywhere behind it `then`, the last of which has no `unless` behind it.

    Only the first of the first is looked at, and only the last of the last: what stands behind a later one stands behind
    it too. So a text of nothing but `where` is read once, and not once for each of them.
    """
    return rf"(?<![^?.!])(?>[^?.!]*?{first})(?>[^?.!]*{then}){unless}"


class Statement(NamedTuple):
    """A way to state something. Only a text that has one of the trigger terms is looked through for it."""

    triggers: frozenset[str]
    pattern: re.Pattern[str]


class Attribute(NamedTuple):
    name: str
    asked: re.Pattern[str]
    words: frozenset[str]
    """Words it goes by: in questions, and in the keys of facts."""
    stated: tuple[Statement, ...]


def _attribute(name: str, asked: str, *stated: tuple[str, str]) -> Attribute:
    statements = tuple(Statement(frozenset(triggers.split()), lazy_pattern(pattern)) for triggers, pattern in stated)
    return Attribute(name, lazy_pattern(f"(?i){asked}"), frozenset(WORDS.words(f"names of {name}")), statements)


_HOME = r"(?:apartment|flat|condo)"
_JOB = r"(?:job|position|role|gig|internship|career)"
_PARTNER = r"(?:girlfriend|boyfriend|husband|wife|fianc[eé]e?|partner|spouse)"
_DIET = r"(?:vegan|vegetarian|pescatarian|keto|paleo|halal|kosher|gluten[- ]free|dairy[- ]free|plant[- ]based)"
_GOT = (
    r"(?:bought|got|have|has|own|owns|leased?|use|uses|using|drive|drives|driving|(?:upgraded|switched|changed) to|"
    r"picked up|(?:replaced|traded) [^.!?]{0,30}?(?:with|for)|went (?:with|for)|ordered)"
)


def _home() -> Attribute:
    return _attribute(
        "home",
        _then(
            r"\bwhere\b",
            r"\b(?:liv(?:e|es|ing)|resid(?:e|es|ing)|based|mov(?:e|ed)|relocat(?:e|ed)|settled?|home)\b",
            r"(?![^?.!]* from\b)",
        )
        + "|"
        + _then(
            r"\b(?:which|what) (?:city|town|country|state|village|neighbou?rhood|place|part)\b",
            r"\b(?:liv(?:e|es|ing)|based|home|mov(?:e|ed)|reside)\b",
        )
        + r"|\b(?:home )?address\b|\bcity of residence\b"
        r"|住在?(?:哪|什么)|在哪(?:里|儿|个城市)?住|(?<!国)家在哪(?!些)|住址|어디(?:에|에서|서)? ?(?:살|사[는세]|거주)|사는 곳|집이 어디",
        (
            "live",
            rf"\b[Ll](?:ive|ives|iving) (?!music|band|show|concert|performance|event|stream|room){_SPAN}(?:in|at|near|on|outside|by|with)\b",
        ),
        ("resid base settl", rf"(?i)\b(?:reside|resides|residing|based|settled) {_SPAN}(?:in|at|near|on|outside)\b"),
        (
            "move reloc",
            rf"(?i)(?<!was )(?<!were )(?<!been )\b(?:moved|relocated) (?!on\b){_SPAN}(?:to|into|in|back|here|out)\b(?! (?:tears|the next|\d+)\b)",
        ),
        (
            "apart flat condo address",
            rf"(?i)\bnew {_HOME} (?:in|on|at|near)\b|\b(?:my|our|the) new (?:address|{_HOME}) is\b",
        ),
        ("住在 搬到 搬去 搬来 搬进 搬家 定居", "住在|搬到|搬去|搬来|搬进|搬家|定居"),
        ("이사 살아 살고 ^살 ^삽 ^산 거주", "에서? ?(?:살|삽|산다|거주)|(?:으로|로|에) ?이사"),
    )


def _work() -> Attribute:
    return _attribute(
        "work",
        _then(r"\bwhere\b", r"\bwork(?:s|ing)?\b")
        + "|"
        + _then(r"\bwho(?:m)?\b", r"\bwork(?:s|ing)? for\b")
        + r"|\bwork(?:s|ing)? (?:at|for|as)\b"
        r"|\b(?:which|what|whose) (?:company|employer|firm|job|occupation|profession)\b|\bfor a living\b"
        r"|\b(?:my|her|his|their|your|current|'s) (?:job|employer|occupation|profession|workplace)\b"
        r"|在哪(?:里|儿|家公司)?(?:工作|上班)|什么工作|职业是|的职业|어디(?:에|에서|서)? ?(?:일|근무|다니|다녀)|직업|직장|무슨 일",
        ("work", rf"\b[Ww]ork(?:s|ing)? {_SPAN}(?:at|for|as)\b"),
        ("hire emploi promot", r"\b(?:hired|employed) (?:by|at|as)\b|\bself-employed\b|\bpromoted to\b"),
        ("start", r"\b[Ss]tart(?:ed|ing) (?:work(?:ing)? )?(?:at|with) [A-Z]"),
        (
            "join",
            rf"\b[Jj]oin(?:ed|ing) (?:(?:the )?[A-Z][\w&.-]*(?: \w+)? as\b|{_SPAN}(?:company|firm|startup|agency|staff)\b)",
        ),
        ("join", r"\b(?:[Ll]eft|[Qq]uit) [^.!?]{1,30}? (?:and|to|for) join"),
        (
            "job posit role gig internship career",
            rf"(?i)\b(?:new|got|get|landed|accepted|started|took|quit|left|lost|changed|switched|resigned from)"
            rf" (?:a |an |the |my |me |that )?{_SPAN}(?:{_JOB}|jobs|careers)\b|\b(?:my|her|his) (?:new )?{_JOB} is\b",
        ),
        ("laid fire retir freelanc unemploi", r"\b(?:laid off|got fired|was fired|retired|unemployed|freelancing)\b"),
        (
            "工作 上班 任职 入职 跳槽 辞职 离职 退休 失业",
            "在[^，。！？]{1,16}(?:工作|上班|任职)|入职|跳槽|换了?(?:份|个|新)?工作|新工作|辞职|离职|退休|失业",
        ),
        (
            "일해 일하 일합 근무 이직 입사 취직 퇴사 그만 다니",
            "에서 ?(?:일하|일해|일합|근무)|(?:으로|로|에) ?(?:이직|입사|취직)|이직했|퇴사|그만뒀|그만두었|다니(?:고 있|는 회사)",
        ),
    )


def _relationship() -> Attribute:
    return _attribute(
        "relationship",
        r"\b(?:relationship|marital) status\b|"
        + _then(
            r"\b(?:is|are|am|was|do|does)\b",
            r"\b(?:married|single|engaged|divorced|dating|seeing (?:anyone|someone)|in a relationship)\b",
        )
        + "|"
        + _then(r"\bwho\b", rf"\b(?:dating|married|engaged|{_PARTNER})\b")
        + rf"|\bhave an? {_PARTNER}\b|结婚了?[吗没]|单身|婚姻|결혼(?:했|하셨)|미혼|기혼|사귀",
        (
            "engag marri divorc separ singl widow date",
            r"(?i)\b(?:got|gotten|getting|am|'m|’m|is|are|'s|we're|newly|happily|recently|now|still|being|been) "
            r"(?:\w+ ){0,2}?(?:married|engaged|divorced|separated|single|widowed|dating)\b|\b(?:started|began) dating\b"
            r"|\bfiled for divorce\b",
        ),
        ("break split tie", r"(?i)\b(?:broke|split|breaking|splitting) up\b|\btied the knot\b"),
        ("结婚 离婚 分手 订婚 单身", "结婚|离婚|分手|订婚|单身"),
        ("결혼 이혼 헤어 약혼 사귀", "결혼했|이혼|헤어졌|약혼|사귀"),
    )


def _study() -> Attribute:
    return _attribute(
        "study",
        _then(r"\bwhere\b", r"\b(?:study|studies|studying|go(?:es)? to (?:school|college|university))\b")
        + "|"
        + _then(r"\b(?:what|which)\b", r"\b(?:major|studying|study|degree)\b")
        + r"|\bwhich (?:school|university|college)\b"
        r"|在哪(?:里|儿|所大学)?(?:上学|读书|念书)|什么专业|(?:上|读|念)哪所大学|전공|어느 (?:학교|대학)",
        ("studi enrol transfer", rf"(?i)\b(?:study|studies|studying|enrol+ed|transferred) {_SPAN}(?:at|in|to)\b"),
        (
            "major",
            r"(?i)\b(?:majoring in|switched (?:my |his |her )?majors?|changed (?:my |his |her )?major|my (?:new )?major is)\b",
        ),
        ("drop", r"\bdropped out\b"),
        ("专业 转学 转到 考上 就读", "专业|转学|转到|考上|就读"),
        ("전공 편입 입학", "전공|편입|입학"),
    )


def _diet() -> Attribute:
    return _attribute(
        "diet",
        _then(r"\b(?:what|which|kind of|type of)\b", r"\bdiet\b")
        + rf"|\b{_DIET}\b|\beat (?:meat|dairy|fish|gluten)\b|\bmy diet\b"
        r"|吃素|素食|채식|식단",
        ("vegan vegetarian pescatarian keto paleo halal kosher gluten dairi plant", rf"(?i)\b{_DIET}\b"),
        (
            "meat dairi gluten sugar fish chicken carb",
            r"(?i)\b(?:gave up|given up|stopped eating|quit|cut out|no longer eat|don't eat|started eating) "
            r"(?:\w+ ){0,2}?(?:meat|dairy|gluten|sugar|fish|chicken|carbs)\b",
        ),
        ("吃素 素食", "吃素|素食"),
        ("채식 비건", "채식|비건"),
    )


def _car() -> Attribute:
    cars = WORDS.words("cars")
    return _attribute(
        "car",
        _then(r"\b(?:what|which)\b", r"\b(?:car|vehicle|drive|driving)\b")
        + r"|\bmy (?:car|vehicle)\b|开什么车|무슨 차|어떤 차",
        (
            " ".join(map(stem, cars)),
            rf"(?i)\b{_GOT} (?:a |an |the |my |our )?{_SPAN}(?:{'|'.join(cars)})\b|\b(?:my|our) (?:new )?(?:car|truck|suv|van) is\b",
        ),
        ("车 차를", "(?:换了|买了|开)[^，。]{0,8}车|차를 (?:바꿨|샀|뽑았)"),
    )


def _phone() -> Attribute:
    phones = WORDS.words("phones")
    return _attribute(
        "phone",
        _then(r"\b(?:what|which)\b", r"\b(?:phone|smartphone)\b(?! number)") + r"|什么手机|무슨 (?:폰|휴대폰|핸드폰)",
        (
            " ".join(map(stem, phones)),
            rf"(?i)\b{_GOT} (?:a |an |the |my )?{_SPAN}(?:{'|'.join(phones)})\b|\bmy (?:new )?phone is\b",
        ),
        (
            "手机 폰을 폰으 폰로 대폰 드폰",
            "(?:换了|买了|用)[^，。]{0,8}手机|(?:폰|휴대폰|핸드폰)(?:을|으로|로) ?(?:바꿨|샀|쓰)",
        ),
    )


@cache
def attributes() -> tuple[Attribute, ...]:
    """All attributes, made when first asked for."""
    return (_home(), _work(), _relationship(), _study(), _diet(), _car(), _phone())
