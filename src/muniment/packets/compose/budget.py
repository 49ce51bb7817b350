"""What may still be spent, the price of a line, and how a text is made shorter: never by other words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from muniment.contracts.packet import PacketBudget
from muniment.core.ports.models import TokenCounter, adds_lines, weighing
from muniment.core.requests import furthest
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import sentence_spans
from muniment.packets.page.layout import Page, joined
from muniment.packets.page.lines import BLOCK_NAMES, SECTIONS, BlockName, Section
from muniment.packets.page.opening import PREAMBLE

__all__ = ["OVERHEAD", "TYPICAL_MARK", "Fits", "Purse", "Usage", "cut_text", "cut_value", "measure", "typical_mark"]

OVERHEAD = "overhead"
"""The key of `section_usage` for what belongs to no section: the preamble, the day, and seams."""
TYPICAL_MARK = "[88]"
_MARK = re.compile(r"\[[1-9][0-9]{0,2}\]")
_PAGE_MARKS = 60
"""So many new marks are thought of; where a page has more and they are longer, lines are taken back."""
_SCALE_MIN = 0.5
_CHARS_PER_TOKEN_MAX = 64
"""No tokenizer packs real text tighter; what is longer than this times the budget is not worth counting."""


def typical_mark(_: str) -> str:
    """Stands for any mark while lines are priced."""
    return TYPICAL_MARK


class Purse:
    """Room left in one composition."""

    def __init__(
        self,
        budget: PacketBudget,
        counter: TokenCounter,
        opening: Sequence[str] = PREAMBLE,
        next_mark: int = 1,
    ) -> None:
        """`opening` are the lines of the page that belong to no section: spent before anything is placed.

        `next_mark` is the number that the next piece of evidence gets: late in a long session marks are longer.
        """
        self.tokens_max = budget.max_tokens
        self.spent: dict[Section, int] = dict.fromkeys(SECTIONS, 0)
        self._caps: dict[Section, int] = {section: getattr(budget.per_section, section) for section in SECTIONS}
        self._counter = counter
        self._prices: dict[str, int] = {}
        self._scale = 1.0
        self._opened: set[BlockName] = set()
        self._floors: dict[Section, int] = {}
        self._needed: Callable[[Section, int], int] | None = None
        self._uses: dict[Section, int] = {}
        """How much of its floor a section can use."""
        self._kept: dict[Section, int] = {}
        """What is kept for the others while a section is served."""
        self._mark = _longest_mark(next_mark, counter)
        self._least = self._whole = sum(map(self.price, opening))

    def price(self, text: str) -> int:
        """Tokens of a line with its line break."""
        known = self._prices.get(text)
        if known is None:
            known = self._prices[text] = self._count(text)
        return known if self._scale == 1.0 else max(1, round(known * self._scale))

    def price_many(self, texts: Iterable[str]) -> None:
        """Have these lines priced in one go."""
        short = self.tokens_max * _CHARS_PER_TOKEN_MAX
        fresh = [text for text in dict.fromkeys(texts) if text not in self._prices and len(text) <= short]
        counted = self._counter.count_many([self._shown(text) for text in fresh])
        self._prices.update(zip(fresh, counted, strict=True))
        if not self._counter.is_exact and self._scale == 1.0:
            self._calibrate(fresh, counted)

    def _calibrate(self, lines: list[str], counted: list[int]) -> None:
        """An estimate's margin weighs more on a line than on a page: learn by how much from a page's worth of lines."""
        page, apart = "", 0
        for line, count in zip(lines, counted, strict=True):
            if apart + count > self.tokens_max:
                break
            page, apart = f"{page}{line}\n", apart + count
        if apart * 2 > self.tokens_max:
            self._scale = max(_SCALE_MIN, min(1.0, self._counter.count(page) / apart))

    def _count(self, text: str) -> int:
        if len(text) > self.tokens_max * _CHARS_PER_TOKEN_MAX:
            return len(text)
        return self._counter.count(self._shown(text))

    def _shown(self, text: str) -> str:
        """A line as it stands on the page, its marks as long as they may be there."""
        return f"{text}\n" if self._mark == TYPICAL_MARK else f"{text.replace(TYPICAL_MARK, self._mark)}\n"

    def opening(self, block: BlockName) -> int:
        """What the block's heading still costs."""
        return 0 if block in self._opened else self.price(BLOCK_NAMES[block].heading)

    @property
    def left(self) -> int:
        """Tokens that nobody has spent."""
        return self.tokens_max - self._whole

    def keep(self, floors: Mapping[Section, int], needed: Callable[[Section, int], int]) -> None:
        """Keep tokens for sections until they had their turn; `needed` says how much of its floor one can use."""
        self._floors, self._needed = dict(floors), needed
        self._kept.clear()

    def served(self, section: Section) -> None:
        """A section had its turn: nothing is kept for it any more."""
        if self._floors.pop(section, None) is not None:
            self._kept.clear()

    def _kept_beside(self, section: Section) -> int:
        """What is kept for the other sections. What one can use is asked when it first matters, and then known."""
        kept = self._kept.get(section)
        if kept is None:
            others = [other for other in self._floors if other != section]
            if self._needed is not None:
                self._uses.update(
                    {other: self._needed(other, self._floors[other]) for other in others if other not in self._uses}
                )
            kept = self._kept[section] = sum([self._uses[other] for other in others])
        return kept

    def room(self, block: BlockName) -> int:
        """Tokens a further line of this block may cost, its heading paid for."""
        section = BLOCK_NAMES[block].section
        free = self.left - self._kept_beside(section)
        return min(self._caps[section] - self.spent[section], free) - self.opening(block)

    def pay(self, block: BlockName, tokens: int) -> None:
        tokens += self.opening(block)
        self._opened.add(block)
        self.spent[BLOCK_NAMES[block].section] += tokens
        self._whole += tokens

    def take_back(self, block: BlockName, tokens: int) -> None:
        self.spent[BLOCK_NAMES[block].section] -= tokens
        self._whole -= tokens

    def settle(self, usage: Usage) -> None:
        """Lines together can cost less than one by one: set the accounts to what the page was counted at."""
        self.spent = dict(usage.alone)
        self._whole = max(usage.total, self._least)

    def overspent(self, usage: Usage) -> tuple[Section | None, int]:
        """The last section over its cap, or None for the whole, and by how much; 0 where everything fits."""
        for section in reversed(SECTIONS):
            if usage.alone[section] > self._caps[section]:
                return section, usage.alone[section] - self._caps[section]
        return None, max(0, usage.total - self.tokens_max)


