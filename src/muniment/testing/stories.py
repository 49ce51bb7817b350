"""Scripted stories for tests and demos: a research run, an agent that needs a rule, and runs drawn from numbers.

The research run can be walked to any stage. The agent of `RuleStory` forgets to answer in JSON until a rule reminds it;
everything is drawn from a seed. A script of runs is a list of `(act, which, one, other)`: every number is taken modulo
what exists, so any script can run, and a refusal (`Conflict`, `Forgotten`) is part of the story.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any, cast

from muniment.contracts.schemas import validate
from muniment.contracts.semantics import RunInvariants
from muniment.contracts.semantics import check_snapshot as check_rules
from muniment.core.ports.engine import Condition
from muniment.errors import Conflict, Forgotten
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.runs.narrative import narrative
from muniment.runs.records import OpenQuestion, RunClaim, RunConflict, RunLog
from muniment.runs.snapshots import load_log
from muniment.store.items import newest_items
from muniment.verify.outputs import Output

if TYPE_CHECKING:
    from muniment.handles.rulebook import Rulebook
    from muniment.handles.study import Study
    from muniment.research.records import SynthesisInput

# -- research -------------------------------------------------------------------------------------------


QUESTION = "How do heat pumps compare with gas boilers for heating homes in cold climates?"
TOOL_USE = {"search_calls": 2, "fetch_calls": 2}
PAGES: list[dict[str, Any]] = [
    {
        "url": "https://energy.example.org/field-study",
        "title": "Field study of heat pumps",
        "text": "The field study followed 550 homes in Norway for three winters. "
        "At minus 10 degrees the heat pumps delivered a coefficient of performance of 2.4. "
        "Owners reported fewer breakdowns than owners of gas boilers.",
    },
    {
        "url": "https://prices.example.org/2024/heating",
        "title": "Heating prices",
        "text": "A heat pump costs 11,500 euros to install, a gas boiler 4,200 euros. "
        "Running costs of a heat pump are 38 percent lower than those of a gas boiler in a well insulated house.",
    },
    {
        "url": "https://grid.example.org/report",
        "title": "Grid report",
        "text": "Replacing every gas boiler would raise the winter peak of the grid by 9 gigawatts. "
        "Operators expect that half of it can be shifted to other hours.",
    },
]
LAUNDERED = "A laundered figure says that 99 percent of boilers were banned in Finland in 1987."
_FINDINGS = (
    ("At minus 10 degrees the heat pumps delivered a coefficient of performance of 2.4.", 1),
    ("The field study followed 550 homes in Norway for three winters.", 1),
    ("A heat pump costs 11,500 euros to install, a gas boiler 4,200 euros.", 2),
    ("Running costs of a heat pump are 38 percent lower than those of a gas boiler in a well insulated house.", 2),
    ("Replacing every gas boiler would raise the winter peak of the grid by 9 gigawatts.", 3),
)


def output_for(perspective_id: str) -> str:
    """Return an agent's output for a perspective: findings in another order for each, and one laundered citation."""
    number = int(perspective_id[1:])
    turned = [_FINDINGS[(at + number) % len(_FINDINGS)] for at in range(len(_FINDINGS))]
    lines = [f"- {sentence} [{source}]" for sentence, source in turned]
    lines.append(f"- {LAUNDERED} [2]")
    sources = [f"[{at}] {page['url']} - {page['title']}" for at, page in enumerate(PAGES, 1)]
    return "\n".join(["## Findings", "", *lines, "", "## Sources", "", *sources, "", "## Gaps", "", "None", ""])


def walk_to(study: Study, stage: str, *, pages: Sequence[dict[str, Any]] = tuple(PAGES)) -> None:
    """Take a new run to a stage, as a careful caller would."""
    study.route()
    if stage == "wave1":
        return
    for perspective in study.perspectives():
        study.ingest(perspective.id, output_for(perspective.id), tool_use=TOOL_USE)
    study.pivot()
    if stage == "wave2":
        return
    study.supply(pages)
    study.citations()
    if stage != "citations":
        study.pack()


def draft_for(given: SynthesisInput) -> str:
    """Draft a report from the pack alone: its best claims, cited."""
    claims = {claim.claim: claim for entry in given.pack.summaries for claim in entry.key_claims}
    lines = [f"{claim.claim} [{claim.citation_cids[0]}]" for claim in claims.values() if claim.citation_cids]
    sources = [f"- {source['url']}" for source in (given.pack.model_extra or {}).get("sources", ())]
    parts = [
        "# Report",
        "## Summary",
        lines[0],
        "## Findings",
        *lines,
        "## Limitations",
        "Little is known of old houses.",
    ]
    return "\n\n".join([*parts, "## Sources", "\n".join(sources)]) + "\n"


