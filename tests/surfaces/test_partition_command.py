"""`muniment store partition` and `store citus-script`: what they say, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_room import Commands, in_folder

import muniment

store = Commands("store")
URL = "postgresql://u:secret@127.0.0.1:1/none"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return in_folder(tmp_path, monkeypatch)


def test_a_store_is_spread_and_says_so(postgres_dsn: str, postgres_schema: str) -> None:
    db = f"{postgres_dsn}&schema={postgres_schema}"
    with muniment.open(db) as mem:
        mem.run(tenant_id="acme", user_id="ana", session_id="s").observe("user", "I moved to Berlin in May.")
    done = store.document("partition", "--db", db, "--parts", "2", "--own", "acme=2")
    assert (done["parts"], done["own"]) == (2, {"acme": 2})
    assert "entries" in done["tables"]
    assert done["rows"] > 3
    again = store.text("partition", "--db", db, "--parts", "2", "--own", "acme=2")
    assert again == "in 2 partitions already: nothing to do\n"
    refused = store.failure("partition", "--db", f"{db}_none", "--parts", "2")
    assert refused["code"] == "schema_mismatch"
    opened = Commands().failure("verify", "--db", f"{db}&partitions=3")
    assert opened["code"] == "schema_mismatch"
    assert "muniment store partition --parts 3 --own acme=2" in opened["hint"]
    Commands().text("verify", "--db", f"{db}&partitions=2")


def test_a_tenant_loses_its_partitions_by_name_alone(postgres_dsn: str, postgres_schema: str) -> None:
    """Every table would be copied for it; who gives the number of the others may know nothing of them."""
    db = f"{postgres_dsn}&schema={postgres_schema}"
    muniment.open(db).close()
    store.text("partition", "--db", db, "--parts", "2", "--own", "acme=2", "--own", "globex=1")
    refused = store.failure("partition", "--db", db, "--parts", "3", "--own", "globex=1")
    assert refused["code"] == "conflict"
    assert "--own acme=2 keeps them, --own acme=0 puts it among the others" in refused["hint"]
    Commands().text("verify", "--db", f"{db}&partitions=2")
    said = store.text("partition", "--db", db, "--parts", "2", "--own", "acme=0", "--own", "globex=1")
    assert said.splitlines()[1:] == ["acme has none of its own", "globex has 1 of its own"]
    assert "27 tables brought into whole tables" in store.text("partition", "--db", db, "--parts", "0")


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["--db", "store.db", "--parts", "4"], "$.db"),
        (["--db", URL, "--parts", "1"], "$.parts"),
        (["--db", URL, "--parts", "65"], "$.parts"),
        (["--db", URL, "--parts", "0", "--own", "acme=2"], "$.parts"),
        (["--db", URL, "--parts", "4", "--own", "acme"], "$.own"),
        (["--db", URL, "--parts", "4", "--own", "=4"], "$.own"),
        (["--db", URL, "--parts", "4", "--own", "acme=x"], "$.own"),
        (["--db", URL, "--parts", "4", "--own", "acme=65"], "$.own"),
        (["--db", URL, "--parts", "4", "--own", "acme=2", "--own", "acme=3"], "$.own"),
    ],
    ids=lambda given: " ".join(given[2:]) if isinstance(given, list) else "",
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(words: list[str], path: str, folder: Path) -> None:
    error = store.failure("partition", *words, code=2)
    assert error["code"] == "invalid_input"
    assert error["path"] == path
    assert "secret" not in str(error)
    assert list(folder.iterdir()) == []


def test_a_server_that_is_not_there() -> None:
    error = store.failure("partition", "--db", URL, "--parts", "4")
    assert error["code"] == "storage_lost"
    assert "secret" not in str(error)


def test_the_script_for_citus() -> None:
    text = store.text("citus-script", "--db", f"{URL}?schema=agents")
    assert "create_distributed_table('agents.entries', 'tenant_id', shard_count => 32)" in text
    assert "secret" not in text
    assert store.document("citus-script", "--db", URL, "--shards", "8")["sql"].endswith("COMMIT;\n")
    assert store.failure("citus-script", "--db", "store.db", code=2)["path"] == "$.db"
