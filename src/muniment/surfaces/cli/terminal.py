"""Text for a terminal: lines, styles, counts, times, tables, bars and progress.

Only `echo` and the progress bar write. A line may contain any stored text, so on a terminal control characters are
shown as signs; only the sequences made by `style` are sent unchanged. Elsewhere a line is written unchanged.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import click

__all__ = [
    "Advance",
    "Cell",
    "as_is",
    "bar",
    "block_bar",
    "coloured",
    "counted",
    "echo",
    "labelled",
    "one_line",
    "parts_line",
    "progress_bar",
    "strong",
    "style",
    "table",
    "visible",
    "when",
    "wrapped",
]

Cell = str | tuple[str, str]
"""A text, or a text and its colour."""
Advance = Callable[..., None]

_WIDTH_ELSEWHERE = 140
"""The width in columns without a terminal."""
_LINE_S = 10.0
_TITLE_CELLS_MIN = 24
_LABEL_CELLS = 13
_INDENT = "    "
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_SIGNS = {
    **{code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"},
    127: "␡",
    **{
        code: f"<U+{code:04X}>"
        for code in (*range(0x80, 0xA0), 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
    },
    **{code: f"<U+{code:04X}>" for code in range(0xE0000, 0xE0080)},
}
"""Signs for characters that move the cursor, change colours, change text direction or are invisible."""


# -- words --------------------------------------------------------------------------------------------


def one_line(text: str, limit: int = 160) -> str:
    """Format the text on one line, without control characters, shortened if long."""
    shown = "".join(char if char.isprintable() else " " for char in text[: 4 * limit])
    shown = " ".join(shown.split())
    return shown if len(shown) <= limit and len(text) <= 4 * limit else shown[: limit - 1].rstrip() + "…"


def visible(text: str) -> str:
    """Replace characters that could move the cursor, change colours or hide text; lines and tabs stay."""
    return text.translate(_SIGNS)


@cache
def _own() -> str:
    """A secret mark for the sequences made by `style`, which no stored text can contain."""
    return f"\x1b{os.urandom(8).hex()}"


def style(text: str, *, fg: str | None = None, bold: bool = False) -> str:
    """Format the text in a colour, or bold, if `echo` writes to a terminal."""
    opening, closing = click.style("\0", fg=fg, bold=bold or None).split("\0")
    return f"{opening}\0{closing}".replace("\x1b", _own()).replace("\0", text)


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Write to stdout, or stderr."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        shown = "\x1b".join(map(visible, text.split(_own())))
    else:
        shown = re.sub(rf"{_own()}\[[\d;]*m", "", text)
    click.echo(shown, file=stream, nl=nl, color=True)


def counted(count: int, noun: str) -> str:
    """A count and its noun: `1 event`, `2 events`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def when(ts: str | None) -> str:
    """The minute of a time stamp; only the day of one without a time."""
    if not ts:
        return "undated"
    day, minute = ts[:10], ts[11:16]
    return day if minute in ("", "00:00") else f"{day} {minute}"


def strong(text: str) -> str:
    return style(text, bold=True)


def coloured(text: str, colours: dict[str, str]) -> str:
    """A word in its assigned colour."""
    return style(text, fg=colours.get(text))


# -- lines --------------------------------------------------------------------------------------------


def labelled(label: str, text: str) -> Iterator[str]:
    """A label and its text, over as many lines as needed; without a label, a continuation of the one before."""
    head = f"{label + ':' if label else '':<{_LABEL_CELLS}} "
    return wrapped(text, first=head, rest=" " * len(head))


def as_is(label: str, text: str) -> str:
    """A label and a picture or a command, on one line however long."""
    return f"{label + ':':<{_LABEL_CELLS}} {text}"


