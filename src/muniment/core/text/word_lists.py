"""Word lists and other data in a folder `data` next to the module that uses them.

A list is plain text that people edit. A line that starts with `#` is a comment; those at the top name the source of the
words. `[name]` starts a section. Every other line is an entry, and a line that starts with a blank continues the entry
above it. The module that reads a file, and the comments at its top, define the meaning of an entry.

A file is read once, on first use. Data that comes with the package is code: reading it is loading a module, so pure
modules may, through here and nowhere else.
"""

from __future__ import annotations

import sys
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from muniment.errors import IntegrityFailure, NotFound

if TYPE_CHECKING:
    from importlib.abc import ResourceLoader

__all__ = ["WordList", "forms_in", "read_data"]

_AGAIN = "install muniment again"


def read_data(package: str, name: str, digest: str | None = None) -> bytes:
    """Return the bytes of a file in the folder `data` of a package, checked against a SHA-256 if given.

    Raises `NotFound` where the installation lacks the file, `IntegrityFailure` where it differs.
    """
    room = sys.modules[package]
    loader = cast("ResourceLoader", room.__loader__)  # of a folder or of an archive
    try:
        found = loader.get_data(f"{room.__path__[0]}/data/{name}")
    except OSError as gone:
        raise NotFound(f"{name} is not part of this installation", hint=_AGAIN) from gone
    if digest is not None and sha256(found).hexdigest() != digest:
        raise IntegrityFailure(f"{name} is not the file that this version of muniment was made with", hint=_AGAIN)
    return found


class WordList:
    """A file of words, by section. Entries before the first section are under the name "" (an empty one)."""

    def __init__(self, package: str, name: str) -> None:
        self._package, self._name = package, name

    @cached_property
    def _sections(self) -> dict[str, list[str]]:
        section: list[str] = []
        found = {"": section}
        for line in read_data(self._package, self._name).decode("utf-8").splitlines():
            if not line or line[0] == "#":
                continue
            if line[0] == " ":
                section[-1] += f"\n{line.strip()}"
            elif line[0] == "[" and line.find("]") == len(line) - 1:
                section = found.setdefault(line[1:-1], [])
            else:
                section.append(line)
        return found

    def __contains__(self, section: str) -> bool:
        return section in self._sections

    def sections(self) -> tuple[str, ...]:
        """Return the names of its sections in order, including the one before the first section."""
        return tuple(self._sections)

    def entries(self, section: str = "") -> tuple[str, ...]:
        """Return the entries of a section in order; multi-line ones keep their line breaks."""
        return tuple(self._sections[section])

    def words(self, section: str = "") -> tuple[str, ...]:
        """Return all words of a section, in order."""
        return tuple(word for entry in self._sections[section] for word in entry.split())

    def pairs(self, section: str = "") -> tuple[tuple[str, str], ...]:
        """Return both sides of entries `key: value`, in order; a key may be repeated."""
        halves = (entry.partition(":") for entry in self._sections[section])
        return tuple((key.strip(), value.strip()) for key, _, value in halves)

    def either(self, section: str = "") -> str:
        """Return the forms of a section as alternatives of a regular expression."""
        return "|".join(form for entry in self._sections[section] for form in forms_in(entry))


def forms_in(text: str) -> list[str]:
    """Return phrases and regular expressions, which hold blanks: on lines of their own or two blanks apart."""
    return [form.strip() for line in text.splitlines() for form in line.split("  ") if form.strip()]
