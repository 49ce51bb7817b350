"""The commands on learned memory, by hand: recall, fold, plan, apply, undo, bank, reuse; and bad input at each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from cli_room import Commands, in_folder

import muniment
from muniment.contracts.learning import (
    FoldResult,
    MemoryActionPlan,
    MemoryActionRecord,
    MemoryRecallRequest,
    MemoryRecallResponse,
    ReuseBuffer,
    ReuseSelectMeta,
)
from muniment.contracts.rules import DistillDraft
from muniment.contracts.runs import EventLog, TraceCapsule
from muniment.learning.stored_memory import StoredMemory
from products import for_each

INTENT = {"domain_tag": "math", "task_family": "countdown"}
AS_INTENT = ("--intent", "domain=math", "--intent", "family=countdown")
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
OPEN = "run_open"
ANA = ("--user", "ana")
READERS = (
    ("learn", "recall", "x", *ANA),
    ("learn", "fold", OPEN, "--verdict", "PASS"),
    ("learn", "plan", "list"),
    ("learn", "plan", "show", "plan_1"),
    ("learn", "apply", "plan_1"),
    ("learn", "undo", "plan_1"),
    ("learn", "bank", "list"),
    ("learn", "bank", "show", "rm_1"),
    ("learn", "bank", "logs"),
    ("learn", "bank", "drafts"),
    ("learn", "bank", "tidy"),
    ("learn", "lessons"),
    ("learn", "lesson", "show", "tac_1"),
    ("learn", "lesson", "sign", "tac_1", "--signed-by", "rosa"),
    ("learn", "lesson", "drop", "tac_1", "--reason", "no"),
    ("learn", "reuse", "list"),
    ("learn", "reuse", "select"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    in_folder(tmp_path, monkeypatch)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def work(mem: muniment.Memory, number: int, way: str, *, run_id: str | None = None) -> muniment.Run:
    run = mem.run(user_id="ana", agent_id="solver", task_type="countdown", run_id=run_id)
    run.observe("user", f"Reach {number} with 3, 8 and {number}.")
    run.observe_tool(way, content="tried it", args={"n": number})
    run.observe("assistant", f"The answer is {number}.")
    return run


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six runs that passed in one way and six that failed in another, and one that is open."""
    path = tmp_path_factory.mktemp("taught") / "muniment.db"
    with muniment.open(path) as mem:
        for number in range(6):
            for way, result in (("backward", PASS), ("greedy", FAIL)):
                run = work(mem, number, way)
                run.finish(verifier_result=result, intent=INTENT, state={"mode": "main"}, features={"strategy": way})
        work(mem, 7, "backward", run_id=OPEN)
    return path


@pytest.fixture
def store(folder: Path, taught: Path) -> Path:
    """A store of one's own in which that was learnt."""
    shutil.copy(taught, "muniment.db")
    return folder


COMMANDS = Commands()
call, text, document, failure = COMMANDS.call, COMMANDS.text, COMMANDS.document, COMMANDS.failure


def note(memory_id: str = "rm_1", **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.5.15", "memory_id": memory_id, "kind": "episode", "created_at": "2026-01-01T00:00:00Z",
        "status": "active", "summary": "Work backwards from the target.", **more,
    }  # fmt: skip


def write(payload: Any) -> dict[str, Any]:
    return {"op": "WRITE", "target_store": "ReasoningBank", "payload": payload}


def made(*actions: Any, where: tuple[str, ...] = ANA) -> str:
    plan = MemoryActionPlan.from_wire(document("learn", "plan", "make", "-", *where, stdin=json.dumps(list(actions))))
    return plan.plan_id


def ids(kind: str, *more: str) -> list[str]:
    return [each["id"] for each in document("learn", "bank", "list", *ANA, "--kind", kind, *more)["records"]]


# -- recall ---------------------------------------------------------------------------------------------


