"""Tables on a terminal: columns as wide as they need to be, colours where they say something; bars for rates."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import click

from muniment.surfaces.cli.asking import one_line

__all__ = ["Cell", "bar", "show_table", "spanned", "sparkline"]

_WIDTH_ELSEWHERE = 140
"""Columns where nobody's terminal says how many there are."""
_TITLE_CELLS_MIN = 24
_INDENT = "    "
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_STEPS = "▁▂▃▄▅▆▇█"

Cell = str | tuple[str, str]
"""A text, or a text and its colour."""


def show_table(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Columns as wide as they need to be; the last one gets what is left of the line, or a line of its own."""
    from rich.cells import cell_len, set_cell_size

    texts = [[one_line(each if isinstance(each, str) else each[0], 200) for each in row] for row in (heads, *rows)]
    widths = [max(map(cell_len, column)) for column in list(zip(*texts, strict=True))[:-1]]
    before = sum(widths) + 2 * len(widths)
    columns = shutil.get_terminal_size((_WIDTH_ELSEWHERE, 1)).columns
    is_beside = columns - before >= _TITLE_CELLS_MIN
    left = columns - (before if is_beside else len(_INDENT))
    for at, (*cells, last) in enumerate(texts):
        line = "  ".join(
            click.style(text, fg="bright_black" if at == 0 else _colour(rows[at - 1][place]))
            + " " * (width - cell_len(text))
            for place, (text, width) in enumerate(zip(cells, widths, strict=True))
        )
        title = last if cell_len(last) <= left else set_cell_size(last, left - 1).rstrip() + "…"
        if is_beside:
            click.echo(f"{line}  {title}".rstrip())
        else:
            click.echo(line.rstrip())
            if at > 0:
                click.echo(f"{_INDENT}{title}")


def _colour(cell: Cell) -> str | None:
    return None if isinstance(cell, str) else cell[1]


# -- rates for the eye --------------------------------------------------------------------------------


def bar(share: float, width: int = 10) -> str:
    """A share, as so much of a bar."""
    full, rest = divmod(round(_within(share) * width * 8), 8)
    return f"{'█' * full}{_EIGHTHS[rest]}".ljust(width)


def spanned(lower: float, at: float, upper: float, width: int = 20) -> str:
    """Where a figure lies between nought and one, and between which bounds: `·····├──●─┤····`."""
    first, place, last = (round(_within(each) * (width - 1)) for each in (lower, at, upper))
    cells = ["·"] * first + ["─"] * (last - first + 1) + ["·"] * (width - 1 - last)
    cells[first], cells[last], cells[place] = "├", "┤", "●"
    return "".join(cells)


def sparkline(shares: Sequence[float | None]) -> str:
    """Shares one after the other, each as a step; a gap where nothing is known."""
    return "".join(" " if each is None else _STEPS[min(7, int(_within(each) * 8))] for each in shares)


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))
