"""The judge's end of the link to the code under test: questions out, plain values and stubs in.

An exception raised over there is one of Python's own here, or a class made after the code's. Whatever could only be
believed because the code says so is a *doubt*: doubts are collected, and a suite with one is not decided here.
"""

import builtins
import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any, NoReturn

import pytest
from stubs import ClassStub, ExceptionType, ObjectStub, number_of  # type: ignore[import-not-found]
from wire import Broken, Caught, Link, NotPlain, decode, encode  # type: ignore[import-not-found]

__all__ = ["Remote"]

_SAFE_MODULES = frozenset(sys.stdlib_module_names) - {"__main__"}
_FAILED = pytest.fail.Exception
_SAFE_FUNCTIONS = ("len", "abs", "max", "min", "sum", "sorted", "repr", "print")


class Remote:
    """The code under test, as far as it can be asked."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._asked = 0
        self._stubs: dict[int, Any] = {}
        self._about: dict[int, dict[str, Any]] = {}
        self._callables: list[Any] = []
        self.doubts: dict[str, None] = {}
        self.differences: dict[int, tuple[str, float]] = {}
        """Objects that the code made of a value of the test by an operator that compares, and how: where their size
        says that there is no difference, that is its word."""
        self.sayers: set[int] = set()
        """Methods of the code by which an object says how it compares with another."""
        self.asked_as_class: dict[int, bool] = {}
        """What the test asked a module for: whether by names of classes (`Trie`) alone. The code cannot choose them."""
        self.built: set[int] = set()
        """Objects that the test made of a class it named, or members of one, that came by no other way since: their
        methods are what it tests."""
        self.contacts = 0
        """How often the code was asked for something."""

    def doubt(self, why: str) -> None:
        self.doubts.setdefault(why)

    def ask(self, op: str, **asked: Any) -> Any:
        """One question; what the code answers, or what it raises."""
        return self._exchange(op, asked, ())

    def call(self, op: str, target: Any, args: Sequence[Any], named: dict[str, Any], **more: Any) -> Any:
        """A question with arguments. What the code did to lists and mappings is done to those of the test as well."""
        handed = [*args, *named.values()]
        asked = {
            "target": self.out(target),
            "args": [self.out(each) for each in args],
            "kwargs": [[name, self.out(each)] for name, each in named.items()],
        }
        return self._exchange(op, asked | more, handed)

    def call_noting_new(self, target: Any, args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, int | None]:
        """A call, and the number of the object it answers with where nobody had met that before."""
        before = len(self._stubs)
        said = self.call("call", target, args, named)
        number = number_of(said)
        is_new = number in islice(reversed(self._stubs), len(self._stubs) - before)
        return said, number if is_new else None

    def act(self, name: str, target: Any, *args: Any) -> Any:
        return self.call("act", target, args, {}, act=name)

    def _exchange(self, op: str, asked: dict[str, Any], handed: Sequence[Any]) -> Any:
        self.contacts += 1
        try:
            return self._answer(self._told({"op": op, **asked}), handed)
        except Broken as error:
            self.doubt(f"the code under test broke off: {error}")
            raise

    def _told(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._asked += 1
        number = self._asked
        self._link.send({"n": number, **asked})
        while True:
            said: dict[str, Any] = self._link.receive()
            self._meet(said.get("new"))
            if "callback" not in said:
                break
            self._link.send(self._called_back(said))
        if said.get("n") != number:
            raise Broken("an answer to another question")
        return said

    def _answer(self, said: dict[str, Any], handed: Sequence[Any]) -> Any:
        for name, stream in (("out", sys.stdout), ("err", sys.stderr)):
            if isinstance(said.get(name), str) and said[name]:
                stream.write(said[name])
        if "doubt" in said:
            self._refuse(f"a value cannot cross: {str(said['doubt'])[:80]}")
        for old, new in zip(handed, said.get("args") or (), strict=False):
            _refresh(old, self.into(new))
        if "raise" in said:
            raise self._raised(said["raise"])
        given = said.get("ok")
        if isinstance(given, list) and given[:1] == ["given"]:
            return handed[given[1]]
        return self.into(given)

    def _refuse(self, why: str) -> NoReturn:
        self.doubt(why)
        raise NotPlain(why)

    # -- values ---------------------------------------------------------------------------------------

    def out(self, value: Any) -> Any:
        try:
            return encode(value, self._other)
        except NotPlain as error:
            self._refuse(str(error))

    def _other(self, value: Any) -> list[Any]:
        number = number_of(value)
        if number is not None:
            return ["object", number]
        name, module = getattr(value, "__qualname__", None), getattr(value, "__module__", None)
        if isinstance(value, type) and module == "builtins":
            return ["builtin", value.__name__]
        if callable(value):
            if _is_named(value, module, name):
                return ["named", module, name]
            self._callables.append(value)
            return ["callback", len(self._callables) - 1, str(name or "callback")]
        raise NotPlain(f"an object of the test's own class {type(value).__name__}")

    def into(self, given: Any) -> Any:
        return decode(given, self._opened)

    def _opened(self, tag: str, rest: list[Any]) -> Any:
        if tag == "object" and isinstance(rest[0], int) and rest[0] in self._about:
            self.built.discard(rest[0])
            return self._stub(rest[0])
        if tag == "builtin" and isinstance(getattr(builtins, rest[0], None), type):
            return getattr(builtins, rest[0])
        if tag == "builtin" and rest[0] in _SAFE_FUNCTIONS:
            return getattr(builtins, rest[0])
        raise Broken(f"nothing is tagged {tag!r:.20}")

    def _meet(self, new: Any) -> None:
        if not isinstance(new, dict):
            return
        for number, about in new.items():
            if not number.isdigit() or not isinstance(about, dict) or int(number) in self._about:
                raise Broken("an object that is none")
            self._about[int(number)] = about

    def _stub(self, number: int) -> Any:
        if number not in self._stubs:
            self._stubs[number] = self._made(number, self._about[number])
        return self._stubs[number]

    def _made(self, number: int, about: dict[str, Any]) -> Any:
        kind, name = about.get("kind"), str(about.get("name"))[:100]
        if kind == "exception":
            return self._exception_class(number, name, about.get("bases") or [])
        if kind == "class":
            bases = tuple(map(self.into, about.get("bases") or ()))
            return ClassStub(self, number, name, bases)
        if kind in ("function", "module"):
            return ObjectStub(self, number, name, None)
        owner = self.into(about.get("class"))
        if isinstance(owner, type) and issubclass(owner, BaseException) and hasattr(owner, "_muniment_class"):
            return self._exception(owner, number, (), str(about.get("text")))
        return ObjectStub(self, number, name, owner)

    # -- exceptions -----------------------------------------------------------------------------------

    def _exception_class(self, number: int, name: str, bases: list[Any]) -> type:
        known = [self.into(each) for each in bases]
        kept = tuple(each for each in known if isinstance(each, type) and issubclass(each, BaseException))
        remote = self

        def get(error: Any, wanted: str) -> Any:
            held = vars(error).get("_muniment_number")
            if held is None or wanted.startswith("__"):
                raise AttributeError(wanted)
            return remote.ask("get", target=["object", held], name=wanted)

        def told(error: Any) -> str:
            said = vars(error).get("_muniment_text")
            return str(said) if said is not None else BaseException.__str__(error)

        made: type = ExceptionType(
            name, kept or (Exception,),
            {"_muniment_class": number, "_muniment_remote": self, "__getattr__": get, "__str__": told},
        )  # fmt: skip
        return made

    def _exception(self, kind: type, number: int, args: Sequence[Any], text: str) -> BaseException:
        made: BaseException = kind.__new__(kind, *args)
        made.args = tuple(args)
        vars(made).update(_muniment_number=number, _muniment_text=text)
        return made

    def _raised(self, said: Any) -> BaseException:
        try:
            kind, text = self.into(said["class"]), str(said["text"])
            args = [self.into(each) for each in said["args"]]
        except (KeyError, TypeError) as error:
            raise Broken("no exception") from error
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            raise Broken("no exception")
        if hasattr(kind, "_muniment_class"):
            known = self._stubs.get(said["object"]) if isinstance(said.get("object"), int) else None
            made = known if isinstance(known, kind) else self._exception(kind, said["object"], args, text)
            self._stubs[said["object"]] = made
            return made
        try:
            return kind(*args)
        except TypeError:
            self.doubt(f"a {kind.__name__} came over without what it is made of")
            return RuntimeError(text)

    def _called_back(self, said: dict[str, Any]) -> dict[str, Any]:
        """A function of the test that the code was handed, and calls."""
        try:
            act = self._callables[said["callback"]]
            args = [self.into(each) for each in said["args"]]
            named = {str(name): self.into(each) for name, each in said["kwargs"]}
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise Broken("no call") from error
        made: Any = None
        with Caught() as caught:
            made = self.out(act(*args, **named))
        raised = caught.error
        if raised is None:
            return {"ok": made}
        if isinstance(raised, AssertionError | _FAILED):
            self.doubt("a check in a function that the code was handed failed there, and only the code could tell")
        names = [each.__name__ for each in type(raised).__mro__ if each.__module__ == "builtins"]
        number = vars(raised).get("_muniment_number")
        held = {} if number is None else {"object": number}
        args = [each for each in raised.args if each is None or type(each) in (str, int, float, bool)]
        return {"raise": {"class": names[0], "args": args, "text": str(raised)} | held}


def _is_named(value: Any, module: Any, name: Any) -> bool:
    """A function or class of Python's own library: the code has its own of it."""
    if not isinstance(module, str) or not isinstance(name, str) or module.partition(".")[0] not in _SAFE_MODULES:
        return False
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _refresh(old: Any, new: Any) -> None:
    """Make what the test holds what the code made of it, and keep what is inside where it is."""
    if type(old) is not type(new):
        return
    if isinstance(old, list):
        for place, (mine, other) in enumerate(zip(old, new, strict=False)):
            new[place] = _kept(mine, other)
        old[:] = new
    elif isinstance(old, dict):
        made = {key: _kept(old[key], each) if key in old else each for key, each in new.items()}
        old.clear()
        old.update(made)
    elif isinstance(old, set):
        old.clear()
        old.update(new)
    elif isinstance(old, bytearray):
        old[:] = new
    elif isinstance(old, tuple):
        for mine, other in zip(old, new, strict=False):
            _refresh(mine, other)


def _kept(old: Any, new: Any) -> Any:
    if type(old) is type(new) and isinstance(old, list | dict | set | bytearray):
        _refresh(old, new)
        return old
    return new
