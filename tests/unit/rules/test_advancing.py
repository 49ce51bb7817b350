"""`advance` takes drafts and rules as far as evidence allows, and says what is missing (RC-18)."""

from __future__ import annotations

import time
from collections import Counter
from random import Random
from typing import Any

import pytest
from rule_drafts import draft

from effort import SOAK
from muniment.errors import Conflict, GateFailed, InvalidInput
from muniment.rules._records import AdvanceReport, GateReport, ReplayReport
from muniment.testing.stories import RuleStory
from muniment.verify.outputs import Output

HALF = {"rules": {"canary": {"share": 0.5}}}
SIGNS = {"rules": {"canary": {"share": 0.5}, "promote": {"signature": "policy"}}}


class Desk:
    """Two families, each with a tool that answers its tasks; the agent draws one, or calls the one that it is told.

    What it draws depends on what it is shown and how often it was shown that, and not on the order of tasks: tests are
    asked in the order of their ids.
    """

    def __init__(self, mem: Any, *, seed: int = 1, best: float = 0.95, worst: float = 0.05) -> None:
        self.mem, self.seed = mem, seed
        self.shown: Counter[str] = Counter()
        self.rates = {"parcels": {"by_name": best, "by_date": worst}, "seats": {"by_name": worst, "by_date": best}}
        self.asked: list[str] = []
        self.number = 0

    @property
    def book(self) -> Any:
        return self.mem.rulebook(user_id="ana")

    def work(self, prompt: str, task: str) -> tuple[str, str]:
        self.shown[prompt] += 1
        random = Random(f"{self.seed} {self.shown[prompt]} {prompt}")
        told = [tool for tool in ("by_name", "by_date") if f"Call {tool}" in prompt]
        tool = told[-1] if told else random.choice(("by_name", "by_date"))
        family = "parcels" if "parcels" in task else "seats"
        return tool, "done" if random.random() < self.rates[family][tool] else "not found"

    def agent(self, task: Any) -> str:
        self.asked.append(task.task)
        tool, text = self.work(task.prompt, task.task)
        task.run.observe_tool(tool, content=text)
        return text

    @staticmethod
    def verify(output: Output, task: str) -> bool:
        return output.text == "done" and bool(output.tool_calls)

    def runs(self, count: int, family: str | None = None) -> list[str]:
        runner = self.mem.runner(self.agent, self.verify, {"recall": False}, user_id="ana", agent_id="clerk")
        traces = []
        for _ in range(count):
            self.number += 1
            name = family or ("parcels", "seats")[self.number % 2]
            done = runner.run(f"Look up {name} {self.number}.", intent={"task_family": name})
            traces.append(done.learned.event_log.trace_id)
        return traces

    def plant(self, words: str, sources: list[str], name: str = "d1", family: str = "parcels") -> str:
        given = draft(name, body=words, task_family=family)
        given["source_trace_ids"] = given["evidence"]["trace_ids"] = sources
        return str(self.book.submit(given).id)

    def advance(self, **more: Any) -> AdvanceReport:
        return self.book.advance(self.agent, self.verify, **more)


def desk_at(make: Any, policy: Any = None, **fields: Any) -> tuple[Desk, list[str]]:
    """A desk whose folds draft nothing by themselves, and the first four runs of parcels."""
    learn = {"learn": {"fold": {"tactics_max": 0, "drafts_max": 0}}}
    desk = Desk(make("memory", policy={**learn, **(policy or HALF)}), **fields)
    return desk, desk.runs(4, "parcels")


def of(report: AdvanceReport, rule_id: str) -> Any:
    return next(one for one in report.rules if one.rule_id == rule_id)


# -- how far it goes ----------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("RC-18")
def test_a_draft_of_the_bank_comes_as_far_as_a_signature(make) -> None:
    story = RuleStory(make("memory", policy=HALF))
    story.teach()
    first = story.book.advance(story.agent, story.verifier)
    (one,) = [each for each in first.rules if each.after == "canary"]
    assert (one.before, bool(one.draft_id), one.ready) == ("draft", True, None)
    assert one.done[0].startswith("submitted:")
    assert any(each.startswith("gate:") for each in one.done)
    assert any(each.startswith("replay:") for each in one.done)
    assert 0 < one.calls <= first.calls <= first.calls_max
    assert any("runs" in each for each in one.missing)
    for _ in range(60):
        story.run()
    later = of(story.book.advance(story.agent, story.verifier), one.rule_id)
    assert later.after == "canary"
    assert later.ready is not None
    assert later.ready.startswith(f"ready: sign with book.promote({one.rule_id!r}")
    assert later.missing == ()
    story.book.promote(one.rule_id, signed_by="rosa")
    last = of(story.book.advance(story.agent, story.verifier), one.rule_id)
    assert (last.before, last.after, last.missing) == ("active", "active", ())


