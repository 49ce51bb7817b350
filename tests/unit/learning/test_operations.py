"""WRITE, PIN, MERGE, RETIRE and PRUNE mean the same on every store, and none of them gets past a safety rule."""

from __future__ import annotations

from typing import Any

import pytest
from plan_makers import KINDS, Shelf, act, day, payload, told

from muniment.core.canonical import digest_of
from muniment.core.policy import FoldPolicy, LearnPolicy
from muniment.learning._operations import ENDLESS
from muniment.learning.records import StoredMemory, Tally
from products import for_each

APPLIED = [("APPLIED", None)]


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def failed(code: str) -> list[tuple[str, str | None]]:
    return [("FAILED", code)]


# -- WRITE --------------------------------------------------------------------------------------------


@pytest.mark.req("RC-06")
@pytest.mark.parametrize("kind", KINDS)
def test_write_makes_a_record_and_then_its_next_version(shelf: Shelf, kind: str) -> None:
    assert told(shelf.write(kind, "a", bucket_key="b1")) == APPLIED
    first = shelf.memories["a"]
    assert (first.version, first.kind, first.level, first.created_at) == (1, kind, "user", day(0))
    assert first.status == ("temporary" if kind == "rule" else "active")
    assert first.protected_until == day(1)
    shelf.day = 5
    assert told(shelf.write(kind, "a", bucket_key="b2")) == APPLIED
    second = shelf.memories["a"]
    assert (second.version, second.created_at, second.protected_until) == (2, day(0), day(1))
    assert second.record["bucket_key"] == "b2"
    assert shelf.versions["a", 1] == first


@pytest.mark.req("RC-06")
def test_a_version_keeps_pin_parents_tallies_and_sources(shelf: Shelf) -> None:
    shelf.put(
        "tactic",
        "a",
        status="pinned",
        parents=["x", "y"],
        sources=["t1"],
        with_tally=Tally(n=3, passes=2),
        without_tally=Tally(n=9, passes=5),
        streak=1,
        last_used_at=day(0),
    )
    shelf.write("tactic", "a", evidence={"trace_ids": ["t1", "t2"]}, summary="Better so.")
    memory = shelf.memories["a"]
    assert memory.status == memory.record["status"] == "pinned"
    assert memory.parents == ("x", "y")
    assert memory.sources == ("t1", "t2")
    assert memory.with_tally == Tally(n=3, passes=2)
    assert memory.without_tally == Tally(n=9, passes=5)
    assert (memory.streak, memory.last_used_at) == (1, day(0))


@pytest.mark.req("RC-06")
@pytest.mark.parametrize(
    ("kind", "fields", "sources"),
    [
        ("reasoning", {"trace_ids": ["t1", "t2", "t1"]}, ("t1", "t2")),
        ("rule", {"evidence": {"trace_ids": ["t1"]}}, ("t1",)),
        ("seed", {"source_trace_ids": ["t1"]}, ("t1",)),
        ("tactic", {"evidence": {"trace_ids": ["t1"]}}, ("t1",)),
        ("tactic", {}, ()),
        ("trace_capsule", {}, ("a",)),
    ],
)
def test_a_record_is_linked_to_what_it_was_learnt_from(
    shelf: Shelf, kind: str, fields: dict[str, Any], sources: tuple[str, ...]
) -> None:
    shelf.write(kind, "a", **fields)
    assert shelf.memories["a"].sources == sources


@pytest.mark.req("RC-06", "RC-11")
@pytest.mark.parametrize(
    ("kind", "fields", "safety", "ttl", "until"),
    [
        ("reasoning", {}, {}, "days:90", day(90)),
        ("reasoning", {"ttl": "hours:48"}, {}, "hours:48", day(2)),
        ("reasoning", {"ttl": "hours:48"}, {"ttl_days": 7}, "days:7", day(7)),
        ("tactic", {"ttl": None}, {}, "days:60", day(60)),
        ("seed", {}, {}, "days:30", day(30)),
        ("rule", {}, {}, None, None),
        ("rule", {}, {"ttl_days": 3}, None, day(3)),
        ("trace_capsule", {}, {"ttl_days": 3}, None, day(3)),
    ],
)
def test_a_ttl_is_the_actions_or_the_records_or_the_policys(
    shelf: Shelf, kind: str, fields: dict[str, Any], safety: dict[str, Any], ttl: str | None, until: str | None
) -> None:
    action = act("WRITE", kind, ref="p", safety=safety)
    assert told(shelf.do(action, payloads={"p": payload(kind, "a", **fields)})) == APPLIED
    memory = shelf.memories["a"]
    assert memory.expires_at == until
    assert memory.record.get("ttl") == ttl


