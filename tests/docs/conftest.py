"""What the pages of the documentation are played with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warm_commands import command_line, warm_commands


@pytest.fixture(scope="session")
def muniment_line() -> Iterator[str]:
    """What a shell is to run for `muniment`."""
    with warm_commands() as place:
        yield command_line(place)