@pytest.mark.req("RC-08")
@pytest.mark.req("RC-09")
def test_recall_shows_hints_with_every_part_of_their_score(store: Path) -> None:
    asked = ("learn", "recall", "Reach 24 with 3 and 8", *ANA, "--agent", "solver", *AS_INTENT, "--state", "mode=main")
    found = document(*asked)
    MemoryRecallRequest.from_wire(found["request"])
    response = MemoryRecallResponse.from_wire(found["response"])
    assert not response.fallback_used
    (tactic,) = ids("tactic")
    assert tactic in [hint.memory_id for hint in response.items]
    assert all(
        set(hint["parts"]) == {"sem", "tools", "intent", "state", "quality"} for hint in found["response"]["items"]
    )
    assert 0 < found["injection"]["tokens"] <= found["injection"]["budget"]["total_tokens_max"] == 256
    assert found["kept_in"] is None
    shown = text(*asked)
    assert "by words and intent and state" in shown
    assert "of 256 tokens" in shown
    assert "Use strategy=backward: passed" in shown
    assert "intent: same key" in shown
    (best,) = document(*asked, "--top", "1")["response"]["items"]
    assert best["memory_id"] == found["response"]["items"][0]["memory_id"]
    only = document(*asked, "--source", "ReuseBuffer")["response"]["items"]
    assert {hint["source"] for hint in only} == {"ReuseBuffer"}


def test_recall_without_keys_says_so_and_with_others_says_what_was_dropped(store: Path) -> None:
    assert document("learn", "recall", "Reach 24", *ANA)["response"]["fallback_used"]
    assert "by words alone: give --intent and --state" in text("learn", "recall", "Reach 24", *ANA)
    other = document("learn", "recall", "Reach 24 with 3 and 8", *ANA, "--intent", "domain=law")
    assert other["response"]["items"] == []
    assert {each["reason"] for each in other["dropped"]} == {"intent_mismatch"}
    assert "intent_mismatch (mem_" in text("learn", "recall", "Reach 24 with 3 and 8", *ANA, "--intent", "domain=law")


def test_parts_of_keys_by_either_name_and_sets_that_are_known_to_be_empty(store: Path) -> None:
    parts = ("--intent", "task_family=countdown", "--intent", "tools=b, a", "--state", "tools=", "--state", "tier=hot")
    request = document("learn", "recall", "Reach 24", *ANA, *parts, "--feature", "a=1", "--feature", "b=yes")["request"]
    assert request["intent_key"] == "intent|family=countdown|tools=a,b"
    assert request["state_key"] == "state|tier=hot|tools="
    assert request["filters"] == {"features": {"a": 1, "b": "yes"}}


def test_a_recall_writes_nothing_unless_it_is_for_a_run(store: Path) -> None:
    def entries() -> int:
        with muniment.open("muniment.db") as mem:
            return len(list(mem.ledger.entries(user_id="ana")))

    before = entries()
    text("learn", "recall", "Reach 24", *ANA, *AS_INTENT)
    assert entries() == before
    kept = document("learn", "recall", "Reach 24", "--run", OPEN, *AS_INTENT, "--feature", "size=3")
    assert kept["kept_in"] == OPEN
    assert entries() == before + 1
    log = document("learn", "fold", OPEN, "--verdict", "PASS", "--outcome", "OK")["event_log"]
    assert log["memory_recall"]["used_ids"] == kept["injection"]["used_ids"] != []
    assert log["memory_recall"]["intent_key"] == "intent|domain=math|family=countdown"


def test_what_does_not_fit_is_told(store: Path) -> None:
    for number in range(4):
        said = f"Fold the paper {number} times. {'And then again, with care. ' * 60}"
        text("learn", "apply", made(write(note(f"rm_{number}", summary=said))))
    found = document("learn", "recall", "Fold the paper", *ANA)
    assert found["injection"]["tokens"] <= 256
    assert {each["action"] for each in found["injection"]["overflow"]} == {"compacted", "left_out"}
    shown = text("learn", "recall", "Fold the paper", *ANA)
    assert "cut: rm_" in shown
    assert "whole: muniment learn bank show ID" in shown


