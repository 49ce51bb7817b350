"""JSON of any size by its elements, in memory that is bounded by the largest of them.

The outermost list, or the lists under the keys of the outermost object, are read element by element. JSON lines are
read line by line.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from muniment.errors import InvalidJson, TooLarge
from muniment.moving.formats.values import Placed

__all__ = ["ELEMENT_CHARS_MAX", "read_values"]

ELEMENT_CHARS_MAX = 64 * 1024 * 1024
"""A single conversation, or whatever else an element is, may be so large."""
_CHUNK = 1 << 16
_BLANK = re.compile(r"[ \t\n\r]*")
_NEAR_END = 32
"""An error so close to the end of what was read may be that the rest has not been read yet."""


class _Bad(ValueError):
    """What JSON does not know: NaN, Infinity."""


def _refuse(name: str) -> Any:
    raise _Bad(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def read_values(stream: BinaryIO, *, element_chars_max: int = ELEMENT_CHARS_MAX) -> Iterator[Placed]:
    """The elements of a document, each with its place; raises `InvalidJson` or `TooLarge` for what cannot be read."""
    text = _Text(stream, element_chars_max)
    opening = text.peek()
    if opening == "":
        return
    if opening == "[":
        text.skip(1)
        yield from _elements(text, "$", None)
    elif opening == "{" and not text.is_lines():
        text.skip(1)
        yield from _members(text)
    else:
        yield from _lines(text)
        return
    if text.peek():
        raise InvalidJson("more after the end of the document", path="$")


def _lines(text: _Text) -> Iterator[Placed]:
    number = 0
    while text.peek():
        number += 1
        yield Placed(f"line {number}", None, text.value(f"line {number}"))


def _elements(text: _Text, path: str, key: str | None) -> Iterator[Placed]:
    """What stands in a list whose bracket was read."""
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


def _members(text: _Text) -> Iterator[Placed]:
    """What stands in an object whose brace was read; a list in it by its elements."""
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
    """The text of a stream, as far as it is needed: read on when a value is not complete yet."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._limit = limit
        self._held = ""
        self._at = 0
        self._is_ended = False

    def peek(self) -> str:
        """The next sign that is no white space; nothing at the end."""
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
        """Is the object that begins here whole on its line, with another below it?"""
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
                if end < len(self._held) or self._is_ended:  # a number may go on behind what was read
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
        """Read on; answers whether there was more."""
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
