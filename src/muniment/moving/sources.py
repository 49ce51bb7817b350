"""Open the files given to an import and read them as items of the neutral file, trusting none of them.

The system is given by name, never guessed. Plain files, folders and archives are streamed: nothing is run or unpacked
to disk, every size is bounded, and encrypted archive members and zip bombs are refused. Large JSON is read element by
element. A source can be reread any number of times and holds nothing in memory.
"""

from __future__ import annotations

import codecs
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader, RawIOBase
from itertools import groupby
from os import PathLike, fspath
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, NamedTuple, cast

from muniment.core.instants import format_instant
from muniment.errors import InvalidInput, InvalidJson, TooLarge, UnsafeFile
from muniment.moving import portable
from muniment.moving.formats import chatgpt, claude, letta, mem0, zep
from muniment.moving.formats.values import Placed, listed_memories
from muniment.moving.portable import ONE_USER, SYSTEMS, Found, LeftOut, Read, System

# -- sources --------------------------------------------------------------------------------------------


_TEXT_BYTES_MAX = 16 * 1024 * 1024
_JSON = (".json", ".jsonl", ".ndjson", ".af")
_TEXTS = (".txt", ".md")
_SETTINGS = ("meta.json", "config.json")
"""Configuration files, which hold no memories."""
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
"""Name prefixes of the files or folders to read in exports that hold much else."""


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one system, which can be read repeatedly."""

    system: System
    files: tuple[str, ...]
    source_user: str | None = None
    lines: Callable[[], Iterable[bytes]] | None = None
    """Opens the lines of a portable file that is not on disk."""

    @property
    def needs_user(self) -> bool:
        return self.system in ONE_USER

    def read(self) -> Iterator[Found | LeftOut]:
        """Yield the items of the files, in order."""
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
        """Read mem0's parts together, its history first, and everything else file by file."""
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
    """A portable source from a path, its lines, or a function that opens them."""
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
    """Read a portable file to its end and return its user and a function that opens its lines."""
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
    """Open a source by the name of its system; raise for an unknown one before anything is read."""
    named = (files,) if isinstance(files, str | PathLike) else tuple(files) if isinstance(files, Iterable) else (None,)
    if not all(isinstance(each, str | PathLike) for each in named):
        raise InvalidInput("files should be a list of paths", path="$.files")
    known = next((each for each in SYSTEMS if each == system), None)
    if known is None:
        raise InvalidInput(f"{system!r:.40} is not a system that can be read", path="$.from", hint=", ".join(SYSTEMS))
    if not named:
        raise InvalidInput("no file was given", path="$.files")
    return Source(known, tuple(map(fspath, named)), source_user)


# -- files and archives ---------------------------------------------------------------------------------


MEMBERS_MAX = 100_000
MEMBER_BYTES_MAX = 4 * 1024**3
RATIO_MAX = 200
"""Compression ratio above which an archive member is refused as a bomb; chats reach about 20."""
RATIO_FREE_BYTES = 16 * 1024 * 1024
"""Size below which any compression ratio is accepted."""
FOLDER_DEPTH_MAX = 6


class Part(NamedTuple):
    """A file to read: its path, its archive if any, its name and date."""

    path: Path
    member: str | None
    name: str
    """Name shown in errors and reports."""
    as_of: str


def list_parts(given: str) -> list[Part]:
    """List the files of a path: the file itself, or the members of a folder or archive, by name."""
    path = Path(given)
    try:
        if path.is_dir():
            found = [each for each in sorted(path.rglob("*")) if each.is_file() and not each.is_symlink()]
            near = [each for each in found if len(each.relative_to(path).parts) <= FOLDER_DEPTH_MAX]
            return [Part(each, None, str(each.relative_to(path)), _time(each.stat().st_mtime)) for each in near]
        as_of = _time(path.stat().st_mtime)
        if zipfile.is_zipfile(path):
            return _members(path)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot read {given!r:.200}: {said}", path="$", hint="check the path") from None
    return [Part(path, None, path.name, as_of)]


