"""What a process loads, by name and not by time: a bare import next to nothing, a search only what searching takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import muniment

BARE = """
import sys
before = set(sys.modules)
import muniment
loaded = set(sys.modules) - before
"""

SEARCH = """
import sys
import muniment
with muniment.open(sys.argv[1]) as mem:
    (hit, *_) = mem.run(user_id="ana").search("Where did I move?")
    assert "Berlin" in hit.text
loaded = set(sys.modules)
"""

TELL = """
import json
print(json.dumps(sorted(loaded)))
"""

BUILT = """
from muniment.core.record import Record

def below(cls):
    return [found for sub in cls.__subclasses__() for found in (sub, *below(sub))]

loaded = {cls.__name__ for cls in below(Record) if cls.__pydantic_complete__}
"""

NEVER = (
    "asyncio", "click", "email", "hypothesis", "http", "importlib.metadata", "importlib.resources", "mcp", "psycopg",
    "pytest", "rich", "tempfile", "urllib.request", "zipfile",
)  # fmt: skip

NOT_TO_SEARCH = (
    # whole rooms
    "aio", "contracts", "integrations", "learning", "research", "rules", "runs", "surfaces", "testing",
    "verify",
    # of the rooms that a search goes through
    "core.outside.http", "core.outside.token_counters",
    "core.predicates", "core.regex", "core.stats", "core.text.token", "handles.bank",
    "handles.derived", "handles.rulebook", "handles.runner", "handles.study", "memory.candidates",
    "memory._rules", "memory._extract_checks",
    "memory.corpus", "memory.documents", "memory.facts", "memory.insights",
    "memory.outside", "memory.patches", "memory.extracting",
    "memory.working_state", "memory.vectors", "packets.builds",
    "packets.compose", "packets.gather", "packets.layout", "packets.page", "packets.pool", "packets.render",
    "store.changes",
    "store.derivation", "store.dumps", "store.engines.postgres", "store.engines._sqlite_residue",
    "store.forget", "store.admission", "store.secrets",
    "store.positions", "store.reading", "store.reports", "store.scrub",
    "store.transfer", "store.users", "store.verify", "store.append",
)  # fmt: skip


def loaded_by(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script + TELL, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    names: list[str] = json.loads(done.stdout)
    return names


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "agent.db")
    with muniment.open(path) as mem:
        run = mem.run(user_id="ana", session_id="s1", objective="talk")
        run.observe("user", "I moved to Berlin in May.", speaker="Ana")
        run.observe("assistant", "How do you like it?", tags=["home"], metadata={"mood": "curious"})
    return path


def test_a_bare_import_loads_the_package_alone() -> None:
    loaded = loaded_by(BARE)
    assert [name for name in loaded if name.startswith("muniment")] == ["muniment"]
    assert not {"pydantic", "numpy", "sqlite3", "json", "dataclasses", *NEVER} & set(loaded)


def test_a_search_loads_what_searching_takes(store: str) -> None:
    loaded = loaded_by(SEARCH, store)
    assert sorted(set(NEVER) & set(loaded)) == []
    banned = tuple(f"muniment.{name}" for name in NOT_TO_SEARCH)
    assert [name for name in loaded if f"{name}.".startswith(banned)] == []


def test_a_search_builds_no_validator(store: str) -> None:
    assert loaded_by(SEARCH + BUILT, store) == []


def test_what_must_not_be_loaded_is_there_to_be_loaded() -> None:
    """Else a module that was renamed would pass unseen."""
    package = Path(muniment.__file__).parent
    names = [".".join(path.relative_to(package).with_suffix("").parts) + "." for path in package.rglob("*.py")]
    for name in NOT_TO_SEARCH:
        assert any(found.startswith(name) for found in names), name