@pytest.mark.req("RC-06")
def test_each_version_has_a_ttl_of_its_own(shelf: Shelf) -> None:
    shelf.do(act("WRITE", "rule", ref="p", safety={"ttl_days": 3}), payloads={"p": payload("rule", "a")})
    shelf.write("rule", "a")
    assert shelf.memories["a"].expires_at is None
    shelf.write("seed", "b", ttl="days:2")
    shelf.day = 7  # expired, and written anew
    shelf.write("seed", "b", ttl="days:2")
    assert shelf.memories["b"].expires_at == day(9)


@pytest.mark.req("RC-06", "RC-11")
@for_each("ttl", ["days:-1", "hours:0", "weeks:2", "days:1e9", "DAYS:3", "session"])
def test_a_ttl_of_nonsense_is_not_written(shelf: Shelf, ttl: str) -> None:
    assert told(shelf.write("reasoning", "a", ttl=ttl)) == failed("invalid_ttl")
    assert not shelf.memories


@pytest.mark.req("RC-11")
@for_each(
    ("safety", "code"),
    [
        ({"ttl_days": 0}, "invalid_ttl"),
        ({"ttl_days": -5}, "invalid_ttl"),
        ({"ttl_days": 10**5000}, "invalid_ttl"),
        ({"max_bytes": 0}, "invalid_max_bytes"),
        ({"max_bytes": -(10**5000)}, "invalid_max_bytes"),
    ],
)
@for_each("op", ["WRITE", "PIN", "MERGE", "RETIRE", "PRUNE"])
def test_limits_of_nonsense_are_refused_for_every_operation(
    shelf: Shelf, op: str, safety: dict[str, Any], code: str
) -> None:
    shelf.put("seed", "a", status="retired")
    action = act(op, "seed", "a", ref="p", safety=safety)
    assert told(shelf.do(action, payloads={"p": payload("seed", "a")})) == failed(code)


@pytest.mark.req("RC-11")
def test_max_bytes_is_counted_on_the_canonical_payload() -> None:
    from muniment.core.canonical import canonical_bytes

    plain = payload("reasoning", "a", summary="é" * 100)
    size = len(canonical_bytes(plain))
    for limit, outcome in ((size, APPLIED), (size - 1, failed("too_large"))):
        action = act("WRITE", "reasoning", ref="p", safety={"max_bytes": limit})
        assert told(Shelf().do(action, payloads={"p": plain})) == outcome
        policy = LearnPolicy(record_bytes_max=limit)
        assert told(Shelf(policy).do(act("WRITE", "reasoning", ref="p"), payloads={"p": plain})) == outcome
    generous = act("WRITE", "reasoning", ref="p", safety={"max_bytes": 10**6})
    assert told(Shelf(LearnPolicy(record_bytes_max=10)).do(generous, payloads={"p": plain})) == failed("too_large")


@pytest.mark.req("RC-06")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", ["retired", "pruned"])
def test_what_is_retired_or_pruned_is_not_written_again(shelf: Shelf, kind: str, status: str) -> None:
    shelf.put(kind, "a", status=status, record={"status": "retired"})
    assert told(shelf.write(kind, "a")) == failed(status)


@pytest.mark.req("RC-06")
@pytest.mark.parametrize(
    ("kind", "status"), [("reasoning", "retired"), ("reasoning", "pinned"), ("tactic", "pinned"), ("rule", "retired")]
)
def test_a_write_neither_pins_nor_retires(shelf: Shelf, kind: str, status: str) -> None:
    assert told(shelf.write(kind, "a", status=status)) == failed("wrong_status")


@pytest.mark.req("RC-06")
def test_a_temporary_episode_may_be_written_active(shelf: Shelf) -> None:
    shelf.write("reasoning", "a", status="temporary")
    assert shelf.memories["a"].status == "temporary"
    shelf.write("reasoning", "a", status="active")
    assert shelf.memories["a"].status == "active"


