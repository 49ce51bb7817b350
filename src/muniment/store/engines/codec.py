"""The stored form of column values: compact integers and bytes for what the rooms read and write as text.

`core.ports.schema` declares the form of each column. Ids, times and closed vocabularies have fixed codes; names of
users, sessions, agents and runs are numbers from the table `names`, which each transaction looks up (`NameLookup`).
Decoding never raises: an invalid stored value becomes a text that no writer could have written, so that the hashes and
digests over it fail where it is used. Never touches a database.
"""

from __future__ import annotations

import threading
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from typing import Any, Protocol

from muniment.core.ports.engine import Row, Value
from muniment.core.ports.schema import OPAQUE, Column
from muniment.core.scope import TRUST_RANK
from muniment.errors import InvalidInput

__all__ = [
    "BUCKETS",
    "MINTED",
    "NO_NAME",
    "PREFIXES",
    "WORDS",
    "WORD_OF",
    "NameBook",
    "NameGiver",
    "NameLookup",
    "RowCoder",
    "decode_body",
    "decode_id",
    "decode_ids",
    "decode_instant",
    "decode_word",
    "encode_body",
    "encode_id",
    "encode_ids",
    "encode_instant",
    "encode_word",
    "pack",
    "pack_bytes",
    "shard_of",
    "unpack",
    "unpack_bytes",
    "value_encoder",
]

BUCKETS = 1 << 16
"""Shards of one tenant. All rows are in its first until ids carry the bucket of their user."""
NO_NAME = -1
"""The number of a name that has none yet: no row has it."""
_DAMAGED = "\ufffd"
"""Prefix of a decoded value whose stored form is invalid."""


def shard_of(tenant_number: int) -> int:
    return tenant_number * BUCKETS


# -- ids ----------------------------------------------------------------------------------------------

PREFIXES = (
    *("act", "bld", "canary", "cfl", "clm", "cnd", "dr", "evt", "ext", "fct", "flr", "gate", "ins", "lrp", "op"),
    *("plan", "prc", "prm", "qst", "rcp", "rec", "replay", "rule", "run", "sel", "ses", "sum", "trc", "txt"),
    *("vrf", "ws"),
)
"""Prefixes of the ids that this package mints."""
MINTED = tuple(sorted(f"{prefix}_" for prefix in PREFIXES))
_HEX = frozenset("0123456789abcdef")
_HEX_CHARS = 32
_MINTED_BYTES = 1 + _HEX_CHARS // 2


