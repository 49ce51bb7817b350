"""What a Chinese question asks: its parts, its lists, its names. Rules of form and small word tables, no model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.research.questions.phrases import Part, clip, once, tidy, without_brackets
from muniment.research.questions.words import TIMES, kind_of

__all__ = ["compared_in", "constraints_in", "entities_in", "parts_in", "subject_in"]

_PHRASE_MAX = 80
_SUBJECT_MAX = 48
_WHOLE_SUBJECT_MAX = 36
_ITEM_MAX = 18
_LISTS_MAX = 24

# -- sentences and clauses ----------------------------------------------------------------------------

_SENTENCE_END = lazy_pattern(r"[。？！?!；;\n]+[”\"’』」]?")
_NUMBERED = lazy_pattern(
    r"(?<![\d.])\d{1,2}[.、．)）](?=[^\d\s])|[一二三四五六]是(?=[^\w]|[\u4e00-\u9fff]{4})|第[一二三四五六][，,、]"
)
_CLAUSE_END = lazy_pattern(r"[，,：:](?![^（(]{0,120}[）)])")
_LABEL = lazy_pattern(r"^([^，,。：:\n]{2,24})[：:](?=[^：:]{12,})")


class _Clause(NamedTuple):
    text: str
    asked: bool
    numbered: bool = False


def _sentences(text: str) -> Iterator[_Clause]:
    at = 0
    for found in _SENTENCE_END.finditer(text):
        yield from _numbered(text[at : found.start()], found[0][0] in "？?")
        at = found.end()
    yield from _numbered(text[at:], False)


def _numbered(sentence: str, asked: bool) -> Iterator[_Clause]:
    first, *items = _NUMBERED.split(sentence)
    for number, piece in enumerate((first, *items)):
        piece = piece.strip(" \t\"“”'‘’")
        piece = piece[1:].rstrip("）)") if piece[:1] in "（(" else piece
        if piece:
            yield _Clause(piece, asked, numbered=number > 0)


# -- what stands before the matter --------------------------------------------------------------------

_VERBS = (
    "收集整理|搜集整理|整理一下|整理下|整理|收集|搜集|调研|调查|研究一下|研究下|研究(?=[^的]\\S{3})"
    "|分析一下|分析比较|分析(?!报告)|总结|归纳|梳理|探讨|横向比较|横向对比分析|横向对比|对比分析"
    "|对比"
    "|比较(?!想|明|单|强|低|高)|评估出|评估(?!体系)|预测|列举|列出|提供|介绍|学习一下|整合|了解|给出"
    "|告诉我|得出|谈一下|推荐|说明|设计|撰写|写一篇"
)
_LEADS = tuple(
    lazy_pattern(f"^(?:{lead})")
    for lead in (
        "[（(]|\\d{4} ?年[，,]|更(?=科学)|然(?=请)|你(?=能)|例如[，,]?(?=能|怎|如何)|比如(?=怎|如何)"
        "|用思维导图(?:告诉我|展示|呈现)?",
        "请问|请你|请帮我|请为我|请帮忙|请(?!求)|帮我|为我|给我|替我|麻烦(?:你)?|我想(?:要)?(?:知道"
        "|了解|探寻)?|我最感兴趣的就是|我们?(?:需要|希望)|比较想(?:了解)?|想(?:了解|知道)",
        "(?:能否|能不能|可否)(?=帮|给|为|请|提供|详细|评估)",
        "(?:并且|并|以及|同时|然后|最后|此外|另外|或者|再就是|接着|更进一步|进一步|尤其是?|特别是?"
        "|其中|因之|现在|但是|但|在此基础上|反过来|通常情况下|具体|需要|要求|注意)[，,]?",
        "(?:详细|深入|系统|全面|具体|分别|重点|着重)(?:地)?(?=\\S{3})",
        f"(?:{_VERBS})(?:和|并|与|、)?",
        "(?:一份|一个|一下|出|关于|有关|针对|目前世界上关于|目前(?!的)|当前(?!的)|现阶段|下)(?=\\S{2})",
        "(?:详尽的|详细的|深入的|完整的)?(?:报告|调研报告|研究报告)[，,]?",
        "(?:从|站在)[^，,]{2,14}(?:角度|视角)(?:来看)?[，,]?(?:给出深入的)?",
    )
)
_TITLES = lazy_pattern("^(?:选题|调研问题|研究问题|问题|题目|主题|课题|具体做法|背景与问题意识)[：:]\\s*")
_TAILS = lazy_pattern(
    "(?:的?相关资料|的?有关资料|的情况和资料|等等|等方面|等维度|等信息|等|的情况下|呢|吗|吧|啊)$|的?(?:研究|调查)$"
)
_OWNERS = lazy_pattern(
    "^(?:(?:这些|该|各)(?:公司|成果|团队|课题组|企业|电影|国家|路线|产品|机构)的|(?:他们|它们|其)的?(?!他))"
)
_LEANING = lazy_pattern(
    "^(?:这|它|该|此(?!外)|上述|按照这|用来|有(?!关)|要如何|作为|实现|为什么选择它)|它们|他们|这些"
    "|该(?:领域|行业|计划|方向)|(?<!及)其(?!他|中|实)"
)
_PREFIX = lazy_pattern(
    "^(?:在|基于|结合|通过|随着|针对|按照)[^，,]*$|(?:范围内|(?<!等)方面|情况下|领域|体系中|[^其]中"
    "|背景下|刺激下|窗口期)$"
)
_EMPTY = lazy_pattern("^(?:学术|量化|深入|详细|进行)?(?:分析|研究|报告|调研|量化分析|学术分析|要求|注意|理由)?$")


def _strip(text: str) -> str:
    for _ in range(8):
        before = text
        for lead in _LEADS:
            text = lead.sub("", text, count=1)
        text = text.strip(" ，,：:、。\"'‘’")
        if text == before:
            break
    return text


def _phrase(text: str) -> tuple[str, bool]:
    """A phrase worthy of a title, and whether it leans on the subject."""
    stripped = tidy(without_brackets(_strip(text)))
    stripped = _TAILS.sub("", _TAILS.sub("", stripped)) or stripped
    owned = _OWNERS.sub("", stripped, count=1)
    return clip(owned, _PHRASE_MAX, "zh"), bool(owned != stripped or _LEANING.search(owned))


# -- lists --------------------------------------------------------------------------------------------

_RUN = lazy_pattern(r"[^，,。；;：:？?！!（）()\n、]{1,40}(?:、[^，,。；;：:？?！!（）()\n、]{1,40}){1,15}")
_BRACKET = lazy_pattern(r"[（(](?:例如|比如|如|包括)?[：:]?([^（）()]{3,200})[）)]")
_ITEM_LEAD = lazy_pattern(
    "^(?:.{0,12}(?:包括|例如|比如|考虑|涵盖|包含|围绕|合理安排|在于|属于|采用|分别|使用|具有|国家在"
    "|各种)|(?:各|这些|该|其)[^的]{0,6}的|其(?!他)|如按级别|如|和(?!声)|与|及|从|对|将|由)"
)
_ITEM_TAIL = lazy_pattern(
    "(?:等(?!奖|级|离子|于|待).*|之间.*|方面.*|维度.*|如何.*|是什么.*|会(?!议|计|员|展|社).*|能(?!力"
    "|源|量).*|更.*|进行.*|的各.*|是否.*|有哪.*|，.*|领域的边界.*|均.*|、)$"
)
_VERBAL = lazy_pattern(
    "如何|什么|是否|能否|可以|已经|因为|所以|但是|随着|然而|通过|为了|使得|请|我|帮|哪|吗|呢|多少|地发展|不确定|是"
)


_AND_SO_ON = lazy_pattern("等(?!奖|级|离子|于|待)")


class _List(NamedTuple):
    items: tuple[str, ...]
    start: int
    of: tuple[str, ...] = ()
    """Things that each have what is listed: A、B、C的X、Y、Z."""
    aside: bool = False
    """In brackets."""


def _lists(text: str) -> Iterator[_List]:
    for found in _BRACKET.finditer(text):
        pieces = re.split(r"[、/，,+]|或(?=\S{2})", found[1])
        items = _clean(pieces)
        if len(items) >= 3 or (len(items) >= 2 and found[0][1] in "例比如包"):
            yield _List(items, found.start(), aside=True)
    flat = without_brackets(text)
    for found in _RUN.finditer(flat):
        made = _list_of(found[0].split("、"), found.start(), closed=found[0])
        if made is not None:
            yield made


def _list_of(pieces: list[str], start: int, closed: str) -> _List | None:
    last = (
        re.split("(?:以及|和|与|或按|或)(?=[^和与或]{2,10}$)", pieces[-1], maxsplit=1)
        if not _AND_SO_ON.search(pieces[-1])
        else [pieces[-1]]
    )
    pieces = [*pieces[:-1], *last]
    if len(pieces) >= 3 and (crossed := _crossed(pieces, start)) is not None:
        return crossed
    items = _clean(pieces)
    enough = len(items) >= 3 or (len(items) == 2 and _AND_SO_ON.search(closed) and len(pieces) == 2)
    return _List(items, start) if enough and len(items) >= len(pieces) - 1 else None


def _crossed(pieces: list[str], start: int) -> _List | None:
    """A、B、C的X、Y、Z: what is listed, of which things."""
    for place, piece in enumerate(pieces[:-1]):
        thing, of, aspect = piece.partition("的")
        if place and of and aspect and len(thing) <= 6 and not TIMES["zh"].search(thing) and len(pieces) - place >= 2:
            things, aspects = _clean([*pieces[:place], thing]), _clean([aspect, *pieces[place + 1 :]])
            if len(things) >= 2 and len(aspects) >= 2:
                return _List(aspects, start, things)
    return None


def _clean(pieces: list[str]) -> tuple[str, ...]:
    return tuple(item for item in (_item(piece, first=not number) for number, piece in enumerate(pieces)) if item)


def _item(text: str, *, first: bool = False) -> str:
    text = tidy(_ITEM_TAIL.sub("", text))
    while first and (shorter := _ITEM_LEAD.sub("", _strip(text), count=1)) != text:
        text = shorter
    if first and "的" in text and not TIMES["zh"].match(text):
        text = text.rpartition("的")[2] if len(text) > 10 else text
    text = re.sub("^(?:以及|及其|和|与|及|或|并|按)+|的$", "", tidy(text))
    refused = not 1 < len(text) <= _ITEM_MAX or _VERBAL.search(text) or re.match("(?:各方面|等|其他|不同)$", text)
    return "" if refused else text


# -- names, comparisons, constraints ------------------------------------------------------------------

_NAME = lazy_pattern(
    r"《([^《》\n]{1,40})》|“([^“”\n]{2,30})”|([A-Za-z][A-Za-z0-9+.#-]*(?: [A-Z][A-Za-z0-9+.#-]*){0,3})"
)
_PLACE = lazy_pattern(
    "中国大陆|中国|美国|日本|欧洲|全球南方|全球|国内外|国内|国际|世界|亚洲|东南亚|韩国|德国|英国|法国|印度"
)
_VERSUS = lazy_pattern(
    r"([^，,。；;：:？?！!\n]{1,16}?)\s*(?:vs\.?|VS|相较于)\s*([^，,。；;：:？?！!\n]{1,16})"
    r"|([^，,。；;：:？?！!\n的]{1,16})(?:与|和|同)([^，,。；;：:？?！!\n的]{1,16})的?(?:区别|差异"
    r"|异同|优劣|对比|比较|不同)"
)
_PAIR = lazy_pattern(r"(?:了解|比较(?!想)|对比|分析)([\u4e00-\u9fff]{2,6})[、和与]([\u4e00-\u9fff]{2,6})的")


def entities_in(text: str) -> tuple[str, ...]:
    """Titles, quoted terms, words in Latin letters, places."""
    found = [(name.start(), next(filter(None, name.groups()))) for name in _NAME.finditer(text)]
    found += [(place.start(), place[0]) for place in _PLACE.finditer(text)]
    names = [tidy(name) for _, name in sorted(found)]
    return once([name for name in names if len(name) > 1], 16)


def compared_in(text: str) -> tuple[str, ...]:
    """The things a question sets side by side."""
    found = _VERSUS.search(text)
    if found:
        sides = [tidy(_strip(side)) for side in found.groups() if side]
        if all(1 < len(side) <= 14 and not _VERBAL.search(side) for side in sides):
            return once(sides, 8)
    of = [each.of for each in _lists(text) if each.of]
    if of:
        return once(of[0], 8)
    pair = _PAIR.search(text)
    return once(pair.groups(), 8) if pair else ()


_CONSTRAINT = lazy_pattern(
    r"[^，,。；;？?！!\n（(]{0,30}(?:思维导图|只引用|仅引用|不少于|不超过\d|至少\d|字以内|分别归纳"
    r"|分类要自成体系|要详写|分别分析再总结|简单易做|我是|我今年|也可以不局限于)"
    r"[^，,。；;：:？?！!\n）)]{0,30}"
)


def constraints_in(text: str) -> tuple[str, ...]:
    """What the question says about the form of the answer, about its sources and about who asks."""
    return once([clip(tidy(found[0]), 60, "zh") for found in _CONSTRAINT.finditer(text)], 6)


# -- parts --------------------------------------------------------------------------------------------

_ASKS = lazy_pattern("如何|怎样|怎么|什么|哪|是否|能否|多少|多大|多远|为何|何时|何种|有没有|能不能|可能性")
_ASKED_NOUN = lazy_pattern(
    "(?:趋势|可能性|前景|现状|比例|比重|份额|用量|数量|减刑率|差异|区别|原理|演变|画像|建模)(?:分析|调查|研究|变化)?$"
)
_ASK_VERB = lazy_pattern(
    f"^(?:[^，,]{{0,10}}?(?:请|帮我|为我|给我|想))?(?:详细|深入|分别|并|特别|最后|针对|结合\\S{{2,20}})?(?:{_VERBS})"
)
_CUE = lazy_pattern("^(?:需要|请|必须|要)?(?:包括|包含|涵盖|列举|考虑)|以下(?:几个)?(?:维度|方面|内容)$")
_EXAMPLE = lazy_pattern("^(?:如(?!何|果|今)|例如|比如|即|像)")
_GOES_ON = lazy_pattern("^(?:进行|来|从而|实现|把|生成|再(?!就是)|自动|并最终|最终|还是)")
_PURPOSE = lazy_pattern("^(?:以便|以期|以实现|为了)")
_META = lazy_pattern("^(?:为什么这个问题|我是一名|背景)|本篇?调研|此项调研")
_TOPIC_MAX = 24


def parts_in(text: str) -> tuple[Part, ...]:
    """All that is asked, in order; where nothing looks like an ask, the whole is one."""
    sentences = list(_sentences(text))
    asks = [
        each
        for each in sentences
        if (each.numbered or each.asked or _has_ask(each.text)) and not _META.search(each.text)
    ]
    seen: dict[str, Part] = {}
    for sentence in asks or sentences:
        for part in _parts_of(sentence):
            seen.setdefault(part.text.casefold(), part)
    return tuple(seen.values())


def _has_ask(sentence: str) -> bool:
    return _LABEL.match(sentence) is not None or any(map(_asks, _CLAUSE_END.split(sentence)))


def _asks(clause: str) -> bool:
    return any(form.search(clause.strip()) for form in (_ASKS, _ASKED_NOUN, _ASK_VERB, _CUE))


def _parts_of(sentence: _Clause) -> list[Part]:
    sentence = sentence._replace(text=_TITLES.sub("", sentence.text))
    label = _LABEL.match(sentence.text)
    if (
        label
        and _strip(label[1])
        and not _ASKS.search(label[1])
        and not _ASK_VERB.match(label[1])
        and not _CUE.search(label[1])
    ):
        return [Part(tidy(label[1]), kind_of(sentence.text, "zh"), leans=True)]
    lists = list(islice(_lists(sentence.text), _LISTS_MAX))
    parts: list[Part] = []
    context, prefix, cued, due = "", "", False, False
    anything = _has_ask(sentence.text)
    for clause in map(str.strip, _CLAUSE_END.split(sentence.text)):
        listed = once([topic for each in lists for topic in each.items if topic in clause], 12)
        asks = _asks(clause)
        opens = _PREFIX.search(without_brackets(_strip(clause))) and not _ASKS.search(clause)
        if _PURPOSE.match(clause) or (_CONSTRAINT.fullmatch(clause) and "思维导图" not in clause):
            continue
        if _CUE.search(clause):
            cued = True
            first = _topic(_CUE.sub("", clause))
            parts.append(Part(first, kind_of(clause, "zh"), listed or ((first,) if first else ()), leans=True))
        elif parts and _GOES_ON.match(clause):
            parts[-1] = parts[-1]._replace(text=_joined(parts[-1].text, _phrase(clause)[0]))
        elif parts and not asks and not opens and (_EXAMPLE.match(clause) or len(clause) <= _TOPIC_MAX):
            parts[-1] = _with_topics(parts[-1], listed or (_topic(_EXAMPLE.sub("", clause)),), cued)
        elif opens or not (asks or parts or due or sentence.numbered or not anything):
            context, prefix, due = context or clause, clause if opens else prefix, asks
        else:
            part = _part(clause, context, prefix, listed)
            aside = any(each.aside and each.items[0] in clause for each in lists)
            parts.append(part._replace(head=part.text) if aside else part)
            context, prefix, cued, due = "", "", False, False
    named = [part if part.text else part._replace(text="、".join(part.topics)) for part in parts]
    return [part for part in named if not _EMPTY.match(part.text)]


def _topic(clause: str) -> str:
    """A clause that only names a thing, as the item of a list that it is."""
    found = tidy(_OWNERS.sub("", _TAILS.sub("", tidy(without_brackets(_strip(clause))))))
    return found if 1 < len(found) <= _TOPIC_MAX else ""


def _part(clause: str, context: str, prefix: str, topics: tuple[str, ...]) -> Part:
    phrase, leans = _phrase(clause)
    before = prefix or (context if leans else "")
    whole = _joined(tidy(without_brackets(_strip(before))), phrase) if before else phrase
    return Part(whole, kind_of(clause, "zh"), topics, leans and whole == phrase)


def _joined(one: str, other: str) -> str:
    return f"{one}，{other}" if one and other and len(one) + len(other) < _PHRASE_MAX - 8 else other or one


def _with_topics(part: Part, topics: tuple[str, ...], cued: bool) -> Part:
    topics = tuple(filter(None, topics))
    if not topics:
        return part
    head = part.head or ("" if cued or part.topics else part.text)
    return part._replace(topics=once([*part.topics, *topics], 12), head=head)


_FIELD = lazy_pattern("^在(?:当前|如今|当今|目前)?([^，,。]{3,24}?)(?:这个)?(领域|行业|体系|工艺)?(?:中|内|里)?[，,]")


def subject_in(text: str, parts: tuple[Part, ...]) -> str:
    """What the question is about, as short as it can be said."""
    field = _FIELD.match(text.lstrip('"“ '))
    if field and parts[0].leans:
        return field[1] + (field[2] or "")
    part = next((part for part in parts if not _LEANING.search(part.text)), parts[0])
    first = part.text
    if (
        part.topics
        and not part.head
        and (owner := tidy(first.partition(part.topics[0])[0]).rstrip("的"))
        and len(owner) > 3
    ):
        first = owner
    opening, _, rest = first.partition("，")
    if (
        rest
        and _PREFIX.search(opening)
        and len(rest) > len(opening) // 2
        and not _LEANING.search(rest)
        and not opening.endswith("方面")
    ):
        first = rest
    elif rest and len(first) > _WHOLE_SUBJECT_MAX:
        first = opening
    return clip(re.sub("在[^，]{4,40}方面$", "", first) or first, _SUBJECT_MAX, "zh")
