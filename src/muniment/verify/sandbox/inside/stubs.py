"""Stands in the judge's process for objects of the code under test, which live in another sandbox.

What a test asks of a stub is done over there, and what comes back is plain, or a stub again. No line of the code runs
here. Some things are not as in ordinary Python, so that the code cannot speak its own verdict:

- an object of the code that is asked whether it equals, differs from, precedes or holds something may deny it; where it
  agrees, that is a doubt, because an object can be made to agree with anything. The very same object equals itself.
- the same holds where the question is put as a difference (`abs(found - 0.3) < 1e-9`, `found ^ {1, 2}`): an object that
  is handed a value of the test by such an operator, and answers that there is next to none (`nearness`), is believed no
  more. Nor is one that agrees by a method that texts and sets have (`startswith`, `issubset`), nor any from which
  something is subtracted (`found - 3 > 0` asks for an order); unless the test made it itself, of a class that it named
  (`Trie().startswith("app")`, `Dist(10) - 3 == 7`). A function of such a name, of a module, is a function.
- of what class an object is was said when it came over, before anybody asked.
"""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from nearness import joined, measure_says_same, origin_of, says_same  # type: ignore[import-not-found]

__all__ = ["ClassStub", "ExceptionType", "ModuleStub", "Numbered", "ObjectStub", "number_of"]

_SAYS = frozenset(
    {"startswith", "endswith", "issubset", "issuperset", "isdisjoint", "difference", "symmetric_difference"}
)
"""What texts and sets are asked about another: an object of the code that has such a method says what it likes."""
_DIFFERS = frozenset({"difference", "symmetric_difference"})
"""Of these, the ones whose empty answer agrees."""
_KEPT_DUNDERS = frozenset({"__dict__", "__annotations__", "__members__", "__version__", "__dataclass_fields__"})


