"""Dumps and a file that version 0.1 wrote: they are read, verify, and replay what they hold to the byte."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from old_stores import answers

import muniment
from muniment.surfaces.cli.main import cli

STORE = Path(__file__).parent / "store_0_1"
TABLES = "sessions entries blobs items links parts marks idempotency"
ITEMS = """
build candidate claim conflict document draft event_log fact failure fold insight next_actions plan procedure question
reasoning recall receipt rule rule_report rule_selection rule_test rulebook run snapshot source_check study tactic
trace_capsule verification working_set working_state
"""
ANSWERS: dict[str, Any] = json.loads((STORE / "answers.json").read_bytes())


def unpacked(name: str) -> bytes:
    return lzma.decompress((STORE / f"{name}.xz").read_bytes())


def assert_answers(mem: muniment.Memory, wanted: dict[str, Any]) -> None:
    found = json.loads(json.dumps(answers(mem, [build[:2] for build in wanted["builds"]])))
    for name in wanted:
        pairs = [pair for pair in zip(_rows(wanted[name]), _rows(found[name]), strict=True) if pair[0] != pair[1]]
        assert not pairs, f"{name} (as 0.1 had it, as it is now): {pairs[:3]}"


def _rows(answer: Any) -> list[Any]:
    return sorted(answer.items()) if isinstance(answer, dict) else answer


@pytest.mark.req("LG-01", "LG-05", "LG-07", "MP-16", "CS-01", "CS-11")
def test_dumps_of_0_1_come_in_whole(tmp_path: Path) -> None:
    """LG-05, LG-01: every chain. MP-16: builds. CS-01, CS-11: snapshots. LG-07: what was forgotten stays forgotten."""
    with muniment.open(tmp_path / "store.db", tokens="estimate_v1") as mem:
        for tenant_id in ("acme", "default"):
            report = mem.import_(unpacked(f"{tenant_id}.jsonl").splitlines(keepends=True))
            assert not report.skipped
        assert_answers(mem, ANSWERS["dumps"])
        run = mem.run(user_id="ana", agent_id="support", session_id="winter", run_id="run-winter")
        asked = "Please book a dinner for Clara and me on Friday."
        again = run.observe("user", asked, id="evt-asked", idempotency_key="asked-once")
        assert again == mem.ledger.get("evt-asked"), "a key that was used before is still known"


@pytest.mark.req("LG-01", "LG-05", "MP-16")
def test_an_upgraded_file_of_0_1_is_whole(tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    old.write_bytes(unpacked("store.sqlite"))
    done = CliRunner().invoke(cli, ["store", "upgrade", str(old), str(new)])
    assert done.exit_code == 0, done.output
    with muniment.open(new, tokens="estimate_v1") as mem:
        retracted = {
            (user, fact.value, fact.status)
            for user in ("ana", "jisoo", "wei")
            for candidate in mem.run(user_id=user).memory.candidates()
            for fact in mem.run(user_id=user).facts(include_all=True)
            if candidate.proposed_by == "patterns" and fact.fact_id == candidate.fact_id
        }
        assert retracted == {
            ("ana", "Ana Berg", "active"),  # today's rules find it too
            ("jisoo", "서울", "deprecated"),
            ("jisoo", "고양이 두 마리", "deprecated"),
            ("wei", "上海", "deprecated"),
            ("wei", "辣", "deprecated"),
        }
        found = json.loads(json.dumps(answers(mem, [build[:2] for build in ANSWERS["file"]["builds"]])))
        retractions = {name for name in found["ledger"] if name.endswith("/upgrade-from-0.1")}
        assert retractions == {"default/jisoo/upgrade-from-0.1", "default/wei/upgrade-from-0.1"}
        found["ledger"] = {name: row for name, row in found["ledger"].items() if name not in retractions}
        found["runs"] = [run for run in found["runs"] if run in ANSWERS["file"]["runs"]]
        assert {**found, "verified": ANSWERS["file"]["verified"]} == ANSWERS["file"], "all else is as it was"


@pytest.mark.req("LG-07", "LG-10")
def test_a_sealed_redaction_of_0_1_stays_an_opaque_item(tmp_path: Path) -> None:
    """It comes in, verifies, goes out again as it was, and is forgotten with its event."""
    lines = unpacked("sealed.jsonl").splitlines(keepends=True)
    (seal,) = [json.loads(line)["row"] for line in lines if b'"kind":"seal"' in line]
    (build,) = [json.loads(line)["row"] for line in lines if b'"kind":"build"' in line]
    with muniment.open(tmp_path / "store.db") as mem:
        mem.import_(lines)
        assert mem.verify().ok
        assert "Berlin" in mem.replay(build["id"]).text, "its policy has a setting that is gone"
        mem.store.rebuild()
        assert list(mem.export()) == lines
        mem.forget(event=json.loads(seal["body"])["event_id"])
        assert mem.verify().ok
        assert not any(json.loads(seal["body"])["values"][0]["data"].encode() in line for line in mem.export())


def test_the_dumps_hold_something_of_every_kind() -> None:
    """Else the tests above would show little."""
    lines = [json.loads(line) for name in ("acme", "default") for line in unpacked(f"{name}.jsonl").splitlines()]
    assert {line["table"] for line in lines if "table" in line} == frozenset(TABLES.split())
    assert {line["row"]["kind"] for line in lines if line.get("table") == "items"} >= frozenset(ITEMS.split())
    forgotten = {line["row"].get("receipt_id") for line in lines if line.get("table") == "entries"}
    assert len(forgotten - {None}) >= 4
