"""A store for each test, in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import muniment


@pytest.fixture
def mem() -> Iterator[muniment.Memory]:
    with muniment.open() as opened:
        yield opened
