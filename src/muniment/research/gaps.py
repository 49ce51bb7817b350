"""What an output says it did not find out, by priority; and whether that is worth a second wave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from muniment.core.policy import PivotPolicy
from muniment.core.text.patterns import lazy_pattern
from muniment.research.reading.outputs import Reading, Sentence, sections_of, sentences_between
from muniment.research.reading.sections import section_kind
from muniment.research.run_records import Gap, PivotDecision, Priority

__all__ = ["decide_pivot", "read_gaps"]

_PRIORITIES: tuple[Priority, ...] = ("P0", "P1", "P2", "P3")
_DEFAULT: Priority = "P2"
_WORDS: dict[Priority, str] = {
    "P0": r"critical|blocker|blocking|urgent|highest|致命|最高|关键|紧急|严重",
    "P1": r"high|major|important|significant|重要|较高|高",
    "P2": r"medium|moderate|normal|med|中等|一般|中",
    "P3": r"low|minor|optional|nice[\s-]to[\s-]have|次要|较低|低|可选",
}
_NAMED = "|".join(f"(?P<w{level[1]}>{words})" for level, words in _WORDS.items())
_LEVEL = rf"(?:P\s?(?P<p>\d)|{_NAMED})"
_PRIORITY = r"(?:priority|prio|importance|severity|gaps?|优先级|优先|重要性|程度|缺口)"
_TAG = rf"[\[(（【]\s*(?:{_PRIORITY}\s*[:：]?\s*)?{_LEVEL}(?:\s*{_PRIORITY})?\s*[\])）】]"
_BRACKETED = lazy_pattern(rf"(?i)\s*{_TAG}\s*[:：.\-–—]*\s*")
_ANNOUNCED = lazy_pattern(
    rf"(?i)\s*(?:{_PRIORITY}\s*[:：]\s*)?{_LEVEL}(?:\s*{_PRIORITY})?\s*"
    r"(?:[:：|]|[-–—]\s|[-–—]{2}|\Z|[(（][^()（）]{1,40}[)）]\s*[:：\-–—]?)\s*"
)
_BARE = lazy_pattern(r"\s*P(?P<p>\d)\s+")
_TRAILING = lazy_pattern(rf"(?i)\s*{_TAG}\s*[.。]?\s*\Z")
_NOTHING = lazy_pattern(
    r"(?i)\W*(?:(?:none|nil|n/?a|nothing|not\sapplicable)(?:\s(?:were|was|have\sbeen|has\sbeen|to\sreport|known|"
    r"identified|found|noted|remaining|reported|"
    r"at\sthis\stime|so\sfar|that\sI\sknow\sof|of\snote|significant))*"
    r"|(?:there\s(?:are|were)\s)?no\s(?:\w+\s){0,3}(?:gaps?|open\squestions|unknowns|issues)(?:\s(?:were|was|"
    r"have\sbeen|are|identified|found|remain|remaining|noted|known|"
    r"reported|at\sthis\stime|so\sfar))*"
    r"|(?:暂时?|目前|尚)?(?:无|没有|未发现|不存在)(?:任何|明显|重大|显著|其他|其它|重要|已知|的)*(?:信息|研究|知识|"
    r"数据)?(?:缺口|空白|遗漏|未解决的?问题|问题)?)\W*"
)
_HEADER = lazy_pattern(rf"(?i)\W*{_PRIORITY}\W*")


class _Tagged(NamedTuple):
    priority: Priority | None
    text: str


def read_gaps(reading: Reading, perspective_id: str) -> list[Gap]:
    """A gap for each item, row or paragraph of the sections on gaps; untagged ones are P2, or as the heading says."""
    gaps: list[Gap] = []
    named = sections_of(reading, "gaps")
    own = [section for section in named if section_kind(section.title) == "gaps"] or named
    for start, end in _apart([(section.start, section.end) for section in own]):
        default = _DEFAULT
        for _, block in groupby(sentences_between(reading, start, end), key=lambda sentence: sentence.block):
            sentences = list(block)
            tagged = _tagged(sentences)
            if sentences[0].kind == "heading" or not tagged.text:
                default = tagged.priority or _DEFAULT
            elif sentences[0].kind != "reference" and not _says_nothing(tagged.text, sentences):
                gaps.append(
                    Gap(
                        perspective_id=perspective_id,
                        priority=tagged.priority or default,
                        text=tagged.text,
                        origin="said",
                    )
                )
    return gaps


def _apart(spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Spans without those inside another."""
    reach = -1
    for start, end in sorted(spans):
        if end > reach:
            yield max(start, reach), end
            reach = end