class ExceptionType(type):
    """The class of exception classes: making one makes it over there."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        remote, number = cls._muniment_remote, cls._muniment_class  # type: ignore[attr-defined]
        return remote.call("call", Numbered(number), args, named)


class Numbered:
    """What is there under a number."""

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number


def number_of(value: Any) -> int | None:
    kind = type(value)
    if kind is ObjectStub or kind is ClassStub or kind is Numbered:
        number: int = object.__getattribute__(value, "_number")
        return number
    if kind is ExceptionType:
        return int(value._muniment_class)
    if type(kind) is ExceptionType:
        found: int | None = vars(value).get("_muniment_number")
        return found
    if kind is ModuleStub:
        return number_of(value.__dict__["_stub_of_code"])
    return None


class ObjectStub:
    """An object of the code. What it is asked is done over there."""

    __slots__ = ("__name__", "_class", "_number", "_remote")

    def __init__(self, remote: Any, number: int, name: str, owner: Any) -> None:
        for slot, value in (("_remote", remote), ("_number", number), ("__name__", name), ("_class", owner)):
            object.__setattr__(self, slot, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _KEPT_DUNDERS:
            raise AttributeError(name)
        found = self._remote.ask("get", target=["object", self._number], name=name)
        if name in _SAYS and type(found) is ObjectStub and self._number not in self._remote.built:
            self._remote.sayers.add(found._number)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        self._remote.ask("set", target=["object", self._number], name=name, value=self._remote.out(value))

    def __delattr__(self, name: str) -> None:
        self._remote.ask("del", target=["object", self._number], name=name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        remote = self._remote
        said, number = remote.call_noting_new(self, args, named)
        if number is not None and type(self) is ClassStub and remote.asked_as_class.get(self._number):
            remote.built.add(number)
        if self._number not in remote.sayers:
            return said
        differs = self.__name__ in _DIFFERS
        agrees = says_same("sub", said, None) if differs else said is not False
        return _weighed(self, self.__name__, said, ("sub" if differs else "", 0.0), agrees=agrees)

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
        return _whole(_measured(self, "len"), self._remote)

    def __index__(self) -> int:
        return _whole(_measured(self, "index"), self._remote)

    def __bool__(self) -> bool:
        return _measured(self, "bool") is True

    def __iter__(self) -> Iterator[Any]:
        held, is_empty = self._remote.act("iter", self), True
        while True:
            try:
                value = self._remote.act("next", held)
            except StopIteration:
                if is_empty and self._number in self._remote.differences:
                    _weighed(self, "iter", None, ("", 0.0), agrees=True)
                return
            is_empty = False
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

    def __init__(self, remote: Any, number: int, name: str, bases: tuple[Any, ...]) -> None:
        super().__init__(remote, number, name, None)
        object.__setattr__(self, "_bases", bases)

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        is_member = type(found) is ObjectStub and object.__getattribute__(found, "_class") is self
        if is_member and self._remote.asked_as_class.get(self._number):
            self._remote.built.add(found._number)
        return found

    def __instancecheck__(self, value: Any) -> bool:
        return type(value) in (ObjectStub, ClassStub) and _descends(object.__getattribute__(value, "_class"), self)

    def __subclasscheck__(self, value: Any) -> bool:
        return _descends(value, self)

    __hash__ = ObjectStub.__hash__


def _descends(found: Any, wanted: ClassStub) -> bool:
    if found is wanted:
        return True
    return type(found) is ClassStub and any(
        _descends(base, wanted) for base in object.__getattribute__(found, "_bases")
    )


def _word(stub: ObjectStub, act: str, other: Any, *, always: bool = False) -> bool:
    """The word of an object about itself. Its no is taken; its yes, and every order, leaves the suite undecided."""
    remote = stub._remote
    said = remote.act(act, stub, other) is True
    if said or always:
        remote.doubt(f"an object of the code, {stub.__name__}, says of itself whether it is {act} to something")
    return said


def _text(value: Any, remote: Any) -> str:
    return value if type(value) is str else _unlike(remote, "text")


def _whole(value: Any, remote: Any) -> int:
    return value if type(value) is int else _unlike(remote, "number")


def _unlike(remote: Any, wanted: str) -> Any:
    remote.doubt(f"an object of the code stands where a {wanted} is wanted")
    raise TypeError(f"a {wanted} was wanted")


def _weighed(stub: ObjectStub, act: str, said: Any, origin: tuple[str, float], *, agrees: bool) -> Any:
    """What an object answers that knows the value it is held against: a plain answer that agrees is its own word.

    Another object is remembered as the difference that it is, for the questions that follow.
    """
    number, remote = number_of(said), stub._remote
    if number is not None:
        known = remote.differences.get(number, origin)
        remote.differences[number] = origin if known == origin else ("", 0.0)
    elif agrees:
        remote.doubt(f"an object of the code, {stub.__name__}, says of itself how it compares with something ({act})")
    return said


def _measured(stub: ObjectStub, act: str, *args: Any) -> Any:
    """What an object says of its size or truth; of a difference with a value of the test, that is its own word."""
    said = stub._remote.act(act, stub, *args)
    origin = stub._remote.differences.get(stub._number)
    return said if origin is None else _weighed(stub, act, said, origin, agrees=measure_says_same(act, said, origin))


def _two_sided(name: str, *, compares: bool) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    def weighed(stub: ObjectStub, other: Any, said: Any) -> Any:
        differences, number = stub._remote.differences, number_of(other)
        before = differences.get(stub._number) or differences.get(number)
        if before is not None:
            return _weighed(stub, name, said, joined(before, name, other), agrees=True)
        if not compares or number is not None:
            return said
        if name == "sub" and stub._number not in stub._remote.built:  # `found - 3 > 0` asks for an order
            return _weighed(stub, name, said, ("", 0.0), agrees=True)
        return _weighed(stub, name, said, origin_of(name, other), agrees=says_same(name, said, other))

    def mine(stub: ObjectStub, other: Any) -> Any:
        return weighed(stub, other, stub._remote.act(name, stub, other))

    def theirs(stub: ObjectStub, other: Any) -> Any:
        return weighed(stub, other, stub._remote.act(name, other, stub))

    return mine, theirs


_COMPARING = ("add", "sub", "truediv", "floordiv", "mod", "and_", "or_", "xor")
"""By these the value that a test wants can be put to an object, and a neutral answer says that it is the same."""
for _name in (*_COMPARING, "mul", "pow", "matmul", "lshift", "rshift"):
    _mine, _theirs = _two_sided(_name, compares=_name in _COMPARING)
    setattr(ObjectStub, f"__{_name.rstrip('_')}__", _mine)
    setattr(ObjectStub, f"__r{_name.rstrip('_')}__", _theirs)
for _name in ("neg", "pos", "abs", "invert", "int", "float", "round"):
    setattr(ObjectStub, f"__{_name}__", lambda stub, *args, _act=_name: _measured(stub, _act, *args))
for _name in ("bytes", "reversed", "getitem", "setitem", "delitem"):
    setattr(ObjectStub, f"__{_name}__", lambda stub, *args, _act=_name: stub._remote.act(_act, stub, *args))


def _asked_by_name(module: ObjectStub, name: str) -> Any:
    """What a module has by a name that the test wrote. Whatever was once asked for as a function is no class."""
    remote = module._remote
    found = remote.ask("get", target=["object", module._number], name=name)
    number = number_of(found)
    if number is not None:
        remote.asked_as_class[number] = remote.asked_as_class.get(number, True) and name[:1].isupper()
    return found


class ModuleStub(ModuleType):
    """A module of the code: names are asked for over there."""

    def __getattr__(self, name: str) -> Any:
        stub = self.__dict__.get("_stub_of_code")
        if stub is None or (name.startswith("__") and name not in ("__all__", *_KEPT_DUNDERS)):
            raise AttributeError(name)
        if name == "__all__":
            return stub._remote.act("names", stub)
        below = sys.modules.get(f"{self.__name__}.{name}")
        return below if below is not None else _asked_by_name(stub, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or isinstance(value, ModuleStub):
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
