"""A progress bar on stderr, where somebody is looking; silence elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Advance", "progress_bar"]

Advance = Callable[[int], None]


@contextmanager
def progress_bar(label: str, total: int | None, *, quiet: bool = False) -> Iterator[Advance]:
    """Yields `advance(n)`. Shown only on a terminal and not with --json."""
    if quiet or not sys.stderr.isatty():
        yield _say_nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total)

        def advance(count: int) -> None:
            progress.advance(task, count)

        yield advance


def _say_nothing(_count: int) -> None:
    """Nobody is looking."""