def _tagged(sentences: Sequence[Sentence]) -> _Tagged:
    text = " ".join(sentence.text for sentence in sentences)
    if sentences[0].kind == "table":
        return _tagged_row([cell.strip() for cell in text.split("|")])
    leading = _BRACKETED.match(text) or _ANNOUNCED.match(text) or _BARE.match(text)
    if leading is not None:
        return _Tagged(_priority(leading.groupdict()), text[leading.end() :].strip())
    trailing = _TRAILING.search(text[-80:])
    if trailing is not None:
        return _Tagged(_priority(trailing.groupdict()), text[: len(text) - len(trailing[0])].strip())
    return _Tagged(None, text)


def _tagged_row(cells: Sequence[str]) -> _Tagged:
    """The cell that is a priority, and the longest of the others. The row that names the columns is no gap."""
    if any(_HEADER.fullmatch(cell) for cell in cells):
        return _Tagged(None, "")
    found = [(cell, tag) for cell in cells if (tag := _BRACKETED.fullmatch(cell) or _ANNOUNCED.fullmatch(cell))]
    others = [cell for cell in cells if not found or cell != found[0][0]]
    return _Tagged(_priority(found[0][1].groupdict()) if found else None, max(others, key=len, default=""))


def _priority(groups: dict[str, str | None]) -> Priority:
    if groups.get("p"):
        return _PRIORITIES[min(int(groups["p"] or 0), 3)]
    return next((level for level in _PRIORITIES if groups.get(f"w{level[1]}")), _DEFAULT)


def _says_nothing(text: str, sentences: Sequence[Sentence]) -> bool:
    """ "None." is no gap; neither is a line that only leads on to a list."""
    leads_on = len(sentences) == 1 and sentences[0].kind == "prose" and text.rstrip().endswith((":", "："))
    return leads_on or not any(char.isalnum() for char in text) or _NOTHING.fullmatch(text) is not None


def decide_pivot(gaps: Sequence[Gap], policy: PivotPolicy, *, allowed: bool) -> PivotDecision:
    """A second wave for one P0, or enough P1, or many gaps of which enough are P1 or P2.

    Gaps in the same words count once, as the gravest of them.
    """
    distinct = {
        " ".join(gap.text.casefold().split()): gap for gap in sorted(gaps, key=lambda gap: gap.priority, reverse=True)
    }
    counted = Counter(gap.priority for gap in distinct.values())
    counts = {priority: counted[priority] for priority in _PRIORITIES}
    grounds = list(_grounds(counts, policy))
    said = ", ".join(f"{counts[priority]} {priority}" for priority in _PRIORITIES)
    if not grounds:
        reason = f"No second wave: {said}. It takes {_rule(policy)}."
    elif allowed:
        reason = f"A second wave: {'; '.join(grounds)}."
    else:
        reason = f"No second wave, though the gaps call for one ({'; '.join(grounds)}): the run's limits allow none."
    ordered = tuple(sorted(gaps, key=lambda gap: gap.priority))
    return PivotDecision(second_wave=bool(grounds) and allowed, reason=reason, counts=counts, gaps=ordered)


def _grounds(counts: dict[Priority, int], policy: PivotPolicy) -> Iterator[str]:
    total, middle = sum(counts.values()), counts["P1"] + counts["P2"]
    if counts["P0"] >= policy.p0_min:
        yield f"{counts['P0']} gaps of P0, where {policy.p0_min} will do"
    if counts["P1"] >= policy.p1_min:
        yield f"{counts['P1']} gaps of P1, where {policy.p1_min} will do"
    if total >= policy.gaps_min and middle >= policy.gaps_p1_p2_min:
        yield f"{total} gaps, {middle} of them P1 or P2, where {policy.gaps_min} and {policy.gaps_p1_p2_min} will do"


def _rule(policy: PivotPolicy) -> str:
    many = f"{policy.gaps_min} gaps of which {policy.gaps_p1_p2_min} are P1 or P2"
    return f"{policy.p0_min} P0, or {policy.p1_min} P1, or {many}"
