"""The gate on a stream of 200 drafts of known quality: what comes through, and what it is worth.

    python -m benchmarks.rules_gate              200 drafts, three seeds (see `--seeds`)
    python -m benchmarks.rules_gate --quick      one desk of puzzles and one of the airline, for a look

Ten desks, each with a rulebook of its own: six get puzzles of nine families, four the airline's tasks
(`benchmarks.rules_worlds` says what the agents are, `benchmarks.rules_drafts` what the drafts are and how their quality
is known). At each desk there are first runs without rules; then drafts come, and runs between them. Every draft goes
the way there is: submitted (lint, consolidation), tests made from the runs, the gate on the agent, replay, a trial on a
share of real runs, watched, and promoted by the policy or taken back. What is refused on the way is retired, so that it
stands in nobody's way; a draft that contradicts one that is on its way comes again when that is decided.

The policy is as shipped but for: the numbers sign, a test is asked `TRIES` times of an agent that draws lots, trials
take half of the runs and end after `RUNS_MAX`, and folds propose no tactics and no drafts of their own. `--needs
better` asks more of a trial than `not_harmful`.

Beside it, on the same tasks with the same draws and outside the library, since no path in it makes a rule active: the
agent without rules, and with every draft of the place in its prompt from the moment it came. `after` are further tasks
once all is decided: what the rulebook gives by then, against the same two.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import muniment
from benchmarks import data as sets
from benchmarks.harness import RESULTS, report
from benchmarks.rules_drafts import QUALITIES, Draft, Quality, make_drafts
from benchmarks.rules_worlds import Advice, Airline, Answer, Place, Puzzles, World
from muniment.adapters.system import CountingIds, TickingClock
from muniment.errors import Conflict, InvalidInput, InvalidRecord
from muniment.records.verification import Output
from muniment.runtime.attempts import AgentTask
from muniment.runtime.rulebooks import Rulebook
from muniment.stats.wilson import wilson_bounds

USER = "desk"
TAUGHT: Mapping[str, int] = {"puzzles": 14, "airline": 24}
"""Runs of a place before any draft; the airline's tasks are few, and come again."""
BETWEEN = 10
"""Runs between two drafts."""
LOOK = 20
"""Runs between two looks at the trials."""
RUNS_MAX = 800
TRIES = 5
SHARE = 0.5
KEPT = ({"regex_present": {"pattern": r"\S"}}, {"length": {"max": 4_000}})
"""What every answer is to be, whatever the task: the constraints that tests are made of beside the runs."""
AFTER = 25
"""Tasks of a place when all is decided."""
ARMS = ("gate", "no gate", "no rules")
ENDS = (
    "lint", "merged", "contradicts", "gate", "replay", "rolled back", "ended", "undecided", "promoted",
)  # fmt: skip
COUNTS: Mapping[str, Mapping[Quality, int]] = {
    "puzzles": {"useful": 8, "useless": 5, "harmful": 5, "duplicate": 4, "injection": 4},
    "airline": {"useful": 3, "useless": 2, "harmful": 3, "duplicate": 2, "injection": 1},
}
DESKS: Mapping[str, int] = {"puzzles": 6, "airline": 4}


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


# -- one desk -----------------------------------------------------------------------------------------


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
        told = run.select_rules(intent=place.intent).text
        answer = self._answer(task, told)
        run.observe("user", task)
        for tool, ok in answer.tools:
            run.observe_tool(tool, content="done" if ok else "to no avail", ok=ok)
        run.observe("assistant", answer.text)
        verdict = {"verifier_id": "judge", "verdict": "PASS" if answer.passed else "FAIL"}
        learned = run.learn(verdict | {"outcome": "OK" if answer.passed else "FAIL"}, intent=place.intent)
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
        made = self.book.make_tests(fate.rule_id, constraints=KEPT)
        if fate.draft.demands is not None:
            self.book.add_tests(fate.rule_id, self._own_tests(fate))
        gate = self.book.gate(fate.rule_id, self.agent)
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
        return [*list(failed.values())[::-1][:6], *list(passed.values())[::-1][:6]]

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
            spec = {"test_id": f"{fate.draft.id}-test-{number}", "test_type": type_, "x_ref": f"task-{number}"}
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


