"""Entries of runs, well-formed and not, and the chunks they cite: what the tests of this room share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

from muniment.contracts.snapshot import CompactionSnapshot
from muniment.core.policy import CompactionPolicy
from muniment.core.scope import Span, derive_evidence_id, quote_hash
from muniment.runs._validation import SnapshotContext, entries_named, validation_of
from muniment.runs.fold import RunFold, failure_fingerprint, started_by
from muniment.runs.records import RunLog
from muniment.runs.snapshots import limits_of, log_of, snapshot_id_of, snapshot_of
from muniment.store.ledger import LedgerEntry

RUN = "run_1"
NOW = "2026-05-01T12:00:00.000000Z"
POLICY = CompactionPolicy()
SMALL = CompactionPolicy(event_threshold=4, step_fallback=3, seen_max=3, manifests_max=2, loop_actions=2, stall_steps=2)
OBJECTIVE, DONE = "Find out where the ship sank", {"cited": True}

CHUNKS: dict[tuple[str, str], bytes] = {
    ("ledger", "evt_a"): "The ship sank off Ålesund in 1905.".encode(),
    ("ledger", "evt_b"): b"It sank off Bergen.",
    ("maps", "chk_1"): "北海 is the North Sea.".encode(),
    ("maps", "chk_2"): b"Depth: 120 m",
}
SPANS = {
    ("ledger", "evt_a"): (18, 26),
    ("ledger", "evt_b"): (12, 18),
    ("maps", "chk_1"): (0, 6),
    ("maps", "chk_2"): (7, 10),
}


def pointer(corpus_id: str, chunk_id: str, start: int | None = None, end: int | None = None) -> dict[str, Any]:
    """A pointer that holds."""
    data = CHUNKS[corpus_id, chunk_id]
    first, last = SPANS[corpus_id, chunk_id]
    span = Span(start=first if start is None else start, end=last if end is None else end)
    digest = quote_hash(data[span.start : span.end].decode())
    return {
        "evidence_id": derive_evidence_id(corpus_id, chunk_id, span, digest),
        "chunk_id": chunk_id,
        "span": span.to_wire(),
        "corpus_id": corpus_id,
        "quote_hash": digest,
    }


A, B = pointer("ledger", "evt_a"), pointer("ledger", "evt_b")
SEA, DEPTH = pointer("maps", "chk_1"), pointer("maps", "chk_2")

Told = dict[str, Any]
"""An entry that has no place in a chain yet: its kind, its body and, where it is not `RUN`, its run."""


def message(content: str = "hello", **metadata: Any) -> Told:
    return {"kind": "message", "body": {"content": content} | ({"metadata": metadata} if metadata else {})}


def start(objective: Any = OBJECTIVE, done: Any = DONE, **more: Any) -> Told:
    said = {"event": "run_started", "objective": objective, "done_definition": done, "budgets": {"tokens": 1000}} | more
    return {"kind": "system", "body": {"content": "", "metadata": said}}


def finish(reason: str = "OBJECTIVE_ACHIEVED") -> Told:
    said = {"event": "run_finished", "stop_reason": reason}
    return {"kind": "system", "body": {"content": "", "metadata": said}}


def patch(event: str, **said: Any) -> Told:
    return {"kind": "state_patch", "body": {"content": "", "metadata": {"event": event} | said}}


def claim(id_: str = "k1", *refs: Any, status: str = "verified", depends_on: Iterable[str] = (), **more: Any) -> Told:
    said = {"id": id_, "statement": f"{id_} is so", "status": status, "evidence_refs": list(refs)}
    return patch("claim_made", **said | {"depends_on": list(depends_on), "sources": []} | more)


def conflict(id_: str = "c1", a: Any = A, b: Any = B, **more: Any) -> Told:
    said = {"id": id_, "description": "where", "side_a_refs": [a], "side_b_refs": [b], "claim_ids": [], "sources": []}
    return patch("conflict_recorded", **said | more)


def failure(category: str = "test_fail", where: str = "suite", why: str = "1 of 9 failed", **more: Any) -> Told:
    mark = failure_fingerprint(category, where, why)
    said = {"id": "occ", "category": category, "where": where, "why": why, "fingerprint": mark, "sources": []}
    return patch("failure_recorded", **said | more)


def question_id(text: str) -> str:
    return f"qst_{text}"


def question(text: str = "Which year?") -> Told:
    return patch("question_opened", id=question_id(text), text=text)


def answered(text: str = "Which year?", **more: Any) -> Told:
    return patch("question_closed", id=question_id(text), **more)


def taken(sequence: int, upto: int) -> Told:
    return patch("snapshot_taken", id="snp_x", snapshot_id="snp_x.1", sequence=sequence, upto=upto, digest="00")


def step(event: str, number: int | None = None, content: str = "", **more: Any) -> Told:
    said = {"event": event} | ({} if number is None else {"step": number}) | more
    return {"kind": "step", "body": {"content": content, "step": said}}


def window(*selected: str, id_: str = "m1", excluded: Mapping[str, str] | None = None) -> dict[str, Any]:
    out = [{"id": key, "reason": reason} for key, reason in (excluded or {}).items()]
    return {"manifest_id": id_, "builds": [], "selected": list(selected), "excluded": out, "filters": {}}


def tool(content: str = "no such file", *, ok: bool = False, name: str = "shell") -> Told:
    return {"kind": "tool_result", "body": {"content": content, "tool": {"name": name, "ok": ok}}}


def steps(count: int, **act: Any) -> list[Told]:
    """Whole steps, three counted events each."""
    return [each for _ in range(count) for each in (step("PLAN_DONE"), step("ACT_DONE", **act), step("OBSERVE_DONE"))]


def entries(told: Iterable[Told], *, first: int = 1) -> list[LedgerEntry]:
    """The entries in a chain; a `forgotten` one has no body."""
    return [_entry(each, seq) for seq, each in enumerate(told, start=first)]


def _entry(told: Told, seq: int) -> LedgerEntry:
    kind = told["kind"]
    scope = {"tenant_id": "default", "user_id": "ana", "agent_id": "bot", "session_id": "s1"}
    return LedgerEntry.from_wire(
        {
            "id": f"e{seq}",
            "scope": scope | {"run_id": told.get("run_id", RUN)},
            "seq": seq,
            "ts": NOW,
            "recorded_at": NOW,
            "kind": kind,
            "role": {"tool_result": "tool", "message": "user"}.get(kind, "system"),
            "trust": "tool" if kind == "tool_result" else "user",
            "content_hash": "",
            "prev_hash": "",
            "hash": "",
            "body": None if told.get("forgotten") else told["body"],
        }
    )


def fold(told: Iterable[LedgerEntry], policy: CompactionPolicy = POLICY, log: RunLog | None = None) -> RunLog:
    made = RunFold(RUN, policy, log)
    for entry in told:
        made.apply(entry)
    return made.log()


def snapshot(log: RunLog, previous: CompactionSnapshot | None = None, **parts: Any) -> CompactionSnapshot:
    given: dict[str, Any] = {
        "snapshot_id": snapshot_id_of(RUN, log.sequence + 1),
        "created_at": NOW,
        "policy_ref": "0" * 64,
        "limits": limits_of(None, POLICY),
        "retrieval_diagnostics": {"builds": 1},
        "validation": validation_of([], "NONE"),
    }
    return snapshot_of(log, previous=previous, **given | parts)


def known(
    seen: Iterable[LedgerEntry], log: RunLog, previous: CompactionSnapshot | None = None, **parts: Any
) -> SnapshotContext:
    """What a store with these entries and `CHUNKS` knows of a run."""
    held = {entry.id: entry for entry in seen}
    given: dict[str, Any] = {
        "started": next((told for told in map(started_by, held.values()) if told), None),
        "previous": previous,
        "before": None if previous is None else log_of(previous),
        "last_sequence": 0 if previous is None else previous.sequence,
        "events_since": len(log.counted_since),
        "steps_since": len(log.steps_since),
        "entries": {id_: held[id_] for id_ in entries_named(log) if id_ in held},
        "chunk": lambda corpus, chunk: CHUNKS.get((corpus, chunk), "it is not in the store"),
        "standing": lambda corpus, chunk: "live",
    }
    return SnapshotContext(**given | parts)


# -- streams ------------------------------------------------------------------------------------------

_REFS = st.sampled_from([A, B, SEA, DEPTH])
_CLAIM_IDS = st.sampled_from(["k1", "k2", "k3", "k4"])
_CONFLICT_IDS = st.sampled_from(["c1", "c2"])
_TEXTS = st.sampled_from(["Which year?", "Which sea?", "Who says so?"])
_EVENTS = st.sampled_from(
    [
        "COMPILE_DONE",
        "PLAN_DONE",
        "ACT_DONE",
        "OBSERVE_DONE",
        "CHECKPOINT_DONE",
        "ACT_STARTED",
        "PLAN_PROGRESS",
        "THOUGHT",
    ]
)
_WINDOWS = st.builds(
    lambda ids, name, excluded: window(*ids, id_=name, excluded=excluded),
    st.lists(st.sampled_from([*(chunk for _, chunk in CHUNKS), "evt_c", "evt_d", "evt_e", "evt_f"]), max_size=4),
    st.sampled_from(["m1", "m2", "m3", "m4"]),
    st.dictionaries(
        st.sampled_from(["evt_z", "state:constraints.budget"]), st.sampled_from(["over_budget", "purpose"])
    ),
)
_STEPS = st.builds(
    lambda event, number, content, more: step(event, number, content, **more),
    _EVENTS,
    st.none() | st.integers(0, 6),
    st.sampled_from(["", "look it up", "look again"]),
    st.fixed_dictionaries(
        {},
        optional={
            "action": st.sampled_from([{"tool": "map"}, {"tool": "map", "args": {"n": 1}}, {}]),
            "tokens": st.integers(0, 50),
            "manifest": _WINDOWS,
        },
    ),
)
WELL_FORMED: st.SearchStrategy[Told] = st.one_of(
    st.just(message()),
    _STEPS,
    _STEPS,
    st.builds(
        lambda id_, ref, status, basis: claim(id_, ref, status=status, depends_on=basis),
        _CLAIM_IDS,
        _REFS,
        st.sampled_from(["candidate", "verified"]),
        st.lists(_CLAIM_IDS, max_size=1),
    ),
    st.builds(
        lambda id_, refs: patch("claim_verified", id=id_, evidence_refs=refs),
        _CLAIM_IDS,
        st.lists(_REFS, min_size=1, max_size=2),
    ),
    st.builds(
        lambda id_, refs: patch("claim_retracted", id=id_, reason="no", evidence_refs=refs),
        _CLAIM_IDS,
        st.lists(_REFS, max_size=1),
    ),
    st.builds(lambda id_: patch("claim_demoted", id=id_, reason="its basis fell"), _CLAIM_IDS),
    st.builds(conflict, _CONFLICT_IDS, _REFS, _REFS),
    st.builds(lambda id_: patch("conflict_settled", id=id_, resolution="a"), _CONFLICT_IDS),
    st.builds(lambda number: failure(why=f"{number} of 9 failed"), st.integers(0, 3)),
    st.builds(question, _TEXTS),
    st.builds(answered, _TEXTS),
    st.builds(
        lambda actions: patch("actions_planned", actions=actions),
        st.lists(st.sampled_from(["look", "ask"]), max_size=3),
    ),
    st.builds(tool, st.sampled_from(["no such file 1", "no such file 22", "timeout", ""]), ok=st.booleans()),
)

_ODD = st.sampled_from([None, 7, True, "", "x\ny", [], {}, [1], {"a": 1}, "verified", -1, "é" * 300])


@st.composite
def malformed(draw: st.DrawFn) -> Told:
    """A well-formed entry with something taken away from what it says, or put in its place."""
    told = draw(WELL_FORMED.filter(lambda each: each["kind"] == "state_patch"))
    said = dict(told["body"]["metadata"])
    for key in draw(st.lists(st.sampled_from(sorted(said)), min_size=1, max_size=2)):
        if draw(st.booleans()):
            said.pop(key, None)
        else:
            said[key] = draw(_ODD)
    return told | {"body": {"content": "", "metadata": said}}


_FOREIGN = st.one_of(
    WELL_FORMED.map(lambda told: told | {"run_id": "run_2"}),
    WELL_FORMED.map(lambda told: told | {"forgotten": True}),
    st.just(start("another aim")),
    st.builds(taken, st.integers(-1, 3), st.integers(-1, 60)),
    st.just(message("hi", event="claim_made", id="k1", statement="s", status="verified", evidence_refs=[A])),
)


def streams(*, honest: bool = False, max_size: int = 40) -> st.SearchStrategy[list[Told]]:
    """What a run tells; unless honest, with malformed, foreign and forgotten entries between."""
    told = WELL_FORMED if honest else st.one_of(WELL_FORMED, WELL_FORMED, malformed(), _FOREIGN)
    return st.lists(told, max_size=max_size).map(lambda each: [start(), *each])