# -- rules ----------------------------------------------------------------------------------------------


COUNTING: Mapping[str, Any] = {"domain_tag": "count", "task_family": "apples", "output_format": "json"}
WEATHER: Mapping[str, Any] = {"domain_tag": "weather", "task_family": "now"}
_KEY = "FORMAT:JSON_ONLY"
_REMINDER = f"Keep {_KEY}"


class RuleStory:
    """A memory in which the rule can be drafted, tested, tried and promoted, one step at a time."""

    def __init__(self, memory: Memory, *, seed: int = 1, with_rule: float = 1.0, without: float = 0.4) -> None:
        self.memory = memory
        self.rates = {True: with_rule, False: without}
        self.random = Random(seed)
        self.number = 0

    @property
    def book(self) -> Rulebook:
        return self.memory.rulebook(user_id="ana")

    # -- the agent and its verifier

    def agent(self, task: Any) -> str:
        """Answer about the weather in words; count in JSON if reminded, or by chance."""
        prompt = task if isinstance(task, str) else task.prompt
        if "weather" in prompt:
            return "Sunny, twelve degrees."
        counts = self.random.random() < self.rates[_REMINDER in prompt]
        return '{"count": 1}' if counts else "There is one apple."

    @staticmethod
    def verifier(output: Output, task: str) -> Any:
        if "weather" in task:
            return True
        try:
            json.loads(output.text)
        except ValueError:
            return {
                "verifier_id": "json",
                "verdict": "FAIL",
                "outcome": "FAIL",
                "reason_codes": ["format_leak"],
                "violated_constraints": [_KEY],
            }
        return True

    # -- the steps

    def run(self, *, select: bool = True, task: str | None = None) -> Any:
        """Run the counting agent once, judge it and learn from it; returns what was learned."""
        self.number += 1
        asked = task or f"Count the apples in basket {self.number}."
        run = self.memory.run(user_id="ana", agent_id="counter", task_type="apples")
        text = run.learning.select_rules(intent=COUNTING).text if select else ""
        run.observe("user", asked)
        answer = self.agent(f"{text}\n{asked}")
        run.observe("assistant", answer)
        result = self.verifier(Output(text=answer), asked)
        passed = {"verifier_id": "json", "verdict": "PASS", "outcome": "OK"}
        return run.learning.learn(passed if result is True else result, intent=COUNTING)

    def teach(self, runs: int = 14) -> str:
        """Make judged runs of two kinds; returns the id of the resulting draft."""
        runner = self.memory.runner(
            self.agent, self.verifier, {"recall": False, "rules": False}, user_id="ana", agent_id="counter"
        )
        for number in range(runs):
            runner.run(f"Count the apples in box {number}.", intent=COUNTING)
            if number % 3 == 0:
                runner.run(f"How is the weather in town {number}?", intent=WEATHER)
        drafts = self.memory.bank(user_id="ana").drafts()
        return next(draft.draft_id for draft in drafts if _KEY in (draft.proposed_rule.title or ""))

    def submit(self) -> str:
        return self.book.submit(self.teach()).id

    def gate(self) -> str:
        rule_id = self.submit()
        self.book.make_tests(rule_id)
        self.book.gate(rule_id, self.agent)
        return rule_id

    def canary(self, share: float = 0.5) -> str:
        rule_id = self.gate()
        self.book.replay(rule_id, self.agent, self.verifier)
        self.book.canary(rule_id, share=share)
        return rule_id

    def promote(self) -> str:
        rule_id = self.canary()
        for _ in range(400):
            self.run()
            if self.number % 20 == 0 and self.book.watch()[rule_id].decision == "promote":
                self.book.promote(rule_id, signed_by="rosa")
                return rule_id
        raise AssertionError("the trial never spoke")


# -- runs -----------------------------------------------------------------------------------------------


Act = tuple[str, int, int, int]

ACTS = (
    *("observe", "observe", "tool", "failing_tool", "plan", "act", "act", "look", "verbose", "compile"),
    *("claim", "claim", "verified", "verified", "verify", "retract", "conflict", "settle", "question", "close"),
    *("failure", "next", "patch", "compact", "compact"),
)
"""Acts by frequency. `forget` is left to those who want it."""
TEXTS = (
    "The capital of France is Paris.",
    "北京是中国的首都。",
    "서울은 한국의 수도이다.",
    "Naïve café, 12 °C 😀",
    "line one\nline two\ttabbed",
)
QUESTIONS = ("How many live there?", "谁说的？", "Since when?")


