"""Fill a token budget with candidate lines, in one pass: the same candidates and limits give the same lines.

Candidates come in the order of their value. First every section takes up to its floor, in that order, with lines that
fit whole; then the rest of the budget goes to the most valuable candidates, whole or cut. If a line depends on the rest
of the page, its section is served last, and its floor is reserved until then. A section's budget is an upper limit; the
unused part goes to others. A line may be offered twice, first within a share of the budget and later without: a cut
line may then become whole, and a dropped one gets a second chance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from muniment.contracts.packet import PacketBudget, Purpose
from muniment.core.policy import ComposePolicy
from muniment.core.ports.models import TokenCounter, adds_lines, weighing
from muniment.core.record import JsonObject
from muniment.core.requests import furthest
from muniment.core.text.analyzer import analyze
from muniment.core.text.sentences import Seen, Words, sentence_spans
from muniment.memory.tool_results import cut_excerpt
from muniment.memory.turns import Excerpt, Turn
from muniment.packets.explain import Reason
from muniment.packets.page import BLOCKS, SECTIONS, BlockName, Section

__all__ = [
    "TYPICAL_MARK",
    "AllocatedLine",
    "Allocation",
    "Candidate",
    "Fits",
    "Floors",
    "IsShown",
    "Limits",
    "Offer",
    "Pricer",
    "ShownTurn",
    "Step",
    "allocate",
    "cut_text",
    "cut_turn",
    "cut_value",
    "floors_of",
    "typical_mark",
    "whole_turn",
]

_SCAN_CHARS_MAX = 200_000
"""Characters of one turn searched for the best sentence."""


def cut_text(text: str, fits: Callable[[str], bool], terms: Collection[str] = ()) -> str | None:
    """The longest fitting stretch of whole sentences around the one that shares most terms; else None."""
    text = text[:_SCAN_CHARS_MAX]
    spans = sentence_spans(text)
    best = next((at for at in _ranked(text, spans, frozenset(terms)) if fits(text[slice(*spans[at])])), None)
    if best is None:
        return None
    start, end = spans[best]
    last = furthest(len(spans) - best - 1, lambda more: fits(text[start : spans[best + more][1]]))
    end = spans[best + last][1]
    first = furthest(best, lambda more: fits(text[spans[best - more][0] : end]))
    return text[spans[best - first][0] : end]


def cut_value(value: Any, fits: Callable[[Any], bool]) -> Any:
    """A JSON value made shorter: text by its sentences or words, a list by its first items; None if neither helps."""
    if isinstance(value, str):
        return cut_text(value, fits) or _cut_words(value[:_SCAN_CHARS_MAX], fits)
    if isinstance(value, list) and len(value) > 1:
        kept = furthest(len(value) - 1, lambda count: count > 0 and fits(value[:count]))
        return value[:kept] if kept else None
    return None


class ShownTurn(NamedTuple):
    """A turn on a page, with the shown part of its text."""

    turn: Turn
    text: str
    excerpt: Excerpt | None = None
    """For a tool's long result: the stretches that make up `text`."""


def whole_turn(turn: Turn, terms: Collection[str] = ()) -> ShownTurn:
    """The turn in full; for a very long result, its whole excerpt."""
    if turn.excerpt is None:
        return ShownTurn(turn, turn.text)
    return cut_turn(turn, lambda _: True, terms) or ShownTurn(turn, turn.text)


def cut_turn(turn: Turn, fits: Callable[[ShownTurn], bool], terms: Collection[str]) -> ShownTurn | None:
    """A shortened turn: a message as a stretch of sentences, a tool's result as its relevant lines."""
    if turn.kind == "tool_result":
        excerpt = cut_excerpt(turn.text, turn.excerpt, lambda part: fits(ShownTurn(turn, part.text, part)), terms)
        return None if excerpt is None else ShownTurn(turn, excerpt.text, excerpt)
    text = cut_text(turn.text, lambda part: fits(ShownTurn(turn, part)), terms)
    return None if text is None else ShownTurn(turn, text)


