"""Lay out one page of text for one purpose: most stable content first, marks numbered in order of appearance.

The input is a `Sheet`: the composer makes one from its allocation, `sheet_of` from a packet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any, Literal, NamedTuple

from muniment.contracts.packet import (
    Episode,
    Fact,
    InsightItem,
    MemoryPacket,
    OpenLoop,
    Procedure,
    Purpose,
    ToolEvidence,
    WorkingState,
)
from muniment.core.record import JsonObject, JsonValue
from muniment.core.text.sentences import with_marks
from muniment.errors import InvalidRecord
from muniment.memory._fact_records import is_instruction
from muniment.memory.tool_results import gaps_of
from muniment.memory.turns import Excerpt
from muniment.packets.page import (
    BLOCKS,
    SECTIONS,
    STABLE_BLOCKS,
    STATE_PARTS,
    VOLATILE_BLOCKS,
    Answers,
    Block,
    BlockName,
    Mark,
    Section,
    StateUnit,
    day_heading,
    day_of,
    episode_text,
    excerpt_line,
    fact_line,
    find_superseded,
    insight_line,
    instruction_line,
    is_told_by_result,
    loop_line,
    may_show,
    preamble,
    procedure_line,
    quote_line,
    shown_units,
    state_line,
    summary_text,
    superseded_note,
    today_line,
    tool_line,
)

__all__ = [
    "ANSWER_MARKS",
    "EXCERPTS",
    "MARKS",
    "OPENING",
    "PROFILE",
    "RULES",
    "TODAY",
    "Page",
    "PageLine",
    "Quoted",
    "Sheet",
    "excerpt_note",
    "items_of_block",
    "joined",
    "lay_out",
    "page_lines",
    "sheet_of",
]

PROFILE = "profile"
"""The key of `explain.filters` for the events whose quotes form the user's profile."""
EXCERPTS = "excerpts"
"""The key of `explain.filters` for the quoted stretches of long results, by evidence id."""
MARKS = "marks"
"""The key of a packet's mark table in `explain.determinism`, which is open."""
ANSWER_MARKS = "answer_marks"
"""The key of a packet's table of marks in earlier answers, with their targets."""
_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Page:
    """The text, the target of each mark on it, and the lines of each section (headings included)."""

    text: str
    marks: dict[str, str]
    lines: dict[Section, list[str]]
    """Each without its final line break; a turn's line may contain others."""
    opening: list[str]
    """The lines outside all sections."""
    stable_chars: int
    """The length of the text before the date line: the prefix that pages of a session tend to share."""
    blocks: Mapping[BlockName, list[str]] = field(default_factory=dict)
    """The same lines by block, headings included."""


def joined(lines: Iterable[str]) -> str:
    """Join lines as on a page."""
    return "".join([f"{line}\n" for line in lines])


class Quoted(NamedTuple):
    """Quoted words of an event, under the name or role of the speaker."""

    evidence_id: str
    who: str
    text: str
    ts: str | None
    role: str = "user"
    excerpt: Excerpt | None = None
    """The stretches of a partly shown long result."""

    @property
    def said_at(self) -> str | None:
        """The time of a user's message; None otherwise. An assistant writes drafts and examples, a tool reports other
        days.
        """
        return self.ts if self.role == "user" else None


@dataclass(frozen=True, slots=True)
class Sheet:
    """The possible content of a page, in reading order."""

    purpose: Purpose
    now: str
    """The time of the packet."""
    state: WorkingState
    facts: Sequence[Fact]
    procedures: Sequence[Procedure]
    summary: str
    profile: Sequence[Quoted]
    quotes: Sequence[Quoted]
    superseded: Mapping[str, str | None]
    """Results of failed calls that were repeated, with the newer result if it is on the page."""
    loops: Sequence[OpenLoop]
    window: Sequence[Quoted]
    tools: Sequence[ToolEvidence]
    episodes: Sequence[Episode]
    insights: Sequence[InsightItem]
    allows_insights: bool
    cited: Container[str]
    who: Callable[[str], str | None]
    """Returns the speaker of evidence, if known by name; for a tool's result, the call."""
    results: Container[str] = frozenset()
    """Evidence from tools."""
    known_marks: Mapping[str, int] = field(default_factory=dict)
    """Numbers already assigned, by evidence id."""
    next_mark: int = 1
    """The number of the next new piece of evidence."""
    answers: Answers = field(default_factory=dict)
    """The targets of marks in answers to earlier pages."""


