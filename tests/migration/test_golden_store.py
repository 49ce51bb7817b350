"""What an earlier release wrote is read to the byte: its file, its dumps, its packets, its schemas.

`tests/golden/store_0_1` was written by `tools/write_golden_store.py` at the commit that its README names. Here it is
read with the code of today: the file as it lay there, and its dumps brought into a fresh store on every engine.
"""

from __future__ import annotations

import importlib
import json
import lzma
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice, zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from muniment.handles.memory import Memory
from muniment.surfaces.cli.main import cli
from muniment.testing.postgres_server import throwaway_schema

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "store_0_1"
TENANTS = ("acme", "default")

ENTRIES = {
    "kind": "message tool_result state_patch system step",
    "role": "user assistant tool system developer",
    "trust": "user assistant tool external",
    "flag": "redacted instruction_like",
    "event": "actions_planned artifact_kept candidate_decided candidate_proposed claim_demoted claim_made "
    "claim_retracted claim_verified conflict_recorded conflict_settled document_added document_retracted draft_made "
    "fact_disputed fact_reinforced fact_remembered fact_retracted failure_recorded fold_made insight_judged "
    "insight_promoted insight_supposed memory_kept memory_recalled output_verified plan_ended plan_made "
    "procedure_retired procedure_used procedure_written question_closed question_opened rule_reported rule_tested "
    "rulebook_changed rules_selected run_finished run_locked run_logged run_started run_unlocked snapshot_taken "
    "source_checked state_patched study_changed working_set_changed",
}
"""What the entries of the ledger are, by kind, role, trust, flag, and the event that they tell."""
ITEMS = {
    "build": "composed",
    "candidate": "declined promoted proposed",
    "claim": "candidate retracted verified",
    "conflict": "open settled",
    "document": "live retracted superseded",
    "draft": "made",
    "event_log": "failed open passed",
    "fact": "active deprecated disputed",
    "failure": "recorded",
    "fold": "made",
    "insight": "rejected testing unvalidated validated",
    "plan": "aborted applied made undone",
    "procedure": "active retired",
    "question": "closed open",
    "reasoning": "active pinned pruned retired temporary",
    "recall": "answered",
    "receipt": "issued scrub_due",
    "rule": "active retired temporary",
    "rule_report": "gate promotion replay",
    "rule_selection": "answered",
    "rule_test": "made",
    "rule_use": "failed passed",
    "rulebook": "canary promote publish retire rollback submit",
    "run": "finished locked open",
    "seed": "active",
    "snapshot": "valid",
    "source_check": "blocked valid",
    "study": "citations done init synthesis wave1 wave2",
    "tactic": "active pinned",
    "trace_capsule": "active",
    "verification": "FAIL PARTIAL PASS",
    "working_set": "active retired",
    "working_state": "open",
}
"""Every kind of item, with the statuses that versions of it have."""
DUMPED = "blobs entries idempotency items links parts sessions"
UNDUMPED = ("ids", "lineages", "segments", "tenants", "vectors")
"""Tables that a dump leaves out, since they follow from the rest: the index, vectors, where things came from."""


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "manifest.json").read_bytes())
    return found


@pytest.fixture(scope="module")
def dumps() -> dict[str, bytes]:
    return {tenant_id: lzma.decompress((GOLDEN / f"{tenant_id}.jsonl.xz").read_bytes()) for tenant_id in TENANTS}