def _ranked(text: str, spans: list[tuple[int, int]], terms: frozenset[str]) -> list[int]:
    """The sentences that share terms, most first; if there are none, the first sentence only."""
    if not terms or len(spans) < 2:
        return [0] if spans else []
    shared = [len(terms & set(analyze(text[slice(*span)]))) for span in spans]
    return sorted((at for at, count in enumerate(shared) if count), key=lambda at: -shared[at]) or [0]


def _cut_words(text: str, fits: Callable[[str], bool]) -> str | None:
    """The first words or, in text without spaces, the first characters."""
    ends = [at for at in range(1, len(text)) if text[at].isspace() and not text[at - 1].isspace()]
    if len(ends) < len(text) // 40:
        ends = list(range(1, len(text)))
    kept = furthest(len(ends), lambda count: count > 0 and fits(text[: ends[count - 1]]))
    return text[: ends[kept - 1]] if kept else None


Step = Literal["raw→quote", "raw→summary", "raw→ref"]
"""A step down the ladder raw → quote → summary → ref (MP-14)."""
Fits = Callable[[Any], bool]
"""Returns whether a shortened item fits."""
IsShown = Callable[[str, str, Words], bool]
"""Returns whether an event's words are already on the page, given its id, the words, and the analysed words."""

TYPICAL_MARK = "[88]"
_PAGE_MARKS = 60
"""Expected number of new marks on a page; with more and longer ones, the page is filled again with less."""
_CHARS_PER_TOKEN_MAX = 64
"""No tokenizer packs real text tighter, so a text longer than this times the budget need not be counted."""
_COURTESY_WORDS = 2
"""`Please` and `thanks` around a sentence add nothing to it."""
_SECTION_OF: dict[BlockName, Section] = {block.name: block.section for block in BLOCKS}
_HEADING_OF: dict[BlockName, str] = {block.name: block.heading for block in BLOCKS}


def typical_mark(_: str) -> str:
    """A placeholder mark for pricing lines."""
    return TYPICAL_MARK


class Candidate(NamedTuple):
    """A possible line of a packet."""

    name: str
    """Its name in the explanation."""
    block: BlockName
    item: Any
    """The packet record; None if it depends on the rest of the page, and `shorten` makes it."""
    order: tuple[Any, ...]
    """Its position in its block: allocation goes by value, reading order by this."""
    write: Callable[[Any], str]
    """Renders an item as a page line, with placeholder marks."""
    score: float = 0.0
    rules: tuple[str, ...] = ()
    about: str | None = None
    """The event whose words it shows: they appear once, at the length that fits."""
    heading: str = ""
    """A heading required above it, once."""
    shorten: Callable[[Fits, IsShown], tuple[Any, Step | None] | None] | None = None
    """Returns the longest part that fits and the step down, if shortened."""
    after: str | None = None
    """The event that corrects or replaces it, without which it is not shown."""
    voice: str = ""
    """Lines of one voice do not repeat each other; those without a voice may."""
    says: Callable[[Any], tuple[str, Words | None]] = lambda _: ("", None)
    """Returns its words, for detecting repetition."""
    tells: Callable[[Any], Iterable[tuple[str, str]]] = lambda _: ()
    """Returns the events it reports without quoting them, with the words."""


class Offer(NamedTuple):
    """A candidate at its turn, and how much it may take."""

    candidate: Candidate
    most: int | None = None
    """Maximum tokens; None for all the remaining room."""
    pot: str | None = None
    """The shared part of the budget it draws from (`Limits.pots`)."""
    share: float = 1.0
    """The share of the remaining room it may take before it is cut."""
    may_cut: bool = True


class Limits(NamedTuple):
    """The tokens that an allocation may spend."""

    total: int
    sections: Mapping[Section, int]
    floors: Mapping[Section, int] = {}
    pots: Mapping[str, int] = {}
    cut_min: int = 16
    """With less room than this no line is cut to fit."""
    near_duplicate: float = 0.9
    opening: tuple[str, ...] = ()
    """Lines of the page outside all sections, paid for first."""


