"""Messages and plain values between the judge and the code under test, over two pipes.

A value that crosses is exactly one of Python's own types, not a subclass. Nothing else crosses, so no operator of the
judge ever meets an object of the code: no `__eq__`, `__hash__` or `__reduce__` of its own. A message is JSON after a
four-byte length.
"""

import datetime
import json
import math
import os
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath
from typing import Any

DEPTH_MAX = 100
"""Maximum nesting of values."""
MESSAGE_BYTES_MAX = 16 << 20
_EXACT_MAX = 1 << 53


class NotPlain(Exception):
    """Raised if a value cannot cross."""


class Broken(BaseException):
    """The other side is gone, or its messages are invalid. Not an Exception, so that no test catches it by chance."""


class Link:
    """One end of the link: messages are sent and received whole."""

    def __init__(self, source: int, sink: int) -> None:
        self._source, self._sink = source, sink

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message, separators=(",", ":")).encode()
        if len(data) > MESSAGE_BYTES_MAX:
            raise NotPlain("a message over its limit")
        view = memoryview(len(data).to_bytes(4, "big") + data)
        try:
            while view:
                view = view[os.write(self._sink, view) :]
        except OSError as error:
            raise Broken("the other side is gone") from error

    def receive(self) -> dict[str, Any]:
        size = int.from_bytes(self._read(4), "big")
        if size > MESSAGE_BYTES_MAX:
            raise Broken("a message over its limit")
        try:
            message = json.loads(self._read(size))
        except (ValueError, RecursionError) as error:
            raise Broken("no message") from error
        if not isinstance(message, dict):
            raise Broken("no message")
        return message

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = os.read(self._source, min(size - len(data), 1 << 16))
            if not part:
                raise Broken("the other side is gone")
            data += part
        return bytes(data)


# -- values ---------------------------------------------------------------------------------------------


def encode(value: Any, depth: int = 0) -> Any:
    """Encode a plain value as JSON; raise `NotPlain` for any other."""
    if depth > DEPTH_MAX:
        raise NotPlain("values too deep within values")
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if abs(value) < _EXACT_MAX else ["int", hex(value)]
    if kind is float:
        return value if math.isfinite(value) else ["float", repr(value)]
    if kind in _LISTED:
        return [_LISTED[kind], [encode(each, depth + 1) for each in value]]
    if kind in _PAIRED:
        return [_PAIRED[kind], [[encode(key, depth + 1), encode(each, depth + 1)] for key, each in value.items()]]
    if kind in _WRITTEN:
        name, write, _ = _WRITTEN[kind]
        return [name, *write(value)]
    raise NotPlain(f"an object of the class {kind.__name__}")


def decode(given: Any, depth: int = 0) -> Any:
    """Decode a value; raise `Broken` if it is invalid."""
    if depth > DEPTH_MAX + 1:
        raise Broken("values too deep within values")
    if given is None or isinstance(given, bool | str | int | float):
        return given
    if not isinstance(given, list) or not given or not isinstance(given[0], str):
        raise Broken("no value")
    tag, rest = given[0], given[1:]
    try:
        if tag in _FROM_LIST:
            return _FROM_LIST[tag]([decode(each, depth + 1) for each in rest[0]])
        if tag in _FROM_PAIRS:
            return _FROM_PAIRS[tag]([(decode(key, depth + 1), decode(each, depth + 1)) for key, each in rest[0]])
        return _READ[tag](*rest)
    except (ValueError, TypeError, LookupError, OverflowError, ArithmeticError, AttributeError) as error:
        raise Broken("no value") from error


def _zoned(value: datetime.datetime | datetime.time) -> list[Any]:
    if value.tzinfo is not None and type(value.tzinfo) is not datetime.timezone:
        raise NotPlain("a time of a zone that is not plain")
    return [value.isoformat()]


_LISTED: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset", deque: "deque"}
_PAIRED: dict[type, str] = {dict: "dict", Counter: "counter", OrderedDict: "ordered", defaultdict: "default"}
_WRITTEN: dict[type, tuple[str, Callable[[Any], list[Any]], Callable[..., Any]]] = {
    bytes: ("bytes", lambda value: [value.hex()], bytes.fromhex),
    bytearray: ("bytearray", lambda value: [value.hex()], bytearray.fromhex),
    complex: ("complex", lambda value: [repr(value.real), repr(value.imag)], lambda a, b: complex(float(a), float(b))),
    range: ("range", lambda value: [value.start, value.stop, value.step], range),
    slice: ("slice", lambda value: [value.start, value.stop, value.step], slice),
    Decimal: ("decimal", lambda value: [str(value)], Decimal),
    Fraction: ("fraction", lambda value: [hex(value.numerator), hex(value.denominator)],
               lambda a, b: Fraction(int(a, 16), int(b, 16))),
    datetime.date: ("date", lambda value: [value.isoformat()], datetime.date.fromisoformat),
    datetime.datetime: ("datetime", _zoned, datetime.datetime.fromisoformat),
    datetime.time: ("time", _zoned, datetime.time.fromisoformat),
    datetime.timedelta: ("timedelta", lambda value: [value.days, value.seconds, value.microseconds],
                         lambda days, seconds, micros: datetime.timedelta(days, seconds, micros)),
    uuid.UUID: ("uuid", lambda value: [value.hex], uuid.UUID),
    PosixPath: ("path", lambda value: [str(value)], PosixPath),
    type(Ellipsis): ("ellipsis", lambda _: [], lambda: ...),
}  # fmt: skip
_FROM_LIST: dict[str, Callable[[list[Any]], Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque,
}  # fmt: skip
_FROM_PAIRS: dict[str, Callable[[list[tuple[Any, Any]]], Any]] = {
    "dict": dict,
    "counter": lambda pairs: Counter(dict(pairs)),
    "ordered": OrderedDict,
    "default": lambda pairs: defaultdict(None, pairs),
}
_READ: dict[str, Callable[..., Any]] = {name: read for name, _, read in _WRITTEN.values()} | {
    "int": lambda text: int(text, 16),
    "float": float,
}
