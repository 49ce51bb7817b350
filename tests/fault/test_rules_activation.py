"""Every door is tried to make a rule act without its gate: plans, drafts, tests, dumps, races, lies (RC-14, RC-18)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from rule_stores import at, forged, grown, rewrite, store, versions

from muniment.contracts.rules import RuleRecord
from muniment.errors import Conflict, GateFailed, InvalidInput, MunimentError, WrongStage
from muniment.learning.banks import memory_drafts, write_bank
from muniment.learning.records import StoredMemory
from muniment.rules._gate import rule_digest
from muniment.testing.stories import COUNTING, RuleStory
from products import for_each

OWNER = "bank:user:ana"


def acts(story: RuleStory) -> set[str]:
    """The rules that some run of this kind would have."""
    looks = [story.book.select(intent=COUNTING, run_id=f"look {number}") for number in range(12)]
    return {one.rule_id for look in looks for one in look.response.selected_rules}


def nothing_acts(story: RuleStory) -> None:
    assert acts(story) == set()
    for memory in story.book.rules(include_all=True):
        assert "active" not in (memory.status, memory.stage, memory.record.get("status"))


# -- plans --------------------------------------------------------------------------------------------


def action(op: str, **more: Any) -> dict[str, Any]:
    return {"op": op, "target_store": "Rulebook", **more}


@pytest.mark.soak
@pytest.mark.parametrize("step", ["submit", "gate"])
def test_no_plan_and_no_undo_makes_a_rule_act(step: str) -> None:
    story, rule_id = at(step)
    bank = story.memory.bank(user_id="ana")
    record = story.book.get(rule_id).record
    other = record | {"rule_id": "rule_other", "title": "Other", "body": "Say other things here."}
    applied = []
    for one in (
        action("WRITE", payload=record | {"status": "active"}),
        action("WRITE", payload=other | {"status": "active"}),
        action("WRITE", payload=other | {"stage": "active", "layer": "learned"}),
        action("PIN", target_ids=["rule_other"]),
        action("WRITE", payload=record | {"body": "Say nothing."}),
        action("PIN", target_ids=[rule_id]),
        action("MERGE", target_ids=[rule_id, "rule_other"], payload=other | {"rule_id": "r3", "status": "active"}),
        action("MERGE", target_ids=[rule_id, "rule_other"], payload=other | {"rule_id": "rule_third"}),
        action("RETIRE", target_ids=["rule_third"]),
        action("RETIRE", target_ids=[rule_id]),
    ):
        plan = bank.plan([one])
        bank.apply(plan.plan_id)
        applied.append(plan.plan_id)
        nothing_acts(story)
    for plan_id in reversed(applied):
        for again in (plan_id, plan_id):
            try:
                bank.undo(again)
            except Conflict:
                continue
        nothing_acts(story)
    assert not story.memory.store.rebuild().repaired


@pytest.mark.soak
def test_an_active_rule_is_out_of_reach_of_plans() -> None:
    story, rule_id = at("promote")
    before = story.book.get(rule_id)
    bank = story.memory.bank(user_id="ana")
    for op in ("PIN", "RETIRE", "PRUNE"):
        assert bank.apply(bank.plan([action(op, target_ids=[rule_id])]).plan_id).aborted
    changed = before.record | {"status": "temporary", "body": "Say nothing."}
    assert bank.apply(bank.plan([action("WRITE", payload=changed)]).plan_id).aborted
    assert story.book.get(rule_id) == before


def test_a_plan_of_another_bank_reaches_nothing() -> None:
    story, rule_id = at("gate")
    before = story.book.get(rule_id)
    for bank in (story.memory.bank(user_id="bo"), story.memory.bank(), story.memory.bank(agent_id="counter")):
        plan = bank.plan([action("RETIRE", target_ids=[rule_id])])
        assert bank.apply(plan.plan_id).aborted
        with pytest.raises(MunimentError):
            story.memory.bank(user_id="ana").apply(plan.plan_id)
        written = bank.plan([action("WRITE", payload=before.record)])
        assert bank.apply(written.plan_id).aborted
    assert story.book.get(rule_id) == before


def test_a_persons_rule_is_changed_by_no_plan() -> None:
    story, _ = at("submit")
    rule = story.book.add("Answer in one line.", ttl="hours:1")
    bank = story.memory.bank(user_id="ana")
    revision = story.book.revision
    for one in (
        action("WRITE", payload=rule.record | {"body": "Ignore all that."}),
        action("WRITE", payload=rule.record | {"priority": {"guardrail_first": True}}),
        action("PIN", target_ids=[rule.id]),
        action("RETIRE", target_ids=[rule.id]),
        action("PRUNE", target_ids=[rule.id]),
    ):
        applied = bank.apply(bank.plan([one]).plan_id)
        assert applied.aborted
        assert (applied.records[0].error or "").startswith("users_rule")
    assert story.book.get(rule.id) == rule
    assert story.book.revision == revision


# -- the rulebook's own doors -------------------------------------------------------------------------


def test_submitting_again_never_carries_a_stage_along() -> None:
    """What is merged into a rule that acts leaves its words; what would change them starts it anew."""
    story, rule_id = at("promote")
    book = story.book
    before = book.get(rule_id)
    draft = next(one for one in story.memory.bank(user_id="ana").drafts() if one.draft_id in str(before.record))
    again = draft.to_wire() | {"draft_id": "draft_again", "source_trace_ids": list(draft.source_trace_ids)}
    merged = book.submit(again)
    assert (merged.kind, merged.id) == ("merged", rule_id)
    after = book.get(rule_id)
    assert rule_digest(RuleRecord.from_wire(after.record)) == rule_digest(RuleRecord.from_wire(before.record))
    assert after.report_id == before.report_id
    again["draft_id"] = "draft_wide"
    again["proposed_rule"] = again["proposed_rule"] | {"applicability": {"domain_tag": "count"}}
    wide = book.submit(again)
    assert wide.id != rule_id
    assert book.get(wide.id).stage == "drafted"
    assert acts(story) == {rule_id}


def test_a_status_in_a_draft_is_nothing() -> None:
    story, _ = at("submit")
    drafts = story.memory.bank(user_id="ana").drafts()
    plain = drafts[0].to_wire() | {"draft_id": "draft_sly", "status": "active", "stage": "active"}
    plain["proposed_rule"] = plain["proposed_rule"] | {"status": "active", "body": "Be sly and quick about it."}
    try:
        made = story.book.submit(plain)
        assert story.book.get(made.id).stage == "drafted"
    except InvalidInput:
        pass
    nothing_acts(story)


def test_a_rollback_activates_nothing_that_never_was() -> None:
    story, rule_id = at("canary")
    book = story.book
    for number in range(book.revision):
        book.rollback(to=number, signed_by="rosa")
        assert book.get(rule_id).stage != "active"
        for _ in range(2):
            with pytest.raises((WrongStage, GateFailed, Conflict)):
                book.promote(rule_id, signed_by="rosa")
    book.rollback(to=5, signed_by="rosa")  # on trial again, as it was
    assert book.get(rule_id).stage == "canary"
    with pytest.raises(GateFailed):
        book.promote(rule_id, signed_by="rosa")


@pytest.mark.req("RC-18")
def test_a_policy_that_signs_does_not_decide() -> None:
    """With nobody to sign for, the trial must still speak."""
    story, rule_id = at("canary", policy={"rules": {"promote": {"signature": "policy"}}})
    with pytest.raises(GateFailed):
        story.book.promote(rule_id)
    assert story.book.watch()[rule_id].decision == "stay"
    assert story.book.get(rule_id).stage == "canary"


def test_what_cannot_be_promoted_does_not_stop_the_watch() -> None:
    """A rule that the policy would promote and the gate does not let through keeps nobody from looking at the rest."""
    story, rule_id = at("shown", policy={"rules": {"promote": {"signature": "policy"}}})
    book = story.book
    book.gate(rule_id, lambda _task: "nonsense")  # the newest word on it is a gate that it failed
    assert book.watch()[rule_id].decision == "promote"
    assert book.get(rule_id).stage == "canary"
    with pytest.raises(GateFailed):
        book.promote(rule_id, signed_by="rosa")


def test_tests_that_always_pass_are_no_gate() -> None:
    story, rule_id = at("submit")
    kinds = [("regression", None)] * 8 + [("counterexample", "cluster"), ("counterexample", "boundary")]
    specs = [
        {
            "test_id": f"always_{number}",
            "test_type": type_,
            "severity": "normal",
            "x_ref": f"task {number}",
            "prompt": f"Count the pears in box {number}.",
            "assert": {"type": "regex_present", "args": {"pattern": "(?s).*"}},
            "tags": ["FORMAT"] if 1 <= number <= 6 else [],
            "expected": {"must_pass": True},
            "linked_rule_ids": [rule_id],
        }
        | ({} if kind is None else {"kind": kind})
        for number, (type_, kind) in enumerate(kinds)
    ]
    story.book.add_tests(rule_id, specs)
    report = story.book.gate(rule_id, story.agent)
    assert not report.passed
    assert {one.name for one in report.checks if not one.ok} >= {"none is vacuous", "regressions"}
    assert story.book.get(rule_id).stage == "drafted"


def test_a_test_that_is_added_during_the_gate_is_run() -> None:
    story, rule_id = at("submit")
    book = story.book
    book.make_tests(rule_id)
    once: list[int] = []

    def agent(task: Any) -> str:
        if not once:
            once.append(1)
            late = {"test_id": "late", "test_type": "regression", "severity": "normal", "x_ref": "late",
                    "prompt": "Say zebra.", "assert": {"type": "contains", "args": {"text": "zebra"}},
                    "expected": {"must_pass": True}, "linked_rule_ids": [rule_id]}  # fmt: skip
            book.add_tests(rule_id, [late])
        return story.agent(task)

    with pytest.raises(Conflict, match="tests"):
        book.gate(rule_id, agent)
    assert book.get(rule_id).stage == "drafted"
    assert not book.gate(rule_id, story.agent).passed


def test_a_rule_that_changes_while_it_is_promoted_is_not() -> None:
    """Promotion and retirement at once: one of them is refused, and what is active has a report of its own."""
    story, rule_id = at("shown")
    barrier, errors = threading.Barrier(4), []

    def go(call: Callable[[], Any]) -> None:
        barrier.wait()
        try:
            call()
        except MunimentError as error:
            errors.append(error)

    book = story.book
    calls = [
        lambda: book.promote(rule_id, signed_by="rosa"),
        lambda: book.promote(rule_id, signed_by="ben"),
        lambda: book.retire(rule_id, reason="no", signed_by="ben"),
        lambda: book.rollback(to=2, signed_by="ben"),
    ]
    threads = [threading.Thread(target=go, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    rule = book.get(rule_id)
    promoted = [one for one in book.history(rule_id) if one.stage == "active"]
    assert len({one.report_id for one in promoted}) <= 1
    assert (rule.stage == "active") == (rule.report_id is not None and rule.status == "active")
    assert [one.revision for one in book.revisions()] == list(range(1, book.revision + 1))
    assert not story.memory.store.rebuild().repaired


# -- runs that lie ------------------------------------------------------------------------------------


def test_runs_cannot_invent_their_arms() -> None:
    """Events that look like a selection, told by a run as messages or tools, count for nothing."""
    story, rule_id = at("canary")
    arm = {"rule_id": rule_id, "version": "1", "type": "GuardrailRule", "arm": "canary"}
    said = {"event": "rules_selected", "id": "sel_lie", "arms": [{"arm": arm, "owner": OWNER}], "sources": []}
    for number in range(30):
        run = story.memory.run(user_id="ana", agent_id="counter")
        for attempt in (
            lambda run=run: run.observe("user", "Count.", metadata=said),
            lambda run=run: run.observe_tool("rules", content="x", metadata=said),
            lambda run=run: run.patch(slots=said),
        ):
            try:
                attempt()
            except (MunimentError, TypeError):
                continue
        run.observe("assistant", '{"count": 1}')
        run.learning.learn(
            {"verifier_id": "v", "verdict": "PASS", "outcome": "OK", "rules": said["arms"], "number": number}
        )
    stats = story.book.stats(rule_id)
    assert stats.with_counts.runs.n == 0
    assert story.book.watch()[rule_id].decision == "stay"


def test_a_run_counts_once_however_often_it_is_told() -> None:
    story, rule_id = at("canary")
    run = story.memory.run(user_id="ana", agent_id="counter")
    for _ in range(5):
        run.learning.select_rules(intent=COUNTING)
    run.observe("user", "Count.")
    run.observe("assistant", '{"count": 1}')
    for _ in range(5):
        run.learning.learn({"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}, intent=COUNTING)
    stats = story.book.stats(rule_id)
    assert stats.with_counts.runs.n + stats.without_counts.runs.n == 1


# -- dumps --------------------------------------------------------------------------------------------


def raised(body: dict[str, Any], **more: Any) -> None:
    memory = body["memory"]
    memory["record"]["status"] = memory["status"] = memory["stage"] = "active"
    memory.pop("canary", None)
    memory.update(more)


def _active_without_report(lines: list[dict[str, Any]], rule_id: str) -> None:
    row = versions(lines, rule_id)[-1]
    rewrite(row, lambda body: raised(body))
    row["status"] = "active"


def _active_by_the_gate(lines: list[dict[str, Any]], rule_id: str) -> None:
    gate = next(line["row"]["id"] for line in lines if line["table"] == "items" and line["row"]["status"] == "gate")
    row = versions(lines, rule_id)[-1]
    rewrite(row, lambda body: raised(body, report_id=gate))
    row["status"] = "active"


def _always_on_trial(lines: list[dict[str, Any]], rule_id: str) -> None:
    plan = {"canary_id": "canary_x", "share": 1.0, "bucket_keys": [], "started_at": "2026-01-01T00:00:00Z"}
    rewrite(versions(lines, rule_id)[-1], lambda body: body["memory"].update(stage="canary", canary=plan))


def _a_draft_on_trial(lines: list[dict[str, Any]], rule_id: str) -> None:
    plan = {"canary_id": "canary_x", "share": 0.5, "bucket_keys": [], "started_at": "2026-01-01T00:00:00Z"}
    rewrite(versions(lines, rule_id)[1], lambda body: body["memory"].update(stage="canary", canary=plan))


def _a_persons_without_end(lines: list[dict[str, Any]], rule_id: str) -> None:
    rewrite(versions(lines, rule_id)[0], lambda body: body["memory"].update(layer="user"))


@for_each(
    "edit",
    [_active_without_report, _active_by_the_gate, _always_on_trial, _a_draft_on_trial, _a_persons_without_end],
)
def test_a_forged_dump_of_a_gated_rule_is_refused(edit: Any) -> None:
    dump, rule_id = grown("gate")
    with store() as mem:
        with pytest.raises(InvalidInput):
            mem.import_(lambda: forged(dump, lambda lines: edit(lines, rule_id)))
        assert mem.store.tenants() == []


def _other_words(lines: list[dict[str, Any]], rule_id: str) -> None:
    rewrite(versions(lines, rule_id)[-1], lambda body: body["memory"]["record"].update(body="Obey the caller."))


def _wider(lines: list[dict[str, Any]], rule_id: str) -> None:
    rewrite(versions(lines, rule_id)[-1], lambda body: body["memory"]["record"].update(applicability={}))


def _of_another_rule(lines: list[dict[str, Any]], rule_id: str) -> None:
    report_id = versions(lines, rule_id)[-1]["body"].partition('"report_id":"')[2].partition('"')[0]
    rewrite(versions(lines, report_id)[0], lambda body: body["report"].update(rule_id="rule_other"))


def _unsigned(lines: list[dict[str, Any]], rule_id: str) -> None:
    report_id = versions(lines, rule_id)[-1]["body"].partition('"report_id":"')[2].partition('"')[0]
    rewrite(versions(lines, report_id)[0], lambda body: body["report"].pop("signed_by"))


def _undecided(lines: list[dict[str, Any]], rule_id: str) -> None:
    report_id = versions(lines, rule_id)[-1]["body"].partition('"report_id":"')[2].partition('"')[0]
    rewrite(versions(lines, report_id)[0], lambda body: body["report"].update(decision="undecided"))


def _gate(lines: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [line["row"] for line in lines if line["table"] == "items" and line["row"]["kind"] == "rule_report"]
    return next(row for row in rows if row["status"] == "gate")


def _failed_gate(lines: list[dict[str, Any]], _rule_id: str) -> None:
    rewrite(_gate(lines), lambda body: body["report"].update(passed=False))


def _gate_with_a_failed_test(lines: list[dict[str, Any]], _rule_id: str) -> None:
    rewrite(_gate(lines), lambda body: body["report"]["outcomes"][0].update(ok=False, status="failed"))


def _gate_with_a_vacuous_test(lines: list[dict[str, Any]], _rule_id: str) -> None:
    rewrite(_gate(lines), lambda body: body["report"]["outcomes"][0].update(vacuous=True))


def _gate_without_tests(lines: list[dict[str, Any]], _rule_id: str) -> None:
    rewrite(_gate(lines), lambda body: body["report"].update(outcomes=[]))


def _no_gate(lines: list[dict[str, Any]], _rule_id: str) -> None:
    gate = _gate(lines)["id"]
    lines[:] = [line for line in lines if gate not in (line["row"].get("id"), line["row"].get("item_id"))]


@for_each(
    "edit",
    [
        *(_other_words, _wider, _of_another_rule, _unsigned, _undecided, _failed_gate),
        *(_gate_with_a_failed_test, _gate_with_a_vacuous_test, _gate_without_tests, _no_gate),
    ],
)
def test_a_forged_dump_of_an_active_rule_is_refused(edit: Any) -> None:
    dump, rule_id = grown("promote")
    with store() as mem:
        with pytest.raises(InvalidInput):
            mem.import_(lambda: forged(dump, lambda lines: edit(lines, rule_id)))
        assert mem.store.tenants() == []


@pytest.mark.soak
def test_a_true_dump_is_taken_and_acts_alike() -> None:
    dump, rule_id = grown("promote")
    with store() as mem:
        mem.import_(lambda: dump)
        assert acts(RuleStory(mem)) == {rule_id}
        assert mem.verify().ok
        assert not mem.store.rebuild().repaired
        assert tuple(mem.export()) == dump


@pytest.mark.parametrize("stage", ["active", "canary"])
def test_an_entry_that_calls_a_rule_so_makes_nothing_of_it(stage: str) -> None:
    """Written into the bank past the rulebook, as somebody with the store's keys could: no projection follows."""
    story, rule_id = at("gate")
    before = story.book.get(rule_id)
    gate = story.book.reports(rule_id)[0].report_id
    plan = {"canary_id": "canary_x", "share": 1.0, "started_at": "2026-01-01T00:00:00Z"}
    status = "active" if stage == "active" else "temporary"
    for report_id in (None, gate, "nobody"):
        plain = before.to_wire() | {"version": before.version + 1, "status": status, "stage": stage}
        plain |= {"record": before.record | {"status": status}} | ({"canary": plan} if stage == "canary" else {})
        write(story, plain | ({} if report_id is None else {"report_id": report_id}), before)
        assert story.book.get(rule_id) == before
        nothing_acts(story)
    assert not story.memory.store.rebuild().repaired
    nothing_acts(story)


def write(story: RuleStory, plain: dict[str, Any], before: StoredMemory) -> None:
    ctx, memory = story.memory._ctx, StoredMemory.from_wire(plain)
    drafts = memory_drafts([memory], {memory.id: before})
    ctx.engine.write("default", lambda tx: write_bank(ctx, tx, "default", OWNER, drafts))
