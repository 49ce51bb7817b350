"""The lines of a page one by one: in which block each stands, what it tells of, what it cites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from muniment.contracts.packet import MemoryPacket
from muniment.packets.page.layout import Page, items_of_block, lay_out, sheet_of
from muniment.packets.page.lines import BLOCKS, STABLE_BLOCKS, VOLATILE_BLOCKS, Block, BlockName

__all__ = ["OPENING", "RULES", "TODAY", "PageLine", "page_lines"]

OPENING, RULES, TODAY = "opening", "rules", "today"
"""Where lines stand that are in no block: above all, before the packet, between what is stable and what is not."""
_MARK = re.compile(r"\[([0-9]{1,9})\]")
_HEADINGS = {block.heading: block.name for block in BLOCKS}
_RULE = "- "


class PageLine(NamedTuple):
    """A line as it stands on the page; words of somebody may have breaks within."""

    text: str
    block: str
    item: str | None
    """What it tells of, as comparisons name it; None of a heading."""
    evidence: tuple[str, ...]
    number: int
    """Of the first line of it on the page, from 1."""


def page_lines(
    packet: MemoryPacket, text: str, marks: Mapping[str, str], rule_ids: Sequence[str] = ()
) -> list[PageLine]:
    """The lines of a build's text. One that an earlier composer laid out is read line by line."""
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
    """What stands before the packet; a rule by its id, where as many are told as were given."""
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
    """How many line breaks these blocks have on the page."""
    return sum(1 + line.count("\n") for block in blocks for line in page.blocks[block.name])


def _block_lines(page: Page, blocks: Sequence[Block], named: Mapping[BlockName, list[str | None]]) -> Iterator[_Found]:
    for block in blocks:
        lines, items = page.blocks[block.name], named[block.name]
        if not lines:
            continue
        yield lines[0], block.name, None
        told = lines[1:]
        if block.name == "summary":  # one text of many lines, each with its own evidence
            told = [line for text in told for line in text.split("\n")]
            items = ["summary"] * len(told)
        known = items if len(items) == len(told) else [None] * len(told)
        yield from ((line, block.name, item) for line, item in zip(told, known, strict=True))


def _read_lines(text: str) -> Iterator[_Found]:
    """A page whose layout is no longer known: by its headings."""
    block = OPENING
    for line in text.splitlines():
        block = _HEADINGS.get(line, block)
        yield line, block, None
