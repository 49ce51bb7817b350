"""What the editor does to a text. Pure: text in, text out; a refusal is `InvalidInput` in words an agent can act on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from muniment.core.text.sentences import lines_at
from muniment.errors import InvalidInput

__all__ = ["insert_text", "listing", "numbered", "parts_of", "replace_text"]

SNIPPET_LINES = 4
"""Lines shown before and after an edit."""


def parts_of(path: str, workdir: str) -> tuple[str, ...]:
    """The names that lead from the scratch folder to a path given absolute or relative to it.

    `..` is refused rather than resolved: with links about, text cannot say where it leads.
    """
    if "\0" in path:
        raise InvalidInput("a path cannot hold a zero byte", path="$.path")
    inner = path
    if path.startswith("/"):
        if path != workdir and not path.startswith(f"{workdir}/"):
            raise InvalidInput(f"{path} is outside of {workdir}", path="$.path", hint=f"files lie under {workdir}")
        inner = path[len(workdir) :]
    parts = tuple(part for part in inner.split("/") if part not in ("", "."))
    if ".." in parts:
        raise InvalidInput(f"{path} holds `..`", path="$.path", hint="give the path without it")
    return parts


def numbered(text: str, view_range: Sequence[int] | None = None) -> str:
    """Lines with their numbers from 1; `view_range` is first and last, last -1 means to the end."""
    lines = text.split("\n")
    first, last = 1, len(lines)
    if view_range is not None:
        if len(view_range) != 2:
            raise InvalidInput("view_range is two line numbers", path="$.view_range")
        first, last = view_range[0], len(lines) if view_range[1] == -1 else view_range[1]
        if not 1 <= first <= last <= len(lines):
            raise InvalidInput(
                f"view_range [{view_range[0]}, {view_range[1]}] does not fit a file of {len(lines)} lines",
                path="$.view_range",
            )
    return "\n".join(f"{number:6}\t{lines[number - 1]}" for number in range(first, last + 1))


def replace_text(text: str, old: str | None, new: str | None) -> tuple[str, str]:
    """The text with the one occurrence of `old` replaced, and the lines around it."""
    if not old:
        raise InvalidInput("old_str is the text to replace", path="$.old_str")
    count = text.count(old)
    if count != 1:
        at = lines_at(text, _places(text, old))
        where = f"occurs {count} times (lines {', '.join(map(str, at))})" if count else "does not occur"
        raise InvalidInput(f"old_str {where}; it has to occur exactly once", path="$.old_str")
    place = text.index(old)
    made = text[:place] + (new or "") + text[place + len(old) :]
    return made, _around(made, text.count("\n", 0, place), (new or "").count("\n"))


def _places(text: str, old: str) -> list[int]:
    places: list[int] = []
    place = text.find(old)
    while place >= 0 and len(places) < 10:
        places.append(place)
        place = text.find(old, place + 1)
    return places


def insert_text(text: str, after_line: int | None, new: str | None) -> tuple[str, str]:
    """The text with `new` as lines of their own after a line (0: at the start), and the lines around it."""
    if new is None:
        raise InvalidInput("new_str is the text to insert", path="$.new_str")
    lines = text.split("\n")
    if after_line is None or not 0 <= after_line <= len(lines):
        raise InvalidInput(f"insert_line is a number from 0 to {len(lines)}", path="$.insert_line")
    added = new.removesuffix("\n").split("\n")
    made = "\n".join([*lines[:after_line], *added, *lines[after_line:]])
    return made, _around(made, after_line, len(added) - 1)


def _around(text: str, line: int, further: int) -> str:
    last = text.count("\n") + 1
    return numbered(text, (max(1, line + 1 - SNIPPET_LINES), min(last, line + 1 + further + SNIPPET_LINES)))


def listing(paths: Sequence[str]) -> str:
    """What a folder shows: its files and folders two levels deep, hidden ones left out, from all paths below it."""
    visible = [path.split("/") for path in paths if not any(part.startswith(".") for part in path.split("/"))]
    shown = chain.from_iterable(
        ["/".join(parts[:depth]) + ("/" if len(parts) > depth else "") for depth in range(1, min(2, len(parts)) + 1)]
        for parts in visible
    )
    return "\n".join(sorted(set(shown)))