def _members(path: Path) -> list[Part]:
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
    except (zipfile.BadZipFile, RuntimeError, UnicodeDecodeError) as error:
        raise UnsafeFile(f"{path.name}: not an archive that can be read: {error}", path="$") from None
    if len(infos) > MEMBERS_MAX:
        raise UnsafeFile(f"{path.name}: {len(infos)} files are over the limit of {MEMBERS_MAX}", path="$")
    parts = []
    for info in infos:
        if info.flag_bits & 0x1:
            raise UnsafeFile(f"{path.name}: {info.filename!r:.80} is locked with a password", path="$")
        is_bomb = info.file_size > RATIO_FREE_BYTES and info.file_size > RATIO_MAX * max(info.compress_size, 1)
        if is_bomb or info.file_size > MEMBER_BYTES_MAX:
            raise UnsafeFile(
                f"{path.name}: {info.filename!r:.80} would unpack to {info.file_size} bytes",
                path="$",
                hint="unpack it yourself, if you know what it is, and give the file",
            )
        parts.append(Part(path, info.filename, f"{path.name}/{info.filename}", _member_time(info)))
    return parts


def _member_time(info: zipfile.ZipInfo) -> str:
    try:
        return format_instant(datetime(*info.date_time, tzinfo=UTC))
    except ValueError:
        return format_instant(datetime(1980, 1, 1, tzinfo=UTC))


def _time(seconds: float) -> str:
    return format_instant(datetime.fromtimestamp(int(seconds), UTC))


@contextmanager
def open_part(part: Part) -> Iterator[BinaryIO]:
    """Open a part as a stream of bytes."""
    try:
        if part.member is None:
            with part.path.open("rb") as file:
                yield file
            return
        with zipfile.ZipFile(part.path) as archive, archive.open(part.member) as member:
            yield cast("BinaryIO", BufferedReader(_Bounded(member, part.name)))
    except (zipfile.BadZipFile, EOFError, RuntimeError, zlib.error, lzma.LZMAError) as error:
        raise UnsafeFile(f"{part.name}: not what the archive says: {error}", path="$") from None
    except OSError as error:
        raise InvalidInput(f"cannot read {part.name!r:.200}: {error.strerror or error}", path="$") from None


class _Bounded(RawIOBase):
    """A stream limited in size, whatever the archive's header claims."""

    def __init__(self, member: IO[bytes], name: str) -> None:
        super().__init__()
        self._member = member
        self._name = name
        self._left = MEMBER_BYTES_MAX

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._member.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise TooLarge(f"{self._name}: over {MEMBER_BYTES_MAX} bytes", path="$")
        buffer[: len(data)] = data
        return len(data)


def read_lines(part: Part, line_bytes_max: int) -> Iterator[bytes]:
    """Yield the lines of a part, each limited in size."""
    with open_part(part) as stream:
        while line := stream.readline(line_bytes_max + 1):
            yield line


# -- large JSON -----------------------------------------------------------------------------------------


ELEMENT_CHARS_MAX = 64 * 1024 * 1024
"""Maximum size of one element, such as a single conversation."""
_CHUNK = 1 << 16
_BLANK = re.compile(r"[ \t\n\r]*")
_NEAR_END = 32
"""Distance from the end of the buffer within which a parse error may only mean missing input."""


class _Bad(ValueError):
    """Non-standard JSON values: NaN, Infinity."""