class AllocatedLine(NamedTuple):
    """An allocated candidate, and the part of it that is shown."""

    candidate: Candidate
    item: Any
    price: int
    step: Step | None = None


class Allocation(NamedTuple):
    """The allocated lines of a packet, and the reasons for all rejected offers."""

    lines: tuple[AllocatedLine, ...]
    omitted: dict[str, tuple[Reason, JsonObject]]
    tokens_of: Callable[[int], int]
    whole_price: Callable[[Candidate], int]

    def in_block(self, *blocks: BlockName) -> list[AllocatedLine]:
        """The lines of these blocks, each block in reading order."""
        found = [[each for each in self.lines if each.candidate.block == block] for block in blocks]
        return [line for lines in found for line in sorted(lines, key=lambda line: line.candidate.order)]


def allocate(offers: Sequence[Offer], limits: Limits, pricer: Pricer) -> Allocation:
    """Allocate the budget."""
    filling = _Filling(limits, pricer, offers)
    for section, floor in limits.floors.items():
        filling.floor_end = filling.spent[section] + pricer.units(floor)
        for offer in offers:
            if _SECTION_OF[offer.candidate.block] == section and offer.candidate.item is not None:
                filling.place(offer, is_floor=True)
    for offer in offers:
        if filling.is_full:
            break
        filling.place(offer)
    has_more = filling.release()
    for offer in offers:
        if filling.is_full:
            break
        if has_more or filling.is_cut(offer.candidate.name):
            filling.place(offer)
    return Allocation(tuple(filling.lines.values()), filling.fates(offers), pricer.tokens, pricer.price_whole)


