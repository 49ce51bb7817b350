"""A coding agent that never was: seeded sessions of searching, reading, editing, testing, failing and mending.

Nothing in it is written for one question: files, functions, settings, error codes and values are drawn, and what the
tools say follows from the state that the calls before have left.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

__all__ = ["coding_sessions"]

Step = dict[str, Any]

PACKAGES = ("billing", "search", "inventory", "accounts", "shipping", "reports", "catalog", "queue")
NOUNS = ("invoice", "cursor", "ledger", "session", "parcel", "token", "currency", "index", "retry", "cache", "webhook")
VERBS = ("parse", "round", "merge", "load", "flush", "validate", "expire", "convert", "collect", "schedule", "encode")
SETTINGS = ("timeout_seconds", "max_retries", "batch_size", "page_limit", "cache_ttl", "pool_size", "backoff_ms")
FAULTS = (
    "AssertionError: expected {a}, got {b}",
    "KeyError: '{noun}_id'",
    "TypeError: {function}() missing 1 required positional argument: '{noun}'",
    "ValueError: {noun} out of range: {a}",
    "AttributeError: 'NoneType' object has no attribute '{noun}'",
    "TimeoutError: {noun} took longer than {a} ms (E{code})",
)
SESSIONS = 14


def coding_sessions(seed: int) -> Iterator[tuple[str, list[Step]]]:
    """The sessions of one project, each with what it is about. Functions and settings come up in several of them."""
    random = Random(f"coding {seed}")
    modules = [f"src/{package}/{random.choice(NOUNS)}_{random.choice(VERBS)}er.py" for package in PACKAGES]
    settings = {name: random.choice((5, 10, 20, 30, 50, 60, 100)) for name in SETTINGS}
    for number in range(SESSIONS):
        work = _Session(random, random.choice(modules), settings)
        kind = ("mend", "mend", "tune", "rename")[number % 4]
        yield getattr(work, kind)(), work.steps


class _Session:
    def __init__(self, random: Random, path: str, settings: dict[str, int]) -> None:
        self.random = random
        self.path = path
        self.settings = settings
        self.noun, self.verb = random.choice(NOUNS), random.choice(VERBS)
        self.function = f"{self.verb}_{self.noun}"
        self.package = path.split("/")[1]
        self.test = f"tests/{self.package}/test_{path.rsplit('/', 1)[1]}"
        self.node = f"{self.test}::test_{self.function}"
        self.steps: list[Step] = []

    # -- what the agent does ------------------------------------------------------------------------

    def say(self, role: str, text: str) -> None:
        self.steps.append({"role": role, "text": text})

    def call(self, tool: str, args: dict[str, Any], text: str, ok: bool = True) -> None:
        self.steps.append({"role": "tool", "tool": tool, "args": args, "text": text, "ok": ok})

    def look(self) -> None:
        line = self.random.randint(12, 240)
        self.call("grep", {"pattern": self.function}, f"{self.path}:{line}: def {self.function}({self.noun}):")
        body = "\n".join(
            f"{at}:     {self.random.choice(NOUNS)} = {self.random.choice(VERBS)}_{self.random.choice(NOUNS)}({at})"
            for at in range(line + 1, line + self.random.randint(6, 30))
        )
        self.call("read_file", {"path": self.path}, f"{line}: def {self.function}({self.noun}):\n{body}")

    def edit(self, path: str, old: str, new: str) -> None:
        self.call("edit_file", {"path": path, "old": old, "new": new}, f"1 replacement in {path}")

    def fault(self) -> str:
        draw = self.random.choice(FAULTS)
        numbers = {"a": self.random.randint(2, 900), "b": self.random.randint(2, 900)}
        code = self.random.randint(1000, 9999)
        return draw.format(noun=self.noun, function=self.function, code=code, **numbers)

    def run_tests(self, fault: str = "") -> None:
        count = self.random.randint(3, 40)
        spent = f"in {self.random.randint(1, 90) / 10}s"
        text = f"{count} passed {spent}"
        if fault:
            text = f"FAILED {self.node} - {fault}\n1 failed, {count} passed {spent}"
        self.call("run_tests", {"target": self.test}, text, not fault)

    def commit(self, message: str) -> None:
        self.call("git_commit", {"message": message}, f"[main {self.random.getrandbits(28):07x}] {message}")

    # -- what it is about ---------------------------------------------------------------------------

    def mend(self) -> str:
        topic = f"{self.node.rsplit('::', 1)[1]} fails in {self.package}"
        self.say("user", f"{topic}. Please find out why and mend it.")
        self.run_tests(first := self.fault())
        self.say("assistant", f"The test stops with {first.split(':')[0]}. I look at {self.function} first.")
        self.look()
        value = self.random.randint(1, 500)
        self.edit(self.path, f"return {self.noun}", f"return {self.noun} or {value}")
        for _ in range(self.random.randint(0, 2)):
            self.run_tests(self.fault())
            guard = f"if {self.noun} is None: raise ValueError({self.random.randint(1, 99)})"
            self.edit(self.path, f"def {self.function}", f"def {self.function}  # {guard}")
        self.run_tests()
        if self.random.random() < 0.5:
            self.call("run_command", {"command": f"ruff check {self.path}"}, "All checks passed!")
        self.commit(f"Mend {self.function}")
        self.say("assistant", f"{self.function} is mended: all tests of {self.package} pass.")
        return topic

    def tune(self) -> str:
        """A setting goes from value to value; what was tried and did not do is left behind."""
        name = self.random.choice(SETTINGS)
        path = f"config/{self.package}.toml"
        topic = f"the right {name} for {self.package}"
        self.say("user", f"Find {topic}; the nightly job is too slow.")
        self.call("read_file", {"path": path}, f"[{self.package}]\n{name} = {self.settings[name]}\nlevel = 'info'")
        for turn in range(self.random.randint(2, 4)):
            old, new = self.settings[name], self.settings[name] + self.random.choice((-3, 5, 15, 25, 40))
            self.settings[name] = new
            self.edit(path, f"{name} = {old}", f"{name} = {new}")
            spent = self.random.randint(40, 900)
            ok = self.random.random() < 0.6
            command = {"command": f"make bench PACKAGE={self.package}"}
            told = f"{self.package}: {spent} rows/s" if ok else f"exit 2: worker died after {spent} s (E{spent + 1000})"
            self.call("run_command", command, told, ok)
            if turn == 0:
                self.say("user", f"Note the figure of {self.package}, we will want to compare.")
        self.commit(f"Set {name} of {self.package} to {self.settings[name]}")
        return topic

    def rename(self) -> str:
        new = f"{self.random.choice(VERBS)}_{self.noun}_{self.random.choice(NOUNS)}"
        topic = f"{self.function} becomes {new}"
        self.say("user", f"Rename {self.function} to {new} everywhere, and delete the old helper.")
        self.look()
        self.edit(self.path, f"def {self.function}", f"def {new}")
        self.call("create_file", {"path": f"src/{self.package}/{new}.py"}, f"created src/{self.package}/{new}.py")
        self.run_tests(f"ImportError: cannot import name '{self.function}' from '{self.package}'")
        self.edit(self.test, f"import {self.function}", f"import {new}")
        self.run_tests()
        gone = f"src/{self.package}/{self.noun}_helper.py"
        self.call("delete_file", {"path": gone}, f"deleted {gone}")
        self.say("assistant", f"{self.function} is now {new}; {gone} is gone.")
        return topic