def random_script(seed: int, length: int, acts: Sequence[str] = ACTS) -> list[Act]:
    chance = Random(seed)
    return [
        (chance.choice(acts), chance.randrange(97), chance.randrange(97), chance.randrange(97)) for _ in range(length)
    ]


class Teller:
    """Reports events to runs of one memory."""

    def __init__(self, mem: Memory, runs: Sequence[Run]) -> None:
        self.mem, self.runs = mem, list(runs)
        self.events: list[str] = []
        """Evidence that was not forgotten."""
        self.claims: dict[str, list[str]] = {run.run_id: [] for run in runs}
        self.conflicts: dict[str, list[str]] = {run.run_id: [] for run in runs}

    def tell_all(self, script: Iterable[Act]) -> None:
        for act in script:
            self.tell(act)

    def tell(self, act: Act) -> None:
        name, which, one, other = act
        # Refusals: a claim retracted twice, a conflict settled twice, dependents of forgotten content.
        with suppress(Conflict, Forgotten):
            getattr(self, f"_{name}")(self.runs[which % len(self.runs)], one, other)

    def _some(self, ids: Sequence[str], number: int) -> str | None:
        return ids[number % len(ids)] if ids else None

    def _pointer(self, run: Run, number: int) -> Any:
        """Return a whole event, or some of its words."""
        event = self._some(self.events, number)
        if event is None:
            return self._heard(run, number)
        text = run.ledger.content(event)
        start = number % max(1, len(text) // 2)
        quote = text[start : start + 5 + number % 7]
        return {"event_id": event, "quote": quote} if number % 3 and text.count(quote) == 1 else event

    def _heard(self, run: Run, number: int) -> str:
        said = run.observe("user", f"{TEXTS[number % len(TEXTS)]} {number}")
        self.events.append(said.id)
        return said.id

    def _observe(self, run: Run, one: int, other: int) -> None:
        if other % 4:
            self._heard(run, one)
        else:
            run.observe("assistant", f"I think {TEXTS[one % len(TEXTS)]}")

    def _tool(self, run: Run, one: int, other: int) -> None:
        content = f"result {one} " + "x" * (70_000 if other % 11 == 0 else other)
        self.events.append(run.observe_tool("search", content=content, args={"q": other}).id)

    def _failing_tool(self, run: Run, one: int, other: int) -> None:
        self.events.append(run.observe_tool(f"tool{one % 3}", content=f"timeout after {other} s", ok=False).id)

    def _plan(self, run: Run, one: int, other: int) -> None:
        run.log.step("PLAN_DONE", f"plan {one}", tokens=other)

    def _act(self, run: Run, one: int, other: int) -> None:
        run.log.step("ACT_DONE", action={"tool": "search", "args": {"q": one % 2}}, tokens=other)

    def _look(self, run: Run, one: int, other: int) -> None:
        run.log.step("OBSERVE_DONE" if one % 5 else "CHECKPOINT_DONE", f"saw {other}")

    def _verbose(self, run: Run, one: int, other: int) -> None:
        run.log.step(("PLAN_THOUGHT", "ACT_PROGRESS", "OBSERVE_RAW_LINE")[one % 3], f"… {other}", tokens=other)

    def _compile(self, run: Run, one: int, other: int) -> None:
        selected = list(dict.fromkeys(self.events[at % len(self.events)] for at in (one, other))) if self.events else []
        context = {"selected": selected, "excluded": [{"id": "fct_1", "reason": "stale"}], "filters": {"k": one}}
        run.log.step("COMPILE_DONE", context=context, tokens=other)

    def _claim(self, run: Run, one: int, other: int) -> None:
        self._made(run, run.log.claim(f"It is so {one % 30}", depends_on=self._basis(run, other)))

    def _verified(self, run: Run, one: int, other: int) -> None:
        evidence = [self._pointer(run, one), self._pointer(run, other)]
        basis = self._basis(run, one)
        self._made(run, run.log.claim(f"It is certain {other}", evidence=evidence, status="verified", depends_on=basis))

    def _made(self, run: Run, claim: RunClaim) -> None:
        if claim.claim_id not in self.claims[run.run_id]:
            self.claims[run.run_id].append(claim.claim_id)

    def _basis(self, run: Run, number: int) -> list[str]:
        claim = self._some(self.claims[run.run_id], number)
        return [claim] if claim is not None and number % 3 == 0 else []

    def _verify(self, run: Run, one: int, other: int) -> None:
        claim = self._some(self.claims[run.run_id], one)
        if claim is not None:
            run.log.verify_claim(claim, evidence=[self._pointer(run, other)])

    def _retract(self, run: Run, one: int, other: int) -> None:
        claim = self._some(self.claims[run.run_id], one)
        if claim is not None and other % 2:
            evidence = [self._pointer(run, other)] if other % 3 else []
            run.log.retract_claim(claim, reason=f"it was wrong {other}", evidence=evidence)

    def _conflict(self, run: Run, one: int, other: int) -> None:
        sides = {"side_a": [self._pointer(run, one)], "side_b": [self._pointer(run, other)]}
        made = run.log.conflict(f"These differ {one}", **cast("Any", sides), claims=self._basis(run, one))
        self.conflicts[run.run_id].append(made.conflict_id)

    def _settle(self, run: Run, one: int, other: int) -> None:
        conflict = self._some(self.conflicts[run.run_id], one)
        if conflict is not None:
            run.log.settle_conflict(conflict, resolution=f"side {'ab'[other % 2]} is right")

    def _question(self, run: Run, one: int, other: int) -> None:
        run.log.question(f"{QUESTIONS[one % len(QUESTIONS)]} {other % 4}")

    def _close(self, run: Run, one: int, other: int) -> None:
        asked = run.log.questions()
        if asked:
            question = asked[one % len(asked)]
            named = question.text if other % 2 else question.question_id
            run.log.close_question(named, answer=f"{other}" if other % 3 else None)

    def _failure(self, run: Run, one: int, other: int) -> None:
        evidence = [self._pointer(run, other)] if other % 2 else []
        run.log.failure(
            "constraint_forgotten" if one % 3 else "timeout", "search", f"broke at {other}", evidence=evidence
        )

    def _next(self, run: Run, one: int, other: int) -> None:
        run.log.plan_next([f"do {n}" for n in (one, other)][: one % 3])

    def _patch(self, run: Run, one: int, other: int) -> None:
        run.patch(slots={f"k{one % 3}": other})

    def _compact(self, run: Run, one: int, other: int) -> None:
        del one, other
        if run.state() is not None:
            run.log.compact()

    def _forget(self, run: Run, one: int, other: int) -> None:
        del run, other
        event = self._some(self.events, one)
        if event is not None:
            self.mem.forget(event=event)
            self.events.remove(event)


# -- invariants ---------------------------------------------------------------------------------------


def replayed(mem: Memory, run: Run) -> RunLog:
    """Return the run's log from its whole ledger, without any snapshot."""
    policy = mem.policy.compaction
    scope = run.scope
    return mem._ctx.engine.read(scope.tenant_id, lambda reader: load_log(reader, scope, policy, before=1)).log


def check_run(mem: Memory, run: Run) -> RunLog:
    """Check that resuming equals a replay; that items match the log; and that every snapshot is valid and readable."""
    whole = replayed(mem, run)
    resumed = mem.resume(run.run_id, tenant_id=run.scope.tenant_id)
    assert resumed.rejected == ()
    assert resumed.log == whole == run.log.read()
    assert resumed.run.scope == run.scope
    _check_items(mem, run, whole)
    rule = RunInvariants()
    for index, snapshot in enumerate(mem.log.snapshots(run.run_id, tenant_id=run.scope.tenant_id)):
        wire = snapshot.to_wire()
        assert validate("CompactionSnapshot", wire) == []
        assert check_rules(wire) == []
        rule.add(index, wire)
        assert snapshot.validation.status == "PASS"
        told = mem.log.narrative(run.run_id, snapshot.sequence, tenant_id=run.scope.tenant_id)
        assert told == narrative(snapshot)
        again = mem.log.check_snapshot(run.run_id, snapshot.sequence, tenant_id=run.scope.tenant_id)
        assert again.status == "PASS", [check for check in again.checks if check.status == "FAIL"]
    assert rule.issues() == {}
    return whole


def _check_items(mem: Memory, run: Run, log: RunLog) -> None:
    claims = {claim.claim_id: claim for claim in log.claims}
    assert _items(mem, run, "claim", RunClaim) == claims
    assert _items(mem, run, "conflict", RunConflict) == {each.conflict_id: each for each in log.conflicts}
    asked = {each.question_id: each for each in log.open_questions}
    assert {k: v for k, v in _items(mem, run, "question", OpenQuestion).items() if v.status == "open"} == asked


def _items(mem: Memory, run: Run, kind: str, record: Any) -> dict[str, Any]:
    where: tuple[Condition, ...] = (("kind", "=", kind), ("run_id", "=", run.run_id))
    newest = mem._ctx.engine.read(run.scope.tenant_id, lambda reader: newest_items(reader, where))
    return {item.id: record.from_wire(item.plain()) for item in newest}
