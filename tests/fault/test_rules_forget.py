"""Forgetting what rules came from, and the runs that used them: nothing derived is left, and the counts are right.

A story of quokkas and wombats: each word stands in another part of what is to go.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rule_stores import LATER, at, grown, store

from muniment.core.outside.system import CountingIds, TickingClock
from muniment.core.policy import Policy
from muniment.errors import Conflict, Forgotten, MunimentError, NotFound
from muniment.handles.derived import new_context
from muniment.handles.memory import Memory
from muniment.handles.rulebook import Rulebook
from muniment.store.engines.opening import open_engine
from muniment.store.engines.postgres import PostgresEngine
from muniment.testing.stories import COUNTING, RuleStory
from rule_stages import copy_rows, told

PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s").mkdir()
    return tmp_path / "s"


@pytest.fixture
def mem(folder: Path) -> Iterator[Memory]:
    with store(open_engine(folder / "store.db"), seed="f") as memory:
        yield memory


def raw(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir())).lower()


def judged(mem: Memory, user_id: str, words: str, *, passed: bool = True, level: str = "user") -> Any:
    run = mem.run(user_id=user_id, agent_id="counter", grants=("agent", "tenant"))
    run.learning.select_rules(intent=COUNTING)
    run.observe("user", f"{words}: count.")
    run.compose("planner", query="count", max_tokens=600)
    run.observe("assistant", f"{words} one.")
    return run.learning.learn(PASS if passed else FAIL, intent=COUNTING, level=level)


def draft(draft_id: str, words: str, *traces: str) -> dict[str, Any]:
    foreseen = [{"id": name, "description": f"{words} could", "triggers": ["x"], "severity": "low"} for name in "ab"]
    return {
        "schema_version": "0.5.15", "draft_id": draft_id, "source_trace_ids": list(traces),
        "proposed_rule": {"type": "StrategyRule", "title": f"{words} title", "body": f"Mind the {words} first.",
                          "applicability": {"domain_tag": "count"}},
        "evidence": {"trace_ids": list(traces), "note": f"{words} evidence"},
        "failure_prediction": {"mechanism": f"{words} mechanism", "dependencies": [], "predicted_failures": foreseen},
        "tests": {"regression_tests": [], "counterexample_tests": []},
    }  # fmt: skip


def spec(test_id: str, rule_id: str, words: str) -> dict[str, Any]:
    return {
        "test_id": test_id, "test_type": "regression", "severity": "normal", "x_ref": "none",
        "prompt": f"{words} prompt", "assert": {"type": "contains", "args": {"text": f"{words} wanted"}},
        "expected": {"must_pass": True}, "linked_rule_ids": [rule_id],
    }  # fmt: skip


def book_of(mem: Memory, level: str) -> Rulebook:
    return {"user": lambda: mem.rulebook(user_id="ana"), "agent": lambda: mem.rulebook(agent_id="counter"),
            "tenant": mem.rulebook}[level]()  # fmt: skip


@pytest.mark.req("LG-07", "RC-14")
@pytest.mark.parametrize("level", ["user", "agent", "tenant"])
def test_a_rule_goes_with_the_run_it_was_learnt_from(mem: Memory, folder: Path, level: str) -> None:
    """Its versions, tests, reports, draft, selections and builds: no byte of them is left."""
    log = judged(mem, "ana", "quokkarun", level=level).event_log
    book = book_of(mem, level)
    made = book.submit(draft("d1", "quokkarule", log.trace_id))
    merged = book.submit(draft("d2", "quokkarule", log.trace_id))
    assert merged.kind == "merged"
    book.add_tests(made.id, [spec("t1", made.id, "quokkatest")])
    book.gate(made.id, lambda _task: "quokkaanswer")
    book.retire(made.id, reason="enough")
    book.rollback(to=2, signed_by="rosa")
    kept = book.submit(draft("d3", "wombatrule")) if level == "user" else None
    assert {word for word in (b"quokkarule", b"quokkatest", b"quokkarun") if word in raw(folder)} != set()
    mem.forget(event=log.x_ref)
    left = raw(folder)
    assert [word for word in ("quokkarule", "quokkatest", "quokkarun: count") if word.encode() in left] == []
    with pytest.raises(NotFound):
        book.get(made.id)
    assert [one.id for one in book.rules()] == ([] if kept is None else [kept.id])
    assert [one.revision for one in book.revisions()] == list(range(1, book.revision + 1))
    with pytest.raises(Conflict, match=r"left to be restored|stands as"):
        book.rollback(to=4, signed_by="rosa") if kept is None else book.rollback(to=book.revision, signed_by="rosa")
    assert mem.verify().ok
    assert mem.store.rebuild().repaired == ()
    with pytest.raises(MunimentError):
        book.submit("d1")
    again = book.submit(draft("d4", "numbatrule"))  # and it goes on
    assert book.get(again.id).stage == "drafted"


@pytest.mark.req("LG-07", "RC-16")
def test_a_user_of_a_tenants_rule_leaves_and_the_counts_are_right(folder: Path) -> None:
    """Runs of several users count for a rule of the tenant; one of them is forgotten, and the others' are left."""
    with store(open_engine(folder / "store.db"), seed="t") as mem:
        book = mem.rulebook()
        rule = book.add("Answer in one line, always.", applicability={"domain_tag": "count"})
        told: dict[str, list[bool]] = {"ana": [], "bo": []}
        for number in range(12):
            user, passed = ("ana", "bo")[number % 2], number % 3 != 0
            judged(mem, user, f"quokka{user}", passed=passed)
            told[user].append(passed)
        before = counts(book, rule.id)
        assert before == (12, sum(map(sum, told.values())))
        receipt = mem.forget(user_id="ana")
        assert receipt.scrubbed
        assert b"quokkaana" not in raw(folder)
        assert counts(book, rule.id) == (6, sum(told["bo"]))
        assert book.get(rule.id).record["body"].startswith("Answer")  # the rule is the tenant's
        assert book.select(intent=COUNTING).response.selected_rules
        assert mem.store.rebuild().repaired == ()
        assert counts(book, rule.id) == (6, sum(told["bo"]))


