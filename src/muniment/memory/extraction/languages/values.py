"""What stands in a slot: cut where something else begins, split where it is a list, refused where it names nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from muniment.memory.extraction.dates import day_of_numbers
from muniment.memory.extraction.languages.tables import Table

__all__ = ["Value", "key_part", "read_values"]

THINGS_MAX = 8
_LISTS = ("things", "allergen", "listing")
_FREE = ("things", "thing", "allergen", "field", "goal", "time")
"""Slots of free words, which end where a word of another clause stands."""
_REFUSED_AS = {"listing": "allergen", "called": "name"}
_NUMBER = re.compile(r"\d{1,4}")
_EDGE = " \t,.:;!~～、，。…-–—()（）😂😅🙈\ufffc"
_WORDS_MAX, _THING_WORDS_MAX = 6, 4
_NEAR = 60
"""Signs between a comma and the `and` of the same list."""


class Value(NamedTuple):
    """A value, and where its words stand in the sentence."""

    value: str
    start: int
    end: int


def key_part(table: Table, slot: str, text: str) -> str:
    """A slot as part of a key: in small letters, or the word it stands for."""
    text = text.strip(_EDGE)
    known = table.pairs.get(slot, {}).get(text.casefold())
    return "_".join((known or text).casefold().split())


def read_values(table: Table, slot: str, text: str, start: int, end: int) -> Iterator[Value]:
    """The values in a stretch of a sentence."""
    if slot == "day":
        day = _day(table, text[start:end])
        if day is not None:
            yield Value(day, start, end)
        return
    if slot in _LISTS:
        yield from _list(table, slot, text, start, end)
        return
    if slot in _FREE:
        end = _cut(table, text, start, end)
    value = _value(table, slot, text, start, end)
    if value is not None:
        yield value


def _value(table: Table, slot: str, text: str, start: int, end: int) -> Value | None:
    while start < end and text[start] in _EDGE:
        start += 1
    while end > start and text[end - 1] in _EDGE:
        end -= 1
    value = text[start:end]
    if not value or "\ufffc" in value:
        return None
    known = table.pairs.get(slot)
    if known is not None:
        return Value(known.get(value.casefold()) or value, start, end)
    if table.form("no first").match(value) or table.form(f"no {_REFUSED_AS.get(slot, slot)}").search(value):
        return None
    if table.is_inflected and len(value.split()) > (12 if slot in ("goal", "time") else _WORDS_MAX):
        return None
    return Value(value, start, end)


def _cut(table: Table, text: str, start: int, end: int) -> int:
    """Where words of another clause begin; the first word is never cut off."""
    for match in table.form("cut").finditer(text, start, end):
        if match.start() > start:
            return match.start()
    return end


def _list(table: Table, slot: str, text: str, start: int, end: int) -> Iterator[Value]:
    """The things of a list. What stands behind a comma is of it where an `and` follows, or where all is a list."""
    pieces = _pieces(table, slot, text, start, end)
    if len(pieces) > 1 and table.form("whole").search(text, *pieces[-1][:2]):
        return
    for number, (begin, stop, is_sure) in enumerate(pieces):
        cut = _cut(table, text, begin, stop)
        value = _value(table, slot, text, begin, cut)
        if value is None or (number and not is_sure) or (number and _is_other(table, value)):
            return
        yield value
        if cut < stop:
            return


def _pieces(table: Table, slot: str, text: str, start: int, end: int) -> list[tuple[int, int, bool]]:
    """Between commas and the like: where each begins and ends, and whether it belongs to the one before."""
    found: list[tuple[int, int, bool]] = []
    at, is_sure = start, True
    ands = [match.start() for match in table.form("ands").finditer(text, start, end)]
    for match in table.form("joins").finditer(text, start, end):
        if match.start() == start:
            continue
        found.append((at, match.start(), is_sure))
        at = match.end()
        is_and = match.start() in ands or slot == "listing"
        near = [place for place in ands if match.end() <= place <= match.end() + _NEAR]
        is_sure = is_and or (bool(near) and not table.form("begins").search(text[match.end() : near[0]]))
        if len(found) == THINGS_MAX:
            return found
    found.append((at, end, is_sure))
    return found


def _is_other(table: Table, value: Value) -> bool:
    """What stands behind an `and` may be another clause: it is long, or begins as clauses do."""
    return len(value.value.split()) > _THING_WORDS_MAX or table.form("begins").match(value.value) is not None


def _day(table: Table, text: str) -> str | None:
    months = table.pairs["months"]
    month = next((int(number) for word, number in months.items() if word in text.casefold()), None)
    numbers = [int(each) for each in _NUMBER.findall(text)]
    year = next((each for each in numbers if each > 31), None)
    small = [each for each in numbers if each <= 31]
    if month is None and len(small) >= 2 and not table.is_inflected:
        month, small = small[0], small[1:]
    return day_of_numbers(year, month, small[0]) if month is not None and small else None
