"""The files an import is given: plain ones, folders and archives, each as a stream with a name and a time.

Nothing is unpacked: the members of an archive are read where they lie, and one that is a bomb, or is locked, is
refused.
"""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

from muniment.core.instants import format_instant
from muniment.errors import InvalidInput, TooLarge, UnsafeFile

__all__ = ["Part", "list_parts", "open_part", "read_lines"]

MEMBERS_MAX = 100_000
MEMBER_BYTES_MAX = 4 * 1024**3
RATIO_MAX = 200
"""An archive's member that is so many times larger than its packed bytes is a bomb; chats pack to a twentieth."""
RATIO_FREE_BYTES = 16 * 1024 * 1024
"""What stays below this may be packed as tightly as it likes."""
FOLDER_DEPTH_MAX = 6


class Part(NamedTuple):
    """One file to read: where it lies, within which archive, what it is called, and of when it is."""

    path: Path
    member: str | None
    name: str
    """As errors and reports show it."""
    as_of: str


def list_parts(given: str) -> list[Part]:
    """The files of a path: itself, or those in a folder or an archive, by name."""
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
    """A part as a stream of bytes."""
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
    """A member that gives no more bytes than one may have, whatever its header says."""

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
    """The lines of a part, each up to a size."""
    with open_part(part) as stream:
        while line := stream.readline(line_bytes_max + 1):
            yield line