class _Filling:
    """The page while it is filled; internal to `allocate`."""

    def __init__(self, limits: Limits, pricer: Pricer, offers: Sequence[Offer]) -> None:
        self._limits, self._pricer = limits, pricer
        self._offers = {each.candidate.about: each for each in reversed(offers) if each.candidate.about}
        self._total = pricer.units(limits.total)
        self._caps = {section: pricer.units(limits.sections[section]) for section in SECTIONS}
        self._pots = {name: pricer.units(tokens) for name, tokens in limits.pots.items()}
        self._cut_min = pricer.units(limits.cut_min)
        self._whole = sum(map(pricer.price, limits.opening))
        self._opened: set[str] = set()
        self._about: dict[str, AllocatedLine] = {}
        self._told: dict[str, list[tuple[str, str]]] = {}
        self._seen: dict[str, Seen] = {}
        self._never: dict[str, tuple[Reason, JsonObject]] = {}
        self._too_little: dict[tuple[Any, ...], int] = {}
        """The largest room in which an offer did not fit; it is not retried in less."""
        late = {_SECTION_OF[each.candidate.block] for each in offers if each.candidate.item is None}
        self._late = {section: pricer.units(limits.floors.get(section, 0)) for section in late}
        self._kept = sum(self._late.values())
        """Units still reserved for the floors of sections served last."""
        self.spent: dict[Section, int] = dict.fromkeys(SECTIONS, 0)
        self.floor_end = 0
        self.lines: dict[str, AllocatedLine] = {}

    @property
    def is_full(self) -> bool:
        """True if the shortest line no longer fits."""
        return self._total - self._whole < self._pricer.least

    def is_cut(self, name: str) -> bool:
        """True if a line of this name is on the page in shortened form."""
        return name in self.lines and self.lines[name].step is not None

    def release(self) -> bool:
        """Release the reserve of sections served last; return whether there was one."""
        was_kept = self._kept > 0
        self._late, self._kept = {}, 0
        return was_kept

    def place(self, offer: Offer, *, is_floor: bool = False) -> None:
        """Place a candidate, whole or cut, if it fits and its words are not yet shown."""
        candidate = offer.candidate
        name = candidate.name
        held = self.lines.get(name)
        if name in self._never or (held is not None and held.step is None):
            return
        other = held or (self._about.get(candidate.about) if candidate.about else None)
        headings = self._missing(candidate)
        room = self._room(offer, headings, is_floor=is_floor)
        if room < self._pricer.least and held is None:
            return
        if other is not None:
            room += other.price
        may_cut = offer.may_cut and not is_floor and candidate.shorten is not None
        limit = room if offer.most is None else min(room, 2 * self._pricer.units(offer.most))
        attempt = (name, may_cut, other and other.candidate.name)
        if candidate.item is not None:
            if limit <= self._too_little.get(attempt, 0):
                return
            if not (may_cut and room >= self._cut_min):
                if self._pricer.price_whole(candidate) > max(limit * offer.share, min(room, self._cut_min)):
                    self._too_little[attempt] = limit
                    return
                may_cut = False
        if held is None and (reason := self._repeats(candidate, other)) is not None:
            self._never[name] = reason
            return
        if candidate.after is not None and candidate.after not in self._about and candidate.after not in self._told:
            if candidate.after in self._offers:
                self.place(self._offers[candidate.after], is_floor=is_floor)
            if candidate.after in self._about:
                self.place(offer, is_floor=is_floor)  # with the remaining room
            elif not is_floor:
                self._never[name] = ("superseded", {"by": candidate.after})
            return
        keeps_place = other is not None and other is not held and other.candidate.block != "tools"
        if other is not None and keeps_place and not _moves(other.candidate, candidate):
            candidate = other.candidate._replace(item=candidate.item, shorten=candidate.shorten)
        found = self._fitted(offer, candidate, room, may_cut=may_cut)
        if found is None:
            self._too_little[attempt] = limit
        elif other is None or found.price > other.price or _moves(other.candidate, candidate):
            if other is not None and other is not held:
                self._replace(other, candidate, name)
            self._put(found, found.price - (0 if other is None else other.price), headings, offer.pot)

    def _room(self, offer: Offer, headings: Sequence[str], *, is_floor: bool) -> int:
        """Units that this candidate may take now, after its headings."""
        section = _SECTION_OF[offer.candidate.block]
        spent = self.spent[section]
        room = min(self._total - self._whole, self._caps[section] - spent)
        if section not in self._late:
            room -= self._kept
        if is_floor:
            room = min(room, self.floor_end - spent)
        if offer.pot is not None:
            room = min(room, self._pots[offer.pot])
        for line in headings:
            room -= self._pricer.price(line)
        return room

    def _missing(self, candidate: Candidate) -> list[str]:
        """Headings under which this line would be the first."""
        found = [] if candidate.block in self._opened else [_HEADING_OF[candidate.block]]
        if candidate.heading and f"{candidate.block}\n{candidate.heading}" not in self._opened:
            found.append(candidate.heading)
        return found

    def _repeats(self, candidate: Candidate, other: AllocatedLine | None) -> tuple[Reason, JsonObject] | None:
        """The reason a line would add nothing."""
        if candidate.item is None or (other is not None and _moves(other.candidate, candidate)):
            return None
        text, words = candidate.says(candidate.item)
        is_reference = candidate.block == "tools"  # a reference to a result says less than any other line about it
        if other is not None and (is_reference or text in other.candidate.says(other.item)[0]):
            return "duplicate", {"of": other.candidate.name}
        if self._told:
            plain = candidate.item.text.strip() if isinstance(candidate.item, ShownTurn) else text
            for event_id, part in [(candidate.about or "", plain), *candidate.tells(candidate.item)]:
                for teller, told in self._told.get(event_id, ()):
                    if is_reference or _says_all(told, part):
                        return "duplicate", {"of": teller}
        if candidate.voice and candidate.voice in self._seen:
            name = self._seen[candidate.voice].find(text, words)
            if name is not None and (other is None or name != other.candidate.name):
                return "near_duplicate", {"of": name}
        return None

    def _fitted(self, offer: Offer, candidate: Candidate, room: int, *, may_cut: bool) -> AllocatedLine | None:
        """The candidate, whole or cut, if it fits."""
        whole_room = room
        if offer.most is not None:
            room = min(room, self._pricer.units(offer.most))
        limit = int(room * offer.share)
        if candidate.item is not None:
            price = self._pricer.price_whole(candidate)
            if price <= limit or price <= min(room, self._cut_min):
                return AllocatedLine(candidate, candidate.item, price)
        if candidate.shorten is None or not may_cut or (candidate.item is not None and room < self._cut_min):
            return None

        def fits(item: Any) -> bool:
            return self._pricer.price(candidate.write(item)) <= limit

        shorter = candidate.shorten(fits, self._shows)
        if shorter is None and offer.most is not None:  # a line that says little in its share may take twice that
            limit = min(whole_room, 2 * limit)
            shorter = candidate.shorten(fits, self._shows)
        if shorter is None:
            return None
        item, step = shorter
        return AllocatedLine(candidate, item, self._pricer.price(candidate.write(item)), step)

    def _shows(self, event_id: str, text: str, words: Words) -> bool:
        other = self._about.get(event_id)
        if other is not None and text in other.candidate.says(other.item)[0]:
            return True
        if any(text in told for _, told in self._told.get(event_id, ())):
            return True
        seen = self._seen.get("said")
        return seen is not None and seen.find(text, words) is not None

    def _replace(self, other: AllocatedLine, candidate: Candidate, name: str) -> None:
        """Replace a line by one that shows more of the same, or record which one it replaces."""
        if candidate.name == other.candidate.name:
            self._never[name] = ("duplicate", {"of": candidate.name})
            return
        del self.lines[other.candidate.name]
        self._never[other.candidate.name] = ("duplicate", {"of": candidate.name})

    def _put(self, line: AllocatedLine, more: int, headings: Sequence[str], pot: str | None) -> None:
        candidate = line.candidate
        headings = self._missing(candidate) if headings else headings  # as a replacement it may need none
        for heading in headings:
            more += self._pricer.price(heading)
        self._opened.add(candidate.block)
        if candidate.heading:
            self._opened.add(f"{candidate.block}\n{candidate.heading}")
        self.spent[_SECTION_OF[candidate.block]] += more
        self._whole += more
        if self._late:
            self._kept = sum(max(0, kept - self.spent[section]) for section, kept in self._late.items())
        if pot is not None:
            self._pots[pot] -= more
        self.lines[candidate.name] = line
        if candidate.about is not None:
            self._about[candidate.about] = line
        for event_id, text in candidate.tells(line.item):
            self._told.setdefault(event_id, []).append((candidate.name, text))
        if candidate.voice:
            text, words = candidate.says(line.item)
            is_whole = line.step is None or (isinstance(line.item, ShownTurn) and line.item.turn.kind == "tool_result")
            seen = self._seen.setdefault(candidate.voice, Seen(self._limits.near_duplicate))
            seen.add(text, candidate.name, words if is_whole else None)

    def fates(self, offers: Sequence[Offer]) -> dict[str, tuple[Reason, JsonObject]]:
        """The reason for each candidate without a place."""
        found: dict[str, tuple[Reason, JsonObject]] = {}
        for candidate, *_ in offers:
            name = candidate.name
            if name in self.lines or name in found:
                continue
            known = self._never.get(name)
            if known is None and candidate.item is None and candidate.shorten is not None:
                has_more = candidate.shorten(lambda _: True, self._shows) is not None
                known = ("over_budget" if has_more else "duplicate", {})
            elif known is None:
                is_turn = isinstance(candidate.item, ShownTurn)  # too slow for hundreds of turns
                price = None if is_turn else self._pricer.tokens(self._pricer.price_whole(candidate))
                known = ("over_budget", {} if price is None else {"tokens": price})
            found[name] = known
        return found