@pytest.fixture(scope="module")
def tools() -> Iterator[SimpleNamespace]:
    """The modules that wrote the store and that put questions to it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT / "tools"))
        names = ("write_golden_store", "golden_store.questions", "golden_store.contracts", "golden_store.endings")
        yield SimpleNamespace(**{name.rpartition(".")[2]: importlib.import_module(name) for name in names})


@pytest.fixture(scope="module")
def old_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """A fresh copy of the file as it was written."""
    data = lzma.decompress((GOLDEN / "store.sqlite.xz").read_bytes())

    def copied() -> Path:
        path = tmp_path_factory.mktemp("golden") / "store.sqlite"
        path.write_bytes(data)
        return path

    return copied


@pytest.fixture(scope="module", params=["as it was", "memory", "sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest,
    tools: SimpleNamespace,
    dumps: dict[str, bytes],
    old_file: Callable[[], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Memory]:
    """The old file itself; and stores on the three engines into which its dumps were brought."""
    with ExitStack() as stack:
        if request.param == "as it was":
            target = str(old_file())
        elif request.param == "sqlite":
            target = str(tmp_path_factory.mktemp("golden") / "fresh.sqlite")
        elif request.param == "postgres":
            target = stack.enter_context(throwaway_schema(request.getfixturevalue("postgres_dsn")))
        else:
            target = ":memory:"
        mem = stack.enter_context(tools.write_golden_store.open_for_questions(target))
        if request.param != "as it was":
            for dump in dumps.values():
                report = mem.import_(dump.splitlines(keepends=True))
                assert not report.skipped
        yield mem


# -- every store, in whatever order ----------------------------------------------------------------------------


@pytest.mark.req("MP-16", "LG-07")
def test_every_build_replays(store: Memory, tools: SimpleNamespace, manifest: dict[str, Any]) -> None:
    """MP-16, LG-07: the same packet and the same text, or the receipt by which something of it was forgotten."""
    digests = ("packet_sha256", "text_sha256", "tokens")
    for build in manifest["builds"]:
        kept = ("forgotten",) if "forgotten" in build else digests
        assert tools.questions.replay(store, build) == {name: build[name] for name in kept}, build["id"]


@pytest.mark.req("CS-01", "CS-11")
def test_every_snapshot_and_its_narrative_is_the_same(
    store: Memory, tools: SimpleNamespace, manifest: dict[str, Any]
) -> None:
    """CS-01, CS-11: the snapshot, the page that tells it, and that it still holds against the ledger."""
    assert tools.questions.snapshots(store) == manifest["snapshots"]


@pytest.mark.req("X-05")
def test_searches_find_the_same(store: Memory, tools: SimpleNamespace, manifest: dict[str, Any]) -> None:
    """X-05: the same ids with the same scores, on whichever engine."""
    assert tools.questions.searches(store) == manifest["searches"]


@pytest.mark.req("LG-01", "LG-05", "MP-16", "X-05")
def test_dumps_projections_and_new_packets_are_the_same_bytes(
    store: Memory, tools: SimpleNamespace, manifest: dict[str, Any], dumps: dict[str, bytes]
) -> None:
    """LG-05, LG-01, X-05, MP-16: chains hold, an export is the committed dump, every projection follows from the
    ledger as it did, and what is asked anew is searched, chosen and written as it was then.

    One test, since the last step adds builds to the store, and the first would see them.
    """
    report = store.verify()
    assert report.ok
    assert report.unreceipted == 0
    assert {name: getattr(report, name) for name in manifest["chains"]} == manifest["chains"]
    assert store.store.tenants() == manifest["tenants"] == sorted(dumps)
    for tenant_id, dump in dumps.items():
        assert differing(tools.write_golden_store.dump_of(store, tenant_id).splitlines(), dump.splitlines()) == []
    assert tools.questions.exports(store) == manifest["exports"]
    assert tools.questions.readings(store) == manifest["readings"]
    for tenant_id in TENANTS:
        assert store.store.rebuild(tenant_id=tenant_id).repaired == ()
    assert tools.questions.exports(store) == manifest["exports"]
    assert tools.questions.compose_anew(store) == manifest["composed"]


# -- the file ----------------------------------------------------------------------------------------------


def test_vectors_are_found_and_need_not_be_made_again(
    old_file: Callable[[], Path], tools: SimpleNamespace, manifest: dict[str, Any]
) -> None:
    embedder = tools.endings.WeatherEmbedder()
    with tools.write_golden_store.open_for_questions(old_file(), embedder=embedder) as mem:
        assert tools.questions.searches_by_meaning(mem) == manifest["by_meaning"]


@pytest.mark.req("X-05", "X-06", "LG-04")
def test_the_same_story_is_written_to_the_same_bytes(
    tmp_path: Path,
    old_file: Callable[[], Path],
    tools: SimpleNamespace,
    manifest: dict[str, Any],
    dumps: dict[str, bytes],
) -> None:
    """X-05, X-06, LG-04: the code of today writes the ledger, ids, hashes, items, packets and index of then."""
    path = tmp_path / "store.sqlite"
    builds = tools.write_golden_store.write_store(path)
    assert builds == [{name: build[name] for name in build if name != "forgotten"} for build in manifest["builds"]]
    with tools.write_golden_store.open_for_questions(path) as mem:
        for tenant_id, dump in dumps.items():
            assert differing(lines_of(tools.write_golden_store.dump_of(mem, tenant_id)), lines_of(dump)) == []
    then, now = rows_of(old_file()), rows_of(path)
    for name in UNDUMPED:
        assert differing(now[name], then[name]) == [], name


def differing(found: Sequence[Any], wanted: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The first pairs that differ: a dump is too long to be shown whole."""
    pairs = zip_longest(found, wanted)
    return list(islice((pair for pair in pairs if pair[0] != pair[1]), 3))


