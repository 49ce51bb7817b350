"""Run every check of this repository: `python tools/test.py [PART…]`, which is what `make test` and CI call.

The parts run beside each other, one more than there are cores (much of the time is spent waiting for servers and
processes). Each pytest part collects its own folders once. Tests that need nothing but Python start while browsers,
generators and frameworks are still being installed. The output of a part is printed when it ends; at the end come the
time of each part and the 25 slowest tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "test"
PYTHON = ".venv/bin/python"


@dataclass(frozen=True)
class Part:
    name: str
    commands: tuple[tuple[str, ...], ...]
    needs_tools: bool = False
    """Whether it waits for what `tools/setup.py tests` installs."""


def _pytest(name: str, *arguments: str, needs_tools: bool = False, python: str = PYTHON) -> Part:
    command = (python, "-m", "pytest", "-q", f"--junitxml=build/test/{name}.xml", *arguments)
    return Part(name, (command,), needs_tools)


_FRAMEWORKS = (
    *(f"tests/integrations/test_{name}.py" for name in ("crewai", "strands", "dspy", "litellm", "autogen")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests/integrations").glob("test_mem0*.py")),
)
"""Tests of frameworks that need other versions than the rest; they run in an environment of their own."""
# A framework may leave a socket for the garbage collector; the message would fail whichever test runs then.
_LENIENT = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")

TOOLS = Part("tools", ((sys.executable, "tools/setup.py", "tests"),))
# The longest first, so that no part runs alone at the end, and two that need no tools before those that wait for them.
PARTS = (
    TOOLS,
    _pytest("store", *(f"tests/unit/{room}" for room in ("store", "core", "runs", "handles", "surfaces", "traces"))),
    Part(
        "style",
        (
            (".venv/bin/ruff", "check", "--no-cache", "."),
            (".venv/bin/ruff", "format", "--no-cache", "--check", "."),
            (".venv/bin/mypy",),
            (".venv/bin/lint-imports",),
        ),
    ),
    _pytest("memory", "tests/unit/memory", "tests/unit/packets"),
    _pytest("surfaces", "tests/surfaces", "tests/docs", "tests/house", needs_tools=True),
    _pytest("frameworks", *_FRAMEWORKS, *_LENIENT, needs_tools=True, python=".venv-apart/bin/python"),
    _pytest("browser", "tests/browser", needs_tools=True),
    _pytest("fault", "tests/fault", needs_tools=True),
    _pytest("contract", "tests/contract", "tests/conformance", "tests/migration", needs_tools=True),
    _pytest("integrations", "tests/integrations", *(f"--ignore={path}" for path in _FRAMEWORKS), *_LENIENT),
    _pytest("clients", "tests/clients", needs_tools=True),
    _pytest("property", "tests/property", "tests/simulator", "tests/sandbox"),
    _pytest("http", "tests/http"),
    _pytest("rules", "tests/unit/rules", "tests/unit/research", "tests/unit/verify"),
    _pytest("learning", "tests/unit/learning"),
    _pytest("other", "tests/unit/moving", "tests/unit/benchmarks", "tests/goldens"),
)


class Runner:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self._tools_done = threading.Event()
        self._printing = threading.Lock()

    def run(self, part: Part) -> None:
        if part.needs_tools:
            self._tools_done.wait()
        begun = time.monotonic()
        log = BUILD / f"{part.name}.log"
        with log.open("w", encoding="utf-8") as output:
            is_good = all(_call(command, output) for command in part.commands)
        self.seconds[part.name] = time.monotonic() - begun
        if part is TOOLS:
            self._tools_done.set()
        with self._printing:
            print(f"== {part.name}: {'passed' if is_good else 'FAILED'} in {self.seconds[part.name]:.0f} s", flush=True)
            print(log.read_text(encoding="utf-8").rstrip(), flush=True)
        if not is_good:
            self.failed.append(part.name)


def main(wanted: list[str]) -> int:
    parts = [part for part in PARTS if not wanted or part.name in wanted]
    if unknown := set(wanted) - {part.name for part in PARTS}:
        print(
            f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in PARTS)}", file=sys.stderr
        )
        return 2
    BUILD.mkdir(parents=True, exist_ok=True)
    for old in BUILD.glob("*.xml"):
        old.unlink()
    begun = time.monotonic()
    if subprocess.run([sys.executable, "tools/setup.py", "dev"], cwd=ROOT, check=False).returncode:
        return 1
    runner = Runner()
    runner.seconds["setup"] = time.monotonic() - begun
    if TOOLS not in parts:
        runner._tools_done.set()
    with ThreadPoolExecutor(1 + (os.cpu_count() or 1)) as pool:
        list(pool.map(runner.run, parts))
    _report(runner, time.monotonic() - begun)
    return 1 if runner.failed else 0


def _call(command: tuple[str, ...], output: TextIO) -> bool:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode == 0


def _report(runner: Runner, total_s: float) -> None:
    tests = [
        (float(case.get("time", 0)), f"{case.get('classname')}.{case.get('name')}")
        for path in BUILD.glob("*.xml")
        for case in ElementTree.parse(path).iter("testcase")
    ]
    print("\n== the 25 slowest of", len(tests), "tests")
    for seconds, name in sorted(tests, reverse=True)[:25]:
        print(f"{seconds:7.1f} s  {name}")
    print("\n== seconds per part")
    for name, seconds in sorted(runner.seconds.items(), key=lambda item: -item[1]):
        print(f"{seconds:7.0f} s  {name}{'  FAILED' if name in runner.failed else ''}")
    print(f"{total_s:7.0f} s  all of it")
    failed = f": FAILED: {', '.join(runner.failed)}" if runner.failed else ""
    print(f"\n{len(runner.seconds) - len(runner.failed)} passed, {len(runner.failed)} failed parts{failed}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
