"""Lessons of an agent's or a tenant's bank: counted and moved there by the runs of whoever recalls them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from plan_makers import payload

from dump_lines import dump_of, plain, resealed
from muniment.core.ports.engine import Count, Delete
from muniment.core.ports.rows import insert
from muniment.core.ports.schema import LINKS, LinkRow
from muniment.core.scope import bank_names
from muniment.errors import InvalidInput, NotFound
from muniment.learning.banks import write_bank
from muniment.learning.projection import trace_id_of
from muniment.learning.records import Tally
from muniment.learning.uses import name_in_bank, told_id, uses_of
from muniment.memory.patches import Decided, draft_patch, write_patches
from muniment.store.items import select_items
from muniment.store.ledger import LESSONS_USED, MEMORY_RECALLED

INTENT = {"domain_tag": "shop", "task_family": "lookup"}
PASS = {"verifier_id": "v", "verdict": "PASS", "outcome": "OK"}
FAIL = {"verifier_id": "v", "verdict": "FAIL", "outcome": "FAIL", "reason_codes": ["numeric_error"]}
UNSURE = {"verifier_id": "v", "verdict": "PARTIAL", "outcome": "UNKNOWN", "reason_codes": ["exec_unavailable"]}
ALWAYS = {"learn": {"lessons": {"holdout_share": 0, "trial_share": 1, "suspended_share": 1}}}
AGENT, TENANT = {"agent_id": "clerk"}, {}
SHARED = [pytest.param(AGENT, id="agent"), pytest.param(TENANT, id="tenant")]
ENGINES = ["sqlite", "postgres"]
SECRET = "Find the zebra invoice of Quimby."


WORDS = {
    "tac_a": "Read the whole policy before anything is sent.",
    "tac_t": "Quote every amount in the currency of the customer.",
}


def tactic(tactic_id: str = "tac_1", **more: Any) -> dict[str, Any]:
    said = WORDS.get(tactic_id, "Look the order up by number.")
    work = {"intent_key": "intent|domain=shop|family=lookup"}
    return payload("tactic", tactic_id, summary=said, injection={"mode": "inline", "content": said}, **(work | more))


def write(bank, record: dict[str, Any], store: str = "ReuseBuffer") -> None:
    plan = bank.plan([{"op": "WRITE", "target_store": store, "payload": record}])
    assert not bank.apply(plan.plan_id).aborted


def recalling(mem, user_id: str = "ana", text: str = "Find order 1.", agent_id: str = "clerk", **more: Any):
    """A run that has recalled lessons, and has not ended."""
    scope = {name: more.pop(name) for name in ("tenant_id", "session_id", "grants") if name in more}
    run = mem.run(user_id=user_id, agent_id=agent_id, **scope)
    run.observe("user", text)
    recalled = run.learning.recall(text, intent=INTENT, sources=["ReuseBuffer"], **more)
    run.observe("assistant", "Here it is.")
    return run, recalled


def judged(mem, user_id: str = "ana", result: dict[str, Any] = PASS, **more: Any):
    run, _ = recalling(mem, user_id, **more)
    run.finish(verifier_result=result, intent=INTENT)
    return run


def tally(bank, memory_id: str = "tac_1") -> tuple[int, int]:
    held = bank.get(memory_id).with_tally
    return held.n, held.passes


def uses(mem, owner: str, tenant_id: str = "default") -> list[tuple[str, dict[str, Any]]]:
    """The live rows of uses in a bank."""
    where = (("kind", "=", "lesson_use"), ("user_id", "=", owner))
    items = mem._ctx.engine.read(tenant_id, lambda reader: select_items(reader, where))
    return [(item.id, item.plain()) for item in items if item.body is not None]


def entries_in(mem, owner: str, tenant_id: str = "default") -> int:
    where = (("user_id", "=", owner),)
    return mem._ctx.engine.read(tenant_id, lambda reader: reader.do(Count("entries", where=where)))


# -- counting -----------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("RC-13")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("who", SHARED)
def test_whoever_recalls_a_shared_lesson_and_is_judged_counts_for_it(make, engine: str, who: dict[str, str]) -> None:
    mem = make(engine, policy=ALWAYS)
    bank = mem.bank(**who)
    write(bank, tactic())
    for number in range(6):
        judged(mem, ("ana", "bo")[number % 2], PASS if number < 2 else FAIL)
    held = bank.get("tac_1")
    assert (tally(bank), held.streak, held.version) == ((6, 2), 4, 1)
    (lesson,) = bank.lessons()
    assert (lesson.uses, lesson.effect.had.passes, len(lesson.newest)) == (6, 2, 5)
    for user_id in ("ana", "bo"):
        assert uses(mem, f"bank:user:{user_id}") == [], "counted once, where the lesson is"
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_each_bank_counts_its_own_and_no_bank_counts_twice(make, engine: str) -> None:
    mem = make(engine, policy=ALWAYS)
    banks = {"tac_u": mem.bank(user_id="ana"), "tac_a": mem.bank(**AGENT), "tac_t": mem.bank(**TENANT)}
    for memory_id, bank in banks.items():
        write(bank, tactic(memory_id))
    judged(mem, "ana")
    judged(mem, "bo", FAIL)
    assert {id_: tally(bank, id_) for id_, bank in banks.items()} == {"tac_u": (1, 1), "tac_a": (2, 1), "tac_t": (2, 1)}
    for memory_id, owner in (("tac_u", "bank:user:ana"), ("tac_a", "bank:agent:clerk"), ("tac_t", "bank:tenant")):
        assert {arm["memory_id"] for _, body in uses(mem, owner) for arm in body["arms"]} == {memory_id}
    assert mem.store.rebuild().repaired == ()
    assert mem.verify().ok


def test_what_a_run_that_is_learnt_above_its_user_recalled_of_the_user_counts_there(make) -> None:
    mem = make(policy=ALWAYS)
    write(mem.bank(user_id="ana"), tactic("tac_u"))
    write(mem.bank(**AGENT), tactic("tac_a"))
    run, _ = recalling(mem, "ana", grants=("agent",))
    run.finish(verifier_result=PASS, intent=INTENT, level="agent")
    assert (tally(mem.bank(user_id="ana"), "tac_u"), tally(mem.bank(**AGENT), "tac_a")) == ((1, 1), (1, 1))
    assert mem.verify().ok


def test_lessons_of_a_kind_of_work_and_of_none_are_counted_by_one_run(make) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(**AGENT)
    write(bank, tactic("tac_1"))
    added = bank.add_lesson("Ask for the limit first", when="an upload is refused")
    runs = [judged(mem) for _ in range(3)]
    assert tally(bank, "tac_1") == (3, 3)
    assert tally(bank, added.lesson_id) == (2, 2), "the first run gave it its place on trial"
    mem.forget(event=next(iter(runs[2].ledger.entries())).id)
    assert (tally(bank, "tac_1"), tally(bank, added.lesson_id)) == ((2, 2), (1, 1))
    assert mem.verify().ok


def test_what_is_held_out_of_a_run_is_counted_as_such(make) -> None:
    mem = make(policy={"learn": {"lessons": {"holdout_share": 1}}})
    bank = mem.bank(**AGENT)
    write(bank, tactic())
    judged(mem)
    held = bank.get("tac_1")
    assert (held.with_tally.n, held.without_tally) == (0, Tally(n=1, passes=1))
    found = mem._ctx.engine.read("default", lambda reader: uses_of(reader, "bank:agent:clerk", [held], 9)["tac_1"])
    assert [(use.arm, use.stage, use.share) for use in found] == [("held_out", "active", 0)]


def test_episodes_of_a_shared_bank_are_counted_too(make) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(**AGENT)
    said = {"summary": "Asked: Find order 7. Passed. Did: by_number.", "tags": ["pass"]}
    write(bank, payload("reasoning", "rm_1", **said, intent_key="intent|domain=shop|family=lookup"), "ReasoningBank")
    run = mem.run(user_id="ana", agent_id="clerk")
    run.observe("user", "Find order 7.")
    assert [hint.memory_id for hint in run.learning.recall("Find order 7", intent=INTENT).hints] == ["rm_1"]
    run.finish(verifier_result=PASS, intent=INTENT)
    assert tally(bank, "rm_1") == (1, 1)


# -- who does not count -------------------------------------------------------------------------------


def test_whoever_may_not_see_a_bank_and_whoever_was_not_judged_does_not_count(make) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(**AGENT)
    write(bank, tactic())
    before = entries_in(mem, "bank:agent:clerk")
    for agent_id, tenant_id in (("other", "default"), ("clerk", "acme")):
        run, recalled = recalling(mem, agent_id=agent_id, tenant_id=tenant_id)
        assert recalled.arms == ()
        run.finish(verifier_result=PASS, intent=INTENT)
    run, recalled = recalling(mem, keep=False)
    assert [hint.memory_id for hint in recalled.hints] == ["tac_1"], "a look counts for nothing"
    run.finish(verifier_result=PASS, intent=INTENT)
    run, recalled = recalling(mem)
    assert recalled.arms
    run.finish()
    judged(mem, result=UNSURE)
    assert (tally(bank), entries_in(mem, "bank:agent:clerk")) == ((0, 0), before)
    assert uses(mem, "bank:agent:clerk", "acme") == []
    assert entries_in(mem, "bank:agent:clerk", "acme") == 0


def test_a_run_that_recalls_nothing_shared_writes_nothing_more(make) -> None:
    mem = make(policy=ALWAYS)
    for who in (AGENT, TENANT):
        write(mem.bank(**who), tactic("tac_a" if who else "tac_t", intent_key="intent|domain=ship|family=repair"))
    write(mem.bank(user_id="ana"), tactic("tac_u"))
    before = {owner: entries_in(mem, owner) for owner in ("bank:agent:clerk", "bank:tenant")}
    judged(mem)
    run = mem.run(user_id="ana", agent_id="clerk")
    run.observe("user", "Find order 2.")
    run.finish(verifier_result=PASS, intent=INTENT)
    assert tally(mem.bank(user_id="ana"), "tac_u") == (1, 1)
    assert {owner: entries_in(mem, owner) for owner in before} == before


@pytest.mark.soak
@pytest.mark.parametrize("arms", [[{}], [5], None, "tac_1", {"memory_id": "tac_1"}, [{"memory_id": "tac_1"}], [[]]])
def test_a_recall_whose_arms_are_none_ends_as_any_other(make, arms: Any) -> None:
    """An entry that was imported may say anything; what is an arm beside it still counts."""
    mem = make(policy=ALWAYS)
    bank = mem.bank(**AGENT)
    write(bank, tactic())
    whole = {"memory_id": "tac_1", "arm": "had", "stage": "active", "share": 1}
    beside = [*arms, whole] if isinstance(arms, list) else arms
    for said, verdict in ((arms, UNSURE), (arms, PASS), (beside, FAIL)):
        run, recalled = recalling(mem)
        told = {"id": recalled.response.request_id, "arms": said}
        decided = Decided([draft_patch(MEMORY_RECALLED, "assistant", told)])
        write_patches(run._writer(), lambda _tx, decided=decided: decided, lambda _reader: None)
        run.finish(verifier_result=verdict, intent=INTENT)
        if isinstance(said, list):
            assert run.learning.lessons().had == (("tac_1",) if whole in said else ())
    assert tally(bank) == ((1, 0) if isinstance(arms, list) else (0, 0))
    assert mem.verify().ok


# -- once, and never by half --------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_is_told_again_counts_once(make, engine: str) -> None:
    mem = make(engine, policy=ALWAYS)
    bank = mem.bank(**AGENT)
    write(bank, tactic())
    run, _ = recalling(mem)
    learned = run.learning.learn(PASS, intent=INTENT)
    assert run.learning.learn(PASS, intent=INTENT) == learned
    assert mem.learning.learn(run.run_id, PASS) == learned
    run.finish(verifier_result=PASS, intent=INTENT)
    assert tally(bank) == (1, 1)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_crash_while_another_bank_is_told_leaves_nothing_in_either(make, engine: str, monkeypatch) -> None:
    from muniment.learning import lesson_sharing

    class PowerWent(BaseException):
        """Nothing catches it."""

    def fails(*_: Any) -> None:
        raise PowerWent

    mem = make(engine, policy=ALWAYS)
    for who in (AGENT, TENANT):
        write(mem.bank(**who), tactic("tac_a" if who else "tac_t"))
    run, _ = recalling(mem)
    owners = ("bank:user:ana", "bank:agent:clerk", "bank:tenant")
    before = [entries_in(mem, owner) for owner in owners]
    with monkeypatch.context() as patched:
        calls: list[str] = []
        whole = lesson_sharing.write_bank

        def once(ctx: Any, tx: Any, tenant_id: str, owner: str, drafts: Any) -> None:
            calls.append(owner)
            (fails if len(calls) == 2 else whole)(ctx, tx, tenant_id, owner, drafts)

        patched.setattr(lesson_sharing, "write_bank", once)
        with pytest.raises(PowerWent):
            run.finish(verifier_result=PASS, intent=INTENT)
    assert sorted(calls) == ["bank:agent:clerk", "bank:tenant"]
    assert [entries_in(mem, owner) for owner in owners] == before
    run.finish(verifier_result=PASS, intent=INTENT)
    assert (tally(mem.bank(**AGENT), "tac_a"), tally(mem.bank(**TENANT), "tac_t")) == ((1, 1), (1, 1))
    assert mem.verify().ok


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_runs_of_several_users_and_levels_that_end_at_once_are_all_counted(make, engine: str) -> None:
    """Banks are locked in one order, whichever of them a run is learnt into: else two of these would wait for each
    other; and each sees what the one before it counted.
    """
    mem = make(engine, policy=ALWAYS)
    write(mem.bank(**AGENT), tactic("tac_a"))
    write(mem.bank(**TENANT), tactic("tac_t"))
    levels = ("user", "agent", "tenant")
    runs = [recalling(mem, ("ana", "bo")[number % 2], grants=("agent", "tenant"))[0] for number in range(12)]

    def end(number: int) -> None:
        runs[number].finish(verifier_result=PASS, intent=INTENT, level=levels[number % 3])

    with ThreadPoolExecutor(6) as pool:
        done = [pool.submit(end, number) for number in range(12)]
    assert [each.exception() for each in done] == [None] * 12
    assert (tally(mem.bank(**AGENT), "tac_a"), tally(mem.bank(**TENANT), "tac_t")) == ((12, 12), (12, 12))
    assert mem.verify().ok


def _told(mem, owner: str) -> dict[str, Any]:
    """What the one entry of a bank says that tells of uses."""
    (entry,) = (each for each in mem.ledger.entries(user_id=owner) if each.metadata.get("event") == LESSONS_USED)
    return json.loads(entry.to_bytes())["body"]["metadata"]


FORGED = {
    "another id": lambda said, _: said | {"id": "use_another"},
    "another kind of work": lambda said, _: said | {"family": "another"},
    "no source": lambda said, owner: {k: v for k, v in _of(said, owner, "trc_b", {}).items() if k != "sources"},
    "an empty list of sources": lambda said, owner: _of(said, owner, "trc_b", {}) | {"sources": []},
    "two sources": lambda said, owner: _of(said, owner, "trc_b", {}) | {"sources": ["trc_b", "trc_c"]},
    "a second source that is none": lambda said, owner: _of(said, owner, "trc_b", {}) | {"sources": ["trc_b", 5]},
    "a source that is none": lambda said, owner: _of(said, owner, "trc_b", {}) | {"sources": [5]},
    "another source": lambda said, owner: _of(said, owner, "trc_b", {}) | {"sources": ["trc_c"]},
    "a run of another name": lambda said, owner: (
        said | {"id": told_id(owner, "trc_b", said["family"]), "sources": ["trc_b"]}
    ),
    "the name of its log": lambda said, owner: _of(said, owner, "trc_b", {"trace_id": "trc_none"}),
    "a record twice": lambda said, owner: _of(said, owner, "trc_b", {}, said["uses"]["arms"] * 2),
    "an arm of another kind of work": lambda said, owner: _of(
        said, owner, "trc_b", {}, [{**arm, "family": "another"} for arm in said["uses"]["arms"]]
    ),
}


def _of(said: dict[str, Any], owner: str, trace_id: str, run: dict[str, Any], arms: Any = None) -> dict[str, Any]:
    """The entry as another run would tell it, but for what is given."""
    run = said["uses"]["run"] | {"trace_id": name_in_bank(owner, trace_id)} | run
    uses = {"run": run, "arms": said["uses"]["arms"] if arms is None else arms}
    return said | {"id": told_id(owner, trace_id, said["family"]), "sources": [trace_id], "uses": uses}


@pytest.mark.soak
@pytest.mark.parametrize("what", FORGED)
@pytest.mark.parametrize("owner", ["bank:user:ana", "bank:agent:clerk", "bank:tenant"])
def test_an_entry_that_tells_of_uses_as_no_fold_does_counts_for_nothing(make, owner: str, what: str) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(**bank_names(owner))
    write(bank, tactic())
    run, _ = recalling(mem, grants=("agent",))
    run.finish(verifier_result=PASS, intent=INTENT, level="agent" if owner == "bank:user:ana" else "user")
    said = _told(mem, owner)
    before = uses(mem, owner)
    assert len(before) == 1

    def tell(forged: dict[str, Any]) -> None:
        told = draft_patch(LESSONS_USED, "assistant", {key: value for key, value in forged.items() if key != "event"})
        mem._ctx.engine.write("default", lambda tx: write_bank(mem._ctx, tx, "default", owner, [told]))

    tell(FORGED[what](said, owner))
    assert (uses(mem, owner), tally(bank)) == (before, (1, 1))
    assert mem.store.rebuild().repaired == ()
    assert mem.verify().ok
    tell(_of(said, owner, "trc_d", {}))
    assert tally(bank) == (2, 2), "as a fold tells it"


# -- forgetting, moving, reading ----------------------------------------------------------------------


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("who", SHARED)
def test_what_a_forgotten_run_or_user_counted_is_gone(make, engine: str, who: dict[str, str]) -> None:
    mem = make(engine, policy=ALWAYS)
    bank, owner = mem.bank(**who), "bank:agent:clerk" if who else "bank:tenant"
    write(bank, tactic())
    runs = [judged(mem, ("ana", "bo")[number % 2], (PASS, FAIL)[number % 2]) for number in range(6)]
    logs = [run.learning.learned().event_log.trace_id for run in runs]
    mem.forget(event=next(iter(runs[0].ledger.entries())).id)
    assert tally(bank) == (5, 2)
    mem.forget(user_id="bo")
    assert tally(bank) == (2, 2)
    assert len(uses(mem, owner)) == 2
    told = "".join(entry.to_bytes().decode() for entry in mem.ledger.entries(user_id=owner))
    assert [trace_id in told for trace_id in logs] == [False, False, True, False, True, False]
    assert mem.store.rebuild().repaired == ()
    assert tally(bank) == (2, 2)
    assert mem.verify().ok
    mem.forget(user_id="ana")
    assert (tally(bank), uses(mem, owner)) == ((0, 0), [])
    assert mem.verify().ok


@pytest.mark.soak
def test_counts_are_the_same_after_an_export_and_an_import(make, tmp_path) -> None:
    mem, whole, alone, shared = (make(policy=ALWAYS, seed=seed) for seed in ("mem", "whole", "alone", "shared"))
    for who in (AGENT, TENANT):
        write(mem.bank(**who), tactic("tac_a" if who else "tac_t"))
    for number in range(4):
        judged(mem, ("ana", "bo")[number % 2], (PASS, FAIL)[number // 2])
    mem.forget(user_id="bo")
    for user_id, other in ((None, whole), ("ana", alone), ("bank:agent:clerk", shared)):
        (tmp_path / "dump").write_bytes(b"".join(mem.export(user_id=user_id)))
        other.import_(tmp_path / "dump")
        assert other.verify().ok
        assert other.store.rebuild().repaired == ()
    for owner in ("bank:agent:clerk", "bank:tenant"):
        assert len(uses(mem, owner)) == 2
        assert uses(whole, owner) == uses(mem, owner)
        assert uses(alone, owner) == [], "a user's dump brings nothing of a bank that others read"
    assert uses(shared, "bank:agent:clerk") == uses(mem, "bank:agent:clerk")
    assert tally(whole.bank(**AGENT), "tac_a") == tally(shared.bank(**AGENT), "tac_a") == (2, 1)
    judged(whole, "cy")
    assert tally(whole.bank(**AGENT), "tac_a") == (3, 2)


@pytest.mark.soak
@pytest.mark.req("LG-07")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("is_linked", [True, False])
@pytest.mark.parametrize("level", ["agent", "tenant"])
def test_in_a_user_s_copy_a_count_falls_with_its_run_whose_log_is_elsewhere(
    make, tmp_path, engine: str, level: str, is_linked: bool
) -> None:
    """The log of a run that was learnt above the user is in no dump of theirs, and their own lesson counts the run."""
    mem, copy = make(engine, policy=ALWAYS), make(engine, policy=ALWAYS, seed="copy")
    write(mem.bank(user_id="ana"), tactic())
    for name in ("first", "second"):
        run, _ = recalling(mem, session_id=name, grants=("agent", "tenant"))
        run.finish(verifier_result=PASS, intent=INTENT, level=level)
    (tmp_path / "dump").write_bytes(b"".join(mem.export(user_id="ana")))
    copy.import_(tmp_path / "dump")
    bank = copy.bank(user_id="ana")
    assert tally(bank) == (2, 2)
    if not is_linked:  # what entries say is lineage too
        trace_id = trace_id_of(run.run_id)
        copy._ctx.engine.write("default", lambda tx: tx.do(Delete("links", (("source_id", "=", trace_id),))))
    copy.forget(user_id="ana", session="second")
    assert (tally(bank), len(uses(copy, "bank:user:ana"))) == ((1, 1), 1)
    told = "".join(entry.to_bytes().decode() for entry in copy.ledger.entries(user_id="bank:user:ana"))
    assert trace_id_of(run.run_id) not in told
    assert copy.store.rebuild().repaired == ()
    assert copy.verify().ok
    copy.import_(tmp_path / "dump")
    assert tally(bank) == (1, 1), "the same dump does not bring it back"
    assert copy.verify().ok


@pytest.mark.req("LG-07")
@pytest.mark.parametrize("user_id", ["bo", "ana"])
def test_a_forged_link_to_the_log_that_is_not_here_takes_nothing_of_another_user(make, user_id: str) -> None:
    mem = make()
    run = mem.run(user_id="ana", session_id="talk")
    run.observe("user", "Find order 1.")
    other = mem.run(user_id=user_id, session_id="other")
    said = other.observe("user", "I live in Lisbon.")
    fact = other.remember("user.city", "Lisbon", sources=[said.id])
    link = LinkRow(trace_id_of(run.run_id), fact.fact_id)
    mem._ctx.engine.write("default", lambda tx: insert(tx, LINKS, [link]))
    receipt = mem.forget(user_id="ana", session="talk")
    assert (receipt.counts.get("foreign", 0), fact.fact_id in {each.id for each in receipt.erased}) == (
        (1, False) if user_id == "bo" else (0, False)
    )
    assert [each.value for each in other.facts("user.city")] == ["Lisbon"]


def test_a_dump_that_counts_what_no_entry_tells_is_refused(make, tmp_path) -> None:
    mem, other = make(policy=ALWAYS), make(policy=ALWAYS, seed="other")
    write(mem.bank(**AGENT), tactic())
    judged(mem, "ana", FAIL)
    lines = plain(dump_of(mem))
    (row,) = (line["row"] for line in lines if line.get("row", {}).get("kind") == "lesson_use")
    row["body"] = row["body"].replace('"passed":false', '"passed":true')
    (tmp_path / "dump").write_bytes(b"".join(resealed(lines)))
    with pytest.raises(InvalidInput, match="not what its ledger gives"):
        other.import_(tmp_path / "dump")


@pytest.mark.req("LG-02")
@pytest.mark.parametrize("who", SHARED)
def test_nobody_reads_in_a_shared_bank_whose_run_it_was_or_what_it_was_about(make, who: dict[str, str]) -> None:
    mem = make(policy=ALWAYS)
    bank, owner = mem.bank(**who), "bank:agent:clerk" if who else "bank:tenant"
    added = bank.add_lesson("Look the order up by number", when="an order is asked for", intent=INTENT)
    runs = [judged(mem, "quimby-7", text=SECRET, session_id="zebra-talk") for _ in range(4)]
    shown = [
        *(each.to_bytes().decode() for each in bank.lessons()),
        bank.lesson(added.lesson_id).to_bytes().decode(),
        *(each.to_bytes().decode() for each in bank.records(include_all=True)),
        repr(bank.plans()),
        repr(bank.event_logs()),
    ]
    told = [entry.to_bytes().decode() for entry in mem.ledger.entries(user_id=owner)]
    assert len(bank.lesson(added.lesson_id).runs) == 3
    for word in ("quimby", "zebra", "Here it is", *(run.run_id for run in runs)):
        assert not [each for each in (*shown, *told) if word.lower() in each.lower()], word
    for run in bank.lesson(added.lesson_id).runs:
        assert run.task is None, "a guess at the task could be held against it"
        assert run.run_id is None
        with pytest.raises(NotFound):
            mem.learning.bank_of(run.trace_id)
    traces = [run.learning.learned().event_log.trace_id for run in runs]
    assert not [each for each in shown if any(trace_id in each for trace_id in traces)]


# -- stages -------------------------------------------------------------------------------------------


@pytest.mark.soak
@pytest.mark.req("TM-15")
@pytest.mark.parametrize("who", SHARED)
def test_a_person_s_lesson_for_all_is_tried_proven_and_suspended_by_runs_of_users(make, who: dict[str, str]) -> None:
    """Nobody is ever learnt into the shared bank: the runs that recall from it decide."""
    mem = make(policy={"learn": {"lessons": {"trial_share": 0.5, "holdout_share": 0.1}}})
    bank = mem.bank(**who)
    lesson_id = bank.add_lesson("Look the order up by number", when="an order is asked for", intent=INTENT).lesson_id
    seen: list[str] = [bank.lesson(lesson_id).stage]
    while seen[-1] not in ("suspended", "retired") and len(seen) < 240:
        number, helps = len(seen), seen.count("active") < 12  # then the world changes
        run, recalled = recalling(mem, ("ana", "bo", "cy")[number % 3], text=f"Find order {number}.")
        had = lesson_id in [arm.memory_id for arm in recalled.arms if arm.arm == "had"]
        run.finish(verifier_result=PASS if had and helps else FAIL, intent=INTENT)
        seen.append(bank.lesson(lesson_id).stage)
    assert list(dict.fromkeys(seen)) == ["candidate", "trial", "active", "suspended"]
    story = bank.lesson(lesson_id)
    assert [change.stage for change in story.history] == ["candidate", "trial", "active", "suspended"]
    assert story.history[-1].plan_id in [state.plan.plan_id for state in bank.plans()]
    assert mem.verify().ok
    bank.undo(story.history[-1].plan_id)
    assert bank.lesson(lesson_id).stage == "active"


@pytest.mark.soak
def test_a_shared_lesson_that_does_harm_is_retired(make) -> None:
    mem = make(policy={"learn": {"lessons": {"trial_share": 0.5}}})
    bank = mem.bank(**AGENT)
    lesson_id = bank.add_lesson("Look the order up by number", when="an order is asked for", intent=INTENT).lesson_id
    for number in range(120):
        run, recalled = recalling(mem, ("ana", "bo")[number % 2], text=f"Find order {number}.")
        run.finish(verifier_result=FAIL if any(arm.arm == "had" for arm in recalled.arms) else PASS, intent=INTENT)
        if bank.get(lesson_id).status == "retired":
            break
    held = bank.get(lesson_id)
    assert (held.status, held.lesson.stage) == ("retired", "retired")
    assert recalling(mem)[1].arms == ()


def test_a_lesson_waits_while_another_of_its_work_is_on_trial(make) -> None:
    mem = make(policy={"learn": {"lessons": {"trial_share": 1}}})
    bank = mem.bank(**AGENT)
    first, second = (
        bank.add_lesson(text, when="an order is asked for", intent=INTENT).lesson_id
        for text in ("Look the order up by number", "Read the whole policy before anything is sent")
    )
    for _ in range(3):
        judged(mem)
    assert [bank.lesson(each).stage for each in (first, second)] == ["trial", "candidate"]
    bank.drop_lesson(first, reason="not ours any more")
    judged(mem, "bo")
    assert bank.lesson(second).stage == "trial"


def test_a_conflict_that_one_run_reports_suspends_no_lesson_of_all(make) -> None:
    mem = make(policy=ALWAYS)
    write(mem.bank(user_id="ana"), tactic("tac_u"))
    write(mem.bank(**AGENT), tactic("tac_a"))
    judged(mem, "ana", FAIL | {"reason_codes": ["praxis_tactic_conflict"]})
    assert mem.bank(user_id="ana").get("tac_u").lesson.stage == "suspended"
    assert mem.bank(**AGENT).get("tac_a").lesson is None
    assert tally(mem.bank(**AGENT), "tac_a") == (1, 0)


@pytest.mark.soak
def test_a_signed_lesson_is_measured_and_stays(make) -> None:
    mem = make(policy=ALWAYS)
    bank = mem.bank(**TENANT)
    lesson_id = bank.add_lesson("Look the order up by number", when="an order is asked for", intent=INTENT).lesson_id
    bank.sign_lesson(lesson_id, signed_by="Dana")
    for number in range(30):
        judged(mem, ("ana", "bo")[number % 2], FAIL)
    lesson = bank.lesson(lesson_id)
    assert (lesson.stage, lesson.signed, lesson.uses) == ("active", True, 30)
