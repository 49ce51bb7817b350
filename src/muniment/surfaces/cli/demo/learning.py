"""The part of the demo that learns: a toy agent whose runs are verified, what they leave, and what is let go again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import chain, cycle, islice, repeat
from typing import TYPE_CHECKING, Any

from muniment.surfaces.cli.terminal import echo, style

if TYPE_CHECKING:
    from muniment.handles.bank import Bank
    from muniment.handles.memory import Memory
    from muniment.handles.runner import AgentTask, Done, Runner
    from muniment.learning.stored_memory import StoredMemory
    from muniment.verify.outputs import Output

__all__ = ["show_learning"]

INTENT = {"domain_tag": "shop", "task_family": "lookup"}
WAYS = ("by_name", "by_number")
_RUNS_MAX = 60


class Shop:
    """What the agent works in: one way of looking an order up finds it."""

    def __init__(self) -> None:
        self.works = "by_number"
        self.ways: Iterator[str] = chain(islice(cycle(WAYS), 6), repeat("by_name"))
        """What the agent tries where nobody told it anything."""

    def agent(self, task: AgentTask) -> dict[str, Any]:
        """Goes the way that a tactic names, else one of its own."""
        hints_text = " ".join(hint.summary or "" for hint in task.hints if hint.source == "ReuseBuffer")
        way = next((each for each in WAYS if f"way={each}" in hints_text), None) or next(self.ways)
        found = "found" if way == self.works else "nothing"
        task.run.observe_tool(way, content=found)
        return {"text": found, "features": {"way": way}}

    @staticmethod
    def verify(output: Output, _task: str) -> bool:
        return output.text == "found"


def show_learning(clock: Callable[[], datetime]) -> None:
    """A lesson is learnt, tried on a share of the runs it fits, and let go when it stops helping."""
    from muniment.handles.memory import open as open_memory

    echo()
    echo(style("9 · Learning: a verified run leaves something for the next, and what stops helping goes", bold=True))
    with open_memory(":memory:", clock=clock) as mem:
        shop, bank = Shop(), mem.bank(user_id="ana")
        recalling, alone = _runner(mem, shop, recall=True), _runner(mem, shop, recall=False)
        _learn(alone, bank)
        _recall(mem, recalling)
        _retire(shop, recalling, bank)
        _tell_plans(bank)


def _runner(mem: Memory, shop: Shop, *, recall: bool) -> Runner:
    return mem.runner(shop.agent, shop.verify, {"recall": recall}, user_id="ana", agent_id="clerk")


def _look_up(runner: Runner, order: int) -> Done:
    return runner.run(f"Find order {order}.", intent=INTENT)


def _say(label: str, text: str) -> None:
    echo(f"  {label:<10} {text}")


def _tactics(bank: Bank) -> list[StoredMemory]:
    return bank.records(kind="tactic")


def _learn(runner: Runner, bank: Bank) -> None:
    passed = [_look_up(runner, 100 + number).passed for number in range(6)]
    _say(
        "runs",
        f"an agent looks up {len(passed)} orders, by name and by number in turn; {sum(passed)} pass the verifier",
    )
    for each in _tactics(bank):
        _say("learnt", f"{each.record['summary']!r}, from {len(each.sources)} runs that differ in nothing else")


def _recall(mem: Memory, runner: Runner) -> None:
    runs = [_look_up(runner, 200 + number) for number in range(4)]
    share, most = mem.policy.learn.lessons.trial_share, mem.policy.learn.injection.total_tokens_max
    _say("on trial", f"of the next runs {share:.0%}, drawn by hash, are handed it, within {most} tokens of hints")
    told = [done.passed for done in runs if _had_tactic(done)]
    _say("compared", f"{sum(told)} of {len(told)} pass with it, {sum(d.passed for d in runs) - sum(told)} of "
         f"{len(runs) - len(told)} that were held out")  # fmt: skip


def _had_tactic(done: Done) -> bool:
    praxis = done.learned.event_log.praxis
    return praxis is not None and bool(praxis.used_tactic_ids)


def _retire(shop: Shop, recalling: Runner, bank: Bank) -> None:
    shop.works = "by_name"
    (before,) = _tactics(bank)
    for order in range(300, 300 + _RUNS_MAX):
        _look_up(recalling, order)
        now = bank.get(before.id)
        if now.lesson is not None and now.lesson.stage in ("suspended", "retired"):
            _say("changed", f"numbers stop working; after {order - 299} runs: {now.lesson.why}")
            _say(now.lesson.stage, f"{before.id[:12]}…, by its numbers ({', '.join(now.reason_keys)})")
            break
    for order in range(500, 500 + _RUNS_MAX):
        found = [each for each in _tactics(bank) if each.id != before.id]
        for each in found:
            _say("learnt", f"{each.record['summary']!r}, after {order - 500} more")
        if found:
            break
        _look_up(recalling, order)


def _tell_plans(bank: Bank) -> None:
    plans = bank.plans()
    _say(
        "plans",
        f"every change was one of {len(plans)} plans, each applied whole, recorded, and open to `muniment learn undo`",
    )
