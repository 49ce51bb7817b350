"""What the pages of the documentation are played with."""

from __future__ import annotations

import pytest

from warm_commands import command_line


@pytest.fixture(scope="session")
def muniment_line(warm_place: str | None) -> str:
    """What a shell is to run for `muniment`."""
    return command_line(warm_place)