class _Marks:
    """Numbers evidence ids: by their earlier numbers in the session, else in the order of appearance."""

    def __init__(self, known: Mapping[str, int], next_number: int) -> None:
        self._known = known
        self._next = max(next_number, 1 + max(known.values(), default=0))
        self.shown: dict[str, int] = {}

    def __call__(self, evidence_id: str) -> str:
        number = self.shown.get(evidence_id)
        if number is None:
            number = self._known.get(evidence_id)
            if number is None:
                number, self._next = self._next, self._next + 1
            self.shown[evidence_id] = number
        return f"[{number}]"


def lay_out(sheet: Sheet) -> Page:
    """Lay out the page, without anything that the matrix withholds from the purpose. An empty sheet gives an empty
    page.
    """
    marks = _Marks(sheet.known_marks, sheet.next_mark)
    sections: dict[Section, list[str]] = {section: [] for section in SECTIONS}
    blocks = {block.name: _block(block, sheet, marks) for block in BLOCKS}
    for block in BLOCKS:
        sections[block.section] += blocks[block.name]
    stable, volatile = ([blocks[block.name] for block in part] for part in _PARTS)
    opening: list[str] = []
    before: list[str] = []
    if any(sections.values()):
        today = today_line(sheet.now)
        before = [] if today is None else [today]
        opening = [*preamble(has_instructions=bool(blocks["instructions"])), *before]
    first = joined(chain(opening[: len(opening) - len(before)], *stable))
    text = first + joined(chain(before, *volatile))
    shown = {str(number): name for name, number in marks.shown.items()}
    return Page(text, shown, sections, opening, len(first), blocks)


_PARTS = (STABLE_BLOCKS, VOLATILE_BLOCKS)


def _block(block: Block, sheet: Sheet, mark: Mark) -> list[str]:
    """The lines of a block under its heading; none if it is empty."""
    lines = list(_lines(block.name, sheet, mark)) if may_show(block.name, sheet.purpose) else []
    return [block.heading, *lines] if lines else []


def _lines(name: BlockName, sheet: Sheet, mark: Mark) -> Iterable[str]:
    match name:
        case "task" | "state":
            shown = _shown(sheet)
            return (state_line(unit, mark, shown) for unit in _units(sheet, name, shown))
        case "instructions":
            return (instruction_line(fact, mark) for fact in sheet.facts if _is_asked(sheet, fact))
        case "facts":
            return _facts(sheet, mark)
        case "procedures":
            return (procedure_line(procedure, mark) for procedure in sheet.procedures)
        case "summary":
            return [summary_text(sheet.summary, sheet.cited, mark, sheet.answers)] if sheet.summary else ()
        case "profile":
            return _quotes(sheet, sheet.profile, mark)
        case "quotes":
            return _quotes(sheet, sheet.quotes, mark)
        case "loops":
            return (loop_line(loop, mark) for loop in sheet.loops if loop.status == "open")
        case "window":
            return (
                _quote(sheet, turn, mark(turn.evidence_id), _note(sheet, turn, mark), mark) for turn in sheet.window
            )
        case "tools":
            return (tool_line(tool, mark) for tool in sheet.tools)
        case "episodes":
            return _episodes(sheet, mark)
        case "insights":
            return _insights(sheet, mark)


