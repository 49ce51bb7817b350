"""Answers for people: a table of records, the fields of one record, and lines shared by several commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from muniment.surfaces.cli.terminal import Cell, labelled, one_line, parts_line, strong, table, when

if TYPE_CHECKING:
    from muniment.memory.search import Hit
    from muniment.store.ledger import LedgerEntry
    from muniment.surfaces.cli._command import Call

__all__ = ["COLOURS", "entry_line", "hit_lines", "show_plain", "source_line"]

COLOURS: Mapping[str, str] = {
    **dict.fromkeys(("active", "verified", "passed", "PASS", "APPLIED", "supported", "accepted", "better"), "green"),
    **dict.fromkeys(("candidate", "proposed", "temporary", "trial", "PARTIAL", "SKIPPED", "waiting"), "yellow"),
    **dict.fromkeys(("gated", "replayed", "undecided", "given_up", "suspended", "disputed"), "yellow"),
    **dict.fromkeys(("retired", "retracted", "failed", "FAIL", "FAILED", "rejected", "harmful", "revoked"), "red"),
    **dict.fromkeys(("drafted", "draft", "pruned", "deprecated", "superseded"), "bright_black"),
    **dict.fromkeys(("canary", "pinned"), "cyan"),
}
"""The colour of a status, of any kind of item."""
_COLUMNS_MAX = 7
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


def show_plain(found: Any, columns: str = "", noun: str = "") -> Iterator[str]:
    """Render plain data as lines: a list as a table, an object as its fields, anything else as text."""
    if isinstance(found, Sequence) and not isinstance(found, str):
        if not found:
            yield f"no {noun or 'entries'}"
        elif all(isinstance(each, Mapping) for each in found):
            yield from _show_table(found, columns.split() or _plain_columns(found))
        else:
            yield from map(_text, found)
    elif isinstance(found, Mapping):
        for name in columns.split() or found:
            text = _text(_value(found, name))
            if text:
                yield from labelled(_title(name), text)
    elif found is not None:
        yield _text(found)


def _show_table(found: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    """Render the non-empty columns; the longest text comes last, where it is cut to the line."""
    rows = [[_text(_value(each, name)) for name in columns] for each in found]
    kept = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    cells: list[list[Cell]] = [
        [(row[at], COLOURS[row[at]]) if row[at] in COLOURS else row[at] or "–" for at in kept] for row in rows
    ]
    yield from table([_title(columns[at]) for at in kept], cells)


def _plain_columns(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The fields of a record that fit into a cell, the longest one last."""
    names = dict.fromkeys(name for each in found for name, value in each.items() if not isinstance(value, Mapping))
    chosen = [name for name in names if name != "schema_version"][:_COLUMNS_MAX]
    longest = max(chosen, key=lambda name: max(len(_text(each.get(name))) for each in found), default="")
    return [*(name for name in chosen if name != longest), longest]


def _value(record: Mapping[str, Any], path: str) -> Any:
    value: Any = record
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _title(name: str) -> str:
    return name.rpartition(".")[2].replace("_", " ")


def _text(value: Any) -> str:
    """A value in a few words; empty for None."""
    if value is None or value == "" or value == [] or value == {}:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str):
        return when(value) if _TIME.match(value) else one_line(value, 400)
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {text}" for name, each in value.items() if (text := _text(each)))
    if isinstance(value, Iterable):
        return ", ".join(map(_text, value))
    return str(value)


# -- shared lines -------------------------------------------------------------------------------------


def entry_line(entry: LedgerEntry) -> str:
    """An event as one line."""
    content = "(forgotten)" if entry.is_forgotten else one_line(entry.content or entry.kind, 120)
    return f"{entry.id}  {when(entry.ts)}  {entry.scope.session_id}  {_speaker(entry)}: {content}"


def source_line(call: Call, event_id: str) -> str:
    """A source event as one line: its time, speaker and text."""
    entry = call.memory.ledger.get(event_id, tenant_id=call.tenant)
    return f"{event_id}  {when(entry.ts)}  {_speaker(entry)}: {one_line(entry.content or '', 100)}"


def _speaker(entry: LedgerEntry) -> str:
    from muniment.memory.tool_results import speaker_told

    return speaker_told({} if entry.body is None else entry.body.to_wire(), entry.role)


def hit_lines(number: int, hit: Hit) -> Iterator[str]:
    """A hit, and why it matched."""
    who = hit.speaker or hit.role or hit.kind
    yield f"{number:>2}  {hit.score:.3f}  {when(hit.ts)}  {strong(who)}: {one_line(hit.text, 240)}"
    rank = parts_line(hit.parts)
    where = f" in {hit.session_id}" if hit.session_id else ""
    yield f"           {'; '.join(hit.why) or 'matches'}{f' ({rank})' if rank else ''}{where} · {hit.id}"
    if hit.sources != (hit.id,):
        yield f"           rests on {', '.join(hit.sources)}"
