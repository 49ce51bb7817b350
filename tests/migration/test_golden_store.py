"""What an earlier release wrote is read to the byte: its file, its dumps, its packets, its schemas.

`tests/golden/store_0_1` was written by `tools/write_golden_store.py` at the commit that its README names. Here it is
read with the code of today: the file as it lay there, and its dumps brought into a fresh store on every engine.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import lzma
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice, zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from effort import SOAK
from muniment.core.canonical import canonical_bytes
from muniment.core.outside.system import CountingIds
from muniment.errors import ComposedBefore
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


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "manifest.json").read_bytes())
    return found


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What the first store answered: the others answer the same."""
    return {}


@pytest.fixture(scope="module")
def dumps() -> dict[str, bytes]:
    return {tenant_id: lzma.decompress((GOLDEN / f"{tenant_id}.jsonl.xz").read_bytes()) for tenant_id in TENANTS}


@pytest.fixture(scope="module")
def texts(dumps: dict[str, bytes]) -> dict[str, str]:
    """By the id of a build, its text."""
    lines = (line for dump in dumps.values() for line in dump.splitlines() if b'"kind":"build"' in line)
    rows = [json.loads(line)["row"] for line in lines]
    return {row["id"]: json.loads(row["body"])["text"] for row in rows if row["kind"] == "build" and row.get("body")}


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


@pytest.fixture(scope="module", params=["as it was", "memory", *(["sqlite"] if SOAK else []), "postgres"])
def store(
    request: pytest.FixtureRequest,
    tools: SimpleNamespace,
    dumps: dict[str, bytes],
    old_file: Callable[[], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Memory]:
    """The old file itself; and stores on the engines into which its dumps were brought, under a soak a new file too."""
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
            mem._ctx.ids = CountingIds("asked")  # as if opened now: what an import draws is not what is asked about
        yield mem


# -- every store, in whatever order ----------------------------------------------------------------------------


@pytest.mark.req("MP-16", "LG-07")
def test_a_build_that_kept_no_packet_says_so_and_has_its_text(
    store: Memory, tools: SimpleNamespace, manifest: dict[str, Any], texts: dict[str, str]
) -> None:
    """MP-16, LG-07: version 0.1 kept what a packet was made of, and its text; its composer chose by other rules."""
    assert manifest["builds"]
    for build in manifest["builds"]:
        if "forgotten" in build:
            assert tools.questions.replay(store, build) == {"forgotten": build["forgotten"]}, build["id"]
            continue
        with pytest.raises(ComposedBefore) as caught:
            store.replay(build["id"], tenant_id=build["tenant_id"])
        assert (caught.value.code, caught.value.path) == ("composed_before", "$.id")
        assert caught.value.hint
        assert hashlib.sha256(texts[build["id"]].encode()).hexdigest() == build["text_sha256"]


@pytest.mark.req("CS-01", "CS-11")
def test_every_snapshot_and_its_narrative_is_the_same(
    store: Memory, tools: SimpleNamespace, manifest: dict[str, Any]
) -> None:
    """CS-01, CS-11: the snapshot, the page that tells it, and that it still holds against the ledger."""
    assert tools.questions.snapshots(store) == manifest["snapshots"]


@pytest.mark.req("LG-01", "LG-05", "X-05")
def test_dumps_and_projections_are_the_same_bytes_and_answers_the_same_on_every_engine(
    store: Memory, tools: SimpleNamespace, manifest: dict[str, Any], dumps: dict[str, bytes], answers: dict[str, Any]
) -> None:
    """LG-05, LG-01, X-05: chains hold, an export is the committed dump, every projection follows from the ledger as it
    did; what is searched and composed anew may be better than it was then, and is the same wherever it is asked.

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
    found = tools.questions.readings(store)
    assert {name for name in found if found[name] != manifest["readings"][name]} == {"episodes", "runs"}
    assert found.keys() == manifest["readings"].keys()
    episodes = [without_calls(each.to_wire()) for each in store.ledger.episodes(user_id="ana")]
    assert hashlib.sha256(canonical_bytes(episodes)).hexdigest() == manifest["readings"]["episodes"]
    runs = [
        without_said_times(each.to_wire()) for tenant_id in sorted(dumps) for each in store.runs(tenant_id=tenant_id)
    ]
    assert hashlib.sha256(canonical_bytes(runs)).hexdigest() == manifest["readings"]["runs"]
    for tenant_id in TENANTS:
        store.store.rebuild(tenant_id=tenant_id)
    for tenant_id, dump in dumps.items():
        lines = without_later_kinds(tools.write_golden_store.dump_of(store, tenant_id).splitlines())
        assert differing(lines, dump.splitlines()[:-1]) == []
    answered = {"searched": tools.questions.searches(store), "composed": tools.questions.compose_anew(store)}
    assert answered == answers.setdefault("first", answered)


# -- the file ----------------------------------------------------------------------------------------------


def test_vectors_are_found_and_need_not_be_made_again(
    old_file: Callable[[], Path], tools: SimpleNamespace, manifest: dict[str, Any]
) -> None:
    embedder = tools.endings.WeatherEmbedder()
    with tools.write_golden_store.open_for_questions(old_file(), embedder=embedder) as mem:
        found = tools.questions.searches_by_meaning(mem)
    assert {each[0] for each in found} == {each[0] for each in manifest["by_meaning"]}
    assert any(part.startswith("dense") for each in found for part in each[2])


def differing(found: Sequence[Any], wanted: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The first pairs that differ: a dump is too long to be shown whole."""
    pairs = zip_longest(found, wanted)
    return list(islice((pair for pair in pairs if pair[0] != pair[1]), 3))


LATER_KINDS = {("next_actions", "planned"), ("failure", "met")}
"""Kinds of item, with their status, that are projected since 0.1 from entries that were there: a rebuild adds them."""


def without_said_times(run: dict[str, Any]) -> dict[str, Any]:
    """A run as it was told before it told when its first and last words were said."""
    return {name: value for name, value in run.items() if name not in ("first_said_at", "last_said_at")}


def without_calls(episode: dict[str, Any]) -> dict[str, Any]:
    """An episode of today as 0.1 told it: a tool's line had no speaker, where its call stands since."""
    lines = [
        {key: value for key, value in line.items() if key != "speaker" or line["role"] != "tool"}
        for line in episode["lines"]
    ]
    return episode | {"lines": lines}


def without_later_kinds(lines: Sequence[bytes]) -> list[bytes]:
    """A dump without what later versions derive besides, and without its last line, which counts the others."""
    told = [json.loads(line) for line in lines[:-1]]
    items = [each["row"] for each in told if each.get("table") == "items"]
    later = {row["id"] for row in items if (row["kind"], row["status"]) in LATER_KINDS}
    kept = [not ({each.get("row", {}).get(key) for key in ("id", "item_id")} & later) for each in told]
    return [line for line, stays in zip(lines, kept, strict=False) if stays]


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
    """X-02: those that are committed, and those that the code exports. Others may stand beside them."""
    assert CliRunner().invoke(cli, ["schema", "export", str(tmp_path)], catch_exceptions=False).exit_code == 0
    for folder in (ROOT / "schemas", tmp_path):
        digests = tools.contracts.schema_digests(folder)
        assert {kind: digests.get(kind) for kind in manifest["schemas"]} == manifest["schemas"]
