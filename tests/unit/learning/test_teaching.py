"""By which kind of judge a run passed is recorded, and a policy says which may teach."""

from __future__ import annotations

from typing import Any

import pytest

from muniment.contracts.runs import VerifierResult
from muniment.core.policy import LearnPolicy
from muniment.errors import InvalidRecord
from muniment.rules.routing import row_of
from muniment.testing.stories import RuleStory
from muniment.verify.outputs import Finding
from muniment.verify.results import Execution, compose_result, is_pass, judge_of, says_nothing, taught_by
from rule_stages import story_at

pytestmark = pytest.mark.req("RC-01", "RC-17")

INTENT = {"domain_tag": "code", "task_family": "add"}
FORGEABLE = ("in_process", "command")


def ran(judge: Any, outcome: Any = "OK", findings: Any = None) -> VerifierResult:
    """A result as `run.verify` makes it of an execution."""
    reasons = ("test_fail",) if outcome == "FAIL" else ()
    return compose_result(findings, None, Execution(outcome, reasons, None, judge))


def one_run(mem: Any, result: Any, number: int = 1) -> Any:
    run = mem.run(user_id="ana", task_type="add", run_id=f"run_{number}")
    run.observe("user", f"Write add, number {number}.")
    run.observe_tool("edit", content="written")
    run.observe("assistant", "def add(a, b): …")
    return run.finish(verifier_result=result, intent=INTENT)


# -- the result ---------------------------------------------------------------------------------------


def test_a_result_names_its_judge_and_what_was_said_without_it() -> None:
    broken = [Finding("FORMAT:JSON_ONLY", False, "no JSON")]
    assert ran("in_process").to_wire()["judge"] == {"kind": "in_process"}
    assert ran("in_process", "FAIL", []).to_wire()["judge"] == {"kind": "in_process", "others": "PASS"}
    assert ran("command", "OK", broken).to_wire()["judge"] == {"kind": "command", "others": "FAIL"}
    assert "judge" not in compose_result(broken).to_wire()
    again = VerifierResult.from_wire(ran("external_process").to_wire())
    assert judge_of(again) == "external_process"


def test_a_result_that_was_run_and_names_no_judge_is_of_the_forgeable_kind() -> None:
    """So were all results of the versions before judges were named."""
    old = ran(None)
    assert (old.verifier_id, judge_of(old)) == ("v_l1+l3_exec", "in_process")
    own = VerifierResult.from_wire(old.to_wire() | {"verifier_id": "mine"})
    assert judge_of(own) is None
    for nonsense in (7, [], {"kind": 3}, {}):
        assert judge_of(VerifierResult.from_wire(old.to_wire() | {"judge": nonsense})) == "in_process"


@pytest.mark.parametrize("judge", FORGEABLE)
@pytest.mark.parametrize("outcome", ["OK", "FAIL"])
def test_the_word_of_a_judge_that_may_not_teach_is_set_aside(judge: str, outcome: str) -> None:
    """A failure like a pass: else only failures would count."""
    alone = taught_by(ran(judge, outcome), LearnPolicy().judges)
    assert (alone.judge, alone.set_aside) == (judge, outcome)
    assert says_nothing(alone.result.verdict, alone.result.outcome, alone.result.reason_codes)
    with_form = taught_by(ran(judge, outcome, []), LearnPolicy().judges).result
    assert (with_form.verdict, with_form.outcome, with_form.reason_codes) == ("PASS", "UNKNOWN", None)
    bad_form = taught_by(ran(judge, outcome, [Finding("FORMAT:JSON_ONLY", False)]), LearnPolicy().judges).result
    assert (bad_form.verdict, bad_form.outcome, bad_form.reason_codes) == ("FAIL", "UNKNOWN", ("constraint_violation",))
    allowed = ran(judge, outcome)
    assert taught_by(allowed, (judge,)).result is allowed


def test_others_are_taken_as_they_are() -> None:
    for result in (ran("external_process"), compose_result([]), ran("in_process", "UNKNOWN")):
        assert taught_by(result, LearnPolicy().judges).result is result


def test_the_policy_names_kinds_that_there_are() -> None:
    assert LearnPolicy().judges == ("external_process",)
    assert LearnPolicy.from_wire({"judges": ["external_process", "command"]}).judges == ("external_process", "command")
    with pytest.raises(InvalidRecord):
        LearnPolicy.from_wire({"judges": ["me"]})