@pytest.mark.req("RC-06", "RC-11")
@pytest.mark.parametrize(
    ("action", "plain", "code"),
    [
        (act("WRITE", "reasoning"), payload("reasoning", "a"), "no_payload"),
        (act("WRITE", "reasoning", ref="q"), payload("reasoning", "a"), "unknown_payload"),
        (act("WRITE", "reasoning", "b", ref="p"), payload("reasoning", "a"), "wrong_target"),
        (act("WRITE", "reasoning", "a", "b", ref="p"), payload("reasoning", "a"), "wrong_target"),
        (act("WRITE", "reasoning", ref="p"), payload("seed", "a"), "wrong_kind"),
        (act("WRITE", "rule", ref="p"), payload("tactic", "a"), "wrong_kind"),
        (act("WRITE", "seed", ref="p"), payload("reasoning", "a"), "wrong_kind"),
        (act("WRITE", "seed", ref="p"), payload("seed", "a") | payload("tactic", "a"), "mixed_kinds"),
        (act("WRITE", "tactic", ref="p"), payload("tactic", "a", rule_id="a"), "mixed_kinds"),
        (act("WRITE", "seed", ref="p"), {"schema_version": "0.5.15"}, "unknown_kind"),
        (act("WRITE", "seed", ref="p"), [], "invalid_record"),
        (act("WRITE", "seed", ref="p"), None, "invalid_record"),
        (act("WRITE", "reasoning", ref="p"), payload("reasoning", "a", summary=None), "invalid_record"),
        (act("WRITE", "reasoning", ref="p"), payload("reasoning", "a", pass_p_hat=1.5), "invalid_record"),
        (act("WRITE", "reasoning", ref="p"), payload("reasoning", "a", status="asleep"), "invalid_record"),
        (act("WRITE", "reasoning", ref="p"), payload("reasoning", ""), "invalid_record"),
        (act("WRITE", "reasoning", ref="p"), payload("reasoning", "a\n"), "invalid_record"),
        (act("WRITE", "reasoning", ref="p"), payload("reasoning", "a", trace_ids=["x" * 999]), "invalid_record"),
        (act("WRITE", "reasoning", ref="p"), payload("reasoning", "a", extra="\ud800"), "invalid_record"),
    ],
)
def test_a_payload_that_is_not_what_it_should_be(shelf: Shelf, action: dict[str, Any], plain: Any, code: str) -> None:
    assert told(shelf.do(action, payloads={"p": plain})) == failed(code)
    assert not shelf.memories


@pytest.mark.req("RC-06")
def test_a_trace_beside_an_id_makes_no_capsule(shelf: Shelf) -> None:
    assert told(shelf.write("reasoning", "a", trace_id="t1")) == APPLIED
    assert shelf.memories["a"].record["trace_id"] == "t1"


@pytest.mark.req("RC-06")
def test_an_error_says_what_was_wrong_where(shelf: Shelf) -> None:
    plain = payload("reasoning", "a", summary=1, kind="poem", avg_cost="x", tags="y", pass_p_hat=2)
    error = shelf.do(act("WRITE", "reasoning", ref="p"), payloads={"p": plain}).records[0].error
    assert error is not None
    assert error.startswith("invalid_record: $.")
    assert error.endswith("; and 2 more")


@pytest.mark.req("RC-05", "RC-06")
def test_seeds_and_tactics_never_mix(shelf: Shelf) -> None:
    shelf.write("seed", "a")
    assert told(shelf.write("tactic", "a")) == failed("wrong_kind")
    shelf.write("tactic", "b")
    mixed = act("MERGE", "seed", "a", "b", ref="p")
    assert told(shelf.do(mixed, payloads={"p": payload("seed", "c")})) == failed("mixed_kinds")
    shelf.write("seed", "d")
    turned = act("MERGE", "seed", "a", "d", ref="p")
    assert told(shelf.do(turned, payloads={"p": payload("tactic", "c")})) == failed("wrong_kind")


@pytest.mark.req("RC-13")
@pytest.mark.parametrize(
    ("kind", "fields", "path"),
    [
        ("tactic", {"predicates": ["needs_json", "run.mode =="]}, "$.predicates[1]"),
        ("tactic", {"predicates": ["cost.tool_calls <= true"]}, "$.predicates[0]"),
        ("rule", {"applicability": {"predicates": ["__import__('os')"]}}, "$.applicability.predicates[0]"),
    ],
)
def test_a_predicate_is_judged_when_it_is_written(shelf: Shelf, kind: str, fields: dict[str, Any], path: str) -> None:
    done = shelf.write(kind, "a", **fields)
    assert told(done) == failed("invalid_predicate")
    assert path in str(done.records[0].error)
    assert told(shelf.write("tactic", "a", predicates=['run.mode == "main"'])) == APPLIED