def lines_of(dump: bytes) -> list[bytes]:
    """A dump without what an engine remarks about its own files: whether it found residue is up to their layout."""
    lines = dump.splitlines()
    return [line if b'"kind":"receipt"' not in line else unremarked(line) for line in lines[:-1]]


def unremarked(line: bytes) -> bytes:
    told = json.loads(line)
    body = json.loads(told["row"]["body"])
    told["row"]["body"] = {name: value for name, value in body.items() if name not in ("note", "scrubbed")}
    return json.dumps(told, sort_keys=True).encode()


def rows_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return {name: sorted(connection.execute(f"SELECT * FROM {name}")) for name in UNDUMPED}


# -- what is in it, and what others rely on -------------------------------------------------------------------


def test_there_is_something_of_every_kind(dumps: dict[str, bytes]) -> None:
    """Else the rest of this page would show little."""
    found: set[tuple[str, ...]] = set()
    for line in (line for dump in dumps.values() for line in dump.splitlines()[1:-1]):
        told = json.loads(line)
        table, row = told["table"], told["row"]
        found.add(("table", table))
        if table == "entries":
            body = json.loads(row.get("body") or "{}")
            found |= {(name, row[name]) for name in ("kind", "role", "trust")}
            found |= {("flag", flag) for flag in row["flags"].split()}
            found.add(("event", body.get("metadata", {}).get("event", "")))
        if table == "items":
            found.add((row["kind"], row["status"]))
    wanted = {(kind, word) for kind, words in (ENTRIES | ITEMS).items() for word in words.split()}
    wanted |= {("table", table) for table in DUMPED.split()}
    assert wanted - found == set()


@pytest.mark.req("X-02")
def test_schemas_are_unchanged(tmp_path: Path, tools: SimpleNamespace, manifest: dict[str, Any]) -> None:
    """X-02: those that are committed, and those that the code exports."""
    assert tools.contracts.schema_digests(ROOT / "schemas") == manifest["schemas"]
    assert CliRunner().invoke(cli, ["schema", "export", str(tmp_path)], catch_exceptions=False).exit_code == 0
    assert tools.contracts.schema_digests(tmp_path) == manifest["schemas"]


def test_the_http_surface_is_unchanged(tools: SimpleNamespace, manifest: dict[str, Any]) -> None:
    """Every path and component that there was is there, the same but for its prose; there may be more."""
    found = tools.contracts.openapi_digests(ROOT / "docs" / "reference" / "openapi.json")
    assert {name: found.get(name) for name in manifest["openapi"]} == manifest["openapi"]