# -- fold -----------------------------------------------------------------------------------------------


@pytest.mark.req("RC-10")
@pytest.mark.req("RC-12")
def test_fold_shows_what_was_learnt(store: Path) -> None:
    Path("result.json").write_text(json.dumps(PASS), "utf-8")
    first = document("learn", "fold", OPEN, "--result", "result.json", *AS_INTENT, "--feature", "strategy=backward")
    log = EventLog.from_wire(first["event_log"])
    assert (log.verifier.verdict, log.verifier.outcome) == ("PASS", "OK")
    TraceCapsule.from_wire(first["trace_capsule"])
    assert FoldResult.from_wire(first["fold"]).trigger.kind == "end_of_run"
    assert [MemoryActionRecord.from_wire(each).status for each in first["actions"]].count("APPLIED") >= 2
    kinds = {StoredMemory.from_wire(each).kind for each in first["records"]}
    assert {"reasoning", "seed"} <= kinds
    assert not first["learnt_before"]
    again = document("learn", "fold", OPEN, "--verdict", "FAIL")
    assert again["learnt_before"]
    assert {**again, "learnt_before": False} == first
    assert "nothing is learnt twice" in text("learn", "fold", OPEN, "--verdict", "FAIL")


def test_fold_in_words(store: Path) -> None:
    said = json.dumps(FAIL)
    shown = text("learn", "fold", OPEN, "--result", "-", *AS_INTENT, "--feature", "strategy=greedy", stdin=said)
    for piece in (
        "run_open  FAIL, outcome FAIL",
        "intent:   intent|domain=math|family=countdown",
        "episode:  mem_",
        "APPLIED  ReasoningBank",
        "to take it back: muniment learn undo plan_",
    ):
        assert piece in shown
    plan = shown.rpartition("muniment learn undo ")[2].strip()
    assert "is undone" in text("learn", "undo", plan)


def test_fold_by_the_result_that_the_run_keeps(store: Path) -> None:
    error = failure("learn", "fold", OPEN, code=2)
    assert error["message"].startswith("nobody has judged this run yet")
    Path("rules.yaml").write_text("- contains: 'The answer is 7'\n", "utf-8")
    Path("answer.txt").write_text("The answer is 7.", "utf-8")
    assert call("check", "verify-output", "answer.txt", "--constraints", "rules.yaml", "--run", OPEN).exit_code == 0
    assert document("learn", "fold", OPEN)["event_log"]["verifier"]["verdict"] == "PASS"


@pytest.mark.req("RC-05")
def test_what_an_agent_learns_is_seen_by_its_other_users(store: Path) -> None:
    learned = document("learn", "fold", OPEN, "--verdict", "PASS", "--outcome", "OK", "--level", "agent", *AS_INTENT)
    assert {each["level"] for each in learned["records"]} == {"agent"}
    assert "Reach 7" not in json.dumps(learned["records"])
    held = document("learn", "bank", "list", "--agent", "solver")["records"]
    assert {each["id"] for each in held} == {each["id"] for each in learned["records"]}
    assert document("learn", "recall", "Reach", "--user", "bo", "--agent", "solver", *AS_INTENT)["response"]["items"]
    assert not document("learn", "recall", "Reach", "--user", "bo", "--agent", "other", *AS_INTENT)["response"]["items"]


# -- plans ----------------------------------------------------------------------------------------------


