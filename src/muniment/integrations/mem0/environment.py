"""The variables that mem0 reads, read in one place: where its folder is, and keys and addresses of its providers."""

from __future__ import annotations

import os

__all__ = ["variable"]


def variable(name: str | None) -> str | None:
    """What the environment says, where it says something."""
    return (os.environ.get(name) or None) if name else None  # noqa: TID251  # mem0's variables, not our settings
