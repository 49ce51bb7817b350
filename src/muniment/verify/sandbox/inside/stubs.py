"""Stands in the judge's process for the code under test: modules, classes and objects that live in another sandbox.

What a test asks of a stub is done over there, and what comes back is plain, or a stub again. No line of the code runs
here. Three things are kept apart from ordinary Python, so that the code cannot speak its own verdict:

- an object of the code that is asked whether it equals, differs from, precedes or holds something may deny it; where it
  agrees, that is a *doubt*, because an object can be made to agree with anything. Doubts are collected, and a suite
  with one is not decided here. The very same object is equal to itself.
- of what class an object is was said when it came over, before anybody asked.
- an exception raised over there is one of Python's own here, or a class made after the code's.
"""

import builtins
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, NoReturn

from wire import Broken, Link, NotPlain, decode, encode  # type: ignore[import-not-found]

__all__ = ["Blanks", "Finder", "Remote"]

_KEPT_DUNDERS = frozenset({"__dict__", "__annotations__", "__members__", "__version__", "__dataclass_fields__"})
_SAFE_MODULES = frozenset(sys.stdlib_module_names) - {"__main__"}


class Remote:
    """The code under test, as far as it can be asked."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._asked = 0
        self._stubs: dict[int, Any] = {}
        self._about: dict[int, dict[str, Any]] = {}
        self._callables: list[Any] = []
        self.doubts: dict[str, None] = {}
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
            said = self._link.receive()
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
        number = _number_of(value)
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
            return self._stub(rest[0])
        if tag == "builtin" and isinstance(getattr(builtins, rest[0], None), type):
            return getattr(builtins, rest[0])
        if tag == "builtin" and rest[0] in ("len", "abs", "max", "min", "sum", "sorted", "repr", "print"):
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

        return _ExceptionType(
            name, kept or (Exception,),
            {"_muniment_class": number, "_muniment_remote": self, "__getattr__": get, "__str__": told},
        )  # fmt: skip

    def _exception(self, kind: type, number: int, args: Sequence[Any], text: str) -> BaseException:
        made: BaseException = kind.__new__(kind, *args)  # type: ignore[call-overload]
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
        try:
            return {"ok": self.out(act(*args, **named))}
        except Broken:
            raise
        except BaseException as error:  # noqa: BLE001 - it goes on over there
            names = [each.__name__ for each in type(error).__mro__ if each.__module__ == "builtins"]
            number = vars(error).get("_muniment_number")
            held = {} if number is None else {"object": number}
            args = [each for each in error.args if each is None or type(each) in (str, int, float, bool)]
            return {"raise": {"class": names[0], "args": args, "text": str(error)} | held}


class _ExceptionType(type):
    """The class of exception classes: making one makes it over there."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        remote, number = cls._muniment_remote, cls._muniment_class  # type: ignore[attr-defined]
        return remote.call("call", _Numbered(number), args, named)


class _Numbered:
    """What is there under a number."""

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number


def _number_of(value: Any) -> int | None:
    kind = type(value)
    if kind is ObjectStub or kind is ClassStub or kind is _Numbered:
        number: int = object.__getattribute__(value, "_number")
        return number
    if kind is _ExceptionType:
        return int(value._muniment_class)
    if type(kind) is _ExceptionType:
        return vars(value).get("_muniment_number")
    if kind is ModuleStub:
        return _number_of(value.__dict__["_stub_of_code"])
    return None


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


# -- objects ------------------------------------------------------------------------------------------