@pytest.mark.req("RC-11")
def test_no_secret_is_kept(shelf: Shelf) -> None:
    def secret_in(value: Any) -> str | None:
        return "api_key" if "sk-" in str(value) else None

    writing, pinning = act("WRITE", "seed", ref="p"), act("PIN", "seed", "a", reason_keys=["sk-123"])
    plain = payload("seed", "a", seed_prompt="use sk-123")
    done = shelf.do(writing, payloads={"p": plain}, secret_in=secret_in)
    assert told(done) == failed("secret")
    assert "sk-123" not in str(done.records[0].error)
    shelf.put("seed", "a")
    assert told(shelf.do(pinning, secret_in=secret_in)) == failed("secret")


# -- PIN ----------------------------------------------------------------------------------------------


@pytest.mark.req("RC-06")
@pytest.mark.parametrize("kind", KINDS)
def test_pin(shelf: Shelf, kind: str) -> None:
    shelf.write(kind, "a")
    done = shelf.do(act("PIN", kind, "a", reason_keys=["asked"]))
    memory = shelf.memories["a"]
    assert told(done) == APPLIED
    assert (memory.status, memory.version, memory.reason_keys) == ("pinned", 2, ("asked",))
    words = {"reasoning": "pinned", "tactic": "pinned", "rule": "temporary"}
    assert memory.record.get("status") == words.get(kind)
    assert told(shelf.do(act("PIN", kind, "a"))) == [("SKIPPED", "already")]
    shelf.do(act("RETIRE", kind, "a"))
    assert told(shelf.do(act("PIN", kind, "a"))) == failed("retired")


@pytest.mark.req("RC-06")
def test_a_pin_saves_what_has_expired(shelf: Shelf) -> None:
    shelf.write("seed", "a")
    shelf.day = 40
    assert told(shelf.do(act("PIN", "seed", "a"))) == APPLIED
    assert told(shelf.do(act("PRUNE", "seed", "a"))) == failed("pinned")


@pytest.mark.req("RC-06")
def test_some_of_several_targets_may_be_so_already(shelf: Shelf) -> None:
    shelf.put("seed", "a", status="pinned")
    shelf.put("seed", "b")
    record = shelf.do(act("PIN", "seed", "a", "b", "b")).records[0]
    assert (record.status, record.produced_ids) == ("APPLIED", ("b",))


# -- RETIRE -------------------------------------------------------------------------------------------


@pytest.mark.req("RC-06")
@pytest.mark.parametrize("kind", KINDS)
def test_retire_keeps_what_it_takes_out(shelf: Shelf, kind: str) -> None:
    shelf.write(kind, "a")
    assert told(shelf.do(act("RETIRE", kind, "a"))) == APPLIED
    memory = shelf.memories["a"]
    assert (memory.status, memory.version) == ("retired", 2)
    assert memory.record.get("status") == (None if kind in ("seed", "trace_capsule") else "retired")
    assert {**memory.record, "status": 0} == {**shelf.versions["a", 1].record, "status": 0}
    assert told(shelf.do(act("RETIRE", kind, "a"))) == [("SKIPPED", "already")]


# -- MERGE --------------------------------------------------------------------------------------------


@pytest.mark.req("RC-06")
@pytest.mark.parametrize("kind", KINDS)
def test_merge_keeps_lineage_sources_and_tallies(shelf: Shelf, kind: str) -> None:
    around: dict[str, Any] = {"without_tally": Tally(n=9, passes=5), "last_used_at": day(-3)}
    shelf.put(kind, "a", sources=["t1"], with_tally=Tally(n=3, passes=2, cost_sum=1.5), **around)
    shelf.put(kind, "b", sources=["t2", "t1"], with_tally=Tally(n=4, passes=1, cost_sum=2), streak=2)
    done = shelf.do(act("MERGE", kind, "b", "a", "b", ref="p"), payloads={"p": payload(kind, "c")})
    assert told(done) == APPLIED
    assert done.records[0].produced_ids == ("c", "b", "a")
    made = shelf.memories["c"]
    assert (made.version, made.parents) == (1, ("b", "a"))
    assert made.sources[:2] == ("t2", "t1")
    assert made.with_tally == Tally(n=7, passes=3, cost_sum=3.5)
    assert made.without_tally == Tally(n=9, passes=5)
    assert (made.streak, made.last_used_at) == (0, day(-3))
    for name in "ab":
        memory = shelf.memories[name]
        assert (memory.status, memory.merged_into, memory.version) == ("retired", "c", 2)
        assert memory.reason_keys == ("merged",)


