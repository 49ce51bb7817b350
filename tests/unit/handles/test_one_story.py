"""One agent through all four documents: each part hands something to the next, and every hand-over is looked at.

It works with packets, drops its window and resumes, does research, is verified, learns, gets a rule that is later taken
back, and forgets. Everything is drawn from a clock and ids that repeat; no network, no model.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import muniment
from muniment.contracts.semantics import check_packet
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.errors import Forgotten
from muniment.testing.stories import COUNTING, LAUNDERED, QUESTION, RuleStory, draft_for, walk_to

NOW = "2026-02-01T12:00:00Z"
ADVICE = {"domain_tag": "advice", "task_family": "heating"}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "My office is in Berlin. I am allergic to peanuts. How full is the north house?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "stock", "arguments": '{"house": "north"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "north house: 412 baskets"},
]
RUN: dict[str, Any] = {
    "user_id": "ana",
    "agent_id": "counter",
    "session_id": "work",
    "run_id": "run_heat",
    "task_type": "heating",
    "objective": "Say how the north house is heated best",
    "done_definition": {"answer": "a recommendation, every figure cited", "constraints": ["no gas beyond 2030"]},
}
TASK = (
    "goal: Say how the north house is heated best",
    "done when: answer: a recommendation, every figure cited",
    "constraint budget: 12,000 euros",
    "constraint task 1: no gas beyond 2030",
)
METER = "north house, last winter: 61,000 kWh of gas"
BURNT = "The north house burnt 61,000 kWh of gas last winter."
STATE = (
    "plan, done: read the meter",
    "plan, todo: read about heat pumps",
    "next: read about heat pumps",
    f"verified: {BURNT}",
    "failed: prices: no answer within 30 s",
    "- Is the roof of the north house insulated?",
)
COP = "At minus 10 degrees the heat pumps delivered a coefficient of performance of 2.4."
ASKED = "How well do heat pumps work at minus 10 degrees?"


@dataclass
class Story:
    """The store, and what one part leaves to the next."""

    target: str
    folder: Path
    clock: TickingClock = field(default_factory=TickingClock)
    ids: CountingIds = field(default_factory=lambda: CountingIds("story"))
    kept: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mem = self._opened()

    def _opened(self) -> muniment.Memory:
        return muniment.open(self.target, clock=self.clock, ids=self.ids)

    @property
    def is_shared(self) -> bool:
        """Can somebody else open the store?"""
        return self.target != ":memory:"

    def open_again(self) -> None:
        if self.is_shared:
            self.mem.close()
            self.mem = self._opened()


def mark_of(build: Any, evidence_id: str) -> str:
    return next(f"[{number}]" for number, named in build.marks.items() if named == evidence_id)


def is_sound(story: Story, build: Any) -> bool:
    """Does a packet keep its contract and its budget, and replay to the byte?"""
    again = story.mem.replay(build.id)
    return (
        check_packet(build.packet.to_wire()) == []
        and build.tokens <= build.request.budget.max_tokens
        and (again.packet_bytes, again.text) == (build.packet_bytes, build.text)
    )


# -- the parts of the story ---------------------------------------------------------------------------


def works_with_packets(story: Story) -> None:
    """Messages → packets for three purposes → an answer → back to its lines and their evidence."""
    run = story.mem.run(user_id="ana", agent_id="counter", session_id="hello")
    said, _, result = run.record(MESSAGES)
    run.extract()
    question = "How many baskets are in the north house?"
    builds = {purpose: run.compose(purpose, query=question) for purpose in ("planner", "tool", "responder")}
    for build in builds.values():
        assert "stock(house=north) → north house: 412 baskets" in build.text
        assert "Allergic to peanuts" in build.text
        assert build.found
        assert is_sound(story, build)
    build = builds["responder"]
    text = f"412 baskets {mark_of(build, result.id)}. They are red [98]."
    grown = [*MESSAGES, {"role": "assistant", "content": text}]
    (answer,) = run.record(grown, build=build)
    assert answer.cited is not None
    assert (answer.cited.evidence_ids, answer.cited.unknown_marks) == ((result.id,), ("[98]",))
    counted, red = story.mem.why(answer.id)
    assert counted.line in build.text
    assert (counted.build_id, counted.evidence_ids) == (build.id, (result.id,))
    assert story.mem.ledger.content(result.id) == "north house: 412 baskets"
    assert (red.line, red.unknown_marks) == ("", ("[98]",))
    assert run.record(grown) == []
    run.finish()
    story.kept |= {"said": said.id, "result event": result.id, "first": build, "first answer": answer.id}


def drops_its_window(story: Story) -> None:
    """Steps, a claim, a failure, a question, a snapshot; then all that is left is the store."""
    run = story.mem.run(**RUN)
    run.observe("user", "Please find out how to heat the north house.")
    found = run.observe_tool("meter", args={"house": "north"}, content=METER)
    plan = [{"step": "read the meter", "status": "done"}, {"step": "read about heat pumps", "status": "todo"}]
    run.patch(plan=plan, constraints={"budget": "12,000 euros"})
    run.log.step("PLAN_DONE", "read the meter, then read about heat pumps", tokens=500)
    run.log.step("OBSERVE_DONE", tokens=80)
    run.log.claim(BURNT, evidence=[{"event_id": found.id, "quote": "61,000 kWh of gas"}], status="verified")
    run.log.failure("tool_timeout", "prices", "no answer within 30 s")
    run.log.question("Is the roof of the north house insulated?")
    run.log.plan_next(["read about heat pumps"])
    before = run.compose("planner", query="What is left to do?", now=NOW)
    assert all(line in before.text for line in (*TASK, *STATE))
    assert f"verified: {BURNT} {mark_of(before, found.id)}" in before.text
    snapshot = run.log.compact()
    assert snapshot is not None
    assert snapshot.validation.status == "PASS"
    story.kept |= {"meter": found.id, "before": before}


def resumes(story: Story) -> None:
    """Another opening, and where the store can be shared another process, is told what the first one was."""
    before = story.kept["before"]
    story.open_again()
    resumed = story.mem.resume("run_heat")
    assert resumed.log.objective == RUN["objective"]
    after = resumed.run.compose("planner", query="What is left to do?", now=NOW)
    assert (after.packet_bytes, after.text) == (before.packet_bytes, before.text)
    assert story.mem.diff(before.id, after.id).is_same
    responder = resumed.run.compose("responder", query="What is left to do?", now=NOW)
    assert all(line in responder.text for line in (TASK[0], *TASK[2:]))
    assert "plan, todo" not in responder.text
    if story.is_shared:
        asked = (
            "import sys, muniment\nwith muniment.open(sys.argv[1]) as mem:\n    build = mem.resume('run_heat').run"
            ".compose('planner', query='What is left to do?', now=sys.argv[2])\n    sys.stdout.write(build.text)"
        )
        done = subprocess.run(
            [sys.executable, "-c", asked, story.target, NOW], capture_output=True, check=True, encoding="utf-8"
        )
        assert done.stdout == before.text
    assert is_sound(story, before)


def does_research(story: Story) -> None:
    """What a study checked becomes a claim of the run on the page that was read, and stands in its next packets."""
    study = story.mem.research(QUESTION, user_id="ana", run_id="heat_study", directory=story.folder / "heat_study")
    walk_to(study, "synthesis")
    given = study.synthesis_input()
    packed = {claim.claim for entry in given.pack.summaries for claim in entry.key_claims}
    assert COP in packed
    assert LAUNDERED not in packed
    assert study.check(draft_for(given)).passed
    found = next(claim for claim in study.claims() if claim.claim == COP)
    pointer = {"corpus_id": study.manifest().corpus_id, "chunk_id": found.evidence_id, "quote": found.quote}
    run = story.mem.resume("run_heat").run
    run.log.claim(found.claim, evidence=[pointer], status="verified")
    for purpose in ("planner", "tool", "responder"):
        build = run.compose(purpose, query=ASKED)
        assert f"verified: {COP} {mark_of(build, found.evidence_id)}" in build.text
        assert found.quote in story.mem.ledger.content(found.evidence_id)
        assert LAUNDERED not in build.text
        assert build.found
        assert is_sound(story, build)
    assert story.mem.log.check_snapshot("run_heat").status == "PASS"
    story.kept |= {"study": study, "pointer": pointer, "advice": build}


def is_verified(story: Story) -> None:
    """An answer that cites is judged by what it says: its marks are no figures, and an invented one is no citation."""
    run, build, pointer = story.mem.resume("run_heat").run, story.kept["advice"], story.kept["pointer"]
    own = mark_of(build, pointer["chunk_id"])
    answer = run.observe("assistant", f"{COP[:-1]} {own}.", build=build)
    asked = {"constraints": "- words: {max: 40}\n", "evidence": [pointer | {"quote": None}]}
    result = run.verify(answer.content, event=answer.id, **asked)
    assert (result.verdict, result.outcome) == ("PASS", "UNKNOWN")
    wrong = run.observe("assistant", f"{COP[:-1].replace('2.4', '4.2')} {own}.", build=build)
    assert run.verify(wrong.content, event=wrong.id, **asked).verdict != "PASS"
    invented = run.observe("assistant", f"{COP[:-1]} [98].", build=build)
    assert run.verify(invented.content, event=invented.id, **asked).verdict != "PASS"
    final = run.observe("assistant", f"{COP} {own}", build=build)
    story.kept["result"] = run.verify(final.content, event=final.id, **asked)
    assert story.kept["result"].verdict == "PASS"


def learns(story: Story) -> None:
    """The log and the capsule of the run name its builds; the next run of its kind is told what it left."""
    mem, build = story.mem, story.kept["advice"]
    run = mem.resume("run_heat").run
    run.finish(verifier_result=story.kept["result"], intent=ADVICE)
    learned = run.learning.learned()
    assert learned is not None
    for named in (learned.event_log.to_wire(), learned.capsule.to_wire()["refs"]):
        assert named["injection_ref"] == build.id
        assert {build.id, story.kept["before"].id} < set(named["injection_refs"])
        for build_id in named["injection_refs"]:
            assert mem.replay(build_id).request.scope.run_id == "run_heat"
    task = "Say how the south house is heated best."
    later = mem.run(user_id="ana", agent_id="counter", session_id="south", task_type="heating")
    later.observe("user", task)
    recalled = later.learning.recall(task, intent=ADVICE)
    (hint,) = recalled.hints
    for purpose in ("planner", "tool"):
        assert f": {hint.summary}" in later.compose(purpose, query=task).text
    assert hint.summary not in later.compose("responder", query=task).text
    assert hint.summary.startswith("Asked: Find out how to heat the north house. Passed.")
    story.kept |= {"hint": hint, "trace": learned.event_log.trace_id}


def gets_a_rule(story: Story) -> None:
    """Drafted, tested, tried, signed for: then it stands before the packet of a run, and the run is counted."""
    rules = RuleStory(story.mem)
    rule_id = rules.promote()
    build = counts_apples(story, rules, "promoted")
    assert build.rules is not None
    assert build.rules.rule_ids == (rule_id,)
    assert build.text.startswith("## Rules\n- Keep FORMAT:JSON_ONLY")
    assert build.tokens <= 1024
    assert is_sound(story, build)
    log = story.mem.bank(user_id="ana").event_logs()[0].to_wire()
    assert [rule["rule_id"] for rule in log["selected_rules"]] == [rule_id]
    assert log["injection_ref"] == build.id
    story.kept |= {"rules": rules, "rule": rule_id, "with rule": build}


def counts_apples(story: Story, rules: RuleStory, session: str) -> Any:
    """A run that asks for its rules, gets a packet, answers, and is judged; answers the packet."""
    run = story.mem.run(user_id="ana", agent_id="counter", session_id=session, task_type="apples")
    chosen = run.learning.select_rules(intent=COUNTING)
    used = {rule.rule_id: rules.book.stats(rule.rule_id).with_counts.runs.n for rule in chosen.response.selected_rules}
    run.observe("user", "Count the apples in the last basket.")
    build = run.compose("responder", query="Count the apples in the last basket.", max_tokens=1024)
    run.observe("assistant", rules.agent(build.text), build=build)
    run.finish(verifier_result={"verifier_id": "json", "verdict": "PASS", "outcome": "OK"}, intent=COUNTING)
    assert {id_: rules.book.stats(id_).with_counts.runs.n for id_ in used} == {id_: n + 1 for id_, n in used.items()}
    return build


def loses_the_rule(story: Story) -> None:
    """Rolled back: the next build is without it, the difference says why, and what was told stays told."""
    rules, rule_id, before = story.kept["rules"], story.kept["rule"], story.kept["with rule"]
    rules.book.rollback(to=0, reason="the shop takes text now", signed_by="rosa")
    after = counts_apples(story, rules, "rolled back")
    assert after.rules is None
    assert "FORMAT:JSON_ONLY" not in after.text
    gone = {change.item: change for change in story.mem.diff(before.id, after.id).changes}[f"rule:{rule_id}"]
    assert gone.what == "removed"
    assert gone.why == "rollback in revision 7 of the rulebook, signed by rosa: the shop takes text now"
    back = {change.item: change for change in story.mem.diff(after.id, before.id).changes}[f"rule:{rule_id}"]
    assert (back.what, back.why) == ("added", "it was selected for the run")
    assert is_sound(story, before)
    assert story.mem.why("FORMAT:JSON_ONLY")[0].build_id == before.id


def forgets(story: Story) -> None:
    """One early event goes, and with it whatever rested on it, at every hand-over; the rest stands."""
    mem, kept = story.mem, story.kept
    mem.forget(event=kept["meter"])
    for name in ("before", "advice", "with rule"):  # it could be chosen for each of them
        assert kept["meter"] in str(kept[name].pool.to_wire())
        with pytest.raises(Forgotten):
            mem.replay(kept[name].id)
    for text in ("61,000", METER, BURNT):
        assert mem.why(text) == []
    run = mem.run(user_id="ana", agent_id="counter", session_id="after", task_type="heating")
    for purpose in ("planner", "tool", "responder"):
        build = run.compose(purpose, query="How much gas did the north house burn last winter?")
        assert "61,000" not in build.text
        assert is_sound(story, build)
    assert all("61,000" not in hit.text for hit in run.search("gas of the north house last winter"))
    log = mem.log.run_state("run_heat")
    assert "61,000" not in str(log)
    assert run.learning.recall("Say how the south house is heated best.", intent=ADVICE, keep=False).hints == ()
    assert kept["trace"] not in {each.trace_id for each in mem.bank(user_id="ana").event_logs()}


def keeps_the_rest(story: Story) -> None:
    """What rested on something else is as it was, also for who opens the store anew."""
    mem, kept = story.mem, story.kept
    assert is_sound(story, kept["first"])
    assert mem.why(kept["first answer"])[0].evidence_ids == (kept["result event"],)
    assert mem.ledger.resolve(kept["result event"]).text == "north house: 412 baskets"
    assert kept["rules"].book.get(kept["rule"]).id == kept["rule"]
    assert COP in {claim.claim for claim in kept["study"].claims()}
    run = mem.run(user_id="ana", agent_id="counter", session_id="after", task_type="heating")
    assert "Allergic to peanuts" in run.compose("responder", query="Is Ana allergic to anything?").text
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()


PARTS = (
    works_with_packets, drops_its_window, resumes, does_research, is_verified, learns, gets_a_rule, loses_the_rule,
    forgets, keeps_the_rest,
)  # fmt: skip


@pytest.mark.soak
@pytest.mark.req("TM-10")
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["memory", "sqlite"])
def test_one_agent_hands_everything_on(engine: str, tmp_path: Path) -> None:
    """Each part begins with what the one before it left in the store."""
    story = Story(":memory:" if engine == "memory" else str(tmp_path / "agent.db"), tmp_path)
    for part in PARTS:
        part(story)
    story.mem.close()