def _refuse(name: str) -> Any:
    raise _Bad(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def read_values(stream: BinaryIO, *, element_chars_max: int = ELEMENT_CHARS_MAX) -> Iterator[Placed]:
    """Yield the elements of a document with their places; raise `InvalidJson` or `TooLarge` for unreadable ones."""
    text = _Text(stream, element_chars_max)
    opening = text.peek()
    if opening == "":
        return
    if opening == "[":
        text.skip(1)
        yield from _elements(text, "$", None)
    elif opening == "{" and not text.is_lines():
        text.skip(1)
        yield from _object_members(text)
    else:
        yield from _json_lines(text)
        return
    if text.peek():
        raise InvalidJson("more after the end of the document", path="$")


def _json_lines(text: _Text) -> Iterator[Placed]:
    number = 0
    while text.peek():
        number += 1
        yield Placed(f"line {number}", None, text.value(f"line {number}"))


def _elements(text: _Text, path: str, key: str | None) -> Iterator[Placed]:
    """Yield the elements of a list after its opening bracket."""
    index = 0
    if text.peek() == "]":
        text.skip(1)
        return
    while True:
        here = f"{path}[{index}]"
        yield Placed(here, key, text.value(here))
        index += 1
        if text.expect(",]", here) == "]":
            return


def _object_members(text: _Text) -> Iterator[Placed]:
    """Yield the members of an object after its opening brace, and lists in it element by element."""
    if text.peek() == "}":
        text.skip(1)
        return
    while True:
        key = text.value("$")
        if not isinstance(key, str):
            raise InvalidJson("an object's key is a string", path="$")
        path = f"$.{key}"
        text.expect(":", path)
        if text.peek() == "[":
            text.skip(1)
            yield from _elements(text, path, key)
        else:
            yield Placed(path, key, text.value(path))
        if text.expect(",}", path) == "}":
            return


class _Text:
    """Buffered text of a stream; more is read when a value is incomplete."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._limit = limit
        self._held = ""
        self._at = 0
        self._is_ended = False

    def peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            found = _BLANK.match(self._held, self._at)
            assert found is not None
            self._at = found.end()
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._more(_CHUNK):
                return ""

    def skip(self, count: int) -> None:
        self._at += count

    def expect(self, signs: str, path: str) -> str:
        sign = self.peek()
        if not sign or sign not in signs:
            shown = repr(sign) if sign else "the end"
            raise InvalidJson(
                f"wanted {' or '.join(signs)}, found {shown}", path=path, hint="the file is cut or broken"
            )
        self.skip(1)
        return sign

    def is_lines(self) -> bool:
        """True if the object that begins here ends on its line and another one follows."""
        start = self._at
        while (end := self._held.find("\n", start)) < 0 and len(self._held) - start < (1 << 20) and self._more(_CHUNK):
            pass
        if end < 0:
            return False
        try:
            _DECODER.raw_decode(self._held[start:end].rstrip())
        except (ValueError, RecursionError):
            return False
        while not (rest := self._held[end:].lstrip()) and self._more(_CHUNK):
            pass
        return rest.startswith("{")

    def value(self, path: str) -> Any:
        """The value that begins here."""
        self.peek()
        size = _CHUNK
        while True:
            try:
                found, end = _DECODER.raw_decode(self._held, self._at)
            except json.JSONDecodeError as error:
                is_broken = self._is_ended or (
                    error.pos < len(self._held) - _NEAR_END and not error.msg.startswith("Unterminated")
                )
                if is_broken:
                    raise InvalidJson(f"not JSON: {error.msg}", path=path, hint="the file is cut or broken") from None
            except (ValueError, RecursionError) as error:
                said = "nested too deep" if isinstance(error, RecursionError) else str(error)
                raise InvalidJson(f"not JSON that we read: {said[:200]}", path=path) from None
            else:
                if end < len(self._held) or self._is_ended:  # a number may continue beyond the buffer
                    self._at = end
                    return found
            if len(self._held) - self._at > self._limit:
                raise TooLarge(
                    f"a single element of over {self._limit} characters",
                    path=path,
                    hint="a file of conversations is a list of them; split it",
                )
            self._more(size)
            size *= 2

    def _more(self, size: int) -> bool:
        """Read on; return whether there was more."""
        if self._is_ended:
            return False
        data = self._stream.read(size)
        try:
            read = self._decode(data, not data)
        except UnicodeDecodeError:
            raise InvalidJson("the file is not UTF-8", path="$", hint="save it as plain UTF-8") from None
        if not data:
            self._is_ended = True
        self._held = self._held[self._at :] + read
        self._at = 0
        return bool(data)
