"""What an integration says when the package it is for is not there."""

from __future__ import annotations

from muniment.core.outside.system import not_installed
from muniment.errors import MissingDependency

__all__ = ["missing"]


def missing(package: str, extra: str, error: ModuleNotFoundError) -> MissingDependency:
    """The error to raise in place of a failed import: which package, and which extra brings it."""
    lacks = f" ({error.name})" if error.name and error.name.partition(".")[0] != package.replace("-", "_") else ""
    return not_installed(f"this needs the package {package}{lacks}", extra)
