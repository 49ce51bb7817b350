"""Angles on a question: as many as asked for each track, each with its own title and what it must find out.

The standard track shares out what the question asks, so that nothing asked is left to nobody. The independent track
goes to primary sources without that framing; the contrarian track looks for what speaks against the expected answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from muniment.core.text.analyzer import analyze
from muniment.core.text.script import Written
from muniment.research.questions.angle_words import SPECIAL_FORMS, Words, angle_titles, more_titles
from muniment.research.questions.phrases import Part, clip, join, once, title_case
from muniment.research.questions.question import QuestionAnalysis
from muniment.research.questions.words import Domain, Kind

__all__ = ["TITLE_CHARS_MAX", "Angle", "contrarian", "independent", "standard"]

TITLE_CHARS_MAX = 200
_LISTED_MAX = {"en": 110, "zh": 44}
_MERGED_MAX = {"en": TITLE_CHARS_MAX - 20, "zh": 72}
_LEANT_MAX = {"en": 160, "zh": 64}
_SCHOLARLY = re.compile(r"(?i)research|stud(?:y|ies)|theor|scien|研究|成果|理论|学")
_DIFFERENCE = re.compile("区别|差异|异同|优劣|对比|比较|不同")
_QUESTION = re.compile("如何|怎样|什么|哪|是否|能否|多少|多大")
_SURVEY_DOUBTS: dict[Domain, Kind] = {"society": "quantity", "finance": "quantity", "health": "evaluation"}
_DECIDING = ("ranking", "forecast", "evaluation", "why")


class Angle(NamedTuple):
    title: str
    focus: str


class _Unit(NamedTuple):
    """A share of the standard track: what it takes of the question."""

    title: str
    asks: tuple[str, ...]
    topics: tuple[str, ...] = ()
    head: str = ""
    about: str = ""
    """The subject, where the title alone does not name it."""


# -- standard -----------------------------------------------------------------------------------------


def standard(analysis: QuestionAnalysis, slots: int) -> list[Angle]:
    """The question shared out over so many angles."""
    units = [_unit(analysis, part) for part in analysis.parts]
    if analysis.open_set and len(units) > 1 and not analysis.parts[0].topics:
        units[0] = units[0]._replace(title=_name("members", analysis.language), about=analysis.subject)
    if len(units) == 1 and 2 <= len(analysis.compared) == slots and analysis.kinds[0] != "comparison":
        units = list(_profiles(analysis, slots))
    if slots == 1 and len(units) > 1:
        asks = tuple(ask for unit in units for ask in unit.asks)
        units = [units[0]._replace(asks=asks, topics=analysis.topics)]
    while len(units) > slots:
        units = _merged(units, analysis.language)
    while len(units) < slots and (split := _split(units, analysis)) is not None:
        units = split
    taken = {_unit_title(unit, analysis.language).casefold() for unit in units}
    more = (
        unit
        for unit in _fillers(analysis, slots - len(units))
        if _unit_title(unit, analysis.language).casefold() not in taken
    )
    units.extend(islice(more, slots - len(units)))
    return [Angle(_unit_title(unit, analysis.language), _focus(analysis, unit)) for unit in units]


def _unit_title(unit: _Unit, language: Written) -> str:
    if not unit.about:
        return title_case(unit.title)
    title = unit.title.rstrip("?")
    return title_case(_labelled(title, clip(unit.about, TITLE_CHARS_MAX - len(title) - 3, language), language))


def _unit(analysis: QuestionAnalysis, part: Part) -> _Unit:
    subject = analysis.subject
    if _says_all(part) or all(topic in subject for topic in part.topics):
        part = part._replace(head="")
    elif len(part.topics) >= 2 and part.head:
        title = _labelled(part.head.rstrip("?"), _listed(part.topics, analysis.language), analysis.language)
        return _Unit(title, (part.text,), part.topics, part.head)
    elif len(part.topics) >= 2:
        return _Unit(_listed(part.topics, analysis.language), (part.text,), part.topics, about=subject)
    bare = subject.rstrip("?")
    if part.text.startswith(bare) or part.text.endswith(bare):
        return _Unit(_view(part.kind, subject, analysis)[analysis.language], (part.text,), part.topics, about=subject)
    leans = part.leans or _shares_no_word(part.text, subject)
    fits = len(part.text) + len(subject) <= _LEANT_MAX[analysis.language]
    return _Unit(part.text, (part.text,), part.topics, part.head, about=subject if leans and fits else "")


def _says_all(part: Part) -> bool:
    """A question that names its topics itself, and is short enough."""
    return (
        bool(_QUESTION.search(part.text)) and len(part.text) <= 48 and all(topic in part.text for topic in part.topics)
    )


def _shares_no_word(text: str, subject: str) -> bool:
    """Whether two phrases share no word, which in Chinese is a pair of signs."""
    one, other = ({term for term in analyze(phrase) if len(term) > 1} for phrase in (text, subject))
    return one.isdisjoint(other)


def _view(kind: Kind, matter: str, analysis: QuestionAnalysis) -> Words:
    usual = angle_titles("views")[kind]
    if kind == "survey" and analysis.domains and not _SCHOLARLY.search(matter):
        usual = angle_titles("surveys").get(analysis.domains[0], usual)
    return angle_titles("special views").get(_special_form(matter), usual)


def _doubt(kind: Kind, matter: str, analysis: QuestionAnalysis) -> Words:
    if kind in ("survey", "how") and analysis.domains[:1] == ("culture",):
        kind = "definition"
    if kind == "survey" and analysis.domains:
        kind = _SURVEY_DOUBTS.get(analysis.domains[0], kind)
    return angle_titles("special doubts").get(_special_form(matter), angle_titles("doubts")[kind])


def _special_form(matter: str) -> str:
    """The form of a matter that calls for titles of its own; empty where it has none."""
    return next((name for name, form in SPECIAL_FORMS.items() if form.search(matter)), "")


def _name(name: str, language: Written) -> str:
    return angle_titles("names")[name][language]


def _listed(topics: Sequence[str], language: Written) -> str:
    """A title that lists the topics: as many as have room, and how many more there are."""
    for shown in range(len(topics), 0, -1):
        rest = len(topics) - shown
        if language == "zh":
            text = join(topics[:shown], "zh") + (f"等{len(topics)}项" if rest else "")
        else:
            text = join([*topics[:shown], f"{rest} more"] if rest else topics, "en")
        if len(text) <= _LISTED_MAX[language] or shown == 1:
            return text
    return ""


def _merged(units: list[_Unit], language: Written) -> list[_Unit]:
    """The units with two neighbours joined: those that make the shortest title."""
    lengths = [len(one.title) + len(other.title) for one, other in pairwise(units)]
    first = 1 if len(units) > 2 else 0  # the first one speaks of the whole
    at = min(range(first, len(lengths)), key=lambda place: (lengths[place], place))
    one, other = units[at], units[at + 1]
    title = (
        f"{one.title}；{other.title}" if language == "zh" else f"{one.title.rstrip('?')}; {_lower_first(other.title)}"
    )
    about = one.about or other.about
    twice = about and any(sign in title for sign in (": ", "："))
    if twice or len(title) + len(about) > _MERGED_MAX[language]:
        plain = (
            _says_its_asks(one, language) and _says_its_asks(other, language) and len(title) <= _MERGED_MAX[language]
        )
        title, about = (title, "") if plain else (one.title, one.about)
    both = _Unit(title, (*one.asks, *other.asks), once((*one.topics, *other.topics), 24), about=about)
    return [*units[:at], both, *units[at + 2 :]]


def _says_its_asks(unit: _Unit, language: Written) -> bool:
    """Whether the title is what is asked, and no name for it."""
    asks = ("；" if language == "zh" else "; ").join(unit.asks)
    return unit.title.replace("?", "").casefold() == asks.replace("?", "").casefold()


def _split(units: list[_Unit], analysis: QuestionAnalysis) -> list[_Unit] | None:
    """The units with the one that has most topics split in two; None where none has four."""
    at = max(range(len(units)), key=lambda place: (len(units[place].topics), -place))
    unit = units[at]
    if len(unit.topics) < 4 or len(unit.asks) > 1 or not (unit.head or unit.about) or unit.title == unit.asks[0]:
        return None
    half = (len(unit.topics) + 1) // 2
    part = Part(unit.asks[0], "survey", head=unit.head)
    halves = [_unit(analysis, part._replace(topics=topics)) for topics in (unit.topics[:half], unit.topics[half:])]
    return [*units[:at], *halves, *units[at + 1 :]]


def _profiles(analysis: QuestionAnalysis, groups: int) -> Iterator[_Unit]:
    """One share for each thing compared, or for each group of them."""
    things = analysis.compared
    groups = min(groups, len(things))
    for group in range(groups):
        mine = things[len(things) * group // groups : len(things) * (group + 1) // groups]
        title = _labelled(join(mine, analysis.language), _asked_of(analysis), analysis.language)
        yield _Unit(title, (title,), mine)


def _asked_of(analysis: QuestionAnalysis) -> str:
    """What is asked about the things compared: the subject without them, where that leaves something."""
    subject = analysis.subject
    if analysis.language == "zh":
        rest = subject.rpartition("的")[2] if subject.startswith(analysis.compared[0]) else ""
        return rest if rest and rest != subject and not _DIFFERENCE.search(rest) else _name("profiles", "zh")
    before, name, _ = subject.partition(analysis.compared[0])
    asked = re.sub(r"\s+(?:of|by)\s+$", "", before)
    return asked if name and asked != before else _name("profiles", "en").lower()


def _fillers(analysis: QuestionAnalysis, missing: int) -> Iterator[_Unit]:
    language, subject = analysis.language, analysis.subject
    if len(analysis.compared) >= 2:
        if missing > 1:
            yield _Unit(_name("sides", language), (subject,), analysis.compared, about=subject)
            missing -= 1
        yield from _profiles(analysis, missing)
    for words in (_view(analysis.kinds[0], subject, analysis), *more_titles("more views")):
        yield _Unit(words[language], (subject,), about=subject)
    for part in analysis.parts:
        for words in more_titles("more views"):
            yield _Unit(words[language], (part.text,), part.topics, about=part.text)


# -- independent and contrarian -----------------------------------------------------------------------


def independent(analysis: QuestionAnalysis, slots: int) -> list[Angle]:
    """Primary sources, found without the framing of the standard track."""
    words = (*(angle_titles("checks")[domain] for domain in analysis.domains), *more_titles("more checks"))
    said = {
        "en": "Work from primary sources that you find yourself, and leave summaries by others aside: {}.",
        "zh": "独立查找一手来源，不依赖他人的综述：{}。",
    }[analysis.language]
    return _others(analysis, words, [analysis.subject], said, slots)


def contrarian(analysis: QuestionAnalysis, slots: int) -> list[Angle]:
    """What speaks against the answer that is to be expected, above all where the question asks for a judgement."""
    deciding = [part for part in analysis.parts if part.kind in _DECIDING and not part.leans and len(part.topics) < 2]
    fits = {"en": 145, "zh": 60}[analysis.language]
    target = next((part for part in reversed(deciding) if len(part.text) <= fits), None)
    kinds = dict.fromkeys([*([target.kind] if target else []), *analysis.kinds])
    matter = target.text if target else analysis.subject
    words = (*(_doubt(kind, matter, analysis) for kind in kinds), *more_titles("more doubts"))
    said = {
        "en": "Look for what speaks against the expected answer: failures, critics, data that disagree. In "
        "question: {}.",
        "zh": "寻找与预期答案相反的材料：失败案例、批评意见、不一致的数据。所涉问题：{}。",
    }[analysis.language]
    return _others(analysis, words, [matter, analysis.subject], said, slots)


def _others(
    analysis: QuestionAnalysis, words: Sequence[Words], about: Sequence[str], said: str, slots: int
) -> list[Angle]:
    """The first words go with the first matter, those after them with the last; then with each part of the question."""
    language = analysis.language
    matters = [about[min(place, len(about) - 1)] for place in range(len(words))]
    pairs: Iterable[tuple[Words, str]] = (
        *zip(words, matters, strict=True),
        *((each, part.text) for part in analysis.parts for each in words),
    )
    angles: dict[str, Angle] = {}
    for each, matter in pairs:
        if len(angles) == slots:
            break
        title = _titled(each, matter, language)
        focus = said.format(matter.rstrip("?")) + _details(analysis, analysis.topics)
        angles.setdefault(title.casefold(), Angle(title, focus))
    return list(angles.values())


# -- words --------------------------------------------------------------------------------------------


def _titled(words: Words, matter: str, language: Written) -> str:
    label = words[language]
    return title_case(_labelled(label, clip(matter, TITLE_CHARS_MAX - len(label) - 3, language), language))


def _labelled(label: str, matter: str, language: Written) -> str:
    return f"{label}：{matter}" if language == "zh" else f"{label}: {matter}"


def _lower_first(text: str) -> str:
    return text[0].lower() + text[1:] if text[1:2].islower() and text[0].isupper() else text


def _focus(analysis: QuestionAnalysis, unit: _Unit) -> str:
    asks = once([ask.rstrip("?") for ask in unit.asks], 6)
    subject = analysis.subject.rstrip("?")
    if not any(subject in ask for ask in asks):
        asks = (*asks, ("主题为" if analysis.language == "zh" else "the subject is ") + subject)
    topics = [topic for topic in unit.topics if not any(topic in ask for ask in asks)]
    if analysis.language == "zh":
        return f"查明：{'；'.join(asks)}。" + _details(analysis, topics)
    return f"Find out: {'; '.join(asks)}." + _details(analysis, topics)


def _details(analysis: QuestionAnalysis, topics: Sequence[str]) -> str:
    """What the search must name: topics, names, time, and what the asker demands."""
    chinese = analysis.language == "zh"
    names = [] if set(topics) & set(analysis.compared) else (analysis.compared or analysis.entities)[:8]
    found = (
        ("涵盖" if chinese else "Cover", topics[:12]),
        ("涉及" if chinese else "Names", names),
        ("时间范围" if chinese else "Time scope", analysis.time[:3]),
        ("提问者要求" if chinese else "The asker demands", analysis.constraints[:3]),
    )
    lines = [(label, ("、" if chinese else ", ").join(items)) for label, items in found if items]
    if not lines:
        return ""
    if chinese:
        return "".join(f"{label}：{text}；" for label, text in lines)[:-1] + "。"
    return " " + "; ".join(f"{label.lower() if at else label}: {text}" for at, (label, text) in enumerate(lines)) + "."