@pytest.mark.soak
@pytest.mark.req("RC-18")
@pytest.mark.parametrize("seed", [1, 2, 3] if SOAK else [1])
def test_where_the_policy_signs_what_helps_is_promoted_and_what_harms_is_not(make, seed) -> None:
    desk, sources = desk_at(make, SIGNS, seed=seed)
    desk.runs(26)
    good = desk.plant("Call by_name.", sources)
    bad = desk.plant("Call by_date: passed 9 of 9 with it, 0 of 9 without.", sources, "d2")
    for _ in range(8):
        if of(desk.advance(), good).after == "active":
            break
        desk.runs(20)
    assert desk.book.get(good).stage == "active"
    assert desk.book.get(bad).stage in ("drafted", "retired")
    promoted = [each for each in desk.book.reports(good) if getattr(each, "action", "") == "promote"]
    assert promoted[0].allowed_by == "default"


@pytest.mark.soak
@pytest.mark.req("RC-18")
def test_no_task_that_it_was_learnt_from_is_a_task_it_is_tested_on(make) -> None:
    desk, sources = desk_at(make)
    desk.runs(30)
    learnt = {f"Look up parcels {number}." for number in range(1, 5)}
    rule = desk.plant("Call by_name.", sources)
    desk.asked.clear()
    assert of(desk.advance(), rule).after == "canary"
    assert desk.asked
    assert learnt.isdisjoint(desk.asked)
    replay = next(each for each in desk.book.reports(rule) if isinstance(each, ReplayReport))
    assert set(sources).isdisjoint(replay.trace_ids)
    gate = next(each for each in desk.book.reports(rule) if isinstance(each, GateReport))
    judged = [each for each in gate.outcomes if each.by == "verifier"]
    assert sum(each.is_micro for each in judged) == 5, "five earlier tasks, and the caller's verifier says"
    assert {each.kind for each in judged} == {None, "cluster", "boundary"}


@pytest.mark.soak
@pytest.mark.req("RC-18")
def test_a_task_in_other_spaces_is_the_same_task(make) -> None:
    desk, _ = desk_at(make)
    runner = desk.mem.runner(desk.agent, desk.verify, user_id="ana", agent_id="clerk")
    here = {"intent": {"task_family": "parcels"}}
    other = [runner.run(f"Look  up\nPARCELS parcels {number}. ", **here) for number in range(3)]
    same = [runner.run(f"look up parcels parcels {number}.", **here) for number in range(3)]
    again = [each.learned.event_log.trace_id for each in other]
    desk.runs(30)
    rule = desk.plant("Call by_name.", again)
    desk.asked.clear()
    desk.advance()
    assert (len(same), desk.book.get(rule).stage) == (3, "canary")
    assert not [task for task in desk.asked if task.lower().startswith("look up parcels parcels")]


@pytest.mark.soak
@pytest.mark.req("RC-18")
def test_called_again_it_does_nothing_twice(make) -> None:
    desk, sources = desk_at(make)
    desk.runs(30)
    rule = desk.plant("Call by_name.", sources)
    desk.advance()
    revision, reports, asked = desk.book.revision, len(desk.book.reports(rule)), len(desk.asked)
    for _ in range(3):
        again = desk.advance()
        assert (again.calls, of(again, rule).done) == (0, ())
    assert (desk.book.revision, len(desk.book.reports(rule)), len(desk.asked)) == (revision, reports, asked)


# -- what is missing ----------------------------------------------------------------------------------


@pytest.mark.soak
def test_it_says_with_numbers_what_it_waits_for_and_calls_nobody(make) -> None:
    desk, sources = desk_at(make)
    rule = desk.plant("Call by_name.", sources)
    desk.asked.clear()
    report = desk.advance()
    assert report.calls == 0
    assert not desk.asked
    told = "\n".join(of(report, rule).missing)
    assert "needs 1 more earlier task of the family parcels that failed without it: 0 of 1" in told
    assert "needs 5 more earlier tasks of the family parcels, whatever came of them: 0 of 5" in told
    assert told in report.text.replace("\n  ", "\n")
    desk.runs(30)
    assert of(desk.advance(), rule).after == "canary"


@pytest.mark.soak
def test_a_trial_says_how_many_runs_it_needs(make) -> None:
    desk, sources = desk_at(make, {"rules": {"canary": {"share": 0.05}}}, best=1.0, worst=0.0)
    desk.runs(60)
    rule = desk.plant("Call by_name.", sources)
    told = of(desk.advance(), rule)
    assert told.after == "canary"
    assert told.missing[0].startswith("better than without it, with its replay; needs 8 more runs with it: 0 of 8")
    assert "that takes about 160 more runs of its kind at a share of 0.05" in told.missing