@pytest.mark.req("RC-11")
def test_a_plan_is_made_tried_applied_and_undone(folder: Path) -> None:
    pin = {"op": "PIN", "target_store": "ReasoningBank", "target_ids": ["rm_1"]}
    plan = made(write(note()), pin)
    assert document("learn", "bank", "list", *ANA)["records"] == []
    assert "made, of the bank of user ana" in text("learn", "plan", "show", plan)
    tried = document("learn", "apply", plan, "--dry-run")
    assert [each["error"] for each in tried["actions"]] == ["dry_run", "dry_run"]
    assert not tried["aborted"]
    assert "would be applied" in text("learn", "apply", plan, "--dry-run")
    assert document("learn", "bank", "list", *ANA)["records"] == []
    done = document("learn", "apply", plan)
    assert [each["status"] for each in done["actions"]] == ["APPLIED", "APPLIED"]
    assert document("learn", "apply", plan)["actions"] == done["actions"]
    assert "was applied before; nothing is done twice" in text("learn", "apply", plan)
    assert "version none → 2" in text("learn", "plan", "show", plan)
    (held,) = document("learn", "bank", "list", *ANA)["records"]
    assert (held["id"], held["status"]) == ("rm_1", "pinned")
    undone = document("learn", "undo", plan)
    assert document("learn", "undo", plan) == undone
    assert document("learn", "bank", "list", *ANA)["records"] == []
    (gone,) = document("learn", "bank", "list", *ANA, "--all")["records"]
    assert gone["status"] == "retired"
    states = document("learn", "plan", "list", *ANA)["plans"]
    assert [state["status"] for state in states] == ["undone", "applied"]
    assert states[0]["undone_by"] == undone["undone_by"] == states[1]["plan"]["plan_id"]
    listed = text("learn", "plan", "list", *ANA)
    assert "undone" in listed
    assert "by hand" in listed


def test_an_aborted_plan_exits_1_and_changes_nothing(folder: Path) -> None:
    text("learn", "apply", made(write(note()), {"op": "PIN", "target_store": "ReasoningBank", "target_ids": ["rm_1"]}))
    before = document("learn", "bank", "list", *ANA, "--all")
    plan = made(write(note("rm_2")), {"op": "PRUNE", "target_store": "ReasoningBank", "target_ids": ["rm_1"]})
    assert "would be aborted: nothing would change" in text("learn", "apply", plan, "--dry-run", code=1)
    aborted = document("learn", "apply", plan, code=1)
    assert aborted["aborted"]
    assert [each["status"] for each in aborted["actions"]] == ["SKIPPED", "FAILED"]
    assert "pinned" in aborted["actions"][1]["error"]
    assert document("learn", "bank", "list", *ANA, "--all") == before
    assert "was aborted before" in text("learn", "apply", plan, code=1)
    assert failure("learn", "undo", plan)["code"] == "conflict"


def test_plans_of_every_shape_and_payloads_apart(folder: Path) -> None:
    action = {"op": "WRITE", "target_store": "ReasoningBank", "payload_ref": "a note"}
    plan = {"schema_version": "0.5.15", "plan_id": "p1", "created_at": "2026-01-01T00:00:00Z", "actions": [action]}
    Path("plan.json").write_text(json.dumps(plan), "utf-8")
    Path("payloads.json").write_text(json.dumps({"a note": note()}), "utf-8")
    assert document("learn", "plan", "make", "plan.json", "--payloads", "payloads.json") == plan
    assert document("learn", "plan", "make", "plan.json", "--payloads", "payloads.json") == plan, "the same plan, again"
    assert document("learn", "plan", "show", "p1")["payloads"] == {"a note": note()}
    text("learn", "apply", "p1")
    assert "the tenant's bank" in text("learn", "bank", "show", "rm_1")
    Path("lines.jsonl").write_text("".join(f"{json.dumps(write(note(f'rm_{n}')))}\n" for n in (2, 3)), "utf-8")
    assert len(document("learn", "plan", "make", "lines.jsonl", "--agent", "solver")["actions"]) == 2
    Path("lines.jsonl").write_text(json.dumps(write(note("rm_4"))) + "\n", "utf-8")
    assert "made for the bank of agent solver: 1 WRITE" in text(
        "learn", "plan", "make", "lines.jsonl", "--agent", "solver"
    )


