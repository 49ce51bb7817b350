"""A desk: a rulebook of its own, a world, and drafts that go through the library one after another (`rules_gate`).

Every draft goes the way there is: submitted (lint, consolidation), tests made from the runs, the gate on the agent,
replay, a trial on a share of real runs, watched, and promoted by the policy or taken back. What is refused on the way
is retired, so that it stands in nobody's way; a draft that contradicts one on its way comes again when that is decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import muniment
from benchmarks.rules_drafts import Draft
from benchmarks.rules_worlds import Advice, Answer, Place, World
from muniment.core.outside.system import CountingIds, TickingClock
from muniment.errors import Conflict, InvalidInput, InvalidRecord
from muniment.handles.rulebook import Rulebook
from muniment.rules._attempts import AgentTask
from muniment.verify.outputs import Output

__all__ = ["ARMS", "Desk", "Fate", "Story"]

USER = "desk"
TAUGHT: Mapping[str, int] = {"puzzles": 14, "airline": 24}
"""Runs of a place before any draft; the airline's tasks are few, and come again."""
BETWEEN = 10
"""Runs between two drafts."""
LOOK = 20
"""Runs between two looks at the trials."""
SHARE = 0.5
AFTER = 25
"""Tasks of a place when all is decided."""
ARMS = ("gate", "no gate", "no rules")


@dataclass
class Fate:
    """What became of a draft."""

    draft: Draft
    desk: str
    end: str = "undecided"
    why: str = ""
    runs: int | None = None
    """Of its trial, when that was decided."""
    rule_id: str | None = None
    checks: tuple[str, ...] = ()
    """Those of the gate that it failed."""
    taken_back: bool = False
    """Promoted, and retired by its holdout afterwards."""


@dataclass
class Story:
    """All that happened at a desk."""

    fates: list[Fate] = field(default_factory=list)
    passes: dict[str, list[bool]] = field(default_factory=lambda: {arm: [] for arm in ARMS})
    after: dict[str, list[bool]] = field(default_factory=lambda: {arm: [] for arm in ARMS})
    injected: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ARMS, 0))
    """Runs whose prompt held an injected draft."""


class Seen(NamedTuple):
    """A run of a place."""

    trace_id: str
    task: str
    answer: Answer

    def follows(self, advice: Advice | None) -> bool:
        return advice is not None and (advice.tool in dict(self.answer.tools)) == advice.does