@pytest.mark.soak
def test_calls_are_counted_and_never_exceed_the_budget(make) -> None:
    desk, sources = desk_at(make)
    desk.runs(30)
    rule = desk.plant("Call by_name.", sources)
    seen = []
    for most in (1, 30, 84):
        desk.asked.clear()
        report = desk.advance(max_calls=most)
        assert report.calls == len(desk.asked) <= most
        assert report.is_spent
        assert any("raise max_calls" in each for each in of(report, rule).missing)
        seen.append(of(report, rule).after)
    assert seen == ["drafted", "drafted", "drafted"]
    desk.asked.clear()
    report = desk.advance(max_calls=85)
    assert report.calls == len(desk.asked) <= 85
    assert of(report, rule).after in ("gated", "canary"), "it goes on from where it was"
    assert of(desk.advance(), rule).after == "canary"


@pytest.mark.soak
@pytest.mark.req("RC-18")
@pytest.mark.parametrize("tries", [1, 2, 3])
def test_a_replay_asks_each_task_as_often_as_the_policy_says_on_both_sides(make, tries) -> None:
    desk, sources = desk_at(make, {"rules": {"canary": {"share": 0.5}, "advance": {"replay_tries": tries}}})
    desk.runs(30)
    rule = desk.plant("Call by_name.", sources)
    told = of(desk.advance(), rule)
    (replay,) = (each for each in desk.book.reports(rule) if isinstance(each, ReplayReport))
    tasks = len(replay.trace_ids)
    assert (replay.pairs, len(set(replay.trace_ids))) == (tries * tasks, tasks)
    asked = "" if tries == 1 else f"answers to {tasks} "
    passed = f"{replay.with_passes} of {replay.pairs} {asked}earlier tasks passed with it"
    assert f"replay: {passed}, {replay.without_passes} without" in told.done


@pytest.mark.soak
def test_a_replay_takes_the_tasks_that_the_calls_reach_and_goes_on_the_next_time(make) -> None:
    desk, sources = desk_at(make, best=0.8, worst=0.6)
    desk.runs(60)
    rule = desk.plant("Call by_name.", sources)
    first = desk.advance(max_calls=110)
    assert (of(first, rule).after, first.is_spent) == ("canary", True)
    (begun,) = (each for each in desk.book.reports(rule) if isinstance(each, ReplayReport))
    assert 5 <= len(begun.trace_ids) < 25
    desk.asked.clear()
    again = desk.advance()
    assert again.calls == len(desk.asked) > 0
    *_, whole = (each for each in desk.book.reports(rule) if isinstance(each, ReplayReport))
    assert whole.continues == begun.report_id
    assert set(begun.trace_ids) < set(whole.trace_ids)
    assert not again.is_spent


@pytest.mark.soak
def test_a_verifier_that_lets_everything_pass_is_no_test(make) -> None:
    desk, sources = desk_at(make)
    desk.runs(30)
    rule = desk.plant("Call by_name.", sources)
    desk.asked.clear()
    report = desk.book.advance(desk.agent, lambda output, task: True)
    assert (of(report, rule).after, report.calls, desk.asked) == ("drafted", 0, [])


def _raises(task: Any) -> str:
    raise RuntimeError("no key")


def _hangs(task: Any) -> str:
    time.sleep(3)
    return "done"


@pytest.mark.soak
@pytest.mark.parametrize(
    "agent", [_raises, _hangs, lambda task: None, lambda task: {"txet": "done"}, lambda task: "x" * 2_000_000]
)
def test_an_agent_that_does_wrong_is_an_outcome(make, agent) -> None:
    desk, sources = desk_at(make, {"rules": {"gate": {"tries": 1}, "canary": {"share": 0.5}}})
    desk.runs(30)
    rule = desk.plant("Call by_name.", sources)
    told = of(desk.book.advance(agent, desk.verify, timeout_s=0.2), rule)
    assert told.after == "drafted"
    assert any(each.startswith("every test passes:") for each in told.missing)


@pytest.mark.soak
def test_the_gate_is_not_asked_for_ever(make) -> None:
    desk, sources = desk_at(make)
    desk.runs(60)
    rule = desk.plant("Call by_name.", sources)
    for _ in range(6):
        desk.book.advance(lambda task: "no", desk.verify)
        desk.runs(10)
    gates = [each for each in desk.book.reports(rule) if isinstance(each, GateReport)]
    assert len(gates) == 3
    tried = [{each.test_id for each in gate.outcomes} for gate in gates]
    assert not tried[0] & tried[1], "other tasks than those that it failed on"
    desk.asked.clear()
    told = of(desk.advance(), rule)
    assert "the gate refused it 3 times" in told.missing[0]
    assert not desk.asked


