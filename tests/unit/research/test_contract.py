"""An output against its contract: each breach by its name."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from muniment.contracts.research import Perspective, PromptContract
from muniment.research._markdown import read_markdown
from muniment.research.records import Breach
from muniment.research.waves import check_contract, make_directive, output_sources, output_words

GOOD = (
    "# Prices\n\n## Findings\n\nPrices rose by 5 % in 2023 [1]. Wages fell [2].\n\n"
    "## Sources\n[1] https://a.org/x - A\n[2] https://b.org/y - B\n\n## Gaps\n\n- P1: nobody counted rents\n"
)
CONTRACT = {
    "max_words": 40,
    "max_sources": 2,
    "tool_budget": {"search_calls": 4, "fetch_calls": 2},
    "must_include_sections": ["Findings", "Sources", "Gaps"],
}


def judged(markdown: str = GOOD, contract: dict[str, Any] | None = None, **said: Any) -> list[Breach]:
    usual: dict[str, Any] = {
        "tool_use": {"search_calls": 4},
        "attempt": 1,
        "change_note": None,
        "previous_digest": None,
        "digest": "d1",
    }
    rules = PromptContract.model_validate(CONTRACT | (contract or {}))
    return check_contract(read_markdown(markdown), rules, **(usual | said))


def kinds(breaches: list[Breach]) -> list[str]:
    return [breach.kind for breach in breaches]


@pytest.mark.req("RP-02")
def test_a_good_output_breaks_nothing() -> None:
    assert judged() == []


@pytest.mark.req("RP-02")
@pytest.mark.parametrize("markdown", ["", " \n", "```\ncode\n```", "## Sources\n[1] https://a.org/x"])
def test_an_output_that_says_nothing(markdown: str) -> None:
    breaches = judged(markdown.replace("## Sources", "---"))
    assert kinds(breaches) == ["empty_output"]


@pytest.mark.req("RP-02")
def test_sections_missing_and_empty() -> None:
    missing, empty = judged("## 发现\n\n价格上涨 [A](https://a.org/x)。\n\n## Gaps\n\n### Sub\n\n---\n")
    assert (missing.kind, missing.where) == ("missing_section", "Sources")
    assert (empty.kind, empty.where) == ("empty_section", "Gaps")


@pytest.mark.req("RP-02")
def test_words_are_counted_without_the_list_of_sources() -> None:
    assert output_words(read_markdown(GOOD)) == 16
    (breach,) = judged(contract={"max_words": 15})
    assert (breach.kind, breach.limit, breach.found) == ("too_many_words", 15, 16)
    assert "16" in breach.message
    assert "15" in breach.message
    assert judged(contract={"max_words": 16}) == []


@pytest.mark.req("RP-02")
def test_sources_are_different_addresses() -> None:
    markdown = GOOD.replace("Wages", "([A](HTTPS://A.org/x?utm_source=q#part)) Wages")
    assert output_sources(read_markdown(markdown)) == 2
    assert judged(markdown) == []
    (breach,) = judged(markdown, {"max_sources": 1})
    assert (breach.kind, breach.limit, breach.found) == ("too_many_sources", 1, 2)


@pytest.mark.req("RP-02")
def test_no_source_and_dangling_marks() -> None:
    markdown = "## Findings\n\nPrices rose [1]. Wages fell [4].\n\n## Sources\n\nNone.\n\n## Gaps\n\nNone.\n"
    none, dangling = judged(markdown)
    assert none.kind == "no_sources"
    assert (dangling.kind, dangling.found, dangling.where) == ("dangling_mark", 2, "[1], [4]")
    assert "no_sources" not in kinds(judged(markdown, {"max_sources": 0}))


def test_a_cid_does_not_dangle() -> None:
    assert judged(GOOD.replace("[2].", "[cid_1a2b3c4d].")) == []


@pytest.mark.req("RP-02")
def test_tools_within_and_beyond_their_budget() -> None:
    assert judged(tool_use={"search_calls": 4, "fetch_calls": 2, "other": 99}) == []
    one, two = judged(tool_use={"search_calls": 5, "fetch_calls": 3})
    assert (one.kind, one.where, one.limit, one.found) == ("tool_budget_exceeded", "search_calls", 4, 5)
    assert two.where == "fetch_calls"


@pytest.mark.req("RP-02")
def test_a_budget_that_nobody_counted_against_is_not_kept() -> None:
    (breach,) = judged(tool_use=None)
    assert (breach.kind, breach.where) == ("tool_use_unknown", "search_calls, fetch_calls")
    assert judged(contract={"tool_budget": {}}, tool_use=None) == []


@pytest.mark.req("RP-02")
def test_a_second_attempt_says_what_changed_and_changes_it() -> None:
    assert kinds(judged(attempt=2, previous_digest="d0")) == ["missing_change_note"]
    assert kinds(judged(attempt=2, previous_digest="d0", change_note=" ")) == ["missing_change_note"]
    assert judged(attempt=2, previous_digest="d0", change_note="Shorter.") == []
    assert judged(GOOD + "\n## Change note\n\nShorter.\n", attempt=2, previous_digest="d0") == []
    assert kinds(judged(attempt=3, previous_digest="d1", change_note="Shorter.")) == ["unchanged_output"]


def test_a_change_note_is_not_counted_in_words() -> None:
    assert output_words(read_markdown(GOOD + "\n## 修改说明\n\n删去了重复的内容。\n")) == 16


@pytest.mark.req("RP-02")
@pytest.mark.parametrize("title", ["Prices {0}", "价格走势"])
def test_a_directive_lists_the_breaches_and_asks_for_a_change_note(title: str) -> None:
    perspective = Perspective.model_validate(
        {"id": "p1", "title": title, "track": "standard", "agent_type": "A", "prompt_contract": CONTRACT}
    )
    breaches = judged("## 发现\n\n价格上涨了百分之五，工资下降了许多 [9]。\n", {"max_words": 3})
    made = make_directive(perspective, 2, breaches)
    assert (made.perspective_id, made.attempt, made.breaches) == ("p1", 2, tuple(breaches))
    assert "change note" in made.text
    assert title in made.text
    assert all(f"{number}. {breach.message}" in made.text for number, breach in enumerate(breaches, start=1))


@pytest.mark.soak
@settings(max_examples=examples(30), deadline=None)
@given(
    st.text(max_size=120),
    st.integers(1, 3),
    st.none() | st.dictionaries(st.sampled_from(["search_calls", "x"]), st.integers(0, 9)),
)
def test_any_output_is_judged(markdown: str, attempt: int, tool_use: dict[str, int] | None) -> None:
    breaches = judged(markdown, attempt=attempt, tool_use=tool_use, previous_digest="d1")
    assert all(breach.message for breach in breaches)
    assert breaches == judged(markdown, attempt=attempt, tool_use=tool_use, previous_digest="d1")