class ObjectStub:
    """An object of the code. What it is asked is done over there."""

    __slots__ = ("__name__", "_class", "_number", "_remote")

    def __init__(self, remote: Remote, number: int, name: str, owner: Any) -> None:
        for slot, value in (("_remote", remote), ("_number", number), ("__name__", name), ("_class", owner)):
            object.__setattr__(self, slot, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _KEPT_DUNDERS:
            raise AttributeError(name)
        return self._remote.ask("get", target=["object", self._number], name=name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._remote.ask("set", target=["object", self._number], name=name, value=self._remote.out(value))

    def __delattr__(self, name: str) -> None:
        self._remote.ask("del", target=["object", self._number], name=name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._remote.call("call", self, args, named)

    def __repr__(self) -> str:
        return f"<{self.__name__} of the code under test>"

    def __hash__(self) -> int:
        return hash(("object of the code", self._number))

    def __str__(self) -> str:
        return _text(self._remote.act("str", self), self._remote)

    def __format__(self, spec: str) -> str:
        return _text(self._remote.act("format", self, spec), self._remote)

    # What an object of the code says of itself.

    def __eq__(self, other: object) -> bool:
        return self is other or _word(self, "eq", other)

    def __ne__(self, other: object) -> bool:
        return self is not other and _word(self, "ne", other)

    def __lt__(self, other: Any) -> bool:
        return _word(self, "lt", other, always=True)

    def __le__(self, other: Any) -> bool:
        return _word(self, "le", other, always=True)

    def __gt__(self, other: Any) -> bool:
        return _word(self, "gt", other, always=True)

    def __ge__(self, other: Any) -> bool:
        return _word(self, "ge", other, always=True)

    def __contains__(self, other: object) -> bool:
        return _word(self, "contains", other)

    # What comes back is looked at by the test.

    def __len__(self) -> int:
        return _whole(self._remote.act("len", self), self._remote)

    def __index__(self) -> int:
        return _whole(self._remote.act("index", self), self._remote)

    def __bool__(self) -> bool:
        return self._remote.act("bool", self) is True

    def __iter__(self) -> Iterator[Any]:
        held = self._remote.act("iter", self)
        while True:
            try:
                value = self._remote.act("next", held)
            except StopIteration:
                return
            yield value

    def __next__(self) -> Any:
        return self._remote.act("next", self)

    def __enter__(self) -> Any:
        return self._remote.act("enter", self)

    def __exit__(self, kind: Any, error: Any, _trace: Any) -> bool:
        return self._remote.act("exit", self, kind, error, None) is True


class ClassStub(ObjectStub):
    """A class of the code."""

    __slots__ = ("_bases",)

    def __init__(self, remote: Remote, number: int, name: str, bases: tuple[Any, ...]) -> None:
        super().__init__(remote, number, name, None)
        object.__setattr__(self, "_bases", bases)

    def __instancecheck__(self, value: Any) -> bool:
        return type(value) in (ObjectStub, ClassStub) and _descends(object.__getattribute__(value, "_class"), self)

    def __subclasscheck__(self, value: Any) -> bool:
        return _descends(value, self)

    __hash__ = ObjectStub.__hash__


def _descends(found: Any, wanted: ClassStub) -> bool:
    if found is wanted:
        return True
    return type(found) is ClassStub and any(_descends(base, wanted) for base in object.__getattribute__(found, "_bases"))


def _word(stub: ObjectStub, act: str, other: Any, *, always: bool = False) -> bool:
    """The word of an object about itself. Its no is taken; its yes, and every order, leaves the suite undecided."""
    remote = stub._remote
    said = remote.act(act, stub, other) is True
    if said or always:
        remote.doubt(f"an object of the code, {stub.__name__}, says of itself whether it is {act} to something")
    return said


def _text(value: Any, remote: Remote) -> str:
    return value if type(value) is str else _unlike(remote, "text")


def _whole(value: Any, remote: Remote) -> int:
    return value if type(value) is int else _unlike(remote, "number")


def _unlike(remote: Remote, wanted: str) -> Any:
    remote.doubt(f"an object of the code stands where a {wanted} is wanted")
    raise TypeError(f"a {wanted} was wanted")


def _two_sided(name: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    def mine(stub: ObjectStub, other: Any) -> Any:
        return stub._remote.act(name, stub, other)

    def theirs(stub: ObjectStub, other: Any) -> Any:
        return stub._remote.act(name, other, stub)

    return mine, theirs


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and_", "or_", "xor"):
    _mine, _theirs = _two_sided(_name)
    setattr(ObjectStub, f"__{_name.rstrip('_')}__", _mine)
    setattr(ObjectStub, f"__r{_name.rstrip('_')}__", _theirs)
for _name in ("neg", "pos", "abs", "invert", "int", "float", "bytes", "round", "reversed", "getitem", "setitem", "delitem"):
    setattr(ObjectStub, f"__{_name}__", lambda stub, *args, _act=_name: stub._remote.act(_act, stub, *args))


# -- modules ------------------------------------------------------------------------------------------


class ModuleStub(ModuleType):
    """A module of the code: names are asked for over there."""

    def __getattr__(self, name: str) -> Any:
        stub = self.__dict__.get("_stub_of_code")
        if stub is None or (name.startswith("__") and name not in ("__all__", *_KEPT_DUNDERS)):
            raise AttributeError(name)
        if name == "__all__":
            return stub._remote.act("names", stub)
        below = sys.modules.get(f"{self.__name__}.{name}")
        return below if below is not None else getattr(stub, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or isinstance(value, ModuleStub | BlankModule):
            super().__setattr__(name, value)
            return
        stub, before = self.__dict__["_stub_of_code"], self.__dict__.setdefault("_before_patches", {})
        if name not in before and hasattr(stub, name):
            before[name] = getattr(stub, name)
        setattr(stub, name, value)

    def __delattr__(self, name: str) -> None:
        """What a patch put there goes, and what was there before comes back: so patches are undone."""
        stub, before = self.__dict__["_stub_of_code"], self.__dict__.get("_before_patches", {})
        if name in self.__dict__:
            super().__delattr__(name)
        elif name in before:
            setattr(stub, name, before.pop(name))
        else:
            delattr(stub, name)


class Blank:
    """Something of the code while tests are counted without it: it can be named and called, and says nothing."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Blank(name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return Blank(self.__name__)


class BlankModule(ModuleType):
    """A module of the code while tests are counted without it."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []
        if name.startswith("__"):
            raise AttributeError(name)
        return Blank(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of the code by the names that its files have, before anything of the same name is looked for."""

    def __init__(self, remote: Remote, names: Sequence[str]) -> None:
        self._remote, self._names = remote, frozenset(names)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname not in self._names:
            return None
        has_more = any(name.startswith(f"{fullname}.") for name in self._names)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=has_more)

    def create_module(self, spec: Any) -> ModuleType:
        return ModuleStub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        stub = self._remote.ask("import", name=module.__name__)
        if type(stub) is not ObjectStub:
            raise Broken("no module")
        module.__dict__["_stub_of_code"] = stub


class Blanks(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Any module that is nowhere to be found is one of the code's, while tests are counted without it."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        return BlankModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return None
