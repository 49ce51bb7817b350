"""What PASS is, how layers compose, what a bucket is called, which words are registered, which failures are one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.kinds import KINDS
from muniment.errors import InvalidInput
from muniment.verify.constraints import DEFAULT_REGISTRY
from muniment.verify.results import (
    Scores,
    bucket_key,
    compose_layers,
    failure_cluster_id,
    is_pass,
    parse_bucket_key,
    score_of,
    worst_verdict,
)
from muniment.verify.taxonomy import detail_of
from products import for_each

LEVELS = st.sampled_from(["low", "med", "high"])


@pytest.mark.req("RC-01")
def test_pass_is_a_verdict_that_no_outcome_contradicts() -> None:
    passing = {
        pair for pair in itertools.product(("PASS", "FAIL", "PARTIAL"), ("OK", "FAIL", "UNKNOWN")) if is_pass(*pair)
    }
    assert passing == {("PASS", "OK"), ("PASS", "UNKNOWN")}


@pytest.mark.req("RC-17")
@for_each(
    ("verdict", "outcome", "score"),
    [
        ("PASS", "OK", 1.0),
        ("PASS", "UNKNOWN", 0.6),
        ("PASS", "FAIL", 0.0),
        ("PARTIAL", "UNKNOWN", 0.3),
        ("PARTIAL", "OK", 0.3),
        ("FAIL", "OK", 0.0),
        ("FAIL", "UNKNOWN", 0.0),
    ],
)
def test_a_result_without_a_score_gets_the_one_of_its_words(verdict: str, outcome: str, score: float) -> None:
    assert score_of(verdict, outcome) == score
    assert score_of("PARTIAL", "OK", Scores(partial=0.5)) == 0.5


@pytest.mark.req("RC-17")
def test_static_checks_speak_the_verdict_and_execution_the_outcome() -> None:
    assert compose_layers(["PASS"]) == ("PASS", "UNKNOWN")
    assert compose_layers(["FAIL"]) == ("FAIL", "UNKNOWN")
    assert compose_layers(["PASS", "PARTIAL"], "OK") == ("PARTIAL", "OK")
    assert compose_layers(["FAIL"], "OK") == ("FAIL", "OK")
    assert compose_layers(["PASS"], "FAIL") == ("FAIL", "FAIL")
    assert compose_layers(["PASS"], "UNKNOWN") == ("PASS", "UNKNOWN")
    assert worst_verdict([]) == "PASS"


@pytest.mark.req("RC-03")
def test_a_bucket_key_looks_as_in_the_contract() -> None:
    assert bucket_key("high", "coding", "low") == "I3|coding|clarity_low"
    assert bucket_key("low", "", "high") == "I1|general|clarity_high"
    assert parse_bucket_key("I2|math|clarity_med") == ("med", "math", "med")


@pytest.mark.req("RC-03")
@given(LEVELS, st.text(max_size=20), LEVELS)
def test_a_bucket_key_is_read_back_as_it_was_written(impact: str, domain: str, clarity: str) -> None:
    key = bucket_key(impact, domain, clarity)  # type: ignore[arg-type]
    assert key.count("|") == 2
    assert parse_bucket_key(key) == (impact, domain.strip() or "general", clarity)


@for_each("key", ["", "I4|x|clarity_low", "I1||clarity_low", "I1|a b|clarity_low", "I1|%2f|clarity_low"])
def test_what_is_no_bucket_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput):
        parse_bucket_key(key)
    with pytest.raises(InvalidInput, match="not a level"):
        bucket_key("medium", "x", "low")  # type: ignore[arg-type]


@pytest.mark.req("RC-02")
def test_the_keys_of_the_contract_are_registered() -> None:
    for key in (
        "SCHEMA:VerifierResult",
        "FORMAT:JSON_ONLY",
        "TOOL:CALL_REQUIRED:web.search_query",
        "POLICY:NO_NETWORK",
    ):
        assert DEFAULT_REGISTRY.check_key(key) == key
    assert {"SCHEMA", "FORMAT", "TOOL", "POLICY", "MEMORY"} <= set(DEFAULT_REGISTRY.prefixes)
    contracts = {key.removeprefix("SCHEMA:") for key in DEFAULT_REGISTRY.keys if key.startswith("SCHEMA:")}
    assert contracts == {*KINDS, "JSON"}


@pytest.mark.req("RC-02")
@for_each(
    ("key", "hint"),
    [
        ("FORMAT:JSON_ONYL", "did you mean 'FORMAT:JSON_ONLY'?"),
        ("TOOL:CALL_REQUIRED", "TOOL:CALL_REQUIRED:DETAIL"),
        ("FORMAT:WORDS:INTRO", "leave out 'INTRO'"),
        ("nothing like it", "register it first: Registry.with_key(…)"),
        ("FORMAT:JSON_ONLY:", "did you mean 'FORMAT:JSON_ONLY'?"),
    ],
)
def test_an_unregistered_key_is_refused_with_the_nearest_one(key: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        DEFAULT_REGISTRY.check_key(key)
    assert caught.value.hint == hint


@pytest.mark.req("RC-02")
def test_a_registry_is_a_value() -> None:
    larger = DEFAULT_REGISTRY.with_key("STYLE:VOICE", "how it sounds", "optional").with_reason("style_drift", "off")
    assert larger.check_key("STYLE:VOICE:INTRO") == "STYLE:VOICE:INTRO"
    assert larger.check_reason("style_drift") == "style_drift"
    assert "STYLE" in larger.prefixes
    with pytest.raises(InvalidInput):
        DEFAULT_REGISTRY.check_key("STYLE:VOICE")
    with pytest.raises(InvalidInput, match="unknown reason code 'format_leek'") as caught:
        DEFAULT_REGISTRY.check_reason("format_leek")
    assert caught.value.hint == "did you mean 'format_leak'?"
    for key in ("style:voice", "STYLE", "STYLE:A:B", ""):
        with pytest.raises(InvalidInput):
            DEFAULT_REGISTRY.with_key(key, "")
    with pytest.raises(InvalidInput):
        DEFAULT_REGISTRY.with_reason("Style Drift", "")


@given(st.text(max_size=200))
def test_any_name_can_be_the_detail_of_a_key(name: str) -> None:
    key = f"TOOL:CALL_REQUIRED:{detail_of(name)}"
    assert DEFAULT_REGISTRY.check_key(key) == key


def test_names_that_look_alike_when_cleaned_stay_apart() -> None:
    assert detail_of("web.search_query") == "web.search_query"
    assert len({detail_of(name) for name in ("검색", "검토", "web search", "web  search")}) == 4


@pytest.mark.req("RC-02")
@given(st.lists(st.text(max_size=8), max_size=5), st.lists(st.text(max_size=8), max_size=4), st.randoms())
def test_a_cluster_does_not_depend_on_order_or_repetition(keys: list[str], codes: list[str], chance: object) -> None:
    shuffled_keys, shuffled_codes = keys + keys, codes + codes
    chance.shuffle(shuffled_keys)  # type: ignore[attr-defined]
    chance.shuffle(shuffled_codes)  # type: ignore[attr-defined]
    assert failure_cluster_id("L1", keys, codes) == failure_cluster_id("L1", shuffled_keys, shuffled_codes)


@pytest.mark.req("RC-02")
def test_a_cluster_tells_stages_constraints_and_reasons_apart() -> None:
    ids = {
        failure_cluster_id("L1", ["FORMAT:JSON_ONLY"], ["format_leak"]),
        failure_cluster_id("L3", ["FORMAT:JSON_ONLY"], ["format_leak"]),
        failure_cluster_id("L1", ["FORMAT:WORDS"], ["format_leak"]),
        failure_cluster_id("L1", ["FORMAT:JSON_ONLY"], ["test_fail"]),
        failure_cluster_id("L1", ["FORMAT:JSON_ONLY", "format_leak"], []),
    }
    assert len(ids) == 5
    assert failure_cluster_id("L1", ["FORMAT:JSON_ONLY"], ["format_leak"]).startswith("fc_")
