"""Keys for what lies outside the store: AES-256-GCM of the package `cryptography`.

Each object has a key of its own, made of the one given and the salt of its event (HKDF with SHA-256). The salt is
erased when the event is forgotten: what a bucket keeps of it then opens for nobody, whoever has the key.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from hmac import digest as hmac_digest
from typing import TYPE_CHECKING, Any

from muniment.core.outside.extras import require
from muniment.core.outside.keys import KEY_FORM, NoKey, key_source
from muniment.core.ports.objects import BrokenSeal, ObjectKey, ObjectKeys
from muniment.errors import NoObjectsKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["AesGcmKey", "load_object_keys"]

_ID_SALT, _CIPHER_INFO = b"muniment object key id", b"muniment object v1"
_HEAD, _NONCE_BYTES = b"muniment object 1\n", 12


class AesGcmKey:
    """AES-256-GCM under a key derived anew for each object."""

    def __init__(self, key: bytes) -> None:
        self.id = hmac_digest(key, _ID_SALT, sha256).hex()[:16]
        self._key = key

    def seal(self, data: bytes, salt: bytes, place: Sequence[bytes]) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return _HEAD + nonce + self._cipher(salt).encrypt(nonce, data, _bound(place))

    def open(self, sealed: bytes, salt: bytes, place: Sequence[bytes]) -> bytes:
        from cryptography.exceptions import InvalidTag

        start = len(_HEAD) + _NONCE_BYTES
        if not sealed.startswith(_HEAD) or len(sealed) < start:
            raise BrokenSeal
        try:
            return self._cipher(salt).decrypt(sealed[len(_HEAD) : start], sealed[start:], _bound(place))
        except InvalidTag:
            raise BrokenSeal from None

    def _cipher(self, salt: bytes) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        return AESGCM(HKDF(SHA256(), 32, salt=salt, info=_CIPHER_INFO).derive(self._key))

    def __repr__(self) -> str:
        return f"AesGcmKey({self.id})"


def _bound(place: Sequence[bytes]) -> bytes:
    """What a seal is bound to, in one text that has no other reading."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in place)


def load_object_keys(given: Any) -> ObjectKeys | None:
    """What answers the keys; None where none is given. Nothing is read before a key is needed."""
    if given is None or given == "none":
        return None
    source = key_source(given, "objects_key")
    require("encrypt", "encrypted objects need the package cryptography")

    def keys() -> tuple[ObjectKey, ...]:
        try:
            return tuple(AesGcmKey(key) for key in source())
        except NoKey as missing:
            raise NoObjectsKey(str(missing), path="$.objects_key", hint=KEY_FORM) from None

    return keys
