"""Run pytest on a suite in a sandbox, and report the tests and their results over a pipe.

    judge.main([JOB, RESULTS, SOURCE, SINK])

JOB is a file, read and removed first. `outside`: nothing of the output is here, and its modules are stubs whose
functions run in another sandbox, called over SOURCE and SINK. `inside`: the output is next to the suite and runs in
this process, which it can then change at will. `collect`: only count the tests. The tests are counted, in a separate
process, before anything of the code is called; RESULTS gets one line, at the very end, with the nonce of the job.

From outside, the code's functions take and return plain values and raise exceptions. Any other use of the code in a
test (an instance of its classes, a callback, a patch) is a *doubt*, and a suite with one is not decided here.
"""

import builtins
import contextlib
import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

import pytest
from wire import Broken, Link, NotPlain, decode, encode  # type: ignore[import-not-found]

FIXED = ("-q", "-rN", "--color=no", "-p", "no:cacheprovider")


def main(given: list[str]) -> None:
    """Count the tests, run them, and report."""
    job_path, results, *wires = given
    with open(job_path, encoding="utf-8") as file:
        job: dict[str, Any] = json.load(file)
    os.unlink(job_path)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins that happen to be installed are not part of the test
    for name in ("judge", "wire"):
        sys.modules.pop(name, None)  # suite and output may have modules with these names
    sys.path[0] = os.getcwd()  # as `python -m pytest` does
    args = list(job["args"])
    report: dict[str, Any] = {"nonce": job["nonce"], "expected": job.get("expected")}
    if job["mode"] != "inside":
        report["expected"] = collect(args)
    if job["mode"] != "collect" and report["expected"] is not None:
        remote = Remote(Link(*map(int, wires))) if job["mode"] == "outside" else None
        if remote is not None:
            sys.meta_path.insert(0, Finder(remote, job["modules"]))
        reporter = Reporter(remote)
        code = int(pytest.main([*FIXED, *args], [reporter]))
        doubts = [*reporter.doubts, *(() if remote is None else remote.doubts)]
        report |= {"collected": reporter.collected, "results": reporter.results, "doubts": doubts, "exit": code}
    with os.fdopen(int(results), "w") as file:
        json.dump(report, file)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def collect(args: list[str]) -> list[str] | None:
    """Ids of the tests without the code, counted in a separate process; None if that fails."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            reporter = Reporter()
            sys.meta_path.append(Blanks())
            pytest.main([*FIXED, "--collect-only", *args], [reporter])
        with os.fdopen(sink, "w") as file:
            json.dump(None if reporter.broken else reporter.collected, file)
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as file:
        written = file.read()
    os.waitpid(child, 0)
    found = json.loads(written) if written else None
    return None if found is None else [str(each) for each in found]


class Reporter:
    """Collects pytest's tests and results."""

    def __init__(self, remote: "Remote | None" = None) -> None:
        self._remote = remote
        self._calls = 0
        self.collected: list[str] = []
        self.results: dict[str, str] = {}
        self.doubts: list[str] = []
        self.broken = False
        """True if something could not be collected."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected = [item.nodeid for item in session.items]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.broken = self.broken or report.failed

    def pytest_runtest_logstart(self) -> None:
        self._calls = 0 if self._remote is None else self._remote.calls

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        known = self.results.get(report.nodeid)
        if report.failed:
            self.results[report.nodeid] = "failed"
        elif report.skipped:
            self.results[report.nodeid] = known or "skipped"
            if self._remote is not None and self._remote.calls != self._calls:
                self.doubts.append("a test was skipped after the code had been asked")
        elif report.when == "call":
            self.results[report.nodeid] = known or "passed"


# -- the code under test, as far as it can be asked -----------------------------------------------------


class Remote:
    """The judge's end of the link to the code: names and calls go out, plain values and exceptions come back."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._classes: dict[str, type] = {}
        self.doubts: dict[str, None] = {}
        self.calls = 0
        """Number of requests to the code."""

    def refuse(self, why: str) -> NoReturn:
        self.doubts.setdefault(why)
        raise NotPlain(why)

    def names(self, module: str) -> list[str]:
        return [str(name) for name in self._ask({"op": "names", "module": module})["names"]]

    def load(self, module: str) -> None:
        self._ask({"op": "import", "module": module})

    def get(self, module: str, path: tuple[str, ...]) -> Any:
        answer = self._ask({"op": "get", "module": module, "path": path})
        if "callable" in answer:
            return Callable(self, module, path)
        return self._class(answer["exception"]) if "exception" in answer else decode(answer["ok"])

    def call(self, module: str, path: tuple[str, ...], args: Sequence[Any], named: dict[str, Any]) -> Any:
        """Call a function of the code, and copy its changes to list and mapping arguments into the test's own."""
        handed = [*args, *named.values()]
        try:
            asked = {"args": [encode(each) for each in args], "kwargs": [[k, encode(v)] for k, v in named.items()]}
        except NotPlain as error:
            self.refuse(f"the code is given {error}")
        answer = self._ask({"op": "call", "module": module, "path": path, **asked})
        for old, new in zip(handed, answer.get("args", ()), strict=False):
            _refresh(old, decode(new))
        return handed[answer["given"]] if "given" in answer else decode(answer["ok"])

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        try:
            self._link.send({"n": self.calls, **asked})
            answer: dict[str, Any] = self._link.receive()
            if answer.get("n") != self.calls:
                raise Broken("an answer to another question")
            for name, stream in (("out", sys.stdout), ("err", sys.stderr)):
                stream.write(str(answer.get(name) or ""))
            raised = self._raised(answer["raise"]) if "raise" in answer else None
        except Broken as error:
            self.doubts.setdefault(f"the code under test broke off: {error}")
            raise
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise Broken("no answer") from error
        if raised is not None:
            raise raised
        if "doubt" in answer:
            self.refuse(f"the code gives {str(answer['doubt'])[:80]}")
        return answer

    def _raised(self, given: dict[str, Any]) -> BaseException:
        kind = self._class(given["class"])
        args, text = [decode(each) for each in given["args"]], str(given["text"])
        try:
            made: BaseException = kind.__new__(kind, *args)
            made.__init__(*args)  # type: ignore[misc]
        except TypeError:
            self.doubts.setdefault(f"a {kind.__name__} came over without what it is made of")
            return RuntimeError(text)
        for name, value in dict(given["fields"]).items():
            if not str(name).startswith("__"):
                setattr(made, str(name), decode(value))
        return made

    def _class(self, given: Any) -> type:
        """An exception class of Python, or a copy of one of the code's, made without running any of its code."""
        if isinstance(given, str):
            found = getattr(builtins, given, None)
            return found if isinstance(found, type) and issubclass(found, BaseException) else Exception
        name, bases = str(given[0]), given[1]
        if name not in self._classes:
            kept = dict.fromkeys(self._class(base) for base in bases)
            self._classes[name] = type(name.rpartition(".")[2], tuple(kept) or (Exception,), {"__init__": _keep_args})
        return self._classes[name]


