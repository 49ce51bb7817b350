"""Modules that Linux and macOS have and Windows has not, for what cannot do without them.

Whatever imports them from here says so on Windows by a typed error, and not by the name of a module.
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
