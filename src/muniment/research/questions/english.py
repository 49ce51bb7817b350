"""What an English question asks: its parts, its lists, its names. Rules of form and small word tables, no model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from muniment.core.text.patterns import lazy_pattern
from muniment.research.questions.phrases import Part, clip, cut_clause, once, tidy, without_brackets
from muniment.research.questions.words import kind_of

__all__ = ["compared_in", "constraints_in", "entities_in", "parts_in", "subject_in"]

_PHRASE_MAX = 190
_SUBJECT_MAX = 145
_NOUN_SUBJECT_MAX = 100
_ITEM_WORDS_MAX = 8

_VERBS = (
    "research|analy[sz]e|investigate|explore|examine|compare|evaluate|assess|identify|list|explain"
    "|summari[sz]e|describe|discuss|trace|detail"
    "|elaborate|provide|offer|write|create|prepare|conduct|draft|develop|produce|find|review|outline"
    "|categori[sz]e|study|cover|include|predict"
    "|propose|recommend|refine|optimi[sz]e|suggest|present|integrate|focus|give|survey|collect"
    "|gather|map|estimate|determine|consider|look into"
    "|weigh|contrast|highlight|address|quantify"
)
_ASKING = (
    "how|what|why|which|who|whom|whose|where|when|whether|is|are|was|were|do|does|did|can|could"
    "|should|would|will|has|have"
)

# -- sentences ----------------------------------------------------------------------------------------

_SENTENCE_END = lazy_pattern(
    r"(?<![A-Z]\.[A-Z])(?<!\b[Vv]s)(?<!\b[Dd]r)(?<!\b[Mm]r)(?<!\bNo)(?<!\bcf)(?<!\be\.g)(?<!\bi\.e)"
    r"\.['\"”’)]{0,3}\s+(?=['\"“‘(]?[A-Z\d])|[?!]['\"”’)]{0,3}(?:\s+|$)|\n+|;\s+(?=\d{1,2}[.)])"
)
_NUMBERED = lazy_pattern(r"(?:(?<=\s)|^)\(?\d{1,2}[.)]\s+(?=[A-Z])")
_NEXT_ASK = lazy_pattern(
    rf"(?i)(?:,\s+(?:and\s+(?:then\s+)?)?|;\s+(?:and\s+)?|\s+and\s+)(?=(?:{_ASKING})\s+(?:is|are|there"
    rf"|it|we|do|does|can|should|to|the|an?|types?|of"
    rf"|have|has|this|these|how|one|they|you|would|did)\b)|,\s+(?:and\s+)?(?:then\s+"
    rf"|finally\s+)?(?=(?:{_VERBS})\s+(?:the"
    rf"|their|them|its|an?|how|what|which|whether|these|on)\b)"
    rf"|(?:\s+|—|–)and\s+(?=(?:{_VERBS})\s+(?:the|their|them|its|how|what|which|whether)\b)"
)


class _Sentence(NamedTuple):
    text: str
    asked: bool
    """It ends with a question mark."""
    numbered: bool = False


def _sentences(text: str) -> Iterator[_Sentence]:
    """Sentences and numbered items."""
    at = 0
    for found in _SENTENCE_END.finditer(text):
        yield from _items(text[at : found.start()], found[0].startswith("?"))
        at = found.end()
    yield from _items(text[at:], False)


def _items(sentence: str, asked: bool) -> Iterator[_Sentence]:
    first, *numbered = _NUMBERED.split(sentence)
    if first.strip():
        yield _Sentence(first.strip(), asked)
    for item in numbered:
        if item.strip():
            yield _Sentence(item.strip(), asked, numbered=True)


# -- what stands before the matter --------------------------------------------------------------------


def _leads(*forms: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((lazy_pattern(rf"(?i)^(?:{form})"), put) for form, put in forms)


_OPENINGS = _leads(
    (r"(?:please|kindly|also)\s+", ""),
    (
        r"(?:so|and|but|then|additionally|furthermore|moreover|finally|specifically|in addition|in "
        r"particular|lastly|next)\b,?\s+",
        "",
    ),
    (r"(?:could|can|would|will) you\s+(?:please\s+)?(?:help me\s+)?", ""),
    (r"(?:as|acting as)\s+[^,?]{1,140},\s+", ""),
    (r"conduct an? (?:study|survey|investigation) and\s+", ""),
    (r"(?:for|in)\s+(?:a|my|our|the)\s+[^,]{0,80}(?:project|paper|thesis|report)\s[^,]{0,160},['\"’”]?\s+", ""),
    (r"(?:from|between|since|by|in|as of|over)\s+(?:the\s+)?(?:1[5-9]|20)\d\d[^,]{0,24},\s+", ""),
    (
        rf"(?:in|within|regarding|for|given|considering|based on|under"
        rf"|with)\s[^?]{{1,250}}?,\s+(?=(?:please|{_ASKING}|{_VERBS})\s)",
        "",
    ),
    (r"[^:?]{0,60}\b(?:questions?|topics?|objectives?|tasks?|titles?|goals?)(?: \w+)?:\s+", ""),
    (
        r"(?:the|your|this|these|final|it)\s+(?:final\s+)?(?:\w+\s+)?(?:report|analysis|research"
        r"|study|notes|paper|review|work)?\s*"
        r"(?:should|must|needs to)(?:\s+also)?(?:\s*:|\s+(?:be structured around\s+)?|$)",
        "",
    ),
)
"""Who speaks, to whom, and the small change of asking."""

_ADJECTIVES = (
    r"(?:detailed|comprehensive|in-depth|thorough|research|literature|broad|brief|full|short"
    r"|systematic|design|academic|critical|final|deep|market|"
    r"complete|concise|study|and|,)"
)
_WORKS = (
    r"(?:report|analysis|paper|review|study|overview|explanation|comparison|notes|information"
    r"|discussion|research|account|survey|summary|investigation)"
)
_MATTER = _leads(
    (r"i(?:'m| am)\s+(?:also\s+)?interested in\s+(?:understanding\s+)?", ""),
    (r"i(?:'m| am)\s+trying to (?:see|find out) (?:if|whether)\s+", "whether "),
    (rf"(?:i|we)\s+(?:want|need|wish|would like)\s+to\s+(?!(?:{_VERBS}|know|understand)\b)", "how to "),
    (
        r"(?:i|we)\s+(?:would like|want|need|wish)\s+(?:to\s+(?:know"
        r"|understand)\s+)?(?:to\s+)?(?:assistance\s+|help\s+)?(?=\S)",
        "",
    ),
    (r"you could\s+", ""),
    (
        r"(?:researching|exploring|analy[sz]ing|investigating|examining|understanding|writing"
        r"|studying|identifying|proposing)\s+(?:for me\s+)?",
        "",
    ),
    (r"conclude\s+(?:with|by)\s+", ""),
    (r"data and evidence to\s+", ""),
    (
        r"(?:to\s+)?(?:support or refute|test|verify|falsify)\s+(?:the\s+)?(?:hypothesis|claim|idea)\s+that\s+",
        "whether ",
    ),
    (rf"(?:{_VERBS})(?:,?\s+(?:and\s+)?(?:{_VERBS}))*\s+(?:for me\s+|me\s+)?(?:on\s+|in\s+|into\s+)?(?=\S)", ""),
    (
        rf"(?:(?:an?|the)\s+)?(?:{_ADJECTIVES},?\s+){{0,5}}{_WORKS}\s+(?:on|of|about|for|into|to "
        rf"discuss|to explore|analy[sz]ing|exploring|discussing|utilizing|using)\s+",
        "",
    ),
    (r"(?:an?\s+)?(?:broad\s+)?overview with (?:extensive )?references to (?:both )?", ""),
    (r"(?:the\s+)?(?:complex\s+)?(?:issue|question|problem|topic) of\s+", ""),
    (r"instances of\s+", ""),
)
"""What is wanted done, in front of what it is wanted for."""
_CLOSINGS = lazy_pattern(
    r"(?i)\s+(?:would be (?:really |very )?interesting(?: to \w+(?: \w+)?)?|respectively|in detail"
    r"|like I['’]m [\w ]{1,40}"
    r"|please|(?:pertinent|relevant) to my [\w ]{1,40})$|(?<=analysis) report(?= )"
)


def _strip(text: str, leads: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    for _ in range(6):
        before = text
        for lead, put in leads:
            text = lead.sub(put, text, count=1)
        text = _unquoted(text)
        if text == before:
            break
    return text


def _unquoted(text: str) -> str:
    """Without quotes that open it, or close it alone."""
    text = text.strip(" ,:")
    if text[:1] in "'\"“‘":
        text = text[1:]
        text = text[:-1].rstrip(" .,") if text[-1:] in "'\"”’" else text
    return text.strip(" ,:")


# -- from a question to a phrase that can stand in a title --------------------------------------------

_TURNS = _leads(
    (r"how many (.{1,80}?) (?:will|are|were|would) there(?: be)?\b", r"number of \1"),
    (r"how do (?=\w)", "how "),
    (r"how (can|could|should|might|may|must) ([^?]{1,160}?) be (?=\w)", r"how \2 \1 be "),
    (r"how (can|could|should|might|must) (we|one|they|it|i|you) ", r"how \2 \1 "),
    (r"(is|are|was|were|can|could|should|would|will|must|has|have) (there|it|they|this|we|one) ", r"whether \2 \1 "),
    (r"what (?:precisely |exactly )?constitutes ", "what constitutes "),
    (r"who (?:is|are|was|were) (?=the\b)", ""),
    (r"what(?: precisely| exactly)? (?:is|are|was|were) (?=(?:the|an?|effective|possible|some|their|its|your)\b)", ""),
)
_OPEN_QUESTION = lazy_pattern(rf"(?i)^(?:{_ASKING})\b")
_DETERMINERS = lazy_pattern(r"(?i)^(?:the|an?|all|current|various|any|some|different|our)\s+(?=\S+(?:\s|$))")
_LEANING = lazy_pattern(r"(?i)^(?:their|its|these|those|them|they|it|this|such)\b\s*")
_LEANS_WITHIN = lazy_pattern(
    r"(?i)\b(?:them|they|their|this (?:process|research|issue|problem|specific \w+)|(?:these|such) (?:\w+ )?\w+s)\b"
)


def _turned(text: str) -> str:
    """A question as the noun phrase or the indirect question that it can be said as; others stay as they are."""
    return next((made for form, into in _TURNS if (made := form.sub(into, text, count=1)) != text), text)


def _phrase(text: str, asked: bool) -> tuple[str, bool]:
    """A phrase worthy of a title, and whether it leans on the subject."""
    text = _CLOSINGS.sub("", tidy(without_brackets(text)).rstrip("?"))
    if _OPEN_QUESTION.match(text):
        text = text[0].lower() + text[1:]
    turned = _turned(text)
    leaning = _LEANING.match(turned)
    kept = turned[leaning.end() :] if leaning else turned
    while (shorter := _unquoted(_DETERMINERS.sub("", kept, count=1))) != kept:
        kept = shorter
    kept = clip(tidy(kept), _PHRASE_MAX, "en")
    direct = asked and turned == text and _OPEN_QUESTION.match(kept) and not kept.startswith(("how to", "whether"))
    return kept + ("?" if direct else ""), bool(leaning or _LEANS_WITHIN.search(turned))


# -- lists --------------------------------------------------------------------------------------------

_CUE = lazy_pattern(
    r"(?i)\b(?:(?:various |other |relevant |diverse )?(?:aspects|criteria|areas|contexts|dimensions"
    r"|conditions|products|factors|frameworks|components)(?: like| such as|:)|"
    r"such as|including|like(?= those| [A-Z])|e\.g\.,?|in terms of|across(?! identical| different| "
    r"diverse)(?: various aspects such as)?|"
    r"based on(?! current)(?: criteria such as)?|covering|around|details on|examples include|through)\s+"
)
_RUN = lazy_pattern(r"(?:[^,;:?!()]{1,120},\s+){1,14}[^,;:?!()]{2,120}")
_LAST_AND = lazy_pattern(r"(?i)\s+(?:and|or|as well as)\s+")
_LEADING_AND = lazy_pattern(r"(?i)^(?:and|or|as well as)\s+")
_PREPOSITION = lazy_pattern(
    r"(?i)^(?:for|with|as|in|to|by|of|on|at|from|while|alongside|ensuring|to make|specifically|a notoriously)\s"
)
_TO_LAST_NAME = lazy_pattern(r"^.*\b(?:of|by|from|between|in|like|for|to|as|and|with|the)\s+(?=[A-Z])")
_AFTER_LAST = lazy_pattern(
    r"(?i)\s+(?:related to|relevant in|pertinent to|that|which|for such|for the|across|within|based "
    r"on|alongside|can|could|to|so that|are|is|were"
    r"|have|should|during|under|affect|influence|in the|in order)\s.*$"
)
_FILLER = lazy_pattern(r"(?i)^(?:others?\b.*|etc|more|so on|the like|relevant factors|as)$")
_ITEM_LEAD = lazy_pattern(
    r"(?i)^(?:and|or|the|an?|their|its|both|potential|those from|such as|including|like|also|any)\s+"
)
_ITEM_VERB = lazy_pattern(
    rf"(?i)^(?:{_VERBS})\s+(?:the|their|how|what|an?|various|its|details|on)\b|^(?:{_ASKING}|please)\b"
    rf"|\b(?:it|they|we|you|us) \w+$"
)
_BRACKET_LIST = lazy_pattern(r"\((?:(e\.g\.|such as|for example|like),?|including)?\s*([^()]{3,300})\)")


class _List(NamedTuple):
    items: tuple[str, ...]
    head: str
    """What stands before it."""
    aside: bool = False
    """In brackets, and not as examples."""


def _lists(text: str) -> Iterator[_List]:
    """The enumerations of a text: three things or more, or two behind a cue such as "in terms of"."""
    flat = without_brackets(text)
    for found in _RUN.finditer(flat):
        made = _list_of(found[0].split(", "), flat[: found.start()])
        if made is not None:
            yield made
    for found in _BRACKET_LIST.finditer(text):
        items = _clean(re.split(r",\s+(?:and\s+|or\s+)?", found[2]))
        if len(items) >= 3:
            yield _List(items, "", aside=found[1] is None)


def _list_of(pieces: list[str], before: str) -> _List | None:
    cue = None
    first = 0
    for number, piece in enumerate(pieces):
        for cue_found in _CUE.finditer(piece):
            cue, first = cue_found, number
        if number > first and _PREPOSITION.match(piece):
            cue, first = None, number
    head = before + ", ".join([*pieces[:first], pieces[first][: cue.start()] if cue else ""])
    opening = pieces[first][cue.end() :] if cue else _turned(_strip(pieces[first], _MATTER))
    if not cue and opening != pieces[first]:
        head = ""
    tail = _ends_of(pieces[-1])
    if not tail or first == len(pieces) - 1:
        return None
    rest = [*pieces[first + 1 : -1], *tail]
    if not cue and all(_item(item)[:1].isupper() for item in rest):
        opening = _TO_LAST_NAME.sub("", opening)
    items = _clean([opening, *rest])
    return _List(items, tidy(head)) if len(items) >= (2 if cue else 3) else None


def _ends_of(last: str) -> list[str]:
    """The last one or two items of a list, as "and C" or "B and C" closes it; none where nothing does."""
    if re.match(r"(?i)etc\b", last):
        return [""]
    closed = _LEADING_AND.match(last)
    ends = [last[closed.end() :]] if closed else _LAST_AND.split(last, maxsplit=1)
    if not closed and len(ends) == 1 and not re.match(r"\w+ (?:of|in|for|between) ", last):
        return []
    if len(ends[-1].split()) > 5:
        ends[-1] = _AFTER_LAST.sub("", ends[-1])
    return ends


def _clean(pieces: list[str]) -> tuple[str, ...]:
    return tuple(item for item in map(_item, pieces) if item)


def _item(text: str) -> str:
    text = tidy(text)
    while (shorter := _ITEM_LEAD.sub("", text, count=1)) != text:
        text = shorter
    words = text.split()
    refused = (
        not words
        or len(words) > _ITEM_WORDS_MAX
        or _FILLER.match(text)
        or _ITEM_VERB.search(text)
        or _PREPOSITION.match(text)
    )
    return "" if refused else tidy(text)


# -- names --------------------------------------------------------------------------------------------

_NAME = lazy_pattern(
    r"\b[A-Z][\w’'-]*(?:[ ](?:of|the|de|du|von|van)(?=[ ][A-Z]))?(?:[ ](?:[A-Z][\w’'-]*|\d+)(?:[ "
    r"](?:of|de|von|van)(?=[ ][A-Z]))?){0,6}|\b[a-z]+[A-Z]\w*"
)
_QUOTED = lazy_pattern(r"[\"“]([^\"“”\n]{3,120})[\"”]|(?<!\w)['‘]([^'‘’\n]{3,120})['’](?!\w)|《([^《》\n]{1,60})》")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """
    the a an i in on at for from to is are what how why which who when where while please could can would should
    and or but so as if it its this that these those they we you he she his her there do does did both each most
    some many under then also with within regarding however specifically additionally furthermore finally
    examples focus ensure your my our based although especially understanding topic objective acting conversely
    possible conclude research write conduct summarize analyze compare include create provide trace explain
    identify find list investigate researching exploring recognition prediction combined
        """,
    )
)


def entities_in(text: str) -> tuple[str, ...]:
    """Names and quoted titles, in the order they stand."""
    found = [(quoted.span(), tidy(next(filter(None, quoted.groups())))) for quoted in _QUOTED.finditer(text)]
    blank = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    for name in _NAME.finditer(blank):
        words = name[0].split(" ")
        while words and (words[0].casefold() in _COMMON or words[0] == "of"):
            words.pop(0)
        kept = re.sub(r"['’]s?$", "", " ".join(words))
        if (
            len(kept) > 1
            and not kept.isdigit()
            and (len(words) > 1 or not _opens(text, name.start()) or not kept[1:].islower())
        ):
            found.append((name.span(), kept))
    return once([name for _, name in sorted(found)], 16)


def _opens(text: str, at: int) -> bool:
    """Whether a sentence starts there, where every word has a capital."""
    before = text[max(0, at - 4) : at].rstrip(" \"'“‘(")
    return not before or before[-1] in ".?!:\n)"


_VERSUS = (
    lazy_pattern(
        r"(?i)\b(?:differences?|connections?|comparison|contrast|relationships?|trade-?offs?)(?: and "
        r"\w+)? between ([^?.;\n]{2,160}?) and ([^?.;,\n]{2,120})"
    ),
    lazy_pattern(r"(?i)\bcompare ([^?.;,\n]{2,80}?) (?:with|to|against|and) ([^?.;,\n]{2,80})"),
    lazy_pattern(r"((?:[\w.+#-]{1,40} ){0,3}[\w.+#-]{1,40}) (?:vs\.?|versus) ((?:[\w.+#-]{1,40} ?){1,4})"),
)
_VAGUE = lazy_pattern(
    r"(?i)^(?:these|those|them|various|different|each|their|the (?:driver|various|different))\b|\bbased on\b"
)
_SIDE_LEAD = lazy_pattern(
    r"(?i)^(?:\w+['’]s )?(?:recently released |newly released )?(?:compare|what|is|the|an?|of|in"
    r"|which|should|i|use|choose|for)\s+|^\w+['’]s recently released "
)


def compared_in(text: str) -> tuple[str, ...]:
    """The things a question sets side by side: X vs Y, the difference between X and Y, or a list of names."""
    for form in _VERSUS:
        found = form.search(text)
        if found and not any(_VAGUE.search(side) for side in found.groups()):
            sides = [_side(piece) for side in found.groups() for piece in re.split(r",\s+(?:and\s+)?", side)]
            sides = [side for side in sides if side and len(side.split()) <= 6]
            if len(sides) >= 2:
                return once(sides, 8)
    named = [
        each.items
        for sentence in _sentences(text)
        for each in _lists(sentence.text)
        if _all_names(each.items) and not each.aside
    ]
    return once(max(named, key=len), 8) if named else ()


def _side(text: str) -> str:
    text = re.split(r"\s(?:for|in|on|when|as|with|under)\s", tidy(without_brackets(text)), maxsplit=1)[0]
    while (shorter := _SIDE_LEAD.sub("", text, count=1)) != text:
        text = shorter
    return tidy(_AFTER_LAST.sub("", text))


def _all_names(items: tuple[str, ...]) -> bool:
    return len(items) >= 2 and all(item[:1].isupper() or item[1:2].isupper() for item in items)


# -- constraints --------------------------------------------------------------------------------------

_CONSTRAINT = lazy_pattern(
    r"(?i)\bonly (?:cites?|use|include|consider)\b|^(?:please )?(?:ensure|make sure|include images"
    r"|use only|do not|don't|avoid|limit)\b|\bmake sure to\b"
    r"|\bat least \w+ (?:films|sources|examples|cases)\b|\bsuggest relevant keywords\b|\bmind map\b"
    r"|\b(?:in|within|under) \d[\d,]* words\b"
    r"|^(?:please )?provide (?:relevant examples|comprehensive content)"
)


def constraints_in(text: str) -> tuple[str, ...]:
    """What the question says about the form of the answer and about its sources."""
    found = [(each.text, match) for each in _sentences(text) if (match := _CONSTRAINT.search(each.text))]
    return once([_constraint(sentence, match.start()) for sentence, match in found], 6)


def _constraint(sentence: str, at: int) -> str:
    start = sentence.rfind(", ", 0, at) + 1
    return clip(re.sub(r"(?i)^(?:and|please)\s+", "", tidy(sentence[start:])), 160, "en")


# -- parts --------------------------------------------------------------------------------------------

_ASK_START = lazy_pattern(
    rf"(?i)^(?:please|could you|can you|would you|you could|i(?:'m| am)? (?:would like|need|want|also"
    rf"|trying|interested)|(?:as|acting as) an? |for (?:a|each) "
    rf"|(?:the|your|final|this|these) (?:\w+ )?(?:report|analysis|research|study|notes)\b|research "
    rf"topic|objective|conclude|(?:{_VERBS})\b|(?:{_ASKING})\b"
    r"|researching|exploring|analy[sz]ing|understanding\s+(?:how|what|why|whether)|possible ways|so, "
    r"|and |furthermore, |additionally, |finally, |specifically )"
)
_SUBJECT_VERB = lazy_pattern(
    r"(?i)\s(?:is|are|was|were|has|have|had|can|could|will|would|may|include|includes|features"
    r"|remains?|shows?|plays?|lacks?|emerged|represents?)\s"
)


_EMPTY = lazy_pattern(
    rf"(?i)^(?:{_VERBS}|study|report|analysis|comprehensive content|(?:the )?following [\w ]{{1,40}})$"
)


def parts_in(text: str) -> tuple[Part, ...]:
    """All that is asked, in order; where nothing looks like an ask, the whole is one."""
    sentences = list(_sentences(text))
    asks = [each for each in sentences if _is_ask(each)] or sentences
    seen: dict[str, Part] = {}
    for sentence in asks:
        for part in _parts_of(sentence):
            seen.setdefault(part.text.casefold(), part)
    return tuple(seen.values())


def _is_ask(sentence: _Sentence) -> bool:
    constraint = _CONSTRAINT.search(sentence.text)
    if constraint is not None and constraint.start() < 12:
        return False
    return sentence.asked or sentence.numbered or bool(_ASK_START.match(sentence.text)) or ", please " in sentence.text


def _parts_of(sentence: _Sentence) -> Iterator[Part]:
    text = sentence.text
    constraint = _CONSTRAINT.search(text)
    if constraint is not None and constraint.start() >= 12:
        text = text[: max(text.rfind(",", 0, constraint.start()), 0)] or text
    premise, _, _ = text.rpartition(", please ")
    pieces = _NEXT_ASK.split(_strip(text, _OPENINGS))
    for number, piece in enumerate(pieces):
        phrase, leans = _phrase(_strip(piece, _MATTER), sentence.asked)
        if len(phrase) < 3 or _EMPTY.match(phrase):
            continue
        lists = [each for each in _lists(piece) if each.aside or not _all_names(each.items)]
        if not lists and premise:
            lists = [_List(each.items, phrase) for each in _lists(premise) if not _all_names(each.items)]
        topics = once([topic for each in lists for topic in each.items], 12)
        if topics and not lists[0].head and _OWNER.search(phrase):
            topics = (*topics[:-1], topics[-1].partition(" of ")[0])
        head = (
            re.split(",? such as", phrase)[0]
            if lists and all(each.aside for each in lists)
            else _head(lists, sentence.asked)
        )
        kind = kind_of(piece, "en")
        kind = kind_of(phrase, "en") if kind == "survey" else kind
        yield Part(phrase, kind, topics, leans or (number > 0 and len(phrase.split()) < 5), head)


def _head(lists: list[_List], asked: bool) -> str:
    """What the enumerated things are aspects of, where it is said before them."""
    named = [each.head for each in lists if each.head]
    if not named:
        return ""
    head, _ = _phrase(_strip(_strip(named[0], _OPENINGS), _MATTER), asked)
    return head if 2 <= len(head.split()) <= 9 else ""


_FOCUSED = lazy_pattern(
    r"(?i)^(?:as|acting as) an? [^,]{0,80}(?:focus(?:ing|ed)|working|speciali[sz]ing)\s+(?:on|in)\s+([^,.:)]{4,120})"
)
_TITLED = lazy_pattern(r"(?i)\b(?:titled|entitled|paper on an?|report on the|topic of) ['\"“‘]([^'\"”’]{4,150})['\"”’]")


def subject_in(text: str, parts: tuple[Part, ...]) -> str:
    """What the question is about: a title it gives, what its opening sentence speaks of, or the first thing asked."""
    for form in (_TITLED, _FOCUSED):
        said = form.search(text)
        if said and len(said[1].split()) > 1:
            return clip(tidy(said[1]), _NOUN_SUBJECT_MAX, "en")
    opening = next(_sentences(text), None)
    if opening and not _is_ask(opening) and not opening.text.endswith(":") and (spoken := _spoken_of(opening.text)):
        return spoken
    first = parts[0]
    if first.topics and not first.head and (owner := _OWNER.search(first.text)):
        return clip(tidy(owner[1]), _NOUN_SUBJECT_MAX, "en")
    short = re.split(
        r"(?i),? (?:such as|including|based on|in terms of|across various|considering|as a key)\b|[:;] ", first.text
    )[0]
    asked = "?" if first.text.endswith("?") else ""
    short = tidy(short.rstrip("?"))
    if _OPEN_QUESTION.match(short):
        return clip(cut_clause(short, "en"), _SUBJECT_MAX, "en") + asked
    return clip(short, _NOUN_SUBJECT_MAX, "en") + asked


_OWNER = lazy_pattern(r",[^,]{2,60}? of (?:the |an? )?([^,?]{3,120})$")
"""A, B and C of what."""


def _spoken_of(sentence: str) -> str:
    """The subject of a statement: what stands before its verb."""
    regarding = re.match(r"(?i)regarding\s+([^,]{4,120}),", sentence)
    if re.match(r"(?i)(?:while|although|though|when|as|if|since|given)\b", sentence):
        return ""
    words = (
        regarding[1]
        if regarding
        else _SUBJECT_VERB.split(re.sub(r"(?i)^in [^,]{1,60},\s+", "", sentence), maxsplit=1)[0]
    )
    phrase, leans = _phrase(without_brackets(words), asked=False)
    return phrase if 2 <= len(phrase.split()) <= 14 and not leans and len(words) < len(sentence) else ""
