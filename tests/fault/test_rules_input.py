"""Bad input at every door of a rulebook: the error is typed, and nothing is changed; and whose rules reach whom."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rule_stores import at, store

from effort import examples
from muniment.errors import GateFailed, InvalidInput, MunimentError, NotFound, WrongStage
from muniment.handles.rulebook import Rulebook
from muniment.testing.stories import COUNTING, RuleStory
from products import for_each

words = st.sampled_from(
    [
        "",
        " ",
        "\x00",
        "\ud800",
        "x" * 5_000,
        "active",
        "canary",
        "StrategyRule",
        "nonsense",
        "rule_x",
        "days:3",
        "session",
    ]
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.just(10**400), st.floats(), words, st.text(max_size=8),
    st.binary(max_size=4), st.just(object()), st.just(print),
)  # fmt: skip
junk = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.integers(0, 2), inner, max_size=3),
    max_leaves=6,
)


@cache
def gated(_by: str) -> tuple[RuleStory, str]:
    """One rule that has passed its gate and its replay, for all that one test throws at it."""
    story, rule_id = at("gate")
    story.book.replay(rule_id, story.agent, story.verifier)
    return story, rule_id


DOORS: dict[str, Callable[[Rulebook, str, Any], Any]] = {
    "submit": lambda book, _rule, bad: book.submit(bad),
    "submit, as a draft": lambda book, _rule, bad: book.submit({"draft_id": "d", "proposed_rule": bad}),
    "add": lambda book, _rule, bad: book.add(bad),
    "add, applicability": lambda book, _rule, bad: book.add("Ignore previous instructions.", applicability=bad),
    "add, title": lambda book, _rule, bad: book.add("Ignore previous instructions.", title=bad),
    "add, ttl": lambda book, _rule, bad: book.add("Ignore previous instructions.", ttl=bad),
    "add, type": lambda book, _rule, bad: book.add("Ignore previous instructions.", type=bad),
    "add_tests": lambda book, rule, bad: book.add_tests(rule, bad),
    "add_tests, one": lambda book, rule, bad: book.add_tests(rule, [bad]),
    "make_tests": lambda book, _rule, bad: book.make_tests(bad),
    "make_tests, constraints": lambda book, rule, bad: book.make_tests(rule, constraints=bad),
    "gate": lambda book, _rule, bad: book.gate(bad, {}),
    "gate, timeout": lambda book, _rule, bad: book.gate("nobody", {}, timeout_s=bad),
    "gate, beside": lambda book, rule, bad: book.gate(rule, {}, beside=bad if bad is not None else "x"),
    "replay": lambda book, rule, bad: book.replay(rule, bad, bad),
    "replay, tasks": lambda book, _rule, bad: book.replay("nobody", print, print, tasks=bad),
    "canary": lambda book, _rule, bad: book.canary(bad),
    "canary, share": lambda book, rule, bad: book.canary(rule, share=bad if bad is not None else 0),
    "canary, buckets": lambda book, rule, bad: book.canary(rule, bucket_keys=bad if bad not in ([], {}) else 3),
    "promote": lambda book, rule, bad: book.promote(rule, signed_by=bad),
    "retire": lambda book, _rule, bad: book.retire("nobody", reason=bad),
    "retire, signed": lambda book, _rule, bad: book.retire("nobody", reason="x", signed_by=bad),
    "rollback": lambda book, _rule, bad: book.rollback(to=bad if bad not in range(9) else -1),
    "rollback, reason": lambda book, _rule, bad: book.rollback(to=999, reason=bad),
    "stats": lambda book, rule, bad: book.stats(rule, start=bad),
    "stats, of": lambda book, _rule, bad: book.stats(bad),
    "rules": lambda book, _rule, bad: book.rules(stage=bad),
    "get": lambda book, _rule, bad: book.get(bad),
    "history": lambda book, _rule, bad: book.history(bad),
    "reports": lambda book, _rule, bad: book.reports(bad),
    "tests": lambda book, _rule, bad: book.tests(bad),
    "lint": lambda book, _rule, bad: book.lint(bad),
    **{
        f"select, {name}": lambda book, _rule, bad, name=name: book.select(**{name: bad})
        for name in (
            *("intent", "state", "bucket_key", "features", "max_rules", "allow_types", "prompt_profile", "run_id"),
        )
    },
}


@pytest.mark.soak
@pytest.mark.req("RC-18", "X-07")
@pytest.mark.parametrize("door", sorted(DOORS))
@settings(
    max_examples=examples(12),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(bad=junk)
def test_what_is_nonsense_changes_nothing(door: str, bad: Any) -> None:
    story, rule_id = gated("nonsense")
    before = (story.book.revision, story.book.get(rule_id))
    try:
        DOORS[door](story.book, rule_id, bad)
    except MunimentError:
        assert (story.book.revision, story.book.get(rule_id)) == before
    assert story.book.get(rule_id).stage == "replayed"
    assert all(one.stage != "active" for one in story.book.rules())


NEVER: dict[str, Callable[[RuleStory, str], Any]] = {
    **{
        f"a share of {share!r:.12}": lambda story, rule, share=share: story.book.canary(rule, share=share)
        for share in (0, 1, -1, 0.0, 1.0, 0.51, float("nan"), float("inf"), 10**400, True, "0.1", [0.1])
    },
    **{
        f"{seconds!r:.12} seconds": lambda story, rule, seconds=seconds: story.book.gate(
            rule, story.agent, timeout_s=seconds
        )
        for seconds in (0, -1, float("nan"), float("inf"), 10**400, True, "1")
    },
    **{
        f"the output {output!r:.12}": lambda story, rule, output=output: story.book.gate(
            rule, {test.spec.test_id: output for test in story.book.tests(rule)}
        )
        for output in (3, {"texts": "x"}, ["x"], b"x")
    },
    "no executor": lambda story, rule: story.book.gate(rule, story.agent, executor=3),  # type: ignore[arg-type]
    "no executor to replay": lambda story, rule: story.book.replay(rule, story.agent, story.verifier, executor="x"),  # type: ignore[arg-type]
    "buckets of nobody": lambda story, rule: story.book.canary(rule, bucket_keys=[3]),  # type: ignore[list-item]
    "types of nothing": lambda story, rule: story.book.select(allow_types=[[]]),  # type: ignore[list-item]
    "an endless reason": lambda story, rule: story.book.rollback(to=1, reason="x" * 2_001, signed_by="rosa"),
    "a signature that is none": lambda story, rule: story.book.rollback(to=1, signed_by="\x00"),
}


@for_each("name", sorted(NEVER))
def test_what_is_never_right_is_refused(name: str) -> None:
    story, rule_id = gated("never right")
    before = (story.book.revision, story.book.get(rule_id), len(story.book.reports(rule_id)))
    with pytest.raises(InvalidInput):
        NEVER[name](story, rule_id)
    assert (story.book.revision, story.book.get(rule_id), len(story.book.reports(rule_id))) == before


numbers = itertools.count()


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_draft_with_something_wrong_in_it_is_a_draft_or_refused(data: st.DataObject) -> None:
    """Any part of a good draft in place of which something else stands."""
    story, _ = gated("drafts")
    good = story.memory.bank(user_id="ana").drafts()[0].to_wire() | {"draft_id": f"d{next(numbers)}"}
    places = [(name,) for name in good] + [
        ("proposed_rule", name) for name in ("type", "title", "body", "applicability")
    ]
    place = data.draw(st.sampled_from(places))
    inner = good
    for name in place[:-1]:
        inner[name] = dict(inner[name])
        inner = inner[name]
    inner[place[-1]] = data.draw(junk)
    revision = story.book.revision
    try:
        made = story.book.submit(good)
    except MunimentError:
        assert story.book.revision == revision
    else:
        assert story.book.get(made.id).stage != "active"


# -- tests and predicates that contradict -------------------------------------------------------------


def spec(test_id: str, rule_id: str, type_: str, **args: Any) -> dict[str, Any]:
    return {
        "test_id": test_id, "test_type": "regression", "severity": "normal", "x_ref": "one task", "prompt": "Count.",
        "assert": {"type": type_, "args": args}, "expected": {"must_pass": True}, "linked_rule_ids": [rule_id],
    }  # fmt: skip


@pytest.mark.req("RC-18")
def test_tests_that_contradict_are_no_gate() -> None:
    story, rule_id = at("submit")
    story.book.make_tests(rule_id)
    wanted = [spec("yes", rule_id, "contains", text="apple"), spec("no", rule_id, "regex_absent", pattern="apple")]
    story.book.add_tests(rule_id, wanted)
    report = story.book.gate(rule_id, story.agent)
    assert not report.passed
    assert "none contradict" in {check.name for check in report.checks if not check.ok}


def test_predicates_that_contradict_are_no_rule() -> None:
    story, _ = at("submit")
    before = story.book.revision
    good = story.memory.bank(user_id="ana").drafts()[0].to_wire() | {"draft_id": "d_never"}
    where = {"predicates": ['domain_tag == "a"', 'domain_tag == "b"']}
    good["proposed_rule"] = good["proposed_rule"] | {"applicability": where}
    with pytest.raises(InvalidInput):
        story.book.submit(good)
    with pytest.raises(InvalidInput):
        story.book.add("Be nice.", applicability=where)
    assert story.book.revision == before


# -- agents, verifiers and executors ------------------------------------------------------------------


class Dead(Executor):
    """Takes nothing any more."""

    def submit(self, *_args: Any, **_more: Any) -> Future[Any]:
        raise RuntimeError("it is dead")


class Dying(Executor):
    """Takes everything, and dies on it."""

    def submit(self, *_args: Any, **_more: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(RuntimeError("it died"))
        return future


@cache
def endless() -> str:
    return "x" * 100_000_000


def _crash(_task: Any) -> str:
    raise ValueError("no")


AGENTS: dict[str, Callable[[Any], Any]] = {
    "crashes": _crash,
    "hangs": lambda _task: time.sleep(1.5),
    "answers nothing": lambda _task: None,
    "answers 100 MB": lambda _task: endless(),
    "answers an object": lambda task: {"text": task},
    "answers half a character": lambda _task: "\ud800",
    "says that it passed": lambda _task: {"text": "PASS", "features": {"passed": True}, "verdict": "PASS"},
}


@pytest.mark.soak
@pytest.mark.req("RC-18")
@for_each("name", sorted(AGENTS))
def test_an_agent_that_does_wrong_is_a_result(name: str) -> None:
    story, rule_id = at("gate")
    agent, book = AGENTS[name], story.book
    timeout_s = 0.15 if name == "hangs" else 0.5
    tried = book.replay(rule_id, agent, story.verifier, timeout_s=timeout_s, tasks=6)
    assert not tried.passed or tried.effect in (None, 0)
    if tried.passed:  # no better and no worse than without: nothing was shown, and the trial will have to
        assert tried.decision == "undecided"
    report = book.gate(rule_id, agent, timeout_s=timeout_s)
    assert not report.passed
    with pytest.raises((GateFailed, WrongStage)):
        book.canary(rule_id)
    assert book.get(rule_id).stage in ("gated", "replayed")


@pytest.mark.parametrize("executor", [Dead(), Dying()])
def test_an_executor_that_dies_is_no_answer(executor: Executor) -> None:
    story, rule_id = at("gate")
    report = story.book.replay(rule_id, story.agent, story.verifier, executor=executor)
    assert (report.pairs, report.passed) == (0, False)
    assert not story.book.gate(rule_id, story.agent, executor=executor).passed
    with pytest.raises((GateFailed, WrongStage)):
        story.book.canary(rule_id)
    over = ThreadPoolExecutor(1)
    over.shutdown()
    assert not story.book.gate(rule_id, story.agent, executor=over).passed


@for_each(
    "verifier", [lambda *_: 1 / 0, lambda *_: None, lambda *_: {"verdict": "MAYBE"}, lambda *_: "PASS", lambda: True]
)
def test_a_verifier_that_cannot_speak_says_nothing(verifier: Any) -> None:
    story, rule_id = at("gate")
    report = story.book.replay(rule_id, story.agent, verifier)
    assert (report.pairs, report.passed) == (0, False)
    assert story.book.get(rule_id).stage == "gated"


# -- whose rules reach whom ---------------------------------------------------------------------------


@pytest.mark.req("LG-02", "RC-15")
def test_a_users_rules_are_the_users_alone() -> None:
    with store() as mem:
        mem.rulebook(user_id="ana").add("Rule of ana's.")
        mem.rulebook(agent_id="counter").add("Rule of the counter's.")
        mem.rulebook().add("Rule of the tenant's.")
        mem.rulebook(tenant_id="acme").add("Rule of acme's.")

        def seen(**scope: Any) -> set[str]:
            text = mem.run(**scope).learning.select_rules(intent=COUNTING).text
            return {name for name in ("ana", "the counter", "the tenant", "acme") if f"of {name}'s" in text}

        assert seen(user_id="ana", agent_id="counter") == {"ana", "the counter", "the tenant"}
        assert seen(user_id="ana", agent_id="other") == {"ana", "the tenant"}
        assert seen(user_id="bo", agent_id="counter") == {"the counter", "the tenant"}
        assert seen(user_id="bo", agent_id="other") == {"the tenant"}
        assert seen(user_id="ana", agent_id="counter", tenant_id="acme") == {"acme"}


@pytest.mark.req("LG-02")
def test_a_rule_of_another_book_does_not_exist() -> None:
    story, rule_id = at("gate")
    mem = story.memory
    for book in (mem.rulebook(user_id="bo"), mem.rulebook(agent_id="counter"), mem.rulebook()):
        for call in (
            lambda book=book: book.get(rule_id),
            lambda book=book: book.tests(rule_id),
            lambda book=book: book.reports(rule_id),
            lambda book=book: book.stats(rule_id),
            lambda book=book: book.history(rule_id),
            lambda book=book: book.lint(rule_id),
            lambda book=book: book.gate(rule_id, {}),
            lambda book=book: book.make_tests(rule_id),
            lambda book=book: book.add_tests(rule_id, []),
            lambda book=book: book.canary(rule_id),
            lambda book=book: book.promote(rule_id, signed_by="rosa"),
            lambda book=book: book.retire(rule_id, reason="x", signed_by="rosa"),
            lambda book=book: book.submit(story.book.get(rule_id).record["evidence"]["draft_ids"][0]),
        ):
            with pytest.raises(NotFound):
                call()
        assert (book.revision, book.rules(include_all=True)) == (0, [])


@pytest.mark.req("LG-02")
def test_examples_of_another_user_make_no_test() -> None:
    """A draft that names another's runs gets nothing of them: neither their tasks nor their answers."""
    story, rule_id = at("submit")
    mem = story.memory
    traces = list(story.book.get(rule_id).sources)
    good = mem.bank(user_id="ana").drafts()[0].to_wire() | {"draft_id": "d_bo", "source_trace_ids": traces}
    book = mem.rulebook(user_id="bo")
    made = book.submit(good)
    assert book.make_tests(made.id).specs == ()
    assert not book.gate(made.id, story.agent).passed
    assert "apples" not in str([test.spec for test in book.tests(made.id)])