def items_of_block(name: BlockName, sheet: Sheet) -> list[str | None]:
    """The subject of each line of a block, in the naming of comparisons; None for the heading of a day."""
    match name:
        case "task" | "state":
            return [unit.name for unit in _units(sheet, name, _shown(sheet))]
        case "instructions" | "facts":
            asked = name == "instructions"
            return [f"fact:{fact.fact_id}" for fact in sheet.facts if _is_asked(sheet, fact) == asked]
        case "procedures":
            return [f"procedure:{procedure.procedure_id}" for procedure in sheet.procedures]
        case "summary":
            return ["summary"] if sheet.summary else []
        case "profile" | "quotes":
            held = sheet.profile if name == "profile" else sheet.quotes
            days = groupby(held, key=lambda quote: day_of(quote.ts))
            return [item for _, quotes in days for item in (None, *(f"quote:{each.evidence_id}" for each in quotes))]
        case "loops":
            return [f"loop:{loop.question}" for loop in sheet.loops if loop.status == "open"]
        case "window":
            return [f"turn:{turn.evidence_id}" for turn in sheet.window]
        case "tools":
            return [f"tool:{tool.ref}" for tool in sheet.tools]
        case "episodes":
            return [f"episode:{episode.episode_id}" for episode in sheet.episodes]
        case "insights":
            return [f"insight:{item.id}" for item in _shown_insights(sheet)]


def _units(sheet: Sheet, name: Literal["task", "state"], shown: Container[str]) -> list[StateUnit]:
    """The parts of the working state with a line."""
    return [unit for unit in shown_units(sheet.state, sheet.purpose, name) if not is_told_by_result(unit, shown)]


def _shown(sheet: Sheet) -> set[str]:
    """The evidence quoted on the page: as a quote, one of the last turns, or the line of a result."""
    shown = {quote.evidence_id for quote in (*sheet.profile, *sheet.quotes)}
    if sheet.purpose in STATE_PARTS["tool_evidence"]:
        shown |= {tool.ref for tool in sheet.state.tool_evidence or () if tool.summary}
    if may_show("window", sheet.purpose):
        shown |= {turn.evidence_id for turn in sheet.window}
    if may_show("tools", sheet.purpose):
        shown |= {tool.ref for tool in sheet.tools if tool.summary}
    return shown


def _is_asked(sheet: Sheet, fact: Fact) -> bool:
    """True if it is shown as an instruction. A tool's output never is, not even in an unchecked packet."""
    return is_instruction(fact) and not any(source in sheet.results for source in fact.sources)


def _facts(sheet: Sheet, mark: Mark) -> Iterator[str]:
    return (fact_line(fact, mark) for fact in sheet.facts if not _is_asked(sheet, fact))


def _quotes(sheet: Sheet, quotes: Iterable[Quoted], mark: Mark) -> Iterator[str]:
    """Quotes under the heading of their day, written once."""
    day = None
    for quote in quotes:
        evidence_id = quote.evidence_id
        if day_of(quote.ts) != day:
            day = day_of(quote.ts)
            yield day_heading(day)
        own = mark(evidence_id)  # numbered before the one it refers to
        yield _quote(sheet, quote, own, _note(sheet, quote, mark), mark)


def _note(sheet: Sheet, turn: Quoted, mark: Mark) -> str:
    if turn.evidence_id not in sheet.superseded:
        return ""
    by = sheet.superseded[turn.evidence_id]
    return superseded_note(mark(by) if by else None)


def _quote(sheet: Sheet, quote: Quoted, own: str, note: str, mark: Mark) -> str:
    if quote.excerpt is not None:
        return excerpt_line(own, quote.who, quote.evidence_id, quote.excerpt, note)
    is_result = quote.evidence_id in sheet.results
    text = quote.text
    if (named := sheet.answers.get(quote.evidence_id)) is not None:
        shown = _shown(sheet)
        text = with_marks(text, named, lambda id_: mark(id_) if id_ in shown else None)
    return quote_line(own, quote.who, text, note, is_result=is_result, said_at=quote.said_at)


def _episodes(sheet: Sheet, mark: Mark) -> Iterator[str]:
    for episode in sheet.episodes:
        yield episode_text(episode, sheet.who, mark, sheet.results, sheet.answers)


def _insights(sheet: Sheet, mark: Mark) -> Iterator[str]:
    return (insight_line(item, mark) for item in _shown_insights(sheet))


def _shown_insights(sheet: Sheet) -> Iterator[InsightItem]:
    if sheet.purpose != "planner" and not sheet.allows_insights:
        return
    for item in sheet.insights:
        if item.validation_state == "rejected" or (
            sheet.purpose == "responder" and item.validation_state != "validated"
        ):
            continue  # MP-12: not even an unchecked packet gets one through here
        yield item


