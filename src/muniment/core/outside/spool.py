"""A spool: records on disk, read back grouped by owner and name, in insertion order within a group.

It is for more data than fits in memory, arriving in any order. Records are spread over files by their owner; a file too
large to be sorted in memory is spread once more, by owner and name. It holds at most one file's records in memory, and
does not know what a record means.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

__all__ = ["Spool", "Spooled", "spool"]

WAYS = 64
SORTED_BYTES_MAX = 8 << 20
"""Files up to this size are sorted in memory, where their records take some ten times as much."""


class Spooled(NamedTuple):
    owner: str
    name: str
    record: Any


class Spool:
    """Records in a folder of their own, added first, then read once."""

    def __init__(self, folder: Path, *, sorted_bytes_max: int = SORTED_BYTES_MAX) -> None:
        self._folder = folder
        self._sorted_bytes_max = sorted_bytes_max
        self._open = ExitStack()
        self._files: dict[int, BinaryIO] = {}
        self.count = 0
        """Number of records added."""
        self.label: object = None
        """A note for the reader about all records together."""

    def add(self, owner: str, name: str, record: Any) -> None:
        way = crc32(owner.encode()) % WAYS
        file = self._files.get(way)
        if file is None:
            file = self._files[way] = self._open.enter_context((self._folder / f"{way}").open("wb"))
        _write(file, (owner, name, record))
        self.count += 1

    def read(self) -> Iterator[Spooled]:
        """Read all records, grouped by owner and name; what was read is removed."""
        self._open.close()
        for way in sorted(self._files):
            yield from self._sorted(self._folder / f"{way}", is_split=False)

    def _sorted(self, path: Path, *, is_split: bool) -> Iterator[Spooled]:
        if path.stat().st_size <= self._sorted_bytes_max:
            yield from sorted(_records(path), key=itemgetter(0, 1))
        elif is_split:  # few names, or one: as they came
            yield from _records(path)
        else:
            for part in self._split(path):
                yield from self._sorted(part, is_split=True)
        path.unlink(missing_ok=True)

    def _split(self, path: Path) -> list[Path]:
        with ExitStack() as opened:
            files: dict[Path, BinaryIO] = {}
            for each in _records(path):
                part = path.with_name(f"{path.name}-{crc32(f'{each.name} {each.owner}'.encode()) % WAYS}")
                if part not in files:
                    files[part] = opened.enter_context(part.open("wb"))
                _write(files[part], tuple(each))
        path.unlink()
        return sorted(files)


_SIZE_BYTES = 4


def _write(file: BinaryIO, record: tuple[Any, ...]) -> None:
    """Write a record after its length: two reads are much faster than searching for its end."""
    data = pickle.dumps(record, pickle.HIGHEST_PROTOCOL)
    file.write(len(data).to_bytes(_SIZE_BYTES, "little"))
    file.write(data)


def _records(path: Path) -> Iterator[Spooled]:
    """Read records without checks: this process has just written them into a private folder."""
    with path.open("rb") as file:
        while size := file.read(_SIZE_BYTES):
            yield Spooled(*pickle.loads(file.read(int.from_bytes(size, "little"))))


@contextmanager
def spool() -> Iterator[Spool]:
    """Make a spool in a new folder that only its owner can read, and that is removed with it."""
    with tempfile.TemporaryDirectory(prefix="muniment-") as folder:
        held = Spool(Path(folder))
        try:
            yield held
        finally:
            held._open.close()