class Floors(NamedTuple):
    """The tokens reserved for each section, and the reasons other floors are not reserved."""

    kept: dict[Section, int]
    dropped: dict[Section, str]
    scaled: float
    """1, or the factor by which all were reduced to fit the budget."""

    def to_report(self) -> JsonObject:
        """The report in `explain.filters`."""
        report: JsonObject = {"tokens": {str(section): tokens for section, tokens in self.kept.items()}}
        if self.dropped:
            report["not_kept"] = {str(section): why for section, why in self.dropped.items()}
        if self.scaled < 1:
            report["scaled"] = round(self.scaled, 4)
        return report


def floors_of(policy: ComposePolicy, purpose: Purpose, budget: PacketBudget, tokens_free: int) -> Floors:
    """The floors and caps of a purpose that fit a budget with `tokens_free` tokens for sections."""
    shares = getattr(policy.floors, purpose)
    wanted: dict[Section, int] = {
        section: int(share * budget.max_tokens) for section in SECTIONS if (share := getattr(shares, section))
    }
    whole = sum(wanted.values())
    scaled = min(1.0, max(0, tokens_free) / whole) if whole else 1.0
    kept: dict[Section, int] = {}
    dropped: dict[Section, str] = {}
    for section, tokens in wanted.items():
        floor = min(int(tokens * scaled), getattr(budget.per_section, section))
        if floor >= policy.floor_tokens_min and floor:
            kept[section] = floor
        else:
            dropped[section] = f"{floor} tokens are fewer than floor_tokens_min"
    return Floors(kept, dropped, scaled)