# -- all desks ----------------------------------------------------------------------------------------


def desks(seed: int, data: Path, numbers: Mapping[str, int], policy: Mapping[str, Any]) -> Iterator[Desk]:
    for kind, count in numbers.items():
        for number in range(count):
            name = f"{kind} {number} {seed}"
            world: World = Puzzles() if kind == "puzzles" else Airline(data, name)
            yield Desk(world, make_drafts(world, name.replace(" ", "-"), COUNTS[kind], Random(f"drafts {name}")), name, policy)


def policy_of(needs: str) -> dict[str, Any]:
    return {
        "rules": {"promote": {"signature": "policy"}, "canary": {"runs_max": RUNS_MAX, "needs": needs},
            "gate": {"tries": TRIES}},
        "learn": {"fold": {"peers_max": 20, "tactics_max": 0, "drafts_max": 0}},
    }


# -- figures ------------------------------------------------------------------------------------------


def table(fates: Sequence[Fate]) -> dict[str, dict[str, Any]]:
    """What became of drafts, by quality."""
    rows: dict[str, dict[str, Any]] = {}
    for quality in QUALITIES:
        mine = [fate for fate in fates if fate.draft.quality == quality]
        ends = Counter(fate.end for fate in mine)
        runs = [fate.runs for fate in mine if fate.runs is not None]
        share = wilson_bounds(ends["promoted"], len(mine)) if mine else None
        rows[f"drafts, {quality}"] = {
            "submitted": len(mine),
            **{end.replace(" ", "_"): ends[end] for end in ENDS},
            "promoted_share": ends["promoted"] / max(1, len(mine)),
            "low": 0.0 if share is None else share.lower,
            "high": 1.0 if share is None else share.upper,
            "taken_back_later": sum(fate.taken_back for fate in mine),
            "runs_to_decision_mean": statistics.fmean(runs) if runs else 0.0,
        }
    return rows


def by_kind(fates: Sequence[Fate]) -> dict[str, dict[str, Any]]:
    """The same of the kinds of drafts within a quality, and of duplicates by what they say again."""
    originals = {fate.draft.id: fate.draft.quality for fate in fates}
    rows: dict[str, dict[str, Any]] = {}
    for quality in QUALITIES:
        for kind in sorted({fate.draft.kind for fate in fates if fate.draft.quality == quality}):
            ends = Counter(fate.end for fate in fates if (fate.draft.quality, fate.draft.kind) == (quality, kind))
            rows[f"kind, {quality}: {kind}"] = {end.replace(" ", "_"): ends[end] for end in ENDS if ends[end]}
    for quality in ("useful", "useless", "harmful"):
        ends = Counter(fate.end for fate in fates if originals.get(fate.draft.copies or "") == quality)
        rows[f"kind, duplicate of {quality}"] = {end.replace(" ", "_"): ends[end] for end in ENDS if ends[end]}
    return rows


def rates(stories: Sequence[Story]) -> dict[str, dict[str, Any]]:
    """Pass rates over the stream and after it, arm by arm, with Wilson's interval."""
    rows: dict[str, dict[str, Any]] = {}
    for phase, name in (("stream", "passes"), ("after", "after")):
        for arm in ARMS:
            found = [passed for story in stories for passed in getattr(story, name)[arm]]
            bounds = wilson_bounds(sum(found), len(found))
            rows[f"pass rate, {phase}, {arm}"] = {
                "rate": sum(found) / len(found), "low": bounds.lower, "high": bounds.upper, "runs": len(found),
            }  # fmt: skip
    for arm in ARMS:
        rows[f"runs with an injected prompt, {arm}"] = {"runs": sum(story.injected[arm] for story in stories)}
    return rows


