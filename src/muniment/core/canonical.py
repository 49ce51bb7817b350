"""Canonical JSON: the one encoder for hashing, storage and replay, the one strict reader; SHA-256 over its bytes."""

from __future__ import annotations

import json
from collections.abc import Collection
from hashlib import sha256
from json.encoder import encode_basestring as _quote
from math import isfinite
from typing import Any

from muniment.core.limits import remembered
from muniment.core.text.patterns import lazy_pattern
from muniment.errors import InvalidJson, TooLarge

__all__ = [
    "MAX_DEPTH",
    "MAX_INT_DIGITS",
    "SALT_BYTES",
    "Written",
    "canonical_bytes",
    "canonical_text",
    "check_text",
    "child_path",
    "digest",
    "digest_of",
    "nests_within",
    "ordered_keys",
    "ordered_members",
    "parse_json",
    "read_canonical",
    "salted_digest",
    "short_id",
    "written_part",
]

MAX_DEPTH = 128
MAX_INT_DIGITS = 1024

_INT_LIMIT = 10**MAX_INT_DIGITS
_BRACKET = lazy_pattern(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]')
_PLAIN_KEY = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_POWER_FIRST = lazy_pattern(r"-?\d[\d.]*[eE]\+?\d")
_POWER = lazy_pattern(r"[\[:,\s]-?\d[\d.]*[eE]\+?\d")
_DIGITS_MAX = 308
_MANY_DIGITS = lazy_pattern(rf"\d\d{{{_DIGITS_MAX}}}")
"""Each pattern begins with a character class, so the search is much faster than one pattern for all three."""
_SURROGATE = lazy_pattern("[\ud800-\udfff]")
_read = json.JSONDecoder().raw_decode
"""Equivalent to `json.loads` for a text without white space around it."""


def child_path(path: str, key: str | int) -> str:
    """`$.a` + `b` → `$.a.b`; `$.a` + 0 → `$.a[0]`; odd keys are quoted."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _PLAIN_KEY.match(key) else f"{path}[{json.dumps(key)}]"


class _Duplicate(dict[str, Any]):
    """An object with a duplicate key; kept until the walk finds its path."""

    key: str


# -- writing ------------------------------------------------------------------------------------------


class Written(str):
    """Canonical JSON text of a part, inserted into the whole unchanged."""

    __slots__ = ()


def canonical_text(value: Any) -> str:
    """Return the canonical JSON text of plain data: dict, list or tuple, str, int, float, bool, None."""
    try:
        text = _encode(value, MAX_DEPTH)
        if not text.isascii():
            text.encode()
        return text
    except (_Unencodable, UnicodeEncodeError):
        raise _refused(value) from None


def canonical_bytes(value: Any) -> bytes:
    """Return `canonical_text` in UTF-8, as hashed, stored and replayed."""
    try:
        return _encode(value, MAX_DEPTH).encode()
    except (_Unencodable, UnicodeEncodeError):
        raise _refused(value) from None


def written_part(value: Any) -> Written:
    """Return the canonical JSON text of a part, whose UTF-8 is checked later with the whole."""
    try:
        return Written(_encode(value, MAX_DEPTH))
    except _Unencodable:
        raise _refused(value) from None


def _refused(value: Any) -> InvalidJson:
    """Return the error for a value that has no canonical form; raises a better one where the fault is located."""
    _explain(value, "$", 0)
    return InvalidJson("the value has no canonical JSON form")


def nests_within(value: Any, levels: int) -> bool:
    """Return whether a value nests no deeper than this."""
    if isinstance(value, dict):
        return levels > 0 and all(nests_within(part, levels - 1) for part in value.values())
    if isinstance(value, list | tuple):
        return levels > 0 and all(nests_within(part, levels - 1) for part in value)
    return True


class _Unencodable(Exception):
    """Internal: raised on the fast path; the slow path then locates the fault."""


def _encode(value: Any, room: int) -> str:
    kind = type(value)
    if kind is str:
        return _quote(value)
    if kind is float:
        return _format_float(value)
    if kind is int:
        return _format_int(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is Written:
        return str.__str__(value)
    if kind is dict:
        if not room:
            raise _Unencodable
        room -= 1
        parts = [
            label + (_quote(item) if type(item := value[key]) is str else _encode(item, room))
            for key, label in (ordered_members if len(value) <= _MEMBERS_MAX else _ordered)(tuple(value))
        ]
        return "{" + ",".join(parts) + "}"
    if kind is list or kind is tuple:
        if not room:
            raise _Unencodable
        room -= 1
        return "[" + ",".join([_quote(item) if type(item) is str else _encode(item, room) for item in value]) + "]"
    return _encode_subclass(value, room)


_MEMBERS_MAX = 32
"""Objects with more keys are data tables, whose key sets never recur."""


@remembered(4096)
def ordered_members(keys: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
    """Return an object's sorted keys in written form, cached because objects of one kind share them."""
    return _ordered(keys)


