"""Runs in the sandbox of the code under test: does what the judge asks of the code, and answers with plain values.

    serve.main([SOURCE, SINK, ROOT...])

What it answers is the code's word, whoever wrote it: the code shares this process and may answer what it likes. The
judge takes it as values to look at, never as a verdict.
"""

import builtins
import contextlib
import importlib
import io
import json
import operator
import os
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from wire import Broken, Caught, Link, NotPlain, decode, encode  # type: ignore[import-not-found]

SAID_CHARS_MAX = 1 << 20
_FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)

ACTS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(operator, name)
        for name in (
            *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift"),
            *("rshift", "neg", "pos", "abs", "invert", "getitem", "setitem", "delitem", "contains", "index"),
            *("eq", "ne", "lt", "le", "gt", "ge"),
        )
    },
    "len": len, "iter": iter, "next": next, "str": str, "int": int, "float": float, "bool": bool, "bytes": bytes,
    "format": format, "round": round, "reversed": reversed, "divmod": divmod,
    "enter": lambda value: type(value).__enter__(value),
    "exit": lambda value, *error: type(value).__exit__(value, *error),
    "names": lambda value: list(getattr(value, "__all__", None) or [n for n in vars(value) if not n.startswith("_")]),
}  # fmt: skip


class Server:
    """Objects by the numbers that stand for them, and what is done with them."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._new: dict[str, Any] = {}
        self._callbacks: dict[int, Any] = {}

    def serve(self) -> None:
        while True:
            asked = self._link.receive()
            self._answer(asked)

    def _answer(self, asked: dict[str, Any]) -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            said = self._tried(lambda: self._do(asked))
        self._new, new = {}, self._new
        said |= {
            "n": asked["n"],
            "new": new,
            "out": out.getvalue()[:SAID_CHARS_MAX],
            "err": err.getvalue()[:SAID_CHARS_MAX],
        }
        try:
            self._link.send(said)
        except NotPlain as error:
            self._link.send({"n": asked["n"], "doubt": str(error)})

    def _tried(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        said: dict[str, Any] = {}
        with Caught() as caught:
            said = work()
        if caught.error is None:
            return said
        if isinstance(caught.error, NotPlain):
            return {"doubt": str(caught.error)}
        return self._raised(caught.error)

    def _raised(self, error: Any) -> dict[str, Any]:
        try:
            args = [self._out(each) for each in error.args]
        except NotPlain:
            args = []
        return {
            "raise": {"class": self._out(type(error)), "args": args, "text": str(error), "object": self._number(error)}
        }

    def _do(self, asked: dict[str, Any]) -> dict[str, Any]:
        op = asked["op"]
        if op == "import":
            importlib.import_module(asked["name"])
            return {"ok": self._out(sys.modules[asked["name"]])}
        target = self._in(asked["target"])
        if op == "get":
            return {"ok": self._out(getattr(target, asked["name"]))}
        if op == "set":
            setattr(target, asked["name"], self._in(asked["value"]))
            return {"ok": None}
        if op == "del":
            delattr(target, asked["name"])
            return {"ok": None}
        args = [self._in(each) for each in asked["args"]]
        named = {name: self._in(each) for name, each in asked["kwargs"]}
        act = target if op == "call" else ACTS[asked["act"]]
        return self._called(act, args if op == "call" else [target, *args], args, named)

    def _called(self, act: Any, given: list[Any], args: list[Any], named: dict[str, Any]) -> dict[str, Any]:
        """Call it; what it did to the lists and mappings it was given goes back with the answer."""
        handed = [*args, *named.values()]
        before = self._written(handed)
        result = act(*given, **named)
        same = next((place for place, each in enumerate(handed) if each is result and _is_mutable(each)), None)
        said: dict[str, Any] = {"ok": self._out(result) if same is None else ["given", same]}
        after = self._written(handed)
        if before != after and after is not None:
            said["args"] = json.loads(after)
        return said

    def _written(self, handed: list[Any]) -> str | None:
        if not any(map(_is_mutable, handed)):
            return None
        try:
            return json.dumps([self._out(each) for each in handed])
        except NotPlain:
            return None

    # -- values ---------------------------------------------------------------------------------------

    def _out(self, value: Any) -> Any:
        return encode(value, self._other)

    def _other(self, value: Any) -> list[Any]:
        name = getattr(value, "__name__", None)
        is_callable = isinstance(value, type | BuiltinFunctionType) and isinstance(name, str)
        if is_callable and getattr(builtins, str(name), None) is value:
            return ["builtin", name]
        return ["object", self._number(value)]

    def _number(self, value: Any) -> int:
        known = self._numbers.get(id(value))
        if known is not None:
            return known
        number = self._numbers[id(value)] = len(self._objects)
        self._objects.append(value)
        self._new[str(number)] = self._about(value)
        return number

    def _about(self, value: Any) -> dict[str, Any]:
        about: dict[str, Any] = {"name": str(getattr(value, "__name__", type(value).__name__)), "kind": "object"}
        if isinstance(value, ModuleType):
            about["kind"] = "module"
        elif isinstance(value, _FUNCTIONS):
            about["kind"] = "function"
        elif isinstance(value, type):
            about["kind"] = "exception" if issubclass(value, BaseException) else "class"
            about["bases"] = [self._out(base) for base in value.__bases__]
        else:
            about["class"] = self._out(type(value))
            if isinstance(value, BaseException):
                about["text"] = str(value)
        return about

    def _in(self, given: Any) -> Any:
        return decode(given, self._opened)

    def _opened(self, tag: str, rest: list[Any]) -> Any:
        if tag == "object":
            return self._objects[rest[0]]
        if tag == "builtin":
            return getattr(builtins, rest[0])
        if tag == "named":
            found: Any = importlib.import_module(rest[0])
            for part in rest[1].split("."):
                found = getattr(found, part)
            return found
        if tag == "callback":
            return self._callbacks.setdefault(rest[0], self._callback(rest[0], rest[1]))
        raise Broken(f"nothing is tagged {tag}")

    def _callback(self, number: int, name: str) -> Any:
        def call_back(*args: Any, **named: Any) -> Any:
            asked = {
                "callback": number,
                "args": [self._out(each) for each in args],
                "kwargs": [[key, self._out(each)] for key, each in named.items()],
            }
            self._new, new = {}, self._new
            self._link.send(asked | {"new": new})
            said = self._link.receive()
            while "n" in said:  # the judge asks something of the code before it answers
                self._answer(said)
                said = self._link.receive()
            if "raise" in said:
                raise self._exception(said["raise"])
            return self._in(said["ok"])

        call_back.__name__ = call_back.__qualname__ = name
        return call_back

    def _exception(self, said: dict[str, Any]) -> BaseException:
        if "object" in said:
            found = self._objects[said["object"]]
            if isinstance(found, BaseException):
                return found
        kind = getattr(builtins, said["class"], RuntimeError)
        try:
            made = kind(*[self._in(each) for each in said["args"]])
        except TypeError:
            made = RuntimeError(said["text"])
        return made if isinstance(made, BaseException) else RuntimeError(said["text"])


def _is_mutable(value: Any) -> bool:
    return isinstance(value, list | dict | set | bytearray)


def main(given: list[str]) -> None:
    """Serve until the judge is gone. Modules are looked for in the roots first, as they would be beside the tests."""
    source, sink, *roots = given
    for name in ("serve", "wire"):
        sys.modules.pop(name, None)  # the output may have modules of these names
    sys.path[:1] = roots
    try:
        Server(Link(int(source), int(sink))).serve()
    except Broken:
        os._exit(0)
