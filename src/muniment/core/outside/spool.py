"""A spool: records on disk, given back so that those of one owner and name stand together, each in the order it came.

It is for what is too much for memory and comes in any order. Records are spread over files by their owner; a file that
is too large to be sorted in memory is spread once more, by owner and name. It never holds more than a file's records,
and never knows what a record means.
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
"""A file of so many bytes is sorted in memory, where its records take some ten times as many."""


class Spooled(NamedTuple):
    owner: str
    name: str
    record: Any


class Spool:
    """Records in a folder of their own. They are added first, then read once."""

    def __init__(self, folder: Path, *, sorted_bytes_max: int = SORTED_BYTES_MAX) -> None:
        self._folder = folder
        self._sorted_bytes_max = sorted_bytes_max
        self._open = ExitStack()
        self._files: dict[int, BinaryIO] = {}
        self.count = 0
        """Of the records that were added."""
        self.label: object = None
        """What whoever fills it wants to tell whoever reads it of all records together."""

    def add(self, owner: str, name: str, record: Any) -> None:
        way = crc32(owner.encode()) % WAYS
        file = self._files.get(way)
        if file is None:
            file = self._files[way] = self._open.enter_context((self._folder / f"{way}").open("wb"))
        _write(file, (owner, name, record))
        self.count += 1

    def read(self) -> Iterator[Spooled]:
        """All records, those of one owner and name together; what was read is removed."""
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
    """A record behind its length: it is read in two goes, which is a fraction of what a reader takes that looks for its
    end."""
    data = pickle.dumps(record, pickle.HIGHEST_PROTOCOL)
    file.write(len(data).to_bytes(_SIZE_BYTES, "little"))
    file.write(data)


def _records(path: Path) -> Iterator[Spooled]:
    """What this process wrote into a folder of its own a moment ago, and nobody else."""
    with path.open("rb") as file:
        while size := file.read(_SIZE_BYTES):
            yield Spooled(*pickle.loads(file.read(int.from_bytes(size, "little"))))


@contextmanager
def spool() -> Iterator[Spool]:
    """A spool in a new folder that its owner alone can read, and that goes with it."""
    with tempfile.TemporaryDirectory(prefix="muniment-") as folder:
        held = Spool(Path(folder))
        try:
            yield held
        finally:
            held._open.close()