def _keep_args(error: BaseException, *args: Any, **_named: Any) -> None:
    error.args = args


class Callable:
    """A function or class of the code. Calls run on the other side."""

    __slots__ = ("__name__", "_module", "_path", "_remote")

    def __init__(self, remote: Remote, module: str, path: tuple[str, ...]) -> None:
        self._remote, self._module, self._path, self.__name__ = remote, module, path, path[-1]

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._remote.call(self._module, self._path, args, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._remote.get(self._module, (*self._path, name))

    def __eq__(self, other: object) -> bool:
        self._remote.refuse(f"the function {self.__name__} of the code is compared")

    __lt__ = __le__ = __gt__ = __ge__ = __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        self._remote.refuse(f"the function {self.__name__} of the code stands for a truth value")


class ModuleStub(ModuleType):
    """A module of the code, whose names are looked up on the other side."""

    def __getattr__(self, name: str) -> Any:
        remote: Remote | None = self.__dict__.get("_remote_code")
        if remote is not None and name == "__all__":
            return remote.names(self.__name__)
        if remote is None or name.startswith("__"):
            raise AttributeError(name)
        below = sys.modules.get(f"{self.__name__}.{name}")
        return below if below is not None else remote.get(self.__name__, (name,))

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__") and not isinstance(value, ModuleStub):
            self.__dict__["_remote_code"].refuse(f"the test patches {name!r} of the code")
        super().__setattr__(name, value)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of the code by file name, before any others with the same name."""

    def __init__(self, remote: Remote, names: Sequence[str]) -> None:
        self._remote, self._names = remote, frozenset(names)

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> Any:
        if fullname not in self._names:
            return None
        has_more = any(name.startswith(f"{fullname}.") for name in self._names)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=has_more)

    def create_module(self, spec: Any) -> ModuleType:
        return ModuleStub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        self._remote.load(module.__name__)
        module.__dict__["_remote_code"] = self._remote


# -- while tests are counted ----------------------------------------------------------------------------


class Blank:
    """Stands in for names of the code while tests are counted: it has attributes, can be called, and does nothing."""

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


class Blanks(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Takes any module that cannot be found as one of the code's."""

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        return BlankModule(spec.name)

    def exec_module(self, _module: ModuleType) -> None:
        return None


# -- values that the code changed -----------------------------------------------------------------------


def _refresh(old: Any, new: Any) -> None:
    """Update the test's object in place to the code's version, keeping nested objects."""
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