def counts(book: Rulebook, rule_id: str) -> tuple[int, int]:
    stats = book.stats(rule_id)
    runs = [stats.with_counts.runs, stats.without_counts.runs]
    return sum(each.n for each in runs), sum(each.passes for each in runs)


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_no_cache_of_another_process_hands_out_what_was_forgotten(
    request: pytest.FixtureRequest, folder: Path, engine: str
) -> None:
    def open_one(seed: str) -> Memory:
        if engine == "sqlite":
            return store(open_engine(folder / "store.db"), seed=seed)
        schema, dsn = request.getfixturevalue("kept_postgres_schema"), request.getfixturevalue("postgres_dsn")
        return store(PostgresEngine(dsn, schema=schema), seed=seed)

    past = told("promote")
    rule_id = past.answer
    with open_one("one") as mine, open_one("two") as other:
        copy_rows(past.memory, mine._ctx.engine)
        there = other.rulebook(user_id="ana")
        run = other.run(user_id="ana", agent_id="counter")
        assert [one.rule_id for one in there.select(intent=COUNTING).response.selected_rules] == [rule_id]
        assert run.learning.select_rules(intent=COUNTING, keep=False).text  # both are held ready now
        source = there.get(rule_id).sources[0]
        log = next(log for log in mine.bank(user_id="ana").event_logs() if log.trace_id == source)
        mine.forget(event=log.x_ref)
        assert there.select(intent=COUNTING).text == ""
        assert run.learning.select_rules(intent=COUNTING, keep=False).text == ""
        assert run.learning.select_rules(intent=COUNTING).text == ""


@pytest.mark.req("LG-07")
def test_a_new_book_is_not_mistaken_for_the_forgotten_one(folder: Path) -> None:
    """A user is forgotten and begins anew; another process, which knows the old book, comes by at the same number."""
    with (
        store(open_engine(folder / "s.db"), seed="one") as mine,
        store(open_engine(folder / "s.db"), seed="two") as two,
    ):
        book, other = mine.rulebook(user_id="ana"), two.rulebook(user_id="ana")
        for number in range(3):
            book.add(f"Quokka rule {number}.")
        assert "Quokka" in other.select(intent=COUNTING).text
        mine.forget(user_id="ana")
        assert (book.revisions(), book.rules(include_all=True)) == ([], [])
        assert other.select(intent=COUNTING).text == ""
        book.add("Be short.")
        assert [one.action for one in book.revisions()] == ["submit"]
        assert other.select(intent=COUNTING).text == book.select(intent=COUNTING).text
        assert "Be short." in other.select(intent=COUNTING).text
        first = book.revision
        book.add("Be quick.")
        assert book.rollback(to=first, signed_by="rosa").restores == first
        assert [one.record["body"] for one in book.rules()] == ["Be short."]
        with pytest.raises(NotFound, match="forgotten"):
            book.rollback(to=2, signed_by="rosa")
        assert book.rollback(to=0, signed_by="rosa").restores == 0
        assert book.rules() == []
        assert mine.store.rebuild().repaired == ()
        assert mine.verify().ok


