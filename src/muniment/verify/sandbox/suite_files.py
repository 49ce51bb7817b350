"""Which files of a suite and of an output go where, and which modules are the output's. Pure.

The suite's files lie with the judge, the output's with the code. Where both must lie together, nothing of the output
that pytest or Python would run by its name alone comes along.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

__all__ = ["beside_suite", "module_names", "roots_of", "shadowed"]

_PYTEST_OWN = frozenset(
    {"_pytest", "colorama", "exceptiongroup", "iniconfig", "packaging", "pluggy", "py", "pygments", "tomli"}
)
_ASSERTING = frozenset(
    {"assertpy", "ddt", "deepdiff", "dirty_equals", "expects", "hamcrest", "hypothesis", "inline_snapshot",
     "jsonschema", "mock", "nose", "numpy", "pandas", "parameterized", "polars", "schemathesis", "scipy",
     "snapshottest", "sure", "syrupy", "testfixtures", "testtools", "torch", "unittest2", "xarray"}
)  # fmt: skip
"""What suites compare with: an output that brings one of these says by it what its own tests find."""
_RUN_BY_NAME = frozenset({"conftest", "sitecustomize", "usercustomize"})
_SETTINGS = frozenset(
    {"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"}
)


def _is_run_by_name(path: str) -> bool:
    """Would Python or pytest take it up by its name: settings, plugins, start-up code, compiled files?"""
    parts = PurePosixPath(path).parts
    stems = {part.split(".")[0] for part in parts}
    return (
        parts[-1].lower() in _SETTINGS
        or PurePosixPath(path).suffix in (".pth", ".pyc", ".pyo")
        or "__pycache__" in parts
        or any(part.endswith((".dist-info", ".egg-info")) for part in parts)
        or not stems.isdisjoint(_RUN_BY_NAME)
        or any(_is_pytest_own(stem) for stem in (parts[0].split(".")[0], parts[-1].split(".")[0]))
    )


def _is_pytest_own(name: str) -> bool:
    return name.startswith("pytest") or name in _PYTEST_OWN


def beside_suite(output: Mapping[str, bytes]) -> dict[str, bytes]:
    """What of an output may lie in one folder with the suite."""
    return {path: data for path, data in output.items() if not _is_run_by_name(path)}


def roots_of(suite: Iterable[str]) -> tuple[str, ...]:
    """The folders that modules are looked for in: the scratch itself, and where test files lie, as pytest has it."""
    folders = {str(PurePosixPath(path).parent) for path in suite if path.endswith(".py")}
    return (".", *sorted(folders - {"."}))


def module_names(output: Iterable[str], suite: Iterable[str]) -> tuple[str, ...]:
    """The modules that an output has, as a test would import them; what the suite brings itself is not among them."""
    given = list(suite)
    roots = roots_of(given)
    own = {name for path in given for name in _names_of(path, roots)}
    found = {name for path in output for name in _names_of(path, roots)}
    tops = {name for name in found if "." not in name and not _is_taken(name)}
    return tuple(sorted(name for name in found - own if name.split(".")[0] in tops))


def _is_taken(name: str) -> bool:
    return name in sys.stdlib_module_names or name in _RUN_BY_NAME or _is_pytest_own(name)


def _names_of(path: str, roots: Iterable[str]) -> set[str]:
    found: set[str] = set()
    if not path.endswith(".py"):
        return found
    for root in roots:
        pure = PurePosixPath(path)
        if root != "." and not pure.is_relative_to(root):
            continue
        parts = pure.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if all(part.isidentifier() for part in parts):
            found |= {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return found


def shadowed(output: Iterable[str], suite: Mapping[str, bytes]) -> tuple[str, ...]:
    """Modules that the suite imports from Python, or compares with, and the output has as well: which is not known."""
    roots, known = roots_of(suite), sys.stdlib_module_names | _ASSERTING
    mine = {name for path in output for name in _names_of(path, roots) if name in known}
    return tuple(sorted(mine & {name for data in suite.values() for name in _imported(data)})) if mine else ()


def _imported(data: bytes) -> set[str]:
    """The top-level modules that a file imports; of one that is no Python, none."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name.split(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names
