"""Attempts differ, and in the same way each time the seed is the same."""

from __future__ import annotations

from itertools import pairwise

import pytest

from muniment.contracts.runs import RunConfig
from muniment.core.policy import RolloutPolicy
from muniment.rules._summaries import PLAN_STYLES, draw_config, way_of

POLICY = RolloutPolicy()
TOOLS = ("search", "read", "book")


def drawn(mode: str, seed: str = "s", count: int = 8) -> list[RunConfig]:
    return [draw_config(mode, seed, number, POLICY, TOOLS) for number in range(count)]


@pytest.mark.req("RC-20")
def test_the_same_seed_draws_the_same_settings() -> None:
    assert drawn("matts") == drawn("matts")
    assert drawn("matts") != drawn("matts", "another")
    assert [each.to_wire() for each in drawn("kroll")] == [each.to_wire() for each in drawn("kroll")]


@pytest.mark.req("RC-20")
def test_contrasting_attempts_contrast() -> None:
    configs = drawn("matts")
    for one, other in pairwise(configs):
        assert one.seed_prompt != other.seed_prompt
        assert one.plan_style != other.plan_style
        assert one.temperature != other.temperature
    assert {each.plan_style for each in configs} == set(PLAN_STYLES)
    assert {each.self_refine_steps for each in configs} == {0, 1}
    assert len({each.tool_order for each in configs}) > 1
    assert all(sorted((each.tool_order or "").split(">")) == sorted(TOOLS) for each in configs)
    pairs = {(each.seed_prompt, each.plan_style) for each in configs}
    assert len(pairs) == len(configs)


def test_plain_attempts_have_one_prompt_and_seeds_of_their_own() -> None:
    configs = drawn("kroll")
    assert all(way_of(each) == "" for each in configs)
    assert len({(each.model_extra or {})["seed"] for each in configs}) == len(configs)
    assert all(each.plan_style is None and each.tool_order is None for each in configs)


def test_the_agent_is_told_its_way() -> None:
    config = draw_config("matts", "s", 0, POLICY, TOOLS)
    said = way_of(config)
    assert config.seed_prompt is not None
    assert config.seed_prompt in said
    assert PLAN_STYLES[config.plan_style or ""] in said
    assert all(tool in said for tool in TOOLS)
    assert way_of(None) == ""


def test_a_seed_may_be_any_text() -> None:
    assert draw_config("matts", "\ud800", 0, POLICY) != draw_config("matts", "", 0, POLICY)