def _moves(held: Candidate, candidate: Candidate) -> bool:
    """True if a last turn belongs in the conversation rather than among results or user facts."""
    return held.block in ("tools", "profile") and candidate.block == "window"


def _says_all(told: str, text: str) -> bool:
    """True if words on the page contain all of a text except polite phrases around it."""
    return text in told or (told != "" and told in text and len(text.split()) - len(told.split()) <= _COURTESY_WORDS)


class Pricer:
    """Prices lines in additive units: thousandths of a token if the counter supports it, else tokens."""

    def __init__(self, counter: TokenCounter, tokens_max: int, next_mark: int = 1) -> None:
        """`next_mark` is the number of the next new evidence: marks get longer late in a session."""
        self._scales = weighing(counter)
        self._count = counter.count_many if self._scales is None else self._scales.weigh_many
        self._mark = _longest_mark(next_mark, counter)
        self._chars_max = tokens_max * _CHARS_PER_TOKEN_MAX
        self._prices: dict[str, int] = {}
        self._wholes: dict[tuple[str, int], int] = {}
        self._units: dict[int, int] = {}
        self.least = self.price(f"{TYPICAL_MARK} a")
        """The cost of the shortest line; nothing fits in less."""

    def price(self, text: str) -> int:
        """Units of a line with its line break."""
        known = self._prices.get(text)
        if known is None:
            known = self._prices[text] = self._counted(text)
        return known

    def price_whole(self, candidate: Candidate) -> int:
        """Units of a candidate's whole line."""
        key = (candidate.name, id(candidate.item))
        known = self._wholes.get(key)
        if known is None:
            known = self._wholes[key] = self.price(candidate.write(candidate.item))
        return known

    def units(self, tokens: int) -> int:
        """The most units that amount to this many tokens."""
        scales = self._scales
        if scales is None:
            return max(0, tokens)
        known = self._units.get(tokens)
        if known is None:
            most = max(0, tokens) * 1000
            known = self._units[tokens] = furthest(most, lambda weight: scales.tokens_of_weight(weight) <= tokens)
        return known

    def tokens(self, units: int) -> int:
        """Tokens of a text that costs this many units."""
        return units if self._scales is None else self._scales.tokens_of_weight(units)

    def _counted(self, text: str) -> int:
        if len(text) > self._chars_max:
            return self.units(self._chars_max) + len(text)
        line = text if self._mark == TYPICAL_MARK else text.replace(TYPICAL_MARK, self._mark)
        return self._count([f"{line}\n"])[0]


def _longest_mark(next_number: int, counter: TokenCounter) -> str:
    """The longest mark expected on a page, given the next number."""
    digits = len(str(next_number + _PAGE_MARKS))
    if digits <= 2 or (digits == 3 and (adds_lines(counter) or weighing(counter) is not None)):
        return TYPICAL_MARK  # up to three digits cost the same there
    return f"[{'8' * digits}]"
