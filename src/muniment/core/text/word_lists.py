"""Word lists and other data that stand in a folder `data` beside the module that uses them.

A list is plain text that people edit. A line that starts with `#` is a comment; those at the top say where the words
come from. `[name]` starts a section. Every other line is an entry, and a line that starts with a blank goes on with the
entry above it. What an entry means is said by the module that reads it and at the top of the file.

A file is read once, when something in it is first asked for. Data that comes with the package is code: to read it is to
load a module, so pure modules may, through here and nowhere else.
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
    """The bytes of a file in the folder `data` of a package, where given those of this SHA-256.

    Raises `NotFound` where the installation lacks the file, `IntegrityFailure` where it has another one.
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
    """A file of words, by section. What stands before the first section has the name "" (an empty one)."""

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
        """The names of its sections in order, the one before the first section among them."""
        return tuple(self._sections)

    def entries(self, section: str = "") -> tuple[str, ...]:
        """The entries of a section in order; one that goes over several lines keeps its line breaks."""
        return tuple(self._sections[section])

    def words(self, section: str = "") -> tuple[str, ...]:
        """All that stands between blanks in a section, in order."""
        return tuple(word for entry in self._sections[section] for word in entry.split())

    def pairs(self, section: str = "") -> tuple[tuple[str, str], ...]:
        """Of entries `key: value` both sides, in order; a key may stand there more than once."""
        halves = (entry.partition(":") for entry in self._sections[section])
        return tuple((key.strip(), value.strip()) for key, _, value in halves)

    def either(self, section: str = "") -> str:
        """The forms of a section as alternatives of a regular expression."""
        return "|".join(form for entry in self._sections[section] for form in forms_in(entry))


def forms_in(text: str) -> list[str]:
    """Phrases and forms of regular expressions, which hold blanks: on lines of their own or two blanks apart."""
    return [form.strip() for line in text.splitlines() for form in line.split("  ") if form.strip()]
