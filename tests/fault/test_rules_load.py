"""A rulebook changed under load: runs select and learn while rules are promoted, retired, published and rolled back.

Nobody ever sees half a change: what a run is given is what one revision says, revisions follow one another without a
gap, what was counted is what the ledger says, and everyone comes to an end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from load_ruler import OWNER, look, work
from rule_stores import at, store

from deployments import FreshStore, on
from muniment.core.outside.system import system_clock
from muniment.errors import Conflict, MunimentError
from muniment.learning.plans import version_of
from muniment.rules._records import RulebookRevision
from muniment.rules._select import Candidate, compile_rule, select_rules
from muniment.rules.rulebook import state_at
from muniment.rules.selection import ask_rules, read_asked
from muniment.store.engines.opening import open_engine
from muniment.testing.stories import COUNTING, RuleStory

ROUNDS = 60 if "MUNIMENT_SOAK" in os.environ else 5


def change(story: RuleStory, rule_id: str, busy: Callable[[], bool]) -> None:
    """The rule out of force and back, figures published, and persons' rules that come and go, until all are done."""
    book, mem = story.book, story.memory
    there = book.revision
    shared = [mem.rulebook(), mem.rulebook(agent_id="counter")]
    for number in count():
        if number and not busy():
            return
        attempt(lambda: book.retire(rule_id, reason="a doubt", signed_by="rosa"))
        attempt(lambda number=number: book.add(f"Say number {number} aloud.", applicability={"domain_tag": "count"}))
        attempt(lambda: book.rollback(to=there, reason="it was right", signed_by="rosa"))
        for other in shared:  # of which every run is told as well
            attempt(lambda other=other: other.rollback(to=0, signed_by="rosa"))
            attempt(lambda other=other, number=number: other.add(f"Mind the rule {number} of all."))
        attempt(book.publish)
        attempt(book.watch)


def attempt(call: Callable[[], Any]) -> None:
    try:
        call()
    except Conflict:  # somebody else was quicker
        return


def expected(story: RuleStory, revisions: list[RulebookRevision], seen: dict[str, Any]) -> list[dict[str, Any]]:
    """What the revision says that the run should have been given, worked out from the versions it had in force."""
    ctx = story.memory._ctx
    state = state_at(revisions, seen["revision"])

    def candidates(reader: Any) -> list[Candidate]:
        found = [version_of(reader, rule_id, version) for rule_id, version in state.items()]
        return [compile_rule(memory, ctx.counter.count) for memory in found if memory is not None]

    rules = ctx.engine.read("default", candidates)
    asked = read_asked(ctx, intent=COUNTING)
    captured: list[Any] = []

    def capture(_candidates: Any, wanted: Any, policy: Any) -> Any:
        captured.append(select_rules(rules, wanted, policy))
        return captured[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("muniment.rules.selection.select_rules", capture)
        patch.setattr("muniment.rules.selection._are_there", lambda *_: True)
        patch.setattr("muniment.rules.selection.candidates_for", lambda *_: (0, rules))
        ask_rules(ctx, "default", (OWNER,), asked, run_id=seen["run"], x_ref=seen["run"])
    return [one.to_wire() for one in captured[-1].response.selected_rules]


def check(story: RuleStory, rule_id: str, looks: list[dict[str, Any]]) -> None:
    book = story.book
    revisions = book.revisions()
    assert [one.revision for one in revisions] == list(range(1, book.revision + 1))
    for seen in looks:
        assert seen["chosen"] == expected(story, revisions, seen), seen
    for one in book.rules(include_all=True):
        assert [held.version for held in book.history(one.id)] == list(range(1, one.version + 1))
    stats = book.stats(rule_id)
    assert story.memory.verify().ok
    assert story.memory.store.rebuild().repaired == ()
    assert book.stats(rule_id) == stats
    assert len({seen["revision"] for seen in looks}) > 1, "nothing changed while they looked"


@pytest.fixture
def stories(deployment: str, fresh_store: FreshStore) -> Iterator[tuple[list[RuleStory], str]]:
    """Three handles of one store; of a file or a server, each with connections and caches of its own."""
    with ExitStack() as stack:
        place = stack.enter_context(fresh_store())
        engines: list[Any] = [open_engine(place.target)]
        engines += engines * 2 if deployment == "memory" else [open_engine(place.target) for _ in range(2)]
        first, rule_id = at("promote", engines[0], seed="x", clock=system_clock)
        others = [store(engine, seed=seed, clock=system_clock) for engine, seed in zip(engines[1:], "yz", strict=True)]
        for memory in (first.memory, *others)[: 1 if deployment == "memory" else 3]:
            stack.callback(memory.close)
        yield [first, *(RuleStory(memory, seed=3) for memory in others)], rule_id


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RC-14", "RC-15", "RC-16")
@on("memory")
def test_no_half_changed_rulebook_is_ever_seen(stories: tuple[list[RuleStory], str]) -> None:
    (changer, *workers), rule_id = stories
    looks: list[dict[str, Any]] = []
    problems: list[BaseException] = []
    start = threading.Barrier(len(workers) + 1)

    def go(call: Callable[[], Any]) -> None:
        start.wait()
        try:
            call()
        except (MunimentError, AssertionError, KeyError, ValueError, TypeError, RuntimeError) as error:
            problems.append(error)

    threads = [
        threading.Thread(target=go, args=(lambda at=at, story=story: looks.extend(work(story, f"w{at}", ROUNDS)),))
        for at, story in enumerate(workers)
    ]
    learning = list(threads)
    threads.append(
        threading.Thread(
            target=go, args=(lambda: change(changer, rule_id, lambda: any(each.is_alive() for each in learning)),)
        )
    )
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert not any(thread.is_alive() for thread in threads), "somebody waits for somebody"
    assert problems == []
    check(changer, rule_id, [*looks, look(changer, "last"), look(workers[0], "last")])


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RC-14")
@on("sqlite")
def test_two_processes_share_a_store(fresh_store: FreshStore) -> None:
    with fresh_store() as place:
        share_it(place.target)


def share_it(path: str) -> None:
    story, rule_id = at("promote", open_engine(path), seed="x", clock=system_clock)
    script = Path(__file__).parent / "load_ruler.py"
    with story.memory:
        workers = [
            subprocess.Popen([sys.executable, str(script), path, seed, str(ROUNDS)], stdout=subprocess.PIPE)
            for seed in ("y", "z")
        ]
        change(story, rule_id, lambda: any(worker.poll() is None for worker in workers))
        told = [worker.communicate(timeout=240)[0] for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0]
        looks = [json.loads(line) for each in told for line in each.splitlines()]
        assert len(looks) == 2 * ROUNDS
        check(story, rule_id, [*looks, look(story, "last")])
