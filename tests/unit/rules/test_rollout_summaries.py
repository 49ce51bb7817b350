"""Summaries: bounded, without chain of thought, and refused where they are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.contracts.runs import RolloutSummary, VerifierResult
from muniment.core.text.tokens import estimate_tokens
from muniment.errors import InvalidRecord
from muniment.rules._summaries import (
    Attempted,
    answer_of,
    check_summary,
    find_thoughts,
    summarise,
    summary_text,
    without_thoughts,
)
from products import for_each

RESULT = VerifierResult.from_wire(
    {"schema_version": "0.5.15", "verifier_id": "v", "verdict": "PASS", "outcome": "UNKNOWN"}
)
THOUGHTS = [
    "<think>first I add\nthen I carry</think>The sum is 24.",
    "I add and carry</think>\nThe sum is 24.",
    "<thinking>a<thinking>b</thinking>c</thinking>The sum is 24.",
    "<scratchpad>3*8</scratchpad>\nThe sum is 24.",
    "<|begin_of_thought|>3*8<|end_of_thought|>The sum is 24.",
    "<|channel|>analysis<|message|>3*8<|end|>The sum is 24.",
    "```thinking\n3*8\n```\nThe sum is 24.",
    "## Reasoning\n3*8\n\n## Answer\nThe sum is 24.",
    "**Scratchpad**\n3*8\n\n**Answer**\nThe sum is 24.",
    "Thought: 3*8\n\nThe sum is 24.",
    "Let me think about it. The sum is 24.",
    "Hmm, 3*8. The sum is 24.",
    "Okay, so I need 24.\nThe sum is 24.",
    "Let's think step by step.\nThe sum is 24.",
    "<t<think>x</think>hink>3*8</think>The sum is 24.",
    "让我想想。The sum is 24.",
]


def made(text: str, told: object = None, count: object = estimate_tokens) -> RolloutSummary:
    return summarise(Attempted("trc_1", text, RESULT, ["calc"], told), count)  # type: ignore[arg-type]


@pytest.mark.req("RC-20")
@for_each("text", THOUGHTS)
def test_thinking_is_taken_out(text: str) -> None:
    assert find_thoughts(text)
    kept = without_thoughts(text)
    assert find_thoughts(kept) == ()
    assert "The sum is 24." in kept
    summary = made(text)
    assert "24" in summary.answer
    assert "3*8" not in summary_text(summary)
    assert "carry" not in summary_text(summary)


@pytest.mark.parametrize(
    "text",
    ["Wait times are five minutes.", "Let me know if it fits.", "The thinker sat down.", "First, fold the paper."],
)
def test_what_only_sounds_like_it_stays(text: str) -> None:
    assert find_thoughts(text) == ()
    assert without_thoughts(text) == text


def test_an_answer_that_is_all_thinking_has_no_answer() -> None:
    summary = made("<think>and so on")
    assert summary.answer == "(no answer)"
    assert made("").answer == "(no answer)"


@pytest.mark.req("RC-20")
def test_the_parts_of_a_text_are_found() -> None:
    summary = made(
        "Because 3 and 8 divide 24.\nAssuming whole numbers.\nChecked: all four are used.\n\n"
        "Final answer: 8/(3-8/3)\nBye."
    )
    assert summary.answer == "8/(3-8/3)"
    assert summary.key_reasoning == ("Because 3 and 8 divide 24.",)
    assert summary.assumptions == ("Assuming whole numbers.",)
    assert summary.checks == ("Checked: all four are used.",)
    assert summary.compaction_policy is not None
    assert summary.compaction_policy.forbid_cot
    assert summary.verifier_score == 0.6


def test_what_the_agent_says_of_itself_comes_first_and_is_cleaned_too() -> None:
    told = {
        "answer": "<think>no</think>24",
        "key_reasoning": ["Let me think. It divides.", 7, "b", "c", "d"],
        "confidence": 0.8,
        "checks": "all used",
    }
    summary = made("Answer: 7", told)
    assert summary.answer == "24"
    assert summary.key_reasoning == ("It divides.", "b", "c")
    assert summary.confidence == 0.8
    assert summary.checks == ("all used",)
    assert made("x", {"confidence": 7}).confidence is None
    assert made("x", {"confidence": True}).confidence is None


def test_without_grounds_what_was_seen_is_told() -> None:
    assert made("24").key_reasoning == ("called calc",)
    bare = summarise(Attempted("trc_1", "24", RESULT), estimate_tokens)
    assert bare.key_reasoning == ("no grounds were given",)


@pytest.mark.req("RC-20")
@given(
    st.text(max_size=2_000),
    st.lists(st.text(max_size=900), max_size=8),
    st.sampled_from([256, 384, 512]),
    st.sampled_from([1, 7]),
)
def test_a_summary_is_within_its_bound_whatever_was_said(
    text: str, grounds: list[str], tokens_max: int, dear: int
) -> None:
    def count(said: str) -> int:
        return dear * estimate_tokens(said)

    told = {"key_reasoning": grounds, "checks": grounds, "assumptions": grounds, "answer": text}
    summary = summarise(Attempted("trc_1", text, RESULT, (), told), count, tokens_max)
    check_summary(summary, count)
    assert count(summary_text(summary)) <= tokens_max
    assert len(summary_text(summary).encode("utf-8", "surrogatepass")) <= 6 * 1024


@pytest.mark.req("RC-20")
@for_each(
    ("change", "path"),
    [
        ({"compaction_policy": {"max_tokens": 512, "forbid_cot": False}}, "forbid_cot"),
        ({"compaction_policy": {"max_tokens": 4_000, "forbid_cot": True}}, "max_tokens"),
        ({"answer": "word " * 600}, "$"),
        ({"answer": "Let me think. It is 24."}, "answer"),
        ({"key_reasoning": ["<think>x</think>"]}, "key_reasoning"),
        ({"checks": ["Hmm, is it?"]}, "checks"),
    ],
)
def test_a_summary_that_may_not_be_read_is_refused(change: dict[str, object], path: str) -> None:
    plain = made("24").to_wire() | change
    with pytest.raises(InvalidRecord) as caught:
        check_summary(RolloutSummary.from_wire(plain), estimate_tokens)
    assert any(path in issue.path for issue in caught.value.issues)


@for_each(
    ("text", "answer"),
    [("**Answer:** 24", "24"), ("The final answer is: 24", "24"), ("Answer:\n24", "24"), ("a\nb", "b"), ("", "")],
)
def test_the_answer_in_one_line(text: str, answer: str) -> None:
    assert answer_of(text) == answer