@pytest.mark.soak
def test_a_task_that_the_rule_does_not_apply_to_says_nothing_against_it(make) -> None:
    desk, sources = desk_at(make)
    desk.runs(30)
    rule = desk.plant("Call by_name.", sources)
    desk.rates["seats"] = {"by_name": 0.0, "by_date": 0.0}  # whatever is asked there fails now
    desk.asked.clear()
    told = of(desk.advance(), rule)
    assert told.after != "drafted", told.missing
    assert not [task for task in desk.asked if "seats" in task]


@pytest.mark.soak
def test_what_harms_earlier_tasks_is_retired_before_any_run_tries_it(make) -> None:
    desk, sources = desk_at(make, best=1.0, worst=0.4)
    desk.runs(100)
    rule = desk.plant("Call by_date.", sources)
    told = of(desk.advance(), rule)
    assert told.after == "retired", told
    assert told.done[-1] == "retired: it does harm on earlier tasks"
    assert not [one for one in desk.book.history(rule) if one.stage == "canary"]
    assert rule not in [one.rule_id for one in desk.advance().rules]


@pytest.mark.soak
@pytest.mark.parametrize(
    "given",
    [
        {"max_calls": 0},
        {"max_calls": "many"},
        {"tasks": 0},
        {"share": 0},
        {"share": 1.5},
        {"share": 0.9},
        {"timeout_s": -1},
        {"executor": "x"},
    ],
)
def test_bad_input_changes_nothing(make, given) -> None:
    desk, sources = desk_at(make)
    desk.plant("Call by_name.", sources)
    before = desk.book.revision
    with pytest.raises(InvalidInput) as refused:
        desk.advance(**given)
    assert refused.value.path == f"$.{next(iter(given))}"
    assert desk.book.revision == before
    for agent, verifier in ((None, desk.verify), (desk.agent, None)):
        with pytest.raises(InvalidInput):
            desk.book.advance(agent, verifier)


# -- a trial that goes on from its replay -------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("RC-16", "RC-18")
def test_what_the_replay_showed_takes_runs_of_the_trial_that_agree(make) -> None:
    desk, sources = desk_at(make, best=1.0, worst=0.0)
    desk.runs(60)
    rule = desk.plant("Call by_name.", sources)
    desk.advance()
    assert desk.book.watch()[rule].claim == "better"
    with pytest.raises(GateFailed) as refused:
        desk.book.promote(rule, signed_by="rosa")
    assert any("needs 8 more runs with it: 0 of 8" in each for each in refused.value.details["reasons"])
    desk.rates["parcels"] = {"by_name": 0.0, "by_date": 1.0}  # the world has changed since
    for _ in range(10):  # arms are drawn by ids: how soon it shows is a matter of luck
        desk.runs(10, "parcels")
        desk.book.watch()
        if desk.book.get(rule).stage != "canary":
            break
    with pytest.raises(Conflict):
        desk.book.promote(rule, signed_by="rosa")
    assert desk.book.get(rule).stage == "retired", "its own runs are enough to end it"


@pytest.mark.soak
@pytest.mark.req("RC-16")
def test_replayed_again_by_hand_the_trial_alone_decides(make) -> None:
    desk, sources = desk_at(make, best=1.0, worst=0.0)
    desk.runs(60)
    rule = desk.plant("Call by_name.", sources)
    desk.advance()
    assert desk.book.watch()[rule].claim == "better"
    desk.book.replay(rule, desk.agent, desk.verify)
    assert desk.book.watch()[rule].claim == "undecided"


@pytest.mark.soak
def test_where_the_policy_says_so_the_replay_does_not_count(make) -> None:
    policy = {"rules": {"canary": {"share": 0.5, "counts_replay": False}}}
    desk, sources = desk_at(make, policy, best=1.0, worst=0.0)
    desk.runs(60)
    rule = desk.plant("Call by_name.", sources)
    assert of(desk.advance(), rule).after == "canary"
    assert desk.book.watch()[rule].claim == "undecided"


@pytest.mark.soak
def test_while_it_is_on_trial_its_replay_goes_on_with_tasks_that_have_come(make) -> None:
    desk, sources = desk_at(make, best=0.8, worst=0.6)
    desk.runs(30)
    rule = desk.plant("Call by_name.", sources)
    assert of(desk.advance(), rule).after == "canary"
    desk.runs(10, "parcels")
    desk.advance()
    first, second = (each for each in desk.book.reports(rule) if isinstance(each, ReplayReport))
    assert second.continues == first.report_id
    assert second.pairs > first.pairs
    assert set(first.trace_ids) < set(second.trace_ids)