# -- a packet's sheet ---------------------------------------------------------------------------------


def sheet_of(packet: MemoryPacket) -> Sheet:
    """The sheet of a packet: the parts that may appear on its page."""
    short, long, insight = packet.short_term, packet.long_term, packet.insight
    names = _speakers(packet)
    excerpts = packet.explain.filters.get(EXCERPTS)
    own = packet.explain.filters.get(PROFILE)
    profile = frozenset(map(str, own)) if isinstance(own, list | tuple) else frozenset()
    quotes = _joined_stretches(
        [
            Quoted(each.evidence_id, names.get(each.evidence_id, role), each.quote, each.ts, role)
            for each in short.key_quotes or ()
            for role in (each.role or "user",)
        ],
        excerpts,
    )
    return Sheet(
        purpose=packet.meta.purpose,
        now=packet.meta.generated_at,
        state=short.working_state,
        facts=long.facts,
        procedures=long.procedures,
        summary=short.rolling_summary,
        profile=[each for each in quotes if each.evidence_id in profile],
        quotes=[each for each in quotes if each.evidence_id not in profile],
        superseded=find_superseded(packet.explain.conflicts),
        loops=short.open_loops or (),
        window=_joined_stretches(
            [
                Quoted(each.evidence_id, names.get(each.evidence_id, each.role), each.content, each.ts, each.role)
                for each in short.conversation_window or ()
            ],
            excerpts,
        ),
        tools=short.last_tool_evidence or (),
        episodes=long.episodes,
        insights=(*insight.hypotheses, *insight.strategy_sketches, *insight.patterns),
        allows_insights=insight.usage_policy.allow_in_responder,
        cited={citation.id for citation in packet.citations},
        who=names.get,
        results={citation.id for citation in packet.citations if citation.type == "tool_result"},
        known_marks=_marks_of(packet),
        answers=_answers_of(packet),
    )


def excerpt_note(excerpt: Excerpt) -> JsonObject:
    """An excerpt in the form of `explain.filters.excerpts`: the positions of its stretches, and the full size."""
    places: list[JsonValue] = [[stretch.start, stretch.line] for stretch in excerpt.stretches]
    return {"at": places, "breaks": excerpt.breaks, "chars": excerpt.chars}


def _joined_stretches(quotes: Sequence[Quoted], notes: JsonValue) -> list[Quoted]:
    """Join quotes that are stretches of one long result, where the packet's notes say so and are valid."""
    if not isinstance(notes, Mapping):
        return list(quotes)
    joined: list[Quoted] = []
    for evidence_id, group in groupby(quotes, key=lambda quote: quote.evidence_id):
        held = list(group)
        excerpt = _excerpt_of([quote.text for quote in held], notes.get(evidence_id))
        joined += held if excerpt is None else [held[0]._replace(text=excerpt.text, excerpt=excerpt)]
    return joined


def _excerpt_of(texts: Sequence[str], note: Any) -> Excerpt | None:
    """None if a note, which may come from elsewhere, does not fit the quotes."""
    try:
        places = note["at"]
        stretches = [
            {"start": start, "line": line, "text": text} for (start, line), text in zip(places, texts, strict=True)
        ]
        excerpt = Excerpt.from_wire({"chars": note["chars"], "breaks": note["breaks"], "stretches": stretches})
    except (InvalidRecord, KeyError, TypeError, ValueError):
        return None
    return excerpt if all(gap.chars >= 0 and gap.lines >= 0 for gap in gaps_of(excerpt)) else None


def _speakers(packet: MemoryPacket) -> dict[str, str]:
    """The speakers of cited evidence: the summary of a message's or tool result's citation is the speaker's name."""
    said = ("message", "tool_result")
    return {each.id: each.summary for each in packet.citations if each.summary and each.type in said}


def _marks_of(packet: MemoryPacket) -> dict[str, int]:
    """The packet's mark numbers; empty without such a table."""
    held = (packet.explain.determinism or {}).get(MARKS)
    if not isinstance(held, Mapping):
        return {}
    numbers = {
        name: int(number) for number, name in held.items() if _NUMBER.fullmatch(number) and isinstance(name, str)
    }
    return numbers if len(numbers) == len(held) else {}