@pytest.mark.req("RC-06")
def test_capsules_merge_into_an_episode_but_not_into_a_tactic(shelf: Shelf) -> None:
    for name in "ab":
        shelf.write("trace_capsule", name)
    merge = act("MERGE", "trace_capsule", "a", "b", ref="p")
    tactic = payload("reasoning", "c", kind="tactic")
    assert told(shelf.do(merge, payloads={"p": tactic})) == failed("wrong_kind")
    assert told(shelf.do(merge, payloads={"p": payload("rule", "c")})) == failed("wrong_kind")
    assert told(shelf.do(merge, payloads={"p": payload("reasoning", "c")})) == APPLIED
    assert shelf.memories["c"].kind == "reasoning"
    assert shelf.memories["c"].sources == ("a", "b")


@pytest.mark.req("RC-06", "RC-11")
def test_what_cannot_be_merged(shelf: Shelf) -> None:
    shelf.put("seed", "a")
    shelf.put("seed", "b")
    shelf.put("seed", "gone", status="retired")
    shelf.put("seed", "late", expires_at=day(-1))
    shelf.put("seed", "stone", status="pruned")
    shelf.put("seed", "theirs", level="tenant")

    def merged(*targets: str, ref: str | None = "p") -> list[tuple[str, str | None]]:
        return told(shelf.do(act("MERGE", "seed", *targets, ref=ref), payloads={"p": payload("seed", "c")}))

    assert merged() == failed("no_target")
    assert merged("a") == merged("a", "a") == failed("too_few")
    assert merged("a", "nobody") == failed("unknown_id")
    assert merged("a", "gone") == merged("late", "b") == failed("not_live")
    assert merged("a", "stone") == failed("pruned")
    assert merged("a", "theirs") == failed("wrong_level")
    assert merged("a", "b", ref=None) == failed("no_payload")
    shelf.put("seed", "c")
    assert merged("a", "b") == failed("exists")


@pytest.mark.req("RC-06", "RC-11", "RC-21")
def test_no_lineage_goes_round(shelf: Shelf) -> None:
    def merged(result: str, *targets: str, **fields: Any) -> list[tuple[str, str | None]]:
        action = act("MERGE", "seed", *targets, ref="p")
        return told(shelf.do(action, payloads={"p": payload("seed", result, **fields)}))

    shelf.put("seed", "a", parents=["old"])
    shelf.put("seed", "b", record={"lineage": {"parent_state_id": "older", "parent_ids": ["a"]}})
    shelf.put("seed", "c")
    assert merged("a", "a", "c") == failed("lineage_cycle")  # it would be its own parent
    assert merged("old", "a", "c") == failed("lineage_cycle")  # an ancestor that is no longer there
    assert merged("older", "b", "c") == failed("lineage_cycle")
    assert merged("d", "a", "b") == failed("lineage_cycle")  # a is an ancestor of b
    shelf.put("seed", "far", parents=["between"])
    shelf.put("seed", "between", status="retired", parents=["c"])
    assert merged("d", "far", "c") == failed("lineage_cycle")  # c is an ancestor of far, by way of another
    assert merged("d", "a", "c", lineage={"parent_ids": ["d"]}) == failed("lineage_cycle")
    assert merged("d", "a", "c") == APPLIED
    for name, parents in (("e", ["e"]), ("old", ["d"]), ("older", ["b"]), ("f", None)):
        outcome = APPLIED if parents is None else failed("lineage_cycle")
        assert told(shelf.write("seed", name, lineage={"parent_ids": parents})) == outcome


@pytest.mark.req("RC-06")
def test_ancestors_that_go_round_do_not_hang(shelf: Shelf) -> None:
    shelf.put("seed", "a", parents=["b"])
    shelf.put("seed", "b", parents=["a"])
    assert told(shelf.write("seed", "c", lineage={"parent_ids": ["a"]})) == APPLIED
    assert told(shelf.write("seed", "a")) == APPLIED
    action = act("MERGE", "seed", "a", "c", ref="p")
    assert told(shelf.do(action, payloads={"p": payload("seed", "d")})) == failed("lineage_cycle")