def wrapped(text: str, *, first: str = "", rest: str = "", most: int = 1_000) -> Iterator[str]:
    """Wrap a text to the terminal's width."""
    from rich.console import Console
    from rich.text import Text

    columns = max(40, shutil.get_terminal_size((_WIDTH_ELSEWHERE, 1)).columns)
    lines = Text(one_line(text, most)).wrap(Console(), columns - max(len(first), len(rest)))
    for number, line in enumerate(lines):
        yield f"{rest if number else first}{line.plain}".rstrip()


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """Format columns at their natural widths; the last one gets the rest of the line, or a line of its own."""
    from rich.cells import cell_len, set_cell_size

    texts = [[one_line(each if isinstance(each, str) else each[0], 200) for each in row] for row in (heads, *rows)]
    widths = [max(map(cell_len, column)) for column in list(zip(*texts, strict=True))[:-1]]
    before = sum(widths) + 2 * len(widths)
    columns = shutil.get_terminal_size((_WIDTH_ELSEWHERE, 1)).columns
    is_beside = columns - before >= _TITLE_CELLS_MIN
    left = columns - (before if is_beside else len(_INDENT))
    for at, (*cells, last) in enumerate(texts):
        line = "  ".join(
            style(text, fg="bright_black" if at == 0 else _colour(rows[at - 1][place])) + " " * (width - cell_len(text))
            for place, (text, width) in enumerate(zip(cells, widths, strict=True))
        )
        title = last if cell_len(last) <= left else set_cell_size(last, left - 1).rstrip() + "…"
        if is_beside:
            yield f"{line}  {title}".rstrip()
        else:
            yield line.rstrip()
            if at > 0:
                yield f"{_INDENT}{title}"


def _colour(cell: Cell) -> str | None:
    return None if isinstance(cell, str) else cell[1]


# -- rates --------------------------------------------------------------------------------------------


def bar(share: float, width: int = 10) -> str:
    """Draw a share as a partly filled bar, to an eighth of a cell."""
    full, rest = divmod(round(_within(share) * width * 8), 8)
    return f"{'█' * full}{_EIGHTHS[rest]}".ljust(width)


def block_bar(part: float, whole: float, width: int = 10) -> str:
    """Draw a part of a whole in whole cells; full only if all of it is there."""
    full = int(_within(part / whole) * width) if whole else 0
    return "█" * full + "░" * (width - full)


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))


# -- progress -----------------------------------------------------------------------------------------


@contextmanager
def progress_bar(label: str, total: int | None, *, quiet: bool = False) -> Iterator[Advance]:
    """Show the progress of long work on stderr; yields `advance(count)`, which also takes the name of a new stage.

    A terminal shows a bar. Elsewhere there is a line every ten seconds and one for each stage. With --json, nothing.
    """
    if quiet:
        yield _advance_nothing
    elif sys.stderr.isatty():
        with _drawn_bar(label, total) as advance:
            yield advance
    else:
        meter = _LineMeter(label)
        try:
            yield meter.advance
        finally:
            meter.end_stage()


@contextmanager
def _drawn_bar(label: str, total: int | None) -> Iterator[Advance]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns: tuple[Any, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks = {label: progress.add_task(escape(visible(label)), total=total)}

        def advance(count: int, stage: str = label) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(escape(visible(stage)), total=None)
            progress.advance(tasks[stage], count)

        yield advance


class _LineMeter:
    """Writes the progress every ten seconds, and the count of each named stage when it ends."""

    def __init__(self, label: str) -> None:
        self._label, self._count, self._is_stage = label, 0, False
        self._begun = self._shown = time.monotonic()

    def advance(self, count: int, stage: str = "") -> None:
        now = time.monotonic()
        if stage and stage != self._label:
            self.end_stage()
            self._label, self._count, self._is_stage, self._begun, self._shown = stage, 0, True, now, now
        self._count += count
        if now - self._shown >= _LINE_S:
            self._shown = now
            self._write(now)

    def end_stage(self) -> None:
        if self._is_stage:
            self._write(time.monotonic())

    def _write(self, now: float) -> None:
        echo(f"{self._label}: {self._count:,} ({self._count / max(now - self._begun, 1e-3):,.0f}/s)", err=True)


def _advance_nothing(_count: int, _stage: str = "") -> None:
    """Report nothing."""


def parts_line(parts: Mapping[str, float]) -> str:
    """Format `rank 1.57 = words 1.00 + learnt 0.57`, with parts that add up to the rank as printed; empty for none.

    The rank orders the hits of one search. Their score is a probability, comparable between searches.
    """
    hundredths = sorted(((name, round(100 * value)) for name, value in parts.items()), key=lambda part: -part[1])
    if not hundredths:
        return ""
    total = sum(value for _, value in hundredths)
    return f"rank {total / 100:.2f} = " + " + ".join(f"{name} {value / 100:.2f}" for name, value in hundredths)
