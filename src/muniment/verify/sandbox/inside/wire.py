"""What the judge and the code under test say to each other: messages over two pipes, and values in them.

A value that crosses is plain: exactly one of Python's own types, not a class derived from one. Whatever else there
is stays where it is and crosses as a number that stands for it, so an object of the code never meets an operator of
the judge: no `__eq__`, no `__hash__`, no `__reduce__` of its own. A message is four bytes of length and JSON.
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

__all__ = ["DEPTH_MAX", "Broken", "Caught", "Link", "NotPlain", "decode", "encode"]

MESSAGE_BYTES_MAX = 16 << 20
DEPTH_MAX = 100
"""Values within values."""
_EXACT_MAX = 1 << 53

Other = Callable[[Any], list[Any]]
Opened = Callable[[str, list[Any]], Any]


class NotPlain(Exception):
    """A value cannot cross."""


class Broken(BaseException):
    """The other side is gone, or speaks nonsense. Not an Exception, so that no test catches it by accident."""


class Caught:
    """Keeps what is raised inside, whoever raises it: it is an answer to somebody else. `Broken` goes on."""

    error: BaseException | None = None

    def __enter__(self) -> "Caught":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return not isinstance(error, Broken)


class Link:
    """One end: what is sent goes out whole, what is received comes in whole."""

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


# -- values out ---------------------------------------------------------------------------------------


def encode(value: Any, other: Other, depth: int = 0) -> Any:
    """A value as JSON: what is plain as itself, the rest as `other` says."""
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
        return [_LISTED[kind], [encode(each, other, depth + 1) for each in value]]
    if kind in _PAIRED:
        pairs = [[encode(key, other, depth + 1), encode(each, other, depth + 1)] for key, each in value.items()]
        return [_PAIRED[kind], pairs]
    if kind in _WRITTEN:
        name, write, _ = _WRITTEN[kind]
        return [name, *write(value)]
    return other(value)


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
    type(NotImplemented): ("notimplemented", lambda _: [], lambda: NotImplemented),
}  # fmt: skip


# -- values in ----------------------------------------------------------------------------------------

_FROM_LIST: dict[str, Callable[[list[Any]], Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque,
}  # fmt: skip
_FROM_PAIRS: dict[str, Callable[[list[tuple[Any, Any]]], Any]] = {
    "dict": dict,
    "counter": lambda pairs: Counter(dict(pairs)),
    "ordered": OrderedDict,
    "default": lambda pairs: defaultdict(None, pairs),
}
_READ = {name: read for name, _, read in _WRITTEN.values()}


def decode(given: Any, opened: Opened, depth: int = 0) -> Any:
    """The value; `opened` says what a tag stands for that is not plain. Raises `Broken` for what is no value."""
    if depth > DEPTH_MAX + 1:
        raise Broken("values too deep within values")
    if given is None or isinstance(given, bool | str | int | float):
        return given
    if not isinstance(given, list) or not given or not isinstance(given[0], str):
        raise Broken("no value")
    tag, rest = given[0], given[1:]
    try:
        return _read(tag, rest, opened, depth)
    except (ValueError, TypeError, OverflowError, ArithmeticError, AttributeError) as error:
        raise Broken("no value") from error


def _read(tag: str, rest: list[Any], opened: Opened, depth: int) -> Any:
    if tag in _FROM_LIST:
        return _FROM_LIST[tag]([decode(each, opened, depth + 1) for each in rest[0]])
    if tag in _FROM_PAIRS:
        pairs = [(decode(key, opened, depth + 1), decode(each, opened, depth + 1)) for key, each in rest[0]]
        return _FROM_PAIRS[tag](pairs)
    if tag == "int":
        return int(rest[0], 16)
    if tag == "float":
        return float(rest[0])
    if tag in _READ:
        return _READ[tag](*rest)
    return opened(tag, rest)