@pytest.mark.req("LG-07")
def test_the_words_of_a_revision_can_be_forgotten_too(mem: Memory, folder: Path) -> None:
    """A reason may name somebody. It goes with its entry, and the history with it; the rules stand and go on."""
    book = mem.rulebook(user_id="ana")
    one, two = (book.add(f"Say {word}.", applicability={"domain_tag": "count"}) for word in ("please", "thanks"))
    book.retire(two.id, reason="quokkaname asked for it")
    entry = next(each for each in mem.ledger.entries(user_id="bank:user:ana") if "quokkaname" in str(each.metadata))
    reported = [each for each in mem.ledger.entries(user_id="bank:user:ana") if "quokkaname" in str(each.metadata)]
    for each in reported:
        mem.forget(event=each.id)
    assert b"quokkaname" not in raw(folder)
    assert entry.id in {each.id for each in reported}
    assert [each.id for each in book.rules()] == [one.id]
    number = book.revision
    book.add("Say hello.")
    assert [each.revision for each in book.revisions()] == [number + 1]
    assert book.select(intent=COUNTING).text.count("\n- ") == 2
    assert book.rollback(to=0, signed_by="rosa").restores == 0
    assert book.rules() == []
    assert mem.store.rebuild().repaired == ()


def test_builds_and_selections_go_with_the_rule(folder: Path) -> None:
    story, rule_id = at("promote", open_engine(folder / "store.db"), seed="b")
    with story.memory as mem:
        run = mem.run(user_id="ana", agent_id="counter")
        run.observe("user", "Count.")
        selection = run.learning.select_rules(intent=COUNTING)
        build = run.compose("planner", query="apples", max_tokens=600)
        assert selection.text in build.text
        source = story.book.get(rule_id).sources[0]
        log = next(log for log in mem.bank(user_id="ana").event_logs() if log.trace_id == source)
        mem.forget(event=log.x_ref)
        assert b"one json document and nothing else" not in raw(folder)
        with pytest.raises(Forgotten):
            mem.replay(build.id)
        later = run.compose("planner", query="apples", max_tokens=600)
        assert selection.text not in later.text
        learned = run.learning.learn(PASS, intent=COUNTING)  # a run that had it is still a run
        assert not learned.event_log.selected_rules
        assert mem.store.rebuild().repaired == ()


def test_forgetting_runs_one_by_one_keeps_the_figures_those_of_the_rest(folder: Path) -> None:
    story, rule_id = at("canary", open_engine(folder / "store.db"), seed="c")
    with story.memory as mem:
        logs = [story.run().event_log for _ in range(8)]
        while logs:
            left = counts(story.book, rule_id)
            assert left == (len(logs), sum(log.verifier.verdict == "PASS" for log in logs))
            mem.forget(event=logs.pop().x_ref)
        assert counts(story.book, rule_id) == (0, 0)
        assert story.book.stats(rule_id).rate().unknown


def test_an_old_dump_brings_no_rule_back(tmp_path: Path) -> None:
    dump, rule_id = grown("promote")
    story, _ = at("promote")
    with story.memory as mem:
        source = story.book.get(rule_id).sources[0]
        log = next(log for log in mem.bank(user_id="ana").event_logs() if log.trace_id == source)
        mem.forget(event=log.x_ref)
        mem.import_(lambda: dump)
        with pytest.raises(NotFound):
            story.book.get(rule_id)
        assert story.book.select(intent=COUNTING).text == ""
        assert RuleStory(mem).book.reports is not None
        assert mem.store.rebuild().repaired == ()
    context = new_context(
        engine=open_engine(tmp_path / "n.db"), policy=Policy(), clock=TickingClock(LATER), ids=CountingIds("n")
    )
    with Memory(context) as fresh:
        fresh.import_(lambda: dump)
        assert fresh.rulebook(user_id="ana").get(rule_id).stage == "active"
