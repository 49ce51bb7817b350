"""Which reader reads which file: the parts of what was given, in order, as items of the neutral file.

A source can be read again and again; nothing of it is held. It is read by name, never by what a file claims to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from os import PathLike, fspath
from pathlib import PurePosixPath
from typing import Any

from muniment.errors import InvalidInput
from muniment.moving.formats import chatgpt, claude, letta, mem0, portable, zep
from muniment.moving.formats.memory_lists import listed_memories
from muniment.moving.formats.values import Placed
from muniment.moving.outside.files import Part, list_parts, open_part, read_lines
from muniment.moving.outside.json_stream import read_values
from muniment.moving.records import ONE_USER, SYSTEMS, Found, LeftOut, Read, System

__all__ = ["Source", "open_source", "portable_lines", "portable_source"]

_TEXT_BYTES_MAX = 16 * 1024 * 1024
_JSON = (".json", ".jsonl", ".ndjson", ".af")
_TEXTS = (".txt", ".md")
_SETTINGS = ("meta.json", "config.json")
"""Files that say how a system is set up."""
_Reader = Callable[[Iterable[Placed], str, str | None], Read]
_READERS: dict[System, _Reader] = {
    "mem0": mem0.read,
    "zep": zep.read,
    "letta": lambda values, as_of, _: letta.read(values, as_of),
    "chatgpt": lambda values, as_of, _: chatgpt.read(values, as_of),
    "claude": lambda values, as_of, _: claude.read(values, as_of),
}
_MEMBERS: dict[System, tuple[str, ...]] = {
    "chatgpt": ("conversations", "memories", "memory"),
    "claude": ("conversations", "projects", "memories", "users"),
}
"""Of an export that holds much else: how the names of the files or folders begin that are read."""


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one system, to be read as often as one likes."""

    system: System
    files: tuple[str, ...]
    source_user: str | None = None
    lines: Callable[[], Iterable[bytes]] | None = None
    """The lines of a portable file that is no file here."""

    @property
    def needs_user(self) -> bool:
        return self.system in ONE_USER

    def read(self) -> Iterator[Found | LeftOut]:
        """What the files hold, in order."""
        if self.lines is not None:
            yield from portable.read_lines(self.lines())
            return
        parts = [part for given in self.files for part in list_parts(given)]
        if self.system == "portable":
            yield from self._portable(parts)
            return
        kept = [part for part in parts if self._is_read(part)]
        if not kept:
            raise InvalidInput(
                f"no file of {self.system} among {len(parts)} given",
                path="$.files",
                hint="docs/guides/moving.md says which files each system has",
            )
        for part in parts:
            if part not in kept:
                yield LeftOut(part.name, "file", "not a file that holds memory", is_loss=False)
        yield from self._items(kept)

    def _portable(self, parts: Sequence[Part]) -> Iterator[Found]:
        if len(parts) != 1:
            raise InvalidInput(f"one portable file is read at a time, not {len(parts)}", path="$.files")
        yield from portable.read_lines(read_lines(parts[0], portable.LINE_BYTES_MAX))

    def _is_read(self, part: Part) -> bool:
        suffix = PurePosixPath(part.name).suffix.lower()
        if suffix in _TEXTS and self.system in ("chatgpt", "claude"):
            return part.member is None
        if suffix not in _JSON or PurePosixPath(part.name).name in _SETTINGS:
            return False
        wanted = _MEMBERS.get(self.system)
        inner = PurePosixPath(part.member) if part.member is not None else None
        if wanted is None or inner is None:
            return True
        return any(piece.startswith(wanted) for piece in inner.parts[-2:])

    def _items(self, parts: Sequence[Part]) -> Iterator[Found | LeftOut]:
        """mem0's parts belong together, its history first; everything else is read file by file."""
        if self.system == "mem0":
            ordered = sorted(parts, key=lambda part: "history" not in part.path.name)
            as_of = max(part.as_of for part in parts)
            yield from _READERS["mem0"](self._all_values(ordered), as_of, self.source_user)
            return
        for as_of, together in groupby(parts, key=lambda part: part.as_of):
            for part in together:
                if PurePosixPath(part.name).suffix.lower() in _TEXTS:
                    yield from listed_memories(_text_of(part), self.system, as_of, part.name)
                else:
                    yield from _READERS[self.system](self._values(part), as_of, self.source_user)

    def _all_values(self, parts: Sequence[Part]) -> Iterator[Placed]:
        for part in parts:
            yield from self._values(part)

    def _values(self, part: Part) -> Iterator[Placed]:
        with open_part(part) as stream:
            for path, key, value in read_values(stream):
                yield Placed(f"{part.name}: {path}", key, value)


def _text_of(part: Part) -> str:
    with open_part(part) as stream:
        data = stream.read(_TEXT_BYTES_MAX + 1)
    if len(data) > _TEXT_BYTES_MAX:
        raise InvalidInput(f"{part.name}: no list of memories is larger than {_TEXT_BYTES_MAX} bytes", path="$")
    return data.decode("utf-8-sig", "replace")


def portable_source(source: Any) -> Source:
    """A portable file that is a path, its lines, or a function that opens them."""
    if callable(source):
        return Source("portable", (), lines=source)
    if isinstance(source, list | tuple):
        return Source("portable", (), lines=lambda: source)
    if isinstance(source, str | PathLike):
        return Source("portable", (fspath(source),))
    raise InvalidInput(
        f"a portable file is a path, its lines or a function that opens them, not {type(source).__name__}", path="$"
    )


def portable_lines(source: Any) -> tuple[str | None, Callable[[], Iterable[bytes]]]:
    """Whose a portable file is, and a function that opens its lines; it was read to its end, and holds."""
    held = portable_source(source)
    opened = held.lines
    if opened is None:
        (part,) = list_parts(held.files[0])[:1]
        opened = lambda: read_lines(part, portable.LINE_BYTES_MAX)  # noqa: E731
    user = None
    for found in portable.read_lines(opened()):
        user = found.user
    return user, opened


def open_source(system: str, files: Any, source_user: str | None = None) -> Source:
    """A source by the name of its system; what is none says so before anything is read."""
    named = (files,) if isinstance(files, str | PathLike) else tuple(files) if isinstance(files, Iterable) else (None,)
    if not all(isinstance(each, str | PathLike) for each in named):
        raise InvalidInput("files should be a list of paths", path="$.files")
    known = next((each for each in SYSTEMS if each == system), None)
    if known is None:
        raise InvalidInput(f"{system!r:.40} is not a system that can be read", path="$.from", hint=", ".join(SYSTEMS))
    if not named:
        raise InvalidInput("no file was given", path="$.files")
    return Source(known, tuple(map(fspath, named)), source_user)