def test_undo_is_refused_where_somebody_changed_it_since(folder: Path) -> None:
    first = made(write(note()))
    text("learn", "apply", first)
    text("learn", "apply", made(write(note(summary="Another thing."))))
    error = failure("learn", "undo", first)
    assert error["code"] == "conflict"
    assert "rm_1" in error["message"]
    assert "`muniment learn plan make`" in error["hint"]


# -- bank and reuse -------------------------------------------------------------------------------------


@pytest.mark.req("RC-13")
def test_bank_lists_and_shows_what_was_learnt_and_how_it_fared(store: Path) -> None:
    (tactic,) = ids("tactic")
    shown = text("learn", "bank", "list", *ANA)
    assert "passed with" in shown
    assert tactic in shown
    assert ".capsule" not in shown, "references stand apart"
    assert len(ids("trace_capsule")) == 12
    held = StoredMemory.from_wire(document("learn", "bank", "show", tactic))
    assert held.kind == "tactic"
    told = text("learn", "bank", "show", tactic)
    for piece in (
        "in the bank of user ana",
        "applies if:",
        'task_family == "countdown"',
        "injects:",
        "learnt from: trc_",
    ):
        assert piece in told
    assert "no live records in the tenant's bank; --user and --agent name another" in text("learn", "bank", "list")
    text("learn", "apply", made({"op": "RETIRE", "target_store": "ReuseBuffer", "target_ids": [tactic]}))
    assert ids("tactic") == []
    assert ids("tactic", "--all") == [tactic]


def test_bank_logs_drafts_and_tidy(store: Path) -> None:
    logs = document("learn", "bank", "logs", *ANA, "--limit", "5")["event_logs"]
    assert [EventLog.from_wire(each).verifier.verdict for each in logs] == ["FAIL", "PASS", "FAIL", "PASS", "FAIL"]
    shown = text("learn", "bank", "logs", *ANA)
    assert shown.count("trc_") == 12
    drafts = [DistillDraft.from_wire(each) for each in document("learn", "bank", "drafts", *ANA)["drafts"]]
    assert {draft.proposed_rule.type for draft in drafts} == {"StrategyRule", "GuardrailRule"}
    assert drafts[0].draft_id in text("learn", "bank", "drafts", *ANA)
    assert ids("rule", "--all") == [], "a draft is in force nowhere"
    assert document("learn", "bank", "tidy", *ANA)["actions"] == []
    assert "nothing to do" in text("learn", "bank", "tidy", *ANA)
    Path("muniment.toml").write_text("[policy.learn.eviction]\nseeds_max = 2\n", "utf-8")
    assert "over_capacity" in text("learn", "bank", "tidy", *ANA)
    assert len(ids("seed")) == 2


@pytest.mark.req("RC-21")
def test_reuse_lists_the_buffer_and_selects_with_every_term(store: Path) -> None:
    buffer = ReuseBuffer.from_wire(document("learn", "reuse", "list", *ANA))
    assert (len(buffer.seed_entries), len(buffer.tactic_entries)) == (6, 1)
    shown = text("learn", "reuse", "list", *ANA)
    assert "6 seeds" in shown
    assert "1 tactic\n" in shown
    chosen = document("learn", "reuse", "select", *ANA)
    meta = ReuseSelectMeta.from_wire(chosen["select"])
    assert meta.selected_state_id == chosen["terms"][0]["state_id"]
    assert {"q", "p", "t_total", "n", "rank", "score"} <= chosen["terms"][0].keys()
    assert f"→  {meta.selected_state_id}" in text("learn", "reuse", "select", *ANA)
    assert document("learn", "reuse", "select", *ANA) == chosen, "asking counts for nothing"
    assert document("learn", "reuse", "select", *ANA, "--tag", "nothing")["terms"] == []
    assert text("learn", "reuse", "select") == "no seed in the tenant's bank\n"