@pytest.mark.req("RC-06", "RC-11")
def test_a_merge_lifts_no_shield(shelf: Shelf) -> None:
    shelf.put("tactic", "a", status="pinned")
    shelf.put("tactic", "b", protected_until=day(50))
    shelf.do(act("MERGE", "tactic", "a", "b", ref="p"), payloads={"p": payload("tactic", "c")})
    made = shelf.memories["c"]
    assert made.status == made.record["status"] == "pinned"
    assert made.protected_until == day(50)
    shelf.day = 40_000
    assert told(shelf.do(act("PRUNE", "tactic", "a"))) == failed("protected")
    assert told(shelf.do(act("PRUNE", "tactic", "b"))) == APPLIED


# -- PRUNE --------------------------------------------------------------------------------------------


@pytest.mark.req("RC-06")
@pytest.mark.parametrize("kind", KINDS)
def test_prune_leaves_a_tombstone(shelf: Shelf, kind: str) -> None:
    shelf.write(kind, "a")
    shelf.do(act("RETIRE", kind, "a"))
    was = shelf.memories["a"]
    shelf.day = 2
    assert told(shelf.do(act("PRUNE", kind, "a", reason_keys=["duplicate"]))) == APPLIED
    stone = shelf.memories["a"]
    assert (stone.status, stone.version) == ("pruned", 3)
    assert stone.record == {"id": "a", "digest": digest_of(was.record), "reason": ["duplicate"]}
    assert stone.sources == was.sources
    assert told(shelf.do(act("PRUNE", kind, "a"))) == [("SKIPPED", "already")]
    for op in ("PIN", "RETIRE"):
        assert told(shelf.do(act(op, kind, "a"))) == failed("pruned")


@pytest.mark.req("RC-06")
def test_what_has_expired_may_be_pruned(shelf: Shelf) -> None:
    shelf.write("seed", "a")
    shelf.day = 30
    assert told(shelf.do(act("PRUNE", "seed", "a"))) == failed("not_retired")
    shelf.day = 30.01
    assert told(shelf.do(act("PRUNE", "seed", "a"))) == APPLIED


@pytest.mark.req("RC-06", "RC-11")
@pytest.mark.parametrize(
    ("around", "code"),
    [
        ({"status": "pinned"}, "pinned"),
        ({"status": "pinned", "expires_at": day(-9)}, "pinned"),
        ({"status": "active"}, "not_retired"),
        ({"status": "temporary"}, "not_retired"),
        ({"status": "retired", "protected_until": day(1)}, "protected"),
        ({"status": "retired", "protected_until": "2026-05-01T11:30:00-05:00"}, "protected"),
        ({"status": "active", "expires_at": day(-1), "protected_until": day(1)}, "protected"),
        ({"status": "retired", "protected_until": ENDLESS}, "protected"),
        ({"status": "retired", "level": "agent"}, "wrong_level"),
    ],
)
def test_what_is_never_pruned(shelf: Shelf, around: dict[str, Any], code: str) -> None:
    memory = shelf.put("reasoning", "a", **around)
    assert told(shelf.do(act("PRUNE", "reasoning", "a"))) == failed(code)
    assert shelf.memories["a"] == memory


@pytest.mark.req("RC-06", "RC-11")
@pytest.mark.parametrize("op", ["PIN", "RETIRE", "PRUNE", "MERGE"])
def test_a_target_must_be_there_and_in_that_store(shelf: Shelf, op: str) -> None:
    shelf.put("seed", "a", status="retired")
    assert told(shelf.do(act(op, "reasoning", "a"))) == failed("wrong_kind")
    assert told(shelf.do(act(op, "reasoning", "nobody"))) == failed("unknown_id")
    assert told(shelf.do(act(op, "reasoning"))) == failed("no_target")
    assert told(shelf.do(act(op, "seed", "a"), level="tenant")) == failed("wrong_level")


# -- two actions that would get around a rule together ------------------------------------------------


