"""Frozen references: bytes, hashes, schemas, results and names that others rely on (docs/stability.md)."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from contract_results import exported_schemas
from frozen import GOLDENS, fault, read
from ledger_script import SALT, ledger
from public_names import async_signatures

from muniment.testing.postgres import throwaway_schema

SCHEMAS = Path(__file__).parents[2] / "schemas"


@pytest.mark.req("LG-05", "X-02", "X-03", "X-05")
@pytest.mark.parametrize("name", GOLDENS)
def test_a_golden_is_what_the_code_makes(name: str) -> None:
    """LG-05, X-05: the ledger's bytes and hashes. X-02, X-03: schemas, and what they accept and refuse."""
    if found := fault(name, GOLDENS[name]()):
        pytest.fail(found, pytrace=False)


@pytest.mark.req("LG-05", "X-06")
def test_the_ledger_is_the_same_in_a_sqlite_file(tmp_path: Path) -> None:
    assert fault("ledger.jsonl", ledger(str(tmp_path / "agent.db"))) is None


@pytest.mark.req("LG-05", "X-06")
def test_the_ledger_is_the_same_on_postgresql(postgres_dsn: str) -> None:
    with throwaway_schema(postgres_dsn) as target:
        assert fault("ledger.jsonl", ledger(target)) is None


@pytest.mark.req("LG-05")
def test_every_hash_of_the_ledger_can_be_computed_with_the_standard_library() -> None:
    """Whoever reads a ledger in ten years needs nothing but SHA-256 and JSON."""
    heads: dict[tuple[str, ...], bytes] = {}
    for line in read("ledger.jsonl"):
        entry = json.loads(line)
        scope = entry["scope"]
        session = (scope["tenant_id"], scope["user_id"], scope["session_id"])
        header = [
            "muniment.entry.v1", scope["tenant_id"], scope["user_id"], scope["agent_id"], scope["session_id"],
            scope["run_id"], entry["id"], entry["seq"], entry["ts"], entry["recorded_at"], entry["kind"],
            entry["role"], entry["trust"], ",".join(entry["flags"]),
        ]  # fmt: skip
        previous = heads.get(session) or sha256(_plain(["muniment.session.v1", *session])).digest()
        if entry["body"] is not None:
            assert entry["content_hash"] == sha256(SALT + _plain(entry["body"])).hexdigest(), line
        chained = sha256(previous + bytes.fromhex(entry["content_hash"]) + _plain(header))
        assert (entry["prev_hash"], entry["hash"]) == (previous.hex(), chained.hexdigest()), line
        heads[session] = chained.digest()
    assert len(heads) == 4


def _plain(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


@pytest.mark.req("X-02")
def test_the_committed_schemas_are_those_exported() -> None:
    committed = {path.name: path.read_bytes() for path in SCHEMAS.iterdir()}
    exported = exported_schemas()
    differing = {name for name, _ in committed.items() ^ exported.items()}
    assert not differing, "schemas/ is not what the code exports; run `muniment schema export schemas`"


def test_the_async_face_takes_the_same() -> None:
    assert set(async_signatures()) <= set(read("signatures.txt"))