def _longest_mark(next_number: int, counter: TokenCounter) -> str:
    """A mark as long as a page may have, seen from the number that comes next."""
    digits = len(str(next_number + _PAGE_MARKS))
    if digits <= 2 or (digits == 3 and adds_lines(counter)):  # up to three digits count for the same there
        return TYPICAL_MARK
    return f"[{'8' * digits}]"


class Usage:
    """The counted page: sections and overhead add up to `total`, which is what the counter says of the whole text."""

    def __init__(self, alone: dict[Section, int], whole: int) -> None:
        self.alone = alone
        """Each section counted by itself: what its cap is held against."""
        self.total = whole
        self.sections = _shrunk(alone, whole)
        self.overhead = whole - sum(self.sections.values())

    def to_report(self) -> dict[str, int]:
        return {**{str(section): count for section, count in self.sections.items()}, OVERHEAD: self.overhead}


def _shrunk(alone: dict[Section, int], whole: int) -> dict[Section, int]:
    """Parts can count for more than their whole (an estimate's margin, a merge over a seam): then they share it."""
    parts = sum(alone.values())
    if parts <= whole:
        return alone
    shared = {section: count * whole // parts for section, count in alone.items()}
    rest = whole - sum(shared.values())
    for section in sorted(alone, key=lambda each: -alone[each]):  # at most one each: rounding cost no more
        if rest and shared[section] < alone[section]:
            shared[section] += 1
            rest -= 1
    return shared


def measure(page: Page, counter: TokenCounter) -> Usage:
    """Count each section and the whole of a page. No text costs nothing."""
    if all(map(_starts_apart, chain.from_iterable(page.lines.values()))):
        if adds_lines(counter):
            alone = {section: _sum_of(page.lines[section], counter.count_many) for section in SECTIONS}
            return Usage(alone, sum(alone.values()) + _sum_of(page.opening, counter.count_many))
        if (scales := weighing(counter)) is not None:
            weights = {section: _sum_of(page.lines[section], scales.weigh_many) for section in SECTIONS}
            whole = sum(weights.values()) + _sum_of(page.opening, scales.weigh_many)
            alone = {section: scales.tokens_of_weight(weight) for section, weight in weights.items()}
            return Usage(alone, scales.tokens_of_weight(whole))
    texts = [joined(page.lines[section]) for section in SECTIONS]
    held = [text for text in (*texts, page.text) if text]
    counts = dict(zip(held, counter.count_many(held), strict=True))
    return Usage(
        {section: counts.get(text, 0) for section, text in zip(SECTIONS, texts, strict=True)},
        counts.get(page.text, 0),
    )


def _starts_apart(line: str) -> bool:
    """Could nothing of this line be read as one with the line break before it?"""
    return line != "" and line[0] != "/" and not line[0].isspace()


def _sum_of(lines: Sequence[str], count_many: Callable[[Sequence[str]], list[int]]) -> int:
    """The sum over lines of a page, most of them known since they were priced: any mark counts for the same."""
    return sum(count_many([f"{_unmarked(line)}\n" for line in lines]))


def _unmarked(line: str) -> str:
    return _MARK.sub(TYPICAL_MARK, line) if "[" in line else line


Fits = Callable[[str], bool]

_SCAN_CHARS_MAX = 200_000
"""Further into one turn nobody looks for the best sentence."""


def cut_text(text: str, fits: Fits, terms: Collection[str] = ()) -> str | None:
    """The longest stretch of whole sentences around the one that shares most terms; else its first words; else None."""
    text = text[:_SCAN_CHARS_MAX]
    spans = sentence_spans(text)
    if not spans:
        return None
    best = _best(text, spans, frozenset(terms))
    start, end = spans[best]
    if not fits(text[start:end]):
        return _cut_words(text[start:end], fits)
    last = furthest(len(spans) - best - 1, lambda more: fits(text[start : spans[best + more][1]]))
    end = spans[best + last][1]
    first = furthest(best, lambda more: fits(text[spans[best - more][0] : end]))
    return text[spans[best - first][0] : end]


def cut_value(value: Any, fits: Callable[[Any], bool]) -> Any:
    """A JSON value made shorter: text by `cut_text`, a list by its first items; None where neither helps."""
    if isinstance(value, str):
        return cut_text(value, fits)
    if isinstance(value, list) and len(value) > 1:
        kept = furthest(len(value) - 1, lambda count: count > 0 and fits(value[:count]))
        return value[:kept] if kept else None
    return None


def _best(text: str, spans: list[tuple[int, int]], terms: frozenset[str]) -> int:
    if not terms or len(spans) == 1:
        return 0
    return max(range(len(spans)), key=lambda at: (len(terms & set(analyze(text[slice(*spans[at])]))), -at))


def _cut_words(text: str, fits: Fits) -> str | None:
    """The first words; where words are not set apart, the first signs."""
    ends = [at for at in range(1, len(text)) if text[at].isspace() and not text[at - 1].isspace()]
    if len(ends) < len(text) // 40:
        ends = list(range(1, len(text)))
    kept = furthest(len(ends), lambda count: count > 0 and fits(text[: ends[count - 1]]))
    return text[: ends[kept - 1]] if kept else None
