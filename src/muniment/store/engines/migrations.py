"""Numbered, hash-checked migrations: which there are, which a store has, which are to be applied.

A migration is a file `NNNN_name.sql` beside its engine, applied once and never edited again: the store keeps
its sha256, and a store that was written with another text, or by a newer muniment, is refused rather than
guessed at. Reads files of the package; never touches a store.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from muniment.errors import SchemaMismatch, StorageFailure

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["Applied", "Migration", "load", "pending"]

_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")

Applied = tuple[int, str, str]
"""(number, name, sha256) as a store remembers it."""


class Migration(NamedTuple):
    number: int
    name: str
    sha256: str
    sql: str


def load(package: str) -> tuple[Migration, ...]:
    """The migrations of `package`, in order, without gaps."""
    found: list[Migration] = []
    for entry in _folder(package).iterdir():
        match = _NAME.fullmatch(entry.name)
        if match is None:
            continue
        text = entry.read_bytes().decode().replace("\r\n", "\n")
        found.append(Migration(int(match[1]), match[2], hashlib.sha256(text.encode()).hexdigest(), text))
    found.sort(key=lambda migration: migration.number)
    if [migration.number for migration in found] != list(range(1, len(found) + 1)) or not found:
        raise StorageFailure(f"the migrations of {package} are not numbered 1, 2, 3, …", hint="reinstall muniment")
    return tuple(found)


def _folder(package: str) -> Traversable:
    """Beside the engine; only where that is no folder of plain files, by way of `importlib.resources`."""
    folder = Path(import_module(package).__path__[0], "migrations")
    if folder.is_dir():
        return folder
    from importlib.resources import files

    return files(package) / "migrations"


def pending(known: Sequence[Migration], applied: Sequence[Applied]) -> tuple[Migration, ...]:
    """What is left to apply; refuses a store this muniment does not know to the letter."""
    if not all(type(number) is int and type(name) is type(sha256) is str for number, name, sha256 in applied):
        raise SchemaMismatch(
            "the list of migrations in the store is damaged", hint="restore the store from a backup or a dump"
        )
    for index, (number, name, sha256) in enumerate(sorted(applied), start=1):
        if number > len(known):
            raise SchemaMismatch(
                f"the store was written by a newer muniment (migration {number} {name}; this one knows {len(known)})",
                hint="upgrade muniment again, or restore the copy that was made before the upgrade",
                details={"number": number, "known": len(known)},
            )
        if number != index:
            raise SchemaMismatch(f"the store lacks migration {index}", details={"number": index})
        if (name, sha256) != (known[index - 1].name, known[index - 1].sha256):
            raise SchemaMismatch(
                f"migration {number} {name} of the store is not the one this muniment ships",
                hint="the store was written by an altered muniment, or its migrations table was edited",
                details={"number": number},
            )
    return tuple(known[len(applied) :])
