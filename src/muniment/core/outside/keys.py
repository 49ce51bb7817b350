"""Keys kept outside the store: in a file, the environment or a caller's function. Messages never reveal them.

    file:<path>    a key to a line, 32 bytes as 64 hex digits or in Base64; `#` begins a remark
    env:<NAME>     likewise, from the variable of this name

The first key signs or seals; all of them verify or open.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from muniment.errors import InvalidInput

__all__ = ["KEY_FORM", "KeySource", "NoKey", "key_source"]

KEY_BYTES = 32
_HEX = re.compile(r"[0-9A-Fa-f]{64}")
_FORMS = "file:<path>, env:<NAME>, or a function that answers the key"
KEY_FORM = "a key is 32 bytes: 64 hex digits, or Base64"

KeySource = Callable[[], list[bytes]]
"""Fetches the keys whenever one is needed, so that a newly prepended key is used at once."""


class NoKey(Exception):
    """The named place holds no key, or cannot be read."""


def key_source(given: Any, setting: str) -> KeySource:
    """Return the source of the keys that a setting names. Nothing is read yet."""
    read = _reader(given, setting)

    def keys() -> list[bytes]:
        found = _keys_in(read(), setting)
        if not found:
            raise NoKey(f"{setting} names a place that holds no key")
        return found

    return keys


def _reader(given: Any, setting: str) -> Callable[[], Any]:
    if callable(given):
        return given  # type: ignore[no-any-return]
    kind, _, name = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not name or kind not in ("file", "env"):  # the value is not repeated, as it may be a key
        raise InvalidInput(f"{setting} should be {_FORMS}", path=f"$.{setting}", hint="a key itself is never a setting")
    return (lambda: _read_file(name, setting)) if kind == "file" else (lambda: os.environ.get(name, ""))


def _read_file(path: str, setting: str) -> str:
    try:
        return Path(path).read_text("ascii")
    except (OSError, ValueError):
        raise NoKey(f"the file of {setting} cannot be read") from None


def _keys_in(held: Any, setting: str) -> list[bytes]:
    """Parse the keys a source returned: bytes, text with a key to a line, or several of these."""
    if isinstance(held, bytes | bytearray):
        if len(held) == KEY_BYTES:
            return [bytes(held)]
        held = held.decode("ascii", "replace")
    if isinstance(held, str):
        lines = (line.partition("#")[0].strip() for line in held.splitlines())
        return [_key_of(line, setting) for line in lines if line]
    if isinstance(held, Sequence):
        return [key for each in held for key in _keys_in(each, setting)]
    raise InvalidInput(f"{setting} answered no key", path=f"$.{setting}", hint=KEY_FORM)


def _key_of(text: str, setting: str) -> bytes:
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidInput(f"a key of {setting} is not as it should be", path=f"$.{setting}", hint=KEY_FORM)
    return key
