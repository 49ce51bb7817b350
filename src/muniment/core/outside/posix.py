"""Modules that exist on Linux and macOS but not on Windows, for code that needs them.

Importing them from here on Windows raises a typed error instead of naming a missing module.
"""

from __future__ import annotations

from muniment.errors import MissingDependency

try:
    import fcntl
    import resource
except ModuleNotFoundError as error:
    raise MissingDependency(
        f"this runs on Linux and macOS: Python has no {error.name} here",
        hint="on Windows, run it in WSL; the library and the other commands need nothing of it",
    ) from None

__all__ = ["fcntl", "resource"]
