"""The same life of a rule gives the same bytes: on every engine, and in another process (X-01)."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from rule_stores import store
from tell_rules import tell

from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine


@cache
def in_memory() -> bytes:
    with store(seed="told") as mem:
        return tell(mem)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RC-14", "RC-15", "RC-16")
def test_a_file_tells_what_the_memory_tells(tmp_path: Path) -> None:
    with store(open_engine(tmp_path / "store.db"), seed="told") as mem:
        assert tell(mem) == in_memory()


@pytest.mark.soak
@pytest.mark.slow
def test_a_server_tells_what_the_memory_tells(postgres_dsn: str, postgres_schema: str) -> None:
    with store(PostgresEngine(postgres_dsn, schema=postgres_schema), seed="told") as mem:
        assert tell(mem) == in_memory()


@pytest.mark.soak
@pytest.mark.slow
def test_another_process_tells_the_same() -> None:
    script = Path(__file__).parent / "tell_rules.py"
    done = subprocess.run(
        [sys.executable, str(script)], env=os.environ | {"PYTHONHASHSEED": "7"}, capture_output=True, check=True
    )
    assert done.stdout == in_memory()
