"""Runs as a fold reads them, made in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from muniment.core.policy import LearnPolicy
from muniment.learning.records import IntentParts, RunFacts, StepFacts, StoredMemory

NOW = "2026-05-01T12:00:00.000000Z"
INTENT = IntentParts(domain_tag="travel", task_family="booking")
TOOLS = ("search", "book", "verify_booking", "pay", "cancel")


def count_words(text: str) -> int:
    return len(text.split())


def clean(_text: str) -> bool:
    return True


def call(action: str, place: int = 0, **fields: Any) -> StepFacts:
    return StepFacts.model_validate({"evidence_id": f"e{place}", "action": action, **fields})


def say(text: str, place: int = 0) -> StepFacts:
    return StepFacts(evidence_id=f"e{place}", action="say", kind="say", text=text)


def run(name: str, passed: bool, tools: Sequence[str] = ("search",), **fields: Any) -> RunFacts:
    plain: dict[str, Any] = {
        "trace_id": name,
        "x_summary": "Book a flight to Oslo.",
        "intent": INTENT,
        "verdict": "PASS" if passed else "FAIL",
        "outcome": "OK" if passed else "FAIL",
        "passed": passed,
        "cost": 10,
        "steps": tuple(call(tool, place) for place, tool in enumerate(tools)),
        "at": NOW,
    }
    return RunFacts.model_validate(plain | fields)


def runs_with(feature: dict[str, Any], passes: int, fails: int, name: str = "r", **fields: Any) -> list[RunFacts]:
    """Runs that say the same of themselves, some of which passed."""
    return [run(f"{name}{place:03}", place < passes, own_features=feature, **fields) for place in range(passes + fails)]


def greedy_against_random(passes: int = 8, others: int = 1) -> list[RunFacts]:
    """Nine runs of each strategy."""
    return [
        *runs_with({"strategy": "greedy"}, passes, 9 - passes, "g"),
        *runs_with({"strategy": "random"}, others, 9 - others, "r"),
    ]


def stored(record: dict[str, Any], kind: str = "tactic", **fields: Any) -> StoredMemory:
    plain: dict[str, Any] = {
        "id": record.get("tactic_id") or record.get("memory_id") or record["state_id"],
        "kind": kind,
        "level": "user",
        "version": 1,
        "record": record,
        "status": "active",
        "created_at": NOW,
    }
    return StoredMemory.model_validate(plain | fields)


POLICY = LearnPolicy()

_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=60)
_SCALARS = st.one_of(st.booleans(), st.integers(-5, 5), st.floats(0, 1), st.sampled_from(("a", "b", "greedy")), _WORDS)


@st.composite
def any_steps(draw: st.DrawFn) -> StepFacts:
    fields: dict[str, Any] = {"kind": draw(st.sampled_from(("call", "say", "answer", "ask")))}
    for name, values in (("text", _WORDS), ("detail", _WORDS), ("ok", st.booleans())):
        if draw(st.booleans()):
            fields[name] = draw(values)
    if draw(st.integers(0, 3)) == 0:
        fields["detail"] = '{"cabin": "economy", "id": "XJ-2211", "many": [1, 2], "insured": true}'
    return call(draw(st.sampled_from(TOOLS)), draw(st.integers(0, 99)), **fields)


@st.composite
def any_runs(draw: st.DrawFn, name: str = "t") -> RunFacts:
    judged = draw(st.integers(0, 9)) > 0
    passed = judged and draw(st.booleans())
    fields: dict[str, Any] = {
        "x_summary": draw(_WORDS),
        "steps": tuple(draw(st.lists(any_steps(), max_size=8))),
        "own_features": draw(st.dictionaries(st.sampled_from(("strategy", "depth", "a b")), _SCALARS, max_size=3)),
        "given_features": draw(st.dictionaries(st.sampled_from(("size", "kind of", "x")), _SCALARS, max_size=3)),
        "reason_codes": draw(st.lists(st.sampled_from(("test_fail", "tool_failure")), max_size=2)),
        "violated": draw(st.lists(st.sampled_from(("FORMAT:JSON_ONLY", "TOOL:CALL_REQUIRED:search")), max_size=2)),
        "cost": draw(st.sampled_from((0, 1, 7.5, 300))),
        "at": f"2026-05-0{draw(st.integers(1, 9))}T12:00:00.000000Z",
    }
    made = run(name, passed, **fields)
    return made if judged else made.model_copy(update={"verdict": None, "outcome": None})


@st.composite
def many_runs(draw: st.DrawFn, most: int = 24) -> list[RunFacts]:
    """Runs with names of their own; many alike, so that some contrasts have support."""
    kinds = draw(st.lists(any_runs(), min_size=1, max_size=4))
    chosen = draw(st.lists(st.integers(0, len(kinds) - 1), min_size=1, max_size=most))
    return [kinds[kind].model_copy(update={"trace_id": f"t{place:03}"}) for place, kind in enumerate(chosen)]