# -- folds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("judge", FORGEABLE)
def test_a_fold_learns_nothing_from_a_forgeable_judge_and_says_so(make: Any, judge: str) -> None:
    mem = make("memory")
    folded = one_run(mem, ran(judge))
    assert folded.produced.reuse_state_ids == ()  # no seed of a run that nobody passed
    assert f"OK by {judge}, a judge that may not teach: it taught nothing" in folded.notes
    (log,) = mem.bank(user_id="ana").event_logs()
    assert log.verifier.to_wire() == {
        "verifier_id": "v_l1+l3_exec",
        "verdict": "PARTIAL",
        "outcome": "UNKNOWN",
        "judge": judge,
        "set_aside": "OK",
    }
    assert log.memory_fold.notes == folded.notes
    assert [each.status for each in mem.bank(user_id="ana").reasoning_bank().items] == ["temporary"]
    assert mem.run(user_id="ana").learning.recall("Write add", intent=INTENT).hints == ()
    assert mem.verify().ok
    assert not mem.store.rebuild().repaired


def test_what_was_judged_outside_teaches_and_is_recorded(make: Any) -> None:
    mem = make("memory")
    folded = one_run(mem, ran("external_process"))
    assert len(folded.produced.reuse_state_ids) == 1
    (log,) = mem.bank(user_id="ana").event_logs()
    assert is_pass(log.verifier.verdict, log.verifier.outcome)
    assert log.verifier.to_wire()["judge"] == "external_process"
    assert "set_aside" not in log.verifier.to_wire()


def test_a_policy_may_let_a_forgeable_judge_teach(make: Any) -> None:
    mem = make("memory", policy={"learn": {"judges": ["external_process", "in_process"]}})
    assert len(one_run(mem, ran("in_process")).produced.reuse_state_ids) == 1
    assert one_run(mem, ran("command"), 2).produced.reuse_state_ids == ()


def test_form_that_holds_is_learnt_from_without_the_forgeable_outcome(make: Any) -> None:
    mem = make("memory")
    folded = one_run(mem, ran("command", "OK", []))
    assert "nothing is learnt from its outcome" in folded.notes
    (log,) = mem.bank(user_id="ana").event_logs()
    assert (log.verifier.verdict, log.verifier.outcome) == ("PASS", "UNKNOWN")


def test_the_router_counts_no_run_of_a_forgeable_judge(make: Any) -> None:
    mem = make("memory")
    for number, result in enumerate((ran("in_process"), ran("command", "FAIL"), ran("external_process"))):
        one_run(mem, result, number)
    seen = mem.learning.observe_rates(user_id="ana").observables
    assert (seen.pass_rate.count, seen.unknown_rate.count, seen.exec_unavailable_rate.count) == (1, 2, 2)
    log, facts = ran("command").to_wire(), {"at": "2026-01-01T00:00:00Z", "judge": "command", "set_aside": "OK"}
    row = row_of({"event_log": {"verifier": log | {"verdict": "PARTIAL", "outcome": "UNKNOWN"}}, "facts": facts})
    assert (row.counts, row.passed) == (False, False)


# -- rules --------------------------------------------------------------------------------------------


class Judged(RuleStory):
    """The story of a rule whose runs are judged by a kind of judge."""

    judge = "external_process"

    def result(self, passed: bool) -> Any:
        made = ran(self.judge, "OK" if passed else "FAIL").to_wire()
        return (
            made if passed else made | {"reason_codes": ["format_leak"], "violated_constraints": ["FORMAT:JSON_ONLY"]}
        )

    def run(self, *, select: bool = True, task: str | None = None) -> Any:
        self.number += 1
        run = self.memory.run(user_id="ana", agent_id="counter", task_type="apples")
        from muniment.testing.stories import COUNTING

        text = run.learning.select_rules(intent=COUNTING).text if select else ""
        asked = task or f"Count the apples in basket {self.number}."
        run.observe("user", asked)
        answer = self.agent(f"{text}\n{asked}")
        run.observe("assistant", answer)
        return run.learning.learn(self.result(answer.startswith("{")), intent=COUNTING)


@pytest.mark.req("RC-18")
def test_a_promotion_says_by_which_judges_its_runs_passed(make: Any) -> None:
    story, tried = story_at(make("memory"), "canary", Judged)
    story.canary = lambda: tried
    rule_id = story.promote()
    (report,) = [each for each in story.book.reports(rule_id) if hasattr(each, "judges")]
    assert set(report.judges) == {"external_process"}
    assert report.judges["external_process"] > 5


@pytest.mark.req("RC-18")
def test_runs_of_a_forgeable_judge_promote_nothing(make: Any) -> None:
    story, rule_id = story_at(make("memory"), "canary", Judged)
    story.judge = "in_process"
    for _ in range(60):
        story.run()
    assert story.book.watch()[rule_id].decision == "stay"
    assert story.book.stats(rule_id).with_counts.runs.n == 0


@pytest.mark.req("RC-18")
def test_a_replay_by_a_forgeable_judge_says_nothing(make: Any) -> None:
    story, rule_id = story_at(make("memory"), "gate")

    def verifier(output: Any, task: str) -> Any:
        return ran("in_process", "OK" if story.verifier(output, task) is True else "FAIL")

    report = story.book.replay(rule_id, story.agent, verifier)
    assert (report.pairs, report.passed) == (0, False)
