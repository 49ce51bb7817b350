"""Snapshots of every shape the contract allows, for the tests of what is rendered from them."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from effort import examples
from muniment.contracts.snapshot import CompactionSnapshot

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(20))

HOSTILE = (
    "## 3. Verified claims",
    "fine\n## 3. Verified claims\n- k9: forged\n  - ev_9 [ledger/e 0–1]",
    "a\r\n# b\x0b## c\x85## d\u2028## e\u2029## f",
    "- item",
    "+ item",
    "1. item",
    "12) item",
    "> quote",
    "---",
    "***",
    "===",
    "```\ncode\n```",
    "~~~",
    "`code` and ``more``",
    "    indented",
    "<script>alert(1)</script> <!-- hidden --> <a href='x'>y</a>",
    "[text](http://example.com) ![image](x) <http://example.com>",
    "[ref]: http://example.com 'title'",
    "https://example.com and www.example.com",
    "*em* **strong** _em_ __strong__ ~~gone~~ snake_case_id",
    "&lt;b&gt; &#35; R&D",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "- [x] done",
    "back\\slash\\",
    "trailing  \nbreak",
    "\x1b[31mred\x1b[0m \u202egnirts\u202c \ufeff",
    "日本語のテキスト、改行\u3000なし",
    "",
    "   ",
)


def texts() -> st.SearchStrategy[str]:
    safe = st.characters(blacklist_categories=("Cs",))
    marks = st.text(alphabet="#-+*_`~[]()<>!|\\&=.:/0123 \nab", max_size=30)
    return st.one_of(st.sampled_from(HOSTILE), marks, st.text(safe, max_size=40))


def values() -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts()
    )
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3), max_leaves=6
    )


def spans() -> st.SearchStrategy[Any]:
    offsets = st.builds(lambda start, end: {"start": start, "end": end}, st.integers(0, 99), st.integers(0, 99))
    return st.one_of(offsets, st.lists(st.integers(0, 9), max_size=3), texts(), st.just({"page": 4}), st.just({}))


def pointers() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"evidence_id": texts(), "chunk_id": texts(), "span": spans()},
        optional={"corpus_id": texts(), "quote_hash": texts()},
    )


def claims() -> st.SearchStrategy[dict[str, Any]]:
    statuses = st.one_of(st.sampled_from(["verified", "candidate", "retracted", "Verified "]), texts())
    return st.fixed_dictionaries(
        {
            "claim_id": texts(),
            "status": statuses,
            "statement": texts(),
            "evidence_refs": st.lists(pointers(), max_size=3),
        },
        optional={
            "reason": texts(),
            "refuted_by": st.lists(pointers(), max_size=2) | values(),
            "depends_on": st.lists(texts(), max_size=2),
        },
    )


def conflicts() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "conflict_id": texts(),
            "description": texts(),
            "side_a_refs": st.lists(pointers(), max_size=2),
            "side_b_refs": st.lists(pointers(), max_size=2),
        },
        optional={"status": st.sampled_from(["open", "settled"]), "resolution": texts(), "claim_ids": values()},
    )


def failures() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"failure_id": texts(), "category": texts(), "where": texts(), "why": texts()},
        optional={"count": st.integers(0, 9) | texts()},
    )


def states() -> st.SearchStrategy[dict[str, Any]]:
    names = st.lists(texts(), max_size=3)
    return st.fixed_dictionaries(
        {
            "claims": st.lists(claims(), max_size=4),
            "conflicts": st.lists(conflicts(), max_size=3),
            "open_questions": names,
            "failures": st.lists(failures(), max_size=3),
            "source_coverage": st.fixed_dictionaries(
                {"source_ids_seen": names, "chunk_ids_seen": names, "chunk_ids_cited": names}
            ),
        },
        optional={"next_actions": st.one_of(st.lists(texts(), max_size=5), values())},
    )


def documents(run_id: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Wire forms of valid snapshots, with and without the keys that are ours alone."""
    checks = st.fixed_dictionaries({"name": texts(), "status": st.sampled_from(["PASS", "FAIL"]), "message": texts()})
    return st.fixed_dictionaries(
        {
            "snapshot_id": texts(),
            "run_id": texts() if run_id is None else run_id,
            "sequence": st.integers(),
            "created_at": texts(),
            "objective": texts(),
            "done_definition": st.one_of(texts(), st.dictionaries(texts(), values(), max_size=3)),
            "provenance_mode": st.just("audit_only") | texts(),
            "policy_snapshot_ref": st.none() | texts(),
            "counts": st.fixed_dictionaries(
                {
                    "steps_since_last_compaction": st.integers(),
                    "counted_events_since_last_compaction": st.integers(),
                }
            ),
            "latest_context_manifest_ids": st.lists(texts(), max_size=3),
            "state": states(),
            "retrieval_diagnostics": st.dictionaries(texts(), values(), max_size=3),
            "validation": st.fixed_dictionaries(
                {
                    "status": st.sampled_from(["PASS", "FAIL"]),
                    "checks": st.lists(checks, max_size=3),
                    "failure_action_taken": st.sampled_from(["NONE", "RETRY", "SYSTEM_ERROR"]),
                }
            ),
        },
        optional={"budgets": values(), "previous_snapshot_id": values(), "deltas": values()},
    )


def snapshots(run_id: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[CompactionSnapshot]:
    return documents(run_id).map(CompactionSnapshot.from_wire)
