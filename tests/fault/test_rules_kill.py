"""kill -9 in the middle of submit, gate, replay, canary, promote, publish, retire and rollback.

The store then verifies, a rebuild finds nothing to repair, and the rulebook is the one before or the one after: its
revisions follow one another, each rule stands as the newest of them says, and a selection belongs to it. Told again,
the rule comes to where it would have come.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kill_ruler import ENDED, first_steps, open_story, steps, tell
from rule_stores import at

from deployments import FreshStore, on
from muniment.handles.memory import Memory
from muniment.rules.rulebook import state_at
from muniment.store.engines.opening import open_engine
from muniment.testing.stories import COUNTING, RuleStory
from warm_commands import run_script

RULER = Path(__file__).parent / "kill_ruler.py"
STRIDE = 1 if "MUNIMENT_SOAK" in os.environ else 4
MOMENTS = ("inside", "after")


def prepare(target: str, part: str) -> None:
    """A store with what the part needs: runs that were taught, or a trial that has spoken."""
    story, rule_id = at("teach" if part == "first" else "shown", open_engine(target), seed="made")
    with story.memory:
        assert part == "first" or story.book.watch(act=False)[rule_id].decision == "promote"


def copy(source: Path, target: Path) -> None:
    """The store with all that was committed, wherever the file has it."""
    with closing(sqlite3.connect(source)) as here, closing(sqlite3.connect(target)) as there:
        here.backup(there)


def standing(mem: Memory) -> dict[str, Any]:
    book = mem.rulebook(user_id="ana")
    rules = {one.id: (one.version, one.stage, one.status) for one in book.rules(include_all=True)}
    looks = [book.select(intent=COUNTING, run_id=f"look {number}").text for number in range(4)]
    return {"revision": book.revision, "rules": rules, "looks": looks}


def check(mem: Memory) -> dict[str, Any]:
    """A rulebook that is whole."""
    book = mem.rulebook(user_id="ana")
    assert mem.verify().ok
    revisions = book.revisions()
    assert [one.revision for one in revisions] == list(range(1, book.revision + 1))
    state = state_at(revisions, book.revision)
    written = {change.rule_id: change.after for one in revisions for change in one.changes}
    for rule in book.rules(include_all=True):
        assert written[rule.id] == rule.version
        assert (rule.id in state) or rule.status == "retired"
        if rule.stage == "active":
            assert rule.report_id in {one.report_id for one in book.reports(rule.id)}
    before = standing(mem)
    assert mem.store.rebuild().repaired == ()
    assert standing(mem) == before
    return before


def whole(target: str, part: str) -> list[dict[str, Any]]:
    """What stands after each step of a story that nobody stops."""
    mem, story = open_story(target)
    with mem:
        told = first_steps(story) if part == "first" else steps(story, story.book.rules(include_all=True)[0].id)
        found = [standing(mem)]
        for step in told:
            tell([step])
            found.append(standing(mem))
        return found


def stages(states: list[dict[str, Any]]) -> list[Any]:
    return [sorted((stage or "", status) for _, stage, status in each["rules"].values()) for each in states]


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.req("RC-14", "RC-18", "LG-06")
@pytest.mark.parametrize("part", ["first", "second"])
@on("sqlite")
def test_a_rulebook_is_killed_at_each_change(
    deployment: str, fresh_store: FreshStore, tmp_path: Path, part: str, warm_place: str | None
) -> None:
    made = tmp_path / "made.db"
    prepare(str(made), part)

    @contextmanager
    def prepared() -> Iterator[str]:
        """Another store in the same state: of files a copy is made, on a server the story is told again."""
        with fresh_store() as store:
            if deployment == "sqlite":
                copy(made, Path(store.target))
            else:
                prepare(store.target, part)
            yield store.target

    with prepared() as target:
        states = whole(target, part)
    number, died = 1, 0
    while True:
        with prepared() as target:
            ended = run_script(warm_place, RULER, target, str(number), MOMENTS[number // STRIDE % 2], part)
            if ended == ENDED:
                break
            assert ended == -signal.SIGKILL
            died += 1
            check_after(target, part, states)
        number += STRIDE
    assert died >= (5 if STRIDE == 1 else 2)


def check_after(target: str, part: str, states: list[dict[str, Any]]) -> None:
    mem, story = open_story(target, seed="again")
    with mem:
        left = check(mem)
        assert stages([left])[0] in stages(states), "one of the states between two steps, and none besides"
        if part == "first":
            tell(first_steps(story))
            assert stages([check(mem)])[0] == stages(states)[-1]


def test_the_story_is_told_as_it_is_meant(tmp_path: Path) -> None:
    path = str(tmp_path / "made.db")
    prepare(path, "second")
    last = whole(path, "second")
    assert [("active", "active") in each for each in stages(last)] == [False, True, True, True, True, False, True]
    mem, _ = open_story(path, seed="more")
    with mem:
        assert isinstance(RuleStory(mem).book.revision, int)
        check(mem)