# -- bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", READERS, ids=" ".join)
def test_without_a_store(folder: Path, args: tuple[str, ...]) -> None:
    error = failure(*args, code=2)
    assert (error["code"], error["path"]) == ("invalid_input", "$.db")
    assert not Path("muniment.db").exists()


@for_each(
    ("args", "path"),
    [
        (("learn", "recall", "x"), "$.user"),
        (("learn", "recall", "x", *ANA, "--intent", "colour=red"), "$.intent"),
        (("learn", "recall", "x", *ANA, "--intent", "domain"), "$.intent"),
        (("learn", "recall", "x", *ANA, "--intent", "domain="), "$.intent"),
        (("learn", "recall", "x", *ANA, "--intent", "domain=a", "--intent", "domain_tag=b"), "$.intent"),
        (("learn", "recall", "x", *ANA, "--state", "domain=math"), "$.state"),
        (("learn", "recall", "x", *ANA, "--feature", "=1"), "$.feature"),
        (("learn", "recall", "x", *ANA, "--feature", "a=1", "--feature", "a=2"), "$.feature"),
        (("learn", "recall", "x", *ANA, "--bucket", "nonsense"), None),
        (("learn", "recall", "x", *ANA, "--now", "soon"), "$.now"),
        (("learn", "recall", "x", *ANA, "--top", "0"), None),
        (("learn", "recall", "x", *ANA, "--top", "100000"), "$.k"),
        (("learn", "recall", "x", *ANA, "--source", "Nowhere"), None),
        (("learn", "fold", OPEN, "--outcome", "OK"), "$.verdict"),
        (("learn", "fold", OPEN, "--reason", "numeric_error"), "$.verdict"),
        (("learn", "fold", OPEN, "--verdict", "MAYBE"), None),
        (("learn", "fold", OPEN, "--verdict", "PASS", "--result", "x.json"), "$.result"),
        (("learn", "fold", OPEN, "--result", "missing.json"), None),
        (("learn", "fold", OPEN, "--verdict", "PASS", "--level", "world"), None),
        (("learn", "fold", OPEN, "--verdict", "PASS", "--bucket", "nonsense"), None),
        (("learn", "plan", "make", "missing.json"), None),
        (("learn", "plan", "make", "-", "--payloads", "-"), "$.payloads"),
        (("learn", "bank", "list", *ANA, "--agent", "solver"), "$.agent"),
        (("learn", "bank", "show", "rm_1", *ANA, "--agent", "solver"), "$.agent"),
        (("learn", "bank", "list", *ANA, "--store", "ReasoningBank", "--kind", "seed"), "$.kind"),
        (("learn", "bank", "logs", "--limit", "0"), None),
        (("learn", "reuse", "select", "--bucket", "I9|x|y"), None),
        (("learn", "bank", "list", "--user", "bank:tenant"), "$.user_id"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_questions_that_cannot_be_read(store: Path, args: tuple[str, ...], path: str | None) -> None:
    result = call(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    if path is not None:
        assert failure(*args, code=2)["path"] == path


@pytest.mark.parametrize(
    "args",
    [
        ("learn", "recall", "x", "--run", "run_nobody"),
        ("learn", "recall", "x", "--run", OPEN, "--user", "bo"),
        ("learn", "recall", "x", "--run", OPEN, "--agent", "other"),
        ("learn", "fold", "run_nobody", "--verdict", "PASS"),
        ("learn", "plan", "show", "nobody"),
        ("learn", "plan", "show", OPEN),
        ("learn", "apply", "nobody"),
        ("learn", "undo", "nobody"),
        ("learn", "bank", "show", "nobody"),
        ("learn", "bank", "show", "nobody", "--user", "ana"),
        ("learn", "bank", "show", OPEN),
    ],
    ids=" ".join,
)
def test_what_is_not_there(store: Path, args: tuple[str, ...]) -> None:
    assert failure(*args)["code"] == "not_found"


def test_a_record_is_not_a_plan_and_a_plan_no_record(store: Path) -> None:
    plan = made(write(note()))
    text("learn", "apply", plan)
    assert failure("learn", "apply", "rm_1")["code"] == "not_found"
    assert failure("learn", "bank", "show", plan)["code"] == "not_found"
    assert failure("learn", "bank", "show", "rm_1", "--user", "bo")["code"] == "not_found", "in no other bank"
    assert failure("learn", "bank", "show", "rm_1", "--tenant", "other")["code"] == "not_found"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("", 1),
        ("{", 1),
        ("7", 2),
        ("[7]", 1),
        ('"PIN"', 2),
        ('{"op": "DANCE", "target_store": "ReasoningBank"}', 1),
        ('{"actions": [{"op": "PIN", "target_store": "Nowhere"}]}', 1),
        ('{"actions": 7}', 1),
        ('[{"op": "PIN", "op": "PIN", "target_store": "ReasoningBank"}]', 1),
    ],
)
def test_plans_that_are_none(folder: Path, said: str, code: int) -> None:
    error = failure("learn", "plan", "make", "-", *ANA, code=code, stdin=said)
    assert error["path"]
    if Path("muniment.db").exists():
        assert document("learn", "plan", "list", *ANA)["plans"] == []


@pytest.mark.parametrize("said", ['{"verdict": "MAYBE"}', "[1]", "{}\n{}", "", '{"verdict": "PASS"}'])
def test_results_that_are_none(store: Path, said: str) -> None:
    result = call("learn", "fold", OPEN, "--result", "-", stdin=said)
    assert result.exit_code in (1, 2)
    assert result.stderr.startswith("error[invalid_")
    assert len(document("learn", "bank", "logs", *ANA)["event_logs"]) == 12


def test_a_run_that_has_ended_takes_no_recall_but_can_be_learnt_from(store: Path) -> None:
    with muniment.open("muniment.db") as mem:
        work(mem, 8, "backward", run_id="run_done").finish()
    assert failure("learn", "recall", "x", "--run", "run_done")["code"] == "run_finished"
    assert document("learn", "fold", "run_done", "--verdict", "FAIL", "--reason", "numeric_error")["records"]


def test_a_plan_id_that_is_taken(folder: Path) -> None:
    plan = {"plan_id": "p1", "created_at": "2026-01-01T00:00:00Z", "actions": [write(note())]}
    document("learn", "plan", "make", "-", *ANA, stdin=json.dumps(plan))
    other = json.dumps(plan | {"actions": [write(note("rm_2"))]})
    assert failure("learn", "plan", "make", "-", *ANA, stdin=other)["code"] == "conflict"
    assert failure("learn", "plan", "make", "-", stdin=json.dumps(plan))["code"] == "duplicate_id", (
        "in another bank too"
    )


def test_what_was_forgotten_is_not_shown_by_a_second_fold(store: Path) -> None:
    first = document("learn", "fold", OPEN, "--verdict", "PASS", "--outcome", "OK", *AS_INTENT)
    assert "Reach 7" in json.dumps(first["records"])
    with muniment.open("muniment.db") as mem:
        said = {entry.content: entry.id for entry in mem.ledger.entries(user_id="ana") if entry.role == "user"}
        mem.forget(event=said["Reach 3 with 3, 8 and 3."])
    again = document("learn", "fold", OPEN)
    assert (again["actions"], again["plan"]["notes"]) == ([], "forgotten"), "it was learnt from that run too"
    assert "plan_" in (shown := text("learn", "fold", OPEN))
    assert "forgotten, with a run that it was learnt from" in shown
    with muniment.open("muniment.db") as mem:
        mem.forget(event=said["Reach 7 with 3, 8 and 7."])
    assert failure("learn", "fold", OPEN, "--verdict", "PASS")["code"] == "forgotten"
    text("forget", "--user", "ana", "--yes")
    assert document("learn", "bank", "list", *ANA, "--all")["records"] == []
    assert failure("learn", "fold", OPEN, "--verdict", "PASS")["code"] == "forgotten"
