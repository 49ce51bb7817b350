"""All of a store: its raw bytes, and what its tables answer."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from muniment.core.ports.engine import Reader, Row, Select
from muniment.core.ports.schema import TABLES
from muniment.handles.memory import Memory


@pytest.fixture
def stored_bytes(tmp_path: Path) -> Callable[[], bytes]:
    """Every byte of every file of the stores, read by another process, so that SQLite keeps its locks."""

    def read() -> bytes:
        command = ["find", str(tmp_path / "store"), "-type", "f", "-exec", "cat", "{}", ";"]
        return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout

    return read


@pytest.fixture
def everything() -> Callable[[Memory], str]:
    """All that any table answers."""

    def read(memory: Memory) -> str:
        def rows(reader: Reader) -> list[Row]:
            return [row for spec in TABLES for row in reader.do(Select(spec.name))]

        return repr(memory._ctx.engine.read("default", rows))

    return read