def _ordered(keys: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
    return tuple([(key, f"{_quote(key)}:") for key in ordered_keys(keys)])


def ordered_keys(keys: Collection[Any]) -> list[str]:
    """Return the keys of an object in canonical order."""
    try:
        return sorted(keys) if "".join(keys).isascii() else sorted(keys, key=_utf16)
    except TypeError:
        raise _Unencodable from None


def _encode_subclass(value: Any, room: int) -> str:
    """Encode str enums, int enums and named tuples as their base types."""
    if isinstance(value, str):
        return _encode(str.__str__(value), room)
    if isinstance(value, int):
        return _encode(int.__int__(value), room)
    if isinstance(value, float):
        return _encode(float.__float__(value), room)
    if isinstance(value, dict):
        return _encode(dict(value), room)
    if isinstance(value, list | tuple):
        return _encode(list(value), room)
    raise _Unencodable


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _format_int(value: int) -> str:
    if -_INT_LIMIT < value < _INT_LIMIT:
        return int.__repr__(value)
    raise _Unencodable


def _format_float(value: float) -> str:
    """Format as ECMAScript's Number::toString, from Python's shortest repr."""
    text = repr(value)
    if text[-2:] == ".0":  # both write numbers without an exponent alike, but for this of a whole one
        return text[:-2] if value else "0"
    if "e" not in text:
        if not isfinite(value):
            raise _Unencodable
        return text
    sign, text = ("-", text[1:]) if text[0] == "-" else ("", text)
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    size = len(digits)
    if size <= point <= 21:
        return sign + digits + "0" * (point - size)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    head = digits if size == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{head}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def check_text(text: str, path: str) -> None:
    """Refuse a text that JSON, rows and pages cannot hold."""
    if not text.isascii() and _SURROGATE.search(text):
        raise InvalidJson("a lone surrogate has no UTF-8 form", path=path, hint="decode the text properly first")


def _explain(value: Any, path: str, depth: int) -> None:
    """Walk a value that may not be encodable and raise for the first offending place."""
    if isinstance(value, str):
        check_text(value, path)
    elif value is None or isinstance(value, bool):
        return
    elif isinstance(value, int):
        if abs(value) >= _INT_LIMIT:
            raise InvalidJson(f"an integer of more than {MAX_INT_DIGITS} digits", path=path)
    elif isinstance(value, float):
        if not isfinite(value):
            raise InvalidJson(f"{value} is not a JSON number", path=path, hint="leave the key out, or use null")
    elif isinstance(value, dict | list | tuple):
        if depth >= MAX_DEPTH:
            raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels", path=path)
        if isinstance(value, dict):
            if isinstance(value, _Duplicate):
                raise InvalidJson(
                    f"the key {value.key!r} stands twice", path=child_path(path, value.key), hint="keep one of the two"
                )
            for key in value:
                if not isinstance(key, str):
                    raise InvalidJson(f"a key of type {type(key).__name__}", path=path, hint="JSON keys are strings")
                _explain(key, child_path(path, key), depth + 1)
                _explain(value[key], child_path(path, key), depth + 1)
        else:
            for index, item in enumerate(value):
                _explain(item, child_path(path, index), depth + 1)
    else:
        raise InvalidJson(f"a value of type {type(value).__name__} is not JSON", path=path)


# -- reading ------------------------------------------------------------------------------------------


def parse_json(source: str | bytes, *, max_bytes: int | None = None) -> Any:
    """Read one JSON document strictly; every refusal is an `InvalidJson` (or `TooLarge`) with its location."""
    size = len(source)
    if max_bytes is not None and size > max_bytes:
        raise TooLarge(
            f"a document of {size} bytes is over the limit of {max_bytes}",
            hint="split it, or raise the limit in the policy",
        )
    text = _decode(source) if isinstance(source, bytes) else source
    if text.startswith("\ufeff"):
        raise InvalidJson("the document starts with a byte order mark", path="$", hint="save it as plain UTF-8")
    duplicates: list[_Duplicate] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) == len(items):
            return made
        seen: set[str] = set()
        doubled = _Duplicate(made)
        doubled.key = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        duplicates.append(doubled)
        return doubled

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_refuse_constant, parse_int=_parse_int)
    except json.JSONDecodeError as error:
        if _opens_too_many(text):  # how deep a broken text is read depends on the Python version
            raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels", path="$") from None
        raise InvalidJson(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            path="$",
            details={"line": error.lineno, "column": error.colno},
        ) from None
    except RecursionError:
        raise InvalidJson(f"nested deeper than {MAX_DEPTH} levels", path="$") from None
    if duplicates or _needs_walk(text):
        _explain(value, "$", 0)
    return value


