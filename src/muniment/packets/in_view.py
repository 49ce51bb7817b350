"""Incremental packets: the part of a packet that earlier packets still in view do not show.

A provider bills a repeated prompt prefix at about a tenth of the price, so a sent packet stays in place, and the next
one adds only new lines. The whole packet is composed each time; only its rendering differs
(`docs/decisions/0058-what-memory-costs.md`).

    page = page_beside(packet, [first.text, second.text])      # pure: the lines missing on these pages
    views = read_views(ctx, reader, scope, build_ids)          # the builds that may still be shown
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from muniment.contracts.packet import MemoryPacket
from muniment.core.ports.engine import Reader
from muniment.core.ports.rows import by_ids
from muniment.core.ports.schema import ITEMS
from muniment.core.record import Record
from muniment.core.scope import Scope
from muniment.errors import NotFound
from muniment.packets.layout import Page, Quoted, Sheet, items_of_block, joined, lay_out, sheet_of
from muniment.packets.page import BLOCKS, PAGE_SIGN, BlockName, dated, preamble, quoted, today_line
from muniment.store.context import Context
from muniment.store.items import Item, latest

__all__ = [
    "KeptViews",
    "LineInView",
    "ViewedBuild",
    "explain_view",
    "page_beside",
    "read_views",
    "shown_marks",
    "still_true",
    "union_marks",
]

CHANCE_MIN = 0.2
"""If evidence for the question is less likely than this, no quotes are added: user facts were sent first. Measured in
`benchmarks/cost`.
"""
SHARE_MIN = 0.1
"""A quote whose probability is below this share of the best one is not added either."""
_QUOTED: tuple[BlockName, ...] = ("profile", "quotes", "window")
_WEAK: tuple[BlockName, ...] = ("quotes", "episodes")
_SELECTED = re.compile(r"(\S+) score=(\S+) rules=")
_MARKED = re.compile(r"(?m)^\[(\d{1,9})\] ")
_MARK = re.compile(r"\[(\d{1,9})\]")
_TODAY = re.compile(r"(?m)^Today is .*$")


# -- a page after earlier ones --------------------------------------------------------------------------


def page_beside(packet: MemoryPacket, in_view: Sequence[str]) -> Page:
    """Return the lines of a packet missing on the pages in view, under their headings; an empty page if there are none.
    Without pages in view it is the whole page.

    A changed line is shown again, after the one it corrects. Marks keep their numbers.
    """
    sheet = sheet_of(packet)
    page = lay_out(sheet)
    pages = [text for text in in_view if text]
    if not pages:
        return page
    earlier = _Earlier(pages)
    weak = _weak_items(packet)
    blocks: dict[BlockName, list[str]] = {}
    for block in BLOCKS:
        lines = page.blocks[block.name][1:]
        added = list(_added(block.name, sheet, lines, earlier, weak if block.name in _WEAK else frozenset(), page))
        blocks[block.name] = [block.heading, *added] if added else []
    if not any(blocks.values()):
        return replace(page, text="", marks={}, lines={name: [] for name in page.lines}, opening=[], stable_chars=0)
    opening = [f"{PAGE_SIGN}."]
    if blocks["instructions"]:
        opening = [*preamble(has_instructions=True)]
    today = today_line(sheet.now)
    if today is not None and today != earlier.today:
        opening.append(today)
    text = joined(chain(opening, *blocks.values()))
    sections = {
        name: [line for each in BLOCKS if each.section == name for line in blocks[each.name]] for name in page.lines
    }
    return Page(text, shown_marks(text, page.marks), sections, opening, 0, blocks)


def shown_marks(text: str, marks: Mapping[str, str]) -> dict[str, str]:
    """Return the packet's marks that occur in a text."""
    numbers = set(_MARK.findall(text))
    return {number: id_ for number, id_ in marks.items() if number in numbers}


