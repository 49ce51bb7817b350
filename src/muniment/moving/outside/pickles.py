"""Pickled points of Qdrant's local storage, read without unpickling: a small machine that builds plain values alone.

A pickle is a program. This reads the few instructions that a point is written with and refuses every other: it calls
nothing, imports nothing, and a class it meets is a name. The vector is skipped, and memory is bounded by the bytes
given.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from muniment.errors import UnsafeFile

__all__ = ["read_point"]

_MODULES = ("qdrant_client.",)
_CLASSES = ("PointStruct", "SparseVector", "UUID")
_FLOATS = re.compile(rb"(?:G.{8})+", re.DOTALL)
_DEPTH_MAX = 64
_MARK = object()


class _Name(NamedTuple):
    """A class that was named; it is never looked up."""

    module: str
    name: str


class _Shell(dict[str, Any]):
    """What an object of such a class holds."""


def read_point(data: bytes, *, path: str = "$") -> dict[str, Any]:
    """The id and payload of a pickled point; raises `UnsafeFile` for anything else."""
    try:
        made = _Machine(data).run()
        point = made.get("__dict__", made) if isinstance(made, _Shell) else None
        if not isinstance(point, dict) or not isinstance(point.get("payload"), dict | type(None)):
            raise _Refused("it is no point of a collection")
        return {"id": _plain(point.get("id"), 0), "payload": _plain(point.get("payload") or {}, 0)}
    except (IndexError, KeyError, struct.error, TypeError, ValueError, UnicodeDecodeError, OverflowError) as error:
        said = str(error) if isinstance(error, _Refused) else "it is broken"
        raise UnsafeFile(f"a pickled record was not read: {said}", path=path) from None


class _Refused(ValueError):
    """An instruction that no point is written with."""


def _plain(value: Any, depth: int) -> Any:
    if depth > _DEPTH_MAX:
        raise _Refused("it is nested too deep, or in itself")
    if isinstance(value, dict):
        return {key: _plain(each, depth + 1) for key, each in value.items() if isinstance(key, str)}
    if isinstance(value, list | tuple):
        return [_plain(each, depth + 1) for each in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return None


class _Machine:
    """The stack, the memo and the marks of a pickle; each instruction is a method or a push."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        while True:
            code = self._data[self._at]
            if code == 0x2E:  # STOP
                return self._stack.pop()
            if code == 0x47:  # BINFLOAT, and all that follow it: a vector, which nobody reads
                found = _FLOATS.match(self._data, self._at)
                if found is None:
                    raise _Refused("it is broken")
                self._at = found.end()
                self._stack.extend([0.0] * ((found.end() - found.start()) // 9))
                continue
            step = _STEPS.get(code)
            if step is None:
                raise _Refused(f"it holds the instruction {code:#04x}")
            self._at += 1
            step(self)

    # -- bytes ----------------------------------------------------------------------------------------

    def take(self, count: int) -> bytes:
        end = self._at + count
        if count < 0 or end > len(self._data):
            raise _Refused("it is cut off")
        found = self._data[self._at : end]
        self._at = end
        return found

    def pass_over(self, count: int) -> None:
        self.take(count)

    def number(self, count: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(count), "little", signed=signed)

    def text(self, count: int) -> None:
        self._stack.append(self.take(self.number(count)).decode("utf-8", "surrogatepass"))

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise _Refused("its marks do not match")
        return value

    def since_mark(self) -> list[Any]:
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise _Refused("its marks do not match")
        found = self._stack[at + 1 :]
        del self._stack[at:]
        return found

    # -- memo -----------------------------------------------------------------------------------------

    def keep(self, place: int) -> None:
        if place > len(self._data):
            raise _Refused("its memo is larger than itself")
        self._memo[place] = self._stack[-1]

    def memoize(self) -> None:
        self.keep(len(self._memo))

    def fetch(self, place: int) -> None:
        self._stack.append(self._memo[place])

    # -- containers -----------------------------------------------------------------------------------

    def set_items(self, pairs: list[Any]) -> None:
        held = self._stack[-1]
        if not isinstance(held, dict) or isinstance(held, _Shell) or len(pairs) % 2:
            raise _Refused("it sets keys of what has none")
        for at in range(0, len(pairs), 2):
            if not isinstance(pairs[at], str | int):
                raise _Refused("a key of it is no text")
            held[pairs[at]] = pairs[at + 1]

    def append(self, values: list[Any]) -> None:
        held = self._stack[-1]
        if not isinstance(held, list):
            raise _Refused("it appends to what is no list")
        held.extend(values)

    def pack(self, count: int) -> None:
        values = [self.pop() for _ in range(count)]
        self._stack.append(tuple(reversed(values)))

    # -- classes --------------------------------------------------------------------------------------

    def name_class(self) -> None:
        name, module = self.pop(), self.pop()
        is_known = (
            isinstance(module, str)
            and isinstance(name, str)
            and (module.startswith(_MODULES) or module == "uuid")
            and name in _CLASSES
        )
        if not is_known:
            raise _Refused(f"it names {str(module)[:60]}.{str(name)[:60]}")
        self._stack.append(_Name(module, name))

    def new_object(self) -> None:
        given, name = self.pop(), self.pop()
        if not isinstance(name, _Name) or given != ():
            raise _Refused("it makes an object with arguments")
        self._stack.append(_Shell())

    def build(self) -> None:
        state, held = self.pop(), self._stack[-1]
        if not isinstance(held, _Shell) or not isinstance(state, dict):
            raise _Refused("it changes what is no object")
        held.update({key: value for key, value in state.items() if isinstance(key, str)})


_STEPS: dict[int, Callable[[_Machine], None]] = {
    0x80: lambda m: m.pass_over(1),  # PROTO
    0x95: lambda m: m.pass_over(8),  # FRAME
    0x8C: lambda m: m.text(1),  # SHORT_BINUNICODE
    ord("X"): lambda m: m.text(4),  # BINUNICODE
    0x8D: lambda m: m.text(8),  # BINUNICODE8
    0x94: _Machine.memoize,
    ord("q"): lambda m: m.keep(m.number(1)),  # BINPUT
    ord("r"): lambda m: m.keep(m.number(4)),  # LONG_BINPUT
    ord("h"): lambda m: m.fetch(m.number(1)),  # BINGET
    ord("j"): lambda m: m.fetch(m.number(4)),  # LONG_BINGET
    ord("N"): lambda m: m.push(None),
    0x88: lambda m: m.push(True),
    0x89: lambda m: m.push(False),
    ord("J"): lambda m: m.push(m.number(4, signed=True)),  # BININT
    ord("K"): lambda m: m.push(m.number(1)),  # BININT1
    ord("M"): lambda m: m.push(m.number(2)),  # BININT2
    0x8A: lambda m: m.push(m.number(m.number(1), signed=True)),  # LONG1
    ord("}"): lambda m: m.push({}),
    ord("]"): lambda m: m.push([]),
    ord(")"): lambda m: m.push(()),
    0x8F: lambda m: m.push([]),  # EMPTY_SET
    ord("("): lambda m: m.push(_MARK),
    ord("s"): lambda m: m.set_items(list(reversed([m.pop(), m.pop()]))),  # SETITEM
    ord("u"): lambda m: m.set_items(m.since_mark()),  # SETITEMS
    ord("a"): lambda m: m.append([m.pop()]),  # APPEND
    ord("e"): lambda m: m.append(m.since_mark()),  # APPENDS
    0x90: lambda m: m.append(m.since_mark()),  # ADDITEMS
    ord("t"): lambda m: m.push(tuple(m.since_mark())),  # TUPLE
    0x85: lambda m: m.pack(1),
    0x86: lambda m: m.pack(2),
    0x87: lambda m: m.pack(3),
    0x93: _Machine.name_class,
    0x81: _Machine.new_object,
    ord("b"): _Machine.build,
}
"""By their codes, the instructions that a point is written with."""