def _answers_of(packet: MemoryPacket) -> dict[str, dict[str, str]]:
    """The packet's table of marks in answers, as far as it is in our own format."""
    held = (packet.explain.determinism or {}).get(ANSWER_MARKS)
    tables = held if isinstance(held, Mapping) else {}
    return {
        name: {number: id_ for number, id_ in table.items() if isinstance(id_, str)}
        for name, table in tables.items()
        if isinstance(table, Mapping)
    }


OPENING, RULES, TODAY = "opening", "rules", "today"
"""Positions of lines outside all blocks: at the top, before the packet, between stable and volatile blocks."""
_MARK = re.compile(r"\[([0-9]{1,9})\]")
_HEADINGS = {block.heading: block.name for block in BLOCKS}
_RULE = "- "


class PageLine(NamedTuple):
    """A line of a page; quoted words may contain line breaks."""

    text: str
    block: str
    item: str | None
    """Its subject, in the naming of comparisons; None for a heading."""
    evidence: tuple[str, ...]
    number: int
    """The number of its first line on the page, from 1."""


def page_lines(
    packet: MemoryPacket, text: str, marks: Mapping[str, str], rule_ids: Sequence[str] = ()
) -> list[PageLine]:
    """The lines of a build's text. A layout by an earlier composer is parsed line by line."""
    sheet = sheet_of(packet)
    page = lay_out(sheet)
    if text.endswith(page.text):
        rules = text.removesuffix(page.text)
        named = {block.name: items_of_block(block.name, sheet) for block in BLOCKS}
        found = [*_rule_lines(rules, rule_ids), *_laid_lines(page, named)]
    else:
        found = list(_read_lines(text))
    lines, number = [], 1
    for line, block, item in found:
        evidence = tuple(dict.fromkeys(marks[mark] for mark in _MARK.findall(line) if mark in marks))
        if item == "summary" and evidence:
            item = f"summary:{evidence[0]}"
        lines.append(PageLine(line, block, item, evidence, number))
        number += 1 + line.count("\n")
    return lines


_Found = tuple[str, str, str | None]


def _rule_lines(rules: str, rule_ids: Sequence[str]) -> Iterator[_Found]:
    """The lines before the packet; rules with their ids if their numbers agree."""
    told = rules.splitlines()
    items = iter(rule_ids if sum(line.startswith(_RULE) for line in told) == len(rule_ids) else ())
    for line in told:
        named = next(items, None) if line.startswith(_RULE) else None
        yield line, RULES, None if named is None else f"rule:{named}"


def _laid_lines(page: Page, named: Mapping[BlockName, list[str | None]]) -> Iterator[_Found]:
    stable = sum(len(page.blocks[block.name]) for block in STABLE_BLOCKS)
    opening = page.text[: page.stable_chars].count("\n") - _breaks(page, STABLE_BLOCKS)
    yield from ((line, OPENING, None) for line in page.opening[:opening])
    if stable:
        yield from _block_lines(page, STABLE_BLOCKS, named)
    yield from ((line, TODAY, None) for line in page.opening[opening:])
    yield from _block_lines(page, VOLATILE_BLOCKS, named)


def _breaks(page: Page, blocks: Sequence[Block]) -> int:
    """The number of line breaks in these blocks of the page."""
    return sum(1 + line.count("\n") for block in blocks for line in page.blocks[block.name])


def _block_lines(page: Page, blocks: Sequence[Block], named: Mapping[BlockName, list[str | None]]) -> Iterator[_Found]:
    for block in blocks:
        lines, items = page.blocks[block.name], named[block.name]
        if not lines:
            continue
        yield lines[0], block.name, None
        told = lines[1:]
        if block.name == "summary":  # one text of several lines, each with its own evidence
            told = [line for text in told for line in text.split("\n")]
            items = ["summary"] * len(told)
        known = items if len(items) == len(told) else [None] * len(told)
        yield from ((line, block.name, item) for line, item in zip(told, known, strict=True))


def _read_lines(text: str) -> Iterator[_Found]:
    """Parse a page of unknown layout by its headings."""
    block = OPENING
    for line in text.splitlines():
        block = _HEADINGS.get(line, block)
        yield line, block, None
