"""The error of an integration whose package is not installed."""

from __future__ import annotations

from muniment.core.outside.system import not_installed
from muniment.errors import MissingDependency

__all__ = ["missing"]


def missing(package: str, extra: str, error: ModuleNotFoundError) -> MissingDependency:
    """Make the error for a failed import, naming the package and the extra that brings it."""
    lacks = f" ({error.name})" if error.name and error.name.partition(".")[0] != package.replace("-", "_") else ""
    return not_installed(f"this needs the package {package}{lacks}", extra)