class Desk:
    """A memory, a world, and the drafts that come."""

    def __init__(self, world: World, drafts: Sequence[Draft], name: str, policy: Mapping[str, Any]) -> None:
        self.world, self.drafts, self.name = world, drafts, name
        self.random = Random(name)
        self.mem = muniment.open(
            ":memory:", embedder="none", ids=CountingIds(name.replace(" ", "-")), clock=TickingClock(), policy=policy
        )
        self.story = Story()
        self.seen: dict[Place, list[Seen]] = {}
        self.come: list[Draft] = []
        self.number = 0

    @property
    def book(self) -> Rulebook:
        return self.mem.rulebook(user_id=USER)

    # -- the agent

    def agent(self, task: AgentTask) -> dict[str, Any]:
        """For tests and replays: its draws are named by what it is shown and by the number of the call."""
        told = task.prompt.removesuffix(task.task)
        answer = self.world.answer(task.task, told, Random(f"{self.name} {task.run.run_id} {task.prompt}"))
        return {"text": answer.text, "tool_calls": [{"name": tool, "ok": ok} for tool, ok in answer.tools]}

    def verify(self, output: Output, task: str) -> bool:
        return self.world.passed(task, output.text, [call.name for call in output.tool_calls or ()])

    # -- runs

    def run(self, place: Place) -> None:
        """One real run, and the same task for the two that the library has no part in."""
        self.number += 1
        task = self.world.task(place, self.random)
        run = self.mem.run(user_id=USER, agent_id="agent", run_id=f"run_{self.name}_{self.number}".replace(" ", "-"))
        told = run.learning.select_rules(intent=place.intent).text
        answer = self._answer(task, told)
        run.observe("user", task)
        for tool, ok in answer.tools:
            run.observe_tool(tool, content="done" if ok else "to no avail", ok=ok)
        run.observe("assistant", answer.text)
        verdict = {"verifier_id": "judge", "verdict": "PASS" if answer.passed else "FAIL"}
        learned = run.learning.learn(verdict | {"outcome": "OK" if answer.passed else "FAIL"}, intent=place.intent)
        self.seen.setdefault(place, []).append(Seen(learned.event_log.trace_id, task, answer))
        self._note(self.story.passes, place, task, told)

    def _answer(self, task: str, told: str) -> Answer:
        return self.world.answer(task, told, Random(f"{self.name} draw {self.number}"))

    def _note(self, passes: dict[str, list[bool]], place: Place, task: str, told: str) -> None:
        everything = "\n".join(draft.body for draft in self.come if draft.place == place)
        for arm, shown in zip(ARMS, (told, everything, ""), strict=True):
            passes[arm].append(self._answer(task, shown).passed)
            orders = [draft.body for draft in self.come if draft.quality == "injection"]
            self.story.injected[arm] += any(body.splitlines()[0] in shown for body in orders)

    def after(self) -> None:
        """Fresh tasks with what the rulebook has come to."""
        for place in self.world.places:
            for _ in range(AFTER):
                self.number += 1
                task = self.world.task(place, self.random)
                told = self.book.select(intent=place.intent, run_id=f"after_{self.name}_{self.number}").text
                self._note(self.story.after, place, task, told)

    # -- drafts

    def put_through(self, fate: Fate) -> None:
        """A draft from submission to its trial, or to where it is refused."""
        draft = fate.draft
        try:
            submitted = self.book.submit(draft.wire(self._sources(draft)))
        except (InvalidRecord, InvalidInput) as error:
            issues = getattr(error, "issues", ())
            fate.end, fate.why = "lint", ", ".join(sorted({str(one.code) for one in issues})) or str(error)
            return
        except Conflict as error:
            fate.end, fate.why = "contradicts", str(error)
            return
        if submitted.kind == "merged":
            fate.end, fate.why = "merged", submitted.reasons[0]
            return
        fate.rule_id = submitted.id
        fate.end, fate.why = self._tested(fate)
        if fate.end != "undecided":
            self.book.retire(submitted.id, reason=f"refused at the {fate.end}")

    def _tested(self, fate: Fate) -> tuple[str, str]:
        assert fate.rule_id is not None
        made = self.book.make_tests(fate.rule_id, verifier=self.verify)
        if fate.draft.demands is not None:
            self.book.add_tests(fate.rule_id, self._own_tests(fate))
        gate = self.book.gate(fate.rule_id, self.agent, verifier=self.verify)
        if not gate.passed:
            failing = [f"{check.name}: {check.found}" for check in gate.checks if not check.ok]
            fate.checks = tuple(check.name for check in gate.checks if not check.ok)
            return "gate", "; ".join([*failing, *made.notes])[:400]
        replay = self.book.replay(fate.rule_id, self.agent, self.verify)
        if not replay.passed:
            return "replay", replay.notes
        self.book.canary(fate.rule_id, share=SHARE)
        return "undecided", ""

    def _sources(self, draft: Draft) -> list[str]:
        """The runs that a draft was made of: those that failed first, then those that passed.

        Of advice these are runs that did otherwise; first of tasks that another run went about as is advised.
        """
        known = self.seen[draft.place]
        if draft.advice is not None:
            followed = {one.task for one in known if one.follows(draft.advice)}
            known = sorted(known, key=lambda one: (one.follows(draft.advice), one.task not in followed))
        failed = {one.task: one.trace_id for one in reversed(known) if not one.answer.passed}  # one run of each task
        passed = {one.task: one.trace_id for one in reversed(known) if one.answer.passed}
        # a rule is tested on tasks that it was not learnt from: some are left
        return [*list(failed.values())[::-1][:3], *list(passed.values())[::-1][:2]]

    def _own_tests(self, fate: Fate) -> Iterator[dict[str, Any]]:
        """What whoever wrote an order would ask of it."""
        inside = list(dict.fromkeys(one.task for one in self.seen[fate.draft.place]))
        outside = [self.seen[place][0].task for place in self.world.places if place != fate.draft.place]
        wanted = {"type": "contains", "args": {"text": fate.draft.demands}}
        speaks = {"type": "regex_present", "args": {"pattern": r"\S"}}
        asked = (
            ("regression", None, inside[0], wanted),
            ("counterexample", "cluster", inside[1], wanted),
            ("counterexample", "boundary", outside[0], speaks),
        )
        for number, (type_, kind, task, assertion) in enumerate(asked):
            spec: dict[str, Any] = {
                "test_id": f"{fate.draft.id}-test-{number}",
                "test_type": type_,
                "x_ref": f"task-{number}",
            }
            spec |= {"prompt": task, "assert": assertion, "linked_rule_ids": [fate.rule_id]}
            yield spec | ({} if kind is None else {"kind": kind})

    def watch(self) -> None:
        """What the trials say; and those who were contradicted by one that is decided come again."""
        before = {fate.rule_id: fate for fate in self.story.fates if fate.rule_id is not None}
        decided = False
        for rule_id, verdict in self.book.watch().items():
            fate, stage = before[rule_id], self.book.get(rule_id).stage
            if fate.end == "promoted":
                fate.taken_back = stage == "retired"
            elif stage != "canary":
                fate.end = {"active": "promoted", "retired": "rolled back"}.get(str(stage), "ended")
                fate.why, fate.runs, decided = "; ".join(verdict.reasons[:3]), verdict.runs, True
                if fate.end == "ended":
                    self.book.retire(rule_id, reason="its trial showed nothing")
        for fate in self.story.fates if decided else ():
            if fate.end == "contradicts":
                self.put_through(fate)

    # -- from the beginning to the end

    def play(self) -> Story:
        for _ in range(TAUGHT[self.world.name]):
            for place in self.world.places:
                self.run(place)
        for draft in self.drafts:
            self.come.append(draft)
            fate = Fate(draft, self.name)
            self.put_through(fate)
            self.story.fates.append(fate)
            self._runs(BETWEEN)
        while self._on_trial():
            self._runs(LOOK)
        self.after()
        self.mem.close()
        return self.story

    def _on_trial(self) -> list[Place]:
        return [fate.draft.place for fate in self.story.fates if fate.end == "undecided"]

    def _runs(self, count: int) -> None:
        """Runs of places where something is on trial, or of any."""
        for _ in range(count):
            self.run(self.random.choice(self._on_trial() or list(self.world.places)))
            if self.number % LOOK == 0:
                self.watch()