def read_canonical(text: str) -> Any:
    """Read back stored `canonical_text` output, which needs no strict checks."""
    try:
        value, end = _read(text)
    except (ValueError, RecursionError):
        return parse_json(text)
    return value if end == len(text) else parse_json(text)


def _decode(source: bytes) -> str:
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidJson(
            f"not UTF-8: byte {error.start} cannot be decoded", path="$", hint="re-encode the file as UTF-8"
        ) from None


def _refuse_constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not a JSON number", path="$", hint="leave the key out, or use null")


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_INT_DIGITS:
        raise InvalidJson(f"an integer of more than {MAX_INT_DIGITS} digits", path="$")
    return int(digits)


def _opens_too_many(text: str) -> bool:
    """Return whether the text, whole or not, opens more levels than we read."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    depth = 0
    for token in _BRACKET.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif token[0] in "]}":
            depth -= 1
    return False


def _needs_walk(text: str) -> bool:
    """Return whether the parsed value could hold a lone surrogate, an overflowed number or too many levels. A cheap
    test on the text.
    """
    return (
        "\\u" in text
        or text.count("{") + text.count("[") > MAX_DEPTH
        or _POWER_FIRST.match(text) is not None
        or _POWER.search(text) is not None
        or (len(text) > _DIGITS_MAX and _MANY_DIGITS.search(text) is not None)
        or (not text.isascii() and _SURROGATE.search(text) is not None)
    )


SALT_BYTES = 16


def digest(data: bytes) -> bytes:
    return sha256(data).digest()


def digest_of(value: Any) -> str:
    """Return the hex digest of plain data, through its canonical bytes."""
    return sha256(canonical_bytes(value)).hexdigest()


def salted_digest(salt: bytes, data: bytes) -> bytes:
    """Return a digest that reveals nothing about `data` once the salt is gone (LG-07)."""
    return sha256(salt + data).digest()


def short_id(prefix: str, value: Any) -> str:
    """Return a deterministic id: the prefix and 128 bits of the canonical digest."""
    return f"{prefix}_{digest_of(value)[:32]}"
