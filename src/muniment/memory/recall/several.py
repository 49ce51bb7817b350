"""Does a question need several turns? Lists, counts, comparisons and sequences do, and accounts of what was said.

What is asked for is told by its words alone, in English, Chinese and Korean. A question for one thing is not taken for
one of these: "how many days ago", "which song", "the name of" ask for one thing.
"""

from __future__ import annotations

from muniment.core.limits import remembered
from muniment.core.text.analyzer import ascii_words
from muniment.core.text.patterns import lazy_pattern, sign

__all__ = ["asks_for_account", "gathers"]

_CHARS_MAX = 20_000
"""Characters of a query that are read: a longer one is a document, and its start says what it is about."""

_SENTENCE = lazy_pattern(r"(?:[^.!?。！？\n]|[.!?](?!\s|$))+[.!?。！？]*")
_ASKING = lazy_pattern(
    r"[?？]$|^\W*(?:(?:please|and|so|then|also|now)\s+)*"
    r"(?:(?:can|could|would|will) you\s+|i(?:'d| would) like (?:you )?to\s+)?"
    r"(?:please\s+)?(?:what|which|who|where|when|why|how|list|name|tell|give|show|summari[sz]e|recap|describe|outline"
    r"|count|compare|enumerate|remind|walk)\b"
)

