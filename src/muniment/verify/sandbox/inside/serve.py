"""Run in the sandbox of the code under test: make the calls that the judge requests, and return plain values.

    serve.main([SOURCE, SINK, ROOT...])

The code shares this process and can answer anything. The judge treats an answer as a value to check, never as a
verdict.
"""

import builtins
import contextlib
import importlib
import io
import os
import sys
from typing import Any

from wire import Broken, Link, NotPlain, decode, encode  # type: ignore[import-not-found]

TEXT_CHARS_MAX = 1 << 20
_BASES_MAX = 20


def main(given: list[str]) -> None:
    """Serve until the judge is gone. Modules are looked up in the roots first, as they would be next to the tests."""
    source, sink, *roots = given
    for name in ("serve", "wire"):
        sys.modules.pop(name, None)  # the output may have modules with these names
    sys.path[:1] = roots
    link = Link(int(source), int(sink))
    try:
        while True:
            asked = link.receive()
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                answer = _answer(asked)
            answer |= {"out": out.getvalue()[:TEXT_CHARS_MAX], "err": err.getvalue()[:TEXT_CHARS_MAX]}
            try:
                link.send({"n": asked["n"], **answer})
            except NotPlain as error:
                link.send({"n": asked["n"], "doubt": str(error)})
    except Broken:
        os._exit(0)


class Caught:
    """Catches anything the code raises, as that is a result for the test. `Broken` is not caught."""

    error: BaseException | None = None

    def __enter__(self) -> "Caught":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self.error = error
        return not isinstance(error, Broken)


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    with Caught() as caught:
        answer = _ACTS[asked["op"]](asked)
    if caught.error is None:
        return answer
    return {"doubt": str(caught.error)} if isinstance(caught.error, NotPlain) else _raised(caught.error)


def _import(asked: dict[str, Any]) -> dict[str, Any]:
    importlib.import_module(asked["module"])
    return {}


def _names(asked: dict[str, Any]) -> dict[str, Any]:
    """Names `import *` takes from a module, as far as they can cross."""
    module = sys.modules[asked["module"]]
    names: list[str] = []
    for name in getattr(module, "__all__", None) or [each for each in vars(module) if not each.startswith("_")]:
        with contextlib.suppress(NotPlain):
            _get({**asked, "path": [name]})
            names.append(str(name))
    return {"names": names}


def _get(asked: dict[str, Any]) -> dict[str, Any]:
    """Look up a name in a module: a plain value, an exception class, or a callable."""
    value = _found(asked)
    if isinstance(value, type) and issubclass(value, BaseException):
        return {"exception": _class_of(value)}
    if callable(value):
        return {"callable": True}
    return {"ok": encode(value)}


def _call(asked: dict[str, Any]) -> dict[str, Any]:
    """Make a call. Changes to list and mapping arguments are returned with the result."""
    args = [decode(each) for each in asked["args"]]
    named = {name: decode(each) for name, each in asked["kwargs"]}
    handed = [*args, *named.values()]
    before = [encode(each) for each in handed]
    result = _found(asked)(*args, **named)
    same = next((place for place, each in enumerate(handed) if each is result and _is_mutable(each)), None)
    answer: dict[str, Any] = {"ok": encode(result)} if same is None else {"given": same}
    after = [encode(each) for each in handed]
    return answer if before == after else answer | {"args": after}


def _found(asked: dict[str, Any]) -> Any:
    value: Any = sys.modules[asked["module"]]
    for name in asked["path"]:
        value = getattr(value, name)
    return value


def _raised(error: BaseException) -> dict[str, Any]:
    fields = {}
    for name, value in vars(error).items():
        with contextlib.suppress(NotPlain):
            fields[name] = encode(value)
    try:
        args = [encode(each) for each in error.args]
    except NotPlain:
        args = []
    return {"raise": {"class": _class_of(type(error)), "args": args, "text": str(error), "fields": fields}}


def _class_of(kind: type, depth: int = 0) -> Any:
    """Describe an exception class: Python's own by name, one of the code's by name and bases."""
    if getattr(builtins, kind.__name__, None) is kind or depth > _BASES_MAX:
        return kind.__name__
    return [f"{kind.__module__}.{kind.__qualname__}", [_class_of(base, depth + 1) for base in kind.__bases__]]


def _is_mutable(value: Any) -> bool:
    return isinstance(value, list | dict | set | bytearray)


_ACTS = {"import": _import, "names": _names, "get": _get, "call": _call}
