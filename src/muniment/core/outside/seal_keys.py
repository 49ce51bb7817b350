"""Keys for sealing. The cipher is AES-256-SIV (RFC 5297) of the package `cryptography`: it authenticates, and needs no
random number that could come twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from hmac import digest as hmac_digest
from typing import Any

from muniment.core.outside.extras import require
from muniment.core.outside.keys import KEY_FORM, NoKey, key_source
from muniment.core.ports.sealing import BrokenSeal, SealKey, SealKeys
from muniment.errors import NoSealKey

__all__ = ["AesSivKey", "load_seal_keys"]

_ID_SALT, _CIPHER_INFO = b"muniment seal key id", b"muniment seal v1"


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
    source = key_source(given, "seal_key")
    require("seal", "seals need the package cryptography")

    def keys() -> tuple[SealKey, ...]:
        try:
            return tuple(AesSivKey(key) for key in source())
        except NoKey as missing:
            raise NoSealKey(str(missing), hint=KEY_FORM) from None

    return keys