@pytest.mark.req("RC-11")
@pytest.mark.parametrize(
    ("around", "ops", "code"),
    [
        ({"protected_until": day(1)}, ("RETIRE", "PRUNE"), "protected"),
        ({}, ("RETIRE", "PRUNE"), "not_retired"),
        ({"status": "pinned"}, ("RETIRE", "PRUNE"), "protected"),
        ({"status": "pinned", "protected_until": day(-1)}, ("RETIRE", "PRUNE"), "protected"),
        ({"status": "retired"}, ("PIN", "PRUNE"), "retired"),
        ({"expires_at": day(-1)}, ("PIN", "PRUNE"), "pinned"),
        ({"expires_at": day(-1)}, ("PIN", "RETIRE", "PRUNE"), "protected"),
        ({"expires_at": day(-1)}, ("WRITE", "PRUNE"), "not_retired"),
        ({"status": "pinned"}, ("WRITE", "PRUNE"), "pinned"),
    ],
)
def test_no_two_actions_get_around_a_shield(
    shelf: Shelf, around: dict[str, Any], ops: tuple[str, ...], code: str
) -> None:
    memory = shelf.put("tactic", "a", **around)
    actions = [act(op, "tactic", "a", ref="p" if op == "WRITE" else None) for op in ops]
    done = shelf.do(*actions, payloads={"p": payload("tactic", "a")})
    assert ("FAILED", code) in told(done)
    assert done.aborted
    assert shelf.memories["a"] == memory


@pytest.mark.req("RC-11")
def test_a_merge_does_not_open_its_parents_to_pruning_in_the_same_plan(shelf: Shelf) -> None:
    for name in "ab":
        shelf.put("seed", name)
    actions = [act("MERGE", "seed", "a", "b", ref="p"), act("PRUNE", "seed", "a")]
    assert told(shelf.do(*actions, payloads={"p": payload("seed", "c")}))[1] == ("FAILED", "not_retired")


@pytest.mark.req("RC-11")
def test_a_pin_outlives_retirement_in_an_earlier_plan(shelf: Shelf) -> None:
    shelf.put("seed", "a", status="pinned")
    shelf.do(act("RETIRE", "seed", "a"))
    shelf.day = 40_000
    assert told(shelf.do(act("PRUNE", "seed", "a"))) == failed("protected")


# -- no rule becomes active ---------------------------------------------------------------------------


def active_rules(memories: dict[str, StoredMemory]) -> list[str]:
    return [name for name, memory in memories.items() if memory.kind == "rule" and "active" in (
        memory.status, memory.record.get("status"))]  # fmt: skip


@pytest.mark.req("RC-11", "RC-14")
def test_no_plan_makes_an_active_rule(shelf: Shelf) -> None:
    for name in "ab":
        shelf.write("rule", name)
    active = payload("rule", "c", status="active")
    attempts = [
        [act("WRITE", "rule", ref="p")],
        [act("WRITE", "rule", ref="q"), act("WRITE", "rule", ref="p")],
        [act("MERGE", "rule", "a", "b", ref="p")],
        [act("WRITE", "rule", ref="q"), act("PIN", "rule", "c"), act("WRITE", "rule", ref="p")],
    ]
    for actions in attempts:
        done = shelf.do(*actions, payloads={"p": active, "q": payload("rule", "c")})
        assert told(done)[-1] == ("FAILED", "activation")
    assert sorted(shelf.memories) == ["a", "b"]
    assert told(shelf.write("rule", "a", status="active")) == failed("activation")
    assert not active_rules(shelf.memories)


@pytest.mark.req("RC-11", "RC-14")
@pytest.mark.parametrize("status", ["active", "pinned"])
def test_an_active_rule_is_promotions_alone(shelf: Shelf, status: str) -> None:
    rule = shelf.put("rule", "a", status=status, record={"status": "active"})
    shelf.put("rule", "b")
    for op in ("PIN", "RETIRE", "PRUNE"):
        assert told(shelf.do(act(op, "rule", "a"))) == failed("active_rule")
    assert told(shelf.write("rule", "a")) == failed("active_rule")
    merge = act("MERGE", "rule", "a", "b", ref="p")
    assert told(shelf.do(merge, payloads={"p": payload("rule", "c")})) == failed("active_rule")
    assert shelf.memories["a"] == rule


@pytest.mark.req("RC-06")
def test_protection_ends_with_the_calendar() -> None:
    shelf = Shelf(LearnPolicy(fold=FoldPolicy(protect_days=10**30)))
    shelf.write("rule", "a")
    assert shelf.memories["a"].protected_until == ENDLESS