class _Earlier:
    """Pages in view, oldest first, searchable by line."""

    def __init__(self, pages: Sequence[str]) -> None:
        self._text = "\n" + "\n".join(pages) + "\n"
        days = _TODAY.findall(self._text)
        self.today = days[-1] if days else None
        """The last date given to the model."""
        self._quotes: dict[str, list[str]] = {}
        for page in pages:
            found = [*_MARKED.finditer(page)]
            ends = [each.start() for each in found[1:]] + [len(page)]
            for each, end in zip(found, ends, strict=False):  # a page of facts alone has no such line
                self._quotes.setdefault(each[1], []).append(page[each.start() : end])

    def has_line(self, line: str) -> bool:
        return f"\n{line}\n" in self._text

    def has_quote(self, number: str, words: str) -> bool:
        """True if these words, or more of the same turn, were shown under this mark."""
        return any(words in shown for shown in self._quotes.get(number, ()))


def _added(
    name: BlockName, sheet: Sheet, lines: Sequence[str], earlier: _Earlier, weak: Container[str], page: Page
) -> Iterator[str]:
    """The new lines of a block; the heading of a day only above a new line."""
    if name == "summary":
        yield from (line for text in lines for line in text.split("\n") if not earlier.has_line(line))
        return
    quotes = {each.evidence_id: each for each in (*sheet.profile, *sheet.quotes, *sheet.window)}
    numbers = {id_: number for number, id_ in page.marks.items()}
    heading: str | None = None
    for item, line in zip(items_of_block(name, sheet), lines, strict=True):
        if item is None:
            heading = line
            continue
        if item in weak or earlier.has_line(line):
            continue
        quote = quotes.get(item.partition(":")[2]) if name in _QUOTED else None
        if quote is not None and _is_shown(quote, numbers[quote.evidence_id], sheet, earlier):
            continue
        if heading is not None:
            yield heading
            heading = None
        yield line


def _is_shown(quote: Quoted, number: str, sheet: Sheet, earlier: _Earlier) -> bool:
    """True if earlier pages show as much of this turn. One superseded since is shown again, with its note."""
    if quote.excerpt is not None or quote.evidence_id in sheet.superseded:
        return False
    return earlier.has_quote(number, quoted(dated(quote.text, quote.said_at)))


def _weak_items(packet: MemoryPacket) -> frozenset[str]:
    """The quotes and episodes that are unlikely evidence for the question, by the packet's probabilities.

    Items requested by cues are exempt.
    """
    evidence = packet.explain.filters.get("evidence")
    chance = evidence.get("chance") if isinstance(evidence, Mapping) else None
    if not isinstance(chance, int | float) or packet.meta.cues is not None:
        return frozenset()
    least = 1.0 if chance < CHANCE_MIN else SHARE_MIN * chance
    found = [_SELECTED.match(each) for each in packet.explain.selected or ()]
    scores = {each[1]: float(each[2]) for each in found if each is not None}
    quotes = {name for name, score in scores.items() if name.startswith("quote:") and score < least}
    return frozenset(quotes | ({name for name in scores if name.startswith("episode:")} if least == 1.0 else set()))


# -- builds that are still in view -----------------------------------------------------------------------


class ViewedBuild(NamedTuple):
    """A build whose text the model still sees."""

    id: str
    text: str
    marks: dict[str, str]
    """The marks of its own text."""
    facts: dict[str, tuple[str, Any]]
    """The facts on its page, by id: key and value."""


class KeptViews:
    """Cache of builds read for comparison. Builds are immutable. Thread-safe."""

    def __init__(self, count_max: int = 2_048) -> None:
        self._held: OrderedDict[tuple[str, str], ViewedBuild] = OrderedDict()
        self._count_max = count_max
        self._lock = threading.Lock()

    def find(self, tenant_id: str, build_id: str) -> ViewedBuild | None:
        with self._lock:
            return self._held.get((tenant_id, build_id))

    def keep(self, tenant_id: str, view: ViewedBuild) -> None:
        with self._lock:
            self._held[tenant_id, view.id] = view
            while len(self._held) > self._count_max:
                self._held.popitem(last=False)

    def clear(self, tenant_id: str | None = None) -> None:
        with self._lock:
            for key in [key for key in self._held if tenant_id in (None, key[0])]:
                del self._held[key]


class _Alive(NamedTuple):
    id: str
    kind: str
    user_id: str | None
    session_id: str | None
    receipt_id: str | None


