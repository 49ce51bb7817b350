"""Finds modules of the code under test where a test imports them: as stubs, or as blanks while tests are counted."""

import importlib.abc
import importlib.machinery
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from stubs import ModuleStub, ObjectStub  # type: ignore[import-not-found]
from wire import Broken  # type: ignore[import-not-found]

__all__ = ["Blanks", "Finder"]


class Blank:
    """Something of the code while tests are counted without it: it can be named and called, and says nothing."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Blank(name)

    def __call__(self, *_args: Any, **_named: Any) -> Any:
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

    def __init__(self, remote: Any, names: Sequence[str]) -> None:
        self._remote, self._names = remote, frozenset(names)

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> Any:
        if fullname not in self._names:
            return None
        has_more = any(name.startswith(f"{fullname}.") for name in self._names)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=has_more)

    def create_module(self, spec: Any) -> ModuleType:
        made: ModuleType = ModuleStub(spec.name)
        return made

    def exec_module(self, module: ModuleType) -> None:
        stub = self._remote.ask("import", name=module.__name__)
        if type(stub) is not ObjectStub:
            raise Broken("no module")
        module.__dict__["_stub_of_code"] = stub


class Blanks(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Any module that is nowhere to be found is one of the code's, while tests are counted without it."""

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        return BlankModule(spec.name)

    def exec_module(self, _module: ModuleType) -> None:
        return None