_PLURAL = sign(
    "what which",
    # Words that stand between "which" and what it asks for; an auxiliary would mean that something else follows.
    r"\b(?:what|which)\s+(?:(?!(?:do|does|did|is|was|are|were|has|have|had|can|could|would|will|should|might|the|a|an"
    r"|pair|name|number|amount|percentage|day|date|year|month|set|size)\b)[\w'+/-]+\s+){0,3}?"
    r"(?!(?:does|was|is|has|his|this|news|means)\b)(?:[\w/]+(?<![sui])s|people|children|\w*men)"
    r"(?:\s+(?:do|does|did|is|are|was|were|has|have|had|can|could|would|will|should|might|may|must|of|that|in|on|at|from"
    r"|for|to|with|about|except|besides|happened|i|we|you|he|she|they)\b|\s*[,?]|\s*$)",
)
_MANY = sign(
    "how list name enumerate count both various several altogether total all combined each every types "
    "kinds sorts names ways has have which are were re else",
    r"\bhow (?:many\b(?!(?: \w+){0,3} ago\b)|often\b|frequently\b)"
    r"|(?:^|\n|\bplease |\byou |\band |\bto )(?:list|name|enumerate|count)\b(?! of| is| was)|\ba (?:\w+ )?list of\b"
    r"|\b(?:both|various|several|altogether|in total|in all|total|combined)\b"
    r"|\ball (?:of |the |my |our |your |his |her |its |their |these |those )|\b(?:what|where|who) (?:all|else)\b"
    r"|(?<!for )\beach\b(?! (?:time|day|night|week|month|year|morning|evening))|\bevery (?:one of|single)\b"
    r"|\b(?:types|kinds|sorts|names|ways) of\b"
    r"|\b(?:what|where) (?:has|have)\b|\bwhich of\b"
    r"|\b(?:what|who|which)(?: are| were|'re)\b(?! (?:you|we|they)\b)(?! \w+ and \w+ \w+ing\b)",
)
_COMPARES = sign(
    "or more less fewer older younger longer compare compared compares comparing comparison difference "
    "differences different similarity similarities common same between",
    r"\b(?:first|last|earlier|later|sooner|more|less|older|younger|longer|better|bigger|cheaper)\b[^?.\n]{0,120}?\bor\b"
    r"|\bbefore or after\b|\bhow (?:many|much) (?:\w+ )?(?:more|less|fewer|older|younger|longer)\b"
    r"|\bcompar(?:e|ed|es|ing|ison)\b|\bdifferences?\b|\bdifferent from\b|\b(?:what|which) different\b"
    r"|\bsimilarit(?:y|ies)\b|\bin common\b"
    r"|\b(?:have|has|share|shares) the same\b|\bbetween\b[^?.\n]{1,120}?\band\b",
)
_FOLLOWS = sign(
    "order sequence timeline over how what",
    r"\bin (?:what|which|the|chronological) order\b|\bin order\b(?! to\b| that\b| for\b)"
    r"|\border (?:of events|in which)\b|\bsequence of events\b|\btimeline\b"
    r"|\bover (?:time|the (?:past|last|years|months|weeks|course))\b"
    r"|\bhow (?:has|have|did|do|does)\b[^?.\n]{1,100}?\b(?:chang(?:ed?|ing)|evolved?|progress(?:ed)?|shift(?:ed)?)\b"
    r"|\bwhat (?:all )?(?:happened|came|led)\b[^?.\n]{0,80}?\b(?:before|after|between|up to)\b",
)
_CHINESE = (
    r"哪些|哪几|多少[次个种人本件位部家场首条天年]|几[次个种人本件位部家场首条](?!月)|多久一次|多常|列出|列举|一共|总共|分别|全部|所有"
    r"|都(?=[^。！？\n]{0,12}(?:什么|谁|哪|几|多少))|哪(?:个|一个|种|件)[^。！？\n]{0,6}(?:更|先|早|晚)|先后|顺序|区别|不同|相比|比较"
    r"|共同点|(?:怎么|如何|什么|怎样)[^。！？\n]{0,8}变化|(?:怎么|如何|怎样)[^。！？\n]{0,4}(?:改变|演变|发展)|(?:之前|之后|以前|以后)发生了什么"
)
_KOREAN = (
    r"모두|전부|모든|몇 ?(?:번|개|명|가지|권|편|마리|곳|군데|차례)(?![^?\n]{0,4}전에)|얼마나 자주|나열|목록|각각|총 "
    r"|(?<![^\n])(?>[^\n]*?(?:어떤|무슨|어느) )[^\n]*들|순서"
    r"|먼저[^?\n]{0,20}(?:인가|일까|했|한|갔)|차이|비교|공통점|어떻게[^?\n]{0,12}(?:변|달라|바뀌)"
    r"|(?:전에|후에|이후에?|이전에?) (?:무슨|어떤) 일"
)
_IN_OTHER_SCRIPTS = lazy_pattern(f"{_CHINESE}|{_KOREAN}")
_ACCOUNT = sign(
    "summary summaries summarize summarise summarized summarised summarizes summarises summarizing summarising "
    "overview recap rundown discuss discussed discussion discussions discussing debate debated about on over of "
    "regarding toward towards",
    r"\bsummar(?:y|ies|i[sz]e[ds]?|i[sz]ing)\b|\b(?:overview|recap|rundown)\b"
    r"|(?<!our last )(?<!our previous )(?<!our earlier )(?<!to )(?<!started )\bdiscuss(?:ed|ions?|ing)?\b|\bdebated?\b"
    r"|\btalk(?:ed|ing)? (?:about|on|over)\b"
    r"|\b(?:opinions?|views?|attitudes?|thoughts) (?:on|about|of|regarding|towards?)\b"
    r"|\b(?:think|thought) (?:about|of|on)\b"
    r"|总结|概括|概述|回顾一下|讨论|[谈聊]了(?:什么|些|哪)|谈论|看法|意见|观点|态度"
    r"|요약|개요|논의|토론|의견|견해|(?:무슨|어떤) (?:이야기|얘기)|정리해",
)


@remembered(256)
def gathers(text: str) -> bool:
    """Does a query ask for several things, each of which holds, or for an account of what was said?"""
    if asks_for_account(text):
        return True
    asked, words = _asked(text)
    if words is None and _IN_OTHER_SCRIPTS.search(asked) is not None:
        return True
    return any(each.is_in(asked, words) for each in (_PLURAL, _MANY, _COMPARES, _FOLLOWS))


@remembered(256)
def asks_for_account(text: str) -> bool:
    """Does a query ask for what was said on something: a summary, a discussion, what somebody thinks of it?

    What it needs is a stretch of turns, one after the other, many of which do not name what it is about.
    """
    return _ACCOUNT.is_in(*_asked(text))


@remembered(256)
def _asked(text: str) -> tuple[str, frozenset[str] | None]:
    """The sentences of a query that ask or bid, a line each, all where none does; their words, if it is in ASCII.

    What the others tell ("I love all animals.") is not asked for.
    """
    folded = text[:_CHARS_MAX].casefold().replace("’", "'")
    sentences = [match[0].strip() for match in _SENTENCE.finditer(folded)]
    asked = "\n".join([each for each in sentences if _ASKING.search(each)] or sentences)
    return asked, frozenset(ascii_words(asked)) if asked.isascii() else None