def read_views(ctx: Context, reader: Reader, scope: Scope, build_ids: Sequence[str]) -> list[ViewedBuild]:
    """Return the builds that may still be shown, in the given order.

    Builds of other users or sessions, and those with forgotten content, are omitted.
    """
    if not build_ids:
        return []
    wanted = list(dict.fromkeys(build_ids))
    rows = {row.id: row for row in by_ids(reader, ITEMS, wanted, into=_Alive)}
    whose = ("build", scope.user_id, scope.session_id, None)
    alive = [id_ for id_ in wanted if id_ in rows and tuple(rows[id_])[1:] == whose]
    kept, found = ctx.cache(KeptViews), []
    for id_ in alive:
        view = kept.find(scope.tenant_id, id_)
        if view is None:
            item = latest(reader, id_)
            if item is None or item.body is None:
                continue
            view = _read_view(item)
            kept.keep(scope.tenant_id, view)
        found.append(view)
    return found


def _read_view(item: Item) -> ViewedBuild:
    body = item.plain()
    text: str = body["text"]
    facts = body.get("packet", {}).get("long_term", {}).get("facts", [])
    held = {each["fact_id"]: (each["fact_key"], each["value"]) for each in facts}
    return ViewedBuild(item.id, text, shown_marks(text, body["marks"]), held)


def still_true(reader: Reader, views: Sequence[ViewedBuild], packet: Mapping[str, Any]) -> list[ViewedBuild]:
    """Drop the pages that show a fact no longer in force, unless a later page corrects it.

    A correction follows what it corrects. A fact retracted without replacement has no line that could follow; its page
    is removed from view, and the next one repeats the lines that still hold.
    """
    held = {fact_id: value for view in views for fact_id, value in view.facts.items()}
    outdated = {fact_id for fact_id, (_, value) in held.items() if not _holds(reader, fact_id, value)}
    if not outdated:
        return list(views)
    corrected = {each["fact_key"] for each in packet["long_term"]["facts"]}
    kept: list[ViewedBuild] = []
    for view in reversed(views):
        keys = {key for fact_id, (key, _) in view.facts.items() if fact_id in outdated}
        if keys <= corrected:
            kept.append(view)
            corrected = corrected | {key for fact_id, (key, _) in view.facts.items() if fact_id not in outdated}
    return kept[::-1]


def _holds(reader: Reader, fact_id: str, value: Any) -> bool:
    item = latest(reader, fact_id)
    return item is not None and item.body is not None and item.status == "active" and item.plain().get("value") == value


class LineInView(Record):
    """A line visible to the model: since when, and from which packet."""

    mark: str
    evidence_id: str
    line: str
    build_id: str
    """The packet that shows it."""
    since: str


def explain_view(ctx: Context, tenant_id: str, build_id: str) -> list[LineInView]:
    """Return the cited lines visible to the model with a build, oldest packet first, then in reading order."""
    own = ctx.engine.read(tenant_id, lambda reader: latest(reader, build_id))
    if own is None or own.kind != "build" or own.body is None:
        raise NotFound(f"no build {build_id!r:.80} in this store", path="$.build_id")
    found: list[LineInView] = []
    for id_ in (*own.plain()["request"].get("in_view", ()), build_id):
        item = own if id_ == build_id else ctx.engine.read(tenant_id, partial(latest, item_id=id_))
        if item is not None and item.body is not None:
            found += _cited_lines(item)
    return found


def _cited_lines(item: Item) -> Iterator[LineInView]:
    view = _read_view(item)
    for line in view.text.splitlines():
        for number in dict.fromkeys(_MARK.findall(line)):
            if number in view.marks:
                yield LineInView(
                    mark=f"[{number}]",
                    evidence_id=view.marks[number],
                    line=line,
                    build_id=item.id,
                    since=item.created_at,
                )


def union_marks(views: Iterable[ViewedBuild], own: Mapping[str, str]) -> dict[str, str]:
    """Return the target of each mark visible to the model: those of the pages in view, and of the new one."""
    found: dict[str, str] = {}
    for view in views:
        found |= view.marks
    return found | dict(own)
