"""`muniment demo rules`: the life of a rule, from the runs that drafted it to the rollback that puts it back."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Any

from muniment.errors import GateFailed, WrongStage
from muniment.surfaces.cli.terminal import bar, echo, one_line, style

if TYPE_CHECKING:
    from muniment.core.stats import Tally
    from muniment.handles.memory import Memory
    from muniment.handles.rulebook import Rulebook
    from muniment.handles.runner import AgentTask
    from muniment.verify.outputs import Output

__all__ = ["show_rules"]

COUNTING = {"domain_tag": "count", "task_family": "apples", "output_format": "json"}
WEATHER = {"domain_tag": "weather", "task_family": "now"}
_KEY = "FORMAT:JSON_ONLY"
_RUNS_MAX = 400
_EVERY = 10
"""How often the trial is looked at. It may be after every run: the bound allows for that."""


class Counter:
    """An agent that counts apples, and often forgets that the answer is to be JSON. It obeys what its prompt says."""

    def __init__(self) -> None:
        self.random = Random(7)
        self.asked = 0

    def agent(self, task: AgentTask) -> str:
        return self.answer(task.prompt)

    def answer(self, prompt: str) -> str:
        if "weather" in prompt:
            return "Sunny, twelve degrees."
        is_told = f"Keep {_KEY}" in prompt
        return '{"count": 1}' if is_told or self.random.random() < 0.4 else "There is one apple."

    def verify(self, output: Output, task: str) -> Any:
        """What the shop's verifier says: a count is one JSON document."""
        broken = {"verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["format_leak"], "violated_constraints": [_KEY]}
        if "weather" not in task:
            try:
                json.loads(output.text)
            except ValueError:
                return {"verifier_id": "shop", **broken}
        return {"verifier_id": "shop", "verdict": "PASS", "outcome": "OK"}

    def work(self, mem: Memory) -> None:
        """One real run: it asks for its rules, answers, is judged, and is learnt from."""
        from muniment.verify.outputs import Output

        self.asked += 1
        task = f"Count the apples in basket {self.asked}."
        run = mem.run(user_id="ana", agent_id="counter", task_type="apples")
        rules = run.learning.select_rules(intent=COUNTING)
        run.observe("user", task)
        answer = self.answer(f"{rules.text}\n{task}")
        run.observe("assistant", answer)
        run.learning.learn(self.verify(Output(text=answer), task), intent=COUNTING)


def show_rules(clock: Callable[[], datetime]) -> None:
    """A rule is drafted, tested, tried, signed for, taken back, and put in force again."""
    from muniment.handles.memory import open as open_memory

    with open_memory(":memory:", clock=clock) as mem:
        counter, book = Counter(), mem.rulebook(user_id="ana")
        rule_id = _draft(mem, counter, book)
        _test(counter, book, rule_id)
        _try(mem, counter, book, rule_id)
        _promote(book, rule_id)
        _take_back(book, rule_id)
    echo()


def _title(text: str) -> None:
    echo()
    echo(style(text, bold=True))


def _say(label: str, text: str) -> None:
    echo(f"  {label:<10} {text}")


def _draft(mem: Memory, counter: Counter, book: Rulebook) -> str:
    echo(style("1 · Runs that fail alike draft a rule, and nobody obeys a draft", bold=True))
    runner = mem.runner(counter.agent, counter.verify, {"recall": False}, user_id="ana", agent_id="counter")
    passed = [runner.run(f"Count the apples in box {number}.", intent=COUNTING).passed for number in range(14)]
    for number in range(5):
        runner.run(f"How is the weather in town {number}?", intent=WEATHER)
    _say(
        "runs", f"an agent counts apples {len(passed)} times, and {sum(passed)} answers are the JSON that was asked for"
    )
    draft = next(each for each in mem.bank(user_id="ana").drafts() if _KEY in (each.proposed_rule.title or ""))
    _say("draft", f"{one_line(draft.proposed_rule.body or '', 90)!r}")
    _say(
        "evidence", f"{len(draft.source_trace_ids)} runs; nothing is said to any run: {_chosen(book, 20)} of 20 get it"
    )
    made = book.submit(draft.draft_id)
    _say("submitted", f"{made.kind}: {'; '.join(made.reasons)}; lint finds {len(made.lint)} warnings")
    return made.id


def _test(counter: Counter, book: Rulebook, rule_id: str) -> None:
    _title("2 · The gate asks for tests that can fail; replay tries earlier tasks with the rule and without")
    failing = [check.name for check in book.gate(rule_id, counter.agent).checks if not check.ok]
    _say("gate", f"not passed without tests; missing: {', '.join(failing[:4])}")
    try:
        book.promote(rule_id, signed_by="rosa")
    except (GateFailed, WrongStage) as refused:
        _say("promote", f"refused, signature or not: {refused.code}, {refused.hint}")
    made = book.make_tests(rule_id)
    _say("tests", f"{len(made.specs)} are made of its runs, and of runs it is not for; each can fail")
    gate = book.gate(rule_id, counter.agent)
    _say("gate", f"{sum(each.ok for each in gate.outcomes)} of {len(gate.outcomes)} tests pass: {gate.passed}")
    replay = book.replay(rule_id, counter.agent, counter.verify)
    _say(
        "replay",
        f"{replay.with_passes} of {replay.pairs} pass with it, {replay.without_passes} without: {replay.decision}",
    )


def _try(mem: Memory, counter: Counter, book: Rulebook, rule_id: str) -> None:
    _title("3 · A canary tries it on half of the real runs, drawn by their ids, until a bound speaks")
    book.canary(rule_id, share=0.5)
    while counter.asked < _RUNS_MAX:
        for _ in range(_EVERY):
            counter.work(mem)
        verdict = book.watch()[rule_id]
        effect = "unknown" if verdict.effect is None else f"{verdict.effect:+.2f}"
        bounds = f"{verdict.bounds.lower:+.2f} to {verdict.bounds.upper:+.2f}"
        _say(f"{verdict.runs} runs", f"{verdict.decision}: effect {effect}, at every look {bounds}")
        if verdict.decision != "stay":
            break
    stats = book.stats(rule_id)
    _say("with", _rate(stats.with_counts.runs))
    _say("without", _rate(stats.without_counts.runs))


def _rate(tally: Tally) -> str:
    share = tally.passes / tally.n if tally.n else 0.0
    return f"{bar(share, 20)} {tally.passes} of {tally.n}"


def _promote(book: Rulebook, rule_id: str) -> None:
    _title("4 · Somebody signs; only then every run gets it")
    with suppress(GateFailed):
        book.promote(rule_id)
    _say("unsigned", f"it is still {book.get(rule_id).stage}")
    report = book.promote(rule_id, signed_by="rosa")
    _say("signed", f"by {report.signed_by}, on {len(report.reasons)} lines of report; it is {book.get(rule_id).stage}")
    for reason in report.reasons[:3]:
        _say("", one_line(reason, 100))
    _say("runs", f"{_chosen(book, 20)} of 20 would get it, of another kind {_chosen(book, 20, WEATHER)} of 20")


def _take_back(book: Rulebook, rule_id: str) -> None:
    _title("5 · Every change is a revision, and any of them can be put in force again")
    there, before = book.revision, _selections(book)
    _say(
        "added", f"a person's own rule, for a day: {book.add('Answer in one line.', ttl='days:1').layer} layer, inline"
    )
    book.retire(rule_id, reason="a change of mind")
    _say(
        "retired",
        f"{_chosen(book, 20)} of 20 runs would get it; selections are as before: {_selections(book) == before}",
    )
    book.rollback(to=there, reason="it was right", signed_by="rosa")
    _say("rollback", f"to revision {there}, in one call; selections are as before: {_selections(book) == before}")
    for each in book.revisions():
        by = f", signed by {each.signed_by}" if each.signed_by else ""
        _say(f"{each.revision:>4}", f"{each.action:<9} {one_line(each.reason, 70)}{by}")


def _chosen(book: Rulebook, runs: int, intent: dict[str, str] | None = None) -> int:
    """How many of some runs would get a learned rule."""
    asked = [book.select(intent=intent or COUNTING, run_id=f"run_{number}") for number in range(runs)]
    return sum(
        any(arm.arm in ("active", "canary") for arm in each.arms if arm.type == "GuardrailRule") for each in asked
    )


def _selections(book: Rulebook) -> list[list[dict[str, Any]]]:
    found = [book.select(intent=COUNTING, run_id=f"run_{number}").response for number in range(20)]
    return [[rule.to_wire() for rule in each.selected_rules] for each in found]