def encode_id(text: str) -> bytes:
    """Encode a minted id as an even byte for its prefix and 16 raw bytes; any other id with its text. Codes sort as ids
    do.

    An id that only begins like a minted one has the code of the last minted one before it, and then its text. All
    others have an odd byte, which places them between prefixes, and their text.
    """
    group = bisect_right(MINTED, text)
    prefix = MINTED[group - 1] if group else ""
    if not prefix or not text.startswith(prefix):
        return bytes((2 * group + 1,)) + text.encode()
    rest = text[len(prefix) :]
    if len(rest) == _HEX_CHARS and _HEX.issuperset(rest):
        return bytes((2 * group,)) + bytes.fromhex(rest)
    number = _last_number_before(rest)
    if number < 0:
        return bytes((2 * group - 1,)) + text.encode()
    return bytes((2 * group,)) + number.to_bytes(_HEX_CHARS // 2) + text.encode()


def _last_number_before(rest: str) -> int:
    """Return the greatest number whose 32 hexadecimal digits sort before a text or begin it; -1 if there is none."""
    digits = "".join(takewhile(_HEX.__contains__, rest[:_HEX_CHARS]))
    open_places = _HEX_CHARS - len(digits)
    first = int(digits or "0", 16) << 4 * open_places
    sign = rest[len(digits) : len(digits) + 1]
    if not open_places:
        return first
    if sign > "f":
        return first + (1 << 4 * open_places) - 1
    return first + (10 << 4 * (open_places - 1)) - 1 if sign > "9" else first - 1


def decode_id(code: bytes) -> str:
    try:
        if code[0] % 2 == 0 and len(code) == _MINTED_BYTES and code[0]:
            return MINTED[code[0] // 2 - 1] + code[1:].hex()
        text = code[1 if code[0] % 2 else _MINTED_BYTES :].decode()
        if encode_id(text) == code:
            return text
    except (IndexError, TypeError, UnicodeDecodeError):
        pass
    return f"{_DAMAGED}{code!r}"


def encode_ids(text: str) -> bytes:
    """Encode ids, one to a line: ids that are all minted as codes after a 0, other texts after a 1; compressed."""
    codes = [encode_id(id_) for id_ in text.split("\n")]
    if all(len(code) == _MINTED_BYTES and code[0] % 2 == 0 for code in codes):
        return b"\0" + zlib.compress(b"".join(codes))
    return b"\1" + zlib.compress(text.encode())


def decode_ids(held: bytes) -> str:
    try:
        data = zlib.decompress(held[1:])
        if held[:1] == b"\1":
            return data.decode()
        if held[:1] == b"\0" and data and not len(data) % _MINTED_BYTES:
            return "\n".join(decode_id(data[at : at + _MINTED_BYTES]) for at in range(0, len(data), _MINTED_BYTES))
    except (TypeError, zlib.error, UnicodeDecodeError):
        pass
    return f"{_DAMAGED}{held!r:.40}"


# -- times --------------------------------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_BEFORE_ALL = -(2**63)
_FIXED_CHARS = len("1970-01-01T00:00:00.000000Z")


@lru_cache(maxsize=1024)
def encode_instant(ts: str) -> int:
    """Convert a time in the canonical form (`core.instants`) to microseconds since 1970; the empty text sorts first.

    Raises `InvalidInput` for any other text.
    """
    if not ts:
        return _BEFORE_ALL
    try:
        if len(ts) == _FIXED_CHARS and (ts[10], ts[19], ts[-1]) == ("T", ".", "Z"):
            code = (datetime.fromisoformat(ts) - _EPOCH) // _MICROSECOND
            if decode_instant(code) == ts:  # fromisoformat knows other forms of the same length
                return code
    except ValueError:
        pass
    raise InvalidInput(f"{ts!r:.60} is not a time as a store keeps it", hint="give it as format_instant writes it")


@lru_cache(maxsize=1024)
def decode_instant(code: int) -> str:
    if code == _BEFORE_ALL:
        return ""
    try:
        return (_EPOCH + timedelta(microseconds=code)).isoformat(timespec="microseconds")[:-6] + "Z"
    except (OverflowError, TypeError, ValueError):
        return f"{_DAMAGED}{code}"


# -- closed vocabularies ------------------------------------------------------------------------------

WORDS = tuple(
    sorted(
        (
            *TRUST_RANK,  # user, assistant, tool, external: roles as well
            *("message", "tool_result", "state_patch", "system", "step", "developer"),
            *("run", "receipt", "fact", "episode", "build", "snapshot", "event_log", "candidate", "insight", "rule"),
            *("lesson", "active", "superseded", "retracted", "verified", "open", "finished", "locked", "composed"),
            *("new", "valid", "forgotten", "retired", "suspended", "pending", "working_state", "document", "summary"),
            "disputed",
        )
    )
)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BEFORE_WORDS = "="
_LETTER_OF = dict(zip(WORDS, _LETTERS, strict=False))
WORD_OF = {letter: word for word, letter in _LETTER_OF.items()}


def encode_word(word: str) -> str:
    """Encode a word of the vocabulary as one letter; any other in full after the letter of the last word before it, so
    that codes sort as words do.
    """
    letter = _LETTER_OF.get(word)
    if letter is not None:
        return letter
    before = bisect_right(WORDS, word)
    return (_LETTERS[before - 1] if before else _BEFORE_WORDS) + word


def decode_word(code: str) -> str:
    word = WORD_OF.get(code)
    if word is not None:
        return word
    return code[1:] if encode_word(code[1:]) == code else f"{_DAMAGED}{code}"


# -- long texts ---------------------------------------------------------------------------------------

_PACKED_BYTES_MIN = 512


def pack(text: str) -> str | bytes:
    """Compress a long text; a short or incompressible one is returned unchanged."""
    if len(text) < _PACKED_BYTES_MIN:
        return text
    data = text.encode()
    packed = zlib.compress(data, 6)
    return packed if len(packed) < len(data) else text


def unpack(held: str | bytes) -> str:
    if isinstance(held, str):
        return held
    try:
        return zlib.decompress(held).decode()
    except (TypeError, zlib.error, UnicodeDecodeError):
        return f"{_DAMAGED}{held!r:.40}"


def pack_bytes(data: bytes) -> bytes:
    """Pack bytes behind one byte for compressed or not. Fast rather than small: blocks of the index are rewritten as
    they grow.
    """
    packed = zlib.compress(data, 1)
    return b"\1" + packed if len(packed) < len(data) else b"\0" + data


def unpack_bytes(held: bytes) -> bytes:
    """Unpack bytes; damaged data is returned unchanged, so that the digest over it fails."""
    if not isinstance(held, bytes) or held[:1] not in (b"\0", b"\1"):
        return str(held).encode(errors="replace")
    try:
        return zlib.decompress(held[1:]) if held[:1] == b"\1" else held[1:]
    except zlib.error:
        return held


# -- bodies of entries --------------------------------------------------------------------------------

_BEFORE, _BEHIND = '{"content":"', '"}'
_AS_IT_IS = "{{"


def encode_body(body: str) -> str:
    """Store only the text of a body that holds nothing but a text without escapes. It saves 14 bytes, and the file
    stays readable.
    """
    if body.startswith(_BEFORE) and body.endswith(_BEHIND) and len(body) >= len(_BEFORE) + len(_BEHIND):
        text = body[len(_BEFORE) : -len(_BEHIND)]
        if not text.startswith("{") and '"' not in text and "\\" not in text:
            return text
    return body if body[:1] == "{" and body[:2] != _AS_IT_IS else _AS_IT_IS + body


def decode_body(held: str) -> str:
    if held[:1] != "{":
        return f"{_BEFORE}{held}{_BEHIND}"
    return held[len(_AS_IT_IS) :] if held[:2] == _AS_IT_IS else held


# -- names --------------------------------------------------------------------------------------------


class NameLookup(Protocol):
    """The names of one tenant as a transaction sees them."""

    def number_of(self, name: str) -> int:
        """Return the number of a name; `NO_NAME` if it has none."""

    def name_of(self, number: int) -> str: ...


class NameGiver(NameLookup, Protocol):
    """A transaction that may give a number to a new name."""

    def number_for(self, name: str) -> int:
        """Return the number of a name, assigning one if it has none."""


class NameBook:
    """Numbers of names that this process has seen committed. Names are never renumbered or removed. Thread-safe."""

    _MAX = 200_000

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}
        self._names: dict[tuple[int, int], str] = {}
        self._source = ""
        self._lock = threading.Lock()

    def number(self, shard: int, name: str) -> int | None:
        return self._numbers.get((shard, name))

    def name(self, shard: int, number: int) -> str | None:
        return self._names.get((shard, number))

    def add(self, shard: int, found: Iterable[tuple[int, str]]) -> None:
        """Keep names that a committed transaction has read or written."""
        with self._lock:
            if len(self._numbers) > self._MAX:
                self._forget()
            for number, name in found:
                self._numbers[shard, name] = number
                self._names[shard, number] = name

    def bind(self, source: str) -> bool:
        """Forget all names if they came from another history of the store; returns whether they were kept.

        A promoted standby may lack the last names of its primary, and have given their numbers to others.
        """
        if source == self._source:
            return True
        with self._lock:
            self._forget()
            self._source = source
        return False

    def _forget(self) -> None:
        self._numbers, self._names = {}, {}


# -- rows ---------------------------------------------------------------------------------------------

_CODERS: dict[str, tuple[Callable[[Any], Value], Callable[[Any], Value]]] = {
    "id": (encode_id, decode_id),
    "ids": (encode_ids, decode_ids),
    "instant": (encode_instant, decode_instant),
    "word": (encode_word, decode_word),
    "body": (encode_body, decode_body),
    "packed text": (pack, unpack),
    "packed bytes": (pack_bytes, unpack_bytes),
}


def _coders(column: Column) -> tuple[Callable[[Any], Value], Callable[[Any], Value]]:
    return _CODERS[f"packed {column.type}" if column.form == "packed" else column.form]


def value_encoder(column: Column, names: NameLookup) -> Callable[[Any], Value] | None:
    """Return the encoder that makes a condition's value comparable with stored ones; None if none is needed."""
    if column.form == "plain" or column.form in OPAQUE:
        return None
    return names.number_of if column.form == "name" else _coders(column)[0]


class RowCoder:
    """Turns rows with certain columns into stored ones, and back. `packs`: compress long values here; else the server
    does.
    """

    def __init__(self, columns: Iterable[Column], *, packs: bool) -> None:
        plain = ("plain", "name") if packs else ("plain", "name", "packed")
        placed = list(enumerate(columns))
        self._names = [place for place, column in placed if column.form == "name"]
        coders = [(place, _coders(column)) for place, column in placed if column.form not in plain]
        self._encoders = [(place, encode) for place, (encode, _) in coders]
        self._decoders = [(place, decode) for place, (_, decode) in coders]
        self.is_plain = not self._names and not coders
        """True if rows are stored unchanged."""

    def encoder(self, names: NameGiver) -> Callable[[Row], Row]:
        """Return an encoder that assigns numbers to new names."""
        return self._converter(names.number_for, self._encoders)

    def decoder(self, names: NameLookup) -> Callable[[Row], Row]:
        return self._converter(names.name_of, self._decoders)

    def _converter(
        self, change_name: Callable[[Any], Value], changes: list[tuple[int, Callable[[Any], Value]]]
    ) -> Callable[[Row], Row]:
        by_name = self._names

        def convert(row: Row) -> Row:
            values = list(row)
            for place in by_name:
                value = values[place]
                if value is not None:
                    values[place] = change_name(value)
            for place, change in changes:
                value = values[place]
                if value is not None:
                    values[place] = change(value)
            return tuple(values)

        return convert
