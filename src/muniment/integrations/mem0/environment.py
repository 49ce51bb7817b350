"""mem0's environment variables, read in one place: its folder, and its providers' keys and addresses."""

from __future__ import annotations

import os

__all__ = ["variable"]


def variable(name: str | None) -> str | None:
    """Value of a variable; None if it is unset or empty."""
    return (os.environ.get(name) or None) if name else None  # noqa: TID251  # mem0's variables, not our settings
