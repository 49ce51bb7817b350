"""Stories of runs: scripts of small numbers that tell runs what happens, and what must then be true of each run.

A script is a list of `(act, which, one, other)`; every number is taken modulo what there is, so that any script can be
told. What the runs refuse (`Conflict`, `Forgotten`) is part of the story. Used by the property and the fault tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, cast

from muniment.contracts.schemas import validate
from muniment.contracts.semantics import RunInvariants
from muniment.contracts.semantics import check_snapshot as check_rules
from muniment.core.ports.engine import Condition
from muniment.errors import Conflict, Forgotten
from muniment.handles.memory import Memory
from muniment.handles.run import Run
from muniment.runs.narrative import narrative
from muniment.runs.records import OpenQuestion, RunClaim, RunConflict, RunLog
from muniment.runs.resuming import load_log
from muniment.store.items import newest_items

__all__ = ["ACTS", "Teller", "check_run", "random_script", "replayed"]

Act = tuple[str, int, int, int]

ACTS = (
    *("observe", "observe", "tool", "failing_tool", "plan", "act", "act", "look", "verbose", "compile"),
    *("claim", "claim", "verified", "verified", "verify", "retract", "conflict", "settle", "question", "close"),
    *("failure", "next", "patch", "compact", "compact"),
)
"""Each as often as it should be told. `forget` is left to those who want it."""
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
    """Tells runs of one memory what happens."""

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
        # Refused are a claim retracted twice, a conflict settled twice, what rests on what was forgotten.
        with suppress(Conflict, Forgotten):
            getattr(self, f"_{name}")(self.runs[which % len(self.runs)], one, other)

    def _some(self, ids: Sequence[str], number: int) -> str | None:
        return ids[number % len(ids)] if ids else None

    def _pointer(self, run: Run, number: int) -> Any:
        """A whole event, or some of its words."""
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


# -- what must be true --------------------------------------------------------------------------------


def replayed(mem: Memory, run: Run) -> RunLog:
    """The run's log from its whole ledger, without any snapshot."""
    policy = mem.policy.compaction
    scope = run.scope
    return mem._ctx.engine.read(scope.tenant_id, lambda reader: load_log(reader, scope, policy, before=1)).log


def check_run(mem: Memory, run: Run) -> RunLog:
    """Resuming gives what a replay gives; items say what the log says; every snapshot holds and can be told."""
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