def asked(fates: Sequence[Fate], found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    harmful = {fate.draft.id for fate in fates if fate.draft.quality in ("harmful", "injection")}
    wrong = [
        fate for fate in fates if fate.end == "promoted" and (fate.draft.id in harmful or fate.draft.copies in harmful)
    ]
    useful = found["drafts, useful"]["promoted_share"]
    falls = found["pass rate, after, no gate"]["high"] < found["pass rate, after, no rules"]["low"]
    return {
        "harmful_or_injected_promoted": len(wrong),
        "which": "; ".join(fate.draft.body[:80] for fate in wrong[:6]),
        "useful_promoted_share": useful,
        "falls_with_no_gate": falls,
        "met": not wrong and useful >= 0.8 and falls,
    }


def at_the_gate(fates: Sequence[Fate]) -> dict[str, dict[str, Any]]:
    """Which checks refused drafts, by quality; a draft may fail several."""
    rows: dict[str, dict[str, Any]] = {}
    for quality in QUALITIES:
        refused = [fate.checks for fate in fates if (fate.draft.quality, fate.end) == (quality, "gate")]
        found = Counter(check for checks in refused for check in checks)
        if refused:
            rows[f"refused at the gate, {quality}"] = {"drafts": len(refused)} | dict(found.most_common())
    return rows


def lost(fates: Sequence[Fate]) -> dict[str, dict[str, Any]]:
    """Every useful draft that was not promoted, and every harmful one that was: where, and why."""
    rows: dict[str, dict[str, Any]] = {}
    for fate in fates:
        quality = fate.draft.quality
        if (quality == "useful" and fate.end != "promoted") or (
            quality in ("harmful", "injection") and fate.end == "promoted"
        ):
            rows[f"lost: {fate.draft.id}"] = {
                "place": fate.draft.place.family, "body": fate.draft.body, "effect": round(fate.draft.effect, 3),
                "end": fate.end, "why": fate.why,
            }  # fmt: skip
    return rows


def plot(stories: Sequence[Story], fates: Sequence[Fate], path: Path) -> None:
    """Where drafts end, by quality; and the pass rate over the stream, all desks side by side."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5))
    start = dict.fromkeys(QUALITIES, 0)
    for end, colour in zip(ENDS, plt.get_cmap("tab10").colors, strict=False):  # type: ignore[attr-defined]
        counts = [sum((fate.draft.quality, fate.end) == (quality, end) for fate in fates) for quality in QUALITIES]
        if any(counts):
            left.bar(QUALITIES, counts, bottom=list(start.values()), label=end, color=colour)
            start = {quality: start[quality] + count for quality, count in zip(QUALITIES, counts, strict=True)}
    left.set_ylabel("drafts")
    left.legend(fontsize=8)
    parts = 20
    for arm, colour in zip(ARMS, ("tab:blue", "tab:red", "0.45"), strict=True):
        shares = []
        for part in range(parts):
            seen = [
                passed
                for story in stories
                for passed in story.passes[arm][
                    part * len(story.passes[arm]) // parts : (part + 1) * len(story.passes[arm]) // parts
                ]
            ]
            shares.append(sum(seen) / max(1, len(seen)))
        right.plot([(part + 0.5) / parts for part in range(parts)], shares, color=colour, label=arm)
    right.set_xlabel("share of a desk's runs (drafts come from the first of them on)")
    right.set_ylabel("pass rate")
    right.set_ylim(bottom=0)
    right.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one desk of each kind, for a look")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--needs", choices=("not_harmful", "better"), default="not_harmful")
    parser.add_argument("--data", type=Path, default=sets.default_data())
    given = parser.parse_args(argv)
    numbers = dict.fromkeys(DESKS, 1) if given.quick else DESKS
    start = time.process_time()
    stories = []
    for seed in range(1 if given.quick else given.seeds):
        for desk in desks(seed, given.data, numbers, policy_of(given.needs)):
            stories.append(desk.play())
            ends = Counter(f"{fate.draft.quality}: {fate.end}" for fate in stories[-1].fates)
            print(f"{desk.name}: {desk.number} runs, {time.process_time() - start:.0f} s, {dict(ends)}", file=sys.stderr)
    fates = [fate for story in stories for fate in story.fates]
    found = table(fates) | rates(stories)
    rows = {"asked": asked(fates, found)} | found | by_kind(fates) | at_the_gate(fates) | lost(fates)
    rows["cost"] = {"cpu_s": time.process_time() - start, "runs": sum(len(one.passes["gate"]) for one in stories)}
    plot(stories, fates, RESULTS / "rules_gate.png")
    report("rules_gate", rows, {"seeds": given.seeds, "quick": given.quick, "needs": given.needs, "drafts": len(fates)})


if __name__ == "__main__":
    main()
