"""Keys for sealing, from a file, the environment or a function of the caller's. No message here says anything of one.

    file:<path>    a key to a line, 32 bytes as 64 hex digits or in Base64; `#` begins a remark
    env:<NAME>     likewise, from the variable of this name

The first key seals, all of them open. They are fetched whenever one is needed, so that a key that was put before the
others is used at once. The cipher is AES-256-SIV (RFC 5297) of the package `cryptography`: it authenticates, and needs
no random number that could come twice.
"""

from __future__ import annotations

import base64
import binascii
import importlib.util
import os
import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from hmac import digest as hmac_digest
from pathlib import Path
from typing import Any

from muniment.core.ports.sealing import BrokenSeal, SealKey, SealKeys
from muniment.errors import InvalidInput, MissingDependency, NoSealKey

__all__ = ["AesSivKey", "load_seal_keys"]

KEY_BYTES = 32
_HEX = re.compile(r"[0-9A-Fa-f]{64}")
_ID_SALT, _CIPHER_INFO = b"muniment seal key id", b"muniment seal v1"
_FORMS = "file:<path>, env:<NAME>, or a function that answers the key"
_KEY_FORM = "a key is 32 bytes: 64 hex digits, or Base64"


class AesSivKey:
    """AES-256-SIV under a key derived from the one given (HKDF with SHA-256)."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        self.id = hmac_digest(key, _ID_SALT, sha256).hex()[:16]
        self._cipher = AESSIV(HKDF(SHA256(), 64, salt=None, info=_CIPHER_INFO).derive(key))

    def seal(self, data: bytes, place: Sequence[bytes]) -> bytes:
        return self._cipher.encrypt(data, list(place))

    def open(self, sealed: bytes, place: Sequence[bytes]) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed, list(place))
        except (InvalidTag, ValueError):  # ValueError: too short to be a seal
            raise BrokenSeal from None

    def __repr__(self) -> str:
        return f"AesSivKey({self.id})"


def load_seal_keys(given: Any) -> SealKeys | None:
    """What answers the keys; None where none is given. Nothing is read before a key is needed."""
    if given is None or given == "none":
        return None
    source = _source(given)
    if importlib.util.find_spec("cryptography") is None:
        raise MissingDependency("seals need the package cryptography", hint="pip install 'muniment[seal]'")

    def keys() -> tuple[SealKey, ...]:
        found = tuple(AesSivKey(key) for key in _keys_in(source()))
        if not found:
            raise NoSealKey("seal_key names a place that holds no key", hint=_KEY_FORM)
        return found

    return keys


def _source(given: Any) -> Callable[[], Any]:
    if callable(given):
        return given  # type: ignore[no-any-return]
    kind, _, name = given.partition(":") if isinstance(given, str) else ("", "", "")
    if not name or kind not in ("file", "env"):  # what was given is not repeated: it may be a key
        raise InvalidInput(f"seal_key should be {_FORMS}", path="$.seal_key", hint="a key itself is never a setting")
    return (lambda: _read_file(name)) if kind == "file" else (lambda: os.environ.get(name, ""))


def _read_file(path: str) -> str:
    try:
        return Path(path).read_text("ascii")
    except (OSError, ValueError):
        raise NoSealKey("the file of seal_key cannot be read", hint="check the path and who may read it") from None


def _keys_in(held: Any) -> list[bytes]:
    """The keys of what a source answered: bytes, text with a key to a line, or several of these."""
    if isinstance(held, bytes | bytearray):
        if len(held) == KEY_BYTES:
            return [bytes(held)]
        held = held.decode("ascii", "replace")
    if isinstance(held, str):
        lines = (line.partition("#")[0].strip() for line in held.splitlines())
        return [_key_of(line) for line in lines if line]
    if isinstance(held, Sequence):
        return [key for each in held for key in _keys_in(each)]
    raise InvalidInput("seal_key answered no key", path="$.seal_key", hint=_KEY_FORM)


def _key_of(text: str) -> bytes:
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidInput("a key for seals is not as it should be", path="$.seal_key", hint=_KEY_FORM)
    return key
